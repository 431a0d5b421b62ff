/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The rules of torch's CUDA allocator, implemented from its documentation and its source,
 * independently of our allocator, whose use of memory is compared with them. This implementation
 * only computes addresses; every search is linear.
 *
 * The rules are not checked against torch itself: Debian's torch has no CUDA, and its host
 * allocator is a different one. compare.c checks them with sequences that were computed by hand.
 */
#ifndef DS_ACCEL_TESTS_ALLOCATOR_RULES_H
#define DS_ACCEL_TESTS_ALLOCATOR_RULES_H

#include <stdbool.h>
#include <stdint.h>

#define RULES_STREAMS 4

struct rules;

struct rules_figures {
    uint64_t reserved_bytes;
    uint64_t reserved_peak_bytes;
    uint64_t split_bytes; /* free parts of segments that are not free as a whole */
    uint64_t split_count;
    uint64_t retry_count;
};

/* Create a device with memory_bytes, with expandable segments or without. NULL: out of memory. */
struct rules *rules_create(uint64_t memory_bytes, bool is_expandable);
void rules_destroy(struct rules *rules);
/* Return the block, to be freed by rules_free(); NULL: out of memory. */
void *rules_alloc(struct rules *rules, unsigned stream, uint64_t size_bytes);
void rules_free(struct rules *rules, void *given);
const struct rules_figures *rules_figures(const struct rules *rules);

#endif
