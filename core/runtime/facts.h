/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Facts for programs (facts.c), settings (settings.c), the rest (lazy.c, timer.c, job.c,
 * share.c).
 */
#ifndef DS_ACCEL_CORE_FACTS_H
#define DS_ACCEL_CORE_FACTS_H

#include "ds_accel.h"

#include <jansson.h>
#include <stddef.h>

/* What was found out of the chosen accelerator, once and for all. */
struct ds_accel__known {
    struct ds_accel_backend_info info; /* the operator's word merged in */
    uint64_t capabilities;
    json_t *tree; /* of ds_accel__facts_set(); only read */
    char op_builder_dir[64];
};

/* The chosen accelerator's facts, or NULL with the error said. out is what the caller will write.
 */
const struct ds_accel__known *ds_accel__known_get(ds_accel_t *context, const void *out,
                                                  int32_t *status_out);
void ds_accel__known_clear(ds_accel_t *context);
/* The name as it fits; ERR_INVALID if it does not. call: "compile_backend". */
int32_t ds_accel__name_write(const char *text, char *name, size_t name_size, const char *call);
/* Make the calls that wait, if the accelerator is started; no lock held. */
void ds_accel__lazy_run(ds_accel_t *context);
/* The context goes: tell those that wait. */
void ds_accel__lazy_drop(ds_accel_t *context);

#endif
