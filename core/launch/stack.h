/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The threads of a process and what each of them does: stack.c; functions that wait: waiting.c. */
#ifndef DS_ACCEL_LAUNCH_STACK_H
#define DS_ACCEL_LAUNCH_STACK_H

#include "launch/unwind.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct ds_accel__text;

#define DS_ACCEL__STACK_THREADS 64u  /* threads that are read of a process */
#define DS_ACCEL__STACK_REPORTED 64u /* innermost frames that are reported of a thread */
#define DS_ACCEL__STACK_TIMEOUT_NS 2000000000ull

/* What /proc/PID/stat and /proc/PID/task/TID/stat contain. */
struct ds_accel__stat {
    char name[64];
    char state;
    uint64_t cpu_ms;
    uint64_t children_ms; /* of children that have ended and were reaped */
    uint64_t thread_count;
    uint64_t start_ticks; /* since the start of the system; with the pid, it denotes one process */
};

/* False: the process or thread has been reaped. */
bool ds_accel__stat_read(const char *path, struct ds_accel__stat *stat);

/* Which threads are stopped to read their frames. */
enum ds_accel__stack_scope {
    /* Those that are running or have used CPU time since the earlier sample, and only if the stop
     * has no effect on them (system_call.h). The result has no frames, but the waits that they
     * show. Without an earlier sample: none. */
    DS_ACCEL__STACK_ACTIVE,
    /* All on which the stop has no effect. */
    DS_ACCEL__STACK_UNAFFECTED,
    /* All; some system calls then fail, so the process must be about to be ended. */
    DS_ACCEL__STACK_ALL,
};

/*
 * Read the threads of a process, in a child process that is killed after TIMEOUT_NS. What the
 * kernel shows of a thread is read before the thread is stopped, which changes it.
 *
 * pid        a process of a rank
 * earlier    an earlier result for the process; NULL: none
 * stack_out  caller; NULL: the process has ended; else an object:
 *
 *      {"pid": 12, "name": "python3", "time_ms": 5000, "cpu_ms": 1234, "thread_count": 1,
 *       "why": "libdw (elfutils) cannot be loaded: ...",
 *       "threads": [{"tid": 12, "name": "python3", "state": "S", "wchan": "futex_do_wait",
 *                    "cpu_ms": 1200, "kernel": ["futex_do_wait", "do_futex"],
 *                    "system_call": "futex", "why": "...",
 *                    "wait": {"function": "MPI_Allreduce", "module": "libmpi.so.40", "place": 17},
 *                    "frames": [{"function": "poll", "offset": 79, "module": "libc.so.6",
 *                                "address": 140737353}],
 *                    "omitted_frame_count": 3}]}
 *
 *            The main thread is the first. why, if it is present, is the reason that frames, or
 *            also threads, are missing. place is the same number in two samples if the same call of
 *            the program led to the same waiting function. wchan, kernel and system_call are
 *            missing if the kernel does not permit reading them, frames and system_call in the
 *            scope ACTIVE, and threads if they could not be read in time. A thread that has ended
 *            is missing.
 * ERR_NO_MEMORY; ERR_LIMIT
 */
int32_t ds_accel__stack_sample(pid_t pid, enum ds_accel__stack_scope scope, const json_t *earlier,
                               json_t **stack_out);
/* True if a thread is running, or has used CPU time since an earlier sample, in which its CPU time
 * was earlier_ms. thread: an element of "threads". */
bool ds_accel__stack_is_active(const json_t *thread, uint64_t earlier_ms);
/* Add the threads of one process as lines of text. */
void ds_accel__stack_write(const json_t *stack, struct ds_accel__text *text);

/*
 * The outermost frame in which a thread waits for another process or for a device; count: none.
 * frames: innermost first. See waiting.c.
 */
size_t ds_accel__waiting_frame(const struct ds_accel__frame *frames, size_t count);
/* The length of a function's name without its arguments. */
size_t ds_accel__waiting_name_length(const char *function);
/* True if the function is a collective or point-to-point operation of a communication library, so
 * that its name is a good name of the wait. */
bool ds_accel__waiting_is_communication(const char *function);

#endif
