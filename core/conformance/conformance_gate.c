/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Held work for the conformance suite, and calls by another thread while work is held. */
#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define WITHIN "host tasks are run within the calls"

/* True on threads that call the plugin: a host task on such a thread runs within a call. */
static _Thread_local bool is_calling;

/* ---- calls by another thread ---------------------------------------------------------------- */

static void *make_call(void *user_data)
{
    struct ds_accel__caller *caller = user_data;
    int32_t status;

    is_calling = true;
    status = caller->call(&caller->run, caller->user_data);
    pthread_mutex_lock(&caller->lock);
    caller->status = status;
    caller->is_done = true;
    pthread_cond_broadcast(&caller->changed);
    pthread_mutex_unlock(&caller->lock);
    return NULL;
}

void ds_accel__caller_start(struct ds_accel__run *run, struct ds_accel__caller *caller,
                            ds_accel__call_t call, void *user_data)
{
    pthread_condattr_t attributes;

    memset(caller, 0, sizeof(*caller));
    caller->run = *run;
    caller->call = call;
    caller->user_data = user_data;
    pthread_mutex_init(&caller->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&caller->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    EXPECT(run, pthread_create(&caller->thread, NULL, make_call, caller) == 0,
           "no thread can be created");
}

bool ds_accel__caller_returns(struct ds_accel__caller *caller, uint64_t within_ns)
{
    struct timespec deadline;
    uint64_t end_ns;
    bool is_done;

    clock_gettime(CLOCK_MONOTONIC, &deadline);
    end_ns = (uint64_t)deadline.tv_nsec + within_ns;
    deadline.tv_sec += (time_t)(end_ns / 1000000000);
    deadline.tv_nsec = (long)(end_ns % 1000000000);
    pthread_mutex_lock(&caller->lock);
    while (!caller->is_done &&
           pthread_cond_timedwait(&caller->changed, &caller->lock, &deadline) == 0) {
    }
    is_done = caller->is_done;
    pthread_mutex_unlock(&caller->lock);
    return is_done;
}

int32_t ds_accel__caller_finish(struct ds_accel__run *run, struct ds_accel__caller *caller)
{
    pthread_join(caller->thread, NULL);
    pthread_cond_destroy(&caller->changed);
    pthread_mutex_destroy(&caller->lock);
    run->error = caller->run.error;
    return caller->status;
}

bool ds_accel__want_prompt(struct ds_accel__run *run, struct ds_accel__hold *gate, int32_t wanted,
                           const char *slot, ds_accel__call_t call, void *user_data)
{
    struct ds_accel__caller caller;
    int32_t status;

    ds_accel__caller_start(run, &caller, call, user_data);
    EXPECT(run,
           ds_accel__caller_returns(&caller, DS_ACCEL__CALL_NS) || !ds_accel__gate_is_closed(gate),
           "%s waits for work that was queued before it", slot);
    status = ds_accel__caller_finish(run, &caller);
    if (!ds_accel__gate_is_closed(gate)) {
        ds_accel__skip(run, WITHIN);
        return false;
    }
    ds_accel__want(run, wanted, slot, status);
    return true;
}

bool ds_accel__prepare(struct ds_accel__run *run, struct ds_accel__hold *gate, const char *slot,
                       ds_accel__call_t call, void *user_data)
{
    /* the slot whose call last waited for the gate; further calls of it get a short time limit */
    static char slow_slot[64];
    struct ds_accel__caller caller;
    bool is_prompt;

    ds_accel__caller_start(run, &caller, call, user_data);
    is_prompt = ds_accel__caller_returns(&caller, strcmp(slow_slot, slot) == 0 ? DS_ACCEL__GRACE_NS
                                                                               : DS_ACCEL__CALL_NS);
    if (!is_prompt) {
        snprintf(slow_slot, sizeof(slow_slot), "%s", slot);
        ds_accel__skip(run, "%s waits for work that was queued before it", slot);
        ds_accel__gate_open(gate);
    } else if (!ds_accel__gate_is_closed(gate)) {
        ds_accel__skip(run, WITHIN);
    }
    ds_accel__want(run, DS_ACCEL_OK, slot, ds_accel__caller_finish(run, &caller));
    return !run->is_skipped;
}

/* ---- the gate ------------------------------------------------------------------------------- */

static void hold(void *user_data, int32_t status)
{
    struct ds_accel__hold *gate = user_data;

    (void)status;
    pthread_mutex_lock(&gate->lock);
    gate->has_begun = true;
    gate->is_within = is_calling; /* true: the plugin's call runs this task, and must return */
    pthread_cond_broadcast(&gate->changed);
    while (!gate->is_open && !is_calling) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    gate->has_ended = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

struct gated {
    struct ds_accel__hold *gate;
    ds_accel_plugin_stream_t *stream;
};

static int32_t queue_gate(struct ds_accel__run *run, void *user_data)
{
    const struct gated *gated = user_data;

    return CALL(run, stream_host_task, gated->stream, hold, gated->gate);
}

bool ds_accel__gate_close(struct ds_accel__run *run, struct ds_accel__hold *gate,
                          ds_accel_plugin_stream_t *stream)
{
    struct gated gated = {gate, stream};
    struct ds_accel__caller caller;
    bool is_prompt;

    memset(gate, 0, sizeof(*gate));
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->changed, NULL);
    is_calling = true; /* later calls on this thread may also run a task */
    ds_accel__caller_start(run, &caller, queue_gate, &gated);
    is_prompt = ds_accel__caller_returns(&caller, DS_ACCEL__CALL_NS);
    if (!is_prompt) {
        ds_accel__gate_open(gate);
    }
    ds_accel__want(run, DS_ACCEL_OK, "stream_host_task", ds_accel__caller_finish(run, &caller));
    if (is_prompt && ds_accel__gate_is_closed(gate)) {
        return true;
    }
    ds_accel__skip(run, is_prompt ? WITHIN : "stream_host_task waits for its task");
    return false;
}

void ds_accel__gate_open(struct ds_accel__hold *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->is_open = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

bool ds_accel__gate_is_closed(struct ds_accel__hold *gate)
{
    bool is_closed;

    pthread_mutex_lock(&gate->lock);
    is_closed = !gate->is_open && !gate->is_within;
    pthread_mutex_unlock(&gate->lock);
    return is_closed;
}
