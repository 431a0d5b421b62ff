/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What comes from the driver and goes back to it. Asking a driver for memory takes long, and may
 * wait for the whole device: no lock is held meanwhile but the one that lets one segment grow at a
 * time. Giving back waits first for the streams that used the memory, since not every runtime's own
 * call does.
 *
 * A segment that grows is a range of addresses, as long as the device's memory, with memory under
 * its beginning. More is put under its end when it is too short, and taken away from its end when
 * what is there is free: pieces of different sizes follow each other without seams.
 */
#include "allocator.h"

#include <stdlib.h>
#include <string.h>

static uint64_t round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

/* ---- in and out of an arena ----------------------------------------------------------------- */

static void link_segment(struct ds_accel__arena *arena, struct ds_accel__segment *segment)
{
    segment->home = arena;
    segment->stream_id = arena->stream_id;
    segment->previous = NULL;
    segment->next = arena->segments;
    if (arena->segments != NULL) {
        arena->segments->previous = segment;
    }
    arena->segments = segment;
    for (struct ds_accel__block *block = segment->first; block != NULL; block = block->next) {
        __atomic_store_n(&block->home, arena, __ATOMIC_RELAXED);
    }
}

void ds_accel__segment_unlink(struct ds_accel__arena *arena, struct ds_accel__segment *segment)
{
    if (segment->previous != NULL) {
        segment->previous->next = segment->next;
    } else {
        arena->segments = segment->next;
    }
    if (segment->next != NULL) {
        segment->next->previous = segment->previous;
    }
}

static void free_segment(struct ds_accel__segment *segment)
{
    free(segment->pieces);
    free(segment);
}

/* ---- virtual memory ------------------------------------------------------------------------- */

static bool keep_piece(struct ds_accel__segment *segment)
{
    uint32_t capacity = segment->piece_capacity == 0 ? 8 : segment->piece_capacity * 2;
    uint64_t *larger;

    if (segment->piece_count < segment->piece_capacity) {
        return true;
    }
    larger = realloc(segment->pieces, capacity * sizeof(*larger));
    if (larger == NULL) {
        ds_accel__no_memory();
        return false;
    }
    segment->pieces = larger;
    segment->piece_capacity = capacity;
    return true;
}

/* Put memory under the segment's end. Only the holder of grow_lock changes the pieces. */
static int32_t map_piece(struct ds_accel__allocator *allocator, struct ds_accel__segment *segment,
                         uint64_t size_bytes)
{
    const struct ds_accel_plugin *table = allocator->table;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    void *address = (void *)(uintptr_t)(segment->address + segment->size_bytes);
    ds_accel_plugin_vmem_t *memory = NULL;
    int32_t status;

    if (!keep_piece(segment)) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    status = table->vmem_create(allocator->device, size_bytes, 0, &memory, &error);
    if (status >= 0) {
        status = table->vmem_map(allocator->device, address, size_bytes, memory, 0, &error);
        if (status >= 0) {
            status = table->vmem_set_access(allocator->device, address, size_bytes,
                                            DS_ACCEL_VMEM_ACCESS_READ_WRITE, &error);
            if (status < 0) {
                table->vmem_unmap(allocator->device, address, size_bytes, &ignored);
            }
        }
        table->vmem_destroy(memory); /* the mapping keeps it */
    }
    if (status < 0) {
        return ds_accel__fail(status, &error);
    }
    segment->pieces[segment->piece_count++] = size_bytes;
    return DS_ACCEL_OK;
}

/* A range without memory, of all that the device could ever hold and an eighth more. */
static struct ds_accel__segment *reserve(struct ds_accel__allocator *allocator, uint32_t kind)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel__segment *segment = calloc(1, sizeof(*segment));
    uint64_t size_bytes;
    void *address = NULL;

    if (segment == NULL ||
        allocator->table->mem_info(allocator->device, &info, &error) != DS_ACCEL_OK ||
        info.total_bytes == 0) {
        free(segment);
        return NULL;
    }
    size_bytes = round_up(info.total_bytes + info.total_bytes / 8, allocator->granule_bytes);
    if (allocator->table->vmem_reserve(allocator->device, size_bytes, allocator->granule_bytes,
                                       NULL, 0, &address, &error) != DS_ACCEL_OK) {
        free(segment);
        return NULL;
    }
    segment->address = (uint64_t)(uintptr_t)address;
    segment->reserved_bytes = size_bytes;
    segment->kind = kind;
    return segment;
}

