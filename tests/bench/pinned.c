/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The cost of pinned memory on the cpu: prints "NAME NS" lines for the benchmark.
 *
 *   bytes   the size of a block: 64 MiB, or less if the kernel's limit is lower
 *   first   allocation from the runtime while its pool is empty
 *   bare    the same without the runtime: mmap(), MADV_HUGEPAGE, mlock()
 *   pooled  an allocation and its free, served by the pool
 *
 * first and bare run in turn, and each releases its memory before the other runs. Both leave the
 * memory locked and resident, so that neither needs to touch it.
 */
#include "clock.h"
#include "ds_accel.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ROUNDS 31u
#define GROUPS 9u
#define BLOCKS 5u
#define PAIRS 20000u /* pairs per block; 900,000 in total */
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(double), compare);
    return values[count / 2];
}

static void die(const char *what)
{
    fprintf(stderr, "pinned: %s\n", what);
    exit(1);
}

/* Return the nanoseconds of an allocation, without its release; 0: the allocation failed. */
static double take_bare(size_t size_bytes)
{
    uint64_t start_ns = now_ns();
    size_t mapped_bytes = size_bytes + HUGE_PAGE_BYTES;
    char *mapping =
        mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *block;
    double ns;

    if (mapping == MAP_FAILED) {
        return 0;
    }
    block = mapping + (-(uintptr_t)mapping & (HUGE_PAGE_BYTES - 1));
    madvise(block, size_bytes, MADV_HUGEPAGE);
    ns = mlock(block, size_bytes) == 0 ? elapsed_ns(start_ns) : 0;
    munmap(mapping, mapped_bytes);
    return ns;
}

static double take_ours(ds_accel_device_t *device, size_t size_bytes)
{
    uint64_t start_ns = now_ns();
    void *block = NULL;
    double ns;

    if (ds_accel_mem_alloc_pinned(device, size_bytes, 0, DS_ACCEL_PINNED_HUGE_PAGES, &block) < 0) {
        return 0;
    }
    ns = elapsed_ns(start_ns);
    ds_accel_mem_free_pinned(device, block);
    return ns;
}

static void measure_first(ds_accel_device_t *device, size_t size_bytes)
{
    double ours[ROUNDS];
    double bare[ROUNDS];

    ds_accel_pinned_set_limit(device, 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        ours[i] = take_ours(device, size_bytes);
        bare[i] = take_bare(size_bytes);
        if (ours[i] == 0 || bare[i] == 0) {
            die(ds_accel_last_error());
        }
    }
    ds_accel_pinned_set_limit(device, UINT64_MAX);
    printf("first %.0f\nbare %.0f\n", median(ours, ROUNDS), median(bare, ROUNDS));
}

static double time_pairs(ds_accel_device_t *device, size_t size_bytes)
{
    uint64_t start_ns = now_ns();
    void *block;

    for (unsigned i = 0; i < PAIRS; i++) {
        if (ds_accel_mem_alloc_pinned(device, size_bytes, 0, 0, &block) < 0 ||
            ds_accel_mem_free_pinned(device, block) < 0) {
            die(ds_accel_last_error());
        }
    }
    return elapsed_ns(start_ns) / PAIRS;
}

/* Print the smallest of several medians, as in dispatch.c. */
static void measure_pooled(ds_accel_device_t *device, size_t size_bytes)
{
    double samples[BLOCKS];
    double best = 0;

    for (unsigned group = 0; group < GROUPS; group++) {
        double middle;

        for (unsigned i = 0; i < BLOCKS; i++) {
            samples[i] = time_pairs(device, size_bytes);
        }
        middle = median(samples, BLOCKS);
        best = best == 0 || middle < best ? middle : best;
    }
    printf("pooled %.2f\n", best);
}

int main(void)
{
    size_t size_bytes = (size_t)64 << 20;
    ds_accel_t *context = ds_accel_get();
    ds_accel_device_t *device;

    if (context == NULL || ds_accel_device_get(context, 0, &device) < 0) {
        die(ds_accel_last_error());
    }
    while (take_bare(size_bytes) == 0 && size_bytes > HUGE_PAGE_BYTES) {
        size_bytes /= 2;
    }
    printf("bytes %zu\n", size_bytes);
    measure_first(device, size_bytes);
    measure_pooled(device, size_bytes);
    return 0;
}
