/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reports that programs want as data: detect, list, info, explain, env and the configuration, as
 * JSON (report.c, report_info.c). The other reports, and the text and the picture of every report,
 * are made by libds_accel_tools.so, which sets a table of functions when it is loaded.
 */
#ifndef DS_ACCEL_RUNTIME_REPORT_H
#define DS_ACCEL_RUNTIME_REPORT_H

#include "base/private.h"
#include "ds_accel.h"

#include <jansson.h>

struct ds_accel__report_tools {
    /* Make the tree of a report of the tools library. Lock held, except for RECORDING. */
    int32_t (*make_tree)(ds_accel_t *context, uint32_t report, const char *name, uint32_t format,
                         json_t **tree_out);
    /* The text or the picture of any report's tree. NULL: out of memory. */
    char *(*write)(uint32_t report, json_t *tree, uint32_t format);
};

/* Set by report/report_tools.c. */
DS_ACCEL__PRIVATE extern const struct ds_accel__report_tools *ds_accel__report_tools;

/* Reports written by functions of their own. */
#define DS_ACCEL__REPORT_CONFIG_CHECK 100u
#define DS_ACCEL__REPORT_LINT 101u
#define DS_ACCEL__REPORT_CONFORMANCE 102u

/* The tree of any report but RECORDING; the caller has prepared the report (detection, probes).
 * Lock held. */
DS_ACCEL__PRIVATE int32_t ds_accel__report_tree(ds_accel_t *context, uint32_t report,
                                                const char *name, uint32_t format,
                                                json_t **tree_out);
/* Dump a tree, which is taken, as JSON or text. */
DS_ACCEL__PRIVATE int32_t ds_accel__report_write(uint32_t report, json_t *tree, uint32_t format,
                                                 char **text_out);

#endif
