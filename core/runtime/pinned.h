/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The pool of pinned memory: interface between pinned_pool.c, which keeps the pool, and pinned.c,
 * which uses it. */
#ifndef DS_ACCEL_RUNTIME_PINNED_H
#define DS_ACCEL_RUNTIME_PINNED_H

#include "ds_accel.h"

#include <pthread.h>
#include <stdbool.h>

struct ds_accel__device;
struct ds_accel__stream;

#define DS_ACCEL__PINNED_LISTS 256u

enum ds_accel__pinned_state {
    DS_ACCEL__PINNED_IN_USE,
    DS_ACCEL__PINNED_READY,
    DS_ACCEL__PINNED_WAITING /* freed, while streams use it */
};

/* A stream that uses a block; after the block was freed, the event or condition that shows that the
 * stream is done. */
struct ds_accel__pinned_use {
    struct ds_accel__device *device; /* the stream's device; the use is purged when it is closed */
    struct ds_accel__stream *stream; /* NULL: streams that were destroyed with work left */
    uint64_t stream_id;
    uint64_t end;                   /* number of the device's latest end to wait for; 0: none */
    ds_accel_plugin_event_t *event; /* NULL: the device must have been idle */
};

/* The end of the work of a program's wrapped stream whose handle was destroyed. */
struct ds_accel__pinned_end {
    struct ds_accel__pinned_end *next; /* an older one */
    uint64_t number;                   /* from 1 on */
    ds_accel_plugin_event_t *event;
};

struct ds_accel__pinned_block {
    struct ds_accel__pinned_block *next_in_bucket;
    struct ds_accel__pinned_block *next; /* in the list of ready or of waiting blocks */
    char *pointer;
    uint64_t size_bytes;
    uint64_t asked_bytes; /* size requested for the live block */
    uint32_t flags;
    enum ds_accel__pinned_state state;
    struct ds_accel__pinned_use *uses;
    uint32_t use_count;
    uint32_t use_capacity;
    bool needs_idle; /* out of memory while recording a use: the device must become idle */
};

/* Counted as torch counts (pinned_figures.c). */
struct ds_accel__pinned_figure {
    uint64_t current;
    uint64_t peak;
    uint64_t allocated; /* total ever added */
    uint64_t freed;
};

struct ds_accel__pinned_duration {
    uint64_t total_us;
    uint64_t most_us;
    uint64_t least_us;
    uint64_t count;
};

struct ds_accel__pinned_figures {
    struct ds_accel__pinned_figure blocks; /* held from the runtime */
    struct ds_accel__pinned_figure bytes;
    struct ds_accel__pinned_figure active; /* not ready to be allocated */
    struct ds_accel__pinned_figure active_bytes;
    struct ds_accel__pinned_duration allocating; /* by the runtime */
    struct ds_accel__pinned_duration freeing;
};

enum ds_accel__pinned_change {
    DS_ACCEL__PINNED_HELD,
    DS_ACCEL__PINNED_GIVEN_BACK,
    DS_ACCEL__PINNED_BUSY,
    DS_ACCEL__PINNED_IDLE
};

struct ds_accel__pinned {
    struct ds_accel__device *device;
    uint64_t page_bytes;
    /* Guards all below. */
    pthread_mutex_t lock;
    struct ds_accel__pinned_block **buckets; /* by address */
    size_t bucket_count;                     /* a power of two */
    struct ds_accel__pinned_block *ready[DS_ACCEL__PINNED_LISTS];
    struct ds_accel__pinned_block *waiting;
    ds_accel_plugin_event_t **events; /* spare events; room for all existing events */
    size_t event_count;
    size_t events_made;
    uint64_t kept_limit_bytes;
    struct ds_accel_pinned_stats stats;
    struct ds_accel__pinned_figures figures;
};

/* The device's pool, created on first use; NULL: out of memory. */
struct ds_accel__pinned *ds_accel__pinned_pool(struct ds_accel__device *device);

/* All functions below: lock held, unless noted otherwise. */

/* The size that a request is rounded to; needs no lock. */
uint64_t ds_accel__pinned_class(uint64_t size_bytes);
/* The block that starts at pointer, in any state; NULL: none. */
struct ds_accel__pinned_block *ds_accel__pinned_block(const struct ds_accel__pinned *pool,
                                                      const void *pointer);
/* Add a block allocated by the runtime. */
void ds_accel__pinned_insert(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block);
/* Take a ready block that fits out of its list; NULL: none. */
struct ds_accel__pinned_block *ds_accel__pinned_take(struct ds_accel__pinned *pool,
                                                     uint64_t size_bytes, uint64_t align_bytes,
                                                     uint32_t flags);
/* Put a freed block into the pool. Returns the blocks over the limit: a list to release. */
struct ds_accel__pinned_block *ds_accel__pinned_put(struct ds_accel__pinned *pool,
                                                    struct ds_accel__pinned_block *block);
/* Take ready blocks out of the pool until it keeps at most kept_bytes: a list to release. */
struct ds_accel__pinned_block *ds_accel__pinned_surplus(struct ds_accel__pinned *pool,
                                                        uint64_t kept_bytes);
/* ---- pinned_uses.c: lock of the pool held ---------------------------------------------------- */

/* Record that the stream uses the block. ERR_NO_MEMORY */
int32_t ds_accel__pinned_use(struct ds_accel__pinned_block *block, struct ds_accel__stream *stream);
/* The block was freed: mark all work that streams have queued by now. */
void ds_accel__pinned_mark(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block);
/* True if all marked work is done; finished marks are not queried again. */
bool ds_accel__pinned_is_done(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block);
/* Take back the events of a block that will not be queried any more. */
void ds_accel__pinned_unmark(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block);

/* Return a list of blocks to the runtime, without the lock. True if the list had a block. */
bool ds_accel__pinned_release(struct ds_accel__pinned *pool,
                              struct ds_accel__pinned_block *surplus);

/* pinned_figures.c: a block was added, released, allocated, or became reusable. */
void ds_accel__pinned_count(struct ds_accel__pinned *pool,
                            const struct ds_accel__pinned_block *block,
                            enum ds_accel__pinned_change change);
/* Count the duration of a runtime call that began at begin_ns; without the lock. */
void ds_accel__pinned_time(struct ds_accel__pinned *pool, bool is_free, uint64_t begin_ns);
void ds_accel__pinned_forget_peaks(struct ds_accel__pinned *pool);

#endif
