/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A stream is an in-order immediate command list with a lock, because two threads may not append
 * commands to a list at the same time. A driver before 1.7 has no in-order lists: the plugin
 * appends a barrier before each command. A loader before 1.6 cannot wait for a list: the plugin
 * signals an event after the list's work, and keeps the event as the stream's tail until more work
 * is queued.
 *
 * A list must not be destroyed while it has work. A stream that is destroyed with work in flight
 * remains in the device's list of streams; a later call that finds the work finished frees it. The
 * list of a wrapped stream belongs to the program, which may destroy it once the wrapper is
 * destroyed: xpu_native_unwrap() therefore waits for the work, and no later call uses the list.
 *
 * Level Zero has host functions since 1.17, but does not run them if the stream fails. A thread of
 * the stream therefore runs its tasks; the first task starts the thread:
 *
 *      stream:  work ── signal reached ── wait for done ── later work
 *      thread:           wait for reached, run the task, signal done
 *
 * In a graph, only Level Zero's own host function can run.
 */
#include "xpu.h"

#include <signal.h>

/* ---- commands ------------------------------------------------------------------------------- */

ze_result xpu_stream_order(struct xpu_stream *stream)
{
    if ((stream->state->is_in_order && !stream->is_wrapped) || !stream->has_commands) {
        return ZE_SUCCESS;
    }
    return stream->state->runtime->ze.zeCommandListAppendBarrier(stream->list, NULL, 0, NULL);
}

void xpu_stream_touched(struct xpu_stream *stream)
{
    stream->has_commands = 1;
    xpu_mark_put(stream->state, stream->tail);
    stream->tail = NULL;
}

uint32_t xpu_stream_is_capturing(struct xpu_stream *stream)
{
    const struct ze_graph_api *graphs = &stream->state->unit->driver->graphs;

    return atomic_load(&stream->state->capture_count) > 0 &&
           graphs->zeCommandListIsGraphCaptureEnabledExt(stream->list) == ZE_QUERY_TRUE;
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* Returns a mark that follows all work of the stream, with a reference for the caller. */
static int32_t get_tail(ds_accel_plugin_device_t *device, struct xpu_stream *stream,
                        struct xpu_mark **mark_out, struct ds_accel_error *error)
{
    const struct ze_api *ze = &stream->state->runtime->ze;
    ze_result result = ZE_SUCCESS;
    int32_t status = DS_ACCEL_OK;

    pthread_mutex_lock(&stream->lock);
    if (stream->tail == NULL || stream->is_wrapped) {
        struct xpu_mark *mark = NULL;

        status = xpu_mark_take(device, stream->state, 0, &mark, error);
        if (status == DS_ACCEL_OK && mark != NULL) {
            result = ze->zeCommandListAppendBarrier(stream->list, mark->event, 0, NULL);
            if (result == ZE_SUCCESS) {
                mark->is_armed = 1;
                xpu_stream_touched(stream);
                stream->tail = mark;
            } else {
                xpu_mark_put(stream->state, mark);
            }
            status = XPU_CHECK(device, result, error, "zeCommandListAppendBarrier(tail)");
        }
    }
    if (status == DS_ACCEL_OK && stream->tail != NULL) {
        pthread_mutex_lock(&stream->state->lock);
        stream->tail->references++;
        *mark_out = stream->tail;
        pthread_mutex_unlock(&stream->state->lock);
    }
    pthread_mutex_unlock(&stream->lock);
    return status;
}

/*
 * Returns true if the caller must not or need not wait. If the stream is capturing, the attempt to
 * wait breaks the capture, and *result_out is an error; if the stream has no work, *result_out is
 * success.
 */
static uint32_t needs_no_wait(struct xpu_stream *stream, ze_result *result_out)
{
    uint32_t is_capturing;
    uint32_t is_empty;

    pthread_mutex_lock(&stream->lock);
    is_capturing = xpu_stream_is_capturing(stream);
    is_empty = !stream->has_commands;
    stream->is_broken |= is_capturing;
    pthread_mutex_unlock(&stream->lock);
    *result_out = is_capturing ? ZE_ERROR_CAPTURE_UNSUPPORTED : ZE_SUCCESS;
    return is_capturing || is_empty;
}

/*
 * Waits at most timeout_ns; *result_out is the runtime's result: SUCCESS, NOT_READY or an error.
 * Returns an error status only if a mark cannot be queued.
 */
static int32_t wait(ds_accel_plugin_device_t *device, struct xpu_stream *stream,
                    uint64_t timeout_ns, ze_result *result_out, struct ds_accel_error *error)
{
    const struct ze_api *ze = &stream->state->runtime->ze;
    struct xpu_mark *tail = NULL;
    int32_t status;

    if (needs_no_wait(stream, result_out)) {
        return DS_ACCEL_OK;
    }
    if (ze->zeCommandListHostSynchronize != NULL) {
        *result_out = ze->zeCommandListHostSynchronize(stream->list, timeout_ns);
        return DS_ACCEL_OK;
    }
    status = get_tail(device, stream, &tail, error);
    if (status == DS_ACCEL_OK && tail != NULL) {
        *result_out = timeout_ns == 0 ? ze->zeEventQueryStatus(tail->event)
                                      : ze->zeEventHostSynchronize(tail->event, timeout_ns);
        xpu_mark_put(stream->state, tail);
    }
    return status;
}

int32_t xpu_stream_synchronize_for(ds_accel_plugin_device_t *device, void *native,
                                   uint64_t timeout_ns, struct ds_accel_error *error)
{
    ze_result result = ZE_SUCCESS;
    int32_t status = wait(device, native, timeout_ns, &result, error);

    if (status < 0) {
        return status;
    }
    return XPU_CHECK(device, result, error, "zeCommandListHostSynchronize(%llu ns)",
                     (unsigned long long)timeout_ns);
}

int32_t xpu_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                               struct ds_accel_error *error)
{
    return xpu_stream_synchronize_for(device, native, UINT64_MAX, error);
}

