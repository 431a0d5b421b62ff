/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Declarations of the random number generators: philox.c, rng.c, rng_fill.c, rng_default.c. */
#ifndef DS_ACCEL_RUNTIME_RNG_H
#define DS_ACCEL_RUNTIME_RNG_H

#include "ds_accel.h"

#include <stddef.h>

struct ds_accel__rng;

enum ds_accel__numbers_kind {
    DS_ACCEL__NUMBERS_BITS,
    DS_ACCEL__NUMBERS_UNIFORM,
    DS_ACCEL__NUMBERS_NORMAL
};

/* The parameters of random numbers; philox.c describes the algorithm. The caller sets seed,
 * position, kind and dtype. */
struct ds_accel__numbers {
    uint64_t seed;
    uint64_t subsequence;
    uint64_t block;
    uint32_t word; /* word within the block; 4: the subsequence is used up */
    uint32_t dtype;
    enum ds_accel__numbers_kind kind;
    size_t element_bytes;
    double base; /* a result is base + scale * standard number, limited to [least, most] */
    double scale;
    double least;
    double most;
};

/* Set the members that the caller does not set. first, second: low and high of a uniform
 * distribution, or mean and standard deviation of a normal one. ERR_INVALID: a parameter is not
 * valid. */
int32_t ds_accel__numbers_prepare(struct ds_accel__numbers *numbers, double first, double second,
                                  const char *call);
/* Move the position in *numbers to the next position where count elements may begin; *end_out: the
 * position after these elements. ERR_LIMIT: the rest of the subsequence is too short. */
int32_t ds_accel__numbers_place(struct ds_accel__numbers *numbers, uint64_t count,
                                struct ds_accel__numbers *end_out);
/* Write elements [first, first + count) of the sequence that begins at the position. */
void ds_accel__numbers_make(const struct ds_accel__numbers *numbers, uint64_t first, uint64_t count,
                            void *out);
void ds_accel__rng_destroy(struct ds_accel__rng *rng);
/* Return the private part of a generator; NULL, with the error set, if the generator is NULL,
 * destroyed, or inherited from a parent process, or if a host task makes the call and layer
 * validate forbids it. */
struct ds_accel__rng *ds_accel__rng_check(ds_accel_rng_t *rng, const char *call);
/* Return the status for a call for which ds_accel__rng_check() returned NULL. */
int32_t ds_accel__rng_refused(const ds_accel_rng_t *rng);

#endif
