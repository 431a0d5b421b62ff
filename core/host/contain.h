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

/* From the strongest to the kind that always works. Values are part of messages: only append. */
enum ds_accel__containment {
    DS_ACCEL__CONTAIN_AUTO,
    DS_ACCEL__CONTAIN_NAMESPACE, /* a pid namespace: the kernel kills all its processes */
    DS_ACCEL__CONTAIN_CGROUP,    /* a cgroup of their own, ended at once; else as TREE */
    DS_ACCEL__CONTAIN_TREE,      /* a subreaper that finds its descendants in /proc */
    DS_ACCEL__CONTAIN_OUTSIDE,   /* no namespace: CGROUP or TREE */
    DS_ACCEL__CONTAIN_COUNT
};

/* "auto", "namespace", "cgroup", "tree", "outside". */
DS_ACCEL__PRIVATE const char *ds_accel__containment_name(uint32_t containment);
/* The containment of a name; DS_ACCEL__CONTAIN_AUTO for NULL or an unknown name. */
enum ds_accel__containment ds_accel__containment_of(const char *name);

/* Standard input, output and error, and two channels: only the working process holds them. */
#define DS_ACCEL__CONTAIN_DESCRIPTORS 5

/* Set in ds-accel-probe, before it has a thread or a child. */
struct ds_accel__contained {
    enum ds_accel__containment by;
    bool has_user_namespace; /* programs with a set-user-ID bit do not work in it */
    int caller_fd;           /* pidfd of the process with whose end all of this ends; -1: none */
    int cgroup_fd;           /* directory; -1: none */
    char cgroup[64];         /* its name below the process's own cgroup */
    int cgroup_parent_fd;
};

/*
 * Make this process the supervisor of the processes that plugins start, with the wanted containment
 * or the strongest one available. The supervisor contains no plugin's code and plugins do not see
 * it. With a namespace the supervisor is a child, which returns from this function, while the
 * process itself waits for the child's end. False with errno: the wanted containment is not
 * available. caller: the parent; when it ends, everything that is started here ends.
 */
bool ds_accel__contain(struct ds_accel__contained *contained, enum ds_accel__containment wanted,
                       pid_t caller);
/*
 * Called in a child of the supervisor, before the plugin's code: join the containment, and end when
 * the supervisor ends.
 */
void ds_accel__contain_join(const struct ds_accel__contained *contained, pid_t supervisor);
/*
 * Called in the supervisor, after that child was reaped: end every process that it left. True if
 * there was any. *gone_out false: a process does not end.
 */
bool ds_accel__contain_clear(const struct ds_accel__contained *contained, pid_t child,
                             bool *gone_out);
/* Called before the supervisor ends. */
void ds_accel__contain_leave(const struct ds_accel__contained *contained);
/*
 * Run a program's work in such a child and return the result of work() there; the surrounding
 * processes end everything that the child started, and then end as the child ended.
 */
int ds_accel__contain_run(enum ds_accel__containment wanted, pid_t caller, int (*work)(void));

#endif
