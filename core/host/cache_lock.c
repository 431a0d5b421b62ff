/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Waiting for the lock of the store, and the process ID of its holder. */
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
#include <time.h>
#include <unistd.h>

#define SIGNATURE_BYTES 16

/*
 * Write the process ID of the lock's holder, so that a waiting process can check whether the holder
 * is stopped. Overwriting existing bytes needs no disk space. If the disk is full and the file is
 * still empty, the ID is not written, and the holder stays unknown.
 */
static void sign_lock(int fd)
{
    char text[SIGNATURE_BYTES + 1];

    snprintf(text, sizeof(text), "%-*d\n", SIGNATURE_BYTES - 1, (int)getpid());
    /* All signatures have this size, so that each overwrites the previous one completely. */
    assert(strlen(text) == SIGNATURE_BYTES);
    if (!ds_accel__file_may_have(SIGNATURE_BYTES) ||
        pwrite(fd, text, SIGNATURE_BYTES, 0) != SIGNATURE_BYTES) {
        return; /* waiters then wait up to their limit */
    }
}

/* Return the process that signed the lock last; 0 if there is none. */
static pid_t read_signature(int fd)
{
    char text[SIGNATURE_BYTES + 1] = "";
    long pid = pread(fd, text, SIGNATURE_BYTES, 0) == SIGNATURE_BYTES ? strtol(text, NULL, 10) : 0;

    return pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

/* True if the process is stopped by a signal (Ctrl-Z) or by a debugger. */
static bool is_stopped(pid_t pid)
{
    char path[32];
    char text[512] = ""; /* large enough: the process name has at most 64 bytes */
    const char *state;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return false;
    }
    if (read(fd, text, sizeof(text) - 1) <= 0) {
        text[0] = '\0';
    }
    close(fd);
    state = strrchr(text, ')');
    return state != NULL && state[1] == ' ' && (state[2] == 'T' || state[2] == 't');
}

bool ds_accel__cache_lock_within(int fd, uint64_t limit_ms, pid_t *stopped_out)
{
    uint64_t deadline = ds_accel__boot_ms() + limit_ms;
    long pause_ns = 500000;
    pid_t stopped = 0;

    assert(fd >= 0);
    *stopped_out = 0;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        pid_t holder;

        if ((errno != EWOULDBLOCK && errno != EINTR) || ds_accel__boot_ms() >= deadline) {
            return false;
        }
        holder = read_signature(fd);
        if (!is_stopped(holder)) {
            stopped = 0;
        } else if (stopped == holder) {
            *stopped_out = holder;
            return false;
        } else {
            stopped = holder;
        }
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
        pause_ns = pause_ns < 20000000 ? 2 * pause_ns : pause_ns;
    }
    sign_lock(fd);
    return true;
}
