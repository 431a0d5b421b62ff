/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Tensors: tensor.c, tensor_copy.c, dlpack.c. */
#ifndef DS_ACCEL_RUNTIME_TENSOR_H
#define DS_ACCEL_RUNTIME_TENSOR_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

struct ds_accel__device;
struct ds_accel__tensor;

/* Return the size of an element in bytes; 0: no such dtype. */
uint64_t ds_accel__dtype_bytes(uint32_t dtype);
/* Return the tensor's private part if the tensor is neither NULL nor destroyed, else NULL with the
 * error set. */
struct ds_accel__tensor *ds_accel__tensor_check(const ds_accel_tensor_t *tensor, const char *call);
bool ds_accel__tensor_is_contiguous(const struct ds_accel__tensor *tensor);
void *ds_accel__tensor_data(const struct ds_accel__tensor *tensor);
/* Compute the offsets of the first byte of all elements and of the first byte after them, relative
 * to the first element; both are 0 for a tensor without elements. False: the offsets overflow. */
bool ds_accel__tensor_extent(const struct ds_accel__tensor *tensor, int64_t *low_out,
                             int64_t *high_out);
/* Make a contiguous tensor in the given place. device: NULL for place HOST. stream, used for place
 * DEVICE: the first stream that uses the memory; NULL: the current stream. align_bytes, used for
 * place PINNED: as for ds_accel_mem_alloc_pinned(). */
int32_t ds_accel__tensor_create(uint32_t place, struct ds_accel__device *device,
                                ds_accel_stream_t *stream, uint32_t dtype, uint32_t ndim,
                                const int64_t *shape, uint64_t align_bytes,
                                struct ds_accel__tensor **tensor_out);
/* Make a contiguous copy of a tensor in the given place. place, device and align_bytes: as for
 * ds_accel__tensor_create(). stream: the stream on which the copy is queued, of either tensor's
 * device; NULL: a current stream. */
int32_t ds_accel__tensor_copy_to(struct ds_accel__tensor *tensor, uint32_t place,
                                 struct ds_accel__device *device, uint64_t align_bytes,
                                 ds_accel_stream_t *stream, ds_accel_tensor_t **tensor_out);
/* Whether a call that returns no status may release a reference. If not, the reason is logged: see
 * ds_accel__end_is_refused(). */
bool ds_accel__tensor_lets_end(const struct ds_accel__tensor *tensor, const char *call);
/* Make a tensor of memory that this library did not allocate. The tensor keeps the device open. */
int32_t ds_accel__tensor_wrap(const struct ds_accel_tensor_memory *memory, uint32_t place,
                              struct ds_accel__device *device,
                              struct ds_accel__tensor **tensor_out);

#endif
