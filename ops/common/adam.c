/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "common/adam.h"

#include <float.h>
#include <math.h>

static const struct {
    ops__kernel_fn step;
    ops__kernel_fn undo;
} kernels[OPS__ISA_COUNT] = {
    [OPS__SCALAR] = {ops__adam_step_scalar, ops__adam_undo_scalar},
#if defined(__x86_64__)
    [OPS__AVX2] = {ops__adam_step_avx2, ops__adam_undo_avx2},
    [OPS__AVX512] = {ops__adam_step_avx512, ops__adam_undo_avx512},
#elif defined(__aarch64__)
    [OPS__NEON] = {ops__adam_step_neon, ops__adam_undo_neon},
    [OPS__SVE] = {ops__adam_step_sve, ops__adam_undo_sve},
#endif
};

int32_t ops__adam_check(const struct ops__call *call, const struct ds_accel_optimizer_step *common,
                        const struct ops__adam_options *options, struct ds_accel_error *error)
{
    if (!(options->beta1 >= 0 && options->beta1 < 1))
        return ops__invalid(call, error, "beta1 is %g; wanted 0 <= beta1 < 1", options->beta1);
    if (!(options->beta2 >= 0 && options->beta2 < 1))
        return ops__invalid(call, error, "beta2 is %g; wanted 0 <= beta2 < 1", options->beta2);
    if (!isfinite(ops__adam_prepare(common, options).step_size))
        return ops__invalid(call, error,
                            "learning_rate is %g and beta1 %g; wanted a learning_rate / (1 - "
                            "beta1^step) that is a finite float",
                            common->learning_rate, options->beta1);
    return ops__check_epsilon(call, options->epsilon, error);
}

/* Whether what was multiplied by this factor can be found again: a smaller one leaves nothing of a
 * float beside the number that was added to the product. */
static bool can_be_undone(double factor)
{
    return fabs(factor) >= FLT_EPSILON;
}

int32_t ops__adam_check_undo(const struct ops__call *call,
                             const struct ds_accel_optimizer_step *common,
                             const struct ops__adam_options *options, struct ds_accel_error *error)
{
    double decay_factor =
        common->flags & OPS__ADAM_L2 ? 1 : 1 - common->learning_rate * common->weight_decay;

    if (!can_be_undone(options->beta1) || !can_be_undone(options->beta2))
        return ops__invalid(call, error,
                            "beta1 is %g and beta2 %g; wanted 2^-23 or more, because the step kept "
                            "nothing of a moment",
                            options->beta1, options->beta2);
    if (!can_be_undone(decay_factor))
        return ops__invalid(call, error,
                            "1 - learning_rate * weight_decay is %g; wanted 2^-23 or more, because "
                            "the step kept nothing of the parameters",
                            decay_factor);
    return DS_ACCEL_OK;
}

struct ops__adam ops__adam_prepare(const struct ds_accel_optimizer_step *common,
                                   const struct ops__adam_options *options)
{
    bool corrected = !(common->flags & OPS__ADAM_NO_BIAS_CORRECTION);
    bool l2 = (common->flags & OPS__ADAM_L2) != 0;
    double step = (double)common->step;
    /* 1 - beta^t, also for a beta close to 1. */
    double c1 = corrected ? -expm1(step * log(options->beta1)) : 1;
    double c2 = corrected ? -expm1(step * log(options->beta2)) : 1;
    double decay_factor = l2 ? 1 : 1 - common->learning_rate * common->weight_decay;

    return (struct ops__adam){
        .gradient_scale = (float)common->gradient_scale,
        .l2 = l2 ? (float)common->weight_decay : 0,
        .has_l2 = l2 && common->weight_decay > 0,
        .decay_factor = (float)decay_factor,
        .beta1 = (float)options->beta1,
        .one_minus_beta1 = (float)(1 - options->beta1),
        .beta2 = (float)options->beta2,
        .one_minus_beta2 = (float)(1 - options->beta2),
        .root_factor = (float)(1 / sqrt(c2)),
        .epsilon = (float)options->epsilon,
        .step_size = (float)(common->learning_rate / c1),
        .undo_decay_factor = (float)(1 / decay_factor),
        .undo_beta1 = (float)(1 / options->beta1),
        .undo_beta2 = (float)(1 / options->beta2),
    };
}

void ops__adam_step(const struct ds_accel_optimizer_step *common, const struct ops__adam *constants)
{
    ops__optimizer_run(common, kernels[ops__isa()].step, constants);
}

void ops__adam_undo(const struct ds_accel_optimizer_step *common, const struct ops__adam *constants)
{
    ops__optimizer_run(common, kernels[ops__isa()].undo, constants);
}
