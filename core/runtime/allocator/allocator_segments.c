/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Allocating memory from the driver, and returning it. A call of the driver takes long, and may
 * wait for the whole device. During such a call no lock is held except grow_lock, which lets only
 * one segment grow at a time. A release first waits for the streams that used the memory, because
 * not every runtime's free function waits for them.
 *
 * A growable segment is a reserved range of addresses, as long as the device's memory plus an
 * eighth. Memory is mapped into parts of the range, in pages. As in torch's expandable segments, a
 * page has the size that a segment for small or medium requests has without this setting. A part
 * without memory is a block too, in the state "unmapped". A request that no free block can serve
 * maps memory at the lowest unmapped block that is large enough together with the free blocks
 * beside it. A release unmaps the pages that are entirely within a free block, anywhere in the
 * segment. Only the holder of grow_lock creates or changes unmapped blocks, so the holder may read
 * them without the arena's lock.
 */
#include "base/text.h"
#include "runtime/allocator/allocator.h"
#include "runtime/caching.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint64_t round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

/* ---- adding and removing segments ----------------------------------------------------------- */

static void link_segment(struct ds_accel__arena *arena, struct ds_accel__segment *segment)
{
    assert(ds_accel__latch_is_taken(&arena->latch));
    assert(segment->first != NULL && segment->last != NULL && segment->last->next == NULL);
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
    assert(segment->home == arena && (segment->previous == NULL) == (arena->segments == segment));
    if (segment->previous != NULL) {
        segment->previous->next = segment->next;
    } else {
        arena->segments = segment->next;
    }
    if (segment->next != NULL) {
        segment->next->previous = segment->previous;
    }
}

/* ---- virtual memory ------------------------------------------------------------------------- */

static void unmap_page(struct ds_accel__allocator *allocator, uint64_t address, uint64_t page_bytes)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    allocator->table->vmem_unmap(allocator->device, (void *)(uintptr_t)address, page_bytes, &error);
}

static void unmap_pages(struct ds_accel__allocator *allocator, uint64_t address,
                        uint64_t size_bytes, uint64_t page_bytes)
{
    assert(page_bytes > 0 && size_bytes % page_bytes == 0);
    for (uint64_t offset = 0; offset < size_bytes; offset += page_bytes) {
        unmap_page(allocator, address + offset, page_bytes);
    }
}

static int32_t map_page(struct ds_accel__allocator *allocator, uint64_t where, uint64_t page_bytes)
{
    const struct ds_accel_plugin *table = allocator->table;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    void *address = (void *)(uintptr_t)where;
    ds_accel_plugin_vmem_t *memory = NULL;
    int32_t status = table->vmem_create(allocator->device, page_bytes, 0, &memory, &error);

    if (status >= 0) {
        status = table->vmem_map(allocator->device, address, page_bytes, memory, 0, &error);
        if (status >= 0) {
            status = table->vmem_set_access(allocator->device, address, page_bytes,
                                            DS_ACCEL_VMEM_ACCESS_READ_WRITE, &error);
            if (status < 0) {
                unmap_page(allocator, where, page_bytes);
            }
        }
        table->vmem_destroy(memory); /* releases the handle, not the mapped memory */
    }
    return status < 0 ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
}

/* Map all pages; on failure map none. */
static int32_t map_pages(struct ds_accel__allocator *allocator, uint64_t address,
                         uint64_t size_bytes, uint64_t page_bytes)
{
    assert(page_bytes > 0 && size_bytes > 0 && size_bytes % page_bytes == 0);
    for (uint64_t offset = 0; offset < size_bytes; offset += page_bytes) {
        int32_t status = map_page(allocator, address + offset, page_bytes);

        if (status < 0) {
            unmap_pages(allocator, address, offset, page_bytes);
            return status;
        }
    }
    return DS_ACCEL_OK;
}

static uint64_t page_size(const struct ds_accel__allocator *allocator, uint32_t kind)
{
    const struct ds_accel__allocator_options *options = &allocator->options;

    return round_up(kind == DS_ACCEL__SMALL ? options->small_segment_bytes
                                            : options->medium_segment_bytes,
                    allocator->granule_bytes);
}

/* Make a growable segment: reserve a range of addresses, without memory, as long as the device's
 * total memory plus an eighth. NULL: the range cannot be reserved, the device's memory size is
 * unknown, or out of memory. */
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
    segment->page_bytes = page_size(allocator, kind);
    size_bytes = round_up(info.total_bytes + info.total_bytes / 8, segment->page_bytes);
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

/* ---- requests to the driver ----------------------------------------------------------------- */

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

/* Return the size of a new segment for a request. If the rounded size exceeds the driver's limit
 * for one allocation, the size is that limit, or the request's size if that is larger. */
static uint64_t segment_size(const struct ds_accel__allocator *allocator, uint32_t kind,
                             uint64_t fit_bytes)
{
    uint64_t size_bytes = wanted_size(&allocator->options, kind, fit_bytes);

    if (size_bytes > allocator->largest_bytes) {
        size_bytes = fit_bytes < allocator->largest_bytes ? allocator->largest_bytes : fit_bytes;
        size_bytes = size_bytes / DS_ACCEL__UNIT * DS_ACCEL__UNIT;
    }
    assert(size_bytes >= fit_bytes);
    return size_bytes;
}

