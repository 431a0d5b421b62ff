/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Captures and graphs. A capture is the list of what a stream was given; ending it turns the list
 * into a graph; instantiating copies the graph into an exec; launching runs the exec's list from
 * front to back. An exec holds everything it needs, so that its graph may go first.
 */
#include "cpu.h"

struct ds_accel_plugin_graph {
    struct cpu_work_list works;
};

struct ds_accel_plugin_graph_exec {
    struct cpu_work_list works;
};

/* ---- capture -------------------------------------------------------------------------------- */

static int32_t cpu_graph_capture_begin(ds_accel_plugin_stream_t *stream, uint32_t mode,
                                       struct ds_accel_error *error)
{
    if (stream == NULL) {
        return cpu_null(error, "graph_capture_begin: stream");
    }
    /* No call of any thread can disturb a capture here, so the modes mean the same. */
    if (mode > DS_ACCEL_CAPTURE_RELAXED) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "graph_capture_begin: no mode %u", mode);
    }
    if (stream == &stream->device->default_stream) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "graph_capture_begin: the default stream can't capture; create one");
    }
    if (stream->capturing != DS_ACCEL_CAPTURING_NO) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "graph_capture_begin: the stream is capturing already");
    }
    stream->capturing = DS_ACCEL_CAPTURING_YES;
    stream->capture_id = atomic_fetch_add(&stream->device->instance->next_capture_id, 1);
    return DS_ACCEL_OK;
}

static int32_t cpu_graph_capture_end(ds_accel_plugin_stream_t *stream,
                                     ds_accel_plugin_graph_t **graph_out,
                                     struct ds_accel_error *error)
{
    ds_accel_plugin_graph_t *graph = NULL;
    int32_t status = DS_ACCEL_OK;

    if (stream == NULL || graph_out == NULL) {
        return cpu_null(error, "graph_capture_end: stream or graph_out");
    }
    if (stream->capturing == DS_ACCEL_CAPTURING_NO) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "graph_capture_end: the stream is not capturing");
    }
    if (stream->capturing == DS_ACCEL_CAPTURING_BROKEN) {
        status = plugin_fail(error, DS_ACCEL_ERR_STATE,
                             "graph_capture_end: the capture was broken, by a call that cannot be "
                             "captured or for want of memory; it is dropped");
    } else if ((graph = calloc(1, sizeof(*graph))) == NULL) {
        status = plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                             "graph_capture_end: no memory for a graph; the capture is dropped");
    }
    stream->capturing = DS_ACCEL_CAPTURING_NO;
    stream->capture_id = 0;
    if (graph == NULL) {
        cpu_work_list_release(&stream->captured);
        return status;
    }
    graph->works = stream->captured;
    memset(&stream->captured, 0, sizeof(stream->captured));
    *graph_out = graph;
    return DS_ACCEL_OK;
}

static int32_t cpu_graph_capture_status(ds_accel_plugin_stream_t *stream, uint32_t *status_out,
                                        struct ds_accel_error *error)
{
    if (stream == NULL || status_out == NULL) {
        return cpu_null(error, "graph_capture_status: stream or status_out");
    }
    *status_out = stream->capturing;
    return DS_ACCEL_OK;
}

/* ---- graphs and execs ----------------------------------------------------------------------- */

static void cpu_graph_destroy(ds_accel_plugin_graph_t *graph)
{
    if (graph != NULL) {
        cpu_work_list_release(&graph->works);
        free(graph);
    }
}

static int32_t cpu_graph_instantiate(ds_accel_plugin_graph_t *graph, uint32_t flags,
                                     ds_accel_plugin_graph_exec_t **exec_out,
                                     struct ds_accel_error *error)
{
    ds_accel_plugin_graph_exec_t *exec;

    if (graph == NULL || exec_out == NULL) {
        return cpu_null(error, "graph_instantiate: graph or exec_out");
    }
    if (flags != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "graph_instantiate: unknown flags 0x%x",
                           flags);
    }
    exec = calloc(1, sizeof(*exec));
    if (exec == NULL || cpu_work_list_copy(&graph->works, &exec->works) != 0) {
        free(exec);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "graph_instantiate: no memory for %zu nodes", graph->works.count);
    }
    *exec_out = exec;
    return DS_ACCEL_OK;
}

static void cpu_graph_exec_destroy(ds_accel_plugin_graph_exec_t *exec)
{
    if (exec != NULL) {
        cpu_work_list_release(&exec->works);
        free(exec);
    }
}

static int32_t cpu_graph_launch(ds_accel_plugin_graph_exec_t *exec,
                                ds_accel_plugin_stream_t *stream, struct ds_accel_error *error)
{
    if (exec == NULL || stream == NULL) {
        return cpu_null(error, "graph_launch: exec or stream");
    }
    if (stream->capturing != DS_ACCEL_CAPTURING_NO) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "graph_launch: the stream is capturing; a graph can't hold a graph");
    }
    cpu_work_list_run(&exec->works);
    return DS_ACCEL_OK;
}

