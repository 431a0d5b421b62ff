/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Graphs, through the extension of specification 1.17, whose functions the driver returns by name.
 * If one of the seven required functions is missing, or the loader lacks
 * zeCommandListAppendHostFunction (1.17), the plugin does not support graphs. Signatures are those
 * of ze_api.h v1.32. Not verified on hardware: no tested driver provides the functions.
 *
 * Level Zero itself orders the launches of one executable graph, on any streams. It requires a
 * graph to outlive its executable graphs, so the plugin counts references. Level Zero rejects
 * waiting for a capturing stream; in the plugin, such a wait breaks the capture.
 */
#include "xpu.h"

#include <sys/mman.h>
#include <unistd.h>

struct xpu_graph {
    ze_graph_t handle;
    atomic_uint references; /* one reference for the graph itself, one for each executable graph */
};

struct xpu_graph_exec {
    ze_graph_exec_t handle;
    struct xpu_graph *graph;
    pthread_mutex_t lock;
    struct xpu_mark *launched; /* signalled by the last launch; NULL: never launched */
};

void xpu_graphs_bind(struct xpu_runtime *runtime, struct xpu_driver *driver)
{
    static const struct vendor_symbol symbols[] = {
        VENDOR_REQUIRED(struct ze_graph_api, zeCommandListBeginGraphCaptureExt),
        VENDOR_REQUIRED(struct ze_graph_api, zeCommandListEndGraphCaptureExt),
        VENDOR_REQUIRED(struct ze_graph_api, zeCommandListIsGraphCaptureEnabledExt),
        VENDOR_REQUIRED(struct ze_graph_api, zeGraphInstantiateExt),
        VENDOR_REQUIRED(struct ze_graph_api, zeCommandListAppendGraphExt),
        VENDOR_REQUIRED(struct ze_graph_api, zeExecutableGraphDestroyExt),
        VENDOR_REQUIRED(struct ze_graph_api, zeGraphDestroyExt),
    };

    if (runtime->ze.zeDriverGetExtensionFunctionAddress == NULL ||
        runtime->ze.zeCommandListAppendHostFunction == NULL) {
        return;
    }
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *function = NULL;

        /* Some drivers return SUCCESS and NULL. */
        driver->graphs_result = runtime->ze.zeDriverGetExtensionFunctionAddress(
            driver->handle, symbols[i].name, &function);
        if (driver->graphs_result != ZE_SUCCESS || function == NULL) {
            return;
        }
        memcpy((char *)&driver->graphs + symbols[i].offset, &function, sizeof(function));
    }
    driver->has_graphs = 1;
    if (runtime->ze.zeDriverGetExtensionFunctionAddress(
            driver->handle, "zeGraphDumpContentsExt",
            (void **)&driver->graphs.zeGraphDumpContentsExt) != ZE_SUCCESS) {
        driver->graphs.zeGraphDumpContentsExt = NULL;
    }
}

static const struct ze_graph_api *graphs_of(const ds_accel_plugin_device_t *device)
{
    const struct xpu_driver *driver = xpu_state(device)->unit->driver;

    return driver->has_graphs ? &driver->graphs : NULL;
}

static int32_t no_graphs(ds_accel_plugin_device_t *device, const char *call,
                         struct ds_accel_error *error)
{
    const ze_result result = xpu_state(device)->unit->driver->graphs_result;

    if (result != ZE_SUCCESS && result != ZE_ERROR_UNSUPPORTED_FEATURE) {
        return XPU_CHECK(device, result, error, "%s: zeDriverGetExtensionFunctionAddress", call);
    }
    return vendor_unsupported(error, call,
                              "the driver has no zeCommandListBeginGraphCaptureExt "
                              "(Level Zero 1.17)");
}

/* ---- captures ------------------------------------------------------------------------------- */

int32_t xpu_capture_begin(ds_accel_plugin_device_t *device, void *native_stream, uint32_t mode,
                          struct ds_accel_error *error)
{
    const struct ze_graph_api *graphs = graphs_of(device);
    struct xpu_state *state = xpu_state(device);
    struct xpu_stream *stream = native_stream;
    ze_result result;

