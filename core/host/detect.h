/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Choosing: detect.c. */
#ifndef DS_ACCEL_CORE_DETECT_H
#define DS_ACCEL_CORE_DETECT_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

struct ds_accel__candidate;

/* Around whatever evaluates candidates: nothing is kept open or running after it. Lock held. */
int32_t ds_accel__asking_begin(ds_accel_t *context); /* ERR_NO_MEMORY; end it all the same */
void ds_accel__asking_end(ds_accel_t *context);
/* All gates and the probe, once each. ERR_NO_MEMORY, else DS_ACCEL_OK whatever the verdicts. */
int32_t ds_accel__candidates_evaluate(ds_accel_t *context, struct ds_accel__candidate **candidates,
                                      size_t count);
int32_t ds_accel__candidate_evaluate(struct ds_accel__candidate *candidate);
/* The same for one that was asked for by name, which may wake its devices. */
int32_t ds_accel__candidate_evaluate_named(struct ds_accel__candidate *candidate);
/* ds_accel_check() that, even for one name, wakes no device unless may_wake. */
int32_t ds_accel__check(ds_accel_t *context, const char *name, bool may_wake);
/* init and device_count; on failure the candidate's state says why, and the status is negative. */
int32_t ds_accel__candidate_start(struct ds_accel__candidate *candidate,
                                  ds_accel_plugin_instance_t **instance_out, uint32_t *count_out);
/* start.c. Init and the number of devices, into candidate->start; text: what failed. Plugin lock
 * held. */
void ds_accel__start_instance(struct ds_accel__candidate *candidate,
                              ds_accel_plugin_instance_t **instance_out, char *text, size_t size);
/* What a rehearsal means for the gate. */
void ds_accel__start_judge(struct ds_accel__candidate *candidate, const char *text);
void ds_accel__start_fail(struct ds_accel__candidate *candidate, const char *text);
/* "cuda" defers "xpu": the candidate that goes first, or NULL. Evaluates what it asks about. */
int32_t ds_accel__deferred_to(ds_accel_t *context, struct ds_accel__candidate *candidate,
                              struct ds_accel__candidate **to_out);
/* ds_accel_detect() that starts nothing in this process, where helpers have rehearsed it. */
int32_t ds_accel__choose(ds_accel_t *context);
int32_t ds_accel__detect_locked(ds_accel_t *context);

#endif
