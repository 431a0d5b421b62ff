/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The cpu plugin: captures and graphs. */
#include "cpu.h"

/* ---- graphs --------------------------------------------------------------------------------- */

static ds_accel_plugin_stream_t *begin_capture(void)
{
    ds_accel_plugin_stream_t *stream;

    ASSERT_OK(table->stream_create(handle, 0, 0, &stream, &error));
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_GLOBAL, &error));
    return stream;
}

Test(plugin_cpu, a_graph_runs_when_launched_and_computes_anew)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_exec_t *exec;
    ds_accel_plugin_graph_t *graph;
    char buffer[4] = {1, 0, 0, 0};
    uint64_t count = 0;
    int tasks = 0;

    open_cpu();
    stream = begin_capture();
    EXPECT_OK(table->mem_copy_async(stream, buffer + 1, buffer, 1, DS_ACCEL_COPY_INFER, &error));
    EXPECT_OK(
        table->mem_copy_async(stream, buffer + 2, buffer + 1, 1, DS_ACCEL_COPY_INFER, &error));
    EXPECT_OK(table->mem_fill_async(stream, buffer + 3, "\x09", 1, 1, &error));
    EXPECT_OK(table->stream_host_task(stream, count_up, &tasks, &error));
    cr_expect(buffer[1] == 0 && buffer[3] == 0 && tasks == 0, "captured work ran already");
    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    cr_expect(buffer[1] == 0 && buffer[3] == 0 && tasks == 0, "captured work ran already");
    EXPECT_OK(table->graph_node_count(graph, &count, &error));
    cr_expect_eq(count, 4);
    ASSERT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    table->graph_destroy(graph);
    for (int round = 1; round < 4; round++) {
        buffer[0] = (char)round;
        EXPECT_OK(table->graph_launch(exec, stream, &error));
        EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
        cr_expect(buffer[1] == round && buffer[2] == round && buffer[3] == 9);
        cr_expect_eq(tasks, round);
    }
    table->graph_exec_destroy(exec);
    table->stream_destroy(stream);
    close_cpu();
}

Test(plugin_cpu, captures_out_of_place_are_refused)
{
    ds_accel_plugin_stream_t *standard;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_exec_t *exec;
    ds_accel_plugin_graph_t *graph = NULL;
    uint32_t state = 99;

    open_cpu();
    ASSERT_OK(table->stream_get_default(handle, &standard, &error));
    EXPECT_FAIL(table->graph_capture_begin(standard, 0, &error), DS_ACCEL_ERR_STATE,
                "the default stream can't capture");
    EXPECT_FAIL(table->graph_capture_end(standard, &graph, &error), DS_ACCEL_ERR_STATE,
                "not capturing");
    EXPECT_FAIL(table->graph_capture_begin(standard, 3, &error), DS_ACCEL_ERR_INVALID, "mode 3");
    stream = begin_capture();
    EXPECT_OK(table->graph_capture_status(stream, &state, &error));
    cr_expect_eq(state, DS_ACCEL_CAPTURING_YES);
    EXPECT_FAIL(table->graph_capture_begin(stream, 0, &error), DS_ACCEL_ERR_STATE,
                "captures already");
    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    EXPECT_OK(table->graph_capture_status(stream, &state, &error));
    cr_expect_eq(state, DS_ACCEL_CAPTURING_NO);
    ASSERT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_RELAXED, &error));
    EXPECT_FAIL(table->graph_launch(exec, stream, &error), DS_ACCEL_ERR_STATE, "is capturing");
    table->stream_destroy(stream);
    table->graph_exec_destroy(exec);
    table->graph_exec_destroy(NULL);
    table->graph_destroy(graph);
    table->graph_destroy(NULL);
    close_cpu();
}

Test(plugin_cpu, asking_a_stream_that_captures_breaks_the_capture)
{
    ds_accel_plugin_graph_t *graph = NULL;
    uint32_t state = 99;

    open_cpu();
    for (int i = 0; i < 2; i++) {
        ds_accel_plugin_stream_t *stream = begin_capture();

        EXPECT_FAIL(i == 0 ? table->stream_synchronize(stream, UINT64_MAX, &error)
                           : table->stream_query(stream, &error),
                    DS_ACCEL_ERR_STATE, "is capturing");
        EXPECT_OK(table->graph_capture_status(stream, &state, &error));
        cr_expect_eq(state, DS_ACCEL_CAPTURING_BROKEN);
        EXPECT_FAIL(table->graph_capture_end(stream, &graph, &error), DS_ACCEL_ERR_STATE, "broken");
        cr_expect_null(graph);
        EXPECT_OK(table->stream_query(stream, &error));
        table->stream_destroy(stream);
    }
    close_cpu();
}

