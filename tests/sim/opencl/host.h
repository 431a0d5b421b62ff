/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The least of a host that the plugin opencl needs: options, no log. */
#ifndef DS_ACCEL_TESTS_SIM_OPENCL_HOST_H
#define DS_ACCEL_TESTS_SIM_OPENCL_HOST_H

#include "plugin-api.h"

#include <stdio.h>
#include <time.h>

static const char *host_library; /* the option library; NULL: unset */

static void log_line(const struct ds_accel_host *host, uint32_t level, const char *message)
{
    (void)host;
    (void)level;
    (void)message;
}

static int32_t log_enabled(const struct ds_accel_host *host, uint32_t level, uint32_t *enabled_out)
{
    (void)host;
    (void)level;
    *enabled_out = 0;
    return DS_ACCEL_OK;
}

static int32_t config_get(const struct ds_accel_host *host, const char *key, char *value,
                          uint32_t value_size, uint32_t *needed_out)
{
    const char *text = strcmp(key, "library") == 0       ? host_library
                       : strcmp(key, "device_type") == 0 ? "all"
                                                         : NULL;

    (void)host;
    (void)needed_out;
    if (text == NULL) {
        return DS_ACCEL_ERR_NOT_FOUND;
    }
    snprintf(value, value_size, "%s", text);
    return DS_ACCEL_OK;
}

static uint64_t clock_ns(const struct ds_accel_host *host)
{
    struct timespec now;

    (void)host;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const void *extension(const struct ds_accel_host *host, const char *id)
{
    (void)host;
    (void)id;
    return NULL;
}

static const struct ds_accel_host host = {
    .struct_size = sizeof(host),
    .abi_major = DS_ACCEL_ABI_MAJOR,
    .features = DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE,
    .host_version = "test",
    .log = log_line,
    .log_enabled = log_enabled,
    .config_get = config_get,
    .clock_ns = clock_ns,
    .machine_root = "",
    .extension = extension,
};

#endif
