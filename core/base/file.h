/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Reading whole files and directories: file.c. */
#ifndef DS_ACCEL_BASE_FILE_H
#define DS_ACCEL_BASE_FILE_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Read a regular file of at most limit_bytes into a new, NUL-terminated buffer. Returns
 * DS_ACCEL_OK; ERR_NOT_FOUND; ERR_IO, with the cause, such as "it is a directory", in *cause_out
 * (static text or the result of strerror()); ERR_NO_MEMORY. Files of /proc and /sys, whose reported
 * size is 0, can also be read.
 */
int32_t ds_accel__file_read(const char *path, size_t limit_bytes, char **data_out, size_t *size_out,
                            const char **cause_out);
/*
 * List the names in a directory that pass the filter, sorted bytewise, for
 * ds_accel__names_free(). If the directory does not exist, the list is empty and the status is
 * DS_ACCEL_OK. ERR_NO_MEMORY; other errors with the cause, as for ds_accel__file_read().
 */
int32_t ds_accel__dir_list(const char *path, bool (*filter)(const char *name), char ***names_out,
                           size_t *count_out, const char **cause_out);
void ds_accel__names_free(char **names, size_t count);
/* False if a file of size_bytes would exceed RLIMIT_FSIZE: SIGXFSZ would then kill the process. */
bool ds_accel__file_may_have(size_t size_bytes);

#endif
