/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * DLPack: export tensors to other libraries and import their tensors, without a copy.
 *
 * https://dmlc.github.io/dlpack/latest/ is the specification. Debian's header is older than version
 * 1.0 of the specification. This file declares what that header lacks; if the header of the build
 * has a declaration too, both are compared at compile time.
 */
#include "base/text.h"
#include "host/registry.h"
#include "runtime/handle.h"
#include "runtime/tensor.h"

#include <dlpack/dlpack.h>
#include <stdlib.h>
#include <string.h>

/* Values of DLDeviceType and DLDataTypeCode that were added after version 0.6 of the header. */
#define DEVICE_ONEAPI 14
#define CODE_BOOL 6u
#define CODE_FLOAT8_E4M3FN 10u
#define CODE_FLOAT8_E4M3FNUZ 11u
#define CODE_FLOAT8_E5M2 12u
#define CODE_FLOAT8_E5M2FNUZ 13u
#define CODE_COMPLEX 5u /* in the header since version 0.5 */

#define VERSION_MAJOR 1u
#define VERSION_MINOR 1u /* the first version with float8 */
#define FLAG_READ_ONLY UINT64_C(1)
#define FLAG_IS_COPIED UINT64_C(2)

/* DLManagedTensorVersioned of major version 1. */
struct versioned {
    struct {
        uint32_t major;
        uint32_t minor;
    } version;
    void *manager_ctx;
    void (*deleter)(struct versioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
};

DS_ACCEL_STATIC_ASSERT(sizeof(DLDevice) == 8, "DLPack: DLDevice");
DS_ACCEL_STATIC_ASSERT(sizeof(DLDataType) == 4, "DLPack: DLDataType");
DS_ACCEL_STATIC_ASSERT(sizeof(void *) != 8 ||
                           (sizeof(DLTensor) == 48 && offsetof(DLTensor, device) == 8 &&
                            offsetof(DLTensor, ndim) == 16 && offsetof(DLTensor, dtype) == 20 &&
                            offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, strides) == 32 &&
                            offsetof(DLTensor, byte_offset) == 40),
                       "DLPack: DLTensor");
DS_ACCEL_STATIC_ASSERT(sizeof(void *) != 8 || (sizeof(DLManagedTensor) == 64 &&
                                               offsetof(DLManagedTensor, manager_ctx) == 48 &&
                                               offsetof(DLManagedTensor, deleter) == 56),
                       "DLPack: DLManagedTensor");
DS_ACCEL_STATIC_ASSERT(sizeof(void *) != 8 || (sizeof(struct versioned) == 80 &&
                                               offsetof(struct versioned, manager_ctx) == 8 &&
                                               offsetof(struct versioned, deleter) == 16 &&
                                               offsetof(struct versioned, flags) == 24 &&
                                               offsetof(struct versioned, dl_tensor) == 32),
                       "DLPack: DLManagedTensorVersioned");
#ifdef DLPACK_MAJOR_VERSION
DS_ACCEL_STATIC_ASSERT(DLPACK_MAJOR_VERSION == VERSION_MAJOR &&
                           sizeof(DLManagedTensorVersioned) == sizeof(struct versioned) &&
                           offsetof(DLManagedTensorVersioned, dl_tensor) ==
                               offsetof(struct versioned, dl_tensor) &&
                           kDLBool == CODE_BOOL && kDLOneAPI == DEVICE_ONEAPI,
                       "DLPack: the header's version agrees");
#endif

/* ---- dtypes --------------------------------------------------------------------------------- */

