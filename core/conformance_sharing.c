/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: devices that see each other, and memory that processes share. */
#include "conformance.h"

#define GROUP "peers"
#define BYTES ((2u << 20) + 3001u) /* more than a runtime stages at once */
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
    for (size_t i = 0; i < BYTES; i += PIECE) { /* only the copy between them is at stake */
        ds_accel__put(run, here + i, bytes + i, BYTES - i < PIECE ? BYTES - i : PIECE);
    }
    WANT(run, DS_ACCEL_OK, mem_copy_peer_async, run->stream, peer, there, run->device, here, BYTES);
    ds_accel__wait(run, run->stream);
    for (size_t i = 0; i < BYTES; i += PIECE) {
        WANT(run, DS_ACCEL_OK, mem_copy, peer, back + i, (char *)there + i,
             BYTES - i < PIECE ? BYTES - i : PIECE, DS_ACCEL_COPY_DEVICE_TO_HOST);
    }
    EXPECT(run, memcmp(bytes, back, BYTES) == 0, "something else arrived at the other device");
    WANT(run, DS_ACCEL_OK, mem_free, peer, there);
    ds_accel__give(run, here);
    run->table.device_close(peer);
    free(bytes);
    free(back);
}

/* ---- processes ------------------------------------------------------------------------------ */

#define SHARED_BYTES (UINT64_C(2) << 20) /* some runtimes share whole pages of this size */

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
    inside = (char *)pointer + SHARED_BYTES / 2; /* what is opened is this place, too */
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

static const struct ds_accel__check checks[] = {
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

const struct ds_accel__check_list ds_accel__checks_sharing = {checks, DS_ACCEL__ARRAY_SIZE(checks)};
