/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Private pools. Only the streams of a capture, and the threads that chose the pool, allocate
 * memory from a private pool. A pool exists while something refers to it, and after that until its
 * last arena is empty. allocator_pool.c chooses the pool for an allocation.
 */
#include "base/text.h"
#include "runtime/allocator/allocator.h"

#include <assert.h>
#include <stdlib.h>

struct ds_accel__private *ds_accel__private_create(struct ds_accel__allocator *allocator)
{
    struct ds_accel__private *pool = calloc(1, sizeof(*pool));

    if (pool == NULL) {
        ds_accel__no_memory();
        return NULL;
    }
    pool->reference_count = 1;
    pthread_mutex_lock(&allocator->lock);
    pool->id = ++allocator->last_private_id;
    pool->next = allocator->privates;
    allocator->privates = pool;
    pthread_mutex_unlock(&allocator->lock);
    return pool;
}

void ds_accel__private_get(struct ds_accel__allocator *allocator, struct ds_accel__private *pool)
{
    pthread_mutex_lock(&allocator->lock);
    assert(pool->reference_count > 0 && !pool->is_gone);
    pool->reference_count++;
    pthread_mutex_unlock(&allocator->lock);
}

/* Free the pool's struct if the pool has no reference and no arena left. The caller holds the
 * allocator's lock. */
static void free_if_over(struct ds_accel__allocator *allocator, struct ds_accel__private *pool)
{
    struct ds_accel__private **place = &allocator->privates;

    if (!pool->is_gone || pool->arena_count > 0) {
        return;
    }
    while (*place != pool) {
        assert(*place != NULL);
        place = &(*place)->next;
    }
    *place = pool->next;
    free(pool);
}

void ds_accel__private_shrink(struct ds_accel__allocator *allocator,
                              struct ds_accel__private *owner)
{
    if (owner != NULL) {
        assert(owner->arena_count > 0);
        owner->arena_count--;
        free_if_over(allocator, owner);
    }
}

void ds_accel__private_put(struct ds_accel__allocator *allocator, struct ds_accel__private *pool)
{
    if (pool == NULL) {
        return;
    }
    pthread_mutex_lock(&allocator->lock);
    assert(pool->reference_count > 0);
    if (--pool->reference_count == 0) {
        pool->is_gone = 1;
        free_if_over(allocator, pool);
    }
    pthread_mutex_unlock(&allocator->lock);
}
