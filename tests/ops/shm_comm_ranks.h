/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Ranks of the op shm_comm as child processes, for its tests. */
#ifndef TESTS_OPS_SHM_COMM_RANKS_H
#define TESTS_OPS_SHM_COMM_RANKS_H

#include "ds-accel/ops/shm_comm.h"
#include "ops/checks.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND ((uint64_t)1000000000)
#define PATIENCE (120 * SECOND) /* of calls that succeed, on a loaded machine too */
#define MOST_RANKS 64

/* What children tell the parent, in memory that they share. */
struct shared {
    atomic_uint checks;
    atomic_uint failures;
    atomic_uint created;
    atomic_uint go;
    atomic_ullong bits; /* of all results */
    struct {
        uint64_t delay_ns; /* that the rank waited for a CPU */
        int32_t status;
        char message[256];
    } results[MOST_RANKS];
};

static uint64_t child_limit_ns = 3 * PATIENCE; /* what a rank may take */
static const struct ds_accel_shm_comm *shm;
static struct shared *shared;
static unsigned name_count; /* each group of ranks has a name of its own */
static char job_name[65];

typedef void rank_fn(uint32_t rank, uint32_t size);

static void nap(long ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static void new_job(void)
{
    snprintf(job_name, sizeof(job_name), "test-%d-%u", (int)getpid(), name_count++);
    shared->created = 0;
    shared->go = 0;
    memset(shared->results, 0, sizeof(shared->results));
}

static int32_t create_sized(uint32_t rank, uint32_t size, uint64_t timeout_ns,
                            uint64_t buffer_bytes, ds_accel_comm_t **comm_out,
                            struct ds_accel_error *error)
{
    struct ds_accel_shm_comm_options options = {
        .struct_size = sizeof(options),
        .rank = rank,
        .size = size,
        .name = job_name,
        .timeout_ns = timeout_ns,
        .buffer_bytes = buffer_bytes,
    };

    return shm->create(&options, comm_out, error);
}

/* Create a communicator; end the process if that fails. */
static ds_accel_comm_t *create(uint32_t rank, uint32_t size, uint64_t timeout_ns,
                               uint64_t buffer_bytes)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_comm_t *comm = NULL;
    int32_t status = create_sized(rank, size, timeout_ns, buffer_bytes, &comm, &error);

    CHECK(status == DS_ACCEL_OK && comm, "rank %u: %s", rank, error.message);
    if (!comm) {
        shared->failures += failures;
        _exit(1);
    }
    shared->created++;
    return comm;
}

/* Return how long this process has been ready to run without a CPU. */
static uint64_t delay_ns(void)
{
    FILE *file = fopen("/proc/self/schedstat", "re");
    unsigned long long delay = 0;

    if (file && fscanf(file, "%*u %llu", &delay) != 1)
        delay = 0;
    if (file)
        fclose(file);
    return delay;
}

static void keep_result(uint32_t rank, int32_t status, const struct ds_accel_error *error)
{
    shared->results[rank].delay_ns = delay_ns();
    shared->results[rank].status = status;
    memcpy(shared->results[rank].message, error->message, sizeof(error->message));
}

static pid_t start_rank(uint32_t rank, uint32_t size, rank_fn *function)
{
    pid_t parent = getpid();
    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        checks = 0;
        failures = 0;
        function(rank, size);
        shared->checks += checks;
        shared->failures += failures;
        _exit(failures != 0);
    }
    CHECK(child > 0, "fork: %s", strerror(errno));
    return child;
}

/* Wait for the end of a child, and end it if it does not come; return its status. */
static int reap(pid_t child)
{
    uint64_t deadline = clock_ns() + child_limit_ns;
    int status = -1;

    if (child <= 0)
        return -1;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (clock_ns() > deadline) {
            CHECK(false, "process %d does not end", (int)child);
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return -1;
        }
        nap(1);
    }
    return status;
}

static void start_ranks(uint32_t size, rank_fn *function, pid_t *children)
{
    new_job();
    for (uint32_t rank = 0; rank < size; rank++)
        children[rank] = start_rank(rank, size, function);
}

/* Take over the counts of the children that have ended. */
static void take_counts(void)
{
    checks += atomic_exchange(&shared->checks, 0);
    failures += atomic_exchange(&shared->failures, 0);
}

static void run_ranks(uint32_t size, rank_fn *function)
{
    pid_t children[MOST_RANKS];

    start_ranks(size, function, children);
    for (uint32_t rank = 0; rank < size; rank++) {
        int status = reap(children[rank]);

        CHECK(status == 0, "rank %u of %u: status 0x%x", rank, size, status);
    }
    take_counts();
}

static struct ds_accel_comm_call make_call(uint32_t dtype, uint32_t reduction, const void *in,
                                           void *out, uint64_t count)
{
    return (struct ds_accel_comm_call){
        .struct_size = sizeof(struct ds_accel_comm_call),
        .dtype = dtype,
        .reduction = reduction,
        .in = in,
        .out = out,
        .count = count,
    };
}

#endif
