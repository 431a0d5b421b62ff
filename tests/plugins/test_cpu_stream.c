/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The cpu plugin: streams and events. */
#include "clock.h"
#include "cpu.h"

#include <time.h>

/* ---- streams and events --------------------------------------------------------------------- */

Test(plugin_cpu, streams_are_made_used_and_destroyed)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_stream_t *standard;
    int32_t least = 9;
    int32_t greatest = 9;
    int count = 0;

    open_cpu();
    EXPECT_OK(table->stream_priority_range(handle, &least, &greatest, &error));
    ASSERT_OK(
        table->stream_create(handle, DS_ACCEL_STREAM_NON_BLOCKING, greatest, &stream, &error));
    ASSERT_OK(table->stream_get_default(handle, &standard, &error));
    cr_expect_neq(stream, standard);
    EXPECT_OK(table->stream_host_task(stream, count_up, &count, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    EXPECT_OK(table->stream_query(stream, &error));
    cr_expect_eq(count, 1);
    EXPECT_FAIL(table->stream_create(handle, 2, 0, &stream, &error), DS_ACCEL_ERR_INVALID,
                "unknown bits 0x2");
    EXPECT_FAIL(table->stream_create(handle, 0, least + 1, &stream, &error), DS_ACCEL_ERR_INVALID,
                "priority");
    table->stream_destroy(stream);
    table->stream_destroy(standard);
    table->stream_destroy(NULL);
    ASSERT_OK(table->stream_get_default(handle, &standard, &error));
    EXPECT_OK(table->stream_query(standard, &error));
    close_cpu();
}

Test(plugin_cpu, events_measure_real_milliseconds)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *start;
    ds_accel_plugin_event_t *end;
    uint64_t start_ns;
    double elapsed = 0;
    double between;

    open_cpu();
    ASSERT_OK(table->stream_get_default(handle, &stream, &error));
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_TIMING, &start, &error));
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_TIMING, &end, &error));
    EXPECT_OK(table->event_query(end, &error));
    EXPECT_OK(table->event_record(start, stream, &error));
    EXPECT_OK(table->event_synchronize(start, UINT64_MAX, &error));
    EXPECT_FAIL(table->event_elapsed_ms(start, end, &elapsed, &error), DS_ACCEL_ERR_STATE,
                "the end event was never recorded");
    start_ns = now_ns();
    nanosleep(&pause, NULL);
    between = elapsed_ns(start_ns) / 1e6;
    EXPECT_OK(table->event_record(end, stream, &error));
    EXPECT_OK(table->event_synchronize(end, UINT64_MAX, &error));
    EXPECT_OK(table->event_elapsed_ms(start, end, &elapsed, &error));
    cr_expect_geq(elapsed, between - 1e-3);
    EXPECT_OK(table->event_elapsed_ms(end, start, &elapsed, &error));
    cr_expect_leq(elapsed, 1e-3 - between);
    table->event_destroy(start);
    table->event_destroy(end);
    close_cpu();
}

Test(plugin_cpu, events_without_timing_measure_nothing)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *plain;
    ds_accel_plugin_event_t *timing;
    double elapsed;

    open_cpu();
    ASSERT_OK(table->stream_get_default(handle, &stream, &error));
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_BLOCKING_SYNC, &plain, &error));
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_TIMING, &timing, &error));
    EXPECT_OK(table->event_record(plain, stream, &error));
    EXPECT_OK(table->event_record(timing, stream, &error));
    EXPECT_OK(table->stream_wait_event(stream, plain, &error));
    EXPECT_FAIL(table->event_elapsed_ms(plain, timing, &elapsed, &error), DS_ACCEL_ERR_STATE,
                "the start event was created without DS_ACCEL_EVENT_TIMING");
    EXPECT_FAIL(table->event_elapsed_ms(timing, plain, &elapsed, &error), DS_ACCEL_ERR_STATE,
                "the end event was created without DS_ACCEL_EVENT_TIMING");
    table->event_destroy(plain);
    EXPECT_FAIL(table->event_create(handle, DS_ACCEL_EVENT_INTERPROCESS, &plain, &error),
                DS_ACCEL_ERR_UNSUPPORTED, "no events between processes");
    EXPECT_FAIL(table->event_create(handle, 8, &plain, &error), DS_ACCEL_ERR_INVALID,
                "unknown bits 0x8");
    table->event_destroy(timing);
    table->event_destroy(NULL);
    close_cpu();
}
