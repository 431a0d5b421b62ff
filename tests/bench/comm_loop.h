/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Times the all-reduce of one implementation: float32, sum, for several sizes. Each rank is a
 * process that calls comm_loop() with the arguments that all programs of this benchmark have:
 *
 *     PROGRAM ... FILE SCALE BYTES...
 *
 * FILE is an empty file that the ranks share; SCALE divides the number of calls, for slow
 * implementations. Rank 0 prints a line "BYTES NANOSECONDS" for each size, the median of several
 * batches.
 *
 * A rank writes its whole input before each call, as a program does, so that no part of it is in
 * the caches of other ranks; the input differs from call to call, and one element of each result is
 * checked. The time of small calls is that of a batch, less that of a batch that only writes. Large
 * calls are timed one by one, after all ranks have written.
 */
#ifndef DS_ACCEL_TESTS_BENCH_COMM_LOOP_H
#define DS_ACCEL_TESTS_BENCH_COMM_LOOP_H

#include "clock.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COMM_SMALL 4096 /* bytes that count as a small call */
#define COMM_BATCHES 7
#define COMM_MOST_SIZES 32

struct comm_loop {
    unsigned rank;
    unsigned size;
    const char *file;
    unsigned scale;
    size_t bytes[COMM_MOST_SIZES];
    unsigned count;
    bool is_pinned; /* rank i runs on the i-th CPU */
    /* Set by comm_open(): what the ranks wait at before large calls. */
    struct comm_gate {
        _Atomic unsigned arrived;
        _Atomic unsigned round;
    } * gate;
};

/* An implementation. Functions end the process after a failure. */
struct comm_contender {
    void *data;
    /* Return an array for input or output of so many bytes, which is never released. */
    float *(*allocate)(void *data, size_t bytes);
    void (*all_reduce)(void *data, const float *in, float *out, size_t count);
};

static inline void comm_fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Read FILE SCALE BYTES... */
static inline void comm_parse(struct comm_loop *loop, char **arguments)
{
    loop->file = arguments[0];
    loop->scale = arguments[0] != NULL && arguments[1] != NULL ? (unsigned)atoi(arguments[1]) : 0;
    if (loop->scale == 0) {
        fprintf(stderr, "usage: FILE SCALE BYTES...\n");
        exit(2);
    }
    for (char **bytes = arguments + 2; *bytes != NULL && loop->count < COMM_MOST_SIZES; bytes++) {
        loop->bytes[loop->count++] = (size_t)strtoull(*bytes, NULL, 10) & ~(size_t)3;
    }
}

/* Run this rank on a CPU of its own, if there are enough. */
static inline void comm_pin(const struct comm_loop *loop)
{
    cpu_set_t allowed;
    unsigned number = 0;

    if (!loop->is_pinned || sched_getaffinity(0, sizeof(allowed), &allowed) != 0 ||
        (unsigned)CPU_COUNT(&allowed) < loop->size) {
        return;
    }
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed) && number++ == loop->rank) {
            CPU_ZERO(&allowed);
            CPU_SET(cpu, &allowed);
            sched_setaffinity(0, sizeof(allowed), &allowed);
            return;
        }
    }
}

static inline void comm_open(struct comm_loop *loop)
{
    int file = open(loop->file, O_RDWR | O_CLOEXEC);

    if (file < 0 || ftruncate(file, 4096) != 0) {
        comm_fail(loop->file);
    }
    loop->gate = (struct comm_gate *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (loop->gate == MAP_FAILED) {
        comm_fail(loop->file);
    }
    close(file);
}

/* Wait until all ranks are here. */
static inline void comm_gather(const struct comm_loop *loop)
{
    struct comm_gate *gate = loop->gate;
    unsigned round = atomic_load(&gate->round);

    if (atomic_fetch_add(&gate->arrived, 1) + 1 == loop->size) {
        atomic_store(&gate->arrived, 0);
        atomic_store(&gate->round, round + 1);
        return;
    }
    for (unsigned spins = 0; atomic_load(&gate->round) == round; spins++) {
        if (spins > 10000) {
            sched_yield();
        }
    }
}

static inline float comm_value(unsigned rank, unsigned call, size_t i)
{
    return (float)((call + (unsigned)i + rank) & 1023);
}

static inline void comm_write(const struct comm_loop *loop, unsigned call, float *in, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        in[i] = comm_value(loop->rank, call, i);
    }
    __asm__ volatile("" : : "r"(in) : "memory");
}

