/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What is remembered, as verdicts: verdict.c. */
#ifndef DS_ACCEL_HOST_VERDICT_H
#define DS_ACCEL_HOST_VERDICT_H

#include "base/private.h"
#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

struct ds_accel__candidate;
struct ds_accel__record;

/* How long a record's verdict still holds; 0: it does not. */
DS_ACCEL__PRIVATE uint64_t ds_accel__record_expires_in_ms(const struct ds_accel__record *record,
                                                          uint64_t now_ms);
DS_ACCEL__PRIVATE bool ds_accel__record_is_useful(const struct ds_accel__record *record,
                                                  uint64_t now_ms);

/*
 * Around an evaluation. What is remembered is opened when it is first needed, once; is_isolated:
 * plugins are probed in helpers, else nothing is remembered. ERR_NO_MEMORY. Lock held, as for all
 * of these.
 */
DS_ACCEL__PRIVATE void ds_accel__verdicts_begin(ds_accel_t *context);
DS_ACCEL__PRIVATE int32_t ds_accel__verdicts_open(ds_accel_t *context, bool is_isolated);
DS_ACCEL__PRIVATE int32_t ds_accel__verdicts_lock(ds_accel_t *context);
/* The same without waiting: what is found out is kept only if nobody else asks. */
int32_t ds_accel__verdicts_try_lock(ds_accel_t *context);
DS_ACCEL__PRIVATE int32_t ds_accel__verdicts_store(ds_accel_t *context);
DS_ACCEL__PRIVATE void ds_accel__verdicts_end(ds_accel_t *context);
/* What the gates trust to hash found, for the file as ds_accel__trust_stat() saw it. */
bool ds_accel__verdict_recall_file(struct ds_accel__candidate *candidate);
/* The verdict, if one still holds; only_good: and is AVAILABLE. */
bool ds_accel__verdict_recall(struct ds_accel__candidate *candidate, bool only_good);
/* Remember a verdict that was just made, or a strike. */
int32_t ds_accel__verdict_keep(struct ds_accel__candidate *candidate);
int32_t ds_accel__verdict_forget(struct ds_accel__candidate *candidate);
/* It was loaded and started in this process: strikes of that kind are forgiven, if they can be. */
void ds_accel__verdict_loaded(struct ds_accel__candidate *candidate);
/* The gate: it is left alone after two strikes, unless it is forced by name. */
int32_t ds_accel__quarantine_check(struct ds_accel__candidate *candidate, bool is_forced,
                                   bool *passed_out);
#endif
