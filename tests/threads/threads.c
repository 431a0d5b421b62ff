/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Many threads at once, for the thread sanitizer. This is a plain program because Criterion's
 * sandbox cannot map its memory under that sanitizer.
 *
 *     threads BUILD              the host, cpu and mock
 *     threads BUILD VENDOR       a vendor's plugin, on two or more devices (vendor.c)
 *     threads BUILD VENDOR lost  a device that is lost while threads work on it
 */
#include "threads.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FIRST_THREADS 100

/*
 * Suppress two reports that are not races. When a thread's stack is reused, the loader frees the
 * thread-local memory of a plugin's library under locks that the sanitizer cannot see. PoCL is not
 * instrumented, and orders its work by atomics.
 */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:_dl_deallocate_tls\nrace:libpocl\n";
}

static char plugins[512];
pthread_barrier_t barrier;
ds_accel_t *shared;
ds_accel_device_t *shared_device;

static unsigned complaints; /* number of errors logged by any context; atomic */

static void note_complaint(void *user_data, uint32_t level, const char *topic, const char *line)
{
    (void)user_data;
    if (level == DS_ACCEL_LOG_ERROR) {
        printf("%s: %s\n", topic, line);
        __atomic_add_fetch(&complaints, 1, __ATOMIC_RELAXED);
    }
}

/* Create a context that reads the environment only if environment_flag is 0. */
ds_accel_t *create_with(const char *accelerator, uint64_t environment_flag)
{
    struct ds_accel_options options = {.struct_size = sizeof(options)};
    const char *dirs[] = {plugins};
    ds_accel_t *context = NULL;

    options.flags = DS_ACCEL_OPTION_NO_USER_CONFIG | DS_ACCEL_OPTION_NO_CACHE | environment_flag;
    options.accelerator = accelerator;
    options.log_sink = note_complaint;
    options.plugin_dirs = dirs;
    options.plugin_dir_count = 1;
    return ds_accel_create(&options, &context) >= 0 ? context : NULL;
}

static ds_accel_t *create(const char *accelerator)
{
    return create_with(accelerator, DS_ACCEL_OPTION_NO_ENVIRONMENT);
}

/* ---- scenarios ------------------------------------------------------------------------------ */

static bool get_first(unsigned thread)
{
    ds_accel_t *context = ds_accel_get();

    (void)thread;
    return context != NULL && context == ds_accel_get() && ds_accel_name(context) != NULL;
}

static bool own_contexts(unsigned thread)
{
    static const char *const names[] = {"cpu", "mock", "cuda", NULL};
    bool right = true;

    for (int round = 0; round < ROUNDS / 4; round++) {
        ds_accel_t *context = create(names[thread % 4]);
        uint32_t count = 0;

        right = right && context != NULL && ds_accel_detect(context) >= 0 &&
                ds_accel_device_count(context, &count) >= 0 && count > 0;
        ds_accel_destroy(context);
    }
    return right;
}

static bool one_context(unsigned thread)
{
    static const uint32_t reports[] = {DS_ACCEL_REPORT_DETECT, DS_ACCEL_REPORT_LIST,
                                       DS_ACCEL_REPORT_INFO,   DS_ACCEL_REPORT_EXPLAIN,
                                       DS_ACCEL_REPORT_ENV,    DS_ACCEL_REPORT_CONFIG_ENV};
    struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};
    bool right = ds_accel_detect(shared) >= 0;

    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t report = reports[(thread + round) % (sizeof(reports) / sizeof(reports[0]))];
        char *text = NULL;
        char name[32];

        right = right && ds_accel_report(shared, report, NULL, DS_ACCEL_FORMAT_JSON, &text) >= 0;
        ds_accel_free_text(text);
        right = right && ds_accel_check(shared, "cuda") >= 0;
        right = right && ds_accel_candidate_get(shared, 0, &candidate) >= 0;
        right = right && ds_accel_device_name(shared, 0, name, sizeof(name)) >= 0;
    }
    return right;
}

/* Contexts whose configuration was cached by an earlier context: half of the threads need all of
   it. */
