/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * DLPack tensors as arguments of ops, without a copy. C and C++; the functions are inline, so a
 * program links with nothing for them, and it needs no header of DLPack:
 *
 *     struct ds_accel_op_dlpack of = {.parameter = p, .gradient = g, .state = {m, v}};
 *     struct ds_accel_optimizer_tensor tensor;
 *     status = ds_accel_optimizer_tensor_from_dlpack(&of, &tensor, &error);
 *
 * p, g, m and v are pointers to DLTensor or DLManagedTensor, whose first member is a DLTensor, or
 * with DS_ACCEL_OP_DLPACK_VERSIONED to DLManagedTensorVersioned of DLPack 1.x.
 *
 * The functions neither keep a tensor nor call its deleter: the caller releases it when the op has
 * used the memory. Any thread may call them.
 */
#ifndef DS_ACCEL_OPS_DLPACK_H
#define DS_ACCEL_OPS_DLPACK_H

#include "op.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DS_ACCEL_OP_DLPACK_VERSIONED 1u /**< DLManagedTensorVersioned, not DLManagedTensor */
/**
 * Wanted is memory for CUDA: of a device, managed, or pinned on the host. Without this flag it is
 * memory for the host: ordinary, pinned for CUDA or ROCm, or managed.
 */
#define DS_ACCEL_OP_DLPACK_CUDA 2u
#define DS_ACCEL_OP_DLPACK_WRITTEN 4u /**< refuse a tensor that DLPack 1.x marks as read-only */

/** What ops take of a tensor. */
struct ds_accel_op_array {
    void *data;     /**< address of the first element; NULL if there are none */
    uint64_t count; /**< elements */
    uint64_t bytes; /**< of all elements: for struct ds_accel_utils_tensor, or is_pinned() */
    uint32_t dtype; /**< DS_ACCEL_DTYPE_* */
    int32_t device; /**< number of the device of CUDA whose memory it is; -1: not of one device */
};

/** The tensors of one parameter, each a pointer as above. All have equally many elements. */
struct ds_accel_op_dlpack {
    const void *parameter;
    const void *gradient;
    const void *state[2]; /**< of one type; NULL for a state that the op does not use */
    const void *copy;     /**< NULL: no copy */
    uint64_t first_element;
    uint32_t flags; /**< DS_ACCEL_OP_DLPACK_VERSIONED and _CUDA, for all tensors */
};

/* ---- internal ------------------------------------------------------------------------------- */

/* DLTensor, the same in all versions of DLPack. */
struct ds_accel_op_dl_tensor_ {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t ndim;
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
    const int64_t *shape;
    const int64_t *strides; /* in elements; NULL: contiguous */
    uint64_t byte_offset;
};

/* DLManagedTensorVersioned of all versions 1.x. */
struct ds_accel_op_dl_versioned_ {
    uint32_t major;
    uint32_t minor;
    void *manager_ctx;
    void (*deleter)(void *self);
    uint64_t flags; /* bit 0: read-only */
    struct ds_accel_op_dl_tensor_ tensor;
};

DS_ACCEL_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(struct ds_accel_op_dl_tensor_) == 48,
                       "DLPack: DLTensor");
DS_ACCEL_STATIC_ASSERT(sizeof(void *) != 8 ||
                           (sizeof(struct ds_accel_op_dl_versioned_) == 80 &&
                            offsetof(struct ds_accel_op_dl_versioned_, tensor) == 32),
                       "DLPack: DLManagedTensorVersioned");

static inline __attribute__((unused, format(printf, 4, 5))) int32_t
ds_accel_op_dlpack_error_(struct ds_accel_error *error, int32_t code, const char *name,
                          const char *format, ...)
{
    if (error) {
        struct ds_accel_error details;
        va_list values;
        int written;
        size_t used;

        memset(&details, 0, sizeof(details));
        details.code = code;
        written = snprintf(details.message, sizeof(details.message), "dlpack: %.32s ", name);
        used = DS_ACCEL_CAST_(size_t, written);
        va_start(values, format);
        vsnprintf(details.message + used, sizeof(details.message) - used, format, values);
        va_end(values);
        /* A struct that ends within a text has the end of the text, too. */
        if (error->struct_size > offsetof(struct ds_accel_error, vendor_text) &&
            error->struct_size < sizeof(details)) {
            DS_ACCEL_CAST_(char *, DS_ACCEL_CAST_(void *, &details))[error->struct_size - 1] = 0;
        }
        ds_accel_write(error, &details, sizeof(details));
    }
    return code;
}

