/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Streams, events and graphs, which CNRT calls queues, notifiers and task topos. */
#include "mlu.h"

/* Returns true for "not ready", which is 1, and for "busy", which libraries before 6.14 return. */
static uint32_t is_not_ready(cnrt_code code)
{
    return code == CNRT_NOT_READY || code == CNRT_BUSY;
}

int32_t mlu_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                          void **native_out, struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);

    (void)flags; /* the flags of the default queue are not documented */
    if (cnrt->cnrtQueueCreateWithPriority == NULL ||
        cnrt->cnrtDeviceGetQueuePriorityRange == NULL) {
        return MLU_CHECK(device, cnrt->cnrtQueueCreate(native_out), error,
                         "cnrtQueueCreate(device %u)", device->index);
    }
    return MLU_CHECK(device, cnrt->cnrtQueueCreateWithPriority(native_out, 0, priority), error,
                     "cnrtQueueCreateWithPriority(priority %d, device %u)", priority,
                     device->index);
}

/* cnrtQueueDestroy() returns immediately; queued work continues. */
void mlu_stream_destroy(ds_accel_plugin_device_t *device, void *queue)
{
    MLU_CNRT(device)->cnrtQueueDestroy(queue);
}

int32_t mlu_stream_priority_range(ds_accel_plugin_device_t *device, int32_t *least_out,
                                  int32_t *greatest_out, struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);
    int least = 0;
    int greatest = 0;
    int32_t status = DS_ACCEL_OK;

    if (cnrt->cnrtQueueCreateWithPriority != NULL &&
        cnrt->cnrtDeviceGetQueuePriorityRange != NULL) {
        status = MLU_CHECK(device, cnrt->cnrtDeviceGetQueuePriorityRange(&least, &greatest), error,
                           "cnrtDeviceGetQueuePriorityRange(device %u)", device->index);
    }
    if (status == DS_ACCEL_OK) {
        *least_out = least;
        *greatest_out = greatest;
    }
    return status;
}

int32_t mlu_stream_synchronize(ds_accel_plugin_device_t *device, void *queue,
                               struct ds_accel_error *error)
{
    return MLU_CHECK(device, MLU_CNRT(device)->cnrtQueueSync(queue), error,
                     "cnrtQueueSync(device %u)", device->index);
}

int32_t mlu_stream_query(ds_accel_plugin_device_t *device, void *queue,
                         struct ds_accel_error *error)
{
    cnrt_code code = MLU_CNRT(device)->cnrtQueueQuery(queue);

    if (is_not_ready(code)) {
        return DS_ACCEL_NOT_READY;
    }
    return MLU_CHECK(device, code, error, "cnrtQueueQuery(device %u)", device->index);
}

/* In CNRT's call, the notifier argument precedes the queue that waits for it. */
int32_t mlu_stream_wait_event(ds_accel_plugin_device_t *device, void *queue, void *notifier,
                              struct ds_accel_error *error)
{
    return MLU_CHECK(device, MLU_CNRT(device)->cnrtQueueWaitNotifier(notifier, queue, 0), error,
                     "cnrtQueueWaitNotifier(device %u)", device->index);
}

int32_t mlu_stream_host_task(ds_accel_plugin_device_t *device, void *queue,
                             void (*call)(void *argument), void *argument,
                             struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);

    if (cnrt->cnrtInvokeHostFunc == NULL) {
        return MLU_MISSING(error, "stream_host_task", "cnrtInvokeHostFunc");
    }
    return MLU_CHECK(device, cnrt->cnrtInvokeHostFunc(queue, call, argument), error,
                     "cnrtInvokeHostFunc(device %u)", device->index);
}

/* ---- notifiers ------------------------------------------------------------------------------ */

