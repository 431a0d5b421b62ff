/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Captures and graphs. Executable graphs are made and destroyed with the thread's capture mode
 * relaxed: otherwise these calls break the captures of other streams. */
#include "plugin.h"

#include <sys/mman.h>
#include <unistd.h>

static int32_t check_graphs(const struct cuda_api *api, struct ds_accel_error *error)
{
    return api->cuStreamBeginCapture_v2 != NULL && api->cuStreamEndCapture != NULL &&
                   api->cuGraphInstantiateWithFlags != NULL && api->cuGraphLaunch != NULL &&
                   api->cuGraphDestroy != NULL && api->cuGraphExecDestroy != NULL
               ? DS_ACCEL_OK
               : vendor_unsupported(error, "graph_capture_begin",
                                    "libcuda.so.1 has no cuGraphInstantiateWithFlags (CUDA 11.4)");
}

/* The values of DS_ACCEL_CAPTURE_* are equal to the driver's. */
int32_t cuda_capture_begin(ds_accel_plugin_device_t *device, void *native_stream, uint32_t mode,
                           struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    int32_t status = check_graphs(api, error);

    if (status < 0) {
        return status;
    }
    CUDA_TRY(device, api->cuStreamBeginCapture_v2(native_stream, (int)mode), error,
             "cuStreamBeginCapture(%p, mode %u)", native_stream, mode);
    return DS_ACCEL_OK;
}

int32_t cuda_capture_end(ds_accel_plugin_device_t *device, void *native_stream, void **native_out,
                         struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_graph_t graph = NULL;
    int32_t status = check_graphs(api, error);

    if (status < 0) {
        return status;
    }
    CUDA_TRY(device, api->cuStreamEndCapture(native_stream, &graph), error,
             "cuStreamEndCapture(%p)", native_stream);
    *native_out = graph;
    return DS_ACCEL_OK;
}

int32_t cuda_capture_status(ds_accel_plugin_device_t *device, void *native_stream,
                            uint32_t *status_out, struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    int capturing = 0;

    if (api->cuStreamIsCapturing == NULL) {
        return vendor_unsupported(error, "graph_capture_status",
                                  "libcuda.so.1 has no cuStreamIsCapturing (CUDA 10.0)");
    }
    CUDA_TRY(device, api->cuStreamIsCapturing(native_stream, &capturing), error,
             "cuStreamIsCapturing(%p)", native_stream);
    *status_out = capturing == CU_CAPTURE_ACTIVE        ? DS_ACCEL_CAPTURING_YES
                  : capturing == CU_CAPTURE_INVALIDATED ? DS_ACCEL_CAPTURING_BROKEN
                                                        : DS_ACCEL_CAPTURING_NO;
    return DS_ACCEL_OK;
}

void cuda_graph_destroy(ds_accel_plugin_device_t *device, void *native)
{
    CUDA_END(device, cuda_api_of(device)->cuGraphDestroy(native), "cuGraphDestroy(%p)", native);
}

int32_t cuda_graph_instantiate(ds_accel_plugin_device_t *device, void *native, void **exec_out,
                               struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_graph_exec_t exec = NULL;
    cu_result_t code;

    CUDA_RELAXED(api, code, api->cuGraphInstantiateWithFlags(&exec, native, 0));
    CUDA_TRY(device, code, error, "cuGraphInstantiateWithFlags(%p)", native);
    *exec_out = exec;
    return DS_ACCEL_OK;
}

void cuda_graph_exec_destroy(ds_accel_plugin_device_t *device, void *exec)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_result_t code;

    CUDA_RELAXED(api, code, api->cuGraphExecDestroy(exec));
    CUDA_END(device, code, "cuGraphExecDestroy(%p)", exec);
}

int32_t cuda_graph_launch(ds_accel_plugin_device_t *device, void *exec, void *native_stream,
                          struct ds_accel_error *error)
{
    CUDA_TRY(device, cuda_api_of(device)->cuGraphLaunch(exec, native_stream), error,
             "cuGraphLaunch(%p, stream %p)", exec, native_stream);
    return DS_ACCEL_OK;
}

/*
 * Before CUDA 12 cuGraphExecUpdate() had other arguments, and the plugin does not call it. With
 * such a driver the result tells the caller to instantiate the graph again, which always works.
 */
int32_t cuda_graph_exec_update(ds_accel_plugin_device_t *device, void *exec, void *native,
                               uint32_t *result_out, struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_update_t result = {0, NULL, NULL};
    cu_result_t code;

    *result_out = DS_ACCEL_GRAPH_REBUILD_NEEDED;
    if (api->cuGraphExecUpdate_v2 == NULL) {
        return DS_ACCEL_OK;
    }
    code = api->cuGraphExecUpdate_v2(exec, native, &result);
    if (code == CU_GRAPH_EXEC_UPDATE_FAILURE) {
        return DS_ACCEL_OK;
    }
    CUDA_TRY(device, code, error, "cuGraphExecUpdate(%p, %p)", exec, native);
    *result_out = DS_ACCEL_GRAPH_UPDATED;
    return DS_ACCEL_OK;
}

int32_t cuda_graph_node_count(ds_accel_plugin_device_t *device, void *native, uint64_t *count_out,
                              struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    size_t count = 0;

    if (api->cuGraphGetNodes == NULL) {
        return vendor_unsupported(error, "graph_node_count",
                                  "libcuda.so.1 has no cuGraphGetNodes (CUDA 10.0)");
    }
    CUDA_TRY(device, api->cuGraphGetNodes(native, NULL, &count), error, "cuGraphGetNodes(%p)",
             native);
    *count_out = count;
    return DS_ACCEL_OK;
}

/* ---- dump: the driver writes to a path, which is a file in memory --------------------------- */

static int32_t pass_on(int fd, ds_accel_text_sink_t sink, void *user_data)
{
    char piece[4096];
    ssize_t size;
    int32_t status = DS_ACCEL_OK;

    lseek(fd, 0, SEEK_SET);
    while (status == DS_ACCEL_OK && (size = read(fd, piece, sizeof(piece))) > 0) {
        status = sink(user_data, piece, (uint64_t)size);
    }
    return status;
}

int32_t cuda_graph_dump(ds_accel_plugin_device_t *device, void *native, ds_accel_text_sink_t sink,
                        void *user_data, struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    char path[64];
    cu_result_t code;
    int32_t status;
    int fd;

    if (api->cuGraphDebugDotPrint == NULL) {
        return vendor_unsupported(error, "graph_dump",
                                  "libcuda.so.1 has no cuGraphDebugDotPrint (CUDA 11.3)");
    }
    fd = memfd_create("ds_accel_graph", MFD_CLOEXEC);
    if (fd < 0) {
        return plugin_fail(error, DS_ACCEL_ERR_IO, "graph_dump: memfd_create(): %m");
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    code = api->cuGraphDebugDotPrint(native, path, 0);
    status = code == CU_SUCCESS ? pass_on(fd, sink, user_data)
                                : vendor_check(device->instance, device, code, error,
                                               "cuGraphDebugDotPrint(%p)", native);
    close(fd);
    return status;
}
