/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Graphs. A capture also records objects of the frame: host tasks and pattern buffers. They are in
 * a keep (vendor_task.c), to which the graph, its instances and its launches hold references.
 *
 * Some runtimes launch the graph itself and have no graph_instantiate(). There a graph can have one
 * instance at a time, which shares the runtime's object with the graph. The object is destroyed
 * when both the instance and the graph are destroyed.
 */
#include "vendor_frame.h"

#include <assert.h>

/* The frame's state of a graph (graph->frame) and of an instance (exec->frame). */
struct vendor_graph {
    struct vendor_keep *keep;
    struct shared_native *shared; /* NULL in an instance that has its own runtime object */
};

struct shared_native {
    atomic_uint references;
    uint32_t has_instance;
    void *native;
};

static void put_shared(ds_accel_plugin_device_t *device, struct shared_native *shared)
{
    assert(shared == NULL || atomic_load(&shared->references) > 0);
    if (shared != NULL && atomic_fetch_sub(&shared->references, 1) == 1) {
        VENDOR_DESTROY(device, vendor_backend.graph_destroy(device, shared->native));
        free(shared);
    }
}

/* ---- capture -------------------------------------------------------------------------------- */

static int32_t begin_capture(ds_accel_plugin_stream_t *stream, uint32_t mode, const char *slot,
                             struct ds_accel_error *error)
{
    int32_t status = vendor_keep_open(stream, mode, slot, error);

    if (status < 0) {
        return status;
    }
    VENDOR_WORK(stream->device, error, status,
                vendor_backend.capture_begin(stream->device, stream->native, mode, error));
    if (status < 0) {
        vendor_keep_put(vendor_keep_close(stream));
    }
    return status;
}

static int32_t vendor_graph_capture_begin(ds_accel_plugin_stream_t *stream, uint32_t mode,
                                          struct ds_accel_error *error)
{
    const char *slot = "graph_capture_begin";
    uint32_t is_capturing = 0;
    int32_t status = vendor_check_stream(stream, slot, error);

    if (status < 0) {
        return status;
    }
    if (mode > DS_ACCEL_CAPTURE_RELAXED) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: unknown mode %u", slot, mode);
    }
    if (stream->is_default) { /* rejected here because runtimes differ */
        return plugin_fail(error, DS_ACCEL_ERR_STATE, "%s: the default stream can't capture", slot);
    }
    status = vendor_stream_is_capturing(stream, &is_capturing, error);
    if (status == DS_ACCEL_OK && is_capturing) { /* the stream began or joined a capture */
        status = plugin_fail(error, DS_ACCEL_ERR_STATE, "%s: the stream captures already", slot);
    }
    if (status < 0) {
        return status;
    }
    vendor_waits_exclude();
    vendor_captures_lock();
    status = begin_capture(stream, mode, slot, error);
    vendor_captures_unlock();
    vendor_waits_unlock();
    return status;
}

/* Allocate a graph. This is done before the capture ends, so that the capture is not lost if memory
   is insufficient. */
static ds_accel_plugin_graph_t *make_graph(ds_accel_plugin_device_t *device)
{
    ds_accel_plugin_graph_t *graph = calloc(1, sizeof(*graph));
    struct vendor_graph *frame = calloc(1, sizeof(*frame));
    struct shared_native *shared = calloc(1, sizeof(*shared));

    if (graph == NULL || frame == NULL || shared == NULL) {
        free(graph);
        free(frame);
        free(shared);
        return NULL;
    }
    atomic_init(&shared->references, 1);
    frame->shared = shared;
    graph->device = device;
    graph->frame = frame;
    return graph;
}

static void free_unmade(ds_accel_plugin_graph_t *graph)
{
    struct vendor_graph *frame = graph->frame;

    free(frame->shared);
    free(frame);
    free(graph);
}

/* Return the runtime's DS_ACCEL_CAPTURING_* of the stream; NO if it cannot be queried. */
static uint32_t status_of(ds_accel_plugin_stream_t *stream)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    uint32_t capturing = DS_ACCEL_CAPTURING_NO;
    int32_t status = DS_ACCEL_OK;

    if (vendor_backend.capture_status != NULL) {
        VENDOR_WORK(
            stream->device, &ignored, status,
            vendor_backend.capture_status(stream->device, stream->native, &capturing, &ignored));
    }
    return status == DS_ACCEL_OK ? capturing : DS_ACCEL_CAPTURING_NO;
}

static int32_t end_capture(ds_accel_plugin_stream_t *stream, ds_accel_plugin_graph_t *graph,
                           struct ds_accel_error *error)
{
    struct vendor_graph *frame = graph->frame;
    int32_t status;