int32_t mlu_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                         struct ds_accel_error *error)
{
    unsigned int cnrt_flags = (flags & DS_ACCEL_EVENT_TIMING) != 0
                                  ? CNRT_NOTIFIER_DEFAULT
                                  : CNRT_NOTIFIER_DISABLE_TIMING_ALL;

    if ((flags & DS_ACCEL_EVENT_INTERPROCESS) != 0) { /* interprocess notifiers cannot be timed */
        cnrt_flags = CNRT_NOTIFIER_INTERPROCESS | CNRT_NOTIFIER_DISABLE_TIMING_ALL;
    }
    return MLU_CHECK(device, MLU_CNRT(device)->cnrtNotifierCreateWithFlags(native_out, cnrt_flags),
                     error, "cnrtNotifierCreateWithFlags(flags 0x%x, device %u)", cnrt_flags,
                     device->index);
}

void mlu_event_destroy(ds_accel_plugin_device_t *device, void *notifier)
{
    MLU_CNRT(device)->cnrtNotifierDestroy(notifier);
}

int32_t mlu_event_record(ds_accel_plugin_device_t *device, void *notifier, void *queue,
                         struct ds_accel_error *error)
{
    return MLU_CHECK(device, MLU_CNRT(device)->cnrtPlaceNotifier(notifier, queue), error,
                     "cnrtPlaceNotifier(device %u)", device->index);
}

int32_t mlu_event_query(ds_accel_plugin_device_t *device, void *notifier,
                        struct ds_accel_error *error)
{
    cnrt_code code = MLU_CNRT(device)->cnrtQueryNotifier(notifier);

    if (is_not_ready(code)) {
        return DS_ACCEL_NOT_READY;
    }
    return MLU_CHECK(device, code, error, "cnrtQueryNotifier(device %u)", device->index);
}

int32_t mlu_event_synchronize(ds_accel_plugin_device_t *device, void *notifier,
                              struct ds_accel_error *error)
{
    return MLU_CHECK(device, MLU_CNRT(device)->cnrtWaitNotifier(notifier), error,
                     "cnrtWaitNotifier(device %u)", device->index);
}

/* In CNRT's call, the time is the last argument. */
int32_t mlu_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                             double *elapsed_ms_out, struct ds_accel_error *error)
{
    float milliseconds = 0;
    int32_t status = MLU_CHECK(device,
                               MLU_CNRT(device)->cnrtNotifierElapsedTime(start, end, &milliseconds),
                               error, "cnrtNotifierElapsedTime(device %u)", device->index);

    if (status == DS_ACCEL_OK) {
        *elapsed_ms_out = (double)milliseconds;
    }
    return status;
}

int32_t mlu_ipc_event_export(ds_accel_plugin_device_t *device, void *notifier, void *handle,
                             struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);
    struct cnrt_ipc_notifier ipc;
    int32_t status;

    if (cnrt->cnrtIpcGetNotifierHandle == NULL) {
        return MLU_MISSING(error, "ipc_event_export", "cnrtIpcGetNotifierHandle");
    }
    memset(&ipc, 0, sizeof(ipc));
    status = MLU_CHECK(device, cnrt->cnrtIpcGetNotifierHandle(&ipc, notifier), error,
                       "cnrtIpcGetNotifierHandle(device %u)", device->index);
    if (status == DS_ACCEL_OK) {
        memcpy(handle, &ipc, sizeof(ipc));
    }
    return status;
}

int32_t mlu_ipc_event_open(ds_accel_plugin_device_t *device, const void *handle, void **native_out,
                           struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);
    struct cnrt_ipc_notifier ipc;

    if (cnrt->cnrtIpcOpenNotifierHandle == NULL) {
        return MLU_MISSING(error, "ipc_event_open", "cnrtIpcOpenNotifierHandle");
    }
    memcpy(&ipc, handle, sizeof(ipc));
    return MLU_CHECK(device, cnrt->cnrtIpcOpenNotifierHandle(native_out, ipc), error,
                     "cnrtIpcOpenNotifierHandle(device %u)", device->index);
}

/* ---- task topos ----------------------------------------------------------------------------- */

static uint32_t can_capture(const struct cnrt_api *cnrt)
{
    return cnrt->cnrtQueueBeginCapture != NULL && cnrt->cnrtQueueEndCapture != NULL &&
           cnrt->cnrtTaskTopoInstantiate != NULL && cnrt->cnrtTaskTopoEntityInvoke != NULL &&
           cnrt->cnrtTaskTopoEntityDestroy != NULL && cnrt->cnrtTaskTopoDestroy != NULL;
}

