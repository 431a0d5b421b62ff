/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Events and the marks that they refer to. A mark has a reference count: streams that wait for it
 * and works that reach it keep it, even after the event is destroyed. The caller holds sim_lock,
 * except for the exported functions.
 */
#include "clock.h"
#include "inside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct sim_mark *sim_mark_create(void)
{
    struct sim_mark *mark = sim_zalloc(sizeof(*mark));

    mark->holders = 1;
    return mark;
}

struct sim_mark *sim_mark_get(struct sim_mark *mark)
{
    if (mark != NULL) {
        mark->holders++;
    }
    return mark;
}

void sim_mark_put(struct sim_mark *mark)
{
    if (mark == NULL || --mark->holders > 0) {
        return;
    }
    if (mark->event != NULL) {
        sim_event_put(mark->event);
    }
    free(mark->nodes);
    free(mark);
}

bool sim_mark_is_reached(struct sim_mark *mark)
{
    if (!mark->is_reached && mark->shared != NULL &&
        atomic_load(&mark->shared->reached) >= mark->shared_number) {
        mark->is_reached = true;
        mark->time_ns = atomic_load(&mark->shared->time_ns);
    }
    return mark->is_reached;
}

void sim_mark_reach(struct sim_mark *mark, bool is_lost)
{
    if (mark->is_reached) {
        return;
    }
    mark->is_reached = true;
    mark->is_lost = is_lost;
    mark->time_ns = now_ns();
    if (mark->shared != NULL && atomic_load(&mark->shared->reached) < mark->shared_number) {
        atomic_store(&mark->shared->time_ns, mark->time_ns);
        atomic_store(&mark->shared->reached, mark->shared_number);
    }
    pthread_cond_broadcast(&sim_changed);
}

void sim_event_get(struct sim_event *event)
{
    event->holders++;
}

void sim_event_put(struct sim_event *event)
{
    if (--event->holders > 0) {
        return;
    }
    if (event->shared != NULL) {
        munmap(event->shared, SIM_PAGE);
    }
    if (event->shared_fd >= 0) {
        close(event->shared_fd);
    }
    free(event);
}

/* A mark of a shared event keeps the shared page, and therefore the event. */
static void share_mark(struct sim_mark *mark, struct sim_event *event, uint64_t number)
{
    mark->shared = event->shared;
    mark->shared_number = number;
    mark->event = event;
    event->holders++;
}

static void set_mark(struct sim_event *event, struct sim_mark *mark)
{
    struct sim_mark *old = event->mark;

    event->mark = mark;
    sim_mark_put(old);
}

/*
 * Returns a reference to the event's current mark; NULL: none. The current mark of a shared event
 * is the latest mark of any process.
 */
static struct sim_mark *take_mark(struct sim_event *event)
{
    struct sim_mark *mark;
    uint64_t number;

    if (event->shared == NULL || (event->mark != NULL && event->mark->is_captured)) {
        return sim_mark_get(event->mark);
    }
    number = atomic_load(&event->shared->recorded);
    if (event->mark != NULL && event->mark->shared_number == number) {
        return sim_mark_get(event->mark);
    }
    if (number == 0) {
        return NULL;
    }
    mark = sim_mark_create();
    share_mark(mark, event, number);
    return mark;
}

struct sim_event *sim_event_create(uint32_t physical, uint32_t flags)
{
    struct sim_event *event = sim_zalloc(sizeof(*event));

    event->holders = 1;
    event->physical = physical;
    event->flags = flags;
    event->shared_fd = -1;
    return event;
}

void sim_event_destroy(struct sim_event *event)
{
    sim_locked();
    set_mark(event, NULL);
    sim_event_put(event);
    sim_unlocked();
}

uint32_t sim_event_flags(const struct sim_event *event)
{
    return event->flags;
}

uint32_t sim_event_physical(const struct sim_event *event)
{
    return event->physical;
}

int sim_event_record(struct sim_event *event, struct sim_stream *stream)
{
    struct sim_mark *mark;
    int status = 0;

    sim_locked();
    if (stream->capture != NULL) {
        if (stream->capture->is_broken) {
            status = -1;
        } else {
            sim_capture_record(stream, event);
        }
        sim_unlocked();
        return status;
    }
    mark = sim_mark_create();
    if (event->shared != NULL) {
        share_mark(mark, event, atomic_fetch_add(&event->shared->recorded, 1) + 1);
    }
    status = sim_stream_put(
        stream, &(struct sim_action){.kind = SIM_WORK_RECORD, .mark = sim_mark_get(mark)});
    if (status != 0) {
        sim_mark_reach(mark, true);
    }
    set_mark(event, mark);
    sim_unlocked();
    return status;
}

