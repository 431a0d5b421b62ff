/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: events. */
#include "base/clock.h"
#include "base/text.h"
#include "conformance/conformance.h"

#include <pthread.h>
#include <time.h>

#define GROUP "event"

static void check_never_recorded(struct ds_accel__run *run)
{
    ds_accel_plugin_event_t *event = ds_accel__event(run, 0);

    WANT(run, DS_ACCEL_OK, event_query, event);
    WANT(run, DS_ACCEL_OK, event_synchronize, event, UINT64_MAX);
    WANT(run, DS_ACCEL_OK, stream_wait_event, run->stream, event);
    ds_accel__wait(run, run->stream);
    run->table.event_destroy(event);
}

static void check_reached(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
    ds_accel_plugin_event_t *event = ds_accel__event(run, DS_ACCEL_EVENT_BLOCKING_SYNC);
    struct ds_accel__slow slow;
    int32_t status;

    ds_accel__slow_start(run, &slow, stream);
    WANT(run, DS_ACCEL_OK, event_record, event, stream);
    status = CALL(run, event_query, event);
    EXPECT(run, status == DS_ACCEL_OK || status == DS_ACCEL_NOT_READY,
           "event_query: expected DS_ACCEL_OK or DS_ACCEL_NOT_READY, got %s",
           ds_accel__status_text(status));
    EXPECT(run, status != DS_ACCEL_OK || atomic_load(&slow.is_done),
           "event_query: DS_ACCEL_OK before the work was done");
    /* If the query reports the event as complete, a wait with a timeout of 0 must succeed. */
    WANT(run, DS_ACCEL_OK, event_synchronize, event, status == DS_ACCEL_OK ? 0 : UINT64_MAX);
    EXPECT(run, atomic_load(&slow.is_done), "event_synchronize returned before the work was done");
    WANT(run, DS_ACCEL_OK, event_query, event);
    run->table.event_destroy(event);
    run->table.stream_destroy(stream);
}

static void check_timeout(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
    ds_accel_plugin_event_t *event = ds_accel__event(run, 0);
    struct ds_accel__slow slow;
    int32_t status;

    ds_accel__slow_start(run, &slow, stream);
    WANT(run, DS_ACCEL_OK, event_record, event, stream);
    status = CALL(run, event_synchronize, event, 0);
    EXPECT(run, status == DS_ACCEL_OK || status == DS_ACCEL_ERR_TIMEOUT,
           "event_synchronize with timeout 0: got %s", ds_accel__status_text(status));
    EXPECT(run, status != DS_ACCEL_OK || atomic_load(&slow.is_done),
           "event_synchronize with timeout 0: DS_ACCEL_OK before the work was done");
    WANT(run, DS_ACCEL_OK, event_synchronize, event, UINT64_MAX);
    run->table.event_destroy(event);
    run->table.stream_destroy(stream);
}

/* Check an event that is recorded a second time, after more work. A wait for the event must then
 * wait for this work, so the event `between`, recorded after the same work, must be complete,
 * too. */
static void check_record_again(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
    ds_accel_plugin_event_t *event = ds_accel__event(run, 0);
    ds_accel_plugin_event_t *between = ds_accel__event(run, 0);
    struct ds_accel__slow slow;

    WANT(run, DS_ACCEL_OK, event_record, event, stream);
    WANT(run, DS_ACCEL_OK, event_synchronize, event, UINT64_MAX);
    ds_accel__slow_start(run, &slow, stream);
    WANT(run, DS_ACCEL_OK, event_record, between, stream);
    WANT(run, DS_ACCEL_OK, event_record, event, stream);
    WANT(run, DS_ACCEL_OK, event_synchronize, event, UINT64_MAX);
    EXPECT(run, atomic_load(&slow.is_done) && CALL(run, event_query, between) == DS_ACCEL_OK,
           "the event is reached, and what was queued before its second mark is not done");
    run->table.event_destroy(event);
    run->table.event_destroy(between);
    run->table.stream_destroy(stream);
}

/* A host task that takes a while, and measures its duration by the host's clock. */
struct timed_task {
    double begin_ms, end_ms;
    atomic_bool has_ended;
};

