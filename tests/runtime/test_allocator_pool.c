/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Private pools of the caching allocator, and captures. */
#include "allocator.h"

/* ---- private pools and captures ------------------------------------------------------------- */

Test(core_allocator, keeps_private_pools_apart)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_pool_t *pool = NULL;
    void *common = take(device, NULL, 30 * MIB);
    void *apart;

    EXPECT_STATUS(ds_accel_mem_free(device, NULL, common), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_pool_create(device, &pool), DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_pool_end(pool), DS_ACCEL_ERR_STATE, "does not use");
    EXPECT_STATUS(ds_accel_pool_begin(pool), DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_pool_begin(pool), DS_ACCEL_ERR_STATE, "already");
    apart = take(device, NULL, 30 * MIB);
    cr_expect_neq(apart, common);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, apart), DS_ACCEL_OK);
    cr_expect_eq(take(device, NULL, 30 * MIB), apart);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, apart), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_pool_end(pool), DS_ACCEL_OK);
    cr_expect_eq(take(device, NULL, 30 * MIB), common);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, common), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 30 * MIB);
    ds_accel_pool_destroy(pool);
    EXPECT_STATUS(ds_accel_pool_begin(pool), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 0);
    test_finish(context, device);
}

Test(core_allocator, gives_a_capture_memory_that_its_graph_keeps)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *stream = make_stream(device);
    ds_accel_stream_t *other = make_stream(device);
    ds_accel_graph_t *graph = NULL;
    void *before = take(device, stream, 30 * MIB);
    void *captured;

    EXPECT_STATUS(ds_accel_mem_free(device, stream, before), DS_ACCEL_OK);
    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_THREAD_LOCAL));
    captured = take(device, stream, 30 * MIB);
    cr_expect_neq(captured, before);
    MUST(ds_accel_mem_set_async(stream, captured, 5, 512));
    EXPECT_STATUS(ds_accel_mem_free(device, stream, captured), DS_ACCEL_OK);
    cr_expect_eq(take(device, stream, 30 * MIB), captured, "within the capture it serves again");
    EXPECT_STATUS(ds_accel_mem_free(device, stream, captured), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK); /* must not break the capture */
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 30 * MIB);
    cr_expect_neq(take(device, other, 30 * MIB), captured);
    cr_expect_neq(take(device, stream, 30 * MIB), captured);
    MUST(ds_accel_graph_replay(graph, stream));
    MUST(ds_accel_stream_synchronize(stream));
    ds_accel_graph_destroy(graph);
    cr_expect_eq(take(device, stream, 30 * MIB), captured, "nobody needs it now");
    test_finish(context, device);
}

Test(core_allocator, puts_nothing_of_its_own_into_a_capture)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *stream = make_stream(device);
    ds_accel_stream_t *other = make_stream(device);
    ds_accel_graph_t *graph = NULL;
    void *theirs = take(device, other, 30 * MIB);
    uint64_t nodes = 0;

    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_THREAD_LOCAL));
    MUST(ds_accel_mem_set_async(stream, theirs, 5, 512));
    /* A capturing stream uses the block: its use can be recorded only after the capture ends. */
    EXPECT_STATUS(ds_accel_mem_free(device, stream, theirs), DS_ACCEL_OK);
    cr_expect_neq(take(device, other, 30 * MIB), theirs);
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_graph_node_count(graph, &nodes), DS_ACCEL_OK);
    cr_expect_eq(nodes, 1);
    cr_expect_eq(take(device, other, 30 * MIB), theirs);
    test_finish(context, device);
}

Test(core_allocator, survives_that_a_stream_is_destroyed_while_it_captures)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *stream = make_stream(device);
    ds_accel_stream_t *other = make_stream(device);
    ds_accel_graph_t *graph = NULL;
    void *theirs = take(device, other, 30 * MIB);
    void *captured;

    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, stream, NULL, 0));
    captured = take(device, stream, 40 * MIB);
    MUST(ds_accel_mem_set_async(stream, captured, 5, 512));
    EXPECT_STATUS(ds_accel_mem_free(device, stream, theirs), DS_ACCEL_OK);
    ds_accel_stream_destroy(stream);
    EXPECT_REFUSED(ds_accel_graph_capture_end(graph), DS_ACCEL_ERR_STATE, "destroyed");
    EXPECT_STATUS(ds_accel_graph_replay(graph, other), DS_ACCEL_ERR_STATE);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, captured), DS_ACCEL_OK);
    MUST(ds_accel_graph_capture_begin(graph, other, NULL, 0)); /* the graph can be captured again */
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
    ds_accel_graph_destroy(graph);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "active_bytes.all.current", 0);
    EXPECT_STAT(device, "reserved_bytes.all.current", 0);
    test_finish(context, device);
}

