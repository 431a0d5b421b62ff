/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Measures async_io beside fio and DeepSpeed's:  io BUILD PYTHON DIRECTORY [MIB]
 *
 * A file in DIRECTORY is written and read from its beginning to its end, in blocks of 1 MiB with
 * O_DIRECT, 32 of them in flight, by fio and by both engines of the op. All take turns, in several
 * rounds, because disks drift. Ours has four requests of 8 MiB in flight at a time, so it uses as
 * much memory as fio. Each round writes other data, and each block that is read is checked by its
 * first bytes.
 *
 * DeepSpeed's op is compiled from the checkout that the variable DEEPSPEED names.
 * fio runs with usual buffers, and with huge pages if there are free ones (vm.nr_hugepages).
 */
#include "bench.h"
#include "clock.h"

#include <ds-accel/ops/async_io.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
#define BLOCK MIB
#define DEPTH 32
#define REQUEST (8 * MIB)
#define REQUESTS (DEPTH * BLOCK / REQUEST)
#define ROUNDS 5
#define USUAL_MIB 1024

extern char **environ;

enum way {
    FIO,
    FIO_HUGE,
    OURS_URING,
    OURS_THREADS,
    DEEPSPEED,
    WAYS
};

static const char *const way_names[WAYS] = {"fio", "fio, huge pages", "ours, io_uring",
                                            "ours, threads", "DeepSpeed"};

struct bench_io {
    const char *python;
    const struct ds_accel_async_io *op;
    ds_accel_async_io_handle_t *handles[WAYS];
    const char *directory;
    char path[BENCH_PATH_SIZE];
    uint64_t bytes;
    char *buffer; /* of all requests in flight */
    bool is_missing[WAYS];
    char notes[WAYS][400];
    /* GB/s */
    double figures[2][WAYS][ROUNDS];
};

/* ---- ours ----------------------------------------------------------------------------------- */

static void check(int32_t status, const struct ds_accel_error *error)
{
    if (status != DS_ACCEL_OK) {
        bench_die("%s", error->message);
    }
}

static void load(struct bench_io *io, const char *build)
{
    char path[BENCH_PATH_SIZE];
    void *library;
    ds_accel_op_entry_v1_fn entry;

    if (snprintf(path, sizeof(path), "%s/lib/ds-accel/ops/async_io.so", build) >=
        (int)sizeof(path)) {
        bench_die("%s: the path is too long", build);
    }
    library = dlopen(path, RTLD_NOW);
    entry = library != NULL ? (ds_accel_op_entry_v1_fn)dlsym(library, DS_ACCEL_OP_ENTRY) : NULL;
    if (entry == NULL) {
        bench_die("%s", dlerror());
    }
    io->op = (const struct ds_accel_async_io *)entry();
}

static void open_handle(struct bench_io *io, enum way way, uint32_t engine)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_async_io_options options = {.struct_size = sizeof(options),
                                                      .block_bytes = BLOCK,
                                                      .queue_depth = DEPTH,
                                                      .parallelism = 1,
                                                      .overlap_events = 1,
                                                      .engine = engine};

    if (io->op->create(&options, &io->handles[way], &error) != DS_ACCEL_OK) {
        snprintf(io->notes[way], sizeof(io->notes[way]), "%s: %s", way_names[way], error.message);
        io->is_missing[way] = true;
        return;
    }
    if (io->op->register_buffer(io->handles[way], io->buffer, DEPTH * BLOCK, &error) !=
        DS_ACCEL_OK) {
        snprintf(io->notes[way], sizeof(io->notes[way]), "%s, without registered buffers: %s",
                 way_names[way], error.message);
    }
}

static uint64_t *block_of(const struct bench_io *io, uint64_t offset)
{
    return (uint64_t *)(void *)(io->buffer + offset % (DEPTH * BLOCK));
}

/* Mark or check the blocks of the request that begins at offset. */
static void mark(const struct bench_io *io, uint64_t offset, uint64_t round)
{
    for (uint64_t at = offset; at < offset + REQUEST; at += BLOCK) {
        *block_of(io, at) = at + round;
    }
}

static void verify(const struct bench_io *io, uint64_t offset, uint64_t round)
{
    for (uint64_t at = offset; at < offset + REQUEST; at += BLOCK) {
        if (*block_of(io, at) != at + round) {
            bench_die("block at %" PRIu64 " has %" PRIu64 ", wanted %" PRIu64, at,
                      *block_of(io, at), at + round);
        }
    }
}

