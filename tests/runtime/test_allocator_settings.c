/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The settings of the caching allocator. */
#include "allocator.h"

/* ---- settings ------------------------------------------------------------------------------- */

Test(core_allocator, does_not_split_large_blocks_if_told_so)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    void *pointer;

    setenv("DS_ACCEL_ALLOCATOR", "max_split_bytes=32MiB", 1);
    context = test_start("mock", &device);
    pointer = take(device, NULL, 64 * MIB);
    EXPECT_STAT(device, "oversize_allocations.current", 1);
    EXPECT_STAT(device, "oversize_segments.current", 1);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    cr_expect_neq(take(device, NULL, 12 * MIB), pointer);
    cr_expect_eq(take(device, NULL, 60 * MIB), pointer);
    EXPECT_STAT(device, "max_split_size", 32 * MIB);
    test_finish(context, device);
}

Test(core_allocator, rounds_sizes_up_if_told_so)
{
    ds_accel_device_t *device;
    ds_accel_t *context;

    setenv("DS_ACCEL_ALLOCATOR", "roundup_power2_divisions=4", 1);
    context = test_start("mock", &device);
    (void)take(device, NULL, 1200 * KIB);
    EXPECT_STAT(device, "allocated_bytes.all.current", 1280 * KIB);
    test_finish(context, device);
}

Test(core_allocator, refuses_settings_that_are_none)
{
    static const struct {
        const char *value;
        const char *words;
    } cases[] = {{"fast", "mode can't be \"fast\""},
                 {"growable_segment=true", "did you mean \"growable_segments\""},
                 {"limit_bytes=many", "limit_bytes can't be"},
                 {"gc_threshold=2", "gc_threshold can't be"},
                 {"growable_segments=yes", "can't be \"yes\""}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ds_accel_device_t *device;
        ds_accel_t *context;
        void *pointer;

        setenv("DS_ACCEL_ALLOCATOR", cases[i].value, 1);
        context = test_start("mock", &device);
        EXPECT_REFUSED(ds_accel_mem_alloc(device, NULL, 512, &pointer), DS_ACCEL_ERR_CONFIG,
                       cases[i].words);
        EXPECT_HAS(ds_accel_last_error(), "DS_ACCEL_ALLOCATOR: ");
        test_finish(context, device);
    }
}

Test(core_allocator, reads_its_settings_from_the_configuration)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    void *pointer = NULL;

    test_write("etc/ds-accel.json",
               "{\"allocator\": {\"limit_bytes\": 33554432, \"small_segment_bytes\": 4194304}}");
    context = test_start("mock", &device);
    (void)take(device, NULL, 512);
    EXPECT_STAT(device, "reserved_bytes.all.current", 4 * MIB);
    EXPECT_STATUS(ds_accel_mem_alloc(device, NULL, 40 * MIB, &pointer), DS_ACCEL_ERR_NO_MEMORY);
    test_finish(context, device);
    setenv("DS_ACCEL_ALLOCATOR", "limit_bytes=64MiB", 1);
    context = test_start("mock", &device);
    EXPECT_STATUS(ds_accel_mem_alloc(device, NULL, 40 * MIB, &pointer), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_allocator, asks_the_driver_every_time_when_it_is_off)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *b;
    void *pointer;

    setenv("DS_ACCEL_ALLOCATOR", "off", 1);
    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", SLOW, 1);
    context = test_start("mock", &device);
    b = make_stream(device);
    pointer = take(device, NULL, 1000);
    EXPECT_STAT(device, "reserved_bytes.all.current", 1024);
    EXPECT_STATUS(ds_accel_mem_record_stream(device, pointer, b), DS_ACCEL_OK);
    MUST(ds_accel_mem_set_async(b, pointer, 1, 512));
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_stream_query(b), DS_ACCEL_OK, "the driver got it while it was used");
    EXPECT_STAT(device, "reserved_bytes.all.current", 0);
    EXPECT_STAT(device, "num_device_free", 1);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_ERR_INVALID);
    test_finish(context, device);
}
