/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Live handles, in an open-addressed table by address. The kinds of recently destroyed handles are
 * kept, so that a use after destruction is reported as such.
 */
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REMEMBERED 256u
#define KINDS 64u

struct slot {
    const void *handle; /* NULL: the slot is free */
    const char *kind;
};

static struct {
    pthread_mutex_t lock; /* guards the whole table */
    struct slot *slots;
    size_t capacity, count;
    struct slot gone[REMEMBERED];
    size_t gone_next;
    struct {
        const char *kind;
        uint32_t count;
    } kinds[KINDS];
} handles = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t home_of(const void *handle)
{
    uint64_t bits = (uint64_t)(uintptr_t)handle * UINT64_C(0x9E3779B97F4A7C15);

    return (size_t)(bits >> 32) & (handles.capacity - 1);
}

/* Returns the handle's slot, or the slot where it would be inserted. */
static struct slot *find(const void *handle)
{
    size_t at = home_of(handle);

    while (handles.slots[at].handle != NULL && handles.slots[at].handle != handle) {
        at = (at + 1) & (handles.capacity - 1);
    }
    return &handles.slots[at];
}

static const char *kind_of(const void *handle)
{
    return handles.capacity == 0 || handle == NULL ? NULL : find(handle)->kind;
}

static void grow(void)
{
    struct slot *old = handles.slots;
    size_t old_capacity = handles.capacity;

    handles.capacity = old_capacity == 0 ? 256 : old_capacity * 2;
    handles.slots = sim_zalloc(handles.capacity * sizeof(*handles.slots));
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].handle != NULL) {
            *find(old[i].handle) = old[i];
        }
    }
    free(old);
}

/* Returns the count of live handles of a kind. There are few kinds. */
static uint32_t *count_of(const char *kind)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (handles.kinds[i].kind == NULL) {
            handles.kinds[i].kind = kind;
        }
        if (strcmp(handles.kinds[i].kind, kind) == 0) {
            return &handles.kinds[i].count;
        }
    }
    sim_misuse("the simulator has more than %u kinds of handles", KINDS);
}

void sim_handle_add(const void *handle, const char *kind)
{
    const char *there;

    pthread_mutex_lock(&handles.lock);
    if (handles.count * 2 >= handles.capacity) {
        grow();
    }
    there = kind_of(handle);
    if (there == NULL && handle != NULL) {
        *find(handle) = (struct slot){handle, kind};
        handles.count++;
        ++*count_of(kind);
    }
    pthread_mutex_unlock(&handles.lock);
    sim_report_update();
    if (there != NULL || handle == NULL) {
        sim_misuse("the simulator gives %p as a %s, and it is a %s", handle, kind,
                   there != NULL ? there : "null handle");
    }
}

static const char *gone_kind(const void *handle)
{
    for (size_t i = 0; i < REMEMBERED; i++) {
        if (handles.gone[i].handle == handle) {
            return handles.gone[i].kind;
        }
    }
    return NULL;
}

__attribute__((noreturn)) static void refuse(const void *handle, const char *kind, const char *call,
                                             const char *there)
{
    if (handle == NULL) {
        sim_misuse("%s: a null %s", call, kind);
    }
    if (there != NULL) {
        sim_misuse("%s: %p is a %s, not a %s", call, handle, there, kind);
    }
    there = gone_kind(handle);
    if (there != NULL) {
        sim_misuse("%s: %p was a %s and is destroyed", call, handle, there);
    }
    sim_misuse("%s: %p is no handle of this library (wanted: %s)", call, handle, kind);
}

void sim_handle_check(const void *handle, const char *kind, const char *call)
{
    const char *there;

    pthread_mutex_lock(&handles.lock);
    there = kind_of(handle);
    pthread_mutex_unlock(&handles.lock);
    if (there == NULL || strcmp(there, kind) != 0) {
        refuse(handle, kind, call, there);
    }
}

static void take_out(struct slot *hole)
{
    size_t at = (size_t)(hole - handles.slots);

    handles.slots[at] = (struct slot){NULL, NULL};
    handles.count--;
    /* Moves entries that were displaced by the removed one back towards their slots. */
    for (;;) {
        struct slot moved;

        at = (at + 1) & (handles.capacity - 1);
        moved = handles.slots[at];
        if (moved.handle == NULL) {
            return;
        }
        handles.slots[at] = (struct slot){NULL, NULL};
        *find(moved.handle) = moved;
    }
}

void sim_handle_remove(const void *handle, const char *kind, const char *call)
{
    const char *there;

    pthread_mutex_lock(&handles.lock);
    there = kind_of(handle);
    if (there == NULL || strcmp(there, kind) != 0) {
        pthread_mutex_unlock(&handles.lock);
        refuse(handle, kind, call, there);
    }
    handles.gone[handles.gone_next++ % REMEMBERED] = (struct slot){handle, there};
    take_out(find(handle));
    --*count_of(there);
    pthread_mutex_unlock(&handles.lock);
    sim_report_update();
}

bool sim_handle_is(const void *handle, const char *kind)
{
    const char *there;

    pthread_mutex_lock(&handles.lock);
    there = kind_of(handle);
    pthread_mutex_unlock(&handles.lock);
    return there != NULL && strcmp(there, kind) == 0;
}

uint32_t sim_handle_count(const char *kind)
{
    uint32_t count;

    pthread_mutex_lock(&handles.lock);
    count = *count_of(kind);
    pthread_mutex_unlock(&handles.lock);
    return count;
}

int sim_handle_report(char *text, size_t text_size)
{
    int length = 0;

    pthread_mutex_lock(&handles.lock);
    for (size_t i = 0; i < KINDS && handles.kinds[i].kind != NULL; i++) {
        if (handles.kinds[i].count > 0 && length < (int)text_size - 64) {
            length += snprintf(text + length, text_size - (size_t)length, "alive %.40s %u\n",
                               handles.kinds[i].kind, handles.kinds[i].count);
        }
    }
    pthread_mutex_unlock(&handles.lock);
    return length;
}
