/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The history of memory operations, and snapshots of the current memory.
 *
 * The history is a ring of the latest entries. Each distinct call stack is stored once, as
 * addresses; the names of the functions are looked up only when a snapshot or an error message is
 * made. The layout of a snapshot is that of PyTorch, so that memory viewers for PyTorch can read
 * it.
 */
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "runtime/allocator/allocator.h"
#include "runtime/caching.h"

#include <assert.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_DEPTH 24
#define STACK_LIMIT 65536u /* number of distinct stacks; stacks beyond it are dropped */
#define STACK_BUCKETS 4096u
#define ENTRY_LIMIT (UINT64_C(1) << 26)

struct entry {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t stream_id;
    uint64_t time_us;
    uint32_t action;
    uint32_t frames;
};

struct stack {
    void *frames[STACK_DEPTH];
    uint32_t depth;
    uint32_t next; /* number of the bucket's next stack; 0: none */
};

struct ds_accel__history {
    pthread_mutex_t lock; /* leaf lock; guards all members */
    uint32_t flags;
    struct entry *entries;
    uint64_t capacity;
    uint64_t count; /* number of entries added so far */
    struct stack *stacks;
    uint32_t stack_count; /* stacks[0] is not used, because number 0 means no stack */
    uint32_t stack_capacity;
    uint32_t buckets[STACK_BUCKETS];
};

static const char *const action_names[] = {"alloc",         "free_requested", "free_completed",
                                           "segment_alloc", "segment_free",   "segment_map",
                                           "segment_unmap", "snapshot",       "oom"};

/* ---- recording ------------------------------------------------------------------------------ */

/* Make space for one more stack: double the array if it is full. False: out of memory, or
 * STACK_LIMIT is reached. The caller holds history->lock. */
static bool grow_stacks(struct ds_accel__history *history)
{
    uint32_t capacity = history->stack_capacity == 0 ? 64 : history->stack_capacity * 2;
    struct stack *larger;

    if (history->stack_count < history->stack_capacity) {
        return true;
    }
    if (capacity > STACK_LIMIT) {
        return false;
    }
    larger = realloc(history->stacks, capacity * sizeof(*larger));
    if (larger == NULL) {
        return false;
    }
    history->stacks = larger;
    history->stack_capacity = capacity;
    return true;
}

/* Return the number of a call stack, after storing the stack if it is new. 0: the stack cannot be
 * stored, because memory is exhausted or STACK_LIMIT is reached. The caller holds history->lock. */
static uint32_t intern(struct ds_accel__history *history, void *const *frames, uint32_t depth)
{
    uint64_t hash = ds_accel__hash(frames, depth * sizeof(frames[0]), 0);
    uint32_t *bucket = &history->buckets[hash % STACK_BUCKETS];
    struct stack *stack;

    for (uint32_t i = *bucket; i != 0; i = history->stacks[i].next) {
        stack = &history->stacks[i];
        if (stack->depth == depth &&
            memcmp(stack->frames, frames, depth * sizeof(frames[0])) == 0) {
            return i;
        }
    }
    if (!grow_stacks(history)) {
        return 0;
    }
    history->stack_count += history->stack_count == 0;
    assert(history->stack_count < history->stack_capacity && depth <= STACK_DEPTH);
    stack = &history->stacks[history->stack_count];
    memcpy(stack->frames, frames, depth * sizeof(frames[0]));
    stack->depth = depth;
    stack->next = *bucket;
    *bucket = history->stack_count;
    return history->stack_count++;
}

static uint32_t add(struct ds_accel__history *history, const struct entry *entry)
{
    void *frames[STACK_DEPTH];
    int depth = 0;
    uint32_t number = 0;

    if ((__atomic_load_n(&history->flags, __ATOMIC_RELAXED) & DS_ACCEL__HISTORY_STACKS) != 0) {
        depth = backtrace(frames, STACK_DEPTH);
    }
    pthread_mutex_lock(&history->lock);
    if (history->flags != 0) {
        if (depth > 0) {
            number = intern(history, frames, (uint32_t)depth);
        }
        if (history->capacity > 0) {
            struct entry *place = &history->entries[history->count++ % history->capacity];

            *place = *entry;
            place->frames = number;
        }
    }
    pthread_mutex_unlock(&history->lock);
    return number;
}