static const struct {
    uint32_t dtype;
    uint8_t code;
    uint8_t bits;
    bool is_versioned; /* the type code needs version 1.1 */
} dtypes[] = {
    {DS_ACCEL_DTYPE_FLOAT32, kDLFloat, 32, false},
    {DS_ACCEL_DTYPE_FLOAT16, kDLFloat, 16, false},
    {DS_ACCEL_DTYPE_BFLOAT16, kDLBfloat, 16, false},
    {DS_ACCEL_DTYPE_FLOAT64, kDLFloat, 64, false},
    {DS_ACCEL_DTYPE_INT8, kDLInt, 8, false},
    {DS_ACCEL_DTYPE_UINT8, kDLUInt, 8, false},
    {DS_ACCEL_DTYPE_INT16, kDLInt, 16, false},
    {DS_ACCEL_DTYPE_INT32, kDLInt, 32, false},
    {DS_ACCEL_DTYPE_INT64, kDLInt, 64, false},
    {DS_ACCEL_DTYPE_BOOL, CODE_BOOL, 8, false},
    {DS_ACCEL_DTYPE_FLOAT8_E4M3FN, CODE_FLOAT8_E4M3FN, 8, true},
    {DS_ACCEL_DTYPE_FLOAT8_E5M2, CODE_FLOAT8_E5M2, 8, true},
    {DS_ACCEL_DTYPE_FLOAT8_E4M3FNUZ, CODE_FLOAT8_E4M3FNUZ, 8, true},
    {DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ, CODE_FLOAT8_E5M2FNUZ, 8, true},
    {DS_ACCEL_DTYPE_COMPLEX32, CODE_COMPLEX, 32, false},
    {DS_ACCEL_DTYPE_COMPLEX64, CODE_COMPLEX, 64, false},
    {DS_ACCEL_DTYPE_COMPLEX128, CODE_COMPLEX, 128, false},
};

static int32_t to_their_dtype(uint32_t dtype, bool is_versioned, DLDataType *type_out)
{
    for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++) {
        if (dtypes[i].dtype == dtype && (is_versioned || !dtypes[i].is_versioned)) {
            *type_out = (DLDataType){.code = dtypes[i].code, .bits = dtypes[i].bits, .lanes = 1};
            return DS_ACCEL_OK;
        }
    }
    return ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED,
                           "tensor_to_dlpack: DLPack without versions has no dtype %u", dtype);
}

static int32_t to_our_dtype(DLDataType type, uint32_t *dtype_out)
{
    for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++) {
        if (dtypes[i].code == type.code && dtypes[i].bits == type.bits && type.lanes == 1) {
            *dtype_out = dtypes[i].dtype;
            return DS_ACCEL_OK;
        }
    }
    return ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED,
                           "tensor_from_dlpack: type code %u with %u bits and %u lanes", type.code,
                           type.bits, type.lanes);
}

/* ---- devices -------------------------------------------------------------------------------- */

/* DLPack's types by backend. A '.' in a backend's name separates the name, which is listed here,
 * from the variant. */
static const struct {
    const char *name;
    int32_t device_type;
    int32_t pinned_type;
} backends[] = {
    {"cuda", kDLCUDA, kDLCUDAHost}, {"rocm", kDLROCM, kDLROCMHost}, {"xpu", DEVICE_ONEAPI, kDLCPU},
    {"opencl", kDLOpenCL, kDLCPU},  {"mps", kDLMetal, kDLCPU},
};

/* Return the DLDeviceType of the backend's device memory, and of its pinned memory. For a backend
 * that is not listed, device memory is kDLCPU if the host can access it, else kDLExtDev. */
static void find_types(const char *name, bool is_host_accessible, int32_t *device_type_out,
                       int32_t *pinned_type_out)
{
    size_t length = strcspn(name, ".");

    *device_type_out = is_host_accessible ? kDLCPU : kDLExtDev;
    *pinned_type_out = kDLCPU;
    for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
        if (strlen(backends[i].name) == length && memcmp(backends[i].name, name, length) == 0) {
            *device_type_out = backends[i].device_type;
            *pinned_type_out = backends[i].pinned_type;
        }
    }
}

/* ---- export --------------------------------------------------------------------------------- */

/* The object that a consumer receives: one of the two DLPack structures, and the data that it
 * points to. */
struct exported {
    union {
        DLManagedTensor plain;
        struct versioned versioned;
        /* first member of struct exported: the consumer's pointer is the address of both */
    } managed;
    struct ds_accel__tensor *tensor; /* NULL: the tensor has no elements, and no memory is kept */
    int64_t shape[DS_ACCEL_TENSOR_DIMS_MAX];
    int64_t strides[DS_ACCEL_TENSOR_DIMS_MAX];
};

