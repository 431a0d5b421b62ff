/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A walk through a plugin: calls each slot once or twice, as a program does, and ignores failures.
 *
 * The walk is for runs in which calls of the vendor's library fail (SIM_FAIL, SIM_LOSE, rounds.c).
 * A slot may then fail, if it reports the failure (call.c) and leaves its outputs unchanged; each
 * step continues with the existing objects. All objects are destroyed again, so that objects left
 * in the vendor's library at the end were leaked by the plugin. An accepted host task runs once, a
 * rejected task never. If no call of a step failed, its data must be correct.
 */
#include "drive.h"

#define SIZE ((uint64_t)1 << 16)

/* ---- names and values ----------------------------------------------------------------------- */

/* Reads the variable that selects devices, and its value for device 0; a vendor may have none. */
static void walk_names(struct run *run)
{
    char name[64] = "";
    char value[256];
    uint32_t number = 0;
    const uint32_t index = 0;
    int32_t status = HAS(run, env_name_get)
                         ? ASK(run, env_name_get, run->instance, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES,
                               0, name, (uint32_t)sizeof(name))
                         : DS_ACCEL_ERR_NOT_FOUND;

    if (status == DS_ACCEL_ERR_NOT_FOUND) {
        return;
    }
    if (drive_judge(run, "env_name_get", status) == DS_ACCEL_OK) {
        CALL(run, visible_devices_value, run->instance, name, &index, 1, value,
             (uint32_t)sizeof(value), &number);
    }
}

static void walk_facts(struct run *run)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    struct ds_accel_process processes[4] = {0};
    struct ds_accel_link links[8] = {0};
    uint32_t number = 0;

    CALL(run, backend_info, run->instance, &info);
    for (uint32_t i = 0; i < run->device_count; i++) {
        struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
        struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};

        CALL(run, device_identity, run->instance, i, &identity);
        CALL(run, telemetry_get, run->instance, i, &telemetry);
        CALL(run, telemetry_processes, run->instance, i, processes, (uint32_t)sizeof(processes[0]),
             4, &number);
        CALL(run, links_get, run->instance, i, links, (uint32_t)sizeof(links[0]), 8, &number);
    }
    walk_names(run);
    CALL(run, range_push, run->instance, "walk", NULL, NULL);
    CALL(run, range_pop, run->instance, NULL);
    CALL(run, range_push, run->instance, "walk", "domain", "category");
    CALL(run, range_pop, run->instance, "domain");
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Copies there and back, if both copies are available. */
static void copy_about(struct run *run, void *memory, unsigned char *host, unsigned char *back)
{
    unsigned refused = run->refused;

    drive_pattern(host, SIZE, 1);
    CALL(run, mem_copy, run->device, memory, host, SIZE, DS_ACCEL_COPY_HOST_TO_DEVICE);
    CALL(run, mem_copy, run->device, back, memory, SIZE, DS_ACCEL_COPY_DEVICE_TO_HOST);
    drive_want(run, refused != run->refused || drive_is_pattern(back, SIZE, 1),
               "a copy there and back");
}

/* Uses host memory that the device can access: pinned, and registered. */
static void walk_host(struct run *run, void *memory, unsigned char *own, unsigned char *back)
{
    ds_accel_plugin_device_t *device = run->device;
    void *address = NULL;
    void *pinned;

    MAKE(run, mem_alloc_pinned, pinned, device, SIZE, 0, DS_ACCEL_PINNED_MAPPED);
    if (pinned != NULL) {
        CALL(run, mem_device_pointer, device, pinned, &address);
        CALL(run, mem_free_pinned, device, pinned);
    }
    MAKE(run, mem_alloc_pinned, pinned, device, SIZE, 0, 0);
    if (pinned != NULL) {
        copy_about(run, memory, pinned, back);
        CALL(run, mem_free_pinned, device, pinned);
    }
    if (CALL(run, mem_register, device, own, SIZE, 0) == DS_ACCEL_OK) {
        copy_about(run, memory, own, back);
        CALL(run, mem_unregister, device, own);
    }
}

