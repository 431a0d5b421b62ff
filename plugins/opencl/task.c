/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Host work in a stream: host tasks, copies from host to host, and copies between devices, which
 * have separate contexts, so that the data passes through host memory.
 *
 * OpenCL's callbacks must not block and may run on a thread that the device itself needs, while a
 * task may take any time. A callback therefore only wakes the stream's own thread (a worker,
 * started with the first task), and the queue waits for the worker:
 *
 *      queue    ... marker ........................ barrier(gate) ... later work
 *                      | reached                        ^
 *      callback        +--> to the worker               | clSetUserEventStatus(gate)
 *      worker                  runs the task -----------+
 *
 * gate is a user event. The marker is flushed before the barrier is queued, because oclgrind
 * executes a whole queue within clFlush(): with the barrier in the queue it would wait forever, as
 * the callback, without which the task never runs and the gate stays closed, is invoked only later.
 *
 * A task must run exactly once if queuing it succeeded, and never if queuing failed; but once the
 * callback is set, the task runs even if the later calls fail. If one of them fails, the plugin
 * cancels the task; if the worker has already started it, the caller waits for the task instead,
 * which preserves the order that the barrier would have preserved.
 *
 * A worker cannot report a failed copy to the runtime without breaking the queue. The stream stores
 * the failure until a call synchronizes or queries the stream.
 */
#include "opencl.h"

#define STAGING_BYTES (UINT64_C(4) << 20)

#define GATE_TRIES 3

#define JOB_WAITS 0u
#define JOB_RUNS 1u
#define JOB_IS_OFF 2u
#define JOB_IS_DONE 3u

/*
 * A unit of work for the worker. Once the callback is set, the job is always passed to the worker
 * and moved from there to the list done.
 */
struct job {
    atomic_uint state; /* JOB_* */
    struct opencl_worker *worker;
    struct job *next;
    cl_event gate;

    opencl_task_t call; /* NULL: the job is a copy */
    void *argument;
    void *destination;
    const void *source;
    uint64_t size_bytes;
    struct opencl_range to; /* its member memory is retained; NULL there means host or shared
                             * memory */
    struct opencl_range from;
};

struct opencl_worker {
    /* A copy for the job, because a callback may run after the instance was shut down */
    struct cl_calls cl;
    const struct ds_accel_host *host;
    pthread_t thread;
    atomic_uint references; /* references held by the stream and the thread */

    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t changed;
    struct job *first;
    struct job *last;
    struct job *done;       /* freed by the next call that queues a job, or with the worker */
    uint64_t pending_count; /* callbacks that have not run, and jobs that are not finished */
    uint32_t is_stopping;
    uint32_t is_running;  /* a job is running now */
    uint32_t is_orphaned; /* no call waits for the queue any more: no further task starts */
    int32_t failure;      /* result of the first copy that failed; CL_SUCCESS: none */
};

/* ---- jobs ----------------------------------------------------------------------------------- */

static void release_memory(const struct cl_calls *cl, struct job *job)
{
    if (job->to.memory != NULL) {
        cl->clReleaseMemObject(job->to.memory);
    }
    if (job->from.memory != NULL) {
        cl->clReleaseMemObject(job->from.memory);
    }
    job->to.memory = NULL;
    job->from.memory = NULL;
}

static void free_job(const struct cl_calls *cl, struct job *job)
{
    release_memory(cl, job);
    free(job);
}

/* Copies one piece through host memory. Each call blocks until its copy is complete. */
static int32_t copy_piece(const struct job *job, void *staging, uint64_t offset, size_t size)
{
    const struct cl_calls *cl = &job->worker->cl;
    const struct opencl_range *from = &job->from;
    const struct opencl_range *to = &job->to;
    char *destination = (char *)job->destination + offset;
    const char *source = (const char *)job->source + offset;
    int32_t code = CL_SUCCESS;

    if (from->memory != NULL) {
        code = cl->clEnqueueReadBuffer(opencl_of(from->device)->service, from->memory, CL_TRUE,
                                       (uintptr_t)source - from->base, size, staging, CL_NO_EVENTS);
        source = staging;
    }
    if (code != CL_SUCCESS) {
        return code;
    }
    if (to->memory != NULL) {
        return cl->clEnqueueWriteBuffer(opencl_of(to->device)->service, to->memory, CL_TRUE,
                                        (uintptr_t)destination - to->base, size, source,
                                        CL_NO_EVENTS);
    }
    memmove(destination, source, size);
    return CL_SUCCESS;
}