uint32_t ds_accel__history_add(struct ds_accel__allocator *allocator, enum ds_accel__action action,
                               uint64_t address, uint64_t size_bytes, uint64_t stream_id)
{
    struct entry entry = {.action = action};

    if ((__atomic_load_n(&allocator->special, __ATOMIC_ACQUIRE) & DS_ACCEL__SPECIAL_HISTORY) == 0) {
        return 0;
    }
    entry.address = address;
    entry.size_bytes = size_bytes;
    entry.stream_id = stream_id;
    entry.time_us = ds_accel__wall_us();
    return add(allocator->history, &entry);
}

void ds_accel__history_segment(struct ds_accel__allocator *allocator,
                               const struct ds_accel__segment *segment, uint64_t address,
                               uint64_t size_bytes, enum ds_accel__action action)
{
    ds_accel__history_add(allocator, action, address, size_bytes, segment->stream_id);
}

void ds_accel__history_destroy(struct ds_accel__allocator *allocator)
{
    struct ds_accel__history *history = allocator->history;

    if (history != NULL) {
        free(history->entries);
        free(history->stacks);
        pthread_mutex_destroy(&history->lock);
        free(history);
    }
}

/* Return the history, created on first use; NULL: out of memory. The struct stays until the
 * allocator is destroyed. The caller holds the allocator's lock. */
static struct ds_accel__history *make_history(struct ds_accel__allocator *allocator)
{
    if (allocator->history == NULL) {
        struct ds_accel__history *history = calloc(1, sizeof(*history));

        if (history != NULL) {
            pthread_mutex_init(&history->lock, NULL);
            allocator->history = history;
        }
    }
    return allocator->history;
}

int32_t ds_accel__allocator_record_history(struct ds_accel__allocator *allocator, uint32_t flags,
                                           uint64_t max_entries)
{
    struct ds_accel__history *history;
    struct entry *entries = NULL;

    if (flags > (DS_ACCEL__HISTORY_ON | DS_ACCEL__HISTORY_STACKS) || max_entries > ENTRY_LIMIT) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "memory_record_history: unknown flags, or more than %llu entries",
                               (unsigned long long)ENTRY_LIMIT);
    }
    if (flags != 0 && max_entries > 0) {
        entries = malloc(max_entries * sizeof(*entries));
        if (entries == NULL) {
            return ds_accel__no_memory();
        }
    }
    pthread_mutex_lock(&allocator->lock);
    history = make_history(allocator);
    if (history == NULL) {
        pthread_mutex_unlock(&allocator->lock);
        free(entries);
        return ds_accel__no_memory();
    }
    pthread_mutex_lock(&history->lock);
    free(history->entries);
    history->entries = entries;
    history->capacity = flags != 0 ? max_entries : 0;
    history->count = 0;
    __atomic_store_n(&history->flags, flags, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&history->lock);
    if (flags != 0) {
        __atomic_or_fetch(&allocator->special, DS_ACCEL__SPECIAL_HISTORY, __ATOMIC_RELEASE);
    } else {
        __atomic_and_fetch(&allocator->special, ~DS_ACCEL__SPECIAL_HISTORY, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&allocator->lock);
    return DS_ACCEL_OK;
}

/* ---- snapshots ------------------------------------------------------------------------------ */

static json_t *integer(uint64_t value)
{
    return json_integer((json_int_t)value);
}

/* Make the tree of one frame. Its name is the function's name, or the offset in the object file if
 * the dynamic linker does not report a function; its filename is the object file. Its line is 0,
 * because the dynamic linker does not report lines. */
