/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Fails the Nth allocation of each scenario, for every N until the scenario completes without a
 * failure. Without $FULL, N advances by STEP from a start that $SEED chooses. Each scenario must
 * return a status, leak nothing, and return the correct result once memory suffices. If the status
 * is OK although an allocation failed, the result must equal the result of an undisturbed run.
 * Several processes share the scenarios.
 *
 *     alloc JOBS BUILD SOURCE [SCENARIO]
 */
#include "alloc/allocations.h"
#include "built.h"
#include "ds_accel_tools.h"
#include "ops/op.h"

#include <dlfcn.h>
#include <dlpack/dlpack.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- results of a scenario ------------------------------------------------------------------- */

#define ANSWER_LIMIT_BYTES (8u << 20)

/* Result text of the running scenario, stored without an allocation. */
static char given[ANSWER_LIMIT_BYTES];
static size_t given_bytes;
/* Result text of an undisturbed run, and of a second undisturbed run when lines differ. */
static char expected[ANSWER_LIMIT_BYTES];
static char fresh[ANSWER_LIMIT_BYTES];

static void answer_bytes(const void *data, size_t size_bytes)
{
    size_t left = sizeof(given) - 2 - given_bytes;

    size_bytes = size_bytes < left ? size_bytes : left;
    memcpy(given + given_bytes, data, size_bytes);
    given_bytes += size_bytes;
    given[given_bytes++] = '\n';
    given[given_bytes] = '\0';
}

void answer(const char *text)
{
    text = text != NULL ? text : "(none)";
    answer_bytes(text, strlen(text));
}

static size_t line_length(const char *text)
{
    return strcspn(text, "\n");
}

static bool is_same_line(const char *one, const char *other)
{
    size_t length = line_length(one);

    return length == line_length(other) && memcmp(one, other, length) == 0;
}

/* True if the lines are equal apart from numbers. */
static bool is_like_line(const char *one, const char *other)
{
    static const char digits[] = " 0123456789abcdef.";

    one += strspn(one, digits);
    other += strspn(other, digits);
    while (*one != '\0' && *one != '\n' && *one == *other) {
        one++;
        other++;
        one += strspn(one, digits);
        other += strspn(other, digits);
    }
    return (*one == '\0' || *one == '\n') && (*other == '\0' || *other == '\n');
}

/*
 * True if the line at `at` only lacks something that may be lost while the status is still OK:
 * evidence (empty then), a fact (null then), the model of the processor ("cpu" then), or the
 * position of a problem in a file (the file's start then). Results may not be lost. Times within
 * evidence may differ too.
 */
static bool is_only_less(const char *wanted, const char *at)
{
    static const char *const evidence[] = {"detail: ", "\"detail\": \"", "\"evidence\": \""};
    static const char *const unknown[] = {": null", ": null,", "\"name\": \"cpu\","};
    const char *place = strstr(at, ".json:1:1: ");
    size_t length = line_length(at);

    for (size_t i = 0; i < sizeof(evidence) / sizeof(evidence[0]); i++) {
        const char *part = strstr(at, evidence[i]);
        size_t head = part != NULL ? (size_t)(part - at) + strlen(evidence[i]) : 0;

        if (part != NULL && head <= length && memcmp(wanted, at, head) == 0 &&
            (head == length || at[head] == '"' || is_like_line(wanted, at))) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        size_t size = strlen(unknown[i]);

        if (length > size && memcmp(at + length - size, unknown[i], size) == 0 &&
            strncmp(wanted, at, strcspn(at, ":")) == 0) {
            return true;
        }
    }
    if (length > 1 && length < line_length(wanted) && memcmp(wanted, at, length) == 0 &&
        (strncmp(wanted + length, ": ", 2) == 0 || memcmp(at + length - 2, ": ", 2) == 0)) {
        return true; /* in a text report: "no_note: evidence" */
    }
    return place != NULL && place < at + length &&
           strncmp(wanted, at, (size_t)(place - at) + strlen(".json:")) == 0;
}

static const char *next_line(const char *text)
{
    text += line_length(text);
    return *text == '\n' ? text + 1 : text;
}

/* True if the line has a duration or a time of day, which can be equal in two runs by chance. */
static bool is_of_time(const char *line)
{
    static const char *const words[] = {"elapsed_us", "until"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (memmem(line, line_length(line), words[i], strlen(words[i])) != NULL) {
            return true;
        }
    }
    return false;
}

/* Find the first line that differs from the undisturbed run's; NULL if none does. Times and free
 * memory change from run to run, so a line that differs between the two undisturbed runs may differ
 * in its numbers. */
static const char *find_difference(const char **wanted_out)
{
    const char *wanted = expected;
    const char *again = fresh;
    const char *at = given;

    while (*wanted != '\0' || *at != '\0') {
        bool is_steady = is_same_line(wanted, again) && !is_of_time(wanted);

        if (!is_same_line(wanted, at) && !is_only_less(wanted, at) &&
            (is_steady || !is_like_line(wanted, at))) {
            *wanted_out = wanted;
            return at;
        }
        wanted = next_line(wanted);
        again = next_line(again);
        at = next_line(at);
    }
    return NULL;
}

/* ---- scenarios ------------------------------------------------------------------------------ */

