/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "bench.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS 7
#define CELL_SIZE 256

/* ---- numbers -------------------------------------------------------------------------------- */

struct bench_row *bench_add(struct bench_report *report)
{
    struct bench_row *row = &report->rows[report->count];

    if (report->count == BENCH_MAX_ROWS) {
        bench_die("more than %d rows", BENCH_MAX_ROWS);
    }
    report->count++;
    memset(row, 0, sizeof(*row));
    return row;
}

static double ratio_of(const struct bench_row *row)
{
    return row->baseline > 0 ? row->ours / row->baseline : 0;
}

/* Return the used part of the goal; up to 1 the goal is met. */
static double share_of(const struct bench_row *row)
{
    return (row->goal_is_ratio ? ratio_of(row) : row->ours) / row->goal;
}

static bool is_met(const struct bench_row *row)
{
    return share_of(row) <= 1;
}

static void format_ratio(char *text, size_t size, double ratio)
{
    if (ratio > 0 && ratio < 0.1) {
        snprintf(text, size, "1/%.0f", 1 / ratio);
    } else {
        snprintf(text, size, "%.2f", ratio);
    }
}

static void format_goal(char *text, size_t size, const struct bench_row *row)
{
    char number[32];

    if (row->goal_is_ratio) {
        format_ratio(number, sizeof(number), row->goal);
        snprintf(text, size, "<= %s x", number);
    } else {
        snprintf(text, size, "<= %g %s", row->goal, row->unit);
    }
}

/* ---- the table ------------------------------------------------------------------------------ */

static void format_cells(const struct bench_row *row, char cells[COLUMNS][CELL_SIZE])
{
    char number[32];

    snprintf(cells[0], CELL_SIZE, "%s", row->name);
    bench_format_number(number, sizeof(number), row->ours);
    snprintf(cells[1], CELL_SIZE, "%s %s", number, row->unit);
    snprintf(cells[2], CELL_SIZE, "-");
    snprintf(cells[3], CELL_SIZE, "-");
    if (row->baseline > 0) {
        bench_format_number(number, sizeof(number), row->baseline);
        snprintf(cells[2], CELL_SIZE, "%s %s %s", number, row->unit, row->baseline_name);
        format_ratio(cells[3], CELL_SIZE, ratio_of(row));
    }
    format_goal(cells[4], CELL_SIZE, row);
    snprintf(cells[5], CELL_SIZE, "%s", is_met(row) ? "yes" : "NO");
    snprintf(cells[6], CELL_SIZE, "%s", row->note);
}

static void print_cells(char cells[COLUMNS][CELL_SIZE], const int *widths)
{
    for (int i = 0; i < COLUMNS - 1; i++) {
        printf("%-*s  ", widths[i], cells[i]);
    }
    printf("%s\n", cells[COLUMNS - 1]);
}

static void print_table(const struct bench_report *report, const struct bench_machine *machine)
{
    char header[COLUMNS][CELL_SIZE] = {"what", "ours", "baseline", "ratio", "goal", "met", "note"};
    char cells[COLUMNS][CELL_SIZE];
    int widths[COLUMNS] = {0};

    for (size_t i = 0; i <= report->count; i++) {
        if (i < report->count) {
            format_cells(&report->rows[i], cells);
        } else {
            memcpy(cells, header, sizeof(cells));
        }
        for (int j = 0; j < COLUMNS; j++) {
            int length = (int)strlen(cells[j]);

            widths[j] = length > widths[j] ? length : widths[j];
        }
    }
    printf("%s, %ld processors, Linux %s, %s\n\n", machine->cpu, machine->cpu_count,
           machine->kernel, machine->compiler);
    print_cells(header, widths);
    for (size_t i = 0; i < report->count; i++) {
        format_cells(&report->rows[i], cells);
        print_cells(cells, widths);
    }
}

/* ---- the files ------------------------------------------------------------------------------ */

static void put_json_row(FILE *file, const struct bench_row *row)
{
    fputs("    {\"name\": ", file);
    bench_json_text(file, row->name);
    fprintf(file, ", \"ours\": %.6g", row->ours);
    bench_json_member(file, "unit", row->unit);
    if (row->baseline > 0) {
        fprintf(file, ", \"baseline\": %.6g", row->baseline);
        bench_json_member(file, "baseline_name", row->baseline_name);
        fprintf(file, ", \"ratio\": %.6g", ratio_of(row));
    } else {
        fputs(", \"baseline\": null, \"baseline_name\": null, \"ratio\": null", file);
    }
    fprintf(file, ", \"goal\": %.6g, \"goal_of\": \"%s\", \"met\": %s", row->goal,
            row->goal_is_ratio ? "ratio" : "ours", is_met(row) ? "true" : "false");
    bench_json_member(file, "note", row->note);
    fputc('}', file);
}

