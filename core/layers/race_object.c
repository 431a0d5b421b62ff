/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The race detector's data of an object. The data is created on first use, shared by all handles of
 * one vendor stream or event, and freed with the last of these handles. The layers' lock guards all
 * data.
 */
#include "layers/layer.h"
#include "layers/race.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

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
    assert(capture == NULL || capture->references > 0);
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

/* ---- several handles of one stream ----------------------------------------------------------- */

#define NATIVE_COUNT 64u

/* Ring buffer of vendor streams that still exist after their last handle was destroyed, because a
 * program may wrap such a stream again. */
static struct native {
    uint64_t stack; /* ID of the stack */
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

/* Let two objects share their race data, because both handles refer to one vendor stream or to one
 * vendor event. */
static void share(struct ds_accel__object *object, struct ds_accel__object *other)
{
    struct ds_accel__race_object *shared = ds_accel__race_of(other);

    if (shared == NULL || shared == object->race) {
        return;
    }
    assert(shared->references > 0);
    shared->references++;
    if (object->race != NULL) {
        ds_accel__clock_join(&shared->clock, object->race->clock);
        ds_accel__race_object_end(object);
    }
    object->race = shared;
}

/* Continue with the clock that the vendor's stream had when its last handle was destroyed. A newly
 * created stream starts with a new clock, because an older stream with the same value no longer
 * exists. */
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

/* ---- destroyed objects ----------------------------------------------------------------------- */

/* Forget the native handle of an object whose vendor stream was destroyed through another handle.
 * user_data: the race data that these handles share. */
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
    assert(race->references > 0);
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
            /* Work queued on the destroyed stream continues; a device synchronization awaits it. */
            ds_accel__clock_join(&device->clock, race->clock);
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
