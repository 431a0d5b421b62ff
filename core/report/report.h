/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What the command line prints: doctor, topo, the bundle, the caches and devices' memory as trees,
 * and the text of every report.
 */
#ifndef DS_ACCEL_REPORT_REPORT_H
#define DS_ACCEL_REPORT_REPORT_H

#include "runtime/report.h"

#include <stdbool.h>
#include <stddef.h>

struct ds_accel__candidate;
struct ds_accel__text;

/* names: separated by commas; NULL: of all available accelerators. Every plugin was probed
 * before. */
int32_t ds_accel__report_topo(ds_accel_t *context, const char *names, json_t **tree_out);
/* A recording of the machine as a tree; no lock held. Set by record/recorder.c. */
extern int32_t (*ds_accel__report_recording)(ds_accel_t *context, json_t **tree_out);
/* report_bundle.c: every report in one tree. Lock held. */
int32_t ds_accel__report_bundle(ds_accel_t *context, uint32_t format, json_t **tree_out);
json_t *ds_accel__who_tree(void); /* names of host and user, for recordings; NULL: out of memory */
void ds_accel__topo_write(struct ds_accel__text *out, json_t *tree, bool has_colour);
int32_t ds_accel__topo_svg(json_t *tree, struct ds_accel__text *out);

/* report_memory.c: the current memory of a backend's devices, as a tree, and that tree as a
 * picture. */
int32_t ds_accel__memory_tree_svg(json_t *tree, struct ds_accel__text *out);
int32_t ds_accel__report_memory(ds_accel_t *context, const char *name, json_t **tree_out);
int32_t ds_accel__report_cache(ds_accel_t *context, json_t **tree_out);
int32_t ds_accel__report_quarantine(ds_accel_t *context, json_t **tree_out);
/* What prevents the use of this machine's accelerators. Every plugin was probed before. Lock
 * held. */
int32_t ds_accel__report_doctor(ds_accel_t *context, json_t **tree_out);
/* Text made from the tree that the JSON is dumped from: one source for both. NULL: out of
 * memory. */
char *ds_accel__report_text(uint32_t report, json_t *tree, uint32_t format);

#endif
