/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The free memory of one arena, and the choice of a block for a request. As in torch, the smallest
 * block that fits is chosen, and among blocks of equal size the block at the lowest address.
 * Programs are tuned to that choice, and its waste is known, so no optimisation here may change the
 * choice.
 *
 * The lists are divided into size classes: powers of two, each divided into sixteen parts. A bit is
 * set for each class that is not empty, so that two bit scans find the next class. Each class keeps
 * its blocks in a tree ordered by size and address, whose shape depends on a hash of the address (a
 * treap). Blocks in the lists have no free neighbour: blocks are merged before they are inserted.
 *
 * Most programs free their latest allocation and then request the same size again. Such a pair does
 * not touch the lists. Every change of the free memory gets a new stamp, and a block keeps the
 * stamps before and after its own allocation. If the current stamp equals the stamp after the
 * allocation when the block is freed, merging the block would restore exactly the state before the
 * allocation. Instead the block is set aside unmerged, in state "undone", and the old stamp is
 * restored. The next request of the same size would choose this block from the merged memory too,
 * so it gets the block at once. Any other request, and any inspection of the lists, first merges
 * all undone blocks. Statistics count an undone block as already merged.
 *
 * The caller of every function holds the arena's lock. The functions add the changes of the
 * statistics to the parameter changes, an array with one element for each kind of segment.
 */
#include "base/text.h"
#include "runtime/allocator/allocator.h"
#include "runtime/caching.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void count_split(struct ds_accel__change *changes, const struct ds_accel__block *block,
                        bool is_added)
{
    struct ds_accel__change *change = &changes[block->kind];
    struct ds_accel__lanes *lanes = is_added ? &change->added : &change->removed;

    if (ds_accel__block_counts_as_split(block)) {
        lanes->lane[DS_ACCEL__LANE_SPLIT]++;
        lanes->lane[DS_ACCEL__LANE_SPLIT_BYTES] += (int64_t)block->size_bytes;
    }
}

/* ---- the tree of one size class -------------------------------------------------------------- */

/* In a block of the tree, link_previous is the subtree of the blocks before it (smaller, or of
 * equal size at a lower address), and link_next the subtree of the blocks after it. */

static uint64_t rank_of(const struct ds_accel__block *block)
{
    return (block->address >> DS_ACCEL__UNIT_SHIFT) * UINT64_C(0x9e3779b97f4a7c15);
}

static bool is_below(const struct ds_accel__block *block, uint64_t size_bytes, uint64_t address)
{
    return block->size_bytes != size_bytes ? block->size_bytes < size_bytes
                                           : block->address < address;
}

static void insert(struct ds_accel__block **place, struct ds_accel__block *block)
{
    struct ds_accel__block **below = &block->link_previous;
    struct ds_accel__block **above = &block->link_next;
    struct ds_accel__block *rest;

    while (*place != NULL && rank_of(*place) > rank_of(block)) {
        place = is_below(*place, block->size_bytes, block->address) ? &(*place)->link_next
                                                                    : &(*place)->link_previous;
    }
    rest = *place;
    *place = block;
    /* split the old subtree into blocks below and blocks above the new block */
    while (rest != NULL) {
        if (is_below(rest, block->size_bytes, block->address)) {
            *below = rest;
            below = &rest->link_next;
            rest = rest->link_next;
        } else {
            *above = rest;
            above = &rest->link_previous;
            rest = rest->link_previous;
        }
    }
    *below = NULL;
    *above = NULL;
}

static void extract(struct ds_accel__block **place, struct ds_accel__block *block)
{
    struct ds_accel__block *below = block->link_previous;
    struct ds_accel__block *above = block->link_next;

    while (*place != block) {
        assert(*place != NULL); /* the block is in the tree of its class */
        place = is_below(*place, block->size_bytes, block->address) ? &(*place)->link_next
                                                                    : &(*place)->link_previous;
    }
    while (below != NULL && above != NULL) {
        if (rank_of(below) > rank_of(above)) {
            *place = below;
            place = &below->link_next;
            below = below->link_next;
        } else {
            *place = above;
            place = &above->link_previous;
            above = above->link_previous;
        }
    }
    *place = below != NULL ? below : above;
}

/* Return the tree's first block, in order of size and then of address, that is not before the given
 * size and address. NULL: none. */
static struct ds_accel__block *find_from(struct ds_accel__block *root, uint64_t size_bytes,
                                         uint64_t address)
{
    struct ds_accel__block *found = NULL;

    while (root != NULL) {
        if (is_below(root, size_bytes, address)) {
            root = root->link_next;
        } else {
            found = root;
            root = root->link_previous;
        }
    }
    return found;
}

