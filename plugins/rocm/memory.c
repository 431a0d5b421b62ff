/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Memory: device, pinned, managed, pooled; copies and fills; sharing between processes. */
#include "rocm.h"

/*
 * Allocating, freeing and registering would break a capture in global mode, of whichever thread.
 * This thread's mode is relaxed around them, as PyTorch's allocators do.
 */
int rocm_relax(const struct hip_api *hip)
{
    int mode = HIP_CAPTURE_MODE_RELAXED;

    return hip->hipThreadExchangeStreamCaptureMode != NULL &&
                   hip->hipThreadExchangeStreamCaptureMode(&mode) == HIP_SUCCESS
               ? mode
               : -1;
}

void rocm_restore(const struct rocm *rocm, int mode)
{
    if (mode >= 0) {
        (void)rocm_code(rocm, rocm->hip.hipThreadExchangeStreamCaptureMode(&mode));
    }
}

int32_t rocm_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                   struct ds_accel_error *error)
{
    int mode = rocm_relax(HIP_OF(device));
    hip_error_t code =
        rocm_code(ROCM_OF(device), HIP_OF(device)->hipMalloc(pointer_out, size_bytes));

    rocm_restore(ROCM_OF(device), mode);
    return vendor_check(device->instance, device, code, error, "hipMalloc(%llu bytes, device %u)",
                        (unsigned long long)size_bytes, device->index);
}

int32_t rocm_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error)
{
    int mode = rocm_relax(HIP_OF(device));
    hip_error_t code = rocm_code(ROCM_OF(device), HIP_OF(device)->hipFree(pointer));

    rocm_restore(ROCM_OF(device), mode);
    return vendor_check(device->instance, device, code, error, "hipFree(%p)", pointer);
}

static unsigned int host_flags(uint32_t flags)
{
    return ((flags & DS_ACCEL_PINNED_PORTABLE) != 0 ? HIP_HOST_PORTABLE : 0u) |
           ((flags & DS_ACCEL_PINNED_MAPPED) != 0 ? HIP_HOST_MAPPED : 0u) |
           ((flags & DS_ACCEL_PINNED_WRITE_COMBINED) != 0 ? HIP_HOST_WRITE_COMBINED : 0u);
}

int32_t rocm_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                          void **pointer_out, struct ds_accel_error *error)
{
    int mode = rocm_relax(HIP_OF(device));
    hip_error_t code = rocm_code(
        ROCM_OF(device), HIP_OF(device)->hipHostMalloc(pointer_out, size_bytes, host_flags(flags)));

    rocm_restore(ROCM_OF(device), mode);
    return vendor_check(device->instance, device, code, error,
                        "hipHostMalloc(%llu bytes, flags 0x%x)", (unsigned long long)size_bytes,
                        host_flags(flags));
}

int32_t rocm_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                         struct ds_accel_error *error)
{
    int mode = rocm_relax(HIP_OF(device));
    hip_error_t code = rocm_code(ROCM_OF(device), HIP_OF(device)->hipHostFree(pointer));

    rocm_restore(ROCM_OF(device), mode);
    return vendor_check(device->instance, device, code, error, "hipHostFree(%p)", pointer);
}

int32_t rocm_host_register(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                           uint32_t flags, struct ds_accel_error *error)
{
    /* Memory that exists cannot be made write-combined: a hint, which is dropped. */
    unsigned int native_flags = host_flags(flags & ~DS_ACCEL_PINNED_WRITE_COMBINED);
    int mode = rocm_relax(HIP_OF(device));
    hip_error_t code = rocm_code(
        ROCM_OF(device), HIP_OF(device)->hipHostRegister(pointer, size_bytes, native_flags));

    rocm_restore(ROCM_OF(device), mode);
    return vendor_check(device->instance, device, code, error,
                        "hipHostRegister(%p, %llu bytes, flags 0x%x)", pointer,
                        (unsigned long long)size_bytes, native_flags);
}

int32_t rocm_host_unregister(ds_accel_plugin_device_t *device, void *pointer,
                             struct ds_accel_error *error)
{
    int mode = rocm_relax(HIP_OF(device));
    hip_error_t code = rocm_code(ROCM_OF(device), HIP_OF(device)->hipHostUnregister(pointer));