/* ---- asking the driver ---------------------------------------------------------------------- */

static uint64_t wanted_size(const struct ds_accel__allocator_options *options, uint32_t kind,
                            uint64_t fit_bytes)
{
    if (options->mode == DS_ACCEL__ALLOCATOR_OFF) {
        return fit_bytes;
    }
    if (kind == DS_ACCEL__SMALL && fit_bytes <= options->small_segment_bytes) {
        return options->small_segment_bytes;
    }
    if (fit_bytes < options->medium_limit_bytes && fit_bytes <= options->medium_segment_bytes) {
        return options->medium_segment_bytes;
    }
    return round_up(fit_bytes, options->large_step_bytes);
}

/* Rounding up must not make too much of what the driver gives. */
static uint64_t segment_size(const struct ds_accel__allocator *allocator, uint32_t kind,
                             uint64_t fit_bytes)
{
    uint64_t size_bytes = wanted_size(&allocator->options, kind, fit_bytes);

    if (size_bytes > allocator->largest_bytes) {
        size_bytes = fit_bytes < allocator->largest_bytes ? allocator->largest_bytes : fit_bytes;
        size_bytes = size_bytes / DS_ACCEL__UNIT * DS_ACCEL__UNIT;
    }
    return size_bytes;
}

/* Within the limit? Then the bytes count as asked for until answered() is called. */
static int32_t ask(struct ds_accel__allocator *allocator, uint64_t size_bytes)
{
    uint64_t reserved;

    pthread_mutex_lock(&allocator->lock);
    reserved = (uint64_t)allocator->segment_bytes[DS_ACCEL__ALL].current + allocator->asked_bytes;
    if (size_bytes > allocator->limit_bytes || reserved > allocator->limit_bytes - size_bytes) {
        pthread_mutex_unlock(&allocator->lock);
        return ds_accel__error(
            DS_ACCEL_ERR_NO_MEMORY, "%llu bytes more would pass the limit of %llu reserved bytes",
            (unsigned long long)size_bytes, (unsigned long long)allocator->limit_bytes);
    }
    allocator->asked_bytes += size_bytes;
    pthread_mutex_unlock(&allocator->lock);
    return DS_ACCEL_OK;
}

/* The allocator's lock is held. */
static void answered(struct ds_accel__allocator *allocator, uint32_t kind, uint64_t size_bytes,
                     bool is_new, bool is_given)
{
    allocator->asked_bytes -= size_bytes;
    if (is_given) {
        allocator->device_alloc_count++;
        ds_accel__figures_segment(allocator, kind, is_new, (int64_t)size_bytes);
    }
}

/* One piece of the driver's, in a struct of its own. */
static int32_t allocate(struct ds_accel__allocator *allocator, uint32_t kind, uint64_t size_bytes,
                        uint64_t align_bytes, struct ds_accel__segment **segment_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel__segment *segment = calloc(1, sizeof(*segment));
    void *pointer = NULL;
    int32_t status;

    if (segment == NULL) {
        return ds_accel__no_memory();
    }
    status = allocator->table->mem_alloc(allocator->device, size_bytes, align_bytes, 0, &pointer,
                                         &error);
    if (status >= 0 && ((uintptr_t)pointer & (align_bytes - 1)) != 0) {
        allocator->table->mem_free(allocator->device, pointer, &error);
        free(segment);
        return ds_accel__error(DS_ACCEL_ERR_ABI, "mem_alloc: %p is not aligned to %llu bytes",
                               pointer, (unsigned long long)align_bytes);
    }
    if (status < 0 || pointer == NULL) {
        free(segment);
        return status < 0 ? ds_accel__fail(status, &error)
                          : ds_accel__error(DS_ACCEL_ERR_ABI, "mem_alloc gave no address");
    }
    segment->address = (uint64_t)(uintptr_t)pointer;
    segment->size_bytes = size_bytes;
    segment->kind = kind;
    *segment_out = segment;
    return DS_ACCEL_OK;
}