int32_t xpu_stream_query(ds_accel_plugin_device_t *device, void *native,
                         struct ds_accel_error *error)
{
    ze_result result = ZE_SUCCESS;
    int32_t status = wait(device, native, 0, &result, error);

    if (status == DS_ACCEL_OK && result == ZE_NOT_READY) {
        return DS_ACCEL_NOT_READY;
    }
    return status < 0 ? status
                      : XPU_CHECK(device, result, error, "zeCommandListHostSynchronize(0 ns)");
}

/* ---- creation and destruction --------------------------------------------------------------- */

static void free_stream(struct xpu_stream *stream)
{
    if (stream->has_thread) {
        pthread_mutex_lock(&stream->task_lock);
        stream->is_ending = 1;
        pthread_cond_signal(&stream->task_cond);
        pthread_mutex_unlock(&stream->task_lock);
        pthread_join(stream->thread, NULL);
    }
    if (!stream->is_wrapped) {
        stream->state->runtime->ze.zeCommandListDestroy(stream->list);
    }
    xpu_mark_put(stream->state, stream->tail);
    pthread_cond_destroy(&stream->waited);
    pthread_cond_destroy(&stream->task_cond);
    pthread_mutex_destroy(&stream->task_lock);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

/* Removes from the list a destroyed stream that no thread uses, and returns it; NULL: none. */
static struct xpu_stream *take_destroyed(struct xpu_state *state)
{
    struct xpu_stream *stream;
    struct xpu_stream **link;

    pthread_mutex_lock(&state->lock);
    for (link = &state->streams; *link != NULL; link = &(*link)->next) {
        if ((*link)->is_destroyed && (*link)->pins == 0) {
            break;
        }
    }
    stream = *link;
    if (stream != NULL) {
        *link = stream->next;
    }
    pthread_mutex_unlock(&state->lock);
    return stream;
}

static void put_back(struct xpu_state *state, struct xpu_stream *streams)
{
    pthread_mutex_lock(&state->lock);
    while (streams != NULL) {
        struct xpu_stream *stream = streams;

        streams = stream->next;
        stream->next = state->streams;
        state->streams = stream;
    }
    pthread_mutex_unlock(&state->lock);
}

void xpu_streams_reap(struct xpu_state *state, uint32_t all)
{
    struct ds_accel_plugin_instance instance = {.runtime = state->runtime,
                                                .host = state->runtime->host};
    ds_accel_plugin_device_t device = {.instance = &instance, .state = state};
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    struct xpu_stream *busy = NULL;
    struct xpu_stream *stream;

    while ((stream = take_destroyed(state)) != NULL) {
        ze_result result = ZE_SUCCESS;

        if (!stream->is_wrapped) {
            wait(&device, stream, all ? UINT64_MAX : 0, &result, &ignored);
        }
        if (result == ZE_NOT_READY) {
            stream->next = busy;
            busy = stream;
        } else {
            free_stream(stream);
        }
    }
    put_back(state, busy);
}

static struct xpu_stream *make_stream(struct xpu_state *state, ze_list_t list, uint32_t is_wrapped)
{
    struct xpu_stream *stream = calloc(1, sizeof(*stream));

    if (stream == NULL) {
        return NULL;
    }
    stream->state = state;
    stream->list = list;
    stream->is_wrapped = is_wrapped;
    stream->has_commands = is_wrapped;
    stream->tasks_end = &stream->tasks;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_mutex_init(&stream->task_lock, NULL);
    pthread_cond_init(&stream->task_cond, NULL);
    pthread_cond_init(&stream->waited, NULL);
    return stream;
}

static void add_stream(struct xpu_state *state, struct xpu_stream *stream)
{
    pthread_mutex_lock(&state->lock);
    stream->next = state->streams;
    state->streams = stream;
    pthread_mutex_unlock(&state->lock);
}

int32_t xpu_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                          void **native_out, struct ds_accel_error *error)
{
    struct xpu_state *state = xpu_state(device);
    struct ze_queue_desc desc = {.tag = ZE_TAG_QUEUE,
                                 .ordinal = state->ordinal,
                                 .index = atomic_fetch_add(&state->next_queue, 1) %
                                          state->queue_count,
                                 .flags = state->is_in_order ? ZE_QUEUE_IN_ORDER : 0,
                                 .mode = ZE_QUEUE_ASYNCHRONOUS,
                                 .priority = priority < 0   ? ZE_PRIORITY_HIGH
                                             : priority > 0 ? ZE_PRIORITY_LOW
                                                            : ZE_PRIORITY_NORMAL};
    struct xpu_stream *stream = make_stream(state, NULL, 0);
    ze_result result;

    (void)flags; /* no stream waits implicitly for another stream */
    if (stream == NULL) {
        return xpu_no_host_memory(error, "stream_create");
    }
    xpu_streams_reap(state, 0);
    result = state->runtime->ze.zeCommandListCreateImmediate(state->context, state->unit->handle,
                                                             &desc, &stream->list);
    if (result != ZE_SUCCESS) {
        stream->is_wrapped = 1; /* free_stream() must not destroy a list that does not exist */
        free_stream(stream);
        return XPU_CHECK(device, result, error,
                         "zeCommandListCreateImmediate(device %u, ordinal %u, index %u)",
                         device->index, desc.ordinal, desc.index);
    }
    add_stream(state, stream);
    *native_out = stream;
    return DS_ACCEL_OK;
}

