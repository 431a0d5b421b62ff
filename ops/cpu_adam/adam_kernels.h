/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The kernels of cpu_adam in one instruction set. The including file defines OPS_VECTOR_<SET> and
 * SET, the end of the functions' names. */
#include "adam.h"
#include "common/vector.h"

/* Return the change of the parameter. */
OPS__INLINED vf adam_change(const struct ops__adam *k, vf m, vf v)
{
    vf root = vf_fma(vf_sqrt(v), vf_set(k->root_factor), vf_set(k->epsilon));

    return vf_div(m, root);
}

OPS__INLINED void adam_step(const struct ops__adam *k, vf gradient, vf *parameter, vf *m, vf *v)
{
    vf g = vf_mul(gradient, vf_set(k->gradient_scale));

    if (k->has_l2)
        g = vf_fma(vf_set(k->l2), *parameter, g);
    *m = vf_fma(vf_set(k->beta1), *m, vf_mul(vf_set(k->one_minus_beta1), g));
    *v = vf_fma(vf_set(k->beta2), *v, vf_mul(vf_mul(vf_set(k->one_minus_beta2), g), g));
    *parameter = vf_mul(*parameter, vf_set(k->decay_factor));
    *parameter = vf_fma(vf_set(-k->step_size), adam_change(k, *m, *v), *parameter);
}

OPS__INLINED void adam_undo(const struct ops__adam *k, vf gradient, vf *parameter, vf *m, vf *v)
{
    vf g = vf_mul(gradient, vf_set(k->gradient_scale));
    vf before = vf_fma(vf_set(k->step_size), adam_change(k, *m, *v), *parameter);

    *parameter = vf_mul(before, vf_set(k->undo_decay_factor));
    if (k->has_l2)
        g = vf_fma(vf_set(k->l2), *parameter, g);
    *m = vf_mul(vf_fma(vf_set(-k->one_minus_beta1), g, *m), vf_set(k->undo_beta1));
    before = vf_mul(vf_set(-k->one_minus_beta2), g);
    *v = vf_mul(vf_fma(before, g, *v), vf_set(k->undo_beta2));
    /* Rounding can leave a second moment of almost 0 negative, and its root would be NaN. */
    *v = vf_max_zero(*v);
}

#define KERNEL NAME(ops__adam_step_, SET)
#define KERNEL_CONSTANTS struct ops__adam
#define KERNEL_STATES 2
#define KERNEL_UPDATE adam_step
#include "common/optimizer_kernel.h"

#define KERNEL NAME(ops__adam_undo_, SET)
#define KERNEL_CONSTANTS struct ops__adam
#define KERNEL_STATES 2
#define KERNEL_UPDATE adam_undo
#include "common/optimizer_kernel.h"

#include "common/vector_end.h"
