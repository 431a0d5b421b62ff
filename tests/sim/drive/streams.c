/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of the walk that uses streams: work in order, captured, on another device, through other
 * handles.
 */
#include "drive.h"

#include <stdatomic.h>
#include <string.h>

#define SIZE ((uint64_t)1 << 16)

static atomic_int tasks_accepted;
static atomic_int tasks_run;

static void count_task(void *user_data, int32_t status)
{
    (void)status;
    if (user_data != NULL) {
        atomic_fetch_add((atomic_int *)user_data, 1);
    }
}

static void queue_task(struct run *run, ds_accel_plugin_stream_t *stream)
{
    if (CALL(run, stream_host_task, stream, count_task, &tasks_run) == DS_ACCEL_OK) {
        atomic_fetch_add(&tasks_accepted, 1);
    }
}

int drive_tasks_have_run(void)
{
    return atomic_exchange(&tasks_run, 0) == atomic_exchange(&tasks_accepted, 0);
}

/* ---- streams -------------------------------------------------------------------------------- */

struct scene {
    ds_accel_plugin_stream_t *stream, *other;
    ds_accel_plugin_event_t *events[2];
    void *memory; /* device memory of 2 * SIZE bytes */
    unsigned char host[2][SIZE];
};

static int set_up(struct run *run, struct scene *scene, ds_accel_plugin_device_t *device)
{
    MAKE(run, stream_create, scene->stream, device, DS_ACCEL_STREAM_NON_BLOCKING, 0);
    MAKE(run, stream_create, scene->other, device, DS_ACCEL_STREAM_DEFAULT, 0);
    MAKE(run, event_create, scene->events[0], device, DS_ACCEL_EVENT_TIMING);
    MAKE(run, event_create, scene->events[1], device, DS_ACCEL_EVENT_TIMING);
    MAKE(run, mem_alloc, scene->memory, device, 2 * SIZE, 0, 0);
    return scene->stream != NULL && scene->other != NULL && scene->memory != NULL &&
           scene->events[0] != NULL && scene->events[1] != NULL;
}

/*
 * Destroys the streams after they are idle, unless waiting fails: how the plugin handles a busy
 * stream, and how often it queries the stream, differ from run to run, while call N of the vendor's
 * library must be the same.
 */
static void tear_down(struct run *run, struct scene *scene, ds_accel_plugin_device_t *device)
{
    RELEASE(run, device_synchronize, device, UINT64_MAX);
    DROP(run, event_destroy, scene->events[0]);
    DROP(run, event_destroy, scene->events[1]);
    DROP(run, stream_destroy, scene->stream);
    DROP(run, stream_destroy, scene->other);
    CALL(run, device_synchronize, device, UINT64_C(10000000000));
    if (scene->memory != NULL) {
        CALL(run, mem_free, device, scene->memory);
    }
}

/*
 * Queues copies up, copies within and fills on one stream; copies down on the other, after an event
 * of the first.
 */
static void queue_work(struct run *run, struct scene *scene)
{
    ds_accel_plugin_stream_t *stream = scene->stream;
    char *memory = scene->memory;

    drive_pattern(scene->host[0], SIZE, 2);
    CALL(run, event_record, scene->events[0], stream);
    CALL(run, mem_copy_async, stream, memory, scene->host[0], SIZE, DS_ACCEL_COPY_HOST_TO_DEVICE);
    CALL(run, mem_copy_async, stream, memory + SIZE, memory, SIZE, DS_ACCEL_COPY_DEVICE_TO_DEVICE);
    CALL(run, mem_fill_async, stream, memory, "abcd", 4, SIZE);
    CALL(run, mem_fill_async, stream, memory, "ab", 2, SIZE / 2);
    CALL(run, mem_fill_async, stream, memory + 1, "ab", 2, SIZE / 2);
    CALL(run, mem_fill_async, stream, memory, "a", 1, SIZE / 4);
    queue_task(run, stream);
    CALL(run, event_record, scene->events[1], stream);
    CALL(run, stream_wait_event, scene->other, scene->events[1]);
    CALL(run, mem_copy_async, scene->other, scene->host[1], memory + SIZE, SIZE,
         DS_ACCEL_COPY_DEVICE_TO_HOST);
}

