/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Events. An event of the plugin can be recorded repeatedly, by any thread, while streams and
 * threads wait for an earlier recording. An event of Level Zero is signalled once, and may be reset
 * only when no stream or thread waits for it. The plugin's event therefore refers to a mark, which
 * is a Level Zero event, and each recording uses another mark:
 *
 *      record ─ take a mark, let the stream signal it, put the previous mark
 *      wait   ─ the stream waits for the mark, then signals a second mark
 *      put    ─ a mark without references is retired, and reused once it is signalled and all
 *               streams that wait for it have passed: their second marks are signalled too
 *
 * A signalled mark needs no wait, and most marks are signalled before a stream waits. Marks in a
 * graph are signalled at each launch, after a reset in the graph, and are not reused.
 */
#include "xpu.h"

#define RECLAIM_LOOKS 16u

struct xpu_event {
    struct xpu_state *state;
    uint32_t is_timed;
    struct xpu_mark *mark; /* guarded by state->lock; NULL: never recorded */
};

/* ---- marks ---------------------------------------------------------------------------------- */

static void push_free(struct xpu_state *state, struct xpu_mark *mark)
{
    mark->next = state->free[mark->is_timed];
    state->free[mark->is_timed] = mark;
}

static void push_retired(struct xpu_state *state, struct xpu_mark *mark)
{
    mark->next = NULL;
    *state->retired_end = mark;
    state->retired_end = &mark->next;
}

static int is_reached(const struct xpu_state *state, const struct xpu_mark *mark)
{
    return !mark->is_armed || state->runtime->ze.zeEventQueryStatus(mark->event) == ZE_SUCCESS;
}

/* Resets the mark and adds it to the list of free marks. Returns 0 on success. */
static int reset(struct xpu_state *state, struct xpu_mark *mark)
{
    if (mark->is_armed && state->runtime->ze.zeEventHostReset(mark->event) != ZE_SUCCESS) {
        return -1;
    }
    mark->is_armed = 0;
    push_free(state, mark);
    return 0;
}

static int reclaim(struct xpu_state *state, struct xpu_mark *mark)
{
    if (mark->is_captured || !is_reached(state, mark)) {
        return -1;
    }
    while (mark->passed != NULL) {
        struct xpu_mark *passed = mark->passed;

        if (!is_reached(state, passed)) {
            return -1;
        }
        mark->passed = passed->next;
        if (reset(state, passed) != 0) {
            push_retired(state, passed);
        }
    }
    return reset(state, mark);
}

/*
 * Checks the oldest RECLAIM_LOOKS retired marks: finished marks become free, unfinished marks are
 * moved to the end of the list.
 */
static void reclaim_some(struct xpu_state *state)
{
    for (uint32_t i = 0; i < RECLAIM_LOOKS && state->retired != NULL; i++) {
        struct xpu_mark *mark = state->retired;

        state->retired = mark->next;
        if (state->retired == NULL) {
            state->retired_end = &state->retired;
        }
        if (reclaim(state, mark) != 0) {
            push_retired(state, mark);
        }
    }
}

static int32_t add_pool(ds_accel_plugin_device_t *device, struct xpu_state *state,
                        uint32_t is_timed, struct ds_accel_error *error)
{
    struct ze_pool_desc desc = {.tag = ZE_TAG_POOL,
                                .flags = ZE_POOL_HOST_VISIBLE | (is_timed ? ZE_POOL_TIMESTAMP : 0),
                                .count = XPU_POOL_EVENTS};
    struct xpu_pool *pool = calloc(1, sizeof(*pool));
    ze_result result;

    if (pool == NULL) {
        return xpu_no_host_memory(error, "event_create");
    }
    result = state->runtime->ze.zeEventPoolCreate(state->context, &desc, 0, NULL, &pool->pool);
    if (result != ZE_SUCCESS) {
        free(pool);
        return XPU_CHECK(device, result, error, "zeEventPoolCreate(%u events, device %u)",
                         XPU_POOL_EVENTS, device->index);
    }
    pool->next = state->pools[is_timed];
    state->pools[is_timed] = pool;
    return DS_ACCEL_OK;
}

static int32_t add_mark(ds_accel_plugin_device_t *device, struct xpu_state *state,
                        uint32_t is_timed, struct ds_accel_error *error)
{
    struct ze_event_desc desc = {.tag = ZE_TAG_EVENT, .signal_scope = ZE_SCOPE_HOST};
    int32_t status = DS_ACCEL_OK;
    struct xpu_pool *pool;
    struct xpu_mark *mark;
    ze_result result;

    if (state->pools[is_timed] == NULL || state->pools[is_timed]->used == XPU_POOL_EVENTS) {
        status = add_pool(device, state, is_timed, error);
    }
    pool = state->pools[is_timed];
    if (status < 0 || pool == NULL) {
        return status;
    }
    mark = &pool->marks[pool->used];
    desc.index = pool->used;
    result = state->runtime->ze.zeEventCreate(pool->pool, &desc, &mark->event);
    if (result != ZE_SUCCESS) {
        return XPU_CHECK(device, result, error, "zeEventCreate(device %u)", device->index);
    }
    pool->used++;
    mark->is_timed = is_timed;
    push_free(state, mark);
    return DS_ACCEL_OK;
}

