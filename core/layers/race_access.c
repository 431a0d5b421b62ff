/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Accesses of the race detector: the component that makes an access, its time, clock and address
 * space. race_touch.c and race_work.c determine the accessed memory. The layers' lock guards all
 * data.
 */
#include "host/layers.h"
#include "layers/layer.h"
#include "layers/race.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

_Thread_local const struct ds_accel__race_task *ds_accel__race_task;

struct default_stream {
    const struct ds_accel__object *of;
    race_clock_t **clock;
};

static void join_if_ordered(void *user_data, struct ds_accel__object *object)
{
    struct default_stream *seek = user_data;
    const struct ds_accel__object *of = seek->of;

    if (object->kind == DS_ACCEL__STREAM && object != of && object->race != NULL &&
        object->stack == of->stack && object->device_index == of->device_index &&
        (of->is_default || object->is_default) &&
        ((of->flags | object->flags) & DS_ACCEL_STREAM_NON_BLOCKING) == 0) {
        ds_accel__clock_join(seek->clock, object->race->clock);
    }
}

/* Join into the stream's clock all clocks that happen before the work that the thread queues
 * now. */
void ds_accel__race_reach(const struct ds_accel__object *stream, struct ds_accel__race_object *race,
                          const struct ds_accel__race_thread *thread)
{
    struct default_stream seek = {stream, &race->clock};

    ds_accel__clock_join(&race->clock, thread->clock);
    if ((ds_accel__device_flags(stream) & DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS) != 0) {
        ds_accel__objects_visit(join_if_ordered, &seek);
    }
}

/* Update the clocks after a call that queued work returned: with DS_ACCEL_FLAG_SYNCHRONIZED the
 * work has finished, so join the stream's clock into the thread's clock. Then call
 * ds_accel__race_leave(). */
void ds_accel__race_return(const struct ds_accel__object *stream,
                           const struct ds_accel__race_object *race,
                           struct ds_accel__race_thread *thread)
{
    if ((ds_accel__device_flags(stream) & DS_ACCEL_FLAG_SYNCHRONIZED) != 0) {
        /* The analyzer is wrong: each reference to a clock is counted, and the stream owns this
         * reference. */
        ds_accel__clock_join(&thread->clock, race->clock); // NOLINT(clang-analyzer-unix.Malloc)
    }
    ds_accel__race_leave(thread);
}

void ds_accel__race_access(const struct ds_accel__access *pattern)
{
    struct ds_accel__access *access = ds_accel__race_is_blind ? NULL
                                                              : ds_accel__access_make(pattern);

    if (access != NULL) {
        ds_accel__access_check(access);
        ds_accel__access_keep(access);
        ds_accel__access_put(access);
    }
}

/* Add an item to the capture, which takes ownership of the item's access. */
void ds_accel__capture_add(struct ds_accel__capture *capture,
                           const struct ds_accel__capture_item *item)
{
    assert(capture->references > 0 && capture->count <= capture->capacity);
    if (capture->count == capture->capacity) {
        size_t capacity = capture->capacity > 0 ? 2 * capture->capacity : 16;
        struct ds_accel__capture_item *larger = realloc(capture->items, capacity * sizeof(*larger));

        if (larger == NULL) {
            ds_accel__race_is_blind = true;
            if (item->access != NULL) {
                ds_accel__access_put(item->access);
            }
            return;
        }
        capture->items = larger;
        capture->capacity = capacity;
    }
    capture->items[capture->count++] = *item;
}

/* Store in the item the memory that must still exist at a later launch. item->block is 0 if the
 * capture's own pool contains the block: when the program frees such a block, the pool keeps the
 * memory for the graphs that were captured with this pool. */
static void note_memory(struct ds_accel__capture_item *item,
                        const struct ds_accel__capture *capture,
                        const struct ds_accel__access *access)
{
    const struct ds_accel__range *block =
        ds_accel__range_find(DS_ACCEL__BLOCKS, access->space, access->begin);

    item->memory = ds_accel__range_newest(DS_ACCEL__ALLOCATIONS, access->space, access->begin,
                                          access->size_bytes);
    item->block = block != NULL && (block->pool == 0 || block->pool != capture->pool ||
                                    block->device != capture->device)
                      ? block->number
                      : 0;
}

/* Record an access within a capture, and check it against the accesses of the capture's other
 * streams. */
void ds_accel__capture_access(struct ds_accel__race_object *race,
                              const struct ds_accel__access *pattern)
{
    struct ds_accel__capture_item item = {.access = ds_accel__access_make(pattern)};

    assert(race->capture != NULL);
    if (item.access == NULL) {
        return;
    }
    note_memory(&item, race->capture, pattern);
    for (size_t i = 0; i < race->capture->count; i++) {
        const struct ds_accel__access *other = race->capture->items[i].access;

        if (other != NULL && other->space == pattern->space &&
            other->begin < pattern->begin + pattern->size_bytes &&
            pattern->begin < other->begin + other->size_bytes &&
            (other->is_write || pattern->is_write) && !ds_accel__access_is_before(other, pattern)) {
            ds_accel__race_find(other, item.access);
        }
    }
    ds_accel__capture_add(race->capture, &item);
}