static void take_time(void *user_data, int32_t status)
{
    struct timed_task *task = user_data;

    (void)status;
    task->begin_ms = (double)ds_accel__now_ns() / 1e6;
    nanosleep(&(struct timespec){.tv_nsec = 5 * DS_ACCEL__SLOW_NS}, NULL);
    task->end_ms = (double)ds_accel__now_ns() / 1e6;
    atomic_store(&task->has_ended, true);
}

/*
 * Check the unit of the time between two events: it is at least the duration of the work between
 * them, and at most the time that the host measured around them. A tolerance of a factor of 2
 * allows for the inaccuracy of the device's clock; a wrong unit is a factor of 1000.
 */
static void check_unit(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
    ds_accel_plugin_event_t *first = ds_accel__event(run, DS_ACCEL_EVENT_TIMING);
    ds_accel_plugin_event_t *last = ds_accel__event(run, DS_ACCEL_EVENT_TIMING);
    struct timed_task task = {0};
    double begin_ms = (double)ds_accel__now_ns() / 1e6;
    double elapsed = -1;
    double around;
    double within;
    /* `last` is reported complete before the work is done; DSA-P56 covers this defect */
    bool is_early;

    WANT(run, DS_ACCEL_OK, event_record, first, stream);
    WANT(run, DS_ACCEL_OK, stream_host_task, stream, take_time, &task);
    WANT(run, DS_ACCEL_OK, event_record, last, stream);
    is_early = run->table.event_query != NULL && CALL(run, event_query, last) == DS_ACCEL_OK;
    is_early = is_early && !atomic_load(&task.has_ended);
    ds_accel__wait(run, stream);
    around = (double)ds_accel__now_ns() / 1e6 - begin_ms;
    within = task.end_ms - task.begin_ms;
    WANT(run, DS_ACCEL_OK, event_elapsed_ms, first, last, &elapsed);
    EXPECT(run, is_early || (elapsed >= within / 2 && elapsed <= 2 * around + 1),
           "%g ms between two events, with a task of %g ms between them, and all within %g ms",
           elapsed, within, around);
    run->table.event_destroy(first);
    run->table.event_destroy(last);
    run->table.stream_destroy(stream);
}

static void check_times(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
    ds_accel_plugin_event_t *events[3];
    double first = -1;
    double second = -1;
    double whole = -1;
    struct ds_accel__slow slow[2];

    for (int i = 0; i < 3; i++) {
        events[i] = ds_accel__event(run, DS_ACCEL_EVENT_TIMING);
    }
    for (int i = 0; i < 3; i++) {
        WANT(run, DS_ACCEL_OK, event_record, events[i], stream);
        if (i < 2) {
            ds_accel__slow_start(run, &slow[i], stream);
        }
    }
    ds_accel__wait(run, stream);
    WANT(run, DS_ACCEL_OK, event_elapsed_ms, events[0], events[1], &first);
    WANT(run, DS_ACCEL_OK, event_elapsed_ms, events[1], events[2], &second);
    WANT(run, DS_ACCEL_OK, event_elapsed_ms, events[0], events[2], &whole);
    EXPECT(run, first >= 0 && second >= 0 && whole >= 0, "%g ms, %g ms and %g ms in one stream",
           first, second, whole);
    /* The tolerance allows for vendors' floats of seven digits and clock resolutions of half a
     * microsecond. */
    EXPECT(run, first + second - whole < 0.01 && whole - first - second < 0.01,
           "%g ms and %g ms are together %g ms", first, second, whole);
    for (int i = 0; i < 3; i++) {
        run->table.event_destroy(events[i]);
    }
    run->table.stream_destroy(stream);
}

