/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Calls of shm_comm with large messages, in pieces. Each piece has three steps:
 *
 *     stage    copy what others need of the input to the own slot, staged[]
 *     work     when all have staged it: compute the own share, from the slots of all ranks
 *     finish   when all have worked: copy their shares of the result
 *
 * Inputs in registered buffers are read in place, without being staged. If all inputs are, and all
 * outputs for an all-reduce, there is one piece.
 *
 * The loop is stage(b + 1), work(b), finish(b - 1): while a rank works, the others' next pieces
 * arrive. With three slots this needs no more waiting: a slot is staged anew only after finish()
 * of the piece three before, for which all ranks have worked on it; and a share of a result is
 * computed anew only when all have staged this piece, and so have finished the one three before.
 * Pieces are numbered through all calls. The first one of a call may be staged before others
 * arrive, because each call waits until all have worked on its last piece.
 */
#include "pipeline.h"
#include "reduce.h"

/* What a rank says when it arrives. */
struct places {
    uint64_t in;
    uint64_t out;
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

struct ops__range ops__piece_range(const struct ops__pipeline *p, size_t number)
{
    size_t first = number * p->piece;

    return (struct ops__range){.first = first, .count = least(p->piece, p->call->count - first)};
}

/* The share of a rank in a piece of an all-reduce, relative to the piece: whole cache lines. */
struct ops__range ops__share_of(const struct ops__pipeline *p, uint32_t rank, size_t count)
{
    size_t line = 64 / p->call->element;
    size_t share = (count + p->comm->size - 1) / p->comm->size;
    size_t first;

