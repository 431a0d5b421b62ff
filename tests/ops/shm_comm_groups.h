/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Ranks of shm_comm on a simulated machine whose CPUs share caches: DS_ACCEL_ROOT is a directory
 * with the files of sysfs, and each rank may run on one of its CPUs. Results have the same bits as
 * without groups.
 */
#ifndef TESTS_OPS_SHM_COMM_GROUPS_H
#define TESTS_OPS_SHM_COMM_GROUPS_H

#include "ops/shm_comm_failures.h"
#include "ops/shm_comm_machine.h"

/* The lists of CPUs of each cache and each node, separated by blanks. */
static void describe_machine(const char *caches, const char *nodes)
{
    char online[16];
    unsigned node = 0;

    for (const char *list = caches; *list; list += strcspn(list, " "), list += *list == ' ') {
        unsigned first = 0;
        unsigned last = 0;
        char text[64];

        CHECK(sscanf(list, "%u-%u", &first, &last) == 2, "%s", list);
        snprintf(text, sizeof(text), "%.*s\n", (int)strcspn(list, " "), list);
        for (unsigned cpu = first; cpu <= last; cpu++) {
            write_file("1\n", "/sys/devices/system/cpu/cpu%u/cache/index0/level", cpu);
            write_file("3\n", "/sys/devices/system/cpu/cpu%u/cache/index1/level", cpu);
            write_file(text, "/sys/devices/system/cpu/cpu%u/cache/index1/shared_cpu_list", cpu);
        }
    }
    for (const char *list = nodes; *list; list += strcspn(list, " "), list += *list == ' ') {
        char text[64];

        snprintf(text, sizeof(text), "%.*s\n", (int)strcspn(list, " "), list);
        write_file(text, "/sys/devices/system/node/node%u/cpulist", node++);
    }
    if (node > 0) {
        snprintf(online, sizeof(online), "0-%u\n", node - 1);
        write_file(online, "/sys/devices/system/node/online");
    }
}

struct grouping {
    uint32_t size;
    uint32_t groups;    /* that the ranks must form */
    const char *caches; /* rank i runs on CPU i */
    const char *nodes;
    bool is_free; /* rank 0 may run on all CPUs */
};

static const struct grouping groupings[] = {
    {2, 1, "0-1", "0-1", false},
    {2, 1, "0-0 1-1", "0-1", false}, /* groups of one rank would gain nothing */
    {4, 2, "0-1 2-3", "0-3", false},
    {4, 2, "0-0 1-3", "0-3", false},
    {5, 2, "0-2 3-4", "0-4", false},
    {6, 3, "0-0 1-3 4-5", "0-5", false},
    {6, 1, "0-0 1-1 2-2 3-3 4-5", "0-5", false},
    {8, 2, "0-3 4-7", "0-7", false},
    {8, 3, "0-2 3-3 4-7", "0-7", false},
    {8, 4, "0-1 2-3 4-5 6-7", "0-3 4-7", false},
    {4, 2, "", "0-1 2-3", false},
    {7, 2, "", "0-4 5-6", false},
    {4, 1, "", "0-3", false},
    {4, 1, "", "", false},
    {4, 1, "0-1 2-3", "0-1 2-3", true},
};

static const struct grouping *grouping;

static void take_place(uint32_t rank)
{
    memset(&simulated_cpus, 0, sizeof(simulated_cpus));
    for (uint32_t cpu = 0; cpu < grouping->size; cpu++)
        if (cpu == rank || (grouping->is_free && rank == 0))
            CPU_SET(cpu, &simulated_cpus);
    is_simulated = true;
}

static void check_groups(ds_accel_comm_t *comm)
{
    struct ds_accel_shm_comm_info info = {.struct_size = sizeof(info)};

    CHECK(shm->info(comm, &info, NULL) == DS_ACCEL_OK && info.group_count == grouping->groups &&
              info.group < info.group_count,
          "group %u of %u; wanted %u groups: caches \"%s\", nodes \"%s\"", info.group,
          info.group_count, grouping->groups, grouping->caches, grouping->nodes);
}

static void large_calls_in_groups(uint32_t rank, uint32_t size)
{
    ds_accel_comm_t *comm;

    take_place(rank);
    comm = create(rank, size, PATIENCE, 0);
    check_groups(comm);
    run_until_failure(comm, rank, 500000);
}

/* Random collectives would hide where a rank was stopped: large reductions, until one fails. */
static void reductions_until_late(uint32_t rank, uint32_t size)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    float *data = (float *)calloc(500000, sizeof(*data));
    struct ds_accel_comm_call call =
        make_call(DS_ACCEL_DTYPE_FLOAT32, DS_ACCEL_COMM_SUM, data, data, 500000);
    ds_accel_comm_t *comm;
    int32_t status;

    take_place(rank);
    comm = create(rank, size, PATIENCE, 0);
    check_groups(comm);
    call.timeout_ns = SHORT;
    do {
        status = shm->all_reduce(comm, &call, &error);
    } while (status == DS_ACCEL_OK);
    keep_result(rank, status, &error);
    free(data);
    shm->destroy(comm);
}

/* Kill and stop the first rank of a group, which has a part in the sums of each other group. */
static void check_victims(void)
{
    static const struct grouping three = {7, 3, "0-1 2-4 5-6", "0-6", false};
    static const uint32_t victims[] = {0, 2, 5};

    grouping = &three;
    begin_machine();
    describe_machine(three.caches, three.nodes);
    for (size_t i = 0; i < sizeof(victims) / sizeof(victims[0]); i++) {
        pid_t children[MOST_RANKS];

        check_killed(large_calls_in_groups, three.size, victims[i], 20);
        start_ranks(three.size, reductions_until_late, children);
        while (shared->created < three.size && shared->failures == 0)
            nap(1);
        nap(20);
        stop_one(three.size, victims[i], children);
        take_counts();
    }
    end_machine();
}

/* Run a function of ranks on each machine. `bits` is what the ranks have added to shared->bits. */
static void check_groupings(rank_fn *with_groups, rank_fn *without)
{
    for (size_t i = 0; i < sizeof(groupings) / sizeof(groupings[0]); i++) {
        uint64_t bits;

        grouping = &groupings[i];
        shared->bits = 0;
        run_ranks(grouping->size, without);
        bits = atomic_exchange(&shared->bits, 0);
        begin_machine();
        describe_machine(grouping->caches, grouping->nodes);
        run_ranks(grouping->size, with_groups);
        end_machine();
        CHECK(shared->bits == bits && bits != 0, "%u ranks: groups change bits: caches \"%s\"",
              grouping->size, grouping->caches);
    }
    check_victims();
}

#endif
