/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: calls while held work is pending. */
#include "base/clock.h"
#include "base/text.h"
#include "conformance/conformance.h"

#include <stdio.h>

#define GROUP "held"
#define BYTES 5003u
#define LARGE (UINT64_C(3) << 20) /* larger than the staging buffers of runtimes */
#define TIMEOUT_NS UINT64_C(20000000)
#define FOREVER_NS \
    UINT64_C(3600000000000) /* an hour: the suite detects an endless wait long before that */

/* ---- a stream with held work ---------------------------------------------------------------- */

struct held {
    struct ds_accel__hold gate;
    ds_accel_plugin_stream_t *stream; /* the stream on which the gate is queued */
    ds_accel_plugin_stream_t *other;
    ds_accel_plugin_event_t *event;
    unsigned char *memory[2];
    void *pinned; /* NULL: none */
    ds_accel_plugin_graph_exec_t *exec;
    /* an event whose work had completed before the gate was queued */
    ds_accel_plugin_event_t *first;
    ds_accel_plugin_device_t *peer;
    uint64_t timeout_ns;
    uint32_t event_flags;
    int32_t answer; /* status or value that a query returned */
};

static bool hold(struct ds_accel__run *run, struct held *held)
{
    held->stream = ds_accel__stream(run);
    if (run->table.event_create != NULL) {
        held->event = ds_accel__event(run, held->event_flags);
    }
    if (ds_accel__gate_close(run, &held->gate, held->stream)) {
        return true;
    }
    run->table.stream_destroy(held->stream);
    if (held->event != NULL) {
        run->table.event_destroy(held->event);
    }
    return false;
}

static void let_go(struct ds_accel__run *run, struct held *held)
{
    ds_accel__gate_open(&held->gate);
    ds_accel__wait(run, held->stream);
    run->table.stream_destroy(held->stream);
    if (held->event != NULL) {
        run->table.event_destroy(held->event);
    }
}

#define HELD_CALL(function, ...) \
    static int32_t function(struct ds_accel__run *run, void *user_data) \
    { \
        struct held *held = user_data; \
\
        return (__VA_ARGS__); \
    }

static void do_nothing(void *user_data, int32_t status)
{
    (void)user_data;
    (void)status;
}

HELD_CALL(query, CALL(run, stream_query, held->stream))
HELD_CALL(query_other, held->answer = CALL(run, stream_query, held->other),
          held->answer < 0 ? held->answer : DS_ACCEL_OK)
HELD_CALL(record, CALL(run, event_record, held->event, held->stream))
HELD_CALL(query_event, CALL(run, event_query, held->event))
HELD_CALL(wait_event, CALL(run, stream_wait_event, held->other, held->event))
HELD_CALL(wait_stream, CALL(run, stream_synchronize, held->stream, held->timeout_ns))
HELD_CALL(wait_mark, CALL(run, event_synchronize, held->event, held->timeout_ns))
HELD_CALL(wait_device, CALL(run, device_synchronize, run->device, held->timeout_ns))
HELD_CALL(task, CALL(run, stream_host_task, held->stream, do_nothing, NULL))
HELD_CALL(fill, CALL(run, mem_fill_async, held->stream, held->memory[0], "\x5c", 1, BYTES))
HELD_CALL(copy, CALL(run, mem_copy_async, held->stream, held->memory[1], held->memory[0], BYTES,
                     DS_ACCEL_COPY_DEVICE_TO_DEVICE))
HELD_CALL(copy_other, CALL(run, mem_copy_async, held->other, held->memory[1], held->memory[0],
                           BYTES, DS_ACCEL_COPY_DEVICE_TO_DEVICE))
HELD_CALL(copy_in, CALL(run, mem_copy_async, held->stream, held->memory[0], held->pinned, BYTES,
                        DS_ACCEL_COPY_HOST_TO_DEVICE))
HELD_CALL(copy_out, CALL(run, mem_copy_async, held->stream, held->pinned, held->memory[1], BYTES,
                         DS_ACCEL_COPY_DEVICE_TO_HOST))
