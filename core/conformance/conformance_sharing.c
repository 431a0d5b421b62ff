/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: access between devices, and memory shared between processes. */
#include "base/text.h"
#include "conformance/conformance.h"

#include <string.h>

#define GROUP "peers"
#define BYTES ((4u << 20) + 3001u) /* larger than what ROCm stages at a time (4 MiB), and odd */
#define PIECE 4096u

static ds_accel_plugin_device_t *open_peer(struct ds_accel__run *run)
{
    if (run->device_count < 2) {
        ds_accel__skip(run, "there is one device");
        return NULL;
    }
    return ds_accel__run_open(run, run->instance, (run->device_index + 1) % run->device_count);
}

static void check_access(struct ds_accel__run *run)
{
    ds_accel_plugin_device_t *peer = open_peer(run);
    uint32_t can = 99;

    if (peer == NULL) {
        return;
    }
    WANT(run, DS_ACCEL_OK, peer_can_access, run->device, peer, &can);
    EXPECT(run, can <= 1, "*can_out is %u, expected 0 or 1", can);
    if (can == 1) {
        WANT(run, DS_ACCEL_OK, peer_enable, run->device, peer);
        WANT(run, DS_ACCEL_OK, peer_enable, run->device, peer);
    }
    WANT(run, DS_ACCEL_OK, peer_disable, run->device, peer);
    WANT(run, DS_ACCEL_OK, peer_disable, run->device, peer);
    run->table.device_close(peer);
}

static void check_copy(struct ds_accel__run *run)
{
    ds_accel_plugin_device_t *peer = open_peer(run);
    unsigned char *bytes = malloc(BYTES);
    unsigned char *back = calloc(1, BYTES);
    char *here;
    void *there = NULL;

    EXPECT(run, bytes != NULL && back != NULL, "host memory is exhausted");
    if (peer == NULL) {
        free(bytes);
        free(back);
        return;
    }
    here = ds_accel__take(run, BYTES);
    WANT(run, DS_ACCEL_OK, mem_alloc, peer, BYTES, 0, 0, &there);
    ds_accel__pattern(bytes, BYTES, 40);
    /* Write small pieces, because this check tests only the copy between the devices. */
    for (size_t i = 0; i < BYTES; i += PIECE) {
        ds_accel__put(run, here + i, bytes + i, BYTES - i < PIECE ? BYTES - i : PIECE);
    }
    WANT(run, DS_ACCEL_OK, mem_copy_peer_async, run->stream, peer, there, run->device, here, BYTES);
    ds_accel__wait(run, run->stream);
    for (size_t i = 0; i < BYTES; i += PIECE) {
        WANT(run, DS_ACCEL_OK, mem_copy, peer, back + i, (char *)there + i,
             BYTES - i < PIECE ? BYTES - i : PIECE, DS_ACCEL_COPY_DEVICE_TO_HOST);
    }
    EXPECT(run, memcmp(bytes, back, BYTES) == 0, "wrong data arrived at the other device");
    WANT(run, DS_ACCEL_OK, mem_free, peer, there);
    ds_accel__give(run, here);
    run->table.device_close(peer);
    free(bytes);
    free(back);
}

/* ---- processes ------------------------------------------------------------------------------ */

#define SHARED_BYTES (UINT64_C(2) << 20) /* some runtimes share only whole pages of this size */

static void check_shared(struct ds_accel__run *run)
{
    unsigned char handle[DS_ACCEL__PEER_HANDLE] = {0};
    unsigned char bytes[DS_ACCEL__PEER_BYTES];
    struct ds_accel__peer peer = {.handle = handle};
    uint32_t size = run->info.memory_handle_bytes;
    void *pointer;
    char *inside;

    EXPECT(run, size > 0 && size <= sizeof(handle), "memory_handle_bytes is %u", size);
    pointer = ds_accel__take(run, SHARED_BYTES);
    /* the peer opens memory that begins at this address */
    inside = (char *)pointer + SHARED_BYTES / 2;
    ds_accel__pattern(bytes, sizeof(bytes), DS_ACCEL__PEER_SEED);
    ds_accel__put(run, inside, bytes, sizeof(bytes));
    WANT(run, DS_ACCEL_OK, ipc_memory_export, run->device, inside, handle, size);
    EXPECT(run, ds_accel__run_peer(run, &peer), "in the other process: %s", peer.problem);
    ds_accel__want_pattern(run, inside, sizeof(bytes), DS_ACCEL__PEER_SEED + 1,
                           "what the other process wrote");
    if (run->table.ipc_memory_unexport != NULL) {
        WANT(run, DS_ACCEL_OK, ipc_memory_unexport, run->device, handle, size);
    }
    ds_accel__give(run, pointer);
}

/* Check that the export fails if the buffer is too small for the handle, and that it writes no
 * truncated handle. */
