/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Conformance checks: values have the units that their names state. A wrong unit changes a value by
 * a factor of 1000 or more; the bounds here are wide enough for existing hardware, and narrow
 * enough to detect such a factor.
 */
#include "base/text.h"
#include "conformance/conformance.h"

#include <stdio.h>

#define TELEMETRY "telemetry"
#define MEMORY "memory"
#define MIB (UINT64_C(1) << 20)
#define FEW 64u

/* a lower value is assumed to be in MHz, except for an idle device: is_clock() */
#define CLOCK_LOW_KHZ 5000u
#define CLOCK_MOST_KHZ 50000000u /* 50 GHz */
#define LIMIT_LEAST_MW 2000u     /* 2 W */
#define POWER_MOST_MW 100000000u /* 100 kW */
#define LINK_LEAST UINT64_C(1000000)
#define LINK_MOST UINT64_C(100000000000000)
/* longer than any machine runs: the first sample of a backend may be that since the boot */
#define UPTIME_MOST_NS UINT64_C(1000000000000000000)

static struct ds_accel_telemetry read_telemetry(struct ds_accel__run *run)
{
    struct ds_accel_telemetry now = {.struct_size = sizeof(now)};

    WANT(run, DS_ACCEL_OK, telemetry_get, run->instance, run->device_index, &now);
    return now;
}

/* ---- sensors -------------------------------------------------------------------------------- */

/* True if a clock is plausible in kHz. Values below CLOCK_LOW_KHZ, such as 1500, are assumed to
 * be in MHz, except multiples of 1000: an idle device may run at 1000 or 2000 kHz. */
static bool is_clock(uint32_t khz)
{
    return khz <= CLOCK_MOST_KHZ && (khz >= CLOCK_LOW_KHZ || khz % 1000 == 0);
}

static void want_clock(struct ds_accel__run *run, const char *what, bool is_known, uint32_t khz)
{
    EXPECT(run, !is_known || is_clock(khz), "the %s clock is %u kHz", what, khz);
}

static void want_power(struct ds_accel__run *run, const struct ds_accel_telemetry *now)
{
    const bool has_limit = (now->valid & DS_ACCEL_TELEMETRY_POWER_LIMIT) != 0 &&
                           now->power_limit_milliwatts != 0;
    const bool has_power = (now->valid & DS_ACCEL_TELEMETRY_POWER) != 0;

    EXPECT(run,
           !has_limit || (now->power_limit_milliwatts >= LIMIT_LEAST_MW &&
                          now->power_limit_milliwatts <= POWER_MOST_MW),
           "the power limit is %llu mW", (unsigned long long)now->power_limit_milliwatts);
    EXPECT(run, !has_power || now->power_milliwatts <= POWER_MOST_MW, "the power is %llu mW",
           (unsigned long long)now->power_milliwatts);
    EXPECT(run,
           !has_power || !has_limit || now->power_milliwatts == 0 ||
               (now->power_milliwatts >= now->power_limit_milliwatts / 1000 &&
                now->power_milliwatts <= 10 * now->power_limit_milliwatts),
           "the power is %llu mW with a limit of %llu mW",
           (unsigned long long)now->power_milliwatts,
           (unsigned long long)now->power_limit_milliwatts);
}

static void check_sensors(struct ds_accel__run *run)
{
    const uint64_t known_throttle = 2 * DS_ACCEL_THROTTLE_SETTING - 1;
    const struct ds_accel_telemetry now = read_telemetry(run);
    const struct ds_accel_telemetry later = read_telemetry(run);
    const uint64_t both = now.valid & later.valid;

    want_power(run, &now);
    want_clock(run, "core", (now.valid & DS_ACCEL_TELEMETRY_CORE_CLOCK) != 0, now.core_clock_khz);
    want_clock(run, "memory", (now.valid & DS_ACCEL_TELEMETRY_MEMORY_CLOCK) != 0,
               now.memory_clock_khz);
    /*
     * A value from 1 to 999 is assumed to be in whole degrees, because no running device is colder
     * than 1 degree.
     */
    EXPECT(run,
           (now.valid & DS_ACCEL_TELEMETRY_TEMPERATURE) == 0 ||
               now.temperature_millidegrees_c <= 0 || now.temperature_millidegrees_c >= 1000,
           "the temperature is %d thousandths of a degree", now.temperature_millidegrees_c);
    EXPECT(run,
           (now.valid & DS_ACCEL_TELEMETRY_THROTTLE) == 0 ||
               (now.throttle_reasons & ~known_throttle) == 0 || run->theirs->abi_minor > 1,
           "throttle_reasons is 0x%llx", (unsigned long long)now.throttle_reasons);
    EXPECT(run,
           now.sampled_over_ns == 0 ||
               (now.sampled_over_ns >= 1000 && now.sampled_over_ns <= UPTIME_MOST_NS),
           "percentages are of %llu ns", (unsigned long long)now.sampled_over_ns);
    EXPECT(run,
           (both & DS_ACCEL_TELEMETRY_ENERGY) == 0 ||
               later.energy_millijoules >= now.energy_millijoules,
           "the energy was %llu mJ, and is %llu mJ", (unsigned long long)now.energy_millijoules,
           (unsigned long long)later.energy_millijoules);
}

