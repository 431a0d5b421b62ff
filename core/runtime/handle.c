/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Handles that programs hold: devices, streams, events, graphs, pools, timers, generators, tensors.
 *
 * A program that uses a destroyed handle must get an error, not a crash, without extra cost in the
 * inline calls. The memory of a destroyed handle is therefore never returned to the heap: its table
 * is replaced by a table whose functions all fail with "destroyed". The memory is reused only for a
 * handle of the same kind, and only after many other handles were destroyed.
 */
#include "runtime/handle.h"
#include "base/fork.h"
#include "base/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* the oldest destroyed handle of a kind is reused only if more than this number exist */
#define WAITING 256u

/* Header before each handle. */
struct entry {
    struct entry *next; /* link in the list of destroyed handles */
    /* pads the header, so that the handle after it has the alignment of malloc() */
    uint64_t reserved;
};
DS_ACCEL_STATIC_ASSERT(sizeof(struct entry) == 16, "handles stay aligned");

/* Guards the lists and last_id. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_id;
static struct {
    struct entry *first; /* the oldest destroyed handle */
    struct entry *last;
    size_t count;
} lists[DS_ACCEL__HANDLE_COUNT];

static const struct {
    size_t size_bytes;
    size_t child_offset;
} kinds[DS_ACCEL__HANDLE_COUNT] = {
    [DS_ACCEL__HANDLE_DEVICE] = {sizeof(struct ds_accel__device),
                                 offsetof(struct ds_accel__device, child)},
    [DS_ACCEL__HANDLE_STREAM] = {sizeof(struct ds_accel__stream),
                                 offsetof(struct ds_accel__stream, child)},
    [DS_ACCEL__HANDLE_EVENT] = {sizeof(struct ds_accel__event),
                                offsetof(struct ds_accel__event, child)},
    [DS_ACCEL__HANDLE_GRAPH] = {sizeof(struct ds_accel__graph),
                                offsetof(struct ds_accel__graph, child)},
    [DS_ACCEL__HANDLE_TIMER] = {sizeof(struct ds_accel__timer),
                                offsetof(struct ds_accel__timer, child)},
    [DS_ACCEL__HANDLE_POOL] = {sizeof(struct ds_accel__pool),
                               offsetof(struct ds_accel__pool, child)},
    [DS_ACCEL__HANDLE_RNG] = {sizeof(struct ds_accel__rng), offsetof(struct ds_accel__rng, child)},
    [DS_ACCEL__HANDLE_TENSOR] = {sizeof(struct ds_accel__tensor),
                                 offsetof(struct ds_accel__tensor, child)},
};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void renew_in_children(void)
{
    ds_accel__fork_renew(&lock);
}

static struct ds_accel__child *child_of(enum ds_accel__handle_kind kind, void *handle)
{
    return (struct ds_accel__child *)((char *)handle + kinds[kind].child_offset);
}

void *ds_accel__child_handle(const struct ds_accel__child *child)
{
    assert((size_t)child->kind < DS_ACCEL__HANDLE_COUNT);
    return (char *)child - kinds[child->kind].child_offset;
}

/* Remove the oldest destroyed handle of the kind from its list and return it; NULL: it may not be
 * reused yet. The caller holds the lock. */
static struct entry *take_waiting(enum ds_accel__handle_kind kind)
{
    struct entry *entry = lists[kind].first;

    if (lists[kind].count <= WAITING) {
        return NULL;
    }
    assert(entry != NULL && entry->next != NULL); /* count is the number of entries of the list */
    lists[kind].first = entry->next;
    lists[kind].count--;
    return entry;
}

/* Clear all members except the id, which is already 0 and which other threads may read to compare
 * it with an id that they stored. */
static void clear(enum ds_accel__handle_kind kind, void *handle)
{
    size_t id_at = kinds[kind].child_offset + offsetof(struct ds_accel__child, id);
    size_t behind = id_at + sizeof(((struct ds_accel__child *)handle)->id);

    memset(handle, 0, id_at);
    memset((char *)handle + behind, 0, kinds[kind].size_bytes - behind);
}

