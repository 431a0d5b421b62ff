/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The caching allocator at its edges: limits that are met exactly, waits that only one order of
 * calls needs, captures beside other streams. Each of these went unseen by test_allocator.c when
 * the defect was put in on purpose (tests/mutations/allocator).
 */
#include "fixture.h"

#include <dlfcn.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define SLOW "400000000" /* a copy takes so many nanoseconds: longer than any call here */

static ds_accel_stream_t *make_stream(ds_accel_device_t *device)
{
    ds_accel_stream_t *stream = NULL;

    MUST(ds_accel_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &stream));
    return stream;
}

static void *take(ds_accel_device_t *device, ds_accel_stream_t *stream, uint64_t size_bytes)
{
    void *pointer = NULL;

    MUST(ds_accel_mem_alloc(device, stream, size_bytes, &pointer));
    return pointer;
}

static void give(ds_accel_device_t *device, ds_accel_stream_t *stream, void *pointer)
{
    EXPECT_STATUS(ds_accel_mem_free(device, stream, pointer), DS_ACCEL_OK);
}

#define EXPECT_STAT(device, key, wanted) \
    do { \
        int64_t value_ = -1; \
        MUST(ds_accel_memory_stat(device, key, &value_)); \
        cr_expect_eq(value_, (int64_t)(wanted), "%s is %lld, not %lld", key, (long long)value_, \
                     (long long)(wanted)); \
    } while (0)

/* Keep a stream busy. */
static void occupy(ds_accel_stream_t *stream, void *pointer)
{
    MUST(ds_accel_mem_set_async(stream, pointer, 1, 512));
    cr_assert_eq(ds_accel_stream_query(stream), DS_ACCEL_NOT_READY);
}

/* The stream, that had nothing to do, is behind the one that was busy. */
static void expect_waits(ds_accel_stream_t *stream, ds_accel_stream_t *busy)
{
    cr_expect_eq(ds_accel_stream_query(stream), DS_ACCEL_NOT_READY, "it does not wait");
    MUST(ds_accel_stream_synchronize(stream));
    cr_expect_eq(ds_accel_stream_query(busy), DS_ACCEL_OK, "it was done before the other");
}

/* The mock with so much memory, slow copies and two streams. */
struct scene {
    ds_accel_t *context;
    ds_accel_device_t *device;
    ds_accel_stream_t *a;
    ds_accel_stream_t *b;
};

static struct scene start(const char *memory_bytes, const char *settings)
{
    struct scene scene;

    if (memory_bytes != NULL) {
        setenv("DS_ACCEL_MOCK_MEMORY_BYTES", memory_bytes, 1);
    }
    if (settings != NULL) {
        setenv("DS_ACCEL_ALLOCATOR", settings, 1);
    }
    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", SLOW, 1);
    scene.context = test_start("mock", &scene.device);
    scene.a = make_stream(scene.device);
    scene.b = make_stream(scene.device);
    return scene;
}

static void stop(const struct scene *scene)
{
    test_finish(scene->context, scene->device);
}

/* ---- the order of streams ------------------------------------------------------------------- */

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
    give(scene.device, NULL, part); /* in the order of the stream that it was given to */
    cr_expect_eq(take(scene.device, scene.a, 6 * MIB), part);
    expect_waits(scene.a, scene.b);
    stop(&scene);
}