static void end_export(struct exported *exported)
{
    if (exported->tensor != NULL &&
        !ds_accel__tensor_lets_end(exported->tensor, "tensor_to_dlpack's deleter")) {
        return; /* the deleter was refused: the consumer still has the tensor */
    }
    ds_accel_tensor_put((ds_accel_tensor_t *)exported->tensor);
    free(exported);
}

static void delete_plain(DLManagedTensor *self)
{
    end_export((struct exported *)self->manager_ctx);
}

static void delete_versioned(struct versioned *self)
{
    end_export((struct exported *)self->manager_ctx);
}

/* Set data pointer and device by DLPack's convention for the backend. */
static int32_t describe_memory(const struct ds_accel__tensor *tensor, DLTensor *theirs)
{
    const struct ds_accel__storage *storage = tensor->storage;
    struct ds_accel__device *device = storage->device;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t device_type = kDLCPU;
    int32_t pinned_type = kDLCPU;
    uint64_t native = 0;
    int32_t status;

    theirs->data = ds_accel__tensor_data(tensor);
    theirs->device = (DLDevice){.device_type = kDLCPU};
    if (storage->place == DS_ACCEL_PLACE_HOST) {
        return DS_ACCEL_OK;
    }
    find_types(device->candidate->name, storage->is_host_accessible, &device_type, &pinned_type);
    if (storage->place == DS_ACCEL_PLACE_PINNED) {
        theirs->device.device_type = (DLDeviceType)pinned_type;
        return DS_ACCEL_OK;
    }
    theirs->device.device_type = (DLDeviceType)device_type;
    theirs->device.device_id = device_type == kDLCPU ? 0 : (int)device->index;
    if (device_type != kDLOpenCL || theirs->data == NULL) {
        return DS_ACCEL_OK;
    }
    /* OpenCL memory is described by a cl_mem object and an offset. */
    status = device->abi.table->native_get(device->abi.handle, DS_ACCEL_NATIVE_MEMORY, theirs->data,
                                           &native, &theirs->byte_offset, &error);
    theirs->data = (void *)(uintptr_t)native;
    return status < 0 ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
}

/* Order later work of the consumer after the work already queued on the device's current stream.
 * consumer: the consumer's stream, as DLPack encodes it; DS_ACCEL_DLPACK_NO_STREAM: do nothing. If
 * the consumer's stream cannot wait, the host waits instead. */
static int32_t hand_over(const struct ds_accel__tensor *tensor, int32_t device_type,
                         int64_t consumer)
{
    struct ds_accel__device *device = tensor->storage->device;
    struct ds_accel__stream *current;
    ds_accel_stream_t *theirs = NULL;
    int32_t status;

    if (device == NULL || consumer == DS_ACCEL_DLPACK_NO_STREAM) {
        return DS_ACCEL_OK;
    }
    if (consumer < 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "tensor_to_dlpack: stream %lld",
                               (long long)consumer);
    }
    status = ds_accel__device_fork_check(device);
    current = status < 0 ? NULL : ds_accel__stream_of(device, NULL, "tensor_to_dlpack");
    if (current == NULL) {
        return DS_ACCEL_ERR_STATE;
    }
    if (device_type == kDLCPU) {
        return ds_accel__stream_wait(current);
    }
    if (consumer == DS_ACCEL_DLPACK_DEFAULT_STREAM) {
        status = ds_accel_default_stream(&device->abi, &theirs);
        return status < 0 || theirs == &current->abi
                   ? status
                   : ds_accel_stream_wait_stream(theirs, &current->abi);
    }
    status = ds_accel_stream_wrap(&device->abi, (uint64_t)consumer, &theirs);
    if (status == DS_ACCEL_ERR_UNSUPPORTED) {
        return ds_accel__stream_wait(current);
    }
    if (status >= 0) {
        status = ds_accel_stream_wait_stream(theirs, &current->abi);
        ds_accel_stream_destroy(theirs);
    }
    return status;
}