static uint64_t total_memory(struct ds_accel__run *run)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};

    if (run->table.device_info != NULL) {
        WANT(run, DS_ACCEL_OK, device_info, run->device, &info);
    }
    return info.total_memory_bytes;
}

static void check_processes(struct ds_accel__run *run)
{
    const uint32_t known = DS_ACCEL_TELEMETRY_MEMORY | DS_ACCEL_TELEMETRY_UTILIZATION;
    struct ds_accel_process processes[FEW] = {{.struct_size = 0}};
    const uint64_t total = total_memory(run);
    uint32_t count = 0;
    int32_t status = CALL(run, telemetry_processes, run->instance, run->device_index, processes,
                          (uint32_t)sizeof(processes[0]), FEW, &count);

    if (status == DS_ACCEL_ERR_UNSUPPORTED) {
        ds_accel__skip(run, "%.200s", run->error.message);
        return;
    }
    ds_accel__want(run, DS_ACCEL_OK, "telemetry_processes", status);
    for (uint32_t i = 0; i < count && i < FEW; i++) {
        const struct ds_accel_process *it = &processes[i];

        EXPECT(run, it->pid >= 0, "process %u has the pid %d", i, it->pid);
        EXPECT(run, (it->valid & ~known) == 0 || run->theirs->abi_minor > 1,
               "process %u has the valid 0x%x", i, it->valid);
        EXPECT(run,
               (it->valid & DS_ACCEL_TELEMETRY_UTILIZATION) == 0 || it->utilization_percent <= 100,
               "process %u uses %u %%", i, it->utilization_percent);
        EXPECT(run,
               (it->valid & DS_ACCEL_TELEMETRY_MEMORY) == 0 || total == 0 ||
                   it->memory_bytes <= total,
               "process %u has %llu bytes of %llu", i, (unsigned long long)it->memory_bytes,
               (unsigned long long)total);
    }
}

/* ---- links ---------------------------------------------------------------------------------- */

static void check_bandwidth(struct ds_accel__run *run)
{
    struct ds_accel_link links[FEW] = {{.struct_size = 0}};
    uint32_t count = 0;

    WANT(run, DS_ACCEL_OK, links_get, run->instance, run->device_index, links,
         (uint32_t)sizeof(links[0]), FEW, &count);
    for (uint32_t i = 0; i < count && i < FEW; i++) {
        const uint64_t bandwidth = links[i].bandwidth_bytes_per_s;

        EXPECT(run, bandwidth == 0 || (bandwidth >= LINK_LEAST && bandwidth <= LINK_MOST),
               "link %u carries %llu bytes per second", i, (unsigned long long)bandwidth);
    }
}

/* ---- memory --------------------------------------------------------------------------------- */

#define PIECE 65536u

/*
 * A size that is large compared to the process's other device memory, but a small part of the
 * device's total: at most 8 MiB; 0 if the device has too little memory.
 */
static uint64_t some_size(struct ds_accel__run *run)
{
    const uint64_t total = total_memory(run);

    return total == 0 || total / 16 > 8 * MIB ? 8 * MIB : total / 16 / MIB * MIB;
}

/* Write to memory, because statistics may not count memory that was never written. */
static void write_all(struct ds_accel__run *run, char *memory, uint64_t size)
{
    unsigned char *bytes = malloc(PIECE);

    EXPECT(run, bytes != NULL, "host memory is exhausted");
    ds_accel__pattern(bytes, PIECE, 16);
    for (uint64_t i = 0; i < size; i += PIECE) {
        ds_accel__put(run, memory + i, bytes, size - i < PIECE ? (size_t)(size - i) : PIECE);
    }
    free(bytes);
}

