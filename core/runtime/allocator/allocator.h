/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Declarations shared by the files of the caching allocator; allocator.c explains its structure.
 *
 * Lock order, from the outermost: the allocator's lock; then any number of arena locks for a holder
 * of the allocator's lock, else one arena lock; then one of the leaf locks (index, marks, history).
 * No thread waits for a lock while holding a later one, and no thread calls the driver for memory
 * while holding any.
 */
#ifndef DS_ACCEL_RUNTIME_ALLOCATOR_ALLOCATOR_H
#define DS_ACCEL_RUNTIME_ALLOCATOR_ALLOCATOR_H

#include "runtime/caching.h"

#include <assert.h>
#include <pthread.h>

struct ds_accel__slab;

#define DS_ACCEL__UNIT UINT64_C(512) /* blocks begin at, and measure, multiples of it */
#define DS_ACCEL__UNIT_SHIFT 9

/* ---- a lock that is cheap without contention (allocator_lock.c) ----------------------------- */

struct ds_accel__latch {
    uint32_t is_taken;
    uint32_t waiter_count;
};

void ds_accel__latch_wait(struct ds_accel__latch *latch);
void ds_accel__latch_wake(struct ds_accel__latch *latch);

/* Whether any thread holds the lock; for assertions. */
static inline bool ds_accel__latch_is_taken(const struct ds_accel__latch *latch)
{
    return __atomic_load_n(&latch->is_taken, __ATOMIC_RELAXED) != 0;
}

static inline void ds_accel__latch_take(struct ds_accel__latch *latch)
{
    if (__builtin_expect(__atomic_exchange_n(&latch->is_taken, 1, __ATOMIC_ACQUIRE) != 0, 0)) {
        ds_accel__latch_wait(latch);
    }
}

static inline void ds_accel__latch_release(struct ds_accel__latch *latch)
{
    assert(ds_accel__latch_is_taken(latch));
    __atomic_store_n(&latch->is_taken, 0, __ATOMIC_RELEASE);
    if (__builtin_expect(__atomic_load_n(&latch->waiter_count, __ATOMIC_RELAXED) != 0, 0)) {
        ds_accel__latch_wake(latch);
    }
}

/* ---- statistics (allocator_stats.c) --------------------------------------------------------- */

/* Kinds of segments: small and large. */
enum {
    DS_ACCEL__SMALL,
    DS_ACCEL__LARGE,
    DS_ACCEL__KIND_COUNT
};
#define DS_ACCEL__ALL DS_ACCEL__KIND_COUNT /* both kinds together */

/* Figures changed by every allocation and every free: one vector of eight. */
enum ds_accel__lane {
    DS_ACCEL__LANE_ALLOCATION,
    DS_ACCEL__LANE_ACTIVE,
    DS_ACCEL__LANE_ALLOCATED_BYTES,
    DS_ACCEL__LANE_ACTIVE_BYTES,
    DS_ACCEL__LANE_REQUESTED_BYTES,
    DS_ACCEL__LANE_SPLIT,
    DS_ACCEL__LANE_SPLIT_BYTES,
    DS_ACCEL__LANE_OVERSIZE,
    DS_ACCEL__LANE_COUNT
};

struct ds_accel__lanes {
    int64_t lane[DS_ACCEL__LANE_COUNT];
} __attribute__((aligned(64)));

/* The amounts that an operation adds and removes. */
struct ds_accel__change {
    struct ds_accel__lanes added;
    struct ds_accel__lanes removed;
};

/* An arena's figures. Peaks are exact as long as current <= limit: see allocator_stats.c. */
struct ds_accel__figures {
    struct ds_accel__lanes current[DS_ACCEL__KIND_COUNT]; /* of all kinds: the sum */
    struct ds_accel__lanes limit[DS_ACCEL__KIND_COUNT + 1];
    struct ds_accel__lanes total[DS_ACCEL__KIND_COUNT]; /* sum of all amounts ever added */
};

/* The current figure of a kind, or of all kinds. */
static inline int64_t ds_accel__figures_current(const struct ds_accel__figures *figures,
                                                unsigned kind, unsigned lane)
{
    return kind == DS_ACCEL__ALL ? figures->current[DS_ACCEL__SMALL].lane[lane] +
                                       figures->current[DS_ACCEL__LARGE].lane[lane]
                                 : figures->current[kind].lane[lane];
}

