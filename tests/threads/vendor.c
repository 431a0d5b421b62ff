/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Many threads use a vendor's plugin, whose runtime is simulated (tests/sim; for opencl it is
 * PoCL): the scenarios of every backend, and the scenarios below for functions that only vendors
 * have. A call that the vendor does not support is not a failure.
 */
#include "threads.h"

#include <stdio.h>

#define BYTES 4096u

static const char *vendor;
static ds_accel_device_t *devices[2]; /* the same device twice on a machine that has only one */
static uint32_t last_device;          /* index of devices[1] */

/* True for success, and for a function that the vendor does not support. */
static bool is_done(int32_t status)
{
    return status >= 0 || status == DS_ACCEL_ERR_UNSUPPORTED;
}

/* Print the thread's last error, which main() cannot read, because the error is thread-local. */
static bool tell(unsigned thread, bool right)
{
    if (!right) {
        printf("thread %u: %s\n", thread, ds_accel_last_error());
    }
    return right;
}

/* ---- streams and events --------------------------------------------------------------------- */

static ds_accel_event_t *events[THREADS];

/* Fill memory after another thread's latest record, copy it back, and count a host task. */
static bool fill_behind(ds_accel_stream_t *stream, ds_accel_event_t *other, ds_accel_event_t *own,
                        unsigned char *host, uint64_t *tasks)
{
    unsigned char byte = host[0];
    void *memory = NULL;
    int32_t tasked = DS_ACCEL_ERR_INVALID;
    bool right =
        ds_accel_mem_alloc(shared_device, stream, BYTES, &memory) >= 0 &&
        ds_accel_stream_wait_event(stream, other) >= 0 &&
        ds_accel_mem_fill_async(stream, memory, &byte, 1, BYTES) >= 0 &&
        ds_accel_mem_copy_async(stream, host, memory, BYTES, DS_ACCEL_COPY_DEVICE_TO_HOST) >= 0 &&
        is_done(tasked = ds_accel_stream_host_task(stream, add_one, tasks)) &&
        ds_accel_event_record(own, stream) >= 0 && ds_accel_event_query(other) >= 0 &&
        ds_accel_event_synchronize(other) >= 0 && ds_accel_event_synchronize(own) >= 0 &&
        host[BYTES - 1] == byte;

    if (tasked < 0) {
        ++*tasks;
    }
    return ds_accel_mem_free(shared_device, stream, memory) >= 0 && right;
}

/* Each thread's stream waits for the event of the next thread, which keeps recording it. */
static bool events_of_others(unsigned thread)
{
    ds_accel_stream_t *stream = NULL;
    ds_accel_event_t *start = NULL;
    unsigned char host[BYTES];
    uint64_t tasks = 0;
    double elapsed_ms = -1;
    bool right = ds_accel_stream_create(shared_device, 0, 0, &stream) >= 0 &&
                 ds_accel_event_create(shared_device, DS_ACCEL_EVENT_TIMING, &start) >= 0 &&
                 ds_accel_event_create(shared_device, DS_ACCEL_EVENT_TIMING, &events[thread]) >= 0;

    pthread_barrier_wait(&between);
    for (unsigned round = 0; round < ROUNDS && right; round++) {
        host[0] = (unsigned char)(thread + round);
        right = ds_accel_event_record(start, stream) >= 0 &&
                fill_behind(stream, events[(thread + 1) % THREADS], events[thread], host, &tasks) &&
                is_done(ds_accel_event_elapsed_ms(start, events[thread], &elapsed_ms)) &&
                tasks == round + 1;
    }
    tell(thread, right);
    pthread_barrier_wait(&between);
    ds_accel_event_destroy(start);
    ds_accel_event_destroy(events[thread]);
    ds_accel_stream_destroy(stream);
    return right;
}