/* Begin a request to the driver: add the bytes to asked_bytes, which counts towards the allocator's
 * limit. ERR_NO_MEMORY: the limit would be exceeded. After success the caller must call
 * answered(). */
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

/* End a request that ask() began. is_given: the driver provided the memory; is_new: as a new
 * segment. The caller holds the allocator's lock. */
static void answered(struct ds_accel__allocator *allocator, uint32_t kind, uint64_t size_bytes,
                     bool is_new, bool is_given)
{
    assert(allocator->asked_bytes >= size_bytes);
    allocator->asked_bytes -= size_bytes;
    if (is_given) {
        allocator->device_alloc_count++;
        ds_accel__figures_segment(allocator, kind, is_new, (int64_t)size_bytes);
    }
}

/* Allocate one piece of memory from the driver, with its own segment struct. */
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
                          : ds_accel__error(DS_ACCEL_ERR_ABI, "mem_alloc returned no address");
    }
    segment->address = (uint64_t)(uintptr_t)pointer;
    segment->size_bytes = size_bytes;
    segment->kind = kind;
    *segment_out = segment;
    return DS_ACCEL_OK;
}

/* Add the first block of a segment: it covers the whole segment and is in state TAKEN. NULL: out of
 * memory. The caller holds the arena's lock. */
static struct ds_accel__block *append(struct ds_accel__arena *arena,
                                      struct ds_accel__segment *segment, uint64_t address,
                                      uint64_t size_bytes)
{
    struct ds_accel__block *block = ds_accel__index_add(&arena->allocator->index, address);

    /* the segment has no block yet: later blocks are made by dividing the first */
    assert(segment->first == NULL && segment->last == NULL);
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
    ds_accel__arena_flush(arena);
    ds_accel__arena_renew(arena);
    *block_out = ds_accel__block_cut(arena, block, fit_bytes, align_bytes, NULL, changes);
    return DS_ACCEL_OK;
}

/* ---- growing -------------------------------------------------------------------------------- */

/* The place to map memory: the first size_bytes of an unmapped block. */
struct gap {
    struct ds_accel__block *block;
    uint64_t size_bytes;
};

/* Whether this block and the consecutive free and unmapped blocks after it have needed_bytes
 * together. */
static bool has_room(const struct ds_accel__block *block, uint64_t needed_bytes)
{
    uint64_t sum = 0;

    while (block != NULL && sum < needed_bytes &&
           (block->state == DS_ACCEL__BLOCK_FREE || block->state == DS_ACCEL__BLOCK_UNMAPPED)) {
        sum += block->size_bytes;
        block = block->next;
    }
    return sum >= needed_bytes;
}

/* Return the block in which an allocation would begin after memory is mapped at the given unmapped
 * block: the free block before it, if any, else the unmapped block. */
static const struct ds_accel__block *first_of(const struct ds_accel__block *block)
{
    return block->previous != NULL && block->previous->state == DS_ACCEL__BLOCK_FREE
               ? block->previous
               : block;
}

/* Find the lowest gap that is large enough together with the free blocks beside it. The caller
 * holds the arena's lock, and the arena's free memory is in its lists. */
static bool find_gap(const struct ds_accel__arena *arena, uint32_t kind, uint64_t fit_bytes,
                     uint64_t align_bytes, struct gap *gap)
{
    *gap = (struct gap){NULL, 0};
    for (const struct ds_accel__segment *segment = arena->segments; segment != NULL;
         segment = segment->next) {
        struct ds_accel__block *block = segment->first;

        for (; block != NULL && segment->reserved_bytes != 0 && segment->kind == kind;
             block = block->next) {
            const struct ds_accel__block *first = first_of(block);
            uint64_t before = block->address - first->address;
            uint64_t needed = round_up(first->address, align_bytes) - first->address + fit_bytes;

            if (block->state == DS_ACCEL__BLOCK_UNMAPPED && needed > before &&
                has_room(first, needed) &&
                (gap->block == NULL || block->address < gap->block->address)) {
                gap->block = block;
                gap->size_bytes = needed - before < block->size_bytes
                                      ? round_up(needed - before, segment->page_bytes)
                                      : block->size_bytes;
            }
        }
    }
    return gap->block != NULL;
}

/* Add a growable segment, entirely unmapped, to the arena. False: no range can be reserved, or out
 * of memory. The caller holds grow_lock. */
static bool add_range(struct ds_accel__arena *arena, uint32_t kind)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    struct ds_accel__segment *segment = reserve(allocator, kind);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel__block *block;

    if (segment == NULL) {
        return false;
    }
    ds_accel__latch_take(&arena->latch);
    block = append(arena, segment, segment->address, segment->reserved_bytes);
    if (block != NULL) {
        __atomic_store_n(&block->state, DS_ACCEL__BLOCK_UNMAPPED, __ATOMIC_RELAXED);
        link_segment(arena, segment);
    }
    ds_accel__latch_release(&arena->latch);
    if (block == NULL) {
        allocator->table->vmem_release(allocator->device, (void *)(uintptr_t)segment->address,
                                       segment->reserved_bytes, &error);
        free(segment);
    }
    return block != NULL;
}

