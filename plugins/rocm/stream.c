/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Streams with priorities; host tasks, also with releases that lack hipLaunchHostFunc(); updates
 * and node counts of graphs.
 */
#include "rocm.h"

int32_t rocm_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                           void **native_out, struct ds_accel_error *error)
{
    unsigned int native_flags =
        (flags & DS_ACCEL_STREAM_NON_BLOCKING) != 0 ? CUDA_SHAPED_STREAM_NON_BLOCKING : 0;

    return ROCM_CHECK(
        device, HIP_OF(device)->hipStreamCreateWithPriority(native_out, native_flags, priority),
        error, "hipStreamCreateWithPriority(flags %u, priority %d)", native_flags, priority);
}

int32_t rocm_stream_default(ds_accel_plugin_device_t *device, void **native_out,
                            struct ds_accel_error *error)
{
    (void)device;
    (void)error;
    *native_out = NULL;
    return DS_ACCEL_OK;
}

int32_t rocm_stream_priority_range(ds_accel_plugin_device_t *device, int32_t *least_out,
                                   int32_t *greatest_out, struct ds_accel_error *error)
{
    int least = 0;
    int greatest = 0;
    int32_t status = ROCM_CHECK(device,
                                HIP_OF(device)->hipDeviceGetStreamPriorityRange(&least, &greatest),
                                error, "hipDeviceGetStreamPriorityRange(device %u)", device->index);

    if (status == DS_ACCEL_OK) {
        *least_out = least;
        *greatest_out = greatest;
    }
    return status;
}

int32_t rocm_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                              void (*call)(void *argument), void *argument,
                              struct ds_accel_error *error)
{
    const struct cuda_shaped_api *api = &ROCM_OF(device)->shaped.api;
    uint32_t capturing = 0;
    int32_t status = DS_ACCEL_OK;

    if (api->launch_host_func == NULL && native != NULL) {
        status = cuda_shaped_capture_status(device, native, &capturing, error);
    }
    if (status < 0) {
        return status;
    }
    if (api->launch_host_func == NULL && (capturing != 0 || api->add_callback == NULL)) {
        return vendor_unsupported(error, "stream_host_task",
                                  "this ROCm has no hipLaunchHostFunc (5.3), which a capture "
                                  "needs");
    }
    return cuda_shaped_stream_host_task(device, native, call, argument, error);
}

/* -- graphs -- */

/*
 * When a capture ends that was broken, or that left a stream unjoined, some releases (6.3; later
 * ones only after an unjoined stream) leave the stream in that capture: work on the stream fails,
 * and its capture cannot be ended again. A capture that begins and ends at once resets the stream;
 * it cannot begin on a stream that counts as capturing, so a query breaks that capture first.
 */
static void reset_stream(ds_accel_plugin_device_t *device, void *native_stream)
{
    const struct cuda_shaped_api *api = &ROCM_OF(device)->shaped.api;
    void *graph = NULL;
    int capturing = 0;

    if (api->capture_status(native_stream, &capturing) == 0 && capturing != 0) {
        (void)api->stream_query(native_stream);
        if (api->capture_begin(native_stream, CUDA_SHAPED_CAPTURE_RELAXED) == 0 &&
            api->capture_end(native_stream, &graph) == 0) {
            (void)api->graph_destroy(graph);
        }
        (void)api->last_error();
    }
}

int32_t rocm_capture_end(ds_accel_plugin_device_t *device, void *native_stream, void **native_out,
                         struct ds_accel_error *error)
{
    hip_error_t code =
        cuda_shaped_code(&ROCM_OF(device)->shaped,
                         ROCM_OF(device)->shaped.api.capture_end(native_stream, native_out));

    if (code == HIP_CAPTURE_INVALIDATED || code == HIP_CAPTURE_UNJOINED) {
        reset_stream(device, native_stream);
    }
    return vendor_check(device->instance, device, code, error, "hipStreamEndCapture(%p)",
                        native_stream);
}

/*
 * If the new graph has a different structure, the runtime returns an error code and describes the
 * difference in a result argument. This function then succeeds and reports the difference in
 * *result_out.
 */
int32_t rocm_graph_exec_update(ds_accel_plugin_device_t *device, void *exec, void *native,
                               uint32_t *result_out, struct ds_accel_error *error)
{
    const struct hip_api *hip = HIP_OF(device);
    void *node = NULL;
    int result = 0;
    hip_error_t code;
    int32_t status;

    if (hip->hipGraphExecUpdate == NULL) {
        return vendor_unsupported(error, "graph_exec_update", "no hipGraphExecUpdate (ROCm 4.5)");
    }
    code = cuda_shaped_code(&ROCM_OF(device)->shaped,
                            hip->hipGraphExecUpdate(exec, native, &node, &result));
    if (code == HIP_GRAPH_EXEC_UPDATE_FAILURE || (code == HIP_SUCCESS && result != 0)) {
        *result_out = DS_ACCEL_GRAPH_REBUILD_NEEDED;
        return DS_ACCEL_OK;
    }
    status = vendor_check(device->instance, device, code, error, "hipGraphExecUpdate(%p, %p)", exec,
                          native);
    if (status == DS_ACCEL_OK) {
        *result_out = DS_ACCEL_GRAPH_UPDATED;
    }
    return status;
}

int32_t rocm_graph_node_count(ds_accel_plugin_device_t *device, void *native, uint64_t *count_out,
                              struct ds_accel_error *error)
{
    size_t count = 0;
    int32_t status = ROCM_CHECK(device, HIP_OF(device)->hipGraphGetNodes(native, NULL, &count),
                                error, "hipGraphGetNodes(%p)", native);

    if (status == DS_ACCEL_OK) {
        *count_out = count;
    }
    return status;
}
