/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A stream is an in-order command queue. Each call flushes the queue, since a runtime may otherwise
 * hold back the work until a thread waits for it.
 *
 * OpenCL has no query for an idle queue: the plugin queues a marker after all work and queries the
 * marker's status. It keeps the marker until other work is queued, so that polling does not fill
 * the queue with markers; a queue that was finished needs no marker. A program that uses the queue
 * as well may have queued work that the plugin does not track, and an old marker does not cover
 * that work: the plugin waits a short time for a new marker before it reports the queue as busy.
 */
#include "opencl.h"

#include <sched.h>
#include <time.h>

/* Time that the plugin waits for a new mark in a queue that the program uses too. It is longer if a
   wait has covered all that the plugin queued, because then the queue is probably idle, and only a
   busy machine delays the mark. */
#define FRESH_NS UINT64_C(1000000)
#define FRESH_IDLE_NS UINT64_C(20000000)

/* ---- numbers of queued work ----------------------------------------------------------------- */

/*
 * Numbers of queued work. They are unique in the process, so that the number of a destroyed
 * stream's work is not equal to that of any other work.
 */
static atomic_uint_fast64_t next_place = 1;

void opencl_touch(struct opencl_stream *stream)
{
    atomic_store(&stream->place, atomic_fetch_add(&next_place, 1));
}

int32_t opencl_queued(struct opencl_stream *stream, int32_t code, const char *call,
                      struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device = stream->device;
    const struct cl_calls *cl = &opencl_of(device)->runtime->cl;
    int32_t status =
        vendor_check(device->instance, device, code, error, "%s(device %u)", call, device->index);

    opencl_touch(stream);
    if (status < 0) {
        return status;
    }
    /*
     * The command is queued and uses its memory, even if the flush fails. The flush is therefore
     * repeated, and a failure is reported only when the queue has no work left.
     */
    code = cl->clFlush(stream->queue);
    if (code == CL_SUCCESS || cl->clFlush(stream->queue) == CL_SUCCESS) {
        return DS_ACCEL_OK;
    }
    cl->clFinish(stream->queue);
    return vendor_check(device->instance, device, code, error, "clFlush(device %u) after %s",
                        device->index, call);
}

int32_t opencl_mark(struct opencl_stream *stream, cl_event *mark_out, struct ds_accel_error *error)
{
    const struct cl_calls *cl = &opencl_of(stream->device)->runtime->cl;
    cl_event mark = NULL;
    int32_t code = cl->clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &mark);
    int32_t status = opencl_queued(stream, code, "clEnqueueMarkerWithWaitList", error);

    if (status < 0) {
        if (code == CL_SUCCESS && mark != NULL) {
            cl->clReleaseEvent(mark);
        }
        return status;
    }
    *mark_out = mark;
    return DS_ACCEL_OK;
}

int32_t opencl_status_of(ds_accel_plugin_device_t *device, cl_event mark,
                         struct ds_accel_error *error)
{
    int32_t execution = CL_COMPLETE;
    int32_t code = OPENCL_CALL(device, clGetEventInfo)(mark, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                       sizeof(execution), &execution, NULL);

    if (code == CL_SUCCESS && execution > CL_COMPLETE) {
        return DS_ACCEL_NOT_READY;
    }
    if (code == CL_SUCCESS) {
        return vendor_check(device->instance, device, execution, error,
                            "the work before a mark of device %u", device->index);
    }
    return vendor_check(device->instance, device, code, error,
                        "clGetEventInfo(CL_EVENT_COMMAND_EXECUTION_STATUS)");
}

/* ---- waits for events of another context ---------------------------------------------------- */

/*
 * An event is valid only in its own context. A stream of another context waits for a user event of
 * its own context, which cross(), called by the runtime when the event is reached, completes. The
 * user event's status is success even if the work before the event failed (the event's own stream
 * reports that failure): PoCL 3.1 terminates the process when a user event that a queue waits for
 * is set to an error.
 */
