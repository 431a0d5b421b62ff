/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "ops.h"

#include <stdarg.h>
#include <string.h>

#define NOTES 16
/* More than this part of the processors' time, used by other programs, spoils the figures. */
#define OTHERS 0.03

void ops_note(struct ops_report *report, const char *format, ...)
{
    char *note;
    va_list arguments;

    if (report->note_count == NOTES) {
        bench_die("more than %d notes", NOTES);
    }
    note = report->notes[report->note_count++];
    va_start(arguments, format);
    vsnprintf(note, sizeof(report->notes[0]), format, arguments);
    va_end(arguments);
    printf("%s\n", note);
}

void ops_format_elements(char *text, size_t size, size_t elements)
{
    unsigned zeros = 0;
    size_t rest = elements;

    while (rest >= 10 && rest % 10 == 0) {
        rest /= 10;
        zeros++;
    }
    if (rest < 10 && zeros > 2) {
        snprintf(text, size, "%zue%u", rest, zeros);
    } else {
        snprintf(text, size, "%zu", elements);
    }
}

/* ---- the table ------------------------------------------------------------------------------ */

static const char *limit_name(const struct ops_row *row)
{
    return row->bytes <= row->arithmetic ? "bytes" : "arithmetic";
}

static bool is_met(const struct ops_row *row)
{
    return ops_ratio(row) <= OPS_GOAL;
}

/* Return GB/s of a figure in millions of elements a second. */
static double bandwidth(const struct ops_row *row, double figure)
{
    return figure * ops_element_bytes(row) / 1e3;
}

void ops_print_row(const struct ops_report *report, size_t index)
{
    const struct ops_row *row = &report->rows[index];
    char elements[32];

    if (index == 0 || report->rows[index - 1].op != row->op) {
        printf("\n%s, %s; limits in %s; millions of elements a second\n\n", row->op->name,
               row->path, row->limit_path);
        printf("%-29s  %8s  %7s  %8s  %6s  %10s  %15s  %7s  %s\n", "data types", "elements",
               "threads", "ours", "GB/s", "bytes only", "arithmetic only", "x limit", "<= 1.05");
    }
    ops_format_elements(elements, sizeof(elements), row->elements);
    printf("%-29s  %8s  %7u  %8.0f  %6.1f  %9.0f%s  %14.0f%s  %7.2f  %s\n", row->dtypes->name,
           elements, row->threads, row->ours, bandwidth(row, row->ours), row->bytes,
           row->bytes <= row->arithmetic ? "*" : " ", row->arithmetic,
           row->bytes <= row->arithmetic ? " " : "*", ops_ratio(row), is_met(row) ? "yes" : "NO");
    fflush(stdout);
}

/* Return our figure beside torch's, or 0. */
static double ours_beside(const struct ops_report *report, const struct ops_torch *torch)
{
    unsigned threads = torch->elements < OPS_ALONE ? 1 : torch->threads;

    for (size_t i = 0; i < report->count; i++) {
        const struct ops_row *row = &report->rows[i];

        if (strcmp(row->op->name, "cpu_adam") == 0 && strcmp(row->dtypes->name, "fp32") == 0 &&
            row->elements == torch->elements && row->threads == threads) {
            return row->ours;
        }
    }
    return 0;
}

static void print_torch(const struct ops_report *report)
{
    char elements[32];

    if (report->torch_count == 0) {
        return;
    }
    printf("\nAdamW of torch %s, fp32, beside cpu_adam; millions of elements a second\n\n",
           report->torch_version);
    printf("%-8s  %8s  %7s  %8s  %8s  %s\n", "torch", "elements", "threads", "torch", "cpu_adam",
           "cpu_adam is faster by");
    for (size_t i = 0; i < report->torch_count; i++) {
        const struct ops_torch *torch = &report->torch[i];
        double ours = ours_beside(report, torch);

        ops_format_elements(elements, sizeof(elements), torch->elements);
        printf("%-8s  %8s  %7u  %8.0f", torch->name, elements, torch->threads, torch->figure);
        if (ours > 0) {
            printf("  %8.0f  %.1f x", ours, ours / torch->figure);
        }
        printf("\n");
    }
}

