/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Races and handles: events, short-lived streams, several handles of one stream. */
#include "races.h"

/* ---- waits that are easily forgotten -------------------------------------------------------- */

/* The elapsed time has no value before both events are reached, so a loop over the query is a
   wait. */
Test(core_races, the_time_between_two_events_is_known_after_both)
{
    static char host[SIZE];
    ds_accel_event_t *events[2];
    ds_accel_timer_t *timer;
    double elapsed_ms = 0;

    for (size_t i = 0; i < ARRAY_SIZE(accelerators); i++) {
        start(accelerators[i]);
        for (int j = 0; j < 2; j++) {
            MUST(ds_accel_event_create(device, DS_ACCEL_EVENT_TIMING, &events[j]));
        }
        MUST(ds_accel_timer_create(device, &timer));
        for (int is_timer = 0; is_timer < 2; is_timer++) {
            if (is_timer) {
                MUST(ds_accel_timer_start(timer, first));
            }
            MUST(ds_accel_event_record(events[0], first));
            MUST(ds_accel_mem_copy_async(first, host, memory, SIZE, DS_ACCEL_COPY_DEVICE_TO_HOST));
            MUST(ds_accel_event_record(events[1], first));
            if (is_timer) {
                MUST(ds_accel_timer_stop(timer, first));
                MUST(ds_accel_timer_elapsed_ms(timer, &elapsed_ms));
            }
            while (!is_timer && ds_accel_event_elapsed_ms(events[0], events[1], &elapsed_ms) ==
                                    DS_ACCEL_ERR_STATE) {
            }
            MUST(ds_accel_note_access(device, NULL, host, SIZE, DS_ACCEL_ACCESS_WRITE));
            expect_races(0, "the copy was waited for");
        }
        MUST(set(first, memory, 1));
        MUST(ds_accel_event_elapsed_ms(events[0], events[1], &elapsed_ms));
        MUST(set(second, memory, 1));
        expect_races(1, "what was queued behind the second was not");
        ds_accel_timer_destroy(timer);
        ds_accel_event_destroy(events[0]);
        ds_accel_event_destroy(events[1]);
        stop();
    }
}

/* ---- short-lived streams --------------------------------------------------------------------- */

#define MANY_STREAMS 4200 /* more streams than the detector can distinguish at once */

Test(core_races, streams_that_captured_and_ended_leave_room_for_others)
{
    ds_accel_stream_t *stream;
    ds_accel_graph_t *captured;

    start("mock");
    MUST(ds_accel_graph_create(device, &captured));
    for (int i = 0; i < MANY_STREAMS; i++) {
        MUST(ds_accel_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &stream));
        MUST(ds_accel_graph_capture_begin(captured, stream, NULL, DS_ACCEL_CAPTURE_RELAXED));
        MUST(set(stream, memory, 1));
        MUST(ds_accel_graph_capture_end(captured));
        ds_accel_stream_destroy(stream);
    }
    EXPECT_HAS_NOT(test_log, "no more races are reported");
    MUST(set(first, memory, 1));
    MUST(set(second, memory, 1));
    expect_races(1, "and are still found");
    ds_accel_graph_destroy(captured);
    stop();
}

/* ---- several handles of one vendor stream ---------------------------------------------------- */

Test(core_races, handles_of_one_stream_have_one_order)
{
    ds_accel_stream_t *wrapped[2];
    ds_accel_stream_t *again;
    uint64_t native = 0;

    start("mock");
    MUST(ds_accel_stream_native(first, &native));
    for (int i = 0; i < 2; i++) {
        MUST(ds_accel_stream_wrap(device, native, &wrapped[i]));
    }
    MUST(set(first, memory, 1));
    MUST(set(wrapped[0], memory, 2));
    MUST(set(wrapped[1], memory, 3));
    MUST(set(first, memory, 4));
    expect_races(0, "three handles of one");
    MUST(ds_accel_stream_synchronize(wrapped[0]));
    MUST(ds_accel_note_access(device, NULL, memory, 1, DS_ACCEL_ACCESS_WRITE));
    expect_races(0, "to wait for one is to wait for all");
    MUST(set(wrapped[1], memory, 5));
    ds_accel_stream_destroy(wrapped[0]);
    ds_accel_stream_destroy(wrapped[1]);
    ds_accel_stream_destroy(first);
    MUST(set(second, memory, 6));
    expect_races(1, "another stream is another");
    MUST(ds_accel_device_synchronize(device));
    MUST(ds_accel_stream_create(device, 0, 0, &first));
    stop();
    start("mock");
    MUST(ds_accel_stream_native(first, &native));
    /* recorded before the second handle reveals that both handles are one stream */
    MUST(set(first, memory, 1));
    MUST(ds_accel_stream_wrap(device, native, &again));
    MUST(set(again, memory, 2));
    ds_accel_stream_destroy(again);
    MUST(ds_accel_stream_wrap(device, native, &again));
    MUST(set(again, memory, 3));
    MUST(set(first, memory, 4));
    expect_races(0, "one that is wrapped for each use");
    ds_accel_stream_destroy(again);
    stop();
}

/* One handle records the event and the other waits for it, as in two libraries that share an
   event. */
Test(core_races, handles_of_one_event_are_one_mark)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_plugin *table;
    ds_accel_plugin_device_t *handle;
    ds_accel_event_t *event;
    void *wrapped = NULL;
    uint64_t native = 0;
    uint64_t offset_bytes = 0;

    start("mock");
    table = ds_accel_device_table(device);
    handle = ds_accel_device_handle(device);
    MUST(ds_accel_event_create(device, 0, &event));
    MUST(table->native_get(handle, DS_ACCEL_NATIVE_EVENT, event->handle, &native, &offset_bytes,
                           &error));
    MUST(table->native_wrap(handle, DS_ACCEL_NATIVE_EVENT, native, &wrapped, &error));
    MUST(set(first, memory, 1));
    MUST(table->event_record(wrapped, first->handle, &error));
    MUST(ds_accel_stream_wait_event(second, event));
    MUST(set(second, memory, 2));
    expect_races(0, "recorded by the wrapped one");
    MUST(ds_accel_event_record(event, second));
    MUST(table->stream_wait_event(first->handle, wrapped, &error));
    MUST(set(first, memory, 3));
    expect_races(0, "recorded by the other one, when both were one already");
    MUST(ds_accel_event_record(event, first));
    table->event_destroy(wrapped);
    MUST(ds_accel_event_synchronize(event));
    MUST(ds_accel_note_access(device, NULL, memory, 1, DS_ACCEL_ACCESS_WRITE));
    expect_races(0, "the other one goes on");
    ds_accel_event_destroy(event);
    stop();
}