/* Return the DS_ACCEL_DTYPE_*, or 0. */
static inline __attribute__((unused)) uint32_t
ds_accel_op_dlpack_dtype_(const struct ds_accel_op_dl_tensor_ *tensor)
{
    static const struct {
        uint32_t dtype;
        uint8_t code; /* DLDataTypeCode */
        uint8_t bits;
    } types[] = {
        {DS_ACCEL_DTYPE_FLOAT32, 2, 32},
        {DS_ACCEL_DTYPE_FLOAT16, 2, 16},
        {DS_ACCEL_DTYPE_BFLOAT16, 4, 16},
        {DS_ACCEL_DTYPE_FLOAT64, 2, 64},
        {DS_ACCEL_DTYPE_INT8, 0, 8},
        {DS_ACCEL_DTYPE_UINT8, 1, 8},
        {DS_ACCEL_DTYPE_INT16, 0, 16},
        {DS_ACCEL_DTYPE_INT32, 0, 32},
        {DS_ACCEL_DTYPE_INT64, 0, 64},
        {DS_ACCEL_DTYPE_BOOL, 6, 8},
        {DS_ACCEL_DTYPE_FLOAT8_E4M3FN, 10, 8},
        {DS_ACCEL_DTYPE_FLOAT8_E5M2, 12, 8},
        {DS_ACCEL_DTYPE_FLOAT8_E4M3FNUZ, 11, 8},
        {DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ, 13, 8},
        {DS_ACCEL_DTYPE_COMPLEX32, 5, 32},
        {DS_ACCEL_DTYPE_COMPLEX64, 5, 64},
        {DS_ACCEL_DTYPE_COMPLEX128, 5, 128},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].code == tensor->code && types[i].bits == tensor->bits && tensor->lanes == 1)
            return types[i].dtype;
    return 0;
}

/* Check the shape and that elements are contiguous in it; count them. */
static inline __attribute__((unused)) int32_t
ds_accel_op_dlpack_count_(const char *name, const struct ds_accel_op_dl_tensor_ *tensor,
                          uint64_t *count_out, struct ds_accel_error *error)
{
    const uint64_t most = UINT64_C(0x7fffffffffffffff) / 16; /* of the largest elements */
    uint64_t count = 1;

    if (tensor->ndim < 0 || (tensor->ndim > 0 && !tensor->shape))
        return ds_accel_op_dlpack_error_(error, DS_ACCEL_ERR_INVALID, name,
                                         "has %" PRId32 " dimensions%s", tensor->ndim,
                                         tensor->ndim > 0 ? ", and its shape is NULL" : "");
    for (int32_t i = 0; i < tensor->ndim; i++) {
        if (tensor->shape[i] < 0)
            return ds_accel_op_dlpack_error_(error, DS_ACCEL_ERR_INVALID, name,
                                             "has dimension %" PRId32 " of %" PRId64, i,
                                             tensor->shape[i]);
        if (tensor->shape[i] == 0)
            count = 0;
    }
    for (int32_t i = tensor->ndim - 1; i >= 0 && count > 0; i--) {
        uint64_t size = DS_ACCEL_CAST_(uint64_t, tensor->shape[i]);

        if (tensor->strides && size != 1 && tensor->strides[i] != DS_ACCEL_CAST_(int64_t, count))
            return ds_accel_op_dlpack_error_(error, DS_ACCEL_ERR_INVALID, name,
                                             "is not contiguous: dimension %" PRId32
                                             " has the stride %" PRId64 ", wanted %" PRIu64,
                                             i, tensor->strides[i], count);
        if (count > most / size)
            return ds_accel_op_dlpack_error_(error, DS_ACCEL_ERR_INVALID, name,
                                             "has too many elements");
        count *= size;
    }
    *count_out = count;
    return DS_ACCEL_OK;
}

/* Check the type of device by its DLDeviceType. */
static inline __attribute__((unused)) int32_t
ds_accel_op_dlpack_device_(const char *name, const struct ds_accel_op_dl_tensor_ *tensor,
                           uint32_t flags, int32_t *device_out, struct ds_accel_error *error)
{
    enum {
        CPU = 1,
        CUDA = 2,
        CUDA_HOST = 3,
        ROCM_HOST = 11,
        CUDA_MANAGED = 13
    };
    int32_t type = tensor->device_type;
    int shared = type == CUDA_HOST || type == CUDA_MANAGED;

    if ((flags & DS_ACCEL_OP_DLPACK_CUDA) != 0 && type != CUDA && !shared)
        return ds_accel_op_dlpack_error_(
            error, DS_ACCEL_ERR_INVALID, name,
            "is on a device of type %" PRId32 "; wanted memory for CUDA (2, 3 or 13)", type);
    if ((flags & DS_ACCEL_OP_DLPACK_CUDA) == 0 && type != CPU && type != ROCM_HOST && !shared)
        return ds_accel_op_dlpack_error_(error, DS_ACCEL_ERR_INVALID, name,
                                         "is on a device of type %" PRId32
                                         "; wanted memory for the host (1, 3, 11 or 13)",
                                         type);
    *device_out = type == CUDA ? tensor->device_id : -1;
    return DS_ACCEL_OK;
}