void ops_print_end(const struct ops_report *report)
{
    size_t met = 0;

    print_torch(report);
    printf("\nPeak memory of the process without the arrays, MiB:");
    for (size_t i = 0; i < report->memory_count; i++) {
        const struct ops_memory *memory = &report->memory[i];

        printf("%s %s %.1f", i > 0 ? "," : "", memory->op->name,
               memory->peak_mib - memory->arrays_mib);
    }
    printf("\nArrays: %.0f MiB, %.0f %% of them in pages of 2 MiB.\n", report->arrays_mib,
           report->huge_mib / report->arrays_mib * 100);
    printf("Other programs used %.0f %% of the processors meanwhile%s.\n", report->others * 100,
           report->others > OTHERS ? ", so these figures are not reliable, above all with 2 threads"
                                   : "");
    for (size_t i = 0; i < report->count; i++) {
        met += is_met(&report->rows[i]);
    }
    printf("* The limit. %zu of %zu rows take at most %.2f times as long as their limit.\n\n", met,
           report->count, OPS_GOAL);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static const char *dtype_name(enum limit_dtype dtype)
{
    return dtype == LIMIT_FLOAT ? "float32" : dtype == LIMIT_HALF ? "float16" : "bfloat16";
}

static void put_row(FILE *file, const struct ops_row *row)
{
    const struct ops_dtypes *dtypes = row->dtypes;

    fputs("    {\"op\": ", file);
    bench_json_text(file, row->op->name);
    bench_json_member(file, "path", row->path);
    bench_json_member(file, "limit_path", row->limit_path);
    bench_json_member(file, "dtypes", dtypes->name);
    bench_json_member(file, "parameter", dtype_name(dtypes->parameter));
    bench_json_member(file, "gradient", dtype_name(dtypes->gradient));
    bench_json_member(file, "state", dtype_name(dtypes->state));
    if (dtypes->copy != LIMIT_NONE) {
        bench_json_member(file, "copy", dtype_name(dtypes->copy));
    } else {
        fputs(", \"copy\": null", file);
    }
    fprintf(file, ", \"stochastic\": %s, \"elements\": %zu, \"threads\": %u",
            dtypes->stochastic ? "true" : "false", row->elements, row->threads);
    fprintf(file, ", \"bytes_per_element\": %u, \"flop_per_element\": %u", ops_element_bytes(row),
            row->op->flops);
    fprintf(file, ", \"melements_per_s\": %.6g, \"gb_per_s\": %.6g", row->ours,
            bandwidth(row, row->ours));
    fprintf(file, ", \"limit_bytes_melements_per_s\": %.6g, \"limit_bytes_gb_per_s\": %.6g",
            row->bytes, bandwidth(row, row->bytes));
    fprintf(file, ", \"limit_arithmetic_melements_per_s\": %.6g", row->arithmetic);
    bench_json_member(file, "limit", limit_name(row));
    fprintf(file, ", \"ratio\": %.6g, \"goal\": %.6g, \"met\": %s, \"rounds\": %u}", ops_ratio(row),
            OPS_GOAL, is_met(row) ? "true" : "false", row->rounds);
}

static void put_torch(FILE *file, const struct ops_report *report)
{
    if (report->torch_count == 0) {
        fputs("  \"torch\": null,\n", file);
        return;
    }
    fputs("  \"torch\": {\"version\": ", file);
    bench_json_text(file, report->torch_version);
    fputs(", \"rows\": [\n", file);
    for (size_t i = 0; i < report->torch_count; i++) {
        const struct ops_torch *torch = &report->torch[i];

        fputs("    {\"name\": ", file);
        bench_json_text(file, torch->name);
        fprintf(file, ", \"elements\": %zu, \"threads\": %u, \"melements_per_s\": %.6g}%s\n",
                torch->elements, torch->threads, torch->figure,
                i + 1 < report->torch_count ? "," : "");
    }
    fputs("  ]},\n", file);
}

static void put_memory(FILE *file, const struct ops_report *report)
{
    fprintf(file,
            "  \"memory\": {\"arrays_mib\": %.6g, \"arrays_in_huge_pages_mib\": %.6g, "
            "\"peaks\": [\n",
            report->arrays_mib, report->huge_mib);
    for (size_t i = 0; i < report->memory_count; i++) {
        const struct ops_memory *memory = &report->memory[i];

        fputs("    {\"op\": ", file);
        bench_json_text(file, memory->op->name);
        fprintf(file, ", \"peak_mib\": %.6g, \"beyond_arrays_mib\": %.6g}%s\n", memory->peak_mib,
                memory->peak_mib - memory->arrays_mib, i + 1 < report->memory_count ? "," : "");
    }
    fputs("  ]},\n", file);
}

void ops_write_json(const struct ops_report *report, const char *dir)
{
    char path[BENCH_PATH_SIZE];
    FILE *file = bench_open(dir, "ops.json", path);

    fprintf(file, "{\n  \"schema_version\": 1,\n  \"machine\": {\"cpu_count\": %ld",
            report->machine.cpu_count);
    bench_json_member(file, "cpu", report->machine.cpu);
    bench_json_member(file, "kernel", report->machine.kernel);
    bench_json_member(file, "compiler", report->machine.compiler);
    bench_json_member(file, "path", report->count > 0 ? report->rows[0].path : "");
    fprintf(file, "},\n  \"others_cpu_share\": %.3g,\n  \"notes\": [", report->others);
    for (size_t i = 0; i < report->note_count; i++) {
        fputs(i > 0 ? ", " : "", file);
        bench_json_text(file, report->notes[i]);
    }
    fputs("],\n", file);
    put_torch(file, report);
    put_memory(file, report);
    fputs("  \"rows\": [\n", file);
    for (size_t i = 0; i < report->count; i++) {
        put_row(file, &report->rows[i]);
        fputs(i + 1 < report->count ? ",\n" : "\n", file);
    }
    fputs("  ]\n}\n", file);
    bench_close(file, path);
}
