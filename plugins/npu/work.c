/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Streams, events, and captured work, which ACL can launch without an instantiation. */
#include "npu.h"

int32_t npu_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                          void **native_out, struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);

    (void)flags; /* ACL does not order a stream implicitly after another stream */
    if (acl->aclrtCreateStreamWithConfig == NULL) {
        return NPU_CHECK(device, acl->aclrtCreateStream(native_out), error,
                         "aclrtCreateStream(device %u)", device->index);
    }
    return NPU_CHECK(
        device,
        acl->aclrtCreateStreamWithConfig(native_out, (uint32_t)priority,
                                         ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC),
        error, "aclrtCreateStreamWithConfig(priority %d, device %u)", priority, device->index);
}

void npu_stream_destroy(ds_accel_plugin_device_t *device, void *stream)
{
    NPU_ACL(device)->aclrtDestroyStream(stream);
}

/*
 * Streams with lower numbers run first, in ACL as in the ABI. If ACL lacks priorities, the range is
 * 0 to 0.
 */
int32_t npu_stream_priority_range(ds_accel_plugin_device_t *device, int32_t *least_out,
                                  int32_t *greatest_out, struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    int32_t least = 0;
    int32_t greatest = 0;
    int32_t status = DS_ACCEL_OK;

    if (acl->aclrtDeviceGetStreamPriorityRange != NULL &&
        acl->aclrtCreateStreamWithConfig != NULL) {
        status = NPU_CHECK(device, acl->aclrtDeviceGetStreamPriorityRange(&least, &greatest), error,
                           "aclrtDeviceGetStreamPriorityRange(device %u)", device->index);
    }
    if (status == DS_ACCEL_OK) {
        *least_out = least;
        *greatest_out = greatest;
    }
    return status;
}

int32_t npu_stream_synchronize(ds_accel_plugin_device_t *device, void *stream,
                               struct ds_accel_error *error)
{
    return NPU_CHECK(device, NPU_ACL(device)->aclrtSynchronizeStream(stream), error,
                     "aclrtSynchronizeStream(device %u)", device->index);
}

int32_t npu_stream_query(ds_accel_plugin_device_t *device, void *stream,
                         struct ds_accel_error *error)
{
    int state = ACL_STREAM_NOT_READY;
    int32_t status = NPU_CHECK(device, NPU_ACL(device)->aclrtStreamQuery(stream, &state), error,
                               "aclrtStreamQuery(device %u)", device->index);

    if (status != DS_ACCEL_OK) {
        return status;
    }
    return state == ACL_STREAM_COMPLETE ? DS_ACCEL_OK : DS_ACCEL_NOT_READY;
}

int32_t npu_stream_wait_event(ds_accel_plugin_device_t *device, void *stream, void *event,
                              struct ds_accel_error *error)
{
    return NPU_CHECK(device, NPU_ACL(device)->aclrtStreamWaitEvent(stream, event), error,
                     "aclrtStreamWaitEvent(device %u)", device->index);
}

int32_t npu_stream_host_task(ds_accel_plugin_device_t *device, void *stream,
                             void (*call)(void *argument), void *argument,
                             struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);

    if (acl->aclrtLaunchHostFunc == NULL) {
        return NPU_MISSING(error, "stream_host_task", "aclrtLaunchHostFunc", "CANN 8");
    }
    return NPU_CHECK(device, acl->aclrtLaunchHostFunc(stream, call, argument), error,
                     "aclrtLaunchHostFunc(device %u)", device->index);
}

/* ---- events --------------------------------------------------------------------------------- */

/* Creates an event of the newer kind, which may be recorded again without a reset. */
int32_t npu_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                         struct ds_accel_error *error)
{
    uint32_t acl_flags = ACL_EVENT_SYNC;

    if ((flags & DS_ACCEL_EVENT_TIMING) != 0) {
        acl_flags |= ACL_EVENT_TIME_LINE;
    }
    if ((flags & DS_ACCEL_EVENT_INTERPROCESS) != 0) {
        /* ACL_EVENT_IPC excludes other flags: such an event has no time */
        acl_flags = ACL_EVENT_IPC;
    }
    return NPU_CHECK(device, NPU_ACL(device)->aclrtCreateEventExWithFlag(native_out, acl_flags),
                     error, "aclrtCreateEventExWithFlag(flags %u, device %u)", acl_flags,
                     device->index);
}

void npu_event_destroy(ds_accel_plugin_device_t *device, void *event)
{
    NPU_ACL(device)->aclrtDestroyEvent(event);
}

int32_t npu_event_record(ds_accel_plugin_device_t *device, void *event, void *stream,
                         struct ds_accel_error *error)
{
    return NPU_CHECK(device, NPU_ACL(device)->aclrtRecordEvent(event, stream), error,
                     "aclrtRecordEvent(device %u)", device->index);
}

int32_t npu_event_query(ds_accel_plugin_device_t *device, void *event, struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    int state = ACL_EVENT_RECORDED_NOT_READY;
    int mode = npu_relax(acl);
    acl_error code = acl->aclrtQueryEventStatus(event, &state);
    int32_t status;

    npu_restore(acl, mode);
    status = NPU_CHECK(device, code, error, "aclrtQueryEventStatus(device %u)", device->index);

    if (status != DS_ACCEL_OK) {
        return status;
    }
    return state == ACL_EVENT_RECORDED_COMPLETE ? DS_ACCEL_OK : DS_ACCEL_NOT_READY;
}