HELD_CALL(fill_large, CALL(run, mem_fill_async, held->stream, held->memory[0], "\x5c", 1, LARGE))
HELD_CALL(copy_large, CALL(run, mem_copy_async, held->stream, held->memory[1], held->memory[0],
                           LARGE, DS_ACCEL_COPY_DEVICE_TO_DEVICE))
HELD_CALL(launch, CALL(run, graph_launch, held->exec, held->stream))

static int32_t ask_time(struct ds_accel__run *run, void *user_data)
{
    struct held *held = user_data;
    double time = 0;

    return CALL(run, event_elapsed_ms, held->first, held->event, &time);
}

static int32_t copy_peer(struct ds_accel__run *run, void *user_data)
{
    struct held *held = user_data;

    return CALL(run, mem_copy_peer_async, held->stream, held->peer, held->memory[1], run->device,
                held->memory[0], BYTES);
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* Check that a wait for held work times out, with timeouts of 0, of 1 ns (below the resolution
 * of a runtime) and of TIMEOUT_NS, the last of them not too early. False if the check was
 * skipped. */
static bool check_deadlines(struct ds_accel__run *run, struct held *held, const char *slot,
                            ds_accel__call_t wait)
{
    static const uint64_t timeouts_ns[] = {0, 1, TIMEOUT_NS};
    uint64_t start_ns = 0;

    for (size_t i = 0; i < ARRAY_SIZE(timeouts_ns); i++) {
        held->timeout_ns = timeouts_ns[i];
        start_ns = ds_accel__now_ns();
        if (!ds_accel__want_prompt(run, &held->gate, DS_ACCEL_ERR_TIMEOUT, slot, wait, held)) {
            return false;
        }
    }
    EXPECT(run, ds_accel__now_ns() - start_ns >= TIMEOUT_NS - TIMEOUT_NS / 10,
           "%s with a timeout of %llu ns: DS_ACCEL_ERR_TIMEOUT after %llu ns", slot,
           (unsigned long long)TIMEOUT_NS, (unsigned long long)(ds_accel__now_ns() - start_ns));
    return true;
}

#define ENDLESS 3 /* timeouts that do not expire */

struct endless_wait {
    const char *slot;
    ds_accel__call_t wait;
    /* number of timeouts to use, each on a thread of its own; 1 for a stream, which only one
     * thread at a time may use */
    size_t count;
};

/* Check that waits return when the work completes. The timeouts are an hour, a time that no clock
 * can represent, and infinite. All waits run at the same time, so that one event has several
 * waiters. */
static void check_ends(struct ds_accel__run *run, struct held *held)
{
    static const uint64_t timeouts_ns[ENDLESS] = {FOREVER_NS, UINT64_MAX - 1, UINT64_MAX};
    const bool has_event = run->table.event_synchronize != NULL && run->table.event_record != NULL;
    const struct endless_wait waits[] = {
        {"stream_synchronize", wait_stream, 1},
        {"device_synchronize", wait_device,
         run->table.device_synchronize != NULL ? (size_t)ENDLESS : 0},
        {"event_synchronize", wait_mark, has_event ? (size_t)ENDLESS : 0},
    };
    struct ds_accel__caller callers[ARRAY_SIZE(waits) * ENDLESS];
    struct held each[ARRAY_SIZE(callers)];
    const char *slots[ARRAY_SIZE(callers)];
    size_t started = 0;

    for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
        for (size_t k = 0; k < waits[i].count; k++, started++) {
            slots[started] = waits[i].slot;
            each[started] = *held;
            each[started].timeout_ns = timeouts_ns[k];
            ds_accel__caller_start(run, &callers[started], waits[i].wait, &each[started]);
            EXPECT(run, !ds_accel__caller_returns(&callers[started], TIMEOUT_NS),
                   "%s with a timeout of %llu ns returned while the work was blocked",
                   waits[i].slot, (unsigned long long)timeouts_ns[k]);
        }
    }
    ds_accel__gate_open(&held->gate);
    for (size_t i = 0; i < started; i++) {
        EXPECT(run, ds_accel__caller_returns(&callers[i], DS_ACCEL__CALL_NS),
               "%s with a timeout of %llu ns goes on when the work is done", slots[i],
               (unsigned long long)each[i].timeout_ns);
        ds_accel__want(run, DS_ACCEL_OK, slots[i], ds_accel__caller_finish(run, &callers[i]));
    }
}

