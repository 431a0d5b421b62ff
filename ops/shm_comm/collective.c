/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Calls of shm_comm with small messages: each rank shows its whole message when it arrives, and
 * computes its result from those of all ranks. Nothing else is exchanged.
 */
#include "reduce.h"
#include "shm.h"

#include <string.h>

void ops__shm_copy(char *to, const char *from, size_t bytes)
{
    if (bytes != 0 && to != from)
        memcpy(to, from, bytes);
}

static char *small_buffer(const struct ds_accel_comm *comm, uint32_t rank)
{
    return ops__shm_small(comm, rank) + OPS__SHM_SMALL * (comm->call & 1);
}

static const char *message_of(const struct ds_accel_comm *comm, const struct ops__shm_call *call,
                              uint32_t rank, size_t bytes)
{
    if (rank == comm->rank)
        return call->in;
    return bytes <= OPS__SHM_INLINE ? (const char *)ops__shm_message(comm, rank)
                                    : small_buffer(comm, rank);
}

static void reduce_small(const struct ds_accel_comm *comm, const struct ops__shm_call *call,
                         size_t bytes)
{
    const char *in[DS_ACCEL_SHM_COMM_MAX_RANKS];
    char *out[] = {call->out};
    size_t offset = 0;
    struct ops__reduction reduction = {
        .dtype = call->dtype,
        .op = call->reduction,
        .in = in,
        .out = out,
        .in_count = comm->size,
        .out_count = 1,
        .count = call->count,
    };

    if (call->kind == OPS__SHM_REDUCE_SCATTER)
        offset = call->out_bytes * comm->rank;
    for (uint32_t rank = 0; rank < comm->size; rank++)
        in[rank] = message_of(comm, call, rank, bytes) + offset;
    ops__reduce(&reduction);
}

static void gather_small(const struct ds_accel_comm *comm, const struct ops__shm_call *call)
{
    for (uint32_t rank = 0; rank < comm->size; rank++)
        ops__shm_copy(call->out + call->in_bytes * rank,
                      message_of(comm, call, rank, call->in_bytes), call->in_bytes);
}

static int32_t run_small(struct ds_accel_comm *comm, const struct ops__shm_call *call, size_t bytes)
{
    bool sends = call->kind != OPS__SHM_BROADCAST || call->root == comm->rank;
    int32_t status;

    if (sends && bytes <= OPS__SHM_INLINE)
        ops__shm_copy((char *)ops__shm_own_message(comm), call->in, bytes);
    else if (sends)
        ops__shm_copy(small_buffer(comm, comm->rank), call->in, bytes);
    ops__shm_announce(comm);
    status = ops__shm_await_all(comm);
    if (status || call->count == 0)
        return status;
    switch (call->kind) {
    case OPS__SHM_ALL_REDUCE:
    case OPS__SHM_REDUCE_SCATTER:
        reduce_small(comm, call, bytes);
        break;
    case OPS__SHM_ALL_GATHER:
        gather_small(comm, call);
        break;
    default:
        if (!sends)
            ops__shm_copy(call->out, message_of(comm, call, call->root, bytes), bytes);
    }
    return 0;
}

int32_t ops__shm_run(struct ds_accel_comm *comm, const struct ops__shm_call *call)
{
    size_t bytes = call->kind == OPS__SHM_BROADCAST ? call->count * call->element : call->in_bytes;

    if (bytes <= OPS__SHM_SMALL)
        return run_small(comm, call, bytes);
    if (comm->size == 1) {
        ops__shm_announce(comm);
        ops__shm_copy(call->out, call->in, call->out_bytes);
        return 0;
    }
    return ops__shm_run_large(comm, call);
}
