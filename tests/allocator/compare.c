/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Compares the memory that our allocator needs with the memory that torch's rules (rules.c) need,
 * for the same sequences of allocations and frees: sequences of twelve generators with many seeds,
 * and recorded ones. Two values are compared: the peak of reserved memory on a device with enough
 * memory, and the memory of the smallest device on which the sequence still works. Both are
 * measured with ordinary segments, and with our growing segments against torch's expandable ones.
 *
 *     compare [--seeds N] [--first SEED] [--draw] [TRACE...]
 *
 * Exits with 1 if the median of a ratio is above 1.00, if a ratio is above 1.05, or if the rules
 * differ from the results computed by hand. --draw shows which part of the reserved memory is free
 * over time.
 */
#include "rules.h"
#include "synthetic.h"
#include "traces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define PLENTY (UINT64_C(1) << 40)
#define STEP (2 * MIB) /* precision of the smallest device */
#define WORST 1.05
#define MEDIAN 1.0
#define COLUMNS 64u

struct figures {
    uint64_t peak_bytes;
    uint64_t retry_count;
    uint64_t split_count; /* number after the last step */
    uint64_t split_bytes;
    double unused[COLUMNS]; /* unused part of the reserved memory: the peak of each column */
    bool is_done;           /* the sequence did not run out of memory */
};

static void note(struct figures *figures, const struct trace *trace, size_t step, uint64_t reserved)
{
    double *place = &figures->unused[step * COLUMNS / trace->count];
    uint64_t live = trace->steps[step].live_bytes;
    double unused = live < reserved ? (double)(reserved - live) / (double)reserved : 0;

    *place = unused > *place ? unused : *place;
}

/* ---- sequences run by torch's rules --------------------------------------------------------- */

static void run_rules(const struct trace *trace, bool grows, uint64_t memory_bytes,
                      struct figures *figures)
{
    struct rules *rules = rules_create(memory_bytes, grows);
    void **blocks = calloc((size_t)trace->block_count + 1, sizeof(*blocks));
    const struct rules_figures *now;

    if (rules == NULL || blocks == NULL) {
        perror("compare");
        exit(2);
    }
    now = rules_figures(rules);
    memset(figures, 0, sizeof(*figures));
    figures->is_done = true;
    for (size_t i = 0; i < trace->count && figures->is_done; i++) {
        const struct trace_step *step = &trace->steps[i];

        if (step->size_bytes == 0) {
            rules_free(rules, blocks[step->block]);
        } else {
            blocks[step->block] = rules_alloc(rules, step->stream, step->size_bytes);
            figures->is_done = blocks[step->block] != NULL;
        }
        note(figures, trace, i, now->reserved_bytes);
    }
    figures->peak_bytes = now->reserved_peak_bytes;
    figures->retry_count = now->retry_count;
    figures->split_count = now->split_count;
    figures->split_bytes = now->split_bytes;
    free(blocks);
    rules_destroy(rules);
}

/* ---- sequences run by our allocator --------------------------------------------------------- */

static bool keep_stat(void *user_data, const char *key, int64_t value)
{
    struct figures *figures = user_data;

    if (strcmp(key, "num_alloc_retries") == 0) {
        figures->retry_count = (uint64_t)value;
    } else if (strcmp(key, "inactive_split.all.current") == 0) {
        figures->split_count = (uint64_t)value;
    } else if (strcmp(key, "inactive_split_bytes.all.current") == 0) {
        figures->split_bytes = (uint64_t)value;
    }
    return true;
}

static void run_ours(const struct trace *trace, bool grows, uint64_t memory_bytes,
                     struct figures *figures)
{
    struct ds_accel__allocator_options options;
    struct ds_accel__allocator *allocator = NULL;
    struct ds_accel__arena *arenas[RULES_STREAMS];
    void **blocks = calloc((size_t)trace->block_count + 1, sizeof(*blocks));

