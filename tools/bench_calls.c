/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Measurements of durations: allocations, events, streams, launches until completion, graphs, and
 * the overhead of the library.
 *
 * Rows with "cached" measure the library's allocation when it reuses freed memory. Rows with
 * "backend" measure the backend's own allocation, which is the cost of every allocation without a
 * cache.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#define FILL_BYTE 0x5a
#define TASK_BYTES 64u /* size of the copy in case "launch/copy"; its transfer time is negligible */

/* ---- allocation ----------------------------------------------------------------------------- */

static int32_t device_pair(struct bench *bench)
{
    void *pointer;
    int32_t status = ds_accel_mem_alloc(bench->device, bench->stream, bench->size_bytes, &pointer);

    return status < 0 ? status : ds_accel_mem_free(bench->device, bench->stream, pointer);
}

static int32_t pinned_pair(struct bench *bench)
{
    void *pointer;
    int32_t status = ds_accel_mem_alloc_pinned(bench->device, bench->size_bytes, 0, 0, &pointer);

    return status < 0 ? status : ds_accel_mem_free_pinned(bench->device, pointer);
}

/* Return the status of a direct call of a plugin's function. On failure, also store the plugin's
 * message. */
static int32_t finish_direct(struct bench *bench, int32_t status,
                             const struct ds_accel_error *error)
{
    return status < 0 ? bench_fail(bench, status, "%s", error->message) : DS_ACCEL_OK;
}

static int32_t device_backend(struct bench *bench)
{
    const struct ds_accel_plugin *table = ds_accel_device_table(bench->device);
    ds_accel_plugin_device_t *handle = ds_accel_device_handle(bench->device);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    void *pointer;
    int32_t status = table->mem_alloc(handle, bench->size_bytes, 0, 0, &pointer, &error);

    if (status >= 0) {
        status = table->mem_free(handle, pointer, &error);
    }
    return finish_direct(bench, status, &error);
}

static int32_t pinned_backend(struct bench *bench)
{
    const struct ds_accel_plugin *table = ds_accel_device_table(bench->device);
    ds_accel_plugin_device_t *handle = ds_accel_device_handle(bench->device);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    void *pointer;
    int32_t status = table->mem_alloc_pinned(handle, bench->size_bytes, 0, 0, &pointer, &error);

    if (status >= 0) {
        status = table->mem_free_pinned(handle, pointer, &error);
    }
    return finish_direct(bench, status, &error);
}

/* Check that enough device memory is available. The memory of transfers was freed before. */
static int32_t prepare_device_pair(struct bench *bench)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    int32_t status = ds_accel_device_memory(bench->device, &info);

    if (status >= 0 && (info.valid & DS_ACCEL_MEMORY_AVAILABLE) != 0 &&
        bench->size_bytes > info.available_bytes / 4 * 3) {
        return bench_fail(bench, DS_ACCEL_ERR_NO_MEMORY,
                          "the device has %llu bytes available, too few for it",
                          (unsigned long long)info.available_bytes);
    }
    return DS_ACCEL_OK;
}

/* ---- events --------------------------------------------------------------------------------- */

static int32_t prepare_event(struct bench *bench)
{
    int32_t status = ds_accel_event_create(bench->device, DS_ACCEL_EVENT_TIMING, &bench->event);

    status = status < 0 ? status : ds_accel_event_record(bench->event, bench->stream);
    return status < 0 ? status : bench_wait(bench);
}

static void finish_event(struct bench *bench)
{
    ds_accel_event_destroy(bench->event);
    bench->event = NULL;
}

static int32_t event_create(struct bench *bench)
{
    ds_accel_event_t *event;
    int32_t status = ds_accel_event_create(bench->device, 0, &event);

    if (status >= 0) {
        ds_accel_event_destroy(event);
    }
    return status;
}

static int32_t event_record(struct bench *bench)
{
    return ds_accel_event_record(bench->event, bench->stream);
}

static int32_t event_record_wait(struct bench *bench)
{
    int32_t status = ds_accel_event_record(bench->event, bench->stream);

    return status < 0 ? status : ds_accel_event_synchronize(bench->event);
}

static int32_t event_query(struct bench *bench)
{
    return ds_accel_event_query(bench->event);
}