static bool look_first(unsigned thread)
{
    uint32_t report = thread % 2 == 0 ? DS_ACCEL_REPORT_LIST : DS_ACCEL_REPORT_DETECT;
    char *text = NULL;
    bool right = ds_accel_report(shared, report, NULL, thread % 4 / 2, &text) >= 0;

    ds_accel_free_text(text);
    return right;
}

/* Every fourth thread records the machine while the others read it; every recording must be
   complete. */
static bool record_and_look(unsigned thread)
{
    const struct ds_accel_plugin *table = ds_accel_device_table(shared_device);
    ds_accel_plugin_device_t *device = ds_accel_device_handle(shared_device);
    bool right = true;

    for (unsigned round = 0; round < 3 && thread % 4 == 0; round++) {
        char *text = NULL;

        right = right && ds_accel_report(shared, DS_ACCEL_REPORT_RECORDING, NULL,
                                         DS_ACCEL_FORMAT_JSON, &text) >= 0;
        right = right && strstr(text, "\"/proc/meminfo\"") != NULL &&
                strstr(text, "\"/sys/devices/system/cpu/online\"") != NULL;
        ds_accel_free_text(text);
    }
    for (unsigned round = 0; round < ROUNDS && thread % 4 != 0; round++) {
        struct ds_accel_memory_info memory = {.struct_size = sizeof(memory)};
        struct ds_accel_error error = {.struct_size = sizeof(error)};

        right = right && table->mem_info(device, &memory, &error) >= 0;
    }
    return right;
}

/* Each thread uses its own stream, event and memory on one device. */
bool one_device(unsigned thread)
{
    const struct ds_accel_plugin *table = ds_accel_device_table(shared_device);
    ds_accel_plugin_device_t *device = ds_accel_device_handle(shared_device);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_event_t *event = NULL;
    unsigned char pattern = (unsigned char)thread;
    bool right = table->stream_create(device, 0, 0, &stream, &error) >= 0 &&
                 table->event_create(device, DS_ACCEL_EVENT_TIMING, &event, &error) >= 0;

    for (int round = 0; round < ROUNDS && right; round++) {
        unsigned char host[256] = {0};
        void *memory = NULL;

        right = table->mem_alloc(device, sizeof(host), 0, 0, &memory, &error) >= 0 &&
                table->mem_fill_async(stream, memory, &pattern, 1, sizeof(host), &error) >= 0 &&
                table->mem_copy_async(stream, host, memory, sizeof(host),
                                      DS_ACCEL_COPY_DEVICE_TO_HOST, &error) >= 0 &&
                table->event_record(event, stream, &error) >= 0 &&
                table->event_synchronize(event, UINT64_MAX, &error) >= 0 &&
                table->stream_synchronize(stream, UINT64_MAX, &error) >= 0 && host[0] == pattern &&
                host[255] == pattern;
        right = table->mem_free(device, memory, &error) >= 0 && right;
    }
    if (!right) {
        printf("thread %u: %s\n", thread, error.message);
    }
    table->event_destroy(event);
    table->stream_destroy(stream);
    return right;
}

/* Each thread uses blocks of the shared pool, one at a time, with its own stream. */
bool pinned_pool(unsigned thread)
{
    struct ds_accel_pinned_stats stats = {.struct_size = sizeof(stats)};
    ds_accel_stream_t *stream = NULL;
    bool right = ds_accel_stream_create(shared_device, 0, 0, &stream) >= 0;

    for (unsigned round = 0; round < ROUNDS && right; round++) {
        uint64_t size_bytes = 100 + 5000 * (round % 3);
        unsigned char *block;
        uint32_t is_pinned = 0;
        void *memory = NULL;
        void *taken = NULL;

        right = ds_accel_mem_alloc_pinned(shared_device, size_bytes, 1, 0, &taken) >= 0;
        block = taken;
        if (!right) {
            break;
        }
        memset(block, (int)thread, size_bytes);
        right = ds_accel_mem_alloc(shared_device, stream, size_bytes, &memory) >= 0 &&
                ds_accel_mem_copy_async(stream, memory, block, size_bytes,
                                        DS_ACCEL_COPY_HOST_TO_DEVICE) >= 0 &&
                ds_accel_mem_record_stream(shared_device, block, stream) >= 0 &&
                ds_accel_is_pinned(shared, block + 50, &is_pinned) >= 0 && is_pinned == 1 &&
                ds_accel_stream_synchronize(stream) >= 0 && block[0] == thread &&
                block[size_bytes - 1] == thread;
        right = ds_accel_mem_free_pinned(shared_device, block) >= 0 && right;
        right = ds_accel_mem_free(shared_device, stream, memory) >= 0 && right;
        right = ds_accel_pinned_stats(shared_device, &stats) >= 0 && right;
        if (round % 8 == 7) {
            right = ds_accel_pinned_empty_cache(shared_device) >= 0 && right;
        }
    }
    ds_accel_stream_destroy(stream);
    return right;
}

