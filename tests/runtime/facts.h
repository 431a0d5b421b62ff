/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the tests of facts: contexts, and a backend with only the required functions. */
#ifndef DS_ACCEL_TESTS_RUNTIME_FACTS_H
#define DS_ACCEL_TESTS_RUNTIME_FACTS_H

#include "fixture.h"

/* A context in which this accelerator is selected. */
static inline ds_accel_t *start(const char *accelerator)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    options.accelerator = accelerator;
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    return context;
}

/* The backend "tiny": it has only the required functions, and reports no further facts. */
static int tiny_state;

static inline int32_t tiny_probe(const struct ds_accel_host *host, struct ds_accel_verdict *verdict,
                                 struct ds_accel_error *error)
{
    (void)host;
    (void)error;
    verdict->state = DS_ACCEL_PROBE_AVAILABLE;
    verdict->device_count = 3;
    return DS_ACCEL_OK;
}

static inline int32_t tiny_init(const struct ds_accel_host *host,
                                ds_accel_plugin_instance_t **instance_out,
                                struct ds_accel_error *error)
{
    (void)host;
    (void)error;
    *instance_out = (ds_accel_plugin_instance_t *)&tiny_state;
    return DS_ACCEL_OK;
}

static inline void tiny_shutdown(ds_accel_plugin_instance_t *instance)
{
    (void)instance;
}

static inline int32_t tiny_count(ds_accel_plugin_instance_t *instance, uint32_t *count_out,
                                 struct ds_accel_error *error)
{
    (void)instance;
    (void)error;
    *count_out = 3;
    return DS_ACCEL_OK;
}

static inline int32_t tiny_open(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                                ds_accel_plugin_device_t **device_out, struct ds_accel_error *error)
{
    (void)instance;
    (void)device_index;
    (void)error;
    *device_out = (ds_accel_plugin_device_t *)&tiny_state;
    return DS_ACCEL_OK;
}

static inline void tiny_close(ds_accel_plugin_device_t *device)
{
    (void)device;
}

static inline const struct ds_accel_plugin *tiny_entry(const struct ds_accel_host *host)
{
    static const struct ds_accel_plugin table = {
        .struct_size = sizeof(table),
        .abi_major = DS_ACCEL_ABI_MAJOR,
        .name = "tiny",
        .vendor = "tests",
        .version = "1",
        .probe = tiny_probe,
        .init = tiny_init,
        .shutdown = tiny_shutdown,
        .device_count = tiny_count,
        .device_open = tiny_open,
        .device_close = tiny_close,
    };

    (void)host;
    return &table;
}

static inline ds_accel_t *start_tiny(void)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    options.accelerator = "tiny";
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_register(context, tiny_entry), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    return context;
}

#endif
