/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The slow path of an allocation. A request that the fast path of allocator.c does not serve tries
 * these sources in turn: free blocks of the arena; pending blocks of the arena; a segment of a
 * destroyed stream or pool; the driver; the driver again after releasing blocks that are not split
 * because of max_split_bytes; the driver again after waiting for pending blocks and releasing all
 * cached memory; with growable segments, a separate segment of less than a page; parts of other
 * arenas' segments; memory that the program's callback frees.
 */
#include "base/text.h"
#include "host/layers.h"
#include "runtime/allocator/allocator.h"

#include <assert.h>
#include <string.h>

#define LARGEST_ALIGN (UINT64_C(1) << 30)
#define ATTEMPT_LIMIT 16u

/* ---- sizes ---------------------------------------------------------------------------------- */

static uint64_t round_request(const struct ds_accel__allocator *allocator, uint64_t size_bytes)
{
    uint64_t divisions = allocator->options.roundup_power2_divisions;
    uint64_t units = (size_bytes + DS_ACCEL__UNIT - 1) & ~(DS_ACCEL__UNIT - 1);

    if (divisions > 1 && size_bytes > DS_ACCEL__UNIT * divisions) {
        uint64_t floor = UINT64_C(1) << (63 - __builtin_clzll(size_bytes));
        uint64_t step = floor / divisions;

        units = (size_bytes + step - 1) / step * step;
        units = (units + DS_ACCEL__UNIT - 1) & ~(DS_ACCEL__UNIT - 1);
    }
    assert(units >= size_bytes && (units & (DS_ACCEL__UNIT - 1)) == 0);
    return units;
}

static uint32_t kind_of(const struct ds_accel__allocator *allocator, uint64_t fit_bytes)
{
    return fit_bytes <= allocator->options.small_limit_bytes ? DS_ACCEL__SMALL : DS_ACCEL__LARGE;
}

/* ---- pending blocks ------------------------------------------------------------------------- */

/*
 * Take a pending block of the arena that fits, and make the stream of arena user wait for the
 * block's marks. If user is the same arena, the remainder of the block becomes free. If user is
 * another arena, which steals the block, the remainder stays pending, and the block keeps its marks
 * until the caller has also made user's stream wait for the stream of the block's arena. NULL: no
 * block was taken. The caller holds the arena's lock.
 */
static struct ds_accel__block *take_pending(struct ds_accel__arena *arena,
                                            struct ds_accel__arena *user, uint32_t kind,
                                            uint64_t fit_bytes, uint64_t align_bytes,
                                            struct ds_accel__change *changes)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    struct ds_accel__block *best = NULL;
    struct ds_accel__waits *waits;

    for (struct ds_accel__block *block = arena->pending; block != NULL; block = block->link_next) {
        if (!block->is_deferred && block->kind == kind &&
            ds_accel__block_holds(block, fit_bytes, align_bytes) &&
            (best == NULL || block->size_bytes < best->size_bytes)) {
            best = block;
        }
    }
    if (best == NULL || user->is_capturing || ds_accel__waits_wait(user, best->waits) < 0) {
        return NULL;
    }
    waits = best->waits;
    assert(best->uses == NULL);
    ds_accel__arena_flush(arena);
    ds_accel__arena_renew(arena);
    ds_accel__pending_unlink(arena, best);
    best->waits = NULL;
    changes[kind].removed.lane[DS_ACCEL__LANE_ACTIVE]++;
    changes[kind].removed.lane[DS_ACCEL__LANE_ACTIVE_BYTES] += (int64_t)best->size_bytes;
    best = ds_accel__block_cut(arena, best, fit_bytes, align_bytes, user == arena ? NULL : waits,
                               changes);
    if (best != NULL) {
        best->after = 0; /* 0 matches no stamp: freeing the block merges it */
    }
    if (best != NULL && user != arena) {
        best->waits = waits;
    } else {
        ds_accel__waits_put(allocator, waits);
    }
    return best;
}

/* ---- allocating ----------------------------------------------------------------------------- */

struct request {
    struct ds_accel__arena *arena; /* arena of the requesting stream */
    uint64_t size_bytes;
    uint64_t fit_bytes;
    uint64_t align_bytes;
    uint32_t kind;
};

/* Make a block in state TAKEN live: record the request in the block and count the allocation. The
 * caller holds the lock of the block's home arena; this function releases it. */
static void give(const struct request *request, struct ds_accel__block *block,
                 struct ds_accel__change *changes)
{
    struct ds_accel__allocator *allocator = request->arena->allocator;
    struct ds_accel__arena *home = block->home;
    uint64_t limit = allocator->options.max_split_bytes;

