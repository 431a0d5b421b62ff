/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Pinned memory for programs: checked calls in front of the pool and the plugin, and accounting. */
#include "runtime/pinned.h"
#include "base/clock.h"
#include "base/text.h"
#include "host/context.h"
#include "host/layers.h"
#include "host/registry.h"
#include "runtime/caching.h"
#include "runtime/handle.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_FLAGS \
    (DS_ACCEL_PINNED_PORTABLE | DS_ACCEL_PINNED_MAPPED | DS_ACCEL_PINNED_WRITE_COMBINED | \
     DS_ACCEL_PINNED_HUGE_PAGES)
#define FIRST_CHECKPOINT_BYTES (UINT64_C(32) << 30)

/* The memory returned to a caller, and how many bytes and calls the program has requested so far,
 * including this allocation. */
struct grant {
    void *pointer;
    uint64_t total_bytes;
    uint64_t calls;
};

/* Return the pool of a device; NULL, with the error set, if the device is not live or this process
 * may not use it. */
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
    pool = ds_accel__pinned_pool(ours);
    *status_out = pool != NULL ? DS_ACCEL_OK : DS_ACCEL_ERR_NO_MEMORY;
    return pool;
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

/* Whether the sum of all requests has reached a new checkpoint. The first checkpoint is 32 GiB, and
 * each further checkpoint is twice the previous one. */
static bool crosses_checkpoint(uint64_t before, uint64_t after)
{
    return after >= FIRST_CHECKPOINT_BYTES &&
           (before < FIRST_CHECKPOINT_BYTES || __builtin_clzll(before / FIRST_CHECKPOINT_BYTES) !=
                                                   __builtin_clzll(after / FIRST_CHECKPOINT_BYTES));
}

/* Log the request, and the sum of all requests so far, which frees do not reduce, as DeepSpeed's
 * tracker of pinned memory does. The level is info at a checkpoint, else debug. The caller holds no
 * lock. */
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

/* Count the allocation of a block by the program, and fill in *grant. The caller holds
 * pool->lock. */
static void give_out(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block,
                     uint64_t asked_bytes, struct grant *grant)
{
    struct ds_accel_pinned_stats *stats = &pool->stats;

    assert(block->size_bytes >= asked_bytes && block->use_count == 0);
    block->state = DS_ACCEL__PINNED_IN_USE;
    block->asked_bytes = asked_bytes;
    block->use_count = 0;
    ds_accel__pinned_count(pool, block, DS_ACCEL__PINNED_BUSY);
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

static int32_t lock_pages(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block,
                          uint64_t align_bytes, struct ds_accel_error *error)
{
    const struct ds_accel_device *device = &pool->device->abi;
    uint64_t begin_ns = ds_accel__now_ns();
    void *pointer = NULL;
    int32_t status = device->table->mem_alloc_pinned(device->handle, block->size_bytes, align_bytes,
                                                     block->flags, &pointer, error);

    if (status == DS_ACCEL_OK && pointer == NULL) {
        status = DS_ACCEL_ERR_ABI;
    }
    block->pointer = pointer;
    if (status == DS_ACCEL_OK) {
        ds_accel__pinned_time(pool, false, begin_ns);
    }
    return status > 0 ? DS_ACCEL_ERR_ABI : status;
}

/* Release all ready blocks, including blocks that just became ready. True: at least one block was
 * released. */
static bool empty(struct ds_accel__pinned *pool)
{
    struct ds_accel__pinned_block *surplus;

    pthread_mutex_lock(&pool->lock);
    surplus = ds_accel__pinned_surplus(pool, 0);
    pthread_mutex_unlock(&pool->lock);
    return ds_accel__pinned_release(pool, surplus);
}

/* Allocate from the runtime with the rounded size. If a limit is reached or memory is exhausted,
 * empty the pool and retry once with exactly the requested size, unless no block was released and
 * that size was tried already. */
static int32_t allocate(struct ds_accel__pinned *pool, uint64_t size_bytes, uint64_t align_bytes,
                        uint32_t flags, struct grant *grant)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel__pinned_block *block = calloc(1, sizeof(*block));
    bool is_retry = false;
    int32_t status;

    if (block == NULL) {
        return ds_accel__no_memory();
    }
    block->flags = flags;
    block->size_bytes = ds_accel__pinned_class(size_bytes);
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
    ds_accel__pinned_insert(pool, block);
    give_out(pool, block, size_bytes, grant);
    pool->stats.alloc_retry_count += is_retry;
    pthread_mutex_unlock(&pool->lock);
    return DS_ACCEL_OK;
}

