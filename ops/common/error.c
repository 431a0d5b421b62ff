/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "common/error.h"

#include <stdio.h>

int32_t ops__error_list(struct ds_accel_error *error, int32_t code, const char *call,
                        const char *format, va_list values)
{
    int written;

    if (error) {
        error->code = code;
        error->vendor_code = 0;
        error->vendor_text[0] = '\0';
        written = snprintf(error->message, sizeof(error->message), "%s: ", call);
        vsnprintf(error->message + written, sizeof(error->message) - (size_t)written, format,
                  values);
    }
    return code;
}

int32_t ops__error(struct ds_accel_error *error, int32_t code, const char *call, const char *format,
                   ...)
{
    va_list values;

    va_start(values, format);
    ops__error_list(error, code, call, format, values);
    va_end(values);
    return code;
}