    rocm_restore(ROCM_OF(device), mode);
    return vendor_check(device->instance, device, code, error, "hipHostUnregister(%p)", pointer);
}

int32_t rocm_alloc_managed(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                           void **pointer_out, struct ds_accel_error *error)
{
    const struct hip_api *hip = HIP_OF(device);
    int is_managed = 0;
    hip_error_t code;
    int mode;
    int32_t status = ROCM_CHECK(
        device,
        hip->hipDeviceGetAttribute(&is_managed, HIP_ATTRIBUTE_MANAGED_MEMORY, (int)device->index),
        error, "hipDeviceGetAttribute(managed memory, device %u)", device->index);

    if (status < 0) {
        return status;
    }
    if (is_managed == 0) {
        return vendor_unsupported(error, "mem_alloc_managed", "the device has no managed memory");
    }
    mode = rocm_relax(hip);
    code = rocm_code(ROCM_OF(device),
                     hip->hipMallocManaged(pointer_out, size_bytes, HIP_ATTACH_GLOBAL));
    rocm_restore(ROCM_OF(device), mode);
    return vendor_check(device->instance, device, code, error,
                        "hipMallocManaged(%llu bytes, device %u)", (unsigned long long)size_bytes,
                        device->index);
}

int32_t rocm_host_device_pointer(ds_accel_plugin_device_t *device, void *host_pointer,
                                 void **device_pointer_out, struct ds_accel_error *error)
{
    return ROCM_CHECK(device,
                      HIP_OF(device)->hipHostGetDevicePointer(device_pointer_out, host_pointer, 0),
                      error, "hipHostGetDevicePointer(%p)", host_pointer);
}

int32_t rocm_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        const void *source, uint64_t size_bytes, uint32_t kind,
                        struct ds_accel_error *error)
{
    return ROCM_CHECK(device,
                      HIP_OF(device)->hipMemcpyAsync(destination, source, size_bytes, (int)kind - 1,
                                                     native_stream),
                      error, "hipMemcpyAsync(%p, %p, %llu bytes, kind %d)", destination, source,
                      (unsigned long long)size_bytes, (int)kind - 1);
}

int32_t rocm_copy_peer_async(ds_accel_plugin_device_t *device, void *native_stream,
                             ds_accel_plugin_device_t *destination_device, void *destination,
                             ds_accel_plugin_device_t *source_device, const void *source,
                             uint64_t size_bytes, struct ds_accel_error *error)
{
    return ROCM_CHECK(
        device,
        HIP_OF(device)->hipMemcpyPeerAsync(destination, (int)destination_device->index, source,
                                           (int)source_device->index, size_bytes, native_stream),
        error, "hipMemcpyPeerAsync(%p, device %u, %p, device %u, %llu bytes)", destination,
        destination_device->index, source, source_device->index, (unsigned long long)size_bytes);
}

int32_t rocm_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                        struct ds_accel_error *error)
{
    const struct hip_api *hip = HIP_OF(device);
    hip_error_t code;

    if (pattern_bytes == 1) {
        code = hip->hipMemsetD8Async(destination, (unsigned char)pattern, count, native_stream);
    } else if (pattern_bytes == 2) {
        code = hip->hipMemsetD16Async(destination, (unsigned short)pattern, count, native_stream);
    } else {
        code = hip->hipMemsetD32Async(destination, (int)pattern, count, native_stream);
    }
    return ROCM_CHECK(device, code, error, "hipMemsetD%uAsync(%p, 0x%x, %llu elements)",
                      pattern_bytes * 8, destination, pattern, (unsigned long long)count);
}

int32_t rocm_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                         struct ds_accel_error *error)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    int32_t status = ROCM_CHECK(device, HIP_OF(device)->hipMemGetInfo(&free_bytes, &total_bytes),
                                error, "hipMemGetInfo(device %u)", device->index);

    if (status == DS_ACCEL_OK) {
        *free_out = free_bytes;
        *total_out = total_bytes;
    }
    return status;
}

/* -- the device's pool -- */

static int32_t check_pools(ds_accel_plugin_device_t *device, const char *call,
                           struct ds_accel_error *error)
{
    if ((device->info.flags & DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY) == 0) {
        return vendor_unsupported(error, call, "the device has no memory pools");
    }
    return DS_ACCEL_OK;
}