int32_t xpu_mark_take(ds_accel_plugin_device_t *device, struct xpu_state *state, uint32_t is_timed,
                      struct xpu_mark **mark_out, struct ds_accel_error *error)
{
    int32_t status = DS_ACCEL_OK;
    struct xpu_mark *mark;

    pthread_mutex_lock(&state->lock);
    if (state->free[is_timed] == NULL) {
        reclaim_some(state);
    }
    if (state->free[is_timed] == NULL) {
        status = add_mark(device, state, is_timed, error);
    }
    mark = state->free[is_timed];
    if (mark != NULL) {
        state->free[is_timed] = mark->next;
        mark->next = NULL;
        mark->references = 1;
    }
    pthread_mutex_unlock(&state->lock);
    *mark_out = mark;
    return status;
}

void xpu_mark_put(struct xpu_state *state, struct xpu_mark *mark)
{
    if (mark == NULL) {
        return;
    }
    pthread_mutex_lock(&state->lock);
    if (--mark->references == 0) {
        push_retired(state, mark);
    }
    pthread_mutex_unlock(&state->lock);
}

void xpu_mark_add_passed(struct xpu_state *state, struct xpu_mark *mark, struct xpu_mark *passed)
{
    pthread_mutex_lock(&state->lock);
    passed->references = 0; /* from now on referenced by mark only */
    passed->next = mark->passed;
    mark->passed = passed;
    pthread_mutex_unlock(&state->lock);
}

void xpu_marks_end(struct xpu_state *state)
{
    const struct ze_api *ze = &state->runtime->ze;

    for (uint32_t i = 0; i < 2; i++) {
        while (state->pools[i] != NULL) {
            struct xpu_pool *pool = state->pools[i];

            state->pools[i] = pool->next;
            for (uint32_t k = 0; k < pool->used; k++) {
                ze->zeEventDestroy(pool->marks[k].event);
            }
            ze->zeEventPoolDestroy(pool->pool);
            free(pool);
        }
    }
}

/* ---- events --------------------------------------------------------------------------------- */

int32_t xpu_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                         struct ds_accel_error *error)
{
    struct xpu_event *event = calloc(1, sizeof(*event));

    if (event == NULL) {
        return xpu_no_host_memory(error, "event_create");
    }
    event->state = xpu_state(device);
    event->is_timed = (flags & DS_ACCEL_EVENT_TIMING) != 0;
    *native_out = event;
    return DS_ACCEL_OK;
}

void xpu_event_destroy(ds_accel_plugin_device_t *device, void *native)
{
    struct xpu_event *event = native;

    (void)device;
    xpu_mark_put(event->state, event->mark);
    free(event);
}

/* Returns the event's mark with a new reference; NULL: never recorded. */
static struct xpu_mark *get_mark(struct xpu_event *event)
{
    struct xpu_mark *mark;

    pthread_mutex_lock(&event->state->lock);
    mark = event->mark;
    if (mark != NULL) {
        mark->references++;
    }
    pthread_mutex_unlock(&event->state->lock);
    return mark;
}

/*
 * Appends a barrier with a signal instead of a plain signal: only commands have timestamps, and in
 * an unordered list only a barrier is ordered after all earlier work. In a capture, a reset
 * precedes the barrier. Caller holds stream->lock.
 */
static ze_result append_signal(struct xpu_stream *stream, struct xpu_mark *mark)
{
    const struct ze_api *ze = &stream->state->runtime->ze;
    ze_result result = ZE_SUCCESS;

    mark->is_captured = xpu_stream_is_capturing(stream);
    if (mark->is_captured) {
        result = ze->zeCommandListAppendEventReset(stream->list, mark->event);
    }
    if (result == ZE_SUCCESS) {
        result = ze->zeCommandListAppendBarrier(stream->list, mark->event, 0, NULL);
    }
    if (result == ZE_SUCCESS) {
        mark->is_armed = 1;
        xpu_stream_touched(stream);
    }
    return result;
}

int32_t xpu_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                         struct ds_accel_error *error)
{
    struct xpu_event *event = native;
    struct xpu_stream *stream = native_stream;
    struct xpu_mark *mark = NULL;
    struct xpu_mark *before;
    ze_result result;
    int32_t status = xpu_mark_take(device, event->state, event->is_timed, &mark, error);

    if (status < 0 || mark == NULL) {
        return status;
    }
    pthread_mutex_lock(&stream->lock);
    result = append_signal(stream, mark);
    if (result == ZE_SUCCESS) {
        /*
         * The stream's lock is still held, so that the later of two recordings sets the mark last.
         */
        pthread_mutex_lock(&event->state->lock);
        before = event->mark;
        event->mark = mark;
        pthread_mutex_unlock(&event->state->lock);
        mark = before;
    }
    pthread_mutex_unlock(&stream->lock);
    xpu_mark_put(event->state, mark);
    return XPU_CHECK(device, result, error, "zeCommandListAppendBarrier(signal an event)");
}

