/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * One process of a host builds an op, and the others wait, by a lock of a file that only this host
 * uses. The lock's file begins with the signature of its holder (host/cache_lock.c). The message of
 * a failure begins with the boot and the time of ds_accel__boot_ms(), because the file stays, and a
 * directory that DS_ACCEL_CACHE_DIR names may be shared with other hosts.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "host/cache_disk.h"
#include "ops/manifest.h"
#include "ops/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Longer than nvcc needs for an op on a slow machine. */
#define LOCK_WAIT_MS (20u * 60u * 1000u)
#define MESSAGE_OFFSET 64
#define HEAD_LIMIT_BYTES 256u /* of what precedes the text: boot, digest, time */
#define TIME_DIGITS 20

int ds_accel__store_lock(const struct ds_accel__stores *stores, const char *recipe_digest,
                         const struct ds_accel__log *log)
{
    char name[sizeof("ops-.lock") + DS_ACCEL__KEY_DIGITS];
    char problem[512];
    pid_t stopped = 0;
    int error;
    int directory = stores->local != NULL
                        ? ds_accel__cache_directory_open(stores->local, stores->is_local_private,
                                                         true, &error, problem, sizeof(problem))
                        : -1;
    int fd;

    if (directory < 0) {
        return -1;
    }
    snprintf(name, sizeof(name), "ops-%.*s.lock", DS_ACCEL__KEY_DIGITS, recipe_digest);
    fd = openat(directory, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    close(directory);
    if (fd >= 0 && !ds_accel__cache_lock_within(fd, LOCK_WAIT_MS, &stopped)) {
        if (stopped != 0) {
            ds_accel__log(
                log, "ops", DS_ACCEL_LOG_WARN,
                "process %d, which builds the op, is stopped: this process builds it, too",
                (int)stopped);
        }
        close(fd);
        fd = -1;
    }
    return fd;
}

void ds_accel__store_unlock(int lock_fd)
{
    if (lock_fd >= 0) {
        ds_accel__cache_lock_release(lock_fd);
        close(lock_fd);
    }
}

/* The head is written last: without it, there is no message. */
static bool write_message(int lock_fd, const char *head, const char *message)
{
    size_t head_size = strlen(head);
    size_t size = strlen(message);

    return ds_accel__file_may_have(MESSAGE_OFFSET + head_size + size) &&
           pwrite(lock_fd, message, size, (off_t)(MESSAGE_OFFSET + head_size)) == (ssize_t)size &&
           pwrite(lock_fd, head, head_size, MESSAGE_OFFSET) == (ssize_t)head_size;
}

void ds_accel__store_lock_fail(int lock_fd, const char *toolchain_digest, const char *message)
{
    char *boot = strlen(message) <= DS_ACCEL__STORE_MESSAGE_BYTES ? ds_accel__store_boot() : NULL;
    char *head = boot != NULL ? ds_accel__format("%s%s%0*" PRIu64, boot, toolchain_digest,
                                                 TIME_DIGITS, ds_accel__boot_ms())
                              : NULL;

    if (lock_fd >= 0 && head != NULL && ftruncate(lock_fd, MESSAGE_OFFSET) == 0 &&
        !write_message(lock_fd, head, message)) {
        ftruncate(lock_fd, MESSAGE_OFFSET);
    }
    free(head);
    free(boot);
}

/* Read what is behind the signature, as a new string; NULL: memory is exhausted. */
static char *read_message(int lock_fd)
{
    struct stat info;
    size_t size = fstat(lock_fd, &info) == 0 && info.st_size > MESSAGE_OFFSET
                      ? (size_t)info.st_size - MESSAGE_OFFSET
                      : 0;
    size_t at = 0;
    ssize_t count = 1;
    char *data;

    if (size > HEAD_LIMIT_BYTES + DS_ACCEL__STORE_MESSAGE_BYTES) {
        size = 0; /* of another program */
    }
    data = malloc(size + 1);
    while (data != NULL && at < size && count > 0) {
        count = pread(lock_fd, data + at, size - at, (off_t)(MESSAGE_OFFSET + at));
        at += count > 0 ? (size_t)count : 0;
    }
    if (data != NULL) {
        data[at] = '\0';
    }
    return data;
}

/*
 * The message in the data of the file, if it was left in this boot since then, for the same
 * compilers; else NULL.
 */
static const char *find_message(const char *data, const char *boot, const char *toolchain_digest,
                                uint64_t since_ms)
{
    char digits[TIME_DIGITS + 1];

    if (strncmp(data, boot, strlen(boot)) != 0) {
        return NULL;
    }
    data += strlen(boot);
    if (strncmp(data, toolchain_digest, strlen(toolchain_digest)) != 0) {
        return NULL;
    }
    data += strlen(toolchain_digest);
    if (strspn(data, "0123456789") < TIME_DIGITS) {
        return NULL;
    }
    snprintf(digits, sizeof(digits), "%s", data);
    /* One of the same millisecond may be that of the build before. */
    return strtoull(digits, NULL, 10) > since_ms ? data + TIME_DIGITS : NULL;
}

int32_t ds_accel__store_lock_failure(int lock_fd, const char *toolchain_digest, uint64_t since_ms,
                                     char **message_out)
{
    const char *message;
    char *boot;
    char *data;

    *message_out = NULL;
    if (lock_fd < 0) {
        return DS_ACCEL_OK;
    }
    boot = ds_accel__store_boot();
    data = read_message(lock_fd);
    if (boot == NULL || data == NULL) {
        free(boot);
        free(data);
        return ds_accel__no_memory();
    }
    message = find_message(data, boot, toolchain_digest, since_ms);
    if (message != NULL) {
        memmove(data, message, strlen(message) + 1);
        *message_out = data;
    } else {
        free(data);
    }
    free(boot);
    return DS_ACCEL_OK;
}