static void use_stream(struct run *run, struct scene *scene)
{
    ds_accel_plugin_stream_t *stream = scene->stream;
    unsigned refused = run->refused;
    double elapsed = 0;

    queue_work(run, scene);
    CALL(run, stream_query, stream);
    CALL(run, event_query, scene->events[1]);
    CALL(run, event_synchronize, scene->events[1], UINT64_MAX);
    CALL(run, stream_synchronize, stream, UINT64_C(10000000000));
    CALL(run, stream_synchronize, scene->other, UINT64_MAX);
    CALL(run, event_elapsed_ms, scene->events[0], scene->events[1], &elapsed);
    CALL(run, device_synchronize, run->device, UINT64_MAX);
    drive_want(run, refused != run->refused || drive_is_pattern(scene->host[1], SIZE, 2),
               "copies of a stream");
    queue_task(run, stream); /* the wait may fail; the task must run in any case */
    CALL(run, stream_synchronize, stream, UINT64_MAX);
}

static void walk_stream(struct run *run)
{
    static struct scene scene;

    if (set_up(run, &scene, run->device)) {
        use_stream(run, &scene);
    }
    tear_down(run, &scene, run->device);
}

static void walk_async(struct run *run)
{
    ds_accel_plugin_stream_t *stream;
    void *pointer = NULL;

    MAKE(run, stream_create, stream, run->device, DS_ACCEL_STREAM_DEFAULT, 0);
    if (stream != NULL) {
        if (CALL(run, mem_alloc_async, stream, SIZE, 0, NULL, 0, &pointer) == DS_ACCEL_OK &&
            CALL(run, mem_free_async, stream, pointer, NULL, 0) != DS_ACCEL_OK) {
            CALL(run, mem_free, run->device, pointer);
        }
        CALL(run, stream_synchronize, stream, UINT64_MAX);
    }
    DROP(run, stream_destroy, stream);
}

static void use_graph(struct run *run, struct scene *scene, ds_accel_plugin_graph_t *graph)
{
    ds_accel_plugin_graph_exec_t *exec;
    uint64_t count = 0;
    uint32_t result = 0;

    MAKE(run, graph_instantiate, exec, graph, 0);
    if (exec != NULL) {
        CALL(run, graph_launch, exec, scene->stream);
        CALL(run, graph_launch, exec, scene->stream);
        CALL(run, stream_synchronize, scene->stream, UINT64_MAX);
        CALL(run, graph_exec_update, exec, graph, &result);
    }
    CALL(run, graph_node_count, graph, &count);
    CALL(run, device_synchronize, run->device, UINT64_MAX);
    DROP(run, graph_exec_destroy, exec);
}

static void walk_graph(struct run *run)
{
    static struct scene scene;
    ds_accel_plugin_graph_t *graph;
    unsigned refused = run->refused;
    uint32_t result = 0;

    if (!HAS(run, graph_capture_begin)) {
        return;
    }
    memset(scene.host[1], 0, SIZE);
    if (set_up(run, &scene, run->device) && CALL(run, graph_capture_begin, scene.stream,
                                                 DS_ACCEL_CAPTURE_THREAD_LOCAL) == DS_ACCEL_OK) {
        CALL(run, mem_fill_async, scene.stream, (char *)scene.memory + 1, "ab", 2, 4096);
        CALL(run, mem_copy_async, scene.stream, scene.host[1], (char *)scene.memory + 1, 4096,
             DS_ACCEL_COPY_DEVICE_TO_HOST);
        CALL(run, stream_host_task, scene.stream, count_task, NULL);
        CALL(run, graph_capture_status, scene.stream, &result);
        MAKE(run, graph_capture_end, graph, scene.stream);
        if (graph != NULL) {
            use_graph(run, &scene, graph);
            drive_want(run, refused != run->refused || memcmp(scene.host[1], "abab", 4) == 0,
                       "what a graph filled");
            DROP(run, graph_destroy, graph);
        }
    }
    tear_down(run, &scene, run->device);
}

/* ---- another device ------------------------------------------------------------------------- */

