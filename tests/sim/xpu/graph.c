/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The graph extension of 1.17, whose functions are found by name. A graph must outlive its
 * executable graphs, and an executable graph its last launch.
 */
#include "shim.h"

#include <stdio.h>

struct graph {
    struct sim_graph *graph;
    atomic_uint exec_count;
};

struct exec {
    struct sim_graph *graph;
    struct graph *of;
    atomic_uint launch_count; /* launches in flight */
};

static ze_result_t zeCommandListBeginGraphCaptureExt(struct list *list, const void *pNext)
{
    ENTER();
    NEED_HANDLE(list);
    sim_handle_check(list, "list", __func__);
    if (pNext != NULL) {
        sim_misuse("%s: a pNext", __func__);
    }
    if (device_is_lost(list->device)) {
        return ZE_RESULT_ERROR_DEVICE_LOST;
    }
    return sim_capture_begin(list->stream, 2) ? ZE_RESULT_SUCCESS
                                              : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

static ze_result_t zeCommandListEndGraphCaptureExt(struct list *list, const void *pNext,
                                                   struct graph **graph)
{
    struct sim_graph *ended;
    struct graph *made;

    ENTER_RELEASE();
    NEED_HANDLE(list);
    NEED_POINTER(graph);
    sim_handle_check(list, "list", __func__);
    if (pNext != NULL) {
        sim_misuse("%s: a pNext", __func__);
    }
    if (sim_capture_status(list->stream) == SIM_CAPTURE_NONE) {
        return ZE_RESULT_ERROR_COMMAND_LIST_NOT_CAPTURING;
    }
    ended = sim_capture_end(list->stream);
    if (scripted != 0) {
        if (ended != NULL) {
            sim_graph_destroy(ended);
        }
        return (ze_result_t)scripted;
    }
    if (ended == NULL) {
        return ZE_RESULT_ERROR_GRAPH_CAPTURE_INVALIDATED;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        sim_graph_destroy(ended);
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    made->graph = ended;
    sim_handle_add(made, "graph");
    *graph = made;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t zeCommandListIsGraphCaptureEnabledExt(struct list *list)
{
    ENTER();
    NEED_HANDLE(list);
    sim_handle_check(list, "list", __func__);
    return sim_capture_status(list->stream) != SIM_CAPTURE_NONE ? ZE_RESULT_QUERY_TRUE
                                                                : ZE_RESULT_QUERY_FALSE;
}

static ze_result_t zeGraphInstantiateExt(struct graph *graph, const void *pNext, struct exec **exec)
{
    struct exec *made;

    ENTER();
    NEED_HANDLE(graph);
    NEED_POINTER(exec);
    sim_handle_check(graph, "graph", __func__);
    if (pNext != NULL) {
        sim_misuse("%s: a pNext", __func__);
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    made->graph = sim_graph_copy(graph->graph);
    made->of = graph;
    atomic_fetch_add(&graph->exec_count, 1);
    sim_handle_add(made, "executable-graph");
    *exec = made;
    return ZE_RESULT_SUCCESS;
}

static void launched(void *argument)
{
    atomic_fetch_sub(&((struct exec *)argument)->launch_count, 1);
}

static ze_result_t zeCommandListAppendGraphExt(struct list *list, struct exec *exec,
                                               const void *pNext, struct event *signal,
                                               uint32_t count, struct event **events)
{
    ze_result_t result;

    ENTER();
    NEED_HANDLE(list);
    NEED_HANDLE(exec);
    sim_handle_check(exec, "executable-graph", __func__);
    if (pNext != NULL) {
        sim_misuse("%s: a pNext", __func__);
    }
    result = begin_command(list, __func__);
    if (result != ZE_RESULT_SUCCESS) {
        return result;
    }
    result = wait_for(list, count, events, __func__);
    if (result == ZE_RESULT_SUCCESS && sim_graph_launch(exec->graph, list->stream) != 0) {
        result = ZE_RESULT_ERROR_DEVICE_LOST;
    }
    if (result == ZE_RESULT_SUCCESS) {
        atomic_fetch_add(&exec->launch_count, 1);
        sim_submit_step(list->stream, launched, exec);
        result = signal_behind(list, signal, true, __func__);
    }
    end_command(list);
    return result;
}

static ze_result_t zeExecutableGraphDestroyExt(struct exec *exec)
{
    ENTER_RELEASE();
    NEED_HANDLE(exec);
    sim_handle_check(exec, "executable-graph", __func__);
    if (atomic_load(&exec->launch_count) > 0) {
        sim_misuse("%s: a launch is not done", __func__);
    }
    sim_handle_remove(exec, "executable-graph", __func__);
    atomic_fetch_sub(&exec->of->exec_count, 1);
    sim_graph_destroy(exec->graph);
    free(exec);
    return (ze_result_t)scripted;
}

static ze_result_t zeGraphDestroyExt(struct graph *graph)
{
    ENTER_RELEASE();
    NEED_HANDLE(graph);
    sim_handle_check(graph, "graph", __func__);
    if (atomic_load(&graph->exec_count) > 0) {
        sim_misuse("%s: an executable graph of it lives", __func__);
    }
    sim_handle_remove(graph, "graph", __func__);
    sim_graph_destroy(graph->graph);
    free(graph);
    return (ze_result_t)scripted;
}

static ze_result_t zeGraphDumpContentsExt(struct graph *graph, const char *path, const void *pNext)
{
    FILE *file;

    ENTER();
    NEED_HANDLE(graph);
    NEED_POINTER(path);
    sim_handle_check(graph, "graph", __func__);
    if (pNext != NULL) {
        sim_misuse("%s: a pNext", __func__);
    }
    file = fopen(path, "we");
    if (file == NULL) {
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    }
    fprintf(file, "digraph graph_0 {\n");
    for (uint64_t i = 0; i < sim_graph_node_count(graph->graph); i++) {
        fprintf(file, "  node_%llu [label=\"%s\"];\n", (unsigned long long)i,
                sim_graph_node_kind(graph->graph, i));
    }
    fprintf(file, "}\n");
    fclose(file);
    return ZE_RESULT_SUCCESS;
}

void *graph_function(const char *name)
{
    static const struct {
        const char *name;
        void *function;
    } functions[] = {
        {"zeCommandListBeginGraphCaptureExt", (void *)zeCommandListBeginGraphCaptureExt},
        {"zeCommandListEndGraphCaptureExt", (void *)zeCommandListEndGraphCaptureExt},
        {"zeCommandListIsGraphCaptureEnabledExt", (void *)zeCommandListIsGraphCaptureEnabledExt},
        {"zeGraphInstantiateExt", (void *)zeGraphInstantiateExt},
        {"zeCommandListAppendGraphExt", (void *)zeCommandListAppendGraphExt},
        {"zeExecutableGraphDestroyExt", (void *)zeExecutableGraphDestroyExt},
        {"zeGraphDestroyExt", (void *)zeGraphDestroyExt},
        {"zeGraphDumpContentsExt", (void *)zeGraphDumpContentsExt},
    };

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (strcmp(functions[i].name, name) == 0) {
            return functions[i].function;
        }
    }
    return NULL;
}
