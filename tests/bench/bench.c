/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Measures times that users wait for, and a baseline in the same run:  bench BUILD
 *
 *   process.c   other programs, timed        report.c     table, JSON, SVG
 *   output.c    files and the machine, for reports
 *   plugins.c   directories full of plugins      dispatch.c   a separate program: cost of a call
 *   bare.c      the baseline of the start    trivial.c    the baseline of a call
 *   allocate.c  a separate program: device memory compared with host allocators
 *   pinned.c    a separate program: cost of pinned memory
 *   launch.c    jobs beside other launchers  spawn.c      the baseline of a job
 *   op_build.c  ops, loaded and built        op_load.c   a separate program: one load
 *
 * Our code and its baseline run in turn (A B A B) and results are medians, since virtual machines
 * drift by tens of per cent within minutes. Only ratios can be compared between machines.
 *
 * This program stays small and does not link the library: Linux counts the memory of the process
 * that calls posix_spawn() into the peak of its child, so that a larger program would hide the
 * child's memory.
 */
#include "bench.h"
#include "clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define START_ROUNDS 301u
#define DIRECTORY_ROUNDS 41u
#define WARM_UP 5u

/*
 * The time of DeepSpeed 0.19.6 in its best case: DS_ACCELERATOR=cpu, only the accelerator package
 * imported, the name printed. Recorded in November 2026 on a virtual machine with two AMD EPYC
 * processors.
 */
#define PYTHON_MS 842.0

struct bench {
    const char *build;
    char dir[BENCH_PATH_SIZE];
    char program[BENCH_PATH_SIZE];
    char plugin[BENCH_PATH_SIZE]; /* the file of the accelerator that detect chooses */
    char config_home[BENCH_PATH_SIZE];
    char cache[BENCH_PATH_SIZE];
    const char *env[4];  /* environment without stored verdicts */
    const char *warm[4]; /* environment with stored verdicts, in memory like $XDG_RUNTIME_DIR */
    struct bench_report report;
};

static void format_path(char path[BENCH_PATH_SIZE], const char *dir, const char *name)
{
    if (snprintf(path, BENCH_PATH_SIZE, "%s/%s", dir, name) >= BENCH_PATH_SIZE) {
        bench_die("%s: the path is too long", dir);
    }
}

static void make_dir(const char *path)
{
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        bench_die("%s: %s", path, strerror(errno));
    }
}

/* ---- detect --------------------------------------------------------------------------------- */

struct start_samples {
    double cold[START_ROUNDS];
    double warm[START_ROUNDS];
    double bare[START_ROUNDS];
    double bare_again[START_ROUNDS];
    double rss[START_ROUNDS];
    double bare_rss[START_ROUNDS];
};

/* cold: no verdict is stored; warm: the verdicts of an earlier run are stored. */
static void sample_start(struct bench *bench, struct start_samples *samples)
{
    char bare_path[BENCH_PATH_SIZE];
    const char *detect[] = {bench->program, "detect", NULL};
    const char *bare[] = {bare_path, bench->plugin, NULL};

    format_path(bare_path, bench->dir, "bare");
    for (unsigned i = 0; i < WARM_UP; i++) {
        bench_run(detect, bench->env);
        bench_run(detect, bench->warm);
        bench_run(bare, bench->env);
    }
    for (unsigned i = 0; i < START_ROUNDS; i++) {
        struct bench_cost cost = bench_run(detect, bench->env);

        samples->cold[i] = cost.ms;
        samples->rss[i] = (double)cost.rss_kib / 1024;
        cost = bench_run(bare, bench->env);
        samples->bare[i] = cost.ms;
        samples->bare_rss[i] = (double)cost.rss_kib / 1024;
        samples->warm[i] = bench_run(detect, bench->warm).ms;
        samples->bare_again[i] = bench_run(bare, bench->env).ms;
    }
}

/* Return VmHWM instead of ru_maxrss, which includes the peak of the process that started this
 * program. */
static double own_peak_mib(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    double kib = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "VmHWM: %lf", &kib) == 1) {
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib / 1024;
}

