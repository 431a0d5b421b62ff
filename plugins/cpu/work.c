/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Work of a stream: copies, fills, host tasks, marks of events. Each becomes a struct cpu_work,
 * which is done at once, queued for the stream's worker or, while the stream captures, kept in the
 * order of the calls. Arguments are checked first, so that neither a queue nor a graph holds
 * anything that can fail.
 *
 * mem_copy() is not stream work: the calling thread copies at once, without regard to queued work.
 * A caller that copies memory used by a stream waits for the stream first.
 */
#include "cpu.h"

/* ---- doing ---------------------------------------------------------------------------------- */

/* Repeat the pattern by copying the filled part, twice as much each time. */
static void fill(char *destination, const unsigned char *pattern, uint32_t pattern_bytes,
                 size_t size_bytes)
{
    size_t filled = pattern_bytes;

    if (pattern_bytes == 1) {
        memset(destination, pattern[0], size_bytes);
        return;
    }
    if (size_bytes == 0) {
        return;
    }
    memcpy(destination, pattern, pattern_bytes);
    while (filled < size_bytes) {
        size_t more = filled < size_bytes - filled ? filled : size_bytes - filled;

        memcpy(destination + filled, destination, more);
        filled += more;
    }
}

void cpu_work_run(const struct cpu_work *work)
{
    switch (work->kind) {
    case CPU_WORK_COPY:
        /* memmove: the same buffer on both sides is harmless on a device, and so it is here. */
        if (work->size_bytes > 0) {
            memmove(work->destination, work->source, (size_t)work->size_bytes);
        }
        break;
    case CPU_WORK_FILL:
        if (work->size_bytes > 0) {
            fill(work->destination, work->pattern, work->pattern_bytes, (size_t)work->size_bytes);
        }
        break;
    case CPU_WORK_TASK:
        work->task(work->user_data, DS_ACCEL_OK);
        break;
    case CPU_WORK_RECORD:
        if (work->mark != NULL) {
            cpu_mark_reach(work->mark);
        } else {
            cpu_event_set_reached(work->event);
        }
        break;
    case CPU_WORK_WAIT:
        cpu_mark_wait(work->mark, CPU_NEVER);
        break;
    case CPU_WORK_LAUNCH:
        cpu_launch_run(work->launch);
        break;
    case CPU_WORK_FREE:
        cpu_block_free(work->block);
        break;
    }
}

void cpu_work_release(struct cpu_work *work)
{
    cpu_mark_put(work->mark);
    if (work->launch != NULL) {
        cpu_launch_release(work->launch);
    }
}

int32_t cpu_work_submit(ds_accel_plugin_stream_t *stream, const struct cpu_work *work,
                        const char *call, struct ds_accel_error *error)
{
    size_t node;

    if (cpu_capture_state(stream) != DS_ACCEL_CAPTURING_NO) {
        return cpu_capture_append(stream, work, call, &node, error);
    }
    if (stream->queue != NULL) {
        return cpu_queue_submit(stream->queue, work, call, error);
    }
    cpu_work_run(work);
    return DS_ACCEL_OK;
}

/* ---- copies and fills ----------------------------------------------------------------------- */

static int32_t check_copy(const char *call, const void *destination, const void *source,
                          uint64_t size_bytes, struct ds_accel_error *error)
{
    if (size_bytes > 0 && (destination == NULL || source == NULL)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s(%llu bytes): %s is NULL", call,
                           (unsigned long long)size_bytes,
                           destination == NULL ? "destination" : "source");
    }
    if (size_bytes > PTRDIFF_MAX) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s(%llu bytes): more than an address space holds", call,
                           (unsigned long long)size_bytes);
    }
    return DS_ACCEL_OK;
}

static int32_t check_kind(const char *call, uint32_t kind, struct ds_accel_error *error)
{
    if (kind < DS_ACCEL_COPY_HOST_TO_HOST || kind > DS_ACCEL_COPY_INFER) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: no copy is of kind %u", call, kind);
    }
    return DS_ACCEL_OK;
}

static struct cpu_work copy_work(void *destination, const void *source, uint64_t size_bytes)
{
    struct cpu_work work;

    memset(&work, 0, sizeof(work));
    work.kind = CPU_WORK_COPY;
    work.destination = destination;
    work.source = source;
    work.size_bytes = size_bytes;
    return work;
}

