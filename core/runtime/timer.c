/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Timers: two events of the device, or two readings of the host's clock.
 *
 * A reading of the host's clock is meaningful for a stream only if the stream is idle at that time.
 * On an asynchronous device each reading therefore waits for the stream; events do not wait.
 */
#include "base/clock.h"
#include "base/text.h"
#include "runtime/facts.h"
#include "runtime/handle.h"

enum {
    NOT_STARTED,
    STARTED,
    STOPPED
};

static struct ds_accel__timer *check(ds_accel_timer_t *timer, const char *call)
{
    if (!ds_accel__handle_is_live(timer)) {
        ds_accel__refuse(call, "timer", timer);
        return NULL;
    }
    return (struct ds_accel__timer *)timer;
}

static bool uses_host_clock(const struct ds_accel__known *known)
{
    return (known->info.flags & DS_ACCEL_FLAG_HOST_TIMERS) != 0 ||
           (known->capabilities & DS_ACCEL_CAPABILITY_EVENT_TIMING) == 0;
}

static int32_t make_events(ds_accel_device_t *device, struct ds_accel__timer *timer)
{
    int32_t status = ds_accel_event_create(device, DS_ACCEL_EVENT_TIMING, &timer->start);

    if (status >= 0) {
        status = ds_accel_event_create(device, DS_ACCEL_EVENT_TIMING, &timer->end);
        if (status < 0) {
            ds_accel_event_destroy(timer->start);
        }
    }
    return status;
}

int32_t ds_accel_timer_create(ds_accel_device_t *device, ds_accel_timer_t **timer_out)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, "timer_create");
    const struct ds_accel__known *known;
    struct ds_accel__timer *timer;
    int32_t status;

    if (ours == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    status = ds_accel__device_fork_check(ours);
    known = status >= 0 ? ds_accel__known_get(ours->context, timer_out, &status) : NULL;
    if (known == NULL) {
        return status;
    }
    timer = ds_accel__handle_take(DS_ACCEL__HANDLE_TIMER, ours);
    if (timer == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    timer->table = device->table;
    status = uses_host_clock(known) ? DS_ACCEL_OK : make_events(device, timer);
    if (status < 0) {
        ds_accel__handle_put(DS_ACCEL__HANDLE_TIMER, timer);
        return status;
    }
    ds_accel__child_add(&timer->child);
    *timer_out = (ds_accel_timer_t *)timer;
    return DS_ACCEL_OK;
}

void ds_accel__timer_destroy(struct ds_accel__timer *timer)
{
    ds_accel_event_t *start = timer->start;
    ds_accel_event_t *end = timer->end;

    if (ds_accel__child_remove(&timer->child)) {
        ds_accel__handle_put(DS_ACCEL__HANDLE_TIMER, timer);
        ds_accel_event_destroy(start);
        ds_accel_event_destroy(end);
    }
}

void ds_accel_timer_destroy(ds_accel_timer_t *timer)
{
    struct ds_accel__timer *ours = (struct ds_accel__timer *)timer;

    if (ds_accel__handle_is_live(timer) &&
        ds_accel__device_lets_end(ours->child.device, "timer_destroy")) {
        ds_accel__timer_destroy(ours);
    }
}

/* Record an event in the stream, or read the clock once the stream is idle. */
static int32_t mark(const struct ds_accel__timer *timer, ds_accel_stream_t *stream,
                    const char *call, ds_accel_event_t *event, uint64_t *clock_ns)
{
    struct ds_accel__device *device = timer->child.device;
    const struct ds_accel__stream *theirs;
    uint64_t flags = 0;
    int32_t status = ds_accel__device_fork_check(device);

    if (status < 0) {
        return status;
    }
    theirs = ds_accel__stream_of(device, stream, call);
    if (theirs == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    stream = (ds_accel_stream_t *)&theirs->abi;
    if (event != NULL) {
        return ds_accel_event_record(event, stream);
    }
    status = ds_accel_flags(device->context, &flags, NULL);
    if (status >= 0 && (flags & DS_ACCEL_FLAG_SYNCHRONIZED) == 0) {
        status = ds_accel_stream_synchronize(stream);
    }
    *clock_ns = ds_accel__now_ns();
    return status;
}

int32_t ds_accel_timer_start(ds_accel_timer_t *timer, ds_accel_stream_t *stream)
{
    struct ds_accel__timer *ours = check(timer, "timer_start");
    int32_t status;

    if (ours == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    status = mark(ours, stream, "timer_start", ours->start, &ours->start_ns);
    ours->state = status < 0 ? NOT_STARTED : STARTED;
    return status;
}

int32_t ds_accel_timer_stop(ds_accel_timer_t *timer, ds_accel_stream_t *stream)
{
    struct ds_accel__timer *ours = check(timer, "timer_stop");
    int32_t status;

    if (ours == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    if (ours->state != STARTED) {
        return ds_accel__error(DS_ACCEL_ERR_STATE, "timer_stop: the timer was not started");
    }
    status = mark(ours, stream, "timer_stop", ours->end, &ours->end_ns);
    if (status >= 0) {
        ours->state = STOPPED;
    }
    return status;
}

int32_t ds_accel_timer_elapsed_ms(ds_accel_timer_t *timer, double *elapsed_ms_out)
{
    struct ds_accel__timer *ours = check(timer, "timer_elapsed_ms");
    int32_t status;

    if (ours == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    if (elapsed_ms_out == NULL) {
        return ds_accel__refuse("timer_elapsed_ms", "output", NULL);
    }
    if (ours->state != STOPPED) {
        return ds_accel__error(DS_ACCEL_ERR_STATE, "timer_elapsed_ms: the timer was not stopped");
    }
    if (ours->start == NULL) {
        *elapsed_ms_out = (double)(ours->end_ns - ours->start_ns) / 1e6;
        return DS_ACCEL_OK;
    }
    status = ds_accel_event_synchronize(ours->end);
    return status < 0 ? status : ds_accel_event_elapsed_ms(ours->start, ours->end, elapsed_ms_out);
}
