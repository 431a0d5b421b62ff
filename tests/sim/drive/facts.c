/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Facts about devices that are not open: a line each for identity and telemetry (only valid
 * values), and one for each link and process:
 *
 *     device 0 vendor 3 pci 0000:5d:00.0 uuid GPU-... node /dev/nvidia3 numa 0 memory 1073741824
 *         name NVIDIA H100 arch sm_90 power 1 id 00112233... [part 1 of GPU-... [instance 5/0]]
 *     device 0 valid 0x1003 utilization 37 memory_utilization 0 memory_used 0
 *         memory_total 1073741824
 *     device 0 link kind 2 peer 1 width 0 generation 4 up 1 bytes_per_s 26562000000
 *         [to 0000:9a:00.0]
 *     device 0 process 1 of 1 memory 67108864 pid 4711
 *     runtime 6.3.42134 driver 6.12.12
 *
 * Also profiler ranges, and the devices that a child sees.
 */
#include "clock.h"
#include "drive.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POLL_MS 50
#define PROCESSES 16
#define LINKS 64

/* Returns a value, or -1 if the identity does not have it. */
static int known(const struct ds_accel_device_identity *it, uint64_t bit, uint32_t value)
{
    return (it->valid & bit) != 0 ? (int)value : -1;
}

static void tell_identity(struct run *run, uint32_t index)
{
    struct ds_accel_device_identity it = {.struct_size = sizeof(it)};

    if (CALL(run, device_identity, run->instance, index, &it) != DS_ACCEL_OK) {
        return;
    }
    printf(
        "device %u vendor %d pci %s uuid %s node %s numa %d memory %llu name %s arch %s power %u",
        index, known(&it, DS_ACCEL_IDENTITY_VENDOR_INDEX, it.vendor_index), it.pci_address,
        it.uuid_text, it.node_path, known(&it, DS_ACCEL_IDENTITY_NUMA_NODE, it.numa_node),
        (unsigned long long)it.total_memory_bytes, it.name, it.architecture, it.power_state);
    printf(" id ");
    for (size_t i = 0; i < sizeof(it.uuid); i++) {
        printf("%02x", it.uuid[i]);
    }
    if (it.partition_kind != DS_ACCEL_PARTITION_NONE) {
        printf(" part %u of %s", it.partition_kind, it.parent_uuid_text);
        if ((it.valid & DS_ACCEL_IDENTITY_PARTITION) != 0) {
            printf(" instance %u/%u", it.partition_instance, it.partition_subinstance);
        }
    }
    printf("\n");
}

struct figure {
    uint64_t bit;
    const char *name;
    long long value;
};

static void tell_telemetry(struct run *run, uint32_t index)
{
    struct ds_accel_telemetry it = {.struct_size = sizeof(it)};

    if (CALL(run, telemetry_get, run->instance, index, &it) != DS_ACCEL_OK) {
        return;
    }
    const struct figure values[] = {
        {DS_ACCEL_TELEMETRY_UTILIZATION, "utilization", it.utilization_percent},
        {DS_ACCEL_TELEMETRY_MEMORY_UTILIZATION, "memory_utilization",
         it.memory_utilization_percent},
        {DS_ACCEL_TELEMETRY_TEMPERATURE, "temperature", it.temperature_millidegrees_c},
        {DS_ACCEL_TELEMETRY_POWER, "power", (long long)it.power_milliwatts},
        {DS_ACCEL_TELEMETRY_POWER_LIMIT, "power_limit", (long long)it.power_limit_milliwatts},
        {DS_ACCEL_TELEMETRY_ENERGY, "energy", (long long)it.energy_millijoules},
        {DS_ACCEL_TELEMETRY_CORE_CLOCK, "core_clock", it.core_clock_khz},
        {DS_ACCEL_TELEMETRY_MEMORY_CLOCK, "memory_clock", it.memory_clock_khz},
        {DS_ACCEL_TELEMETRY_FAN, "fan", it.fan_percent},
        {DS_ACCEL_TELEMETRY_PCIE, "pcie_rx", (long long)it.pcie_rx_bytes_per_s},
        {DS_ACCEL_TELEMETRY_PCIE, "pcie_tx", (long long)it.pcie_tx_bytes_per_s},
        {DS_ACCEL_TELEMETRY_THROTTLE, "throttle", (long long)it.throttle_reasons},
        {DS_ACCEL_TELEMETRY_ECC, "ecc_corrected", (long long)it.ecc_corrected_count},
        {DS_ACCEL_TELEMETRY_ECC, "ecc_uncorrected", (long long)it.ecc_uncorrected_count},
        {DS_ACCEL_TELEMETRY_MEMORY, "memory_used", (long long)it.memory_used_bytes},
        {DS_ACCEL_TELEMETRY_MEMORY, "memory_total", (long long)it.memory_total_bytes},
    };

    printf("device %u valid 0x%llx%s", index, (unsigned long long)it.valid,
           it.valid == 0 ? " -" : "");
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if ((it.valid & values[i].bit) != 0) {
            printf(" %s %lld", values[i].name, values[i].value);
        }
    }
    printf("\n");
}

