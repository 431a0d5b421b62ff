/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Reading whole files, up to a size limit and without blocking on a pipe; listing directories. */
#include "base/file.h"
#include "base/text.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int32_t fail_errno(int error, const char **cause_out)
{
    *cause_out = strerror(error);
    return error == ENOENT || error == ENOTDIR ? DS_ACCEL_ERR_NOT_FOUND : DS_ACCEL_ERR_IO;
}

/* Read to the end of the file. Grow the buffer: fstat() reports size 0 for files of /proc. */
static int32_t read_all(int fd, size_t limit_bytes, char **data_out, size_t *size_out,
                        const char **cause_out)
{
    size_t capacity = 4096;
    size_t size = 0;
    char *data = malloc(capacity);

    while (data != NULL) {
        ssize_t count;

        assert(size + 1 < capacity); /* a read of 0 bytes would look like the end of the file */
        count = read(fd, data + size, capacity - size - 1);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            int error = errno;

            free(data);
            return fail_errno(error, cause_out);
        }
        size += (size_t)count;
        if (size > limit_bytes) {
            free(data);
            *cause_out = "the file is larger than the limit";
            return DS_ACCEL_ERR_IO;
        }
        if (count == 0) {
            data[size] = '\0';
            *data_out = data;
            *size_out = size;
            return DS_ACCEL_OK;
        }
        if (capacity - size < 2) {
            char *larger = realloc(data, capacity * 2);

            if (larger == NULL) {
                free(data);
                break;
            }
            data = larger;
            capacity *= 2;
        }
    }
    *cause_out = "host memory is exhausted";
    return ds_accel__no_memory();
}

int32_t ds_accel__file_read(const char *path, size_t limit_bytes, char **data_out, size_t *size_out,
                            const char **cause_out)
{
    struct stat info;
    int32_t status;
    int fd;

    *cause_out = "";
    /* O_NONBLOCK, because opening a FIFO that has no writer would otherwise hang. */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return fail_errno(errno, cause_out);
    }
    if (fstat(fd, &info) != 0) {
        status = fail_errno(errno, cause_out);
    } else if (!S_ISREG(info.st_mode)) {
        *cause_out = S_ISDIR(info.st_mode) ? "it is a directory" : "it is not a regular file";
        status = DS_ACCEL_ERR_IO;
    } else if (info.st_size > 0 && (uintmax_t)info.st_size > limit_bytes) {
        *cause_out = "the file is larger than the limit";
        status = DS_ACCEL_ERR_IO;
    } else {
        status = read_all(fd, limit_bytes, data_out, size_out, cause_out);
    }
    close(fd);
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int32_t collect(DIR *dir, bool (*filter)(const char *name), char ***names, size_t *count)
{
    const struct dirent *entry;
    size_t room = 0;

    while ((entry = readdir(dir)) != NULL) {
        char **larger;

        if (!filter(entry->d_name)) {
            continue;
        }
        assert(*count <= room);
        if (*count == room) {
            room = room != 0 ? 2 * room : 16;
            larger = realloc(*names, room * sizeof(**names));
            if (larger == NULL) {
                return ds_accel__no_memory();
            }
            *names = larger;
        }
        (*names)[*count] = strdup(entry->d_name);
        if ((*names)[*count] == NULL) {
            return ds_accel__no_memory();
        }
        (*count)++;
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel__dir_list(const char *path, bool (*filter)(const char *name), char ***names_out,
                           size_t *count_out, const char **cause_out)
{
    char **names = NULL;
    size_t count = 0;
    int32_t status;
    DIR *dir;

    *names_out = NULL;
    *count_out = 0;
    *cause_out = "";
    errno = 0;
    dir = opendir(path);
    if (dir == NULL) {
        int error = errno;

        if (error == ENOMEM) {
            return ds_accel__no_memory();
        }
        /* ENOTDIR without an existing path: a component before the last one is a file, so the
         * directory does not exist. */
        return error == ENOENT || (error == ENOTDIR && access(path, F_OK) != 0)
                   ? DS_ACCEL_OK
                   : fail_errno(error, cause_out);
    }
    status = collect(dir, filter, &names, &count);
    closedir(dir);
    if (status < 0) {
        ds_accel__names_free(names, count);
        return status;
    }
    if (count > 1) {
        qsort(names, count, sizeof(*names), compare_names);
    }
    *names_out = names;
    *count_out = count;
    return DS_ACCEL_OK;
}

void ds_accel__names_free(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
}

bool ds_accel__file_may_have(size_t size_bytes)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           size_bytes <= limit.rlim_cur;
}