static int is_same_shape(const struct cpu_work_list *first, const struct cpu_work_list *second)
{
    if (first->count != second->count) {
        return 0;
    }
    for (size_t i = 0; i < first->count; i++) {
        if (first->items[i].kind != second->items[i].kind) {
            return 0;
        }
    }
    return 1;
}

static int32_t cpu_graph_exec_update(ds_accel_plugin_graph_exec_t *exec,
                                     ds_accel_plugin_graph_t *graph, uint32_t *result_out,
                                     struct ds_accel_error *error)
{
    struct cpu_work_list works;

    if (exec == NULL || graph == NULL || result_out == NULL) {
        return cpu_null(error, "graph_exec_update: exec, graph or result_out");
    }
    if (!is_same_shape(&exec->works, &graph->works)) {
        *result_out = DS_ACCEL_GRAPH_REBUILD_NEEDED;
        return DS_ACCEL_OK;
    }
    if (cpu_work_list_copy(&graph->works, &works) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "graph_exec_update: no memory for %zu nodes", graph->works.count);
    }
    cpu_work_list_release(&exec->works);
    exec->works = works;
    *result_out = DS_ACCEL_GRAPH_UPDATED;
    return DS_ACCEL_OK;
}

static int32_t cpu_graph_node_count(ds_accel_plugin_graph_t *graph, uint64_t *count_out,
                                    struct ds_accel_error *error)
{
    if (graph == NULL || count_out == NULL) {
        return cpu_null(error, "graph_node_count: graph or count_out");
    }
    *count_out = graph->works.count;
    return DS_ACCEL_OK;
}

/* ---- picture -------------------------------------------------------------------------------- */

static void describe(const struct cpu_work *work, char *text, size_t text_size)
{
    const unsigned long long size = work->size_bytes;

    switch (work->kind) {
    case CPU_WORK_COPY:
        snprintf(text, text_size, "copy %llu bytes\\n%p to %p", size, (const void *)work->source,
                 work->destination);
        break;
    case CPU_WORK_FILL:
        snprintf(text, text_size, "fill %llu bytes\\npattern of %u at %p", size,
                 work->pattern_bytes, work->destination);
        break;
    case CPU_WORK_TASK:
        snprintf(text, text_size, "host task\\ndata %p", work->user_data);
        break;
    default:
        snprintf(text, text_size, "record event\\n%p", (void *)work->event);
        break;
    }
}

/* One node, and the edge from the one before. */
static int32_t dump_node(const struct cpu_work_list *works, size_t position,
                         ds_accel_text_sink_t sink, void *user_data)
{
    char label[128];
    char line[256];
    int length;

    describe(&works->items[position], label, sizeof(label));
    length = snprintf(line, sizeof(line), "    n%zu [label=\"%s\"];\n", position, label);
    if (position > 0) {
        length += snprintf(line + length, sizeof(line) - (size_t)length, "    n%zu -> n%zu;\n",
                           position - 1, position);
    }
    return sink(user_data, line, (size_t)length);
}

static int32_t cpu_graph_dump(ds_accel_plugin_graph_t *graph, ds_accel_text_sink_t sink,
                              void *user_data, struct ds_accel_error *error)
{
    static const char head[] = "digraph ds_accel_graph {\n    node [shape=box];\n";
    static const char tail[] = "}\n";
    int32_t status;

    if (graph == NULL || sink == NULL) {
        return cpu_null(error, "graph_dump: graph or sink");
    }
    status = sink(user_data, head, sizeof(head) - 1);
    for (size_t i = 0; i < graph->works.count && status == DS_ACCEL_OK; i++) {
        status = dump_node(&graph->works, i, sink, user_data);
    }
    if (status == DS_ACCEL_OK) {
        status = sink(user_data, tail, sizeof(tail) - 1);
    }
    if (status < 0) {
        return plugin_fail(error, status, "graph_dump: the receiver stopped with status %d",
                           status);
    }
    /* A positive answer is a receiver that has seen enough. */
    return DS_ACCEL_OK;
}

void cpu_graph_fill(struct ds_accel_plugin *table)
{
    table->graph_capture_begin = cpu_graph_capture_begin;
    table->graph_capture_end = cpu_graph_capture_end;
    table->graph_capture_status = cpu_graph_capture_status;
    table->graph_destroy = cpu_graph_destroy;
    table->graph_instantiate = cpu_graph_instantiate;
    table->graph_exec_destroy = cpu_graph_exec_destroy;
    table->graph_launch = cpu_graph_launch;
    table->graph_exec_update = cpu_graph_exec_update;
    table->graph_node_count = cpu_graph_node_count;
    table->graph_dump = cpu_graph_dump;
}
