/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Streams: handles around queues.
 *
 * A queue stores only the time at which it will be idle. Waiting for a queue sleeps until that
 * time, and making a queue wait for an event moves the time to at least that of the event. The
 * default stream is a queue like the others: it does not wait for them, and
 * DS_ACCEL_STREAM_NON_BLOCKING is accepted without effect.
 */
#include "mock.h"

void mock_queue_advance(ds_accel_plugin_stream_t *stream, uint64_t start_ns, uint64_t cost_ns)
{
    struct mock_queue *queue = stream->queue;

    queue->done_ns = mock_max_u64(start_ns, queue->done_ns) + cost_ns;
    stream->device->done_ns = mock_max_u64(stream->device->done_ns, queue->done_ns);
}

int32_t mock_queue_not_capturing(ds_accel_plugin_stream_t *stream, const char *slot,
                                 struct ds_accel_error *error)
{
    uint32_t capturing;

    pthread_mutex_lock(&stream->device->instance->lock);
    capturing = mock_capture_state(stream->queue);
    if (capturing == DS_ACCEL_CAPTURING_YES) {
        mock_capture_break(stream->queue);
    }
    pthread_mutex_unlock(&stream->device->instance->lock);
    if (capturing != DS_ACCEL_CAPTURING_NO) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "%s: not while the stream captures; the capture is broken", slot);
    }
    return DS_ACCEL_OK;
}

/*
 * Makes the stream's queue wait for the mark. Returns NULL, or why it cannot wait. Caller holds
 * instance->lock.
 */
static const char *wait_mark(ds_accel_plugin_stream_t *stream, struct mock_mark *mark)
{
    struct mock_queue *queue = stream->queue;

    mock_mark_refresh(mark);
    if (mark->capture_id != 0 || mock_capture_state(queue) != DS_ACCEL_CAPTURING_NO) {
        return mock_capture_wait(queue, mark);
    }
    if (mark->recorded) {
        queue->done_ns = mock_max_u64(queue->done_ns, mark->done_ns);
        stream->device->done_ns = mock_max_u64(stream->device->done_ns, queue->done_ns);
    }
    return NULL;
}

static int32_t wait_event(ds_accel_plugin_stream_t *stream, const ds_accel_plugin_event_t *event,
                          const char *slot, struct ds_accel_error *error)
{
    const char *problem;

    if (event == NULL) {
        return mock_null(error, slot, "an event");
    }
    if (event->device->instance != stream->device->instance) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: the event belongs to another instance",
                           slot);
    }
    pthread_mutex_lock(&stream->device->instance->lock);
    problem = wait_mark(stream, event->mark);
    pthread_mutex_unlock(&stream->device->instance->lock);
    if (problem != NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE, "%s: %s", slot, problem);
    }
    return DS_ACCEL_OK;
}

int32_t mock_queue_wait_marks(ds_accel_plugin_stream_t *stream,
                              ds_accel_plugin_event_t *const *waits, uint32_t wait_count,
                              const char *slot, struct ds_accel_error *error)
{
    int32_t status = mock_queue_not_capturing(stream, slot, error);

    if (status < 0) {
        return status;
    }
    if (waits == NULL && wait_count > 0) {
        return mock_null(error, slot, "waits");
    }
    for (uint32_t i = 0; i < wait_count; i++) {
        status = wait_event(stream, waits[i], slot, error);
        if (status < 0) {
            return status;
        }
    }
    return DS_ACCEL_OK;
}

ds_accel_plugin_stream_t *mock_stream_make(ds_accel_plugin_device_t *device,
                                           struct mock_queue *queue)
{
    ds_accel_plugin_stream_t *stream = calloc(1, sizeof(*stream));

    if (stream != NULL) {
        stream->device = device;
        stream->queue = queue != NULL ? queue : &stream->own;
    }
    return stream;
}

static int32_t mock_stream_create(ds_accel_plugin_device_t *device, uint32_t flags,
                                  int32_t priority, ds_accel_plugin_stream_t **stream_out,
                                  struct ds_accel_error *error)
{
    ds_accel_plugin_stream_t *stream;
    int32_t status = mock_enter_device(device, "stream_create", error);

