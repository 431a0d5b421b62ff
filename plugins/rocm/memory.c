/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Memory: managed and pooled; fills; sharing between processes. */
#include "rocm.h"

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
    mode = cuda_shaped_relax(&ROCM_OF(device)->shaped);
    code = cuda_shaped_code(&ROCM_OF(device)->shaped,
                            hip->hipMallocManaged(pointer_out, size_bytes, HIP_ATTACH_GLOBAL));
    cuda_shaped_restore(&ROCM_OF(device)->shaped, mode);
    return vendor_check(device->instance, device, code, error,
                        "hipMallocManaged(%llu bytes, device %u)", (unsigned long long)size_bytes,
                        device->index);
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

/* In a capture hipMemcpyPeerAsync() copies at once, and the graph does not contain the copy;
 * hipMemcpyAsync() is captured. */
int32_t rocm_copy_peer_async(ds_accel_plugin_device_t *device, void *native_stream,
                             ds_accel_plugin_device_t *destination_device, void *destination,
                             ds_accel_plugin_device_t *source_device, const void *source,
                             uint64_t size_bytes, struct ds_accel_error *error)
{
    uint32_t capturing = 0;
    int32_t status = native_stream == NULL
                         ? DS_ACCEL_OK
                         : cuda_shaped_capture_status(device, native_stream, &capturing, error);

    if (status < 0) {
        return status;
    }
    return capturing != 0
               ? cuda_shaped_copy_async(device, native_stream, destination, source, size_bytes,
                                        DS_ACCEL_COPY_DEVICE_TO_DEVICE, error)
               : cuda_shaped_copy_peer_async(device, native_stream, destination_device, destination,
                                             source_device, source, size_bytes, error);
}

/* -- the device's memory pool -- */

static int32_t check_pools(ds_accel_plugin_device_t *device, const char *call,
                           struct ds_accel_error *error)
{
    if ((device->info.flags & DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY) == 0) {
        return vendor_unsupported(error, call, "the device has no memory pools");
    }
    return DS_ACCEL_OK;
}

/*
 * Releases unused memory of the device's pool. If the device has no pool, or the runtime lacks the
 * functions, nothing is released, and the call succeeds.
 */
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

/* -- sharing between processes -- */

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