Test(core_allocator, waits_on_the_host_where_a_stream_cannot_wait)
{
    struct scene scene;
    void *pointer;

    setenv("DS_ACCEL_MOCK_FAIL", "stream_wait_event:1=driver", 1);
    scene = start("20971520", NULL); /* one segment, that stays */
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
    static const uint64_t left[] = {30 * MIB, 40 * MIB}; /* the second: of pages of 20 MiB */

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

    /* Two parts at most: what raises a peak is freed the long way, and merged at once. */
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

/* 20 MiB in parts of 8 and 12, of which b still uses the first and nobody the second. */
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
    (void)take(scene.device, NULL, 50 * MIB); /* old was free for longer than the average */
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
    for (int i = 0; i < 4; i++) { /* in the block that it goes back to: a request each */
        give(scene.device, NULL, take(scene.device, NULL, 50 * MIB));
    }
    give(scene.device, NULL, pointers[1]);
    give(scene.device, NULL, pointers[2]);
    /* All three are as old; what is small is never garbage, nor is what is in use. */
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
    /* Of a new segment of that size a smaller request gets what it needs, as with torch. */
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
    (void)take(scene.device, NULL, 31 * MIB); /* is cut from no block of 32 MiB and more */
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
    (void)take(scene.device, NULL, 60 * MIB); /* the two largest */
    EXPECT_STAT(scene.device, "num_alloc_retries", 0);
    EXPECT_STAT(scene.device, "num_device_free", 2);
    cr_expect_eq(take(scene.device, NULL, 32 * MIB), pointers[0]);
    stop(&scene);
}

/* ---- what the driver is asked ---------------------------------------------------------------- */

static struct {
    struct ds_accel_plugin table;
    int32_t (*query)(ds_accel_plugin_event_t *event, struct ds_accel_error *error);
    int32_t (*synchronize)(ds_accel_plugin_event_t *event, uint64_t timeout_ns,
                           struct ds_accel_error *error);
    uint32_t query_count;
    uint32_t synchronize_count;
} counting;

static int32_t count_query(ds_accel_plugin_event_t *event, struct ds_accel_error *error)
{
    counting.query_count++;
    return counting.query(event, error);
}

static int32_t count_synchronize(ds_accel_plugin_event_t *event, uint64_t timeout_ns,
                                 struct ds_accel_error *error)
{
    counting.synchronize_count++;
    return counting.synchronize(event, timeout_ns, error);
}

static const struct ds_accel_plugin *counting_entry(const struct ds_accel_host *host)
{
    void *module = dlopen(TEST_MOCKS "/ds_accel_alpha.so", RTLD_NOW | RTLD_LOCAL);
    ds_accel_entry_v1_t entry =
        module != NULL ? (ds_accel_entry_v1_t)dlsym(module, DS_ACCEL_ENTRY_V1_SYMBOL) : NULL;

    cr_assert_not_null(entry);
    counting.table = *entry(host);
    counting.table.name = "counting";
    counting.query = counting.table.event_query;
    counting.synchronize = counting.table.event_synchronize;
    counting.table.event_query = count_query;
    counting.table.event_synchronize = count_synchronize;
    return &counting.table;
}

/* A device whose calls are counted from here on. */
static struct scene start_counting(const char *settings, const char *latency_ns)
{
    struct ds_accel_options options = test_options();
    struct scene scene;

    setenv("DS_ACCEL_ALLOCATOR", settings, 1);
    setenv("DS_ACCEL_COUNTING_COPY_LATENCY_NS", latency_ns, 1);
    options.accelerator = "counting";
    scene.context = test_create_with(&options);
    MUST(ds_accel_register(scene.context, counting_entry));
    MUST(ds_accel_detect(scene.context));
    MUST(ds_accel_device_open(scene.context, 0, &scene.device));
    scene.a = make_stream(scene.device);
    scene.b = make_stream(scene.device);
    return scene;
}

#define CROWD 12

/* So many blocks of stream a, given back by a stream that is busy. */
static void cache_crowd(const struct scene *scene)
{
    void *pointers[CROWD];

    for (int i = 0; i < CROWD; i++) {
        pointers[i] = take(scene->device, scene->a, 20 * MIB);
    }
    occupy(scene->b, pointers[0]);
    for (int i = 0; i < CROWD; i++) {
        give(scene->device, scene->b, pointers[i]);
    }
    counting.query_count = counting.synchronize_count = 0;
}

