/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The mock plugin: streams, events and native handles. Work that must stay unfinished takes an
 * hour, so no test depends on speed.
 */
#include "mock.h"

/* ---- streams and events --------------------------------------------------------------------- */

Test(plugin_mock, work_is_not_ready_before_its_time)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;

    option("copy_latency_ns", HOUR_NS);
    open_mock();
    stream = make_stream();
    event = make_event();
    EXPECT_OK(table->stream_query(stream, &error));
    EXPECT_OK(table->event_query(event, &error));
    EXPECT_OK(table->event_record(event, stream, &error));
    queue_copy(stream);
    cr_expect_eq(table->stream_query(stream, &error), DS_ACCEL_NOT_READY);
    EXPECT_OK(table->event_query(event, &error));
    EXPECT_OK(table->event_record(event, stream, &error));
    cr_expect_eq(table->event_query(event, &error), DS_ACCEL_NOT_READY);
    table->event_destroy(event);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, each_kind_of_work_has_its_latency)
{
    static const char *const keys[] = {"alloc_latency_ns", "copy_latency_ns", "copy_latency_ns",
                                       "launch_latency_ns"};
    ds_accel_plugin_stream_t *stream;
    void *pointer = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        option(keys[i], HOUR_NS);
        open_mock();
        stream = make_stream();
        if (i == 0) {
            EXPECT_OK(table->mem_alloc_async(stream, 4, 0, NULL, 0, &pointer, &error));
        } else if (i == 1) {
            queue_copy(stream);
        } else if (i == 2) {
            pointer = allocate(4);
            EXPECT_OK(table->mem_fill_async(stream, pointer, "x", 1, 4, &error));
        } else {
            EXPECT_OK(table->stream_host_task(stream, do_nothing, NULL, &error));
        }
        cr_expect_eq(table->stream_query(stream, &error), DS_ACCEL_NOT_READY, "%zu", i);
        table->stream_destroy(stream);
        close_mock();
        option(keys[i], NULL);
    }
}

/* Call wait(), which must return only after the copy's 20 ms and leave the stream idle. */
static void expect_waits(void (*wait)(ds_accel_plugin_stream_t *, ds_accel_plugin_event_t *))
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    uint64_t start;

    option("copy_latency_ns", "20000000");
    open_mock();
    stream = make_stream();
    event = make_event();
    start = now_ns();
    queue_copy(stream);
    EXPECT_OK(table->event_record(event, stream, &error));
    wait(stream, event);
    cr_expect_geq(now_ns() - start, 20 * MS);
    EXPECT_OK(table->stream_query(stream, &error));
    EXPECT_OK(table->event_query(event, &error));
    table->event_destroy(event);
    table->stream_destroy(stream);
    close_mock();
}

static void wait_for_stream(ds_accel_plugin_stream_t *stream, ds_accel_plugin_event_t *event)
{
    (void)event;
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
}

static void wait_for_event(ds_accel_plugin_stream_t *stream, ds_accel_plugin_event_t *event)
{
    (void)stream;
    EXPECT_OK(table->event_synchronize(event, UINT64_MAX, &error));
}

static void wait_for_device(ds_accel_plugin_stream_t *stream, ds_accel_plugin_event_t *event)
{
    (void)stream;
    (void)event;
    EXPECT_OK(ds_accel_device_synchronize(device));
}

Test(plugin_mock, waiting_takes_until_the_work_is_done)
{
    expect_waits(wait_for_stream);
    expect_waits(wait_for_event);
    expect_waits(wait_for_device);
}

Test(plugin_mock, the_device_waits_for_a_stream_that_was_destroyed)
{
    ds_accel_plugin_stream_t *stream;
    uint64_t start;

    option("copy_latency_ns", "20000000");
    open_mock();
    stream = make_stream();
    start = now_ns();
    queue_copy(stream);
    table->stream_destroy(stream);
    EXPECT_OK(ds_accel_device_synchronize(device));
    cr_expect_geq(now_ns() - start, 20 * MS);
    close_mock();
}

