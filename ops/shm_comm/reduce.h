/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reduction of arrays, element by element, in the order of the arrays. reduce_kernels.h is compiled
 * once per instruction set. The result has the same bits in all of them, and whatever the number of
 * elements of a call, except for the bits of a NaN.
 */
#ifndef OPS_SHM_COMM_REDUCE_H
#define OPS_SHM_COMM_REDUCE_H

#include "comm.h"

#include <stdbool.h>
#include <stddef.h>

/* The arrays may have any address. An output may be one of the inputs, else they do not overlap. */
struct ops__reduction {
    uint32_t dtype; /* DS_ACCEL_DTYPE_* of those that ops__element_bytes() knows */
    uint32_t op;    /* DS_ACCEL_COMM_* */
    const char *const *in;
    char *const *out; /* each receives the result */
    size_t in_count;  /* 1 or more */
    size_t out_count;
    size_t count; /* elements of each array */
    /* Sums of 16-bit floats that are not complete: in[0] or the outputs are float32. */
    bool in_is_wide;
    bool out_is_wide;
};

/* Return the size of an element, 0 for a type that has no reduction. */
size_t ops__element_bytes(uint32_t dtype);

/* 16-bit floats are added in float and rounded once. Integers wrap. A NaN stays NaN. */
void ops__reduce(const struct ops__reduction *reduction);

void ops__reduce_scalar(const struct ops__reduction *reduction);
void ops__reduce_avx2(const struct ops__reduction *reduction);
void ops__reduce_avx512(const struct ops__reduction *reduction);
void ops__reduce_neon(const struct ops__reduction *reduction);
void ops__reduce_sve(const struct ops__reduction *reduction);

#endif
