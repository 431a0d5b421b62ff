/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Declarations shared by the files of the caching allocator; allocator.c explains its structure.
 *
 * Locks are taken in this order: the lock of debug mode's quarantine; grow_lock; the allocator's
 * lock; arena locks; one of the leaf locks (index, marks, history). A thread that holds the
 * allocator's lock may take several arena locks; a thread that does not hold it takes at most one.
 * No thread waits for a lock while it holds a lock that comes later in this order. While a thread
 * allocates memory from the driver or maps memory, it holds none of these locks except grow_lock.
 */
#ifndef DS_ACCEL_RUNTIME_ALLOCATOR_ALLOCATOR_H
#define DS_ACCEL_RUNTIME_ALLOCATOR_ALLOCATOR_H

#include "runtime/caching.h"

#include <assert.h>
#include <pthread.h>

struct ds_accel__slab;

#define DS_ACCEL__UNIT UINT64_C(512) /* addresses and sizes of blocks are multiples of this */
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

/* Kinds of segments. */
enum {
    DS_ACCEL__SMALL,
    DS_ACCEL__LARGE,
    DS_ACCEL__KIND_COUNT
};
#define DS_ACCEL__ALL DS_ACCEL__KIND_COUNT /* small and large segments together */

/* Statistics that an allocation or a free may change. Their eight values fill one cache line. */
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

/* Statistics of one arena. Peaks are exact as long as current <= limit: see allocator_stats.c. */
struct ds_accel__figures {
    /* by kind; the value for DS_ACCEL__ALL is not stored: it is the sum over the kinds */
    struct ds_accel__lanes current[DS_ACCEL__KIND_COUNT];
    struct ds_accel__lanes limit[DS_ACCEL__KIND_COUNT + 1];
    struct ds_accel__lanes total[DS_ACCEL__KIND_COUNT]; /* sum of all amounts ever added */
};

/* Return the current value of a statistic for one kind, or for DS_ACCEL__ALL. */
static inline int64_t ds_accel__figures_current(const struct ds_accel__figures *figures,
                                                unsigned kind, unsigned lane)
{
    return kind == DS_ACCEL__ALL ? figures->current[DS_ACCEL__SMALL].lane[lane] +
                                       figures->current[DS_ACCEL__LARGE].lane[lane]
                                 : figures->current[kind].lane[lane];
}

/* A statistic that changes rarely; guarded by the allocator's lock. */
struct ds_accel__figure {
    int64_t current;
    int64_t peak;
    int64_t total;
};

/* ---- blocks, segments, arenas, pools, marks ------------------------------------------------- */

enum ds_accel__block_state {
    DS_ACCEL__BLOCK_UNUSED, /* the struct describes no memory */
    DS_ACCEL__BLOCK_FREE,   /* in a free list */
    /* freed, but not merged and in no free list, for a request of the same size: see
     * allocator_lists.c */
    DS_ACCEL__BLOCK_UNDONE,
    DS_ACCEL__BLOCK_TAKEN,   /* between two states: one thread owns the block */
    DS_ACCEL__BLOCK_LIVE,    /* owned by the program */
    DS_ACCEL__BLOCK_PENDING, /* freed, but other streams may still use it */
    DS_ACCEL__BLOCK_UNMAPPED /* addresses of a growable segment that have no memory mapped */
};

/* How cutting a block from a free block changes the statistics of split free memory. */
enum ds_accel__origin {
    /* no change: the block is a whole segment, or is in a growable segment */
    DS_ACCEL__ORIGIN_UNCOUNTED,
    DS_ACCEL__ORIGIN_SPLIT_CUT,   /* the block is cut from a free part of a segment */
    DS_ACCEL__ORIGIN_SPLIT_WHOLE, /* the block is a whole free part of a segment */
    DS_ACCEL__ORIGIN_SEGMENT_CUT  /* the block is cut from a segment that was free as a whole */
};

/* Reason why a pending block has no marks yet. */
enum ds_accel__deferred {
    DS_ACCEL__DEFERRED_NOT,
    /* marks are made at the end of a capture or at the next trim, if that is possible then */
    DS_ACCEL__DEFERRED_MARKS,
    DS_ACCEL__DEFERRED_HELD /* the block is in quarantine, or is never reused */
};

