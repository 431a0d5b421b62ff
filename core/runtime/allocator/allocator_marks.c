/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Stream order. Memory moves from one stream to another through a mark: an event recorded on the
 * first stream, for which the second stream waits on the device. No thread polls to find out
 * whether memory may be used; a query only saves a wait for an event already reached.
 *
 * A mark identifies its stream by the stream's arena, not by the vendor's handle, which the vendor
 * may reuse for another stream. An arena whose stream was destroyed has one mark for the end of the
 * stream's work, which is used instead of new marks. The allocator records no marks and queues no
 * waits on a capturing stream, because they would become part of the graph. Blocks that need a mark
 * of a capturing stream are deferred until the capture has ended.
 */
#include "base/text.h"
#include "host/layers.h"
#include "runtime/allocator/allocator.h"

#include <assert.h>
#include <stdlib.h>

static int32_t finish(int32_t status, const struct ds_accel_error *error)
{
    return status < 0 ? ds_accel__fail(status, error) : DS_ACCEL_OK;
}

/* ---- waiting on the host -------------------------------------------------------------------- */

/* Wait on the host for all work of the arena's stream, or of the device if the runtime cannot wait
 * for one stream, or the stream was destroyed without a mark. If the runtime has no function to
 * wait, return DS_ACCEL_OK. */
static int32_t synchronize(struct ds_accel__arena *arena)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    const struct ds_accel_plugin *table = allocator->table;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = DS_ACCEL_ERR_UNSUPPORTED;

    if (allocator->is_synchronized) {
        return DS_ACCEL_OK;
    }
    if (arena->is_gone && !__atomic_load_n(&arena->is_unmarked, __ATOMIC_RELAXED)) {
        return ds_accel__mark_synchronize(allocator, arena->gone);
    }
    ds_accel__layers_own_begin();
    if (arena->stream != NULL) {
        status = table->stream_synchronize(arena->stream, UINT64_MAX, &error);
    }
    if (status == DS_ACCEL_ERR_UNSUPPORTED) {
        status = table->device_synchronize(allocator->device, UINT64_MAX, &error);
    }
    ds_accel__layers_own_end();
    return status == DS_ACCEL_ERR_UNSUPPORTED ? DS_ACCEL_OK : finish(status, &error);
}

/* ---- marks ---------------------------------------------------------------------------------- */

static struct ds_accel__mark *mark_get(struct ds_accel__allocator *allocator,
                                       struct ds_accel__mark *mark)
{
    if (mark != NULL) {
        pthread_mutex_lock(&allocator->mark_lock);
        assert(mark->reference_count > 0);
        mark->reference_count++;
        pthread_mutex_unlock(&allocator->mark_lock);
    }
    return mark;
}

void ds_accel__mark_put(struct ds_accel__allocator *allocator, struct ds_accel__mark *mark)
{
    if (mark == NULL) {
        return;
    }
    pthread_mutex_lock(&allocator->mark_lock);
    assert(mark->reference_count > 0);
    if (--mark->reference_count == 0) {
        mark->next = allocator->marks;
        allocator->marks = mark;
    }
    pthread_mutex_unlock(&allocator->mark_lock);
}

/* Take a spare mark, or create a mark. NULL: no mark can be created. */
static struct ds_accel__mark *mark_take(struct ds_accel__allocator *allocator)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel__mark *mark;

    pthread_mutex_lock(&allocator->mark_lock);
    mark = allocator->marks;
    if (mark != NULL) {
        allocator->marks = mark->next;
        assert(mark->reference_count == 0 && mark->event != NULL);
        mark->reference_count = 1;
    }
    pthread_mutex_unlock(&allocator->mark_lock);
    if (mark != NULL) {
        return mark;
    }
    mark = calloc(1, sizeof(*mark));
    if (mark == NULL) {
        return NULL;
    }
    if (allocator->table->event_create(allocator->device, 0, &mark->event, &error) != DS_ACCEL_OK ||
        mark->event == NULL) {
        free(mark);
        return NULL;
    }
    mark->reference_count = 1;
    return mark;
}

void ds_accel__marks_destroy(struct ds_accel__allocator *allocator)
{
    while (allocator->marks != NULL) {
        struct ds_accel__mark *next = allocator->marks->next;

        assert(allocator->marks->reference_count == 0);

        allocator->table->event_destroy(allocator->marks->event);
        free(allocator->marks);
        allocator->marks = next;
    }
}

/* Wait for the work of a destroyed stream that has no mark, unless the wait could break a capture.
 * The caller holds the allocator's lock. */
static int32_t finish_unmarked(struct ds_accel__arena *arena)
{
    int32_t status = arena->allocator->capture_count > 0
                         ? ds_accel__error(DS_ACCEL_ERR_STATE,
                                           "a stream was destroyed while its work could not "
                                           "be marked, and another stream captures")
                         : synchronize(arena);

    if (status >= 0) {
        __atomic_store_n(&arena->is_unmarked, 0, __ATOMIC_RELAXED);
    }
    return status;
}