/* The segment's new end as a taken block, its last; the locks of allocator and arena are held. */
static struct ds_accel__block *append(struct ds_accel__arena *arena,
                                      struct ds_accel__segment *segment, uint64_t address,
                                      uint64_t size_bytes)
{
    struct ds_accel__block *block = ds_accel__index_add(&arena->allocator->index, address);

    if (block == NULL) {
        ds_accel__no_memory();
        return NULL;
    }
    __atomic_store_n(&block->home, arena, __ATOMIC_RELAXED);
    block->user = arena;
    block->kind = (uint8_t)segment->kind;
    block->segment = segment;
    block->size_bytes = size_bytes;
    block->previous = segment->last;
    if (segment->last != NULL) {
        segment->last->next = block;
    } else {
        segment->first = block;
    }
    segment->last = block;
    return block;
}

static int32_t obtain_plain(struct ds_accel__arena *arena, uint32_t kind, uint64_t fit_bytes,
                            uint64_t align_bytes, struct ds_accel__change *changes,
                            struct ds_accel__block **block_out)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    uint64_t size_bytes = segment_size(allocator, kind, fit_bytes);
    struct ds_accel__segment *segment = NULL;
    struct ds_accel__block *block = NULL;
    int32_t status = ask(allocator, size_bytes);

    if (status < 0) {
        return status;
    }
    status = allocate(allocator, kind, size_bytes, align_bytes, &segment);
    pthread_mutex_lock(&allocator->lock);
    answered(allocator, kind, size_bytes, true, segment != NULL);
    if (segment == NULL) {
        pthread_mutex_unlock(&allocator->lock);
        return status;
    }
    ds_accel__latch_take(&arena->latch);
    pthread_mutex_unlock(&allocator->lock);
    block = append(arena, segment, segment->address, size_bytes);
    if (block == NULL) {
        ds_accel__latch_release(&arena->latch);
        ds_accel__segment_destroy(allocator, segment);
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    link_segment(arena, segment);
    ds_accel__history_segment(allocator, segment, segment->address, size_bytes,
                              DS_ACCEL__ACTION_SEGMENT_ALLOC);
    *block_out = ds_accel__block_cut(arena, block, fit_bytes, align_bytes, NULL, changes);
    return DS_ACCEL_OK;
}

/* ---- growing -------------------------------------------------------------------------------- */

static struct ds_accel__segment *find_growable(const struct ds_accel__arena *arena, uint32_t kind)
{
    struct ds_accel__segment *segment = arena->segments;

    while (segment != NULL && (segment->reserved_bytes == 0 || segment->kind != kind)) {
        segment = segment->next;
    }
    return segment;
}

/* How much more memory the segment needs at its end. The arena's lock is held. */
static uint64_t missing_bytes(const struct ds_accel__segment *segment, uint64_t fit_bytes,
                              uint64_t align_bytes)
{
    const struct ds_accel__block *last = segment->last;
    uint64_t start = segment->address + segment->size_bytes;
    uint64_t end;

    if (last != NULL && last->state == DS_ACCEL__BLOCK_FREE) {
        start = last->address;
    }
    end = round_up(start, align_bytes) + fit_bytes;
    return end - segment->address > segment->size_bytes
               ? end - segment->address - segment->size_bytes
               : 0;
}

/* Memory is under the segment's new end: make it a block. Only grow_lock is held; on success the
 * arena's lock too at the end. */
static int32_t adopt(struct ds_accel__arena *arena, struct ds_accel__segment *segment, bool is_new,
                     uint64_t more, struct ds_accel__change *changes)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    uint64_t end = segment->address + segment->size_bytes;
    struct ds_accel__block *block;

    pthread_mutex_lock(&allocator->lock);
    answered(allocator, segment->kind, more, is_new, true);
    ds_accel__latch_take(&arena->latch);
    pthread_mutex_unlock(&allocator->lock);
    ds_accel__bins_flush(arena, changes);
    /* The last block has a neighbour from now on: it is counted anew. */
    if (segment->last != NULL && segment->last->state == DS_ACCEL__BLOCK_FREE) {
        struct ds_accel__block *last = segment->last;

        ds_accel__block_unlink(arena, last, changes);
        block = append(arena, segment, end, more);
        ds_accel__block_release(arena, last, changes);
    } else {
        block = append(arena, segment, end, more);
    }
    if (block == NULL) {
        ds_accel__figures_finish(arena, changes, NULL, DS_ACCEL__BLOCK_FREE);
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    segment->size_bytes += more;
    if (is_new) {
        link_segment(arena, segment);
    }
    ds_accel__history_segment(allocator, segment, end, more, DS_ACCEL__ACTION_SEGMENT_MAP);
    ds_accel__block_release(arena, block, changes);
    return DS_ACCEL_OK;
}