Test(plugin_cpu, an_event_of_a_capture_is_reached_by_launching)
{
    ds_accel_plugin_stream_t *standard;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_exec_t *exec;
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_event_t *start;
    ds_accel_plugin_event_t *end;
    double elapsed = -1;

    open_cpu();
    ASSERT_OK(table->stream_get_default(handle, &standard, &error));
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_TIMING, &start, &error));
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_TIMING, &end, &error));
    stream = begin_capture();
    EXPECT_OK(table->event_record(start, stream, &error));
    EXPECT_OK(table->event_record(end, stream, &error));
    EXPECT_OK(table->stream_wait_event(stream, end, &error));
    EXPECT_FAIL(table->stream_wait_event(standard, end, &error), DS_ACCEL_ERR_STATE,
                "recorded into a capture");
    EXPECT_FAIL(table->event_elapsed_ms(start, end, &elapsed, &error), DS_ACCEL_ERR_STATE,
                "in a capture that was not launched");
    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    ASSERT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    table->graph_destroy(graph);
    EXPECT_OK(table->graph_launch(exec, standard, &error));
    EXPECT_OK(table->event_synchronize(end, UINT64_MAX, &error));
    EXPECT_OK(table->event_elapsed_ms(start, end, &elapsed, &error));
    cr_expect_geq(elapsed, 0.0);
    EXPECT_OK(table->stream_wait_event(standard, end, &error));
    table->event_destroy(start); /* the executable graph still has a reference to the event */
    EXPECT_OK(table->graph_launch(exec, standard, &error));
    table->event_destroy(end);
    table->graph_exec_destroy(exec);
    table->stream_destroy(stream);
    close_cpu();
}

/* The recording in the capture replaces the earlier recording, and is not reached yet. */
Test(plugin_cpu, an_event_recorded_again_into_a_capture_is_not_reached)
{
    ds_accel_plugin_stream_t *standard;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    double elapsed;

    open_cpu();
    ASSERT_OK(table->stream_get_default(handle, &standard, &error));
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_TIMING, &event, &error));
    EXPECT_OK(table->event_record(event, standard, &error));
    EXPECT_OK(table->stream_synchronize(standard, UINT64_MAX, &error));
    EXPECT_OK(table->event_query(event, &error));
    EXPECT_OK(table->event_elapsed_ms(event, event, &elapsed, &error));
    stream = begin_capture();
    EXPECT_OK(table->event_record(event, stream, &error));
    EXPECT_FAIL(table->event_query(event, &error), DS_ACCEL_ERR_STATE, "captur");
    EXPECT_FAIL(table->event_synchronize(event, UINT64_MAX, &error), DS_ACCEL_ERR_STATE, "captur");
    EXPECT_FAIL(table->event_elapsed_ms(event, event, &elapsed, &error), DS_ACCEL_ERR_STATE,
                "captur");
    table->stream_destroy(stream);
    EXPECT_OK(table->event_record(event, standard, &error));
    EXPECT_OK(table->stream_synchronize(standard, UINT64_MAX, &error));
    EXPECT_OK(table->event_query(event, &error));
    EXPECT_OK(table->event_elapsed_ms(event, event, &elapsed, &error));
    table->event_destroy(event);
    close_cpu();
}

static ds_accel_plugin_graph_t *capture_fill(char *target, char value, int times)
{
    ds_accel_plugin_stream_t *stream = begin_capture();
    ds_accel_plugin_graph_t *graph = NULL;

    for (int i = 0; i < times; i++) {
        EXPECT_OK(table->mem_fill_async(stream, target, &value, 1, 1, &error));
    }
    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    table->stream_destroy(stream);
    return graph;
}

Test(plugin_cpu, an_exec_takes_a_graph_of_the_same_shape)
{
    ds_accel_plugin_graph_exec_t *exec;
    ds_accel_plugin_stream_t *standard;
    ds_accel_plugin_graph_t *graphs[3];
    uint32_t result = 0;
    char byte = 0;

    open_cpu();
    ASSERT_OK(table->stream_get_default(handle, &standard, &error));
    graphs[0] = capture_fill(&byte, 1, 1);
    graphs[1] = capture_fill(&byte, 2, 1);
    graphs[2] = capture_fill(&byte, 3, 2);
    ASSERT_OK(table->graph_instantiate(graphs[0], 0, &exec, &error));
    EXPECT_OK(table->graph_exec_update(exec, graphs[1], &result, &error));
    cr_expect_eq(result, DS_ACCEL_GRAPH_UPDATED);
    EXPECT_OK(table->graph_launch(exec, standard, &error));
    EXPECT_OK(table->stream_synchronize(standard, UINT64_MAX, &error));
    cr_expect_eq(byte, 2);
    EXPECT_OK(table->graph_exec_update(exec, graphs[2], &result, &error));
    cr_expect_eq(result, DS_ACCEL_GRAPH_REBUILD_NEEDED);
    EXPECT_OK(table->graph_launch(exec, standard, &error));
    EXPECT_OK(table->stream_synchronize(standard, UINT64_MAX, &error));
    cr_expect_eq(byte, 2);
    table->graph_exec_destroy(exec);
    for (size_t i = 0; i < 3; i++) {
        table->graph_destroy(graphs[i]);
    }
    close_cpu();
}