static const char *build_dir;
static char share[512];
static char etc[512];
static char plugins[512];
static char bad[512];
static char layered[512];
static char broken[512];
static char machine[512];
static char recording[512];
static char snapshot[512];
static char trace[512];
static char crashing[512];
static char ending[512]; /* directory of a plugin that exits the process that starts it */
static char asynchronous[512];
static char slow[512];
static char looked_for[512];
static char refusing[512];
static char absent[512];
static char remembered[] = "/tmp/ds-accel-alloc-XXXXXX"; /* cache directory */
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

    answer(text);
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
    answer(text);
    ds_accel_free_text(text);
    return status;
}

/* ---- work on queues ---- */

/* Device for the queued work: opened by the first run, which is not counted. */
static ds_accel_device_t *open_queues(void)
{
    static ds_accel_t *context;
    static ds_accel_device_t *device;
    struct ds_accel_options options = make_options();

    options.config_file = asynchronous;
    options.plugin_dir_count = 0;
    if (device == NULL && ds_accel_create(&options, &context) >= 0 &&
        ds_accel_detect(context) >= 0) {
        ds_accel_device_open(context, 0, &device);
    }
    return device;
}

struct queued {
    const struct ds_accel_plugin *table;
    ds_accel_plugin_device_t *device;
    ds_accel_plugin_stream_t *streams[2];
    ds_accel_plugin_event_t *events[2];
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_graph_exec_t *exec;
    unsigned char bytes[4];
    struct ds_accel_error error;
};

static int32_t copy_byte(struct queued *work, int stream, int to, int from)
{
    return work->table->mem_copy_async(work->streams[stream], &work->bytes[to], &work->bytes[from],
                                       1, DS_ACCEL_COPY_INFER, &work->error);
}

/* Copy byte 0 to 1 on the first stream, 1 to 2 on the second, and 2 to 3 on the first. */
static int32_t capture_graph(struct queued *work)
{
    const struct ds_accel_plugin *table = work->table;
    struct ds_accel_error *error = &work->error;
    int32_t status = table->graph_capture_begin(work->streams[0], 0, error);

    for (int i = 0; i < 3 && status >= 0; i++) {
        status = copy_byte(work, i % 2, i + 1, i);
        if (status >= 0 && i < 2) {
            status = table->event_record(work->events[i], work->streams[i], error);
        }
        if (status >= 0 && i < 2) {
            status = table->stream_wait_event(work->streams[1 - i], work->events[i], error);
        }
    }
    if (status >= 0) {
        status = table->graph_capture_end(work->streams[0], &work->graph, error);
    }
    return status < 0 ? status : table->graph_instantiate(work->graph, 0, &work->exec, error);
}

static int32_t fill_queues(struct queued *work)
{
    const struct ds_accel_plugin *table = work->table;
    struct ds_accel_error *error = &work->error;
    void *memory = NULL;
    int32_t status = DS_ACCEL_OK;

    for (int i = 0; i < 2 && status >= 0; i++) {
        status = table->stream_create(work->device, 0, 0, &work->streams[i], error);
        if (status >= 0) {
            status = table->event_create(work->device, 0, &work->events[i], error);
        }
    }
    status = status < 0 ? status : capture_graph(work);
    for (int i = 0; i < 2 && status >= 0; i++) {
        status = table->graph_launch(work->exec, work->streams[i], error);
    }
    if (status >= 0) {
        status = table->mem_alloc_async(work->streams[0], 100, 0, work->events, 2, &memory, error);
    }
    if (status >= 0) {
        status = table->mem_fill_async(work->streams[0], memory, "\1", 1, 100, error);
    }
    if (memory != NULL &&
        table->mem_free_async(work->streams[0], memory, work->events, 2, error) < 0) {
        status = status < 0 ? status : DS_ACCEL_ERR_NO_MEMORY;
        /* a failed mem_free_async leaves the memory to the caller */
        table->mem_free(work->device, memory, error);
    }
    return status;
}

static int32_t queue_work(void)
{
    ds_accel_device_t *device = open_queues();
    struct queued work = {.bytes = {7}, .error = {.struct_size = sizeof(work.error)}};
    int32_t status;

    if (device == NULL) {
        return DS_ACCEL_ERR_NOT_USABLE;
    }
    work.table = ds_accel_device_table(device);
    work.device = ds_accel_device_handle(device);
    status = fill_queues(&work);
    if (work.table->device_synchronize(work.device, UINT64_MAX, &work.error) < 0 ||
        (status >= 0 && work.bytes[3] != 7)) {
        status = DS_ACCEL_ERR_INTERNAL;
    }
    work.table->graph_exec_destroy(work.exec);
    work.table->graph_destroy(work.graph);
    for (int i = 0; i < 2; i++) {
        work.table->event_destroy(work.events[i]);
        work.table->stream_destroy(work.streams[i]);
    }
    return status;
}

static struct ds_accel_options make_options_with_cache(void)
{
    struct ds_accel_options options = make_options();

    options.flags &= ~DS_ACCEL_OPTION_NO_CACHE;
    options.cache_dir = remembered;
    return options;
}

/* Append the name of the selected accelerator and the verdict of each candidate. */
static int32_t answer_candidates(ds_accel_t *context)
{
    struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};
    char line[1024];
    int32_t status;

    answer(ds_accel_name(context));
    for (uint32_t i = 0; (status = ds_accel_candidate_get(context, i, &candidate)) >= 0; i++) {
        snprintf(line, sizeof(line), "%s is %s, %s\ndetail: %s", candidate.name,
                 candidate.state_name, candidate.reason, candidate.detail);
        answer(line);
    }
    return status == DS_ACCEL_ERR_INVALID ? DS_ACCEL_OK : status; /* index past the last */
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
    status = status < 0 ? status : answer_candidates(context);
    ds_accel_destroy(context);
    return status;
}

