/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The race detector finds pairs of unordered accesses to the same bytes.
 *
 * Every stream and every thread of the host is a *component* that counts its accesses. A *place* is
 * a point in a component's order of work. Its *vector clock* has, for each component, the time of
 * the last access that happens before the place. An access has the time of its own component and
 * the clock of the place where it was made:
 *
 *     a happens before b   iff   time(a) <= clock(b)[component(a)]
 *
 * Two accesses are a race if they overlap, at least one is a write, and neither happens before the
 * other. Their order in wall-clock time in this run does not matter. Clocks are joined where the
 * interface guarantees an order; "A -> B" means that the clock of A is joined into the clock of B:
 *
 *   a thread queues work                                 thread -> stream
 *   event_record                                         stream -> event (replaces its clock)
 *   stream_wait_event, and other waits of streams        event -> stream
 *   event_synchronize, or a query that returns OK        event -> thread
 *   event_elapsed_ms (fails unless both are complete)    both events -> thread
 *   stream_synchronize, or a query that returns OK       stream -> thread
 *   device_synchronize                                   all streams of the device -> thread
 *   every call with DS_ACCEL_FLAG_SYNCHRONIZED           stream -> thread
 *   DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS                   default stream <-> blocking streams
 *   launches of one executable graph                     each launch -> the next launch
 *
 * A capture has its own clocks, because the order of calls while capturing is not the order of the
 * work when the graph runs. The accesses of a capture are kept with the graph, and each launch
 * records them again. A captured host task runs once for each launch: the launch adds the place
 * (component, time and clock) of that run to the task's list, and the run removes it.
 *
 * Threads of the host synchronise with each other by locks and joins, which the detector does not
 * see. By default ("joined") the detector assumes that the calls of all threads are ordered: races
 * between threads stay hidden, but every missing wait between streams is found. With
 * validate.threads "separate", only the order that the detector sees counts.
 *
 * The detector keeps a list of ranges of memory (stretches), each with the accesses that a later
 * access could still race with. An access is dropped when a new access to the range happens after
 * it, unless the old access is a write and the new access a read. With "joined" threads an access
 * is also dropped when a thread has waited for it, because all work queued later happens after it.
 */
#include "base/text.h"
#include "host/context.h"
#include "layers/layer.h"
#include "layers/race.h"

#include <assert.h>
#include <stdlib.h>

static uint64_t next_capture = 1;
static bool is_blind_told;

/* ---- slots ---------------------------------------------------------------------------------- */

struct all_streams {
    const struct ds_accel__object *device;
    race_clock_t **clock;
};

static void join_stream_of(void *user_data, struct ds_accel__object *object)
{
    struct all_streams *seek = user_data;
    bool is_of = object->kind == DS_ACCEL__STREAM || object->kind == DS_ACCEL__DEVICE;

    if (is_of && object->race != NULL && object->stack == seek->device->stack &&
        object->device_index == seek->device->device_index) {
        ds_accel__clock_join(seek->clock, object->race->clock);
    }
}

/* Return the clock of an event, borrowed; NULL if the event is unknown, or was recorded in a
 * capture. */
static race_clock_t *event_clock(const void *handle)
{
    const struct ds_accel__object *event = ds_accel__object_find(DS_ACCEL__EVENT, handle);

    return event != NULL && event->race != NULL && event->race->recorded_in == 0
               ? event->race->clock
               : NULL;
}

/* Return a new reference to the clock that a waiting call waits for: the clock of the awaited
 * object at the start of the call. NULL: the call does not wait, or no clock is known. */