int32_t ds_accel__mark_record(struct ds_accel__arena *arena, struct ds_accel__mark **mark_out)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel__mark *mark;

    *mark_out = NULL;
    if (allocator->is_synchronized) {
        return DS_ACCEL_OK;
    }
    if (__atomic_load_n(&arena->is_gone, __ATOMIC_ACQUIRE)) {
        if (__atomic_load_n(&arena->is_unmarked, __ATOMIC_RELAXED)) {
            return finish_unmarked(arena);
        }
        *mark_out = mark_get(allocator, arena->gone);
        return DS_ACCEL_OK;
    }
    if (!allocator->has_events || arena->stream == NULL) {
        return synchronize(arena);
    }
    mark = mark_take(allocator);
    if (mark == NULL) {
        return synchronize(arena);
    }
    /* The mark gets its order number before its event is recorded. If two threads record marks of
     * one stream at the same time, the numbers may be in the wrong order. The only effect is that
     * the mark recorded first may be queried later than necessary. */
    mark->order = __atomic_add_fetch(&allocator->mark_count, 1, __ATOMIC_RELAXED);
    if (allocator->table->event_record(mark->event, arena->stream, &error) != DS_ACCEL_OK) {
        ds_accel__mark_put(allocator, mark);
        return synchronize(arena);
    }
    mark->arena_id = arena->id;
    *mark_out = mark;
    return DS_ACCEL_OK;
}

int32_t ds_accel__mark_synchronize(struct ds_accel__allocator *allocator,
                                   struct ds_accel__mark *mark)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status;

    if (mark == NULL) {
        return DS_ACCEL_OK;
    }
    ds_accel__layers_own_begin();
    status = allocator->table->event_synchronize(mark->event, UINT64_MAX, &error);
    ds_accel__layers_own_end();
    return finish(status, &error);
}

int32_t ds_accel__mark_wait(struct ds_accel__arena *arena, struct ds_accel__mark *mark)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    if (mark == NULL || mark->arena_id == arena->id) {
        return DS_ACCEL_OK;
    }
    if (arena->is_gone || arena->stream == NULL ||
        allocator->table->stream_wait_event(arena->stream, mark->event, &error) != DS_ACCEL_OK) {
        return ds_accel__mark_synchronize(allocator, mark);
    }
    return DS_ACCEL_OK;
}

bool ds_accel__mark_is_done(struct ds_accel__allocator *allocator, struct ds_accel__mark *mark)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = DS_ACCEL_OK;

    if (mark != NULL) {
        ds_accel__layers_own_begin();
        status = allocator->table->event_query(mark->event, &error);
        ds_accel__layers_own_end();
    }
    return status == DS_ACCEL_OK;
}

/* ---- sets of marks -------------------------------------------------------------------------- */

void ds_accel__waits_get(struct ds_accel__allocator *allocator, struct ds_accel__waits *waits)
{
    if (waits != NULL) {
        pthread_mutex_lock(&allocator->mark_lock);
        assert(waits->reference_count > 0);
        waits->reference_count++;
        pthread_mutex_unlock(&allocator->mark_lock);
    }
}

void ds_accel__waits_put(struct ds_accel__allocator *allocator, struct ds_accel__waits *waits)
{
    bool is_last = false;

    if (waits == NULL) {
        return;
    }
    pthread_mutex_lock(&allocator->mark_lock);
    assert(waits->reference_count > 0);
    is_last = --waits->reference_count == 0;
    pthread_mutex_unlock(&allocator->mark_lock);
    if (is_last) {
        for (uint32_t i = 0; i < waits->count; i++) {
            ds_accel__mark_put(allocator, waits->marks[i]);
        }
        free(waits);
    }
}

int32_t ds_accel__waits_wait(struct ds_accel__arena *arena, struct ds_accel__waits *waits)
{
    int32_t status = DS_ACCEL_OK;

    for (uint32_t i = 0; waits != NULL && i < waits->count && status >= 0; i++) {
        status = ds_accel__mark_wait(arena, waits->marks[i]);
    }
    return status;
}

/* Whether busy contains this mark or an earlier one of the same stream: a query found that mark not
 * reached, so this mark is not reached either. */
static bool is_behind(const struct ds_accel__busy *busy, const struct ds_accel__mark *mark)
{
    for (uint32_t i = 0; i < busy->count; i++) {
        if (busy->streams[i].arena_id == mark->arena_id && busy->streams[i].order <= mark->order) {
            return true;
        }
    }
    return false;
}

