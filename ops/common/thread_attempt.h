/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Finding out how many threads can be started. */
#ifndef OPS_THREAD_ATTEMPT_H
#define OPS_THREAD_ATTEMPT_H

#include <stdint.h>

/* Start so many threads with the stacks of OpenMP's, all alive at once, and end them. Return how
 * many could be started; after that, so many can be started again. */
uint64_t ops__threads_attempt(uint64_t count);

#endif
