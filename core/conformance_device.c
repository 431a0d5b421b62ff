/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: devices and what is promised of them. */
#include "conformance.h"

#define GROUP "device"

/* ---- flags ---------------------------------------------------------------------------------- */

static const struct {
    uint64_t flag;
    const char *name;
    size_t slots[9];
} promises[] = {
    {DS_ACCEL_FLAG_GRAPHS,
     "DS_ACCEL_FLAG_GRAPHS",
     {SLOT(graph_capture_begin), SLOT(graph_capture_end), SLOT(graph_destroy),
      SLOT(graph_instantiate), SLOT(graph_exec_destroy), SLOT(graph_launch)}},
    {DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY,
     "DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY",
     {SLOT(mem_alloc_async), SLOT(mem_free_async)}},
    {DS_ACCEL_FLAG_VIRTUAL_MEMORY,
     "DS_ACCEL_FLAG_VIRTUAL_MEMORY",
     {SLOT(vmem_granularity), SLOT(vmem_reserve), SLOT(vmem_release), SLOT(vmem_create),
      SLOT(vmem_destroy), SLOT(vmem_map), SLOT(vmem_unmap), SLOT(vmem_set_access)}},
    {DS_ACCEL_FLAG_MEMORY_IPC,
     "DS_ACCEL_FLAG_MEMORY_IPC",
     {SLOT(ipc_memory_export), SLOT(ipc_memory_open), SLOT(ipc_memory_close)}},
    {DS_ACCEL_FLAG_EVENT_IPC,
     "DS_ACCEL_FLAG_EVENT_IPC",
     {SLOT(ipc_event_export), SLOT(ipc_event_open)}},
    {DS_ACCEL_FLAG_DMABUF, "DS_ACCEL_FLAG_DMABUF", {SLOT(dmabuf_export)}},
};

static void check_flags(struct ds_accel__run *run)
{
    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(promises); i++) {
        bool is_promised = (run->info.flags & promises[i].flag) != 0;
        bool is_denied = !is_promised && (run->info.flags_known & promises[i].flag) != 0;

        for (size_t k = 0; promises[i].slots[k] != 0; k++) {
            bool is_there = ds_accel__has_slot(run, promises[i].slots[k]);

            EXPECT(run, is_there || !is_promised, "%s is set, and %s is not there",
                   promises[i].name, ds_accel__slot_name(promises[i].slots[k]));
            EXPECT(run, !is_there || !is_denied, "%s is not set, and %s is there", promises[i].name,
                   ds_accel__slot_name(promises[i].slots[k]));
        }
    }
}

/* What is made can be got rid of. */
static void check_pairs(struct ds_accel__run *run)
{
    static const size_t pairs[][2] = {
        {SLOT(stream_create), SLOT(stream_destroy)},
        {SLOT(event_create), SLOT(event_destroy)},
        {SLOT(mem_alloc), SLOT(mem_free)},
        {SLOT(mem_alloc_pinned), SLOT(mem_free_pinned)},
        {SLOT(mem_register), SLOT(mem_unregister)},
        {SLOT(graph_capture_begin), SLOT(graph_capture_end)},
        {SLOT(range_push), SLOT(range_pop)},
        {SLOT(rng_get_state), SLOT(rng_set_state)},
    };

    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(pairs); i++) {
        EXPECT(run, ds_accel__has_slot(run, pairs[i][0]) == ds_accel__has_slot(run, pairs[i][1]),
               "of %s and %s only one is there", ds_accel__slot_name(pairs[i][0]),
               ds_accel__slot_name(pairs[i][1]));
    }
}

/* ---- devices -------------------------------------------------------------------------------- */

static void check_index(struct ds_accel__run *run)
{
    static const uint32_t past[] = {0, 1, UINT32_MAX};

    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(past); i++) {
        uint32_t index = past[i] == UINT32_MAX ? UINT32_MAX : run->device_count + past[i];
        struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
        ds_accel_plugin_device_t *device = NULL;

        WANT_ERROR(run, device_open, run->instance, index, &device);
        if (run->table.device_identity != NULL) {
            WANT_ERROR(run, device_identity, run->instance, index, &identity);
        }
    }
}

