/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A plugin's strikes in its record: strike.c. */
#ifndef DS_ACCEL_HOST_STRIKE_H
#define DS_ACCEL_HOST_STRIKE_H

#include "base/private.h"
#include "base/reason.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ds_accel__record;

/* Return the remaining time of the plugin's quarantine; 0: it is not quarantined. */
DS_ACCEL__PRIVATE uint64_t ds_accel__record_quarantined_ms(const struct ds_accel__record *record,
                                                           uint64_t now_ms);
/* Remove all strikes. */
DS_ACCEL__PRIVATE void ds_accel__record_forgive(struct ds_accel__record *record);
/* True if the record has strikes that are still valid. */
bool ds_accel__strikes_last(const struct ds_accel__record *record, uint64_t now_ms);
/*
 * True if a strike that a process detects now counts. asks_anew: the process makes a report that
 * ignores stored verdicts (explain, list, doctor, bundle), or records the machine.
 */
bool ds_accel__strike_counts(const struct ds_accel__record *record, bool asks_anew);
/*
 * Add a strike. The record borrows its texts. load_ms: the start of the load during which the
 * process died; 0: a helper detected the strike just now.
 */
void ds_accel__strike_add(struct ds_accel__record *record, enum ds_accel__reason_id reason,
                          const char *detail, uint64_t load_ms);
/* Describe the number of strikes, the last strike, and the end of the quarantine. */
void ds_accel__strikes_text(const struct ds_accel__record *record, uint64_t left_ms, char *text,
                            size_t size);

#endif
