/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Captures: recording the work submitted to the queues of a capture, in the order of the calls.
 *
 * A work is one copy, fill or task. A queue that waits for an event of a capture joins the capture.
 * Each queue in a capture stores, for every queue, how many of its works precede the next work. The
 * record of an event copies these counts, and a queue that waits for the event raises its own
 * counts to them. At the end of the capture, the counts of the queue that began it must include all
 * works: otherwise work that follows a launch of the graph would not wait for all of the graph.
 * Records of events are not counted, because no queue has to wait for them.
 *
 * All functions here run with instance->lock held.
 */
#include "mock.h"

struct mock_capture {
    uint32_t references;             /* one for each queue and each mark in the capture */
    uint32_t state;                  /* DS_ACCEL_CAPTURING_*; NO: the capture is complete */
    const struct mock_queue *origin; /* the queue that began the capture; compared, never
                                      * dereferenced */
    uint64_t id;
    struct mock_known counts; /* number of works of each queue; index: queue->place */
    struct mock_work_list works;
};

/* ---- counts of preceding work --------------------------------------------------------------- */

/*
 * Extends the counts to this number of queues, with 0 works for each new queue. Returns 0, or -1
 * when out of memory.
 */
static int extend(struct mock_known *known, size_t count)
{
    uint64_t *works;

    if (known->count >= count) {
        return 0;
    }
    works = realloc(known->works, count * sizeof(*works));
    if (works == NULL) {
        return -1;
    }
    memset(works + known->count, 0, (count - known->count) * sizeof(*works));
    known->works = works;
    known->count = count;
    return 0;
}

static int learn(struct mock_known *known, const struct mock_known *from)
{
    if (extend(known, from->count) != 0) {
        return -1;
    }
    for (size_t i = 0; i < from->count; i++) {
        known->works[i] = mock_max_u64(known->works[i], from->works[i]);
    }
    return 0;
}

static void forget(struct mock_known *known)
{
    free(known->works);
    memset(known, 0, sizeof(*known));
}

/* ---- streams of a capture ------------------------------------------------------------------- */

static void put(struct mock_capture *capture)
{
    if (capture != NULL && --capture->references == 0) {
        forget(&capture->counts);
        mock_work_list_release(&capture->works);
        free(capture);
    }
}

static void leave(struct mock_queue *queue)
{
    struct mock_capture *capture = queue->capture;

    queue->capture = NULL;
    forget(&queue->known);
    put(capture);
}

uint32_t mock_capture_state(struct mock_queue *queue)
{
    if (queue->capture != NULL && queue->capture->state == DS_ACCEL_CAPTURING_NO) {
        leave(queue);
    }
    return queue->capture != NULL ? queue->capture->state : DS_ACCEL_CAPTURING_NO;
}

void mock_capture_break(const struct mock_queue *queue)
{
    queue->capture->state = DS_ACCEL_CAPTURING_BROKEN;
}

/* Adds the queue to the capture. Returns 0, or -1 when out of memory. */
static int enter(struct mock_queue *queue, struct mock_capture *capture)
{
    size_t place = capture->counts.count;

    if (extend(&capture->counts, place + 1) != 0 || extend(&queue->known, place + 1) != 0) {
        return -1;
    }
    queue->capture = capture;
    queue->place = place;
    capture->references++;
    return 0;
}

int mock_capture_begin(struct mock_queue *queue, uint64_t id)
{
    struct mock_capture *capture = calloc(1, sizeof(*capture));

    if (capture == NULL) {
        return -1;
    }
    if (enter(queue, capture) != 0) {
        forget(&capture->counts);
        free(capture);
        return -1;
    }
    capture->state = DS_ACCEL_CAPTURING_YES;
    capture->origin = queue;
    capture->id = id;
    return 0;
}

static int is_whole(const struct mock_queue *queue)
{
    const struct mock_known *counts = &queue->capture->counts;

    for (size_t i = 0; i < counts->count; i++) {
        if (counts->works[i] != (i < queue->known.count ? queue->known.works[i] : 0)) {
            return 0;
        }
    }
    return 1;
}