static void write_json(const struct bench_report *report, const struct bench_machine *machine,
                       const char *dir)
{
    char path[BENCH_PATH_SIZE];
    FILE *file = bench_open(dir, "bench.json", path);

    fprintf(file, "{\n  \"schema_version\": 1,\n  \"machine\": {\"cpu_count\": %ld",
            machine->cpu_count);
    bench_json_member(file, "cpu", machine->cpu);
    bench_json_member(file, "kernel", machine->kernel);
    bench_json_member(file, "compiler", machine->compiler);
    fputs("},\n  \"rows\": [\n", file);
    for (size_t i = 0; i < report->count; i++) {
        put_json_row(file, &report->rows[i]);
        fputs(i + 1 < report->count ? ",\n" : "\n", file);
    }
    fputs("  ]\n}\n", file);
    bench_close(file, path);
}

/* ---- the drawing ---------------------------------------------------------------------------- */

#define SVG_WIDTH 960
#define SVG_TOP 84
#define SVG_ROW 34
#define SVG_BAR_LEFT 280
#define SVG_UNIT 200  /* pixels of a bar exactly at its goal */
#define SVG_LONGEST 2 /* length limit of a bar, in goals */

/* Draw a row. A bar longer than the drawing is cut and finishes in an arrow; the label shows its
 * value. */
static void put_svg_row(FILE *file, const struct bench_row *row, int y)
{
    double share = share_of(row);
    bool is_cut = share > SVG_LONGEST;
    int length = (int)((is_cut ? SVG_LONGEST : share) * SVG_UNIT);
    char cells[COLUMNS][CELL_SIZE];
    char label[4 * CELL_SIZE];

    length = length < 1 ? 1 : length;
    format_cells(row, cells);
    bench_svg_text(file, SVG_BAR_LEFT - 10, y + 16, " text-anchor=\"end\"", row->name);
    fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"22\" fill=\"%s\"/>\n",
            SVG_BAR_LEFT, y, length, is_met(row) ? "#4a7fb5" : "#c8693c");
    if (is_cut) {
        fprintf(file, "<path d=\"M%d %d l11 11 l-11 11 z\" fill=\"#c8693c\"/>\n",
                SVG_BAR_LEFT + length, y);
    }
    snprintf(label, sizeof(label), "%s%s, goal %s: %s", cells[row->goal_is_ratio ? 3 : 1],
             row->goal_is_ratio ? " x" : "", cells[4], is_met(row) ? "met" : "not met");
    /* The label is to the right of the longest bar and the goal's line, so that neither crosses the
     * text. */
    bench_svg_text(file, SVG_BAR_LEFT + SVG_LONGEST * SVG_UNIT + 20, y + 16, "", label);
}

static void write_svg(const struct bench_report *report, const struct bench_machine *machine,
                      const char *dir)
{
    int height = SVG_TOP + (int)report->count * SVG_ROW + 16;
    char path[BENCH_PATH_SIZE];
    char text[512];
    FILE *file = bench_open(dir, "bench.svg", path);

    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n"
            "<title>ds-accel: measured against its goals</title>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
            SVG_WIDTH, height, SVG_WIDTH, height, SVG_WIDTH, height);
    bench_svg_text(file, 16, 26, " font-size=\"17\" font-weight=\"bold\"",
                   "ds-accel: measured against its goals (shorter is better)");
    snprintf(text, sizeof(text), "%s, %ld processors, Linux %s, %s", machine->cpu,
             machine->cpu_count, machine->kernel, machine->compiler);
    bench_svg_text(file, 16, 46, " fill=\"#555555\"", text);
    bench_svg_text(file, SVG_BAR_LEFT + SVG_UNIT, SVG_TOP - 10, " text-anchor=\"middle\"", "goal");
    for (size_t i = 0; i < report->count; i++) {
        put_svg_row(file, &report->rows[i], SVG_TOP + (int)i * SVG_ROW);
    }
    fprintf(file, "<path d=\"M%d %d V%d\" stroke=\"#222222\" stroke-dasharray=\"4 3\"/>\n</svg>\n",
            SVG_BAR_LEFT + SVG_UNIT, SVG_TOP - 6, height - 16);
    bench_close(file, path);
}

void bench_write(const struct bench_report *report, const char *dir)
{
    struct bench_machine machine;

    bench_read_machine(&machine);
    print_table(report, &machine);
    printf("\n");
    write_json(report, &machine, dir);
    write_svg(report, &machine, dir);
}