static int32_t detect(void)
{
    struct ds_accel_options options = make_options();

    return detect_with(&options);
}

/* True once a plugin was reported as unusable although only memory was missing. */
static bool is_denied;

/* The only reasons why cpu cannot be used are those that the plugin itself reports. */
static int32_t detect_forced(void)
{
    struct ds_accel_options options = make_options();
    int32_t status;

    options.accelerator = "cpu";
    status = detect_with(&options);
    is_denied = is_denied || (status == DS_ACCEL_ERR_NOT_USABLE &&
                              strstr(ds_accel_last_error(), "no memory") == NULL);
    return status;
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

/*
 * The configuration, not the plugin's note, says where to look for the plugin's hardware. The
 * plugin before it in the order gives the host time to look for the hardware early.
 */
static int32_t detect_hardware(void)
{
    const char *dirs[] = {refusing, absent};
    struct ds_accel_options options = make_options_with_cache();
    struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};
    ds_accel_t *context;
    int32_t status;

    unlink(verdicts);
    options.plugin_dirs = dirs;
    options.plugin_dir_count = 2;
    options.config_file = looked_for;
    status = ds_accel_create(&options, &context);
    if (status < 0) {
        return status;
    }
    status = ds_accel_detect(context);
    if (status >= 0 && strcmp(ds_accel_name(context), "hardware_absent") != 0) {
        status = DS_ACCEL_ERR_INTERNAL;
    }
    for (uint32_t i = 0; ds_accel_candidate_get(context, i, &candidate) >= 0; i++) {
        is_denied = is_denied || (strcmp(candidate.name, "hardware_absent") == 0 &&
                                  strcmp(candidate.reason, "no_device") == 0);
    }
    status = status < 0 ? status : answer_candidates(context);
    ds_accel_destroy(context);
    return status;
}

/* True once a device was reported under a name other than the configured one. */
static bool is_misnamed;

static int32_t name_device(void)
{
    struct ds_accel_options options = make_options_with_cache();
    char name[64];
    ds_accel_t *context;
    int32_t status;

    /* a directory without configuration, because the one in etc sets the backend cpu to null */
    options.system_config_dir = plugins;
    status = ds_accel_create(&options, &context);
    if (status < 0) {
        return status;
    }
    status = ds_accel_detect(context);
    if (status >= 0) {
        status = ds_accel_device_name(context, 0, name, sizeof(name));
    }
    answer(status >= 0 ? name : NULL);
    is_misnamed = is_misnamed || (status >= 0 && strcmp(name, "cpu") != 0);
    ds_accel_destroy(context);
    return status;
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
    answer(text);
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

/* Crash a plugin twice: a forced plugin is probed although its last verdict is valid, so this adds
   two strikes at once. */
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

/* Store the cache record that remains after a plugin exits the process during its start; returns
 * the record's size, 0 if there is none. */
static size_t make_trail(char *trail, size_t trail_size)
{
    const char *dirs[] = {ending};
    struct ds_accel_options options = make_options_with_cache();
    ds_accel_t *context;
    size_t size = 0;
    glob_t found;
    char path[sizeof(verdicts)];
    pid_t pid = fork();

    if (pid == 0) {
        options.accelerator = "faulty";
        options.plugin_dirs = dirs;
        if (ds_accel_create(&options, &context) >= 0) {
            ds_accel_detect(context); /* does not return: the plugin exits the process */
        }
        _exit(1);
    }
    waitpid(pid, NULL, 0);
    snprintf(path, sizeof(path), "%s/loading.*", remembered);
    if (glob(path, 0, NULL, &found) == 0) {
        FILE *file = fopen(found.gl_pathv[0], "rb");

        size = file != NULL ? fread(trail, 1, trail_size, file) : 0;
        if (file != NULL) {
            fclose(file);
        }
        unlink(found.gl_pathv[0]);
        globfree(&found);
    }
    return size;
}

/*
 * A strike that could not be stored because memory was insufficient is not stored later without the
 * lock: ds_accel__cache_store() asserts that its caller holds the lock.
 */
static int32_t detect_trail(void)
{
    static char trail[4096];
    static size_t size;
    char path[sizeof(verdicts)];
    int fd;

    if (size == 0) { /* first run, not yet counted */
        size = make_trail(trail, sizeof(trail));
    }
    unlink(verdicts);
    snprintf(path, sizeof(path), "%s/loading.1.0", remembered);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (size == 0 || fd < 0 || write(fd, trail, size) != (ssize_t)size || close(fd) != 0) {
        return DS_ACCEL_ERR_INTERNAL;
    }
    return detect_warm();
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
    /* The op builders' thousand values are left out: the same code runs for each. */
    return report(DS_ACCEL_REPORT_CONFIG_ENV, NULL, DS_ACCEL_FORMAT_JSON);
}

/* Report findings: a rejected plugin is a problem, and this machine has device nodes and libraries
 * to check. */
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
    answer(text);
    ds_accel_free_text(text);
    ds_accel_destroy(context);
    return status;
}

