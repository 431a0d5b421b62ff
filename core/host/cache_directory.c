/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Finds the directory of the store, which no other user may write to: the directory that program or
 * environment specify; else one in the session's runtime directory; else for root one in
 * /var/cache (CACHEDIR of the build); else a private directory in the temporary directory, where
 * any user may have created a directory of that name before. Other machines may not share the
 * temporary directory; the other directories are not checked for that.
 */
#include "base/text.h"
#include "base/trust.h"
#include "config/env.h"
#include "config/prefix.h"
#include "host/cache_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PRIVATE_NAME "/ds-accel-" /* followed by the user ID */

/*
 * Return the session's runtime directory (XDG_RUNTIME_DIR); NULL if there is none, or if it does
 * not belong to this user. After su or sudo the variable may still contain the directory of another
 * user, who could not access the files that this process creates there.
 */
static char *find_runtime_dir(void)
{
    char *runtime = ds_accel__env_runtime_dir();
    struct stat info;

    if (runtime != NULL && (stat(runtime, &info) != 0 || info.st_uid != ds_accel__trusted_user())) {
        free(runtime);
        runtime = NULL;
    }
    return runtime;
}

/*
 * Return the private directory, for a user whose session has no runtime directory: it is in the
 * temporary directory, which all users share. NULL if memory is exhausted; "" if there is none.
 */
static char *find_private_dir(void)
{
    char *temporary = ds_accel__env_temporary_dir();
    char *directory = temporary;

    if (temporary != NULL && temporary[0] != '\0') {
        directory = ds_accel__format("%s" PRIVATE_NAME "%u", temporary, (unsigned)geteuid());
        free(temporary);
    }
    return directory;
}

/*
 * Return the path of the store's directory as a new string; "" if there is none; NULL if memory is
 * exhausted. *is_private_out is true if the directory is in a directory shared by all users.
 */
static char *choose_directory(const char *given, bool *is_private_out)
{
    char *runtime;
    char *directory;

    *is_private_out = false;
    if (given != NULL) {
        return strdup(given);
    }
    runtime = find_runtime_dir();
    if (runtime != NULL) {
        directory = ds_accel__format("%s/ds-accel", runtime);
        free(runtime);
        return directory;
    }
    *is_private_out = geteuid() != 0;
    return geteuid() == 0 ? strdup(ds_accel__built_for.cache_dir) : find_private_dir();
}

/*
 * True if several machines can mount the file system at once, by its f_type (statfs(2)), or if
 * statfs() fails.
 */
static bool is_shared(int fd)
{
    static const uint32_t types[] = {
        0x6969,     /* NFS */
        0x517b,     /* SMB */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x73757245, /* Coda */
        0x5346414f, /* AFS */
        0x6b414653, /* AFS implementation of the kernel */
        0x00c36400, /* Ceph */
        0x0bd00bd0, /* Lustre */
        0x47504653, /* GPFS */
        0x19830326, /* BeeGFS */
        0x7461636f, /* OCFS2 */
        0x01161970, /* GFS2 */
    };
    struct statfs info;

    if (fstatfs(fd, &info) != 0) {
        return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        if ((uint32_t)info.f_type == types[i]) {
            return true;
        }
    }
    return false;
}

/*
 * True if no other user than root can replace the directory: it belongs to this user or root, and
 * other users may not write to it, or its sticky bit prevents them from removing files of other
 * users. Required of the temporary directory and of each directory on its path.
 */
static bool is_kept(const struct stat *info)
{
    return (info->st_uid == 0 || info->st_uid == ds_accel__trusted_user()) &&
           ((info->st_mode & 022) == 0 || (info->st_mode & S_ISVTX) != 0);
}

/* True if path is a directory, not a link, that only root and this user can replace. */
static bool is_kept_path(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && is_kept(&info);
}

/*
 * True if is_kept_path() is true for the directory and for each directory on its path, which
 * contains no links.
 */
static bool is_kept_way(char *path)
{
    bool passed = is_kept_path("/") && is_kept_path(path);

    for (char *slash = strchr(path + 1, '/'); slash != NULL && passed;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        passed = is_kept_path(path);
        *slash = '/';
    }
    return passed;
}

/* Return why the directory must not be used, or NULL if only this machine uses the file system. */
static const char *check_shared(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    const char *wrong = fd < 0 ? strerror(errno) : NULL;

    if (fd >= 0) {
        wrong = is_shared(fd) ? "other machines may share it" : NULL;
        close(fd);
    }
    return wrong;
}

/*
 * Check the parent of the private directory, and resolve the symbolic links in the parent's part of
 * *path. *wrong_out is NULL if the parent can be used, else the reason why not. Fails only if
 * memory is exhausted.
 */
