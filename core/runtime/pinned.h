/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The pool of pinned memory: interface of pinned_pool.c, pinned_uses.c and pinned_figures.c, which
 * implement the pool, for pinned.c and pinned_stats.c, which use it. */
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
    DS_ACCEL__PINNED_WAITING /* freed, but streams still use it */
};

/* A stream that uses a block. After the block is freed, one of these shows that the stream no
 * longer uses it: the member event, the member end, or that the device is idle. */
struct ds_accel__pinned_use {
    /* the stream's device; closing the device deletes this entry */
    struct ds_accel__device *device;
    /* NULL: the entry is for destroyed streams of the device: for the ends up to number end, or, if
     * end is 0, for all streams destroyed with work left */
    struct ds_accel__stream *stream;
    uint64_t stream_id;
    /* number of the latest ds_accel__pinned_end of the device to wait for; 0: none */
    uint64_t end;
    /* NULL: no event was recorded; if end is 0 too, the stream counts as done once the device has
     * been idle */
    ds_accel_plugin_event_t *event;
};

/* An event at the end of the work of a program's own stream, recorded when the handle with which
 * this library had wrapped the stream was destroyed. */
struct ds_accel__pinned_end {
    struct ds_accel__pinned_end *next; /* next older end */
    uint64_t number;                   /* counts from 1 */
    ds_accel_plugin_event_t *event;
};

struct ds_accel__pinned_block {
    struct ds_accel__pinned_block *next_in_bucket;
    struct ds_accel__pinned_block *next; /* link in the list of ready blocks or of waiting blocks */
    char *pointer;
    uint64_t size_bytes;
    uint64_t asked_bytes; /* size requested for the live block */
    uint32_t flags;
    enum ds_accel__pinned_state state;
    struct ds_accel__pinned_use *uses;
    uint32_t use_count;
    uint32_t use_capacity;
    /* memory ran out while a use was recorded: the block is reusable only once all open devices of
     * the context have been idle */
    bool needs_idle;
};

/* One statistic, counted as torch counts it (pinned_figures.c). */
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
    struct ds_accel__pinned_figure blocks; /* blocks obtained from the runtime */
    struct ds_accel__pinned_figure bytes;
    /* blocks that cannot be allocated now: live, or still used by streams */
    struct ds_accel__pinned_figure active;
    struct ds_accel__pinned_figure active_bytes;
    struct ds_accel__pinned_duration allocating; /* duration of the runtime's allocation calls */
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
    /* Guards all members below. */
    pthread_mutex_t lock;
    struct ds_accel__pinned_block **buckets; /* hash table by address */
    size_t bucket_count;                     /* a power of two */
    struct ds_accel__pinned_block *ready[DS_ACCEL__PINNED_LISTS];
    struct ds_accel__pinned_block *waiting;
    /* spare events; the array has space for all existing events */
    ds_accel_plugin_event_t **events;
    size_t event_count;
    size_t events_made;
    uint64_t kept_limit_bytes;
    struct ds_accel_pinned_stats stats;
    struct ds_accel__pinned_figures figures;
};

/* Return the device's pool, created on first use; NULL: out of memory. */
struct ds_accel__pinned *ds_accel__pinned_pool(struct ds_accel__device *device);

/* The caller of the functions below holds the pool's lock, unless noted otherwise. */

/* Return the size to which a request is rounded; needs no lock. */
uint64_t ds_accel__pinned_class(uint64_t size_bytes);
/* Return the pool's block, in any state, that starts at pointer; NULL: none. */
struct ds_accel__pinned_block *ds_accel__pinned_block(const struct ds_accel__pinned *pool,
                                                      const void *pointer);
/* Add a block allocated by the runtime. */
void ds_accel__pinned_insert(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block);
/* Take a ready block that fits out of its list; NULL: none. */
struct ds_accel__pinned_block *ds_accel__pinned_take(struct ds_accel__pinned *pool,
                                                     uint64_t size_bytes, uint64_t align_bytes,
                                                     uint32_t flags);
/* Put a freed block into the pool. Returns a list of the blocks over the limit, which the caller
 * releases. */
struct ds_accel__pinned_block *ds_accel__pinned_put(struct ds_accel__pinned *pool,
                                                    struct ds_accel__pinned_block *block);
/* Take ready blocks out of the pool until it keeps at most kept_bytes, waiting blocks included, or
 * has no ready block left. Returns them as a list, which the caller releases. */
struct ds_accel__pinned_block *ds_accel__pinned_surplus(struct ds_accel__pinned *pool,
                                                        uint64_t kept_bytes);
/* ---- pinned_uses.c: the caller holds the pool's lock ----------------------------------------- */

/* Record that the stream uses the block. ERR_NO_MEMORY. */
int32_t ds_accel__pinned_use(struct ds_accel__pinned_block *block, struct ds_accel__stream *stream);
/* Mark the end of the work queued so far on all streams that may use the freed block. */
void ds_accel__pinned_mark(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block);
/* Whether all marked work is complete; reached marks are not queried again. */
bool ds_accel__pinned_is_done(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block);
/* Remove all uses of a block. Their events become spare, or are destroyed if they belong to
 * another device than the pool. */
void ds_accel__pinned_unmark(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block);

/* Return a list of blocks to the runtime. The caller does not hold the lock. True if the list was
 * not empty. */
bool ds_accel__pinned_release(struct ds_accel__pinned *pool,
                              struct ds_accel__pinned_block *surplus);

/* pinned_figures.c: count that a block was added, released, allocated, or became reusable. */
void ds_accel__pinned_count(struct ds_accel__pinned *pool,
                            const struct ds_accel__pinned_block *block,
                            enum ds_accel__pinned_change change);
/* Count the duration of a runtime call that began at begin_ns. The caller does not hold the
 * lock. */
void ds_accel__pinned_time(struct ds_accel__pinned *pool, bool is_free, uint64_t begin_ns);
void ds_accel__pinned_forget_peaks(struct ds_accel__pinned *pool);

#endif
