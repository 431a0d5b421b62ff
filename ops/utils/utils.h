/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The op utils: many tensors as one flat buffer, and back.
 *
 * The flat buffer has the bytes of all tensors in the order of the list, whatever their types.
 * layout() computes where each of them begins. A tensor can also be used where it lies in the flat
 * buffer, without a copy: it is at the buffer's address plus its offset.
 */
#ifndef DS_ACCEL_OPS_UTILS_H
#define DS_ACCEL_OPS_UTILS_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One tensor: contiguous bytes in host memory, at any address. */
struct ds_accel_utils_tensor {
    void *data; /**< not read if bytes is 0, nor by layout(); flatten() does not write there */
    uint64_t bytes;
};

struct ds_accel_utils_options {
    uint32_t struct_size;
    uint32_t threads; /**< most threads to use, as far as there are CPUs; 0: OpenMP's choice */
    /** Array of tensor_count tensors; the next one begins tensor_bytes behind the last. */
    const struct ds_accel_utils_tensor *tensors;
    uint64_t tensor_count;
    uint32_t tensor_bytes; /**< sizeof(struct ds_accel_utils_tensor), or a larger stride that is a
                                multiple of 8; the rest is not read */
    uint32_t reserved;     /**< 0 */
    /**
     * Each tensor's offset in the flat buffer is a multiple of this number of bytes, and so is the
     * buffer's size. Any number; 0 or 1: no padding, as in DeepSpeed. The address of the buffer
     * itself is not adapted.
     */
    uint64_t alignment;
    void *flat;          /**< any address; not used by layout() */
    uint64_t flat_bytes; /**< of flat: the size that layout() returns, or more */
};

/*
 * The memory of flat must not overlap a tensor, which is checked, except that a tensor may lie
 * exactly where it belongs in flat: it is not copied then. Tensors that flatten() reads may overlap
 * each other. Tensors that unflatten() writes must not, which is not checked.
 *
 * On an error nothing was written.
 */
struct ds_accel_utils {
    struct ds_accel_op op;
    /**
     * Compute the offset of each tensor in the flat buffer, and the buffer's size.
     *
     * @param[out] offsets_out  tensor_count numbers of bytes; NULL: only the size is wanted
     * @param[out] bytes_out    the size, with padding; NULL: not wanted
     * @return DS_ACCEL_OK; ERR_INVALID an option is not valid, or the sum of sizes is 2^63 or more
     */
    int32_t (*layout)(const struct ds_accel_utils_options *options, uint64_t *offsets_out,
                      uint64_t *bytes_out, struct ds_accel_error *error);
    /**
     * Copy all tensors to the flat buffer. Padding becomes 0; bytes behind the size that layout()
     * returns stay.
     *
     * @return DS_ACCEL_OK; ERR_INVALID an option or tensor is not valid, flat is too small, or it
     *         overlaps a tensor
     */
    int32_t (*flatten)(const struct ds_accel_utils_options *options, struct ds_accel_error *error);
    /**
     * Copy the flat buffer's parts to all tensors. Padding is not read.
     *
     * @return as flatten()
     */
    int32_t (*unflatten)(const struct ds_accel_utils_options *options,
                         struct ds_accel_error *error);
};

#ifdef __cplusplus
}
#endif

#endif
