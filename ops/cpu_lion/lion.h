/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The kernels of cpu_lion: lion_kernels.h is compiled once per instruction set. */
#ifndef OPS_CPU_LION_LION_H
#define OPS_CPU_LION_LION_H

#include "common/optimizer.h"

/* What is the same for all elements of a step. The names follow cpu_lion.h. */
struct ops__lion {
    float gradient_scale;
    float decay_factor; /* of the parameter: 1 - learning_rate * weight_decay */
    float learning_rate;
    float beta1;
    float one_minus_beta1;
    float beta2;
    float one_minus_beta2;
};

void ops__lion_scalar(const void *constants, const struct ops__chunk *chunk);
void ops__lion_avx2(const void *constants, const struct ops__chunk *chunk);
void ops__lion_avx512(const void *constants, const struct ops__chunk *chunk);
void ops__lion_neon(const void *constants, const struct ops__chunk *chunk);
void ops__lion_sve(const void *constants, const struct ops__chunk *chunk);

#endif