/* Release a growable segment if it has no memory. The caller holds grow_lock. */
static void drop_unmapped(struct ds_accel__arena *arena, struct ds_accel__segment *segment)
{
    bool is_unmapped;

    ds_accel__latch_take(&arena->latch);
    is_unmapped = segment->size_bytes == 0;
    if (is_unmapped) {
        ds_accel__segment_unlink(arena, segment);
    }
    ds_accel__latch_release(&arena->latch);
    if (is_unmapped) {
        ds_accel__segment_destroy(arena->allocator, segment);
    }
}

/*
 * Merge a gap that has just been mapped with the free blocks beside it. ERR_NO_MEMORY: the gap's
 * block does not change, and the caller unmaps the memory. The caller holds only grow_lock; on
 * success the function returns with the arena's lock held too.
 */
static int32_t adopt(struct ds_accel__arena *arena, const struct gap *gap,
                     struct ds_accel__change *changes, struct ds_accel__block **block_out)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    struct ds_accel__segment *segment = gap->block->segment;
    uint64_t address = gap->block->address;
    struct ds_accel__block *rest;

    pthread_mutex_lock(&allocator->lock);
    ds_accel__latch_take(&arena->latch);
    assert(gap->block->state == DS_ACCEL__BLOCK_UNMAPPED && segment->home == arena);
    assert(gap->size_bytes <= gap->block->size_bytes);
    if (gap->size_bytes < gap->block->size_bytes) {
        rest = ds_accel__block_divide(arena, gap->block, gap->size_bytes);
        if (rest == NULL) {
            ds_accel__latch_release(&arena->latch);
            answered(allocator, segment->kind, gap->size_bytes, false, false);
            pthread_mutex_unlock(&allocator->lock);
            return ds_accel__no_memory();
        }
        __atomic_store_n(&rest->state, DS_ACCEL__BLOCK_UNMAPPED, __ATOMIC_RELAXED);
    }
    answered(allocator, segment->kind, gap->size_bytes, false, true);
    if (!segment->was_mapped) {
        segment->was_mapped = true;
        ds_accel__figures_segment(allocator, segment->kind, 1, 0);
    }
    segment->size_bytes += gap->size_bytes;
    assert(segment->size_bytes <= segment->reserved_bytes);
    pthread_mutex_unlock(&allocator->lock);
    ds_accel__history_segment(allocator, segment, address, gap->size_bytes,
                              DS_ACCEL__ACTION_SEGMENT_MAP);
    __atomic_store_n(&gap->block->state, DS_ACCEL__BLOCK_TAKEN, __ATOMIC_RELAXED);
    *block_out = ds_accel__block_release(arena, gap->block, changes);
    return DS_ACCEL_OK;
}

/* Map memory into the gap and merge it with the free blocks beside it into one larger free block.
 * On failure, a segment without any memory is released. The caller holds grow_lock; on success the
 * function returns with the arena's lock held too. */
static int32_t grow(struct ds_accel__arena *arena, const struct gap *gap,
                    struct ds_accel__change *changes, struct ds_accel__block **block_out)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    struct ds_accel__segment *segment = gap->block->segment;
    uint64_t address = gap->block->address;
    int32_t status = ask(allocator, gap->size_bytes);

    if (status >= 0) {
        status = map_pages(allocator, address, gap->size_bytes, segment->page_bytes);
        if (status < 0) {
            pthread_mutex_lock(&allocator->lock);
            answered(allocator, segment->kind, gap->size_bytes, false, false);
            pthread_mutex_unlock(&allocator->lock);
        } else {
            status = adopt(arena, gap, changes, block_out);
            if (status < 0) {
                unmap_pages(allocator, address, gap->size_bytes, segment->page_bytes);
            }
        }
    }
    if (status < 0) {
        drop_unmapped(arena, segment);
    }
    return status;
}

/* Take the grown block and cut it to size; NULL: the block is still too small, or memory for a
 * struct ran out. The caller holds grow_lock and the arena's lock. */
static struct ds_accel__block *take_grown(struct ds_accel__arena *arena,
                                          struct ds_accel__block *block, uint64_t fit_bytes,
                                          uint64_t align_bytes, struct ds_accel__change *changes)
{
    if (!ds_accel__block_holds(block, fit_bytes, align_bytes)) {
        return NULL;
    }
    ds_accel__block_unlink(arena, block, changes);
    return ds_accel__block_cut(arena, block, fit_bytes, align_bytes, NULL, changes);
}

/* Serve a request by growing a segment. On success the function returns with the arena's lock held.
 * ERR_UNSUPPORTED: no range can be reserved, or a new range is too small. */
