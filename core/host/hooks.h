/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What rooms above the host do when something happens here, and what may answer in place of a
 * machine. The host knows these tables alone; each room sets its own when the library is loaded.
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
    /* The context ends: close what is open. is_torn: it is a forked child's, and stays as it is. */
    void (*ended)(ds_accel_t *context, bool is_torn);
};

extern const struct ds_accel__runtime_hooks *ds_accel__runtime_hooks; /* runtime/device.c */

/*
 * A recorded machine, in place of this one: a source of files and of verdicts. The context keeps
 * its tree (recording), each candidate the part of it that is about the plugin (recorded).
 */
struct ds_accel__source {
    /* Take files, environment and configuration from the file that the options name. */
    int32_t (*open)(ds_accel_t *context, const struct ds_accel_options *options);
    /* Make the candidates. */
    int32_t (*scan)(ds_accel_t *context);
    /* In place of looking at a plugin's file, of quarantine, of its probe and of its start. */
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
