/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Events of the public API, on the mock. */
#include "clock.h"
#include "fixture.h"

Test(core_event, measures_time_in_milliseconds)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *stream;
    ds_accel_event_t *first;
    ds_accel_event_t *last;
    ds_accel_event_t *timeless;
    double elapsed_ms = -1;
    double measured_ms;
    uint64_t start_ns;
    char bytes[16] = "";
    void *pointer;

    /* so long that the copy is under way at the first query, also on a busy machine */
    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", "1000000000", 1);
    context = test_start("mock", &device);
    cr_assert_eq(ds_accel_default_stream(device, &stream), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_event_create(device, DS_ACCEL_EVENT_TIMING, &first), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_event_create(device, DS_ACCEL_EVENT_TIMING, &last), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_event_create(device, 0, &timeless), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_mem_alloc(device, NULL, sizeof(bytes), &pointer), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_event_query(first), DS_ACCEL_OK);
    start_ns = now_ns();
    EXPECT_STATUS(ds_accel_event_record(first, stream), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_copy_async(stream, pointer, bytes, sizeof(bytes),
                                          DS_ACCEL_COPY_HOST_TO_DEVICE),
                  DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_event_record(last, stream), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_event_record(timeless, stream), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_event_query(last), DS_ACCEL_NOT_READY);
    EXPECT_STATUS(ds_accel_event_elapsed_ms(first, last, &elapsed_ms), DS_ACCEL_ERR_STATE);
    EXPECT_STATUS(ds_accel_event_synchronize(last), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_event_elapsed_ms(first, timeless, &elapsed_ms), DS_ACCEL_ERR_STATE);
    cr_expect_eq(elapsed_ms, -1);
    EXPECT_STATUS(ds_accel_event_elapsed_ms(first, last, &elapsed_ms), DS_ACCEL_OK);
    measured_ms = elapsed_ns(start_ns) / 1e6;
    cr_expect_geq(elapsed_ms, 1000);
    cr_expect_leq(elapsed_ms, measured_ms);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    test_finish(context, device);
}
