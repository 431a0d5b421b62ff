/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Peer access, memory and events shared between processes, dma-bufs. */
#include "plugin.h"

#include <unistd.h>

/* ---- peers: access is enabled in the current context, for memory of the peer's context ------ */

int32_t cuda_peer_can_access(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                             uint32_t *can_out, struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    int can = 0;

    if (api->cuDeviceCanAccessPeer != NULL) {
        CUDA_TRY(device,
                 api->cuDeviceCanAccessPeer(&can, (cu_device_t)device->native_device,
                                            (cu_device_t)peer->native_device),
                 error, "cuDeviceCanAccessPeer(device %u, device %u)", device->index, peer->index);
    }
    *can_out = can != 0;
    return DS_ACCEL_OK;
}

static int32_t check_peers(const struct cuda_api *api, const char *slot,
                           struct ds_accel_error *error)
{
    return api->cuCtxEnablePeerAccess != NULL && api->cuCtxDisablePeerAccess != NULL
               ? DS_ACCEL_OK
               : vendor_unsupported(error, slot,
                                    "libcuda.so.1 has no cuCtxEnablePeerAccess (CUDA 4.0)");
}

int32_t cuda_peer_enable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                         struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    const struct cuda_device *other = peer->state;
    cu_result_t code;
    int32_t status = check_peers(api, "peer_enable", error);

    if (status < 0) {
        return status;
    }
    code = api->cuCtxEnablePeerAccess(other->context, 0);
    if (code != CU_PEER_ACCESS_ALREADY_ENABLED) {
        CUDA_TRY(device, code, error, "cuCtxEnablePeerAccess(device %u to device %u)",
                 device->index, peer->index);
    }
    return DS_ACCEL_OK;
}

int32_t cuda_peer_disable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                          struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    const struct cuda_device *other = peer->state;
    cu_result_t code;
    int32_t status = check_peers(api, "peer_disable", error);

    if (status < 0) {
        return status;
    }
    code = api->cuCtxDisablePeerAccess(other->context);
    if (code != CU_PEER_ACCESS_NOT_ENABLED) {
        CUDA_TRY(device, code, error, "cuCtxDisablePeerAccess(device %u to device %u)",
                 device->index, peer->index);
    }
    return DS_ACCEL_OK;
}

/* ---- between processes: handles are passed by value ------------------------------------------ */

static int32_t check_ipc(const struct cuda_api *api, const char *slot, struct ds_accel_error *error)
{
    return api->cuIpcGetMemHandle != NULL && api->cuIpcOpenMemHandle_v2 != NULL &&
                   api->cuIpcCloseMemHandle != NULL && api->cuIpcGetEventHandle != NULL &&
                   api->cuIpcOpenEventHandle != NULL
               ? DS_ACCEL_OK
               : vendor_unsupported(error, slot,
                                    "libcuda.so.1 has no cuIpcOpenMemHandle_v2 (CUDA 11.0)");
}

int32_t cuda_ipc_memory_export(ds_accel_plugin_device_t *device, void *base, uint64_t size_bytes,
                               void *handle, struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_ipc_handle_t made;
    int32_t status = check_ipc(api, "ipc_memory_export", error);

    (void)size_bytes;
    if (status < 0) {
        return status;
    }
    memset(&made, 0, sizeof(made));
    CUDA_TRY(device, api->cuIpcGetMemHandle(&made, cuda_address(base)), error,
             "cuIpcGetMemHandle(%p)", base);
    memcpy(handle, &made, sizeof(made));
    return DS_ACCEL_OK;
}

/*
 * The driver counts how often a handle is open. But while one thread opens or closes a handle, the
 * driver may refuse it to another thread as mapped already (seen once in 4000 times, with four
 * threads): the second thread tries again.
 */
#define OPEN_ATTEMPTS 50
#define OPEN_PAUSE_US 100

