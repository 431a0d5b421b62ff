/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated CNDev. A call with a struct of the wrong version fails with 3. A machine's
 * "cndev_version": 5 is an old library, which accepts only version 5 and has none of the V2 calls
 * (they return 10). Handles are not indices, and all cards are counted, regardless of
 * MLU_VISIBLE_DEVICES.
 */
#include "engine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_DEVICES 64
#define FIRST_HANDLE 100

/* No header declares these exports: programs that open the library declare them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

typedef int32_t cndevDevice_t;
typedef int cndevRet_t;

enum {
    CNDEV_SUCCESS = 0,
    CNDEV_ERROR_NO_DRIVER = 1,
    CNDEV_ERROR_UNSUPPORTED_API_VERSION = 3,
    CNDEV_ERROR_UNINITIALIZED = 4,
    CNDEV_ERROR_INVALID_ARGUMENT = 5,
    CNDEV_ERROR_INVALID_DEVICE_ID = 6,
    CNDEV_ERROR_INSUFFICIENT_SPACE = 9,
    CNDEV_ERROR_NOT_SUPPORTED = 10
};

typedef struct {
    int version;
    unsigned number;
} cndevCardInfo_t;

typedef struct {
    int version;
    uint8_t uuid[37];
    uint64_t ncsUUID64;
} cndevUUID_t;

typedef struct {
    uint32_t subsystemId;
    uint32_t deviceId;
    uint16_t vendor;
    uint16_t subsystemVendor;
    uint32_t domain;
    uint32_t bus;
    uint32_t device;
    uint32_t function;
    uint16_t moduleId;
    uint16_t slotId;
    uint32_t reserved[8];
} cndevPCIeInfoV2_t;

typedef struct {
    int version;
    uint32_t subsystemId;
    uint32_t deviceId;
    uint16_t vendor;
    uint16_t subsystemVendor;
    uint32_t domain;
    uint32_t bus;
    uint32_t device;
    uint32_t function;
    uint32_t others[4];
} cndevPCIeInfo_t;

typedef struct {
    int64_t physicalMemoryTotal; /* MB */
    int64_t physicalMemoryUsed;
    int64_t reservedMemory;
    int64_t virtualMemoryTotal;
    int64_t virtualMemoryUsed;
    uint64_t globalMemory;
    uint64_t reserved[16];
} cndevMemoryInfoV2_t;

typedef struct {
    int version;
    int64_t physicalMemoryTotal; /* MB */
    int64_t physicalMemoryUsed;
    int64_t virtualMemoryTotal;
    int64_t virtualMemoryUsed;
    int64_t channelNumber;
    int64_t channelMemoryUsed[20];
    uint64_t globalMemory;
} cndevMemoryInfo_t;

typedef struct {
    int version;
    int averageCoreUtilization; /* percent */
    int coreUtilization[80];
} cndevUtilizationInfo_t;

typedef struct {
    int version;
    int board; /* degrees Celsius */
    int cluster[20];
    int memoryDie[8];
    int chip;
    int airInlet;
    int airOutlet;
    int memory;
    int videoInput;
    int cpu;
    int isp;
} cndevTemperatureInfo_t;

typedef struct {
    int usage; /* W */
    int cap;
    int machine;
    int tdp;
    int maxPower;
    int reserved[16];
} cndevDevicePowerInfo_t;

typedef struct {
    int version;
    int boardFreq; /* MHz */
    int ddrFreq;
    uint8_t overtempDfsFlag;
    uint8_t fastDfsFlag;
    uint16_t mluClusterFreqCount;
    uint16_t mluClusterFreq[20];
    int boardDefaultFreq;
    int boardFreqArange[2];
} cndevFrequencyInfo_t;

typedef struct {
    int version;
    unsigned mcu[3];
    unsigned driverMajorVersion;
    unsigned driverMinorVersion;
    unsigned driverBuildVersion;
} cndevVersionInfo_t;