struct ds_accel__arena;
struct ds_accel__segment;
struct ds_accel__mark;

/* A set of marks; the parts of a split block share it. */
struct ds_accel__waits {
    uint32_t reference_count;
    uint32_t count;
    struct ds_accel__mark *marks[];
};

/* Arenas of the streams that use a live or deferred block, in addition to the arenas home and
 * user. */
struct ds_accel__uses {
    uint32_t count;
    uint32_t capacity;
    struct ds_accel__arena *arenas[];
};

/*
 * A piece of a segment. The struct is never returned to the heap, so that reading through a stale
 * pointer is safe. Because of its alignment, two blocks never share a cache line, or a pair of
 * lines that processors fetch together.
 */
struct ds_accel__block {
    uint64_t address;
    uint64_t size_bytes;
    /* the arena whose lock guards the block and whose free lists get it back */
    struct ds_accel__arena *home;
    struct ds_accel__arena *user; /* arena of the stream that the block was allocated on */
    uint64_t requested_bytes;
    uint64_t fit_bytes; /* the request, rounded, for which the block was cut */
    uint8_t state;      /* enum ds_accel__block_state */
    uint8_t kind;
    uint8_t is_deferred; /* of a pending block: enum ds_accel__deferred */
    uint8_t is_oversize;
    uint8_t is_filled; /* debug mode: its red zone is filled */
    uint8_t origin;    /* enum ds_accel__origin */
    uint32_t before;   /* the arena's stamp before the block's allocation; see allocator_lists.c */
    /* the arena's stamp after the block's allocation; 0: undoing the allocation would not restore
     * the earlier state of the free memory */
    uint32_t after;
    struct ds_accel__block *link_next;     /* in a list; in a tree: child with larger blocks */
    struct ds_accel__block *link_previous; /* in a list; in a tree: child with smaller blocks */
    struct ds_accel__block *next;          /* following block in the segment */
    struct ds_accel__block *previous;
    struct ds_accel__segment *segment;
    struct ds_accel__uses *uses;   /* of a live or deferred block; NULL for most blocks */
    struct ds_accel__waits *waits; /* of a pending block; NULL if the block is deferred */
    /* number of the allocation's call stack in the history's table; 0: not recorded */
    uint32_t frames;
    uint32_t freed_frames;
} __attribute__((aligned(128)));
DS_ACCEL_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(struct ds_accel__block) == 128,
                       "a block is two cache lines");

/* One piece of memory from the driver, or a growable range of addresses. */
struct ds_accel__segment {
    uint64_t address;
    uint64_t size_bytes; /* size of the memory in the segment */
    /* size of the reserved address range; 0: the segment is not growable */
    uint64_t reserved_bytes;
    uint64_t page_bytes;   /* of a growable segment: unit of mapping and unmapping */
    uint64_t idle_since;   /* the allocator's clock when the segment became free as a whole */
    uint64_t idle_request; /* the allocator's request_count at that time */
    /* ID of the home arena's stream; copied because the arena may serve another stream before the
     * segment is released */
    uint64_t stream_id;
    struct ds_accel__arena *home;
    struct ds_accel__block *first;
    struct ds_accel__block *last;
    struct ds_accel__segment *next; /* links in the arena's list of segments */
    struct ds_accel__segment *previous;
    uint32_t kind;
    uint32_t frames;
    bool was_mapped; /* of a growable segment: memory was mapped, so statistics count the segment */
};

#define DS_ACCEL__LEVEL_COUNT 40u
#define DS_ACCEL__SUBLEVEL_COUNT 16u
#define DS_ACCEL__SUBLEVEL_SHIFT 4

/* Free blocks by size, in two levels of size classes. A bit is set for each class that is not
 * empty. The blocks of a class form a tree ordered by size and address. */
struct ds_accel__lists {
    uint64_t levels;
    uint32_t sublevels[DS_ACCEL__LEVEL_COUNT];
    struct ds_accel__block *roots[DS_ACCEL__LEVEL_COUNT][DS_ACCEL__SUBLEVEL_COUNT];
};

