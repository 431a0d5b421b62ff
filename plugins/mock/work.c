/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Work of a queue: copies, fills, host tasks and records of events.
 *
 * The thread that queues work runs it at once, so that work runs in the order of the calls and no
 * other thread is needed. Captured work is stored in the graph, and runs on the thread that
 * launches the graph. Only the completion time is simulated: each piece of work completes at
 *
 *     max(now, completion of the queue's earlier work, events it waits for) + latency + bytes/rate
 *
 * and queries, waits and events use that time. Data is therefore written earlier than a program may
 * assume; a host task, too, has run when stream_host_task returns.
 *
 * Addresses are checked at the call, and again when a graph that contains the work is launched. The
 * checks reject every address at which a real device would fault, except an invalid host address:
 * memory that is not in the plugin's register counts as host memory.
 */
#include "mock.h"

#define ANYWHERE 0u
#define ON_HOST 1u
#define ON_DEVICE 2u

/* The source or destination of a transfer. */
struct end {
    const char *role;
    const ds_accel_plugin_device_t *device; /* the device that must own the memory; NULL: any */
    const void *address;
    uint32_t place;
    uint32_t access; /* required access: DS_ACCEL_VMEM_ACCESS_READ or ACCESS_WRITE */
};
#define ACCESS_WRITE (DS_ACCEL_VMEM_ACCESS_READ_WRITE & ~DS_ACCEL_VMEM_ACCESS_READ)

/* ---- checks; the caller holds instance->lock ------------------------------------------------ */

static const char *check_block(const struct mock_block *block, const struct end *end)
{
    int is_device = block->kind == DS_ACCEL_POINTER_DEVICE;
    int is_reachable = is_device || block->kind == DS_ACCEL_POINTER_MANAGED ||
                       (block->flags & DS_ACCEL_PINNED_MAPPED) != 0;

    if (end->place == ON_HOST && is_device) {
        return "is device memory";
    }
    if (end->place == ON_DEVICE && !is_reachable) {
        return "is not device memory";
    }
    if (end->device != NULL && block->device != end->device) {
        return "belongs to another device";
    }
    if ((block->access & end->access) == 0) {
        return "is mapped without that access";
    }
    return NULL;
}

/* Checks one end of a transfer. Returns NULL, or the error. A range may span adjacent mappings. */
static const char *check_end(const ds_accel_plugin_instance_t *instance, const struct end *end,
                             uint64_t size_bytes)
{
    const char *position = end->address;
    uint64_t left = size_bytes;

    if (position == NULL || size_bytes > UINTPTR_MAX - (uintptr_t)position) {
        return "is no range";
    }
    while (left > 0) {
        const struct mock_block *block = mock_block_find(instance, position);
        const char *problem;
        uint64_t here;

        if (block == NULL) {
            /*
             * Memory that is not in the plugin's register belongs to the host, unless the range
             * began in a registered block.
             */
            if (end->place == ON_DEVICE) {
                return "is not, or not in whole, live device memory";
            }
            return left == size_bytes ? NULL : "goes past the end of its allocation";
        }
        problem = check_block(block, end);
        if (problem != NULL) {
            return problem;
        }
        here = block->size_bytes - (uint64_t)(position - block->base);
        if (here >= left) {
            return NULL;
        }
        if (block->source != MOCK_SOURCE_MAPPING) {
            return "goes past the end of its allocation";
        }
        position += here;
        left -= here;
    }
    return NULL;
}

static uint32_t place_of(const struct mock_work *work, int is_destination)
{
    switch (work->copy_kind) {
    case DS_ACCEL_COPY_HOST_TO_HOST:
        return ON_HOST;
    case DS_ACCEL_COPY_HOST_TO_DEVICE:
        return is_destination ? ON_DEVICE : ON_HOST;
    case DS_ACCEL_COPY_DEVICE_TO_HOST:
        return is_destination ? ON_HOST : ON_DEVICE;
    case DS_ACCEL_COPY_DEVICE_TO_DEVICE:
        return ON_DEVICE;
    default:
        return ANYWHERE;
    }
}

static int overlap(const struct mock_work *work)
{
    uintptr_t destination = (uintptr_t)work->destination;
    uintptr_t source = (uintptr_t)work->source;

    return destination < source ? source - destination < work->size_bytes
                                : destination - source < work->size_bytes;
}

int32_t mock_work_check(const ds_accel_plugin_device_t *device, const struct mock_work *work,
                        const char *slot, struct ds_accel_error *error)
{
    ds_accel_plugin_instance_t *instance = device->instance;
    const struct end ends[] = {
        {"destination", work->destination_device, work->destination,
         work->kind == MOCK_WORK_FILL ? ON_DEVICE : place_of(work, 1), ACCESS_WRITE},
        {"source", work->source_device, work->source, place_of(work, 0), DS_ACCEL_VMEM_ACCESS_READ},
    };
    size_t end_count = work->kind == MOCK_WORK_COPY ? 2 : 1;

    if (work->size_bytes == 0 || (work->kind != MOCK_WORK_COPY && work->kind != MOCK_WORK_FILL)) {
        return DS_ACCEL_OK;
    }
    for (size_t i = 0; i < end_count; i++) {
        const char *problem;

        pthread_mutex_lock(&instance->lock);
        problem = check_end(instance, &ends[i], work->size_bytes);
        pthread_mutex_unlock(&instance->lock);
        if (problem != NULL) {
            return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: %s %p with %llu bytes %s", slot,
                               ends[i].role, ends[i].address, (unsigned long long)work->size_bytes,
                               problem);
        }
    }
    if (work->kind == MOCK_WORK_COPY && overlap(work)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: %p and %p overlap within %llu bytes",
                           slot, work->destination, work->source,
                           (unsigned long long)work->size_bytes);
    }
    return DS_ACCEL_OK;
}

