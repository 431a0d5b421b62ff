/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Streams: handles of the vendor's streams, and each device's list of streams, which waits with a
 * deadline query.
 *
 * A stream that is destroyed while it has work, or while any stream captures, is put on the
 * device's list of destroyed streams. Waits for the device include this list. When such a stream is
 * idle and no stream captures, the next call that creates or destroys a stream or waits for the
 * device destroys the vendor's stream; closing the device does, too.
 */
#include "vendor_frame.h"

#include <assert.h>

/* A handle, its frame and the backend's native stream (stream_bytes) are one allocation. */
struct whole_stream {
    struct ds_accel_plugin_stream handle;
    struct vendor_stream frame;
    max_align_t native[];
};

/* Allocate a stream that is in no list. */
static ds_accel_plugin_stream_t *allocate(ds_accel_plugin_device_t *device)
{
    struct whole_stream *whole = calloc(1, sizeof(*whole) + vendor_backend.stream_bytes);

    if (whole == NULL) {
        return NULL;
    }
    whole->handle.device = device;
    whole->handle.native = vendor_backend.stream_bytes > 0 ? whole->native : NULL;
    whole->handle.frame = &whole->frame;
    return &whole->handle;
}

/* Add the stream to the device's list. */
static void enlist(ds_accel_plugin_stream_t *stream)
{
    struct vendor_device *frame = stream->device->frame;
    struct vendor_stream *state = stream->frame;

    pthread_mutex_lock(&frame->lock);
    state->next = frame->streams;
    if (frame->streams != NULL) {
        struct vendor_stream *first = frame->streams->frame;

        first->previous = stream;
    }
    frame->streams = stream;
    pthread_mutex_unlock(&frame->lock);
}

ds_accel_plugin_stream_t *vendor_stream_handle_create(ds_accel_plugin_device_t *device,
                                                      void *native)
{
    ds_accel_plugin_stream_t *stream = allocate(device);

    if (stream != NULL) {
        stream->native = native;
        enlist(stream);
    }
    return stream;
}

/* Remove the stream from the device's list, so that no other thread finds the native stream there.
   The caller holds vendor_device.lock. */
static void unlink_stream(ds_accel_plugin_stream_t *stream)
{
    struct vendor_device *frame = stream->device->frame;
    struct vendor_stream *state = stream->frame;

    assert((state->previous == NULL) == (frame->streams == stream));
    if (state->previous != NULL) {
        struct vendor_stream *previous = state->previous->frame;

        previous->next = state->next;
    } else {
        frame->streams = state->next;
    }
    if (state->next != NULL) {
        struct vendor_stream *next = state->next->frame;

        next->previous = state->previous;
    }
}

static void unlist(ds_accel_plugin_stream_t *stream)
{
    struct vendor_device *frame = stream->device->frame;

    pthread_mutex_lock(&frame->lock);
    unlink_stream(stream);
    pthread_mutex_unlock(&frame->lock);
}

void vendor_stream_handle_destroy(ds_accel_plugin_stream_t *stream)
{
    unlist(stream);
    free(stream);
}

/* ---- making and destroying ------------------------------------------------------------------ */

static int32_t create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                      ds_accel_plugin_stream_t **stream_out, struct ds_accel_error *error)
{
    ds_accel_plugin_stream_t *stream = allocate(device);
    int32_t status;

    if (stream == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "stream_create: no memory");
    }
    VENDOR_CALL(device, error, status,
                vendor_backend.stream_create(device, flags, priority, &stream->native, error));
    if (status < 0) {
        free(stream);
        return status;
    }
    enlist(stream);
    *stream_out = stream;
    return DS_ACCEL_OK;
}

static int32_t vendor_stream_create(ds_accel_plugin_device_t *device, uint32_t flags,
                                    int32_t priority, ds_accel_plugin_stream_t **stream_out,
                                    struct ds_accel_error *error)
{
    const struct vendor_device *frame;
    int32_t status = vendor_check_device(device, "stream_create", error);