/* Return GB/s of one pass over the file. */
static double run_ours(struct bench_io *io, enum way way, bool writes, uint64_t round)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_async_io_transfer transfer = {.struct_size = sizeof(transfer)};
    uint64_t requests[REQUESTS];
    uint64_t start_ns = now_ns();

    transfer.path = io->path;
    transfer.bytes = REQUEST;
    for (uint64_t offset = 0; offset < io->bytes + DEPTH * BLOCK; offset += REQUEST) {
        uint64_t slot = offset / REQUEST % REQUESTS;

        if (offset >= DEPTH * BLOCK) { /* the request that used this memory */
            check(io->op->wait_one(io->handles[way], requests[slot], NULL, &error), &error);
            if (!writes) {
                verify(io, offset - DEPTH * BLOCK, round);
            }
        }
        if (offset >= io->bytes) {
            continue;
        }
        if (writes) {
            mark(io, offset, round);
        }
        transfer.offset = offset;
        transfer.buffer = block_of(io, offset);
        check((writes ? io->op->submit_write : io->op->submit_read)(io->handles[way], &transfer,
                                                                    &requests[slot], &error),
              &error);
    }
    return (double)io->bytes / elapsed_ns(start_ns);
}

/* ---- fio ------------------------------------------------------------------------------------ */

/* Return the field of fio's terse output, counted from 1. */
static double field(char *text, unsigned number)
{
    const char *item = NULL;

    for (unsigned i = 0; i < number; i++) {
        item = strsep(&text, ";");
        if (item == NULL) {
            bench_die("fio printed %u fields, wanted %u", i, number);
        }
    }
    return strtod(item, NULL);
}

static double run_fio(const struct bench_io *io, enum way way, bool writes)
{
    char file[BENCH_PATH_SIZE + 16];
    char size[32];
    char text[8192];
    const char *const argv[] = {"/usr/bin/fio",
                                "--name=bench",
                                file,
                                size,
                                "--bs=1m",
                                "--iodepth=32",
                                "--ioengine=io_uring",
                                "--direct=1",
                                "--fixedbufs=1",
                                "--allow_file_create=0",
                                "--output-format=terse",
                                "--terse-version=3",
                                writes ? "--rw=write" : "--rw=read",
                                way == FIO_HUGE ? "--mem=mmaphuge" : "--mem=malloc",
                                NULL};
    double kib;

    snprintf(file, sizeof(file), "--filename=%s", io->path);
    snprintf(size, sizeof(size), "--size=%" PRIu64, io->bytes);
    bench_capture(argv, (const char *const *)environ, text, sizeof(text));
    kib = field(text, writes ? 48 : 7); /* KiB a second */
    return kib * 1024 / 1e9;
}