/* A figure that changes rarely, under the allocator's lock. */
struct ds_accel__figure {
    int64_t current;
    int64_t peak;
    int64_t total;
};

/* ---- the parts ------------------------------------------------------------------------------ */

enum ds_accel__block_state {
    DS_ACCEL__BLOCK_UNUSED,  /* the struct describes no memory */
    DS_ACCEL__BLOCK_FREE,    /* in a free list */
    DS_ACCEL__BLOCK_UNDONE,  /* free, but not merged: the arena's latest allocations, undone */
    DS_ACCEL__BLOCK_TAKEN,   /* in transition between two states: owned by one thread */
    DS_ACCEL__BLOCK_LIVE,    /* owned by the program */
    DS_ACCEL__BLOCK_PENDING, /* freed, but other streams may still use it */
    DS_ACCEL__BLOCK_UNMAPPED /* addresses of a growable segment, without memory */
};

/* Effect of cutting a block from a free block on the figures of split free memory. */
enum ds_accel__origin {
    DS_ACCEL__ORIGIN_UNCOUNTED,   /* none: a whole segment, or a growable one */
    DS_ACCEL__ORIGIN_SPLIT_CUT,   /* a part of a free part */
    DS_ACCEL__ORIGIN_SPLIT_WHOLE, /* all of a free part */
    DS_ACCEL__ORIGIN_SEGMENT_CUT  /* a part of a free segment */
};

/* Reason why a pending block has no marks yet. */
enum ds_accel__deferred {
    DS_ACCEL__DEFERRED_NOT,
    DS_ACCEL__DEFERRED_MARKS, /* marks are made when a capture has ended, or when a stream can be
                                 queried again */
    DS_ACCEL__DEFERRED_HELD   /* the block is in quarantine */
};

struct ds_accel__arena;
struct ds_accel__segment;
struct ds_accel__mark;

/* A set of marks, shared by the parts of a block that is split. */
struct ds_accel__waits {
    uint32_t reference_count;
    uint32_t count;
    struct ds_accel__mark *marks[];
};

/* Streams that use a live block, except the stream that it was allocated on. */
struct ds_accel__uses {
    uint32_t count;
    uint32_t capacity;
    struct ds_accel__arena *arenas[];
};

/*
 * A piece of a segment. The struct is never returned to the heap, so that reading a stale pointer
 * is safe. Blocks of two streams share neither a cache line nor a pair of lines that processors
 * fetch together.
 */
struct ds_accel__block {
    uint64_t address;
    uint64_t size_bytes;
    struct ds_accel__arena *home; /* the arena whose lock guards the block and that it returns to */
    struct ds_accel__arena *user; /* arena of the stream that it was allocated on */
    uint64_t requested_bytes;
    uint64_t fit_bytes; /* the rounded request that the block was cut for */
    uint8_t state;      /* enum ds_accel__block_state */
    uint8_t kind;
    uint8_t is_deferred; /* pending: enum ds_accel__deferred */
    uint8_t is_oversize;
    uint8_t is_filled; /* debug: its red zone */
    uint8_t origin;    /* enum ds_accel__origin */
    uint32_t before;   /* the arena's stamps before and after its allocation: allocator_lists.c */
    uint32_t after;    /* 0: undoing the allocation does not restore the earlier state */
    struct ds_accel__block *link_next;     /* in a list; in a tree: child with larger blocks */
    struct ds_accel__block *link_previous; /* in a list; in a tree: child with smaller blocks */
    struct ds_accel__block *next;          /* neighbours in the segment */
    struct ds_accel__block *previous;
    struct ds_accel__segment *segment;
    struct ds_accel__uses *uses;   /* live or deferred: NULL for most */
    struct ds_accel__waits *waits; /* pending: not NULL unless deferred */
    uint32_t frames; /* call stack of the allocation, in the history's table; 0: not recorded */
    uint32_t freed_frames;
} __attribute__((aligned(128)));
DS_ACCEL_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(struct ds_accel__block) == 128,
                       "a block is two cache lines");

