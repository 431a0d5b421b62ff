/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The memory that a call of the table accesses. The accesses are recorded after the call succeeded,
 * or, if races are refused, checked before the call. The layers' lock guards all data.
 */
#include "host/layers.h"
#include "layers/layer.h"
#include "layers/race.h"

#include <assert.h>
#include <string.h>

#define RANGE_LIMIT 2

/* The ranges that a call accesses, and the stream or the host that accesses them. */
struct touch {
    const void *stream; /* NULL: the host */
    struct {
        uint64_t space;
        uint64_t begin;
        uint64_t size_bytes;
        bool is_write;
    } ranges[RANGE_LIMIT];
    uint32_t count;
    /* accesses of a host task of the library; NULL: none */
    const struct ds_accel__work *work;
    const struct ds_accel__race_object *exec; /* the launched graph, with its captured accesses */
};

static void add_touch(struct touch *touch, const struct ds_accel__object *device, uint64_t address,
                      uint64_t size_bytes, bool is_write)
{
    if (size_bytes == 0 || address > UINT64_MAX - size_bytes) {
        return;
    }
    assert(touch->count < RANGE_LIMIT);
    touch->ranges[touch->count].space = ds_accel__race_space(device, address);
    touch->ranges[touch->count].begin = address;
    touch->ranges[touch->count].size_bytes = size_bytes;
    touch->ranges[touch->count].is_write = is_write;
    touch->count++;
}

static void touch_copy(const struct ds_accel__call *call, const struct ds_accel__object *device,
                       struct touch *touch)
{
    uint64_t kind = call->arguments[4].number;
    uint64_t size_bytes = call->arguments[3].number;
    bool to_host = kind == DS_ACCEL_COPY_HOST_TO_HOST || kind == DS_ACCEL_COPY_DEVICE_TO_HOST;
    bool from_host = kind == DS_ACCEL_COPY_HOST_TO_HOST || kind == DS_ACCEL_COPY_HOST_TO_DEVICE;

    add_touch(touch, to_host ? NULL : device, call->arguments[1].pointer, size_bytes, true);
    add_touch(touch, from_host ? NULL : device, call->arguments[2].pointer, size_bytes, false);
}

/* Determine the memory that a call reads and writes; most calls access none. */
static void touched_by(const struct ds_accel__call *call, struct touch *touch)
{
    const union ds_accel__argument *arguments = call->arguments;
    const void *first = DS_ACCEL__POINTER(call, 0);

    memset(touch, 0, sizeof(*touch));
    switch (call->slot) {
    case DS_ACCEL__SLOT_mem_copy:
        touch_copy(call, ds_accel__object_find(DS_ACCEL__DEVICE, first), touch);
        break;
    case DS_ACCEL__SLOT_mem_copy_async:
        touch->stream = first;
        touch_copy(call, ds_accel__race_device_of(first), touch);
        break;
    case DS_ACCEL__SLOT_mem_copy_peer_async:
        touch->stream = first;
        add_touch(touch, ds_accel__object_find(DS_ACCEL__DEVICE, DS_ACCEL__POINTER(call, 1)),
                  arguments[2].pointer, arguments[5].number, true);
        add_touch(touch, ds_accel__object_find(DS_ACCEL__DEVICE, DS_ACCEL__POINTER(call, 3)),
                  arguments[4].pointer, arguments[5].number, false);
        break;
    case DS_ACCEL__SLOT_mem_fill_async:
        touch->stream = first;
        add_touch(touch, ds_accel__race_device_of(first), arguments[1].pointer, arguments[4].number,
                  true);
        break;
    case DS_ACCEL__SLOT_rng_uniform:
    case DS_ACCEL__SLOT_rng_normal:
        touch->stream = first;
        if (arguments[2].number < UINT64_MAX / 8) {
            add_touch(touch, ds_accel__race_device_of(first), arguments[1].pointer,
                      arguments[2].number * ds_accel__race_dtype_bytes(arguments[3].number), true);
        }
        break;
    case DS_ACCEL__SLOT_stream_host_task:
        touch->stream = first;
        touch->work = call->race.work;
        break;
    case DS_ACCEL__SLOT_graph_launch:
        touch->stream = DS_ACCEL__POINTER(call, 1);
        touch->exec = ds_accel__race_of_handle(DS_ACCEL__EXEC, first);
        break;
    case DS_ACCEL__SLOT_mem_alloc_async:
        touch->stream = first;
        add_touch(touch, ds_accel__race_device_of(first),
                  (uintptr_t)ds_accel__layer_output(call, 5), arguments[1].number, true);
        break;
    default:
        break;
    }
}

