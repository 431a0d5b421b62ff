/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Work of a stream: copies, fills, host tasks, marks of events. Each piece of work becomes a struct
 * cpu_work, which is done at once, queued for the stream's worker or, while the stream captures,
 * added to the capture in the order of the calls. The frame has checked the arguments, so that
 * queued and captured work can't fail.
 *
 * mem_copy() is not stream work: the calling thread copies at once, without regard to queued work.
 * A caller that copies memory used by a stream waits for the stream first.
 */
#include "cpu.h"

/* ---- running work --------------------------------------------------------------------------- */

/* Fill memory with a pattern: each copy of the filled part doubles its size. */
static void fill(char *destination, const unsigned char *pattern, uint32_t pattern_bytes,
                 size_t size_bytes)
{
    size_t filled = pattern_bytes;

    if (size_bytes == 0) {
        return;
    }
    if (pattern_bytes == 1) {
        memset(destination, pattern[0], size_bytes);
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
        /* memmove(), because a copy of a buffer to itself is harmless on a device. */
        if (work->size_bytes > 0) {
            memmove(work->destination, work->source, (size_t)work->size_bytes);
        }
        break;
    case CPU_WORK_FILL:
        fill(work->destination, work->pattern, work->pattern_bytes, (size_t)work->size_bytes);
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
        work->before(work->user_data);
        cpu_give(work->device, work->destination, work->size_bytes);
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

int32_t cpu_work_submit(struct cpu_stream *stream, const struct cpu_work *work, const char *call,
                        struct ds_accel_error *error)
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

static int32_t check_size(uint64_t size_bytes, const char *call, struct ds_accel_error *error)
{
    if (size_bytes > PTRDIFF_MAX) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s(%llu bytes): more than an address space holds", call,
                           (unsigned long long)size_bytes);
    }
    return DS_ACCEL_OK;
}

int32_t cpu_copy(ds_accel_plugin_device_t *device, void *destination, const void *source,
                 uint64_t size_bytes, uint32_t kind, struct ds_accel_error *error)
{
    int32_t status = check_size(size_bytes, "mem_copy", error);

    (void)device;
    (void)kind;
    if (status == DS_ACCEL_OK) {
        memmove(destination, source, (size_t)size_bytes);
    }
    return status;
}

static int32_t submit_copy(struct cpu_stream *stream, void *destination, const void *source,
                           uint64_t size_bytes, const char *call, struct ds_accel_error *error)
{
    struct cpu_work work;
    int32_t status = check_size(size_bytes, call, error);

    if (status < 0) {
        return status;
    }
    if (cpu_runs_at_once(stream)) {
        if (size_bytes > 0) {
            memmove(destination, source, (size_t)size_bytes);
        }
        return DS_ACCEL_OK;
    }
    memset(&work, 0, sizeof(work));
    work.kind = CPU_WORK_COPY;
    work.destination = destination;
    work.source = source;
    work.size_bytes = size_bytes;
    return cpu_work_submit(stream, &work, call, error);
}

int32_t cpu_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                       const void *source, uint64_t size_bytes, uint32_t kind,
                       struct ds_accel_error *error)
{
    (void)device;
    (void)kind;
    return submit_copy(native_stream, destination, source, size_bytes, "mem_copy_async", error);
}

int32_t cpu_copy_peer_async(ds_accel_plugin_device_t *device, void *native_stream,
                            ds_accel_plugin_device_t *destination_device, void *destination,
                            ds_accel_plugin_device_t *source_device, const void *source,
                            uint64_t size_bytes, struct ds_accel_error *error)
{
    (void)device;
    (void)destination_device;
    (void)source_device;
    return submit_copy(native_stream, destination, source, size_bytes, "mem_copy_peer_async",
                       error);
}

int32_t cpu_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                       uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                       struct ds_accel_error *error)
{
    const uint16_t two = (uint16_t)pattern;
    const uint8_t one = (uint8_t)pattern;
    const void *bytes = pattern_bytes == 1   ? (const void *)&one
                        : pattern_bytes == 2 ? (const void *)&two
                                             : (const void *)&pattern;
    const uint64_t size_bytes = count * pattern_bytes;
    struct cpu_work work;
    int32_t status = check_size(size_bytes, "mem_fill_async", error);

    (void)device;
    if (status < 0) {
        return status;
    }
    if (cpu_runs_at_once(native_stream)) {
        fill(destination, bytes, pattern_bytes, (size_t)size_bytes);
        return DS_ACCEL_OK;
    }
    memset(&work, 0, sizeof(work));
    work.kind = CPU_WORK_FILL;
    work.destination = destination;
    work.size_bytes = size_bytes;
    work.pattern_bytes = pattern_bytes;
    memcpy(work.pattern, bytes, pattern_bytes);
    return cpu_work_submit(native_stream, &work, "mem_fill_async", error);
}

/* ---- host tasks ----------------------------------------------------------------------------- */

int32_t cpu_stream_task(ds_accel_plugin_device_t *device, void *native, ds_accel_host_task_t task,
                        void *user_data, struct ds_accel_error *error)
{
    struct cpu_work work;

    (void)device;
    if (cpu_runs_at_once(native)) {
        task(user_data, DS_ACCEL_OK);
        return DS_ACCEL_OK;
    }
    memset(&work, 0, sizeof(work));
    work.kind = CPU_WORK_TASK;
    work.task = task;
    work.user_data = user_data;
    return cpu_work_submit(native, &work, "stream_host_task", error);
}
