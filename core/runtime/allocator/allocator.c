/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The caching allocator: it keeps freed device memory and reuses it without calling the driver.
 * Each device has one allocator, which contains
 *
 *   arena     the memory of one stream (or of one stream in one private pool), with a lock
 *   segment   one piece of memory from the driver; belongs to an arena
 *   block     a part of a segment: owned by the program, free, or pending until other streams are
 *             done
 *
 * This file is the whole fast path. It serves the free of a block while the arena's free memory is
 * as it was right after the block's allocation, and a request for the size that was freed last in
 * this way. The fast path takes one lock, which no other stream contends for, and writes no cache
 * line that another stream writes. It calls no function outside this file, except the slow paths
 * for requests that it does not serve.
 *
 *   allocator_alloc.c     slow path of allocating      allocator_free.c      slow path of freeing
 *   allocator_pending.c   freed blocks still in use    allocator_marks.c     stream order
 *   allocator_lists.c     free blocks of an arena      allocator_index.c     address to block
 *   allocator_stats.c     statistics, exact peaks      allocator_segments.c  the driver's memory
 *   allocator_arena.c     arenas, create, destroy      allocator_private.c   private pools
 *   allocator_pool.c      threads' pools, captures     allocator_oom.c       texts of failures
 *   allocator_history.c   history, snapshots           allocator_debug.c     debug mode
 *   allocator_settings.c  settings                     allocator_lock.c      an arena's lock
 *
 * Stream order: a free is a point in the stream that the caller passes. The stream on which the
 * block was allocated may reuse the memory at once, because its new work is queued after that
 * point. For each other stream that used the block, the free records a mark at the current end of
 * that stream's work, and the stream that reuses the block waits for these marks on the device. A
 * stream that takes a block of another arena also waits for a mark of that arena's stream.
 *
 * The choice of a free block, and when the driver is called and for how much, follow torch's rules,
 * so that a program needs no more memory here than with torch. This allocator adds two steps:
 * before it calls the driver, it reuses memory of destroyed streams and pools, and for a request
 * that would fail in torch, it reuses parts of other streams' memory.
 */
#include "runtime/allocator/allocator.h"

#include <assert.h>
#include <string.h>

/* ---- counting ------------------------------------------------------------------------------- */

typedef int64_t pair_t __attribute__((vector_size(16)));

/* The changes of all lanes, held in registers. */
struct differences {
    pair_t a;
    pair_t b;
    pair_t c;
    pair_t d;
};
DS_ACCEL_STATIC_ASSERT(sizeof(struct differences) == sizeof(struct ds_accel__lanes), "one layout");

static inline __attribute__((always_inline)) struct differences add(const struct differences *lanes,
                                                                    struct differences by)
{
    return (struct differences){lanes->a + by.a, lanes->b + by.b, lanes->c + by.c, lanes->d + by.d};
}

/* Return limit - value, which is negative in a lane whose value exceeds its limit. */
static inline __attribute__((always_inline)) pair_t room(pair_t limit, pair_t value)
{
    return limit - value;
}

/* Like ds_accel__figures_apply(), but without counting the totals. A free decreases all lanes of
 * the first half, so that these lanes cannot exceed a limit. */
static inline __attribute__((always_inline)) bool
apply(struct ds_accel__figures *figures, uint32_t kind, struct differences by, bool is_free)
{
    struct differences *some = (struct differences *)&figures->current[kind];
    const struct differences *other = (const struct differences *)&figures->current[1 - kind];
    const struct differences *limit = (const struct differences *)&figures->limit[kind];
    const struct differences *whole = (const struct differences *)&figures->limit[DS_ACCEL__ALL];
    struct differences result = add(some, by);
    pair_t left = room(limit->c, result.c) | room(limit->d, result.d) |
                  room(whole->c, other->c + result.c) | room(whole->d, other->d + result.d);

    if (!is_free) {
        left |= room(limit->a, result.a) | room(limit->b, result.b) |
                room(whole->a, other->a + result.a) | room(whole->b, other->b + result.b);
    }
    if (__builtin_expect((left[0] | left[1]) < 0, 0)) {
        return false;
    }
    *some = result;
    return true;
}

/* Return how allocating an undone block again changes the statistics of split free memory: count
 * and bytes. Freeing the block makes the opposite change. */
static inline __attribute__((always_inline)) pair_t split_of(const struct ds_accel__block *block)
{
    int64_t size = (int64_t)block->size_bytes;

    switch (block->origin) {
    case DS_ACCEL__ORIGIN_SEGMENT_CUT:
        return (pair_t){1, (int64_t)block->segment->size_bytes - size};
    case DS_ACCEL__ORIGIN_SPLIT_CUT:
        return (pair_t){0, -size};
    case DS_ACCEL__ORIGIN_SPLIT_WHOLE:
        return (pair_t){-1, -size};
    default:
        assert(block->origin == DS_ACCEL__ORIGIN_UNCOUNTED);
        return (pair_t){0, 0};
    }
}

static inline int64_t rise(int64_t difference)
{
    return difference > 0 ? difference : 0;
}

/* ---- allocating ----------------------------------------------------------------------------- */

/* Finish an allocation of the fast path that may change a peak. The caller holds the lock of the
 * block's home arena; this function releases it. */
static __attribute__((noinline)) void settle_slowly(struct ds_accel__block *block)
{
    struct ds_accel__arena *home = block->home;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];
    struct ds_accel__change *change = &changes[block->kind];
    pair_t split = split_of(block);

    __atomic_store_n(&block->state, DS_ACCEL__BLOCK_TAKEN, __ATOMIC_RELAXED);
    memset(changes, 0, sizeof(changes));
    ds_accel__change_alloc(block, change);
    change->added.lane[DS_ACCEL__LANE_SPLIT] += rise(split[0]);
    change->removed.lane[DS_ACCEL__LANE_SPLIT] += rise(-split[0]);
    change->added.lane[DS_ACCEL__LANE_SPLIT_BYTES] += rise(split[1]);
    change->removed.lane[DS_ACCEL__LANE_SPLIT_BYTES] += rise(-split[1]);
    ds_accel__latch_release(&home->latch);
    ds_accel__figures_settle(home, changes, block, DS_ACCEL__BLOCK_LIVE);
}

