/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The caching allocator exactly at its limits. */
#include "allocator.h"

/* ---- out of memory -------------------------------------------------------------------------- */

Test(core_allocator, holds_no_more_than_its_limit)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *pointer = NULL;
    uint64_t total = 0;
    uint64_t available = 0;

    EXPECT_STATUS(ds_accel_total_memory(device, &total), DS_ACCEL_OK);
    cr_expect_eq(total, GIB);
    EXPECT_STATUS(ds_accel_memory_set_fraction(device, 0.25), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_available_memory(device, &available), DS_ACCEL_OK);
    cr_expect_eq(available, 256 * MIB);
    EXPECT_REFUSED(ds_accel_mem_alloc(device, NULL, 300 * MIB, &pointer), DS_ACCEL_ERR_NO_MEMORY,
                   "limit 256 MiB");
    EXPECT_HAS(ds_accel_last_error(), "limit_bytes of at least 300 MiB would have helped");
    pointer = take(device, NULL, 200 * MIB);
    EXPECT_STATUS(ds_accel_available_memory(device, &available), DS_ACCEL_OK);
    cr_expect_eq(available, 56 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_available_memory(device, &available), DS_ACCEL_OK);
    cr_expect_eq(available, 256 * MIB);
    EXPECT_STATUS(ds_accel_memory_set_limit(device, 0), DS_ACCEL_OK);
    pointer = take(device, NULL, 300 * MIB);
    /* less than one byte */
    EXPECT_STATUS(ds_accel_memory_set_fraction(device, 1e-12), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    pointer = NULL;
    EXPECT_STATUS(ds_accel_mem_alloc(device, NULL, 512, &pointer), DS_ACCEL_ERR_NO_MEMORY);
    EXPECT_REFUSED(ds_accel_memory_set_fraction(device, 0), DS_ACCEL_ERR_INVALID, "fraction");
    EXPECT_REFUSED(ds_accel_memory_set_fraction(device, 1.5), DS_ACCEL_ERR_INVALID, "fraction");
    test_finish(context, device);
}

/* ---- limits --------------------------------------------------------------------------------- */

Test(core_allocator, fills_its_limit_to_the_last_byte)
{
    struct scene scene = start(NULL, NULL);
    void *pointer = NULL;

    MUST(ds_accel_memory_set_limit(scene.device, 60 * MIB));
    (void)take(scene.device, NULL, 30 * MIB);
    (void)take(scene.device, NULL, 30 * MIB);
    EXPECT_STATUS(ds_accel_mem_alloc(scene.device, NULL, 512, &pointer), DS_ACCEL_ERR_NO_MEMORY);
    stop(&scene);
}

Test(core_allocator, counts_nothing_that_the_driver_refused_against_its_limit)
{
    struct scene scene = start("52428800", "limit_bytes=100MiB"); /* 50 MiB */
    void *pointer = NULL;

    EXPECT_STATUS(ds_accel_mem_alloc(scene.device, NULL, 60 * MIB, &pointer),
                  DS_ACCEL_ERR_NO_MEMORY);
    (void)take(scene.device, NULL, 46 * MIB);
    EXPECT_STAT(scene.device, "reserved_bytes.all.current", 46 * MIB);
    EXPECT_STAT(scene.device, "num_alloc_retries", 1);
    EXPECT_STAT(scene.device, "num_ooms", 1);
    stop(&scene);
}

Test(core_allocator, holds_to_the_lower_of_limit_and_fraction)
{
    static const struct {
        const char *settings;
        uint64_t wanted;
    } cases[] = {{"limit_bytes=512MiB,fraction=0.25", 256 * MIB},
                 {"limit_bytes=128MiB,fraction=0.25", 128 * MIB},
                 {"fraction=0.5", 512 * MIB}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene scene = start(NULL, cases[i].settings);
        uint64_t available = 0;

        MUST(ds_accel_available_memory(scene.device, &available));
        cr_expect_eq(available, cases[i].wanted, "%s: %llu", cases[i].settings,
                     (unsigned long long)available);
        stop(&scene);
    }
}

Test(core_allocator, collects_no_more_garbage_than_its_threshold_asks_for)
{
    struct scene scene = start(NULL, "limit_bytes=275MiB,gc_threshold=0.4"); /* 110 MiB */
    void *old = take(scene.device, NULL, 30 * MIB);
    void *recent = take(scene.device, NULL, 40 * MIB);

    give(scene.device, NULL, old);
    (void)take(scene.device, NULL, 44 * MIB);
    EXPECT_STAT(scene.device, "reserved_bytes.all.current", 114 * MIB);
    give(scene.device, NULL, recent);
    /* releases `old`, which was free for longer than the average */
    (void)take(scene.device, NULL, 50 * MIB);
    EXPECT_STAT(scene.device, "reserved_bytes.all.current", 134 * MIB);
    EXPECT_STAT(scene.device, "num_device_free", 1);
    cr_expect_eq(take(scene.device, NULL, 40 * MIB), recent);
    stop(&scene);
}

