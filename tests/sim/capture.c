/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Captures: streams whose works become nodes. Each stream of a capture keeps its heads, the nodes
 * that its next node depends on. An event recorded in a capture keeps the heads of its stream; a
 * stream that waits for the event adds them to its own heads, and joins the capture if it is not
 * yet in it. At the end of the capture, the heads of the first stream must depend, directly or not,
 * on every node.
 */
#include "inside.h"

#include <stdlib.h>
#include <string.h>

static struct sim_captured *captures;
static uint64_t last_id;

static void free_capture(struct sim_captured *capture)
{
    struct sim_captured **link = &captures;

    while (*link != capture) {
        link = &(*link)->next;
    }
    *link = capture->next;
    for (struct sim_stream *stream = sim_streams(); stream != NULL; stream = stream->next) {
        if (stream->capture == capture) {
            stream->capture = NULL;
            stream->head_count = 0;
        }
    }
    if (capture->body != NULL) {
        sim_body_put(capture->body);
    }
    free(capture);
}

static void add_heads(struct sim_stream *stream, const uint64_t *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool is_there = false;

        for (size_t j = 0; j < stream->head_count && !is_there; j++) {
            is_there = stream->heads[j] == nodes[i];
        }
        if (!is_there) {
            uint64_t *heads = realloc(stream->heads, (stream->head_count + 1) * sizeof(*heads));

            if (heads == NULL) {
                sim_misuse("the simulator itself has no memory for a capture");
            }
            stream->heads = heads;
            stream->heads[stream->head_count++] = nodes[i];
        }
    }
}

bool sim_capture_begin(struct sim_stream *stream, uint32_t mode)
{
    bool begins;

    sim_locked();
    begins = stream->capture == NULL && (stream->flags & SIM_STREAM_DEFAULT) == 0;
    if (begins) {
        struct sim_captured *capture = sim_zalloc(sizeof(*capture));

        capture->id = ++last_id;
        capture->mode = mode;
        capture->thread = pthread_self();
        capture->origin = stream;
        capture->body = sim_body_create();
        capture->next = captures;
        captures = capture;
        stream->capture = capture;
        stream->head_count = 0;
    }
    sim_unlocked();
    return begins;
}

/* Returns true if the heads of the origin, the stream that began the capture, depend on every node.
 * Nodes depend only on earlier nodes. */
static bool is_joined(const struct sim_captured *capture)
{
    const struct sim_body *body = capture->body;
    bool *is_needed = sim_zalloc(body->count + 1);
    bool is_whole = true;

    for (size_t i = 0; i < capture->origin->head_count; i++) {
        is_needed[capture->origin->heads[i]] = true;
    }
    for (size_t i = body->count; i > 0; i--) {
        const struct sim_node *node = &body->nodes[i - 1];

        is_whole = is_whole && is_needed[i - 1];
        for (size_t j = 0; j < node->need_count; j++) {
            is_needed[node->needs[j]] = true;
        }
    }
    free(is_needed);
    return is_whole;
}

struct sim_graph *sim_capture_end(struct sim_stream *stream)
{
    struct sim_captured *capture;
    struct sim_graph *graph = NULL;

    sim_locked();
    capture = stream->capture;
    if (capture != NULL && capture->origin != stream) {
        capture->is_broken = true;
        capture = NULL;
    }
    if (capture != NULL) {
        if (!capture->is_broken && is_joined(capture)) {
            graph = sim_zalloc(sizeof(*graph));
            graph->body = capture->body;
            capture->body = NULL;
        }
        free_capture(capture);
    }
    sim_unlocked();
    return graph;
}

enum sim_capture sim_capture_status(const struct sim_stream *stream)
{
    enum sim_capture status;

    sim_locked();
    status = stream->capture == NULL      ? SIM_CAPTURE_NONE
             : stream->capture->is_broken ? SIM_CAPTURE_BROKEN
                                          : SIM_CAPTURE_ACTIVE;
    sim_unlocked();
    return status;
}

