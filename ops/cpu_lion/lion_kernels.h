/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The kernel of cpu_lion in one instruction set. The including file defines OPS_VECTOR_<SET> and
 * SET, the end of the function's name. */
#include "common/vector.h"
#include "lion.h"

OPS__INLINED void lion_step(const struct ops__lion *k, vf gradient, vf *parameter, vf *m,
                            vf *unused, vf *numerator, vf *root)
{
    vf g = vf_mul(gradient, vf_set(k->gradient_scale));
    vf c = vf_fma(vf_set(k->beta1), *m, vf_mul(vf_set(k->one_minus_beta1), g));

    (void)unused;
    (void)numerator;
    (void)root;
    *parameter = vf_mul(*parameter, vf_set(k->decay_factor));
    *parameter = vf_fma(vf_set(-k->learning_rate), vf_sign(c), *parameter);
    *m = vf_fma(vf_set(k->beta2), *m, vf_mul(vf_set(k->one_minus_beta2), g));
}

OPS__INLINED void lion_finish(const struct ops__lion *k, vf numerator, vf root, vf *parameter)
{
    (void)k;
    (void)numerator;
    (void)root;
    (void)parameter;
}

#define KERNEL NAME(ops__lion_, SET)
#define KERNEL_CONSTANTS struct ops__lion
#define KERNEL_STATES 1
#define KERNEL_COPIES 1
#define KERNEL_UPDATE lion_step
#define KERNEL_FINISH lion_finish
#include "common/optimizer_kernel.h"

#include "common/vector_end.h"
