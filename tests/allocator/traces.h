/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Sequences of allocations and frees, from named generators or from a file. */
#ifndef DS_ACCEL_TESTS_ALLOCATOR_TRACES_H
#define DS_ACCEL_TESTS_ALLOCATOR_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_step {
    uint64_t size_bytes; /* 0: the step frees the block */
    uint32_t block;      /* numbered in the order of allocation */
    uint32_t stream;
    uint64_t live_bytes; /* live after this step, each block rounded to 512 */
};

struct trace {
    struct trace_step *steps;
    size_t count;
    size_t capacity;
    uint32_t block_count;
    uint64_t live_peak_bytes; /* peak of live_bytes */
};

#define TRACE_GENERATORS 12

const char *trace_generator_name(unsigned generator);
void trace_generate(unsigned generator, uint64_t seed, struct trace *trace);
/* Read lines "SIZE", "SIZE STREAM" and "-BLOCK" (a free); '#' begins a comment. Exit with 2 if the
 * file is invalid. */
void trace_read(const char *path, struct trace *trace);
void trace_clear(struct trace *trace);

#endif
