/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Starting one rank's process: spawn.c. */
#ifndef DS_ACCEL_LAUNCH_SPAWN_H
#define DS_ACCEL_LAUNCH_SPAWN_H

#include "launch/bind.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

/* The control groups that a rank can join: its own, and that of the job. */
enum {
    DS_ACCEL__RANK_CGROUP,
    DS_ACCEL__JOB_CGROUP,
    DS_ACCEL__SPAWN_CGROUPS
};

/* What the process is and has. All is borrowed during the call. */
struct ds_accel__spawn {
    const char *path;                            /* the file to execute */
    char *const *arguments;                      /* end with NULL */
    char *const *environment;                    /* ends with NULL */
    const struct ds_accel__placement *placement; /* NULL or without CPUs: not bound */
    int descriptors[3]; /* what becomes stdin, stdout and stderr; -1: inherited */
    bool is_traceable;  /* this process's children may ptrace() it despite Yama's rules */
    bool has_terminal;  /* descriptors[0] is a terminal, for a session of its own */
    int cgroups[DS_ACCEL__SPAWN_CGROUPS]; /* descriptors of cgroup.procs files; -1: none */
    const sigset_t *signals;              /* mask of blocked signals */
    const struct rlimit *files;           /* RLIMIT_NOFILE; NULL: inherited */
};

/* The step of a start that failed. */
enum ds_accel__spawn_step {
    DS_ACCEL__SPAWN_NONE,
    DS_ACCEL__SPAWN_FORK,
    DS_ACCEL__SPAWN_STREAMS,
    DS_ACCEL__SPAWN_EXECUTE
};

struct ds_accel__spawned {
    pid_t pid;                      /* 0: the start failed */
    enum ds_accel__spawn_step step; /* which failed, with its error */
    int error;
    /* errors that did not prevent the start; 0: none */
    int cpu_error, memory_error;
    int cgroup_errors[DS_ACCEL__SPAWN_CGROUPS];
};

/*
 * Start the process. It is killed when this process dies. The caller is single-threaded, and waits
 * for the process. A file that the kernel cannot execute is a script for /bin/sh, as for execvp().
 */
void ds_accel__spawn(const struct ds_accel__spawn *spawn, struct ds_accel__spawned *spawned);
/*
 * Find a command in the directories of a PATH, which is NULL if it is unset; a name with a slash is
 * the path itself. ERR_NOT_FOUND; ERR_NO_MEMORY.
 */
int32_t ds_accel__command_find(const char *name, const char *path, char **found_out);

#endif
