/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The core dump of a process that ended: core_dump.c. */
#ifndef DS_ACCEL_LAUNCH_CORE_DUMP_H
#define DS_ACCEL_LAUNCH_CORE_DUMP_H

#include "ds_accel.h"

#include <stdbool.h>
#include <sys/types.h>

struct ds_accel__machine;

/* The process, as far as it is known. Texts are borrowed. */
struct ds_accel__ended {
    pid_t pid;
    const char *program;       /* path of the executed file; NULL: unknown */
    const char *directory;     /* absolute working directory at the start; NULL: unknown */
    uint64_t core_limit_bytes; /* RLIMIT_CORE at the start, RLIM_INFINITY: no limit */
    uint64_t started_us;       /* ds_accel__wall_us() before the start; 0: unknown */
};

enum ds_accel__core_kind {
    DS_ACCEL__CORE_NONE,    /* the process did not end by a signal that dumps core */
    DS_ACCEL__CORE_ABSENT,  /* no dump was written; text is the reason */
    DS_ACCEL__CORE_FILE,    /* text is the path of the file */
    DS_ACCEL__CORE_COMMAND, /* text is the command that shows the dump */
    DS_ACCEL__CORE_HANDLER, /* text is the program or socket that received the dump */
    DS_ACCEL__CORE_LOST     /* a file was written; text is its expected path, but it is not there */
};

struct ds_accel__core_dump {
    enum ds_accel__core_kind kind;
    char text[1024]; /* printable; "" for CORE_NONE */
};

/*
 * Find the dump of a process that a signal ended. `dumped` is true if the kernel reported that it
 * wrote a dump. Without memory, the kind is CORE_LOST and the text is the kernel's pattern.
 */
void ds_accel__core_dump_find(const struct ds_accel__machine *machine,
                              const struct ds_accel__ended *ended, int signal, bool dumped,
                              struct ds_accel__core_dump *core);

#endif
