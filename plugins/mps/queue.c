/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A stream is a command queue, which executes its command buffers in order. When the command buffer
 * that was committed last is complete, all work is complete.
 *
 * Memory is shared, so the host does much of the work: copies and fills that the GPU cannot execute
 * (see memory.c), and host tasks. A thread of the stream does this work in stream order:
 *
 *      queue:   ... | signal n on "reached", wait for n on "done" | ...
 *      thread:        waits for "reached", does the work, sets "done"
 *
 * There are two events so that only the GPU sets "reached" and only the thread sets "done". The
 * values of each event therefore ascend, even after a failure.
 *
 * A command buffer can fail after it was committed. The marks in it, which are the signals of
 * recorded events, are then never reached. Queries of such a mark, and waits on the host, fail; a
 * queue that waits for the mark waits until the GPU's own watchdog intervenes.
 *
 * An event consists of a shared event and the value of the latest mark. If an event is recorded
 * again before its mark is reached, it gets a new shared event, because two queues could set the
 * values of one shared event in any order.
 */
#include "mps.h"

#include <signal.h>
#include <time.h>

#define POLL_NS 20000 /* interval between two readings of a value that the GPU sets */

static void pause_poll(void)
{
    nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
}

/*
 * Stops host copies. After a program has learnt that the device is lost, it may free all memory
 * that the device's streams use. Therefore the host never copies for these streams after this
 * function returns.
 */
static void stop_copies(struct mps_device *state)
{
    atomic_store(&state->is_lost, 1);
    pthread_rwlock_wrlock(&state->copying);
    pthread_rwlock_unlock(&state->copying);
}

/*
 * Returns DS_ACCEL_OK, or the status of a command buffer that has failed. If the device is lost,
 * stops host copies.
 */
static int32_t check_buffer(ds_accel_plugin_device_t *device, struct mps_runtime *runtime,
                            objc_id buffer, const char *call, struct ds_accel_error *error)
{
    objc_id cause;
    int32_t status;
    int64_t code;

    if (mps_send_word(runtime, buffer, runtime->sel.status) != MTL_STATUS_ERROR) {
        return DS_ACCEL_OK;
    }
    cause = mps_send_id(runtime, buffer, runtime->sel.error);
    code = cause == NULL ? 1 : (int64_t)mps_send_word(runtime, cause, runtime->sel.code);
    status = vendor_check(device->instance, device, code == 0 ? 1 : code, error,
                          "MTLCommandBuffer %s", call);
    if (status == DS_ACCEL_ERR_DEVICE_LOST) {
        stop_copies(device->state);
    }
    return status;
}

static void replace(struct mps_runtime *runtime, objc_id *place, objc_id object)
{
    objc_id former = *place;

    *place = object == NULL ? NULL : runtime->objc.objc_retain(object);
    if (former != NULL) {
        runtime->objc.objc_release(former);
    }
}

int32_t mps_commit(struct mps_stream *stream,
                   void (*encode)(struct mps_runtime *runtime, objc_id buffer, void *argument),
                   void *argument, struct ds_accel_error *error)
{
    struct mps_runtime *runtime = stream->runtime;
    void *pool = runtime->objc.objc_autoreleasePoolPush();
    objc_id buffer = mps_send_id(runtime, stream->queue, runtime->sel.commandBuffer);
    int32_t status;

    if (buffer == NULL) {
        status = plugin_fail(error, DS_ACCEL_ERR_DRIVER, "MTLCommandQueue commandBuffer: nil");
    } else {
        if (encode != NULL) {
            encode(runtime, buffer, argument);
        }
        mps_send(runtime, buffer, runtime->sel.commit);
        status = check_buffer(stream->device, runtime, buffer, "commit", error);
    }
    if (status == DS_ACCEL_OK) {
        replace(runtime, &stream->last, buffer);
    }
    runtime->objc.objc_autoreleasePoolPop(pool);
    return status;
}

/* ---- host work of a stream ------------------------------------------------------------------ */

/*
 * Waits until the task may run, and returns 0. Returns -1 if the command buffer that signals the
 * task's number has failed, because the stream then never reaches that number.
 */
