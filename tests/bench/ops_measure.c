/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Ours, the loop that moves bytes, and the loop that only computes run in turn (A B C A B C), since
 * virtual machines drift by tens of per cent within minutes. A figure is the best of its samples:
 * other programs only make a sample slower. The loop that moves bytes uses the same arrays as ours.
 * Both loops are divided among the threads of the same OpenMP runtime.
 */
#include "clock.h"
#include "ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Several calls are timed together until they take so long. */
#define SAMPLE_NS 2e6
#define ROUNDS 15u
/* A call that takes longer than this is measured less often. */
#define LONG_NS 30e6
#define LONG_ROUNDS 5u
#define MAX_REPEATS 100000u

/* Elements of the loop that computes: all its arrays fit into half of a first cache of 32 KiB. */
#define COMPUTED (6 * LIMIT_UNIT)
/* Bytes of an array of that loop. The odd line keeps its arrays from the same sets of the cache. */
#define COMPUTED_BYTES (COMPUTED * 4 + 192)
#define ARRAYS 5

/*
 * A load is delayed if its address equals that of a store just before it in the lower 12 bits. Each
 * array is therefore shifted by 13 cache lines against the one before it.
 */
#define SHIFT 832u
#define HUGE_PAGE ((size_t)2 << 20)

/* A pragma of OpenMP, if the compiler has it; else there is one thread. */
#ifdef _OPENMP
#define OMP(text) _Pragma(#text)
#else
#define OMP(text)
#endif

const struct ops_dtypes ops_dtypes[OPS_DTYPES] = {
    {"fp32", LIMIT_FLOAT, LIMIT_FLOAT, LIMIT_FLOAT, LIMIT_NONE, false},
    {"fp32, copy in bf16", LIMIT_FLOAT, LIMIT_FLOAT, LIMIT_FLOAT, LIMIT_BFLOAT, false},
    {"fp32, copy in fp16", LIMIT_FLOAT, LIMIT_FLOAT, LIMIT_FLOAT, LIMIT_HALF, false},
    {"bf16, states fp32", LIMIT_BFLOAT, LIMIT_BFLOAT, LIMIT_FLOAT, LIMIT_NONE, false},
    {"bf16, states fp32, stochastic", LIMIT_BFLOAT, LIMIT_BFLOAT, LIMIT_FLOAT, LIMIT_NONE, true},
    {"bf16", LIMIT_BFLOAT, LIMIT_BFLOAT, LIMIT_BFLOAT, LIMIT_NONE, false},
    {"bf16, stochastic", LIMIT_BFLOAT, LIMIT_BFLOAT, LIMIT_BFLOAT, LIMIT_NONE, true},
    {"fp16, states fp32", LIMIT_HALF, LIMIT_HALF, LIMIT_FLOAT, LIMIT_NONE, false},
    {"fp16", LIMIT_HALF, LIMIT_HALF, LIMIT_HALF, LIMIT_NONE, false},
};

/* ---- arrays --------------------------------------------------------------------------------- */

static size_t float_array_bytes(size_t elements)
{
    return (elements * 4 + SHIFT + 4095) & ~(size_t)4095;
}

size_t ops_arena_bytes(size_t elements)
{
    return 4 * float_array_bytes(elements) + elements * 2 + ARRAYS * SHIFT + HUGE_PAGE;
}

