/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Tensors. A storage is memory with a reference count; views of a storage are handles with shape
 * and strides. A view never changes, so only the reference counts of storages and views need
 * synchronisation.
 *
 * Consumers of DLPack may keep memory for any length of time, and release it on threads unknown to
 * this library. A storage of a device's memory therefore holds its device open, and through the
 * device the context, until the memory is released: a program may close devices and destroy
 * contexts in any order.
 */
#include "runtime/tensor.h"
#include "base/text.h"
#include "host/layers.h"
#include "host/registry.h"
#include "runtime/handle.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HOST_ALIGN_BYTES 64u

uint64_t ds_accel__dtype_bytes(uint32_t dtype)
{
    static const uint8_t bytes[] = {
        [DS_ACCEL_DTYPE_FLOAT32] = 4,
        [DS_ACCEL_DTYPE_FLOAT16] = 2,
        [DS_ACCEL_DTYPE_BFLOAT16] = 2,
        [DS_ACCEL_DTYPE_FLOAT64] = 8,
        [DS_ACCEL_DTYPE_INT8] = 1,
        [DS_ACCEL_DTYPE_UINT8] = 1,
        [DS_ACCEL_DTYPE_INT16] = 2,
        [DS_ACCEL_DTYPE_INT32] = 4,
        [DS_ACCEL_DTYPE_INT64] = 8,
        [DS_ACCEL_DTYPE_BOOL] = 1,
        [DS_ACCEL_DTYPE_FLOAT8_E4M3FN] = 1,
        [DS_ACCEL_DTYPE_FLOAT8_E5M2] = 1,
        [DS_ACCEL_DTYPE_FLOAT8_E4M3FNUZ] = 1,
        [DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ] = 1,
        [DS_ACCEL_DTYPE_COMPLEX32] = 4,
        [DS_ACCEL_DTYPE_COMPLEX64] = 8,
        [DS_ACCEL_DTYPE_COMPLEX128] = 16,
    };

    return dtype < ARRAY_SIZE(bytes) ? bytes[dtype] : 0;
}

struct ds_accel__tensor *ds_accel__tensor_check(const ds_accel_tensor_t *tensor, const char *call)
{
    if (!ds_accel__handle_is_live(tensor)) {
        ds_accel__refuse(call, "tensor", tensor);
        return NULL;
    }
    return (struct ds_accel__tensor *)(uintptr_t)tensor;
}

/* ---- shapes --------------------------------------------------------------------------------- */

/* Compute how many bytes the elements extend below (*low_out, <= 0) and above (*high_out) the start
 * of the first element. False: the extent overflows. */
static bool find_extent(uint32_t ndim, const int64_t *shape, const int64_t *strides,
                        uint64_t element_bytes, int64_t *low_out, int64_t *high_out)
{
    int64_t low = 0;
    int64_t high = (int64_t)element_bytes;

    for (uint32_t i = 0; i < ndim; i++) {
        int64_t reach;

        if (shape[i] == 0) {
            *low_out = 0;
            *high_out = 0;
            return true;
        }
        if (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
            __builtin_mul_overflow(reach, (int64_t)element_bytes, &reach) ||
            __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) {
            return false;
        }
    }
    *low_out = low;
    *high_out = high;
    return true;
}

bool ds_accel__tensor_extent(const struct ds_accel__tensor *tensor, int64_t *low_out,
                             int64_t *high_out)
{
    if (tensor->element_count == 0) {
        *low_out = 0;
        *high_out = 0;
        return true;
    }
    return find_extent(tensor->ndim, tensor->shape, tensor->strides,
                       ds_accel__dtype_bytes(tensor->dtype), low_out, high_out);
}

