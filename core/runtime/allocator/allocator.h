/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What the files of the caching allocator share; allocator.c explains how they fit together.
 *
 * Locks, from the outermost: an allocator's own; any number of arenas', by whoever holds that one,
 * else one arena's; then one of the leaves (index, marks, history). Nobody waits for a lock while
 * holding one that stands behind it, and nobody calls the driver for memory while holding any.
 */
#ifndef DS_ACCEL_ALLOCATOR_H
#define DS_ACCEL_ALLOCATOR_H

#include "runtime/caching.h"

#include <assert.h>
#include <pthread.h>

struct ds_accel__slab;

#define DS_ACCEL__UNIT UINT64_C(512) /* blocks begin at, and measure, multiples of it */
#define DS_ACCEL__UNIT_SHIFT 9

/* ---- a lock that is cheap when nobody else wants it (allocator_lock.c) ---------------------- */

struct ds_accel__latch {
    uint32_t is_taken;
    uint32_t waiter_count;
};

void ds_accel__latch_wait(struct ds_accel__latch *latch);
void ds_accel__latch_wake(struct ds_accel__latch *latch);

/* Is it anybody's? For assertions of who has it. */
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

/* Of small segments, of large ones. */
enum {
    DS_ACCEL__SMALL,
    DS_ACCEL__LARGE,
    DS_ACCEL__KIND_COUNT
};
#define DS_ACCEL__ALL DS_ACCEL__KIND_COUNT /* where both are counted together */

/* What every allocation and every free changes: one vector of eight. */
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

/* What an operation adds and what it takes away. */
struct ds_accel__change {
    struct ds_accel__lanes added;
    struct ds_accel__lanes removed;
};

/* An arena's figures. Peaks are exact as long as current <= limit: see allocator_stats.c. */
struct ds_accel__figures {
    struct ds_accel__lanes current[DS_ACCEL__KIND_COUNT]; /* of all: their sum */
    struct ds_accel__lanes limit[DS_ACCEL__KIND_COUNT + 1];
    struct ds_accel__lanes total[DS_ACCEL__KIND_COUNT]; /* of everything ever added */
};

/* What is current of a kind, or of all. */
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
    DS_ACCEL__BLOCK_UNDONE,  /* free, but not merged: the arena's last allocations, taken back */
    DS_ACCEL__BLOCK_TAKEN,   /* on its way from one state to another: one thread's */
    DS_ACCEL__BLOCK_LIVE,    /* the program's */
    DS_ACCEL__BLOCK_PENDING, /* given back, but other streams may not be done with it */
    DS_ACCEL__BLOCK_UNMAPPED /* addresses of a growable segment, without memory */
};

/* What cutting a block from a free one did to the figures of what is split and free. */
enum ds_accel__origin {
    DS_ACCEL__ORIGIN_UNCOUNTED,   /* nothing: a whole segment, or one that grows */
    DS_ACCEL__ORIGIN_SPLIT_CUT,   /* a part of a free part */
    DS_ACCEL__ORIGIN_SPLIT_WHOLE, /* all of a free part */
    DS_ACCEL__ORIGIN_SEGMENT_CUT  /* a part of a free segment */
};