void xpu_stream_destroy(ds_accel_plugin_device_t *device, void *native)
{
    struct xpu_state *state = xpu_state(device);
    struct xpu_stream *stream = native;

    pthread_mutex_lock(&state->lock);
    stream->is_destroyed = 1;
    pthread_mutex_unlock(&state->lock);
    xpu_streams_reap(state, 0);
}

/*
 * Work of a stream with a lower priority number runs first. Level Zero's own values are 0 normal, 1
 * low, 2 high.
 */
int32_t xpu_stream_priority_range(ds_accel_plugin_device_t *device, int32_t *least_out,
                                  int32_t *greatest_out, struct ds_accel_error *error)
{
    (void)device;
    (void)error;
    *least_out = 1;
    *greatest_out = -1;
    return DS_ACCEL_OK;
}

/*
 * Pins the device's streams, so that they are not freed, and stores them in streams, at most
 * capacity of them. Returns the number of the device's streams, which may be larger.
 */
static uint32_t pin_streams(struct xpu_state *state, struct xpu_stream **streams, uint32_t capacity)
{
    uint32_t count = 0;

    pthread_mutex_lock(&state->lock);
    for (struct xpu_stream *stream = state->streams; stream != NULL; stream = stream->next) {
        if (count < capacity) {
            streams[count] = stream;
            stream->pins++;
        }
        count++;
    }
    pthread_mutex_unlock(&state->lock);
    return count;
}

static void unpin_streams(struct xpu_state *state, struct xpu_stream **streams, uint32_t count)
{
    pthread_mutex_lock(&state->lock);
    for (uint32_t i = 0; i < count; i++) {
        streams[i]->pins--;
    }
    pthread_mutex_unlock(&state->lock);
}

