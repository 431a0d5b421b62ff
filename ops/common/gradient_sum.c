/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "common/gradient_sum.h"

#define WORDS DS_ACCEL_GRADIENT_SUM_WORDS

static const ops__kernel_fn kernels[OPS__ISA_COUNT] = {
    [OPS__SCALAR] = ops__gradient_sum_scalar,
#if defined(__x86_64__)
    [OPS__AVX2] = ops__gradient_sum_avx2,
    [OPS__AVX512] = ops__gradient_sum_avx512,
#elif defined(__aarch64__)
    [OPS__NEON] = ops__gradient_sum_neon,
    [OPS__SVE] = ops__gradient_sum_sve,
#endif
};

struct collection {
    const struct ds_accel_optimizer_step *step;
    struct ds_accel_gradient_sum *sum;
};

static void collect_part(const void *work, uint64_t first, uint64_t end)
{
    const struct collection *collection = (const struct collection *)work;
    struct ds_accel_gradient_sum *total = collection->sum;
    struct ds_accel_gradient_sum part = {0};
    struct ds_accel_gradient_sum *sum = &part;

    ops__optimizer_run_chunks(collection->step, kernels[ops__isa()], &sum, first, end);
    for (unsigned i = 0; i < WORDS; i++)
        __atomic_fetch_add(&total->words[i], part.words[i], __ATOMIC_RELAXED);
    if (part.infinite_count)
        __atomic_store_n(&total->infinite_count, 1, __ATOMIC_RELAXED);
    if (part.nan_count)
        __atomic_store_n(&total->nan_count, 1, __ATOMIC_RELAXED);
}

/* Return the sum of all gradients of a step. */
static struct ds_accel_gradient_sum collect(const struct ds_accel_optimizer_step *step)
{
    struct ds_accel_gradient_sum sum = {0};
    const struct collection collection = {step, &sum};

    ops__optimizer_divide(step, collect_part, &collection);
    ops__sum_settle(&sum);
    return sum;
}

bool ops__gradients_examine(const struct ds_accel_optimizer_step *step,
                            struct ds_accel_optimizer_step *effective)
{
    bool skip = (step->flags & DS_ACCEL_OPTIMIZER_SKIP_INFINITE) != 0;
    struct ds_accel_gradient_sum sum;
    bool infinite;
    double norm;

    *effective = *step;
    if (!skip && step->max_norm == 0 && !step->gradient_norm &&
        !(step->gradient_sum && step->found_infinite))
        return true;
    sum = step->gradient_sum ? *step->gradient_sum : collect(step);
    infinite = sum.infinite_count != 0 || sum.nan_count != 0;
    norm = ops__norm(&sum, step->gradient_scale);
    if (step->gradient_norm)
        *step->gradient_norm = norm;
    if (step->found_infinite && infinite)
        *step->found_infinite = 1;
    effective->found_infinite = NULL;
    if (skip && infinite)
        return false;
    effective->gradient_scale = ops__clipped_scale(step->gradient_scale, step->max_norm, norm);
    return true;
}

int32_t ops__gradients_sum(const struct ops__call *call, const struct ds_accel_optimizer_step *step,
                           struct ds_accel_gradient_sum *sum, struct ds_accel_error *error)
{
    struct ds_accel_gradient_sum more;

    if (!sum)
        return ops__invalid(call, error, "sum is NULL");
    more = collect(step);
    ops__sum_more(sum, &more);
    return DS_ACCEL_OK;
}
