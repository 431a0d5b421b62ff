/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Streams. Without option async, a stream has no queue: its work is done when the call returns, so
 * that the stream is always idle. With option async, a stream has its own queue and worker
 * (queue.c), and only events order the work of different streams. This is also true of the default
 * stream, so that DS_ACCEL_STREAM_NON_BLOCKING changes nothing. In both cases all streams have the
 * same priority.
 */
#include "cpu.h"

/* ---- streams -------------------------------------------------------------------------------- */

int cpu_stream_init(struct cpu_stream *stream, struct cpu_device *device)
{
    stream->device = device;
    if (!device->cpu->is_async) {
        return 0;
    }
    stream->queue = cpu_queue_create(device);
    if (stream->queue == NULL) {
        return -1;
    }
    pthread_mutex_lock(&device->cpu->lock);
    cpu_queue_enter(stream->queue);
    pthread_mutex_unlock(&device->cpu->lock);
    return 0;
}

int32_t cpu_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                          void **native_out, struct ds_accel_error *error)
{
    struct cpu_device *state = cpu_device(device);
    int32_t status = cpu_fork_check(state->cpu, "stream_create", error);

    (void)flags;
    (void)priority;
    if (status < 0) {
        return status;
    }
    if (cpu_stream_init(*native_out, state) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "stream_create: no memory for a stream");
    }
    return DS_ACCEL_OK;
}

void cpu_stream_destroy(ds_accel_plugin_device_t *device, void *native)
{
    struct cpu_stream *stream = native;

    (void)device;
    cpu_capture_leave(stream);
    if (stream->queue != NULL) {
        cpu_queue_close(stream->queue);
    }
}

int32_t cpu_stream_default(ds_accel_plugin_device_t *device, void **native_out,
                           struct ds_accel_error *error)
{
    (void)error;
    *native_out = &cpu_device(device)->default_stream;
    return DS_ACCEL_OK;
}

/* Break the capture of a capturing stream and fail, as on other devices: captured work runs only
   when the graph is launched, so that the stream can't be waited for or queried. */
static int32_t check_not_capturing(struct cpu_stream *stream, const char *call,
                                   struct ds_accel_error *error)
{
    if (cpu_capture_state(stream) != DS_ACCEL_CAPTURING_NO) {
        cpu_capture_break(stream, "the host was to wait for its stream");
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "%s: the stream is capturing; its work runs when the graph is launched, "
                           "and the capture is broken",
                           call);
    }
    return DS_ACCEL_OK;
}

int32_t cpu_capture_check(ds_accel_plugin_device_t *device, void *native, const char *call,
                          struct ds_accel_error *error)
{
    (void)device;
    return check_not_capturing(native, call, error);
}

/* ---- the host waits for a stream ------------------------------------------------------------ */

int32_t cpu_stream_wait(ds_accel_plugin_device_t *device, void *native, uint64_t timeout_ns,
                        struct ds_accel_error *error)
{
    struct cpu_stream *stream = native;
    int32_t status = check_not_capturing(stream, "stream_synchronize", error);

    (void)device;
    if (status < 0 || stream->queue == NULL) {
        return status;
    }
    return cpu_queue_wait(stream->queue, timeout_ns, "stream_synchronize", error);
}

int32_t cpu_stream_query(ds_accel_plugin_device_t *device, void *native,
                         struct ds_accel_error *error)
{
    struct cpu_stream *stream = native;
    int32_t status = check_not_capturing(stream, "stream_query", error);

    (void)device;
    if (status < 0 || stream->queue == NULL) {
        return status;
    }
    status = cpu_fork_check(stream->device->cpu, "stream_query", error);
    if (status < 0) {
        return status;
    }
    return cpu_queue_is_idle(stream->queue) ? DS_ACCEL_OK : DS_ACCEL_NOT_READY;
}

/* ---- a stream waits for an event ------------------------------------------------------------ */

int32_t cpu_stream_wait_mark(struct cpu_stream *stream, struct cpu_mark *mark, const char *call,
                             struct ds_accel_error *error)
{
    struct cpu_work work;
    int32_t status;

    /* No wait is needed for a mark that is reached, or that is in the stream's own queue. */
    if (cpu_mark_reached_ns(mark) != 0 || cpu_mark_is_of(mark, stream->queue)) {
        return DS_ACCEL_OK;
    }
    memset(&work, 0, sizeof(work));
    work.kind = CPU_WORK_WAIT;
    work.mark = mark;
    cpu_mark_get(mark);
    status = cpu_queue_submit(stream->queue, &work, call, error);
    if (status < 0) {
        cpu_mark_put(mark);
    }
    return status;
}

/* Make the stream wait for an event that was not recorded in a capture. The mark is NULL if the
   event was never recorded (was_recorded is 0), or was reached when it was recorded. */
static int32_t wait_recorded(struct cpu_stream *stream, struct cpu_mark *mark, int was_recorded,
                             const char *call, struct ds_accel_error *error)
{
    if (cpu_capture_state(stream) != DS_ACCEL_CAPTURING_NO) {
        if (!was_recorded) {
            return DS_ACCEL_OK;
        }
        cpu_capture_break(stream, "it was to wait for an event that was recorded outside of it");
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "%s: the event was recorded outside of the capture, which is broken now",
                           call);
    }
    return mark == NULL ? DS_ACCEL_OK : cpu_stream_wait_mark(stream, mark, call, error);
}

int32_t cpu_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                              struct ds_accel_error *error)
{
    static const char call[] = "stream_wait_event";
    struct cpu_stream *stream = native;
    struct cpu_recording recording;
    int32_t status = cpu_fork_check(stream->device->cpu, call, error);

    (void)device;
    if (status < 0) {
        return status;
    }
    cpu_event_recording(native_event, &recording);
    if (recording.capture != NULL) {
        status = cpu_capture_wait(stream, recording.capture, recording.node, call, error);
    } else {
        status = wait_recorded(stream, recording.mark,
                               recording.mark != NULL || recording.recorded_ns != 0, call, error);
    }
    cpu_recording_put(&recording);
    return status;
}