static inline void comm_check(const struct comm_loop *loop, unsigned call, const float *out,
                              size_t count)
{
    size_t i = (call * 7919u) % count;
    float wanted = 0;

    for (unsigned rank = 0; rank < loop->size; rank++) {
        wanted += comm_value(rank, call, i);
    }
    if (out[i] != wanted) {
        fprintf(stderr, "rank %u, call %u: element %zu is %g, wanted %g\n", loop->rank, call, i,
                (double)out[i], (double)wanted);
        exit(1);
    }
}

static inline int comm_compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static inline double comm_median(double *values, unsigned count)
{
    qsort(values, count, sizeof(*values), comm_compare);
    return values[count / 2];
}

/* Return the nanoseconds of a small call. */
static inline double comm_time_small(const struct comm_loop *loop,
                                     const struct comm_contender *contender, float *in, float *out,
                                     size_t count)
{
    unsigned calls = 20000 / loop->scale + 2;
    double with[COMM_BATCHES];
    double without[COMM_BATCHES];

    for (unsigned batch = 0; batch < COMM_BATCHES; batch++) {
        uint64_t start_ns;

        comm_gather(loop);
        start_ns = now_ns();
        for (unsigned call = 0; call < calls; call++) {
            comm_write(loop, call + batch, in, count);
            contender->all_reduce(contender->data, in, out, count);
            comm_check(loop, call + batch, out, count);
        }
        with[batch] = elapsed_ns(start_ns) / calls;
        start_ns = now_ns();
        for (unsigned call = 0; call < calls; call++) {
            comm_write(loop, call + batch, in, count);
        }
        without[batch] = elapsed_ns(start_ns) / calls;
    }
    return comm_median(with, COMM_BATCHES) - comm_median(without, COMM_BATCHES);
}

/* Return the nanoseconds of a large call. */
static inline double comm_time_large(const struct comm_loop *loop,
                                     const struct comm_contender *contender, float *in, float *out,
                                     size_t count)
{
    size_t wanted = ((size_t)96 << 20) / (count * sizeof(*in)) / loop->scale;
    unsigned calls = wanted < 5 ? 5 : wanted > 301 ? 301 : (unsigned)wanted;
    double *times = (double *)calloc(calls, sizeof(*times));
    double time;

    if (times == NULL) {
        comm_fail("calloc");
    }
    for (unsigned call = 0; call < calls; call++) {
        uint64_t start_ns;

        comm_write(loop, call, in, count);
        comm_gather(loop);
        start_ns = now_ns();
        contender->all_reduce(contender->data, in, out, count);
        times[call] = elapsed_ns(start_ns);
        comm_check(loop, call, out, count);
    }
    time = comm_median(times, calls);
    free(times);
    return time;
}

/* Measure all sizes. */
static inline void comm_loop(struct comm_loop *loop, const struct comm_contender *contender)
{
    comm_pin(loop);
    comm_open(loop);
    for (unsigned i = 0; i < loop->count; i++) {
        size_t bytes = loop->bytes[i];
        size_t count = bytes / sizeof(float);
        float *in = contender->allocate(contender->data, bytes);
        float *out = contender->allocate(contender->data, bytes);
        double time;

        memset(out, 0, bytes);
        comm_write(loop, 0, in, count);
        contender->all_reduce(contender->data, in, out, count); /* the first call may prepare */
        time = bytes <= COMM_SMALL ? comm_time_small(loop, contender, in, out, count)
                                   : comm_time_large(loop, contender, in, out, count);
        if (loop->rank == 0) {
            printf("%zu %.1f\n", bytes, time);
            fflush(stdout);
        }
    }
}

/* Return private memory, touched, and in huge pages if the kernel gives them. */
static inline float *comm_private(void *data, size_t bytes)
{
    size_t huge = (size_t)2 << 20;
    void *memory = NULL;

    (void)data;
    if (posix_memalign(&memory, bytes >= huge ? huge : 4096, bytes) != 0) {
        comm_fail("posix_memalign");
    }
    if (bytes >= huge) {
        madvise(memory, bytes, MADV_HUGEPAGE);
    }
    memset(memory, 0, bytes);
    return (float *)memory;
}

#endif