static int32_t obtain_grown(struct ds_accel__arena *arena, uint32_t kind, uint64_t fit_bytes,
                            uint64_t align_bytes, struct ds_accel__change *changes,
                            struct ds_accel__block **block_out)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    struct ds_accel__block *grown = NULL;
    int32_t status = DS_ACCEL_OK;
    bool is_reserved = false;

    pthread_mutex_lock(&allocator->grow_lock);
    while (status >= 0 && *block_out == NULL) {
        struct gap gap;
        bool is_found;

        ds_accel__latch_take(&arena->latch);
        ds_accel__arena_flush(arena);
        is_found = find_gap(arena, kind, fit_bytes, align_bytes, &gap);
        ds_accel__latch_release(&arena->latch);
        if (!is_found) {
            status = !is_reserved && add_range(arena, kind) ? DS_ACCEL_OK
                                                            : DS_ACCEL_ERR_UNSUPPORTED;
            is_reserved = true;
            continue;
        }
        status = grow(arena, &gap, changes, &grown);
        if (status >= 0) { /* the arena's lock is held */
            *block_out = take_grown(arena, grown, fit_bytes, align_bytes, changes);
            if (*block_out == NULL) {
                ds_accel__figures_finish(arena, changes, NULL, DS_ACCEL__BLOCK_FREE);
                memset(changes, 0, DS_ACCEL__KIND_COUNT * sizeof(*changes));
            }
        }
    }
    pthread_mutex_unlock(&allocator->grow_lock);
    return status;
}

int32_t ds_accel__segment_obtain(struct ds_accel__arena *arena, uint32_t kind, uint64_t fit_bytes,
                                 uint64_t align_bytes, bool may_grow,
                                 struct ds_accel__change *changes,
                                 struct ds_accel__block **block_out)
{
    const struct ds_accel__allocator *allocator = arena->allocator;
    int32_t status = DS_ACCEL_ERR_UNSUPPORTED;

    *block_out = NULL;
    if (may_grow && allocator->options.growable_segments && allocator->granule_bytes != 0 &&
        allocator->options.mode != DS_ACCEL__ALLOCATOR_OFF) {
        status = obtain_grown(arena, kind, fit_bytes, align_bytes, changes, block_out);
    }
    if (status == DS_ACCEL_ERR_UNSUPPORTED) {
        status = obtain_plain(arena, kind, fit_bytes, align_bytes, changes, block_out);
    }
    /* the arena has the new memory, but memory for a block's struct ran out */
    if (status >= 0 && *block_out == NULL) {
        ds_accel__figures_finish(arena, changes, NULL, DS_ACCEL__BLOCK_FREE);
        memset(changes, 0, DS_ACCEL__KIND_COUNT * sizeof(*changes));
        status = DS_ACCEL_NOT_READY;
    }
    return status;
}

/* ---- returning memory to the driver --------------------------------------------------------- */

/* Whether the arena's cached memory may be released, or moved to another arena: the arena's stream
 * does not capture, and its private pool, if any, was destroyed. The caller holds the allocator's
 * lock and all arena locks. */
static bool is_open(const struct ds_accel__arena *arena)
{
    return !arena->is_capturing && (arena->owner == NULL || arena->owner->is_gone);
}

static bool is_idle(const struct ds_accel__segment *segment)
{
    return segment->reserved_bytes == 0 && segment->first != NULL &&
           segment->first == segment->last && segment->first->state == DS_ACCEL__BLOCK_FREE;
}

/* Move undone blocks, and pending blocks whose marks are reached, to the free lists, in the arenas
 * that is_open() accepts. The caller holds the allocator's lock and all arena locks. */
static void settle_all(struct ds_accel__allocator *allocator)
{
    struct ds_accel__busy busy;

    busy.count = 0;
    for (struct ds_accel__arena *arena = allocator->arenas; arena != NULL; arena = arena->next) {
        struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];

        if (is_open(arena)) {
            memset(changes, 0, sizeof(changes));
            ds_accel__arena_flush(arena);
            ds_accel__pending_collect(arena, &busy, changes);
            ds_accel__figures_count(arena, changes);
        }
    }
}

/* If more than *keep_bytes are reserved, return the segment that has been idle the longest; NULL:
 * at most *keep_bytes are reserved, or no segment is idle. The caller holds the allocator's lock
 * and all arena locks. */
static struct ds_accel__segment *find_oldest(struct ds_accel__allocator *allocator,
                                             const void *keep_bytes)
{
    struct ds_accel__segment *oldest = NULL;

    if ((uint64_t)allocator->segment_bytes[DS_ACCEL__ALL].current <=
        *(const uint64_t *)keep_bytes) {
        return NULL;
    }
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

/* Remove an idle segment from its arena's lists; the segment's block stays in the index of
 * addresses. The caller holds the allocator's lock and all arena locks. */
static void take_out(struct ds_accel__segment *segment)
{
    struct ds_accel__arena *arena = segment->home;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];

    assert(is_idle(segment) && is_open(arena));
    memset(changes, 0, sizeof(changes));
    ds_accel__block_unlink(arena, segment->first, changes);
    ds_accel__segment_unlink(arena, segment);
    ds_accel__figures_count(arena, changes);
}

/* Unmap all memory of a growable segment that no other thread can reach. */
static void unmap_rest(struct ds_accel__allocator *allocator,
                       const struct ds_accel__segment *segment)
{
    for (const struct ds_accel__block *block = segment->first; block != NULL; block = block->next) {
        const uint64_t start = block->address;
        uint64_t size = block->size_bytes;

        if (block->state == DS_ACCEL__BLOCK_UNMAPPED) {
            continue;
        }
        while (block->next != NULL && block->next->state != DS_ACCEL__BLOCK_UNMAPPED) {
            block = block->next;
            size += block->size_bytes;
        }
        unmap_pages(allocator, start, size, segment->page_bytes);
        ds_accel__history_segment(allocator, segment, start, size, DS_ACCEL__ACTION_SEGMENT_UNMAP);
    }
}

