/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The search of ds-accel bench io --tune for the settings with which a write and a read of the same
 * bytes take the least time.
 *
 *   1. Every setting of the grid once, briefly, with io_uring those that overlap events and do not
 *      submit singly; of a slow disk as many as the time allows, in random order.
 *   2. Three times: the better third once more, for longer. What was measured before still counts.
 *   3. Twice: the best one and its neighbours in the grid, switches included, in several laps.
 *
 * The order of each lap is random, so that a disk that becomes slower or faster meanwhile has the
 * same effect on all settings.
 */
#include "bench_io.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KIB ((uint64_t)1 << 10)
#define NS_PER_S UINT64_C(1000000000)
#define LEAST_CANDIDATES 4u
#define HALVINGS 3
#define ROUNDS 2 /* of neighbours */
#define LAPS 3u  /* in a round of neighbours */

static const uint64_t blocks[] = {256 * KIB,  512 * KIB,  1024 * KIB,
                                  2048 * KIB, 4096 * KIB, 8192 * KIB};
static const uint64_t depths[] = {2, 8, 32, 128};
static const uint64_t workers[] = {1, 2, 4, 8};

#define PLAIN_COUNT (COUNT(blocks) * COUNT(depths) * COUNT(workers))
#define MOST (PLAIN_COUNT + 2) /* and the defaults and the configured settings */

struct candidate {
    struct bench_io_settings settings;
    struct bench_io_sums sums;
    bool measured;
    bool unusable;
};

struct search {
    struct bench_io *io;
    struct candidate candidates[MOST];
    size_t count;
    uint64_t begin_ns, end_ns;
    uint64_t random;
    struct bench_io_search result;
};

bool bench_io_grid(uint32_t engine, size_t index, struct bench_io_settings *settings_out)
{
    size_t switches = index / PLAIN_COUNT;

    index %= PLAIN_COUNT;
    settings_out->block_bytes = blocks[index % COUNT(blocks)];
    settings_out->queue_depth = (uint32_t)depths[index / COUNT(blocks) % COUNT(depths)];
    settings_out->parallelism = (uint32_t)workers[index / COUNT(blocks) / COUNT(depths)];
    settings_out->single_submit = switches % 2 == 1;
    settings_out->overlap_events = switches / 2 == 1;
    return switches < (engine == DS_ACCEL_ASYNC_IO_ENGINE_IO_URING ? 4 : 1);
}

static uint64_t time_until(uint64_t end_ns)
{
    uint64_t now_ns = bench_io_now_ns();

    return end_ns > now_ns ? end_ns - now_ns : 0;
}

/* ---- candidates ----------------------------------------------------------------------------- */

static double score(const struct candidate *candidate)
{
    const struct bench_io_sums *sums = &candidate->sums;

    return candidate->unusable ? 0
                               : bench_io_both(bench_io_rate(sums, BENCH_IO_WRITE),
                                               bench_io_rate(sums, BENCH_IO_READ));
}

static int better_first(const void *left, const void *right)
{
    double a = score(left);
    double b = score(right);

    return (a < b) - (a > b);
}

static void rank(struct search *search)
{
    qsort(search->candidates, search->count, sizeof(search->candidates[0]), better_first);
}

static void add(struct search *search, const struct bench_io_settings *settings)
{
    for (size_t i = 0; i < search->count; i++) {
        if (bench_io_equal(&search->candidates[i].settings, settings)) {
            return;
        }
    }
    search->candidates[search->count++] = (struct candidate){.settings = *settings};
}

/* Shuffle the candidates from `first` on. */
static void shuffle(struct search *search, size_t first)
{
    for (size_t i = search->count; i-- > first + 1;) {
        size_t other;
        struct candidate candidate = search->candidates[i];

        search->random ^= search->random << 13;
        search->random ^= search->random >> 7;
        search->random ^= search->random << 17;
        other = first + search->random % (i + 1 - first);
        search->candidates[i] = search->candidates[other];
        search->candidates[other] = candidate;
    }
}

/* Measure each candidate for a time, the first `ordered` ones in their order and the others in
 * random order, until the end of the stage; a few in any case. */
static int32_t lap(struct search *search, size_t ordered, uint64_t time_ns, uint64_t end_ns,
                   const char *label)
{
    int32_t status = DS_ACCEL_OK;

    shuffle(search, ordered);
    for (size_t i = 0; i < search->count && status == DS_ACCEL_OK; i++) {
        struct candidate *candidate = &search->candidates[i];
        uint64_t now_ns = bench_io_now_ns();

        if (now_ns >= end_ns && search->result.measurements >= LEAST_CANDIDATES) {
            break;
        }
        bench_progress_show((size_t)((now_ns - search->begin_ns) / NS_PER_S),
                            (size_t)((search->end_ns - search->begin_ns) / NS_PER_S) + 1, label);
        search->result.candidates += !candidate->measured;
        candidate->measured = true;
        search->result.measurements++;
        status = bench_io_measure(search->io, &candidate->settings, time_ns, &candidate->sums);
        if (status == BENCH_IO_UNUSABLE) {
            candidate->unusable = true;
            status = DS_ACCEL_OK;
        }
    }
    return status;
}

