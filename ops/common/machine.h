/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Files of /proc and /sys for ops. They are read below the directory DS_ACCEL_ROOT, if it is set:
 * a recorded or simulated machine. */
#ifndef OPS_COMMON_MACHINE_H
#define OPS_COMMON_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Open a file such as "/proc/meminfo" for reading; NULL: there is none. */
FILE *ops__machine_open(const char *path);
/* Read the first line of a file, without its end; false: there is no such file, or it is empty. */
bool ops__machine_line(const char *path, char *text, size_t size);

#endif