    if (status == DS_ACCEL_OK) {
        status = vendor_check_flags(flags, DS_ACCEL_STREAM_NON_BLOCKING, "stream_create", error);
    }
    if (status < 0) {
        return status;
    }
    frame = device->frame;
    if (stream_out == NULL) {
        return vendor_null(error, "stream_create", "stream_out");
    }
    if (priority > frame->least_priority || priority < frame->greatest_priority) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "stream_create: priority %d is not from %d to %d", priority,
                           frame->greatest_priority, frame->least_priority);
    }
    vendor_streams_reap(device);
    return create(device, flags, priority, stream_out, error);
}

static void drop_capture(ds_accel_plugin_stream_t *stream, struct vendor_keep *keep)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    void *graph = NULL;
    int32_t status;

    VENDOR_WORK(stream->device, &ignored, status,
                vendor_backend.capture_end(stream->device, stream->native, &graph, &ignored));
    if (status == DS_ACCEL_OK && graph != NULL) {
        VENDOR_DESTROY(stream->device, vendor_backend.graph_destroy(stream->device, graph));
    }
    vendor_keep_put(keep);
}

/* Drop the capture of a stream that is destroyed before its capture ended. */
static void end_capture(ds_accel_plugin_stream_t *stream)
{
    struct vendor_keep *keep = vendor_keep_close(stream);

    if (keep != NULL) {
        drop_capture(stream, keep);
    }
}

/* Destroy a stream that is in no list. */
static void end_stream(ds_accel_plugin_stream_t *stream)
{
    ds_accel_plugin_device_t *device = stream->device;

    assert(((const struct vendor_stream *)stream->frame)->capture == NULL);
    if (!stream->is_wrapped) {
        VENDOR_DESTROY(device, vendor_backend.stream_destroy(device, stream->native));
    } else if (vendor_backend.native_unwrap != NULL) {
        VENDOR_DESTROY(
            device, vendor_backend.native_unwrap(device, DS_ACCEL_NATIVE_STREAM, stream->native));
    }
    free(stream);
}

static void end_streams(ds_accel_plugin_stream_t *stream)
{
    while (stream != NULL) {
        const struct vendor_stream *state = stream->frame;
        ds_accel_plugin_stream_t *next = state->next;

        end_stream(stream);
        stream = next;
    }
}

static void destroy(ds_accel_plugin_stream_t *stream)
{
    ds_accel_plugin_device_t *device = stream->device;

    end_capture(stream);
    unlist(stream); /* first, because a thread that waits for the device queries listed streams */
    end_stream(stream);
    if (vendor_is_lost(device)) {
        vendor_tasks_abandon(device, VENDOR_ANY_OPENING, DS_ACCEL_ERR_DEVICE_LOST);
    }
}

static int32_t query(ds_accel_plugin_stream_t *stream, struct ds_accel_error *error)
{
    int32_t status;

    VENDOR_WORK(stream->device, error, status,
                vendor_backend.stream_query(stream->device, stream->native, error));
    return status;
}

static int is_busy(ds_accel_plugin_stream_t *stream)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

    return query(stream, &ignored) == DS_ACCEL_NOT_READY;
}

/*
 * Does the stream have work left? During a capture the stream counts as busy, because a query could
 * break the capture. The program's own (wrapped) streams never count as busy, because the program
 * waits for them. The result is also 0 if the device is lost, if the backend cannot query streams,
 * and if the backend's stream_destroy() itself accepts busy streams (ends_streams_late).
 */
static int is_at_work(ds_accel_plugin_stream_t *stream)
{
    if (stream->is_wrapped || vendor_backend.ends_streams_late ||
        vendor_backend.stream_query == NULL || vendor_is_lost(stream->device)) {
        return 0;
    }
    return vendor_capture_count() != 0 || is_busy(stream);
}

/* Append the stream to the list of destroyed streams. The caller holds frame->lock. */
static void keep_ended(struct vendor_device *frame, ds_accel_plugin_stream_t *stream)
{
    ds_accel_plugin_stream_t **link = &frame->ended;
    struct vendor_stream *state = stream->frame;

    while (*link != NULL) {
        link = &((struct vendor_stream *)(*link)->frame)->next;
    }
    state->next = NULL;
    *link = stream;
}

