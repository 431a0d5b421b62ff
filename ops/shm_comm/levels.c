/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reductions of large messages among groups of ranks that share a cache (topology.c). A piece has
 * a share for each rank: of all_reduce() parts of the piece, of reduce_scatter() the piece of each
 * rank's result. The ranks of a group divide the shares, and each adds up those it owns, in memory
 * that it touched first:
 *
 *     stage    copy what others of the group need of the input to the own slot
 *     work     own shares: add the inputs of the group to what the owner in the group before has
 *              added up, partial[]; the last group has the result, reduced[]
 *     finish   own shares: copy the result from the owner in the last group to the own reduced[];
 *              then copy all shares from the owners in the own group
 *
 * So all elements are added in the order of the ranks, as without groups, and have the same bits.
 * Between groups go one partial sum and one result for each of them, and not the inputs and results
 * of each rank.
 *
 * Slots are used anew after three pieces. The result of a share in the last group, and so each
 * partial sum of it, says that one owner in each group before has seen the piece staged by its
 * whole group, and so that all of these ranks have finished the piece three before. finish() waits
 * for the results of the own shares, for which the next group has read the partial sums, and for
 * the other ranks of the group, which read what was staged.
 */
#include "pipeline.h"
#include "reduce.h"

#include <assert.h>

/* Where a share of a piece lies, in elements. */
struct place {
    size_t in_array; /* in a whole input */
    size_t in_slot;
    size_t count;
};

static bool scatters(const struct ops__pipeline *p)
{
    return p->call->kind == OPS__SHM_REDUCE_SCATTER;
}

static struct place place_of(const struct ops__pipeline *p, uint32_t share, size_t number)
{
    struct ops__range range = ops__piece_range(p, number);
    struct ops__range part;

    if (scatters(p))
        return (struct place){.in_array = p->call->count * share + range.first,
                              .in_slot = p->piece * share,
                              .count = range.count};
    part = ops__share_of(p, share, range.count);
    return (struct place){
        .in_array = range.first + part.first, .in_slot = part.first, .count = part.count};
}

static const struct ops__shm_group *own_group(const struct ops__pipeline *p)
{
    return &p->comm->groups[p->comm->group];
}

static bool is_last_group(const struct ops__pipeline *p)
{
    return p->comm->group == p->comm->group_count - 1;
}

static uint32_t owner_of(const struct ops__shm_group *group, uint32_t share)
{
    assert(group->size > 0);
    return group->first + share % group->size;
}

/* Return the memory of a share's owner: its reduced[], or behind that its partial[]. */
static char *share_memory(const struct ops__pipeline *p, const struct ops__shm_group *group,
                          uint32_t share, size_t number, bool is_partial)
{
    const struct ds_accel_comm *comm = p->comm;
    size_t slot = ops__slot_number(p, number) + (is_partial ? OPS__SHM_SLOTS : 0);

    return ops__shm_small(comm, owner_of(group, share)) + 2 * OPS__SHM_SMALL +
           comm->slot_bytes * OPS__SHM_SLOTS +
           comm->share_bytes * (comm->owned_shares * slot + share / group->size);
}

static int32_t await_partial(const struct ops__pipeline *p, const struct ops__shm_group *group,
                             uint32_t share, size_t number)
{
    uint32_t rank = owner_of(group, share);

    return ops__shm_wait(p->comm, rank, &p->comm->ranks[rank]->partial,
                         p->comm->pieces + number + 1);
}

void ops__levels_stage(const struct ops__pipeline *p, size_t number)
{
    const size_t element = p->call->element;
    char *slot = ops__staged_slot(p, p->comm->rank, number);

    for (uint32_t share = 0; p->is_staged && share < p->comm->size; share++) {
        struct place place = place_of(p, share, number);

        if (owner_of(own_group(p), share) != p->comm->rank)
            ops__shm_copy(slot + place.in_slot * element, p->call->in + place.in_array * element,
                          place.count * element);
    }
}

/* Fill outs with where the result of an own share goes; return how many. */
static size_t find_outputs(const struct ops__pipeline *p, uint32_t share, size_t number,
                           char **outs)
{
    const struct ops__shm_group *group = own_group(p);
    size_t offset = place_of(p, share, number).in_array * p->call->element;

    size_t count = 0;

    /* Other groups read the last one's result in the slot, because outputs belong to the caller
     * when the call returns. */
    if (!p->out_direct || is_last_group(p))
        outs[count++] = share_memory(p, group, share, number, false);
    for (uint32_t i = 0; i < group->size && p->out_direct; i++)
        outs[count++] = p->out[group->first + i] + offset;
    return count;
}

