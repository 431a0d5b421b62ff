/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Opening files. A file is open twice, with and without O_DIRECT, as far as possible; the second
 * time by the first one's descriptor, so that both are the same file.
 */
#include "handle.h"

#include "common/error.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

int32_t async_io__status(int system_error)
{
    switch (system_error) {
    case ENOENT:
    case ENOTDIR:
        return DS_ACCEL_ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return DS_ACCEL_ERR_PERMISSION;
    case ENOMEM:
        return DS_ACCEL_ERR_NO_MEMORY;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
        return DS_ACCEL_ERR_LIMIT;
    case EISDIR:
    case EBADF:
    case ESPIPE:
    case ENAMETOOLONG:
        return DS_ACCEL_ERR_INVALID;
    default:
        return DS_ACCEL_ERR_IO;
    }
}

/* Open a path. O_NONBLOCK keeps a FIFO from waiting for its other end, but io_uring would not wait
 * for a disk with it, so it does not stay set. Return -1 with errno. */
static int open_path(const char *path, int flags, mode_t mode)
{
    int fd;

    do
        fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, mode);
    while (fd < 0 && errno == EINTR);
    if (fd >= 0)
        fcntl(fd, F_SETFL, flags & ~(O_CREAT | O_ACCMODE));
    return fd;
}

/* Open the same file again, with other flags. Return -1 if that is not possible. */
static int reopen(int fd, int flags)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open_path(path, flags, 0);
}

/* Return whether io_uring may misplace bytes of a file. Linux 6.18 repeats what is left of a short
 * transfer with a FUSE server that has FOPEN_DIRECT_IO and not FUSE_ASYNC_DIO, but at the offset at
 * which the whole transfer began, and reports success. */
static bool may_misplace(int fd)
{
    struct statfs now;

    return fstatfs(fd, &now) == 0 && now.f_type == FUSE_SUPER_MAGIC;
}

/* Find out the alignment of O_DIRECT. Return false if the file has no direct I/O. */
static bool find_alignment(struct async_io__file *file, int fd)
{
    file->offset_align = ASYNC_IO_PAGE;
    file->memory_align = 512;
#ifdef STATX_DIOALIGN
    struct statx now;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &now) == 0 &&
        (now.stx_mask & STATX_DIOALIGN)) {
        if (now.stx_dio_offset_align == 0)
            return false;
        if (now.stx_dio_offset_align > file->offset_align)
            file->offset_align = now.stx_dio_offset_align;
        file->memory_align = now.stx_dio_mem_align > 0 ? now.stx_dio_mem_align : 1;
    }
#else
    (void)fd;
#endif
    return true;
}

static int32_t check_kind(int fd, const char *call, const char *name, struct ds_accel_error *error)
{
    struct stat now;

    if (fstat(fd, &now) != 0)
        return ops__error(error, async_io__status(errno), call, "fstat: %s: %s", strerror(errno),
                          name);
    if (S_ISDIR(now.st_mode))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "%s: %s", strerror(EISDIR), name);
    if (lseek(fd, 0, SEEK_CUR) < 0)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "no file that can be used at an offset: %s: %s", strerror(errno), name);
    return DS_ACCEL_OK;
}

/* Take over the caller's descriptor. */
static int32_t open_given(struct async_io__file *file, const char *call, int fd, bool write,
                          struct ds_accel_error *error)
{
    int flags = fcntl(fd, F_GETFL);
    int access = flags & O_ACCMODE;

    if (flags < 0)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "fd is %d: %s", fd, strerror(errno));
    if (access != O_RDWR && access != (write ? O_WRONLY : O_RDONLY))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "fd %d is not open for %s", fd,
                          write ? "writing" : "reading");
    if (write && (flags & O_APPEND))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "fd %d has O_APPEND, which ignores offsets", fd);
    if (flags & O_DIRECT) {
        file->direct = fd;
        file->plain = reopen(fd, write ? O_WRONLY : O_RDONLY);
        file->close_plain = true;
    } else {
        file->plain = fd;
    }
    return DS_ACCEL_OK;
}

