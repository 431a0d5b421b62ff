/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Host tasks, and the objects that a graph needs for as long as it can run.
 *
 * A queued task always runs exactly once: with DS_ACCEL_OK when the runtime calls it, or with an
 * error if the device is lost or closed before. After an error most runtimes call no task, but some
 * still do. Therefore either the runtime's call or the frame claims the task, whichever is first.
 * A task that the frame claimed stays allocated until the device is closed, so that a late call by
 * the runtime finds it claimed and returns.
 *
 *      queued:    in pending -> the runtime calls it: in running, then freed
 *                            -> abandoned: runs with the error, kept until the device closes
 *      captured:  in the keep of the capture -> runs with each launch, freed with the keep
 *
 * When a device is lost, the runtime's waits fail at once, possibly while another thread runs a
 * task. The frame then waits for that task before it returns the error, because the program may
 * free memory of the task afterwards.
 *
 * A keep is a reference-counted list of tasks. The capture, then the graph, each instance of the
 * graph and each launch in flight hold a reference; an instance may be destroyed while its launch
 * is in flight. A task on a thread of the runtime may release the last reference, so freeing the
 * keep calls only free().
 */
#include "vendor_frame.h"

#include <assert.h>

struct vendor_task {
    struct vendor_task *next, *previous;
    struct vendor_task *chain; /* list of the tasks that vendor_tasks_abandon() calls */
    ds_accel_plugin_device_t *device;
    const ds_accel_plugin_stream_t *stream; /* stream of the task; compared, never dereferenced */
    ds_accel_host_task_t call;              /* NULL: the task only owns a reference to a keep
                                               (held) */
    void *user_data;
    void *memory;             /* freed with the task */
    struct vendor_keep *held; /* reference released with the task */
    unsigned opening;         /* number of the device's opening in which the task was made */
    uint32_t is_taken;        /* a thread has claimed the task to run it; is_taken and is_over are
                                 guarded by the device's task_lock */
    uint32_t is_over;         /* the abandoned task has run */
};

static void free_task(struct vendor_task *task)
{
    free(task->memory);
    vendor_keep_put(task->held);
    free(task);
}

/* ---- lists ---------------------------------------------------------------------------------- */

static void link_task(struct vendor_task **list, struct vendor_task *task)
{
    task->previous = NULL;
    task->next = *list;
    if (task->next != NULL) {
        task->next->previous = task;
    }
    *list = task;
}

static void unlink_task(struct vendor_task **list, struct vendor_task *task)
{
    assert((task->previous == NULL) == (*list == task));
    if (task->previous != NULL) {
        task->previous->next = task->next;
    } else {
        *list = task->next;
    }
    if (task->next != NULL) {
        task->next->previous = task->previous;
    }
}

static void free_list(struct vendor_task *list)
{
    while (list != NULL) {
        struct vendor_task *task = list;

        list = task->next;
        free_task(task);
    }
}

/* ---- keeps ---------------------------------------------------------------------------------- */

struct vendor_keep *vendor_keep_create(ds_accel_plugin_device_t *device)
{
    struct vendor_keep *keep = calloc(1, sizeof(*keep));

    if (keep != NULL) {
        keep->device = device;
        atomic_init(&keep->references, 1);
        pthread_mutex_init(&keep->lock, NULL);
    }
    return keep;
}

void vendor_keep_get(struct vendor_keep *keep)
{
    if (keep != NULL) {
        assert(atomic_load(&keep->references) > 0);
        atomic_fetch_add(&keep->references, 1);
    }
}

void vendor_keep_put(struct vendor_keep *keep)
{
    assert(keep == NULL || atomic_load(&keep->references) > 0);
    if (keep != NULL && atomic_fetch_sub(&keep->references, 1) == 1) {
        free_list(keep->items);
        pthread_mutex_destroy(&keep->lock);
        free(keep);
    }
}

int vendor_keep_is_empty(struct vendor_keep *keep)
{
    int answer;

    if (keep == NULL) {
        return 1;
    }
    pthread_mutex_lock(&keep->lock);
    answer = keep->items == NULL;
    pthread_mutex_unlock(&keep->lock);
    return answer;
}