typedef struct {
    int version;
    int health; /* 1: healthy */
    int deviceState;
    int driverState;
} cndevCardHealthState_t;

typedef struct {
    int version;
    unsigned pid;
    uint64_t physicalMemoryUsed; /* KiB */
    uint64_t virtualMemoryUsed;
} cndevProcessInfo_t;

SIM_ASSERT(sizeof(cndevCardInfo_t) == 8, "mlu.md");
SIM_ASSERT(sizeof(cndevUUID_t) == 56, "cndev.h");
SIM_ASSERT(sizeof(cndevPCIeInfo_t) == 48 && offsetof(cndevPCIeInfo_t, domain) == 16, "mlu.md");
SIM_ASSERT(sizeof(cndevPCIeInfoV2_t) == 64 && offsetof(cndevPCIeInfoV2_t, bus) == 16, "cndev.h");
SIM_ASSERT(sizeof(cndevMemoryInfoV2_t) == 176, "mlu.md");
SIM_ASSERT(sizeof(cndevMemoryInfo_t) == 216, "mlu.md");
SIM_ASSERT(offsetof(cndevMemoryInfo_t, physicalMemoryTotal) == 8, "mlu.md");
SIM_ASSERT(sizeof(cndevUtilizationInfo_t) == 328, "mlu.md");
SIM_ASSERT(sizeof(cndevTemperatureInfo_t) == 148, "mlu.md");
SIM_ASSERT(offsetof(cndevTemperatureInfo_t, chip) == 120, "mlu.md");
SIM_ASSERT(sizeof(cndevDevicePowerInfo_t) == 84, "cndev.h");
SIM_ASSERT(sizeof(cndevVersionInfo_t) == 28, "cndev.h");
SIM_ASSERT(sizeof(cndevProcessInfo_t) == 24, "cndev.h");

static bool is_started;
static uint32_t order[MAX_DEVICES];
static uint32_t order_count;

static bool is_old(void)
{
    return sim_vendor_number("cndev_version", 6) == 5;
}

static bool is_spoken(int version)
{
    return version == 5 || (version == 6 && !is_old());
}

#define BEGIN(call) \
    do { \
        int64_t scripted_ = sim_enter(call); \
        if (!is_started) { \
            return CNDEV_ERROR_UNINITIALIZED; \
        } \
        if (scripted_ != 0) { \
            return (cndevRet_t)scripted_; \
        } \
    } while (0)

/* Begins a call about a card, with a versioned struct. */
#define ABOUT(info, handle, card) \
    do { \
        if (!is_spoken((info)->version)) { \
            return CNDEV_ERROR_UNSUPPORTED_API_VERSION; \
        } \
        (card) = card_of(handle); \
        if ((card) == NULL) { \
            return CNDEV_ERROR_INVALID_DEVICE_ID; \
        } \
    } while (0)

/* Begins a call of newer libraries, with an unversioned struct. */
#define NEWER(handle, card) \
    do { \
        (card) = card_of(handle); \
        if (is_old()) { \
            return CNDEV_ERROR_NOT_SUPPORTED; \
        } \
        if ((card) == NULL) { \
            return CNDEV_ERROR_INVALID_DEVICE_ID; \
        } \
    } while (0)

static const struct sim_device *card_of(cndevDevice_t handle)
{
    return handle < FIRST_HANDLE || handle >= FIRST_HANDLE + (int32_t)order_count
               ? NULL
               : sim_device_at(order[handle - FIRST_HANDLE]);
}

SIM_EXPORT cndevRet_t cndevInit(int32_t reserved)
{
    int64_t scripted = sim_enter("cndevInit");

    if (scripted != 0) {
        return (cndevRet_t)scripted;
    }
    if (reserved != 0) {
        return CNDEV_ERROR_INVALID_ARGUMENT;
    }
    if (sim_device_count("mlu") == 0) {
        return CNDEV_ERROR_NO_DRIVER;
    }
    order_count = sim_order(NULL, "file", order, MAX_DEVICES);
    is_started = true;
    return CNDEV_SUCCESS;
}

