/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated libbiren-ml.so.1, by brml.h. It counts devices by PCI address and ignores all
 * variables. Facts: "utilization_percent", "memory_utilization_percent", "temperature_c",
 * "power_milliwatts".
 */
#include "engine.h"

#include <stdio.h>
#include <string.h>

typedef int brmlReturn_t;
typedef struct sim_device *brmlDevice_t;
typedef struct {
    uint64_t total, free, used;
} brmlMemory_t;
typedef struct {
    uint32_t gpu, memory;
} brmlUtilization_t;
typedef struct {
    uint32_t domain, bus, device, function, pciDeviceId, pciSubSystemId;
    char busId[32];
} brmlPciInfo_t;
typedef enum {
    BRML_TEMPERATURE_GPU = 0
} brmlTemperatureSensors_t;

#define BRML_SUCCESS 0
#define BRML_ERROR_UNINITIALIZED 1
#define BRML_ERROR_INVALID_ARGUMENT 2
#define BRML_ERROR_NOT_SUPPORTED 3
#define BRML_ERROR_INSUFFICIENT_SIZE 6

SIM_ASSERT(sizeof(brmlPciInfo_t) == 56 && offsetof(brmlPciInfo_t, busId) == 24, "brmlPciInfo_t");
SIM_ASSERT(sizeof(brmlMemory_t) == 24 && offsetof(brmlMemory_t, free) == 8, "brmlMemory_t");
SIM_ASSERT(sizeof(brmlUtilization_t) == 8, "brmlUtilization_t");
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static uint32_t order[64];
static uint32_t count;
static int users;

static brmlReturn_t enter(const char *call, const struct sim_device *device)
{
    brmlReturn_t code = (brmlReturn_t)sim_enter(call);

    if (code != BRML_SUCCESS || users == 0) {
        return code != BRML_SUCCESS ? code : BRML_ERROR_UNINITIALIZED;
    }
    if (device != NULL && sim_device_at(device->physical) != device) {
        sim_misuse("%s: %p is no device", call, (const void *)device);
    }
    return BRML_SUCCESS;
}

#define ENTER(device) \
    do { \
        brmlReturn_t code_ = enter(__func__, device); \
        if (code_ != BRML_SUCCESS) { \
            return code_; \
        } \
    } while (0)

SIM_EXPORT brmlReturn_t brmlInit_v2(void)
{
    brmlReturn_t code = (brmlReturn_t)sim_enter(__func__);

    if (code == BRML_SUCCESS) {
        (void)sim_device_count("supa");
        count = sim_order("pci", "pci", order, 64);
        users++;
    }
    return code;
}

SIM_EXPORT brmlReturn_t brmlShutdown(void)
{
    ENTER(NULL);
    users--;
    return BRML_SUCCESS;
}

SIM_EXPORT brmlReturn_t brmlDeviceGetCount(unsigned int *deviceCount)
{
    ENTER(NULL);
    *deviceCount = count;
    return BRML_SUCCESS;
}

SIM_EXPORT brmlReturn_t brmlDeviceGetHandleByIndex(unsigned int index, brmlDevice_t *device)
{
    ENTER(NULL);
    if (index >= count) {
        return BRML_ERROR_INVALID_ARGUMENT;
    }
    *device = sim_device_at(order[index]);
    return BRML_SUCCESS;
}

SIM_EXPORT brmlReturn_t brmlDeviceGetUUID(brmlDevice_t device, char *uuid, unsigned int length)
{
    ENTER(device);
    if (length <= strlen(device->uuid_text)) {
        return BRML_ERROR_INSUFFICIENT_SIZE;
    }
    snprintf(uuid, length, "%s", device->uuid_text);
    return BRML_SUCCESS;
}

SIM_EXPORT brmlReturn_t brmlDeviceGetMinorNumber(brmlDevice_t device, unsigned int *minorNumber)
{
    ENTER(device);
    *minorNumber = device->minor;
    return BRML_SUCCESS;
}

SIM_EXPORT brmlReturn_t brmlDeviceGetPciInfo(brmlDevice_t device, brmlPciInfo_t *pciInfo)
{
    ENTER(device);
    memset(pciInfo, 0, sizeof(*pciInfo));
    pciInfo->domain = device->pci_domain;
    pciInfo->bus = device->pci_bus;
    pciInfo->device = device->pci_slot;
    pciInfo->function = device->pci_function;
    snprintf(pciInfo->busId, sizeof(pciInfo->busId), "%s", device->pci_address);
    return BRML_SUCCESS;
}

SIM_EXPORT brmlReturn_t brmlDeviceGetMemoryInfo(brmlDevice_t device, brmlMemory_t *memory)
{
    ENTER(device);
    sim_memory_info(device->physical, &memory->free, &memory->total);
    memory->used = memory->total - memory->free;
    return BRML_SUCCESS;
}

SIM_EXPORT brmlReturn_t brmlDeviceGetUtilizationRates(brmlDevice_t device,
                                                      brmlUtilization_t *utilization)
{
    ENTER(device);
    utilization->gpu = (uint32_t)sim_number(device, "utilization_percent", 0);
    utilization->memory = (uint32_t)sim_number(device, "memory_utilization_percent", 0);
    return BRML_SUCCESS;
}

SIM_EXPORT brmlReturn_t brmlDeviceGetTemperature(brmlDevice_t device,
                                                 brmlTemperatureSensors_t sensorType,
                                                 unsigned int *temp)
{
    ENTER(device);
    if (sensorType != BRML_TEMPERATURE_GPU) {
        return BRML_ERROR_NOT_SUPPORTED;
    }
    *temp = (unsigned int)sim_number(device, "temperature_c", 45);
    return BRML_SUCCESS;
}

SIM_EXPORT brmlReturn_t brmlDeviceGetPowerUsage(brmlDevice_t device, unsigned int *power)
{
    ENTER(device);
    *power = (unsigned int)sim_number(device, "power_milliwatts", 80000);
    return BRML_SUCCESS;
}
