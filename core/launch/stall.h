/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Ranks that stopped making progress: stall.c. */
#ifndef DS_ACCEL_LAUNCH_STALL_H
#define DS_ACCEL_LAUNCH_STALL_H

#include "ds_accel.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct ds_accel__fault;
struct ds_accel__text;
struct ds_accel__stall;

/* The first one is what the others are compared with. */
#define DS_ACCEL__STALL_SAMPLES 6u

/* A rank at the time of a check. */
struct ds_accel__stall_rank {
    pid_t pid;             /* child of this process, not yet reaped while is_running */
    uint64_t output_bytes; /* bytes that it wrote so far */
    bool is_running;
};

/*
 * Read the devices. is_first: later readings are compared with this one. Returns true if a device
 * worked in between. *devices_out is a new tree for the report, or NULL.
 */
typedef bool (*ds_accel__device_progress_t)(void *user_data, bool is_first, json_t **devices_out);

/*
 * Watch rank_count ranks. All times are of one monotonic clock, which the caller reads.
 * timeout_ns: how long a job without progress is not reported; > 0. ERR_NO_MEMORY.
 */
int32_t ds_accel__stall_create(uint64_t timeout_ns, uint32_t rank_count, uint64_t now_ns,
                               struct ds_accel__stall **stall_out);
void ds_accel__stall_destroy(struct ds_accel__stall *stall);
/* The number of the first rank, in reports; 0 by default. */
void ds_accel__stall_set_first_rank(struct ds_accel__stall *stall, uint32_t first_rank);
/* Also watch the devices; NULL: nothing is known of them. user_data is borrowed. */
void ds_accel__stall_set_devices(struct ds_accel__stall *stall,
                                 ds_accel__device_progress_t device_progress, void *user_data);
/* Also report the tracebacks of programs that armed a handler: rank_count elements, borrowed. */
void ds_accel__stall_set_faults(struct ds_accel__stall *stall, struct ds_accel__fault *faults);
/* The job is ended after a report. The report then also stops threads whose system call fails for
 * it. */
void ds_accel__stall_set_last(struct ds_accel__stall *stall);
/* The time of the next check. */
uint64_t ds_accel__stall_next_ns(const struct ds_accel__stall *stall);
/* Begin the silence anew, because the job cannot go on for a reason outside it. */
void ds_accel__stall_postpone(struct ds_accel__stall *stall, uint64_t now_ns);
/*
 * Check the ranks. Call it at the time of ds_accel__stall_next_ns(); an earlier call is cheap, and
 * notices output sooner. While a stall is suspected, a call reads ranks for about 200 ms, and at
 * most 2 seconds longer if a process cannot be read; the first and the last call of all samples
 * also read the devices. After a stall was found, more calls read the frames, and the last one
 * tracebacks; if the job is to be ended, one call reads all frames, for at most 12 seconds. While
 * the own process of a rank is stopped, by a signal such as SIGSTOP or by a debugger, the search
 * pauses, and there is a notice.
 *
 * ranks        rank_count elements
 * report_out   caller; set if a stall was found, which is reported once, until there is progress:
 *
 *      {"silent_s": 300.5, "devices": ..., "common": {"function": "MPI_Allreduce",
 *       "module": "libmpi.so.40", "ranks": "0-2", "outside": "3"},
 *       "ranks": [{"rank": 0, "condition": "idle", "stack": ..., "python": "..."}]}
 *
 *              devices is what the device reading returned; condition is idle, spinning or ended;
 *              stack is as in ds_accel__stack_sample(), of one process of the rank. common is null
 *              if no rank is in a known wait. python is what the program's handler wrote, and may
 *              be missing.
 * Returns true if a stall was found.
 */
bool ds_accel__stall_check(struct ds_accel__stall *stall, uint64_t now_ns,
                           const struct ds_accel__stall_rank *ranks, json_t **report_out);
/* Why the search pauses, once for each stop of a rank, or failed, once; NULL: there is no new
 * reason. Call it after each check; the text is valid until the next one. */
const char *ds_accel__stall_take_notice(struct ds_accel__stall *stall);
/* Add a report as lines of text. */
void ds_accel__stall_write(const json_t *report, struct ds_accel__text *text);

#endif