SIM_EXPORT cndevRet_t cndevGetDeviceCount(cndevCardInfo_t *cardNum)
{
    BEGIN("cndevGetDeviceCount");
    if (!is_spoken(cardNum->version)) {
        return CNDEV_ERROR_UNSUPPORTED_API_VERSION;
    }
    cardNum->number = order_count;
    return CNDEV_SUCCESS;
}

SIM_EXPORT cndevRet_t cndevGetDeviceHandleByIndex(int32_t index, cndevDevice_t *handle)
{
    BEGIN("cndevGetDeviceHandleByIndex");
    if (index < 0 || index >= (int32_t)order_count) {
        return CNDEV_ERROR_INVALID_DEVICE_ID;
    }
    *handle = FIRST_HANDLE + index;
    return CNDEV_SUCCESS;
}

SIM_EXPORT cndevRet_t cndevGetUUID(cndevUUID_t *uuidInfo, cndevDevice_t device)
{
    const struct sim_device *card;

    BEGIN("cndevGetUUID");
    ABOUT(uuidInfo, device, card);
    snprintf((char *)uuidInfo->uuid, sizeof(uuidInfo->uuid), "%.36s", card->uuid_text);
    return CNDEV_SUCCESS;
}

SIM_EXPORT cndevRet_t cndevGetPCIeInfoV2(cndevPCIeInfoV2_t *deviceInfo, cndevDevice_t device)
{
    const struct sim_device *card;

    BEGIN("cndevGetPCIeInfoV2");
    NEWER(device, card);
    memset(deviceInfo, 0, sizeof(*deviceInfo));
    deviceInfo->vendor = 0xcabc;
    deviceInfo->domain = card->pci_domain;
    deviceInfo->bus = card->pci_bus;
    deviceInfo->device = card->pci_slot;
    deviceInfo->function = card->pci_function;
    return CNDEV_SUCCESS;
}

SIM_EXPORT cndevRet_t cndevGetPCIeInfo(cndevPCIeInfo_t *deviceInfo, cndevDevice_t device)
{
    const struct sim_device *card;

    BEGIN("cndevGetPCIeInfo");
    ABOUT(deviceInfo, device, card);
    deviceInfo->vendor = 0xcabc;
    deviceInfo->domain = card->pci_domain;
    deviceInfo->bus = card->pci_bus;
    deviceInfo->device = card->pci_slot;
    deviceInfo->function = card->pci_function;
    return CNDEV_SUCCESS;
}

SIM_EXPORT cndevRet_t cndevGetMemoryUsageV2(cndevMemoryInfoV2_t *memInfo, cndevDevice_t device)
{
    const struct sim_device *card;
    uint64_t free_bytes;
    uint64_t total_bytes;

    BEGIN("cndevGetMemoryUsageV2");
    NEWER(device, card);
    sim_memory_info(card->physical, &free_bytes, &total_bytes);
    memset(memInfo, 0, sizeof(*memInfo));
    memInfo->physicalMemoryTotal = (int64_t)(total_bytes >> 20);
    memInfo->physicalMemoryUsed = (int64_t)((total_bytes - free_bytes) >> 20);
    return CNDEV_SUCCESS;
}

SIM_EXPORT cndevRet_t cndevGetMemoryUsage(cndevMemoryInfo_t *memInfo, cndevDevice_t device)
{
    const struct sim_device *card;
    uint64_t free_bytes;
    uint64_t total_bytes;

    BEGIN("cndevGetMemoryUsage");
    ABOUT(memInfo, device, card);
    sim_memory_info(card->physical, &free_bytes, &total_bytes);
    memInfo->physicalMemoryTotal = (int64_t)(total_bytes >> 20);
    memInfo->physicalMemoryUsed = (int64_t)((total_bytes - free_bytes) >> 20);
    return CNDEV_SUCCESS;
}

