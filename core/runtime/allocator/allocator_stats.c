/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Statistics with exact peaks, without a cache line that two streams write.
 *
 * Every arena has its own statistics. The current total is their sum; the peak of the total cannot
 * be computed from the arenas' own peaks. Each arena therefore has a limit for each value, with
 * this invariant:
 *
 *     the sum of all limits <= the peak so far
 *
 * While every value stays within its arena's limit, the sum stays within the peak, and no further
 * check is needed. When a value is about to exceed its arena's limit, the thread takes all locks
 * and computes the sum. Every limit is then set to its arena's current value. If the sum is no new
 * peak, half of the difference between peak and sum is added to the limit of this arena, and the
 * other half, in equal parts, to the limits of all arenas. A program in its steady state exceeds no
 * limit.
 *
 * An operation is counted at one moment, just before it returns; its earlier changes of lists are
 * visible only within the arena. Segments are added and released under the allocator's lock, and
 * are counted there.
 */
#include "base/text.h"
#include "runtime/allocator/allocator.h"
#include "runtime/caching.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- all arenas at once --------------------------------------------------------------------- */

void ds_accel__arenas_lock(struct ds_accel__allocator *allocator)
{
    for (struct ds_accel__arena *arena = allocator->arenas; arena != NULL; arena = arena->next) {
        ds_accel__latch_take(&arena->latch);
    }
}

void ds_accel__arenas_unlock(struct ds_accel__allocator *allocator)
{
    for (struct ds_accel__arena *arena = allocator->arenas; arena != NULL; arena = arena->next) {
        ds_accel__latch_release(&arena->latch);
    }
}

void ds_accel__arenas_flush(struct ds_accel__allocator *allocator)
{
    for (struct ds_accel__arena *arena = allocator->arenas; arena != NULL; arena = arena->next) {
        ds_accel__arena_flush(arena);
    }
}

/* ---- peaks ---------------------------------------------------------------------------------- */

/* Update the peak and the arenas' limits for one statistic of one kind, as this file's first
 * comment describes. The caller holds the allocator's lock and all arena locks. */
static void balance(struct ds_accel__arena *arena, unsigned kind, unsigned lane)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    int64_t *peak = &allocator->peak[kind].lane[lane];
    int64_t sum = 0;
    int64_t slack;
    int64_t share;

    for (struct ds_accel__arena *each = allocator->arenas; each != NULL; each = each->next) {
        sum += ds_accel__figures_current(&each->figures, kind, lane);
    }
    if (sum > *peak) {
        *peak = sum;
    }
    slack = *peak - sum;
    assert(slack >= 0 && allocator->arena_count > 0);
    share = slack / 2 / allocator->arena_count;
    for (struct ds_accel__arena *each = allocator->arenas; each != NULL; each = each->next) {
        each->figures.limit[kind].lane[lane] =
            ds_accel__figures_current(&each->figures, kind, lane) + share;
    }
    arena->figures.limit[kind].lane[lane] += slack / 2;
}

/* Return a copy of the change in which the splits and the merges of one operation cancel each
 * other: only their difference remains. */
static struct ds_accel__change net(const struct ds_accel__change *change)
{
    struct ds_accel__change result = *change;

    for (unsigned i = DS_ACCEL__LANE_SPLIT; i <= DS_ACCEL__LANE_SPLIT_BYTES; i++) {
        int64_t difference = change->added.lane[i] - change->removed.lane[i];

        result.added.lane[i] = difference > 0 ? difference : 0;
        result.removed.lane[i] = difference < 0 ? -difference : 0;
    }
    return result;
}

void ds_accel__change_alloc(const struct ds_accel__block *block, struct ds_accel__change *change)
{
    int64_t size = (int64_t)block->size_bytes;

    change->added.lane[DS_ACCEL__LANE_ALLOCATION]++;
    change->added.lane[DS_ACCEL__LANE_ACTIVE]++;
    change->added.lane[DS_ACCEL__LANE_ALLOCATED_BYTES] += size;
    change->added.lane[DS_ACCEL__LANE_ACTIVE_BYTES] += size;
    change->added.lane[DS_ACCEL__LANE_REQUESTED_BYTES] += (int64_t)block->requested_bytes;
    change->added.lane[DS_ACCEL__LANE_OVERSIZE] += block->is_oversize;
}

void ds_accel__change_free(const struct ds_accel__block *block, bool stays_active,
                           struct ds_accel__change *change)
{
    int64_t size = (int64_t)block->size_bytes;

