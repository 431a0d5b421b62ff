/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Events. The state of an event is its latest recording, which is one of
 *
 *  - a time: the calling thread does the stream's work, so that the event was reached at once;
 *  - a mark in a queue (queue.c), which is reached when the stream's worker arrives at it;
 *  - a node of a capture. The event is not reached until the graph is launched; the launch replaces
 *    the recording by a time or by a mark of the launch.
 *
 * Any thread may query an event and wait for it while another thread records it. A lock in the
 * event therefore guards the recording. A waiting thread copies the recording and then does not
 * access the event any more.
 */
#include "cpu.h"

int32_t cpu_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                         struct ds_accel_error *error)
{
    struct cpu_event *event = calloc(1, sizeof(*event));

    (void)device;
    (void)flags;
    if (event == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "event_create: no memory for an event");
    }
    atomic_init(&event->references, 1);
    pthread_mutex_init(&event->lock, NULL);
    *native_out = event;
    return DS_ACCEL_OK;
}

void cpu_event_get(struct cpu_event *event)
{
    atomic_fetch_add(&event->references, 1);
}

void cpu_event_put(struct cpu_event *event)
{
    if (atomic_fetch_sub(&event->references, 1) == 1) {
        cpu_recording_put(&event->latest);
        pthread_mutex_destroy(&event->lock);
        free(event);
    }
}

/* Release the handle's reference. Graphs that record the event have references of their own, and a
   waiting thread has a reference to the mark for which it waits. */
void cpu_event_destroy(ds_accel_plugin_device_t *device, void *native)
{
    (void)device;
    cpu_event_put(native);
}

/* ---- recordings ----------------------------------------------------------------------------- */

void cpu_recording_put(struct cpu_recording *recording)
{
    if (recording->mark == NULL && recording->capture == NULL) {
        return;
    }
    cpu_mark_put(recording->mark);
    cpu_capture_put(recording->capture);
    memset(recording, 0, sizeof(*recording));
}

void cpu_event_recording(struct cpu_event *event, struct cpu_recording *recording_out)
{
    pthread_mutex_lock(&event->lock);
    *recording_out = event->latest;
    if (recording_out->mark != NULL) {
        cpu_mark_get(recording_out->mark);
    }
    if (recording_out->capture != NULL) {
        cpu_capture_get(recording_out->capture);
    }
    pthread_mutex_unlock(&event->lock);
}

/* Replace the latest recording, and take over the references in the new recording. */
static void replace(struct cpu_event *event, struct cpu_recording recording)
{
    struct cpu_recording before;

    pthread_mutex_lock(&event->lock);
    before = event->latest;
    event->latest = recording;
    pthread_mutex_unlock(&event->lock);
    cpu_recording_put(&before);
}

void cpu_event_set_reached(struct cpu_event *event)
{
    replace(event, (struct cpu_recording){.recorded_ns = plugin_now_ns()});
}

void cpu_event_set_mark(struct cpu_event *event, struct cpu_mark *mark)
{
    cpu_mark_get(mark);
    replace(event, (struct cpu_recording){.mark = mark});
}

static int32_t record_in_capture(struct cpu_event *event, struct cpu_stream *stream,
                                 struct ds_accel_error *error)
{
    struct cpu_recording recording = {.capture = stream->capture};
    struct cpu_work work;
    int32_t status;

    memset(&work, 0, sizeof(work));
    work.kind = CPU_WORK_RECORD;
    work.event = event;
    status = cpu_capture_append(stream, &work, "event_record", &recording.node, error);
    if (status == DS_ACCEL_OK) {
        cpu_capture_get(recording.capture);
        replace(event, recording);
    }
    return status;
}

static int32_t record_in_queue(struct cpu_event *event, struct cpu_queue *queue,
                               struct ds_accel_error *error)
{
    struct cpu_mark *mark = cpu_mark_create(queue);
    struct cpu_work work;
    int32_t status;

    if (mark == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "event_record: no memory for a mark");
    }
    memset(&work, 0, sizeof(work));
    work.kind = CPU_WORK_RECORD;
    work.mark = mark;
    cpu_mark_get(mark);
    status = cpu_queue_submit(queue, &work, "event_record", error);
    if (status == DS_ACCEL_OK) {
        cpu_event_set_mark(event, mark);
    } else {
        cpu_mark_put(mark);
    }
    cpu_mark_put(mark);
    return status;
}

