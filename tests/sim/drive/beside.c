/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Calls on other objects while a stream captures: they work, and the capture goes on. */
#include "drive.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static unsigned char page[8192]; /* to be registered */

/* Makes a graph of one fill, on a stream that does not capture. */
static ds_accel_plugin_graph_t *make_graph(struct run *run, unsigned char byte)
{
    ds_accel_plugin_graph_t *graph = NULL;

    if (CALL(run, graph_capture_begin, run->two, DS_ACCEL_CAPTURE_RELAXED) == DS_ACCEL_OK) {
        CALL(run, mem_fill_async, run->two, run->second, &byte, 1, BYTES);
        CALL(run, graph_capture_end, run->two, &graph);
    }
    return graph;
}

static void use_memory(struct run *run)
{
    void *memory = NULL;

    if (CALL(run, mem_alloc, run->device, BYTES, 0, 0, &memory) == DS_ACCEL_OK) {
        RELEASE(run, mem_free, run->device, memory);
    }
    if (HAS(run, mem_alloc_async) &&
        CALL(run, mem_alloc_async, run->two, BYTES, 0, NULL, 0, &memory) == DS_ACCEL_OK) {
        RELEASE(run, mem_free_async, run->two, memory, NULL, 0);
    }
    if (HAS(run, mem_trim)) {
        CALL(run, mem_trim, run->device, 0);
    }
    if (CALL(run, mem_alloc_pinned, run->device, BYTES, 0, 0, &memory) == DS_ACCEL_OK) {
        RELEASE(run, mem_free_pinned, run->device, memory);
    }
    if (HAS(run, mem_register) &&
        CALL(run, mem_register, run->device, page, sizeof(page), 0) == DS_ACCEL_OK) {
        RELEASE(run, mem_unregister, run->device, page);
    }
}

static void use_streams(struct run *run)
{
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_event_t *event = NULL;

    if (CALL(run, stream_create, run->device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &stream) < 0 ||
        CALL(run, event_create, run->device, 0, &event) < 0) {
        DROP(run, stream_destroy, stream);
        return;
    }
    CALL(run, event_record, event, run->two);
    CALL(run, stream_wait_event, stream, event);
    CALL(run, event_synchronize, event, UINT64_MAX);
    drive_want(run, ASK(run, event_query, event) == DS_ACCEL_OK, "the event was waited for");
    CALL(run, stream_synchronize, stream, UINT64_MAX);
    drive_want(run, ASK(run, stream_query, stream) == DS_ACCEL_OK, "the stream was waited for");
    DROP(run, event_destroy, event);
    DROP(run, stream_destroy, stream);
}

static void use_graphs(struct run *run, ds_accel_plugin_graph_t *first,
                       ds_accel_plugin_graph_t *second)
{
    ds_accel_plugin_graph_exec_t *exec = NULL;
    uint32_t result = 0;

    if (CALL(run, graph_instantiate, first, 0, &exec) < 0) {
        return;
    }
    CALL(run, graph_launch, exec, run->two);
    if (HAS(run, graph_exec_update)) {
        CALL(run, graph_exec_update, exec, second, &result);
    }
    CALL(run, stream_synchronize, run->two, UINT64_MAX);
    DROP(run, graph_exec_destroy, exec);
}

/* A wait for the device includes the work of other streams. */
static void wait_for_device(struct run *run)
{
    volatile int *count = &run->task_count;
    int before = *count;

    if (HAS(run, stream_host_task)) {
        CALL(run, stream_host_task, run->two, drive_count, run);
    }
    if (CALL(run, device_synchronize, run->device, UINT64_MAX) == DS_ACCEL_OK) {
        drive_want(run, !HAS(run, stream_host_task) || *count == before + 1,
                   "a wait for the device beside a capture waits for other streams");
    }
}

struct beside {
    struct run run;
    ds_accel_plugin_graph_t *graphs[2];
};

static void *call_all(void *given)
{
    struct beside *beside = given;
    struct run *run = &beside->run;

    use_memory(run);
    use_streams(run);
    use_graphs(run, beside->graphs[0], beside->graphs[1]);
    wait_for_device(run);
    if (HAS(run, profiler_start)) {
        CALL(run, profiler_start, run->instance);
        CALL(run, profiler_stop, run->instance);
    }
    return NULL;
}

/* Calls everything by this thread, then by another one. */
static void call_beside(struct run *run, ds_accel_plugin_graph_t *const *graphs)
{
    for (int i = 0; i < 2; i++) {
        struct beside beside = {.run = *run, .graphs = {graphs[0], graphs[1]}};
        pthread_t thread;

        beside.run.passed = beside.run.failed = beside.run.refused = beside.run.missing = 0;
        if (i == 0) {
            call_all(&beside);
        } else if (pthread_create(&thread, NULL, call_all, &beside) == 0) {
            pthread_join(thread, NULL);
        } else {
            abort();
        }
        drive_add(run, &beside.run);
    }
}

/* Another instance, which has no capture of its own. */
static void use_another_instance(struct run *run)
{
    struct run other = *run;
    void *memory = NULL;

    other.passed = other.failed = other.refused = other.missing = 0;
    if (CALL(&other, init, drive_host(run->table->name), &other.instance) == DS_ACCEL_OK) {
        if (CALL(&other, device_open, other.instance, 0, &other.device) == DS_ACCEL_OK) {
            CALL(&other, device_synchronize, other.device, UINT64_MAX);
            CALL(&other, device_synchronize, other.device, UINT64_C(60000000000));
            if (CALL(&other, mem_alloc, other.device, BYTES, 0, 0, &memory) == DS_ACCEL_OK) {
                RELEASE(&other, mem_free, other.device, memory);
            }
            other.table->device_close(other.device);
        }
        other.table->shutdown(other.instance);
    }
    drive_add(run, &other);
}