static void unmap_last(struct ds_accel__allocator *allocator, struct ds_accel__segment *segment,
                       uint64_t end)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint64_t piece;

    if (segment->piece_count == 0) {
        return;
    }
    piece = segment->pieces[--segment->piece_count];
    allocator->table->vmem_unmap(allocator->device, (void *)(uintptr_t)(end - piece), piece,
                                 &error);
}

/* grow_lock is held. */
static int32_t grow(struct ds_accel__arena *arena, struct ds_accel__segment *segment, bool is_new,
                    uint64_t fit_bytes, uint64_t align_bytes, struct ds_accel__change *changes)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    uint64_t step = allocator->granule_bytes;
    uint64_t more;
    int32_t status;

    ds_accel__latch_take(&arena->latch);
    more = missing_bytes(segment, fit_bytes, align_bytes);
    ds_accel__latch_release(&arena->latch);
    more = round_up(more == 0 ? 1 : more, step);
    if (more < segment_size(allocator, segment->kind, DS_ACCEL__UNIT)) {
        more = round_up(segment_size(allocator, segment->kind, DS_ACCEL__UNIT), step);
    }
    if (more > segment->reserved_bytes - segment->size_bytes) {
        return ds_accel__error(DS_ACCEL_ERR_NO_MEMORY, "the range of addresses is used up");
    }
    status = ask(allocator, more);
    if (status < 0) {
        return status;
    }
    status = map_piece(allocator, segment, more);
    if (status < 0) {
        pthread_mutex_lock(&allocator->lock);
        answered(allocator, segment->kind, more, is_new, false);
        pthread_mutex_unlock(&allocator->lock);
        return status;
    }
    status = adopt(arena, segment, is_new, more, changes);
    if (status < 0) {
        uint64_t end = segment->address + segment->size_bytes + more;

        unmap_last(allocator, segment, end);
        pthread_mutex_lock(&allocator->lock);
        allocator->device_free_count++;
        ds_accel__figures_segment(allocator, segment->kind, -(int64_t)is_new, -(int64_t)more);
        pthread_mutex_unlock(&allocator->lock);
    }
    return status;
}

/* ERR_UNSUPPORTED: there is no range to be had. */
static int32_t obtain_grown(struct ds_accel__arena *arena, uint32_t kind, uint64_t fit_bytes,
                            uint64_t align_bytes, struct ds_accel__change *changes,
                            struct ds_accel__block **block_out)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel__segment *segment;
    bool is_new;
    int32_t status;

    pthread_mutex_lock(&allocator->grow_lock);
    ds_accel__latch_take(&arena->latch);
    segment = find_growable(arena, kind);
    ds_accel__latch_release(&arena->latch);
    is_new = segment == NULL;
    if (is_new) {
        segment = reserve(allocator, kind);
    }
    if (segment == NULL) {
        pthread_mutex_unlock(&allocator->grow_lock);
        return DS_ACCEL_ERR_UNSUPPORTED;
    }
    status = grow(arena, segment, is_new, fit_bytes, align_bytes, changes);
    if (segment->home == NULL) { /* it did not become the arena's */
        allocator->table->vmem_release(allocator->device, (void *)(uintptr_t)segment->address,
                                       segment->reserved_bytes, &error);
        free_segment(segment);
    }
    pthread_mutex_unlock(&allocator->grow_lock);
    if (status >= 0) { /* the arena's lock is held */
        *block_out = ds_accel__block_take(arena, kind, fit_bytes, align_bytes, changes);
    }
    return status;
}

int32_t ds_accel__segment_obtain(struct ds_accel__arena *arena, uint32_t kind, uint64_t fit_bytes,
                                 uint64_t align_bytes, struct ds_accel__change *changes,
                                 struct ds_accel__block **block_out)
{
    const struct ds_accel__allocator *allocator = arena->allocator;
    int32_t status = DS_ACCEL_ERR_UNSUPPORTED;