/* ---- running work --------------------------------------------------------------------------- */

static void fill(const struct mock_work *work)
{
    unsigned char *destination = work->destination;
    size_t left = (size_t)work->size_bytes;
    size_t done = left < work->pattern_bytes ? 0 : work->pattern_bytes;

    memcpy(destination, work->pattern, done);
    while (done > 0 && done < left) { /* double the part that is filled */
        size_t part = done < left - done ? done : left - done;

        memcpy(destination + done, destination, part);
        done += part;
    }
}

static void perform(const struct mock_work *work)
{
    if (work->kind == MOCK_WORK_COPY && work->size_bytes > 0) {
        memcpy(work->destination, work->source, (size_t)work->size_bytes);
    } else if (work->kind == MOCK_WORK_FILL) {
        fill(work);
    } else if (work->kind == MOCK_WORK_TASK) {
        work->task(work->user_data, DS_ACCEL_OK);
    }
}

static uint64_t cost_ns(const struct mock_options *options, const struct mock_work *work)
{
    double transfer_ns;

    if (work->kind == MOCK_WORK_TASK) {
        return options->launch_latency_ns;
    }
    if (work->kind == MOCK_WORK_RECORD) {
        return 0;
    }
    if (options->copy_bytes_per_s == 0) {
        return options->copy_latency_ns;
    }
    transfer_ns = (double)work->size_bytes * 1e9 / (double)options->copy_bytes_per_s;
    /* At most one year, so that the sum cannot overflow. */
    return options->copy_latency_ns + (uint64_t)(transfer_ns < 3.2e16 ? transfer_ns : 3.2e16);
}

void mock_work_run(ds_accel_plugin_stream_t *stream, const struct mock_work *work)
{
    ds_accel_plugin_instance_t *instance = stream->device->instance;
    uint64_t start_ns = plugin_now_ns();

    perform(work);
    pthread_mutex_lock(&instance->lock);
    mock_queue_advance(stream, start_ns, cost_ns(&instance->options, work));
    if (work->kind == MOCK_WORK_RECORD) {
        work->mark->recorded = 1;
        mock_mark_uncapture(work->mark);
        work->mark->done_ns = stream->queue->done_ns;
        mock_mark_publish(work->mark);
    }
    pthread_mutex_unlock(&instance->lock);
}

/*
 * Returns the stream's DS_ACCEL_CAPTURING_* state. If the stream is capturing, adds the work to the
 * capture, and sets *result_out to -1 if there is no memory for it. Otherwise *result_out is 0.
 */
static uint32_t capture(ds_accel_plugin_stream_t *stream, const struct mock_work *work,
                        int *result_out)
{
    struct mock_queue *queue = stream->queue;
    uint32_t capturing;

    *result_out = 0;
    pthread_mutex_lock(&stream->device->instance->lock);
    capturing = mock_capture_state(queue);
    if (capturing == DS_ACCEL_CAPTURING_YES) {
        *result_out = mock_capture_append(queue, work);
    }
    pthread_mutex_unlock(&stream->device->instance->lock);
    return capturing;
}

int32_t mock_work_submit(ds_accel_plugin_stream_t *stream, const struct mock_work *work,
                         const char *slot, struct ds_accel_error *error)
{
    uint32_t capturing;
    int result;
    int32_t status = mock_work_check(stream->device, work, slot, error);

    if (status < 0) {
        return status;
    }
    capturing = capture(stream, work, &result);
    if (capturing == DS_ACCEL_CAPTURING_BROKEN) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE, "%s: the stream's capture is broken", slot);
    }
    if (result != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: no memory for the capture", slot);
    }
    if (capturing == DS_ACCEL_CAPTURING_NO) {
        mock_work_run(stream, work);
    }
    return DS_ACCEL_OK;
}

/* ---- the functions -------------------------------------------------------------------------- */