/* Destroy streams with work left while other threads wait for the whole device. */
static bool streams_left_behind(unsigned thread)
{
    static const uint32_t flags[] = {DS_ACCEL_STREAM_DEFAULT, DS_ACCEL_STREAM_NON_BLOCKING};
    unsigned char *host = calloc(1, BYTES);
    ds_accel_stream_t *common = NULL;
    void *memory = NULL; /* one part per round, because streams of several rounds run at once */
    bool right = ds_accel_default_stream(shared_device, &common) >= 0 &&
                 ds_accel_mem_alloc(shared_device, common, ROUNDS * BYTES, &memory) >= 0;

    for (unsigned round = 0; round < ROUNDS && right; round++) {
        ds_accel_stream_t *stream = NULL;
        int32_t status = DS_ACCEL_OK;

        right = ds_accel_stream_create(shared_device, flags[round % 2], 0, &stream) >= 0 &&
                ds_accel_mem_copy_async(stream, (char *)memory + round * BYTES, host, BYTES,
                                        DS_ACCEL_COPY_HOST_TO_DEVICE) >= 0 &&
                ds_accel_stream_query(stream) >= 0 &&
                is_done(ds_accel_stream_wait_stream(stream, common));
        ds_accel_stream_destroy(stream);
        if (thread % 4 == 0) {
            status = ds_accel_device_synchronize_for(shared_device, round % 2 * 1000000u);
        }
        right = right && (status == DS_ACCEL_ERR_TIMEOUT || status >= 0);
    }
    right = ds_accel_device_synchronize(shared_device) >= 0 && right;
    right = ds_accel_mem_free(shared_device, common, memory) >= 0 && right;
    free(host);
    return tell(thread, right);
}

/* All threads copy on the default stream and on their current stream. */
static bool current_streams(unsigned thread)
{
    ds_accel_stream_t *stream = NULL;
    ds_accel_stream_t *before = NULL;
    unsigned char host[256];
    void *memory = NULL;
    bool right = ds_accel_stream_create(shared_device, 0, 0, &stream) >= 0 &&
                 ds_accel_current_stream(shared_device, &before) >= 0 &&
                 is_done(ds_accel_set_device(shared, last_device * (thread % 2)));

    for (unsigned round = 0; round < ROUNDS && right; round++) {
        ds_accel_stream_t *current = round % 2 == 0 ? stream : before;

        memset(host, (int)thread, sizeof(host));
        right = ds_accel_set_current_stream(current) >= 0 &&
                ds_accel_mem_alloc(shared_device, NULL, sizeof(host), &memory) >= 0 &&
                ds_accel_mem_copy_async(current, memory, host, sizeof(host),
                                        DS_ACCEL_COPY_HOST_TO_DEVICE) >= 0 &&
                ds_accel_stream_synchronize(current) >= 0 &&
                ds_accel_mem_copy(shared_device, host, memory, sizeof(host),
                                  DS_ACCEL_COPY_DEVICE_TO_HOST) >= 0 &&
                host[255] == thread &&
                ds_accel_mem_set(shared_device, memory, 7, sizeof(host)) >= 0;
        right = ds_accel_mem_free(shared_device, NULL, memory) >= 0 && right;
    }
    right = ds_accel_set_current_stream(before) >= 0 && tell(thread, right);
    ds_accel_stream_destroy(stream);
    return right;
}

/* ---- sensors while there is work ------------------------------------------------------------ */

static bool poll_facts(const struct ds_accel_plugin *table, uint32_t index)
{
    ds_accel_plugin_device_t *device = ds_accel_device_handle(shared_device);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};
    struct ds_accel_process processes[4] = {{.struct_size = sizeof(processes[0])}};
    struct ds_accel_link links[4] = {{.struct_size = sizeof(links[0])}};
    struct ds_accel_memory_info memory = {.struct_size = sizeof(memory)};
    struct ds_accel_memory_stats stats = {.struct_size = sizeof(stats)};
    struct ds_accel_device_identity who = {.struct_size = sizeof(who)};
    struct ds_accel_backend_info backend = {.struct_size = sizeof(backend)};
    uint32_t count;

    return is_done(ds_accel_telemetry(shared, index, &telemetry)) &&
           is_done(ds_accel_telemetry_processes(shared, index, processes, sizeof(processes[0]), 4,
                                                &count)) &&
           is_done(ds_accel_device_links(shared, index, links, sizeof(links[0]), 4, &count)) &&
           is_done(table->mem_info(device, &memory, &error)) &&
           is_done(table->mem_stats(device, &stats, &error)) &&
           is_done(table->mem_reset_peaks(device, DS_ACCEL_PEAK_ALLOCATED, &error)) &&
           is_done(table->mem_trim(device, 0, &error)) &&
           ds_accel_device_identity(shared, index, &who) >= 0 &&
           ds_accel_backend_info(shared, &backend) >= 0 &&
           is_done(ds_accel_device_health(shared_device));
}

