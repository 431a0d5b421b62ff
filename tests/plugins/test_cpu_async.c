/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The cpu plugin with option async, where each stream has a queue and a thread: the order of work,
 * waits with a timeout, and memory. No test in this file depends on the speed of the machine.
 */
#include "cpu_async.h"

#include <pthread.h>

static void ask_for_async(void)
{
    unsetenv("LOCAL_SIZE");
    unsetenv("LOCAL_RANK");
    setenv("DS_ACCEL_CPU_ASYNC", "true", 1);
}

TestSuite(plugin_cpu_async, .init = ask_for_async, .timeout = 120);

/* ---- facts of the backend -------------------------------------------------------------------- */

Test(plugin_cpu_async, says_that_it_is_not_synchronized)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    char *report;

    open_cpu();
    EXPECT_OK(ds_accel_device_info(device, &info));
    cr_expect_eq(info.flags &
                     (DS_ACCEL_FLAG_SYNCHRONIZED | DS_ACCEL_FLAG_HOST_TIMERS |
                      DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES | DS_ACCEL_FLAG_HANDLES_BACKPRESSURE |
                      DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS),
                 0);
    cr_expect_neq(info.flags & DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY, 0);
    report = test_report(context, DS_ACCEL_REPORT_INFO, NULL, DS_ACCEL_FORMAT_JSON);
    EXPECT_HAS(report, "\"is_synchronized_device\": false");
    EXPECT_HAS(report, "\"use_host_timers\": false");
    ds_accel_free_text(report);
    close_cpu();
}

Test(plugin_cpu_async, an_option_that_is_none_is_refused)
{
    struct ds_accel_candidate candidate;

    setenv("DS_ACCEL_CPU_ASYNC", "yes", 1);
    create_context(NULL);
    cr_expect_lt(ds_accel_detect(context), 0);
    candidate = test_candidate(context, "cpu");
    cr_expect_str_eq(candidate.reason, "bad_option");
    EXPECT_HAS(candidate.detail, "option async: \"yes\" is neither \"true\" nor \"false\"");
    ds_accel_destroy(context);
}

/* ---- order ---------------------------------------------------------------------------------- */

struct note {
    int *list;
    int *count;
    int value;
};

static void take_note(void *data, int32_t status)
{
    const struct note *note = data;

    note->list[(*note->count)++] = status == DS_ACCEL_OK ? note->value : -1;
}

Test(plugin_cpu_async, the_work_of_a_stream_is_done_in_order)
{
    enum {
        COUNT = 5000
    };
    static struct note notes[COUNT];
    static int list[COUNT];
    ds_accel_plugin_stream_t *stream;
    int count = 0;

    open_cpu();
    stream = make_stream();
    for (int i = 0; i < COUNT; i++) {
        notes[i] = (struct note){list, &count, i};
        ASSERT_OK(table->stream_host_task(stream, take_note, &notes[i], &error));
    }
    finish(stream);
    cr_assert_eq(count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(list[i], i);
    }
    table->stream_destroy(stream);
    close_cpu();
}

Test(plugin_cpu_async, a_call_returns_before_its_work_is_done)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    unsigned char from[100];
    unsigned char to[100] = {0};

    open_cpu();
    stream = make_stream();
    event = make_event();
    memset(from, 7, sizeof(from));
    EXPECT_OK(table->stream_query(stream, &error));
    hold(stream, &gate);
    wait_for_arrival(&gate);
    cr_expect_eq(table->stream_synchronize(stream, 1000000, &error), DS_ACCEL_ERR_TIMEOUT);
    copy(stream, to, from, sizeof(to));
    EXPECT_OK(table->event_record(event, stream, &error));
    cr_expect_eq(table->stream_query(stream, &error), DS_ACCEL_NOT_READY);
    cr_expect_eq(table->event_query(event, &error), DS_ACCEL_NOT_READY);
    cr_expect_eq(to[0], 0);
    open_gate(&gate);
    EXPECT_OK(table->event_synchronize(event, UINT64_MAX, &error));
    cr_expect(to[0] == 7 && to[99] == 7);
    EXPECT_OK(table->event_query(event, &error));
    finish(stream);
    EXPECT_OK(table->stream_query(stream, &error));
    table->event_destroy(event);
    table->stream_destroy(stream);
    close_cpu();
}

