/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A fake machine written by a test, and the facts that a context reports of its devices. */
#ifndef DS_ACCEL_TESTS_MACHINE_MACHINE_H
#define DS_ACCEL_TESTS_MACHINE_MACHINE_H

#include "fixture.h"

#include <inttypes.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define RESIDENT_BYTES (4 * MIB)

static inline char *info_of(const char *machine_root)
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

static inline char *info(void)
{
    return info_of(test_path("machine"));
}

static inline void put(const char *path, const char *text)
{
    char full[600];

    snprintf(full, sizeof(full), "machine/%s", path);
    test_write(full, text);
}

/* Write the files that every machine has: memory, and this process. */
static inline void put_machine(uint64_t total_bytes, uint64_t available_bytes)
{
    char text[256];

    snprintf(text, sizeof(text),
             "MemTotal:       %8" PRIu64 " kB\nMemFree:         1024 kB\n"
             "MemAvailable:   %8" PRIu64 " kB\n",
             total_bytes / KIB, available_bytes / KIB);
    put("proc/meminfo", text);
    put("proc/self/status", "Name:\tx\nVmHWM:\t    8192 kB\nVmRSS:\t    4096 kB\n");
}

/* Write a NUMA node whose memory is all free. */
static inline void put_node(unsigned id, const char *cpus, uint64_t total_bytes)
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

static inline void put_nodes_online(const char *list)
{
    char text[64];

    snprintf(text, sizeof(text), "%s\n", list);
    put("sys/devices/system/node/online", text);
}

static inline void expect_device(const char *report, unsigned index, uint64_t total_bytes,
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

static inline void forget_launcher(void)
{
    unsetenv("LOCAL_SIZE");
    unsetenv("LOCAL_RANK");
}

#endif
