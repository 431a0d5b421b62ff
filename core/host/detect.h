/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Choosing: detect.c. */
#ifndef DS_ACCEL_HOST_DETECT_H
#define DS_ACCEL_HOST_DETECT_H

#include "base/private.h"
#include "ds_accel.h"

#include <stdbool.h>

struct ds_accel__candidate;

/* "cuda" defers "xpu": the candidate that goes first, or NULL. Evaluates what it asks about. */
int32_t ds_accel__deferred_to(ds_accel_t *context, struct ds_accel__candidate *candidate,
                              struct ds_accel__candidate **to_out);
/* ds_accel_detect() that starts nothing in this process, where helpers have rehearsed it. */
int32_t ds_accel__choose(ds_accel_t *context);
int32_t ds_accel__detect_locked(ds_accel_t *context);

#endif