static void check_no_times(struct ds_accel__run *run)
{
    ds_accel_plugin_event_t *untimed = ds_accel__event(run, 0);
    ds_accel_plugin_event_t *timed = ds_accel__event(run, DS_ACCEL_EVENT_TIMING);
    ds_accel_plugin_event_t *unrecorded = ds_accel__event(run, DS_ACCEL_EVENT_TIMING);
    double time = 0;

    WANT(run, DS_ACCEL_OK, event_record, untimed, run->stream);
    WANT(run, DS_ACCEL_OK, event_record, timed, run->stream);
    ds_accel__wait(run, run->stream);
    WANT(run, DS_ACCEL_ERR_STATE, event_elapsed_ms, untimed, timed, &time);
    WANT(run, DS_ACCEL_ERR_STATE, event_elapsed_ms, timed, untimed, &time);
    WANT(run, DS_ACCEL_ERR_STATE, event_elapsed_ms, timed, unrecorded, &time);
    run->table.event_destroy(untimed);
    run->table.event_destroy(timed);
    run->table.event_destroy(unrecorded);
}

/* A thread that uses another thread's stream, as an allocator does when memory moves between
 * threads. */
struct other_thread {
    struct ds_accel__run *run;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    int32_t statuses[2];
};

#define ROUNDS 200

static void *mark_stream(void *given)
{
    struct other_thread *other = given;
    struct ds_accel_plugin *table = &other->run->table;

    for (int i = 0; i < ROUNDS; i++) {
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        int32_t status = table->event_record(other->event, other->stream, &error);

        other->statuses[0] = status < 0 ? status : other->statuses[0];
        status = table->stream_wait_event(other->stream, other->event, &error);
        other->statuses[1] = status < 0 ? status : other->statuses[1];
    }
    return NULL;
}

static void check_other_thread(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
    struct other_thread other = {run, stream, ds_accel__event(run, 0), {DS_ACCEL_OK, DS_ACCEL_OK}};
    ds_accel_plugin_event_t *own = ds_accel__event(run, 0);
    pthread_t thread;

    EXPECT(run, pthread_create(&thread, NULL, mark_stream, &other) == 0,
           "no thread can be created");
    for (int i = 0; i < ROUNDS; i++) {
        WANT(run, DS_ACCEL_OK, event_record, own, stream);
    }
    pthread_join(thread, NULL);
    EXPECT(run, other.statuses[0] == DS_ACCEL_OK, "event_record by another thread: %s",
           ds_accel__status_text(other.statuses[0]));
    EXPECT(run, other.statuses[1] == DS_ACCEL_OK, "stream_wait_event by another thread: %s",
           ds_accel__status_text(other.statuses[1]));
    ds_accel__wait(run, stream);
    run->table.event_destroy(own);
    run->table.event_destroy(other.event);
    run->table.stream_destroy(stream);
}

#define DEVICE DS_ACCEL__STAGE_DEVICE
#define TASKS \
    SLOT(event_create), SLOT(event_record), SLOT(event_synchronize), SLOT(stream_host_task), \
        SLOT(stream_create)

static const struct ds_accel__check checks[] = {
    {55,
     GROUP,
     "an event that was never recorded",
     DEVICE,
     0,
     check_never_recorded,
     {SLOT(event_create), SLOT(event_query), SLOT(event_synchronize), SLOT(stream_wait_event),
      SLOT(stream_create)}},
    {56, GROUP, "an event after work", DEVICE, 0, check_reached, {TASKS, SLOT(event_query)}},
    {47, GROUP, "the timeout of an event", DEVICE, 0, check_timeout, {TASKS}},
    {57,
     GROUP,
     "an event that is recorded twice",
     DEVICE,
     0,
     check_record_again,
     {TASKS, SLOT(event_query)}},
    {58, GROUP, "times of three events", DEVICE, 0, check_times, {TASKS, SLOT(event_elapsed_ms)}},
    {58,
     GROUP,
     "times compared with the host's",
     DEVICE,
     0,
     check_unit,
     {TASKS, SLOT(event_elapsed_ms)}},
    {59,
     GROUP,
     "events without a time",
     DEVICE,
     0,
     check_no_times,
     {SLOT(event_create), SLOT(event_record), SLOT(event_elapsed_ms), SLOT(stream_create)}},
    {105,
     GROUP,
     "marks by another thread",
     DEVICE,
     0,
     check_other_thread,
     {SLOT(event_create), SLOT(event_record), SLOT(stream_wait_event), SLOT(stream_create)}},
};

const struct ds_accel__check_list ds_accel__checks_event = {checks, ARRAY_SIZE(checks)};