/* Without a pool, nothing is kept that could be given back. */
int32_t rocm_trim(ds_accel_plugin_device_t *device, uint64_t keep_bytes,
                  struct ds_accel_error *error)
{
    const struct hip_api *hip = HIP_OF(device);
    hip_pool_t pool = NULL;
    int32_t status;

    if ((device->info.flags & DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY) == 0 ||
        hip->hipDeviceGetDefaultMemPool == NULL || hip->hipMemPoolTrimTo == NULL) {
        return DS_ACCEL_OK;
    }
    status = ROCM_CHECK(device, hip->hipDeviceGetDefaultMemPool(&pool, (int)device->index), error,
                        "hipDeviceGetDefaultMemPool(device %u)", device->index);
    if (status < 0) {
        return status;
    }
    return ROCM_CHECK(device, hip->hipMemPoolTrimTo(pool, keep_bytes), error,
                      "hipMemPoolTrimTo(device %u, %llu bytes)", device->index,
                      (unsigned long long)keep_bytes);
}

int32_t rocm_alloc_async(ds_accel_plugin_device_t *device, void *native_stream, uint64_t size_bytes,
                         void **pointer_out, struct ds_accel_error *error)
{
    int32_t status = check_pools(device, "mem_alloc_async", error);

    if (status < 0) {
        return status;
    }
    return ROCM_CHECK(
        device, HIP_OF(device)->hipMallocAsync(pointer_out, size_bytes, native_stream), error,
        "hipMallocAsync(%llu bytes, device %u)", (unsigned long long)size_bytes, device->index);
}

int32_t rocm_free_async(ds_accel_plugin_device_t *device, void *native_stream, void *pointer,
                        struct ds_accel_error *error)
{
    int32_t status = check_pools(device, "mem_free_async", error);

    if (status < 0) {
        return status;
    }
    return ROCM_CHECK(device, HIP_OF(device)->hipFreeAsync(pointer, native_stream), error,
                      "hipFreeAsync(%p)", pointer);
}

/* -- other processes -- */

int32_t rocm_ipc_memory_export(ds_accel_plugin_device_t *device, void *base, uint64_t size_bytes,
                               void *handle, struct ds_accel_error *error)
{
    (void)size_bytes;
    return ROCM_CHECK(device, HIP_OF(device)->hipIpcGetMemHandle(handle, base), error,
                      "hipIpcGetMemHandle(%p)", base);
}

int32_t rocm_ipc_memory_open(ds_accel_plugin_device_t *device, const void *handle,
                             uint64_t size_bytes, void **base_out, struct ds_accel_error *error)
{
    const struct hip_api *hip = HIP_OF(device);
    unsigned int flags = hip->hipGetDevicePropertiesR0600 != NULL ? HIP_IPC_LAZY_PEER_ACCESS_6
                                                                  : HIP_IPC_LAZY_PEER_ACCESS_5;
    struct hip_ipc_memory value;

    (void)size_bytes;
    memcpy(&value, handle, sizeof(value));
    return ROCM_CHECK(device, hip->hipIpcOpenMemHandle(base_out, value, flags), error,
                      "hipIpcOpenMemHandle(device %u, flags %u)", device->index, flags);
}

int32_t rocm_ipc_memory_close(ds_accel_plugin_device_t *device, const void *handle, void *base,
                              struct ds_accel_error *error)
{
    (void)handle;
    return ROCM_CHECK(device, HIP_OF(device)->hipIpcCloseMemHandle(base), error,
                      "hipIpcCloseMemHandle(%p)", base);
}

int32_t rocm_ipc_event_export(ds_accel_plugin_device_t *device, void *native, void *handle,
                              struct ds_accel_error *error)
{
    return ROCM_CHECK(device, HIP_OF(device)->hipIpcGetEventHandle(handle, native), error,
                      "hipIpcGetEventHandle(%p)", native);
}

int32_t rocm_ipc_event_open(ds_accel_plugin_device_t *device, const void *handle, void **native_out,
                            struct ds_accel_error *error)
{
    struct hip_ipc_event value;

    memcpy(&value, handle, sizeof(value));
    return ROCM_CHECK(device, HIP_OF(device)->hipIpcOpenEventHandle(native_out, value), error,
                      "hipIpcOpenEventHandle(device %u)", device->index);
}
