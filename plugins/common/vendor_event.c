/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Events. Runtimes differ in their results for events that were never recorded, or were recorded in
 * a capture. The frame stores this state for each event, and queries the runtime only for recorded
 * events.
 *
 * An event that is shared between processes, or that the program made itself, may be recorded by
 * calls that the frame does not see. For such an event the runtime is queried even if the frame
 * never recorded the event.
 */
#include "vendor_frame.h"

#define EVENT_FLAGS \
    (DS_ACCEL_EVENT_TIMING | DS_ACCEL_EVENT_BLOCKING_SYNC | DS_ACCEL_EVENT_INTERPROCESS)

ds_accel_plugin_event_t *vendor_event_handle_create(ds_accel_plugin_device_t *device,
                                                    uint32_t flags, void *native)
{
    ds_accel_plugin_event_t *event = calloc(1, sizeof(*event));

    if (event != NULL) {
        event->device = device;
        event->flags = flags;
        event->native = native;
        pthread_mutex_init(&event->lock, NULL);
    }
    return event;
}

void vendor_event_handle_destroy(ds_accel_plugin_event_t *event)
{
    pthread_mutex_destroy(&event->lock);
    free(event);
}

/* Return VENDOR_EVENT_*: RECORDED if the backend tracks captures, or if the event may have been
   recorded by calls that the frame does not see. The state is one atomic word, because a lock would
   cost as much as a query of some runtimes. */
uint32_t vendor_event_state(ds_accel_plugin_event_t *event)
{
    uint32_t state;

    if (vendor_backend.tracks_captures) {
        return VENDOR_EVENT_RECORDED;
    }
    state = __atomic_load_n(&event->recorded, __ATOMIC_ACQUIRE);
    if (state == VENDOR_EVENT_NEVER &&
        (event->is_wrapped || (event->flags & DS_ACCEL_EVENT_INTERPROCESS) != 0)) {
        return VENDOR_EVENT_RECORDED;
    }
    return state;
}

static int32_t vendor_event_create(ds_accel_plugin_device_t *device, uint32_t flags,
                                   ds_accel_plugin_event_t **event_out,
                                   struct ds_accel_error *error)
{
    ds_accel_plugin_event_t *event;
    void *native = NULL;
    int32_t status = vendor_check_device(device, "event_create", error);

    if (status == DS_ACCEL_OK) {
        status = vendor_check_flags(flags, EVENT_FLAGS, "event_create", error);
    }
    if (status < 0) {
        return status;
    }
    if (event_out == NULL) {
        return vendor_null(error, "event_create", "event_out");
    }
    if ((flags & DS_ACCEL_EVENT_INTERPROCESS) != 0 && vendor_backend.ipc_event_export == NULL) {
        return vendor_unsupported(error, "event_create", "no events between processes here");
    }
    VENDOR_CALL(device, error, status, vendor_backend.event_create(device, flags, &native, error));
    if (status < 0) {
        return status;
    }
    event = vendor_event_handle_create(device, flags, native);
    if (event == NULL) {
        VENDOR_DESTROY(device, vendor_backend.event_destroy(device, native));
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "event_create: no memory");
    }
    *event_out = event;
    return DS_ACCEL_OK;
}

static void vendor_event_destroy(ds_accel_plugin_event_t *event)
{
    if (event == NULL) {
        return;
    }
    if (!event->is_wrapped) {
        VENDOR_DESTROY(event->device, vendor_backend.event_destroy(event->device, event->native));
    } else if (vendor_backend.native_unwrap != NULL) {
        VENDOR_DESTROY(event->device, vendor_backend.native_unwrap(
                                          event->device, DS_ACCEL_NATIVE_EVENT, event->native));
    }
    vendor_event_handle_destroy(event);
}

int32_t vendor_check_captured(const ds_accel_plugin_event_t *event, const char *slot,
                              struct ds_accel_error *error)
{
    if (vendor_backend.captures_no_ipc_events &&
        (event->flags & DS_ACCEL_EVENT_INTERPROCESS) != 0) {
        return vendor_unsupported(error, slot,
                                  "this runtime captures no event that processes share");
    }
    return DS_ACCEL_OK;
}

static atomic_ullong record_count;

static int32_t vendor_event_record(ds_accel_plugin_event_t *event, ds_accel_plugin_stream_t *stream,
                                   struct ds_accel_error *error)
{
    uint32_t is_capturing = 0;
    int32_t status = vendor_check_event(event, "event_record", error);

