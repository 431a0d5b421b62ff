/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Status names, the thread's last error, descriptions of plugins' errors, and findings. */
#include "base/text.h"
#include "base/trust.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Large enough for two paths, or for a few lines of configuration problems. Longer texts are
 * truncated, with a mark. */
static _Thread_local char last_error[3 * PATH_MAX];

const char *ds_accel_last_error(void)
{
    return last_error;
}

int32_t ds_accel__error(int32_t status, const char *format, ...)
{
    va_list arguments;
    int error = errno;
    int length;

    va_start(arguments, format);
    length = vsnprintf(last_error, sizeof(last_error), format, arguments);
    va_end(arguments);
    ds_accel__truncate(last_error, sizeof(last_error), length > 0 ? (size_t)length : 0);
    /*
     * Replace unprintable characters: the message may contain names and paths from outside the
     * library, and programs print it on terminals.
     */
    ds_accel__sanitize(last_error, sizeof(last_error));
    errno = error;
    return status;
}

int32_t ds_accel__error_lines(int32_t status, const char *lines)
{
    assert(status < 0);
    ds_accel__copy(last_error, sizeof(last_error), lines);
    ds_accel__truncate(last_error, sizeof(last_error), strlen(lines));
    return status;
}

void ds_accel__error_memory(void)
{
    ds_accel__error(DS_ACCEL_ERR_NO_MEMORY, "host memory is exhausted");
}

void ds_accel__describe(int32_t status, const struct ds_accel_error *error, char *text,
                        size_t text_size)
{
    struct ds_accel_error copy = *error;
    const char *message = copy.message;

    ds_accel__sanitize(copy.message, sizeof(copy.message));
    ds_accel__sanitize(copy.vendor_text, sizeof(copy.vendor_text));
    if (message[0] == '\0') {
        message = status == DS_ACCEL_ERR_UNSUPPORTED ? "this accelerator has no such function"
                                                     : ds_accel_status_name(status);
    }
    if (copy.vendor_code != 0 || copy.vendor_text[0] != '\0') {
        snprintf(text, text_size, "%s: %s (%lld)", message, copy.vendor_text,
                 (long long)copy.vendor_code);
    } else {
        snprintf(text, text_size, "%s", message);
    }
}

int32_t ds_accel__fail(int32_t status, const struct ds_accel_error *error)
{
    char text[400];

    ds_accel__describe(status, error, text, sizeof(text));
    return ds_accel__error(status, "%s", text);
}

void ds_accel__finding_set(struct ds_accel__finding *finding, enum ds_accel__reason_id reason,
                           const char *format, ...)
{
    va_list arguments;
    int length;

    assert(reason != DS_ACCEL__REASON_NONE);
    finding->reason = reason;
    va_start(arguments, format);
    length = vsnprintf(finding->detail, sizeof(finding->detail), format, arguments);
    va_end(arguments);
    ds_accel__truncate(finding->detail, sizeof(finding->detail), length > 0 ? (size_t)length : 0);
}

const char *ds_accel_status_name(int32_t status)
{
    static const char *const names[] = {
        "DS_ACCEL_OK",
        "DS_ACCEL_ERR_INVALID",
        "DS_ACCEL_ERR_NO_MEMORY",
        "DS_ACCEL_ERR_UNSUPPORTED",
        "DS_ACCEL_ERR_DRIVER",
        "DS_ACCEL_ERR_NOT_FOUND",
        "DS_ACCEL_ERR_NO_DEVICE",
        "DS_ACCEL_ERR_PERMISSION",
        "DS_ACCEL_ERR_BUSY",
        "DS_ACCEL_ERR_TIMEOUT",
        "DS_ACCEL_ERR_DEVICE_LOST",
        "DS_ACCEL_ERR_IO",
        "DS_ACCEL_ERR_STATE",
        "DS_ACCEL_ERR_LIMIT",
        "DS_ACCEL_ERR_CONFIG",
        "DS_ACCEL_ERR_NOT_USABLE",
        "DS_ACCEL_ERR_ABI",
        "DS_ACCEL_ERR_UNTRUSTED",
        "DS_ACCEL_ERR_INTERNAL",
    };

    if (status == DS_ACCEL_NOT_READY) {
        return "DS_ACCEL_NOT_READY";
    }
    if (status > 0 || status <= -(int32_t)ARRAY_SIZE(names)) {
        return "DS_ACCEL_ERR_INTERNAL";
    }
    return names[-status];
}