void *ds_accel__handle_take(enum ds_accel__handle_kind kind, struct ds_accel__device *device)
{
    struct ds_accel__child *child;
    struct entry *entry;
    uint64_t id;

    pthread_once(&once, renew_in_children);
    pthread_mutex_lock(&lock);
    entry = take_waiting(kind);
    id = ++last_id;
    pthread_mutex_unlock(&lock);
    if (entry == NULL) {
        entry = malloc(sizeof(*entry) + kinds[kind].size_bytes);
    }
    if (entry == NULL) {
        ds_accel__no_memory();
        return NULL;
    }
    clear(kind, entry + 1);
    child = child_of(kind, entry + 1);
    child->kind = kind;
    child->device = device;
    __atomic_store_n(&child->id, id, __ATOMIC_RELAXED);
    return entry + 1;
}

void ds_accel__handle_put(enum ds_accel__handle_kind kind, void *handle)
{
    const struct ds_accel_plugin *table = ds_accel__table_destroyed();
    struct entry *entry = (struct entry *)handle - 1;

    assert(ds_accel__handle_is_live(handle) && child_of(kind, handle)->kind == kind);
    /* If the program uses the handle in another thread at the same time, which is a defect of the
     * program, that thread reads either the old or the new table. */
    __atomic_store_n(&child_of(kind, handle)->id, 0, __ATOMIC_RELAXED);
    __atomic_store_n((const struct ds_accel_plugin **)handle, table, __ATOMIC_RELEASE);
    pthread_mutex_lock(&lock);
    entry->next = NULL;
    if (lists[kind].count == 0) {
        lists[kind].first = entry;
    } else {
        lists[kind].last->next = entry;
    }
    lists[kind].last = entry;
    lists[kind].count++;
    pthread_mutex_unlock(&lock);
}

bool ds_accel__handle_is_live(const void *handle)
{
    const struct ds_accel_plugin *const *table = handle;

    return handle != NULL &&
           __atomic_load_n(table, __ATOMIC_ACQUIRE) != ds_accel__table_destroyed();
}

/* ---- children of a device ------------------------------------------------------------------- */

void ds_accel__child_add(struct ds_accel__child *child)
{
    struct ds_accel__device *device = child->device;

    pthread_mutex_lock(&device->lock);
    assert(!child->is_listed && child->previous == NULL);
    child->next = device->children;
    if (device->children != NULL) {
        device->children->previous = child;
    }
    device->children = child;
    child->is_listed = true;
    pthread_mutex_unlock(&device->lock);
}

bool ds_accel__child_remove(struct ds_accel__child *child)
{
    struct ds_accel__device *device = child->device;
    bool was_listed;

    pthread_mutex_lock(&device->lock);
    was_listed = child->is_listed;
    if (was_listed) {
        assert((child->previous == NULL) == (device->children == child));
        child->is_listed = false;
        if (child->previous != NULL) {
            child->previous->next = child->next;
        } else {
            device->children = child->next;
        }
        if (child->next != NULL) {
            child->next->previous = child->previous;
        }
    }
    pthread_mutex_unlock(&device->lock);
    return was_listed;
}

struct ds_accel__child *ds_accel__child_first(struct ds_accel__device *device,
                                              enum ds_accel__handle_kind kind)
{
    struct ds_accel__child *child;

    pthread_mutex_lock(&device->lock);
    child = device->children;
    while (child != NULL && child->kind != kind) {
        child = child->next;
    }
    pthread_mutex_unlock(&device->lock);
    return child;
}

/* ---- errors for invalid handles ------------------------------------------------------------- */

int32_t ds_accel__refuse(const char *call, const char *what, const void *handle)
{
    return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: the %s %s", call, what,
                           handle == NULL                     ? "is NULL"
                           : ds_accel__handle_is_live(handle) ? "is of another context"
                                                              : "was destroyed");
}

int32_t ds_accel__refuse_pair(const char *call, const ds_accel_event_t *event,
                              const ds_accel_stream_t *stream)
{
    return ds_accel__handle_is_live(event) ? ds_accel__refuse(call, "stream", stream)
                                           : ds_accel__refuse(call, "event", event);
}
