/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Many threads at once, for the thread sanitizer: a plain program, since Criterion's sandbox cannot
 * map its memory under that sanitizer.  threads BUILD
 */
#include "ds_accel.h"

#include <ftw.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define THREADS 16
#define FIRST_THREADS 100
#define ROUNDS 20

static char mocks[512];
static pthread_barrier_t barrier;
static ds_accel_t *shared; /* a context that all threads use */
static ds_accel_device_t *shared_device;

/* One thread's part of a scenario; false if an answer was wrong. */
typedef bool (*part_t)(unsigned thread);

static ds_accel_t *create(const char *accelerator)
{
    struct ds_accel_options options = {.struct_size = sizeof(options)};
    const char *dirs[] = {mocks};
    ds_accel_t *context = NULL;

    options.flags = DS_ACCEL_OPTION_NO_USER_CONFIG | DS_ACCEL_OPTION_NO_ENVIRONMENT |
                    DS_ACCEL_OPTION_NO_CACHE;
    options.accelerator = accelerator;
    options.plugin_dirs = dirs;
    options.plugin_dir_count = 1;
    return ds_accel_create(&options, &context) >= 0 ? context : NULL;
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

/* A stream, an event and memory of its own per thread, on one device. */
static bool one_device(unsigned thread)
{
    const struct ds_accel_plugin *table = ds_accel_device_table(shared_device);
    ds_accel_plugin_device_t *device = ds_accel_device_handle(shared_device);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
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

/* Two streams per thread that take turns by an event, and what layers are asked meanwhile. */
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

        right = table->stream_create(device, 0, 0, &streams[0], &error) >= 0 &&
                table->stream_create(device, 0, 0, &streams[1], &error) >= 0 &&
                table->event_create(device, 0, &event, &error) >= 0 &&
                table->mem_alloc(device, 64, 0, 0, &memory, &error) >= 0 &&
                table->mem_fill_async(streams[0], memory, "x", 1, 64, &error) >= 0 &&
                table->event_record(event, streams[0], &error) >= 0 &&
                table->stream_wait_event(streams[1], event, &error) >= 0 &&
                ds_accel_note_access(device, streams[1], memory, 64, DS_ACCEL_ACCESS_WRITE) >= 0 &&
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

static bool open_devices(unsigned thread)
{
    bool right = true;

    for (int round = 0; round < ROUNDS; round++) {
        struct ds_accel_device_info info = {.struct_size = sizeof(info)};
        struct ds_accel_memory_info memory = {.struct_size = sizeof(memory)};
        ds_accel_device_t *device;
        uint32_t current;

        right = right && ds_accel_device_open(shared, thread % 2, &device) >= 0 &&
                ds_accel_device_info(device, &info) >= 0 &&
                ds_accel_device_memory(device, &memory) >= 0 &&
                ds_accel_current_device(shared, &current) >= 0;
        if (right) {
            ds_accel_device_close(device);
        }
    }
    return right;
}

/* ---- running them --------------------------------------------------------------------------- */

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

static bool run(part_t part, unsigned count)
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

static void check(const char *name, bool right)
{
    passed += right;
    failed += !right;
    if (!right) {
        printf("FAILED: %s: %s\n", name, ds_accel_last_error());
    }
}

static void with_shared(const char *accelerator)
{
    shared = create(accelerator);
    check("one context", shared != NULL && run(one_context, THREADS));
    check("open devices", run(open_devices, THREADS));
    if (ds_accel_device_open(shared, 0, &shared_device) >= 0) {
        check("one device", run(one_device, THREADS));
        ds_accel_device_close(shared_device);
    } else {
        check("one device", false);
    }
    ds_accel_destroy(shared);
}

/* All layers over the mock, whose file of the trace is dropped. */
static void with_layers(void)
{
    struct ds_accel_options options = {.struct_size = sizeof(options),
                                       .flags = DS_ACCEL_OPTION_NO_USER_CONFIG |
                                                DS_ACCEL_OPTION_NO_CACHE,
                                       .accelerator = "mock"};
    bool right;

    setenv("DS_ACCEL_LAYERS", "trace,validate,leak", 1);
    setenv("DS_ACCEL_TRACE_FILE", "/dev/null", 1);
    shared = NULL;
    right = ds_accel_create(&options, &shared) >= 0 && ds_accel_detect(shared) >= 0 &&
            ds_accel_device_open(shared, 0, &shared_device) >= 0;
    check("layers", right && run(layered_device, THREADS));
    if (right) {
        ds_accel_device_close(shared_device);
    }
    ds_accel_destroy(shared);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* The default context, of the environment: the plugin leaves a byte in a file for each probe. */
static void first_get(const char *build)
{
    char folder[] = "/tmp/ds-accel-threads-XXXXXX";
    char plugins[512];
    char count[64];
    struct stat info = {0};

    if (mkdtemp(folder) == NULL) {
        abort();
    }
    snprintf(plugins, sizeof(plugins), "%s/tests/fixtures/faults/count", build);
    snprintf(count, sizeof(count), "%s/count", folder);
    setenv("DS_ACCEL_PLUGIN_PATH", plugins, 1);
    setenv("DS_ACCELERATOR", "counted", 1);
    setenv("DS_ACCEL_CACHE_DIR", folder, 1);
    setenv("DS_TEST_COUNT_FILE", count, 1);
    check("first get", run(get_first, FIRST_THREADS));
    check("first get: one probe for all", stat(count, &info) == 0 && info.st_size == 1);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: threads BUILD\n");
        return 2;
    }
    setenv("LOCAL_SIZE", "2", 1);
    snprintf(mocks, sizeof(mocks), "%s/tests/fixtures/mocks", argv[1]);
    first_get(argv[1]);
    check("contexts of their own", run(own_contexts, THREADS));
    with_shared("cpu");
    with_shared("mock");
    with_layers();
    printf("threads: %u passed, %u failed\n", passed, failed);
    return failed != 0;
}
