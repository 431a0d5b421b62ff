/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Writes a file completely or not at all: data is written to a temporary file in the same
 * directory, which then replaces the file. Only a pipe, a terminal or another special file is
 * written directly, and so is a file that is open as stdout, stderr or another named descriptor:
 * replacing that would lose what is in it, and what is written later. */
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

/* Create a temporary file with this mode and rename it to path, which replaces an existing file.
 * owner: a file whose owner and group it gets; NULL: this process's. */
static bool replace(const char *path, mode_t mode, const struct stat *owner, const char *data,
                    size_t size_bytes)
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
    written = write_all(fd, data, size_bytes) &&
              (owner == NULL || fchown(fd, owner->st_uid, owner->st_gid) == 0) &&
              fchmod(fd, mode) == 0 && fsync(fd) == 0;
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

/* The descriptor that a path such as /dev/stdout or /dev/fd/3 names; -1: it names none. */
static int named_descriptor(const char *path)
{
    static const char *const directories[] = {"/dev/fd/", "/proc/self/fd/"};

    if (strcmp(path, "/dev/stdout") == 0) {
        return STDOUT_FILENO;
    }
    if (strcmp(path, "/dev/stderr") == 0) {
        return STDERR_FILENO;
    }
    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
        size_t length = strlen(directories[i]);
        const char *number = path + length;

        if (strncmp(path, directories[i], length) == 0 && number[0] != '\0' && strlen(number) < 7 &&
            number[strspn(number, "0123456789")] == '\0') {
            return atoi(number);
        }
    }
    return -1;
}

/* The descriptor to write to instead of a path: one that it names, or stdout or stderr if they have
 * the same file. -1: none. */
static int find_descriptor(const char *path)
{
    int descriptor = named_descriptor(path);
    struct stat file;
    struct stat opened;

    for (int fd = STDOUT_FILENO; descriptor < 0 && fd <= STDERR_FILENO; fd++) {
        if (stat(path, &file) == 0 && S_ISREG(file.st_mode) && fstat(fd, &opened) == 0 &&
            file.st_dev == opened.st_dev && file.st_ino == opened.st_ino) {
            return fd;
        }
    }
    return descriptor;
}

/* Whether a file can be created or replaced: its directory decides. Otherwise sets errno. */
static bool can_replace(const char *path)
{
    char target[PATH_MAX];
    char *slash;

    if (path[0] == '\0' || strlen(path) >= sizeof(target)) {
        errno = path[0] == '\0' ? ENOENT : ENAMETOOLONG;
        return false;
    }
    if (realpath(path, target) == NULL) {
        memcpy(target, path, strlen(path) + 1);
    }
    slash = strrchr(target, '/');
    if (slash == NULL) {
        return access(".", W_OK | X_OK) == 0;
    }
    slash[slash == target] = '\0';
    return access(target, W_OK | X_OK) == 0;
}

bool tool_can_save(const char *path)
{
    struct stat status;
    int descriptor = find_descriptor(path);
    bool can;

    if (descriptor >= 0) {
        int flags = fcntl(descriptor, F_GETFL);

        can = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
        errno = EBADF;
    } else if (stat(path, &status) != 0) {
        can = errno == ENOENT && can_replace(path);
    } else if (S_ISREG(status.st_mode)) {
        can = can_replace(path);
    } else {
        can = !S_ISDIR(status.st_mode) && access(path, W_OK) == 0;
        errno = S_ISDIR(status.st_mode) ? EISDIR : errno;
    }
    if (!can) {
        tool_say("%s: %s", path, strerror(errno));
    }
    return can;
}

