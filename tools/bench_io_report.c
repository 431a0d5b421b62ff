/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Writes the rows of ds-accel bench io as a table or as JSON. */
#include "bench_io.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GB 1e9
#define PERCENT 100

/* ---- figures -------------------------------------------------------------------------------- */

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

double bench_io_median(const double *values, uint32_t count)
{
    double sorted[BENCH_IO_LAPS];

    if (count == 0) {
        return 0;
    }
    memcpy(sorted, values, count * sizeof(*values));
    qsort(sorted, count, sizeof(*sorted), ascending);
    return (sorted[count / 2] + sorted[(count - 1) / 2]) / 2;
}

static double both(const struct bench_io_row *row, uint32_t lap)
{
    return bench_io_both(row->rates[BENCH_IO_WRITE][lap], row->rates[BENCH_IO_READ][lap]);
}

void bench_io_gain(const struct bench_io_row *row, const struct bench_io_row *base, uint32_t laps,
                   double *gain_out, double *noise_out)
{
    double ratios[BENCH_IO_LAPS] = {0};
    double median;

    for (uint32_t i = 0; i < laps; i++) {
        ratios[i] = both(row, i) / both(base, i);
    }
    median = bench_io_median(ratios, laps);
    for (uint32_t i = 0; i < laps; i++) {
        ratios[i] = ratios[i] > median ? ratios[i] - median : median - ratios[i];
    }
    *gain_out = median - 1;
    *noise_out = bench_io_median(ratios, laps);
}

static double both_median(const struct bench_io_row *row, uint32_t laps)
{
    double rates[BENCH_IO_LAPS];

    for (uint32_t i = 0; i < laps; i++) {
        rates[i] = both(row, i);
    }
    return bench_io_median(rates, laps);
}

static const char *engine_of(const struct bench_io *io)
{
    return io->engine == DS_ACCEL_ASYNC_IO_ENGINE_IO_URING ? "io_uring" : "threads";
}

/* ---- text ----------------------------------------------------------------------------------- */

static const char *note_of(const struct bench_io *io)
{
    if (io->memory) {
        return "memory and no disk, as the file system is tmpfs";
    }
    return io->direct_bytes > 0 ? "O_DIRECT"
                                : "through the page cache, as the file system has no O_DIRECT";
}

static void write_head(FILE *file, const struct bench_io *io, const struct bench_io_report *report)
{
    char size[32];
    char text[1024];

    bench_format_size(io->size_bytes, size, sizeof(size));
    snprintf(text, sizeof(text), "%.500s: a file of %s, engine %s, %s; %g s", report->directory,
             size, engine_of(io), note_of(io), report->time_s);
    ds_accel_sanitize_text(text, sizeof(text));
    fprintf(file, "%s\n", text);
    if (io->engine == DS_ACCEL_ASYNC_IO_ENGINE_THREADS) {
        snprintf(text, sizeof(text), "%s", io->engine_reason);
        ds_accel_sanitize_text(text, sizeof(text));
        fprintf(file, "%s\n", text);
    }
}

static void write_result(FILE *file, const struct bench_io_report *report)
{
    char text[1024];

    fprintf(file,
            "%" PRIu32 " settings, %" PRIu32 " measurements; gain over the defaults %.1f %%, noise "
            "%.1f %%\n",
            report->search->candidates, report->search->measurements, PERCENT * report->gain,
            PERCENT * report->noise);
    if (report->written == NULL) {
        fputs("nothing was written: no settings are better than the defaults by more than the "
              "noise\n",
              file);
        return;
    }
    snprintf(text, sizeof(text), "op_settings.async_io was written to %.900s", report->written);
    ds_accel_sanitize_text(text, sizeof(text));
    fprintf(file, "%s\n", text);
}