    assert(block->state == DS_ACCEL__BLOCK_TAKEN && block->waits == NULL && block->uses == NULL);
    assert(block->size_bytes >= request->fit_bytes);
    assert((block->address & (request->align_bytes - 1)) == 0);
    block->user = request->arena;
    if (block->user != home) {
        __atomic_fetch_add(&block->user->use_count, 1, __ATOMIC_RELAXED);
    }
    block->requested_bytes = request->size_bytes;
    block->fit_bytes = request->fit_bytes;
    block->is_oversize = limit != 0 && block->size_bytes >= limit;
    block->frames = ds_accel__history_add(allocator, DS_ACCEL__ACTION_ALLOC, block->address,
                                          block->size_bytes, request->arena->stream_id);
    ds_accel__change_alloc(block, &changes[block->kind]);
    ds_accel__figures_finish(home, changes, block, DS_ACCEL__BLOCK_LIVE);
}

/* Take a free block of the requesting arena, or else a pending block. Pending blocks whose marks
 * are reached become free first. NULL: no block fits, or memory for a struct ran out. */
static struct ds_accel__block *take_own(const struct request *request)
{
    struct ds_accel__arena *arena = request->arena;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];
    struct ds_accel__block *block;

    memset(changes, 0, sizeof(changes));
    ds_accel__latch_take(&arena->latch);
    ds_accel__pending_collect(arena, NULL, changes);
    block = ds_accel__block_take(arena, request->kind, request->fit_bytes, request->align_bytes,
                                 changes);
    if (block == NULL) {
        block = take_pending(arena, arena, request->kind, request->fit_bytes, request->align_bytes,
                             changes);
    }
    if (block != NULL) {
        give(request, block, changes);
    } else {
        ds_accel__figures_finish(arena, changes, NULL, DS_ACCEL__BLOCK_FREE);
    }
    return block;
}

/* Get memory for a block from the driver. NOT_READY: the arena has new memory, but no block was
 * taken from it, so the caller must search the arena again. */
static int32_t obtain(const struct request *request, bool may_grow,
                      struct ds_accel__block **block_out)
{
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];
    int32_t status;

    memset(changes, 0, sizeof(changes));
    status = ds_accel__segment_obtain(request->arena, request->kind, request->fit_bytes,
                                      request->align_bytes, may_grow, changes, block_out);
    if (status == DS_ACCEL_OK) {
        give(request, *block_out, changes);
    }
    return status;
}

/* Take a free or pending block of the given kind from the arena victim. NULL: no block fits, or
 * memory for a struct ran out. The caller holds the allocator's lock and all arena locks. */
static struct ds_accel__block *take_from(const struct request *request,
                                         struct ds_accel__arena *victim, uint32_t kind,
                                         struct ds_accel__change *changes)
{
    struct ds_accel__block *block;

    ds_accel__pending_collect(victim, NULL, changes);
    block = ds_accel__block_take(victim, kind, request->fit_bytes, request->align_bytes, changes);
    if (block == NULL) {
        block = take_pending(victim, request->arena, kind, request->fit_bytes, request->align_bytes,
                             changes);
    }
    return block;
}

/* After stealing failed, return the block to its arena, unchanged. The caller holds the allocator's
 * lock and all arena locks. */
static void put_back(struct ds_accel__arena *victim, struct ds_accel__block *block)
{
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];

    memset(changes, 0, sizeof(changes));
    if (block->waits != NULL) {
        changes[block->kind].added.lane[DS_ACCEL__LANE_ACTIVE]++;
        changes[block->kind].added.lane[DS_ACCEL__LANE_ACTIVE_BYTES] += (int64_t)block->size_bytes;
        ds_accel__pending_push(victim, block);
    } else {
        ds_accel__block_release(victim, block, changes);
    }
    ds_accel__figures_count(victim, changes);
}

/*
 * Take a block of either kind (small or large) from any arena that the request may use. All earlier
 * steps use only blocks of the request's kind in the requesting arena, and segments of destroyed
 * streams and pools. After this step only the program's callback remains. A block taken from
 * another arena still belongs to that arena: freeing the block returns it there.
 */
static struct ds_accel__block *take_anywhere(const struct request *request)
{
    struct ds_accel__allocator *allocator = request->arena->allocator;
    struct ds_accel__block *block = NULL;
    struct ds_accel__arena *victim;
    struct ds_accel__mark *mark = NULL;

    pthread_mutex_lock(&allocator->lock);
    for (victim = allocator->arenas; victim != NULL; victim = victim->next) {
        struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];

