/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The state of the process around a plugin's code: guard.c. */
#ifndef DS_ACCEL_CORE_GUARD_H
#define DS_ACCEL_CORE_GUARD_H

#include "ds_accel.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct ds_accel__guard {
    bool is_whole; /* more than mask and affinity */
    bool is_alone; /* also what only a process of one thread can look at */
    bool has_affinity;
    bool has_umask;
    int directory_fd; /* -1: none. The working directory, however long its name is. */
    sigset_t mask;
    cpu_set_t affinity[8]; /* 8192 CPUs */
    struct sigaction actions[NSIG];
    struct rlimit limits[RLIM_NLIMITS];
    char directory[1024];
    char locale[256];
    mode_t umask;
    uint64_t environment;
};

typedef void (*ds_accel__conduct_t)(void *user_data, const char *reason, const char *detail);

/* Signal mask and CPU affinity of the thread; is_whole: handlers, directory, locale, umask and
 * limits too. Restore it, or a descriptor stays open. */
void ds_accel__guard_take(struct ds_accel__guard *guard, bool is_whole);
/* All of it, the environment too: for a process where nobody else changes it. */
void ds_accel__guard_take_alone(struct ds_accel__guard *guard);
/* Report each thing that is not as it was. */
void ds_accel__guard_compare(const struct ds_accel__guard *guard, ds_accel__conduct_t report,
                             void *user_data);
/* Put back what was taken, once. */
void ds_accel__guard_restore(struct ds_accel__guard *guard);

#endif
