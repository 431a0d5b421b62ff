/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Files that a failed job has left in POSIX shared memory: shared_memory.c.
 *
 * A file of a process that was killed stays in /dev/shm and uses memory. It is never removed here:
 * the kernel does not record which process made a file, and it may hold what the next job needs.
 */
#ifndef DS_ACCEL_LAUNCH_SHARED_MEMORY_H
#define DS_ACCEL_LAUNCH_SHARED_MEMORY_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define DS_ACCEL__SHARED_DIRECTORY "/dev/shm"
#define DS_ACCEL__SHARED_ENTRIES 10000u                 /* the most that are listed or examined */
#define DS_ACCEL__SHARED_SIZE_BYTES (UINT64_C(1) << 20) /* smaller files are not reported */
#define DS_ACCEL__SHARED_FILES 10u                      /* the most that are named */

struct ds_accel__shared_file {
    char name[sizeof(((struct dirent *)NULL)->d_name)];
    uint64_t size_bytes; /* of its allocated blocks */
};

/* Zero: not listed. */
struct ds_accel__shared_memory {
    const char *directory; /* borrowed */
    /* before the ranks start */
    uint64_t *inodes; /* [inode_count], of the files that existed */
    uint32_t inode_count;
    uint64_t device;
    struct timespec start;
    bool is_listed;
    /* after the end of all processes */
    bool is_examined;
    bool is_partial;      /* the directory had more entries than are examined */
    uint32_t found_count; /* unused files of the job's time, */
    uint64_t found_bytes; /* all of them together, */
    uint32_t file_count;  /* and the largest, by size */
    struct ds_accel__shared_file files[DS_ACCEL__SHARED_FILES];
};

/*
 * Note which files exist: the directory is read once, and no file of it. is_listed stays false if
 * the directory cannot be read or has more than DS_ACCEL__SHARED_ENTRIES entries, or memory is
 * exhausted. `memory` is zero before; shared_memory_clear() releases what it holds afterwards.
 */
void ds_accel__shared_memory_list(struct ds_accel__shared_memory *memory, const char *directory);
/*
 * Find the files that are new since shared_memory_list(): regular files on tmpfs, of this user and
 * accessible to no other, written since then, of at least DS_ACCEL__SHARED_SIZE_BYTES, that no
 * process has open or mapped. To be called once, when no process of the job is left. SIGIO is
 * ignored meanwhile, so no other thread may need it. Allocates nothing that must be released.
 * is_examined stays false if the files were not listed, the directory cannot be read, or it is
 * another one.
 */
void ds_accel__shared_memory_find(struct ds_accel__shared_memory *memory);
void ds_accel__shared_memory_clear(struct ds_accel__shared_memory *memory);

#endif