static int32_t event_elapsed(struct bench *bench)
{
    double elapsed_ms;

    return ds_accel_event_elapsed_ms(bench->event, bench->event, &elapsed_ms);
}

/* ---- streams -------------------------------------------------------------------------------- */

static int32_t stream_create(struct bench *bench)
{
    ds_accel_stream_t *stream;
    int32_t status = ds_accel_stream_create(bench->device, 0, 0, &stream);

    if (status >= 0) {
        ds_accel_stream_destroy(stream);
    }
    return status;
}

static int32_t stream_query(struct bench *bench)
{
    return ds_accel_stream_query(bench->stream);
}

static int32_t stream_synchronize(struct bench *bench)
{
    return ds_accel_stream_synchronize(bench->stream);
}

static int32_t stream_wait_event(struct bench *bench)
{
    return ds_accel_stream_wait_event(bench->stream, bench->event);
}

/* Prepare a hand-over: one stream records an event, the other stream waits for the event, and the
 * host waits for the other stream. */
static int32_t prepare_hand_over(struct bench *bench)
{
    int32_t status = prepare_event(bench);

    return status < 0 ? status : ds_accel_stream_create(bench->device, 0, 0, &bench->other_stream);
}

static int32_t hand_over(struct bench *bench)
{
    int32_t status = ds_accel_event_record(bench->event, bench->stream);

    status = status < 0 ? status : ds_accel_stream_wait_event(bench->other_stream, bench->event);
    return status < 0 ? status : ds_accel_stream_synchronize(bench->other_stream);
}

static void finish_hand_over(struct bench *bench)
{
    ds_accel_stream_destroy(bench->other_stream);
    bench->other_stream = NULL;
    finish_event(bench);
}

/* ---- launching ------------------------------------------------------------------------------ */

static int32_t make_small(struct bench *bench)
{
    int32_t status =
        ds_accel_mem_alloc(bench->device, bench->stream, BENCH_SMALL_BYTES, &bench->small);

    if (status < 0) {
        bench->small = NULL;
        return status;
    }
    bench->small_host = calloc(1, BENCH_SMALL_BYTES);
    return bench->small_host != NULL ? DS_ACCEL_OK
                                     : bench_fail(bench, DS_ACCEL_ERR_NO_MEMORY, "no memory");
}

static void free_small(struct bench *bench)
{
    if (bench->small != NULL) {
        ds_accel_mem_free(bench->device, bench->stream, bench->small);
        bench->small = NULL;
    }
    free(bench->small_host);
    bench->small_host = NULL;
}

/* Check that the first size_bytes of the device's small memory have the wanted value. */
static int32_t check_small(struct bench *bench, unsigned char wanted, uint32_t size_bytes)
{
    unsigned char *given = bench->small_host;
    int32_t status;

    memset(given, (unsigned char)~wanted, BENCH_SMALL_BYTES);
    status = ds_accel_mem_copy(bench->device, given, bench->small, size_bytes,
                               DS_ACCEL_COPY_DEVICE_TO_HOST);
    for (uint32_t i = 0; status >= 0 && i < size_bytes; i++) {
        if (given[i] != wanted) {
            return bench_fail(bench, DS_ACCEL_ERR_INTERNAL,
                              "the data is wrong: byte %u is 0x%02x and should be 0x%02x", i,
                              given[i], wanted);
        }
    }
    return status;
}

static int32_t launch_copy(struct bench *bench)
{
    int32_t status = ds_accel_mem_copy_async(bench->stream, bench->small, bench->small_host,
                                             TASK_BYTES, DS_ACCEL_COPY_HOST_TO_DEVICE);

    return status < 0 ? status : ds_accel_stream_synchronize(bench->stream);
}

static int32_t prepare_launch_copy(struct bench *bench)
{
    int32_t status = make_small(bench);

    /* calloc() zeroed the host memory, so the copy zeroes the device memory. */
    status = status < 0 ? status
                        : ds_accel_mem_copy(bench->device, bench->small, bench->small_host,
                                            BENCH_SMALL_BYTES, DS_ACCEL_COPY_HOST_TO_DEVICE);
    if (status < 0) {
        return status;
    }
    memset(bench->small_host, FILL_BYTE, BENCH_SMALL_BYTES);
    status = launch_copy(bench);
    return status < 0 ? status : check_small(bench, FILL_BYTE, TASK_BYTES);
}