/* Why a pending block waits for more than marks. */
enum ds_accel__deferred {
    DS_ACCEL__DEFERRED_NOT,
    DS_ACCEL__DEFERRED_MARKS, /* they are made when a capture has ended, or can be made again */
    DS_ACCEL__DEFERRED_HELD   /* it is in quarantine */
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

/* Streams that use a live block besides the one that it was allocated on. */
struct ds_accel__uses {
    uint32_t count;
    uint32_t capacity;
    struct ds_accel__arena *arenas[];
};

/*
 * A piece of a segment. Never given back to the heap, so that a stale pointer to it can be read.
 * Blocks of two streams share no cache lines, nor the pairs of them that processors fetch together.
 */
struct ds_accel__block {
    uint64_t address;
    uint64_t size_bytes;
    struct ds_accel__arena *home; /* whose lock guards it, and whose free lists it goes to */
    struct ds_accel__arena *user; /* of the stream that it was allocated on */
    uint64_t requested_bytes;
    uint64_t fit_bytes; /* the rounded request that it was cut for */
    uint8_t state;      /* enum ds_accel__block_state */
    uint8_t kind;
    uint8_t is_deferred; /* pending: enum ds_accel__deferred */
    uint8_t is_oversize;
    uint8_t is_filled; /* debug: its red zone */
    uint8_t origin;    /* enum ds_accel__origin */
    uint32_t before;   /* the arena's stamp before it was allocated, and after: allocator_lists.c */
    uint32_t after;    /* 0: taking it back is no way to get there again */
    struct ds_accel__block *link_next;     /* in a list, by state; in a tree the larger ones */
    struct ds_accel__block *link_previous; /* the smaller ones */
    struct ds_accel__block *next;          /* neighbours in the segment */
    struct ds_accel__block *previous;
    struct ds_accel__segment *segment;
    struct ds_accel__uses *uses;   /* live or deferred: NULL for most */
    struct ds_accel__waits *waits; /* pending: not NULL unless deferred */
    uint32_t frames;               /* where it was allocated, in the history's table; 0: not kept */
    uint32_t freed_frames;
} __attribute__((aligned(128)));
DS_ACCEL_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(struct ds_accel__block) == 128,
                       "a block is two cache lines");

/* One piece of memory from the driver, or a range of addresses that memory is put under. */
struct ds_accel__segment {
    uint64_t address;
    uint64_t size_bytes;     /* with memory */
    uint64_t reserved_bytes; /* addresses; 0: it does not grow */
    uint64_t page_bytes;     /* of one that grows: what is mapped and unmapped at a time */
    uint64_t idle_since;     /* the allocator's clock when it became free as a whole */
    uint64_t idle_request;   /* and its request_count */
    uint64_t stream_id;      /* of its home, which may serve another before this is gone */
    struct ds_accel__arena *home;
    struct ds_accel__block *first;
    struct ds_accel__block *last;
    struct ds_accel__segment *next; /* of the arena's */
    struct ds_accel__segment *previous;
    uint32_t kind;
    uint32_t frames;
    bool was_mapped; /* one that grows: it counts as a segment */
};

#define DS_ACCEL__LEVEL_COUNT 40u
#define DS_ACCEL__SUBLEVEL_COUNT 16u
#define DS_ACCEL__SUBLEVEL_SHIFT 4

/* Free blocks by size: two levels of classes and a bit for each that is not empty; in each class a
 * tree by size and address. */
struct ds_accel__lists {
    uint64_t levels;
    uint32_t sublevels[DS_ACCEL__LEVEL_COUNT];
    struct ds_accel__block *roots[DS_ACCEL__LEVEL_COUNT][DS_ACCEL__SUBLEVEL_COUNT];
};

/* The memory of one stream, or of one stream in one private pool. */
struct ds_accel__arena {
    struct ds_accel__latch latch; /* guards all below but what says otherwise */
    uint32_t is_capturing;
    uint32_t is_gone; /* the stream was destroyed: gone marks its end */
    struct ds_accel__allocator *allocator;
    ds_accel_plugin_stream_t *stream; /* constant while the arena is in use */
    struct ds_accel__block *undone;   /* what was taken back last comes first */
    uint32_t stamp;                   /* of the free memory as it is: allocator_lists.c */
    uint32_t last_stamp;
    struct ds_accel__figures figures;
    struct ds_accel__segment *segments;
    struct ds_accel__block *pending;
    struct ds_accel__mark *gone;
    struct ds_accel__private *owner; /* the private pool; NULL: the common one */
    /* Under the allocator's lock. */
    struct ds_accel__arena *next;
    struct ds_accel__private *capture; /* where this stream's memory comes from while it captures */
    uint64_t id;                       /* never given again, as the struct is */
    uint64_t stream_id;                /* for people: 0 is the first stream, the default one */
    uint32_t use_count; /* live blocks of other arenas that it uses, and calls; atomic */
    struct ds_accel__lists lists[DS_ACCEL__KIND_COUNT];
} __attribute__((aligned(128)));

