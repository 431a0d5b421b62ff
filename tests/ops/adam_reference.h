/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The step of Adam and AdamW in double, from the formula of cpu_adam.h. */
#ifndef TESTS_OPS_ADAM_REFERENCE_H
#define TESTS_OPS_ADAM_REFERENCE_H

#include "ops/optimizer.h"

#include <math.h>

#define ADAM_L2 1u
#define ADAM_NO_BIAS_CORRECTION 2u

#define BETA1 0.9
#define BETA2 0.999
#define EPSILON 1e-8

static inline void adam_reference(const struct step *step, struct element *e)
{
    bool corrected = !(step->flags & ADAM_NO_BIAS_CORRECTION);
    double c1 = corrected ? 1 - pow(BETA1, (double)step->step) : 1;
    double c2 = corrected ? 1 - pow(BETA2, (double)step->step) : 1;
    double g = e->gradient * step->gradient_scale;
    double parts = fabs(g); /* of the gradient */
    double decay = step->learning_rate * step->weight_decay;
    double parts_of_state;
    double change;

    if (step->flags & ADAM_L2) {
        g += step->weight_decay * e->parameter;
        parts += step->weight_decay * fabs(e->parameter);
    } else {
        e->parameter *= 1 - decay;
    }
    parts_of_state = BETA1 * fabs(e->state[0]) + parts;
    e->state[0] = BETA1 * e->state[0] + (1 - BETA1) * g;
    e->state[1] = BETA2 * e->state[1] + (1 - BETA2) * g * g;
    change = step->learning_rate / c1 * e->state[0] / (sqrt(e->state[1]) / sqrt(c2) + EPSILON);
    e->parameter -= change;
    /* The sums above can cancel, so the error is relative to their parts. */
    e->slack = 4e-7 * (fabs(e->parameter) + fabs(change)) + DENORMAL_SLACK +
               step->learning_rate / c1 * (4e-7 * parts_of_state + DENORMAL_SLACK) /
                   (sqrt(e->state[1]) / sqrt(c2) + EPSILON);
    if (e->state[1] > 0) /* the root of the second state, if the gradient is most of it */
        e->slack += fabs(change) * (1 - BETA2) * fabs(g) * 4e-7 * parts / e->state[1];
}

#endif
