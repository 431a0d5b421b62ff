/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Immediate command lists, event pools and events. */
#include "shim.h"

#include <stdio.h>
#include <unistd.h>

/* ---- lists ---------------------------------------------------------------------------------- */

typedef struct {
    uint32_t stype;
    const void *pNext;
    uint32_t ordinal, index, flags, mode, priority;
} ze_command_queue_desc_t;
SIM_ASSERT(sizeof(ze_command_queue_desc_t) == 40, "by ze_api.h");

SIM_EXPORT ze_result_t zeCommandListCreateImmediate(struct context *context, struct device *device,
                                                    const ze_command_queue_desc_t *desc,
                                                    struct list **list);
SIM_EXPORT ze_result_t zeCommandListCreateImmediate(struct context *context, struct device *device,
                                                    const ze_command_queue_desc_t *desc,
                                                    struct list **list)
{
    struct list *made;

    ENTER();
    NEED_HANDLE(context);
    NEED_HANDLE(device);
    NEED_POINTER(desc);
    NEED_POINTER(list);
    check_context(context, __func__);
    check_device(device, __func__);
    check_base(desc, 0xe, __func__);
    if (desc->ordinal != 1 || desc->index >= 4) {
        sim_misuse("%s: ordinal %u, index %u: the group that computes is 1, with 4 queues",
                   __func__, desc->ordinal, desc->index);
    }
    if (desc->mode > 2 || desc->priority > 2 ||
        desc->flags > ((api_version() & 0xffff) < 7 ? 1u : 7u)) {
        return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    }
    if (desc->mode != 2) {
        sim_misuse("%s: mode %u: an asynchronous list is 2", __func__, desc->mode);
    }
    if (device_is_lost(device)) {
        return ZE_RESULT_ERROR_DEVICE_LOST;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    made->stream = sim_stream_create(device->part->physical, SIM_STREAM_NON_BLOCKING,
                                     desc->priority == 1   ? 1
                                     : desc->priority == 2 ? -1
                                                           : 0);
    made->device = device;
    made->context = context;
    made->is_in_order = (desc->flags & 2) != 0;
    sim_handle_add(made, "list");
    *list = made;
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zeCommandListDestroy(struct list *list);
SIM_EXPORT ze_result_t zeCommandListDestroy(struct list *list)
{
    ENTER_RELEASE();
    NEED_HANDLE(list);
    sim_handle_check(list, "list", __func__);
    if (sim_capture_status(list->stream) == SIM_CAPTURE_NONE &&
        sim_stream_query(list->stream) == 1) {
        sim_misuse("%s: the list has work that is not done", __func__);
    }
    sim_handle_remove(list, "list", __func__);
    sim_stream_destroy(list->stream);
    free(list);
    return (ze_result_t)scripted;
}

ze_result_t begin_command(struct list *list, const char *call)
{
    sim_handle_check(list, "list", call);
    if (atomic_exchange(&list->is_in_use, true)) {
        sim_misuse("%s: another thread is using the list", call);
    }
    if (device_is_lost(list->device)) {
        end_command(list);
        return ZE_RESULT_ERROR_DEVICE_LOST;
    }
    return ZE_RESULT_SUCCESS;
}

void end_command(struct list *list)
{
    atomic_store(&list->is_in_use, false);
}

static bool captures(const struct list *list)
{
    return sim_capture_status(list->stream) != SIM_CAPTURE_NONE;
}

SIM_EXPORT ze_result_t zeCommandListHostSynchronize(struct list *list, uint64_t timeout);
SIM_EXPORT ze_result_t zeCommandListHostSynchronize(struct list *list, uint64_t timeout)
{
    int state;

    ENTER();
    NEED_HANDLE(list);
    sim_handle_check(list, "list", __func__);
    if (captures(list)) {
        return ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED;
    }
    state = timeout == 0 ? sim_stream_query(list->stream)
                         : sim_stream_synchronize(list->stream, timeout);
    return state == 0   ? ZE_RESULT_SUCCESS
           : state == 1 ? ZE_RESULT_NOT_READY
                        : ZE_RESULT_ERROR_DEVICE_LOST;
}

/* ---- events of commands --------------------------------------------------------------------- */

static void passed(void *argument)
{
    atomic_fetch_sub(&((struct event *)argument)->wait_count, 1);
}

static void reset_now(void *argument)
{
    sim_event_reset(((struct event *)argument)->event);
}

/* Returns the result of a command. A broken capture accepts no more commands. */
static ze_result_t result_on(const struct list *list, int status)
{
    if (status != 0 && sim_capture_status(list->stream) == SIM_CAPTURE_BROKEN) {
        return ZE_RESULT_ERROR_GRAPH_CAPTURE_INVALIDATED;
    }
    return status == 0 ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_DEVICE_LOST;
}

ze_result_t wait_for(struct list *list, uint32_t count, struct event **events, const char *call)
{
    int status = 0;

    if (count > 0 && events == NULL) {
        return ZE_RESULT_ERROR_INVALID_SIZE;
    }
    for (uint32_t i = 0; i < count; i++) {
        sim_handle_check(events[i], "event", call);
    }
    for (uint32_t i = 0; i < count && status == 0; i++) {
        bool is_within = sim_event_is_captured(events[i]->event);
        bool is_captured = captures(list) || is_within;

        status = sim_stream_wait_event(list->stream, events[i]->event);
        if (status != 0 && is_within) {
            return captures(list) ? ZE_RESULT_ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT
                                  : ZE_RESULT_ERROR_GRAPH_INTERNAL_EVENT;
        }
        if (status == 0 && !is_captured) {
            atomic_fetch_add(&events[i]->wait_count, 1);
            atomic_store(&events[i]->waiter, list->device);
            status = sim_submit_step(list->stream, passed, events[i]);
            if (status != 0) {
                passed(events[i]);
            }
        }
    }
    return result_on(list, status);
}

ze_result_t signal_behind(struct list *list, struct event *event, bool has_time, const char *call)
{
    int status;

    if (event == NULL) {
        return ZE_RESULT_SUCCESS;
    }
    sim_handle_check(event, "event", call);
    if (atomic_exchange(&event->is_armed, true)) {
        sim_misuse("%s: the event was not reset since it was signalled", call);
    }
    atomic_store(&event->is_timed, has_time);
    status = sim_event_signal(event->event, list->stream);
    if (status == 0 && captures(list)) {
        /* A list that waits for the event joins the capture. */
        status = sim_event_record(event->event, list->stream);
    }
    return result_on(list, status);
}

/* A list without in-order execution needs a barrier between two dependent commands. */
static void need_order(struct list *list, const char *call)
{
    if (!list->is_in_order && list->has_command) {
        sim_misuse("%s: the list has no order, and no barrier stands before this command", call);
    }
    list->has_command = true;
}

SIM_EXPORT ze_result_t zeCommandListAppendMemoryCopy(struct list *list, void *dstptr,
                                                     const void *srcptr, size_t size,
                                                     struct event *signal, uint32_t count,
                                                     struct event **events);
SIM_EXPORT ze_result_t zeCommandListAppendMemoryCopy(struct list *list, void *dstptr,
                                                     const void *srcptr, size_t size,
                                                     struct event *signal, uint32_t count,
                                                     struct event **events)
{
    ze_result_t result;

    ENTER();
    NEED_HANDLE(list);
    NEED_POINTER(dstptr);
    NEED_POINTER(srcptr);
    result = begin_command(list, __func__);
    if (result != ZE_RESULT_SUCCESS) {
        return result;
    }
    need_order(list, __func__);
    result = wait_for(list, count, events, __func__);
    if (result == ZE_RESULT_SUCCESS) {
        result = result_on(list, sim_submit_copy(list->stream, dstptr, srcptr, size));
    }
    if (result == ZE_RESULT_SUCCESS) {
        result = signal_behind(list, signal, true, __func__);
    }
    end_command(list);
    return result;
}

SIM_EXPORT ze_result_t zeCommandListAppendMemoryFill(struct list *list, void *ptr,
                                                     const void *pattern, size_t pattern_size,
                                                     size_t size, struct event *signal,
                                                     uint32_t count, struct event **events);
SIM_EXPORT ze_result_t zeCommandListAppendMemoryFill(struct list *list, void *ptr,
                                                     const void *pattern, size_t pattern_size,
                                                     size_t size, struct event *signal,
                                                     uint32_t count, struct event **events)
{
    size_t max = (size_t)sim_number(list != NULL ? list->device->card : sim_device_at(0),
                                    "max_pattern_bytes", 128);
    ze_result_t result;

    ENTER();
    NEED_HANDLE(list);
    NEED_POINTER(ptr);
    NEED_POINTER(pattern);
    if (pattern_size == 0 || pattern_size > max || (pattern_size & (pattern_size - 1)) != 0 ||
        size % pattern_size != 0) {
        return ZE_RESULT_ERROR_INVALID_SIZE;
    }
    result = begin_command(list, __func__);
    if (result != ZE_RESULT_SUCCESS) {
        return result;
    }
    need_order(list, __func__);
    result = wait_for(list, count, events, __func__);
    if (result == ZE_RESULT_SUCCESS) {
        result = result_on(
            list, sim_submit_fill(list->stream, ptr, pattern, (uint32_t)pattern_size, size));
    }
    if (result == ZE_RESULT_SUCCESS) {
        result = signal_behind(list, signal, true, __func__);
    }
    end_command(list);
    return result;
}

/*
 * Without events to wait for, a barrier follows all earlier commands and precedes all later ones.
 */
SIM_EXPORT ze_result_t zeCommandListAppendBarrier(struct list *list, struct event *signal,
                                                  uint32_t count, struct event **events);
SIM_EXPORT ze_result_t zeCommandListAppendBarrier(struct list *list, struct event *signal,
                                                  uint32_t count, struct event **events)
{
    ze_result_t result;

    ENTER();
    NEED_HANDLE(list);
    result = begin_command(list, __func__);
    if (result != ZE_RESULT_SUCCESS) {
        return result;
    }
    if (count > 0) {
        need_order(list, __func__);
    }
    result = wait_for(list, count, events, __func__);
    if (result == ZE_RESULT_SUCCESS) {
        result = signal_behind(list, signal, true, __func__);
    }
    list->has_command = false;
    end_command(list);
    return result;
}

SIM_EXPORT ze_result_t zeCommandListAppendSignalEvent(struct list *list, struct event *event);
SIM_EXPORT ze_result_t zeCommandListAppendSignalEvent(struct list *list, struct event *event)
{
    ze_result_t result;

    ENTER();
    NEED_HANDLE(list);
    NEED_HANDLE(event);
    result = begin_command(list, __func__);
    if (result == ZE_RESULT_SUCCESS) {
        need_order(list, __func__);
        result = signal_behind(list, event, false, __func__);
        end_command(list);
    }
    return result;
}

SIM_EXPORT ze_result_t zeCommandListAppendWaitOnEvents(struct list *list, uint32_t count,
                                                       struct event **events);
SIM_EXPORT ze_result_t zeCommandListAppendWaitOnEvents(struct list *list, uint32_t count,
                                                       struct event **events)
{
    ze_result_t result;

    ENTER();
    NEED_HANDLE(list);
    NEED_POINTER(events);
    result = begin_command(list, __func__);
    if (result == ZE_RESULT_SUCCESS) {
        result = wait_for(list, count, events, __func__);
        end_command(list);
    }
    return result;
}

/* Checks that no list waits for the event. A lost device drops its pending work later, and no
 * caller can wait for that. */
static void check_no_waits(struct event *event, const char *call)
{
    while (atomic_load(&event->wait_count) > 0 && device_is_lost(atomic_load(&event->waiter))) {
        usleep(100);
    }
    if (atomic_load(&event->wait_count) > 0) {
        sim_misuse("%s: a list still waits for the event", call);
    }
}

SIM_EXPORT ze_result_t zeCommandListAppendEventReset(struct list *list, struct event *event);
SIM_EXPORT ze_result_t zeCommandListAppendEventReset(struct list *list, struct event *event)
{
    ze_result_t result;

    ENTER();
    NEED_HANDLE(list);
    NEED_HANDLE(event);
    sim_handle_check(event, "event", __func__);
    check_no_waits(event, __func__);
    result = begin_command(list, __func__);
    if (result == ZE_RESULT_SUCCESS) {
        need_order(list, __func__);
        atomic_store(&event->is_armed, false);
        result = result_on(list, sim_submit_step(list->stream, reset_now, event));
        end_command(list);
    }
    return result;
}

SIM_EXPORT ze_result_t zeCommandListAppendHostFunction(struct list *list, void (*function)(void *),
                                                       void *user_data, const void *pNext,
                                                       struct event *signal, uint32_t count,
                                                       struct event **events);
SIM_EXPORT ze_result_t zeCommandListAppendHostFunction(struct list *list, void (*function)(void *),
                                                       void *user_data, const void *pNext,
                                                       struct event *signal, uint32_t count,
                                                       struct event **events)
{
    ze_result_t result;

    ENTER();
    NEED_HANDLE(list);
    NEED_POINTER(function);
    if (pNext != NULL) {
        sim_misuse("%s: a pNext", __func__);
    }
    result = begin_command(list, __func__);
    if (result != ZE_RESULT_SUCCESS) {
        return result;
    }
    need_order(list, __func__);
    result = wait_for(list, count, events, __func__);
    if (result == ZE_RESULT_SUCCESS) {
        result = result_on(list, sim_submit_task(list->stream, function, user_data));
    }
    if (result == ZE_RESULT_SUCCESS) {
        result = signal_behind(list, signal, true, __func__);
    }
    end_command(list);
    return result;
}

/* ---- pools and events ----------------------------------------------------------------------- */

typedef struct {
    uint32_t stype;
    const void *pNext;
    uint32_t flags, count;
} ze_event_pool_desc_t;
SIM_ASSERT(sizeof(ze_event_pool_desc_t) == 24, "by ze_api.h");

SIM_EXPORT ze_result_t zeEventPoolCreate(struct context *context, const ze_event_pool_desc_t *desc,
                                         uint32_t count, struct device **devices,
                                         struct pool **pool);
SIM_EXPORT ze_result_t zeEventPoolCreate(struct context *context, const ze_event_pool_desc_t *desc,
                                         uint32_t count, struct device **devices,
                                         struct pool **pool)
{
    struct pool *made;

    ENTER();
    NEED_HANDLE(context);
    NEED_POINTER(desc);
    NEED_POINTER(pool);
    check_context(context, __func__);
    check_base(desc, 0x10, __func__);
    if (desc->count == 0 || (count > 0 && devices == NULL)) {
        return ZE_RESULT_ERROR_INVALID_SIZE;
    }
    made = calloc(1, sizeof(*made));
    if (made != NULL) {
        made->events = calloc(desc->count, sizeof(struct event *));
    }
    if (made == NULL || made->events == NULL) {
        free(made);
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    made->context = context;
    made->flags = desc->flags;
    made->count = desc->count;
    sim_handle_add(made, "event-pool");
    *pool = made;
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zeEventPoolDestroy(struct pool *pool);
SIM_EXPORT ze_result_t zeEventPoolDestroy(struct pool *pool)
{
    ENTER_RELEASE();
    NEED_HANDLE(pool);
    sim_handle_check(pool, "event-pool", __func__);
    for (uint32_t i = 0; i < pool->count; i++) {
        if (pool->events[i] != NULL) {
            sim_misuse("%s: event %u of the pool was not destroyed", __func__, i);
        }
    }
    sim_handle_remove(pool, "event-pool", __func__);
    free(pool->events);
    free(pool);
    return (ze_result_t)scripted;
}

typedef struct {
    uint32_t stype;
    const void *pNext;
    uint32_t index, signal, wait;
} ze_event_desc_t;
SIM_ASSERT(sizeof(ze_event_desc_t) == 32, "by ze_api.h");

SIM_EXPORT ze_result_t zeEventCreate(struct pool *pool, const ze_event_desc_t *desc,
                                     struct event **event);
SIM_EXPORT ze_result_t zeEventCreate(struct pool *pool, const ze_event_desc_t *desc,
                                     struct event **event)
{
    struct event *made;

    ENTER();
    NEED_HANDLE(pool);
    NEED_POINTER(desc);
    NEED_POINTER(event);
    sim_handle_check(pool, "event-pool", __func__);
    check_base(desc, 0x11, __func__);
    if (desc->index >= pool->count || pool->events[desc->index] != NULL) {
        sim_misuse("%s: index %u is taken, or beyond the pool's %u", __func__, desc->index,
                   pool->count);
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    made->event = sim_event_create(0, 0);
    sim_event_reset(made->event);
    made->pool = pool;
    made->index = desc->index;
    pool->events[desc->index] = made;
    sim_handle_add(made, "event");
    *event = made;
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zeEventDestroy(struct event *event);
SIM_EXPORT ze_result_t zeEventDestroy(struct event *event)
{
    ENTER_RELEASE();
    NEED_HANDLE(event);
    sim_handle_check(event, "event", __func__);
    check_no_waits(event, __func__);
    sim_handle_remove(event, "event", __func__);
    event->pool->events[event->index] = NULL;
    sim_event_destroy(event->event);
    free(event);
    return (ze_result_t)scripted;
}

SIM_EXPORT ze_result_t zeEventHostSignal(struct event *event);
SIM_EXPORT ze_result_t zeEventHostSignal(struct event *event)
{
    ENTER_RELEASE(); /* threads that wait for the event must wake up */
    NEED_HANDLE(event);
    sim_handle_check(event, "event", __func__);
    atomic_store(&event->is_armed, true);
    sim_event_signal(event->event, NULL);
    return (ze_result_t)scripted;
}

static ze_result_t result_of(const struct event *event, int state)
{
    if (state == -1 && sim_event_is_captured(event->event)) {
        return ZE_RESULT_NOT_READY; /* its graph has not run */
    }
    return state == 0   ? ZE_RESULT_SUCCESS
           : state == 1 ? ZE_RESULT_NOT_READY
                        : ZE_RESULT_ERROR_DEVICE_LOST;
}

SIM_EXPORT ze_result_t zeEventHostSynchronize(struct event *event, uint64_t timeout);
SIM_EXPORT ze_result_t zeEventHostSynchronize(struct event *event, uint64_t timeout)
{
    ENTER();
    NEED_HANDLE(event);
    sim_handle_check(event, "event", __func__);
    return result_of(event, timeout == 0 ? sim_event_query(event->event)
                                         : sim_event_synchronize(event->event, timeout));
}

SIM_EXPORT ze_result_t zeEventQueryStatus(struct event *event);
SIM_EXPORT ze_result_t zeEventQueryStatus(struct event *event)
{
    ENTER();
    NEED_HANDLE(event);
    sim_handle_check(event, "event", __func__);
    return result_of(event, sim_event_query(event->event));
}

SIM_EXPORT ze_result_t zeEventHostReset(struct event *event);
SIM_EXPORT ze_result_t zeEventHostReset(struct event *event)
{
    ENTER();
    NEED_HANDLE(event);
    sim_handle_check(event, "event", __func__);
    check_no_waits(event, __func__);
    if (atomic_load(&event->is_armed) && sim_event_query(event->event) == 1) {
        sim_misuse("%s: the event's signal is still to come", __func__);
    }
    sim_event_reset(event->event);
    atomic_store(&event->is_armed, false);
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    struct {
        uint64_t kernelStart, kernelEnd;
    } global, context;
} ze_kernel_timestamp_result_t;
SIM_ASSERT(sizeof(ze_kernel_timestamp_result_t) == 32, "by ze_api.h");

static uint64_t ticks_at(const struct event *event, uint64_t time_ns)
{
    static _Atomic uint64_t first_ns;
    const struct sim_device *device = sim_device_at(sim_event_physical(event->event));
    const double hz = (double)sim_number(device, "tick_hz", 12500000);
    const uint32_t bits = (uint32_t)sim_number(device, "tick_bits", 32);
    uint64_t none = 0;
    uint64_t ticks;

    atomic_compare_exchange_strong(&first_ns, &none, time_ns);
    ticks = (uint64_t)((double)(int64_t)(time_ns - atomic_load(&first_ns)) * hz / 1e9 +
                       (double)sim_number(device, "tick_start", 1000000));
    return bits >= 64 ? ticks : ticks & ((UINT64_C(1) << bits) - 1);
}

/*
 * Returns the times of an event. The start time is meaningless for an event signalled after other
 * work; the upper bits are undefined.
 */
SIM_EXPORT ze_result_t zeEventQueryKernelTimestamp(struct event *event,
                                                   ze_kernel_timestamp_result_t *dstptr);
SIM_EXPORT ze_result_t zeEventQueryKernelTimestamp(struct event *event,
                                                   ze_kernel_timestamp_result_t *dstptr)
{
    ENTER();
    NEED_HANDLE(event);
    NEED_POINTER(dstptr);
    sim_handle_check(event, "event", __func__);
    if ((event->pool->flags & 4) == 0) {
        return ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT;
    }
    if (sim_event_query(event->event) != 0) {
        return ZE_RESULT_NOT_READY;
    }
    if (!atomic_load(&event->is_timed)) {
        sim_misuse("%s: a signal alone has no duration", __func__);
    }
    dstptr->global.kernelStart = (uint64_t)rand() << 8;
    dstptr->global.kernelEnd = ticks_at(event, sim_event_time_ns(event->event));
    dstptr->context.kernelStart = (uint64_t)rand() << 8;
    dstptr->context.kernelEnd = (uint64_t)rand() << 8;
    return ZE_RESULT_SUCCESS;
}
