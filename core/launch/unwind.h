/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The frames of another process's threads, by elfutils' libdw and ptrace(): unwind.c. */
#ifndef DS_ACCEL_LAUNCH_UNWIND_H
#define DS_ACCEL_LAUNCH_UNWIND_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Frames beyond this number, counted from the innermost, are not read. */
#define DS_ACCEL__UNWIND_FRAMES 256u

/* A frame; its texts are valid until the next ds_accel__unwind_thread(). */
struct ds_accel__frame {
    uint64_t address;
    uint64_t offset;    /* from the beginning of the function */
    char *function;     /* "": not known */
    const char *module; /* file name without directory; "": not known */
};

struct ds_accel__unwind;

/*
 * Prepare for a process: load libdw, and read which files the process has mapped. The caller is a
 * process that exists only for this, because libdw may crash on a damaged file, and because only
 * the caller's end resumes a thread that does not stop at once. cause_out: why there is none.
 */
struct ds_accel__unwind *ds_accel__unwind_create(pid_t pid, char *cause, size_t cause_size);
void ds_accel__unwind_destroy(struct ds_accel__unwind *unwind);
/*
 * Stop a thread, read its frames, innermost first, and resume it. A stop can make a system call of
 * the thread fail: see system_call.h. frame_count_out may be 0. NULL: success; else the cause, in
 * static text or in the text of strerror().
 */
const char *ds_accel__unwind_thread(struct ds_accel__unwind *unwind, pid_t tid,
                                    const struct ds_accel__frame **frames_out,
                                    size_t *frame_count_out);

#endif
