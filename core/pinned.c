/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The pool of page-locked host memory: what stands behind ds_accel_mem_alloc_pinned().
 *
 * Locking pages costs a system call and the kernel's walk over each page, and a runtime also makes
 * them known to the device. So a freed block is not given back: it waits for the next caller who
 * wants one of its size, flags and alignment.
 *
 * Sizes. Eight classes per doubling, in whole pages: at most an eighth of a block is unused. What
 * is larger than any address space goes to the runtime as it is, to be refused there. When the
 * kernel's limit is met, the pool is emptied and the runtime asked once more for exactly what the
 * caller wanted, so that the message of a refusal has the caller's figure in it.
 *
 * Reuse. The host may use a block as soon as it has it, and no queue stands between the host and
 * its memory. So a block that streams copy from or to is given out again only after they are done;
 * nobody waits for that. Freeing records an event in each of its streams, and whoever finds no
 * block asks those events. Where no event can tell, because the stream is gone, is being captured
 * or the runtime has no events, the whole device must have been idle once.
 *
 * Blocks are found by address in a hash table, and by class in lists of those that are ready; what
 * still waits stands apart, so that a hit never looks at it. One lock per device guards all of it;
 * it is not held while the runtime locks or unlocks pages.
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BITS 12 /* the least class: no runtime locks less */
#define LIST_COUNT 256u
#define FIRST_BUCKETS 64u
#define KNOWN_FLAGS \
    (DS_ACCEL_PINNED_PORTABLE | DS_ACCEL_PINNED_MAPPED | DS_ACCEL_PINNED_WRITE_COMBINED | \
     DS_ACCEL_PINNED_HUGE_PAGES)
#define FIRST_CHECKPOINT_BYTES (UINT64_C(32) << 30)

enum state {
    LIVE,
    READY,
    WAITING
};

/* A stream that uses a block; after the block was freed, what says that it is done. */
struct use {
    struct ds_accel__stream *stream;
    uint64_t stream_id;
    ds_accel_plugin_event_t *event; /* NULL: the device must have been idle */
};

struct block {
    struct block *next_in_bucket;
    struct block *next; /* of those that are ready or wait */
    char *pointer;
    uint64_t size_bytes;
    uint64_t asked_bytes; /* of the live one */
    uint32_t flags;
    enum state state;
    struct use *uses;
    uint32_t use_count;
    uint32_t use_capacity;
};

/* What a caller gets, and the totals with it. */
struct grant {
    void *pointer;
    uint64_t total_bytes;
    uint64_t calls;
};

struct ds_accel__pinned {
    struct ds_accel__device *device;
    uint64_t page_bytes;
    /* Guards all below. */
    pthread_mutex_t lock;
    struct block **buckets; /* by address */
    size_t bucket_count;    /* a power of two */
    struct block *ready[LIST_COUNT];
    struct block *waiting;
    ds_accel_plugin_event_t **events; /* spare ones; room for all that exist */
    size_t event_count;
    size_t events_made;
    uint64_t kept_limit_bytes;
    struct ds_accel_pinned_stats stats;
};

/* ---- classes -------------------------------------------------------------------------------- */

/* The size that a request is rounded to. */
static uint64_t class_of(uint64_t size_bytes)
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

static struct block **ready_list(struct ds_accel__pinned *pool, uint64_t size_bytes, uint32_t flags)
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

static struct block *find(const struct ds_accel__pinned *pool, const void *pointer)
{
    struct block *block = pool->buckets[bucket_of(pool, pointer)];

    while (block != NULL && block->pointer != pointer) {
        block = block->next_in_bucket;
    }
    return block;
}

/* A table that could not grow is slower, nothing worse. */
static void grow(struct ds_accel__pinned *pool)
{
    size_t old_count = pool->bucket_count;
    struct block **old = pool->buckets;
    struct block **larger = calloc(old_count * 2, sizeof(struct block *));

    if (larger == NULL) {
        return;
    }
    pool->buckets = larger;
    pool->bucket_count = old_count * 2;
    for (size_t i = 0; i < old_count; i++) {
        while (old[i] != NULL) {
            struct block *block = old[i];
            size_t bucket = bucket_of(pool, block->pointer);

            old[i] = block->next_in_bucket;
            block->next_in_bucket = larger[bucket];
            larger[bucket] = block;
        }
    }
    free(old);
}

static void insert(struct ds_accel__pinned *pool, struct block *block)
{
    size_t bucket;

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
}