/* Make a program's calls on a device, through all layers. */
static int32_t use_device(ds_accel_t *context)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_plugin *table;
    ds_accel_plugin_device_t *handle;
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_event_t *event = NULL;
    ds_accel_device_t *device = NULL;
    void *memory = NULL;
    char *text = NULL;
    int32_t status = ds_accel_device_open(context, 0, &device);

    if (status < 0) {
        return status;
    }
    table = ds_accel_device_table(device);
    handle = ds_accel_device_handle(device);
    status = table->stream_create(handle, 0, 0, &stream, &error);
    status = status < 0 ? status : table->event_create(handle, 0, &event, &error);
    status = status < 0 ? status : table->mem_alloc(handle, 64, 0, 0, &memory, &error);
    status = status < 0 ? status : table->mem_fill_async(stream, memory, "x", 1, 64, &error);
    status = status < 0 ? status : table->event_record(event, stream, &error);
    status = status < 0 ? status : table->event_synchronize(event, UINT64_MAX, &error);
    status = status < 0 ? status : ds_accel_layer_report(context, "leak", &text);
    answer(text);
    ds_accel_free_text(text);
    if (memory != NULL && table->mem_free(handle, memory, &error) < 0) {
        status = DS_ACCEL_ERR_INTERNAL; /* releasing needs no memory */
    }
    table->event_destroy(event);
    table->stream_destroy(stream);
    ds_accel_device_close(device);
    return status;
}

static int32_t use_layers(void)
{
    struct ds_accel_options options = make_options();
    ds_accel_t *context;
    int32_t status;

    options.config_file = layered;
    options.accelerator = "mock";
    status = ds_accel_create(&options, &context);
    if (status < 0) {
        return status;
    }
    status = ds_accel_detect(context);
    if (status >= 0) {
        status = use_device(context);
    }
    ds_accel_destroy(context);
    return status;
}

static int32_t lint(void)
{
    struct ds_accel_options options = make_options();
    char *text = NULL;
    int32_t status = ds_accel_lint(&options, broken, DS_ACCEL_FORMAT_JSON, &text);

    answer(text);
    ds_accel_free_text(text);
    return status;
}

static int32_t ops_report(const char *name, uint32_t format)
{
    struct ds_accel_options options = make_options();

    return report_ops(&options, name, format);
}

static int32_t list_ops(void)
{
    return ops_report(NULL, DS_ACCEL_FORMAT_VERBOSE);
}

static int32_t show_op(void)
{
    return ops_report("CPUAdamBuilder", 0);
}

static int32_t load_op(void)
{
    struct ds_accel_options options = make_options();
    const struct ds_accel_op *op = NULL;
    ds_accel_t *context;
    int32_t status = ds_accel_create(&options, &context);

    if (status < 0) {
        return status;
    }
    status = ds_accel_op_load(context, "cpu_adam", &op);
    answer(op != NULL ? op->name : "");
    ds_accel_destroy(context);
    return status;
}

static int32_t convert(const char *path, uint32_t format)
{
    void *data = NULL;
    size_t size_bytes;
    int32_t status = ds_accel_memory_snapshot_convert(path, format, &data, &size_bytes);

    if (status >= 0) {
        answer_bytes(data, size_bytes);
    }
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

static int32_t report_topo(void)
{
    return report(DS_ACCEL_REPORT_TOPO, "mock,cpu", 0);
}

static int32_t draw_topo(void)
{
    return report(DS_ACCEL_REPORT_TOPO, NULL, DS_ACCEL_FORMAT_SVG);
}

/* Report without the shipped configuration, whose thousands of values are all handled alike. */
static int32_t report_whole(uint32_t which)
{
    struct ds_accel_options options = make_options();

    options.package_config_dir = etc;
    options.system_config_dir = plugins; /* a directory without configuration */
    return report_with(&options, which, NULL, 0);
}

static int32_t report_bundle(void)
{
    return report_whole(DS_ACCEL_REPORT_BUNDLE);
}

static int32_t report_recording(void)
{
    return report_whole(DS_ACCEL_REPORT_RECORDING);
}

static int32_t replay(uint32_t which, const char *name)
{
    struct ds_accel_options options = make_options();

    options.machine_file = recording;
    options.plugin_dir_count = 0;
    return report_with(&options, which, name, DS_ACCEL_FORMAT_JSON);
}

static int32_t replay_detect(void)
{
    return replay(DS_ACCEL_REPORT_DETECT, NULL);
}

static int32_t replay_info(void)
{
    return replay(DS_ACCEL_REPORT_INFO, "cuda");
}

static int32_t replay_topo(void)
{
    return replay(DS_ACCEL_REPORT_TOPO, NULL);
}

/* Draw the ranks of a plan on the recorded machine, in each form. */
static int32_t replay_plan(void)
{
    static const char plan[] =
        "{\"schema_version\": 1, \"accelerator\": \"cuda\", \"world_size\": 2, \"hosts\": "
        "[{\"host\": \"a\", \"slots\": [0, \"0000:02:00.0\"]}], \"ranks\": ["
        "{\"rank\": 0, \"local_rank\": 0, \"host\": \"a\", \"cpus\": \"0\", "
        "\"reserved_cpus\": null, \"mem_policy\": \"bind\", \"mem_nodes\": \"0\"},"
        "{\"rank\": 1, \"local_rank\": 1, \"host\": \"a\", \"cpus\": null, "
        "\"reserved_cpus\": \"0\", \"mem_policy\": null, \"mem_nodes\": null}]}";
    static const uint32_t formats[] = {0, DS_ACCEL_FORMAT_SVG, DS_ACCEL_FORMAT_JSON};
    struct ds_accel_options options = make_options();
    ds_accel_t *context;
    int32_t status;

    options.machine_file = recording;
    options.plugin_dir_count = 0;
    status = ds_accel_create(&options, &context);
    if (status < 0) {
        return status;
    }
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]) && status >= 0; i++) {
        char *text = NULL;

        status = ds_accel_topo_plan(context, "plan", plan, strlen(plan), formats[i], &text);
        if (status >= 0) {
            answer(text);
        }
        ds_accel_free_text(text);
    }
    ds_accel_destroy(context);
    return status;
}