static int32_t describe(const struct ds_accel__tensor *tensor, bool is_versioned, int64_t consumer,
                        struct exported *exported)
{
    DLTensor *theirs = is_versioned ? &exported->managed.versioned.dl_tensor
                                    : &exported->managed.plain.dl_tensor;
    int32_t status = to_their_dtype(tensor->dtype, is_versioned, &theirs->dtype);

    if (status >= 0 && !is_versioned && (tensor->storage->flags & DS_ACCEL_TENSOR_READ_ONLY) != 0) {
        status = ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED,
                                 "tensor_to_dlpack: the tensor is read-only, and unversioned "
                                 "DLPack cannot express this: request a version, or a copy");
    }
    if (status >= 0) {
        status = describe_memory(tensor, theirs);
    }
    if (status >= 0) {
        status = hand_over(tensor, (int32_t)theirs->device.device_type, consumer);
    }
    if (status < 0) {
        return status;
    }
    memcpy(exported->shape, tensor->shape, sizeof(exported->shape));
    memcpy(exported->strides, tensor->strides, sizeof(exported->strides));
    theirs->ndim = (int)tensor->ndim;
    theirs->shape = exported->shape;
    theirs->strides = exported->strides;
    return DS_ACCEL_OK;
}

/* Export a tensor; on success the export takes the caller's reference to the tensor. */
static int32_t export_tensor(struct ds_accel__tensor *tensor, uint32_t flags, int64_t consumer,
                             void **managed_out)
{
    const bool is_versioned = (flags & DS_ACCEL_DLPACK_VERSIONED) != 0;
    struct exported *exported = calloc(1, sizeof(*exported));
    int32_t status;

    if (exported == NULL) {
        return ds_accel__no_memory();
    }
    status = describe(tensor, is_versioned, consumer, exported);
    if (status < 0) {
        free(exported);
        return status;
    }
    /* A tensor without elements keeps no memory. The specification requires data NULL for such a
     * tensor, and torch 1.13 never calls the deleter of a tensor whose data is NULL. */
    exported->tensor = tensor->element_count > 0 ? tensor : NULL;
    if (is_versioned) {
        struct versioned *versioned = &exported->managed.versioned;

        versioned->version.major = VERSION_MAJOR;
        versioned->version.minor = VERSION_MINOR;
        versioned->manager_ctx = exported;
        versioned->deleter = delete_versioned;
        versioned->flags =
            ((tensor->storage->flags & DS_ACCEL_TENSOR_READ_ONLY) != 0 ? FLAG_READ_ONLY : 0) |
            ((flags & DS_ACCEL_DLPACK_COPY) != 0 ? FLAG_IS_COPIED : 0);
    } else {
        exported->managed.plain.manager_ctx = exported;
        exported->managed.plain.deleter = delete_plain;
    }
    *managed_out = exported;
    if (exported->tensor == NULL) {
        ds_accel_tensor_put((ds_accel_tensor_t *)tensor);
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel_tensor_to_dlpack(ds_accel_tensor_t *tensor, uint32_t flags, int64_t consumer,
                                  void **managed_out)
{
    struct ds_accel__tensor *ours = ds_accel__tensor_check(tensor, "tensor_to_dlpack");
    ds_accel_tensor_t *given = NULL;
    int32_t status = DS_ACCEL_OK;

    if (ours == NULL || managed_out == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID
                            : ds_accel__refuse("tensor_to_dlpack", "output", NULL);
    }
    if ((flags & ~(DS_ACCEL_DLPACK_VERSIONED | DS_ACCEL_DLPACK_COPY)) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "tensor_to_dlpack: unknown flags %#x", flags);
    }
    if (ours->storage->device != NULL) {
        status = ds_accel__device_fork_check(ours->storage->device);
    }
    if (status < 0) {
        return status;
    }
    if ((flags & DS_ACCEL_DLPACK_COPY) != 0) {
        status = ds_accel__tensor_copy_to(ours, ours->storage->place, ours->storage->device, 1,
                                          NULL, &given);
    } else {
        given = ds_accel_tensor_get(tensor);
    }
    if (status >= 0) {
        status = export_tensor((struct ds_accel__tensor *)given, flags, consumer, managed_out);
    }
    if (status < 0) {
        ds_accel_tensor_put(given);
    }
    return status;
}

/* ---- import --------------------------------------------------------------------------------- */

/* The objects to release with the last tensor of an import: the DLPack structure of the exporting
 * library, and this library's wrapper of a memory object such as cl_mem. */
struct imported {
    void *managed;
    bool is_versioned;
    struct ds_accel__device *device; /* device of the wrapped memory; NULL: nothing was wrapped */
    void *wrapped;
};

/* Destroy the wrapper; the memory object itself still belongs to the exporting library. */
static void unwrap(const struct imported *imported)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    imported->device->abi.table->mem_free(imported->device->abi.handle, imported->wrapped, &error);
}