static void add_rss_row(struct bench *bench, struct start_samples *samples)
{
    struct bench_row *row = bench_add(&bench->report);
    double own = own_peak_mib();

    row->name = "detect, peak memory";
    row->ours = bench_median(samples->rss, START_ROUNDS);
    row->unit = "MiB";
    row->baseline = bench_median(samples->bare_rss, START_ROUNDS);
    row->baseline_name = "bare";
    row->goal = 4;
    if (own >= row->baseline) {
        snprintf(row->note, sizeof(row->note),
                 "no figure can be below this program's own, %.2f MiB", own);
    }
}

static void measure_start(struct bench *bench)
{
    static struct start_samples samples;
    struct bench_row *row;
    double cold;

    sample_start(bench, &samples);
    cold = bench_median(samples.cold, START_ROUNDS);
    row = bench_add(&bench->report);
    row->name = "detect, cold";
    row->ours = cold;
    row->unit = "ms";
    row->baseline = bench_median(samples.bare, START_ROUNDS);
    row->baseline_name = "bare";
    row->goal = 5;
    row->goal_is_ratio = true;
    snprintf(row->note, sizeof(row->note),
             "no verdict cache, a helper process, its start rehearsed; bare dlopens the winner");

    row = bench_add(&bench->report);
    row->name = "detect, beside Python";
    row->ours = cold;
    row->unit = "ms";
    row->baseline = PYTHON_MS;
    row->baseline_name = "Python";
    row->goal = 1.0 / 150;
    row->goal_is_ratio = true;
    snprintf(row->note, sizeof(row->note), "recorded on another machine, not measured here");

    row = bench_add(&bench->report);
    row->name = "detect, warm";
    row->ours = bench_median(samples.warm, START_ROUNDS);
    row->unit = "ms";
    row->baseline = bench_median(samples.bare_again, START_ROUNDS);
    row->baseline_name = "bare";
    row->goal = 1.5;
    row->goal_is_ratio = true;
    snprintf(row->note, sizeof(row->note), "verdicts and configuration remembered, on tmpfs");
    add_rss_row(bench, &samples);
}

/* ---- directories full of plugins ------------------------------------------------------------- */

#define DIRECTORIES 3u
static const unsigned directory_plugins[DIRECTORIES] = {10, 50, 200};

struct directory {
    char dir[BENCH_PATH_SIZE];
    double cold[DIRECTORY_ROUNDS];
    double warm[DIRECTORY_ROUNDS];
};

static size_t count_text(const char *text, const char *part)
{
    size_t count = 0;

    while ((text = strstr(text, part)) != NULL) {
        text += strlen(part);
        count++;
    }
    return count;
}

static void make_directory(const struct bench *bench, struct directory *directory, unsigned plugins)
{
    static char text[1024 * 1024];
    char name[64];
    char placeholder[BENCH_PATH_SIZE];
    const char *json[] = {bench->program, "detect", "--json", "--plugin-dir",
                          directory->dir, "-q",     NULL};

    snprintf(name, sizeof(name), "plugins-%u", plugins);
    format_path(directory->dir, bench->dir, name);
    format_path(placeholder, bench->dir, "placeholder.so");
    bench_make_plugins(placeholder, directory->dir, plugins);
    /* A plugin that is rejected before its probe would make the result too low. */
    bench_capture(json, bench->warm, text, sizeof(text));
    if (count_text(text, "\"unavailable\"") < plugins) {
        bench_die("%s: not all of the %u plugins were probed", directory->dir, plugins);
    }
}

static void sample_directories(const struct bench *bench, struct directory *directories)
{
    for (unsigned round = 0; round < DIRECTORY_ROUNDS; round++) {
        for (unsigned i = 0; i < DIRECTORIES; i++) {
            const char *detect[] = {bench->program,     "detect", "--plugin-dir",
                                    directories[i].dir, "-q",     NULL};

            directories[i].cold[round] = bench_run(detect, bench->env).ms;
            /* Negative verdicts expire after a minute, and these rounds may take longer. */
            if (round % 8 == 0) {
                bench_run(detect, bench->warm);
            }
            directories[i].warm[round] = bench_run(detect, bench->warm).ms;
        }
    }
}