/* ---- the lists ------------------------------------------------------------------------------ */

/* Find the size class that contains a size: the power of two (level), and which of the equal parts
 * of its range (sublevel). Sizes above all classes belong to the last class. */
static void classify(uint64_t size_bytes, uint32_t *level_out, uint32_t *sublevel_out)
{
    uint64_t units = size_bytes >> DS_ACCEL__UNIT_SHIFT;

    if (units < DS_ACCEL__SUBLEVEL_COUNT) {
        *level_out = 0;
        *sublevel_out = (uint32_t)units;
    } else {
        uint32_t top = 63 - (uint32_t)__builtin_clzll(units);

        *level_out = top - DS_ACCEL__SUBLEVEL_SHIFT + 1;
        *sublevel_out = (uint32_t)(units >> (top - DS_ACCEL__SUBLEVEL_SHIFT)) &
                        (DS_ACCEL__SUBLEVEL_COUNT - 1);
    }
    if (*level_out >= DS_ACCEL__LEVEL_COUNT) {
        *level_out = DS_ACCEL__LEVEL_COUNT - 1;
        *sublevel_out = DS_ACCEL__SUBLEVEL_COUNT - 1;
    }
}

static void link_block(struct ds_accel__arena *arena, struct ds_accel__block *block)
{
    struct ds_accel__lists *lists = &arena->lists[block->kind];
    uint32_t level;
    uint32_t sublevel;

    assert(block->kind < DS_ACCEL__KIND_COUNT && block->size_bytes > 0);
    assert(block->uses == NULL && block->waits == NULL);
    classify(block->size_bytes, &level, &sublevel);
    insert(&lists->roots[level][sublevel], block);
    lists->levels |= UINT64_C(1) << level;
    lists->sublevels[level] |= 1u << sublevel;
    __atomic_store_n(&block->state, DS_ACCEL__BLOCK_FREE, __ATOMIC_RELAXED);
}

static void unlink_block(struct ds_accel__arena *arena, struct ds_accel__block *block,
                         struct ds_accel__change *changes)
{
    struct ds_accel__lists *lists = &arena->lists[block->kind];
    uint32_t level;
    uint32_t sublevel;

    assert(ds_accel__latch_is_taken(&arena->latch));
    assert(block->state == DS_ACCEL__BLOCK_FREE && block->home == arena);
    count_split(changes, block, false);
    classify(block->size_bytes, &level, &sublevel);
    assert((lists->levels >> level & 1) != 0 && (lists->sublevels[level] >> sublevel & 1) != 0);
    extract(&lists->roots[level][sublevel], block);
    if (lists->roots[level][sublevel] == NULL) {
        lists->sublevels[level] &= ~(1u << sublevel);
        if (lists->sublevels[level] == 0) {
            lists->levels &= ~(UINT64_C(1) << level);
        }
    }
    __atomic_store_n(&block->state, DS_ACCEL__BLOCK_TAKEN, __ATOMIC_RELAXED);
}

void ds_accel__block_unlink(struct ds_accel__arena *arena, struct ds_accel__block *block,
                            struct ds_accel__change *changes)
{
    unlink_block(arena, block, changes);
    ds_accel__arena_renew(arena);
}

void ds_accel__block_join(struct ds_accel__arena *arena, struct ds_accel__block *left,
                          struct ds_accel__block *right)
{
    assert(left->next == right && right->previous == left && left->segment == right->segment);
    assert(left->address + left->size_bytes == right->address);
    left->size_bytes += right->size_bytes;
    left->next = right->next;
    if (right->next != NULL) {
        right->next->previous = left;
    } else {
        left->segment->last = left;
    }
    ds_accel__index_remove(&arena->allocator->index, right);
}

/* Merge the block with its free neighbours and insert the result into the lists; the arena's stamp
 * does not change. */