static int32_t check_copy_kind(uint32_t kind, const char *slot, struct ds_accel_error *error)
{
    if (kind < DS_ACCEL_COPY_HOST_TO_HOST || kind > DS_ACCEL_COPY_INFER) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: unknown kind %u", slot, kind);
    }
    return DS_ACCEL_OK;
}

static int32_t mock_mem_copy(ds_accel_plugin_device_t *device, void *destination,
                             const void *source, uint64_t size_bytes, uint32_t kind,
                             struct ds_accel_error *error)
{
    const struct mock_work work = {.kind = MOCK_WORK_COPY,
                                   .copy_kind = kind,
                                   .destination = destination,
                                   .source = source,
                                   .size_bytes = size_bytes};
    uint64_t start_ns = plugin_now_ns();
    int32_t status = mock_enter_device(device, "mem_copy", error);

    if (status == DS_ACCEL_OK) {
        status = check_copy_kind(kind, "mem_copy", error);
    }
    if (status == DS_ACCEL_OK) {
        status = mock_work_check(device, &work, "mem_copy", error);
    }
    if (status < 0) {
        return status;
    }
    perform(&work);
    mock_wait_until(device->instance, "mem_copy",
                    start_ns + cost_ns(&device->instance->options, &work));
    return DS_ACCEL_OK;
}

static int32_t mock_mem_copy_async(ds_accel_plugin_stream_t *stream, void *destination,
                                   const void *source, uint64_t size_bytes, uint32_t kind,
                                   struct ds_accel_error *error)
{
    const struct mock_work work = {.kind = MOCK_WORK_COPY,
                                   .copy_kind = kind,
                                   .destination = destination,
                                   .source = source,
                                   .size_bytes = size_bytes};
    int32_t status = mock_enter_stream(stream, "mem_copy_async", error);

    if (status == DS_ACCEL_OK) {
        status = check_copy_kind(kind, "mem_copy_async", error);
    }
    if (status < 0) {
        return status;
    }
    return mock_work_submit(stream, &work, "mem_copy_async", error);
}

static int32_t mock_mem_copy_peer_async(ds_accel_plugin_stream_t *stream,
                                        ds_accel_plugin_device_t *destination_device,
                                        void *destination, ds_accel_plugin_device_t *source_device,
                                        const void *source, uint64_t size_bytes,
                                        struct ds_accel_error *error)
{
    const struct mock_work work = {.kind = MOCK_WORK_COPY,
                                   .copy_kind = DS_ACCEL_COPY_DEVICE_TO_DEVICE,
                                   .destination_device = destination_device,
                                   .source_device = source_device,
                                   .destination = destination,
                                   .source = source,
                                   .size_bytes = size_bytes};
    const char *slot = "mem_copy_peer_async";
    int32_t status = mock_enter_stream(stream, slot, error);

    if (status == DS_ACCEL_OK) {
        status = mock_check_peer(stream->device, destination_device, slot, error);
    }
    if (status == DS_ACCEL_OK) {
        status = mock_check_peer(stream->device, source_device, slot, error);
    }
    if (status < 0) {
        return status;
    }
    return mock_work_submit(stream, &work, slot, error);
}

static int32_t mock_mem_fill_async(ds_accel_plugin_stream_t *stream, void *destination,
                                   const void *pattern, uint32_t pattern_bytes, uint64_t size_bytes,
                                   struct ds_accel_error *error)
{
    struct mock_work work = {.kind = MOCK_WORK_FILL,
                             .pattern_bytes = pattern_bytes,
                             .destination = destination,
                             .size_bytes = size_bytes};
    int32_t status = mock_enter_stream(stream, "mem_fill_async", error);

    if (status < 0) {
        return status;
    }
    if (pattern == NULL || (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4) ||
        size_bytes % pattern_bytes != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "mem_fill_async: pattern is NULL or not of 1, 2 or 4 bytes (%u), or "
                           "%llu bytes are no multiple of it",
                           pattern_bytes, (unsigned long long)size_bytes);
    }
    memcpy(work.pattern, pattern, pattern_bytes);
    return mock_work_submit(stream, &work, "mem_fill_async", error);
}

static int32_t mock_stream_host_task(ds_accel_plugin_stream_t *stream, ds_accel_host_task_t task,
                                     void *user_data, struct ds_accel_error *error)
{
    const struct mock_work work = {.kind = MOCK_WORK_TASK, .task = task, .user_data = user_data};
    int32_t status = mock_enter_stream(stream, "stream_host_task", error);

    if (status < 0) {
        return status;
    }
    if (task == NULL) {
        return mock_null(error, "stream_host_task", "task");
    }
    return mock_work_submit(stream, &work, "stream_host_task", error);
}

void mock_work_fill(struct ds_accel_plugin *table)
{
    table->mem_copy = mock_mem_copy;
    table->mem_copy_async = mock_mem_copy_async;
    table->mem_copy_peer_async = mock_mem_copy_peer_async;
    table->mem_fill_async = mock_mem_fill_async;
    table->stream_host_task = mock_stream_host_task;
}
