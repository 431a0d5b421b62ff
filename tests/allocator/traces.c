/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Sequences of allocations like those of programs, on a small scale: training with and without
 * irregular sizes, inference, and sequences made to fragment memory. The seed determines every
 * number.
 */
#include "traces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define NOTHING UINT32_MAX
#define HELD_LIMIT 1024u

/* The state of a generator. */
struct maker {
    struct trace *trace;
    uint64_t random;
    uint32_t held[HELD_LIMIT]; /* block numbers; NOTHING: none */
    unsigned held_count;
};

/* xorshift64*. Return a number from 0 up to, but not including, the limit. */
static uint64_t pick(struct maker *maker, uint64_t limit)
{
    maker->random ^= maker->random >> 12;
    maker->random ^= maker->random << 25;
    maker->random ^= maker->random >> 27;
    return (maker->random * UINT64_C(2685821657736338717) >> 11) % limit;
}

static uint64_t between(struct maker *maker, uint64_t low, uint64_t high)
{
    return low + pick(maker, high - low + 1);
}

static void add_step(struct trace *trace, struct trace_step step)
{
    if (trace->count == trace->capacity) {
        trace->capacity = trace->capacity != 0 ? trace->capacity * 2 : 1024;
        trace->steps = realloc(trace->steps, trace->capacity * sizeof(step));
        if (trace->steps == NULL) {
            perror("traces");
            exit(2);
        }
    }
    trace->steps[trace->count++] = step;
}

static uint32_t take(struct maker *maker, uint64_t size_bytes, unsigned stream)
{
    uint32_t block = maker->trace->block_count++;

    add_step(maker->trace, (struct trace_step){size_bytes, block, stream, 0});
    return block;
}

static void give(struct maker *maker, uint32_t block)
{
    if (block != NOTHING) {
        add_step(maker->trace, (struct trace_step){0, block, 0, 0});
    }
}

/* Allocate a block and free it at once. */
static void pass(struct maker *maker, uint64_t size_bytes, unsigned stream)
{
    give(maker, take(maker, size_bytes, stream));
}

static void hold(struct maker *maker, uint32_t block)
{
    maker->held[maker->held_count++] = block;
}

/* Free the held blocks, the last first. */
static void give_held(struct maker *maker, unsigned keep)
{
    while (maker->held_count > keep) {
        give(maker, maker->held[--maker->held_count]);
    }
}

/* ---- training ------------------------------------------------------------------------------- */

#define LAYERS 24u

/* Run one layer after another, then backwards with gradients; the first step creates the
 * optimizer's states. */
static void train_mlp(struct maker *maker)
{
    unsigned layers = (unsigned)between(maker, 4, 16);
    uint64_t batch = between(maker, 16, 256);
    uint64_t width[LAYERS + 1];
    uint32_t gradients[LAYERS];

    for (unsigned i = 0; i <= layers; i++) {
        width[i] = between(maker, 4, 32) * 64;
    }
    for (unsigned i = 0; i < layers; i++) {
        hold(maker, take(maker, width[i] * width[i + 1] * 4, 0));
        hold(maker, take(maker, width[i + 1] * 4, 0));
    }
    for (unsigned step = 0; step < 6; step++) {
        unsigned kept = maker->held_count;

        for (unsigned i = 0; i < layers; i++) {
            hold(maker, take(maker, batch * width[i + 1] * 4, 0));
            hold(maker, take(maker, batch * width[i + 1], 0));
        }
        for (unsigned i = layers; i-- > 0;) {
            gradients[i] = take(maker, width[i] * width[i + 1] * 4, 0);
            pass(maker, batch * width[i] * 4, 0);
            give_held(maker, kept + 2 * i);
        }
        for (unsigned i = 0; i < layers; i++) {
            if (step == 0) {
                hold(maker, take(maker, width[i] * width[i + 1] * 4, 0));
                hold(maker, take(maker, width[i] * width[i + 1] * 4, 0));
            }
            pass(maker, width[i] * width[i + 1] * 4, 0);
            give(maker, gradients[i]);
        }
    }
}

/* Allocate and hold the activations of one layer of a language model. */
static void attend(struct maker *maker, uint64_t tokens, uint64_t width, uint64_t heads)
{
    uint32_t scores;

    hold(maker, take(maker, tokens * width * 3 * 2, 0));
    scores = take(maker, tokens * tokens * heads * 2, 0);
    hold(maker, take(maker, tokens * tokens * heads * 2, 0));
    give(maker, scores);
    hold(maker, take(maker, tokens * width * 2, 0));
    hold(maker, take(maker, tokens * width * 4 * 2, 0));
    pass(maker, tokens * width * 4 * 2, 0);
    hold(maker, take(maker, tokens * width * 2, 0));
}

