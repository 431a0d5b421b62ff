/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * One drawing per op: operations per byte across, operations per second up, both logarithmic. The
 * roof of a number of threads is the smaller of the memory's bandwidth, measured with the largest
 * arrays, and of the op's arithmetic in the first cache with the data types where it is fastest.
 * Points above the slope were in a cache.
 */
#include "ops.h"

#include <math.h>
#include <string.h>

#define WIDTH 1000
#define TOP 64    /* above the first drawing */
#define PANEL 590 /* height of a drawing with its labels */
#define LEFT 76   /* the plot's edges within a drawing */
#define RIGHT 700
#define UPPER 44
#define LOWER 450
#define LABEL 17 /* height of a line of labels */
#define MARKS " fill=\"#555555\" font-size=\"12\""

struct axis {
    double low; /* logarithms */
    double high;
};

struct panel {
    FILE *file;
    const struct ops_report *report;
    const struct ops_op *op;
    int y;
    struct axis across;
    struct axis up;
    double slope[OPS_MAX_THREADS];   /* GB/s */
    double ceiling[OPS_MAX_THREADS]; /* Gflop/s */
    size_t largest;
};

static const char *const colours[OPS_DTYPES] = {"#1f5fa8", "#5b9bd5", "#8fc1ea",
                                                "#b5541c", "#e08a4f", "#7a2f0b",
                                                "#d9a441", "#3d8b4f", "#8cc08f"};
static const char *const dashes[OPS_MAX_THREADS] = {"", " stroke-dasharray=\"7 4\""};

static double intensity(const struct ops_row *row)
{
    return (double)row->op->flops / ops_element_bytes(row);
}

/* Return Gflop/s of a figure in millions of elements a second. */
static double gflops(const struct ops_row *row, double figure)
{
    return figure * row->op->flops / 1e3;
}

static double position(const struct axis *axis, double value, double from, double to)
{
    return from + (log10(value) - axis->low) / (axis->high - axis->low) * (to - from);
}

static double x_of(const struct panel *panel, double value)
{
    return position(&panel->across, value, LEFT, RIGHT);
}

static double y_of(const struct panel *panel, double value)
{
    return panel->y + position(&panel->up, value, LOWER, UPPER);
}

static void widen(struct axis *axis, double value)
{
    double number = log10(value);

    axis->low = number < axis->low ? number : axis->low;
    axis->high = number > axis->high ? number : axis->high;
}

/* Find the roofs and the ends of the axes. */
static void survey(struct panel *panel)
{
    const struct ops_report *report = panel->report;

    panel->across = panel->up = (struct axis){INFINITY, -INFINITY};
    for (size_t i = 0; i < report->count; i++) {
        if (report->rows[i].op == panel->op && report->rows[i].elements > panel->largest) {
            panel->largest = report->rows[i].elements;
        }
    }
    for (size_t i = 0; i < report->count; i++) {
        const struct ops_row *row = &report->rows[i];
        unsigned thread = row->threads - 1;
        double bandwidth = row->bytes * ops_element_bytes(row) / 1e3;

        if (row->op != panel->op) {
            continue;
        }
        widen(&panel->across, intensity(row));
        widen(&panel->up, gflops(row, row->ours));
        if (row->elements == panel->largest) {
            panel->slope[thread] = fmax(panel->slope[thread], bandwidth);
        }
        panel->ceiling[thread] = fmax(panel->ceiling[thread], gflops(row, row->arithmetic));
    }
    for (unsigned i = 0; i < OPS_MAX_THREADS; i++) {
        if (panel->ceiling[i] > 0) {
            widen(&panel->up, panel->ceiling[i]);
        }
    }
    panel->across.low -= 0.25;
    panel->across.high += 0.25;
    panel->up.low -= 0.2;
    panel->up.high += 0.1;
}

/* ---- parts of a drawing --------------------------------------------------------------------- */

static void put_text(const struct panel *panel, double x, double y, const char *style,
                     const char *text)
{
    bench_svg_text(panel->file, (int)lround(x), (int)lround(y), style, text);
}

/* Draw a line between points whose y is that of the file. */
static void put_line(const struct panel *panel, double x1, double y1, double x2, double y2,
                     const char *style)
{
    fprintf(panel->file, "<path d=\"M%.1f %.1f L%.1f %.1f\" fill=\"none\"%s/>\n", x1, y1, x2, y2,
            style);
}

