/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * ds-accel bench io: measures writing and reading a file by the op async_io, which it loads as a
 * program does, and finds the best settings of the op.
 *
 *   bench_io_measure.c  the file, and the measurement of one set of settings
 *   bench_io_tune.c     the search
 *   bench_io_report.c   the table and the JSON
 *
 * The rows are measured in laps, one after the other in each, so that a disk that becomes slower or
 * faster meanwhile has the same effect on all of them.
 */
#include "bench_io.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_SIZE_BYTES ((uint64_t)512 << 20)
#define DEFAULT_TIME_S 10.0
#define TUNE_TIME_S 60.0
#define SEARCH_SHARE 0.8 /* of the time after the file was written */
#define NS_PER_S 1e9
#define LEAST_LAPS 3u
#define LAPS_WANTED 9u

struct run {
    ds_accel_t *context;
    struct bench_io io;
    const char *directory;
    double time_s;
    uint64_t end_ns;
    struct bench_io_row rows[BENCH_IO_ROWS];
    size_t row_count;
    uint32_t laps;
    struct bench_io_search search;
    double gain, noise;
    char *written; /* the configuration file */
};

/* ---- the request; functions of type int return -1 on success, or the exit code -------------- */

static int parse(const struct tool *tool, struct run *run)
{
    uint64_t size = DEFAULT_SIZE_BYTES;
    int code = bench_parse_time(tool, tool->tune ? TUNE_TIME_S : DEFAULT_TIME_S, &run->time_s);

    if (code >= 0) {
        return code;
    }
    if (tool->device != NULL || tool->group_count > 0) {
        return tool_usage(tool, "bench io does not take --%s",
                          tool->device != NULL ? "device" : "only");
    }
    if (tool->force && !tool->tune) {
        return tool_usage(tool, "bench io takes --force with --tune");
    }
    if (tool->size_count > 1) {
        return tool_usage(tool, "bench io takes one --size");
    }
    if (tool->size_count == 1 &&
        (!bench_parse_size(tool->sizes[0], strlen(tool->sizes[0]), &size) ||
         size < BENCH_IO_MIN_BYTES)) {
        return tool_usage(tool, "--size takes bytes from 1M to 64T, not \"%s\"", tool->sizes[0]);
    }
    run->io.size_bytes = size;
    return -1;
}

/* Print why a call of bench_io_* failed. Returns the exit code, which does not matter after a
 * signal. */
static int fail(const struct run *run, int32_t status)
{
    if (status == BENCH_INTERRUPTED) {
        return EXIT_PROBLEMS;
    }
    bench_progress_end();
    tool_say("%s: %s", run->directory, run->io.failure);
    return status == BENCH_IO_UNUSABLE ? EXIT_PROBLEMS : tool_exit_code(status);
}

/* ---- the configuration ---------------------------------------------------------------------- */

/* Make the directory of a path, and those above it. False, with errno, if that fails. */
static bool make_directories(const char *path)
{
    char *copy = strdup(path);
    bool made = copy != NULL;

    for (char *slash = copy; made && (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = '\0';
        made = mkdir(copy, 0777) == 0 || errno == EEXIST;
        *slash = '/';
    }
    free(copy);
    return made;
}

/* The file that gets the settings, and its text. */
static int edit(const struct run *run, const struct bench_io_settings *settings, char **path_out,
                char **text_out)
{
    char json[256];
    bool rings = run->io.engine == DS_ACCEL_ASYNC_IO_ENGINE_IO_URING;
    int length = snprintf(json, sizeof(json),
                          "{\"block_bytes\": %" PRIu64 ", \"queue_depth\": %" PRIu32
                          ", \"parallelism\": %" PRIu32,
                          settings->block_bytes, settings->queue_depth, settings->parallelism);
    int32_t status;

    snprintf(json + length, sizeof(json) - (size_t)length,
             rings ? ", \"single_submit\": %s, \"overlap_events\": %s}" : "}",
             settings->single_submit ? "true" : "false",
             settings->overlap_events ? "true" : "false");
    status = ds_accel_op_settings_edit(run->context, "async_io", json, path_out, text_out);
    return status < 0 ? tool_fail(status) : -1;
}

/* Whether the settings could be written, so that a search does not end in vain. */
static int check_configuration(const struct run *run)
{
    char *path = NULL;
    char *text = NULL;
    int code = edit(run, &bench_io_defaults, &path, &text);

    if (code < 0) {
        code = tool_check_owned(path);
    }
    ds_accel_free_text(path);
    ds_accel_free_text(text);
    return code;
}

static int write_configuration(struct run *run)
{
    char *text = NULL;
    int code = edit(run, &run->search.best, &run->written, &text);

    if (code < 0 && !make_directories(run->written)) {
        tool_say("%s: %s", run->written, strerror(errno));
        code = EXIT_PROBLEMS;
    }
    code = code < 0 ? tool_save_owned(run->written, text, strlen(text)) : code;
    ds_accel_free_text(text);
    return code;
}

/* ---- measuring ------------------------------------------------------------------------------ */

static void add_row(struct run *run, const char *name, const struct bench_io_settings *settings)
{
    struct bench_io_row *row = &run->rows[run->row_count++];

    row->name = name;
    row->settings = *settings;
}

/* Measure each row once. */
static int32_t measure_lap(struct run *run, uint64_t time_ns)
{
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < run->row_count && status == DS_ACCEL_OK; i++) {
        /* Every other lap begins with the last row. */
        struct bench_io_row *row = &run->rows[run->laps % 2 == 0 ? i : run->row_count - 1 - i];
        struct bench_io_sums sums = {.ns = {0}};

        status = bench_io_measure(&run->io, &row->settings, time_ns, &sums);
        for (int way = 0; way < BENCH_IO_WAYS; way++) {
            row->rates[way][run->laps] = bench_io_rate(&sums, way);
        }
    }
    return status;
}

