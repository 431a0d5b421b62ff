/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What the files of shm_comm share.
 *
 * The shared memory is one memfd with a fixed, very large size, of which only what fallocate()
 * reserved is in use:
 *
 *     struct ops__shm_header      one page
 *     rank 0, rank 1, ...         area_bytes each, reserved and first touched by the rank:
 *       struct ops__shm_rank        what the rank tells the others
 *       small[2]                    messages up to OPS__SHM_SMALL bytes, for even and odd calls
 *       staged[SLOTS]               pieces of large inputs that others read
 *       reduced[SLOTS]              its share of the result of a piece
 *       partial[SLOTS]              if there are groups: its shares of the sums of lower groups
 *     registered buffers          of all ranks, one alloc() behind the other
 *
 * Each call begins with an arrival: a rank writes what it calls, and a small message, to its line
 * for even or odd calls, and waits for the lines of the others. As no rank arrives at call k + 1
 * before it has finished call k, lines and small messages of call k are free for call k + 2.
 */
#ifndef OPS_SHM_COMM_SHM_H
#define OPS_SHM_COMM_SHM_H

#include "shm_comm.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define OPS__SHM_VERSION 2u
#define OPS__SHM_PAGE ((size_t)65536) /* a multiple of the page size of every system */
#define OPS__SHM_INLINE 48            /* bytes of a message that fit into a line */
#define OPS__SHM_SMALL ((size_t)16384)
#define OPS__SHM_SLOTS 3

#define OPS__SHM_FAILED (-1) /* the communicator has failed: ops__shm_failure() has the error */

enum ops__shm_kind {
    OPS__SHM_ALL_REDUCE,
    OPS__SHM_REDUCE_SCATTER,
    OPS__SHM_ALL_GATHER,
    OPS__SHM_BROADCAST,
    OPS__SHM_BARRIER,
    OPS__SHM_ALLOC,
    OPS__SHM_FREE
};

/* One cache line: call is written last. */
struct ops__shm_line {
    alignas(64) _Atomic uint64_t call; /* number */
    uint64_t signature;                /* of ops__shm_sign() */
    unsigned char message[OPS__SHM_INLINE];
};

/* Of a failure that the rank recorded. */
struct ops__shm_detail {
    uint64_t timeout_ns;
    uint64_t signature;       /* its own call */
    uint64_t other_signature; /* the call of the named rank, if that is the cause */
};

struct ops__shm_rank {
    struct ops__shm_line lines[2];
    alignas(64) _Atomic uint64_t staged; /* pieces of all calls that others may read */
    alignas(64) _Atomic uint64_t reduced;
    alignas(64) _Atomic uint64_t partial; /* pieces whose partial sums the next group may read */
    alignas(64) _Atomic uint32_t bell;    /* a futex: others wake the rank by it */
    /* While it waits without spinning: number of the other rank + 1, offset of the word in that
     * rank's structure << 16, and the number that the word must reach. */
    _Atomic uint32_t waits_for;
    _Atomic uint64_t waits_until;
    alignas(64) _Atomic uint32_t left; /* by destroy() */
    int64_t process;
    struct ops__shm_detail detail;
};

struct ops__shm_header {
    uint64_t nonce;
    /* 0, or the first failure: reason, named rank, rank that recorded it, lower half of the call's
     * number (ops__shm_fail()). */
    alignas(64) _Atomic uint64_t failure;
    alignas(64) _Atomic uint32_t sleepers;
};

enum ops__shm_reason {
    OPS__SHM_NONE,
    OPS__SHM_ENDED,
    OPS__SHM_LEFT,
    OPS__SHM_LATE,
    OPS__SHM_MISMATCH
};

/* Successive ranks that share a cache or a node (topology.c). */
struct ops__shm_group {
    uint32_t first;
    uint32_t size;
};

/* There are groups only if they have two ranks on average. */
#define OPS__SHM_MOST_GROUPS (DS_ACCEL_SHM_COMM_MAX_RANKS / 2)

/* A registered buffer. All ranks have the same ones in the same places, by which they name them. */
struct ops__shm_buffer {
    unsigned char *base; /* of rank 0's part; NULL: freed */
    size_t stride;       /* from one rank's part to the next one's: whole pages */
    size_t bytes;
    uint64_t offset; /* in the file */
};

