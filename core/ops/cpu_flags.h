/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Flags that select instruction sets: cpu_flags.c. */
#ifndef DS_ACCEL_OPS_CPU_FLAGS_H
#define DS_ACCEL_OPS_CPU_FLAGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether a flag says for which CPU to compile: most that begin with -m do, and icpx's -xNAME. */
bool ds_accel__flag_selects_cpu(const char *flag);
/*
 * Whether a flag, or one that nvcc passes on, lets the compiler use instructions that "cpu" of the
 * recipe's requirements (NULL: none) does not ask for. Then why is a sentence whose subject is the
 * flag, with the requirement that is missing.
 */
bool ds_accel__flag_exceeds(const char *flag, const json_t *requires, char *why, size_t why_size);

#endif