static int32_t reduce_share(const struct ops__pipeline *p, uint32_t share, size_t number)
{
    const struct ops__shm_group *group = own_group(p);
    const size_t element = p->call->element;
    const bool widens = p->call->dtype == DS_ACCEL_DTYPE_FLOAT16 ||
                        p->call->dtype == DS_ACCEL_DTYPE_BFLOAT16;
    struct place place = place_of(p, share, number);
    const char *in[DS_ACCEL_SHM_COMM_MAX_RANKS]; /* groups have fewer ranks */
    char *out[DS_ACCEL_SHM_COMM_MAX_RANKS];
    struct ops__reduction reduction = {
        .dtype = p->call->dtype,
        .op = p->call->reduction,
        .in = in,
        .out = out,
        .count = place.count,
        .in_is_wide = widens && p->comm->group > 0,
        .out_is_wide = widens && !is_last_group(p),
    };

    if (place.count == 0)
        return 0;
    if (p->comm->group > 0) {
        int32_t status = await_partial(p, group - 1, share, number);

        if (status)
            return status;
        in[reduction.in_count++] = share_memory(p, group - 1, share, number, true);
    }
    for (uint32_t rank = group->first; rank < group->first + group->size; rank++)
        in[reduction.in_count++] = p->in[rank] ? p->in[rank] + place.in_array * element
                                               : ops__staged_slot(p, rank, number) +
                                                     place.in_slot * element;
    if (is_last_group(p)) {
        reduction.out_count = find_outputs(p, share, number, out);
    } else {
        out[0] = share_memory(p, group, share, number, true);
        reduction.out_count = 1;
    }
    ops__reduce(&reduction);
    return 0;
}

int32_t ops__levels_work(const struct ops__pipeline *p, size_t number)
{
    struct ds_accel_comm *comm = p->comm;
    const struct ops__shm_group *group = own_group(p);

    for (uint32_t i = 0; i < group->size; i++) {
        int32_t status = ops__await_staged(p, group->first + i, number);

        if (status)
            return status;
    }
    for (uint32_t share = comm->rank - group->first; share < comm->size; share += group->size) {
        int32_t status = reduce_share(p, share, number);

        if (status)
            return status;
    }
    ops__shm_publish(comm, &comm->ranks[comm->rank]->partial, comm->pieces + number + 1);
    return 0;
}

/* Wait for the result of an own share, and take it over. */
static int32_t fetch_share(const struct ops__pipeline *p, uint32_t share, size_t number)
{
    const struct ops__shm_group *last = &p->comm->groups[p->comm->group_count - 1];
    const size_t element = p->call->element;
    struct place place = place_of(p, share, number);
    char *out[DS_ACCEL_SHM_COMM_MAX_RANKS];
    const char *from;
    size_t out_count;
    int32_t status;

    if (place.count == 0)
        return 0;
    status = await_partial(p, last, share, number);
    if (status || scatters(p))
        return status;
    from = share_memory(p, last, share, number, false);
    out_count = find_outputs(p, share, number, out);
    for (size_t i = 0; i < out_count; i++)
        ops__shm_copy(out[i], from, place.count * element);
    return 0;
}

/* Copy the results of a piece to the output, when their owners in the group have them. */
static int32_t deliver(const struct ops__pipeline *p, size_t number)
{
    const struct ops__shm_group *last = &p->comm->groups[p->comm->group_count - 1];
    const size_t element = p->call->element;

    if (scatters(p)) {
        int32_t status = await_partial(p, last, p->comm->rank, number);

        if (status == 0)
            ops__shm_copy(p->call->out + ops__piece_range(p, number).first * element,
                          share_memory(p, last, p->comm->rank, number, false),
                          ops__piece_range(p, number).count * element);
        return status;
    }
    for (uint32_t share = 0; share < p->comm->size && !p->out_direct; share++) {
        struct place place = place_of(p, share, number);

        ops__shm_copy(p->call->out + place.in_array * element,
                      share_memory(p, own_group(p), share, number, false), place.count * element);
    }
    return 0;
}

int32_t ops__levels_finish(const struct ops__pipeline *p, size_t number)
{
    struct ds_accel_comm *comm = p->comm;
    const struct ops__shm_group *group = own_group(p);

    for (uint32_t share = comm->rank - group->first; share < comm->size && !is_last_group(p);
         share += group->size) {
        int32_t status = fetch_share(p, share, number);

        if (status)
            return status;
    }
    ops__shm_publish(comm, &comm->ranks[comm->rank]->reduced, comm->pieces + number + 1);
    for (uint32_t i = 0; i < group->size; i++) {
        uint32_t rank = group->first + i;
        int32_t status =
            ops__shm_wait(comm, rank, &comm->ranks[rank]->reduced, comm->pieces + number + 1);

        if (status)
            return status;
    }
    return deliver(p, number);
}
