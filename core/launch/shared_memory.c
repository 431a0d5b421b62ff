/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Is a file in use? /proc does not show the processes of other pid namespaces and users, which may
 * have the same /dev/shm. The kernel grants a write lease only if no process has another descriptor
 * or mapping of the file. The lease is held for some microseconds. An open() by another process
 * waits for its end meanwhile, or fails with EAGAIN if it has O_NONBLOCK, and the kernel announces
 * it by SIGIO.
 */
#include "launch/shared_memory.h"
#include "base/text.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define BLOCK_BYTES 512u
#define FIRST_CAPACITY 64u

static bool may_be_file(const struct dirent *entry)
{
    return entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN;
}

/* Other file systems may have leases that do not see every user of a file. */
static bool is_tmpfs(int directory)
{
    struct statfs system;

    return fstatfs(directory, &system) == 0 && (uint64_t)system.f_type == TMPFS_MAGIC;
}

static int compare_inodes(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

/* ---- before the ranks start ----------------------------------------------------------------- */

/* False: out of memory. */
static bool add_inode(struct ds_accel__shared_memory *memory, uint32_t *capacity, uint64_t inode)
{
    if (memory->inode_count == *capacity) {
        uint32_t larger = *capacity == 0 ? FIRST_CAPACITY : *capacity * 2;
        uint64_t *inodes = realloc(memory->inodes, larger * sizeof(*inodes));

        if (inodes == NULL) {
            return false;
        }
        memory->inodes = inodes;
        *capacity = larger;
    }
    memory->inodes[memory->inode_count++] = inode;
    return true;
}

/* Read all entries. False: there are too many, or memory is exhausted. */
static bool read_inodes(struct ds_accel__shared_memory *memory, DIR *directory)
{
    const struct dirent *entry;
    uint32_t capacity = 0;

    for (uint32_t i = 0;; i++) {
        errno = 0;
        entry = readdir(directory);
        if (entry == NULL) {
            return errno == 0;
        }
        if (i == DS_ACCEL__SHARED_ENTRIES ||
            (may_be_file(entry) && !add_inode(memory, &capacity, entry->d_ino))) {
            return false;
        }
    }
}

void ds_accel__shared_memory_list(struct ds_accel__shared_memory *memory, const char *directory)
{
    DIR *stream = opendir(directory);
    struct stat info;

    assert(!memory->is_listed && memory->inodes == NULL);
    memory->directory = directory;
    if (stream == NULL) {
        return;
    }
    /* The clock that the kernel stamps files with, which is some milliseconds behind. */
    if (is_tmpfs(dirfd(stream)) && clock_gettime(CLOCK_REALTIME_COARSE, &memory->start) == 0 &&
        fstat(dirfd(stream), &info) == 0) {
        memory->device = info.st_dev;
        memory->is_listed = read_inodes(memory, stream);
    }
    closedir(stream);
    if (!memory->is_listed) {
        ds_accel__shared_memory_clear(memory);
    }
}

/* ---- after the end of all processes --------------------------------------------------------- */

static bool is_since(const struct statx_timestamp *time, const struct timespec *start)
{
    return time->tv_sec > start->tv_sec ||
           (time->tv_sec == start->tv_sec && time->tv_nsec >= (uint32_t)start->tv_nsec);
}

/* Was the file written or made since the start? A copy may have the time of its original. */
static bool is_recent(const struct statx *info, const struct timespec *start)
{
    return is_since(&info->stx_mtime, start) ||
           ((info->stx_mask & STATX_BTIME) != 0 && is_since(&info->stx_btime, start));
}

/* Is this a private file of this user that was made since the start, and is it large? */
static bool is_candidate(const struct ds_accel__shared_memory *memory, const struct statx *info)
{
    uint64_t inode = info->stx_ino;

    return S_ISREG(info->stx_mode) && (info->stx_mode & (S_IRWXG | S_IRWXO)) == 0 &&
           info->stx_uid == geteuid() &&
           makedev(info->stx_dev_major, info->stx_dev_minor) == memory->device &&
           info->stx_blocks * BLOCK_BYTES >= DS_ACCEL__SHARED_SIZE_BYTES &&
           is_recent(info, &memory->start) &&
           (memory->inode_count == 0 || bsearch(&inode, memory->inodes, memory->inode_count,
                                                sizeof(inode), compare_inodes) == NULL);
}

/* Has no process the file open or mapped? False also if that is unknown. */
static bool is_unused(int directory, const char *name, const struct statx *seen)
{
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    bool is_unused;

    if (fd < 0) {
        return false;
    }
    is_unused = fstat(fd, &info) == 0 && info.st_ino == seen->stx_ino && S_ISREG(info.st_mode) &&
                fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
    close(fd); /* and the lease is released */
    return is_unused;
}

/* Add a file to the largest ones, if it is one of them. */
static void add_file(struct ds_accel__shared_memory *memory, const char *name, uint64_t size_bytes)
{
    struct ds_accel__shared_file *files = memory->files;
    uint32_t at = memory->file_count;

    memory->found_count++;
    memory->found_bytes += size_bytes;
    while (at > 0 && size_bytes > files[at - 1].size_bytes) {
        at--;
    }
    if (at == DS_ACCEL__SHARED_FILES) {
        return;
    }
    if (memory->file_count < DS_ACCEL__SHARED_FILES) {
        memory->file_count++;
    }
    memmove(&files[at + 1], &files[at], (memory->file_count - 1 - at) * sizeof(*files));
    ds_accel__copy(files[at].name, sizeof(files[at].name), name);
    files[at].size_bytes = size_bytes;
}

static void examine(struct ds_accel__shared_memory *memory, DIR *directory)
{
    const struct dirent *entry;
    struct statx info;

    for (uint32_t i = 0;; i++) {
        errno = 0;
        entry = readdir(directory);
        if (entry == NULL) {
            memory->is_partial = errno != 0;
            return;
        }
        if (i == DS_ACCEL__SHARED_ENTRIES) {
            memory->is_partial = true;
            return;
        }
        if (may_be_file(entry) &&
            statx(dirfd(directory), entry->d_name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
                  STATX_BASIC_STATS | STATX_BTIME, &info) == 0 &&
            is_candidate(memory, &info) && is_unused(dirfd(directory), entry->d_name, &info)) {
            add_file(memory, entry->d_name, info.stx_blocks * BLOCK_BYTES);
        }
    }
}

/* Is this the directory that was listed? */
static bool is_expected(const struct ds_accel__shared_memory *memory, int directory)
{
    struct stat info;

    return fstat(directory, &info) == 0 && info.st_dev == memory->device && is_tmpfs(directory);
}

void ds_accel__shared_memory_find(struct ds_accel__shared_memory *memory)
{
    DIR *stream = memory->is_listed ? opendir(memory->directory) : NULL;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;

    assert(!memory->is_examined);
    if (stream == NULL) {
        return;
    }
    if (is_expected(memory, dirfd(stream)) && sigaction(SIGIO, &ignore, &before) == 0) {
        if (memory->inode_count > 0) {
            qsort(memory->inodes, memory->inode_count, sizeof(*memory->inodes), compare_inodes);
        }
        examine(memory, stream);
        memory->is_examined = true;
        sigaction(SIGIO, &before, NULL);
    }
    closedir(stream);
}

void ds_accel__shared_memory_clear(struct ds_accel__shared_memory *memory)
{
    free(memory->inodes);
    *memory = (struct ds_accel__shared_memory){.directory = memory->directory};
}
