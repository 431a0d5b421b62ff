/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Decides from several samples what a rank does. Each sample of a process is reduced to a few
 * numbers per thread, and only the last one is kept as a whole, because the samples of a large job
 * would need gigabytes. A thread:
 *
 *      CPU time below 1 percent, and not always in state R      idle
 *      the same call led to the same waiting function each time  waits, also if it uses CPU time
 *      otherwise                                                 works
 *
 * Samples must not disturb a job that works. Therefore only active threads are stopped: those that
 * are running or have used CPU time since the sample before, and only if the stop has no effect on
 * their system call (system_call.c). A thread that was not active is still where it was. The first
 * sample reads only CPU times. An active thread that could not be stopped, for example because it
 * was in epoll_wait(), works if it uses more than 1 percent of a CPU.
 *
 * A process with a thread that works is working, and so is a rank with such a process. Threads that
 * were not read, because there are too many of them, are judged by the CPU time that the process
 * used beyond its known threads. Processes that were not read, because there are too many of them,
 * or because they began or ended between the samples, are judged by their CPU time, which those
 * that have ended leave to their parent.
 */
#include "launch/stall_rank.h"
#include "base/json.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* /proc counts CPU time in ticks of 10 ms. */
#define TICK_MS 10u

/* ---- processes to read ---------------------------------------------------------------------- */

static bool is_own(const struct ds_accel__scanned *process)
{
    return process->pid == process->branch;
}

/* By rank; then its own process, then by CPU time. */
static int compare_processes(const void *left, const void *right)
{
    const struct ds_accel__scanned *a = &((const struct ds_accel__watched *)left)->process;
    const struct ds_accel__scanned *b = &((const struct ds_accel__watched *)right)->process;

    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    if (is_own(a) != is_own(b)) {
        return is_own(a) ? -1 : 1;
    }
    if (a->cpu_ms != b->cpu_ms) {
        return a->cpu_ms > b->cpu_ms ? -1 : 1;
    }
    return (a->pid > b->pid) - (a->pid < b->pid);
}

/* Keep the first processes of each rank; returns their number. */
static size_t cut(struct ds_accel__watched *watched, size_t count,
                  struct ds_accel__watched_rank *ranks)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        struct ds_accel__watched_rank *rank = &ranks[watched[i].process.rank];

        if (rank->count < DS_ACCEL__WATCHED_PROCESSES) {
            watched[kept] = watched[i];
            rank->processes = rank->count == 0 ? &watched[kept] : rank->processes;
            rank->count++;
            kept++;
        }
    }
    return kept;
}

int32_t ds_accel__watched_choose(const struct ds_accel__scan *scan, uint32_t rank_count,
                                 struct ds_accel__watched_rank *ranks,
                                 struct ds_accel__watched **watched_out, size_t *count_out)
{
    struct ds_accel__watched *watched = calloc(scan->count + 1, sizeof(*watched));
    size_t count = 0;

    if (watched == NULL) {
        return ds_accel__no_memory();
    }
    for (size_t i = 0; i < scan->count; i++) {
        if (scan->items[i].rank != DS_ACCEL__SCANNED_NO_RANK &&
            (scan->items[i].state != 'Z' || is_own(&scan->items[i]))) {
            watched[count++].process = scan->items[i];
        }
    }
    qsort(watched, count, sizeof(*watched), compare_processes);
    memset(ranks, 0, rank_count * sizeof(*ranks));
    *count_out = cut(watched, count, ranks);
    *watched_out = watched;
    return DS_ACCEL_OK;
}

void ds_accel__watched_free(struct ds_accel__watched *watched, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_decref(watched[i].stack);
    }
    free(watched);
}

