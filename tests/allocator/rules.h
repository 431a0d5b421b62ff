/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The rules by which torch's CUDA allocator works, as its documentation and its source tell them,
 * written apart from ours: what our allocator's use of memory is compared with. It knows addresses
 * only; every search looks at everything.
 *
 * The rules are not checked beside torch itself: Debian's torch has no CUDA, and the allocator that
 * it uses for the host is another. compare.c checks them on sequences that were computed by hand.
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

/* A device with so much memory, with expandable segments or without. NULL: no memory. */
struct rules *rules_create(uint64_t memory_bytes, bool is_expandable);
void rules_destroy(struct rules *rules);
/* What was allocated, for rules_free(); NULL: out of memory. */
void *rules_alloc(struct rules *rules, unsigned stream, uint64_t size_bytes);
void rules_free(struct rules *rules, void *given);
const struct rules_figures *rules_figures(const struct rules *rules);

#endif