static atomic_uint capture_count;
static atomic_ullong capture_era;

static pthread_mutex_t capture_lock = PTHREAD_MUTEX_INITIALIZER; /* held while a capture begins */

unsigned vendor_capture_count(void)
{
    return atomic_load_explicit(&capture_count, memory_order_relaxed);
}

uint64_t vendor_capture_era(void)
{
    return atomic_load_explicit(&capture_era, memory_order_relaxed);
}

/* A capture that begins has precedence, so that threads that wait again and again do not keep it
   from beginning. */
#ifdef PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
static pthread_rwlock_t wait_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
#else
static pthread_rwlock_t wait_lock = PTHREAD_RWLOCK_INITIALIZER;
#endif

void vendor_waits_lock(void)
{
    if (vendor_backend.device_wait_breaks_captures) {
        pthread_rwlock_rdlock(&wait_lock);
    }
}

void vendor_waits_unlock(void)
{
    if (vendor_backend.device_wait_breaks_captures) {
        pthread_rwlock_unlock(&wait_lock);
    }
}

void vendor_waits_exclude(void)
{
    if (vendor_backend.device_wait_breaks_captures) {
        pthread_rwlock_wrlock(&wait_lock);
    }
}

void vendor_captures_lock(void)
{
    pthread_mutex_lock(&capture_lock);
}

void vendor_captures_unlock(void)
{
    pthread_mutex_unlock(&capture_lock);
}

int32_t vendor_keep_open(ds_accel_plugin_stream_t *stream, uint32_t mode, const char *slot,
                         struct ds_accel_error *error)
{
    struct vendor_device *frame = stream->device->frame;
    struct vendor_stream *state = stream->frame;
    struct vendor_keep *keep = vendor_keep_create(stream->device);

    assert(state->capture == NULL);
    if (keep == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: no memory", slot);
    }
    keep->thread = pthread_self();
    keep->mode = mode;
    pthread_mutex_lock(&frame->task_lock);
    keep->next = frame->captures;
    frame->captures = keep;
    pthread_mutex_unlock(&frame->task_lock);
    state->capture = keep;
    if (atomic_fetch_add(&capture_count, 1) == 0) {
        atomic_fetch_add(&capture_era, 1);
    }
    return DS_ACCEL_OK;
}

struct vendor_keep *vendor_keep_close(ds_accel_plugin_stream_t *stream)
{
    struct vendor_device *frame = stream->device->frame;
    struct vendor_stream *state = stream->frame;
    struct vendor_keep *keep = state->capture;
    struct vendor_keep **link;

    if (keep == NULL) {
        return NULL;
    }
    assert(vendor_capture_count() > 0);
    atomic_fetch_sub(&capture_count, 1);
    state->capture = NULL;
    pthread_mutex_lock(&frame->task_lock);
    for (link = &frame->captures; *link != keep; link = &(*link)->next) {
    }
    *link = keep->next;
    keep->next = NULL;
    pthread_mutex_unlock(&frame->task_lock);
    return keep;
}

/*
 * Put the task into the keep of the capture that records the stream. A stream that joined another
 * stream's capture through an event has no keep of its own: it uses the keep of the device's only
 * capture. If the device has several captures or none, the right capture is unknown, and the task
 * is kept until the device is closed. Returns 0, or -1 if out of memory.
 */
static int keep_task(ds_accel_plugin_stream_t *stream, struct vendor_task *task)
{
    struct vendor_device *frame = stream->device->frame;
    struct vendor_stream *state = stream->frame;
    struct vendor_keep *keep = state->capture;
    int result = 0;

    pthread_mutex_lock(&frame->task_lock);
    if (keep == NULL && frame->captures != NULL && frame->captures->next == NULL) {
        keep = frame->captures;
    }
    if (keep == NULL) {
        keep = vendor_keep_create(stream->device);
        if (keep != NULL) {
            keep->next = frame->orphans;
            frame->orphans = keep;
        }
    }
    if (keep != NULL) {
        pthread_mutex_lock(&keep->lock);
        link_task(&keep->items, task);
        pthread_mutex_unlock(&keep->lock);
    } else {
        result = -1;
    }
    pthread_mutex_unlock(&frame->task_lock);
    return result;
}