static void forget(struct ds_accel__pinned *pool, const struct block *block)
{
    struct block **place = &pool->buckets[bucket_of(pool, block->pointer)];

    while (*place != block) {
        place = &(*place)->next_in_bucket;
    }
    *place = block->next_in_bucket;
    pool->stats.block_count--;
    pool->stats.reserved_bytes -= block->size_bytes;
}

/* ---- events --------------------------------------------------------------------------------- */

/* A spare event or a new one; NULL: there is none to be had. */
static ds_accel_plugin_event_t *take_event(struct ds_accel__pinned *pool)
{
    const struct ds_accel_device *device = &pool->device->abi;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_event_t **larger;
    ds_accel_plugin_event_t *event = NULL;

    if (pool->event_count > 0) {
        return pool->events[--pool->event_count];
    }
    larger = realloc(pool->events, (pool->events_made + 1) * sizeof(ds_accel_plugin_event_t *));
    if (larger == NULL) {
        return NULL;
    }
    pool->events = larger;
    if (device->table->event_create(device->handle, 0, &event, &error) != DS_ACCEL_OK) {
        return NULL;
    }
    pool->events_made += event != NULL;
    return event;
}

static void put_event(struct ds_accel__pinned *pool, ds_accel_plugin_event_t *event)
{
    pool->events[pool->event_count++] = event;
}

/* An event that says when the stream is done with what it has now; NULL: none can. */
static ds_accel_plugin_event_t *mark(struct ds_accel__pinned *pool, const struct use *use)
{
    const struct ds_accel_plugin *table = pool->device->abi.table;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint32_t capturing = DS_ACCEL_CAPTURING_NO;
    ds_accel_plugin_event_t *event;

    if (__atomic_load_n(&use->stream->child.id, __ATOMIC_RELAXED) != use->stream_id) {
        return NULL;
    }
    /* In a capture an event would become a part of the graph. */
    if (table->graph_capture_status(use->stream->abi.handle, &capturing, &error) == DS_ACCEL_OK &&
        capturing != DS_ACCEL_CAPTURING_NO) {
        return NULL;
    }
    event = take_event(pool);
    if (event != NULL &&
        table->event_record(event, use->stream->abi.handle, &error) != DS_ACCEL_OK) {
        put_event(pool, event);
        event = NULL;
    }
    return event;
}

/* Is the device idle? A runtime that cannot be asked has no work to wait for. */
static bool is_idle(const struct ds_accel__pinned *pool)
{
    const struct ds_accel_device *device = &pool->device->abi;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = device->table->device_synchronize(device->handle, 0, &error);

    return status == DS_ACCEL_OK || status == DS_ACCEL_ERR_UNSUPPORTED;
}

/* True if all that used the block is done; what is done is not asked again. */
static bool is_done(struct ds_accel__pinned *pool, struct block *block)
{
    const struct ds_accel_plugin *table = pool->device->abi.table;
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    while (block->use_count > 0) {
        struct use *use = &block->uses[block->use_count - 1];

        if (use->event != NULL ? table->event_query(use->event, &error) != DS_ACCEL_OK
                               : !is_idle(pool)) {
            return false;
        }
        if (use->event != NULL) {
            put_event(pool, use->event);
        }
        block->use_count--;
    }
    return true;
}

/* ---- what the pool keeps -------------------------------------------------------------------- */

static void keep(struct ds_accel__pinned *pool, struct block *block)
{
    struct block **list = ready_list(pool, block->size_bytes, block->flags);

    block->state = READY;
    block->next = *list;
    *list = block;
}

/* Make ready what is done. */
static void poll_waiting(struct ds_accel__pinned *pool)
{
    struct block **place = &pool->waiting;

    while (*place != NULL) {
        struct block *block = *place;

        if (is_done(pool, block)) {
            *place = block->next;
            pool->stats.waiting_bytes -= block->size_bytes;
            keep(pool, block);
        } else {
            place = &block->next;
        }
    }
}

/* A block that fits, out of its list; NULL: none is ready. */
static struct block *take_ready(struct ds_accel__pinned *pool, uint64_t size_bytes,
                                uint64_t align_bytes, uint32_t flags)
{
    struct block **place = ready_list(pool, size_bytes, flags);

    while (*place != NULL) {
        struct block *block = *place;

        if (block->size_bytes == size_bytes && block->flags == flags &&
            ((uintptr_t)block->pointer & (align_bytes - 1)) == 0) {
            *place = block->next;
            return block;
        }
        place = &block->next;
    }
    return NULL;
}

