/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Checks of an optimizer op that are the same for all of them: optimizer.c. Each op's own file
 * describes the op as a struct optimizer and calls optimizer_main(). */
#ifndef TESTS_OPS_OPTIMIZER_H
#define TESTS_OPS_OPTIMIZER_H

#include "ds-accel/ops/op.h"

#include <stdbool.h>
#include <stddef.h>

/* Hyper-parameters of a step, for the op and for its reference. */
struct step {
    uint32_t flags;
    uint64_t step;
    double learning_rate;
    double weight_decay;
    double gradient_scale;
};

/* One element, before and after a step, in double. */
struct element {
    double parameter;
    double gradient;
    double state[2];
    double slack; /* after the step: how far the parameter may be off because of float arithmetic */
};

/* What the roundings of a few denormal float32 numbers, whose quantum is 2^-149, can add up to. */
#define DENORMAL_SLACK 0x1p-147

/* An op's options begin with the common ones; large enough for every op. */
union options {
    struct ds_accel_optimizer_step common;
    char space[256];
};

/* Call one of the op's functions. */
typedef int32_t (*step_fn)(const struct ds_accel_op *op, const union options *options,
                           struct ds_accel_error *error);

/* Make the op's own options invalid; the message that refuses them begins like this. */
struct spoiled {
    void (*spoil)(union options *options);
    const char *text;
    bool rolls_back; /* only a rollback refuses them */
};

#define SPOIL(type, name, change) \
    static void name(union options *options) \
    { \
        type *own = (type *)options; \
\
        change; \
    }

typedef int32_t (*sum_fn)(const struct ds_accel_op *op, const union options *options,
                          struct ds_accel_gradient_sum *sum, struct ds_accel_error *error);

struct optimizer {
    const char *name;
    unsigned states;
    bool first_state_positive; /* a sum of squares */
    bool second_state_positive;
    uint32_t flags[4]; /* combinations to check */
    unsigned flags_count;
    size_t options_bytes;
    /* Set the op's own options to usable values. */
    void (*options)(union options *options);
    /* The step in double, from the formula of the op's header. */
    void (*reference)(const struct step *step, struct element *element);
    step_fn step;
    step_fn rollback;           /* NULL: the op has none */
    sum_fn sum;                 /* sum_gradients() */
    struct spoiled spoiled[10]; /* ends with a text of NULL */
};

/* Checks that were made. */
struct tally {
    unsigned checks;
    unsigned failures;
};

/* Check the norm of the gradients, clipping and skipped steps: gradients.c. most: elements of the
 * largest cases. stride: of all lengths up to 257, one in this many. */
struct tally check_gradients(const struct optimizer *optimizer, const struct ds_accel_op *op,
                             size_t most, size_t stride);

/* Run all checks on every path of each shared object in argv. Return the exit status. */
int optimizer_main(const struct optimizer *optimizer, int argc, char **argv);

#endif