static int32_t launch_fill(struct bench *bench)
{
    int32_t status =
        ds_accel_mem_set_async(bench->stream, bench->small, FILL_BYTE, BENCH_SMALL_BYTES);

    return status < 0 ? status : ds_accel_stream_synchronize(bench->stream);
}

static int32_t prepare_launch_fill(struct bench *bench)
{
    int32_t status = make_small(bench);

    status = status < 0 ? status : launch_fill(bench);
    return status < 0 ? status : check_small(bench, FILL_BYTE, BENCH_SMALL_BYTES);
}

static void task(void *user_data, int32_t status)
{
    uint64_t *tasks_run = user_data;

    if (status >= 0) {
        __atomic_add_fetch(tasks_run, 1, __ATOMIC_RELEASE);
    }
}

static int32_t launch_task(struct bench *bench)
{
    int32_t status = ds_accel_stream_host_task(bench->stream, task, &bench->tasks_run);

    if (status < 0) {
        return status;
    }
    bench->tasks_queued++;
    status = ds_accel_stream_synchronize(bench->stream);
    if (status >= 0 &&
        __atomic_load_n(&bench->tasks_run, __ATOMIC_ACQUIRE) != bench->tasks_queued) {
        return bench_fail(bench, DS_ACCEL_ERR_INTERNAL,
                          "the stream is done, and a task has not run");
    }
    return status;
}

/* ---- graphs --------------------------------------------------------------------------------- */

/* Capture node_count fills, of which the last writes FILL_BYTE. */
static int32_t capture(struct bench *bench, uint32_t node_count)
{
    int32_t status = ds_accel_graph_capture_begin(bench->graph, bench->stream, NULL,
                                                  DS_ACCEL_CAPTURE_THREAD_LOCAL);
    int32_t ended;

    if (status < 0) {
        return status;
    }
    for (uint32_t i = 0; i < node_count && status >= 0; i++) {
        uint8_t byte = (uint8_t)(FILL_BYTE + (node_count - 1 - i));

        status = ds_accel_mem_set_async(bench->stream, bench->small, byte, BENCH_SMALL_BYTES);
    }
    if (status < 0) {
        bench_fail(bench, status, "%s", ds_accel_last_error());
    }
    ended = ds_accel_graph_capture_end(bench->graph);
    return status < 0 ? status : ended;
}

static int32_t prepare_graph(struct bench *bench)
{
    int32_t status = make_small(bench);

    return status < 0 ? status : ds_accel_graph_create(bench->device, &bench->graph);
}

static void finish_graph(struct bench *bench)
{
    ds_accel_graph_destroy(bench->graph);
    bench->graph = NULL;
    free_small(bench);
}

static int32_t graph_capture(struct bench *bench)
{
    int32_t status = capture(bench, BENCH_GRAPH_NODES);

    return status < 0 ? status : ds_accel_graph_instantiate(bench->graph);
}

static int32_t graph_replay(struct bench *bench)
{
    int32_t status = ds_accel_graph_replay(bench->graph, bench->stream);

    return status < 0 ? status : ds_accel_stream_synchronize(bench->stream);
}

static int32_t prepare_replay(struct bench *bench, uint32_t node_count)
{
    int32_t status = prepare_graph(bench);

    status = status < 0 ? status : capture(bench, node_count);
    status = status < 0 ? status : ds_accel_graph_instantiate(bench->graph);
    status = status < 0 ? status : graph_replay(bench);
    return status < 0 ? status : check_small(bench, FILL_BYTE, BENCH_SMALL_BYTES);
}

static int32_t prepare_replay_one(struct bench *bench)
{
    return prepare_replay(bench, 1);
}

static int32_t prepare_replay_many(struct bench *bench)
{
    return prepare_replay(bench, BENCH_GRAPH_NODES);
}

/* ---- overhead of the library ---------------------------------------------------------------- */

/*
 * Call the library repeatedly. Each result is an argument of the next call, and memory is
 * clobbered, so that the compiler can neither omit a call nor move it out of the loop.
 */
