/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the files of the benchmark; bench.c explains how they fit together. */
#ifndef DS_ACCEL_TESTS_BENCH_BENCH_H
#define DS_ACCEL_TESTS_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define BENCH_PATH_SIZE 4096
#define BENCH_MAX_ROWS 48

/* ---- process.c: other programs, timed ------------------------------------------------------- */

/* The cost of one run, from posix_spawn() to waitpid(). */
struct bench_cost {
    double ms;
    long rss_kib; /* peak resident memory */
};

/* Print an error and exit with 1: there is no result without a measurement. */
void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Return the median. Sorts the values. */
double bench_median(double *values, size_t count);

/* Run a program; argv and env end with NULL. Its output is discarded; a failure of the program
 * makes the benchmark exit. */
struct bench_cost bench_run(const char *const *argv, const char *const *env);

/* Run the program once and store its stdout in text, NUL-terminated. Output that does not fit is an
 * error. */
void bench_capture(const char *const *argv, const char *const *env, char *text, size_t text_size);

/* ---- plugins.c: directories full of plugins -------------------------------------------------- */

/*
 * Fill dir with count copies of the placeholder plugin, which has no device, under the names p000,
 * p001 ...
 */
void bench_make_plugins(const char *placeholder, const char *dir, unsigned count);

/* ---- output.c: what the reports have in common ---------------------------------------------- */

struct bench_machine {
    char cpu[128];
    char kernel[96];
    char compiler[96];
    long cpu_count;
};

void bench_read_machine(struct bench_machine *machine);

/* Write a number with three significant digits. */
void bench_format_number(char *text, size_t size, double value);

/* Open dir/name for writing; path receives the whole name. Exits if it cannot. */
FILE *bench_open(const char *dir, const char *name, char path[BENCH_PATH_SIZE]);

/* Close the file and print its path. Exits if it was not written completely. */
void bench_close(FILE *file, const char *path);

/* Write a string, or ", " and a member of an object. */
void bench_json_text(FILE *file, const char *text);
void bench_json_member(FILE *file, const char *key, const char *text);

/* Write a text element. style: further attributes, beginning with a space, or "". */
void bench_svg_text(FILE *file, int x, int y, const char *style, const char *text);

/* ---- report.c: the rows, as a table, JSON and SVG ------------------------------------------- */

struct bench_row {
    const char *name;
    double ours;
    const char *unit;
    double baseline; /* 0: none */
    const char *baseline_name;
    double goal;        /* upper limit */
    bool goal_is_ratio; /* goal is a ratio to the baseline; otherwise it has the row's unit */
    char note[200];
};

struct bench_report {
    struct bench_row rows[BENCH_MAX_ROWS];
    size_t count;
};

/* Return the next row, zeroed. */
struct bench_row *bench_add(struct bench_report *report);

/* Write the table to stdout, and dir/bench.json and dir/bench.svg. */
void bench_write(const struct bench_report *report, const char *dir);

/* ---- launch.c: jobs beside other launchers --------------------------------------------------- */

/* Add rows about ds-accel run. dir is that of the benchmark's programs; env ends with NULL. */
void bench_launch(const char *program, const char *dir, const char *const *env,
                  struct bench_report *report);

/* ---- op_build.c: ops that are installed, cached or built ------------------------------------- */

/* Add rows about the op builder. dir is that of the benchmark's programs, config_home the variable
 * XDG_CONFIG_HOME. */
void bench_op_build(const char *build, const char *dir, const char *config_home,
                    struct bench_report *report);

#endif