/* One piece of memory from the driver, or a growable range of addresses. */
struct ds_accel__segment {
    uint64_t address;
    uint64_t size_bytes;     /* backed by memory */
    uint64_t reserved_bytes; /* reserved addresses; 0: not growable */
    uint64_t page_bytes;     /* growable: unit of mapping and unmapping */
    uint64_t idle_since;     /* the allocator's clock when it became free as a whole */
    uint64_t idle_request;   /* the allocator's request_count at that time */
    uint64_t stream_id; /* of its home's stream, since the arena may serve another stream before the
                           segment is released */
    struct ds_accel__arena *home;
    struct ds_accel__block *first;
    struct ds_accel__block *last;
    struct ds_accel__segment *next; /* in the arena's list */
    struct ds_accel__segment *previous;
    uint32_t kind;
    uint32_t frames;
    bool was_mapped; /* growable: counted as a segment */
};

#define DS_ACCEL__LEVEL_COUNT 40u
#define DS_ACCEL__SUBLEVEL_COUNT 16u
#define DS_ACCEL__SUBLEVEL_SHIFT 4

/* Free blocks by size: two levels of size classes with a bit for each class that is not empty; in
 * each class a tree by size and address. */
struct ds_accel__lists {
    uint64_t levels;
    uint32_t sublevels[DS_ACCEL__LEVEL_COUNT];
    struct ds_accel__block *roots[DS_ACCEL__LEVEL_COUNT][DS_ACCEL__SUBLEVEL_COUNT];
};

/* The memory of one stream, or of one stream in one private pool. */
struct ds_accel__arena {
    struct ds_accel__latch latch; /* guards all members below unless noted otherwise */
    uint32_t is_capturing;
    uint32_t is_gone; /* the stream was destroyed: gone marks the end of its work */
    struct ds_accel__allocator *allocator;
    ds_accel_plugin_stream_t *stream; /* constant while the arena is in use */
    struct ds_accel__block *undone;   /* undone blocks, the latest first */
    uint32_t stamp; /* of the current state of the free memory: allocator_lists.c */
    uint32_t last_stamp;
    struct ds_accel__figures figures;
    struct ds_accel__segment *segments;
    struct ds_accel__block *pending;
    struct ds_accel__mark *gone;
    struct ds_accel__private *owner; /* the private pool; NULL: the common one */
    /* Under the allocator's lock. */
    struct ds_accel__arena *next;
    struct ds_accel__private *capture; /* the pool of the stream's capture */
    uint64_t id;                       /* never reused, although the struct is */
    uint64_t stream_id;                /* for messages: 0 is the first stream, the default one */
    uint32_t use_count; /* live blocks of other arenas used by its stream, and calls in progress;
                           atomic */
    struct ds_accel__lists lists[DS_ACCEL__KIND_COUNT];
} __attribute__((aligned(128)));

/* A private pool, with arenas of its own. */
struct ds_accel__private {
    struct ds_accel__private *next;
    uint64_t id;
    uint32_t reference_count; /* handle, graphs captured with it, threads that now use it */
    uint32_t is_gone;         /* no reference is left: its memory is available to all streams */
    uint32_t arena_count;
};

/* An event that was recorded for the allocator. */
struct ds_accel__mark {
    struct ds_accel__mark *next; /* in the list of spare marks */
    ds_accel_plugin_event_t *event;
    uint64_t arena_id; /* arena whose stream recorded it */
    uint64_t order;    /* of two marks of one arena, the greater one is not earlier */
    uint32_t reference_count;
};

/* Streams found busy in one pass over pending blocks: marks of one stream are reached in order, so
 * that marks after the first unreached one are not queried. Streams beyond the 16th are queried
 * again. */
struct ds_accel__busy {
    uint32_t count;
    struct {
        uint64_t arena_id;
        uint64_t order; /* of the first unreached mark */
    } streams[16];
};

/* Address to block: open addressing, read without a lock. */
struct ds_accel__index_entry {
    uint64_t address;
    struct ds_accel__block *block;
};

struct ds_accel__index_table {
    struct ds_accel__index_table *older; /* readers may still use it */
    uint64_t mask;
    struct ds_accel__index_entry entries[];
};

struct ds_accel__index {
    struct ds_accel__index_table *table; /* atomic */
    pthread_mutex_t lock;                /* for writers; also guards the members below */
    uint64_t used_count;                 /* entries that are not empty: blocks and tombstones */
    uint64_t block_count;
    struct ds_accel__block *spare;
    struct ds_accel__slab *slabs;
};

struct ds_accel__history;
struct ds_accel__quarantine;

/* Rare conditions: if any is set, calls leave the fast path. */
#define DS_ACCEL__SPECIAL_HISTORY 1u
#define DS_ACCEL__SPECIAL_POOLS 2u
#define DS_ACCEL__SPECIAL_MODE 4u
#define DS_ACCEL__SPECIAL_LAYERS 8u
#define DS_ACCEL__SPECIAL_GARBAGE 16u /* garbage collection is on: every request is counted */

