/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Functions of the C library that the program `death` replaces: mkdir() and rmdir(), so that a tree
 * of ordinary files behaves as the kernel's control groups, fcntl(), so that a file is opened while
 * a lease of it is held, and the allocation functions, so that each allocation can fail. A
 * sanitizer has its own allocation functions, so those are then left alone.
 */
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

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
void fail_allocations(const char *name, int32_t (*function)(void))
{
    check(function() >= 0, "%s: %s", name, ds_accel_last_error());
}
#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void __libc_free(void *pointer);

static bool counting;
static unsigned long calls;
static unsigned long fail_at; /* number of the allocation that fails */
static long live;             /* blocks allocated minus blocks freed while counting */

static bool must_fail(void)
{
    if (counting && ++calls == fail_at) {
        errno = ENOMEM;
        return true;
    }
    return false;
}

void *malloc(size_t size)
{
    void *block = must_fail() ? NULL : __libc_malloc(size);

    live += counting && block != NULL;
    return block;
}

void *calloc(size_t count, size_t size)
{
    void *block = must_fail() ? NULL : __libc_calloc(count, size);

    live += counting && block != NULL;
    return block;
}

void *realloc(void *pointer, size_t size)
{
    void *block = must_fail() ? NULL : __libc_realloc(pointer, size);

    live += counting && block != NULL && pointer == NULL;
    return block;
}

void free(void *pointer)
{
    live -= counting && pointer != NULL;
    __libc_free(pointer);
}

void fail_allocations(const char *name, int32_t (*function)(void))
{
    unsigned refused = 0;

    for (fail_at = 1; fail_at < 100000; fail_at++) {
        bool has_failed;
        int32_t status;

        calls = 0;
        live = 0;
        counting = true;
        status = function();
        counting = false;
        has_failed = calls >= fail_at;
        refused += status < 0;
        if (live != 0 || (status < 0 && status != DS_ACCEL_ERR_NO_MEMORY) ||
            (status < 0 && !has_failed)) {
            check(false, "%s: allocation %lu: status %d, %ld blocks left: %s", name, fail_at,
                  (int)status, live, ds_accel_last_error());
            return;
        }
        if (!has_failed) {
            check(refused > 0, "%s: none of %lu failed allocations was reported", name,
                  fail_at - 1);
            return;
        }
    }
}
#endif

#pragma GCC visibility pop
