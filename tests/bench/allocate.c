/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The time of an allocation and its free, in nanoseconds: our allocator on the mock, on one stream
 * and on two streams of two threads at once, and host allocators with the same size. Prints "NAME
 * NS" lines for the benchmark. An allocator that is not installed has no line.
 *
 * The loops run in turn, many times. A result is the smallest of several medians: the median
 * removes interrupts, the minimum removes the time when the host had slowed the processor down.
 */
#include "clock.h"
#include "ds_accel.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define GROUPS 7u
#define BLOCKS 5u
#define CALLS 300000u
#define SIZE_BYTES 4096u
#define THREADS 2u

/* The alignment of a loop must not depend on the code before it. */
#define LOOP static __attribute__((noinline, aligned(64)))

static ds_accel_device_t *device;
static ds_accel_stream_t *streams[THREADS];

struct host {
    const char *name;
    const char *library; /* NULL: libc */
    const char *alloc_name;
    const char *free_name;
    void *(*alloc)(size_t size);
    void (*free)(void *pointer);
};

static struct host hosts[] = {
    {"malloc", NULL, "malloc", "free", NULL, NULL},
    {"mimalloc", "libmimalloc.so.2", "mi_malloc", "mi_free", NULL, NULL},
    {"jemalloc", "libjemalloc.so.2", "malloc", "free", NULL, NULL},
    {"tbbmalloc", "libtbbmalloc.so.2", "scalable_malloc", "scalable_free", NULL, NULL},
};
#define HOST_COUNT (sizeof(hosts) / sizeof(hosts[0]))

LOOP void loop_ours(ds_accel_stream_t *stream, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        void *pointer;

        if (ds_accel_mem_alloc(device, stream, SIZE_BYTES, &pointer) < 0 ||
            ds_accel_mem_free(device, stream, pointer) < 0) {
            fprintf(stderr, "allocate: %s\n", ds_accel_last_error());
            exit(1);
        }
        __asm__ volatile("" : : "r"(pointer) : "memory");
    }
}

LOOP void loop_host(const struct host *host, uint32_t count)
{
    void *(*alloc)(size_t) = host->alloc;
    void (*release)(void *) = host->free;

    for (uint32_t i = 0; i < count; i++) {
        void *pointer = alloc(SIZE_BYTES);

        __asm__ volatile("" : "+r"(pointer) : : "memory");
        release(pointer);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* ---- measuring one thread, or two at a time ------------------------------------------------- */

struct racer {
    const struct host *host; /* NULL: our allocator */
    pthread_barrier_t *start;
    unsigned index;
    double ns;
};

static void *race(void *given)
{
    struct racer *racer = given;
    uint64_t start_ns;

    if (racer->start != NULL) {
        pthread_barrier_wait(racer->start);
    }
    start_ns = now_ns();
    if (racer->host != NULL) {
        loop_host(racer->host, CALLS);
    } else {
        loop_ours(streams[racer->index], CALLS);
    }
    racer->ns = elapsed_ns(start_ns) / CALLS;
    return NULL;
}

/* Return the time of the slower thread. */
static double measure(const struct host *host, unsigned thread_count)
{
    struct racer racers[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    double worst = 0;

    pthread_barrier_init(&start, NULL, thread_count);
    for (unsigned i = 0; i < thread_count; i++) {
        racers[i] = (struct racer){host, thread_count > 1 ? &start : NULL, i, 0};
    }
    for (unsigned i = 1; i < thread_count; i++) {
        if (pthread_create(&threads[i], NULL, race, &racers[i]) != 0) {
            perror("allocate");
            exit(1);
        }
    }
    race(&racers[0]);
    for (unsigned i = 1; i < thread_count; i++) {
        pthread_join(threads[i], NULL);
    }
    for (unsigned i = 0; i < thread_count; i++) {
        worst = racers[i].ns > worst ? racers[i].ns : worst;
    }
    pthread_barrier_destroy(&start);
    return worst;
}

static void measure_group(double best[HOST_COUNT + 1][THREADS])
{
    double samples[HOST_COUNT + 1][THREADS][BLOCKS];

    for (unsigned block = 0; block < BLOCKS; block++) {
        for (size_t i = 0; i <= HOST_COUNT; i++) {
            for (unsigned threads = 1; threads <= THREADS; threads++) {
                const struct host *host = i < HOST_COUNT ? &hosts[i] : NULL;

                samples[i][threads - 1][block] =
                    host != NULL && host->alloc == NULL ? 0 : measure(host, threads);
            }
        }
    }
    for (size_t i = 0; i <= HOST_COUNT; i++) {
        for (unsigned k = 0; k < THREADS; k++) {
            qsort(samples[i][k], BLOCKS, sizeof(double), compare);
            if (best[i][k] == 0 || samples[i][k][BLOCKS / 2] < best[i][k]) {
                best[i][k] = samples[i][k][BLOCKS / 2];
            }
        }
    }
}

/* ---- the allocators ------------------------------------------------------------------------- */

static void find_hosts(void)
{
    for (size_t i = 0; i < HOST_COUNT; i++) {
        struct host *host = &hosts[i];
        void *library = host->library != NULL
                            ? dlopen(host->library, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)
                            : NULL;

        if (host->library == NULL) {
            host->alloc = malloc;
            host->free = free;
        } else if (library != NULL) {
            *(void **)&host->alloc = dlsym(library, host->alloc_name);
            *(void **)&host->free = dlsym(library, host->free_name);
        }
        if (host->free == NULL) {
            host->alloc = NULL;
        }
    }
}

int main(void)
{
    double best[HOST_COUNT + 1][THREADS] = {{0}};
    ds_accel_t *context = ds_accel_get();

    if (context == NULL || ds_accel_device_open(context, 0, &device) < 0) {
        fprintf(stderr, "allocate: %s\n", ds_accel_last_error());
        return 1;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        if (ds_accel_stream_create(device, 0, 0, &streams[i]) < 0) {
            fprintf(stderr, "allocate: %s\n", ds_accel_last_error());
            return 1;
        }
    }
    find_hosts();
    for (unsigned group = 0; group < GROUPS; group++) {
        measure_group(best);
    }
    for (size_t i = 0; i <= HOST_COUNT; i++) {
        const char *name = i < HOST_COUNT ? hosts[i].name : "ours";

        if (best[i][0] > 0) {
            printf("%s_1 %.2f\n%s_2 %.2f\n", name, best[i][0], name, best[i][1]);
        }
    }
    ds_accel_device_close(device);
    return 0;
}
