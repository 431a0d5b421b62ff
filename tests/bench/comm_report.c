/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "comm.h"

#include <math.h>
#include <string.h>

/* ---- goals ---------------------------------------------------------------------------------- */

double comm_best_peer(const struct comm_row *row)
{
    double best = 0;

    for (enum comm_name name = COMM_OPENMPI; name < COMM_NAMES; name++) {
        if (row->ns[name] > 0 && (best <= 0 || row->ns[name] < best)) {
            best = row->ns[name];
        }
    }
    return best;
}

bool comm_is_faster(const struct comm_row *row, enum comm_name ours)
{
    double peer = comm_best_peer(row);

    return peer <= 0 || row->ns[ours] < peer;
}

static double limit_of(const struct comm_row *row, enum comm_name ours)
{
    return row->ns[ours == COMM_PRIVATE ? COMM_LIMIT_PRIVATE : COMM_LIMIT_REGISTERED];
}

bool comm_is_near(const struct comm_row *row, enum comm_name ours)
{
    double limit = limit_of(row, ours);

    return limit <= 0 || row->ns[ours] <= COMM_GOAL * limit;
}

/* ---- the table ------------------------------------------------------------------------------ */

static void format_bytes(char *text, size_t size, size_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    unsigned unit = 0;

    while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, size, "%zu %s", bytes, units[unit]);
}

static void print_row(const struct comm_row *row)
{
    char text[32];

    format_bytes(text, sizeof(text), row->bytes);
    printf("%8s", text);
    for (enum comm_name name = 0; name < COMM_NAMES; name++) {
        if (row->ns[name] > 0) {
            bench_format_number(text, sizeof(text), row->ns[name] / 1e3);
        }
        printf("  %*s", (int)strlen(comm_names[name]) > 9 ? (int)strlen(comm_names[name]) : 9,
               row->ns[name] > 0 ? text : "-");
    }
    for (enum comm_name ours = COMM_PRIVATE; ours <= COMM_REGISTERED; ours++) {
        double limit = limit_of(row, ours);

        printf("  %5.2f", comm_best_peer(row) / row->ns[ours]);
        if (limit > 0) {
            printf("  %5.2f", row->ns[ours] / limit);
        }
    }
    printf("\n");
}

