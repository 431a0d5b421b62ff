/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What the files of ccl_comm share.
 *
 * A call has these steps. Only leaders do those in the middle:
 *
 *     arrive     the ranks of a node show each other what they call, by shm_comm
 *     greet      so do the leaders, by MPI
 *     pieces     reduce or gather within the node; exchange among leaders; deliver the result to
 *                the ranks of the node
 *
 * A small all-reduce reduces within the node first, and leaders greet with what they have then.
 *
 * A leader that has failed goes on with the steps within its node: what it delivers begins with a
 * word that says so, and a note with the error follows. It sends the note to the other leaders,
 * which look for notes while they wait. If shared memory fails, all ranks of the node know.
 */
#ifndef OPS_CCL_COMM_CCL_H
#define OPS_CCL_COMM_CCL_H

#include "ccl_comm.h"
#include "engine.h"
#include "shm_comm/shm.h"

#include <sys/types.h>

#define OPS__CCL_HEAD ((size_t)64) /* bytes of a block before its data */
#define OPS__CCL_TEXT 400
#define OPS__CCL_SMALL ((size_t)2048) /* bytes of a small all-reduce */
#define OPS__SECOND_NS ((uint64_t)1000000000)
#define OPS__CCL_LEADER_SLACK (3 * OPS__SECOND_NS)
#define OPS__CCL_LOCAL_SLACK (6 * OPS__SECOND_NS)

/* An error that leaders send; status 0: the rank has left the communicator. */
struct ops__ccl_note {
    int32_t status;
    uint32_t rank;
    uint32_t lost;  /* a rank will not finalize MPI */
    uint32_t first; /* in create(): the first rank of its node */
    char text[OPS__CCL_TEXT];
};

/* What a rank calls. */
struct ops__ccl_hello {
    int64_t kind;
    int64_t dtype;
    int64_t reduction;
    int64_t root;
    int64_t count;
    int64_t number;
    int64_t failed; /* the leader of the node has a note */
};

/* What a leader calls, and its data if they are small. */
struct ops__ccl_greeting {
    struct ops__ccl_hello hello;
    int64_t unused; /* aligns data */
    char data[OPS__CCL_SMALL];
};

/* What ranks tell each other first. */
struct ops__ccl_card {
    uint32_t version;
    int32_t status; /* the rank cannot take part */
    uint64_t buffer_bytes;
    uint32_t ranks_per_node;
    uint32_t user;
    int64_t process;
    uint64_t nonce; /* that of rank 0 names the communicator */
    char boot[40];
};

/* How a rank finds the first one of its node. */
struct ops__ccl_door {
    int listener;
    int connection; /* to the first rank */
    uint32_t first; /* this rank itself, or a lower one */
};

struct ops__ccl_part {
    char *data;
    size_t bytes;
};

struct ops__ccl {
    const struct ops__engine *engine;
    union ops__mpi_handle world;
    int tag; /* of data; tag + 1: of notes */
    pid_t owner;
    uint32_t rank;
    uint32_t size;
    uint32_t node;
    uint32_t nodes;
    uint32_t local_rank;
    uint32_t local_size;
    uint32_t most_local;    /* ranks of the largest node */
    uint32_t *order;        /* ranks by node */
    uint32_t *first;        /* places in order where nodes begin; nodes + 1 */
    uint32_t *leaders;      /* by node */
    uint32_t *node_of;      /* by rank */
    int64_t *processes;     /* by rank */
    ds_accel_comm_t *local; /* NULL: the node has one rank */

    uint64_t calls;
    const char *name; /* of the current call */
    uint64_t usual_timeout_ns;
    uint64_t timeout_ns;  /* of the current call */
    uint64_t deadline_ns; /* of the current piece */

    bool failed; /* note has the error */
    bool closed; /* a call has returned it */
    bool told;   /* the other leaders have the note, or sent it */
    struct ops__ccl_note note;
    struct ops__ccl_note mail; /* received */
    struct ops__mpi_request mail_request;
    struct ops__ccl_note sent; /* while tell_requests are active */
    uint64_t *left_ns;         /* by rank: when it left, else 0 */

    struct ops__mpi_request *requests;      /* 2 * size */
    struct ops__mpi_request *tell_requests; /* size */
    struct ops__ccl_part *sends;            /* size */
    struct ops__ccl_part *receives;         /* size */
    const char **arrays;                    /* size */
    struct ops__ccl_hello *hellos;          /* size */
    struct ops__ccl_hello hello;            /* of this rank */

    /* Of create() alone. */
    uint32_t *ranks; /* 0, 1, ... */
    struct ops__ccl_card *cards;
    struct ops__ccl_note *outcomes;

    size_t buffer_bytes;
    size_t memory_bytes;
    char *input;                         /* of this rank, packed or widened */
    char *middle;                        /* reduced or gathered within the node */
    char *gather;                        /* from other leaders */
    char *block;                         /* delivered to the node: head and result */
    struct ops__ccl_greeting *greetings; /* by node */
};

static inline bool ops__ccl_leads(const struct ops__ccl *ccl)
{
    return ccl->local_rank == 0;
}

