/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Memory that is exhausted, shared, or allocated during a capture; mapped addresses. */
#include "drive.h"

#include <stdlib.h>
#include <string.h>

/* Allocates parts of 64 MiB until memory is exhausted; the freed memory must be available again. */
void drive_memory(struct run *run)
{
    void *parts[64] = {NULL};
    uint32_t count = 0;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0) {
        return;
    }
    while (count < 64 &&
           CALL(run, mem_alloc, run->device, 64u << 20, 0, 0, &parts[count]) == DS_ACCEL_OK) {
        count++;
    }
    printf("parts %u\n", count);
    if (count > 0) {
        RELEASE(run, mem_free, run->device, parts[--count]);
        if (CALL(run, mem_alloc, run->device, BYTES, 0, 0, &parts[count]) == DS_ACCEL_OK) {
            printf("and one that fits\n");
            count++;
        }
    }
    while (count > 0) {
        RELEASE(run, mem_free, run->device, parts[--count]);
    }
}

/* Prints how much memory is in use, by the device's total and free memory. */
static void print_used(struct run *run, const char *when)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};

    if (CALL(run, mem_info, run->device, &info) == DS_ACCEL_OK) {
        printf("%s: %llu bytes are used\n", when,
               (unsigned long long)(info.total_bytes - info.available_bytes));
    }
}

/* Device and managed memory come and go, and both count as used. */
void drive_used(struct run *run)
{
    void *memory = NULL;
    void *managed = NULL;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0) {
        return;
    }
    CALL(run, mem_alloc, run->device, 3001, 0, 0, &memory);
    print_used(run, "device memory");
    CALL(run, mem_alloc_managed, run->device, BYTES, 0, &managed);
    print_used(run, "with managed memory");
    RELEASE(run, mem_free, run->device, managed);
    print_used(run, "without managed memory");
    RELEASE(run, mem_free, run->device, memory);
    print_used(run, "nothing");
}

/* Copies to the device twice; the first copy may fail. */
void drive_copied(struct run *run)
{
    unsigned char bytes[64] = {1};
    void *memory = NULL;

    if (CALL(run, device_open, run->instance, 0, &run->device) == DS_ACCEL_OK &&
        CALL(run, mem_alloc, run->device, sizeof(bytes), 0, 0, &memory) == DS_ACCEL_OK) {
        for (int i = 0; i < 2; i++) {
            CALL(run, mem_copy, run->device, memory, bytes, sizeof(bytes),
                 DS_ACCEL_COPY_HOST_TO_DEVICE);
        }
    }
    RELEASE(run, mem_free, run->device, memory);
}

/*
 * Only whole pages can be shared: memory of an odd size is exported, or rejected before the runtime
 * is called; memory of the caller is registered, or rejected.
 */
void drive_pages(struct run *run)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    unsigned char handle[256];
    void *memory = NULL;
    void *page = NULL;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, backend_info, run->instance, &info) < 0) {
        return;
    }
    if (CALL(run, mem_alloc, run->device, 1000, 0, 0, &memory) == DS_ACCEL_OK &&
        CALL(run, ipc_memory_export, run->device, memory, handle, info.memory_handle_bytes) ==
            DS_ACCEL_OK) {
        printf("1000 bytes are exported\n");
        CALL(run, ipc_memory_unexport, run->device, handle, info.memory_handle_bytes);
    }
    RELEASE(run, mem_free, run->device, memory);
    if (posix_memalign(&page, 4096, 8192) == 0 &&
        CALL(run, mem_register, run->device, page, 8192, 0) == DS_ACCEL_OK) {
        printf("two pages are registered\n");
        RELEASE(run, mem_unregister, run->device, page);
    }
    free(page);
}

/* Records an event for other processes in a capture. */
void drive_captured(struct run *run)
{
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_event_t *event = NULL;
    ds_accel_plugin_graph_t *graph = NULL;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, stream_create, run->device, 0, 0, &stream) < 0) {
        return;
    }
    if (CALL(run, event_create, run->device, DS_ACCEL_EVENT_INTERPROCESS, &event) == DS_ACCEL_OK &&
        CALL(run, event_record, event, stream) == DS_ACCEL_OK &&
        CALL(run, graph_capture_begin, stream, DS_ACCEL_CAPTURE_RELAXED) == DS_ACCEL_OK) {
        CALL(run, event_record, event, stream);
        CALL(run, stream_wait_event, stream, event);
        CALL(run, graph_capture_end, stream, &graph);
    }
    DROP(run, graph_destroy, graph);
    DROP(run, event_destroy, event);
    run->table->stream_destroy(stream);
}

