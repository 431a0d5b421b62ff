/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Helpers for all plugins of this project: describe a failure, read the clock, read options. */
#ifndef DS_ACCEL_PLUGINS_COMMON_PLUGIN_UTIL_H
#define DS_ACCEL_PLUGINS_COMMON_PLUGIN_UTIL_H

#include "plugin-api.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Fill *error and return status, for `return plugin_fail(error, DS_ACCEL_ERR_..., "...", ...)`. */
__attribute__((format(printf, 3, 4), unused)) static int32_t
plugin_fail(struct ds_accel_error *error, int32_t status, const char *format, ...)
{
    struct ds_accel_error details;
    va_list arguments;

    memset(&details, 0, sizeof(details));
    details.code = status;
    va_start(arguments, format);
    vsnprintf(details.message, sizeof(details.message), format, arguments);
    va_end(arguments);
    ds_accel_write(error, &details, sizeof(details));
    return status;
}

__attribute__((unused)) static uint64_t plugin_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Parse a decimal integer. Returns 0, or -1 if the text is anything else or out of range. */
__attribute__((unused)) static int plugin_parse_u64(const char *text, uint64_t *value_out)
{
    char *end;
    unsigned long long value;

    if (!isdigit((unsigned char)text[0])) {
        return -1;
    }
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0') {
        return -1;
    }
    *value_out = value;
    return 0;
}

/*
 * Read a numeric option into *value. If the option is unset, *value is not changed. Returns
 * DS_ACCEL_OK, or DS_ACCEL_ERR_INVALID with a message that contains the option and its text.
 */
__attribute__((unused)) static int32_t plugin_option_u64(const struct ds_accel_host *host,
                                                         const char *key, uint64_t *value,
                                                         struct ds_accel_error *error)
{
    char text[32];
    int32_t status = host->config_get(host, key, text, sizeof(text), NULL);

    if (status == DS_ACCEL_ERR_NOT_FOUND) {
        return DS_ACCEL_OK;
    }
    if (status < 0 || plugin_parse_u64(text, value) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "option %s: \"%s\" is not a whole number from 0 to 2^64-1", key,
                           status < 0 ? "(too long)" : text);
    }
    return DS_ACCEL_OK;
}

#endif