    change->removed.lane[DS_ACCEL__LANE_ALLOCATION]++;
    change->removed.lane[DS_ACCEL__LANE_ALLOCATED_BYTES] += size;
    change->removed.lane[DS_ACCEL__LANE_REQUESTED_BYTES] += (int64_t)block->requested_bytes;
    change->removed.lane[DS_ACCEL__LANE_OVERSIZE] += block->is_oversize;
    if (!stays_active) {
        change->removed.lane[DS_ACCEL__LANE_ACTIVE]++;
        change->removed.lane[DS_ACCEL__LANE_ACTIVE_BYTES] += size;
    }
}

/* Count a change of one kind. The caller holds the allocator's lock and all arena locks. */
static void count(struct ds_accel__arena *arena, uint32_t kind,
                  const struct ds_accel__change *change)
{
    static const unsigned sets = 2;
    const uint32_t kinds[] = {kind, DS_ACCEL__ALL};
    struct ds_accel__figures *figures = &arena->figures;

    for (unsigned i = 0; i < DS_ACCEL__LANE_COUNT; i++) {
        figures->total[kind].lane[i] += change->added.lane[i];
        figures->current[kind].lane[i] += change->added.lane[i] - change->removed.lane[i];
        /* A split is counted later than it happens, so these two values may be negative for a
         * while. */
        assert(i == DS_ACCEL__LANE_SPLIT || i == DS_ACCEL__LANE_SPLIT_BYTES ||
               figures->current[kind].lane[i] >= 0);
        for (unsigned k = 0; k < sets; k++) {
            if (ds_accel__figures_current(figures, kinds[k], i) >
                figures->limit[kinds[k]].lane[i]) {
                balance(arena, kinds[k], i);
            }
        }
    }
}

/* Set the block's state; if the state is PENDING, insert the block into the arena's list of pending
 * blocks. A block of NULL is ignored. The caller holds the arena's lock. */
static void enter(struct ds_accel__arena *arena, struct ds_accel__block *block,
                  enum ds_accel__block_state state)
{
    if (block == NULL) {
        return;
    }
    assert(block->state == DS_ACCEL__BLOCK_TAKEN && block->home == arena);
    if (state == DS_ACCEL__BLOCK_PENDING) {
        ds_accel__pending_push(arena, block);
    }
    __atomic_store_n(&block->state, state, __ATOMIC_RELEASE);
}

void ds_accel__figures_count(struct ds_accel__arena *arena, const struct ds_accel__change *changes)
{
    assert(ds_accel__latch_is_taken(&arena->latch));
    for (uint32_t kind = 0; kind < DS_ACCEL__KIND_COUNT; kind++) {
        struct ds_accel__change change = net(&changes[kind]);

        count(arena, kind, &change);
    }
}

void ds_accel__figures_settle(struct ds_accel__arena *arena, const struct ds_accel__change *changes,
                              struct ds_accel__block *block, enum ds_accel__block_state state)
{
    struct ds_accel__allocator *allocator = arena->allocator;

    pthread_mutex_lock(&allocator->lock);
    ds_accel__arenas_lock(allocator);
    for (uint32_t kind = 0; kind < DS_ACCEL__KIND_COUNT; kind++) {
        count(arena, kind, &changes[kind]);
    }
    enter(arena, block, state);
    ds_accel__arenas_unlock(allocator);
    pthread_mutex_unlock(&allocator->lock);
}

void ds_accel__figures_finish(struct ds_accel__arena *arena, const struct ds_accel__change *changes,
                              struct ds_accel__block *block, enum ds_accel__block_state state)
{
    struct ds_accel__change rest[DS_ACCEL__KIND_COUNT];
    bool is_done = true;

    assert(ds_accel__latch_is_taken(&arena->latch));
    for (uint32_t kind = 0; kind < DS_ACCEL__KIND_COUNT; kind++) {
        rest[kind] = net(&changes[kind]);
        if (ds_accel__figures_apply(&arena->figures, kind, &rest[kind])) {
            memset(&rest[kind], 0, sizeof(rest[kind]));
        } else {
            is_done = false;
        }
    }
    if (is_done) {
        enter(arena, block, state);
    }
    ds_accel__latch_release(&arena->latch);
    if (!is_done) {
        ds_accel__figures_settle(arena, rest, block, state);
    }
}

void ds_accel__figures_retire(struct ds_accel__arena *arena)
{
    struct ds_accel__allocator *allocator = arena->allocator;

    assert(arena->segments == NULL && arena->pending == NULL);
    for (unsigned kind = 0; kind < DS_ACCEL__KIND_COUNT; kind++) {
        for (unsigned i = 0; i < DS_ACCEL__LANE_COUNT; i++) {
            allocator->retired[kind].lane[i] += arena->figures.total[kind].lane[i];
        }
    }
    memset(&arena->figures, 0, sizeof(arena->figures));
}