static char *take_written(struct ds_accel__run *run, uint64_t size)
{
    char *memory = ds_accel__take(run, size);

    write_all(run, memory, size);
    return memory;
}

static struct ds_accel_memory_stats read_stats(struct ds_accel__run *run)
{
    struct ds_accel_memory_stats stats = {.struct_size = sizeof(stats)};

    WANT(run, DS_ACCEL_OK, mem_stats, run->device, &stats);
    return stats;
}

#define CYCLES 4

/* Check that live memory is reported as allocated, that not much more is reported, and that
 * freed memory is no longer reported. A plugin with host-accessible memory may report the memory of
 * the whole process, whose heap retains and reuses freed memory; it is enough if its statistic does
 * not grow with each cycle. */
static void check_stats(struct ds_accel__run *run)
{
    const uint64_t size = some_size(run);
    struct ds_accel_memory_stats before;
    struct ds_accel_memory_stats held;
    struct ds_accel_memory_stats after;
    void *memory;

    if (size == 0) {
        ds_accel__skip(run, "the device has too little memory");
        return;
    }
    before = read_stats(run);
    memory = take_written(run, size);
    held = read_stats(run);
    ds_accel__give(run, memory);
    for (int i = 1; i < CYCLES; i++) {
        ds_accel__give(run, take_written(run, size));
    }
    after = read_stats(run);
    if ((held.valid & DS_ACCEL_STATS_ALLOCATED) != 0) {
        EXPECT(run, held.allocated_bytes >= size / 2 && held.allocated_peak_bytes >= size / 2,
               "with %llu bytes in use %llu are reported as allocated, at most %llu",
               (unsigned long long)size, (unsigned long long)held.allocated_bytes,
               (unsigned long long)held.allocated_peak_bytes);
        EXPECT(run, held.allocated_bytes <= before.allocated_bytes + 4 * size,
               "with %llu bytes more allocated_bytes went from %llu to %llu",
               (unsigned long long)size, (unsigned long long)before.allocated_bytes,
               (unsigned long long)held.allocated_bytes);
        EXPECT(run,
               (run->info.flags & DS_ACCEL_FLAG_HOST_ACCESSIBLE) != 0
                   ? after.allocated_bytes <= held.allocated_bytes + size
                   : after.allocated_bytes <= held.allocated_bytes - size / 2,
               "with %llu bytes freed allocated_bytes went from %llu to %llu",
               (unsigned long long)size, (unsigned long long)held.allocated_bytes,
               (unsigned long long)after.allocated_bytes);
    }
    if ((held.valid & DS_ACCEL_STATS_RESERVED) != 0) {
        EXPECT(run, held.reserved_bytes >= size / 2 && held.reserved_peak_bytes >= size / 2,
               "with %llu bytes in use %llu are reported as reserved, at most %llu",
               (unsigned long long)size, (unsigned long long)held.reserved_bytes,
               (unsigned long long)held.reserved_peak_bytes);
    }
}

/*
 * True if 1/512 of the device's memory could be allocated although at most three quarters of this
 * size were reported as available. Other processes allocate and free memory at any time, so the
 * check fails only if this happens several times in a row. A refusal for lack of memory confirms
 * the report.
 */
static bool holds_more_than_there_is(struct ds_accel__run *run)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    const uint32_t both = DS_ACCEL_MEMORY_TOTAL | DS_ACCEL_MEMORY_AVAILABLE;
    void *memory = NULL;
    uint64_t size;
    int32_t status;

    WANT(run, DS_ACCEL_OK, mem_info, run->device, &info);
    size = info.total_bytes / 512;
    if ((info.valid & both) != both || info.available_bytes > size / 4 * 3 || size == 0) {
        return false;
    }
    status = CALL(run, mem_alloc, run->device, size, 0, 0, &memory);
    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        return false;
    }
    ds_accel__want(run, DS_ACCEL_OK, "mem_alloc", status);
    EXPECT(run, memory != NULL, "mem_alloc: DS_ACCEL_OK without memory");
    write_all(run, memory, size);
    ds_accel__give(run, memory);
    return true;
}

