/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Streams: each has a queue and a thread.
 *
 * A work stays at its queue's head until it is complete, and all works of the process carry stamps
 * in the order of submission. "All work submitted before now is done" is therefore one comparison
 * per stream, and the order between the default stream and the others needs no lists: a work may
 * begin when the head of every stream that it must wait for is younger than the work.
 *
 * A lost device's works are dropped, except for steps, which only release objects; their marks are
 * reached as lost, so that no thread waits forever.
 */
#include "clock.h"
#include "inside.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct sim_stream *streams;
static uint64_t last_stamp;
static atomic_bool lost[SIM_MAX_DEVICES];
static _Thread_local bool is_worker;

struct sim_stream *sim_streams(void)
{
    return streams;
}

uint64_t sim_stamp(void)
{
    return ++last_stamp;
}

uint64_t sim_deadline(uint64_t timeout_ns)
{
    uint64_t time_ns = now_ns();

    return timeout_ns >= UINT64_MAX - time_ns ? UINT64_MAX : time_ns + timeout_ns;
}

bool sim_wait_changed(uint64_t deadline_ns, bool polls)
{
    uint64_t until_ns = deadline_ns;
    struct timespec time;

    if (polls) {
        uint64_t next_ns = now_ns() + 200000;

        until_ns = next_ns < deadline_ns ? next_ns : deadline_ns;
    }
    if (until_ns == UINT64_MAX) {
        pthread_cond_wait(&sim_changed, &sim_lock);
        return true;
    }
    time.tv_sec = (time_t)(until_ns / 1000000000);
    time.tv_nsec = (long)(until_ns % 1000000000);
    return pthread_cond_timedwait(&sim_changed, &sim_lock, &time) != ETIMEDOUT ||
           until_ns != deadline_ns;
}

/* ---- lost devices --------------------------------------------------------------------------- */

bool sim_is_lost(uint32_t physical)
{
    return physical < SIM_MAX_DEVICES && atomic_load(&lost[physical]);
}

/* Returns the whole device of a device or part: hardware is lost as a whole. */
static uint32_t whole_of(uint32_t physical)
{
    int32_t parent = sim_parent(physical);

    return parent >= 0 ? (uint32_t)parent : physical;
}

void sim_device_lose(uint32_t physical)
{
    uint32_t whole = whole_of(physical);

    sim_locked();
    for (uint32_t i = 0; i < SIM_MAX_DEVICES; i++) {
        if (whole_of(i) == whole) {
            atomic_store(&lost[i], true);
        }
    }
    pthread_cond_broadcast(&sim_changed);
    sim_unlocked();
}

void sim_device_reset(uint32_t physical)
{
    uint32_t whole = whole_of(physical);

    sim_locked();
    for (uint32_t i = 0; i < SIM_MAX_DEVICES; i++) {
        if (whole_of(i) == whole) {
            atomic_store(&lost[i], false);
        }
    }
    for (struct sim_stream *stream = streams; stream != NULL; stream = stream->next) {
        if (whole_of(stream->physical) == whole) {
            stream->is_failed = false;
        }
    }
    sim_unlocked();
}

/* ---- works ---------------------------------------------------------------------------------- */

const char *sim_action_name(enum sim_work_kind kind)
{
    static const char *const names[] = {"copy", "fill", "task", "task", "wait", "record", "launch"};

    return names[kind];
}

void sim_action_drop(struct sim_action *action)
{
    sim_mark_put(action->mark);
    sim_mark_put(action->after);
    if (action->event != NULL) {
        sim_event_put(action->event);
    }
    if (action->body != NULL) {
        sim_body_put(action->body);
    }
}

/* Waits for the scripted time, or until the device is lost. */
static void wait_latency(const struct sim_stream *stream, enum sim_work_kind kind)
{
    uint64_t latency_us = sim_latency_us(sim_action_name(kind));
    uint64_t deadline_ns;

    if (latency_us == 0) {
        return;
    }
    deadline_ns = sim_deadline(latency_us * 1000);
    while (!sim_is_lost(stream->physical) && sim_wait_changed(deadline_ns, false)) {
    }
}