static race_clock_t *awaited(const struct ds_accel__call *call)
{
    const void *handle = DS_ACCEL__POINTER(call, 0);
    const struct ds_accel__object *object;
    race_clock_t *clock = NULL;

    switch (call->slot) {
    case DS_ACCEL__SLOT_stream_synchronize:
    case DS_ACCEL__SLOT_stream_query:
        object = ds_accel__object_find(DS_ACCEL__STREAM, handle);
        return object != NULL && object->race != NULL ? ds_accel__clock_get(object->race->clock)
                                                      : NULL;
    case DS_ACCEL__SLOT_event_synchronize:
    case DS_ACCEL__SLOT_event_query:
        return ds_accel__clock_get(event_clock(handle));
    case DS_ACCEL__SLOT_event_elapsed_ms:
        clock = ds_accel__clock_get(event_clock(handle));
        ds_accel__clock_join(&clock, event_clock(DS_ACCEL__POINTER(call, 1)));
        return clock;
    case DS_ACCEL__SLOT_device_synchronize:
        object = ds_accel__object_find(DS_ACCEL__DEVICE, handle);
        if (object != NULL) {
            struct all_streams seek = {object, &clock};

            ds_accel__objects_visit(join_stream_of, &seek);
        }
        return clock;
    default:
        return NULL;
    }
}

/* Check a free, which counts as a write by the thread or stream that frees, for races with earlier
 * accesses, and then forget the accesses to the memory. The accesses to memory that is only
 * unregistered are kept; a free within a capture is not checked. True: the free races and is
 * refused, because validate.races is "fail". A free of memory that an allocator divides into blocks
 * is never refused, because the memory would then have no owner. */
static bool free_memory(const struct ds_accel__call *call)
{
    struct ds_accel__access access = {.stack = call->stack, .slot = call->slot, .site = call->site};
    uint64_t address = call->arguments[1].pointer;
    const struct ds_accel__object *device =
        call->slot == DS_ACCEL__SLOT_mem_free_async
            ? ds_accel__race_device_of(DS_ACCEL__POINTER(call, 0))
            : ds_accel__object_find(DS_ACCEL__DEVICE, DS_ACCEL__POINTER(call, 0));
    uint64_t space = ds_accel__race_space(device, address);
    const struct ds_accel__range *range =
        ds_accel__range_find(DS_ACCEL__ALLOCATIONS, space, address);
    struct ds_accel__race_thread *thread = ds_accel__race_enter(call->stack);
    bool is_captured = false;
    bool is_refused = false;
    bool is_placed;

    if (range == NULL || range->begin != address || thread == NULL ||
        !ds_accel__may_free(call->slot, range->slot)) {
        return false;
    }
    if (call->slot == DS_ACCEL__SLOT_mem_free_async) {
        struct ds_accel__object *stream =
            ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));

        ds_accel__race_join_waits(call, ds_accel__race_of(stream), 2);
        is_placed = stream != NULL &&
                    ds_accel__race_place_stream(stream, thread, &access, &is_captured);
    } else {
        is_placed = ds_accel__race_place_host(call->stack, &access);
    }
    if (is_placed && !is_captured) {
        access.space = space;
        access.begin = range->begin;
        access.size_bytes = range->size_bytes;
        access.is_write = true;
        is_refused = ds_accel__access_check(&access) != NULL && call->stack->fails_on_races &&
                     !range->is_divided;
        if (!is_refused && call->slot != DS_ACCEL__SLOT_mem_unregister) {
            ds_accel__access_forget(space, range->begin, range->begin + range->size_bytes);
        }
    }
    ds_accel__race_leave(thread);
    return is_refused;
}

static void run_task(void *user_data, int32_t status)
{
    struct ds_accel__race_task *task = user_data;
    const struct ds_accel__race_task *outer = ds_accel__race_task;

    ds_accel__race_task = task;
    task->run(task->user_data, status);
    ds_accel__race_task = outer;
    ds_accel__layer_lock();
    ds_accel__clock_put(task->place.clock);
    ds_accel__layer_unlock();
    free(task);
}

/* Run a captured task for one launch of its graph. The task is not freed, because any run may be
 * followed by another launch. */
static void run_captured(void *user_data, int32_t status)
{
    struct ds_accel__race_task *task = user_data;
    struct ds_accel__race_task here = {.is_nowhere = true};
    const struct ds_accel__race_task *outer = ds_accel__race_task;
    struct ds_accel__task_place *place;

    ds_accel__layer_lock();
    place = task->places;
    if (place != NULL) {
        task->places = place->next;
        here.place = place->at;
        here.is_nowhere = false;
    }
    ds_accel__layer_unlock();
    free(place);
    ds_accel__race_task = &here;
    task->run(task->user_data, status);
    ds_accel__race_task = outer;
    ds_accel__layer_lock();
    ds_accel__clock_put(here.place.clock);
    ds_accel__layer_unlock();
}

