/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The scenarios of ops that are built, each with a recipe, a compiler and a cache of its own. */
#ifndef DS_ACCEL_TESTS_ALLOC_BUILT_H
#define DS_ACCEL_TESTS_ALLOC_BUILT_H

#include "ds_accel_tools.h"

#include <stdbool.h>

/* Append text to the result of the running scenario; NULL is a valid text. */
void answer(const char *text);

/* Report the ops of cpu, or the one of a builder, as a result. Returns the first failure. */
int32_t report_ops(const struct ds_accel_options *options, const char *name, uint32_t format);

/* True for the scenarios below. */
bool built_has(int32_t (*run)(void));
/* Make the recipes, the compiler and a cache with a built op, unless they exist; `build` has the
 * headers, and the options the other directories. False after an error, which is printed. */
bool built_prepare(const char *build, const struct ds_accel_options *options);
void built_remove(void);

int32_t list_built_ops(void);
int32_t show_built_op(void);
int32_t show_op_to_build(void);
int32_t load_remembered_op(void);
int32_t load_cached_op(void);
int32_t load_broken_op(void);
int32_t build_broken_op(void);
int32_t build_op(void);

#endif