static int32_t dispatch_api(struct bench *bench, uint64_t repetitions)
{
    uintptr_t stream = (uintptr_t)bench->stream;

    for (uint64_t i = 0; i < repetitions; i++) {
        int32_t status = ds_accel_stream_query((ds_accel_stream_t *)stream);

        if (status != DS_ACCEL_OK) {
            return status < 0 ? status
                              : bench_fail(bench, DS_ACCEL_ERR_BUSY, "the stream is not idle");
        }
        stream += (uintptr_t)(uint32_t)status;
        __asm__ volatile("" : "+r"(stream) : : "memory");
    }
    return DS_ACCEL_OK;
}

static int32_t dispatch_direct(struct bench *bench, uint64_t repetitions)
{
    int32_t (*call)(ds_accel_plugin_stream_t *, struct ds_accel_error *) =
        bench->stream->table->stream_query;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uintptr_t stream = (uintptr_t)bench->stream->handle;

    for (uint64_t i = 0; i < repetitions; i++) {
        int32_t status = call((ds_accel_plugin_stream_t *)stream, &error);

        if (status != DS_ACCEL_OK) {
            return status < 0 ? finish_direct(bench, status, &error)
                              : bench_fail(bench, DS_ACCEL_ERR_BUSY, "the stream is not idle");
        }
        stream += (uintptr_t)(uint32_t)status;
        __asm__ volatile("" : "+r"(stream), "+r"(call) : : "memory");
    }
    return DS_ACCEL_OK;
}

/* Look up the device by its index. Some programs do that before each call. */
static int32_t device_get(struct bench *bench)
{
    ds_accel_device_t *device;

    return ds_accel_device_get(bench->context, bench->device_index, &device);
}

/* ---- the table ------------------------------------------------------------------------------ */

#define ALLOC(name_, once_) \
    { \
        .group = "alloc", .name = (name_), .sized = true, .unit = BENCH_NS, \
        .prepare = prepare_device_pair, .once = (once_) \
    }
#define CALL(group_, name_, once_, prepare_, finish_) \
    { \
        .group = (group_), .name = (name_), .unit = BENCH_NS, .prepare = (prepare_), \
        .once = (once_), .finish = (finish_) \
    }

const struct bench_case bench_calls[] = {
    ALLOC("device_cached", device_pair),
    ALLOC("device_backend", device_backend),
    ALLOC("pinned_cached", pinned_pair),
    ALLOC("pinned_backend", pinned_backend),
    CALL("event", "create_destroy", event_create, NULL, NULL),
    CALL("event", "record", event_record, prepare_event, finish_event),
    CALL("event", "record_synchronize", event_record_wait, prepare_event, finish_event),
    CALL("event", "query", event_query, prepare_event, finish_event),
    CALL("event", "elapsed", event_elapsed, prepare_event, finish_event),
    CALL("stream", "create_destroy", stream_create, NULL, NULL),
    CALL("stream", "query", stream_query, NULL, NULL),
    CALL("stream", "synchronize", stream_synchronize, NULL, NULL),
    CALL("stream", "wait_event", stream_wait_event, prepare_event, finish_event),
    CALL("stream", "hand_over", hand_over, prepare_hand_over, finish_hand_over),
    CALL("launch", "copy", launch_copy, prepare_launch_copy, free_small),
    CALL("launch", "fill", launch_fill, prepare_launch_fill, free_small),
    CALL("launch", "host_task", launch_task, NULL, NULL),
    CALL("graph", "capture", graph_capture, prepare_graph, finish_graph),
    CALL("graph", "replay_1", graph_replay, prepare_replay_one, finish_graph),
    CALL("graph", "replay_32", graph_replay, prepare_replay_many, finish_graph),
    CALL("dispatch", "device_get", device_get, NULL, NULL),
    {.group = "dispatch", .name = "stream_query", .unit = BENCH_NS, .many = dispatch_api},
    {.group = "dispatch", .name = "stream_query_direct", .unit = BENCH_NS, .many = dispatch_direct},
};
const size_t bench_call_count = sizeof(bench_calls) / sizeof(bench_calls[0]);
