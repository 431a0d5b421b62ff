/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The out-of-memory message, and sums over an allocator's memory: oom.c. */
#ifndef DS_ACCEL_RUNTIME_OOM_H
#define DS_ACCEL_RUNTIME_OOM_H

#include "base/private.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sums over one or more segments. */
struct ds_accel__memory_sums {
    uint64_t reserved_bytes;
    uint64_t allocated_bytes;
    uint64_t requested_bytes; /* bytes requested for the allocated blocks */
    uint64_t pending_bytes;
    uint64_t free_bytes;
    uint64_t largest_free_bytes; /* size of the largest free block */
    size_t segment_count;
    size_t block_count;
};

/* Return the percentage of the free bytes that are outside the largest free block. */
unsigned ds_accel__fragmentation_percent(const struct ds_accel__memory_sums *sums);

/* The allocator's state when an allocation fails, after the allocator returned all releasable
 * memory to the driver. */
struct ds_accel__oom_facts {
    const char *device;       /* "cuda:1" */
    uint64_t asked_bytes;     /* size of the request */
    uint64_t allocated_bytes; /* bytes in live allocations */
    uint64_t pending_bytes;   /* bytes freed, but still used by a stream */
    uint64_t reserved_bytes;  /* obtained from the driver: allocated, pending and free bytes */
    /* free bytes of other pools and of capturing streams, which the request cannot use */
    uint64_t elsewhere_bytes;
    uint64_t largest_free_bytes; /* the largest block that the requester could use */
    uint64_t limit_bytes;        /* limit set for the allocator; 0: none */
    uint64_t device_total_bytes; /* 0: not known */
    uint64_t device_free_bytes;  /* the driver's free bytes; valid if device_total_bytes is not 0 */
    uint64_t max_split_bytes;    /* setting max_split_bytes; 0: off */
    uint64_t largest_bytes;      /* the driver's limit for one allocation; 0: not known */
    bool can_grow;               /* the backend supports virtual memory */
    bool is_growable;            /* growable segments are on */
};

/* The change of a setting, or of the program, that would have avoided the failure. */
enum ds_accel__oom_advice {
    DS_ACCEL__OOM_ADVICE_NONE,     /* there is too little memory, or no setting helps */
    DS_ACCEL__OOM_ADVICE_GROWABLE, /* turn growable_segments on */
    DS_ACCEL__OOM_ADVICE_LIMIT,    /* raise limit_bytes */
    DS_ACCEL__OOM_ADVICE_SPLIT,    /* set max_split_bytes */
    DS_ACCEL__OOM_ADVICE_SMALLER   /* make several allocations instead of one */
};

enum ds_accel__oom_advice ds_accel__oom_advise(const struct ds_accel__oom_facts *facts);
/* Write one line with the facts, and the advice; without advice, how much memory is missing, or
 * that enough is free, but in pieces. Allocates no memory. */
void ds_accel__oom_describe(const struct ds_accel__oom_facts *facts, char *text, size_t text_size);

#endif