    if (status < 0) {
        return status;
    }
    if (stream_out == NULL || (flags & ~DS_ACCEL_STREAM_NON_BLOCKING) != 0 ||
        priority > MOCK_LEAST_PRIORITY || priority < MOCK_GREATEST_PRIORITY) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "stream_create: stream_out is NULL, flags %#x are unknown or priority "
                           "%d is not from %d to %d",
                           flags, priority, MOCK_GREATEST_PRIORITY, MOCK_LEAST_PRIORITY);
    }
    stream = mock_stream_make(device, NULL);
    if (stream == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "stream_create: no memory");
    }
    *stream_out = stream;
    return DS_ACCEL_OK;
}

/*
 * The queue can be freed although its work is pending in simulated time, because the data was moved
 * when the work was queued. device_synchronize still waits until the work's completion time.
 */
void mock_stream_destroy(ds_accel_plugin_stream_t *stream)
{
    if (stream == NULL) {
        return;
    }
    pthread_mutex_lock(&stream->device->instance->lock);
    mock_capture_drop(&stream->own);
    pthread_mutex_unlock(&stream->device->instance->lock);
    free(stream);
}

/*
 * Destroys a stream. The device owns the default stream; a request to destroy it is an error of the
 * program and is ignored.
 */
static void destroy_unless_default(ds_accel_plugin_stream_t *stream)
{
    if (stream != NULL && stream != stream->device->default_stream) {
        mock_stream_destroy(stream);
    }
}

static int32_t mock_stream_get_default(ds_accel_plugin_device_t *device,
                                       ds_accel_plugin_stream_t **stream_out,
                                       struct ds_accel_error *error)
{
    int32_t status = mock_enter_device(device, "stream_get_default", error);

    if (status < 0) {
        return status;
    }
    if (stream_out == NULL) {
        return mock_null(error, "stream_get_default", "stream_out");
    }
    *stream_out = device->default_stream;
    return DS_ACCEL_OK;
}

static int32_t mock_stream_priority_range(ds_accel_plugin_device_t *device, int32_t *least_out,
                                          int32_t *greatest_out, struct ds_accel_error *error)
{
    int32_t status = mock_enter_device(device, "stream_priority_range", error);

    if (status < 0) {
        return status;
    }
    if (least_out == NULL || greatest_out == NULL) {
        return mock_null(error, "stream_priority_range", "least_out or greatest_out");
    }
    *least_out = MOCK_LEAST_PRIORITY;
    *greatest_out = MOCK_GREATEST_PRIORITY;
    return DS_ACCEL_OK;
}

static uint64_t queue_done_ns(ds_accel_plugin_stream_t *stream)
{
    uint64_t done_ns;

    pthread_mutex_lock(&stream->device->instance->lock);
    done_ns = stream->queue->done_ns;
    pthread_mutex_unlock(&stream->device->instance->lock);
    return done_ns;
}

static int32_t mock_stream_synchronize(ds_accel_plugin_stream_t *stream, uint64_t timeout_ns,
                                       struct ds_accel_error *error)
{
    int32_t status = mock_enter_stream(stream, "stream_synchronize", error);

    if (status == DS_ACCEL_OK) {
        status = mock_queue_not_capturing(stream, "stream_synchronize", error);
    }
    if (status < 0) {
        return status;
    }
    return mock_wait_for(stream->device->instance, "stream_synchronize", queue_done_ns(stream),
                         timeout_ns, error);
}

static int32_t mock_stream_query(ds_accel_plugin_stream_t *stream, struct ds_accel_error *error)
{
    int32_t status = mock_enter_stream(stream, "stream_query", error);

    if (status == DS_ACCEL_OK) {
        status = mock_queue_not_capturing(stream, "stream_query", error);
    }
    if (status < 0) {
        return status;
    }
    return queue_done_ns(stream) <= plugin_now_ns() ? DS_ACCEL_OK : DS_ACCEL_NOT_READY;
}

static int32_t mock_stream_wait_event(ds_accel_plugin_stream_t *stream,
                                      ds_accel_plugin_event_t *event, struct ds_accel_error *error)
{
    int32_t status = mock_enter_stream(stream, "stream_wait_event", error);

    if (status < 0) {
        return status;
    }
    return wait_event(stream, event, "stream_wait_event", error);
}

void mock_stream_fill(struct ds_accel_plugin *table)
{
    table->stream_create = mock_stream_create;
    table->stream_destroy = destroy_unless_default;
    table->stream_get_default = mock_stream_get_default;
    table->stream_priority_range = mock_stream_priority_range;
    table->stream_synchronize = mock_stream_synchronize;
    table->stream_query = mock_stream_query;
    table->stream_wait_event = mock_stream_wait_event;
}
