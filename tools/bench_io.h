/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Declarations shared by the files of ds-accel bench io; bench_io.c describes the files. */
#ifndef DS_ACCEL_TOOLS_BENCH_IO_H
#define DS_ACCEL_TOOLS_BENCH_IO_H

#include "bench.h"
#include "ops/async_io/async_io.h"

#define BENCH_IO_REQUESTS 2u /* in flight */
#define BENCH_IO_MIN_BYTES ((uint64_t)1 << 20)
#define BENCH_IO_LAPS 64u
#define BENCH_IO_ROWS 3u

/* Status in addition to the library's: a handle with these settings cannot be created. */
#define BENCH_IO_UNUSABLE 1001

struct bench_io_settings {
    uint64_t block_bytes;
    uint32_t queue_depth;
    uint32_t parallelism;
    bool single_submit;
    bool overlap_events;
};

enum {
    BENCH_IO_WRITE,
    BENCH_IO_READ,
    BENCH_IO_WAYS
};

/* What was transferred, and how long that took. */
struct bench_io_sums {
    uint64_t bytes[BENCH_IO_WAYS];
    uint64_t ns[BENCH_IO_WAYS];
};

/* The file, and the memory of the requests. */
struct bench_io {
    const struct ds_accel_async_io *op;
    uint32_t engine; /* DS_ACCEL_ASYNC_IO_ENGINE_* */
    char engine_reason[160];
    struct bench_io_settings configured; /* what the op uses without options */
    int fd;
    uint64_t size_bytes;          /* of the file, a multiple of request_bytes */
    uint64_t request_bytes;       /* a multiple of 4096 */
    char *buffer;                 /* request_bytes for each request in flight */
    uint64_t next[BENCH_IO_WAYS]; /* offsets where the next write and the next read begin */
    uint64_t bytes;               /* transferred so far, ... */
    uint64_t direct_bytes;        /* ... of these with O_DIRECT */
    bool memory;                  /* the file system has no disk: tmpfs or ramfs */
    char failure[512];            /* why the last call failed */
};

/* Settings that are measured in several laps, alternating with others. */
struct bench_io_row {
    const char *name;
    struct bench_io_settings settings;
    double rates[BENCH_IO_WAYS][BENCH_IO_LAPS]; /* bytes a second */
};

/* What --tune found. */
struct bench_io_search {
    struct bench_io_settings best;
    uint32_t candidates;   /* settings that were measured */
    uint32_t measurements; /* of all of them */
};

/* ---- bench_io_measure.c --------------------------------------------------------------------- */

extern const struct bench_io_settings bench_io_defaults;

bool bench_io_equal(const struct bench_io_settings *a, const struct bench_io_settings *b);
uint64_t bench_io_now_ns(void);
/* Ask the op for its engine and its configured settings. */
int32_t bench_io_ask(struct bench_io *io);
/*
 * Create the file in a directory, without a name where that is possible, allocate the memory and
 * write the whole file once, with the configured settings. Adds that to the sums.
 */
int32_t bench_io_open(struct bench_io *io, const char *directory, struct bench_io_sums *sums);
void bench_io_close(struct bench_io *io);
/*
 * Write for a time, at least as much as is in flight, then read as long, and add both to the sums.
 * The file is passed through in a circle. DS_ACCEL_OK; BENCH_INTERRUPTED; BENCH_IO_UNUSABLE; or a
 * failed transfer. The last two set io->failure.
 */
int32_t bench_io_measure(struct bench_io *io, const struct bench_io_settings *settings,
                         uint64_t time_ns, struct bench_io_sums *sums);
/* Bytes a second of one way, and of a write and a read of the same number of bytes. 0: none. */
double bench_io_rate(const struct bench_io_sums *sums, int way);
double bench_io_both(double write_rate, double read_rate);

/* ---- bench_io_tune.c ------------------------------------------------------------------------ */

/* The grid: setting number `index`; false: there are no more. With threads, both switches are
 * off. */
bool bench_io_grid(uint32_t engine, size_t index, struct bench_io_settings *settings_out);
/* Search the grid until end_ns. floor_ns: the time of one transfer of all that is in flight. */
int32_t bench_io_search(struct bench_io *io, uint64_t floor_ns, uint64_t end_ns,
                        struct bench_io_search *search_out);

/* ---- bench_io_report.c ---------------------------------------------------------------------- */

struct bench_io_report {
    const char *directory;
    double time_s;
    const struct bench_io_row *rows;
    size_t row_count;
    uint32_t laps;
    const struct bench_io_search *search; /* NULL: without --tune */
    double gain, noise;                   /* of the best settings over the defaults */
    const char *written;                  /* the configuration file; NULL: none was written */
};

double bench_io_median(const double *values, uint32_t count);
/* The gain is the median ratio of two rows, lap by lap, minus 1; the noise is the median distance
 * of these ratios from their median. */
void bench_io_gain(const struct bench_io_row *row, const struct bench_io_row *base, uint32_t laps,
                   double *gain_out, double *noise_out);
void bench_io_write_text(FILE *file, const struct bench_io *io,
                         const struct bench_io_report *report, bool colour);
void bench_io_write_json(FILE *file, const struct bench_io *io,
                         const struct bench_io_report *report);

#endif
