/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The caching allocator and stream order: which streams wait before a block is reused. */
#include "allocator.h"
#include "clock.h"

/* ---- the order of streams -------------------------------------------------------------------- */

Test(core_allocator, leaves_memory_to_its_stream_while_the_driver_has_some)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *a = make_stream(device);
    ds_accel_stream_t *b = make_stream(device);
    void *on_a = take(device, a, 30 * MIB);
    void *on_b;

    EXPECT_STATUS(ds_accel_mem_free(device, a, on_a), DS_ACCEL_OK);
    on_b = take(device, b, 30 * MIB);
    cr_expect_neq(on_b, on_a);
    EXPECT_STAT(device, "num_device_alloc", 2);
    cr_expect_eq(take(device, a, 30 * MIB), on_a);
    EXPECT_STATUS(ds_accel_mem_free(device, b, on_b), DS_ACCEL_OK);
    ds_accel_stream_destroy(b);
    cr_expect_eq(take(device, a, 30 * MIB), on_b, "its stream is gone");
    EXPECT_STAT(device, "num_device_alloc", 2);
    test_finish(context, device);
}

Test(core_allocator, does_not_wait_within_one_stream)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *a;
    void *pointer;
    uint64_t start_ns;

    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", SLOW, 1);
    /* Creating an event or waiting would fail, so the test shows that the allocator does
       neither. */
    setenv("DS_ACCEL_MOCK_FAIL",
           "event_create:1+=driver,stream_synchronize:1+=driver,device_synchronize:1+=driver", 1);
    context = test_start("mock", &device);
    a = make_stream(device);
    pointer = take(device, a, 30 * MIB);
    start_ns = now_ns();
    occupy(a, pointer);
    for (int i = 0; i < 100; i++) {
        EXPECT_STATUS(ds_accel_mem_free(device, i % 2 == 0 ? a : NULL, pointer), DS_ACCEL_OK);
        cr_expect_eq(take(device, a, 30 * MIB), pointer);
    }
    cr_expect(elapsed_ns(start_ns) / 1e9 > 0.35 || ds_accel_stream_query(a) == DS_ACCEL_NOT_READY);
    test_finish(context, device);
}

Test(core_allocator, waits_for_every_stream_that_was_recorded)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *a;
    ds_accel_stream_t *b;
    void *pointer;

    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", SLOW, 1);
    context = test_start("mock", &device);
    a = make_stream(device);
    b = make_stream(device);
    pointer = take(device, a, 30 * MIB);
    occupy(b, pointer);
    EXPECT_STATUS(ds_accel_mem_record_stream(device, pointer, b), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, a, pointer), DS_ACCEL_OK);
    EXPECT_STAT(device, "allocation.all.current", 0);
    EXPECT_STAT(device, "active.all.current", 1);
    cr_expect_eq(ds_accel_stream_query(a), DS_ACCEL_OK);
    /* Stream a, on which the block was allocated, may reuse it only after b. */
    cr_expect_eq(take(device, a, 30 * MIB), pointer);
    expect_waits(a, b);
    EXPECT_STAT(device, "active.all.current", 1);
    EXPECT_STAT(device, "num_device_alloc", 1);
    test_finish(context, device);
}

Test(core_allocator, waits_for_the_stream_that_freed)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *a;
    ds_accel_stream_t *b;
    void *pointer;

    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", SLOW, 1);
    context = test_start("mock", &device);
    a = make_stream(device);
    b = make_stream(device);
    pointer = take(device, a, 30 * MIB);
    occupy(b, pointer);
    EXPECT_STATUS(ds_accel_mem_free(device, b, pointer), DS_ACCEL_OK);
    cr_expect_eq(take(device, a, 30 * MIB), pointer);
    expect_waits(a, b);
    test_finish(context, device);
}

Test(core_allocator, knows_when_recorded_streams_are_done)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *b = make_stream(device);
    void *pointer = take(device, NULL, 30 * MIB);

    EXPECT_STATUS(ds_accel_mem_record_stream(device, pointer, b), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "active.all.current", 0);
    EXPECT_STAT(device, "reserved_bytes.all.current", 0);
    test_finish(context, device);
}

Test(core_allocator, keeps_the_order_of_streams_that_were_destroyed)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *a;
    ds_accel_stream_t *b;
    ds_accel_event_t *end;
    void *freed_before;
    void *freed_after;

    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", SLOW, 1);
    context = test_start("mock", &device);
    a = make_stream(device);
    b = make_stream(device);
    freed_before = take(device, a, 30 * MIB);
    freed_after = take(device, a, 40 * MIB);
    occupy(a, freed_before);
    MUST(ds_accel_event_create(device, 0, &end));
    MUST(ds_accel_event_record(end, a));
    EXPECT_STATUS(ds_accel_mem_free(device, a, freed_before), DS_ACCEL_OK);
    ds_accel_stream_destroy(a);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, freed_after), DS_ACCEL_OK);
    cr_expect_eq(take(device, b, 30 * MIB), freed_before);
    cr_expect_eq(ds_accel_stream_query(b), DS_ACCEL_NOT_READY);
    MUST(ds_accel_stream_synchronize(b));
    cr_expect_eq(ds_accel_event_query(end), DS_ACCEL_OK);
    cr_expect_eq(take(device, b, 40 * MIB), freed_after);
    test_finish(context, device);
}