    ds_accel__allocator_defaults(&options);
    options.growable_segments = grows;
    if (blocks == NULL ||
        ds_accel__allocator_create(synthetic_start(memory_bytes), synthetic_device(), &options,
                                   &allocator) < 0) {
        perror("compare");
        exit(2);
    }
    for (unsigned i = 0; i < RULES_STREAMS; i++) {
        arenas[i] = ds_accel__allocator_arena(allocator, synthetic_stream(i));
    }
    memset(figures, 0, sizeof(*figures));
    figures->is_done = true;
    for (size_t i = 0; i < trace->count && figures->is_done; i++) {
        const struct trace_step *step = &trace->steps[i];

        if (step->size_bytes == 0) {
            ds_accel__allocator_free(allocator, NULL, blocks[step->block]);
        } else {
            figures->is_done = ds_accel__allocator_alloc(arenas[step->stream], step->size_bytes,
                                                         512, &blocks[step->block]) == DS_ACCEL_OK;
        }
        note(figures, trace, i, synthetic_used());
    }
    figures->peak_bytes = synthetic_peak(false);
    ds_accel__allocator_visit_stats(allocator, keep_stat, figures);
    ds_accel__allocator_destroy(allocator);
    free(blocks);
}

/* ---- the smallest device -------------------------------------------------------------------- */

typedef void (*run_t)(const struct trace *trace, bool grows, uint64_t memory_bytes,
                      struct figures *figures);

/* Return the memory of the smallest device on which the sequence works. A device as large as the
 * peak suffices; a device smaller than the live blocks does not. */
static uint64_t least_device(run_t run, const struct trace *trace, bool grows, uint64_t peak_bytes)
{
    uint64_t high = (peak_bytes + STEP - 1) / STEP;
    uint64_t low = trace->live_peak_bytes / STEP;
    struct figures figures;

    if (low > 0) {
        low--;
    }
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;

        run(trace, grows, middle * STEP, &figures);
        if (figures.is_done) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return high * STEP;
}

/* ---- cases computed by hand ----------------------------------------------------------------- */

/* A case: sizes in KiB, -N frees block N. The expected results are the reserved memory in MiB, the
 * number of times that the cache was emptied, and the free parts of used segments in KiB. */
static const struct {
    bool is_expandable;
    uint64_t memory_mib;
    struct {
        int64_t kib;
        uint64_t reserved_mib;
        uint64_t retries;
        uint64_t split_kib;
    } steps[10];
} papers[] = {
    /* Two requests of the small limit fill a segment; a slightly larger request reserves 20 MiB. */
    {false, 100, {{1024, 2, 0, 1024}, {1024, 2, 0, 0}, {1, 4, 0, 2047}, {1025, 24, 0, 21502}}},
    /* From 10 MiB on, a request has its own segment. A remainder above 1 MiB is split off. */
    {false,
     200,
     {{10240, 10, 0, 0},
      {10241, 22, 0, 2047},
      {33 * 1024, 56, 0, 2047},
      {-2, 56, 0, 2047},
      {32 * 1024, 56, 0, 2047 + 2048},
      {2047, 56, 0, 2048}}},
    /* Best fit: the smallest free block, then the lowest address; free neighbours merge. */
    {false,
     100,
     {{4096, 20, 0, 16384},
      {6144, 20, 0, 10240},
      {4096, 20, 0, 6144},
      {6144, 20, 0, 0},
      {-0, 20, 0, 4096},
      {-2, 20, 0, 8192},
      {4000, 20, 0, 4096},
      {-1, 20, 0, 10240},
      {10240, 20, 0, 0},
      {10239, 40, 0, 10241}}},
    /* The device has no more memory: the whole cache is released. */
    {false,
     40,
     {{20 * 1024, 20, 0, 0},
      {-0, 20, 0, 0},
      {30 * 1024, 30, 1, 0},
      {-1, 30, 1, 0},
      {512, 32, 1, 1536},
      {40 * 1024 - 2048, 40, 2, 1536}}},
    /* Pages have 20 MiB, or 2 MiB for small requests. */
    {true,
     100,
     {{21 * 1024, 40, 0, 0},
      {19 * 1024, 40, 0, 0},
      {1, 42, 0, 0},
      {-0, 42, 0, 0},
      {5 * 1024, 42, 0, 0},
      {17 * 1024, 62, 0, 0},
      {16 * 1024, 62, 0, 0}}},
    /* A free page in the middle is unmapped, which does not suffice: two more are mapped at the
     * end. */
    {true,
     60,
     {{25 * 1024, 40, 0, 0},
      {15 * 1024, 40, 0, 0},
      {-0, 40, 0, 0},
      {30 * 1024, 60, 1, 0},
      {5 * 1024, 60, 1, 0}}},
};

