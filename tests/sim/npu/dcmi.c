/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated DCMI. Cards are numbered from the last to the first and have "chips_per_card" chips,
 * so that a caller that confuses a card's number with ACL's is detected; with a machine's "dcmi":
 * "refuse" all calls fail.
 */
#include "engine.h"

#include <string.h>
#include <unistd.h>

/* No header declares these exports: programs that open the library declare them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define MAX_DEVICES 64
#define REFUSED (-8002)

struct dcmi_chip_info {
    unsigned char chip_type[32];
    unsigned char chip_name[32];
    unsigned char chip_ver[32];
    unsigned int aicore_cnt;
};

struct dcmi_hbm_info {
    unsigned long long memory_size; /* MB */
    unsigned int freq;              /* MHz */
    unsigned long long memory_usage;
    int temp;
    unsigned int bandwith_util_rate;
};

struct dcmi_pcie_info_all {
    unsigned int venderid;
    unsigned int subvenderid;
    unsigned int deviceid;
    unsigned int subdeviceid;
    int domain;
    unsigned int bdf_busid;
    unsigned int bdf_deviceid;
    unsigned int bdf_funcid;
    unsigned char reserve[32];
};

struct dcmi_proc_mem_info {
    int proc_id;
    unsigned long proc_mem_usage; /* bytes */
};

SIM_ASSERT(sizeof(struct dcmi_chip_info) == 100, "npu.md: dcmi_chip_info");
SIM_ASSERT(sizeof(struct dcmi_hbm_info) == 32, "npu.md: dcmi_hbm_info");
SIM_ASSERT(offsetof(struct dcmi_hbm_info, memory_usage) == 16, "npu.md: dcmi_hbm_info");
SIM_ASSERT(offsetof(struct dcmi_hbm_info, temp) == 24, "npu.md: dcmi_hbm_info");
SIM_ASSERT(sizeof(struct dcmi_pcie_info_all) == 64, "dcmi_interface_api.h: dcmi_pcie_info_all");

static bool is_started;
static uint32_t order[MAX_DEVICES]; /* ACL's number -> physical number */
static uint32_t order_count;

static int chips_per_card(void)
{
    return (int)sim_vendor_number("chips_per_card", 1);
}

static int card_count(void)
{
    return ((int)order_count + chips_per_card() - 1) / chips_per_card();
}

/* Returns ACL's number of a chip; -1: no such chip. */
static int logic_of(int card, int chip)
{
    int logic = (card_count() - 1 - card) * chips_per_card() + chip;

    return card < 0 || card >= card_count() || chip < 0 || chip >= chips_per_card() ||
                   logic >= (int)order_count
               ? -1
               : logic;
}

#define BEGIN(call) \
    do { \
        int64_t scripted_ = sim_enter(call); \
        if (!is_started) { \
            sim_misuse("%s: before dcmi_init()", call); \
        } \
        if (scripted_ != 0) { \
            return (int)scripted_; \
        } \
    } while (0)

#define DEVICE(card, chip, device) \
    do { \
        int logic_ = logic_of(card, chip); \
        if (logic_ < 0) { \
            return -8001; \
        } \
        (device) = sim_device_at(order[logic_]); \
    } while (0)

SIM_EXPORT int dcmi_init(void)
{
    int64_t scripted = sim_enter("dcmi_init");

    if (scripted != 0) {
        return (int)scripted;
    }
    sim_device_count("npu");
    if (strcmp(sim_vendor_text("dcmi", "answer"), "refuse") == 0) {
        return REFUSED;
    }
    order_count = sim_order(NULL, "file", order, MAX_DEVICES);
    is_started = true;
    return 0;
}

SIM_EXPORT int dcmi_get_card_list(int *card_num, int *card_list, int list_len)
{
    BEGIN("dcmi_get_card_list");
    *card_num = card_count();
    for (int i = 0; i < *card_num && i < list_len; i++) {
        card_list[i] = i;
    }
    return 0;
}

SIM_EXPORT int dcmi_get_device_num_in_card(int card_id, int *device_num)
{
    BEGIN("dcmi_get_device_num_in_card");
    if (card_id < 0 || card_id >= card_count()) {
        return -8001;
    }
    *device_num = 0;
    for (int i = 0; i < chips_per_card(); i++) {
        *device_num += logic_of(card_id, i) >= 0;
    }
    return 0;
}

SIM_EXPORT int dcmi_get_device_logic_id(int *device_logic_id, int card_id, int device_id)
{
    BEGIN("dcmi_get_device_logic_id");
    if (logic_of(card_id, device_id) < 0) {
        return -8001;
    }
    *device_logic_id = logic_of(card_id, device_id);
    return 0;
}

SIM_EXPORT int dcmi_get_device_chip_info(int card_id, int device_id,
                                         struct dcmi_chip_info *chip_info)
{
    const struct sim_device *device;