static void put_axes(const struct panel *panel)
{
    static const double steps[] = {1, 2, 5};
    char text[32];

    fprintf(panel->file,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
            "stroke=\"#222222\"/>\n",
            LEFT, panel->y + UPPER, RIGHT - LEFT, LOWER - UPPER);
    for (int i = -9; i < 27; i++) {
        double value = pow(10, floor(i / 3.0)) * steps[(i + 9) % 3];
        double number = log10(value);

        snprintf(text, sizeof(text), "%g", value);
        if (number > panel->up.low && number < panel->up.high) {
            double y = y_of(panel, value);

            put_line(panel, LEFT, y, RIGHT, y, " stroke=\"#e4e4e4\"");
            put_text(panel, LEFT - 8, y + 4, MARKS " text-anchor=\"end\"", text);
        }
        if (number > panel->across.low && number < panel->across.high) {
            double x = x_of(panel, value);

            put_line(panel, x, panel->y + LOWER - 6, x, panel->y + LOWER, " stroke=\"#222222\"");
            put_text(panel, x, panel->y + LOWER + 16, MARKS " text-anchor=\"middle\"", text);
        }
    }
    put_text(panel, LEFT, panel->y + UPPER - 8, MARKS, "Gflop/s");
    put_text(panel, RIGHT + 10, panel->y + LOWER + 16, MARKS, "flop/byte");
}

static void put_roof(const struct panel *panel, unsigned threads)
{
    double slope = panel->slope[threads - 1];
    double ceiling = panel->ceiling[threads - 1];
    double low = pow(10, panel->across.low);
    double high = pow(10, panel->across.high);
    double floor_x = pow(10, panel->up.low) / slope; /* where the slope enters the plot */
    double from = fmax(low, floor_x);
    double edge = fmin(ceiling / slope, high);
    char style[96];

    if (slope <= 0 || ceiling <= 0) {
        return;
    }
    snprintf(style, sizeof(style), " stroke=\"#444444\" stroke-width=\"1.5\"%s",
             dashes[threads - 1]);
    if (from < edge) {
        put_line(panel, x_of(panel, from), y_of(panel, from * slope), x_of(panel, edge),
                 y_of(panel, edge * slope), style);
    }
    edge = fmax(edge, low);
    if (edge < high) {
        put_line(panel, x_of(panel, edge), y_of(panel, ceiling), RIGHT, y_of(panel, ceiling),
                 style);
    }
}

/* Small arrays have small marks. */
static double radius_of(const struct panel *panel, size_t elements)
{
    double radius = 7 - 1.1 * log10((double)panel->largest / (double)elements);

    return fmax(radius, 2);
}

static void put_mark(const struct panel *panel, double x, double y, double radius,
                     const char *colour, unsigned threads)
{
    fprintf(panel->file,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\" stroke=\"%s\" "
            "stroke-width=\"1.5\">",
            x, y, radius, threads == 1 ? colour : "#ffffff", colour);
}

static void put_points(const struct panel *panel)
{
    for (size_t i = 0; i < panel->report->count; i++) {
        const struct ops_row *row = &panel->report->rows[i];
        char elements[32];

        if (row->op != panel->op) {
            continue;
        }
        ops_format_elements(elements, sizeof(elements), row->elements);
        put_mark(panel, x_of(panel, intensity(row)), y_of(panel, gflops(row, row->ours)),
                 radius_of(panel, row->elements), colours[row->dtypes - ops_dtypes], row->threads);
        fprintf(panel->file,
                "<title>%s, %s elements, %u thread%s: %.0f million elements a second, "
                "%.2f x the limit's time</title></circle>\n",
                row->dtypes->name, elements, row->threads, row->threads > 1 ? "s" : "", row->ours,
                ops_ratio(row));
    }
}

static bool has_intensity(const struct panel *panel, double value, char *names, size_t size)
{
    size_t used = 0;

    for (unsigned i = 0; i < OPS_DTYPES; i++) {
        struct ops_row row = {.op = panel->op, .dtypes = &ops_dtypes[i]};

        /* Equal quotients of small whole numbers are equal. */
        if (!(intensity(&row) < value) && !(intensity(&row) > value) && used < size) {
            used += (size_t)snprintf(names + used, size - used, "%s%s", used > 0 ? "; " : "",
                                     row.dtypes->name);
        }
    }
    return used > 0;
}

/* Label the columns of points from right to left, each on a line of its own, so that no label's
 * line crosses a text. */
