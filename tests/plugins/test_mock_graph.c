/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The mock plugin: captures and graphs. */
#include "mock.h"

/* ---- graphs --------------------------------------------------------------------------------- */

static ds_accel_plugin_graph_t *end_capture(ds_accel_plugin_stream_t *stream)
{
    ds_accel_plugin_graph_t *graph = NULL;

    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    return graph;
}

/* Capture a graph that contains one copy. */
static ds_accel_plugin_graph_t *capture_copy(ds_accel_plugin_stream_t *stream, void *to, void *from)
{
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_GLOBAL, &error));
    EXPECT_OK(table->mem_copy_async(stream, to, from, 4, DS_ACCEL_COPY_DEVICE_TO_DEVICE, &error));
    return end_capture(stream);
}

static ds_accel_plugin_graph_exec_t *instantiate(ds_accel_plugin_graph_t *graph)
{
    ds_accel_plugin_graph_exec_t *exec = NULL;

    ASSERT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    return exec;
}

Test(plugin_mock, a_graph_computes_again_with_the_data_of_its_launch)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_graph_exec_t *exec;
    char *from;
    char *to;

    open_mock();
    stream = make_stream();
    from = allocate(4);
    to = allocate(4);
    strcpy(from, "one");
    strcpy(to, "nil");
    graph = capture_copy(stream, to, from);
    cr_expect_str_eq(to, "nil");
    exec = instantiate(graph);
    table->graph_destroy(graph);
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    cr_expect_str_eq(to, "one");
    strcpy(from, "two");
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    cr_expect_str_eq(to, "two");
    release(to);
    EXPECT_FAIL(table->graph_launch(exec, stream, &error), DS_ACCEL_ERR_INVALID,
                "live device memory");
    table->graph_exec_destroy(exec);
    table->stream_destroy(stream);
    release(from);
    close_mock();
}

Test(plugin_mock, a_launch_has_its_latency)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_graph_exec_t *exec;

    option("launch_latency_ns", HOUR_NS);
    open_mock();
    stream = make_stream();
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_RELAXED, &error));
    graph = end_capture(stream);
    exec = instantiate(graph);
    EXPECT_OK(table->stream_query(stream, &error));
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    cr_expect_eq(table->stream_query(stream, &error), DS_ACCEL_NOT_READY);
    table->graph_exec_destroy(exec);
    table->graph_destroy(graph);
    table->stream_destroy(stream);
    close_mock();
}

static int32_t keep_text(void *user_data, const char *text, size_t text_bytes)
{
    strncat(user_data, text, text_bytes);
    return DS_ACCEL_OK;
}

static int32_t refuse_text(void *user_data, const char *text, size_t text_bytes)
{
    (void)user_data;
    (void)text;
    (void)text_bytes;
    return DS_ACCEL_ERR_IO;
}