/* Freed memory outlives its stream in the cache, and is released while other threads create
   streams. */
bool streams_come_and_go(unsigned thread)
{
    bool right = true;

    for (unsigned round = 0; round < ROUNDS && right; round++) {
        ds_accel_stream_t *stream = NULL;
        void *memory = NULL;

        right = ds_accel_stream_create(shared_device, 0, 0, &stream) >= 0 &&
                ds_accel_mem_alloc(shared_device, stream, 500 + thread, &memory) >= 0 &&
                ds_accel_mem_free(shared_device, stream, memory) >= 0;
        ds_accel_stream_destroy(stream);
        right = right && ds_accel_empty_cache(shared_device) >= 0;
    }
    return right;
}

/* All threads pass memory between two streams; thread 0 also records and reads the history. */
bool history(unsigned thread)
{
    ds_accel_stream_t *streams[2] = {NULL};
    bool right = ds_accel_stream_create(shared_device, 0, 0, &streams[0]) >= 0 &&
                 ds_accel_stream_create(shared_device, 0, 0, &streams[1]) >= 0;

    for (unsigned round = 0; round < ROUNDS * 10 && right; round++) {
        void *memory = NULL;
        void *data = NULL;
        size_t size_bytes = 0;

        right = ds_accel_mem_alloc(shared_device, streams[round % 2], 500 + 4000 * (round % 5),
                                   &memory) >= 0 &&
                ds_accel_mem_record_stream(shared_device, memory, streams[round % 3 == 0]) >= 0 &&
                ds_accel_mem_free(shared_device, streams[round % 3 == 1], memory) >= 0;
        if (thread == 0 && round % 10 == 0 && right) {
            right = ds_accel_memory_record_history(
                        shared_device, DS_ACCEL_HISTORY_ON | DS_ACCEL_HISTORY_STACKS, 100) >= 0 &&
                    ds_accel_memory_snapshot(NULL, shared_device, DS_ACCEL_SNAPSHOT_JSON, &data,
                                             &size_bytes) >= 0;
            ds_accel_free_data(data);
        }
        if (thread == 1 && round % 20 == 0) {
            right = ds_accel_empty_cache(shared_device) >= 0 && right;
        }
    }
    if (thread == 0) {
        right = ds_accel_memory_record_history(shared_device, DS_ACCEL_HISTORY_OFF, 0) >= 0 &&
                right;
    }
    ds_accel_stream_destroy(streams[0]);
    ds_accel_stream_destroy(streams[1]);
    return right;
}

static char compile_backend[32]; /* the plugin's own name; "" if it has none */

/* The first query determines the result for all threads. */
static bool ask_facts(unsigned thread)
{
    const char *wanted = compile_backend[0] != '\0' ? compile_backend : "inductor";
    const char *unset = compile_backend[0] != '\0' ? NULL : wanted;
    char name[32];
    uint64_t flags;
    uint64_t known;
    uint32_t answer;
    bool right = true;

    for (int round = 0; round < ROUNDS; round++) {
        right = right && ds_accel_flags(shared, &flags, &known) >= 0 && known != 0 &&
                ds_accel_is_bf16_supported(shared, &answer) >= 0 && answer <= 1 &&
                ds_accel_set_compile_backend(shared, thread % 2 == 0 ? wanted : unset) >= 0 &&
                ds_accel_compile_backend(shared, name, sizeof(name)) >= 0 &&
                strcmp(name, wanted) == 0;
    }
    return right;
}

