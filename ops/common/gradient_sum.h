/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Exact sums of the squares of gradients. A sum is an integer in units of 2^-384, divided into
 * words of 32 bits with room for carries, so no addition rounds, and the order of additions does
 * not matter: every path, number of threads and division into slices has the same sum.
 *
 * gradient_sum_kernel.h adds the squares of a chunk, gradient_sum.c adds up chunks and threads, and
 * gradient_norm.h computes the norm and what follows from it.
 */
#ifndef OPS_GRADIENT_SUM_H
#define OPS_GRADIENT_SUM_H

#include "common/gradient_norm.h"
#include "common/optimizer.h"

/* Add number * 2^exponent. It is a multiple of the unit, and each word takes 2^29 such numbers
 * before ops__sum_carry(). */
static inline void ops__sum_add(struct ds_accel_gradient_sum *sum, int64_t number, int exponent)
{
    unsigned position = (unsigned)(exponent - OPS__SUM_LEAST);
    int64_t *word = sum->words + position / OPS__SUM_DIGIT;
    int64_t factor = (int64_t)1 << position % OPS__SUM_DIGIT;
    int64_t low = (int64_t)((uint64_t)number & UINT32_MAX) * factor;
    int64_t high = (number >> OPS__SUM_DIGIT) * factor; /* rounded down, as in the next lines */

    word[0] += low & (int64_t)UINT32_MAX;
    word[1] += (low >> OPS__SUM_DIGIT) + (high & (int64_t)UINT32_MAX);
    word[2] += high >> OPS__SUM_DIGIT;
}

/*
 * The work that a step asks for before its update. Return false if the step is to be skipped.
 *
 * If the step asks for the norm, reads all gradients once, unless the caller passed their sum.
 * *effective becomes the step to take: its gradient_scale has the coefficient of clipping, and its
 * found_infinite is NULL if the gradients have been examined.
 */
bool ops__gradients_examine(const struct ds_accel_optimizer_step *step,
                            struct ds_accel_optimizer_step *effective);
/* sum_gradients() of an optimizer, of options that the op has checked. */
int32_t ops__gradients_sum(const struct ops__call *call, const struct ds_accel_optimizer_step *step,
                           struct ds_accel_gradient_sum *sum, struct ds_accel_error *error);

/* Add the squares of a chunk's gradients. constants: a struct ds_accel_gradient_sum **. */
void ops__gradient_sum_scalar(const void *constants, const struct ops__chunk *chunk);
void ops__gradient_sum_avx2(const void *constants, const struct ops__chunk *chunk);
void ops__gradient_sum_avx512(const void *constants, const struct ops__chunk *chunk);
void ops__gradient_sum_neon(const void *constants, const struct ops__chunk *chunk);
void ops__gradient_sum_sve(const void *constants, const struct ops__chunk *chunk);

#endif
