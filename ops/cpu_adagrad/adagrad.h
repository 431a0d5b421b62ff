/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The kernels of cpu_adagrad: adagrad_kernels.h is compiled once per instruction set. */
#ifndef OPS_CPU_ADAGRAD_ADAGRAD_H
#define OPS_CPU_ADAGRAD_ADAGRAD_H

#include "common/optimizer.h"

/* What is the same for all elements of a step. The names follow cpu_adagrad.h. */
struct ops__adagrad {
    float gradient_scale;
    float weight_decay;
    float learning_rate;
    float epsilon;
    bool has_decay; /* 0 * an infinite parameter would be NaN */
    bool decayed;   /* the numerator is h */
};

void ops__adagrad_scalar(const void *constants, const struct ops__chunk *chunk);
void ops__adagrad_avx2(const void *constants, const struct ops__chunk *chunk);
void ops__adagrad_avx512(const void *constants, const struct ops__chunk *chunk);
void ops__adagrad_neon(const void *constants, const struct ops__chunk *chunk);
void ops__adagrad_sve(const void *constants, const struct ops__chunk *chunk);

#endif
