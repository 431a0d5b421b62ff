/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A cache of ops is a directory that several hosts may share and several processes write:
 *
 *     cpu_adam.<recipe>.json     the manifest: which keys there are, and from what
 *     cpu_adam.<key>.so          a file, complete at any time
 *     .build-<boot>-<pid>-<n>/   where one process builds; its file "lock" is locked
 *
 * Files are written in such a directory, synced and renamed. Two hosts that build the same thing
 * make the same file, so it does not matter whose rename is the last. A build that was killed
 * leaves a directory without a lock, which the next build removes.
 */
#include "ops/store.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/env.h"
#include "config/prefix.h"
#include "host/cache_disk.h"
#include "ops/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MANIFEST_LIMIT_BYTES ((size_t)8 << 20)
#define BUILD_PREFIX ".build-"
#define LOCK "lock"
#define READ_ATTEMPTS 3
#define OBJECT_DEPTH 4 /* directories in a build directory that are removed with it */
/* After this time a directory of another boot is not in use, even if locks do not reach here. */
#define OTHER_BOOT_SECONDS (24 * 3600)
/* Longer than nvcc needs for an op on a slow machine. */
#define LOCK_WAIT_MS (20u * 60u * 1000u)

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

static int32_t io_error(const char *path, int error)
{
    int32_t status = error == EACCES || error == EPERM || error == EROFS ? DS_ACCEL_ERR_PERMISSION
                                                                         : DS_ACCEL_ERR_IO;

    if (error == ENOMEM) {
        return ds_accel__no_memory();
    }
    return ds_accel__error(status, "%s: %s%s", path, strerror(error),
                           error == ENOSPC || error == EDQUOT  ? ": " DS_ACCEL__STORE_REMEDY
                           : status == DS_ACCEL_ERR_PERMISSION ? ": " DS_ACCEL__STORE_OTHER
                                                               : "");
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
    for (int i = 0; i < READ_ATTEMPTS && status >= 0 && again && *manifest_out == NULL; i++) {
        status = read_once(path, recipe_digest, manifest_out, &again);
    }
    free(path);
    return status;
}

