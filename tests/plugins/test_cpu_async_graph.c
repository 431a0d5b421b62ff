/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The cpu plugin with option async: captures and graphs. */
#include "cpu_async.h"

/* ---- graphs --------------------------------------------------------------------------------- */

static ds_accel_plugin_graph_exec_t *end_capture(ds_accel_plugin_stream_t *stream)
{
    ds_accel_plugin_graph_exec_t *exec = NULL;
    ds_accel_plugin_graph_t *graph = NULL;

    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    ASSERT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    table->graph_destroy(graph);
    return exec;
}

Test(plugin_cpu_async, a_launch_is_work_of_its_stream)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_graph_exec_t *exec;
    unsigned char bytes[3] = {0};

    open_cpu();
    stream = make_stream();
    event = make_event();
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    copy(stream, &bytes[1], &bytes[0], 1);
    ASSERT_OK(table->event_record(event, stream, &error));
    copy(stream, &bytes[2], &bytes[1], 1);
    exec = end_capture(stream);
    EXPECT_FAIL(table->event_query(event, &error), DS_ACCEL_ERR_STATE, "not launched yet");
    hold(stream, &gate);
    for (unsigned char round = 1; round < 4; round++) {
        put(stream, &bytes[0], round);
        EXPECT_OK(table->graph_launch(exec, stream, &error));
    }
    table->graph_exec_destroy(exec); /* three launches are pending */
    cr_expect_eq(table->event_query(event, &error), DS_ACCEL_NOT_READY);
    cr_expect(bytes[1] == 0 && bytes[2] == 0);
    open_gate(&gate);
    EXPECT_OK(table->event_synchronize(event, UINT64_MAX, &error));
    finish(stream);
    cr_expect(bytes[1] == 3 && bytes[2] == 3);
    table->event_destroy(event);
    table->stream_destroy(stream);
    close_cpu();
}

Test(plugin_cpu_async, launches_of_one_exec_follow_each_other)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *first;
    ds_accel_plugin_stream_t *second;
    ds_accel_plugin_graph_exec_t *exec;
    unsigned char bytes[2] = {1, 0};

    open_cpu();
    first = make_stream();
    second = make_stream();
    ASSERT_OK(table->graph_capture_begin(first, 0, &error));
    copy(first, &bytes[1], &bytes[0], 1);
    exec = end_capture(first);
    hold(first, &gate);
    EXPECT_OK(table->graph_launch(exec, first, &error));
    EXPECT_OK(table->graph_launch(exec, second, &error));
    cr_expect_eq(table->stream_query(second, &error), DS_ACCEL_NOT_READY);
    EXPECT_FAIL(table->stream_synchronize(second, 1000000, &error), DS_ACCEL_ERR_TIMEOUT, "left");
    cr_expect_eq(bytes[1], 0);
    open_gate(&gate);
    finish(second);
    cr_expect_eq(bytes[1], 1);
    table->graph_exec_destroy(exec);
    table->stream_destroy(first);
    table->stream_destroy(second);
    close_cpu();
}

Test(plugin_cpu_async, an_updated_exec_leaves_pending_launches_as_they_were)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_exec_t *exec;
    ds_accel_plugin_graph_t *graph = NULL;
    unsigned char bytes[2] = {0};
    uint32_t result = 0;

    open_cpu();
    stream = make_stream();
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    put(stream, &bytes[0], 1);
    exec = end_capture(stream);
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    put(stream, &bytes[1], 2);
    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    hold(stream, &gate);
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    EXPECT_OK(table->graph_exec_update(exec, graph, &result, &error));
    cr_expect_eq(result, DS_ACCEL_GRAPH_UPDATED);
    open_gate(&gate);
    finish(stream);
    cr_expect(bytes[0] == 1 && bytes[1] == 0);
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    finish(stream);
    cr_expect_eq(bytes[1], 2);
    table->graph_destroy(graph);
    table->graph_exec_destroy(exec);
    table->stream_destroy(stream);
    close_cpu();
}

static uint32_t capture_state(ds_accel_plugin_stream_t *stream)
{
    uint32_t state = 99;

    EXPECT_OK(table->graph_capture_status(stream, &state, &error));
    return state;
}

static int32_t keep_text(void *kept, const char *text, uint64_t text_bytes)
{
    strncat(kept, text, text_bytes);
    return DS_ACCEL_OK;
}

/*
 * A graph in the shape of a diamond: a copy on the first stream, a copy of its result on each
 * stream, and after the join a copy of the second stream's result on the first stream. The numbers
 * in comments are the nodes.
 */
