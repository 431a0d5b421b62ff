/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Groups of CPUs that ranks may share: the modes NODE, SOCKET, L3 and CORE. */
#include "base/text.h"
#include "launch/binder.h"
#include "machine/cpus.h"
#include "machine/topology.h"

#include <stdlib.h>

/* CPUs that belong together, and the ranks on them. */
struct group {
    uint32_t key;
    uint32_t node; /* position of the NUMA node of the first CPU; node_count: unknown */
    struct ds_accel__set cores;
    uint32_t rank_count, next;
};

static uint32_t node_of(const struct ds_accel__binder *binder, uint32_t cpu)
{
    uint32_t i = 0;

    while (i < binder->topology->node_count && !ds_accel__set_has(&binder->node_cpus[i], cpu)) {
        i++;
    }
    return i;
}

static uint32_t key_of(const struct ds_accel__binder *binder, uint32_t id)
{
    const struct ds_accel__cpu *cpu = ds_accel__cpus_find(binder->cpus, id);

    switch (binder->request->mode) {
    case DS_ACCEL__BIND_NODE:
        return node_of(binder, id);
    case DS_ACCEL__BIND_SOCKET:
        return cpu->package;
    case DS_ACCEL__BIND_L3:
        return cpu->l3;
    default:
        return cpu->core;
    }
}

/* Sort the cores into groups, in the order of their first cores. */
static int32_t make_groups(const struct ds_accel__binder *binder, struct group *groups,
                           uint32_t *count_out)
{
    uint32_t count = 0;
    int32_t status = DS_ACCEL_OK;

    for (uint32_t i = 0; i < binder->cores.count && status >= 0; i++) {
        uint32_t id = binder->cores.items[i];
        uint32_t key = key_of(binder, id);
        uint32_t at = 0;

        while (at < count && groups[at].key != key) {
            at++;
        }
        if (at == count) {
            groups[at].key = key;
            groups[at].node = node_of(binder, id);
            count++;
        }
        status = ds_accel__set_add(&groups[at].cores, id);
    }
    *count_out = count;
    return status;
}

/* The group with the fewest ranks, of those near a node; node_count: of all groups. UINT32_MAX: no
 * group is near the node. */
static uint32_t find_emptiest(const struct ds_accel__binder *binder, const struct group *groups,
                              uint32_t count, uint32_t node)
{
    uint32_t best = UINT32_MAX;

    for (uint32_t i = 0; i < count; i++) {
        if ((node == binder->topology->node_count || groups[i].node == node) &&
            (best == UINT32_MAX || groups[i].rank_count < groups[best].rank_count)) {
            best = i;
        }
    }
    return best;
}

/* Choose the emptiest group near the device of each rank; UINT32_MAX: there is none. Returns the
 * number of ranks that have a group. */
static uint32_t choose_near(const struct ds_accel__binder *binder, struct group *groups,
                            uint32_t count, uint32_t *chosen)
{
    uint32_t placed = 0;

    for (uint32_t rank = 0; rank < binder->request->rank_count; rank++) {
        uint32_t node =
            ds_accel__binder_find_node(binder, ds_accel__binder_device_node(binder, rank));

        chosen[rank] = node < binder->topology->node_count
                           ? find_emptiest(binder, groups, count, node)
                           : UINT32_MAX;
        if (chosen[rank] != UINT32_MAX) {
            groups[chosen[rank]].rank_count++;
            placed++;
        }
    }
    return placed;
}

/* Choose a group for each rank: near its device, if the device's node is known. The other ranks
 * fill the emptiest groups; if no node is known, neighbouring ranks get neighbouring groups. */
