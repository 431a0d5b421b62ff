/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The reports that only tools use, as trees (doctor, topo, bundle, cache, quarantine, recording,
 * memory), and the text of every report.
 */
#ifndef DS_ACCEL_REPORT_REPORT_H
#define DS_ACCEL_REPORT_REPORT_H

#include "runtime/report.h"

#include <stdbool.h>
#include <stddef.h>

struct ds_accel__candidate;
struct ds_accel__text;

/* The report topo. names are separated by commas; NULL selects all available accelerators (cpu only
 * if no other accelerator has a device), for which the caller has probed every plugin. The caller
 * holds context->lock. */
int32_t ds_accel__report_topo(ds_accel_t *context, const char *names, json_t **tree_out);
/* Only the devices of one accelerator, as in the report topo: an array. The caller holds
 * context->lock. */
int32_t ds_accel__topo_devices(ds_accel_t *context, const char *name, json_t **devices_out);
/* Make a recording of the machine as a tree. Caller does not hold context->lock. record/recorder.c
 * sets this pointer. */
extern int32_t (*ds_accel__report_recording)(ds_accel_t *context, json_t **tree_out);
/* report_bundle.c: the reports about backends, machine and configuration in one tree. Caller holds
 * context->lock. */
int32_t ds_accel__report_bundle(ds_accel_t *context, uint32_t format, json_t **tree_out);
json_t *ds_accel__who_tree(void); /* host, home directory and users; NULL: out of memory */
/* report_ops.c: format the tree of the op builders as text. */
void ds_accel__ops_write(struct ds_accel__text *out, json_t *tree, bool has_colour,
                         bool is_verbose);
/*
 * report_ops.c: what every report of ops begins with. *backend NULL: detect the accelerator, and
 * set it to its name. ERR_NOT_USABLE: the machine is a recorded one; the status of
 * ds_accel_detect(); ERR_STATE.
 */
int32_t ds_accel__ops_backend(ds_accel_t *context, const char **backend);
/* report_build.c: format the tree of the built ops as text. */
void ds_accel__build_write(struct ds_accel__text *out, json_t *tree, bool is_verbose);
void ds_accel__topo_write(struct ds_accel__text *out, json_t *tree, bool has_colour);
int32_t ds_accel__topo_svg(json_t *tree, struct ds_accel__text *out);

/* report_memory.c: two functions, which format the tree of the report memory as an SVG picture, and
 * make the tree. */
int32_t ds_accel__memory_tree_svg(json_t *tree, struct ds_accel__text *out);
int32_t ds_accel__report_memory(ds_accel_t *context, const char *name, json_t **tree_out);
int32_t ds_accel__report_cache(ds_accel_t *context, json_t **tree_out);
int32_t ds_accel__report_quarantine(ds_accel_t *context, json_t **tree_out);
/* The report doctor: what prevents the use of this machine's accelerators. The caller holds
 * context->lock and has probed every plugin. */
int32_t ds_accel__report_doctor(ds_accel_t *context, json_t **tree_out);
/* Format a report's tree as text; the JSON form is dumped from the same tree. NULL: out of
 * memory. */
char *ds_accel__report_text(uint32_t report, json_t *tree, uint32_t format);

#endif
