/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Rules of layer validate that concern several calls or objects: calls that break an active
 * capture, launches of a graph whose memory was freed after the capture, calls with handles of two
 * devices, and calls from host tasks, which may not make calls.
 *
 * A host task is marked while it runs, on the thread that runs it. A captured task runs with every
 * launch, and no call reports its last run, so that its mark is kept until the layers are removed.
 */
#include "base/text.h"
#include "host/context.h"
#include "host/registry.h"
#include "layers/layer.h"
#include "layers/race.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- host tasks ----------------------------------------------------------------------------- */

struct ds_accel__task_mark {
    struct ds_accel__task_mark *next; /* next captured task */
    ds_accel_host_task_t run;
    void *user_data;
    bool is_captured;
};

static _Thread_local uint32_t tasks_here; /* number of host tasks that this thread runs now */

bool ds_accel__hook_in_task(void)
{
    return tasks_here > 0;
}

bool ds_accel__hook_end_is_refused(const ds_accel_t *context, const char *call)
{
    char site[256];

    if (__atomic_load_n(&ds_accel__layers_on, __ATOMIC_RELAXED) == 0 || tasks_here == 0) {
        return false;
    }
    ds_accel__layer_site(ds_accel__layer_caller(__builtin_return_address(0)), site, sizeof(site));
    ds_accel__log(&context->log, "validate", DS_ACCEL_LOG_ERROR,
                  "%s: a host task, which may only note accesses, made this call, at %s; the call "
                  "was not made",
                  call, site);
    return true;
}

static void run_marked(void *user_data, int32_t status)
{
    struct ds_accel__task_mark mark = *(struct ds_accel__task_mark *)user_data;

    if (!mark.is_captured) {
        free(user_data);
    }
    tasks_here++;
    mark.run(mark.user_data, status);
    tasks_here--;
}

void ds_accel__rules_wrap_task(struct ds_accel__call *call)
{
    struct ds_accel__task_mark *mark;
    const struct ds_accel__object *stream;

    if (call->slot != DS_ACCEL__SLOT_stream_host_task) {
        return;
    }
    mark = malloc(sizeof(*mark));
    if (mark == NULL) {
        return; /* the task runs without a mark */
    }
    *mark = (struct ds_accel__task_mark){.run = (ds_accel_host_task_t)call->arguments[1].pointer,
                                         .user_data = DS_ACCEL__POINTER(call, 2)};
    ds_accel__layer_lock();
    stream = ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));
    mark->is_captured = stream != NULL && ds_accel__race_captures(stream);
    if (mark->is_captured) {
        mark->next = call->stack->tasks;
        call->stack->tasks = mark;
    }
    ds_accel__layer_unlock();
    call->validate.task = mark->is_captured ? NULL : mark;
    call->arguments[1].pointer = (uintptr_t)run_marked;
    call->arguments[2].pointer = (uintptr_t)mark;
}

/* Free the mark of a task that a layer or the plugin did not accept: the task will not run. */
void ds_accel__rules_drop_task(const struct ds_accel__call *call)
{
    if (call->status != DS_ACCEL_OK) {
        free(call->validate.task);
    }
}

void ds_accel__rules_stop(struct ds_accel__stack *stack)
{
    while (stack->tasks != NULL) {
        struct ds_accel__task_mark *mark = stack->tasks;

        stack->tasks = mark->next;
        free(mark);
    }
}

/* ---- calls during a capture ----------------------------------------------------------------- */

/*
 * Calls that break a capture, because they cannot be part of a graph. ITSELF: the call breaks a
 * capture only if its own stream or event is in the capture. ANYWHERE: the call breaks a capture
 * regardless of the object that it is made on ("unsafe" in CUDA's terms): a capture in mode global
 * forbids it in every thread, and a capture in mode thread-local forbids it in the capturing
 * thread. Calls that allocate, free or pin memory are not listed, because plugins ensure that these
 * calls do not break a capture (DSA-P106).
 */
enum place {
    ITSELF, /* a capturing stream, or an event that was recorded in a capture */
    ANYWHERE
};

static const struct {
    uint32_t slot;
    enum place place;
} unsafe[] = {
    {DS_ACCEL__SLOT_device_synchronize, ANYWHERE}, {DS_ACCEL__SLOT_mem_copy, ANYWHERE},
    {DS_ACCEL__SLOT_event_synchronize, ITSELF},    {DS_ACCEL__SLOT_event_query, ITSELF},
    {DS_ACCEL__SLOT_stream_synchronize, ITSELF},   {DS_ACCEL__SLOT_stream_query, ITSELF},
};

