/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Sensors. The values are read from files under machine_root; a value whose file is missing is
 * reported as not valid.
 *
 *  - utilization: /proc/stat has the ticks of each CPU since boot, by state. The percentage is the
 *    busy part of the ticks between two samples. The first sample of an instance is for the time
 *    since boot. A query within a tenth of a second of the latest sample repeats its result, since
 *    the percentage of a few ticks is imprecise. sampled_over_ns is the length of the period.
 *  - temperature: the temperature of the package of the node's first CPU. coretemp (Intel) has a
 *    label with the number of the package; k10temp and zenpower (AMD) are PCI devices with a node;
 *    other drivers have one sensor for the machine, used only if the machine has one node.
 *  - clock: the current clock of the node's first CPU.
 *  - memory: the memory of the node, or of the machine if no node is known.
 */
#include "cpu.h"

#include <unistd.h>

#define MIN_TICKS 10u /* smallest period of a sample, in ticks of each CPU (usually 1/100 s) */
#define MAX_SENSORS 64u
#define MAX_LABELS 32u
#define PATH_BYTES 128u

/* ---- utilization ---------------------------------------------------------------------------- */

/* Return non-zero if the CPU is in a list like "0-3,8". */
static int is_listed(const char *list, unsigned long cpu)
{
    char *next = (char *)list;

    while (isdigit((unsigned char)*next)) {
        const unsigned long first = strtoul(next, &next, 10);
        const unsigned long last = *next == '-' ? strtoul(next + 1, &next, 10) : first;

        if (cpu >= first && cpu <= last) {
            return 1;
        }
        next += *next == ',';
    }
    return 0;
}

/* Add the ticks of one CPU, from the line "cpu3 user nice system idle iowait irq softirq steal
   ..." of /proc/stat. */
static void add_ticks(const char *line, struct cpu_ticks *ticks)
{
    uint64_t values[8] = {0};
    char *next = (char *)line + strcspn(line, " ");

    for (size_t i = 0; i < 8; i++) {
        values[i] = strtoull(next, &next, 10);
    }
    for (size_t i = 0; i < 8; i++) {
        ticks->total += values[i];
        ticks->busy += i == 3 || i == 4 ? 0 : values[i];
    }
    ticks->cpu_count++;
}

/* Sum the ticks of the node's CPUs, or of all CPUs if the node is not known or its list of CPUs is
   truncated; return 0 or -1. */
static int read_ticks(const struct ds_accel_host *host, const struct cpu_node *node,
                      struct cpu_ticks *ticks_out)
{
    const char *list = node == NULL || strstr(node->cpus, "...") != NULL ? NULL : node->cpus;
    struct cpu_ticks ticks = {0};
    FILE *file = cpu_file_open(host, "/proc/stat");
    char *line = NULL;
    size_t line_size = 0;

    if (file == NULL) {
        return -1;
    }
    while (getline(&line, &line_size, file) > 0 && strncmp(line, "cpu", 3) == 0) {
        if (isdigit((unsigned char)line[3]) &&
            (list == NULL || is_listed(list, strtoul(line + 3, NULL, 10)))) {
            add_ticks(line, &ticks);
        }
    }
    free(line);
    fclose(file);
    *ticks_out = ticks;
    return ticks.total == 0 ? -1 : 0;
}

/* Compute a new sample, unless too few ticks have passed since the previous sample. */
static void measure(const struct cpu_ticks *now, struct cpu_sample *sample)
{
    struct cpu_ticks before = sample->ticks;
    const long ticks_per_s = sysconf(_SC_CLK_TCK);
    uint64_t total;
    uint64_t busy;

    /* If CPUs were added or removed, or a counter has decreased, use the ticks since boot. */
    if (before.cpu_count != now->cpu_count || before.total > now->total ||
        before.busy > now->busy) {
        memset(&before, 0, sizeof(before));
    }
    total = now->total - before.total;
    busy = now->busy - before.busy;
    if (before.total != 0 && total < (uint64_t)MIN_TICKS * now->cpu_count) {
        return;
    }
    sample->ticks = *now;
    sample->busy_percent = (uint32_t)((busy * 100 + total / 2) / total);
    sample->period_ns = total / now->cpu_count *
                        (UINT64_C(1000000000) / (uint64_t)(ticks_per_s > 0 ? ticks_per_s : 100));
}

static void fill_utilization(struct cpu_runtime *cpu, uint32_t device_index,
                             const struct cpu_node *node, struct ds_accel_telemetry *telemetry)
{
    struct cpu_sample *sample = &cpu->samples[device_index];
    struct cpu_ticks now;

    if (read_ticks(cpu->host, node, &now) != 0) {
        return;
    }
    pthread_mutex_lock(&cpu->lock);
    measure(&now, sample);
    telemetry->utilization_percent = sample->busy_percent;
    telemetry->sampled_over_ns = sample->period_ns;
    pthread_mutex_unlock(&cpu->lock);
    telemetry->valid |= DS_ACCEL_TELEMETRY_UTILIZATION;
}

/* ---- temperature ---------------------------------------------------------------------------- */

/* Read a number from a file; return 0, or -1 if the file is missing or has no number. */
static int read_number(const struct ds_accel_host *host, const char *path, long *number_out)
{
    char line[32];
    char *end;
    long number;

    if (cpu_file_line(host, path, line, sizeof(line)) != 0) {
        return -1;
    }
    number = strtol(line, &end, 10);
    if (end == line || *end != '\0' || number < INT32_MIN || number > INT32_MAX) {
        return -1;
    }
    *number_out = number;
    return 0;
}

