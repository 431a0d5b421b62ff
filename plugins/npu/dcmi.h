/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of Huawei's device management library, libdcmi.so, that the plugin uses:
 * dcmi_interface_api.h. The library numbers cards, and chips on a card; dcmi_get_device_logic_id()
 * returns ACL's number of the device before ASCEND_RT_VISIBLE_DEVICES is applied. Memory is in MB
 * (that of a process in bytes), clocks in MHz, power in tenths of a watt and temperature in degrees
 * Celsius, according to the header's comments and its callers.
 */
#ifndef DS_ACCEL_PLUGINS_NPU_DCMI_H
#define DS_ACCEL_PLUGINS_NPU_DCMI_H

#include <assert.h>
#include <stddef.h>

#define DCMI_UTILIZATION_AICORE 2
#define DCMI_UTILIZATION_HBM 6
#define DCMI_FREQUENCY_HBM 6
#define DCMI_FREQUENCY_AICORE 7
#define DCMI_FREQUENCY_AICORE_MAX 9

struct dcmi_chip {
    unsigned char type[32];
    unsigned char name[32];
    unsigned char version[32];
    unsigned int aicore_count;
};

struct dcmi_hbm {
    unsigned long long size_mb;
    unsigned int clock_mhz;
    unsigned long long used_mb;
    int temperature;
    unsigned int bandwidth_percent;
};

struct dcmi_pcie {
    unsigned int vendor;
    unsigned int subvendor;
    unsigned int device;
    unsigned int subdevice;
    int domain;
    unsigned int bus;
    unsigned int slot;
    unsigned int function;
    unsigned char reserved[32];
};

struct dcmi_process {
    int pid;
    unsigned long memory_bytes;
};

static_assert(sizeof(struct dcmi_chip) == 100, "dcmi_interface_api.h: dcmi_chip_info");
static_assert(offsetof(struct dcmi_chip, aicore_count) == 96, "dcmi_chip_info");
static_assert(sizeof(struct dcmi_hbm) == 32, "dcmi_interface_api.h: dcmi_hbm_info");
static_assert(offsetof(struct dcmi_hbm, used_mb) == 16, "dcmi_hbm_info");
static_assert(sizeof(struct dcmi_pcie) == 64, "dcmi_interface_api.h: dcmi_pcie_info_all");
static_assert(offsetof(struct dcmi_pcie, domain) == 16, "dcmi_pcie_info_all");
static_assert(sizeof(struct dcmi_process) == 2 * sizeof(long), "dcmi_proc_mem_info");

/*
 * Functions return 0 on success. Members have the names of the exported functions. Without one of
 * the first four, the plugin does not use the library; the others are NULL if the library lacks
 * them.
 */
struct dcmi_api {
    int (*dcmi_init)(void);
    int (*dcmi_get_card_list)(int *count, int *cards, int capacity);
    int (*dcmi_get_device_num_in_card)(int card, int *count);
    int (*dcmi_get_device_logic_id)(int *logic, int card, int device);
    int (*dcmi_get_device_chip_info)(int card, int device, struct dcmi_chip *chip);
    int (*dcmi_get_device_pcie_info_v2)(int card, int device, struct dcmi_pcie *pcie);
    int (*dcmi_get_device_power_info)(int card, int device, int *power);
    int (*dcmi_get_device_temperature)(int card, int device, int *temperature);
    int (*dcmi_get_device_hbm_info)(int card, int device, struct dcmi_hbm *hbm);
    int (*dcmi_get_device_utilization_rate)(int card, int device, int type, unsigned int *percent);
    int (*dcmi_get_device_frequency)(int card, int device, int type, unsigned int *mhz);
    int (*dcmi_get_device_resource_info)(int card, int device, struct dcmi_process *processes,
                                         int *count);
};

#endif
