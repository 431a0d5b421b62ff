/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The op cpu_adagrad: Adagrad on the CPU. All arithmetic is in float:
 *
 *     g = gradient * gradient_scale
 *     h = g + weight_decay * p
 *     v = v + h * h
 *     p = p - learning_rate * g / (sqrt(v) + epsilon)
 *
 * The numerator is g, as in DeepSpeed, or h with DS_ACCEL_CPU_ADAGRAD_DECAYED, as in torch. Without
 * weight decay both are the same. v and p are rounded when they are stored, to nearest even (or p
 * stochastically); p is computed from the v before its rounding. A NaN is stored as 0x7FC0 in
 * bfloat16. Every element has the same result on every path, for every number of threads, alignment
 * and division into slices, except for the bits of a NaN in float32 and float16.
 *
 * state[0] is v, the sum of squares, which begins as zeros or a positive number; state[1] is not
 * used. The rows of a sparse gradient are tensors of one step. The step's number matters to
 * stochastic rounding only.
 */
#ifndef DS_ACCEL_OPS_CPU_ADAGRAD_H
#define DS_ACCEL_OPS_CPU_ADAGRAD_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DS_ACCEL_CPU_ADAGRAD_DECAYED 1u /**< the numerator is h */

struct ds_accel_cpu_adagrad_options {
    struct ds_accel_optimizer_step common; /**< its struct_size: of this whole structure */
    double epsilon;                        /**< 0, or more as a float */
};

struct ds_accel_cpu_adagrad {
    struct ds_accel_op op;
    /**
     * Take one step for all tensors.
     *
     * @param[in] options  read during the call only; the memory that it names stays the caller's
     * @param[out] error   NULL: not wanted
     * @return DS_ACCEL_OK; ERR_INVALID an option or tensor is not valid, and nothing was changed
     */
    int32_t (*step)(const struct ds_accel_cpu_adagrad_options *options,
                    struct ds_accel_error *error);
    /**
     * Add the squares of all gradients to @p sum, which other calls must not use meanwhile. Later
     * steps of the same gradients, in one call or several, take the total as gradient_sum.
     *
     * @param[in] options  valid as for step(); of the arrays, only the gradients are read
     * @return as step(); ERR_INVALID also: @p sum is NULL
     */
    int32_t (*sum_gradients)(const struct ds_accel_cpu_adagrad_options *options,
                             struct ds_accel_gradient_sum *sum, struct ds_accel_error *error);
};

#ifdef __cplusplus
}
#endif

#endif