/* The memory of one stream, or of one stream in one private pool. */
struct ds_accel__arena {
    struct ds_accel__latch latch; /* guards all members below unless noted otherwise */
    uint32_t is_capturing;
    uint32_t is_gone; /* the stream was destroyed; member gone marks the end of its work */
    /* is_gone is set, but no mark could be made and no wait succeeded: the end of the stream's work
     * is not known; atomic */
    uint32_t is_unmarked;
    struct ds_accel__allocator *allocator;
    ds_accel_plugin_stream_t *stream; /* does not change while the arena is in use */
    struct ds_accel__block *undone;   /* list of undone blocks, the latest first */
    uint32_t stamp; /* identifies the current state of the free memory; see allocator_lists.c */
    uint32_t last_stamp;
    struct ds_accel__figures figures;
    struct ds_accel__segment *segments;
    struct ds_accel__block *pending;
    struct ds_accel__mark *gone;
    struct ds_accel__private *owner; /* the arena's private pool; NULL: the common pool */
    /* The allocator's lock guards the members from next to stream_id. */
    struct ds_accel__arena *next;
    struct ds_accel__private *capture; /* pool that the stream's capture allocates from */
    uint64_t id;                       /* never reused, although the struct may be */
    /* number in messages; 0 is the default stream, which comes first */
    uint64_t stream_id;
    /* number of live blocks of other arenas that this stream uses, plus calls in progress;
     * atomic */
    uint32_t use_count;
    struct ds_accel__lists lists[DS_ACCEL__KIND_COUNT];
} __attribute__((aligned(128)));

/* A private pool; it has its own arenas. */
struct ds_accel__private {
    struct ds_accel__private *next;
    uint64_t id;
    /* counts the pool's handle, graphs captured with the pool, and threads that now use it */
    uint32_t reference_count;
    /* the last reference was released: all streams may use the pool's memory */
    uint32_t is_gone;
    uint32_t arena_count;
};

/* An event that the allocator recorded at the end of a stream's work. */
struct ds_accel__mark {
    struct ds_accel__mark *next; /* link in the list of spare marks */
    ds_accel_plugin_event_t *event;
    uint64_t arena_id; /* arena whose stream recorded it */
    /* order in which the arena's marks were recorded; the numbers of two marks that two threads
     * recorded at the same time may be exchanged */
    uint64_t order;
    uint32_t reference_count;
};

/* Streams found busy in one pass over pending blocks. A stream reaches its marks in order, so that
 * marks after its first unreached mark need no query. If more than 16 streams are busy, the other
 * streams are queried again for each mark. */
struct ds_accel__busy {
    uint32_t count;
    struct {
        uint64_t arena_id;
        uint64_t order; /* order of the first unreached mark */
    } streams[16];
};

/* Hash table from address to block, with open addressing; readers take no lock. */
struct ds_accel__index_entry {
    uint64_t address;
    struct ds_accel__block *block;
};

struct ds_accel__index_table {
    struct ds_accel__index_table *older; /* an older table that readers may still use */
    uint64_t mask;
    struct ds_accel__index_entry entries[];
};

struct ds_accel__index {
    struct ds_accel__index_table *table; /* atomic */
    pthread_mutex_t lock;                /* taken by writers; also guards the members below */
    uint64_t used_count;                 /* entries that hold a block or a tombstone */
    uint64_t block_count;
    struct ds_accel__block *spare;
    struct ds_accel__slab *slabs;
};

struct ds_accel__history;
struct ds_accel__quarantine;

/* Bits of ds_accel__allocator.special: features that the fast path does not serve. A call takes the
 * slow path if any bit is set. */
#define DS_ACCEL__SPECIAL_HISTORY 1u
#define DS_ACCEL__SPECIAL_POOLS 2u
#define DS_ACCEL__SPECIAL_MODE 4u
#define DS_ACCEL__SPECIAL_LAYERS 8u
#define DS_ACCEL__SPECIAL_GARBAGE 16u /* garbage collection is on, which counts requests */

struct ds_accel__allocator {
    /* Peaks, and totals of arenas that no longer exist; guarded by lock (below). */
    struct ds_accel__lanes peak[DS_ACCEL__KIND_COUNT + 1];
    struct ds_accel__lanes retired[DS_ACCEL__KIND_COUNT];