int32_t ds_accel__allocator_alloc(struct ds_accel__arena *arena, uint64_t size_bytes,
                                  uint64_t align_bytes, void **pointer_out)
{
    uint64_t fit_bytes = (size_bytes + DS_ACCEL__UNIT - 1) & ~(DS_ACCEL__UNIT - 1);
    struct ds_accel__block *block;
    struct ds_accel__lanes *total;
    struct differences by;
    int64_t size;
    pair_t split;

    if (__builtin_expect(size_bytes - 1 >= DS_ACCEL__LARGEST_REQUEST ||
                             align_bytes != DS_ACCEL__UNIT ||
                             __atomic_load_n(&arena->allocator->special, __ATOMIC_ACQUIRE) != 0,
                         0)) {
        return ds_accel__alloc_slowly(arena, size_bytes, align_bytes, pointer_out);
    }
    ds_accel__latch_take(&arena->latch);
    block = arena->undone;
    if (__builtin_expect(block == NULL || block->fit_bytes != fit_bytes, 0)) {
        ds_accel__latch_release(&arena->latch);
        return ds_accel__alloc_slowly(arena, size_bytes, align_bytes, pointer_out);
    }
    assert(block->state == DS_ACCEL__BLOCK_UNDONE && block->home == arena);
    assert(block->size_bytes >= fit_bytes && block->uses == NULL && block->after != 0);
    arena->undone = block->link_next;
    arena->stamp = block->after;
    block->requested_bytes = size_bytes;
    *pointer_out = (void *)(uintptr_t)block->address;
    size = (int64_t)block->size_bytes;
    split = split_of(block);
    by = (struct differences){{1, 1}, {size, size}, {(int64_t)size_bytes, split[0]}, {split[1], 0}};
    if (__builtin_expect(!apply(&arena->figures, block->kind, by, false), 0)) {
        settle_slowly(block);
        return DS_ACCEL_OK;
    }
    total = &arena->figures.total[block->kind];
    ((struct differences *)total)->a += by.a;
    ((struct differences *)total)->b += by.b;
    total->lane[DS_ACCEL__LANE_REQUESTED_BYTES] += (int64_t)size_bytes;
    total->lane[DS_ACCEL__LANE_SPLIT] += rise(split[0]);
    total->lane[DS_ACCEL__LANE_SPLIT_BYTES] += rise(split[1]);
    __atomic_store_n(&block->state, DS_ACCEL__BLOCK_LIVE, __ATOMIC_RELAXED);
    ds_accel__latch_release(&arena->latch);
    return DS_ACCEL_OK;
}

/* ---- freeing -------------------------------------------------------------------------------- */

int32_t ds_accel__allocator_free(struct ds_accel__allocator *allocator,
                                 struct ds_accel__arena *freeing, void *pointer)
{
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    struct ds_accel__lanes *total;
    struct ds_accel__block *block;
    struct ds_accel__arena *home;
    struct differences by;
    int64_t size;
    pair_t split;

    if (__builtin_expect(__atomic_load_n(&allocator->special, __ATOMIC_ACQUIRE) != 0, 0)) {
        return ds_accel__free_slowly(allocator, freeing, pointer);
    }
    block = ds_accel__index_find(&allocator->index, address);
    home = block != NULL ? __atomic_load_n(&block->home, __ATOMIC_RELAXED) : NULL;
    if (__builtin_expect(home == NULL, 0)) {
        return ds_accel__free_slowly(allocator, freeing, pointer);
    }
    ds_accel__latch_take(&home->latch);
    if (__builtin_expect(__atomic_load_n(&block->home, __ATOMIC_RELAXED) != home ||
                             __atomic_load_n(&block->address, __ATOMIC_RELAXED) != address ||
                             __atomic_load_n(&block->state, __ATOMIC_RELAXED) !=
                                 DS_ACCEL__BLOCK_LIVE ||
                             block->user != home || block->uses != NULL ||
                             (freeing != NULL && freeing != home) || block->after != home->stamp ||
                             block->is_oversize != 0,
                         0)) {
        ds_accel__latch_release(&home->latch);
        return ds_accel__free_slowly(allocator, freeing, pointer);
    }
    size = (int64_t)block->size_bytes;
    split = -split_of(block);
    by = (struct differences){
        {-1, -1}, {-size, -size}, {-(int64_t)block->requested_bytes, split[0]}, {split[1], 0}};
    /* Oversize blocks take the slow path, so that the lane of oversize blocks does not change
     * here. */
    if (__builtin_expect(!apply(&home->figures, block->kind, by, true), 0)) {
        ds_accel__latch_release(&home->latch);
        return ds_accel__free_slowly(allocator, freeing, pointer);
    }
    assert(block->waits == NULL && block->segment->home == home);
    total = &home->figures.total[block->kind];
    total->lane[DS_ACCEL__LANE_SPLIT] += rise(split[0]);
    total->lane[DS_ACCEL__LANE_SPLIT_BYTES] += rise(split[1]);
    block->link_next = home->undone;
    home->undone = block;
    home->stamp = block->before;
    __atomic_store_n(&block->state, DS_ACCEL__BLOCK_UNDONE, __ATOMIC_RELAXED);
    ds_accel__latch_release(&home->latch);
    return DS_ACCEL_OK;
}
