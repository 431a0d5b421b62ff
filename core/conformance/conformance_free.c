/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Conformance checks: memory, graphs and events that are released, and events that are recorded
 * again, while work that uses them is held by a gate (conformance_gate.c). The releasing call may
 * wait for the work, as in most runtimes: the gate is opened after DS_ACCEL__GRACE_NS. If the call
 * does not wait, the memory must not be reused before the gate is opened.
 */
#include "base/text.h"
#include "conformance/conformance.h"

#include <string.h>

#define GROUP "held"
#define BYTES (256u << 10)
#define TRIES 8

struct pending {
    struct ds_accel__hold gate;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_stream_t *other;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_graph_exec_t *exec;
    char *source; /* the held work reads this memory; the checks of memory free it */
    char *target; /* the held work copies source, or a graph fills a value, to this memory */
    void *taken[TRIES];
};

static const unsigned char value = 0x3d;
static const unsigned char other_bytes[BYTES];

static void start(struct ds_accel__run *run, struct pending *pending)
{
    pending->stream = ds_accel__stream(run);
    pending->target = ds_accel__take(run, BYTES);
    WANT(run, DS_ACCEL_OK, mem_fill_async, pending->stream, pending->target, "\0", 1, BYTES);
    ds_accel__wait(run, pending->stream);
}

/* Free the source, then allocate and write other memory, which may reuse the address but not the
 * physical memory that held work still uses. */
static int32_t free_memory(struct ds_accel__run *run, void *user_data)
{
    struct pending *pending = user_data;
    int32_t status = CALL(run, mem_free, run->device, pending->source);
    struct ds_accel_error error = run->error;

    for (int i = 0; i < TRIES && ds_accel__gate_is_closed(&pending->gate); i++) {
        if (CALL(run, mem_alloc, run->device, BYTES, 0, 0, &pending->taken[i]) == DS_ACCEL_OK) {
            CALL(run, mem_copy, run->device, pending->taken[i], other_bytes, BYTES,
                 DS_ACCEL_COPY_HOST_TO_DEVICE);
        }
    }
    run->error = error;
    return status;
}

static int32_t free_pinned(struct ds_accel__run *run, void *user_data)
{
    struct pending *pending = user_data;
    int32_t status = CALL(run, mem_free_pinned, run->device, pending->source);
    struct ds_accel_error error = run->error;

    for (int i = 0; i < TRIES && ds_accel__gate_is_closed(&pending->gate); i++) {
        if (CALL(run, mem_alloc_pinned, run->device, BYTES, 1, 0, &pending->taken[i]) ==
            DS_ACCEL_OK) {
            memset(pending->taken[i], 0, BYTES);
        }
    }
    run->error = error;
    return status;
}

static int32_t destroy_exec(struct ds_accel__run *run, void *user_data)
{
    run->table.graph_exec_destroy(((struct pending *)user_data)->exec);
    return DS_ACCEL_OK;
}

static int32_t destroy_event(struct ds_accel__run *run, void *user_data)
{
    run->table.event_destroy(((struct pending *)user_data)->event);
    return DS_ACCEL_OK;
}

static int32_t copy_source(struct ds_accel__run *run, void *user_data)
{
    const struct pending *pending = user_data;

    return CALL(run, mem_copy_async, pending->stream, pending->target, pending->source, BYTES,
                DS_ACCEL_COPY_DEVICE_TO_DEVICE);
}

static int32_t copy_pinned(struct ds_accel__run *run, void *user_data)
{
    const struct pending *pending = user_data;

    return CALL(run, mem_copy_async, pending->stream, pending->target, pending->source, BYTES,
                DS_ACCEL_COPY_HOST_TO_DEVICE);
}

static int32_t launch(struct ds_accel__run *run, void *user_data)
{
    const struct pending *pending = user_data;

    return CALL(run, graph_launch, pending->exec, pending->stream);
}

/* Queue a fill of source on the held stream, and on the other stream a wait for the fill and a copy
 * to target. */
