/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The division of work among OpenMP's threads. */
#ifndef OPS_THREADS_H
#define OPS_THREADS_H

#include <stdint.h>

/* Do parts [first, end) of the work. */
typedef void (*ops__part_fn)(const void *work, uint64_t first, uint64_t end);

/* Return how many threads to use if the caller wants so many; 0: OpenMP's choice. */
uint64_t ops__threads_usable(uint32_t wanted);
/* Call the function for adjacent ranges of all parts, one range per thread. Each thread has the
 * same range in each call with the same numbers, so that pages that it touched first stay on its
 * NUMA node. OpenMP's threads have the standard floating-point mode (float_mode.h). */
void ops__threads_run(ops__part_fn function, const void *work, uint64_t parts, uint64_t threads);

#endif