/* Check that waits for completed work succeed, also with a timeout of zero. */
static void check_done(struct ds_accel__run *run, const struct held *held)
{
    WANT(run, DS_ACCEL_OK, stream_synchronize, held->stream, 0);
    if (run->table.event_synchronize != NULL) {
        WANT(run, DS_ACCEL_OK, event_synchronize, held->event, UINT64_MAX);
        WANT(run, DS_ACCEL_OK, event_synchronize, held->event, 0);
    }
    if (run->table.device_synchronize != NULL) {
        WANT(run, DS_ACCEL_OK, device_synchronize, run->device, UINT64_MAX);
        WANT(run, DS_ACCEL_OK, device_synchronize, run->device, 0);
    }
}

static void check_timeouts(struct ds_accel__run *run)
{
    struct held held = {0};

    if (!hold(run, &held)) {
        return;
    }
    if (check_deadlines(run, &held, "stream_synchronize", wait_stream) &&
        (run->table.device_synchronize == NULL ||
         check_deadlines(run, &held, "device_synchronize", wait_device)) &&
        (run->table.event_synchronize == NULL || run->table.event_record == NULL ||
         (ds_accel__prepare(run, &held.gate, "event_record", record, &held) &&
          check_deadlines(run, &held, "event_synchronize", wait_mark)))) {
        check_ends(run, &held);
        check_done(run, &held);
    }
    let_go(run, &held);
}

/* ---- queries -------------------------------------------------------------------------------- */

static void check_query(struct ds_accel__run *run)
{
    struct held held = {0};

    if (hold(run, &held)) {
        ds_accel__want_prompt(run, &held.gate, DS_ACCEL_NOT_READY, "stream_query", query, &held);
        let_go(run, &held);
    }
}

static void check_query_event(struct ds_accel__run *run)
{
    struct held held = {0};

    if (!hold(run, &held)) {
        return;
    }
    if (ds_accel__prepare(run, &held.gate, "event_record", record, &held)) {
        ds_accel__want_prompt(run, &held.gate, DS_ACCEL_NOT_READY, "event_query", query_event,
                              &held);
    }
    let_go(run, &held);
}

static void check_no_time(struct ds_accel__run *run)
{
    struct held held = {.other = run->stream, .first = ds_accel__event(run, DS_ACCEL_EVENT_TIMING)};

    WANT(run, DS_ACCEL_OK, event_record, held.first, run->stream);
    ds_accel__wait(run, run->stream);
    held.event_flags = DS_ACCEL_EVENT_TIMING;
    if (hold(run, &held)) {
        if (ds_accel__prepare(run, &held.gate, "event_record", record, &held)) {
            ds_accel__want_prompt(run, &held.gate, DS_ACCEL_ERR_STATE, "event_elapsed_ms", ask_time,
                                  &held);
        }
        let_go(run, &held);
    }
    run->table.event_destroy(held.first);
}

/* ---- calls during a wait -------------------------------------------------------------------- */

/* Make calls with a stream, an event and memory that the other thread's wait does not involve. */
static int32_t use_others(struct ds_accel__run *run, void *user_data)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
    ds_accel_plugin_event_t *event = NULL;

    (void)user_data;
    ds_accel__wait(run, stream);
    if (run->table.device_info != NULL) {
        WANT(run, DS_ACCEL_OK, device_info, run->device, &info);
    }
    if (run->table.event_create != NULL) {
        event = ds_accel__event(run, 0);
        if (run->table.event_record != NULL && run->table.event_synchronize != NULL) {
            WANT(run, DS_ACCEL_OK, event_record, event, stream);
            WANT(run, DS_ACCEL_OK, event_synchronize, event, UINT64_MAX);
        }
        run->table.event_destroy(event);
    }
    run->table.stream_destroy(stream);
    return DS_ACCEL_OK;
}