Test(plugin_mock, a_graph_can_be_counted_and_shown)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_graph_t *graph;
    uint64_t count = 9;
    char text[512] = "";
    char *pointer;
    int tasks = 0;

    open_mock();
    stream = make_stream();
    event = make_event();
    pointer = allocate(8);
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_GLOBAL, &error));
    EXPECT_OK(table->mem_fill_async(stream, pointer, "x", 1, 8, &error));
    EXPECT_OK(table->mem_copy_async(stream, pointer, pointer + 4, 4, 5, &error));
    EXPECT_OK(table->stream_host_task(stream, count_up, &tasks, &error));
    EXPECT_OK(table->event_record(event, stream, &error));
    EXPECT_OK(table->stream_wait_event(stream, event, &error));
    graph = end_capture(stream);
    cr_expect_eq(tasks, 0);
    EXPECT_OK(table->graph_node_count(graph, &count, &error));
    cr_expect_eq(count, 4);
    EXPECT_OK(table->graph_dump(graph, keep_text, text, &error));
    cr_expect_str_eq(text, "digraph mock {\n    n0 [label=\"fill 8 bytes\"];\n"
                           "    n1 [label=\"copy 4 bytes\"];\n    n0 -> n1;\n"
                           "    n2 [label=\"host task\"];\n    n1 -> n2;\n"
                           "    n3 [label=\"record event\"];\n    n2 -> n3;\n}\n");
    EXPECT_FAIL(table->graph_dump(graph, refuse_text, NULL, &error), DS_ACCEL_ERR_IO, "the sink");
    table->graph_destroy(graph);
    release(pointer);
    table->event_destroy(event);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, a_graph_of_the_same_shape_updates_another)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_t *graphs[3];
    ds_accel_plugin_graph_exec_t *exec;
    uint32_t result = 9;
    char *data;

    open_mock();
    stream = make_stream();
    data = allocate(16);
    memcpy(data, "one\0two\0nil\0nil\0", 16);
    graphs[0] = capture_copy(stream, data + 8, data);
    graphs[1] = capture_copy(stream, data + 12, data + 4);
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_THREAD_LOCAL, &error));
    EXPECT_OK(table->mem_fill_async(stream, data, "x", 1, 4, &error));
    graphs[2] = end_capture(stream);
    exec = instantiate(graphs[0]);
    EXPECT_OK(table->graph_exec_update(exec, graphs[2], &result, &error));
    cr_expect_eq(result, DS_ACCEL_GRAPH_REBUILD_NEEDED);
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    cr_expect_arr_eq(data, "one\0two\0one\0nil\0", 16);
    EXPECT_OK(table->graph_exec_update(exec, graphs[1], &result, &error));
    cr_expect_eq(result, DS_ACCEL_GRAPH_UPDATED);
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    cr_expect_arr_eq(data, "one\0two\0one\0two\0", 16);
    table->graph_exec_destroy(exec);
    for (size_t i = 0; i < ARRAY_SIZE(graphs); i++) {
        table->graph_destroy(graphs[i]);
    }
    table->stream_destroy(stream);
    release(data);
    close_mock();
}

static void expect_capturing(ds_accel_plugin_stream_t *stream, uint32_t wanted)
{
    uint32_t status = 9;

    EXPECT_OK(table->graph_capture_status(stream, &status, &error));
    cr_expect_eq(status, wanted, "%u", status);
}

