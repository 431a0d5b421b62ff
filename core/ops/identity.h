/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What a compiler that was found is: identity.c. */
#ifndef DS_ACCEL_OPS_IDENTITY_H
#define DS_ACCEL_OPS_IDENTITY_H

#include "ops/compiler.h"

/*
 * Set version and digest of a compiler whose language, arguments and path are set. host_arguments:
 * nvcc's host compiler, ends with NULL; NULL for other languages. ERR_NOT_FOUND, ERR_IO with the
 * cause as error message; ERR_NO_MEMORY.
 */
int32_t ds_accel__compiler_identify(struct ds_accel__compiler *compiler,
                                    char *const *host_arguments);
/* Add the variables that decide which programs a compiler runs, with their values. */
void ds_accel__identity_add_variables(struct ds_accel__text *text);
/* Add the directories of PATH that exist: a program that is installed in one of them could be run
 * instead of another one. */
void ds_accel__identity_add_directories(struct ds_accel__arguments *list);
/*
 * The host compiler, if arguments[*index] is the option of nvcc that names it; else NULL. *index
 * becomes that of the option's last word.
 */
const char *ds_accel__compiler_host(char *const *arguments, size_t *index);
/*
 * Run the compiler with up to two more arguments. Its output is a new string; if it fails, ERR_IO
 * with its output as error message. ERR_NO_MEMORY.
 */
int32_t ds_accel__compiler_ask(char *const *arguments, const char *first, const char *second,
                               char **output_out);

#endif