        if (!ds_accel__arena_may_use(request->arena, victim)) {
            continue;
        }
        memset(changes, 0, sizeof(changes));
        ds_accel__arenas_lock(allocator);
        for (uint32_t kind = 0; kind < DS_ACCEL__KIND_COUNT && block == NULL; kind++) {
            block = take_from(request, victim, kind, changes);
        }
        ds_accel__figures_count(victim, changes);
        ds_accel__arenas_unlock(allocator);
        if (block != NULL) {
            break;
        }
    }
    if (block != NULL && victim != request->arena &&
        (ds_accel__mark_record(victim, &mark) < 0 ||
         ds_accel__mark_wait(request->arena, mark) < 0)) {
        ds_accel__arenas_lock(allocator);
        put_back(victim, block);
        ds_accel__arenas_unlock(allocator);
        block = NULL;
    }
    ds_accel__mark_put(allocator, mark);
    pthread_mutex_unlock(&allocator->lock);
    if (block != NULL) {
        struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];

        memset(changes, 0, sizeof(changes));
        ds_accel__latch_take(&block->home->latch);
        ds_accel__waits_put(allocator, block->waits);
        block->waits = NULL;
        give(request, block, changes);
    }
    return block;
}

/* In mode "caching", if the reserved memory exceeds the fraction gc_threshold of the limit, release
 * segments that have been idle for long. */
static void collect_garbage(const struct request *request)
{
    struct ds_accel__allocator *allocator = request->arena->allocator;
    uint64_t reserved;
    uint64_t mark_bytes;

    if ((__atomic_load_n(&allocator->special, __ATOMIC_ACQUIRE) & DS_ACCEL__SPECIAL_GARBAGE) == 0 ||
        allocator->options.mode != DS_ACCEL__ALLOCATOR_CACHING) {
        return;
    }
    pthread_mutex_lock(&allocator->lock);
    reserved = (uint64_t)allocator->segment_bytes[DS_ACCEL__ALL].current;
    mark_bytes = (uint64_t)(allocator->options.gc_threshold * (double)allocator->limit_bytes);
    pthread_mutex_unlock(&allocator->lock);
    if (reserved > mark_bytes) {
        ds_accel__segments_collect(allocator, reserved - mark_bytes);
    }
}

/* Count a large request to the common pool: the age of an idle segment is the number of these
 * requests since the segment became free. Pending blocks whose marks are reached become free first:
 * if this makes their segments idle, the age of these segments begins with this request. */
static void count_request(const struct request *request)
{
    struct ds_accel__allocator *allocator = request->arena->allocator;

    ds_accel__pending_settle(allocator);
    if (request->kind == DS_ACCEL__LARGE && request->arena->owner == NULL) {
        __atomic_fetch_add(&allocator->request_count, 1, __ATOMIC_RELAXED);
    }
}

/* Try the arena's own memory, then segments of destroyed streams and pools, then, after garbage
 * collection, the driver. In mode "off", try only the driver. */
static int32_t try_all(const struct request *request, struct ds_accel__block **block_out)
{
    bool is_caching = request->arena->allocator->options.mode != DS_ACCEL__ALLOCATOR_OFF;
    int32_t status = DS_ACCEL_NOT_READY;

    for (int race = 0; race < DS_ACCEL__RACE_LIMIT && status == DS_ACCEL_NOT_READY; race++) {
        *block_out = is_caching ? take_own(request) : NULL;
        if (*block_out != NULL) {
            return DS_ACCEL_OK;
        }
        if (is_caching && ds_accel__segment_steal(request->arena, request->kind, request->fit_bytes,
                                                  request->align_bytes)) {
            continue;
        }
        collect_garbage(request);
        status = obtain(request, true, block_out);
    }
    return status == DS_ACCEL_NOT_READY ? DS_ACCEL_ERR_NO_MEMORY : status;
}

/* Release memory and try again. As in torch, first release the blocks that are not split because of
 * max_split_bytes, then all cached memory; the latter is counted in retry_count. If that does not
 * help, allocate a separate segment where segments are growable, and at last take free or pending
 * memory of any arena. While a stream captures, only this last step is possible. */