Test(plugin_mock, captures_that_cannot_begin_or_end_are_refused)
{
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_graph_t *graph = NULL;

    open_mock();
    ASSERT_OK(table->stream_get_default(handle, &stream, &error));
    EXPECT_FAIL(table->graph_capture_begin(stream, 0, &error), DS_ACCEL_ERR_STATE,
                "the default stream can't capture");
    expect_capturing(stream, DS_ACCEL_CAPTURING_NO);
    stream = make_stream();
    EXPECT_FAIL(table->graph_capture_begin(stream, 3, &error), DS_ACCEL_ERR_INVALID, "mode 3");
    EXPECT_FAIL(table->graph_capture_end(stream, &graph, &error), DS_ACCEL_ERR_STATE,
                "doesn't capture");
    EXPECT_OK(table->graph_capture_begin(stream, 0, &error));
    expect_capturing(stream, DS_ACCEL_CAPTURING_YES);
    EXPECT_FAIL(table->graph_capture_begin(stream, 0, &error), DS_ACCEL_ERR_STATE,
                "captures already");
    table->graph_destroy(end_capture(stream));
    expect_capturing(stream, DS_ACCEL_CAPTURING_NO);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, asking_a_capturing_stream_breaks_the_capture)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_t *graph = NULL;
    void *pointer = NULL;

    open_mock();
    stream = make_stream();
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
        queue_copy(stream);
        if (i == 0) {
            EXPECT_FAIL(table->stream_query(stream, &error), DS_ACCEL_ERR_STATE, "is broken");
        } else if (i == 1) {
            EXPECT_FAIL(table->stream_synchronize(stream, UINT64_MAX, &error), DS_ACCEL_ERR_STATE,
                        "is broken");
        } else {
            EXPECT_FAIL(table->mem_alloc_async(stream, 4, 0, NULL, 0, &pointer, &error),
                        DS_ACCEL_ERR_STATE, "is broken");
        }
        expect_capturing(stream, DS_ACCEL_CAPTURING_BROKEN);
        EXPECT_FAIL(table->stream_host_task(stream, do_nothing, NULL, &error), DS_ACCEL_ERR_STATE,
                    "capture is broken");
        EXPECT_FAIL(table->graph_capture_end(stream, &graph, &error), DS_ACCEL_ERR_STATE,
                    "the capture was broken");
        EXPECT_OK(table->stream_query(stream, &error));
    }
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, a_captured_event_is_recorded_by_the_launch)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_stream_t *other;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_graph_exec_t *exec;

    open_mock();
    stream = make_stream();
    other = make_stream();
    event = make_event();
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    EXPECT_OK(table->event_record(event, stream, &error));
    graph = end_capture(stream);
    exec = instantiate(graph);
    EXPECT_FAIL(table->event_query(event, &error), DS_ACCEL_ERR_STATE, "recorded in a capture");
    EXPECT_FAIL(table->event_synchronize(event, UINT64_MAX, &error), DS_ACCEL_ERR_STATE, "capture");
    EXPECT_FAIL(table->stream_wait_event(other, event, &error), DS_ACCEL_ERR_STATE, "capture");
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    EXPECT_OK(table->event_query(event, &error));
    EXPECT_OK(table->stream_wait_event(other, event, &error));
    table->event_destroy(event);
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    table->graph_exec_destroy(exec);
    table->graph_destroy(graph);
    table->stream_destroy(other);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, an_event_from_outside_breaks_a_capture)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_stream_t *other;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_graph_t *graph = NULL;

    open_mock();
    stream = make_stream();
    other = make_stream();
    event = make_event();
    EXPECT_OK(table->event_record(event, other, &error));
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    EXPECT_FAIL(table->stream_wait_event(stream, event, &error), DS_ACCEL_ERR_STATE,
                "outside of the capture");
    expect_capturing(stream, DS_ACCEL_CAPTURING_BROKEN);
    expect_capturing(other, DS_ACCEL_CAPTURING_NO);
    EXPECT_FAIL(table->graph_capture_end(stream, &graph, &error), DS_ACCEL_ERR_STATE, "broken");
    table->event_destroy(event);
    table->stream_destroy(other);
    table->stream_destroy(stream);
    close_mock();
}