static void tell_arrays(struct run *run, uint32_t index)
{
    struct ds_accel_process processes[PROCESSES] = {0};
    struct ds_accel_link links[LINKS] = {0};
    uint32_t count = 0;

    if (CALL(run, links_get, run->instance, index, links, (uint32_t)sizeof(links[0]), LINKS,
             &count) == DS_ACCEL_OK) {
        for (uint32_t i = 0; i < count && i < LINKS; i++) {
            printf("device %u link kind %u peer %d width %u generation %u up %u bytes_per_s "
                   "%llu%s%s\n",
                   index, links[i].kind, links[i].peer_index, links[i].width, links[i].generation,
                   links[i].is_up, (unsigned long long)links[i].bandwidth_bytes_per_s,
                   links[i].peer_pci_address[0] != '\0' ? " to " : "", links[i].peer_pci_address);
        }
    }
    if (CALL(run, telemetry_processes, run->instance, index, processes,
             (uint32_t)sizeof(processes[0]), PROCESSES, &count) == DS_ACCEL_OK) {
        for (uint32_t i = 0; i < count && i < PROCESSES; i++) {
            printf("device %u process %u of %u memory %llu pid %d\n", index, i + 1, count,
                   (unsigned long long)processes[i].memory_bytes, processes[i].pid);
        }
    }
}

static void tell_version(const char *name, const uint32_t version[4])
{
    printf("%s %u.%u.%u\n", name, version[0], version[1], version[2]);
}

static void tell_all(struct run *run)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};

    for (uint32_t i = 0; i < run->device_count; i++) {
        tell_identity(run, i);
        tell_telemetry(run, i);
        tell_arrays(run, i);
    }
    if (CALL(run, backend_info, run->instance, &info) == DS_ACCEL_OK) {
        tell_version("runtime", info.runtime_version);
        tell_version("driver", info.driver_version);
    }
}

void drive_facts(struct run *run)
{
    uint64_t bytes = run->arguments[0] != NULL ? strtoull(run->arguments[0], NULL, 0) : 0;
    void *memory = NULL;

    if (run->arguments[0] != NULL &&
        (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
         (bytes > 0 && CALL(run, mem_alloc, run->device, bytes, 0, 0, &memory) < 0))) {
        return;
    }
    run->is_tolerant = 1;
    tell_all(run);
    run->is_tolerant = 0;
    if (memory != NULL) {
        RELEASE(run, mem_free, run->device, memory);
    }
}

/*
 * Polls like a monitor, which needs rates since the last poll. The last line has the shortest and
 * the longest time between two polls of a device, because the load of the machine changes it.
 */
void drive_polled(struct run *run)
{
    const struct timespec pause = {0, POLL_MS * 1000000L};
    const uint64_t first_begin_ns = now_ns();
    uint64_t first_end_ns;
    uint64_t second_begin_ns;

    run->is_tolerant = 1;
    for (uint32_t i = 0; i < run->device_count; i++) {
        struct ds_accel_telemetry it = {.struct_size = sizeof(it)};

        CALL(run, telemetry_get, run->instance, i, &it);
    }
    first_end_ns = now_ns();
    nanosleep(&pause, NULL);
    second_begin_ns = now_ns();
    tell_all(run);
    printf("polled after %llu to %llu ns\n", (unsigned long long)(second_begin_ns - first_end_ns),
           (unsigned long long)(now_ns() - first_begin_ns));
}

/* ---- ranges --------------------------------------------------------------------------------- */

void drive_ranges(struct run *run)
{
    CALL(run, range_push, run->instance, "step", NULL, NULL);
    CALL(run, range_push, run->instance, "forward", "a domain", "a category");
    CALL(run, range_pop, run->instance, "a domain");
    CALL(run, range_push, run->instance, "backward", NULL, NULL);
    CALL(run, range_pop, run->instance, NULL);
    CALL(run, range_pop, run->instance, NULL);
}

/* Domains are separate stacks: a pop in one domain leaves the others unchanged. */
void drive_domains(struct run *run)
{
    run->is_tolerant = 1;
    CALL(run, range_push, run->instance, "step", NULL, NULL);
    CALL(run, range_push, run->instance, "forward", "model", "compute");
    CALL(run, range_push, run->instance, "gather", "network", "collective");
    CALL(run, range_push, run->instance, "layer", "model", "compute");
    CALL(run, range_pop, run->instance, "network");
    CALL(run, range_push, run->instance, "loss", "model", NULL);
    CALL(run, range_push, run->instance, "log", NULL, "host");
    CALL(run, range_push, run->instance, "log", "model", "host");
    CALL(run, range_push, run->instance, "norm", "model", "compute");
    for (int i = 0; i < 5; i++) {
        CALL(run, range_pop, run->instance, "model");
    }
    CALL(run, range_pop, run->instance, NULL);
    CALL(run, range_pop, run->instance, NULL);
    CALL(run, range_pop, run->instance, "nobody's");
}

/* ---- devices that a child sees -------------------------------------------------------------- */

void drive_shown(struct run *run)
{
    const char *variable = run->arguments[0] != NULL ? run->arguments[0] : "";
    const uint32_t turned[2] = {1, 0};
    const uint32_t twice[2] = {1, 1};
    char value[512] = "untouched";

    if (CALL(run, visible_devices_value, run->instance, variable, turned, 2, value, sizeof(value),
             NULL) == DS_ACCEL_OK) {
        printf("shown %s\n", value);
    }
    strcpy(value, "untouched");
    CALL(run, visible_devices_value, run->instance, variable, twice, 2, value, sizeof(value), NULL);
    printf("then %s\n", value);
}