/* Move a destroyed stream from the device's list to the list *done, whose streams the caller
   destroys. The caller holds vendor_device.lock. */
static void take_ended(ds_accel_plugin_stream_t **link, ds_accel_plugin_stream_t **done)
{
    ds_accel_plugin_stream_t *stream = *link;
    struct vendor_stream *state = stream->frame;

    *link = state->next;
    state->next = *done;
    *done = stream;
}

/*
 * Query destroyed streams, the oldest first, and stop after most streams that still have work.
 * Streams that have no work, or failed, are moved to *done. A stream that is part of a capture is
 * not queried; it stays in the list and counts towards most. Returns a failure of a stream,
 * otherwise NOT_READY if a queried stream has work, otherwise DS_ACCEL_OK. The caller holds
 * frame->lock.
 */
static int32_t query_ended(struct vendor_device *frame, uint32_t most,
                           ds_accel_plugin_stream_t **done, struct ds_accel_error *error)
{
    ds_accel_plugin_stream_t **link = &frame->ended;
    int32_t result = DS_ACCEL_OK;

    while (*link != NULL && most > 0) {
        struct vendor_stream *state = (*link)->frame;
        uint32_t is_capturing = 0;
        int32_t status = vendor_stream_is_capturing(*link, &is_capturing, error);

        if (status == DS_ACCEL_OK && !is_capturing) {
            status = query(*link, error);
        }
        if (is_capturing || status == DS_ACCEL_NOT_READY) {
            result = result == DS_ACCEL_OK ? status : result;
            link = &state->next;
            most--;
        } else {
            result = status < 0 ? status : result;
            take_ended(link, done);
        }
    }
    return result;
}

#define REAP_LIMIT 16u /* limit of busy streams queried when a stream is created or destroyed */

void vendor_streams_reap(ds_accel_plugin_device_t *device)
{
    struct vendor_device *frame = device->frame;
    ds_accel_plugin_stream_t *done = NULL;

    if (vendor_backend.ends_streams_late) {
        return; /* such a backend keeps destroyed streams itself */
    }
    pthread_mutex_lock(&frame->lock);
    if (frame->ended != NULL && vendor_capture_count() == 0) {
        struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

        query_ended(frame, REAP_LIMIT, &done, &ignored);
    }
    pthread_mutex_unlock(&frame->lock);
    end_streams(done);
}

/* Destroy a stream. The default stream belongs to the plugin: the call ignores it. */
static void vendor_stream_destroy(ds_accel_plugin_stream_t *stream)
{
    ds_accel_plugin_device_t *device;
    struct vendor_device *frame;

    if (stream == NULL || stream->is_default) {
        return;
    }
    device = stream->device;
    frame = device->frame;
    end_capture(stream);
    if (is_at_work(stream)) {
        pthread_mutex_lock(&frame->lock);
        unlink_stream(stream);
        keep_ended(frame, stream);
        pthread_mutex_unlock(&frame->lock);
    } else {
        destroy(stream);
    }
    vendor_streams_reap(device);
}

void vendor_streams_destroy(ds_accel_plugin_device_t *device)
{
    struct vendor_device *frame = device->frame;
    ds_accel_plugin_stream_t *stream = frame->streams;

    while (stream != NULL) {
        struct vendor_stream *state = stream->frame;
        ds_accel_plugin_stream_t *next = state->next;

        if (!stream->is_default) {
            destroy(stream);
        }
        stream = next;
    }
    stream = frame->ended;
    frame->ended = NULL;
    end_streams(stream);
}

/* ---- the default stream --------------------------------------------------------------------- */

int32_t vendor_stream_open_default(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    ds_accel_plugin_stream_t *stream = NULL;
    void *native = NULL;
    int32_t status = DS_ACCEL_OK;

    if (vendor_backend.stream_default != NULL) {
        VENDOR_CALL(device, error, status, vendor_backend.stream_default(device, &native, error));
        if (status == DS_ACCEL_OK) {
            stream = vendor_stream_handle_create(device, native);
            if (stream == NULL) {
                status = plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "device_open: no memory");
            }
        }
    } else if (vendor_backend.stream_create != NULL) {
        status = create(device, DS_ACCEL_STREAM_DEFAULT, 0, &stream, error);
    }
    if (stream != NULL) {
        stream->is_default = 1;
    }
    device->default_stream = stream;
    return status;
}

