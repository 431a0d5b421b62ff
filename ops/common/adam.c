/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "common/adam.h"

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

int32_t ops__adam_check(const struct ops__call *call, const struct ops__adam_options *options,
                        struct ds_accel_error *error)
{
    if (!(options->beta1 >= 0 && options->beta1 < 1))
        return ops__invalid(call, error, "beta1 is %g; wanted 0 <= beta1 < 1", options->beta1);
    if (!(options->beta2 >= 0 && options->beta2 < 1))
        return ops__invalid(call, error, "beta2 is %g; wanted 0 <= beta2 < 1", options->beta2);
    if (!(options->epsilon >= 0) || !isfinite(options->epsilon))
        return ops__invalid(call, error, "epsilon is %g; wanted 0 or more", options->epsilon);
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