    /* Constant once the allocator is in use, except special, which is atomic, and index, which has
     * a lock of its own. */
    const struct ds_accel_plugin *table;
    ds_accel_plugin_device_t *device;
    ds_accel_device_t *handle; /* passed to the failure callback; NULL without a real device */
    uint32_t special;          /* DS_ACCEL__SPECIAL_*; atomic */
    uint32_t device_index;     /* used in messages */
    uint64_t id;               /* unique in the process */
    struct ds_accel__index index;
    struct ds_accel__allocator_options options;
    /* allocation granularity of virtual memory; 0: the backend has no virtual memory */
    uint64_t granule_bytes;
    uint64_t largest_bytes; /* the driver's limit for one allocation; UINT64_MAX: not known */
    bool is_synchronized;   /* the device is synchronous, so that no stream order has to be kept */
    bool has_events;

    /* Its holder grows a segment, or returns memory to the driver, so that only one segment changes
     * at a time. No capture begins while a thread returns memory, or while debug mode reads memory
     * back. */
    pthread_mutex_t grow_lock;
    pthread_mutex_t lock; /* guards all members below, except those of the leaf locks */
    struct ds_accel__arena *arenas;
    struct ds_accel__arena *spare_arenas;
    struct ds_accel__private *privates;
    uint64_t last_private_id;
    uint64_t last_arena_id;
    uint64_t asked_bytes; /* bytes of the requests to the driver that have not yet returned */
    uint64_t clock;       /* counts frees that made a segment idle; atomic */
    /* Number of large requests to the common pool while garbage collection is on; atomic. */
    uint64_t request_count;
    uint64_t limit_bytes; /* limit for reserved bytes; UINT64_MAX: no limit */
    uint32_t arena_count;
    uint32_t capture_count; /* number of streams that now capture */
    uint32_t begun_count;   /* number of threads that now allocate from a private pool */
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

    pthread_mutex_t mark_lock; /* leaf lock: guards marks and their reference counts */
    struct ds_accel__mark *marks;
    uint64_t mark_count;                     /* number of marks recorded so far; atomic */
    struct ds_accel__history *history;       /* allocator_history.c */
    struct ds_accel__quarantine *quarantine; /* allocator_debug.c */
};

/* ---- allocator_index.c ---------------------------------------------------------------------- */

int32_t ds_accel__index_init(struct ds_accel__index *index);
void ds_accel__index_destroy(struct ds_accel__index *index);
/* Add a block struct for the address to the index; NULL: out of memory. */
struct ds_accel__block *ds_accel__index_add(struct ds_accel__index *index, uint64_t address);
void ds_accel__index_remove(struct ds_accel__index *index, struct ds_accel__block *block);
/* Like ds_accel__index_find(), but takes the index's lock, so that concurrent changes of the table
 * cannot make the result wrong. */
struct ds_accel__block *ds_accel__index_find_sure(struct ds_accel__index *index, uint64_t address);

static inline uint64_t ds_accel__index_hash(uint64_t address)
{
    uint64_t hash = (address >> DS_ACCEL__UNIT_SHIFT) * UINT64_C(0x9e3779b97f4a7c15);

    return hash ^ (hash >> 32);
}

/*
 * Return the block that begins at an address, or NULL. The result is only a hint, because the table
 * may change at the same time: the caller checks it under the lock of the block's arena.
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

/* ---- allocator_lists.c: the caller holds the arena's lock ----------------------------------- */

static inline bool ds_accel__block_is_split(const struct ds_accel__block *block)
{
    return block->previous != NULL || block->next != NULL;
}

/* Whether torch counts the block as split: torch does not count blocks in growable segments. */
static inline bool ds_accel__block_counts_as_split(const struct ds_accel__block *block)
{
    return ds_accel__block_is_split(block) && block->segment->reserved_bytes == 0;
}

/* Whether a request of arena asker may use free memory of an arena. Arenas of capturing streams and
 * of private pools neither provide nor receive memory. */
static inline bool ds_accel__arena_may_use(const struct ds_accel__arena *asker,
                                           const struct ds_accel__arena *arena)
{
    return arena == asker || (!arena->is_capturing && !asker->is_capturing &&
                              arena->owner == NULL && asker->owner == NULL);
}

/* Give the arena a new stamp, because its free memory has changed: earlier allocations cannot be
 * undone now. If the change is itself an allocation, undoing it restores the previous stamp, and
 * with it the possibility to undo the allocation before it. */