/* Set component, time and clock of an access by host code and, in a host task, also its stream. The
 * clock is borrowed. False: the access cannot be recorded. */
bool ds_accel__race_place_host(struct ds_accel__stack *stack, struct ds_accel__access *access)
{
    struct ds_accel__race_thread *thread;

    if (ds_accel__race_task != NULL) {
        if (ds_accel__race_task->is_nowhere) {
            return false;
        }
        access->component = ds_accel__race_task->place.component;
        access->time = ds_accel__race_task->place.time;
        access->clock = ds_accel__race_task->place.clock;
        access->stream = ds_accel__race_task->place.stream;
        access->is_on_stream = true;
        return true;
    }
    thread = ds_accel__race_enter(stack);
    if (thread == NULL) {
        return false;
    }
    access->component = thread->component;
    access->time = ds_accel__clock_tick(&thread->clock, thread->component);
    access->clock = thread->clock;
    return !ds_accel__race_is_blind;
}

/* Set component, time, clock and stream of an access on a stream. *captured_out: the access is part
 * of a capture. False: the access cannot be recorded. */
bool ds_accel__race_place_stream(struct ds_accel__object *stream,
                                 struct ds_accel__race_thread *thread,
                                 struct ds_accel__access *access, bool *captured_out)
{
    struct ds_accel__race_object *race = ds_accel__race_of(stream);

    if (race == NULL || ds_accel__race_is_blind) {
        return false;
    }
    access->component = race->component;
    access->stream = stream->number;
    access->is_on_stream = true;
    access->is_foreign = !stream->is_ours;
    *captured_out = race->capture != NULL;
    if (race->capture != NULL) {
        access->time = ds_accel__clock_tick_in_capture(&race->in_capture, race->component);
        access->clock = race->in_capture;
    } else {
        ds_accel__race_reach(stream, race, thread);
        access->time = ds_accel__clock_tick(&race->clock, race->component);
        access->clock = race->clock;
    }
    return !ds_accel__race_is_blind;
}

/* Return the address space of an address in a call on a device: the host's space for host memory,
 * else the device's space. */
uint64_t ds_accel__race_space(const struct ds_accel__object *device, uint64_t address)
{
    if (device == NULL || ds_accel__space_of(device) == 0 ||
        ds_accel__range_find(DS_ACCEL__ALLOCATIONS, 0, address) != NULL) {
        return 0;
    }
    return ds_accel__space_of(device);
}

uint64_t ds_accel__race_host_space(const struct ds_accel__object *device, uint64_t address,
                                   enum ds_accel__reach *reach)
{
    uint64_t space = ds_accel__race_space(device, address);

    return space != 0 && ds_accel__range_find(DS_ACCEL__ALLOCATIONS, space, address) != NULL &&
                   !ds_accel__layer_can_read(address, reach)
               ? space
               : 0;
}

uint64_t ds_accel__race_dtype_bytes(uint64_t dtype)
{
    switch (dtype) {
    case DS_ACCEL_DTYPE_FLOAT64:
    case DS_ACCEL_DTYPE_INT64:
        return 8;
    case DS_ACCEL_DTYPE_FLOAT32:
    case DS_ACCEL_DTYPE_INT32:
        return 4;
    case DS_ACCEL_DTYPE_FLOAT16:
    case DS_ACCEL_DTYPE_BFLOAT16:
    case DS_ACCEL_DTYPE_INT16:
        return 2;
    default:
        return 1;
    }
}

const struct ds_accel__object *ds_accel__race_device_of(const void *handle)
{
    const struct ds_accel__object *stream = ds_accel__object_find(DS_ACCEL__STREAM, handle);

    return stream != NULL ? ds_accel__object_find(DS_ACCEL__DEVICE, stream->device) : NULL;
}

void ds_accel__race_join_waits(const struct ds_accel__call *call,
                               struct ds_accel__race_object *race, uint32_t position)
{
    ds_accel_plugin_event_t *const *waits = DS_ACCEL__POINTER(call, position);
    uint64_t count = call->arguments[position + 1].number;

    for (uint64_t i = 0; waits != NULL && race != NULL && i < count; i++) {
        const struct ds_accel__object *event = ds_accel__object_find(DS_ACCEL__EVENT, waits[i]);

        if (event != NULL && event->race != NULL && event->race->recorded_in == 0) {
            ds_accel__clock_join(&race->clock, event->race->clock);
        }
    }
}
