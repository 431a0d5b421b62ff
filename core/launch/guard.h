/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The process in front of a job: guard.c. */
#ifndef DS_ACCEL_LAUNCH_GUARD_H
#define DS_ACCEL_LAUNCH_GUARD_H

#include "ds_accel.h"

struct ds_accel_launch;

/*
 * Start a planned job in a supervisor process, and wait for its end. *exit_code_out is the job's
 * exit code; *result_out its result as JSON, a new text, unless result_out is NULL. ERR_BUSY the
 * master's port is taken; ERR_LIMIT; ERR_NO_MEMORY: nothing was started, unless launch->has_run is
 * set. The caller's process is restored in every case, as ds_accel_launch_run() describes it.
 */
int32_t ds_accel__guard_run(struct ds_accel_launch *launch, int32_t *exit_code_out,
                            char **result_out);

#endif
