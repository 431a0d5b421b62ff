/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The machine's CPUs, and those that this process may use: cpus.c. */
#ifndef DS_ACCEL_MACHINE_CPUS_H
#define DS_ACCEL_MACHINE_CPUS_H

#include "base/set.h"
#include "ds_accel.h"

struct ds_accel__machine;
struct ds_accel__topology;

/* An online CPU, which is one hardware thread of a core. The number of a core or of a cache is that
 * of its first CPU. */
struct ds_accel__cpu {
    uint32_t id;
    uint32_t core;    /* the CPUs that share a core */
    uint32_t l3;      /* the CPUs that share a level-3 cache; core if the machine shows none */
    uint32_t package; /* the kernel's number of the socket */
};

struct ds_accel__cpus {
    struct ds_accel__cpu *items; /* the online CPUs, sorted by id */
    uint32_t count;
    struct ds_accel__set allowed;       /* online CPUs that this process may use */
    struct ds_accel__set allowed_nodes; /* NUMA nodes whose memory this process may use */
    bool is_restricted;                 /* allowed lacks online CPUs */
};

/*
 * Read the CPUs of a machine or of a recording. What the process may use is in its status file; if
 * there is none, it may use every online CPU and every node. ERR_NO_MEMORY.
 */
int32_t ds_accel__cpus_read(const struct ds_accel__machine *machine, struct ds_accel__cpus *cpus);
void ds_accel__cpus_clear(struct ds_accel__cpus *cpus);
/* Borrow a CPU by its number; NULL: it is not online. */
const struct ds_accel__cpu *ds_accel__cpus_find(const struct ds_accel__cpus *cpus, uint32_t id);

#endif
