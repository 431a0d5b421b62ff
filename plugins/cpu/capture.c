/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Captures: the work of capturing streams is stored in a list, in the order of the calls.
 *
 * A capture begins on one stream, its origin. As with a vendor's runtime, another stream joins the
 * capture by waiting for an event that was recorded in it; from then on the work of that stream is
 * captured too. Each piece of work becomes a node, with edges from the nodes on which it depends.
 * The tail of a stream is the set of nodes on which its next work depends: usually one node, more
 * after the stream waited for events of other streams. In the list, each node is after all nodes on
 * which it depends, so that the graph can run in list order. The edges are used to find streams
 * that were never joined back, to compare graphs and to draw them.
 *
 * A capture can end successfully only if all nodes lead to the tail of the origin, because work of
 * a stream that was never joined back would not be ordered before the end of the graph. The other
 * streams leave the capture when their capture state is read the next time.
 *
 * The capture's lock guards its state and its list, since different threads may use its streams.
 */
#include "cpu.h"

#include <assert.h>

struct cpu_capture {
    atomic_uint references;          /* one for each capturing stream and each event recording */
    const struct cpu_stream *origin; /* stream on which the capture began; never dereferenced */

    pthread_mutex_t lock; /* guards the following members */
    uint32_t state;       /* DS_ACCEL_CAPTURING_*; NO if the capture was ended */
    const char *broken_by;
    struct cpu_work_list list;
};

/* ---- lists of work -------------------------------------------------------------------------- */

/* Make room for one more element in an array that grows by doubling; return 0 or -1. */
static int make_room(void **array, size_t count, size_t *capacity, size_t element_size)
{
    size_t wanted = *capacity == 0 ? 16 : *capacity * 2;
    void *grown;

    if (count < *capacity) {
        return 0;
    }
    grown = realloc(*array, wanted * element_size);
    if (grown == NULL) {
        return -1;
    }
    *array = grown;
    *capacity = wanted;
    return 0;
}

/* Append the work with edges from the nodes of a tail; return 0, or -1 if out of memory. */
static int append(struct cpu_work_list *list, const struct cpu_work *work, const size_t *tail,
                  size_t tail_count)
{
    const size_t edge_start = list->edge_count;
    struct cpu_work *item;

    if (make_room((void **)&list->items, list->count, &list->capacity, sizeof(*list->items)) != 0) {
        return -1;
    }
    for (size_t i = 0; i < tail_count; i++) {
        if (make_room((void **)&list->edges, list->edge_count, &list->edge_capacity,
                      sizeof(*list->edges)) != 0) {
            list->edge_count = edge_start;
            return -1;
        }
        list->edges[list->edge_count++] = tail[i];
    }
    item = &list->items[list->count++];
    *item = *work;
    item->edge_start = edge_start;
    item->edge_count = tail_count;
    list->record_count += work->kind == CPU_WORK_RECORD;
    if (work->event != NULL) {
        cpu_event_get(work->event);
    }
    return 0;
}

void cpu_work_list_release(struct cpu_work_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].event != NULL) {
            cpu_event_put(list->items[i].event);
        }
    }
    free(list->edges);
    free(list->items);
    memset(list, 0, sizeof(*list));
}

/* ---- streams of a capture ------------------------------------------------------------------- */

void cpu_capture_get(struct cpu_capture *capture)
{
    atomic_fetch_add(&capture->references, 1);
}

void cpu_capture_put(struct cpu_capture *capture)
{
    if (capture != NULL && atomic_fetch_sub(&capture->references, 1) == 1) {
        cpu_work_list_release(&capture->list);
        pthread_mutex_destroy(&capture->lock);
        free(capture);
    }
}

/* Set a stream to the state in which it is not capturing. */
static void forget(struct cpu_stream *stream)
{
    cpu_capture_put(stream->capture);
    free(stream->tail);
    stream->capture = NULL;
    stream->tail = NULL;
    stream->tail_count = 0;
    stream->tail_capacity = 0;
}

uint32_t cpu_capture_state(struct cpu_stream *stream)
{
    struct cpu_capture *capture = stream->capture;
    uint32_t state;

    if (capture == NULL) {
        return DS_ACCEL_CAPTURING_NO;
    }
    pthread_mutex_lock(&capture->lock);
    state = capture->state;
    pthread_mutex_unlock(&capture->lock);
    if (state == DS_ACCEL_CAPTURING_NO) {
        forget(stream);
    }
    return state;
}

/* Break the capture; the first cause is stored. The caller holds capture->lock. */
static void break_capture(struct cpu_capture *capture, const char *why)
{
    if (capture->state == DS_ACCEL_CAPTURING_YES) {
        capture->state = DS_ACCEL_CAPTURING_BROKEN;
        capture->broken_by = why;
    }
}