static unsigned lazy_calls; /* atomic */

static void count_call(void *user_data, int32_t status)
{
    (void)user_data;
    if (status == DS_ACCEL_OK) {
        __atomic_add_fetch(&lazy_calls, 1, __ATOMIC_RELAXED);
    }
}

/* Calls are queued before the detection, while it makes the queued calls, and after it. */
static bool call_lazily(unsigned thread)
{
    bool right = true;

    for (unsigned round = 0; round < ROUNDS && right; round++) {
        right = ds_accel_lazy_call(shared, count_call, NULL) >= 0 &&
                (round != thread % ROUNDS || ds_accel_detect(shared) >= 0);
    }
    return right;
}

/* Each thread alternates between two streams by an event, and queries layers meanwhile. */
static bool layered_device(unsigned thread)
{
    const struct ds_accel_plugin *table = ds_accel_device_table(shared_device);
    ds_accel_plugin_device_t *device = ds_accel_device_handle(shared_device);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    bool right = one_device(thread);

    for (int round = 0; round < ROUNDS && right; round++) {
        ds_accel_plugin_stream_t *streams[2] = {NULL, NULL};
        ds_accel_plugin_event_t *event = NULL;
        uint64_t count = 1;
        char *text = NULL;
        void *memory = NULL;
        struct ds_accel_stream last = {table, NULL};

        right = table->stream_create(device, 0, 0, &streams[0], &error) >= 0 &&
                table->stream_create(device, 0, 0, &streams[1], &error) >= 0 &&
                table->event_create(device, 0, &event, &error) >= 0 &&
                table->mem_alloc(device, 64, 0, 0, &memory, &error) >= 0 &&
                table->mem_fill_async(streams[0], memory, "x", 1, 64, &error) >= 0 &&
                table->event_record(event, streams[0], &error) >= 0 &&
                table->stream_wait_event(streams[1], event, &error) >= 0 &&
                (last.handle = streams[1]) != NULL &&
                ds_accel_note_access(shared_device, &last, memory, 64, DS_ACCEL_ACCESS_WRITE) >=
                    0 &&
                table->stream_synchronize(streams[1], UINT64_MAX, &error) >= 0 &&
                table->mem_free(device, memory, &error) >= 0 &&
                table->stream_query(NULL, &error) == DS_ACCEL_ERR_INVALID &&
                ds_accel_race_count(shared, &count) >= 0 && count == 0 &&
                ds_accel_layer_report(shared, "leak", &text) >= 0;
        ds_accel_free_text(text);
        table->event_destroy(event);
        table->stream_destroy(streams[0]);
        table->stream_destroy(streams[1]);
    }
    return right;
}

/* Half of the threads open the second device, if there is one. */
static bool open_devices(unsigned thread)
{
    uint32_t count = 0;
    bool right = ds_accel_device_count(shared, &count) >= 0;
    uint32_t index = count > 1 ? thread % 2 : 0;

    for (int round = 0; round < ROUNDS; round++) {
        struct ds_accel_device_info info = {.struct_size = sizeof(info)};
        struct ds_accel_memory_info memory = {.struct_size = sizeof(memory)};
        ds_accel_device_t *device;
        uint32_t current;

        right = right && ds_accel_device_open(shared, index, &device) >= 0 &&
                ds_accel_device_info(device, &info) >= 0 &&
                ds_accel_device_memory(device, &memory) >= 0 &&
                ds_accel_current_device(shared, &current) >= 0;
        if (right) {
            ds_accel_device_close(device);
        }
    }
    return right;
}

/* Shared by the threads of async_streams(): one event per thread, which the previous thread
   queries. */
static ds_accel_plugin_event_t *shared_events[THREADS];
pthread_barrier_t between;

void add_one(void *data, int32_t status)
{
    *(uint64_t *)data += status == DS_ACCEL_OK;
}

#define LINKS 4

/* Pass a value from stream to stream, each of which waits for the previous one; the first stream
   waits for the last and frees the memory. */
