/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Tables of functions through which host and runtime call the parts of the library that depend on
 * host and runtime.
 */
#include "host/hooks.h"
#include "base/text.h"
#include "host/layers.h"

uint32_t ds_accel__layers_on;
const struct ds_accel__layer_hooks *ds_accel__layer_hooks;
const struct ds_accel__runtime_hooks *ds_accel__runtime_hooks;
const struct ds_accel__source *ds_accel__recorded_source;

int32_t ds_accel__tools_missing(const char *what)
{
    return ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED,
                           "%s needs libds_accel_tools.so, which is not loaded: link the program "
                           "with -lds_accel_tools",
                           what);
}