/*
 * A thread without its own device, whose runtime reports device 0 as current, still has no device
 * of its own after calls.
 */
void drive_current(struct run *run)
{
    ds_accel_plugin_device_t *other = NULL;
    uint32_t index = 0;
    void *memory = NULL;

    if (CALL(run, device_open, run->instance, 1, &other) < 0) {
        return;
    }
    if (CALL(run, device_open, run->instance, 0, &run->device) == DS_ACCEL_OK) {
        CALL(run, device_get_current, run->instance, &index);
        drive_want(run, index == 0, "a device is current after opening");
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &memory);
        CALL(run, device_get_current, run->instance, &index);
        drive_want(run, index == 0, "a device is current after a call");
        RELEASE(run, mem_free, run->device, memory);
        memory = NULL;
        CALL(run, mem_alloc, other, BYTES, 0, 0, &memory);
        RELEASE(run, mem_free, other, memory);
        CALL(run, device_get_current, run->instance, &index);
        drive_want(run, index == 0, "a device is current after calls for two");
        CALL(run, device_set_current, other);
        CALL(run, device_get_current, run->instance, &index);
        drive_want(run, index == 1, "the device that was set is not current");
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &memory);
        RELEASE(run, mem_free, run->device, memory);
        CALL(run, device_get_current, run->instance, &index);
        drive_want(run, index == 1, "the device that was set is not current after a call");
    }
    run->table->device_close(other);
}

void drive_share(struct run *run)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    ds_accel_plugin_event_t *event = NULL;
    unsigned char handle[256];
    void *memory = NULL;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, backend_info, run->instance, &info) < 0 ||
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &memory) < 0) {
        return;
    }
    if (CALL(run, ipc_memory_export, run->device, (char *)memory + 4096, handle,
             info.memory_handle_bytes) == DS_ACCEL_OK) {
        printf("memory: %u bytes\n", info.memory_handle_bytes);
        CALL(run, ipc_memory_unexport, run->device, handle, info.memory_handle_bytes);
    }
    if (CALL(run, event_create, run->device, DS_ACCEL_EVENT_INTERPROCESS, &event) == DS_ACCEL_OK &&
        CALL(run, ipc_event_export, event, handle, info.event_handle_bytes) == DS_ACCEL_OK) {
        printf("event: %u bytes\n", info.event_handle_bytes);
    }
    DROP(run, event_destroy, event);
    RELEASE(run, mem_free, run->device, memory);
}

/* Opens an event's handle while the event itself still exists. */
void drive_opened(struct run *run)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    ds_accel_plugin_event_t *event = NULL;
    ds_accel_plugin_event_t *opened = NULL;
    unsigned char handle[256];

    if (CALL(run, device_open, run->instance, 0, &run->device) == DS_ACCEL_OK &&
        CALL(run, backend_info, run->instance, &info) == DS_ACCEL_OK &&
        CALL(run, event_create, run->device, DS_ACCEL_EVENT_INTERPROCESS, &event) == DS_ACCEL_OK &&
        CALL(run, ipc_event_export, event, handle, info.event_handle_bytes) == DS_ACCEL_OK &&
        CALL(run, ipc_event_open, run->device, handle, info.event_handle_bytes, &opened) ==
            DS_ACCEL_OK) {
        printf("event: opened\n");
    }
    DROP(run, event_destroy, opened);
    DROP(run, event_destroy, event);
}

/* Allocates host memory during a capture that forbids calls that could wait. */
void drive_capturing(struct run *run)
{
    static unsigned char page[8192];
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_graph_t *graph = NULL;
    void *pinned = NULL;
    void *managed = NULL;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, stream_create, run->device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &stream) < 0) {
        return;
    }
    if (CALL(run, graph_capture_begin, stream, DS_ACCEL_CAPTURE_GLOBAL) == DS_ACCEL_OK) {
        CALL(run, mem_alloc_pinned, run->device, BYTES, 0, 0, &pinned);
        CALL(run, mem_alloc_managed, run->device, BYTES, 0, &managed);
        CALL(run, mem_register, run->device, page, sizeof(page), 0);
        if (CALL(run, graph_capture_end, stream, &graph) == DS_ACCEL_OK) {
            printf("captured\n");
        }
        RELEASE(run, mem_unregister, run->device, page);
        RELEASE(run, mem_free, run->device, managed);
        RELEASE(run, mem_free_pinned, run->device, pinned);
        DROP(run, graph_destroy, graph);
    }
    run->table->stream_destroy(stream);
}

