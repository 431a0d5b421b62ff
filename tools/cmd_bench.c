/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * ds-accel bench: measures a device through the public interface, as a program would use it.
 *
 *   bench_cases.c, bench_calls.c  the measurements: tables of cases, each with its own check
 *   bench_measure.c               the method: calibration, samples, choice of clock, state of a row
 *   bench_progress.c              the bar on a terminal, and Ctrl-C
 *   bench_report.c                the table and the JSON
 *   bench_io.c ...                ds-accel bench io, which measures files and not a device
 *
 * A row is a case; for transfers and allocations, it is a case at one size. Sizes are measured in
 * the outer loop, so that memory of each size is allocated once, but the rows are shown case by
 * case.
 */
#include "bench.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_TIME_S 0.1
#define MAX_TIME_S 3600.0
#define MAX_SIZE_BYTES (UINT64_C(1) << 46)

static const uint64_t default_sizes[] = {
    UINT64_C(4) << 10,  UINT64_C(64) << 10,  UINT64_C(1) << 20,
    UINT64_C(16) << 20, UINT64_C(256) << 20,
};
#define DEFAULT_SIZE_COUNT (sizeof(default_sizes) / sizeof(default_sizes[0]))

static const char *const groups[] = {"copy",   "fill",   "peer",  "alloc",   "event",
                                     "stream", "launch", "graph", "dispatch"};
#define GROUP_COUNT (sizeof(groups) / sizeof(groups[0]))

/* The options of the command line. */
struct request {
    uint64_t sizes_bytes[BENCH_MAX_SIZES];
    size_t size_count;
    bool wanted[GROUP_COUNT];
    double time_s;
};

/* ---- the request; functions of type int return -1 on success, or the exit code -------------- */

bool bench_parse_size(const char *text, size_t length, uint64_t *size_out)
{
    static const char units[] = "KMGT";
    char copy[32];
    char *end;
    const char *unit;
    uint64_t size;
    unsigned shift = 0;

    if (length >= sizeof(copy) || !isdigit((unsigned char)text[0])) {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    errno = 0;
    size = strtoull(copy, &end, 10);
    if (*end != '\0') {
        unit = strchr(units, toupper((unsigned char)*end));
        if (unit == NULL || (end[1] != '\0' && strcmp(end + 1, "iB") != 0)) {
            return false;
        }
        shift = 10 * (unsigned)(unit - units + 1);
    }
    if (errno != 0 || size == 0 || size > MAX_SIZE_BYTES >> shift) {
        return false;
    }
    *size_out = size << shift;
    return true;
}

static bool has_size(const struct request *request, uint64_t size_bytes)
{
    for (size_t i = 0; i < request->size_count; i++) {
        if (request->sizes_bytes[i] == size_bytes) {
            return true;
        }
    }
    return false;
}

static int take_sizes(const struct tool *tool, const char *list, struct request *request)
{
    for (const char *item = list;; item++) {
        size_t length = strcspn(item, ",");
        uint64_t size_bytes;

        if (!bench_parse_size(item, length, &size_bytes)) {
            return tool_usage(tool,
                              "--size takes bytes from 1 to 64T, as in 4096 or 64K, not \"%.*s\"",
                              (int)length, item);
        }
        if (!has_size(request, size_bytes)) {
            if (request->size_count == BENCH_MAX_SIZES) {
                return tool_usage(tool, "more than %d sizes", BENCH_MAX_SIZES);
            }
            request->sizes_bytes[request->size_count++] = size_bytes;
        }
        item += length;
        if (*item == '\0') {
            return -1;
        }
    }
}

static int take_groups(const struct tool *tool, const char *list, struct request *request)
{
    for (const char *item = list;; item++) {
        size_t length = strcspn(item, ",");
        size_t i = 0;

        while (i < GROUP_COUNT &&
               (strlen(groups[i]) != length || memcmp(groups[i], item, length) != 0)) {
            i++;
        }
        if (i == GROUP_COUNT) {
            return tool_usage(tool,
                              "--only takes copy, fill, peer, alloc, event, stream, launch, graph "
                              "or dispatch, not \"%.*s\"",
                              (int)length, item);
        }
        request->wanted[i] = true;
        item += length;
        if (*item == '\0') {
            return -1;
        }
    }
}

int bench_parse_time(const struct tool *tool, double default_s, double *time_out)
{
    char *end;

    *time_out = default_s;
    if (tool->time == NULL) {
        return -1;
    }
    *time_out = strtod(tool->time, &end);
    /* Accept only digits and a point, because strtod() also accepts "inf" and "0x1p3". */
    if (*end != '\0' || strspn(tool->time, "0123456789.") != strlen(tool->time) ||
        !(*time_out > 0 && *time_out <= MAX_TIME_S)) {
        return tool_usage(tool, "--time takes seconds, above 0 and up to 3600, not \"%s\"",
                          tool->time);
    }
    return -1;
}

static int parse_request(struct tool *tool, const char *name, struct request *request)
{
    int code = bench_parse_time(tool, DEFAULT_TIME_S, &request->time_s);

    for (size_t i = 0; i < tool->size_count && code < 0; i++) {
        code = take_sizes(tool, tool->sizes[i], request);
    }
    for (size_t i = 0; i < tool->group_count && code < 0; i++) {
        code = take_groups(tool, tool->groups[i], request);
    }
    if (code >= 0) {
        return code;
    }
    if (tool->size_count == 0) {
        memcpy(request->sizes_bytes, default_sizes, sizeof(default_sizes));
        request->size_count = DEFAULT_SIZE_COUNT;
    }
    for (size_t i = 0; tool->group_count == 0 && i < GROUP_COUNT; i++) {
        request->wanted[i] = true;
    }
    if (name != NULL && tool->options.accelerator != NULL &&
        strcmp(name, tool->options.accelerator) != 0) {
        return tool_usage(tool, "%s and --accelerator %s: expected the same name", name,
                          tool->options.accelerator);
    }
    if (name != NULL) {
        tool->options.accelerator = name;
    }
    return -1;
}

/* ---- the rows ------------------------------------------------------------------------------- */

static bool is_wanted(const struct request *request, const struct bench_case *test)
{
    for (size_t i = 0; i < GROUP_COUNT; i++) {
        if (strcmp(groups[i], test->group) == 0) {
            return request->wanted[i];
        }
    }
    return false;
}

static void add_rows(struct bench *bench, const struct request *request,
                     const struct bench_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t rows = cases[i].sized ? request->size_count : 1;

        if (!is_wanted(request, &cases[i])) {
            continue;
        }
        for (size_t j = 0; j < rows; j++) {
            struct bench_row *row = &bench->rows[bench->row_count++];

            row->test = &cases[i];
            row->size_bytes = cases[i].sized ? request->sizes_bytes[j] : 0;
        }
    }
}

