/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The slow path of a free, which serves any live block, in any mode, used by any streams; and other
 * operations on live blocks. allocator.c has the fast path.
 */
#include "host/layers.h"
#include "runtime/allocator/allocator.h"

#include <assert.h>
#include <string.h>

/* Find the live block at an address and take the lock of its home arena. On failure the error is
 * set and no lock is held. ERR_NOT_FOUND: the address is not in this allocator's memory.
 * ERR_INVALID: the address is not the start of a live block. */
static int32_t lock_live(struct ds_accel__allocator *allocator, const void *pointer,
                         const char *call, struct ds_accel__block **block_out)
{
    uint64_t address = (uint64_t)(uintptr_t)pointer;

    for (int race = 0; race < DS_ACCEL__RACE_LIMIT; race++) {
        struct ds_accel__block *block = ds_accel__index_find_sure(&allocator->index, address);
        struct ds_accel__arena *home =
            block != NULL ? __atomic_load_n(&block->home, __ATOMIC_RELAXED) : NULL;

        if (home == NULL) {
            break;
        }
        ds_accel__latch_take(&home->latch);
        if (__atomic_load_n(&block->home, __ATOMIC_RELAXED) == home &&
            __atomic_load_n(&block->address, __ATOMIC_RELAXED) == address) {
            if (__atomic_load_n(&block->state, __ATOMIC_RELAXED) == DS_ACCEL__BLOCK_LIVE) {
                *block_out = block;
                return DS_ACCEL_OK;
            }
            ds_accel__latch_release(&home->latch);
            break;
        }
        ds_accel__latch_release(&home->latch);
    }
    return ds_accel__allocator_refuse(allocator, call, pointer);
}

/* Remove a block that is a whole segment from its arena, and return the segment to the driver. The
 * caller holds grow_lock. */
static int32_t give_back(struct ds_accel__block *block)
{
    struct ds_accel__arena *home = block->home;
    struct ds_accel__allocator *allocator = home->allocator;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];

    assert(block->state == DS_ACCEL__BLOCK_TAKEN);
    assert(block->segment->first == block && block->segment->last == block);
    memset(changes, 0, sizeof(changes));
    ds_accel__latch_take(&home->latch);
    ds_accel__users_forget(block);
    ds_accel__change_free(block, false, &changes[block->kind]);
    ds_accel__segment_unlink(home, block->segment);
    ds_accel__figures_finish(home, changes, NULL, DS_ACCEL__BLOCK_FREE);
    ds_accel__history_add(allocator, DS_ACCEL__ACTION_FREE_COMPLETED, block->address,
                          block->size_bytes, block->segment->stream_id);
    return ds_accel__segment_destroy(allocator, block->segment);
}

/*
 * Wait for the streams that used a block in state TAKEN, then return the block to the driver. If a
 * stream captures, free the block in stream order instead, as in mode "caching". If a wait fails,
 * the block becomes deferred. The caller holds no lock.
 */
static int32_t free_to_driver(struct ds_accel__block *block, struct ds_accel__arena *freeing)
{
    struct ds_accel__arena *home = block->home;
    struct ds_accel__allocator *allocator = home->allocator;
    struct ds_accel__waits *waits = NULL;
    struct ds_accel__mark *mark = NULL;
    bool is_captured;
    int32_t status;

    pthread_mutex_lock(&allocator->lock);
    if (allocator->capture_count > 0) {
        pthread_mutex_unlock(&allocator->lock);
        return ds_accel__free_in_order(block, freeing);
    }
    status = ds_accel__waits_make(block, freeing, &waits);
    status = status < 0 ? status : ds_accel__mark_record(home, &mark);
    pthread_mutex_unlock(&allocator->lock);
    status = status < 0 ? status : ds_accel__waits_synchronize(allocator, waits);
    status = status < 0 ? status : ds_accel__mark_synchronize(allocator, mark);
    ds_accel__waits_put(allocator, waits);
    ds_accel__mark_put(allocator, mark);
    if (status < 0) {
        ds_accel__block_defer(block, freeing);
        return status;
    }
    pthread_mutex_lock(&allocator->grow_lock); /* no capture begins while this lock is held */
    pthread_mutex_lock(&allocator->lock);
    is_captured = allocator->capture_count > 0;
    pthread_mutex_unlock(&allocator->lock);
    if (!is_captured) {
        status = give_back(block);
    }
    pthread_mutex_unlock(&allocator->grow_lock);
    return is_captured ? ds_accel__free_in_order(block, freeing) : status;
}