/* A private pool: its arenas are nobody else's. */
struct ds_accel__private {
    struct ds_accel__private *next;
    uint64_t id;
    uint32_t reference_count; /* handle, graphs captured with it, threads that use it now */
    uint32_t is_gone;         /* no reference is left: its memory is for everybody */
    uint32_t arena_count;
};

/* An event that was recorded for the allocator. */
struct ds_accel__mark {
    struct ds_accel__mark *next; /* of those that wait for their next use */
    ds_accel_plugin_event_t *event;
    uint64_t arena_id; /* where it was recorded */
    uint64_t order;    /* of two of one arena's, the greater one is no earlier */
    uint32_t reference_count;
};

/* Streams that were found busy in one pass over pending blocks: marks of one are reached in their
 * order, so that none behind the first that was not is asked for. More streams are asked again. */
struct ds_accel__busy {
    uint32_t count;
    struct {
        uint64_t arena_id;
        uint64_t order; /* of a mark that is not reached */
    } streams[16];
};

/* Address to block: open addressing, read without a lock. */
struct ds_accel__index_entry {
    uint64_t address;
    struct ds_accel__block *block;
};

struct ds_accel__index_table {
    struct ds_accel__index_table *older; /* readers may still be in it */
    uint64_t mask;
    struct ds_accel__index_entry entries[];
};

struct ds_accel__index {
    struct ds_accel__index_table *table; /* atomic */
    pthread_mutex_t lock;                /* for who changes it; guards what follows too */
    uint64_t used_count;                 /* entries that are not empty: blocks and graves */
    uint64_t block_count;
    struct ds_accel__block *spare;
    struct ds_accel__slab *slabs;
};

struct ds_accel__history;
struct ds_accel__quarantine;

/* What is seldom done, or by few: any of it, and the short way is left. */
#define DS_ACCEL__SPECIAL_HISTORY 1u
#define DS_ACCEL__SPECIAL_POOLS 2u
#define DS_ACCEL__SPECIAL_MODE 4u
#define DS_ACCEL__SPECIAL_LAYERS 8u
#define DS_ACCEL__SPECIAL_GARBAGE 16u /* it is collected: every request is counted */

struct ds_accel__allocator {
    /* Under the lock below: what was at most, and the totals of arenas that are gone. */
    struct ds_accel__lanes peak[DS_ACCEL__KIND_COUNT + 1];
    struct ds_accel__lanes retired[DS_ACCEL__KIND_COUNT];

    /* Read by every call, written seldom. */
    const struct ds_accel_plugin *table;
    ds_accel_plugin_device_t *device;
    ds_accel_device_t *handle; /* for the failure callback; NULL offline */
    uint32_t special;          /* DS_ACCEL__SPECIAL_*; atomic */
    uint32_t device_index;     /* for texts */
    uint64_t id;               /* unique in the process */
    struct ds_accel__index index;
    struct ds_accel__allocator_options options;
    uint64_t granule_bytes; /* of virtual memory; 0: there is none */
    uint64_t largest_bytes; /* that the driver gives in one allocation; UINT64_MAX: not known */
    bool is_synchronized;   /* nothing is asynchronous: no order to keep */
    bool has_events;