/* ---- segments ------------------------------------------------------------------------------- */

void ds_accel__figure_add(struct ds_accel__figure *figure, int64_t amount)
{
    figure->current += amount;
    assert(figure->current >= 0);
    figure->total += amount > 0 ? amount : 0;
    if (figure->current > figure->peak) {
        figure->peak = figure->current;
    }
}

void ds_accel__figures_segment(struct ds_accel__allocator *allocator, uint32_t kind, int64_t count_,
                               int64_t bytes)
{
    uint64_t limit = allocator->options.max_split_bytes;

    ds_accel__figure_add(&allocator->segment_count[kind], count_);
    ds_accel__figure_add(&allocator->segment_count[DS_ACCEL__ALL], count_);
    ds_accel__figure_add(&allocator->segment_bytes[kind], bytes);
    ds_accel__figure_add(&allocator->segment_bytes[DS_ACCEL__ALL], bytes);
    if (limit != 0 && count_ != 0 && (uint64_t)(bytes < 0 ? -bytes : bytes) >= limit) {
        ds_accel__figure_add(&allocator->oversize_segments, count_);
    }
}

/* ---- by name -------------------------------------------------------------------------------- */

/* A copy of all statistics, made while all locks are held, so that the values agree with each
 * other. */
struct totals {
    struct ds_accel__figure lanes[DS_ACCEL__KIND_COUNT + 1][DS_ACCEL__LANE_COUNT];
    struct ds_accel__figure segment_count[DS_ACCEL__KIND_COUNT + 1];
    struct ds_accel__figure segment_bytes[DS_ACCEL__KIND_COUNT + 1];
    struct ds_accel__figure oversize_segments;
    int64_t plain[6];
};

static const char *const kind_names[] = {"small_pool", "large_pool", "all"};

static const struct {
    const char *name;
    enum ds_accel__lane lane;
} lane_names[] = {
    {"allocation", DS_ACCEL__LANE_ALLOCATION},
    {"active", DS_ACCEL__LANE_ACTIVE},
    {"inactive_split", DS_ACCEL__LANE_SPLIT},
    {"allocated_bytes", DS_ACCEL__LANE_ALLOCATED_BYTES},
    {"active_bytes", DS_ACCEL__LANE_ACTIVE_BYTES},
    {"inactive_split_bytes", DS_ACCEL__LANE_SPLIT_BYTES},
    {"requested_bytes", DS_ACCEL__LANE_REQUESTED_BYTES},
};

static const char *const plain_names[] = {"num_alloc_retries",    "num_ooms",
                                          "num_sync_all_streams", "num_device_alloc",
                                          "num_device_free",      "max_split_size"};

/* Copy all statistics. The caller holds the allocator's lock and all arena locks. */
static void gather(const struct ds_accel__allocator *allocator, struct totals *totals)
{
    memset(totals, 0, sizeof(*totals));
    for (unsigned kind = 0; kind <= DS_ACCEL__ALL; kind++) {
        totals->segment_count[kind] = allocator->segment_count[kind];
        totals->segment_bytes[kind] = allocator->segment_bytes[kind];
        for (unsigned i = 0; i < DS_ACCEL__LANE_COUNT; i++) {
            struct ds_accel__figure *figure = &totals->lanes[kind][i];

            figure->peak = allocator->peak[kind].lane[i];
            for (unsigned k = 0; k < DS_ACCEL__KIND_COUNT; k++) {
                figure->total += k == kind || kind == DS_ACCEL__ALL ? allocator->retired[k].lane[i]
                                                                    : 0;
            }
            for (const struct ds_accel__arena *arena = allocator->arenas; arena != NULL;
                 arena = arena->next) {
                figure->current += ds_accel__figures_current(&arena->figures, kind, i);
                for (unsigned k = 0; k < DS_ACCEL__KIND_COUNT; k++) {
                    figure->total +=
                        k == kind || kind == DS_ACCEL__ALL ? arena->figures.total[k].lane[i] : 0;
                }
            }
        }
    }
    totals->oversize_segments = allocator->oversize_segments;
    totals->plain[0] = allocator->retry_count;
    totals->plain[1] = allocator->failure_count;
    totals->plain[2] = allocator->sync_count;
    totals->plain[3] = allocator->device_alloc_count;
    totals->plain[4] = allocator->device_free_count;
    totals->plain[5] =
        allocator->options.max_split_bytes == 0 ? -1 : (int64_t)allocator->options.max_split_bytes;
}

