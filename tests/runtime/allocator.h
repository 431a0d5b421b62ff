/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the tests of the caching allocator: blocks, statistics, and busy streams. */
#ifndef DS_ACCEL_TESTS_RUNTIME_ALLOCATOR_H
#define DS_ACCEL_TESTS_RUNTIME_ALLOCATOR_H

#include "runtime.h"

#define GIB (MIB * 1024)

static inline void *take(ds_accel_device_t *device, ds_accel_stream_t *stream, uint64_t size_bytes)
{
    void *pointer = NULL;

    MUST(ds_accel_mem_alloc(device, stream, size_bytes, &pointer));
    return pointer;
}

static inline int64_t stat_of(ds_accel_device_t *device, const char *key)
{
    int64_t value = -1;

    MUST(ds_accel_memory_stat(device, key, &value));
    return value;
}

#define EXPECT_STAT(device, key, wanted) \
    do { \
        int64_t value_ = stat_of(device, key); \
        cr_expect_eq(value_, (int64_t)(wanted), "%s is %lld, not %lld", key, (long long)value_, \
                     (long long)(wanted)); \
    } while (0)

#define SLOW "400000000" /* duration of a copy in nanoseconds: longer than any call here */

/* Keep a stream busy for SLOW nanoseconds with a fill of the block. */
static inline void occupy(ds_accel_stream_t *stream, void *pointer)
{
    MUST(ds_accel_mem_set_async(stream, pointer, 1, 512));
    cr_assert_eq(ds_accel_stream_query(stream), DS_ACCEL_NOT_READY);
}

/* Expect that the idle stream has been ordered after the busy stream. */
static inline void expect_waits(ds_accel_stream_t *stream, ds_accel_stream_t *busy)
{
    cr_expect_eq(ds_accel_stream_query(stream), DS_ACCEL_NOT_READY, "it does not wait");
    MUST(ds_accel_stream_synchronize(stream));
    cr_expect_eq(ds_accel_stream_query(busy), DS_ACCEL_OK, "it was done before the other");
}

static inline void give(ds_accel_device_t *device, ds_accel_stream_t *stream, void *pointer)
{
    EXPECT_STATUS(ds_accel_mem_free(device, stream, pointer), DS_ACCEL_OK);
}

/* The mock with a given amount of memory, slow copies and two streams. */
struct scene {
    ds_accel_t *context;
    ds_accel_device_t *device;
    ds_accel_stream_t *a;
    ds_accel_stream_t *b;
};

static inline struct scene start(const char *memory_bytes, const char *settings)
{
    struct scene scene;

    if (memory_bytes != NULL) {
        setenv("DS_ACCEL_MOCK_MEMORY_BYTES", memory_bytes, 1);
    }
    if (settings != NULL) {
        setenv("DS_ACCEL_ALLOCATOR", settings, 1);
    }
    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", SLOW, 1);
    scene.context = test_start("mock", &scene.device);
    scene.a = make_stream(scene.device);
    scene.b = make_stream(scene.device);
    return scene;
}

static inline void stop(const struct scene *scene)
{
    test_finish(scene->context, scene->device);
}

#endif
