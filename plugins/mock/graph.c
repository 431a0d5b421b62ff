/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Graphs: a capture records the work of its streams in the order of the calls (capture.c), a graph
 * is that list of work, and a launch runs the list in the same order. In that order each event of
 * the capture is recorded before work that waits for it. A call on a capturing stream that a graph
 * cannot contain (synchronize, query, stream-ordered allocation and freeing, launch of a graph)
 * breaks the capture. Such a call on another stream does not, in whichever thread, so the capture
 * modes have no effect.
 */
#include "mock.h"

struct ds_accel_plugin_graph {
    ds_accel_plugin_device_t *device;
    struct mock_work_list works;
};

struct ds_accel_plugin_graph_exec {
    ds_accel_plugin_device_t *device;
    struct mock_work_list works;
};

/* ---- lists of work; the caller holds instance->lock ----------------------------------------- */

int mock_work_list_append(struct mock_work_list *list, const struct mock_work *work)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity > 0 ? 2 * list->capacity : 16;
        struct mock_work *items = realloc(list->items, capacity * sizeof(*items));

        if (items == NULL) {
            return -1;
        }
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count] = *work;
    list->count++;
    if (work->kind == MOCK_WORK_RECORD) {
        work->mark->references++;
    }
    return 0;
}

int mock_work_list_copy(const struct mock_work_list *list, struct mock_work_list *copy_out)
{
    struct mock_work_list copy = {NULL, 0, 0};

    for (size_t i = 0; i < list->count; i++) {
        if (mock_work_list_append(&copy, &list->items[i]) != 0) {
            mock_work_list_release(&copy);
            return -1;
        }
    }
    *copy_out = copy;
    return 0;
}

void mock_work_list_release(struct mock_work_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].kind == MOCK_WORK_RECORD) {
            mock_mark_put(list->items[i].mark);
        }
    }
    free(list->items);
    memset(list, 0, sizeof(*list));
}

/* ---- capture -------------------------------------------------------------------------------- */

static int32_t mock_graph_capture_begin(ds_accel_plugin_stream_t *stream, uint32_t mode,
                                        struct ds_accel_error *error)
{
    ds_accel_plugin_instance_t *instance;
    const char *problem = NULL;
    int result = 0;
    int32_t status = mock_enter_stream(stream, "graph_capture_begin", error);

    if (status < 0) {
        return status;
    }
    if (mode > DS_ACCEL_CAPTURE_RELAXED) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "graph_capture_begin: unknown mode %u",
                           mode);
    }
    instance = stream->device->instance;
    pthread_mutex_lock(&instance->lock);
    if (stream->queue->is_default) {
        problem = "the default stream can't capture";
    } else if (mock_capture_state(stream->queue) != DS_ACCEL_CAPTURING_NO) {
        problem = "the stream captures already";
    } else {
        result = mock_capture_begin(stream->queue, ++instance->next_capture_id);
    }
    pthread_mutex_unlock(&instance->lock);
    if (problem != NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE, "graph_capture_begin: %s", problem);
    }
    if (result != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "graph_capture_begin: no memory");
    }
    return DS_ACCEL_OK;
}

static int32_t mock_graph_capture_end(ds_accel_plugin_stream_t *stream,
                                      ds_accel_plugin_graph_t **graph_out,
                                      struct ds_accel_error *error)
{
    const char *slot = "graph_capture_end";
    ds_accel_plugin_graph_t *graph;
    const char *problem;
    int32_t status = mock_enter_stream(stream, slot, error);

    if (status < 0) {
        return status;
    }
    if (graph_out == NULL) {
        return mock_null(error, slot, "graph_out");
    }
    graph = calloc(1, sizeof(*graph));
    if (graph == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: no memory", slot);
    }
    graph->device = stream->device;
    pthread_mutex_lock(&stream->device->instance->lock);
    problem = mock_capture_end(stream->queue, &graph->works);
    pthread_mutex_unlock(&stream->device->instance->lock);
    if (problem != NULL) {
        free(graph);
        return plugin_fail(error, DS_ACCEL_ERR_STATE, "%s: %s", slot, problem);
    }
    *graph_out = graph;
    return DS_ACCEL_OK;
}

