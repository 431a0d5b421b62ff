/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the tests of tensors: shapes, and elements of any type. */
#ifndef DS_ACCEL_TESTS_RUNTIME_TENSOR_H
#define DS_ACCEL_TESTS_RUNTIME_TENSOR_H

#include "fixture.h"

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

static inline struct ds_accel_tensor_info info_of(const ds_accel_tensor_t *tensor)
{
    struct ds_accel_tensor_info info = {.struct_size = sizeof(info)};

    MUST(ds_accel_tensor_info(tensor, &info));
    return info;
}

/* A contiguous tensor of int32 on the host: 0, 1, 2 ... */
static inline ds_accel_tensor_t *count_up(uint32_t ndim, const int64_t *shape)
{
    ds_accel_tensor_t *tensor = NULL;
    int32_t *data;

    MUST(ds_accel_tensor_create_host(DS_ACCEL_DTYPE_INT32, ndim, shape, &tensor));
    data = ds_accel_tensor_data(tensor);
    for (uint64_t i = 0; i < info_of(tensor).element_count; i++) {
        data[i] = (int32_t)i;
    }
    return tensor;
}

/* Address of element n, counted in row-major order; the memory must be accessible to the host. */
static inline char *element(const struct ds_accel_tensor_info *info, uint64_t n)
{
    int64_t offset = 0;

    for (uint32_t i = info->ndim; i-- > 0;) {
        offset += (int64_t)(n % (uint64_t)info->shape[i]) * info->strides[i];
        n /= (uint64_t)info->shape[i];
    }
    return (char *)info->data + offset * (int64_t)info->element_bytes;
}

static inline int32_t number(const ds_accel_tensor_t *tensor, uint64_t n)
{
    struct ds_accel_tensor_info info = info_of(tensor);
    int32_t value;

    memcpy(&value, element(&info, n), sizeof(value));
    return value;
}

#endif
