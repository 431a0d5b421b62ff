/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Fail the Nth allocation, for every N until none fails: each scenario must end with a status, leak
 * nothing, and give the right answer once memory suffices. malloc() and its kin are this program's
 * own in front of glibc's, so every library in the process is covered: jansson, libltdl and the
 * dynamic linker too.  alloc BUILD SOURCE
 */
#include "ds_accel.h"

#include <dlfcn.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *pointer);

static bool counting;
static unsigned long calls;   /* since counting began */
static unsigned long fail_at; /* the call that fails; 0: none */
static long live;             /* blocks made minus blocks freed while counting */

static bool must_fail(void)
{
    if (!counting) {
        return false;
    }
    if (++calls == fail_at) {
        errno = ENOMEM;
        return true;
    }
    return false;
}

static void *made(void *pointer)
{
    live += counting && pointer != NULL;
    return pointer;
}

/* Seen by every library of the process, whatever the tests are compiled with. */
#pragma GCC visibility push(default)

void *malloc(size_t size)
{
    return must_fail() ? NULL : made(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return must_fail() ? NULL : made(__libc_calloc(count, size));
}

void *realloc(void *pointer, size_t size)
{
    void *moved;

    if (must_fail()) {
        return NULL;
    }
    moved = __libc_realloc(pointer, size);
    live += counting && pointer == NULL && moved != NULL;
    return moved;
}

int posix_memalign(void **pointer_out, size_t align, size_t size)
{
    if (must_fail()) {
        return ENOMEM;
    }
    *pointer_out = made(__libc_memalign(align, size));
    return *pointer_out != NULL ? 0 : ENOMEM;
}

void *aligned_alloc(size_t align, size_t size)
{
    return must_fail() ? NULL : made(__libc_memalign(align, size));
}

void free(void *pointer)
{
    live -= counting && pointer != NULL;
    __libc_free(pointer);
}

/*
 * jansson's parser as one allocation that can fail: its lexer does not survive a failure inside (it
 * cuts texts or meets an assertion, 2.14), which the library avoids by asking for headroom first.
 */
json_t *json_loadb(const char *buffer, size_t size, size_t flags, json_error_t *error)
{
    static json_t *(*real)(const char *, size_t, size_t, json_error_t *);
    unsigned long kept = fail_at;
    unsigned long before;
    json_t *value;

    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "json_loadb");
    }
    if (must_fail()) {
        if (error != NULL) {
            memset(error, 0, sizeof(*error));
            error->text[JSON_ERROR_TEXT_LENGTH - 1] = json_error_out_of_memory;
        }
        return NULL;
    }
    before = calls;
    fail_at = 0;
    value = real(buffer, size, flags, error);
    fail_at = kept;
    calls = before;
    return value;
}

#pragma GCC visibility pop

/* ---- scenarios ------------------------------------------------------------------------------ */

static char share[512];
static char etc[512];
static char plugins[512];
static char bad[512];
static char broken[512];
static char machine[512];
static char snapshot[512];
static char trace[512];
static char crashing[512];
static char remembered[] = "/tmp/ds-accel-alloc-XXXXXX"; /* the folder of the cache */
static char verdicts[sizeof(remembered) + 16];
static const char *plugin_dirs[] = {plugins};

static struct ds_accel_options make_options(void)
{
    struct ds_accel_options options = {.struct_size = sizeof(options)};

    options.flags = DS_ACCEL_OPTION_NO_USER_CONFIG | DS_ACCEL_OPTION_NO_ENVIRONMENT |
                    DS_ACCEL_OPTION_NO_CACHE;
    options.package_config_dir = share;
    options.system_config_dir = etc;
    options.plugin_dirs = plugin_dirs;
    options.plugin_dir_count = 1;
    return options;
}

static int32_t make_context(void)
{
    struct ds_accel_options options = make_options();
    ds_accel_t *context;
    int32_t status = ds_accel_create(&options, &context);

    if (status >= 0) {
        ds_accel_destroy(context);
    }
    return status;
}

static int32_t check_config(void)
{
    struct ds_accel_options options = make_options();
    char *text = NULL;
    int32_t status = ds_accel_config_check(&options, DS_ACCEL_FORMAT_JSON, &text);

    ds_accel_free_text(text);
    return status;
}

static int32_t check_bad_config(void)
{
    struct ds_accel_options options = make_options();
    char *text = NULL;
    int32_t status;

    options.config_file = bad;
    status = ds_accel_config_check(&options, 0, &text);
    if (status == DS_ACCEL_ERR_CONFIG && strstr(text, "did you mean") != NULL) {
        status = DS_ACCEL_OK;
    }
    ds_accel_free_text(text);
    return status;
}

static struct ds_accel_options make_options_with_cache(void)
{
    struct ds_accel_options options = make_options();

