/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the store alone needs of the disk: cache_directory.c, cache_file.c, cache_lock.c. */
#ifndef DS_ACCEL_HOST_CACHE_DISK_H
#define DS_ACCEL_HOST_CACHE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ds_accel__text;

/*
 * Where the directory is: as given, or NULL, then by user and environment; "" if there is none.
 * *directory_out: a new string, also where the call fails, or NULL. *is_private_out: it is one in a
 * directory that other users share. problem says why it is none to use, or is empty: a relative
 * path, say, would be another directory in each process's directory. ERR_NO_MEMORY.
 */
int32_t ds_accel__cache_directory_find(const char *given, char **directory_out,
                                       bool *is_private_out, char *problem, size_t problem_size);
/*
 * Open it, made if need be; only if it is this user's (root's if the process has raised rights:
 * what the caller writes must not count as found) and nobody else may write to it, or, if it is
 * private, not even read it. -1: *error_out is ENOENT if there is none, and problem says why.
 */
int ds_accel__cache_directory_open(const char *path, bool is_private, bool can_make, int *error_out,
                                   char *problem, size_t problem_size);
/* Could it be made? */
bool ds_accel__cache_directory_has_parent(const char *path);

/* *data_out NULL: there is none, or *problem_out says why not to believe it. ERR_NO_MEMORY. */
int32_t ds_accel__cache_file_read(int directory_fd, const char *name, size_t limit_bytes,
                                  char **data_out, size_t *size_out, const char **problem_out);
/* Beside itself, then renamed; errno says what went wrong. */
bool ds_accel__cache_file_write(int directory, const char *name, const struct ds_accel__text *text);
/* Over the bytes that are there, which takes no room. Should it stop half-way, it is made anew. */
bool ds_accel__cache_file_overwrite(int directory, const char *name,
                                    const struct ds_accel__text *text);

/*
 * Wait for others who are asking plugins, but not for ever: one of them may hang. One that is
 * stopped finds nothing out until somebody lets it go on: *stopped_out is that process. It has to
 * be seen so twice, because the one that signed before may not have written its name yet.
 */
bool ds_accel__cache_lock_within(int fd, uint64_t limit_ms, pid_t *stopped_out);

#endif
