/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The history of the caching allocator, and its snapshots. */
#include "allocator.h"

/* ---- history and snapshots ------------------------------------------------------------------ */

static char *snapshot(ds_accel_t *context, ds_accel_device_t *device)
{
    void *data = NULL;
    size_t size = 0;

    MUST(ds_accel_memory_snapshot(context, device, DS_ACCEL_SNAPSHOT_JSON, &data, &size));
    cr_assert_eq(strlen(data), size);
    return test_compact(data);
}

Test(core_allocator, draws_a_snapshot_of_its_segments)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    char *text = snapshot(context, NULL);
    void *pointer;

    EXPECT_HAS(text, "\"segments\":[]");
    ds_accel_free_text(text);
    pointer = take(device, NULL, 1000);
    text = snapshot(NULL, device);
    EXPECT_HAS(text, "\"schema_version\":1");
    EXPECT_HAS(text, "\"backend\":\"mock\"");
    EXPECT_HAS(text, "\"total_size\":2097152");
    EXPECT_HAS(text, "\"allocated_size\":1024");
    EXPECT_HAS(text, "\"requested_size\":1000");
    EXPECT_HAS(text, "\"segment_type\":\"small\"");
    EXPECT_HAS(text, "\"segment_pool_id\":[0,0]");
    EXPECT_HAS(text, "\"state\":\"active_allocated\"");
    EXPECT_HAS(text, "\"state\":\"inactive\"");
    EXPECT_HAS(text, "\"device_traces\":[[]]");
    EXPECT_HAS(text, "\"mode\":\"caching\"");
    ds_accel_free_text(text);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_allocator, writes_snapshots_in_every_format)
{
    static const struct {
        uint32_t format;
        const char *begins;
    } cases[] = {{DS_ACCEL_SNAPSHOT_JSON, "{"},
                 {DS_ACCEL_SNAPSHOT_SVG, "<"},
                 {DS_ACCEL_SNAPSHOT_PICKLE, "\x80"},
                 {DS_ACCEL_SNAPSHOT_TEXT, ""},
                 {DS_ACCEL_SNAPSHOT_PICKLE_SEGMENTS, "\x80"}};
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);

    EXPECT_STATUS(ds_accel_memory_record_history(device, DS_ACCEL_HISTORY_STACKS, 100),
                  DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, take(device, NULL, 1000)), DS_ACCEL_OK);
    (void)take(device, NULL, 30 * MIB);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        void *data = NULL;
        size_t size = 0;

        EXPECT_STATUS(ds_accel_memory_snapshot(NULL, device, cases[i].format, &data, &size),
                      DS_ACCEL_OK);
        cr_assert_gt(size, 10);
        cr_expect_eq(memcmp(data, cases[i].begins, strlen(cases[i].begins)), 0);
        ds_accel_free_data(data);
    }
    test_finish(context, device);
}

Test(core_allocator, remembers_the_latest_calls)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *data;
    size_t size;
    char *text;
    int allocs = 0;

    EXPECT_STATUS(ds_accel_memory_record_history(device, DS_ACCEL_HISTORY_ON, 1000), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, take(device, NULL, 1000)), DS_ACCEL_OK);
    text = snapshot(NULL, device);
    EXPECT_HAS(text, "\"action\":\"segment_alloc\"");
    EXPECT_HAS(text, "\"action\":\"alloc\"");
    EXPECT_HAS(text, "\"action\":\"free_requested\"");
    EXPECT_HAS(text, "\"action\":\"free_completed\"");
    EXPECT_HAS(text, "\"action\":\"snapshot\"");
    ds_accel_free_text(text);
    EXPECT_STATUS(
        ds_accel_memory_record_history(device, DS_ACCEL_HISTORY_ON | DS_ACCEL_HISTORY_STACKS, 9),
        DS_ACCEL_OK);
    for (int i = 0; i < 20; i++) {
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, take(device, NULL, 1000)), DS_ACCEL_OK);
    }
    text = snapshot(NULL, device);
    for (const char *at = text; (at = strstr(at, "\"action\":\"alloc\"")) != NULL; at++) {
        allocs++;
    }
    cr_expect_leq(allocs, 3);
    cr_expect_geq(allocs, 2);
    EXPECT_HAS(text, "\"filename\":\"");
    ds_accel_free_text(text);
    EXPECT_STATUS(ds_accel_memory_record_history(device, DS_ACCEL_HISTORY_OFF, 0), DS_ACCEL_OK);
    text = snapshot(NULL, device);
    EXPECT_HAS_NOT(text, "\"action\"");
    ds_accel_free_text(text);
    EXPECT_STATUS(ds_accel_memory_record_history(device, 77, 5), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_memory_snapshot(NULL, device, 99, &data, &size), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_memory_snapshot(NULL, NULL, 1, &data, &size), DS_ACCEL_ERR_INVALID);
    test_finish(context, device);
}