Test(core_allocator, asks_a_busy_stream_once_whatever_waits_for_it)
{
    struct scene scene = start_counting("limit_bytes=1000MiB,gc_threshold=0.9", SLOW);

    cache_crowd(&scene);
    (void)take(scene.device, scene.a, 512);
    cr_expect_leq(counting.query_count, 3, "%u", counting.query_count);
    MUST(ds_accel_stream_synchronize(scene.b));
    (void)take(scene.device, scene.a, 512);
    EXPECT_STAT(scene.device, "active.all.current", 2);
    stop(&scene);
}

/* They are done one after another, the latest in the list first. */
Test(core_allocator, asks_no_stream_again_for_each_that_is_done)
{
    struct scene scene = start_counting("caching", "20000000");
    ds_accel_stream_t *streams[CROWD];
    void *pointers[CROWD];

    for (int i = 0; i < CROWD; i++) {
        streams[i] = make_stream(scene.device);
        pointers[i] = take(scene.device, scene.a, 20 * MIB);
    }
    for (int i = 0; i < CROWD; i++) {
        for (int k = i; k < CROWD; k++) {
            MUST(ds_accel_mem_set_async(streams[i], pointers[i], 1, 512));
        }
        give(scene.device, streams[i], pointers[i]);
    }
    counting.query_count = counting.synchronize_count = 0;
    MUST(ds_accel_empty_cache(scene.device));
    EXPECT_STAT(scene.device, "reserved_bytes.all.current", 0);
    cr_expect_leq(counting.query_count, 3 * CROWD, "%u", counting.query_count);
    stop(&scene);
}

Test(core_allocator, waits_for_nobody_where_it_may_keep_all)
{
    struct scene scene = start_counting("caching", SLOW);

    cache_crowd(&scene);
    MUST(ds_accel_memory_trim(scene.device, CROWD * 20 * MIB));
    cr_expect_eq(counting.synchronize_count, 0, "%u", counting.synchronize_count);
    cr_expect_eq(ds_accel_stream_query(scene.b), DS_ACCEL_NOT_READY);
    MUST(ds_accel_memory_trim(scene.device, CROWD * 20 * MIB - 1));
    EXPECT_STAT(scene.device, "reserved_bytes.all.current", (CROWD - 1) * 20 * MIB);
    stop(&scene);
}

/* ---- virtual memory ------------------------------------------------------------------------- */

Test(core_allocator, gives_all_pages_of_a_grown_segment_back)
{
    struct scene scene = start("104857600", "growable_segments=true"); /* 100 MiB */

    for (int i = 0; i < 5; i++) {
        void *pointer = take(scene.device, NULL, 60 * MIB);

        give(scene.device, NULL, pointer);
        MUST(ds_accel_empty_cache(scene.device));
        EXPECT_STAT(scene.device, "reserved_bytes.all.current", 0);
    }
    stop(&scene);
}

Test(core_allocator, splits_what_can_grow_whatever_its_size)
{
    struct scene scene = start(NULL, "growable_segments=true,max_split_bytes=32MiB");
    void *pointer = take(scene.device, NULL, 40 * MIB);

    give(scene.device, NULL, pointer);
    cr_expect_eq(take(scene.device, NULL, 10 * MIB), pointer);
    EXPECT_STAT(scene.device, "reserved_bytes.all.current", 40 * MIB);
    stop(&scene);
}

Test(core_allocator, grows_by_less_than_a_page_before_it_fails)
{
    struct scene scene = start(NULL, "growable_segments=true,limit_bytes=42MiB");
    void *pointer = NULL;

    (void)take(scene.device, NULL, 20 * MIB);
    (void)take(scene.device, NULL, 21 * MIB);
    EXPECT_STAT(scene.device, "reserved_bytes.all.current", 42 * MIB);
    EXPECT_STATUS(ds_accel_mem_alloc(scene.device, NULL, 2 * MIB, &pointer),
                  DS_ACCEL_ERR_NO_MEMORY);
    EXPECT_STAT(scene.device, "num_ooms", 1);
    stop(&scene);
}