/* ---- mapped addresses ----------------------------------------------------------------------- */

/*
 * Maps [first half, second half] of the memory at the second and the first half of the addresses.
 */
static int32_t use_mapped(struct run *run, char *address, ds_accel_plugin_vmem_t *vmem,
                          uint64_t half, unsigned char *bytes)
{
    if (CALL(run, vmem_map, run->device, address, half, vmem, half) < 0) {
        return -1;
    }
    if (CALL(run, vmem_map, run->device, address + half, half, vmem, 0) == DS_ACCEL_OK) {
        if (CALL(run, vmem_set_access, run->device, address, 2 * half,
                 DS_ACCEL_VMEM_ACCESS_READ_WRITE) == DS_ACCEL_OK &&
            CALL(run, mem_copy, run->device, address + half, bytes, half,
                 DS_ACCEL_COPY_HOST_TO_DEVICE) == DS_ACCEL_OK &&
            CALL(run, mem_copy, run->device, bytes + half, address + half, half,
                 DS_ACCEL_COPY_DEVICE_TO_HOST) == DS_ACCEL_OK) {
            drive_want(run, memcmp(bytes, bytes + half, (size_t)half) == 0, "what was copied");
        }
        RELEASE(run, vmem_unmap, run->device, address + half, half);
    }
    RELEASE(run, vmem_unmap, run->device, address, half);
    return 0;
}

void drive_vmem(struct run *run)
{
    ds_accel_plugin_vmem_t *vmem = NULL;
    void *address = NULL;
    uint64_t minimum = 0;
    uint64_t half = 0;
    unsigned char *bytes;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, vmem_granularity, run->device, 0, &minimum, &half) < 0 ||
        CALL(run, vmem_reserve, run->device, 4 * minimum, 0, NULL, 0, &address) < 0) {
        return;
    }
    half = 2 * minimum;
    bytes = malloc(2 * (size_t)half);
    if (bytes != NULL && CALL(run, vmem_create, run->device, 2 * half, 0, &vmem) == DS_ACCEL_OK) {
        drive_pattern(bytes, (size_t)half, 1);
        memset(bytes + half, 0, (size_t)half);
        use_mapped(run, address, vmem, half, bytes);
    }
    DROP(run, vmem_destroy, vmem);
    RELEASE(run, vmem_release, run->device, address, 4 * minimum);
    free(bytes);
}

#define FAR_APART (UINT64_C(64) << 30)

void drive_aligned(struct run *run)
{
    void *address = NULL;
    uint64_t minimum = 0;
    uint64_t recommended = 0;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, vmem_granularity, run->device, 0, &minimum, &recommended) < 0 ||
        CALL(run, vmem_reserve, run->device, minimum, FAR_APART, NULL, 0, &address) < 0) {
        return;
    }
    drive_want(run, (uintptr_t)address % FAR_APART == 0, "the alignment of addresses");
    RELEASE(run, vmem_release, run->device, address, minimum);
}

/* Releases a wrong range: the release must fail, and report the error. */
static void release_wrong(struct run *run, char *address, uint64_t size_bytes)
{
    drive_want(run,
               ASK(run, vmem_release, run->device, address, size_bytes) == DS_ACCEL_ERR_INVALID &&
                   run->error.message[0] != '\0',
               "a range to release that is none");
}

void drive_released(struct run *run)
{
    void *address = NULL;
    uint64_t minimum = 0;
    uint64_t recommended = 0;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, vmem_granularity, run->device, 0, &minimum, &recommended) < 0 ||
        CALL(run, vmem_reserve, run->device, 2 * minimum, 0, NULL, 0, &address) < 0) {
        return;
    }
    printf("granularity %llu\n", (unsigned long long)minimum);
    release_wrong(run, (char *)address + minimum, minimum);
    release_wrong(run, address, minimum);
    CALL(run, vmem_release, run->device, address, 2 * minimum);
    release_wrong(run, address, 2 * minimum);
}