    /* Outermost: one segment grows or shrinks at a time; no capture begins while one shrinks,
     * or while debug reads memory back. */
    pthread_mutex_t grow_lock;
    pthread_mutex_t lock; /* guards all below but the leaves */
    struct ds_accel__arena *arenas;
    struct ds_accel__arena *spare_arenas;
    struct ds_accel__private *privates;
    uint64_t last_private_id;
    uint64_t last_arena_id;
    uint64_t asked_bytes; /* that the driver is being asked for now */
    uint64_t clock;       /* of frees that made a segment idle; atomic */
    /* Large requests to the common pools while garbage is collected; atomic. */
    uint64_t request_count;
    uint64_t limit_bytes; /* of reserved bytes; UINT64_MAX: none */
    uint32_t arena_count;
    uint32_t capture_count; /* streams that capture now */
    uint32_t begun_count;   /* threads that allocate from a private pool now */
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
    uint64_t mark_count;                     /* recorded ever; atomic */
    struct ds_accel__history *history;       /* allocator_history.c */
    struct ds_accel__quarantine *quarantine; /* allocator_debug.c */
};

/* ---- allocator_index.c ---------------------------------------------------------------------- */

int32_t ds_accel__index_init(struct ds_accel__index *index);
void ds_accel__index_destroy(struct ds_accel__index *index);
/* A block struct for that address, known from now on; NULL: no memory. */
struct ds_accel__block *ds_accel__index_add(struct ds_accel__index *index, uint64_t address);
void ds_accel__index_remove(struct ds_accel__index *index, struct ds_accel__block *block);
/* The same as the inline search, sure of its answer. */
struct ds_accel__block *ds_accel__index_find_sure(struct ds_accel__index *index, uint64_t address);

static inline uint64_t ds_accel__index_hash(uint64_t address)
{
    uint64_t hash = (address >> DS_ACCEL__UNIT_SHIFT) * UINT64_C(0x9e3779b97f4a7c15);

    return hash ^ (hash >> 32);
}

/*
 * The block that begins at an address, or NULL. Any answer is only a hint, to be checked under the
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

/* Where torch counts what is split and free: not in segments that grow. */
static inline bool ds_accel__block_counts_as_split(const struct ds_accel__block *block)
{
    return ds_accel__block_is_split(block) && block->segment->reserved_bytes == 0;
}

/* The free memory is another now: no allocation before this can be taken back. */
static inline void ds_accel__arena_renew(struct ds_accel__arena *arena)
{
    arena->last_stamp += arena->last_stamp == UINT32_MAX ? 2 : 1; /* 0 is no stamp */
    arena->stamp = arena->last_stamp;
}

/* Into a free list, merged with free neighbours before; the struct that describes it then. */
struct ds_accel__block *ds_accel__block_release(struct ds_accel__arena *arena,
                                                struct ds_accel__block *block,
                                                struct ds_accel__change *changes);
/* Out of its free list. */
void ds_accel__block_unlink(struct ds_accel__arena *arena, struct ds_accel__block *block,
                            struct ds_accel__change *changes);
/* A free block that holds fit_bytes at that alignment, out of its list and cut to size; NULL. */
struct ds_accel__block *ds_accel__block_take(struct ds_accel__arena *arena, uint32_t kind,
                                             uint64_t fit_bytes, uint64_t align_bytes,
                                             struct ds_accel__change *changes);
/*
 * Cut a taken block so that it begins aligned and is no larger than it need be; what is left over
 * goes to the free lists, or with waits becomes pending for the same. NULL: no memory for a struct;
 * all of the block is free or pending again.
 */
struct ds_accel__block *ds_accel__block_cut(struct ds_accel__arena *arena,
                                            struct ds_accel__block *block, uint64_t fit_bytes,
                                            uint64_t align_bytes, struct ds_accel__waits *waits,
                                            struct ds_accel__change *changes);
/* Room for this size at this alignment? */
bool ds_accel__block_holds(const struct ds_accel__block *block, uint64_t fit_bytes,
                           uint64_t align_bytes);
/* Into the list of those that other streams may still use. */
void ds_accel__pending_push(struct ds_accel__arena *arena, struct ds_accel__block *block);
void ds_accel__pending_unlink(struct ds_accel__arena *arena, struct ds_accel__block *block);
/* What was taken back goes to the free lists and is merged; no figure changes by that. */
void ds_accel__arena_flush(struct ds_accel__arena *arena);
/* Cut off what lies behind the first size_bytes; the new block is taken. NULL: no memory. */
struct ds_accel__block *ds_accel__block_divide(struct ds_accel__arena *arena,
                                               struct ds_accel__block *block, uint64_t size_bytes);
