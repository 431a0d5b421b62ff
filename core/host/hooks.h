/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Hooks that later parts of the library ("rooms" in docs/architecture.md) set for events in the
 * host, and the interface of a recording that replaces a machine. The host depends only on these
 * tables; each room sets its own table when the library is loaded.
 */
#ifndef DS_ACCEL_HOST_HOOKS_H
#define DS_ACCEL_HOST_HOOKS_H

#include "base/private.h"
#include "ds_accel.h"

#include <stdbool.h>

struct ds_accel__candidate;

struct ds_accel__runtime_hooks {
    /* An accelerator was chosen and started. Called without a lock. */
    void (*started)(ds_accel_t *context);
    /*
     * The context is being freed: close everything that is open. is_torn: this process was forked
     * while a thread was changing the context, so leave the context unchanged.
     */
    void (*ended)(ds_accel_t *context, bool is_torn);
};

extern const struct ds_accel__runtime_hooks *ds_accel__runtime_hooks; /* set by runtime/device.c */

/*
 * A recorded machine that replaces this machine: a source of files and verdicts. The context
 * contains the whole tree (recording); each candidate contains the part of the tree about its
 * plugin (recorded).
 */
struct ds_accel__source {
    /* Read files, environment and configuration from the file specified in the options. */
    int32_t (*open)(ds_accel_t *context, const struct ds_accel_options *options);
    /* Create the candidates. */
    int32_t (*scan)(ds_accel_t *context);
    /*
     * Functions that replace the check of a plugin's file, the check of quarantine, the probe, the
     * start, and the measurement of the time that an evaluation takes.
     */
    int32_t (*check_file)(struct ds_accel__candidate *candidate, bool *passed_out);
    void (*quarantine)(struct ds_accel__candidate *candidate, bool *passed_out);
    void (*ask)(struct ds_accel__candidate *candidate);
    int32_t (*start)(struct ds_accel__candidate *candidate,
                     ds_accel_plugin_instance_t **instance_out, uint32_t *count_out);
    uint64_t (*elapsed_us)(const struct ds_accel__candidate *candidate);
};

/* Set by record/recording.c. */
DS_ACCEL__PRIVATE extern const struct ds_accel__source *ds_accel__recorded_source;

/*
 * Return ERR_UNSUPPORTED, for a function in libds_accel_tools.so while that library is not loaded.
 * what: the subject of the error text, such as a report.
 */
int32_t ds_accel__tools_missing(const char *what);

#endif
