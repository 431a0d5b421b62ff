/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The result of a job as JSON: conf/schema/run-result.json. */
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/job.h"
#include "launch/signals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS_NS UINT64_C(1000000)

static void set_text(json_t *tree, const char *key, const char *text, bool *failed)
{
    ds_accel__json_set(tree, key, text != NULL ? ds_accel__json_text(text) : json_null(), failed);
}

static void set_number(json_t *tree, const char *key, uint64_t number, bool *failed)
{
    ds_accel__json_set(tree, key, json_integer((json_int_t)number), failed);
}

/* A number, or null if it is not known. */
static void set_known(json_t *tree, const char *key, bool is_known, int64_t number, bool *failed)
{
    ds_accel__json_set(tree, key, is_known ? json_integer(number) : json_null(), failed);
}

static void set_set(json_t *tree, const char *key, const struct ds_accel__set *set, bool *failed)
{
    struct ds_accel__text text = {0};

    if (set != NULL && set->count > 0) {
        ds_accel__set_write(set, &text);
        *failed = *failed || text.failed;
    }
    set_text(tree, key, text.data, failed);
    ds_accel__text_clear(&text);
}

/* "SIGTERM", or null for signal 0. */
static void set_signal(json_t *tree, const char *key, int signal, bool *failed)
{
    char name[DS_ACCEL__SIGNAL_NAME_SIZE];

    set_text(tree, key, signal != 0 ? ds_accel__signal_name(signal, name) : NULL, failed);
}

/* ---- ranks ---------------------------------------------------------------------------------- */

static json_t *rank_tree(const struct ds_accel__job *job, const struct ds_accel__job_rank *rank,
                         bool *failed)
{
    static const char *const states[] = {
        [DS_ACCEL__RANK_WAITING] = "not_started",
        [DS_ACCEL__RANK_RUNNING] = "running",
        [DS_ACCEL__RANK_ENDED] = "ended",
        [DS_ACCEL__RANK_NOT_STARTED] = "not_started",
    };
    const struct ds_accel__placement *placement = rank->rank->placement;
    bool has_ended = rank->state == DS_ACCEL__RANK_ENDED;
    bool is_exit = has_ended && rank->ended.si_code == CLD_EXITED;
    json_t *tree = json_object();

    set_number(tree, "rank", rank->rank->rank, failed);
    set_number(tree, "local_rank", rank->rank->local_rank, failed);
    set_text(tree, "host", job->plan->hosts.items[rank->rank->host].name, failed);
    set_known(tree, "pid", rank->pid > 0, rank->pid, failed);
    set_text(tree, "state", states[rank->state], failed);
    set_known(tree, "exit_code", is_exit, rank->ended.si_status, failed);
    set_signal(tree, "signal", has_ended && !is_exit ? rank->ended.si_status : 0, failed);
    ds_accel__json_set(tree, "was_terminated", json_boolean(rank->is_victim), failed);
    set_known(tree, "start_ms", rank->start_ns != 0,
              (int64_t)((rank->start_ns - job->start_ns) / MS_NS), failed);
    set_known(tree, "end_ms", rank->end_ns != 0, (int64_t)((rank->end_ns - job->start_ns) / MS_NS),
              failed);
    set_known(tree, "output_bytes", job->has_pipes,
              (int64_t)(rank->streams[DS_ACCEL__OUT].total_bytes +
                        rank->streams[DS_ACCEL__ERR].total_bytes),
              failed);
    set_set(tree, "cpus", placement != NULL ? &placement->cpus : NULL, failed);
    set_text(tree, "real_cpus", rank->real_cpus.data, failed);
    set_text(tree, "real_mem_policy", rank->real_policy.data, failed);
    set_text(tree, "log", rank->log_path, failed);
    return tree;
}

/* ---- the cause ------------------------------------------------------------------------------ */

static json_t *oom_tree(const struct ds_accel__oom *oom, bool *failed)
{
    static const char *const verdicts[] = {
        [DS_ACCEL__OOM_NONE] = "none",
        [DS_ACCEL__OOM_LIKELY] = "likely",
        [DS_ACCEL__OOM_PROVED] = "proved",
    };
    json_t *tree = json_object();

    set_text(tree, "verdict", verdicts[oom->verdict], failed);
    set_number(tree, "kills", oom->kills, failed);
    set_text(tree, "counter_file", oom->counter_file[0] != '\0' ? oom->counter_file : NULL, failed);
    set_known(tree, "limit_bytes", oom->limit_bytes != 0, (int64_t)oom->limit_bytes, failed);
    set_text(tree, "limit_file", oom->limit_file[0] != '\0' ? oom->limit_file : NULL, failed);
    return tree;
}