    VENDOR_WORK(stream->device, error, status,
                vendor_backend.capture_end(stream->device, stream->native, &graph->native, error));
    if (status < 0 && status_of(stream) != DS_ACCEL_CAPTURING_NO) {
        free_unmade(graph); /* the capture continues and can be ended later */
        return status;
    }
    frame->keep = vendor_keep_close(stream);
    if (status == DS_ACCEL_OK && graph->native == NULL) {
        status =
            plugin_fail(error, DS_ACCEL_ERR_STATE, "graph_capture_end: the capture was broken");
    }
    if (status < 0) {
        vendor_keep_put(frame->keep);
        free_unmade(graph);
        return status;
    }
    frame->shared->native = graph->native;
    return DS_ACCEL_OK;
}

/* Some runtimes lose a capture that the wrong thread tries to end: refuse before the call, so that
   the right thread can still end it. Any thread may end a broken capture, which is lost already. */
static int is_wrong_thread(ds_accel_plugin_stream_t *stream)
{
    const struct vendor_keep *keep = ((struct vendor_stream *)stream->frame)->capture;

    return vendor_backend.captures_end_by_thread && keep != NULL &&
           keep->mode != DS_ACCEL_CAPTURE_RELAXED && !pthread_equal(keep->thread, pthread_self()) &&
           status_of(stream) == DS_ACCEL_CAPTURING_YES;
}

static int32_t vendor_graph_capture_end(ds_accel_plugin_stream_t *stream,
                                        ds_accel_plugin_graph_t **graph_out,
                                        struct ds_accel_error *error)
{
    const char *slot = "graph_capture_end";
    const struct vendor_stream *state;
    ds_accel_plugin_graph_t *graph;
    int32_t status;

    if (stream == NULL || graph_out == NULL) {
        return vendor_null(error, slot, "the stream or graph_out");
    }
    state = stream->frame;
    if (state->capture == NULL && !stream->is_wrapped && !vendor_backend.tracks_captures) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE, "%s: the stream does not capture", slot);
    }
    if (is_wrong_thread(stream)) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "%s: another thread began this capture, and its mode is not relaxed",
                           slot);
    }
    graph = make_graph(stream->device);
    if (graph == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: no memory", slot);
    }
    status = end_capture(stream, graph, error);
    if (status == DS_ACCEL_OK) {
        *graph_out = graph;
    }
    return status;
}

static int32_t vendor_graph_capture_status(ds_accel_plugin_stream_t *stream, uint32_t *status_out,
                                           struct ds_accel_error *error)
{
    const char *slot = "graph_capture_status";
    uint32_t capturing = DS_ACCEL_CAPTURING_NO;
    int32_t status = vendor_check_stream(stream, slot, error);

    if (status < 0) {
        return status;
    }
    if (status_out == NULL) {
        return vendor_null(error, slot, "status_out");
    }
    VENDOR_WORK(stream->device, error, status,
                vendor_backend.capture_status(stream->device, stream->native, &capturing, error));
    if (status == DS_ACCEL_OK) {
        *status_out = capturing;
    }
    return status;
}

/* ---- graphs --------------------------------------------------------------------------------- */

static void vendor_graph_destroy(ds_accel_plugin_graph_t *graph)
{
    struct vendor_graph *frame;

    if (graph == NULL) {
        return;
    }
    frame = graph->frame;
    put_shared(graph->device, frame->shared);
    vendor_keep_put(frame->keep);
    free(frame);
    free(graph);
}

static int32_t check_graph(ds_accel_plugin_graph_t *graph, const char *slot,
                           struct ds_accel_error *error)
{
    return graph == NULL ? vendor_null(error, slot, "the graph")
                         : vendor_check_device(graph->device, slot, error);
}

/* Set the runtime's object of an instance: a new object, or the object of the graph. */
static int32_t instantiate(ds_accel_plugin_graph_t *graph, ds_accel_plugin_graph_exec_t *exec,
                           struct ds_accel_error *error)
{
    struct vendor_graph *from = graph->frame;
    struct vendor_graph *frame = exec->frame;
    int32_t status;

    if (vendor_backend.graph_instantiate != NULL) {
        VENDOR_CALL(
            graph->device, error, status,
            vendor_backend.graph_instantiate(graph->device, graph->native, &exec->native, error));
        return status;
    }
    if (from->shared->has_instance) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "graph_instantiate: this runtime has one instance of a graph");
    }
    from->shared->has_instance = 1;
    atomic_fetch_add(&from->shared->references, 1);
    frame->shared = from->shared;
    exec->native = graph->native;
    return DS_ACCEL_OK;
}

