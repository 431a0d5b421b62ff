/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Allocations, copies and fills.
 *
 * While a stream is captured in mode global or thread-local, the driver rejects calls that
 * allocate, free or trim memory, in all threads or in the capturing thread, and breaks the capture.
 * These calls of the plugin are no part of the captured work, so the plugin makes them with the
 * thread's capture mode relaxed, in which the driver accepts them.
 */
#include "plugin.h"

/* ---- device memory -------------------------------------------------------------------------- */

int32_t cuda_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                   struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_pointer_t pointer = 0;
    cu_result_t code;

    CUDA_RELAXED(api, code, api->cuMemAlloc_v2(&pointer, (size_t)size_bytes));
    CUDA_TRY(device, code, error, "cuMemAlloc(%llu bytes, device %u)",
             (unsigned long long)size_bytes, device->index);
    *pointer_out = (void *)(uintptr_t)pointer;
    return DS_ACCEL_OK;
}

int32_t cuda_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_result_t code;

    CUDA_RELAXED(api, code, api->cuMemFree_v2(cuda_address(pointer)));
    CUDA_TRY(device, code, error, "cuMemFree(%p)", pointer);
    return DS_ACCEL_OK;
}

int32_t cuda_alloc_managed(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                           void **pointer_out, struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_pointer_t pointer = 0;
    cu_result_t code;

    if (api->cuMemAllocManaged == NULL) {
        return vendor_unsupported(error, "mem_alloc_managed",
                                  "libcuda.so.1 has no cuMemAllocManaged (CUDA 6.0)");
    }
    CUDA_RELAXED(api, code, api->cuMemAllocManaged(&pointer, (size_t)size_bytes, CU_ATTACH_GLOBAL));
    CUDA_TRY(device, code, error, "cuMemAllocManaged(%llu bytes, device %u)",
             (unsigned long long)size_bytes, device->index);
    *pointer_out = (void *)(uintptr_t)pointer;
    return DS_ACCEL_OK;
}

int32_t cuda_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                         struct ds_accel_error *error)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;

    CUDA_TRY(device, cuda_api_of(device)->cuMemGetInfo_v2(&free_bytes, &total_bytes), error,
             "cuMemGetInfo(device %u)", device->index);
    *free_out = free_bytes;
    *total_out = total_bytes;
    return DS_ACCEL_OK;
}

/* ---- stream-ordered memory ------------------------------------------------------------------ */

static int32_t check_pools(const ds_accel_plugin_device_t *device, const char *slot,
                           struct ds_accel_error *error)
{
    const struct cuda_device *state = device->state;

    return state->has_pools
               ? DS_ACCEL_OK
               : vendor_unsupported(error, slot, "this device or driver has no memory pools");
}

int32_t cuda_alloc_async(ds_accel_plugin_device_t *device, void *native_stream, uint64_t size_bytes,
                         void **pointer_out, struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_pointer_t pointer = 0;
    cu_result_t code;
    int32_t status = check_pools(device, "mem_alloc_async", error);

    if (status < 0) {
        return status;
    }
    CUDA_RELAXED(api, code, api->cuMemAllocAsync(&pointer, (size_t)size_bytes, native_stream));
    CUDA_TRY(device, code, error, "cuMemAllocAsync(%llu bytes, stream %p, device %u)",
             (unsigned long long)size_bytes, native_stream, device->index);
    *pointer_out = (void *)(uintptr_t)pointer;
    return DS_ACCEL_OK;
}

int32_t cuda_free_async(ds_accel_plugin_device_t *device, void *native_stream, void *pointer,
                        struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_result_t code;
    int32_t status = check_pools(device, "mem_free_async", error);

    if (status < 0) {
        return status;
    }
    CUDA_RELAXED(api, code, api->cuMemFreeAsync(cuda_address(pointer), native_stream));
    CUDA_TRY(device, code, error, "cuMemFreeAsync(%p, stream %p)", pointer, native_stream);
    return DS_ACCEL_OK;
}

/*
 * The driver keeps freed memory only in the device's pool. A driver without pools has nothing to
 * trim.
 */
int32_t cuda_trim(ds_accel_plugin_device_t *device, uint64_t keep_bytes,
                  struct ds_accel_error *error)
{
    const struct cuda_device *state = device->state;
    const struct cuda_api *api = state->api;
    cu_pool_t pool = NULL;
    cu_result_t code;

