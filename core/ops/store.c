/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A cache of ops is a directory that several hosts may share and several processes write:
 *
 *     cpu_adam.<recipe>.json     the manifest: which keys there are, and from what
 *     cpu_adam.<key>.so          a file, complete at any time
 *     .build-<boot>-<pid>-<n>/   where one process builds; its file "lock" is locked
 *
 * This file has the names, reads manifests, and checks whether a cache can be used. store_build.c
 * changes caches, and store_lock.c lets one process of a host build at a time.
 */
#include "ops/store.h"
#include "base/file.h"
#include "base/text.h"
#include "base/trust.h"
#include "host/cache_disk.h"
#include "ops/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MANIFEST_LIMIT_BYTES ((size_t)8 << 20)

/* ---- names ----------------------------------------------------------------------------------- */

/* The file's name begins with the kernel's, in which a slash becomes '-'. */
static char *file_name(const char *kernel, const char *digest, const char *suffix)
{
    char *name = ds_accel__format("%s.%.*s.%s", kernel, DS_ACCEL__KEY_DIGITS, digest, suffix);
    char *slash = name != NULL ? strchr(name, '/') : NULL;

    if (slash != NULL) {
        *slash = '-';
    }
    return name;
}

char *ds_accel__store_file(const char *store, const char *kernel, const char *key)
{
    char *name = file_name(kernel, key, "so");
    char *path = name != NULL ? ds_accel__join(store, '/', name) : NULL;

    free(name);
    return path;
}

char *ds_accel__store_manifest(const char *store, const char *kernel, const char *recipe_digest)
{
    char *name = file_name(kernel, recipe_digest, "json");
    char *path = name != NULL ? ds_accel__join(store, '/', name) : NULL;

    free(name);
    return path;
}

char *ds_accel__store_boot(void)
{
    const char *cause;
    char *text = NULL;
    size_t size = 0;
    char *name;
    int32_t status =
        ds_accel__file_read("/proc/sys/kernel/random/boot_id", 64, &text, &size, &cause);

    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        return NULL;
    }
    /* A host without this file uses its own name instead. */
    if (status < 0) {
        text = calloc(1, 65);
        if (text == NULL || gethostname(text, 64) != 0) {
            free(text);
            return NULL;
        }
    }
    for (char *c = text; *c != '\0'; c++) {
        *c = strchr("/-\n", *c) != NULL ? '_' : *c;
    }
    name = ds_accel__format(DS_ACCEL__BUILD_PREFIX "%.36s-", text);
    free(text);
    return name;
}

/* ---- manifests ------------------------------------------------------------------------------- */

/* Read an open file. *data_out is NULL if it is too large or cannot be read. */
static int32_t read_file(int fd, const struct stat *info, char **data_out, size_t *size_out)
{
    size_t size = (size_t)info->st_size;
    size_t at = 0;
    ssize_t count = 1;

    *data_out = NULL;
    if (info->st_size < 0 || size > MANIFEST_LIMIT_BYTES) {
        return DS_ACCEL_OK;
    }
    *data_out = malloc(size + 1);
    if (*data_out == NULL) {
        return ds_accel__no_memory();
    }
    while (at < size && count > 0) {
        count = pread(fd, *data_out + at, size - at, (off_t)at);
        if (count < 0 && errno == EINTR) {
            count = 1;
        } else if (count > 0) {
            at += (size_t)count;
        }
    }
    *size_out = at;
    return DS_ACCEL_OK;
}

/* *again_out: the file was replaced by another host while it was read. */
static int32_t read_once(const char *path, const char *recipe_digest, json_t **manifest_out,
                         bool *again_out)
{
    struct ds_accel__finding finding = {.reason = DS_ACCEL__REASON_NONE};
    struct ds_accel__trust *trust = ds_accel__trust_create();
    struct stat info;
    char *data = NULL;
    size_t size = 0;
    int fd = -1;
    int32_t status = trust != NULL ? ds_accel__trust_open(trust, path, &fd, &info, &finding)
                                   : ds_accel__no_memory();

    *manifest_out = NULL;
    *again_out = finding.reason == DS_ACCEL__REASON_FILE_CHANGED; /* also ESTALE */
    if (status >= 0 && fd >= 0) {
        status = read_file(fd, &info, &data, &size);
        *again_out = data != NULL && size < (size_t)info.st_size;
    }
    if (status >= 0 && data != NULL) {
        status = ds_accel__manifest_parse(data, size, recipe_digest, manifest_out);
    }
    free(data);
    if (fd >= 0) {
        close(fd);
    }
    ds_accel__trust_destroy(trust);
    return status;
}

int32_t ds_accel__store_read(const char *store, const char *kernel, const char *recipe_digest,
                             json_t **manifest_out)
{
    char *path = ds_accel__store_manifest(store, kernel, recipe_digest);
    int32_t status = path != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    bool again = true;

    *manifest_out = NULL;
    for (int i = 0; i < DS_ACCEL__STORE_ATTEMPTS && status >= 0 && again && *manifest_out == NULL;
         i++) {
        status = read_once(path, recipe_digest, manifest_out, &again);
    }
    free(path);
    return status;
}

