/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Measures the optimizers beside their limits:  ops BUILD PYTHON [OPS [SIZES]]
 *
 *   ops_call.c       calls of the ops         limit.h        what the limits are
 *   ops_measure.c    ours and the limits      limit_loops.h  their loops; limit_<set>.c: vectors
 *   ops_report.c     table, JSON              torch_adam.py  torch's AdamW, a separate program
 *   ops_roofline.c   SVG
 *
 * No step can be faster than a loop that moves the same bytes, nor than one that does the same
 * arithmetic on data in the first cache. The slower one of both is the limit of a row. Ours also
 * includes the call, which shows with small sizes: checks of the options, and constants.
 *
 * OPS and SIZES are lists separated by spaces; an empty one stands for all. DS_ACCEL_OPS_ISA
 * chooses the code path, and with it the limits' instruction set.
 */
#include "ops.h"
#include "clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/* Sizes below this are not measured: limits handle whole units. */
#define LEAST_ELEMENTS 1000
#define MOST_ELEMENTS 1e10
/* Part of the available memory that arrays may take. */
#define MEMORY_SHARE 0.8
/* torch holds parameters, gradients, two states, and up to four temporary tensors. */
#define TORCH_BYTES 32

extern char **environ;

struct plan {
    const char *build;
    const char *python;
    bool is_wanted[OPS_OPS];
    size_t sizes[OPS_MAX_SIZES];
    unsigned size_count;
    unsigned threads;
};

/* ---- the plan ------------------------------------------------------------------------------- */

static void parse_ops(struct plan *plan, const char *list)
{
    char text[256];
    char *rest = text;
    const char *name;
    bool has_any = false;

    if (snprintf(text, sizeof(text), "%s", list) >= (int)sizeof(text)) {
        bench_die("BENCH_OPS is too long");
    }
    while ((name = strsep(&rest, " ")) != NULL) {
        size_t i = 0;

        if (*name == '\0') {
            continue;
        }
        while (i < OPS_OPS && strcmp(ops_ops[i].name, name) != 0) {
            i++;
        }
        if (i == OPS_OPS) {
            bench_die("BENCH_OPS: there is no op %s; wanted cpu_adam, cpu_lion, cpu_adagrad", name);
        }
        plan->is_wanted[i] = has_any = true;
    }
    for (size_t i = 0; i < OPS_OPS; i++) {
        plan->is_wanted[i] |= !has_any;
    }
}

static void parse_sizes(struct plan *plan, const char *list)
{
    static const size_t usual[] = {10000, 1000000, 10000000, 100000000};
    char *end;

    for (list += strspn(list, " "); *list != '\0'; list = end + strspn(end, " ")) {
        double size = strtod(list, &end);

        if (end == list || (*end != ' ' && *end != '\0') ||
            !(size >= LEAST_ELEMENTS && size <= MOST_ELEMENTS)) {
            bench_die("BENCH_SIZES takes numbers of elements from %d to %g such as 1e6, not \"%s\"",
                      LEAST_ELEMENTS, MOST_ELEMENTS, list);
        }
        if (plan->size_count == OPS_MAX_SIZES) {
            bench_die("BENCH_SIZES has more than %d sizes", OPS_MAX_SIZES);
        }
        plan->sizes[plan->size_count++] = (size_t)size;
    }
    if (plan->size_count == 0) {
        memcpy(plan->sizes, usual, sizeof(usual));
        plan->size_count = sizeof(usual) / sizeof(usual[0]);
    }
}

/* Return the number at the end of the line that begins with key, or of the whole file if key is "";
 * most if there is none. */
static double read_number(const char *path, const char *key, double most)
{
    FILE *file = fopen(path, "r");
    char line[256];
    double number = most;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            char *end;
            double value = strtod(line + strlen(key), &end);

            number = end != line + strlen(key) && value < most ? value : most;
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return number;
}

/* Return the bytes that this process may allocate. */
static double available_bytes(void)
{
    double bytes = read_number("/proc/meminfo", "MemAvailable:", 1e15) * 1024;

    bytes = read_number("/sys/fs/cgroup/memory.max", "", bytes);
    bytes = read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", "", bytes);
    return bytes * MEMORY_SHARE;
}