/* ---- running -------------------------------------------------------------------------------- */

/* The plugin instance of the host task that this thread is running, or NULL. */
static _Thread_local const ds_accel_plugin_instance_t *runs_for;

static void call_task(const struct vendor_task *task, int32_t status)
{
    const ds_accel_plugin_instance_t *before = runs_for;

    runs_for = task->device->instance;
    task->call(task->user_data, status);
    runs_for = before;
}

int vendor_tasks_run_here(ds_accel_plugin_instance_t *instance)
{
    return runs_for == instance ||
           (vendor_backend.runs_tasks != NULL && vendor_backend.runs_tasks(instance));
}

static void run_captured(void *argument)
{
    call_task(argument, DS_ACCEL_OK);
}

static void run_queued(void *argument)
{
    struct vendor_task *task = argument;
    struct vendor_device *frame = task->device->frame;

    pthread_mutex_lock(&frame->task_lock);
    if (task->is_taken) {
        pthread_mutex_unlock(&frame->task_lock);
        return; /* the task was abandoned, and is freed when the device is closed */
    }
    assert(!task->is_over);
    task->is_taken = 1;
    unlink_task(&frame->pending, task);
    link_task(&frame->running, task);
    pthread_mutex_unlock(&frame->task_lock);
    call_task(task, DS_ACCEL_OK);
    pthread_mutex_lock(&frame->task_lock);
    unlink_task(&frame->running, task);
    pthread_mutex_unlock(&frame->task_lock);
    free_task(task);
}

void vendor_tasks_abandon(ds_accel_plugin_device_t *device, unsigned opening, int32_t status)
{
    struct vendor_device *frame = device->frame;
    struct vendor_task *chain = NULL;
    struct vendor_task *next;

    pthread_mutex_lock(&frame->task_lock);
    for (struct vendor_task *task = frame->pending; task != NULL; task = next) {
        next = task->next;
        assert(!task->is_taken && !task->is_over);
        if (task->opening > opening) {
            continue;
        }
        task->is_taken = 1;
        unlink_task(&frame->pending, task);
        link_task(&frame->abandoned, task);
        task->chain = chain; /* pending has the latest task first; chain has the oldest first */
        chain = task;
    }
    pthread_mutex_unlock(&frame->task_lock);
    for (; chain != NULL; chain = next) {
        next = chain->chain; /* once is_over is set, a closing thread may free the task */
        call_task(chain, status);
        pthread_mutex_lock(&frame->task_lock);
        chain->is_over = 1;
        pthread_mutex_unlock(&frame->task_lock);
    }
}

struct settling {
    struct vendor_device *frame;
    const ds_accel_plugin_stream_t *stream; /* NULL: all streams */
    unsigned opening;                       /* tasks of later openings are ignored */
};

static int is_any(const struct vendor_task *list, const struct settling *settling)
{
    for (; list != NULL; list = list->next) {
        if (!list->is_over && list->opening <= settling->opening &&
            (settling->stream == NULL || list->stream == settling->stream)) {
            return 1;
        }
    }
    return 0;
}

static int32_t ask_settled(void *subject, struct ds_accel_error *error)
{
    const struct settling *settling = subject;
    struct vendor_device *frame = settling->frame;
    int answer;

    (void)error;
    pthread_mutex_lock(&frame->task_lock);
    answer = is_any(frame->running, settling) || is_any(frame->abandoned, settling);
    pthread_mutex_unlock(&frame->task_lock);
    return answer ? DS_ACCEL_NOT_READY : DS_ACCEL_OK;
}

void vendor_tasks_settle(ds_accel_plugin_device_t *device, const ds_accel_plugin_stream_t *stream,
                         uint64_t timeout_ns)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    struct settling settling = {device->frame, stream, VENDOR_ANY_OPENING};

    vendor_poll(ask_settled, &settling, timeout_ns, "", &ignored);
}

