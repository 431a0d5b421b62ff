/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the files of the benchmark of ops; ops.c explains how they fit together. */
#ifndef DS_ACCEL_TESTS_BENCH_OPS_H
#define DS_ACCEL_TESTS_BENCH_OPS_H

#include "bench.h"
#include "limit.h"

#include <ds-accel/ops/op.h>

#define OPS_MAX_SIZES 8
#define OPS_MAX_THREADS 2
/* Ops use one thread for steps of fewer elements (ops/common/optimizer.c, ALONE). */
#define OPS_ALONE 65536
#define OPS_GOAL 1.05 /* time beside the limit's */

/* ---- ops_call.c: steps of the ops under test ------------------------------------------------- */

struct ops_op {
    const char *name;
    enum limit_formula formula;
    unsigned states;
    unsigned flops; /* of an element: a fused product counts as two, conversions as none */
    int32_t (*step)(const struct ds_accel_op *op, const struct ds_accel_optimizer_step *step,
                    struct ds_accel_error *error);
};

#define OPS_OPS 3
extern const struct ops_op ops_ops[OPS_OPS];

/* Load BUILD/lib/ds-accel/ops/<name>.so, which stays loaded. Exits if it cannot. */
const struct ds_accel_op *ops_load(const char *build, const char *name);

/* ---- ops_measure.c: one op, one combination of data types, one size, one number of threads -- */

struct ops_dtypes {
    const char *name;
    enum limit_dtype parameter;
    enum limit_dtype gradient;
    enum limit_dtype state;
    enum limit_dtype copy;
    bool stochastic;
};

#define OPS_DTYPES 9
extern const struct ops_dtypes ops_dtypes[OPS_DTYPES];

/* The memory of all arrays: four of floats, and one of 16-bit elements for the copy. */
struct ops_arena {
    char *base;
    size_t bytes;
    size_t elements;
};

/* Allocate and touch arrays of so many elements. Exits if it cannot. */
void ops_arena_create(struct ops_arena *arena, size_t elements);
void ops_arena_destroy(struct ops_arena *arena);
/* Return the bytes that arrays of so many elements need. */
size_t ops_arena_bytes(size_t elements);

/* Figures are millions of elements a second. */
struct ops_row {
    const struct ops_op *op;
    const struct ops_dtypes *dtypes;
    const char *path;       /* of the op */
    const char *limit_path; /* of the limits; SVE has none of its own and is measured beside neon */
    size_t elements;
    unsigned threads;
    double ours;
    double bytes;      /* the limit that moves the same bytes */
    double arithmetic; /* the limit that does the same arithmetic in the first cache */
    unsigned rounds;
};

/* Fill the arrays with numbers of these types. */
void ops_fill(const struct ops_arena *arena, const struct ops_dtypes *dtypes, size_t elements);
/* Measure ours and both limits, in turn. The arrays were filled. */
void ops_measure(const struct ops_arena *arena, const struct ds_accel_op *op,
                 const struct limit_set *set, struct ops_row *row);
/* Return the bytes of an element that a step reads and writes. */
unsigned ops_element_bytes(const struct ops_row *row);
/* Return the smaller limit, and the time of ours divided by that of this limit. */
double ops_limit(const struct ops_row *row);
double ops_ratio(const struct ops_row *row);

/* ---- ops_report.c, ops_roofline.c: table, JSON and SVG -------------------------------------- */

struct ops_torch {
    char name[32]; /* "foreach" or "single" */
    size_t elements;
    unsigned threads;
    double figure; /* millions of elements a second */
};

struct ops_memory {
    const struct ops_op *op;
    double peak_mib;   /* VmHWM while the op was measured */
    double arrays_mib; /* the part of it that the benchmark's arrays take */
};

struct ops_report {
    struct ops_row rows[OPS_OPS * OPS_DTYPES * OPS_MAX_SIZES * OPS_MAX_THREADS];
    size_t count;
    struct ops_torch torch[OPS_MAX_SIZES * OPS_MAX_THREADS * 2];
    size_t torch_count;
    char torch_version[64]; /* empty: torch was not measured */
    struct ops_memory memory[OPS_OPS];
    size_t memory_count;
    double arrays_mib; /* all arrays, and how much of them is in pages of 2 MiB */
    double huge_mib;
    double others;       /* the part of the processors' time that other programs took */
    char notes[16][256]; /* what was left out, and why */
    size_t note_count;
    struct bench_machine machine;
};

/* Add a sentence to the notes, and print it. */
void ops_note(struct ops_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Write a number of elements: 1e6, or all digits if it is no power of ten. */
void ops_format_elements(char *text, size_t size, size_t elements);
/* Print a row, with the header of its op before the first one. */
void ops_print_row(const struct ops_report *report, size_t index);
/* Print torch's figures beside ours, peak memory, and how many rows reach the goal. */
void ops_print_end(const struct ops_report *report);
/* Write dir/ops.json. */
void ops_write_json(const struct ops_report *report, const char *dir);
/* Write dir/ops.svg: a roofline for each op. */
void ops_write_svg(const struct ops_report *report, const char *dir);

#endif