static int32_t cpu_mem_copy(ds_accel_plugin_device_t *device, void *destination, const void *source,
                            uint64_t size_bytes, uint32_t kind, struct ds_accel_error *error)
{
    struct cpu_work work = copy_work(destination, source, size_bytes);
    int32_t status;

    if (device == NULL) {
        return cpu_null(error, "mem_copy: device");
    }
    status = check_kind("mem_copy", kind, error);
    if (status == DS_ACCEL_OK) {
        status = check_copy("mem_copy", destination, source, size_bytes, error);
    }
    if (status == DS_ACCEL_OK) {
        cpu_work_run(&work);
    }
    return status;
}

static int32_t cpu_mem_copy_async(ds_accel_plugin_stream_t *stream, void *destination,
                                  const void *source, uint64_t size_bytes, uint32_t kind,
                                  struct ds_accel_error *error)
{
    struct cpu_work work = copy_work(destination, source, size_bytes);
    int32_t status;

    if (stream == NULL) {
        return cpu_null(error, "mem_copy_async: stream");
    }
    status = check_kind("mem_copy_async", kind, error);
    if (status == DS_ACCEL_OK) {
        status = check_copy("mem_copy_async", destination, source, size_bytes, error);
    }
    return status < 0 ? status : cpu_work_submit(stream, &work, "mem_copy_async", error);
}

static int32_t cpu_mem_copy_peer_async(ds_accel_plugin_stream_t *stream,
                                       ds_accel_plugin_device_t *destination_device,
                                       void *destination, ds_accel_plugin_device_t *source_device,
                                       const void *source, uint64_t size_bytes,
                                       struct ds_accel_error *error)
{
    struct cpu_work work = copy_work(destination, source, size_bytes);
    int32_t status;

    if (stream == NULL || destination_device == NULL || source_device == NULL) {
        return cpu_null(error, "mem_copy_peer_async: stream, destination_device or source_device");
    }
    status = check_copy("mem_copy_peer_async", destination, source, size_bytes, error);
    return status < 0 ? status : cpu_work_submit(stream, &work, "mem_copy_peer_async", error);
}

static int32_t cpu_mem_fill_async(ds_accel_plugin_stream_t *stream, void *destination,
                                  const void *pattern, uint32_t pattern_bytes, uint64_t size_bytes,
                                  struct ds_accel_error *error)
{
    struct cpu_work work;
    int32_t status;

    if (stream == NULL || pattern == NULL) {
        return cpu_null(error, "mem_fill_async: stream or pattern");
    }
    if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "mem_fill_async: a pattern of %u bytes; it must have 1, 2 or 4",
                           pattern_bytes);
    }
    if (size_bytes % pattern_bytes != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "mem_fill_async: %llu bytes are no multiple of the pattern's %u",
                           (unsigned long long)size_bytes, pattern_bytes);
    }
    status = check_copy("mem_fill_async", destination, pattern, size_bytes, error);
    if (status < 0) {
        return status;
    }
    memset(&work, 0, sizeof(work));
    work.kind = CPU_WORK_FILL;
    work.destination = destination;
    work.size_bytes = size_bytes;
    work.pattern_bytes = pattern_bytes;
    memcpy(work.pattern, pattern, pattern_bytes);
    return cpu_work_submit(stream, &work, "mem_fill_async", error);
}

/* ---- host tasks ----------------------------------------------------------------------------- */

static int32_t cpu_stream_host_task(ds_accel_plugin_stream_t *stream, ds_accel_host_task_t task,
                                    void *user_data, struct ds_accel_error *error)
{
    struct cpu_work work;

    if (stream == NULL || task == NULL) {
        return cpu_null(error, "stream_host_task: stream or task");
    }
    memset(&work, 0, sizeof(work));
    work.kind = CPU_WORK_TASK;
    work.task = task;
    work.user_data = user_data;
    return cpu_work_submit(stream, &work, "stream_host_task", error);
}

void cpu_work_fill(struct ds_accel_plugin *table)
{
    table->mem_copy = cpu_mem_copy;
    table->mem_copy_async = cpu_mem_copy_async;
    table->mem_copy_peer_async = cpu_mem_copy_peer_async;
    table->mem_fill_async = cpu_mem_fill_async;
    table->stream_host_task = cpu_stream_host_task;
}
