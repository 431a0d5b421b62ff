/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The machine's NUMA nodes, read from /sys below a root, so that a recording yields the same
 * results as the machine itself. libnuma is not used, because it reads only the machine on which it
 * runs and takes a third of a millisecond as soon as it is loaded.
 */
#include "machine/topology.h"
#include "base/text.h"
#include "machine/machine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t ds_accel__meminfo_value(const char *meminfo, const char *key)
{
    size_t length = strlen(key);

    for (const char *at = meminfo; (at = strstr(at, key)) != NULL; at += length) {
        bool starts = at == meminfo || at[-1] == '\n' || at[-1] == ' ';

        if (starts && at[length] == ':') {
            return strtoull(at + length + 1, NULL, 10) * 1024;
        }
    }
    return 0;
}

static int32_t add_node(struct ds_accel__topology *topology, uint32_t id, const char *cpus,
                        const char *meminfo)
{
    struct ds_accel__numa_node *nodes;
    struct ds_accel__numa_node node = {.id = id};
    uint64_t available;

    nodes = realloc(topology->nodes, (topology->node_count + 1) * sizeof(*nodes));
    if (nodes == NULL) {
        return ds_accel__no_memory();
    }
    topology->nodes = nodes;
    node.cpus = strndup(cpus, strcspn(cpus, "\n"));
    if (node.cpus == NULL) {
        return ds_accel__no_memory();
    }
    node.cpu_count = ds_accel__list_count(node.cpus);
    node.total_memory_bytes = ds_accel__meminfo_value(meminfo, "MemTotal");
    /*
     * The kernel reports MemAvailable only for the whole machine. Compute the kernel's estimate for
     * the node, without its watermarks.
     */
    available = ds_accel__meminfo_value(meminfo, "MemAvailable");
    if (available == 0) {
        available = ds_accel__meminfo_value(meminfo, "MemFree") +
                    ds_accel__meminfo_value(meminfo, "Active(file)") +
                    ds_accel__meminfo_value(meminfo, "Inactive(file)") +
                    ds_accel__meminfo_value(meminfo, "SReclaimable");
    }
    node.available_memory_bytes = available < node.total_memory_bytes ? available
                                                                      : node.total_memory_bytes;
    nodes[topology->node_count++] = node;
    return DS_ACCEL_OK;
}

struct node_walk {
    const struct ds_accel__machine *machine;
    struct ds_accel__topology *topology;
    int32_t status;
};

static bool visit_nodes(void *user_data, uint32_t first, uint32_t last)
{
    struct node_walk *walk = user_data;

    assert(first <= last && last < DS_ACCEL__LIST_LIMIT);
    for (uint32_t id = first; id <= last && walk->status >= 0; id++) {
        char path[64];
        char *cpus = NULL;
        char *meminfo = NULL;

        snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", id);
        walk->status = ds_accel__machine_read(walk->machine, path, &cpus);
        snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/meminfo", id);
        if (walk->status >= 0) {
            walk->status = ds_accel__machine_read(walk->machine, path, &meminfo);
        }
        if (walk->status >= 0 && cpus != NULL) {
            walk->status = add_node(walk->topology, id, cpus, meminfo != NULL ? meminfo : "");
        }
        free(cpus);
        free(meminfo);
    }
    return walk->status >= 0;
}

/* Add the whole machine as node 0, for a kernel without NUMA. */
static int32_t add_machine(const struct ds_accel__machine *machine,
                           struct ds_accel__topology *topology)
{
    char *cpus = NULL;
    char *meminfo = NULL;
    int32_t status = ds_accel__machine_read(machine, "/sys/devices/system/cpu/online", &cpus);

    if (status >= 0) {
        status = ds_accel__machine_read(machine, "/proc/meminfo", &meminfo);
    }
    if (status >= 0) {
        status = add_node(topology, 0, cpus != NULL ? cpus : "0", meminfo != NULL ? meminfo : "");
    }
    free(cpus);
    free(meminfo);
    return status;
}

int32_t ds_accel__topology_read(const struct ds_accel__machine *machine,
                                struct ds_accel__topology *topology)
{
    struct node_walk walk = {.machine = machine, .topology = topology, .status = DS_ACCEL_OK};
    char *online = NULL;

    memset(topology, 0, sizeof(*topology));
    walk.status = ds_accel__machine_read(machine, "/sys/devices/system/node/online", &online);
    if (walk.status >= 0 && online != NULL) {
        ds_accel__list_parse(online, visit_nodes, &walk);
    }
    free(online);
    if (walk.status >= 0 && topology->node_count == 0) {
        walk.status = add_machine(machine, topology);
    }
    if (walk.status < 0) {
        ds_accel__topology_clear(topology);
    }
    assert(walk.status < 0 || topology->node_count > 0); /* a machine has at least one node */
    return walk.status;
}

void ds_accel__topology_clear(struct ds_accel__topology *topology)
{
    for (uint32_t i = 0; i < topology->node_count; i++) {
        free(topology->nodes[i].cpus);
    }
    free(topology->nodes);
    memset(topology, 0, sizeof(*topology));
}

int32_t ds_accel__host_memory(const struct ds_accel__machine *machine,
                              struct ds_accel_host_memory *memory_out)
{
    struct ds_accel__cgroup_limit limit;
    struct ds_accel_host_memory memory = {0};
    char *meminfo = NULL;
    int32_t status = ds_accel__machine_read(machine, "/proc/meminfo", &meminfo);

    if (status < 0) {
        return status;
    }
    if (meminfo == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_IO, "%s/proc/meminfo cannot be read", machine->root);
    }
    memory.total_bytes = ds_accel__meminfo_value(meminfo, "MemTotal");
    memory.available_bytes = ds_accel__meminfo_value(meminfo, "MemAvailable");
    free(meminfo);
    status = ds_accel__cgroup_limit(machine, memory.total_bytes, &limit);
    if (status < 0) {
        return status;
    }
    if (limit.left_bytes < memory.available_bytes) {
        memory.available_bytes = limit.left_bytes;
    }
    if (limit.limit_bytes != 0) {
        memory.total_bytes = limit.limit_bytes;
        memory.limit_bytes = limit.limit_bytes;
        memcpy(memory.limit_source, limit.source, sizeof(memory.limit_source));
    }
    ds_accel_write(memory_out, &memory, sizeof(memory));
    return DS_ACCEL_OK;
}