    BEGIN("dcmi_get_device_chip_info");
    DEVICE(card_id, device_id, device);
    memset(chip_info, 0, sizeof(*chip_info));
    memcpy(chip_info->chip_type, "Ascend", 7);
    memcpy(chip_info->chip_name, device->name, 31);
    chip_info->aicore_cnt = (unsigned int)sim_number(device, "aicores", 24);
    return 0;
}

SIM_EXPORT int dcmi_get_device_pcie_info_v2(int card_id, int device_id,
                                            struct dcmi_pcie_info_all *pcie_info)
{
    const struct sim_device *device;

    BEGIN("dcmi_get_device_pcie_info_v2");
    DEVICE(card_id, device_id, device);
    memset(pcie_info, 0, sizeof(*pcie_info));
    pcie_info->venderid = 0x19e5;
    pcie_info->domain = (int)device->pci_domain;
    pcie_info->bdf_busid = device->pci_bus;
    pcie_info->bdf_deviceid = device->pci_slot;
    pcie_info->bdf_funcid = device->pci_function;
    return 0;
}

SIM_EXPORT int dcmi_get_device_power_info(int card_id, int device_id, int *power)
{
    const struct sim_device *device;

    BEGIN("dcmi_get_device_power_info");
    DEVICE(card_id, device_id, device);
    *power = (int)sim_number(device, "power_deciwatts", 932);
    return 0;
}

SIM_EXPORT int dcmi_get_device_temperature(int card_id, int device_id, int *temperature)
{
    const struct sim_device *device;

    BEGIN("dcmi_get_device_temperature");
    DEVICE(card_id, device_id, device);
    *temperature = (int)sim_number(device, "temperature", 41);
    return 0;
}

SIM_EXPORT int dcmi_get_device_hbm_info(int card_id, int device_id,
                                        struct dcmi_hbm_info *device_hbm_info)
{
    const struct sim_device *device;
    uint64_t free_bytes;
    uint64_t total_bytes;

    BEGIN("dcmi_get_device_hbm_info");
    DEVICE(card_id, device_id, device);
    sim_memory_info(device->physical, &free_bytes, &total_bytes);
    memset(device_hbm_info, 0, sizeof(*device_hbm_info));
    device_hbm_info->memory_size = total_bytes >> 20;
    device_hbm_info->memory_usage = (total_bytes - free_bytes) >> 20;
    device_hbm_info->freq = (unsigned int)sim_number(device, "memory_mhz", 1600);
    device_hbm_info->temp = (int)sim_number(device, "temperature", 41);
    return 0;
}

SIM_EXPORT int dcmi_get_device_utilization_rate(int card_id, int device_id, int input_type,
                                                unsigned int *utilization_rate)
{
    const struct sim_device *device;

    BEGIN("dcmi_get_device_utilization_rate");
    DEVICE(card_id, device_id, device);
    switch (input_type) {
    case 2: /* DCMI_UTILIZATION_RATE_AICORE */
        *utilization_rate = (unsigned int)sim_number(device, "utilization", 37);
        return 0;
    case 6: /* DCMI_UTILIZATION_RATE_HBM */
        *utilization_rate = (unsigned int)sim_number(device, "memory_utilization", 12);
        return 0;
    default:
        return -8001;
    }
}

SIM_EXPORT int dcmi_get_device_frequency(int card_id, int device_id, int input_type,
                                         unsigned int *frequency)
{
    const struct sim_device *device;

    BEGIN("dcmi_get_device_frequency");
    DEVICE(card_id, device_id, device);
    switch (input_type) {
    case 6: /* DCMI_FREQ_HBM */
        *frequency = (unsigned int)sim_number(device, "memory_mhz", 1600);
        return 0;
    case 7: /* DCMI_FREQ_AICORE_CURRENT_ */
        *frequency = (unsigned int)sim_number(device, "core_mhz", 800);
        return 0;
    case 9: /* DCMI_FREQ_AICORE_MAX */
        *frequency = (unsigned int)sim_number(device, "core_max_mhz", 1850);
        return 0;
    default:
        return -8001;
    }
}

/* Returns this process, if it has memory on the device. */
SIM_EXPORT int dcmi_get_device_resource_info(int card_id, int device_id,
                                             struct dcmi_proc_mem_info *proc_info, int *proc_num)
{
    const struct sim_device *device;
    uint64_t free_bytes;
    uint64_t total_bytes;

    BEGIN("dcmi_get_device_resource_info");
    DEVICE(card_id, device_id, device);
    sim_memory_info(device->physical, &free_bytes, &total_bytes);
    *proc_num = 0;
    if (free_bytes < total_bytes) {
        proc_info[0].proc_id = getpid();
        proc_info[0].proc_mem_usage = (unsigned long)(total_bytes - free_bytes);
        *proc_num = 1;
    }
    return 0;
}