static int32_t run_copy(const struct job *job)
{
    int is_staged = job->from.memory != NULL;
    uint64_t piece = is_staged && job->size_bytes > STAGING_BYTES ? STAGING_BYTES : job->size_bytes;
    void *staging = is_staged ? malloc((size_t)piece) : NULL;
    int32_t code = is_staged && staging == NULL ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;

    for (uint64_t offset = 0; offset < job->size_bytes && code == CL_SUCCESS; offset += piece) {
        uint64_t left = job->size_bytes - offset;

        code = copy_piece(job, staging, offset, (size_t)(left < piece ? left : piece));
    }
    free(staging);
    return code;
}

static void open_gate(const struct job *job, uint32_t is_silent)
{
    int32_t code = CL_INVALID_OPERATION;

    /*
     * All work after the gate would wait forever if the gate stayed closed, so the call is
     * repeated.
     */
    for (int i = 0; i < GATE_TRIES && code != CL_SUCCESS; i++) {
        code = job->worker->cl.clSetUserEventStatus(job->gate, CL_COMPLETE);
    }
    if (code != CL_SUCCESS && !is_silent) {
        vendor_log(job->worker->host, DS_ACCEL_LOG_ERROR,
                   "clSetUserEventStatus returned %d: a stream cannot continue", code);
    }
}

/* ---- the worker ----------------------------------------------------------------------------- */

static void put_worker(struct opencl_worker *worker)
{
    if (atomic_fetch_sub(&worker->references, 1) == 1) {
        pthread_cond_destroy(&worker->changed);
        pthread_mutex_destroy(&worker->lock);
        free(worker);
    }
}

static void keep_failure(struct opencl_worker *worker, int32_t code)
{
    pthread_mutex_lock(&worker->lock);
    if (worker->failure == CL_SUCCESS) {
        worker->failure = code;
    }
    pthread_mutex_unlock(&worker->lock);
}

/*
 * Frees finished jobs. Called by threads that call the runtime anyway, because the worker calls the
 * runtime only for copies and to open a gate; the worker calls it itself only at its end, if no
 * other thread will.
 */
static void free_done(struct opencl_worker *worker)
{
    struct job *job;

    pthread_mutex_lock(&worker->lock);
    job = worker->done;
    worker->done = NULL;
    pthread_mutex_unlock(&worker->lock);
    while (job != NULL) {
        struct job *next = job->next;

        worker->cl.clReleaseEvent(job->gate);
        free_job(&worker->cl, job);
        job = next;
    }
}

static void run_job(struct job *job)
{
    struct opencl_worker *worker = job->worker;
    uint32_t state = JOB_WAITS;
    int32_t code = CL_SUCCESS;
    uint32_t is_orphaned;

    pthread_mutex_lock(&worker->lock);
    is_orphaned = worker->is_orphaned;
    worker->is_running = 1;
    pthread_mutex_unlock(&worker->lock);
    if (atomic_compare_exchange_strong(&job->state, &state, JOB_RUNS)) {
        if (!is_orphaned && job->call != NULL) {
            job->call(job->argument);
        } else if (!is_orphaned) {
            code = run_copy(job);
            release_memory(&worker->cl, job);
        }
        keep_failure(worker, code); /* stored before the gate opens and the stream finishes */
        open_gate(job, is_orphaned);
    }
    pthread_mutex_lock(&worker->lock);
    if (state == JOB_WAITS) {
        atomic_store(&job->state, JOB_IS_DONE);
    }
    job->next = worker->done;
    worker->done = job;
    worker->is_running = 0;
    worker->pending_count--;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

static void *work(void *given)
{
    struct opencl_worker *worker = given;
    uint32_t is_orphaned;
    struct job *job;

    pthread_mutex_lock(&worker->lock);
    for (;;) {
        while (worker->first == NULL && !(worker->is_stopping && worker->pending_count == 0)) {
            pthread_cond_wait(&worker->changed, &worker->lock);
        }
        job = worker->first;
        if (job == NULL) {
            break;
        }
        worker->first = job->next;
        pthread_mutex_unlock(&worker->lock);
        run_job(job);
        pthread_mutex_lock(&worker->lock);
    }
    is_orphaned = worker->is_orphaned;
    pthread_mutex_unlock(&worker->lock);
    if (is_orphaned) {
        free_done(worker);
    }
    put_worker(worker);
    return NULL;
}

/*
 * Creates the stream's worker and starts its thread. On failure, returns NULL and sets *status_out
 * and *error.
 */
static struct opencl_worker *start_worker(struct opencl_stream *stream, int32_t *status_out,
                                          struct ds_accel_error *error)
{
    struct opencl_worker *worker = calloc(1, sizeof(*worker));
    int result;

    if (worker == NULL) {
        *status_out = plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "no memory for a stream's thread");
        return NULL;
    }
    worker->cl = opencl_of(stream->device)->runtime->cl;
    worker->host = stream->device->instance->host;
    atomic_init(&worker->references, 2);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->changed, NULL);
    result = pthread_create(&worker->thread, NULL, work, worker);
    if (result != 0) {
        atomic_store(&worker->references, 1);
        put_worker(worker);
        *status_out = plugin_fail(error, DS_ACCEL_ERR_LIMIT, "no thread for a stream's tasks: %s",
                                  strerror(result));
        return NULL;
    }
    return worker;
}

