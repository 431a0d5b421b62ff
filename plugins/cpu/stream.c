/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Streams. Without option async a stream has no queue: its work is done when the call returns, so
 * that it is always idle. With it a stream has a queue and a worker of its own (queue.c), and
 * nothing orders it with other streams but events; this holds for the default stream too, so that
 * DS_ACCEL_STREAM_NON_BLOCKING changes nothing. In both cases there is one priority.
 */
#include "cpu.h"

/* ---- streams -------------------------------------------------------------------------------- */

static int32_t cpu_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                                 ds_accel_plugin_stream_t **stream_out,
                                 struct ds_accel_error *error)
{
    ds_accel_plugin_stream_t *stream;
    int32_t status;

    if (device == NULL || stream_out == NULL) {
        return cpu_null(error, "stream_create: device or stream_out");
    }
    if ((flags & ~DS_ACCEL_STREAM_NON_BLOCKING) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "stream_create: unknown flags 0x%x", flags);
    }
    if (priority != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "stream_create: priority %d; the range is 0 to 0", priority);
    }
    status = cpu_fork_check(device->instance, "stream_create", error);
    if (status < 0) {
        return status;
    }
    stream = calloc(1, sizeof(*stream));
    if (stream != NULL && device->instance->is_async) {
        stream->queue = cpu_queue_create(device);
    }
    if (stream == NULL || (device->instance->is_async && stream->queue == NULL)) {
        free(stream);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "stream_create: no memory for a stream");
    }
    stream->device = device;
    if (stream->queue != NULL) {
        pthread_mutex_lock(&device->instance->lock);
        cpu_queue_enter(stream->queue);
        pthread_mutex_unlock(&device->instance->lock);
    }
    *stream_out = stream;
    return DS_ACCEL_OK;
}

static void cpu_stream_destroy(ds_accel_plugin_stream_t *stream)
{
    /* The default stream is borrowed and is destroyed with its device. */
    if (stream == NULL || stream == &stream->device->default_stream) {
        return;
    }
    cpu_capture_leave(stream);
    if (stream->queue != NULL) {
        cpu_queue_close(stream->queue);
    }
    free(stream);
}

static int32_t cpu_stream_get_default(ds_accel_plugin_device_t *device,
                                      ds_accel_plugin_stream_t **stream_out,
                                      struct ds_accel_error *error)
{
    if (device == NULL || stream_out == NULL) {
        return cpu_null(error, "stream_get_default: device or stream_out");
    }
    *stream_out = &device->default_stream;
    return DS_ACCEL_OK;
}

static int32_t cpu_stream_priority_range(ds_accel_plugin_device_t *device, int32_t *least_out,
                                         int32_t *greatest_out, struct ds_accel_error *error)
{
    if (device == NULL || least_out == NULL || greatest_out == NULL) {
        return cpu_null(error, "stream_priority_range: device, least_out or greatest_out");
    }
    *least_out = 0;
    *greatest_out = 0;
    return DS_ACCEL_OK;
}

/* A query whose result only a launch has breaks the capture, as on other devices. */
int32_t cpu_stream_check(ds_accel_plugin_stream_t *stream, const char *call,
                         struct ds_accel_error *error)
{
    if (stream == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: stream is NULL", call);
    }
    if (cpu_capture_state(stream) != DS_ACCEL_CAPTURING_NO) {
        cpu_capture_break(stream, "the host was to wait for its stream");
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "%s: the stream is capturing; its work runs when the graph is launched, "
                           "and the capture is broken",
                           call);
    }
    return DS_ACCEL_OK;
}

/* ---- waiting for a stream ------------------------------------------------------------------- */

static int32_t cpu_stream_synchronize(ds_accel_plugin_stream_t *stream, uint64_t timeout_ns,
                                      struct ds_accel_error *error)
{
    int32_t status = cpu_stream_check(stream, "stream_synchronize", error);

    if (status < 0 || stream->queue == NULL) {
        return status;
    }
    return cpu_queue_wait(stream->queue, timeout_ns, "stream_synchronize", error);
}

