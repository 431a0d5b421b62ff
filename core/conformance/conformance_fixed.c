/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: results that must not change, whatever calls are made in between. */
#include "base/text.h"
#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>

#define GROUP "device"
#define DTYPES (DS_ACCEL_DTYPE_COMPLEX128 + 1)

/* All values that are fixed while a device is open. */
struct facts {
    struct ds_accel_backend_info backend;
    struct ds_accel_device_info device;
    struct ds_accel_device_identity identity;
    uint32_t dtypes[DTYPES];
    uint64_t granularity[2];
    int32_t priorities[2];
};

static void read_facts(struct ds_accel__run *run, struct facts *facts)
{
    memset(facts, 0, sizeof(*facts));
    facts->backend.struct_size = sizeof(facts->backend);
    facts->device.struct_size = sizeof(facts->device);
    facts->identity.struct_size = sizeof(facts->identity);
    if (run->table.backend_info != NULL) {
        WANT(run, DS_ACCEL_OK, backend_info, run->instance, &facts->backend);
    }
    if (run->table.device_info != NULL) {
        WANT(run, DS_ACCEL_OK, device_info, run->device, &facts->device);
    }
    if (run->table.device_identity != NULL) {
        WANT(run, DS_ACCEL_OK, device_identity, run->instance, run->device_index, &facts->identity);
        facts->identity.power_state = 0;
    }
    for (uint32_t i = 1; i < DTYPES && run->table.dtype_support != NULL; i++) {
        WANT(run, DS_ACCEL_OK, dtype_support, run->device, i, &facts->dtypes[i]);
    }
    if (ds_accel__has_slot(run, SLOT(vmem_granularity)) &&
        CALL(run, vmem_granularity, run->device, 0, &facts->granularity[0],
             &facts->granularity[1]) != DS_ACCEL_OK) {
        facts->granularity[0] = facts->granularity[1] = 0;
    }
    if (run->table.stream_priority_range != NULL) {
        WANT(run, DS_ACCEL_OK, stream_priority_range, run->device, &facts->priorities[0],
             &facts->priorities[1]);
    }
}

#define WANT_SAME(run, before, after, member, slot) \
    EXPECT(run, memcmp(&(before).member, &(after).member, sizeof((before).member)) == 0, \
           "%s: the result differs from an earlier one", slot)

static void want_same_facts(struct ds_accel__run *run, const struct facts *before)
{
    struct facts after;

    read_facts(run, &after);
    WANT_SAME(run, *before, after, backend, "backend_info");
    WANT_SAME(run, *before, after, device, "device_info");
    WANT_SAME(run, *before, after, identity, "device_identity");
    WANT_SAME(run, *before, after, dtypes, "dtype_support");
    WANT_SAME(run, *before, after, granularity, "vmem_granularity");
    WANT_SAME(run, *before, after, priorities, "stream_priority_range");
}

static void check_fixed(struct ds_accel__run *run)
{
    struct facts before;
    void *memory = NULL;

    read_facts(run, &before);
    want_same_facts(run, &before);
    if (run->table.mem_alloc != NULL && run->table.mem_free != NULL) {
        memory = ds_accel__take(run, UINT64_C(1) << 20);
        want_same_facts(run, &before);
        ds_accel__give(run, memory);
    }
    ds_accel__tour(run, NULL, NULL);
    want_same_facts(run, &before);
}

static bool is_same_text(const char *before, const char *after, size_t size)
{
    return before[0] == '\0' || strncmp(before, after, size) == 0;
}

/* True if every member that was valid before the device was opened is still valid, and the UUID,
 * PCI address, node path, architecture and name that were known have not changed. */
static bool is_same_device(const struct ds_accel_device_identity *before,
                           const struct ds_accel_device_identity *after)
{
    return (before->valid & ~after->valid) == 0 &&
           ((before->valid & DS_ACCEL_IDENTITY_UUID) == 0 ||
            memcmp(before->uuid, after->uuid, sizeof(before->uuid)) == 0) &&
           is_same_text(before->uuid_text, after->uuid_text, sizeof(before->uuid_text)) &&
           is_same_text(before->pci_address, after->pci_address, sizeof(before->pci_address)) &&
           is_same_text(before->node_path, after->node_path, sizeof(before->node_path)) &&
           is_same_text(before->architecture, after->architecture, sizeof(before->architecture)) &&
           is_same_text(before->name, after->name, sizeof(before->name));
}

/* Check that backend_info and device_identity, which need no open device, return the same results
 * before and after a device is opened. */
static void check_opening(struct ds_accel__run *run)
{
    ds_accel_plugin_instance_t *instance = ds_accel__run_init(run, run->host);
    struct ds_accel_device_identity identities[2];
    struct ds_accel_backend_info infos[2];
    bool is_told = run->table.device_identity != NULL;
    uint32_t count = 0;
    ds_accel_plugin_device_t *device = NULL;

    memset(identities, 0, sizeof(identities));
    memset(infos, 0, sizeof(infos));
    WANT(run, DS_ACCEL_OK, device_count, instance, &count);
    ds_accel__run_check_device(run, count);
    for (int i = 0; i < 2 && run->device_index < count; i++) {
        identities[i].struct_size = sizeof(identities[i]);
        infos[i].struct_size = sizeof(infos[i]);
        if (run->table.backend_info != NULL) {
            WANT(run, DS_ACCEL_OK, backend_info, instance, &infos[i]);
        }
        /* If device_identity fails, there is nothing to compare; DSA-P33 checks that it
         * succeeds. */
        is_told = is_told && CALL(run, device_identity, instance, run->device_index,
                                  &identities[i]) == DS_ACCEL_OK;
        if (i == 0) {
            device = ds_accel__run_open(run, instance, run->device_index);
        }
    }
    if (device != NULL) {
        run->table.device_close(device);
        EXPECT(run, memcmp(&infos[0], &infos[1], sizeof(infos[0])) == 0,
               "backend_info: the result differs with an open device");
        EXPECT(run, !is_told || is_same_device(&identities[0], &identities[1]),
               "device_identity: the result differs with an open device");
    }
    run->table.shutdown(instance);
}

static const struct ds_accel__check checks[] = {
    {124, GROUP, "facts, read again", DS_ACCEL__STAGE_DEVICE, 0, check_fixed, {0}},
    {124,
     GROUP,
     "facts of the backend, with and without an open device",
     DS_ACCEL__STAGE_TABLE,
     DS_ACCEL__CHECK_ALONE,
     check_opening,
     {SLOT(init), SLOT(shutdown), SLOT(device_count), SLOT(device_open), SLOT(device_close),
      SLOT(backend_info)}},
};

const struct ds_accel__check_list ds_accel__checks_fixed = {checks, ARRAY_SIZE(checks)};