static int32_t check_shape(const char *call, uint32_t dtype, uint32_t ndim, const int64_t *shape,
                           uint64_t *count_out)
{
    const uint64_t element_bytes = ds_accel__dtype_bytes(dtype);
    int64_t count = 1;
    bool is_empty = false;

    if (element_bytes == 0 || ndim > DS_ACCEL_TENSOR_DIMS_MAX || (ndim > 0 && shape == NULL)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "%s: dtype %u with %u dimensions%s: expected a DS_ACCEL_DTYPE_* and "
                               "at most %d dimensions",
                               call, dtype, ndim, shape == NULL ? ", shape NULL" : "",
                               DS_ACCEL_TENSOR_DIMS_MAX);
    }
    for (uint32_t i = 0; i < ndim; i++) {
        if (shape[i] < 0) {
            return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: dimension %u has size %lld", call, i,
                                   (long long)shape[i]);
        }
        is_empty = is_empty || shape[i] == 0;
    }
    /* The other sizes are checked even if one size is 0, because the strides are products of the
     * sizes. */
    for (uint32_t i = 0; i < ndim; i++) {
        if (__builtin_mul_overflow(count, shape[i] != 0 ? shape[i] : 1, &count) ||
            count > INT64_MAX / (int64_t)element_bytes) {
            return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: the shape has too many elements",
                                   call);
        }
    }
    *count_out = is_empty ? 0 : (uint64_t)count;
    return DS_ACCEL_OK;
}

static void make_strides(uint32_t ndim, const int64_t *shape, int64_t *strides)
{
    int64_t stride = 1;

    for (uint32_t i = ndim; i-- > 0;) {
        strides[i] = stride;
        stride *= shape[i] > 1 ? shape[i] : 1;
    }
}

bool ds_accel__tensor_is_contiguous(const struct ds_accel__tensor *tensor)
{
    int64_t stride = 1;

    for (uint32_t i = tensor->ndim; i-- > 0 && tensor->element_count > 0;) {
        if (tensor->shape[i] != 1 && tensor->strides[i] != stride) {
            return false;
        }
        stride *= tensor->shape[i];
    }
    return true;
}

void *ds_accel__tensor_data(const struct ds_accel__tensor *tensor)
{
    assert(tensor->element_count == 0 || tensor->offset_bytes < tensor->storage->size_bytes);
    return tensor->element_count > 0 ? (char *)tensor->storage->base + tensor->offset_bytes : NULL;
}

/* ---- storages ------------------------------------------------------------------------------- */

/* Free memory allocated by this library. In a forked child, device and pinned memory is not freed,
 * because the parent process allocated it. */
static void free_memory(const struct ds_accel__storage *storage)
{
    struct ds_accel__device *device = storage->device;

    if (storage->place == DS_ACCEL_PLACE_HOST) {
        free(storage->base);
    } else if (!device->candidate->watch.is_forked && storage->base != NULL) {
        if (storage->place == DS_ACCEL_PLACE_PINNED) {
            ds_accel_mem_free_pinned(&device->abi, storage->base);
        } else {
            ds_accel_mem_free(&device->abi, NULL, storage->base);
        }
    }
}