static void drop_large_sizes(struct plan *plan, struct ops_report *report)
{
    double available = available_bytes();
    unsigned kept = 0;

    for (unsigned i = 0; i < plan->size_count; i++) {
        double needed = (double)ops_arena_bytes(plan->sizes[i]);

        if (needed <= available) {
            plan->sizes[kept++] = plan->sizes[i];
        } else {
            ops_note(report,
                     "%zu elements are left out: their arrays need %.1f GiB, and %.1f GiB "
                     "of memory may be used",
                     plan->sizes[i], needed / (1 << 30), available / (1 << 30));
        }
    }
    plan->size_count = kept;
    if (kept == 0) {
        bench_die("no size is left to measure");
    }
}

static unsigned usable_threads(struct ops_report *report)
{
#ifdef _OPENMP
    if (omp_get_num_procs() >= OPS_MAX_THREADS) {
        return OPS_MAX_THREADS;
    }
    ops_note(report, "2 threads are left out: this process may use one processor");
#else
    ops_note(report, "2 threads are left out: the compiler has no OpenMP");
#endif
    return 1;
}

/* ---- torch ---------------------------------------------------------------------------------- */

static void parse_torch(struct ops_report *report, char *text)
{
    char *rest = text;
    char *line;

    while ((line = strsep(&rest, "\n")) != NULL) {
        struct ops_torch *torch = &report->torch[report->torch_count];

        if (strncmp(line, "missing ", 8) == 0) {
            ops_note(report, "torch is not measured: %.200s", line + 8);
        } else if (strncmp(line, "version ", 8) == 0) {
            snprintf(report->torch_version, sizeof(report->torch_version), "%s", line + 8);
        } else if (report->torch_count < sizeof(report->torch) / sizeof(report->torch[0]) &&
                   sscanf(line, "%31s %zu %u %lf", torch->name, &torch->elements, &torch->threads,
                          &torch->figure) == 4) {
            report->torch_count++;
        }
    }
}

static void measure_torch(const struct plan *plan, struct ops_report *report)
{
    const char *argv[OPS_MAX_SIZES + 4] = {plan->python, "tests/bench/torch_adam.py",
                                           plan->threads > 1 ? "2" : "1"};
    char numbers[OPS_MAX_SIZES][32];
    char text[8192];
    size_t count = 3;

    if (access(plan->python, X_OK) != 0) {
        ops_note(report, "torch is not measured: there is no %s", plan->python);
        return;
    }
    for (unsigned i = 0; i < plan->size_count; i++) {
        if ((double)plan->sizes[i] * TORCH_BYTES > available_bytes()) {
            ops_note(report, "torch is not measured with %zu elements: memory is insufficient",
                     plan->sizes[i]);
            continue;
        }
        snprintf(numbers[i], sizeof(numbers[i]), "%zu", plan->sizes[i]);
        argv[count++] = numbers[i];
    }
    bench_capture(argv, (const char *const *)environ, text, sizeof(text));
    parse_torch(report, text);
}

/* ---- ops ------------------------------------------------------------------------------------ */

/* Make VmHWM begin again with what is resident now. Older values count where it cannot. */
static void reset_peak(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!write(fd, "5", 1);
        close(fd);
    }
}

/* What fewer threads reach is a limit of more threads, too: other programs disturb these more. */
static void raise_limits(struct ops_row *row, const struct ops_row *fewer)
{
    row->bytes = fewer->bytes > row->bytes ? fewer->bytes : row->bytes;
    row->arithmetic = fewer->arithmetic > row->arithmetic ? fewer->arithmetic : row->arithmetic;
}