/* Check calls that another thread makes while one thread waits. */
static void look_beside(struct ds_accel__run *run, const char *slot, ds_accel__call_t wait)
{
    struct held held = {.timeout_ns = UINT64_MAX};
    struct ds_accel__caller caller;
    char what[80];

    if (!hold(run, &held)) {
        return;
    }
    if (held.event == NULL || ds_accel__prepare(run, &held.gate, "event_record", record, &held)) {
        snprintf(what, sizeof(what), "a call of another thread during %s", slot);
        ds_accel__caller_start(run, &caller, wait, &held);
        /* after this time the call is waiting */
        (void)ds_accel__caller_returns(&caller, DS_ACCEL__GRACE_NS);
        ds_accel__want_prompt(run, &held.gate, DS_ACCEL_OK, what, use_others, NULL);
        ds_accel__gate_open(&held.gate);
        ds_accel__want(run, DS_ACCEL_OK, slot, ds_accel__caller_finish(run, &caller));
    }
    let_go(run, &held);
}

static void check_beside_wait(struct ds_accel__run *run)
{
    look_beside(run, "stream_synchronize", wait_stream);
    if (run->table.event_synchronize != NULL && run->table.event_record != NULL) {
        look_beside(run, "event_synchronize", wait_mark);
    }
    if (run->table.device_synchronize != NULL) {
        look_beside(run, "device_synchronize", wait_device);
    }
}

/* ---- queueing ------------------------------------------------------------------------------- */

static void take_memory(struct ds_accel__run *run, struct held *held, unsigned seed)
{
    unsigned char bytes[BYTES];

    for (unsigned i = 0; i < 2; i++) {
        held->memory[i] = ds_accel__take(run, LARGE);
        ds_accel__pattern(bytes, BYTES, seed + i);
        ds_accel__put(run, held->memory[i], bytes, BYTES);
    }
}

static void give_memory(struct ds_accel__run *run, struct held *held)
{
    ds_accel__give(run, held->memory[0]);
    ds_accel__give(run, held->memory[1]);
}

/* Record an event after the gate. On the other stream, queue a wait for this event and then a
 * copy. Fail if the other stream is done while the gate is still closed. */
static void queue_behind_event(struct ds_accel__run *run, struct held *held)
{
    struct ds_accel__hold *gate = &held->gate;

    if (ds_accel__prepare(run, gate, "event_record", record, held) &&
        ds_accel__want_prompt(run, gate, DS_ACCEL_OK, "stream_wait_event", wait_event, held) &&
        ds_accel__prepare(run, gate, "mem_copy_async", copy_other, held) &&
        ds_accel__prepare(run, gate, "stream_query", query_other, held)) {
        EXPECT(run, held->answer == DS_ACCEL_NOT_READY,
               "a stream that waits for an event is done before the event is reached");
    }
}

static void check_wait_event(struct ds_accel__run *run)
{
    struct held held = {.other = ds_accel__stream(run)};

    take_memory(run, &held, 60);
    if (hold(run, &held)) {
        queue_behind_event(run, &held);
        let_go(run, &held);
    }
    ds_accel__wait(run, held.other);
    run->table.stream_destroy(held.other);
    give_memory(run, &held);
}

/* Make the other stream wait also for an event that has already completed. This wait must not
 * replace the stream's earlier wait for held work. */
static int32_t wait_first(struct ds_accel__run *run, void *user_data)
{
    const struct held *held = user_data;

    return CALL(run, stream_wait_event, held->other, held->first);
}

static int32_t wait_for_other(struct ds_accel__run *run, void *user_data)
{
    return CALL(run, stream_synchronize, ((const struct held *)user_data)->other, UINT64_MAX);
}

