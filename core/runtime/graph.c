/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Graphs, which are captured once and replayed many times. As programs written for DeepSpeed
 * expect, one handle contains both the captured graph and its executable form; some runtimes have
 * one object for both.
 */
#include "base/fork.h"
#include "base/text.h"
#include "host/context.h"
#include "host/layers.h"
#include "host/registry.h"
#include "runtime/allocator/allocator.h"
#include "runtime/caching.h"
#include "runtime/handle.h"

#include <assert.h>

static struct ds_accel__graph *check(ds_accel_graph_t *graph, const char *call)
{
    if (!ds_accel__handle_is_live(graph)) {
        ds_accel__refuse(call, "graph", graph);
        return NULL;
    }
    if (ds_accel__device_fork_check(((struct ds_accel__graph *)graph)->child.device) < 0) {
        return NULL;
    }
    return (struct ds_accel__graph *)graph;
}

/* Return the status for a call for which check() returned NULL: ERR_INVALID if the graph is NULL or
 * destroyed; ERR_STATE in a forked child or in a host task. */
static int32_t refused(const ds_accel_graph_t *graph)
{
    return ds_accel__handle_is_live(graph) ? DS_ACCEL_ERR_STATE : DS_ACCEL_ERR_INVALID;
}

int32_t ds_accel_graph_create(ds_accel_device_t *device, ds_accel_graph_t **graph_out)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, "graph_create");
    struct ds_accel__graph *graph;
    int32_t status;

    if (ours == NULL || graph_out == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID
                            : ds_accel__refuse("graph_create", "output", NULL);
    }
    status = ds_accel__device_fork_check(ours);
    if (status < 0) {
        return status;
    }
    if (ds_accel__slot_is_absent(device->table,
                                 offsetof(struct ds_accel_plugin, graph_capture_begin))) {
        return ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED, "%s has no graphs", ours->candidate->name);
    }
    graph = ds_accel__handle_take(DS_ACCEL__HANDLE_GRAPH, ours);
    if (graph == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    graph->table = device->table;
    pthread_mutex_init(&graph->lock, NULL);
    ds_accel__child_add(&graph->child);
    *graph_out = (ds_accel_graph_t *)graph;
    return DS_ACCEL_OK;
}

/*
 * If the graph is replayed on a stream that is not its capture stream, record an event at the end
 * of the replay: when the graph is destroyed, its memory is freed in the order of the capture
 * stream, and the replay may still use the memory then. Launches of one graph run in order, so one
 * event for the latest replay is enough. The caller holds graph->lock.
 */
static int32_t note_replay(struct ds_accel__graph *graph, const struct ds_accel__stream *stream)
{
    const struct ds_accel_plugin *table = graph->table;
    ds_accel_plugin_device_t *device = graph->child.device->abi.handle;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = DS_ACCEL_OK;

    assert(stream->child.device == graph->child.device);
    if (graph->memory == NULL || stream->child.id == graph->capturing_id) {
        return DS_ACCEL_OK;
    }
    if (graph->replayed == NULL) {
        status = table->event_create(device, 0, &graph->replayed, &error);
    }
    if (status == DS_ACCEL_OK && graph->replayed != NULL &&
        table->event_record(graph->replayed, stream->abi.handle, &error) == DS_ACCEL_OK) {
        graph->is_replaying = true;
        return DS_ACCEL_OK;
    }
    /* no event marks the end of the replay, so this call waits for the replay */
    status = table->stream_synchronize(stream->abi.handle, UINT64_MAX, &error);
    return status < 0 && status != DS_ACCEL_ERR_UNSUPPORTED ? ds_accel__fail(status, &error)
                                                            : DS_ACCEL_OK;
}

/* Wait for the replay that note_replay() recorded. If the wait fails, is_replaying stays set. The
 * caller holds graph->lock. */
