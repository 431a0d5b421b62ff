/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Streams, events, graphs. The default stream is one that the frame makes: what the NULL handle
 * stands for is not documented.
 *
 * The number that says "not yet" is not known, but its name is: the first failure of a query whose
 * name it is tells the number, which is compared from then on.
 */
#include "supa.h"

static int is_not_ready(struct supa *supa, supa_error_t code)
{
    int known = atomic_load_explicit(&supa->not_ready, memory_order_relaxed);

    if (code == 0 || known != 0) {
        return code != 0 && code == known;
    }
    if (!supa_is(supa, code, "NotReady")) {
        return 0;
    }
    atomic_store_explicit(&supa->not_ready, code, memory_order_relaxed);
    return 1;
}

int32_t supa_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                           void **native_out, struct ds_accel_error *error)
{
    unsigned int native_flags =
        (flags & DS_ACCEL_STREAM_NON_BLOCKING) != 0 ? SUPA_STREAM_NON_BLOCKING : 0;

    (void)priority; /* 0: the hardware has no other */
    return SUPA_CHECK(device, API_OF(device)->stream_create(native_out, native_flags), error,
                      "StreamCreateWithFlags(flags %u)", native_flags);
}

void supa_stream_destroy(ds_accel_plugin_device_t *device, void *native)
{
    (void)supa_code(SUPA_OF(device), API_OF(device)->stream_destroy(native));
}

int32_t supa_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                                struct ds_accel_error *error)
{
    return SUPA_CHECK(device, API_OF(device)->stream_synchronize(native), error,
                      "StreamSynchronize(%p)", native);
}

int32_t supa_stream_query(ds_accel_plugin_device_t *device, void *native,
                          struct ds_accel_error *error)
{
    supa_error_t code = supa_code(SUPA_OF(device), API_OF(device)->stream_query(native));

    return is_not_ready(SUPA_OF(device), code)
               ? DS_ACCEL_NOT_READY
               : vendor_check(device->instance, device, code, error, "StreamQuery(%p)", native);
}

int32_t supa_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                               struct ds_accel_error *error)
{
    return SUPA_CHECK(device, API_OF(device)->stream_wait_event(native, native_event, 0), error,
                      "StreamWaitEvent(%p, %p)", native, native_event);
}

int32_t supa_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                              void (*call)(void *argument), void *argument,
                              struct ds_accel_error *error)
{
    return SUPA_CHECK(device, API_OF(device)->stream_task(native, call, argument), error,
                      "LaunchHostFunc(%p)", native);
}

/* -- events -- */

int32_t supa_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                          struct ds_accel_error *error)
{
    unsigned int native_flags =
        ((flags & DS_ACCEL_EVENT_TIMING) == 0 ? SUPA_EVENT_DISABLE_TIMING : 0u) |
        ((flags & DS_ACCEL_EVENT_BLOCKING_SYNC) != 0 ? SUPA_EVENT_BLOCKING_SYNC : 0u);

    if ((flags & DS_ACCEL_EVENT_INTERPROCESS) != 0) {
        return vendor_unsupported(error, "event_create",
                                  "flag 0x4: the size of SUPA's IPC handles is not verified");
    }
    return SUPA_CHECK(device, API_OF(device)->event_create(native_out, native_flags), error,
                      "EventCreateWithFlags(flags %u)", native_flags);
}

void supa_event_destroy(ds_accel_plugin_device_t *device, void *native)
{
    (void)supa_code(SUPA_OF(device), API_OF(device)->event_destroy(native));
}

int32_t supa_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                          struct ds_accel_error *error)
{
    return SUPA_CHECK(device, API_OF(device)->event_record(native, native_stream), error,
                      "EventRecord(%p, %p)", native, native_stream);
}

int32_t supa_event_query(ds_accel_plugin_device_t *device, void *native,
                         struct ds_accel_error *error)
{
    supa_error_t code = supa_code(SUPA_OF(device), API_OF(device)->event_query(native));

    return is_not_ready(SUPA_OF(device), code)
               ? DS_ACCEL_NOT_READY
               : vendor_check(device->instance, device, code, error, "EventQuery(%p)", native);
}

int32_t supa_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                               struct ds_accel_error *error)
{
    return SUPA_CHECK(device, API_OF(device)->event_synchronize(native), error,
                      "EventSynchronize(%p)", native);
}

int32_t supa_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                              double *elapsed_ms_out, struct ds_accel_error *error)
{
    float milliseconds = 0;
    supa_error_t code =
        supa_code(SUPA_OF(device), API_OF(device)->event_elapsed(&milliseconds, start, end));
    int32_t status;

    if (is_not_ready(SUPA_OF(device), code)) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "EventElapsedTime: an event was not reached yet");
    }
    status =
        vendor_check(device->instance, device, code, error, "EventElapsedTime(%p, %p)", start, end);
    if (status == DS_ACCEL_OK) {
        *elapsed_ms_out = milliseconds;
    }
    return status;
}

/* -- graphs -- */

/*
 * Always relaxed: no call is known that would let a thread allocate beside a capture of another
 * mode. What such a mode would refuse is then not refused.
 */
int32_t supa_capture_begin(ds_accel_plugin_device_t *device, void *native_stream, uint32_t mode,
                           struct ds_accel_error *error)
{
    (void)mode;
    return SUPA_CHECK(device, API_OF(device)->capture_begin(native_stream, SUPA_CAPTURE_RELAXED),
                      error, "StreamBeginCapture(%p, mode %d)", native_stream,
                      SUPA_CAPTURE_RELAXED);
}

int32_t supa_capture_end(ds_accel_plugin_device_t *device, void *native_stream, void **native_out,
                         struct ds_accel_error *error)
{
    return SUPA_CHECK(device, API_OF(device)->capture_end(native_stream, native_out), error,
                      "StreamEndCapture(%p)", native_stream);
}

int32_t supa_capture_status(ds_accel_plugin_device_t *device, void *native_stream,
                            uint32_t *status_out, struct ds_accel_error *error)
{
    int capturing = 0;
    int32_t status = SUPA_CHECK(device, API_OF(device)->capture_status(native_stream, &capturing),
                                error, "StreamIsCapturing(%p)", native_stream);

    if (status == DS_ACCEL_OK) {
        *status_out = capturing >= 0 && capturing <= 2 ? (uint32_t)capturing
                                                       : DS_ACCEL_CAPTURING_BROKEN;
    }
    return status;
}

void supa_graph_destroy(ds_accel_plugin_device_t *device, void *native)
{
    (void)supa_code(SUPA_OF(device), API_OF(device)->graph_destroy(native));
}

int32_t supa_graph_instantiate(ds_accel_plugin_device_t *device, void *native, void **exec_out,
                               struct ds_accel_error *error)
{
    const struct supa_api *api = API_OF(device);
    supa_error_t code = api->graph_instantiate_log != NULL
                            ? api->graph_instantiate_log(exec_out, native, NULL, NULL, 0)
                            : api->graph_instantiate_flags(exec_out, native, 0);

    return SUPA_CHECK(device, code, error, "GraphInstantiate(%p)", native);
}

void supa_graph_exec_destroy(ds_accel_plugin_device_t *device, void *exec)
{
    (void)supa_code(SUPA_OF(device), API_OF(device)->graph_exec_destroy(exec));
}

int32_t supa_graph_launch(ds_accel_plugin_device_t *device, void *exec, void *native_stream,
                          struct ds_accel_error *error)
{
    return SUPA_CHECK(device, API_OF(device)->graph_launch(exec, native_stream), error,
                      "GraphLaunch(%p, %p)", exec, native_stream);
}