static json_t *frame_tree(void *address)
{
    Dl_info info = {0};
    char where[64];
    json_t *tree = json_object();
    bool failed = tree == NULL;
    bool is_known = dladdr(address, &info) != 0;

    snprintf(where, sizeof(where), "0x%llx",
             (unsigned long long)((uintptr_t)address - (uintptr_t)info.dli_fbase));
    ds_accel__json_set(
        tree, "name",
        ds_accel__json_text(is_known && info.dli_sname != NULL ? info.dli_sname : where), &failed);
    ds_accel__json_set(
        tree, "filename",
        ds_accel__json_text(is_known && info.dli_fname != NULL ? info.dli_fname : "??"), &failed);
    ds_accel__json_set(tree, "line", json_integer(0), &failed);
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

/* Make the tree of a stack's frames, without the innermost frames, which are in this library. */
static json_t *frames_tree(const struct ds_accel__history *history, uint32_t number)
{
    json_t *tree = json_array();
    Dl_info ours = {0};
    bool is_inside = true;

    if (tree == NULL || history == NULL || number == 0 || number >= history->stack_count) {
        return tree;
    }
    dladdr((void *)(uintptr_t)&frames_tree, &ours);
    for (uint32_t i = 0; i < history->stacks[number].depth; i++) {
        void *address = history->stacks[number].frames[i];
        Dl_info info = {0};

        is_inside = is_inside && dladdr(address, &info) != 0 && info.dli_fbase == ours.dli_fbase;
        if (!is_inside && json_array_append_new(tree, frame_tree(address)) < 0) {
            json_decref(tree);
            return NULL;
        }
    }
    return tree;
}

void ds_accel__history_describe(const struct ds_accel__allocator *allocator, uint32_t frames,
                                char *text, size_t text_size)
{
    struct ds_accel__history *history = allocator->history;
    Dl_info ours = {0};

    ds_accel__copy(text, text_size, "where is not recorded");
    if (history == NULL) {
        return;
    }
    dladdr((void *)(uintptr_t)&frames_tree, &ours);
    pthread_mutex_lock(&history->lock);
    for (uint32_t i = 0;
         frames > 0 && frames < history->stack_count && i < history->stacks[frames].depth; i++) {
        uintptr_t address = (uintptr_t)history->stacks[frames].frames[i];
        Dl_info info = {0};

        if (dladdr((void *)address, &info) != 0 && info.dli_fbase != ours.dli_fbase) {
            snprintf(text, text_size, "in %s (%s+0x%llx)",
                     info.dli_sname != NULL ? info.dli_sname : "a function",
                     info.dli_fname != NULL ? info.dli_fname : "??",
                     (unsigned long long)(address - (uintptr_t)info.dli_fbase));
            break;
        }
    }
    pthread_mutex_unlock(&history->lock);
}

static json_t *block_tree(const struct ds_accel__history *history,
                          const struct ds_accel__block *block)
{
    bool is_live = block->state == DS_ACCEL__BLOCK_LIVE;
    json_t *tree = json_object();
    bool failed = tree == NULL;

    ds_accel__json_set(tree, "address", integer(block->address), &failed);
    ds_accel__json_set(tree, "size", integer(block->size_bytes), &failed);
    ds_accel__json_set(tree, "requested_size", integer(is_live ? block->requested_bytes : 0),
                       &failed);
    ds_accel__json_set(tree, "state",
                       json_string(is_live                                   ? "active_allocated"
                                   : block->state == DS_ACCEL__BLOCK_PENDING ? "active_pending_free"
                                                                             : "inactive"),
                       &failed);
    ds_accel__json_set(tree, "frames", frames_tree(history, is_live ? block->frames : 0), &failed);
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

/* Make the tree of the memory from one block up to the end of its segment, or up to the next
 * unmapped block. */
static json_t *segment_tree(const struct ds_accel__allocator *allocator,
                            const struct ds_accel__segment *segment,
                            const struct ds_accel__block *first)
{
    const struct ds_accel__arena *arena = segment->home;
    json_t *tree = json_object();
    json_t *blocks = json_array();
    json_t *pool = json_pack("[I, I]", (json_int_t)0,
                             (json_int_t)(arena->owner != NULL ? arena->owner->id : 0));
    bool failed = tree == NULL || blocks == NULL;
    uint64_t allocated = 0;
    uint64_t active = 0;
    uint64_t requested = 0;
    uint64_t total = 0;

    for (const struct ds_accel__block *block = first;
         block != NULL && block->state != DS_ACCEL__BLOCK_UNMAPPED; block = block->next) {
        bool is_live = block->state == DS_ACCEL__BLOCK_LIVE;

        total += block->size_bytes;
        allocated += is_live ? block->size_bytes : 0;
        requested += is_live ? block->requested_bytes : 0;
        active += is_live || block->state == DS_ACCEL__BLOCK_PENDING ? block->size_bytes : 0;
        failed = failed || json_array_append_new(blocks, block_tree(allocator->history, block)) < 0;
    }
    ds_accel__json_set(tree, "device", json_integer(allocator->device_index), &failed);
    ds_accel__json_set(tree, "address", integer(first->address), &failed);
    ds_accel__json_set(tree, "total_size", integer(total), &failed);
    ds_accel__json_set(tree, "allocated_size", integer(allocated), &failed);
    ds_accel__json_set(tree, "active_size", integer(active), &failed);
    ds_accel__json_set(tree, "requested_size", integer(requested), &failed);
    ds_accel__json_set(tree, "stream", integer(segment->stream_id), &failed);
    ds_accel__json_set(tree, "segment_type",
                       json_string(segment->kind == DS_ACCEL__SMALL ? "small" : "large"), &failed);
    ds_accel__json_set(tree, "segment_pool_id", pool, &failed);
    ds_accel__json_set(tree, "is_expandable", json_boolean(segment->reserved_bytes != 0), &failed);
    ds_accel__json_set(tree, "frames", frames_tree(allocator->history, segment->frames), &failed);
    ds_accel__json_set(tree, "blocks", blocks, &failed);
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

/* Add a segment to the snapshot. As in torch, a growable segment appears as several segments: one
 * for each run of memory without a gap. */
static bool add_runs(const struct ds_accel__allocator *allocator,
                     const struct ds_accel__segment *segment, json_t *segments)
{
    bool is_inside = false;

    for (const struct ds_accel__block *block = segment->first; block != NULL; block = block->next) {
        bool is_mapped = block->state != DS_ACCEL__BLOCK_UNMAPPED;

        if (is_mapped && !is_inside &&
            json_array_append_new(segments, segment_tree(allocator, segment, block)) < 0) {
            return false;
        }
        is_inside = is_mapped;
    }
    return true;
}

static json_t *entry_tree(const struct ds_accel__history *history, const struct entry *entry)
{
    json_t *tree = json_object();
    bool failed = tree == NULL;

    ds_accel__json_set(tree, "action", json_string(action_names[entry->action]), &failed);
    ds_accel__json_set(tree, "addr", integer(entry->address), &failed);
    ds_accel__json_set(tree, "size", integer(entry->size_bytes), &failed);
    ds_accel__json_set(tree, "stream", integer(entry->stream_id), &failed);
    ds_accel__json_set(tree, "time_us", integer(entry->time_us), &failed);
    ds_accel__json_set(tree, "frames", frames_tree(history, entry->frames), &failed);
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

/* Make the tree of all entries, the oldest first; NULL: out of memory. */
static json_t *trace_tree(struct ds_accel__history *history)
{
    json_t *tree = json_array();
    uint64_t kept;

    if (history == NULL || tree == NULL) {
        return tree;
    }
    pthread_mutex_lock(&history->lock);
    kept = history->count < history->capacity ? history->count : history->capacity;
    for (uint64_t i = history->count - kept; i < history->count && tree != NULL; i++) {
        if (json_array_append_new(
                tree, entry_tree(history, &history->entries[i % history->capacity])) < 0) {
            json_decref(tree);
            tree = NULL;
        }
    }
    pthread_mutex_unlock(&history->lock);
    return tree;
}

struct stats_sink {
    json_t *tree;
    bool failed;
};

static bool add_stat(void *user_data, const char *key, int64_t value)
{
    struct stats_sink *sink = user_data;

    ds_accel__json_set(sink->tree, key, json_integer(value), &sink->failed);
    return !sink->failed;
}

json_t *ds_accel__allocator_stats_tree(struct ds_accel__allocator *allocator)
{
    struct stats_sink sink = {.tree = json_object()};

    sink.failed = sink.tree == NULL;
    if (!sink.failed) {
        ds_accel__allocator_visit_stats(allocator, add_stat, &sink);
    }
    if (sink.failed) {
        json_decref(sink.tree);
        ds_accel__no_memory();
        return NULL;
    }
    return sink.tree;
}

int32_t ds_accel__allocator_snapshot(struct ds_accel__allocator *allocator, json_t *segments,
                                     json_t *traces, json_t *stats)
{
    bool failed = false;

    ds_accel__history_add(allocator, DS_ACCEL__ACTION_SNAPSHOT, 0, 0, 0);
    pthread_mutex_lock(&allocator->lock);
    ds_accel__arenas_lock(allocator);
    ds_accel__arenas_flush(allocator);
    /* while history->lock is held, no thread reallocates the array of stacks */
    if (allocator->history != NULL) {
        pthread_mutex_lock(&allocator->history->lock);
    }
    for (const struct ds_accel__arena *arena = allocator->arenas; arena != NULL;
         arena = arena->next) {
        for (const struct ds_accel__segment *segment = arena->segments; segment != NULL && !failed;
             segment = segment->next) {
            failed = !add_runs(allocator, segment, segments);
        }
    }
    if (allocator->history != NULL) {
        pthread_mutex_unlock(&allocator->history->lock);
    }
    ds_accel__arenas_unlock(allocator);
    failed = failed || json_array_append_new(traces, trace_tree(allocator->history)) < 0;
    pthread_mutex_unlock(&allocator->lock);
    failed = failed || json_array_append_new(stats, ds_accel__allocator_stats_tree(allocator)) < 0;
    return failed ? ds_accel__no_memory() : DS_ACCEL_OK;
}
