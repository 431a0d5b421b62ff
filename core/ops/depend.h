/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What a compiler read, as it reports with -MD: depend.c. */
#ifndef DS_ACCEL_OPS_DEPEND_H
#define DS_ACCEL_OPS_DEPEND_H

#include "ds_accel.h"
#include "ops/arguments.h"

#include <stddef.h>

/*
 * Add the files on which the first rule of a make file depends. ERR_INVALID: the text is no rule.
 * A failed allocation is reported by ds_accel__arguments_take().
 */
int32_t ds_accel__depend_read(const char *text, size_t size_bytes,
                              struct ds_accel__arguments *files);

/* Add the words of a line as make reads them. As above. */
void ds_accel__depend_words(const char *line, size_t size_bytes, struct ds_accel__arguments *words);

#endif
