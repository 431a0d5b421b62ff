/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The kernels of cpu_adam: adam.h is compiled once per instruction set, by the files adam_*.c. */
#ifndef OPS_CPU_ADAM_ADAM_H
#define OPS_CPU_ADAM_ADAM_H

#include "common/optimizer.h"

/* What is the same for all elements of a step. The names follow cpu_adam.h. */
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

#define OPS__ADAM_KERNELS(set) \
    void ops__adam_step_##set(const void *constants, const struct ops__chunk *chunk); \
    void ops__adam_undo_##set(const void *constants, const struct ops__chunk *chunk)
OPS__ADAM_KERNELS(scalar);
OPS__ADAM_KERNELS(avx2);
OPS__ADAM_KERNELS(avx512);
OPS__ADAM_KERNELS(neon);
OPS__ADAM_KERNELS(sve);

#endif