static bool visit_figure(const char *name, const char *kind, const struct ds_accel__figure *figure,
                         ds_accel__stat_visit_t visit, void *user_data)
{
    const struct {
        const char *name;
        int64_t value;
    } values[] = {
        {"current", figure->current},
        {"peak", figure->peak},
        {"allocated", figure->total},
        {"freed", figure->total - figure->current},
    };
    char key[96];

    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        snprintf(key, sizeof(key), "%s%s%s.%s", name, kind != NULL ? "." : "",
                 kind != NULL ? kind : "", values[i].name);
        if (!visit(user_data, key, values[i].value)) {
            return false;
        }
    }
    return true;
}

static void visit_all(const struct totals *totals, ds_accel__stat_visit_t visit, void *user_data)
{
    bool go_on = true;

    for (unsigned kind = 0; kind <= DS_ACCEL__ALL && go_on; kind++) {
        for (size_t i = 0; i < ARRAY_SIZE(lane_names) && go_on; i++) {
            go_on = visit_figure(lane_names[i].name, kind_names[kind],
                                 &totals->lanes[kind][lane_names[i].lane], visit, user_data);
        }
        go_on = go_on && visit_figure("segment", kind_names[kind], &totals->segment_count[kind],
                                      visit, user_data);
        go_on = go_on && visit_figure("reserved_bytes", kind_names[kind],
                                      &totals->segment_bytes[kind], visit, user_data);
    }
    go_on = go_on &&
            visit_figure("oversize_allocations", NULL,
                         &totals->lanes[DS_ACCEL__ALL][DS_ACCEL__LANE_OVERSIZE], visit, user_data);
    go_on = go_on &&
            visit_figure("oversize_segments", NULL, &totals->oversize_segments, visit, user_data);
    for (size_t i = 0; i < ARRAY_SIZE(plain_names) && go_on; i++) {
        go_on = visit(user_data, plain_names[i], totals->plain[i]);
    }
}

void ds_accel__allocator_visit_stats(struct ds_accel__allocator *allocator,
                                     ds_accel__stat_visit_t visit, void *user_data)
{
    struct totals totals;

    pthread_mutex_lock(&allocator->lock);
    ds_accel__arenas_lock(allocator);
    gather(allocator, &totals);
    ds_accel__arenas_unlock(allocator);
    pthread_mutex_unlock(&allocator->lock);
    visit_all(&totals, visit, user_data);
}

void ds_accel__allocator_reset_peaks(struct ds_accel__allocator *allocator, uint32_t which)
{
    pthread_mutex_lock(&allocator->lock);
    ds_accel__arenas_lock(allocator);
    for (unsigned kind = 0; kind <= DS_ACCEL__ALL; kind++) {
        for (unsigned i = 0; i < DS_ACCEL__LANE_COUNT && (which & DS_ACCEL_PEAK_ALLOCATED) != 0;
             i++) {
            int64_t sum = 0;

            for (struct ds_accel__arena *arena = allocator->arenas; arena != NULL;
                 arena = arena->next) {
                sum += ds_accel__figures_current(&arena->figures, kind, i);
                arena->figures.limit[kind].lane[i] =
                    ds_accel__figures_current(&arena->figures, kind, i);
            }
            allocator->peak[kind].lane[i] = sum;
        }
        if ((which & DS_ACCEL_PEAK_RESERVED) != 0) {
            allocator->segment_count[kind].peak = allocator->segment_count[kind].current;
            allocator->segment_bytes[kind].peak = allocator->segment_bytes[kind].current;
            allocator->oversize_segments.peak = allocator->oversize_segments.current;
        }
    }
    ds_accel__arenas_unlock(allocator);
    pthread_mutex_unlock(&allocator->lock);
}

/* ---- verifying ------------------------------------------------------------------------------ */

static bool sizes_add_up(const struct ds_accel__segment *segment)
{
    uint64_t address = segment->address;
    uint64_t mapped = 0;

    for (const struct ds_accel__block *block = segment->first; block != NULL; block = block->next) {
        bool is_alone = block->state == DS_ACCEL__BLOCK_FREE ||
                        block->state == DS_ACCEL__BLOCK_UNMAPPED;

        if (block->address != address || block->segment != segment ||
            block->home != segment->home ||
            (block->next == NULL ? segment->last != block : block->next->previous != block) ||
            (is_alone && block->next != NULL && block->next->state == block->state)) {
            return false;
        }
        address += block->size_bytes;
        mapped += block->state != DS_ACCEL__BLOCK_UNMAPPED ? block->size_bytes : 0;
    }
    return mapped == segment->size_bytes &&
           address == segment->address + (segment->reserved_bytes != 0 ? segment->reserved_bytes
                                                                       : segment->size_bytes);
}

