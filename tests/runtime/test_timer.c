/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Timers, and ranges for profilers. */
#include "clock.h"
#include "facts.h"

/* ---- profilers and timers ------------------------------------------------------------------- */

Test(core_facts, nest_ranges_where_there_is_a_profiler)
{
    ds_accel_t *context = start("mock");

    EXPECT_STATUS(ds_accel_range_push(context, "outer", NULL, NULL), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_range_push(context, "inner", "DeepSpeed", "step"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_range_pop(context, "DeepSpeed"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_range_pop(context, "DeepSpeed"), DS_ACCEL_ERR_STATE);
    EXPECT_STATUS(ds_accel_range_pop(context, NULL), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_range_push(context, NULL, NULL, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_profiler_start(context), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_profiler_stop(context), DS_ACCEL_OK);
    ds_accel_destroy(context);
    context = start_tiny();
    EXPECT_STATUS(ds_accel_range_push(context, "outer", NULL, NULL), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_range_pop(context, NULL), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_profiler_start(context), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_range_push(context, NULL, NULL, NULL), DS_ACCEL_ERR_INVALID);
    ds_accel_destroy(context);
}

/* Expect the time of work between start and stop; the mock's copy latency makes it 20 ms or
   more. */
static void expect_time(ds_accel_t *context)
{
    ds_accel_device_t *device;
    ds_accel_stream_t *stream;
    ds_accel_timer_t *timer;
    char from[64] = "x";
    void *to = NULL;
    double elapsed_ms = -1;
    uint64_t start_ns = now_ns();
    double measured_ms;

    cr_assert_eq(ds_accel_device_get(context, 0, &device), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &stream), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_mem_alloc(device, stream, sizeof(from), &to), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_timer_create(device, &timer), DS_ACCEL_OK, "%s", ds_accel_last_error());
    EXPECT_REFUSED(ds_accel_timer_stop(timer, stream), DS_ACCEL_ERR_STATE, "not started");
    EXPECT_STATUS(ds_accel_timer_start(timer, stream), DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_timer_elapsed_ms(timer, &elapsed_ms), DS_ACCEL_ERR_STATE,
                   "not stopped");
    EXPECT_STATUS(
        ds_accel_mem_copy_async(stream, to, from, sizeof(from), DS_ACCEL_COPY_HOST_TO_DEVICE),
        DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_timer_stop(timer, stream), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_timer_elapsed_ms(timer, &elapsed_ms), DS_ACCEL_OK);
    measured_ms = elapsed_ns(start_ns) / 1e6;
    cr_expect_geq(elapsed_ms, 20);
    /* The measured time is at most the time that passed here. */
    cr_expect_leq(elapsed_ms, measured_ms);
    EXPECT_STATUS(ds_accel_timer_elapsed_ms(timer, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_timer_start(timer, NULL), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_timer_elapsed_ms(timer, &elapsed_ms), DS_ACCEL_ERR_STATE);
    ds_accel_timer_destroy(timer);
    ds_accel_timer_destroy(timer);
    ds_accel_timer_destroy(NULL);
    EXPECT_REFUSED(ds_accel_timer_start(timer, stream), DS_ACCEL_ERR_INVALID, "destroyed");
    cr_assert_eq(ds_accel_timer_create(device, &timer), DS_ACCEL_OK);
    ds_accel_destroy(context);
    EXPECT_REFUSED(ds_accel_timer_stop(timer, NULL), DS_ACCEL_ERR_INVALID, "destroyed");
}

Test(core_facts, time_work_by_events)
{
    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", "20000000", 1);
    expect_time(start("mock"));
}

Test(core_facts, time_work_by_the_hosts_clock)
{
    test_write("etc/ds-accel.json", "{\"backends\": {\"mock\": {\"use_host_timers\": true}}}");
    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", "20000000", 1);
    setenv("DS_ACCEL_MOCK_FAIL", "event_create:1+=driver", 1); /* must succeed without an event */
    expect_time(start("mock"));
}

Test(core_facts, time_without_events)
{
    ds_accel_t *contexts[] = {start_tiny(), start("cpu")};

    for (size_t i = 0; i < 2; i++) {
        ds_accel_device_t *device;
        ds_accel_timer_t *timer;
        double elapsed_ms = -1;
        bool has_streams = i == 1;

        cr_assert_eq(ds_accel_device_get(contexts[i], 0, &device), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_timer_create(device, &timer), DS_ACCEL_OK);
        /* The plugin tiny does not report synchronous execution, and has no function to wait
           with. */
        EXPECT_STATUS(ds_accel_timer_start(timer, NULL),
                      has_streams ? DS_ACCEL_OK : DS_ACCEL_ERR_UNSUPPORTED);
        EXPECT_STATUS(ds_accel_timer_stop(timer, NULL),
                      has_streams ? DS_ACCEL_OK : DS_ACCEL_ERR_STATE);
        EXPECT_STATUS(ds_accel_timer_elapsed_ms(timer, &elapsed_ms),
                      has_streams ? DS_ACCEL_OK : DS_ACCEL_ERR_STATE);
        cr_expect(!has_streams || elapsed_ms >= 0);
        ds_accel_destroy(contexts[i]);
    }
}