/* Returns false if the stream was unwrapped: its work is done, and its list must not be used. */
static uint32_t begin_wait(struct xpu_stream *stream)
{
    uint32_t may_wait;

    pthread_mutex_lock(&stream->state->lock);
    may_wait = !(stream->is_wrapped && stream->is_destroyed);
    stream->waits += may_wait;
    pthread_mutex_unlock(&stream->state->lock);
    return may_wait;
}

static void end_wait(struct xpu_stream *stream)
{
    pthread_mutex_lock(&stream->state->lock);
    if (--stream->waits == 0) {
        pthread_cond_signal(&stream->waited);
    }
    pthread_mutex_unlock(&stream->state->lock);
}

int32_t xpu_device_synchronize(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    struct xpu_state *state = xpu_state(device);
    struct xpu_stream **streams = NULL;
    uint32_t capacity = 16;
    uint32_t count;
    int32_t status = DS_ACCEL_OK;

    for (;;) {
        struct xpu_stream **more = realloc(streams, capacity * sizeof(struct xpu_stream *));

        if (more == NULL) {
            free(streams);
            return xpu_no_host_memory(error, "device_synchronize");
        }
        streams = more;
        count = pin_streams(state, streams, capacity);
        if (count <= capacity) {
            break;
        }
        unpin_streams(state, streams, capacity);
        capacity = count + 16;
    }
    for (uint32_t i = 0; i < count && status == DS_ACCEL_OK; i++) {
        if (begin_wait(streams[i])) {
            status = xpu_stream_synchronize(device, streams[i], error);
            end_wait(streams[i]);
        }
    }
    unpin_streams(state, streams, count);
    free(streams);
    xpu_streams_reap(state, 0);
    return status;
}

/* ---- host tasks ----------------------------------------------------------------------------- */

static void run_task(struct xpu_state *state, struct xpu_task *task)
{
    const struct ze_api *ze = &state->runtime->ze;

    /*
     * If the stream fails, the event is not signalled. The result of the wait is ignored, because
     * task->call must be called in any case. If the device is lost, vendor_tasks_abandon() calls
     * the program's task with the failure.
     */
    ze->zeEventHostSynchronize(task->reached->event, UINT64_MAX);
    task->call(task->argument);
    ze->zeEventHostSignal(task->done->event);
    xpu_mark_put(state, task->reached);
    xpu_mark_put(state, task->done);
    free(task);
}

static void *run_tasks(void *argument)
{
    struct xpu_stream *stream = argument;

    pthread_mutex_lock(&stream->task_lock);
    for (;;) {
        struct xpu_task *task = stream->tasks;

        if (task == NULL && stream->is_ending) {
            break;
        }
        if (task == NULL) {
            pthread_cond_wait(&stream->task_cond, &stream->task_lock);
            continue;
        }
        stream->tasks = task->next;
        if (stream->tasks == NULL) {
            stream->tasks_end = &stream->tasks;
        }
        pthread_mutex_unlock(&stream->task_lock);
        run_task(stream->state, task);
        pthread_mutex_lock(&stream->task_lock);
    }
    pthread_mutex_unlock(&stream->task_lock);
    return NULL;
}

/*
 * Starts the stream's thread, in which all signals are blocked, if it does not run yet. Returns 0,
 * or -1 if that fails. Caller holds stream->lock.
 */