void opencl_worker_drain(struct opencl_worker *worker, uint32_t is_idle)
{
    if (worker == NULL) {
        return;
    }
    pthread_mutex_lock(&worker->lock);
    worker->is_orphaned = !is_idle;
    while (worker->is_running || (is_idle && worker->pending_count > 0)) {
        pthread_cond_wait(&worker->changed, &worker->lock);
    }
    pthread_mutex_unlock(&worker->lock);
}

void opencl_worker_stop(struct opencl_worker *worker, uint32_t is_idle)
{
    pthread_t thread;

    if (worker == NULL) {
        return;
    }
    opencl_worker_drain(worker, is_idle);
    thread = worker->thread;
    pthread_mutex_lock(&worker->lock);
    worker->is_stopping = 1;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    if (is_idle) {
        pthread_join(thread, NULL);
        free_done(worker);
    } else {
        pthread_detach(thread); /* the thread exits after its last callback */
    }
    put_worker(worker);
}

int32_t opencl_worker_failure(struct opencl_stream *stream, struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device = stream->device;
    struct opencl_worker *worker;
    int32_t code;

    pthread_mutex_lock(&stream->lock);
    worker = stream->worker;
    pthread_mutex_unlock(&stream->lock);
    if (worker == NULL) {
        return DS_ACCEL_OK;
    }
    pthread_mutex_lock(&worker->lock);
    code = worker->failure;
    worker->failure = CL_SUCCESS;
    pthread_mutex_unlock(&worker->lock);
    return vendor_check(device->instance, device, code, error,
                        "a copy through host memory in a stream of device %u", device->index);
}

/* ---- queuing -------------------------------------------------------------------------------- */

/*
 * Passes the job to the worker. Called by the runtime, so it must not block. status, which shows a
 * failure of the work before the marker, is ignored, because later calls on the stream report it.
 */
static void on_reached(cl_event mark, int32_t status, void *given)
{
    struct job *job = given;
    struct opencl_worker *worker = job->worker;

    (void)mark;
    (void)status;
    pthread_mutex_lock(&worker->lock);
    job->next = NULL;
    if (worker->first == NULL) {
        worker->first = job;
    } else {
        worker->last->next = job;
    }
    worker->last = job;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

/* Cancels the job and returns 1; if the job has started, waits for it and returns 0. */
static int call_off(struct job *job)
{
    struct opencl_worker *worker = job->worker;
    uint32_t state = JOB_WAITS;

    if (atomic_compare_exchange_strong(&job->state, &state, JOB_IS_OFF)) {
        open_gate(job, 0);
        return 1;
    }
    pthread_mutex_lock(&worker->lock);
    while (atomic_load(&job->state) != JOB_IS_DONE) {
        pthread_cond_wait(&worker->changed, &worker->lock);
    }
    pthread_mutex_unlock(&worker->lock);
    return 0;
}

static void count_pending(struct opencl_worker *worker, int64_t change)
{
    pthread_mutex_lock(&worker->lock);
    worker->pending_count += (uint64_t)change;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

/*
 * Calls on_reached() with the job when the mark completes. On success, the job belongs to the
 * worker, which lists it in worker->done after it ran; free_done() frees it later.
 */
static int32_t set_callback(struct opencl_stream *stream, struct job *job, cl_event mark,
                            struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device = stream->device;
    int32_t code;

    count_pending(job->worker, 1);
    code = OPENCL_CALL(device, clSetEventCallback)(mark, CL_COMPLETE, on_reached, job);
    if (code != CL_SUCCESS) {
        count_pending(job->worker, -1);
    }
    return vendor_check(device->instance, device, code, error, "clSetEventCallback(CL_COMPLETE)");
}

/* Queues the marker, its callback and the barrier. Sets *is_set_out if the callback will run. */
static int32_t queue_parts(struct opencl_stream *stream, struct job *job, uint32_t *is_set_out,
                           struct ds_accel_error *error)
{
    const struct cl_calls *cl = &opencl_of(stream->device)->runtime->cl;
    cl_event mark = NULL;
    int32_t code = cl->clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &mark);
    int32_t status;

    opencl_touch(stream);
    if (code != CL_SUCCESS) {
        return vendor_check(stream->device->instance, stream->device, code, error,
                            "clEnqueueMarkerWithWaitList(device %u)", stream->device->index);
    }
    status = set_callback(stream, job, mark, error);
    cl->clReleaseEvent(mark);
    if (status < 0) {
        return status;
    }
    *is_set_out = 1;
    status = opencl_queued(stream, CL_SUCCESS, "clEnqueueMarkerWithWaitList", error);
    if (status == DS_ACCEL_OK) {
        code = cl->clEnqueueBarrierWithWaitList(stream->queue, 1, &job->gate, NULL);
        status = opencl_queued(stream, code, "clEnqueueBarrierWithWaitList", error);
    }
    return status;
}

/* Queues the job. Takes ownership of the job, even on failure. */
static int32_t queue_job(struct opencl_stream *stream, struct job *job,
                         struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device = stream->device;
    uint32_t is_set = 0;
    int32_t code = CL_SUCCESS;
    int32_t status = DS_ACCEL_OK;

    if (stream->worker == NULL) {
        stream->worker = start_worker(stream, &status, error);
    }
    if (stream->worker == NULL) {
        free_job(&opencl_of(device)->runtime->cl, job);
        return status;
    }
    job->worker = stream->worker;
    free_done(job->worker);
    atomic_init(&job->state, JOB_WAITS);
    job->gate = OPENCL_CALL(device, clCreateUserEvent)(opencl_of(device)->context, &code);
    status = vendor_check(device->instance, device, code, error, "clCreateUserEvent(device %u)",
                          device->index);
    if (status < 0) {
        free_job(&opencl_of(device)->runtime->cl, job);
        return status;
    }
    status = queue_parts(stream, job, &is_set, error);
    if (!is_set) {
        OPENCL_CALL(device, clReleaseEvent)(job->gate);
        free_job(&opencl_of(device)->runtime->cl, job);
        return status;
    }
    return status < 0 && !call_off(job) ? DS_ACCEL_OK : status;
}

static struct job *make_job(struct ds_accel_error *error)
{
    struct job *job = calloc(1, sizeof(*job));

    if (job == NULL) {
        plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "no memory for a task");
    }
    return job;
}

