/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A file that is remembered by its times must not change without them. write() and truncate() set
 * them always. A program that writes into a shared mapping (mmap() with MAP_SHARED) sets them when
 * the kernel makes a page writable for it:
 *
 *   - On a disk, that is the first write to a page since it was last written back. Writes to a
 *     page that still waits for that, usually up to 30 s, change no time. So a program that keeps a
 *     file mapped and writes to the same page again can change it behind a digest, although its
 *     times are two seconds old. What is remembered is then wrong until the next write to the page
 *     after it was written back; msync(), munmap() and the end of the program do not change that.
 *     Editors, compilers and package managers do not write sources and programs in this way.
 *   - In tmpfs, ramfs and hugetlbfs nothing is written back. A page stays writable as long as the
 *     file is mapped, often from the first read on, so writes may change no time at all. Nothing is
 *     remembered of files there.
 *   - A file of an overlayfs is one of its upper layer as soon as a program opens it to write, so
 *     the file system of the upper layer counts. Inside a container, the path of this layer often
 *     leads nowhere; then it is taken for a disk.
 */
#include "ops/timed.h"
#include "base/file.h"
#include "base/text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define TMPFS 0x01021994u
#define RAMFS 0x858458f6u
#define HUGETLBFS 0x958458f6u
#define OVERLAYFS 0x794c7630u
#define MOUNTS "/proc/self/mountinfo"
#define MOUNTS_LIMIT_BYTES ((size_t)4 << 20)

static bool is_in_memory(const struct statfs *info)
{
    const uint32_t type = (uint32_t)info->f_type;

    return type == TMPFS || type == RAMFS || type == HUGETLBFS;
}

/* The value of upperdir in the line of a mount, as a new string; NULL: there is none. */
static char *find_upper(const char *mounts, uint64_t mount)
{
    char begin[32];
    const char *line = mounts;
    size_t length;
    char *text;
    char *upper;

    snprintf(begin, sizeof(begin), "%" PRIu64 " ", mount);
    while (*line != '\0' && strncmp(line, begin, strlen(begin)) != 0) {
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    length = strcspn(line, "\n");
    text = strndup(line, length);
    upper = text != NULL ? strstr(text, ",upperdir=") : NULL;
    upper = upper != NULL ? strdup(upper + strlen(",upperdir=")) : NULL;
    if (upper != NULL) {
        upper[strcspn(upper, ", ")] = '\0';
    }
    free(text);
    return upper;
}

/* Whether the upper layer of the overlayfs that has a file is in memory. */
static bool has_upper_in_memory(int fd)
{
    bool result = false;

#ifdef STATX_MNT_ID
    struct statx info;
    struct statfs layer;
    const char *cause;
    char *mounts = NULL;
    char *upper;
    size_t size;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &info) != 0 ||
        (info.stx_mask & STATX_MNT_ID) == 0 ||
        ds_accel__file_read(MOUNTS, MOUNTS_LIMIT_BYTES, &mounts, &size, &cause) < 0) {
        return false;
    }
    upper = find_upper(mounts, info.stx_mnt_id);
    result = upper != NULL && statfs(upper, &layer) == 0 && is_in_memory(&layer);
    free(upper);
    free(mounts);
#else
    (void)fd;
#endif
    return result;
}

bool ds_accel__is_timed(int fd)
{
    struct statfs info;

    if (fstatfs(fd, &info) != 0 || is_in_memory(&info)) {
        return false;
    }
    return (uint32_t)info.f_type != OVERLAYFS || !has_upper_in_memory(fd);
}

bool ds_accel__is_timed_path(const char *path)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    bool result = fd >= 0 && ds_accel__is_timed(fd);

    if (fd >= 0) {
        close(fd);
    }
    return result;
}