Test(plugin_mock, elapsed_time_is_at_least_the_latency)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *start;
    ds_accel_plugin_event_t *end;
    double elapsed_ms = 0;

    option("copy_latency_ns", "15000000");
    open_mock();
    stream = make_stream();
    start = make_event();
    end = make_event();
    EXPECT_OK(table->event_record(start, stream, &error));
    queue_copy(stream);
    queue_copy(stream);
    EXPECT_OK(table->event_record(end, stream, &error));
    EXPECT_OK(table->event_synchronize(end, UINT64_MAX, &error));
    EXPECT_OK(table->event_elapsed_ms(start, end, &elapsed_ms, &error));
    cr_expect_geq(elapsed_ms, 30.0);
    EXPECT_OK(table->event_elapsed_ms(end, start, &elapsed_ms, &error));
    cr_expect_leq(elapsed_ms, -30.0);
    EXPECT_OK(table->event_elapsed_ms(end, end, &elapsed_ms, &error));
    cr_expect_eq(elapsed_ms, 0.0);
    table->event_destroy(end);
    table->event_destroy(start);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, elapsed_time_needs_two_events_that_were_reached)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *start;
    ds_accel_plugin_event_t *end;
    ds_accel_plugin_event_t *untimed = NULL;
    double elapsed_ms = -7;

    option("copy_latency_ns", HOUR_NS);
    open_mock();
    stream = make_stream();
    start = make_event();
    end = make_event();
    ASSERT_OK(table->event_create(handle, 0, &untimed, &error));
    EXPECT_OK(table->event_record(start, stream, &error));
    EXPECT_OK(table->event_record(untimed, stream, &error));
    EXPECT_FAIL(table->event_elapsed_ms(start, end, &elapsed_ms, &error), DS_ACCEL_ERR_STATE,
                "never recorded");
    queue_copy(stream);
    EXPECT_OK(table->event_record(end, stream, &error));
    EXPECT_FAIL(table->event_elapsed_ms(start, end, &elapsed_ms, &error), DS_ACCEL_ERR_STATE,
                "not reached yet");
    EXPECT_FAIL(table->event_elapsed_ms(start, untimed, &elapsed_ms, &error), DS_ACCEL_ERR_STATE,
                "DS_ACCEL_EVENT_TIMING");
    EXPECT_FAIL(table->event_elapsed_ms(start, NULL, &elapsed_ms, &error), DS_ACCEL_ERR_INVALID,
                "NULL");
    cr_expect_eq(elapsed_ms, -7.0);
    table->event_destroy(untimed);
    table->event_destroy(end);
    table->event_destroy(start);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, a_stream_that_waits_for_an_event_is_busy_until_then)
{
    ds_accel_plugin_stream_t *first;
    ds_accel_plugin_stream_t *second;
    ds_accel_plugin_event_t *event;

    option("copy_latency_ns", HOUR_NS);
    open_mock();
    first = make_stream();
    second = make_stream();
    event = make_event();
    EXPECT_OK(table->stream_wait_event(second, event, &error));
    queue_copy(first);
    EXPECT_OK(table->event_record(event, first, &error));
    EXPECT_OK(table->stream_query(second, &error));
    EXPECT_OK(table->stream_wait_event(second, event, &error));
    cr_expect_eq(table->stream_query(second, &error), DS_ACCEL_NOT_READY);
    EXPECT_FAIL(table->stream_wait_event(second, NULL, &error), DS_ACCEL_ERR_INVALID, "NULL");
    table->event_destroy(event);
    table->stream_destroy(second);
    table->stream_destroy(first);
    close_mock();
}

Test(plugin_mock, waiting_for_an_event_orders_two_streams)
{
    ds_accel_plugin_stream_t *first;
    ds_accel_plugin_stream_t *second;
    ds_accel_plugin_event_t *after_first;
    ds_accel_plugin_event_t *after_second;
    double elapsed_ms = 0;

    option("copy_latency_ns", "20000000");
    open_mock();
    first = make_stream();
    second = make_stream();
    after_first = make_event();
    after_second = make_event();
    queue_copy(first);
    EXPECT_OK(table->event_record(after_first, first, &error));
    EXPECT_OK(table->stream_wait_event(second, after_first, &error));
    queue_copy(second);
    EXPECT_OK(table->event_record(after_second, second, &error));
    EXPECT_OK(table->stream_synchronize(second, UINT64_MAX, &error));
    EXPECT_OK(table->event_query(after_first, &error));
    EXPECT_OK(table->event_elapsed_ms(after_first, after_second, &elapsed_ms, &error));
    cr_expect_geq(elapsed_ms, 20.0);
    table->event_destroy(after_second);
    table->event_destroy(after_first);
    table->stream_destroy(second);
    table->stream_destroy(first);
    close_mock();
}