/* Wrap a host task. In a capture the task has no place yet; each launch adds a place. */
static void wrap_task(struct ds_accel__call *call)
{
    struct ds_accel__object *stream =
        ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));
    const struct ds_accel__race_object *race = ds_accel__race_of(stream);
    struct ds_accel__race_thread *thread = ds_accel__race_enter(call->stack);
    struct ds_accel__race_task *task;
    bool is_captured = false;

    if (race == NULL || thread == NULL || call->arguments[1].pointer == 0 ||
        (task = calloc(1, sizeof(*task))) == NULL) {
        return;
    }
    task->place.stack = call->stack;
    task->is_captured = race->capture != NULL;
    if (task->is_captured) {
        task->next = call->stack->race_tasks;
        call->stack->race_tasks = task;
    } else if (ds_accel__race_place_stream(stream, thread, &task->place, &is_captured)) {
        ds_accel__clock_get(task->place.clock);
        ds_accel__race_leave(thread);
    } else {
        free(task);
        return;
    }
    task->run = (ds_accel_host_task_t)call->arguments[1].pointer;
    task->user_data = DS_ACCEL__POINTER(call, 2);
    call->race.task = task;
    call->race.is_captured = task->is_captured;
    call->arguments[1].pointer = (uintptr_t)(task->is_captured ? run_captured : run_task);
    call->arguments[2].pointer = (uintptr_t)task;
}

static void capture_task(const struct ds_accel__call *call)
{
    const struct ds_accel__race_object *race =
        ds_accel__race_of_handle(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));
    struct ds_accel__capture_item item = {.task = call->race.task};

    if (call->race.is_captured && race != NULL && race->capture != NULL) {
        ds_accel__capture_add(race->capture, &item);
    }
}

static void record_event(const struct ds_accel__call *call)
{
    struct ds_accel__object *event =
        ds_accel__object_find(DS_ACCEL__EVENT, DS_ACCEL__POINTER(call, 0));
    struct ds_accel__object *stream =
        ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 1));
    struct ds_accel__race_object *mark = ds_accel__race_of(event);
    struct ds_accel__race_object *race = ds_accel__race_of(stream);
    struct ds_accel__race_thread *thread = ds_accel__race_enter(call->stack);

    if (mark == NULL || race == NULL || thread == NULL) {
        return;
    }
    ds_accel__clock_put(mark->clock);
    ds_accel__clock_put(mark->in_capture);
    ds_accel__capture_put(mark->capture);
    mark->clock = NULL;
    mark->in_capture = NULL;
    mark->capture = NULL;
    mark->is_recorded = true;
    if (race->capture != NULL) {
        struct ds_accel__capture_item item = {.event = event->handle,
                                              .event_number = event->number};

        mark->recorded_in = race->capture->id;
        mark->capture = race->capture;
        mark->capture->references++;
        mark->in_capture = ds_accel__clock_get(race->in_capture);
        ds_accel__capture_add(race->capture, &item);
        return;
    }
    ds_accel__race_reach(stream, race, thread);
    mark->recorded_in = 0;
    mark->clock = ds_accel__clock_get(race->clock);
    ds_accel__race_return(stream, race, thread);
}

static void wait_event(const struct ds_accel__call *call)
{
    struct ds_accel__object *stream =
        ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));
    const struct ds_accel__object *event =
        ds_accel__object_find(DS_ACCEL__EVENT, DS_ACCEL__POINTER(call, 1));
    struct ds_accel__race_object *race = ds_accel__race_of(stream);
    const struct ds_accel__race_object *mark = event != NULL ? event->race : NULL;
    struct ds_accel__race_thread *thread = ds_accel__race_enter(call->stack);

    if (race == NULL || thread == NULL || mark == NULL) {
        return;
    }
    if (race->capture != NULL) {
        if (mark->recorded_in == race->capture->id) {
            ds_accel__clock_join(&race->in_capture, mark->in_capture);
        }
    } else if (mark->recorded_in != 0 && mark->capture != NULL && !mark->capture->is_over) {
        race->capture = mark->capture; /* by waiting for the event, the stream joins the capture */
        race->capture->references++;
        race->in_capture = ds_accel__clock_get(mark->in_capture);
    } else if (mark->recorded_in == 0) {
        ds_accel__race_reach(stream, race, thread);
        ds_accel__clock_join(&race->clock, mark->clock);
        ds_accel__race_return(stream, race, thread);
    }
}