static void end_import(void *user_data)
{
    struct imported *imported = user_data;

    if (imported->device != NULL && !imported->device->candidate->watch.is_forked) {
        unwrap(imported);
    }
    if (imported->is_versioned) {
        struct versioned *versioned = imported->managed;

        if (versioned->deleter != NULL) {
            versioned->deleter(versioned);
        }
    } else {
        DLManagedTensor *plain = imported->managed;

        if (plain->deleter != NULL) {
            plain->deleter(plain);
        }
    }
    free(imported);
}

/* Find the place (DS_ACCEL_PLACE_*) of memory that DLPack describes as host memory. It may be
 * device memory or pinned memory of this context; if not, the outputs do not change. Pinned memory
 * of a device that cannot be opened is plain host memory. */
static int32_t place_host_memory(ds_accel_t *context, const void *data, uint32_t *place_out,
                                 ds_accel_device_t **device_out)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info)};
    ds_accel_device_t *device = NULL;

    if (context == NULL || ds_accel_name(context) == NULL || data == NULL ||
        ds_accel_mem_pointer_info(context, data, &info) < 0 || info.device_index < 0 ||
        (info.kind != DS_ACCEL_POINTER_DEVICE && info.kind != DS_ACCEL_POINTER_PINNED)) {
        return DS_ACCEL_OK;
    }
    if (ds_accel_device_open(context, (uint32_t)info.device_index, &device) < 0) {
        return info.kind == DS_ACCEL_POINTER_PINNED ? DS_ACCEL_OK : DS_ACCEL_ERR_STATE;
    }
    *device_out = device;
    *place_out = info.kind == DS_ACCEL_POINTER_DEVICE ? DS_ACCEL_PLACE_DEVICE
                                                      : DS_ACCEL_PLACE_PINNED;
    return DS_ACCEL_OK;
}

static bool is_host_type(int32_t type)
{
    return type == kDLCPU || type == kDLCUDAHost || type == kDLROCMHost || type == kDLCUDAManaged;
}

/* Find the place (DS_ACCEL_PLACE_*) of an imported tensor's memory, and open the device of the
 * memory, if it has one; the caller closes the device. */
static int32_t find_place(ds_accel_t *context, const DLTensor *theirs, uint32_t *place_out,
                          ds_accel_device_t **device_out)
{
    const int32_t type = (int32_t)theirs->device.device_type;
    const char *name = ds_accel_name(context);
    int32_t device_type = 0;
    int32_t pinned_type = 0;

    *place_out = DS_ACCEL_PLACE_HOST;
    if (name != NULL) {
        find_types(name, false, &device_type, &pinned_type);
    }
    if (is_host_type(type) && !(type == kDLCUDAManaged && device_type == kDLCUDA)) {
        return place_host_memory(context, (const char *)theirs->data + theirs->byte_offset,
                                 place_out, device_out);
    }
    if (name == NULL || (type != device_type && type != kDLCUDAManaged) ||
        theirs->device.device_id < 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "tensor_from_dlpack: device type %d, number %d: %s", type,
                               theirs->device.device_id,
                               name == NULL ? "without a context it must be host memory"
                                            : "the accelerator in use has another type");
    }
    *place_out = DS_ACCEL_PLACE_DEVICE;
    return ds_accel_device_open(context, (uint32_t)theirs->device.device_id, device_out);
}

