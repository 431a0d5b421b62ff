/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The plan as JSON and as text: plan_json.c, plan_text.c. */
#ifndef DS_ACCEL_LAUNCH_PLAN_JSON_H
#define DS_ACCEL_LAUNCH_PLAN_JSON_H

#include "ds_accel_tools.h"
#include "launch/plan.h"

/*
 * Write a plan piece by piece, so that the size of a large job's plan costs no memory. ERR_IO:
 * write returned false; ERR_NO_MEMORY.
 */
int32_t ds_accel__plan_write_json(const struct ds_accel__plan *plan, ds_accel_write_t write,
                                  void *user_data);
int32_t ds_accel__plan_write_text(const struct ds_accel__plan *plan, ds_accel_write_t write,
                                  void *user_data);

#endif