    options.flags &= ~DS_ACCEL_OPTION_NO_CACHE;
    options.cache_dir = remembered;
    return options;
}

static int32_t detect_with(const struct ds_accel_options *options)
{
    ds_accel_t *context;
    int32_t status = ds_accel_create(options, &context);

    if (status < 0) {
        return status;
    }
    status = ds_accel_detect(context);
    if (status >= 0 && strcmp(ds_accel_name(context), "cpu") != 0) {
        status = DS_ACCEL_ERR_INTERNAL;
    }
    ds_accel_destroy(context);
    return status;
}

static int32_t detect(void)
{
    struct ds_accel_options options = make_options();

    return detect_with(&options);
}

static int32_t detect_warm(void)
{
    struct ds_accel_options options = make_options_with_cache();

    return detect_with(&options);
}

static int32_t detect_cold(void)
{
    unlink(verdicts);
    return detect_warm();
}

static int32_t report_with(const struct ds_accel_options *options, uint32_t which, const char *name,
                           uint32_t format)
{
    ds_accel_t *context;
    char *text = NULL;
    int32_t status = ds_accel_create(options, &context);

    if (status < 0) {
        return status;
    }
    status = ds_accel_report(context, which, name, format, &text);
    ds_accel_free_text(text);
    ds_accel_destroy(context);
    return status;
}

static int32_t report(uint32_t which, const char *name, uint32_t format)
{
    struct ds_accel_options options = make_options();

    return report_with(&options, which, name, format);
}

static int32_t report_cache(void)
{
    struct ds_accel_options options = make_options_with_cache();

    return report_with(&options, DS_ACCEL_REPORT_CACHE, NULL, 0);
}

/* Forced, it is asked although the last verdict of it still holds: two strikes at once. */
static void crash_twice(void)
{
    const char *dirs[] = {crashing};
    struct ds_accel_options options = make_options_with_cache();

    options.accelerator = "faulty";
    options.plugin_dirs = dirs;
    detect_with(&options);
    detect_with(&options);
}

static int32_t report_quarantine(void)
{
    struct ds_accel_options options = make_options_with_cache();

    return report_with(&options, DS_ACCEL_REPORT_QUARANTINE, NULL, 0);
}

static int32_t detect_quarantined(void)
{
    const char *dirs[] = {crashing};
    struct ds_accel_options options = make_options_with_cache();

    options.plugin_dirs = dirs;
    return detect_with(&options);
}

static int32_t clear(int32_t (*forget)(ds_accel_t *context))
{
    struct ds_accel_options options = make_options_with_cache();
    ds_accel_t *context;
    int32_t status = ds_accel_create(&options, &context);

    if (status >= 0) {
        status = forget(context);
        ds_accel_destroy(context);
    }
    return status;
}

static int32_t clear_cache(void)
{
    return clear(ds_accel_cache_clear);
}

static int32_t forgive_all(ds_accel_t *context)
{
    return ds_accel_quarantine_clear(context, NULL);
}

static int32_t clear_quarantine(void)
{
    return clear(forgive_all);
}

static int32_t report_list(void)
{
    return report(DS_ACCEL_REPORT_LIST, NULL, 0);
}

static int32_t report_explain(void)
{
    return report(DS_ACCEL_REPORT_EXPLAIN, NULL, DS_ACCEL_FORMAT_JSON);
}

static int32_t report_info(void)
{
    return report(DS_ACCEL_REPORT_INFO, NULL, DS_ACCEL_FORMAT_JSON);
}

static int32_t report_info_absent(void)
{
    return report(DS_ACCEL_REPORT_INFO, "hpu", 0);
}

static int32_t report_env(void)
{
    return report(DS_ACCEL_REPORT_ENV, "hpu", 0);
}

static int32_t report_config(void)
{
    /* Not the op builders' thousand values: the same code runs for each. */
    return report(DS_ACCEL_REPORT_CONFIG_ENV, NULL, DS_ACCEL_FORMAT_JSON);
}

/* A rejected plugin is a problem, and a machine with hardware has nodes and libraries to look at.
 */
static int32_t report_doctor(void)
{
    struct ds_accel_options options = make_options();
    ds_accel_t *context;
    char *text = NULL;
    int32_t status;

    options.machine_root = machine;
    status = ds_accel_create(&options, &context);
    if (status < 0) {
        return status;
    }
    status = ds_accel_report(context, DS_ACCEL_REPORT_DOCTOR, NULL, 0, &text);
    if (status == DS_ACCEL_ERR_STATE && strstr(text, "no_note") != NULL) {
        status = DS_ACCEL_OK;
    }
    ds_accel_free_text(text);
    ds_accel_destroy(context);
    return status;
}

static int32_t lint(void)
{
    struct ds_accel_options options = make_options();
    char *text = NULL;
    int32_t status = ds_accel_lint(&options, broken, DS_ACCEL_FORMAT_JSON, &text);

    ds_accel_free_text(text);
    return status;
}

