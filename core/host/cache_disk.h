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
 * Find the directory: given, or if that is NULL, chosen by user and environment; "" if there is
 * none. *directory_out: a new string, also when the call fails, or NULL. *is_private_out: it is
 * inside a directory that users share. problem: why the directory must not be used, or ""; a
 * relative path, for example, would depend on the working directory. ERR_NO_MEMORY.
 */
int32_t ds_accel__cache_directory_find(const char *given, char **directory_out,
                                       bool *is_private_out, char *problem, size_t problem_size);
/*
 * Open the directory, and create it first if needed and can_make. It must belong to this user (to
 * root if the process has raised rights: results that the caller wrote must not be trusted), and no
 * other user may write to it, or read it if it is private. -1: problem has the reason, and
 * *error_out is ENOENT if there is no directory.
 */
int ds_accel__cache_directory_open(const char *path, bool is_private, bool can_make, int *error_out,
                                   char *problem, size_t problem_size);
/* True if the directory could be created. */
bool ds_accel__cache_directory_has_parent(const char *path);

/* *data_out NULL: there is no file, or *problem_out says why it is invalid. ERR_NO_MEMORY. */
int32_t ds_accel__cache_file_read(int directory_fd, const char *name, size_t limit_bytes,
                                  char **data_out, size_t *size_out, const char **problem_out);
/* Write under another name and rename; on failure errno has the cause. */
bool ds_accel__cache_file_write(int directory, const char *name, const struct ds_accel__text *text);
/*
 * Overwrite the existing bytes, which needs no disk space. A half-written file is invalid and is
 * created again later.
 */
bool ds_accel__cache_file_overwrite(int directory, const char *name,
                                    const struct ds_accel__text *text);

/*
 * Wait for other processes that probe plugins, but at most limit_ms: a process may hang. A stopped
 * holder makes no progress: then the wait ends, and *stopped_out is that process. It has to be seen
 * stopped twice, because the present holder may not have written its process ID yet.
 */
bool ds_accel__cache_lock_within(int fd, uint64_t limit_ms, pid_t *stopped_out);

#endif
