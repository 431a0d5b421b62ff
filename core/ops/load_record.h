/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What is remembered of a load, as text: load_record.c. */
#ifndef DS_ACCEL_OPS_LOAD_RECORD_H
#define DS_ACCEL_OPS_LOAD_RECORD_H

#include "ops/compiler.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define DS_ACCEL__OP_NAME_SIZE 64
#define DS_ACCEL__IDENTITY_SIZE 17 /* of a text */

/* Texts are borrowed. Identities are those of ds_accel__identity_text(). */
struct ds_accel__load_record {
    const char *op;
    const char *path; /* of the op's file */
    const char *path_identity;
    const char *manifest;
    const char *manifest_identity;
    const char *files_identity;
    struct {
        const char *name; /* such as "c++" */
        const char *path;
    } compilers[DS_ACCEL__LANGUAGE_COUNT];
    size_t compiler_count;
    const char *files; /* lines of ds_accel__load_record_files() */
};

/*
 * Parse a text that ds_accel__load_record_format() made for this question. The record borrows from
 * the text, which is changed. False: it is for another question, or it has not this form.
 */
bool ds_accel__load_record_parse(char *text, const char *question,
                                 struct ds_accel__load_record *record);
/* NULL if a text has more than one line, or memory is exhausted. */
char *ds_accel__load_record_format(const struct ds_accel__load_record *record,
                                   const char *question);
/*
 * Write the absolute paths of an array, which is sorted, as lines for
 * ds_accel__load_record_identify(). NULL if a path has more than one line, or memory is exhausted.
 */
char *ds_accel__load_record_files(const char **paths, size_t count);
/*
 * Write what identifies the contents of the files: a number over device, inode, size and both times
 * of each. False: a file is absent, or is neither a regular file nor a directory.
 */
bool ds_accel__load_record_identify(const char *files, uint64_t *identity_out);
/* The same number for a file more: identity is that of the files before, or 0. */
uint64_t ds_accel__identity_add(const struct stat *info, uint64_t identity);
void ds_accel__identity_text(uint64_t identity, char text[DS_ACCEL__IDENTITY_SIZE]);

#endif
