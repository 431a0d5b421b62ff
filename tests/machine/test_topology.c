/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Recorded machines: NUMA nodes, memory and its limits, seen through what info says of cpu. Most
 * machines are written here, as test_dir()/machine; the two of tests/machines are whole ones.
 */
#include "fixture.h"

#include <inttypes.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define RESIDENT_BYTES (4 * MIB)

static char *info_of(const char *machine_root)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;
    char *report;

    options.machine_root = machine_root;
    cr_assert_eq(ds_accel_create(&options, &context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    report = test_report(context, DS_ACCEL_REPORT_INFO, "cpu", DS_ACCEL_FORMAT_JSON);
    ds_accel_destroy(context);
    return test_compact(report);
}

static char *info(void)
{
    return info_of(test_path("machine"));
}

/* ---- writing a machine ---------------------------------------------------------------------- */

static void put(const char *path, const char *text)
{
    char full[600];

    snprintf(full, sizeof(full), "machine/%s", path);
    test_write(full, text);
}

static void put_number(const char *path, uint64_t number)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRIu64 "\n", number);
    put(path, text);
}

/* What every machine has: memory, and this process in it. */
static void put_machine(uint64_t total_bytes, uint64_t available_bytes)
{
    char text[256];

    snprintf(text, sizeof(text),
             "MemTotal:       %8" PRIu64 " kB\nMemFree:         1024 kB\n"
             "MemAvailable:   %8" PRIu64 " kB\n",
             total_bytes / KIB, available_bytes / KIB);
    put("proc/meminfo", text);
    put("proc/self/status", "Name:\tx\nVmHWM:\t    8192 kB\nVmRSS:\t    4096 kB\n");
}

/* A node whose memory is all free. */
static void put_node(unsigned id, const char *cpus, uint64_t total_bytes)
{
    char path[96];
    char text[256];

    snprintf(path, sizeof(path), "sys/devices/system/node/node%u/cpulist", id);
    snprintf(text, sizeof(text), "%s\n", cpus);
    put(path, text);
    snprintf(path, sizeof(path), "sys/devices/system/node/node%u/meminfo", id);
    snprintf(text, sizeof(text),
             "Node %u MemTotal:       %8" PRIu64 " kB\nNode %u MemFree:        %8" PRIu64 " kB\n",
             id, total_bytes / KIB, id, total_bytes / KIB);
    put(path, text);
}

static void put_nodes_online(const char *list)
{
    char text[64];

    snprintf(text, sizeof(text), "%s\n", list);
    put("sys/devices/system/node/online", text);
}

/* ---- expecting ------------------------------------------------------------------------------ */

static void expect_count(const char *report, unsigned count)
{
    char wanted[48];

    snprintf(wanted, sizeof(wanted), "\"device_count\":%u,", count);
    EXPECT_HAS(report, wanted);
}

static void expect_device(const char *report, unsigned index, uint64_t total_bytes,
                          uint64_t available_bytes, const char *node, unsigned cpu_count)
{
    char wanted[320];

    snprintf(wanted, sizeof(wanted),
             "{\"index\":%u,\"name\":\"cpu\",\"total_memory_bytes\":%" PRIu64
             ",\"available_memory_bytes\":%" PRIu64 ",\"process_memory_bytes\":%" PRIu64
             ",\"numa_node\":%s,\"compute_units\":%u,",
             index, total_bytes, available_bytes, RESIDENT_BYTES, node, cpu_count);
    EXPECT_HAS(report, wanted);
}

static void forget_launcher(void)
{
    unsetenv("LOCAL_SIZE");
    unsetenv("LOCAL_RANK");
}

TestSuite(core_topology, .init = forget_launcher);
TestSuite(core_cgroup, .init = forget_launcher);

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

/* ---- limits of control groups --------------------------------------------------------------- */

#define MOUNT_V2 "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_V1 \
    "31 30 0:27 / /sys/fs/cgroup/cpu rw shared:5 - cgroup cgroup rw,cpu,cpuacct\n" \
    "32 30 0:28 / /sys/fs/cgroup/other rw - cgroup cgroup rw,name=memory\n" \
    "33 30 0:29 / /sys/fs/cgroup/memory rw,nosuid shared:6 - cgroup cgroup rw,memory\n"
