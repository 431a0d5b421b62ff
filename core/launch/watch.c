/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Searches a running job for stalls (--stall-timeout), reports them, and, with --stall-kill, ends
 * the job. The search itself is in stall.c.
 */
#include "base/clock.h"
#include "base/descendants.h"
#include "base/text.h"
#include "launch/job.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_REPORTS 8u
#define LAST_REPORTS 8u

int32_t ds_accel__job_watch_open(struct ds_accel__job *job)
{
    uint64_t timeout_ns = job->launch->options.stall_timeout_ns;
    int32_t status;

    if (timeout_ns == 0) {
        return DS_ACCEL_OK;
    }
    job->stall_ranks = calloc(job->rank_count, sizeof(*job->stall_ranks));
    job->faults = calloc(job->rank_count, sizeof(*job->faults));
    job->stalls = json_array();
    for (uint32_t i = 0; job->faults != NULL && i < job->rank_count; i++) {
        job->faults[i].fd = job->faults[i].child_fd = -1;
    }
    if (job->stall_ranks == NULL || job->faults == NULL || job->stalls == NULL) {
        return ds_accel__no_memory();
    }
    status = ds_accel__stall_create(timeout_ns, job->rank_count, ds_accel__now_ns(), &job->stall);
    if (status < 0) {
        return status;
    }
    ds_accel__stall_set_first_rank(job->stall, job->plan->local_first);
    ds_accel__stall_set_faults(job->stall, job->faults);
    if (job->launch->options.stall_kill) {
        ds_accel__stall_set_last(job->stall);
    }
    if (strcmp(job->plan->accelerator, "cpu") != 0) {
        job->progress.options = &job->launch->context_options;
        ds_accel__stall_set_devices(job->stall, ds_accel__progress_read, &job->progress);
    }
    return DS_ACCEL_OK;
}

void ds_accel__job_watch_close(struct ds_accel__job *job)
{
    for (uint32_t i = 0; job->faults != NULL && i < job->rank_count; i++) {
        ds_accel__fault_close(&job->faults[i]);
    }
    ds_accel__stall_destroy(job->stall);
    ds_accel__progress_clear(&job->progress);
    free(job->stall_ranks);
    free(job->faults);
    json_decref(job->stalls);
}

/* ---- output --------------------------------------------------------------------------------- */

/* Add the bytes that a process wrote so far to files, pipes and terminals, as far as known. A child
 * that ends leaves its number to its parent. */
static void add_written(void *user_data, pid_t pid, pid_t branch)
{
    static const char key[] = "\nwchar: ";
    char path[64];
    char text[512];
    const char *value = NULL;
    uint64_t *written = user_data;
    FILE *file;

    (void)branch;
    snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
    file = fopen(path, "re");
    if (file != NULL) {
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        value = strstr(text, key);
        fclose(file);
    }
    *written += value != NULL ? strtoull(value + sizeof(key) - 1, NULL, 10) : 0;
}

/* What a rank wrote so far. What does not pass through this process is known from the rank's log,
 * or, if the job is a single rank, from the kernel's counters of all its processes. */
static uint64_t count_output(const struct ds_accel__job *job, const struct ds_accel__job_rank *rank)
{
    uint64_t written = 0;
    struct stat info;

    if (job->has_pipes) {
        return rank->streams[DS_ACCEL__OUT].total_bytes + rank->streams[DS_ACCEL__ERR].total_bytes;
    }
    if (rank->log_path != NULL) {
        return stat(rank->log_path, &info) == 0 ? (uint64_t)info.st_size : 0;
    }
    ds_accel__descendants_visit(getpid(), add_written, &written);
    return written;
}

/* True if a stream that the rank inherits cannot take anything now. */
static bool is_blocked(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};

    return poll(&ready, 1, 0) == 0;
}

/* True if the ranks may have to wait for a slow reader of what they write. */
static bool is_reader_slow(const struct ds_accel__job *job)
{
    for (int i = 0; i < DS_ACCEL__STREAMS; i++) {
        if (ds_accel__sink_is_full(&job->sinks[i])) {
            return true;
        }
    }
    return !job->has_pipes && job->ranks[0].log_path == NULL &&
           (is_blocked(STDOUT_FILENO) || is_blocked(STDERR_FILENO));
}

/* ---- reports -------------------------------------------------------------------------------- */

/* Log each line of a report. */
static void log_report(struct ds_accel__job *job, const json_t *report)
{
    struct ds_accel__text text = {0};
    char *state = NULL;

    ds_accel__stall_write(report, &text);
    for (char *line = text.failed || text.data == NULL ? NULL : strtok_r(text.data, "\n", &state);
         line != NULL; line = strtok_r(NULL, "\n", &state)) {
        ds_accel__job_say(job, DS_ACCEL_LOG_WARN, "%s", line);
    }
    ds_accel__text_clear(&text);
}

/* The rank to blame for a stall: the first one outside the operation in which the others wait; if
 * there is none, the first one that runs. */
static uint32_t find_blamed(const struct ds_accel__job *job, const json_t *report)
{
    const char *outside =
        json_string_value(json_object_get(json_object_get(report, "common"), "outside"));
    uint32_t first = 0;

    if (outside != NULL && outside[0] != '\0') {
        return (uint32_t)strtoul(outside, NULL, 10) - job->plan->local_first;
    }
    while (first + 1 < job->rank_count && job->ranks[first].state != DS_ACCEL__RANK_RUNNING) {
        first++;
    }
    return first;
}

/* Keep the first reports and the last ones; a job that stalls again and again has many. */
static void keep_report(struct ds_accel__job *job, json_t *report)
{
    job->stall_count++;
    if (json_array_size(job->stalls) == FIRST_REPORTS + LAST_REPORTS) {
        json_array_remove(job->stalls, FIRST_REPORTS);
    }
    json_array_append_new(job->stalls, report);
}

bool ds_accel__job_watch(struct ds_accel__job *job, uint64_t now_ns)
{
    const char *notice;
    json_t *report = NULL;
    bool is_found;

    if (job->stall == NULL || job->phase != DS_ACCEL__JOB_RUNNING ||
        (!job->has_pipes && now_ns < ds_accel__stall_next_ns(job->stall))) {
        return false; /* without pipes, to count the output takes long */
    }
    if (is_reader_slow(job)) {
        ds_accel__stall_postpone(job->stall, now_ns);
        return false;
    }
    for (uint32_t i = 0; i < job->rank_count; i++) {
        const struct ds_accel__job_rank *rank = &job->ranks[i];
        struct ds_accel__stall_rank *watched = &job->stall_ranks[i];

        watched->pid = rank->pid;
        watched->is_running = rank->state == DS_ACCEL__RANK_RUNNING;
        if (watched->is_running) { /* else its pid may be another process's */
            watched->output_bytes = count_output(job, rank);
        }
    }
    is_found = ds_accel__stall_check(job->stall, now_ns, job->stall_ranks, &report);
    notice = ds_accel__stall_take_notice(job->stall);
    if (notice != NULL) {
        ds_accel__job_say(job, DS_ACCEL_LOG_WARN, "%s", notice);
    }
    if (!is_found) {
        return false;
    }
    log_report(job, report);
    if (job->launch->options.stall_kill) {
        job->culprit = find_blamed(job, report);
        ds_accel__death_stalled(
            (uint64_t)(json_real_value(json_object_get(report, "silent_s")) * 1e9), &job->death);
    }
    keep_report(job, report);
    return job->launch->options.stall_kill;
}