static void put_columns(const struct panel *panel)
{
    double below = INFINITY;
    int line = 0;

    for (;;) {
        double value = 0;
        char names[400];
        char text[440];
        double x;

        for (unsigned i = 0; i < OPS_DTYPES; i++) {
            struct ops_row row = {.op = panel->op, .dtypes = &ops_dtypes[i]};

            if (intensity(&row) < below && intensity(&row) > value) {
                value = intensity(&row);
            }
        }
        if (value <= 0 || !has_intensity(panel, value, names, sizeof(names))) {
            return;
        }
        below = value;
        x = x_of(panel, value);
        line++;
        put_line(panel, x, panel->y + LOWER, x, panel->y + LOWER + 24 + line * LABEL,
                 " stroke=\"#bbbbbb\"");
        snprintf(text, sizeof(text), "%.2f: %s", value, names);
        put_text(panel, x + 5, panel->y + LOWER + 24 + line * LABEL, MARKS, text);
    }
}

static void put_legend(const struct panel *panel)
{
    const double x = RIGHT + 26;
    double y = panel->y + UPPER + 8;
    size_t last = 0;
    char elements[32];
    char text[128];

    for (unsigned i = 0; i < OPS_DTYPES; i++, y += LABEL) {
        put_mark(panel, x, y - 4, 5, colours[i], 1);
        fputs("</circle>\n", panel->file);
        put_text(panel, x + 14, y, MARKS, ops_dtypes[i].name);
    }
    y += LABEL / 2.0;
    for (unsigned threads = 1; threads <= OPS_MAX_THREADS; threads++) {
        if (panel->slope[threads - 1] <= 0) {
            continue;
        }
        put_mark(panel, x, y - 4, 5, "#444444", threads);
        fputs("</circle>\n", panel->file);
        snprintf(text, sizeof(text), " stroke=\"#444444\" stroke-width=\"1.5\"%s",
                 dashes[threads - 1]);
        put_line(panel, x + 14, y - 4, x + 44, y - 4, text);
        snprintf(text, sizeof(text), "%u thread%s: %.0f GB/s, %.0f Gflop/s", threads,
                 threads > 1 ? "s" : "", panel->slope[threads - 1], panel->ceiling[threads - 1]);
        put_text(panel, x + 52, y, MARKS, text);
        y += LABEL;
    }
    y += LABEL / 2.0;
    for (size_t i = 0; i < panel->report->count; i++) {
        const struct ops_row *row = &panel->report->rows[i];

        /* The sizes of the first data types, each once. */
        if (row->op != panel->op || row->dtypes != &ops_dtypes[0] || row->elements == last) {
            continue;
        }
        last = row->elements;
        put_mark(panel, x, y - 4, radius_of(panel, last), "#444444", 1);
        fputs("</circle>\n", panel->file);
        ops_format_elements(elements, sizeof(elements), last);
        snprintf(text, sizeof(text), "%s elements", elements);
        put_text(panel, x + 14, y, MARKS, text);
        y += LABEL;
    }
}

static void put_panel(struct panel *panel, const char *path)
{
    char text[128];

    survey(panel);
    snprintf(text, sizeof(text), "%s, %s", panel->op->name, path);
    put_text(panel, LEFT, panel->y + 16, " font-size=\"15\" font-weight=\"bold\"", text);
    put_axes(panel);
    for (unsigned threads = 1; threads <= OPS_MAX_THREADS; threads++) {
        put_roof(panel, threads);
    }
    put_columns(panel);
    put_points(panel);
    put_legend(panel);
}

void ops_write_svg(const struct ops_report *report, const char *dir)
{
    int height = TOP + (int)report->memory_count * PANEL;
    char path[BENCH_PATH_SIZE];
    char text[512];
    FILE *file = bench_open(dir, "ops.svg", path);
    int y = TOP;

    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n"
            "<title>ds-accel: ops and their limits</title>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
            WIDTH, height, WIDTH, height, WIDTH, height);
    bench_svg_text(file, 16, 26, " font-size=\"17\" font-weight=\"bold\"",
                   "ds-accel: ops and their limits");
    snprintf(text, sizeof(text), "%s, %ld processors, Linux %s, %s", report->machine.cpu,
             report->machine.cpu_count, report->machine.kernel, report->machine.compiler);
    bench_svg_text(file, 16, 46, " fill=\"#555555\"", text);
    for (size_t i = 0; i < report->count; i++) {
        if (i == 0 || report->rows[i].op != report->rows[i - 1].op) {
            struct panel panel = {.file = file, .report = report, .op = report->rows[i].op, .y = y};

            put_panel(&panel, report->rows[i].path);
            y += PANEL;
        }
    }
    fputs("</svg>\n", file);
    bench_close(file, path);
}