    *block_out = NULL;
    if (allocator->options.growable_segments && allocator->granule_bytes != 0 &&
        allocator->options.mode != DS_ACCEL__ALLOCATOR_OFF) {
        status = obtain_grown(arena, kind, fit_bytes, align_bytes, changes, block_out);
    }
    if (status == DS_ACCEL_ERR_UNSUPPORTED) {
        status = obtain_plain(arena, kind, fit_bytes, align_bytes, changes, block_out);
    }
    if (status >= 0 && *block_out == NULL) { /* another thread has it, or there is no struct */
        ds_accel__figures_finish(arena, changes, NULL, DS_ACCEL__BLOCK_FREE);
        memset(changes, 0, DS_ACCEL__KIND_COUNT * sizeof(*changes));
        status = DS_ACCEL_NOT_READY;
    }
    return status;
}

/* ---- giving back ---------------------------------------------------------------------------- */

/* All locks are held. May its cached memory go, or go elsewhere? */
static bool is_open(const struct ds_accel__arena *arena)
{
    return !arena->is_capturing && (arena->owner == NULL || arena->owner->is_gone);
}

static bool is_idle(const struct ds_accel__segment *segment)
{
    return segment->first != NULL && segment->first == segment->last &&
           segment->first->state == DS_ACCEL__BLOCK_FREE;
}

/* All locks are held: what bins and waits hold back goes to the lists. */
static void settle_all(struct ds_accel__allocator *allocator)
{
    for (struct ds_accel__arena *arena = allocator->arenas; arena != NULL; arena = arena->next) {
        struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];

        if (is_open(arena)) {
            memset(changes, 0, sizeof(changes));
            ds_accel__bins_flush(arena, changes);
            ds_accel__pending_collect(arena, changes);
            ds_accel__figures_count(arena, changes);
        }
    }
}

/* All locks are held: the segment that has been free the longest. */
static struct ds_accel__segment *find_oldest(struct ds_accel__allocator *allocator)
{
    struct ds_accel__segment *oldest = NULL;

    for (struct ds_accel__arena *arena = allocator->arenas; arena != NULL; arena = arena->next) {
        for (struct ds_accel__segment *segment = arena->segments; segment != NULL && is_open(arena);
             segment = segment->next) {
            if (is_idle(segment) && (oldest == NULL || segment->idle_since < oldest->idle_since)) {
                oldest = segment;
            }
        }
    }
    return oldest;
}

/* All locks are held: take an idle segment out of its arena; its block stays in the index. */
static void take_out(struct ds_accel__segment *segment)
{
    struct ds_accel__arena *arena = segment->home;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];

    memset(changes, 0, sizeof(changes));
    ds_accel__block_unlink(arena, segment->first, changes);
    ds_accel__segment_unlink(arena, segment);
    ds_accel__figures_count(arena, changes);
}

int32_t ds_accel__segment_destroy(struct ds_accel__allocator *allocator,
                                  struct ds_accel__segment *segment)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint64_t size_bytes = segment->size_bytes;
    uint32_t kind = segment->kind;
    int32_t status = DS_ACCEL_OK;

    ds_accel__history_segment(allocator, segment, segment->address, size_bytes,
                              segment->reserved_bytes != 0 ? DS_ACCEL__ACTION_SEGMENT_UNMAP
                                                           : DS_ACCEL__ACTION_SEGMENT_FREE);
    if (segment->first != NULL) {
        ds_accel__index_remove(&allocator->index, segment->first);
    }
    if (segment->reserved_bytes != 0) {
        uint64_t end = segment->address + size_bytes;

        while (segment->piece_count > 0) {
            uint64_t piece = segment->pieces[segment->piece_count - 1];

            unmap_last(allocator, segment, end);
            end -= piece;
        }
        status = allocator->table->vmem_release(allocator->device,
                                                (void *)(uintptr_t)segment->address,
                                                segment->reserved_bytes, &error);
    } else {
        status = allocator->table->mem_free(allocator->device, (void *)(uintptr_t)segment->address,
                                            &error);
    }
    pthread_mutex_lock(&allocator->lock);
    allocator->device_free_count++;
    ds_accel__figures_segment(allocator, kind, -1, -(int64_t)size_bytes);
    pthread_mutex_unlock(&allocator->lock);
    free_segment(segment);
    return status < 0 ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
}

