/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Blocks that were freed while other streams may still use them. Such a block is *pending* until
 * the marks of these streams are reached. While no marks can be made, because a stream captures, or
 * because no event can be recorded and a wait for the stream failed, the block is also *deferred*.
 * A block in quarantine (allocator_debug.c) is deferred too.
 */
#include "runtime/allocator/allocator.h"

#include <assert.h>
#include <string.h>

/* Free the pending blocks whose marks are reached. The list is processed from its end, where the
 * oldest blocks are: if a mark is not reached, later marks of the same stream need no query. */
void ds_accel__pending_collect(struct ds_accel__arena *arena, struct ds_accel__busy *busy,
                               struct ds_accel__change *changes)
{
    struct ds_accel__busy own;
    struct ds_accel__block *block = arena->pending;

    if (block == NULL) {
        return;
    }
    if (busy == NULL) {
        own.count = 0;
        busy = &own;
    }
    while (block->link_next != NULL) {
        block = block->link_next;
    }
    while (block != NULL) {
        struct ds_accel__block *newer = block->link_previous;

        if (!block->is_deferred && ds_accel__waits_are_done(arena->allocator, block->waits, busy)) {
            struct ds_accel__change *change = &changes[block->kind];

            ds_accel__pending_unlink(arena, block);
            ds_accel__waits_put(arena->allocator, block->waits);
            block->waits = NULL;
            change->removed.lane[DS_ACCEL__LANE_ACTIVE]++;
            change->removed.lane[DS_ACCEL__LANE_ACTIVE_BYTES] += (int64_t)block->size_bytes;
            ds_accel__block_release(arena, block, changes);
        }
        block = newer;
    }
}

/* Whether a stream that used the block, or the freeing stream, captures. The caller holds the
 * allocator's lock. */
static bool is_in_capture(const struct ds_accel__block *block,
                          const struct ds_accel__arena *freeing)
{
    bool is = (freeing != NULL && freeing->is_capturing) || block->user->is_capturing;

    for (uint32_t i = 0; block->uses != NULL && i < block->uses->count; i++) {
        is = is || block->uses->arenas[i]->is_capturing;
    }
    return is;
}

void ds_accel__users_forget(struct ds_accel__block *block)
{
    ds_accel__uses_drop(block);
    if (block->user != block->home) {
        assert(__atomic_load_n(&block->user->use_count, __ATOMIC_RELAXED) > 0);
        __atomic_fetch_sub(&block->user->use_count, 1, __ATOMIC_RELAXED);
        block->user = block->home;
    }
}

void ds_accel__block_defer(struct ds_accel__block *block, struct ds_accel__arena *freeing)
{
    struct ds_accel__arena *home = block->home;
    struct ds_accel__allocator *allocator = home->allocator;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];
    bool is_known;

    assert(block->state == DS_ACCEL__BLOCK_TAKEN && block->waits == NULL);
    pthread_mutex_lock(&allocator->lock);
    is_known = freeing == NULL || ds_accel__uses_add(block, freeing) >= 0;
    pthread_mutex_unlock(&allocator->lock);
    memset(changes, 0, sizeof(changes));
    ds_accel__latch_take(&home->latch);
    /* If memory ran out while the freeing stream was added to the block's users, nothing can show
     * that this stream is done, so the block stays deferred forever. */
    block->is_deferred = is_known ? DS_ACCEL__DEFERRED_MARKS : DS_ACCEL__DEFERRED_HELD;
    ds_accel__change_free(block, true, &changes[block->kind]);
    ds_accel__figures_finish(home, changes, block, DS_ACCEL__BLOCK_PENDING);
}

int32_t ds_accel__free_in_order(struct ds_accel__block *block, struct ds_accel__arena *freeing)
{
    struct ds_accel__arena *home = block->home;
    struct ds_accel__allocator *allocator = home->allocator;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];
    struct ds_accel__waits *waits = NULL;
    int32_t status = DS_ACCEL_OK;
    bool is_deferred;

    assert(block->state == DS_ACCEL__BLOCK_TAKEN && block->waits == NULL);
    pthread_mutex_lock(&allocator->lock);
    is_deferred = is_in_capture(block, freeing);
    if (!is_deferred) {
        status = ds_accel__waits_make(block, freeing, &waits);
    }
    pthread_mutex_unlock(&allocator->lock);
    if (is_deferred || status < 0) {
        ds_accel__block_defer(block, freeing);
        return status;
    }
    memset(changes, 0, sizeof(changes));
    ds_accel__latch_take(&home->latch);
    block->is_deferred = DS_ACCEL__DEFERRED_NOT;
    ds_accel__users_forget(block);
    ds_accel__change_free(block, waits != NULL, &changes[block->kind]);
    block->waits = waits;
    if (waits != NULL) {
        ds_accel__figures_finish(home, changes, block, DS_ACCEL__BLOCK_PENDING);
    } else {
        ds_accel__block_release(home, block, changes);
        ds_accel__figures_finish(home, changes, NULL, DS_ACCEL__BLOCK_FREE);
    }
    return DS_ACCEL_OK;
}

void ds_accel__free_to_hold(struct ds_accel__block *block)
{
    struct ds_accel__arena *home = block->home;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];

    assert(block->state == DS_ACCEL__BLOCK_TAKEN && block->waits == NULL);
    memset(changes, 0, sizeof(changes));
    ds_accel__latch_take(&home->latch);
    ds_accel__users_forget(block);
    block->is_deferred = DS_ACCEL__DEFERRED_HELD;
    ds_accel__change_free(block, true, &changes[block->kind]);
    ds_accel__figures_finish(home, changes, block, DS_ACCEL__BLOCK_PENDING);
}

void ds_accel__deferred_settle(struct ds_accel__allocator *allocator)
{
    pthread_mutex_lock(&allocator->lock);
    for (struct ds_accel__arena *arena = allocator->arenas; arena != NULL; arena = arena->next) {
        ds_accel__latch_take(&arena->latch);
        for (struct ds_accel__block *block = arena->pending; block != NULL;
             block = block->link_next) {
            if (block->is_deferred == DS_ACCEL__DEFERRED_MARKS && !is_in_capture(block, NULL) &&
                ds_accel__waits_make(block, NULL, &block->waits) >= 0) {
                block->is_deferred = DS_ACCEL__DEFERRED_NOT;
                ds_accel__users_forget(block);
            }
        }
        ds_accel__latch_release(&arena->latch);
    }
    pthread_mutex_unlock(&allocator->lock);
}