static int32_t open_named(struct async_io__file *file, const char *call,
                          const struct ds_accel_async_io_transfer *transfer, bool write,
                          struct ds_accel_error *error)
{
    mode_t mode = transfer->mode != 0 ? (mode_t)transfer->mode : 0600;

    file->plain = open_path(transfer->path, write ? O_WRONLY : O_RDONLY, 0);
    if (file->plain < 0 && errno == ENOENT && write) {
        file->plain = open_path(transfer->path, O_WRONLY | O_CREAT, mode);
        file->created = file->plain >= 0;
    }
    if (file->plain < 0)
        return ops__error(error, async_io__status(errno), call, "cannot open: %s: %s",
                          strerror(errno), transfer->path);
    file->close_plain = true;
    return DS_ACCEL_OK;
}

int32_t async_io__file_open(struct async_io__file *file, const char *call,
                            const struct ds_accel_async_io_transfer *transfer, bool write,
                            const struct ds_accel_async_io_options *options,
                            struct ds_accel_error *error)
{
    bool direct = !(options->flags & DS_ACCEL_ASYNC_IO_PAGE_CACHE);
    char name[32];
    int fd;
    int32_t status;

    *file = (struct async_io__file){.plain = -1, .direct = -1};
    snprintf(name, sizeof(name), "file descriptor %d", transfer->fd);
    status = transfer->path ? open_named(file, call, transfer, write, error)
                            : open_given(file, call, transfer->fd, write, error);
    if (status)
        return status;
    fd = file->plain >= 0 ? file->plain : file->direct;
    status = check_kind(fd, call, transfer->path ? transfer->path : name, error);
    if (status) {
        async_io__file_close(file);
        return status;
    }
    if (!find_alignment(file, fd))
        direct = false;
    if (!direct && file->plain >= 0)
        file->direct = -1; /* the caller's descriptor has it, but it is not used */
    if (file->direct < 0 && direct) {
        file->direct = reopen(fd, (write ? O_WRONLY : O_RDONLY) | O_DIRECT);
        file->close_direct = true;
    }
    file->by_call = !(options->flags & DS_ACCEL_ASYNC_IO_FUSE_RING) && may_misplace(fd);
    return DS_ACCEL_OK;
}

void async_io__file_close(const struct async_io__file *file)
{
    if (file->close_plain && file->plain >= 0)
        close(file->plain);
    if (file->close_direct && file->direct >= 0)
        close(file->direct);
}

/* Make the name of a new file permanent. */
static int sync_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 1;
    char *name = strndup(slash ? path : ".", length);
    int failed = 0;
    int fd;

    if (!name)
        return ENOMEM;
    fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(name);
    if (fd < 0)
        return errno;
    /* Some file systems have no fsync() for directories: they need none. */
    if (fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
        failed = errno;
    close(fd);
    return failed;
}

static int retry_truncate(int fd, uint64_t bytes)
{
    int failed;

    do
        failed = ftruncate(fd, (off_t)bytes) != 0 ? errno : 0;
    while (failed == EINTR);
    return failed;
}

int async_io__file_conclude(const struct async_io__request *request, const char **function_out)
{
    const struct async_io__file *file = &request->file;
    int fd = file->plain >= 0 ? file->plain : file->direct;
    int failed;

    *function_out = "ftruncate";
    if (request->flags & DS_ACCEL_ASYNC_IO_TRUNCATE) {
        failed = retry_truncate(fd, request->offset + request->bytes);
        if (failed)
            return failed;
    }
    *function_out = "fsync";
    if (!(request->flags & DS_ACCEL_ASYNC_IO_SYNC))
        return 0;
    if (fsync(fd) != 0)
        return errno;
    *function_out = "fsync of the directory";
    return file->created ? sync_directory(request->name) : 0;
}
