/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The caching allocator: device memory that is given back is kept, and given out again without
 * asking the driver. One allocator per device; in it
 *
 *   arena     the memory of one stream (or of one stream in one private pool), with a lock
 *   segment   one piece of memory from the driver; belongs to an arena
 *   block     a part of a segment: the program's, or free, or free once other streams are done
 *
 *   allocator_index.c     address to block             allocator_segments.c  from and to the driver
 *   allocator_lists.c     free blocks of an arena      allocator_marks.c     stream order
 *   allocator_stats.c     statistics, exact peaks      allocator_arena.c     arenas, and the whole
 *   allocator_pool.c      pools of captures            allocator_oom.c       texts of failures
 *   allocator_history.c   what happened, snapshots     allocator_debug.c     the mode that checks
 *   allocator_settings.c  settings
 *
 * What the order of streams means for memory: a free is a point in the stream that it names. The
 * stream on which the block was allocated, and its arena, may use the memory again at once, since
 * work is queued behind that point. Each other stream that used it puts a mark where it is now, and
 * whoever gets the block lets his stream wait for these marks on the device. A block of another
 * arena is used after that arena's stream, of which a mark is made when it is taken.
 *
 * Which free block a request gets, when the driver is asked and for how much are torch's rules, so
 * that a program needs no more memory here than there. Only what torch would not do any more, or
 * would fail at, is added: memory of streams and pools that are gone serves others, and so do parts
 * of other streams' memory when all else failed.
 *
 * The short way (as much as was freed last on this stream) takes one lock, that nobody else wants,
 * and writes no cache line that another stream writes. A request that it does not answer tries in
 * turn: free blocks of the arena; pending ones; a segment whose stream or pool is gone; the driver;
 * giving back blocks that max_split_bytes keeps whole, then all that is cached once other streams
 * are done with what keeps it apart, and asking the driver again; a segment of its own where others
 * grow by pages; parts of other arenas' segments; the program's callback.
 */
#include "runtime/allocator/allocator.h"
#include "base/text.h"
#include "host/layers.h"
#include "runtime/caching.h"

#include <stdlib.h>
#include <string.h>

#define LARGEST_REQUEST (UINT64_C(1) << 56) /* no device has more */
#define LARGEST_ALIGN (UINT64_C(1) << 30)
#define ATTEMPT_LIMIT 16u
#define RACE_LIMIT 64 /* so often somebody else may be quicker */

/* ---- the short way: counting ---------------------------------------------------------------- */

typedef int64_t pair_t __attribute__((vector_size(16)));

/* Differences of all lanes, in registers. */
struct differences {
    pair_t a;
    pair_t b;
    pair_t c;
    pair_t d;
};
DS_ACCEL_STATIC_ASSERT(sizeof(struct differences) == sizeof(struct ds_accel__lanes), "one layout");

static inline __attribute__((always_inline)) struct differences add(const struct differences *lanes,
                                                                    struct differences by)
{
    return (struct differences){lanes->a + by.a, lanes->b + by.b, lanes->c + by.c, lanes->d + by.d};
}

/* Negative in a lane that is past its limit. */
static inline __attribute__((always_inline)) pair_t room(pair_t limit, pair_t value)
{
    return limit - value;
}

/* ds_accel__figures_apply() without the totals. A free lets all lanes of the first half sink, which
 * cannot pass a limit. */
static inline __attribute__((always_inline)) bool
apply(struct ds_accel__figures *figures, uint32_t kind, struct differences by, bool is_free)
{
    struct differences *some = (struct differences *)&figures->current[kind];
    const struct differences *other = (const struct differences *)&figures->current[1 - kind];
    const struct differences *limit = (const struct differences *)&figures->limit[kind];
    const struct differences *whole = (const struct differences *)&figures->limit[DS_ACCEL__ALL];
    struct differences result = add(some, by);
    pair_t left = room(limit->c, result.c) | room(limit->d, result.d) |
                  room(whole->c, other->c + result.c) | room(whole->d, other->d + result.d);

    if (!is_free) {
        left |= room(limit->a, result.a) | room(limit->b, result.b) |
                room(whole->a, other->a + result.a) | room(whole->b, other->b + result.b);
    }
    if (__builtin_expect((left[0] | left[1]) < 0, 0)) {
        return false;
    }
    *some = result;
    return true;
}

