/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The op fused_adam on the CPU. */
#include "fused_adam.h"

#include "common/adam.h"
#include "common/float_mode.h"
#include "common/gradient_sum.h"

_Static_assert(DS_ACCEL_FUSED_ADAM_L2 == OPS__ADAM_L2 &&
                   DS_ACCEL_FUSED_ADAM_NO_BIAS_CORRECTION == OPS__ADAM_NO_BIAS_CORRECTION,
               "the flags of common/adam.h");

#define STEP_FLAGS \
    (DS_ACCEL_FUSED_ADAM_L2 | DS_ACCEL_FUSED_ADAM_NO_BIAS_CORRECTION | \
     DS_ACCEL_OPTIMIZER_STOCHASTIC | DS_ACCEL_OPTIMIZER_SKIP_INFINITE)

/* The options behind the common ones. */
static struct ops__adam_options own(const struct ds_accel_fused_adam_options *options)
{
    return (struct ops__adam_options){options->beta1, options->beta2, options->epsilon};
}

static int32_t check(const struct ops__call *call,
                     const struct ds_accel_fused_adam_options *options,
                     struct ds_accel_error *error)
{
    struct ops__adam_options adam;
    int32_t status =
        ops__optimizer_check(call, (const struct ds_accel_optimizer_step *)options, error);

    if (status)
        return status;
    adam = own(options);
    status = ops__adam_check(call, &options->common, &adam, error);
    if (status)
        return status;
    if (options->stream)
        return ops__invalid(call, error, "stream is %p; wanted NULL on the CPU", options->stream);
    return DS_ACCEL_OK;
}

static int32_t fused_step(const struct ds_accel_fused_adam_options *options,
                          struct ds_accel_error *error)
{
    static const struct ops__call call = {
        .name = "fused_adam: step",
        .states = 2,
        .flags = STEP_FLAGS,
        .struct_bytes = sizeof(struct ds_accel_fused_adam_options),
    };
    OPS__STANDARD_FLOATS;
    struct ds_accel_optimizer_step common;
    struct ops__adam_options adam;
    struct ops__adam constants;
    int32_t status = check(&call, options, error);

    if (status)
        return status;
    if (!ops__gradients_examine(&options->common, &common))
        return DS_ACCEL_OK;
    adam = own(options);
    constants = ops__adam_prepare(&common, &adam);
    ops__adam_step(&common, &constants);
    return DS_ACCEL_OK;
}

static int32_t fused_sum_gradients(const struct ds_accel_fused_adam_options *options,
                                   struct ds_accel_gradient_sum *sum, struct ds_accel_error *error)
{
    static const struct ops__call call = {
        .name = "fused_adam: sum_gradients",
        .states = 2,
        .flags = STEP_FLAGS,
        .struct_bytes = sizeof(struct ds_accel_fused_adam_options),
    };
    OPS__STANDARD_FLOATS;
    int32_t status = check(&call, options, error);

    return status ? status : ops__gradients_sum(&call, &options->common, sum, error);
}

static const struct ds_accel_fused_adam table = {
    .op =
        {
            .struct_size = sizeof(struct ds_accel_fused_adam),
            .abi_major = DS_ACCEL_OP_ABI_MAJOR,
            .abi_minor = DS_ACCEL_OP_ABI_MINOR,
            .name = "fused_adam",
            .paths = ops__isa_names,
            .path = ops__isa_name,
        },
    .step = fused_step,
    .sum_gradients = fused_sum_gradients,
};

DS_ACCEL_OP("fused_adam", &table.op);
