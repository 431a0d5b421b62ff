/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The state of the process around a plugin's code: guard.c, guard_rights.c. */
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

/* What a signal does: struct sigaction without the room for signals that no kernel has. */
struct ds_accel__guard_action {
    uintptr_t handler;
    uint64_t mask;
    int flags;
};

/* What of a process only prctl() and /proc tell, and nobody but it may change (guard_rights.c). */
struct ds_accel__guard_rights {
    uid_t users[3]; /* real, effective, saved */
    gid_t groups[3];
    uint64_t group_list;      /* hash of the supplementary groups */
    uint64_t capabilities;    /* hash of the five sets */
    uint64_t seccomp_filters; /* hash of their number */
    int seccomp;              /* mode and no_new_privs */
    int dumpable;
    int death_signal;
    uint64_t attributes; /* hash of the other ones */
    uint64_t namespaces[DS_ACCEL__GUARD_NAMESPACES];
};

struct ds_accel__guard {
    bool is_alone; /* the process has one thread and nobody else in it: also what has no lock */
    bool has_affinity;
    bool has_umask;
    uint32_t reported; /* kinds, as bits: each is reported once */
    int directory_fd;  /* -1: none. The working directory, however long its name is. */
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
    cpu_set_t affinity[8]; /* 8192 CPUs */
    struct ds_accel__guard_action actions[NSIG];
    struct rlimit limits[RLIM_NLIMITS];
    char locale[256];
    void *thread_locale;  /* of the thread that took it */
    uint64_t environment; /* hash */
    char **variables;     /* copies; NULL: none */
    uint64_t taken_ns;
};

typedef void (*ds_accel__conduct_t)(void *user_data, enum ds_accel__reason_id reason,
                                    const char *detail);

/*
 * What of this process a plugin has to leave as it is (DSA-P28), before its code runs. Restore it,
 * or a descriptor stays open. Short of memory the environment cannot be put back.
 */
DS_ACCEL__PRIVATE void ds_accel__guard_take(struct ds_accel__guard *guard);
/* The same in a process of one thread that is there for the plugin, and is not put back. */
DS_ACCEL__PRIVATE void ds_accel__guard_take_alone(struct ds_accel__guard *guard);
/* In a child of the process that took it: what is the child's own. */
void ds_accel__guard_follow(struct ds_accel__guard *guard, bool has_new_capabilities);
/* Report each kind of change once. A plugin that is tolerated in one way still is in no other. */
DS_ACCEL__PRIVATE void ds_accel__guard_compare(struct ds_accel__guard *guard,
                                               ds_accel__conduct_t report, void *user_data);
/* Put back what was taken, once. What cannot be put back is reported; report may be NULL. */
DS_ACCEL__PRIVATE void ds_accel__guard_restore(struct ds_accel__guard *guard,
                                               ds_accel__conduct_t report, void *user_data);

/* guard_rights.c. is_alone: namespaces and capabilities, too, which cannot be put back. */
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
