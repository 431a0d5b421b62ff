/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What holds the processes together that plugins start: contain.c. */
#ifndef DS_ACCEL_HOST_CONTAIN_H
#define DS_ACCEL_HOST_CONTAIN_H

#include "base/private.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* From the strongest to the one that always works. Stored in messages: only append. */
enum ds_accel__containment {
    DS_ACCEL__CONTAIN_AUTO,
    DS_ACCEL__CONTAIN_NAMESPACE, /* a pid namespace: the kernel ends all of it at once */
    DS_ACCEL__CONTAIN_CGROUP,    /* a cgroup of their own, ended at once; else as below */
    DS_ACCEL__CONTAIN_TREE,      /* a subreaper that looks for its descendants in /proc */
    DS_ACCEL__CONTAIN_OUTSIDE,   /* no namespace: one of the two before */
    DS_ACCEL__CONTAIN_COUNT
};

/* "auto", "namespace", "cgroup", "tree", "outside". */
DS_ACCEL__PRIVATE const char *ds_accel__containment_name(uint32_t containment);
/* The same backwards; DS_ACCEL__CONTAIN_AUTO if it is none of them or NULL. */
enum ds_accel__containment ds_accel__containment_of(const char *name);

/* Standard input, output and error, and two channels: nobody but the one who works holds them. */
#define DS_ACCEL__CONTAIN_DESCRIPTORS 5

/* In ds-accel-probe, before a thread or a child is there. */
struct ds_accel__contained {
    enum ds_accel__containment by;
    bool has_user_namespace; /* programs with a set-user-ID bit do not work in it */
    int caller_fd;           /* pidfd of the process that all of this ends with; -1: none */
    int cgroup_fd;           /* directory; -1: none */
    char cgroup[64];         /* its name below ours */
    int cgroup_parent_fd;
};

/*
 * Make this process the supervisor of what plugins start, in the strongest way there is or the one
 * that is wanted; it has no code of a plugin in it and is not seen by it. With a namespace that is
 * a child, which returns from here, while the process itself waits for its end. False with errno:
 * what is wanted cannot be had. caller: our parent; when it ends so does all that is started here.
 */
bool ds_accel__contain(struct ds_accel__contained *contained, enum ds_accel__containment wanted,
                       pid_t caller);
/* In a child of the supervisor, before the plugin's code: join, and end when the supervisor does.
 */
void ds_accel__contain_join(const struct ds_accel__contained *contained, pid_t supervisor);
/*
 * In the supervisor, when that child has been reaped: end everything it has left. True if there was
 * something. *gone_out false: it does not end.
 */
bool ds_accel__contain_clear(const struct ds_accel__contained *contained, pid_t child,
                             bool *gone_out);
/* Before the supervisor ends. */
void ds_accel__contain_leave(const struct ds_accel__contained *contained);
/*
 * Do a program's work in such a child: in the child it returns what work() does; the processes
 * around it end as the child ended, with everything that it started.
 */
int ds_accel__contain_run(enum ds_accel__containment wanted, pid_t caller, int (*work)(void));

#endif