static struct ds_accel__block *merge(struct ds_accel__arena *arena, struct ds_accel__block *block,
                                     struct ds_accel__change *changes)
{
    assert(ds_accel__latch_is_taken(&arena->latch) && block->home == arena);
    assert(block->state == DS_ACCEL__BLOCK_TAKEN || block->state == DS_ACCEL__BLOCK_UNDONE);
    if (block->next != NULL && block->next->state == DS_ACCEL__BLOCK_FREE) {
        unlink_block(arena, block->next, changes);
        ds_accel__block_join(arena, block, block->next);
    }
    if (block->previous != NULL && block->previous->state == DS_ACCEL__BLOCK_FREE) {
        struct ds_accel__block *left = block->previous;

        unlink_block(arena, left, changes);
        ds_accel__block_join(arena, left, block);
        block = left;
    }
    assert(block->next == NULL || block->next->state != DS_ACCEL__BLOCK_FREE);
    assert(block->previous == NULL || block->previous->state != DS_ACCEL__BLOCK_FREE);
    if (!ds_accel__block_is_split(block)) {
        block->segment->idle_since =
            __atomic_add_fetch(&arena->allocator->clock, 1, __ATOMIC_RELAXED);
        block->segment->idle_request =
            __atomic_load_n(&arena->allocator->request_count, __ATOMIC_RELAXED);
    }
    count_split(changes, block, true);
    link_block(arena, block);
    return block;
}

void ds_accel__arena_flush(struct ds_accel__arena *arena)
{
    struct ds_accel__change unused[DS_ACCEL__KIND_COUNT]; /* the block already counts as merged */

    if (arena->undone == NULL) {
        return;
    }
    memset(unused, 0, sizeof(unused));
    while (arena->undone != NULL) {
        struct ds_accel__block *block = arena->undone;

        arena->undone = block->link_next;
        merge(arena, block, unused);
    }
}

struct ds_accel__block *ds_accel__block_release(struct ds_accel__arena *arena,
                                                struct ds_accel__block *block,
                                                struct ds_accel__change *changes)
{
    ds_accel__arena_flush(arena);
    ds_accel__arena_renew(arena);
    return merge(arena, block, changes);
}

/* ---- pending blocks ------------------------------------------------------------------------- */

void ds_accel__pending_push(struct ds_accel__arena *arena, struct ds_accel__block *block)
{
    assert(ds_accel__latch_is_taken(&arena->latch) && block->home == arena);
    assert(block->state == DS_ACCEL__BLOCK_TAKEN);
    assert(block->waits != NULL || block->is_deferred != DS_ACCEL__DEFERRED_NOT);
    block->link_previous = NULL;
    block->link_next = arena->pending;
    if (arena->pending != NULL) {
        arena->pending->link_previous = block;
    }
    arena->pending = block;
    __atomic_store_n(&block->state, DS_ACCEL__BLOCK_PENDING, __ATOMIC_RELAXED);
}

void ds_accel__pending_unlink(struct ds_accel__arena *arena, struct ds_accel__block *block)
{
    assert(ds_accel__latch_is_taken(&arena->latch));
    assert(block->state == DS_ACCEL__BLOCK_PENDING && block->home == arena);
    assert((block->link_previous == NULL) == (arena->pending == block));
    if (block->link_previous != NULL) {
        block->link_previous->link_next = block->link_next;
    } else {
        arena->pending = block->link_next;
    }
    if (block->link_next != NULL) {
        block->link_next->link_previous = block->link_previous;
    }
    __atomic_store_n(&block->state, DS_ACCEL__BLOCK_TAKEN, __ATOMIC_RELAXED);
}

/* ---- cutting -------------------------------------------------------------------------------- */

static uint64_t align_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) & ~(align - 1);
}

bool ds_accel__block_holds(const struct ds_accel__block *block, uint64_t fit_bytes,
                           uint64_t align_bytes)
{
    uint64_t front = align_up(block->address, align_bytes) - block->address;

    return block->size_bytes >= fit_bytes && block->size_bytes - fit_bytes >= front;
}

struct ds_accel__block *ds_accel__block_divide(struct ds_accel__arena *arena,
                                               struct ds_accel__block *block, uint64_t size_bytes)
{
    struct ds_accel__block *rest =
        ds_accel__index_add(&arena->allocator->index, block->address + size_bytes);

    assert(ds_accel__latch_is_taken(&arena->latch));
    assert(size_bytes > 0 && size_bytes < block->size_bytes);

    if (rest == NULL) {
        return NULL;
    }
    rest->size_bytes = block->size_bytes - size_bytes;
    rest->kind = block->kind;
    rest->segment = block->segment;
    rest->user = arena;
    __atomic_store_n(&rest->home, arena, __ATOMIC_RELAXED);
    rest->previous = block;
    rest->next = block->next;
    if (block->next != NULL) {
        block->next->previous = rest;
    } else {
        block->segment->last = rest;
    }
    block->next = rest;
    block->size_bytes = size_bytes;
    return rest;
}

/* Return the remainder of a block to its arena: as a free block, or, if waits is not NULL, as a
 * pending block with the waits of the whole block. */
static void put_back(struct ds_accel__arena *arena, struct ds_accel__block *block,
                     struct ds_accel__waits *waits, struct ds_accel__change *changes)
{
    struct ds_accel__change *change = &changes[block->kind];

