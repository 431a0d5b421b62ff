/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The statistics of the caching allocator, and its choice of a block. */
#include "allocator.h"

/* ---- statistics ------------------------------------------------------------------------------ */

Test(core_allocator, knows_the_names_that_consumers_read)
{
    static const char *const stats[] = {
        "allocation",      "segment",        "active",       "inactive_split",
        "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
        "requested_bytes"};
    static const char *const pools[] = {"all", "small_pool", "large_pool"};
    static const char *const values[] = {"current", "peak", "allocated", "freed"};
    static const char *const others[] = {"num_alloc_retries",
                                         "num_ooms",
                                         "max_split_size",
                                         "num_sync_all_streams",
                                         "num_device_alloc",
                                         "num_device_free",
                                         "oversize_allocations.current",
                                         "oversize_allocations.peak",
                                         "oversize_segments.allocated",
                                         "oversize_segments.freed"};
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    char *text = NULL;
    int64_t value = 0;

    for (size_t i = 0; i < 9; i++) {
        for (size_t k = 0; k < 3; k++) {
            for (size_t n = 0; n < 4; n++) {
                char key[96];

                snprintf(key, sizeof(key), "%s.%s.%s", stats[i], pools[k], values[n]);
                EXPECT_STAT(device, key, 0);
            }
        }
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        EXPECT_STATUS(ds_accel_memory_stat(device, others[i], &value), DS_ACCEL_OK);
    }
    EXPECT_REFUSED(ds_accel_memory_stat(device, "allocated_byte.all.current", &value),
                   DS_ACCEL_ERR_NOT_FOUND, "did you mean \"allocated_bytes.all.current\"");
    EXPECT_STATUS(ds_accel_memory_stats(device, &text), DS_ACCEL_OK);
    EXPECT_HAS(text, "\"reserved_bytes.large_pool.peak\": 0");
    ds_accel_free_text(text);
    test_finish(context, device);
}

/* As in torch, each release of the cache before a retry of the driver call counts. */
Test(core_allocator, counts_every_time_that_it_empties_the_cache_to_try_again)
{
    ds_accel_device_t *device;
    ds_accel_t *context;

    setenv("DS_ACCEL_MOCK_MEMORY_BYTES", "104857600", 1); /* 100 MiB */
    context = test_start("mock", &device);
    for (int i = 0; i < 10; i++) {
        /* Each request is larger than the cached memory, and does not fit beside it. */
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, take(device, NULL, (52 + 2 * i) * MIB)),
                      DS_ACCEL_OK);
        EXPECT_STAT(device, "num_alloc_retries", i);
    }
    EXPECT_STAT(device, "num_sync_all_streams", 9);
    EXPECT_STAT(device, "num_device_alloc", 10);
    EXPECT_STAT(device, "num_device_free", 9);
    EXPECT_STAT(device, "num_ooms", 0);
    test_finish(context, device);
}

/* In any order of frees, adjacent free parts count as merged at every moment. */
Test(core_allocator, counts_free_parts_as_if_all_were_merged)
{
    static const int steps[] = {1, 39, 7}; /* in order of allocation, backwards, and interleaved */
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    double fragmentation = -1;
    uint64_t largest = 0;

    for (size_t k = 0; k < 3; k++) {
        void *pieces[40];

        for (int i = 0; i < 40; i++) {
            pieces[i] = take(device, NULL, 512 * KIB);
        }
        EXPECT_STAT(device, "inactive_split.all.current", 0);
        for (int i = 0; i < 40; i += 2) {
            EXPECT_STATUS(ds_accel_mem_free(device, NULL, pieces[i]), DS_ACCEL_OK);
            EXPECT_STAT(device, "inactive_split.all.current", i / 2 + 1);
            EXPECT_STAT(device, "inactive_split_bytes.all.current", (i / 2 + 1) * 512 * KIB);
            pieces[i] = NULL;
        }
        for (int i = 0; i < 40; i++) {
            int place = i * steps[k] % 40;

            if (pieces[place] != NULL) {
                EXPECT_STATUS(ds_accel_mem_free(device, NULL, pieces[place]), DS_ACCEL_OK);
            }
        }
        EXPECT_STAT(device, "inactive_split.all.current", 0);
        EXPECT_STAT(device, "inactive_split_bytes.small_pool.current", 0);
        EXPECT_STAT(device, "inactive_split.all.peak", 20);
    }
    MUST(ds_accel_memory_fragmentation(device, &fragmentation, &largest));
    cr_expect_eq(largest, 2 * MIB, "four of them are one again: %llu", (unsigned long long)largest);
    cr_expect_eq(fragmentation, 0.9);
    EXPECT_STAT(device, "reserved_bytes.all.peak", 20 * MIB);
    test_finish(context, device);
}

/* The allocator delays the merge of a block that was allocated last and freed first; the statistics
   must not show the delay. */
