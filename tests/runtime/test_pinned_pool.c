/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The pool of pinned memory: the blocks it allocates, caches and releases. */
#include "runtime.h"

#include <unistd.h>

/* ---- pinned memory -------------------------------------------------------------------------- */

static void *pin(ds_accel_device_t *device, uint64_t size_bytes, uint64_t align_bytes)
{
    void *pointer = NULL;

    MUST(ds_accel_mem_alloc_pinned(device, size_bytes, align_bytes, 0, &pointer));
    return pointer;
}

static struct ds_accel_pinned_stats pinned_stats(ds_accel_device_t *device)
{
    struct ds_accel_pinned_stats stats = {.struct_size = sizeof(stats)};

    MUST(ds_accel_pinned_stats(device, &stats));
    return stats;
}

Test(core_pinned, empties_itself_when_the_host_is_out_of_memory)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    void *pointer;

    setenv("DS_ACCEL_MOCK_FAIL", "mem_alloc_pinned:2=no_memory", 1);
    context = test_start("mock", &device);
    MUST(ds_accel_mem_free_pinned(device, pin(device, 100000, 1)));
    pointer = pin(device, 300000, 1);
    cr_expect_eq(pinned_stats(device).alloc_retry_count, 1);
    cr_expect_eq(pinned_stats(device).cached_bytes, 0);
    MUST(ds_accel_mem_free_pinned(device, pointer));
    test_finish(context, device);
}

Test(core_pinned, gives_a_page_where_one_is_asked_for)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *blocks[16];
    unsigned unaligned = 0;

    for (int i = 0; i < 16; i++) {
        blocks[i] = pin(device, 5000, 1);
        unaligned += (uintptr_t)blocks[i] % page != 0;
    }
    cr_assert_gt(unaligned, 0, "the test needs some that lie on no page");
    for (int i = 0; i < 16; i++) {
        MUST(ds_accel_mem_free_pinned(device, blocks[i]));
    }
    for (int i = 0; i < 16; i++) {
        cr_expect_eq((uintptr_t)pin(device, 5000, 0) % page, 0);
    }
    test_finish(context, device);
}

Test(core_pinned, keeps_as_much_as_a_new_limit_allows)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *blocks[4];

    for (int i = 0; i < 4; i++) {
        blocks[i] = pin(device, MIB, 1);
    }
    for (int i = 0; i < 4; i++) {
        MUST(ds_accel_mem_free_pinned(device, blocks[i]));
    }
    cr_expect_eq(pinned_stats(device).cached_bytes, 4 * MIB);
    MUST(ds_accel_pinned_set_limit(device, 2 * MIB));
    cr_expect_eq(pinned_stats(device).cached_bytes, 2 * MIB);
    test_finish(context, device);
}