/* What allocating a block again that was taken back does to what is split and free. */
static inline __attribute__((always_inline)) pair_t split_of(const struct ds_accel__block *block)
{
    int64_t size = (int64_t)block->size_bytes;

    switch (block->origin) {
    case DS_ACCEL__ORIGIN_SEGMENT_CUT:
        return (pair_t){1, (int64_t)block->segment->size_bytes - size};
    case DS_ACCEL__ORIGIN_SPLIT_CUT:
        return (pair_t){0, -size};
    case DS_ACCEL__ORIGIN_SPLIT_WHOLE:
        return (pair_t){-1, -size};
    default:
        return (pair_t){0, 0};
    }
}

static inline int64_t rise(int64_t difference)
{
    return difference > 0 ? difference : 0;
}

/* What giving this block to the program changes. */
static void change_of_alloc(const struct ds_accel__block *block, bool was_undone,
                            struct ds_accel__change *change)
{
    int64_t size = (int64_t)block->size_bytes;

    change->added.lane[DS_ACCEL__LANE_ALLOCATION]++;
    change->added.lane[DS_ACCEL__LANE_ACTIVE]++;
    change->added.lane[DS_ACCEL__LANE_ALLOCATED_BYTES] += size;
    change->added.lane[DS_ACCEL__LANE_ACTIVE_BYTES] += size;
    change->added.lane[DS_ACCEL__LANE_REQUESTED_BYTES] += (int64_t)block->requested_bytes;
    change->added.lane[DS_ACCEL__LANE_OVERSIZE] += block->is_oversize;
    if (was_undone) {
        pair_t split = split_of(block);

        change->added.lane[DS_ACCEL__LANE_SPLIT] += rise(split[0]);
        change->removed.lane[DS_ACCEL__LANE_SPLIT] += rise(-split[0]);
        change->added.lane[DS_ACCEL__LANE_SPLIT_BYTES] += rise(split[1]);
        change->removed.lane[DS_ACCEL__LANE_SPLIT_BYTES] += rise(-split[1]);
    }
}

/* And what taking it back does, besides what the lists count. */
static void change_of_free(const struct ds_accel__block *block, bool stays_active,
                           struct ds_accel__change *change)
{
    int64_t size = (int64_t)block->size_bytes;

    change->removed.lane[DS_ACCEL__LANE_ALLOCATION]++;
    change->removed.lane[DS_ACCEL__LANE_ALLOCATED_BYTES] += size;
    change->removed.lane[DS_ACCEL__LANE_REQUESTED_BYTES] += (int64_t)block->requested_bytes;
    change->removed.lane[DS_ACCEL__LANE_OVERSIZE] += block->is_oversize;
    if (!stays_active) {
        change->removed.lane[DS_ACCEL__LANE_ACTIVE]++;
        change->removed.lane[DS_ACCEL__LANE_ACTIVE_BYTES] += size;
    }
}

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
    return units;
}

static uint32_t kind_of(const struct ds_accel__allocator *allocator, uint64_t fit_bytes)
{
    return fit_bytes <= allocator->options.small_limit_bytes ? DS_ACCEL__SMALL : DS_ACCEL__LARGE;
}

/* ---- pending blocks ------------------------------------------------------------------------- */

/* The last ones of the list are the oldest, and behind the first that is not done few are asked. */
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

