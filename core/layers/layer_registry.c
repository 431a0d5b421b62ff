/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The registry of live handles, by kind and value, and of live ranges of addresses, by start
 * address. Recently removed handles and ranges are recorded too, for reports of a use after
 * destruction.
 */
#include "base/fork.h"
#include "layers/layer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BUCKET_COUNT 1024u
#define GRAVE_COUNT 256u

struct grave {
    uint32_t kind;
    const void *handle;
    const void *site;
};

struct ranges {
    struct ds_accel__range **items; /* sorted by space, then by address; ranges do not overlap */
    size_t count;
    size_t capacity;
};

/* Guards all variables below. */
static pthread_mutex_t layer_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ds_accel__object *buckets[BUCKET_COUNT];
static uint64_t object_count;
static uint64_t range_count;
static struct ranges registers[DS_ACCEL__REGISTER_COUNT];
/* Ring buffers of recently removed objects and ranges. */
static struct grave graves[GRAVE_COUNT];
static size_t next_grave;
static struct ds_accel__range freed[GRAVE_COUNT];
static size_t next_freed;

void ds_accel__layer_lock(void)
{
    pthread_mutex_lock(&layer_lock);
}

void ds_accel__layer_unlock(void)
{
    pthread_mutex_unlock(&layer_lock);
}

void ds_accel__layer_registry_open(void)
{
    ds_accel__fork_renew(&layer_lock);
}

/* ---- objects: the caller holds the layers' lock --------------------------------------------- */

const char *ds_accel__kind_name(uint32_t kind)
{
    static const char *const names[DS_ACCEL__OBJECT_COUNT] = {
        [DS_ACCEL__INSTANCE] = "instance",   [DS_ACCEL__DEVICE] = "device",
        [DS_ACCEL__STREAM] = "stream",       [DS_ACCEL__EVENT] = "event",
        [DS_ACCEL__GRAPH] = "graph",         [DS_ACCEL__EXEC] = "executable graph",
        [DS_ACCEL__VMEM] = "virtual memory",
    };

    return kind < DS_ACCEL__OBJECT_COUNT ? names[kind] : "handle";
}

static struct ds_accel__object **bucket_of(uint32_t kind, const void *handle)
{
    uint64_t hash = ((uint64_t)(uintptr_t)handle ^ ((uint64_t)kind << 59)) *
                    UINT64_C(0x9e3779b97f4a7c15);

    return &buckets[hash >> 54];
}
DS_ACCEL_STATIC_ASSERT(BUCKET_COUNT == 1u << 10, "bucket_of() gives ten bits");

struct ds_accel__object *ds_accel__object_find(uint32_t kind, const void *handle)
{
    struct ds_accel__object *object = *bucket_of(kind, handle);

    while (object != NULL && (object->kind != kind || object->handle != handle)) {
        object = object->next;
    }
    return object;
}

void ds_accel__objects_visit(void (*visit)(void *user_data, struct ds_accel__object *object),
                             void *user_data)
{
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        struct ds_accel__object *next;

        for (struct ds_accel__object *object = buckets[i]; object != NULL; object = next) {
            next = object->next;
            visit(user_data, object);
        }
    }
}

const void *ds_accel__object_grave(uint32_t kind, const void *handle)
{
    for (size_t i = 0; i < GRAVE_COUNT; i++) {
        const struct grave *grave = &graves[(next_grave + GRAVE_COUNT - 1 - i) % GRAVE_COUNT];

        if (grave->handle == handle && grave->kind == kind && handle != NULL) {
            return grave->site;
        }
    }
    return NULL;
}

/* Return the new object, which is call->spare_object, or the existing object if the handle is
 * already registered. NULL: the handle is new, and call->spare_object is NULL. */
struct ds_accel__object *ds_accel__object_add(struct ds_accel__call *call, uint32_t kind,
                                              const void *handle, const void *device)
{
    struct ds_accel__object *object = ds_accel__object_find(kind, handle);
    const struct ds_accel__object *owner = ds_accel__object_find(DS_ACCEL__DEVICE, device);

    assert(kind < DS_ACCEL__OBJECT_COUNT);
    if (object == NULL) {
        struct ds_accel__object **bucket = bucket_of(kind, handle);

        object = call->spare_object;
        if (object == NULL) {
            return NULL;
        }
        call->spare_object = NULL;
        object->kind = kind;
        object->handle = handle;
        object->stack = call->stack;
        object->device = kind == DS_ACCEL__DEVICE ? handle : device;
        object->device_index = owner != NULL ? owner->device_index : 0;
        object->instance = kind == DS_ACCEL__INSTANCE ? handle : call->instance;
        object->site = call->site;
        object->number = ++object_count;
        object->next = *bucket;
        *bucket = object;
    }
    return object;
}

void ds_accel__object_remove(struct ds_accel__object *object, const void *site)
{
    struct ds_accel__object **place = bucket_of(object->kind, object->handle);

    while (*place != object) {
        assert(*place != NULL);
        place = &(*place)->next;
    }
    *place = object->next;
    graves[next_grave] = (struct grave){object->kind, object->handle, site};
    next_grave = (next_grave + 1) % GRAVE_COUNT;
}

/* ---- ranges: the caller holds the layers' lock ---------------------------------------------- */

/* Return the position of the first range after (space, address) in the array's order; the array's
 * length if there is none. */