static bool hand_on(const struct ds_accel_plugin *table, ds_accel_plugin_stream_t **streams,
                    ds_accel_plugin_event_t *event, uint64_t *values, struct ds_accel_error *error)
{
    void *memory = NULL;
    bool right = table->mem_alloc_async(streams[0], 4096, 0, NULL, 0, &memory, error) >= 0 &&
                 table->mem_fill_async(streams[0], memory, "\1\2\3\4", 4, 4096, error) >= 0;

    for (int i = 0; i < LINKS && right; i++) {
        right = table->stream_host_task(streams[i], add_one, &values[i], error) >= 0 &&
                table->event_record(event, streams[i], error) >= 0 &&
                table->stream_wait_event(streams[(i + 1) % LINKS], event, error) >= 0 &&
                table->mem_copy_async(streams[(i + 1) % LINKS], &values[i + 1], &values[i],
                                      sizeof(values[0]), DS_ACCEL_COPY_INFER, error) >= 0;
    }
    return right && table->mem_free_async(streams[0], memory, NULL, 0, error) >= 0;
}

/* Create short-lived streams with a graph launched on each and events between them. */
static bool async_streams(unsigned thread)
{
    const struct ds_accel_plugin *table = ds_accel_device_table(shared_device);
    ds_accel_plugin_device_t *device = ds_accel_device_handle(shared_device);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_event_t *next;
    ds_accel_plugin_event_t *event = NULL;
    bool right = table->event_create(device, 0, &event, &error) >= 0;

    shared_events[thread] = event;
    pthread_barrier_wait(&between);
    next = shared_events[(thread + 1) % THREADS];
    for (int round = 0; round < ROUNDS && right; round++) {
        ds_accel_plugin_stream_t *streams[LINKS] = {NULL};
        ds_accel_plugin_graph_exec_t *exec = NULL;
        ds_accel_plugin_graph_t *graph = NULL;
        uint64_t values[LINKS + 1] = {0};
        uint64_t tasks = 0;

        for (int i = 0; i < LINKS; i++) {
            right = right && table->stream_create(device, 0, 0, &streams[i], &error) >= 0;
        }
        right = right && hand_on(table, streams, event, values, &error) &&
                table->graph_capture_begin(streams[1], 0, &error) >= 0 &&
                table->stream_host_task(streams[1], add_one, &tasks, &error) >= 0 &&
                table->graph_capture_end(streams[1], &graph, &error) >= 0 &&
                table->graph_instantiate(graph, 0, &exec, &error) >= 0;
        for (int i = 0; i < LINKS && right; i++) {
            right = table->graph_launch(exec, streams[i], &error) >= 0;
        }
        right = right && table->event_query(next, &error) >= 0 &&
                table->event_synchronize(next, UINT64_MAX, &error) >= 0;
        table->graph_exec_destroy(exec);
        table->graph_destroy(graph);
        for (int i = 0; i < LINKS; i++) {
            table->stream_destroy(streams[i]); /* destroyed with work left */
        }
        right = table->device_synchronize(device, UINT64_MAX, &error) >= 0 && right &&
                values[LINKS] == LINKS && tasks == LINKS;
    }
    if (!right) {
        printf("thread %u: %s\n", thread, error.message);
    }
    pthread_barrier_wait(&between);
    table->event_destroy(event);
    return right;
}

/* Two threads add work to one capture, each on its own stream; thread 0 joins the streams and
   launches the graph. */
static struct {
    ds_accel_plugin_stream_t *streams[2];
    ds_accel_plugin_event_t *events[2];
    uint64_t counts[2];
} captured;

#define CAPTURED 200

static bool capture_part(const struct ds_accel_plugin *table, unsigned thread,
                         struct ds_accel_error *error)
{
    bool right = true;

    for (int i = 0; i < CAPTURED && right; i++) {
        right = table->stream_host_task(captured.streams[thread], add_one, &captured.counts[thread],
                                        error) >= 0;
    }
    return right;
}