static void begin_capture(const struct ds_accel__call *call)
{
    struct ds_accel__object *stream =
        ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));
    struct ds_accel__race_object *race = ds_accel__race_of(stream);
    struct ds_accel__capture *capture = race != NULL ? calloc(1, sizeof(*capture)) : NULL;

    if (capture == NULL) {
        ds_accel__race_is_blind = true;
        return;
    }
    capture->references = 1;
    capture->id = next_capture++;
    capture->device = stream->device;
    capture->pool = stream->pool;
    ds_accel__capture_put(race->capture);
    ds_accel__clock_put(race->in_capture);
    race->capture = capture;
    race->in_capture = NULL;
}

/* Remove a stream from an ended capture: streams that joined a capture leave it when it ends. */
static void leave_capture(void *user_data, struct ds_accel__object *object)
{
    struct ds_accel__race_object *race = object->race;

    if (object->kind == DS_ACCEL__STREAM && race != NULL && race->capture == user_data) {
        ds_accel__capture_put(race->capture);
        ds_accel__clock_put(race->in_capture);
        race->capture = NULL;
        race->in_capture = NULL;
    }
}

static void end_capture(const struct ds_accel__call *call)
{
    const struct ds_accel__race_object *race =
        ds_accel__race_of_handle(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));
    struct ds_accel__race_object *graph = NULL;
    struct ds_accel__capture *capture = race != NULL ? race->capture : NULL;

    if (capture == NULL) {
        return;
    }
    capture->references++;
    capture->is_over = true;
    if (call->status == DS_ACCEL_OK) {
        graph = ds_accel__race_of_handle(DS_ACCEL__GRAPH, ds_accel__layer_output(call, 1));
    }
    if (graph != NULL) {
        ds_accel__capture_put(graph->capture);
        graph->capture = capture;
        capture->references++;
    }
    ds_accel__objects_visit(leave_capture, capture);
    ds_accel__capture_put(capture);
}

static void take_graph(const void *exec_handle, const void *graph_handle)
{
    struct ds_accel__race_object *exec = ds_accel__race_of_handle(DS_ACCEL__EXEC, exec_handle);
    const struct ds_accel__race_object *graph =
        ds_accel__race_of_handle(DS_ACCEL__GRAPH, graph_handle);

    if (exec != NULL && graph != NULL && graph->capture != NULL) {
        assert(graph->capture->references > 0);
        graph->capture->references++;
        ds_accel__capture_put(exec->capture);
        exec->capture = graph->capture;
    }
}

/* Append a place to a captured task's list of places, which has one place for each launch. */
static void add_place(struct ds_accel__race_task *task, const struct ds_accel__access *at)
{
    struct ds_accel__task_place **end = &task->places;
    struct ds_accel__task_place *place = malloc(sizeof(*place));

    if (place == NULL) {
        ds_accel__race_is_blind = true;
        return;
    }
    place->next = NULL;
    place->at = *at;
    ds_accel__clock_get(place->at.clock);
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = place;
}

static void remove_place(struct ds_accel__race_task *task, uint32_t component, uint64_t time)
{
    struct ds_accel__task_place **place = &task->places;

    while (*place != NULL && ((*place)->at.component != component || (*place)->at.time != time)) {
        place = &(*place)->next;
    }
    if (*place != NULL) {
        struct ds_accel__task_place *removed = *place;

        *place = removed->next;
        ds_accel__clock_put(removed->at.clock);
        free(removed);
    }
}

/* Assign a place (time and clock) to each item of the launched graph. This happens before the
 * plugin is called, because the plugin may run the graph's host tasks before it returns. NULL: the
 * graph is not known, the stream captures, or the detector has stopped. */