struct bridge {
    int32_t (*set_status)(cl_event event,
                          /*
                           * Copied, because the instance may be shut down before the callback runs
                           */
                          int32_t status);
    int32_t (*release)(cl_event event);
    cl_event far_side;
};

static void cross(cl_event mark, int32_t status, void *given)
{
    struct bridge *bridge = given;

    (void)mark;
    (void)status;
    if (bridge->set_status(bridge->far_side, CL_COMPLETE) != CL_SUCCESS) {
        bridge->set_status(bridge->far_side, CL_COMPLETE);
    }
    bridge->release(bridge->far_side);
    free(bridge);
}

static int32_t build_bridge(struct opencl_stream *stream, cl_event mark, cl_event *far_side_out,
                            struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device = stream->device;
    const struct cl_calls *cl = &opencl_of(device)->runtime->cl;
    struct bridge *bridge = malloc(sizeof(*bridge));
    const char *failed = "clCreateUserEvent";
    int32_t code = bridge == NULL ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
    cl_event far_side = NULL;

    if (bridge != NULL) {
        far_side = cl->clCreateUserEvent(opencl_of(device)->context, &code);
    }
    if (code == CL_SUCCESS) {
        failed = "clRetainEvent";
        code = cl->clRetainEvent(far_side);
        *bridge = (struct bridge){cl->clSetUserEventStatus, cl->clReleaseEvent, far_side};
        if (code == CL_SUCCESS) {
            failed = "clSetEventCallback";
            code = cl->clSetEventCallback(mark, CL_COMPLETE, cross, bridge);
            if (code != CL_SUCCESS) {
                cl->clReleaseEvent(far_side);
            }
        }
        if (code != CL_SUCCESS) {
            cl->clReleaseEvent(far_side);
        }
    }
    if (code != CL_SUCCESS) {
        free(bridge);
        return vendor_check(device->instance, device, code, error,
                            "%s(for an event of another context)", failed);
    }
    *far_side_out = far_side;
    return DS_ACCEL_OK;
}

int32_t opencl_wait_for(struct opencl_stream *stream, cl_event mark, struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device = stream->device;
    const struct cl_calls *cl = &opencl_of(device)->runtime->cl;
    cl_context context = NULL;
    cl_event near_side = mark;
    int32_t code = cl->clGetEventInfo(mark, CL_EVENT_CONTEXT, sizeof(context), &context, NULL);
    int32_t status =
        vendor_check(device->instance, device, code, error, "clGetEventInfo(CL_EVENT_CONTEXT)");

    if (status == DS_ACCEL_OK && context != opencl_of(device)->context) {
        status = build_bridge(stream, mark, &near_side, error);
    }
    if (status < 0) {
        return status;
    }
    code = cl->clEnqueueBarrierWithWaitList(stream->queue, 1, &near_side, NULL);
    if (near_side != mark) {
        cl->clReleaseEvent(near_side);
    }
    return opencl_queued(stream, code, "clEnqueueBarrierWithWaitList", error);
}

/* ---- creation and destruction --------------------------------------------------------------- */

static struct opencl_stream *make(ds_accel_plugin_device_t *device, cl_queue queue)
{
    struct opencl_stream *stream = calloc(1, sizeof(*stream));

    if (stream == NULL || pthread_mutex_init(&stream->lock, NULL) != 0) {
        free(stream);
        return NULL;
    }
    stream->device = device;
    stream->queue = queue;
    pthread_mutex_lock(&opencl_of(device)->lock);
    stream->next = opencl_of(device)->streams;
    opencl_of(device)->streams = stream;
    pthread_mutex_unlock(&opencl_of(device)->lock);
    return stream;
}