#define HELD_PER_LAYER 5u

static void train_language(struct maker *maker, bool varies, bool is_checkpointed)
{
    unsigned layers = (unsigned)between(maker, 3, 8);
    uint64_t width = between(maker, 4, 16) * 64;
    uint64_t heads = between(maker, 4, 12);
    uint64_t longest = between(maker, 4, 20) * 64;
    uint32_t gradients[LAYERS];

    for (unsigned i = 0; i < layers; i++) {
        hold(maker, take(maker, width * width * 12 * 2, 0));
        gradients[i] = NOTHING;
    }
    for (unsigned step = 0; step < 6; step++) {
        uint64_t tokens = varies ? between(maker, 32, longest) : longest;
        unsigned kept = maker->held_count;
        uint32_t logits;

        for (unsigned i = 0; i < layers; i++) {
            unsigned inner = maker->held_count;

            attend(maker, tokens, width, heads);
            if (is_checkpointed) { /* keep only the layer's input */
                give_held(maker, inner);
                hold(maker, take(maker, tokens * width * 2, 0));
            }
        }
        logits = take(maker, tokens * between(maker, 4, 8) * 4 * KIB, 0);
        for (unsigned i = layers; i-- > 0;) {
            unsigned inner = kept + i * (is_checkpointed ? 1 : HELD_PER_LAYER);

            if (is_checkpointed) {
                attend(maker, tokens, width, heads);
            }
            pass(maker, tokens * tokens * heads * 2, 0);
            pass(maker, tokens * width * 4 * 2, 0);
            give_held(maker, inner);
            if (gradients[i] == NOTHING || varies) {
                give(maker, gradients[i]);
                gradients[i] = take(maker, width * width * 12 * 2, 0);
            }
        }
        give(maker, logits);
    }
}

static void train_transformer(struct maker *maker)
{
    train_language(maker, false, false);
}

/* Train with another length in each step; with some seeds, activations are computed again instead
 * of kept. */
static void train_lengths(struct maker *maker)
{
    train_language(maker, true, pick(maker, 2) == 0);
}

/* Reduce buckets of gradients on a second stream while the first stream continues. */
static void train_overlap(struct maker *maker)
{
    unsigned layers = (unsigned)between(maker, 6, 20);
    uint64_t size[LAYERS];
    uint32_t buckets[2] = {NOTHING, NOTHING};

    for (unsigned i = 0; i < layers; i++) {
        size[i] = between(maker, 64, 6000) * KIB;
        hold(maker, take(maker, size[i], 0));
    }
    for (unsigned step = 0; step < 8; step++) {
        unsigned kept = maker->held_count;

        for (unsigned i = 0; i < layers; i++) {
            hold(maker, take(maker, size[i] * between(maker, 1, 3), 0));
        }
        for (unsigned i = layers; i-- > 0;) {
            uint32_t gradient = take(maker, size[i], 0);

            give_held(maker, kept + i);
            give(maker, buckets[i % 2]);
            buckets[i % 2] = take(maker, size[i] + between(maker, 0, 2) * MIB, 1);
            give(maker, gradient);
        }
    }
}

/* Gather parameters ahead on a second stream, scatter gradients on a third. */
static void train_zero(struct maker *maker)
{
    unsigned layers = (unsigned)between(maker, 6, 16);
    uint64_t size[LAYERS];

    for (unsigned i = 0; i < layers; i++) {
        size[i] = between(maker, 1, 40) * 512 * KIB + between(maker, 0, 1000);
        hold(maker, take(maker, size[i] / 8 + 1, 0));
    }
    for (unsigned step = 0; step < 8; step++) {
        unsigned kept = maker->held_count;
        uint32_t gathered = take(maker, size[0], 1);

        for (unsigned i = 0; i < layers; i++) {
            uint32_t ahead = i + 1 < layers ? take(maker, size[i + 1], 1) : NOTHING;

            hold(maker, take(maker, size[i] / 4 + between(maker, 1, 64) * KIB, 0));
            give(maker, gathered);
            gathered = ahead;
        }
        for (unsigned i = layers; i-- > 0;) {
            uint32_t again = take(maker, size[i], 1);
            uint32_t gradient = take(maker, size[i], 0);
            uint32_t scattered = take(maker, size[i] / 8 + 1, 2);

            give_held(maker, kept + i);
            give(maker, gradient);
            give(maker, again);
            give(maker, scattered);
        }
    }
}