static struct ds_accel__launch *place_launch(const struct ds_accel__call *call)
{
    const struct ds_accel__race_object *exec =
        ds_accel__race_of_handle(DS_ACCEL__EXEC, DS_ACCEL__POINTER(call, 0));
    struct ds_accel__object *stream =
        ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 1));
    struct ds_accel__race_object *race = ds_accel__race_of(stream);
    struct ds_accel__race_thread *thread = ds_accel__race_enter(call->stack);
    struct ds_accel__capture *capture = exec != NULL ? exec->capture : NULL;
    struct ds_accel__launch *launch;

    if (capture == NULL || race == NULL || thread == NULL || race->capture != NULL) {
        return NULL;
    }
    launch = malloc(sizeof(*launch) + capture->count * sizeof(launch->places[0]));
    if (launch == NULL) {
        ds_accel__race_is_blind = true;
        return NULL;
    }
    launch->capture = capture;
    launch->component = race->component;
    launch->count = 0;
    assert(capture->references > 0);
    capture->references++;
    ds_accel__clock_join(&race->clock, exec->clock);
    while (launch->count < capture->count && !ds_accel__race_is_blind) {
        const struct ds_accel__capture_item *item = &capture->items[launch->count];
        struct ds_accel__access at = {.stack = call->stack};
        bool is_captured = false;

        if (item->access == NULL && item->task == NULL) {
            ds_accel__race_reach(stream, race, thread);
        } else if (!ds_accel__race_place_stream(stream, thread, &at, &is_captured)) {
            break;
        } else if (item->task != NULL) {
            add_place(item->task, &at);
        }
        launch->places[launch->count].time = at.time;
        launch->places[launch->count++].clock = ds_accel__clock_get(race->clock);
    }
    ds_accel__race_leave(thread);
    return launch;
}

/* If the stream captures, record the launch: the graph's accesses and host tasks become a part of
 * the capture. Do nothing for other streams. */
static void capture_launch(const struct ds_accel__call *call)
{
    struct ds_accel__object *stream =
        ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 1));
    const struct ds_accel__race_object *exec =
        ds_accel__race_of_handle(DS_ACCEL__EXEC, DS_ACCEL__POINTER(call, 0));
    struct ds_accel__race_object *race = ds_accel__race_of(stream);
    struct ds_accel__race_thread *thread = ds_accel__race_enter(call->stack);
    struct ds_accel__capture *into = race != NULL ? race->capture : NULL;
    const struct ds_accel__capture *capture = exec != NULL ? exec->capture : NULL;
    bool is_captured = false;

    for (size_t i = 0; into != NULL && capture != NULL && thread != NULL && i < capture->count &&
                       !ds_accel__race_is_blind;
         i++) {
        const struct ds_accel__capture_item *item = &capture->items[i];
        size_t count = into->count;

        if (item->access != NULL) {
            struct ds_accel__access access = *item->access;

            if (!ds_accel__race_place_stream(stream, thread, &access, &is_captured)) {
                break;
            }
            access.site = call->site;
            access.captured_at = item->access->site;
            ds_accel__capture_access(race, &access);
            if (into->count > count) {
                into->items[count].memory = item->memory;
                into->items[count].block = item->block;
            }
        } else if (item->task != NULL) {
            struct ds_accel__capture_item task = {.task = item->task};

            ds_accel__capture_add(into, &task);
        }
    }
}

/* Record the accesses of a launch that succeeded, and set the clocks of the events that the graph
 * records. */
static void follow_launch(const struct ds_accel__call *call)
{
    const struct ds_accel__launch *launch = call->race.launch;
    struct ds_accel__race_object *exec =
        ds_accel__race_of_handle(DS_ACCEL__EXEC, DS_ACCEL__POINTER(call, 0));
    const struct ds_accel__object *stream =
        ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 1));
    struct ds_accel__race_thread *thread = ds_accel__race_enter(call->stack);

    if (launch == NULL || exec == NULL || stream == NULL || thread == NULL) {
        return;
    }
    for (size_t i = 0; i < launch->count && !ds_accel__race_is_blind; i++) {
        const struct ds_accel__capture_item *item = &launch->capture->items[i];

        assert(launch->count <= launch->capture->count);

        if (item->access != NULL) {
            struct ds_accel__access access = *item->access;

            access.component = launch->component;
            access.time = launch->places[i].time;
            access.clock = launch->places[i].clock;
            access.stream = stream->number;
            access.is_foreign = !stream->is_ours;
            access.site = call->site;
            access.captured_at = item->access->site;
            ds_accel__race_access(&access);
        } else if (item->task == NULL) {
            struct ds_accel__object *event = ds_accel__object_find(DS_ACCEL__EVENT, item->event);

            if (event != NULL && event->number == item->event_number && event->race != NULL) {
                ds_accel__clock_put(event->race->clock);
                event->race->clock = ds_accel__clock_get(launch->places[i].clock);
                event->race->recorded_in = 0;
            }
        }
    }
    ds_accel__clock_join(&exec->clock, stream->race->clock);
    ds_accel__race_return(stream, stream->race, thread);
}