Test(plugin_cpu_async, a_stream_that_waits_for_a_capture_is_drawn_into_it)
{
    ds_accel_plugin_stream_t *streams[2];
    ds_accel_plugin_event_t *fork_event;
    ds_accel_plugin_event_t *join_event;
    ds_accel_plugin_graph_exec_t *exec = NULL;
    ds_accel_plugin_graph_t *graph = NULL;
    unsigned char bytes[5] = {6, 0, 0, 0, 0};
    char text[4096] = "";

    open_cpu();
    streams[0] = make_stream();
    streams[1] = make_stream();
    fork_event = make_event();
    join_event = make_event();
    ASSERT_OK(table->graph_capture_begin(streams[0], 0, &error));
    copy(streams[0], &bytes[1], &bytes[0], 1);                      /* 0 */
    ASSERT_OK(table->event_record(fork_event, streams[0], &error)); /* 1 */
    ASSERT_OK(table->stream_wait_event(streams[1], fork_event, &error));
    cr_expect_eq(capture_state(streams[1]), DS_ACCEL_CAPTURING_YES);
    copy(streams[1], &bytes[2], &bytes[1], 1);                      /* 2 */
    copy(streams[0], &bytes[3], &bytes[1], 1);                      /* 3 */
    ASSERT_OK(table->event_record(join_event, streams[1], &error)); /* 4 */
    ASSERT_OK(table->stream_wait_event(streams[0], join_event, &error));
    copy(streams[0], &bytes[4], &bytes[2], 1); /* 5 */
    cr_expect_eq(bytes[1], 0);
    ASSERT_OK(table->graph_capture_end(streams[0], &graph, &error));
    cr_expect_eq(capture_state(streams[1]), DS_ACCEL_CAPTURING_NO);
    EXPECT_OK(table->graph_dump(graph, keep_text, text, &error));
    EXPECT_HAS(text, "n1 -> n2;");
    EXPECT_HAS(text, "n1 -> n3;");
    EXPECT_HAS(text, "n3 -> n5;");
    EXPECT_HAS(text, "n4 -> n5;");
    EXPECT_HAS_NOT(text, "n2 -> n3;");
    ASSERT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    EXPECT_OK(table->graph_launch(exec, streams[1], &error));
    EXPECT_OK(table->event_synchronize(join_event, UINT64_MAX, &error));
    finish(streams[1]);
    for (int i = 0; i < 5; i++) {
        cr_expect_eq(bytes[i], 6);
    }
    table->graph_exec_destroy(exec);
    table->graph_destroy(graph);
    table->event_destroy(fork_event);
    table->event_destroy(join_event);
    table->stream_destroy(streams[0]);
    table->stream_destroy(streams[1]);
    close_cpu();
}

/* Begins a capture on one stream, and makes the other stream join it; returns the event. */
static ds_accel_plugin_event_t *fork_capture(ds_accel_plugin_stream_t *origin,
                                             ds_accel_plugin_stream_t *other)
{
    ds_accel_plugin_event_t *event = make_event();

    ASSERT_OK(table->graph_capture_begin(origin, 0, &error));
    ASSERT_OK(table->event_record(event, origin, &error));
    ASSERT_OK(table->stream_wait_event(other, event, &error));
    return event;
}

Test(plugin_cpu_async, captures_of_two_streams_that_cannot_be_are_refused)
{
    ds_accel_plugin_stream_t *origin;
    ds_accel_plugin_stream_t *other;
    ds_accel_plugin_stream_t *standard;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_event_t *outside;
    ds_accel_plugin_graph_t *graph = NULL;
    unsigned char byte = 0;

    open_cpu();
    origin = make_stream();
    other = make_stream();
    outside = make_event();
    ASSERT_OK(table->stream_get_default(handle, &standard, &error));

    event = fork_capture(origin, other);
    EXPECT_FAIL(table->stream_wait_event(standard, event, &error), DS_ACCEL_ERR_STATE,
                "the default stream can't be drawn into");
    put(other, &byte, 1);
    EXPECT_FAIL(table->graph_capture_end(origin, &graph, &error), DS_ACCEL_ERR_STATE,
                "is not joined");
    cr_expect_eq(capture_state(origin), DS_ACCEL_CAPTURING_NO);
    put(other, &byte, 2); /* runs at once, because the capture has ended */
    finish(other);
    cr_expect_eq(byte, 2);
    EXPECT_FAIL(table->stream_wait_event(other, event, &error), DS_ACCEL_ERR_STATE,
                "was not launched since");
    table->event_destroy(event);

    event = fork_capture(origin, other);
    EXPECT_FAIL(table->graph_capture_end(other, &graph, &error), DS_ACCEL_ERR_STATE,
                "began on another stream");
    EXPECT_FAIL(table->graph_capture_end(origin, &graph, &error), DS_ACCEL_ERR_STATE,
                "to be ended on a stream that was drawn into it");
    table->event_destroy(event);

    event = fork_capture(origin, other);
    EXPECT_OK(table->event_record(outside, standard, &error));
    EXPECT_FAIL(table->stream_wait_event(other, outside, &error), DS_ACCEL_ERR_STATE,
                "recorded outside of the capture");
    cr_expect_eq(capture_state(origin), DS_ACCEL_CAPTURING_BROKEN);
    EXPECT_FAIL(table->mem_fill_async(origin, &byte, "\x03", 1, 1, &error), DS_ACCEL_ERR_STATE,
                "is broken");
    EXPECT_FAIL(table->graph_capture_end(origin, &graph, &error), DS_ACCEL_ERR_STATE, "is broken");
    table->event_destroy(event);

    event = fork_capture(origin, other);
    put(other, &byte, 3);
    table->stream_destroy(other);
    cr_expect_eq(capture_state(origin), DS_ACCEL_CAPTURING_YES);
    EXPECT_FAIL(table->graph_capture_end(origin, &graph, &error), DS_ACCEL_ERR_STATE,
                "is not joined");
    table->event_destroy(event);

    other = make_stream();
    event = fork_capture(origin, other);
    table->stream_destroy(origin);
    cr_expect_eq(capture_state(other), DS_ACCEL_CAPTURING_NO);
    cr_expect_eq(byte, 2);
    table->event_destroy(event);
    table->event_destroy(outside);
    table->stream_destroy(other);
    close_cpu();
}
