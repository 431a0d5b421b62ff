/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Memory and CPU limits of control groups, versions 1 and 2, as devices report them. */
#include "machine.h"

#include <inttypes.h>

/* ---- writing a machine ---------------------------------------------------------------------- */

static void put_number(const char *path, uint64_t number)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRIu64 "\n", number);
    put(path, text);
}

/* ---- test suite ------------------------------------------------------------------------------ */

TestSuite(core_cgroup, .init = forget_launcher);

/* ---- limits of control groups --------------------------------------------------------------- */

#define MOUNT_V2 "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_V1 \
    "31 30 0:27 / /sys/fs/cgroup/cpu rw shared:5 - cgroup cgroup rw,cpu,cpuacct\n" \
    "32 30 0:28 / /sys/fs/cgroup/other rw - cgroup cgroup rw,name=memory\n" \
    "33 30 0:29 / /sys/fs/cgroup/memory rw,nosuid shared:6 - cgroup cgroup rw,memory\n"
#define NO_LIMIT_V1 UINT64_C(9223372036854771712)

/* Write a machine with one node of 64 GiB, 32 GiB of it available, and this process in a control
   group. */
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

/* A named hierarchy and a controller with a longer name do not match. */
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
