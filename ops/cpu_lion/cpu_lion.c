/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The op cpu_lion: its table, and what a step computes once. */
#include "cpu_lion.h"

#include "lion.h"

#include <math.h>

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

static int32_t lion_step(const struct ds_accel_cpu_lion_options *options,
                         struct ds_accel_error *error)
{
    static const struct ops__call call = {
        .name = "cpu_lion: step",
        .states = 1,
        .flags = DS_ACCEL_OPTIMIZER_STOCHASTIC,
        .struct_bytes = sizeof(struct ds_accel_cpu_lion_options),
    };
    struct ops__lion constants;
    int32_t status =
        ops__optimizer_check(&call, (const struct ds_accel_optimizer_step *)options, error);

    if (status)
        return status;
    if (!(options->beta1 >= 0 && options->beta1 <= 1))
        return ops__invalid(&call, error, "beta1 is %g; wanted 0 <= beta1 <= 1", options->beta1);
    if (!(options->beta2 >= 0 && options->beta2 <= 1))
        return ops__invalid(&call, error, "beta2 is %g; wanted 0 <= beta2 <= 1", options->beta2);
    constants = (struct ops__lion){
        .gradient_scale = (float)options->common.gradient_scale,
        .decay_factor = (float)(1 - options->common.learning_rate * options->common.weight_decay),
        .learning_rate = (float)options->common.learning_rate,
        .beta1 = (float)options->beta1,
        .one_minus_beta1 = (float)(1 - options->beta1),
        .beta2 = (float)options->beta2,
        .one_minus_beta2 = (float)(1 - options->beta2),
    };
    ops__optimizer_run(&options->common, kernels[ops__isa()], &constants);
    return DS_ACCEL_OK;
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
};

DS_ACCEL_EXPORT const struct ds_accel_op *ds_accel_op_entry_v1(void);

const struct ds_accel_op *ds_accel_op_entry_v1(void)
{
    return &table.op;
}
