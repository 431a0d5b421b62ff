/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* File systems whose times show changes: timed.c. */
#ifndef DS_ACCEL_OPS_TIMED_H
#define DS_ACCEL_OPS_TIMED_H

#include <stdbool.h>

/* Whether a change of an open file's contents changes its times. False if that is unknown. */
bool ds_accel__is_timed(int fd);
/* The same for a path. */
bool ds_accel__is_timed_path(const char *path);

#endif
