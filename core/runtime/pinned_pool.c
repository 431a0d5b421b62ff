/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The pool of page-locked host memory, used by ds_accel_mem_alloc_pinned() in pinned.c.
 *
 * Locking pages costs a system call in which the kernel visits each page, and a runtime also maps
 * the pages for the device. A freed block is therefore not returned to the runtime: the pool keeps
 * it for the next request of its size, flags and alignment.
 *
 * Sizes. There are eight size classes between a power of two and the next, in whole pages, so that
 * at most an eighth of a block of more than eight pages is unused. A size beyond any address space
 * is passed to the runtime unrounded, and fails there. When the kernel's limit is reached, the pool
 * is emptied and the runtime is called once more with exactly the caller's size, so that an error
 * message contains the caller's size.
 *
 * Reuse. The host may access a block as soon as it is allocated, and no stream orders the host's
 * accesses. A block is therefore reused, or returned to the runtime, only after all work that
 * streams had queued when it was freed; pinned_uses.c tracks that work. No call waits for that
 * work.
 *
 * Blocks are found by address in a hash table, and by class in lists of ready blocks; waiting
 * blocks are in a separate list, so that a hit never inspects them. One lock per device guards the
 * pool; it is not held while the runtime locks or unlocks pages.
 */
#include "base/clock.h"
#include "base/text.h"
#include "host/context.h"
#include "host/layers.h"
#include "runtime/caching.h"
#include "runtime/handle.h"
#include "runtime/pinned.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#define PAGE_BITS 12 /* the smallest class is one page, because runtimes lock whole pages */
#define FIRST_BUCKETS 64u

/* ---- classes -------------------------------------------------------------------------------- */

/* Return the size of a request's class. */
uint64_t ds_accel__pinned_class(uint64_t size_bytes)
{
    uint64_t step = UINT64_C(1) << PAGE_BITS;

    if (size_bytes > PTRDIFF_MAX) {
        return size_bytes;
    }
    if (size_bytes > 8 * step) {
        step = UINT64_C(1) << (63 - __builtin_clzll(size_bytes) - 3);
    }
    return (size_bytes + step - 1) & ~(step - 1);
}

static struct ds_accel__pinned_block **ready_list(struct ds_accel__pinned *pool,
                                                  uint64_t size_bytes, uint32_t flags)
{
    uint64_t key = (size_bytes >> PAGE_BITS) * 16 + flags;

    return &pool->ready[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 56];
}

static size_t bucket_of(const struct ds_accel__pinned *pool, const void *pointer)
{
    return (size_t)(((uint64_t)(uintptr_t)pointer * UINT64_C(0x9e3779b97f4a7c15)) >> 32) &
           (pool->bucket_count - 1);
}

/* ---- the table of addresses ----------------------------------------------------------------- */

struct ds_accel__pinned_block *ds_accel__pinned_block(const struct ds_accel__pinned *pool,
                                                      const void *pointer)
{
    struct ds_accel__pinned_block *block = pool->buckets[bucket_of(pool, pointer)];

    while (block != NULL && block->pointer != pointer) {
        block = block->next_in_bucket;
    }
    return block;
}

/* Double the table. If memory is exhausted, the table stays as it is, which only makes it
 * slower. */
static void grow(struct ds_accel__pinned *pool)
{
    size_t old_count = pool->bucket_count;
    struct ds_accel__pinned_block **old = pool->buckets;
    struct ds_accel__pinned_block **larger =
        calloc(old_count * 2, sizeof(struct ds_accel__pinned_block *));

    if (larger == NULL) {
        return;
    }
    pool->buckets = larger;
    pool->bucket_count = old_count * 2;
    for (size_t i = 0; i < old_count; i++) {
        while (old[i] != NULL) {
            struct ds_accel__pinned_block *block = old[i];
            size_t bucket = bucket_of(pool, block->pointer);

            old[i] = block->next_in_bucket;
            block->next_in_bucket = larger[bucket];
            larger[bucket] = block;
        }
    }
    free(old);
}

