/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Starting a plugin: start.c. */
#ifndef DS_ACCEL_HOST_START_H
#define DS_ACCEL_HOST_START_H

#include "base/private.h"
#include "ds_accel.h"

#include <stddef.h>

struct ds_accel__candidate;

/*
 * Call init and device_count, and set candidate->start to the result. text describes a failure.
 * *instance_out is NULL only if init failed: if device_count failed, the caller must shut the
 * instance down. Caller holds the plugin lock.
 */
void ds_accel__start_instance(struct ds_accel__candidate *candidate,
                              ds_accel_plugin_instance_t **instance_out, char *text, size_t size);
/* Record the result of a rehearsal in the gate start. */
void ds_accel__start_judge(struct ds_accel__candidate *candidate, const char *text);
DS_ACCEL__PRIVATE void ds_accel__start_fail(struct ds_accel__candidate *candidate,
                                            const char *text);

#endif
