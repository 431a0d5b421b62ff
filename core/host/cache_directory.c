/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The directory of the store: one that nobody else may write to and that no other machine sees. It
 * is the session's, for root /var/cache, else a private one in the temporary directory, where
 * anybody may have made that name before.
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

#define PRIVATE_NAME "/ds-accel-" /* and the user's number */

/*
 * Only if it is this user's own, as the XDG specification has it: su and sudo may leave another
 * user's in place, who would find a directory of ours in it that is closed to him.
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
 * For a user whose session has no directory: one of this user's in the temporary one, which all
 * users share. NULL: no memory; "": none.
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

/* New string; NULL: no memory; "": none. *is_private_out: it is in a directory of all users. */
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

/* Of f_type in statfs(2): file systems that several machines may have at once. */
static bool is_shared(int fd)
{
    static const uint32_t types[] = {
        0x6969,     /* NFS */
        0x517b,     /* SMB */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x73757245, /* Coda */
        0x5346414f, /* AFS */
        0x6b414653, /* AFS of the kernel */
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
 * Of the temporary directory and those on the way to it: nobody but root and this user may put
 * another in its place. Others may add names where the sticky bit keeps them from taking away
 * what is not theirs.
 */
static bool is_kept(const struct stat *info)
{
    return (info->st_uid == 0 || info->st_uid == ds_accel__trusted_user()) &&
           ((info->st_mode & 022) == 0 || (info->st_mode & S_ISVTX) != 0);
}

/* A path that ends here. */
static bool is_kept_path(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && is_kept(&info);
}

/* The directory itself, and each on the way to it, which has no links. */
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

/* NULL: it is of this machine alone. */
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
 * The directory that the private one is in: *path becomes its way without links. *wrong_out NULL:
 * it is one to use.
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
    *wrong_out = is_kept_way(resolved) ? check_shared(resolved)
                                       : "another user could put another directory in its place";
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
    snprintf(
        problem, problem_size,
        "%s: it has owner %u, mode %04o; expected a directory of this user that nobody else may "
        "%s",
        path, (unsigned)info->st_uid, (unsigned)(info->st_mode & 07777),
        is_private ? "open" : "write to");
}

/* Why open() failed, which follows no link. Returns errno's number, EPERM for another user's. */
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
             S_ISLNK(info.st_mode) ? "it is a link" : "it is no directory");
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
    if (fd < 0 && errno == ENOENT && can_make) { /* it is there at most starts */
        *error_out = mkdir(path, 0700) != 0 && errno != EEXIST ? errno : 0;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (fd < 0) {
        *error_out = explain_open(path, is_private, *error_out != 0 ? *error_out : errno, problem,
                                  problem_size);
        return -1;
    }
    if (fstat(fd, &info) != 0 || info.st_uid != ds_accel__trusted_user() ||
        (info.st_mode & closed) != 0) {
        *error_out = EPERM;
        say_owner(path, &info, is_private, problem, problem_size);
        close(fd);
        return -1;
    }
    return fd;
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
                 "a program with more rights than its caller remembers nothing, unless it is "
                 "root's");
    } else if ((*directory_out)[0] != '/') {
        snprintf(problem, problem_size, "%s is no absolute path", *directory_out);
    } else if (*is_private_out) {
        status = check_temporary(directory_out, &wrong);
    }
    if (wrong != NULL) {
        snprintf(problem, problem_size, "%s: the directory that it would be in: %s", *directory_out,
                 wrong);
    }
    return status;
}