const char *mock_capture_end(struct mock_queue *queue, struct mock_work_list *works_out)
{
    struct mock_capture *capture = queue->capture;
    struct mock_work_list works;
    const char *problem = NULL;

    if (mock_capture_state(queue) == DS_ACCEL_CAPTURING_NO) {
        return "the stream doesn't capture";
    }
    if (capture->origin != queue) {
        mock_capture_break(queue);
        return "the capture began on another stream, where it ends; it is broken";
    }
    if (capture->state == DS_ACCEL_CAPTURING_BROKEN) {
        problem = "the capture was broken";
    } else if (!is_whole(queue)) {
        problem = "work of a stream that was drawn in is not joined: let this stream wait for an "
                  "event behind it";
    }
    works = capture->works;
    memset(&capture->works, 0, sizeof(capture->works));
    capture->state = DS_ACCEL_CAPTURING_NO;
    leave(queue);
    if (problem != NULL) {
        mock_work_list_release(&works);
        return problem;
    }
    *works_out = works;
    return NULL;
}

void mock_capture_drop(struct mock_queue *queue)
{
    struct mock_work_list works = {NULL, 0, 0};

    if (mock_capture_state(queue) == DS_ACCEL_CAPTURING_NO) {
        return;
    }
    if (queue->capture->origin == queue) {
        mock_capture_break(queue);
        mock_capture_end(queue, &works);
    } else {
        leave(queue); /* its work stays in the capture, and the origin must still wait for it */
    }
}

/* ---- captured work -------------------------------------------------------------------------- */

void mock_mark_uncapture(struct mock_mark *mark)
{
    struct mock_capture *capture = mark->capture;

    mark->capture_id = 0;
    mark->capture = NULL;
    forget(&mark->known);
    put(capture);
}

static int record(const struct mock_queue *queue, struct mock_mark *mark)
{
    struct mock_known known = {NULL, 0};

    if (learn(&known, &queue->known) != 0) {
        return -1;
    }
    queue->capture->references++;
    mock_mark_uncapture(mark);
    mark->capture_id = queue->capture->id;
    mark->capture = queue->capture;
    mark->known = known;
    return 0;
}

int mock_capture_append(struct mock_queue *queue, const struct mock_work *work)
{
    struct mock_capture *capture = queue->capture;

    if (work->kind == MOCK_WORK_RECORD && record(queue, work->mark) != 0) {
        return -1;
    }
    if (mock_work_list_append(&capture->works, work) != 0) {
        return -1;
    }
    if (work->kind != MOCK_WORK_RECORD) {
        queue->known.works[queue->place] = ++capture->counts.works[queue->place];
    }
    return 0;
}

static const char *wait_within(struct mock_queue *queue, const struct mock_mark *mark)
{
    if (mark->capture_id != 0 && mark->capture == queue->capture) {
        return learn(&queue->known, &mark->known) == 0 ? NULL : "no memory for the capture";
    }
    if (!mark->recorded && mark->capture_id == 0) {
        return NULL;
    }
    mock_capture_break(queue);
    if (mark->capture != NULL && mark->capture->state == DS_ACCEL_CAPTURING_YES) {
        mark->capture->state = DS_ACCEL_CAPTURING_BROKEN;
        return "the event was recorded in another capture; both are broken now";
    }
    return "the event was recorded outside of the capture, which is broken now";
}

const char *mock_capture_wait(struct mock_queue *queue, const struct mock_mark *mark)
{
    switch (mock_capture_state(queue)) {
    case DS_ACCEL_CAPTURING_BROKEN:
        return "the stream's capture is broken";
    case DS_ACCEL_CAPTURING_YES:
        return wait_within(queue, mark);
    default:
        break;
    }
    if (mark->capture == NULL || mark->capture->state != DS_ACCEL_CAPTURING_YES) {
        return "the event was recorded in a capture, and the graph has not run since";
    }
    if (queue->is_default) {
        return "the event was recorded in a capture, into which the default stream can't be drawn";
    }
    if (enter(queue, mark->capture) != 0 || learn(&queue->known, &mark->known) != 0) {
        leave(queue);
        return "no memory for the capture";
    }
    return NULL;
}