static inline void ds_accel__arena_renew(struct ds_accel__arena *arena)
{
    /* skips 0, which means "no stamp" */
    arena->last_stamp += arena->last_stamp == UINT32_MAX ? 2 : 1;
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
/* Take a free block with space for fit_bytes at that alignment out of its list, and cut it to size;
 * NULL: there is no such block, or memory for a struct ran out. */
struct ds_accel__block *ds_accel__block_take(struct ds_accel__arena *arena, uint32_t kind,
                                             uint64_t fit_bytes, uint64_t align_bytes,
                                             struct ds_accel__change *changes);
/*
 * Cut a taken block so that it begins aligned. The part after fit_bytes is cut off too, if it is
 * large enough for a separate block and memory for a struct suffices. The remainders are put into
 * the free lists; if waits is not NULL they become pending with these waits instead. NULL: out of
 * memory for the struct of an aligned block; the whole block is free or pending again.
 */
struct ds_accel__block *ds_accel__block_cut(struct ds_accel__arena *arena,
                                            struct ds_accel__block *block, uint64_t fit_bytes,
                                            uint64_t align_bytes, struct ds_accel__waits *waits,
                                            struct ds_accel__change *changes);
/* Whether an allocation of this size and alignment fits into the block. */
bool ds_accel__block_holds(const struct ds_accel__block *block, uint64_t fit_bytes,
                           uint64_t align_bytes);
/* Add the block to the list of blocks that other streams may still use. */
void ds_accel__pending_push(struct ds_accel__arena *arena, struct ds_accel__block *block);
void ds_accel__pending_unlink(struct ds_accel__arena *arena, struct ds_accel__block *block);
/* Move undone blocks to the free lists and merge them; no statistic changes. */
void ds_accel__arena_flush(struct ds_accel__arena *arena);
/* Split the block after its first size_bytes; the new block is taken. NULL: out of memory. */
struct ds_accel__block *ds_accel__block_divide(struct ds_accel__arena *arena,
                                               struct ds_accel__block *block, uint64_t size_bytes);
/* Merge right into left, its neighbour; the struct of right becomes spare. */
void ds_accel__block_join(struct ds_accel__arena *arena, struct ds_accel__block *left,
                          struct ds_accel__block *right);

/* Add the arena's free bytes to *free_bytes; raise *largest_bytes to the arena's largest free
 * block. */
void ds_accel__arena_free_space(const struct ds_accel__arena *arena, uint64_t *free_bytes,
                                uint64_t *largest_bytes);

/* ---- allocator_stats.c ---------------------------------------------------------------------- */

/*
 * Count a change in an arena; the caller holds the arena's lock. False: a peak may have changed;
 * nothing was counted, and the caller must call ds_accel__figures_settle() after it releases the
 * lock.
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

/* Compute how allocating or freeing the block changes the statistics, except the changes that the
 * free lists count. */
void ds_accel__change_alloc(const struct ds_accel__block *block, struct ds_accel__change *change);
void ds_accel__change_free(const struct ds_accel__block *block, bool stays_active,
                           struct ds_accel__change *change);
/*
 * Count the changes of both kinds and set the state of the taken block. The caller holds the
 * arena's lock, which this function releases, and not the allocator's lock. block: NULL or a block
 * of the arena.
 */
void ds_accel__figures_finish(struct ds_accel__arena *arena, const struct ds_accel__change *changes,
                              struct ds_accel__block *block, enum ds_accel__block_state state);
/* Slow path of ds_accel__figures_finish(). The caller holds no lock. */
void ds_accel__figures_settle(struct ds_accel__arena *arena, const struct ds_accel__change *changes,
                              struct ds_accel__block *block, enum ds_accel__block_state state);
void ds_accel__figure_add(struct ds_accel__figure *figure, int64_t amount);
/* Count a segment that was added or released. The caller holds the allocator's lock. */
void ds_accel__figures_segment(struct ds_accel__allocator *allocator, uint32_t kind, int64_t count,
                               int64_t bytes);
/* Count the changes of both kinds. The caller holds the allocator's lock and all arena locks. */
void ds_accel__figures_count(struct ds_accel__arena *arena, const struct ds_accel__change *changes);
/* Take the locks of all arenas. The caller holds the allocator's lock. */
void ds_accel__arenas_lock(struct ds_accel__allocator *allocator);
/* Put the free memory of every arena into its lists, merged. The caller holds the allocator's lock
 * and all arena locks. */
void ds_accel__arenas_flush(struct ds_accel__allocator *allocator);
void ds_accel__arenas_unlock(struct ds_accel__allocator *allocator);
/* Add the totals of an empty arena to the allocator's totals. The caller holds the allocator's
 * lock. */
void ds_accel__figures_retire(struct ds_accel__arena *arena);

/* ---- allocator_marks.c ---------------------------------------------------------------------- */

/* Record a mark at the current end of the arena's stream. If the stream was destroyed, return the
 * mark of the end of its work; if there is none, wait for the device, or fail while a stream
 * captures. *mark_out is NULL if there is nothing to wait for: the device is synchronous, or the
 * call waited on the host instead. The caller holds the allocator's lock, so that the stream is not
 * destroyed. */
int32_t ds_accel__mark_record(struct ds_accel__arena *arena, struct ds_accel__mark **mark_out);
void ds_accel__mark_put(struct ds_accel__allocator *allocator, struct ds_accel__mark *mark);
/* Make the arena's stream wait for the mark, on the device. If the stream cannot wait, wait on the
 * host. Does nothing if mark is NULL or a mark of the same stream. */
int32_t ds_accel__mark_wait(struct ds_accel__arena *arena, struct ds_accel__mark *mark);
int32_t ds_accel__mark_synchronize(struct ds_accel__allocator *allocator,
                                   struct ds_accel__mark *mark);
bool ds_accel__mark_is_done(struct ds_accel__allocator *allocator, struct ds_accel__mark *mark);
void ds_accel__waits_get(struct ds_accel__allocator *allocator, struct ds_accel__waits *waits);
void ds_accel__waits_put(struct ds_accel__allocator *allocator, struct ds_accel__waits *waits);
int32_t ds_accel__waits_wait(struct ds_accel__arena *arena, struct ds_accel__waits *waits);
/* Whether all marks of waits are reached. busy: streams that this pass found busy; busy streams
 * found now are added to it. */
bool ds_accel__waits_are_done(struct ds_accel__allocator *allocator, struct ds_accel__waits *waits,
                              struct ds_accel__busy *busy);
int32_t ds_accel__waits_synchronize(struct ds_accel__allocator *allocator,
                                    struct ds_accel__waits *waits);
/* Make marks for all streams that use the block, and for the stream of arena freeing (NULL: none),
 * except the stream of the block's home arena. *waits_out is NULL if no mark is needed. If memory
 * for the marks is exhausted, wait on the host instead. The caller holds the allocator's lock. */
int32_t ds_accel__waits_make(struct ds_accel__block *block, struct ds_accel__arena *freeing,
                             struct ds_accel__waits **waits_out);
int32_t ds_accel__uses_add(struct ds_accel__block *block, struct ds_accel__arena *arena);
void ds_accel__uses_drop(struct ds_accel__block *block);
void ds_accel__marks_destroy(struct ds_accel__allocator *allocator);

/* ---- allocator_segments.c ------------------------------------------------------------------- */

/*
 * Add a segment to the arena, or grow one of its segments, and return a taken block of the segment,
 * cut to size. The caller holds no lock; on success the function returns with the arena's lock
 * held. NOT_READY: the arena has new memory, but memory for a block's struct ran out. ERR_NO_MEMORY
 * also if the limit would be exceeded.
 */
int32_t ds_accel__segment_obtain(struct ds_accel__arena *arena, uint32_t kind, uint64_t fit_bytes,
                                 uint64_t align_bytes, bool may_grow,
                                 struct ds_accel__change *changes,
                                 struct ds_accel__block **block_out);
/* Move a free segment with space for fit_bytes to this arena from an arena whose stream or pool was
 * destroyed. On the device, the stream of this arena waits for the work of the other arena. False:
 * no segment was moved. An arena of a capturing stream or of a private pool gets no segment. The
 * caller holds no lock. */
bool ds_accel__segment_steal(struct ds_accel__arena *arena, uint32_t kind, uint64_t fit_bytes,
                             uint64_t align_bytes);
/*
 * Release segments that are free as a whole to the driver, the longest idle first, and then unmap
 * free pages of growable segments, until at most keep_bytes are reserved or at least enough_bytes
 * were released. Returns the number of released bytes; 0 while a stream captures. The caller holds
 * no lock.
 */
uint64_t ds_accel__segments_release(struct ds_accel__allocator *allocator, uint64_t keep_bytes,
                                    uint64_t enough_bytes);
/*
 * Release an unused oversize segment of the arena (of at least max_split_bytes, so never split)
 * that is large enough for the request; if there is none, release the largest unused oversize
 * segments until their sum is large enough. True: enough memory was released. The caller holds no
 * lock.
 */
bool ds_accel__segments_release_oversize(struct ds_accel__arena *arena, uint64_t fit_bytes);
/* Garbage collection: of the large segments of the common pool that are free as a whole, release
 * those that became free at or before the average request number (idle_request). Repeat this until
 * enough_bytes are released or no such segment is left. The caller holds no lock. */
void ds_accel__segments_collect(struct ds_accel__allocator *allocator, uint64_t enough_bytes);
/* Free the pending blocks whose marks are reached, in all arenas except those of capturing streams
 * and of private pools in use. The caller holds no lock. */
void ds_accel__pending_settle(struct ds_accel__allocator *allocator);
/* If more than keep_bytes are reserved, wait for the pending blocks that prevent free memory from
 * merging, or a segment or a page from being released, and free them. Does nothing while a stream
 * captures. The caller holds no lock. */
void ds_accel__pending_finish(struct ds_accel__allocator *allocator, uint64_t keep_bytes);
/* Return an unused segment, which is in no arena, to the driver. The caller holds no lock except
 * grow_lock. */
int32_t ds_accel__segment_destroy(struct ds_accel__allocator *allocator,
                                  struct ds_accel__segment *segment);
/* Remove the segment from the arena's list of segments, but not its blocks from other lists of the
 * arena. The caller holds the arena's lock, or destroys the allocator. */
void ds_accel__segment_unlink(struct ds_accel__arena *arena, struct ds_accel__segment *segment);
/* Return how many bytes ds_accel__segments_release() could release. The caller holds the
 * allocator's lock and all arena locks. */
uint64_t ds_accel__segments_idle_bytes(const struct ds_accel__allocator *allocator);

/* ---- allocator_pending.c -------------------------------------------------------------------- */

/* Move each pending block whose marks are reached to the free lists. The caller holds the arena's
 * lock. busy: shared by all arenas of one pass, or NULL. */
void ds_accel__pending_collect(struct ds_accel__arena *arena, struct ds_accel__busy *busy,
                               struct ds_accel__change *changes);
/* Make marks for the deferred blocks for which marks can now be made. The caller holds no lock. */
void ds_accel__deferred_settle(struct ds_accel__allocator *allocator);
/* Free a taken block (DS_ACCEL__BLOCK_TAKEN) after the work of the streams that use it, and of the
 * stream of arena freeing (NULL: none). The caller holds no lock. */
int32_t ds_accel__free_in_order(struct ds_accel__block *block, struct ds_accel__arena *freeing);
/* Count a taken block, which no stream uses, as freed in the statistics, and keep its memory from
 * being reused yet. */
void ds_accel__free_to_hold(struct ds_accel__block *block);
/*
 * Defer freeing a taken block until marks can be recorded: ds_accel__deferred_settle() tries again
 * at the end of each capture and at each trim. The caller holds no lock.
 */
void ds_accel__block_defer(struct ds_accel__block *block, struct ds_accel__arena *freeing);
/* Forget the other streams that use the block: from now on it counts as used only by the stream of
 * its home arena. The caller holds the lock of the home arena. */
void ds_accel__users_forget(struct ds_accel__block *block);

/* ---- allocator_alloc.c, allocator_free.c ---------------------------------------------------- */

#define DS_ACCEL__LARGEST_REQUEST (UINT64_C(1) << 56) /* 64 PiB: no device has so much memory */
/* maximum number of attempts while other threads take the memory or change the block first */
#define DS_ACCEL__RACE_LIMIT 64

/* Slow paths of ds_accel__allocator_alloc() and ds_accel__allocator_free(), for any arguments. The
 * caller holds no lock. */
int32_t ds_accel__alloc_slowly(struct ds_accel__arena *arena, uint64_t size_bytes,
                               uint64_t align_bytes, void **pointer_out);
int32_t ds_accel__free_slowly(struct ds_accel__allocator *allocator,
                              struct ds_accel__arena *freeing, void *pointer);

/* ---- allocator_debug.c ---------------------------------------------------------------------- */

#define DS_ACCEL__ZONE_BYTES UINT64_C(512) /* minimum size of the red zone after an allocation */

int32_t ds_accel__debug_init(struct ds_accel__allocator *allocator);
void ds_accel__debug_destroy(struct ds_accel__allocator *allocator);
/* Fill the memory and the red zone of a block that becomes live. */
void ds_accel__debug_allocated(struct ds_accel__block *block);
/* Check a taken block and put it into quarantine. If the streams that use the block cannot be
 * waited for, free it unchecked, in stream order. The caller holds no lock. ERR_INVALID: memory of
 * this block, or of a block that left the quarantine, was overwritten; the block is freed even
 * then. ERR_NO_MEMORY: the block will not be reused. */
int32_t ds_accel__debug_free(struct ds_accel__block *block, struct ds_accel__arena *freeing);
/* Release blocks from quarantine until at most keep_bytes are in it. ERR_INVALID: a block was
 * overwritten. */
int32_t ds_accel__debug_flush(struct ds_accel__allocator *allocator, uint64_t keep_bytes);

/* ---- allocator_arena.c ---------------------------------------------------------------------- */

/* Make an arena for a stream, in the common pool (owner NULL) or in a private pool. common: the
 * stream's arena in the common pool; NULL: make that arena. The caller holds the allocator's lock.
 * NULL: out of memory. */
struct ds_accel__arena *ds_accel__arena_make(struct ds_accel__allocator *allocator,
                                             ds_accel_plugin_stream_t *stream,
                                             const struct ds_accel__arena *common,
                                             struct ds_accel__private *owner);

/* ---- allocator_private.c -------------------------------------------------------------------- */

/* Note that an arena of the pool was removed. The caller holds the allocator's lock. */
void ds_accel__private_shrink(struct ds_accel__allocator *allocator,
                              struct ds_accel__private *owner);

/* ---- allocator_pool.c ----------------------------------------------------------------------- */

/* Return the arena for an allocation on the stream of this common arena: in the pool of the
 * stream's capture, in the thread's pool or in the common pool. NULL: out of memory. The arena
 * serves no other stream until ds_accel__arena_leave(). */
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

/* Record an entry if the history is on; takes the history's leaf lock. Returns the number of the
 * call stack, or 0. */
uint32_t ds_accel__history_add(struct ds_accel__allocator *allocator, enum ds_accel__action action,
                               uint64_t address, uint64_t size_bytes, uint64_t stream_id);
void ds_accel__history_segment(struct ds_accel__allocator *allocator,
                               const struct ds_accel__segment *segment, uint64_t address,
                               uint64_t size_bytes, enum ds_accel__action action);
/* Write the innermost frame outside this library of a call stack as text, such as "in main
 * (program+0x123)"; "where is not recorded" if there is none. */
void ds_accel__history_describe(const struct ds_accel__allocator *allocator, uint32_t frames,
                                char *text, size_t text_size);
void ds_accel__history_destroy(struct ds_accel__allocator *allocator);

/* ---- allocator_oom.c ------------------------------------------------------------------------ */

/* Return ERR_NO_MEMORY for a failed request. The error's message has the device's memory sizes and
 * advice. The caller holds no lock. */
int32_t ds_accel__allocator_fail(struct ds_accel__arena *arena, uint64_t size_bytes);
/* Return the block, in any state, that contains an address; NULL: none. The caller holds the
 * allocator's lock and all arena locks. */
const struct ds_accel__block *ds_accel__block_around(const struct ds_accel__allocator *allocator,
                                                     uint64_t address);
/* Return the error for an address that is not the start of a live block: ERR_NOT_FOUND if it is not
 * in this allocator's memory, else ERR_INVALID. The caller holds no lock. */
int32_t ds_accel__allocator_refuse(struct ds_accel__allocator *allocator, const char *call,
                                   const void *pointer);

#endif