int32_t ds_accel__segment_destroy(struct ds_accel__allocator *allocator,
                                  struct ds_accel__segment *segment)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint64_t size_bytes = segment->size_bytes;
    uint32_t kind = segment->kind;
    int32_t status = DS_ACCEL_OK;

    if (segment->reserved_bytes != 0) {
        unmap_rest(allocator, segment);
    } else {
        ds_accel__history_segment(allocator, segment, segment->address, size_bytes,
                                  DS_ACCEL__ACTION_SEGMENT_FREE);
    }
    while (segment->first != NULL) {
        struct ds_accel__block *block = segment->first;

        segment->first = block->next;
        ds_accel__index_remove(&allocator->index, block);
    }
    status = segment->reserved_bytes != 0
                 ? allocator->table->vmem_release(allocator->device,
                                                  (void *)(uintptr_t)segment->address,
                                                  segment->reserved_bytes, &error)
                 : allocator->table->mem_free(allocator->device,
                                              (void *)(uintptr_t)segment->address, &error);
    pthread_mutex_lock(&allocator->lock);
    allocator->device_free_count += size_bytes != 0;
    if (segment->reserved_bytes != 0) {
        ds_accel__figures_segment(allocator, kind, 0, -(int64_t)size_bytes);
        ds_accel__figures_segment(allocator, kind, -(int64_t)segment->was_mapped, 0);
    } else {
        ds_accel__figures_segment(allocator, kind, -1, -(int64_t)size_bytes);
    }
    pthread_mutex_unlock(&allocator->lock);
    free(segment);
    return status < 0 ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
}

/* Return the start and the size of the whole pages within a block. */
static uint64_t pages_within(const struct ds_accel__block *block, uint64_t *start_out)
{
    uint64_t page = block->segment->page_bytes;
    uint64_t from = block->address - block->segment->address;
    uint64_t end = (from + block->size_bytes) / page * page;

    assert(page > 0 && block->address >= block->segment->address);
    from = round_up(from, page);
    *start_out = block->segment->address + from;
    return end > from ? end - from : 0;
}

/* Return a free block that contains a whole page, or NULL. The caller holds grow_lock, the
 * allocator's lock and all arena locks. */
static struct ds_accel__block *find_pages(struct ds_accel__allocator *allocator)
{
    for (struct ds_accel__arena *arena = allocator->arenas; arena != NULL; arena = arena->next) {
        for (struct ds_accel__segment *segment = arena->segments; segment != NULL && is_open(arena);
             segment = segment->next) {
            struct ds_accel__block *block = segment->first;
            uint64_t start;

            for (; block != NULL && segment->reserved_bytes != 0; block = block->next) {
                if (block->state == DS_ACCEL__BLOCK_FREE && pages_within(block, &start) > 0) {
                    return block;
                }
            }
        }
    }
    return NULL;
}

/* Cut a part out of a block in state TAKEN; the memory before and after the part becomes free.
 * NULL: out of memory, and the whole block is free. The caller holds grow_lock, the allocator's
 * lock and all arena locks. */
static struct ds_accel__block *cut_out(struct ds_accel__arena *arena, struct ds_accel__block *block,
                                       uint64_t start, uint64_t size_bytes,
                                       struct ds_accel__change *changes)
{
    struct ds_accel__block *middle = block;
    struct ds_accel__block *rest;

    assert(start >= block->address && start - block->address + size_bytes <= block->size_bytes);
    if (start > block->address) {
        middle = ds_accel__block_divide(arena, block, start - block->address);
        ds_accel__block_release(arena, block, changes);
    }
    if (middle != NULL && size_bytes < middle->size_bytes) {
        rest = ds_accel__block_divide(arena, middle, size_bytes);
        ds_accel__block_release(arena, rest != NULL ? rest : middle, changes);
        middle = rest != NULL ? middle : NULL;
    }
    return middle;
}

/*
 * Mark pages within a free block as unmapped, at most wanted_bytes rounded up to whole pages.
 * Returns the size of these pages, which the caller then unmaps; 0: out of memory. The caller holds
 * grow_lock, the allocator's lock and all arena locks.
 */
static uint64_t forget_pages(struct ds_accel__block *block, uint64_t wanted_bytes,
                             uint64_t *start_out)
{
    struct ds_accel__segment *segment = block->segment;
    struct ds_accel__arena *arena = segment->home;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];
    uint64_t size = pages_within(block, start_out);

    if (wanted_bytes < size) {
        wanted_bytes = round_up(wanted_bytes, segment->page_bytes);
        *start_out += size - wanted_bytes;
        size = wanted_bytes;
    }
    memset(changes, 0, sizeof(changes));
    ds_accel__block_unlink(arena, block, changes);
    block = cut_out(arena, block, *start_out, size, changes);
    ds_accel__figures_count(arena, changes);
    if (block == NULL) {
        return 0;
    }
    __atomic_store_n(&block->state, DS_ACCEL__BLOCK_UNMAPPED, __ATOMIC_RELAXED);
    assert(block->address == *start_out && block->size_bytes == size);
    assert(segment->size_bytes >= size);
    segment->size_bytes -= size;
    if (block->next != NULL && block->next->state == DS_ACCEL__BLOCK_UNMAPPED) {
        ds_accel__block_join(arena, block, block->next);
    }
    if (block->previous != NULL && block->previous->state == DS_ACCEL__BLOCK_UNMAPPED) {
        ds_accel__block_join(arena, block->previous, block);
    }
    return size;
}

