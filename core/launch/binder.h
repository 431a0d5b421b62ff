/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the files that place ranks: bind.c, bind_shares.c, bind_groups.c, bind_memory.c. */
#ifndef DS_ACCEL_LAUNCH_BINDER_H
#define DS_ACCEL_LAUNCH_BINDER_H

#include "launch/bind.h"

/* A placement in progress. */
struct ds_accel__binder {
    const struct ds_accel__cpus *cpus;
    const struct ds_accel__topology *topology;
    const struct ds_accel__bind_request *request;
    struct ds_accel__placement *placements;
    struct ds_accel__text *notes;
    struct ds_accel__set usable;     /* the CPUs that ranks may use */
    struct ds_accel__set cores;      /* the CPUs that represent the cores to distribute */
    struct ds_accel__set *node_cpus; /* [node_count]: the CPUs of each NUMA node */
    uint32_t all_count; /* cores of the machine or numbers of the list, whether or not usable */
};

/* binder.c */

/* Does a rank use all hardware threads of its cores? */
bool ds_accel__binder_uses_smt(const struct ds_accel__binder *binder);
/* The position of the node with an id, or of the first node with the same CPUs: fake nodes share
 * them. node_count: there is no such node. */
uint32_t ds_accel__binder_find_node(const struct ds_accel__binder *binder, int32_t id);
/* The NUMA node of a rank's device; -1: unknown. */
int32_t ds_accel__binder_device_node(const struct ds_accel__binder *binder, uint32_t rank);
/* The number of cores to reserve of a rank's cores. A percentage is rounded up, and is at least one
 * core: a rank that has less than one core cannot reserve a part of it. */
uint32_t ds_accel__binder_count_reserved(const struct ds_accel__bind_request *request,
                                         uint32_t core_count);
/* Add a core: its first usable CPU, or all of them. ERR_NO_MEMORY. */
int32_t ds_accel__binder_add_core(const struct ds_accel__binder *binder, struct ds_accel__set *set,
                                  uint32_t id, bool is_whole);

/* The steps, which need the usable CPUs and the cores. ERR_INVALID: the cores do not suffice;
 * ERR_NO_MEMORY. */

/* bind_shares.c: give each rank an equal share of the cores. */
int32_t ds_accel__binder_share(struct ds_accel__binder *binder);
/* bind_groups.c: give each rank the CPUs of a group. */
int32_t ds_accel__binder_group(struct ds_accel__binder *binder);
/* bind_memory.c: choose the memory of all ranks by their CPUs. */
int32_t ds_accel__binder_place_memory(const struct ds_accel__binder *binder);

#endif