/* ---- the stages ----------------------------------------------------------------------------- */

/* End of a stage that takes so many hundredths of the time that is left. */
static uint64_t stage_end(const struct search *search, uint64_t hundredths)
{
    return bench_io_now_ns() + time_until(search->end_ns) / 100 * hundredths;
}

/* The time of one measurement, if all candidates are measured in so many laps until the end. */
static uint64_t share(const struct search *search, uint64_t end_ns, uint64_t laps)
{
    return time_until(end_ns) / (BENCH_IO_WAYS * search->count * laps + 1);
}

static int32_t search_grid(struct search *search, uint64_t floor_ns)
{
    uint64_t end_ns = stage_end(search, 40);
    uint64_t most = time_until(end_ns) / (BENCH_IO_WAYS * floor_ns + 1);
    bool rings = search->io->engine == DS_ACCEL_ASYNC_IO_ENGINE_IO_URING;
    struct bench_io_settings settings;

    add(search, &bench_io_defaults);
    add(search, &search->io->configured);
    for (size_t i = 0; i < PLAIN_COUNT; i++) {
        bench_io_grid(search->io->engine, i, &settings);
        settings.overlap_events = rings;
        add(search, &settings);
    }
    shuffle(search, 2);
    if (most < search->count) {
        search->count = most < LEAST_CANDIDATES ? LEAST_CANDIDATES : most;
    }
    return lap(search, 0, share(search, end_ns, 1), end_ns, "s, searching the grid");
}

static int32_t halve(struct search *search)
{
    int32_t status = DS_ACCEL_OK;

    for (int i = 0; i < HALVINGS && status == DS_ACCEL_OK; i++) {
        uint64_t end_ns = stage_end(search, 25);

        rank(search);
        search->count = search->count > 3 * LEAST_CANDIDATES ? search->count / 3 : LEAST_CANDIDATES;
        status = lap(search, 0, share(search, end_ns, 1), end_ns, "s, comparing the better ones");
    }
    return status;
}

/* The next value of a list above or below a value; the value itself if there is none. */
static uint64_t step(const uint64_t *values, size_t count, uint64_t value, bool up)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t next = values[up ? i : count - 1 - i];

        if (up ? next > value : next < value) {
            return next;
        }
    }
    return value;
}

static void add_neighbours(struct search *search, const struct bench_io_settings *best)
{
    struct bench_io_settings next;

    for (int up = 0; up < 2; up++) {
        next = *best;
        next.block_bytes = step(blocks, COUNT(blocks), best->block_bytes, up);
        add(search, &next);
        next = *best;
        next.queue_depth = (uint32_t)step(depths, COUNT(depths), best->queue_depth, up);
        add(search, &next);
        next = *best;
        next.parallelism = (uint32_t)step(workers, COUNT(workers), best->parallelism, up);
        add(search, &next);
    }
    if (search->io->engine == DS_ACCEL_ASYNC_IO_ENGINE_IO_URING) {
        next = *best;
        next.single_submit = !best->single_submit;
        add(search, &next);
        next = *best;
        next.overlap_events = !best->overlap_events;
        add(search, &next);
    }
}

static int32_t climb(struct search *search)
{
    int32_t status = DS_ACCEL_OK;

    for (int i = 0; i < ROUNDS && status == DS_ACCEL_OK; i++) {
        uint64_t end_ns = stage_end(search, i + 1 < ROUNDS ? 50 : 100);
        struct bench_io_settings best;

        search->count = 2;
        best = search->candidates[0].settings;
        add_neighbours(search, &best);
        for (size_t j = 0; j < search->count; j++) { /* compare what is measured side by side */
            memset(&search->candidates[j].sums, 0, sizeof(search->candidates[j].sums));
        }
        for (unsigned j = 0; j < LAPS && status == DS_ACCEL_OK; j++) {
            /* If there is no time for all, the others must at least be compared with the best. */
            status = lap(search, j == 0, share(search, end_ns, LAPS - j), end_ns,
                         "s, measuring the best one's neighbours");
        }
        rank(search);
        if (score(&search->candidates[0]) == 0) { /* there was no time */
            search->candidates[0].settings = best;
        }
    }
    return status;
}

int32_t bench_io_search(struct bench_io *io, uint64_t floor_ns, uint64_t end_ns,
                        struct bench_io_search *search_out)
{
    struct search *search = calloc(1, sizeof(*search));
    int32_t status;

    if (search == NULL) {
        snprintf(io->failure, sizeof(io->failure), "no memory for the search");
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    search->io = io;
    search->random = UINT64_C(88172645463325252);
    search->begin_ns = bench_io_now_ns();
    search->end_ns = end_ns;
    status = search_grid(search, floor_ns);
    status = status == DS_ACCEL_OK ? halve(search) : status;
    rank(search);
    status = status == DS_ACCEL_OK ? climb(search) : status;
    search->result.best = search->candidates[0].settings;
    *search_out = search->result;
    free(search);
    return status;
}