void ds_accel__pinned_insert(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block)
{
    size_t bucket;

    assert(block->pointer != NULL && block->size_bytes > 0);
    if (pool->stats.block_count >= pool->bucket_count) {
        grow(pool);
    }
    bucket = bucket_of(pool, block->pointer);
    block->next_in_bucket = pool->buckets[bucket];
    pool->buckets[bucket] = block;
    pool->stats.block_count++;
    pool->stats.reserved_bytes += block->size_bytes;
    if (pool->stats.reserved_bytes > pool->stats.reserved_peak_bytes) {
        pool->stats.reserved_peak_bytes = pool->stats.reserved_bytes;
    }
    ds_accel__pinned_count(pool, block, DS_ACCEL__PINNED_HELD);
}

static void forget(struct ds_accel__pinned *pool, const struct ds_accel__pinned_block *block)
{
    struct ds_accel__pinned_block **place = &pool->buckets[bucket_of(pool, block->pointer)];

    while (*place != block) {
        assert(*place != NULL);
        place = &(*place)->next_in_bucket;
    }
    *place = block->next_in_bucket;
    assert(pool->stats.block_count > 0 && pool->stats.reserved_bytes >= block->size_bytes);
    pool->stats.block_count--;
    pool->stats.reserved_bytes -= block->size_bytes;
    ds_accel__pinned_count(pool, block, DS_ACCEL__PINNED_GIVEN_BACK);
}

/* ---- ready and waiting blocks --------------------------------------------------------------- */

static void keep(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block)
{
    struct ds_accel__pinned_block **list = ready_list(pool, block->size_bytes, block->flags);

    assert(block->state != DS_ACCEL__PINNED_READY);
    assert(block->use_count == 0 && !block->needs_idle);
    ds_accel__pinned_count(pool, block, DS_ACCEL__PINNED_IDLE);
    ds_accel__layer_host_idle(pool->device->abi.handle, block->pointer, block->size_bytes);
    block->state = DS_ACCEL__PINNED_READY;
    block->next = *list;
    *list = block;
}

/* Move blocks whose uses are done to the ready lists. */
static void poll_waiting(struct ds_accel__pinned *pool)
{
    struct ds_accel__pinned_block **place = &pool->waiting;

    while (*place != NULL) {
        struct ds_accel__pinned_block *block = *place;

        if (ds_accel__pinned_is_done(pool, block)) {
            assert(block->state == DS_ACCEL__PINNED_WAITING);
            assert(pool->stats.waiting_bytes >= block->size_bytes);
            *place = block->next;
            pool->stats.waiting_bytes -= block->size_bytes;
            keep(pool, block);
        } else {
            place = &block->next;
        }
    }
}

/* Remove a ready block of exactly this size and these flags, with this alignment, from its list and
 * return it; NULL: there is none. */
static struct ds_accel__pinned_block *take_ready(struct ds_accel__pinned *pool, uint64_t size_bytes,
                                                 uint64_t align_bytes, uint32_t flags)
{
    struct ds_accel__pinned_block **place = ready_list(pool, size_bytes, flags);

    while (*place != NULL) {
        struct ds_accel__pinned_block *block = *place;

        if (block->size_bytes == size_bytes && block->flags == flags &&
            ((uintptr_t)block->pointer & (align_bytes - 1)) == 0) {
            *place = block->next;
            return block;
        }
        place = &block->next;
    }
    return NULL;
}

/* Take ready blocks out of the pool until it keeps at most kept_bytes, waiting blocks included, or
 * has no ready block left; returns them as a list, which the caller releases. */
static struct ds_accel__pinned_block *take_surplus(struct ds_accel__pinned *pool,
                                                   uint64_t kept_bytes)
{
    struct ds_accel__pinned_block *surplus = NULL;

    for (size_t i = 0; i < DS_ACCEL__PINNED_LISTS && pool->stats.cached_bytes > kept_bytes; i++) {
        while (pool->ready[i] != NULL && pool->stats.cached_bytes > kept_bytes) {
            struct ds_accel__pinned_block *block = pool->ready[i];

            assert(block->state == DS_ACCEL__PINNED_READY);
            assert(pool->stats.cached_bytes >= block->size_bytes);
            pool->ready[i] = block->next;
            pool->stats.cached_bytes -= block->size_bytes;
            forget(pool, block);
            block->next = surplus;
            surplus = block;
        }
    }
    return surplus;
}