/* Returns true if the capture's mode forbids this thread calls that a capture cannot contain. */
static bool forbids(const struct sim_captured *capture)
{
    return capture->mode == 0 ||
           (capture->mode == 1 && pthread_equal(capture->thread, pthread_self()));
}

void sim_capture_forbid(uint32_t physical)
{
    sim_locked();
    for (struct sim_captured *capture = captures; capture != NULL; capture = capture->next) {
        if (capture->origin->physical == physical && forbids(capture)) {
            capture->is_broken = true;
        }
    }
    sim_unlocked();
}

bool sim_capture_break_all(uint32_t physical)
{
    bool is_any = false;

    sim_locked();
    for (struct sim_captured *capture = captures; capture != NULL; capture = capture->next) {
        if (capture->origin->physical == physical) {
            capture->is_broken = true;
            is_any = true;
        }
    }
    sim_unlocked();
    return is_any;
}

void sim_capture_break_blocking(uint32_t physical)
{
    sim_locked();
    for (struct sim_stream *stream = sim_streams(); stream != NULL; stream = stream->next) {
        if (stream->capture != NULL && stream->physical == physical &&
            (stream->flags & SIM_STREAM_NON_BLOCKING) == 0) {
            stream->capture->is_broken = true;
        }
    }
    sim_unlocked();
}

void sim_capture_break(struct sim_stream *stream)
{
    sim_locked();
    if (stream->capture != NULL) {
        stream->capture->is_broken = true;
    }
    sim_unlocked();
}

bool sim_capture_is_strict(void)
{
    bool is_strict = false;

    sim_locked();
    for (const struct sim_captured *capture = captures; capture != NULL; capture = capture->next) {
        is_strict = is_strict || forbids(capture);
    }
    sim_unlocked();
    return is_strict;
}

bool sim_capture_is_own(void)
{
    bool is_own = false;

    sim_locked();
    for (const struct sim_captured *capture = captures; capture != NULL; capture = capture->next) {
        is_own = is_own || (capture->mode != 2 && pthread_equal(capture->thread, pthread_self()));
    }
    sim_unlocked();
    return is_own;
}

bool sim_capture_is_blocking(uint32_t physical)
{
    bool is_blocking = false;

    sim_locked();
    for (struct sim_stream *stream = sim_streams(); stream != NULL; stream = stream->next) {
        is_blocking = is_blocking || (stream->capture != NULL && stream->physical == physical &&
                                      (stream->flags & SIM_STREAM_NON_BLOCKING) == 0);
    }
    sim_unlocked();
    return is_blocking;
}

bool sim_capture_is_mine(const struct sim_stream *stream)
{
    bool is_mine;

    sim_locked();
    is_mine =
        stream->capture != NULL && stream->capture->origin == stream &&
        (stream->capture->mode == 2 || pthread_equal(stream->capture->thread, pthread_self()));
    sim_unlocked();
    return is_mine;
}

/* ---- capture instead of submission ---------------------------------------------------------- */

int sim_capture_put(struct sim_stream *stream, const struct sim_action *action)
{
    uint64_t node;

    if (stream->capture->is_broken) {
        struct sim_action dropped = *action;

        sim_action_drop(&dropped);
        return -1;
    }
    node = sim_body_add(stream->capture->body, action, stream->heads, stream->head_count);
    stream->head_count = 0;
    add_heads(stream, &node, 1);
    return 0;
}