/* Take blocks that are ready out of the pool until it keeps no more than that: a list to release.
 */
static struct block *take_surplus(struct ds_accel__pinned *pool, uint64_t kept_bytes)
{
    struct block *surplus = NULL;

    for (size_t i = 0; i < LIST_COUNT && pool->stats.cached_bytes > kept_bytes; i++) {
        while (pool->ready[i] != NULL && pool->stats.cached_bytes > kept_bytes) {
            struct block *block = pool->ready[i];

            pool->ready[i] = block->next;
            pool->stats.cached_bytes -= block->size_bytes;
            forget(pool, block);
            block->next = surplus;
            surplus = block;
        }
    }
    return surplus;
}

/* Give a list of blocks back to the runtime. True if there was one. */
static bool release(struct ds_accel__pinned *pool, struct block *surplus)
{
    const struct ds_accel_device *device = &pool->device->abi;
    bool was_any = surplus != NULL;

    while (surplus != NULL) {
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        struct block *block = surplus;
        char text[400];
        int32_t status;

        surplus = block->next;
        status = device->table->mem_free_pinned(device->handle, block->pointer, &error);
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
        pool->buckets = calloc(FIRST_BUCKETS, sizeof(struct block *));
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

/* The device's pool, made by its first use; NULL: no memory. */
static struct ds_accel__pinned *get_pool(struct ds_accel__device *device)
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

/* A live device that this process may use, and its pool; NULL with the error said. */
static struct ds_accel__pinned *enter(ds_accel_device_t *device, const char *call,
                                      int32_t *status_out)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, call);
    struct ds_accel__pinned *pool;

    if (ours == NULL) {
        *status_out = DS_ACCEL_ERR_INVALID;
        return NULL;
    }
    *status_out = ds_accel__device_fork_check(ours);
    if (*status_out < 0) {
        return NULL;
    }
    pool = get_pool(ours);
    *status_out = pool != NULL ? DS_ACCEL_OK : DS_ACCEL_ERR_NO_MEMORY;
    return pool;
}

/* Release everything, also what is live: the device is being closed. */
void ds_accel__pinned_close(struct ds_accel__device *device)
{
    struct ds_accel__pinned *pool = device->pinned;
    const struct ds_accel_plugin *table = device->abi.table;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct block *all = NULL;

    if (pool == NULL) {
        return;
    }
    if (pool->waiting != NULL || pool->stats.allocated_bytes > 0) {
        table->device_synchronize(device->abi.handle, UINT64_MAX, &error);
    }
    for (size_t i = 0; i < pool->bucket_count; i++) {
        for (struct block *block = pool->buckets[i]; block != NULL; block = block->next_in_bucket) {
            for (uint32_t use = 0; block->state != LIVE && use < block->use_count; use++) {
                if (block->uses[use].event != NULL) {
                    put_event(pool, block->uses[use].event);
                }
            }
            block->next = all;
            all = block;
        }
    }
    release(pool, all);
    while (pool->event_count > 0) {
        table->event_destroy(pool->events[--pool->event_count]);
    }
    device->pinned = NULL;
    destroy(pool);
}

/* ---- accounting ----------------------------------------------------------------------------- */

static void format_size(uint64_t size_bytes, char *text, size_t text_size)
{
    double size = (double)size_bytes;

    if (size_bytes >= UINT64_C(1) << 30) {
        snprintf(text, text_size, "%.3f GB", size / (double)(UINT64_C(1) << 30));
    } else if (size_bytes >= UINT64_C(1) << 20) {
        snprintf(text, text_size, "%.2f MB", size / (double)(UINT64_C(1) << 20));
    } else {
        snprintf(text, text_size, "%.1f KB", size / 1024);
    }
}

/* Has the total crossed checkpoints, each twice the one before, by this many bytes more? */
static bool crosses_checkpoint(uint64_t before, uint64_t after)
{
    return after >= FIRST_CHECKPOINT_BYTES &&
           (before < FIRST_CHECKPOINT_BYTES || __builtin_clzll(before / FIRST_CHECKPOINT_BYTES) !=
                                                   __builtin_clzll(after / FIRST_CHECKPOINT_BYTES));
}