/* Return a list of blocks to the runtime, and free their structs. A block that the runtime does not
 * accept is only logged. True if the list was not empty. */
bool ds_accel__pinned_release(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *surplus)
{
    const struct ds_accel_device *device = &pool->device->abi;
    bool was_any = surplus != NULL;

    while (surplus != NULL) {
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        struct ds_accel__pinned_block *block = surplus;
        char text[400];
        uint64_t begin_ns = ds_accel__now_ns();
        int32_t status;

        surplus = block->next;
        status = device->table->mem_free_pinned(device->handle, block->pointer, &error);
        ds_accel__pinned_time(pool, true, begin_ns);
        if (status < 0) {
            ds_accel__describe(status, &error, text, sizeof(text));
            ds_accel__log(&pool->device->context->log, "pinned", DS_ACCEL_LOG_WARN,
                          "device %u keeps a block of pinned memory: %s", pool->device->index,
                          text);
        }
        free(block->uses);
        free(block);
    }
    return was_any;
}

/* Take a ready block of the request's size class, or a block of exactly the requested size, which
 * was allocated unrounded because a limit did not allow the rounded size. NULL: there is none. */
static struct ds_accel__pinned_block *take_fitting(struct ds_accel__pinned *pool,
                                                   uint64_t size_bytes, uint64_t align_bytes,
                                                   uint32_t flags)
{
    uint64_t class_bytes = ds_accel__pinned_class(size_bytes);
    struct ds_accel__pinned_block *block = take_ready(pool, class_bytes, align_bytes, flags);

    return block == NULL && class_bytes != size_bytes
               ? take_ready(pool, size_bytes, align_bytes, flags)
               : block;
}

struct ds_accel__pinned_block *ds_accel__pinned_take(struct ds_accel__pinned *pool,
                                                     uint64_t size_bytes, uint64_t align_bytes,
                                                     uint32_t flags)
{
    struct ds_accel__pinned_block *block = take_fitting(pool, size_bytes, align_bytes, flags);

    if (block == NULL && pool->waiting != NULL) {
        poll_waiting(pool);
        block = take_fitting(pool, size_bytes, align_bytes, flags);
    }
    if (block != NULL) {
        assert(block->state == DS_ACCEL__PINNED_READY);
        assert(pool->stats.cached_bytes >= block->size_bytes);
        pool->stats.cached_bytes -= block->size_bytes;
    }
    return block;
}

struct ds_accel__pinned_block *ds_accel__pinned_surplus(struct ds_accel__pinned *pool,
                                                        uint64_t kept_bytes)
{
    poll_waiting(pool);
    return take_surplus(pool, kept_bytes);
}

/* Returns the blocks over the limit, which the caller releases. The caller holds pool->lock. */
struct ds_accel__pinned_block *ds_accel__pinned_put(struct ds_accel__pinned *pool,
                                                    struct ds_accel__pinned_block *block)
{
    struct ds_accel_pinned_stats *stats = &pool->stats;

    assert(block->state == DS_ACCEL__PINNED_IN_USE);
    assert(stats->allocated_bytes >= block->asked_bytes);
    stats->free_count++;
    stats->allocated_bytes -= block->asked_bytes;
    stats->cached_bytes += block->size_bytes;
    ds_accel__pinned_mark(pool, block);
    if (block->use_count > 0 || block->needs_idle) {
        block->state = DS_ACCEL__PINNED_WAITING;
        block->next = pool->waiting;
        pool->waiting = block;
        stats->waiting_bytes += block->size_bytes;
    } else {
        keep(pool, block);
    }
    return stats->cached_bytes > pool->kept_limit_bytes ? take_surplus(pool, pool->kept_limit_bytes)
                                                        : NULL;
}

/* ---- the pool ------------------------------------------------------------------------------- */

static void destroy(struct ds_accel__pinned *pool)
{
    pthread_mutex_destroy(&pool->lock);
    free(pool->events);
    free(pool->buckets);
    free(pool);
}

static struct ds_accel__pinned *create(struct ds_accel__device *device)
{
    struct ds_accel__pinned *pool = calloc(1, sizeof(*pool));

