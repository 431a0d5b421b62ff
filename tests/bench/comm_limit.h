/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The least that an all-reduce of 2 ranks does through shared memory, without checks, without
 * deadlines, and waiting only by spinning:
 *
 *  - private buffers: a rank copies its input to shared memory, piece by piece, and adds the
 *    other's pieces to its own input
 *  - registered buffers: each rank adds one half of both inputs, and writes the sums to both
 *    outputs
 *
 * A message of up to 48 bytes travels in the cache line that tells of it.
 */
#ifndef DS_ACCEL_TESTS_BENCH_COMM_LIMIT_H
#define DS_ACCEL_TESTS_BENCH_COMM_LIMIT_H

#include "comm_loop.h"

/* Map the memory that ranks share. Called before they are forked. */
void comm_limit_prepare(const struct comm_loop *loop);
/* Measure a limit as one of the two ranks. */
void comm_limit_run(struct comm_loop *loop, bool is_registered);

#endif
