/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The op cpu_lion: its table, and what a step computes once. */
#include "cpu_lion.h"

#include "common/float_mode.h"
#include "common/gradient_sum.h"
#include "lion.h"

static const ops__kernel_fn kernels[OPS__ISA_COUNT] = {
    [OPS__SCALAR] = ops__lion_scalar,
#if defined(__x86_64__)
    [OPS__AVX2] = ops__lion_avx2,
    [OPS__AVX512] = ops__lion_avx512,
#elif defined(__aarch64__)
    [OPS__NEON] = ops__lion_neon,
    [OPS__SVE] = ops__lion_sve,
#endif
};

#define STEP_FLAGS (DS_ACCEL_OPTIMIZER_STOCHASTIC | DS_ACCEL_OPTIMIZER_SKIP_INFINITE)

static int32_t check(const struct ops__call *call, const struct ds_accel_cpu_lion_options *options,
                     struct ds_accel_error *error)
{
    int32_t status =
        ops__optimizer_check(call, (const struct ds_accel_optimizer_step *)options, error);

    if (status)
        return status;
    if (!(options->beta1 >= 0 && options->beta1 <= 1))
        return ops__invalid(call, error, "beta1 is %g; wanted 0 <= beta1 <= 1", options->beta1);
    if (!(options->beta2 >= 0 && options->beta2 <= 1))
        return ops__invalid(call, error, "beta2 is %g; wanted 0 <= beta2 <= 1", options->beta2);
    return DS_ACCEL_OK;
}

static int32_t lion_step(const struct ds_accel_cpu_lion_options *options,
                         struct ds_accel_error *error)
{
    static const struct ops__call call = {
        .name = "cpu_lion: step",
        .states = 1,
        .flags = STEP_FLAGS,
        .struct_bytes = sizeof(struct ds_accel_cpu_lion_options),
    };
    OPS__STANDARD_FLOATS;
    struct ds_accel_optimizer_step common;
    struct ops__lion constants;
    int32_t status = check(&call, options, error);

    if (status)
        return status;
    if (!ops__gradients_examine(&options->common, &common))
        return DS_ACCEL_OK;
    constants = (struct ops__lion){
        .gradient_scale = (float)common.gradient_scale,
        .decay_factor = (float)(1 - common.learning_rate * common.weight_decay),
        .learning_rate = (float)common.learning_rate,
        .beta1 = (float)options->beta1,
        .one_minus_beta1 = (float)(1 - options->beta1),
        .beta2 = (float)options->beta2,
        .one_minus_beta2 = (float)(1 - options->beta2),
    };
    ops__optimizer_run(&common, kernels[ops__isa()], &constants);
    return DS_ACCEL_OK;
}

static int32_t lion_sum_gradients(const struct ds_accel_cpu_lion_options *options,
                                  struct ds_accel_gradient_sum *sum, struct ds_accel_error *error)
{
    static const struct ops__call call = {
        .name = "cpu_lion: sum_gradients",
        .states = 1,
        .flags = STEP_FLAGS,
        .struct_bytes = sizeof(struct ds_accel_cpu_lion_options),
    };
    OPS__STANDARD_FLOATS;
    int32_t status = check(&call, options, error);

    return status ? status : ops__gradients_sum(&call, &options->common, sum, error);
}

static const struct ds_accel_cpu_lion table = {
    .op =
        {
            .struct_size = sizeof(struct ds_accel_cpu_lion),
            .abi_major = DS_ACCEL_OP_ABI_MAJOR,
            .abi_minor = DS_ACCEL_OP_ABI_MINOR,
            .name = "cpu_lion",
            .paths = ops__isa_names,
            .path = ops__isa_name,
        },
    .step = lion_step,
    .sum_gradients = lion_sum_gradients,
};

DS_ACCEL_OP("cpu_lion", &table.op);
