/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Equal shares of the cores: the modes SHARE and EXCLUSIVE. bind.c describes them. */
#include "base/text.h"
#include "launch/binder.h"
#include "machine/cpus.h"
#include "machine/topology.h"

#include <stdlib.h>

/* Give the rank count cores, the last of which it reserves. */
static int32_t give_cores(const struct ds_accel__binder *binder, uint32_t rank,
                          const uint32_t *cores, uint32_t count)
{
    struct ds_accel__placement *placement = &binder->placements[rank];
    uint32_t reserved = ds_accel__binder_count_reserved(binder->request, count);
    int32_t status = DS_ACCEL_OK;

    if (reserved >= count) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "--reserve-cores: rank %u has %u %s, and %u would be reserved", rank,
                               count, count == 1 ? "core" : "cores", reserved);
    }
    for (uint32_t i = 0; status >= 0 && i < count; i++) {
        status = i < count - reserved
                     ? ds_accel__binder_add_core(binder, &placement->cpus, cores[i],
                                                 ds_accel__binder_uses_smt(binder))
                     : ds_accel__binder_add_core(binder, &placement->reserved, cores[i], true);
    }
    placement->thread_count = binder->request->uses_smt ? placement->cpus.count : count - reserved;
    return status;
}

/* The cores of a node, and the ranks whose devices are near it. */
struct share {
    struct ds_accel__set cores;
    uint32_t rank_count, next;
};

/* Distribute the cores of each node to the ranks of its devices. *done_out is false if a device's
 * node is unknown, or a node has fewer cores than ranks. */
static int32_t share_by_node(struct ds_accel__binder *binder, struct share *shares, bool *done_out)
{
    uint32_t rank_count = binder->request->rank_count;
    uint32_t node_count = binder->topology->node_count;
    uint32_t count = UINT32_MAX;
    int32_t status = DS_ACCEL_OK;

    *done_out = false;
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        uint32_t node =
            ds_accel__binder_find_node(binder, ds_accel__binder_device_node(binder, rank));

        if (node == node_count) {
            return DS_ACCEL_OK;
        }
        shares[node].rank_count++;
    }
    for (uint32_t i = 0; i < node_count && status >= 0; i++) {
        status = ds_accel__set_add_all(&shares[i].cores, &binder->cores);
        ds_accel__set_keep(&shares[i].cores, &binder->node_cpus[i]);
        if (shares[i].rank_count > 0 && shares[i].cores.count / shares[i].rank_count < count) {
            count = shares[i].cores.count / shares[i].rank_count;
        }
    }
    if (status < 0 || count == 0) {
        return status;
    }
    for (uint32_t rank = 0; rank < rank_count && status >= 0; rank++) {
        struct share *share =
            &shares[ds_accel__binder_find_node(binder, ds_accel__binder_device_node(binder, rank))];

        status = give_cores(binder, rank, share->cores.items + share->next, count);
        share->next += count;
    }
    *done_out = true;
    return status;
}

/* Let all ranks share every usable core, because there are fewer cores than ranks. */
static int32_t share_all(struct ds_accel__binder *binder)
{
    const struct ds_accel__bind_request *request = binder->request;
    const struct ds_accel__set *cores = &binder->cores;
    int32_t status = DS_ACCEL_OK;

    if (request->reserve_cores > 0 || request->reserve_percent > 0) {
        return ds_accel__error(
            DS_ACCEL_ERR_INVALID, "--reserve-cores: %u ranks share %u %s, and none can be reserved",
            request->rank_count, cores->count, cores->count == 1 ? "core" : "cores");
    }
    ds_accel__text_add(binder->notes, "%u ranks share %u %s: this process may use only CPUs ",
                       request->rank_count, cores->count, cores->count == 1 ? "core" : "cores");
    ds_accel__set_write(&binder->cpus->allowed, binder->notes);
    ds_accel__text_add(binder->notes, "\n");
    for (uint32_t rank = 0; rank < request->rank_count; rank++) {
        for (uint32_t i = 0; i < cores->count && status >= 0; i++) {
            status = ds_accel__binder_add_core(binder, &binder->placements[rank].cpus,
                                               cores->items[i], request->uses_smt);
        }
        binder->placements[rank].thread_count = 1;
    }
    return status;
}

static int32_t too_few(const struct ds_accel__binder *binder, uint32_t core_count)
{
    return ds_accel__error(DS_ACCEL_ERR_INVALID,
                           "at least one core needs to be assigned to each rank: %u ranks, %u %s",
                           binder->request->rank_count, core_count,
                           core_count == 1 ? "core" : "cores");
}

int32_t ds_accel__binder_share(struct ds_accel__binder *binder)
{
    uint32_t rank_count = binder->request->rank_count;
    uint32_t count = binder->cores.count / rank_count;
    struct share *shares;
    bool is_done = false;
    int32_t status;

    if (binder->all_count < rank_count) {
        return too_few(binder, binder->all_count);
    }
    if (count == 0) {
        return binder->request->mode == DS_ACCEL__BIND_EXCLUSIVE
                   ? too_few(binder, binder->cores.count)
                   : share_all(binder);
    }
    shares = calloc(binder->topology->node_count, sizeof(*shares));
    status = shares != NULL ? share_by_node(binder, shares, &is_done) : ds_accel__no_memory();
    for (uint32_t rank = 0; !is_done && status >= 0 && rank < rank_count; rank++) {
        status = give_cores(binder, rank, binder->cores.items + rank * count, count);
    }
    for (uint32_t i = 0; shares != NULL && i < binder->topology->node_count; i++) {
        ds_accel__set_clear(&shares[i].cores);
    }
    free(shares);
    return status;
}