static void fill_bytes(unsigned char *bytes, const struct sim_action *action, uint64_t from,
                       uint64_t to)
{
    if (action->pattern_bytes == 1) {
        memset(bytes + from, action->pattern[0], to - from);
        return;
    }
    for (uint64_t at = from; at < to; at++) {
        bytes[at] = action->pattern[at % action->pattern_bytes];
    }
}

/* Copies in two halves, so that a device may be lost between them. */
static bool move_bytes(const struct sim_stream *stream, const struct sim_action *action)
{
    const char *name = sim_action_name(action->kind);
    uint64_t size = action->size_bytes;
    bool is_copy = action->kind == SIM_WORK_COPY;
    bool loses = sim_loses(stream->physical, name);
    uint64_t part = loses ? size / 2 : size;
    char *to = sim_memory_hold(action->destination, size, name);

    if (is_copy) {
        const char *from = sim_memory_hold(action->source, size, name);

        memmove(to, from, part);
        sim_memory_release(action->source, size);
    } else {
        fill_bytes((unsigned char *)to, action, 0, part);
    }
    sim_memory_release(action->destination, size);
    if (loses) {
        sim_device_lose(stream->physical);
    }
    return !loses;
}

bool sim_tasks_in_turn;

static void run_task(const struct sim_action *action)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

    if (sim_tasks_in_turn) {
        pthread_mutex_lock(&turn);
    }
    action->task(action->argument);
    if (sim_tasks_in_turn) {
        pthread_mutex_unlock(&turn);
    }
}

bool sim_action_run(struct sim_stream *stream, const struct sim_action *action)
{
    bool moves = action->kind == SIM_WORK_COPY || action->kind == SIM_WORK_FILL;
    bool is_ok = true;

    if (action->kind == SIM_WORK_STEP) {
        action->task(action->argument);
        return true;
    }
    sim_locked();
    wait_latency(stream, action->kind);
    if (sim_is_lost(stream->physical)) {
        sim_unlocked();
        return false;
    }
    stream->is_moving = moves;
    sim_unlocked();
    if (moves) {
        is_ok = action->size_bytes == 0 || move_bytes(stream, action);
        sim_locked();
        stream->is_moving = false;
        pthread_cond_broadcast(&sim_changed);
        sim_unlocked();
    } else if (sim_loses(stream->physical, "task")) {
        sim_device_lose(stream->physical);
        is_ok = false;
    } else {
        run_task(action);
    }
    return is_ok;
}

/* ---- order ---------------------------------------------------------------------------------- */

static bool is_past(const struct sim_stream *stream, uint64_t stamp)
{
    return stream->head == NULL || stream->head->stamp > stamp;
}

/* Returns true if stream must wait for the earlier work of other. */
static bool owes(const struct sim_stream *stream, const struct sim_stream *other)
{
    return other != stream && other->physical == stream->physical &&
           ((stream->flags | other->flags) & SIM_STREAM_NON_BLOCKING) == 0 &&
           ((stream->flags | other->flags) & SIM_STREAM_DEFAULT) != 0;
}

static bool others_are_past(const struct sim_stream *stream, uint64_t stamp)
{
    for (const struct sim_stream *other = streams; other != NULL; other = other->next) {
        if (owes(stream, other) && !is_past(other, stamp)) {
            return false;
        }
    }
    return true;
}

bool sim_stream_is_done(const struct sim_stream *stream, uint64_t stamp)
{
    return is_past(stream, stamp) &&
           ((stream->flags & SIM_STREAM_DEFAULT) == 0 || others_are_past(stream, stamp));
}

/*
 * Returns true if the work may begin. *polls_out is set if it waits for another process, whose
 * changes do not signal sim_changed here.
 */
