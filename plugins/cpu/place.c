/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Placement of a device's memory and workers on the device's NUMA node.
 *
 * The kernel allocates the pages of a range on the range's preferred node when a thread first
 * accesses them. The pages are not bound to the node, so that a full node makes memory slower but
 * does not fail the program. Workers are bound to those CPUs of the node that the process may use.
 * If the process may use none of them, as with a recorded machine, the workers run on any CPU of
 * the process.
 */
#include "cpu.h"

#include <numaif.h>
#include <sched.h>

#define MAX_NODES 1024u
#define MAX_CPUS 8192u

int cpu_place_matters(const struct cpu_machine *machine)
{
    return machine->node_count > 1 && machine->host->machine_root[0] == '\0';
}

/* A failed mbind(), which containers often forbid, is logged once and not reported, because memory
   on another node works too. */
void cpu_place_pages(const struct cpu_device *device, void *pages, uint64_t size_bytes)
{
    const unsigned bits = 8 * sizeof(unsigned long);
    unsigned long nodes[MAX_NODES / (8 * sizeof(unsigned long))] = {0};
    struct cpu_runtime *cpu = device->cpu;

    if (!cpu_place_matters(&cpu->machine) || device->node->id >= MAX_NODES) {
        return;
    }
    nodes[device->node->id / bits] = 1ul << (device->node->id % bits);
    /* The kernel reads one bit less than the number of bits passed. */
    if (mbind(pages, size_bytes, MPOL_PREFERRED, nodes, MAX_NODES + 1, 0) != 0 &&
        atomic_exchange(&cpu->bind_warned, 1) == 0) {
        vendor_log(cpu->host, DS_ACCEL_LOG_WARN,
                   "mbind() to NUMA node %u: %m; device memory may lie on any node",
                   device->node->id);
    }
}

/* Remove all CPUs from a set that are not in a list like "0-3,8"; return the number left. */
static int narrow(cpu_set_t *set, size_t set_size, const char *list)
{
    cpu_set_t *listed = CPU_ALLOC(MAX_CPUS);
    char *next = (char *)list;
    int count;

    if (listed == NULL) {
        return 0;
    }
    CPU_ZERO_S(set_size, listed);
    while (isdigit((unsigned char)*next)) {
        unsigned long first = strtoul(next, &next, 10);
        unsigned long last = *next == '-' ? strtoul(next + 1, &next, 10) : first;

        for (unsigned long cpu = first; cpu <= last && cpu < MAX_CPUS; cpu++) {
            CPU_SET_S(cpu, set_size, listed);
        }
        next += *next == ',';
    }
    CPU_AND_S(set_size, set, set, listed);
    count = CPU_COUNT_S(set_size, set);
    CPU_FREE(listed);
    return count;
}

void cpu_place_thread(const struct cpu_device *device, pthread_attr_t *attributes)
{
    const size_t set_size = CPU_ALLOC_SIZE(MAX_CPUS);
    cpu_set_t *set;

    /* A list that ends with "..." was truncated, so that some CPUs of the node are unknown. */
    if (device->node == NULL || strstr(device->node->cpus, "...") != NULL) {
        return;
    }
    set = CPU_ALLOC(MAX_CPUS);
    if (set == NULL) {
        return;
    }
    CPU_ZERO_S(set_size, set);
    if (sched_getaffinity(0, set_size, set) == 0 && narrow(set, set_size, device->node->cpus) > 0) {
        pthread_attr_setaffinity_np(attributes, set_size, set);
    }
    CPU_FREE(set);
}
