/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * NUMA nodes: the number of devices and the memory of each, as info reports them for cpu. The tests
 * write most machines; two machines of tests/machines are complete.
 */
#include "machine.h"

/* ---- helpers: expected devices --------------------------------------------------------------- */

static void expect_count(const char *report, unsigned count)
{
    char wanted[48];

    snprintf(wanted, sizeof(wanted), "\"device_count\":%u,", count);
    EXPECT_HAS(report, wanted);
}

TestSuite(core_topology, .init = forget_launcher);

/* ---- nodes ---------------------------------------------------------------------------------- */

Test(core_topology, one_node_is_one_device_with_the_machines_memory)
{
    char *report;

    put_machine(8 * GIB, 5 * GIB);
    put_nodes_online("0");
    put_node(0, "0-3", 7 * GIB);
    report = info();
    expect_count(report, 1);
    expect_device(report, 0, 8 * GIB, 5 * GIB, "0", 4);
    EXPECT_HAS(report, "\"memory_limit\":null");
    ds_accel_free_text(report);
}

Test(core_topology, every_socket_is_a_device_with_its_own_memory)
{
    char *report;

    put_machine(48 * GIB, 40 * GIB);
    put_nodes_online("0-1");
    put_node(0, "0-3,8-11", 32 * GIB);
    put_node(1, "4-7,12-15", 16 * GIB);
    report = info();
    expect_count(report, 2);
    expect_device(report, 0, 32 * GIB, 32 * GIB, "0", 8);
    expect_device(report, 1, 16 * GIB, 16 * GIB, "1", 8);
    ds_accel_free_text(report);
}

Test(core_topology, nodes_without_cpus_are_no_devices)
{
    char *report;

    put_machine(48 * GIB, 40 * GIB);
    put_nodes_online("0-3");
    put_node(0, "0-3", 16 * GIB);
    put_node(1, "", 4 * GIB);
    put_node(2, "4-7", 16 * GIB);
    put_node(3, "", 4 * GIB);
    report = info();
    expect_count(report, 2);
    expect_device(report, 0, 16 * GIB, 16 * GIB, "0", 4);
    expect_device(report, 1, 16 * GIB, 16 * GIB, "2", 4);
    ds_accel_free_text(report);
}

Test(core_topology, fake_nodes_with_the_same_cpus_are_one)
{
    char *report;

    put_machine(16 * GIB, 16 * GIB);
    put_nodes_online("0-3");
    put_node(0, "0-3", 4 * GIB);
    put_node(1, "0-3", 4 * GIB);
    put_node(2, "4-7", 4 * GIB);
    put_node(3, "4-7", 4 * GIB);
    report = info();
    expect_count(report, 2);
    expect_device(report, 0, 8 * GIB, 8 * GIB, "0", 4);
    expect_device(report, 1, 8 * GIB, 8 * GIB, "2", 4);
    ds_accel_free_text(report);
}

Test(core_topology, fake_nodes_dealt_over_the_sockets_in_turn_are_one_each)
{
    char *report;

    put_machine(16 * GIB, 16 * GIB);
    put_nodes_online("0-3");
    put_node(0, "0-3", 4 * GIB);
    put_node(1, "4-7", 4 * GIB);
    put_node(2, "0-3", 4 * GIB);
    put_node(3, "4-7", 4 * GIB);
    report = info();
    expect_count(report, 2);
    expect_device(report, 0, 8 * GIB, 8 * GIB, "0", 4);
    expect_device(report, 1, 8 * GIB, 8 * GIB, "1", 4);
    ds_accel_free_text(report);
}

Test(core_topology, node_numbers_may_have_gaps)
{
    char *report;

    put_machine(16 * GIB, 16 * GIB);
    put_nodes_online("0,2,250-251");
    put_node(0, "0-1", 4 * GIB);
    put_node(2, "2-3", 4 * GIB);
    put_node(250, "4", 4 * GIB);
    put_node(251, "5-7", 4 * GIB);
    put_node(1, "8-9", 4 * GIB); /* offline */
    report = info();
    expect_count(report, 4);
    expect_device(report, 0, 4 * GIB, 4 * GIB, "0", 2);
    expect_device(report, 1, 4 * GIB, 4 * GIB, "2", 2);
    expect_device(report, 2, 4 * GIB, 4 * GIB, "250", 1);
    expect_device(report, 3, 4 * GIB, 4 * GIB, "251", 3);
    ds_accel_free_text(report);
}

Test(core_topology, without_numa_the_machine_is_node_0)
{
    char *report;

    put_machine(8 * GIB, 5 * GIB);
    put("sys/devices/system/cpu/online", "0-5,8\n");
    report = info();
    expect_count(report, 1);
    expect_device(report, 0, 8 * GIB, 5 * GIB, "0", 7);
    ds_accel_free_text(report);
}

Test(core_topology, a_list_of_nodes_that_cannot_be_read_counts_as_no_numa)
{
    static const char *const lists[] = {"", "x", "1-0", "-1", "0x1", "99999999999999999999999"};
    char *report;

    put_machine(8 * GIB, 5 * GIB);
    put("sys/devices/system/cpu/online", "0-5\n");
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        put_nodes_online(lists[i]);
        report = info();
        expect_count(report, 1);
        expect_device(report, 0, 8 * GIB, 5 * GIB, "0", 6);
        ds_accel_free_text(report);
    }
}

