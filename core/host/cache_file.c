/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reads and writes whole files of the store. A file is read only if it belongs to this user and no
 * other user may write to it; it is written under another name and renamed, so that a reader sees
 * the old file or the new one. Only ds_accel__cache_file_overwrite() writes a file in place.
 */
#include "base/file.h"
#include "base/text.h"
#include "base/trust.h"
#include "host/cache_disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Read the whole file into a new buffer; *size is the file's size before the read. If the file has
 * become shorter, or a read fails, *size is reduced, and the parser rejects the data.
 */
static int32_t read_data(int fd, size_t *size, char **data_out)
{
    char *data = malloc(*size + 1);
    size_t at = 0;

    if (data == NULL) {
        return ds_accel__no_memory();
    }
    while (at < *size) {
        ssize_t count = read(fd, data + at, *size - at);

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            break;
        }
        at += (size_t)count;
    }
    assert(at <= *size);
    *size = at;
    *data_out = data;
    return DS_ACCEL_OK;
}

/* True for a regular file of this user that no other user may write to. */
static bool is_own_file(int fd, struct stat *info)
{
    return fstat(fd, info) == 0 && S_ISREG(info->st_mode) &&
           info->st_uid == ds_accel__trusted_user() && (info->st_mode & 022) == 0;
}

int32_t ds_accel__cache_file_read(int directory_fd, const char *name, size_t limit_bytes,
                                  char **data_out, size_t *size_out, const char **problem_out)
{
    struct stat info;
    int32_t status = DS_ACCEL_OK;
    int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

    *data_out = NULL;
    *problem_out = NULL;
    if (fd < 0 && errno == ENOENT) {
        return DS_ACCEL_OK;
    }
    if (fd < 0 || !is_own_file(fd, &info)) {
        *problem_out = "it must be a file that this user owns and no other may write to";
    } else if (info.st_size > (off_t)limit_bytes) {
        *problem_out = "it is larger than the limit";
    } else {
        *size_out = (size_t)info.st_size;
        status = read_data(fd, size_out, data_out);
    }
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

static bool write_data(int fd, const char *data, size_t size)
{
    assert(fd >= 0);
    while (size > 0) {
        ssize_t count = write(fd, data, size);

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return false;
        }
        data += count;
        size -= (size_t)count;
    }
    return fsync(fd) == 0;
}

/* Replace the file, or an empty directory in its place, by the new file. */
static bool put_in_place(int directory, const char *from, const char *to)
{
    if (renameat(directory, from, directory, to) == 0) {
        return true;
    }
    return errno == EISDIR && unlinkat(directory, to, AT_REMOVEDIR) == 0 &&
           renameat(directory, from, directory, to) == 0;
}

/* Write a new file and rename it. False with errno on failure. */
static bool write_fresh(int directory, const char *fresh, const char *name,
                        const struct ds_accel__text *text)
{
    bool done;
    int error;
    int fd;

    assert(directory >= 0 && ds_accel__text_is_sound(text));
    if (!ds_accel__file_may_have(text->size_bytes)) {
        errno = EFBIG;
        return false;
    }
    fd = openat(directory, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return false;
    }
    done = write_data(fd, text->data, text->size_bytes);
    done = close(fd) == 0 && done && put_in_place(directory, fresh, name);
    if (!done) {
        error = errno;
        unlinkat(directory, fresh, 0);
        errno = error;
    }
    return done;
}

bool ds_accel__cache_file_write(int directory, const char *name, const struct ds_accel__text *text)
{
    char fresh[64];

    /* The longest name fits: a truncated name might not be unique. */
    assert(strlen(name) + 2 * sizeof(".-2147483648") <= sizeof(fresh));
    snprintf(fresh, sizeof(fresh), "%s.%d.%d", name, (int)getpid(), (int)gettid());
    return write_fresh(directory, fresh, name, text);
}

bool ds_accel__cache_file_overwrite(int directory, const char *name,
                                    const struct ds_accel__text *text)
{
    int fd = openat(directory, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat info;
    bool done;

    if (fd < 0) {
        return false;
    }
    done = is_own_file(fd, &info) && (off_t)text->size_bytes <= info.st_size &&
           write_data(fd, text->data, text->size_bytes) &&
           ftruncate(fd, (off_t)text->size_bytes) == 0;
    return close(fd) == 0 && done;
}