struct ds_accel__allocator {
    /* Under the lock below: the peaks, and the totals of ended arenas. */
    struct ds_accel__lanes peak[DS_ACCEL__KIND_COUNT + 1];
    struct ds_accel__lanes retired[DS_ACCEL__KIND_COUNT];

    /* Read by every call, written rarely. */
    const struct ds_accel_plugin *table;
    ds_accel_plugin_device_t *device;
    ds_accel_device_t *handle; /* for the failure callback; NULL offline */
    uint32_t special;          /* DS_ACCEL__SPECIAL_*; atomic */
    uint32_t device_index;     /* for texts */
    uint64_t id;               /* unique in the process */
    struct ds_accel__index index;
    struct ds_accel__allocator_options options;
    uint64_t granule_bytes; /* of virtual memory; 0: there is none */
    uint64_t largest_bytes; /* limit of the driver for one allocation; UINT64_MAX: not known */
    bool is_synchronized;   /* the device is synchronous: no stream order to keep */
    bool has_events;

    /* Outermost: one segment grows or shrinks at a time; no capture begins while one shrinks,
     * or while debug reads memory back. */
    pthread_mutex_t grow_lock;
    pthread_mutex_t lock; /* guards all members below except the leaves */
    struct ds_accel__arena *arenas;
    struct ds_accel__arena *spare_arenas;
    struct ds_accel__private *privates;
    uint64_t last_private_id;
    uint64_t last_arena_id;
    uint64_t asked_bytes; /* requested from the driver, in flight */
    uint64_t clock;       /* counts frees that made a segment idle; atomic */
    /* Large requests to the common pools while garbage is collected; atomic. */
    uint64_t request_count;
    uint64_t limit_bytes; /* of reserved bytes; UINT64_MAX: none */
    uint32_t arena_count;
    uint32_t capture_count; /* streams that now capture */
    uint32_t begun_count;   /* threads that now allocate from a private pool */
    struct ds_accel__figure segment_count[DS_ACCEL__KIND_COUNT + 1];
    struct ds_accel__figure segment_bytes[DS_ACCEL__KIND_COUNT + 1];
    struct ds_accel__figure oversize_segments;
    int64_t retry_count;
    int64_t failure_count;
    int64_t sync_count;
    int64_t device_alloc_count;
    int64_t device_free_count;
    ds_accel_memory_failure_t callback;
    void *callback_data;

    pthread_mutex_t mark_lock; /* a leaf: guards marks and the counts of references to them */
    struct ds_accel__mark *marks;
    uint64_t mark_count;                     /* total recorded; atomic */
    struct ds_accel__history *history;       /* allocator_history.c */
    struct ds_accel__quarantine *quarantine; /* allocator_debug.c */
};

/* ---- allocator_index.c ---------------------------------------------------------------------- */

int32_t ds_accel__index_init(struct ds_accel__index *index);
void ds_accel__index_destroy(struct ds_accel__index *index);
/* Add a block struct for the address to the index; NULL: out of memory. */
struct ds_accel__block *ds_accel__index_add(struct ds_accel__index *index, uint64_t address);
void ds_accel__index_remove(struct ds_accel__index *index, struct ds_accel__block *block);
/* As the inline search, but with a definite result. */
struct ds_accel__block *ds_accel__index_find_sure(struct ds_accel__index *index, uint64_t address);

static inline uint64_t ds_accel__index_hash(uint64_t address)
{
    uint64_t hash = (address >> DS_ACCEL__UNIT_SHIFT) * UINT64_C(0x9e3779b97f4a7c15);

    return hash ^ (hash >> 32);
}

/*
 * The block that begins at an address, or NULL. The result is only a hint, to be checked under the
 * lock of the block's arena: the table may be changing.
 */
static inline struct ds_accel__block *ds_accel__index_find(struct ds_accel__index *index,
                                                           uint64_t address)
{
    const struct ds_accel__index_table *table = __atomic_load_n(&index->table, __ATOMIC_ACQUIRE);
    uint64_t mask = table->mask;

    for (uint64_t i = ds_accel__index_hash(address) & mask, probes = 0; probes < 16;
         i = (i + 1) & mask, probes++) {
        if (__atomic_load_n(&table->entries[i].address, __ATOMIC_ACQUIRE) == address) {
            struct ds_accel__block *block =
                __atomic_load_n(&table->entries[i].block, __ATOMIC_ACQUIRE);

            if (block != NULL) {
                return block;
            }
        }
    }
    return ds_accel__index_find_sure(index, address);
}

