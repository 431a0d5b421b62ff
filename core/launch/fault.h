/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Tracebacks that a program writes to a descriptor of ours: fault.c. */
#ifndef DS_ACCEL_LAUNCH_FAULT_H
#define DS_ACCEL_LAUNCH_FAULT_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The variable with the number of the descriptor, in a rank's environment. */
#define DS_ACCEL__FAULT_VARIABLE "DS_ACCEL_FAULTHANDLER_FD"

/* One rank's descriptor; {.fd = -1, .child_fd = -1} is none. */
struct ds_accel__fault {
    int fd;         /* reading end; does not block; -1: closed */
    int child_fd;   /* writing end, for the rank; -1: closed */
    pid_t pid;      /* process that armed a handler; 0: none */
    int signal;     /* its signal */
    bool is_wanted; /* a traceback was requested, and may not be complete */
    char *text;     /* what was written since the request; NULL: nothing */
    size_t size_bytes;
};

/*
 * Create the descriptor before the rank is started. The rank inherits child_fd, and its variable
 * DS_ACCEL__FAULT_VARIABLE is this number. ERR_LIMIT.
 */
int32_t ds_accel__fault_open(struct ds_accel__fault *fault);
/* Close the writing end, after the rank was started. */
void ds_accel__fault_started(struct ds_accel__fault *fault);
void ds_accel__fault_close(struct ds_accel__fault *fault);
/* Read what the program wrote. Call it when fd is readable: a program whose pipe is full waits. */
void ds_accel__fault_read(struct ds_accel__fault *fault);
/*
 * Request and read the tracebacks of all faults whose program armed a handler, within a common
 * time. rank_pids: the ranks' processes; a handler of a process that no longer descends from the
 * rank is not used. A rank with pid 0 is left out.
 */
void ds_accel__fault_collect(struct ds_accel__fault *faults, const pid_t *rank_pids, size_t count,
                             uint64_t timeout_ns);

#endif