/* Appends the nodes of another graph after the stream's heads. */
int sim_capture_launch(struct sim_stream *stream, const struct sim_body *body)
{
    struct sim_body *into = stream->capture->body;
    uint64_t base = into->count;
    uint64_t *needs = sim_zalloc((body->count + 1) * sizeof(*needs));
    bool *is_needed = sim_zalloc(body->count + 1);

    if (stream->capture->is_broken) {
        free(needs);
        free(is_needed);
        return -1;
    }
    for (size_t i = 0; i < body->count; i++) {
        const struct sim_node *node = &body->nodes[i];
        struct sim_action action = node->action;

        if (action.event != NULL) {
            sim_event_get(action.event);
        }
        for (size_t j = 0; j < node->need_count; j++) {
            needs[j] = base + node->needs[j];
            is_needed[node->needs[j]] = true;
        }
        sim_body_add(into, &action, node->need_count > 0 ? needs : stream->heads,
                     node->need_count > 0 ? node->need_count : stream->head_count);
    }
    if (body->count > 0) {
        stream->head_count = 0;
    }
    for (uint64_t i = 0; i < body->count; i++) {
        if (!is_needed[i]) {
            add_heads(stream, &(uint64_t){base + i}, 1);
        }
    }
    free(needs);
    free(is_needed);
    return 0;
}

void sim_capture_record(struct sim_stream *stream, struct sim_event *event)
{
    struct sim_mark *mark = sim_mark_create();

    mark->is_captured = true;
    mark->capture_id = stream->capture->id;
    mark->nodes = sim_zalloc((stream->head_count + 1) * sizeof(*mark->nodes));
    mark->node_count = stream->head_count;
    if (stream->head_count > 0) {
        memcpy(mark->nodes, stream->heads, stream->head_count * sizeof(*mark->nodes));
    }
    sim_mark_put(event->mark);
    event->mark = mark;
}

static struct sim_captured *capture_of(const struct sim_mark *mark)
{
    struct sim_captured *capture = captures;

    while (capture != NULL && capture->id != mark->capture_id) {
        capture = capture->next;
    }
    return capture;
}

bool sim_event_is_in_a_capture(const struct sim_event *event)
{
    bool is_in;

    sim_locked();
    is_in = event->mark != NULL && event->mark->is_captured && capture_of(event->mark) != NULL;
    sim_unlocked();
    return is_in;
}

bool sim_event_break_capture(struct sim_event *event)
{
    struct sim_captured *capture;

    sim_locked();
    capture = event->mark != NULL && event->mark->is_captured ? capture_of(event->mark) : NULL;
    if (capture != NULL) {
        capture->is_broken = true;
    }
    sim_unlocked();
    return capture != NULL;
}

int sim_capture_wait(struct sim_stream *stream, struct sim_event *event)
{
    struct sim_mark *mark = event->mark;
    struct sim_captured *capture;

    if (mark == NULL || !mark->is_captured) {
        if (stream->capture->is_broken) {
            return -1;
        }
        if (event->is_signal) {
            sim_event_get(event);
            return sim_capture_put(stream,
                                   &(struct sim_action){.kind = SIM_WORK_WAIT, .event = event});
        }
        /* A graph cannot wait for an event outside the graph. */
        stream->capture->is_broken = mark != NULL || event->shared != NULL;
        return stream->capture->is_broken ? -1 : 0;
    }
    capture = capture_of(mark);
    if (capture == NULL || (stream->capture != NULL && stream->capture != capture) ||
        (stream->flags & SIM_STREAM_DEFAULT) != 0) {
        if (stream->capture != NULL) {
            stream->capture->is_broken = true;
        }
        if (capture != NULL) {
            capture->is_broken = true;
        }
        return -1;
    }
    if (capture->is_broken) {
        return -1;
    }
    if (stream->capture == NULL) {
        stream->capture = capture;
        stream->head_count = 0;
    }
    add_heads(stream, mark->nodes, mark->node_count);
    return 0;
}

void sim_capture_part(struct sim_stream *stream)
{
    sim_locked();
    if (stream->capture != NULL && stream->capture->origin != stream) {
        stream->capture = NULL;
        stream->head_count = 0;
    }
    sim_unlocked();
}

/* A stream is destroyed: a capture that it joined is broken, a capture that it began is ended. */
void sim_capture_leave(struct sim_stream *stream)
{
    struct sim_captured *capture = stream->capture;

    if (capture == NULL) {
        return;
    }
    capture->is_broken = true;
    if (capture->origin == stream) {
        free_capture(capture);
    }
    stream->capture = NULL;
    stream->head_count = 0;
}