void vendor_stream_close_default(ds_accel_plugin_device_t *device)
{
    ds_accel_plugin_stream_t *stream = device->default_stream;

    device->default_stream = NULL;
    if (stream == NULL) {
        return;
    }
    if (vendor_backend.stream_default != NULL) {
        vendor_stream_handle_destroy(stream);
    } else {
        destroy(stream);
    }
}

static int32_t vendor_stream_get_default(ds_accel_plugin_device_t *device,
                                         ds_accel_plugin_stream_t **stream_out,
                                         struct ds_accel_error *error)
{
    int32_t status = vendor_check_device(device, "stream_get_default", error);

    if (status < 0) {
        return status;
    }
    if (stream_out == NULL) {
        return vendor_null(error, "stream_get_default", "stream_out");
    }
    *stream_out = device->default_stream;
    return DS_ACCEL_OK;
}

static int32_t vendor_stream_priority_range(ds_accel_plugin_device_t *device, int32_t *least_out,
                                            int32_t *greatest_out, struct ds_accel_error *error)
{
    const struct vendor_device *frame;
    int32_t status = vendor_check_device(device, "stream_priority_range", error);

    if (status < 0) {
        return status;
    }
    if (least_out == NULL || greatest_out == NULL) {
        return vendor_null(error, "stream_priority_range", "least_out or greatest_out");
    }
    frame = device->frame;
    *least_out = frame->least_priority;
    *greatest_out = frame->greatest_priority;
    return DS_ACCEL_OK;
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* Is the stream capturing? While no stream of the process captures, which is the usual case, this
   reads only a counter, except for a wrapped stream and in a backend that tracks captures: such a
   backend also reports streams in captures of other instances. */
int32_t vendor_stream_is_capturing(ds_accel_plugin_stream_t *stream, uint32_t *is_capturing_out,
                                   struct ds_accel_error *error)
{
    const struct vendor_stream *state = stream->frame;
    uint32_t capturing = DS_ACCEL_CAPTURING_NO;
    int32_t status = DS_ACCEL_OK;

    *is_capturing_out = state->capture != NULL;
    if (state->capture != NULL || vendor_backend.capture_status == NULL ||
        (!stream->is_wrapped && !vendor_backend.tracks_captures && vendor_capture_count() == 0)) {
        return DS_ACCEL_OK;
    }
    VENDOR_WORK(stream->device, error, status,
                vendor_backend.capture_status(stream->device, stream->native, &capturing, error));
    *is_capturing_out = capturing != DS_ACCEL_CAPTURING_NO;
    return status == DS_ACCEL_ERR_UNSUPPORTED ? DS_ACCEL_OK : status;
}

static int32_t ask_stream(void *subject, struct ds_accel_error *error)
{
    return query(subject, error);
}

int32_t vendor_streams_query(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    struct vendor_device *frame = device->frame;
    ds_accel_plugin_stream_t *done = NULL;
    int32_t result = DS_ACCEL_OK;

    if (vendor_backend.stream_query == NULL) {
        return DS_ACCEL_OK;
    }
    pthread_mutex_lock(&frame->lock);
    vendor_captures_lock(); /* no stream begins to capture between the check and the query */
    for (ds_accel_plugin_stream_t *stream = frame->streams;
         stream != NULL && result == DS_ACCEL_OK;) {
        const struct vendor_stream *state = stream->frame;
        uint32_t is_capturing = 0; /* a query would break a capture that the stream is in */

        result = vendor_stream_is_capturing(stream, &is_capturing, error);
        if (result == DS_ACCEL_ERR_STATE) {
            result = DS_ACCEL_OK; /* the default stream cannot be queried while a stream that waits
                                     for it captures: skip it */
        } else if (result == DS_ACCEL_OK && !is_capturing) {
            result = query(stream, error);
        }
        stream = state->next;
    }
    if (result == DS_ACCEL_OK) {
        result = query_ended(frame, UINT32_MAX, &done, error);
    }
    vendor_captures_unlock();
    pthread_mutex_unlock(&frame->lock);
    end_streams(done);
    return result;
}

int32_t vendor_stream_wait(ds_accel_plugin_stream_t *stream, uint64_t timeout_ns, const char *slot,
                           struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device = stream->device;
    int32_t status;

    if (vendor_backend.stream_wait != NULL) {
        VENDOR_WORK(device, error, status,
                    vendor_backend.stream_wait(device, stream->native, timeout_ns, error));
    } else if (timeout_ns == UINT64_MAX || vendor_backend.stream_query == NULL) {
        VENDOR_WORK(device, error, status,
                    vendor_backend.stream_synchronize(device, stream->native, error));
    } else if (timeout_ns > 0 && vendor_backend.stream_synchronize_for != NULL) {
        VENDOR_WORK(
            device, error, status,
            vendor_backend.stream_synchronize_for(device, stream->native, timeout_ns, error));
    } else {
        status = vendor_poll(ask_stream, stream, timeout_ns, slot, error);
    }
    if (vendor_is_lost(device)) {
        vendor_tasks_abandon(device, VENDOR_ANY_OPENING, DS_ACCEL_ERR_DEVICE_LOST);
        vendor_tasks_settle(device, stream, timeout_ns);
    }
    return status;
}

static int32_t vendor_stream_synchronize(ds_accel_plugin_stream_t *stream, uint64_t timeout_ns,
                                         struct ds_accel_error *error)
{
    int32_t status;

    if (vendor_backend.stream_wait != NULL) { /* such a backend's devices cannot be lost */
        return stream != NULL
                   ? vendor_backend.stream_wait(stream->device, stream->native, timeout_ns, error)
                   : vendor_null(error, "stream_synchronize", "the stream");
    }
    status = vendor_check_stream(stream, "stream_synchronize", error);
    if (status == DS_ACCEL_ERR_DEVICE_LOST) {
        vendor_tasks_settle(stream->device, stream, timeout_ns);
    }
    return status < 0 ? status
                      : vendor_stream_wait(stream, timeout_ns, "stream_synchronize", error);
}

static int32_t vendor_stream_query(ds_accel_plugin_stream_t *stream, struct ds_accel_error *error)
{
    int32_t status;

    if (vendor_backend.stream_wait != NULL) { /* such a backend's devices cannot be lost */
        return stream != NULL ? vendor_backend.stream_query(stream->device, stream->native, error)
                              : vendor_null(error, "stream_query", "the stream");
    }
    status = vendor_check_stream(stream, "stream_query", error);
    if (status == DS_ACCEL_OK) {
        status = query(stream, error);
        if (status < 0 && vendor_is_lost(stream->device)) {
            vendor_tasks_abandon(stream->device, VENDOR_ANY_OPENING, DS_ACCEL_ERR_DEVICE_LOST);
        }
    }
    return status;
}

/* If the stream captures: check that the capture can contain a wait for the event. A wrapped event
   is not known to be from outside the capture. */
static int32_t check_capturable(ds_accel_plugin_stream_t *stream,
                                const ds_accel_plugin_event_t *event, uint32_t state,
                                const char *slot, struct ds_accel_error *error)
{
    int is_outer = vendor_backend.captures_no_outer_waits && state == VENDOR_EVENT_RECORDED &&
                   !event->is_wrapped;
    uint32_t is_capturing = 0;
    int32_t status;

    if (!is_outer && vendor_check_captured(event, slot, error) == DS_ACCEL_OK) {
        return DS_ACCEL_OK;
    }
    status = vendor_stream_is_capturing(stream, &is_capturing, error);
    if (status < 0 || !is_capturing) {
        return status;
    }
    status = vendor_check_captured(event, slot, error);
    if (status == DS_ACCEL_OK) {
        status = plugin_fail(error, DS_ACCEL_ERR_STATE,
                             "%s: the stream captures, and the event was recorded outside the "
                             "capture",
                             slot);
    }
    return status;
}

/* Did all captures end since the event was recorded in one? */
static int is_outlived(const ds_accel_plugin_event_t *event)
{
    return vendor_backend.captures_no_outer_waits &&
           __atomic_load_n(&event->era, __ATOMIC_RELAXED) != vendor_capture_era();
}

/*
 * Make the stream wait for the event. An event that was never recorded counts as reached, and the
 * runtime is not called, unless only the runtime knows whether the event was recorded: a wrapped or
 * interprocess event, or any event of a backend that tracks captures. An event that was recorded in
 * a capture is a dependency within the capture: the call fails with ERR_STATE if no stream of the
 * instance captures any more, and for the default stream, which cannot join a capture.
 */
int32_t vendor_stream_wait_for(ds_accel_plugin_stream_t *stream, ds_accel_plugin_event_t *event,
                               const char *slot, struct ds_accel_error *error)
{
    uint32_t state = vendor_event_state(event);
    int32_t status;

    if (event->device->instance != stream->device->instance && !vendor_backend.mixes_instances) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: event and stream belong to different instances", slot);
    }
    if (state == VENDOR_EVENT_NEVER) {
        return DS_ACCEL_OK;
    }
    if (state == VENDOR_EVENT_CAPTURED && (vendor_capture_count() == 0 || is_outlived(event))) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "%s: the event was recorded in a capture, and not again since", slot);
    }
    if (state == VENDOR_EVENT_CAPTURED && stream->is_default) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "%s: the event was recorded in a capture, into which the default stream "
                           "can't be drawn",
                           slot);
    }
    status = check_capturable(stream, event, state, slot, error);
    if (status < 0) {
        return status;
    }
    VENDOR_WORK(
        stream->device, error, status,
        vendor_backend.stream_wait_event(stream->device, stream->native, event->native, error));
    if (status == DS_ACCEL_ERR_INVALID && state == VENDOR_EVENT_CAPTURED) {
        status = DS_ACCEL_ERR_STATE; /* some runtimes no longer know the event after its capture */
    }
    return status;
}

