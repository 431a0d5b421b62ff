/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Stored verdicts: verdict.c. */
#ifndef DS_ACCEL_HOST_VERDICT_H
#define DS_ACCEL_HOST_VERDICT_H

#include "base/private.h"
#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

struct ds_accel__candidate;
struct ds_accel__record;

/* The remaining validity of a record's verdict; 0: it has expired. */
DS_ACCEL__PRIVATE uint64_t ds_accel__record_expires_in_ms(const struct ds_accel__record *record,
                                                          uint64_t now_ms);
DS_ACCEL__PRIVATE bool ds_accel__record_is_useful(const struct ds_accel__record *record,
                                                  uint64_t now_ms);

/*
 * Called around an evaluation. The store is opened once, when it is first needed; is_isolated:
 * plugins are probed in helpers, else nothing is stored. ERR_NO_MEMORY. Lock held, as for all of
 * these functions.
 */
DS_ACCEL__PRIVATE void ds_accel__verdicts_begin(ds_accel_t *context);
DS_ACCEL__PRIVATE int32_t ds_accel__verdicts_open(ds_accel_t *context, bool is_isolated);
DS_ACCEL__PRIVATE int32_t ds_accel__verdicts_lock(ds_accel_t *context);
/* The same without waiting: results are stored only if no other process holds the lock. */
int32_t ds_accel__verdicts_try_lock(ds_accel_t *context);
DS_ACCEL__PRIVATE int32_t ds_accel__verdicts_store(ds_accel_t *context);
DS_ACCEL__PRIVATE void ds_accel__verdicts_end(ds_accel_t *context);
/*
 * Take the stored results of the gates trust to hash for the file that ds_accel__trust_stat() saw.
 */
bool ds_accel__verdict_recall_file(struct ds_accel__candidate *candidate);
/* Take the stored verdict if it is still valid; only_good: and is AVAILABLE. */
bool ds_accel__verdict_recall(struct ds_accel__candidate *candidate, bool only_good);
/* Store a new verdict or a strike. */
int32_t ds_accel__verdict_keep(struct ds_accel__candidate *candidate);
int32_t ds_accel__verdict_forget(struct ds_accel__candidate *candidate);
/*
 * The plugin was loaded and started in this process: remove strikes from earlier loads, if
 * possible.
 */
void ds_accel__verdict_loaded(struct ds_accel__candidate *candidate);
/*
 * The gate quarantine: a plugin is not probed for a while after two strikes, unless it is forced by
 * name.
 */
int32_t ds_accel__quarantine_check(struct ds_accel__candidate *candidate, bool is_forced,
                                   bool *passed_out);
#endif
