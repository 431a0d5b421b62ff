/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A plan of ds-accel run, as the report topo reads it: topo_plan.c. */
#ifndef DS_ACCEL_REPORT_TOPO_PLAN_H
#define DS_ACCEL_REPORT_TOPO_PLAN_H

#include "ds_accel.h"

#include <jansson.h>
#include <stddef.h>

struct ds_accel__cpus;
struct ds_accel__topology;

/*
 * A plan may have many hosts, and only the ranks of the host where it was made are bound to CPUs.
 * So this machine is the host whose ranks have "cpus", or the only host.
 */
struct ds_accel__topo_plan {
    const char *source; /* borrowed: the name of the plan in errors */
    json_t *root;
    const json_t *hosts; /* members of root */
    const json_t *ranks;
    json_t *positions; /* positions of the hosts, by name */
    size_t host;       /* position of this machine among the hosts */
};

/* Read a plan's text. ERR_INVALID, with the source and the expected value; ERR_NO_MEMORY. */
int32_t ds_accel__topo_plan_read(const char *source, const char *text, size_t size_bytes,
                                 struct ds_accel__topo_plan *plan);
void ds_accel__topo_plan_clear(struct ds_accel__topo_plan *plan);
/* The position of a rank's host; the number of hosts if it is none of them. */
size_t ds_accel__topo_plan_host(const struct ds_accel__topo_plan *plan, const json_t *rank);
/* Check that the machine has the CPUs and NUMA nodes of its ranks. ERR_INVALID; ERR_NO_MEMORY. */
int32_t ds_accel__topo_plan_check(const struct ds_accel__topo_plan *plan,
                                  const struct ds_accel__cpus *cpus,
                                  const struct ds_accel__topology *topology);

#endif