Test(core_allocator, is_not_confused_by_streams_that_come_and_go)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *keeper = make_stream(device);

    /* The vendor reuses handle values: each stream has the handle of the previous stream. */
    for (int i = 0; i < 300; i++) {
        ds_accel_stream_t *stream = make_stream(device);
        void *pointer = take(device, stream, 30 * MIB);
        void *recorded = take(device, keeper, 40 * MIB);

        EXPECT_STATUS(ds_accel_mem_record_stream(device, recorded, stream), DS_ACCEL_OK);
        if (i % 2 == 0) {
            EXPECT_STATUS(ds_accel_mem_free(device, stream, pointer), DS_ACCEL_OK);
            ds_accel_stream_destroy(stream);
        } else {
            ds_accel_stream_destroy(stream);
            EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
        }
        EXPECT_STATUS(ds_accel_mem_free(device, keeper, recorded), DS_ACCEL_OK);
    }
    EXPECT_STAT(device, "allocation.all.current", 0);
    EXPECT_STAT(device, "num_device_alloc", 2);
    test_finish(context, device);
}

Test(core_allocator, waits_itself_where_events_fail)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *a;
    ds_accel_stream_t *b;
    void *pointer;

    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", SLOW, 1);
    setenv("DS_ACCEL_MOCK_FAIL", "event_create:1=no_memory,event_record:1=driver", 1);
    context = test_start("mock", &device);
    a = make_stream(device);
    b = make_stream(device);
    for (int i = 0; i < 3; i++) {
        pointer = take(device, a, 30 * MIB);
        MUST(ds_accel_mem_set_async(b, pointer, 1, 512));
        EXPECT_STATUS(ds_accel_mem_free(device, b, pointer), DS_ACCEL_OK);
        if (i < 2) { /* no event was available, so the free waited on the host */
            cr_expect_eq(ds_accel_stream_query(b), DS_ACCEL_OK, "round %d", i);
        } else {
            cr_expect_eq(ds_accel_stream_query(b), DS_ACCEL_NOT_READY);
        }
    }
    test_finish(context, device);
}

Test(core_allocator, keeps_memory_out_of_use_if_no_order_can_be_had)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *a;
    ds_accel_stream_t *b;
    void *pointer;

    setenv("DS_ACCEL_MOCK_FAIL", "event_create:1+=no_memory,stream_synchronize:1+=driver", 1);
    context = test_start("mock", &device);
    a = make_stream(device);
    b = make_stream(device);
    pointer = take(device, a, 30 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, b, pointer), DS_ACCEL_ERR_DRIVER);
    cr_expect_neq(take(device, a, 30 * MIB), pointer);
    EXPECT_STATUS(ds_accel_mem_free(device, a, pointer), DS_ACCEL_ERR_INVALID);
    test_finish(context, device);
}

Test(core_allocator, uses_memory_again_once_an_order_can_be_had)
{
    static const char *const modes[] = {"caching", "off"};

    for (int i = 0; i < 2; i++) {
        ds_accel_device_t *device;
        ds_accel_t *context;
        ds_accel_stream_t *a;
        ds_accel_stream_t *b;
        void *pointer;

        setenv("DS_ACCEL_ALLOCATOR", modes[i], 1);
        setenv("DS_ACCEL_MOCK_FAIL", "event_create:1=no_memory,stream_synchronize:1=driver", 1);
        context = test_start("mock", &device);
        a = make_stream(device);
        b = make_stream(device);
        pointer = take(device, a, 30 * MIB);
        EXPECT_STATUS(ds_accel_mem_free(device, b, pointer), DS_ACCEL_ERR_DRIVER);
        EXPECT_STAT(device, "allocation.all.current", 0);
        EXPECT_STAT(device, "allocated_bytes.all.current", 0);
        EXPECT_STAT(device, "active_bytes.all.current", 30 * MIB);
        EXPECT_STAT(device, "reserved_bytes.all.current", 30 * MIB);
        EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
        EXPECT_STAT(device, "active_bytes.all.current", 0);
        EXPECT_STAT(device, "reserved_bytes.all.current", 0);
        test_finish(context, device);
    }
}