Test(core_allocator, unmaps_what_could_not_be_made_accessible)
{
    struct scene scene;
    void *first;
    void *second = NULL;

    setenv("DS_ACCEL_MOCK_FAIL", "vmem_set_access:4=driver", 1); /* two pages, one, and this */
    scene = start(NULL, "growable_segments=true");
    first = take(scene.device, NULL, 30 * MIB);
    EXPECT_STATUS(ds_accel_mem_alloc(scene.device, NULL, 50 * MIB, &second), DS_ACCEL_ERR_DRIVER);
    EXPECT_STAT(scene.device, "reserved_bytes.all.current", 40 * MIB);
    cr_expect_eq(take(scene.device, NULL, 50 * MIB), (char *)first + 30 * MIB, "the same place");
    EXPECT_STAT(scene.device, "segment.all.current", 1);
    stop(&scene);
}

/* ---- pools and captures --------------------------------------------------------------------- */

Test(core_allocator, gives_no_part_of_a_private_pool_to_others)
{
    struct scene scene = start("41943040", NULL);
    ds_accel_pool_t *pool = NULL;
    void *kept;
    void *part;
    void *pointer = NULL;

    MUST(ds_accel_pool_create(scene.device, &pool));
    MUST(ds_accel_pool_begin(pool));
    kept = take(scene.device, scene.a, 5 * MIB);
    part = take(scene.device, scene.a, 14 * MIB);
    MUST(ds_accel_pool_end(pool));
    (void)take(scene.device, scene.b, 6 * MIB);
    give(scene.device, NULL, part);
    EXPECT_STATUS(ds_accel_mem_alloc(scene.device, scene.b, 16 * MIB, &pointer),
                  DS_ACCEL_ERR_NO_MEMORY);
    EXPECT_STATUS(ds_accel_mem_alloc(scene.device, scene.b, 14 * MIB + 512, &pointer),
                  DS_ACCEL_ERR_NO_MEMORY);
    for (int i = 0; i < 4; i++) { /* what the other segment still has; none of the pool's */
        if (ds_accel_mem_alloc(scene.device, scene.b, 5 * MIB, &pointer) == DS_ACCEL_OK) {
            cr_expect((char *)pointer < (char *)kept || (char *)pointer >= (char *)kept + 20 * MIB,
                      "a part of the pool");
        }
    }
    stop(&scene);
}

Test(core_allocator, puts_no_wait_for_pending_memory_into_a_capture)
{
    struct scene scene = start(NULL, NULL);
    ds_accel_pool_t *pool = NULL;
    ds_accel_graph_t *graph = NULL;
    uint64_t nodes = 0;
    void *pending;
    void *captured;

    MUST(ds_accel_pool_create(scene.device, &pool));
    MUST(ds_accel_pool_begin(pool));
    pending = take(scene.device, scene.a, 30 * MIB);
    MUST(ds_accel_pool_end(pool));
    occupy(scene.b, pending);
    give(scene.device, scene.b, pending);
    MUST(ds_accel_graph_create(scene.device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, scene.a, pool, DS_ACCEL_CAPTURE_THREAD_LOCAL));
    captured = take(scene.device, scene.a, 30 * MIB);
    cr_expect_neq(captured, pending);
    MUST(ds_accel_mem_set_async(scene.a, captured, 5, 512));
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
    MUST(ds_accel_graph_node_count(graph, &nodes));
    cr_expect_eq(nodes, 1);
    stop(&scene);
}