static void check_available(struct ds_accel__run *run)
{
    int count = 0;

    while (count < 4 && holds_more_than_there_is(run)) {
        count++;
    }
    EXPECT(run, count < 4, "%d times more was allocated than is available", count);
}

/* Check that an allocation one byte larger than the reported maximum fails. */
static void check_largest(struct ds_accel__run *run)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    void *pointer = NULL;
    int32_t status;

    WANT(run, DS_ACCEL_OK, device_info, run->device, &info);
    if (info.max_allocation_bytes == 0 || info.max_allocation_bytes == UINT64_MAX) {
        ds_accel__skip(run, "the largest allocation is not known");
        return;
    }
    status = CALL(run, mem_alloc, run->device, info.max_allocation_bytes + 1, 0, 0, &pointer);
    EXPECT(run, status < 0, "%llu bytes were allocated, and max_allocation_bytes is %llu",
           (unsigned long long)info.max_allocation_bytes + 1,
           (unsigned long long)info.max_allocation_bytes);
}

static void check_clock(struct ds_accel__run *run)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};

    WANT(run, DS_ACCEL_OK, device_info, run->device, &info);
    want_clock(run, "largest core", true, info.max_core_clock_khz);
}

static void check_process_bytes(struct ds_accel__run *run)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    const uint64_t size = some_size(run);
    void *memory = size > 0 ? take_written(run, size) : NULL;

    WANT(run, DS_ACCEL_OK, mem_info, run->device, &info);
    EXPECT(run, (info.valid & DS_ACCEL_MEMORY_PROCESS) == 0 || info.process_bytes >= size / 2,
           "with %llu bytes in use process_bytes is %llu", (unsigned long long)size,
           (unsigned long long)info.process_bytes);
    EXPECT(run,
           (info.valid & DS_ACCEL_MEMORY_PROCESS) == 0 ||
               (info.valid & DS_ACCEL_MEMORY_TOTAL) == 0 || info.limit_bytes != 0 ||
               info.process_bytes <= info.total_bytes,
           "process_bytes is %llu of %llu", (unsigned long long)info.process_bytes,
           (unsigned long long)info.total_bytes);
    ds_accel__give(run, memory);
}

static void check_used(struct ds_accel__run *run)
{
    const uint64_t size = some_size(run);
    void *memory = size > 0 ? take_written(run, size) : NULL;
    struct ds_accel_telemetry now = read_telemetry(run);

    EXPECT(run, (now.valid & DS_ACCEL_TELEMETRY_MEMORY) == 0 || now.memory_used_bytes >= size / 2,
           "with %llu bytes in use memory_used_bytes is %llu", (unsigned long long)size,
           (unsigned long long)now.memory_used_bytes);
    ds_accel__give(run, memory);
}

#define DEVICE DS_ACCEL__STAGE_DEVICE
#define HOLDS SLOT(mem_alloc), SLOT(mem_free), SLOT(mem_copy)

static const struct ds_accel__check checks[] = {
    {89, TELEMETRY, "units of sensors", DEVICE, 0, check_sensors, {SLOT(telemetry_get)}},
    {89,
     TELEMETRY,
     "allocated memory is reported as used",
     DEVICE,
     0,
     check_used,
     {HOLDS, SLOT(telemetry_get)}},
    {89, TELEMETRY, "processes", DEVICE, 0, check_processes, {SLOT(telemetry_processes)}},
    {44, "device", "what links carry", DEVICE, 0, check_bandwidth, {SLOT(links_get)}},
    {67, MEMORY, "bytes that are in use", DEVICE, 0, check_stats, {HOLDS, SLOT(mem_stats)}},
    {66,
     MEMORY,
     "no more can be allocated than is available",
     DEVICE,
     0,
     check_available,
     {HOLDS, SLOT(mem_info)}},
    {44, "device", "the clock of a device", DEVICE, 0, check_clock, {SLOT(device_info)}},
    {44,
     "device",
     "the largest allocation",
     DEVICE,
     0,
     check_largest,
     {SLOT(device_info), SLOT(mem_alloc)}},
    {66,
     MEMORY,
     "the memory of the process itself is reported",
     DEVICE,
     0,
     check_process_bytes,
     {HOLDS, SLOT(mem_info)}},
};

const struct ds_accel__check_list ds_accel__checks_units = {checks, ARRAY_SIZE(checks)};
