/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the tests of pinned memory: a device, blocks and statistics. */
#ifndef DS_ACCEL_TESTS_RUNTIME_PINNED_H
#define DS_ACCEL_TESTS_RUNTIME_PINNED_H

#include "fixture.h"

#define KIB(count) (UINT64_C(1024) * (count))
#define MIB(count) (KIB(1024) * (count))

static ds_accel_t *context;
static ds_accel_device_t *device;

static inline void start(const char *accelerator)
{
    struct ds_accel_options options = test_options();

    options.accelerator = accelerator;
    options.log_levels = "info,pinned=debug";
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK);
}

static inline void finish(void)
{
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

static inline void *take(uint64_t size_bytes, uint64_t align_bytes, uint32_t flags)
{
    void *pointer = NULL;

    EXPECT_STATUS(ds_accel_mem_alloc_pinned(device, size_bytes, align_bytes, flags, &pointer),
                  DS_ACCEL_OK);
    return pointer;
}

static inline void give(void *pointer)
{
    EXPECT_STATUS(ds_accel_mem_free_pinned(device, pointer), DS_ACCEL_OK);
}

static inline struct ds_accel_pinned_stats stats_now(void)
{
    struct ds_accel_pinned_stats stats = {.struct_size = sizeof(stats)};

    EXPECT_STATUS(ds_accel_pinned_stats(device, &stats), DS_ACCEL_OK);
    return stats;
}

static inline bool is_pinned(const void *pointer)
{
    uint32_t answer = 9;

    EXPECT_STATUS(ds_accel_is_pinned(context, pointer, &answer), DS_ACCEL_OK);
    cr_expect_leq(answer, 1);
    return answer == 1;
}

static inline void *start_slow(void)
{
    void *memory = NULL;

    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", "200000000", 1);
    start("mock");
    cr_assert_eq(ds_accel_mem_alloc(device, NULL, 4096, &memory), DS_ACCEL_OK);
    return memory;
}

#endif