/* number of waits that the library itself, not the program, is executing on this thread */
static _Thread_local uint32_t own_waits;

void ds_accel__hook_own(bool is_begun)
{
    own_waits += is_begun ? 1 : own_waits > 0 ? -1u : 0;
}

struct capture_search {
    const struct ds_accel__stack *stack;
    bool is_found;
    const void *site; /* call site that made the stream */
    uint32_t mode;
    bool is_others;
};

/* Whether both stacks use the same vendor runtime. A capture affects all calls of the process to
 * that runtime, regardless of the ds-accel context that makes them. */
static bool is_same_backend(const struct ds_accel__stack *left, const struct ds_accel__stack *right)
{
    return left == right || strcmp(left->candidate->name, right->candidate->name) == 0;
}

static void find_forbidding(void *user_data, struct ds_accel__object *object)
{
    struct capture_search *search = user_data;
    bool is_own = object->is_capturing && pthread_equal(object->capture_thread, pthread_self());

    if (object->kind == DS_ACCEL__STREAM && is_same_backend(object->stack, search->stack) &&
        object->is_capturing && !search->is_found &&
        (object->capture_mode == DS_ACCEL_CAPTURE_GLOBAL ||
         (object->capture_mode == DS_ACCEL_CAPTURE_THREAD_LOCAL && is_own))) {
        search->is_found = true;
        search->site = object->site;
        search->mode = object->capture_mode;
        search->is_others = !is_own;
    }
}

static void check_anywhere(struct ds_accel__call *call)
{
    struct capture_search search = {.stack = call->stack};
    char site[256];

    ds_accel__layer_lock();
    ds_accel__objects_visit(find_forbidding, &search);
    ds_accel__layer_unlock();
    if (search.is_found) {
        ds_accel__layer_site(search.site, site, sizeof(site));
        ds_accel__layer_refuse(
            call, DS_ACCEL_ERR_STATE,
            "it would break the capture, in mode %s, that %s thread has begun on the stream made "
            "at %s",
            search.mode == DS_ACCEL_CAPTURE_GLOBAL ? "global" : "thread-local",
            search.is_others ? "another" : "this", site);
    }
}

/* Refuse a call whose stream or event is itself in a capture. */
static void check_itself(struct ds_accel__call *call)
{
    uint32_t kind = ds_accel__slots[call->slot].meanings[0];
    const struct ds_accel__object *object;
    bool is_captured = false;

    ds_accel__layer_lock();
    object = ds_accel__object_find(kind, DS_ACCEL__POINTER(call, 0));
    if (object != NULL && kind == DS_ACCEL__STREAM) {
        is_captured = ds_accel__race_captures(object);
    } else if (object != NULL && kind == DS_ACCEL__EVENT && object->race != NULL) {
        is_captured = object->race->recorded_in != 0;
    }
    ds_accel__layer_unlock();
    if (is_captured) {
        ds_accel__layer_refuse(
            call, DS_ACCEL_ERR_STATE,
            kind == DS_ACCEL__STREAM
                ? "the stream captures, and a query would break the capture"
                : "the event was recorded in a capture: it cannot be queried before a launch");
    }
}

static void check_unsafe(struct ds_accel__call *call)
{
    for (size_t i = 0; i < ARRAY_SIZE(unsafe); i++) {
        if (unsafe[i].slot == call->slot) {
            check_itself(call);
            if (!call->is_refused && unsafe[i].place == ANYWHERE && own_waits == 0) {
                check_anywhere(call);
            }
        }
    }
}

/* Slots that queue work or query, and the position of their stream argument. If the stream is a
 * default stream that waits for all other streams, the call would wait for a capturing stream,
 * which breaks the capture in every mode. */
static const struct {
    uint32_t slot;
    uint32_t position;
} queues[] = {
    {DS_ACCEL__SLOT_stream_synchronize, 0}, {DS_ACCEL__SLOT_stream_query, 0},
    {DS_ACCEL__SLOT_stream_wait_event, 0},  {DS_ACCEL__SLOT_stream_host_task, 0},
    {DS_ACCEL__SLOT_event_record, 1},       {DS_ACCEL__SLOT_mem_copy_async, 0},
    {DS_ACCEL__SLOT_mem_fill_async, 0},     {DS_ACCEL__SLOT_mem_copy_peer_async, 0},
    {DS_ACCEL__SLOT_mem_alloc_async, 0},    {DS_ACCEL__SLOT_mem_free_async, 0},
    {DS_ACCEL__SLOT_rng_uniform, 0},        {DS_ACCEL__SLOT_rng_normal, 0},
    {DS_ACCEL__SLOT_graph_launch, 1},
};