    if (waits == NULL) {
        ds_accel__block_release(arena, block, changes);
        return;
    }
    ds_accel__waits_get(arena->allocator, waits);
    block->waits = waits;
    change->added.lane[DS_ACCEL__LANE_ACTIVE]++;
    change->added.lane[DS_ACCEL__LANE_ACTIVE_BYTES] += (int64_t)block->size_bytes;
    ds_accel__pending_push(arena, block);
}

/* Whether the remainder of a block, after the part for a request, becomes a separate block: it is
 * large enough, and the requested part is not so large that max_split_bytes forbids a split. */
static bool is_worth_cutting(const struct ds_accel__arena *arena,
                             const struct ds_accel__block *block, uint64_t rest_bytes)
{
    const struct ds_accel__allocator_options *options = &arena->allocator->options;

    if (block->kind == DS_ACCEL__SMALL || block->segment->reserved_bytes != 0) {
        return rest_bytes >= DS_ACCEL__UNIT;
    }
    return rest_bytes > options->small_limit_bytes &&
           (options->max_split_bytes == 0 ||
            block->size_bytes - rest_bytes < options->max_split_bytes);
}

/*
 * Record how a block of final size was made, and give the free memory a new stamp. before: the
 * stamp before the cut. was_split: the block was already a part of a split segment before the cut.
 * is_cut: a remainder was cut off.
 */
static void note_origin(struct ds_accel__arena *arena, struct ds_accel__block *block,
                        uint32_t before, bool was_split, bool is_cut)
{
    assert(block->state == DS_ACCEL__BLOCK_TAKEN);
    if (block->segment->reserved_bytes != 0 || (!was_split && !is_cut)) {
        block->origin = DS_ACCEL__ORIGIN_UNCOUNTED;
    } else if (!was_split) {
        block->origin = DS_ACCEL__ORIGIN_SEGMENT_CUT;
    } else {
        block->origin = is_cut ? DS_ACCEL__ORIGIN_SPLIT_CUT : DS_ACCEL__ORIGIN_SPLIT_WHOLE;
    }
    ds_accel__arena_renew(arena);
    block->before = before;
    block->after = arena->stamp;
}

struct ds_accel__block *ds_accel__block_cut(struct ds_accel__arena *arena,
                                            struct ds_accel__block *block, uint64_t fit_bytes,
                                            uint64_t align_bytes, struct ds_accel__waits *waits,
                                            struct ds_accel__change *changes)
{
    uint64_t front = align_up(block->address, align_bytes) - block->address;
    uint32_t before = arena->stamp;
    bool was_split = ds_accel__block_is_split(block);
    bool is_cut = false;
    struct ds_accel__block *rest;

    assert(ds_accel__block_holds(block, fit_bytes, align_bytes));
    if (front > 0) {
        rest = ds_accel__block_divide(arena, block, front);
        put_back(arena, block, waits, changes);
        if (rest == NULL) {
            ds_accel__no_memory();
            return NULL;
        }
        block = rest;
    }
    if (is_worth_cutting(arena, block, block->size_bytes - fit_bytes)) {
        rest = ds_accel__block_divide(arena, block, fit_bytes);
        is_cut = rest != NULL;
        if (is_cut) {
            put_back(arena, rest, waits, changes);
        }
    }
    note_origin(arena, block, before, was_split, is_cut);
    if (front > 0 || waits != NULL) {
        block->after = 0;
    }
    return block;
}

/* ---- taking --------------------------------------------------------------------------------- */

/* Whether the block fits the request and may serve it. A block that max_split_bytes forbids to
 * split serves only requests that are also of at least that size and leave little of it unused. */
static bool is_suitable(const struct ds_accel__arena *arena, const struct ds_accel__block *block,
                        uint64_t fit_bytes, uint64_t align_bytes)
{
    const struct ds_accel__allocator_options *options = &arena->allocator->options;
    uint64_t limit = options->max_split_bytes;

    if (!ds_accel__block_holds(block, fit_bytes, align_bytes)) {
        return false;
    }
    /* in a growable segment, blocks of any size are split */
    if (limit == 0 || block->kind == DS_ACCEL__SMALL || block->size_bytes < limit ||
        block->segment->reserved_bytes != 0) {
        return true;
    }
    return fit_bytes >= limit && block->size_bytes - fit_bytes < options->medium_segment_bytes;
}

/* Find the next class that is not empty, beginning with the given class. Return its tree, and its
 * position in *level and *sublevel; NULL: there is none. */
