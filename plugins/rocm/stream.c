/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Streams, events, graphs. The default stream is HIP's NULL stream, which is one for each device
 * and means that of the thread's current device: these calls are made with the device entered.
 */
#include "rocm.h"

int32_t rocm_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                           void **native_out, struct ds_accel_error *error)
{
    unsigned int native_flags =
        (flags & DS_ACCEL_STREAM_NON_BLOCKING) != 0 ? HIP_STREAM_NON_BLOCKING : 0;

    return ROCM_CHECK(
        device, HIP_OF(device)->hipStreamCreateWithPriority(native_out, native_flags, priority),
        error, "hipStreamCreateWithPriority(flags %u, priority %d)", native_flags, priority);
}

void rocm_stream_destroy(ds_accel_plugin_device_t *device, void *native)
{
    (void)rocm_code(ROCM_OF(device), HIP_OF(device)->hipStreamDestroy(native));
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

int32_t rocm_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                                struct ds_accel_error *error)
{
    return ROCM_CHECK(device, HIP_OF(device)->hipStreamSynchronize(native), error,
                      "hipStreamSynchronize(%p)", native);
}

int32_t rocm_stream_query(ds_accel_plugin_device_t *device, void *native,
                          struct ds_accel_error *error)
{
    hip_error_t code = rocm_code(ROCM_OF(device), HIP_OF(device)->hipStreamQuery(native));

    return code == HIP_NOT_READY
               ? DS_ACCEL_NOT_READY
               : vendor_check(device->instance, device, code, error, "hipStreamQuery(%p)", native);
}

int32_t rocm_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                               struct ds_accel_error *error)
{
    return ROCM_CHECK(device, HIP_OF(device)->hipStreamWaitEvent(native, native_event, 0), error,
                      "hipStreamWaitEvent(%p, %p)", native, native_event);
}

/* For runtimes before hipLaunchHostFunc(). */
struct callback {
    void (*call)(void *argument);
    void *argument;
};

static void run_callback(hip_stream_t stream, hip_error_t code, void *user_data)
{
    struct callback *callback = user_data;

    (void)stream;
    (void)code;
    callback->call(callback->argument);
    free(callback);
}

static int32_t add_callback(ds_accel_plugin_device_t *device, void *native,
                            void (*call)(void *argument), void *argument,
                            struct ds_accel_error *error)
{
    struct callback *callback = malloc(sizeof(*callback));
    int32_t status;

    if (callback == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "stream_host_task: no memory for it");
    }
    callback->call = call;
    callback->argument = argument;
    status = ROCM_CHECK(device,
                        HIP_OF(device)->hipStreamAddCallback(native, run_callback, callback, 0),
                        error, "hipStreamAddCallback(%p)", native);
    if (status < 0) {
        free(callback);
    }
    return status;
}

int32_t rocm_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                              void (*call)(void *argument), void *argument,
                              struct ds_accel_error *error)
{
    const struct hip_api *hip = HIP_OF(device);
    int capturing = 0;
    int32_t status;

    if (hip->hipLaunchHostFunc != NULL) {
        return ROCM_CHECK(device, hip->hipLaunchHostFunc(native, call, argument), error,
                          "hipLaunchHostFunc(%p)", native);
    }
    status = native == NULL ? DS_ACCEL_OK
                            : ROCM_CHECK(device, hip->hipStreamIsCapturing(native, &capturing),
                                         error, "hipStreamIsCapturing(%p)", native);
    if (status < 0) {
        return status;
    }
    if (capturing != 0 || hip->hipStreamAddCallback == NULL) {
        return vendor_unsupported(error, "stream_host_task",
                                  "this ROCm has no hipLaunchHostFunc (5.3), which a capture "
                                  "needs");
    }
    return add_callback(device, native, call, argument, error);
}

/* -- events: to ask or to wait for one breaks no capture -- */

int32_t rocm_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                          struct ds_accel_error *error)
{
    unsigned int native_flags =
        ((flags & DS_ACCEL_EVENT_TIMING) == 0 ? HIP_EVENT_DISABLE_TIMING : 0u) |
        ((flags & DS_ACCEL_EVENT_BLOCKING_SYNC) != 0 ? HIP_EVENT_BLOCKING_SYNC : 0u) |
        ((flags & DS_ACCEL_EVENT_INTERPROCESS) != 0 ? HIP_EVENT_INTERPROCESS : 0u);

    return ROCM_CHECK(device, HIP_OF(device)->hipEventCreateWithFlags(native_out, native_flags),
                      error, "hipEventCreateWithFlags(flags %u)", native_flags);
}

