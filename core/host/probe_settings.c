/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Settings of probing from the configuration: "probe", and "tolerate" of a backend. */
#include "base/text.h"
#include "config/config.h"
#include "config/env.h"
#include "host/context.h"
#include "host/probe.h"
#include "host/prober.h"
#include "host/registry.h"

#include <string.h>

bool ds_accel__probe_is_isolated(const ds_accel_t *context)
{
    const char *mode = context->env.values[DS_ACCEL__VARIABLE_PROBE];

    if (mode == NULL) {
        mode = json_string_value(ds_accel__config_get(&context->config, "probe", "mode", NULL));
    }
    return mode == NULL || strcmp(mode, "isolated") == 0;
}

long long ds_accel__probe_setting(const ds_accel_t *context, const char *key, long long otherwise)
{
    json_t *value = ds_accel__config_get(&context->config, "probe", key, NULL);

    return json_is_integer(value) ? (long long)json_integer_value(value) : otherwise;
}

size_t ds_accel__probe_width(const ds_accel_t *context)
{
    long long width =
        ds_accel__probe_is_isolated(context) ? ds_accel__probe_setting(context, "parallel", 1) : 1;

    return width < 1                             ? 1
           : width > DS_ACCEL__PROBE_WIDTH_LIMIT ? DS_ACCEL__PROBE_WIDTH_LIMIT
                                                 : (size_t)width;
}

const char *ds_accel__probe_containment(const ds_accel_t *context)
{
    const char *name =
        json_string_value(ds_accel__config_get(&context->config, "probe", "containment", NULL));

    return name != NULL ? name : "auto";
}

bool ds_accel__conduct_is_tolerated(const struct ds_accel__candidate *candidate,
                                    enum ds_accel__reason_id reason)
{
    json_t *codes =
        ds_accel__config_backend(&candidate->host.context->config, candidate->name, "tolerate");

    for (size_t i = 0; i < json_array_size(codes); i++) {
        if (strcmp(json_string_value(json_array_get(codes, i)), ds_accel__reason_code(reason)) ==
            0) {
            return true;
        }
    }
    return false;
}