static int check_paper(size_t paper)
{
    struct rules *rules = rules_create(papers[paper].memory_mib * MIB, papers[paper].is_expandable);
    void *blocks[10] = {NULL};
    unsigned count = 0;

    for (unsigned i = 0; i < 10 && papers[paper].steps[i].reserved_mib != 0; i++) {
        int64_t kib = papers[paper].steps[i].kib;
        const struct rules_figures *now = rules_figures(rules);

        if (kib > 0) {
            blocks[count++] = rules_alloc(rules, 0, (uint64_t)kib * 1024);
        } else {
            rules_free(rules, blocks[-kib]);
        }
        if (now->reserved_bytes != papers[paper].steps[i].reserved_mib * MIB ||
            now->retry_count != papers[paper].steps[i].retries ||
            now->split_bytes != papers[paper].steps[i].split_kib * 1024) {
            fprintf(stderr,
                    "the rules, sequence %zu, step %u: %llu MiB reserved, %llu retries, %llu KiB "
                    "split\n",
                    paper, i, (unsigned long long)(now->reserved_bytes / MIB),
                    (unsigned long long)now->retry_count,
                    (unsigned long long)(now->split_bytes / 1024));
            return 1;
        }
    }
    rules_destroy(rules);
    return 0;
}

/* ---- ratios --------------------------------------------------------------------------------- */

struct ratios {
    double *values;
    size_t count;
    size_t capacity;
};

enum {
    PEAK,
    LEAST,
    PEAK_GROWN,
    LEAST_GROWN,
    RATIOS
};

static const char *const ratio_names[] = {"peak", "least device", "peak, growing",
                                          "least device, growing"};

