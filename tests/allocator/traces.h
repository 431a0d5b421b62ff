/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Sequences of allocating and freeing: made up by named generators, or read from a file. */
#ifndef DS_ACCEL_TESTS_ALLOCATOR_TRACES_H
#define DS_ACCEL_TESTS_ALLOCATOR_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_step {
    uint64_t size_bytes; /* 0: freed */
    uint32_t block;      /* numbered as they are allocated */
    uint32_t stream;
    uint64_t live_bytes; /* then, each rounded to 512 */
};

struct trace {
    struct trace_step *steps;
    size_t count;
    size_t capacity;
    uint32_t block_count;
    uint64_t live_peak_bytes; /* at most at a time, each rounded to 512 */
};

#define TRACE_GENERATORS 12

const char *trace_generator_name(unsigned generator);
void trace_generate(unsigned generator, uint64_t seed, struct trace *trace);
/* Lines "SIZE", "SIZE STREAM" and "-BLOCK"; '#' begins a remark. Exits with 2 if it is none. */
void trace_read(const char *path, struct trace *trace);
void trace_clear(struct trace *trace);

#endif
