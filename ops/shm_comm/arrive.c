/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The beginning of a call of shm_comm: each rank shows the others what it calls. */
#include "shm.h"

static struct ops__shm_line *line_of(const struct ds_accel_comm *comm, uint32_t rank)
{
    return &comm->ranks[rank]->lines[comm->call & 1];
}

int32_t ops__shm_begin(struct ds_accel_comm *comm, uint64_t signature, uint64_t timeout_ns)
{
    if (atomic_load_explicit(&ops__shm_header(comm)->failure, memory_order_acquire) != 0)
        return OPS__SHM_FAILED;
    comm->call++;
    comm->signature = signature;
    comm->timeout_ns = timeout_ns ? timeout_ns : comm->usual_timeout_ns;
    comm->deadline_ns = 0;
    line_of(comm, comm->rank)->signature = signature;
    return 0;
}

void *ops__shm_own_message(struct ds_accel_comm *comm)
{
    return line_of(comm, comm->rank)->message;
}

void ops__shm_announce(struct ds_accel_comm *comm)
{
    ops__shm_publish(comm, &line_of(comm, comm->rank)->call, comm->call);
}

int32_t ops__shm_await_all(struct ds_accel_comm *comm)
{
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        struct ops__shm_line *line = line_of(comm, rank);
        int32_t status = ops__shm_wait(comm, rank, &line->call, comm->call);

        if (status)
            return status;
        if (line->signature != comm->signature) {
            ops__shm_fail(comm, OPS__SHM_MISMATCH, rank, line->signature);
            return OPS__SHM_FAILED;
        }
    }
    return 0;
}

const void *ops__shm_message(const struct ds_accel_comm *comm, uint32_t rank)
{
    return line_of(comm, rank)->message;
}