/* ---- samples of a process ------------------------------------------------------------------- */

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
    *thread =
        (struct ds_accel__watched_thread){.tid = tid, .first_cpu_ms = cpu_ms, .cpu_ms = cpu_ms};
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
    if (watched->sample_count > 0 && ds_accel__stack_is_active(sample, thread->cpu_ms)) {
        /* A thread that becomes active after the second sample came from an unknown place. */
        bool is_first = thread->place == 0 && watched->sample_count == 1;

        thread->has_moved = thread->has_moved || wait == NULL ||
                            (!is_first && thread->place != place);
        thread->place = place;
    }
    thread->cpu_ms = cpu_ms;
    thread->run_count += strcmp(state, "R") == 0;
}

void ds_accel__watched_add(struct ds_accel__watched *watched, json_t *stack)
{
    uint64_t time_ms = ds_accel__json_size(stack, "time_ms");
    uint64_t cpu_ms = ds_accel__json_size(stack, "cpu_ms");
    const json_t *thread;
    size_t i;

    if (watched->sample_count == 0) {
        watched->first_ms = time_ms;
        watched->first_cpu_ms = cpu_ms;
    }
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

void ds_accel__watched_set_frames(struct ds_accel__watched *watched, json_t *stack)
{
    json_t *why = json_object_get(stack, "why");

    if (json_object_get(stack, "threads") != NULL || watched->stack == NULL) {
        json_decref(watched->stack);
        watched->stack = stack;
        return;
    }
    if (why != NULL) { /* the threads could not be read in time; those of the sample are known */
        json_object_set(watched->stack, "why", why);
    }
    json_decref(stack);
}

uint64_t ds_accel__watched_limit_ms(uint64_t during_ms)
{
    return during_ms / 100 > TICK_MS ? during_ms / 100 : TICK_MS;
}

bool ds_accel__watched_is_at_work(const struct ds_accel__watched *watched, uint64_t during_ms)
{
    uint64_t limit_ms = ds_accel__watched_limit_ms(during_ms);

    for (size_t i = 0; i < watched->thread_count; i++) {
        const struct ds_accel__watched_thread *thread = &watched->threads[i];

        if (thread->has_moved && thread->cpu_ms - thread->first_cpu_ms > limit_ms) {
            return true;
        }
    }
    return false;
}

/* What a process with all samples did. */
static enum ds_accel__condition process_condition(const struct ds_accel__watched *watched)
{
    uint64_t limit_ms = ds_accel__watched_limit_ms(watched->last_ms - watched->first_ms);
    unsigned sample_count = watched->sample_count;
    uint64_t known_ms = 0;
    bool is_busy = false;

    for (size_t i = 0; i < watched->thread_count; i++) {
        const struct ds_accel__watched_thread *thread = &watched->threads[i];
        uint64_t cpu_ms = thread->cpu_ms - thread->first_cpu_ms;

        known_ms += cpu_ms + TICK_MS; /* each thread's time is rounded down */
        if (cpu_ms > limit_ms || thread->run_count == sample_count) {
            is_busy = true;
            if (thread->has_moved || thread->place == 0) {
                return DS_ACCEL__CONDITION_WORKING;
            }
        }
    }
    if (watched->cpu_ms - watched->first_cpu_ms > known_ms + limit_ms) {
        return DS_ACCEL__CONDITION_WORKING;
    }
    return is_busy ? DS_ACCEL__CONDITION_SPINNING : DS_ACCEL__CONDITION_IDLE;
}

/* True if the thread was in no other wait in the samples. */
static bool is_same(const struct ds_accel__watched *watched, const json_t *thread,
                    const json_t *wait)
{
    for (size_t i = 0; i < watched->thread_count; i++) {
        const struct ds_accel__watched_thread *known = &watched->threads[i];

        if (known->tid == (pid_t)ds_accel__json_size(thread, "tid")) {
            return !known->has_moved &&
                   (known->place == 0 ||
                    known->place == json_integer_value(json_object_get(wait, "place")));
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
        if (wait == NULL || !is_same(watched, thread, wait)) {
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

/* ---- ranks ---------------------------------------------------------------------------------- */

static bool is_sampled(const struct ds_accel__watched_rank *rank,
                       const struct ds_accel__scanned *process, unsigned sample_count)
{
    for (size_t i = 0; i < rank->count; i++) {
        if (rank->processes[i].process.pid == process->pid &&
            rank->processes[i].process.start_ticks == process->start_ticks) {
            return rank->processes[i].sample_count == sample_count;
        }
    }
    return false;
}

uint64_t ds_accel__watched_ranks_rest(struct ds_accel__watched_rank *ranks, uint32_t rank_count,
                                      const struct ds_accel__scan *first,
                                      const struct ds_accel__scan *last, unsigned sample_count)
{
    uint64_t others_ms = 0;

    for (uint32_t i = 0; i < rank_count; i++) {
        ranks[i].rest_ms = 0;
    }
    for (size_t i = 0; i < last->count; i++) {
        const struct ds_accel__scanned *process = &last->items[i];
        const struct ds_accel__scanned *before = ds_accel__scan_find(first, process);
        bool has_rank = process->rank < rank_count;
        uint64_t used_ms = process->children_ms - (before != NULL ? before->children_ms : 0);

        if (!has_rank || !is_sampled(&ranks[process->rank], process, sample_count)) {
            used_ms += process->cpu_ms - (before != NULL ? before->cpu_ms : 0);
        }
        if (used_ms > TICK_MS) { /* else it may be rounding */
            *(has_rank ? &ranks[process->rank].rest_ms : &others_ms) += used_ms;
        }
    }
    return others_ms;
}

enum ds_accel__condition ds_accel__watched_rank_condition(const struct ds_accel__watched_rank *rank,
                                                          uint64_t during_ms, unsigned sample_count)
{
    enum ds_accel__condition condition = DS_ACCEL__CONDITION_IDLE;

    if (rank->count == 0 || rank->processes[0].sample_count != sample_count ||
        rank->rest_ms > ds_accel__watched_limit_ms(during_ms)) {
        return DS_ACCEL__CONDITION_WORKING;
    }
    for (size_t i = 0; i < rank->count; i++) {
        enum ds_accel__condition one = rank->processes[i].sample_count == sample_count
                                           ? process_condition(&rank->processes[i])
                                           : DS_ACCEL__CONDITION_IDLE; /* it is in rest_ms */

        if (one == DS_ACCEL__CONDITION_WORKING) {
            return one;
        }
        condition = one == DS_ACCEL__CONDITION_SPINNING ? one : condition;
    }
    return condition;
}

/* True if a process only waits for its children, as a shell does. */
static bool is_wrapper(const struct ds_accel__watched *watched)
{
    const json_t *thread = json_array_get(json_object_get(watched->stack, "threads"), 0);
    const char *wchan = json_string_value(json_object_get(thread, "wchan"));

    return wchan != NULL && strcmp(wchan, "do_wait") == 0;
}

/* How much a process is worth a report. */
static unsigned weigh(const struct ds_accel__watched *watched)
{
    const json_t *wait = ds_accel__watched_wait(watched);
    const char *function = json_string_value(json_object_get(wait, "function"));

    if (function != NULL && ds_accel__waiting_is_communication(function)) {
        return 4;
    }
    if (process_condition(watched) == DS_ACCEL__CONDITION_SPINNING) {
        return 3;
    }
    return is_wrapper(watched) ? 1 : 2;
}

void ds_accel__watched_rank_choose(struct ds_accel__watched_rank *rank, unsigned sample_count)
{
    unsigned most = 0;

    rank->shown = rank->processes;
    for (size_t i = 0; i < rank->count; i++) {
        const struct ds_accel__watched *process = &rank->processes[i];
        unsigned weight = process->sample_count == sample_count ? weigh(process) : 0;

        if (weight > most ||
            (weight == most && weight > 0 && process->cpu_ms > rank->shown->cpu_ms)) {
            rank->shown = process;
            most = weight;
        }
    }
}
