/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The collectives of ccl_comm, piece by piece. Sums of 16-bit floats are widened to float32 by each
 * rank and rounded when they are complete.
 *
 * In an all-reduce, pieces up to WHOLE_BYTES go whole to all leaders; of larger ones, each leader
 * reduces a share and sends it to the others. Both add the nodes in their order, element by
 * element, so the bits are the same.
 */
#include "ccl.h"
#include "common/float_mode.h"
#include "common/half.h"
#include "shm_comm/reduce.h"

#include <stddef.h>
#include <string.h>

#define WHOLE_BYTES ((size_t)8192) /* pieces that leaders exchange whole */

/* A call, and how its elements travel. */
struct work {
    const struct ops__shm_call *call;
    uint32_t dtype; /* between ranks */
    size_t element; /* its bytes */
    bool is_wide;   /* dtype is float32, the call's is not */
};

/* Elements of a piece. */
struct range {
    size_t first;
    size_t count;
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- conversions ----------------------------------------------------------------------------- */

static void widen(const struct work *work, char *to, const char *from, size_t count)
{
    OPS__STANDARD_FLOATS;

    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        float number;

        memcpy(&half, from + 2 * i, sizeof(half));
        number = work->call->dtype == DS_ACCEL_DTYPE_FLOAT16 ? ops__half_to_float(half)
                                                             : ops__bfloat_to_float(half);
        memcpy(to + 4 * i, &number, sizeof(number));
    }
}

static void narrow(const struct work *work, char *to, const char *from, size_t count)
{
    OPS__STANDARD_FLOATS;

    for (size_t i = 0; i < count; i++) {
        float number;
        uint16_t half;

        memcpy(&number, from + 4 * i, sizeof(number));
        half = work->call->dtype == DS_ACCEL_DTYPE_FLOAT16
                   ? ops__float_to_half(number)
                   : ops__float_to_bfloat(number, ops__nearest_even(number));
        memcpy(to + 2 * i, &half, sizeof(half));
    }
}

/* Return the elements as they travel: copied to `to` only if they are wider. */
static const char *load(const struct work *work, char *to, const char *from, size_t count)
{
    if (!work->is_wide)
        return from;
    widen(work, to, from, count);
    return to;
}

/* ---- among leaders --------------------------------------------------------------------------- */

static char *result_of(const struct ops__ccl *ccl)
{
    return ccl->block + OPS__CCL_HEAD;
}

static int32_t exchange(struct ops__ccl *ccl)
{
    return ops__ccl_exchange(ccl, ccl->leaders, ccl->nodes, ccl->node);
}

/* Leaders show each other what they call, and so many bytes of middle: 0, or -1 if failed. The
 * error is delivered with the result or the first piece. */
static int32_t greet(struct ops__ccl *ccl, size_t bytes)
{
    struct ops__ccl_greeting *own = &ccl->greetings[ccl->node];

    own->hello = ccl->hello;
    memcpy(own->data, ccl->middle, bytes);
    for (uint32_t node = 0; node < ccl->nodes; node++) {
        struct ops__ccl_greeting *theirs = &ccl->greetings[node];

        ccl->sends[node] =
            (struct ops__ccl_part){(char *)own, offsetof(struct ops__ccl_greeting, data) + bytes};
        ccl->receives[node] = (struct ops__ccl_part){(char *)theirs, sizeof(*theirs)};
    }
    if (exchange(ccl))
        return -1;
    for (uint32_t node = 0; node < ccl->nodes; node++)
        ccl->hellos[node] = ccl->greetings[node].hello;
    if (ops__ccl_compare(ccl, ccl->leaders, ccl->nodes) == 0)
        return 0;
    ccl->told = true; /* all leaders have found the same */
    return -1;
}

/* Reduce count elements of arrays[node], which may be written, to `to`. */
static void reduce_nodes(struct ops__ccl *ccl, const struct work *work, char *to, size_t count)
{
    char *own = (char *)(uintptr_t)ccl->arrays[ccl->node];
    char *out[] = {work->is_wide ? own : to};
    struct ops__reduction reduction = {
        .dtype = work->dtype,
        .op = work->call->reduction,
        .in = ccl->arrays,
        .out = out,
        .in_count = ccl->nodes,
        .out_count = 1,
        .count = count,
    };

    ops__reduce(&reduction);
    if (work->is_wide)
        narrow(work, to, own, count);
}