static int32_t with_device_of(const struct ds_accel_options *options,
                              int32_t (*use)(ds_accel_t *context, ds_accel_device_t *device))
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    int32_t status;

    status = ds_accel_create(options, &context);
    if (status < 0) {
        return status;
    }
    status = ds_accel_detect(context);
    status = status < 0 ? status : ds_accel_device_open(context, 0, &device);
    if (status >= 0) {
        status = use(context, device);
        ds_accel_device_close(device);
    }
    ds_accel_destroy(context);
    return status;
}

/* Run use() on a device of the forced accelerator. */
static int32_t with_device(const char *accelerator,
                           int32_t (*use)(ds_accel_t *context, ds_accel_device_t *device))
{
    struct ds_accel_options options = make_options();

    options.accelerator = accelerator;
    return with_device_of(&options, use);
}

/* Allocate enough blocks for the table of addresses to grow, use some on a stream, and empty the
   pool. */
static int32_t use_pinned(ds_accel_t *context, ds_accel_device_t *device)
{
    enum {
        COUNT = 70
    };
    ds_accel_stream_t *stream;
    void *blocks[COUNT];
    int32_t status = ds_accel_stream_create(device, 0, 0, &stream);

    (void)context;
    for (int i = 0; i < COUNT && status >= 0; i++) {
        status = ds_accel_mem_alloc_pinned(device, 64, 1, 0, &blocks[i]);
    }
    for (int i = 0; i < 3 && status >= 0; i++) {
        status = ds_accel_mem_record_stream(device, blocks[i], stream);
    }
    for (int i = 0; i < COUNT && status >= 0; i++) {
        status = ds_accel_mem_free_pinned(device, blocks[i]);
    }
    status = status < 0 ? status : ds_accel_mem_alloc_pinned(device, 64, 1, 0, &blocks[0]);
    return status < 0 ? status : ds_accel_pinned_empty_cache(device);
}

/*
 * Create and destroy enough handles that every later handle reuses the memory of a destroyed one:
 * the library retains the memory of destroyed handles and starts to reuse it after a certain
 * number.
 */
static int32_t wear_handles(ds_accel_t *context, ds_accel_device_t *device)
{
    enum {
        COUNT = 300
    };
    int32_t status = DS_ACCEL_OK;

    for (int i = 0; i < COUNT && status >= 0; i++) {
        ds_accel_device_t *other;
        ds_accel_timer_t *timer;
        ds_accel_event_t *event;
        ds_accel_stream_t *stream;
        ds_accel_graph_t *graph;

        status = ds_accel_device_open(context, 1, &other);
        status = status < 0 ? status : ds_accel_timer_create(device, &timer);
        status = status < 0 ? status : ds_accel_event_create(device, 0, &event);
        status = status < 0 ? status : ds_accel_stream_create(device, 0, 0, &stream);
        status = status < 0 ? status : ds_accel_graph_create(device, &graph);
        if (status >= 0) {
            ds_accel_graph_destroy(graph);
            ds_accel_stream_destroy(stream);
            ds_accel_event_destroy(event);
            ds_accel_timer_destroy(timer);
            ds_accel_device_close(other);
        }
    }
    return status;
}

static int32_t pinned_pool(void)
{
    return with_device("mock", use_pinned);
}

/* True once pinned memory was reused while a copy still read it. */
static bool is_reused_early;

/* Free a pinned block of device 0 that a copy of device 1 reads, and allocate another. */
static int32_t use_pinned_elsewhere(ds_accel_t *context, ds_accel_device_t *device)
{
    ds_accel_device_t *other;
    ds_accel_stream_t *stream;
    void *memory;
    void *block;
    void *next;
    int32_t status = ds_accel_device_open(context, 1, &other);

    status = status < 0 ? status : ds_accel_stream_create(other, 0, 0, &stream);
    status = status < 0 ? status : ds_accel_mem_alloc(other, stream, 64, &memory);
    status = status < 0 ? status : ds_accel_mem_alloc_pinned(device, 64, 1, 0, &block);
    if (status < 0) {
        return status;
    }
    status = ds_accel_mem_copy_async(stream, memory, block, 64, DS_ACCEL_COPY_HOST_TO_DEVICE);
    status = status < 0 ? status : ds_accel_mem_free_pinned(device, block);
    status = status < 0 ? status : ds_accel_mem_alloc_pinned(device, 64, 1, 0, &next);
    is_reused_early = is_reused_early || (status >= 0 && next == block &&
                                          ds_accel_stream_query(stream) == DS_ACCEL_NOT_READY);
    return status;
}

static int32_t pinned_elsewhere(void)
{
    struct ds_accel_options options = make_options();

    options.config_file = slow;
    return with_device_of(&options, use_pinned_elsewhere);
}

static void count_call(void *user_data, int32_t status)
{
    *(int *)user_data += status == DS_ACCEL_OK;
}

static int32_t use_facts(ds_accel_t *context, ds_accel_device_t *device)
{
    static const uint32_t index = 0;
    ds_accel_timer_t *timer;
    uint64_t flags;
    char value[32];
    int made = 0;
    int32_t status = ds_accel_flags(context, &flags, NULL);

    status = status < 0 ? status : ds_accel_lazy_call(context, count_call, &made);
    if (status >= 0 && made != 1) {
        return DS_ACCEL_ERR_INTERNAL;
    }
    status = status < 0 ? status : ds_accel_set_compile_backend(context, "eager");
    if (status >= 0) {
        status = ds_accel_visible_devices_value(context, NULL, &index, 1, value, 32, NULL);
        answer(status >= 0 ? value : NULL);
    }
    status = status < 0 ? status : ds_accel_timer_create(device, &timer);
    if (status >= 0) {
        ds_accel_timer_destroy(timer);
    }
    return status;
}