/* Pages of 2 MiB, where the system has them for such memory. */
void ops_arena_create(struct ops_arena *arena, size_t elements)
{
    arena->elements = elements;
    arena->bytes = (ops_arena_bytes(elements) + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    arena->base =
        mmap(NULL, arena->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena->base == MAP_FAILED) {
        bench_die("%zu MiB for arrays: %s", arena->bytes >> 20, strerror(errno));
    }
    (void)madvise(arena->base, arena->bytes, MADV_HUGEPAGE);
    memset(arena->base, 0, arena->bytes);
}

void ops_arena_destroy(struct ops_arena *arena)
{
    munmap(arena->base, arena->bytes);
    arena->base = NULL;
}

static char *array_of(const struct ops_arena *arena, unsigned index)
{
    return arena->base + index * (float_array_bytes(arena->elements) + SHIFT);
}

static size_t bytes_of(enum limit_dtype dtype)
{
    return dtype == LIMIT_NONE ? 0 : dtype == LIMIT_FLOAT ? 4 : 2;
}

/* Numbers from 0.25 to 1. No step makes them subnormal, infinite or NaN. */
static void fill(char *array, enum limit_dtype dtype, size_t elements)
{
    static const uint16_t halves[4] = {0x3400, 0x3800, 0x3A00, 0x3BFF};
    static const uint16_t bfloats[4] = {0x3E80, 0x3F00, 0x3F40, 0x3F7F};
    static const float floats[4] = {0.25F, 0.5F, 0.75F, 0.9999F};
    size_t size = bytes_of(dtype);
    const char *pattern = dtype == LIMIT_FLOAT  ? (const char *)floats
                          : dtype == LIMIT_HALF ? (const char *)halves
                                                : (const char *)bfloats;

    OMP(omp parallel for schedule(static))
    for (size_t i = 0; i < elements; i++) {
        memcpy(array + i * size, pattern + (i * 7 >> 2) % 4 * size, size);
    }
}

void ops_fill(const struct ops_arena *arena, const struct ops_dtypes *dtypes, size_t elements)
{
    fill(array_of(arena, 0), dtypes->parameter, elements);
    fill(array_of(arena, 1), dtypes->gradient, elements);
    fill(array_of(arena, 2), dtypes->state, elements);
    fill(array_of(arena, 3), dtypes->state, elements);
}

/* ---- contestants ---------------------------------------------------------------------------- */

enum contestant {
    OURS,
    BYTES,
    BYTES_NON_TEMPORAL,
    ARITHMETIC,
    CONTESTANTS
};

struct contest {
    const struct ds_accel_op *op;
    const struct limit_set *set;
    const struct ops_row *row;
    struct limit_streams streams;
    uint64_t step;
};

static uint32_t dtype_of(enum limit_dtype dtype)
{
    switch (dtype) {
    case LIMIT_FLOAT:
        return DS_ACCEL_DTYPE_FLOAT32;
    case LIMIT_HALF:
        return DS_ACCEL_DTYPE_FLOAT16;
    case LIMIT_BFLOAT:
        return DS_ACCEL_DTYPE_BFLOAT16;
    default:
        return 0;
    }
}

static void run_ours(struct contest *contest)
{
    const struct ops_dtypes *dtypes = contest->row->dtypes;
    const struct limit_streams *s = &contest->streams;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_optimizer_tensor tensor = {
        .count = contest->row->elements,
        .parameter = s->parameter,
        .gradient = s->gradient,
        .state = {s->state[0], s->state[1]},
        .copy = s->copy,
        .parameter_dtype = dtype_of(dtypes->parameter),
        .gradient_dtype = dtype_of(dtypes->gradient),
        .state_dtype = dtype_of(dtypes->state),
        .copy_dtype = dtype_of(dtypes->copy),
    };
    struct ds_accel_optimizer_step step = {
        .flags = dtypes->stochastic ? DS_ACCEL_OPTIMIZER_STOCHASTIC : 0,
        .tensors = &tensor,
        .tensor_count = 1,
        .tensor_bytes = sizeof(tensor),
        .threads = contest->row->threads,
        .step = ++contest->step,
        .learning_rate = 1e-5,
        .gradient_scale = 1,
        .seed = 42,
    };

    if (contest->row->op->step(contest->op, &step, &error) != DS_ACCEL_OK) {
        bench_die("%s", error.message);
    }
}

/* Return the part of the streams that begins at an element. */
static struct limit_streams part_of(const struct limit_streams *whole, size_t from, size_t count)
{
    struct limit_streams part = *whole;

    part.parameter += from * bytes_of(whole->parameter_dtype);
    part.gradient += from * bytes_of(whole->gradient_dtype);
    part.state[0] += from * bytes_of(whole->state_dtype);
    if (whole->state[1] != NULL) {
        part.state[1] += from * bytes_of(whole->state_dtype);
    }
    if (whole->copy != NULL) {
        part.copy += from * bytes_of(whole->copy_dtype);
    }
    part.count = count;
    return part;
}

/* Elements that both limits handle: whole units for each thread. */
static size_t moved_elements(const struct ops_row *row)
{
    return row->elements / (LIMIT_UNIT * row->threads) * (LIMIT_UNIT * row->threads);
}

static volatile uint64_t zero; /* the compiler must not know it */
static volatile uint64_t seen;

static void move_part(const struct contest *contest, unsigned thread, bool non_temporal)
{
    size_t each = moved_elements(contest->row) / contest->row->threads;
    struct limit_streams part = part_of(&contest->streams, thread * each, each);

    seen = contest->set->move(&part, non_temporal, zero);
}

static void run_bytes(const struct contest *contest, bool non_temporal)
{
    if (contest->row->threads == 1) {
        move_part(contest, 0, non_temporal);
        return;
    }
    OMP(omp parallel for schedule(static) num_threads(contest->row->threads))
    for (unsigned thread = 0; thread < contest->row->threads; thread++) {
        move_part(contest, thread, non_temporal);
    }
}

/* Elements that the loop that computes handles in one call. */
static size_t computed_elements(const struct ops_row *row)
{
    size_t most = (size_t)COMPUTED * 512 * row->threads;

    return row->elements < most ? moved_elements(row) : most;
}

/* Compute a thread's share in blocks that are always the same memory. */
static void compute_part(const struct contest *contest)
{
    static _Thread_local char memory[ARRAYS][COMPUTED_BYTES] __attribute__((aligned(64)));
    static _Thread_local const struct ops_dtypes *filled;
    const struct ops_dtypes *dtypes = contest->row->dtypes;
    struct limit_streams block = contest->streams;
    size_t left = computed_elements(contest->row) / contest->row->threads;

    block.parameter = memory[0];
    block.gradient = memory[1];
    block.state[0] = memory[2];
    block.state[1] = block.state[1] != NULL ? memory[3] : NULL;
    block.copy = block.copy != NULL ? memory[4] : NULL;
    if (filled != dtypes) { /* in the first call, which is not timed */
        fill(memory[0], dtypes->parameter, COMPUTED);
        fill(memory[1], dtypes->gradient, COMPUTED);
        fill(memory[2], dtypes->state, COMPUTED);
        fill(memory[3], dtypes->state, COMPUTED);
        filled = dtypes;
    }
    while (left > 0) {
        block.count = left < COMPUTED ? left : COMPUTED;
        contest->set->compute(&block, contest->row->op->formula, dtypes->stochastic);
        left -= block.count;
    }
}

static void run_arithmetic(const struct contest *contest)
{
    if (contest->row->threads == 1) {
        compute_part(contest);
        return;
    }
    OMP(omp parallel num_threads(contest->row->threads))
    compute_part(contest);
}

/* Run a contestant once. Return how many elements it handled. */
static size_t run(struct contest *contest, enum contestant contestant)
{
    switch (contestant) {
    case OURS:
        run_ours(contest);
        return contest->row->elements;
    case BYTES:
    case BYTES_NON_TEMPORAL:
        run_bytes(contest, contestant == BYTES_NON_TEMPORAL);
        return moved_elements(contest->row);
    default:
        run_arithmetic(contest);
        return computed_elements(contest->row);
    }
}

/* ---- samples -------------------------------------------------------------------------------- */

static bool takes_part(const struct ops_row *row, enum contestant contestant)
{
    return contestant != BYTES_NON_TEMPORAL || row->dtypes->copy != LIMIT_NONE;
}

/* Return millions of elements a second. */
static double sample(struct contest *contest, enum contestant contestant, unsigned repeats)
{
    uint64_t start = now_ns();
    size_t elements = 0;

    for (unsigned i = 0; i < repeats; i++) {
        elements += run(contest, contestant);
    }
    return (double)elements * 1e3 / elapsed_ns(start);
}

/* Run a contestant until its memory and threads are ready. Return how often it runs in a sample,
 * and its time. */
static unsigned warm_up(struct contest *contest, enum contestant contestant, double *ns)
{
    uint64_t start = now_ns();

    run(contest, contestant);
    *ns = elapsed_ns(start);
    if (*ns < LONG_NS) { /* the first call of a short one is much slower than the next */
        start = now_ns();
        run(contest, contestant);
        *ns = elapsed_ns(start);
    }
    return *ns > SAMPLE_NS                 ? 1
           : *ns * MAX_REPEATS < SAMPLE_NS ? MAX_REPEATS
                                           : (unsigned)(SAMPLE_NS / *ns) + 1;
}

void ops_measure(const struct ops_arena *arena, const struct ds_accel_op *op,
                 const struct limit_set *set, struct ops_row *row)
{
    const struct ops_dtypes *dtypes = row->dtypes;
    struct contest contest = {
        .op = op,
        .set = set,
        .row = row,
        .streams =
            {
                .parameter = array_of(arena, 0),
                .gradient = array_of(arena, 1),
                .state = {array_of(arena, 2), row->op->states > 1 ? array_of(arena, 3) : NULL},
                .copy = dtypes->copy != LIMIT_NONE ? array_of(arena, 4) : NULL,
                .parameter_dtype = dtypes->parameter,
                .gradient_dtype = dtypes->gradient,
                .state_dtype = dtypes->state,
                .copy_dtype = dtypes->copy,
            },
    };
    double best[CONTESTANTS] = {0};
    unsigned repeats[CONTESTANTS] = {0};
    double ns[CONTESTANTS] = {0};

    for (int i = 0; i < CONTESTANTS; i++) {
        if (takes_part(row, i)) {
            repeats[i] = warm_up(&contest, i, &ns[i]);
        }
    }
    row->rounds = ns[OURS] > LONG_NS ? LONG_ROUNDS : ROUNDS;
    for (unsigned round = 0; round < row->rounds; round++) {
        for (int i = 0; i < CONTESTANTS; i++) {
            double figure = takes_part(row, i) ? sample(&contest, i, repeats[i]) : 0;

            best[i] = figure > best[i] ? figure : best[i];
        }
    }
    row->ours = best[OURS];
    row->bytes = best[BYTES] > best[BYTES_NON_TEMPORAL] ? best[BYTES] : best[BYTES_NON_TEMPORAL];
    row->arithmetic = best[ARITHMETIC];
}

/* ---- figures from a row --------------------------------------------------------------------- */

unsigned ops_element_bytes(const struct ops_row *row)
{
    const struct ops_dtypes *dtypes = row->dtypes;

    return (unsigned)(2 * bytes_of(dtypes->parameter) + bytes_of(dtypes->gradient) +
                      (size_t)2 * row->op->states * bytes_of(dtypes->state) +
                      bytes_of(dtypes->copy));
}

double ops_limit(const struct ops_row *row)
{
    return row->bytes < row->arithmetic ? row->bytes : row->arithmetic;
}

double ops_ratio(const struct ops_row *row)
{
    return ops_limit(row) / row->ours;
}