bool ds_accel__store_is_refusal(enum ds_accel__reason_id reason)
{
    static const enum ds_accel__reason_id refusals[] = {
        DS_ACCEL__REASON_DIR_OWNER,       DS_ACCEL__REASON_DIR_WRITABLE,
        DS_ACCEL__REASON_PARENT_WRITABLE, DS_ACCEL__REASON_LINK_OWNER,
        DS_ACCEL__REASON_FILE_OWNER,      DS_ACCEL__REASON_FILE_WRITABLE,
    };

    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        if (refusals[i] == reason) {
            return true;
        }
    }
    return false;
}

int32_t ds_accel__store_trust(const char *path)
{
    struct ds_accel__trust *trust = ds_accel__trust_create();
    struct ds_accel__finding finding = {.reason = DS_ACCEL__REASON_NONE};
    struct stat info;
    int32_t status = trust != NULL ? ds_accel__trust_stat(trust, path, &info, &finding)
                                   : ds_accel__no_memory();

    if (status >= 0 && finding.reason != DS_ACCEL__REASON_NONE) {
        status = ds_accel__error(ds_accel__store_is_refusal(finding.reason) ? DS_ACCEL_ERR_UNTRUSTED
                                                                            : DS_ACCEL_ERR_INVALID,
                                 "%s: %s: %s", path, ds_accel__reason_code(finding.reason),
                                 finding.detail);
    }
    ds_accel__trust_destroy(trust);
    return status;
}

/* Fail if no op can be loaded from a directory, which exists. */
static int32_t check_mount(const char *store, int fd)
{
    struct statvfs info;

    return fstatvfs(fd, &info) != 0 || (info.f_flag & ST_NOEXEC) == 0
               ? DS_ACCEL_OK
               : ds_accel__error(DS_ACCEL_ERR_PERMISSION,
                                 "%s: its file system is mounted with noexec, so no op can be "
                                 "loaded from it: " DS_ACCEL__STORE_OTHER,
                                 store);
}

/* Fail if a directory, or the nearest one above it that exists, cannot be written. */
static int32_t check_way(const char *store)
{
    char *path = strdup(store);
    char *slash;
    int fd = -1;
    int32_t status = path != NULL ? DS_ACCEL_OK : ds_accel__no_memory();

    for (bool is_root = false; path != NULL && fd < 0 && !is_root;) {
        const char *here = path[0] != '\0' ? path : "/";

        is_root = here != path || path[1] == '\0';
        fd = open(here, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && faccessat(AT_FDCWD, here, W_OK | X_OK, AT_EACCESS) != 0) {
            status = ds_accel__error(DS_ACCEL_ERR_PERMISSION, "%s: %s", here, strerror(errno));
        }
        slash = strrchr(path, '/');
        if (slash != NULL) {
            *slash = '\0';
        }
    }
    if (status >= 0 && fd >= 0) {
        status = check_mount(store, fd);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(path);
    return status;
}

int32_t ds_accel__store_status(const char *store, int error)
{
    if (error == EPERM && access(store, R_OK) == 0) {
        return DS_ACCEL_ERR_UNTRUSTED; /* it could be opened, but others may write to it */
    }
    return error == EPERM || error == EACCES ? DS_ACCEL_ERR_PERMISSION : DS_ACCEL_ERR_IO;
}

int32_t ds_accel__store_check(const char *store)
{
    struct ds_accel__trust *trust = ds_accel__trust_create();
    struct ds_accel__finding finding = {.reason = DS_ACCEL__REASON_NONE};
    char *file = ds_accel__join(store, '/', "none");
    char problem[512];
    struct stat info;
    int error = 0;
    int32_t status = trust != NULL && file != NULL
                         ? ds_accel__trust_stat(trust, file, &info, &finding)
                         : ds_accel__no_memory();
    int fd = status >= 0 ? ds_accel__cache_directory_open(store, false, false, &error, problem,
                                                          sizeof(problem))
                         : -1;

    if (status >= 0 && fd < 0 && error != ENOENT) {
        status = ds_accel__error(ds_accel__store_status(store, error), "%s", problem);
    } else if (status >= 0 && finding.reason != DS_ACCEL__REASON_NONE &&
               finding.reason != DS_ACCEL__REASON_FILE_CHANGED) { /* it is not there */
        status = ds_accel__error(ds_accel__store_is_refusal(finding.reason)
                                     ? DS_ACCEL_ERR_UNTRUSTED
                                     : DS_ACCEL_ERR_PERMISSION,
                                 "%s", finding.detail);
    } else if (status >= 0) {
        status = check_way(store);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(file);
    ds_accel__trust_destroy(trust);
    return status;
}