Test(core_allocator, defers_what_a_capturing_stream_was_recorded_on)
{
    struct scene scene = start(NULL, NULL);
    ds_accel_stream_t *capturing = make_stream(scene.device);
    ds_accel_graph_t *graph = NULL;
    uint64_t nodes = 0;
    void *block = take(scene.device, scene.a, 30 * MIB);

    MUST(ds_accel_graph_create(scene.device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, capturing, NULL, DS_ACCEL_CAPTURE_THREAD_LOCAL));
    MUST(ds_accel_mem_set_async(capturing, block, 5, 512));
    MUST(ds_accel_mem_record_stream(scene.device, block, capturing));
    /* Freed by a stream that is busy with it, and neither captures nor is its own. */
    occupy(scene.b, block);
    give(scene.device, scene.b, block);
    cr_expect_neq(take(scene.device, scene.a, 30 * MIB), block);
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
    MUST(ds_accel_graph_node_count(graph, &nodes));
    cr_expect_eq(nodes, 1);
    cr_expect_eq(take(scene.device, scene.a, 30 * MIB), block);
    expect_waits(scene.a, scene.b);
    stop(&scene);
}

Test(core_allocator, gives_nothing_back_while_any_stream_captures)
{
    struct scene scene = start(NULL, NULL);
    ds_accel_graph_t *graph = NULL;
    void *cached = take(scene.device, scene.b, 30 * MIB);

    give(scene.device, scene.b, cached);
    MUST(ds_accel_graph_create(scene.device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, scene.a, NULL, DS_ACCEL_CAPTURE_THREAD_LOCAL));
    MUST(ds_accel_empty_cache(scene.device));
    EXPECT_STAT(scene.device, "reserved_bytes.all.current", 30 * MIB);
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
    MUST(ds_accel_empty_cache(scene.device));
    EXPECT_STAT(scene.device, "reserved_bytes.all.current", 0);
    stop(&scene);
}

Test(core_allocator, goes_on_capturing_when_a_second_capture_is_refused)
{
    struct scene scene = start(NULL, NULL);
    ds_accel_graph_t *graphs[2] = {NULL, NULL};
    void *common = take(scene.device, scene.a, 30 * MIB);

    give(scene.device, scene.a, common);
    MUST(ds_accel_graph_create(scene.device, &graphs[0]));
    MUST(ds_accel_graph_create(scene.device, &graphs[1]));
    MUST(ds_accel_graph_capture_begin(graphs[0], scene.a, NULL, DS_ACCEL_CAPTURE_THREAD_LOCAL));
    EXPECT_STATUS(
        ds_accel_graph_capture_begin(graphs[1], scene.a, NULL, DS_ACCEL_CAPTURE_THREAD_LOCAL),
        DS_ACCEL_ERR_STATE);
    cr_expect_neq(take(scene.device, scene.a, 30 * MIB), common, "memory outside of the capture");
    EXPECT_STATUS(ds_accel_graph_capture_end(graphs[0]), DS_ACCEL_OK);
    stop(&scene);
}

/* ---- the mode debug ------------------------------------------------------------------------- */

Test(core_allocator, debug_looks_at_the_whole_red_zone)
{
    struct scene scene = start(NULL, "debug");
    char *pointer = take(scene.device, NULL, 1024);

    /* 512 bytes behind it, all of them red. */
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
    for (int i = 0; i < 4; i++) { /* for longer than looking at the memory takes */
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
    /* The oldest ones leave before there are many: those that follow do not begin at place 0. */
    for (int i = 0; i < 40; i++) {
        give(scene.device, NULL, pointers[i]);
    }
    give(scene.device, NULL, large);
    for (int i = 40; i < 300; i++) {
        give(scene.device, NULL, pointers[i]);
    }
    /* The oldest that is left is 40: what is found first is said. */
    MUST(ds_accel_mem_set(scene.device, (char *)pointers[100] + 2, 1, 1));
    MUST(ds_accel_mem_set(scene.device, (char *)pointers[40] + 1, 1, 1));
    EXPECT_REFUSED(ds_accel_empty_cache(scene.device), DS_ACCEL_ERR_INVALID, "byte 1 of");
    EXPECT_STAT(scene.device, "active.all.current", 0);
    EXPECT_STAT(scene.device, "active_bytes.all.current", 0);
    EXPECT_STAT(scene.device, "reserved_bytes.all.current", 0);
    stop(&scene);
}
