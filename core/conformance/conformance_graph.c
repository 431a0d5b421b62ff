/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: captures, graphs and their launches. */
#include "base/text.h"
#include "conformance/conformance.h"

#define GROUP "graph"
#define BYTES 2048u

static ds_accel_plugin_stream_t *begin(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);

    WANT(run, DS_ACCEL_OK, graph_capture_begin, stream, DS_ACCEL_CAPTURE_THREAD_LOCAL);
    return stream;
}

static ds_accel_plugin_graph_t *end(struct ds_accel__run *run, ds_accel_plugin_stream_t *stream)
{
    ds_accel_plugin_graph_t *graph = NULL;

    WANT(run, DS_ACCEL_OK, graph_capture_end, stream, &graph);
    EXPECT(run, graph != NULL, "graph_capture_end: DS_ACCEL_OK without a graph");
    return graph;
}

static ds_accel_plugin_graph_exec_t *instantiate(struct ds_accel__run *run,
                                                 ds_accel_plugin_graph_t *graph)
{
    ds_accel_plugin_graph_exec_t *exec = NULL;

    WANT(run, DS_ACCEL_OK, graph_instantiate, graph, 0, &exec);
    EXPECT(run, exec != NULL, "graph_instantiate: DS_ACCEL_OK without an instance");
    return exec;
}

static void launch(struct ds_accel__run *run, ds_accel_plugin_graph_exec_t *exec,
                   ds_accel_plugin_stream_t *stream)
{
    WANT(run, DS_ACCEL_OK, graph_launch, exec, stream);
    ds_accel__wait(run, stream);
}

static void fill(struct ds_accel__run *run, ds_accel_plugin_stream_t *stream, void *memory,
                 unsigned char value)
{
    WANT(run, DS_ACCEL_OK, mem_fill_async, stream, memory, &value, 1, BYTES);
}

/* Capture a graph that fills memory with a value. */
static ds_accel_plugin_graph_t *fill_graph(struct ds_accel__run *run, void *memory,
                                           unsigned char value)
{
    ds_accel_plugin_stream_t *stream = begin(run);
    ds_accel_plugin_graph_t *graph;

    fill(run, stream, memory, value);
    graph = end(run, stream);
    run->table.stream_destroy(stream);
    return graph;
}

static void want_bytes(struct ds_accel__run *run, const void *memory, unsigned char value,
                       const char *when)
{
    unsigned char bytes[BYTES];

    ds_accel__get(run, bytes, memory, BYTES);
    EXPECT(run, bytes[0] == value && bytes[BYTES - 1] == value, "%s: found 0x%02x, expected 0x%02x",
           when, bytes[0], value);
}

/* ---- launches ------------------------------------------------------------------------------- */

static void check_launches(struct ds_accel__run *run)
{
    void *memory = ds_accel__take(run, BYTES);
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_graph_exec_t *exec;

    fill(run, run->stream, memory, 1);
    ds_accel__wait(run, run->stream);
    graph = fill_graph(run, memory, 2);
    want_bytes(run, memory, 1, "after the capture");
    exec = instantiate(run, graph);
    want_bytes(run, memory, 1, "after the instantiation");
    launch(run, exec, run->stream);
    want_bytes(run, memory, 2, "after the first launch");
    fill(run, run->stream, memory, 3);
    launch(run, exec, run->stream);
    want_bytes(run, memory, 2, "after the second launch");
    run->table.graph_exec_destroy(exec);
    run->table.graph_destroy(graph);
    ds_accel__give(run, memory);
}

static void count_task(void *user_data, int32_t status)
{
    (void)status;
    atomic_fetch_add((atomic_int *)user_data, 1);
}

