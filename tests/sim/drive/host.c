/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A minimal host: warnings on stderr, options only from the environment, no extension. */
#include "clock.h"
#include "drive.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void host_log(const struct ds_accel_host *host, uint32_t level, const char *message)
{
    (void)host;
    if (level <= DS_ACCEL_LOG_WARN) {
        fprintf(stderr, "log: %s\n", message);
    }
}

static int32_t host_log_enabled(const struct ds_accel_host *host, uint32_t level, uint32_t *enabled)
{
    (void)host;
    *enabled = level <= DS_ACCEL_LOG_WARN;
    return DS_ACCEL_OK;
}

static int32_t host_config_get(const struct ds_accel_host *host, const char *key, char *value,
                               uint32_t value_size, uint32_t *needed_out)
{
    const char *text;
    char name[128];
    size_t size;

    snprintf(name, sizeof(name), "DS_ACCEL_%s_%s", (const char *)host->host_data, key);
    for (char *at = name; *at != '\0'; at++) {
        *at = (char)toupper((unsigned char)*at);
    }
    text = getenv(name);
    if (text == NULL) {
        return DS_ACCEL_ERR_NOT_FOUND;
    }
    size = strlen(text) + 1;
    if (needed_out != NULL) {
        *needed_out = (uint32_t)size;
    }
    if (size > value_size) {
        return DS_ACCEL_ERR_LIMIT;
    }
    memcpy(value, text, size);
    return DS_ACCEL_OK;
}

static uint64_t host_clock_ns(const struct ds_accel_host *host)
{
    (void)host;
    return now_ns();
}

static const void *host_extension(const struct ds_accel_host *host, const char *id)
{
    (void)host;
    (void)id;
    return NULL;
}

const struct ds_accel_host *drive_host(const char *plugin)
{
    static struct ds_accel_host host = {
        .struct_size = sizeof(host),
        .abi_major = DS_ACCEL_ABI_MAJOR,
        .abi_minor = DS_ACCEL_ABI_MINOR,
        .features = DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE,
        .host_version = "0",
        .log = host_log,
        .log_enabled = host_log_enabled,
        .config_get = host_config_get,
        .clock_ns = host_clock_ns,
        .extension = host_extension,
    };
    const char *root = getenv("DS_ACCEL_ROOT");

    host.host_data = (void *)(uintptr_t)plugin;
    host.machine_root = root != NULL ? root : "";
    return &host;
}
