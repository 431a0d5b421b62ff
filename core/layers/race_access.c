/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Accesses of the race detector: who makes them, at which time of which clock, and what calls
 * touch. All of it is guarded by the layers' lock.
 */
#include "host/layers.h"
#include "layers/layer.h"
#include "layers/race.h"

#include <stdlib.h>
#include <string.h>

_Thread_local const struct ds_accel__race_task *ds_accel__race_task;

/* ---- objects -------------------------------------------------------------------------------- */

struct ds_accel__race_object *ds_accel__race_of(struct ds_accel__object *object)
{
    if (object != NULL && object->race == NULL) {
        object->race = calloc(1, sizeof(*object->race));
        if (object->race == NULL) {
            ds_accel__race_is_blind = true;
            return NULL;
        }
        object->race->references = 1;
        if (object->kind == DS_ACCEL__STREAM) {
            object->race->component = ds_accel__component_take(ds_accel__race_host_clock);
        }
    }
    return object != NULL ? object->race : NULL;
}

struct ds_accel__race_object *ds_accel__race_of_handle(uint32_t kind, const void *handle)
{
    return ds_accel__race_of(ds_accel__object_find(kind, handle));
}

void ds_accel__capture_put(struct ds_accel__capture *capture)
{
    if (capture == NULL || --capture->references > 0) {
        return;
    }
    for (size_t i = 0; i < capture->count; i++) {
        if (capture->items[i].access != NULL) {
            ds_accel__access_put(capture->items[i].access);
        }
    }
    free(capture->items);
    free(capture);
}

/* ---- several handles of one stream ---------------------------------------------------------- */

#define NATIVE_COUNT 64u

/* Streams of the vendor's whose last handle has ended, but not they: one may be wrapped again. A
 * ring. */
static struct native {
    uint64_t stack; /* its id */
    uint64_t native;
    uint32_t device_index;
    race_clock_t *clock;
} natives[NATIVE_COUNT];
static size_t next_native;

static void remember_native(const struct ds_accel__object *stream, race_clock_t *clock)
{
    if (stream->native != 0 && !stream->is_created) {
        ds_accel__clock_put(natives[next_native].clock);
        natives[next_native] = (struct native){.stack = stream->stack->id,
                                               .native = stream->native,
                                               .device_index = stream->device_index,
                                               .clock = ds_accel__clock_get(clock)};
        next_native = (next_native + 1) % NATIVE_COUNT;
    }
}

void ds_accel__race_natives_forget(void)
{
    for (size_t i = 0; i < NATIVE_COUNT; i++) {
        ds_accel__clock_put(natives[i].clock);
    }
    memset(natives, 0, sizeof(natives));
}

struct same_native {
    struct ds_accel__object *of;
    struct ds_accel__object *found;
};

static void find_same_native(void *user_data, struct ds_accel__object *object)
{
    struct same_native *seek = user_data;
    const struct ds_accel__object *of = seek->of;

    if (object != of && object->kind == of->kind && object->native == of->native &&
        object->stack == of->stack && object->device_index == of->device_index) {
        seek->found = object;
    }
}

/* What both streams have queued is in one order from now on; both events are the one mark. */
static void share(struct ds_accel__object *object, struct ds_accel__object *other)
{
    struct ds_accel__race_object *shared = ds_accel__race_of(other);

    if (shared == NULL || shared == object->race) {
        return;
    }
    shared->references++;
    if (object->race != NULL) {
        ds_accel__clock_join(&shared->clock, object->race->clock);
        ds_accel__race_object_end(object);
    }
    object->race = shared;
}

/* The stream goes on where the last handle of the vendor's ended; one that was just created is a
 * new one, and the other with its value has ended. */
static void recall_native(struct ds_accel__object *stream)
{
    for (size_t i = 0; i < NATIVE_COUNT; i++) {
        struct native *native = &natives[i];

        if (native->native == stream->native && native->stack == stream->stack->id &&
            native->device_index == stream->device_index) {
            if (stream->is_created) {
                ds_accel__clock_put(native->clock);
                *native = (struct native){.clock = NULL};
            } else if (ds_accel__race_of(stream) != NULL) {
                ds_accel__clock_join(&stream->race->clock, native->clock);
            }
        }
    }
}

void ds_accel__race_native(struct ds_accel__object *object)
{
    struct same_native seek = {.of = object};

    if (object->native == 0 || object->stack->races == NULL) {
        return;
    }
    ds_accel__objects_visit(find_same_native, &seek);
    if (seek.found != NULL) {
        share(object, seek.found);
    }
    if (object->kind == DS_ACCEL__STREAM) {
        recall_native(object);
    }
}

void ds_accel__race_part(struct ds_accel__object *object)
{
    if (object->race != NULL && object->race->references > 1) {
        ds_accel__race_object_end(object);
    }
}

struct owner_of_component {
    uint32_t component;
    bool is_ours;
};