static struct ds_accel__block *next_class(const struct ds_accel__lists *lists, uint32_t *level,
                                          uint32_t *sublevel)
{
    uint32_t here = *level < DS_ACCEL__LEVEL_COUNT && *sublevel < DS_ACCEL__SUBLEVEL_COUNT
                        ? lists->sublevels[*level] & (~0u << *sublevel)
                        : 0;

    if (here == 0) {
        uint64_t above = *level + 1 < 64 ? lists->levels & (~UINT64_C(0) << (*level + 1)) : 0;

        if (above == 0) {
            return NULL;
        }
        *level = (uint32_t)__builtin_ctzll(above);
        here = lists->sublevels[*level];
        assert(here != 0);
    }
    *sublevel = (uint32_t)__builtin_ctz(here);
    /* the bit of a class is set only if the class has blocks */
    assert(lists->roots[*level][*sublevel] != NULL);
    return lists->roots[*level][*sublevel];
}

/* Return the first block at or after this size and address, ordered by size, then by address; NULL:
 * there is none. */
static struct ds_accel__block *find_next(const struct ds_accel__lists *lists, uint64_t size_bytes,
                                         uint64_t address)
{
    struct ds_accel__block *root;
    uint32_t level;
    uint32_t sublevel;

    classify(size_bytes, &level, &sublevel);
    while ((root = next_class(lists, &level, &sublevel)) != NULL) {
        struct ds_accel__block *found = find_from(root, size_bytes, address);

        if (found != NULL) {
            return found;
        }
        sublevel++;
    }
    return NULL;
}

static struct ds_accel__block *find_suitable(const struct ds_accel__arena *arena,
                                             const struct ds_accel__lists *lists,
                                             struct ds_accel__block *block, uint64_t fit_bytes,
                                             uint64_t align_bytes)
{
    while (block != NULL && !is_suitable(arena, block, fit_bytes, align_bytes)) {
        block = find_next(lists, block->size_bytes, block->address + 1);
    }
    return block;
}

/* Return the size that a block can reach by growing into the unmapped block after it. */
static uint64_t reach_of(const struct ds_accel__block *block)
{
    return block->size_bytes +
           (block->next != NULL && block->next->state == DS_ACCEL__BLOCK_UNMAPPED
                ? block->next->size_bytes
                : 0);
}

/* Return the free block to use for a request; NULL: none. The first block that fits is chosen, but
 * while it is in a growable segment and the next block that fits can grow to a smaller size, the
 * search goes on with that block. So a block with much unmapped memory after it is used late. */
static struct ds_accel__block *search(const struct ds_accel__arena *arena, uint32_t kind,
                                      uint64_t fit_bytes, uint64_t align_bytes)
{
    const struct ds_accel__lists *lists = &arena->lists[kind];
    struct ds_accel__block *block =
        find_suitable(arena, lists, find_next(lists, fit_bytes, 0), fit_bytes, align_bytes);

    while (block != NULL && block->segment->reserved_bytes != 0) {
        struct ds_accel__block *other =
            find_suitable(arena, lists, find_next(lists, block->size_bytes, block->address + 1),
                          fit_bytes, align_bytes);

        if (other == NULL || reach_of(other) >= reach_of(block)) {
            break;
        }
        block = other;
    }
    return block;
}

struct ds_accel__block *ds_accel__block_take(struct ds_accel__arena *arena, uint32_t kind,
                                             uint64_t fit_bytes, uint64_t align_bytes,
                                             struct ds_accel__change *changes)
{
    struct ds_accel__block *block;

    ds_accel__arena_flush(arena);
    block = search(arena, kind, fit_bytes, align_bytes);
    if (block == NULL) {
        return NULL;
    }
    unlink_block(arena, block, changes);
    assert(block->kind == kind && block->size_bytes >= fit_bytes);
    return ds_accel__block_cut(arena, block, fit_bytes, align_bytes, NULL, changes);
}

/* ---- free bytes ------------------------------------------------------------------------------ */

void ds_accel__arena_free_space(const struct ds_accel__arena *arena, uint64_t *free_bytes,
                                uint64_t *largest_bytes)
{
    for (const struct ds_accel__segment *segment = arena->segments; segment != NULL;
         segment = segment->next) {
        for (const struct ds_accel__block *block = segment->first; block != NULL;
             block = block->next) {
            if (block->state == DS_ACCEL__BLOCK_FREE) {
                *free_bytes += block->size_bytes;
                *largest_bytes = block->size_bytes > *largest_bytes ? block->size_bytes
                                                                    : *largest_bytes;
            }
        }
    }
}