#define NO_LIMIT_V1 UINT64_C(9223372036854771712)

/* One node of 64 GiB, 32 of them available, and this process in a control group. */
static void put_group(const char *group, const char *mounts)
{
    put_machine(64 * GIB, 32 * GIB);
    put_nodes_online("0");
    put_node(0, "0-3", 64 * GIB);
    put("proc/self/cgroup", group);
    put("proc/self/mountinfo", mounts);
}

static void expect_limit(uint64_t limit_bytes, uint64_t available_bytes, const char *source)
{
    char *report = info();
    char wanted[320];

    snprintf(wanted, sizeof(wanted), "\"memory_limit\":{\"bytes\":%" PRIu64 ",\"source\":\"%s\"}",
             limit_bytes, source);
    EXPECT_HAS(report, wanted);
    expect_device(report, 0, limit_bytes, available_bytes, "0", 4);
    ds_accel_free_text(report);
}

static void expect_no_limit(void)
{
    char *report = info();

    EXPECT_HAS(report, "\"memory_limit\":null");
    expect_device(report, 0, 64 * GIB, 32 * GIB, "0", 4);
    ds_accel_free_text(report);
}

Test(core_cgroup, v2_limit_is_heeded_and_named)
{
    put_group("0::/a/b\n", MOUNT_V2);
    put_number("sys/fs/cgroup/a/b/memory.max", 4 * GIB);
    put_number("sys/fs/cgroup/a/b/memory.current", 1 * GIB);
    put("sys/fs/cgroup/a/memory.max", "max\n");
    expect_limit(4 * GIB, 3 * GIB, "/sys/fs/cgroup/a/b/memory.max");
}

Test(core_cgroup, v2_smaller_limit_of_a_parent_wins)
{
    put_group("0::/a/b\n", MOUNT_V2);
    put_number("sys/fs/cgroup/a/b/memory.max", 4 * GIB);
    put_number("sys/fs/cgroup/a/memory.max", 2 * GIB);
    put_number("sys/fs/cgroup/a/memory.current", GIB / 2);
    expect_limit(2 * GIB, 2 * GIB - GIB / 2, "/sys/fs/cgroup/a/memory.max");
}

Test(core_cgroup, v2_max_is_no_limit)
{
    put_group("0::/a/b\n", MOUNT_V2);
    expect_no_limit();
    put("sys/fs/cgroup/a/b/memory.max", "max\n");
    put("sys/fs/cgroup/a/memory.max", "max\n");
    expect_no_limit();
    put("sys/fs/cgroup/a/memory.max", "garbage\n");
    expect_no_limit();
}

Test(core_cgroup, a_limit_beyond_the_machines_memory_is_none)
{
    put_group("0::/a\n", MOUNT_V2);
    put_number("sys/fs/cgroup/a/memory.max", 65 * GIB);
    put_number("sys/fs/cgroup/a/memory.current", 1 * GIB);
    expect_no_limit();
}

Test(core_cgroup, what_is_available_is_the_smaller_of_machine_and_limit)
{
    put_group("0::/a\n", MOUNT_V2);
    put_number("sys/fs/cgroup/a/memory.max", 48 * GIB);
    put_number("sys/fs/cgroup/a/memory.current", 1 * GIB);
    expect_limit(48 * GIB, 32 * GIB, "/sys/fs/cgroup/a/memory.max");
}

Test(core_cgroup, file_pages_not_used_lately_are_available)
{
    put_group("0::/a\n", MOUNT_V2);
    put_number("sys/fs/cgroup/a/memory.max", 16 * GIB);
    put_number("sys/fs/cgroup/a/memory.current", 15 * GIB);
    test_write("machine/sys/fs/cgroup/a/memory.stat",
               "anon 1\ninactive_file 10737418240\nactive_file 5\n");
    expect_limit(16 * GIB, 11 * GIB, "/sys/fs/cgroup/a/memory.max");
}