Test(core_allocator, waits_for_the_device_if_a_stream_is_gone_without_a_mark)
{
    struct scene scene;
    void *pointer;
    uint64_t start_ns;

    setenv("DS_ACCEL_MOCK_FAIL", "event_create:1+=no_memory,stream_synchronize:1+=driver", 1);
    scene = start(NULL, NULL);
    pointer = take(scene.device, scene.a, 30 * MIB);
    start_ns = now_ns();
    occupy(scene.a, pointer);
    give(scene.device, scene.a, pointer);
    ds_accel_stream_destroy(scene.a);
    cr_expect_eq(take(scene.device, scene.b, 30 * MIB), pointer);
    cr_expect_geq(elapsed_ns(start_ns) / 1e9, 0.4, "the fill goes on");
    stop(&scene);
}

/* ---- the order of streams, continued --------------------------------------------------------- */

Test(core_allocator, keeps_the_rest_of_a_stolen_block_pending)
{
    struct scene scene = start("41943040", NULL); /* 40 MiB */
    ds_accel_stream_t *freeing = make_stream(scene.device);
    char *part;
    char *rest;

    (void)take(scene.device, scene.a, 5 * MIB);
    part = take(scene.device, scene.a, 9 * MIB);
    (void)take(scene.device, scene.a, 6 * MIB);
    (void)take(scene.device, scene.a, 20 * MIB);
    occupy(freeing, part);
    give(scene.device, freeing, part);
    cr_expect_eq(take(scene.device, scene.b, 4 * MIB), part);
    rest = take(scene.device, scene.a, 5 * MIB);
    cr_expect_eq(rest, part + 4 * MIB);
    expect_waits(scene.a, freeing);
    stop(&scene);
}

Test(core_allocator, waits_for_the_stream_that_a_part_was_given_to)
{
    struct scene scene = start("41943040", NULL);
    void *part;

    (void)take(scene.device, scene.a, 5 * MIB);
    part = take(scene.device, scene.a, 6 * MIB);
    (void)take(scene.device, scene.a, 9 * MIB);
    (void)take(scene.device, scene.a, 20 * MIB);
    give(scene.device, scene.a, part);
    cr_assert_eq(take(scene.device, scene.b, 6 * MIB), part);
    occupy(scene.b, part);
    give(scene.device, NULL, part); /* NULL: in the order of the stream that allocated the part */
    cr_expect_eq(take(scene.device, scene.a, 6 * MIB), part);
    expect_waits(scene.a, scene.b);
    stop(&scene);
}

Test(core_allocator, waits_on_the_host_where_a_stream_cannot_wait)
{
    struct scene scene;
    void *pointer;

    setenv("DS_ACCEL_MOCK_FAIL", "stream_wait_event:1=driver", 1);
    scene = start("20971520", NULL); /* one segment, which stays */
    (void)take(scene.device, scene.a, 9 * MIB);
    pointer = take(scene.device, scene.a, 9 * MIB);
    occupy(scene.a, pointer);
    give(scene.device, scene.a, pointer);
    cr_expect_eq(take(scene.device, scene.b, 9 * MIB), pointer);
    cr_expect_eq(ds_accel_stream_query(scene.a), DS_ACCEL_OK, "nobody waited");
    stop(&scene);
}

Test(core_allocator, gives_back_only_what_its_stream_is_done_with)
{
    static const char *const settings[] = {"caching", "growable_segments=true"};
    /* the second value is whole pages of 20 MiB */
    static const uint64_t left[] = {30 * MIB, 40 * MIB};

    for (int i = 0; i < 2; i++) {
        struct scene scene = start(NULL, settings[i]);
        void *first = take(scene.device, scene.a, 30 * MIB);
        void *second = take(scene.device, scene.a, 30 * MIB);

        occupy(scene.a, second);
        give(scene.device, scene.a, second);
        MUST(ds_accel_empty_cache(scene.device));
        EXPECT_STAT(scene.device, "reserved_bytes.all.current", left[i]);
        cr_expect_eq(ds_accel_stream_query(scene.a), DS_ACCEL_OK, "%s: it was in use", settings[i]);
        give(scene.device, scene.a, first);
        stop(&scene);
    }
}

Test(core_allocator, destroys_every_event_that_it_made)
{
    struct scene scene;
    ds_accel_stream_t *streams[3];
    void *pointers[3];

    setenv("DS_ACCEL_LAYERS", "leak", 1);
    scene = start(NULL, NULL);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            streams[i] = make_stream(scene.device);
            pointers[i] = take(scene.device, scene.a, 3 * MIB);
            MUST(ds_accel_mem_record_stream(scene.device, pointers[i], streams[i]));
        }
        for (int i = 0; i < 3; i++) {
            give(scene.device, scene.a, pointers[i]);
        }
        MUST(ds_accel_device_synchronize(scene.device));
        MUST(ds_accel_empty_cache(scene.device));
        for (int i = 0; i < 3; i++) {
            ds_accel_stream_destroy(streams[i]);
        }
    }
    stop(&scene);
    EXPECT_HAS_NOT(test_log, "x event");
}