static void check_two_waits(struct ds_accel__run *run)
{
    struct held held = {.other = ds_accel__stream(run), .first = ds_accel__event(run, 0)};
    struct ds_accel__hold *gate = &held.gate;
    struct ds_accel__caller caller;

    take_memory(run, &held, 66);
    WANT(run, DS_ACCEL_OK, event_record, held.first, run->stream);
    ds_accel__wait(run, run->stream);
    if (hold(run, &held)) {
        if (ds_accel__prepare(run, gate, "event_record", record, &held) &&
            ds_accel__prepare(run, gate, "stream_wait_event", wait_event, &held) &&
            ds_accel__prepare(run, gate, "stream_wait_event", wait_first, &held) &&
            ds_accel__prepare(run, gate, "mem_copy_async", copy_other, &held)) {
            ds_accel__caller_start(run, &caller, wait_for_other, &held);
            EXPECT(run, !ds_accel__caller_returns(&caller, DS_ACCEL__GRACE_NS),
                   "a stream that waits for two events is done when one of them is reached");
            ds_accel__gate_open(gate);
            ds_accel__want(run, DS_ACCEL_OK, "stream_synchronize",
                           ds_accel__caller_finish(run, &caller));
        }
        let_go(run, &held);
    }
    ds_accel__wait(run, held.other);
    run->table.stream_destroy(held.other);
    run->table.event_destroy(held.first);
    give_memory(run, &held);
}

/* Queue a fill and a copy on the other stream, and wait for that stream. */
static int32_t work_beside(struct ds_accel__run *run, void *user_data)
{
    struct held *held = user_data;
    int32_t status =
        CALL(run, mem_fill_async, held->other, held->memory[0], "\x4d", 1, (uint64_t)BYTES);

    status = status == DS_ACCEL_OK ? copy_other(run, held) : status;
    return status == DS_ACCEL_OK ? CALL(run, stream_synchronize, held->other, UINT64_MAX) : status;
}

static void check_beside(struct ds_accel__run *run)
{
    struct held held = {.other = ds_accel__stream(run)};

    take_memory(run, &held, 68);
    if (hold(run, &held)) {
        ds_accel__want_prompt(run, &held.gate, DS_ACCEL_OK, "the work of another stream",
                              work_beside, &held);
        let_go(run, &held);
    }
    run->table.stream_destroy(held.other);
    give_memory(run, &held);
}

static const struct {
    const char *name;
    size_t slot;
    ds_accel__call_t call;
    /* the call needs pinned memory, because a copy to or from other host memory may wait */
    bool is_pinned;
} queued[] = {
    {"mem_fill_async", SLOT(mem_fill_async), fill, false},
    {"mem_copy_async within the device", SLOT(mem_copy_async), copy, false},
    {"mem_copy_async to pinned memory", SLOT(mem_copy_async), copy_out, true},
    {"mem_copy_async from pinned memory", SLOT(mem_copy_async), copy_in, true},
    {"mem_copy_async of 3 MiB within the device", SLOT(mem_copy_async), copy_large, false},
    {"mem_fill_async of 3 MiB", SLOT(mem_fill_async), fill_large, false},
    {"stream_host_task", SLOT(stream_host_task), task, false},
    {"event_record", SLOT(event_record), record, false},
};

static void queue_all(struct ds_accel__run *run, struct held *held)
{
    for (size_t i = 0; i < ARRAY_SIZE(queued); i++) {
        if (ds_accel__has_slot(run, queued[i].slot) &&
            (!queued[i].is_pinned || held->pinned != NULL) &&
            !ds_accel__want_prompt(run, &held->gate, DS_ACCEL_OK, queued[i].name, queued[i].call,
                                   held)) {
            return;
        }
    }
}

static void check_queued(struct ds_accel__run *run)
{
    struct held held = {
        .event_flags = run->table.event_elapsed_ms != NULL ? DS_ACCEL_EVENT_TIMING : 0,
    };

    take_memory(run, &held, 62);
    if (run->table.mem_alloc_pinned != NULL &&
        CALL(run, mem_alloc_pinned, run->device, BYTES, 1, 0, &held.pinned) != DS_ACCEL_OK) {
        held.pinned = NULL;
    }
    if (hold(run, &held)) {
        queue_all(run, &held);
        let_go(run, &held);
    }
    if (held.pinned != NULL) {
        WANT(run, DS_ACCEL_OK, mem_free_pinned, run->device, held.pinned);
    }
    give_memory(run, &held);
}

/* Check the launch of a graph of one fill, which must be queued after the held work instead of
 * waiting for it. */