bool tool_save(const char *path, const char *data, size_t size_bytes)
{
    char target[PATH_MAX];
    struct stat status;
    mode_t mask = umask(0);
    mode_t mode = 0666 & ~mask;
    int descriptor = find_descriptor(path);
    bool written;

    umask(mask);
    if (descriptor >= 0) {
        fflush(NULL);
        written = write_all(descriptor, data, size_bytes);
    } else if (stat(path, &status) != 0) {
        written = errno == ENOENT && replace(path, mode, NULL, data, size_bytes);
    } else if (!S_ISREG(status.st_mode)) {
        written = write_into(path, data, size_bytes);
    } else {
        /* Replace the target of a symbolic link, not the link. */
        written = realpath(path, target) != NULL &&
                  replace(target, status.st_mode & 07777, NULL, data, size_bytes);
    }
    if (!written) {
        tool_say("%s: %s", path, strerror(errno));
    }
    return written;
}

/* Whether a path is no symbolic link, or one to something with the same owner. */
static bool leads_to_same_owner(const char *path)
{
    struct stat link;
    struct stat target;

    if (lstat(path, &link) != 0 || !S_ISLNK(link.st_mode)) {
        return true;
    }
    return stat(path, &target) == 0 && target.st_uid == link.st_uid;
}

/* Find the file that a path leads to, whose last component may not exist. False: errno is set. */
static bool resolve(const char *path, const char *directory, char *target)
{
    const char *slash = strrchr(path, '/');
    size_t length;

    if (realpath(path, target) != NULL) {
        return true;
    }
    if (errno != ENOENT || realpath(directory, target) == NULL) {
        return false;
    }
    length = strlen(target);
    if (snprintf(target + length, PATH_MAX - length, "/%s", slash != NULL ? slash + 1 : path) >=
        (int)(PATH_MAX - length)) {
        errno = ENAMETOOLONG;
        return false;
    }
    return true;
}

/* Find the file that may be replaced. *exists_out: there is one, with this status. Returns -1, or
 * the exit code. */
static int find_owned(const char *path, char *target, bool *exists_out, struct stat *status_out)
{
    char directory[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    uid_t user = geteuid();

    if (slash != NULL && (size_t)(slash - path) + 1 < sizeof(directory)) {
        memcpy(directory, path, (size_t)(slash - path) + 1);
        directory[slash == path ? 1 : slash - path] = '\0';
    }
    if (!leads_to_same_owner(path) || !leads_to_same_owner(directory)) {
        tool_say("%s: a symbolic link leads nowhere, or to what another user owns", path);
        return EXIT_REFUSED;
    }
    if (!resolve(path, directory, target)) {
        tool_say("%s: %s", path, strerror(errno));
        return EXIT_PROBLEMS;
    }
    *exists_out = lstat(target, status_out) == 0;
    if (*exists_out && !S_ISREG(status_out->st_mode)) {
        tool_say("%s: it is not a regular file", path);
        return EXIT_PROBLEMS;
    }
    if (*exists_out && user != 0 && status_out->st_uid != user) {
        tool_say("%s: it belongs to another user", path);
        return EXIT_REFUSED;
    }
    return -1;
}

int tool_save_owned(const char *path, const char *data, size_t size_bytes)
{
    char target[PATH_MAX];
    struct stat status;
    bool exists = false;
    mode_t mask = umask(0);
    int code = find_owned(path, target, &exists, &status);

    umask(mask);
    if (code < 0 && !replace(target, exists ? status.st_mode & 07777 : 0666 & ~mask,
                             exists ? &status : NULL, data, size_bytes)) {
        tool_say("%s: %s", path, strerror(errno));
        code = EXIT_PROBLEMS;
    }
    return code;
}

int tool_check_owned(const char *path)
{
    char directory[PATH_MAX];
    char target[PATH_MAX];
    struct stat status;
    bool exists = false;
    char *slash;
    int code;

    snprintf(directory, sizeof(directory), "%s", path);
    slash = strrchr(directory, '/');
    if (slash != NULL && slash != directory) {
        *slash = '\0';
        if (access(directory, F_OK) != 0 && errno == ENOENT && lstat(directory, &status) != 0) {
            return -1;
        }
    }
    code = find_owned(path, target, &exists, &status);
    if (code < 0 && !can_replace(target)) {
        tool_say("%s: %s", path, strerror(errno));
        code = EXIT_PROBLEMS;
    }
    return code;
}
