/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Ranks of shm_comm that are killed or stopped at random moments of random calls. */
#ifndef TESTS_OPS_SHM_COMM_SOAK_H
#define TESTS_OPS_SHM_COMM_SOAK_H

#include "ops/shm_comm_failures.h"

static uint64_t soak_state;

static uint64_t draw(uint64_t below)
{
    soak_state = soak_state * 6364136223846793005u + 1442695040888963407u;
    return (soak_state >> 33) % below;
}

/* Random collectives, the same in all ranks, until one fails. */
static void random_calls(uint32_t rank, uint32_t size)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_comm_t *comm = create(rank, size, PATIENCE, 0);
    char *in = (char *)calloc(size, 800000);
    char *out = (char *)calloc(size, 800000);
    int32_t status = DS_ACCEL_OK;

    while (status == DS_ACCEL_OK) {
        struct ds_accel_comm_call call = make_call(DS_ACCEL_DTYPE_BFLOAT16, DS_ACCEL_COMM_SUM, in,
                                                   out, draw(2) ? draw(20) : draw(400000));

        call.root = (uint32_t)draw(size);
        call.timeout_ns = shared->go ? SHORT : 0;
        switch (draw(5)) {
        case 0:
            status = shm->all_reduce(comm, &call, &error);
            break;
        case 1:
            status = shm->reduce_scatter(comm, &call, &error);
            break;
        case 2:
            status = shm->all_gather(comm, &call, &error);
            break;
        case 3:
            status = shm->broadcast(comm, &call, &error);
            break;
        default:
            status = shm->barrier(comm, &call, &error);
        }
    }
    keep_result(rank, status, &error);
    free(in);
    free(out);
    shm->destroy(comm);
}

static void kill_one(uint32_t size, uint32_t victim, const pid_t *children)
{
    char text[64];

    kill(children[victim], SIGKILL);
    snprintf(text, sizeof(text), "rank %u (process %d) has ended", victim, (int)children[victim]);
    for (uint32_t rank = 0; rank < size; rank++) {
        int status = reap(children[rank]);

        if (rank == victim)
            continue;
        CHECK(status == 0, "rank %u: status 0x%x", rank, status);
        check_result(rank, DS_ACCEL_ERR_DEVICE_LOST, text);
    }
}

/* In each round, one of several ranks in running calls is killed or stopped. */
static void soak(unsigned rounds, uint64_t seed)
{
    for (unsigned round = 0; round < rounds; round++) {
        uint32_t size;
        uint32_t victim;
        bool stops;
        pid_t children[MOST_RANKS];

        soak_state = seed * 1000003u + round;
        size = 2 + (uint32_t)draw(5);
        victim = (uint32_t)draw(size);
        stops = draw(10) == 0;
        new_job();
        shared->go = stops;
        for (uint32_t rank = 0; rank < size; rank++)
            children[rank] = start_rank(rank, size, random_calls);
        while (shared->created < size && shared->failures == 0)
            nap(1);
        nap((long)draw(30));
        if (stops)
            stop_one(size, victim, children);
        else
            kill_one(size, victim, children);
        take_counts();
    }
    check_nothing_left();
}

#endif