static bool is_ready(const struct sim_stream *stream, const struct sim_work *work, bool *polls_out)
{
    struct sim_mark *mark = work->action.kind == SIM_WORK_WAIT ? work->action.mark
                                                               : work->action.after;

    *polls_out = mark != NULL && mark->shared != NULL;
    return others_are_past(stream, work->stamp) && (mark == NULL || sim_mark_is_reached(mark));
}

/* ---- the worker ----------------------------------------------------------------------------- */

static bool run_work(struct sim_stream *stream, const struct sim_work *work)
{
    switch (work->action.kind) {
    case SIM_WORK_WAIT:
    case SIM_WORK_RECORD:
        return !sim_is_lost(stream->physical);
    case SIM_WORK_LAUNCH:
        return sim_body_run(stream, work->action.body);
    default:
        return sim_action_run(stream, &work->action);
    }
}

static void finish_work(struct sim_stream *stream, struct sim_work *work, bool is_ok)
{
    stream->is_failed = stream->is_failed || !is_ok;
    if (work->action.mark != NULL && work->action.kind != SIM_WORK_WAIT) {
        sim_mark_reach(work->action.mark, !is_ok);
    }
    stream->head = work->next;
    if (stream->head == NULL) {
        stream->tail = NULL;
    }
    sim_action_drop(&work->action);
    free(work);
    pthread_cond_broadcast(&sim_changed);
}

static void stream_free(struct sim_stream *stream)
{
    struct sim_stream **link = &streams;

    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    pthread_cond_destroy(&stream->wake);
    free(stream->heads);
    free(stream);
}

static void *work_on(void *argument)
{
    struct sim_stream *stream = argument;
    bool polls;

    is_worker = true;
    sim_locked();
    for (;;) {
        struct sim_work *work = stream->head;
        bool is_ok;

        if (work == NULL) {
            if (stream->is_destroyed) {
                break;
            }
            pthread_cond_wait(&stream->wake, &sim_lock);
            continue;
        }
        while (!is_ready(stream, work, &polls) && !sim_is_lost(stream->physical)) {
            sim_wait_changed(UINT64_MAX, polls);
        }
        sim_unlocked();
        is_ok = run_work(stream, work);
        sim_locked();
        finish_work(stream, work, is_ok);
    }
    stream_free(stream);
    sim_unlocked();
    return NULL;
}

bool sim_is_worker(void)
{
    return is_worker;
}

/* Starts a worker with the program's signals blocked. */
static void start_worker(struct sim_stream *stream)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_t thread;
    int error;

    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attributes, work_on, stream);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error != 0) {
        sim_misuse("the simulator itself gets no thread for a stream: %s", strerror(error));
    }
    stream->has_worker = true;
}

int sim_stream_put(struct sim_stream *stream, const struct sim_action *action)
{
    struct sim_work *work;

    if (action->kind != SIM_WORK_STEP && (sim_is_lost(stream->physical) || stream->is_failed)) {
        struct sim_action dropped = *action;

        sim_action_drop(&dropped);
        return -1;
    }
    work = sim_zalloc(sizeof(*work));
    work->action = *action;
    work->stamp = sim_stamp();
    if (stream->tail != NULL) {
        stream->tail->next = work;
    } else {
        stream->head = work;
    }
    stream->tail = work;
    if (!stream->has_worker) {
        start_worker(stream);
    }
    pthread_cond_signal(&stream->wake);
    return 0;
}

/* ---- streams -------------------------------------------------------------------------------- */

struct sim_stream *sim_stream_create(uint32_t physical, uint32_t flags, int32_t priority)
{
    struct sim_stream *stream = sim_zalloc(sizeof(*stream));

    stream->physical = physical;
    stream->flags = flags;
    stream->priority = priority;
    pthread_cond_init(&stream->wake, NULL);
    sim_locked();
    stream->next = streams;
    streams = stream;
    sim_unlocked();
    return stream;
}

void sim_stream_destroy(struct sim_stream *stream)
{
    sim_locked();
    sim_capture_leave(stream);
    stream->is_destroyed = true;
    if (stream->has_worker) {
        pthread_cond_signal(&stream->wake);
    } else {
        stream_free(stream);
    }
    sim_unlocked();
}

