/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The time until an op can be called: it is installed, in the cache, or built first. The baselines
 * are dlopen() of the same file and the compiler's own commands, one after the other. An op in the
 * cache is measured after the library has remembered it, which it does not in the first two seconds
 * after a build: users' ops were usually loaded before.
 */
#include "bench.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LOAD_ROUNDS 101u
#define BUILD_ROUNDS 3u
#define SETTLE_ROUNDS 40u
#define SETTLE_NS 250000000

struct op_bench {
    const char *build;
    char dir[BENCH_PATH_SIZE];
    char program[BENCH_PATH_SIZE]; /* op_load */
    char libraries[BENCH_PATH_SIZE];
    char cache[BENCH_PATH_SIZE];
    const char *env[8];         /* with the ops of the build */
    const char *without_ops[8]; /* with the prefix that has none installed, and the cache */
    struct bench_report *report;
};

static void format_path(char path[BENCH_PATH_SIZE], const char *format, const char *dir)
{
    if (snprintf(path, BENCH_PATH_SIZE, format, dir) >= BENCH_PATH_SIZE) {
        bench_die("%s: the path is too long", dir);
    }
}

/* Load the op in a new process, by the library or by dlopen(); the times of the first and of the
 * second load. Exits if it was not this file. */
static void load(const struct op_bench *bench, const char *file, bool is_bare,
                 const char *const *env, double *first_us, double *again_us)
{
    const char *const argv[] = {bench->program, is_bare ? file : NULL, NULL};
    char text[BENCH_PATH_SIZE + 64];
    int end = 0;

    bench_capture(argv, env, text, sizeof(text));
    if (sscanf(text, "%lf %lf %n", first_us, again_us, &end) != 2) {
        bench_die("%s printed no times", bench->program);
    }
    text[end + (int)strcspn(text + end, "\n")] = '\0';
    if (strcmp(text + end, file) != 0) {
        bench_die("%s was loaded, not %s", text + end, file);
    }
}

static bool is_remembered(const struct op_bench *bench)
{
    char pattern[BENCH_PATH_SIZE];
    glob_t found;
    bool is_there;

    format_path(pattern, "%s/cache/ops-load.*", bench->dir);
    is_there = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    globfree(&found);
    return is_there;
}

/* Load the op from the cache until the library remembers it. False: it does not, as on a network
 * file system. */
static bool wait_until_remembered(const struct op_bench *bench, const char *file)
{
    const struct timespec pause = {.tv_nsec = SETTLE_NS};
    double unused;

    for (unsigned i = 0; i < SETTLE_ROUNDS; i++) {
        load(bench, file, false, bench->without_ops, &unused, &unused);
        if (is_remembered(bench)) {
            return true;
        }
        nanosleep(&pause, NULL);
    }
    return false;
}

/* kind: how the op is found, for the note. */
static void measure_load(const struct op_bench *bench, const char *name, const char *kind,
                         const char *file, const char *const *env)
{
    static double ours[LOAD_ROUNDS];
    static double again[LOAD_ROUNDS];
    static double bare[LOAD_ROUNDS];
    static double unused[LOAD_ROUNDS];
    struct bench_row *row = bench_add(bench->report);

    for (unsigned i = 0; i < LOAD_ROUNDS; i++) {
        load(bench, file, false, env, &ours[i], &again[i]);
        load(bench, file, true, env, &bare[i], &unused[i]);
    }
    row->name = name;
    row->ours = bench_median(ours, LOAD_ROUNDS) / 1e3;
    row->unit = "ms";
    row->baseline = bench_median(bare, LOAD_ROUNDS) / 1e3;
    row->baseline_name = "dlopen";
    row->goal = 1.2;
    row->goal_is_ratio = true;
    snprintf(row->note, sizeof(row->note), "cpu_adam, %s; a second load takes %.1f us", kind,
             bench_median(again, LOAD_ROUNDS));
}

static void measure_build(const struct op_bench *bench)
{
    char program[BENCH_PATH_SIZE];
    char commands[BENCH_PATH_SIZE];
    const char *const ours[] = {program, "-q",      "ops",    "build", "cpu_adam",
                                "cpu",   "--force", "--jobs", "1",     NULL};
    const char *const bare[] = {"/bin/sh", commands, NULL};
    double our_ms[BUILD_ROUNDS];
    double bare_ms[BUILD_ROUNDS];
    struct bench_row *row = bench_add(bench->report);

    format_path(program, "%s/prefix/bin/ds-accel", bench->dir);
    format_path(commands, "%s/bare.sh", bench->dir);
    for (unsigned i = 0; i < BUILD_ROUNDS; i++) {
        our_ms[i] = bench_run(ours, bench->without_ops).ms;
        bare_ms[i] = bench_run(bare, bench->without_ops).ms;
    }
    row->name = "op, first build";
    row->ours = bench_median(our_ms, BUILD_ROUNDS);
    row->unit = "ms";
    row->baseline = bench_median(bare_ms, BUILD_ROUNDS);
    row->baseline_name = "compiler";
    row->goal = 1.1;
    row->goal_is_ratio = true;
    snprintf(row->note, sizeof(row->note), "cpu_adam, one job; gcc with the same arguments");
}

void bench_op_build(const char *build, const char *dir, const char *config_home,
                    struct bench_report *report)
{
    static struct op_bench bench;
    static char home[BENCH_PATH_SIZE];
    char path[BENCH_PATH_SIZE];
    const char *const make[] = {path, build, bench.dir, NULL};
    const char *const print[] = {"/bin/cat", path, NULL};
    const char *common[] = {config_home, "PATH=/usr/bin:/bin", "DS_ACCELERATOR=cpu", home,
                            bench.cache};
    char file[BENCH_PATH_SIZE];

    bench.build = build;
    bench.report = report;
    format_path(bench.dir, "%s/op-build", dir);
    format_path(bench.program, "%s/op_load", dir);
    format_path(bench.libraries, "LD_LIBRARY_PATH=%s/prefix/lib", bench.dir);
    format_path(bench.cache, "DS_ACCEL_CACHE_DIR=%s/cache", bench.dir);
    format_path(home, "HOME=%s/home", bench.dir);
    memcpy(bench.env, common, sizeof(common));
    memcpy(bench.without_ops, common, sizeof(common));
    bench.without_ops[sizeof(common) / sizeof(common[0])] = bench.libraries;
    snprintf(path, sizeof(path), "tests/bench/op_prefix.sh");
    bench_run(make, bench.env);
    format_path(file, "%s/lib/ds-accel/ops/cpu_adam.so", build);
    measure_load(&bench, "op, installed", "installed", file, bench.env);
    format_path(path, "%s/built", bench.dir);
    bench_capture(print, bench.env, file, sizeof(file));
    file[strcspn(file, "\n")] = '\0';
    measure_load(&bench, "op, cached",
                 wait_until_remembered(&bench, file) ? "loaded before on this host"
                                                     : "not remembered on this file system",
                 file, bench.without_ops);
    measure_build(&bench);
}