int32_t xpu_event_query(ds_accel_plugin_device_t *device, void *native,
                        struct ds_accel_error *error)
{
    struct xpu_event *event = native;
    struct xpu_mark *mark = get_mark(event);
    ze_result result = ZE_SUCCESS;

    if (mark != NULL) {
        result = event->state->runtime->ze.zeEventQueryStatus(mark->event);
        xpu_mark_put(event->state, mark);
    }
    if (result == ZE_NOT_READY) {
        return DS_ACCEL_NOT_READY;
    }
    return XPU_CHECK(device, result, error, "zeEventQueryStatus");
}

int32_t xpu_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                              struct ds_accel_error *error)
{
    struct xpu_event *event = native;
    struct xpu_mark *mark = get_mark(event);
    ze_result result = ZE_SUCCESS;

    if (mark != NULL) {
        result = event->state->runtime->ze.zeEventHostSynchronize(mark->event, UINT64_MAX);
        xpu_mark_put(event->state, mark);
    }
    return XPU_CHECK(device, result, error, "zeEventHostSynchronize");
}

static ze_result read_ticks(struct xpu_event *event, uint64_t *ticks_out)
{
    struct ze_timestamps timestamps = {{0, 0}, {0, 0}};
    struct xpu_mark *mark = get_mark(event);
    ze_result result = ZE_NOT_READY;

    if (mark != NULL) {
        result = event->state->runtime->ze.zeEventQueryKernelTimestamp(mark->event, &timestamps);
        xpu_mark_put(event->state, mark);
    }
    *ticks_out = timestamps.global.end;
    return result;
}

/*
 * The timestamp counter may have fewer than 64 bits and wraps around, on some devices every few
 * minutes, so the difference is masked to its bits.
 */
int32_t xpu_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                             double *elapsed_ms_out, struct ds_accel_error *error)
{
    const struct xpu_state *state = xpu_state(device);
    uint64_t first = 0;
    uint64_t last = 0;
    ze_result result = read_ticks(start, &first);

    if (result == ZE_SUCCESS) {
        result = read_ticks(end, &last);
    }
    if (result == ZE_NOT_READY) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "event_elapsed_ms: an event was not reached yet");
    }
    *elapsed_ms_out = (double)((last - first) & state->tick_bits) * state->tick_ns / 1e6;
    return XPU_CHECK(device, result, error, "zeEventQueryKernelTimestamp");
}

/* ---- waits of streams for events ------------------------------------------------------------ */

/* Caller holds stream->lock. */
static int32_t append_wait(ds_accel_plugin_device_t *device, struct xpu_event *event,
                           struct xpu_stream *stream, struct xpu_mark *mark,
                           struct ds_accel_error *error)
{
    const struct ze_api *ze = &stream->state->runtime->ze;
    struct xpu_mark *passed = NULL;
    ze_result result;
    int32_t status;

    if (mark->is_captured || xpu_stream_is_capturing(stream)) {
        /* The graph waits for this mark at each launch, so the mark must not be reset. */
        mark->is_captured = 1;
        result = ze->zeCommandListAppendWaitOnEvents(stream->list, 1, &mark->event);
        stream->is_broken |= result == ZE_ERROR_CAPTURE_MERGE;
        xpu_stream_touched(stream);
        return XPU_CHECK(device, result, error, "zeCommandListAppendWaitOnEvents");
    }
    if (ze->zeEventQueryStatus(mark->event) == ZE_SUCCESS) {
        return DS_ACCEL_OK;
    }
    /*
     * Take the second mark from the device of the event, not of the stream: it is reused together
     * with the event's mark.
     */
    status = xpu_mark_take(device, event->state, 0, &passed, error);
    if (status < 0 || passed == NULL) {
        return status;
    }
    result = xpu_stream_order(stream);
    if (result == ZE_SUCCESS) {
        result = ze->zeCommandListAppendBarrier(stream->list, passed->event, 1, &mark->event);
    }
    if (result != ZE_SUCCESS) {
        xpu_mark_put(event->state, passed);
        return XPU_CHECK(device, result, error, "zeCommandListAppendBarrier(wait for an event)");
    }
    passed->is_armed = 1;
    xpu_stream_touched(stream);
    xpu_mark_add_passed(event->state, mark, passed);
    return DS_ACCEL_OK;
}

int32_t xpu_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                              struct ds_accel_error *error)
{
    struct xpu_event *event = native_event;
    struct xpu_stream *stream = native;
    struct xpu_mark *mark = get_mark(event);
    int32_t status;

    if (mark == NULL) {
        return DS_ACCEL_OK;
    }
    pthread_mutex_lock(&stream->lock);
    status = append_wait(device, event, stream, mark, error);
    pthread_mutex_unlock(&stream->lock);
    xpu_mark_put(event->state, mark);
    return status;
}