static int32_t queue_event(struct ds_accel__run *run, void *user_data)
{
    const struct pending *pending = user_data;
    int32_t status = CALL(run, mem_fill_async, pending->stream, pending->source, &value, 1, BYTES);

    if (status == DS_ACCEL_OK) {
        status = CALL(run, event_record, pending->event, pending->stream);
    }
    if (status == DS_ACCEL_OK) {
        status = CALL(run, stream_wait_event, pending->other, pending->event);
    }
    if (status == DS_ACCEL_OK) {
        status = CALL(run, mem_copy_async, pending->other, pending->target, pending->source, BYTES,
                      DS_ACCEL_COPY_DEVICE_TO_DEVICE);
    }
    return status;
}

static int32_t wait_other(struct ds_accel__run *run, void *user_data)
{
    const struct pending *pending = user_data;

    return CALL(run, stream_synchronize, pending->other, UINT64_MAX);
}

/* Open the gate. If there is an other stream, first wait for its work for at most
 * DS_ACCEL__GRACE_NS, so that work that wrongly does not wait for the gate runs before the gate is
 * opened. */
static void open_gate(struct ds_accel__run *run, struct pending *pending)
{
    struct ds_accel__caller caller;

    if (pending->other == NULL) {
        ds_accel__gate_open(&pending->gate);
        return;
    }
    ds_accel__caller_start(run, &caller, wait_other, pending);
    (void)ds_accel__caller_returns(&caller, DS_ACCEL__GRACE_NS);
    ds_accel__gate_open(&pending->gate);
    ds_accel__want(run, DS_ACCEL_OK, "stream_synchronize", ds_accel__caller_finish(run, &caller));
}

static void want_target(struct ds_accel__run *run, struct pending *pending, const char *slot)
{
    unsigned char *bytes = malloc(BYTES);

    EXPECT(run, bytes != NULL, "host memory is exhausted");
    ds_accel__get(run, bytes, pending->target, BYTES);
    EXPECT(run, bytes[0] == value && memcmp(bytes, bytes + 1, BYTES - 1) == 0,
           "%s with work queued: the work no longer found its data", slot);
    free(bytes);
}

/* Queue work after the gate by queue(). Call let_go() on another thread: it releases, reuses or
 * records again an object that the work uses. Then open the gate, and check the results of the
 * work. False if the check was skipped; let_go() was not called. */
static bool check_held(struct ds_accel__run *run, struct pending *pending, const char *slot,
                       ds_accel__call_t queue, ds_accel__call_t let_go)
{
    struct ds_accel__caller caller;

    if (!ds_accel__gate_close(run, &pending->gate, pending->stream) ||
        !ds_accel__prepare(run, &pending->gate, "work", queue, pending)) {
        return false;
    }
    ds_accel__caller_start(run, &caller, let_go, pending);
    (void)ds_accel__caller_returns(&caller, DS_ACCEL__GRACE_NS);
    open_gate(run, pending);
    EXPECT(run, ds_accel__caller_returns(&caller, DS_ACCEL__CALL_NS),
           "%s does not return when the work is done", slot);
    ds_accel__want(run, DS_ACCEL_OK, slot, ds_accel__caller_finish(run, &caller));
    ds_accel__wait(run, pending->stream);
    want_target(run, pending, slot);
    return true;
}

