/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Arenas, and operations on a whole allocator: trim, limit, inspect, create and destroy. An arena
 * is created when its stream first uses the common pool or a private pool. After the stream or the
 * pool was destroyed and the arena's memory was released, the arena is reused for another stream.
 */
#include "base/fork.h"
#include "base/text.h"
#include "host/layers.h"
#include "runtime/allocator/allocator.h"
#include "runtime/caching.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- arenas --------------------------------------------------------------------------------- */

/* Whether all current statistics of the arena are 0. In an arena without memory, other values mean
 * that a thread still has to count an operation. */
static bool is_settled(const struct ds_accel__arena *arena)
{
    int64_t sum = 0;

    for (unsigned i = 0; i < DS_ACCEL__LANE_COUNT; i++) {
        sum |= arena->figures.current[DS_ACCEL__SMALL].lane[i] |
               arena->figures.current[DS_ACCEL__LARGE].lane[i];
    }
    return sum == 0;
}

/* Whether the arena can be reused: its stream or pool was destroyed, and no memory, thread or block
 * refers to it. The caller holds the locks of the allocator and of the arena. */
static bool is_over(const struct ds_accel__arena *arena)
{
    bool is_closed = arena->is_gone || (arena->owner != NULL && arena->owner->is_gone);

    return is_closed && arena->segments == NULL && arena->pending == NULL && is_settled(arena) &&
           __atomic_load_n(&arena->use_count, __ATOMIC_RELAXED) == 0;
}

/* Move the arenas of destroyed streams and pools that have no memory left to the list of spare
 * arenas. The caller holds the allocator's lock. */
static void collect_arenas(struct ds_accel__allocator *allocator)
{
    struct ds_accel__arena **place = &allocator->arenas;

    while (*place != NULL) {
        struct ds_accel__arena *arena = *place;
        bool is_unused;

        ds_accel__latch_take(&arena->latch);
        is_unused = is_over(arena);
        ds_accel__latch_release(&arena->latch);
        if (is_unused) {
            assert(arena->undone == NULL && allocator->arena_count > 0);
            ds_accel__figures_retire(arena);
            ds_accel__mark_put(allocator, arena->gone);
            arena->gone = NULL;
            *place = arena->next;
            ds_accel__private_shrink(allocator, arena->owner);
            arena->owner = NULL;
            arena->next = allocator->spare_arenas;
            allocator->spare_arenas = arena;
            allocator->arena_count--;
        } else {
            place = &arena->next;
        }
    }
}

struct ds_accel__arena *ds_accel__arena_make(struct ds_accel__allocator *allocator,
                                             ds_accel_plugin_stream_t *stream,
                                             const struct ds_accel__arena *common,
                                             struct ds_accel__private *owner)
{
    struct ds_accel__arena *arena;

    collect_arenas(allocator);
    arena = allocator->spare_arenas;
    if (arena != NULL) {
        allocator->spare_arenas = arena->next;
        assert(arena->segments == NULL && arena->pending == NULL && arena->undone == NULL);
        assert(arena->gone == NULL && arena->owner == NULL);
    } else {
        arena = aligned_alloc(_Alignof(struct ds_accel__arena), sizeof(*arena));
        if (arena == NULL) {
            return NULL;
        }
        memset(arena, 0, sizeof(*arena));
        arena->allocator = allocator;
    }
    /* A thread that used the arena before it became spare may still hold the arena's lock for a
     * moment. */
    ds_accel__latch_take(&arena->latch);
    arena->stream = stream;
    arena->is_gone = 0;
    arena->is_unmarked = 0;
    arena->is_capturing = common != NULL ? common->is_capturing : 0;
    arena->owner = owner;
    arena->capture = NULL;
    arena->id = common != NULL ? common->id : ++allocator->last_arena_id;
    arena->stream_id = arena->id - 1;
    ds_accel__arena_renew(arena);
    ds_accel__latch_release(&arena->latch);
    if (owner != NULL) {
        owner->arena_count++;
    }
    arena->next = allocator->arenas;
    allocator->arenas = arena;
    allocator->arena_count++;
    return arena;
}

