/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The processes in which plugins are probed: probe_child.c, probe_conduct.c. */
#ifndef DS_ACCEL_HOST_PROBE_CHILD_H
#define DS_ACCEL_HOST_PROBE_CHILD_H

#include "base/private.h"
#include "host/guard.h"

struct ds_accel__message;

/*
 * Prepare the state that children inherit: log sink, report of stages, handlers of signals and of
 * exit(), and the guard's record; also make the supervisor a subreaper. Called once in the
 * supervisor.
 */
void ds_accel__child_prepare(ds_accel_t *context);
/* Execute an ASK, and exit. Called in a child. */
_Noreturn void ds_accel__child_run(const struct ds_accel__message *message,
                                   bool has_user_namespace);

/*
 * What a plugin leaves behind (DSA-P32): threads, child processes, descriptors and timers that
 * remain in the process that probed it. See probe_conduct.c.
 */

#define DS_ACCEL__DESCRIPTOR_LIMIT 1024

struct ds_accel__left {
    size_t thread_count;
    bool has_threads; /* used if /proc has no thread count */
    bool has_timers;
    uint32_t reported; /* bits of the kinds already reported: each is reported once */
    uint8_t is_open[DS_ACCEL__DESCRIPTOR_LIMIT / 8];
};

/* Record the threads, descriptors and timers that exist before the plugin's code runs. */
DS_ACCEL__PRIVATE void ds_accel__left_take(struct ds_accel__left *left);
/*
 * Report what differs from the record, after a short wait for threads and processes that are
 * exiting.
 */
DS_ACCEL__PRIVATE void ds_accel__left_compare(struct ds_accel__left *left,
                                              ds_accel__conduct_t report, void *user_data);

#define DS_ACCEL__LOG_OFFENCE_SIZE 160

/*
 * Check the lines that are logged through the host from now on (log_watch.c). Called for only one
 * host in a process; the check is never removed.
 */
DS_ACCEL__PRIVATE void ds_accel__log_watch(struct ds_accel_host *host);
/* True if a line broke DSA-P25. text describes that line. */
DS_ACCEL__PRIVATE bool ds_accel__log_offence(char *text, size_t text_size);

#endif