static int32_t vendor_graph_instantiate(ds_accel_plugin_graph_t *graph, uint32_t flags,
                                        ds_accel_plugin_graph_exec_t **exec_out,
                                        struct ds_accel_error *error)
{
    ds_accel_plugin_graph_exec_t *exec;
    struct vendor_graph *frame;
    int32_t status = check_graph(graph, "graph_instantiate", error);

    if (status == DS_ACCEL_OK) {
        status = vendor_check_flags(flags, 0, "graph_instantiate", error);
    }
    if (status < 0) {
        return status;
    }
    if (exec_out == NULL) {
        return vendor_null(error, "graph_instantiate", "exec_out");
    }
    exec = calloc(1, sizeof(*exec));
    frame = calloc(1, sizeof(*frame));
    if (exec == NULL || frame == NULL) {
        free(exec);
        free(frame);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "graph_instantiate: no memory");
    }
    exec->device = graph->device;
    exec->frame = frame;
    status = instantiate(graph, exec, error);
    if (status < 0) {
        free(frame);
        free(exec);
        return status;
    }
    frame->keep = ((struct vendor_graph *)graph->frame)->keep;
    vendor_keep_get(frame->keep);
    *exec_out = exec;
    return DS_ACCEL_OK;
}

/* ---- instances ------------------------------------------------------------------------------ */

/* Wait for the instance's launches before its keep is released. With host tasks no wait is needed:
   each launch holds the keep until a host task reports its end. A keep without objects needs no
   wait either, and a lost device runs no launch. */
static void wait_for_launches(ds_accel_plugin_device_t *device, struct vendor_keep *keep)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    int is_complete;

    if (vendor_backend.stream_host_task == NULL && vendor_backend.device_synchronize != NULL &&
        !vendor_keep_is_empty(keep) && !vendor_is_lost(device)) {
        vendor_device_wait(device, "graph_exec_destroy", &is_complete, &ignored);
    }
}

static void vendor_graph_exec_destroy(ds_accel_plugin_graph_exec_t *exec)
{
    struct vendor_graph *frame;

    if (exec == NULL) {
        return;
    }
    frame = exec->frame;
    wait_for_launches(exec->device, frame->keep);
    if (frame->shared != NULL) {
        frame->shared->has_instance = 0;
        put_shared(exec->device, frame->shared);
    } else {
        VENDOR_DESTROY(exec->device, vendor_backend.graph_exec_destroy(exec->device, exec->native));
    }
    vendor_keep_put(frame->keep);
    free(frame);
    free(exec);
}

static int goes_with(const ds_accel_plugin_graph_exec_t *exec,
                     const ds_accel_plugin_device_t *device)
{
    return exec->device == device ||
           (vendor_backend.tracks_captures &&
            (exec->device->instance == device->instance || vendor_backend.mixes_instances));
}

/* Launch the instance. Its keep is held until the launch is complete; if the launch is captured,
   the graph that contains the launch holds the keep. In a runtime without host tasks the instance
   alone holds the keep: see wait_for_launches(). */
static int32_t launch(ds_accel_plugin_graph_exec_t *exec, ds_accel_plugin_stream_t *stream,
                      uint32_t is_capturing, struct ds_accel_error *error)
{
    const struct vendor_graph *frame = exec->frame;
    int needs_keep = !vendor_keep_is_empty(frame->keep);
    int32_t status = DS_ACCEL_OK;

    if (needs_keep && is_capturing) {
        status = vendor_keep_in_capture(frame->keep, stream, error);
    }
    if (status == DS_ACCEL_OK) {
        VENDOR_WORK(
            stream->device, error, status,
            vendor_backend.graph_launch(stream->device, exec->native, stream->native, error));
    }
    if (status == DS_ACCEL_OK && needs_keep && !is_capturing &&
        vendor_backend.stream_host_task != NULL) {
        status = vendor_keep_until_passed(frame->keep, stream, error);
    }
    return status;
}

static int32_t vendor_graph_launch(ds_accel_plugin_graph_exec_t *exec,
                                   ds_accel_plugin_stream_t *stream, struct ds_accel_error *error)
{
    const char *slot = "graph_launch";
    uint32_t is_capturing = 0;
    int32_t status = vendor_check_stream(stream, slot, error);

    if (status < 0) {
        return status;
    }
    if (exec == NULL && vendor_backend.tracks_captures) {
        return vendor_null(error, slot, "exec");
    }
    if (exec == NULL || !goes_with(exec, stream->device)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: the graph is NULL or of another device", slot);
    }
    status = vendor_stream_is_capturing(stream, &is_capturing, error);
    if (status == DS_ACCEL_OK && is_capturing && vendor_backend.captures_no_launches) {
        status = plugin_fail(error, DS_ACCEL_ERR_STATE,
                             "%s: the stream captures, and a graph can't contain another's launch",
                             slot);
    }
    return status < 0 ? status : launch(exec, stream, is_capturing, error);
}

