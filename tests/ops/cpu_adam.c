/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Checks of the op cpu_adam: cpu_adam FILE.so ... */
#include "ds-accel/ops/cpu_adam.h"
#include "ops/optimizer.h"

#include <math.h>

#define BETA1 0.9
#define BETA2 0.999
#define EPSILON 1e-8

static void set_options(union options *options)
{
    struct ds_accel_cpu_adam_options *adam = (struct ds_accel_cpu_adam_options *)options;

    adam->beta1 = BETA1;
    adam->beta2 = BETA2;
    adam->epsilon = EPSILON;
}

static void reference(const struct step *step, struct element *e)
{
    bool corrected = !(step->flags & DS_ACCEL_CPU_ADAM_NO_BIAS_CORRECTION);
    double c1 = corrected ? 1 - pow(BETA1, (double)step->step) : 1;
    double c2 = corrected ? 1 - pow(BETA2, (double)step->step) : 1;
    double g = e->gradient * step->gradient_scale;
    double decay = step->learning_rate * step->weight_decay;
    double change;

    if (step->flags & DS_ACCEL_CPU_ADAM_L2)
        g += step->weight_decay * e->parameter;
    else
        e->parameter *= 1 - decay;
    e->state[0] = BETA1 * e->state[0] + (1 - BETA1) * g;
    e->state[1] = BETA2 * e->state[1] + (1 - BETA2) * g * g;
    change = step->learning_rate / c1 * e->state[0] / (sqrt(e->state[1]) / sqrt(c2) + EPSILON);
    e->parameter -= change;
    /* The sums above can cancel, so the error is relative to their parts. */
    e->slack = 4e-7 * (fabs(e->parameter) + fabs(change)) +
               4e-7 * step->learning_rate / c1 * (fabs(e->state[0]) + fabs(g)) /
                   (sqrt(e->state[1]) / sqrt(c2) + EPSILON);
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

int main(int argc, char **argv)
{
    static const struct optimizer adam = {
        .name = "cpu_adam",
        .states = 2,
        .second_state_positive = true,
        .flags = {0, DS_ACCEL_CPU_ADAM_L2, DS_ACCEL_CPU_ADAM_NO_BIAS_CORRECTION,
                  DS_ACCEL_CPU_ADAM_L2 | DS_ACCEL_CPU_ADAM_NO_BIAS_CORRECTION},
        .flags_count = 4,
        .options_bytes = sizeof(struct ds_accel_cpu_adam_options),
        .options = set_options,
        .reference = reference,
        .step = step,
        .rollback = rollback,
    };

    return optimizer_main(&adam, argc, argv);
}
