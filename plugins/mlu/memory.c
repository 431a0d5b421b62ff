/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Memory. CNRT's prototypes declare sources without const, but CNRT does not write to them. */
#include "mlu.h"

static int direction_of(uint32_t kind)
{
    switch (kind) {
    case DS_ACCEL_COPY_HOST_TO_HOST:
        return CNRT_HOST_TO_HOST;
    case DS_ACCEL_COPY_HOST_TO_DEVICE:
        return CNRT_HOST_TO_DEVICE;
    case DS_ACCEL_COPY_DEVICE_TO_HOST:
        return CNRT_DEVICE_TO_HOST;
    case DS_ACCEL_COPY_DEVICE_TO_DEVICE:
        return CNRT_DEVICE_TO_DEVICE;
    default:
        return CNRT_INFER;
    }
}

int32_t mlu_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                  struct ds_accel_error *error)
{
    return MLU_CHECK(device, MLU_CNRT(device)->cnrtMalloc(pointer_out, size_bytes), error,
                     "cnrtMalloc(%llu bytes, device %u)", (unsigned long long)size_bytes,
                     device->index);
}

int32_t mlu_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error)
{
    return MLU_CHECK(device, MLU_CNRT(device)->cnrtFree(pointer), error, "cnrtFree(%p)", pointer);
}

int32_t mlu_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                         void **pointer_out, struct ds_accel_error *error)
{
    (void)flags;
    return MLU_CHECK(device, MLU_CNRT(device)->cnrtHostMalloc(pointer_out, size_bytes), error,
                     "cnrtHostMalloc(%llu bytes)", (unsigned long long)size_bytes);
}

int32_t mlu_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                        struct ds_accel_error *error)
{
    return MLU_CHECK(device, MLU_CNRT(device)->cnrtFreeHost(pointer), error, "cnrtFreeHost(%p)",
                     pointer);
}

int32_t mlu_copy(ds_accel_plugin_device_t *device, void *destination, const void *source,
                 uint64_t size_bytes, uint32_t kind, struct ds_accel_error *error)
{
    return MLU_CHECK(device,
                     MLU_CNRT(device)->cnrtMemcpy(destination, (void *)(uintptr_t)source,
                                                  size_bytes, direction_of(kind)),
                     error, "cnrtMemcpy(%llu bytes, direction %d, device %u)",
                     (unsigned long long)size_bytes, direction_of(kind), device->index);
}

int32_t mlu_copy_async(ds_accel_plugin_device_t *device, void *queue, void *destination,
                       const void *source, uint64_t size_bytes, uint32_t kind,
                       struct ds_accel_error *error)
{
    const struct mlu_runtime *runtime = MLU(device->instance);

    return MLU_CHECK(device,
                     runtime->copy_async(destination, (void *)(uintptr_t)source, size_bytes, queue,
                                         direction_of(kind)),
                     error, "%s(%llu bytes, direction %d, device %u)", runtime->copy_async_name,
                     (unsigned long long)size_bytes, direction_of(kind), device->index);
}

int32_t mlu_copy_peer_async(ds_accel_plugin_device_t *device, void *queue,
                            ds_accel_plugin_device_t *destination_device, void *destination,
                            ds_accel_plugin_device_t *source_device, const void *source,
                            uint64_t size_bytes, struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);

    if (cnrt->cnrtMemcpyPeerAsync == NULL) {
        return MLU_MISSING(error, "mem_copy_peer_async", "cnrtMemcpyPeerAsync");
    }
    return MLU_CHECK(device,
                     cnrt->cnrtMemcpyPeerAsync(destination, (int)destination_device->index,
                                               (void *)(uintptr_t)source, (int)source_device->index,
                                               size_bytes, queue),
                     error, "cnrtMemcpyPeerAsync(%llu bytes, device %u to %u)",
                     (unsigned long long)size_bytes, source_device->index,
                     destination_device->index);
}

int32_t mlu_fill_async(ds_accel_plugin_device_t *device, void *queue, void *destination,
                       uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                       struct ds_accel_error *error)
{
    (void)pattern_bytes; /* fill_widths is 1, so pattern_bytes is always 1 */
    return MLU_CHECK(
        device,
        MLU_CNRT(device)->cnrtMemsetAsync(destination, (int)(pattern & 0xffu), count, queue), error,
        "cnrtMemsetAsync(%llu bytes, device %u)", (unsigned long long)count, device->index);
}

int32_t mlu_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                        struct ds_accel_error *error)
{
    size_t free_bytes = 0;
    size_t total = 0;
    int32_t status = MLU_CHECK(device, MLU_CNRT(device)->cnrtMemGetInfo(&free_bytes, &total), error,
                               "cnrtMemGetInfo(device %u)", device->index);

    if (status == DS_ACCEL_OK) {
        *free_out = free_bytes;
        *total_out = total;
    }
    return status;
}

/* ---- sharing between processes: a handle is a pointer value --------------------------------- */

int32_t mlu_ipc_export(ds_accel_plugin_device_t *device, void *base, uint64_t size_bytes,
                       void *handle, struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);
    void *acquired = NULL;
    int32_t status;

    if (cnrt->cnrtAcquireMemHandle == NULL || cnrt->cnrtMapMemHandle == NULL) {
        return MLU_MISSING(error, "ipc_memory_export", "cnrtAcquireMemHandle");
    }
    status = MLU_CHECK(device, cnrt->cnrtAcquireMemHandle(&acquired, base), error,
                       "cnrtAcquireMemHandle(%p, %llu bytes)", base,
                       (unsigned long long)size_bytes);
    if (status == DS_ACCEL_OK) {
        memcpy(handle, &acquired, sizeof(acquired));
    }
    return status;
}

int32_t mlu_ipc_open(ds_accel_plugin_device_t *device, const void *handle, uint64_t size_bytes,
                     void **base_out, struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);
    void *acquired;

    (void)size_bytes;
    if (cnrt->cnrtMapMemHandle == NULL || cnrt->cnrtUnMapMemHandle == NULL) {
        return MLU_MISSING(error, "ipc_memory_open", "cnrtMapMemHandle");
    }
    memcpy(&acquired, handle, sizeof(acquired));
    return MLU_CHECK(device, cnrt->cnrtMapMemHandle(base_out, acquired, 0), error,
                     "cnrtMapMemHandle(device %u)", device->index);
}

int32_t mlu_ipc_close(ds_accel_plugin_device_t *device, const void *handle, void *base,
                      struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);

    (void)handle;
    if (cnrt->cnrtUnMapMemHandle == NULL) {
        return MLU_MISSING(error, "ipc_memory_close", "cnrtUnMapMemHandle");
    }
    return MLU_CHECK(device, cnrt->cnrtUnMapMemHandle(base), error, "cnrtUnMapMemHandle(%p)", base);
}