void cpu_capture_break(struct cpu_stream *stream, const char *why)
{
    pthread_mutex_lock(&stream->capture->lock);
    break_capture(stream->capture, why);
    pthread_mutex_unlock(&stream->capture->lock);
}

/* End the capture and return its list, which the caller owns. The caller holds capture->lock. */
static struct cpu_work_list end_capture(struct cpu_capture *capture)
{
    struct cpu_work_list list = capture->list;

    memset(&capture->list, 0, sizeof(capture->list));
    capture->state = DS_ACCEL_CAPTURING_NO;
    return list;
}

/* If the stream is the origin, the capture ends and its work is dropped. Work of another stream
   remains in the capture, which can therefore only end if that work was joined back. */
void cpu_capture_leave(struct cpu_stream *stream)
{
    struct cpu_work_list list = {0};
    struct cpu_capture *capture = stream->capture;

    if (capture == NULL) {
        return;
    }
    pthread_mutex_lock(&capture->lock);
    if (capture->origin == stream) {
        list = end_capture(capture);
    }
    pthread_mutex_unlock(&capture->lock);
    cpu_work_list_release(&list);
    forget(stream);
}

/* ---- capturing work ------------------------------------------------------------------------- */

static int32_t fail_broken(const char *call, const char *why, struct ds_accel_error *error)
{
    return plugin_fail(error, DS_ACCEL_ERR_STATE, "%s: the stream's capture is broken: %s", call,
                       why);
}

int32_t cpu_capture_append(struct cpu_stream *stream, const struct cpu_work *work, const char *call,
                           size_t *node_out, struct ds_accel_error *error)
{
    struct cpu_capture *capture = stream->capture;
    const char *why;
    size_t node = 0;
    int failed = 0;

    assert(work->kind <= CPU_WORK_RECORD);
    pthread_mutex_lock(&capture->lock);
    why = capture->broken_by;
    if (why == NULL) {
        node = capture->list.count;
        failed = make_room((void **)&stream->tail, 0, &stream->tail_capacity,
                           sizeof(*stream->tail)) != 0 ||
                 append(&capture->list, work, stream->tail, stream->tail_count) != 0;
        if (failed) {
            break_capture(capture, "memory for it ran out");
        }
    }
    pthread_mutex_unlock(&capture->lock);
    if (why != NULL) {
        return fail_broken(call, why, error);
    }
    if (failed) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "%s: no memory to capture call number %zu; the capture is broken", call,
                           node + 1);
    }
    stream->tail[0] = node;
    stream->tail_count = 1;
    *node_out = node;
    return DS_ACCEL_OK;
}

/* Make the stream's next captured work depend on the node; return 0, or -1 if out of memory. */
static int add_to_tail(struct cpu_stream *stream, size_t node)
{
    for (size_t i = 0; i < stream->tail_count; i++) {
        if (stream->tail[i] == node) {
            return 0;
        }
    }
    if (make_room((void **)&stream->tail, stream->tail_count, &stream->tail_capacity,
                  sizeof(*stream->tail)) != 0) {
        return -1;
    }
    stream->tail[stream->tail_count++] = node;
    return 0;
}

static int32_t wait_within(struct cpu_stream *stream, size_t node, const char *call,
                           struct ds_accel_error *error)
{
    if (add_to_tail(stream, node) != 0) {
        cpu_capture_break(stream, "memory for it ran out");
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "%s: no memory to capture a wait; the capture is broken", call);
    }
    return DS_ACCEL_OK;
}

/* Make a stream that is not capturing join the capture, with the node as its tail. */
static int32_t draw_in(struct cpu_stream *stream, struct cpu_capture *capture, size_t node,
                       const char *call, struct ds_accel_error *error)
{
    uint32_t state;

    pthread_mutex_lock(&capture->lock);
    state = capture->state;
    pthread_mutex_unlock(&capture->lock);
    if (state != DS_ACCEL_CAPTURING_YES || stream == &stream->device->default_stream) {
        return plugin_fail(
            error, DS_ACCEL_ERR_STATE, "%s: the event was recorded into a capture that %s", call,
            state == DS_ACCEL_CAPTURING_YES ? "the default stream can't be drawn into"
                                            : "was not launched since");
    }
    if (add_to_tail(stream, node) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "%s: no memory to draw the stream into the capture", call);
    }
    cpu_capture_get(capture);
    stream->capture = capture;
    return DS_ACCEL_OK;
}