static void wait_for_replay(struct ds_accel__graph *graph)
{
    const struct ds_accel__device *device = graph->child.device;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status;
    char text[400];

    if (!graph->is_replaying) {
        return;
    }
    ds_accel__layers_own_begin();
    status = graph->table->event_synchronize(graph->replayed, UINT64_MAX, &error);
    ds_accel__layers_own_end();
    graph->is_replaying = status != DS_ACCEL_OK;
    if (graph->is_replaying) {
        ds_accel__describe(status, &error, text, sizeof(text));
        ds_accel__log(&device->context->log, "graph", DS_ACCEL_LOG_WARN,
                      "device %u keeps a graph's memory until it is closed, because the end of the "
                      "latest replay is unknown: %s",
                      device->index, text);
    }
}

/* Destroy what the graph contains: the captured graph, its executable form, and its reference to
 * the memory pool. If is_replaying is still set, that reference is not released, because a replay
 * may still use the memory. The caller holds graph->lock and has called wait_for_replay(). */
static void drop(struct ds_accel__graph *graph)
{
    graph->table->graph_exec_destroy(graph->exec);
    graph->table->graph_destroy(graph->captured);
    graph->exec = NULL;
    graph->captured = NULL;
    if (graph->memory != NULL) { /* the memory is released after the graph that uses it */
        if (!graph->is_replaying) {
            ds_accel__private_put(graph->child.device->allocator, graph->memory);
        }
        graph->memory = NULL;
        graph->is_replaying = false;
    }
}

/* Whether the capturing stream still exists. The caller holds graph->lock, and also device->lock,
 * which prevents the destruction of the stream meanwhile. */
static bool has_stream(const struct ds_accel__graph *graph)
{
    return __atomic_load_n(&graph->capturing->child.id, __ATOMIC_RELAXED) == graph->capturing_id;
}

/* End the capture and discard its graph. The caller holds graph->lock. */
static void cancel(struct ds_accel__graph *graph)
{
    struct ds_accel__device *device = graph->child.device;

    if (graph->capturing != NULL) {
        pthread_mutex_lock(&device->lock);
        if (has_stream(graph) && !ds_accel__capture_drop(graph->capturing)) {
            ds_accel__capture_release_arena(graph->capturing);
        } else if (has_stream(graph)) {
            /* The runtime did not end the capture, so the stream allocates from this pool until the
             * stream is destroyed: the graph's reference to the pool is not released. */
            graph->memory = NULL;
            ds_accel__log(&device->context->log, "graph", DS_ACCEL_LOG_WARN,
                          "device %u keeps the memory of a graph that was destroyed: its capture "
                          "goes on until its stream is destroyed",
                          device->index);
        }
        pthread_mutex_unlock(&device->lock);
    }
    graph->capturing = NULL;
}

void ds_accel__graph_destroy(struct ds_accel__graph *graph)
{
    if (!ds_accel__child_remove(&graph->child)) {
        return;
    }
    pthread_mutex_lock(&graph->lock);
    cancel(graph);
    wait_for_replay(graph);
    drop(graph);
    graph->table->event_destroy(graph->replayed);
    pthread_mutex_unlock(&graph->lock);
    pthread_mutex_destroy(&graph->lock);
    ds_accel__handle_put(DS_ACCEL__HANDLE_GRAPH, graph);
}

void ds_accel_graph_destroy(ds_accel_graph_t *graph)
{
    if (ds_accel__handle_is_live(graph) &&
        ds_accel__device_lets_end(((struct ds_accel__graph *)graph)->child.device,
                                  "graph_destroy")) {
        ds_accel__graph_destroy((struct ds_accel__graph *)graph);
    }
}

/* Return the pool that a capture allocates from, with a reference for the graph. pool NULL: a new
 * private pool. */
static int32_t get_memory(struct ds_accel__device *device, ds_accel_pool_t *pool,
                          struct ds_accel__private **memory_out)
{
    struct ds_accel__pool *ours = (struct ds_accel__pool *)pool;
    struct ds_accel__allocator *allocator;
    int32_t status = ds_accel__device_allocator(device, &allocator);

