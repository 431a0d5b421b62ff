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

SPOIL(struct ds_accel_cpu_adam_options, no_beta1, own->beta1 = 1)
SPOIL(struct ds_accel_cpu_adam_options, no_beta2, own->beta2 = NAN)
SPOIL(struct ds_accel_cpu_adam_options, large_epsilon, own->epsilon = 1e39)
SPOIL(struct ds_accel_cpu_adam_options, small_epsilon, own->epsilon = 1e-46)
SPOIL(struct ds_accel_cpu_adam_options, large_step, own->beta1 = 1 - 0x1p-53;
      own->common.learning_rate = 1e30)
SPOIL(struct ds_accel_cpu_adam_options, lost_moment, own->beta1 = 1e-39)
SPOIL(struct ds_accel_cpu_adam_options, lost_square, own->beta2 = 1e-8)
SPOIL(struct ds_accel_cpu_adam_options, lost_parameters, own->common.learning_rate = 0.5;
      own->common.weight_decay = 2 - 1e-12)

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
        .spoiled =
            {
                {no_beta1, "beta1 is 1; wanted", false},
                {no_beta2, "beta2 is nan; wanted", false},
                {large_epsilon, "epsilon is 1e+39; wanted", false},
                {small_epsilon, "epsilon is 1e-46, which is 0 as a float", false},
                {large_step, "learning_rate is 1e+30 and beta1 1; wanted", false},
                {lost_moment, "beta1 is 1e-39 and beta2 0.999; wanted", true},
                {lost_square, "beta1 is 0.9 and beta2 1e-08; wanted", true},
                {lost_parameters, "1 - learning_rate * weight_decay is 5", true},
                {NULL, NULL, false},
            },
    };

    return optimizer_main(&adam, argc, argv);
}