int32_t cpu_capture_wait(struct cpu_stream *stream, struct cpu_capture *capture, size_t node,
                         const char *call, struct ds_accel_error *error)
{
    const uint32_t state = cpu_capture_state(stream);
    const char *why = NULL;

    if (state == DS_ACCEL_CAPTURING_NO) {
        return draw_in(stream, capture, node, call, error);
    }
    if (stream->capture == capture && state == DS_ACCEL_CAPTURING_YES) {
        return wait_within(stream, node, call, error);
    }
    if (stream->capture != capture) { /* break_capture() ignores a capture that has ended */
        pthread_mutex_lock(&capture->lock);
        break_capture(capture, "another capture was to wait for an event of it");
        pthread_mutex_unlock(&capture->lock);
    }
    cpu_capture_break(stream, "it was to wait for an event that was recorded outside of it");
    pthread_mutex_lock(&stream->capture->lock);
    why = stream->capture->broken_by;
    pthread_mutex_unlock(&stream->capture->lock);
    return fail_broken(call, why, error);
}

/* ---- beginning and ending ------------------------------------------------------------------- */

/* The mode is ignored, because no call of any thread can disturb a capture of this backend. */
int32_t cpu_capture_begin(ds_accel_plugin_device_t *device, void *native_stream, uint32_t mode,
                          struct ds_accel_error *error)
{
    struct cpu_stream *stream = native_stream;
    struct cpu_capture *capture;

    (void)device;
    (void)mode;
    if (cpu_capture_state(stream) != DS_ACCEL_CAPTURING_NO) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "graph_capture_begin: the stream is capturing already");
    }
    capture = calloc(1, sizeof(*capture));
    if (capture == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "graph_capture_begin: no memory for a capture");
    }
    atomic_init(&capture->references, 1);
    capture->origin = stream;
    pthread_mutex_init(&capture->lock, NULL);
    capture->state = DS_ACCEL_CAPTURING_YES;
    stream->capture = capture;
    return DS_ACCEL_OK;
}

/* Return non-zero if all nodes except event recordings, which are not work, lead to the stream's
   tail. */
static int is_joined(struct cpu_work_list *list, const struct cpu_stream *stream)
{
    int all = 1;

    for (size_t i = 0; i < stream->tail_count; i++) {
        list->items[stream->tail[i]].is_joined = 1;
    }
    for (size_t i = list->count; i-- > 0 && all;) {
        const struct cpu_work *item = &list->items[i];

        all = item->is_joined != 0 || item->kind == CPU_WORK_RECORD;
        for (size_t edge = 0; edge < item->edge_count && item->is_joined; edge++) {
            list->items[list->edges[item->edge_start + edge]].is_joined = 1;
        }
    }
    return all;
}

int32_t cpu_capture_end(ds_accel_plugin_device_t *device, void *native_stream, void **native_out,
                        struct ds_accel_error *error)
{
    struct cpu_stream *stream = native_stream;
    struct cpu_program *program = NULL;
    struct cpu_work_list list;
    const char *why;
    int32_t status = DS_ACCEL_OK;

    (void)device;
    if (cpu_capture_state(stream) == DS_ACCEL_CAPTURING_NO) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "graph_capture_end: the stream is not capturing");
    }
    if (stream->capture->origin != stream) {
        cpu_capture_break(stream, "it was to be ended on a stream that was drawn into it");
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "graph_capture_end: the capture began on another stream, where it ends; "
                           "it is broken");
    }
    pthread_mutex_lock(&stream->capture->lock);
    why = stream->capture->broken_by;
    list = end_capture(stream->capture);
    pthread_mutex_unlock(&stream->capture->lock);
    if (why != NULL) {
        status = plugin_fail(error, DS_ACCEL_ERR_STATE,
                             "graph_capture_end: the capture is broken and dropped: %s", why);
    } else if (!is_joined(&list, stream)) {
        status = plugin_fail(error, DS_ACCEL_ERR_STATE,
                             "graph_capture_end: work of a stream that was drawn in is not joined: "
                             "let this stream wait for an event behind it; the capture is dropped");
    } else if ((program = cpu_program_create(&list)) == NULL) {
        status = plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                             "graph_capture_end: no memory for a graph; the capture is dropped");
    }
    forget(stream);
    if (program == NULL) {
        cpu_work_list_release(&list);
        return status;
    }
    *native_out = program;
    return DS_ACCEL_OK;
}

int32_t cpu_capture_status(ds_accel_plugin_device_t *device, void *native_stream,
                           uint32_t *status_out, struct ds_accel_error *error)
{
    (void)device;
    (void)error;
    *status_out = cpu_capture_state(native_stream);
    return DS_ACCEL_OK;
}
