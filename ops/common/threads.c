/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "common/threads.h"

#ifdef _OPENMP

#include "common/float_mode.h"
#include "common/thread_attempt.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/*
 * libgomp keeps the threads of a parallel region, its team, for the next region of the same thread;
 * those that a smaller team does not need end. Two things follow.
 *
 * fork() copies the list of these threads, but not the threads, so the next region in the child
 * would wait for them forever. Therefore the first thread of a child works alone. Threads that the
 * child creates have lists of their own.
 *
 * libgomp ends the process if it cannot start a thread. Therefore, before a team is asked for that
 * needs new threads, as many are started and ended; the team has as many as could be started. No
 * new threads are needed for a team that is no larger than the last one of the same thread, unless
 * one of OpenMP's threads ended since, which a destructor of each thread counts.
 */
#define AGAIN_MS 100 /* after which a team may be larger again */

/* The last team of a thread that calls ops. */
struct team {
    uint64_t size;
    unsigned ended; /* ended_count before the team */
    uint64_t most;  /* that could be started until again_ms; not read later */
    int64_t again_ms;
};

/* A team about to be started. */
struct start {
    struct team *team; /* NULL: not remembered */
    unsigned ended;
    bool is_locked; /* starting is */
};

/* Written by a constructor. */
static bool is_prepared;
static pthread_key_t team_key;
static pthread_key_t member_key; /* set in OpenMP's threads */
/* Written in a child before it has a second thread. */
static bool is_child;
static pthread_t first_thread; /* of the child */

static atomic_uint ended_count; /* of OpenMP's threads that worked for this op */
/* Held while threads are started, so that one caller does not use up what another one found. */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
    pthread_mutex_lock(&starting);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&starting);
}

static void after_fork_child(void)
{
    is_child = true;
    first_thread = pthread_self();
    pthread_mutex_unlock(&starting);
}

static void count_end(void *unused)
{
    (void)unused;
    atomic_fetch_add(&ended_count, 1);
}

__attribute__((constructor)) static void prepare(void)
{
    is_prepared = pthread_key_create(&team_key, free) == 0 &&
                  pthread_key_create(&member_key, count_end) == 0 &&
                  pthread_atfork(before_fork, after_fork_parent, after_fork_child) == 0;
}

/* Whether only the calling thread may work, or OpenMP would let no other one. */
static bool must_be_alone(void)
{
    return !is_prepared || (is_child && pthread_equal(first_thread, pthread_self())) ||
           omp_get_active_level() >= omp_get_max_active_levels();
}

/* Return the last team of this thread, or NULL: it is not known. */
static struct team *last_team(void)
{
    struct team *team = (struct team *)pthread_getspecific(team_key);

    /* Within a parallel region of the caller, libgomp keeps no threads. */
    if (omp_get_active_level() > 0)
        return NULL;
    if (!team) {
        team = (struct team *)calloc(1, sizeof(*team));
        if (pthread_setspecific(team_key, team) != 0) {
            free(team);
            team = NULL;
        }
    }
    return team;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Return how many threads a team can have, at most wanted. started() follows. */
static uint64_t prepare_team(uint64_t wanted, struct start *start)
{
    struct team *team = last_team();
    uint64_t present = 1;
    uint64_t most;

    start->team = team;
    start->ended = atomic_load(&ended_count);
    if (team && team->size > 0 && team->ended == start->ended)
        present = team->size;
    if (team && team->most < wanted && now_ms() < team->again_ms)
        wanted = team->most;
    if (wanted <= present)
        return wanted;
    pthread_mutex_lock(&starting);
    start->is_locked = true;
    most = present + ops__threads_attempt(wanted - present);
    if (team && most < wanted) {
        team->most = most;
        team->again_ms = now_ms() + AGAIN_MS;
    }
    return most;
}

/* All threads of the team are started, or none was wanted: size 1. */
static void started(const struct start *start, uint64_t size)
{
    if (start->is_locked)
        pthread_mutex_unlock(&starting);
    if (start->team && size > 1) {
        start->team->size = size;
        start->team->ended = start->ended;
    }
}

/* Count the end of this thread of OpenMP; if that is not possible, it counts as ended now. */
static void watch_end(const struct start *start)
{
    if (start->team && pthread_setspecific(member_key, &ended_count) != 0)
        count_end(NULL);
}

/* A large number is limited to that of the CPUs, or to what OpenMP's environment says. */
uint64_t ops__threads_usable(uint32_t wanted)
{
    int most = omp_get_max_threads();

    if (wanted == 0)
        return (uint64_t)most;
    if (most < omp_get_num_procs())
        most = omp_get_num_procs();
    return wanted < (uint32_t)most ? wanted : (uint64_t)most;
}

static void run_team(ops__part_fn function, const void *work, uint64_t parts, uint64_t threads,
                     const struct start *start)
{
#pragma omp parallel num_threads((int)threads)
    {
        OPS__STANDARD_FLOATS;
        uint64_t number = (uint64_t)omp_get_thread_num();
        uint64_t team = (uint64_t)omp_get_num_threads();
        uint64_t each = parts / team;
        uint64_t more = parts % team; /* so many threads have one part more */
        uint64_t first = number * each + (number < more ? number : more);

        if (number == 0)
            started(start, team);
        else
            watch_end(start);
        function(work, first, first + each + (number < more));
    }
}

void ops__threads_run(ops__part_fn function, const void *work, uint64_t parts, uint64_t threads)
{
    struct start start = {.is_locked = false};

    if (threads > parts)
        threads = parts;
    if (threads > 1)
        threads = must_be_alone() ? 1 : prepare_team(threads, &start);
    if (threads > 1) {
        run_team(function, work, parts, threads, &start);
        return;
    }
    started(&start, 1);
    function(work, 0, parts);
}

#else

/* Without OpenMP there is one thread. */
uint64_t ops__threads_usable(uint32_t wanted)
{
    (void)wanted;
    return 1;
}

void ops__threads_run(ops__part_fn function, const void *work, uint64_t parts, uint64_t threads)
{
    (void)threads;
    function(work, 0, parts);
}

#endif