/* ---- allocator_lists.c: within one arena, its lock held ------------------------------------- */

static inline bool ds_accel__block_is_split(const struct ds_accel__block *block)
{
    return block->previous != NULL || block->next != NULL;
}

/* Whether torch counts the block as split: not in growable segments. */
static inline bool ds_accel__block_counts_as_split(const struct ds_accel__block *block)
{
    return ds_accel__block_is_split(block) && block->segment->reserved_bytes == 0;
}

/* The free memory has changed: no earlier allocation can be undone. */
static inline void ds_accel__arena_renew(struct ds_accel__arena *arena)
{
    arena->last_stamp += arena->last_stamp == UINT32_MAX ? 2 : 1; /* 0 is no stamp */
    arena->stamp = arena->last_stamp;
}

/* Merge the block with free neighbours and put it into a free list; returns the struct of the
 * merged block. */
struct ds_accel__block *ds_accel__block_release(struct ds_accel__arena *arena,
                                                struct ds_accel__block *block,
                                                struct ds_accel__change *changes);
/* Remove the block from its free list. */
void ds_accel__block_unlink(struct ds_accel__arena *arena, struct ds_accel__block *block,
                            struct ds_accel__change *changes);
/* Take a free block that holds fit_bytes at that alignment out of its list and cut it to size;
 * NULL: none. */
struct ds_accel__block *ds_accel__block_take(struct ds_accel__arena *arena, uint32_t kind,
                                             uint64_t fit_bytes, uint64_t align_bytes,
                                             struct ds_accel__change *changes);
/*
 * Cut a taken block so that it begins aligned and is no larger than needed; the remainders go to
 * the free lists, or with waits become pending with the same waits. NULL: out of memory for a
 * struct; the whole block is free or pending again.
 */
struct ds_accel__block *ds_accel__block_cut(struct ds_accel__arena *arena,
                                            struct ds_accel__block *block, uint64_t fit_bytes,
                                            uint64_t align_bytes, struct ds_accel__waits *waits,
                                            struct ds_accel__change *changes);
/* Whether the block has room for this size at this alignment. */
bool ds_accel__block_holds(const struct ds_accel__block *block, uint64_t fit_bytes,
                           uint64_t align_bytes);
/* Add the block to the list of blocks that other streams may still use. */
void ds_accel__pending_push(struct ds_accel__arena *arena, struct ds_accel__block *block);
void ds_accel__pending_unlink(struct ds_accel__arena *arena, struct ds_accel__block *block);
/* Move undone blocks to the free lists and merge them; no figure changes. */
void ds_accel__arena_flush(struct ds_accel__arena *arena);
/* Split the block after its first size_bytes; the new block is taken. NULL: out of memory. */
struct ds_accel__block *ds_accel__block_divide(struct ds_accel__arena *arena,
                                               struct ds_accel__block *block, uint64_t size_bytes);
/* Merge right into left, its neighbour; the struct of right becomes spare. */
void ds_accel__block_join(struct ds_accel__arena *arena, struct ds_accel__block *left,
                          struct ds_accel__block *right);

/* Add the arena's free bytes, and update the largest free block. */
void ds_accel__arena_free_space(const struct ds_accel__arena *arena, uint64_t *free_bytes,
                                uint64_t *largest_bytes);

/* ---- allocator_stats.c ---------------------------------------------------------------------- */

/*
 * Count a change in an arena whose lock is held. False: a peak may have changed; nothing was
 * counted, and the caller calls ds_accel__figures_settle() after releasing the lock.
 */
static inline bool ds_accel__figures_apply(struct ds_accel__figures *figures, uint32_t kind,
                                           const struct ds_accel__change *change)
{
    struct ds_accel__lanes *some = &figures->current[kind];
    const struct ds_accel__lanes *other = &figures->current[1 - kind];
    struct ds_accel__lanes result;
    int64_t over = 0;

    for (unsigned i = 0; i < DS_ACCEL__LANE_COUNT; i++) {
        result.lane[i] = some->lane[i] + change->added.lane[i] - change->removed.lane[i];
        over |= figures->limit[kind].lane[i] - result.lane[i];
        over |= figures->limit[DS_ACCEL__ALL].lane[i] - result.lane[i] - other->lane[i];
    }
    if (over < 0) {
        return false;
    }
    *some = result;
    for (unsigned i = 0; i < DS_ACCEL__LANE_COUNT; i++) {
        figures->total[kind].lane[i] += change->added.lane[i];
    }
    return true;
}