/* ds_accel_op_array_from_dlpack() with a name for messages. */
static inline __attribute__((unused)) int32_t
ds_accel_op_dlpack_read_(const char *name, const void *managed, uint32_t flags,
                         struct ds_accel_op_array *array_out, struct ds_accel_error *error)
{
    struct ds_accel_op_dl_versioned_ versioned;
    struct ds_accel_op_dl_tensor_ tensor;
    struct ds_accel_op_array array;
    int32_t status;

    /* Compilers warn of values that they do not see being written. */
    memset(&array, 0, sizeof(array));
    if (!managed)
        return ds_accel_op_dlpack_error_(error, DS_ACCEL_ERR_INVALID, name, "is NULL");
    /* The layout after the version is known for major version 1 alone. */
    if ((flags & DS_ACCEL_OP_DLPACK_VERSIONED) != 0) {
        memcpy(&versioned, managed, offsetof(struct ds_accel_op_dl_versioned_, manager_ctx));
        if (versioned.major != 1)
            return ds_accel_op_dlpack_error_(error, DS_ACCEL_ERR_ABI, name,
                                             "is of DLPack %" PRIu32 ".%" PRIu32 "; wanted 1.x",
                                             versioned.major, versioned.minor);
        memcpy(&versioned, managed, sizeof(versioned));
        if ((flags & DS_ACCEL_OP_DLPACK_WRITTEN) != 0 && (versioned.flags & 1) != 0)
            return ds_accel_op_dlpack_error_(error, DS_ACCEL_ERR_INVALID, name, "is read-only");
        tensor = versioned.tensor;
    } else {
        memcpy(&tensor, managed, sizeof(tensor));
    }
    array.dtype = ds_accel_op_dlpack_dtype_(&tensor);
    if (array.dtype == 0)
        return ds_accel_op_dlpack_error_(error, DS_ACCEL_ERR_UNSUPPORTED, name,
                                         "has type code %d with %d bits and %d lanes", tensor.code,
                                         tensor.bits, tensor.lanes);
    status = ds_accel_op_dlpack_device_(name, &tensor, flags, &array.device, error);
    if (status != DS_ACCEL_OK)
        return status;
    status = ds_accel_op_dlpack_count_(name, &tensor, &array.count, error);
    if (status != DS_ACCEL_OK)
        return status;
    if (array.count > 0 && !tensor.data)
        return ds_accel_op_dlpack_error_(error, DS_ACCEL_ERR_INVALID, name,
                                         "has %" PRIu64 " elements, and its data is NULL",
                                         array.count);
    array.bytes = array.count * (tensor.bits / 8u);
    array.data = DS_ACCEL_NULL_;
    if (array.count > 0)
        array.data = DS_ACCEL_CAST_(char *, tensor.data) + tensor.byte_offset;
    *array_out = array;
    return DS_ACCEL_OK;
}

static inline __attribute__((unused)) uintptr_t ds_accel_op_address_(const void *pointer)
{
    uintptr_t address;

    memcpy(&address, &pointer, sizeof(address));
    return address;
}

/* Read a tensor of an optimizer; parameter: which it must be like, or NULL. */
static inline __attribute__((unused)) int32_t
ds_accel_op_dlpack_beside_(const char *name, const void *managed, uint32_t flags,
                           const struct ds_accel_op_array *parameter,
                           struct ds_accel_op_array *array_out, struct ds_accel_error *error)
{
    struct ds_accel_op_array array;
    int32_t status;

    memset(&array, 0, sizeof(array));
    status = ds_accel_op_dlpack_read_(name, managed, flags, &array, error);
    if (status != DS_ACCEL_OK)
        return status;
    if (array.count > 0 && ds_accel_op_address_(array.data) % (array.bytes / array.count) != 0)
        return ds_accel_op_dlpack_error_(error, DS_ACCEL_ERR_INVALID, name,
                                         "begins at %p, no multiple of its elements' %" PRIu64
                                         " bytes",
                                         array.data, array.bytes / array.count);
    if (parameter && array.count != parameter->count)
        return ds_accel_op_dlpack_error_(error, DS_ACCEL_ERR_INVALID, name,
                                         "has %" PRIu64 " elements, the parameter %" PRIu64,
                                         array.count, parameter->count);
    if (parameter && array.device >= 0 && parameter->device >= 0 &&
        array.device != parameter->device)
        return ds_accel_op_dlpack_error_(error, DS_ACCEL_ERR_INVALID, name,
                                         "is on device %" PRId32 ", the parameter on %" PRId32,
                                         array.device, parameter->device);
    *array_out = array;
    return DS_ACCEL_OK;
}