static void check_tasks(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = begin(run);
    atomic_int runs = 0;
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_graph_exec_t *exec;

    WANT(run, DS_ACCEL_OK, stream_host_task, stream, count_task, &runs);
    graph = end(run, stream);
    exec = instantiate(run, graph);
    EXPECT(run, atomic_load(&runs) == 0, "a captured task ran before a launch");
    for (int i = 1; i <= 3; i++) {
        launch(run, exec, stream);
        EXPECT(run, atomic_load(&runs) == i, "after %d launches a captured task ran %d times", i,
               atomic_load(&runs));
    }
    run->table.graph_exec_destroy(exec);
    run->table.graph_destroy(graph);
    run->table.stream_destroy(stream);
}

/* Check that consecutive launches, on one stream and on two, all take effect. */
static void check_launches_in_a_row(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = begin(run);
    atomic_int runs = 0;
    ds_accel_plugin_graph_t *graph = NULL;
    ds_accel_plugin_graph_exec_t *exec;

    if (CALL(run, stream_host_task, stream, count_task, &runs) != DS_ACCEL_OK) {
        /* another check tests whether host tasks can be captured */
        ds_accel__skip(run, "%.200s", run->error.message);
        CALL(run, graph_capture_end, stream, &graph);
        run->table.graph_destroy(graph);
        run->table.stream_destroy(stream);
        return;
    }
    graph = end(run, stream);
    exec = instantiate(run, graph);
    for (int i = 0; i < 3; i++) {
        WANT(run, DS_ACCEL_OK, graph_launch, exec, stream);
    }
    WANT(run, DS_ACCEL_OK, graph_launch, exec, run->stream);
    ds_accel__wait(run, stream);
    ds_accel__wait(run, run->stream);
    EXPECT(run, atomic_load(&runs) == 4,
           "after four launches in a row a captured task ran %d times", atomic_load(&runs));
    run->table.graph_exec_destroy(exec);
    run->table.graph_destroy(graph);
    run->table.stream_destroy(stream);
}

/* Check that a captured copy reads its source when the graph is launched. */
static void check_copy(struct ds_accel__run *run)
{
    char *from = ds_accel__take(run, BYTES);
    char *to = ds_accel__take(run, BYTES);
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_graph_exec_t *exec;

    fill(run, run->stream, from, 15);
    ds_accel__wait(run, run->stream);
    stream = begin(run);
    WANT(run, DS_ACCEL_OK, mem_copy_async, stream, to, from, BYTES, DS_ACCEL_COPY_DEVICE_TO_DEVICE);
    graph = end(run, stream);
    exec = instantiate(run, graph);
    for (unsigned char value = 16; value < 18; value++) {
        fill(run, run->stream, from, value);
        launch(run, exec, run->stream);
        want_bytes(run, to, value, "after the launch of a copy");
    }
    run->table.graph_exec_destroy(exec);
    run->table.graph_destroy(graph);
    run->table.stream_destroy(stream);
    ds_accel__give(run, from);
    ds_accel__give(run, to);
}

static void check_graph_destroyed(struct ds_accel__run *run)
{
    void *memory = ds_accel__take(run, BYTES);
    ds_accel_plugin_graph_t *graph = fill_graph(run, memory, 4);
    ds_accel_plugin_graph_exec_t *exec = instantiate(run, graph);

    run->table.graph_destroy(graph);
    launch(run, exec, run->stream);
    want_bytes(run, memory, 4, "launched without its graph");
    run->table.graph_exec_destroy(exec);
    ds_accel__give(run, memory);
}

