/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The memory of the ranks, which follows their CPUs. bind.c describes it. */
#include "base/text.h"
#include "launch/binder.h"
#include "machine/cpus.h"
#include "machine/topology.h"

enum layout {
    NORMAL,
    FLAT_HBM, /* a node without CPUs for each node with CPUs */
    FAKE      /* adjacent nodes have the same CPUs */
};

static enum layout find_layout(const struct ds_accel__binder *binder)
{
    uint32_t empty = 0;
    bool is_fake = false;

    for (uint32_t i = 0; i < binder->topology->node_count; i++) {
        empty += binder->node_cpus[i].count == 0;
        is_fake |= i > 0 && binder->node_cpus[i].count > 0 &&
                   ds_accel__set_is_equal(&binder->node_cpus[i], &binder->node_cpus[i - 1]);
    }
    if (empty > 0 && 2 * empty == binder->topology->node_count) {
        return FLAT_HBM;
    }
    return is_fake ? FAKE : NORMAL;
}

/* The position of the k-th node without CPUs, where the node at a position is the k-th with CPUs.
 * */
static uint32_t find_pair(const struct ds_accel__binder *binder, uint32_t position)
{
    uint32_t k = 0;
    uint32_t i = 0;

    for (uint32_t j = 0; j < position; j++) {
        k += binder->node_cpus[j].count > 0;
    }
    while (binder->node_cpus[i].count > 0 || k-- > 0) {
        i++;
    }
    return i;
}

/* Add the nodes around a position that have the same CPUs. A node that is like none of its
 * neighbours adds nothing. */
static int32_t add_fake_group(const struct ds_accel__binder *binder, uint32_t position,
                              struct ds_accel__set *nodes)
{
    const struct ds_accel__set *same = &binder->node_cpus[position];
    uint32_t first = position;
    uint32_t last = position;
    int32_t status = DS_ACCEL_OK;

    while (first > 0 && ds_accel__set_is_equal(&binder->node_cpus[first - 1], same)) {
        first--;
    }
    while (last + 1 < binder->topology->node_count &&
           ds_accel__set_is_equal(&binder->node_cpus[last + 1], same)) {
        last++;
    }
    for (uint32_t i = first; last > first && i <= last && status >= 0; i++) {
        status = ds_accel__set_add(nodes, binder->topology->nodes[i].id);
    }
    return status;
}

/* Choose the memory of a rank by the first node that contains all its CPUs. */
static int32_t place_memory(const struct ds_accel__binder *binder, enum layout layout,
                            struct ds_accel__placement *placement, uint32_t *forbidden)
{
    const struct ds_accel__topology *topology = binder->topology;
    uint32_t i = 0;
    int32_t status;

    while (i < topology->node_count &&
           !ds_accel__set_has_all(&binder->node_cpus[i], &placement->cpus)) {
        i++;
    }
    if (i == topology->node_count || placement->cpus.count == 0) {
        return DS_ACCEL_OK;
    }
    placement->memory = layout == FLAT_HBM ? DS_ACCEL__MEMORY_PREFER : DS_ACCEL__MEMORY_BIND;
    status =
        layout == FAKE
            ? add_fake_group(binder, i, &placement->nodes)
            : ds_accel__set_add(&placement->nodes,
                                topology->nodes[layout == FLAT_HBM ? find_pair(binder, i) : i].id);
    if (placement->nodes.count > 0) {
        ds_accel__set_keep(&placement->nodes, &binder->cpus->allowed_nodes);
        *forbidden += placement->nodes.count == 0;
    }
    if (placement->nodes.count == 0) {
        placement->memory = DS_ACCEL__MEMORY_DEFAULT;
    }
    return status;
}

int32_t ds_accel__binder_place_memory(const struct ds_accel__binder *binder)
{
    enum layout layout = find_layout(binder);
    uint32_t forbidden = 0;
    int32_t status = DS_ACCEL_OK;

    for (uint32_t rank = 0; rank < binder->request->rank_count && status >= 0; rank++) {
        status = place_memory(binder, layout, &binder->placements[rank], &forbidden);
    }
    if (forbidden > 0) {
        ds_accel__text_add(binder->notes,
                           "%u %s no memory policy: this process may use only the memory of nodes ",
                           forbidden, forbidden == 1 ? "rank has" : "ranks have");
        ds_accel__set_write(&binder->cpus->allowed_nodes, binder->notes);
        ds_accel__text_add(binder->notes, "\n");
    }
    return status;
}