/* Say what was asked for, and what for all in all, as DeepSpeed's tracker does; no lock held. */
static void account(const struct ds_accel__pinned *pool, uint64_t size_bytes,
                    const struct grant *grant)
{
    const struct ds_accel__log *log = &pool->device->context->log;
    bool is_checkpoint = crosses_checkpoint(grant->total_bytes - size_bytes, grant->total_bytes);
    uint32_t level = is_checkpoint ? DS_ACCEL_LOG_INFO : DS_ACCEL_LOG_DEBUG;
    char size[32];
    char sum[32];

    if (!ds_accel__log_enabled(log, "pinned", level)) {
        return;
    }
    format_size(size_bytes, size, sizeof(size));
    format_size(grant->total_bytes, sum, sizeof(sum));
    ds_accel__log(log, "pinned", level, "device %u: %s pinned; %s in all, in %llu calls",
                  pool->device->index, size, sum, (unsigned long long)grant->calls);
}

/* Lock held. */
static void give_out(struct ds_accel__pinned *pool, struct block *block, uint64_t asked_bytes,
                     struct grant *grant)
{
    struct ds_accel_pinned_stats *stats = &pool->stats;

    block->state = LIVE;
    block->asked_bytes = asked_bytes;
    block->use_count = 0;
    stats->alloc_count++;
    stats->requested_bytes += asked_bytes;
    stats->allocated_bytes += asked_bytes;
    if (stats->allocated_bytes > stats->allocated_peak_bytes) {
        stats->allocated_peak_bytes = stats->allocated_bytes;
    }
    grant->pointer = block->pointer;
    grant->total_bytes = stats->requested_bytes;
    grant->calls = stats->alloc_count;
}

/* ---- allocating ----------------------------------------------------------------------------- */

static int32_t lock_pages(struct ds_accel__pinned *pool, struct block *block, uint64_t align_bytes,
                          struct ds_accel_error *error)
{
    const struct ds_accel_device *device = &pool->device->abi;
    void *pointer = NULL;
    int32_t status = device->table->mem_alloc_pinned(device->handle, block->size_bytes, align_bytes,
                                                     block->flags, &pointer, error);

    if (status == DS_ACCEL_OK && pointer == NULL) {
        status = DS_ACCEL_ERR_ABI;
    }
    block->pointer = pointer;
    return status > 0 ? DS_ACCEL_ERR_ABI : status;
}

/* Give all that is ready back, and what has just become so. True if there was any. */
static bool empty(struct ds_accel__pinned *pool)
{
    struct block *surplus;

    pthread_mutex_lock(&pool->lock);
    poll_waiting(pool);
    surplus = take_surplus(pool, 0);
    pthread_mutex_unlock(&pool->lock);
    return release(pool, surplus);
}

/* From the runtime; where a limit is met, once more with an empty pool. */
static int32_t allocate(struct ds_accel__pinned *pool, uint64_t size_bytes, uint64_t align_bytes,
                        uint32_t flags, struct grant *grant)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct block *block = calloc(1, sizeof(*block));
    bool is_retry = false;
    int32_t status;

    if (block == NULL) {
        return ds_accel__no_memory();
    }
    block->flags = flags;
    block->size_bytes = class_of(size_bytes);
    status = lock_pages(pool, block, align_bytes, &error);
    if ((status == DS_ACCEL_ERR_LIMIT || status == DS_ACCEL_ERR_NO_MEMORY) &&
        (empty(pool) || block->size_bytes != size_bytes)) {
        is_retry = true;
        error = (struct ds_accel_error){.struct_size = sizeof(error)};
        block->size_bytes = size_bytes;
        status = lock_pages(pool, block, align_bytes, &error);
    }
    if (status < 0) {
        free(block);
        return ds_accel__fail(status, &error);
    }
    pthread_mutex_lock(&pool->lock);
    insert(pool, block);
    give_out(pool, block, size_bytes, grant);
    pool->stats.alloc_retry_count += is_retry;
    pthread_mutex_unlock(&pool->lock);
    return DS_ACCEL_OK;
}

/* One of the request's class, or of exactly its size, from when there was no room for more. */
static struct block *take_fitting(struct ds_accel__pinned *pool, uint64_t size_bytes,
                                  uint64_t align_bytes, uint32_t flags)
{
    uint64_t class_bytes = class_of(size_bytes);
    struct block *block = take_ready(pool, class_bytes, align_bytes, flags);

    return block == NULL && class_bytes != size_bytes
               ? take_ready(pool, size_bytes, align_bytes, flags)
               : block;
}

