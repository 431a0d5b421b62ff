/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The clock of tests, simulators and bench programs. */
#ifndef TESTS_CLOCK_H
#define TESTS_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline double elapsed_ns(uint64_t start_ns)
{
    return (double)(now_ns() - start_ns);
}

#endif
