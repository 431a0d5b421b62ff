/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The processes in which plugins are probed: probe_child.c, probe_conduct.c. */
#ifndef DS_ACCEL_HOST_PROBE_CHILD_H
#define DS_ACCEL_HOST_PROBE_CHILD_H

#include "base/private.h"
#include "host/guard.h"

struct ds_accel__message;

/* Called once in the supervisor: prepare what all children share. */
void ds_accel__child_prepare(ds_accel_t *context);
/* Called in a child: execute an ASK, and exit. */
_Noreturn void ds_accel__child_run(const struct ds_accel__message *message,
                                   bool has_user_namespace);

/* probe_conduct.c: what a plugin leaves behind in its process (DSA-P32). */

#define DS_ACCEL__DESCRIPTOR_LIMIT 1024

struct ds_accel__left {
    size_t thread_count;
    bool has_threads; /* used where /proc has no count */
    bool has_timers;
    uint32_t reported; /* kinds, as bits: each is reported once */
    uint8_t is_open[DS_ACCEL__DESCRIPTOR_LIMIT / 8];
};

/* Record what exists before the plugin's code runs. */
DS_ACCEL__PRIVATE void ds_accel__left_take(struct ds_accel__left *left);
/* Report what exists in addition, after a short wait for threads and processes that are ending. */
DS_ACCEL__PRIVATE void ds_accel__left_compare(struct ds_accel__left *left,
                                              ds_accel__conduct_t report, void *user_data);

#define DS_ACCEL__LOG_OFFENCE_SIZE 160

/*
 * Check the lines that are logged through the host from now on (log_watch.c). One host at a time in
 * a process, for the life of the process.
 */
DS_ACCEL__PRIVATE void ds_accel__log_watch(struct ds_accel_host *host);
/* True if a line broke DSA-P25; text: that line. */
DS_ACCEL__PRIVATE bool ds_accel__log_offence(char *text, size_t text_size);

#endif
