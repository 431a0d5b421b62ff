/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Streams of the public API, on the mock. */
#include "runtime.h"

#include <malloc.h>

/* ---- streams -------------------------------------------------------------------------------- */

Test(core_stream, current_one_is_the_devices_own)
{
    ds_accel_stream_t *current = NULL;
    ds_accel_device_t *device;
    ds_accel_device_t *far;
    ds_accel_t *context = test_start("mock", &device);

    MUST(ds_accel_set_current_stream(make_stream(device)));
    MUST(ds_accel_device_open(context, 1, &far));
    MUST(ds_accel_current_stream(far, &current));
    cr_expect_eq(ds_accel_stream_device(current), far);
    ds_accel_device_close(far);
    test_finish(context, device);
}

/* Sanitizers, which replace malloc(), report 0 bytes in use. */
Test(core_stream, current_ones_of_closed_devices_take_no_memory)
{
    enum {
        WARM = 1000, /* destroyed handles are reused after some hundred */
        COUNT = 5000
    };
    ds_accel_device_t *device;
    ds_accel_device_t *far;
    ds_accel_t *context = test_start("mock", &device);
    size_t before = 0;
    size_t after;

    for (int i = 0; i < COUNT; i++) {
        MUST(ds_accel_device_open(context, 1, &far));
        MUST(ds_accel_set_current_stream(make_stream(far)));
        ds_accel_device_close(far);
        before = i == WARM ? mallinfo2().uordblks : before;
    }
    after = mallinfo2().uordblks;
    cr_expect_lt(after, before + 32768, "%zu bytes more", after - before);
    test_finish(context, device);
}

Test(core_stream, current_one_is_the_default_until_another_is_set)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *initial;
    ds_accel_stream_t *current;
    ds_accel_stream_t *stream;

    EXPECT_STATUS(ds_accel_default_stream(device, &initial), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_current_stream(device, &current), DS_ACCEL_OK);
    cr_expect_eq(current, initial);
    cr_assert_eq(ds_accel_stream_create(device, 0, -1, &stream), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_set_current_stream(stream), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_current_stream(device, &current), DS_ACCEL_OK);
    cr_expect_eq(current, stream);
    ds_accel_stream_destroy(stream);
    EXPECT_STATUS(ds_accel_current_stream(device, &current), DS_ACCEL_OK);
    cr_expect_eq(current, initial);
    ds_accel_stream_destroy(initial); /* has no effect: the default stream is borrowed */
    EXPECT_STATUS(ds_accel_stream_query(initial), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_create(device, 0, 100, &stream), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_stream_create(device, 1u << 30, 0, &stream), DS_ACCEL_ERR_INVALID);
    test_finish(context, device);
}

Test(core_stream, wraps_the_vendors_own)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *stream;
    ds_accel_stream_t *wrapped;
    uint64_t native = 0;
    uint64_t again = 1;

    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &stream), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_native(stream, &native), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_wrap(device, native, &wrapped), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_native(wrapped, &again), DS_ACCEL_OK);
    cr_expect_eq(again, native);
    ds_accel_stream_destroy(wrapped);
    EXPECT_STATUS(ds_accel_stream_query(stream), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_stream, waits_for_all_of_another, .init = NULL)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *slow;
    ds_accel_stream_t *later;
    char bytes[16] = "";
    void *pointer;

    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", "1000000000", 1);
    context = test_start("mock", &device);
    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &slow), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &later), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_mem_alloc(device, slow, sizeof(bytes), &pointer), DS_ACCEL_OK);
    EXPECT_STATUS(
        ds_accel_mem_copy_async(slow, pointer, bytes, sizeof(bytes), DS_ACCEL_COPY_HOST_TO_DEVICE),
        DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_query(later), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_wait_stream(later, slow), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_query(later), DS_ACCEL_NOT_READY);
    EXPECT_STATUS(ds_accel_stream_synchronize_for(later, 0), DS_ACCEL_ERR_TIMEOUT);
    EXPECT_STATUS(ds_accel_stream_synchronize(later), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_query(slow), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    test_finish(context, device);
}