static cu_result_t open_handle(const struct cuda_api *api, cu_ipc_handle_t handle,
                               cu_pointer_t *base_out)
{
    cu_result_t code = api->cuIpcOpenMemHandle_v2(base_out, handle, CU_IPC_LAZY_PEER);

    for (int i = 1; code == CU_ALREADY_MAPPED && i < OPEN_ATTEMPTS; i++) {
        usleep(OPEN_PAUSE_US);
        code = api->cuIpcOpenMemHandle_v2(base_out, handle, CU_IPC_LAZY_PEER);
    }
    return code;
}

int32_t cuda_ipc_memory_open(ds_accel_plugin_device_t *device, const void *handle,
                             uint64_t size_bytes, void **base_out, struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_ipc_handle_t given;
    cu_pointer_t base = 0;
    int32_t status = check_ipc(api, "ipc_memory_open", error);

    if (status < 0) {
        return status;
    }
    memcpy(&given, handle, sizeof(given));
    CUDA_TRY(device, open_handle(api, given, &base), error,
             "cuIpcOpenMemHandle(%llu bytes, device %u)", (unsigned long long)size_bytes,
             device->index);
    *base_out = (void *)(uintptr_t)base;
    return DS_ACCEL_OK;
}

int32_t cuda_ipc_memory_close(ds_accel_plugin_device_t *device, const void *handle, void *base,
                              struct ds_accel_error *error)
{
    (void)handle;
    CUDA_TRY(device, cuda_api_of(device)->cuIpcCloseMemHandle(cuda_address(base)), error,
             "cuIpcCloseMemHandle(%p)", base);
    return DS_ACCEL_OK;
}

int32_t cuda_ipc_event_export(ds_accel_plugin_device_t *device, void *native, void *handle,
                              struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_ipc_handle_t made;
    int32_t status = check_ipc(api, "ipc_event_export", error);

    if (status < 0) {
        return status;
    }
    memset(&made, 0, sizeof(made));
    CUDA_TRY(device, api->cuIpcGetEventHandle(&made, native), error, "cuIpcGetEventHandle(%p)",
             native);
    memcpy(handle, &made, sizeof(made));
    return DS_ACCEL_OK;
}

int32_t cuda_ipc_event_open(ds_accel_plugin_device_t *device, const void *handle, void **native_out,
                            struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_ipc_handle_t given;
    cu_event_t event = NULL;
    int32_t status = check_ipc(api, "ipc_event_open", error);

    if (status < 0) {
        return status;
    }
    memcpy(&given, handle, sizeof(given));
    CUDA_TRY(device, api->cuIpcOpenEventHandle(&event, given), error,
             "cuIpcOpenEventHandle(device %u)", device->index);
    *native_out = event;
    return DS_ACCEL_OK;
}

/* ---- dma-bufs: whole pages of the host ------------------------------------------------------- */

int32_t cuda_dmabuf_export(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                           int32_t *fd_out, uint64_t *offset_out, struct ds_accel_error *error)
{
    const struct cuda_device *state = device->state;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    int fd = -1;

    if (!state->has_dmabuf) {
        return vendor_unsupported(error, "dmabuf_export", "this device or driver has no dma-bufs");
    }
    if ((cuda_address(pointer) | size_bytes) % page != 0) {
        return plugin_fail(
            error, DS_ACCEL_ERR_UNSUPPORTED,
            "dmabuf_export: a dma-buf has whole pages of %llu bytes, and the %llu bytes at "
            "%p do not fill theirs",
            (unsigned long long)page, (unsigned long long)size_bytes, pointer);
    }
    CUDA_TRY(device,
             state->api->cuMemGetHandleForAddressRange(&fd, cuda_address(pointer),
                                                       (size_t)size_bytes, CU_RANGE_DMA_BUF_FD, 0),
             error, "cuMemGetHandleForAddressRange(%p, %llu bytes)", pointer,
             (unsigned long long)size_bytes);
    *fd_out = fd;
    *offset_out = 0;
    return DS_ACCEL_OK;
}