uint32_t sim_stream_physical(const struct sim_stream *stream)
{
    return stream->physical;
}

int32_t sim_stream_priority(const struct sim_stream *stream)
{
    return stream->priority;
}

/*
 * Returns 0, 1 or -1 for the works up to the stamp, like sim_stream_query(). While a failed work's
 * bytes may still be moving, the result is 1.
 */
static int state_of(const struct sim_stream *stream, uint64_t stamp)
{
    if (stream->is_failed || sim_is_lost(stream->physical)) {
        return stream->is_moving ? 1 : -1;
    }
    return sim_stream_is_done(stream, stamp) ? 0 : 1;
}

int sim_stream_query(struct sim_stream *stream)
{
    int state = -1;

    sim_locked();
    if (stream->capture != NULL) {
        stream->capture->is_broken = true;
    } else {
        state = state_of(stream, last_stamp);
    }
    sim_unlocked();
    return state;
}

int sim_stream_synchronize(struct sim_stream *stream, uint64_t timeout_ns)
{
    uint64_t deadline_ns = sim_deadline(timeout_ns);
    uint64_t stamp;
    int state = -1;

    sim_locked();
    if (stream->capture != NULL) {
        stream->capture->is_broken = true;
        sim_unlocked();
        return -1;
    }
    stamp = last_stamp;
    while ((state = state_of(stream, stamp)) == 1) {
        if (!sim_wait_changed(deadline_ns, false)) {
            break;
        }
    }
    sim_unlocked();
    return state;
}

static int device_state(uint32_t physical, uint64_t stamp)
{
    int state = sim_is_lost(physical) ? -1 : 0;

    for (const struct sim_stream *stream = streams; stream != NULL; stream = stream->next) {
        int one = stream->physical == physical ? state_of(stream, stamp) : 0;

        if (one == 1) {
            return 1;
        }
        state = one != 0 ? one : state;
    }
    return state;
}

int sim_device_synchronize(uint32_t physical)
{
    uint64_t stamp;
    int state;

    sim_locked();
    stamp = last_stamp;
    while ((state = device_state(physical, stamp)) == 1) {
        sim_wait_changed(UINT64_MAX, false);
    }
    sim_unlocked();
    return state;
}

/* ---- submitting work ------------------------------------------------------------------------ */

static int submit(struct sim_stream *stream, const struct sim_action *action)
{
    int status;

    sim_locked();
    status = stream->capture != NULL ? sim_capture_put(stream, action)
                                     : sim_stream_put(stream, action);
    sim_unlocked();
    return status;
}

int sim_submit_copy(struct sim_stream *stream, void *destination, const void *source,
                    uint64_t size_bytes)
{
    return submit(stream, &(struct sim_action){.kind = SIM_WORK_COPY,
                                               .destination = destination,
                                               .source = source,
                                               .size_bytes = size_bytes});
}

int sim_submit_fill(struct sim_stream *stream, void *destination, const void *pattern,
                    uint32_t pattern_bytes, uint64_t size_bytes)
{
    struct sim_action action = {.kind = SIM_WORK_FILL,
                                .destination = destination,
                                .size_bytes = size_bytes,
                                .pattern_bytes = pattern_bytes};

    if (pattern_bytes == 0 || pattern_bytes > sizeof(action.pattern)) {
        sim_misuse("a fill with a pattern of %u bytes", pattern_bytes);
    }
    memcpy(action.pattern, pattern, pattern_bytes);
    return submit(stream, &action);
}

int sim_submit_task(struct sim_stream *stream, void (*task)(void *), void *argument)
{
    return submit(stream,
                  &(struct sim_action){.kind = SIM_WORK_TASK, .task = task, .argument = argument});
}

int sim_submit_step(struct sim_stream *stream, void (*step)(void *), void *argument)
{
    return submit(stream,
                  &(struct sim_action){.kind = SIM_WORK_STEP, .task = step, .argument = argument});
}
