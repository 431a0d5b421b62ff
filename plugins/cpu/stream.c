/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Streams and events. A stream has no queue: what it is given is done when the call returns, so it
 * is idle whenever somebody asks, and priorities have nothing to decide.
 *
 * An event that was recorded is reached. One that was recorded into a capture is a node of the
 * graph instead; its mark is made when the graph runs. A vendor's runtime would draw a stream that
 * waits for such an event into the capture. Here its work would run ahead of the graph without a
 * word, so that the wait is refused.
 */
#include "cpu.h"

#include <time.h>

/* ---- streams -------------------------------------------------------------------------------- */

static int32_t cpu_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                                 ds_accel_plugin_stream_t **stream_out,
                                 struct ds_accel_error *error)
{
    ds_accel_plugin_stream_t *stream;

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
    stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "stream_create: no memory for a stream");
    }
    stream->device = device;
    *stream_out = stream;
    return DS_ACCEL_OK;
}

static void cpu_stream_destroy(ds_accel_plugin_stream_t *stream)
{
    /* The default stream is borrowed and goes with its device. */
    if (stream == NULL || stream == &stream->device->default_stream) {
        return;
    }
    cpu_work_list_release(&stream->captured);
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

/* Asking what only a launch will tell breaks the capture, as it does on other devices. */
static int32_t check_idle(ds_accel_plugin_stream_t *stream, const char *call,
                          struct ds_accel_error *error)
{
    if (stream == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: stream is NULL", call);
    }
    if (stream->capturing != DS_ACCEL_CAPTURING_NO) {
        stream->capturing = DS_ACCEL_CAPTURING_BROKEN;
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "%s: the stream is capturing; its work runs when the graph is launched, "
                           "and the capture is broken",
                           call);
    }
    return DS_ACCEL_OK;
}

static int32_t cpu_stream_synchronize(ds_accel_plugin_stream_t *stream, uint64_t timeout_ns,
                                      struct ds_accel_error *error)
{
    (void)timeout_ns;
    return check_idle(stream, "stream_synchronize", error);
}

static int32_t cpu_stream_query(ds_accel_plugin_stream_t *stream, struct ds_accel_error *error)
{
    return check_idle(stream, "stream_query", error);
}

static int32_t cpu_stream_wait_event(ds_accel_plugin_stream_t *stream,
                                     ds_accel_plugin_event_t *event, struct ds_accel_error *error)
{
    uint64_t capture_id;

    if (stream == NULL || event == NULL) {
        return cpu_null(error, "stream_wait_event: stream or event");
    }
    capture_id = atomic_load(&event->capture_id);
    if (capture_id != 0 &&
        (stream->capturing == DS_ACCEL_CAPTURING_NO || stream->capture_id != capture_id)) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "stream_wait_event: the event was recorded into a capture that was not "
                           "launched since; this plugin captures one stream at a time");
    }
    return DS_ACCEL_OK;
}

/* ---- events --------------------------------------------------------------------------------- */

static int32_t cpu_event_create(ds_accel_plugin_device_t *device, uint32_t flags,
                                ds_accel_plugin_event_t **event_out, struct ds_accel_error *error)
{
    ds_accel_plugin_event_t *event;

    if (device == NULL || event_out == NULL) {
        return cpu_null(error, "event_create: device or event_out");
    }
    if ((flags & DS_ACCEL_EVENT_INTERPROCESS) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                           "event_create: this backend's events belong to one process");
    }
    if ((flags & ~(DS_ACCEL_EVENT_TIMING | DS_ACCEL_EVENT_BLOCKING_SYNC)) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "event_create: unknown flags 0x%x", flags);
    }
    event = calloc(1, sizeof(*event));
    if (event == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "event_create: no memory for an event");
    }
    event->flags = flags;
    atomic_init(&event->references, 1);
    *event_out = event;
    return DS_ACCEL_OK;
}

void cpu_event_get(ds_accel_plugin_event_t *event)
{
    atomic_fetch_add(&event->references, 1);
}

void cpu_event_put(ds_accel_plugin_event_t *event)
{
    if (atomic_fetch_sub(&event->references, 1) == 1) {
        free(event);
    }
}

/* Graphs that hold the event keep it alive. */
static void cpu_event_destroy(ds_accel_plugin_event_t *event)
{
    if (event != NULL) {
        cpu_event_put(event);
    }
}

void cpu_event_mark(ds_accel_plugin_event_t *event)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    atomic_store(&event->recorded_ns,
                 (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec);
    atomic_store(&event->capture_id, 0);
}

static int32_t cpu_event_record(ds_accel_plugin_event_t *event, ds_accel_plugin_stream_t *stream,
                                struct ds_accel_error *error)
{
    struct cpu_work work;
    int32_t status;

    if (event == NULL || stream == NULL) {
        return cpu_null(error, "event_record: event or stream");
    }
    memset(&work, 0, sizeof(work));
    work.kind = CPU_WORK_RECORD;
    work.event = event;
    status = cpu_work_submit(stream, &work, error);
    if (status == DS_ACCEL_OK && stream->capturing != DS_ACCEL_CAPTURING_NO) {
        atomic_store(&event->capture_id, stream->capture_id);
    }
    return status;
}

/* DS_ACCEL_OK unless the event's latest mark lies in a capture, where no launch has made it yet. */
static int32_t check_reached(ds_accel_plugin_event_t *event, const char *call,
                             struct ds_accel_error *error)
{
    if (event == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: the event is NULL", call);
    }
    if (atomic_load(&event->capture_id) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "%s: the event was recorded in a capture that was not launched yet",
                           call);
    }
    return DS_ACCEL_OK;
}

static int32_t cpu_event_query(ds_accel_plugin_event_t *event, struct ds_accel_error *error)
{
    return check_reached(event, "event_query", error);
}

static int32_t cpu_event_synchronize(ds_accel_plugin_event_t *event, uint64_t timeout_ns,
                                     struct ds_accel_error *error)
{
    (void)timeout_ns;
    return check_reached(event, "event_synchronize", error);
}

static int32_t cpu_event_elapsed_ms(ds_accel_plugin_event_t *start, ds_accel_plugin_event_t *end,
                                    double *elapsed_ms_out, struct ds_accel_error *error)
{
    uint64_t start_ns;
    uint64_t end_ns;
    int32_t status;

    if (start == NULL || end == NULL || elapsed_ms_out == NULL) {
        return cpu_null(error, "event_elapsed_ms: start, end or elapsed_ms_out");
    }
    if ((start->flags & end->flags & DS_ACCEL_EVENT_TIMING) == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "event_elapsed_ms: the %s event was created without timing",
                           (start->flags & DS_ACCEL_EVENT_TIMING) == 0 ? "start" : "end");
    }
    status = check_reached(start, "event_elapsed_ms", error);
    if (status >= 0) {
        status = check_reached(end, "event_elapsed_ms", error);
    }
    if (status < 0) {
        return status;
    }
    start_ns = atomic_load(&start->recorded_ns);
    end_ns = atomic_load(&end->recorded_ns);
    if (start_ns == 0 || end_ns == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "event_elapsed_ms: the %s event was never recorded",
                           start_ns == 0 ? "start" : "end");
    }
    *elapsed_ms_out = (double)(int64_t)(end_ns - start_ns) / 1e6;
    return DS_ACCEL_OK;
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
    table->event_create = cpu_event_create;
    table->event_destroy = cpu_event_destroy;
    table->event_record = cpu_event_record;
    table->event_query = cpu_event_query;
    table->event_synchronize = cpu_event_synchronize;
    table->event_elapsed_ms = cpu_event_elapsed_ms;
}
