/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The choice of the accelerator: detect.c. */
#ifndef DS_ACCEL_HOST_DETECT_H
#define DS_ACCEL_HOST_DETECT_H

#include "base/private.h"
#include "ds_accel.h"

#include <stdbool.h>

struct ds_accel__candidate;

/*
 * Find the first candidate in the list "defers_to" of a candidate's variant that is available and
 * not demand-only; NULL if there is none. Evaluates the candidates of the list up to the one found.
 * ERR_NO_MEMORY.
 */
int32_t ds_accel__deferred_to(ds_accel_t *context, struct ds_accel__candidate *candidate,
                              struct ds_accel__candidate **to_out);
/*
 * Like ds_accel_detect(), but if a helper has already rehearsed the start of the chosen plugin, the
 * plugin is not started in this process.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__choose(ds_accel_t *context);
int32_t ds_accel__detect_locked(ds_accel_t *context);

#endif