static bool touches_nothing(const struct touch *touch)
{
    return touch->count == 0 && touch->work == NULL &&
           (touch->exec == NULL || touch->exec->capture == NULL);
}

void ds_accel__race_touch(const struct ds_accel__call *call)
{
    struct ds_accel__access access = {.stack = call->stack, .slot = call->slot, .site = call->site};
    struct ds_accel__object *stream = NULL;
    struct ds_accel__race_thread *thread;
    struct touch touch;
    bool is_captured = false;
    bool is_placed;

    touched_by(call, &touch);
    if (touches_nothing(&touch) || (thread = ds_accel__race_enter(call->stack)) == NULL) {
        return;
    }
    if (touch.stream != NULL) {
        stream = ds_accel__object_find(DS_ACCEL__STREAM, touch.stream);
        if (stream == NULL) {
            return;
        }
        if (call->slot == DS_ACCEL__SLOT_mem_alloc_async) {
            ds_accel__race_join_waits(call, ds_accel__race_of(stream), 3);
        }
        is_placed = ds_accel__race_place_stream(stream, thread, &access, &is_captured);
    } else {
        is_placed = ds_accel__race_place_host(call->stack, &access);
    }
    for (uint32_t i = 0; i < touch.count && is_placed; i++) {
        access.space = touch.ranges[i].space;
        access.begin = touch.ranges[i].begin;
        access.size_bytes = touch.ranges[i].size_bytes;
        access.is_write = touch.ranges[i].is_write;
        if (is_captured) {
            ds_accel__capture_access(stream->race, &access);
        } else {
            ds_accel__race_access(&access);
        }
    }
    if (touch.work != NULL && is_placed) {
        ds_accel__work_access(touch.work, &access, is_captured ? stream->race : NULL);
    }
    if (stream != NULL && is_placed && !is_captured) {
        ds_accel__race_return(stream, stream->race, thread);
    } else {
        ds_accel__race_leave(thread);
    }
}

/* Whether the accesses of a graph would race if it were launched at this place. */
static bool launch_would(const struct ds_accel__race_object *exec, struct ds_accel__access *place)
{
    bool is_raced = false;

    ds_accel__clock_join(&place->clock, exec->clock);
    for (size_t i = 0; i < exec->capture->count; i++) {
        const struct ds_accel__access *captured = exec->capture->items[i].access;

        if (captured != NULL) {
            struct ds_accel__access access = *captured;

            access.component = place->component;
            access.time = place->time;
            access.clock = place->clock;
            access.stream = place->stream;
            access.site = place->site;
            access.captured_at = captured->site;
            is_raced = ds_accel__access_check(&access) != NULL || is_raced;
        }
    }
    return is_raced;
}

bool ds_accel__race_would(const struct ds_accel__call *call)
{
    struct ds_accel__access access = {
        .stack = call->stack, .slot = call->slot, .site = call->site, .time = UINT64_MAX};
    const struct ds_accel__race_thread *thread;
    struct touch touch;
    bool is_raced = false;

    touched_by(call, &touch);
    if (touches_nothing(&touch) || call->slot == DS_ACCEL__SLOT_mem_alloc_async ||
        (thread = ds_accel__race_enter(call->stack)) == NULL) {
        return false;
    }
    access.component = thread->component;
    access.clock = ds_accel__clock_get(thread->clock);
    if (touch.stream != NULL) {
        struct ds_accel__object *stream = ds_accel__object_find(DS_ACCEL__STREAM, touch.stream);
        struct ds_accel__race_object *race = ds_accel__race_of(stream);

        if (race == NULL || race->capture != NULL) {
            ds_accel__clock_put(access.clock);
            return false;
        }
        /* the call that queues the work happens before the work */
        ds_accel__race_reach(stream, race, thread);
        access.component = race->component;
        access.stream = stream->number;
        access.is_on_stream = true;
        ds_accel__clock_join(&access.clock, race->clock);
    }
    for (uint32_t i = 0; i < touch.count; i++) {
        access.space = touch.ranges[i].space;
        access.begin = touch.ranges[i].begin;
        access.size_bytes = touch.ranges[i].size_bytes;
        access.is_write = touch.ranges[i].is_write;
        is_raced = ds_accel__access_check(&access) != NULL || is_raced;
    }
    if (touch.work != NULL) {
        is_raced = ds_accel__work_check(touch.work, &access) || is_raced;
    }
    if (touch.exec != NULL) {
        is_raced = launch_would(touch.exec, &access);
    }
    ds_accel__clock_put(access.clock);
    return is_raced;
}