void vendor_tasks_finish(ds_accel_plugin_device_t *device, unsigned opening)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    struct settling settling = {device->frame, NULL, opening};

    vendor_poll(ask_settled, &settling, UINT64_MAX, "", &ignored);
}

int vendor_tasks_are_pending(ds_accel_plugin_device_t *device)
{
    struct vendor_device *frame = device->frame;
    int answer;

    pthread_mutex_lock(&frame->task_lock);
    answer = frame->pending != NULL || frame->running != NULL;
    pthread_mutex_unlock(&frame->task_lock);
    return answer;
}

int vendor_tasks_are_left(ds_accel_plugin_device_t *device)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    struct settling settling = {device->frame, NULL, VENDOR_ANY_OPENING};

    return vendor_tasks_are_pending(device) || ask_settled(&settling, &ignored) != DS_ACCEL_OK;
}

void vendor_tasks_destroy(ds_accel_plugin_device_t *device)
{
    struct vendor_device *frame = device->frame;

    assert(frame->captures == NULL);
    free_list(frame->abandoned);
    frame->abandoned = NULL;
    while (frame->orphans != NULL) {
        struct vendor_keep *keep = frame->orphans;

        frame->orphans = keep->next;
        vendor_keep_put(keep);
    }
}

/* ---- queueing ------------------------------------------------------------------------------- */

static struct vendor_task *make_task(ds_accel_plugin_device_t *device, ds_accel_host_task_t call,
                                     void *user_data)
{
    const struct vendor_device *frame = device->frame;
    struct vendor_task *task = calloc(1, sizeof(*task));

    if (task != NULL) {
        task->opening = atomic_load_explicit(&frame->opening, memory_order_relaxed);
        task->device = device;
        task->call = call;
        task->user_data = user_data;
    }
    return task;
}

/* Queue a task during a capture. Takes ownership of the task: the keep owns it even if the runtime
   rejects it, and then only frees it. */
static int32_t submit_captured(ds_accel_plugin_stream_t *stream, struct vendor_task *task,
                               struct ds_accel_error *error)
{
    int32_t status;

    if (keep_task(stream, task) != 0) {
        free_task(task);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "stream_host_task: no memory");
    }
    VENDOR_WORK(
        stream->device, error, status,
        vendor_backend.stream_host_task(stream->device, stream->native, run_captured, task, error));
    return status;
}

/*
 * Queue a task outside a capture. The runtime may run the task, which frees it, before this
 * returns. After a failure, *is_back_out is 1 if the caller owns the task again, or 0 if the task
 * was abandoned meanwhile.
 */
static int32_t submit_queued(ds_accel_plugin_stream_t *stream, struct vendor_task *task,
                             int *is_back_out, struct ds_accel_error *error)
{
    struct vendor_device *frame = stream->device->frame;
    int32_t status;

    *is_back_out = 0;
    task->stream = stream;
    pthread_mutex_lock(&frame->task_lock);
    link_task(&frame->pending, task);
    pthread_mutex_unlock(&frame->task_lock);
    VENDOR_WORK(
        stream->device, error, status,
        vendor_backend.stream_host_task(stream->device, stream->native, run_queued, task, error));
    if (status < 0) {
        pthread_mutex_lock(&frame->task_lock);
        if (!task->is_taken) {
            unlink_task(&frame->pending, task);
            *is_back_out = 1;
        }
        pthread_mutex_unlock(&frame->task_lock);
    }
    return status;
}

int32_t vendor_task_submit(ds_accel_plugin_stream_t *stream, ds_accel_host_task_t call,
                           void *user_data, struct ds_accel_error *error)
{
    uint32_t is_capturing = 0;
    int is_back = 0;
    struct vendor_task *task;
    int32_t status = vendor_stream_is_capturing(stream, &is_capturing, error);

    if (status < 0) {
        return status;
    }
    task = make_task(stream->device, call, user_data);
    if (task == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "stream_host_task: no memory");
    }
    if (is_capturing) {
        return submit_captured(stream, task, error);
    }
    status = submit_queued(stream, task, &is_back, error);
    if (is_back) {
        free_task(task);
        return status;
    }
    return DS_ACCEL_OK; /* queued; or the runtime rejected the task after another thread had
                           abandoned it, which runs it */
}