/* Unmap pages of one free block in a growable segment, at most wanted_bytes rounded up to whole
 * pages. Returns their size; 0: there are no such pages, or host memory ran out. The caller holds
 * grow_lock. */
static uint64_t shrink_one(struct ds_accel__allocator *allocator, uint64_t wanted_bytes)
{
    struct ds_accel__segment *segment = NULL;
    struct ds_accel__arena *arena = NULL;
    struct ds_accel__mark *mark = NULL;
    struct ds_accel__block *block;
    uint64_t start = 0;
    uint64_t size = 0;

    pthread_mutex_lock(&allocator->lock);
    ds_accel__arenas_lock(allocator);
    settle_all(allocator);
    block = find_pages(allocator);
    if (block != NULL) {
        segment = block->segment;
        arena = segment->home;
        size = forget_pages(block, wanted_bytes, &start);
    }
    ds_accel__arenas_unlock(allocator);
    if (size > 0 && ds_accel__mark_record(arena, &mark) < 0) {
        mark = NULL;
    }
    pthread_mutex_unlock(&allocator->lock);
    if (size == 0) {
        return 0;
    }
    ds_accel__mark_synchronize(allocator, mark);
    ds_accel__mark_put(allocator, mark);
    unmap_pages(allocator, start, size, segment->page_bytes);
    ds_accel__history_segment(allocator, segment, start, size, DS_ACCEL__ACTION_SEGMENT_UNMAP);
    pthread_mutex_lock(&allocator->lock);
    allocator->device_free_count++;
    ds_accel__figures_segment(allocator, segment->kind, 0, -(int64_t)size);
    pthread_mutex_unlock(&allocator->lock);
    drop_unmapped(arena, segment);
    return size;
}

/* A function that chooses the idle segment to release; NULL: none. Its caller holds the allocator's
 * lock and all arena locks. */
typedef struct ds_accel__segment *(*find_idle_t)(struct ds_accel__allocator *allocator,
                                                 const void *argument);

/* Release the idle segment that find chooses; returns its size, or 0. The caller holds
 * grow_lock. */