/* Copies down to the other device after an event of the first, and from there to the host. */
static void copy_over(struct run *run, struct scene *here, struct scene *there,
                      ds_accel_plugin_device_t *peer)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    unsigned refused = run->refused;
    int is_unified = CALL(run, backend_info, run->instance, &info) == DS_ACCEL_OK &&
                     (info.flags & DS_ACCEL_FLAG_UNIFIED_ADDRESSES) != 0;

    drive_pattern(here->host[0], SIZE, 3);
    CALL(run, mem_copy_async, here->stream, here->memory, here->host[0], SIZE,
         DS_ACCEL_COPY_HOST_TO_DEVICE);
    CALL(run, mem_copy_peer_async, here->stream, peer, there->memory, run->device, here->memory,
         SIZE);
    CALL(run, event_record, here->events[0], here->stream);
    CALL(run, stream_wait_event, there->stream, here->events[0]);
    CALL(run, mem_copy_async, there->stream, there->host[0], there->memory, SIZE,
         is_unified ? DS_ACCEL_COPY_INFER : DS_ACCEL_COPY_DEVICE_TO_HOST);
    CALL(run, mem_copy_async, there->stream, there->host[1], there->host[0], SIZE,
         DS_ACCEL_COPY_HOST_TO_HOST);
    CALL(run, stream_synchronize, here->stream, UINT64_MAX);
    CALL(run, stream_synchronize, there->stream, UINT64_MAX);
    drive_want(run, refused != run->refused || drive_is_pattern(there->host[1], SIZE, 3),
               "a copy by another device");
}

static void walk_peers(struct run *run)
{
    static struct scene here;
    static struct scene there;
    ds_accel_plugin_device_t *peer = NULL;
    uint32_t can = 0;

    if (CALL(run, device_open, run->instance, 1, &peer) != DS_ACCEL_OK) {
        return;
    }
    if (CALL(run, peer_can_access, run->device, peer, &can) == DS_ACCEL_OK && can == 1) {
        CALL(run, peer_enable, run->device, peer);
        CALL(run, peer_disable, run->device, peer);
    }
    if (set_up(run, &here, run->device) & set_up(run, &there, peer)) {
        copy_over(run, &here, &there, peer);
    }
    tear_down(run, &here, run->device);
    tear_down(run, &there, peer);
    run->table->device_close(peer);
}

/* ---- the vendor's handles ------------------------------------------------------------------- */

/* Wraps the plugin's own handles as if they were the program's. */
static void wrap_natives(struct run *run, struct scene *scene)
{
    const struct {
        uint32_t kind;
        const void *object;
    } things[] = {{DS_ACCEL_NATIVE_STREAM, scene->stream},
                  {DS_ACCEL_NATIVE_EVENT, scene->events[1]},
                  {DS_ACCEL_NATIVE_MEMORY, scene->memory}};
    void *wrapped[3] = {NULL, NULL, NULL};
    uint64_t native = 0;
    uint64_t offset = 0;

    for (int i = 0; i < 3; i++) {
        if (CALL(run, native_get, run->device, things[i].kind, things[i].object, &native,
                 &offset) == DS_ACCEL_OK) {
            MAKE(run, native_wrap, wrapped[i], run->device, things[i].kind, native);
        }
    }
    if (wrapped[0] != NULL && wrapped[1] != NULL) {
        CALL(run, stream_wait_event, wrapped[0], wrapped[1]);
        CALL(run, stream_query, wrapped[0]);
        CALL(run, stream_synchronize, wrapped[0], UINT64_MAX);
    }
    DROP(run, stream_destroy, wrapped[0]);
    DROP(run, event_destroy, wrapped[1]);
    if (wrapped[2] != NULL) {
        CALL(run, mem_free, run->device, wrapped[2]);
    }
}

static void walk_natives(struct run *run)
{
    static struct scene scene;
    ds_accel_plugin_device_t *again = NULL;
    uint64_t native = 0;
    uint64_t offset = 0;

    if (!HAS(run, native_wrap)) {
        return;
    }
    if (set_up(run, &scene, run->device)) {
        CALL(run, event_record, scene.events[1], scene.stream);
        wrap_natives(run, &scene);
    }
    tear_down(run, &scene, run->device);
    if (HAS(run, device_open_native) &&
        CALL(run, native_get, run->device, DS_ACCEL_NATIVE_CONTEXT, run->device, &native,
             &offset) == DS_ACCEL_OK &&
        CALL(run, device_open_native, run->instance, 0, native, &again) == DS_ACCEL_OK) {
        run->table->device_close(again);
    }
}

void drive_walk_streams(struct run *run)
{
    walk_stream(run);
    walk_async(run);
    walk_graph(run);
    if (run->device_count > 1) {
        walk_peers(run);
    }
    walk_natives(run);
}
