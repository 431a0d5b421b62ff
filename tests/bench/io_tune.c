/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Compares what the op uses after ds-accel bench io --tune with the best of the whole grid: io_tune
 * BUILD DIRECTORY [MIB]
 *
 * The command runs for its 60 s. Then every setting of the grid is measured in LAPS laps, by the
 * functions of the command, and the best ones are measured again, alternating with the setting that
 * the command found: the best of several hundred noisy figures would otherwise win by its noise.
 * The ratio of the medians is the result; the exit code is 1 if it is below 0.95.
 */
#include "bench_io.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
#define USUAL_MIB 512
#define MOST 512u /* settings of a grid */
#define LAPS 3
#define LAP_NS UINT64_C(60000000)
#define FINALISTS 8u
#define FINAL_LAPS 15u
#define FINAL_NS UINT64_C(200000000)
#define WANTED 0.95
#define GB 1e9

struct entry {
    struct bench_io_settings settings;
    struct bench_io_sums sums;
    double rates[FINAL_LAPS];
};

static _Noreturn __attribute__((format(printf, 1, 2))) void die(const char *format, ...)
{
    va_list arguments;

    fputs("io_tune: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static double rate(const struct bench_io_sums *sums)
{
    return bench_io_both(bench_io_rate(sums, BENCH_IO_WRITE), bench_io_rate(sums, BENCH_IO_READ));
}

static int better_first(const void *left, const void *right)
{
    double a = rate(&((const struct entry *)left)->sums);
    double b = rate(&((const struct entry *)right)->sums);

    return (a < b) - (a > b);
}

/* ---- the command ---------------------------------------------------------------------------- */

/* Run the command with a configuration below the build directory, and return the settings that
 * the op then uses. */
static struct bench_io_settings tune(const char *build, const char *directory, uint64_t mib)
{
    struct bench_io_settings settings = {0};
    char command[4 * PATH_MAX];
    char text[65536];
    char switches[2][8] = {"", ""};
    const char *found;
    FILE *output;
    size_t size;

    snprintf(command, sizeof(command), "%s/bench/io-tune-config/ds-accel/op_settings.json", build);
    unlink(command);
    snprintf(command, sizeof(command),
             "XDG_CONFIG_HOME='%s/bench/io-tune-config' DS_ACCEL_CONFIG= '%s/bin/ds-accel' -q -a "
             "cpu bench io '%s' --tune --json --size %" PRIu64 "M",
             build, build, directory, mib);
    output = popen(command, "r");
    size = output != NULL ? fread(text, 1, sizeof(text) - 1, output) : 0;
    text[size] = '\0';
    if (output == NULL || pclose(output) != 0) {
        die("%s: it failed", command);
    }
    if (strstr(text, "\"written\": null") != NULL) { /* the op goes on to use the defaults */
        return bench_io_defaults;
    }
    found = strstr(text, "\"settings\": ");
    if (found == NULL || sscanf(found,
                                "\"settings\": {\"block_bytes\": %" SCNu64
                                ", \"queue_depth\": %" SCNu32 ", \"parallelism\": %" SCNu32
                                ", \"single_submit\": %5[a-z], \"overlap_events\": %5[a-z]}",
                                &settings.block_bytes, &settings.queue_depth, &settings.parallelism,
                                switches[0], switches[1]) != 5) {
        die("%s: no settings in: %s", command, text);
    }
    settings.single_submit = strcmp(switches[0], "true") == 0;
    settings.overlap_events = strcmp(switches[1], "true") == 0;
    return settings;
}

/* ---- the grid ------------------------------------------------------------------------------- */

static void measure(struct bench_io *io, struct entry *entry, uint64_t time_ns)
{
    if (bench_io_measure(io, &entry->settings, time_ns, &entry->sums) != DS_ACCEL_OK) {
        die("%s", io->failure);
    }
}

/* Measure the whole grid, the best ones first. Return how many settings it has. */
static size_t measure_grid(struct bench_io *io, struct entry *entries)
{
    size_t count = 0;

    while (count < MOST - 1 && bench_io_grid(io->engine, count, &entries[count].settings)) {
        count++;
    }
    for (int lap = 0; lap < LAPS; lap++) {
        for (size_t i = 0; i < count; i++) {
            measure(io, &entries[lap % 2 == 0 ? i : count - 1 - i], LAP_NS);
        }
    }
    qsort(entries, count, sizeof(*entries), better_first);
    return count;
}

static void measure_finalists(struct bench_io *io, struct entry *entries, size_t count)
{
    for (uint32_t lap = 0; lap < FINAL_LAPS; lap++) {
        for (size_t i = 0; i < count; i++) {
            struct entry *entry = &entries[(i + lap) % count];

            memset(&entry->sums, 0, sizeof(entry->sums));
            measure(io, entry, FINAL_NS);
            entry->rates[lap] = rate(&entry->sums);
        }
    }
}

static double print(const char *name, const struct entry *entry)
{
    double median = bench_io_median(entry->rates, FINAL_LAPS);

    printf("%-8s %8" PRIu64 " %6" PRIu32 " %12" PRIu32 " %7s %8s %10.3f\n", name,
           entry->settings.block_bytes >> 10, entry->settings.queue_depth,
           entry->settings.parallelism, entry->settings.single_submit ? "true" : "false",
           entry->settings.overlap_events ? "true" : "false", median / GB);
    return median;
}

int main(int argument_count, char **arguments)
{
    static struct bench_io io = {.fd = -1};
    static struct entry entries[MOST];
    struct bench_io_sums sums = {.ns = {0}};
    char path[PATH_MAX];
    ds_accel_op_entry_v1_fn entry;
    void *library;
    uint64_t mib = USUAL_MIB;
    size_t count;
    double best = 0;
    double found;

    if (argument_count < 3) {
        fprintf(stderr, "usage: io_tune BUILD DIRECTORY [MIB]\n");
        return 2;
    }
    if (argument_count > 3 && arguments[3][0] != '\0') {
        mib = strtoull(arguments[3], NULL, 10);
    }
    snprintf(path, sizeof(path), "%s/lib/ds-accel/ops/async_io.so", arguments[1]);
    library = dlopen(path, RTLD_NOW);
    entry = library != NULL ? (ds_accel_op_entry_v1_fn)dlsym(library, DS_ACCEL_OP_ENTRY) : NULL;
    if (entry == NULL) {
        die("%s", dlerror());
    }
    io.op = (const struct ds_accel_async_io *)(const void *)entry();
    io.size_bytes = mib * MIB;
    entries[MOST - 1].settings = tune(arguments[1], arguments[2], mib);
    if (mib == 0 || bench_io_ask(&io) != DS_ACCEL_OK ||
        bench_io_open(&io, arguments[2], &sums) != DS_ACCEL_OK) {
        die("%s: %s", arguments[2], io.failure);
    }
    count = measure_grid(&io, entries);
    count = count < FINALISTS ? count : FINALISTS;
    entries[count] = entries[MOST - 1];
    measure_finalists(&io, entries, count + 1);
    bench_io_close(&io);
    printf("%-8s %8s %6s %12s %7s %8s %10s\n", "SETTINGS", "KIB", "DEPTH", "PARALLELISM", "SINGLE",
           "OVERLAP", "BOTH GB/s");
    for (size_t i = 0; i < count; i++) {
        double median = print("grid", &entries[i]);

        best = median > best ? median : best;
    }
    found = print("--tune", &entries[count]);
    printf("--tune / best of the grid: %.3f, wanted %.2f or more\n", found / best, WANTED);
    return found / best < WANTED;
}
