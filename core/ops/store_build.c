/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Changes of a cache of ops. Files are written in the directory of a build, synced and renamed. Two
 * hosts that build the same thing make the same file, so it does not matter whose rename is the
 * last. A build that was killed leaves a directory without a lock, which the next build removes.
 */
#include "base/file.h"
#include "base/text.h"
#include "config/prefix.h"
#include "host/cache_disk.h"
#include "ops/manifest.h"
#include "ops/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK "lock"
#define OBJECT_DEPTH 4 /* directories in a build directory that are removed with it */
/* After this time a directory of another boot is not in use, even if locks do not reach here. */
#define OTHER_BOOT_SECONDS (24 * 3600)

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
        if (strncmp(entry->d_name, DS_ACCEL__BUILD_PREFIX, strlen(DS_ACCEL__BUILD_PREFIX)) == 0 &&
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
        return ds_accel__error(ds_accel__store_status(store, error), "%s", problem);
    }
    return DS_ACCEL_OK;
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
    char *boot_prefix = ds_accel__store_boot();
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

int32_t ds_accel__build_dir_keep(struct ds_accel__build_dir *dir, const char *name, char **path_out)
{
    char *kept = remove_kept(dir, name);
    char *path = kept != NULL ? ds_accel__join(dir->store, '/', kept) : NULL;
    int32_t status = path != NULL ? DS_ACCEL_OK : ds_accel__no_memory();

    if (path != NULL && renameat(dir->store_fd, dir->name, dir->store_fd, kept) == 0) {
        *path_out = path;
        close_fds(dir);
    } else {
        /* Another process keeps its failure at the same time: one of both suffices. */
        *path_out = path != NULL && (errno == ENOTEMPTY || errno == EEXIST) ? path : NULL;
        ds_accel__build_dir_close(dir);
    }
    if (*path_out == NULL) {
        free(path);
    }
    free(kept);
    return status;
}

/* ---- publishing ------------------------------------------------------------------------------ */

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

    for (int i = 0; i < DS_ACCEL__STORE_ATTEMPTS && is_passing(error); i++) {
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

int32_t ds_accel__store_write(const struct ds_accel__build_dir *dir, const char *kernel,
                              const char *recipe_digest, const json_t *manifest)
{
    char *path = ds_accel__store_manifest(dir->store, kernel, recipe_digest);
    struct ds_accel__text text = {0};
    int32_t status = DS_ACCEL_OK;

    ds_accel__text_add_json(&text, manifest, JSON_INDENT(1));
    ds_accel__text_add(&text, "\n");
    if (path == NULL || text.failed) {
        status = ds_accel__no_memory();
    } else if (!ds_accel__cache_file_write(dir->fd, "manifest.json", &text)) {
        status = io_error(dir->store, errno);
    } else {
        status = ds_accel__build_dir_publish(dir, "manifest.json", strrchr(path, '/') + 1, NULL);
    }
    ds_accel__text_clear(&text);
    free(path);
    return status;
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

        for (int i = 0; i < DS_ACCEL__STORE_ATTEMPTS && error == EBUSY; i++) {
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
    char *boot_prefix = ds_accel__store_boot();
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
