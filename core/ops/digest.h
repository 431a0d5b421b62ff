/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Digests of the files of compilers and of headers, remembered: digest.c. */
#ifndef DS_ACCEL_OPS_DIGEST_H
#define DS_ACCEL_OPS_DIGEST_H

#include "ds_accel.h"

#include <jansson.h>
#include <stdbool.h>

/*
 * SHA-256 of a file's contents in hexadecimal digits. The digest is remembered for the process and
 * found again by device, inode, size and both times of the file (digest.c says why that is right
 * for compilers and installed headers, and only for them). Any thread may call this. ERR_IO with
 * the cause as error message; ERR_NOT_FOUND; ERR_NO_MEMORY.
 */
int32_t ds_accel__digest_file(const char *path, char digest_out[65]);
#define DS_ACCEL__FILE_KEY_SIZE 160
/*
 * Write what identifies the contents of a file, or the entries of a directory: device, inode, size
 * and both times. False: it is neither, or a file that could change with the same times, because it
 * was changed just now or is in memory.
 */
bool ds_accel__file_key(const char *path, char key_out[DS_ACCEL__FILE_KEY_SIZE]);
/*
 * The remembered digests as a new JSON object, to be stored on this host, in a place that only
 * trusted users can write, for at most as long as the host runs: device numbers change when it
 * boots. NULL if memory is exhausted.
 */
json_t *ds_accel__digests_save(void);
/* Remember the digests of an object of ds_accel__digests_save(). Malformed members are ignored. */
void ds_accel__digests_restore(const json_t *digests);
size_t ds_accel__digests_count(void); /* of the remembered ones */
/* Forget all digests; returns how many there were. */
size_t ds_accel__digests_forget(void);

#endif