struct awaited_search {
    const struct ds_accel__object *of; /* a default stream */
    const struct ds_accel__object *found;
};

static void find_awaited(void *user_data, struct ds_accel__object *object)
{
    struct awaited_search *search = user_data;

    if (object->kind == DS_ACCEL__STREAM && !object->is_default &&
        object->device_index == search->of->device_index && object->has_flags &&
        (object->flags & DS_ACCEL_STREAM_NON_BLOCKING) == 0 && ds_accel__race_captures(object) &&
        is_same_backend(object->stack, search->of->stack)) {
        search->found = object;
    }
}

static void check_default_stream(struct ds_accel__call *call, uint32_t position)
{
    struct awaited_search search = {.found = NULL};
    const void *made_at = NULL;
    char site[256];

    ds_accel__layer_lock();
    search.of = ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, position));
    if (search.of != NULL && search.of->is_default &&
        (ds_accel__device_flags(search.of) & DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS) != 0) {
        ds_accel__objects_visit(find_awaited, &search);
    }
    made_at = search.found != NULL ? search.found->site : NULL;
    ds_accel__layer_unlock();
    if (search.found != NULL) {
        ds_accel__layer_site(made_at, site, sizeof(site));
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_STATE,
                               "the default stream waits for the stream made at %s without "
                               "DS_ACCEL_STREAM_NON_BLOCKING, which captures: it would break the "
                               "capture",
                               site);
    }
}

/* Refuse to end a capture that another thread began, unless the capture's mode is relaxed: cuda and
 * rocm refuse such a call, and the capture continues. */
static void check_who_ends(struct ds_accel__call *call)
{
    const struct ds_accel__object *stream;
    uint32_t mode = DS_ACCEL_CAPTURE_RELAXED;

    ds_accel__layer_lock();
    stream = ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));
    if (stream != NULL && stream->is_capturing &&
        !pthread_equal(stream->capture_thread, pthread_self())) {
        mode = stream->capture_mode;
    }
    ds_accel__layer_unlock();
    if (mode != DS_ACCEL_CAPTURE_RELAXED) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_STATE,
                               "another thread began the capture, in mode %s, and has to end it",
                               mode == DS_ACCEL_CAPTURE_GLOBAL ? "global" : "thread-local");
    }
}

/* Refuse a wait of a capturing stream for an event that was recorded outside the capture. */
static void check_event_of_outside(struct ds_accel__call *call)
{
    const struct ds_accel__object *stream;
    const struct ds_accel__object *event;
    bool is_outside;

    ds_accel__layer_lock();
    stream = ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));
    event = ds_accel__object_find(DS_ACCEL__EVENT, DS_ACCEL__POINTER(call, 1));
    is_outside = stream != NULL && stream->race != NULL && stream->race->capture != NULL &&
                 event != NULL && event->race != NULL && event->race->is_recorded &&
                 event->race->recorded_in != stream->race->capture->id;
    ds_accel__layer_unlock();
    if (is_outside) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_STATE,
                               "the stream captures, and the event was recorded outside of the "
                               "capture: waiting for it would break the capture");
    }
}

static void check_queue(struct ds_accel__call *call)
{
    for (size_t i = 0; i < ARRAY_SIZE(queues) && !call->is_refused; i++) {
        if (queues[i].slot == call->slot && own_waits == 0) {
            check_default_stream(call, queues[i].position);
        }
    }
    if (call->slot == DS_ACCEL__SLOT_stream_wait_event && !call->is_refused) {
        check_event_of_outside(call);
    } else if (call->slot == DS_ACCEL__SLOT_graph_capture_end && own_waits == 0) {
        check_who_ends(call);
    }
}

/* ---- memory that a graph uses --------------------------------------------------------------- */

/* Whether the memory of a captured access still exists; if not, *grave_out is the freed range. The
 * caller holds the layers' lock. */
