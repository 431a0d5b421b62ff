/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Events: handles for marks, the simulated vendor's events. A mark stores the time at which a queue
 * finishes the work that was queued before the event was recorded.
 */
#include "mock.h"

#define EVENT_FLAGS (DS_ACCEL_EVENT_TIMING | DS_ACCEL_EVENT_BLOCKING_SYNC)

ds_accel_plugin_event_t *mock_event_make(ds_accel_plugin_device_t *device, uint32_t flags,
                                         struct mock_mark *mark)
{
    ds_accel_plugin_event_t *event = calloc(1, sizeof(*event));

    if (event == NULL) {
        return NULL;
    }
    event->device = device;
    event->mark = mark;
    event->is_wrapped = mark != NULL;
    if (mark == NULL) {
        event->mark = calloc(1, sizeof(*event->mark));
        if (event->mark == NULL) {
            free(event);
            return NULL;
        }
        event->mark->references = 1;
        event->mark->flags = flags;
    }
    return event;
}

void mock_mark_put(struct mock_mark *mark)
{
    mark->references--;
    if (mark->references == 0) {
        mock_mark_unshare(mark);
        mock_mark_uncapture(mark);
        free(mark);
    }
}

/*
 * Rejects the flag INTERPROCESS together with TIMING, as vendors' runtimes do, and without option
 * ipc.
 */
static int32_t check_interprocess(const ds_accel_plugin_device_t *device, uint32_t flags,
                                  struct ds_accel_error *error)
{
    if ((flags & DS_ACCEL_EVENT_INTERPROCESS) == 0) {
        return DS_ACCEL_OK;
    }
    if (!device->instance->options.ipc) {
        return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                           "event_create: this device has no events between processes");
    }
    if ((flags & DS_ACCEL_EVENT_TIMING) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "event_create: an event between processes can't have timing");
    }
    return DS_ACCEL_OK;
}

static int32_t mock_event_create(ds_accel_plugin_device_t *device, uint32_t flags,
                                 ds_accel_plugin_event_t **event_out, struct ds_accel_error *error)
{
    ds_accel_plugin_event_t *event;
    int32_t status = mock_enter_device(device, "event_create", error);

    if (status < 0) {
        return status;
    }
    if (event_out == NULL || (flags & ~(EVENT_FLAGS | DS_ACCEL_EVENT_INTERPROCESS)) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "event_create: event_out is NULL or flags %#x are unknown", flags);
    }
    status = check_interprocess(device, flags, error);
    if (status < 0) {
        return status;
    }
    event = mock_event_make(device, flags, NULL);
    if (event == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "event_create: no memory");
    }
    if ((flags & DS_ACCEL_EVENT_INTERPROCESS) != 0 && mock_mark_share(event->mark) != 0) {
        free(event->mark);
        free(event);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "event_create: no memory to share the event");
    }
    *event_out = event;
    return DS_ACCEL_OK;
}

static void mock_event_destroy(ds_accel_plugin_event_t *event)
{
    if (event == NULL) {
        return;
    }
    if (!event->is_wrapped) {
        pthread_mutex_lock(&event->device->instance->lock);
        mock_mark_put(event->mark);
        pthread_mutex_unlock(&event->device->instance->lock);
    }
    free(event);
}

static int32_t mock_event_record(ds_accel_plugin_event_t *event, ds_accel_plugin_stream_t *stream,
                                 struct ds_accel_error *error)
{
    struct mock_work work = {.kind = MOCK_WORK_RECORD};
    int32_t status = mock_enter_event(event, "event_record", error);

    if (status < 0) {
        return status;
    }
    if (stream == NULL) {
        return mock_null(error, "event_record", "the stream");
    }
    status = mock_check_peer(event->device, stream->device, "event_record", error);
    if (status < 0) {
        return status;
    }
    work.mark = event->mark;
    return mock_work_submit(stream, &work, "event_record", error);
}

/*
 * Writes the time at which the mark is done, or 0 if the event was never recorded. Fails with
 * ERR_STATE if the latest record was captured and the graph has not been launched since.
 */
static int32_t mark_done_ns(const ds_accel_plugin_event_t *event, const char *slot,
                            uint64_t *done_ns_out, struct ds_accel_error *error)
{
    uint64_t capture_id;
    uint64_t done_ns;

    pthread_mutex_lock(&event->device->instance->lock);
    mock_mark_refresh(event->mark);
    capture_id = event->mark->capture_id;
    done_ns = event->mark->recorded ? event->mark->done_ns : 0;
    pthread_mutex_unlock(&event->device->instance->lock);
    if (capture_id != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "%s: the event was recorded in a capture, and the graph has not run "
                           "since",
                           slot);
    }
    *done_ns_out = done_ns;
    return DS_ACCEL_OK;
}

static int32_t mock_event_query(ds_accel_plugin_event_t *event, struct ds_accel_error *error)
{
    uint64_t done_ns = 0;
    int32_t status = mock_enter_event(event, "event_query", error);

    if (status == DS_ACCEL_OK) {
        status = mark_done_ns(event, "event_query", &done_ns, error);
    }
    if (status < 0) {
        return status;
    }
    return done_ns <= plugin_now_ns() ? DS_ACCEL_OK : DS_ACCEL_NOT_READY;
}

static int32_t mock_event_synchronize(ds_accel_plugin_event_t *event, uint64_t timeout_ns,
                                      struct ds_accel_error *error)
{
    uint64_t done_ns = 0;
    int32_t status = mock_enter_event(event, "event_synchronize", error);

    if (status == DS_ACCEL_OK) {
        status = mark_done_ns(event, "event_synchronize", &done_ns, error);
    }
    if (status < 0) {
        return status;
    }
    return mock_wait_for(event->device->instance, "event_synchronize", done_ns, timeout_ns, error);
}

static int32_t mock_event_elapsed_ms(ds_accel_plugin_event_t *start, ds_accel_plugin_event_t *end,
                                     double *elapsed_ms_out, struct ds_accel_error *error)
{
    const char *slot = "event_elapsed_ms";
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint64_t now_ns = plugin_now_ns();
    int32_t status = mock_enter_event(start, slot, error);

    if (status < 0) {
        return status;
    }
    if (end == NULL || elapsed_ms_out == NULL) {
        return mock_null(error, slot, "end or elapsed_ms_out");
    }
    if ((start->mark->flags & end->mark->flags & DS_ACCEL_EVENT_TIMING) == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "%s: an event was created without DS_ACCEL_EVENT_TIMING", slot);
    }
    status = mark_done_ns(start, slot, &start_ns, error);
    if (status == DS_ACCEL_OK) {
        status = mark_done_ns(end, slot, &end_ns, error);
    }
    if (status < 0) {
        return status;
    }
    if (start_ns == 0 || end_ns == 0 || start_ns > now_ns || end_ns > now_ns) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "%s: an event was never recorded or is not reached yet", slot);
    }
    *elapsed_ms_out = end_ns >= start_ns ? (double)(end_ns - start_ns) / 1e6
                                         : -(double)(start_ns - end_ns) / 1e6;
    return DS_ACCEL_OK;
}

void mock_event_fill(struct ds_accel_plugin *table)
{
    table->event_create = mock_event_create;
    table->event_destroy = mock_event_destroy;
    table->event_record = mock_event_record;
    table->event_query = mock_event_query;
    table->event_synchronize = mock_event_synchronize;
    table->event_elapsed_ms = mock_event_elapsed_ms;
}
