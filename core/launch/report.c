/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Logs why a job failed: the rank that failed first, where it ran, and its last lines. */
#include "base/clock.h"
#include "base/text.h"
#include "launch/job.h"

#include <stdlib.h>
#include <string.h>

static void report_death(struct ds_accel__job *job, const struct ds_accel__job_rank *rank)
{
    const char *host = job->plan->hosts.items[rank->rank->host].name;
    struct ds_accel__text text = {0};

    ds_accel__death_text(&job->death, &text);
    ds_accel__job_say(job, DS_ACCEL_LOG_ERROR, "rank %u (host %s, local rank %u, process %d) %s",
                      rank->rank->rank, host, rank->rank->local_rank, (int)rank->pid,
                      text.data != NULL ? text.data : "failed");
    ds_accel__text_clear(&text);
}

static void report_place(struct ds_accel__job *job, const struct ds_accel__job_rank *rank)
{
    const struct ds_accel__placement *placement = rank->rank->placement;
    struct ds_accel__text text = {0};

    if (placement == NULL || placement->cpus.count == 0) {
        return;
    }
    ds_accel__text_add(&text, "CPUs ");
    ds_accel__set_write(&placement->cpus, &text);
    if (placement->memory != DS_ACCEL__MEMORY_DEFAULT) {
        ds_accel__text_add(&text, ", memory of NUMA node ");
        ds_accel__set_write(&placement->nodes, &text);
    }
    if (!text.failed) {
        ds_accel__job_say(job, DS_ACCEL_LOG_ERROR, "  %s", text.data);
    }
    ds_accel__text_clear(&text);
}

static bool add_variable(void *user_data, const char *name, const char *value)
{
    if (value != NULL) {
        ds_accel__text_add(user_data, " %s=%s", name, value);
    }
    return true;
}

static void report_environment(struct ds_accel__job *job, const struct ds_accel__job_rank *rank)
{
    struct ds_accel__text text = {0};

    ds_accel__job_visit_environment(job, rank->rank, add_variable, &text);
    if (text.size_bytes > 0 && !text.failed) {
        ds_accel__job_say(job, DS_ACCEL_LOG_ERROR, " %s", text.data);
    }
    ds_accel__text_clear(&text);
}

static void report_output(struct ds_accel__job *job, const struct ds_accel__job_rank *rank)
{
    char *lines = ds_accel__job_last_lines(rank);
    char *state = NULL;

    if (lines != NULL && lines[0] != '\0') {
        ds_accel__job_say(job, DS_ACCEL_LOG_ERROR,
                          "  its last lines%s%s:", rank->log_path != NULL ? ", from " : "",
                          rank->log_path != NULL ? rank->log_path : "");
    }
    for (char *line = lines != NULL ? strtok_r(lines, "\n", &state) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &state)) {
        ds_accel__job_say(job, DS_ACCEL_LOG_ERROR, "  | %s", line);
    }
    free(lines);
}

/* What became of the other ranks. A rank that ended with code 0 has ended by itself. */
static void report_others(struct ds_accel__job *job)
{
    uint32_t terminated = 0;
    uint32_t failed = 0;

    for (uint32_t i = 0; i < job->rank_count; i++) {
        const struct ds_accel__job_rank *rank = &job->ranks[i];

        if (i != job->culprit && rank->state == DS_ACCEL__RANK_ENDED &&
            ds_accel__job_rank_code(rank) != 0) {
            terminated += rank->is_victim;
            failed += !rank->is_victim;
        }
    }
    if (failed > 0) {
        ds_accel__job_say(job, DS_ACCEL_LOG_ERROR, "  %u other %s failed at the same time", failed,
                          failed == 1 ? "rank" : "ranks");
    }
    if (terminated > 0) {
        ds_accel__job_say(job, DS_ACCEL_LOG_ERROR, "  %u other %s then ended%s", terminated,
                          terminated == 1 ? "rank was" : "ranks were",
                          job->kill_ns != 0 ? ", by SIGKILL those that ignored SIGTERM" : "");
    }
}

/* The name of a signal, such as "SIGTERM". */
static const char *signal_name(int signal, char *name, size_t name_size)
{
    const char *short_name = sigabbrev_np(signal);
    char number[16];

    snprintf(number, sizeof(number), "%d", signal);
    ds_accel__copy(name, name_size, "SIG");
    ds_accel__copy(name + 3, name_size - 3, short_name != NULL ? short_name : number);
    return name;
}

void ds_accel__job_report(struct ds_accel__job *job)
{
    char name[32];

    if (job->has_unkillable) {
        ds_accel__job_say(job, DS_ACCEL_LOG_ERROR,
                          "processes of the job are left, which SIGKILL did not end: a driver or "
                          "a file system holds them");
    }
    if (job->culprit == DS_ACCEL__NO_RANK) {
        if (job->signal != 0) {
            ds_accel__job_say(job, DS_ACCEL_LOG_WARN, "the job was ended by %s",
                              signal_name(job->signal, name, sizeof(name)));
        }
        return;
    }
    if (job->terminal_signal != 0 && job->death.kind == DS_ACCEL__DEATH_SIGNALED &&
        job->death.signal == job->terminal_signal) {
        return; /* Control-C: the user knows */
    }
    report_death(job, &job->ranks[job->culprit]);
    report_place(job, &job->ranks[job->culprit]);
    report_environment(job, &job->ranks[job->culprit]);
    report_others(job);
    report_output(job, &job->ranks[job->culprit]);
}