Test(core_allocator, counts_a_part_that_was_pending_as_merged_when_it_is_free)
{
    struct scene scene = start("20971520", NULL); /* one segment */
    char *first = take(scene.device, scene.a, 3 * MIB);
    char *second = take(scene.device, scene.a, 5 * MIB);

    /* At most two free parts exist: a block that raises a peak is freed on the slow path, which
       merges it at once. */
    give(scene.device, scene.a, first);
    EXPECT_STAT(scene.device, "inactive_split.all.current", 2);
    cr_assert_eq(take(scene.device, scene.a, 3 * MIB), first);
    (void)take(scene.device, scene.a, 12 * MIB);
    MUST(ds_accel_mem_record_stream(scene.device, second, scene.b));
    occupy(scene.b, second);
    give(scene.device, scene.a, second);
    give(scene.device, scene.a, first);
    cr_assert_eq(take(scene.device, scene.a, 5 * MIB), second);
    give(scene.device, scene.a, second);
    EXPECT_STAT(scene.device, "inactive_split.all.current", 1);
    EXPECT_STAT(scene.device, "inactive_split_bytes.all.current", 8 * MIB);
    cr_expect_eq(take(scene.device, scene.a, 8 * MIB), first);
    EXPECT_STAT(scene.device, "inactive_split.all.current", 0);
    EXPECT_STAT(scene.device, "inactive_split_bytes.all.current", 0);
    stop(&scene);
}

/* Cache 20 MiB as parts of 8 and 12 MiB: stream b still uses the first part, no stream uses the
   second. */
static void cache_behind_another_stream(const struct scene *scene)
{
    void *first = take(scene->device, scene->a, 8 * MIB);
    void *second = take(scene->device, scene->a, 12 * MIB);

    MUST(ds_accel_mem_record_stream(scene->device, first, scene->b));
    occupy(scene->b, first);
    give(scene->device, scene->a, first);
    give(scene->device, scene->a, second);
}

Test(core_allocator, waits_for_other_streams_before_it_fails)
{
    static const char *const settings[] = {"caching", "growable_segments=true"};

    for (int i = 0; i < 2; i++) {
        struct scene scene = start("41943040", settings[i]); /* 40 MiB */

        cache_behind_another_stream(&scene);
        (void)take(scene.device, scene.a, 40 * MIB);
        EXPECT_STAT(scene.device, "num_alloc_retries", 1);
        EXPECT_STAT(scene.device, "reserved_bytes.all.peak", 40 * MIB);
        stop(&scene);
    }
}

Test(core_allocator, gives_back_what_other_streams_are_not_done_with_when_they_are)
{
    static const char *const settings[] = {"caching", "growable_segments=true"};

    for (int i = 0; i < 2; i++) {
        struct scene scene = start(NULL, settings[i]);

        cache_behind_another_stream(&scene);
        MUST(ds_accel_empty_cache(scene.device));
        EXPECT_STAT(scene.device, "reserved_bytes.all.current", 0);
        EXPECT_STAT(scene.device, "active.all.current", 0);
        stop(&scene);
    }
}

Test(core_allocator, counts_what_other_streams_are_done_with_as_cached)
{
    struct scene scene = start(NULL, NULL);
    uint64_t before = 0;
    uint64_t available = 0;
    uint64_t largest = 0;
    double fragmentation = -1;

    MUST(ds_accel_available_memory(scene.device, &before));
    cache_behind_another_stream(&scene);
    MUST(ds_accel_available_memory(scene.device, &available));
    cr_expect_eq(available, before - 20 * MIB, "%llu", (unsigned long long)available);
    MUST(ds_accel_stream_synchronize(scene.b));
    MUST(ds_accel_available_memory(scene.device, &available));
    cr_expect_eq(available, before, "%llu", (unsigned long long)available);
    MUST(ds_accel_memory_fragmentation(scene.device, &fragmentation, &largest));
    cr_expect_eq(largest, 20 * MIB, "%llu", (unsigned long long)largest);
    cr_expect_eq(fragmentation, 0);
    stop(&scene);
}

Test(core_allocator, takes_no_more_of_a_stream_that_is_gone_than_the_driver_would_give)
{
    struct scene scene = start("125829120", NULL); /* 120 MiB */

    give(scene.device, scene.a, take(scene.device, scene.a, 100 * MIB));
    ds_accel_stream_destroy(scene.a);
    (void)take(scene.device, scene.b, 2 * MIB);
    (void)take(scene.device, scene.b, 100 * MIB);
    stop(&scene);
}