static bool is_there(const struct ds_accel__capture_item *item, struct ds_accel__range *grave_out)
{
    const struct ds_accel__access *access = item->access;
    const struct ds_accel__range *block =
        ds_accel__range_find(DS_ACCEL__BLOCKS, access->space, access->begin);
    const struct ds_accel__range *grave;

    if ((item->memory == 0 ||
         ds_accel__range_newest(DS_ACCEL__ALLOCATIONS, access->space, access->begin,
                                access->size_bytes) == item->memory) &&
        (item->block == 0 || (block != NULL && block->number == item->block))) {
        return true;
    }
    grave = ds_accel__range_grave(access->space, access->begin);
    if (grave != NULL) {
        *grave_out = *grave;
    }
    return false;
}

static void check_replay(struct ds_accel__call *call)
{
    const struct ds_accel__object *exec;
    const struct ds_accel__capture *capture;
    struct ds_accel__access gone = {.site = NULL};
    struct ds_accel__range grave = {0};
    bool is_gone = false;
    char used[256] = "";
    char freed[256] = "";

    ds_accel__layer_lock();
    exec = ds_accel__object_find(DS_ACCEL__EXEC, DS_ACCEL__POINTER(call, 0));
    capture = exec != NULL && exec->race != NULL ? exec->race->capture : NULL;
    for (size_t i = 0; capture != NULL && i < capture->count && !is_gone; i++) {
        const struct ds_accel__capture_item *item = &capture->items[i];

        if (item->access != NULL && !is_there(item, &grave)) {
            gone = *item->access;
            is_gone = true;
        }
    }
    ds_accel__layer_unlock();
    if (is_gone) {
        ds_accel__layer_site(gone.site, used, sizeof(used));
        ds_accel__layer_site(grave.freed_at, freed, sizeof(freed));
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID,
                               "the graph uses 0x%llx with %llu bytes, captured at %s, which was "
                               "%s%s%s",
                               (unsigned long long)gone.begin, (unsigned long long)gone.size_bytes,
                               used, ds_accel__ended(&grave), grave.freed_at != NULL ? " at " : "",
                               grave.freed_at != NULL ? freed : "");
    }
}

/* ---- two devices ---------------------------------------------------------------------------- */

/* Slots whose two handles must belong to one device. stream_wait_event is not listed, because a
 * stream may wait for an event of any device. */
static const struct {
    uint32_t slot;
    uint32_t kinds[2];
    const char *what[2];
} pairs[] = {
    {DS_ACCEL__SLOT_event_record, {DS_ACCEL__EVENT, DS_ACCEL__STREAM}, {"event", "stream"}},
    {DS_ACCEL__SLOT_event_elapsed_ms, {DS_ACCEL__EVENT, DS_ACCEL__EVENT}, {"start", "end"}},
    {DS_ACCEL__SLOT_graph_launch, {DS_ACCEL__EXEC, DS_ACCEL__STREAM}, {"graph", "stream"}},
    {DS_ACCEL__SLOT_graph_exec_update,
     {DS_ACCEL__EXEC, DS_ACCEL__GRAPH},
     {"executable graph", "graph"}},
};

static void check_pair(struct ds_accel__call *call)
{
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        const struct ds_accel__object *first;
        const struct ds_accel__object *second;
        uint32_t indices[2] = {0, 0};

        if (pairs[i].slot != call->slot) {
            continue;
        }
        ds_accel__layer_lock();
        first = ds_accel__object_find(pairs[i].kinds[0], DS_ACCEL__POINTER(call, 0));
        second = ds_accel__object_find(pairs[i].kinds[1], DS_ACCEL__POINTER(call, 1));
        if (first != NULL && second != NULL) {
            indices[0] = first->device_index;
            indices[1] = second->device_index;
        }
        ds_accel__layer_unlock();
        if (indices[0] != indices[1]) {
            ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID,
                                   "the %s is of device %u, the %s of device %u", pairs[i].what[0],
                                   indices[0], pairs[i].what[1], indices[1]);
        }
    }
}

/* ---- all checks ----------------------------------------------------------------------------- */

void ds_accel__rules_check(struct ds_accel__call *call)
{
    check_pair(call);
    if (!call->is_refused) {
        check_unsafe(call);
    }
    if (!call->is_refused) {
        check_queue(call);
    }
    if (!call->is_refused && call->slot == DS_ACCEL__SLOT_graph_launch) {
        check_replay(call);
    }
}