static int32_t cpu_stream_query(ds_accel_plugin_stream_t *stream, struct ds_accel_error *error)
{
    int32_t status = cpu_stream_check(stream, "stream_query", error);

    if (status < 0 || stream->queue == NULL) {
        return status;
    }
    status = cpu_fork_check(stream->device->instance, "stream_query", error);
    if (status < 0) {
        return status;
    }
    return cpu_queue_is_idle(stream->queue) ? DS_ACCEL_OK : DS_ACCEL_NOT_READY;
}

/* ---- waiting of a stream -------------------------------------------------------------------- */

int32_t cpu_stream_wait_mark(ds_accel_plugin_stream_t *stream, struct cpu_mark *mark,
                             const char *call, struct ds_accel_error *error)
{
    struct cpu_work work;
    int32_t status;

    /* Completed work and work of the same queue are ordered already. */
    if (cpu_mark_reached_ns(mark) != 0 || cpu_mark_is_of(mark, stream->queue)) {
        return DS_ACCEL_OK;
    }
    memset(&work, 0, sizeof(work));
    work.kind = CPU_WORK_WAIT;
    work.mark = mark;
    cpu_mark_get(mark);
    status = cpu_queue_submit(stream->queue, &work, call, error);
    if (status < 0) {
        cpu_mark_put(mark);
    }
    return status;
}

/* The event's recording outside of any capture; NULL if it has none or it is complete. */
static int32_t wait_recorded(ds_accel_plugin_stream_t *stream, struct cpu_mark *mark,
                             int was_recorded, const char *call, struct ds_accel_error *error)
{
    if (cpu_capture_state(stream) != DS_ACCEL_CAPTURING_NO) {
        if (!was_recorded) {
            return DS_ACCEL_OK;
        }
        cpu_capture_break(stream, "it was to wait for an event that was recorded outside of it");
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "%s: the event was recorded outside of the capture, which is broken now",
                           call);
    }
    return mark == NULL ? DS_ACCEL_OK : cpu_stream_wait_mark(stream, mark, call, error);
}

static int32_t wait_event(ds_accel_plugin_stream_t *stream, ds_accel_plugin_event_t *event,
                          const char *call, struct ds_accel_error *error)
{
    struct cpu_recording recording;
    int32_t status = cpu_fork_check(stream->device->instance, call, error);

    if (status < 0) {
        return status;
    }
    cpu_event_recording(event, &recording);
    if (recording.capture != NULL) {
        status = cpu_capture_wait(stream, recording.capture, recording.node, call, error);
    } else {
        status = wait_recorded(stream, recording.mark,
                               recording.mark != NULL || recording.recorded_ns != 0, call, error);
    }
    cpu_recording_put(&recording);
    return status;
}

static int32_t cpu_stream_wait_event(ds_accel_plugin_stream_t *stream,
                                     ds_accel_plugin_event_t *event, struct ds_accel_error *error)
{
    if (stream == NULL || event == NULL) {
        return cpu_null(error, "stream_wait_event: stream or event");
    }
    return wait_event(stream, event, "stream_wait_event", error);
}

int32_t cpu_stream_wait_events(ds_accel_plugin_stream_t *stream,
                               ds_accel_plugin_event_t *const *waits, uint32_t wait_count,
                               const char *call, struct ds_accel_error *error)
{
    int32_t status = DS_ACCEL_OK;

    if (waits == NULL && wait_count > 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: waits is NULL", call);
    }
    for (uint32_t i = 0; i < wait_count && status == DS_ACCEL_OK; i++) {
        if (waits[i] == NULL) {
            return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: waits[%u] is NULL", call, i);
        }
        status = wait_event(stream, waits[i], call, error);
    }
    return status;
}

void cpu_stream_fill(struct ds_accel_plugin *table)
{
    table->stream_create = cpu_stream_create;
    table->stream_destroy = cpu_stream_destroy;
    table->stream_get_default = cpu_stream_get_default;
    table->stream_priority_range = cpu_stream_priority_range;
    table->stream_synchronize = cpu_stream_synchronize;
    table->stream_query = cpu_stream_query;
    table->stream_wait_event = cpu_stream_wait_event;
}
