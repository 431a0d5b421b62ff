/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The facts about the chosen accelerator, with the program's settings merged in. */
#include "runtime/facts.h"

int32_t ds_accel_backend_info(ds_accel_t *context, struct ds_accel_backend_info *info_out)
{
    int32_t status;
    const struct ds_accel__known *known = ds_accel__known_get(context, info_out, &status);
    struct ds_accel_backend_info info;

    if (known == NULL) {
        return status;
    }
    info = known->info;
    if (ds_accel_communication_backend(context, info.communication_backend,
                                       sizeof(info.communication_backend)) < 0) {
        info.communication_backend[0] = '\0';
    }
    if (ds_accel_compile_backend(context, info.compile_backend, sizeof(info.compile_backend)) < 0) {
        info.compile_backend[0] = '\0';
    }
    ds_accel_write(info_out, &info, sizeof(info));
    return DS_ACCEL_OK;
}
