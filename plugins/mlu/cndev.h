/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of Cambricon's device library, libcndev.so, that the plugin uses: cndev.h of API version
 * 6, and of version 5 for older libraries. In most structs the first member is the version, which
 * the caller sets; without it a call fails with 3. The V2 structs and the newer power struct have
 * no version. Memory is in MB, memory of processes in KiB, clocks in MHz, power in watts and
 * temperatures in degrees Celsius.
 */
#ifndef DS_ACCEL_PLUGINS_MLU_CNDEV_H
#define DS_ACCEL_PLUGINS_MLU_CNDEV_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define CNDEV_WRONG_VERSION 3
#define CNDEV_NO_SPACE 9
#define CNDEV_VERSION_OLD 5
#define CNDEV_VERSION_NEW 6

struct cndev_count {
    int32_t version;
    uint32_t count;
};

struct cndev_uuid {
    int32_t version;
    char uuid[37];
    uint64_t ncs_uuid;
};

struct cndev_pcie {
    uint32_t subsystem;
    uint32_t device_id;
    uint16_t vendor;
    uint16_t subsystem_vendor;
    uint32_t domain;
    uint32_t bus;
    uint32_t slot;
    uint32_t function;
    uint16_t module;
    uint16_t physical_slot;
    uint32_t reserved[8];
};

struct cndev_pcie_old {
    int32_t version;
    uint32_t subsystem;
    uint32_t device_id;
    uint16_t vendor;
    uint16_t subsystem_vendor;
    uint32_t domain;
    uint32_t bus;
    uint32_t slot;
    uint32_t function;
    uint32_t rest[4];
};

struct cndev_memory {
    int64_t total_mb;
    int64_t used_mb;
    int64_t reserved_mb;
    int64_t virtual_total_mb;
    int64_t virtual_used_mb;
    uint64_t global_mb;
    uint64_t reserved[16];
};

struct cndev_memory_old {
    int32_t version;
    int64_t total_mb;
    int64_t used_mb;
    int64_t virtual_total_mb;
    int64_t virtual_used_mb;
    int64_t channel_count;
    int64_t channel_used_mb[20];
    uint64_t global_mb;
};

struct cndev_utilization {
    int32_t version;
    int32_t average_percent;
    int32_t core_percent[80];
};

struct cndev_temperature {
    int32_t version;
    int32_t board;
    int32_t cluster[20];
    int32_t memory_die[8];
    int32_t chip;
    int32_t others[6];
};

struct cndev_power {
    int32_t usage;
    int32_t cap;
    int32_t machine;
    int32_t tdp;
    int32_t most;
    int32_t reserved[16];
};

/*
 * cndevFrequencyInfo: its first members, and room for the members that newer versions add.
 * memory_rate is a transfer rate in the header of version 6 and a clock in older headers, so the
 * plugin does not report it.
 */
struct cndev_frequency {
    int32_t version;
    int32_t board_mhz;
    int32_t memory_rate;
    char room[4096 - 12];
};

struct cndev_versions {
    int32_t version;
    uint32_t controller[3];
    uint32_t driver[3];
};

struct cndev_health {
    int32_t version;
    int32_t is_healthy;
    int32_t device_state;
    int32_t driver_state;
};

struct cndev_process {
    int32_t version;
    uint32_t pid;
    uint64_t physical_kib;
    uint64_t virtual_kib;
};

static_assert(sizeof(struct cndev_count) == 8, "cndev.h: cndevCardInfo_t");
static_assert(sizeof(struct cndev_uuid) == 56, "cndev.h: cndevUUID_t");
static_assert(sizeof(struct cndev_pcie) == 64, "cndev.h: cndevPCIeInfoV2_t");
static_assert(offsetof(struct cndev_pcie, domain) == 12, "cndev.h: cndevPCIeInfoV2_t");
static_assert(sizeof(struct cndev_pcie_old) == 48, "cndev.h: cndevPCIeInfo_t");
static_assert(offsetof(struct cndev_pcie_old, domain) == 16, "cndev.h: cndevPCIeInfo_t");
static_assert(sizeof(struct cndev_memory) == 176, "cndev.h: cndevMemoryInfoV2_t");
static_assert(sizeof(struct cndev_memory_old) == 216, "cndev.h: cndevMemoryInfo_t");
static_assert(offsetof(struct cndev_memory_old, global_mb) == 208, "cndev.h: cndevMemoryInfo_t");
static_assert(sizeof(struct cndev_utilization) == 328, "cndev.h: cndevUtilizationInfo_t");
static_assert(sizeof(struct cndev_temperature) == 148, "cndev.h: cndevTemperatureInfo_t");
static_assert(offsetof(struct cndev_temperature, chip) == 120, "cndev.h: cndevTemperatureInfo_t");
static_assert(sizeof(struct cndev_power) == 84, "cndev.h: cndevDevicePowerInfo_t");
static_assert(sizeof(struct cndev_versions) == 28, "cndev.h: cndevVersionInfo_t");
static_assert(sizeof(struct cndev_health) == 16, "cndev.h: cndevCardHealthState_t");
static_assert(sizeof(struct cndev_process) == 24, "cndev.h: cndevProcessInfo_t");

/* Functions return 0 on success. Members have the names of the exported functions. */
struct cndev_api {
    int (*cndevInit)(int32_t reserved);
    int (*cndevGetDeviceCount)(struct cndev_count *count);
    int (*cndevGetDeviceHandleByIndex)(int32_t index, int32_t *handle);
    int (*cndevGetUUID)(struct cndev_uuid *uuid, int32_t device);
    int (*cndevGetPCIeInfoV2)(struct cndev_pcie *pcie, int32_t device);
    int (*cndevGetPCIeInfo)(struct cndev_pcie_old *pcie, int32_t device);
    int (*cndevGetMemoryUsageV2)(struct cndev_memory *memory, int32_t device);
    int (*cndevGetMemoryUsage)(struct cndev_memory_old *memory, int32_t device);
    int (*cndevGetDeviceUtilizationInfo)(struct cndev_utilization *utilization, int32_t device);
    int (*cndevGetTemperatureInfo)(struct cndev_temperature *temperature, int32_t device);
    int (*cndevGetDevicePowerInfo)(struct cndev_power *power, int32_t device);
    int (*cndevGetFrequencyInfo)(struct cndev_frequency *frequency, int32_t device);
    int (*cndevGetVersionInfo)(struct cndev_versions *versions, int32_t device);
    int (*cndevGetCardHealthState)(struct cndev_health *health, int32_t device);
    int (*cndevGetProcessInfo)(uint32_t *count, struct cndev_process *processes, int32_t device);
};

#endif
