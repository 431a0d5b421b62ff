/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Groups of ranks of shm_comm: successive ranks, each of which may run only on CPUs that share one
 * cache of level 3; or, if that is not so for all ranks, on CPUs of one NUMA node. Ranks that may
 * run anywhere, as without ds-accel run --bind_cores_to_rank, are one group.
 *
 * Successive, because a reduction takes the elements in the order of the ranks: what a group adds
 * up must be a part of this order. If the ranks of a cache are scattered, groups would be small and
 * many, and all ranks are one group.
 */
#include "common/machine.h"
#include "shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_BITS 64
#define MOST_CPUS (OPS__SHM_CPU_WORDS * WORD_BITS)
#define MOST_CACHES 16 /* descriptions of a CPU's caches in sysfs */
#define MOST_NODES 1024

static bool has_cpu(const uint64_t *cpus, unsigned long cpu)
{
    return cpus[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1;
}

/* Read a list such as "0-3,8-11" from a file; return its first number, or OPS__SHM_NOWHERE. */
static uint32_t read_list(const char *path, uint64_t numbers[OPS__SHM_CPU_WORDS])
{
    char text[4096];
    char *at = text;
    uint32_t least = OPS__SHM_NOWHERE;

    memset(numbers, 0, OPS__SHM_CPU_WORDS * sizeof(*numbers));
    if (!ops__machine_line(path, text, sizeof(text)))
        return OPS__SHM_NOWHERE;
    while (*at >= '0' && *at <= '9') {
        unsigned long first = strtoul(at, &at, 10);
        unsigned long last = *at == '-' ? strtoul(at + 1, &at, 10) : first;

        if (last >= MOST_CPUS || first > last)
            return OPS__SHM_NOWHERE;
        least = first < least ? (uint32_t)first : least;
        for (; first <= last; first++)
            numbers[first / WORD_BITS] |= (uint64_t)1 << (first % WORD_BITS);
        at += *at == ',';
    }
    return least;
}

static bool is_within(const uint64_t *cpus, const uint64_t *others)
{
    for (size_t i = 0; i < OPS__SHM_CPU_WORDS; i++)
        if (cpus[i] & ~others[i])
            return false;
    return true;
}

static uint32_t find_cache(const uint64_t *cpus, unsigned long cpu)
{
    uint64_t sharing[OPS__SHM_CPU_WORDS];
    char path[128];
    char level[16];

    for (unsigned i = 0; i < MOST_CACHES; i++) {
        uint32_t first;

        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%lu/cache/index%u/level", cpu, i);
        if (!ops__machine_line(path, level, sizeof(level)))
            return OPS__SHM_NOWHERE;
        if (strcmp(level, "3") != 0)
            continue;
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%lu/cache/index%u/shared_cpu_list",
                 cpu, i);
        first = read_list(path, sharing);
        return is_within(cpus, sharing) ? first : OPS__SHM_NOWHERE;
    }
    return OPS__SHM_NOWHERE;
}

static uint32_t find_node(const uint64_t *cpus, unsigned long cpu)
{
    uint64_t nodes[OPS__SHM_CPU_WORDS];
    uint64_t here[OPS__SHM_CPU_WORDS];
    char path[64];

    if (read_list("/sys/devices/system/node/online", nodes) == OPS__SHM_NOWHERE)
        return OPS__SHM_NOWHERE;
    for (uint32_t node = 0; node < MOST_NODES; node++) {
        if (!has_cpu(nodes, node))
            continue;
        snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", node);
        read_list(path, here);
        if (has_cpu(here, cpu))
            return is_within(cpus, here) ? node : OPS__SHM_NOWHERE;
    }
    return OPS__SHM_NOWHERE;
}

struct ops__shm_location ops__shm_locate(const uint64_t cpus[OPS__SHM_CPU_WORDS])
{
    for (unsigned long cpu = 0; cpu < MOST_CPUS; cpu++)
        if (has_cpu(cpus, cpu))
            return (struct ops__shm_location){.cache = find_cache(cpus, cpu),
                                              .node = find_node(cpus, cpu)};
    return (struct ops__shm_location){.cache = OPS__SHM_NOWHERE, .node = OPS__SHM_NOWHERE};
}

void ops__shm_set_groups(struct ds_accel_comm *comm, const uint8_t *sizes, uint32_t count)
{
    uint32_t first = 0;

    comm->group_count = count;
    for (uint32_t i = 0; i < count; i++) {
        comm->groups[i] = (struct ops__shm_group){.first = first, .size = sizes[i]};
        if (first <= comm->rank)
            comm->group = i;
        first += sizes[i];
    }
}

void ops__shm_form_groups(struct ds_accel_comm *comm, const struct ops__shm_location *locations)
{
    uint8_t sizes[DS_ACCEL_SHM_COMM_MAX_RANKS] = {1};
    uint8_t all = (uint8_t)comm->size;
    uint32_t count = 1;
    bool has_caches = true;
    bool has_nodes = true;

    for (uint32_t rank = 0; rank < comm->size; rank++) {
        has_caches = has_caches && locations[rank].cache != OPS__SHM_NOWHERE;
        has_nodes = has_nodes && locations[rank].node != OPS__SHM_NOWHERE;
    }
    for (uint32_t rank = 1; rank < comm->size; rank++) {
        const struct ops__shm_location *before = &locations[rank - 1];
        bool is_same = has_caches ? locations[rank].cache == before->cache
                                  : !has_nodes || locations[rank].node == before->node;

        count += is_same ? 0 : 1;
        sizes[count - 1]++;
    }
    if (count > comm->size / 2)
        ops__shm_set_groups(comm, &all, 1);
    else
        ops__shm_set_groups(comm, sizes, count);
}