static void end_launch(struct ds_accel__call *call)
{
    struct ds_accel__launch *launch = call->race.launch;
    bool is_done = call->status == DS_ACCEL_OK && !call->is_refused;

    for (size_t i = 0; launch != NULL && i < launch->count; i++) {
        if (launch->capture->items[i].task != NULL && !is_done) {
            remove_place(launch->capture->items[i].task, launch->component, launch->places[i].time);
        }
        ds_accel__clock_put(launch->places[i].clock);
    }
    if (launch != NULL) {
        ds_accel__capture_put(launch->capture);
        free(launch);
    }
}

static void return_from_wait(struct ds_accel__call *call)
{
    struct ds_accel__race_thread *thread = ds_accel__race_enter(call->stack);

    if (thread != NULL) {
        ds_accel__clock_join(&thread->clock, call->race.clock);
        ds_accel__race_leave(thread);
        if (call->slot == DS_ACCEL__SLOT_device_synchronize) {
            ds_accel__access_prune();
        }
    }
}

static void new_memory(const struct ds_accel__call *call)
{
    static const struct {
        uint32_t slot;
        uint32_t output;
    } slots[] = {
        {DS_ACCEL__SLOT_mem_alloc, 4},
        {DS_ACCEL__SLOT_mem_alloc_pinned, 4},
        {DS_ACCEL__SLOT_mem_alloc_managed, 3},
        {DS_ACCEL__SLOT_mem_alloc_async, 5},
    };

    for (size_t i = 0; i < ARRAY_SIZE(slots); i++) {
        if (slots[i].slot == call->slot) {
            uint64_t begin = (uintptr_t)ds_accel__layer_output(call, slots[i].output);
            const struct ds_accel__object *device =
                call->slot == DS_ACCEL__SLOT_mem_alloc_async
                    ? ds_accel__race_device_of(DS_ACCEL__POINTER(call, 0))
                    : ds_accel__object_find(DS_ACCEL__DEVICE, DS_ACCEL__POINTER(call, 0));
            uint64_t space = ds_accel__race_space(device, begin);

            ds_accel__access_forget(space, begin, begin + call->arguments[1].number);
        }
    }
}

/* ---- the layer ------------------------------------------------------------------------------ */

static bool frees(uint32_t slot)
{
    return slot == DS_ACCEL__SLOT_mem_free || slot == DS_ACCEL__SLOT_mem_free_async ||
           slot == DS_ACCEL__SLOT_mem_free_pinned || slot == DS_ACCEL__SLOT_mem_unregister ||
           slot == DS_ACCEL__SLOT_vmem_unmap || slot == DS_ACCEL__SLOT_ipc_memory_close ||
           slot == DS_ACCEL__SLOT_dmabuf_release;
}

static void refuse_race(struct ds_accel__call *call)
{
    char site[256];

    ds_accel__layer_site(call->site, site, sizeof(site));
    ds_accel__layer_refuse(
        call, DS_ACCEL_ERR_STATE,
        "at %s it would race with earlier work; see the log or ds_accel_layer_report(\"race\")",
        site);
}

static void race_before(struct ds_accel__call *call)
{
    bool is_refused = false;

    ds_accel__layer_lock();
    if (!ds_accel__race_is_blind) {
        call->race.clock = awaited(call);
        if (call->stack->fails_on_races) {
            is_refused = ds_accel__race_would(call);
        }
        if (frees(call->slot)) {
            is_refused = free_memory(call);
        } else if (call->slot == DS_ACCEL__SLOT_stream_host_task && call->race.work == NULL) {
            wrap_task(call);
        } else if (call->slot == DS_ACCEL__SLOT_graph_launch && !is_refused) {
            call->race.launch = place_launch(call);
        }
    }
    ds_accel__layer_unlock();
    if (is_refused) {
        refuse_race(call);
    }
}