    share = (share + line - 1) / line * line;
    first = least(share * rank, count);
    return (struct ops__range){.first = first, .count = least(share, count - first)};
}

size_t ops__slot_number(const struct ops__pipeline *p, size_t number)
{
    return (size_t)((p->comm->pieces + number) % OPS__SHM_SLOTS);
}

char *ops__staged_slot(const struct ops__pipeline *p, uint32_t rank, size_t number)
{
    return ops__shm_small(p->comm, rank) + 2 * OPS__SHM_SMALL +
           p->comm->slot_bytes * ops__slot_number(p, number);
}

static char *reduced_slot(const struct ops__pipeline *p, uint32_t rank, size_t number)
{
    return ops__shm_small(p->comm, rank) + 2 * OPS__SHM_SMALL +
           p->comm->slot_bytes * OPS__SHM_SLOTS +
           p->comm->share_bytes * ops__slot_number(p, number);
}

/* ---- the three steps ------------------------------------------------------------------------- */

static void stage_all_reduce(const struct ops__pipeline *p, size_t number)
{
    const size_t element = p->call->element;
    struct ops__range range = ops__piece_range(p, number);
    struct ops__range own = ops__share_of(p, p->comm->rank, range.count);
    size_t behind = own.first + own.count;
    char *slot = ops__staged_slot(p, p->comm->rank, number);
    const char *in = p->call->in + range.first * element;

    ops__shm_copy(slot, in, own.first * element);
    ops__shm_copy(slot + behind * element, in + behind * element, (range.count - behind) * element);
}

static void stage_reduce_scatter(const struct ops__pipeline *p, size_t number)
{
    const size_t element = p->call->element;
    struct ops__range range = ops__piece_range(p, number);
    char *slot = ops__staged_slot(p, p->comm->rank, number);

    for (uint32_t rank = 0; rank < p->comm->size; rank++)
        if (rank != p->comm->rank)
            ops__shm_copy(slot + p->piece * rank * element,
                          p->call->in + (p->call->count * rank + range.first) * element,
                          range.count * element);
}

static void stage(const struct ops__pipeline *p, size_t number)
{
    struct ops__range range = ops__piece_range(p, number);

    if (p->has_levels)
        ops__levels_stage(p, number);
    else if (p->is_staged && p->call->kind == OPS__SHM_ALL_REDUCE)
        stage_all_reduce(p, number);
    else if (p->is_staged && p->call->kind == OPS__SHM_REDUCE_SCATTER)
        stage_reduce_scatter(p, number);
    else if (p->is_staged)
        ops__shm_copy(ops__staged_slot(p, p->comm->rank, number),
                      p->call->in + range.first * p->call->element, range.count * p->call->element);
    ops__shm_publish(p->comm, &p->comm->ranks[p->comm->rank]->staged, p->comm->pieces + number + 1);
}

int32_t ops__await_staged(const struct ops__pipeline *p, uint32_t rank, size_t number)
{
    if (p->is_whole) /* the input is there since the rank has arrived */
        return 0;
    return ops__shm_wait(p->comm, rank, &p->comm->ranks[rank]->staged,
                         p->comm->pieces + number + 1);
}

static int32_t work_reduce(const struct ops__pipeline *p, size_t number)
{
    const size_t element = p->call->element;
    const bool scatters = p->call->kind == OPS__SHM_REDUCE_SCATTER;
    struct ops__range range = ops__piece_range(p, number);
    struct ops__range own = scatters ? (struct ops__range){.count = range.count}
                                     : ops__share_of(p, p->comm->rank, range.count);
    size_t in_array = (range.first + own.first + (scatters ? p->call->count * p->comm->rank : 0));
    size_t in_slot = scatters ? p->piece * p->comm->rank : own.first;
    const char *in[DS_ACCEL_SHM_COMM_MAX_RANKS];
    char *out[DS_ACCEL_SHM_COMM_MAX_RANKS];
    struct ops__reduction reduction = {
        .dtype = p->call->dtype,
        .op = p->call->reduction,
        .in = in,
        .out = out,
        .in_count = p->comm->size,
        .count = own.count,
    };

    for (uint32_t rank = 0; rank < p->comm->size; rank++) {
        int32_t status = ops__await_staged(p, rank, number);

        if (status)
            return status;
        in[rank] = p->in[rank] ? p->in[rank] + in_array * element
                               : ops__staged_slot(p, rank, number) + in_slot * element;
        if (p->out_direct)
            out[reduction.out_count++] = p->out[rank] + (range.first + own.first) * element;
    }
    if (!p->out_direct)
        out[reduction.out_count++] = p->call->out + (range.first + own.first) * element;
    if (!p->out_direct && !scatters)
        out[reduction.out_count++] = reduced_slot(p, p->comm->rank, number);
    ops__reduce(&reduction);
    return 0;
}

/* Copy a piece of a rank's input to the output. */
static int32_t work_copy(const struct ops__pipeline *p, uint32_t rank, char *out, size_t number)
{
    const size_t element = p->call->element;
    struct ops__range range = ops__piece_range(p, number);
    int32_t status = ops__await_staged(p, rank, number);

    if (status == 0)
        ops__shm_copy(out + range.first * element,
                      p->in[rank] ? p->in[rank] + range.first * element
                                  : ops__staged_slot(p, rank, number),
                      range.count * element);
    return status;
}

static int32_t work(const struct ops__pipeline *p, size_t number)
{
    const struct ops__shm_call *call = p->call;
    struct ds_accel_comm *comm = p->comm;
    int32_t status = 0;

    if (p->has_levels)
        return ops__levels_work(p, number);
    if (call->kind == OPS__SHM_ALL_GATHER) {
        for (uint32_t i = 0; i < comm->size && status == 0; i++) {
            uint32_t rank = (comm->rank + i) % comm->size;

            status = work_copy(p, rank, call->out + call->in_bytes * rank, number);
        }
    } else if (call->kind == OPS__SHM_BROADCAST) {
        if (call->root != comm->rank)
            status = work_copy(p, call->root, call->out, number);
    } else {
        status = work_reduce(p, number);
    }
    if (status == 0)
        ops__shm_publish(comm, &comm->ranks[comm->rank]->reduced, comm->pieces + number + 1);
    return status;
}

static int32_t finish(const struct ops__pipeline *p, size_t number)
{
    const size_t element = p->call->element;
    struct ds_accel_comm *comm = p->comm;
    struct ops__range range = ops__piece_range(p, number);

    if (p->has_levels)
        return ops__levels_finish(p, number);
    for (uint32_t i = 1; i < comm->size; i++) {
        uint32_t rank = (comm->rank + i) % comm->size;
        int32_t status =
            ops__shm_wait(comm, rank, &comm->ranks[rank]->reduced, comm->pieces + number + 1);

        if (status)
            return status;
        if (p->call->kind == OPS__SHM_ALL_REDUCE && !p->out_direct) {
            struct ops__range share = ops__share_of(p, rank, range.count);

            ops__shm_copy(p->call->out + (range.first + share.first) * element,
                          reduced_slot(p, rank, number), share.count * element);
        }
    }
    return 0;
}

/* ---- the whole call -------------------------------------------------------------------------- */

/* Divide the call into pieces that fit into slots, or into one. */
static void divide(struct ops__pipeline *p)
{
    size_t bytes = p->comm->slot_bytes;
    size_t element = p->call->element;

    if (p->has_levels && element < sizeof(float)) /* of partial sums */
        element = sizeof(float);
    if (p->call->kind == OPS__SHM_REDUCE_SCATTER)
        bytes = bytes / p->comm->size / 64 * 64;
    p->piece = p->is_whole ? p->call->count : bytes / element;
    p->pieces = (p->call->count + p->piece - 1) / p->piece;
}

/* Find the arrays of all ranks, which have arrived. */
static void find_arrays(struct ops__pipeline *p)
{
    p->is_direct = true;
    p->out_direct = p->call->kind == OPS__SHM_ALL_REDUCE;
    for (uint32_t rank = 0; rank < p->comm->size; rank++) {
        const struct places *places = (const struct places *)ops__shm_message(p->comm, rank);

        p->in[rank] = NULL;
        if (places->in)
            p->in[rank] = ops__shm_there(p->comm, rank, places->in);
        else if (p->call->kind != OPS__SHM_BROADCAST || rank == p->call->root)
            p->is_direct = false;
        if (!places->out)
            p->out_direct = false;
        if (p->out_direct)
            p->out[rank] = ops__shm_there(p->comm, rank, places->out);
    }
    p->in[p->comm->rank] = p->call->in;
}

int32_t ops__shm_run_large(struct ds_accel_comm *comm, const struct ops__shm_call *call)
{
    struct ops__pipeline p = {.comm = comm, .call = call};
    struct places *own = (struct places *)ops__shm_own_message(comm);
    int32_t status;

    own->in = call->in_bytes ? ops__shm_place(comm, call->in, call->in_bytes) : 0;
    own->out = call->out_bytes ? ops__shm_place(comm, call->out, call->out_bytes) : 0;
    p.is_staged = call->in_bytes && !own->in;
    p.has_levels = comm->group_count > 1 &&
                   (call->kind == OPS__SHM_ALL_REDUCE || call->kind == OPS__SHM_REDUCE_SCATTER);
    ops__shm_announce(comm);
    divide(&p);
    if (p.is_staged)
        stage(&p, 0);
    status = ops__shm_await_all(comm);
    if (status)
        return status;
    find_arrays(&p);
    p.is_whole = p.is_direct && !p.has_levels &&
                 (p.out_direct || call->kind != OPS__SHM_ALL_REDUCE);
    divide(&p);
    if (!p.is_staged && !p.is_whole)
        stage(&p, 0);
    for (size_t number = 0; number < p.pieces && status == 0; number++) {
        if (number + 1 < p.pieces)
            stage(&p, number + 1);
        status = work(&p, number);
        if (status == 0 && number > 0)
            status = finish(&p, number - 1);
    }
    if (status == 0)
        status = finish(&p, p.pieces - 1);
    comm->pieces += p.pieces;
    return status;
}
