/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The ranks of a plan on the machine, as the member "plan" of the report topo describes them:
 * topo_ranks.c reads the member and writes the text, topo_picture.c draws the picture.
 */
#ifndef DS_ACCEL_REPORT_TOPO_RANKS_H
#define DS_ACCEL_REPORT_TOPO_RANKS_H

#include "base/set.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct ds_accel__text;

struct ds_accel__topo_rank {
    const json_t *tree; /* borrowed */
    struct ds_accel__set cpus;
    struct ds_accel__set reserved;
    struct ds_accel__set nodes; /* NUMA nodes of its memory */
};

struct ds_accel__topo_core {
    json_int_t l3;
    struct ds_accel__set cpus;
};

struct ds_accel__topo_node {
    const json_t *tree; /* borrowed; NULL: the CPUs that are on no node */
    struct ds_accel__set cpus;
};

struct ds_accel__topo_ranks {
    const json_t *tree; /* borrowed: the report */
    const json_t *plan; /* borrowed */
    struct ds_accel__topo_rank *ranks;
    size_t rank_count;
    struct ds_accel__topo_core *cores;
    size_t core_count;
    struct ds_accel__topo_node *nodes; /* those of the machine, and one with tree NULL */
    size_t node_count;
    struct ds_accel__set allowed; /* CPUs that the process may use */
    struct ds_accel__set used;    /* CPUs of ranks, and their reserved CPUs */
    bool is_bound;                /* a rank is bound to CPUs */
};

/* Read the report topo with a plan, which must outlive the result. ERR_NO_MEMORY. */
int32_t ds_accel__topo_ranks_read(const json_t *tree, struct ds_accel__topo_ranks *ranks);
void ds_accel__topo_ranks_clear(struct ds_accel__topo_ranks *ranks);
/* Does the node have anything to show: is it a real one, or does it have CPUs or devices? */
bool ds_accel__topo_node_is_shown(const struct ds_accel__topo_ranks *ranks,
                                  const struct ds_accel__topo_node *node);
/* Is the device on the node? A node with tree NULL has the devices whose node is unknown. */
bool ds_accel__topo_node_has(const struct ds_accel__topo_node *node, const json_t *device);
/* Does the rank have CPUs, or reserved CPUs, on the node? */
bool ds_accel__topo_rank_is_on(const struct ds_accel__topo_rank *rank,
                               const struct ds_accel__topo_node *node);
/* Add what both forms begin with, as in "2 ranks of cuda on host localhost". */
void ds_accel__topo_ranks_title(const struct ds_accel__topo_ranks *ranks,
                                struct ds_accel__text *out);
/* Add the rank's device, as in "cuda:0", or "slot 5" if this machine does not have it. */
void ds_accel__topo_rank_device(const struct ds_accel__topo_rank *rank, struct ds_accel__text *out);
/* Add the policy and the nodes of the rank's memory, as in "bind 0"; "-" if it has no policy. */
void ds_accel__topo_rank_memory(const struct ds_accel__topo_rank *rank, struct ds_accel__text *out);
/* Add the ranks that use a device, as in "rank 0"; "no rank" if there are none. */
void ds_accel__topo_device_ranks(const struct ds_accel__topo_ranks *ranks, const json_t *device,
                                 struct ds_accel__text *out);

/* Write the ranks of the report topo with a plan as text, and as an SVG picture. On failure, out is
 * marked as failed. */
void ds_accel__topo_ranks_write(const json_t *tree, struct ds_accel__text *out);
void ds_accel__topo_ranks_svg(const json_t *tree, struct ds_accel__text *out);

#endif