    if (status < 0) {
        return status;
    }
    if (pool == NULL) {
        *memory_out = ds_accel__private_create(allocator);
        return *memory_out != NULL ? DS_ACCEL_OK : DS_ACCEL_ERR_NO_MEMORY;
    }
    if (!ds_accel__handle_is_live(pool)) {
        return ds_accel__refuse("graph_capture_begin", "pool", pool);
    }
    if (ours->child.device != device) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "graph_capture_begin: the pool is of device %u, not %u",
                               ours->child.device->index, device->index);
    }
    ds_accel__private_get(allocator, ours->memory);
    *memory_out = ours->memory;
    return DS_ACCEL_OK;
}

/* Begin a capture on the stream. The caller holds graph->lock. */
static int32_t begin_capture(struct ds_accel__graph *graph, struct ds_accel__stream *stream,
                             struct ds_accel__private *memory, uint32_t mode)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel__arena *arena = NULL;
    uint32_t process;
    int32_t status;

    if (graph->capturing != NULL && has_stream(graph)) {
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "graph_capture_begin: the graph is being captured already");
    }
    /* this wait comes before the capture, because a wait might break the capture */
    wait_for_replay(graph);
    status = ds_accel__stream_arena(stream, &arena);
    if (status < 0) {
        return status;
    }
    /* The allocator enters its capture mode before the stream begins to capture, because events
     * that the allocator records on a capturing stream would be captured. */
    if (!ds_accel__allocator_capture_begin(arena, memory)) {
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "graph_capture_begin: the stream captures already");
    }
    process = ds_accel__captures_begin();
    status = graph->table->graph_capture_begin(stream->abi.handle, mode, &error);
    ds_accel__captures_begun(stream, process, status >= 0);
    if (status < 0) {
        ds_accel__allocator_capture_end(arena);
        return ds_accel__fail(status, &error);
    }
    drop(graph);
    graph->capturing = stream;
    graph->capturing_id = stream->child.id;
    assert(graph->memory == NULL && graph->captured == NULL); /* drop() has cleared both */
    graph->memory = memory;
    return DS_ACCEL_OK;
}

int32_t ds_accel_graph_capture_begin(ds_accel_graph_t *graph, ds_accel_stream_t *stream,
                                     ds_accel_pool_t *pool, uint32_t mode)
{
    struct ds_accel__graph *ours = check(graph, "graph_capture_begin");
    struct ds_accel__private *memory = NULL;
    struct ds_accel__stream *queue;
    int32_t status;

    if (ours == NULL) {
        return refused(graph);
    }
    if (stream == NULL) {
        return ds_accel__refuse("graph_capture_begin", "stream", NULL);
    }
    queue = ds_accel__stream_of(ours->child.device, stream, "graph_capture_begin");
    if (queue == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    status = get_memory(ours->child.device, pool, &memory);
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&ours->lock);
    status = begin_capture(ours, queue, memory, mode);
    pthread_mutex_unlock(&ours->lock);
    if (status < 0) {
        ds_accel__private_put(ours->child.device->allocator, memory);
    }
    return status;
}

/* End the capture. If the runtime does not end it, the graph stays in capture. The caller holds
 * graph->lock. */
static int32_t end_capture(struct ds_accel__graph *graph)
{
    struct ds_accel__device *device = graph->child.device;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status;

    if (graph->capturing == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "graph_capture_end: the graph is not being captured");
    }
    pthread_mutex_lock(&device->lock);
    if (!has_stream(graph)) {
        pthread_mutex_unlock(&device->lock);
        graph->capturing = NULL;
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "graph_capture_end: the stream was destroyed while it captured");
    }
    status =
        graph->table->graph_capture_end(graph->capturing->abi.handle, &graph->captured, &error);
    if (!ds_accel__capture_note_end(graph->capturing, status)) {
        assert(graph->capturing->arena != NULL);
        ds_accel__allocator_capture_end(graph->capturing->arena);
        graph->capturing = NULL;
    }
    pthread_mutex_unlock(&device->lock);
    return status < 0 ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
}

int32_t ds_accel_graph_capture_end(ds_accel_graph_t *graph)
{
    struct ds_accel__graph *ours = check(graph, "graph_capture_end");
    int32_t status;

    if (ours == NULL) {
        return refused(graph);
    }
    pthread_mutex_lock(&ours->lock);
    status = end_capture(ours);
    pthread_mutex_unlock(&ours->lock);
    return status;
}

