/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Results of ccl_comm against ones computed here: integers exactly, floats in double. A float sum
 * of n numbers, in any order, differs by at most (n - 1) * 2^-24 times the sum of their magnitudes.
 * The 16-bit numbers below have so few digits that float adds them exactly, so a result differs by
 * at most half a unit of its last digit.
 */
#ifndef TESTS_OPS_CCL_COMM_RESULTS_H
#define TESTS_OPS_CCL_COMM_RESULTS_H

#include "ds-accel/ops/ccl_comm.h"
#include "ops/checks.h"

extern const struct ds_accel_ccl_comm *ccl;

enum kind {
    ALL_REDUCE,
    REDUCE_SCATTER,
    ALL_GATHER,
    BROADCAST,
    KINDS
};

#define DTYPES 5
extern const uint32_t dtypes[DTYPES];

struct test_case {
    enum kind kind;
    uint32_t dtype;
    uint32_t reduction;
    uint32_t root;
    size_t count;
    uint64_t seed;
};

/* Mix the bits of a number. */
uint64_t mix(uint64_t number);
/* Run a case, in place if the seed says so, and check every element. */
void run_case(ds_accel_comm_t *comm, const struct ds_accel_ccl_comm_info *info,
              const struct test_case *test);

#endif
