/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The out-of-memory message, and sums over an allocator's memory: oom.c. */
#ifndef DS_ACCEL_RUNTIME_OOM_H
#define DS_ACCEL_RUNTIME_OOM_H

#include "base/private.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sums over segments. */
struct ds_accel__memory_sums {
    uint64_t reserved_bytes;
    uint64_t allocated_bytes;
    uint64_t requested_bytes; /* of the allocated bytes */
    uint64_t pending_bytes;
    uint64_t free_bytes;
    uint64_t largest_free_bytes; /* one block */
    size_t segment_count;
    size_t block_count;
};

/* Percentage of the free bytes outside the largest free block. */
unsigned ds_accel__fragmentation_percent(const struct ds_accel__memory_sums *sums);

/* The allocator's state when an allocation fails, after it returned all releasable memory to the
 * driver. */
struct ds_accel__oom_facts {
    const char *device;          /* "cuda:1" */
    uint64_t asked_bytes;        /* the request after rounding */
    uint64_t allocated_bytes;    /* held by live allocations */
    uint64_t pending_bytes;      /* freed, waiting for a stream */
    uint64_t reserved_bytes;     /* held from the driver: allocated, pending and free bytes */
    uint64_t elsewhere_bytes;    /* free bytes of streams or pools other than the requester's */
    uint64_t largest_free_bytes; /* the largest block that the requester could use */
    uint64_t limit_bytes;        /* the allocator's own; 0: none */
    uint64_t device_total_bytes; /* 0: not known */
    uint64_t device_free_bytes;  /* with device_total_bytes: the driver's free bytes */
    uint64_t max_split_bytes;    /* 0: off */
    uint64_t largest_bytes;      /* limit of the driver for one allocation; 0: not known */
    bool can_grow;               /* the backend has virtual memory */
    bool is_growable;            /* growable segments are on */
};

/* The setting that would have helped and is off. */
enum ds_accel__oom_advice {
    DS_ACCEL__OOM_ADVICE_NONE,     /* too little memory, or no setting helps */
    DS_ACCEL__OOM_ADVICE_GROWABLE, /* growable_segments */
    DS_ACCEL__OOM_ADVICE_LIMIT,    /* a higher limit_bytes */
    DS_ACCEL__OOM_ADVICE_SPLIT,    /* max_split_bytes */
    DS_ACCEL__OOM_ADVICE_SMALLER   /* several allocations instead of one */
};

enum ds_accel__oom_advice ds_accel__oom_advise(const struct ds_accel__oom_facts *facts);
/* One line: all of the facts, and the advice or how much is missing. Allocates nothing. */
void ds_accel__oom_describe(const struct ds_accel__oom_facts *facts, char *text, size_t text_size);

#endif