Test(core_allocator, shows_nothing_of_what_it_merges_late)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    double fragmentation = -1;
    uint64_t largest = 0;
    void *pieces[4];
    void *half;

    for (int i = 0; i < 4; i++) {
        pieces[i] = take(device, NULL, 5 * MIB);
    }
    for (int i = 3; i >= 1; i--) {
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, pieces[i]), DS_ACCEL_OK);
        EXPECT_STAT(device, "inactive_split.all.current", 1);
        EXPECT_STAT(device, "inactive_split_bytes.all.current", (4 - i) * 5 * MIB);
    }
    for (int i = 1; i < 4; i++) {
        cr_expect_eq(take(device, NULL, 5 * MIB), pieces[i]);
        EXPECT_STAT(device, "inactive_split_bytes.all.current", (3 - i) * 5 * MIB);
    }
    EXPECT_STAT(device, "inactive_split.all.current", 0);
    for (int i = 3; i >= 0; i--) {
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, pieces[i]), DS_ACCEL_OK);
    }
    EXPECT_STAT(device, "inactive_split.all.current", 0);
    MUST(ds_accel_memory_fragmentation(device, &fragmentation, &largest));
    cr_expect_eq(largest, 20 * MIB);
    cr_expect_eq(fragmentation, 0);
    half = take(device, NULL, 10 * MIB - 512);
    cr_expect_eq(half, pieces[0]);
    EXPECT_STAT(device, "reserved_bytes.all.current", 20 * MIB);
    EXPECT_STAT(device, "inactive_split_bytes.all.current", 10 * MIB + 512);
    test_finish(context, device);
}

Test(core_allocator, takes_the_smallest_that_fits_and_of_those_the_lowest)
{
    /* Sizes of free parts, each between two used blocks. */
    static const uint64_t sizes[] = {5 * MIB, 3 * MIB, 4 * MIB, 3 * MIB};
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    char *parts[4];

    (void)take(device, NULL, 100 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, take(device, NULL, 22 * MIB)), DS_ACCEL_OK);
    for (int i = 0; i < 4; i++) {
        parts[i] = take(device, NULL, sizes[i]);
        (void)take(device, NULL, MIB + 512);
    }
    for (int i = 0; i < 4; i++) {
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, parts[i]), DS_ACCEL_OK);
    }
    cr_expect_eq(take(device, NULL, 3 * MIB), parts[1]);
    cr_expect_eq(take(device, NULL, 3 * MIB - 512), parts[3]);
    cr_expect_eq(take(device, NULL, 3 * MIB), parts[2], "larger by 1 MiB, which is not cut off");
    cr_expect_eq(take(device, NULL, 3 * MIB), parts[0]);
    EXPECT_STAT(device, "segment.all.current", 2);
    test_finish(context, device);
}

/* The set of free blocks changed between the two frees, although all later blocks were freed in
   order. */
Test(core_allocator, prefers_a_segment_that_came_meanwhile_where_it_fits_better)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *first;
    void *meanwhile;

    EXPECT_STATUS(ds_accel_mem_free(device, NULL, take(device, NULL, 100 * MIB)), DS_ACCEL_OK);
    first = take(device, NULL, 30 * MIB);
    meanwhile = take(device, NULL, 80 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, meanwhile), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, first), DS_ACCEL_OK);
    cr_expect_eq(take(device, NULL, 30 * MIB), meanwhile);
    test_finish(context, device);
}

Test(core_allocator, keeps_exact_peaks_over_all_streams)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *a = make_stream(device);
    ds_accel_stream_t *b = make_stream(device);
    void *on_a = take(device, a, 3 * MIB);
    void *on_b = take(device, b, 5 * MIB);
    uint64_t bytes = 0;

    EXPECT_STATUS(ds_accel_mem_free(device, a, on_a), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, b, on_b), DS_ACCEL_OK);
    /* The peak of each stream grows, but the peak of the sum does not. */
    on_a = take(device, a, 7 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, a, on_a), DS_ACCEL_OK);
    on_b = take(device, b, 8 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, b, on_b), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_max_memory_allocated(device, &bytes), DS_ACCEL_OK);
    cr_expect_eq(bytes, 8 * MIB);
    on_a = take(device, a, 7 * MIB);
    on_b = take(device, b, 5 * MIB);
    EXPECT_STATUS(ds_accel_max_memory_allocated(device, &bytes), DS_ACCEL_OK);
    cr_expect_eq(bytes, 12 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, a, on_a), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_reset_max_memory_allocated(device), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_max_memory_allocated(device, &bytes), DS_ACCEL_OK);
    cr_expect_eq(bytes, 5 * MIB);
    EXPECT_STATUS(ds_accel_memory_allocated(device, &bytes), DS_ACCEL_OK);
    cr_expect_eq(bytes, 5 * MIB);
    EXPECT_STATUS(ds_accel_memory_reserved(device, &bytes), DS_ACCEL_OK);
    cr_expect_eq(bytes, 40 * MIB);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_max_memory_reserved(device, &bytes), DS_ACCEL_OK);
    cr_expect_eq(bytes, 40 * MIB);
    EXPECT_STATUS(ds_accel_reset_max_memory_reserved(device), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_max_memory_reserved(device, &bytes), DS_ACCEL_OK);
    cr_expect_eq(bytes, 20 * MIB);
    EXPECT_STATUS(ds_accel_reset_peak_memory_stats(device), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_allocator, trims_what_was_unused_the_longest)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *old = take(device, NULL, 30 * MIB);
    void *recent = take(device, NULL, 40 * MIB);

    EXPECT_STATUS(ds_accel_mem_free(device, NULL, old), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_memory_trim(device, 80 * MIB), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, recent), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 70 * MIB);
    EXPECT_STATUS(ds_accel_memory_trim(device, 50 * MIB), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 40 * MIB);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 0);
    test_finish(context, device);
}