/* Check that the graph has been captured. The caller holds graph->lock. */
static int32_t check_captured(const struct ds_accel__graph *graph, const char *call)
{
    if (graph->capturing != NULL) {
        return ds_accel__error(DS_ACCEL_ERR_STATE, "%s: the graph is still being captured", call);
    }
    if (graph->captured == NULL && graph->exec == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_STATE, "%s: nothing was captured", call);
    }
    return DS_ACCEL_OK;
}

/* Make the executable graph if there is none. The caller holds graph->lock. */
static int32_t instantiate(struct ds_accel__graph *graph)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status;

    if (graph->exec != NULL) {
        return DS_ACCEL_OK;
    }
    status = graph->table->graph_instantiate(graph->captured, 0, &graph->exec, &error);
    return status < 0 ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
}

int32_t ds_accel_graph_instantiate(ds_accel_graph_t *graph)
{
    struct ds_accel__graph *ours = check(graph, "graph_instantiate");
    int32_t status;

    if (ours == NULL) {
        return refused(graph);
    }
    pthread_mutex_lock(&ours->lock);
    status = check_captured(ours, "graph_instantiate");
    status = status < 0 ? status : instantiate(ours);
    pthread_mutex_unlock(&ours->lock);
    return status;
}

int32_t ds_accel_graph_replay(ds_accel_graph_t *graph, ds_accel_stream_t *stream)
{
    struct ds_accel__graph *ours = check(graph, "graph_replay");
    struct ds_accel__stream *queue;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status;

    if (ours == NULL) {
        return refused(graph);
    }
    queue = ds_accel__stream_of(ours->child.device, stream, "graph_replay");
    if (queue == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    pthread_mutex_lock(&ours->lock);
    status = check_captured(ours, "graph_replay");
    status = status < 0 ? status : instantiate(ours);
    if (status >= 0) {
        status = ours->table->graph_launch(ours->exec, queue->abi.handle, &error);
        status = status < 0 ? ds_accel__fail(status, &error) : note_replay(ours, queue);
    }
    pthread_mutex_unlock(&ours->lock);
    return status;
}

int32_t ds_accel_graph_node_count(ds_accel_graph_t *graph, uint64_t *count_out)
{
    struct ds_accel__graph *ours = check(graph, "graph_node_count");
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status;

    if (ours == NULL || count_out == NULL) {
        return ours == NULL ? refused(graph) : ds_accel__refuse("graph_node_count", "output", NULL);
    }
    pthread_mutex_lock(&ours->lock);
    status = check_captured(ours, "graph_node_count");
    if (status >= 0) {
        status = ours->table->graph_node_count(ours->captured, count_out, &error);
        status = status < 0 ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
    }
    pthread_mutex_unlock(&ours->lock);
    return status;
}

static int32_t collect(void *user_data, const char *text, uint64_t text_bytes)
{
    struct ds_accel__text *all = user_data;

    ds_accel__text_add_bytes(all, text, (size_t)text_bytes);
    return all->failed ? DS_ACCEL_ERR_NO_MEMORY : DS_ACCEL_OK;
}

int32_t ds_accel_graph_dump(ds_accel_graph_t *graph, char **text_out)
{
    struct ds_accel__graph *ours = check(graph, "graph_dump");
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel__text text = {0};
    int32_t status;

    if (ours == NULL || text_out == NULL) {
        return ours == NULL ? refused(graph) : ds_accel__refuse("graph_dump", "output", NULL);
    }
    pthread_mutex_lock(&ours->lock);
    status = check_captured(ours, "graph_dump");
    if (status >= 0) {
        status = ours->table->graph_dump(ours->captured, collect, &text, &error);
        status = status < 0 ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
    }
    pthread_mutex_unlock(&ours->lock);
    if (status < 0) {
        ds_accel__text_clear(&text);
        return status;
    }
    *text_out = ds_accel__text_take(&text);
    return *text_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}