Test(core_allocator, keeps_a_graphs_memory_until_its_replay_elsewhere_is_done)
{
    ds_accel_device_t *device;
    ds_accel_stream_t *captured;
    ds_accel_stream_t *elsewhere;
    ds_accel_graph_t *graph;
    ds_accel_t *context;
    void *pointer;

    setenv("DS_ACCEL_MOCK_LAUNCH_LATENCY_NS", SLOW, 1);
    context = test_start("mock", &device);
    captured = make_stream(device);
    elsewhere = make_stream(device);
    for (int again = 0; again < 2; again++) { /* again with a new graph */
        MUST(ds_accel_graph_create(device, &graph));
        MUST(ds_accel_graph_capture_begin(graph, captured, NULL, DS_ACCEL_CAPTURE_RELAXED));
        pointer = take(device, captured, MIB);
        MUST(ds_accel_mem_set_async(captured, pointer, 1, MIB));
        MUST(ds_accel_mem_free(device, captured, pointer));
        MUST(ds_accel_graph_capture_end(graph));
        MUST(ds_accel_graph_replay(graph, captured));
        MUST(ds_accel_stream_synchronize(captured));
        MUST(ds_accel_graph_replay(graph, elsewhere));
        EXPECT_STATUS(ds_accel_stream_query(elsewhere), DS_ACCEL_NOT_READY);
        if (again) {
            MUST(ds_accel_graph_capture_begin(graph, captured, NULL, DS_ACCEL_CAPTURE_RELAXED));
            EXPECT_STATUS(ds_accel_stream_query(elsewhere), DS_ACCEL_OK);
            MUST(ds_accel_graph_capture_end(graph));
        }
        ds_accel_graph_destroy(graph);
        EXPECT_STATUS(ds_accel_stream_query(elsewhere), DS_ACCEL_OK);
    }
    test_finish(context, device);
}

/* The library's own wait is not a call that a global capture on another stream forbids. */
Test(core_allocator, waits_for_a_replay_also_beside_a_global_capture)
{
    ds_accel_device_t *device;
    ds_accel_stream_t *captured;
    ds_accel_stream_t *elsewhere;
    ds_accel_graph_t *graphs[2];
    ds_accel_t *context;
    uint64_t races = 9;
    void *pointer;

    setenv("DS_ACCEL_MOCK_LAUNCH_LATENCY_NS", SLOW, 1);
    setenv("DS_ACCEL_LAYERS", "race,validate", 1);
    context = test_start("mock", &device);
    captured = make_stream(device);
    elsewhere = make_stream(device);
    for (int i = 0; i < 2; i++) {
        MUST(ds_accel_graph_create(device, &graphs[i]));
    }
    MUST(ds_accel_graph_capture_begin(graphs[0], captured, NULL, DS_ACCEL_CAPTURE_RELAXED));
    pointer = take(device, captured, MIB);
    MUST(ds_accel_mem_set_async(captured, pointer, 1, MIB));
    MUST(ds_accel_mem_free(device, captured, pointer));
    MUST(ds_accel_graph_capture_end(graphs[0]));
    MUST(ds_accel_graph_replay(graphs[0], elsewhere));
    EXPECT_STATUS(ds_accel_stream_query(elsewhere), DS_ACCEL_NOT_READY);
    MUST(ds_accel_graph_capture_begin(graphs[1], captured, NULL, DS_ACCEL_CAPTURE_GLOBAL));
    ds_accel_graph_destroy(graphs[0]);
    EXPECT_STATUS(ds_accel_stream_query(elsewhere), DS_ACCEL_OK);
    MUST(ds_accel_graph_capture_end(graphs[1]));
    pointer = take(device, captured, MIB);
    MUST(ds_accel_mem_set_async(captured, pointer, 1, MIB));
    MUST(ds_accel_race_count(context, &races));
    cr_expect_eq(races, 0, "the wait has ordered the replay");
    EXPECT_HAS_NOT(test_log, "validate");
    test_finish(context, device);
}

Test(core_allocator, keeps_a_graphs_memory_whose_replay_cannot_be_waited_for)
{
    for (int again = 0; again < 2; again++) { /* again with a new graph */
        ds_accel_device_t *device;
        ds_accel_stream_t *captured;
        ds_accel_stream_t *elsewhere;
        ds_accel_graph_t *graph = NULL;
        ds_accel_t *context;
        void *pointer;

        setenv("DS_ACCEL_MOCK_FAIL", "event_synchronize:1=driver", 1);
        context = test_start("mock", &device);
        captured = make_stream(device);
        elsewhere = make_stream(device);
        MUST(ds_accel_graph_create(device, &graph));
        MUST(ds_accel_graph_capture_begin(graph, captured, NULL, DS_ACCEL_CAPTURE_RELAXED));
        pointer = take(device, captured, MIB);
        MUST(ds_accel_mem_free(device, captured, pointer));
        MUST(ds_accel_graph_capture_end(graph));
        MUST(ds_accel_graph_replay(graph, elsewhere));
        test_log[0] = '\0';
        if (again) {
            MUST(ds_accel_graph_capture_begin(graph, captured, NULL, DS_ACCEL_CAPTURE_RELAXED));
            MUST(ds_accel_graph_capture_end(graph));
        } else {
            ds_accel_graph_destroy(graph);
        }
        EXPECT_HAS(test_log, "2 graph: device 0 keeps a graph's memory until it is closed");
        cr_expect_neq(take(device, captured, MIB), pointer);
        ds_accel_empty_cache(device);
        cr_expect_neq(take(device, elsewhere, MIB), pointer);
        test_finish(context, device);
    }
}

