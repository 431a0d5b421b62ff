/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Whether a thread can be stopped without an effect on its system call: system_call.c. */
#ifndef DS_ACCEL_LAUNCH_SYSTEM_CALL_H
#define DS_ACCEL_LAUNCH_SYSTEM_CALL_H

#include <stdbool.h>
#include <sys/types.h>

/* What a thread is doing in the kernel. */
struct ds_accel__system_call {
    char name[32];     /* of the call in which the thread is blocked; "": it is in none */
    bool is_restarted; /* a stop has no effect on what the thread does */
};

/* Read the system call of a thread. False: the kernel does not permit reading it. */
bool ds_accel__system_call_read(pid_t pid, pid_t tid, struct ds_accel__system_call *call_out);

#endif
