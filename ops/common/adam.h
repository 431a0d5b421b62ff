/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the ops cpu_adam and fused_adam share. The kernels are compiled once per instruction set, by
 * the files adam_<set>.c. */
#ifndef OPS_ADAM_H
#define OPS_ADAM_H

#include "common/optimizer.h"

/* Flags of both ops. */
#define OPS__ADAM_L2 1u
#define OPS__ADAM_NO_BIAS_CORRECTION 2u

/* The options of a step behind the common ones. The names follow cpu_adam.h. */
struct ops__adam_options {
    double beta1;
    double beta2;
    double epsilon;
};

/* What is the same for all elements of a step. */
struct ops__adam {
    float gradient_scale;
    float l2;           /* weight decay that is added to the gradient, or 0 */
    float decay_factor; /* of the parameter: 1 - learning_rate * weight_decay, or 1 */
    float beta1;
    float one_minus_beta1;
    float beta2;
    float one_minus_beta2;
    float root_factor; /* 1 / sqrt(c2) */
    float epsilon;
    float step_size;         /* learning_rate / c1 */
    float undo_decay_factor; /* reciprocals of decay_factor, beta1 and beta2, for the rollback */
    float undo_beta1;
    float undo_beta2;
    bool has_l2; /* 0 * an infinite parameter would be NaN */
};

/* ERR_INVALID: an option is not valid beside common ones that are. */
int32_t ops__adam_check(const struct ops__call *call, const struct ds_accel_optimizer_step *common,
                        const struct ops__adam_options *options, struct ds_accel_error *error);
/* ERR_INVALID: a step with these options, which are valid, cannot be undone. */
int32_t ops__adam_check_undo(const struct ops__call *call,
                             const struct ds_accel_optimizer_step *common,
                             const struct ops__adam_options *options, struct ds_accel_error *error);
struct ops__adam ops__adam_prepare(const struct ds_accel_optimizer_step *common,
                                   const struct ops__adam_options *options);
/* Take a step, or undo one, of arguments that have been checked. */
void ops__adam_step(const struct ds_accel_optimizer_step *common,
                    const struct ops__adam *constants);
void ops__adam_undo(const struct ds_accel_optimizer_step *common,
                    const struct ops__adam *constants);

#define OPS__ADAM_KERNELS(set) \
    void ops__adam_step_##set(const void *constants, const struct ops__chunk *chunk); \
    void ops__adam_undo_##set(const void *constants, const struct ops__chunk *chunk)
OPS__ADAM_KERNELS(scalar);
OPS__ADAM_KERNELS(avx2);
OPS__ADAM_KERNELS(avx512);
OPS__ADAM_KERNELS(neon);
OPS__ADAM_KERNELS(sve);

#endif