/* Take right into left, its neighbour; the struct of right is nobody's then. */
void ds_accel__block_join(struct ds_accel__arena *arena, struct ds_accel__block *left,
                          struct ds_accel__block *right);

/* Add what is free, and look for the largest block of it. */
void ds_accel__arena_free_space(const struct ds_accel__arena *arena, uint64_t *free_bytes,
                                uint64_t *largest_bytes);

/* ---- allocator_stats.c ---------------------------------------------------------------------- */

/*
 * Count a change in an arena whose lock is held. False: a peak may have moved; nothing was counted,
 * and ds_accel__figures_settle() is to be called once the lock is released.
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

/* What the block's becoming the program's changes, and what its freeing does, besides what the
 * lists count. */
void ds_accel__change_alloc(const struct ds_accel__block *block, struct ds_accel__change *change);
void ds_accel__change_free(const struct ds_accel__block *block, bool stays_active,
                           struct ds_accel__change *change);
/*
 * Count the changes of both kinds and put the block, which is taken, into its state; in whichever
 * way. The arena's lock is held, and released; the allocator's is not held. block: NULL or one of
 * the arena's.
 */
void ds_accel__figures_finish(struct ds_accel__arena *arena, const struct ds_accel__change *changes,
                              struct ds_accel__block *block, enum ds_accel__block_state state);
/* The second half of it: no lock is held, and none at the end. */
void ds_accel__figures_settle(struct ds_accel__arena *arena, const struct ds_accel__change *changes,
                              struct ds_accel__block *block, enum ds_accel__block_state state);
void ds_accel__figure_add(struct ds_accel__figure *figure, int64_t amount);
/* The allocator's lock is held: a segment came or went. */
void ds_accel__figures_segment(struct ds_accel__allocator *allocator, uint32_t kind, int64_t count,
                               int64_t bytes);
/* All locks are held, and stay so: count the changes of both kinds. */
void ds_accel__figures_count(struct ds_accel__arena *arena, const struct ds_accel__change *changes);
/* All arenas, the allocator's lock held. */
void ds_accel__arenas_lock(struct ds_accel__allocator *allocator);
/* All locks are held: every arena's free memory is in its lists, and merged. */
void ds_accel__arenas_flush(struct ds_accel__allocator *allocator);
void ds_accel__arenas_unlock(struct ds_accel__allocator *allocator);
/* The allocator's lock is held: what the arena counted is the allocator's, and it holds nothing. */
void ds_accel__figures_retire(struct ds_accel__arena *arena);

/* ---- allocator_marks.c ---------------------------------------------------------------------- */

/* A mark at the present end of the arena's stream. NULL in *mark_out with DS_ACCEL_OK: the stream
 * has nothing to wait for, or was waited for. The allocator's lock is held: it keeps the stream. */
int32_t ds_accel__mark_record(struct ds_accel__arena *arena, struct ds_accel__mark **mark_out);
void ds_accel__mark_put(struct ds_accel__allocator *allocator, struct ds_accel__mark *mark);
/* The arena's stream goes on only after the mark. NULL: at once. */
int32_t ds_accel__mark_wait(struct ds_accel__arena *arena, struct ds_accel__mark *mark);
int32_t ds_accel__mark_synchronize(struct ds_accel__allocator *allocator,
                                   struct ds_accel__mark *mark);
bool ds_accel__mark_is_done(struct ds_accel__allocator *allocator, struct ds_accel__mark *mark);
void ds_accel__waits_get(struct ds_accel__allocator *allocator, struct ds_accel__waits *waits);
void ds_accel__waits_put(struct ds_accel__allocator *allocator, struct ds_accel__waits *waits);
int32_t ds_accel__waits_wait(struct ds_accel__arena *arena, struct ds_accel__waits *waits);
/* busy: what this pass knows, and learns. */
bool ds_accel__waits_are_done(struct ds_accel__allocator *allocator, struct ds_accel__waits *waits,
                              struct ds_accel__busy *busy);
