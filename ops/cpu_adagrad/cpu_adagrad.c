/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The op cpu_adagrad: its table, and what a step computes once. */
#include "cpu_adagrad.h"

#include "adagrad.h"

#include <math.h>

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

static int32_t adagrad_step(const struct ds_accel_cpu_adagrad_options *options,
                            struct ds_accel_error *error)
{
    static const struct ops__call call = {
        .name = "cpu_adagrad: step",
        .states = 1,
        .flags = DS_ACCEL_CPU_ADAGRAD_DECAYED | DS_ACCEL_OPTIMIZER_STOCHASTIC,
        .struct_bytes = sizeof(struct ds_accel_cpu_adagrad_options),
    };
    struct ops__adagrad constants;
    int32_t status =
        ops__optimizer_check(&call, (const struct ds_accel_optimizer_step *)options, error);

    if (status)
        return status;
    if (!(options->epsilon >= 0) || !isfinite(options->epsilon))
        return ops__invalid(&call, error, "epsilon is %g; wanted 0 or more", options->epsilon);
    constants = (struct ops__adagrad){
        .gradient_scale = (float)options->common.gradient_scale,
        .weight_decay = (float)options->common.weight_decay,
        .learning_rate = (float)options->common.learning_rate,
        .epsilon = (float)options->epsilon,
        .has_decay = options->common.weight_decay > 0,
        .decayed = (options->common.flags & DS_ACCEL_CPU_ADAGRAD_DECAYED) != 0,
    };
    ops__optimizer_run(&options->common, kernels[ops__isa()], &constants);
    return DS_ACCEL_OK;
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
};

DS_ACCEL_EXPORT const struct ds_accel_op *ds_accel_op_entry_v1(void);

const struct ds_accel_op *ds_accel_op_entry_v1(void)
{
    return &table.op;
}
