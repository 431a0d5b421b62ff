/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Finds the rank that failed first. A process that exits frees its memory, then closes its files,
 * and only then can be reaped. Another rank may notice the closed connections, fail, and be reaped
 * earlier than the cause. So when the first failure is noticed, /proc tells which ranks are
 * exiting: these fail by themselves, and are not terminated. Those that have freed their memory, or
 * have ended, are candidates for the cause; the others have not closed a connection yet.
 *
 * A failure is noticed by the end of a rank's pipes, which the kernel closes with its other files,
 * or else by SIGCHLD. The kernel records no time for a process that exits, so the order of several
 * candidates is not certain. Chosen is
 *
 *      1. a rank that a signal killed, except SIGPIPE, which is a broken connection
 *      2. a rank that was still closing files: the ones that it closed first may have made
 *         another rank fail, whose pipes have ended already
 *      3. the rank whose pipes ended first, an order that epoll keeps
 *      4. the rank that was reaped first
 *
 * and the other candidates are reported as well. A candidate that is reaped after the other ranks
 * were terminated may still become the culprit.
 */
#include "base/descendants.h"
#include "launch/job.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Flags of a thread in the kernel's <linux/sched.h>. */
#define PF_EXITING 0x4u
#define PF_POSTCOREDUMP 0x8u /* waits for the core dump of another thread */
#define PF_DUMPCORE 0x200u
#define PF_SIGNALED 0x400u /* killed by a signal */
#define PF_ENDING (PF_EXITING | PF_POSTCOREDUMP | PF_DUMPCORE | PF_SIGNALED)

/* Fields of /proc/PID/stat. The first one after the name is 3. */
enum {
    FIELD_FLAGS = 9,
    FIELD_THREADS = 20,
    FIELD_MEMORY = 23,
    FIELD_EXIT_CODE = 52
};

/* What /proc shows of a process, or of one of its threads. */
struct thread {
    unsigned long flags;
    unsigned long thread_count;
    unsigned long memory_bytes; /* 0: it was freed */
    unsigned long exit_code;    /* of waitpid(); 0 also if it is unknown */
};

/* Read a file /proc/.../stat. False: the thread has gone. */
static bool read_thread(const char *path, struct thread *thread)
{
    char stat[2048];
    const char *field;
    ssize_t size;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    *thread = (struct thread){0};
    size = fd >= 0 ? read(fd, stat, sizeof(stat) - 1) : 0;
    if (fd >= 0) {
        close(fd);
    }
    stat[size > 0 ? size : 0] = '\0';
    field = strrchr(stat, ')');
    for (int i = 3; field != NULL && (field = strchr(field + 1, ' ')) != NULL; i++) {
        unsigned long number = strtoul(field, NULL, 10);

        thread->flags = i == FIELD_FLAGS ? number : thread->flags;
        thread->thread_count = i == FIELD_THREADS ? number : thread->thread_count;
        thread->memory_bytes = i == FIELD_MEMORY ? number : thread->memory_bytes;
        thread->exit_code = i == FIELD_EXIT_CODE ? number : thread->exit_code;
    }
    return size > 0;
}

/* Are all threads of a process ending? The first one may have ended alone. */
static bool are_threads_ending(pid_t pid)
{
    char path[96];
    DIR *dir;
    const struct dirent *entry;
    bool are_ending = true;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    dir = opendir(path);
    while (dir != NULL && are_ending && (entry = readdir(dir)) != NULL) {
        struct thread thread;

        snprintf(path, sizeof(path), "/proc/%d/task/%.20s/stat", (int)pid, entry->d_name);
        if (isdigit((unsigned char)entry->d_name[0]) && read_thread(path, &thread)) {
            are_ending = (thread.flags & PF_ENDING) != 0;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return are_ending;
}

/* Is the process of a rank exiting, or waiting to be reaped? */
static bool is_exiting(const struct ds_accel__job_rank *rank, struct thread *thread)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)rank->pid);
    return read_thread(path, thread) && (thread->flags & PF_ENDING) != 0 &&
           (thread->thread_count <= 1 || are_threads_ending(rank->pid));
}

/* Note which ranks are ending by themselves. Those of the first call are the candidates. */
static void mark_exiting(struct ds_accel__job *job)
{
    bool is_first = !job->has_candidates;
    bool is_visible = ds_accel__descendants_are_visible();

    job->has_candidates = true;
    for (uint32_t i = 0; i < job->rank_count; i++) {
        struct ds_accel__job_rank *rank = &job->ranks[i];
        struct thread thread = {0};

        if (rank->state == DS_ACCEL__RANK_RUNNING && is_visible && is_exiting(rank, &thread)) {
            rank->was_exiting = true;
        }
        if (is_first) {
            bool closes_files = rank->was_exiting && thread.memory_bytes == 0;

            rank->is_candidate = ds_accel__job_has_failed(rank) || closes_files;
            rank->is_closing = closes_files && rank->exit_order == 0;
        }
    }
}

/* ---- the order of ends ---------------------------------------------------------------------- */

