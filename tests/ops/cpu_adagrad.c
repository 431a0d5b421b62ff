/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Checks of the op cpu_adagrad: cpu_adagrad FILE.so ... */
#include "ds-accel/ops/cpu_adagrad.h"
#include "ops/optimizer.h"

#include <math.h>

#define EPSILON 1e-10

static void set_options(union options *options)
{
    ((struct ds_accel_cpu_adagrad_options *)options)->epsilon = EPSILON;
}

static void reference(const struct step *step, struct element *e)
{
    double g = e->gradient * step->gradient_scale;
    double h = g + step->weight_decay * e->parameter;
    double parts = fabs(g) + step->weight_decay * fabs(e->parameter);
    double root;

    e->state[0] += h * h;
    root = sqrt(e->state[0]) + EPSILON;
    e->slack = 4e-7 * fabs(e->parameter) + DENORMAL_SLACK +
               step->learning_rate * (8e-7 * parts + DENORMAL_SLACK) / root;
    e->parameter -= step->learning_rate * (step->flags & DS_ACCEL_CPU_ADAGRAD_DECAYED ? h : g) /
                    root;
}

static int32_t step(const struct ds_accel_op *op, const union options *options,
                    struct ds_accel_error *error)
{
    return ((const struct ds_accel_cpu_adagrad *)op)
        ->step((const struct ds_accel_cpu_adagrad_options *)options, error);
}

static int32_t sum(const struct ds_accel_op *op, const union options *options,
                   struct ds_accel_gradient_sum *gradient_sum, struct ds_accel_error *error)
{
    return ((const struct ds_accel_cpu_adagrad *)op)
        ->sum_gradients((const struct ds_accel_cpu_adagrad_options *)options, gradient_sum, error);
}

SPOIL(struct ds_accel_cpu_adagrad_options, large_epsilon, own->epsilon = 1e39)
SPOIL(struct ds_accel_cpu_adagrad_options, small_epsilon, own->epsilon = 1e-46)

int main(int argc, char **argv)
{
    static const struct optimizer optimizer = {
        .name = "cpu_adagrad",
        .states = 1,
        .first_state_positive = true,
        .flags = {0, DS_ACCEL_CPU_ADAGRAD_DECAYED},
        .flags_count = 2,
        .options_bytes = sizeof(struct ds_accel_cpu_adagrad_options),
        .options = set_options,
        .reference = reference,
        .step = step,
        .sum = sum,
        .spoiled =
            {
                {large_epsilon, "epsilon is 1e+39; wanted", false},
                {small_epsilon, "epsilon is 1e-46, which is 0 as a float", false},
                {NULL, NULL, false},
            },
    };

    return optimizer_main(&optimizer, argc, argv);
}