static json_t *core_tree(const struct ds_accel__core_dump *core, bool *failed)
{
    static const char *const kinds[] = {
        [DS_ACCEL__CORE_NONE] = "none",       [DS_ACCEL__CORE_ABSENT] = "absent",
        [DS_ACCEL__CORE_FILE] = "file",       [DS_ACCEL__CORE_COMMAND] = "command",
        [DS_ACCEL__CORE_HANDLER] = "handler", [DS_ACCEL__CORE_LOST] = "lost",
    };
    json_t *tree = json_object();

    set_text(tree, "kind", kinds[core->kind], failed);
    set_text(tree, "text", core->text, failed);
    return tree;
}

static bool add_variable(void *user_data, const char *name, const char *value)
{
    return json_object_set_new(user_data, name,
                               value != NULL ? ds_accel__json_text(value) : json_null()) == 0;
}

static json_t *lines_array(const struct ds_accel__job_rank *rank, bool *failed)
{
    char *lines = ds_accel__job_last_lines(rank);
    json_t *array = json_array();
    char *state = NULL;

    for (char *line = lines != NULL ? strtok_r(lines, "\n", &state) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &state)) {
        *failed = json_array_append_new(array, ds_accel__json_text(line)) != 0 || *failed;
    }
    *failed = *failed || lines == NULL;
    free(lines);
    return array;
}

static json_t *arguments_array(const struct ds_accel__job *job, const struct ds_accel__rank *rank,
                               bool *failed)
{
    const struct ds_accel__plan *plan = job->plan;
    json_t *array = json_array();
    char text[32];

    for (uint32_t i = 0; i <= plan->argument_count; i++) {
        if (i == plan->local_rank_at) {
            snprintf(text, sizeof(text), "--local_rank=%u", rank->local_rank);
            *failed = json_array_append_new(array, ds_accel__json_text(text)) != 0 || *failed;
        }
        if (i < plan->argument_count) {
            *failed = json_array_append_new(array, ds_accel__json_text(plan->arguments[i])) != 0 ||
                      *failed;
        }
    }
    return array;
}

/* The other ranks that failed by themselves. */
static json_t *failed_array(const struct ds_accel__job *job, bool *failed)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < job->rank_count; i++) {
        const struct ds_accel__job_rank *rank = &job->ranks[i];

        if (i != job->culprit && ds_accel__job_has_failed(rank)) {
            bool is_exit = rank->ended.si_code == CLD_EXITED;
            json_t *tree = json_object();

            set_number(tree, "rank", rank->rank->rank, failed);
            set_known(tree, "exit_code", is_exit, rank->ended.si_status, failed);
            set_signal(tree, "signal", is_exit ? 0 : rank->ended.si_status, failed);
            *failed = json_array_append_new(array, tree) != 0 || *failed;
        }
    }
    return array;
}

/* What is known of the rank that failed first. */
static void set_culprit(json_t *tree, const struct ds_accel__job *job, bool *failed)
{
    const struct ds_accel__job_rank *rank = &job->ranks[job->culprit];
    json_t *environment = json_object();

    *failed = !ds_accel__job_visit_environment(job, rank->rank, add_variable, environment) ||
              *failed;
    set_number(tree, "rank", rank->rank->rank, failed);
    set_number(tree, "local_rank", rank->rank->local_rank, failed);
    set_text(tree, "host", job->plan->hosts.items[rank->rank->host].name, failed);
    set_known(tree, "pid", rank->pid > 0, rank->pid, failed);
    ds_accel__json_set(tree, "oom", oom_tree(&job->death.oom, failed), failed);
    ds_accel__json_set(tree, "core_dump", core_tree(&job->death.core, failed), failed);
    ds_accel__json_set(tree, "also_failed", failed_array(job, failed), failed);
    ds_accel__json_set(tree, "argv", arguments_array(job, rank->rank, failed), failed);
    ds_accel__json_set(tree, "env", environment, failed);
    ds_accel__json_set(tree, "last_lines", lines_array(rank, failed), failed);
}