void comm_print(const struct comm_report *report)
{
    size_t goals = 0;
    size_t met = 0;

    for (size_t i = 0; i < report->count; i++) {
        const struct comm_row *row = &report->rows[i];

        if (i == 0 || report->rows[i - 1].ranks != row->ranks) {
            printf("\nall-reduce of float32, sum, %u ranks, %ld CPUs; microseconds of a call\n\n",
                   row->ranks, report->machine.cpu_count);
            printf("%8s", "bytes");
            for (enum comm_name name = 0; name < COMM_NAMES; name++) {
                printf("  %9s", comm_names[name]);
            }
            printf("  for private, then registered: best peer / ours, ours / limit\n");
        }
        print_row(row);
        for (enum comm_name ours = COMM_PRIVATE; ours <= COMM_REGISTERED; ours++) {
            goals += 2;
            met += comm_is_faster(row, ours) + comm_is_near(row, ours);
        }
    }
    printf(
        "\n%zu of %zu goals are reached: faster than every peer, at most %.1f times the limit.\n",
        met, goals, COMM_GOAL);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void put_row(FILE *file, const struct comm_row *row)
{
    fprintf(file, "    {\"ranks\": %u, \"bytes\": %zu, \"ns\": {", row->ranks, row->bytes);
    for (enum comm_name name = 0; name < COMM_NAMES; name++) {
        fputs(name > 0 ? ", " : "", file);
        bench_json_text(file, comm_names[name]);
        if (row->ns[name] > 0) {
            fprintf(file, ": %.6g", row->ns[name]);
        } else {
            fputs(": null", file);
        }
    }
    fputs("}", file);
    for (enum comm_name ours = COMM_PRIVATE; ours <= COMM_REGISTERED; ours++) {
        fprintf(file, ", \"%s\": {\"faster\": %s, \"near_limit\": %s}",
                ours == COMM_PRIVATE ? "private" : "registered",
                comm_is_faster(row, ours) ? "true" : "false",
                comm_is_near(row, ours) ? "true" : "false");
    }
    fputs("}", file);
}

static void write_json(const struct comm_report *report, const char *dir)
{
    char path[BENCH_PATH_SIZE];
    FILE *file = bench_open(dir, "comm.json", path);

    fprintf(file, "{\n  \"schema_version\": 1,\n  \"machine\": {\"cpu_count\": %ld",
            report->machine.cpu_count);
    bench_json_member(file, "cpu", report->machine.cpu);
    bench_json_member(file, "kernel", report->machine.kernel);
    bench_json_member(file, "compiler", report->machine.compiler);
    bench_json_member(file, "torch", report->torch_version);
    fprintf(file, "},\n  \"rounds\": %u,\n  \"goal\": %.6g,\n  \"notes\": [", report->rounds,
            COMM_GOAL);
    for (size_t i = 0; i < report->note_count; i++) {
        fputs(i > 0 ? ", " : "", file);
        bench_json_text(file, report->notes[i]);
    }
    fputs("],\n  \"rows\": [\n", file);
    for (size_t i = 0; i < report->count; i++) {
        put_row(file, &report->rows[i]);
        fputs(i + 1 < report->count ? ",\n" : "\n", file);
    }
    fputs("  ]\n}\n", file);
    bench_close(file, path);
}

/* ---- SVG: time by size, both logarithmic ---------------------------------------------------- */

#define LEFT 70
#define TOP 40
#define WIDTH 620
#define HEIGHT 420
#define LEGEND (LEFT + WIDTH + 20)

struct scale {
    double least; /* logarithms */
    double most;
};

static double x_of(const struct scale *bytes, double value)
{
    return LEFT + WIDTH * (log10(value) - bytes->least) / (bytes->most - bytes->least);
}

static double y_of(const struct scale *times, double value)
{
    return TOP + HEIGHT - HEIGHT * (log10(value) - times->least) / (times->most - times->least);
}

static void widen(struct scale *scale, double value)
{
    double logarithm = log10(value);

    scale->least = floor(fmin(scale->least, logarithm));
    scale->most = ceil(fmax(scale->most, logarithm));
}

static void draw_axes(FILE *file, const struct scale *bytes, const struct scale *times)
{
    char text[32];

    for (double power = bytes->least; power <= bytes->most; power++) {
        double x = x_of(bytes, pow(10, power));

        fprintf(file, "<path d=\"M%.1f %dV%d\" stroke=\"#ddd\"/>\n", x, TOP, TOP + HEIGHT);
        snprintf(text, sizeof(text), "1e%.0f", power);
        bench_svg_text(file, (int)x, TOP + HEIGHT + 18, " text-anchor=\"middle\"", text);
    }
    for (double power = times->least; power <= times->most; power++) {
        double y = y_of(times, pow(10, power));

        fprintf(file, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", LEFT, y, LEFT + WIDTH);
        snprintf(text, sizeof(text), "1e%.0f", power);
        bench_svg_text(file, LEFT - 8, (int)y + 4, " text-anchor=\"end\"", text);
    }
    bench_svg_text(file, LEFT + WIDTH / 2, TOP + HEIGHT + 38, " text-anchor=\"middle\"", "bytes");
    bench_svg_text(file, LEFT, TOP - 12, "", "microseconds of an all-reduce, 2 ranks");
}

static void draw_line(FILE *file, const struct comm_report *report, enum comm_name name,
                      const struct scale *bytes, const struct scale *times)
{
    static const char *const colours[COMM_NAMES] = {"#c00", "#e80", "#f6a", "#888", "#bbb",
                                                    "#06c", "#093", "#93c", "#630"};
    bool is_first = true;

    fprintf(file, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s d=\"", colours[name],
            name == COMM_LIMIT_PRIVATE || name == COMM_LIMIT_REGISTERED
                ? " stroke-dasharray=\"5 4\""
                : "");
    for (size_t i = 0; i < report->count; i++) {
        const struct comm_row *row = &report->rows[i];

        if (row->ranks == 2 && row->ns[name] > 0) {
            fprintf(file, "%c%.1f %.1f", is_first ? 'M' : 'L', x_of(bytes, (double)row->bytes),
                    y_of(times, row->ns[name] / 1e3));
            is_first = false;
        }
    }
    fputs("\"/>\n", file);
    fprintf(file, "<path stroke=\"%s\" stroke-width=\"2\" d=\"M%d %dh24\"/>\n", colours[name],
            LEGEND, TOP + 20 * (int)name);
    bench_svg_text(file, LEGEND + 30, TOP + 4 + 20 * (int)name, "", comm_names[name]);
}

static void write_svg(const struct comm_report *report, const char *dir)
{
    char path[BENCH_PATH_SIZE];
    FILE *file = bench_open(dir, "comm.svg", path);
    struct scale bytes = {INFINITY, -INFINITY};
    struct scale times = {INFINITY, -INFINITY};

    for (size_t i = 0; i < report->count; i++) {
        for (enum comm_name name = 0; name < COMM_NAMES; name++) {
            if (report->rows[i].ranks == 2 && report->rows[i].ns[name] > 0) {
                widen(&bytes, (double)report->rows[i].bytes);
                widen(&times, report->rows[i].ns[name] / 1e3);
            }
        }
    }
    bytes.most += bytes.most > bytes.least ? 0 : 1;
    times.most += times.most > times.least ? 0 : 1;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
            "fill=\"white\"/>\n",
            LEGEND + 160, TOP + HEIGHT + 60);
    draw_axes(file, &bytes, &times);
    for (enum comm_name name = 0; name < COMM_NAMES; name++) {
        draw_line(file, report, name, &bytes, &times);
    }
    fputs("</svg>\n", file);
    bench_close(file, path);
}

void comm_write(const struct comm_report *report, const char *dir)
{
    write_json(report, dir);
    write_svg(report, dir);
}