int32_t npu_event_synchronize(ds_accel_plugin_device_t *device, void *event,
                              struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    int mode = npu_relax(acl);
    acl_error code = acl->aclrtSynchronizeEvent(event);

    npu_restore(acl, mode);
    return NPU_CHECK(device, code, error, "aclrtSynchronizeEvent(device %u)", device->index);
}

int32_t npu_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                             double *elapsed_ms_out, struct ds_accel_error *error)
{
    float milliseconds = 0;
    int32_t status = NPU_CHECK(device,
                               NPU_ACL(device)->aclrtEventElapsedTime(&milliseconds, start, end),
                               error, "aclrtEventElapsedTime(device %u)", device->index);

    if (status == DS_ACCEL_OK) {
        *elapsed_ms_out = (double)milliseconds;
    }
    return status;
}

int32_t npu_ipc_event_export(ds_accel_plugin_device_t *device, void *event, void *handle,
                             struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    struct acl_ipc_event ipc;
    int32_t status;

    if (acl->aclrtIpcGetEventHandle == NULL) {
        return NPU_MISSING(error, "ipc_event_export", "aclrtIpcGetEventHandle", "CANN 8");
    }
    memset(&ipc, 0, sizeof(ipc));
    status = NPU_CHECK(device, acl->aclrtIpcGetEventHandle(event, &ipc), error,
                       "aclrtIpcGetEventHandle(device %u)", device->index);
    if (status == DS_ACCEL_OK) {
        memcpy(handle, &ipc, sizeof(ipc));
    }
    return status;
}

int32_t npu_ipc_event_open(ds_accel_plugin_device_t *device, const void *handle, void **native_out,
                           struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    struct acl_ipc_event ipc;

    if (acl->aclrtIpcOpenEventHandle == NULL) {
        return NPU_MISSING(error, "ipc_event_open", "aclrtIpcOpenEventHandle", "CANN 8");
    }
    memcpy(&ipc, handle, sizeof(ipc));
    return NPU_CHECK(device, acl->aclrtIpcOpenEventHandle(ipc, native_out), error,
                     "aclrtIpcOpenEventHandle(device %u)", device->index);
}

/* ---- captured work -------------------------------------------------------------------------- */

#define NO_CAPTURE(error, call) NPU_MISSING(error, call, "aclmdlRICaptureBegin", "CANN 8")

static uint32_t can_capture(const struct acl_api *acl)
{
    return acl->aclmdlRICaptureBegin != NULL && acl->aclmdlRICaptureEnd != NULL &&
           acl->aclmdlRIExecuteAsync != NULL && acl->aclmdlRIDestroy != NULL;
}

/* The modes have the same values as in the ABI: global 0, thread 1, relaxed 2. */
int32_t npu_capture_begin(ds_accel_plugin_device_t *device, void *stream, uint32_t mode,
                          struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);

    if (!can_capture(acl)) {
        return NO_CAPTURE(error, "graph_capture_begin");
    }
    return NPU_CHECK(device, acl->aclmdlRICaptureBegin(stream, (int)mode), error,
                     "aclmdlRICaptureBegin(mode %u, device %u)", mode, device->index);
}

int32_t npu_capture_end(ds_accel_plugin_device_t *device, void *stream, void **native_out,
                        struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    void *model = NULL;
    int32_t status;

    if (!can_capture(acl)) {
        return NO_CAPTURE(error, "graph_capture_end");
    }
    status = NPU_CHECK(device, acl->aclmdlRICaptureEnd(stream, &model), error,
                       "aclmdlRICaptureEnd(device %u)", device->index);
    if (status == DS_ACCEL_OK) {
        *native_out = model;
    }
    return status;
}

/* ACL's status has the same values as the ABI's: no 0, yes 1, broken 2. */
int32_t npu_capture_status(ds_accel_plugin_device_t *device, void *stream, uint32_t *status_out,
                           struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    int state = 0;
    void *model = NULL;
    int32_t status;

    if (acl->aclmdlRICaptureGetInfo == NULL) {
        *status_out = DS_ACCEL_CAPTURING_NO;
        return DS_ACCEL_OK;
    }
    status = NPU_CHECK(device, acl->aclmdlRICaptureGetInfo(stream, &state, &model), error,
                       "aclmdlRICaptureGetInfo(device %u)", device->index);
    if (status == DS_ACCEL_OK) {
        *status_out = (uint32_t)state;
    }
    return status;
}

void npu_graph_destroy(ds_accel_plugin_device_t *device, void *graph)
{
    NPU_ACL(device)->aclmdlRIDestroy(graph);
}

int32_t npu_graph_launch(ds_accel_plugin_device_t *device, void *exec, void *stream,
                         struct ds_accel_error *error)
{
    return NPU_CHECK(device, NPU_ACL(device)->aclmdlRIExecuteAsync(exec, stream), error,
                     "aclmdlRIExecuteAsync(device %u)", device->index);
}