static void finish(struct ds_accel__run *run, struct pending *pending)
{
    run->table.stream_destroy(pending->stream);
    ds_accel__give(run, pending->target);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void check_memory(struct ds_accel__run *run)
{
    struct pending pending = {0};

    start(run, &pending);
    pending.source = ds_accel__take(run, BYTES);
    WANT(run, DS_ACCEL_OK, mem_fill_async, pending.stream, pending.source, &value, 1, BYTES);
    ds_accel__wait(run, pending.stream);
    if (!check_held(run, &pending, "mem_free", copy_source, free_memory)) {
        ds_accel__give(run, pending.source);
    }
    for (int i = 0; i < TRIES; i++) {
        WANT(run, DS_ACCEL_OK, mem_free, run->device, pending.taken[i]);
    }
    finish(run, &pending);
}

static void check_pinned(struct ds_accel__run *run)
{
    struct pending pending = {0};
    void *pinned = NULL;
    int32_t status;

    status = CALL(run, mem_alloc_pinned, run->device, BYTES, 1, 0, &pinned);
    if (status == DS_ACCEL_ERR_LIMIT) {
        ds_accel__skip(run, "%.200s", run->error.message);
        return;
    }
    ds_accel__want(run, DS_ACCEL_OK, "mem_alloc_pinned", status);
    start(run, &pending);
    pending.source = pinned;
    memset(pinned, value, BYTES);
    if (!check_held(run, &pending, "mem_free_pinned", copy_pinned, free_pinned)) {
        WANT(run, DS_ACCEL_OK, mem_free_pinned, run->device, pinned);
    }
    for (int i = 0; i < TRIES; i++) {
        if (pending.taken[i] != NULL) {
            WANT(run, DS_ACCEL_OK, mem_free_pinned, run->device, pending.taken[i]);
        }
    }
    finish(run, &pending);
}

static int32_t copy_and_free(struct ds_accel__run *run, void *user_data)
{
    struct pending *pending = user_data;
    int32_t status = copy_source(run, user_data);

    if (status == DS_ACCEL_OK) {
        status = CALL(run, mem_free_async, pending->stream, pending->source, NULL, 0);
        pending->source = NULL;
    }
    return status;
}

/* Allocate memory in the order of another stream, which is not held, and write other bytes to
 * it. */
static int32_t take_async(struct ds_accel__run *run, void *user_data)
{
    struct pending *pending = user_data;
    int32_t status = DS_ACCEL_OK;

    for (int i = 0; i < TRIES && status == DS_ACCEL_OK && ds_accel__gate_is_closed(&pending->gate);
         i++) {
        status = CALL(run, mem_alloc_async, pending->other, BYTES, 0, NULL, 0, &pending->taken[i]);
        if (status == DS_ACCEL_OK) {
            status = CALL(run, mem_fill_async, pending->other, pending->taken[i], "\0", 1, BYTES);
        }
    }
    return status;
}

/* Check that mem_free_async() frees the memory in stream order, not during the call. */
static void check_ordered(struct ds_accel__run *run)
{
    struct pending pending = {0};
    void *pointer = NULL;
    int32_t status;

    start(run, &pending);
    pending.other = ds_accel__stream(run);
    status = CALL(run, mem_alloc_async, pending.stream, BYTES, 0, NULL, 0, &pointer);
    if (ds_accel__lacks(run, status, DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY)) {
        run->table.stream_destroy(pending.other);
        finish(run, &pending);
        return;
    }
    ds_accel__want(run, DS_ACCEL_OK, "mem_alloc_async", status);
    pending.source = pointer;
    WANT(run, DS_ACCEL_OK, mem_fill_async, pending.stream, pointer, &value, 1, BYTES);
    ds_accel__wait(run, pending.stream);
    check_held(run, &pending, "mem_free_async", copy_and_free, take_async);
    if (pending.source != NULL) {
        WANT(run, DS_ACCEL_OK, mem_free_async, pending.stream, pending.source, NULL, 0);
    }
    for (int i = 0; i < TRIES; i++) {
        if (pending.taken[i] != NULL) {
            WANT(run, DS_ACCEL_OK, mem_free_async, pending.other, pending.taken[i], NULL, 0);
        }
    }
    ds_accel__wait(run, pending.other);
    run->table.stream_destroy(pending.other);
    finish(run, &pending);
}

/* Record the event again on another stream. This must affect only later waits: an earlier wait
 * still depends on the earlier record. */
static int32_t record_elsewhere(struct ds_accel__run *run, void *user_data)
{
    struct pending *pending = user_data;

    return CALL(run, event_record, pending->event, run->stream);
}

static void check_rerecord(struct ds_accel__run *run)
{
    struct pending pending = {0};

    start(run, &pending);
    pending.source = ds_accel__take(run, BYTES);
    WANT(run, DS_ACCEL_OK, mem_fill_async, pending.stream, pending.source, "\0", 1, BYTES);
    ds_accel__wait(run, pending.stream);
    pending.other = ds_accel__stream(run);
    pending.event = ds_accel__event(run, 0);
    check_held(run, &pending, "event_record", queue_event, record_elsewhere);
    run->table.event_destroy(pending.event);
    run->table.stream_destroy(pending.other);
    ds_accel__give(run, pending.source);
    finish(run, &pending);
}

/* ---- graphs and events ---------------------------------------------------------------------- */

static void check_exec(struct ds_accel__run *run)
{
    struct pending pending = {0};
    ds_accel_plugin_graph_t *graph = NULL;

    start(run, &pending);
    WANT(run, DS_ACCEL_OK, graph_capture_begin, pending.stream, DS_ACCEL_CAPTURE_THREAD_LOCAL);
    WANT(run, DS_ACCEL_OK, mem_fill_async, pending.stream, pending.target, &value, 1, BYTES);
    WANT(run, DS_ACCEL_OK, graph_capture_end, pending.stream, &graph);
    WANT(run, DS_ACCEL_OK, graph_instantiate, graph, 0, &pending.exec);
    run->table.graph_destroy(graph);
    if (!check_held(run, &pending, "graph_exec_destroy", launch, destroy_exec)) {
        run->table.graph_exec_destroy(pending.exec);
    }
    finish(run, &pending);
}

static void check_event(struct ds_accel__run *run)
{
    struct pending pending = {0};

    start(run, &pending);
    pending.source = ds_accel__take(run, BYTES);
    pending.other = ds_accel__stream(run);
    pending.event = ds_accel__event(run, 0);
    if (!check_held(run, &pending, "event_destroy", queue_event, destroy_event)) {
        run->table.event_destroy(pending.event);
    }
    run->table.stream_destroy(pending.other);
    ds_accel__give(run, pending.source);
    finish(run, &pending);
}

#define DEVICE DS_ACCEL__STAGE_DEVICE
#define TRAP DS_ACCEL__CHECK_TRAP
#define WORK SLOT(stream_host_task), SLOT(mem_alloc), SLOT(mem_copy), SLOT(mem_fill_async)

static const struct ds_accel__check checks[] = {
    {109,
     GROUP,
     "memory is freed with a copy of it queued",
     DEVICE,
     TRAP,
     check_memory,
     {WORK, SLOT(mem_copy_async)}},
    {109,
     GROUP,
     "pinned memory is freed with a copy of it queued",
     DEVICE,
     TRAP,
     check_pinned,
     {WORK, SLOT(mem_copy_async), SLOT(mem_alloc_pinned)}},
    {72,
     GROUP,
     "memory is freed in the order of its stream",
     DEVICE,
     TRAP,
     check_ordered,
     {WORK, SLOT(mem_copy_async), SLOT(mem_alloc_async), SLOT(mem_free_async)}},
    {57,
     GROUP,
     "an event is recorded again with a stream that waits",
     DEVICE,
     0,
     check_rerecord,
     {WORK, SLOT(stream_wait_event), SLOT(mem_copy_async)}},
    {109,
     GROUP,
     "a launchable graph is destroyed with its launch queued",
     DEVICE,
     TRAP,
     check_exec,
     {WORK, SLOT(graph_capture_begin), SLOT(graph_launch)}},
    {109,
     GROUP,
     "an event is destroyed with a stream that waits for it",
     DEVICE,
     TRAP,
     check_event,
     {WORK, SLOT(stream_wait_event), SLOT(mem_copy_async)}},
};

const struct ds_accel__check_list ds_accel__checks_free = {checks, ARRAY_SIZE(checks)};
