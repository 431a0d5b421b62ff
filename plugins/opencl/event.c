/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Events. A cl_event belongs to one command and completes once; an event of the plugin can be
 * recorded again. An event therefore holds the marker of its latest recording. A wait first takes a
 * reference to that marker, so that another thread may record the event again in the meantime.
 *
 * Event times come from the device: the end of the marker, in nanoseconds of the device's clock.
 * All queues that the plugin creates for streams have profiling enabled, which costs a runtime
 * little. A queue of the program may have profiling disabled; in that case its events have no time.
 */
#include "opencl.h"

int32_t opencl_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                            struct ds_accel_error *error)
{
    struct opencl_event *event = calloc(1, sizeof(*event));

    (void)flags;
    if (event == NULL || pthread_mutex_init(&event->lock, NULL) != 0) {
        free(event);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "no memory for an event");
    }
    event->runtime = opencl_of(device)->runtime;
    *native_out = event;
    return DS_ACCEL_OK;
}

void opencl_event_destroy(ds_accel_plugin_device_t *device, void *native)
{
    struct opencl_event *event = native;

    (void)device;
    opencl_event_set(event, NULL, NULL, 0);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

int32_t opencl_event_mark(ds_accel_plugin_device_t *device, struct opencl_event *event,
                          cl_event *mark_out, struct opencl_capture **capture_out, size_t *row_out,
                          struct ds_accel_error *error)
{
    int32_t code = CL_SUCCESS;
    cl_event mark;

    pthread_mutex_lock(&event->lock);
    mark = event->mark;
    if (mark != NULL) {
        code = event->runtime->cl.clRetainEvent(mark);
    }
    if (code == CL_SUCCESS && capture_out != NULL) {
        *capture_out = opencl_capture_get(event->capture);
        *row_out = event->row;
    }
    pthread_mutex_unlock(&event->lock);
    if (code != CL_SUCCESS) {
        return vendor_check(device->instance, device, code, error, "clRetainEvent(device %u)",
                            device->index);
    }
    *mark_out = mark;
    return DS_ACCEL_OK;
}

void opencl_event_set(struct opencl_event *event, cl_event mark, struct opencl_capture *capture,
                      size_t row)
{
    struct opencl_capture *old_capture;
    cl_event old_mark;

    pthread_mutex_lock(&event->lock);
    old_mark = event->mark;
    old_capture = event->capture;
    event->mark = mark;
    event->capture = opencl_capture_get(capture);
    event->row = row;
    pthread_mutex_unlock(&event->lock);
    if (old_mark != NULL) {
        event->runtime->cl.clReleaseEvent(old_mark);
    }
    opencl_capture_put(old_capture);
}

/*
 * Recording in a capture queues no work: it marks a position in the capture's order that other
 * streams can wait for.
 */
int32_t opencl_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                            struct ds_accel_error *error)
{
    struct opencl_stream *stream = native_stream;
    struct opencl_capture *capture;
    cl_event mark = NULL;
    size_t row = 0;
    int32_t status;

    (void)device;
    pthread_mutex_lock(&stream->lock);
    capture = opencl_capture_of(stream);
    status = capture != NULL ? opencl_capture_mark(stream, &row, error)
                             : opencl_mark(stream, &mark, error);
    if (status == DS_ACCEL_OK) {
        opencl_event_set(native, mark, capture, row);
    }
    pthread_mutex_unlock(&stream->lock);
    return status;
}

int32_t opencl_event_query(ds_accel_plugin_device_t *device, void *native,
                           struct ds_accel_error *error)
{
    cl_event mark = NULL;
    int32_t status = opencl_event_mark(device, native, &mark, NULL, NULL, error);

    if (status == DS_ACCEL_OK && mark != NULL) {
        status = opencl_status_of(device, mark, error);
        OPENCL_CALL(device, clReleaseEvent)(mark);
    }
    return status;
}

int32_t opencl_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                                 struct ds_accel_error *error)
{
    cl_event mark = NULL;
    int32_t status = opencl_event_mark(device, native, &mark, NULL, NULL, error);

    if (status == DS_ACCEL_OK && mark != NULL) {
        status = vendor_check(device->instance, device,
                              OPENCL_CALL(device, clWaitForEvents)(1, &mark), error,
                              "clWaitForEvents(device %u)", device->index);
        OPENCL_CALL(device, clReleaseEvent)(mark);
    }
    return status;
}

/*
 * Returns in *end_ns_out the time when the event was reached, on the device's clock. The frame
 * (plugins/common) has checked that the event is complete.
 */
static int32_t end_of(ds_accel_plugin_device_t *device, struct opencl_event *event,
                      uint64_t *end_ns_out, struct ds_accel_error *error)
{
    const struct cl_calls *cl = &opencl_of(device)->runtime->cl;
    cl_event mark = NULL;
    int32_t status = opencl_event_mark(device, event, &mark, NULL, NULL, error);
    int32_t code;

    if (status < 0 || mark == NULL) {
        return status < 0 ? status
                          : plugin_fail(error, DS_ACCEL_ERR_STATE,
                                        "event_elapsed_ms: an event has no mark");
    }
    code = cl->clGetEventProfilingInfo(mark, CL_PROFILING_COMMAND_END, sizeof(*end_ns_out),
                                       end_ns_out, NULL);
    cl->clReleaseEvent(mark);
    return vendor_check(device->instance, device, code, error,
                        "clGetEventProfilingInfo(CL_PROFILING_COMMAND_END)");
}

int32_t opencl_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                                double *elapsed_ms_out, struct ds_accel_error *error)
{
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    int32_t status = end_of(device, start, &start_ns, error);

    if (status == DS_ACCEL_OK) {
        status = end_of(device, end, &end_ns, error);
    }
    if (status == DS_ACCEL_OK) {
        *elapsed_ms_out = (double)(int64_t)(end_ns - start_ns) / 1e6;
    }
    return status;
}