int32_t ds_accel__free_slowly(struct ds_accel__allocator *allocator,
                              struct ds_accel__arena *freeing, void *pointer)
{
    struct ds_accel__block *block = NULL;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];
    struct ds_accel__arena *home;
    int32_t status = lock_live(allocator, pointer, "mem_free", &block);

    if (block == NULL) {
        return status;
    }
    home = block->home;
    assert(block->waits == NULL && block->is_deferred == DS_ACCEL__DEFERRED_NOT);
    block->freed_frames = ds_accel__history_add(allocator, DS_ACCEL__ACTION_FREE_REQUESTED,
                                                block->address, block->size_bytes,
                                                (freeing != NULL ? freeing : home)->stream_id);
    __atomic_store_n(&block->state, DS_ACCEL__BLOCK_TAKEN, __ATOMIC_RELAXED);
    /* The modes "off" and "debug" release or fill the freed memory, unless the memory belongs to a
     * private pool, a stream captures, or a thread allocates from a private pool. */
    if (allocator->options.mode != DS_ACCEL__ALLOCATOR_CACHING && home->owner == NULL &&
        /* Mode "off" does not release a part of a split block, because other parts may be in
         * use. */
        (allocator->options.mode != DS_ACCEL__ALLOCATOR_OFF || !ds_accel__block_is_split(block)) &&
        (__atomic_load_n(&allocator->special, __ATOMIC_ACQUIRE) & DS_ACCEL__SPECIAL_POOLS) == 0) {
        ds_accel__latch_release(&home->latch);
        if (allocator->options.mode == DS_ACCEL__ALLOCATOR_DEBUG) {
            return ds_accel__debug_free(block, freeing);
        }
        ds_accel__layer_block_free(allocator->device, pointer, NULL);
        return free_to_driver(block, freeing);
    }
    ds_accel__layer_block_free(allocator->device, pointer, NULL);
    if (block->uses != NULL || block->user->id != home->id ||
        (freeing != NULL && freeing->id != home->id)) {
        ds_accel__latch_release(&home->latch);
        return ds_accel__free_in_order(block, freeing);
    }
    ds_accel__history_add(allocator, DS_ACCEL__ACTION_FREE_COMPLETED, block->address,
                          block->size_bytes, home->stream_id);
    memset(changes, 0, sizeof(changes));
    ds_accel__users_forget(block);
    ds_accel__change_free(block, false, &changes[block->kind]);
    ds_accel__block_release(home, block, changes);
    ds_accel__figures_finish(home, changes, NULL, DS_ACCEL__BLOCK_FREE);
    return DS_ACCEL_OK;
}

/* ---- other calls on a block ----------------------------------------------------------------- */

int32_t ds_accel__allocator_record(struct ds_accel__allocator *allocator, void *pointer,
                                   struct ds_accel__arena *arena)
{
    struct ds_accel__block *block = NULL;
    struct ds_accel__arena *home;
    int32_t status = lock_live(allocator, pointer, "mem_record_stream", &block);

    if (block == NULL) {
        return status;
    }
    home = block->home;
    if (arena->id != home->id) {
        status = ds_accel__uses_add(block, arena);
    }
    ds_accel__latch_release(&home->latch);
    return status;
}

bool ds_accel__allocator_owns(struct ds_accel__allocator *allocator, const void *pointer)
{
    struct ds_accel__block *block =
        ds_accel__index_find_sure(&allocator->index, (uint64_t)(uintptr_t)pointer);

    return block != NULL &&
           __atomic_load_n(&block->state, __ATOMIC_RELAXED) == DS_ACCEL__BLOCK_LIVE;
}