static int32_t keep_text(void *user_data, const char *text, size_t text_bytes)
{
    char *kept = user_data;

    strncat(kept, text, text_bytes);
    return DS_ACCEL_OK;
}

static int32_t refuse_text(void *user_data, const char *text, size_t text_bytes)
{
    (void)user_data;
    (void)text;
    (void)text_bytes;
    return DS_ACCEL_ERR_IO;
}

Test(plugin_cpu, a_graph_can_be_drawn)
{
    ds_accel_plugin_graph_t *graph;
    char text[4096] = "";
    char byte;

    open_cpu();
    graph = capture_fill(&byte, 1, 2);
    EXPECT_OK(table->graph_dump(graph, keep_text, text, &error));
    EXPECT_HAS(text, "digraph ");
    EXPECT_HAS(text, "n0 -> n1;");
    cr_expect_str_eq(text + strlen(text) - 2, "}\n");
    EXPECT_FAIL(table->graph_dump(graph, refuse_text, NULL, &error), DS_ACCEL_ERR_IO, "receiver");
    table->graph_destroy(graph);
    close_cpu();
}

/* ---- streams that joined a capture ---------------------------------------------------------- */

static ds_accel_plugin_event_t *record_new(ds_accel_plugin_stream_t *stream)
{
    ds_accel_plugin_event_t *event = NULL;

    ASSERT_OK(table->event_create(handle, 0, &event, &error));
    ASSERT_OK(table->event_record(event, stream, &error));
    return event;
}

static uint64_t end_and_count(ds_accel_plugin_stream_t *stream)
{
    ds_accel_plugin_graph_t *graph = NULL;
    uint64_t count = 0;

    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    EXPECT_OK(table->graph_node_count(graph, &count, &error));
    table->graph_destroy(graph);
    return count;
}

/* A stream that joined a capture has no nodes left from it when it begins a capture of its own. */
Test(plugin_cpu, a_stream_that_joined_a_capture_begins_one_of_its_own)
{
    ds_accel_plugin_stream_t *joined;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *events[2];
    char bytes[8] = {0};

    open_cpu();
    stream = begin_capture();
    ASSERT_OK(table->stream_create(handle, 0, 0, &joined, &error));
    for (int i = 0; i < 4; i++) {
        ASSERT_OK(table->mem_fill_async(stream, bytes, "\1", 1, 1, &error));
    }
    events[0] = record_new(stream);
    ASSERT_OK(table->stream_wait_event(joined, events[0], &error));
    ASSERT_OK(table->mem_fill_async(joined, bytes, "\2", 1, 1, &error));
    events[1] = record_new(joined);
    ASSERT_OK(table->stream_wait_event(stream, events[1], &error));
    cr_expect_eq(end_and_count(stream), 7);

    ASSERT_OK(table->graph_capture_begin(joined, DS_ACCEL_CAPTURE_GLOBAL, &error));
    ASSERT_OK(table->mem_fill_async(joined, bytes, "\3", 1, 1, &error));
    cr_expect_eq(end_and_count(joined), 1);
    table->event_destroy(events[0]);
    table->event_destroy(events[1]);
    table->stream_destroy(joined);
    table->stream_destroy(stream);
    close_cpu();
}

/* A stream of another instance can join a capture, because calls of the cpu plugin may mix objects
   of several instances. */
