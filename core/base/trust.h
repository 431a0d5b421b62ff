/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Results of the checks of a plugin (gates), and checks of which users can modify a file: trust.c,
 * trust_raised.c.
 */
#ifndef DS_ACCEL_BASE_TRUST_H
#define DS_ACCEL_BASE_TRUST_H

#include "base/private.h"
#include "base/reason.h"
#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* The result of a gate, which is a check that can reject a plugin: the reason and the evidence. */
struct ds_accel__finding {
    enum ds_accel__reason_id reason; /* NONE: no failure */
    char detail[512];
};

/*
 * The user whose files are trusted like root's: the effective user, or only root if the process has
 * rights that the effective user does not have by itself (trust.c).
 */
uid_t ds_accel__trusted_user(void);
/*
 * True if the process has more rights than its effective user: set-user-ID, set-group-ID and
 * file-capability programs, and processes whose real, effective and saved user IDs differ.
 */
bool ds_accel__has_raised_rights(void);

DS_ACCEL__PRIVATE void ds_accel__finding_set(struct ds_accel__finding *finding,
                                             enum ds_accel__reason_id reason, const char *format,
                                             ...) __attribute__((format(printf, 3, 4)));

/* Directories that passed the check, kept open while a context probes its plugins (trust.c). */
struct ds_accel__trust;

struct ds_accel__trust *ds_accel__trust_create(void); /* NULL: memory is exhausted */
void ds_accel__trust_destroy(struct ds_accel__trust *trust);
/* Close every directory: the next check walks its path again from the root. */
void ds_accel__trust_reset(struct ds_accel__trust *trust);
/*
 * Check every directory and link of an absolute path and open the file. DS_ACCEL_OK with
 * finding->reason set: the file is rejected, and *fd_out is -1. ERR_NO_MEMORY; ERR_LIMIT: out of
 * descriptors.
 */
int32_t ds_accel__trust_open(struct ds_accel__trust *trust, const char *path, int *fd_out,
                             struct stat *info_out, struct ds_accel__finding *finding);
/*
 * Like ds_accel__trust_open(), without opening the file. Each further file of a directory costs one
 * fstatat().
 */
int32_t ds_accel__trust_stat(struct ds_accel__trust *trust, const char *path, struct stat *info_out,
                             struct ds_accel__finding *finding);
/*
 * In a process with raised rights, check a file that the caller chose: set the finding if a user
 * other than root could have changed the file, or if it cannot be checked. In other processes do
 * nothing. path is absolute. DS_ACCEL_OK, also with a finding; ERR_NO_MEMORY; ERR_LIMIT.
 */
int32_t ds_accel__trust_if_raised(const char *path, struct ds_accel__finding *finding);
/*
 * Like ds_accel__trust_if_raised(), for a plugin that the caller chose by its path (lint,
 * conformance). Without raised rights such a plugin runs regardless of its owner. ERR_NOT_USABLE
 * with the finding as error message.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__trust_named_file(const char *path);
/* Set the reason file_changed if the path no longer leads to the file that was checked, or if the
 * file was written to since. */
void ds_accel__trust_compare(const char *path, const struct stat *checked,
                             struct ds_accel__finding *finding);
/* SHA-256 of an open file in lower-case hexadecimal digits; ERR_IO with the cause. */
DS_ACCEL__PRIVATE int32_t ds_accel__trust_hash(int fd, char hex_out[65], const char **cause_out);

#endif
