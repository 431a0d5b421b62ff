/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Graphs of the public API, on the mock. */
#include "runtime.h"

/* ---- graphs --------------------------------------------------------------------------------- */

Test(core_graph, begins_a_capture_again_after_the_plugin_refused_one)
{
    ds_accel_device_t *device;
    ds_accel_graph_t *graph = NULL;
    ds_accel_pool_t *pool = NULL;
    ds_accel_stream_t *stream;
    ds_accel_t *context;
    void *pointer = NULL;
    int64_t reserved = -1;

    setenv("DS_ACCEL_MOCK_FAIL", "graph_capture_begin:1=driver", 1);
    context = test_start("mock", &device);
    stream = make_stream(device);
    MUST(ds_accel_pool_create(device, &pool));
    MUST(ds_accel_pool_begin(pool));
    MUST(ds_accel_mem_alloc(device, stream, 30 * MIB, &pointer));
    MUST(ds_accel_mem_free(device, stream, pointer));
    MUST(ds_accel_pool_end(pool));
    MUST(ds_accel_graph_create(device, &graph));
    EXPECT_STATUS(ds_accel_graph_capture_begin(graph, stream, pool, DS_ACCEL_CAPTURE_RELAXED),
                  DS_ACCEL_ERR_DRIVER);
    /* A rejected capture does not keep a reference to the pool. */
    ds_accel_pool_destroy(pool);
    MUST(ds_accel_empty_cache(device));
    MUST(ds_accel_memory_stat(device, "reserved_bytes.all.current", &reserved));
    cr_expect_eq(reserved, 0);
    EXPECT_STATUS(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_RELAXED),
                  DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_graph, leaves_no_graph_of_a_capture_that_is_cancelled)
{
    ds_accel_device_t *device;
    ds_accel_graph_t *graph = NULL;
    ds_accel_t *context;

    setenv("DS_ACCEL_LAYERS", "leak", 1);
    context = test_start("mock", &device);
    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, make_stream(device), NULL, DS_ACCEL_CAPTURE_RELAXED));
    ds_accel_graph_destroy(graph);
    test_finish(context, device);
    EXPECT_HAS_NOT(test_log, "x graph");
}

Test(core_graph, is_captured_once_and_replayed)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_graph_t *graph;
    ds_accel_stream_t *stream;
    unsigned char *pointer;
    char *dump = NULL;
    uint64_t count = 0;

    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &stream), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_mem_alloc(device, stream, 64, (void **)&pointer), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_set(device, pointer, 0, 64), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_graph_create(device, &graph), DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_graph_capture_end(graph), DS_ACCEL_ERR_STATE, "not being captured");
    EXPECT_STATUS(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_GLOBAL),
                  DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_GLOBAL),
                   DS_ACCEL_ERR_STATE, "captured already");
    EXPECT_REFUSED(ds_accel_graph_replay(graph, stream), DS_ACCEL_ERR_STATE, "still being");
    EXPECT_STATUS(ds_accel_mem_set_async(stream, pointer, 7, 64), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
    cr_expect_eq(pointer[0], 0, "captured work was done");
    EXPECT_STATUS(ds_accel_graph_node_count(graph, &count), DS_ACCEL_OK);
    cr_expect_eq(count, 1);
    EXPECT_STATUS(ds_accel_graph_dump(graph, &dump), DS_ACCEL_OK);
    EXPECT_HAS(dump, "fill");
    ds_accel_free_text(dump);
    for (int i = 0; i < 3; i++) {
        pointer[63] = 0;
        EXPECT_STATUS(ds_accel_graph_replay(graph, NULL), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
        cr_expect_eq(pointer[63], 7);
    }
    EXPECT_STATUS(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_GLOBAL),
                  DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_synchronize(stream), DS_ACCEL_ERR_STATE);
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_ERR_STATE);
    EXPECT_REFUSED(ds_accel_graph_replay(graph, stream), DS_ACCEL_ERR_STATE, "nothing was");
    EXPECT_STATUS(ds_accel_graph_capture_begin(graph, stream, NULL, 99), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_mem_free(device, stream, pointer), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_graph, may_be_destroyed_while_it_is_captured)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_graph_t *graph;
    ds_accel_stream_t *stream;

    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &stream), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_graph_create(device, &graph), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_GLOBAL),
                  DS_ACCEL_OK);
    ds_accel_graph_destroy(graph);
    EXPECT_STATUS(ds_accel_stream_synchronize(stream), DS_ACCEL_OK);
    test_finish(context, device);
}

/* ---- destruction in unusual orders ----------------------------------------------------------- */

static const char *const accelerators[] = {"mock", "cpu"};

/* The runtime's stream is destroyed before the capture ends, so the library must not call the
   runtime for it. */
Test(core_device, a_graph_outlives_the_stream_that_it_was_being_captured_on)
{
    setenv("DS_ACCEL_CPU_ASYNC", "true", 1);
    for (size_t i = 0; i < 2; i++) {
        ds_accel_graph_t *graphs[3];
        ds_accel_stream_t *streams[3];
        ds_accel_stream_t *other;
        ds_accel_device_t *device;
        ds_accel_t *context;
        uint64_t count = 0;
        void *target;

        context = test_start(accelerators[i], &device);
        EXPECT_STATUS(ds_accel_mem_alloc(device, NULL, 64, &target), DS_ACCEL_OK);
        for (int j = 0; j < 3; j++) {
            EXPECT_STATUS(ds_accel_stream_create(device, 0, 0, &streams[j]), DS_ACCEL_OK);
            EXPECT_STATUS(ds_accel_graph_create(device, &graphs[j]), DS_ACCEL_OK);
            EXPECT_STATUS(
                ds_accel_graph_capture_begin(graphs[j], streams[j], NULL, DS_ACCEL_CAPTURE_RELAXED),
                DS_ACCEL_OK);
            EXPECT_STATUS(ds_accel_mem_set_async(streams[j], target, 1, 64), DS_ACCEL_OK);
            ds_accel_stream_destroy(streams[j]);
        }
        EXPECT_REFUSED(ds_accel_graph_capture_end(graphs[0]), DS_ACCEL_ERR_STATE,
                       "the stream was destroyed while it captured");
        EXPECT_REFUSED(ds_accel_graph_capture_end(graphs[0]), DS_ACCEL_ERR_STATE,
                       "is not being captured");
        EXPECT_STATUS(ds_accel_stream_create(device, 0, 0, &other), DS_ACCEL_OK);
        EXPECT_STATUS(
            ds_accel_graph_capture_begin(graphs[1], other, NULL, DS_ACCEL_CAPTURE_RELAXED),
            DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_mem_set_async(other, target, 1, 64), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_graph_capture_end(graphs[1]), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_graph_node_count(graphs[1], &count), DS_ACCEL_OK);
        cr_expect_eq(count, 1);
        ds_accel_graph_destroy(graphs[2]);
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, target), DS_ACCEL_OK);
        test_finish(context, device);
    }
}