/* ---- device memory: on one context, so that detecting is not failed once more ---------------- */

static ds_accel_t *memory_context;

/* The memory of handles is kept: enough of them, so that no new one is made later. */
static bool prepare_memory(void)
{
    struct ds_accel_options options = make_options();

    options.accelerator = "mock";
    if (ds_accel_create(&options, &memory_context) < 0 || ds_accel_detect(memory_context) < 0) {
        return false;
    }
    for (int i = 0; i < 300; i++) {
        ds_accel_device_t *device;
        ds_accel_stream_t *streams[2];
        ds_accel_pool_t *pool;
        ds_accel_graph_t *graph;

        if (ds_accel_device_open(memory_context, 0, &device) < 0 ||
            ds_accel_stream_create(device, 0, 0, &streams[0]) < 0 ||
            ds_accel_stream_create(device, 0, 0, &streams[1]) < 0 ||
            ds_accel_pool_create(device, &pool) < 0 || ds_accel_graph_create(device, &graph) < 0) {
            return false;
        }
        ds_accel_device_close(device);
    }
    return true;
}

/* Everything once; what fails for want of memory is not done, what was given is freed. */
static int32_t use_two_streams(ds_accel_device_t *device, ds_accel_stream_t *const *streams)
{
    int32_t worst = DS_ACCEL_OK;

    for (unsigned i = 0; i < 8; i++) {
        uint64_t size_bytes = i % 2 == 0 ? 5000 : UINT64_C(30) << 20;
        void *pointer;
        int32_t status = ds_accel_mem_alloc(device, streams[i / 2 % 2], size_bytes, &pointer);

        if (status >= 0) {
            int32_t recorded = ds_accel_mem_record_stream(device, pointer, streams[1]);

            status = ds_accel_mem_free(device, i % 3 == 0 ? streams[0] : NULL, pointer);
            status = status < 0 ? status : recorded;
        }
        worst = status < 0 ? status : worst;
    }
    return worst;
}

static int32_t capture(ds_accel_device_t *device, ds_accel_stream_t *stream)
{
    ds_accel_graph_t *graph;
    void *pointer;
    int32_t status = ds_accel_graph_create(device, &graph);

    if (status < 0) {
        return status;
    }
    status = ds_accel_graph_capture_begin(graph, stream, NULL, 0);
    if (status >= 0) {
        status = ds_accel_mem_alloc(device, stream, 5000, &pointer);
    }
    ds_accel_graph_destroy(graph);
    return status;
}

static int32_t describe(ds_accel_device_t *device)
{
    void *data = NULL;
    size_t size_bytes;
    char *text = NULL;
    int64_t value;
    int32_t worst =
        ds_accel_memory_snapshot(NULL, device, DS_ACCEL_SNAPSHOT_JSON, &data, &size_bytes);
    int32_t status = ds_accel_memory_stats(device, &text);

    ds_accel_free_text(data);
    ds_accel_free_text(text);
    worst = status < 0 ? status : worst;
    status = ds_accel_memory_stat(device, "allocation.all.current", &value);
    return status < 0 ? status : worst;
}

static int32_t use_memory(void)
{
    ds_accel_device_t *device;
    ds_accel_stream_t *streams[2] = {NULL, NULL};
    ds_accel_pool_t *pool = NULL;
    int32_t status = ds_accel_device_open(memory_context, 0, &device);
    int32_t later;

    if (status < 0) {
        return status;
    }
    status = ds_accel_memory_record_history(device, 3, 100);
    for (unsigned i = 0; i < 2 && status >= 0; i++) {
        status = ds_accel_stream_create(device, 0, 0, &streams[i]);
    }
    if (status >= 0) {
        status = use_two_streams(device, streams);
        later = capture(device, streams[0]);
        status = status < 0 ? status : later;
        later = ds_accel_pool_create(device, &pool);
        ds_accel_pool_destroy(pool);
        status = status < 0 ? status : later;
        later = describe(device);
        status = status < 0 ? status : later;
        ds_accel_stream_destroy(streams[1]);
        later = ds_accel_empty_cache(device);
        status = status < 0 ? status : later;
    }
    ds_accel_device_close(device);
    return status;
}


static int32_t convert(const char *path, uint32_t format)
{
    void *data = NULL;
    size_t size_bytes;
    int32_t status = ds_accel_memory_snapshot_convert(path, format, &data, &size_bytes);

    ds_accel_free_data(data);
    return status;
}

static int32_t show_memory(void)
{
    int32_t status = DS_ACCEL_OK;

    for (uint32_t format = DS_ACCEL_SNAPSHOT_JSON;
         format <= DS_ACCEL_SNAPSHOT_PICKLE_SEGMENTS && status >= 0; format++) {
        status = convert(snapshot, format);
    }
    return status;
}

