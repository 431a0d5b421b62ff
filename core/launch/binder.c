/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the steps of a placement have in common: bind.c describes them. */
#include "launch/binder.h"
#include "machine/cpus.h"
#include "machine/topology.h"

bool ds_accel__binder_uses_smt(const struct ds_accel__binder *binder)
{
    return binder->request->uses_smt || binder->request->mode == DS_ACCEL__BIND_EXCLUSIVE;
}

uint32_t ds_accel__binder_find_node(const struct ds_accel__binder *binder, int32_t id)
{
    uint32_t count = binder->topology->node_count;
    uint32_t at = 0;
    uint32_t first = 0;

    while (at < count && (int32_t)binder->topology->nodes[at].id != id) {
        at++;
    }
    while (at < count &&
           !ds_accel__set_is_equal(&binder->node_cpus[first], &binder->node_cpus[at])) {
        first++;
    }
    return at < count ? first : count;
}

int32_t ds_accel__binder_device_node(const struct ds_accel__binder *binder, uint32_t rank)
{
    return binder->request->device_nodes != NULL ? binder->request->device_nodes[rank] : -1;
}

uint32_t ds_accel__binder_count_reserved(const struct ds_accel__bind_request *request,
                                         uint32_t core_count)
{
    uint64_t part = ((uint64_t)core_count * request->reserve_percent + 99) / 100;

    if (request->reserve_percent == 0) {
        return request->reserve_cores;
    }
    return part > 0 ? (uint32_t)part : 1;
}

int32_t ds_accel__binder_add_core(const struct ds_accel__binder *binder, struct ds_accel__set *set,
                                  uint32_t id, bool is_whole)
{
    uint32_t core = ds_accel__cpus_find(binder->cpus, id)->core;
    int32_t status = ds_accel__set_add(set, id);

    for (uint32_t i = 0; is_whole && status >= 0 && i < binder->usable.count; i++) {
        uint32_t other = binder->usable.items[i];

        if (ds_accel__cpus_find(binder->cpus, other)->core == core) {
            status = ds_accel__set_add(set, other);
        }
    }
    return status;
}