    if (!state->has_pools || api->cuDeviceGetMemPool == NULL || api->cuMemPoolTrimTo == NULL) {
        return DS_ACCEL_OK;
    }
    CUDA_TRY(device, api->cuDeviceGetMemPool(&pool, state->device), error,
             "cuDeviceGetMemPool(device %u)", device->index);
    CUDA_RELAXED(api, code,
                 api->cuMemPoolTrimTo(pool, keep_bytes > SIZE_MAX ? SIZE_MAX : (size_t)keep_bytes));
    CUDA_TRY(device, code, error, "cuMemPoolTrimTo(%llu bytes, device %u)",
             (unsigned long long)keep_bytes, device->index);
    return DS_ACCEL_OK;
}

/* ---- host memory ---------------------------------------------------------------------------- */

int32_t cuda_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                          void **pointer_out, struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    unsigned int bits = (flags & DS_ACCEL_PINNED_PORTABLE) != 0 ? CU_HOST_PORTABLE : 0;
    void *pointer = NULL;
    cu_result_t code;

    bits |= (flags & DS_ACCEL_PINNED_MAPPED) != 0 ? CU_HOST_MAPPED : 0;
    bits |= (flags & DS_ACCEL_PINNED_WRITE_COMBINED) != 0 ? CU_HOST_WRITE_COMBINED : 0;
    CUDA_RELAXED(api, code, api->cuMemHostAlloc(&pointer, (size_t)size_bytes, bits));
    CUDA_TRY(device, code, error, "cuMemHostAlloc(%llu bytes, flags %u)",
             (unsigned long long)size_bytes, bits);
    *pointer_out = pointer;
    return DS_ACCEL_OK;
}

int32_t cuda_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                         struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_result_t code;

    CUDA_RELAXED(api, code, api->cuMemFreeHost(pointer));
    CUDA_TRY(device, code, error, "cuMemFreeHost(%p)", pointer);
    return DS_ACCEL_OK;
}

/*
 * Ignores DS_ACCEL_PINNED_WRITE_COMBINED: only an allocation can choose write-combining, not the
 * registration of existing memory.
 */
int32_t cuda_host_register(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                           uint32_t flags, struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    unsigned int bits = (flags & DS_ACCEL_PINNED_PORTABLE) != 0 ? CU_HOST_PORTABLE : 0;
    cu_result_t code;

    bits |= (flags & DS_ACCEL_PINNED_MAPPED) != 0 ? CU_HOST_MAPPED : 0;
    CUDA_RELAXED(api, code, api->cuMemHostRegister_v2(pointer, (size_t)size_bytes, bits));
    CUDA_TRY(device, code, error, "cuMemHostRegister(%p, %llu bytes, flags %u)", pointer,
             (unsigned long long)size_bytes, bits);
    return DS_ACCEL_OK;
}

int32_t cuda_host_unregister(ds_accel_plugin_device_t *device, void *pointer,
                             struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_result_t code;

    CUDA_RELAXED(api, code, api->cuMemHostUnregister(pointer));
    CUDA_TRY(device, code, error, "cuMemHostUnregister(%p)", pointer);
    return DS_ACCEL_OK;
}

int32_t cuda_host_device_pointer(ds_accel_plugin_device_t *device, void *host_pointer,
                                 void **device_pointer_out, struct ds_accel_error *error)
{
    cu_pointer_t pointer = 0;

    CUDA_TRY(device, cuda_api_of(device)->cuMemHostGetDevicePointer_v2(&pointer, host_pointer, 0),
             error, "cuMemHostGetDevicePointer(%p)", host_pointer);
    *device_pointer_out = (void *)(uintptr_t)pointer;
    return DS_ACCEL_OK;
}

/* ---- memory of others ----------------------------------------------------------------------- */

static void describe_address(const struct cuda_api *api, uint32_t device_count,
                             cu_pointer_t address, struct ds_accel_pointer_info *info)
{
    unsigned int type = 0;
    unsigned int is_managed = 0;
    int ordinal = -1;
    cu_pointer_t start = 0;
    size_t size = 0;

    if (api->cuPointerGetAttribute(&type, CU_POINTER_MEMORY_TYPE, address) != CU_SUCCESS) {
        return;
    }
    api->cuPointerGetAttribute(&is_managed, CU_POINTER_IS_MANAGED, address);
    api->cuPointerGetAttribute(&ordinal, CU_POINTER_DEVICE_ORDINAL, address);
    api->cuPointerGetAttribute(&start, CU_POINTER_RANGE_START, address);
    api->cuPointerGetAttribute(&size, CU_POINTER_RANGE_SIZE, address);
    info->kind = is_managed != 0          ? DS_ACCEL_POINTER_MANAGED
                 : type == CU_MEMORY_HOST ? DS_ACCEL_POINTER_PINNED
                                          : DS_ACCEL_POINTER_DEVICE;
    info->device_index = ordinal < (int)device_count ? ordinal : -1;
    info->base_address = start;
    info->size_bytes = size;
}