int32_t cpu_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                         struct ds_accel_error *error)
{
    struct cpu_stream *stream = native_stream;

    (void)device;
    if (!cpu_runs_at_once(stream) && cpu_capture_state(stream) != DS_ACCEL_CAPTURING_NO) {
        return record_in_capture(native, stream, error);
    }
    if (stream->queue != NULL) {
        return record_in_queue(native, stream->queue, error);
    }
    cpu_event_set_reached(native);
    return DS_ACCEL_OK;
}

/* ---- queries -------------------------------------------------------------------------------- */

/* Return a copy of the latest recording; ERR_STATE in a forked child, and if the recording is in a
   capture whose graph was not launched yet. */
static int32_t get_recording(const ds_accel_plugin_device_t *device, struct cpu_event *event,
                             const char *call, struct cpu_recording *recording_out,
                             struct ds_accel_error *error)
{
    int32_t status = cpu_fork_check(cpu_runtime(device->instance), call, error);

    if (status < 0) {
        return status;
    }
    cpu_event_recording(event, recording_out);
    if (recording_out->capture != NULL) {
        cpu_recording_put(recording_out);
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "%s: the event was recorded in a capture that was not launched yet",
                           call);
    }
    return DS_ACCEL_OK;
}

int32_t cpu_event_query(ds_accel_plugin_device_t *device, void *native,
                        struct ds_accel_error *error)
{
    struct cpu_recording recording = {0};
    int32_t status = get_recording(device, native, "event_query", &recording, error);

    if (status < 0) {
        return status;
    }
    if (recording.mark != NULL && cpu_mark_reached_ns(recording.mark) == 0) {
        status = DS_ACCEL_NOT_READY;
    }
    cpu_recording_put(&recording);
    return status;
}

int32_t cpu_event_wait(ds_accel_plugin_device_t *device, void *native, uint64_t timeout_ns,
                       struct ds_accel_error *error)
{
    struct cpu_recording recording = {0};
    int32_t status = get_recording(device, native, "event_synchronize", &recording, error);

    if (status < 0) {
        return status;
    }
    if (recording.mark != NULL && cpu_mark_reached_ns(recording.mark) == 0) {
        status = cpu_check_not_worker(cpu_runtime(device->instance), "event_synchronize", error);
        if (status == DS_ACCEL_OK &&
            cpu_mark_wait(recording.mark, cpu_deadline_ns(timeout_ns)) != 0) {
            status = plugin_fail(error, DS_ACCEL_ERR_TIMEOUT,
                                 "event_synchronize: the event is not reached after %llu ns",
                                 (unsigned long long)timeout_ns);
        }
    }
    cpu_recording_put(&recording);
    return status;
}

/* Return the time at which the event was reached; ERR_STATE if it was not reached. */
static int32_t get_time(const ds_accel_plugin_device_t *device, struct cpu_event *event,
                        const char *which, uint64_t *time_ns_out, struct ds_accel_error *error)
{
    struct cpu_recording recording = {0};
    int32_t status = get_recording(device, event, "event_elapsed_ms", &recording, error);
    uint64_t time_ns;
    int is_pending;

    if (status < 0) {
        return status;
    }
    time_ns = recording.mark == NULL ? recording.recorded_ns : cpu_mark_reached_ns(recording.mark);
    is_pending = recording.mark != NULL && time_ns == 0;
    cpu_recording_put(&recording);
    if (time_ns == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE, "event_elapsed_ms: the %s event %s", which,
                           is_pending ? "is not reached yet" : "was never recorded");
    }
    *time_ns_out = time_ns;
    return DS_ACCEL_OK;
}

int32_t cpu_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                             double *elapsed_ms_out, struct ds_accel_error *error)
{
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    int32_t status = get_time(device, start, "start", &start_ns, error);

    if (status == DS_ACCEL_OK) {
        status = get_time(device, end, "end", &end_ns, error);
    }
    if (status == DS_ACCEL_OK) {
        *elapsed_ms_out = (double)(int64_t)(end_ns - start_ns) / 1e6;
    }
    return status;
}
