/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Containment of the processes that plugins start: contain.c. */
#ifndef DS_ACCEL_HOST_CONTAIN_H
#define DS_ACCEL_HOST_CONTAIN_H

#include "base/private.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Kinds of containment. NAMESPACE is the strongest, then CGROUP; TREE always works. AUTO is the
 * strongest that is available, OUTSIDE is like AUTO but not a namespace. The values are part of
 * messages: only append.
 */
enum ds_accel__containment {
    DS_ACCEL__CONTAIN_AUTO,
    DS_ACCEL__CONTAIN_NAMESPACE, /* a pid namespace: the kernel kills all its processes */
    DS_ACCEL__CONTAIN_CGROUP,    /* a cgroup, killed by one write; TREE if that fails */
    DS_ACCEL__CONTAIN_TREE,      /* a subreaper that finds its descendants in /proc */
    DS_ACCEL__CONTAIN_OUTSIDE,   /* without a pid namespace: CGROUP or TREE */
    DS_ACCEL__CONTAIN_COUNT
};

/* The name of a containment: "auto", "namespace", "cgroup", "tree" or "outside"; else "?". */
DS_ACCEL__PRIVATE const char *ds_accel__containment_name(uint32_t containment);
/* The containment with this name; DS_ACCEL__CONTAIN_AUTO for NULL or an unknown name. */
enum ds_accel__containment ds_accel__containment_of(const char *name);

/*
 * Number of descriptors for the work of ds-accel-probe, numbered from 0: standard input, output and
 * error, and two channels. A process that only waits for another one closes its copies.
 */
#define DS_ACCEL__CONTAIN_DESCRIPTORS 5

/* State of the supervisor, set in ds-accel-probe before it has a thread or a child. */
struct ds_accel__contained {
    enum ds_accel__containment by;
    bool has_user_namespace; /* set-user-ID programs do not work in it */
    int caller_fd;   /* pidfd of the caller; when it exits, all processes are killed; -1: none */
    int cgroup_fd;   /* directory of the cgroup; -1: none */
    char cgroup[64]; /* name of the cgroup below the process's own cgroup */
    int cgroup_parent_fd;
};

/*
 * Make this process the supervisor of the processes that plugins start, with the wanted containment
 * or the strongest one available. The supervisor runs no plugin's code. With a namespace the
 * supervisor is a child, which returns from this function, while the process itself waits until the
 * child exits. False with errno if the wanted containment is not available, or memory is exhausted.
 * caller is the parent process; when it exits, everything that was started here is killed.
 */
bool ds_accel__contain(struct ds_accel__contained *contained, enum ds_accel__containment wanted,
                       pid_t caller);
/*
 * Join the containment. Called in a child of the supervisor before the plugin's code runs; from
 * then on the child is killed when the supervisor exits.
 */
void ds_accel__contain_join(const struct ds_accel__contained *contained, pid_t supervisor);
/*
 * Kill every process that the child left. Called in the supervisor after the child was reaped. True
 * if there was any such process. *gone_out is false if a process does not exit within a second.
 */
bool ds_accel__contain_clear(const struct ds_accel__contained *contained, pid_t child,
                             bool *gone_out);
/* Remove the cgroup, if there is one. Called before the supervisor exits. */
void ds_accel__contain_leave(const struct ds_accel__contained *contained);
/*
 * Run work() in a contained child of this process, and return its result, in that child; return 1
 * if the containment is not available. The surrounding processes do not return: they kill
 * everything that the child started, and then terminate as the child terminated.
 */
int ds_accel__contain_run(enum ds_accel__containment wanted, pid_t caller, int (*work)(void));

#endif