static void put_storage(struct ds_accel__storage *storage)
{
    struct ds_accel__device *device = storage->device;

    assert(__atomic_load_n(&storage->reference_count, __ATOMIC_RELAXED) > 0);
    if (__atomic_sub_fetch(&storage->reference_count, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    if (!storage->is_foreign) {
        free_memory(storage);
    } else if (storage->deleter != NULL) {
        storage->deleter(storage->user_data);
    }
    free(storage);
    if (device != NULL) {
        ds_accel__device_release(device);
    }
}

static struct ds_accel__storage *make_storage(uint32_t place, struct ds_accel__device *device)
{
    struct ds_accel__storage *storage = calloc(1, sizeof(*storage));

    if (storage == NULL) {
        ds_accel__no_memory();
        return NULL;
    }
    storage->reference_count = 1;
    storage->place = place;
    storage->device = device;
    storage->is_host_accessible = place != DS_ACCEL_PLACE_DEVICE ||
                                  ds_accel__device_is_host_accessible(device);
    if (device != NULL) {
        ds_accel__device_hold(device);
    }
    return storage;
}

static int32_t allocate(struct ds_accel__storage *storage, ds_accel_stream_t *stream,
                        uint64_t size_bytes, uint64_t align_bytes)
{
    storage->size_bytes = size_bytes;
    if (size_bytes == 0) {
        return DS_ACCEL_OK;
    }
    switch (storage->place) {
    case DS_ACCEL_PLACE_DEVICE:
        return ds_accel_mem_alloc(&storage->device->abi, stream, size_bytes, &storage->base);
    case DS_ACCEL_PLACE_PINNED:
        return ds_accel_mem_alloc_pinned(&storage->device->abi, size_bytes, align_bytes, 0,
                                         &storage->base);
    default:
        assert(storage->place == DS_ACCEL_PLACE_HOST);
        if (size_bytes > SIZE_MAX - HOST_ALIGN_BYTES) {
            return ds_accel__no_memory();
        }
        storage->base = aligned_alloc(HOST_ALIGN_BYTES, (size_bytes + HOST_ALIGN_BYTES - 1) /
                                                            HOST_ALIGN_BYTES * HOST_ALIGN_BYTES);
        return storage->base != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
}

/* ---- tensors -------------------------------------------------------------------------------- */

/* Make a contiguous view from the beginning of a storage. The call takes the caller's reference to
 * the storage, also on failure. */
static struct ds_accel__tensor *make_tensor(struct ds_accel__storage *storage, uint32_t dtype,
                                            uint32_t ndim, const int64_t *shape, uint64_t count)
{
    struct ds_accel__tensor *tensor =
        ds_accel__handle_take(DS_ACCEL__HANDLE_TENSOR, storage->device);

    assert(ndim <= DS_ACCEL_TENSOR_DIMS_MAX);

    if (tensor == NULL) {
        put_storage(storage);
        return NULL;
    }
    tensor->table = storage->device != NULL ? storage->device->abi.table : NULL;
    tensor->reference_count = 1;
    tensor->dtype = dtype;
    tensor->ndim = ndim;
    tensor->storage = storage;
    tensor->element_count = count;
    if (ndim > 0) {
        memcpy(tensor->shape, shape, ndim * sizeof(*shape));
    }
    make_strides(ndim, tensor->shape, tensor->strides);
    return tensor;
}

int32_t ds_accel__tensor_create(uint32_t place, struct ds_accel__device *device,
                                ds_accel_stream_t *stream, uint32_t dtype, uint32_t ndim,
                                const int64_t *shape, uint64_t align_bytes,
                                struct ds_accel__tensor **tensor_out)
{
    struct ds_accel__storage *storage;
    struct ds_accel__tensor *tensor;
    uint64_t count = 0;
    int32_t status = check_shape("tensor_create", dtype, ndim, shape, &count);

    if (status >= 0 && device != NULL) {
        /* checked before a lock of the device is taken, which a thread of the parent may have held
         * during fork() */
        status = ds_accel__device_fork_check(device);
    }
    if (status < 0) {
        return status;
    }
    storage = make_storage(place, device);
    if (storage == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    status = allocate(storage, stream, count * ds_accel__dtype_bytes(dtype), align_bytes);
    if (status < 0) {
        put_storage(storage);
        return status;
    }
    tensor = make_tensor(storage, dtype, ndim, shape, count);
    if (tensor == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    *tensor_out = tensor;
    return DS_ACCEL_OK;
}

static int32_t create(uint32_t place, ds_accel_device_t *device, uint32_t dtype, uint32_t ndim,
                      const int64_t *shape, uint64_t align_bytes, ds_accel_tensor_t **tensor_out)
{
    struct ds_accel__device *ours = NULL;
    struct ds_accel__tensor *tensor = NULL;
    int32_t status;

    if (tensor_out == NULL) {
        return ds_accel__refuse("tensor_create", "output", NULL);
    }
    if (place != DS_ACCEL_PLACE_HOST) {
        ours = ds_accel__device_check(device, "tensor_create");
        if (ours == NULL) {
            return DS_ACCEL_ERR_INVALID;
        }
    }
    status = ds_accel__tensor_create(place, ours, NULL, dtype, ndim, shape, align_bytes, &tensor);
    if (status >= 0) {
        *tensor_out = (ds_accel_tensor_t *)tensor;
    }
    return status;
}

int32_t ds_accel_tensor_create(ds_accel_device_t *device, uint32_t dtype, uint32_t ndim,
                               const int64_t *shape, ds_accel_tensor_t **tensor_out)
{
    return create(DS_ACCEL_PLACE_DEVICE, device, dtype, ndim, shape, 0, tensor_out);
}

int32_t ds_accel_tensor_create_pinned(ds_accel_device_t *device, uint32_t dtype, uint32_t ndim,
                                      const int64_t *shape, uint64_t align_bytes,
                                      ds_accel_tensor_t **tensor_out)
{
    return create(DS_ACCEL_PLACE_PINNED, device, dtype, ndim, shape, align_bytes, tensor_out);
}

int32_t ds_accel_tensor_create_host(uint32_t dtype, uint32_t ndim, const int64_t *shape,
                                    ds_accel_tensor_t **tensor_out)
{
    return create(DS_ACCEL_PLACE_HOST, NULL, dtype, ndim, shape, 0, tensor_out);
}

int32_t ds_accel__tensor_wrap(const struct ds_accel_tensor_memory *memory, uint32_t place,
                              struct ds_accel__device *device, struct ds_accel__tensor **tensor_out)
{
    struct ds_accel__storage *storage;
    struct ds_accel__tensor *tensor;
    int64_t strides[DS_ACCEL_TENSOR_DIMS_MAX];
    int64_t low = 0;
    int64_t high = 0;
    uint64_t count = 0;
    int32_t status =
        check_shape("tensor_from_memory", memory->dtype, memory->ndim, memory->shape, &count);

    if (status < 0) {
        return status;
    }
    make_strides(memory->ndim, memory->shape, strides);
    if (memory->strides != NULL && memory->ndim > 0) {
        memcpy(strides, memory->strides, memory->ndim * sizeof(*strides));
    }
    if (count > 0 && (memory->data == NULL ||
                      !find_extent(memory->ndim, memory->shape, strides,
                                   ds_accel__dtype_bytes(memory->dtype), &low, &high) ||
                      high > INT64_MAX + low || (uintptr_t)memory->data < -(uint64_t)low ||
                      (uint64_t)high > UINTPTR_MAX - (uintptr_t)memory->data)) {
        return ds_accel__error(
            DS_ACCEL_ERR_INVALID,
            "tensor_from_memory: data is NULL, or shape and strides exceed the address space");
    }
    storage = make_storage(place, device);
    if (storage == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    storage->is_foreign = true;
    storage->base = count > 0 ? (char *)memory->data + low : NULL;
    storage->size_bytes = (uint64_t)(high - low);
    storage->flags = memory->flags;
    tensor = make_tensor(storage, memory->dtype, memory->ndim, memory->shape, count);
    if (tensor == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    /* No step from here on can fail: the storage now owns the memory, and releases it with this
     * deleter. */
    storage->deleter = memory->deleter;
    storage->user_data = memory->user_data;
    tensor->offset_bytes = (uint64_t)-low;
    memcpy(tensor->strides, strides, sizeof(strides));
    *tensor_out = tensor;
    return DS_ACCEL_OK;
}

/* Find the place of the memory from the runtime's description of its address: PINNED if the runtime
 * reports pinned memory, otherwise DEVICE. ERR_INVALID: it is memory of another device, or the
 * runtime does not know the address and the host cannot access the device's memory. */
static int32_t find_place(struct ds_accel__device *device, const void *data, uint32_t *place_out)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info)};
    bool is_known = data != NULL && ds_accel__device_pointer_info(device, data, &info);

    *place_out = DS_ACCEL_PLACE_DEVICE;
    if (is_known && info.kind == DS_ACCEL_POINTER_PINNED) {
        *place_out = DS_ACCEL_PLACE_PINNED;
    } else if (is_known && info.kind == DS_ACCEL_POINTER_DEVICE && info.device_index >= 0 &&
               (uint32_t)info.device_index != device->index) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "tensor_from_memory: %p is memory of device %d, not %u", data,
                               info.device_index, device->index);
    } else if (is_known && info.kind == DS_ACCEL_POINTER_UNKNOWN &&
               !ds_accel__device_is_host_accessible(device)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "tensor_from_memory: %p is not memory of %s",
                               data, device->candidate->name);
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel_tensor_from_memory(ds_accel_device_t *device,
                                    const struct ds_accel_tensor_memory *memory,
                                    ds_accel_tensor_t **tensor_out)
{
    struct ds_accel__device *ours = NULL;
    struct ds_accel__tensor *tensor = NULL;
    uint32_t place = DS_ACCEL_PLACE_HOST;
    int32_t status = DS_ACCEL_OK;

    if (memory == NULL || tensor_out == NULL) {
        return ds_accel__refuse("tensor_from_memory", memory == NULL ? "memory" : "output", NULL);
    }
    if (!DS_ACCEL_HAS(memory, struct ds_accel_tensor_memory, user_data) ||
        (memory->flags & ~DS_ACCEL_TENSOR_READ_ONLY) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "tensor_from_memory: struct_size %u, flags %#x: expected %zu, and "
                               "no flag but DS_ACCEL_TENSOR_READ_ONLY",
                               memory->struct_size, memory->flags, sizeof(*memory));
    }
    if (device != NULL) {
        ours = ds_accel__device_check(device, "tensor_from_memory");
        if (ours == NULL) {
            return DS_ACCEL_ERR_INVALID;
        }
        status = ds_accel__device_fork_check(ours);
        status = status < 0 ? status : find_place(ours, memory->data, &place);
    }
    status = status < 0 ? status : ds_accel__tensor_wrap(memory, place, ours, &tensor);
    if (status >= 0) {
        *tensor_out = (ds_accel_tensor_t *)tensor;
    }
    return status;
}

ds_accel_tensor_t *ds_accel_tensor_get(ds_accel_tensor_t *tensor)
{
    struct ds_accel__tensor *ours = ds_accel__tensor_check(tensor, "tensor_get");

    if (ours == NULL) {
        return NULL;
    }
    __atomic_add_fetch(&ours->reference_count, 1, __ATOMIC_RELAXED);
    return tensor;
}

bool ds_accel__tensor_lets_end(const struct ds_accel__tensor *tensor, const char *call)
{
    const struct ds_accel__device *device = tensor->storage->device;

    return device == NULL || !ds_accel__end_is_refused(device->context, call);
}

void ds_accel_tensor_put(ds_accel_tensor_t *tensor)
{
    struct ds_accel__tensor *ours = (struct ds_accel__tensor *)tensor;

    if (ds_accel__handle_is_live(tensor) && ds_accel__tensor_lets_end(ours, "tensor_put") &&
        __atomic_sub_fetch(&ours->reference_count, 1, __ATOMIC_ACQ_REL) == 0) {
        struct ds_accel__storage *storage = ours->storage;

        ds_accel__handle_put(DS_ACCEL__HANDLE_TENSOR, ours);
        put_storage(storage);
    }
}

/* ---- properties of a tensor ----------------------------------------------------------------- */

int32_t ds_accel_tensor_info(const ds_accel_tensor_t *tensor, struct ds_accel_tensor_info *info_out)
{
    const struct ds_accel__tensor *ours = ds_accel__tensor_check(tensor, "tensor_info");
    struct ds_accel_tensor_info info = {.struct_size = sizeof(info), .device_index = -1};

    if (ours == NULL || info_out == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID
                            : ds_accel__refuse("tensor_info", "output", NULL);
    }
    info.dtype = ours->dtype;
    info.place = ours->storage->place;
    info.flags = ours->storage->flags |
                 (ds_accel__tensor_is_contiguous(ours) ? DS_ACCEL_TENSOR_CONTIGUOUS : 0);
    info.ndim = ours->ndim;
    info.element_bytes = ds_accel__dtype_bytes(ours->dtype);
    info.element_count = ours->element_count;
    info.data = ds_accel__tensor_data(ours);
    if (ours->storage->device != NULL) {
        info.device = &ours->storage->device->abi;
        info.device_index = (int32_t)ours->storage->device->index;
    }
    info.storage = ours->storage->base;
    info.storage_bytes = ours->storage->size_bytes;
    memcpy(info.shape, ours->shape, sizeof(info.shape));
    memcpy(info.strides, ours->strides, sizeof(info.strides));
    ds_accel_write(info_out, &info, sizeof(info));
    return DS_ACCEL_OK;
}

void *ds_accel_tensor_data(const ds_accel_tensor_t *tensor)
{
    const struct ds_accel__tensor *ours = ds_accel__tensor_check(tensor, "tensor_data");

    return ours != NULL ? ds_accel__tensor_data(ours) : NULL;
}

int32_t ds_accel_on_accelerator(const ds_accel_tensor_t *tensor, uint32_t *is_on_out)
{
    const struct ds_accel__tensor *ours = ds_accel__tensor_check(tensor, "on_accelerator");

    if (ours == NULL || is_on_out == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID
                            : ds_accel__refuse("on_accelerator", "output", NULL);
    }
    *is_on_out = ours->storage->place == DS_ACCEL_PLACE_DEVICE;
    return DS_ACCEL_OK;
}

int32_t ds_accel_tensor_is_pinned(const ds_accel_tensor_t *tensor, uint32_t *is_pinned_out)
{
    const struct ds_accel__tensor *ours = ds_accel__tensor_check(tensor, "tensor_is_pinned");

    if (ours == NULL || is_pinned_out == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID
                            : ds_accel__refuse("tensor_is_pinned", "output", NULL);
    }
    *is_pinned_out = ours->storage->place == DS_ACCEL_PLACE_PINNED;
    return DS_ACCEL_OK;
}

int32_t ds_accel_tensor_record_stream(ds_accel_tensor_t *tensor, ds_accel_stream_t *stream)
{
    struct ds_accel__tensor *ours = ds_accel__tensor_check(tensor, "tensor_record_stream");

    if (ours == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    if (ours->storage->device == NULL || ours->storage->is_foreign || ours->storage->base == NULL) {
        return stream != NULL && !ds_accel__handle_is_live(stream)
                   ? ds_accel__refuse("tensor_record_stream", "stream", stream)
                   : DS_ACCEL_OK;
    }
    return ds_accel_mem_record_stream(&ours->storage->device->abi, ours->storage->base, stream);
}

/* ---- views ---------------------------------------------------------------------------------- */

/* Return a copy of a tensor's shape, strides and offset, which the caller then changes. */
static struct ds_accel__tensor layout_of(const struct ds_accel__tensor *tensor)
{
    struct ds_accel__tensor layout = {.ndim = tensor->ndim,
                                      .offset_bytes = tensor->offset_bytes,
                                      .element_count = tensor->element_count};

    memcpy(layout.shape, tensor->shape, sizeof(layout.shape));
    memcpy(layout.strides, tensor->strides, sizeof(layout.strides));
    return layout;
}

/* Make a view of the tensor's storage with a layout that the caller has checked. */
static int32_t finish_view(const struct ds_accel__tensor *tensor,
                           const struct ds_accel__tensor *layout, ds_accel_tensor_t **tensor_out)
{
    struct ds_accel__tensor *view;

    assert(__atomic_load_n(&tensor->storage->reference_count, __ATOMIC_RELAXED) > 0);
    __atomic_add_fetch(&tensor->storage->reference_count, 1, __ATOMIC_RELAXED);
    view = make_tensor(tensor->storage, tensor->dtype, layout->ndim, layout->shape,
                       layout->element_count);
    if (view == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    memcpy(view->strides, layout->strides, sizeof(view->strides));
    view->offset_bytes = layout->offset_bytes;
    *tensor_out = (ds_accel_tensor_t *)view;
    return DS_ACCEL_OK;
}

static int32_t check_view(const ds_accel_tensor_t *tensor, const char *call,
                          ds_accel_tensor_t **tensor_out, struct ds_accel__tensor **ours_out)
{
    *ours_out = ds_accel__tensor_check(tensor, call);
    if (*ours_out == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    return tensor_out != NULL ? DS_ACCEL_OK : ds_accel__refuse(call, "output", NULL);
}

int32_t ds_accel_tensor_view(ds_accel_tensor_t *tensor, int64_t offset, uint32_t ndim,
                             const int64_t *shape, const int64_t *strides,
                             ds_accel_tensor_t **tensor_out)
{
    struct ds_accel__tensor wanted = {.ndim = ndim};
    struct ds_accel__tensor *ours;
    int64_t low = 0;
    int64_t high = 0;
    int64_t start = 0;
    int64_t element_bytes;
    int32_t status = check_view(tensor, "tensor_view", tensor_out, &ours);

    if (status < 0) {
        return status;
    }
    status = check_shape("tensor_view", ours->dtype, ndim, shape, &wanted.element_count);
    if (status < 0) {
        return status;
    }
    element_bytes = (int64_t)ds_accel__dtype_bytes(ours->dtype);
    if (ndim > 0) {
        memcpy(wanted.shape, shape, ndim * sizeof(*shape));
    }
    make_strides(ndim, wanted.shape, wanted.strides);
    if (strides != NULL && ndim > 0) {
        memcpy(wanted.strides, strides, ndim * sizeof(*strides));
    }
    if (wanted.element_count > 0 &&
        (!find_extent(ndim, wanted.shape, wanted.strides, (uint64_t)element_bytes, &low, &high) ||
         __builtin_mul_overflow(offset, element_bytes, &start) ||
         __builtin_add_overflow(start, (int64_t)ours->offset_bytes, &start) ||
         __builtin_add_overflow(start, low, &low) || __builtin_add_overflow(start, high, &high) ||
         low < 0 || (uint64_t)high > ours->storage->size_bytes)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "tensor_view: part of it would lie outside of the %llu bytes",
                               (unsigned long long)ours->storage->size_bytes);
    }
    wanted.offset_bytes = (uint64_t)start;
    return finish_view(ours, &wanted, tensor_out);
}

/* Replace a size of -1 in shape by the size that follows from the other sizes and the tensor's
 * number of elements. ERR_INVALID: two sizes are negative, or the shape has another number of
 * elements than the tensor. */
static int32_t infer_size(const struct ds_accel__tensor *tensor, uint32_t ndim, int64_t *shape)
{
    uint32_t inferred = ndim;
    int64_t known = 1;

    for (uint32_t i = 0; i < ndim; i++) {
        if (shape[i] == -1 && inferred == ndim) {
            inferred = i;
        } else if (shape[i] < 0 || __builtin_mul_overflow(known, shape[i], &known)) {
            return ds_accel__error(DS_ACCEL_ERR_INVALID,
                                   "tensor_reshape: dimension %u has size %lld: one may be -1, and "
                                   "the product fits 63 bits",
                                   i, (long long)shape[i]);
        }
    }
    if (inferred < ndim && known > 0) {
        shape[inferred] = (int64_t)tensor->element_count / known;
        known *= shape[inferred];
    }
    if ((uint64_t)known != tensor->element_count || (inferred < ndim && shape[inferred] < 0)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "tensor_reshape: the shape does not have %llu elements",
                               (unsigned long long)tensor->element_count);
    }
    return DS_ACCEL_OK;
}

/* Multiply with wrap-around, because signed overflow is undefined: a dimension of size 1 may have
 * any stride. The other strides are limited by find_extent(), so a product wraps around only where
 * find_strides() rejects the shape or where it is the stride of a dimension of size 1. */
static int64_t multiply(int64_t left, int64_t right)
{
    return (int64_t)((uint64_t)left * (uint64_t)right);
}

/*
 * Compute the strides of a view that has another shape; false: the shape needs a copy. Dimensions
 * of the tensor whose elements together have a constant distance form a run. Dimensions of the new
 * shape can divide a run, but none can extend over two runs.
 */
static bool find_strides(const struct ds_accel__tensor *tensor, uint32_t ndim, const int64_t *shape,
                         int64_t *strides)
{
    /* number of new dimensions not yet assigned; assigned from the last to the first */
    uint32_t next = ndim;
    int64_t covered = 1; /* elements of the current run that new dimensions cover */
    int64_t run = 1;     /* elements of the current run */
    int64_t step = 0;

    for (uint32_t i = tensor->ndim; i-- > 0;) {
        const bool is_last = i == 0;

        if (run == 1) {
            step = tensor->strides[i];
        }
        run *= tensor->shape[i];
        /* A dimension of size 1 belongs to any run; any other dimension belongs to the run if its
         * stride is the extent of the run. */
        if (!is_last && (run == 1 || tensor->shape[i - 1] == 1 ||
                         tensor->strides[i - 1] == multiply(run, step))) {
            continue;
        }
        while (next > 0 && (covered < run || shape[next - 1] == 1)) {
            strides[next - 1] = multiply(covered, step);
            covered *= shape[next - 1];
            next--;
        }
        if (covered != run) {
            return false;
        }
        covered = 1;
        run = 1;
    }
    while (next > 0 && shape[next - 1] == 1) {
        strides[--next] = 1;
    }
    return next == 0;
}

int32_t ds_accel_tensor_reshape(ds_accel_tensor_t *tensor, uint32_t ndim, const int64_t *shape,
                                ds_accel_tensor_t **tensor_out)
{
    struct ds_accel__tensor wanted = {.ndim = ndim};
    struct ds_accel__tensor *ours;
    uint64_t count;
    int32_t status = check_view(tensor, "tensor_reshape", tensor_out, &ours);

    if (status < 0) {
        return status;
    }
    if (ndim > DS_ACCEL_TENSOR_DIMS_MAX || (ndim > 0 && shape == NULL)) {
        return check_shape("tensor_reshape", ours->dtype, ndim, shape, &count);
    }
    if (ndim > 0) {
        memcpy(wanted.shape, shape, ndim * sizeof(*shape));
    }
    status = infer_size(ours, ndim, wanted.shape);
    if (status >= 0) { /* if one size is 0, the product does not limit the other sizes */
        status = check_shape("tensor_reshape", ours->dtype, ndim, wanted.shape, &count);
    }
    if (status < 0) {
        return status;
    }
    if (ours->element_count == 0) {
        make_strides(ndim, wanted.shape, wanted.strides);
    } else if (!find_strides(ours, ndim, wanted.shape, wanted.strides)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "tensor_reshape: these strides do not allow it without a copy: make "
                               "the tensor contiguous first");
    }
    wanted.element_count = ours->element_count;
    wanted.offset_bytes = ours->offset_bytes;
    return finish_view(ours, &wanted, tensor_out);
}

int32_t ds_accel_tensor_slice(ds_accel_tensor_t *tensor, uint32_t dim, int64_t start, int64_t stop,
                              int64_t step, ds_accel_tensor_t **tensor_out)
{
    struct ds_accel__tensor wanted;
    struct ds_accel__tensor *ours;
    int64_t size;
    int32_t status = check_view(tensor, "tensor_slice", tensor_out, &ours);

    if (status < 0) {
        return status;
    }
    if (dim >= ours->ndim || start < 0 || start > stop || stop > ours->shape[dim] || step < 1) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "tensor_slice: [%lld, %lld) by %lld of dimension %u: it has size "
                               "%lld of %u dimensions, and steps are positive",
                               (long long)start, (long long)stop, (long long)step, dim,
                               dim < ours->ndim ? (long long)ours->shape[dim] : 0LL, ours->ndim);
    }
    wanted = layout_of(ours);
    size = (stop - start) / step + ((stop - start) % step != 0);
    wanted.shape[dim] = size;
    /* with at most one element the stride is not used, and the product might overflow */
    if (size > 1 && ours->element_count > 0) {
        wanted.strides[dim] *= step;
    }
    if (ours->element_count > 0) {
        wanted.element_count = ours->element_count / (uint64_t)ours->shape[dim] * (uint64_t)size;
    }
    if (wanted.element_count > 0) {
        wanted.offset_bytes += (uint64_t)(start * ours->strides[dim]) *
                               ds_accel__dtype_bytes(ours->dtype);
    }
    return finish_view(ours, &wanted, tensor_out);
}

int32_t ds_accel_tensor_transpose(ds_accel_tensor_t *tensor, uint32_t dim, uint32_t other,
                                  ds_accel_tensor_t **tensor_out)
{
    struct ds_accel__tensor wanted;
    struct ds_accel__tensor *ours;
    int32_t status = check_view(tensor, "tensor_transpose", tensor_out, &ours);

    if (status < 0) {
        return status;
    }
    if (dim >= ours->ndim || other >= ours->ndim) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "tensor_transpose: dimensions %u and %u of %u",
                               dim, other, ours->ndim);
    }
    wanted = layout_of(ours);
    wanted.shape[dim] = ours->shape[other];
    wanted.strides[dim] = ours->strides[other];
    wanted.shape[other] = ours->shape[dim];
    wanted.strides[other] = ours->strides[dim];
    return finish_view(ours, &wanted, tensor_out);
}
