/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Errors and warnings for a detection that failed or fell back to cpu: outcome.c. */
#ifndef DS_ACCEL_HOST_OUTCOME_H
#define DS_ACCEL_HOST_OUTCOME_H

#include "ds_accel.h"

struct ds_accel__candidate;

/*
 * Report that no candidate has this name. source describes what requested the name, for the error
 * text. ERR_NOT_USABLE.
 */
int32_t ds_accel__fail_unknown(ds_accel_t *context, const char *name, const char *source);
/* Report that the candidate forced by source cannot be used. ERR_NOT_USABLE. */
int32_t ds_accel__fail_forced(const struct ds_accel__candidate *candidate, const char *source);
/* Report that no candidate was chosen. ERR_UNTRUSTED, ERR_LIMIT or ERR_NO_DEVICE. */
int32_t ds_accel__fail_none(const ds_accel_t *context);
/* Log a warning that this candidate failed to start. Detection then tries the next candidate. */
void ds_accel__warn_start_failed(const struct ds_accel__candidate *candidate);
/* Log why cpu was chosen. */
void ds_accel__warn_fallback(const ds_accel_t *context);

#endif