/* The changes of figures by allocating the block, and by freeing it, except those that the lists
 * count. */
void ds_accel__change_alloc(const struct ds_accel__block *block, struct ds_accel__change *change);
void ds_accel__change_free(const struct ds_accel__block *block, bool stays_active,
                           struct ds_accel__change *change);
/*
 * Count the changes of both kinds and put the taken block into its state. The arena's lock is held,
 * and released; the allocator's is not held. block: NULL or a block of the arena.
 */
void ds_accel__figures_finish(struct ds_accel__arena *arena, const struct ds_accel__change *changes,
                              struct ds_accel__block *block, enum ds_accel__block_state state);
/* The slow path of ds_accel__figures_finish(). No lock is held, before and after. */
void ds_accel__figures_settle(struct ds_accel__arena *arena, const struct ds_accel__change *changes,
                              struct ds_accel__block *block, enum ds_accel__block_state state);
void ds_accel__figure_add(struct ds_accel__figure *figure, int64_t amount);
/* Count a segment that was added or released. The allocator's lock is held. */
void ds_accel__figures_segment(struct ds_accel__allocator *allocator, uint32_t kind, int64_t count,
                               int64_t bytes);
/* Count the changes of both kinds. All locks are held, before and after. */
void ds_accel__figures_count(struct ds_accel__arena *arena, const struct ds_accel__change *changes);
/* Lock all arenas; the allocator's lock is held. */
void ds_accel__arenas_lock(struct ds_accel__allocator *allocator);
/* Put every arena's free memory into its lists, merged. All locks are held. */
void ds_accel__arenas_flush(struct ds_accel__allocator *allocator);
void ds_accel__arenas_unlock(struct ds_accel__allocator *allocator);
/* Move the totals of an empty arena to the allocator. The allocator's lock is held. */
void ds_accel__figures_retire(struct ds_accel__arena *arena);

/* ---- allocator_marks.c ---------------------------------------------------------------------- */

/* Record a mark at the current end of the arena's stream. NULL in *mark_out with DS_ACCEL_OK: the
 * stream has no work to wait for, or the call waited for it. The allocator's lock is held, so that
 * the stream is not destroyed. */
int32_t ds_accel__mark_record(struct ds_accel__arena *arena, struct ds_accel__mark **mark_out);
void ds_accel__mark_put(struct ds_accel__allocator *allocator, struct ds_accel__mark *mark);
/* Make the arena's stream wait for the mark on the device. NULL: no wait. */
int32_t ds_accel__mark_wait(struct ds_accel__arena *arena, struct ds_accel__mark *mark);
int32_t ds_accel__mark_synchronize(struct ds_accel__allocator *allocator,
                                   struct ds_accel__mark *mark);
bool ds_accel__mark_is_done(struct ds_accel__allocator *allocator, struct ds_accel__mark *mark);
void ds_accel__waits_get(struct ds_accel__allocator *allocator, struct ds_accel__waits *waits);
void ds_accel__waits_put(struct ds_accel__allocator *allocator, struct ds_accel__waits *waits);
int32_t ds_accel__waits_wait(struct ds_accel__arena *arena, struct ds_accel__waits *waits);
/* busy: the busy streams found so far in this pass; updated. */
bool ds_accel__waits_are_done(struct ds_accel__allocator *allocator, struct ds_accel__waits *waits,
                              struct ds_accel__busy *busy);
int32_t ds_accel__waits_synchronize(struct ds_accel__allocator *allocator,
                                    struct ds_accel__waits *waits);
/* Make marks for all streams that use the block except its home's. NULL in *waits_out: none is
 * needed. */
int32_t ds_accel__waits_make(struct ds_accel__block *block, struct ds_accel__arena *freeing,
                             struct ds_accel__waits **waits_out);
int32_t ds_accel__uses_add(struct ds_accel__block *block, struct ds_accel__arena *arena);
void ds_accel__uses_drop(struct ds_accel__block *block);
void ds_accel__marks_destroy(struct ds_accel__allocator *allocator);