SIM_EXPORT cndevRet_t cndevGetDeviceUtilizationInfo(cndevUtilizationInfo_t *utilInfo,
                                                    cndevDevice_t device)
{
    const struct sim_device *card;

    BEGIN("cndevGetDeviceUtilizationInfo");
    ABOUT(utilInfo, device, card);
    utilInfo->averageCoreUtilization = (int)sim_number(card, "utilization", 37);
    return CNDEV_SUCCESS;
}

SIM_EXPORT cndevRet_t cndevGetTemperatureInfo(cndevTemperatureInfo_t *tempInfo,
                                              cndevDevice_t device)
{
    const struct sim_device *card;

    BEGIN("cndevGetTemperatureInfo");
    ABOUT(tempInfo, device, card);
    tempInfo->board = (int)sim_number(card, "temperature", 41);
    tempInfo->chip = tempInfo->board + 9;
    return CNDEV_SUCCESS;
}

SIM_EXPORT cndevRet_t cndevGetDevicePowerInfo(cndevDevicePowerInfo_t *powerInfo,
                                              cndevDevice_t device)
{
    const struct sim_device *card;

    BEGIN("cndevGetDevicePowerInfo");
    NEWER(device, card);
    memset(powerInfo, 0, sizeof(*powerInfo));
    powerInfo->usage = (int)sim_number(card, "power", 110);
    powerInfo->cap = (int)sim_number(card, "power_cap", 350);
    return CNDEV_SUCCESS;
}

SIM_EXPORT cndevRet_t cndevGetFrequencyInfo(cndevFrequencyInfo_t *freqInfo, cndevDevice_t device)
{
    const struct sim_device *card;

    BEGIN("cndevGetFrequencyInfo");
    ABOUT(freqInfo, device, card);
    freqInfo->boardFreq = (int)sim_number(card, "core_mhz", 1000);
    freqInfo->ddrFreq = (int)sim_number(card, "memory_mhz", 1600);
    return CNDEV_SUCCESS;
}

SIM_EXPORT cndevRet_t cndevGetVersionInfo(cndevVersionInfo_t *versInfo, cndevDevice_t device)
{
    const struct sim_device *card;

    BEGIN("cndevGetVersionInfo");
    ABOUT(versInfo, device, card);
    memset(versInfo->mcu, 0, sizeof(versInfo->mcu));
    if (sscanf(sim_vendor_text("driver_version", "6.2.10"), "%u.%u.%u",
               &versInfo->driverMajorVersion, &versInfo->driverMinorVersion,
               &versInfo->driverBuildVersion) != 3) {
        return CNDEV_ERROR_NOT_SUPPORTED;
    }
    return CNDEV_SUCCESS;
}

SIM_EXPORT cndevRet_t cndevGetCardHealthState(cndevCardHealthState_t *cardHealthState,
                                              cndevDevice_t device)
{
    const struct sim_device *card;

    BEGIN("cndevGetCardHealthState");
    ABOUT(cardHealthState, device, card);
    cardHealthState->health = !sim_is_lost(card->physical);
    cardHealthState->deviceState = 0;
    cardHealthState->driverState = 0;
    return CNDEV_SUCCESS;
}

/* Returns this process, if it has memory on the card. */
SIM_EXPORT cndevRet_t cndevGetProcessInfo(uint32_t *infoCount, cndevProcessInfo_t *procInfo,
                                          cndevDevice_t device)
{
    const struct sim_device *card;
    uint64_t free_bytes;
    uint64_t total_bytes;

    BEGIN("cndevGetProcessInfo");
    if (*infoCount == 0) {
        return CNDEV_ERROR_INSUFFICIENT_SPACE;
    }
    ABOUT(procInfo, device, card);
    sim_memory_info(card->physical, &free_bytes, &total_bytes);
    *infoCount = 0;
    if (free_bytes < total_bytes) {
        procInfo[0].pid = (unsigned)getpid();
        procInfo[0].physicalMemoryUsed = (total_bytes - free_bytes) >> 10;
        *infoCount = 1;
    }
    return CNDEV_SUCCESS;
}