Test(plugin_cpu_async, streams_do_not_wait_for_each_other)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *first;
    ds_accel_plugin_stream_t *second;
    ds_accel_plugin_stream_t *standard;
    unsigned char bytes[3] = {0};

    open_cpu();
    first = make_stream();
    second = make_stream();
    ASSERT_OK(table->stream_get_default(handle, &standard, &error));
    hold(first, &gate);
    put(first, &bytes[0], 1);
    wait_for_arrival(&gate);
    put(second, &bytes[1], 2);
    put(standard, &bytes[2], 3);
    finish(second);
    finish(standard);
    cr_expect(bytes[0] == 0 && bytes[1] == 2 && bytes[2] == 3);
    cr_expect_eq(table->stream_query(first, &error), DS_ACCEL_NOT_READY);
    open_gate(&gate);
    finish(first);
    cr_expect_eq(bytes[0], 1);
    table->stream_destroy(first);
    table->stream_destroy(second);
    close_cpu();
}

Test(plugin_cpu_async, a_wait_for_an_event_orders_streams)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *first;
    ds_accel_plugin_stream_t *second;
    ds_accel_plugin_event_t *event;
    unsigned char source = 0;
    unsigned char target = 9;

    open_cpu();
    first = make_stream();
    second = make_stream();
    event = make_event();
    EXPECT_OK(table->stream_wait_event(second, event, &error)); /* never recorded: no wait */
    finish(second);
    hold(first, &gate);
    put(first, &source, 5);
    EXPECT_OK(table->event_record(event, first, &error));
    EXPECT_OK(table->stream_wait_event(second, event, &error));
    copy(second, &target, &source, 1);
    EXPECT_OK(table->stream_wait_event(first, event, &error)); /* an event recorded on the same
                                                                * stream: no deadlock */
    cr_expect_eq(table->stream_query(second, &error), DS_ACCEL_NOT_READY);
    EXPECT_FAIL(table->stream_synchronize(second, 1000000, &error), DS_ACCEL_ERR_TIMEOUT, "left");
    open_gate(&gate);
    finish(second);
    cr_expect_eq(target, 5);
    finish(first);
    table->event_destroy(event);
    table->stream_destroy(first);
    table->stream_destroy(second);
    close_cpu();
}

/* The second recording is queued after a gate that is opened only when the waiting stream has done
   its work. */
Test(plugin_cpu_async, a_wait_is_for_the_recording_at_the_time_of_the_call)
{
    struct gate early = GATE;
    struct gate late = GATE;
    ds_accel_plugin_stream_t *first;
    ds_accel_plugin_stream_t *second;
    ds_accel_plugin_event_t *event;
    unsigned char bytes[2] = {0};

    open_cpu();
    first = make_stream();
    second = make_stream();
    event = make_event();
    hold(first, &early);
    put(first, &bytes[0], 1);
    EXPECT_OK(table->event_record(event, first, &error));
    EXPECT_OK(table->stream_wait_event(second, event, &error));
    copy(second, &bytes[1], &bytes[0], 1);
    hold(first, &late);
    EXPECT_OK(table->event_record(event, first, &error));
    open_gate(&early);
    finish(second);
    cr_expect_eq(bytes[1], 1);
    cr_expect_eq(table->event_query(event, &error), DS_ACCEL_NOT_READY);
    open_gate(&late);
    EXPECT_OK(table->event_synchronize(event, UINT64_MAX, &error));
    table->event_destroy(event);
    table->stream_destroy(first);
    table->stream_destroy(second);
    close_cpu();
}

Test(plugin_cpu_async, an_event_may_go_while_a_stream_waits_for_it)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *first;
    ds_accel_plugin_stream_t *second;
    ds_accel_plugin_event_t *event;
    unsigned char bytes[2] = {0};

    open_cpu();
    first = make_stream();
    second = make_stream();
    event = make_event();
    hold(first, &gate);
    put(first, &bytes[0], 1);
    EXPECT_OK(table->event_record(event, first, &error));
    EXPECT_OK(table->stream_wait_event(second, event, &error));
    copy(second, &bytes[1], &bytes[0], 1);
    table->event_destroy(event);
    table->stream_destroy(first);
    cr_expect_eq(table->stream_query(second, &error), DS_ACCEL_NOT_READY);
    open_gate(&gate);
    finish(second);
    cr_expect_eq(bytes[1], 1);
    table->stream_destroy(second);
    close_cpu();
}