static int wait_for_turn(struct mps_stream *stream, const struct mps_task *task)
{
    struct mps_runtime *runtime = stream->runtime;

    while (mps_send_word(runtime, stream->reached, runtime->sel.signaledValue) < task->turn) {
        if (mps_send_word(runtime, task->boundary, runtime->sel.status) == MTL_STATUS_ERROR) {
            return -1;
        }
        pause_poll();
    }
    return 0;
}

static void do_task(struct mps_stream *stream, const struct mps_task *task)
{
    struct mps_device *state = stream->device->state;
    int is_turn = wait_for_turn(stream, task) == 0;

    if (task->drop == NULL) {
        task->call(task->argument);
        return;
    }
    pthread_rwlock_rdlock(&state->copying);
    if (is_turn && atomic_load(&state->is_lost) == 0) {
        task->call(task->argument);
    } else {
        task->drop(task->argument);
    }
    pthread_rwlock_unlock(&state->copying);
}

static void *work(void *argument)
{
    struct mps_stream *stream = argument;
    struct mps_runtime *runtime = stream->runtime;

    pthread_mutex_lock(&stream->lock);
    for (;;) {
        struct mps_task *task = stream->first_task;
        void *pool;

        if (task == NULL && stream->is_ending) {
            break;
        }
        if (task == NULL) {
            pthread_cond_wait(&stream->changed, &stream->lock);
            continue;
        }
        pthread_mutex_unlock(&stream->lock);
        pool = runtime->objc.objc_autoreleasePoolPush();
        do_task(stream, task);
        mps_send_value(runtime, stream->done, runtime->sel.setSignaledValue_, task->turn);
        runtime->objc.objc_autoreleasePoolPop(pool);
        pthread_mutex_lock(&stream->lock);
        stream->first_task = task->next;
        if (task->next == NULL) {
            stream->task_end = &stream->first_task;
        }
        pthread_cond_broadcast(&stream->changed);
        runtime->objc.objc_release(task->boundary);
        free(task);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

/*
 * Starts the stream's thread, in which all signals are blocked. Returns the result of
 * pthread_create().
 */
static int start_thread(struct mps_stream *stream)
{
    sigset_t all;
    sigset_t former;
    int result;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former);
    result = pthread_create(&stream->worker, NULL, work, stream);
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    return result;
}

/*
 * Creates the stream's two shared events and its thread, if they do not exist yet. Called for each
 * task; caller holds stream->lock.
 */
static int32_t start_worker(struct mps_stream *stream, struct ds_accel_error *error)
{
    struct mps_runtime *runtime = stream->runtime;

    if (stream->reached == NULL) {
        stream->reached = mps_send_id(runtime, runtime->device, runtime->sel.newSharedEvent);
    }
    if (stream->done == NULL) {
        stream->done = mps_send_id(runtime, runtime->device, runtime->sel.newSharedEvent);
    }
    if (stream->reached == NULL || stream->done == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_DRIVER, "MTLDevice newSharedEvent: nil");
    }
    if (!stream->has_worker) {
        if (start_thread(stream) != 0) {
            return plugin_fail(error, DS_ACCEL_ERR_LIMIT, "stream: no thread for the host's work");
        }
        stream->has_worker = 1;
    }
    return DS_ACCEL_OK;
}

static void encode_turn(struct mps_runtime *runtime, objc_id buffer, void *argument)
{
    struct mps_stream *stream = argument;

    mps_send_event(runtime, buffer, runtime->sel.encodeSignalEvent_value_, stream->reached,
                   stream->turn + 1);
    mps_send_event(runtime, buffer, runtime->sel.encodeWaitForEvent_value_, stream->done,
                   stream->turn + 1);
}

int32_t mps_stream_work(struct mps_stream *stream, void (*call)(void *argument),
                        void (*drop)(void *argument), void *argument, struct ds_accel_error *error)
{
    struct mps_task *task = calloc(1, sizeof(*task));
    int32_t status;

    if (task == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "stream_host_task: no memory");
    }
    pthread_mutex_lock(&stream->lock);
    status = start_worker(stream, error);
    if (status == DS_ACCEL_OK) {
        status = mps_commit(stream, encode_turn, stream, error);
    }
    if (status == DS_ACCEL_OK) {
        task->turn = ++stream->turn;
        task->boundary = stream->runtime->objc.objc_retain(stream->last);
        task->call = call;
        task->drop = drop;
        task->argument = argument;
        *stream->task_end = task;
        stream->task_end = &task->next;
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    if (status != DS_ACCEL_OK) {
        free(task);
    }
    return status;
}