static void add_ratio(struct ratios *ratios, double value)
{
    if (ratios->count == ratios->capacity) {
        ratios->capacity = ratios->capacity != 0 ? ratios->capacity * 2 : 128;
        ratios->values = realloc(ratios->values, ratios->capacity * sizeof(double));
        if (ratios->values == NULL) {
            perror("compare");
            exit(2);
        }
    }
    ratios->values[ratios->count++] = value;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sort the values and return their median. */
static double median_of(struct ratios *ratios)
{
    qsort(ratios->values, ratios->count, sizeof(double), by_value);
    return (ratios->values[(ratios->count - 1) / 2] + ratios->values[ratios->count / 2]) / 2;
}

static void draw(const char *who, const struct figures *figures)
{
    static const char levels[] = " .:-=+*#%@";

    printf("    %-5s |", who);
    for (unsigned i = 0; i < COLUMNS; i++) {
        unsigned level = (unsigned)(figures->unused[i] * 9.999);

        putchar(levels[level < 10 ? level : 9]);
    }
    printf("| peak %llu MiB\n", (unsigned long long)(figures->peak_bytes / MIB));
}

/* Compare one sequence and add its four ratios. Return 1 if a count differs that must be the same
 * for both allocators. */
static int compare(const char *name, const struct trace *trace, struct ratios ratios[RATIOS],
                   bool is_drawn)
{
    int failed = 0;

    for (unsigned grows = 0; grows < 2; grows++) {
        struct figures ours;
        struct figures rules;

        run_ours(trace, grows != 0, PLENTY, &ours);
        run_rules(trace, grows != 0, PLENTY, &rules);
        if (is_drawn) {
            printf("%s%s: free of what is reserved, from ' ' to '@'\n", name,
                   grows != 0 ? ", growing" : "");
            draw("ours", &ours);
            draw("rules", &rules);
        }
        if (!ours.is_done || !rules.is_done || ours.split_count != rules.split_count ||
            ours.split_bytes != rules.split_bytes || ours.retry_count != rules.retry_count) {
            fprintf(stderr, "%s: %llu parts of %llu bytes split, by the rules %llu of %llu\n", name,
                    (unsigned long long)ours.split_count, (unsigned long long)ours.split_bytes,
                    (unsigned long long)rules.split_count, (unsigned long long)rules.split_bytes);
            failed = 1;
        }
        add_ratio(&ratios[2 * grows + PEAK], (double)ours.peak_bytes / (double)rules.peak_bytes);
        add_ratio(&ratios[2 * grows + LEAST],
                  (double)least_device(run_ours, trace, grows != 0, ours.peak_bytes) /
                      (double)least_device(run_rules, trace, grows != 0, rules.peak_bytes));
    }
    return failed;
}

/* Print the median and the worst value of each ratio; return whether one exceeds its limit. */
static int report(const char *name, struct ratios ratios[RATIOS])
{
    int failed = 0;

    printf("%-18s", name);
    for (unsigned i = 0; i < RATIOS; i++) {
        double median = median_of(&ratios[i]);
        double worst = ratios[i].values[ratios[i].count - 1];

        printf("  %6.3f %6.3f", median, worst);
        if (median > MEDIAN || worst > WORST) {
            fprintf(stderr, "%s: %s: median %.3f, worst %.3f\n", name, ratio_names[i], median,
                    worst);
            failed = 1;
        }
    }
    printf("\n");
    return failed;
}

/* Move the ratios of one generator into the ratios of all generators. */
static void merge(struct ratios all[RATIOS], struct ratios some[RATIOS])
{
    for (unsigned i = 0; i < RATIOS; i++) {
        for (size_t k = 0; k < some[i].count; k++) {
            add_ratio(&all[i], some[i].values[k]);
        }
        free(some[i].values);
        memset(&some[i], 0, sizeof(some[i]));
    }
}

static int compare_generated(uint64_t first, uint64_t seeds, bool is_drawn,
                             struct ratios all[RATIOS])
{
    int failed = 0;

    for (unsigned generator = 0; generator < TRACE_GENERATORS; generator++) {
        const char *name = trace_generator_name(generator);
        struct ratios some[RATIOS] = {{NULL, 0, 0}};

        for (uint64_t seed = first; seed < first + seeds; seed++) {
            struct trace trace;

            trace_generate(generator, seed, &trace);
            failed |= compare(name, &trace, some, is_drawn && seed == first);
            trace_clear(&trace);
        }
        failed |= report(name, some);
        merge(all, some);
    }
    return failed;
}

static int compare_recorded(const char *path, bool is_drawn, struct ratios all[RATIOS])
{
    const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    struct ratios some[RATIOS] = {{NULL, 0, 0}};
    struct trace trace;
    int failed;

    trace_read(path, &trace);
    failed = compare(name, &trace, some, is_drawn);
    failed |= report(name, some);
    merge(all, some);
    trace_clear(&trace);
    return failed;
}

int main(int argc, char **argv)
{
    struct ratios all[RATIOS] = {{NULL, 0, 0}};
    uint64_t seeds = 100;
    uint64_t first = 1;
    bool is_drawn = false;
    int failed = 0;
    int i = 1;

    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--draw") == 0) {
            is_drawn = true;
        } else if (i + 1 < argc && strcmp(argv[i], "--seeds") == 0) {
            seeds = strtoull(argv[++i], NULL, 10);
        } else if (i + 1 < argc && strcmp(argv[i], "--first") == 0) {
            first = strtoull(argv[++i], NULL, 10);
        } else {
            fprintf(stderr, "usage: compare [--seeds N] [--first SEED] [--draw] [TRACE...]\n");
            return 2;
        }
    }
    for (size_t paper = 0; paper < sizeof(papers) / sizeof(papers[0]); paper++) {
        failed |= check_paper(paper);
    }
    printf("memory beside torch's rules: median and worst ratio of the reserved peak and of the "
           "least device;\nthe same with segments that grow\n");
    if (seeds > 0) {
        failed |= compare_generated(first, seeds, is_drawn, all);
    }
    for (; i < argc; i++) {
        failed |= compare_recorded(argv[i], is_drawn, all);
    }
    if (all[0].count > 0) {
        failed |= report("all", all);
    }
    for (unsigned k = 0; k < RATIOS; k++) {
        free(all[k].values);
    }
    return failed;
}
