/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Waiting for the lock of the store, and its holder's signature in the lock's file: the process ID
 * and the PID namespace, since processes of several containers may use one directory. The holder
 * removes it before it unlocks, because it may be stopped later, for example by its leak checker.
 */
#include "base/clock.h"
#include "base/file.h"
#include "host/cache_disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SIGNATURE_BYTES 32
/* A tracer such as strace stops a process again and again, but for moments; a debugger for long. */
#define TRACED_MS 2000u

/* The number of this process's PID namespace; 0: unknown, or /proc is that of another one. */
static unsigned long long pid_namespace(void)
{
    char self[16] = "";
    struct stat info;

    if (readlink("/proc/self", self, sizeof(self) - 1) <= 0 ||
        strtol(self, NULL, 10) != (long)getpid() || stat("/proc/self/ns/pid", &info) != 0) {
        return 0;
    }
    return (unsigned long long)info.st_ino;
}

/* Write a line of this size, so that each overwrites the previous one completely. Overwriting
 * existing bytes needs no disk space. If the disk is full and the file is still empty, nothing is
 * written, the holder stays unknown, and the others wait up to their limit. */
static void write_signature(int fd, const char *text)
{
    char line[SIGNATURE_BYTES + 1];

    snprintf(line, sizeof(line), "%-*.*s\n", SIGNATURE_BYTES - 1, SIGNATURE_BYTES - 1, text);
    assert(strlen(line) == SIGNATURE_BYTES);
    if (!ds_accel__file_may_have(SIGNATURE_BYTES) ||
        pwrite(fd, line, SIGNATURE_BYTES, 0) != SIGNATURE_BYTES) {
        return;
    }
}

static void sign_lock(int fd)
{
    char text[SIGNATURE_BYTES];

    snprintf(text, sizeof(text), "%d %llu", (int)getpid(), pid_namespace());
    write_signature(fd, text);
}

/* Return the process that holds the lock; 0: it is unknown, or of another PID namespace. */
static pid_t read_signature(int fd)
{
    char text[SIGNATURE_BYTES + 1] = "";
    unsigned long long space;
    int pid;

    if (pread(fd, text, SIGNATURE_BYTES, 0) != SIGNATURE_BYTES ||
        sscanf(text, "%d %llu", &pid, &space) != 2 || pid <= 0 || space == 0 ||
        space != pid_namespace()) {
        return 0;
    }
    return (pid_t)pid;
}

/* 'T': the process is stopped by a signal (Ctrl-Z); 't': by a tracer; 0: it is not. */
static char stopped_by(pid_t pid)
{
    char path[32];
    char text[512] = ""; /* large enough: the process name has at most 64 bytes */
    const char *state;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return 0;
    }
    if (read(fd, text, sizeof(text) - 1) <= 0) {
        text[0] = '\0';
    }
    close(fd);
    state = strrchr(text, ')');
    return state != NULL && state[1] == ' ' && (state[2] == 'T' || state[2] == 't') ? state[2] : 0;
}

void ds_accel__cache_lock_release(int fd)
{
    write_signature(fd, "");
    flock(fd, LOCK_UN);
}

bool ds_accel__cache_lock_within(int fd, uint64_t limit_ms, pid_t *stopped_out)
{
    uint64_t deadline = ds_accel__boot_ms() + limit_ms;
    long pause_ns = 500000;
    uint64_t stopped_ms = 0;
    pid_t stopped = 0;

    assert(fd >= 0);
    *stopped_out = 0;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        uint64_t now = ds_accel__boot_ms();
        pid_t holder;
        char by;

        if ((errno != EWOULDBLOCK && errno != EINTR) || now >= deadline) {
            return false;
        }
        holder = read_signature(fd);
        by = stopped_by(holder);
        if (by == 0) {
            stopped = 0;
        } else if (stopped != holder) {
            stopped = holder;
            stopped_ms = now;
        } else if (by == 'T' || now - stopped_ms >= TRACED_MS) {
            *stopped_out = holder;
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
        pause_ns = pause_ns < 20000000 ? 2 * pause_ns : pause_ns;
    }
    sign_lock(fd);
    return true;
}
