/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Memory: the caching allocator (allocator*.c with allocator.h), pinned memory (pinned*.c). */
#ifndef DS_ACCEL_RUNTIME_CACHING_H
#define DS_ACCEL_RUNTIME_CACHING_H

#include "base/private.h"
#include "ds_accel.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct ds_accel__device;
struct ds_accel__stream;

enum ds_accel__pinned_place {
    DS_ACCEL__PINNED_FOREIGN, /* memory of no pool */
    DS_ACCEL__PINNED_LIVE,
    DS_ACCEL__PINNED_FREE /* freed and kept in the pool */
};

/* Record that another stream uses a block of the device's pool. pointer: the start of the block.
 * ERR_NOT_FOUND, without an error text: no block of the pool begins there. ERR_INVALID: the block
 * was freed. ERR_NO_MEMORY. */
int32_t ds_accel__pinned_record(struct ds_accel__device *device, const void *pointer,
                                struct ds_accel__stream *stream);
/* Whether an address belongs to a pool of the context's devices. base: start of the allocation that
 * contains the address; NULL: the start is unknown, and this function looks for the block that
 * contains the address. */
enum ds_accel__pinned_place ds_accel__pinned_find(ds_accel_t *context, const void *base,
                                                  const void *address);
/* Return all pinned memory to the runtime, including blocks still in use, and destroy the pool. If
 * a block may be in use, first wait for the device's work. */
void ds_accel__pinned_close(struct ds_accel__device *device);
/* pinned_uses.c: note that a device was opened (attach) or is about to be closed (detach); while
 * the device is open, its streams may use memory of the pool of any device. */
void ds_accel__pinned_attach(struct ds_accel__device *device);
void ds_accel__pinned_detach(struct ds_accel__device *device);
/* In a forked child: clear the list of open devices, because the child has none of them. */
void ds_accel__pinned_renew(void);
/* Note that a stream is about to be destroyed. The caller holds the lock of its device. */
void ds_accel__pinned_stream_ends(struct ds_accel__device *device,
                                  const struct ds_accel__stream *stream);

/* ---- capture_end.c: the end of a stream's capture -------------------------------------------- */

/* Note that the runtime was called to end the capture and returned end_status. True: the capture
 * continues, because a runtime may refuse to end a capture that another thread began. False: it no
 * longer counts as a capture in progress. */
bool ds_accel__capture_note_end(struct ds_accel__stream *stream, int32_t end_status);
/* End the capture and discard the graph. True: the runtime refused, and the capture continues. */
bool ds_accel__capture_drop(struct ds_accel__stream *stream);
/* After a capture: let the stream allocate from its own arena again instead of the capture's
 * pool. */
void ds_accel__capture_release_arena(struct ds_accel__stream *stream);
/* End the capture of a stream that is being destroyed. */
void ds_accel__capture_cancel(struct ds_accel__stream *stream);

/* ---- captures.c: captures of this process ---------------------------------------------------- */

/* Called before and after the runtime's call that begins a capture; in between no thread makes a
 * query that would break the capture. process: the result of ds_accel__captures_begin(). has_begun:
 * the runtime began the capture. */
uint32_t ds_accel__captures_begin(void);
void ds_accel__captures_begun(struct ds_accel__stream *stream, uint32_t process, bool has_begun);
/* Record that the stream's capture, if any, has ended. */
void ds_accel__captures_end(struct ds_accel__stream *stream);
/* Record that another library may capture on a stream of the device, until
 * ds_accel__captures_forget(). */
void ds_accel__captures_may_be_foreign(struct ds_accel__device *device);
void ds_accel__captures_forget(struct ds_accel__device *device);
bool ds_accel__captures_are_foreign(void);
/* ds_accel__captures_hold() blocks new captures until the release. It returns false if a capture is
 * in progress: the caller must not make a query that would break the capture, and must call
 * ds_accel__captures_release() in this case too. ds_accel__captures_try_hold() returns false, and
 * blocks nothing, if a capture is in progress, including another library's capture. */
bool ds_accel__captures_hold(void);
bool ds_accel__captures_try_hold(void);
void ds_accel__captures_release(void);
/* Called in a forked child: forget the captures of the parent process. */
void ds_accel__captures_renew(void);

enum ds_accel__allocator_mode {
    DS_ACCEL__ALLOCATOR_CACHING,
    DS_ACCEL__ALLOCATOR_OFF,
    DS_ACCEL__ALLOCATOR_DEBUG
};

#define DS_ACCEL__HISTORY_ON 1u
#define DS_ACCEL__HISTORY_STACKS 2u