static int32_t vendor_graph_exec_update(ds_accel_plugin_graph_exec_t *exec,
                                        ds_accel_plugin_graph_t *graph, uint32_t *result_out,
                                        struct ds_accel_error *error)
{
    const char *slot = "graph_exec_update";
    const struct vendor_graph *from;
    struct vendor_graph *frame;
    uint32_t result = DS_ACCEL_GRAPH_REBUILD_NEEDED;
    int32_t status = check_graph(graph, slot, error);

    if (status < 0) {
        return status;
    }
    if (exec == NULL || result_out == NULL) {
        return vendor_null(error, slot, "exec or result_out");
    }
    if (goes_with(exec, graph->device)) {
        VENDOR_CALL(exec->device, error, status,
                    vendor_backend.graph_exec_update(exec->device, exec->native, graph->native,
                                                     &result, error));
    }
    if (status < 0) {
        return status;
    }
    if (result == DS_ACCEL_GRAPH_UPDATED) {
        from = graph->frame;
        frame = exec->frame;
        vendor_keep_get(from->keep);
        wait_for_launches(exec->device, frame->keep);
        vendor_keep_put(frame->keep);
        frame->keep = from->keep;
    }
    *result_out = result;
    return DS_ACCEL_OK;
}

/* ---- queries -------------------------------------------------------------------------------- */

static int32_t vendor_graph_node_count(ds_accel_plugin_graph_t *graph, uint64_t *count_out,
                                       struct ds_accel_error *error)
{
    uint64_t count = 0;
    int32_t status = check_graph(graph, "graph_node_count", error);

    if (status < 0) {
        return status;
    }
    if (count_out == NULL) {
        return vendor_null(error, "graph_node_count", "count_out");
    }
    VENDOR_WORK(graph->device, error, status,
                vendor_backend.graph_node_count(graph->device, graph->native, &count, error));
    if (status == DS_ACCEL_OK) {
        *count_out = count;
    }
    return status;
}

/* A sink that is not called again after it returned non-zero. */
struct guarded_sink {
    ds_accel_text_sink_t sink;
    void *user_data;
    int32_t answer;
};

static int32_t pass_on(void *user_data, const char *text, uint64_t text_bytes)
{
    struct guarded_sink *guarded = user_data;

    if (guarded->answer == DS_ACCEL_OK) {
        guarded->answer = guarded->sink(guarded->user_data, text, text_bytes);
    }
    return guarded->answer;
}

static int32_t vendor_graph_dump(ds_accel_plugin_graph_t *graph, ds_accel_text_sink_t sink,
                                 void *user_data, struct ds_accel_error *error)
{
    struct guarded_sink guarded = {sink, user_data, DS_ACCEL_OK};
    int32_t status = check_graph(graph, "graph_dump", error);

    if (status < 0) {
        return status;
    }
    if (sink == NULL) {
        return vendor_null(error, "graph_dump", "the sink");
    }
    VENDOR_WORK(graph->device, error, status,
                vendor_backend.graph_dump(graph->device, graph->native, pass_on, &guarded, error));
    if (guarded.answer != DS_ACCEL_OK && !vendor_backend.tracks_captures) {
        return plugin_fail(error, guarded.answer < 0 ? guarded.answer : DS_ACCEL_ERR_IO,
                           "graph_dump: the sink returned %d", guarded.answer);
    }
    return status;
}

void vendor_graph_fill(struct ds_accel_plugin *table)
{
    const struct vendor_backend *backend = &vendor_backend;

    if (backend->capture_begin == NULL || backend->capture_end == NULL ||
        backend->graph_launch == NULL || backend->graph_destroy == NULL) {
        return;
    }
    table->graph_capture_begin = vendor_graph_capture_begin;
    table->graph_capture_end = vendor_graph_capture_end;
    table->graph_capture_status = backend->capture_status != NULL ? vendor_graph_capture_status
                                                                  : NULL;
    table->graph_destroy = vendor_graph_destroy;
    table->graph_instantiate = vendor_graph_instantiate;
    table->graph_exec_destroy = vendor_graph_exec_destroy;
    table->graph_launch = vendor_graph_launch;
    table->graph_exec_update = backend->graph_exec_update != NULL ? vendor_graph_exec_update : NULL;
    table->graph_node_count = backend->graph_node_count != NULL ? vendor_graph_node_count : NULL;
    table->graph_dump = backend->graph_dump != NULL ? vendor_graph_dump : NULL;
}