static int32_t measure_rows(struct run *run)
{
    uint64_t begin_ns = bench_io_now_ns();
    uint64_t left_ns = run->end_ns > begin_ns ? run->end_ns - begin_ns : 0;
    uint64_t time_ns = left_ns / (BENCH_IO_WAYS * run->row_count * LAPS_WANTED);
    int32_t status = DS_ACCEL_OK;

    while (status == DS_ACCEL_OK && run->laps < BENCH_IO_LAPS) {
        uint64_t now_ns = bench_io_now_ns();
        uint64_t lap_ns = run->laps > 0 ? (now_ns - begin_ns) / run->laps : 0;

        if (run->laps >= LEAST_LAPS && now_ns + lap_ns > run->end_ns) {
            break;
        }
        bench_progress_show(run->laps, LAPS_WANTED > run->laps ? LAPS_WANTED : run->laps + 1,
                            "laps");
        status = measure_lap(run, time_ns);
        run->laps += status == DS_ACCEL_OK;
    }
    return status;
}

static int32_t measure(struct run *run, bool tune)
{
    struct bench_io *io = &run->io;
    struct bench_io_sums sums = {.ns = {0}};
    uint64_t begin_ns = bench_io_now_ns();
    int32_t status = bench_io_open(io, run->directory, &sums);

    run->end_ns = begin_ns + (uint64_t)(run->time_s * NS_PER_S);
    if (status == DS_ACCEL_OK && tune) {
        uint64_t now_ns = bench_io_now_ns();
        double left_ns = run->end_ns > now_ns ? (double)(run->end_ns - now_ns) : 0;
        double bytes = (double)(BENCH_IO_REQUESTS * io->request_bytes);

        status =
            bench_io_search(io, (uint64_t)(bytes * NS_PER_S / bench_io_rate(&sums, BENCH_IO_WRITE)),
                            now_ns + (uint64_t)(left_ns * SEARCH_SHARE), &run->search);
        if (status == DS_ACCEL_OK && !bench_io_equal(&run->search.best, &bench_io_defaults)) {
            add_row(run, "tuned", &run->search.best);
        }
    }
    if (!bench_io_equal(&io->configured, &bench_io_defaults)) {
        add_row(run, "configured", &io->configured);
    }
    add_row(run, "default", &bench_io_defaults);
    return status == DS_ACCEL_OK ? measure_rows(run) : status;
}

/* ---- the output ----------------------------------------------------------------------------- */

static int answer(const struct tool *tool, const struct run *run)
{
    const struct bench_io_report report = {.directory = run->directory,
                                           .time_s = run->time_s,
                                           .rows = run->rows,
                                           .row_count = run->row_count,
                                           .laps = run->laps,
                                           .search = tool->tune ? &run->search : NULL,
                                           .gain = run->gain,
                                           .noise = run->noise,
                                           .written = run->written};
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    int code;

    if (file != NULL && tool->json) {
        bench_io_write_json(file, &run->io, &report);
    } else if (file != NULL) {
        bench_io_write_text(file, &run->io, &report,
                            (tool_format(tool) & DS_ACCEL_FORMAT_COLOUR) != 0);
    }
    if (file == NULL || fclose(file) != 0) {
        free(text);
        tool_say("no memory for the output");
        return EXIT_INTERNAL;
    }
    code = tool_answer(tool, text, size, EXIT_OK);
    free(text);
    return code;
}

/* Write the settings if they are better than the defaults, or if that is forced. Returns -1, or the
 * exit code. */
static int keep_best(struct run *run, bool force)
{
    if (!bench_io_equal(&run->search.best, &bench_io_defaults)) {
        bench_io_gain(&run->rows[0], &run->rows[run->row_count - 1], run->laps, &run->gain,
                      &run->noise);
    }
    return force || run->gain > run->noise ? write_configuration(run) : -1;
}

static int bench_op(const struct tool *tool, struct run *run)
{
    const struct ds_accel_op *op = NULL;
    int32_t status = ds_accel_op_load(run->context, "async_io", &op);
    int code = -1;

    if (status < 0) {
        return tool_fail(status);
    }
    run->io.op = (const struct ds_accel_async_io *)(const void *)op;
    status = bench_io_ask(&run->io);
    if (status < 0) {
        return fail(run, status);
    }
    code = tool->tune ? check_configuration(run) : -1;
    if (code >= 0) {
        return code;
    }
    bench_signals_catch();
    bench_progress_begin(!tool->quiet);
    status = measure(run, tool->tune);
    bench_progress_end();
    if (status != DS_ACCEL_OK) {
        return fail(run, status);
    }
    code = tool->tune ? keep_best(run, tool->force) : -1;
    return code < 0 ? answer(tool, run) : code;
}

int bench_io_run(struct tool *tool, const char *directory)
{
    ds_accel_log_sink_t sink = tool->options.log_sink;
    struct run *run = calloc(1, sizeof(*run));
    int32_t status;
    int code;

    if (run == NULL) {
        tool_say("no memory for the rows");
        return EXIT_INTERNAL;
    }
    run->io.fd = -1;
    run->directory = directory != NULL ? directory : ".";
    code = parse(tool, run);
    if (code < 0) {
        tool->options.log_sink = bench_progress_log;
        tool->options.log_user_data = &sink;
        status = ds_accel_create(&tool->options, &run->context);
        code = status < 0 ? tool_fail(status) : bench_op(tool, run);
    }
    bench_io_close(&run->io);
    ds_accel_free_text(run->written);
    ds_accel_destroy(run->context);
    free(run);
    bench_signals_release();
    return code;
}
