/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What follows from the exact sum of the squares of gradients: the norm, and the coefficient of
 * clipping. nvcc compiles it too, and no operation is fused with another one, so all devices have
 * the same bits.
 */
#ifndef OPS_GRADIENT_NORM_H
#define OPS_GRADIENT_NORM_H

#include "common/half.h"
#include "op.h"

#include <math.h>
#include <stdbool.h>

#define OPS__SUM_LEAST (-384) /* exponent of the unit */
#define OPS__SUM_DIGIT 32     /* bits of a word without carries */
#define OPS__SUM_MASK 0xFFFFFFFFu

/* As in torch.nn.utils.clip_grad_norm_(). */
#define OPS__CLIP_EPSILON 1e-6

#ifdef __CUDACC__
#define ops__leading_zeros(word) ((unsigned)__clz((int)(word)))
#define ops__product(a, b) __dmul_rn(a, b)
#define ops__total(a, b) __dadd_rn(a, b)
#else
#define ops__leading_zeros(word) ((unsigned)__builtin_clz(word))
#define ops__product(a, b) ((a) * (b))
#define ops__total(a, b) ((a) + (b))
#endif

/* Leave 32 bits in each word but the last. */
OPS__INLINED void ops__sum_carry(struct ds_accel_gradient_sum *sum)
{
    for (unsigned i = 0; i + 1 < DS_ACCEL_GRADIENT_SUM_WORDS; i++) {
        sum->words[i + 1] += sum->words[i] >> OPS__SUM_DIGIT;
        sum->words[i] &= (int64_t)OPS__SUM_MASK;
    }
}

OPS__INLINED void ops__sum_more(struct ds_accel_gradient_sum *sum,
                                const struct ds_accel_gradient_sum *more)
{
    for (unsigned i = 0; i < DS_ACCEL_GRADIENT_SUM_WORDS; i++)
        sum->words[i] += more->words[i];
    sum->infinite_count += more->infinite_count;
    sum->nan_count += more->nan_count;
    ops__sum_carry(sum);
}

/* Make the sum of a call what it is for every division into tiles: which finite gradients were
 * added beside infinite ones depends on the division. */
OPS__INLINED void ops__sum_settle(struct ds_accel_gradient_sum *sum)
{
    bool is_nan = sum->nan_count != 0;
    bool is_infinite = !is_nan && sum->infinite_count != 0;

    ops__sum_carry(sum);
    sum->nan_count = is_nan;
    sum->infinite_count = is_infinite;
    for (unsigned i = 0; (is_nan || is_infinite) && i < DS_ACCEL_GRADIENT_SUM_WORDS; i++)
        sum->words[i] = 0;
}

/* Round a sum, whose words have been carried, to double, to nearest even. */
OPS__INLINED double ops__sum_rounded(const struct ds_accel_gradient_sum *sum)
{
    /* With two zeros before the first word; the last word, which is not limited, in two. */
    uint64_t digits[2 + DS_ACCEL_GRADIENT_SUM_WORDS + 1] = {0};
    uint64_t head;
    bool more;
    unsigned top = DS_ACCEL_GRADIENT_SUM_WORDS + 2;
    unsigned shift;

    for (unsigned i = 0; i < DS_ACCEL_GRADIENT_SUM_WORDS; i++)
        digits[2 + i] = (uint64_t)sum->words[i];
    digits[top] = digits[top - 1] >> OPS__SUM_DIGIT;
    digits[top - 1] &= OPS__SUM_MASK;
    while (top > 2 && digits[top] == 0)
        top--;
    if (digits[top] == 0)
        return 0;
    shift = ops__leading_zeros((uint32_t)digits[top]);
    head = (digits[top] << OPS__SUM_DIGIT | digits[top - 1]) << shift;
    head |= digits[top - 2] >> (OPS__SUM_DIGIT - shift);
    more = (digits[top - 2] << shift & OPS__SUM_MASK) != 0;
    for (unsigned i = 2; i + 2 < top; i++)
        more |= digits[i] != 0;
    /* 63 bits, the last of which stands for all below it, so that one rounding follows. */
    head = head >> 1 | (head & 1) | more;
    return ldexp((double)(int64_t)head,
                 (int)(top - 2 - 1) * OPS__SUM_DIGIT + OPS__SUM_LEAST - (int)shift + 1);
}

/* Return the norm of gradients with this sum, times |gradient_scale|. */
OPS__INLINED double ops__norm(const struct ds_accel_gradient_sum *sum, double gradient_scale)
{
    struct ds_accel_gradient_sum carried = *sum;

    if (sum->nan_count != 0)
        return (double)NAN;
    if (sum->infinite_count != 0)
        return (double)INFINITY;
    ops__sum_carry(&carried);
    return ops__product(sqrt(ops__sum_rounded(&carried)), fabs(gradient_scale));
}

/* Return gradient_scale times the coefficient that clips gradients of this norm. max_norm 0: it is
 * left as it is. */
OPS__INLINED double ops__clipped_scale(double gradient_scale, double max_norm, double norm)
{
    double coefficient = max_norm / ops__total(norm, OPS__CLIP_EPSILON);

    if (!(max_norm > 0) || coefficient > 1) /* a NaN is not greater */
        return gradient_scale;
    return ops__product(gradient_scale, coefficient);
}

#endif