/* Find the first element's address; a memory object such as cl_mem is wrapped to get an address. */
static int32_t find_data(const DLTensor *theirs, struct ds_accel__device *device, uint32_t place,
                         struct imported *imported, void **data_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    char *data = theirs->data;

    if (data != NULL && theirs->device.device_type == kDLOpenCL && place == DS_ACCEL_PLACE_DEVICE) {
        int32_t status = device->abi.table->native_wrap(device->abi.handle, DS_ACCEL_NATIVE_MEMORY,
                                                        (uintptr_t)data, &imported->wrapped,
                                                        &error);

        if (status < 0) {
            return ds_accel__fail(status, &error);
        }
        imported->device = device;
        data = imported->wrapped;
    }
    *data_out = data != NULL ? data + theirs->byte_offset : NULL;
    return DS_ACCEL_OK;
}

static int32_t import_tensor(ds_accel_t *context, const DLTensor *theirs, uint64_t flags,
                             struct imported *imported, struct ds_accel__tensor **tensor_out)
{
    struct ds_accel_tensor_memory memory = {.struct_size = sizeof(memory)};
    ds_accel_device_t *device = NULL;
    uint32_t place = DS_ACCEL_PLACE_HOST;
    int32_t status = to_our_dtype(theirs->dtype, &memory.dtype);

    if (status >= 0 && (theirs->ndim < 0 || (theirs->ndim > 0 && theirs->shape == NULL))) {
        status = ds_accel__error(DS_ACCEL_ERR_INVALID, "tensor_from_dlpack: %d dimensions%s",
                                 theirs->ndim, theirs->shape == NULL ? ", shape NULL" : "");
    }
    if (status >= 0) {
        status = find_place(context, theirs, &place, &device);
    }
    if (status >= 0) {
        status =
            find_data(theirs, (struct ds_accel__device *)device, place, imported, &memory.data);
    }
    if (status >= 0) {
        memory.ndim = (uint32_t)theirs->ndim;
        memory.shape = theirs->shape;
        memory.strides = theirs->strides;
        memory.flags = ((flags & FLAG_READ_ONLY) != 0 ? DS_ACCEL_TENSOR_READ_ONLY : 0) |
                       ((flags & FLAG_IS_COPIED) != 0 ? DS_ACCEL_TENSOR_COPIED : 0);
        memory.deleter = end_import;
        memory.user_data = imported;
        status =
            ds_accel__tensor_wrap(&memory, place, (struct ds_accel__device *)device, tensor_out);
    }
    if (status < 0 && imported->device != NULL) {
        unwrap(imported);
    }
    ds_accel_device_close(device);
    return status;
}

int32_t ds_accel_tensor_from_dlpack(ds_accel_t *context, void *managed, uint32_t is_versioned,
                                    ds_accel_tensor_t **tensor_out)
{
    const struct versioned *versioned = managed;
    const DLManagedTensor *plain = managed;
    struct ds_accel__tensor *tensor = NULL;
    struct imported *imported;
    int32_t status;

    if (managed == NULL || tensor_out == NULL || is_versioned > 1) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "tensor_from_dlpack: the %s is NULL, or is_versioned (%u) is "
                               "neither 0 nor 1",
                               managed == NULL ? "tensor" : "output", is_versioned);
    }
    if (is_versioned == 1 && versioned->version.major != VERSION_MAJOR) {
        return ds_accel__error(DS_ACCEL_ERR_ABI,
                               "tensor_from_dlpack: version %u.%u; this library knows %u",
                               versioned->version.major, versioned->version.minor, VERSION_MAJOR);
    }
    imported = calloc(1, sizeof(*imported));
    if (imported == NULL) {
        return ds_accel__no_memory();
    }
    imported->managed = managed;
    imported->is_versioned = is_versioned == 1;
    status = import_tensor(context, is_versioned == 1 ? &versioned->dl_tensor : &plain->dl_tensor,
                           is_versioned == 1 ? versioned->flags : 0, imported, &tensor);
    if (status < 0) {
        free(imported);
        return status;
    }
    *tensor_out = (ds_accel_tensor_t *)tensor;
    return DS_ACCEL_OK;
}