/* From the pool; false: it has none. */
static bool reuse(struct ds_accel__pinned *pool, uint64_t size_bytes, uint64_t align_bytes,
                  uint32_t flags, struct grant *grant)
{
    struct block *block;

    pthread_mutex_lock(&pool->lock);
    block = take_fitting(pool, size_bytes, align_bytes, flags);
    if (block == NULL && pool->waiting != NULL) {
        poll_waiting(pool);
        block = take_fitting(pool, size_bytes, align_bytes, flags);
    }
    if (block != NULL) {
        pool->stats.cached_bytes -= block->size_bytes;
        pool->stats.hit_count++;
        give_out(pool, block, size_bytes, grant);
    }
    pthread_mutex_unlock(&pool->lock);
    return block != NULL;
}

static int32_t check_request(uint64_t size_bytes, uint64_t align_bytes, uint32_t flags)
{
    if (size_bytes == 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "mem_alloc_pinned: 0 bytes asked for");
    }
    if ((align_bytes & (align_bytes - 1)) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "mem_alloc_pinned: alignment %llu is neither 0, 1 nor a power of "
                               "two",
                               (unsigned long long)align_bytes);
    }
    if ((flags & ~KNOWN_FLAGS) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "mem_alloc_pinned: unknown flags %#x",
                               flags & ~KNOWN_FLAGS);
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel_mem_alloc_pinned(ds_accel_device_t *device, uint64_t size_bytes,
                                  uint64_t align_bytes, uint32_t flags, void **pointer_out)
{
    struct ds_accel__pinned *pool;
    struct grant grant;
    int32_t status;

    pool = enter(device, "mem_alloc_pinned", &status);
    if (pool == NULL) {
        return status;
    }
    if (pointer_out == NULL) {
        return ds_accel__refuse("mem_alloc_pinned", "output", NULL);
    }
    status = check_request(size_bytes, align_bytes, flags);
    if (status < 0) {
        return status;
    }
    if (!reuse(pool, size_bytes, align_bytes != 0 ? align_bytes : pool->page_bytes, flags,
               &grant)) {
        status = allocate(pool, size_bytes, align_bytes, flags, &grant);
    }
    if (status >= 0) {
        *pointer_out = grant.pointer;
        account(pool, size_bytes, &grant);
    }
    return status;
}

/* ---- freeing -------------------------------------------------------------------------------- */

static int32_t refuse_pointer(const struct ds_accel__pinned *pool, const char *call,
                              const void *pointer, const struct block *block)
{
    if (block != NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: %p was freed already", call, pointer);
    }
    return ds_accel__error(DS_ACCEL_ERR_INVALID,
                           "%s: %p is not the start of pinned memory of device %u", call, pointer,
                           pool->device->index);
}

/* Lock held. What is over the limit is returned, to be released. */
static struct block *take_back(struct ds_accel__pinned *pool, struct block *block)
{
    struct ds_accel_pinned_stats *stats = &pool->stats;

    stats->free_count++;
    stats->allocated_bytes -= block->asked_bytes;
    stats->cached_bytes += block->size_bytes;
    for (uint32_t i = 0; i < block->use_count; i++) {
        block->uses[i].event = mark(pool, &block->uses[i]);
    }
    if (block->use_count > 0) {
        block->state = WAITING;
        block->next = pool->waiting;
        pool->waiting = block;
        stats->waiting_bytes += block->size_bytes;
    } else {
        keep(pool, block);
    }
    return stats->cached_bytes > pool->kept_limit_bytes ? take_surplus(pool, pool->kept_limit_bytes)
                                                        : NULL;
}

int32_t ds_accel_mem_free_pinned(ds_accel_device_t *device, void *pointer)
{
    struct ds_accel__pinned *pool;
    struct block *surplus = NULL;
    struct block *block;
    bool is_live;
    int32_t status;

    pool = enter(device, "mem_free_pinned", &status);
    if (pool == NULL || pointer == NULL) {
        return status;
    }
    pthread_mutex_lock(&pool->lock);
    block = find(pool, pointer);
    is_live = block != NULL && block->state == LIVE;
    if (is_live) {
        surplus = take_back(pool, block);
    }
    pthread_mutex_unlock(&pool->lock);
    if (!is_live) {
        return refuse_pointer(pool, "mem_free_pinned", pointer, block);
    }
    if (surplus != NULL) {
        release(pool, surplus);
    }
    return DS_ACCEL_OK;
}

