/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define COLUMNS 7
#define CELL_SIZE 256

struct machine {
    char cpu[128];
    char kernel[96];
    char compiler[96];
    long cpu_count;
};

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

/* Write a number with three significant digits. */
static void format_number(char *text, size_t size, double value)
{
    int digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;

    snprintf(text, size, "%.*f", digits, value);
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

/* ---- the machine ---------------------------------------------------------------------------- */

/* Read the processor's name: the first "model name" line of /proc/cpuinfo, which only x86
 * processors have. */
static void read_cpu(char *cpu, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[512];

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *colon = strchr(line, ':');

        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            snprintf(cpu, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static void read_machine(struct machine *machine)
{
    struct utsname names;

    memset(machine, 0, sizeof(*machine));
    if (uname(&names) == 0) {
        snprintf(machine->cpu, sizeof(machine->cpu), "%s", names.machine);
        snprintf(machine->kernel, sizeof(machine->kernel), "%s", names.release);
    }
    read_cpu(machine->cpu, sizeof(machine->cpu));
#ifdef __clang__
    snprintf(machine->compiler, sizeof(machine->compiler), "%s", __VERSION__);
#else
    snprintf(machine->compiler, sizeof(machine->compiler), "GCC %s", __VERSION__);
#endif
    machine->cpu_count = sysconf(_SC_NPROCESSORS_ONLN);
}

/* ---- the table ------------------------------------------------------------------------------ */

static void format_cells(const struct bench_row *row, char cells[COLUMNS][CELL_SIZE])
{
    char number[32];

    snprintf(cells[0], CELL_SIZE, "%s", row->name);
    format_number(number, sizeof(number), row->ours);
    snprintf(cells[1], CELL_SIZE, "%s %s", number, row->unit);
    snprintf(cells[2], CELL_SIZE, "-");
    snprintf(cells[3], CELL_SIZE, "-");
    if (row->baseline > 0) {
        format_number(number, sizeof(number), row->baseline);
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

static void print_table(const struct bench_report *report, const struct machine *machine)
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

static FILE *open_output(const char *dir, const char *name, char path[BENCH_PATH_SIZE])
{
    FILE *file;

    if (snprintf(path, BENCH_PATH_SIZE, "%s/%s", dir, name) >= BENCH_PATH_SIZE) {
        bench_die("%s: the path is too long", dir);
    }
    file = fopen(path, "w");
    if (file == NULL) {
        bench_die("%s: %s", path, strerror(errno));
    }
    return file;
}

static void close_output(FILE *file, const char *path)
{
    int failed = ferror(file);

    if (fclose(file) != 0 || failed) {
        bench_die("%s: it could not be written", path);
    }
    printf("%s\n", path);
}

static void put_json_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            fprintf(file, "\\%c", *text);
        } else if ((unsigned char)*text < 0x20) {
            fprintf(file, "\\u%04x", (unsigned)*text);
        } else {
            fputc(*text, file);
        }
    }
    fputc('"', file);
}

static void put_json_member(FILE *file, const char *key, const char *text)
{
    fprintf(file, ", \"%s\": ", key);
    put_json_text(file, text);
}

static void put_json_row(FILE *file, const struct bench_row *row)
{
    fputs("    {\"name\": ", file);
    put_json_text(file, row->name);
    fprintf(file, ", \"ours\": %.6g", row->ours);
    put_json_member(file, "unit", row->unit);
    if (row->baseline > 0) {
        fprintf(file, ", \"baseline\": %.6g", row->baseline);
        put_json_member(file, "baseline_name", row->baseline_name);
        fprintf(file, ", \"ratio\": %.6g", ratio_of(row));
    } else {
        fputs(", \"baseline\": null, \"baseline_name\": null, \"ratio\": null", file);
    }
    fprintf(file, ", \"goal\": %.6g, \"goal_of\": \"%s\", \"met\": %s", row->goal,
            row->goal_is_ratio ? "ratio" : "ours", is_met(row) ? "true" : "false");
    put_json_member(file, "note", row->note);
    fputc('}', file);
}

static void write_json(const struct bench_report *report, const struct machine *machine,
                       const char *dir)
{
    char path[BENCH_PATH_SIZE];
    FILE *file = open_output(dir, "bench.json", path);

    fprintf(file, "{\n  \"schema_version\": 1,\n  \"machine\": {\"cpu_count\": %ld",
            machine->cpu_count);
    put_json_member(file, "cpu", machine->cpu);
    put_json_member(file, "kernel", machine->kernel);
    put_json_member(file, "compiler", machine->compiler);
    fputs("},\n  \"rows\": [\n", file);
    for (size_t i = 0; i < report->count; i++) {
        put_json_row(file, &report->rows[i]);
        fputs(i + 1 < report->count ? ",\n" : "\n", file);
    }
    fputs("  ]\n}\n", file);
    close_output(file, path);
}

/* ---- the drawing ---------------------------------------------------------------------------- */

#define SVG_WIDTH 960
#define SVG_TOP 84
#define SVG_ROW 34
#define SVG_BAR_LEFT 280
#define SVG_UNIT 200  /* pixels of a bar exactly at its goal */
#define SVG_LONGEST 2 /* length limit of a bar, in goals */

static void put_svg_text(FILE *file, int x, int y, const char *style, const char *text)
{
    fprintf(file, "<text x=\"%d\" y=\"%d\"%s>", x, y, style);
    for (; *text != '\0'; text++) {
        if (*text == '&' || *text == '<' || *text == '>') {
            fputs(*text == '&' ? "&amp;" : *text == '<' ? "&lt;" : "&gt;", file);
        } else if ((unsigned char)*text >= 0x20) {
            fputc(*text, file);
        }
    }
    fputs("</text>\n", file);
}

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
    put_svg_text(file, SVG_BAR_LEFT - 10, y + 16, " text-anchor=\"end\"", row->name);
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
    put_svg_text(file, SVG_BAR_LEFT + SVG_LONGEST * SVG_UNIT + 20, y + 16, "", label);
}

static void write_svg(const struct bench_report *report, const struct machine *machine,
                      const char *dir)
{
    int height = SVG_TOP + (int)report->count * SVG_ROW + 16;
    char path[BENCH_PATH_SIZE];
    char text[512];
    FILE *file = open_output(dir, "bench.svg", path);

    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n"
            "<title>ds-accel: measured against its goals</title>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
            SVG_WIDTH, height, SVG_WIDTH, height, SVG_WIDTH, height);
    put_svg_text(file, 16, 26, " font-size=\"17\" font-weight=\"bold\"",
                 "ds-accel: measured against its goals (shorter is better)");
    snprintf(text, sizeof(text), "%s, %ld processors, Linux %s, %s", machine->cpu,
             machine->cpu_count, machine->kernel, machine->compiler);
    put_svg_text(file, 16, 46, " fill=\"#555555\"", text);
    put_svg_text(file, SVG_BAR_LEFT + SVG_UNIT, SVG_TOP - 10, " text-anchor=\"middle\"", "goal");
    for (size_t i = 0; i < report->count; i++) {
        put_svg_row(file, &report->rows[i], SVG_TOP + (int)i * SVG_ROW);
    }
    fprintf(file, "<path d=\"M%d %d V%d\" stroke=\"#222222\" stroke-dasharray=\"4 3\"/>\n</svg>\n",
            SVG_BAR_LEFT + SVG_UNIT, SVG_TOP - 6, height - 16);
    close_output(file, path);
}

void bench_write(const struct bench_report *report, const char *dir)
{
    struct machine machine;

    read_machine(&machine);
    print_table(report, &machine);
    printf("\n");
    write_json(report, &machine, dir);
    write_svg(report, &machine, dir);
}