/* grow_lock and all others are held: a segment that grew, whose end is free. */
static struct ds_accel__segment *find_loose_end(struct ds_accel__allocator *allocator)
{
    for (struct ds_accel__arena *arena = allocator->arenas; arena != NULL; arena = arena->next) {
        for (struct ds_accel__segment *segment = arena->segments; segment != NULL && is_open(arena);
             segment = segment->next) {
            if (segment->piece_count > 1 && segment->last->state == DS_ACCEL__BLOCK_FREE &&
                segment->last->size_bytes >= segment->pieces[segment->piece_count - 1]) {
                return segment;
            }
        }
    }
    return NULL;
}

/* The same locks: shorten it by its last piece, which is to be unmapped; the place of its end. */
static uint64_t shorten(struct ds_accel__segment *segment, uint64_t *end_out)
{
    struct ds_accel__arena *arena = segment->home;
    uint64_t piece = segment->pieces[segment->piece_count - 1];
    struct ds_accel__block *last = segment->last;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];

    memset(changes, 0, sizeof(changes));
    *end_out = segment->address + segment->size_bytes;
    ds_accel__block_unlink(arena, last, changes);
    segment->size_bytes -= piece;
    last->size_bytes -= piece;
    if (last->size_bytes == 0) {
        segment->last = last->previous;
        last->previous->next = NULL;
        ds_accel__index_remove(&arena->allocator->index, last);
    } else {
        ds_accel__block_release(arena, last, changes);
    }
    ds_accel__figures_count(arena, changes);
    return piece;
}

/* grow_lock is held: take one piece from under the end of a segment; how much. */
static uint64_t shrink_one(struct ds_accel__allocator *allocator)
{
    struct ds_accel__segment *segment;
    struct ds_accel__mark *mark = NULL;
    uint64_t piece = 0;
    uint64_t end = 0;

    pthread_mutex_lock(&allocator->lock);
    ds_accel__arenas_lock(allocator);
    settle_all(allocator); /* nothing that is counted as split stands before the end */
    segment = find_loose_end(allocator);
    if (segment != NULL) {
        piece = shorten(segment, &end);
    }
    ds_accel__arenas_unlock(allocator);
    if (segment != NULL && ds_accel__mark_record(segment->home, &mark) < 0) {
        mark = NULL;
    }
    pthread_mutex_unlock(&allocator->lock);
    if (segment == NULL) {
        return 0;
    }
    ds_accel__mark_synchronize(allocator, mark);
    ds_accel__mark_put(allocator, mark);
    unmap_last(allocator, segment, end);
    ds_accel__history_segment(allocator, segment, end - piece, piece,
                              DS_ACCEL__ACTION_SEGMENT_UNMAP);
    pthread_mutex_lock(&allocator->lock);
    allocator->device_free_count++;
    ds_accel__figures_segment(allocator, segment->kind, 0, -(int64_t)piece);
    pthread_mutex_unlock(&allocator->lock);
    return piece;
}

/* grow_lock is held: give back the segment that has been idle the longest; its size, or 0. */
static uint64_t release_one(struct ds_accel__allocator *allocator, uint64_t keep_bytes)
{
    struct ds_accel__segment *segment = NULL;
    struct ds_accel__mark *mark = NULL;
    uint64_t size_bytes = 0;

    pthread_mutex_lock(&allocator->lock);
    if ((uint64_t)allocator->segment_bytes[DS_ACCEL__ALL].current > keep_bytes) {
        ds_accel__arenas_lock(allocator);
        segment = find_oldest(allocator);
        if (segment != NULL) {
            take_out(segment);
        }
        ds_accel__arenas_unlock(allocator);
    }
    if (segment != NULL && ds_accel__mark_record(segment->home, &mark) < 0) {
        mark = NULL;
    }
    pthread_mutex_unlock(&allocator->lock);
    if (segment != NULL) {
        ds_accel__mark_synchronize(allocator, mark);
        ds_accel__mark_put(allocator, mark);
        size_bytes = segment->size_bytes;
        ds_accel__segment_destroy(allocator, segment);
    }
    return size_bytes;
}

