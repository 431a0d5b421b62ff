/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Work in a child process with a deadline, whose result is JSON: worker.c. */
#ifndef DS_ACCEL_LAUNCH_WORKER_H
#define DS_ACCEL_LAUNCH_WORKER_H

#include "ds_accel.h"

#include <jansson.h>
#include <stdbool.h>

/* Where the work writes its results. */
struct ds_accel__worker {
    int fd;
};

/* Runs in the child. user_data is a copy of the parent's. */
typedef void (*ds_accel__worker_work_t)(struct ds_accel__worker *worker, void *user_data);

/* Write one result. Called by the work. A result that memory does not suffice for is skipped. */
void ds_accel__worker_result(struct ds_accel__worker *worker, const json_t *result);
/*
 * Run the work in a child process, and add its results to a new array, also those that were written
 * before the child crashed or was killed at the deadline. The caller is single-threaded.
 *
 * results_out  caller; json_decref()
 * is_late_out  the child was killed at the deadline
 * ERR_NO_MEMORY; ERR_LIMIT no process or descriptor is left
 */
int32_t ds_accel__worker_run(ds_accel__worker_work_t work, void *user_data, uint64_t timeout_ns,
                             json_t **results_out, bool *is_late_out);

#endif
