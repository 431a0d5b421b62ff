/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "common/error.h"

#include <stdio.h>

/* Write the details over the caller's struct, which may be shorter or longer. */
static void write_details(struct ds_accel_error *error, struct ds_accel_error *details)
{
    size_t size = error->struct_size;

    /* A struct that ends within a text has the end of the text, too. */
    if (size > offsetof(struct ds_accel_error, vendor_text) && size < sizeof(*details))
        ((char *)details)[size - 1] = '\0';
    ds_accel_write(error, details, sizeof(*details));
}

int32_t ops__error_list(struct ds_accel_error *error, int32_t code, const char *call,
                        const char *format, va_list values)
{
    struct ds_accel_error details = {.code = code};
    int written;

    if (error) {
        written = snprintf(details.message, sizeof(details.message), "%s: ", call);
        vsnprintf(details.message + written, sizeof(details.message) - (size_t)written, format,
                  values);
        write_details(error, &details);
    }
    return code;
}

void ops__error_vendor(struct ds_accel_error *error, int64_t code, const char *text)
{
    if (error && DS_ACCEL_HAS(error, struct ds_accel_error, vendor_code))
        error->vendor_code = code;
    if (error && DS_ACCEL_HAS(error, struct ds_accel_error, vendor_text))
        snprintf(error->vendor_text, sizeof(error->vendor_text), "%s", text);
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