void rocm_event_destroy(ds_accel_plugin_device_t *device, void *native)
{
    (void)rocm_code(ROCM_OF(device), HIP_OF(device)->hipEventDestroy(native));
}

int32_t rocm_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                          struct ds_accel_error *error)
{
    return ROCM_CHECK(device, HIP_OF(device)->hipEventRecord(native, native_stream), error,
                      "hipEventRecord(%p, %p)", native, native_stream);
}

int32_t rocm_event_query(ds_accel_plugin_device_t *device, void *native,
                         struct ds_accel_error *error)
{
    int mode = rocm_relax(HIP_OF(device));
    hip_error_t code = rocm_code(ROCM_OF(device), HIP_OF(device)->hipEventQuery(native));

    rocm_restore(ROCM_OF(device), mode);
    return code == HIP_NOT_READY
               ? DS_ACCEL_NOT_READY
               : vendor_check(device->instance, device, code, error, "hipEventQuery(%p)", native);
}

int32_t rocm_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                               struct ds_accel_error *error)
{
    int mode = rocm_relax(HIP_OF(device));
    hip_error_t code = rocm_code(ROCM_OF(device), HIP_OF(device)->hipEventSynchronize(native));

    rocm_restore(ROCM_OF(device), mode);
    return vendor_check(device->instance, device, code, error, "hipEventSynchronize(%p)", native);
}

int32_t rocm_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                              double *elapsed_ms_out, struct ds_accel_error *error)
{
    float milliseconds = 0;
    hip_error_t code =
        rocm_code(ROCM_OF(device), HIP_OF(device)->hipEventElapsedTime(&milliseconds, start, end));
    int32_t status;

    if (code == HIP_NOT_READY) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "hipEventElapsedTime: an event was not reached yet");
    }
    status = vendor_check(device->instance, device, code, error, "hipEventElapsedTime(%p, %p)",
                          start, end);
    if (status == DS_ACCEL_OK) {
        *elapsed_ms_out = milliseconds;
    }
    return status;
}

/* -- graphs: hipStreamCaptureMode and hipStreamCaptureStatus have the ABI's numbers -- */

int32_t rocm_capture_begin(ds_accel_plugin_device_t *device, void *native_stream, uint32_t mode,
                           struct ds_accel_error *error)
{
    return ROCM_CHECK(device, HIP_OF(device)->hipStreamBeginCapture(native_stream, (int)mode),
                      error, "hipStreamBeginCapture(%p, mode %u)", native_stream, mode);
}

int32_t rocm_capture_end(ds_accel_plugin_device_t *device, void *native_stream, void **native_out,
                         struct ds_accel_error *error)
{
    return ROCM_CHECK(device, HIP_OF(device)->hipStreamEndCapture(native_stream, native_out), error,
                      "hipStreamEndCapture(%p)", native_stream);
}

int32_t rocm_capture_status(ds_accel_plugin_device_t *device, void *native_stream,
                            uint32_t *status_out, struct ds_accel_error *error)
{
    int capturing = 0;
    int32_t status = ROCM_CHECK(device,
                                HIP_OF(device)->hipStreamIsCapturing(native_stream, &capturing),
                                error, "hipStreamIsCapturing(%p)", native_stream);

    if (status == DS_ACCEL_OK) {
        *status_out = (uint32_t)capturing;
    }
    return status;
}

void rocm_graph_destroy(ds_accel_plugin_device_t *device, void *native)
{
    (void)rocm_code(ROCM_OF(device), HIP_OF(device)->hipGraphDestroy(native));
}

int32_t rocm_graph_instantiate(ds_accel_plugin_device_t *device, void *native, void **exec_out,
                               struct ds_accel_error *error)
{
    return ROCM_CHECK(device, HIP_OF(device)->hipGraphInstantiate(exec_out, native, NULL, NULL, 0),
                      error, "hipGraphInstantiate(%p)", native);
}

void rocm_graph_exec_destroy(ds_accel_plugin_device_t *device, void *exec)
{
    (void)rocm_code(ROCM_OF(device), HIP_OF(device)->hipGraphExecDestroy(exec));
}

int32_t rocm_graph_launch(ds_accel_plugin_device_t *device, void *exec, void *native_stream,
                          struct ds_accel_error *error)
{
    return ROCM_CHECK(device, HIP_OF(device)->hipGraphLaunch(exec, native_stream), error,
                      "hipGraphLaunch(%p, %p)", exec, native_stream);
}

/* A graph of another shape is told by a code and by *result; neither is a failure of ours. */
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
    code = rocm_code(ROCM_OF(device), hip->hipGraphExecUpdate(exec, native, &node, &result));
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
