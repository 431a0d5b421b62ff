/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The segments of the caching allocator: requests to the driver, and segments that grow. */
#include "allocator.h"

#include <dlfcn.h>

/* ---- settings ------------------------------------------------------------------------------- */

Test(core_allocator, grows_segments_where_memory_is_virtual)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    char *first;
    char *second;

    setenv("DS_ACCEL_ALLOCATOR", "growable_segments=true", 1);
    context = test_start("mock", &device);
    first = take(device, NULL, 30 * MIB);
    second = take(device, NULL, 30 * MIB);
    cr_expect_eq(second, first + 30 * MIB, "one segment");
    EXPECT_STAT(device, "segment.all.current", 1);
    EXPECT_STAT(device, "reserved_bytes.all.current", 60 * MIB);
    EXPECT_STATUS(ds_accel_mem_set(device, second, 7, 30 * MIB), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, second), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 40 * MIB); /* two pages of 20 MiB */
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, first), DS_ACCEL_OK);
    cr_expect_eq(take(device, NULL, 100 * MIB), first, "in the same place, longer");
    test_finish(context, device);
}

Test(core_allocator, puts_memory_where_it_was_taken_away_within_a_segment)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    char *pointers[3];
    char *text = NULL;
    size_t size = 0;

    setenv("DS_ACCEL_ALLOCATOR", "growable_segments=true", 1);
    setenv("DS_ACCEL_MOCK_MEMORY_BYTES", "146800640", 1); /* 140 MiB */
    context = test_start("mock", &device);
    for (int i = 0; i < 3; i++) {
        pointers[i] = take(device, NULL, 40 * MIB);
    }
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointers[1]), DS_ACCEL_OK);
    EXPECT_STAT(device, "inactive_split.all.current", 0); /* torch counts none in such segments */
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 80 * MIB);
    EXPECT_STAT(device, "segment.all.current", 1);
    EXPECT_STAT(device, "inactive_split.all.current", 0);
    MUST(ds_accel_memory_snapshot(context, device, DS_ACCEL_SNAPSHOT_JSON, (void **)&text, &size));
    EXPECT_HAS(strstr(text, "\"total_size\""), "\"total_size\"");
    ds_accel_free_text(text);
    EXPECT_REFUSED(ds_accel_mem_free(device, NULL, pointers[1]), DS_ACCEL_ERR_INVALID,
                   "was returned to the driver since");
    /* 60 MiB are free: three pages, two of which fill the gap and one of which is appended at the
       end. */
    cr_expect_eq(take(device, NULL, 25 * MIB), pointers[1]);
    EXPECT_STAT(device, "reserved_bytes.all.current", 120 * MIB);
    cr_expect_eq(take(device, NULL, 10 * MIB), pointers[1] + 25 * MIB);
    cr_expect_eq(take(device, NULL, 20 * MIB), pointers[2] + 40 * MIB);
    EXPECT_STAT(device, "reserved_bytes.all.current", 140 * MIB);
    test_finish(context, device);
}

/* ---- number of calls to the driver ----------------------------------------------------------- */

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

/* Start a device whose calls are counted from here on. */
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

/* Allocate CROWD blocks on stream a and free them on a busy stream. */
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

/* The streams finish one after another, the last in the list first. */
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

    /* mapping two pages, one page, then this failure */
    setenv("DS_ACCEL_MOCK_FAIL", "vmem_set_access:4=driver", 1);
    scene = start(NULL, "growable_segments=true");
    first = take(scene.device, NULL, 30 * MIB);
    EXPECT_STATUS(ds_accel_mem_alloc(scene.device, NULL, 50 * MIB, &second), DS_ACCEL_ERR_DRIVER);
    EXPECT_STAT(scene.device, "reserved_bytes.all.current", 40 * MIB);
    cr_expect_eq(take(scene.device, NULL, 50 * MIB), (char *)first + 30 * MIB, "the same place");
    EXPECT_STAT(scene.device, "segment.all.current", 1);
    stop(&scene);
}
