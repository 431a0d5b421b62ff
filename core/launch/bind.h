/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Which CPUs and which memory each local rank uses: bind.c. */
#ifndef DS_ACCEL_LAUNCH_BIND_H
#define DS_ACCEL_LAUNCH_BIND_H

#include "base/set.h"
#include "launch/options.h"

struct ds_accel__cpus;
struct ds_accel__text;
struct ds_accel__topology;

enum ds_accel__memory_policy {
    DS_ACCEL__MEMORY_DEFAULT,
    DS_ACCEL__MEMORY_BIND,  /* only from the nodes */
    DS_ACCEL__MEMORY_PREFER /* from the node while it has free memory */
};

struct ds_accel__bind_request {
    enum ds_accel__bind mode;
    const char *core_list;    /* cores to distribute, such as "0,2-5"; NULL: all */
    bool uses_smt;            /* all hardware threads of a core, not only the first */
    uint32_t reserve_cores;   /* cores of each rank that are kept free; 0: none */
    uint32_t reserve_percent; /* the same as a part of the rank's cores; 0: none */
    uint32_t rank_count;
    const int32_t *device_nodes; /* [rank_count]; -1: unknown; NULL: all are unknown */
};

/* Where one rank runs. {0}: anywhere. Release it with ds_accel__placement_clear(). */
struct ds_accel__placement {
    struct ds_accel__set cpus;     /* empty: not bound */
    struct ds_accel__set reserved; /* CPUs beside cpus that no rank uses */
    struct ds_accel__set nodes;    /* NUMA nodes of the memory */
    enum ds_accel__memory_policy memory;
    uint32_t thread_count; /* OMP_NUM_THREADS; 0: not bound */
};

/* Parse a list of ranges as DeepSpeed does: numbers and ranges "a-b", ascending, not overlapping.
 * ERR_INVALID; ERR_NO_MEMORY. */
int32_t ds_accel__ranges_parse(const char *text, struct ds_accel__set *set);
/*
 * Place the local ranks on the CPUs that this process may use. Adds to notes a line for everything
 * that could not be done as requested. ERR_INVALID: the list is wrong, or there are fewer cores
 * than ranks; ERR_NO_MEMORY. On failure no placement is written.
 */
int32_t ds_accel__bind(const struct ds_accel__cpus *cpus, const struct ds_accel__topology *topology,
                       const struct ds_accel__bind_request *request,
                       struct ds_accel__placement *placements, struct ds_accel__text *notes);
void ds_accel__placement_clear(struct ds_accel__placement *placement);

#endif