bool ds_accel__waits_are_done(struct ds_accel__allocator *allocator, struct ds_accel__waits *waits,
                              struct ds_accel__busy *busy)
{
    for (uint32_t i = 0; waits != NULL && i < waits->count; i++) {
        const struct ds_accel__mark *mark = waits->marks[i];

        if (is_behind(busy, mark)) {
            return false;
        }
        if (!ds_accel__mark_is_done(allocator, waits->marks[i])) {
            if (busy->count < ARRAY_SIZE(busy->streams)) {
                busy->streams[busy->count].arena_id = mark->arena_id;
                busy->streams[busy->count++].order = mark->order;
            }
            return false;
        }
    }
    return true;
}

int32_t ds_accel__waits_synchronize(struct ds_accel__allocator *allocator,
                                    struct ds_accel__waits *waits)
{
    int32_t status = DS_ACCEL_OK;

    for (uint32_t i = 0; waits != NULL && i < waits->count && status >= 0; i++) {
        status = ds_accel__mark_synchronize(allocator, waits->marks[i]);
    }
    return status;
}

/* Record a mark on the arena's stream and add it to the set, unless the set has a mark of this
 * arena, or the arena is NULL or the block's home, whose stream needs no mark. */
static int32_t add_mark(struct ds_accel__waits *waits, const struct ds_accel__block *block,
                        struct ds_accel__arena *arena)
{
    struct ds_accel__mark *mark;
    int32_t status;

    if (arena == NULL || arena == block->home) {
        return DS_ACCEL_OK;
    }
    for (uint32_t i = 0; i < waits->count; i++) {
        if (waits->marks[i]->arena_id == arena->id) {
            return DS_ACCEL_OK;
        }
    }
    status = ds_accel__mark_record(arena, &mark);
    if (mark != NULL) {
        waits->marks[waits->count++] = mark;
    }
    return status;
}

int32_t ds_accel__waits_make(struct ds_accel__block *block, struct ds_accel__arena *freeing,
                             struct ds_accel__waits **waits_out)
{
    const struct ds_accel__uses *uses = block->uses;
    uint32_t limit = 2 + (uses != NULL ? uses->count : 0);
    struct ds_accel__waits *waits = calloc(1, sizeof(*waits) + limit * sizeof(waits->marks[0]));
    struct ds_accel__allocator *allocator = block->home->allocator;
    int32_t status;

    *waits_out = NULL;
    if (waits == NULL) { /* memory for the set of marks is exhausted: wait on the host instead */
        status = synchronize(block->user);
        if (status >= 0 && freeing != NULL) {
            status = synchronize(freeing);
        }
        for (uint32_t i = 0; uses != NULL && i < uses->count && status >= 0; i++) {
            status = synchronize(uses->arenas[i]);
        }
        return status;
    }
    waits->reference_count = 1;
    status = add_mark(waits, block, block->user);
    if (status >= 0) {
        status = add_mark(waits, block, freeing);
    }
    for (uint32_t i = 0; uses != NULL && i < uses->count && status >= 0; i++) {
        status = add_mark(waits, block, uses->arenas[i]);
    }
    assert(waits->count <= limit);
    if (status < 0 || waits->count == 0) {
        ds_accel__waits_put(allocator, waits);
        return status;
    }
    *waits_out = waits;
    return DS_ACCEL_OK;
}

/* ---- streams that use a block --------------------------------------------------------------- */

int32_t ds_accel__uses_add(struct ds_accel__block *block, struct ds_accel__arena *arena)
{
    struct ds_accel__uses *uses = block->uses;
    uint32_t count = uses != NULL ? uses->count : 0;

    for (uint32_t i = 0; i < count; i++) {
        if (uses->arenas[i] == arena) {
            return DS_ACCEL_OK;
        }
    }
    if (uses == NULL || count == uses->capacity) {
        uint32_t capacity = uses == NULL ? 4 : uses->capacity * 2;
        struct ds_accel__uses *larger =
            realloc(uses, sizeof(*uses) + capacity * sizeof(uses->arenas[0]));

        if (larger == NULL) {
            return ds_accel__no_memory();
        }
        larger->count = count;
        larger->capacity = capacity;
        block->uses = larger;
        uses = larger;
    }
    __atomic_fetch_add(&arena->use_count, 1, __ATOMIC_RELAXED);
    assert(uses->count < uses->capacity);
    uses->arenas[uses->count++] = arena;
    return DS_ACCEL_OK;
}

void ds_accel__uses_drop(struct ds_accel__block *block)
{
    for (uint32_t i = 0; block->uses != NULL && i < block->uses->count; i++) {
        assert(__atomic_load_n(&block->uses->arenas[i]->use_count, __ATOMIC_RELAXED) > 0);
        __atomic_fetch_sub(&block->uses->arenas[i]->use_count, 1, __ATOMIC_RELAXED);
    }
    free(block->uses);
    block->uses = NULL;
}
