/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The formula of Adam, and its inverse, for one vector. The including file has the vectors: vf and
 * the functions of vector.h. Included once. */
/* Return the change of the parameter. root: of v */
OPS__INLINED vf adam_change(const struct ops__adam *k, vf m, vf root)
{
    return vf_div(m, vf_fma(root, vf_set(k->root_factor), vf_set(k->epsilon)));
}

OPS__INLINED void adam_step(const struct ops__adam *k, vf gradient, vf *parameter, vf *m, vf *v,
                            vf *numerator, vf *root)
{
    vf g = vf_mul(gradient, vf_set(k->gradient_scale));

    if (k->has_l2)
        g = vf_fma(vf_set(k->l2), *parameter, g);
    *m = vf_fma(vf_set(k->beta1), *m, vf_mul(vf_set(k->one_minus_beta1), g));
    *v = vf_fma(vf_set(k->beta2), *v, vf_mul(vf_mul(vf_set(k->one_minus_beta2), g), g));
    *numerator = *m;
    *root = vf_sqrt(*v);
}

OPS__INLINED void adam_finish_step(const struct ops__adam *k, vf numerator, vf root, vf *parameter)
{
    *parameter = vf_mul(*parameter, vf_set(k->decay_factor));
    *parameter = vf_fma(vf_set(-k->step_size), adam_change(k, numerator, root), *parameter);
}

OPS__INLINED void adam_undo(const struct ops__adam *k, vf gradient, vf *parameter, vf *m, vf *v,
                            vf *numerator, vf *root)
{
    vf g = vf_mul(gradient, vf_set(k->gradient_scale));
    vf before = vf_fma(vf_set(k->step_size), adam_change(k, *m, vf_sqrt(*v)), *parameter);

    (void)numerator;
    (void)root;
    *parameter = vf_mul(before, vf_set(k->undo_decay_factor));
    if (k->has_l2)
        g = vf_fma(vf_set(k->l2), *parameter, g);
    *m = vf_mul(vf_fma(vf_set(-k->one_minus_beta1), g, *m), vf_set(k->undo_beta1));
    before = vf_mul(vf_set(-k->one_minus_beta2), g);
    *v = vf_mul(vf_fma(before, g, *v), vf_set(k->undo_beta2));
    /* Rounding can leave a second moment of almost 0 negative, and its root would be NaN. */
    *v = vf_max_zero(*v);
}

OPS__INLINED void adam_finish_undo(const struct ops__adam *k, vf numerator, vf root, vf *parameter)
{
    (void)k;
    (void)numerator;
    (void)root;
    (void)parameter;
}