static int32_t vendor_stream_wait_event(ds_accel_plugin_stream_t *stream,
                                        ds_accel_plugin_event_t *event,
                                        struct ds_accel_error *error)
{
    int32_t status = vendor_check_stream(stream, "stream_wait_event", error);

    if (status < 0) {
        return status;
    }
    if (event == NULL) {
        return vendor_null(error, "stream_wait_event", "the event");
    }
    return vendor_stream_wait_for(stream, event, "stream_wait_event", error);
}

static int32_t vendor_stream_host_task(ds_accel_plugin_stream_t *stream, ds_accel_host_task_t task,
                                       void *user_data, struct ds_accel_error *error)
{
    int32_t status = vendor_check_stream(stream, "stream_host_task", error);

    if (status < 0) {
        return status;
    }
    if (task == NULL) {
        return vendor_null(error, "stream_host_task", "the task");
    }
    if (vendor_backend.stream_task != NULL) {
        VENDOR_WORK(
            stream->device, error, status,
            vendor_backend.stream_task(stream->device, stream->native, task, user_data, error));
        return status;
    }
    return vendor_task_submit(stream, task, user_data, error);
}

void vendor_stream_fill(struct ds_accel_plugin *table)
{
    const struct vendor_backend *backend = &vendor_backend;
    int has_streams = backend->stream_create != NULL;
    int has_default = has_streams || backend->stream_default != NULL;

    table->stream_create = has_streams ? vendor_stream_create : NULL;
    table->stream_destroy = has_streams ? vendor_stream_destroy : NULL;
    table->stream_get_default = has_default ? vendor_stream_get_default : NULL;
    table->stream_priority_range = has_streams ? vendor_stream_priority_range : NULL;
    table->stream_synchronize = backend->stream_wait != NULL || backend->stream_synchronize != NULL
                                    ? vendor_stream_synchronize
                                    : NULL;
    table->stream_query = backend->stream_query != NULL ? vendor_stream_query : NULL;
    table->stream_wait_event = backend->stream_wait_event != NULL ? vendor_stream_wait_event : NULL;
    table->stream_host_task = backend->stream_task != NULL || backend->stream_host_task != NULL
                                  ? vendor_stream_host_task
                                  : NULL;
}
