/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The op cpu_adam: Adam and AdamW on the CPU.
 *
 * With t the step, c1 = 1 - beta1^t and c2 = 1 - beta2^t (both 1 without bias correction), all
 * arithmetic in float:
 *
 *     g = gradient * gradient_scale
 *     L2:    g = g + weight_decay * p
 *     AdamW: p = p * (1 - learning_rate * weight_decay)
 *     m = beta1 * m + (1 - beta1) * g
 *     v = beta2 * v + (1 - beta2) * g * g
 *     p = p - learning_rate / c1 * m / (sqrt(v) / sqrt(c2) + epsilon)
 *
 * m, v and p are rounded when they are stored, to nearest even (or p stochastically); p is computed
 * from the m and v before their rounding. A NaN is stored as 0x7FC0 in bfloat16. Every element has
 * the same result on every path, for every number of threads, alignment and division into slices,
 * except for the bits of a NaN in float32 and float16.
 *
 * state[0] is m, the first moment, state[1] v, the second. Both begin as zeros.
 */
#ifndef DS_ACCEL_OPS_CPU_ADAM_H
#define DS_ACCEL_OPS_CPU_ADAM_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DS_ACCEL_CPU_ADAM_L2 1u                 /**< weight decay as in Adam; else as in AdamW */
#define DS_ACCEL_CPU_ADAM_NO_BIAS_CORRECTION 2u /**< c1 = c2 = 1 */

struct ds_accel_cpu_adam_options {
    struct ds_accel_optimizer_step common; /**< its struct_size: of this whole structure */
    double beta1;                          /**< 0 <= beta1 < 1 */
    double beta2;                          /**< 0 <= beta2 < 1 */
    double epsilon;                        /**< 0, or more as a float */
};

struct ds_accel_cpu_adam {
    struct ds_accel_op op;
    /**
     * Take one step for all tensors.
     *
     * @param[in] options  read during the call only; the memory that it names stays the caller's
     * @param[out] error   NULL: not wanted
     * @return DS_ACCEL_OK; ERR_INVALID an option or tensor is not valid, and nothing was changed
     */
    int32_t (*step)(const struct ds_accel_cpu_adam_options *options, struct ds_accel_error *error);
    /**
     * Undo the step that was taken last, from the same gradients and options. Exact up to the
     * rounding of what was stored; stochastic rounding is not undone. What became infinite or NaN
     * stays so. found_infinite, gradient_norm, gradient_sum and each copy must be NULL, max_norm 0,
     * and DS_ACCEL_OPTIMIZER_SKIP_INFINITE not set. If the step clipped, gradient_scale is that of
     * the step times its factor, min(1, max_norm / (gradient_norm + 1e-6)).
     *
     * The smaller beta1, beta2 and, without L2, |1 - learning_rate * weight_decay| are, the more
     * that rounding is magnified.
     *
     * @return as step(); ERR_INVALID also: one of them is less than 2^-23, so that the step lost
     *         what was there before
     */
    int32_t (*rollback)(const struct ds_accel_cpu_adam_options *options,
                        struct ds_accel_error *error);
    /**
     * Add the squares of all gradients to @p sum, which other calls must not use meanwhile. Later
     * steps of the same gradients, in one call or several, take the total as gradient_sum.
     *
     * @param[in] options  valid as for step(); of the arrays, only the gradients are read
     * @return as step(); ERR_INVALID also: @p sum is NULL
     */
    int32_t (*sum_gradients)(const struct ds_accel_cpu_adam_options *options,
                             struct ds_accel_gradient_sum *sum, struct ds_accel_error *error);
};

#ifdef __cplusplus
}
#endif

#endif