/* Settings of an allocator; all sizes are in bytes. ds_accel__allocator_defaults() sets the default
 * values. */
struct ds_accel__allocator_options {
    enum ds_accel__allocator_mode mode;
    uint32_t roundup_power2_divisions; /* 0, 1: sizes are rounded to 512 bytes only */
    uint64_t small_limit_bytes;        /* requests up to this size are served from small segments */
    uint64_t small_segment_bytes;
    uint64_t medium_limit_bytes; /* requests below this size are served from medium segments */
    uint64_t medium_segment_bytes;
    /* the size of a new segment for a larger request is a multiple of this */
    uint64_t large_step_bytes;
    uint64_t max_split_bytes; /* large blocks of at least this size are not split; 0: no limit */
    /* garbage collection starts at this fraction of the limit; 0: never */
    double gc_threshold;
    bool growable_segments;
    uint64_t limit_bytes;      /* limit for reserved memory; 0: no limit */
    double fraction;           /* the limit as a fraction of the device's memory; 0: no limit */
    uint32_t history_flags;    /* DS_ACCEL__HISTORY_* */
    uint64_t history_entries;  /* maximum number of entries */
    uint64_t quarantine_bytes; /* debug mode: amount of freed memory that is not reused */
};

DS_ACCEL__PRIVATE void ds_accel__allocator_defaults(struct ds_accel__allocator_options *options);
/* Parse a text such as "debug" or "growable_segments=true,limit_bytes=8GiB" and set the options in
 * it. ERR_CONFIG: the text is not valid, and no option changes. */
int32_t ds_accel__allocator_parse_options(const char *text,
                                          struct ds_accel__allocator_options *options);
const char *ds_accel__allocator_mode_name(enum ds_accel__allocator_mode mode);
/* Read the options from the configuration and the environment. ERR_CONFIG: the variable
 * DS_ACCEL_ALLOCATOR can't be parsed. */
int32_t ds_accel__allocator_read_options(ds_accel_t *context,
                                         struct ds_accel__allocator_options *options);

/*
 * An allocator over a backend's table of functions. It needs no context and no public device, so
 * that it can also run over a simulated table. Callers refer to a stream by its arena.
 */
struct ds_accel__allocator;
struct ds_accel__arena;
struct ds_accel__private;
DS_ACCEL__PRIVATE int32_t ds_accel__allocator_create(
    const struct ds_accel_plugin *table, ds_accel_plugin_device_t *device,
    const struct ds_accel__allocator_options *options, struct ds_accel__allocator **allocator_out);
/* Set the public handle for callbacks, and the device number for messages. */
void ds_accel__allocator_attach(struct ds_accel__allocator *allocator, ds_accel_device_t *handle,
                                uint32_t device_index);
/* Free the allocator and all memory still allocated; returns the number of live blocks. NULL is
 * ignored. */
DS_ACCEL__PRIVATE uint64_t ds_accel__allocator_destroy(struct ds_accel__allocator *allocator);
/* Make the arena of a stream; ds_accel__allocator_stream_gone() releases it. NULL: out of
 * memory. */
DS_ACCEL__PRIVATE struct ds_accel__arena *
ds_accel__allocator_arena(struct ds_accel__allocator *allocator, ds_accel_plugin_stream_t *stream);
DS_ACCEL__PRIVATE int32_t ds_accel__allocator_alloc(struct ds_accel__arena *arena,
                                                    uint64_t size_bytes, uint64_t align_bytes,
                                                    void **pointer_out);
/* Free a block in the order of the stream of arena freeing; NULL: the stream that the block was
 * allocated on. ERR_NOT_FOUND: the address is not in this allocator's memory. ERR_INVALID: the
 * address is not the start of a live block. */
DS_ACCEL__PRIVATE int32_t ds_accel__allocator_free(struct ds_accel__allocator *allocator,
                                                   struct ds_accel__arena *freeing, void *pointer);
/* Whether a live block of the allocator begins at the pointer. */
bool ds_accel__allocator_owns(struct ds_accel__allocator *allocator, const void *pointer);
int32_t ds_accel__allocator_record(struct ds_accel__allocator *allocator, void *pointer,
                                   struct ds_accel__arena *arena);
/* Note that the arena's stream is about to be destroyed. */
void ds_accel__allocator_stream_gone(struct ds_accel__arena *arena);
/* Create a private pool with one reference, which the caller owns. NULL: out of memory. */
struct ds_accel__private *ds_accel__private_create(struct ds_accel__allocator *allocator);
void ds_accel__private_get(struct ds_accel__allocator *allocator, struct ds_accel__private *pool);
/* Release a reference. Releasing the last reference makes the pool's memory available to all
 * streams. NULL is ignored. */
