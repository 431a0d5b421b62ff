/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The caching allocator in mode "debug". */
#include "allocator.h"

/* ---- debug ---------------------------------------------------------------------------------- */

static ds_accel_t *start_debug(const char *more, ds_accel_device_t **device_out)
{
    char value[64];

    snprintf(value, sizeof(value), "debug%s", more);
    setenv("DS_ACCEL_ALLOCATOR", value, 1);
    return test_start("mock", device_out);
}

Test(core_allocator, debug_fills_memory_and_keeps_it_from_being_used_again)
{
    ds_accel_device_t *device;
    ds_accel_t *context = start_debug("", &device);
    unsigned char bytes[100] = {0};
    void *pointer = take(device, NULL, sizeof(bytes));

    MUST(ds_accel_device_synchronize(device));
    MUST(ds_accel_mem_copy(device, bytes, pointer, sizeof(bytes), DS_ACCEL_COPY_DEVICE_TO_HOST));
    cr_expect_eq(bytes[0], 0xCB);
    cr_expect_eq(bytes[99], 0xCB);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    MUST(ds_accel_device_synchronize(device));
    MUST(ds_accel_mem_copy(device, bytes, pointer, sizeof(bytes), DS_ACCEL_COPY_DEVICE_TO_HOST));
    cr_expect_eq(bytes[50], 0xDD);
    cr_expect_neq(take(device, NULL, sizeof(bytes)), pointer);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_allocator, debug_finds_writes_past_the_end)
{
    ds_accel_device_t *device;
    ds_accel_t *context = start_debug("", &device);
    char *pointer = take(device, NULL, 1000);

    MUST(ds_accel_mem_set(device, pointer + 1000, 1, 4));
    EXPECT_REFUSED(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_ERR_INVALID,
                   "1 bytes behind it");
    EXPECT_HAS(ds_accel_last_error(), "allocated in ");
    EXPECT_STAT(device, "allocation.all.current", 0);
    test_finish(context, device);
}

Test(core_allocator, debug_finds_use_after_free)
{
    ds_accel_device_t *device;
    ds_accel_t *context = start_debug(",quarantine_bytes=4KiB", &device);
    char *pointer = take(device, NULL, 1000);
    char *other = take(device, NULL, 4000);

    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    MUST(ds_accel_mem_set(device, pointer + 17, 1, 1));
    /* The write is detected when the block leaves the quarantine. */
    EXPECT_REFUSED(ds_accel_mem_free(device, NULL, other), DS_ACCEL_ERR_INVALID,
                   "use after free: byte 17 of the 1000 bytes");
    EXPECT_HAS(ds_accel_last_error(), "freed in ");
    pointer = take(device, NULL, 1000);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    MUST(ds_accel_mem_set(device, pointer, 1, 1));
    EXPECT_REFUSED(ds_accel_empty_cache(device), DS_ACCEL_ERR_INVALID, "use after free: byte 0");
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_allocator, debug_says_where_a_block_was_freed_before)
{
    ds_accel_device_t *device;
    ds_accel_t *context = start_debug("", &device);
    char *pointer = take(device, NULL, 1000);

    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_ERR_INVALID,
                   "was freed before; allocated in ");
    EXPECT_HAS(ds_accel_last_error(), "; freed in ");
    test_finish(context, device);
}

/* ---- red zones and the quarantine of mode debug ---------------------------------------------- */

Test(core_allocator, debug_looks_at_the_whole_red_zone)
{
    struct scene scene = start(NULL, "debug");
    char *pointer = take(scene.device, NULL, 1024);

    /* The last of the 512 bytes after the block, all of which are red zone. */
    MUST(ds_accel_mem_set(scene.device, pointer + 1024 + 511, 1, 1));
    EXPECT_REFUSED(ds_accel_mem_free(scene.device, NULL, pointer), DS_ACCEL_ERR_INVALID,
                   "512 bytes behind it");
    stop(&scene);
}

Test(core_allocator, debug_fills_nothing_that_a_recorded_stream_uses)
{
    struct scene scene = start(NULL, "debug");
    void *pointer = take(scene.device, scene.a, 1024);

    MUST(ds_accel_mem_record_stream(scene.device, pointer, scene.b));
    for (int i = 0; i < 4; i++) { /* keeps b busy for longer than the check of the memory takes */
        occupy(scene.b, pointer);
    }
    give(scene.device, scene.a, pointer);
    cr_expect_eq(ds_accel_stream_query(scene.b), DS_ACCEL_OK, "it was filled while in use");
    stop(&scene);
}

Test(core_allocator, debug_lets_go_in_order_however_much_it_holds)
{
    struct scene scene;
    void *pointers[300];
    void *large;

    setenv("DS_ACCEL_ALLOCATOR", "debug,quarantine_bytes=1MiB", 1);
    scene.context = test_start("mock", &scene.device);
    for (int i = 0; i < 300; i++) {
        pointers[i] = take(scene.device, NULL, 1000);
    }
    large = take(scene.device, NULL, 960 * KIB);
    /* The oldest blocks leave the quarantine before it has many blocks, so that its remaining
       blocks do not begin at index 0. */
    for (int i = 0; i < 40; i++) {
        give(scene.device, NULL, pointers[i]);
    }
    give(scene.device, NULL, large);
    for (int i = 40; i < 300; i++) {
        give(scene.device, NULL, pointers[i]);
    }
    /* Block 40 is the oldest remaining block, so its damage is found and reported first. */
    MUST(ds_accel_mem_set(scene.device, (char *)pointers[100] + 2, 1, 1));
    MUST(ds_accel_mem_set(scene.device, (char *)pointers[40] + 1, 1, 1));
    EXPECT_REFUSED(ds_accel_empty_cache(scene.device), DS_ACCEL_ERR_INVALID, "byte 1 of");
    EXPECT_STAT(scene.device, "active.all.current", 0);
    EXPECT_STAT(scene.device, "active_bytes.all.current", 0);
    EXPECT_STAT(scene.device, "reserved_bytes.all.current", 0);
    stop(&scene);
}