static void measure_op(const struct plan *plan, const struct ops_op *op,
                       const struct ops_arena *arena, struct ops_report *report)
{
    const struct ds_accel_op *table = ops_load(plan->build, op->name);
    const struct limit_set *set = limit_find(table->path());
    struct ops_memory *memory = &report->memory[report->memory_count++];

    if (set == NULL) {
        set = limit_find("neon");
    }
    if (set == NULL) {
        bench_die("%s: there are no limits for the path %s", op->name, table->path());
    }
    reset_peak();
    for (unsigned i = 0; i < OPS_DTYPES; i++) {
        for (unsigned j = 0; j < plan->size_count; j++) {
            ops_fill(arena, &ops_dtypes[i], plan->sizes[j]);
            for (unsigned threads = 1; threads <= plan->threads; threads++) {
                struct ops_row *row = &report->rows[report->count];

                if (threads > 1 && plan->sizes[j] < OPS_ALONE) {
                    break;
                }
                row->op = op;
                row->dtypes = &ops_dtypes[i];
                row->path = table->path();
                row->limit_path = set->name;
                row->elements = plan->sizes[j];
                row->threads = threads;
                ops_measure(arena, table, set, row);
                if (threads > 1) {
                    raise_limits(row, row - 1);
                }
                ops_print_row(report, report->count++);
            }
        }
    }
    memory->op = op;
    memory->peak_mib = read_number("/proc/self/status", "VmHWM:", 1e15) / 1024;
    memory->arrays_mib = (double)arena->bytes / (1 << 20);
}

/* ---- other programs ------------------------------------------------------------------------- */

struct processors {
    double busy; /* seconds since the start of the machine */
    double own;  /* seconds that this process and its children used */
};

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static struct processors read_processors(void)
{
    static const int usages[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    struct processors processors = {0};
    FILE *file = fopen("/proc/stat", "r");
    double user;
    double nice;
    double system;
    double irq[2];
    double steal;

    if (file != NULL && fscanf(file, "cpu %lf %lf %lf %*f %*f %lf %lf %lf", &user, &nice, &system,
                               &irq[0], &irq[1], &steal) == 6) {
        processors.busy = (user + nice + system + irq[0] + irq[1] + steal) /
                          (double)sysconf(_SC_CLK_TCK);
    }
    if (file != NULL) {
        fclose(file);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct rusage usage = {0};

        getrusage(usages[i], &usage);
        processors.own += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    }
    return processors;
}

/* Return the part of the processors' time that other programs took since then. */
static double others_since(const struct processors *then, double seconds)
{
    struct processors now = read_processors();
    double others = (now.busy - then->busy) - (now.own - then->own);

    return others > 0 ? others / seconds / (double)sysconf(_SC_NPROCESSORS_ONLN) : 0;
}

int main(int argc, char **argv)
{
    static struct ops_report report;
    static struct plan plan;
    struct ops_arena arena;
    char dir[BENCH_PATH_SIZE];
    uint64_t start_ns = now_ns();
    struct processors start = read_processors();
    size_t largest = 0;

    if (argc < 3 || argc > 5) {
        fputs("usage: ops BUILD PYTHON [OPS [SIZES]]\n", stderr);
        return 2;
    }
    plan.build = argv[1];
    plan.python = argv[2];
    parse_ops(&plan, argc > 3 ? argv[3] : "");
    parse_sizes(&plan, argc > 4 ? argv[4] : "");
    if (snprintf(dir, sizeof(dir), "%s/bench", plan.build) >= (int)sizeof(dir)) {
        bench_die("%s: the path is too long", plan.build);
    }
    bench_read_machine(&report.machine);
    printf("%s, %ld processors, Linux %s, %s\n", report.machine.cpu, report.machine.cpu_count,
           report.machine.kernel, report.machine.compiler);
    plan.threads = usable_threads(&report);
    drop_large_sizes(&plan, &report);
    measure_torch(&plan, &report);
    for (unsigned i = 0; i < plan.size_count; i++) {
        largest = plan.sizes[i] > largest ? plan.sizes[i] : largest;
    }
    ops_arena_create(&arena, largest);
    report.arrays_mib = (double)arena.bytes / (1 << 20);
    report.huge_mib = read_number("/proc/self/smaps_rollup", "AnonHugePages:", 1e15) / 1024;
    for (unsigned i = 0; i < OPS_OPS; i++) {
        if (plan.is_wanted[i]) {
            measure_op(&plan, &ops_ops[i], &arena, &report);
        }
    }
    ops_arena_destroy(&arena);
    report.others = others_since(&start, elapsed_ns(start_ns) / 1e9);
    ops_print_end(&report);
    ops_write_json(&report, dir);
    ops_write_svg(&report, dir);
    printf("%.0f s\n", elapsed_ns(start_ns) / 1e9);
    return 0;
}