static long free_huge_pages(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[256];
    long count = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "HugePages_Free:", 15) == 0) {
            count = strtol(line + 15, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

static void find_fio(struct bench_io *io)
{
    if (access("/usr/bin/fio", X_OK) != 0) {
        io->is_missing[FIO] = io->is_missing[FIO_HUGE] = true;
        snprintf(io->notes[FIO], sizeof(io->notes[FIO]), "fio was not measured: /usr/bin/fio: %s",
                 strerror(errno));
    } else if (free_huge_pages() < (long)(DEPTH * BLOCK / (2 * MIB)) + 2) {
        io->is_missing[FIO_HUGE] = true;
        snprintf(io->notes[FIO_HUGE], sizeof(io->notes[FIO_HUGE]),
                 "fio with huge pages was not measured: there are not enough free ones "
                 "(sysctl vm.nr_hugepages=32)");
    }
}

/* ---- DeepSpeed ------------------------------------------------------------------------------ */

static void find_deepspeed(struct bench_io *io, const char *build)
{
    const char *checkout = getenv("DEEPSPEED");
    char path[BENCH_PATH_SIZE];

    if (checkout == NULL || *checkout == '\0') {
        io->is_missing[DEEPSPEED] = true;
        snprintf(io->notes[DEEPSPEED], sizeof(io->notes[DEEPSPEED]),
                 "DeepSpeed was not measured: DEEPSPEED=DIR names no checkout of it");
        return;
    }
    if (snprintf(path, sizeof(path), "%s/bench/deepspeed", build) >= (int)sizeof(path)) {
        bench_die("%s: the path is too long", build);
    }
    setenv("DEEPSPEED_BUILD", path, 1);
}

static double run_deepspeed(struct bench_io *io, bool writes)
{
    char size[32];
    char text[4096];
    const char *const argv[] = {io->python, "tests/bench/io_deepspeed.py", io->path,
                                size,       writes ? "write" : "read",     NULL};

    snprintf(size, sizeof(size), "%" PRIu64, io->bytes);
    bench_capture(argv, (const char *const *)environ, text, sizeof(text));
    if (strncmp(text, "missing ", 8) == 0) {
        io->is_missing[DEEPSPEED] = true;
        snprintf(io->notes[DEEPSPEED], sizeof(io->notes[DEEPSPEED]),
                 "DeepSpeed was not measured: %.300s", text + 8);
    }
    return strtod(text, NULL);
}

/* ---- the rounds ----------------------------------------------------------------------------- */

static void make_file(struct bench_io *io)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_async_io_transfer end = {.struct_size = sizeof(end),
                                                   .path = io->path,
                                                   .offset = io->bytes - BLOCK,
                                                   .buffer = io->buffer,
                                                   .bytes = BLOCK};

    if (snprintf(io->path, sizeof(io->path), "%s/ds-accel-bench-io.%ld", io->directory,
                 (long)getpid()) >= (int)sizeof(io->path)) {
        bench_die("%s: the path is too long", io->directory);
    }
    check(io->op->write(io->handles[OURS_THREADS], &end, NULL, &error), &error);
}

static void measure(struct bench_io *io)
{
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (uint64_t i = 0; i < WAYS; i++) {
            enum way way = (enum way)((i + round) % WAYS); /* what was before may matter */

            for (int reads = 0; reads < 2 && !io->is_missing[way]; reads++) {
                double *figure = &io->figures[reads][way][round];

                if (way == FIO || way == FIO_HUGE) {
                    *figure = run_fio(io, way, reads == 0);
                } else if (way == DEEPSPEED) {
                    *figure = run_deepspeed(io, reads == 0);
                } else {
                    *figure = run_ours(io, way, reads == 0, round * WAYS + way);
                }
            }
        }
    }
}

static void allocate(struct bench_io *io)
{
    void *memory;

    if (posix_memalign(&memory, 2 * MIB, DEPTH * BLOCK) != 0) {
        bench_die("no memory");
    }
    madvise(memory, DEPTH * BLOCK, MADV_HUGEPAGE);
    memset(memory, 1, DEPTH * BLOCK);
    io->buffer = (char *)memory;
}

/* ---- table, JSON and SVG -------------------------------------------------------------------- */

static double median(const struct bench_io *io, int reads, enum way way)
{
    double copy[ROUNDS];

    memcpy(copy, io->figures[reads][way], sizeof(copy));
    return io->is_missing[way] ? 0 : bench_median(copy, ROUNDS);
}

static double ratio(double ours, double other)
{
    return other > 0 ? ours / other : 0;
}

static void print(const struct bench_io *io)
{
    for (enum way way = 0; way < WAYS; way++) {
        if (io->notes[way][0] != '\0') {
            printf("%s\n", io->notes[way]);
        }
    }
    printf("\n%" PRIu64 " MiB in blocks of 1 MiB, O_DIRECT, %d in flight; GB/s, median of %d "
           "rounds\n\n",
           io->bytes / MIB, DEPTH, ROUNDS);
    printf("%-6s", "");
    for (enum way way = 0; way < WAYS; way++) {
        printf("  %16s", way_names[way]);
    }
    printf("  ours / best fio >= 1  threads / io_uring >= 0.95  ours / DeepSpeed >= 1.1\n");
    for (int reads = 0; reads < 2; reads++) {
        double figures[WAYS];
        double fio;

        printf("%-6s", reads == 0 ? "write" : "read");
        for (enum way way = 0; way < WAYS; way++) {
            figures[way] = median(io, reads, way);
            if (io->is_missing[way]) {
                printf("  %16s", "-");
            } else {
                printf("  %16.2f", figures[way]);
            }
        }
        fio = figures[FIO] > figures[FIO_HUGE] ? figures[FIO] : figures[FIO_HUGE];
        printf("  %20.2f  %26.2f  %23.2f\n", ratio(figures[OURS_URING], fio),
               ratio(figures[OURS_THREADS], figures[OURS_URING]),
               ratio(figures[OURS_URING], figures[DEEPSPEED]));
    }
    printf("\n");
}

