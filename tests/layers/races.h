/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the tests of races among calls of the public API, on mock and cpu. */
#ifndef DS_ACCEL_TESTS_LAYERS_RACES_H
#define DS_ACCEL_TESTS_LAYERS_RACES_H

#include "fixture.h"

#define SIZE 4096

static const char *const accelerators[] = {"mock", "cpu"};

static ds_accel_t *context;
static ds_accel_device_t *device;
static ds_accel_stream_t *first;
static ds_accel_stream_t *second;
static ds_accel_graph_t *graph;
static void *memory;

static inline void start_with(const char *accelerator, const char *layers)
{
    setenv("DS_ACCEL_LAYERS", layers, 1);
    setenv("DS_ACCEL_CPU_ASYNC", "true", 1);
    context = test_start(accelerator, &device);
    MUST(ds_accel_stream_create(device, 0, 0, &first));
    MUST(ds_accel_stream_create(device, 0, 0, &second));
    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_mem_alloc(device, first, SIZE, &memory));
}

static inline void start(const char *accelerator)
{
    start_with(accelerator, "validate");
}

static inline void stop(void)
{
    ds_accel_device_synchronize(device);
    ds_accel_graph_destroy(graph);
    EXPECT_STATUS(ds_accel_mem_free(device, first, memory), DS_ACCEL_OK);
    ds_accel_stream_destroy(first);
    ds_accel_stream_destroy(second);
    test_finish(context, device);
}

static inline uint64_t races(void)
{
    uint64_t count = UINT64_MAX;

    MUST(ds_accel_race_count(context, &count));
    return count;
}

static inline int32_t set(ds_accel_stream_t *stream, void *pointer, int byte)
{
    return ds_accel_mem_set_async(stream, pointer, byte, SIZE);
}

static inline void fail_on_races(void)
{
    test_write("etc/ds-accel.json", "{\"validate\": {\"races\": \"fail\"}}");
}

static inline void expect_races(uint64_t count, const char *what)
{
    char *text = NULL;

    MUST(ds_accel_layer_report(context, "race", &text));
    cr_expect_eq(races(), count, "%s: %llu: %s", what, (unsigned long long)races(), text);
    ds_accel_free_text(text);
}

#endif
