/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Reports: report*.c, topo*.c, lint.c, doctor.c, recording*.c. */
#ifndef DS_ACCEL_CORE_REPORT_H
#define DS_ACCEL_CORE_REPORT_H

#include "ds_accel.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct ds_accel__candidate;
struct ds_accel__text;

/* names: separated by commas; NULL: of all that can be used. Every plugin was asked before then. */
int32_t ds_accel__report_topo(ds_accel_t *context, const char *names, json_t **tree_out);
/* A recording of the machine as a tree; no lock held. Set by record/recorder.c. */
extern int32_t (*ds_accel__report_recording)(ds_accel_t *context, json_t **tree_out);
/* Take out what tells who and where this is; *tree is NULL without memory (report_bundle.c). */
int32_t ds_accel__redact(const ds_accel_t *context, json_t **tree);
json_t *ds_accel__who_tree(void); /* names of this host and user, for recordings; NULL: no memory */
json_t *ds_accel__machine_tree(const ds_accel_t *context); /* NULL: no memory */
void ds_accel__topo_write(struct ds_accel__text *out, json_t *tree, bool has_colour);
int32_t ds_accel__topo_svg(json_t *tree, struct ds_accel__text *out);

/* report_memory.c: a backend's devices as they are now, as a tree, and that as a picture. */
int32_t ds_accel__memory_tree_svg(json_t *tree, struct ds_accel__text *out);
int32_t ds_accel__report_memory(ds_accel_t *context, const char *name, json_t **tree_out);
int32_t ds_accel__report_cache(ds_accel_t *context, json_t **tree_out);
int32_t ds_accel__report_quarantine(ds_accel_t *context, json_t **tree_out);
/* What stands in the way of the accelerators here. Every plugin was asked before. Lock held. */
int32_t ds_accel__report_doctor(ds_accel_t *context, json_t **tree_out);
/* Text from the tree that the JSON is dumped from: one source for both. NULL: no memory. */
char *ds_accel__report_text(uint32_t report, json_t *tree, uint32_t format);
#define DS_ACCEL__REPORT_CONFIG_CHECK 100u
#define DS_ACCEL__REPORT_LINT 101u
#define DS_ACCEL__REPORT_CONFORMANCE 102u
/* Dump a tree, which is taken, as JSON or text. */
int32_t ds_accel__report_write(uint32_t report, json_t *tree, uint32_t format, char **text_out);

#endif