static void walk_memory(struct run *run)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    struct ds_accel_pointer_info pointer_info = {.struct_size = sizeof(pointer_info)};
    static unsigned char own[SIZE] __attribute__((aligned(4096)));
    static unsigned char back[SIZE];
    void *memory;
    void *managed;

    CALL(run, mem_info, run->device, &info);
    MAKE(run, mem_alloc, memory, run->device, SIZE, (uint64_t)1 << 20, 0);
    if (memory != NULL) {
        copy_about(run, memory, own, back);
        CALL(run, mem_pointer_info, run->instance, run->device, memory, &pointer_info);
        walk_host(run, memory, own, back);
        CALL(run, mem_free, run->device, memory);
    }
    MAKE(run, mem_alloc_managed, managed, run->device, SIZE, 0);
    if (managed != NULL) {
        CALL(run, mem_free, run->device, managed);
    }
    CALL(run, mem_trim, run->device, 0);
}

static void walk_vmem(struct run *run)
{
    ds_accel_plugin_device_t *device = run->device;
    uint64_t size = 0;
    uint64_t recommended = 0;
    ds_accel_plugin_vmem_t *vmem;
    void *address = NULL;

    if (CALL(run, vmem_granularity, device, 0, &size, &recommended) != DS_ACCEL_OK) {
        return;
    }
    MAKE(run, vmem_create, vmem, device, 2 * size, 0);
    MAKE(run, vmem_reserve, address, device, 2 * size, 0, NULL, 0);
    if (vmem != NULL && address != NULL &&
        CALL(run, vmem_map, device, address, 2 * size, vmem, 0) == DS_ACCEL_OK) {
        CALL(run, vmem_set_access, device, address, 2 * size, DS_ACCEL_VMEM_ACCESS_READ_WRITE);
        RELEASE(run, vmem_unmap, device, address, 2 * size);
    }
    if (address != NULL) {
        CALL(run, vmem_release, device, address, 2 * size);
    }
    DROP(run, vmem_destroy, vmem);
}

static void walk_share(struct run *run)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    ds_accel_plugin_event_t *event;
    unsigned char handle[1024];
    void *pointer;

    if (!HAS(run, ipc_memory_export) ||
        CALL(run, backend_info, run->instance, &info) != DS_ACCEL_OK) {
        return;
    }
    MAKE(run, mem_alloc, pointer, run->device, SIZE, 0, 0);
    if (pointer != NULL) {
        if (CALL(run, ipc_memory_export, run->device, pointer, handle, info.memory_handle_bytes) ==
            DS_ACCEL_OK) {
            CALL(run, ipc_memory_unexport, run->device, handle, info.memory_handle_bytes);
        }
        CALL(run, mem_free, run->device, pointer);
    }
    MAKE(run, event_create, event, run->device, DS_ACCEL_EVENT_INTERPROCESS);
    if (event != NULL) {
        CALL(run, ipc_event_export, event, handle, info.event_handle_bytes);
        DROP(run, event_destroy, event);
    }
}

/* ---- the walk ------------------------------------------------------------------------------- */

static void walk_device(struct run *run)
{
    uint32_t support = 0;
    uint32_t current = 0;

    if (CALL(run, device_open, run->instance, 0, &run->device) != DS_ACCEL_OK) {
        return;
    }
    CALL(run, device_get_current, run->instance, &current);
    CALL(run, device_set_current, run->device);
    CALL(run, device_health, run->device);
    CALL(run, dtype_support, run->device, DS_ACCEL_DTYPE_BFLOAT16, &support);
    walk_memory(run);
    walk_vmem(run);
    walk_share(run);
    drive_walk_streams(run);
    CALL(run, profiler_start, run->instance);
    CALL(run, profiler_stop, run->instance);
    run->table->device_close(run->device);
}

static void walk_probe(struct run *run)
{
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};

    if (CALL(run, probe, drive_host(run->table->name), &verdict) == DS_ACCEL_OK &&
        verdict.state != DS_ACCEL_PROBE_AVAILABLE) {
        printf("probe: state %u, reason %u, code %lld: %s\n", verdict.state, verdict.reason,
               (long long)verdict.vendor_code, verdict.detail);
        drive_want(run, verdict.reason != DS_ACCEL_REASON_NONE && verdict.detail[0] != '\0',
                   "a refusal has a reason and evidence");
    }
}

void drive_walk(struct run *run)
{
    run->is_tolerant = 1;
    walk_probe(run);
    if (CALL(run, init, drive_host(run->table->name), &run->instance) != DS_ACCEL_OK) {
        return;
    }
    CALL(run, device_count, run->instance, &run->device_count);
    walk_facts(run);
    walk_device(run);
    run->table->shutdown(run->instance);
    drive_want(run, drive_tasks_have_run(), "a host task that is accepted runs once, and no other");
}
