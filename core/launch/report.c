/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Logs why a job failed: the rank that failed first, where it ran, and its last lines; and which
 * processes outlived the ranks. */
#include "base/clock.h"
#include "base/descendants.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/job.h"
#include "launch/signals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LISTED_RANKS 8u   /* of the ranks that failed at the same time */
#define LINE_SIZE 900     /* longer lines of a rank are logged in parts */
#define LEFTOVERS_NAMED 5 /* of the processes that outlive the ranks */

static void report_death(struct ds_accel__job *job, const struct ds_accel__job_rank *rank)
{
    const char *host = job->plan->hosts.items[rank->rank->host].name;
    struct ds_accel__text text = {0};
    char process[32] = "";

    if (rank->pid > 0) { /* it was started */
        snprintf(process, sizeof(process), ", process %d", (int)rank->pid);
    }
    ds_accel__death_text(&job->death, &text);
    ds_accel__job_say(job, DS_ACCEL_LOG_ERROR, "rank %u (host %s, local rank %u%s) %s",
                      rank->rank->rank, host, rank->rank->local_rank, process,
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

/* A line of variables, before it is logged. */
struct line {
    struct ds_accel__job *job;
    char text[LINE_SIZE];
    size_t length;
};

static void end_line(struct line *line)
{
    if (line->length > 0) {
        ds_accel__job_say(line->job, DS_ACCEL_LOG_ERROR, " %s", line->text);
        line->length = 0;
    }
}

/* Add a text to the line, which is ended first if the text does not fit. A text that is longer than
 * a line is logged in parts. */
static void add_to_line(struct line *line, const char *text)
{
    size_t left = strlen(text);

    if (line->length + left >= sizeof(line->text)) {
        end_line(line);
    }
    while (left > 0) {
        size_t room = sizeof(line->text) - 1 - line->length;
        size_t size = left < room ? left : room;

        memcpy(line->text + line->length, text, size);
        line->length += size;
        line->text[line->length] = '\0';
        text += size;
        left -= size;
        if (left > 0) {
            end_line(line);
        }
    }
}

static bool add_variable(void *user_data, const char *name, const char *value)
{
    char *text = value != NULL ? ds_accel__format(" %s=%s", name, value) : NULL;

    if (text != NULL) {
        add_to_line(user_data, text);
    }
    free(text);
    return true;
}

static void report_environment(struct ds_accel__job *job, const struct ds_accel__job_rank *rank)
{
    struct line line = {.job = job};

    ds_accel__job_visit_environment(job, rank->rank, add_variable, &line);
    end_line(&line);
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

/* Name the ranks that failed by themselves, apart from the culprit. Which of them was the first is
 * not certain. */
static void report_failed(struct ds_accel__job *job, uint32_t count)
{
    struct ds_accel__text text = {0};
    char name[DS_ACCEL__SIGNAL_NAME_SIZE];
    uint32_t listed = 0;

    for (uint32_t i = 0; i < job->rank_count && listed < LISTED_RANKS; i++) {
        const struct ds_accel__job_rank *rank = &job->ranks[i];

        if (i == job->culprit || !ds_accel__job_has_failed(rank)) {
            continue;
        }
        ds_accel__text_add(&text, "%srank %u ", listed++ > 0 ? ", " : "", rank->rank->rank);
        if (rank->ended.si_code == CLD_EXITED) {
            ds_accel__text_add(&text, "with code %d", rank->ended.si_status);
        } else {
            ds_accel__text_add(&text, "by %s", ds_accel__signal_name(rank->ended.si_status, name));
        }
    }
    ds_accel__job_say(job, DS_ACCEL_LOG_ERROR, "  %u other %s failed at the same time: %s%s", count,
                      count == 1 ? "rank" : "ranks", text.data != NULL ? text.data : "",
                      count > listed ? ", ..." : "");
    ds_accel__text_clear(&text);
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
        report_failed(job, failed);
    }
    if (terminated > 0) {
        ds_accel__job_say(job, DS_ACCEL_LOG_ERROR, "  %u other %s then ended%s", terminated,
                          terminated == 1 ? "rank was" : "ranks were",
                          job->kill_ns != 0 ? ", by SIGKILL those that ignored SIGTERM" : "");
    }
}

/* Name the files in shared memory that the job may have left, on a line each, because a name may
 * contain any character. */
static void report_shared_memory(struct ds_accel__job *job)
{
    const struct ds_accel__shared_memory *memory = &job->shared_memory;
    char size[32];

    if (memory->found_count == 0) {
        return;
    }
    ds_accel__size_text(memory->found_bytes, size, sizeof(size));
    ds_accel__job_say(job, DS_ACCEL_LOG_WARN,
                      "left in %s since the job started: %s%s in %u file%s that no process has "
                      "open; remove with rm what no other program needs:",
                      memory->directory, memory->is_partial ? "at least " : "", size,
                      memory->found_count, memory->found_count == 1 ? "" : "s");
    for (uint32_t i = 0; i < memory->file_count; i++) {
        ds_accel__size_text(memory->files[i].size_bytes, size, sizeof(size));
        ds_accel__job_say(job, DS_ACCEL_LOG_WARN, "  %s/%s (%s)", memory->directory,
                          memory->files[i].name, size);
    }
    if (memory->found_count > memory->file_count) {
        ds_accel__job_say(job, DS_ACCEL_LOG_WARN, "  and %u more",
                          memory->found_count - memory->file_count);
    }
}

/* Processes that outlive the ranks. */
struct leftovers {
    struct ds_accel__text names; /* of the first ones */
    unsigned count;
};

/* Count a process that still runs. /proc/PID/stat begins with "PID (NAME) STATE". */
static void add_leftover(void *user_data, pid_t pid, pid_t branch)
{
    struct leftovers *leftovers = user_data;
    char path[64], *stat, *name, *end;
    const char *cause;
    size_t size;

    (void)branch;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (ds_accel__file_read(path, 4096, &stat, &size, &cause) < 0) {
        return;
    }
    name = strchr(stat, '(');
    end = strrchr(stat, ')');
    if (name != NULL && end != NULL && strncmp(end, ") Z", 3) != 0) {
        if (leftovers->count < LEFTOVERS_NAMED) {
            *end = '\0';
            ds_accel__text_add(&leftovers->names, "%s%s (process %d)",
                               leftovers->count > 0 ? ", " : "", name + 1, (int)pid);
        }
        leftovers->count++;
    }
    free(stat);
}

void ds_accel__job_report_leftovers(struct ds_accel__job *job)
{
    struct leftovers leftovers = {.count = 0};

    ds_accel__descendants_visit(getpid(), add_leftover, &leftovers);
    if (leftovers.count > LEFTOVERS_NAMED) {
        ds_accel__text_add(&leftovers.names, ", and %u more", leftovers.count - LEFTOVERS_NAMED);
    }
    if (leftovers.count > 0 && !leftovers.names.failed) {
        ds_accel__job_say(job, DS_ACCEL_LOG_WARN,
                          "all ranks have ended; %u process%s that they started still run%s and "
                          "%s terminated: %s",
                          leftovers.count, leftovers.count == 1 ? "" : "es",
                          leftovers.count == 1 ? "s" : "", leftovers.count == 1 ? "is" : "are",
                          leftovers.names.data);
    }
    ds_accel__text_clear(&leftovers.names);
}

/* Why the job failed. */
static void report_failure(struct ds_accel__job *job)
{
    char name[DS_ACCEL__SIGNAL_NAME_SIZE];

    if (job->has_unkillable) {
        ds_accel__job_say(job, DS_ACCEL_LOG_ERROR, "processes of the job are left, which %s",
                          ds_accel__descendants_are_visible()
                              ? "SIGKILL did not end: a driver or a file system holds them"
                              : "the launcher cannot find: /proc is missing, or belongs to another "
                                "PID namespace");
    }
    if (job->culprit == DS_ACCEL__NO_RANK) {
        if (job->signal != 0) {
            ds_accel__job_say(job, DS_ACCEL_LOG_WARN, "the job was ended by %s",
                              ds_accel__signal_name(job->signal, name));
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

void ds_accel__job_report(struct ds_accel__job *job)
{
    report_failure(job);
    report_shared_memory(job);
}
