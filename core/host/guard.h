/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The state of the process before and after a plugin's code: guard.c, guard_rights.c. */
#ifndef DS_ACCEL_HOST_GUARD_H
#define DS_ACCEL_HOST_GUARD_H

#include "base/private.h"
#include "base/reason.h"
#include "ds_accel.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/types.h>

#define DS_ACCEL__GUARD_TIMERS 3 /* interval timers of a process: real, virtual, profiling */
#define DS_ACCEL__GUARD_NAMESPACES 8

/* A signal's action, as in struct sigaction, but with a mask of only the 64 signals of Linux. */
struct ds_accel__guard_action {
    uintptr_t handler;
    uint64_t mask;
    int flags;
};

/*
 * IDs, capabilities and other attributes of a process that only the process itself can change
 * (guard_rights.c).
 */
struct ds_accel__guard_rights {
    uid_t users[3]; /* real, effective, saved */
    gid_t groups[3];
    uint64_t group_list;      /* hash of the supplementary groups */
    uint64_t capabilities;    /* hash of the five capability sets */
    uint64_t seccomp_filters; /* hash of the number of filters */
    int seccomp;              /* mode and no_new_privs */
    int dumpable;
    int death_signal;
    uint64_t attributes; /* hash of the other attributes */
    uint64_t namespaces[DS_ACCEL__GUARD_NAMESPACES];
};

struct ds_accel__guard {
    /*
     * The process has one thread and exists only for the plugin, so supplementary groups,
     * capabilities, seccomp filters, namespaces and attributes of prctl() are compared, too.
     */
    bool is_alone;
    bool has_affinity;
    bool has_umask;
    uint32_t reported; /* bits of the kinds already reported: each is reported once */
    int directory_fd;  /* the working directory, however long its path; -1: none */
    int priority;
    int policy;
    int policy_priority;
    pid_t process_group;
    pid_t session;
    uint64_t signal_mask;
    uint64_t directory[2]; /* device, inode; 0, 0: unknown */
    uint64_t root[2];
    uint64_t floating_point;
    mode_t umask;
    stack_t signal_stack;
    struct itimerval timers[DS_ACCEL__GUARD_TIMERS];
    struct ds_accel__guard_rights rights;
    cpu_set_t affinity[8]; /* 8192 bits, one per CPU */
    struct ds_accel__guard_action actions[NSIG];
    struct rlimit limits[RLIM_NLIMITS];
    char locale[256];
    void *thread_locale;  /* locale of the thread that took the state */
    uint64_t environment; /* hash of the environment */
    char **variables;     /* copies of the variables; NULL: none */
    uint64_t taken_ns;
};

typedef void (*ds_accel__conduct_t)(void *user_data, enum ds_accel__reason_id reason,
                                    const char *detail);

/*
 * Record the state of this process that a plugin must not change (DSA-P28), before the plugin's
 * code runs. Call ds_accel__guard_restore() afterwards; otherwise a descriptor stays open, and the
 * copy of the environment is not freed. If memory is exhausted here, the environment cannot be
 * restored.
 */
DS_ACCEL__PRIVATE void ds_accel__guard_take(struct ds_accel__guard *guard);
/*
 * Like ds_accel__guard_take(), in a process with one thread that exists only for the plugin.
 * ds_accel__guard_restore() is not called afterwards.
 */
DS_ACCEL__PRIVATE void ds_accel__guard_take_alone(struct ds_accel__guard *guard);
/*
 * Record again the state in which a forked child legitimately differs from the process that
 * recorded guard. Called in the child. has_new_capabilities: its capabilities differ, too.
 */
void ds_accel__guard_follow(struct ds_accel__guard *guard, bool has_new_capabilities);
/*
 * Report each kind of change that was not reported before, and not only the first kind, because the
 * configuration may tolerate that kind.
 */
DS_ACCEL__PRIVATE void ds_accel__guard_compare(struct ds_accel__guard *guard,
                                               ds_accel__conduct_t report, void *user_data);
/*
 * Restore the recorded state and free what guard holds; called once. Report each kind of change
 * that cannot be undone; report may be NULL.
 */
DS_ACCEL__PRIVATE void ds_accel__guard_restore(struct ds_accel__guard *guard,
                                               ds_accel__conduct_t report, void *user_data);

/*
 * Functions of guard_rights.c. is_alone: also record the attributes that are compared only in a
 * process that exists only for the plugin, such as namespaces, capabilities and seccomp filters.
 */
void ds_accel__guard_rights_take(struct ds_accel__guard_rights *rights, bool is_alone);
void ds_accel__guard_rights_follow(struct ds_accel__guard_rights *rights,
                                   bool has_new_capabilities);
bool ds_accel__guard_compare_ids(const struct ds_accel__guard *guard, char *text, size_t size);
bool ds_accel__guard_compare_seccomp(const struct ds_accel__guard *guard, char *text, size_t size);
bool ds_accel__guard_compare_namespaces(const struct ds_accel__guard *guard, char *text,
                                        size_t size);
bool ds_accel__guard_compare_dumpable(const struct ds_accel__guard *guard, char *text, size_t size);
bool ds_accel__guard_compare_death_signal(const struct ds_accel__guard *guard, char *text,
                                          size_t size);
bool ds_accel__guard_compare_attributes(const struct ds_accel__guard *guard, char *text,
                                        size_t size);
bool ds_accel__guard_restore_dumpable(const struct ds_accel__guard *guard);
bool ds_accel__guard_restore_death_signal(const struct ds_accel__guard *guard);

#endif