Test(plugin_cpu_async, the_work_of_a_destroyed_stream_is_done)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    unsigned char byte = 0;

    open_cpu();
    stream = make_stream();
    event = make_event();
    hold(stream, &gate);
    put(stream, &byte, 4);
    EXPECT_OK(table->event_record(event, stream, &error));
    table->stream_destroy(stream); /* returns, although the gate is still closed */
    cr_expect_eq(byte, 0);
    cr_expect_eq(table->event_query(event, &error), DS_ACCEL_NOT_READY);
    EXPECT_FAIL(table->device_synchronize(handle, 0, &error), DS_ACCEL_ERR_TIMEOUT, "work is left");
    open_gate(&gate);
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    cr_expect_eq(byte, 4);
    EXPECT_OK(table->event_query(event, &error));
    stream = make_stream();
    hold(stream, &gate);
    put(stream, &byte, 5);
    table->stream_destroy(stream);
    table->event_destroy(event);
    close_cpu(); /* waits for the work of the destroyed stream */
    cr_expect_eq(byte, 5);
}

/* ---- waits with a timeout ------------------------------------------------------------------- */

Test(plugin_cpu_async, waits_end_when_their_time_has_passed)
{
    static const uint64_t timeouts[] = {0, 1, 1000000};
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;

    open_cpu();
    stream = make_stream();
    event = make_event();
    hold(stream, &gate);
    EXPECT_OK(table->event_record(event, stream, &error));
    for (size_t i = 0; i < 3; i++) {
        EXPECT_FAIL(table->stream_synchronize(stream, timeouts[i], &error), DS_ACCEL_ERR_TIMEOUT,
                    "stream_synchronize: work is left");
        EXPECT_FAIL(table->device_synchronize(handle, timeouts[i], &error), DS_ACCEL_ERR_TIMEOUT,
                    "device_synchronize: work is left");
        EXPECT_FAIL(table->event_synchronize(event, timeouts[i], &error), DS_ACCEL_ERR_TIMEOUT,
                    "event_synchronize: the event is not reached");
    }
    open_gate(&gate);
    EXPECT_OK(table->event_synchronize(event, UINT64_MAX - 1, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX - 1, &error));
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    EXPECT_OK(table->stream_synchronize(stream, 0, &error));
    table->event_destroy(event);
    table->stream_destroy(stream);
    close_cpu();
}

Test(plugin_cpu_async, a_device_waits_for_its_own_streams)
{
    struct gate gate = GATE;
    ds_accel_device_t *second;
    ds_accel_plugin_device_t *second_handle;
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_stream_t *waiting;
    ds_accel_plugin_event_t *event;
    unsigned char byte = 0;

    setenv("LOCAL_SIZE", "2", 1);
    open_cpu();
    cr_assert_eq(ds_accel_device_open(context, 1, &second), DS_ACCEL_OK);
    second_handle = ds_accel_device_handle(second);
    ASSERT_OK(table->stream_create(second_handle, 0, 0, &stream, &error));
    waiting = make_stream();
    event = make_event();
    hold(stream, &gate);
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    EXPECT_FAIL(table->device_synchronize(second_handle, 0, &error), DS_ACCEL_ERR_TIMEOUT, "left");
    /* Events also order streams of different devices. */
    put(stream, &byte, 1);
    EXPECT_OK(table->event_record(event, stream, &error));
    EXPECT_OK(table->stream_wait_event(waiting, event, &error));
    EXPECT_FAIL(table->device_synchronize(handle, 1000000, &error), DS_ACCEL_ERR_TIMEOUT, "left");
    open_gate(&gate);
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    cr_expect_eq(byte, 1);
    EXPECT_OK(table->device_synchronize(second_handle, UINT64_MAX, &error));
    table->event_destroy(event);
    table->stream_destroy(waiting);
    table->stream_destroy(stream);
    ds_accel_device_close(second);
    close_cpu();
}

static void sleep_a_little(void *data, int32_t status)
{
    const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};

    (void)data;
    (void)status;
    nanosleep(&pause, NULL);
}

Test(plugin_cpu_async, events_measure_the_time_of_the_stream)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *start;
    ds_accel_plugin_event_t *end;
    double elapsed = 0;

    open_cpu();
    stream = make_stream();
    start = make_event();
    end = make_event();
    EXPECT_OK(table->event_record(start, stream, &error));
    EXPECT_OK(table->stream_host_task(stream, sleep_a_little, NULL, &error));
    hold(stream, &gate);
    EXPECT_OK(table->event_record(end, stream, &error));
    EXPECT_OK(table->event_synchronize(start, UINT64_MAX, &error));
    EXPECT_FAIL(table->event_elapsed_ms(start, end, &elapsed, &error), DS_ACCEL_ERR_STATE,
                "the end event is not reached yet");
    open_gate(&gate);
    EXPECT_OK(table->event_synchronize(end, UINT64_MAX, &error));
    EXPECT_OK(table->event_elapsed_ms(start, end, &elapsed, &error));
    cr_expect_geq(elapsed, 5.0);
    table->event_destroy(start);
    table->event_destroy(end);
    table->stream_destroy(stream);
    close_cpu();
}