static bool one_capture(unsigned thread)
{
    const struct ds_accel_plugin *table = ds_accel_device_table(shared_device);
    ds_accel_plugin_device_t *device = ds_accel_device_handle(shared_device);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_graph_exec_t *exec = NULL;
    ds_accel_plugin_graph_t *graph = NULL;
    bool right = table->stream_create(device, 0, 0, &captured.streams[thread], &error) >= 0 &&
                 table->event_create(device, 0, &captured.events[thread], &error) >= 0;

    if (right && thread == 0) {
        right = table->graph_capture_begin(captured.streams[0], 0, &error) >= 0 &&
                table->event_record(captured.events[0], captured.streams[0], &error) >= 0;
    }
    pthread_barrier_wait(&barrier);
    if (right && thread == 1) {
        right = table->stream_wait_event(captured.streams[1], captured.events[0], &error) >= 0;
    }
    right = right && capture_part(table, thread, &error);
    if (right && thread == 1) {
        right = table->event_record(captured.events[1], captured.streams[1], &error) >= 0;
    }
    pthread_barrier_wait(&barrier);
    if (right && thread == 0) {
        right = table->stream_wait_event(captured.streams[0], captured.events[1], &error) >= 0 &&
                table->graph_capture_end(captured.streams[0], &graph, &error) >= 0 &&
                table->graph_instantiate(graph, 0, &exec, &error) >= 0 &&
                table->graph_launch(exec, captured.streams[0], &error) >= 0 &&
                table->stream_synchronize(captured.streams[0], UINT64_MAX, &error) >= 0 &&
                captured.counts[0] == CAPTURED && captured.counts[1] == CAPTURED;
    }
    pthread_barrier_wait(&barrier);
    if (!right) {
        printf("thread %u: %s\n", thread, error.message);
    }
    table->graph_exec_destroy(exec);
    table->graph_destroy(graph);
    table->event_destroy(captured.events[thread]);
    table->stream_destroy(captured.streams[thread]);
    return right;
}

/* ---- random numbers and tensors -------------------------------------------------------------- */

/* Used by all threads at once: the default generator, and views of this tensor, some through
   DLPack. */
static ds_accel_tensor_t *shared_tensor;
static ds_accel_tensor_t *shared_views[THREADS];

static bool numbers_and_tensors(unsigned thread)
{
    const int64_t shape[] = {100};
    bool right = true;

    for (unsigned round = 0; round < ROUNDS && right; round++) {
        ds_accel_tensor_t *own = NULL;
        ds_accel_tensor_t *view = NULL;
        ds_accel_tensor_t *again = NULL;
        ds_accel_rng_t *rng = NULL;
        void *managed = NULL;

        right = ds_accel_default_rng(shared_device, &rng) >= 0 &&
                ds_accel_tensor_create(shared_device, DS_ACCEL_DTYPE_FLOAT32, 1, shape, &own) >=
                    0 &&
                ds_accel_rng_normal(rng, NULL, ds_accel_tensor_data(own), 100,
                                    DS_ACCEL_DTYPE_FLOAT32, 0, 1) >= 0 &&
                (round % 8 != thread % 8 || ds_accel_manual_seed_all(shared, thread) >= 0) &&
                ds_accel_tensor_get(shared_tensor) == shared_tensor &&
                ds_accel_tensor_slice(shared_tensor, 0, thread, thread + 1, 1, &view) >= 0 &&
                ds_accel_tensor_zero(view, NULL) >= 0 &&
                ds_accel_tensor_to_dlpack(shared_tensor, 0, 0, &managed) >= 0 &&
                ds_accel_tensor_from_dlpack(shared, managed, 0, &again) >= 0;
        ds_accel_tensor_put(shared_tensor);
        ds_accel_tensor_put(again);
        ds_accel_tensor_put(view);
        ds_accel_tensor_put(own);
    }
    return right;
}

/* The device and the context are destroyed already; releasing the last view frees both. */
static bool put_last(unsigned thread)
{
    ds_accel_tensor_put(shared_views[thread]);
    return true;
}