static bool sensors_beside_work(unsigned thread)
{
    const struct ds_accel_plugin *table = ds_accel_device_table(shared_device);
    uint32_t count = 0;
    bool right = ds_accel_device_count(shared, &count) >= 0;

    if (thread % 2 == 0) {
        return one_device(thread);
    }
    for (unsigned round = 0; round < ROUNDS && right; round++) {
        right = poll_facts(table, (thread / 2 + round) % count);
    }
    return tell(thread, right);
}

/* Each thread has its own ranges; all threads share the profiler. */
static bool ranges(unsigned thread)
{
    bool right = true;

    for (unsigned round = 0; round < ROUNDS && right; round++) {
        right = is_done(ds_accel_range_push(shared, "step", NULL, NULL)) &&
                is_done(ds_accel_range_push(shared, "forward", "a domain", "a category")) &&
                is_done(ds_accel_range_pop(shared, "a domain")) &&
                is_done(ds_accel_range_pop(shared, NULL)) &&
                (thread != 0 || (is_done(ds_accel_profiler_start(shared)) &&
                                 is_done(ds_accel_profiler_stop(shared))));
    }
    return tell(thread, right);
}

/* ---- memory of each kind -------------------------------------------------------------------- */

static bool stream_ordered(const struct ds_accel_plugin *table, ds_accel_plugin_stream_t *stream,
                           struct ds_accel_error *error)
{
    void *memory = NULL;
    int32_t status = table->mem_alloc_async(stream, BYTES, 0, NULL, 0, &memory, error);

    return status < 0 ? is_done(status)
                      : table->mem_fill_async(stream, memory, "x", 1, BYTES, error) >= 0 &&
                            table->mem_free_async(stream, memory, NULL, 0, error) >= 0;
}

static bool locked(const struct ds_accel_plugin *table, ds_accel_plugin_device_t *device,
                   unsigned char *page, struct ds_accel_error *error)
{
    int32_t status = table->mem_register(device, page, BYTES, 0, error);

    return status < 0 ? is_done(status) : table->mem_unregister(device, page, error) >= 0;
}

static bool managed(const struct ds_accel_plugin *table, ds_accel_plugin_device_t *device,
                    ds_accel_plugin_stream_t *stream, struct ds_accel_error *error)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info)};
    void *memory = NULL;
    int32_t status = table->mem_alloc_managed(device, BYTES, 0, &memory, error);

    return status < 0 ? is_done(status)
                      : table->mem_fill_async(stream, memory, "y", 1, BYTES, error) >= 0 &&
                            ds_accel_mem_pointer_info(shared, memory, &info) >= 0 &&
                            info.kind == DS_ACCEL_POINTER_MANAGED &&
                            table->mem_free(device, memory, error) >= 0;
}

static bool exported(const struct ds_accel_plugin *table, ds_accel_plugin_device_t *device,
                     uint32_t handle_bytes, struct ds_accel_error *error)
{
    unsigned char handle[256];
    void *memory = NULL;
    bool right = table->mem_alloc(device, BYTES, 0, 0, &memory, error) >= 0;
    int32_t status = right ? table->ipc_memory_export(device, memory, handle, handle_bytes, error)
                           : -1;

    right = right && is_done(status);
    if (status >= 0) {
        right = is_done(table->ipc_memory_unexport(device, handle, handle_bytes, error)) && right;
    }
    return table->mem_free(device, memory, error) >= 0 && right;
}