/* A host task that was queued is called exactly once, even if the stream fails. */
int32_t mps_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                             void (*call)(void *argument), void *argument,
                             struct ds_accel_error *error)
{
    (void)device;
    return mps_stream_work(native, call, NULL, argument, error);
}

/* ---- streams -------------------------------------------------------------------------------- */

static struct mps_stream *make_stream(ds_accel_plugin_device_t *device, objc_id queue)
{
    struct mps_stream *stream = calloc(1, sizeof(*stream));

    if (stream != NULL) {
        stream->device = device;
        stream->runtime = mps_runtime(device);
        stream->queue = queue;
        stream->task_end = &stream->first_task;
        pthread_mutex_init(&stream->lock, NULL);
        pthread_cond_init(&stream->changed, NULL);
    }
    return stream;
}

int32_t mps_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                          void **native_out, struct ds_accel_error *error)
{
    struct mps_runtime *runtime = mps_runtime(device);
    objc_id queue = mps_send_id(runtime, runtime->device, runtime->sel.newCommandQueue);
    struct mps_stream *stream;

    (void)flags; /* no queue waits implicitly for another queue */
    (void)priority;
    if (queue == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_DRIVER, "MTLDevice newCommandQueue: nil");
    }
    stream = make_stream(device, queue);
    if (stream == NULL) {
        runtime->objc.objc_release(queue);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "stream_create: no memory");
    }
    *native_out = stream;
    return DS_ACCEL_OK;
}

/*
 * Returns the stream's last command buffer, retained; NULL: none. If the program owns the queue and
 * there is no last command buffer (see forget_last()), the function commits an empty one, which
 * also follows the work that the program has committed.
 */
static objc_id take_last(struct mps_stream *stream)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    objc_id last;

    pthread_mutex_lock(&stream->lock);
    if (stream->is_wrapped && stream->last == NULL) {
        mps_commit(stream, NULL, NULL, &ignored);
    }
    last = stream->last == NULL ? NULL : stream->runtime->objc.objc_retain(stream->last);
    pthread_mutex_unlock(&stream->lock);
    return last;
}

/*
 * If the program owns the queue, removes the command buffer seen from stream->last, so that the
 * next take_last() commits a new one: seen does not cover work that the program has committed
 * later.
 */
static void forget_last(struct mps_stream *stream, objc_id seen)
{
    pthread_mutex_lock(&stream->lock);
    if (stream->is_wrapped && stream->last == seen) {
        replace(stream->runtime, &stream->last, NULL);
    }
    pthread_mutex_unlock(&stream->lock);
}

/*
 * Waits for the host's work. After a failure, the state of the command queue does not show whether
 * host work is complete.
 */