static int32_t check_temporary(char **path, const char **wrong_out)
{
    char *name = strrchr(*path, '/');
    char *resolved;
    char *whole;

    *name = '\0';
    resolved = realpath((*path)[0] != '\0' ? *path : "/", NULL);
    *name = '/';
    if (resolved == NULL) {
        *wrong_out = strerror(errno);
        return errno == ENOMEM ? ds_accel__no_memory() : DS_ACCEL_OK;
    }
    *wrong_out = is_kept_way(resolved) ? check_shared(resolved) : "another user could replace it";
    whole = ds_accel__format("%s%s", resolved[1] != '\0' ? resolved : "", name);
    free(resolved);
    if (whole == NULL) {
        return ds_accel__no_memory();
    }
    free(*path);
    *path = whole;
    return DS_ACCEL_OK;
}

static void say_owner(const char *path, const struct stat *info, bool is_private, char *problem,
                      size_t problem_size)
{
    snprintf(problem, problem_size,
             "%s: it has owner %u, mode %04o; expected a directory that this user owns and no "
             "other may %s",
             path, (unsigned)info->st_uid, (unsigned)(info->st_mode & 07777),
             is_private ? "open" : "write to");
}

/*
 * Explain why mkdir() or open(), which follows no link, failed with error. Return error, or EPERM
 * for a directory that this user may not open.
 */
static int explain_open(const char *path, bool is_private, int error, char *problem,
                        size_t problem_size)
{
    struct stat info;

    if (lstat(path, &info) != 0 || (S_ISDIR(info.st_mode) && error != EACCES)) {
        snprintf(problem, problem_size, "%s: %s", path, strerror(error));
        return error;
    }
    if (S_ISDIR(info.st_mode)) {
        say_owner(path, &info, is_private, problem, problem_size);
        return EPERM;
    }
    snprintf(problem, problem_size, "%s: %s", path,
             S_ISLNK(info.st_mode) ? "it is a link" : "it is not a directory");
    return error;
}

int ds_accel__cache_directory_open(const char *path, bool is_private, bool can_make, int *error_out,
                                   char *problem, size_t problem_size)
{
    mode_t closed = is_private ? 077 : 022;
    struct stat info;
    int fd;

    *error_out = 0;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT && can_make) { /* rare: the directory usually exists */
        *error_out = mkdir(path, 0700) != 0 && errno != EEXIST ? errno : 0;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (fd < 0) {
        *error_out = explain_open(path, is_private, *error_out != 0 ? *error_out : errno, problem,
                                  problem_size);
        return -1;
    }
    if (fstat(fd, &info) != 0) {
        *error_out = errno;
        snprintf(problem, problem_size, "%s: %s", path, strerror(*error_out));
        close(fd);
        return -1;
    }
    if (info.st_uid != ds_accel__trusted_user() || (info.st_mode & closed) != 0) {
        *error_out = EPERM;
        say_owner(path, &info, is_private, problem, problem_size);
        close(fd);
        return -1;
    }
    return fd;
}

bool ds_accel__cache_directory_is_shared(const char *path)
{
    char *parent = strdup(path);
    char *slash;
    bool shared;
    int fd = -1;

    while (parent != NULL && fd < 0 && (slash = strrchr(parent, '/')) != NULL) {
        fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        *slash = '\0';
    }
    if (fd < 0) {
        fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    shared = is_shared(fd); /* also if fd is -1 */
    if (fd >= 0) {
        close(fd);
    }
    free(parent);
    return shared;
}

bool ds_accel__cache_directory_has_parent(const char *path)
{
    size_t length = strlen(path);
    char *parent;
    bool done;

    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    while (length > 1 && path[length - 1] != '/') {
        length--;
    }
    parent = strndup(path, length);
    done = parent != NULL && access(parent, W_OK | X_OK) == 0;
    free(parent);
    return done;
}

int32_t ds_accel__cache_directory_find(const char *given, char **directory_out,
                                       bool *is_private_out, char *problem, size_t problem_size)
{
    const char *wrong = NULL;
    int32_t status = DS_ACCEL_OK;

    problem[0] = '\0';
    *directory_out = choose_directory(given, is_private_out);
    if (*directory_out == NULL) {
        return ds_accel__no_memory();
    }
    if ((*directory_out)[0] == '\0') {
        snprintf(problem, problem_size,
                 "a program with raised rights caches nothing, unless it runs as root");
    } else if ((*directory_out)[0] != '/') {
        snprintf(problem, problem_size, "%s is not an absolute path", *directory_out);
    } else if (*is_private_out) {
        status = check_temporary(directory_out, &wrong);
    }
    if (wrong != NULL) {
        snprintf(problem, problem_size, "%s: its parent directory: %s", *directory_out, wrong);
    }
    return status;
}
