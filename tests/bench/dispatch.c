/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The cost of a call, in nanoseconds: prints "NAME NS" lines for the benchmark. Every loop puts the
 * result of a call into the arguments of the next, or into a sum if there are none, and clobbers
 * memory, so that the compiler can neither hoist nor drop the measured loads.
 *
 * The loops run in turn, many times. A result is the smallest of several medians: the median
 * removes interrupts, the minimum removes the time when the host had slowed the processor down.
 */
#include "clock.h"
#include "ds_accel.h"
#include "trivial.h"

#include <stdio.h>
#include <stdlib.h>

#define GROUPS 9u
#define BLOCKS 5u
#define CALLS 1000000u /* calls per block; 45 million of each kind in total */

/* The alignment of a loop must not depend on the code before it. */
#define LOOP static __attribute__((noinline, aligned(64)))

static ds_accel_stream_t *default_stream;

LOOP uintptr_t loop_empty(uintptr_t chain, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        chain += i;
        __asm__ volatile("" : "+r"(chain) : : "memory");
    }
    return chain;
}

LOOP uintptr_t loop_get(uintptr_t chain, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        chain += (uintptr_t)ds_accel_get();
        __asm__ volatile("" : "+r"(chain) : : "memory");
    }
    return chain;
}

LOOP uintptr_t loop_wrapper(uintptr_t device, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        device += (uintptr_t)ds_accel_device_synchronize((ds_accel_device_t *)device);
        __asm__ volatile("" : "+r"(device) : : "memory");
    }
    return device;
}

/* Call the plugin's own function, its address and handle in registers: the baseline of dispatch. */
LOOP uintptr_t loop_direct(uintptr_t given, uint32_t count)
{
    const ds_accel_device_t *device = (const ds_accel_device_t *)given;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t (*call)(ds_accel_plugin_device_t *, uint64_t, struct ds_accel_error *) =
        ds_accel_device_table(device)->device_synchronize;
    uintptr_t handle = (uintptr_t)ds_accel_device_handle(device);

    for (uint32_t i = 0; i < count; i++) {
        handle += (uintptr_t)call((ds_accel_plugin_device_t *)handle, UINT64_MAX, &error);
        __asm__ volatile("" : "+r"(handle), "+r"(call) : : "memory");
    }
    return handle;
}

/* Call the library's copy of the inline function by its address, as other languages and -O0 do. */
LOOP uintptr_t loop_exported(uintptr_t device, uint32_t count)
{
    int32_t (*call)(ds_accel_device_t *) = ds_accel_device_synchronize;

    for (uint32_t i = 0; i < count; i++) {
        __asm__ volatile("" : "+r"(device), "+r"(call) : : "memory");
        device += (uintptr_t)call((ds_accel_device_t *)device);
    }
    return device;
}

/* Call a query that programs use for polling. */
LOOP uintptr_t loop_query(uintptr_t device, uint32_t count)
{
    uintptr_t stream = (uintptr_t)default_stream;

    for (uint32_t i = 0; i < count; i++) {
        stream += (uintptr_t)ds_accel_stream_query((ds_accel_stream_t *)stream);
        __asm__ volatile("" : "+r"(stream) : : "memory");
    }
    return device + stream;
}

LOOP uintptr_t loop_query_direct(uintptr_t device, uint32_t count)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t (*call)(ds_accel_plugin_stream_t *, struct ds_accel_error *) =
        default_stream->table->stream_query;
    uintptr_t handle = (uintptr_t)default_stream->handle;

    for (uint32_t i = 0; i < count; i++) {
        handle += (uintptr_t)call((ds_accel_plugin_stream_t *)handle, &error);
        __asm__ volatile("" : "+r"(handle), "+r"(call) : : "memory");
    }
    return device + handle;
}

LOOP uintptr_t loop_plt(uintptr_t handle, uint32_t count)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    for (uint32_t i = 0; i < count; i++) {
        handle += (uintptr_t)bench_trivial((const void *)handle, &error);
        __asm__ volatile("" : "+r"(handle) : : "memory");
    }
    return handle;
}

static const struct {
    const char *name;
    uintptr_t (*run)(uintptr_t first, uint32_t count);
} loops[] = {
    {"empty", loop_empty},
    {"get", loop_get},
    {"wrapper", loop_wrapper},
    {"direct", loop_direct},
    {"exported", loop_exported},
    {"query", loop_query},
    {"query_direct", loop_query_direct},
    {"plt", loop_plt},
};
#define LOOP_COUNT (sizeof(loops) / sizeof(loops[0]))

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure_group(uintptr_t device, double *best)
{
    double samples[LOOP_COUNT][BLOCKS];

    for (unsigned block = 0; block < BLOCKS; block++) {
        for (size_t i = 0; i < LOOP_COUNT; i++) {
            uint64_t start_ns = now_ns();
            uintptr_t last = loops[i].run(device, CALLS);

            samples[i][block] = elapsed_ns(start_ns) / CALLS;
            __asm__ volatile("" : : "r"(last));
        }
    }
    for (size_t i = 0; i < LOOP_COUNT; i++) {
        qsort(samples[i], BLOCKS, sizeof(double), compare);
        if (best[i] == 0 || samples[i][BLOCKS / 2] < best[i]) {
            best[i] = samples[i][BLOCKS / 2];
        }
    }
}

int main(void)
{
    double best[LOOP_COUNT] = {0};
    ds_accel_t *context = ds_accel_get();
    ds_accel_device_t *device;

    if (context == NULL || ds_accel_device_open(context, 0, &device) < 0 ||
        ds_accel_default_stream(device, &default_stream) < 0) {
        fprintf(stderr, "dispatch: %s\n", ds_accel_last_error());
        return 1;
    }
    for (unsigned group = 0; group < GROUPS; group++) {
        measure_group((uintptr_t)device, best);
    }
    for (size_t i = 0; i < LOOP_COUNT; i++) {
        printf("%s %.4f\n", loops[i].name, best[i]);
    }
    ds_accel_device_close(device);
    return 0;
}