/* Update the clocks, and record the accesses, of a call that succeeded in the plugin. The caller
 * holds the layers' lock. */
static void follow(struct ds_accel__call *call)
{
    switch (call->slot) {
    case DS_ACCEL__SLOT_event_record:
        record_event(call);
        break;
    case DS_ACCEL__SLOT_stream_wait_event:
        wait_event(call);
        break;
    case DS_ACCEL__SLOT_graph_capture_begin:
        begin_capture(call);
        break;
    case DS_ACCEL__SLOT_graph_instantiate:
        take_graph(ds_accel__layer_output(call, 2), DS_ACCEL__POINTER(call, 0));
        break;
    case DS_ACCEL__SLOT_graph_exec_update:
        if (call->arguments[2].pointer != 0 &&
            *(const uint32_t *)call->arguments[2].pointer == DS_ACCEL_GRAPH_UPDATED) {
            take_graph(DS_ACCEL__POINTER(call, 0), DS_ACCEL__POINTER(call, 1));
        }
        break;
    case DS_ACCEL__SLOT_graph_launch:
        capture_launch(call);
        follow_launch(call);
        break;
    case DS_ACCEL__SLOT_stream_host_task:
        capture_task(call);
        ds_accel__race_touch(call);
        break;
    case DS_ACCEL__SLOT_stream_synchronize:
    case DS_ACCEL__SLOT_stream_query:
    case DS_ACCEL__SLOT_event_synchronize:
    case DS_ACCEL__SLOT_event_query:
    case DS_ACCEL__SLOT_event_elapsed_ms:
    case DS_ACCEL__SLOT_device_synchronize:
        return_from_wait(call);
        break;
    default:
        new_memory(call);
        ds_accel__race_touch(call);
        break;
    }
}

/* Free a task that the plugin did not accept, or that another layer refused. */
static void drop_task(struct ds_accel__call *call)
{
    struct ds_accel__race_task *task = call->race.task;

    if (task != NULL && call->status != DS_ACCEL_OK) {
        struct ds_accel__race_task **place = &call->stack->race_tasks;

        while (*place != NULL && *place != task) {
            place = &(*place)->next;
        }
        if (*place != NULL) {
            *place = task->next;
        }
        ds_accel__clock_put(task->place.clock);
        free(task);
    }
}

/* Free the captured tasks. The caller holds the layers' lock. */
static void end_tasks(struct ds_accel__stack *stack)
{
    while (stack->race_tasks != NULL) {
        struct ds_accel__race_task *task = stack->race_tasks;

        stack->race_tasks = task->next;
        while (task->places != NULL) {
            remove_place(task, task->places->at.component, task->places->at.time);
        }
        free(task);
    }
}

static void race_after(struct ds_accel__call *call)
{
    bool warns;

    ds_accel__layer_lock();
    if (call->slot == DS_ACCEL__SLOT_graph_capture_end && !call->is_refused &&
        !call->capture_goes_on) {
        end_capture(call); /* also after a failure: a broken capture ends without a graph */
    } else if (call->status == DS_ACCEL_OK && !call->is_refused && !ds_accel__race_is_blind) {
        follow(call);
    }
    drop_task(call);
    end_launch(call);
    ds_accel__clock_put(call->race.clock);
    warns = ds_accel__race_is_blind && !is_blind_told;
    is_blind_told = is_blind_told || ds_accel__race_is_blind;
    ds_accel__layer_unlock();
    ds_accel__race_tell(call->stack);
    if (warns) {
        ds_accel__log(&call->stack->context->log, "race", DS_ACCEL_LOG_WARN,
                      "no more races are reported: memory is exhausted, or more than %u "
                      "streams and threads have unfinished work",
                      DS_ACCEL__COMPONENT_LIMIT);
    }
}

static int32_t race_start(struct ds_accel__stack *stack)
{
    ds_accel__race_clocks_open();
    return ds_accel__race_findings_open(stack);
}