static void unmake(struct opencl_stream *stream)
{
    struct opencl_device *state = opencl_of(stream->device);
    struct opencl_stream **place = &state->streams;

    pthread_mutex_lock(&state->lock);
    while (*place != stream) {
        place = &(*place)->next;
    }
    *place = stream->next;
    pthread_mutex_unlock(&state->lock);
    if (stream->mark != NULL) {
        state->runtime->cl.clReleaseEvent(stream->mark);
    }
    state->runtime->cl.clReleaseCommandQueue(stream->queue);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

/* Priorities -1, 0 and 1 mean high, medium and low. */
static cl_queue make_queue(const struct opencl_device *state, int32_t priority, int32_t *code)
{
    const struct cl_calls *cl = &state->runtime->cl;
    uint64_t properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING, 0, 0, 0};

    if (state->version < 200 || cl->clCreateCommandQueueWithProperties == NULL) {
        return cl->clCreateCommandQueue(state->context, state->found->device, CL_QUEUE_PROFILING,
                                        code);
    }
    if (priority != 0) {
        properties[2] = CL_QUEUE_PRIORITY_KHR;
        properties[3] = priority < 0 ? CL_QUEUE_PRIORITY_HIGH_KHR : CL_QUEUE_PRIORITY_LOW_KHR;
    }
    return cl->clCreateCommandQueueWithProperties(state->context, state->found->device, properties,
                                                  code);
}

int32_t opencl_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                             void **native_out, struct ds_accel_error *error)
{
    struct opencl_device *state = opencl_of(device);
    int32_t code = CL_SUCCESS;
    cl_queue queue = make_queue(state, priority, &code);
    struct opencl_stream *stream;

    (void)flags; /* no queue waits implicitly for another queue */
    if (queue == NULL || code != CL_SUCCESS) {
        return vendor_check(
            device->instance, device, code != CL_SUCCESS ? code : CL_OUT_OF_RESOURCES, error,
            "clCreateCommandQueue(device %u, CL_QUEUE_PROFILING_ENABLE)", device->index);
    }
    stream = make(device, queue);
    if (stream == NULL) {
        state->runtime->cl.clReleaseCommandQueue(queue);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "no memory for a stream");
    }
    *native_out = stream;
    return DS_ACCEL_OK;
}

/*
 * Finishes the queue's work before it stops the stream's thread, because a queued task needs the
 * thread.
 */
void opencl_stream_destroy(ds_accel_plugin_device_t *device, void *native)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct opencl_stream *stream = native;
    int32_t status;

    opencl_capture_leave(stream);
    status = vendor_check(device->instance, device, OPENCL_CALL(device, clFinish)(stream->queue),
                          &error, "clFinish(device %u)", device->index);
    if (status < 0) {
        vendor_log(device->instance->host, DS_ACCEL_LOG_WARN, "stream_destroy: %s", error.message);
    }
    opencl_worker_stop(stream->worker, status == DS_ACCEL_OK);
    unmake(stream);
}

int32_t opencl_stream_priority_range(ds_accel_plugin_device_t *device, int32_t *least_out,
                                     int32_t *greatest_out, struct ds_accel_error *error)
{
    (void)error;
    *least_out = opencl_of(device)->has_priorities ? 1 : 0;
    *greatest_out = opencl_of(device)->has_priorities ? -1 : 0;
    return DS_ACCEL_OK;
}

/* ---- synchronization and queries ------------------------------------------------------------ */

int32_t opencl_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                                  struct ds_accel_error *error)
{
    struct opencl_stream *stream = native;
    uint64_t place;
    int32_t status;

    pthread_mutex_lock(&stream->lock);
    status = opencl_capture_refuse(stream, "stream_synchronize", error);
    place = atomic_load(&stream->place);
    pthread_mutex_unlock(&stream->lock);
    if (status == DS_ACCEL_OK) {
        status = vendor_check(device->instance, device,
                              OPENCL_CALL(device, clFinish)(stream->queue), error,
                              "clFinish(device %u)", device->index);
    }
    if (status < 0) {
        return status;
    }
    atomic_store(&stream->finished, place);
    return opencl_worker_failure(stream, error);
}