/*
 * A launch into the capture becomes part of it, or is refused; it does not run now, and the capture
 * goes on in any case. The graph fills run->second.
 */
static void launch_into(struct run *run, ds_accel_plugin_graph_exec_t *exec)
{
    const unsigned char byte = 0x77;
    int32_t status;

    CALL(run, mem_fill_async, run->two, run->second, &byte, 1, BYTES);
    CALL(run, stream_synchronize, run->two, UINT64_MAX);
    status = ASK(run, graph_launch, exec, run->one);
    drive_want(run, status == DS_ACCEL_OK || status == DS_ACCEL_ERR_STATE,
               "a launch into a capture");
    CALL(run, device_synchronize, run->device, UINT64_MAX);
    CALL(run, mem_copy_async, run->two, run->pinned, run->second, BYTES,
         DS_ACCEL_COPY_DEVICE_TO_HOST);
    CALL(run, stream_synchronize, run->two, UINT64_MAX);
    drive_want(run, run->pinned[0] == byte, "a launch into a capture does not run");
}

static void capture_beside(struct run *run, uint32_t mode, ds_accel_plugin_graph_t *const *graphs)
{
    const unsigned char byte = 0x3c;
    uint32_t capturing = DS_ACCEL_CAPTURING_NO;
    ds_accel_plugin_graph_exec_t *exec = NULL;

    /* Some runtimes have one instance of a graph; use_graphs() has that of the other one. */
    if (CALL(run, graph_instantiate, graphs[1], 0, &exec) < 0) {
        return;
    }
    if (CALL(run, graph_capture_begin, run->one, mode) < 0) {
        DROP(run, graph_exec_destroy, exec);
        return;
    }
    CALL(run, mem_fill_async, run->one, run->first, &byte, 1, BYTES);
    call_beside(run, graphs);
    use_another_instance(run);
    launch_into(run, exec);
    CALL(run, graph_capture_status, run->one, &capturing);
    drive_want(run, capturing == DS_ACCEL_CAPTURING_YES, "the capture goes on");
    if (CALL(run, graph_capture_end, run->one, &run->graph) == DS_ACCEL_OK &&
        CALL(run, graph_instantiate, run->graph, 0, &run->exec) == DS_ACCEL_OK) {
        CALL(run, graph_launch, run->exec, run->one);
        CALL(run, stream_synchronize, run->one, UINT64_MAX);
    }
    DROP(run, graph_exec_destroy, run->exec);
    DROP(run, graph_exec_destroy, exec);
    DROP(run, graph_destroy, run->graph);
    run->exec = NULL;
    run->graph = NULL;
}

void drive_beside(struct run *run)
{
    ds_accel_plugin_graph_t *graphs[2] = {NULL, NULL};

    if (drive_make(run) == DS_ACCEL_OK) {
        graphs[0] = make_graph(run, 1);
        graphs[1] = make_graph(run, 2);
        for (uint32_t mode = DS_ACCEL_CAPTURE_GLOBAL;
             graphs[1] != NULL && mode <= DS_ACCEL_CAPTURE_RELAXED; mode++) {
            capture_beside(run, mode, graphs);
        }
        DROP(run, graph_destroy, graphs[0]);
        DROP(run, graph_destroy, graphs[1]);
    }
    drive_unmake(run);
}

/* ---- captures that begin beside waits and frees of another thread ---------------------------- */

struct waiter {
    struct run run;
    atomic_int is_over;
};

static void *wait_again(void *given)
{
    struct waiter *waiter = given;
    struct run *run = &waiter->run;

    while (!atomic_load(&waiter->is_over)) {
        CALL(run, device_synchronize, run->device, UINT64_MAX);
        CALL(run, device_synchronize, run->device, UINT64_C(60000000000));
        use_memory(run);
        use_streams(run);
    }
    return NULL;
}

void drive_raced(struct run *run)
{
    const unsigned char byte = 0x5a;
    struct waiter waiter = {.is_over = 0};
    pthread_t thread;

    if (drive_make(run) < 0) {
        return;
    }
    waiter.run = *run;
    waiter.run.passed = waiter.run.failed = waiter.run.refused = waiter.run.missing = 0;
    if (pthread_create(&thread, NULL, wait_again, &waiter) != 0) {
        abort();
    }
    for (int i = 0; i < 20000; i++) {
        ds_accel_plugin_graph_t *graph = NULL;

        if (i % 64 == 0) { /* often, so that waits are long; not always, so that they end */
            CALL(run, mem_fill_async, run->one, run->first, &byte, 1, BYTES);
        }
        if (CALL(run, graph_capture_begin, run->one, DS_ACCEL_CAPTURE_GLOBAL) == DS_ACCEL_OK) {
            CALL(run, graph_capture_end, run->one, &graph);
        }
        DROP(run, graph_destroy, graph);
    }
    atomic_store(&waiter.is_over, 1);
    pthread_join(thread, NULL);
    drive_add(run, &waiter.run);
    drive_unmake(run);
}