/*
 * A pending block that fits, its marks waited for by the stream that will have it: the arena's own,
 * or a thief's, who has to wait for the arena's stream too. What is left over is free if the
 * arena's own stream waited; else it stays pending, and the block keeps its marks until the thief
 * has it for good. The arena's lock is held.
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
    ds_accel__arena_flush(arena);
    ds_accel__arena_renew(arena);
    ds_accel__pending_unlink(arena, best);
    best->waits = NULL;
    changes[kind].removed.lane[DS_ACCEL__LANE_ACTIVE]++;
    changes[kind].removed.lane[DS_ACCEL__LANE_ACTIVE_BYTES] += (int64_t)best->size_bytes;
    best = ds_accel__block_cut(arena, best, fit_bytes, align_bytes, user == arena ? NULL : waits,
                               changes);
    if (best != NULL) {
        best->after = 0; /* freed, it is merged with neighbours that it was apart from before */
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
    struct ds_accel__arena *arena; /* of the stream that asks */
    uint64_t size_bytes;
    uint64_t fit_bytes;
    uint64_t align_bytes;
    uint32_t kind;
};

/* A taken block becomes the program's. The lock of its home is held, and released. */
static void give(const struct request *request, struct ds_accel__block *block,
                 struct ds_accel__change *changes)
{
    struct ds_accel__allocator *allocator = request->arena->allocator;
    struct ds_accel__arena *home = block->home;
    uint64_t limit = allocator->options.max_split_bytes;

    block->user = request->arena;
    if (block->user != home) {
        __atomic_fetch_add(&block->user->use_count, 1, __ATOMIC_RELAXED);
    }
    block->requested_bytes = request->size_bytes;
    block->fit_bytes = request->fit_bytes;
    block->is_oversize = limit != 0 && block->size_bytes >= limit;
    block->frames = ds_accel__history_add(allocator, DS_ACCEL__ACTION_ALLOC, block->address,
                                          block->size_bytes, request->arena->stream_id);
    change_of_alloc(block, false, &changes[block->kind]);
    ds_accel__figures_finish(home, changes, block, DS_ACCEL__BLOCK_LIVE);
}

/* What the arena has itself. Pending blocks that nobody waits for any more are free, as others. */
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

/* From the driver: DS_ACCEL_OK with the block; NOT_READY: look again. */
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

/* Take from one other arena, whose lock is held; all locks are. */
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