static struct bench_row *add_plugin_row(struct bench *bench, const char *name, double cost_us,
                                        double goal_us)
{
    struct bench_row *row = bench_add(&bench->report);

    row->name = name;
    row->ours = cost_us;
    row->unit = "us";
    row->goal = goal_us;
    return row;
}

/* Return the cost of one more plugin, from the smallest directory to the given one. */
static double cost_of_each(const double *ms, unsigned directory)
{
    return (ms[directory] - ms[0]) * 1000 / (directory_plugins[directory] - directory_plugins[0]);
}

static void measure_plugins(struct bench *bench)
{
    static struct directory directories[DIRECTORIES];
    double cold[DIRECTORIES];
    double warm[DIRECTORIES];
    struct bench_row *row;

    for (unsigned i = 0; i < DIRECTORIES; i++) {
        make_directory(bench, &directories[i], directory_plugins[i]);
    }
    sample_directories(bench, directories);
    for (unsigned i = 0; i < DIRECTORIES; i++) {
        cold[i] = bench_median(directories[i].cold, DIRECTORY_ROUNDS);
        warm[i] = bench_median(directories[i].warm, DIRECTORY_ROUNDS);
    }
    row = add_plugin_row(bench, "each of 50 plugins, cold", cost_of_each(cold, 1), 150);
    snprintf(row->note, sizeof(row->note), "10 plugins: %.2f ms, 50: %.2f ms", cold[0], cold[1]);
    row = add_plugin_row(bench, "each of 200 plugins, cold", cost_of_each(cold, 2), 150);
    snprintf(row->note, sizeof(row->note), "200: %.2f ms", cold[2]);
    row = add_plugin_row(bench, "linear: 200 beside 50", cost_of_each(cold, 2), 1.25);
    row->baseline = cost_of_each(cold, 1);
    row->baseline_name = "at 50";
    row->goal_is_ratio = true;
    row = add_plugin_row(bench, "each of 50 plugins, warm", cost_of_each(warm, 1), 5);
    snprintf(row->note, sizeof(row->note), "10 plugins: %.2f ms, 50: %.2f ms", warm[0], warm[1]);
    row = add_plugin_row(bench, "each of 200 plugins, warm", cost_of_each(warm, 2), 5);
    snprintf(row->note, sizeof(row->note), "200: %.2f ms", warm[2]);
}

/* Measure detection with a plugin that crashes in its probe; cpu is still chosen. */
static void measure_casualty(struct bench *bench)
{
    static double with[DIRECTORY_ROUNDS];
    static double without[DIRECTORY_ROUNDS];
    char dir[BENCH_PATH_SIZE];
    const char *crash[] = {bench->program, "detect", "--plugin-dir", dir, "-q", NULL};
    const char *detect[] = {bench->program, "detect", "-q", NULL};
    struct bench_row *row = bench_add(&bench->report);

    format_path(dir, bench->build, "tests/fixtures/faults/probe_segv");
    for (unsigned round = 0; round < DIRECTORY_ROUNDS; round++) {
        with[round] = bench_run(crash, bench->env).ms;
        without[round] = bench_run(detect, bench->env).ms;
    }
    row->name = "a casualty";
    row->baseline = bench_median(without, DIRECTORY_ROUNDS);
    row->baseline_name = "detect";
    row->ours = bench_median(with, DIRECTORY_ROUNDS);
    row->unit = "ms";
    row->goal = 2;
    row->goal_is_ratio = true;
    snprintf(row->note, sizeof(row->note),
             "a plugin dies of SIGSEGV in its probe: one helper more");
}

/* ---- dispatch ------------------------------------------------------------------------------- */

static double find_figure(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    double figure = 0;

    if (line == NULL || sscanf(line + strlen(name), "%lf", &figure) != 1) {
        bench_die("a program printed no%s", name);
    }
    return figure;
}

