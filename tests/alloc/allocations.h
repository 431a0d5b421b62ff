/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Allocations that fail on request. A program that is linked with allocations.c uses its malloc()
 * and relatives in place of glibc's, in every library of the process: jansson, libltdl and the
 * dynamic linker too. A sanitizer has its own malloc(): then nothing is counted, and nothing fails.
 */
#ifndef DS_ACCEL_TESTS_ALLOC_ALLOCATIONS_H
#define DS_ACCEL_TESTS_ALLOC_ALLOCATIONS_H

#include <stdbool.h>

/* False if a sanitizer has malloc(). */
bool allocations_can_fail(void);
/* From now on, count the allocations of this process's threads, and let the one with this number
 * fail; 0: none fails. */
void allocations_count(unsigned long failing);
/* Stop counting. Returns the number of allocations. *left_out: the number of blocks that were
 * allocated meanwhile minus that of blocks that were freed. */
unsigned long allocations_stop(long *left_out);
/* Number of allocations so far. */
unsigned long allocations_counted(void);
/* Children of fork() count in their own copy of the numbers, and can fail. After this call, they
 * do neither. */
void allocations_spare_children(void);

#endif