    if (status == DS_ACCEL_OK) {
        status = vendor_check_stream(stream, "event_record", error);
    }
    if (status == DS_ACCEL_OK && event->device != stream->device &&
        !vendor_backend.mixes_instances) {
        status = vendor_check_peer(event->device, stream->device, "event_record", error);
    }
    if (status == DS_ACCEL_OK && vendor_backend.tracks_captures) {
        return vendor_backend.event_record(stream->device, event->native, stream->native, error);
    }
    if (status == DS_ACCEL_OK) {
        status = vendor_stream_is_capturing(stream, &is_capturing, error);
    }
    if (status == DS_ACCEL_OK && is_capturing) {
        status = vendor_check_captured(event, "event_record", error);
    }
    if (status < 0) {
        return status;
    }
    VENDOR_WORK(stream->device, error, status,
                vendor_backend.event_record(stream->device, event->native, stream->native, error));
    if (status == DS_ACCEL_OK) {
        __atomic_store_n(&event->recorded_on, stream, __ATOMIC_RELAXED);
        __atomic_store_n(&event->era, vendor_capture_era(), __ATOMIC_RELAXED);
        __atomic_store_n(&event->sequence, atomic_fetch_add(&record_count, 1) + 1,
                         __ATOMIC_RELEASE);
        __atomic_store_n(&event->recorded,
                         is_capturing ? VENDOR_EVENT_CAPTURED : VENDOR_EVENT_RECORDED,
                         __ATOMIC_RELEASE);
    }
    return status;
}

static int32_t fail_captured(const char *slot, struct ds_accel_error *error)
{
    return plugin_fail(error, DS_ACCEL_ERR_STATE,
                       "%s: the event was recorded in a capture, and not again since", slot);
}

static int32_t ask(void *subject, struct ds_accel_error *error)
{
    ds_accel_plugin_event_t *event = subject;
    int32_t status;

    VENDOR_WORK(event->device, error, status,
                vendor_backend.event_query(event->device, event->native, error));
    return status;
}

static int32_t vendor_event_query(ds_accel_plugin_event_t *event, struct ds_accel_error *error)
{
    uint32_t state;
    int32_t status = vendor_check_event(event, "event_query", error);

    if (status < 0) {
        return status;
    }
    state = vendor_event_state(event);
    if (state == VENDOR_EVENT_RECORDED) {
        return ask(event, error);
    }
    return state == VENDOR_EVENT_NEVER ? DS_ACCEL_OK : fail_captured("event_query", error);
}

static int32_t vendor_event_synchronize(ds_accel_plugin_event_t *event, uint64_t timeout_ns,
                                        struct ds_accel_error *error)
{
    uint32_t state;
    int32_t status = vendor_check_event(event, "event_synchronize", error);

    if (status < 0) {
        if (status == DS_ACCEL_ERR_DEVICE_LOST) {
            vendor_tasks_settle(event->device, NULL, timeout_ns);
        }
        return status;
    }
    state = vendor_event_state(event);
    if (state != VENDOR_EVENT_RECORDED) {
        return state == VENDOR_EVENT_NEVER ? DS_ACCEL_OK
                                           : fail_captured("event_synchronize", error);
    }
    if (vendor_backend.event_wait != NULL) {
        VENDOR_WORK(event->device, error, status,
                    vendor_backend.event_wait(event->device, event->native, timeout_ns, error));
    } else if (vendor_backend.event_synchronize != NULL &&
               (timeout_ns == UINT64_MAX || vendor_backend.event_query == NULL)) {
        VENDOR_WORK(event->device, error, status,
                    vendor_backend.event_synchronize(event->device, event->native, error));
    } else {
        status = vendor_poll(ask, event, timeout_ns, "event_synchronize", error);
    }
    if (vendor_is_lost(event->device)) {
        vendor_tasks_abandon(event->device, VENDOR_ANY_OPENING, DS_ACCEL_ERR_DEVICE_LOST);
        vendor_tasks_settle(event->device, NULL, timeout_ns);
    }
    return status;
}

/* May the event have timing? For the program's own event, only the runtime has this fact. */
static int has_timing(const ds_accel_plugin_event_t *event)
{
    return event->is_wrapped || (event->flags & DS_ACCEL_EVENT_TIMING) != 0;
}