/* ---- functions ------------------------------------------------------------------------------ */

/**
 * Check a tensor and find its memory: for utils, pin_memory, and members without a function here.
 *
 * @param[in]  managed    DLTensor, DLManagedTensor, or with a flag DLManagedTensorVersioned; its
 *                        elements are contiguous in the order of its shape
 * @param[in]  flags      DS_ACCEL_OP_DLPACK_*
 * @param[out] array_out  not NULL; written only on DS_ACCEL_OK; valid while the tensor's memory is
 * @param[out] error      NULL: not wanted; its struct_size is set
 * @return DS_ACCEL_OK; ERR_INVALID the tensor is NULL, elsewhere, not contiguous or read-only, or
 *         its shape or data is not valid; ERR_UNSUPPORTED a type that is no DS_ACCEL_DTYPE_*;
 *         ERR_ABI a major version of DLPack other than 1
 */
static inline __attribute__((unused)) int32_t
ds_accel_op_array_from_dlpack(const void *managed, uint32_t flags,
                              struct ds_accel_op_array *array_out, struct ds_accel_error *error)
{
    return ds_accel_op_dlpack_read_("the tensor", managed, flags, array_out, error);
}

/**
 * Describe the tensors of one parameter for a step of an optimizer. The op itself checks which data
 * types it can use, and that its states are there.
 *
 * For CUDA the exporters' streams must have been ordered before the step's, as __dlpack__(stream)
 * does.
 *
 * @param[in]  tensors     not NULL; its parameter and gradient are not NULL either
 * @param[out] tensor_out  not NULL; written only on DS_ACCEL_OK; valid while the tensors' memory is
 * @param[out] error       NULL: not wanted; its struct_size is set
 * @return as ds_accel_op_array_from_dlpack(); ERR_INVALID also: the numbers of elements, the
 *         devices or the types of both states differ, an array is not aligned to its elements, or
 *         a tensor other than the gradient is read-only
 */
static inline __attribute__((unused)) int32_t
ds_accel_optimizer_tensor_from_dlpack(const struct ds_accel_op_dlpack *tensors,
                                      struct ds_accel_optimizer_tensor *tensor_out,
                                      struct ds_accel_error *error)
{
    static const char *const names[2] = {"state[0]", "state[1]"};
    const uint32_t read = tensors->flags & ~DS_ACCEL_OP_DLPACK_WRITTEN;
    const uint32_t written = tensors->flags | DS_ACCEL_OP_DLPACK_WRITTEN;
    struct ds_accel_optimizer_tensor tensor;
    struct ds_accel_op_array parameter;
    struct ds_accel_op_array other;
    int32_t status;

    memset(&tensor, 0, sizeof(tensor));
    memset(&parameter, 0, sizeof(parameter));
    memset(&other, 0, sizeof(other));
    status = ds_accel_op_dlpack_beside_("parameter", tensors->parameter, written, DS_ACCEL_NULL_,
                                        &parameter, error);
    if (status != DS_ACCEL_OK)
        return status;
    tensor.count = parameter.count;
    tensor.first_element = tensors->first_element;
    tensor.parameter = parameter.data;
    tensor.parameter_dtype = parameter.dtype;
    tensor.state_dtype = parameter.dtype; /* of an op without states */
    status =
        ds_accel_op_dlpack_beside_("gradient", tensors->gradient, read, &parameter, &other, error);
    if (status != DS_ACCEL_OK)
        return status;
    tensor.gradient = other.data;
    tensor.gradient_dtype = other.dtype;
    for (unsigned i = 0; i < 2; i++) {
        if (!tensors->state[i])
            continue;
        status = ds_accel_op_dlpack_beside_(names[i], tensors->state[i], written, &parameter,
                                            &other, error);
        if (status != DS_ACCEL_OK)
            return status;
        if (i == 1 && tensors->state[0] && other.dtype != tensor.state_dtype)
            return ds_accel_op_dlpack_error_(error, DS_ACCEL_ERR_INVALID, names[i],
                                             "is of another type than state[0]");
        tensor.state[i] = other.data;
        tensor.state_dtype = other.dtype;
    }
    if (tensors->copy) {
        status =
            ds_accel_op_dlpack_beside_("copy", tensors->copy, written, &parameter, &other, error);
        if (status != DS_ACCEL_OK)
            return status;
        tensor.copy = other.data;
        tensor.copy_dtype = other.dtype;
    }
    *tensor_out = tensor;
    return DS_ACCEL_OK;
}

#ifdef __cplusplus
}
#endif

#endif