static bool kinds_of_memory(unsigned thread)
{
    static unsigned char pages[THREADS][BYTES] __attribute__((aligned(BYTES)));
    const struct ds_accel_plugin *table = ds_accel_device_table(shared_device);
    ds_accel_plugin_device_t *device = ds_accel_device_handle(shared_device);
    struct ds_accel_backend_info backend = {.struct_size = sizeof(backend)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_stream_t *stream = NULL;
    bool right = ds_accel_backend_info(shared, &backend) >= 0 &&
                 table->stream_create(device, 0, 0, &stream, &error) >= 0;

    for (unsigned round = 0; round < ROUNDS && right; round++) {
        right = stream_ordered(table, stream, &error) &&
                locked(table, device, pages[thread], &error) &&
                managed(table, device, stream, &error) &&
                exported(table, device, backend.memory_handle_bytes, &error);
    }
    if (!right) {
        printf("thread %u: %s\n", thread, error.message);
    }
    table->stream_destroy(stream);
    return right;
}

/* Reserve one address range, map physical memory to it, and fill the memory through the range. */
static bool map_once(const struct ds_accel_plugin *table, ds_accel_plugin_stream_t *stream,
                     uint64_t size_bytes, struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device = ds_accel_device_handle(shared_device);
    ds_accel_plugin_vmem_t *vmem = NULL;
    void *address = NULL;
    bool right = table->vmem_reserve(device, size_bytes, 0, NULL, 0, &address, error) >= 0 &&
                 table->vmem_create(device, size_bytes, 0, &vmem, error) >= 0 &&
                 table->vmem_map(device, address, size_bytes, vmem, 0, error) >= 0;

    if (right) {
        right = table->vmem_set_access(device, address, size_bytes, DS_ACCEL_VMEM_ACCESS_READ_WRITE,
                                       error) >= 0 &&
                table->mem_fill_async(stream, address, "z", 1, BYTES, error) >= 0;
        right = table->stream_synchronize(stream, UINT64_MAX, error) >= 0 && right;
        right = table->vmem_unmap(device, address, size_bytes, error) >= 0 && right;
    }
    table->vmem_destroy(vmem);
    return table->vmem_release(device, address, size_bytes, error) >= 0 && right;
}

static bool virtual_memory(unsigned thread)
{
    const struct ds_accel_plugin *table = ds_accel_device_table(shared_device);
    ds_accel_plugin_device_t *device = ds_accel_device_handle(shared_device);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_stream_t *stream = NULL;
    uint64_t least_bytes = 0;
    uint64_t size_bytes = 0;
    int32_t status = table->vmem_granularity(device, 0, &least_bytes, &size_bytes, &error);
    bool right;

    if (status < 0) {
        return is_done(status);
    }
    right = table->stream_create(device, 0, 0, &stream, &error) >= 0;
    for (unsigned round = 0; round < ROUNDS / 2 && right; round++) {
        right = map_once(table, stream, least_bytes, &error);
    }
    if (!right) {
        printf("thread %u: %s\n", thread, error.message);
    }
    table->stream_destroy(stream);
    return right;
}

/* Copy from one device to another while access between the two is enabled and disabled. */
static bool peers(unsigned thread)
{
    ds_accel_device_t *one = devices[thread % 2];
    ds_accel_device_t *other = devices[1 - thread % 2];
    ds_accel_stream_t *stream = NULL;
    void *memory[2] = {NULL};
    unsigned char host[256];
    uint32_t can = 0;
    bool right = ds_accel_stream_create(one, 0, 0, &stream) >= 0 &&
                 is_done(ds_accel_peer_can_access(one, other, &can));

    for (unsigned round = 0; round < ROUNDS / 2 && right; round++) {
        int32_t status;

        memset(host, (int)thread, sizeof(host));
        right = (can == 0 || is_done(round % 2 == 0 ? ds_accel_peer_enable(one, other)
                                                    : ds_accel_peer_disable(one, other))) &&
                ds_accel_mem_alloc(one, stream, sizeof(host), &memory[0]) >= 0 &&
                ds_accel_mem_alloc(other, NULL, sizeof(host), &memory[1]) >= 0 &&
                ds_accel_mem_copy_async(stream, memory[0], host, sizeof(host),
                                        DS_ACCEL_COPY_HOST_TO_DEVICE) >= 0;
        status = right ? ds_accel_mem_copy_peer_async(stream, other, memory[1], one, memory[0],
                                                      sizeof(host))
                       : -1;
        right = ds_accel_stream_synchronize(stream) >= 0 && right && is_done(status);
        memset(host, 0, sizeof(host));
        right = right && (status < 0 || (ds_accel_mem_copy(other, host, memory[1], sizeof(host),
                                                           DS_ACCEL_COPY_DEVICE_TO_HOST) >= 0 &&
                                         host[255] == thread));
        right = ds_accel_mem_free(one, stream, memory[0]) >= 0 && right;
        right = ds_accel_mem_free(other, NULL, memory[1]) >= 0 && right;
    }
    tell(thread, right);
    ds_accel_stream_destroy(stream);
    return right;
}

/* ---- graphs --------------------------------------------------------------------------------- */

static ds_accel_graph_t *shared_graph;
static void *shared_memory;

static bool capture(ds_accel_graph_t *graph, ds_accel_stream_t *stream, void *memory)
{
    return ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_THREAD_LOCAL) >= 0 &&
           ds_accel_mem_fill_async(stream, memory, "g", 1, BYTES) >= 0 &&
           ds_accel_mem_fill_async(stream, memory, "h", 1, BYTES / 2) >= 0 &&
           ds_accel_graph_capture_end(graph) >= 0;
}

