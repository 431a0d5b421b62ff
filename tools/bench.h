/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Declarations shared by the files of ds-accel bench; cmd_bench.c describes the files. */
#ifndef DS_ACCEL_TOOLS_BENCH_H
#define DS_ACCEL_TOOLS_BENCH_H

#include "tool.h"

#include <stdio.h>

#define BENCH_MAX_SIZES 32
#define BENCH_MAX_SAMPLES 1000
/* size of the memory that rows without a size use */
#define BENCH_SMALL_BYTES 4096u
#define BENCH_GRAPH_NODES 32u

/* Status in addition to the library's: a signal such as Ctrl-C was received. */
#define BENCH_INTERRUPTED 1000

enum bench_unit {
    BENCH_BYTES_PER_S,
    BENCH_NS
};
enum bench_state {
    BENCH_MEASURED,
    BENCH_SKIPPED,
    BENCH_FAILED
};

/* Memory that a transfer reads or writes. */
enum bench_place {
    BENCH_HOST_IN, /* pageable, contains the pattern */
    BENCH_HOST_OUT,
    BENCH_PINNED,
    BENCH_DEVICE,
    BENCH_DEVICE_OTHER, /* a second range of the same device */
    BENCH_PEER,
    BENCH_PLACES
};

struct bench;

/* A kind of measurement. A row is a case, at one size if the case has sizes. */
struct bench_case {
    const char *group;
    const char *name;
    bool sized; /* has one row for each size */
    enum bench_unit unit;
    /* once() only queues work. A sample is then timed by device events if the device has them;
     * otherwise it includes the wait for the completion of the work. */
    bool queued;
    enum bench_place destination, source; /* memory of a transfer */
    uint32_t kind;                        /* DS_ACCEL_COPY_* */
    /* Create the objects that the operation needs, and check the operation's result; may be
     * NULL. */
    int32_t (*prepare)(struct bench *bench);
    /* Run one operation. A case has many() instead if the cost of a call through a pointer would be
     * significant. */
    int32_t (*once)(struct bench *bench);
    int32_t (*many)(struct bench *bench, uint64_t repetitions);
    void (*finish)(struct bench *bench); /* called also after prepare() failed; may be NULL */
};

struct bench_row {
    const struct bench_case *test;
    uint64_t size_bytes; /* 0: without a size */
    enum bench_state state;
    bool device_clock;
    double median, least, greatest,
        deviation; /* in the case's unit; deviation is the median absolute deviation */
    uint32_t samples;
    uint64_t repetitions; /* number of operations in one sample */
    char reason[512];
};

/* The measured device, and the resources in use. */
struct bench {
    ds_accel_t *context;
    ds_accel_device_t *device;
    ds_accel_device_t *peer; /* NULL: there is no peer, or it cannot be opened */
    char peer_reason[256];   /* why the peer cannot be opened */
    uint32_t device_index;
    uint32_t peer_index;
    ds_accel_stream_t *stream;
    ds_accel_event_t *start, *end; /* timing events; NULL: the host's clock is used */
    double time_s;

    const struct bench_case *test; /* the current case */
    uint64_t size_bytes;
    /* memory of size_bytes each; NULL: unavailable, for the reason below */
    void *places[BENCH_PLACES];
    int32_t place_status[BENCH_PLACES];
    char place_reason[BENCH_PLACES][256];

    void *small; /* device memory of BENCH_SMALL_BYTES */
    void *small_host;
    ds_accel_event_t *event;
    ds_accel_graph_t *graph;
    ds_accel_stream_t *other_stream;
    uint64_t tasks_queued, tasks_run;
    char reason[512]; /* why the current row fails; "": the library's message */

    struct bench_row *rows;
    size_t row_count;
};

/* ---- cmd_bench.c ---------------------------------------------------------------------------- */

/* Parse a size, such as 4096, 64K or 1MiB. False: the text is not a size. */
bool bench_parse_size(const char *text, size_t length, uint64_t *size_out);
/* Parse --time. Returns -1, or the exit code of a usage error. */
int bench_parse_time(const struct tool *tool, double default_s, double *time_out);

/* ---- bench_io.c ----------------------------------------------------------------------------- */

/* ds-accel bench io [DIR]. Returns the exit code. directory NULL: the current one. */
int bench_io_run(struct tool *tool, const char *directory);

/* ---- bench_cases.c: transfers; bench_calls.c: everything else ------------------------------- */

extern const struct bench_case bench_transfers[];
extern const size_t bench_transfer_count;
extern const struct bench_case bench_calls[];
extern const size_t bench_call_count;

/* Set the text that explains why the current row fails, and return status unchanged. */
int32_t bench_fail(struct bench *bench, int32_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Allocate bench->size_bytes at every place where that is possible, and write the pattern to
 * BENCH_HOST_IN. */
void bench_places_make(struct bench *bench);
void bench_places_release(struct bench *bench);

/* ---- bench_measure.c ------------------------------------------------------------------------ */

/* Wait for the stream. Returns DS_ACCEL_ERR_TIMEOUT if a signal was received before it or
 * meanwhile. */
int32_t bench_wait(struct bench *bench);

/* Measure a row: prepare, check, calibrate, take samples, finish. Returns BENCH_INTERRUPTED after a
 * signal; any other failure is stored in the row. */
int32_t bench_measure(struct bench *bench, struct bench_row *row);

/* ---- bench_progress.c: the bar, and Ctrl-C -------------------------------------------------- */

/* Record SIGINT, SIGTERM and SIGHUP from now on, unless they are ignored; the same signal kills the
 * process when it is received again. */
void bench_signals_catch(void);
/* The recorded signal; 0 if there is none. */
int bench_signal(void);
/* Restore the signal handlers, and raise the recorded signal, if there is one. */
void bench_signals_release(void);

/* Enable the progress bar on stderr if it is wanted, and stderr is a terminal that can show it. */
void bench_progress_begin(bool wanted);
void bench_progress_show(size_t done, size_t total, const char *label);
void bench_progress_end(void);
/* A log sink that removes the bar before the tool's own sink (its user_data) writes. */
void bench_progress_log(void *user_data, uint32_t level, const char *topic, const char *message);

/* ---- bench_report.c ------------------------------------------------------------------------- */

struct bench_report {
    const char *accelerator;
    struct ds_accel_device_identity identity;
    char device_name[128];
    const uint64_t *sizes_bytes;
    size_t size_count;
};

/* Write a string of JSON, without characters that a terminal interprets; bench_put_member() writes
 * a member: null if the string is empty. */
void bench_put_string(FILE *file, const char *string);
void bench_put_member(FILE *file, const char *name, const char *string);
/* Write a size with a unit: "4 KiB", "1000 B". */
void bench_format_size(uint64_t size_bytes, char *text, size_t text_size);
void bench_write_text(FILE *file, const struct bench *bench, const struct bench_report *report,
                      bool colour);
void bench_write_json(FILE *file, const struct bench *bench, const struct bench_report *report);

#endif
