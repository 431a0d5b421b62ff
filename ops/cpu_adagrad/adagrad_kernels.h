/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The kernel of cpu_adagrad in one instruction set. The including file defines OPS_VECTOR_<SET> and
 * SET, the end of the function's name. */
#include "adagrad.h"
#include "common/vector.h"

OPS__INLINED void adagrad_step(const struct ops__adagrad *k, vf gradient, vf *parameter, vf *v,
                               vf *unused, vf *numerator, vf *root)
{
    vf g = vf_mul(gradient, vf_set(k->gradient_scale));
    vf h = g;

    (void)unused;
    if (k->has_decay)
        h = vf_fma(vf_set(k->weight_decay), *parameter, g);
    *v = vf_fma(h, h, *v);
    *numerator = k->decayed ? h : g;
    *root = vf_sqrt(*v);
}

OPS__INLINED void adagrad_finish(const struct ops__adagrad *k, vf numerator, vf root, vf *parameter)
{
    vf change = vf_div(numerator, vf_add(root, vf_set(k->epsilon)));

    *parameter = vf_fma(vf_set(-k->learning_rate), change, *parameter);
}

#define KERNEL NAME(ops__adagrad_, SET)
#define KERNEL_CONSTANTS struct ops__adagrad
#define KERNEL_STATES 1
#define KERNEL_COPIES 1
#define KERNEL_UPDATE adagrad_step
#define KERNEL_FINISH adagrad_finish
#include "common/optimizer_kernel.h"

#include "common/vector_end.h"
