/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The pool of pinned memory, between pinned_pool.c, which keeps it, and pinned.c, which uses it. */
#ifndef DS_ACCEL_PINNED_H
#define DS_ACCEL_PINNED_H

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

/* A stream that uses a block; after the block was freed, what says that it is done. */
struct ds_accel__pinned_use {
    struct ds_accel__device *device; /* the stream's; it is purged when that is closed */
    struct ds_accel__stream *stream; /* NULL: any that was destroyed with work left */
    uint64_t stream_id;
    uint64_t end; /* number of the latest of the device's ends; 0: not one of these */
    ds_accel_plugin_event_t *event; /* NULL: the device must have been idle */
};

/* Where the work ends of a program's own stream that we know no more. */
struct ds_accel__pinned_end {
    struct ds_accel__pinned_end *next; /* an older one */
    uint64_t number;                   /* from 1 on */
    ds_accel_plugin_event_t *event;
};

struct ds_accel__pinned_block {
    struct ds_accel__pinned_block *next_in_bucket;
    struct ds_accel__pinned_block *next; /* of those that are ready or wait */
    char *pointer;
    uint64_t size_bytes;
    uint64_t asked_bytes; /* of the live one */
    uint32_t flags;
    enum ds_accel__pinned_state state;
    struct ds_accel__pinned_use *uses;
    uint32_t use_count;
    uint32_t use_capacity;
    bool needs_idle; /* no memory was left to say what uses it */
};

/* As torch counts (pinned_figures.c). */
struct ds_accel__pinned_figure {
    uint64_t current;
    uint64_t peak;
    uint64_t allocated; /* all that was ever added */
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
    struct ds_accel__pinned_figure active; /* not ready to be given out */
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
    ds_accel_plugin_event_t **events; /* spare ones; room for all that exist */
    size_t event_count;
    size_t events_made;
    uint64_t kept_limit_bytes;
    struct ds_accel_pinned_stats stats;
    struct ds_accel__pinned_figures figures;
};

/* The device's pool, made by its first use; NULL: no memory. */
struct ds_accel__pinned *ds_accel__pinned_pool(struct ds_accel__device *device);

/* All below: lock held, unless they say otherwise. */

/* The size that a request is rounded to; needs no lock. */
uint64_t ds_accel__pinned_class(uint64_t size_bytes);
/* The block that starts there, in whatever state; NULL: none. */
struct ds_accel__pinned_block *ds_accel__pinned_block(const struct ds_accel__pinned *pool,
                                                      const void *pointer);
/* Enter a block that came from the runtime. */
void ds_accel__pinned_insert(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block);
/* A block that is ready and fits, out of its list; NULL: there is none. */
struct ds_accel__pinned_block *ds_accel__pinned_take(struct ds_accel__pinned *pool,
                                                     uint64_t size_bytes, uint64_t align_bytes,
                                                     uint32_t flags);
/* Take a freed block back. What is over the limit is returned: a list to release. */
struct ds_accel__pinned_block *ds_accel__pinned_put(struct ds_accel__pinned *pool,
                                                    struct ds_accel__pinned_block *block);
/* Take what is ready out of the pool until it keeps no more than that: a list to release. */
struct ds_accel__pinned_block *ds_accel__pinned_surplus(struct ds_accel__pinned *pool,
                                                        uint64_t kept_bytes);
/* ---- pinned_uses.c: lock of the pool held ---------------------------------------------------- */

/* The stream uses the block. ERR_NO_MEMORY */
int32_t ds_accel__pinned_use(struct ds_accel__pinned_block *block, struct ds_accel__stream *stream);
/* The block was freed: mark all that streams have queued by now. */
void ds_accel__pinned_mark(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block);
/* True if all of that is done; what is done is not asked again. */
bool ds_accel__pinned_is_done(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block);
/* Take back the events of a block that nobody will ask about. */
void ds_accel__pinned_unmark(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block);

/* Give a list of blocks back to the runtime, without the lock. True if there was one. */
bool ds_accel__pinned_release(struct ds_accel__pinned *pool,
                              struct ds_accel__pinned_block *surplus);

/* pinned_figures.c: a block comes, goes, is given out, or can be given out again. */
void ds_accel__pinned_count(struct ds_accel__pinned *pool,
                            const struct ds_accel__pinned_block *block,
                            enum ds_accel__pinned_change change);
/* The runtime has allocated or freed since then; without the lock. */
void ds_accel__pinned_time(struct ds_accel__pinned *pool, bool is_free, uint64_t begin_ns);
void ds_accel__pinned_forget_peaks(struct ds_accel__pinned *pool);

#endif