Test(plugin_mock, events_of_another_instance_are_refused)
{
    ds_accel_device_t *stranger;
    ds_accel_t *another;
    ds_accel_plugin_stream_t *theirs = NULL;
    ds_accel_plugin_event_t *event;

    open_mock();
    another = start_another(&stranger);
    ASSERT_OK(table->stream_create(ds_accel_device_handle(stranger), 0, 0, &theirs, &error));
    event = make_event();
    EXPECT_FAIL(table->event_record(event, theirs, &error), DS_ACCEL_ERR_INVALID,
                "different instances");
    EXPECT_FAIL(table->stream_wait_event(theirs, event, &error), DS_ACCEL_ERR_INVALID,
                "another instance");
    table->event_destroy(event);
    table->stream_destroy(theirs);
    ds_accel_device_close(stranger);
    ds_accel_destroy(another);
    close_mock();
}

Test(plugin_mock, allocations_in_a_stream_wait_for_events)
{
    ds_accel_plugin_stream_t *first;
    ds_accel_plugin_stream_t *second;
    ds_accel_plugin_event_t *event;
    void *pointer = NULL;

    option("copy_latency_ns", HOUR_NS);
    open_mock();
    first = make_stream();
    second = make_stream();
    event = make_event();
    queue_copy(first);
    EXPECT_OK(table->event_record(event, first, &error));
    EXPECT_FAIL(table->mem_alloc_async(second, 100, 0, NULL, 1, &pointer, &error),
                DS_ACCEL_ERR_INVALID, "waits is NULL");
    EXPECT_OK(table->mem_alloc_async(second, 100, 0, NULL, 0, &pointer, &error));
    EXPECT_OK(table->stream_query(second, &error));
    EXPECT_OK(table->mem_free_async(second, pointer, &event, 1, &error));
    cr_expect_eq(table->stream_query(second, &error), DS_ACCEL_NOT_READY);
    EXPECT_FAIL(table->mem_free_async(second, pointer, NULL, 0, &error), DS_ACCEL_ERR_INVALID,
                "mem_free_async");
    table->stream_destroy(second);
    second = make_stream();
    EXPECT_OK(table->mem_alloc_async(second, 100, 0, &event, 1, &pointer, &error));
    cr_expect_eq(table->stream_query(second, &error), DS_ACCEL_NOT_READY);
    release(pointer);
    table->event_destroy(event);
    table->stream_destroy(second);
    table->stream_destroy(first);
    close_mock();
}

Test(plugin_mock, the_default_stream_is_borrowed)
{
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_stream_t *again = NULL;

    open_mock();
    EXPECT_OK(table->stream_get_default(handle, &stream, &error));
    cr_assert_not_null(stream);
    table->stream_destroy(stream);
    EXPECT_OK(table->stream_get_default(handle, &again, &error));
    cr_expect_eq(stream, again);
    queue_copy(stream);
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    close_mock();
}

Test(plugin_mock, priorities_and_flags_have_a_range)
{
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_event_t *event = NULL;
    int32_t least = 9;
    int32_t greatest = 9;

    option("ipc", "false");
    open_mock();
    EXPECT_OK(table->stream_priority_range(handle, &least, &greatest, &error));
    cr_expect_eq(least, 0);
    cr_expect_eq(greatest, -2);
    for (int32_t priority = greatest; priority <= least; priority++) {
        ASSERT_OK(
            table->stream_create(handle, DS_ACCEL_STREAM_NON_BLOCKING, priority, &stream, &error));
        table->stream_destroy(stream);
    }
    EXPECT_FAIL(table->stream_create(handle, 0, 1, &stream, &error), DS_ACCEL_ERR_INVALID,
                "priority 1 is not from -2 to 0");
    EXPECT_FAIL(table->stream_create(handle, 0, -3, &stream, &error), DS_ACCEL_ERR_INVALID,
                "priority -3");
    EXPECT_FAIL(table->stream_create(handle, 2, 0, &stream, &error), DS_ACCEL_ERR_INVALID, "0x2");
    EXPECT_FAIL(table->event_create(handle, 8, &event, &error), DS_ACCEL_ERR_INVALID, "0x8");
    EXPECT_FAIL(table->event_create(handle, DS_ACCEL_EVENT_INTERPROCESS, &event, &error),
                DS_ACCEL_ERR_UNSUPPORTED, "between processes");
    close_mock();
}

