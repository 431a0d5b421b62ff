/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What several samples show of one rank: stall_rank.c; the report of all ranks: stall_report.c. */
#ifndef DS_ACCEL_LAUNCH_STALL_RANK_H
#define DS_ACCEL_LAUNCH_STALL_RANK_H

#include "launch/fault.h"
#include "launch/stack.h"
#include "launch/stall.h"

/* A thread in the samples so far. */
struct ds_accel__watched_thread {
    pid_t tid;
    uint64_t first_cpu_ms, cpu_ms;
    json_int_t place;    /* of its wait, as in ds_accel__stack_sample() */
    unsigned same_count; /* samples, from the first on, with this place */
    unsigned run_count;  /* samples in state R */
};

/* A rank in the samples so far; {0}: no sample. */
struct ds_accel__watched {
    json_t *stack; /* the last sample, as ds_accel__stack_sample() returns it */
    unsigned sample_count;
    pid_t pid;       /* the process that was read */
    bool is_changed; /* another process was read later */
    uint64_t first_ms, last_ms;
    uint64_t first_cpu_ms, cpu_ms;
    struct ds_accel__watched_thread threads[DS_ACCEL__STACK_THREADS];
    size_t thread_count;
};

enum ds_accel__condition {
    DS_ACCEL__CONDITION_WORKING,  /* it uses CPU time, or it is not known */
    DS_ACCEL__CONDITION_IDLE,     /* it uses no CPU time */
    DS_ACCEL__CONDITION_SPINNING, /* it uses CPU time only in waits */
};

/* Add one sample, and take the reference to it. */
void ds_accel__watched_add(struct ds_accel__watched *watched, json_t *stack);
void ds_accel__watched_clear(struct ds_accel__watched *watched);
/* What the rank did in sample_count samples. */
enum ds_accel__condition ds_accel__watched_condition(const struct ds_accel__watched *watched,
                                                     unsigned sample_count);
/* The wait of the rank, "wait" of a thread in its last sample, if it was the same in all samples:
 * that of an operation of communication, else the main thread's; NULL: none. Borrowed. */
const json_t *ds_accel__watched_wait(const struct ds_accel__watched *watched);

/* Everything that a report contains. Borrowed. */
struct ds_accel__stall_facts {
    uint64_t silent_ns; /* since the last output */
    const struct ds_accel__watched *watched;
    const struct ds_accel__stall_rank *ranks;
    const struct ds_accel__fault *faults; /* NULL: none */
    uint32_t rank_count;
    uint32_t first_rank; /* the number of the first one */
    json_t *devices;     /* NULL: not known */
};

/* The report of ds_accel__stall_check(); NULL: out of memory. */
json_t *ds_accel__stall_report(const struct ds_accel__stall_facts *facts);

#endif
