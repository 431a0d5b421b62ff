/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Functions shared by the tests of the cpu plugin: opening and closing a context and a device. */
#ifndef DS_ACCEL_TESTS_PLUGINS_CPU_H
#define DS_ACCEL_TESTS_PLUGINS_CPU_H

#include "fixture.h"
#include "table.h"

/* The open context and device, set by open_cpu(); close_cpu() destroys the context. */
static ds_accel_t *context;
static ds_accel_device_t *device;
static const struct ds_accel_plugin *table;
static ds_accel_plugin_device_t *handle;
static struct ds_accel_error error = {.struct_size = sizeof(error)};

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