static void race_stop(struct ds_accel__stack *stack)
{
    ds_accel__race_tell(stack);
    ds_accel__layer_lock();
    end_tasks(stack);
    if (ds_accel__race_findings_close(stack)) {
        ds_accel__race_natives_forget();
        ds_accel__race_clocks_close(); /* no stack needs the existing clocks any more */
        is_blind_told = false;
    }
    ds_accel__layer_unlock();
}

const struct ds_accel__layer_ops ds_accel__layer_race = {
    .name = "race",
    .start = race_start,
    .stop = race_stop,
    .before = race_before,
    .after = race_after,
};

/* ---- functions called by other layers ------------------------------------------------------- */

/* Record an access. True: the access is refused and not recorded, because it races and
 * validate.races is "fail". */
static bool note(const struct ds_accel__access *access)
{
    if (access->stack->fails_on_races && ds_accel__access_check(access) != NULL) {
        return true;
    }
    ds_accel__race_access(access);
    return false;
}

bool ds_accel__race_note(const struct ds_accel__object *device, struct ds_accel__object *stream,
                         const void *pointer, uint64_t size_bytes, uint32_t access_kind,
                         const void *site, enum ds_accel__reach *reach)
{
    struct ds_accel__stack *stack = device->stack;
    struct ds_accel__access access = {
        .stack = stack,
        .slot = DS_ACCEL__SLOT_COUNT,
        .site = site,
        .begin = (uintptr_t)pointer,
        .size_bytes = size_bytes,
        .is_write = access_kind == DS_ACCEL_ACCESS_WRITE,
    };
    struct ds_accel__race_thread *thread;
    bool is_captured = false;
    bool is_refused = false;

    if (stack->races == NULL || ds_accel__race_is_blind) {
        return false;
    }
    access.space = stream == NULL || ds_accel__race_task != NULL
                       ? ds_accel__race_host_space(device, access.begin, reach)
                       : ds_accel__race_space(device, access.begin);
    if (stream == NULL || ds_accel__race_task != NULL) {
        if (ds_accel__race_place_host(stack, &access)) {
            is_refused = note(&access);
        }
        if (ds_accel__race_task == NULL && (thread = ds_accel__race_enter(stack)) != NULL) {
            ds_accel__race_leave(thread);
        }
        return is_refused;
    }
    thread = ds_accel__race_enter(stack);
    if (thread != NULL && ds_accel__race_place_stream(stream, thread, &access, &is_captured)) {
        if (is_captured) {
            ds_accel__capture_access(stream->race, &access);
        } else {
            is_refused = note(&access);
            ds_accel__race_return(stream, stream->race, thread);
        }
    }
    return is_refused;
}

/*
 * Check that the new use of a block, which an allocator hands out again, happens after all earlier
 * uses. The check records no access: the earlier accesses are kept, and if this check finds a race,
 * the new owner's accesses to the block race with them too.
 */
void ds_accel__race_block(const struct ds_accel__object *device, struct ds_accel__object *stream,
                          const void *pointer, uint64_t size_bytes, const void *site)
{
    struct ds_accel__access access = {
        .stack = device->stack,
        .slot = DS_ACCEL__SLOT_COUNT + 1,
        .site = site,
        .space = ds_accel__race_space(device, (uintptr_t)pointer),
        .begin = (uintptr_t)pointer,
        .size_bytes = size_bytes,
        .is_write = true,
        .time = UINT64_MAX, /* no clock contains this time, so nothing happens after the access */
    };
    struct ds_accel__race_object *race;
    const struct ds_accel__race_thread *thread;

    if (device->stack->races == NULL || (thread = ds_accel__race_enter(device->stack)) == NULL) {
        return;
    }
    race = ds_accel__race_of(stream);
    access.component = thread->component;
    access.clock = ds_accel__clock_get(thread->clock);
    if (race != NULL && race->capture == NULL) {
        ds_accel__race_reach(stream, race, thread);
        access.component = race->component;
        access.stream = stream->number;
        access.is_on_stream = true;
        ds_accel__clock_join(&access.clock, race->clock);
    }
    ds_accel__access_check(&access);
    ds_accel__clock_put(access.clock);
}
