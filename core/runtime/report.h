/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reports that programs use as data: detect, list, info, explain, env and the configuration, as
 * JSON (report.c, report_info.c). libds_accel_tools.so makes the other reports, and the text and
 * the picture of every report; it sets the table of functions below when it is loaded.
 */
#ifndef DS_ACCEL_RUNTIME_REPORT_H
#define DS_ACCEL_RUNTIME_REPORT_H

#include "base/private.h"
#include "ds_accel.h"

#include <jansson.h>

struct ds_accel__report_tools {
    /* Make the tree of a report that the tools library provides. The caller holds context->lock,
     * except for report RECORDING. */
    int32_t (*make_tree)(ds_accel_t *context, uint32_t report, const char *name, uint32_t format,
                         json_t **tree_out);
    /* Write a report's tree as text or as a picture. NULL: out of memory. */
    char *(*write)(uint32_t report, json_t *tree, uint32_t format);
};

/* Set by report/report_tools.c; NULL while libds_accel_tools.so is not loaded. */
DS_ACCEL__PRIVATE extern const struct ds_accel__report_tools *ds_accel__report_tools;

/* Reports that have their own public functions instead of ds_accel_report(). */
#define DS_ACCEL__REPORT_CONFIG_CHECK 100u
#define DS_ACCEL__REPORT_LINT 101u
#define DS_ACCEL__REPORT_CONFORMANCE 102u
#define DS_ACCEL__REPORT_OPS 103u
#define DS_ACCEL__REPORT_BUILD 104u

/* Make the tree of a report of ds_accel_report() (DS_ACCEL_REPORT_*), except RECORDING. The caller
 * has already run the detection or the probes that the report needs, and holds context->lock. */
DS_ACCEL__PRIVATE int32_t ds_accel__report_tree(ds_accel_t *context, uint32_t report,
                                                const char *name, uint32_t format,
                                                json_t **tree_out);
/* Write a tree as JSON, or, with libds_accel_tools.so, as text or as a picture. The call takes the
 * reference to the tree, also on failure; a tree that is NULL is reported as ERR_NO_MEMORY. */
DS_ACCEL__PRIVATE int32_t ds_accel__report_write(uint32_t report, json_t *tree, uint32_t format,
                                                 char **text_out);

#endif
