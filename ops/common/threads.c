/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "common/threads.h"

#ifdef _OPENMP

#include "common/float_mode.h"

#include <omp.h>
#include <pthread.h>
#include <stdbool.h>

/*
 * libgomp keeps the threads of a parallel region for the next region of the same thread. fork()
 * copies the list of these threads, but not the threads, so the next region in the child would wait
 * for them forever. Therefore the first thread of a child works alone. Threads that the child
 * creates have lists of their own.
 *
 * Written by a constructor, and in a child before it has a second thread.
 */
static bool handles_fork;
static bool is_child;
static pthread_t first_thread; /* of the child */

static void after_fork_child(void)
{
    is_child = true;
    first_thread = pthread_self();
}

__attribute__((constructor)) static void prepare_fork(void)
{
    handles_fork = pthread_atfork(NULL, NULL, after_fork_child) == 0;
}

static bool must_be_alone(void)
{
    return !handles_fork || (is_child && pthread_equal(first_thread, pthread_self()));
}

/* OpenMP ends the process if it cannot start a thread, so a large number is limited to that of the
 * CPUs, or to what OpenMP's environment says. */
uint64_t ops__threads_usable(uint32_t wanted)
{
    int most = omp_get_max_threads();

    if (wanted == 0)
        return (uint64_t)most;
    if (most < omp_get_num_procs())
        most = omp_get_num_procs();
    return wanted < (uint32_t)most ? wanted : (uint64_t)most;
}

void ops__threads_run(ops__part_fn function, const void *work, uint64_t parts, uint64_t threads)
{
    if (threads > parts)
        threads = parts;
    if (threads <= 1 || must_be_alone()) {
        function(work, 0, parts);
        return;
    }
#pragma omp parallel num_threads((int)threads)
    {
        OPS__STANDARD_FLOATS;
        uint64_t number = (uint64_t)omp_get_thread_num();
        uint64_t team = (uint64_t)omp_get_num_threads();
        uint64_t each = parts / team;
        uint64_t more = parts % team; /* so many threads have one part more */
        uint64_t first = number * each + (number < more ? number : more);

        function(work, first, first + each + (number < more));
    }
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
