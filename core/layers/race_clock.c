/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Clocks of the race detector, and their owners: streams and threads of the host. layer_race.c
 * explains their meaning. The layers' lock guards all data.
 */
#include "layers/layer.h"
#include "layers/race.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct component {
    uint64_t time;
    uint64_t seen_time; /* latest time that a clock outside of captures can contain */
    bool is_retired;
};

race_clock_t *ds_accel__race_host_clock;
bool ds_accel__race_is_blind;

static struct component components[DS_ACCEL__COMPONENT_LIMIT];
static uint32_t component_count;
static struct ds_accel__race_thread *threads;
static pthread_key_t thread_key;
/* increased when the data of all threads is freed; this_thread is valid only if this_generation is
 * equal to it */
static uint64_t generation = 1;
static _Thread_local struct ds_accel__race_thread *this_thread;
static _Thread_local uint64_t this_generation;

/* ---- clocks --------------------------------------------------------------------------------- */

race_clock_t *ds_accel__clock_get(race_clock_t *clock)
{
    if (clock != NULL) {
        assert(clock->references > 0);
        clock->references++;
    }
    return clock;
}

void ds_accel__clock_put(race_clock_t *clock)
{
    assert(clock == NULL || clock->references > 0);
    if (clock != NULL && --clock->references == 0) {
        free(clock);
    }
}

uint64_t ds_accel__clock_at(const race_clock_t *clock, uint32_t component)
{
    return clock != NULL && component < clock->count ? clock->times[component] : 0;
}

static race_clock_t *clock_make(uint32_t count)
{
    race_clock_t *clock = calloc(1, sizeof(*clock) + count * sizeof(clock->times[0]));

    if (clock == NULL) {
        ds_accel__race_is_blind = true;
        return NULL;
    }
    clock->references = 1;
    clock->count = count;
    return clock;
}

static bool clock_holds(const race_clock_t *clock, const race_clock_t *other)
{
    for (uint32_t i = 0; other != NULL && i < other->count; i++) {
        if (other->times[i] > ds_accel__clock_at(clock, i)) {
            return false;
        }
    }
    return true;
}

/* Set each component of *clock to the later time of both clocks. */
void ds_accel__clock_join(race_clock_t **clock, race_clock_t *other)
{
    race_clock_t *joined;
    uint32_t count;

    if (other == NULL || *clock == other || clock_holds(*clock, other)) {
        return;
    }
    if (*clock == NULL || clock_holds(other, *clock)) {
        joined = ds_accel__clock_get(other);
    } else {
        count = (*clock)->count > other->count ? (*clock)->count : other->count;
        joined = clock_make(count);
        for (uint32_t i = 0; joined != NULL && i < count; i++) {
            uint64_t mine = ds_accel__clock_at(*clock, i);
            uint64_t theirs = ds_accel__clock_at(other, i);

            joined->times[i] = mine > theirs ? mine : theirs;
        }
    }
    if (joined != NULL) {
        ds_accel__clock_put(*clock);
        *clock = joined;
    }
}

static uint64_t tick(race_clock_t **clock, uint32_t component)
{
    uint32_t old_count = *clock != NULL ? (*clock)->count : 0;
    uint32_t count = old_count > component ? old_count : component + 1;
    race_clock_t *ticked = clock_make(count);

    if (ticked == NULL) {
        return 0;
    }
    if (*clock != NULL) {
        memcpy(ticked->times, (*clock)->times, old_count * sizeof(ticked->times[0]));
    }
    assert(component < count && component < DS_ACCEL__COMPONENT_LIMIT);
    ticked->times[component] = ++components[component].time;
    ds_accel__clock_put(*clock);
    *clock = ticked;
    return ticked->times[component];
}

uint64_t ds_accel__clock_tick(race_clock_t **clock, uint32_t component)
{
    uint64_t time = tick(clock, component);

    components[component].seen_time = components[component].time;
    return time;
}

uint64_t ds_accel__clock_tick_in_capture(race_clock_t **clock, uint32_t component)
{
    return tick(clock, component);
}

/* ---- components ----------------------------------------------------------------------------- */

/*
 * Return a component for a new stream or thread. A retired component is reused if all accesses of
 * its old owner happen before the point whose clock is maker. The time of a reused component
 * continues, so a clock that contains an access of the new owner also contains all accesses of the
 * old owner. Accesses in captures are ignored, because each launch repeats them on its own stream.
 */
uint32_t ds_accel__component_take(const race_clock_t *maker)
{
    for (uint32_t i = 0; i < component_count; i++) {
        if (components[i].is_retired && components[i].seen_time <= ds_accel__clock_at(maker, i)) {
            components[i].is_retired = false;
            return i;
        }
    }
    if (component_count == DS_ACCEL__COMPONENT_LIMIT) {
        ds_accel__race_is_blind = true;
        return 0;
    }
    components[component_count] = (struct component){0};
    return component_count++;
}

void ds_accel__component_retire(uint32_t component)
{
    assert(component < DS_ACCEL__COMPONENT_LIMIT);
    components[component].is_retired = true;
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

static void free_thread(struct ds_accel__race_thread *thread)
{
    ds_accel__clock_put(thread->clock);
    free(thread);
}

/* Free the data of the calling thread, which is exiting. */
static void end_thread(void *data)
{
    struct ds_accel__race_thread **place = &threads;

    (void)data;
    ds_accel__layer_lock();
    while (this_generation == generation && *place != NULL && *place != this_thread) {
        place = &(*place)->next;
    }
    if (this_generation == generation && *place != NULL) {
        struct ds_accel__race_thread *thread = *place;

        *place = thread->next;
        ds_accel__component_retire(thread->component);
        free_thread(thread);
    }
    ds_accel__layer_unlock();
    this_thread = NULL;
}

static void make_key(void)
{
    pthread_key_create(&thread_key, end_thread);
}

/* Return the data of the calling thread; unless threads are separate, join the clocks of the other
 * threads into its clock. NULL: the detector is blind. */
struct ds_accel__race_thread *ds_accel__race_enter(const struct ds_accel__stack *stack)
{
    struct ds_accel__race_thread *thread = this_generation == generation ? this_thread : NULL;

    if (ds_accel__race_is_blind) {
        return NULL;
    }
    if (thread == NULL) {
        thread = calloc(1, sizeof(*thread));
        if (thread == NULL) {
            ds_accel__race_is_blind = true;
            return NULL;
        }
        thread->clock = ds_accel__clock_get(
            ds_accel__race_host_clock); /* earlier calls of other threads precede this thread */
        thread->component = ds_accel__component_take(ds_accel__race_host_clock);
        thread->next = threads;
        threads = thread;
        this_thread = thread;
        this_generation = generation;
        pthread_setspecific(thread_key, thread);
    }
    if (!stack->separates_threads) {
        ds_accel__clock_join(&thread->clock, ds_accel__race_host_clock);
    }
    return thread;
}

void ds_accel__race_leave(const struct ds_accel__race_thread *thread)
{
    ds_accel__clock_join(&ds_accel__race_host_clock, thread->clock);
}

void ds_accel__race_clocks_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_key);
}

void ds_accel__race_clocks_close(void)
{
    component_count = 0;
    generation++;
    while (threads != NULL) {
        struct ds_accel__race_thread *next = threads->next;

        free_thread(threads);
        threads = next;
    }
    ds_accel__clock_put(ds_accel__race_host_clock);
    ds_accel__race_host_clock = NULL;
    ds_accel__race_is_blind = false;
}