Test(core_cgroup, a_group_over_its_limit_has_nothing_left)
{
    put_group("0::/a\n", MOUNT_V2);
    put_number("sys/fs/cgroup/a/memory.max", 1 * GIB);
    put_number("sys/fs/cgroup/a/memory.current", 1 * GIB + MIB);
    expect_limit(1 * GIB, 0, "/sys/fs/cgroup/a/memory.max");
}

Test(core_cgroup, a_larger_limit_with_less_left_narrows_what_is_available)
{
    put_group("0::/a/b\n", MOUNT_V2);
    put_number("sys/fs/cgroup/a/b/memory.max", 2 * GIB);
    put_number("sys/fs/cgroup/a/b/memory.current", 1 * GIB);
    put_number("sys/fs/cgroup/a/memory.max", 4 * GIB);
    put_number("sys/fs/cgroup/a/memory.current", 4 * GIB - MIB);
    expect_limit(2 * GIB, MIB, "/sys/fs/cgroup/a/b/memory.max");
}

Test(core_cgroup, a_parent_with_more_left_widens_nothing)
{
    put_group("0::/a/b\n", MOUNT_V2);
    put_number("sys/fs/cgroup/a/b/memory.max", 4 * GIB);
    put_number("sys/fs/cgroup/a/b/memory.current", 3 * GIB);
    put_number("sys/fs/cgroup/a/memory.max", 8 * GIB);
    put_number("sys/fs/cgroup/a/memory.current", 4 * GIB);
    expect_limit(4 * GIB, 1 * GIB, "/sys/fs/cgroup/a/b/memory.max");
}