void bench_io_write_text(FILE *file, const struct bench_io *io,
                         const struct bench_io_report *report, bool colour)
{
    write_head(file, io, report);
    fprintf(file, "%s%-11s %8s %6s %12s %7s %8s %11s %10s %10s%s\n", colour ? "\033[1m" : "",
            "SETTINGS", "BLOCK", "DEPTH", "PARALLELISM", "SINGLE", "OVERLAP", "WRITE GB/s",
            "READ GB/s", "BOTH GB/s", colour ? "\033[0m" : "");
    for (size_t i = 0; i < report->row_count; i++) {
        const struct bench_io_row *row = &report->rows[i];
        char block[32];

        bench_format_size(row->settings.block_bytes, block, sizeof(block));
        fprintf(file, "%-11s %8s %6" PRIu32 " %12" PRIu32 " %7s %8s %11.3f %10.3f %10.3f\n",
                row->name, block, row->settings.queue_depth, row->settings.parallelism,
                row->settings.single_submit ? "true" : "false",
                row->settings.overlap_events ? "true" : "false",
                bench_io_median(row->rates[BENCH_IO_WRITE], report->laps) / GB,
                bench_io_median(row->rates[BENCH_IO_READ], report->laps) / GB,
                both_median(row, report->laps) / GB);
    }
    if (report->search != NULL) {
        write_result(file, report);
    }
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void put_row(FILE *file, const struct bench_io_row *row, uint32_t laps)
{
    const struct bench_io_settings *settings = &row->settings;

    fprintf(file,
            "    {\n      \"name\": \"%s\",\n      \"settings\": {\"block_bytes\": %" PRIu64
            ", \"queue_depth\": %" PRIu32 ", \"parallelism\": %" PRIu32
            ", \"single_submit\": %s, \"overlap_events\": %s},\n",
            row->name, settings->block_bytes, settings->queue_depth, settings->parallelism,
            settings->single_submit ? "true" : "false",
            settings->overlap_events ? "true" : "false");
    fprintf(file,
            "      \"write_bytes_per_s\": %.0f,\n      \"read_bytes_per_s\": %.0f,\n"
            "      \"both_bytes_per_s\": %.0f\n    }",
            bench_io_median(row->rates[BENCH_IO_WRITE], laps),
            bench_io_median(row->rates[BENCH_IO_READ], laps), both_median(row, laps));
}

static void put_search(FILE *file, const struct bench_io_report *report)
{
    if (report->search == NULL) {
        fputs("  \"tune\": null\n", file);
        return;
    }
    fprintf(file,
            "  \"tune\": {\n    \"candidates\": %" PRIu32 ",\n    \"measurements\": %" PRIu32
            ",\n    \"gain\": %.6g,\n    \"noise\": %.6g,\n    ",
            report->search->candidates, report->search->measurements, report->gain, report->noise);
    bench_put_member(file, "written", report->written != NULL ? report->written : "");
    fputs("\n  }\n", file);
}

void bench_io_write_json(FILE *file, const struct bench_io *io,
                         const struct bench_io_report *report)
{
    fputs("{\n  \"schema_version\": 1,\n  ", file);
    bench_put_member(file, "version", ds_accel_version());
    fputs(",\n  ", file);
    bench_put_member(file, "directory", report->directory);
    fprintf(file, ",\n  \"size_bytes\": %" PRIu64 ",\n  \"time_s\": %.9g,\n  ", io->size_bytes,
            report->time_s);
    bench_put_member(file, "engine", engine_of(io));
    fputs(",\n  ", file);
    bench_put_member(file, "engine_reason", io->engine_reason);
    fprintf(file,
            ",\n  \"direct\": %s,\n  \"memory\": %s,\n  \"laps\": %" PRIu32 ",\n  \"rows\": [",
            io->direct_bytes > 0 ? "true" : "false", io->memory ? "true" : "false", report->laps);
    for (size_t i = 0; i < report->row_count; i++) {
        fputs(i > 0 ? ",\n" : "\n", file);
        put_row(file, &report->rows[i], report->laps);
    }
    fputs("\n  ],\n", file);
    put_search(file, report);
    fputs("}\n", file);
}