Test(core_topology, a_node_whose_cpus_cannot_be_read_is_no_device)
{
    static const char *const lists[] = {"x",    "0-",      "3-1,5", "0--2",  "0,,2", "0 1",
                                        "0-3x", "0-65536", "-1-2",  "4-7,x", ",",    "0,-"};
    char *report;

    put_machine(16 * GIB, 16 * GIB);
    put_nodes_online("0-2");
    put_node(0, "0-3", 4 * GIB);
    put_node(2, "8", 4 * GIB);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        put_node(1, lists[i], 4 * GIB);
        report = info();
        expect_count(report, 2);
        expect_device(report, 0, 4 * GIB, 4 * GIB, "0", 4);
        expect_device(report, 1, 4 * GIB, 4 * GIB, "2", 1);
        ds_accel_free_text(report);
    }
}

Test(core_topology, a_machine_of_which_nothing_can_be_read_has_one_device)
{
    char *report;

    put_machine(8 * GIB, 5 * GIB);
    put_nodes_online("0");
    put_node(0, "garbage", 8 * GIB);
    put("sys/devices/system/cpu/online", "0-5\n");
    report = info();
    expect_count(report, 1);
    expect_device(report, 0, 8 * GIB, 5 * GIB, "null", 6);
    ds_accel_free_text(report);
}

Test(core_topology, a_long_list_of_cpus_is_counted_in_full)
{
    char cpus[2048] = "0";
    char *report;

    for (unsigned cpu = 2; cpu < 600; cpu += 2) {
        snprintf(cpus + strlen(cpus), sizeof(cpus) - strlen(cpus), ",%u", cpu);
    }
    put_machine(8 * GIB, 5 * GIB);
    put_nodes_online("0");
    put("sys/devices/system/node/node0/cpulist", cpus);
    report = info();
    expect_count(report, 1);
    expect_device(report, 0, 8 * GIB, 5 * GIB, "0", 300);
    ds_accel_free_text(report);
}

/* ---- a node's memory ------------------------------------------------------------------------ */

Test(core_topology, what_the_kernel_can_take_back_is_available)
{
    char *report;

    put_machine(16 * GIB, 16 * GIB);
    put_nodes_online("0-1");
    put_node(0, "0-3", 8 * GIB);
    put("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:    8388608 kB\n"
                                                 "Node 0 MemFree:     1048576 kB\n"
                                                 "Node 0 MemUsed:     7340032 kB\n"
                                                 "Node 0 Active:      4000000 kB\n"
                                                 "Node 0 Active(anon):   1024 kB\n"
                                                 "Node 0 Active(file): 524288 kB\n"
                                                 "Node 0 Inactive(file): 262144 kB\n"
                                                 "Node 0 SReclaimable: 131072 kB\n");
    put_node(1, "4-7", 8 * GIB);
    report = info();
    expect_device(report, 0, 8 * GIB, 1024 * MIB + 512 * MIB + 256 * MIB + 128 * MIB, "0", 4);
    ds_accel_free_text(report);
}

Test(core_topology, a_node_has_no_more_available_than_the_machine_and_itself)
{
    char *report;

    put_machine(16 * GIB, 3 * GIB);
    put_nodes_online("0-1");
    put_node(0, "0-3", 8 * GIB);
    put_node(1, "4-7", 2 * GIB);
    put("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:    2097152 kB\n"
                                                 "Node 1 MemFree:     2097152 kB\n"
                                                 "Node 1 Active(file): 524288 kB\n");
    report = info();
    expect_device(report, 0, 8 * GIB, 3 * GIB, "0", 4);
    expect_device(report, 1, 2 * GIB, 2 * GIB, "1", 4);
    ds_accel_free_text(report);
}

/* ---- whole machines ------------------------------------------------------------------------- */

Test(core_topology, two_sockets_with_hbm)
{
    char *report = info_of(TEST_SOURCE "/tests/machines/two-socket-hbm");

    expect_count(report, 2);
    EXPECT_HAS(report, "{\"index\":0,\"name\":\"Intel(R) Xeon(R) CPU Max 9480\","
                       "\"total_memory_bytes\":540021972992,");
    EXPECT_HAS(report, "\"numa_node\":0,\"compute_units\":112,");
    EXPECT_HAS(report, "{\"index\":1,\"name\":\"Intel(R) Xeon(R) CPU Max 9480\","
                       "\"total_memory_bytes\":541109411840,");
    EXPECT_HAS(report, "\"numa_node\":1,\"compute_units\":112,");
    EXPECT_HAS(report, "\"supported_dtypes\":[\"float32\",\"float16\",\"bfloat16\"]");
    EXPECT_HAS(report, "\"memory_limit\":null");
    ds_accel_free_text(report);
}

Test(core_topology, container_with_a_limit)
{
    char *report = info_of(TEST_SOURCE "/tests/machines/container-v2");

    expect_count(report, 1);
    EXPECT_HAS(report, "{\"index\":0,\"name\":\"AMD EPYC 7763 64-Core Processor\","
                       "\"total_memory_bytes\":8589934592,\"available_memory_bytes\":8375582720,"
                       "\"process_memory_bytes\":3653632,\"numa_node\":0,\"compute_units\":128,");
    EXPECT_HAS(report, "\"supported_dtypes\":[\"float32\",\"bfloat16\"]");
    EXPECT_HAS(report, "\"memory_limit\":{\"bytes\":8589934592,"
                       "\"source\":\"/sys/fs/cgroup/memory.max\"}");
    ds_accel_free_text(report);
}