/* A second stream joins the capture by an event, works, and is waited for. */
Test(plugin_mock, a_capture_forks_to_other_streams_and_joins_them)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_stream_t *other;
    ds_accel_plugin_event_t *forks;
    ds_accel_plugin_event_t *joins;
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_graph_exec_t *exec;
    unsigned char *memory;
    uint64_t count = 0;

    open_mock();
    stream = make_stream();
    other = make_stream();
    forks = make_event();
    joins = make_event();
    memory = allocate(2);
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    EXPECT_OK(table->mem_fill_async(stream, memory, "a", 1, 2, &error));
    EXPECT_OK(table->event_record(forks, stream, &error));
    expect_capturing(other, DS_ACCEL_CAPTURING_NO);
    EXPECT_OK(table->stream_wait_event(other, forks, &error));
    expect_capturing(other, DS_ACCEL_CAPTURING_YES);
    EXPECT_OK(table->mem_fill_async(other, memory, "b", 1, 1, &error));
    EXPECT_OK(table->event_record(joins, other, &error));
    EXPECT_OK(table->stream_wait_event(stream, joins, &error));
    /* a record alone is not work to wait for */
    EXPECT_OK(table->event_record(forks, other, &error));
    graph = end_capture(stream);
    expect_capturing(stream, DS_ACCEL_CAPTURING_NO);
    expect_capturing(other, DS_ACCEL_CAPTURING_NO);
    EXPECT_OK(table->graph_node_count(graph, &count, &error));
    cr_expect_eq(count, 5);
    cr_expect_eq(memory[0], 0, "nothing has run yet");
    exec = instantiate(graph);
    EXPECT_OK(table->graph_launch(exec, other, &error));
    EXPECT_OK(table->stream_synchronize(other, UINT64_MAX, &error));
    cr_expect_eq(memory[0], 'b');
    cr_expect_eq(memory[1], 'a');
    EXPECT_OK(table->event_query(joins, &error));
    table->graph_exec_destroy(exec);
    table->graph_destroy(graph);
    release(memory);
    table->event_destroy(forks);
    table->event_destroy(joins);
    table->stream_destroy(other);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, a_fork_that_nobody_joins_ends_a_capture_without_a_graph)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_stream_t *other;
    ds_accel_plugin_stream_t *usual = NULL;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_event_t *joins;
    ds_accel_plugin_graph_t *graph = NULL;
    unsigned char *memory;

    open_mock();
    stream = make_stream();
    other = make_stream();
    event = make_event();
    joins = make_event();
    memory = allocate(2);
    ASSERT_OK(table->stream_get_default(handle, &usual, &error));
    for (int works_after = 0; works_after < 2; works_after++) {
        ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
        EXPECT_OK(table->event_record(event, stream, &error));
        EXPECT_OK(table->stream_wait_event(other, event, &error));
        EXPECT_OK(table->mem_fill_async(other, memory, "b", 1, 1, &error));
        if (works_after) { /* all work is joined except the later copy */
            EXPECT_OK(table->event_record(joins, other, &error));
            EXPECT_OK(table->stream_wait_event(stream, joins, &error));
            EXPECT_OK(table->mem_fill_async(other, memory, "c", 1, 1, &error));
        }
        EXPECT_FAIL(table->graph_capture_end(stream, &graph, &error), DS_ACCEL_ERR_STATE,
                    "is not joined");
        EXPECT_OK(table->stream_query(other, &error));
    }
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    EXPECT_OK(table->event_record(event, stream, &error));
    EXPECT_FAIL(table->stream_wait_event(usual, event, &error), DS_ACCEL_ERR_STATE,
                "the default stream can't be drawn");
    EXPECT_OK(table->stream_wait_event(other, event, &error));
    EXPECT_FAIL(table->graph_capture_begin(other, 0, &error), DS_ACCEL_ERR_STATE,
                "captures already");
    EXPECT_FAIL(table->graph_capture_end(other, &graph, &error), DS_ACCEL_ERR_STATE,
                "began on another stream");
    expect_capturing(stream, DS_ACCEL_CAPTURING_BROKEN);
    EXPECT_FAIL(table->graph_capture_end(stream, &graph, &error), DS_ACCEL_ERR_STATE, "broken");
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    EXPECT_OK(table->event_record(event, stream, &error));
    EXPECT_OK(table->stream_wait_event(other, event, &error));
    EXPECT_OK(table->mem_fill_async(other, memory, "d", 1, 1, &error));
    table->stream_destroy(other);
    expect_capturing(stream, DS_ACCEL_CAPTURING_YES); /* still capturing; its work must be joined */
    EXPECT_FAIL(table->graph_capture_end(stream, &graph, &error), DS_ACCEL_ERR_STATE,
                "is not joined");
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    EXPECT_OK(table->event_record(event, stream, &error));
    table->stream_destroy(stream);
    EXPECT_FAIL(table->event_query(event, &error), DS_ACCEL_ERR_STATE, "recorded in a capture");
    release(memory);
    table->event_destroy(event);
    table->event_destroy(joins);
    close_mock();
}