Test(core_allocator, collects_garbage_by_the_age_that_torch_counts)
{
    struct scene scene = start(NULL, "limit_bytes=1000MiB,gc_threshold=0.1"); /* 100 MiB */
    void *pointers[3];

    for (int i = 0; i < 3; i++) {
        pointers[i] = take(scene.device, NULL, (50 - 10 * (uint64_t)i) * MIB);
    }
    give(scene.device, NULL, pointers[0]);
    for (int i = 0; i < 4; i++) { /* reuses the free block; each request counts one step of age */
        give(scene.device, NULL, take(scene.device, NULL, 50 * MIB));
    }
    give(scene.device, NULL, pointers[1]);
    give(scene.device, NULL, pointers[2]);
    /* All three blocks have the same age now, so all are released; small segments and used segments
       are never garbage. */
    (void)take(scene.device, NULL, 512);
    EXPECT_STAT(scene.device, "reserved_bytes.all.current", 2 * MIB);
    EXPECT_STAT(scene.device, "num_device_free", 3);
    EXPECT_STAT(scene.device, "num_alloc_retries", 0);
    stop(&scene);
}

Test(core_allocator, treats_a_block_of_the_split_limit_as_one_above_it)
{
    struct scene scene = start(NULL, "max_split_bytes=32MiB");
    void *pointer = take(scene.device, NULL, 32 * MIB);

    EXPECT_STAT(scene.device, "oversize_allocations.current", 1);
    give(scene.device, NULL, pointer);
    EXPECT_STAT(scene.device, "oversize_allocations.current", 0);
    cr_expect_eq(take(scene.device, NULL, 32 * MIB), pointer);
    EXPECT_STAT(scene.device, "oversize_allocations.current", 1);
    /* A smaller request is cut to its own size from a new segment of that size, as in torch. */
    (void)take(scene.device, NULL, 30 * MIB + 512 * KIB);
    EXPECT_STAT(scene.device, "inactive_split_bytes.all.current", MIB + 512 * KIB);
    EXPECT_STAT(scene.device, "allocated_bytes.all.current", 62 * MIB + 512 * KIB);
    EXPECT_STAT(scene.device, "oversize_allocations.current", 1);
    give(scene.device, NULL, pointer);
    cr_expect_neq(take(scene.device, NULL, 30 * MIB + 512 * KIB), pointer);
    stop(&scene);
}

Test(core_allocator, gives_whole_blocks_back_without_emptying_the_cache)
{
    struct scene scene = start("104857600", "max_split_bytes=32MiB"); /* 100 MiB */
    void *whole = take(scene.device, NULL, 40 * MIB);
    void *part = take(scene.device, NULL, 5 * MIB);

    (void)take(scene.device, NULL, 20 * MIB);
    give(scene.device, NULL, whole);
    give(scene.device, NULL, part);
    (void)take(scene.device, NULL, 31 * MIB); /* is not split from a block of 32 MiB or more */
    EXPECT_STAT(scene.device, "num_alloc_retries", 0);
    EXPECT_STAT(scene.device, "num_device_free", 1);
    EXPECT_STAT(scene.device, "reserved_bytes.all.current", 72 * MIB);
    cr_expect_eq(take(scene.device, NULL, 5 * MIB), part);
    stop(&scene);
}

Test(core_allocator, gives_as_many_whole_blocks_back_as_the_request_needs)
{
    struct scene scene = start("104857600", "max_split_bytes=32MiB");
    void *pointers[] = {take(scene.device, NULL, 32 * MIB), take(scene.device, NULL, 34 * MIB),
                        take(scene.device, NULL, 34 * MIB)};

    for (int i = 0; i < 3; i++) {
        give(scene.device, NULL, pointers[i]);
    }
    (void)take(scene.device, NULL, 60 * MIB); /* releases the two largest free blocks */
    EXPECT_STAT(scene.device, "num_alloc_retries", 0);
    EXPECT_STAT(scene.device, "num_device_free", 2);
    cr_expect_eq(take(scene.device, NULL, 32 * MIB), pointers[0]);
    stop(&scene);
}