static void check_launch(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
    ds_accel_plugin_graph_t *graph = NULL;
    struct held held = {0};

    take_memory(run, &held, 64);
    held.stream = stream;
    WANT(run, DS_ACCEL_OK, graph_capture_begin, stream, DS_ACCEL_CAPTURE_THREAD_LOCAL);
    ds_accel__want(run, DS_ACCEL_OK, "mem_fill_async", fill(run, &held));
    WANT(run, DS_ACCEL_OK, graph_capture_end, stream, &graph);
    WANT(run, DS_ACCEL_OK, graph_instantiate, graph, 0, &held.exec);
    if (hold(run, &held)) {
        ds_accel__want_prompt(run, &held.gate, DS_ACCEL_OK, "graph_launch", launch, &held);
        let_go(run, &held);
    }
    run->table.graph_exec_destroy(held.exec);
    run->table.graph_destroy(graph);
    run->table.stream_destroy(stream);
    give_memory(run, &held);
}

static void check_peer_copy(struct ds_accel__run *run)
{
    struct held held = {0};
    void *there = NULL;

    if (run->device_count < 2) {
        ds_accel__skip(run, "there is one device");
        return;
    }
    held.peer = ds_accel__run_open(run, run->instance, (run->device_index + 1) % run->device_count);
    WANT(run, DS_ACCEL_OK, mem_alloc, held.peer, BYTES, 0, 0, &there);
    held.memory[0] = ds_accel__take(run, BYTES);
    held.memory[1] = there;
    if (hold(run, &held)) {
        ds_accel__want_prompt(run, &held.gate, DS_ACCEL_OK, "mem_copy_peer_async", copy_peer,
                              &held);
        let_go(run, &held);
    }
    WANT(run, DS_ACCEL_OK, mem_free, held.peer, there);
    ds_accel__give(run, held.memory[0]);
    run->table.device_close(held.peer);
}

#define DEVICE DS_ACCEL__STAGE_DEVICE
#define HELD SLOT(stream_create), SLOT(stream_host_task), SLOT(stream_synchronize)

static const struct ds_accel__check checks[] = {
    {47, GROUP, "timeouts that pass", DEVICE, 0, check_timeouts, {HELD}},
    {49, GROUP, "a query of a busy stream", DEVICE, 0, check_query, {HELD, SLOT(stream_query)}},
    {56,
     GROUP,
     "a query of an event that is not reached",
     DEVICE,
     0,
     check_query_event,
     {HELD, SLOT(event_create), SLOT(event_record), SLOT(event_query)}},
    {51,
     GROUP,
     "a stream is made to wait, and the host does not",
     DEVICE,
     0,
     check_wait_event,
     {HELD, SLOT(stream_wait_event), SLOT(mem_copy_async), SLOT(stream_query)}},
    {51,
     GROUP,
     "a stream waits for two events",
     DEVICE,
     0,
     check_two_waits,
     {HELD, SLOT(stream_wait_event), SLOT(event_record), SLOT(mem_copy_async)}},
    {126,
     GROUP,
     "a stream while another one is blocked",
     DEVICE,
     0,
     check_beside,
     {HELD, SLOT(mem_alloc), SLOT(mem_fill_async), SLOT(mem_copy_async)}},
    {111,
     GROUP,
     "copies, fills, tasks and events after blocked work",
     DEVICE,
     0,
     check_queued,
     {HELD, SLOT(mem_alloc), SLOT(mem_copy)}},
    {59,
     GROUP,
     "the time of an event that is not reached",
     DEVICE,
     0,
     check_no_time,
     {HELD, SLOT(event_create), SLOT(event_record), SLOT(event_elapsed_ms)}},
    {27, GROUP, "other calls during a wait", DEVICE, 0, check_beside_wait, {HELD}},
    {111,
     GROUP,
     "a copy to another device after blocked work",
     DEVICE,
     0,
     check_peer_copy,
     {HELD, SLOT(mem_copy_peer_async), SLOT(mem_alloc)}},
    {111,
     GROUP,
     "a launch after blocked work",
     DEVICE,
     0,
     check_launch,
     {HELD, SLOT(graph_capture_begin), SLOT(graph_launch), SLOT(mem_fill_async)}},
};

const struct ds_accel__check_list ds_accel__checks_async = {checks, ARRAY_SIZE(checks)};
