/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What several samples show of the processes of a rank: stall_rank.c; the report of all ranks:
 * stall_report.c. */
#ifndef DS_ACCEL_LAUNCH_STALL_RANK_H
#define DS_ACCEL_LAUNCH_STALL_RANK_H

#include "launch/fault.h"
#include "launch/stack.h"
#include "launch/stall.h"
#include "launch/stall_scan.h"

/* A thread in the samples so far. */
struct ds_accel__watched_thread {
    pid_t tid;
    uint64_t first_cpu_ms, cpu_ms;
    json_int_t place;   /* of its wait, as in ds_accel__stack_sample(); 0: it was not read */
    bool has_moved;     /* it was outside a wait, or in different ones, or it is not known */
    unsigned run_count; /* samples in state R */
};

/* A process in the samples so far. */
struct ds_accel__watched {
    struct ds_accel__scanned process; /* in the first scan */
    json_t *stack; /* the last sample, or the one with frames for the report; NULL: none */
    unsigned sample_count;
    uint64_t first_ms, last_ms;
    uint64_t first_cpu_ms, cpu_ms;
    struct ds_accel__watched_thread threads[DS_ACCEL__STACK_THREADS];
    size_t thread_count;
};

/* Processes of a rank whose threads are read: its own, then those with the most CPU time. */
#define DS_ACCEL__WATCHED_PROCESSES 16u

/* A rank in the samples so far. */
struct ds_accel__watched_rank {
    struct ds_accel__watched *processes;   /* the first is the rank's own; borrowed */
    size_t count;                          /* 0: the rank has ended */
    uint64_t rest_ms;                      /* CPU time that is not in the samples */
    const struct ds_accel__watched *shown; /* the process to report */
};

enum ds_accel__condition {
    DS_ACCEL__CONDITION_WORKING,  /* it uses CPU time, or it is not known */
    DS_ACCEL__CONDITION_IDLE,     /* it uses no CPU time */
    DS_ACCEL__CONDITION_SPINNING, /* it uses CPU time only in waits */
};

/*
 * Choose the processes whose threads are to be read, in a new array: by rank, each rank's own
 * first.
 * ranks: rank_count elements, of which each refers to its part of the array. ERR_NO_MEMORY.
 */
int32_t ds_accel__watched_choose(const struct ds_accel__scan *scan, uint32_t rank_count,
                                 struct ds_accel__watched_rank *ranks,
                                 struct ds_accel__watched **watched_out, size_t *count_out);
/* Free the array. */
void ds_accel__watched_free(struct ds_accel__watched *watched, size_t count);
/* Add one sample of DS_ACCEL__STACK_ACTIVE, and take the reference to it. */
void ds_accel__watched_add(struct ds_accel__watched *watched, json_t *stack);
/* Replace the last sample by one with frames, for the report, and take the reference to it. */
void ds_accel__watched_set_frames(struct ds_accel__watched *watched, json_t *stack);
/* True if the process is at work, whatever its further samples show. during_ms: the time from the
 * first sample to the last one that is to be taken. */
bool ds_accel__watched_is_at_work(const struct ds_accel__watched *watched, uint64_t during_ms);
/* The wait of a process, "wait" of a thread in its stack, if the thread was in no other wait in the
 * samples: that of an operation of communication, else the main thread's; NULL: none. Borrowed. */
const json_t *ds_accel__watched_wait(const struct ds_accel__watched *watched);

/* Set the CPU time between two scans that is not in sample_count samples of each rank's processes.
 * Returns that of processes that belong to no rank, in ms. */
uint64_t ds_accel__watched_ranks_rest(struct ds_accel__watched_rank *ranks, uint32_t rank_count,
                                      const struct ds_accel__scan *first,
                                      const struct ds_accel__scan *last, unsigned sample_count);
/* CPU time that a process uses in a time without being at work: timers, rounding. */
uint64_t ds_accel__watched_limit_ms(uint64_t during_ms);
/* What the rank did in sample_count samples. */
enum ds_accel__condition ds_accel__watched_rank_condition(const struct ds_accel__watched_rank *rank,
                                                          uint64_t during_ms,
                                                          unsigned sample_count);
/* Choose the process to report: one that communicates, else one that uses CPU time, else one that
 * does more than to wait for other processes. */
void ds_accel__watched_rank_choose(struct ds_accel__watched_rank *rank, unsigned sample_count);

/* Everything that a report contains. Borrowed. */
struct ds_accel__stall_facts {
    uint64_t silent_ns;                           /* since the last output */
    const struct ds_accel__watched_rank *watched; /* [rank_count] */
    uint64_t during_ms;                           /* from the first scan to the last */
    const struct ds_accel__stall_rank *ranks;
    const struct ds_accel__fault *faults; /* NULL: none */
    uint32_t rank_count;
    uint32_t first_rank; /* the number of the first one */
    json_t *devices;     /* NULL: not known */
};

/* The report of ds_accel__stall_check(); NULL: out of memory. */
json_t *ds_accel__stall_report(const struct ds_accel__stall_facts *facts);

#endif