/* The thief could not have it: back to its arena, as it was. All locks are held. */
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
 * A part of another arena's memory, of either kind, or what is of the other kind in the own: before
 * failing. The block stays the other arena's and returns there.
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

        if (victim != request->arena && (victim->is_capturing || request->arena->is_capturing ||
                                         victim->owner != NULL || request->arena->owner != NULL)) {
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

/* Old segments go before the limit is near. */
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

/* The age of garbage is counted in requests: what is free is free from this one on. */
static void count_request(const struct request *request)
{
    struct ds_accel__allocator *allocator = request->arena->allocator;

    ds_accel__pending_settle(allocator);
    if (request->kind == DS_ACCEL__LARGE && request->arena->owner == NULL) {
        __atomic_fetch_add(&allocator->request_count, 1, __ATOMIC_RELAXED);
    }
}

/* Own memory, segments that nobody else will use, the driver. */
static int32_t try_all(const struct request *request, struct ds_accel__block **block_out)
{
    bool is_caching = request->arena->allocator->options.mode != DS_ACCEL__ALLOCATOR_OFF;
    int32_t status = DS_ACCEL_NOT_READY;

    for (int race = 0; race < RACE_LIMIT && status == DS_ACCEL_NOT_READY; race++) {
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

/* As torch does: what max_split_bytes keeps whole goes first, then all that is cached, which counts
 * as a retry. Then whatever is free anywhere. */
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
    is_captured = allocator->capture_count > 0; /* nothing can be given back */
    allocator->retry_count += !is_captured;
    pthread_mutex_unlock(&allocator->lock);
    if (!is_captured) {
        ds_accel__allocator_trim(allocator, 0);
        status = try_all(request, block_out);
        if (status == DS_ACCEL_ERR_NO_MEMORY && allocator->granule_bytes != 0) {
            /* Less than the pages that a segment would grow by. */
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

/* Whether this thread is in the program's callback: what that asks for itself may fail. */
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

static __attribute__((noinline)) int32_t alloc_slowly(struct ds_accel__arena *arena,
                                                      uint64_t size_bytes, uint64_t align_bytes,
                                                      void **pointer_out)
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
    if (size_bytes > LARGEST_REQUEST) {
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

        /* With its red zone, which is filled. */
        ds_accel__layer_block_alloc(allocator->device, (void *)(uintptr_t)block->address,
                                    is_debug ? block->fit_bytes : size_bytes, arena->stream);
        if (is_debug) {
            ds_accel__debug_allocated(block);
        }
        *pointer_out = (void *)(uintptr_t)block->address;
    }
    return status;
}

/* The short way, but a peak may move. The block is taken; its home's lock is held, and released. */
static __attribute__((noinline)) void settle_slowly(struct ds_accel__block *block)
{
    struct ds_accel__arena *home = block->home;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];

    __atomic_store_n(&block->state, DS_ACCEL__BLOCK_TAKEN, __ATOMIC_RELAXED);
    memset(changes, 0, sizeof(changes));
    change_of_alloc(block, true, &changes[block->kind]);
    ds_accel__latch_release(&home->latch);
    ds_accel__figures_settle(home, changes, block, DS_ACCEL__BLOCK_LIVE);
}

int32_t ds_accel__allocator_alloc(struct ds_accel__arena *arena, uint64_t size_bytes,
                                  uint64_t align_bytes, void **pointer_out)
{
    uint64_t fit_bytes = (size_bytes + DS_ACCEL__UNIT - 1) & ~(DS_ACCEL__UNIT - 1);
    struct ds_accel__block *block;
    struct ds_accel__lanes *total;
    struct differences by;
    int64_t size;
    pair_t split;

    if (__builtin_expect(size_bytes - 1 >= LARGEST_REQUEST || align_bytes != DS_ACCEL__UNIT ||
                             __atomic_load_n(&arena->allocator->special, __ATOMIC_ACQUIRE) != 0,
                         0)) {
        return alloc_slowly(arena, size_bytes, align_bytes, pointer_out);
    }
    ds_accel__latch_take(&arena->latch);
    block = arena->undone;
    if (__builtin_expect(block == NULL || block->fit_bytes != fit_bytes, 0)) {
        ds_accel__latch_release(&arena->latch);
        return alloc_slowly(arena, size_bytes, align_bytes, pointer_out);
    }
    arena->undone = block->link_next;
    arena->stamp = block->after;
    block->requested_bytes = size_bytes;
    *pointer_out = (void *)(uintptr_t)block->address;
    size = (int64_t)block->size_bytes;
    split = split_of(block);
    by = (struct differences){{1, 1}, {size, size}, {(int64_t)size_bytes, split[0]}, {split[1], 0}};
    if (__builtin_expect(!apply(&arena->figures, block->kind, by, false), 0)) {
        settle_slowly(block);
        return DS_ACCEL_OK;
    }
    total = &arena->figures.total[block->kind];
    ((struct differences *)total)->a += by.a;
    ((struct differences *)total)->b += by.b;
    total->lane[DS_ACCEL__LANE_REQUESTED_BYTES] += (int64_t)size_bytes;
    total->lane[DS_ACCEL__LANE_SPLIT] += rise(split[0]);
    total->lane[DS_ACCEL__LANE_SPLIT_BYTES] += rise(split[1]);
    __atomic_store_n(&block->state, DS_ACCEL__BLOCK_LIVE, __ATOMIC_RELAXED);
    ds_accel__latch_release(&arena->latch);
    return DS_ACCEL_OK;
}

/* ---- freeing -------------------------------------------------------------------------------- */

/* The live block at an address, its home's lock held; else the error is said, and no lock held:
 * NOT_FOUND, nothing of ours is there; INVALID, what is there is not a live block's start. */
static int32_t lock_live(struct ds_accel__allocator *allocator, const void *pointer,
                         const char *call, struct ds_accel__block **block_out)
{
    uint64_t address = (uint64_t)(uintptr_t)pointer;

    for (int race = 0; race < RACE_LIMIT; race++) {
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

/* Is a stream that used it capturing? The allocator's lock is held. */
static bool is_in_capture(const struct ds_accel__block *block,
                          const struct ds_accel__arena *freeing)
{
    bool is = (freeing != NULL && freeing->is_capturing) || block->user->is_capturing;

    for (uint32_t i = 0; block->uses != NULL && i < block->uses->count; i++) {
        is = is || block->uses->arenas[i]->is_capturing;
    }
    return is;
}

static void forget_users(struct ds_accel__block *block)
{
    ds_accel__uses_drop(block);
    if (block->user != block->home) {
        __atomic_fetch_sub(&block->user->use_count, 1, __ATOMIC_RELAXED);
        block->user = block->home;
    }
}

/*
 * A taken block stays out of use until marks can be made: a capture has ended, or the streams can
 * be asked again. No lock is held.
 */
static void defer(struct ds_accel__block *block, struct ds_accel__arena *freeing)
{
    struct ds_accel__arena *home = block->home;
    struct ds_accel__allocator *allocator = home->allocator;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];
    bool is_known;

    pthread_mutex_lock(&allocator->lock);
    is_known = freeing == NULL || ds_accel__uses_add(block, freeing) >= 0;
    pthread_mutex_unlock(&allocator->lock);
    memset(changes, 0, sizeof(changes));
    ds_accel__latch_take(&home->latch);
    /* For ever, if there was no room to remember the stream. */
    block->is_deferred = is_known ? DS_ACCEL__DEFERRED_MARKS : DS_ACCEL__DEFERRED_HELD;
    change_of_free(block, true, &changes[block->kind]);
    ds_accel__figures_finish(home, changes, block, DS_ACCEL__BLOCK_PENDING);
}

/* The last of it: out of its arena, and gone. grow_lock is held. */
static int32_t give_back(struct ds_accel__block *block)
{
    struct ds_accel__arena *home = block->home;
    struct ds_accel__allocator *allocator = home->allocator;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];

    memset(changes, 0, sizeof(changes));
    ds_accel__latch_take(&home->latch);
    forget_users(block);
    change_of_free(block, false, &changes[block->kind]);
    ds_accel__segment_unlink(home, block->segment);
    ds_accel__figures_finish(home, changes, NULL, DS_ACCEL__BLOCK_FREE);
    ds_accel__history_add(allocator, DS_ACCEL__ACTION_FREE_COMPLETED, block->address,
                          block->size_bytes, block->segment->stream_id);
    return ds_accel__segment_destroy(allocator, block->segment);
}

/*
 * Straight back to the driver, when all that used it are done; if a capture begins meanwhile, as
 * memory is freed otherwise. The block is taken; no lock held.
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
        defer(block, freeing);
        return status;
    }
    pthread_mutex_lock(&allocator->grow_lock); /* while it is held no capture begins */
    pthread_mutex_lock(&allocator->lock);
    is_captured = allocator->capture_count > 0;
    pthread_mutex_unlock(&allocator->lock);
    if (!is_captured) {
        status = give_back(block);
    }
    pthread_mutex_unlock(&allocator->grow_lock);
    return is_captured ? ds_accel__free_in_order(block, freeing) : status;
}

int32_t ds_accel__free_in_order(struct ds_accel__block *block, struct ds_accel__arena *freeing)
{
    struct ds_accel__arena *home = block->home;
    struct ds_accel__allocator *allocator = home->allocator;
    struct ds_accel__change changes[DS_ACCEL__KIND_COUNT];
    struct ds_accel__waits *waits = NULL;
    int32_t status = DS_ACCEL_OK;
    bool is_deferred;

    pthread_mutex_lock(&allocator->lock);
    is_deferred = is_in_capture(block, freeing);
    if (!is_deferred) {
        status = ds_accel__waits_make(block, freeing, &waits);
    }
    pthread_mutex_unlock(&allocator->lock);
    if (is_deferred || status < 0) {
        defer(block, freeing);
        return status;
    }
    memset(changes, 0, sizeof(changes));
    ds_accel__latch_take(&home->latch);
    block->is_deferred = DS_ACCEL__DEFERRED_NOT;
    forget_users(block);
    change_of_free(block, waits != NULL, &changes[block->kind]);
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

    memset(changes, 0, sizeof(changes));
    ds_accel__latch_take(&home->latch);
    forget_users(block);
    block->is_deferred = DS_ACCEL__DEFERRED_HELD;
    change_of_free(block, true, &changes[block->kind]);
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
                forget_users(block);
            }
        }
        ds_accel__latch_release(&arena->latch);
    }
    pthread_mutex_unlock(&allocator->lock);
}

