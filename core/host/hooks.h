/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Hooks that later rooms set for events in the host, and the interface of a recording in place of a
 * machine. The host knows only these tables; each room sets its own when the library is loaded.
 */
#ifndef DS_ACCEL_HOST_HOOKS_H
#define DS_ACCEL_HOST_HOOKS_H

#include "base/private.h"
#include "ds_accel.h"

#include <stdbool.h>

struct ds_accel__candidate;

struct ds_accel__runtime_hooks {
    /* An accelerator was chosen and started. No lock held. */
    void (*started)(ds_accel_t *context);
    /*
     * The context ends: close everything that is open. is_torn: it belongs to a forked child and is
     * left unchanged.
     */
    void (*ended)(ds_accel_t *context, bool is_torn);
};

extern const struct ds_accel__runtime_hooks *ds_accel__runtime_hooks; /* runtime/device.c */

/*
 * A recorded machine in place of this one: a source of files and verdicts. The context holds its
 * tree (recording); each candidate holds the part of the tree about its plugin (recorded).
 */
struct ds_accel__source {
    /* Read files, environment and configuration from the file that the options name. */
    int32_t (*open)(ds_accel_t *context, const struct ds_accel_options *options);
    /* Create the candidates. */
    int32_t (*scan)(ds_accel_t *context);
    /* Replace the checks of a plugin's file, quarantine, its probe and its start. */
    int32_t (*check_file)(struct ds_accel__candidate *candidate, bool *passed_out);
    void (*quarantine)(struct ds_accel__candidate *candidate, bool *passed_out);
    void (*ask)(struct ds_accel__candidate *candidate);
    int32_t (*start)(struct ds_accel__candidate *candidate,
                     ds_accel_plugin_instance_t **instance_out, uint32_t *count_out);
    uint64_t (*elapsed_us)(const struct ds_accel__candidate *candidate);
};

/* Set by record/recording.c. */
DS_ACCEL__PRIVATE extern const struct ds_accel__source *ds_accel__recorded_source;

/* ERR_UNSUPPORTED: libds_accel_tools.so has this and is not loaded. what: begins the message. */
int32_t ds_accel__tools_missing(const char *what);

#endif