static int start_thread(struct xpu_stream *stream)
{
    sigset_t all;
    sigset_t before;

    if (stream->has_thread) {
        return 0;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    stream->has_thread = pthread_create(&stream->thread, NULL, run_tasks, stream) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return stream->has_thread ? 0 : -1;
}

static void give_task(struct xpu_stream *stream, struct xpu_task *task)
{
    pthread_mutex_lock(&stream->task_lock);
    *stream->tasks_end = task;
    stream->tasks_end = &task->next;
    pthread_cond_signal(&stream->task_cond);
    pthread_mutex_unlock(&stream->task_lock);
}

/*
 * Caller holds stream->lock. The thread receives the task only after all commands for the task are
 * queued.
 */
static ze_result append_task(struct xpu_stream *stream, struct xpu_task *task,
                             struct xpu_mark *passed)
{
    const struct ze_api *ze = &stream->state->runtime->ze;
    ze_result result = ze->zeCommandListAppendBarrier(stream->list, task->reached->event, 0, NULL);

    if (result != ZE_SUCCESS) {
        return result;
    }
    task->reached->is_armed = 1;
    xpu_stream_touched(stream);
    result = xpu_stream_order(stream);
    if (result == ZE_SUCCESS) {
        result = ze->zeCommandListAppendBarrier(stream->list, passed->event, 1, &task->done->event);
    }
    if (result == ZE_SUCCESS) {
        task->done->is_armed = 1;
        passed->is_armed = 1;
        xpu_mark_add_passed(stream->state, task->done, passed);
        give_task(stream, task);
    }
    return result;
}

static int32_t append_captured(ds_accel_plugin_device_t *device, struct xpu_stream *stream,
                               void (*call)(void *argument), void *argument,
                               struct ds_accel_error *error)
{
    const struct ze_api *ze = &stream->state->runtime->ze;

    return XPU_CHECK(
        device,
        ze->zeCommandListAppendHostFunction(stream->list, call, argument, NULL, NULL, 0, NULL),
        error, "zeCommandListAppendHostFunction");
}

static int32_t make_task(ds_accel_plugin_device_t *device, struct xpu_stream *stream,
                         struct xpu_task *task, struct xpu_mark **passed_out,
                         struct ds_accel_error *error)
{
    int32_t status = xpu_mark_take(device, stream->state, 0, &task->reached, error);

    if (status == DS_ACCEL_OK) {
        status = xpu_mark_take(device, stream->state, 0, &task->done, error);
    }
    if (status == DS_ACCEL_OK) {
        status = xpu_mark_take(device, stream->state, 0, passed_out, error);
    }
    if (status == DS_ACCEL_OK && start_thread(stream) != 0) {
        status =
            plugin_fail(error, DS_ACCEL_ERR_LIMIT, "stream_host_task: no thread can be started");
    }
    return status;
}

int32_t xpu_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                             void (*call)(void *argument), void *argument,
                             struct ds_accel_error *error)
{
    struct xpu_stream *stream = native;
    struct xpu_mark *passed = NULL;
    struct xpu_task *task;
    int32_t status;

    pthread_mutex_lock(&stream->lock);
    if (xpu_stream_is_capturing(stream)) {
        status = append_captured(device, stream, call, argument, error);
        pthread_mutex_unlock(&stream->lock);
        return status;
    }
    task = calloc(1, sizeof(*task));
    if (task == NULL) {
        pthread_mutex_unlock(&stream->lock);
        return xpu_no_host_memory(error, "stream_host_task");
    }
    task->call = call;
    task->argument = argument;
    status = make_task(device, stream, task, &passed, error);
    if (status == DS_ACCEL_OK) {
        ze_result result = append_task(stream, task, passed);

        status = XPU_CHECK(device, result, error, "zeCommandListAppendBarrier(host task)");
    }
    pthread_mutex_unlock(&stream->lock);
    if (status < 0) {
        xpu_mark_put(stream->state, task->reached);
        xpu_mark_put(stream->state, task->done);
        xpu_mark_put(stream->state, passed);
        free(task);
    }
    return status;
}

/* ---- copies and fills ----------------------------------------------------------------------- */

static int32_t append_copy(ds_accel_plugin_device_t *device, struct xpu_stream *stream,
                           void *destination, const void *source, uint64_t size_bytes,
                           struct ds_accel_error *error)
{
    ze_result result;

    pthread_mutex_lock(&stream->lock);
    result = xpu_stream_order(stream);
    if (result == ZE_SUCCESS) {
        result = stream->state->runtime->ze.zeCommandListAppendMemoryCopy(
            stream->list, destination, source, size_bytes, NULL, 0, NULL);
    }
    if (result == ZE_SUCCESS) {
        xpu_stream_touched(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    return XPU_CHECK(device, result, error, "zeCommandListAppendMemoryCopy(%p, %p, %llu bytes)",
                     destination, source, (unsigned long long)size_bytes);
}

/* The runtime infers the direction from the addresses. */
int32_t xpu_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                       const void *source, uint64_t size_bytes, uint32_t kind,
                       struct ds_accel_error *error)
{
    (void)kind;
    return append_copy(device, native_stream, destination, source, size_bytes, error);
}

int32_t xpu_copy_peer_async(ds_accel_plugin_device_t *device, void *native_stream,
                            ds_accel_plugin_device_t *destination_device, void *destination,
                            ds_accel_plugin_device_t *source_device, const void *source,
                            uint64_t size_bytes, struct ds_accel_error *error)
{
    uint32_t can = destination_device == source_device;

    if (!can) {
        int32_t status = xpu_peer_can_access(source_device, destination_device, &can, error);

        if (status < 0) {
            return status;
        }
    }
    if (!can) {
        return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                           "mem_copy_peer_async: device %u cannot access device %u",
                           source_device->index, destination_device->index);
    }
    return append_copy(device, native_stream, destination, source, size_bytes, error);
}

