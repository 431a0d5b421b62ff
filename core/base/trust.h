/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Findings of the gates; who may have written a file: trust.c, trust_raised.c. */
#ifndef DS_ACCEL_BASE_TRUST_H
#define DS_ACCEL_BASE_TRUST_H

#include "base/private.h"
#include "base/reason.h"
#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* A failure of a gate: its reason and evidence. */
struct ds_accel__finding {
    enum ds_accel__reason_id reason; /* NONE: no failure */
    char detail[512];
};

/*
 * The user whose files are as trustworthy as root's: the effective user, or root alone if the
 * process has rights that the effective user does not have by itself (trust.c).
 */
uid_t ds_accel__trusted_user(void);
/* True if the process has such rights: set-user, set-group and file-capability programs. */
bool ds_accel__has_raised_rights(void);

DS_ACCEL__PRIVATE void ds_accel__finding_set(struct ds_accel__finding *finding,
                                             enum ds_accel__reason_id reason, const char *format,
                                             ...) __attribute__((format(printf, 3, 4)));

/* Directories that were walked, kept open while a context asks its plugins (trust.c). */
struct ds_accel__trust;

struct ds_accel__trust *ds_accel__trust_create(void); /* NULL: no memory */
void ds_accel__trust_destroy(struct ds_accel__trust *trust);
/* Forget every directory, and close it: the next call walks anew. */
void ds_accel__trust_reset(struct ds_accel__trust *trust);
/*
 * Open the file at an absolute path, every directory and link on the way checked. DS_ACCEL_OK with
 * finding->reason set: refused, and *fd_out is -1. ERR_NO_MEMORY; ERR_LIMIT, no descriptor is left.
 */
int32_t ds_accel__trust_open(struct ds_accel__trust *trust, const char *path, int *fd_out,
                             struct stat *info_out, struct ds_accel__finding *finding);
/* The same checks without opening the file: one fstatat() for one more file of a directory. */
int32_t ds_accel__trust_stat(struct ds_accel__trust *trust, const char *path, struct stat *info_out,
                             struct ds_accel__finding *finding);
/*
 * With raised rights: refuse a file that anybody but root could have changed. Without: nothing, as
 * the caller named the file. path: absolute. ERR_NO_MEMORY; ERR_LIMIT.
 */
int32_t ds_accel__trust_if_raised(const char *path, struct ds_accel__finding *finding);
/*
 * The same for a plugin that the caller names (lint, conformance), which is otherwise run whoever
 * owns it. ERR_NOT_USABLE with the finding.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__trust_named_file(const char *path);
/* file_changed if the path no longer leads to the file as it was checked. */
void ds_accel__trust_compare(const char *path, const struct stat *checked,
                             struct ds_accel__finding *finding);
/* SHA-256 of an open file, in lower-case digits; ERR_IO with the cause. */
DS_ACCEL__PRIVATE int32_t ds_accel__trust_hash(int fd, char hex_out[65], const char **cause_out);

#endif