/* Write dir/io.svg: a bar for each figure. */
static void write_svg(const struct bench_io *io, const char *dir)
{
    const int bar = 18;
    char path[BENCH_PATH_SIZE];
    char text[64];
    FILE *file = bench_open(dir, "io.svg", path);
    double most = 0;
    int y = 20;

    for (int i = 0; i < 2 * WAYS; i++) {
        double figure = median(io, i / WAYS, (enum way)(i % WAYS));

        most = figure > most ? figure : most;
    }
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
            "fill=\"white\"/>\n",
            2 * (WAYS + 2) * bar + 20);
    for (int reads = 0; reads < 2; reads++) {
        bench_svg_text(file, 10, y, "", reads == 0 ? "write, GB/s" : "read, GB/s");
        for (enum way way = 0; way < WAYS; way++) {
            double figure = median(io, reads, way);

            y += bar;
            bench_svg_text(file, 140, y, " text-anchor=\"end\"", way_names[way]);
            fprintf(file, "<rect x=\"150\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n",
                    y - 11, 500 * figure / most, bar - 4,
                    way == OURS_URING || way == OURS_THREADS ? "#c00" : "#888");
            snprintf(text, sizeof(text), io->is_missing[way] ? "not measured" : "%.2f", figure);
            bench_svg_text(file, 156 + (int)(500 * figure / most), y, "", text);
        }
        y += 2 * bar;
    }
    fputs("</svg>\n", file);
    bench_close(file, path);
}

/* Write dir/io.json. */
static void write_json(const struct bench_io *io, const char *dir)
{
    char path[BENCH_PATH_SIZE];
    struct bench_machine machine;
    FILE *file;

    bench_read_machine(&machine);
    file = bench_open(dir, "io.json", path);
    fprintf(file, "{\n  \"schema_version\": 1,\n  \"machine\": {\"cpu_count\": %ld",
            machine.cpu_count);
    bench_json_member(file, "cpu", machine.cpu);
    bench_json_member(file, "kernel", machine.kernel);
    bench_json_member(file, "directory", io->directory);
    fprintf(file, "},\n  \"bytes\": %" PRIu64 ", \"block_bytes\": %" PRIu64 ", \"depth\": %d,\n",
            io->bytes, BLOCK, DEPTH);
    fputs("  \"rows\": [\n", file);
    for (int reads = 0; reads < 2; reads++) {
        for (enum way way = 0; way < WAYS; way++) {
            fprintf(file, "    {\"transfer\": \"%s\"", reads == 0 ? "write" : "read");
            bench_json_member(file, "by", way_names[way]);
            bench_json_member(file, "note", io->notes[way]);
            if (io->is_missing[way]) {
                fputs(", \"gb_per_s\": null}", file);
            } else {
                fprintf(file, ", \"gb_per_s\": %.6g}", median(io, reads, way));
            }
            fputs(reads == 1 && way + 1 == WAYS ? "\n" : ",\n", file);
        }
    }
    fputs("  ]\n}\n", file);
    bench_close(file, path);
}

int main(int argument_count, char **arguments)
{
    static struct bench_io io;
    char dir[BENCH_PATH_SIZE];
    uint64_t mib = USUAL_MIB;

    if (argument_count < 4) {
        fprintf(stderr, "usage: io BUILD PYTHON DIRECTORY [MIB]\n");
        return 2;
    }
    if (argument_count > 4 && arguments[4][0] != '\0') {
        char *end;

        mib = strtoull(arguments[4], &end, 10);
        if (*end != '\0' || mib < REQUEST / MIB || mib > 1 << 20) {
            bench_die("BENCH_IO_MIB is \"%s\"; wanted MiB from %" PRIu64 " to 1048576",
                      arguments[4], REQUEST / MIB);
        }
    }
    io.python = arguments[2];
    io.directory = arguments[3];
    io.bytes = mib * MIB / REQUEST * REQUEST;
    load(&io, arguments[1]);
    allocate(&io);
    find_fio(&io);
    find_deepspeed(&io, arguments[1]);
    open_handle(&io, OURS_URING, DS_ACCEL_ASYNC_IO_ENGINE_IO_URING);
    open_handle(&io, OURS_THREADS, DS_ACCEL_ASYNC_IO_ENGINE_THREADS);
    make_file(&io);
    measure(&io);
    unlink(io.path);
    print(&io);
    if (snprintf(dir, sizeof(dir), "%s/bench", arguments[1]) >= (int)sizeof(dir)) {
        bench_die("%s: the path is too long", arguments[1]);
    }
    write_json(&io, dir);
    write_svg(&io, dir);
    for (enum way way = 0; way < WAYS; way++) {
        io.op->destroy(io.handles[way]);
    }
    free(io.buffer);
    return 0;
}
