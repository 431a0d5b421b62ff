/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The limits of an optimizer: loops that only move its bytes, loops that only do its arithmetic.
 * limit_loops.h is compiled by one file per instruction set. It uses nothing of ops/, so that an
 * inefficient vector function of an op does not slow down the limit as well.
 */
#ifndef DS_ACCEL_TESTS_BENCH_LIMIT_H
#define DS_ACCEL_TESTS_BENCH_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits handle a multiple of so many elements. */
#define LIMIT_UNIT 128u

enum limit_dtype {
    LIMIT_NONE,
    LIMIT_FLOAT,
    LIMIT_HALF,
    LIMIT_BFLOAT
};
enum limit_formula {
    LIMIT_ADAM,
    LIMIT_LION,
    LIMIT_ADAGRAD
};

/* The arrays of a step, aligned to 64 bytes. */
struct limit_streams {
    char *parameter; /* read and written */
    const char *gradient;
    char *state[2]; /* read and written; the second one may be NULL */
    char *copy;     /* written, or NULL */
    enum limit_dtype parameter_dtype;
    enum limit_dtype gradient_dtype;
    enum limit_dtype state_dtype;
    enum limit_dtype copy_dtype;
    size_t count; /* a multiple of LIMIT_UNIT */
};

struct limit_set {
    const char *name; /* as in DS_ACCEL_OPS_ISA */
    /* Read and write the streams' bytes without changing them; the copy receives zeros, past the
     * caches if non_temporal. zero: 0, which the compiler must not know. Return what was read,
     * combined, so that no read can be left out. */
    uint64_t (*move)(const struct limit_streams *streams, bool non_temporal, uint64_t zero);
    /* Do the formula's arithmetic and conversions. */
    void (*compute)(const struct limit_streams *streams, enum limit_formula formula,
                    bool stochastic);
};

extern const struct limit_set limit_scalar;
extern const struct limit_set limit_avx2;
extern const struct limit_set limit_avx512;
extern const struct limit_set limit_neon;

/* Return the set of a path of an op, or NULL if there is none. */
const struct limit_set *limit_find(const char *name);

#endif