static int32_t mock_graph_capture_status(ds_accel_plugin_stream_t *stream, uint32_t *status_out,
                                         struct ds_accel_error *error)
{
    int32_t status = mock_enter_stream(stream, "graph_capture_status", error);

    if (status < 0) {
        return status;
    }
    if (status_out == NULL) {
        return mock_null(error, "graph_capture_status", "status_out");
    }
    pthread_mutex_lock(&stream->device->instance->lock);
    *status_out = mock_capture_state(stream->queue);
    pthread_mutex_unlock(&stream->device->instance->lock);
    return DS_ACCEL_OK;
}

/* ---- graphs and their instances ------------------------------------------------------------- */

static void release_locked(ds_accel_plugin_instance_t *instance, struct mock_work_list *works)
{
    pthread_mutex_lock(&instance->lock);
    mock_work_list_release(works);
    pthread_mutex_unlock(&instance->lock);
}

static void mock_graph_destroy(ds_accel_plugin_graph_t *graph)
{
    if (graph != NULL) {
        release_locked(graph->device->instance, &graph->works);
        free(graph);
    }
}

static void mock_graph_exec_destroy(ds_accel_plugin_graph_exec_t *exec)
{
    if (exec != NULL) {
        release_locked(exec->device->instance, &exec->works);
        free(exec);
    }
}

static int32_t enter_graph(ds_accel_plugin_graph_t *graph, const char *slot,
                           struct ds_accel_error *error)
{
    return graph == NULL ? mock_null(error, slot, "the graph")
                         : mock_enter_device(graph->device, slot, error);
}

static int32_t mock_graph_instantiate(ds_accel_plugin_graph_t *graph, uint32_t flags,
                                      ds_accel_plugin_graph_exec_t **exec_out,
                                      struct ds_accel_error *error)
{
    ds_accel_plugin_graph_exec_t *exec;
    int result = -1;
    int32_t status = enter_graph(graph, "graph_instantiate", error);

    if (status < 0) {
        return status;
    }
    if (flags != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "graph_instantiate: unknown flags 0x%x",
                           flags);
    }
    if (exec_out == NULL) {
        return mock_null(error, "graph_instantiate", "exec_out");
    }
    exec = calloc(1, sizeof(*exec));
    if (exec != NULL) {
        exec->device = graph->device;
        pthread_mutex_lock(&graph->device->instance->lock);
        result = mock_work_list_copy(&graph->works, &exec->works);
        pthread_mutex_unlock(&graph->device->instance->lock);
    }
    if (result != 0) {
        free(exec);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "graph_instantiate: no memory");
    }
    *exec_out = exec;
    return DS_ACCEL_OK;
}

static int32_t mock_graph_launch(ds_accel_plugin_graph_exec_t *exec,
                                 ds_accel_plugin_stream_t *stream, struct ds_accel_error *error)
{
    const char *slot = "graph_launch";
    ds_accel_plugin_instance_t *instance;
    int32_t status = mock_enter_stream(stream, slot, error);

    if (status < 0) {
        return status;
    }
    if (exec == NULL || exec->device != stream->device) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: the graph is NULL or of another device", slot);
    }
    status = mock_queue_not_capturing(stream, slot, error);
    if (status < 0) {
        return status;
    }
    for (size_t i = 0; i < exec->works.count; i++) {
        status = mock_work_check(exec->device, &exec->works.items[i], slot, error);
        if (status < 0) {
            return status;
        }
    }
    instance = stream->device->instance;
    pthread_mutex_lock(&instance->lock);
    mock_queue_advance(stream, plugin_now_ns(), instance->options.launch_latency_ns);
    pthread_mutex_unlock(&instance->lock);
    for (size_t i = 0; i < exec->works.count; i++) {
        mock_work_run(stream, &exec->works.items[i]);
    }
    return DS_ACCEL_OK;
}

/* True if the graphs have the same number and kinds of work. Parameters may differ. */
static int is_same_shape(const struct mock_work_list *a, const struct mock_work_list *b)
{
    if (a->count != b->count) {
        return 0;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (a->items[i].kind != b->items[i].kind) {
            return 0;
        }
    }
    return 1;
}