Test(core_allocator, shares_a_pool_between_captures)
{
    ds_accel_device_t *device;
    ds_accel_device_t *far;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *stream = make_stream(device);
    ds_accel_graph_t *graphs[2];
    ds_accel_pool_t *pool = NULL;
    ds_accel_pool_t *foreign = NULL;
    void *pointers[2];

    MUST(ds_accel_device_open(context, 1, &far));
    MUST(ds_accel_pool_create(far, &foreign));
    MUST(ds_accel_pool_create(device, &pool));
    for (int i = 0; i < 2; i++) {
        MUST(ds_accel_graph_create(device, &graphs[i]));
        EXPECT_REFUSED(ds_accel_graph_capture_begin(graphs[i], stream, foreign, 0),
                       DS_ACCEL_ERR_INVALID, "the pool is of device 1");
        MUST(ds_accel_graph_capture_begin(graphs[i], stream, pool, 0));
        pointers[i] = take(device, stream, 30 * MIB);
        MUST(ds_accel_mem_free(device, stream, pointers[i]));
        MUST(ds_accel_graph_capture_end(graphs[i]));
    }
    cr_expect_eq(pointers[0], pointers[1]);
    ds_accel_pool_destroy(pool);
    ds_accel_graph_destroy(graphs[0]);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 30 * MIB);
    ds_accel_graph_destroy(graphs[1]);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 0);
    ds_accel_device_close(far);
    test_finish(context, device);
}

Test(core_allocator, other_modes_leave_alone_what_a_graph_replays_with)
{
    static const char *const modes[] = {"off", "debug"};

    for (int i = 0; i < 2; i++) {
        ds_accel_device_t *device;
        ds_accel_t *context;
        ds_accel_stream_t *stream;
        ds_accel_graph_t *graph = NULL;
        uint64_t nodes = 0;
        void *pointer;
        void *common;

        setenv("DS_ACCEL_ALLOCATOR", modes[i], 1);
        context = test_start("mock", &device);
        stream = make_stream(device);
        common = take(device, stream, 3000);
        MUST(ds_accel_stream_synchronize(stream));
        MUST(ds_accel_graph_create(device, &graph));
        MUST(ds_accel_graph_capture_begin(graph, stream, NULL, 0));
        pointer = take(device, stream, 5000);
        MUST(ds_accel_mem_set_async(stream, pointer, 5, 512));
        EXPECT_STATUS(ds_accel_mem_free(device, stream, common), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_graph_node_count(graph, &nodes), DS_ACCEL_OK);
        cr_expect_eq(nodes, 1);
        EXPECT_STATUS(ds_accel_mem_free(device, stream, pointer), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_graph_replay(graph, stream), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_stream_synchronize(stream), DS_ACCEL_OK);
        ds_accel_graph_destroy(graph);
        EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
        EXPECT_STAT(device, "reserved_bytes.all.current", 0);
        test_finish(context, device);
    }
}

/* In mode "off", a block freed during a capture stays cached and is reused in parts when the driver
   has no more memory. */
Test(core_allocator, a_part_of_what_a_capture_kept_is_not_given_back_as_a_whole)
{
    struct scene scene = start("41943040", "off");
    ds_accel_graph_t *graph = NULL;
    void *whole = take(scene.device, scene.a, 30 * MIB);
    void *part;
    void *other;

    MUST(ds_accel_graph_create(scene.device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, scene.b, NULL, DS_ACCEL_CAPTURE_THREAD_LOCAL));
    give(scene.device, scene.a, whole);
    part = take(scene.device, scene.a, 15 * MIB);
    other = take(scene.device, scene.a, 12 * MIB);
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
    give(scene.device, scene.a, part);
    EXPECT_STATUS(ds_accel_mem_set_async(scene.a, other, 1, 12 * MIB), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_synchronize(scene.a), DS_ACCEL_OK);
    give(scene.device, scene.a, other);
    EXPECT_STATUS(ds_accel_empty_cache(scene.device), DS_ACCEL_OK);
    EXPECT_STAT(scene.device, "reserved_bytes.all.current", 0);
    ds_accel_graph_destroy(graph);
    stop(&scene);
}

/* ---- pools and captures, continued ----------------------------------------------------------- */

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
    for (int i = 0; i < 4; i++) { /* only free memory of the other segment, none of the pool */
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
    /* The block is freed by a busy stream that uses it, does not capture, and is not the stream on
       which it was allocated. */
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