/* Each thread captures its own graph anew in each round, and also replays a graph shared by all
   threads. */
static bool graphs(unsigned thread)
{
    ds_accel_stream_t *streams[2] = {NULL};
    ds_accel_graph_t *graph = NULL;
    void *memory = NULL;
    bool right =
        ds_accel_stream_create(shared_device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &streams[0]) >= 0 &&
        ds_accel_stream_create(shared_device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &streams[1]) >= 0 &&
        ds_accel_graph_create(shared_device, &graph) >= 0 &&
        ds_accel_mem_alloc(shared_device, streams[0], BYTES, &memory) >= 0;

    for (unsigned round = 0; round < ROUNDS && right; round++) {
        unsigned char byte = 0;
        uint64_t count = 0;

        right = capture(graph, streams[round % 2], memory) &&
                is_done(ds_accel_graph_node_count(graph, &count)) &&
                ds_accel_graph_replay(graph, streams[0]) >= 0 &&
                ds_accel_graph_replay(graph, streams[1]) >= 0 &&
                ds_accel_graph_replay(shared_graph, streams[round % 2]) >= 0 &&
                ds_accel_stream_synchronize(streams[0]) >= 0 &&
                ds_accel_stream_synchronize(streams[1]) >= 0 &&
                ds_accel_mem_copy(shared_device, &byte, memory, 1, DS_ACCEL_COPY_DEVICE_TO_HOST) >=
                    0 &&
                byte == 'h';
    }
    tell(thread, right);
    ds_accel_graph_destroy(graph);
    right = ds_accel_mem_free(shared_device, streams[0], memory) >= 0 && right;
    ds_accel_stream_destroy(streams[0]);
    ds_accel_stream_destroy(streams[1]);
    return right;
}

static bool with_graphs(void)
{
    ds_accel_stream_t *stream = NULL;
    int32_t status = ds_accel_graph_create(shared_device, &shared_graph);
    bool right = status >= 0 &&
                 ds_accel_stream_create(shared_device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &stream) >=
                     0 &&
                 ds_accel_mem_alloc(shared_device, stream, BYTES, &shared_memory) >= 0;
    uint32_t has = 0;

    if (status == DS_ACCEL_ERR_UNSUPPORTED ||
        (ds_accel_flag(shared, DS_ACCEL_FLAG_GRAPHS, &has) >= 0 && has == 0)) {
        return true;
    }
    right = right && capture(shared_graph, stream, shared_memory) && run(graphs, THREADS);
    ds_accel_graph_destroy(shared_graph);
    right = ds_accel_mem_free(shared_device, stream, shared_memory) >= 0 && right;
    ds_accel_stream_destroy(stream);
    return right;
}

/* ---- contexts ------------------------------------------------------------------------------- */

/* Each thread creates, uses and destroys plugin instances at the same time as the others. */
static bool contexts_at_work(unsigned thread)
{
    bool right = true;

    for (unsigned round = 0; round < 2 && right; round++) {
        ds_accel_t *context = create_with(vendor, 0);
        ds_accel_device_t *device = NULL;
        ds_accel_device_t *other = NULL;
        ds_accel_stream_t *stream = NULL;
        void *memory = NULL;
        unsigned char byte = 0;
        uint32_t can = 0;

        right = context != NULL && ds_accel_detect(context) >= 0 &&
                ds_accel_device_open(context, 0, &device) >= 0 &&
                ds_accel_device_open(context, last_device, &other) >= 0 &&
                is_done(ds_accel_peer_can_access(device, other, &can)) &&
                (can == 0 || is_done(ds_accel_peer_enable(device, other))) &&
                ds_accel_stream_create(device, 0, 0, &stream) >= 0 &&
                ds_accel_mem_alloc(device, stream, BYTES, &memory) >= 0 &&
                ds_accel_mem_fill_async(stream, memory, "c", 1, BYTES) >= 0 &&
                ds_accel_mem_copy_async(stream, &byte, memory, 1, DS_ACCEL_COPY_DEVICE_TO_HOST) >=
                    0 &&
                ds_accel_stream_synchronize(stream) >= 0 && byte == 'c';
        tell(thread, right);
        right = ds_accel_mem_free(device, stream, memory) >= 0 && right;
        ds_accel_stream_destroy(stream);
        ds_accel_device_close(other);
        ds_accel_device_close(device);
        ds_accel_destroy(context);
    }
    return right;
}

