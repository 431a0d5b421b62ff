/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The op cpu_adagrad: its table, and what a step computes once. */
#include "cpu_adagrad.h"

#include "adagrad.h"
#include "common/float_mode.h"
#include "common/gradient_sum.h"

static const ops__kernel_fn kernels[OPS__ISA_COUNT] = {
    [OPS__SCALAR] = ops__adagrad_scalar,
#if defined(__x86_64__)
    [OPS__AVX2] = ops__adagrad_avx2,
    [OPS__AVX512] = ops__adagrad_avx512,
#elif defined(__aarch64__)
    [OPS__NEON] = ops__adagrad_neon,
    [OPS__SVE] = ops__adagrad_sve,
#endif
};

#define STEP_FLAGS \
    (DS_ACCEL_CPU_ADAGRAD_DECAYED | DS_ACCEL_OPTIMIZER_STOCHASTIC | \
     DS_ACCEL_OPTIMIZER_SKIP_INFINITE)

static int32_t check(const struct ops__call *call,
                     const struct ds_accel_cpu_adagrad_options *options,
                     struct ds_accel_error *error)
{
    int32_t status =
        ops__optimizer_check(call, (const struct ds_accel_optimizer_step *)options, error);

    return status ? status : ops__check_epsilon(call, options->epsilon, error);
}

static int32_t adagrad_step(const struct ds_accel_cpu_adagrad_options *options,
                            struct ds_accel_error *error)
{
    static const struct ops__call call = {
        .name = "cpu_adagrad: step",
        .states = 1,
        .flags = STEP_FLAGS,
        .struct_bytes = sizeof(struct ds_accel_cpu_adagrad_options),
    };
    OPS__STANDARD_FLOATS;
    struct ds_accel_optimizer_step common;
    struct ops__adagrad constants;
    int32_t status = check(&call, options, error);

    if (status)
        return status;
    if (!ops__gradients_examine(&options->common, &common))
        return DS_ACCEL_OK;
    constants = (struct ops__adagrad){
        .gradient_scale = (float)common.gradient_scale,
        .weight_decay = (float)common.weight_decay,
        .learning_rate = (float)common.learning_rate,
        .epsilon = (float)options->epsilon,
        .has_decay = common.weight_decay > 0,
        .decayed = (common.flags & DS_ACCEL_CPU_ADAGRAD_DECAYED) != 0,
    };
    ops__optimizer_run(&common, kernels[ops__isa()], &constants);
    return DS_ACCEL_OK;
}

static int32_t adagrad_sum_gradients(const struct ds_accel_cpu_adagrad_options *options,
                                     struct ds_accel_gradient_sum *sum,
                                     struct ds_accel_error *error)
{
    static const struct ops__call call = {
        .name = "cpu_adagrad: sum_gradients",
        .states = 1,
        .flags = STEP_FLAGS,
        .struct_bytes = sizeof(struct ds_accel_cpu_adagrad_options),
    };
    OPS__STANDARD_FLOATS;
    int32_t status = check(&call, options, error);

    return status ? status : ops__gradients_sum(&call, &options->common, sum, error);
}

static const struct ds_accel_cpu_adagrad table = {
    .op =
        {
            .struct_size = sizeof(struct ds_accel_cpu_adagrad),
            .abi_major = DS_ACCEL_OP_ABI_MAJOR,
            .abi_minor = DS_ACCEL_OP_ABI_MINOR,
            .name = "cpu_adagrad",
            .paths = ops__isa_names,
            .path = ops__isa_name,
        },
    .step = adagrad_step,
    .sum_gradients = adagrad_sum_gradients,
};

DS_ACCEL_OP("cpu_adagrad", &table.op);