static bool make_rows(struct bench *bench, const struct request *request)
{
    size_t most = (bench_transfer_count + bench_call_count) * BENCH_MAX_SIZES;

    bench->rows = calloc(most, sizeof(*bench->rows));
    if (bench->rows == NULL) {
        return false;
    }
    add_rows(bench, request, bench_transfers, bench_transfer_count);
    add_rows(bench, request, bench_calls, bench_call_count);
    return true;
}

/* ---- the device ----------------------------------------------------------------------------- */

/* Create the timing events and test them. If that fails, the events are NULL and the host's clock
 * is used. */
static void make_clock(struct bench *bench)
{
    double elapsed_ms;
    int32_t status = ds_accel_event_create(bench->device, DS_ACCEL_EVENT_TIMING, &bench->start);

    status = status < 0 ? status
                        : ds_accel_event_create(bench->device, DS_ACCEL_EVENT_TIMING, &bench->end);
    status = status < 0 ? status : ds_accel_event_record(bench->start, bench->stream);
    status = status < 0 ? status : ds_accel_event_record(bench->end, bench->stream);
    status = status < 0 ? status : bench_wait(bench);
    status = status < 0 ? status : ds_accel_event_elapsed_ms(bench->start, bench->end, &elapsed_ms);
    if (status < 0) {
        ds_accel_event_destroy(bench->start);
        ds_accel_event_destroy(bench->end);
        bench->start = NULL;
        bench->end = NULL;
    }
}

static int32_t open_device(struct bench *bench, const char *name)
{
    uint32_t count = 0;
    int32_t status = name != NULL ? ds_accel_device_find(bench->context, name, &bench->device_index)
                                  : ds_accel_current_device(bench->context, &bench->device_index);

    status = status < 0 ? status : ds_accel_device_count(bench->context, &count);
    status = status < 0 ? status : ds_accel_set_device(bench->context, bench->device_index);
    status = status < 0 ? status
                        : ds_accel_device_open(bench->context, bench->device_index, &bench->device);
    status = status < 0 ? status : ds_accel_stream_create(bench->device, 0, 0, &bench->stream);
    if (status == DS_ACCEL_ERR_UNSUPPORTED && bench->device != NULL) {
        status = ds_accel_default_stream(bench->device, &bench->stream);
    }
    if (status < 0) {
        return status;
    }
    if (count > 1) {
        bench->peer_index = (bench->device_index + 1) % count;
        if (ds_accel_device_open(bench->context, bench->peer_index, &bench->peer) < 0) {
            snprintf(bench->peer_reason, sizeof(bench->peer_reason), "%s", ds_accel_last_error());
        }
    }
    make_clock(bench);
    return DS_ACCEL_OK;
}