void ds_accel__private_put(struct ds_accel__allocator *allocator, struct ds_accel__private *pool);
/* Begin or end this thread's allocations from the pool. ERR_STATE: at the beginning, the thread
 * already uses a pool of the device, or pools on 8 other devices; at the end, the thread does not
 * use this pool. */
int32_t ds_accel__private_use(struct ds_accel__allocator *allocator, struct ds_accel__private *pool,
                              bool is_begun);
/* Note that a capture begins on the stream; its allocations come from the pool. False: the stream
 * already captures. */
bool ds_accel__allocator_capture_begin(struct ds_accel__arena *arena,
                                       struct ds_accel__private *pool);
bool ds_accel__allocator_is_capturing(struct ds_accel__arena *arena);
void ds_accel__allocator_capture_end(struct ds_accel__arena *arena);
/* Begin a new history with space for max_entries entries, without the entries recorded so far.
 * flags: DS_ACCEL__HISTORY_*; 0: record nothing. ERR_INVALID: unknown flags, or too many
 * entries. */
int32_t ds_accel__allocator_record_history(struct ds_accel__allocator *allocator, uint32_t flags,
                                           uint64_t max_entries);
/* Add the allocator's segments, trace and statistics to the arrays of a snapshot tree. Fails only
 * with ERR_NO_MEMORY. */
int32_t ds_accel__allocator_snapshot(struct ds_accel__allocator *allocator, json_t *segments,
                                     json_t *traces, json_t *stats);
/* Return the allocator's statistics, or its settings, as one flat object. NULL: out of memory. */
json_t *ds_accel__allocator_stats_tree(struct ds_accel__allocator *allocator);
json_t *ds_accel__allocator_settings(const struct ds_accel__allocator *allocator);
/* Called for each statistic; returns false to stop. */
typedef bool (*ds_accel__stat_visit_t)(void *user_data, const char *key, int64_t value);
DS_ACCEL__PRIVATE void ds_accel__allocator_visit_stats(struct ds_accel__allocator *allocator,
                                                       ds_accel__stat_visit_t visit,
                                                       void *user_data);
/* Set peaks to the current values. which: DS_ACCEL_PEAK_* */
void ds_accel__allocator_reset_peaks(struct ds_accel__allocator *allocator, uint32_t which);
/* Return cached memory to the driver until at most keep_bytes are reserved; first wait for pending
 * blocks. While a stream captures, nothing is returned. ERR_INVALID: debug mode found memory that
 * was written after it was freed. */
int32_t ds_accel__allocator_trim(struct ds_accel__allocator *allocator, uint64_t keep_bytes);
/* Return the cached bytes, and the size of the largest free piece. */
void ds_accel__allocator_free_space(struct ds_accel__allocator *allocator, uint64_t *free_bytes_out,
                                    uint64_t *largest_bytes_out);
/* Find the live block that contains an address; return its start and its requested size. False:
 * there is none. */
bool ds_accel__allocator_find(struct ds_accel__allocator *allocator, const void *pointer,
                              uint64_t *address_out, uint64_t *size_bytes_out);
/* Return the bytes available from the device's free memory (device_bytes) and from releasable
 * cached memory, within the limit. */
uint64_t ds_accel__allocator_available(struct ds_accel__allocator *allocator,
                                       uint64_t device_bytes);
void ds_accel__allocator_set_limit(struct ds_accel__allocator *allocator, uint64_t limit_bytes);
void ds_accel__allocator_set_callback(struct ds_accel__allocator *allocator,
                                      ds_accel_memory_failure_t callback, void *user_data);
/* Verify the blocks and the statistics of all arenas, for tests. problem is set to "" or to a
 * description of the first defect. */
void ds_accel__allocator_verify(struct ds_accel__allocator *allocator, char *problem,
                                size_t problem_size);

/* memory.c: return a device's allocator, or a stream's arena; created on first use. */
int32_t ds_accel__device_allocator(struct ds_accel__device *device,
                                   struct ds_accel__allocator **allocator_out);
int32_t ds_accel__stream_arena(struct ds_accel__stream *stream, struct ds_accel__arena **arena_out);

/* memory_stats.c: make a snapshot of one device's memory, or (device NULL) of all open devices, as
 * a tree. */
int32_t ds_accel__memory_snapshot_tree(ds_accel_t *context, struct ds_accel__device *device,
                                       json_t **tree_out);

#endif
