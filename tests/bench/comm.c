/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Measures the all-reduce of shm_comm beside its limits and its peers, and that of ccl_comm where
 * each rank is a node, by Open MPI:
 *
 *     comm BUILD PYTHON [SIZES [SCALE]]
 *
 *   comm_loop.h      what is timed, in each program    comm_mpi.c     Open MPI and MPICH
 *   comm_ours.c      ours and the limits               comm_torch.py  gloo and DeepSpeed
 *   comm_limit.c     the limits                        comm_report.c  table, JSON and SVG
 *
 * Every implementation runs in programs of its own, one after the other, in several rounds, so that
 * a change of the machine's speed affects all of them. SIZES is a list of bytes, separated by
 * spaces; an empty one stands for 8 bytes to 64 MiB. SCALE divides the number of calls, for tests.
 * DeepSpeed's op is compiled from the checkout that the variable DEEPSPEED names.
 */
#include "comm.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 3
#define MOST_BYTES ((size_t)1 << 30)
#define ARGUMENTS (COMM_SIZES + 16)

extern char **environ;

const char *const comm_names[COMM_NAMES] = {
    "ours, private",     "ours, registered", "ccl_comm", "limit, private",
    "limit, registered", "Open MPI",         "MPICH",    "gloo",
    "DeepSpeed"};

struct plan {
    const char *build;
    const char *python;
    char sizes[COMM_SIZES][24];
    unsigned size_count;
    char file[64];
    unsigned scale;
    bool is_missing[COMM_NAMES];
};

