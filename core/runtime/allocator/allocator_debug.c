/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The mode "debug" finds invalid writes of programs. A red zone with a pattern follows every
 * allocation. The allocator fills memory when it is allocated, so that reads of unwritten memory
 * become visible, and when it is freed, so that uses after the free become visible. Freed memory
 * stays in a quarantine of limited size, and is checked when it leaves the quarantine.
 *
 * A check requires that the streams are idle, so a call may wait in this mode that does not wait in
 * the other modes. Memory of capturing streams is not filled, because the fill would become part of
 * the graph. While any stream captures, nothing is checked, because waiting or reading would break
 * the capture. Memory of backends that cannot fill or copy is not filled or checked either.
 */
#include "base/text.h"
#include "host/layers.h"
#include "runtime/allocator/allocator.h"
#include "runtime/caching.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILL_NEW 0xCB
#define FILL_FREED 0xDD
#define FILL_ZONE 0xFD
#define LOOK_BYTES 65536u /* bytes that one copy to the host reads */

struct held {
    struct ds_accel__block *block;
    bool is_filled;
};

struct ds_accel__quarantine {
    pthread_mutex_t lock; /* outermost lock; guards all members */
    struct held *ring;
    size_t capacity; /* a power of two */
    size_t first;
    size_t count;
    uint64_t size_bytes;
};

/* ---- filling and checking memory ------------------------------------------------------------ */

/* Queue a fill of memory with a byte on the arena's stream. False: the memory is not filled,
 * because the stream was destroyed or captures, the size is 0, or the call failed. The caller holds
 * no lock; this function holds the allocator's lock, so that the stream is not destroyed
 * meanwhile. */
static bool fill(struct ds_accel__arena *arena, uint64_t address, uint64_t size_bytes,
                 unsigned char value)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    bool is_filled;

    pthread_mutex_lock(&allocator->lock);
    is_filled = !arena->is_gone && !arena->is_capturing && size_bytes > 0 &&
                allocator->table->mem_fill_async(arena->stream, (void *)(uintptr_t)address, &value,
                                                 1, size_bytes, &error) == DS_ACCEL_OK;
    pthread_mutex_unlock(&allocator->lock);
    return is_filled;
}

/* Wait for all work queued on the arena's stream. False: the wait failed, or a stream captures; in
 * both cases the memory must not be checked. The caller does not hold the allocator's lock. */
static bool finish(struct ds_accel__arena *arena)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    struct ds_accel__mark *mark = NULL;
    bool is_done;

    pthread_mutex_lock(&allocator->lock);
    is_done = allocator->capture_count == 0 && ds_accel__mark_record(arena, &mark) >= 0;
    pthread_mutex_unlock(&allocator->lock);
    is_done = is_done && ds_accel__mark_synchronize(allocator, mark) >= 0;
    ds_accel__mark_put(allocator, mark);
    return is_done;
}

/* Return the offset of the first byte that differs from value; size_bytes if no byte differs, if
 * the memory can't be read, or if out of host memory. */
static uint64_t compare(const struct ds_accel__allocator *allocator, uint64_t address,
                        uint64_t size_bytes, unsigned char value)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    unsigned char *copy = malloc(LOOK_BYTES);
    uint64_t place = 0;

    while (copy != NULL && place < size_bytes) {
        uint64_t part = size_bytes - place < LOOK_BYTES ? size_bytes - place : LOOK_BYTES;

        if (allocator->table->mem_copy(allocator->device, copy,
                                       (void *)(uintptr_t)(address + place), part,
                                       DS_ACCEL_COPY_DEVICE_TO_HOST, &error) != DS_ACCEL_OK) {
            break;
        }
        for (uint64_t i = 0; i < part; i++) {
            if (copy[i] != value) {
                free(copy);
                return place + i;
            }
        }
        place += part;
    }
    free(copy);
    return size_bytes;
}

/* Like compare(), but return size_bytes without reading while a stream captures, because reading
 * would break the capture. No capture begins during the call, which holds grow_lock. */
static uint64_t find_damage(struct ds_accel__allocator *allocator, uint64_t address,
                            uint64_t size_bytes, unsigned char value)
{
    uint64_t place = size_bytes;
    bool is_capturing;

    pthread_mutex_lock(&allocator->grow_lock);
    pthread_mutex_lock(&allocator->lock);
    is_capturing = allocator->capture_count > 0;
    pthread_mutex_unlock(&allocator->lock);
    if (!is_capturing) {
        place = compare(allocator, address, size_bytes, value);
    }
    pthread_mutex_unlock(&allocator->grow_lock);
    return place;
}