/* Send the whole of middle to all, and reduce it. */
static void reduce_whole(struct ops__ccl *ccl, const struct work *work, size_t count)
{
    size_t bytes = count * work->element;

    for (uint32_t node = 0; node < ccl->nodes; node++) {
        char *place = ccl->gather + bytes * node;

        ccl->sends[node] = (struct ops__ccl_part){ccl->middle, bytes};
        ccl->receives[node] = (struct ops__ccl_part){place, bytes};
        ccl->arrays[node] = node == ccl->node ? ccl->middle : place;
    }
    if (exchange(ccl) == 0)
        reduce_nodes(ccl, work, result_of(ccl), count);
}

static struct range share_of(const struct ops__ccl *ccl, uint32_t node, size_t count)
{
    size_t share = (count + ccl->nodes - 1) / ccl->nodes;
    size_t first = least(share * node, count);

    return (struct range){.first = first, .count = least(share, count - first)};
}

/* Reduce this node's share of middle, and gather the shares of all. */
static void reduce_shares(struct ops__ccl *ccl, const struct work *work, size_t count)
{
    struct range own = share_of(ccl, ccl->node, count);
    size_t narrow_bytes = work->call->element;

    for (uint32_t node = 0; node < ccl->nodes; node++) {
        struct range range = share_of(ccl, node, count);
        char *part = ccl->middle + range.first * work->element;
        char *place = ccl->gather + own.count * work->element * node;

        ccl->sends[node] = (struct ops__ccl_part){part, range.count * work->element};
        ccl->receives[node] = (struct ops__ccl_part){place, own.count * work->element};
        ccl->arrays[node] = node == ccl->node ? part : place;
    }
    if (exchange(ccl))
        return;
    reduce_nodes(ccl, work, result_of(ccl) + own.first * narrow_bytes, own.count);
    for (uint32_t node = 0; node < ccl->nodes; node++) {
        struct range range = share_of(ccl, node, count);

        ccl->sends[node] = (struct ops__ccl_part){result_of(ccl) + own.first * narrow_bytes,
                                                  own.count * narrow_bytes};
        ccl->receives[node] = (struct ops__ccl_part){result_of(ccl) + range.first * narrow_bytes,
                                                     range.count * narrow_bytes};
    }
    exchange(ccl);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Reduce count elements of in within the node, to middle. */
static int32_t reduce_local(struct ops__ccl *ccl, const struct work *work, const char *in,
                            size_t count)
{
    struct ops__shm_call local = {
        .kind = OPS__SHM_ALL_REDUCE,
        .dtype = work->dtype,
        .reduction = work->call->reduction,
        .element = work->element,
        .in = in,
        .out = ccl->middle,
        .count = count,
    };

    return ops__ccl_local(ccl, &local, OPS__CCL_LOCAL_SLACK);
}

static int32_t all_reduce(struct ops__ccl *ccl, const struct work *work, struct range piece)
{
    const struct ops__shm_call *call = work->call;
    size_t offset = piece.first * call->element;
    size_t bytes = piece.count * work->element;

    if (reduce_local(ccl, work, load(work, ccl->input, call->in + offset, piece.count),
                     piece.count))
        return -1;
    if (ops__ccl_leads(ccl) && bytes <= WHOLE_BYTES && bytes * ccl->nodes <= ccl->buffer_bytes)
        reduce_whole(ccl, work, piece.count);
    else if (ops__ccl_leads(ccl))
        reduce_shares(ccl, work, piece.count);
    if (ops__ccl_deliver(ccl, piece.count * call->element))
        return -1;
    memcpy(call->out + offset, result_of(ccl), piece.count * call->element);
    return 0;
}

static int32_t all_reduce_small(struct ops__ccl *ccl, const struct work *work)
{
    const struct ops__shm_call *call = work->call;

    if (reduce_local(ccl, work, load(work, ccl->input, call->in, call->count), call->count))
        return -1;
    if (ops__ccl_leads(ccl) && greet(ccl, call->count * work->element) == 0) {
        for (uint32_t node = 0; node < ccl->nodes; node++)
            ccl->arrays[node] = ccl->greetings[node].data;
        reduce_nodes(ccl, work, result_of(ccl), call->count);
    }
    if (ops__ccl_deliver(ccl, call->count * call->element))
        return -1;
    memcpy(call->out, result_of(ccl), call->count * call->element);
    return 0;
}

/* Send each node the part of middle for its ranks, and reduce the own one. */
static void reduce_segments(struct ops__ccl *ccl, const struct work *work, size_t count)
{
    size_t bytes = count * work->element; /* of a rank */
    size_t own = ccl->local_size * bytes;

    for (uint32_t node = 0; node < ccl->nodes; node++) {
        char *part = ccl->middle + ccl->first[node] * bytes;
        char *place = ccl->gather + own * node;

        ccl->sends[node] =
            (struct ops__ccl_part){part, (ccl->first[node + 1] - ccl->first[node]) * bytes};
        ccl->receives[node] = (struct ops__ccl_part){place, own};
        ccl->arrays[node] = node == ccl->node ? part : place;
    }
    if (exchange(ccl) == 0)
        reduce_nodes(ccl, work, result_of(ccl), ccl->local_size * count);
}

static int32_t reduce_scatter(struct ops__ccl *ccl, const struct work *work, struct range piece)
{
    const struct ops__shm_call *call = work->call;
    size_t bytes = piece.count * call->element;

    for (uint32_t i = 0; i < ccl->size; i++) {
        const char *from = call->in + (ccl->order[i] * call->count + piece.first) * call->element;
        char *to = ccl->input + piece.count * work->element * i;

        if (work->is_wide)
            widen(work, to, from, piece.count);
        else
            memcpy(to, from, bytes);
    }
    if (reduce_local(ccl, work, ccl->input, piece.count * ccl->size))
        return -1;
    if (ops__ccl_leads(ccl))
        reduce_segments(ccl, work, piece.count);
    if (ops__ccl_deliver(ccl, bytes * ccl->local_size))
        return -1;
    memcpy(call->out + piece.first * call->element, result_of(ccl) + bytes * ccl->local_rank,
           bytes);
    return 0;
}

/* Send all leaders what this node has, and receive what they have, to the result. */
static void gather_nodes(struct ops__ccl *ccl, size_t bytes)
{
    char *own = result_of(ccl) + ccl->first[ccl->node] * bytes;

    memcpy(own, ccl->middle, ccl->local_size * bytes);
    for (uint32_t node = 0; node < ccl->nodes; node++) {
        char *place = result_of(ccl) + ccl->first[node] * bytes;

        ccl->sends[node] = (struct ops__ccl_part){own, ccl->local_size * bytes};
        ccl->receives[node] =
            (struct ops__ccl_part){place, (ccl->first[node + 1] - ccl->first[node]) * bytes};
    }
    exchange(ccl);
}

static int32_t all_gather(struct ops__ccl *ccl, const struct work *work, struct range piece)
{
    const struct ops__shm_call *call = work->call;
    size_t offset = piece.first * call->element;
    size_t bytes = piece.count * call->element;
    struct ops__shm_call local = {
        .kind = OPS__SHM_ALL_GATHER,
        .dtype = call->dtype,
        .element = call->element,
        .in = call->in + offset,
        .out = ccl->middle,
        .count = piece.count,
    };

    if (ops__ccl_local(ccl, &local, OPS__CCL_LOCAL_SLACK))
        return -1;
    if (ops__ccl_leads(ccl))
        gather_nodes(ccl, bytes);
    if (ops__ccl_deliver(ccl, bytes * ccl->size))
        return -1;
    for (uint32_t i = 0; i < ccl->size; i++)
        memcpy(call->out + ccl->order[i] * call->count * call->element + offset,
               result_of(ccl) + bytes * i, bytes);
    return 0;
}

/* The leader of root's node sends data to the other leaders. */
static void spread(struct ops__ccl *ccl, uint32_t root_node, char *data, size_t bytes)
{
    for (uint32_t node = 0; node < ccl->nodes; node++) {
        ccl->sends[node] = (struct ops__ccl_part){data, ccl->node == root_node ? bytes : 0};
        ccl->receives[node] = (struct ops__ccl_part){result_of(ccl), node == root_node ? bytes : 0};
    }
    exchange(ccl);
}

static int32_t broadcast(struct ops__ccl *ccl, const struct work *work, struct range piece)
{
    const struct ops__shm_call *call = work->call;
    uint32_t root_node = ccl->node_of[call->root];
    size_t offset = piece.first * call->element;
    size_t bytes = piece.count * call->element;
    char *data = NULL; /* on root's node */
    struct ops__shm_call local = {
        .kind = OPS__SHM_BROADCAST,
        .dtype = call->dtype,
        .element = call->element,
        .count = piece.count,
    };

    if (ccl->node == root_node) {
        data = call->root == ccl->rank ? (char *)(uintptr_t)call->in + offset : call->out + offset;
        while (ccl->order[ccl->first[root_node] + local.root] != call->root)
            local.root++;
        local.in = data;
        local.out = data;
        if (ops__ccl_local(ccl, &local, OPS__CCL_LOCAL_SLACK))
            return -1;
    }
    if (ops__ccl_leads(ccl) && data)
        memcpy(ccl->input, data, bytes);
    if (ops__ccl_leads(ccl))
        spread(ccl, root_node, ccl->input, bytes);
    if (ops__ccl_deliver(ccl, data ? 0 : bytes))
        return -1;
    if (ccl->node != root_node && call->out)
        memcpy(call->out + offset, result_of(ccl), bytes);
    return 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Elements of a piece, such that every buffer is large enough. */
static size_t piece_count(const struct ops__ccl *ccl, const struct work *work)
{
    size_t room = ccl->buffer_bytes / work->element;

    switch (work->call->kind) {
    case OPS__SHM_REDUCE_SCATTER:
        return room / ((size_t)ccl->nodes * ccl->most_local);
    case OPS__SHM_ALL_GATHER:
        return room / ccl->size;
    default:
        return room;
    }
}

static int32_t run_piece(struct ops__ccl *ccl, const struct work *work, struct range piece)
{
    switch (work->call->kind) {
    case OPS__SHM_ALL_REDUCE:
        return all_reduce(ccl, work, piece);
    case OPS__SHM_REDUCE_SCATTER:
        return reduce_scatter(ccl, work, piece);
    case OPS__SHM_ALL_GATHER:
        return all_gather(ccl, work, piece);
    default:
        return broadcast(ccl, work, piece);
    }
}

/* Show this rank's call to the others of its node. */
static int32_t arrive(struct ops__ccl *ccl, const struct ops__shm_call *call)
{
    struct ops__ccl_hello *hello = &ccl->hello;

    ops__ccl_look(ccl);
    *hello = (struct ops__ccl_hello){
        .kind = call->kind,
        .dtype = call->dtype,
        .reduction = call->reduction,
        .root = call->root,
        .count = (int64_t)call->count,
        .number = (int64_t)ccl->calls,
        .failed = ccl->failed,
    };
    return ops__ccl_arrive(ccl, hello);
}

static bool is_small(const struct ops__ccl *ccl, const struct work *work)
{
    return work->call->kind == OPS__SHM_ALL_REDUCE && work->call->count != 0 &&
           work->call->count <= least(OPS__CCL_SMALL, ccl->buffer_bytes) / work->element;
}

static int32_t run_pieces(struct ops__ccl *ccl, const struct work *work)
{
    size_t most = piece_count(ccl, work);

    for (size_t first = 0; first < work->call->count; first += most) {
        struct range piece = {.first = first, .count = least(most, work->call->count - first)};

        if (first != 0)
            ops__ccl_start(ccl);
        if (run_piece(ccl, work, piece))
            return -1;
    }
    return 0;
}

int32_t ops__ccl_run(struct ops__ccl *ccl, const struct ops__shm_call *call)
{
    struct work work = {.call = call, .dtype = call->dtype, .element = call->element};

    work.is_wide = call->reduction == DS_ACCEL_COMM_SUM && call->element == 2;
    if (work.is_wide) {
        work.dtype = DS_ACCEL_DTYPE_FLOAT32;
        work.element = sizeof(float);
    }
    if (arrive(ccl, call))
        return -1;
    if (is_small(ccl, &work))
        return all_reduce_small(ccl, &work);
    if (ops__ccl_leads(ccl))
        greet(ccl, 0);
    return call->count == 0 ? ops__ccl_deliver(ccl, 0) : run_pieces(ccl, &work);
}