Test(core_cgroup, v1_counts_file_pages_of_the_groups_below)
{
    put_group("9:memory:/job\n", MOUNT_V1);
    put_number("sys/fs/cgroup/memory/job/memory.limit_in_bytes", 16 * GIB);
    put_number("sys/fs/cgroup/memory/job/memory.usage_in_bytes", 15 * GIB);
    test_write("machine/sys/fs/cgroup/memory/job/memory.stat",
               "cache 1\ninactive_file 5\ntotal_cache 1\ntotal_inactive_file 10737418240\n");
    expect_limit(16 * GIB, 11 * GIB, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes");
}

/* A named hierarchy and a controller of a longer name are others. */
Test(core_cgroup, v1_controllers_are_whole_words)
{
    put_group("8:memory_other:/wrong\n9:cpu,memory:/job\n",
              "32 30 0:28 / /sys/fs/cgroup/wrong rw - cgroup cgroup rw,memory_other\n"
              "33 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    put_number("sys/fs/cgroup/wrong/wrong/memory.limit_in_bytes", 1 * GIB);
    put_number("sys/fs/cgroup/memory/job/memory.limit_in_bytes", 4 * GIB);
    put_number("sys/fs/cgroup/memory/job/memory.usage_in_bytes", 1 * GIB);
    expect_limit(4 * GIB, 3 * GIB, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes");
}

Test(core_cgroup, a_path_that_is_not_below_the_mount_is_the_mount_itself)
{
    put_group("0::/kubepods.slice/pod1\n",
              "30 23 0:26 /kubepods.slice/pod1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    put_number("sys/fs/cgroup/memory.max", 2 * GIB);
    put_number("sys/fs/cgroup/memory.current", 1 * GIB);
    expect_limit(2 * GIB, 1 * GIB, "/sys/fs/cgroup/memory.max");
}

Test(core_cgroup, the_root_of_a_namespace_can_have_a_limit)
{
    put_group("0::/\n", MOUNT_V2);
    put_number("sys/fs/cgroup/memory.max", 2 * GIB);
    put_number("sys/fs/cgroup/memory.current", 1 * GIB);
    expect_limit(2 * GIB, 1 * GIB, "/sys/fs/cgroup/memory.max");
}

Test(core_cgroup, v1_limit_is_heeded_and_named)
{
    put_group("12:cpu,cpuacct:/wrong\n3:name=memory:/wrong\n9:memory:/job\n", MOUNT_V1);
    put_number("sys/fs/cgroup/memory/job/memory.limit_in_bytes", 4 * GIB);
    put_number("sys/fs/cgroup/memory/job/memory.usage_in_bytes", 1 * GIB);
    put_number("sys/fs/cgroup/memory/memory.limit_in_bytes", NO_LIMIT_V1);
    expect_limit(4 * GIB, 3 * GIB, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes");
}

Test(core_cgroup, v1_huge_number_is_no_limit)
{
    put_group("9:memory:/job\n", MOUNT_V1);
    put_number("sys/fs/cgroup/memory/job/memory.limit_in_bytes", NO_LIMIT_V1);
    put_number("sys/fs/cgroup/memory/memory.limit_in_bytes", NO_LIMIT_V1);
    expect_no_limit();
}

Test(core_cgroup, v1_controllers_may_share_a_mount)
{
    put_group("9:cpu,memory:/job\n",
              "33 30 0:29 / /mnt/cpu,memory rw - cgroup cgroup rw,cpu,memory\n");
    put_number("mnt/cpu,memory/job/memory.limit_in_bytes", 4 * GIB);
    put_number("mnt/cpu,memory/job/memory.usage_in_bytes", 1 * GIB);
    expect_limit(4 * GIB, 3 * GIB, "/mnt/cpu,memory/job/memory.limit_in_bytes");
}

Test(core_cgroup, hybrid_takes_memory_from_where_it_is)
{
    put_group("9:memory:/job\n0::/job\n",
              MOUNT_V1 "34 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put_number("sys/fs/cgroup/memory/job/memory.limit_in_bytes", 4 * GIB);
    put_number("sys/fs/cgroup/memory/job/memory.usage_in_bytes", 1 * GIB);
    put("sys/fs/cgroup/unified/job/cgroup.procs", "1\n");
    expect_limit(4 * GIB, 3 * GIB, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes");
}

Test(core_cgroup, every_device_of_a_limited_process_has_the_limit)
{
    char *report;

    put_group("0::/a\n", MOUNT_V2);
    put_nodes_online("0-1");
    put_node(0, "0-3", 32 * GIB);
    put_node(1, "4-7", 2 * GIB);
    put_number("sys/fs/cgroup/a/memory.max", 4 * GIB);
    put_number("sys/fs/cgroup/a/memory.current", 1 * GIB);
    report = info();
    expect_device(report, 0, 4 * GIB, 3 * GIB, "0", 4);
    expect_device(report, 1, 2 * GIB, 2 * GIB, "1", 4);
    ds_accel_free_text(report);
}

Test(core_cgroup, files_that_make_no_sense_are_no_limit)
{
    static const char *const groups[] = {"", "\n\n", "0\n", "0:\n", "0::\n", "0::job\n", "::::\n"};
    static const char *const mounts[] = {"", "- -\n", " - cgroup2\n", "30 23 - cgroup2 x y\n"};

    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        put_group(groups[i], MOUNT_V2);
        put_number("sys/fs/cgroup/job/memory.max", 4 * GIB);
        expect_no_limit();
    }
    for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
        put_group("0::/a\n", mounts[i]);
        put_number("sys/fs/cgroup/a/memory.max", 4 * GIB);
        expect_no_limit();
    }
}

Test(core_cgroup, the_long_path_of_a_kubernetes_pod_is_named_whole)
{
    static const char group[] =
        "/kubepods.slice/kubepods-burstable.slice/"
        "kubepods-burstable-pod01234567_89ab_cdef_0123_456789abcdef.slice/"
        "cri-containerd-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope";
    char text[512];
    char *report;

    snprintf(text, sizeof(text), "0::%s\n", group);
    put_group(text, MOUNT_V2);
    snprintf(text, sizeof(text), "sys/fs/cgroup%s/memory.max", group);
    put_number(text, 4 * GIB);
    report = info();
    snprintf(text, sizeof(text), "\"source\":\"/sys/fs/cgroup%s/memory.max\"", group);
    EXPECT_HAS(report, text);
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
