/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What compilers answered, remembered: answers.c. */
#ifndef DS_ACCEL_OPS_ANSWERS_H
#define DS_ACCEL_OPS_ANSWERS_H

#include "ops/arguments.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Remember an answer for the process, until one of the files, on which it depends, changes. files
 * ends with NULL. Nothing is remembered if a file was changed just now or is absent, or without
 * memory. Any thread may call these functions.
 */
void ds_accel__answer_remember(const char *question, char *const *files, const char *answer);
/* The remembered answer as a new string; NULL: there is none, or a file has changed. */
char *ds_accel__answer_recall(const char *question);
/* Add the files on which the answer to a question depends. False: it is not remembered, or does not
 * hold any more. */
bool ds_accel__answer_add_files(const char *question, struct ds_accel__arguments *list);
/* How often an answer was remembered: it grows when there is something to save. */
size_t ds_accel__answers_count(void);
/*
 * The answers as a new JSON array, and back, under the conditions of ds_accel__digests_save().
 * Malformed elements are ignored. NULL if memory is exhausted.
 */
json_t *ds_accel__answers_save(void);
void ds_accel__answers_restore(const json_t *answers);
void ds_accel__answers_forget(void);

#endif