static int32_t facts(void)
{
    return with_device("mock", use_facts);
}

static int32_t move_tensors(ds_accel_device_t *device, ds_accel_tensor_t *tensor)
{
    ds_accel_tensor_t *there = NULL;
    ds_accel_tensor_t *turned = NULL;
    ds_accel_tensor_t *back = NULL;
    void *managed = NULL;
    int32_t status = ds_accel_tensor_to(tensor, device, NULL, &there);

    status = status < 0 ? status : ds_accel_tensor_transpose(there, 0, 1, &turned);
    status = status < 0 ? status : ds_accel_tensor_to_dlpack(turned, 0, 0, &managed);
    status = status < 0 ? status : ds_accel_tensor_from_dlpack(NULL, managed, 0, &back);
    if (status < 0 && managed != NULL) { /* the failed import leaves the tensor to the caller */
        DLManagedTensor *unused = managed;

        unused->deleter(unused);
    }
    status = status < 0 ? status : ds_accel_tensor_zero(back, NULL);
    ds_accel_tensor_put(back);
    ds_accel_tensor_put(turned);
    ds_accel_tensor_put(there);
    return status;
}

static int32_t use_tensors_once(ds_accel_device_t *device)
{
    const int64_t shape[] = {4, 5};
    ds_accel_tensor_t *tensor = NULL;
    ds_accel_rng_t *rng = NULL;
    int32_t status = ds_accel_rng_create(device, 1, 0, &rng);

    if (status >= 0) {
        status =
            ds_accel_tensor_create_pinned(device, DS_ACCEL_DTYPE_FLOAT32, 2, shape, 1, &tensor);
    }
    if (status >= 0) {
        status = ds_accel_rng_normal(rng, NULL, ds_accel_tensor_data(tensor), 20,
                                     DS_ACCEL_DTYPE_FLOAT32, 0, 1);
    }
    if (status >= 0) {
        answer_bytes(ds_accel_tensor_data(tensor), 20 * sizeof(float));
    }
    status = status < 0 ? status : move_tensors(device, tensor);
    ds_accel_tensor_put(tensor);
    ds_accel_rng_destroy(rng);
    return status;
}

/* Use tensors on a device that stays open. The first run creates as many handles as the library
 * retains, so that later handles reuse their memory. */
static int32_t use_tensors(void)
{
    static ds_accel_device_t *device;
    struct ds_accel_options options = make_options();
    ds_accel_t *context;

    if (device == NULL) {
        options.accelerator = "cpu";
        if (ds_accel_create(&options, &context) < 0 || ds_accel_detect(context) < 0 ||
            ds_accel_device_open(context, 0, &device) < 0) {
            return DS_ACCEL_ERR_INTERNAL;
        }
        for (int i = 0; i < 300; i++) {
            use_tensors_once(device);
        }
    }
    return use_tensors_once(device);
}

/* ---- device memory: one shared context, so that detection is not failed again ---------------- */

static ds_accel_t *memory_context;

/* Create and close so many handles that later handles reuse the library's retained memory. */
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

/* Make every call once. Calls that run out of memory are skipped; allocated objects are freed. */
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

static const struct {
    const char *name;
    int32_t (*run)(void);
} scenarios[] = {
    {"configuration and scan", make_context},
    {"config check", check_config},
    {"config check of a bad file", check_bad_config},
    {"detect", detect},
    {"detect of a forced accelerator", detect_forced},
    {"detect with a cold cache", detect_cold},
    {"detect with a warm cache", detect_warm},
    {"detect with a quarantined plugin", detect_quarantined},
    {"detect after a plugin ended a process", detect_trail},
    {"detect hardware that the configuration names", detect_hardware},
    {"a device's name, remembered", name_device},
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
    {"topo", report_topo},
    {"topo --svg", draw_topo},
    {"report", report_bundle},
    {"report --record", report_recording},
    {"detect on a recorded machine", replay_detect},
    {"info on a recorded machine", replay_info},
    {"topo on a recorded machine", replay_topo},
    {"topo --plan on a recorded machine", replay_plan},
    {"layers", use_layers},
    {"lint", lint},
    {"ops list", list_ops},
    {"ops show", show_op},
    {"op load", load_op},
    {"ops list with a built op", list_built_ops},
    {"ops show of a built op", show_built_op},
    {"ops show of an op that can be built", show_op_to_build},
    {"op load, remembered", load_remembered_op},
    {"op load from the cache", load_cached_op},
    {"op load, which fails to build", load_broken_op},
    {"ops build, which fails", build_broken_op},
    {"ops build", build_op},
    {"work on queues", queue_work},
    {"pinned pool", pinned_pool},
    {"pinned memory of another device", pinned_elsewhere},
    {"device memory", use_memory},
    {"facts and settings", facts},
    {"tensors and random numbers", use_tensors},
    {"memory show", show_memory},
    {"memory show --svg with a trace", draw_trace},
    {"info --memory-map", draw_devices},
};

