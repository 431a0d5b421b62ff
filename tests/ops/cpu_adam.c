/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Checks of the op cpu_adam: cpu_adam FILE.so ... */
#include "ds-accel/ops/cpu_adam.h"
#include "ops/adam_reference.h"

_Static_assert(DS_ACCEL_CPU_ADAM_L2 == ADAM_L2 &&
                   DS_ACCEL_CPU_ADAM_NO_BIAS_CORRECTION == ADAM_NO_BIAS_CORRECTION,
               "the flags");

static void set_options(union options *options)
{
    struct ds_accel_cpu_adam_options *adam = (struct ds_accel_cpu_adam_options *)options;

    adam->beta1 = BETA1;
    adam->beta2 = BETA2;
    adam->epsilon = EPSILON;
}

static int32_t step(const struct ds_accel_op *op, const union options *options,
                    struct ds_accel_error *error)
{
    return ((const struct ds_accel_cpu_adam *)op)
        ->step((const struct ds_accel_cpu_adam_options *)options, error);
}

static int32_t rollback(const struct ds_accel_op *op, const union options *options,
                        struct ds_accel_error *error)
{
    return ((const struct ds_accel_cpu_adam *)op)
        ->rollback((const struct ds_accel_cpu_adam_options *)options, error);
}

static int32_t sum(const struct ds_accel_op *op, const union options *options,
                   struct ds_accel_gradient_sum *gradient_sum, struct ds_accel_error *error)
{
    return ((const struct ds_accel_cpu_adam *)op)
        ->sum_gradients((const struct ds_accel_cpu_adam_options *)options, gradient_sum, error);
}

int main(int argc, char **argv)
{
    static const struct optimizer adam = {
        .name = "cpu_adam",
        .states = 2,
        .second_state_positive = true,
        .flags = {0, ADAM_L2, ADAM_NO_BIAS_CORRECTION, ADAM_L2 | ADAM_NO_BIAS_CORRECTION},
        .flags_count = 4,
        .options_bytes = sizeof(struct ds_accel_cpu_adam_options),
        .options = set_options,
        .reference = adam_reference,
        .step = step,
        .rollback = rollback,
        .sum = sum,
    };

    return optimizer_main(&adam, argc, argv);
}
