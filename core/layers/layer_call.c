/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Operations on a call that every layer uses: refusing it, and reading one of its outputs. */
#include "base/text.h"
#include "host/context.h"
#include "layers/layer.h"

#include <stdarg.h>
#include <stdio.h>

static void vrefuse(struct ds_accel__call *call, int32_t status, const char *format,
                    va_list arguments)
{
    struct ds_accel_error *error = &call->own.error;
    int length =
        snprintf(error->message, sizeof(error->message), "%s: ", ds_accel__slots[call->slot].name);

    vsnprintf(error->message + length, sizeof(error->message) - (size_t)length, format, arguments);
    error->code = status;
    error->vendor_code = 0;
    error->vendor_text[0] = '\0';
    call->status = status;
    call->is_refused = true;
}

void ds_accel__layer_refuse(struct ds_accel__call *call, int32_t status, const char *format, ...)
{
    va_list arguments;
    char site[256];

    va_start(arguments, format);
    vrefuse(call, status, format, arguments);
    va_end(arguments);
    if (ds_accel__slots[call->slot].is_void && call->stack != NULL) {
        ds_accel__layer_site(call->site, site, sizeof(site));
        ds_accel__log(&call->stack->context->log, "validate", DS_ACCEL_LOG_ERROR,
                      "%s, at %s; the call was not made", call->own.error.message, site);
    }
}

void *ds_accel__layer_output(const struct ds_accel__call *call, uint32_t position)
{
    void *const *place = (void *const *)call->arguments[position].pointer;

    return place != NULL ? *place : NULL;
}
