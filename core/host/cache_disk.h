/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The store's access to the disk: cache_directory.c, cache_file.c, cache_lock.c. */
#ifndef DS_ACCEL_HOST_CACHE_DISK_H
#define DS_ACCEL_HOST_CACHE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ds_accel__text;

/*
 * Find the directory of the store: given, or if that is NULL, chosen by user and environment.
 * *directory_out is a new string, "" if there is no directory; if the call fails, a new string or
 * NULL. *is_private_out is true if the directory is inside a directory that users share. problem
 * explains why the directory must not be used (for example because its path is
 * relative, and so depends on the working directory), or is "". ERR_NO_MEMORY.
 */
int32_t ds_accel__cache_directory_find(const char *given, char **directory_out,
                                       bool *is_private_out, char *problem, size_t problem_size);
/*
 * Open the directory and return its descriptor. If it does not exist and can_make is true, create
 * it first. It must belong to this user (to root if the process has raised privileges, because
 * results that the calling user wrote must not be trusted), and no other user may write to it, or
 * read it if it is private. On failure returns -1, with the reason in problem and an errno in
 * *error_out: ENOENT if there is no directory.
 */
int ds_accel__cache_directory_open(const char *path, bool is_private, bool can_make, int *error_out,
                                   char *problem, size_t problem_size);
/*
 * True if several machines can mount the file system of the directory, or of the nearest parent
 * that exists, at once.
 */
bool ds_accel__cache_directory_is_shared(const char *path);
/* True if this user may create the directory in its parent directory. */
bool ds_accel__cache_directory_has_parent(const char *path);

/*
 * Read a file. *data_out is NULL if there is no file, or if *problem_out explains why it is
 * invalid. ERR_NO_MEMORY.
 */
int32_t ds_accel__cache_file_read(int directory_fd, const char *name, size_t limit_bytes,
                                  char **data_out, size_t *size_out, const char **problem_out);
/* Write a file under another name and rename it. False with errno on failure. */
bool ds_accel__cache_file_write(int directory, const char *name, const struct ds_accel__text *text);
/*
 * Overwrite the bytes of an existing file, which needs no disk space. False on failure, or if the
 * file is smaller than text or not a file of this user. A half-written file is invalid and is
 * created again later.
 */
bool ds_accel__cache_file_overwrite(int directory, const char *name,
                                    const struct ds_accel__text *text);

/*
 * Lock fd, the lock file of the store, which a process locks while it probes plugins. True on
 * success. False if flock() fails; after limit_ms, because the holder may hang; earlier if the
 * holder is stopped, because it then makes no progress: *stopped_out is its process ID, otherwise
 * 0. It must be seen stopped twice, and for 2 s if a tracer stops it.
 */
bool ds_accel__cache_lock_within(int fd, uint64_t limit_ms, pid_t *stopped_out);
/* Unlock fd. Closing it is not enough: a child of fork() may have the file open, too. */
void ds_accel__cache_lock_release(int fd);

#endif
