/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Writes the rows of ds-accel bench as a table or as JSON. */
#include "bench.h"

#include <inttypes.h>
#include <string.h>

#define GB 1e9
#define NS_PER_US 1e3
#define FIGURE_SIZE 32

void bench_format_size(uint64_t size_bytes, char *text, size_t text_size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;

    while (unit + 1 < sizeof(units) / sizeof(units[0]) && size_bytes >= 1024 &&
           size_bytes % 1024 == 0) {
        size_bytes /= 1024;
        unit++;
    }
    snprintf(text, text_size, "%" PRIu64 " %s", size_bytes, units[unit]);
}

/* Write text from a plugin, without characters that a terminal interprets. */
static void put_plain(FILE *file, const char *text)
{
    char copy[512];

    snprintf(copy, sizeof(copy), "%s", text);
    ds_accel_sanitize_text(copy, sizeof(copy));
    fputs(copy, file);
}

/* ---- text ----------------------------------------------------------------------------------- */

static bool in_ns(const struct bench_case *test)
{
    return strcmp(test->group, "dispatch") == 0;
}

static const char *unit_of(const struct bench_case *test)
{
    if (test->unit == BENCH_BYTES_PER_S) {
        return "GB/s";
    }
    return in_ns(test) ? "ns" : "us";
}

static void format_figure(const struct bench_case *test, double value, char *text)
{
    double scale = test->unit == BENCH_BYTES_PER_S ? GB : in_ns(test) ? 1 : NS_PER_US;

    snprintf(text, FIGURE_SIZE, "%.3f", value / scale);
}

static void write_row(FILE *file, const struct bench_row *row)
{
    const struct bench_case *test = row->test;
    char figures[4][FIGURE_SIZE];
    const double values[4] = {row->median, row->least, row->greatest, row->deviation};
    char size[32] = "-";

    if (row->size_bytes > 0) {
        bench_format_size(row->size_bytes, size, sizeof(size));
    }
    fprintf(file, "%-9s %-20s %9s", test->group, test->name, size);
    if (row->state != BENCH_MEASURED) {
        fprintf(file, "  %s: ", row->state == BENCH_SKIPPED ? "skipped" : "failed");
        put_plain(file, row->reason);
        fputc('\n', file);
        return;
    }
    for (size_t i = 0; i < 4; i++) {
        format_figure(test, values[i], figures[i]);
    }
    fprintf(file, " %11s %11s %11s %10s  %-4s  %s\n", figures[0], figures[1], figures[2],
            figures[3], unit_of(test), row->device_clock ? "device" : "host");
}

void bench_write_text(FILE *file, const struct bench *bench, const struct bench_report *report,
                      bool colour)
{
    fprintf(file, "%s device %u", report->accelerator, bench->device_index);
    if (report->device_name[0] != '\0') {
        fputs(": ", file);
        put_plain(file, report->device_name);
    }
    fprintf(file, "; %g s for each row\n", bench->time_s);
    fprintf(file, "%s%-9s %-20s %9s %11s %11s %11s %10s  %-4s  %s%s\n", colour ? "\033[1m" : "",
            "GROUP", "NAME", "SIZE", "MEDIAN", "MIN", "MAX", "MAD", "UNIT", "CLOCK",
            colour ? "\033[0m" : "");
    for (size_t i = 0; i < bench->row_count; i++) {
        write_row(file, &bench->rows[i]);
    }
}

/* ---- JSON ----------------------------------------------------------------------------------- */

void bench_put_string(FILE *file, const char *string)
{
    char copy[512];

    snprintf(copy, sizeof(copy), "%s", string);
    ds_accel_sanitize_text(copy, sizeof(copy));
    fputc('"', file);
    for (const char *c = copy; *c != '\0'; c++) {
        fprintf(file, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    }
    fputc('"', file);
}

void bench_put_member(FILE *file, const char *name, const char *string)
{
    fprintf(file, "\"%s\": ", name);
    if (string[0] == '\0') {
        fputs("null", file);
    } else {
        bench_put_string(file, string);
    }
}

static void put_figure(FILE *file, const char *name, const struct bench_row *row, double value)
{
    if (row->state != BENCH_MEASURED) {
        fprintf(file, "      \"%s\": null,\n", name);
    } else {
        fprintf(file, "      \"%s\": %.*f,\n", name, row->test->unit == BENCH_NS ? 3 : 0, value);
    }
}

static void put_row(FILE *file, const struct bench_row *row)
{
    static const char *const states[] = {"measured", "skipped", "failed"};
    bool measured = row->state == BENCH_MEASURED;

    fprintf(file, "    {\n      \"group\": \"%s\",\n      \"name\": \"%s\",\n", row->test->group,
            row->test->name);
    if (row->size_bytes > 0) {
        fprintf(file, "      \"size_bytes\": %" PRIu64 ",\n", row->size_bytes);
    } else {
        fputs("      \"size_bytes\": null,\n", file);
    }
    fprintf(file, "      \"state\": \"%s\",\n      ", states[row->state]);
    bench_put_member(file, "reason", row->reason);
    fprintf(file, ",\n      \"unit\": \"%s\",\n",
            row->test->unit == BENCH_NS ? "ns" : "bytes_per_s");
    put_figure(file, "median", row, row->median);
    put_figure(file, "min", row, row->least);
    put_figure(file, "max", row, row->greatest);
    put_figure(file, "median_deviation", row, row->deviation);
    fprintf(file, "      \"clock\": %s,\n",
            !measured           ? "null"
            : row->device_clock ? "\"device\""
                                : "\"host\"");
    fprintf(file, "      \"samples\": %u,\n      \"repetitions\": %" PRIu64 "\n    }", row->samples,
            row->repetitions);
}

static void put_device(FILE *file, const struct bench *bench, const struct bench_report *report)
{
    fprintf(file, "  \"device\": {\n    \"index\": %u,\n    ", bench->device_index);
    bench_put_member(file, "name", report->device_name);
    fputs(",\n    ", file);
    bench_put_member(file, "uuid", report->identity.uuid_text);
    fputs(",\n    ", file);
    bench_put_member(file, "pci_address", report->identity.pci_address);
    fputs("\n  },\n", file);
    if (bench->peer != NULL) {
        fprintf(file, "  \"peer_index\": %u,\n", bench->peer_index);
    } else {
        fputs("  \"peer_index\": null,\n", file);
    }
}

void bench_write_json(FILE *file, const struct bench *bench, const struct bench_report *report)
{
    fputs("{\n  \"schema_version\": 1,\n  ", file);
    bench_put_member(file, "version", ds_accel_version());
    fputs(",\n  ", file);
    bench_put_member(file, "accelerator", report->accelerator);
    fputs(",\n", file);
    put_device(file, bench, report);
    fprintf(file, "  \"time_s\": %.9g,\n  \"sizes_bytes\": [", bench->time_s);
    for (size_t i = 0; i < report->size_count; i++) {
        fprintf(file, "%s%" PRIu64, i > 0 ? ", " : "", report->sizes_bytes[i]);
    }
    fputs("],\n  \"rows\": [", file);
    for (size_t i = 0; i < bench->row_count; i++) {
        fputs(i > 0 ? ",\n" : "\n", file);
        put_row(file, &bench->rows[i]);
    }
    fputs("\n  ]\n}\n", file);
}