static size_t position_behind(const struct ranges *ranges, uint64_t space, uint64_t address)
{
    size_t low = 0;
    size_t high = ranges->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct ds_accel__range *range = ranges->items[middle];

        if (range->space < space || (range->space == space && range->begin <= address)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct ds_accel__range *ds_accel__range_find(enum ds_accel__register in, uint64_t space,
                                             uint64_t address)
{
    const struct ranges *ranges = &registers[in];
    size_t position = position_behind(ranges, space, address);
    struct ds_accel__range *range = position > 0 ? ranges->items[position - 1] : NULL;

    return range != NULL && range->space == space && address - range->begin < range->size_bytes
               ? range
               : NULL;
}

const struct ds_accel__range *ds_accel__range_grave(uint64_t space, uint64_t address)
{
    for (size_t i = 0; i < GRAVE_COUNT; i++) {
        const struct ds_accel__range *range =
            &freed[(next_freed + GRAVE_COUNT - 1 - i) % GRAVE_COUNT];

        if (range->size_bytes > 0 && range->space == space &&
            address - range->begin < range->size_bytes) {
            return range;
        }
    }
    return NULL;
}

const char *ds_accel__ended(const struct ds_accel__range *grave)
{
    return grave->slot == DS_ACCEL__SLOT_mem_register ? "unregistered" : "freed";
}

void ds_accel__ranges_visit(enum ds_accel__register in,
                            void (*visit)(void *user_data, const struct ds_accel__range *range),
                            void *user_data)
{
    for (size_t i = 0; i < registers[in].count; i++) {
        visit(user_data, registers[in].items[i]);
    }
}

uint64_t ds_accel__range_newest(enum ds_accel__register in, uint64_t space, uint64_t begin,
                                uint64_t size_bytes)
{
    uint64_t end = begin + size_bytes;
    uint64_t newest = 0;

    while (begin < end) {
        const struct ds_accel__range *range = ds_accel__range_find(in, space, begin);

        if (range == NULL) {
            return 0;
        }
        newest = range->number > newest ? range->number : newest;
        begin = range->begin + range->size_bytes;
    }
    return newest;
}

static void remove_at(struct ranges *ranges, size_t position)
{
    assert(position < ranges->count);
    free(ranges->items[position]);
    ranges->count--;
    memmove(&ranges->items[position], &ranges->items[position + 1],
            (ranges->count - position) * sizeof(struct ds_accel__range *));
}

#define SPARE_PLACES 64

/* Make space for the ranges that calls in progress may add. False: out of memory. */
bool ds_accel__ranges_make_room(enum ds_accel__register in)
{
    struct ranges *ranges = &registers[in];
    size_t capacity = 2 * ranges->capacity + 2 * SPARE_PLACES;
    struct ds_accel__range **items;

    if (ranges->capacity >= ranges->count + SPARE_PLACES) {
        return true;
    }
    items = realloc(ranges->items, capacity * sizeof(struct ds_accel__range *));
    if (items == NULL) {
        return false;
    }
    ranges->items = items;
    ranges->capacity = capacity;
    return true;
}

/* Add *range, using *spare, which becomes NULL. Older ranges that it overlaps are removed. If
 * *spare is NULL or memory is exhausted, do nothing. */
void ds_accel__range_add(enum ds_accel__register in, const struct ds_accel__range *range,
                         struct ds_accel__range **spare)
{
    struct ranges *ranges = &registers[in];
    size_t position;

    if (*spare == NULL || (ranges->count == ranges->capacity && !ds_accel__ranges_make_room(in))) {
        return; /* out of memory: the range is not registered */
    }
    **spare = *range;
    if (range->number == 0) { /* a range that is restored after a failed free has its old number */
        (*spare)->number = ++range_count;
    }
    position = position_behind(ranges, range->space, range->begin);
    while (position > 0 && ranges->items[position - 1]->space == range->space &&
           ranges->items[position - 1]->begin + ranges->items[position - 1]->size_bytes >
               range->begin) {
        remove_at(ranges, --position);
    }
    while (position < ranges->count && ranges->items[position]->space == range->space &&
           ranges->items[position]->begin - range->begin < range->size_bytes) {
        remove_at(ranges, position);
    }
    assert(ranges->count < ranges->capacity);
    assert(position == 0 || ranges->items[position - 1]->space < range->space ||
           ranges->items[position - 1]->begin <= range->begin);
    memmove(&ranges->items[position + 1], &ranges->items[position],
            (ranges->count - position) * sizeof(struct ds_accel__range *));
    ranges->items[position] = *spare;
    ranges->count++;
    *spare = NULL;
}

void ds_accel__range_end(enum ds_accel__register in, const struct ds_accel__range *range,
                         const void *site)
{
    struct ranges *ranges = &registers[in];
    size_t position = position_behind(ranges, range->space, range->begin) - 1;

    assert(position < ranges->count && ranges->items[position]->begin == range->begin);
    freed[next_freed] = *range;
    freed[next_freed].freed_at = site;
    next_freed = (next_freed + 1) % GRAVE_COUNT;
    remove_at(ranges, position);
}

void ds_accel__ranges_end(const struct ds_accel__stack *stack, const void *instance,
                          const void *device)
{
    for (size_t in = 0; in < DS_ACCEL__REGISTER_COUNT; in++) {
        struct ranges *ranges = &registers[in];
        size_t kept = 0;

        for (size_t i = 0; i < ranges->count; i++) {
            struct ds_accel__range *range = ranges->items[i];

            if (range->stack == stack && (instance == NULL || range->instance == instance) &&
                (device == NULL || range->device == device)) {
                free(range);
            } else {
                ranges->items[kept++] = range;
            }
        }
        ranges->count = kept;
        if (kept == 0) {
            free(ranges->items);
            memset(ranges, 0, sizeof(*ranges));
        }
    }
}