static int is_one_byte(uint32_t pattern, uint32_t pattern_bytes)
{
    const unsigned char *bytes = (const unsigned char *)&pattern;

    for (uint32_t i = 1; i < pattern_bytes; i++) {
        if (bytes[i] != bytes[0]) {
            return 0;
        }
    }
    return 1;
}

int32_t xpu_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                       uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                       struct ds_accel_error *error)
{
    struct xpu_stream *stream = native_stream;
    const uint64_t size_bytes = count * pattern_bytes;
    ze_result result;

    if (pattern_bytes > stream->state->max_pattern_bytes) {
        if (!is_one_byte(pattern, pattern_bytes)) {
            return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                               "mem_fill_async: the device fills with up to %zu bytes, not %u",
                               stream->state->max_pattern_bytes, pattern_bytes);
        }
        pattern_bytes = 1;
    }
    pthread_mutex_lock(&stream->lock);
    result = xpu_stream_order(stream);
    if (result == ZE_SUCCESS) {
        result = stream->state->runtime->ze.zeCommandListAppendMemoryFill(
            stream->list, destination, &pattern, pattern_bytes, size_bytes, NULL, 0, NULL);
    }
    if (result == ZE_SUCCESS) {
        xpu_stream_touched(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    return XPU_CHECK(device, result, error,
                     "zeCommandListAppendMemoryFill(%p, pattern of %u, %llu bytes)", destination,
                     pattern_bytes, (unsigned long long)size_bytes);
}

/* ---- native handles ------------------------------------------------------------------------- */

/*
 * Returns 0 for objects without a native handle: an event of the plugin uses several Level Zero
 * events in turn, and the handle of an executable graph is not made available.
 */
uint64_t xpu_native_handle(ds_accel_plugin_device_t *device, uint32_t kind, void *native)
{
    (void)device;
    switch (kind) {
    case DS_ACCEL_NATIVE_STREAM:
        return (uint64_t)(uintptr_t)((struct xpu_stream *)native)->list;
    case DS_ACCEL_NATIVE_GRAPH:
        return xpu_graph_handle(native);
    default:
        return 0;
    }
}

/*
 * Wraps the program's immediate list, which may be ordered or not: the plugin appends a barrier
 * before each of its commands.
 */
int32_t xpu_native_wrap(ds_accel_plugin_device_t *device, uint32_t kind, uint64_t handle,
                        void **native_out, struct ds_accel_error *error)
{
    struct xpu_stream *stream;

    if (kind != DS_ACCEL_NATIVE_STREAM) {
        return vendor_unsupported(error, "native_wrap",
                                  "of Level Zero only immediate command lists are wrapped");
    }
    stream = make_stream(xpu_state(device), (ze_list_t)(uintptr_t)handle, 1);
    if (stream == NULL) {
        return xpu_no_host_memory(error, "native_wrap");
    }
    add_stream(xpu_state(device), stream);
    *native_out = stream;
    return DS_ACCEL_OK;
}

/*
 * Waits for the list's work, and then until no thread in xpu_device_synchronize() uses the list,
 * because the program may destroy the list once this function has returned.
 */
void xpu_native_unwrap(ds_accel_plugin_device_t *device, uint32_t kind, void *native)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    struct xpu_stream *stream = native;
    struct xpu_state *state = stream->state;

    (void)kind;
    xpu_stream_synchronize(device, stream, &ignored);
    pthread_mutex_lock(&state->lock);
    stream->is_destroyed = 1;
    stream->pins++; /* keeps the stream while this thread waits for the others */
    while (stream->waits > 0) {
        pthread_cond_wait(&stream->waited, &state->lock);
    }
    stream->pins--;
    pthread_mutex_unlock(&state->lock);
    xpu_streams_reap(state, 0);
}