static void find_ours(void *user_data, struct ds_accel__object *object)
{
    struct owner_of_component *seek = user_data;

    seek->is_ours = seek->is_ours ||
                    (object->kind == DS_ACCEL__STREAM && object->is_ours && object->race != NULL &&
                     object->race->component == seek->component);
}

bool ds_accel__race_is_ours(uint32_t component)
{
    struct owner_of_component seek = {.component = component};

    ds_accel__objects_visit(find_ours, &seek);
    return seek.is_ours;
}

/* ---- objects that end ----------------------------------------------------------------------- */

/* The vendor's stream has ended before a handle that was wrapped around it. */
static void forget_value(void *user_data, struct ds_accel__object *object)
{
    if (object->race == user_data) {
        object->native = 0;
    }
}

void ds_accel__race_object_end(struct ds_accel__object *object)
{
    struct ds_accel__race_object *race = object->race;

    if (race == NULL) {
        return;
    }
    object->race = NULL;
    if (--race->references > 0) {
        if (object->is_created) {
            ds_accel__objects_visit(forget_value, race);
        }
        return;
    }
    if (object->kind == DS_ACCEL__STREAM) {
        struct ds_accel__race_object *device =
            ds_accel__race_of_handle(DS_ACCEL__DEVICE, object->device);

        if (device != NULL) {
            ds_accel__clock_join(&device->clock, race->clock); /* its work goes on */
        }
        remember_native(object, race->clock);
        ds_accel__component_retire(race->component);
    }
    ds_accel__clock_put(race->clock);
    ds_accel__clock_put(race->in_capture);
    ds_accel__capture_put(race->capture);
    free(race);
}

bool ds_accel__race_captures(const struct ds_accel__object *stream)
{
    return stream->is_capturing || (stream->race != NULL && stream->race->capture != NULL);
}

/* ---- making accesses ------------------------------------------------------------------------ */

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

/* The stream's clock takes in all that comes before what the thread queues now. */
void ds_accel__race_reach(const struct ds_accel__object *stream, struct ds_accel__race_object *race,
                          const struct ds_accel__race_thread *thread)
{
    struct default_stream seek = {stream, &race->clock};

    ds_accel__clock_join(&race->clock, thread->clock);
    if ((ds_accel__device_flags(stream) & DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS) != 0) {
        ds_accel__objects_visit(join_if_ordered, &seek);
    }
}

/* What a thread gets to know by the return of a call that queued something. */
void ds_accel__race_return(const struct ds_accel__object *stream,
                           const struct ds_accel__race_object *race,
                           struct ds_accel__race_thread *thread)
{
    if ((ds_accel__device_flags(stream) & DS_ACCEL_FLAG_SYNCHRONIZED) != 0) {
        /* Whatever holds a clock counts: this one is held by the stream. */
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

/* Takes the item's access. */
void ds_accel__capture_add(struct ds_accel__capture *capture,
                           const struct ds_accel__capture_item *item)
{
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

/* What a launch has to find there still. A block that was had for a capture is freed when the
 * program has no more use for it, and its pool keeps it for the graphs that were captured with it:
 * not for others, as one of another capture that had a pool of its own. */
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

/* Accesses within one graph: only other streams of the capture can race. */
void ds_accel__capture_access(struct ds_accel__race_object *race,
                              const struct ds_accel__access *pattern)
{
    struct ds_accel__capture_item item = {.access = ds_accel__access_make(pattern)};

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

/* Fill component, time, clock and stream of accesses by a thread of the host. Borrowed clock. */
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

/* The same on a stream, outside of captures, or (true in *captured_out) inside of one. */
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

#define RANGE_LIMIT 2

/* The ranges that a call touches, and on what. */
struct touch {
    const void *stream; /* NULL: the host */
    struct {
        uint64_t space;
        uint64_t begin;
        uint64_t size_bytes;
        bool is_write;
    } ranges[RANGE_LIMIT];
    uint32_t count;
    const struct ds_accel__work *work;        /* of a host task of ours; NULL: none */
    const struct ds_accel__race_object *exec; /* that is launched, with what it captured */
};

/* Where an address of a device's call lies: host memory is not the device's own. */
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

static void add_touch(struct touch *touch, const struct ds_accel__object *device, uint64_t address,
                      uint64_t size_bytes, bool is_write)
{
    if (size_bytes == 0 || address > UINT64_MAX - size_bytes) {
        return;
    }
    touch->ranges[touch->count].space = ds_accel__race_space(device, address);
    touch->ranges[touch->count].begin = address;
    touch->ranges[touch->count].size_bytes = size_bytes;
    touch->ranges[touch->count].is_write = is_write;
    touch->count++;
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

/* What a call reads and writes; none for most. */
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

/* Would what a graph holds race, launched at the place of an access? */
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

/*
 * With validate.races "fail": would the call race? The clock it would have is joined for the
 * question only; a time that nobody has seen stands for the one it would get.
 */
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
        ds_accel__race_reach(stream, race, thread); /* queueing comes before the work in any case */
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