/*
 * Queues a new mark, which the stream keeps, and returns the mark's status. In a queue that the
 * program uses too, waits a short time for the mark. Caller holds stream->lock.
 */
static int32_t ask_anew(struct opencl_stream *stream, struct ds_accel_error *error)
{
    int was_idle = atomic_load(&stream->finished) == atomic_load(&stream->place);
    uint64_t end_ns = atomic_load(&stream->is_shared)
                          ? plugin_now_ns() + (was_idle ? FRESH_IDLE_NS : FRESH_NS)
                          : 0;
    cl_event mark = NULL;
    int32_t status = opencl_mark(stream, &mark, error);

    if (status < 0) {
        return status;
    }
    if (stream->mark != NULL) {
        OPENCL_CALL(stream->device, clReleaseEvent)(stream->mark);
    }
    stream->mark = mark;
    stream->marked = atomic_load(&stream->place);
    while ((status = opencl_status_of(stream->device, mark, error)) == DS_ACCEL_NOT_READY &&
           end_ns != 0 && plugin_now_ns() < end_ns) {
        sched_yield();
    }
    return status;
}

static int32_t ask(struct opencl_stream *stream, struct ds_accel_error *error)
{
    int32_t status = opencl_capture_refuse(stream, "stream_query", error);
    uint64_t place = atomic_load(&stream->place);
    int is_ours = !atomic_load(&stream->is_shared);

    if (status < 0 || (is_ours && atomic_load(&stream->finished) == place)) {
        return status;
    }
    if (stream->mark != NULL) {
        status = opencl_status_of(stream->device, stream->mark, error);
        if (status != DS_ACCEL_OK || (is_ours && stream->marked == place)) {
            return status;
        }
    }
    return ask_anew(stream, error);
}

int32_t opencl_stream_query(ds_accel_plugin_device_t *device, void *native,
                            struct ds_accel_error *error)
{
    struct opencl_stream *stream = native;
    int32_t status;

    (void)device;
    pthread_mutex_lock(&stream->lock);
    status = ask(stream, error);
    pthread_mutex_unlock(&stream->lock);
    return status != DS_ACCEL_OK ? status : opencl_worker_failure(stream, error);
}

int32_t opencl_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                                 struct ds_accel_error *error)
{
    struct opencl_stream *stream = native;
    struct opencl_event *event = native_event;
    struct opencl_capture *capture = NULL;
    cl_event mark = NULL;
    size_t row = 0;
    int32_t status = opencl_event_mark(device, event, &mark, &capture, &row, error);

    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&stream->lock);
    if (capture != NULL) {
        status = opencl_capture_join(stream, capture, row, error);
    } else if (mark != NULL) {
        status =
            opencl_capture_refuse(stream, "stream_wait_event for an event from outside", error);
        if (status == DS_ACCEL_OK) {
            status = opencl_wait_for(stream, mark, error);
        }
    }
    pthread_mutex_unlock(&stream->lock);
    if (mark != NULL) {
        OPENCL_CALL(device, clReleaseEvent)(mark);
    }
    opencl_capture_put(capture);
    return status;
}

/* ---- queues and events of the program ------------------------------------------------------- */

uint64_t opencl_native_handle(ds_accel_plugin_device_t *device, uint32_t kind, void *native)
{
    (void)device;
    if (kind == DS_ACCEL_NATIVE_STREAM) {
        struct opencl_stream *stream = native;

        atomic_store(&stream->is_shared, 1);
        return (uint64_t)(uintptr_t)stream->queue;
    }
    if (kind == DS_ACCEL_NATIVE_EVENT) {
        struct opencl_event *event = native;
        cl_event mark;

        pthread_mutex_lock(&event->lock);
        mark = event->mark; /* borrowed; valid until the event is recorded again */
        pthread_mutex_unlock(&event->lock);
        return (uint64_t)(uintptr_t)mark;
    }
    return 0; /* a graph has no native handle: it is a list of this plugin */
}