/* ---- inference ------------------------------------------------------------------------------ */

/* Run batches of all sizes; the last few results are kept for a while. */
static void infer_batches(struct maker *maker)
{
    uint64_t width = between(maker, 8, 64) * 16;
    uint32_t answers[4] = {NOTHING, NOTHING, NOTHING, NOTHING};

    for (unsigned i = 0; i < 12; i++) {
        hold(maker, take(maker, width * width * between(maker, 1, 4) * 2, 0));
    }
    for (unsigned step = 0; step < 60; step++) {
        uint64_t batch = between(maker, 1, 512);
        uint32_t before = take(maker, batch * width * 4, 0);

        for (unsigned i = 0; i < 8; i++) {
            uint32_t after = take(maker, batch * width * between(maker, 1, 16), 0);

            pass(maker, batch * width * 2, 0);
            give(maker, before);
            before = after;
        }
        give(maker, answers[step % 4]);
        answers[step % 4] = before;
    }
}

/* Grow caches of keys and values by copying; their sequences begin and finish at any time. */
static void infer_cache(struct maker *maker)
{
    uint64_t token = between(maker, 8, 64) * KIB;
    uint32_t caches[24];
    uint64_t lengths[24];

    for (unsigned i = 0; i < 24; i++) {
        caches[i] = NOTHING;
        lengths[i] = 0;
    }
    for (unsigned step = 0; step < 700; step++) {
        unsigned i = (unsigned)pick(maker, 24);

        if (caches[i] != NOTHING && pick(maker, 12) == 0) {
            give(maker, caches[i]);
            caches[i] = NOTHING;
            lengths[i] = 0;
        } else {
            uint32_t longer;

            lengths[i] += lengths[i] == 0 ? between(maker, 8, 200) : between(maker, 1, 16);
            longer = take(maker, lengths[i] * token, 0);
            give(maker, caches[i]);
            caches[i] = longer;
        }
        pass(maker, between(maker, 1, 24) * token, 0);
    }
}

/* Serve requests on four streams, in random order. */
static void serve_streams(struct maker *maker)
{
    uint32_t kept[4][6];

    memset(kept, 0xff, sizeof(kept));
    for (unsigned step = 0; step < 900; step++) {
        unsigned stream = (unsigned)pick(maker, 4);
        unsigned place = (unsigned)pick(maker, 6);
        uint64_t size = pick(maker, 3) == 0 ? between(maker, 1, 1200) * KIB
                                            : between(maker, 1, 20) * MIB;

        pass(maker, size / 2 + 1, stream);
        give(maker, kept[stream][place]);
        kept[stream][place] = take(maker, size, stream);
    }
}

/* ---- hard sequences ------------------------------------------------------------------------- */

/* Allocate or free at random places; size() returns the size of an allocation. */
static void churn(struct maker *maker, unsigned steps, unsigned live, unsigned streams,
                  uint64_t (*size)(struct maker *maker))
{
    for (unsigned i = 0; i < live; i++) {
        hold(maker, NOTHING);
    }
    for (unsigned step = 0; step < steps; step++) {
        unsigned place = (unsigned)pick(maker, live);

        if (maker->held[place] != NOTHING) {
            give(maker, maker->held[place]);
            maker->held[place] = NOTHING;
        } else {
            maker->held[place] = take(maker, size(maker), (unsigned)pick(maker, streams));
        }
    }
}

static uint64_t small_size(struct maker *maker)
{
    return between(maker, 1, 1) << between(maker, 4, 20);
}

static void hostile_small(struct maker *maker)
{
    churn(maker, 3000, 400, 1, small_size);
}

/* Return a size from 512 bytes to 64 MiB; all orders of magnitude are equally frequent. */
static uint64_t any_size(struct maker *maker)
{
    uint64_t floor = UINT64_C(1) << between(maker, 9, 25);

    return floor + pick(maker, floor);
}

static void hostile_random(struct maker *maker)
{
    churn(maker, 1600, 60, 2, any_size);
}

