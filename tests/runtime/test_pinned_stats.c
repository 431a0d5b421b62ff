/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The statistics of pinned memory, under torch's names. */
#include "pinned.h"

/* ---- accounting ----------------------------------------------------------------------------- */

Test(core_pinned, logs_what_was_asked_for)
{
    start("mock");
    give(take(KIB(3), 1, 0));
    EXPECT_HAS(test_log, "4 pinned: device 0: 3.0 KB pinned; 3.0 KB in all, in 1 calls");
    for (int i = 0; i < 31; i++) {
        give(take(MIB(1024), 1, 0));
    }
    EXPECT_HAS_NOT(test_log, "3 pinned:");
    give(take(MIB(1024), 1, 0));
    EXPECT_HAS(test_log, "3 pinned: device 0: 1.000 GB pinned; 32.000 GB in all, in 33 calls");
    test_log[0] = '\0';
    for (int i = 0; i < 31; i++) {
        give(take(MIB(1024), 1, 0));
    }
    EXPECT_HAS_NOT(test_log, "3 pinned:");
    give(take(MIB(1024), 1, 0));
    EXPECT_HAS(test_log, "3 pinned: device 0: 1.000 GB pinned; 64.000 GB in all");
    finish();
}

/* ---- under torch's names -------------------------------------------------------------------- */

static int64_t stat_of(const char *key)
{
    int64_t value = -1;

    EXPECT_STATUS(ds_accel_host_memory_stat(device, key, &value), DS_ACCEL_OK);
    return value;
}

Test(core_pinned, figures_have_torchs_names)
{
    char *first;
    char *second;
    char *text = NULL;
    int64_t value = 7;

    start("mock");
    cr_expect_eq(stat_of("num_host_alloc"), 0);
    cr_expect_eq(stat_of("host_alloc_time.count"), 0);
    first = take(KIB(3), 0, 0);
    second = take(KIB(4), 0, 0);
    cr_expect_eq(stat_of("active_requests.current"), 2);
    cr_expect_eq(stat_of("active_bytes.current"), KIB(8), "as large as they were rounded to");
    cr_expect_eq(stat_of("allocations.current"), 2);
    cr_expect_eq(stat_of("allocated_bytes.current"), KIB(8));
    cr_expect_eq(stat_of("num_host_alloc"), 2);
    cr_expect_eq(stat_of("host_alloc_time.count"), 2);
    cr_expect_leq(stat_of("host_alloc_time.min"), stat_of("host_alloc_time.avg"));
    cr_expect_leq(stat_of("host_alloc_time.avg"), stat_of("host_alloc_time.max"));
    cr_expect_leq(stat_of("host_alloc_time.max"), stat_of("host_alloc_time.total"));
    give(first);
    cr_expect_eq(stat_of("active_requests.current"), 1);
    cr_expect_eq(stat_of("active_requests.peak"), 2);
    cr_expect_eq(stat_of("active_requests.allocated"), 2);
    cr_expect_eq(stat_of("active_requests.freed"), 1);
    cr_expect_eq(stat_of("active_bytes.freed"), KIB(4));
    cr_expect_eq(stat_of("allocations.current"), 2, "it is kept");
    cr_expect_eq(stat_of("num_host_free"), 0);
    first = take(KIB(4), 0, 0);
    cr_expect_eq(stat_of("active_requests.allocated"), 3);
    cr_expect_eq(stat_of("num_host_alloc"), 2, "the pool had it");
    give(first);
    give(second);
    EXPECT_STATUS(ds_accel_pinned_empty_cache(device), DS_ACCEL_OK);
    cr_expect_eq(stat_of("allocations.current"), 0);
    cr_expect_eq(stat_of("allocated_bytes.freed"), KIB(8));
    cr_expect_eq(stat_of("num_host_free"), 2);
    cr_expect_eq(stat_of("host_free_time.count"), 2);
    cr_expect_eq(stat_of("segment.peak"), 2);
    cr_expect_eq(stat_of("reserved_bytes.peak"), KIB(8));
    EXPECT_STATUS(ds_accel_pinned_reset_peaks(device), DS_ACCEL_OK);
    cr_expect_eq(stat_of("allocations.peak"), 0);
    cr_expect_eq(stat_of("active_bytes.peak"), 0);
    EXPECT_STATUS(ds_accel_host_memory_stats(device, &text), DS_ACCEL_OK);
    EXPECT_HAS(text, "\"active_bytes.allocated\": 12288");
    EXPECT_HAS(text, "\"num_host_free\": 2");
    ds_accel_free_text(text);
    EXPECT_REFUSED(ds_accel_host_memory_stat(device, "active_byte.current", &value),
                   DS_ACCEL_ERR_NOT_FOUND, "did you mean \"active_bytes.current\"");
    EXPECT_STATUS(ds_accel_host_memory_stat(device, NULL, &value), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_host_memory_stat(device, "num_host_alloc", NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_host_memory_stats(device, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_host_memory_stats(NULL, &text), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(value, 7);
    finish();
}

static void do_nothing(void *user_data, int32_t status)
{
    (void)user_data;
    (void)status;
}

/* Freed memory that a stream still uses counts as active. */
Test(core_pinned, freed_memory_is_active_until_streams_are_done)
{
    ds_accel_stream_t *stream = NULL;
    char *memory;

    setenv("DS_ACCEL_MOCK_LAUNCH_LATENCY_NS", "3000000000000", 1);
    start("mock");
    EXPECT_STATUS(ds_accel_stream_create(device, 0, 0, &stream), DS_ACCEL_OK);
    memory = take(KIB(4), 0, 0);
    EXPECT_STATUS(ds_accel_stream_host_task(stream, do_nothing, NULL), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_record_stream(device, memory, stream), DS_ACCEL_OK);
    give(memory);
    cr_expect_eq(stat_of("active_requests.current"), 1);
    cr_expect_eq(stat_of("active_bytes.freed"), 0);
}