static uint64_t release_found(struct ds_accel__allocator *allocator, find_idle_t find,
                              const void *argument)
{
    struct ds_accel__segment *segment;
    struct ds_accel__mark *mark = NULL;
    uint64_t size_bytes = 0;

    pthread_mutex_lock(&allocator->lock);
    ds_accel__arenas_lock(allocator);
    segment = find(allocator, argument);
    if (segment != NULL) {
        take_out(segment);
    }
    ds_accel__arenas_unlock(allocator);
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

/* Prepare a release: move memory that is no longer used to the free lists (settle_all()). False: a
 * stream captures, and no memory may be released, because the driver's free function may wait for
 * the device and break the capture. The caller holds grow_lock. */
static bool begin_release(struct ds_accel__allocator *allocator)
{
    bool is_captured;

    pthread_mutex_lock(&allocator->lock);
    is_captured = allocator->capture_count > 0;
    if (!is_captured) {
        ds_accel__arenas_lock(allocator);
        settle_all(allocator);
        ds_accel__arenas_unlock(allocator);
    }
    pthread_mutex_unlock(&allocator->lock);
    return !is_captured;
}

uint64_t ds_accel__segments_release(struct ds_accel__allocator *allocator, uint64_t keep_bytes,
                                    uint64_t enough_bytes)
{
    uint64_t released = 0;
    uint64_t size_bytes;

    pthread_mutex_lock(&allocator->grow_lock);
    if (!begin_release(allocator)) {
        pthread_mutex_unlock(&allocator->grow_lock);
        return 0;
    }
    do {
        size_bytes = release_found(allocator, find_oldest, &keep_bytes);
        released += size_bytes;
    } while (size_bytes > 0 && released < enough_bytes);
    while (released < enough_bytes && allocator->granule_bytes != 0) {
        pthread_mutex_lock(&allocator->lock);
        size_bytes = (uint64_t)allocator->segment_bytes[DS_ACCEL__ALL].current;
        pthread_mutex_unlock(&allocator->lock);
        size_bytes = size_bytes > keep_bytes
                         ? shrink_one(allocator, size_bytes - keep_bytes < enough_bytes - released
                                                     ? size_bytes - keep_bytes
                                                     : enough_bytes - released)
                         : 0;
        if (size_bytes == 0) {
            break;
        }
        released += size_bytes;
    }
    pthread_mutex_unlock(&allocator->grow_lock);
    return released;
}

/* Whether it is useful to wait for the marks of the pending block, because the block prevents free
 * memory from merging, or a segment or a page from being released. */
static bool keeps_apart(const struct ds_accel__block *pending)
{
    const struct ds_accel__block *sides[] = {pending->previous, pending->next};
    bool is_whole = sides[0] == NULL && sides[1] == NULL;
    uint64_t start;

    for (size_t i = 0; i < ARRAY_SIZE(sides) && !is_whole; i++) {
        is_whole = sides[i] != NULL && (sides[i]->state == DS_ACCEL__BLOCK_FREE ||
                                        sides[i]->state == DS_ACCEL__BLOCK_PENDING ||
                                        sides[i]->state == DS_ACCEL__BLOCK_UNMAPPED);
    }
    return is_whole || (pending->segment->reserved_bytes != 0 && pages_within(pending, &start) > 0);
}

/* The sets of marks (waits) of pending blocks; the list has a reference to each set. */
struct found {
    struct ds_accel__waits **waits; /* NULL: the waits are only counted */
    uint64_t count;
};

/* Count the waits of the pending blocks for which keeps_apart() is true, and list them if
 * found->waits is not NULL. The caller holds the allocator's lock and all arena locks. */
static void find_waits(struct ds_accel__allocator *allocator, struct found *found)
{
    found->count = 0;
    for (struct ds_accel__arena *arena = allocator->arenas; arena != NULL; arena = arena->next) {
        for (struct ds_accel__block *block = arena->pending; block != NULL && is_open(arena);
             block = block->link_next) {
            if (block->is_deferred == DS_ACCEL__DEFERRED_NOT && keeps_apart(block)) {
                if (found->waits != NULL) {
                    ds_accel__waits_get(allocator, block->waits);
                    found->waits[found->count] = block->waits;
                }
                found->count++;
            }
        }
    }
}

/* List the waits of the pending blocks for which keeps_apart() is true. If memory for the list is
 * exhausted, the list is empty. The caller holds the allocator's lock and all arena locks. */
static void list_waits(struct ds_accel__allocator *allocator, struct found *found)
{
    find_waits(allocator, found);
    if (found->count > 0) {
        found->waits = calloc(found->count, sizeof(struct ds_accel__waits *));
        found->count = 0;
    }
    if (found->waits != NULL) {
        find_waits(allocator, found);
    }
}

void ds_accel__pending_settle(struct ds_accel__allocator *allocator)
{
    pthread_mutex_lock(&allocator->lock);
    ds_accel__arenas_lock(allocator);
    settle_all(allocator);
    ds_accel__arenas_unlock(allocator);
    pthread_mutex_unlock(&allocator->lock);
}

void ds_accel__pending_finish(struct ds_accel__allocator *allocator, uint64_t keep_bytes)
{
    struct found found = {.waits = NULL};
    int32_t status = DS_ACCEL_OK;

    pthread_mutex_lock(&allocator->lock);
    if (allocator->capture_count == 0 && /* a wait could break a capture */
        (uint64_t)allocator->segment_bytes[DS_ACCEL__ALL].current > keep_bytes) {
        ds_accel__arenas_lock(allocator);
        settle_all(allocator);
        list_waits(allocator, &found);
        ds_accel__arenas_unlock(allocator);
    }
    pthread_mutex_unlock(&allocator->lock);
    for (uint64_t i = 0; i < found.count; i++) {
        status = status < 0 ? status : ds_accel__waits_synchronize(allocator, found.waits[i]);
        ds_accel__waits_put(allocator, found.waits[i]);
    }
    if (found.count > 0) {
        ds_accel__pending_settle(allocator);
    }
    free(found.waits);
}

/* ---- torch's max_split_size and garbage_collection_threshold -------------------------------- */

/* Parameters of a search for an idle segment of one arena that is too large to be split
 * (max_split_bytes). least_bytes: the smallest size of the segment; not used if is_largest is
 * true. */
struct oversize {
    const struct ds_accel__arena *arena;
    uint64_t least_bytes;
    /* true: find the largest such segment; false: the smallest of at least least_bytes */
    bool is_largest;
};

static struct ds_accel__segment *find_oversize(struct ds_accel__allocator *allocator,
                                               const void *argument)
{
    const struct oversize *wanted = argument;
    uint64_t least = wanted->is_largest ? allocator->options.max_split_bytes : wanted->least_bytes;
    struct ds_accel__segment *found = NULL;

    for (struct ds_accel__segment *segment = wanted->arena->segments;
         segment != NULL && is_open(wanted->arena); segment = segment->next) {
        if (is_idle(segment) && segment->kind == DS_ACCEL__LARGE && segment->size_bytes >= least &&
            (found == NULL || (segment->size_bytes > found->size_bytes) == wanted->is_largest)) {
            found = segment;
        }
    }
    return found;
}

bool ds_accel__segments_release_oversize(struct ds_accel__arena *arena, uint64_t fit_bytes)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    uint64_t limit = allocator->options.max_split_bytes;
    struct oversize wanted = {arena, fit_bytes < limit ? limit : fit_bytes, false};
    uint64_t released = 0;
    uint64_t size_bytes = 0;

    if (limit == 0) {
        return false;
    }
    pthread_mutex_lock(&allocator->grow_lock);
    if (begin_release(allocator)) {
        released = release_found(allocator, find_oversize, &wanted);
        wanted.is_largest = true;
        do {
            size_bytes = released < wanted.least_bytes
                             ? release_found(allocator, find_oversize, &wanted)
                             : 0;
            released += size_bytes;
        } while (size_bytes > 0);
    }
    pthread_mutex_unlock(&allocator->grow_lock);
    return released >= wanted.least_bytes;
}

