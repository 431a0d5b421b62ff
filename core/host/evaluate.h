/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* From candidates to verdicts: evaluate.c, check.c. */
#ifndef DS_ACCEL_HOST_EVALUATE_H
#define DS_ACCEL_HOST_EVALUATE_H

#include "base/private.h"
#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

struct ds_accel__candidate;

/*
 * Called around all calls that evaluate candidates. begin discards what was read from the machine;
 * end stores the results, closes all files and stops the helpers. Caller holds context->lock.
 */
DS_ACCEL__PRIVATE void ds_accel__evaluation_begin(ds_accel_t *context);
DS_ACCEL__PRIVATE void ds_accel__evaluation_end(ds_accel_t *context);
/* Bring the candidate to the phase CHECKED. *passed_out is false if a gate failed. */
DS_ACCEL__PRIVATE int32_t ds_accel__candidate_check_file(struct ds_accel__candidate *candidate,
                                                         bool *passed_out);
/*
 * Evaluate candidates: check the gates of each candidate that has no verdict yet. ERR_NO_MEMORY;
 * ERR_INTERNAL if poll() fails; else DS_ACCEL_OK regardless of the verdicts.
 */
int32_t ds_accel__candidates_evaluate(ds_accel_t *context, struct ds_accel__candidate **candidates,
                                      size_t count);
DS_ACCEL__PRIVATE int32_t ds_accel__candidate_evaluate(struct ds_accel__candidate *candidate);
/*
 * Like ds_accel__candidate_evaluate(), for a candidate that was requested by name and whose devices
 * may be woken.
 */
int32_t ds_accel__candidate_evaluate_named(struct ds_accel__candidate *candidate);
/* Return the candidate to the phase FOUND. A plugin that is loaded in this process stays loaded. */
void ds_accel__candidate_forget(struct ds_accel__candidate *candidate);
/* True if the candidate failed at the gate power: a probe would wake its sleeping devices. */
bool ds_accel__candidate_is_asleep(const struct ds_accel__candidate *candidate);
/*
 * Like ds_accel_check(), which wakes sleeping devices only for a single name. If may_wake is false,
 * it does not wake them for a single name either (check.c).
 */
DS_ACCEL__PRIVATE int32_t ds_accel__check(ds_accel_t *context, const char *name, bool may_wake);

#endif
