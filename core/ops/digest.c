/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Digests of the files of compilers and of the system's headers. The contents count, because the
 * key of an op must be the same on all hosts, and because packages with equal versions differ.
 * Reading 35 MB of cc1 takes longer than a small op takes to compile, and 3 MB of headers longer
 * than to load one, so digests are remembered.
 *
 * The times of a source file are never believed: tools restore them, and an editor can write twice
 * within one tick. A remembered digest relies on more: device, inode, size, time of modification
 * and time of change. No program can set the time of change; only a clock that is set back exactly
 * can repeat it. Compilers and headers are installed by package managers, which rename a new file
 * (another inode) to the old name. A file that was changed less than two seconds before it is read,
 * or in the future, is not remembered, as its next change might have the same time; nor is one of a
 * file system in memory, which can change with the same times (timed.c, also for what remains).
 */
#include "ops/digest.h"
#include "base/fork.h"
#include "base/text.h"
#include "base/trust.h"
#include "ops/timed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LIMIT 4096u /* files: compilers of ten files each, and a few hundred headers for each op */
#define SETTLED_SECONDS 2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static json_t *known; /* guarded by lock: digests by what identifies the file; NULL: none */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void renew_in_children(void)
{
    ds_accel__fork_renew(&lock);
}

static void take_lock(void)
{
    pthread_once(&once, renew_in_children);
    pthread_mutex_lock(&lock);
}

static void write_key(const struct stat *info, char key[DS_ACCEL__FILE_KEY_SIZE])
{
    snprintf(key, DS_ACCEL__FILE_KEY_SIZE,
             "%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%" PRId64 ".%09ld:%" PRId64 ".%09ld",
             (uint64_t)info->st_dev, (uint64_t)info->st_ino, (uint64_t)info->st_size,
             (int64_t)info->st_mtim.tv_sec, info->st_mtim.tv_nsec, (int64_t)info->st_ctim.tv_sec,
             info->st_ctim.tv_nsec);
}

static bool find(const char *key, char digest_out[65])
{
    const char *digest;

    take_lock();
    digest = json_string_value(json_object_get(known, key));
    if (digest != NULL) {
        memcpy(digest_out, digest, 65);
    }
    pthread_mutex_unlock(&lock);
    return digest != NULL;
}

/* Without memory or beyond the limit, the file is read again the next time. */
static void remember(const char *key, const char *digest)
{
    take_lock();
    if (known == NULL) {
        known = json_object();
    }
    if (json_object_size(known) < LIMIT) {
        json_object_set_new(known, key, json_string(digest));
    }
    pthread_mutex_unlock(&lock);
}

static bool is_settled(const struct stat *info)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return info->st_ctim.tv_sec + SETTLED_SECONDS < now.tv_sec;
}

bool ds_accel__file_key(const char *path, char key_out[DS_ACCEL__FILE_KEY_SIZE])
{
    struct stat info;

    if (stat(path, &info) != 0 || (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) ||
        !is_settled(&info)) {
        return false;
    }
    if (S_ISREG(info.st_mode) && !ds_accel__is_timed_path(path)) {
        return false;
    }
    write_key(&info, key_out);
    return true;
}

static int32_t read_digest(const char *path, int fd, const struct stat *before, char digest_out[65])
{
    char key[DS_ACCEL__FILE_KEY_SIZE];
    char after_key[DS_ACCEL__FILE_KEY_SIZE];
    struct stat after;
    const char *cause = NULL;

    write_key(before, key);
    if (find(key, digest_out)) {
        return DS_ACCEL_OK;
    }
    if (ds_accel__trust_hash(fd, digest_out, &cause) < 0) {
        return ds_accel__error(DS_ACCEL_ERR_IO, "%s: %s", path, cause);
    }
    if (fstat(fd, &after) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_IO, "%s: %s", path, strerror(errno));
    }
    write_key(&after, after_key);
    if (strcmp(key, after_key) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_IO, "%s was changed while it was read", path);
    }
    if (is_settled(before) && ds_accel__is_timed(fd)) {
        remember(key, digest_out);
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel__digest_file(const char *path, char digest_out[65])
{
    struct stat info;
    int32_t status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0) {
        return ds_accel__error(errno == ENOENT ? DS_ACCEL_ERR_NOT_FOUND : DS_ACCEL_ERR_IO, "%s: %s",
                               path, strerror(errno));
    }
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        status = ds_accel__error(DS_ACCEL_ERR_IO, "%s is not a regular file", path);
    } else {
        status = read_digest(path, fd, &info, digest_out);
    }
    close(fd);
    return status;
}

json_t *ds_accel__digests_save(void)
{
    json_t *copy;

    take_lock();
    copy = known != NULL ? json_deep_copy(known) : json_object();
    pthread_mutex_unlock(&lock);
    return copy;
}

void ds_accel__digests_restore(const json_t *digests)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)digests, key, value)
    {
        const char *digest = json_string_value(value);
        char ignored[65];

        if (digest != NULL && strlen(digest) == 64 &&
            digest[strspn(digest, "0123456789abcdef")] == '\0' &&
            key[strspn(key, "0123456789:.-")] == '\0' && strlen(key) < DS_ACCEL__FILE_KEY_SIZE &&
            !find(key, ignored)) {
            remember(key, digest);
        }
    }
}

size_t ds_accel__digests_count(void)
{
    size_t count;

    take_lock();
    count = json_object_size(known);
    pthread_mutex_unlock(&lock);
    return count;
}

size_t ds_accel__digests_forget(void)
{
    size_t count;

    take_lock();
    count = json_object_size(known);
    json_decref(known);
    known = NULL;
    pthread_mutex_unlock(&lock);
    return count;
}