static int32_t try_harder(const struct request *request, struct ds_accel__block **block_out)
{
    struct ds_accel__allocator *allocator = request->arena->allocator;
    int32_t status = DS_ACCEL_ERR_NO_MEMORY;
    bool is_captured;

    if (ds_accel__segments_release_oversize(request->arena, request->fit_bytes)) {
        status = try_all(request, block_out);
    }
    if (status != DS_ACCEL_ERR_NO_MEMORY) {
        return status;
    }
    pthread_mutex_lock(&allocator->lock);
    /* while a stream captures, no memory can be released */
    is_captured = allocator->capture_count > 0;
    allocator->retry_count += !is_captured;
    pthread_mutex_unlock(&allocator->lock);
    if (!is_captured) {
        ds_accel__allocator_trim(allocator, 0);
        status = try_all(request, block_out);
        if (status == DS_ACCEL_ERR_NO_MEMORY && allocator->granule_bytes != 0) {
            /* A separate segment needs less than the pages that a growable segment would grow
             * by. */
            status = obtain(request, false, block_out);
            status = status == DS_ACCEL_NOT_READY ? DS_ACCEL_ERR_NO_MEMORY : status;
        }
    }
    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        *block_out = take_anywhere(request);
        status = *block_out != NULL ? DS_ACCEL_OK : status;
    }
    return status;
}

/* Set while this thread runs the program's callback for failed allocations. An allocation made
 * inside the callback does not call the callback again if it fails. */
static _Thread_local bool is_asking;

static int32_t ask_program(const struct request *request, struct ds_accel__block **block_out)
{
    struct ds_accel__allocator *allocator = request->arena->allocator;
    int32_t status = DS_ACCEL_ERR_NO_MEMORY;

    for (uint32_t attempt = 1; attempt <= ATTEMPT_LIMIT && status == DS_ACCEL_ERR_NO_MEMORY;
         attempt++) {
        ds_accel_memory_failure_t callback;
        void *user_data;
        int32_t answer;

        pthread_mutex_lock(&allocator->lock);
        callback = allocator->callback;
        user_data = allocator->callback_data;
        pthread_mutex_unlock(&allocator->lock);
        if (callback == NULL || is_asking) {
            break;
        }
        is_asking = true;
        answer = callback(user_data, allocator->handle, request->size_bytes, attempt);
        is_asking = false;
        if (answer <= 0) {
            break;
        }
        status = try_all(request, block_out);
        if (status == DS_ACCEL_ERR_NO_MEMORY) {
            status = try_harder(request, block_out);
        }
    }
    return status;
}

int32_t ds_accel__alloc_slowly(struct ds_accel__arena *arena, uint64_t size_bytes,
                               uint64_t align_bytes, void **pointer_out)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    struct ds_accel__block *block = NULL;
    struct request request = {.size_bytes = size_bytes,
                              .align_bytes = align_bytes > DS_ACCEL__UNIT ? align_bytes
                                                                          : DS_ACCEL__UNIT};
    int32_t status;

    if (size_bytes == 0 || align_bytes == 0 || (align_bytes & (align_bytes - 1)) != 0 ||
        align_bytes > LARGEST_ALIGN) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               size_bytes == 0 ? "mem_alloc: the size is 0"
                                               : "mem_alloc: the alignment is not a power of two "
                                                 "up to 1 GiB");
    }
    if (size_bytes > DS_ACCEL__LARGEST_REQUEST) {
        return ds_accel__allocator_fail(arena, size_bytes);
    }
    request.arena = ds_accel__arena_choose(arena);
    if (request.arena == NULL) {
        return ds_accel__no_memory();
    }
    request.fit_bytes =
        round_request(allocator, size_bytes + (allocator->options.mode == DS_ACCEL__ALLOCATOR_DEBUG
                                                   ? DS_ACCEL__ZONE_BYTES
                                                   : 0));
    request.kind = kind_of(allocator, request.fit_bytes);
    if ((__atomic_load_n(&allocator->special, __ATOMIC_ACQUIRE) & DS_ACCEL__SPECIAL_GARBAGE) != 0) {
        count_request(&request);
    }
    status = try_all(&request, &block);
    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        status = try_harder(&request, &block);
    }
    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        status = ask_program(&request, &block);
    }
    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        status = ds_accel__allocator_fail(request.arena, size_bytes);
    }
    ds_accel__arena_leave(arena, request.arena);
    if (status >= 0) {
        bool is_debug = allocator->options.mode == DS_ACCEL__ALLOCATOR_DEBUG;

        /* In debug mode the block includes its red zone, because the library fills the red zone. */
        ds_accel__layer_block_alloc(allocator->device, (void *)(uintptr_t)block->address,
                                    is_debug ? block->fit_bytes : size_bytes, arena->stream);
        if (is_debug) {
            ds_accel__debug_allocated(block);
        }
        *pointer_out = (void *)(uintptr_t)block->address;
    }
    return status;
}