struct inner_calls {
    ds_accel_plugin_stream_t *stream;
    void *pointer;
    int32_t stream_status;
    int32_t device_status;
    int32_t free_status;
};

static void call_from_task(void *data, int32_t status)
{
    struct inner_calls *calls = data;
    struct ds_accel_error inner = {.struct_size = sizeof(inner)};

    (void)status;
    calls->stream_status = table->stream_synchronize(calls->stream, UINT64_MAX, &inner);
    calls->device_status = table->device_synchronize(handle, UINT64_MAX, &inner);
    calls->free_status = table->mem_free(handle, calls->pointer, &inner);
}

Test(plugin_cpu_async, a_host_task_that_would_wait_for_itself_is_told)
{
    struct inner_calls calls = {0};

    open_cpu();
    calls.stream = make_stream();
    ASSERT_OK(table->mem_alloc(handle, 100, 0, 0, &calls.pointer, &error));
    ASSERT_OK(table->stream_host_task(calls.stream, call_from_task, &calls, &error));
    finish(calls.stream);
    cr_expect_eq(calls.stream_status, DS_ACCEL_ERR_STATE);
    cr_expect_eq(calls.device_status, DS_ACCEL_ERR_STATE);
    cr_expect_eq(calls.free_status, DS_ACCEL_ERR_STATE);
    EXPECT_OK(table->mem_free(handle, calls.pointer, &error));
    table->stream_destroy(calls.stream);
    close_cpu();
}

/* ---- memory --------------------------------------------------------------------------------- */

static void *open_later(void *gate)
{
    wait_for_arrival(gate);
    open_gate(gate);
    return NULL;
}

Test(plugin_cpu_async, freeing_waits_for_the_work_of_every_stream)
{
    ds_accel_plugin_stream_t *stream;
    void *pointers[2] = {NULL, NULL};

    open_cpu();
    stream = make_stream();
    for (int pinned = 0; pinned < 2; pinned++) {
        struct gate gate = GATE;
        unsigned char done = 0;
        pthread_t thread;

        ASSERT_OK(pinned ? table->mem_alloc_pinned(handle, 4096, 0, 0, &pointers[1], &error)
                         : table->mem_alloc(handle, 1 << 20, 0, 0, &pointers[0], &error));
        hold(stream, &gate);
        put(stream, pointers[pinned], 1);
        put(stream, &done, 1);
        cr_assert_eq(pthread_create(&thread, NULL, open_later, &gate), 0);
        EXPECT_OK(pinned ? table->mem_free_pinned(handle, pointers[1], &error)
                         : table->mem_free(handle, pointers[0], &error));
        cr_expect_eq(done, 1);
        cr_assert_eq(pthread_join(thread, NULL), 0);
    }
    table->stream_destroy(stream);
    close_cpu();
}

Test(plugin_cpu_async, stream_ordered_memory_is_freed_when_the_stream_gets_there)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_stream_t *other;
    ds_accel_plugin_event_t *event;
    void *pointer = NULL;
    void *more = NULL;

    open_cpu();
    stream = make_stream();
    other = make_stream();
    event = make_event();
    EXPECT_OK(table->mem_set_limit(handle, 1 << 20, &error));
    ASSERT_OK(table->mem_alloc_async(stream, 1 << 20, 0, NULL, 0, &pointer, &error));
    hold(other, &gate);
    put(other, pointer, 3);
    EXPECT_OK(table->event_record(event, other, &error));
    EXPECT_OK(table->mem_free_async(stream, pointer, &event, 1, &error));
    EXPECT_FAIL(table->mem_free_async(stream, pointer, NULL, 0, &error), DS_ACCEL_ERR_INVALID,
                "no live memory of this");
    EXPECT_FAIL(table->mem_alloc(handle, 1, 0, 0, &more, &error), DS_ACCEL_ERR_NO_MEMORY, "limit");
    cr_expect_eq(table->stream_query(stream, &error), DS_ACCEL_NOT_READY);
    open_gate(&gate);
    finish(stream);
    EXPECT_OK(table->mem_alloc(handle, 1 << 20, 0, 0, &more, &error));
    EXPECT_OK(table->mem_free(handle, more, &error));
    EXPECT_FAIL(table->mem_alloc_async(stream, 1, 0, NULL, 1, &more, &error), DS_ACCEL_ERR_INVALID,
                "waits is NULL");
    table->event_destroy(event);
    table->stream_destroy(other);
    table->stream_destroy(stream);
    close_cpu();
}
