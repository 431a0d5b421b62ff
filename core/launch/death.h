/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Why a rank ended: death.c. */
#ifndef DS_ACCEL_LAUNCH_DEATH_H
#define DS_ACCEL_LAUNCH_DEATH_H

#include "launch/core_dump.h"
#include "launch/groups.h"
#include "launch/spawn.h"

#include <signal.h>

struct ds_accel__text;

enum ds_accel__death_kind {
    DS_ACCEL__DEATH_EXITED,
    DS_ACCEL__DEATH_SIGNALED,   /* also by SIGKILL if running out of memory is the likely cause */
    DS_ACCEL__DEATH_OOM_KILLED, /* by the kernel, which the counter of the rank's group proves */
    DS_ACCEL__DEATH_NOT_STARTED,
    DS_ACCEL__DEATH_STALLED /* ended by the launcher because it made no progress */
};

struct ds_accel__death {
    enum ds_accel__death_kind kind;
    int code;                        /* EXITED */
    int signal;                      /* SIGNALED, OOM_KILLED */
    bool dumped_core;                /* as the kernel reported */
    struct ds_accel__core_dump core; /* SIGNALED */
    struct ds_accel__oom oom;        /* EXITED, SIGNALED, OOM_KILLED */
    enum ds_accel__spawn_step step;  /* NOT_STARTED: what failed, with its errno */
    int error;
    char program[512];     /* NOT_STARTED */
    char interpreter[256]; /* NOT_STARTED: that its first line names, which is missing; "" */
    uint64_t stalled_ns;   /* STALLED: time without progress */
};

/* From the result of waitid(). `oom` was read after waitid(). */
void ds_accel__death_ended(const struct ds_accel__machine *machine, const siginfo_t *info,
                           const struct ds_accel__ended *ended, const struct ds_accel__oom *oom,
                           struct ds_accel__death *death);
/* From a start that failed. program: as it was given; path: where it was found. */
void ds_accel__death_not_started(const struct ds_accel__spawned *spawned, const char *program,
                                 const char *path, struct ds_accel__death *death);
void ds_accel__death_stalled(uint64_t stalled_ns, struct ds_accel__death *death);
/* False if the rank ended as it should: with code 0. */
bool ds_accel__death_is_failure(const struct ds_accel__death *death);
/*
 * Add a predicate for a sentence that begins with the rank's name, such as "exited with code 3" or
 * "was killed by SIGSEGV (signal 11), core dump: /tmp/core.7".
 */
void ds_accel__death_text(const struct ds_accel__death *death, struct ds_accel__text *text);
/*
 * The exit code of the job if this is the first failure: the rank's code; 128 + the signal; as for
 * a shell, 127 if the program does not exist and 126 if it could not be started for another reason;
 * as for timeout(1), 124 after a stall.
 */
int ds_accel__death_exit_code(const struct ds_accel__death *death);

#endif