    if (pool != NULL) {
        pthread_mutex_init(&pool->lock, NULL);
        pool->device = device;
        pool->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
        pool->kept_limit_bytes = UINT64_MAX;
        pool->bucket_count = FIRST_BUCKETS;
        pool->buckets = calloc(FIRST_BUCKETS, sizeof(struct ds_accel__pinned_block *));
    }
    if (pool != NULL && pool->buckets == NULL) {
        destroy(pool);
        pool = NULL;
    }
    if (pool == NULL) {
        ds_accel__no_memory();
    }
    return pool;
}

/* Return the device's pool, created on first use; NULL: out of memory. */
struct ds_accel__pinned *ds_accel__pinned_pool(struct ds_accel__device *device)
{
    struct ds_accel__pinned *pool = __atomic_load_n(&device->pinned, __ATOMIC_ACQUIRE);

    if (pool == NULL) {
        pthread_mutex_lock(&device->lock);
        pool = device->pinned;
        if (pool == NULL) {
            pool = create(device);
            __atomic_store_n(&device->pinned, pool, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&device->lock);
    }
    return pool;
}

/* Release all blocks, including live blocks, because the device is being closed. If a block may be
 * in use, first wait for the device's work. */
void ds_accel__pinned_close(struct ds_accel__device *device)
{
    struct ds_accel__pinned *pool = device->pinned;
    const struct ds_accel_plugin *table = device->abi.table;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel__pinned_block *all = NULL;

    if (pool == NULL) {
        return;
    }
    if (pool->waiting != NULL || pool->stats.allocated_bytes > 0) {
        ds_accel__layers_own_begin();
        table->device_synchronize(device->abi.handle, UINT64_MAX, &error);
        ds_accel__layers_own_end();
    }
    for (size_t i = 0; i < pool->bucket_count; i++) {
        for (struct ds_accel__pinned_block *block = pool->buckets[i]; block != NULL;
             block = block->next_in_bucket) {
            ds_accel__pinned_unmark(pool, block);
            block->next = all;
            all = block;
        }
    }
    ds_accel__pinned_release(pool, all);
    assert(pool->event_count == pool->events_made);
    while (pool->event_count > 0) {
        ds_accel__layers_below(device->candidate)->event_destroy(pool->events[--pool->event_count]);
    }
    device->pinned = NULL;
    destroy(pool);
}

static bool lies_in(const struct ds_accel__pinned_block *block, const void *address)
{
    return (uintptr_t)address - (uintptr_t)block->pointer < block->size_bytes;
}

static enum ds_accel__pinned_place place_in(struct ds_accel__pinned *pool, const void *base,
                                            const void *address)
{
    enum ds_accel__pinned_place place = DS_ACCEL__PINNED_FOREIGN;
    const struct ds_accel__pinned_block *block;

    pthread_mutex_lock(&pool->lock);
    block = ds_accel__pinned_block(pool, base);
    for (size_t i = 0; base == NULL && block == NULL && i < pool->bucket_count; i++) {
        block = pool->buckets[i];
        while (block != NULL && !lies_in(block, address)) {
            block = block->next_in_bucket;
        }
    }
    if (block != NULL) {
        place = block->state == DS_ACCEL__PINNED_IN_USE ? DS_ACCEL__PINNED_LIVE
                                                        : DS_ACCEL__PINNED_FREE;
    }
    pthread_mutex_unlock(&pool->lock);
    return place;
}

enum ds_accel__pinned_place ds_accel__pinned_find(ds_accel_t *context, const void *base,
                                                  const void *address)
{
    enum ds_accel__pinned_place place = DS_ACCEL__PINNED_FOREIGN;

    pthread_mutex_lock(&context->device_lock);
    for (uint32_t i = 0; context->devices != NULL && i < context->device_count; i++) {
        struct ds_accel__device *device = context->devices[i];
        struct ds_accel__pinned *pool =
            device != NULL ? __atomic_load_n(&device->pinned, __ATOMIC_ACQUIRE) : NULL;

        if (pool != NULL && place == DS_ACCEL__PINNED_FOREIGN) {
            place = place_in(pool, base, address);
        }
    }
    pthread_mutex_unlock(&context->device_lock);
    return place;
}