struct ds_accel_comm {
    uint32_t rank;
    uint32_t size;
    uint32_t cpus;
    uint32_t spins;       /* before a waiting rank sleeps */
    uint32_t group;       /* of this rank */
    uint32_t group_count; /* 1: reductions need not regard the topology */
    struct ops__shm_group groups[OPS__SHM_MOST_GROUPS];
    uint64_t call; /* number of the current or last call */
    uint64_t signature;
    uint64_t pieces;      /* of all calls before this one */
    uint64_t timeout_ns;  /* of the current call */
    uint64_t deadline_ns; /* of the current call; 0: not set yet */
    uint64_t usual_timeout_ns;
    const uint32_t *is_parent; /* 0 in children of fork() */
    unsigned char *base;
    size_t area_bytes;
    size_t slot_bytes;
    size_t share_bytes;  /* of a share in reduced[] and partial[] */
    size_t owned_shares; /* in each of reduced[] and partial[] */
    size_t memory_bytes;
    uint64_t capacity; /* size of the file */
    uint64_t end;      /* offset behind the last registered buffer */
    int file;
    int processes[DS_ACCEL_SHM_COMM_MAX_RANKS]; /* pidfds */
    struct ops__shm_rank *ranks[DS_ACCEL_SHM_COMM_MAX_RANKS];
    struct ops__shm_buffer *buffers;
    size_t buffer_count;
    size_t buffer_capacity;
    uint64_t registered_bytes;
};

/* ---- segment.c: memory ----------------------------------------------------------------------- */

/* Return the bytes of a slot for the wanted bytes of the buffer. */
size_t ops__shm_slot(uint64_t buffer_bytes);
/* Compute the sizes of the memory from size, slot_bytes and groups. */
void ops__shm_layout(struct ds_accel_comm *comm);
/* Create the file of rank 0: comm->file and capacity, and the header with a nonce. */
int32_t ops__shm_create_file(const char *call, struct ds_accel_comm *comm, uint64_t nonce,
                             struct ds_accel_error *error);
/* Return where a rank's small[], staged[] and reduced[] begin, in this order. */
char *ops__shm_small(const struct ds_accel_comm *comm, uint32_t rank);
/* Reserve memory of the file, so that access to it cannot fail. */
int32_t ops__shm_reserve(const char *call, const struct ds_accel_comm *comm, uint64_t offset,
                         uint64_t bytes, struct ds_accel_error *error);
/* Map comm->file, reserve this rank's area and check the nonce. */
int32_t ops__shm_map(const char *call, struct ds_accel_comm *comm, uint64_t nonce,
                     struct ds_accel_error *error);
/* Release all that a communicator has, and itself. */
void ops__shm_release(struct ds_accel_comm *comm);

/* ---- memory.c -------------------------------------------------------------------------------- */

struct ops__shm_room {
    uint64_t bytes;   /* UINT64_MAX: not known */
    char source[160]; /* the file with the limit, or its beginning */
};

/* Return what can be reserved before the kernel ends processes. */
struct ops__shm_room ops__shm_room(void);

/* ---- topology.c: where ranks run ------------------------------------------------------------- */

#define OPS__SHM_CPU_WORDS 64 /* of affinity masks: up to 4096 CPUs */
#define OPS__SHM_NOWHERE UINT32_MAX

/* The cache of level 3 and the NUMA node that have all CPUs on which a rank may run, or
 * OPS__SHM_NOWHERE. A cache has the number of its first CPU. */
struct ops__shm_location {
    uint32_t cache;
    uint32_t node;
};

struct ops__shm_location ops__shm_locate(const uint64_t cpus[OPS__SHM_CPU_WORDS]);
/* Form groups of the ranks at these locations: comm->groups and group_count. */
void ops__shm_form_groups(struct ds_accel_comm *comm, const struct ops__shm_location *locations);
/* Set the groups of these sizes, and this rank's group. */
void ops__shm_set_groups(struct ds_accel_comm *comm, const uint8_t *sizes, uint32_t count);

/* ---- rendezvous.c: ranks meet ---------------------------------------------------------------- */

/* Fill comm, whose rank, size and layout are set, with memory and processes that all ranks
 * share. */
int32_t ops__shm_meet(const char *call, struct ds_accel_comm *comm,
                      const struct ds_accel_shm_comm_options *options,
                      struct ds_accel_error *error);

/* ---- wait.c: waiting and failures ------------------------------------------------------------ */

/* Set a word of this rank to a higher number, and wake those who wait for this rank. */
void ops__shm_publish(struct ds_accel_comm *comm, _Atomic uint64_t *word, uint64_t number);
int32_t ops__shm_wait_slowly(struct ds_accel_comm *comm, uint32_t rank, _Atomic uint64_t *word,
                             uint64_t number);