/* True if the next scenario reuses this scenario's verdicts in the cache. */
static bool leaves_cache(size_t scenario)
{
    int32_t (*const leaving[])(void) = {
        detect_cold,        detect_warm,    detect_quarantined, detect_trail,
        detect_hardware,    name_device,    report_cache,       report_quarantine,
        clear_cache,        list_built_ops, show_built_op,      show_op_to_build,
        load_remembered_op, load_cached_op, load_broken_op,     build_broken_op};

    for (size_t i = 0; i < sizeof(leaving) / sizeof(leaving[0]); i++) {
        if (scenarios[scenario].run == leaving[i]) {
            return true;
        }
    }
    return false;
}

/* True for scenarios whose only error is exhausted memory: nothing else may be reported then, such
 * as that there is no kernel. */
static bool is_exact(size_t scenario)
{
    int32_t (*const run)(void) = scenarios[scenario].run;

    return run == list_ops || run == show_op || run == load_op || built_has(run);
}

/* Run a scenario undisturbed, and copy its result to kept. */
static void run_again(size_t scenario, char *kept)
{
    given_bytes = 0;
    given[0] = '\0';
    scenarios[scenario].run();
    memcpy(kept, given, given_bytes + 1);
}

/*
 * True for scenarios whose reports omit what could not be read, and are therefore not compared: the
 * list of leaks ends with "memory is exhausted", a device of the map shows "its memory is not
 * known", topo omits a device that cannot be queried, and info omits a list of types.
 */
static bool is_partial(size_t scenario)
{
    int32_t (*const partial[])(void) = {use_layers,  draw_devices,  report_topo,     draw_topo,
                                        report_info, report_bundle, report_recording};

    for (size_t i = 0; i < sizeof(partial) / sizeof(partial[0]); i++) {
        if (scenarios[scenario].run == partial[i]) {
            return true;
        }
    }
    return false;
}

/* Check a status OK after a failed allocation: true if the result equals an undisturbed run's. */
static bool is_right(size_t scenario, unsigned long nth)
{
    static char kept[ANSWER_LIMIT_BYTES];
    const char *wanted_line = "";
    const char *difference;

    if (strcmp(given, expected) == 0) {
        return true;
    }
    memcpy(kept, given, given_bytes + 1);
    run_again(scenario, fresh);
    memcpy(given, kept, sizeof(given));
    difference = find_difference(&wanted_line);
    if (difference != NULL) {
        printf("FAILED: %s, allocation %lu: OK with another answer, from here: %.*s\n",
               scenarios[scenario].name, nth, (int)line_length(difference), difference);
        printf("    wanted: %.*s\n", (int)line_length(wanted_line), wanted_line);
    }
    return difference == NULL;
}

/* Run a scenario with its Nth allocation failing; returns true if the scenario behaved correctly.
 * *reached_out: true if the scenario makes N allocations. */
static bool run_once(size_t scenario, unsigned long nth, bool *reached_out)
{
    int32_t status;
    unsigned long made_calls;
    long left;

    given_bytes = 0;
    given[0] = '\0';
    allocations_count(nth);
    status = scenarios[scenario].run();
    made_calls = allocations_stop(&left);
    *reached_out = nth != 0 && made_calls >= nth;
    if (left != 0) {
        printf("FAILED: %s, allocation %lu: %ld blocks leaked\n", scenarios[scenario].name, nth,
               left);
        return false;
    }
    if (is_denied) {
        printf("FAILED: %s, allocation %lu: no device, it says: %s\n", scenarios[scenario].name,
               nth, ds_accel_last_error());
        is_denied = false;
        return false;
    }
    if (is_misnamed) {
        printf("FAILED: %s, allocation %lu: by another name\n", scenarios[scenario].name, nth);
        is_misnamed = false;
        return false;
    }
    if (is_reused_early) {
        printf("FAILED: %s, allocation %lu: memory in use was reused\n", scenarios[scenario].name,
               nth);
        is_reused_early = false;
        return false;
    }
    if (!*reached_out && status != DS_ACCEL_OK) {
        printf("FAILED: %s with enough memory: %s: %s\n", scenarios[scenario].name,
               ds_accel_status_name(status), ds_accel_last_error());
        return false;
    }
    if (status != DS_ACCEL_OK && status != DS_ACCEL_ERR_NO_MEMORY && is_exact(scenario)) {
        printf("FAILED: %s, allocation %lu: %s: %s\n", scenarios[scenario].name, nth,
               ds_accel_status_name(status), ds_accel_last_error());
        return false;
    }
    return status != DS_ACCEL_OK || is_partial(scenario) || is_right(scenario, nth);
}

static void remove_cache(void)
{
    static const char *const names[] = {"verdicts", "config", "lock"};
    char path[sizeof(verdicts)];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", remembered, names[i]);
        unlink(path);
    }
    rmdir(remembered); /* fails if an unexpected file remains */
}

/* Counters shared by the worker processes. */
struct tally {
    atomic_size_t next; /* first scenario not yet claimed by a process */
    atomic_ulong passed;
    atomic_ulong failed;
};

static void judge(struct tally *tally, bool is_good)
{
    atomic_fetch_add(is_good ? &tally->passed : &tally->failed, 1);
}

/* With $FULL, each allocation fails in a run of its own, otherwise one allocation in STEP; $SEED
 * and the index of the scenario choose the first. The scenarios of built ops make so many
 * allocations that fewer of them suffice. */
#define STEP 6
#define BUILT_STEP 24