int32_t ds_accel__waits_synchronize(struct ds_accel__allocator *allocator,
                                    struct ds_accel__waits *waits);
/* Marks for all streams that use the block but its home's: NULL in *waits_out: none is needed. */
int32_t ds_accel__waits_make(struct ds_accel__block *block, struct ds_accel__arena *freeing,
                             struct ds_accel__waits **waits_out);
int32_t ds_accel__uses_add(struct ds_accel__block *block, struct ds_accel__arena *arena);
void ds_accel__uses_drop(struct ds_accel__block *block);
void ds_accel__marks_destroy(struct ds_accel__allocator *allocator);

/* ---- allocator_segments.c ------------------------------------------------------------------- */

/*
 * A new segment of the arena's, or a grown one, and in it a taken block cut to size. No lock is
 * held; on success the arena's is held at the end. ERR_NO_MEMORY also past the limit.
 */
int32_t ds_accel__segment_obtain(struct ds_accel__arena *arena, uint32_t kind, uint64_t fit_bytes,
                                 uint64_t align_bytes, bool may_grow,
                                 struct ds_accel__change *changes,
                                 struct ds_accel__block **block_out);
/* Move a free segment that holds fit_bytes to this arena from one whose stream or pool is gone;
 * this one's stream waits for it on the device. No lock is held. */
bool ds_accel__segment_steal(struct ds_accel__arena *arena, uint32_t kind, uint64_t fit_bytes,
                             uint64_t align_bytes);
/*
 * Give segments that are free as a whole back to the driver, the longest idle first, until at most
 * keep_bytes are reserved or at least enough_bytes were given back: how many were. No lock is held.
 */
uint64_t ds_accel__segments_release(struct ds_accel__allocator *allocator, uint64_t keep_bytes,
                                    uint64_t enough_bytes);
/*
 * A segment of the arena's that max_split_bytes keeps whole and that is large enough for the
 * request, or the largest of them until they are: true. No lock is held.
 */
bool ds_accel__segments_release_oversize(struct ds_accel__arena *arena, uint64_t fit_bytes);
/* Large segments that have been idle for the average of requests or longer go, again and again
 * until so much has been given back or there are none. No lock is held. */
void ds_accel__segments_collect(struct ds_accel__allocator *allocator, uint64_t enough_bytes);
/* In all arenas, what nobody waits for any more is free. No lock is held. */
void ds_accel__pending_settle(struct ds_accel__allocator *allocator);
/* Wait for what is pending and keeps free memory apart, or from the driver, if more than that is
 * reserved; not while a stream captures. No lock is held. */
void ds_accel__pending_finish(struct ds_accel__allocator *allocator, uint64_t keep_bytes);
/* Give one back that nobody uses; it is in no arena. No lock is held. */
int32_t ds_accel__segment_destroy(struct ds_accel__allocator *allocator,
                                  struct ds_accel__segment *segment);
/* The arena's lock is held: out of it, with its only block, which is taken. */
void ds_accel__segment_unlink(struct ds_accel__arena *arena, struct ds_accel__segment *segment);
/* Bytes that segments_release() could give back. All locks are held. */
uint64_t ds_accel__segments_idle_bytes(const struct ds_accel__allocator *allocator);

/* ---- allocator_pending.c -------------------------------------------------------------------- */

/* Pending blocks whose waits are over go to the free lists. The arena's lock is held. busy: of a
 * pass over many arenas, else NULL. */
void ds_accel__pending_collect(struct ds_accel__arena *arena, struct ds_accel__busy *busy,
                               struct ds_accel__change *changes);