/* ---- open.c: the engine ---------------------------------------------------------------------- */

/* Find and initialize the engine: engine, world, tag, rank and size. */
int32_t ops__ccl_open(const char *call, const struct ds_accel_ccl_comm_options *options,
                      struct ops__ccl *ccl, struct ds_accel_error *error);
/* First line of the engine's version. */
const char *ops__ccl_version(void);
/* Do not finalize MPI at exit. */
void ops__ccl_lost(void);
/* Return whether MPI still works. */
bool ops__ccl_is_open(const struct ops__ccl *ccl);

/* ---- meet.c: nodes --------------------------------------------------------------------------- */

/* Allocate what depends on the number of ranks. */
bool ops__ccl_make_lists(struct ops__ccl *ccl);
int32_t ops__ccl_meet(const char *call, const struct ds_accel_ccl_comm_options *options,
                      struct ops__ccl *ccl, struct ds_accel_error *error);

/* Take part only to show the others that this rank has no memory, so that they need not wait until
 * the deadline: an exchange with one after the other. ccl has no lists. Returns ERR_NO_MEMORY. */
int32_t ops__ccl_decline(const char *call, const struct ds_accel_ccl_comm_options *options,
                         struct ops__ccl *ccl, struct ds_accel_error *error);

void ops__ccl_free_meeting(struct ops__ccl *ccl);

/* ---- node.c: which ranks can share memory ---------------------------------------------------- */

/* Listen; the door is to be closed, whatever is returned. An error is that something is short. */
int32_t ops__ccl_node_open(const char *call, const struct ops__ccl *ccl, struct ops__ccl_door *door,
                           struct ds_accel_error *error);
/* Connect to the first rank of the node, when all listen. */
int32_t ops__ccl_node_find(const char *call, const struct ops__ccl *ccl, struct ops__ccl_door *door,
                           struct ds_accel_error *error);
/* Send memory to the ranks that have connected, when all have. */
int32_t ops__ccl_node_serve(const char *call, const struct ops__ccl *ccl,
                            struct ops__ccl_door *door, struct ds_accel_error *error);
/* Map the first rank's memory; door->first is this rank if that is not possible. */
int32_t ops__ccl_node_map(const char *call, const struct ops__ccl *ccl, struct ops__ccl_door *door,
                          struct ds_accel_error *error);
void ops__ccl_node_close(struct ops__ccl_door *door);

/* ---- exchange.c: MPI with a deadline, failures ----------------------------------------------- */

uint64_t ops__ccl_now(void);
/* Begin a call's or a piece's time. */
void ops__ccl_start(struct ops__ccl *ccl);
/* Nanoseconds until the deadline and slack; at least 1. */
uint64_t ops__ccl_left_ns(const struct ops__ccl *ccl, uint64_t slack_ns);
/* Sleep a little after many attempts. */
void ops__ccl_pause(unsigned attempts);
/* Record an error, unless there is one. Returns -1. */
__attribute__((format(printf, 3, 4))) int32_t ops__ccl_fail(struct ops__ccl *ccl, int32_t status,
                                                            const char *format, ...);
/* Record the error of a note. Returns -1. */
int32_t ops__ccl_take_note(struct ops__ccl *ccl, const struct ops__ccl_note *note);
/* Look for a note. */
void ops__ccl_look(struct ops__ccl *ccl);
/* Send sends[i] to peers[i] and receive receives[i], except at place own: 0, or -1 if failed. */
int32_t ops__ccl_exchange(struct ops__ccl *ccl, const uint32_t *peers, uint32_t count,
                          uint32_t own);
/* Post the receipt of notes. */
int32_t ops__ccl_listen(struct ops__ccl *ccl);
/* Send a note to the other leaders, once. */
void ops__ccl_tell(struct ops__ccl *ccl, const struct ops__ccl_note *note);
/* Send the others a note that this rank leaves. For a second, take theirs, which would otherwise
 * stay in MPI. */
void ops__ccl_part_from_others(struct ops__ccl *ccl);
/* End all requests; false: MPI still uses the memory. */
bool ops__ccl_quiet(struct ops__ccl *ccl);

/* ---- local.c: within the node ---------------------------------------------------------------- */

/* Carry out a call of shm_comm: 0, or -1 if failed. */
int32_t ops__ccl_local(struct ops__ccl *ccl, const struct ops__shm_call *work, uint64_t slack_ns);
/* Show each other what is called, and check it. */
int32_t ops__ccl_arrive(struct ops__ccl *ccl, const struct ops__ccl_hello *hello);
/* Compare hellos of ranks with the first one: 0, or -1 if failed. */
int32_t ops__ccl_compare(struct ops__ccl *ccl, const uint32_t *ranks, uint32_t count);
/* Deliver the data of block, and whether the leader has failed. */
int32_t ops__ccl_deliver(struct ops__ccl *ccl, size_t bytes);

/* ---- collective.c ---------------------------------------------------------------------------- */

/* Carry out a checked call of several nodes: 0, or -1 if failed. */
int32_t ops__ccl_run(struct ops__ccl *ccl, const struct ops__shm_call *work);

#endif