static bool make_views(void)
{
    const int64_t shape[] = {THREADS, 3};
    bool right =
        ds_accel_tensor_create(shared_device, DS_ACCEL_DTYPE_INT64, 2, shape, &shared_tensor) >= 0;

    for (unsigned i = 0; i < THREADS && right; i++) {
        right = ds_accel_tensor_slice(shared_tensor, 0, i, i + 1, 1, &shared_views[i]) >= 0;
    }
    return right;
}

struct job {
    part_t part;
    unsigned thread;
    bool right;
};

static void *run_part(void *data)
{
    struct job *job = data;

    pthread_barrier_wait(&barrier);
    job->right = job->part(job->thread);
    return NULL;
}

bool run(part_t part, unsigned count)
{
    pthread_t threads[FIRST_THREADS];
    struct job jobs[FIRST_THREADS];
    bool right = true;

    pthread_barrier_init(&barrier, NULL, count);
    for (unsigned i = 0; i < count; i++) {
        jobs[i] = (struct job){.part = part, .thread = i};
        if (pthread_create(&threads[i], NULL, run_part, &jobs[i]) != 0) {
            abort();
        }
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        right = right && jobs[i].right;
    }
    pthread_barrier_destroy(&barrier);
    return right;
}

static unsigned passed;
static unsigned failed;

void check(const char *name, bool right)
{
    passed += right;
    failed += !right;
    if (!right) {
        printf("FAILED: %s: %s\n", name, ds_accel_last_error());
    }
}

/* ---- all scenarios --------------------------------------------------------------------------- */

void with_shared(ds_accel_t *context)
{
    shared = context;
    lazy_calls = 0;
    check("lazy calls", shared != NULL && run(call_lazily, THREADS));
    check("lazy calls, once each", lazy_calls == THREADS * ROUNDS);
    if (ds_accel_compile_backend(shared, compile_backend, sizeof(compile_backend)) < 0) {
        compile_backend[0] = '\0';
    }
    check("facts", run(ask_facts, THREADS));
    check("one context", run(one_context, THREADS));
    check("open devices", run(open_devices, THREADS));
    if (ds_accel_device_open(shared, 0, &shared_device) >= 0) {
        check("one device", run(one_device, THREADS));
        check("pinned pool", run(pinned_pool, THREADS));
        check("streams that come and go", run(streams_come_and_go, THREADS));
        check("history", run(history, THREADS));
        check("views of one tensor", make_views());
        check("random numbers and tensors", run(numbers_and_tensors, THREADS));
        ds_accel_tensor_put(shared_tensor);
        ds_accel_device_close(shared_device);
    } else {
        check("one device", false);
    }
    ds_accel_destroy(shared);
    check("tensors that outlive the context", run(put_last, THREADS));
    check("the last one ends it",
          ds_accel_device_synchronize(shared_device) == DS_ACCEL_ERR_INVALID);
}

/* Run scenarios on cpu with asynchronous workers. */
static void with_workers(void)
{
    setenv("DS_ACCEL_CPU_ASYNC", "true", 1);
    shared = create_with("cpu", 0);
    pthread_barrier_init(&between, NULL, THREADS);
    if (shared != NULL && ds_accel_detect(shared) >= 0 &&
        ds_accel_device_open(shared, 0, &shared_device) >= 0) {
        check("one device with workers", run(one_device, THREADS));
        check("streams with workers", run(async_streams, THREADS));
        check("one capture of two threads", run(one_capture, 2));
        check("recordings, and others", run(record_and_look, THREADS));
        ds_accel_device_close(shared_device);
    } else {
        check("a device with workers", false);
    }
    pthread_barrier_destroy(&between);
    ds_accel_destroy(shared);
    unsetenv("DS_ACCEL_CPU_ASYNC");
}

/* Use each of the allocator's paths to allocate and release memory, while streams are created and
   destroyed. */
void with_allocator(const char *accelerator, const char *settings)
{
    char name[128];
    bool right;

    snprintf(name, sizeof(name), "streams that come and go: %s", settings);
    setenv("DS_ACCEL_ALLOCATOR", settings, 1);
    shared = create_with(accelerator, 0);
    right = shared != NULL && ds_accel_detect(shared) >= 0 &&
            ds_accel_device_open(shared, 0, &shared_device) >= 0;
    check(name, right && run(streams_come_and_go, THREADS) && run(history, THREADS));
    if (right) {
        ds_accel_device_close(shared_device);
    }
    ds_accel_destroy(shared);
    unsetenv("DS_ACCEL_ALLOCATOR");
}

