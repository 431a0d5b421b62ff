/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* NUMA nodes and memory limits of the machine: topology.c, cgroup.c. */
#ifndef DS_ACCEL_MACHINE_TOPOLOGY_H
#define DS_ACCEL_MACHINE_TOPOLOGY_H

#include "ds_accel.h"

#include <stddef.h>

struct ds_accel__machine;

struct ds_accel__numa_node {
    uint32_t id;
    uint32_t cpu_count;
    char *cpus; /* list in the kernel's format, such as "0-3,8" */
    uint64_t total_memory_bytes;
    uint64_t available_memory_bytes;
};

struct ds_accel__topology {
    struct ds_accel__numa_node *nodes; /* sorted by id */
    uint32_t node_count;
};

/*
 * The memory that control groups leave to this process. Without a limit, limit_bytes is 0 and
 * left_bytes is UINT64_MAX.
 */
struct ds_accel__cgroup_limit {
    uint64_t limit_bytes; /* smallest limit of all groups */
    uint64_t left_bytes;  /* smallest remainder of all groups, even of those with larger limits */
    char source[512];     /* path of the file that sets limit_bytes */
};

/*
 * The control groups of this process and where they are mounted: the texts of /proc/self/cgroup and
 * /proc/self/mountinfo, owned; NULL if the file cannot be read.
 */
struct ds_accel__cgroups {
    char *paths;
    char *mounts;
};

int32_t ds_accel__topology_read(const struct ds_accel__machine *machine,
                                struct ds_accel__topology *topology);
void ds_accel__topology_clear(struct ds_accel__topology *topology);
/* Return a value of /proc/meminfo or of a node's meminfo in bytes; 0 if the key is absent. */
uint64_t ds_accel__meminfo_value(const char *meminfo, const char *key);
/*
 * Write to source the path of the control group's file ("cpuset.cpus" or "cpuset.mems") that
 * restricts this process to count numbers; "" if there is no such file.
 */
int32_t ds_accel__cgroup_cpuset(const struct ds_accel__machine *machine, const char *file,
                                uint32_t count, char *source, size_t source_size);
/* Read the control groups of this process. ERR_NO_MEMORY; *cgroups_out is then empty. */
int32_t ds_accel__cgroups_read(const struct ds_accel__machine *machine,
                               struct ds_accel__cgroups *cgroups_out);
void ds_accel__cgroups_clear(struct ds_accel__cgroups *cgroups);
/*
 * Write the directory of this process's control group, for a controller of cgroup v1, or of cgroup
 * v2 if controller is NULL; "" if there is none or it does not fit. ERR_NO_MEMORY.
 */
int32_t ds_accel__cgroups_directory(const struct ds_accel__machine *machine,
                                    const struct ds_accel__cgroups *cgroups, const char *controller,
                                    char *path, size_t path_size);
/*
 * Read the memory limit of this process. A limit of machine_bytes or more is treated as no limit.
 * ERR_NO_MEMORY.
 */
int32_t ds_accel__cgroups_limit(const struct ds_accel__machine *machine,
                                const struct ds_accel__cgroups *cgroups, uint64_t machine_bytes,
                                struct ds_accel__cgroup_limit *limit_out);
/* The same, for a caller that needs nothing else of the control groups. */
int32_t ds_accel__cgroup_limit(const struct ds_accel__machine *machine, uint64_t machine_bytes,
                               struct ds_accel__cgroup_limit *limit_out);
int32_t ds_accel__host_memory(const struct ds_accel__machine *machine,
                              struct ds_accel_host_memory *memory_out);

#endif