void ds_accel__debug_allocated(struct ds_accel__block *block)
{
    struct ds_accel__arena *user = block->user;

    fill(user, block->address, block->requested_bytes, FILL_NEW);
    block->is_filled = fill(user, block->address + block->requested_bytes,
                            block->fit_bytes - block->requested_bytes, FILL_ZONE);
}

/* ---- the quarantine ------------------------------------------------------------------------- */

int32_t ds_accel__debug_init(struct ds_accel__allocator *allocator)
{
    struct ds_accel__quarantine *quarantine = calloc(1, sizeof(*quarantine));

    if (quarantine == NULL) {
        return ds_accel__no_memory();
    }
    pthread_mutex_init(&quarantine->lock, NULL);
    allocator->quarantine = quarantine;
    return ds_accel__allocator_record_history(allocator,
                                              DS_ACCEL__HISTORY_ON | DS_ACCEL__HISTORY_STACKS,
                                              allocator->options.history_entries);
}

void ds_accel__debug_destroy(struct ds_accel__allocator *allocator)
{
    if (allocator->quarantine != NULL) {
        pthread_mutex_destroy(&allocator->quarantine->lock);
        free(allocator->quarantine->ring);
        free(allocator->quarantine);
    }
}

/* Add a block to the quarantine. The caller holds quarantine->lock. False: out of memory. */
static bool hold(struct ds_accel__quarantine *quarantine, struct ds_accel__block *block,
                 bool is_filled)
{
    if (quarantine->count == quarantine->capacity) {
        size_t capacity = quarantine->capacity == 0 ? 64 : quarantine->capacity * 2;
        struct held *larger = malloc(capacity * sizeof(*larger));

        if (larger == NULL) {
            return false;
        }
        for (size_t i = 0; i < quarantine->count; i++) {
            larger[i] = quarantine->ring[(quarantine->first + i) & (quarantine->capacity - 1)];
        }
        free(quarantine->ring);
        quarantine->ring = larger;
        quarantine->capacity = capacity;
        quarantine->first = 0;
    }
    assert(quarantine->count < quarantine->capacity);
    quarantine->ring[(quarantine->first + quarantine->count++) & (quarantine->capacity - 1)] =
        (struct held){block, is_filled};
    quarantine->size_bytes += block->size_bytes;
    return true;
}

/* Check the oldest block of the quarantine and make its memory available again. ERR_INVALID: the
 * block was written after it was freed. The caller holds quarantine->lock. */
static int32_t let_go(struct ds_accel__allocator *allocator)
{
    struct ds_accel__quarantine *quarantine = allocator->quarantine;
    struct held held = quarantine->ring[quarantine->first & (quarantine->capacity - 1)];
    struct ds_accel__block *block = held.block;
    struct ds_accel__arena *home = block->home;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];
    uint64_t damage = block->fit_bytes;
    int32_t status = DS_ACCEL_OK;

    assert(quarantine->count > 0 && quarantine->size_bytes >= block->size_bytes);
    assert(block->is_deferred == DS_ACCEL__DEFERRED_HELD);
    quarantine->first++;
    quarantine->count--;
    quarantine->size_bytes -= block->size_bytes;
    if (held.is_filled && finish(home)) {
        damage = find_damage(allocator, block->address, block->fit_bytes, FILL_FREED);
    }
    if (damage < block->fit_bytes) {
        char allocated[160];
        char freed[160];

        ds_accel__history_describe(allocator, block->frames, allocated, sizeof(allocated));
        ds_accel__history_describe(allocator, block->freed_frames, freed, sizeof(freed));
        status = ds_accel__error(DS_ACCEL_ERR_INVALID,
                                 "use after free: byte %llu of the %llu bytes at %p was written "
                                 "after they were freed; allocated %s; freed %s",
                                 (unsigned long long)damage,
                                 (unsigned long long)block->requested_bytes,
                                 (void *)(uintptr_t)block->address, allocated, freed);
    }
    memset(changes, 0, sizeof(changes));
    ds_accel__latch_take(&home->latch);
    ds_accel__pending_unlink(home, block);
    block->is_deferred = DS_ACCEL__DEFERRED_NOT;
    changes[block->kind].removed.lane[DS_ACCEL__LANE_ACTIVE]++;
    changes[block->kind].removed.lane[DS_ACCEL__LANE_ACTIVE_BYTES] += (int64_t)block->size_bytes;
    ds_accel__block_release(home, block, changes);
    ds_accel__figures_finish(home, changes, NULL, DS_ACCEL__BLOCK_FREE);
    return status;
}