Test(plugin_cpu, a_stream_that_joined_another_instances_capture_cannot_begin_one)
{
    ds_accel_t *other = create_cpu(NULL);
    ds_accel_device_t *other_device = NULL;
    ds_accel_plugin_stream_t *joined;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *events[2];
    char byte = 0;

    open_cpu();
    cr_assert_eq(ds_accel_device_open(other, 0, &other_device), DS_ACCEL_OK);
    stream = begin_capture();
    ASSERT_OK(table->stream_create(ds_accel_device_handle(other_device), 0, 0, &joined, &error));
    ASSERT_OK(table->mem_fill_async(stream, &byte, "\1", 1, 1, &error));
    events[0] = record_new(stream);
    ASSERT_OK(table->stream_wait_event(joined, events[0], &error));
    EXPECT_FAIL(table->graph_capture_begin(joined, DS_ACCEL_CAPTURE_GLOBAL, &error),
                DS_ACCEL_ERR_STATE, "captures already");
    ASSERT_OK(table->mem_fill_async(joined, &byte, "\2", 1, 1, &error));
    events[1] = record_new(joined);
    ASSERT_OK(table->stream_wait_event(stream, events[1], &error));
    cr_expect_eq(end_and_count(stream), 4);
    ASSERT_OK(table->graph_capture_begin(joined, DS_ACCEL_CAPTURE_GLOBAL, &error));
    cr_expect_eq(end_and_count(joined), 0);
    table->event_destroy(events[0]);
    table->event_destroy(events[1]);
    table->stream_destroy(joined);
    table->stream_destroy(stream);
    ds_accel_device_close(other_device);
    ds_accel_destroy(other);
    close_cpu();
}

/* mem_free_async() waits for an event that makes the stream join a capture. The memory is
   nevertheless freed once, and not by launches of the graph. */
Test(plugin_cpu, no_graph_frees_memory)
{
    struct ds_accel_memory_stats stats = {.struct_size = sizeof(stats)};
    ds_accel_plugin_graph_exec_t *exec = NULL;
    ds_accel_plugin_graph_t *graph = NULL;
    ds_accel_plugin_stream_t *joined;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *events[2];
    void *memory = NULL;
    uint64_t count = 0;
    char byte = 0;

    open_cpu();
    stream = begin_capture();
    ASSERT_OK(table->stream_create(handle, 0, 0, &joined, &error));
    ASSERT_OK(table->mem_alloc(handle, 1000, 0, 0, &memory, &error));
    ASSERT_OK(table->mem_fill_async(stream, &byte, "\1", 1, 1, &error));
    events[0] = record_new(stream);
    ASSERT_OK(table->mem_free_async(joined, memory, &events[0], 1, &error));
    events[1] = record_new(joined);
    ASSERT_OK(table->stream_wait_event(stream, events[1], &error));
    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    EXPECT_OK(table->graph_node_count(graph, &count, &error));
    cr_expect_eq(count, 3);
    ASSERT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(table->graph_launch(exec, stream, &error));
    }
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    EXPECT_OK(table->mem_stats(handle, &stats, &error));
    cr_expect_eq(stats.free_count, 1);
    table->graph_exec_destroy(exec);
    table->graph_destroy(graph);
    table->event_destroy(events[0]);
    table->event_destroy(events[1]);
    table->stream_destroy(joined);
    table->stream_destroy(stream);
    close_cpu();
}

/* Work of no bytes becomes a node, so that the nodes of a graph do not depend on the sizes. */
Test(plugin_cpu, a_capture_records_work_of_no_bytes)
{
    ds_accel_plugin_stream_t *stream;
    char byte = 0;

    open_cpu();
    stream = begin_capture();
    ASSERT_OK(table->mem_copy_async(stream, NULL, NULL, 0, DS_ACCEL_COPY_INFER, &error));
    ASSERT_OK(table->mem_copy_peer_async(stream, handle, NULL, handle, NULL, 0, &error));
    ASSERT_OK(table->mem_fill_async(stream, &byte, "\1", 1, 0, &error));
    cr_expect_eq(end_and_count(stream), 3);
    table->stream_destroy(stream);
    close_cpu();
}

/* ERR_STATE for the capturing stream is reported before any other error of the call. */
Test(plugin_cpu, memory_is_neither_allocated_nor_freed_in_a_capture)
{
    ds_accel_plugin_stream_t *stream;
    void *pointer = NULL;

    open_cpu();
    stream = begin_capture();
    EXPECT_FAIL(table->mem_alloc_async(stream, UINT64_MAX / 2, 0, NULL, 0, &pointer, &error),
                DS_ACCEL_ERR_STATE, "is capturing");
    EXPECT_FAIL(table->mem_alloc_async(stream, 0, 0, NULL, 0, &pointer, &error), DS_ACCEL_ERR_STATE,
                "is capturing");
    EXPECT_FAIL(table->mem_free_async(stream, NULL, NULL, 0, &error), DS_ACCEL_ERR_STATE,
                "is capturing");
    EXPECT_FAIL(table->mem_free_async(stream, &stream, NULL, 0, &error), DS_ACCEL_ERR_STATE,
                "is capturing");
    table->stream_destroy(stream);
    close_cpu();
}
