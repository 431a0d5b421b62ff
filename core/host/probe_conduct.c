/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks what a plugin left in the process that probes it: children, threads, descriptors, timers.
 * guard.c checks the other state of the process. A runtime may have all of these while it is
 * started; after the probe, and after shutdown, none may remain.
 */
#include "host/guard.h"
#include "host/probe_child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_TRIES 40 /* number of tries, one per millisecond */

static void wait_a_moment(void)
{
    poll(NULL, 0, 1);
}

/* ---- children and threads ------------------------------------------------------------------- */

/*
 * Reap children that have exited. True if a child is still alive. This process is a subreaper, so
 * orphaned grandchildren count, too.
 */
static bool has_children(const struct ds_accel__left *before)
{
    pid_t pid;

    (void)before;
    do {
        pid = waitpid(-1, NULL, WNOHANG | __WALL);
    } while (pid > 0 || (pid < 0 && errno == EINTR));
    return pid == 0;
}

/* Return the number of threads, from the link count of /proc/self/task; 0 if there is no /proc. */
static size_t count_threads(void)
{
    struct stat info;

    return stat("/proc/self/task", &info) == 0 && info.st_nlink > 2 ? (size_t)info.st_nlink - 2 : 0;
}

/*
 * True if the process has several threads: the kernel then rejects unshare(CLONE_THREAD), which
 * otherwise has no effect.
 */
static bool is_many(void)
{
    return unshare(CLONE_THREAD) != 0 && errno == EINVAL;
}

static bool has_threads(const struct ds_accel__left *before)
{
    size_t count = count_threads();

    return count > 0 ? count > before->thread_count : !before->has_threads && is_many();
}

/*
 * Write how many threads there are more than before. The number is not known without /proc, and if
 * a thread has ended since has_threads() found it.
 */
static void describe_threads(const struct ds_accel__left *before, char *text, size_t size)
{
    size_t count = count_threads();

    if (count > before->thread_count && before->thread_count > 0) {
        snprintf(text, size, "%zu more than before", count - before->thread_count);
    } else {
        snprintf(text, size, "a thread is still there");
    }
}

/* ---- descriptors and timers ----------------------------------------------------------------- */

static void mark(uint8_t *is_open, int fd)
{
    if (fd >= 0 && fd < DS_ACCEL__DESCRIPTOR_LIMIT) {
        is_open[fd / 8] |= (uint8_t)(1 << fd % 8);
    }
}

static bool is_marked(const uint8_t *is_open, int fd)
{
    return (is_open[fd / 8] >> fd % 8 & 1) != 0;
}

static void list_open(uint8_t *is_open)
{
    _Alignas(struct dirent64) char entries[2048];
    int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long size;

    memset(is_open, 0, DS_ACCEL__DESCRIPTOR_LIMIT / 8);
    if (dir < 0) { /* no /proc, or no free descriptor */
        for (int fd = 0; fd < DS_ACCEL__DESCRIPTOR_LIMIT; fd++) {
            if (fcntl(fd, F_GETFD) >= 0) {
                mark(is_open, fd);
            }
        }
        return;
    }
    while ((size = syscall(SYS_getdents64, dir, entries, sizeof(entries))) > 0) {
        for (long at = 0; at < size;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
            int fd = entry->d_name[0] >= '0' && entry->d_name[0] <= '9' ? atoi(entry->d_name) : -1;

            if (fd != dir) {
                mark(is_open, fd);
            }
            at += entry->d_reclen;
        }
    }
    close(dir);
}

static void describe_descriptor(int fd, bool is_new, char *text, size_t size)
{
    char path[32];
    char target[96];
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    length = is_new ? readlink(path, target, sizeof(target) - 1) : 0;
    target[length > 0 ? length : 0] = '\0';
    snprintf(text, size, "descriptor %d is %s%s%s", fd, is_new ? "open" : "closed",
             target[0] != '\0' ? ": " : "", target);
}

/*
 * True if a descriptor below DS_ACCEL__DESCRIPTOR_LIMIT was opened or closed since before was
 * recorded. text describes the first such descriptor.
 */
static bool compare_descriptors(const struct ds_accel__left *before, char *text, size_t size)
{
    uint8_t now[DS_ACCEL__DESCRIPTOR_LIMIT / 8];

    list_open(now);
    for (int fd = 0; fd < DS_ACCEL__DESCRIPTOR_LIMIT; fd++) {
        if (is_marked(now, fd) != is_marked(before->is_open, fd)) {
            describe_descriptor(fd, is_marked(now, fd), text, size);
            return true;
        }
    }
    return false;
}

/* True if timers of timer_create() exist. False also if the kernel does not list them. */
static bool has_timers(void)
{
    char byte;
    int fd = open("/proc/self/timers", O_RDONLY | O_CLOEXEC);
    bool found = fd >= 0 && read(fd, &byte, 1) == 1;

    if (fd >= 0) {
        close(fd);
    }
    return found;
}

/* ---- all kinds of leftovers ----------------------------------------------------------------- */

void ds_accel__left_take(struct ds_accel__left *left)
{
    memset(left, 0, sizeof(*left));
    left->thread_count = count_threads();
    left->has_threads = is_many();
    left->has_timers = has_timers();
    list_open(left->is_open);
}

static bool remains(const struct ds_accel__left *before,
                    bool (*look)(const struct ds_accel__left *before))
{
    for (int i = 0; i < GRACE_TRIES; i++) {
        if (!look(before)) {
            return false;
        }
        wait_a_moment();
    }
    return look(before);
}

enum kind {
    LEFT_PROCESS,
    LEFT_THREAD,
    LEFT_DESCRIPTOR,
    LEFT_TIMER
};

static void report_once(struct ds_accel__left *left, enum kind kind, const char *text,
                        ds_accel__conduct_t report, void *user_data)
{
    static const enum ds_accel__reason_id reasons[] = {
        DS_ACCEL__REASON_LEAVES_PROCESS, DS_ACCEL__REASON_LEAVES_THREAD,
        DS_ACCEL__REASON_LEAVES_DESCRIPTOR, DS_ACCEL__REASON_LEAVES_TIMER};

    if ((left->reported >> kind & 1) == 0) {
        left->reported |= UINT32_C(1) << kind;
        report(user_data, reasons[kind], text);
    }
}

void ds_accel__left_compare(struct ds_accel__left *left, ds_accel__conduct_t report,
                            void *user_data)
{
    char text[256];

    if ((left->reported & 1) == 0 && has_children(left) && remains(left, has_children)) {
        report_once(left, LEFT_PROCESS, "a child process is still there", report, user_data);
    }
    if ((left->reported >> LEFT_THREAD & 1) == 0 && has_threads(left) &&
        remains(left, has_threads)) {
        describe_threads(left, text, sizeof(text));
        report_once(left, LEFT_THREAD, text, report, user_data);
    }
    if (compare_descriptors(left, text, sizeof(text))) {
        report_once(left, LEFT_DESCRIPTOR, text, report, user_data);
    }
    if (!left->has_timers && has_timers()) {
        report_once(left, LEFT_TIMER, "a timer of timer_create() still runs", report, user_data);
    }
}