int32_t opencl_task_queue(struct opencl_stream *stream, opencl_task_t call, void *argument,
                          struct ds_accel_error *error)
{
    struct job *job = make_job(error);

    if (job == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    job->call = call;
    job->argument = argument;
    return queue_job(stream, job, error);
}

int32_t opencl_memmove_queue(struct opencl_stream *stream, void *destination, const void *source,
                             uint64_t size_bytes, struct ds_accel_error *error)
{
    struct job *job = make_job(error);

    if (job == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    job->destination = destination;
    job->source = source;
    job->size_bytes = size_bytes;
    return queue_job(stream, job, error);
}

/*
 * Finds one end of a copy between devices in the list of memory. Retains a buffer, because the
 * program may free it before the worker starts the copy, which the runtime does not know of.
 */
static int32_t find_peer(struct opencl_stream *stream, const char *name, const void *address,
                         uint64_t size_bytes, struct opencl_range *range,
                         struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device = stream->device;
    struct opencl_range found;

    if (opencl_map_find(&opencl_of(device)->runtime->memory, address, &found) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "the %s %p is not device memory", name,
                           address);
    }
    if (size_bytes > found.size_bytes - ((uintptr_t)address - found.base)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "the %s %p: %llu bytes reach past the end of the allocation", name,
                           address, (unsigned long long)size_bytes);
    }
    if (found.memory != NULL) {
        int32_t code = OPENCL_CALL(device, clRetainMemObject)(found.memory);

        if (code != CL_SUCCESS) {
            return vendor_check(device->instance, device, code, error, "clRetainMemObject(%p)",
                                (const void *)found.memory);
        }
    }
    *range = found;
    return DS_ACCEL_OK;
}

int32_t opencl_peer_queue(struct opencl_stream *stream, void *destination, const void *source,
                          uint64_t size_bytes, struct ds_accel_error *error)
{
    struct job *job = make_job(error);
    int32_t status;

    if (job == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    job->destination = destination;
    job->source = source;
    job->size_bytes = size_bytes;
    status = find_peer(stream, "destination", destination, size_bytes, &job->to, error);
    if (status == DS_ACCEL_OK) {
        status = find_peer(stream, "source", source, size_bytes, &job->from, error);
    }
    if (status < 0) {
        free_job(&opencl_of(stream->device)->runtime->cl, job);
        return status;
    }
    return queue_job(stream, job, error);
}