static unsigned long first_and_step(size_t scenario, unsigned long *step_out)
{
    const char *seed = getenv("SEED");
    bool is_full = getenv("FULL") != NULL && getenv("FULL")[0] != '\0';

    *step_out = is_full ? 1 : built_has(scenarios[scenario].run) ? BUILT_STEP : STEP;
    return 1 + ((seed != NULL ? strtoul(seed, NULL, 10) : 0) + scenario) % *step_out;
}

static void fail_each(struct tally *tally, size_t scenario)
{
    bool reached = true;
    unsigned long step;
    unsigned long first = first_and_step(scenario, &step);

    if (scenarios[scenario].run == detect_quarantined) {
        crash_twice();
    }
    if (scenarios[scenario].run == use_memory && !prepare_memory()) {
        printf("FAILED: device memory: %s\n", ds_accel_last_error());
        judge(tally, false);
        return;
    }
    if (built_has(scenarios[scenario].run)) {
        struct ds_accel_options options = make_options();

        if (!built_prepare(build_dir, &options)) {
            judge(tally, false);
            return;
        }
    }
    /* Run twice before counting: modules and one-time tables of the libraries remain allocated. */
    scenarios[scenario].run();
    run_again(scenario, expected);
    if (!run_once(scenario, 0, &reached)) {
        judge(tally, false);
    }
    if (allocations_counted() == 0) {
        printf("FAILED: %s: no allocation was seen\n", scenarios[scenario].name);
        judge(tally, false);
    }
    reached = true;
    for (unsigned long nth = first; reached; nth += step) {
        judge(tally, run_once(scenario, nth, &reached));
    }
}

/* Run scenarios in this worker process, with its own cache, until none is left. */
static void work(struct tally *tally, const char *only)
{
    const size_t count = sizeof(scenarios) / sizeof(scenarios[0]);
    size_t scenario;

    if (mkdtemp(remembered) == NULL) {
        perror("alloc: mkdtemp");
        judge(tally, false);
        return;
    }
    snprintf(verdicts, sizeof(verdicts), "%s/verdicts", remembered);
    if (with_device("mock", wear_handles) < 0) {
        printf("FAILED: handles: %s\n", ds_accel_last_error());
        judge(tally, false);
    }
    while ((scenario = atomic_fetch_add(&tally->next, 1)) < count) {
        if (scenario > 0 && leaves_cache(scenario - 1)) {
            continue; /* a chain of scenarios is run by the process that claimed its first */
        }
        do {
            if (only == NULL || strcmp(scenarios[scenario].name, only) == 0) {
                fail_each(tally, scenario);
            }
        } while (leaves_cache(scenario++));
    }
    ds_accel_destroy(memory_context);
    built_remove();
    remove_cache();
}

static struct tally *share_tally(void)
{
    void *shared =
        mmap(NULL, sizeof(struct tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return shared != MAP_FAILED ? shared : NULL;
}

/* Start a worker process; returns its pid, or -1. */
static pid_t start_worker(struct tally *tally, const char *only)
{
    pid_t pid = fork();

    if (pid == 0) {
        work(tally, only);
        fflush(stdout);
        _exit(0);
    }
    return pid;
}

static void find_files(const char *build, const char *source)
{
    build_dir = build;
    snprintf(share, sizeof(share), "%s/conf", source);
    snprintf(etc, sizeof(etc), "%s/tests/alloc/etc", source);
    snprintf(bad, sizeof(bad), "%s/tests/alloc/bad.json", source);
    snprintf(layered, sizeof(layered), "%s/tests/alloc/layered.json", source);
    snprintf(asynchronous, sizeof(asynchronous), "%s/tests/alloc/async.json", source);
    snprintf(slow, sizeof(slow), "%s/tests/alloc/slow.json", source);
    snprintf(machine, sizeof(machine), "%s/tests/machines/suspended-gpu", source);
    snprintf(recording, sizeof(recording), "%s/tests/fuzz/corpus/recording/deference", source);
    snprintf(snapshot, sizeof(snapshot), "%s/tests/fixtures/memory/torch_1.json", source);
    snprintf(trace, sizeof(trace), "%s/tests/fixtures/memory/traces.json", source);
    snprintf(plugins, sizeof(plugins), "%s/tests/fixtures/no_note", build);
    snprintf(broken, sizeof(broken), "%s/tests/fixtures/none/ds_accel_none.so", build);
    snprintf(ending, sizeof(ending), "%s/tests/fixtures/faults/use_exit", build);
    snprintf(crashing, sizeof(crashing), "%s/tests/fixtures/faults/probe_segv", build);
    snprintf(looked_for, sizeof(looked_for), "%s/tests/alloc/hardware.json", source);
    snprintf(refusing, sizeof(refusing), "%s/tests/fixtures/probe_no_state", build);
    snprintf(absent, sizeof(absent), "%s/tests/fixtures/hardware_absent", build);
}

int main(int argc, char **argv)
{
    struct tally *tally = share_tally();
    int jobs = argc > 3 ? atoi(argv[1]) : 0;
    int status;

    if (jobs < 1 || argc > 5 || tally == NULL) {
        fprintf(stderr, "usage: alloc JOBS BUILD SOURCE [SCENARIO]\n");
        return 2;
    }
    find_files(argv[2], argv[3]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < jobs; i++) {
        if (start_worker(tally, argc > 4 ? argv[4] : NULL) < 0) {
            perror("alloc: fork");
            judge(tally, false);
        }
    }
    while (wait(&status) > 0) {
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            printf("FAILED: a process ended with wait status %#x\n", (unsigned)status);
            judge(tally, false);
        }
    }
    printf("alloc: %lu passed, %lu failed\n", tally->passed, tally->failed);
    return tally->failed != 0;
}