static int32_t mock_graph_exec_update(ds_accel_plugin_graph_exec_t *exec,
                                      ds_accel_plugin_graph_t *graph, uint32_t *result_out,
                                      struct ds_accel_error *error)
{
    struct mock_work_list works = {NULL, 0, 0};
    int result;
    int32_t status = enter_graph(graph, "graph_exec_update", error);

    if (status < 0) {
        return status;
    }
    if (exec == NULL || result_out == NULL) {
        return mock_null(error, "graph_exec_update", "exec or result_out");
    }
    if (exec->device != graph->device || !is_same_shape(&exec->works, &graph->works)) {
        *result_out = DS_ACCEL_GRAPH_REBUILD_NEEDED;
        return DS_ACCEL_OK;
    }
    pthread_mutex_lock(&graph->device->instance->lock);
    result = mock_work_list_copy(&graph->works, &works);
    if (result == 0) {
        mock_work_list_release(&exec->works);
        exec->works = works;
    }
    pthread_mutex_unlock(&graph->device->instance->lock);
    if (result != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "graph_exec_update: no memory");
    }
    *result_out = DS_ACCEL_GRAPH_UPDATED;
    return DS_ACCEL_OK;
}

static int32_t mock_graph_node_count(ds_accel_plugin_graph_t *graph, uint64_t *count_out,
                                     struct ds_accel_error *error)
{
    int32_t status = enter_graph(graph, "graph_node_count", error);

    if (status < 0) {
        return status;
    }
    if (count_out == NULL) {
        return mock_null(error, "graph_node_count", "count_out");
    }
    *count_out = graph->works.count;
    return DS_ACCEL_OK;
}

static void describe(const struct mock_work *work, char *text, size_t text_size)
{
    switch (work->kind) {
    case MOCK_WORK_COPY:
        snprintf(text, text_size, "copy %llu bytes", (unsigned long long)work->size_bytes);
        break;
    case MOCK_WORK_FILL:
        snprintf(text, text_size, "fill %llu bytes", (unsigned long long)work->size_bytes);
        break;
    case MOCK_WORK_TASK:
        snprintf(text, text_size, "host task");
        break;
    default:
        snprintf(text, text_size, "record event");
        break;
    }
}

static int32_t write_text(ds_accel_text_sink_t sink, void *user_data, const char *text)
{
    return sink(user_data, text, strlen(text));
}

static int32_t mock_graph_dump(ds_accel_plugin_graph_t *graph, ds_accel_text_sink_t sink,
                               void *user_data, struct ds_accel_error *error)
{
    int32_t status = enter_graph(graph, "graph_dump", error);

    if (status < 0) {
        return status;
    }
    if (sink == NULL) {
        return mock_null(error, "graph_dump", "sink");
    }
    status = write_text(sink, user_data, "digraph mock {\n");
    for (size_t i = 0; i < graph->works.count && status == DS_ACCEL_OK; i++) {
        char label[64];
        char line[128];

        describe(&graph->works.items[i], label, sizeof(label));
        snprintf(line, sizeof(line), "    n%zu [label=\"%s\"];\n", i, label);
        status = write_text(sink, user_data, line);
        if (status == DS_ACCEL_OK && i > 0) {
            snprintf(line, sizeof(line), "    n%zu -> n%zu;\n", i - 1, i);
            status = write_text(sink, user_data, line);
        }
    }
    if (status == DS_ACCEL_OK) {
        status = write_text(sink, user_data, "}\n");
    }
    if (status != DS_ACCEL_OK) {
        return plugin_fail(error, status < 0 ? status : DS_ACCEL_ERR_IO,
                           "graph_dump: the sink returned %d", status);
    }
    return DS_ACCEL_OK;
}

void mock_graph_fill(struct ds_accel_plugin *table)
{
    table->graph_capture_begin = mock_graph_capture_begin;
    table->graph_capture_end = mock_graph_capture_end;
    table->graph_capture_status = mock_graph_capture_status;
    table->graph_destroy = mock_graph_destroy;
    table->graph_instantiate = mock_graph_instantiate;
    table->graph_exec_destroy = mock_graph_exec_destroy;
    table->graph_launch = mock_graph_launch;
    table->graph_exec_update = mock_graph_exec_update;
    table->graph_node_count = mock_graph_node_count;
    table->graph_dump = mock_graph_dump;
}