static void add_call_row(struct bench *bench, const char *name, double ours, double plt)
{
    struct bench_row *row = bench_add(&bench->report);

    row->name = name;
    /* The difference of two equal loops may be negative. */
    row->ours = ours > 0 ? ours : 0;
    row->unit = "ns";
    row->baseline = plt;
    row->baseline_name = "PLT call";
    row->goal = 1;
    row->goal_is_ratio = true;
}

static void measure_dispatch(struct bench *bench)
{
    char path[BENCH_PATH_SIZE];
    char text[1024] = "\n"; /* begins with a newline, so that every name follows one */
    const char *argv[] = {path, NULL};
    const char *env[] = {bench->env[0], bench->env[1], "DS_ACCELERATOR=cpu", NULL};
    struct bench_row *row;
    double wrapper;
    double direct;
    double empty;
    double plt;

    format_path(path, bench->dir, "dispatch");
    bench_capture(argv, env, text + 1, sizeof(text) - 1);
    empty = find_figure(text, "\nempty ");
    wrapper = find_figure(text, "\nwrapper ");
    direct = find_figure(text, "\ndirect ");
    plt = find_figure(text, "\nplt ");

    row = bench_add(&bench->report);
    row->name = "ds_accel_get()";
    row->ours = find_figure(text, "\nget ") - empty;
    row->ours = row->ours > 0 ? row->ours : 0;
    row->unit = "ns";
    row->goal = 1;
    snprintf(row->note, sizeof(row->note), "on top of an empty loop's %.2f ns", empty);
    add_call_row(bench, "device_synchronize()", wrapper, plt);
    row = &bench->report.rows[bench->report.count - 1];
    snprintf(row->note, sizeof(row->note),
             "cpu; with the plugin's function, %.2f ns by itself; the exported copy takes %.2f ns",
             direct, find_figure(text, "\nexported "));
    add_call_row(bench, "dispatch alone", wrapper - direct, plt);
    row = &bench->report.rows[bench->report.count - 1];
    snprintf(row->note, sizeof(row->note),
             "device_synchronize() less the plugin's function called by its address");
    add_call_row(bench, "stream_query()", find_figure(text, "\nquery "), plt);
    row = &bench->report.rows[bench->report.count - 1];
    snprintf(row->note, sizeof(row->note), "cpu; with the plugin's function, %.2f ns by itself",
             find_figure(text, "\nquery_direct "));
}

/* ---- pinned memory -------------------------------------------------------------------------- */

static void measure_pinned(struct bench *bench)
{
    char path[BENCH_PATH_SIZE];
    char text[1024] = "\n";
    const char *argv[] = {path, NULL};
    const char *env[] = {bench->env[0], bench->env[1], "DS_ACCELERATOR=cpu", NULL};
    struct bench_row *row;

    format_path(path, bench->dir, "pinned");
    bench_capture(argv, env, text + 1, sizeof(text) - 1);
    row = bench_add(&bench->report);
    row->name = "pinned memory, first";
    row->ours = find_figure(text, "\nfirst ") / 1e6;
    row->unit = "ms";
    row->baseline = find_figure(text, "\nbare ") / 1e6;
    row->baseline_name = "mlock";
    row->goal = 1.1;
    row->goal_is_ratio = true;
    snprintf(row->note, sizeof(row->note),
             "%.0f MiB with 2 MiB pages; mlock is mmap, madvise, mlock",
             find_figure(text, "\nbytes ") / (1 << 20));
    row = bench_add(&bench->report);
    row->name = "pinned memory, pooled";
    row->ours = find_figure(text, "\npooled ");
    row->unit = "ns";
    row->goal = 100;
    snprintf(row->note, sizeof(row->note), "allocation and free together");
}

/* ---- device memory -------------------------------------------------------------------------- */

/* Return a value that may be absent: 0 if the program printed none, because the allocator is not
 * installed. */
static double find_optional(const char *text, const char *name, unsigned threads)
{
    char line[64];

    snprintf(line, sizeof(line), "\n%s_%u ", name, threads);
    return strstr(text, line) != NULL ? find_figure(text, line) : 0;
}

