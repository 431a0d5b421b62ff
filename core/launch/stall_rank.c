/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Decides from several samples what a rank does. Each sample is reduced to a few numbers per
 * thread, and only the last one is kept as a whole, because the samples of a large job would need
 * gigabytes.
 *
 *      CPU time below 1 percent, and not always in state R      idle
 *      the same call led to the same waiting function each time  waits, also if it uses CPU time
 *      otherwise                                                 works
 *
 * A rank with a thread that works is working. Threads that were not read, because there are too
 * many of them, are judged by the CPU time that the process used beyond its known threads.
 */
#include "launch/stall_rank.h"
#include "base/json.h"

#include <string.h>

/* /proc counts CPU time in ticks of 10 ms. */
#define TICK_MS 10u

void ds_accel__watched_clear(struct ds_accel__watched *watched)
{
    json_decref(watched->stack);
    *watched = (struct ds_accel__watched){0};
}

static struct ds_accel__watched_thread *find_thread(struct ds_accel__watched *watched, pid_t tid,
                                                    uint64_t cpu_ms)
{
    struct ds_accel__watched_thread *thread;

    for (size_t i = 0; i < watched->thread_count; i++) {
        if (watched->threads[i].tid == tid) {
            return &watched->threads[i];
        }
    }
    if (watched->thread_count == DS_ACCEL__STACK_THREADS) {
        return NULL;
    }
    thread = &watched->threads[watched->thread_count++];
    *thread = (struct ds_accel__watched_thread){.tid = tid, .first_cpu_ms = cpu_ms};
    return thread;
}

static void add_thread(struct ds_accel__watched *watched, const json_t *sample)
{
    uint64_t cpu_ms = ds_accel__json_size(sample, "cpu_ms");
    const json_t *wait = json_object_get(sample, "wait");
    const char *state = json_string_value(json_object_get(sample, "state"));
    struct ds_accel__watched_thread *thread =
        find_thread(watched, (pid_t)ds_accel__json_size(sample, "tid"), cpu_ms);
    json_int_t place = json_integer_value(json_object_get(wait, "place"));

    if (thread == NULL) {
        return;
    }
    thread->cpu_ms = cpu_ms;
    thread->run_count += strcmp(state, "R") == 0;
    if (wait != NULL && thread->same_count == watched->sample_count &&
        (thread->same_count == 0 || thread->place == place)) {
        thread->place = place;
        thread->same_count++;
    }
}

void ds_accel__watched_add(struct ds_accel__watched *watched, json_t *stack)
{
    uint64_t time_ms = ds_accel__json_size(stack, "time_ms");
    uint64_t cpu_ms = ds_accel__json_size(stack, "cpu_ms");
    pid_t pid = (pid_t)ds_accel__json_size(stack, "pid");
    const json_t *thread;
    size_t i;

    if (watched->sample_count == 0) {
        watched->pid = pid;
        watched->first_ms = time_ms;
        watched->first_cpu_ms = cpu_ms;
    }
    watched->is_changed = watched->is_changed || watched->pid != pid;
    watched->last_ms = time_ms;
    watched->cpu_ms = cpu_ms;
    json_array_foreach(json_object_get(stack, "threads"), i, thread)
    {
        add_thread(watched, thread);
    }
    watched->sample_count++;
    json_decref(watched->stack);
    watched->stack = stack;
}

enum ds_accel__condition ds_accel__watched_condition(const struct ds_accel__watched *watched,
                                                     unsigned sample_count)
{
    uint64_t limit_ms = (watched->last_ms - watched->first_ms) / 100, known_ms = 0;
    bool is_busy = false;

    limit_ms = limit_ms > TICK_MS ? limit_ms : TICK_MS;
    if (watched->sample_count != sample_count || watched->is_changed) {
        return DS_ACCEL__CONDITION_WORKING;
    }
    for (size_t i = 0; i < watched->thread_count; i++) {
        const struct ds_accel__watched_thread *thread = &watched->threads[i];
        uint64_t cpu_ms = thread->cpu_ms - thread->first_cpu_ms;

        known_ms += cpu_ms + TICK_MS; /* each thread's time is rounded down */
        if (cpu_ms > limit_ms || thread->run_count == sample_count) {
            is_busy = true;
            if (thread->same_count < sample_count) {
                return DS_ACCEL__CONDITION_WORKING;
            }
        }
    }
    if (watched->cpu_ms - watched->first_cpu_ms > known_ms + limit_ms) {
        return DS_ACCEL__CONDITION_WORKING;
    }
    return is_busy ? DS_ACCEL__CONDITION_SPINNING : DS_ACCEL__CONDITION_IDLE;
}

static bool is_same(const struct ds_accel__watched *watched, const json_t *thread)
{
    for (size_t i = 0; i < watched->thread_count; i++) {
        if (watched->threads[i].tid == (pid_t)ds_accel__json_size(thread, "tid")) {
            return watched->threads[i].same_count == watched->sample_count;
        }
    }
    return false;
}

const json_t *ds_accel__watched_wait(const struct ds_accel__watched *watched)
{
    const json_t *thread, *wait, *main_wait = NULL;
    size_t i;

    json_array_foreach(json_object_get(watched->stack, "threads"), i, thread)
    {
        wait = json_object_get(thread, "wait");
        if (wait == NULL || !is_same(watched, thread)) {
            continue;
        }
        if (ds_accel__waiting_is_communication(
                json_string_value(json_object_get(wait, "function")))) {
            return wait;
        }
        main_wait = i == 0 ? wait : main_wait;
    }
    return main_wait;
}