/* Run a scenario with all layers; the trace file is /dev/null. */
void with_layers(const char *accelerator)
{
    bool right;

    setenv("DS_ACCEL_LAYERS", "trace,validate,leak", 1);
    setenv("DS_ACCEL_TRACE_FILE", "/dev/null", 1);
    shared = create_with(accelerator, 0);
    right = shared != NULL && ds_accel_detect(shared) >= 0 &&
            ds_accel_device_open(shared, 0, &shared_device) >= 0;
    check("layers", right && run(layered_device, THREADS));
    if (right) {
        ds_accel_device_close(shared_device);
    }
    ds_accel_destroy(shared);
    unsetenv("DS_ACCEL_LAYERS");
    unsetenv("DS_ACCEL_TRACE_FILE");
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* Many threads get the default context at once; the plugin appends a byte to a file at each
   probe. */
static void first_get(const char *build)
{
    char directory[] = "/tmp/ds-accel-threads-XXXXXX";
    char path[512];
    char count[64];
    struct stat info = {0};

    if (mkdtemp(directory) == NULL) {
        abort();
    }
    snprintf(path, sizeof(path), "%s/tests/fixtures/faults/count", build);
    snprintf(count, sizeof(count), "%s/count", directory);
    setenv("DS_ACCEL_PLUGIN_PATH", path, 1);
    setenv("DS_ACCELERATOR", "counted", 1);
    setenv("DS_ACCEL_CACHE_DIR", directory, 1);
    setenv("DS_TEST_COUNT_FILE", count, 1);
    check("first get", run(get_first, FIRST_THREADS));
    check("first get: one probe for all", stat(count, &info) == 0 && info.st_size == 1);
    nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Create contexts whose configuration is cached. The configuration is cached only if the files of
   the build are old enough. */
static void with_remembered(void)
{
    struct ds_accel_options options = {.struct_size = sizeof(options)};
    char directory[] = "/tmp/ds-accel-threads-XXXXXX";

    if (mkdtemp(directory) == NULL) {
        abort();
    }
    options.flags = DS_ACCEL_OPTION_NO_USER_CONFIG | DS_ACCEL_OPTION_NO_ENVIRONMENT;
    options.accelerator = "cpu";
    options.cache_dir = directory;
    for (int round = 0; round < ROUNDS / 4; round++) {
        check("a remembered configuration",
              ds_accel_create(&options, &shared) >= 0 &&
                  (round == 0 ? ds_accel_detect(shared) >= 0 : run(look_first, THREADS)));
        ds_accel_destroy(shared);
    }
    nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void with_host(const char *build)
{
    first_get(build);
    with_remembered();
    check("contexts of their own", run(own_contexts, THREADS));
    with_shared(create("cpu"));
    with_shared(create("mock"));
    with_layers("mock");
    with_workers();
    with_allocator("mock", "growable_segments=true");
    with_allocator("mock", "growable_segments=true,medium_segment_bytes=2MiB,gc_threshold=0.5");
    with_allocator("mock", "off");
    with_allocator("mock", "debug");
    with_changes();
    check("nothing was complained of", complaints == 0);
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: threads BUILD [VENDOR [lost]]\n");
        return 2;
    }
    setenv("LOCAL_SIZE", "2", 1);
    snprintf(plugins, sizeof(plugins), "%s/%s", argv[1],
             argc == 2 ? "tests/fixtures/mocks" : "lib/ds-accel");
    if (argc == 2) {
        with_host(argv[1]);
    } else if (argc == 3) {
        with_vendor(argv[2]);
    } else {
        with_loss(argv[2]);
    }
    printf("threads%s%s%s: %u passed, %u failed\n", argc > 2 ? " " : "", argc > 2 ? argv[2] : "",
           argc > 3 ? " lost" : "", passed, failed);
    return failed != 0;
}
