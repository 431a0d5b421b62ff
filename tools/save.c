/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Writes a file completely or not at all: data is written to a temporary file in the same
 * directory, which then replaces the file. Only a pipe, a terminal or another special file is
 * written directly. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_all(int fd, const char *data, size_t size_bytes)
{
    while (size_bytes > 0) {
        ssize_t written = write(fd, data, size_bytes);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        data += written;
        size_bytes -= (size_t)written;
    }
    return true;
}

/* Write to a file that cannot be replaced: a pipe, a terminal, /dev/null. */
static bool write_into(const char *path, const char *data, size_t size_bytes)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write_all(fd, data, size_bytes);

    if (fd >= 0 && close(fd) != 0) {
        written = false;
    }
    return written;
}

/* Create a temporary file with this mode and rename it to path, which replaces an existing file. */
static bool replace(const char *path, mode_t mode, const char *data, size_t size_bytes)
{
    char beside[PATH_MAX];
    int length = snprintf(beside, sizeof(beside), "%s.XXXXXX", path);
    bool written;
    int problem;
    int fd;

    if (length < 0 || (size_t)length >= sizeof(beside)) {
        errno = ENAMETOOLONG;
        return false;
    }
    fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    written = write_all(fd, data, size_bytes) && fchmod(fd, mode) == 0 && fsync(fd) == 0;
    problem = errno;
    if (close(fd) != 0 && written) {
        written = false;
        problem = errno;
    }
    if (written && rename(beside, path) == 0) {
        return true;
    }
    problem = written ? errno : problem;
    unlink(beside);
    errno = problem;
    return false;
}

bool tool_save(const char *path, const char *data, size_t size_bytes)
{
    char target[PATH_MAX];
    struct stat status;
    mode_t mask = umask(0);
    mode_t mode = 0666 & ~mask;
    bool written;

    umask(mask);
    if (stat(path, &status) != 0) {
        written = errno == ENOENT && replace(path, mode, data, size_bytes);
    } else if (!S_ISREG(status.st_mode)) {
        written = write_into(path, data, size_bytes);
    } else {
        /* Replace the target of a symbolic link, not the link. */
        written = realpath(path, target) != NULL &&
                  replace(target, status.st_mode & 07777, data, size_bytes);
    }
    if (!written) {
        tool_say("%s: %s", path, strerror(errno));
    }
    return written;
}
