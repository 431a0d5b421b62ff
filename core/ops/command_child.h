/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* One running command: command_child.c. */
#ifndef DS_ACCEL_OPS_COMMAND_CHILD_H
#define DS_ACCEL_OPS_COMMAND_CHILD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#define DS_ACCEL__CHILD_LOWEST 10 /* lowest number of the descriptors of a child */

enum ds_accel__child_state {
    DS_ACCEL__CHILD_NEW,
    DS_ACCEL__CHILD_STARTED, /* the program is being executed */
    DS_ACCEL__CHILD_ENDED    /* it has ended or could not be started */
};

struct ds_accel__child {
    /* Set by the caller, borrowed until the child has been reaped. */
    char *const *arguments;
    char *const *environment;
    const char *directory; /* NULL: the caller's */
    int output;            /* becomes stdout and stderr; DS_ACCEL__CHILD_LOWEST or more */
    int wake;              /* an eventfd, written after each change of state; likewise */
    /* Read by the caller. */
    _Atomic(enum ds_accel__child_state) state;
    int wait_status;   /* valid in state ENDED if error is 0 */
    int error;         /* errno of a failed start; 0: it was started */
    bool is_directory; /* the failed start was that of entering the directory */
    /* Private. */
    pthread_t thread;
    pid_t caller;
    pid_t keeper_self; /* the keeper's own number, when the command starts */
    _Atomic(pid_t) keeper;
    atomic_int order;
    bool has_status;
    char *stack;
};

/* Start a command. Zero the private members first. Returns 0, or an errno: then there is no child
 * to reap. */
int ds_accel__child_start(struct ds_accel__child *child);
/* Send a signal, SIGTERM or SIGKILL, to the process group of the command. */
void ds_accel__child_signal(struct ds_accel__child *child, int signal);
/* Release a child in state ENDED. */
void ds_accel__child_reap(struct ds_accel__child *child);

#endif
