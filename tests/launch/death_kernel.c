/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Functions of the C library that the program `death` replaces: mkdir() and rmdir(), so that a tree
 * of ordinary files behaves as the kernel's control groups, and fcntl(), so that a file is opened
 * while a lease of it is held. And the tests of allocations that fail.
 */
#include "alloc/allocations.h"
#include "death.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *kernel_root;
bool kernel_passes_memory;
bool kernel_has_kill;
unsigned kernel_refuses;
unsigned kernel_made;
bool kernel_breaks_leases;
unsigned kernel_broken;
int kernel_refuses_leases;

static const char *const group_files[] = {
    "cgroup.procs", "cgroup.freeze", "cgroup.events",      "cgroup.subtree_control",
    "cgroup.kill",  "memory.events", "memory.oom_control", "freezer.state"};

static bool is_group(const char *path)
{
    return kernel_root != NULL && strncmp(path, kernel_root, strlen(kernel_root)) == 0;
}

static void write_new(const char *directory, const char *name, const char *text)
{
    char path[4096];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0) {
        if (write(fd, text, strlen(text)) < 0) {
            perror(path);
        }
        close(fd);
    }
}

static void fill_group(const char *path)
{
    write_new(path, "cgroup.procs", "");
    write_new(path, "cgroup.subtree_control", "");
    if (strstr(path, "/freezer/") != NULL) {
        write_new(path, "freezer.state", "THAWED\n");
        return;
    }
    write_new(path, "cgroup.freeze", "0\n");
    write_new(path, "cgroup.events", "populated 1\nfrozen 1\n");
    if (kernel_has_kill) {
        write_new(path, "cgroup.kill", "");
    }
    if (kernel_passes_memory) {
        write_new(path, "memory.events", "low 0\noom 0\noom_kill 0\n");
        write_new(path, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
    }
}

#pragma GCC visibility push(default)

int mkdir(const char *path, mode_t mode)
{
    if (is_group(path) && ++kernel_made == kernel_refuses) {
        errno = EROFS;
        return -1;
    }
    if (syscall(SYS_mkdirat, AT_FDCWD, path, mode) != 0) {
        return -1;
    }
    if (is_group(path)) {
        fill_group(path);
    }
    return 0;
}

int rmdir(const char *path)
{
    char name[4096];

    for (size_t i = 0; is_group(path) && i < sizeof(group_files) / sizeof(group_files[0]); i++) {
        snprintf(name, sizeof(name), "%s/%s", path, group_files[i]);
        unlink(name);
    }
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

/* Open a file for writing while this process has a lease of it. The kernel refuses this, because it
 * must not wait, and sends the signal that announces it. */
static void break_lease(int fd)
{
    char path[64];
    int other;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    other = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    kernel_broken += other < 0 && errno == EWOULDBLOCK;
    if (other >= 0) {
        close(other);
    }
}

int fcntl(int fd, int command, ...)
{
    va_list arguments;
    long argument;
    int result;

    va_start(arguments, command);
    argument = va_arg(arguments, long);
    va_end(arguments);
    if (command == F_SETLEASE && kernel_refuses_leases != 0) {
        errno = kernel_refuses_leases;
        return -1;
    }
    result = (int)syscall(SYS_fcntl, fd, command, argument);
    if (command == F_SETLEASE && result == 0 && kernel_breaks_leases) {
        break_lease(fd);
    }
    return result;
}

#pragma GCC visibility pop

/* ---- allocations that fail ------------------------------------------------------------------ */

void fail_allocations(const char *name, int32_t (*function)(void))
{
    unsigned refused = 0;

    if (!allocations_can_fail()) {
        check(function() >= 0, "%s: %s", name, ds_accel_last_error());
        return;
    }
    for (unsigned long fail_at = 1; fail_at < 100000; fail_at++) {
        bool has_failed;
        long left;
        int32_t status;

        allocations_count(fail_at);
        status = function();
        has_failed = allocations_stop(&left) >= fail_at;
        refused += status < 0;
        if (left != 0 || (status < 0 && status != DS_ACCEL_ERR_NO_MEMORY) ||
            (status < 0 && !has_failed)) {
            check(false, "%s: allocation %lu: status %d, %ld blocks left: %s", name, fail_at,
                  (int)status, left, ds_accel_last_error());
            return;
        }
        if (!has_failed) {
            check(refused > 0, "%s: none of %lu failed allocations was reported", name,
                  fail_at - 1);
            return;
        }
    }
}
