/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the tests of the op builder's parts share: failing allocations, scripts as programs. */
#ifndef DS_ACCEL_TESTS_OPBUILD_H
#define DS_ACCEL_TESTS_OPBUILD_H

#include "fixture.h"

#include <stdbool.h>

/* An array of arguments that ends with NULL. */
#define ARGUMENTS(...) ((char **)(uintptr_t)(const char *[]){__VA_ARGS__, NULL})

/*
 * Fail each allocation in turn: call attempt() again and again, with the first, the second ...
 * allocation failing, until it makes no further one. attempt() releases what it made, and returns a
 * status. It must leak nothing and return OK or an error; without a failure it must return OK.
 * Returns how many allocations failed; 0 if a sanitizer has malloc().
 */
unsigned long fail_each(int32_t (*attempt)(void));

/* Write an executable script at test_dir()/path; returns its path. */
const char *write_script(const char *path, const char *text);
/* Wait until a condition holds, at most 20 s; returns whether it does. */
bool wait_until(bool (*holds)(void *data), void *data);
/* A file exists and is not empty. */
bool file_is_written(void *path);
/* The process with the number that is in the file does not run: it is gone, or a zombie. */
bool process_is_gone(void *path);
/* Remove what the tests must not inherit: CC and the like. */
void clear_variables(void);

#endif