static int32_t check_queue(ds_accel_plugin_device_t *device, cl_queue queue,
                           struct ds_accel_error *error)
{
    const struct opencl_device *state = opencl_of(device);
    const struct cl_calls *cl = &state->runtime->cl;
    cl_context context = NULL;
    cl_device id = NULL;
    uint64_t properties = 0;
    int32_t code =
        cl->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, NULL);

    if (code == CL_SUCCESS) {
        code = cl->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(id), &id, NULL);
    }
    if (code == CL_SUCCESS) {
        code = cl->clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties),
                                         &properties, NULL);
    }
    if (code != CL_SUCCESS) {
        return vendor_check(device->instance, device, code, error, "clGetCommandQueueInfo(%p)",
                            (const void *)queue);
    }
    if (context != state->context || id != state->found->device) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "the queue %p is not one of device %u and its context",
                           (const void *)queue, device->index);
    }
    return (properties & CL_QUEUE_OUT_OF_ORDER) == 0
               ? DS_ACCEL_OK
               : plugin_fail(error, DS_ACCEL_ERR_INVALID,
                             "the queue %p is out of order: no stream is", (const void *)queue);
}

static int32_t wrap_queue(ds_accel_plugin_device_t *device, cl_queue queue, void **native_out,
                          struct ds_accel_error *error)
{
    const struct cl_calls *cl = &opencl_of(device)->runtime->cl;
    int32_t status = check_queue(device, queue, error);
    struct opencl_stream *stream;

    if (status == DS_ACCEL_OK) {
        status = vendor_check(device->instance, device, cl->clRetainCommandQueue(queue), error,
                              "clRetainCommandQueue(%p)", (const void *)queue);
    }
    if (status < 0) {
        return status;
    }
    stream = make(device, queue);
    if (stream == NULL) {
        cl->clReleaseCommandQueue(queue);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "no memory for a stream");
    }
    atomic_store(&stream->is_shared, 1);
    *native_out = stream;
    return DS_ACCEL_OK;
}

/* Wraps a program's event of this context or of another context on the same platform. */
static int32_t wrap_event(ds_accel_plugin_device_t *device, cl_event mark, void **native_out,
                          struct ds_accel_error *error)
{
    void *event = NULL;
    int32_t status = vendor_check(device->instance, device,
                                  OPENCL_CALL(device, clRetainEvent)(mark), error,
                                  "clRetainEvent(%p)", (const void *)mark);

    if (status == DS_ACCEL_OK) {
        status = opencl_event_create(device, 0, &event, error);
        if (status < 0) {
            OPENCL_CALL(device, clReleaseEvent)(mark);
            return status;
        }
        opencl_event_set(event, mark, NULL, 0);
        *native_out = event;
    }
    return status;
}

int32_t opencl_native_wrap(ds_accel_plugin_device_t *device, uint32_t kind, uint64_t handle,
                           void **native_out, struct ds_accel_error *error)
{
    if (handle == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "native_wrap: the handle is NULL");
    }
    return kind == DS_ACCEL_NATIVE_STREAM
               ? wrap_queue(device, (cl_queue)(uintptr_t)handle, native_out, error)
               : wrap_event(device, (cl_event)(uintptr_t)handle, native_out, error);
}

void opencl_native_unwrap(ds_accel_plugin_device_t *device, uint32_t kind, void *native)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

    if (kind == DS_ACCEL_NATIVE_STREAM) {
        opencl_stream_destroy(device, native);
    } else if (kind == DS_ACCEL_NATIVE_EVENT) {
        opencl_event_destroy(device, native);
    } else {
        opencl_free(device, native, &ignored);
    }
}