static void add_allocation_row(struct bench *bench, const char *text, const char *name,
                               unsigned threads, double goal_ns)
{
    static const char *const hosts[] = {"mimalloc", "jemalloc", "tbbmalloc"};
    struct bench_row *row = bench_add(&bench->report);
    double alone = find_optional(text, "ours", 1);
    size_t used;

    row->name = name;
    row->ours = find_optional(text, "ours", threads);
    row->unit = "ns";
    row->baseline = find_optional(text, "malloc", threads);
    row->baseline_name = "malloc";
    row->goal = goal_ns;
    used = (size_t)snprintf(row->note, sizeof(row->note), "4 KiB on the mock, with statistics");
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        double figure = find_optional(text, hosts[i], threads);

        if (figure > 0 && used < sizeof(row->note)) {
            used += (size_t)snprintf(row->note + used, sizeof(row->note) - used, "; %s %.1f ns",
                                     hosts[i], figure);
        }
    }
    if (threads > 1 && alone > 0 && used < sizeof(row->note)) {
        snprintf(row->note + used, sizeof(row->note) - used, "; %.2f x one thread",
                 row->ours / alone);
    }
}

static void measure_allocation(struct bench *bench)
{
    char path[BENCH_PATH_SIZE];
    char text[1024] = "\n";
    const char *argv[] = {path, NULL};
    /* jemalloc needs more space for thread-local variables than is left by default. */
    const char *env[] = {bench->env[0], bench->env[1], "DS_ACCELERATOR=mock",
                         "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384", NULL};

    format_path(path, bench->dir, "allocate");
    bench_capture(argv, env, text + 1, sizeof(text) - 1);
    add_allocation_row(bench, text, "alloc+free, hot", 1, 30);
    add_allocation_row(bench, text, "alloc+free, 2 threads 2 streams", 2, 35);
}

/* ---- setup ---------------------------------------------------------------------------------- */

static void set_up(struct bench *bench, const char *build)
{
    static char home_variable[BENCH_PATH_SIZE + 32];
    const char *detect[] = {bench->program, "detect", NULL};
    char winner[64];
    char name[128];

    bench->build = build;
    format_path(bench->dir, build, "bench");
    format_path(bench->program, build, "bin/ds-accel");
    format_path(bench->config_home, bench->dir, "config-home");
    make_dir(bench->dir);
    make_dir(bench->config_home);
    snprintf(home_variable, sizeof(home_variable), "XDG_CONFIG_HOME=%s", bench->config_home);
    snprintf(bench->cache, sizeof(bench->cache), "DS_ACCEL_CACHE_DIR=/dev/shm/ds-accel-bench.%d",
             (int)getpid());
    bench->env[0] = bench->warm[0] = home_variable;
    bench->env[1] = "DS_ACCEL_CACHE=off";
    bench->warm[1] = bench->cache;
    bench_capture(detect, bench->env, winner, sizeof(winner));
    winner[strcspn(winner, "\n")] = '\0';
    snprintf(name, sizeof(name), "lib/ds-accel/ds_accel_%s.so", winner);
    format_path(bench->plugin, build, name);
}

static void remove_cache(const struct bench *bench)
{
    static const char *const names[] = {"verdicts", "config", "lock"};
    const char *dir = strchr(bench->cache, '=') + 1;
    char path[BENCH_PATH_SIZE];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        format_path(path, dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    uint64_t start_ns = now_ns();

    if (argc != 2) {
        fputs("usage: bench BUILD\n", stderr);
        return 2;
    }
    set_up(&bench, argv[1]);
    measure_start(&bench);
    measure_plugins(&bench);
    measure_casualty(&bench);
    measure_dispatch(&bench);
    measure_allocation(&bench);
    measure_pinned(&bench);
    bench_op_build(bench.build, bench.dir, bench.env[0], &bench.report);
    bench_launch(bench.program, bench.dir, bench.warm, &bench.report);
    bench_write(&bench.report, bench.dir);
    remove_cache(&bench);
    printf("%.0f s\n", elapsed_ns(start_ns) / 1e9);
    return 0;
}