uint64_t ds_accel__segments_release(struct ds_accel__allocator *allocator, uint64_t keep_bytes,
                                    uint64_t enough_bytes)
{
    uint64_t released = 0;
    uint64_t size_bytes;

    pthread_mutex_lock(&allocator->grow_lock);
    pthread_mutex_lock(&allocator->lock);
    if (allocator->capture_count > 0) { /* what the driver frees may wait, and break captures */
        pthread_mutex_unlock(&allocator->lock);
        pthread_mutex_unlock(&allocator->grow_lock);
        return 0;
    }
    ds_accel__arenas_lock(allocator);
    settle_all(allocator);
    ds_accel__arenas_unlock(allocator);
    pthread_mutex_unlock(&allocator->lock);
    do {
        size_bytes = release_one(allocator, keep_bytes);
        released += size_bytes;
    } while (size_bytes > 0 && released < enough_bytes);
    while (released < enough_bytes && allocator->granule_bytes != 0) {
        pthread_mutex_lock(&allocator->lock);
        size_bytes = (uint64_t)allocator->segment_bytes[DS_ACCEL__ALL].current;
        pthread_mutex_unlock(&allocator->lock);
        size_bytes = size_bytes > keep_bytes ? shrink_one(allocator) : 0;
        if (size_bytes == 0) {
            break;
        }
        released += size_bytes;
    }
    pthread_mutex_unlock(&allocator->grow_lock);
    return released;
}

uint64_t ds_accel__segments_idle_bytes(const struct ds_accel__allocator *allocator)
{
    uint64_t sum = 0;

    for (const struct ds_accel__arena *arena = allocator->arenas; arena != NULL;
         arena = arena->next) {
        for (const struct ds_accel__segment *segment = arena->segments; segment != NULL;
             segment = segment->next) {
            bool is_free = is_open(arena);

            for (const struct ds_accel__block *block = segment->first; block != NULL;
                 block = block->next) {
                is_free = is_free && (block->state == DS_ACCEL__BLOCK_FREE ||
                                      block->state == DS_ACCEL__BLOCK_BINNED);
            }
            sum += is_free ? segment->size_bytes : 0;
        }
    }
    return sum;
}

/* ---- from one arena to another -------------------------------------------------------------- */

/* All locks are held. */
static struct ds_accel__segment *find_victim(const struct ds_accel__arena *thief, uint32_t kind,
                                             uint64_t fit_bytes, uint64_t align_bytes)
{
    const struct ds_accel__allocator *allocator = thief->allocator;
    struct ds_accel__segment *best = NULL;

    for (struct ds_accel__arena *arena = allocator->arenas; arena != NULL; arena = arena->next) {
        for (struct ds_accel__segment *segment = arena->segments;
             segment != NULL && arena != thief && is_open(arena); segment = segment->next) {
            if (segment->kind == kind && segment->reserved_bytes == 0 && is_idle(segment) &&
                ds_accel__block_holds(segment->first, fit_bytes, align_bytes) &&
                (best == NULL || segment->size_bytes < best->size_bytes)) {
                best = segment;
            }
        }
    }
    return best;
}

bool ds_accel__segment_steal(struct ds_accel__arena *arena, uint32_t kind, uint64_t fit_bytes,
                             uint64_t align_bytes)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    struct ds_accel__segment *segment = NULL;
    struct ds_accel__mark *mark = NULL;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];
    struct ds_accel__arena *target = arena;

    pthread_mutex_lock(&allocator->lock);
    if (allocator->arena_count < 2 || arena->is_capturing || arena->owner != NULL) {
        pthread_mutex_unlock(&allocator->lock);
        return false;
    }
    ds_accel__arenas_lock(allocator);
    settle_all(allocator);
    segment = find_victim(arena, kind, fit_bytes, align_bytes);
    if (segment != NULL) {
        take_out(segment);
    }
    ds_accel__arenas_unlock(allocator);
    if (segment != NULL) {
        if (ds_accel__mark_record(segment->home, &mark) < 0 ||
            ds_accel__mark_wait(arena, mark) < 0) {
            target = segment->home; /* the order can't be kept: it stays where it was */
        }
        ds_accel__mark_put(allocator, mark);
        ds_accel__arenas_lock(allocator);
        memset(changes, 0, sizeof(changes));
        link_segment(target, segment);
        segment->first->user = target;
        ds_accel__block_release(target, segment->first, changes);
        ds_accel__figures_count(target, changes);
        ds_accel__arenas_unlock(allocator);
    }
    pthread_mutex_unlock(&allocator->lock);
    return segment != NULL && target == arena;
}