static void close_device(struct bench *bench)
{
    ds_accel_event_destroy(bench->start);
    ds_accel_event_destroy(bench->end);
    ds_accel_stream_destroy(bench->stream);
    ds_accel_device_close(bench->peer);
    ds_accel_device_close(bench->device);
}

/* ---- measuring ------------------------------------------------------------------------------ */

static void show_progress(size_t done, size_t total, const struct bench_row *row)
{
    char label[128];
    char size[32] = "";

    if (row->size_bytes > 0) {
        bench_format_size(row->size_bytes, size, sizeof(size));
    }
    snprintf(label, sizeof(label), "%s %s %s", row->test->group, row->test->name, size);
    bench_progress_show(done, total, label);
}

/* Measure the rows of one size: if transfers is true the transfers, otherwise the other rows. */
static int32_t measure_rows(struct bench *bench, uint64_t size_bytes, bool transfers, size_t *done)
{
    for (size_t i = 0; i < bench->row_count; i++) {
        struct bench_row *row = &bench->rows[i];

        if (row->size_bytes != size_bytes || (row->test->unit == BENCH_BYTES_PER_S) != transfers) {
            continue;
        }
        show_progress(*done, bench->row_count, row);
        if (bench_measure(bench, row) == BENCH_INTERRUPTED) {
            return BENCH_INTERRUPTED;
        }
        (*done)++;
    }
    return DS_ACCEL_OK;
}

static bool has_transfers(const struct bench *bench)
{
    for (size_t i = 0; i < bench->row_count; i++) {
        if (bench->rows[i].test->unit == BENCH_BYTES_PER_S) {
            return true;
        }
    }
    return false;
}

static int32_t measure_all(struct bench *bench, const struct request *request)
{
    bool transfers = has_transfers(bench);
    size_t done = 0;
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < request->size_count && status == DS_ACCEL_OK; i++) {
        bench->size_bytes = request->sizes_bytes[i];
        if (transfers) {
            bench_places_make(bench);
            status = measure_rows(bench, bench->size_bytes, true, &done);
            bench_places_release(bench);
        }
        if (status == DS_ACCEL_OK) {
            status = measure_rows(bench, bench->size_bytes, false, &done);
        }
    }
    return status == DS_ACCEL_OK ? measure_rows(bench, 0, false, &done) : status;
}

/* ---- the output ----------------------------------------------------------------------------- */

static int answer(const struct tool *tool, const struct bench *bench, const struct request *request)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    struct bench_report report = {.accelerator = ds_accel_name(bench->context),
                                  .sizes_bytes = request->sizes_bytes,
                                  .size_count = request->size_count};
    char *text = NULL;
    size_t size_bytes = 0;
    FILE *file = open_memstream(&text, &size_bytes);
    int code = EXIT_OK;

    report.identity.struct_size = sizeof(report.identity);
    ds_accel_device_identity(bench->context, bench->device_index, &report.identity);
    if (ds_accel_device_info(bench->device, &info) >= 0) {
        memcpy(report.device_name, info.name, sizeof(report.device_name));
    }
    if (file != NULL && tool->json) {
        bench_write_json(file, bench, &report);
    } else if (file != NULL) {
        bench_write_text(file, bench, &report, (tool_format(tool) & DS_ACCEL_FORMAT_COLOUR) != 0);
    }
    if (file == NULL || fclose(file) != 0) {
        free(text);
        tool_say("no memory for the output");
        return EXIT_INTERNAL;
    }
    for (size_t i = 0; i < bench->row_count; i++) {
        code = bench->rows[i].state == BENCH_FAILED ? EXIT_PROBLEMS : code;
    }
    code = tool_answer(tool, text, size_bytes, code);
    free(text);
    return code;
}