/* ---- holding memory that queued work uses --------------------------------------------------- */

static void forget(void *user_data, int32_t status)
{
    (void)user_data;
    (void)status;
}

/* Wait for the stream, because no host task can report that the work is complete; then free the
   task. If the wait fails, work may still run: the memory is kept until the device is closed. */
static int32_t wait_and_free(ds_accel_plugin_stream_t *stream, struct vendor_task *task,
                             struct ds_accel_error *error)
{
    struct vendor_device *frame = stream->device->frame;
    int32_t status = DS_ACCEL_OK;

    VENDOR_WORK(stream->device, error, status,
                vendor_backend.stream_synchronize(stream->device, stream->native, error));
    if (status == DS_ACCEL_OK) {
        free_task(task);
        return DS_ACCEL_OK;
    }
    pthread_mutex_lock(&frame->task_lock);
    task->is_over = 1;
    link_task(&frame->abandoned, task);
    pthread_mutex_unlock(&frame->task_lock);
    return status;
}

/* Queue the task after the work on the stream that uses the task's memory. If the runtime has no
   host tasks or rejects the task, wait for the stream instead. Takes ownership of the task. */
static int32_t hold_behind(ds_accel_plugin_stream_t *stream, struct vendor_task *task,
                           struct ds_accel_error *error)
{
    struct ds_accel_error refusal = {.struct_size = sizeof(refusal)};
    int is_back = 1;

    if (vendor_backend.stream_host_task != NULL) {
        int32_t status = submit_queued(stream, task, &is_back, &refusal);

        if (!is_back) {
            return status < 0 ? vendor_fail_lost(stream->device, "a task", error) : status;
        }
    }
    return wait_and_free(stream, task, error);
}

struct vendor_task *vendor_task_holding(ds_accel_plugin_device_t *device, void *memory)
{
    struct vendor_task *task = make_task(device, forget, NULL);

    if (task != NULL) {
        task->memory = memory;
    }
    return task;
}

void vendor_task_destroy(struct vendor_task *task)
{
    free_task(task);
}

int32_t vendor_task_hold(ds_accel_plugin_stream_t *stream, struct vendor_task *task,
                         struct ds_accel_error *error)
{
    return hold_behind(stream, task, error);
}

int32_t vendor_task_keep(ds_accel_plugin_stream_t *stream, struct vendor_task *task,
                         struct ds_accel_error *error)
{
    if (keep_task(stream, task) == 0) {
        return DS_ACCEL_OK;
    }
    free_task(task);
    return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "mem_fill_async: no memory");
}

int32_t vendor_keep_until_passed(struct vendor_keep *keep, ds_accel_plugin_stream_t *stream,
                                 struct ds_accel_error *error)
{
    struct vendor_task *task = make_task(stream->device, forget, NULL);
    int32_t status;

    vendor_keep_get(keep);
    if (task != NULL) {
        task->held = keep;
        return hold_behind(stream, task, error);
    }
    VENDOR_WORK(stream->device, error, status,
                vendor_backend.stream_synchronize(stream->device, stream->native, error));
    if (status == DS_ACCEL_OK) {
        vendor_keep_put(keep);
    }
    return status; /* if the wait failed, no task exists that could release the keep, which is never
                      freed */
}

int32_t vendor_keep_in_capture(struct vendor_keep *keep, ds_accel_plugin_stream_t *stream,
                               struct ds_accel_error *error)
{
    struct vendor_task *task = make_task(stream->device, NULL, NULL);

    if (task == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "graph_launch: no memory");
    }
    vendor_keep_get(keep);
    task->held = keep;
    if (keep_task(stream, task) != 0) {
        free_task(task);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "graph_launch: no memory");
    }
    return DS_ACCEL_OK;
}