/* ---- allocator_segments.c ------------------------------------------------------------------- */

/*
 * Add a segment to the arena, or grow one, and return a taken block in it, cut to size. No lock is
 * held; on success the arena's lock is held on return. ERR_NO_MEMORY also past the limit.
 */
int32_t ds_accel__segment_obtain(struct ds_accel__arena *arena, uint32_t kind, uint64_t fit_bytes,
                                 uint64_t align_bytes, bool may_grow,
                                 struct ds_accel__change *changes,
                                 struct ds_accel__block **block_out);
/* Steal a free segment that holds fit_bytes from an arena whose stream or pool was destroyed; this
 * arena's stream waits for that arena's work on the device. No lock is held. */
bool ds_accel__segment_steal(struct ds_accel__arena *arena, uint32_t kind, uint64_t fit_bytes,
                             uint64_t align_bytes);
/*
 * Release segments that are free as a whole to the driver, the longest idle first, until at most
 * keep_bytes are reserved or at least enough_bytes were released; returns the released bytes. No
 * lock is held.
 */
uint64_t ds_accel__segments_release(struct ds_accel__allocator *allocator, uint64_t keep_bytes,
                                    uint64_t enough_bytes);
/*
 * Release a segment of the arena that max_split_bytes keeps whole and that is large enough for the
 * request, or the largest such segments until their sum is large enough: true. No lock is held.
 */
bool ds_accel__segments_release_oversize(struct ds_accel__arena *arena, uint64_t fit_bytes);
/* Release large segments idle for at least the average number of requests, repeatedly, until
 * enough_bytes are released or no such segment is left. No lock is held. */
void ds_accel__segments_collect(struct ds_accel__allocator *allocator, uint64_t enough_bytes);
/* Free the pending blocks of all arenas whose waits are over. No lock is held. */
void ds_accel__pending_settle(struct ds_accel__allocator *allocator);
/* If more than keep_bytes are reserved, wait for pending blocks that keep free memory from merging,
 * or a segment from being released; not while a stream captures. No lock is held. */
void ds_accel__pending_finish(struct ds_accel__allocator *allocator, uint64_t keep_bytes);
/* Return an unused segment, which is in no arena, to the driver. No lock is held. */
int32_t ds_accel__segment_destroy(struct ds_accel__allocator *allocator,
                                  struct ds_accel__segment *segment);
/* Remove the segment and its only block, which is taken, from the arena. The arena's lock is
 * held. */
void ds_accel__segment_unlink(struct ds_accel__arena *arena, struct ds_accel__segment *segment);
/* Bytes that ds_accel__segments_release() could release. All locks are held. */
uint64_t ds_accel__segments_idle_bytes(const struct ds_accel__allocator *allocator);

/* ---- allocator_pending.c -------------------------------------------------------------------- */

/* Move each pending block to the free lists if its waits are done. The arena's lock is held. busy:
 * shared by one pass over several arenas, or NULL. */
void ds_accel__pending_collect(struct ds_accel__arena *arena, struct ds_accel__busy *busy,
                               struct ds_accel__change *changes);
/* Deferred blocks for which marks can now be made become pending. No lock is held. */
void ds_accel__deferred_settle(struct ds_accel__allocator *allocator);
/* Free a taken block in stream order: after the streams that use it. No lock is held. */
int32_t ds_accel__free_in_order(struct ds_accel__block *block, struct ds_accel__arena *freeing);
/* A taken block that no stream uses counts as freed, but is not reused yet. */
void ds_accel__free_to_hold(struct ds_accel__block *block);
/*
 * Defer freeing a taken block until marks can be recorded, that is, until a capture has ended or
 * the streams can be queried again. No lock is held.
 */
void ds_accel__block_defer(struct ds_accel__block *block, struct ds_accel__arena *freeing);
/* No stream but its home's uses the block. Its home's lock is held. */
void ds_accel__users_forget(struct ds_accel__block *block);

/* ---- allocator_alloc.c, allocator_free.c ---------------------------------------------------- */

#define DS_ACCEL__LARGEST_REQUEST (UINT64_C(1) << 56) /* no device has more */
#define DS_ACCEL__RACE_LIMIT 64                       /* retries after another thread was faster */

/* The slow paths of ds_accel__allocator_alloc() and ds_accel__allocator_free(), for any arguments.
 * No lock is held. */
int32_t ds_accel__alloc_slowly(struct ds_accel__arena *arena, uint64_t size_bytes,
                               uint64_t align_bytes, void **pointer_out);