struct ds_accel__arena *ds_accel__allocator_arena(struct ds_accel__allocator *allocator,
                                                  ds_accel_plugin_stream_t *stream)
{
    struct ds_accel__arena *arena;

    pthread_mutex_lock(&allocator->lock);
    arena = ds_accel__arena_make(allocator, stream, NULL, NULL);
    pthread_mutex_unlock(&allocator->lock);
    return arena;
}

void ds_accel__allocator_stream_gone(struct ds_accel__arena *arena)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    struct ds_accel__mark *mark = NULL;
    uint64_t id = arena->id;
    bool is_marked;

    pthread_mutex_lock(&allocator->lock);
    /* False: the stream captures, or no event can be recorded and a wait for the stream failed. A
     * later user of the arena's memory then waits for the device. */
    is_marked = !arena->is_capturing && ds_accel__mark_record(arena, &mark) >= 0;
    assert(is_marked || mark == NULL);
    for (struct ds_accel__arena *each = allocator->arenas; each != NULL; each = each->next) {
        if (each->id != id) {
            continue;
        }
        ds_accel__latch_take(&each->latch);
        if (mark != NULL) {
            pthread_mutex_lock(&allocator->mark_lock);
            assert(mark->reference_count > 0);
            mark->reference_count++;
            pthread_mutex_unlock(&allocator->mark_lock);
        }
        each->gone = mark;
        __atomic_store_n(&each->is_unmarked, !is_marked, __ATOMIC_RELAXED);
        __atomic_store_n(&each->is_gone, 1, __ATOMIC_RELEASE);
        each->is_capturing = 0;
        each->stream = NULL;
        ds_accel__latch_release(&each->latch);
    }
    ds_accel__mark_put(allocator, mark);
    pthread_mutex_unlock(&allocator->lock);
}

/* ---- create, trim and destroy --------------------------------------------------------------- */

int32_t ds_accel__allocator_trim(struct ds_accel__allocator *allocator, uint64_t keep_bytes)
{
    int32_t status = ds_accel__debug_flush(allocator, 0);

    pthread_mutex_lock(&allocator->lock);
    allocator->sync_count++;
    pthread_mutex_unlock(&allocator->lock);
    ds_accel__deferred_settle(allocator);
    ds_accel__pending_finish(allocator, keep_bytes);
    ds_accel__segments_release(allocator, keep_bytes, UINT64_MAX);
    return status;
}

