/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Graphs: nodes and their dependencies. They never change after the capture, so that graphs,
 * instances and launches in flight share one reference-counted body, and an update exchanges
 * bodies.
 *
 * A launch runs its nodes on the worker of its stream, one after another, each time in another
 * order that the dependencies allow: a dependency that a capture missed is soon detected.
 */
#include "inside.h"

#include <stdlib.h>
#include <string.h>

struct sim_body *sim_body_create(void)
{
    struct sim_body *body = sim_zalloc(sizeof(*body));

    body->holders = 1;
    return body;
}

void sim_body_put(struct sim_body *body)
{
    if (--body->holders > 0) {
        return;
    }
    for (size_t i = 0; i < body->count; i++) {
        sim_action_drop(&body->nodes[i].action);
        free(body->nodes[i].needs);
    }
    free(body->nodes);
    free(body);
}

uint64_t sim_body_add(struct sim_body *body, const struct sim_action *action, const uint64_t *needs,
                      size_t need_count)
{
    struct sim_node *node;

    body->nodes = sim_grow(body->nodes, body->count, sizeof(*body->nodes));
    node = &body->nodes[body->count];
    node->action = *action;
    node->needs = sim_zalloc((need_count + 1) * sizeof(*node->needs));
    node->need_count = need_count;
    if (need_count > 0) {
        memcpy(node->needs, needs, need_count * sizeof(*needs));
    }
    return body->count++;
}

/* ---- launches ------------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Returns a random node among those that have not run and whose dependencies have run. */
static size_t choose(const struct sim_body *body, const bool *has_run, uint32_t *random)
{
    size_t chosen = 0, found = 0;

    for (size_t i = 0; i < body->count; i++) {
        bool is_ready = !has_run[i];

        for (size_t j = 0; is_ready && j < body->nodes[i].need_count; j++) {
            is_ready = has_run[body->nodes[i].needs[j]];
        }
        if (is_ready && next_random(random) % ++found == 0) {
            chosen = i;
        }
    }
    return chosen;
}

/* Runs a node that records an event or waits for one: uses the event's mark at this launch. */
static bool run_event_node(const struct sim_stream *stream, const struct sim_action *action)
{
    struct sim_mark *mark;

    sim_locked();
    if (action->kind == SIM_WORK_RECORD) {
        if (action->event->mark == NULL) {
            action->event->mark = sim_mark_create();
        }
        sim_mark_reach(action->event->mark, false);
    } else if (action->event->mark != NULL) {
        mark = sim_mark_get(action->event->mark);
        while (!sim_mark_is_reached(mark) && !sim_is_lost(stream->physical)) {
            sim_wait_changed(UINT64_MAX, mark->shared != NULL);
        }
        sim_mark_put(mark);
    }
    sim_unlocked();
    return !sim_is_lost(stream->physical);
}

bool sim_body_run(struct sim_stream *stream, const struct sim_body *body)
{
    static _Atomic uint32_t launches;
    uint32_t random = (atomic_fetch_add(&launches, 1) + 1) * 2654435761u | 1;
    bool *has_run = sim_zalloc(body->count + 1);
    bool is_ok = true;

    for (size_t left = body->count; left > 0 && is_ok; left--) {
        size_t node = choose(body, has_run, &random);
        const struct sim_action *action = &body->nodes[node].action;

        has_run[node] = true;
        is_ok = action->event != NULL ? run_event_node(stream, action)
                                      : sim_action_run(stream, action);
    }
    free(has_run);
    return is_ok;
}

int sim_graph_launch(struct sim_graph *instance, struct sim_stream *stream)
{
    struct sim_action action = {.kind = SIM_WORK_LAUNCH};
    struct sim_mark *mark;
    int status;

    sim_locked();
    if (stream->capture != NULL) {
        status = sim_capture_launch(stream, instance->body);
        sim_unlocked();
        return status;
    }
    mark = sim_mark_create();
    instance->body->holders++;
    action.body = instance->body;
    action.mark = sim_mark_get(mark);
    action.after = sim_mark_get(instance->last);
    status = sim_stream_put(stream, &action);
    if (status == 0) {
        sim_mark_put(instance->last);
        instance->last = mark;
    } else {
        sim_mark_put(mark);
    }
    sim_unlocked();
    return status;
}

/* ---- graphs --------------------------------------------------------------------------------- */

uint64_t sim_graph_node_count(const struct sim_graph *graph)
{
    return graph->body->count;
}

const char *sim_graph_node_kind(const struct sim_graph *graph, uint64_t node)
{
    return node < graph->body->count ? sim_action_name(graph->body->nodes[node].action.kind) : NULL;
}

struct sim_graph *sim_graph_copy(const struct sim_graph *graph)
{
    struct sim_graph *copy = sim_zalloc(sizeof(*copy));

    sim_locked();
    copy->body = graph->body;
    copy->body->holders++;
    sim_unlocked();
    return copy;
}

static bool is_same_shape(const struct sim_body *a, const struct sim_body *b)
{
    bool is_same = a->count == b->count;

    for (size_t i = 0; i < a->count && is_same; i++) {
        const struct sim_node *one = &a->nodes[i];
        const struct sim_node *other = &b->nodes[i];

        is_same = one->action.kind == other->action.kind && one->need_count == other->need_count &&
                  memcmp(one->needs, other->needs, one->need_count * sizeof(*one->needs)) == 0;
    }
    return is_same;
}

bool sim_graph_update(struct sim_graph *instance, const struct sim_graph *graph)
{
    bool is_same;

    sim_locked();
    is_same = is_same_shape(instance->body, graph->body);
    if (is_same) {
        graph->body->holders++;
        sim_body_put(instance->body);
        instance->body = graph->body;
    }
    sim_unlocked();
    return is_same;
}

void sim_graph_destroy(struct sim_graph *graph)
{
    sim_locked();
    sim_body_put(graph->body);
    sim_mark_put(graph->last);
    sim_unlocked();
    free(graph);
}