/* Whether the segment may be released as garbage. The caller holds the allocator's lock and all
 * arena locks. */
static bool is_garbage(const struct ds_accel__arena *arena, const struct ds_accel__segment *segment)
{
    return is_open(arena) && arena->owner == NULL && segment->kind == DS_ACCEL__LARGE &&
           is_idle(segment);
}

/* Return a segment that is_garbage() accepts and that became free no later than request number
 * *argument (a double); NULL: none. The caller holds the allocator's lock and all arena locks. */
static struct ds_accel__segment *find_garbage(struct ds_accel__allocator *allocator,
                                              const void *argument)
{
    const double *since = argument;

    for (struct ds_accel__arena *arena = allocator->arenas; arena != NULL; arena = arena->next) {
        for (struct ds_accel__segment *segment = arena->segments; segment != NULL;
             segment = segment->next) {
            if (is_garbage(arena, segment) && (double)segment->idle_request <= *since) {
                return segment;
            }
        }
    }
    return NULL;
}

/* Compute the average request number at which the segments that is_garbage() accepts became free;
 * false: there are no such segments. The caller holds grow_lock. */
static bool average_request(struct ds_accel__allocator *allocator, double *since_out)
{
    double sum = 0;
    uint64_t count = 0;

    pthread_mutex_lock(&allocator->lock);
    ds_accel__arenas_lock(allocator);
    for (struct ds_accel__arena *arena = allocator->arenas; arena != NULL; arena = arena->next) {
        for (struct ds_accel__segment *segment = arena->segments; segment != NULL;
             segment = segment->next) {
            if (is_garbage(arena, segment)) {
                sum += (double)segment->idle_request;
                count++;
            }
        }
    }
    ds_accel__arenas_unlock(allocator);
    pthread_mutex_unlock(&allocator->lock);
    *since_out = count > 0 ? sum / (double)count : 0;
    return count > 0;
}

void ds_accel__segments_collect(struct ds_accel__allocator *allocator, uint64_t enough_bytes)
{
    uint64_t released = 0;
    double since;

    pthread_mutex_lock(&allocator->grow_lock);
    if (begin_release(allocator)) {
        while (released < enough_bytes && average_request(allocator, &since)) {
            uint64_t before = released;
            uint64_t size_bytes;

            do {
                size_bytes = release_found(allocator, find_garbage, &since);
                released += size_bytes;
            } while (size_bytes > 0);
            if (released == before) {
                break;
            }
        }
    }
    pthread_mutex_unlock(&allocator->grow_lock);
}

uint64_t ds_accel__segments_idle_bytes(const struct ds_accel__allocator *allocator)
{
    uint64_t sum = 0;
    uint64_t start;

    for (const struct ds_accel__arena *arena = allocator->arenas; arena != NULL;
         arena = arena->next) {
        for (const struct ds_accel__segment *segment = arena->segments;
             segment != NULL && is_open(arena); segment = segment->next) {
            const struct ds_accel__block *block = segment->first;

            sum += is_idle(segment) ? segment->size_bytes : 0;
            for (; block != NULL && segment->reserved_bytes != 0; block = block->next) {
                sum += block->state == DS_ACCEL__BLOCK_FREE ? pages_within(block, &start) : 0;
            }
        }
    }
    return sum;
}

/* ---- moving segments between arenas --------------------------------------------------------- */

/* Whether the arena serves no further allocations, because its stream or its pool was destroyed. */
static bool is_abandoned(const struct ds_accel__arena *arena)
{
    return arena->is_gone || (arena->owner != NULL && arena->owner->is_gone);
}

/* Return the smallest idle segment of an abandoned arena that fits the request, to be moved to
 * arena thief; NULL: none. The segment is at most as large as a new segment would be, because
 * otherwise a small block could keep a large segment in use. The caller holds the allocator's lock
 * and all arena locks. */
static struct ds_accel__segment *find_victim(const struct ds_accel__arena *thief, uint32_t kind,
                                             uint64_t fit_bytes, uint64_t align_bytes)
{
    const struct ds_accel__allocator *allocator = thief->allocator;
    uint64_t most_bytes = segment_size(allocator, kind, fit_bytes);
    struct ds_accel__segment *best = NULL;

    for (struct ds_accel__arena *arena = allocator->arenas; arena != NULL; arena = arena->next) {
        for (struct ds_accel__segment *segment = arena->segments;
             segment != NULL && arena != thief && is_abandoned(arena) && is_open(arena);
             segment = segment->next) {
            if (segment->kind == kind && is_idle(segment) && segment->size_bytes <= most_bytes &&
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
            target = segment->home; /* stream order can't be kept: the segment stays in its arena */
        }
        ds_accel__mark_put(allocator, mark);
        ds_accel__arenas_lock(allocator);
        memset(changes, 0, sizeof(changes));
        assert(segment->first == segment->last);
        link_segment(target, segment);
        segment->first->user = target;
        ds_accel__block_release(target, segment->first, changes);
        ds_accel__figures_count(target, changes);
        ds_accel__arenas_unlock(allocator);
    }
    pthread_mutex_unlock(&allocator->lock);
    return segment != NULL && target == arena;
}
