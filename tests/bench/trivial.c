/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "trivial.h"

/* Has the same signature and check as the cpu plugin's device_synchronize. */
int32_t bench_trivial(const void *handle, struct ds_accel_error *error)
{
    (void)error;
    return handle == NULL ? DS_ACCEL_ERR_INVALID : DS_ACCEL_OK;
}
