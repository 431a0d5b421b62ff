/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Why a job ended. The cause is the rank that failed first, by itself: a rank that fails after a
 * signal was passed on, or after the supervisor terminated it, is a victim, unless it was exiting
 * when the first failure was noticed (culprit.c).
 */
#include "base/text.h"
#include "host/context.h"
#include "launch/job.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAST_LINES 50u

extern char **environ;

void ds_accel__job_find_death(struct ds_accel__job *job)
{
    struct ds_accel__job_rank *rank = &job->ranks[job->culprit];
    struct ds_accel__ended ended = {.pid = rank->pid,
                                    .program = job->path,
                                    .directory = job->launch->known.directory,
                                    .core_limit_bytes = job->core_limit,
                                    .started_us = job->start_wall_us};
    struct ds_accel__oom oom = {.verdict = DS_ACCEL__OOM_NONE};

    if (rank->state == DS_ACCEL__RANK_NOT_STARTED) {
        ds_accel__death_not_started(&rank->spawned, job->plan->arguments[0], job->path,
                                    &job->death);
        return;
    }
    if (job->groups != NULL) {
        ds_accel__groups_oom(job->groups, job->culprit, &oom);
    }
    ds_accel__death_ended(&job->launch->known.context->machine, &rank->ended, &ended, &oom,
                          &job->death);
}

/* The exit code of a rank, as a shell shows it. */
int ds_accel__job_rank_code(const struct ds_accel__job_rank *rank)
{
    return rank->ended.si_code == CLD_EXITED ? rank->ended.si_status : 128 + rank->ended.si_status;
}

bool ds_accel__job_has_failed(const struct ds_accel__job_rank *rank)
{
    return rank->state == DS_ACCEL__RANK_ENDED && !rank->is_victim &&
           ds_accel__job_rank_code(rank) != 0;
}

int ds_accel__job_exit_code(const struct ds_accel__job *job)
{
    const struct ds_accel__job_rank *first = NULL;

    if (job->culprit != DS_ACCEL__NO_RANK) {
        return ds_accel__death_exit_code(&job->death);
    }
    for (uint32_t i = 0; i < job->rank_count; i++) {
        const struct ds_accel__job_rank *rank = &job->ranks[i];

        if (rank->state == DS_ACCEL__RANK_ENDED && ds_accel__job_rank_code(rank) != 0 &&
            (first == NULL || rank->end_ns < first->end_ns)) {
            first = rank;
        }
    }
    return first != NULL ? ds_accel__job_rank_code(first) : 0;
}

/* Does the variable belong to the backend: is it one of those that other hosts get, too? */
static bool is_backends(const struct ds_accel__launch_facts *facts, const char *entry)
{
    for (uint32_t i = 0; i < facts->export_count; i++) {
        const char *prefix = facts->export_prefixes[i];

        /* PATH and LD_LIBRARY_PATH are exported by some backends, but are no settings of them. */
        if (strncmp(entry, prefix, strlen(prefix)) == 0 && strcmp(prefix, "PATH") != 0 &&
            strncmp(prefix, "LD_", 3) != 0) {
            return true;
        }
    }
    return false;
}

bool ds_accel__job_visit_environment(const struct ds_accel__job *job,
                                     const struct ds_accel__rank *rank,
                                     ds_accel__variable_visit_t visit, void *user_data)
{
    const struct ds_accel__launch_facts *facts = &job->launch->known.facts;
    bool goes_on = true;

    for (char **entry = environ; *entry != NULL && goes_on; entry++) {
        if (is_backends(facts, *entry) && strchr(*entry, '=') != NULL) {
            size_t length = strcspn(*entry, "=");
            char *name = strndup(*entry, length);

            goes_on = name != NULL && visit(user_data, name, *entry + length + 1);
            free(name);
        }
    }
    return goes_on && ds_accel__plan_variables(job->plan, rank, job->port, visit, user_data) >= 0;
}

/* Read the end of a log, however long it is. A log that cannot be read has no lines. */
static void read_log(const char *path, struct ds_accel__tail *tail)
{
    char *text = malloc(DS_ACCEL__TAIL_SIZE);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat info;
    ssize_t size;

    if (text != NULL && fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        /* The bytes before the end count as added, so that a cut first line is left out. */
        if (info.st_size > (off_t)DS_ACCEL__TAIL_SIZE) {
            tail->total = (uint64_t)info.st_size - DS_ACCEL__TAIL_SIZE;
        }
        size = pread(fd, text, DS_ACCEL__TAIL_SIZE, (off_t)tail->total);
        if (size < (ssize_t)DS_ACCEL__TAIL_SIZE) {
            tail->total = 0; /* the log is short, or was cut since fstat() */
        }
        ds_accel__tail_add(tail, text, size > 0 ? (size_t)size : 0);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(text);
}

char *ds_accel__job_last_lines(const struct ds_accel__job_rank *rank)
{
    struct ds_accel__tail tail = {0};
    char *lines;

    if (rank->log_path == NULL) {
        return ds_accel__tail_lines(&rank->tail, LAST_LINES);
    }
    read_log(rank->log_path, &tail);
    lines = ds_accel__tail_lines(&tail, LAST_LINES);
    free(tail.bytes);
    return lines;
}
