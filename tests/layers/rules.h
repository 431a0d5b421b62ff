/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the tests of rules: two devices, and checks of a call. */
#ifndef DS_ACCEL_TESTS_LAYERS_RULES_H
#define DS_ACCEL_TESTS_LAYERS_RULES_H

#include "far.h"
#include "fixture.h"

static ds_accel_t *context;
static ds_accel_device_t *device;
static const struct ds_accel_plugin *table;
static ds_accel_plugin_instance_t *instance;
static ds_accel_plugin_device_t *handle;
static ds_accel_plugin_stream_t *stream;
static struct ds_accel_error error = {.struct_size = sizeof(error)};

#define EXPECT_OK(call) cr_expect_eq(call, DS_ACCEL_OK, "%s", error.message)
#define ASSERT_OK(call) cr_assert_eq(call, DS_ACCEL_OK, "%s", error.message)
#define EXPECT_FAIL(call, status, part) \
    do { \
        memset(&error, 0, sizeof(error)); \
        error.struct_size = sizeof(error); \
        cr_expect_eq(call, status, "%s", error.message); \
        EXPECT_HAS(error.message, part); \
    } while (0)

static inline void *allocate(uint64_t size_bytes)
{
    void *pointer = NULL;

    ASSERT_OK(table->mem_alloc(handle, size_bytes, 0, 0, &pointer, &error));
    return pointer;
}

static inline void look_around(void)
{
    cr_assert_eq(ds_accel_instance(context, &table, &instance), DS_ACCEL_OK);
    handle = ds_accel_device_handle(device);
    ASSERT_OK(table->stream_create(handle, 0, 0, &stream, &error));
}

static inline void start(void)
{
    struct ds_accel_options options = test_options();

    options.accelerator = "mock";
    setenv("DS_ACCEL_LAYERS", "validate", 1);
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK);
    look_around();
}

static inline void start_far(void)
{
    setenv("DS_ACCEL_LAYERS", "validate", 1);
    context = far_start(&device);
    look_around();
}

static inline void stop(void)
{
    table->stream_destroy(stream);
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

static inline uint64_t pinned(void)
{
    struct ds_accel_pinned_stats stats = {.struct_size = sizeof(stats)};

    cr_expect_eq(ds_accel_pinned_stats(device, &stats), DS_ACCEL_OK);
    return stats.allocated_bytes;
}

#endif
