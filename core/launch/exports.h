/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The variables that the ranks of other hosts get: exports.c. */
#ifndef DS_ACCEL_LAUNCH_EXPORTS_H
#define DS_ACCEL_LAUNCH_EXPORTS_H

#include "launch/plan.h"

/*
 * Read the files named by DS_ENV_FILE, or .deepspeed_env, in the home directory and in the working
 * directory. A file that does not exist is left out; a file that cannot be read has a cause.
 * ERR_NO_MEMORY. Release them with ds_accel__env_files_clear().
 */
int32_t ds_accel__env_files_read(const char *const *environment, const char *directory,
                                 struct ds_accel__env_file files[static DS_ACCEL__ENV_FILE_LIMIT],
                                 uint32_t *count_out);
void ds_accel__env_files_clear(struct ds_accel__env_file *files, uint32_t count);
/*
 * Add to an object the variables of the environment that other hosts get, and those of the
 * environment files: names and values, which may be other than UTF-8. ERR_CONFIG names a file and
 * each of its wrong lines, at most eight; ERR_IO; ERR_NO_MEMORY.
 */
int32_t ds_accel__exports_make(const struct ds_accel__launch_facts *facts, json_t *exports);

#endif