/*
 * Ignores the requested mode: captures always use CNRT's relaxed mode. CNRT has no thread-local
 * mode, and in its global mode allocations fail while a queue captures, which the ABI forbids
 * (DSA-P106). As with the other modes, synchronizing the captured queue breaks the capture.
 */
int32_t mlu_capture_begin(ds_accel_plugin_device_t *device, void *queue, uint32_t mode,
                          struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);

    (void)mode;
    if (!can_capture(cnrt)) {
        return MLU_MISSING(error, "graph_capture_begin", "cnrtQueueBeginCapture");
    }
    return MLU_CHECK(device, cnrt->cnrtQueueBeginCapture(queue, CNRT_CAPTURE_RELAXED), error,
                     "cnrtQueueBeginCapture(device %u)", device->index);
}

int32_t mlu_capture_end(ds_accel_plugin_device_t *device, void *queue, void **native_out,
                        struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);
    void *topo = NULL;
    int32_t status;

    if (!can_capture(cnrt)) {
        return MLU_MISSING(error, "graph_capture_end", "cnrtQueueEndCapture");
    }
    status = MLU_CHECK(device, cnrt->cnrtQueueEndCapture(queue, &topo), error,
                       "cnrtQueueEndCapture(device %u)", device->index);
    if (status == DS_ACCEL_OK) {
        *native_out = topo;
    }
    return status;
}

/* CNRT's capture status has the ABI's values: 0 not capturing, 1 capturing, 2 broken capture. */
int32_t mlu_capture_status(ds_accel_plugin_device_t *device, void *queue, uint32_t *status_out,
                           struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);
    int state = 0;
    int32_t status;

    if (cnrt->cnrtQueueIsCapturing == NULL) {
        *status_out = DS_ACCEL_CAPTURING_NO;
        return DS_ACCEL_OK;
    }
    status = MLU_CHECK(device, cnrt->cnrtQueueIsCapturing(queue, &state), error,
                       "cnrtQueueIsCapturing(device %u)", device->index);
    if (status == DS_ACCEL_OK) {
        *status_out = (uint32_t)state;
    }
    return status;
}

void mlu_graph_destroy(ds_accel_plugin_device_t *device, void *topo)
{
    MLU_CNRT(device)->cnrtTaskTopoDestroy(topo);
}

int32_t mlu_graph_instantiate(ds_accel_plugin_device_t *device, void *topo, void **exec_out,
                              struct ds_accel_error *error)
{
    return MLU_CHECK(device,
                     MLU_CNRT(device)->cnrtTaskTopoInstantiate(exec_out, topo, NULL, NULL, 0),
                     error, "cnrtTaskTopoInstantiate(device %u)", device->index);
}

void mlu_graph_exec_destroy(ds_accel_plugin_device_t *device, void *entity)
{
    MLU_CNRT(device)->cnrtTaskTopoEntityDestroy(entity);
}

int32_t mlu_graph_launch(ds_accel_plugin_device_t *device, void *entity, void *queue,
                         struct ds_accel_error *error)
{
    return MLU_CHECK(device, MLU_CNRT(device)->cnrtTaskTopoEntityInvoke(entity, queue), error,
                     "cnrtTaskTopoEntityInvoke(device %u)", device->index);
}

int32_t mlu_graph_node_count(ds_accel_plugin_device_t *device, void *topo, uint64_t *count_out,
                             struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);
    size_t count = 0;
    int32_t status;

    if (cnrt->cnrtTaskTopoGetNodes == NULL) {
        return MLU_MISSING(error, "graph_node_count", "cnrtTaskTopoGetNodes");
    }
    status = MLU_CHECK(device, cnrt->cnrtTaskTopoGetNodes(topo, NULL, &count), error,
                       "cnrtTaskTopoGetNodes(device %u)", device->index);
    if (status == DS_ACCEL_OK) {
        *count_out = count;
    }
    return status;
}