/* A stream of its own waits for a mark on every other stream, and then reaches the event's mark. */
void sim_event_record_all(struct sim_event *event)
{
    struct sim_stream *last = sim_stream_create(event->physical, SIM_STREAM_NON_BLOCKING, 0);
    struct sim_mark *mark;

    sim_locked();
    for (struct sim_stream *stream = sim_streams(); stream != NULL; stream = stream->next) {
        if (stream != last && stream->physical == event->physical) {
            mark = sim_mark_create();
            if (sim_stream_put(stream, &(struct sim_action){.kind = SIM_WORK_RECORD,
                                                            .mark = sim_mark_get(mark)}) != 0) {
                sim_mark_reach(mark, true);
            }
            sim_stream_put(last, &(struct sim_action){.kind = SIM_WORK_WAIT, .mark = mark});
        }
    }
    mark = sim_mark_create();
    if (sim_stream_put(
            last, &(struct sim_action){.kind = SIM_WORK_RECORD, .mark = sim_mark_get(mark)}) != 0) {
        sim_mark_reach(mark, true);
    }
    set_mark(event, mark);
    sim_unlocked();
    sim_stream_destroy(last);
}

int sim_event_reset(struct sim_event *event)
{
    sim_locked();
    event->is_signal = true;
    set_mark(event, sim_mark_create());
    sim_unlocked();
    return 0;
}

int sim_event_signal(struct sim_event *event, struct sim_stream *stream)
{
    struct sim_action action = {.kind = SIM_WORK_RECORD};
    int status = 0;

    sim_locked();
    event->is_signal = true;
    if (event->mark == NULL) {
        set_mark(event, sim_mark_create());
    }
    if (stream == NULL) {
        sim_mark_reach(event->mark, false);
    } else if (stream->capture != NULL) {
        sim_event_get(event);
        action.event = event;
        status = sim_capture_put(stream, &action);
    } else {
        action.mark = sim_mark_get(event->mark);
        status = sim_stream_put(stream, &action);
    }
    sim_unlocked();
    return status;
}

int sim_stream_wait_event(struct sim_stream *stream, struct sim_event *event)
{
    struct sim_mark *mark;
    int status = 0;

    sim_locked();
    mark = take_mark(event);
    if (stream->capture != NULL || (mark != NULL && mark->is_captured)) {
        status = sim_capture_wait(stream, event);
    } else if (mark != NULL && !sim_mark_is_reached(mark)) {
        status = sim_stream_put(
            stream, &(struct sim_action){.kind = SIM_WORK_WAIT, .mark = sim_mark_get(mark)});
    }
    sim_mark_put(mark);
    sim_unlocked();
    return status;
}

bool sim_event_is_recorded(const struct sim_event *event)
{
    bool is_recorded;

    sim_locked();
    is_recorded = event->mark != NULL ||
                  (event->shared != NULL && atomic_load(&event->shared->recorded) > 0);
    sim_unlocked();
    return is_recorded;
}

bool sim_event_is_captured(const struct sim_event *event)
{
    bool is_captured;

    sim_locked();
    is_captured = event->mark != NULL && event->mark->is_captured;
    sim_unlocked();
    return is_captured;
}

static int state_of(struct sim_event *event, struct sim_mark *mark)
{
    if (mark == NULL) {
        return 0;
    }
    if (sim_mark_is_reached(mark)) {
        return mark->is_lost ? -1 : 0;
    }
    return mark->is_captured || sim_is_lost(event->physical) ? -1 : 1;
}

int sim_event_query(struct sim_event *event)
{
    struct sim_mark *mark;
    int state;

    sim_locked();
    mark = take_mark(event);
    state = state_of(event, mark);
    sim_mark_put(mark);
    sim_unlocked();
    return state;
}

int sim_event_synchronize(struct sim_event *event, uint64_t timeout_ns)
{
    uint64_t deadline_ns = sim_deadline(timeout_ns);
    struct sim_mark *mark;
    int state;

    sim_locked();
    mark = take_mark(event);
    while ((state = state_of(event, mark)) == 1) {
        if (!sim_wait_changed(deadline_ns, mark->shared != NULL)) {
            break;
        }
    }
    sim_mark_put(mark);
    sim_unlocked();
    return state;
}

uint64_t sim_event_time_ns(const struct sim_event *event)
{
    uint64_t time_ns = 0;

    sim_locked();
    if (event->shared != NULL) {
        time_ns = atomic_load(&event->shared->time_ns);
    } else if (event->mark != NULL) {
        time_ns = event->mark->time_ns;
    }
    sim_unlocked();
    return time_ns;
}