static void add_block(const struct ds_accel__block *block, struct ds_accel__lanes *lanes)
{
    bool is_live = block->state == DS_ACCEL__BLOCK_LIVE;
    bool is_active = is_live || block->state == DS_ACCEL__BLOCK_PENDING;
    bool is_split = block->state == DS_ACCEL__BLOCK_FREE && ds_accel__block_counts_as_split(block);
    int64_t size = (int64_t)block->size_bytes;

    lanes->lane[DS_ACCEL__LANE_ALLOCATION] += is_live;
    lanes->lane[DS_ACCEL__LANE_ALLOCATED_BYTES] += is_live ? size : 0;
    lanes->lane[DS_ACCEL__LANE_REQUESTED_BYTES] += is_live ? (int64_t)block->requested_bytes : 0;
    lanes->lane[DS_ACCEL__LANE_ACTIVE] += is_active;
    lanes->lane[DS_ACCEL__LANE_ACTIVE_BYTES] += is_active ? size : 0;
    lanes->lane[DS_ACCEL__LANE_SPLIT] += is_split;
    lanes->lane[DS_ACCEL__LANE_SPLIT_BYTES] += is_split ? size : 0;
    lanes->lane[DS_ACCEL__LANE_OVERSIZE] += is_live && block->is_oversize;
}

/* Compare the arena's statistics with sums over its blocks. False: they differ, a value exceeds its
 * limit, or the blocks of a segment do not follow each other; problem describes the defect. */
static bool figures_agree(const struct ds_accel__arena *arena, char *problem, size_t problem_size)
{
    struct ds_accel__lanes found[DS_ACCEL__KIND_COUNT + 1];

    memset(found, 0, sizeof(found));
    for (const struct ds_accel__segment *segment = arena->segments; segment != NULL;
         segment = segment->next) {
        if (!sizes_add_up(segment)) {
            snprintf(problem, problem_size, "the blocks of segment %llx do not follow each other",
                     (unsigned long long)segment->address);
            return false;
        }
        for (const struct ds_accel__block *block = segment->first; block != NULL;
             block = block->next) {
            add_block(block, &found[segment->kind]);
            add_block(block, &found[DS_ACCEL__ALL]);
        }
    }
    for (unsigned kind = 0; kind <= DS_ACCEL__ALL; kind++) {
        for (unsigned i = 0; i < DS_ACCEL__LANE_COUNT; i++) {
            int64_t current = ds_accel__figures_current(&arena->figures, kind, i);

            if (current != found[kind].lane[i] || current > arena->figures.limit[kind].lane[i]) {
                snprintf(problem, problem_size,
                         "figure %u of kind %u is %lld with limit %lld, found %lld", i, kind,
                         (long long)current, (long long)arena->figures.limit[kind].lane[i],
                         (long long)found[kind].lane[i]);
                return false;
            }
        }
    }
    return true;
}

/* Check the invariant of this file's first comment: the sum of all limits is at most the peak. */
static bool limits_hold(const struct ds_accel__allocator *allocator)
{
    for (unsigned kind = 0; kind <= DS_ACCEL__ALL; kind++) {
        for (unsigned i = 0; i < DS_ACCEL__LANE_COUNT; i++) {
            int64_t sum = 0;

            for (const struct ds_accel__arena *arena = allocator->arenas; arena != NULL;
                 arena = arena->next) {
                sum += arena->figures.limit[kind].lane[i];
            }
            if (sum > allocator->peak[kind].lane[i]) {
                return false;
            }
        }
    }
    return true;
}

void ds_accel__allocator_verify(struct ds_accel__allocator *allocator, char *problem,
                                size_t problem_size)
{
    bool is_fine = true;

    problem[0] = '\0';
    pthread_mutex_lock(&allocator->lock);
    ds_accel__arenas_lock(allocator);
    ds_accel__arenas_flush(allocator);
    for (const struct ds_accel__arena *arena = allocator->arenas; arena != NULL && is_fine;
         arena = arena->next) {
        is_fine = figures_agree(arena, problem, problem_size);
    }
    if (is_fine && !limits_hold(allocator)) {
        snprintf(problem, problem_size, "the limits of a figure exceed its peak");
    }
    ds_accel__arenas_unlock(allocator);
    pthread_mutex_unlock(&allocator->lock);
}