/* Take a block that fits from the pool; false: the pool has none. */
static bool reuse(struct ds_accel__pinned *pool, uint64_t size_bytes, uint64_t align_bytes,
                  uint32_t flags, struct grant *grant)
{
    struct ds_accel__pinned_block *block;

    pthread_mutex_lock(&pool->lock);
    block = ds_accel__pinned_take(pool, size_bytes, align_bytes, flags);
    if (block != NULL) {
        pool->stats.hit_count++;
        give_out(pool, block, size_bytes, grant);
    }
    pthread_mutex_unlock(&pool->lock);
    return block != NULL;
}

static int32_t check_request(uint64_t size_bytes, uint64_t align_bytes, uint32_t flags)
{
    if (size_bytes == 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "mem_alloc_pinned: 0 bytes requested");
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
    struct grant grant = {0};
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
        ds_accel__layer_host_block(device->handle, grant.pointer, size_bytes);
        account(pool, size_bytes, &grant);
    }
    return status;
}

/* ---- freeing -------------------------------------------------------------------------------- */

static int32_t refuse_pointer(const struct ds_accel__pinned *pool, const char *call,
                              const void *pointer, const struct ds_accel__pinned_block *block)
{
    if (block != NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: %p was freed already", call, pointer);
    }
    return ds_accel__error(DS_ACCEL_ERR_INVALID,
                           "%s: %p is not the start of pinned memory of device %u", call, pointer,
                           pool->device->index);
}

int32_t ds_accel_mem_free_pinned(ds_accel_device_t *device, void *pointer)
{
    struct ds_accel__pinned *pool;
    struct ds_accel__pinned_block *surplus = NULL;
    struct ds_accel__pinned_block *block;
    bool is_live;
    int32_t status;

    pool = enter(device, "mem_free_pinned", &status);
    if (pool == NULL || pointer == NULL) {
        return status;
    }
    pthread_mutex_lock(&pool->lock);
    block = ds_accel__pinned_block(pool, pointer);
    is_live = block != NULL && block->state == DS_ACCEL__PINNED_IN_USE;
    if (is_live) {
        ds_accel__layer_host_block(device->handle, pointer, 0);
        surplus = ds_accel__pinned_put(pool, block);
    }
    pthread_mutex_unlock(&pool->lock);
    if (!is_live) {
        return refuse_pointer(pool, "mem_free_pinned", pointer, block);
    }
    if (surplus != NULL) {
        ds_accel__pinned_release(pool, surplus);
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel__pinned_record(struct ds_accel__device *device, const void *pointer,
                                struct ds_accel__stream *stream)
{
    struct ds_accel__pinned *pool = __atomic_load_n(&device->pinned, __ATOMIC_ACQUIRE);
    struct ds_accel__pinned_block *block;
    int32_t status = DS_ACCEL_ERR_NOT_FOUND;

    if (pool == NULL || device->candidate->watch.is_forked) {
        return status;
    }
    pthread_mutex_lock(&pool->lock);
    block = ds_accel__pinned_block(pool, pointer);
    if (block != NULL) {
        status = block->state == DS_ACCEL__PINNED_IN_USE
                     ? ds_accel__pinned_use(block, stream)
                     : refuse_pointer(pool, "mem_record_stream", pointer, block);
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

/* ---- statistics and limits ------------------------------------------------------------------ */

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
        ds_accel__pinned_forget_peaks(pool);
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
    struct ds_accel__pinned_block *surplus = NULL;
    int32_t status;

    pool = enter(device, "pinned_set_limit", &status);
    if (pool == NULL) {
        return status;
    }
    pthread_mutex_lock(&pool->lock);
    pool->kept_limit_bytes = limit_bytes;
    surplus = ds_accel__pinned_surplus(pool, limit_bytes);
    pthread_mutex_unlock(&pool->lock);
    ds_accel__pinned_release(pool, surplus);
    return DS_ACCEL_OK;
}