/* Check the oldest blocks and remove them from the quarantine until at most keep_bytes remain. If
 * several blocks were written after they were freed, the error describes the first of them. */
int32_t ds_accel__debug_flush(struct ds_accel__allocator *allocator, uint64_t keep_bytes)
{
    struct ds_accel__quarantine *quarantine = allocator->quarantine;
    char said[600] = "";
    int32_t status = DS_ACCEL_OK;

    if (quarantine == NULL) {
        return DS_ACCEL_OK;
    }
    pthread_mutex_lock(&quarantine->lock);
    while (quarantine->count > 0 && (quarantine->size_bytes > keep_bytes || keep_bytes == 0)) {
        int32_t found = let_go(allocator);

        if (found < 0 && status == DS_ACCEL_OK) {
            status = found;
            ds_accel__copy(said, sizeof(said), ds_accel_last_error());
        }
    }
    pthread_mutex_unlock(&quarantine->lock);
    return status < 0 ? ds_accel__error(status, "%s", said) : DS_ACCEL_OK;
}

/* ---- freeing -------------------------------------------------------------------------------- */

/* Wait for all streams that used the block, and for the freeing stream. False: a wait failed, or a
 * stream captures. */
static bool wait_for_users(const struct ds_accel__block *block, struct ds_accel__arena *freeing)
{
    struct ds_accel__arena *arenas[] = {block->home, block->user, freeing};
    bool is_done = true;

    for (size_t i = 0; i < ARRAY_SIZE(arenas) && is_done; i++) {
        is_done = arenas[i] == NULL || finish(arenas[i]);
    }
    for (uint32_t i = 0; block->uses != NULL && i < block->uses->count && is_done; i++) {
        is_done = finish(block->uses->arenas[i]);
    }
    return is_done;
}

static int32_t check_zone(const struct ds_accel__block *block)
{
    struct ds_accel__allocator *allocator = block->home->allocator;
    uint64_t zone_bytes = block->fit_bytes - block->requested_bytes;
    uint64_t damage =
        find_damage(allocator, block->address + block->requested_bytes, zone_bytes, FILL_ZONE);
    char allocated[160];

    assert(block->fit_bytes >= block->requested_bytes + DS_ACCEL__ZONE_BYTES);
    if (damage == zone_bytes) {
        return DS_ACCEL_OK;
    }
    ds_accel__history_describe(allocator, block->frames, allocated, sizeof(allocated));
    return ds_accel__error(DS_ACCEL_ERR_INVALID,
                           "mem_free: the %llu bytes at %p were written past their end, %llu bytes "
                           "behind it; allocated %s",
                           (unsigned long long)block->requested_bytes,
                           (void *)(uintptr_t)block->address, (unsigned long long)damage + 1,
                           allocated);
}

int32_t ds_accel__debug_free(struct ds_accel__block *block, struct ds_accel__arena *freeing)
{
    struct ds_accel__arena *home = block->home;
    struct ds_accel__allocator *allocator = home->allocator;
    bool is_done = wait_for_users(block, freeing);
    int32_t status = is_done && block->is_filled ? check_zone(block) : DS_ACCEL_OK;
    bool is_filled = is_done && fill(home, block->address, block->fit_bytes, FILL_FREED);
    int32_t later;
    char said[600];

    ds_accel__layer_block_free(allocator->device, (void *)(uintptr_t)block->address, NULL);
    if (!is_done) { /* free the block unchecked, without a wait on the host */
        return ds_accel__free_in_order(block, freeing);
    }
    ds_accel__free_to_hold(block);
    pthread_mutex_lock(&allocator->quarantine->lock);
    is_done = hold(allocator->quarantine, block, is_filled);
    pthread_mutex_unlock(&allocator->quarantine->lock);
    if (!is_done) {
        return ds_accel__no_memory(); /* the block is never reused */
    }
    ds_accel__copy(said, sizeof(said), status < 0 ? ds_accel_last_error() : "");
    later = allocator->options.quarantine_bytes > 0
                ? ds_accel__debug_flush(allocator, allocator->options.quarantine_bytes)
                : ds_accel__debug_flush(allocator, 0);
    return status < 0 ? ds_accel__error(status, "%s", said) : later;
}