static void note(struct comm_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void note(struct comm_report *report, const char *format, ...)
{
    char *text;
    va_list arguments;

    if (report->note_count == sizeof(report->notes) / sizeof(report->notes[0])) {
        bench_die("too many notes");
    }
    text = report->notes[report->note_count++];
    va_start(arguments, format);
    vsnprintf(text, sizeof(report->notes[0]), format, arguments);
    va_end(arguments);
    printf("%s\n", text);
}

static void parse_sizes(struct plan *plan, const char *list)
{
    const char *usual = "8 64 1024 4096 16384 65536 262144 1048576 4194304 16777216 67108864";
    char *end;

    list += strspn(list, " ");
    for (list = *list != '\0' ? list : usual; *list != '\0'; list = end + strspn(end, " ")) {
        double size = strtod(list, &end);

        if (end == list || (*end != ' ' && *end != '\0') ||
            !(size >= 4 && size <= (double)MOST_BYTES)) {
            bench_die("BENCH_SIZES takes numbers of bytes from 4 to %zu for shm_comm, not \"%s\"",
                      MOST_BYTES, list);
        }
        if (plan->size_count == COMM_SIZES) {
            bench_die("BENCH_SIZES has more than %d sizes", COMM_SIZES);
        }
        snprintf(plan->sizes[plan->size_count++], sizeof(plan->sizes[0]), "%zu",
                 (size_t)size & ~(size_t)3);
    }
}

/* ---- commands ------------------------------------------------------------------------------- */

struct command {
    const char *words[ARGUMENTS];
    unsigned count;
    char texts[5][BENCH_PATH_SIZE];
    unsigned text_count;
};

static void add(struct command *command, const char *word)
{
    command->words[command->count++] = word;
}

static void add_text(struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add_text(struct command *command, const char *format, ...)
{
    char *text = command->texts[command->text_count++];
    va_list arguments;

    va_start(arguments, format);
    if (vsnprintf(text, BENCH_PATH_SIZE, format, arguments) >= BENCH_PATH_SIZE) {
        bench_die("a path is too long");
    }
    va_end(arguments);
    add(command, text);
}

static void add_openmpi(struct command *command, unsigned ranks)
{
    add(command, "/usr/bin/mpirun.openmpi");
    add(command, "--allow-run-as-root");
    add(command, "--oversubscribe");
    add(command, "--bind-to");
    add(command, "none");
    add(command, "-np");
    add_text(command, "%u", ranks);
}

/* Begin the command of an implementation; what follows are the arguments of comm_loop.h. */
static void begin(struct command *command, const struct plan *plan, enum comm_name name,
                  unsigned ranks)
{
    static const char *const modes[] = {"private", "registered", "nodes", "limit-private",
                                        "limit-registered"};

    switch (name) {
    case COMM_OPENMPI:
        add_openmpi(command, ranks);
        add_text(command, "%s/bench/comm_openmpi", plan->build);
        break;
    case COMM_MPICH:
        add(command, "/usr/bin/mpirun.mpich");
        add(command, "-np");
        add_text(command, "%u", ranks);
        add_text(command, "%s/bench/comm_mpich", plan->build);
        break;
    case COMM_GLOO:
    case COMM_DEEPSPEED:
        add(command, plan->python);
        add(command, "tests/bench/comm_torch.py");
        add(command, name == COMM_GLOO ? "gloo" : "deepspeed");
        add_text(command, "%u", ranks);
        break;
    default:
        if (name == COMM_CCL) {
            add_openmpi(command, ranks);
        }
        add_text(command, "%s/bench/comm_ours", plan->build);
        add(command, modes[name]);
        add_text(command, "%s/lib/ds-accel/ops/%s.so", plan->build,
                 name == COMM_CCL ? "ccl_comm" : "shm_comm");
        add_text(command, "%u", ranks);
    }
}

/* ---- measuring ------------------------------------------------------------------------------ */

/* Read the lines "BYTES NANOSECONDS" of a program into times[size][round]. */
static void read_times(struct comm_report *report, struct plan *plan, enum comm_name name,
                       char *text, double times[][ROUNDS], unsigned round)
{
    unsigned read = 0;
    char *line;

    while ((line = strsep(&text, "\n")) != NULL) {
        char *end;

        if (strncmp(line, "missing ", 8) == 0) {
            note(report, "%s was not measured: %s", comm_names[name], line + 8);
            plan->is_missing[name] = true;
            return;
        }
        if (strncmp(line, "version ", 8) == 0) {
            snprintf(report->torch_version, sizeof(report->torch_version), "%s", line + 8);
        } else if (read < plan->size_count && *line != '\0') {
            if (strtoull(line, &end, 10) != strtoull(plan->sizes[read], NULL, 10)) {
                bench_die("%s printed \"%s\"", comm_names[name], line);
            }
            times[read++][round] = strtod(end, NULL);
        }
    }
    if (read != plan->size_count) {
        bench_die("%s: %u of %u sizes were measured", comm_names[name], read, plan->size_count);
    }
}

/* Run one implementation with all sizes. scale: fewer calls. */
static void run(struct comm_report *report, struct plan *plan, enum comm_name name, unsigned ranks,
                unsigned scale, double times[][ROUNDS], unsigned round)
{
    struct command command = {.count = 0};
    char text[4096];
    FILE *file;

    begin(&command, plan, name, ranks);
    add(&command, plan->file);
    add_text(&command, "%u", scale * plan->scale);
    for (unsigned i = 0; i < plan->size_count; i++) {
        add(&command, plan->sizes[i]);
    }
    if (access(command.words[0], X_OK) != 0) {
        if (round == 0 && !plan->is_missing[name]) {
            note(report, "%s was not measured: %s: %s", comm_names[name], command.words[0],
                 strerror(errno));
        }
        plan->is_missing[name] = true;
        return;
    }
    file = fopen(plan->file, "w"); /* empty; gloo removes it */
    if (file == NULL || fclose(file) != 0) {
        bench_die("%s: %s", plan->file, strerror(errno));
    }
    bench_capture(command.words, (const char *const *)environ, text, sizeof(text));
    read_times(report, plan, name, text, times, round);
}

/* Ranks without a CPU of their own, and what torch calls, are slow; DeepSpeed's ranks wait for each
 * other without yielding. */
static unsigned scale_of(enum comm_name name, bool is_crowded)
{
    switch (name) {
    case COMM_GLOO:
        return 20;
    case COMM_DEEPSPEED:
        return is_crowded ? 400 : 20;
    default:
        return is_crowded ? 100 : 1;
    }
}

/* Leave DeepSpeed out, or say where its op is to be compiled. */
static void prepare_deepspeed(struct comm_report *report, struct plan *plan)
{
    const char *checkout = getenv("DEEPSPEED");
    char path[BENCH_PATH_SIZE];

    if (checkout == NULL || *checkout == '\0') {
        note(report, "DeepSpeed was not measured: DEEPSPEED=DIR names no checkout of it");
        plan->is_missing[COMM_DEEPSPEED] = true;
        return;
    }
    if (snprintf(path, sizeof(path), "%s/bench/deepspeed/shm_comm", plan->build) >=
        (int)sizeof(path)) {
        bench_die("%s: the path is too long", plan->build);
    }
    setenv("DEEPSPEED_BUILD", path, 1);
}

/* Measure a number of ranks, and add the rows. */
static void measure(struct comm_report *report, struct plan *plan, unsigned ranks, bool is_crowded)
{
    static double times[COMM_NAMES][COMM_SIZES][ROUNDS];

    memset(times, 0, sizeof(times));
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (enum comm_name name = 0; name < COMM_NAMES; name++) {
            bool is_limit = name == COMM_LIMIT_PRIVATE || name == COMM_LIMIT_REGISTERED;
            unsigned scale = scale_of(name, is_crowded);

            if (!plan->is_missing[name] && !(is_limit && ranks != 2) && !(is_limit && is_crowded)) {
                run(report, plan, name, ranks, scale, times[name], round);
            }
        }
    }
    for (unsigned i = 0; i < plan->size_count; i++) {
        struct comm_row *row = &report->rows[report->count++];

        row->ranks = ranks;
        row->bytes = strtoull(plan->sizes[i], NULL, 10);
        for (enum comm_name name = 0; name < COMM_NAMES; name++) {
            row->ns[name] = bench_median(times[name][i], ROUNDS);
        }
    }
}

int main(int argument_count, char **arguments)
{
    static struct comm_report report = {.rounds = ROUNDS};
    struct plan plan = {.file = "/tmp/ds-accel-bench-XXXXXX"};
    char dir[BENCH_PATH_SIZE];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int file;

    if (argument_count < 3) {
        fprintf(stderr, "usage: comm BUILD PYTHON [SIZES [SCALE]]\n");
        return 2;
    }
    plan.build = arguments[1];
    plan.python = arguments[2];
    parse_sizes(&plan, argument_count > 3 ? arguments[3] : "");
    plan.scale = argument_count > 4 ? (unsigned)atoi(arguments[4]) : 1;
    bench_read_machine(&report.machine);
    file = mkstemp(plan.file);
    if (file < 0) {
        bench_die("%s: %s", plan.file, strerror(errno));
    }
    close(file);
    prepare_deepspeed(&report, &plan);
    measure(&report, &plan, 2, cpus < 2);
    measure(&report, &plan, 2 * (unsigned)(cpus > 1 ? cpus : 1), true);
    unlink(plan.file);
    comm_print(&report);
    if (snprintf(dir, sizeof(dir), "%s/bench", plan.build) >= (int)sizeof(dir)) {
        bench_die("%s: the path is too long", plan.build);
    }
    comm_write(&report, dir);
    return 0;
}
