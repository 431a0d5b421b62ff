/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Python's frames are not visible from outside, but its faulthandler writes them when a signal
 * arrives. A rank inherits the writing end of a pipe, and a program that wants its Python frames in
 * reports arms faulthandler on it, once, at its start:
 *
 *      fd = os.environ.get("DS_ACCEL_FAULTHANDLER_FD")
 *      if fd:
 *          faulthandler.register(signal.SIGUSR1, file=int(fd), all_threads=True)
 *          os.write(int(fd), b"armed %d %d\n" % (signal.SIGUSR1, os.getpid()))
 *
 * The line "armed SIGNAL PID" is what permits us to send the signal. A handler alone, as in SigCgt
 * of /proc/PID/status, proves nothing: many programs handle SIGUSR1 for purposes of their own, such
 * as a checkpoint before the end of a batch job, and in others the signal's default action is
 * death. Both are required: the line, and a handler that the process still has, because a program
 * may execute another one. The process must descend from the rank, so that a line cannot direct
 * signals at other processes. The handler works in C, also while the main thread is in a library.
 */
#include "launch/fault.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_LIMIT 262144u
#define ARMED_SIZE 64
#define ANCESTOR_LIMIT 32u
#define QUIET_NS 100000000ull
#define NS_PER_MS 1000000ull

int32_t ds_accel__fault_open(struct ds_accel__fault *fault)
{
    int fds[2];

    *fault = (struct ds_accel__fault){.fd = -1, .child_fd = -1};
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_LIMIT, "pipe: %s", strerror(errno));
    }
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    fcntl(fds[1], F_SETFD, 0);
    fault->fd = fds[0];
    fault->child_fd = fds[1];
    return DS_ACCEL_OK;
}

void ds_accel__fault_started(struct ds_accel__fault *fault)
{
    if (fault->child_fd >= 0) {
        close(fault->child_fd);
        fault->child_fd = -1;
    }
}

void ds_accel__fault_close(struct ds_accel__fault *fault)
{
    ds_accel__fault_started(fault);
    if (fault->fd >= 0) {
        close(fault->fd);
    }
    free(fault->text);
    *fault = (struct ds_accel__fault){.fd = -1, .child_fd = -1};
}

/* ---- the line "armed SIGNAL PID" ------------------------------------------------------------ */

static void parse_armed(struct ds_accel__fault *fault, const char *data, size_t size)
{
    char line[ARMED_SIZE];
    int number, used = 0;
    long pid;

    if (size >= sizeof(line)) {
        return;
    }
    memcpy(line, data, size);
    line[size] = '\0';
    if (sscanf(line, "armed %d %ld%n", &number, &pid, &used) == 2 && line[used] == '\0' &&
        number > 0 && number < NSIG && number != SIGKILL && number != SIGSTOP && pid > 1 &&
        pid <= INT32_MAX) {
        fault->signal = number;
        fault->pid = (pid_t)pid;
    }
}

/* Use the complete lines of what was read, and keep text only while it was requested. A space
 * replaces each NUL byte, which would end the text. */
static void add_text(struct ds_accel__fault *fault, const char *data, size_t size)
{
    const char *end;
    char *text;

    for (const char *line = data; (end = memchr(line, '\n', size - (size_t)(line - data))) != NULL;
         line = end + 1) {
        parse_armed(fault, line, (size_t)(end - line));
    }
    if (!fault->is_wanted || fault->size_bytes + size > TEXT_LIMIT) {
        return;
    }
    text = realloc(fault->text, fault->size_bytes + size + 1);
    if (text != NULL) {
        for (size_t i = 0; i < size; i++) {
            text[fault->size_bytes++] = data[i] != '\0' ? data[i] : ' ';
        }
        text[fault->size_bytes] = '\0';
        fault->text = text;
    }
}

void ds_accel__fault_read(struct ds_accel__fault *fault)
{
    char data[4096];

    while (fault->fd >= 0) {
        ssize_t size = read(fault->fd, data, sizeof(data));

        if (size > 0) {
            add_text(fault, data, (size_t)size);
        } else if (size < 0 && errno == EAGAIN) {
            break;
        } else if (size == 0 || errno != EINTR) {
            close(fault->fd);
            fault->fd = -1;
        }
    }
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Read a hexadecimal or decimal member of /proc/PID/status. */
static bool read_status(pid_t pid, const char *member, int base, unsigned long long *value_out)
{
    char path[64], *text, *found;
    const char *cause;
    size_t size;

    snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
    if (ds_accel__file_read(path, 65536, &text, &size, &cause) < 0) {
        return false;
    }
    found = strstr(text, member);
    if (found != NULL) {
        *value_out = strtoull(found + strlen(member), NULL, base);
    }
    free(text);
    return found != NULL;
}

static bool descends_from(pid_t pid, pid_t ancestor)
{
    unsigned long long parent = (unsigned long long)pid;

    for (unsigned i = 0; i < ANCESTOR_LIMIT && parent > 1; i++) {
        if ((pid_t)parent == ancestor) {
            return true;
        }
        if (!read_status((pid_t)parent, "\nPPid:", 10, &parent)) {
            break;
        }
    }
    return false;
}

static bool request(struct ds_accel__fault *fault, pid_t rank_pid)
{
    unsigned long long caught = 0;

    free(fault->text);
    fault->text = NULL;
    fault->size_bytes = 0;
    fault->is_wanted = false;
    ds_accel__fault_read(fault);
    if (rank_pid <= 0 || fault->fd < 0 || fault->pid == 0 || !descends_from(fault->pid, rank_pid) ||
        !read_status(fault->pid, "\nSigCgt:", 16, &caught) ||
        (caught >> (fault->signal - 1) & 1) == 0) {
        return false;
    }
    fault->is_wanted = kill(fault->pid, fault->signal) == 0;
    return fault->is_wanted;
}

/* Wait for text; false if none came for a while after the last one, or at the deadline. */
static bool wait_text(struct ds_accel__fault *faults, struct pollfd *polled, size_t count,
                      uint64_t deadline_ns)
{
    uint64_t now_ns = ds_accel__now_ns();
    uint64_t wait_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    bool is_answered = true;
    int ready;

    for (size_t i = 0; i < count; i++) {
        polled[i] =
            (struct pollfd){.fd = faults[i].is_wanted ? faults[i].fd : -1, .events = POLLIN};
        is_answered = is_answered && (polled[i].fd < 0 || faults[i].size_bytes > 0);
    }
    if (is_answered && wait_ns > QUIET_NS) {
        wait_ns = QUIET_NS;
    }
    ready = poll(polled, count, (int)(wait_ns / NS_PER_MS) + 1);
    for (size_t i = 0; i < count && ready > 0; i++) {
        if (polled[i].revents != 0) {
            ds_accel__fault_read(&faults[i]);
        }
    }
    return (ready > 0 || (ready < 0 && errno == EINTR) || !is_answered) &&
           ds_accel__now_ns() < deadline_ns;
}

void ds_accel__fault_collect(struct ds_accel__fault *faults, const pid_t *rank_pids, size_t count,
                             uint64_t timeout_ns)
{
    uint64_t deadline_ns = ds_accel__now_ns() + timeout_ns;
    struct pollfd *polled = calloc(count, sizeof(*polled));
    bool is_any = false;

    for (size_t i = 0; i < count && polled != NULL; i++) {
        is_any = request(&faults[i], rank_pids[i]) || is_any;
    }
    while (is_any && wait_text(faults, polled, count, deadline_ns)) {
    }
    for (size_t i = 0; i < count; i++) {
        faults[i].is_wanted = false;
    }
    free(polled);
}