/* Lock held. */
static int32_t add_use(struct block *block, struct ds_accel__stream *stream)
{
    for (uint32_t i = 0; i < block->use_count; i++) {
        if (block->uses[i].stream == stream && block->uses[i].stream_id == stream->child.id) {
            return DS_ACCEL_OK;
        }
    }
    if (block->use_count == block->use_capacity) {
        uint32_t capacity = block->use_capacity > 0 ? block->use_capacity * 2 : 2;
        struct use *larger = realloc(block->uses, capacity * sizeof(*larger));

        if (larger == NULL) {
            return ds_accel__no_memory();
        }
        block->uses = larger;
        block->use_capacity = capacity;
    }
    block->uses[block->use_count++] = (struct use){.stream = stream, .stream_id = stream->child.id};
    return DS_ACCEL_OK;
}

int32_t ds_accel__pinned_record(struct ds_accel__device *device, const void *pointer,
                                struct ds_accel__stream *stream)
{
    struct ds_accel__pinned *pool = __atomic_load_n(&device->pinned, __ATOMIC_ACQUIRE);
    struct block *block;
    int32_t status = DS_ACCEL_ERR_NOT_FOUND;

    if (pool == NULL || device->candidate->watch.is_forked) {
        return status;
    }
    pthread_mutex_lock(&pool->lock);
    block = find(pool, pointer);
    if (block != NULL) {
        status = block->state == LIVE ? add_use(block, stream)
                                      : refuse_pointer(pool, "mem_record_stream", pointer, block);
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

/* ---- asking and setting --------------------------------------------------------------------- */

static bool lies_in(const struct block *block, const void *address)
{
    return (uintptr_t)address - (uintptr_t)block->pointer < block->size_bytes;
}

static enum ds_accel__pinned_place place_in(struct ds_accel__pinned *pool, const void *base,
                                            const void *address)
{
    struct block *block;

    pthread_mutex_lock(&pool->lock);
    block = find(pool, base);
    for (size_t i = 0; base == NULL && block == NULL && i < pool->bucket_count; i++) {
        block = pool->buckets[i];
        while (block != NULL && !lies_in(block, address)) {
            block = block->next_in_bucket;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return block == NULL          ? DS_ACCEL__PINNED_FOREIGN
           : block->state == LIVE ? DS_ACCEL__PINNED_LIVE
                                  : DS_ACCEL__PINNED_FREE;
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

int32_t ds_accel_pinned_stats(ds_accel_device_t *device, struct ds_accel_pinned_stats *stats_out)
{
    struct ds_accel_pinned_stats stats;
    struct ds_accel__pinned *pool;
    int32_t status;

    pool = enter(device, "pinned_stats", &status);
    if (pool == NULL) {
        return status;
    }
    if (stats_out == NULL) {
        return ds_accel__refuse("pinned_stats", "output", NULL);
    }
    pthread_mutex_lock(&pool->lock);
    stats = pool->stats;
    stats.limit_bytes = pool->kept_limit_bytes;
    pthread_mutex_unlock(&pool->lock);
    ds_accel_write(stats_out, &stats, sizeof(stats));
    return DS_ACCEL_OK;
}

int32_t ds_accel_pinned_reset_peaks(ds_accel_device_t *device)
{
    struct ds_accel__pinned *pool;
    int32_t status;

    pool = enter(device, "pinned_reset_peaks", &status);
    if (pool != NULL) {
        pthread_mutex_lock(&pool->lock);
        pool->stats.allocated_peak_bytes = pool->stats.allocated_bytes;
        pool->stats.reserved_peak_bytes = pool->stats.reserved_bytes;
        pthread_mutex_unlock(&pool->lock);
    }
    return status;
}

int32_t ds_accel_pinned_empty_cache(ds_accel_device_t *device)
{
    struct ds_accel__pinned *pool;
    int32_t status;

    pool = enter(device, "pinned_empty_cache", &status);
    if (pool != NULL) {
        empty(pool);
    }
    return status;
}

int32_t ds_accel_pinned_set_limit(ds_accel_device_t *device, uint64_t limit_bytes)
{
    struct ds_accel__pinned *pool;
    struct block *surplus = NULL;
    int32_t status;

    pool = enter(device, "pinned_set_limit", &status);
    if (pool == NULL) {
        return status;
    }
    pthread_mutex_lock(&pool->lock);
    pool->kept_limit_bytes = limit_bytes;
    poll_waiting(pool);
    surplus = take_surplus(pool, limit_bytes);
    pthread_mutex_unlock(&pool->lock);
    release(pool, surplus);
    return DS_ACCEL_OK;
}
