/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the files of the benchmark of communication; comm.c explains how they fit together. */
#ifndef DS_ACCEL_TESTS_BENCH_COMM_H
#define DS_ACCEL_TESTS_BENCH_COMM_H

#include "bench.h"

#define COMM_SIZES 16
#define COMM_GROUPS 2 /* of ranks: 2, and more than there are CPUs */
#define COMM_GOAL 1.5 /* time beside the limit's */

enum comm_name {
    COMM_PRIVATE,
    COMM_REGISTERED,
    COMM_CCL,
    COMM_LIMIT_PRIVATE,
    COMM_LIMIT_REGISTERED,
    COMM_OPENMPI,
    COMM_MPICH,
    COMM_GLOO,
    COMM_DEEPSPEED,
    COMM_NAMES
};

extern const char *const comm_names[COMM_NAMES];

struct comm_row {
    unsigned ranks;
    size_t bytes;
    double ns[COMM_NAMES]; /* of a call; 0: not measured */
};

struct comm_report {
    struct comm_row rows[COMM_SIZES * COMM_GROUPS];
    size_t count;
    unsigned rounds;
    char torch_version[64];
    char notes[8][256]; /* what was left out, and why */
    size_t note_count;
    struct bench_machine machine;
};

/* Return the least time of a peer, or 0. */
double comm_best_peer(const struct comm_row *row);
/* Return whether a row reaches a goal: faster than each peer, or within COMM_GOAL of the limit. */
bool comm_is_faster(const struct comm_row *row, enum comm_name ours);
bool comm_is_near(const struct comm_row *row, enum comm_name ours);

void comm_print(const struct comm_report *report);
/* Write dir/comm.json and dir/comm.svg. */
void comm_write(const struct comm_report *report, const char *dir);

#endif
