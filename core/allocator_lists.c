/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The free memory of one arena. What the program gives back goes first into a quick bin, by the
 * size that it was cut for, and from there straight to the next request of that size: most programs
 * ask for the same sizes again and again. Only a request that no bin answers, and no free list,
 * empties the bins into the lists.
 *
 * The lists are those of a two-level segregated fit: sizes fall into powers of two and sixteenths
 * of them, a bit tells which of these classes hold anything, and so the smallest class that surely
 * fits is found by two bit scans. The first few of the class below, which may fit, are looked at
 * before. Blocks in the lists have no free neighbour: they are merged when they get there.
 *
 * All of it with the arena's lock held. What changes for the statistics is added to changes, one
 * for each kind of segment.
 */
#include "allocator.h"

#include <stdlib.h>

#define LOOKS 8 /* at blocks of a class in which only some fit */

static void count_split(struct ds_accel__change *changes, const struct ds_accel__block *block,
                        bool is_added)
{
    struct ds_accel__change *change = &changes[block->kind];
    struct ds_accel__lanes *lanes = is_added ? &change->added : &change->removed;

    if (ds_accel__block_is_split(block)) {
        lanes->lane[DS_ACCEL__LANE_SPLIT]++;
        lanes->lane[DS_ACCEL__LANE_SPLIT_BYTES] += (int64_t)block->size_bytes;
    }
}

/* ---- the lists ------------------------------------------------------------------------------ */

/* The class of a size: that of the largest multiple of the class's step that is not above it. */
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
    struct ds_accel__block **head;

    classify(block->size_bytes, &level, &sublevel);
    head = &lists->heads[level][sublevel];
    block->link_previous = NULL;
    block->link_next = *head;
    if (*head != NULL) {
        (*head)->link_previous = block;
    }
    *head = block;
    lists->levels |= UINT64_C(1) << level;
    lists->sublevels[level] |= 1u << sublevel;
    __atomic_store_n(&block->state, DS_ACCEL__BLOCK_FREE, __ATOMIC_RELAXED);
}

void ds_accel__block_unlink(struct ds_accel__arena *arena, struct ds_accel__block *block,
                            struct ds_accel__change *changes)
{
    struct ds_accel__lists *lists = &arena->lists[block->kind];
    uint32_t level;
    uint32_t sublevel;

    count_split(changes, block, false);
    classify(block->size_bytes, &level, &sublevel);
    if (block->link_previous != NULL) {
        block->link_previous->link_next = block->link_next;
    } else {
        lists->heads[level][sublevel] = block->link_next;
        if (block->link_next == NULL) {
            lists->sublevels[level] &= ~(1u << sublevel);
            if (lists->sublevels[level] == 0) {
                lists->levels &= ~(UINT64_C(1) << level);
            }
        }
    }
    if (block->link_next != NULL) {
        block->link_next->link_previous = block->link_previous;
    }
    __atomic_store_n(&block->state, DS_ACCEL__BLOCK_TAKEN, __ATOMIC_RELAXED);
}

/* Take right into left, its neighbour; the struct of right is nobody's then. */
static void merge(struct ds_accel__arena *arena, struct ds_accel__block *left,
                  struct ds_accel__block *right)
{
    left->size_bytes += right->size_bytes;
    left->next = right->next;
    if (right->next != NULL) {
        right->next->previous = left;
    } else {
        left->segment->last = left;
    }
    ds_accel__index_remove(&arena->allocator->index, right);
}

struct ds_accel__block *ds_accel__block_release(struct ds_accel__arena *arena,
                                                struct ds_accel__block *block,
                                                struct ds_accel__change *changes)
{
    if (block->next != NULL && block->next->state == DS_ACCEL__BLOCK_FREE) {
        ds_accel__block_unlink(arena, block->next, changes);
        merge(arena, block, block->next);
    }
    if (block->previous != NULL && block->previous->state == DS_ACCEL__BLOCK_FREE) {
        struct ds_accel__block *left = block->previous;

        ds_accel__block_unlink(arena, left, changes);
        merge(arena, left, block);
        block = left;
    }
    if (!ds_accel__block_is_split(block)) {
        block->segment->idle_since =
            __atomic_add_fetch(&arena->allocator->clock, 1, __ATOMIC_RELAXED);
    }
    count_split(changes, block, true);
    link_block(arena, block);
    return block;
}

/* ---- pending blocks ------------------------------------------------------------------------- */