static void check_identity(struct ds_accel__run *run)
{
    for (uint32_t i = 0; i < run->device_count; i++) {
        struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};

        WANT(run, DS_ACCEL_OK, device_identity, run->instance, i, &identity);
        EXPECT(run, identity.device_index == i, "device_identity of %u says index %u", i,
               identity.device_index);
        EXPECT(run,
               (identity.valid & DS_ACCEL_IDENTITY_PARENT_INDEX) == 0 ||
                   identity.parent_index < run->device_count,
               "device %u has the parent %u of %u", i, identity.parent_index, run->device_count);
    }
}

static void check_info(struct ds_accel__run *run)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    uint64_t align;

    WANT(run, DS_ACCEL_OK, device_info, run->device, &info);
    align = info.allocation_align_bytes;
    EXPECT(run, info.device_index == run->device_index, "device_info of %u says index %u",
           run->device_index, info.device_index);
    EXPECT(run, (align & (align - 1)) == 0, "allocation_align_bytes is %llu",
           (unsigned long long)align);
    EXPECT(run, (info.flags & ~run->info.flags) == 0,
           "flags 0x%llx are not a subset of the backend's 0x%llx", (unsigned long long)info.flags,
           (unsigned long long)run->info.flags);
    EXPECT(run, (info.flags & ~info.flags_known) == 0, "flags has bits that flags_known has not");
    EXPECT(run, (run->info.flags & ~run->info.flags_known) == 0,
           "the backend's flags has bits that flags_known has not");
}

static void check_open_again(struct ds_accel__run *run)
{
    ds_accel_plugin_device_t *first = ds_accel__run_open(run, run->instance, run->device_index);
    ds_accel_plugin_device_t *second = ds_accel__run_open(run, run->instance, run->device_index);
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};

    run->table.device_close(first);
    if (run->table.device_info != NULL) {
        WANT(run, DS_ACCEL_OK, device_info, second, &info);
        WANT(run, DS_ACCEL_OK, device_info, run->device, &info);
    }
    run->table.device_close(second);
    if (run->table.device_info != NULL) {
        WANT(run, DS_ACCEL_OK, device_info, run->device, &info);
    }
}

static void check_set_current(struct ds_accel__run *run)
{
    uint32_t index = UINT32_MAX;

    WANT(run, DS_ACCEL_OK, device_set_current, run->device);
    WANT(run, DS_ACCEL_OK, device_get_current, run->instance, &index);
    EXPECT(run, index == run->device_index, "device %u was made current, and it is %u",
           run->device_index, index);
}

static void check_synchronize(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *streams[2] = {ds_accel__stream(run), ds_accel__stream(run)};
    struct ds_accel__slow slow[2];

    ds_accel__slow_start(run, &slow[0], streams[0]);
    ds_accel__slow_start(run, &slow[1], streams[1]);
    WANT(run, DS_ACCEL_OK, device_synchronize, run->device, UINT64_MAX);
    EXPECT(run, atomic_load(&slow[0].is_done) && atomic_load(&slow[1].is_done),
           "device_synchronize returned before the work of a stream was done");
    for (int i = 0; i < 2; i++) {
        WANT(run, DS_ACCEL_OK, stream_query, streams[i]);
        run->table.stream_destroy(streams[i]);
    }
}

#define DEVICE DS_ACCEL__STAGE_DEVICE

static const struct ds_accel__check checks[] = {
    {41,
     GROUP,
     "flags and functions",
     DS_ACCEL__STAGE_INSTANCE,
     0,
     check_flags,
     {SLOT(backend_info)}},
    {41, GROUP, "what is made can be destroyed", DS_ACCEL__STAGE_INSTANCE, 0, check_pairs, {0}},
    {42, GROUP, "indices past the last", DS_ACCEL__STAGE_DEVICE, 0, check_index, {0}},
    {44, GROUP, "who a device is", DEVICE, 0, check_identity, {SLOT(device_identity)}},
    {44,
     GROUP,
     "what a device can do",
     DEVICE,
     0,
     check_info,
     {SLOT(device_info), SLOT(backend_info)}},
    {45, GROUP, "a second and a third handle", DEVICE, 0, check_open_again, {0}},
    {38,
     GROUP,
     "the device that was made current is",
     DEVICE,
     0,
     check_set_current,
     {SLOT(device_get_current), SLOT(device_set_current)}},
    {46,
     GROUP,
     "synchronizing waits for every stream",
     DEVICE,
     0,
     check_synchronize,
     {SLOT(device_synchronize), SLOT(stream_create), SLOT(stream_host_task), SLOT(stream_query)}},
};

const struct ds_accel__check_list ds_accel__checks_device = {checks, DS_ACCEL__ARRAY_SIZE(checks)};
