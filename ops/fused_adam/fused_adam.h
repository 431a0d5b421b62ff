/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The op fused_adam: Adam and AdamW for a list of tensors, on the CPU (ops/cpu/fused_adam.so) and
 * on devices of CUDA (ops/cuda/fused_adam.so). Formula, rounding and states are those of
 * cpu_adam.h. All files compute the same bits, also on a device, except those of a NaN.
 *
 * On the CPU a step is that of cpu_adam. What differs for CUDA is in the comment of step().
 */
#ifndef DS_ACCEL_OPS_FUSED_ADAM_H
#define DS_ACCEL_OPS_FUSED_ADAM_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DS_ACCEL_FUSED_ADAM_L2 1u                 /**< weight decay as in Adam; else as in AdamW */
#define DS_ACCEL_FUSED_ADAM_NO_BIAS_CORRECTION 2u /**< c1 = c2 = 1 */

struct ds_accel_fused_adam_options {
    struct ds_accel_optimizer_step common; /**< its struct_size: of this whole structure */
    double beta1;                          /**< 0 <= beta1 < 1 */
    double beta2;                          /**< 0 <= beta2 < 1 */
    double epsilon;                        /**< 0, or more as a float */
    void *stream;                          /**< CUDA: a cudaStream_t or CUstream; CPU: NULL */
};

struct ds_accel_fused_adam {
    struct ds_accel_op op; /**< path() is that of cpu_adam, or "cuda" */
    /**
     * Take one step for all tensors.
     *
     * CUDA: the arrays, found_infinite and gradient_norm are memory that the stream's device can
     * access. The list of tensors and gradient_sum are in host memory, and the call has finished
     * with them when it returns. Each array begins at a multiple of its element's size; arrays at
     * multiples of 4 elements are faster. The step is queued in @p options->stream and runs in its
     * order; the call does not wait for it. With a stream of NULL, cudaStreamLegacy or
     * cudaStreamPerThread the calling thread's current device is used. threads is not used.
     *
     * The update is one launch of a kernel for up to 500 tensors that are not empty, and one more
     * for each further 500. A step that asks for the norm, clipping or skipping, or has
     * gradient_sum with found_infinite, has one launch more, and without gradient_sum as many again
     * as the update has. Such a step allocates 6 KiB from the memory pool of the stream's device,
     * in the stream's order, and frees them; other steps allocate nothing.
     *
     * The step may be captured into a graph, which keeps the values of the options and of
     * gradient_sum. If the step allocates, the graph has nodes that allocate and free memory: it
     * can have one instantiation at a time, and cannot be cloned.
     *
     * @return DS_ACCEL_OK; ERR_INVALID an option or tensor is not valid, and nothing was changed;
     *         CUDA also: ERR_NO_DEVICE no driver or no device; ERR_UNSUPPORTED the driver is older
     *         than that of CUDA 12.1 or cannot load what a newer nvcc compiled, or the device has
     *         no memory pools; ERR_STATE no device is current; ERR_NO_MEMORY the device's memory is
     *         exhausted; ERR_DRIVER a function of the driver failed. vendor_code has the driver's
     *         code. After an error of the driver the update may have been queued, for some of the
     *         tensors or all
     */
    int32_t (*step)(const struct ds_accel_fused_adam_options *options,
                    struct ds_accel_error *error);
    /**
     * Add the squares of all gradients to @p sum, which other calls must not use meanwhile. Later
     * steps of the same gradients, in one call or several, take the total as gradient_sum.
     *
     * CUDA: @p sum is in host memory. The call waits for the stream, which must not be capturing,
     * and allocates as a step with clipping does.
     *
     * @param[in] options  valid as for step(); of the arrays, only the gradients are read
     * @return as step(); ERR_INVALID also: @p sum is NULL. After an error @p sum is unchanged
     */
    int32_t (*sum_gradients)(const struct ds_accel_fused_adam_options *options,
                             struct ds_accel_gradient_sum *sum, struct ds_accel_error *error);
};

#ifdef __cplusplus
}
#endif

#endif