void ds_accel__pending_push(struct ds_accel__arena *arena, struct ds_accel__block *block)
{
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

/* Cut off what lies behind the first size_bytes; the new block is taken. NULL: no memory. */
static struct ds_accel__block *cut_behind(struct ds_accel__arena *arena,
                                          struct ds_accel__block *block, uint64_t size_bytes)
{
    struct ds_accel__block *rest =
        ds_accel__index_add(&arena->allocator->index, block->address + size_bytes);

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

/* What is left over of a block: free, or pending for what all of it was pending for. */
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

/* Whether what is left over is worth a block of its own. */
static bool is_worth_cutting(const struct ds_accel__arena *arena,
                             const struct ds_accel__block *block, uint64_t rest_bytes)
{
    const struct ds_accel__allocator_options *options = &arena->allocator->options;

    if (block->kind == DS_ACCEL__SMALL || block->segment->reserved_bytes != 0) {
        return rest_bytes >= DS_ACCEL__UNIT;
    }
    return rest_bytes > options->small_limit_bytes &&
           (options->max_split_bytes == 0 || block->size_bytes < options->max_split_bytes);
}

struct ds_accel__block *ds_accel__block_cut(struct ds_accel__arena *arena,
                                            struct ds_accel__block *block, uint64_t fit_bytes,
                                            uint64_t align_bytes, struct ds_accel__waits *waits,
                                            struct ds_accel__change *changes)
{
    uint64_t front = align_up(block->address, align_bytes) - block->address;
    struct ds_accel__block *rest;

    if (front > 0) {
        rest = cut_behind(arena, block, front);
        put_back(arena, block, waits, changes);
        if (rest == NULL) {
            ds_accel__no_memory();
            return NULL;
        }
        block = rest;
    }
    if (is_worth_cutting(arena, block, block->size_bytes - fit_bytes)) {
        rest = cut_behind(arena, block, fit_bytes);
        if (rest != NULL) {
            put_back(arena, rest, waits, changes);
        }
    }
    return block;
}

/* ---- taking --------------------------------------------------------------------------------- */

/* Large blocks that are never split are kept for requests that are worth them. */
static bool is_suitable(const struct ds_accel__arena *arena, const struct ds_accel__block *block,
                        uint64_t fit_bytes, uint64_t align_bytes)
{
    const struct ds_accel__allocator_options *options = &arena->allocator->options;
    uint64_t limit = options->max_split_bytes;

    if (!ds_accel__block_holds(block, fit_bytes, align_bytes)) {
        return false;
    }
    if (limit == 0 || block->kind == DS_ACCEL__SMALL || block->size_bytes < limit) {
        return true;
    }
    return fit_bytes >= limit && block->size_bytes - fit_bytes < options->medium_segment_bytes;
}

static struct ds_accel__block *look(const struct ds_accel__arena *arena,
                                    struct ds_accel__block *block, uint64_t fit_bytes,
                                    uint64_t align_bytes)
{
    struct ds_accel__block *best = NULL;

    for (int i = 0; i < LOOKS && block != NULL; i++, block = block->link_next) {
        if (is_suitable(arena, block, fit_bytes, align_bytes) &&
            (best == NULL || block->size_bytes < best->size_bytes)) {
            best = block;
        }
    }
    return best;
}

/* The next class that is not empty, the given one included. */
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
    }
    *sublevel = (uint32_t)__builtin_ctz(here);
    return lists->heads[*level][*sublevel];
}

static struct ds_accel__block *search(const struct ds_accel__arena *arena, uint32_t kind,
                                      uint64_t fit_bytes, uint64_t align_bytes)
{
    const struct ds_accel__lists *lists = &arena->lists[kind];
    struct ds_accel__block *block;
    struct ds_accel__block *found;
    uint32_t level;
    uint32_t sublevel;

    classify(fit_bytes, &level, &sublevel);
    while ((block = next_class(lists, &level, &sublevel)) != NULL) {
        found = look(arena, block, fit_bytes, align_bytes);
        if (found != NULL) {
            return found;
        }
        sublevel++;
    }
    return NULL;
}

struct ds_accel__block *ds_accel__block_take(struct ds_accel__arena *arena, uint32_t kind,
                                             uint64_t fit_bytes, uint64_t align_bytes,
                                             struct ds_accel__change *changes)
{
    struct ds_accel__block *block = search(arena, kind, fit_bytes, align_bytes);

    if (block == NULL) {
        return NULL;
    }
    ds_accel__block_unlink(arena, block, changes);
    return ds_accel__block_cut(arena, block, fit_bytes, align_bytes, NULL, changes);
}

/* ---- the quick bins ------------------------------------------------------------------------- */

void ds_accel__bins_flush(struct ds_accel__arena *arena, struct ds_accel__change *changes)
{
    for (size_t word = 0; word < DS_ACCEL__ARRAY_SIZE(arena->occupied); word++) {
        while (arena->occupied[word] != 0) {
            uint32_t bin = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(arena->occupied[word]);
            struct ds_accel__block *block = arena->bins[bin];

            arena->bins[bin] = NULL;
            arena->occupied[word] &= arena->occupied[word] - 1;
            while (block != NULL) {
                struct ds_accel__block *next = block->link_next;

                count_split(changes, block, false);
                ds_accel__block_release(arena, block, changes);
                block = next;
            }
        }
    }
}

/* ---- what is free ---------------------------------------------------------------------------- */

void ds_accel__arena_free_space(const struct ds_accel__arena *arena, uint64_t *free_bytes,
                                uint64_t *largest_bytes)
{
    for (const struct ds_accel__segment *segment = arena->segments; segment != NULL;
         segment = segment->next) {
        for (const struct ds_accel__block *block = segment->first; block != NULL;
             block = block->next) {
            if (block->state == DS_ACCEL__BLOCK_FREE || block->state == DS_ACCEL__BLOCK_BINNED) {
                *free_bytes += block->size_bytes;
                *largest_bytes = block->size_bytes > *largest_bytes ? block->size_bytes
                                                                    : *largest_bytes;
            }
        }
    }
}
