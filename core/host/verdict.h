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

/* Return the remaining validity of a record's verdict; 0: the verdict has expired. */
DS_ACCEL__PRIVATE uint64_t ds_accel__record_expires_in_ms(const struct ds_accel__record *record,
                                                          uint64_t now_ms);
DS_ACCEL__PRIVATE bool ds_accel__record_is_useful(const struct ds_accel__record *record,
                                                  uint64_t now_ms);

/*
 * Functions called around an evaluation. The store is opened once, when it is first needed.
 * is_isolated: plugins are probed in helper processes; otherwise nothing is stored. Fail only with
 * ERR_NO_MEMORY. The caller of any function of this header holds context->lock.
 */
DS_ACCEL__PRIVATE void ds_accel__verdicts_begin(ds_accel_t *context);
DS_ACCEL__PRIVATE int32_t ds_accel__verdicts_open(ds_accel_t *context, bool is_isolated);
DS_ACCEL__PRIVATE int32_t ds_accel__verdicts_lock(ds_accel_t *context);
/*
 * Like ds_accel__verdicts_lock(), without waiting: results are stored only if no other process
 * holds the lock.
 */
int32_t ds_accel__verdicts_try_lock(ds_accel_t *context);
DS_ACCEL__PRIVATE int32_t ds_accel__verdicts_store(ds_accel_t *context);
DS_ACCEL__PRIVATE void ds_accel__verdicts_end(ds_accel_t *context);
/*
 * Set the candidate's key, and use the stored results of the gates trust to hash for the file that
 * ds_accel__trust_stat() checked. False: there is no valid result, or context->asks_anew is set. If
 * the store is not open, do nothing and return false.
 */
bool ds_accel__verdict_recall_file(struct ds_accel__candidate *candidate);
/*
 * Use the stored verdict if it is still valid. only_good: and if its state is AVAILABLE. If
 * context->asks_anew is set, use no stored verdict. In both cases, a valid verdict that was stored
 * since this evaluation began is used.
 */
bool ds_accel__verdict_recall(struct ds_accel__candidate *candidate, bool only_good);
/*
 * Store a new verdict. If the plugin crashed or timed out, also add a strike; otherwise remove the
 * strikes, unless the last strike is from a load. A result that is not caused by the plugin, or may
 * not last, is not stored.
 */
int32_t ds_accel__verdict_keep(struct ds_accel__candidate *candidate);
int32_t ds_accel__verdict_forget(struct ds_accel__candidate *candidate);
/*
 * Remove all strikes if the last strike is from a load and the store is writable. Called after the
 * plugin was loaded and started in this process.
 */
void ds_accel__verdict_loaded(struct ds_accel__candidate *candidate);
/*
 * Check the gate quarantine: after two strikes a plugin is not probed for some time. A plugin that
 * is forced by name passes, and its strikes and verdict are removed.
 */
int32_t ds_accel__quarantine_check(struct ds_accel__candidate *candidate, bool is_forced,
                                   bool *passed_out);
#endif