/* The driver may need a current context, which the calling thread need not have: the function
   enters an open device, and holds the instance's lock, so that no thread closes the device. */
void cuda_pointer_info(ds_accel_plugin_instance_t *instance, const void *pointer,
                       struct ds_accel_pointer_info *info)
{
    const struct cuda_runtime *runtime = instance->runtime;
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    ds_accel_plugin_device_t *device = NULL;
    uint64_t saved = 0;

    if (runtime->api.cuPointerGetAttribute == NULL) {
        return;
    }
    pthread_mutex_lock(&instance->lock);
    for (uint32_t i = 0; i < instance->device_count && device == NULL; i++) {
        if (instance->devices[i].open_count > 0) {
            device = &instance->devices[i];
        }
    }
    if (device != NULL && cuda_enter(device, &saved, &ignored) < 0) {
        device = NULL;
    }
    describe_address(&runtime->api, instance->device_count, cuda_address(pointer), info);
    if (device != NULL) {
        cuda_leave(device, saved);
    }
    pthread_mutex_unlock(&instance->lock);
}

/* ---- copies and fills ----------------------------------------------------------------------- */

/*
 * The driver has a function for each direction in which a device takes part. All other kinds (host
 * to host, INFER) use cuMemcpyAsync(), which infers the direction from the addresses.
 */
int32_t cuda_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        const void *source, uint64_t size_bytes, uint32_t kind,
                        struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    size_t size = (size_t)size_bytes;

    switch (kind) {
    case DS_ACCEL_COPY_HOST_TO_DEVICE:
        CUDA_TRY(device,
                 api->cuMemcpyHtoDAsync_v2(cuda_address(destination), source, size, native_stream),
                 error, "cuMemcpyHtoDAsync(%p, %p, %zu bytes)", destination, source, size);
        break;
    case DS_ACCEL_COPY_DEVICE_TO_HOST:
        CUDA_TRY(device,
                 api->cuMemcpyDtoHAsync_v2(destination, cuda_address(source), size, native_stream),
                 error, "cuMemcpyDtoHAsync(%p, %p, %zu bytes)", destination, source, size);
        break;
    case DS_ACCEL_COPY_DEVICE_TO_DEVICE:
        CUDA_TRY(device,
                 api->cuMemcpyDtoDAsync_v2(cuda_address(destination), cuda_address(source), size,
                                           native_stream),
                 error, "cuMemcpyDtoDAsync(%p, %p, %zu bytes)", destination, source, size);
        break;
    default:
        CUDA_TRY(device,
                 api->cuMemcpyAsync(cuda_address(destination), cuda_address(source), size,
                                    native_stream),
                 error, "cuMemcpyAsync(%p, %p, %zu bytes)", destination, source, size);
        break;
    }
    return DS_ACCEL_OK;
}

int32_t cuda_copy_peer_async(ds_accel_plugin_device_t *device, void *native_stream,
                             ds_accel_plugin_device_t *destination_device, void *destination,
                             ds_accel_plugin_device_t *source_device, const void *source,
                             uint64_t size_bytes, struct ds_accel_error *error)
{
    const struct cuda_device *to = destination_device->state;
    const struct cuda_device *from = source_device->state;

    CUDA_TRY(device,
             cuda_api_of(device)->cuMemcpyPeerAsync(cuda_address(destination), to->context,
                                                    cuda_address(source), from->context,
                                                    (size_t)size_bytes, native_stream),
             error, "cuMemcpyPeerAsync(%p of device %u, %p of device %u, %llu bytes)", destination,
             destination_device->index, source, source_device->index,
             (unsigned long long)size_bytes);
    return DS_ACCEL_OK;
}

int32_t cuda_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                        struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_pointer_t address = cuda_address(destination);
    cu_result_t code;

    if (pattern_bytes == 1) {
        code = api->cuMemsetD8Async(address, (unsigned char)pattern, (size_t)count, native_stream);
    } else if (pattern_bytes == 2) {
        code =
            api->cuMemsetD16Async(address, (unsigned short)pattern, (size_t)count, native_stream);
    } else {
        code = api->cuMemsetD32Async(address, pattern, (size_t)count, native_stream);
    }
    CUDA_TRY(device, code, error, "cuMemsetD%uAsync(%p, 0x%x, %llu elements)", 8 * pattern_bytes,
             destination, pattern, (unsigned long long)count);
    return DS_ACCEL_OK;
}