void ds_accel__allocator_set_limit(struct ds_accel__allocator *allocator, uint64_t limit_bytes)
{
    pthread_mutex_lock(&allocator->lock);
    allocator->limit_bytes = limit_bytes != 0 ? limit_bytes : UINT64_MAX;
    if (allocator->options.gc_threshold > 0 && allocator->limit_bytes != UINT64_MAX) {
        __atomic_or_fetch(&allocator->special, DS_ACCEL__SPECIAL_GARBAGE, __ATOMIC_RELEASE);
    } else {
        __atomic_and_fetch(&allocator->special, ~DS_ACCEL__SPECIAL_GARBAGE, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&allocator->lock);
}

void ds_accel__allocator_set_callback(struct ds_accel__allocator *allocator,
                                      ds_accel_memory_failure_t callback, void *user_data)
{
    pthread_mutex_lock(&allocator->lock);
    allocator->callback = callback;
    allocator->callback_data = user_data;
    pthread_mutex_unlock(&allocator->lock);
}

void ds_accel__allocator_free_space(struct ds_accel__allocator *allocator, uint64_t *free_bytes_out,
                                    uint64_t *largest_bytes_out)
{
    uint64_t sum = 0;
    uint64_t largest = 0;

    ds_accel__pending_settle(allocator);
    pthread_mutex_lock(&allocator->lock);
    ds_accel__arenas_lock(allocator);
    ds_accel__arenas_flush(allocator);
    for (const struct ds_accel__arena *arena = allocator->arenas; arena != NULL;
         arena = arena->next) {
        ds_accel__arena_free_space(arena, &sum, &largest);
    }
    ds_accel__arenas_unlock(allocator);
    pthread_mutex_unlock(&allocator->lock);
    *free_bytes_out = sum;
    *largest_bytes_out = largest;
}

bool ds_accel__allocator_find(struct ds_accel__allocator *allocator, const void *pointer,
                              uint64_t *address_out, uint64_t *size_bytes_out)
{
    const struct ds_accel__block *block;
    bool is_live;

    pthread_mutex_lock(&allocator->lock);
    ds_accel__arenas_lock(allocator);
    block = ds_accel__block_around(allocator, (uint64_t)(uintptr_t)pointer);
    is_live = block != NULL && block->state == DS_ACCEL__BLOCK_LIVE;
    if (is_live) {
        *address_out = block->address;
        *size_bytes_out = block->requested_bytes;
    }
    ds_accel__arenas_unlock(allocator);
    pthread_mutex_unlock(&allocator->lock);
    return is_live;
}

uint64_t ds_accel__allocator_available(struct ds_accel__allocator *allocator, uint64_t device_bytes)
{
    uint64_t reserved;
    uint64_t idle;
    uint64_t room;

    ds_accel__pending_settle(allocator);
    pthread_mutex_lock(&allocator->lock);
    ds_accel__arenas_lock(allocator);
    ds_accel__arenas_flush(allocator);
    idle = ds_accel__segments_idle_bytes(allocator);
    ds_accel__arenas_unlock(allocator);
    reserved = (uint64_t)allocator->segment_bytes[DS_ACCEL__ALL].current;
    room = allocator->limit_bytes > reserved ? allocator->limit_bytes - reserved : 0;
    pthread_mutex_unlock(&allocator->lock);
    return (device_bytes < room ? device_bytes : room) + idle;
}

/* Read the capabilities of the backend and of the device. */
static void learn(struct ds_accel__allocator *allocator)
{
    const struct ds_accel_plugin *table = allocator->table;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    uint64_t minimum = 0;
    uint64_t recommended = 0;

    allocator->largest_bytes = UINT64_MAX;
    allocator->has_events =
        !ds_accel__slot_is_absent(table, offsetof(struct ds_accel_plugin, event_create)) &&
        !ds_accel__slot_is_absent(table, offsetof(struct ds_accel_plugin, event_record));
    if (table->device_info(allocator->device, &info, &error) == DS_ACCEL_OK) {
        allocator->is_synchronized = (info.flags & DS_ACCEL_FLAG_SYNCHRONIZED) != 0;
        allocator->device_index = info.device_index;
        allocator->largest_bytes = info.max_allocation_bytes != 0 ? info.max_allocation_bytes
                                                                  : UINT64_MAX;
    }
    if (allocator->options.growable_segments &&
        table->vmem_granularity(allocator->device, 0, &minimum, &recommended, &error) ==
            DS_ACCEL_OK) {
        allocator->granule_bytes = recommended >= DS_ACCEL__UNIT ? recommended : minimum;
    }
}

static uint64_t limit_of(struct ds_accel__allocator *allocator)
{
    const struct ds_accel__allocator_options *options = &allocator->options;
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint64_t limit = options->limit_bytes != 0 ? options->limit_bytes : UINT64_MAX;

    if (options->fraction > 0 &&
        allocator->table->mem_info(allocator->device, &info, &error) == DS_ACCEL_OK) {
        uint64_t part = (uint64_t)((double)info.total_bytes * options->fraction);

        limit = part < limit ? part : limit;
    }
    return limit;
}

int32_t ds_accel__allocator_create(const struct ds_accel_plugin *table,
                                   ds_accel_plugin_device_t *device,
                                   const struct ds_accel__allocator_options *options,
                                   struct ds_accel__allocator **allocator_out)
{
    static uint64_t last_id;
    struct ds_accel__allocator *allocator = aligned_alloc(64, sizeof(*allocator));

    if (allocator == NULL) {
        return ds_accel__no_memory();
    }
    memset(allocator, 0, sizeof(*allocator));
    allocator->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
    allocator->table = table;
    allocator->device = device;
    allocator->options = *options;
    if (ds_accel__index_init(&allocator->index) < 0) {
        free(allocator);
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    pthread_mutex_init(&allocator->lock, NULL);
    pthread_mutex_init(&allocator->grow_lock, NULL);
    pthread_mutex_init(&allocator->mark_lock, NULL);
    learn(allocator);
    ds_accel__allocator_set_limit(allocator, limit_of(allocator));
    if (options->mode != DS_ACCEL__ALLOCATOR_CACHING || options->roundup_power2_divisions > 1) {
        allocator->special |= DS_ACCEL__SPECIAL_MODE;
    }
    if (__atomic_load_n(&ds_accel__layers_on, __ATOMIC_ACQUIRE) != 0) {
        allocator->special |= DS_ACCEL__SPECIAL_LAYERS; /* layers are notified of each block */
    }
    if ((options->mode == DS_ACCEL__ALLOCATOR_DEBUG && ds_accel__debug_init(allocator) < 0) ||
        (options->history_entries > 0 && options->mode != DS_ACCEL__ALLOCATOR_DEBUG &&
         ds_accel__allocator_record_history(allocator,
                                            DS_ACCEL__HISTORY_ON | options->history_flags,
                                            options->history_entries) < 0)) {
        ds_accel__allocator_destroy(allocator);
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    *allocator_out = allocator;
    return DS_ACCEL_OK;
}

void ds_accel__allocator_attach(struct ds_accel__allocator *allocator, ds_accel_device_t *handle,
                                uint32_t device_index)
{
    allocator->handle = handle;
    allocator->device_index = device_index;
}

/* Return all memory of an arena to the driver; returns the number of live blocks. */
static uint64_t empty(struct ds_accel__arena *arena)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    uint64_t live_count = 0;

    while (arena->segments != NULL) {
        struct ds_accel__segment *segment = arena->segments;

        for (struct ds_accel__block *block = segment->first; block != NULL; block = block->next) {
            live_count += block->state == DS_ACCEL__BLOCK_LIVE;
            ds_accel__uses_drop(block);
            ds_accel__waits_put(allocator, block->waits);
        }
        ds_accel__segment_unlink(arena, segment);
        ds_accel__segment_destroy(allocator, segment);
    }
    return live_count;
}

uint64_t ds_accel__allocator_destroy(struct ds_accel__allocator *allocator)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint64_t live_count = 0;

    if (allocator == NULL) {
        return 0;
    }
    ds_accel__layers_own_begin();
    allocator->table->device_synchronize(allocator->device, UINT64_MAX, &error);
    ds_accel__layers_own_end();
    for (struct ds_accel__arena *arena = allocator->arenas; arena != NULL; arena = arena->next) {
        live_count += empty(arena);
    }
    for (int i = 0; i < 2; i++) {
        struct ds_accel__arena **list = i == 0 ? &allocator->arenas : &allocator->spare_arenas;

        while (*list != NULL) {
            struct ds_accel__arena *next = (*list)->next;

            ds_accel__mark_put(allocator, (*list)->gone);
            free(*list);
            *list = next;
        }
    }
    while (allocator->privates != NULL) {
        struct ds_accel__private *next = allocator->privates->next;

        free(allocator->privates);
        allocator->privates = next;
    }
    ds_accel__marks_destroy(allocator);
    ds_accel__debug_destroy(allocator);
    ds_accel__history_destroy(allocator);
    ds_accel__index_destroy(&allocator->index);
    pthread_mutex_destroy(&allocator->lock);
    pthread_mutex_destroy(&allocator->grow_lock);
    pthread_mutex_destroy(&allocator->mark_lock);
    free(allocator);
    return live_count;
}