static int32_t check_reached(ds_accel_plugin_event_t *event, struct ds_accel_error *error)
{
    int32_t status = DS_ACCEL_NOT_READY;

    if (vendor_event_state(event) == VENDOR_EVENT_RECORDED) {
        status = vendor_backend.event_query != NULL ? ask(event, error) : DS_ACCEL_OK;
    }
    if (status > 0) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "event_elapsed_ms: an event was never recorded, lies in a capture or is "
                           "not reached yet");
    }
    return status;
}

static int32_t ask_elapsed(const ds_accel_plugin_event_t *start, const ds_accel_plugin_event_t *end,
                           double *elapsed_ms_out, struct ds_accel_error *error)
{
    int32_t status;

    VENDOR_WORK(start->device, error, status,
                vendor_backend.event_elapsed_ms(start->device, start->native, end->native,
                                                elapsed_ms_out, error));
    return status;
}

/*
 * Read the elapsed time from a runtime that returns it as an unsigned number, in which a negative
 * time is a huge number. One stream reaches its events in the order in which they were recorded, so
 * the runtime is queried in that order. Two streams may reach their events in any order: both
 * directions are queried, and the smaller result is the time.
 */
static int32_t ask_unsigned(const ds_accel_plugin_event_t *start,
                            const ds_accel_plugin_event_t *end, double *elapsed_ms_out,
                            struct ds_accel_error *error)
{
    const uint64_t first = __atomic_load_n(&start->sequence, __ATOMIC_ACQUIRE);
    const uint64_t last = __atomic_load_n(&end->sequence, __ATOMIC_ACQUIRE);
    const int is_one_stream = first != 0 && last != 0 &&
                              __atomic_load_n(&start->recorded_on, __ATOMIC_RELAXED) ==
                                  __atomic_load_n(&end->recorded_on, __ATOMIC_RELAXED);
    double forth_ms = 0;
    double back_ms = 0;
    int32_t status = DS_ACCEL_OK;

    if (!is_one_stream || first <= last) {
        status = ask_elapsed(start, end, &forth_ms, error);
    }
    if (status == DS_ACCEL_OK && (!is_one_stream || first > last)) {
        status = ask_elapsed(end, start, &back_ms, error);
    }
    if (is_one_stream) {
        *elapsed_ms_out = forth_ms - back_ms; /* one of them is 0: it was not queried */
    } else {
        *elapsed_ms_out = forth_ms <= back_ms ? forth_ms : 0 - back_ms;
    }
    return status;
}

static int32_t vendor_event_elapsed_ms(ds_accel_plugin_event_t *start, ds_accel_plugin_event_t *end,
                                       double *elapsed_ms_out, struct ds_accel_error *error)
{
    double elapsed_ms = 0;
    int32_t status = vendor_check_event(start, "event_elapsed_ms", error);

    if (status == DS_ACCEL_OK) {
        status = vendor_check_event(end, "event_elapsed_ms", error);
    }
    if (status < 0) {
        return status;
    }
    if (elapsed_ms_out == NULL) {
        return vendor_null(error, "event_elapsed_ms", "elapsed_ms_out");
    }
    if (!has_timing(start) || !has_timing(end)) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "event_elapsed_ms: the %s event was created without "
                           "DS_ACCEL_EVENT_TIMING",
                           has_timing(start) ? "end" : "start");
    }
    if (!vendor_backend.tracks_captures) {
        status = check_reached(start, error);
        if (status == DS_ACCEL_OK) {
            status = check_reached(end, error);
        }
    }
    if (status == DS_ACCEL_OK) {
        status = vendor_backend.times_are_unsigned ? ask_unsigned(start, end, &elapsed_ms, error)
                                                   : ask_elapsed(start, end, &elapsed_ms, error);
    }
    if (status == DS_ACCEL_OK) {
        *elapsed_ms_out = elapsed_ms;
    }
    return status;
}

void vendor_event_fill(struct ds_accel_plugin *table)
{
    const struct vendor_backend *backend = &vendor_backend;

    if (backend->event_create == NULL) {
        return;
    }
    table->event_create = vendor_event_create;
    table->event_destroy = vendor_event_destroy;
    table->event_record = backend->event_record != NULL ? vendor_event_record : NULL;
    table->event_query = backend->event_query != NULL ? vendor_event_query : NULL;
    table->event_synchronize = backend->event_wait != NULL || backend->event_synchronize != NULL ||
                                       backend->event_query != NULL
                                   ? vendor_event_synchronize
                                   : NULL;
    table->event_elapsed_ms = backend->event_elapsed_ms != NULL ? vendor_event_elapsed_ms : NULL;
}