static void check_update(struct ds_accel__run *run)
{
    void *memory = ds_accel__take(run, BYTES);
    ds_accel_plugin_graph_t *first = fill_graph(run, memory, 5);
    ds_accel_plugin_graph_t *alike = fill_graph(run, memory, 6);
    ds_accel_plugin_stream_t *stream = begin(run);
    ds_accel_plugin_graph_exec_t *exec = instantiate(run, first);
    ds_accel_plugin_graph_t *other;
    uint32_t result = 99;
    unsigned char wanted = 5;

    fill(run, stream, memory, 7);
    fill(run, stream, memory, 8);
    other = end(run, stream);
    WANT(run, DS_ACCEL_OK, graph_exec_update, exec, alike, &result);
    EXPECT(run, result == DS_ACCEL_GRAPH_UPDATED || result == DS_ACCEL_GRAPH_REBUILD_NEEDED,
           "graph_exec_update: the result is %u", result);
    wanted = result == DS_ACCEL_GRAPH_UPDATED ? 6 : 5;
    launch(run, exec, run->stream);
    want_bytes(run, memory, wanted, "after an update with a graph alike");
    WANT(run, DS_ACCEL_OK, graph_exec_update, exec, other, &result);
    wanted = result == DS_ACCEL_GRAPH_UPDATED ? 8 : wanted;
    launch(run, exec, run->stream);
    want_bytes(run, memory, wanted, "after an update with another graph");
    run->table.graph_exec_destroy(exec);
    run->table.graph_destroy(first);
    run->table.graph_destroy(alike);
    run->table.graph_destroy(other);
    run->table.stream_destroy(stream);
    ds_accel__give(run, memory);
}

/* ---- captures ------------------------------------------------------------------------------- */

static void check_broken(struct ds_accel__run *run)
{
    void *memory = ds_accel__take(run, BYTES);
    ds_accel_plugin_stream_t *stream = begin(run);
    ds_accel_plugin_graph_t *graph = NULL;

    fill(run, stream, memory, 9);
    WANT(run, DS_ACCEL_ERR_STATE, stream_synchronize, stream, UINT64_MAX);
    WANT(run, DS_ACCEL_ERR_STATE, graph_capture_end, stream, &graph);
    EXPECT(run, graph == NULL, "a broken capture returned a graph");
    fill(run, stream, memory, 10); /* the stream is no longer capturing and can be used */
    ds_accel__wait(run, stream);
    want_bytes(run, memory, 10, "a stream whose capture was broken");
    run->table.stream_destroy(stream);
    ds_accel__give(run, memory);
}

/* Check that a second graph_capture_begin() on a stream that is already capturing fails. The first
 * capture may continue or become invalid; in both cases one graph_capture_end() must end it. */
static void check_begun_twice(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = begin(run);
    ds_accel_plugin_graph_t *graph = NULL;

    WANT_ERROR(run, graph_capture_begin, stream, DS_ACCEL_CAPTURE_THREAD_LOCAL);
    CALL(run, graph_capture_end, stream, &graph);
    run->table.graph_destroy(graph);
    WANT_ERROR(run, graph_capture_end, stream, &graph);
    run->table.stream_destroy(stream);
}

/* Check that an event recorded before a capture can be queried and waited for during the capture,
 * in every supported mode, without breaking the capture. */
static void check_asked(struct ds_accel__run *run)
{
    ds_accel_plugin_event_t *event = ds_accel__event(run, 0);

    WANT(run, DS_ACCEL_OK, event_record, event, run->stream);
    ds_accel__wait(run, run->stream);
    for (uint32_t mode = DS_ACCEL_CAPTURE_GLOBAL; mode <= DS_ACCEL_CAPTURE_RELAXED; mode++) {
        ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
        int32_t status = CALL(run, graph_capture_begin, stream, mode);

        if (status == DS_ACCEL_OK) {
            ds_accel_plugin_graph_t *graph = NULL;

            WANT(run, DS_ACCEL_OK, event_query, event);
            WANT(run, DS_ACCEL_OK, event_synchronize, event, UINT64_MAX);
            status = CALL(run, graph_capture_end, stream, &graph);
            EXPECT(run, status == DS_ACCEL_OK,
                   "querying an event broke a capture of mode %u: %s: %.150s", mode,
                   ds_accel__status_text(status), run->error.message);
            run->table.graph_destroy(graph);
        } else {
            ds_accel__want(run, DS_ACCEL_ERR_UNSUPPORTED, "graph_capture_begin", status);
        }
        run->table.stream_destroy(stream);
    }
    run->table.event_destroy(event);
}

/* Check memory allocated during a capture: it can be used at once, and a launch does not allocate
 * it again. */
