/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The op cpu_adam: its table, and the checks of its calls. */
#include "cpu_adam.h"

#include "common/adam.h"
#include "common/float_mode.h"
#include "common/gradient_sum.h"

_Static_assert(DS_ACCEL_CPU_ADAM_L2 == OPS__ADAM_L2 &&
                   DS_ACCEL_CPU_ADAM_NO_BIAS_CORRECTION == OPS__ADAM_NO_BIAS_CORRECTION,
               "the flags of common/adam.h");

#define STEP_FLAGS \
    (DS_ACCEL_CPU_ADAM_L2 | DS_ACCEL_CPU_ADAM_NO_BIAS_CORRECTION | DS_ACCEL_OPTIMIZER_STOCHASTIC | \
     DS_ACCEL_OPTIMIZER_SKIP_INFINITE)

/* The options behind the common ones. */
static struct ops__adam_options own(const struct ds_accel_cpu_adam_options *options)
{
    return (struct ops__adam_options){options->beta1, options->beta2, options->epsilon};
}

static int32_t check(const struct ops__call *call, const struct ds_accel_cpu_adam_options *options,
                     struct ds_accel_error *error)
{
    struct ops__adam_options adam;
    int32_t status =
        ops__optimizer_check(call, (const struct ds_accel_optimizer_step *)options, error);

    if (status)
        return status;
    adam = own(options);
    return ops__adam_check(call, &options->common, &adam, error);
}

static int32_t adam_step(const struct ds_accel_cpu_adam_options *options,
                         struct ds_accel_error *error)
{
    static const struct ops__call call = {
        .name = "cpu_adam: step",
        .states = 2,
        .flags = STEP_FLAGS,
        .struct_bytes = sizeof(struct ds_accel_cpu_adam_options),
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

static int32_t adam_rollback(const struct ds_accel_cpu_adam_options *options,
                             struct ds_accel_error *error)
{
    static const struct ops__call call = {
        .name = "cpu_adam: rollback",
        .states = 2,
        .flags = STEP_FLAGS,
        .struct_bytes = sizeof(struct ds_accel_cpu_adam_options),
    };
    OPS__STANDARD_FLOATS;
    struct ds_accel_optimizer_step common;
    struct ops__adam_options adam;
    struct ops__adam constants;
    int32_t status = check(&call, options, error);

    if (status)
        return status;
    common = options->common;
    common.flags &= ~DS_ACCEL_OPTIMIZER_STOCHASTIC; /* it rounds to the nearest */
    status = ops__optimizer_check_undo(&call, &common, error);
    if (status)
        return status;
    adam = own(options);
    status = ops__adam_check_undo(&call, &common, &adam, error);
    if (status)
        return status;
    constants = ops__adam_prepare(&common, &adam);
    ops__adam_undo(&common, &constants);
    return DS_ACCEL_OK;
}

static int32_t adam_sum_gradients(const struct ds_accel_cpu_adam_options *options,
                                  struct ds_accel_gradient_sum *sum, struct ds_accel_error *error)
{
    static const struct ops__call call = {
        .name = "cpu_adam: sum_gradients",
        .states = 2,
        .flags = STEP_FLAGS,
        .struct_bytes = sizeof(struct ds_accel_cpu_adam_options),
    };
    OPS__STANDARD_FLOATS;
    int32_t status = check(&call, options, error);

    return status ? status : ops__gradients_sum(&call, &options->common, sum, error);
}

static const struct ds_accel_cpu_adam table = {
    .op =
        {
            .struct_size = sizeof(struct ds_accel_cpu_adam),
            .abi_major = DS_ACCEL_OP_ABI_MAJOR,
            .abi_minor = DS_ACCEL_OP_ABI_MINOR,
            .name = "cpu_adam",
            .paths = ops__isa_names,
            .path = ops__isa_name,
        },
    .step = adam_step,
    .rollback = adam_rollback,
    .sum_gradients = adam_sum_gradients,
};

DS_ACCEL_OP("cpu_adam", &table.op);