/* Return a size near one at which the allocator's rules change. */
static uint64_t edge_size(struct maker *maker)
{
    static const uint64_t edges[] = {MIB, 2 * MIB, 10 * MIB, 12 * MIB, 20 * MIB, 22 * MIB};
    uint64_t edge = edges[pick(maker, 6)];

    return edge - 600 * KIB + pick(maker, 1200 * KIB);
}

static void hostile_edges(struct maker *maker)
{
    churn(maker, 1500, 40, 3, edge_size);
}

/* Free every other block of many (a comb), then request slightly more than the size of the gaps. */
static void hostile_comb(struct maker *maker)
{
    uint64_t size = between(maker, 100, 5000) * KIB;

    for (unsigned round = 0; round < 8; round++) {
        unsigned kept = maker->held_count;
        uint32_t teeth[40];

        for (unsigned i = 0; i < 40; i++) {
            teeth[i] = take(maker, size, 0);
        }
        for (unsigned i = 0; i < 40; i += 2) {
            give(maker, teeth[i]);
        }
        size += size / between(maker, 4, 40) + 512;
        for (unsigned i = 0; i < 10; i++) {
            hold(maker, take(maker, size, 0));
        }
        for (unsigned i = 1; i < 40; i += 2) {
            give(maker, teeth[i]);
        }
        give_held(maker, kept + (unsigned)between(maker, 0, 6));
    }
}

/* ---- generators ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*make)(struct maker *maker);
} generators[TRACE_GENERATORS] = {
    {"train mlp", train_mlp},         {"train transformer", train_transformer},
    {"train lengths", train_lengths}, {"train overlap", train_overlap},
    {"train zero", train_zero},       {"infer batches", infer_batches},
    {"infer cache", infer_cache},     {"serve streams", serve_streams},
    {"hostile small", hostile_small}, {"hostile random", hostile_random},
    {"hostile edges", hostile_edges}, {"hostile comb", hostile_comb},
};

const char *trace_generator_name(unsigned generator)
{
    return generators[generator].name;
}

/* Compute the live bytes after each step, and their peak. */
static void find_live(struct trace *trace)
{
    uint64_t *sizes = calloc((size_t)trace->block_count + 1, sizeof(*sizes));
    uint64_t live = 0;

    if (sizes == NULL) {
        perror("traces");
        exit(2);
    }
    for (size_t i = 0; i < trace->count; i++) {
        struct trace_step *step = &trace->steps[i];
        uint64_t size = (step->size_bytes + 511) / 512 * 512;

        live += size - (size == 0 ? sizes[step->block] : 0);
        sizes[step->block] = size;
        step->live_bytes = live;
        if (live > trace->live_peak_bytes) {
            trace->live_peak_bytes = live;
        }
    }
    free(sizes);
}

void trace_generate(unsigned generator, uint64_t seed, struct trace *trace)
{
    static struct maker maker;

    memset(trace, 0, sizeof(*trace));
    memset(&maker, 0, sizeof(maker));
    maker.trace = trace;
    maker.random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + generator;
    for (unsigned i = 0; i < 8; i++) {
        (void)pick(&maker, 2); /* makes similar seeds produce different numbers */
    }
    generators[generator].make(&maker);
    find_live(trace);
}

/* ---- traces from a file --------------------------------------------------------------------- */

static bool read_line(const char *line, struct trace *trace)
{
    unsigned long long number;
    unsigned stream = 0;
    char behind;

    if (line[0] == '#' || line[0] == '\n') {
        return true;
    }
    if (line[0] == '-') {
        if (sscanf(line + 1, "%llu %c", &number, &behind) != 1 || number >= trace->block_count) {
            return false;
        }
        add_step(trace, (struct trace_step){0, (uint32_t)number, 0, 0});
        return true;
    }
    if (sscanf(line, "%llu %u", &number, &stream) < 1 || number == 0 || stream > 3) {
        return false;
    }
    add_step(trace, (struct trace_step){number, trace->block_count++, stream, 0});
    return true;
}

void trace_read(const char *path, struct trace *trace)
{
    FILE *file = fopen(path, "r");
    char line[128];
    unsigned number = 0;

    memset(trace, 0, sizeof(*trace));
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        number++;
        if (!read_line(line, trace)) {
            fprintf(stderr, "%s:%u: neither a size nor a block\n", path, number);
            exit(2);
        }
    }
    fclose(file);
    find_live(trace);
}

void trace_clear(struct trace *trace)
{
    free(trace->steps);
    memset(trace, 0, sizeof(*trace));
}