    (void)mode; /* a call on another stream never breaks a capture, so all modes are equal */
    if (graphs == NULL) {
        return no_graphs(device, "graph_capture_begin", error);
    }
    pthread_mutex_lock(&stream->lock);
    atomic_fetch_add(&state->capture_count, 1);
    result = graphs->zeCommandListBeginGraphCaptureExt(stream->list, NULL);
    if (result != ZE_SUCCESS) {
        atomic_fetch_sub(&state->capture_count, 1);
    }
    pthread_mutex_unlock(&stream->lock);
    return XPU_CHECK(device, result, error, "zeCommandListBeginGraphCaptureExt");
}

int32_t xpu_capture_end(ds_accel_plugin_device_t *device, void *native_stream, void **native_out,
                        struct ds_accel_error *error)
{
    const struct ze_graph_api *graphs = graphs_of(device);
    struct xpu_stream *stream = native_stream;
    struct xpu_graph *graph;
    ze_graph_t handle = NULL;
    uint32_t is_broken;
    ze_result result;

    if (graphs == NULL) {
        return no_graphs(device, "graph_capture_end", error);
    }
    graph = calloc(1, sizeof(*graph));
    pthread_mutex_lock(&stream->lock);
    result = graphs->zeCommandListEndGraphCaptureExt(stream->list, NULL, &handle);
    is_broken = stream->is_broken;
    stream->is_broken = 0;
    atomic_fetch_sub(&xpu_state(device)->capture_count, 1);
    pthread_mutex_unlock(&stream->lock);
    if (result == ZE_SUCCESS && graph != NULL && !is_broken) {
        graph->handle = handle;
        atomic_init(&graph->references, 1);
        *native_out = graph;
        return DS_ACCEL_OK;
    }
    if (result == ZE_SUCCESS) {
        graphs->zeGraphDestroyExt(handle);
    }
    if (result == ZE_SUCCESS && !is_broken) {
        return xpu_no_host_memory(error, "graph_capture_end");
    }
    free(graph);
    return is_broken
               ? plugin_fail(error, DS_ACCEL_ERR_STATE, "graph_capture_end: the capture was broken")
               : XPU_CHECK(device, result, error, "zeCommandListEndGraphCaptureExt");
}

int32_t xpu_capture_status(ds_accel_plugin_device_t *device, void *native_stream,
                           uint32_t *status_out, struct ds_accel_error *error)
{
    const struct ze_graph_api *graphs = graphs_of(device);
    struct xpu_stream *stream = native_stream;
    ze_result result;

    if (graphs == NULL) {
        return no_graphs(device, "graph_capture_status", error);
    }
    pthread_mutex_lock(&stream->lock);
    result = graphs->zeCommandListIsGraphCaptureEnabledExt(stream->list);
    if (result == ZE_QUERY_TRUE && stream->is_broken) {
        result = ZE_ERROR_CAPTURE_INVALIDATED;
    }
    pthread_mutex_unlock(&stream->lock);
    switch (result) {
    case ZE_QUERY_TRUE:
        *status_out = DS_ACCEL_CAPTURING_YES;
        return DS_ACCEL_OK;
    case ZE_QUERY_FALSE:
        *status_out = DS_ACCEL_CAPTURING_NO;
        return DS_ACCEL_OK;
    case ZE_ERROR_CAPTURE_INVALIDATED:
        *status_out = DS_ACCEL_CAPTURING_BROKEN;
        return DS_ACCEL_OK;
    default:
        return XPU_CHECK(device, result, error, "zeCommandListIsGraphCaptureEnabledExt");
    }
}

/* ---- graphs --------------------------------------------------------------------------------- */

static void put_graph(ds_accel_plugin_device_t *device, struct xpu_graph *graph)
{
    if (atomic_fetch_sub(&graph->references, 1) == 1) {
        graphs_of(device)->zeGraphDestroyExt(graph->handle);
        free(graph);
    }
}

uint64_t xpu_graph_handle(const void *native)
{
    return (uint64_t)(uintptr_t)((const struct xpu_graph *)native)->handle;
}

void xpu_graph_destroy(ds_accel_plugin_device_t *device, void *native)
{
    put_graph(device, native);
}

/*
 * Level Zero writes a DOT file to a path: the plugin passes the path of a memory file's descriptor.
 */