static void check_short_handle(struct ds_accel__run *run)
{
    unsigned char handle[DS_ACCEL__PEER_HANDLE];
    uint32_t size = run->info.memory_handle_bytes;
    void *pointer;

    EXPECT(run, size > 0 && size < sizeof(handle), "memory_handle_bytes is %u", size);
    pointer = ds_accel__take(run, SHARED_BYTES);
    memset(handle, 0x5a, sizeof(handle));
    WANT_ERROR(run, ipc_memory_export, run->device, pointer, handle, size - 1);
    EXPECT(run, handle[0] == 0x5a && memcmp(handle, handle + 1, sizeof(handle) - 1) == 0,
           "ipc_memory_export: a handle that does not fit was written");
    WANT(run, DS_ACCEL_OK, ipc_memory_export, run->device, pointer, handle, size);
    EXPECT(run, handle[size] == 0x5a, "ipc_memory_export: a byte after the handle was written");
    if (run->table.ipc_memory_unexport != NULL) {
        WANT(run, DS_ACCEL_OK, ipc_memory_unexport, run->device, handle, size);
    }
    ds_accel__give(run, pointer);
}

/* Create an event that processes can share. If the device does not support such events, skip the
 * check and return NULL; DSA-P18 and DSA-P110 cover the flag. */
static ds_accel_plugin_event_t *make_shared_event(struct ds_accel__run *run)
{
    const uint32_t size = run->info.event_handle_bytes;
    ds_accel_plugin_event_t *event = NULL;

    if (size == 0 || size >= DS_ACCEL__PEER_HANDLE) {
        ds_accel__skip(run, "event_handle_bytes is %u", size);
        return NULL;
    }
    if (CALL(run, event_create, run->device, DS_ACCEL_EVENT_INTERPROCESS, &event) != DS_ACCEL_OK) {
        ds_accel__skip(run, "%.200s", run->error.message);
        return NULL;
    }
    return event;
}

static void check_short_event(struct ds_accel__run *run)
{
    unsigned char handle[DS_ACCEL__PEER_HANDLE];
    const uint32_t size = run->info.event_handle_bytes;
    ds_accel_plugin_event_t *event = make_shared_event(run);

    if (event == NULL) {
        return;
    }
    memset(handle, 0x5a, sizeof(handle));
    WANT_ERROR(run, ipc_event_export, event, handle, size - 1);
    EXPECT(run, handle[0] == 0x5a && memcmp(handle, handle + 1, sizeof(handle) - 1) == 0,
           "ipc_event_export: a handle that does not fit was written");
    WANT(run, DS_ACCEL_OK, ipc_event_export, event, handle, size);
    EXPECT(run, handle[size] == 0x5a, "ipc_event_export: a byte after the handle was written");
    run->table.event_destroy(event);
}

/* Check that an event that has completed in this process is complete in the peer, too, and that
 * this process can still use the event after the peer destroyed its handle. */
static void check_shared_event(struct ds_accel__run *run)
{
    unsigned char handle[DS_ACCEL__PEER_HANDLE] = {0};
    struct ds_accel__peer peer = {.event_handle = handle};
    const uint32_t size = run->info.event_handle_bytes;
    ds_accel_plugin_event_t *event = make_shared_event(run);

    if (event == NULL) {
        return;
    }
    WANT(run, DS_ACCEL_OK, event_record, event, run->stream);
    ds_accel__wait(run, run->stream);
    WANT(run, DS_ACCEL_OK, ipc_event_export, event, handle, size);
    EXPECT(run, ds_accel__run_peer(run, &peer), "in the other process: %s", peer.problem);
    WANT(run, DS_ACCEL_OK, event_query, event);
    WANT(run, DS_ACCEL_OK, event_record, event, run->stream);
    WANT(run, DS_ACCEL_OK, event_synchronize, event, UINT64_MAX);
    run->table.event_destroy(event);
}

static const struct ds_accel__check checks[] = {
    {104,
     "ipc",
     "a handle of memory that does not fit",
     DS_ACCEL__STAGE_DEVICE,
     0,
     check_short_handle,
     {SLOT(ipc_memory_export), SLOT(mem_alloc), SLOT(backend_info)}},
    {123,
     "ipc",
     "a handle of an event that does not fit",
     DS_ACCEL__STAGE_DEVICE,
     0,
     check_short_event,
     {SLOT(ipc_event_export), SLOT(event_create), SLOT(backend_info)}},
    {123,
     "ipc",
     "another process waits for an event",
     DS_ACCEL__STAGE_DEVICE,
     0,
     check_shared_event,
     {SLOT(ipc_event_export), SLOT(ipc_event_open), SLOT(event_create), SLOT(event_record),
      SLOT(event_query), SLOT(event_synchronize), SLOT(stream_create)}},
    {92,
     GROUP,
     "access is enabled and disabled twice",
     DS_ACCEL__STAGE_DEVICE,
     0,
     check_access,
     {SLOT(peer_can_access), SLOT(peer_enable), SLOT(peer_disable)}},
    {93,
     GROUP,
     "a copy to another device",
     DS_ACCEL__STAGE_DEVICE,
     0,
     check_copy,
     {SLOT(mem_copy_peer_async), SLOT(mem_alloc), SLOT(mem_copy), SLOT(stream_create)}},
    {104,
     "ipc",
     "another process writes to exported memory",
     DS_ACCEL__STAGE_DEVICE,
     0,
     check_shared,
     {SLOT(ipc_memory_export), SLOT(ipc_memory_open), SLOT(ipc_memory_close), SLOT(mem_alloc),
      SLOT(mem_copy), SLOT(backend_info)}},
};

const struct ds_accel__check_list ds_accel__checks_sharing = {checks, ARRAY_SIZE(checks)};