Test(plugin_mock, a_wait_ends_at_its_deadline)
{
    ds_accel_plugin_stream_t *stream;

    option("launch_latency_ns", "1000000000");
    open_mock();
    stream = make_stream();
    EXPECT_OK(table->stream_host_task(stream, do_nothing, NULL, &error));
    cr_expect_eq(table->stream_synchronize(stream, 0, &error), DS_ACCEL_ERR_TIMEOUT);
    cr_expect_eq(table->stream_synchronize(stream, 1000000, &error), DS_ACCEL_ERR_TIMEOUT);
    cr_expect_eq(table->device_synchronize(handle, 1000, &error), DS_ACCEL_ERR_TIMEOUT);
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    EXPECT_OK(table->stream_synchronize(stream, 0, &error));
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, host_tasks_run_once_each)
{
    ds_accel_plugin_stream_t *stream;
    int count = 0;

    open_mock();
    stream = make_stream();
    EXPECT_OK(table->stream_host_task(stream, count_up, &count, &error));
    EXPECT_OK(table->stream_host_task(stream, count_up, &count, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    cr_expect_eq(count, 2);
    EXPECT_FAIL(table->stream_host_task(stream, NULL, NULL, &error), DS_ACCEL_ERR_INVALID, "NULL");
    table->stream_destroy(stream);
    close_mock();
}

/* ---- native handles ------------------------------------------------------------------------- */

static uint64_t native_of(uint32_t kind, const void *object)
{
    uint64_t offset_bytes = 1;
    uint64_t native = 0;

    EXPECT_OK(table->native_get(handle, kind, object, &native, &offset_bytes, &error));
    cr_expect_neq(native, 0);
    return native;
}

Test(plugin_mock, a_wrapped_stream_is_the_same_stream)
{
    ds_accel_plugin_stream_t *stream;
    void *wrapped = NULL;
    uint64_t native;

    option("copy_latency_ns", HOUR_NS);
    open_mock();
    stream = make_stream();
    native = native_of(DS_ACCEL_NATIVE_STREAM, stream);
    ASSERT_OK(table->native_wrap(handle, DS_ACCEL_NATIVE_STREAM, native, &wrapped, &error));
    cr_expect_neq(wrapped, stream);
    cr_expect_eq(native_of(DS_ACCEL_NATIVE_STREAM, wrapped), native);
    EXPECT_OK(table->stream_query(stream, &error));
    queue_copy(wrapped);
    cr_expect_eq(table->stream_query(stream, &error), DS_ACCEL_NOT_READY);
    table->stream_destroy(wrapped);
    cr_expect_eq(table->stream_query(stream, &error), DS_ACCEL_NOT_READY);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, a_wrapped_event_is_the_same_event)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    void *wrapped = NULL;

    option("copy_latency_ns", HOUR_NS);
    open_mock();
    stream = make_stream();
    event = make_event();
    ASSERT_OK(table->native_wrap(handle, DS_ACCEL_NATIVE_EVENT,
                                 native_of(DS_ACCEL_NATIVE_EVENT, event), &wrapped, &error));
    queue_copy(stream);
    EXPECT_OK(table->event_record(wrapped, stream, &error));
    table->event_destroy(wrapped);
    cr_expect_eq(table->event_query(event, &error), DS_ACCEL_NOT_READY);
    table->event_destroy(event);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, natives_of_other_kinds_are_told_apart)
{
    uint64_t offset_bytes;
    ds_accel_plugin_stream_t *stream;
    void *wrapped = NULL;
    void *pointer;
    uint64_t native = 0;

    open_mock();
    stream = make_stream();
    pointer = allocate(8);
    cr_expect_eq(native_of(DS_ACCEL_NATIVE_MEMORY, pointer), (uintptr_t)pointer);
    native_of(DS_ACCEL_NATIVE_DEVICE, handle);
    native_of(DS_ACCEL_NATIVE_CONTEXT, handle);
    EXPECT_FAIL(
        table->native_get(handle, DS_ACCEL_NATIVE_DEVICE, stream, &native, &offset_bytes, &error),
        DS_ACCEL_ERR_INVALID, "kind 1");
    EXPECT_FAIL(table->native_get(handle, 60, stream, &native, &offset_bytes, &error),
                DS_ACCEL_ERR_INVALID, "kind 6");
    EXPECT_FAIL(table->native_wrap(handle, DS_ACCEL_NATIVE_DEVICE, 1, &wrapped, &error),
                DS_ACCEL_ERR_UNSUPPORTED, "kind 1");
    EXPECT_FAIL(table->native_wrap(handle, 60, 1, &wrapped, &error), DS_ACCEL_ERR_INVALID,
                "kind 60");
    EXPECT_FAIL(table->native_wrap(handle, DS_ACCEL_NATIVE_STREAM, 0, &wrapped, &error),
                DS_ACCEL_ERR_INVALID, "NULL");
    release(pointer);
    table->stream_destroy(stream);
    close_mock();
}