/* Deferred blocks of which marks can be made now become pending. No lock is held. */
void ds_accel__deferred_settle(struct ds_accel__allocator *allocator);
/* A taken block is free once the streams that use it are done. No lock is held. */
int32_t ds_accel__free_in_order(struct ds_accel__block *block, struct ds_accel__arena *freeing);
/* A taken block that all are done with is free for the program, but not to be used again yet. */
void ds_accel__free_to_hold(struct ds_accel__block *block);
/*
 * A taken block stays out of use until marks can be made: a capture has ended, or the streams can
 * be asked again. No lock is held.
 */
void ds_accel__block_defer(struct ds_accel__block *block, struct ds_accel__arena *freeing);
/* No stream but its home's uses the block. Its home's lock is held. */
void ds_accel__users_forget(struct ds_accel__block *block);

/* ---- allocator_alloc.c, allocator_free.c ---------------------------------------------------- */

#define DS_ACCEL__LARGEST_REQUEST (UINT64_C(1) << 56) /* no device has more */
#define DS_ACCEL__RACE_LIMIT 64                       /* so often another thread may be quicker */

/* The slow paths of ds_accel__allocator_alloc() and ds_accel__allocator_free(), for any arguments.
 * No lock is held. */
int32_t ds_accel__alloc_slowly(struct ds_accel__arena *arena, uint64_t size_bytes,
                               uint64_t align_bytes, void **pointer_out);
int32_t ds_accel__free_slowly(struct ds_accel__allocator *allocator,
                              struct ds_accel__arena *freeing, void *pointer);

/* ---- allocator_debug.c ---------------------------------------------------------------------- */

#define DS_ACCEL__ZONE_BYTES UINT64_C(512) /* behind each allocation, at least */

int32_t ds_accel__debug_init(struct ds_accel__allocator *allocator);
void ds_accel__debug_destroy(struct ds_accel__allocator *allocator);
/* A live block: fill it. */
void ds_accel__debug_allocated(struct ds_accel__block *block);
/* A taken block, no lock held: look at it and hold it. ERR_INVALID: something was overwritten; it
 * is freed all the same. */
int32_t ds_accel__debug_free(struct ds_accel__block *block, struct ds_accel__arena *freeing);
/* Let held blocks go until at most keep_bytes are held. ERR_INVALID: one was overwritten. */
int32_t ds_accel__debug_flush(struct ds_accel__allocator *allocator, uint64_t keep_bytes);

/* ---- allocator_arena.c ---------------------------------------------------------------------- */

/* A new arena of a stream: for a private pool the one of that stream there. The allocator's lock is
 * held. NULL: no memory. */
struct ds_accel__arena *ds_accel__arena_make(struct ds_accel__allocator *allocator,
                                             ds_accel_plugin_stream_t *stream,
                                             const struct ds_accel__arena *common,
                                             struct ds_accel__private *owner);

/* ---- allocator_private.c -------------------------------------------------------------------- */

/* The allocator's lock is held: an arena of the pool's went. */
void ds_accel__private_shrink(struct ds_accel__allocator *allocator,
                              struct ds_accel__private *owner);

/* ---- allocator_pool.c ----------------------------------------------------------------------- */

/* Where an allocation on this stream comes from: the capture's pool, the thread's, the common one.
 * It serves no other stream until ds_accel__arena_leave(). */
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

/* Keep an entry, if any are kept; a leaf's lock is taken. The frames that it was given, or 0. */
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

/* ERR_NO_MEMORY with the figures and what would help. No lock is held. */
int32_t ds_accel__allocator_fail(struct ds_accel__arena *arena, uint64_t size_bytes);
/* The block, whatever its state, that an address lies in; NULL. All locks are held. */
const struct ds_accel__block *ds_accel__block_around(const struct ds_accel__allocator *allocator,
                                                     uint64_t address);
/* What an address is that is no live block's: ERR_NOT_FOUND, not ours; ERR_INVALID. No lock is
 * held. */
int32_t ds_accel__allocator_refuse(struct ds_accel__allocator *allocator, const char *call,
                                   const void *pointer);

#endif