static void check_memory(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = begin(run);
    void *memory = ds_accel__take(run, BYTES);
    ds_accel_plugin_graph_exec_t *exec;
    ds_accel_plugin_graph_t *graph;

    fill(run, stream, memory, 13);
    graph = end(run, stream);
    fill(run, run->stream, memory, 14);
    ds_accel__wait(run, run->stream);
    want_bytes(run, memory, 14, "memory allocated while a stream captured");
    exec = instantiate(run, graph);
    launch(run, exec, run->stream);
    launch(run, exec, run->stream);
    want_bytes(run, memory, 13, "after two launches");
    run->table.graph_exec_destroy(exec);
    run->table.graph_destroy(graph);
    run->table.stream_destroy(stream);
    ds_accel__give(run, memory);
}

static void check_status(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
    ds_accel_plugin_graph_t *graph = NULL;
    uint32_t status = 99;

    WANT(run, DS_ACCEL_OK, graph_capture_status, stream, &status);
    EXPECT(run, status == DS_ACCEL_CAPTURING_NO, "a new stream has the status %u", status);
    WANT(run, DS_ACCEL_OK, graph_capture_begin, stream, DS_ACCEL_CAPTURE_RELAXED);
    WANT(run, DS_ACCEL_OK, graph_capture_status, stream, &status);
    EXPECT(run, status == DS_ACCEL_CAPTURING_YES, "a stream that captures has the status %u",
           status);
    run->table.graph_destroy(end(run, stream));
    WANT(run, DS_ACCEL_OK, graph_capture_status, stream, &status);
    EXPECT(run, status == DS_ACCEL_CAPTURING_NO, "after the capture the status is %u", status);
    WANT(run, DS_ACCEL_OK, graph_capture_begin, stream, DS_ACCEL_CAPTURE_RELAXED);
    if (CALL(run, stream_synchronize, stream, UINT64_MAX) == DS_ACCEL_ERR_STATE) {
        WANT(run, DS_ACCEL_OK, graph_capture_status, stream, &status);
        EXPECT(run, status == DS_ACCEL_CAPTURING_BROKEN, "a broken capture has the status %u",
               status);
    }
    CALL(run, graph_capture_end, stream, &graph);
    run->table.graph_destroy(graph);
    run->table.stream_destroy(stream);
}

static void check_event(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = begin(run);
    ds_accel_plugin_event_t *event = ds_accel__event(run, 0);
    ds_accel_plugin_graph_t *graph;

    WANT(run, DS_ACCEL_OK, event_record, event, stream);
    graph = end(run, stream);
    WANT(run, DS_ACCEL_ERR_STATE, event_query, event);
    WANT(run, DS_ACCEL_ERR_STATE, event_synchronize, event, UINT64_MAX);
    WANT(run, DS_ACCEL_OK, event_record, event, stream);
    WANT(run, DS_ACCEL_OK, event_synchronize, event, UINT64_MAX);
    WANT(run, DS_ACCEL_OK, event_query, event);
    run->table.graph_destroy(graph);
    run->table.event_destroy(event);
    run->table.stream_destroy(stream);
}

static void check_count(struct ds_accel__run *run)
{
    void *memory = ds_accel__take(run, BYTES);
    ds_accel_plugin_graph_t *graph = fill_graph(run, memory, 11);
    ds_accel_plugin_stream_t *stream;
    uint64_t count = UINT64_MAX;
    uint64_t more = 0;

    WANT(run, DS_ACCEL_OK, graph_node_count, graph, &count);
    EXPECT(run, count >= 1 && count < 16, "one fill has %llu nodes", (unsigned long long)count);
    run->table.graph_destroy(graph);
    stream = begin(run);
    for (uint64_t i = 0; i < 4 * count; i++) {
        fill(run, stream, memory, 11);
    }
    graph = end(run, stream);
    WANT(run, DS_ACCEL_OK, graph_node_count, graph, &more);
    EXPECT(run, more > count, "one fill has %llu nodes, and %llu fills have %llu",
           (unsigned long long)count, (unsigned long long)(4 * count), (unsigned long long)more);
    run->table.graph_destroy(graph);
    run->table.stream_destroy(stream);
    ds_accel__give(run, memory);
}