static void with_device(void)
{
    uint32_t count = 0;

    shared = create_with(vendor, 0);
    if (shared == NULL || ds_accel_detect(shared) < 0 ||
        ds_accel_device_open(shared, 0, &shared_device) < 0) {
        check("a device of the vendor", false);
        ds_accel_destroy(shared);
        return;
    }
    devices[0] = shared_device;
    last_device = ds_accel_device_count(shared, &count) >= 0 && count > 1 ? 1 : 0;
    check("another device", ds_accel_device_open(shared, last_device, &devices[1]) >= 0);
    check("events of others", run(events_of_others, THREADS));
    check("streams left behind", run(streams_left_behind, THREADS));
    check("current streams", run(current_streams, THREADS));
    check("sensors beside work", run(sensors_beside_work, THREADS));
    check("ranges", run(ranges, THREADS));
    check("kinds of memory", run(kinds_of_memory, THREADS));
    check("virtual memory", run(virtual_memory, THREADS));
    check("peers", run(peers, THREADS));
    check("graphs", with_graphs());
    check("contexts at work", run(contexts_at_work, 4));
    ds_accel_device_close(devices[1]);
    ds_accel_device_close(shared_device);
    ds_accel_destroy(shared);
}

/* ---- a lost device --------------------------------------------------------------------------- */

static void add_in_any_case(void *data, int32_t status)
{
    (void)status;
    add_one(data, DS_ACCEL_OK);
}

/* A queued task has run exactly once when its stream was waited for; a rejected task never runs. */
static bool give_task(ds_accel_stream_t *stream, void *memory, int32_t *status_out)
{
    static const unsigned char host[256]; /* static because a lost device may still read it */
    uint64_t *count = calloc(1, sizeof(*count));
    bool is_given;
    bool right;

    if (count == NULL) {
        abort();
    }
    ds_accel_mem_copy_async(stream, memory, host, sizeof(host), DS_ACCEL_COPY_HOST_TO_DEVICE);
    is_given = ds_accel_stream_host_task(stream, add_in_any_case, count) >= 0;
    *status_out = ds_accel_stream_synchronize(stream);
    right = *count == is_given;
    free(count);
    return right;
}

static bool tasks_of_a_lost_device(unsigned thread)
{
    ds_accel_stream_t *stream = NULL;
    int32_t status = DS_ACCEL_OK;
    void *memory = NULL;
    bool right = ds_accel_stream_create(shared_device, 0, 0, &stream) >= 0 &&
                 ds_accel_mem_alloc(shared_device, stream, 256, &memory) >= 0;

    pthread_barrier_wait(&between);
    while (right && status >= 0) {
        right = give_task(stream, memory, &status);
    }
    for (unsigned round = 0; round < ROUNDS && right; round++) {
        right = give_task(stream, memory, &status) && status == DS_ACCEL_ERR_DEVICE_LOST &&
                ds_accel_device_health(shared_device) == DS_ACCEL_ERR_DEVICE_LOST;
    }
    tell(thread, right);
    ds_accel_mem_free(shared_device, stream, memory);
    ds_accel_stream_destroy(stream);
    return right;
}

/* The simulator reads SIM_LOSE, the time of the loss, when it is loaded. */
void with_loss(const char *name)
{
    setenv("SIM_LOSE", "0@copy:300", 1);
    shared = create_with(name, 0);
    pthread_barrier_init(&between, NULL, THREADS);
    if (shared != NULL && ds_accel_detect(shared) >= 0 &&
        ds_accel_device_open(shared, 0, &shared_device) >= 0) {
        check("tasks of a lost device", run(tasks_of_a_lost_device, THREADS));
        ds_accel_device_close(shared_device);
    } else {
        check("a device to lose", false);
    }
    ds_accel_destroy(shared);
    pthread_barrier_destroy(&between);
}

void with_vendor(const char *name)
{
    vendor = name;
    pthread_barrier_init(&between, NULL, THREADS);
    with_shared(create_with(vendor, 0));
    with_device();
    with_layers(vendor);
    with_allocator(vendor, "growable_segments=true");
    pthread_barrier_destroy(&between);
}