static __attribute__((noinline)) int32_t free_slowly(struct ds_accel__allocator *allocator,
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
    block->freed_frames = ds_accel__history_add(allocator, DS_ACCEL__ACTION_FREE_REQUESTED,
                                                block->address, block->size_bytes,
                                                (freeing != NULL ? freeing : home)->stream_id);
    __atomic_store_n(&block->state, DS_ACCEL__BLOCK_TAKEN, __ATOMIC_RELAXED);
    /* What a graph replays with is neither given back nor filled; nothing is while one captures. */
    if (allocator->options.mode != DS_ACCEL__ALLOCATOR_CACHING && home->owner == NULL &&
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
    forget_users(block);
    change_of_free(block, false, &changes[block->kind]);
    ds_accel__block_release(home, block, changes);
    ds_accel__figures_finish(home, changes, NULL, DS_ACCEL__BLOCK_FREE);
    return DS_ACCEL_OK;
}

int32_t ds_accel__allocator_free(struct ds_accel__allocator *allocator,
                                 struct ds_accel__arena *freeing, void *pointer)
{
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    struct ds_accel__lanes *total;
    struct ds_accel__block *block;
    struct ds_accel__arena *home;
    struct differences by;
    int64_t size;
    pair_t split;

    if (__builtin_expect(__atomic_load_n(&allocator->special, __ATOMIC_ACQUIRE) != 0, 0)) {
        return free_slowly(allocator, freeing, pointer);
    }
    block = ds_accel__index_find(&allocator->index, address);
    home = block != NULL ? __atomic_load_n(&block->home, __ATOMIC_RELAXED) : NULL;
    if (__builtin_expect(home == NULL, 0)) {
        return free_slowly(allocator, freeing, pointer);
    }
    ds_accel__latch_take(&home->latch);
    if (__builtin_expect(__atomic_load_n(&block->home, __ATOMIC_RELAXED) != home ||
                             __atomic_load_n(&block->address, __ATOMIC_RELAXED) != address ||
                             __atomic_load_n(&block->state, __ATOMIC_RELAXED) !=
                                 DS_ACCEL__BLOCK_LIVE ||
                             block->user != home || block->uses != NULL ||
                             (freeing != NULL && freeing != home) || block->after != home->stamp ||
                             block->is_oversize != 0,
                         0)) {
        ds_accel__latch_release(&home->latch);
        return free_slowly(allocator, freeing, pointer);
    }
    size = (int64_t)block->size_bytes;
    split = -split_of(block);
    by = (struct differences){
        {-1, -1}, {-size, -size}, {-(int64_t)block->requested_bytes, split[0]}, {split[1], 0}};
    /* What is oversize goes the long way: its lane does not change here. */
    if (__builtin_expect(!apply(&home->figures, block->kind, by, true), 0)) {
        ds_accel__latch_release(&home->latch);
        return free_slowly(allocator, freeing, pointer);
    }
    total = &home->figures.total[block->kind];
    total->lane[DS_ACCEL__LANE_SPLIT] += rise(split[0]);
    total->lane[DS_ACCEL__LANE_SPLIT_BYTES] += rise(split[1]);
    block->link_next = home->undone;
    home->undone = block;
    home->stamp = block->before;
    __atomic_store_n(&block->state, DS_ACCEL__BLOCK_UNDONE, __ATOMIC_RELAXED);
    ds_accel__latch_release(&home->latch);
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