struct sink {
    uint64_t calls;
    uint64_t size_bytes;
    int32_t answer;
};

static int32_t take_text(void *user_data, const char *text, uint64_t text_bytes)
{
    struct sink *sink = user_data;

    (void)text;
    sink->calls++;
    sink->size_bytes += text_bytes;
    return sink->answer;
}

static void check_dump(struct ds_accel__run *run)
{
    void *memory = ds_accel__take(run, BYTES);
    ds_accel_plugin_graph_t *graph = fill_graph(run, memory, 12);
    struct sink sink = {0};
    struct sink refusing = {.answer = DS_ACCEL_ERR_IO};

    WANT(run, DS_ACCEL_OK, graph_dump, graph, take_text, &sink);
    EXPECT(run, sink.size_bytes > 0, "the picture is empty");
    WANT_ERROR(run, graph_dump, graph, take_text, &refusing);
    EXPECT(run, refusing.calls == 1, "the sink was called %llu times although it refused",
           (unsigned long long)refusing.calls);
    run->table.graph_destroy(graph);
    ds_accel__give(run, memory);
}

#define DEVICE DS_ACCEL__STAGE_DEVICE
#define FILLS \
    SLOT(graph_capture_begin), SLOT(graph_launch), SLOT(mem_fill_async), SLOT(mem_alloc), \
        SLOT(mem_copy)

static const struct ds_accel__check checks[] = {
    {81, GROUP, "two launches", DEVICE, 0, check_launches, {FILLS}},
    {81,
     GROUP,
     "a captured host task",
     DEVICE,
     0,
     check_tasks,
     {SLOT(graph_capture_begin), SLOT(graph_launch), SLOT(stream_host_task)}},
    {81,
     GROUP,
     "one launch after another",
     DEVICE,
     0,
     check_launches_in_a_row,
     {SLOT(graph_capture_begin), SLOT(graph_launch), SLOT(stream_host_task)}},
    {81, GROUP, "a captured copy", DEVICE, 0, check_copy, {FILLS, SLOT(mem_copy_async)}},
    {84, GROUP, "a capture is begun twice", DEVICE, 0, check_begun_twice, {FILLS}},
    {85,
     GROUP,
     "an event recorded before is queried while capturing",
     DEVICE,
     0,
     check_asked,
     {SLOT(graph_capture_begin), SLOT(event_create), SLOT(event_record), SLOT(event_query),
      SLOT(event_synchronize)}},
    {82,
     GROUP,
     "a graph is destroyed before the launch",
     DEVICE,
     0,
     check_graph_destroyed,
     {FILLS}},
    {83, GROUP, "updates", DEVICE, 0, check_update, {FILLS, SLOT(graph_exec_update)}},
    {84, GROUP, "synchronizing while capturing", DEVICE, 0, check_broken, {FILLS}},
    {85,
     GROUP,
     "an event of a capture",
     DEVICE,
     0,
     check_event,
     {SLOT(graph_capture_begin), SLOT(event_create), SLOT(event_record), SLOT(event_query),
      SLOT(event_synchronize)}},
    {86, GROUP, "nodes of a graph", DEVICE, 0, check_count, {FILLS, SLOT(graph_node_count)}},
    {86, GROUP, "the picture of a graph", DEVICE, 0, check_dump, {FILLS, SLOT(graph_dump)}},
    {87,
     GROUP,
     "the status before, in and after a capture",
     DEVICE,
     0,
     check_status,
     {SLOT(graph_capture_begin), SLOT(graph_capture_status)}},
    {106, GROUP, "memory allocated while capturing", DEVICE, 0, check_memory, {FILLS}},
};

const struct ds_accel__check_list ds_accel__checks_graph = {checks, ARRAY_SIZE(checks)};