static void choose_groups(const struct ds_accel__binder *binder, struct group *groups,
                          uint32_t count, uint32_t *chosen)
{
    uint32_t rank_count = binder->request->rank_count;
    bool by_position = choose_near(binder, groups, count, chosen) == 0 &&
                       binder->request->mode != DS_ACCEL__BIND_CORE;

    for (uint32_t rank = 0; rank < rank_count; rank++) {
        if (chosen[rank] == UINT32_MAX) {
            chosen[rank] = by_position
                               ? (uint32_t)((uint64_t)rank * count / rank_count)
                               : find_emptiest(binder, groups, count, binder->topology->node_count);
            groups[chosen[rank]].rank_count++;
        }
    }
}

/* Give a rank all CPUs of its group, without the cores that the group's ranks reserve. */
static int32_t give_group(const struct ds_accel__binder *binder, struct group *group, uint32_t rank)
{
    struct ds_accel__placement *placement = &binder->placements[rank];
    bool is_whole = binder->request->mode != DS_ACCEL__BIND_CORE || binder->request->uses_smt;
    uint32_t share = group->cores.count / group->rank_count;
    uint32_t reserved = ds_accel__binder_count_reserved(binder->request, share);
    uint32_t kept = group->cores.count - reserved * group->rank_count;
    int32_t status = DS_ACCEL_OK;

    if (reserved > 0 && reserved >= share) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "--reserve-cores: rank %u has a share of %u %s, and %u would be "
                               "reserved",
                               rank, share, share == 1 ? "core" : "cores", reserved);
    }
    for (uint32_t i = 0; i < kept && status >= 0; i++) {
        status =
            ds_accel__binder_add_core(binder, &placement->cpus, group->cores.items[i], is_whole);
    }
    for (uint32_t i = 0; i < reserved && status >= 0; i++) {
        uint32_t at = kept + group->next * reserved + i;

        status =
            ds_accel__binder_add_core(binder, &placement->reserved, group->cores.items[at], true);
    }
    group->next++;
    placement->thread_count = binder->request->uses_smt ? placement->cpus.count / group->rank_count
                                                        : share - reserved;
    if (placement->thread_count == 0) {
        placement->thread_count = 1; /* more ranks than cores */
    }
    return status;
}

/* Note what differs from the request. */
static void note_groups(const struct ds_accel__binder *binder, uint32_t count)
{
    uint32_t rank_count = binder->request->rank_count;
    bool has_l3 = false;

    for (uint32_t i = 0; i < binder->cpus->count; i++) {
        has_l3 |= binder->cpus->items[i].l3 != binder->cpus->items[i].core;
    }
    if (binder->request->mode == DS_ACCEL__BIND_L3 && !has_l3) {
        ds_accel__text_add(binder->notes, "this machine shows no level-3 cache that cores share: "
                                          "--bind-to l3 binds ranks to cores\n");
    }
    if (binder->request->mode == DS_ACCEL__BIND_CORE && count < rank_count) {
        ds_accel__text_add(binder->notes, "%u ranks share %u %s\n", rank_count, count,
                           count == 1 ? "core" : "cores");
    }
}

/* chosen: an array for the group of each rank. */
static int32_t fill_groups(struct ds_accel__binder *binder, struct group *groups, uint32_t *chosen)
{
    uint32_t rank_count = binder->request->rank_count;
    uint32_t count = 0;
    int32_t status = make_groups(binder, groups, &count);

    if (status >= 0) {
        choose_groups(binder, groups, count, chosen);
        note_groups(binder, count);
    }
    for (uint32_t rank = 0; rank < rank_count && status >= 0; rank++) {
        status = give_group(binder, &groups[chosen[rank]], rank);
    }
    for (uint32_t i = 0; i < count; i++) {
        ds_accel__set_clear(&groups[i].cores);
    }
    return status;
}

int32_t ds_accel__binder_group(struct ds_accel__binder *binder)
{
    struct group *groups = calloc(binder->cores.count, sizeof(*groups));
    uint32_t *chosen = calloc(binder->request->rank_count, sizeof(*chosen));
    int32_t status = groups != NULL && chosen != NULL ? fill_groups(binder, groups, chosen)
                                                      : ds_accel__no_memory();

    free(groups);
    free(chosen);
    return status;
}