static void wait_for_worker(struct mps_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    while (stream->first_task != NULL) {
        pthread_cond_wait(&stream->changed, &stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
}

int32_t mps_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                               struct ds_accel_error *error)
{
    struct mps_stream *stream = native;
    struct mps_runtime *runtime = stream->runtime;
    void *pool = runtime->objc.objc_autoreleasePoolPush();
    objc_id last;
    int32_t status = DS_ACCEL_OK;

    if (stream->is_wrapped) {
        pthread_mutex_lock(&stream->lock);
        status = mps_commit(stream, NULL, NULL, error);
        pthread_mutex_unlock(&stream->lock);
    }
    last = status == DS_ACCEL_OK ? take_last(stream) : NULL;
    if (last != NULL) {
        mps_send(runtime, last, runtime->sel.waitUntilCompleted);
        wait_for_worker(stream);
        status = check_buffer(device, runtime, last, "waitUntilCompleted", error);
        forget_last(stream, last);
        runtime->objc.objc_release(last);
    }
    runtime->objc.objc_autoreleasePoolPop(pool);
    return status;
}

int32_t mps_stream_query(ds_accel_plugin_device_t *device, void *native,
                         struct ds_accel_error *error)
{
    struct mps_stream *stream = native;
    struct mps_runtime *runtime = stream->runtime;
    void *pool = runtime->objc.objc_autoreleasePoolPush();
    objc_id last = take_last(stream);
    int32_t status = DS_ACCEL_OK;

    if (last != NULL) {
        status = check_buffer(device, runtime, last, "status", error);
        if (status == DS_ACCEL_OK &&
            mps_send_word(runtime, last, runtime->sel.status) < MTL_STATUS_COMPLETED) {
            status = DS_ACCEL_NOT_READY;
        } else {
            forget_last(stream, last);
        }
        runtime->objc.objc_release(last);
    }
    runtime->objc.objc_autoreleasePoolPop(pool);
    return status;
}

/*
 * The thread finishes its queued tasks and exits; work that was committed to the command queue is
 * still executed.
 */
static void free_stream(struct mps_stream *stream)
{
    struct mps_runtime *runtime = stream->runtime;

    pthread_mutex_lock(&stream->lock);
    stream->is_ending = 1;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    if (stream->has_worker) {
        pthread_join(stream->worker, NULL);
    }
    replace(runtime, &stream->last, NULL);
    replace(runtime, &stream->reached, NULL);
    replace(runtime, &stream->done, NULL);
    if (!stream->is_wrapped) {
        runtime->objc.objc_release(stream->queue);
    }
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

void mps_stream_destroy(ds_accel_plugin_device_t *device, void *native)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

    mps_stream_synchronize(device, native, &ignored);
    free_stream(native);
}

/* ---- events --------------------------------------------------------------------------------- */

int32_t mps_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                         struct ds_accel_error *error)
{
    struct mps_runtime *runtime = mps_runtime(device);
    struct mps_event *event = calloc(1, sizeof(*event));

    (void)flags; /* every command buffer has timestamps */
    if (event == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "event_create: no memory");
    }
    event->mark = mps_send_id(runtime, runtime->device, runtime->sel.newSharedEvent);
    if (event->mark == NULL) {
        free(event);
        return plugin_fail(error, DS_ACCEL_ERR_DRIVER, "MTLDevice newSharedEvent: nil");
    }
    *native_out = event;
    return DS_ACCEL_OK;
}

void mps_event_destroy(ds_accel_plugin_device_t *device, void *native)
{
    struct mps_runtime *runtime = mps_runtime(device);
    struct mps_event *event = native;

    replace(runtime, &event->buffer, NULL);
    runtime->objc.objc_release(event->mark);
    free(event);
}

static int is_reached(struct mps_runtime *runtime, const struct mps_event *event)
{
    return mps_send_word(runtime, event->mark, runtime->sel.signaledValue) >= event->value;
}

static void encode_mark(struct mps_runtime *runtime, objc_id buffer, void *argument)
{
    struct mps_event *event = argument;

    mps_send_event(runtime, buffer, runtime->sel.encodeSignalEvent_value_, event->mark,
                   event->value + 1);
}

int32_t mps_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                         struct ds_accel_error *error)
{
    struct mps_runtime *runtime = mps_runtime(device);
    struct mps_stream *stream = native_stream;
    struct mps_event *event = native;
    int32_t status;

    if (!is_reached(runtime, event)) {
        objc_id mark = mps_send_id(runtime, runtime->device, runtime->sel.newSharedEvent);

        if (mark == NULL) {
            return plugin_fail(error, DS_ACCEL_ERR_DRIVER, "MTLDevice newSharedEvent: nil");
        }
        runtime->objc.objc_release(event->mark);
        event->mark = mark;
        event->value = 0;
    }
    pthread_mutex_lock(&stream->lock);
    status = mps_commit(stream, encode_mark, event, error);
    if (status == DS_ACCEL_OK) {
        event->value++;
        replace(runtime, &event->buffer, stream->last);
    }
    pthread_mutex_unlock(&stream->lock);
    return status;
}

static void encode_wait(struct mps_runtime *runtime, objc_id buffer, void *argument)
{
    struct mps_event *event = argument;

    mps_send_event(runtime, buffer, runtime->sel.encodeWaitForEvent_value_, event->mark,
                   event->value);
}