int32_t xpu_graph_dump(ds_accel_plugin_device_t *device, void *native, ds_accel_text_sink_t sink,
                       void *user_data, struct ds_accel_error *error)
{
    const struct ze_graph_api *graphs = graphs_of(device);
    const struct xpu_graph *graph = native;
    int32_t status = DS_ACCEL_OK;
    ze_result result;
    char text[4096];
    char path[32];
    ssize_t size;
    int fd;

    if (graphs->zeGraphDumpContentsExt == NULL) {
        return vendor_unsupported(error, "graph_dump", "the driver has no zeGraphDumpContentsExt");
    }
    fd = memfd_create("ds-accel-graph", MFD_CLOEXEC);
    if (fd < 0) {
        return plugin_fail(error, DS_ACCEL_ERR_LIMIT, "graph_dump: memfd_create: %s",
                           strerror(errno));
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    result = graphs->zeGraphDumpContentsExt(graph->handle, path, NULL);
    lseek(fd, 0, SEEK_SET);
    while (result == ZE_SUCCESS && status == DS_ACCEL_OK &&
           (size = read(fd, text, sizeof(text))) > 0) {
        status = sink(user_data, text, (uint64_t)size);
    }
    close(fd);
    if (result != ZE_SUCCESS) {
        return XPU_CHECK(device, result, error, "zeGraphDumpContentsExt");
    }
    return status < 0 ? plugin_fail(error, status, "graph_dump: the sink ended it") : status;
}

int32_t xpu_graph_instantiate(ds_accel_plugin_device_t *device, void *native, void **exec_out,
                              struct ds_accel_error *error)
{
    struct xpu_graph_exec *exec = calloc(1, sizeof(*exec));
    ze_result result;

    if (exec == NULL) {
        return xpu_no_host_memory(error, "graph_instantiate");
    }
    exec->graph = native;
    result = graphs_of(device)->zeGraphInstantiateExt(exec->graph->handle, NULL, &exec->handle);
    if (result != ZE_SUCCESS) {
        free(exec);
        return XPU_CHECK(device, result, error, "zeGraphInstantiateExt");
    }
    atomic_fetch_add(&exec->graph->references, 1);
    pthread_mutex_init(&exec->lock, NULL);
    *exec_out = exec;
    return DS_ACCEL_OK;
}

/*
 * Waits until the last launch has signalled its mark, and destroys the executable graph. The graph
 * itself is destroyed with its last reference.
 */
void xpu_graph_exec_destroy(ds_accel_plugin_device_t *device, void *exec)
{
    struct xpu_state *state = xpu_state(device);
    struct xpu_graph_exec *it = exec;

    if (it->launched != NULL) {
        state->runtime->ze.zeEventHostSynchronize(it->launched->event, UINT64_MAX);
        xpu_mark_put(state, it->launched);
    }
    graphs_of(device)->zeExecutableGraphDestroyExt(it->handle);
    put_graph(device, it->graph);
    pthread_mutex_destroy(&it->lock);
    free(it);
}

int32_t xpu_graph_launch(ds_accel_plugin_device_t *device, void *exec, void *native_stream,
                         struct ds_accel_error *error)
{
    struct xpu_graph_exec *it = exec;
    struct xpu_stream *stream = native_stream;
    struct xpu_state *state = xpu_state(device);
    struct xpu_mark *launched = NULL;
    ze_result result;
    int32_t status = xpu_mark_take(device, state, 0, &launched, error);

    if (status < 0 || launched == NULL) {
        return status;
    }
    pthread_mutex_lock(&it->lock);
    pthread_mutex_lock(&stream->lock);
    result = xpu_stream_order(stream);
    if (result == ZE_SUCCESS) {
        result = graphs_of(device)->zeCommandListAppendGraphExt(stream->list, it->handle, NULL,
                                                                launched->event, 0, NULL);
    }
    if (result == ZE_SUCCESS) {
        struct xpu_mark *before = it->launched;

        launched->is_armed = 1;
        xpu_stream_touched(stream);
        it->launched = launched;
        launched = before;
    }
    pthread_mutex_unlock(&stream->lock);
    pthread_mutex_unlock(&it->lock);
    xpu_mark_put(state, launched);
    return XPU_CHECK(device, result, error, "zeCommandListAppendGraphExt");
}