static int32_t draw_trace(void)
{
    return convert(trace, DS_ACCEL_SNAPSHOT_SVG);
}

static int32_t draw_devices(void)
{
    return report(DS_ACCEL_REPORT_MEMORY, "mock", DS_ACCEL_FORMAT_SVG);
}

static const struct {
    const char *name;
    int32_t (*run)(void);
} scenarios[] = {
    {"configuration and scan", make_context},
    {"config check", check_config},
    {"config check of a bad file", check_bad_config},
    {"detect", detect},
    {"detect with a cold cache", detect_cold},
    {"detect with a warm cache", detect_warm},
    {"detect with a quarantined plugin", detect_quarantined},
    {"cache show", report_cache},
    {"quarantine list", report_quarantine},
    {"cache clear", clear_cache},
    {"quarantine clear", clear_quarantine},
    {"list", report_list},
    {"explain", report_explain},
    {"info", report_info},
    {"info of an absent backend", report_info_absent},
    {"env", report_env},
    {"config show --env", report_config},
    {"doctor", report_doctor},
    {"lint", lint},
    {"device memory", use_memory},
    {"memory show", show_memory},
    {"memory show --svg with a trace", draw_trace},
    {"info --memory-map", draw_devices},
};

/* Run with the Nth allocation failing; true if all of it went right. *reached_out: it has an Nth.
 */
static bool run_once(size_t scenario, unsigned long nth, bool *reached_out)
{
    int32_t status;
    unsigned long made_calls;
    long left;

    calls = 0;
    live = 0;
    fail_at = nth;
    counting = true;
    status = scenarios[scenario].run();
    counting = false;
    made_calls = calls;
    left = live;
    *reached_out = nth != 0 && made_calls >= nth;
    if (left != 0) {
        printf("FAILED: %s, allocation %lu: %ld blocks leaked\n", scenarios[scenario].name, nth,
               left);
        return false;
    }
    if (!*reached_out && status != DS_ACCEL_OK) {
        printf("FAILED: %s with enough memory: %s: %s\n", scenarios[scenario].name,
               ds_accel_status_name(status), ds_accel_last_error());
        return false;
    }
    return true;
}

static void remove_cache(void)
{
    static const char *const names[] = {"verdicts", "config", "lock"};
    char path[sizeof(verdicts)];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", remembered, names[i]);
        unlink(path);
    }
    rmdir(remembered); /* unless there is something that should not be there */
}

int main(int argc, char **argv)
{
    unsigned long passed = 0;
    unsigned long failed = 0;

    if (argc != 3) {
        fprintf(stderr, "usage: alloc BUILD SOURCE\n");
        return 2;
    }
    snprintf(share, sizeof(share), "%s/conf", argv[2]);
    snprintf(etc, sizeof(etc), "%s/tests/alloc/etc", argv[2]);
    snprintf(bad, sizeof(bad), "%s/tests/alloc/bad.json", argv[2]);
    snprintf(machine, sizeof(machine), "%s/tests/machines/suspended-gpu", argv[2]);
    snprintf(snapshot, sizeof(snapshot), "%s/tests/fixtures/memory/torch_1.json", argv[2]);
    snprintf(trace, sizeof(trace), "%s/tests/fixtures/memory/traces.json", argv[2]);
    snprintf(plugins, sizeof(plugins), "%s/tests/fixtures/no_note", argv[1]);
    snprintf(broken, sizeof(broken), "%s/tests/fixtures/none/ds_accel_none.so", argv[1]);
    snprintf(crashing, sizeof(crashing), "%s/tests/fixtures/faults/probe_segv", argv[1]);
    if (mkdtemp(remembered) == NULL) {
        return 2;
    }
    snprintf(verdicts, sizeof(verdicts), "%s/verdicts", remembered);
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        bool reached = true;

        if (scenarios[i].run == detect_quarantined) {
            crash_twice();
        }

        if (scenarios[i].run == use_memory && !prepare_memory()) {
            printf("FAILED: device memory: %s\n", ds_accel_last_error());
            return 1;
        }
        /* Twice first: modules and one-time tables of the libraries stay for good. */
        scenarios[i].run();
        scenarios[i].run();
        if (!run_once(i, 0, &reached)) {
            failed++;
        }
        if (calls == 0) {
            printf("FAILED: %s: no allocation was seen\n", scenarios[i].name);
            failed++;
        }
        reached = true;
        for (unsigned long nth = 1; reached; nth++) {
            if (run_once(i, nth, &reached)) {
                passed++;
            } else {
                failed++;
            }
        }
    }
    ds_accel_destroy(memory_context);
    remove_cache();
    printf("alloc: %lu passed, %lu failed\n", passed, failed);
    return failed != 0;
}