/* Record a failure, unless there is one, and wake all. */
void ops__shm_fail(struct ds_accel_comm *comm, enum ops__shm_reason reason, uint32_t rank,
                   uint64_t other_signature);
/* Describe the failure of the communicator; return its status. */
int32_t ops__shm_failure(const struct ds_accel_comm *comm, const char *call,
                         struct ds_accel_error *error);
/* Why the communicator has failed; false: it has not. */
struct ops__shm_cause {
    enum ops__shm_reason reason;
    uint32_t rank; /* the named one */
    int64_t process;
};
bool ops__shm_cause(const struct ds_accel_comm *comm, struct ops__shm_cause *cause_out);
/* Tell the others that this rank leaves. */
void ops__shm_leave(struct ds_accel_comm *comm);

/* Return a call as a number: equal numbers, equal calls. */
uint64_t ops__shm_sign(enum ops__shm_kind kind, uint32_t dtype, uint32_t reduction, uint32_t root,
                       uint64_t count);

static inline void ops__shm_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Wait until another rank's word has a number or more: 0, or OPS__SHM_FAILED. */
static inline int32_t ops__shm_wait(struct ds_accel_comm *comm, uint32_t rank,
                                    _Atomic uint64_t *word, uint64_t number)
{
    for (uint32_t i = 0; i <= comm->spins; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) >= number)
            return 0;
        ops__shm_relax();
    }
    return ops__shm_wait_slowly(comm, rank, word, number);
}

static inline struct ops__shm_header *ops__shm_header(const struct ds_accel_comm *comm)
{
    return (struct ops__shm_header *)(void *)comm->base;
}

/* ---- arrive.c: the beginning of a call ------------------------------------------------------- */

/* Begin a call: 0, or OPS__SHM_FAILED if the communicator has failed. */
int32_t ops__shm_begin(struct ds_accel_comm *comm, uint64_t signature, uint64_t timeout_ns);
/* Return where this rank writes up to OPS__SHM_INLINE bytes for all ranks before it arrives. */
void *ops__shm_own_message(struct ds_accel_comm *comm);
/* Let the others see that this rank has arrived, and its message. */
void ops__shm_announce(struct ds_accel_comm *comm);
/* Wait until all have arrived at the same call: 0, or OPS__SHM_FAILED. */
int32_t ops__shm_await_all(struct ds_accel_comm *comm);
/* Return the message of a rank that has arrived. */
const void *ops__shm_message(const struct ds_accel_comm *comm, uint32_t rank);

/* ---- collective.c: small messages; pipeline.c: large ones ------------------------------------ */

/* A checked call, of which in and out have the elements that shm_comm.h says. */
struct ops__shm_call {
    enum ops__shm_kind kind;
    uint32_t dtype;
    uint32_t reduction;
    uint32_t root;
    size_t element; /* bytes */
    const char *in;
    char *out;
    size_t count;
    size_t in_bytes; /* of in and out; 0 for what is not used */
    size_t out_bytes;
};

/* Carry out a call that was begun: 0, or OPS__SHM_FAILED. */
int32_t ops__shm_run(struct ds_accel_comm *comm, const struct ops__shm_call *call);
int32_t ops__shm_run_large(struct ds_accel_comm *comm, const struct ops__shm_call *call);
void ops__shm_copy(char *to, const char *from, size_t bytes);

/* ---- buffers.c: registered buffers ----------------------------------------------------------- */

/* Where an array lies: 0 if it is not in a registered buffer of this rank, else for
 * ops__shm_there(). */
uint64_t ops__shm_place(const struct ds_accel_comm *comm, const void *array, size_t bytes);
/* Return the address in this process of a place of another rank. */
char *ops__shm_there(const struct ds_accel_comm *comm, uint32_t rank, uint64_t place);

int32_t ops__shm_alloc(const char *call, struct ds_accel_comm *comm, uint64_t bytes,
                       void **pointer_out, struct ds_accel_error *error);
int32_t ops__shm_free(const char *call, struct ds_accel_comm *comm, void *pointer,
                      struct ds_accel_error *error);

/* ---- shm_comm.c ------------------------------------------------------------------------------ */

extern const struct ds_accel_shm_comm ops__shm_table;

/* Check the arguments of a collective call of one of size ranks; fill work, whose kind is set. */
int32_t ops__shm_check(const char *call, uint32_t rank, uint32_t size,
                       const struct ds_accel_comm_call *options, struct ops__shm_call *work,
                       struct ds_accel_error *error);

#endif
