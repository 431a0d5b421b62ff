/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the tests of the cpu plugin share: the device at hand, and checks of a call. */
#ifndef DS_ACCEL_TEST_CPU_H
#define DS_ACCEL_TEST_CPU_H

#include "fixture.h"

/* The device at hand; what open_cpu() makes and close_cpu() takes away. */
static ds_accel_t *context;
static ds_accel_device_t *device;
static const struct ds_accel_plugin *table;
static ds_accel_plugin_device_t *handle;
static struct ds_accel_error error = {.struct_size = sizeof(error)};

#define EXPECT_OK(call) cr_expect_eq(call, DS_ACCEL_OK, "%s", error.message)
#define ASSERT_OK(call) cr_assert_eq(call, DS_ACCEL_OK, "%s", error.message)

/* The call fails with this status, and says so in words that hold part. */
#define EXPECT_FAIL(call, status, part) \
    do { \
        memset(&error, 0, sizeof(error)); \
        error.struct_size = sizeof(error); \
        cr_expect_eq(call, status, "%s", error.message); \
        cr_expect_eq(error.code, status); \
        EXPECT_HAS(error.message, part); \
    } while (0)

static inline ds_accel_t *create_cpu(const char *machine_root)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *made = NULL;

    options.accelerator = "cpu";
    options.package_config_dir = TEST_SOURCE "/conf";
    options.machine_root = machine_root;
    cr_assert_eq(ds_accel_create(&options, &made), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_detect(made), DS_ACCEL_OK, "%s", ds_accel_last_error());
    return made;
}

static inline void open_cpu_of(const char *machine_root)
{
    context = create_cpu(machine_root);
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK);
    table = ds_accel_device_table(device);
    handle = ds_accel_device_handle(device);
}

static inline void open_cpu(void)
{
    open_cpu_of(NULL);
}

static inline void close_cpu(void)
{
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

static inline void count_up(void *user_data, int32_t status)
{
    cr_expect_eq(status, DS_ACCEL_OK);
    (*(int *)user_data)++;
}

#endif
