/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Runs work in a child process that may hang, crash or leave memory behind: reading another
 * process's stacks, reading a device's sensors through a vendor's library. The child writes each
 * result as a line of JSON to a pipe:
 *
 *      parent: fork, read lines until the end of the pipe or the deadline, kill, reap
 *      child:  work, one line per result, _exit
 *
 * The child dies with the parent. Its own children, which may keep the pipe open, do not delay the
 * parent beyond the deadline, and are killed with their process group. A killed child that the
 * kernel does not end within a second is in an uninterruptible wait; it remains a child of this
 * process, and is reaped by the next run, or when the caller reaps all its children.
 */
#include "launch/worker.h"
#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RESULT_LIMIT (256u << 20)
#define END_NS 1000000000ull
#define NS_PER_MS 1000000ull

/* A killed child that has not ended; 0: none. */
static pid_t remaining;

void ds_accel__worker_result(struct ds_accel__worker *worker, const json_t *result)
{
    char *line = result != NULL ? ds_accel__json_dump(result, JSON_COMPACT) : NULL;
    size_t size = line != NULL ? strlen(line) : 0;

    if (size == 0) {
        return;
    }
    line[size] = '\n'; /* in place of NUL */
    for (size_t written = 0; written < size + 1;) {
        ssize_t count = write(worker->fd, line + written, size + 1 - written);

        if (count < 0 && errno != EINTR) {
            break;
        }
        written += count > 0 ? (size_t)count : 0;
    }
    free(line);
}

static void run_child(ds_accel__worker_work_t work, void *user_data, int fd, pid_t parent)
{
    struct ds_accel__worker worker = {.fd = 3};
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1);
    }
    /* The terminal's signals are the parent's, and the group is killed at the end. */
    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int number = 1; number < NSIG; number++) {
        signal(number, SIG_DFL);
    }
    signal(SIGPIPE, SIG_IGN);
    if (fd != worker.fd) {
        dup2(fd, worker.fd);
    }
    fcntl(worker.fd, F_SETFD, FD_CLOEXEC);
    syscall(SYS_close_range, 4u, ~0u, 0u);
    work(&worker, user_data);
    _exit(0);
}

/* Read until the end of the pipe; false at the deadline. */
static bool read_results(int fd, uint64_t deadline_ns, struct ds_accel__text *text)
{
    char piece[65536];

    while (text->size_bytes < RESULT_LIMIT) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        uint64_t now_ns = ds_accel__now_ns();
        ssize_t count;

        if (now_ns >= deadline_ns) {
            return false;
        }
        if (poll(&ready, 1, (int)((deadline_ns - now_ns) / NS_PER_MS) + 1) < 1) {
            continue; /* the deadline, or a signal */
        }
        count = read(fd, piece, sizeof(piece));
        if (count == 0 || (count < 0 && errno != EINTR)) {
            return true;
        }
        ds_accel__text_add_bytes(text, piece, count > 0 ? (size_t)count : 0);
    }
    return true;
}

static void end_child(pid_t pid)
{
    struct timespec pause = {.tv_nsec = 200000};

    kill(-pid, SIGKILL);
    kill(pid, SIGKILL); /* if it has not yet made its group */
    for (uint64_t start_ns = ds_accel__now_ns(); ds_accel__now_ns() - start_ns < END_NS;) {
        pid_t ended = waitpid(pid, NULL, WNOHANG);

        if (ended == pid || (ended < 0 && errno != EINTR)) {
            return;
        }
        nanosleep(&pause, NULL);
    }
    remaining = pid;
}

/* Add each complete line to the array. False: memory is exhausted. */
static bool parse_results(char *lines, json_t *results)
{
    for (char *end; lines != NULL && (end = strchr(lines, '\n')) != NULL; lines = end + 1) {
        json_t *result = json_loadb(lines, (size_t)(end - lines), 0, NULL);

        if (result == NULL || json_array_append_new(results, result) != 0) {
            return false;
        }
    }
    return true;
}

static int32_t collect(int fd, pid_t pid, uint64_t timeout_ns, json_t **results_out,
                       bool *is_late_out)
{
    struct ds_accel__text text = {0};
    json_t *results = json_array();
    bool is_late = !read_results(fd, ds_accel__now_ns() + timeout_ns, &text);
    bool failed = text.failed;
    char *lines;

    end_child(pid);
    lines = text.size_bytes > 0 ? ds_accel__text_take(&text) : NULL;
    if (failed || results == NULL || !parse_results(lines, results)) {
        free(lines);
        ds_accel__text_clear(&text);
        json_decref(results);
        return ds_accel__no_memory();
    }
    free(lines);
    *results_out = results;
    *is_late_out = is_late;
    return DS_ACCEL_OK;
}

int32_t ds_accel__worker_run(ds_accel__worker_work_t work, void *user_data, uint64_t timeout_ns,
                             json_t **results_out, bool *is_late_out)
{
    pid_t parent = getpid(), pid;
    int32_t status;
    int fds[2];

    if (remaining != 0 && waitpid(remaining, NULL, WNOHANG) != 0) {
        remaining = 0;
    }
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_LIMIT, "pipe: %s", strerror(errno));
    }
    pid = fork();
    if (pid == 0) {
        run_child(work, user_data, fds[1], parent);
    }
    status = pid < 0 ? ds_accel__error(DS_ACCEL_ERR_LIMIT, "fork: %s", strerror(errno)) : 0;
    close(fds[1]);
    if (pid > 0) {
        status = collect(fds[0], pid, timeout_ns, results_out, is_late_out);
    }
    close(fds[0]);
    return status;
}