static int bench_on(struct tool *tool, struct bench *bench, const struct request *request)
{
    int32_t status = ds_accel_detect(bench->context);
    int code = EXIT_OK;

    if (status >= 0) {
        bench_signals_catch();
        status = open_device(bench, tool->device);
    }
    if (status < 0) {
        code = tool_fail(status);
    } else {
        bench_progress_begin(!tool->quiet);
        status = measure_all(bench, request);
        bench_progress_end();
        if (status == DS_ACCEL_OK) {
            code = answer(tool, bench, request);
        }
    }
    close_device(bench);
    return code;
}

static int bench_device(struct tool *tool, const char *name)
{
    ds_accel_log_sink_t sink = tool->options.log_sink;
    struct request request = {.size_count = 0};
    struct bench bench = {.context = NULL};
    int code = parse_request(tool, name, &request);
    int32_t status;

    if (code >= 0) {
        return code;
    }
    bench.time_s = request.time_s;
    tool->options.log_sink = bench_progress_log;
    tool->options.log_user_data = &sink;
    status = ds_accel_create(&tool->options, &bench.context);
    if (status < 0) {
        return tool_fail(status);
    }
    if (make_rows(&bench, &request)) {
        code = bench_on(tool, &bench, &request);
    } else {
        tool_say("no memory for the rows");
        code = EXIT_INTERNAL;
    }
    free(bench.rows);
    ds_accel_destroy(bench.context);
    bench_signals_release();
    return code;
}

static int run(struct tool *tool, int argument_count, char **arguments)
{
    const char *first = argument_count > 0 ? arguments[0] : NULL;

    if (first != NULL && strcmp(first, "io") == 0) {
        return bench_io_run(tool, argument_count > 1 ? arguments[1] : NULL);
    }
    if (argument_count > 1) {
        return tool_usage(tool, "bench takes [NAME] or io [DIR], not \"%s %s\"", first,
                          arguments[1]);
    }
    if (tool->tune || tool->force) {
        return tool_usage(tool, "only bench io takes --%s", tool->tune ? "tune" : "force");
    }
    return bench_device(tool, first);
}

const struct tool_command cmd_bench = {
    .name = "bench",
    .arguments = "[NAME|io [DIR]]",
    .summary = "measure a device: bandwidth, latency, dispatch; or file I/O",
    .help =
        "Measures a device of the chosen accelerator, or of the one named, as a program uses it.\n"
        "\n"
        "      --device NAME   an index, UUID or PCI address; else the current device\n"
        "      --only GROUP    only this group, or these, with commas; may be given again\n"
        "      --size BYTES    of transfers and allocations, as in 4096, 64K or 1M,16M; may be\n"
        "                      given again; else 4K, 64K, 1M, 16M and 256M\n"
        "      --time SECONDS  spent on samples of each row; else 0.1\n"
        "  -o, --output FILE   write the output to a file, whole or not at all\n"
        "\n"
        "groups:\n"
        "  copy      host to device (h2d), device to host (d2h), within the device (d2d);\n"
        "            pageable or pinned host memory; done on return, or queued (async)\n"
        "  fill      setting device memory to a byte\n"
        "  peer      to and from the accelerator's next device\n"
        "  alloc     allocate and free again: from the library (cached), of the backend\n"
        "  event     create, record, wait, query, elapsed time\n"
        "  stream    create, query, synchronize, wait for an event, hand over to another\n"
        "  launch    queue a copy of 64 bytes, a fill of 4 KiB or a host task, and wait\n"
        "  graph     capture 32 fills; replay 1 or 32 of them, and wait\n"
        "  dispatch  a call through the library, and the backend's function called directly\n"
        "\n"
        "A sample is as many operations as take a twentieth of the row's time (20 us to 50 ms),\n"
        "found by trying, which warms up; there are at least 3. MEDIAN, MIN and MAX are those\n"
        "of the samples, MAD is the median distance from the median. GB/s are 10^9 bytes copied\n"
        "or filled in a second. What is queued is timed by events of the device where it has\n"
        "them, everything else by the host's monotonic clock. What a transfer, a fill, a task\n"
        "and a graph should have done is looked at once, before they are measured. Rows that the\n"
        "device has no means for, or no memory, are skipped; exit code 1 if one fails.\n"
        "\n"
        "io [DIR]  measures sequential writing and reading of a file in DIR, else in the current\n"
        "          directory, by the op async_io with its settings, and with its defaults\n"
        "      --tune          find the best settings, and write them to the configuration,\n"
        "                      with --force also if they are no better than the defaults\n"
        "      --size BYTES    of the file; else 512M\n"
        "      --time SECONDS  in total; else 10, with --tune 60",
    .most = 2,
    .own_options = "device force only output size time tune",
    .run = run,
    .starts_plugins = true,
};
