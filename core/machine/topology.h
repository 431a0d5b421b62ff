/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The machine: topology.c, cgroup.c. */
#ifndef DS_ACCEL_MACHINE_TOPOLOGY_H
#define DS_ACCEL_MACHINE_TOPOLOGY_H

#include "ds_accel.h"

#include <stddef.h>

struct ds_accel__machine;

struct ds_accel__numa_node {
    uint32_t id;
    uint32_t cpu_count;
    char *cpus; /* the kernel's list */
    uint64_t total_memory_bytes;
    uint64_t available_memory_bytes;
};

struct ds_accel__topology {
    struct ds_accel__numa_node *nodes; /* by id */
    uint32_t node_count;
};

/* What control groups leave this process; limit_bytes is the smallest limit, 0 if there is none. */
struct ds_accel__cgroup_limit {
    uint64_t limit_bytes;
    uint64_t left_bytes; /* smallest over all groups, also those with larger limits */
    char source[512];    /* the file that sets it */
};

int32_t ds_accel__topology_read(const struct ds_accel__machine *machine,
                                struct ds_accel__topology *topology);
void ds_accel__topology_clear(struct ds_accel__topology *topology);
/* "/proc/meminfo" and a node's meminfo alike: a value in bytes; 0 if the key is not there. */
uint64_t ds_accel__meminfo_value(const char *meminfo, const char *key);
/*
 * The group's file, "cpuset.cpus" or "cpuset.mems", that leaves this process count numbers; "" if
 * none does.
 */
int32_t ds_accel__cgroup_cpuset(const struct ds_accel__machine *machine, const char *file,
                                uint32_t count, char *source, size_t source_size);
/* Limits of machine_bytes and more are none. */
int32_t ds_accel__cgroup_limit(const struct ds_accel__machine *machine, uint64_t machine_bytes,
                               struct ds_accel__cgroup_limit *limit_out);
int32_t ds_accel__host_memory(const struct ds_accel__machine *machine,
                              struct ds_accel_host_memory *memory_out);

#endif