int32_t ds_accel__store_trust(const char *path)
{
    struct ds_accel__trust *trust = ds_accel__trust_create();
    struct ds_accel__finding finding = {.reason = DS_ACCEL__REASON_NONE};
    struct stat info;
    int32_t status = trust != NULL ? ds_accel__trust_stat(trust, path, &info, &finding)
                                   : ds_accel__no_memory();

    if (status >= 0 && finding.reason != DS_ACCEL__REASON_NONE) {
        status = ds_accel__error(DS_ACCEL_ERR_NOT_USABLE, "%s: %s: %s", path,
                                 ds_accel__reason_code(finding.reason), finding.detail);
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
        status = ds_accel__error(DS_ACCEL_ERR_PERMISSION, "%s", problem);
    } else if (status >= 0 && finding.reason != DS_ACCEL__REASON_NONE &&
               finding.reason != DS_ACCEL__REASON_FILE_CHANGED) { /* it is not there */
        status = ds_accel__error(DS_ACCEL_ERR_PERMISSION, "%s", finding.detail);
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

int32_t ds_accel__store_write(const struct ds_accel__build_dir *dir, const char *kernel,
                              const char *recipe_digest, const json_t *manifest)
{
    char *name = file_name(kernel, recipe_digest, "json");
    struct ds_accel__text text = {0};
    int32_t status = DS_ACCEL_OK;

    ds_accel__text_add_json(&text, manifest, JSON_INDENT(1));
    ds_accel__text_add(&text, "\n");
    if (name == NULL || text.failed) {
        status = ds_accel__no_memory();
    } else if (!ds_accel__cache_file_write(dir->fd, "manifest.json", &text)) {
        status = io_error(dir->store, errno);
    } else {
        status = ds_accel__build_dir_publish(dir, "manifest.json", name, NULL);
    }
    ds_accel__text_clear(&text);
    free(name);
    return status;
}

/* ---- removing directories -------------------------------------------------------------------- */

/* Remove a directory with what is in it. Takes ownership of fd, its descriptor. */
static void remove_directory(int parent, const char *name, int fd, int depth)
{
    DIR *directory = fdopendir(fd);
    const struct dirent *entry;

    if (directory == NULL) {
        close(fd);
        return;
    }
    while ((entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (unlinkat(fd, entry->d_name, 0) != 0 && (errno == EISDIR || errno == EPERM) &&
            depth > 0) {
            int below = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

            if (below >= 0) {
                remove_directory(fd, entry->d_name, below, depth - 1);
            }
        }
    }
    closedir(directory);
    unlinkat(parent, name, AT_REMOVEDIR);
}

/* The time of the file system's clock, in seconds, which other hosts use too; 0: unknown. */
static time_t time_there(int fd)
{
    struct stat info;

    return fstat(fd, &info) == 0 ? info.st_ctim.tv_sec : 0;
}

/* Remove the directory of a build whose process has ended. now: the file system's time. */
static void remove_if_dead(int store, const char *name, const char *boot_prefix, time_t now)
{
    int fd = openat(store, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int lock;
    bool is_ours = strncmp(name, boot_prefix, strlen(boot_prefix)) == 0;
    struct stat info;
    bool is_dead = false;

    if (fd < 0) {
        return;
    }
    lock = openat(fd, LOCK, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fstat(fd, &info) == 0) {
        bool is_old = info.st_ctim.tv_sec + OTHER_BOOT_SECONDS < now;

        /* Without a lock, the process may be about to make it. */
        is_dead = lock >= 0 ? flock(lock, LOCK_EX | LOCK_NB) == 0 && (is_ours || is_old) : is_old;
    }
    /* A file that is open leaves another one behind on network file systems. */
    if (lock >= 0) {
        close(lock);
    }
    if (is_dead) {
        remove_directory(store, name, fd, OBJECT_DEPTH);
    } else {
        close(fd);
    }
}

static void remove_dead(const struct ds_accel__build_dir *dir, const char *boot_prefix)
{
    int fd = openat(dir->store_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    time_t now = time_there(dir->fd >= 0 ? dir->fd : dir->store_fd);
    const struct dirent *entry;

    if (directory == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    while ((entry = readdir(directory)) != NULL) {
        if (strncmp(entry->d_name, BUILD_PREFIX, strlen(BUILD_PREFIX)) == 0 &&
            (dir->name == NULL || strcmp(entry->d_name, dir->name) != 0)) {
            remove_if_dead(dir->store_fd, entry->d_name, boot_prefix, now);
        }
    }
    closedir(directory);
}

/* ---- build directories ----------------------------------------------------------------------- */

int ds_accel__make_directories(const char *path, unsigned parents_mode)
{
    char *part = strdup(path);
    int error = part != NULL ? 0 : ENOMEM;

    for (size_t length = strlen(path); error == 0 && length > 1 && part[length - 1] == '/';) {
        part[--length] = '\0';
    }

    for (char *slash = part; error == 0 && slash != NULL;) {
        slash = strchr(slash + 1, '/');
        if (slash != NULL) {
            *slash = '\0';
        }
        if (mkdir(part, slash != NULL ? parents_mode : 0755) != 0 && errno != EEXIST) {
            error = errno;
            error = access(part, F_OK) == 0 ? 0 : error;
        }
        if (slash != NULL) {
            *slash = '/';
        }
    }
    free(part);
    return error;
}

/*
 * Let users read what root built, also if the directory was created for what only root reads, and
 * whatever the umask is.
 */
static void open_to_users(const char *store)
{
    const char *parent = ds_accel__built_for.cache_dir;
    size_t length = strlen(parent);

    if (geteuid() == 0 && strncmp(store, parent, length) == 0 &&
        strcmp(store + length, "/ops") == 0) {
        chmod(parent, 0755);
        chmod(store, 0755);
    }
}

static int32_t open_store(const char *store, struct ds_accel__build_dir *dir)
{
    char problem[512];
    int error = 0;

    dir->store_fd =
        ds_accel__cache_directory_open(store, false, false, &error, problem, sizeof(problem));
    if (dir->store_fd < 0 && error == ENOENT) {
        error = ds_accel__make_directories(store, 0700);
        if (error != 0) {
            return io_error(store, error);
        }
        dir->store_fd =
            ds_accel__cache_directory_open(store, false, false, &error, problem, sizeof(problem));
    }
    if (dir->store_fd >= 0) {
        open_to_users(store);
    }
    if (dir->store_fd < 0) {
        return ds_accel__error(error == EPERM || error == EACCES ? DS_ACCEL_ERR_PERMISSION
                                                                 : DS_ACCEL_ERR_IO,
                               "%s", problem);
    }
    return DS_ACCEL_OK;
}

/* The begin of the names of this boot's directories. NULL: memory is exhausted. */
static char *name_boot(void)
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
    name = ds_accel__format(BUILD_PREFIX "%.36s-", text);
    free(text);
    return name;
}

static int32_t make_build_dir(struct ds_accel__build_dir *dir, const char *boot_prefix)
{
    static atomic_uint number;

    for (int attempt = 0; attempt < 1000; attempt++) {
        free(dir->name);
        dir->name =
            ds_accel__format("%s%d-%u", boot_prefix, (int)getpid(), atomic_fetch_add(&number, 1));
        if (dir->name == NULL) {
            return ds_accel__no_memory();
        }
        if (mkdirat(dir->store_fd, dir->name, 0700) != 0) {
            if (errno == EEXIST) { /* of another container, which has the same process ID */
                continue;
            }
            return io_error(dir->store, errno);
        }
        dir->fd = openat(dir->store_fd, dir->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        dir->lock_fd =
            dir->fd >= 0 ? openat(dir->fd, LOCK ".new", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                         : -1;
        if (dir->lock_fd < 0) {
            return io_error(dir->store, errno);
        }
        /* A file system without locks: nobody else can lock it, and so remove the directory. */
        flock(dir->lock_fd, LOCK_EX | LOCK_NB);
        /* Under its name, the file is locked at any time. */
        return renameat(dir->fd, LOCK ".new", dir->fd, LOCK) == 0 ? DS_ACCEL_OK
                                                                  : io_error(dir->store, errno);
    }
    return ds_accel__error(DS_ACCEL_ERR_IO, "%s: it is full of directories of builds", dir->store);
}

static void close_fds(struct ds_accel__build_dir *dir)
{
    int *const fds[] = {&dir->lock_fd, &dir->fd, &dir->store_fd};

    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        if (*fds[i] >= 0) {
            close(*fds[i]);
        }
        *fds[i] = -1;
    }
    free(dir->store);
    free(dir->path);
    free(dir->name);
    *dir = (struct ds_accel__build_dir){.store_fd = -1, .fd = -1, .lock_fd = -1};
}

int32_t ds_accel__build_dir_open(const char *store, struct ds_accel__build_dir *dir)
{
    char *boot_prefix = name_boot();
    int32_t status;

    *dir = (struct ds_accel__build_dir){
        .store = strdup(store), .store_fd = -1, .fd = -1, .lock_fd = -1};
    status = boot_prefix != NULL && dir->store != NULL ? open_store(store, dir)
                                                       : ds_accel__no_memory();
    if (status >= 0) {
        status = ds_accel__store_check(store);
    }
    if (status >= 0) {
        status = make_build_dir(dir, boot_prefix);
    }
    if (status >= 0) {
        dir->path = ds_accel__join(store, '/', dir->name);
        status = dir->path != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    if (status >= 0) {
        remove_dead(dir, boot_prefix);
    } else {
        ds_accel__build_dir_close(dir);
    }
    free(boot_prefix);
    return status;
}

void ds_accel__build_dir_close(struct ds_accel__build_dir *dir)
{
    if (dir->lock_fd >= 0) { /* as in remove_if_dead() */
        close(dir->lock_fd);
        dir->lock_fd = -1;
    }
    if (dir->fd >= 0) {
        remove_directory(dir->store_fd, dir->name, dir->fd, OBJECT_DEPTH);
        dir->fd = -1;
    } else if (dir->store_fd >= 0 && dir->name != NULL) {
        unlinkat(dir->store_fd, dir->name, AT_REMOVEDIR);
    }
    close_fds(dir);
}

/* Remove the directory of the failure before; return its name, NULL without memory. */
static char *remove_kept(const struct ds_accel__build_dir *dir, const char *name)
{
    char *kept = ds_accel__format("%s.failed", name);
    int old = -1;

    for (char *c = kept; c != NULL && *c != '\0'; c++) {
        *c = *c == '/' ? '-' : *c;
    }
    if (kept != NULL) {
        old = openat(dir->store_fd, kept, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (old >= 0) {
        remove_directory(dir->store_fd, kept, old, OBJECT_DEPTH);
    }
    return kept;
}

void ds_accel__build_dir_forget(const struct ds_accel__build_dir *dir, const char *name)
{
    free(remove_kept(dir, name));
}

void ds_accel__build_dir_keep(struct ds_accel__build_dir *dir, const char *name, char **path_out)
{
    char *kept = remove_kept(dir, name);

    *path_out = NULL;
    if (kept == NULL) {
        ds_accel__build_dir_close(dir);
        return;
    }
    if (renameat(dir->store_fd, dir->name, dir->store_fd, kept) == 0) {
        *path_out = ds_accel__join(dir->store, '/', kept);
        close_fds(dir);
    } else { /* another process keeps its failure at the same time */
        ds_accel__build_dir_close(dir);
    }
    free(kept);
}

/* Whether a file of a network file system may have been replaced by another host meanwhile. */
static bool is_passing(int error)
{
    return error == ESTALE || error == EBUSY;
}

/* Rename into the store. Returns 0 or an errno: EEXIST, if there is a file and not replaces. */
static int move_in_once(const struct ds_accel__build_dir *dir, const char *file, const char *name,
                        bool replaces)
{
    if (!replaces) {
        if (renameat2(dir->fd, file, dir->store_fd, name, RENAME_NOREPLACE) == 0) {
            return 0;
        }
        if (errno != EINVAL && errno != ENOSYS) { /* else a file system without it, such as NFS */
            return errno;
        }
        if (faccessat(dir->store_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
            return EEXIST;
        }
    }
    return renameat(dir->fd, file, dir->store_fd, name) == 0 ? 0 : errno;
}

/* Rename a directory that is in place of a file, because it may have what somebody needs. */
static int move_away(const struct ds_accel__build_dir *dir, const char *name)
{
    char *other = ds_accel__format("%s.directory", name);
    int error = other != NULL ? 0 : ENOMEM;

    if (error == 0 && renameat(dir->store_fd, name, dir->store_fd, other) != 0) {
        error = errno == ENOENT ? 0 : errno; /* another process has renamed it */
    }
    free(other);
    return error;
}

static int move_in(const struct ds_accel__build_dir *dir, const char *file, const char *name,
                   bool replaces)
{
    int error = ESTALE;

    for (int i = 0; i < READ_ATTEMPTS && is_passing(error); i++) {
        error = move_in_once(dir, file, name, replaces);
    }
    if (error == EISDIR) {
        error = move_away(dir, name);
        if (error == 0) {
            error = move_in_once(dir, file, name, replaces);
        }
    }
    return error;
}

int32_t ds_accel__build_dir_publish(const struct ds_accel__build_dir *dir, const char *file,
                                    const char *name, bool *exists_out)
{
    int fd = openat(dir->fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int error = 0;

    if (exists_out != NULL) {
        *exists_out = false;
    }
    /* Others may read it, and only this user may write it, whatever the umask is. */
    if (fd < 0 || fchmod(fd, 0644) != 0 || fsync(fd) != 0) {
        error = errno;
    } else {
        error = move_in(dir, file, name, exists_out == NULL);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (error == EEXIST && exists_out != NULL) {
        *exists_out = true;
        return DS_ACCEL_OK;
    }
    if (error != 0) {
        return io_error(dir->store, error);
    }
    fsync(dir->store_fd);
    return DS_ACCEL_OK;
}

/* ---- cleaning -------------------------------------------------------------------------------- */

/* Whether a name is that of a file of the cache: "cpu_adam.KEY.so", "cuda-fused_adam.KEY.json". A
 * variable may name any directory, whose other files are not ours. */
static bool is_ours(const char *name)
{
    const char *suffix = strrchr(name, '.');
    const char *key;

    if (suffix == NULL || suffix - name <= DS_ACCEL__KEY_DIGITS + 1 ||
        (strcmp(suffix, ".so") != 0 && strcmp(suffix, ".json") != 0)) {
        return false;
    }
    key = suffix - DS_ACCEL__KEY_DIGITS;
    return key[-1] == '.' && strspn(key, "0123456789abcdef") == DS_ACCEL__KEY_DIGITS;
}

static bool is_failure(const char *name)
{
    const char *suffix = strrchr(name, '.');

    return suffix != NULL && suffix != name && strcmp(suffix, ".failed") == 0;
}

/* Whether such a name is one of the op's. NULL: of any. */
static bool is_of(const char *name, const char *op)
{
    const char *dash = strchr(name, '-');
    const char *begin = dash != NULL ? dash + 1 : name; /* behind the backend's name */

    return op == NULL || (strncmp(begin, op, strlen(op)) == 0 && begin[strlen(op)] == '.');
}

/* Remove the directory of a build that failed, which has the file of its lock. */
static void clean_failure(int store, const char *name)
{
    int fd = openat(store, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd >= 0 && faccessat(fd, LOCK, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        remove_directory(store, name, fd, OBJECT_DEPTH);
    } else if (fd >= 0) {
        close(fd);
    }
}

static bool is_directory(int parent, const char *name)
{
    struct stat info;

    return fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
}

static int32_t clean_entry(const struct ds_accel__build_dir *dir, const char *name,
                           const struct ds_accel__log *log, uint64_t *files_out)
{
    if (is_failure(name)) {
        clean_failure(dir->store_fd, name);
    } else if (is_ours(name)) {
        int error = EBUSY;

        for (int i = 0; i < READ_ATTEMPTS && error == EBUSY; i++) {
            error = unlinkat(dir->store_fd, name, 0) == 0 ? 0 : errno;
        }
        if (error == 0) {
            ++*files_out;
        } else if (is_directory(dir->store_fd, name)) {
            ds_accel__log(log, "ops", DS_ACCEL_LOG_WARN,
                          "%s/%s is not removed: it is a directory, in place of a file", dir->store,
                          name);
        } else if (error != ENOENT && error != ESTALE) {
            return io_error(dir->store, error);
        }
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel__store_clean(const char *store, const char *op, const struct ds_accel__log *log,
                              uint64_t *files_out)
{
    /* No directory for a build is made: the disk may be full. */
    struct ds_accel__build_dir dir = {
        .store = strdup(store), .store_fd = -1, .fd = -1, .lock_fd = -1};
    char *boot_prefix = name_boot();
    DIR *directory = NULL;
    const struct dirent *entry;
    int32_t status = dir.store != NULL && boot_prefix != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    int fd = -1;

    *files_out = 0;
    if (status >= 0 && access(store, F_OK) == 0) {
        status = open_store(store, &dir);
        fd = status >= 0 ? openat(dir.store_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        directory = fd >= 0 ? fdopendir(fd) : NULL;
        if (status >= 0 && directory == NULL) {
            status = io_error(store, errno);
        }
    }
    if (directory != NULL) {
        while (status >= 0 && (entry = readdir(directory)) != NULL) {
            if (is_of(entry->d_name, op)) {
                status = clean_entry(&dir, entry->d_name, log, files_out);
            }
        }
        closedir(directory);
        futimens(dir.store_fd, NULL); /* its time of change is what is compared with */
        remove_dead(&dir, boot_prefix);
    } else if (fd >= 0) {
        close(fd);
    }
    free(boot_prefix);
    close_fds(&dir);
    return status;
}

/* ---- the lock -------------------------------------------------------------------------------- */

/*
 * The lock's file begins with the signature of its holder (host/cache_lock.c). The message of a
 * failure begins with the boot and the time of ds_accel__boot_ms(), because the file stays, and a
 * directory that DS_ACCEL_CACHE_DIR names may be shared with other hosts.
 */
#define MESSAGE_OFFSET 64
#define MESSAGE_LIMIT_BYTES ((size_t)65536)
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
        flock(lock_fd, LOCK_UN);
        close(lock_fd);
    }
}

void ds_accel__store_lock_fail(int lock_fd, const char *toolchain_digest, const char *message)
{
    struct ds_accel__text text = {0};
    char *boot = name_boot();

    ds_accel__text_add(&text, "%s%s%020" PRIu64 "%.*s", boot != NULL ? boot : "", toolchain_digest,
                       ds_accel__boot_ms(), (int)MESSAGE_LIMIT_BYTES - 256, message);
    if (lock_fd >= 0 && boot != NULL && !text.failed && ftruncate(lock_fd, MESSAGE_OFFSET) == 0 &&
        ds_accel__file_may_have(MESSAGE_OFFSET + text.size_bytes) &&
        pwrite(lock_fd, text.data, text.size_bytes, MESSAGE_OFFSET) != (ssize_t)text.size_bytes) {
        ftruncate(lock_fd, MESSAGE_OFFSET);
    }
    ds_accel__text_clear(&text);
    free(boot);
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
    ssize_t size;

    *message_out = NULL;
    if (lock_fd < 0) {
        return DS_ACCEL_OK;
    }
    boot = name_boot();
    data = malloc(MESSAGE_LIMIT_BYTES + 1);
    if (boot == NULL || data == NULL) {
        free(boot);
        free(data);
        return ds_accel__no_memory();
    }
    size = pread(lock_fd, data, MESSAGE_LIMIT_BYTES, MESSAGE_OFFSET);
    data[size > 0 ? size : 0] = '\0';
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