int32_t mps_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                              struct ds_accel_error *error)
{
    struct mps_stream *stream = native;
    int32_t status;

    (void)device;
    pthread_mutex_lock(&stream->lock);
    status = mps_commit(stream, encode_wait, native_event, error);
    pthread_mutex_unlock(&stream->lock);
    return status;
}

/*
 * Returns DS_ACCEL_OK if the mark was reached, NOT_READY if not, or an error if the mark's command
 * buffer failed, because the mark is then never reached.
 */
int32_t mps_event_query(ds_accel_plugin_device_t *device, void *native,
                        struct ds_accel_error *error)
{
    struct mps_runtime *runtime = mps_runtime(device);
    struct mps_event *event = native;
    int32_t status = DS_ACCEL_OK;
    void *pool;

    if (is_reached(runtime, event)) {
        return DS_ACCEL_OK;
    }
    pool = runtime->objc.objc_autoreleasePoolPush();
    if (event->buffer != NULL) {
        status = check_buffer(device, runtime, event->buffer, "status", error);
    }
    runtime->objc.objc_autoreleasePoolPop(pool);
    return status < 0 ? status : DS_ACCEL_NOT_READY;
}

/*
 * Uses waitUntilCompleted, which has no timeout and needs no newer macOS. The mark is the last work
 * of its command buffer.
 */
int32_t mps_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                              struct ds_accel_error *error)
{
    struct mps_runtime *runtime = mps_runtime(device);
    struct mps_event *event = native;
    int32_t status = mps_event_query(device, native, error);

    if (status == DS_ACCEL_NOT_READY && event->buffer != NULL) {
        objc_id buffer = runtime->objc.objc_retain(event->buffer);
        void *pool = runtime->objc.objc_autoreleasePoolPush();

        mps_send(runtime, buffer, runtime->sel.waitUntilCompleted);
        status = check_buffer(device, runtime, buffer, "waitUntilCompleted", error);
        runtime->objc.objc_autoreleasePoolPop(pool);
        runtime->objc.objc_release(buffer);
    }
    return status;
}

/*
 * Returns the time from the end of one command buffer to the end of the other, in the GPU's clock.
 */
int32_t mps_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                             double *elapsed_ms_out, struct ds_accel_error *error)
{
    struct mps_runtime *runtime = mps_runtime(device);
    const struct mps_event *first = start;
    const struct mps_event *second = end;

    if (first->buffer == NULL || second->buffer == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE, "event_elapsed_ms: not recorded");
    }
    /* The mark is reached slightly before its command buffer is complete and has its times. */
    mps_send(runtime, first->buffer, runtime->sel.waitUntilCompleted);
    mps_send(runtime, second->buffer, runtime->sel.waitUntilCompleted);
    *elapsed_ms_out = (mps_send_double(runtime, second->buffer, runtime->sel.GPUEndTime) -
                       mps_send_double(runtime, first->buffer, runtime->sel.GPUEndTime)) *
                      1e3;
    return DS_ACCEL_OK;
}

/* ---- native handles ------------------------------------------------------------------------- */

uint64_t mps_native_handle(ds_accel_plugin_device_t *device, uint32_t kind, void *native)
{
    (void)device;
    if (kind == DS_ACCEL_NATIVE_STREAM) {
        return (uint64_t)(uintptr_t)((struct mps_stream *)native)->queue;
    }
    return (uint64_t)(uintptr_t)((struct mps_event *)native)->mark;
}

int32_t mps_native_wrap(ds_accel_plugin_device_t *device, uint32_t kind, uint64_t handle,
                        void **native_out, struct ds_accel_error *error)
{
    struct mps_stream *stream;

    if (kind != DS_ACCEL_NATIVE_STREAM) {
        return vendor_unsupported(error, "native_wrap",
                                  "a shared event alone does not say which value is meant");
    }
    stream = make_stream(device, (objc_id)(uintptr_t)handle);
    if (stream == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "native_wrap: no memory");
    }
    stream->is_wrapped = 1;
    *native_out = stream;
    return DS_ACCEL_OK;
}

void mps_native_unwrap(ds_accel_plugin_device_t *device, uint32_t kind, void *native)
{
    (void)device;
    if (kind == DS_ACCEL_NATIVE_STREAM) {
        free_stream(native);
    }
}