void ds_accel__job_watch_exit(struct ds_accel__job *job, const struct ds_accel__job_rank *rank)
{
    /* The end of a pipe is always reported, and once. Without the order, others decide. */
    struct epoll_event event = {.events = EPOLLET, .data.u32 = (uint32_t)(rank - job->ranks)};

    if (job->has_pipes && job->exits_fd < 0) {
        job->exits_fd = epoll_create1(EPOLL_CLOEXEC);
    }
    for (int i = 0; job->exits_fd >= 0 && i < DS_ACCEL__STREAMS; i++) {
        if (rank->streams[i].fd >= 0) {
            epoll_ctl(job->exits_fd, EPOLL_CTL_ADD, rank->streams[i].fd, &event);
        }
    }
}

/* The end of a pipe of a rank, which may also have closed it itself. */
static void note_end(struct ds_accel__job *job, struct ds_accel__job_rank *rank)
{
    bool is_running = rank->state == DS_ACCEL__RANK_RUNNING;
    struct thread thread = {0};

    if (rank->exit_order != 0 || (is_running && !is_exiting(rank, &thread))) {
        return;
    }
    rank->exit_order = ++job->exit_count;
    if (is_running && thread.exit_code != 0 && !job->has_candidates &&
        job->phase == DS_ACCEL__JOB_RUNNING && job->culprit == DS_ACCEL__NO_RANK) {
        mark_exiting(job);
    }
}

void ds_accel__job_note_exits(struct ds_accel__job *job)
{
    struct epoll_event events[64];
    int count = job->exits_fd >= 0 ? ARRAY_SIZE(events) : 0;
    bool is_visible = ds_accel__descendants_are_visible();

    while (count == (int)ARRAY_SIZE(events)) { /* also to make poll() wait again */
        count = epoll_wait(job->exits_fd, events, ARRAY_SIZE(events), 0);
        for (int i = 0; i < count && is_visible; i++) {
            note_end(job, &job->ranks[events[i].data.u32]);
        }
    }
}

/* ---- the culprit ---------------------------------------------------------------------------- */

/* A signal other than that of a broken connection. */
static bool is_killed(const struct ds_accel__job_rank *rank)
{
    return rank->ended.si_code != CLD_EXITED && rank->ended.si_status != SIGPIPE;
}

static bool is_likelier_cause(const struct ds_accel__job_rank *rank,
                              const struct ds_accel__job_rank *other)
{
    if (rank->is_candidate != other->is_candidate) {
        return rank->is_candidate;
    }
    if (is_killed(rank) != is_killed(other)) {
        return is_killed(rank);
    }
    if (rank->is_closing != other->is_closing) {
        return rank->is_closing;
    }
    if (rank->exit_order != 0 && other->exit_order != 0) {
        return rank->exit_order < other->exit_order;
    }
    return rank->end_ns < other->end_ns;
}

/* The likeliest cause among the ranks that have failed by themselves; NO_RANK: none has. */
static uint32_t find(const struct ds_accel__job *job)
{
    uint32_t found = DS_ACCEL__NO_RANK;

    for (uint32_t i = 0; i < job->rank_count; i++) {
        const struct ds_accel__job_rank *rank = &job->ranks[i];

        if (ds_accel__job_has_failed(rank) &&
            (found == DS_ACCEL__NO_RANK || is_likelier_cause(rank, &job->ranks[found]))) {
            found = i;
        }
    }
    return found;
}

bool ds_accel__job_find_culprit(struct ds_accel__job *job)
{
    if (find(job) == DS_ACCEL__NO_RANK) {
        return false;
    }
    ds_accel__job_note_exits(job);
    mark_exiting(job);
    job->culprit = find(job);
    ds_accel__job_find_death(job);
    return true;
}

/*
 * A rank that runs out of memory closes its connections before it has ended, so that others may
 * fail first. If the kernel has killed a rank for its memory, it is the cause, even if it is found
 * later; this process has not sent SIGKILL yet.
 */
static void find_exhausted(struct ds_accel__job *job)
{
    struct ds_accel__death death = job->death;
    uint32_t culprit = job->culprit;

    for (uint32_t i = 0; i < job->rank_count && death.oom.verdict == DS_ACCEL__OOM_NONE; i++) {
        const struct ds_accel__job_rank *rank = &job->ranks[i];

        if (rank->state != DS_ACCEL__RANK_ENDED || (!rank->is_victim && !rank->was_exiting) ||
            i == culprit || rank->is_examined || rank->ended.si_code == CLD_EXITED ||
            rank->ended.si_status != SIGKILL) {
            continue;
        }
        job->ranks[i].is_examined = true;
        job->culprit = i;
        ds_accel__job_find_death(job);
        if (job->death.oom.verdict != DS_ACCEL__OOM_NONE) {
            job->ranks[i].is_victim = false;
            return;
        }
        job->culprit = culprit;
        job->death = death;
    }
}

void ds_accel__job_review_culprit(struct ds_accel__job *job)
{
    if (job->has_new_candidate && job->death.oom.verdict == DS_ACCEL__OOM_NONE) {
        uint32_t found = find(job);

        if (found != DS_ACCEL__NO_RANK && found != job->culprit) {
            job->culprit = found;
            ds_accel__job_find_death(job);
        }
    }
    job->has_new_candidate = false;
    if (job->phase == DS_ACCEL__JOB_ENDING) {
        find_exhausted(job);
    }
}
