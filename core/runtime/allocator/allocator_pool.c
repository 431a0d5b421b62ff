/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The choice of a private pool for an allocation, and the rules for memory while a stream captures.
 *
 * A graph replays with the addresses of its capture. Memory allocated on a capturing stream
 * therefore comes from a private pool, which exists at least as long as the graph, and whose memory
 * is neither stolen nor released; within the capture it may be reused in stream order. While any
 * stream captures, no memory is returned to the driver, because returning memory may wait for the
 * device, which breaks captures.
 */
#include "base/text.h"
#include "host/layers.h"
#include "runtime/allocator/allocator.h"
#include "runtime/caching.h"

#include <assert.h>

#define POOL_LIMIT 8 /* maximum number of devices on which one thread uses pools at the same time */

/* The pools that this thread allocates from. */
static _Thread_local struct {
    uint64_t allocator_id; /* 0: the entry is free */
    struct ds_accel__private *pool;
} chosen[POOL_LIMIT];

/* Disable the fast path while pools or captures need the slow path. The caller holds the
 * allocator's lock. */
static void set_special(struct ds_accel__allocator *allocator)
{
    if (allocator->begun_count + allocator->capture_count > 0) {
        __atomic_or_fetch(&allocator->special, DS_ACCEL__SPECIAL_POOLS, __ATOMIC_RELEASE);
    } else {
        __atomic_and_fetch(&allocator->special, ~DS_ACCEL__SPECIAL_POOLS, __ATOMIC_RELEASE);
    }
}

/* Return the index of this thread's entry for the allocator, else of a free entry; -1: all entries
 * belong to other allocators. */
static int find_place(const struct ds_accel__allocator *allocator)
{
    int place = -1;

    for (int i = 0; i < POOL_LIMIT; i++) {
        if (chosen[i].allocator_id == allocator->id) {
            return i;
        }
        if (chosen[i].allocator_id == 0 && place < 0) {
            place = i;
        }
    }
    return place;
}

int32_t ds_accel__private_use(struct ds_accel__allocator *allocator, struct ds_accel__private *pool,
                              bool is_begun)
{
    int place = find_place(allocator);
    const struct ds_accel__private *before = place >= 0 ? chosen[place].pool : NULL;

    if (is_begun && (place < 0 || before != NULL)) {
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               place >= 0
                                   ? "pool_begin: this thread uses a pool of the device already"
                                   : "pool_begin: this thread uses pools on too many devices");
    }
    if (!is_begun && before != pool) {
        return ds_accel__error(DS_ACCEL_ERR_STATE, "pool_end: this thread does not use the pool");
    }
    assert(place >= 0); /* a thread that uses a pool has an entry for it */
    chosen[place].allocator_id = is_begun ? allocator->id : 0;
    chosen[place].pool = is_begun ? pool : NULL;
    pthread_mutex_lock(&allocator->lock);
    if (is_begun) {
        allocator->begun_count++;
        pool->reference_count++;
    } else {
        assert(allocator->begun_count > 0);
        allocator->begun_count--;
    }
    set_special(allocator);
    pthread_mutex_unlock(&allocator->lock);
    if (!is_begun) {
        ds_accel__private_put(allocator, pool);
    }
    return DS_ACCEL_OK;
}

static struct ds_accel__private *chosen_pool(const struct ds_accel__allocator *allocator)
{
    for (int i = 0; i < POOL_LIMIT; i++) {
        if (chosen[i].allocator_id == allocator->id) {
            return chosen[i].pool;
        }
    }
    return NULL;
}

struct ds_accel__arena *ds_accel__arena_choose(struct ds_accel__arena *common)
{
    struct ds_accel__allocator *allocator = common->allocator;
    struct ds_accel__private *pool;
    struct ds_accel__arena *arena;

    if ((__atomic_load_n(&allocator->special, __ATOMIC_ACQUIRE) & DS_ACCEL__SPECIAL_POOLS) == 0) {
        return common;
    }
    pthread_mutex_lock(&allocator->lock);
    pool = common->capture != NULL ? common->capture : chosen_pool(allocator);
    arena = common;
    if (pool != NULL) {
        arena = allocator->arenas;
        while (arena != NULL && (arena->owner != pool || arena->id != common->id)) {
            arena = arena->next;
        }
        if (arena == NULL) {
            arena = ds_accel__arena_make(allocator, common->stream, common, pool);
        }
        /* the count keeps the arena in existence if its pool is destroyed meanwhile */
        if (arena != NULL) {
            __atomic_fetch_add(&arena->use_count, 1, __ATOMIC_RELAXED);
        }
    }
    pthread_mutex_unlock(&allocator->lock);
    return arena;
}

void ds_accel__arena_leave(const struct ds_accel__arena *common, struct ds_accel__arena *arena)
{
    if (arena != common) {
        assert(__atomic_load_n(&arena->use_count, __ATOMIC_RELAXED) > 0);
        __atomic_fetch_sub(&arena->use_count, 1, __ATOMIC_RELAXED);
    }
}

/* Set the pool that the stream's capture allocates from, and mark all arenas of the stream as
 * capturing; pool NULL: clear both. arena: the stream's arena in the common pool. The caller holds
 * the allocator's lock. */
static void set_capturing(struct ds_accel__arena *arena, struct ds_accel__private *pool)
{
    struct ds_accel__allocator *allocator = arena->allocator;

    arena->capture = pool;
    for (struct ds_accel__arena *each = allocator->arenas; each != NULL; each = each->next) {
        if (each->id == arena->id) {
            ds_accel__latch_take(&each->latch);
            each->is_capturing = pool != NULL;
            ds_accel__latch_release(&each->latch);
        }
    }
}

bool ds_accel__allocator_capture_begin(struct ds_accel__arena *arena,
                                       struct ds_accel__private *pool)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    bool is_first;

    /* a thread that returns memory to the driver holds grow_lock until it has finished */
    pthread_mutex_lock(&allocator->grow_lock);
    pthread_mutex_lock(&allocator->lock);
    is_first = arena->capture == NULL;
    if (is_first) {
        allocator->capture_count++;
        set_capturing(arena, pool);
        set_special(allocator);
        ds_accel__layer_capture_pool(allocator->device, arena->stream, pool->id);
    }
    pthread_mutex_unlock(&allocator->lock);
    pthread_mutex_unlock(&allocator->grow_lock);
    return is_first;
}

bool ds_accel__allocator_is_capturing(struct ds_accel__arena *arena)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    bool is_capturing;

    pthread_mutex_lock(&allocator->lock);
    is_capturing = arena->capture != NULL;
    pthread_mutex_unlock(&allocator->lock);
    return is_capturing;
}

void ds_accel__allocator_capture_end(struct ds_accel__arena *arena)
{
    struct ds_accel__allocator *allocator = arena->allocator;

    pthread_mutex_lock(&allocator->lock);
    assert(arena->capture == NULL || allocator->capture_count > 0);
    allocator->capture_count -= arena->capture != NULL;
    set_capturing(arena, NULL);
    set_special(allocator);
    ds_accel__layer_capture_pool(allocator->device, arena->stream, 0);
    pthread_mutex_unlock(&allocator->lock);
    ds_accel__deferred_settle(allocator);
}
