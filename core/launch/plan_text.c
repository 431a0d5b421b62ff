/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "launch/plan_json.h"

int32_t ds_accel__plan_write_text(const struct ds_accel__plan *plan, ds_accel_write_t write,
                                  void *user_data)
{
    return ds_accel__plan_write_json(plan, write, user_data);
}