/* Read the coretemp sensor whose label has the number of the CPU's package; return 0 or -1. */
static int read_package(const struct ds_accel_host *host, unsigned monitor, uint32_t cpu,
                        long *number_out)
{
    char path[PATH_BYTES];
    char wanted[32];
    char label[32];
    long package;

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/physical_package_id", cpu);
    if (read_number(host, path, &package) != 0) {
        return -1;
    }
    snprintf(wanted, sizeof(wanted), "Package id %ld", package);
    for (unsigned sensor = 1; sensor <= MAX_LABELS; sensor++) {
        snprintf(path, sizeof(path), "/sys/class/hwmon/hwmon%u/temp%u_label", monitor, sensor);
        if (cpu_file_line(host, path, label, sizeof(label)) == 0 && strcmp(label, wanted) == 0) {
            snprintf(path, sizeof(path), "/sys/class/hwmon/hwmon%u/temp%u_input", monitor, sensor);
            return read_number(host, path, number_out);
        }
    }
    return -1;
}

/* Read the first sensor of a hwmon device that is on this node, or on any node if the machine has
   only one; return 0 or -1. */
static int read_on_node(const struct ds_accel_host *host, unsigned monitor,
                        const struct cpu_node *node, int is_only_node, long *number_out)
{
    char path[PATH_BYTES];
    long place;

    snprintf(path, sizeof(path), "/sys/class/hwmon/hwmon%u/device/numa_node", monitor);
    if (!is_only_node &&
        (node == NULL || read_number(host, path, &place) != 0 || place != (long)node->id)) {
        return -1;
    }
    snprintf(path, sizeof(path), "/sys/class/hwmon/hwmon%u/temp1_input", monitor);
    return read_number(host, path, number_out);
}

static int read_monitor(const struct ds_accel_host *host, unsigned monitor,
                        const struct cpu_node *node, int is_only_node, long *number_out)
{
    char path[PATH_BYTES];
    char name[32];

    snprintf(path, sizeof(path), "/sys/class/hwmon/hwmon%u/name", monitor);
    if (cpu_file_line(host, path, name, sizeof(name)) != 0) {
        return -1;
    }
    if (strcmp(name, "coretemp") == 0) {
        return read_package(host, monitor, node == NULL ? 0 : node->first_cpu, number_out);
    }
    if (strcmp(name, "k10temp") == 0 || strcmp(name, "zenpower") == 0 ||
        (is_only_node && strcmp(name, "cpu_thermal") == 0)) {
        return read_on_node(host, monitor, node, is_only_node, number_out);
    }
    return -1;
}

/* Read the temperature of a thermal zone of the CPU; return 0 or -1. Thermal zones have no node, so
   that they are used only on a machine with one node. */
static int read_zone(const struct ds_accel_host *host, unsigned zone, long *number_out)
{
    char path[PATH_BYTES];
    char type[32];

    snprintf(path, sizeof(path), "/sys/class/thermal/thermal_zone%u/type", zone);
    if (cpu_file_line(host, path, type, sizeof(type)) != 0 ||
        (strcmp(type, "x86_pkg_temp") != 0 && strcmp(type, "cpu-thermal") != 0 &&
         strcmp(type, "cpu_thermal") != 0)) {
        return -1;
    }
    snprintf(path, sizeof(path), "/sys/class/thermal/thermal_zone%u/temp", zone);
    return read_number(host, path, number_out);
}

static int read_temperature(const struct cpu_machine *machine, const struct cpu_node *node,
                            long *number_out)
{
    const int is_only_node = machine->node_count <= 1;

    for (unsigned monitor = 0; monitor < MAX_SENSORS; monitor++) {
        if (read_monitor(machine->host, monitor, node, is_only_node, number_out) == 0) {
            return 0;
        }
    }
    for (unsigned zone = 0; is_only_node && zone < MAX_SENSORS; zone++) {
        if (read_zone(machine->host, zone, number_out) == 0) {
            return 0;
        }
    }
    return -1;
}

/* ---- the result ----------------------------------------------------------------------------- */

static void fill_memory(const struct cpu_machine *machine, const struct cpu_node *node,
                        struct ds_accel_telemetry *telemetry)
{
    struct ds_accel_host_memory memory;
    uint64_t total = 0;
    uint64_t available = 0;

    memset(&memory, 0, sizeof(memory));
    memory.struct_size = sizeof(memory);
    if (node != NULL) {
        cpu_node_memory(machine, node, &total, &available);
    }
    if (total == 0 && machine->topology->memory_get(machine->host, &memory) >= 0) {
        total = memory.total_bytes;
        available = memory.available_bytes;
    }
    if (total != 0) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_MEMORY;
        telemetry->memory_total_bytes = total;
        telemetry->memory_used_bytes = available < total ? total - available : 0;
    }
}

int32_t cpu_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_telemetry *telemetry, struct ds_accel_error *error)
{
    struct cpu_runtime *cpu = cpu_runtime(instance);
    const struct cpu_node *node = cpu_machine_node(&cpu->machine, device_index);
    char path[PATH_BYTES];
    long number;

    (void)error;
    fill_utilization(cpu, device_index, node, telemetry);
    if (read_temperature(&cpu->machine, node, &number) == 0) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_TEMPERATURE;
        telemetry->temperature_millidegrees_c = (int32_t)number;
    }
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq",
             node == NULL ? 0 : node->first_cpu);
    if (read_number(cpu->host, path, &number) == 0 && number > 0) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_CORE_CLOCK;
        telemetry->core_clock_khz = (uint32_t)number;
    }
    fill_memory(&cpu->machine, node, telemetry);
    return DS_ACCEL_OK;
}