int32_t ds_accel__free_slowly(struct ds_accel__allocator *allocator,
                              struct ds_accel__arena *freeing, void *pointer);

/* ---- allocator_debug.c ---------------------------------------------------------------------- */

#define DS_ACCEL__ZONE_BYTES UINT64_C(512) /* after each allocation, at least */

int32_t ds_accel__debug_init(struct ds_accel__allocator *allocator);
void ds_accel__debug_destroy(struct ds_accel__allocator *allocator);
/* Fill a live block. */
void ds_accel__debug_allocated(struct ds_accel__block *block);
/* Check a taken block and put it into quarantine; no lock held. ERR_INVALID: memory was
 * overwritten; the block is freed in any case. */
int32_t ds_accel__debug_free(struct ds_accel__block *block, struct ds_accel__arena *freeing);
/* Release blocks from quarantine until at most keep_bytes are held. ERR_INVALID: a block was
 * overwritten. */
int32_t ds_accel__debug_flush(struct ds_accel__allocator *allocator, uint64_t keep_bytes);

/* ---- allocator_arena.c ---------------------------------------------------------------------- */

/* A new arena of a stream, in the common pool or in a private pool (owner). The allocator's lock is
 * held. NULL: out of memory. */
struct ds_accel__arena *ds_accel__arena_make(struct ds_accel__allocator *allocator,
                                             ds_accel_plugin_stream_t *stream,
                                             const struct ds_accel__arena *common,
                                             struct ds_accel__private *owner);

/* ---- allocator_private.c -------------------------------------------------------------------- */

/* An arena of the pool ended. The allocator's lock is held. */
void ds_accel__private_shrink(struct ds_accel__allocator *allocator,
                              struct ds_accel__private *owner);

/* ---- allocator_pool.c ----------------------------------------------------------------------- */

/* The arena for an allocation on this stream: in the capture's pool, in the thread's pool or in the
 * common pool. The arena serves no other stream until ds_accel__arena_leave(). */
struct ds_accel__arena *ds_accel__arena_choose(struct ds_accel__arena *common);
void ds_accel__arena_leave(const struct ds_accel__arena *common, struct ds_accel__arena *arena);

/* ---- allocator_history.c -------------------------------------------------------------------- */

enum ds_accel__action {
    DS_ACCEL__ACTION_ALLOC,
    DS_ACCEL__ACTION_FREE_REQUESTED,
    DS_ACCEL__ACTION_FREE_COMPLETED,
    DS_ACCEL__ACTION_SEGMENT_ALLOC,
    DS_ACCEL__ACTION_SEGMENT_FREE,
    DS_ACCEL__ACTION_SEGMENT_MAP,
    DS_ACCEL__ACTION_SEGMENT_UNMAP,
    DS_ACCEL__ACTION_SNAPSHOT,
    DS_ACCEL__ACTION_OOM
};

/* Record an entry if the history is on; takes a leaf lock. Returns the number of the call stack, or
 * 0. */
uint32_t ds_accel__history_add(struct ds_accel__allocator *allocator, enum ds_accel__action action,
                               uint64_t address, uint64_t size_bytes, uint64_t stream_id);
void ds_accel__history_segment(struct ds_accel__allocator *allocator,
                               const struct ds_accel__segment *segment, uint64_t address,
                               uint64_t size_bytes, enum ds_accel__action action);
/* "in main (program+0x123)", or "not recorded". */
void ds_accel__history_describe(const struct ds_accel__allocator *allocator, uint32_t frames,
                                char *text, size_t text_size);
void ds_accel__history_destroy(struct ds_accel__allocator *allocator);

/* ---- allocator_oom.c ------------------------------------------------------------------------ */

/* ERR_NO_MEMORY with the figures and an advice. No lock is held. */
int32_t ds_accel__allocator_fail(struct ds_accel__arena *arena, uint64_t size_bytes);
/* The block, in any state, that contains an address; NULL: none. All locks are held. */
const struct ds_accel__block *ds_accel__block_around(const struct ds_accel__allocator *allocator,
                                                     uint64_t address);
/* The error for an address that is not a live block's: ERR_NOT_FOUND if not in this allocator's
 * memory; ERR_INVALID. No lock is held. */
int32_t ds_accel__allocator_refuse(struct ds_accel__allocator *allocator, const char *call,
                                   const void *pointer);

#endif
