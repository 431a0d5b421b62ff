/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Checks of the op cpu_lion: cpu_lion FILE.so ... */
#include "ds-accel/ops/cpu_lion.h"
#include "ops/optimizer.h"

#include <math.h>

#define BETA1 0.9
#define BETA2 0.99

static void set_options(union options *options)
{
    struct ds_accel_cpu_lion_options *lion = (struct ds_accel_cpu_lion_options *)options;

    lion->beta1 = BETA1;
    lion->beta2 = BETA2;
}

static void reference(const struct step *step, struct element *e)
{
    double g = e->gradient * step->gradient_scale;
    double c = BETA1 * e->state[0] + (1 - BETA1) * g;
    double unsure = 3e-7 * (fabs(e->state[0]) + fabs(g)) + DENORMAL_SLACK;

    e->parameter *= 1 - step->learning_rate * step->weight_decay;
    e->parameter -= step->learning_rate * ((c > 0) - (c < 0));
    e->state[0] = BETA2 * e->state[0] + (1 - BETA2) * g;
    e->slack = 3e-7 * (fabs(e->parameter) + step->learning_rate) + DENORMAL_SLACK;
    /* So close to 0 that float may have the other sign. */
    if (fabs(c) < unsure)
        e->slack += 2 * step->learning_rate;
}

static int32_t step(const struct ds_accel_op *op, const union options *options,
                    struct ds_accel_error *error)
{
    return ((const struct ds_accel_cpu_lion *)op)
        ->step((const struct ds_accel_cpu_lion_options *)options, error);
}

static int32_t sum(const struct ds_accel_op *op, const union options *options,
                   struct ds_accel_gradient_sum *gradient_sum, struct ds_accel_error *error)
{
    return ((const struct ds_accel_cpu_lion *)op)
        ->sum_gradients((const struct ds_accel_cpu_lion_options *)options, gradient_sum, error);
}

SPOIL(struct ds_accel_cpu_lion_options, large_beta1, own->beta1 = 1.1)
SPOIL(struct ds_accel_cpu_lion_options, no_beta2, own->beta2 = NAN)

int main(int argc, char **argv)
{
    static const struct optimizer optimizer = {
        .name = "cpu_lion",
        .states = 1,
        .flags_count = 1,
        .options_bytes = sizeof(struct ds_accel_cpu_lion_options),
        .options = set_options,
        .reference = reference,
        .step = step,
        .sum = sum,
        .spoiled =
            {
                {large_beta1, "beta1 is 1.1; wanted", false},
                {no_beta2, "beta2 is nan; wanted", false},
                {NULL, NULL, false},
            },
    };

    return optimizer_main(&optimizer, argc, argv);
}