static json_t *death_tree(const struct ds_accel__job *job, bool *failed)
{
    static const char *const kinds[] = {
        [DS_ACCEL__DEATH_EXITED] = "exit",    [DS_ACCEL__DEATH_SIGNALED] = "signal",
        [DS_ACCEL__DEATH_OOM_KILLED] = "oom", [DS_ACCEL__DEATH_NOT_STARTED] = "not_started",
        [DS_ACCEL__DEATH_STALLED] = "stall",
    };
    const struct ds_accel__death *death = &job->death;
    bool has_signal = death->kind == DS_ACCEL__DEATH_SIGNALED ||
                      death->kind == DS_ACCEL__DEATH_OOM_KILLED;
    struct ds_accel__text text = {0};
    json_t *tree = json_object();

    ds_accel__death_text(death, &text);
    *failed = *failed || text.failed;
    set_text(tree, "kind", kinds[death->kind], failed);
    set_text(tree, "text", text.data, failed);
    set_known(tree, "code", death->kind == DS_ACCEL__DEATH_EXITED, death->code, failed);
    set_signal(tree, "signal", has_signal ? death->signal : 0, failed);
    set_culprit(tree, job, failed);
    ds_accel__text_clear(&text);
    return tree;
}

/* A cause outside the ranks: a signal to the launcher, or the death of the supervisor. */
static json_t *other_cause(const char *kind, const char *text, int signal, bool *failed)
{
    json_t *tree = json_object();

    set_text(tree, "kind", kind, failed);
    set_text(tree, "text", text, failed);
    set_signal(tree, "signal", signal, failed);
    return tree;
}

static json_t *cause_tree(const struct ds_accel__job *job, int supervisor_signal, bool *failed)
{
    if (supervisor_signal != 0) {
        return other_cause("launcher", "the supervisor of the job was killed", supervisor_signal,
                           failed);
    }
    if (job->culprit != DS_ACCEL__NO_RANK) {
        return death_tree(job, failed);
    }
    if (job->signal != 0) {
        return other_cause("interrupt", "the launcher received a signal", job->signal, failed);
    }
    return json_null();
}

/* ---- shared memory -------------------------------------------------------------------------- */

static json_t *shared_memory_array(const struct ds_accel__shared_memory *memory, bool *failed)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < memory->file_count; i++) {
        char *path = ds_accel__format("%s/%s", memory->directory, memory->files[i].name);
        json_t *tree = json_object();

        *failed = *failed || path == NULL;
        set_text(tree, "path", path, failed);
        set_number(tree, "bytes", memory->files[i].size_bytes, failed);
        *failed = json_array_append_new(array, tree) != 0 || *failed;
        free(path);
    }
    return array;
}

/* ---- all ------------------------------------------------------------------------------------ */

static void set_start(json_t *tree, uint64_t wall_us, bool *failed)
{
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm parts;
    char text[64] = "";

    if (gmtime_r(&seconds, &parts) == NULL ||
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
        text[0] = '\0';
    }
    set_text(tree, "started", text, failed);
}

char *ds_accel__job_result(const struct ds_accel__job *job, int exit_code, int supervisor_signal)
{
    const struct ds_accel__plan *plan = job->plan;
    json_t *tree = json_object();
    json_t *ranks = json_array();
    bool failed = false;
    struct ds_accel__text text = {0};

    for (uint32_t i = 0; i < job->rank_count; i++) {
        failed = json_array_append_new(ranks, rank_tree(job, &job->ranks[i], &failed)) != 0 ||
                 failed;
    }
    set_number(tree, "schema_version", 1, &failed);
    set_number(tree, "exit_code", (uint64_t)exit_code, &failed);
    ds_accel__json_set(tree, "cause", cause_tree(job, supervisor_signal, &failed), &failed);
    set_start(tree, job->start_wall_us, &failed);
    set_number(tree, "elapsed_ms", (ds_accel__now_ns() - job->start_ns) / MS_NS, &failed);
    set_text(tree, "accelerator", plan->accelerator, &failed);
    set_number(tree, "world_size", plan->world_size, &failed);
    set_text(tree, "master_addr", plan->master_addr, &failed);
    set_number(tree, "master_port", job->port, &failed);
    ds_accel__json_set(tree, "has_unkillable", json_boolean(job->has_unkillable), &failed);
    set_number(tree, "stall_count", job->stall_count, &failed);
    ds_accel__json_set(tree, "stalls",
                       job->stalls != NULL ? json_incref(job->stalls) : json_array(), &failed);
    if (job->shared_memory.is_examined) {
        ds_accel__json_set(tree, "shared_memory", shared_memory_array(&job->shared_memory, &failed),
                           &failed);
    }
    ds_accel__json_set(tree, "ranks", ranks, &failed);
    if (!failed) {
        ds_accel__text_add_json(&text, tree, JSON_INDENT(2));
        ds_accel__text_add(&text, "\n");
    }
    json_decref(tree);
    if (failed) {
        return NULL;
    }
    return ds_accel__text_take(&text);
}
