/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The cpu plugin: sensors of the machine and of a node. */
#include "cpu_host.h"

#include <unistd.h>

/* ---- sensors -------------------------------------------------------------------------------- */

TestSuite(plugin_cpu_sensors, .timeout = 120);

/* Opens the plugin on a recorded machine with two nodes of one CPU each. */
static void open_recorded(void)
{
    static char root[512];

    test_write("machine/proc/cpuinfo", "model name\t: A\n\n");
    snprintf(root, sizeof(root), "%s", test_path("machine"));
    own_host.machine_root = root;
    has_one_kernel_node = false;
    open_cpu(2, NULL);
}

static struct ds_accel_telemetry telemetry(uint32_t device_index)
{
    struct ds_accel_telemetry answer = {.struct_size = sizeof(answer)};

    EXPECT_OK(table->telemetry_get(instance, device_index, &answer, &error));
    return answer;
}

Test(plugin_cpu_sensors, utilization_is_that_of_the_nodes_cpus_since_the_last_look)
{
    struct ds_accel_telemetry answer;
    const uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);

    open_recorded();
    cr_expect_eq(telemetry(0).valid, DS_ACCEL_TELEMETRY_MEMORY);
    test_write("machine/proc/stat", "cpu  9 9 9 9 9 9 9 9 0 0\n"
                                    "cpu0 100 20 30 600 200 20 20 10 0 0\n"
                                    "cpu1 1000 0 0 0 0 0 0 0 0 0\nintr 5\n");
    answer = telemetry(0);
    cr_expect_neq(answer.valid & DS_ACCEL_TELEMETRY_UTILIZATION, 0);
    cr_expect_eq(answer.utilization_percent, 20, "since the machine began");
    cr_expect_eq(answer.sampled_over_ns, 1000 * tick_ns);
    cr_expect_eq(telemetry(1).utilization_percent, 100);
    /* Nine ticks are too short for a period. */
    test_write("machine/proc/stat", "cpu0 109 20 30 600 200 20 20 10 0 0\n");
    cr_expect_eq(telemetry(0).utilization_percent, 20);
    test_write("machine/proc/stat", "cpu0 150 20 30 650 200 20 20 10 0 0\n");
    answer = telemetry(0);
    cr_expect_eq(answer.utilization_percent, 50);
    cr_expect_eq(answer.sampled_over_ns, 100 * tick_ns);
    /* A counter that decreased was restarted: its ticks are used as they are. */
    test_write("machine/proc/stat", "cpu0 1 0 0 3 0 0 0 0 0 0\n");
    cr_expect_eq(telemetry(0).utilization_percent, 25);
    test_write("machine/proc/stat", "intr 5\n");
    cr_expect_eq(telemetry(0).valid & DS_ACCEL_TELEMETRY_UTILIZATION, 0);
    close_cpu();
}

Test(plugin_cpu_sensors, the_temperature_is_that_of_the_nodes_package)
{
    struct ds_accel_telemetry answer;

    open_recorded();
    for (int i = 0; i < 2; i++) {
        static const char *const temperatures[] = {"41000\n", "-2500\n"};
        char path[128];
        char text[32];

        snprintf(path, sizeof(path),
                 "machine/sys/devices/system/cpu/cpu%d/topology/physical_package_id", i);
        snprintf(text, sizeof(text), "%d\n", 1 - i);
        test_write(path, text);
        snprintf(path, sizeof(path), "machine/sys/class/hwmon/hwmon%d/name", 2 + 3 * i);
        test_write(path, "coretemp\n");
        snprintf(path, sizeof(path), "machine/sys/class/hwmon/hwmon%d/temp1_label", 2 + 3 * i);
        snprintf(text, sizeof(text), "Package id %d\n", i);
        test_write(path, text);
        snprintf(path, sizeof(path), "machine/sys/class/hwmon/hwmon%d/temp1_input", 2 + 3 * i);
        test_write(path, temperatures[i]);
    }
    test_write("machine/sys/class/hwmon/hwmon0/name", "nvme\n");
    test_write("machine/sys/class/hwmon/hwmon0/temp1_input", "99000\n");
    /* The node of a thermal zone is not known, so that zones are not used on this machine. */
    test_write("machine/sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
    test_write("machine/sys/class/thermal/thermal_zone0/temp", "98000\n");
    answer = telemetry(0);
    cr_expect_neq(answer.valid & DS_ACCEL_TELEMETRY_TEMPERATURE, 0);
    cr_expect_eq(answer.temperature_millidegrees_c, -2500);
    cr_expect_eq(telemetry(1).temperature_millidegrees_c, 41000);
    test_write("machine/sys/class/hwmon/hwmon5/temp1_input", "hot\n");
    cr_expect_eq(telemetry(0).valid & DS_ACCEL_TELEMETRY_TEMPERATURE, 0);
    close_cpu();
}

Test(plugin_cpu_sensors, amds_sensors_are_found_by_their_node)
{
    open_recorded();
    test_write("machine/sys/class/hwmon/hwmon1/name", "k10temp\n");
    test_write("machine/sys/class/hwmon/hwmon1/device/numa_node", "1\n");
    test_write("machine/sys/class/hwmon/hwmon1/temp1_input", "55125\n");
    cr_expect_eq(telemetry(0).valid & DS_ACCEL_TELEMETRY_TEMPERATURE, 0);
    cr_expect_eq(telemetry(1).temperature_millidegrees_c, 55125);
    close_cpu();
}

Test(plugin_cpu_sensors, clock_and_memory_are_told)
{
    struct ds_accel_telemetry answer;

    open_recorded();
    test_write("machine/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2100000\n");
    answer = telemetry(1);
    cr_expect_neq(answer.valid & DS_ACCEL_TELEMETRY_CORE_CLOCK, 0);
    cr_expect_eq(answer.core_clock_khz, 2100000);
    cr_expect_eq(answer.memory_total_bytes, UINT64_C(1) << 36);
    cr_expect_eq(answer.memory_used_bytes, UINT64_C(1) << 34);
    cr_expect_eq(telemetry(0).valid & DS_ACCEL_TELEMETRY_CORE_CLOCK, 0);
    EXPECT_FAIL(table->telemetry_get(instance, 2, &answer, &error), DS_ACCEL_ERR_INVALID,
                "device 2 does not exist, there are");
    close_cpu();
}

/* Reads the machine on which the test runs; the values must be plausible. */
Test(plugin_cpu_sensors, this_machine_answers)
{
    struct ds_accel_telemetry answer;

    open_cpu(0, NULL);
    answer = telemetry(0);
    cr_expect_neq(answer.valid & DS_ACCEL_TELEMETRY_UTILIZATION, 0);
    cr_expect_leq(answer.utilization_percent, 100);
    cr_expect_gt(answer.sampled_over_ns, 0);
    close_cpu();
}
