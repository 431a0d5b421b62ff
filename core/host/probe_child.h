/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The processes in which plugins are asked: probe_child.c, probe_conduct.c. */
#ifndef DS_ACCEL_HOST_PROBE_CHILD_H
#define DS_ACCEL_HOST_PROBE_CHILD_H

#include "base/private.h"
#include "host/guard.h"

struct ds_accel__message;

/* In the supervisor, once: what all children have in common. */
void ds_accel__child_prepare(ds_accel_t *context);
/* In a child: do what an ASK says, and end. */
_Noreturn void ds_accel__child_run(const struct ds_accel__message *message,
                                   bool has_user_namespace);

/* probe_conduct.c: what a plugin leaves behind in its process (DSA-P32). */

#define DS_ACCEL__DESCRIPTOR_LIMIT 1024

struct ds_accel__left {
    size_t thread_count;
    bool has_threads; /* where /proc does not count them */
    bool has_timers;
    uint32_t reported; /* kinds, as bits: each is reported once */
    uint8_t is_open[DS_ACCEL__DESCRIPTOR_LIMIT / 8];
};

/* What is there before the plugin's code runs. */
DS_ACCEL__PRIVATE void ds_accel__left_take(struct ds_accel__left *left);
/* Report what is there in addition, after a moment for what is just ending. */
DS_ACCEL__PRIVATE void ds_accel__left_compare(struct ds_accel__left *left,
                                              ds_accel__conduct_t report, void *user_data);

#define DS_ACCEL__LOG_OFFENCE_SIZE 160

/* Look at the lines that are logged through the host from now on (log_watch.c). One at a time in a
 * process, and for good. */
DS_ACCEL__PRIVATE void ds_accel__log_watch(struct ds_accel_host *host);
/* True if one of them broke DSA-P25, and which. */
DS_ACCEL__PRIVATE bool ds_accel__log_offence(char *text, size_t text_size);

#endif
