/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The op cpu_lion: Lion on the CPU. All arithmetic is in float:
 *
 *     g = gradient * gradient_scale
 *     c = beta1 * m + (1 - beta1) * g
 *     p = p * (1 - learning_rate * weight_decay) - learning_rate * sign(c)
 *     m = beta2 * m + (1 - beta2) * g
 *
 * sign(c) is 0 where c is 0, as in the paper (Chen and others, 2023). m and p are rounded when they
 * are stored, to nearest even (or p stochastically). A NaN is stored as 0x7FC0 in bfloat16. Every
 * element has the same result on every path, for every number of threads, alignment and division
 * into slices, except for the bits of a NaN in float32 and float16.
 *
 * state[0] is m, which begins as zeros; state[1] is not used. The step's number matters to
 * stochastic rounding only.
 */
#ifndef DS_ACCEL_OPS_CPU_LION_H
#define DS_ACCEL_OPS_CPU_LION_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ds_accel_cpu_lion_options {
    struct ds_accel_optimizer_step common; /**< its struct_size: of this whole structure */
    double beta1;                          /**< 0 <= beta1 <= 1 */
    double beta2;                          /**< 0 <= beta2 <= 1 */
};

struct ds_accel_cpu_lion {
    struct ds_accel_op op;
    /**
     * Take one step for all tensors.
     *
     * @param[in] options  read during the call only; the memory that it names stays the caller's
     * @param[out] error   NULL: not wanted
     * @return DS_ACCEL_OK; ERR_INVALID an option or tensor is not valid, and nothing was changed
     */
    int32_t (*step)(const struct ds_accel_cpu_lion_options *options, struct ds_accel_error *error);
    /**
     * Add the squares of all gradients to @p sum, which other calls must not use meanwhile. Later
     * steps of the same gradients, in one call or several, take the total as gradient_sum.
     *
     * @param[in] options  valid as for step(); of the arrays, only the gradients are read
     * @return as step(); ERR_INVALID also: @p sum is NULL
     */
    int32_t (*sum_gradients)(const struct ds_accel_cpu_lion_options *options,
                             struct ds_accel_gradient_sum *sum, struct ds_accel_error *error);
};

#ifdef __cplusplus
}
#endif

#endif
