/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated libtcml.so, by the prototypes of tcml.h. The vendor's fact "tcml_counts" selects what
 * the library counts: "devices", "cards" (the first device of each has the facts), or "nothing" (a
 * count that matches neither); "tcml_pci" selects how it reports an address: "yes", "no" (not
 * supported), "garbled" (numbers that differ from its text), "elsewhere" (another bus). Facts of a
 * device: "utilization_percent", "memory_utilization_percent", "temperature_c".
 */
#include "engine.h"

#include <stdio.h>
#include <string.h>

typedef int tcmlReturn_t;
typedef struct {
    uint32_t gpu, memory;
} tcmlUtilization_t;
typedef struct {
    uint64_t total, free, used;
} tcmlMemory_t;

#define TCML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE 16
#define TCML_DEVICE_PCI_BUS_ID_BUFFER_SIZE 32
typedef struct {
    char busIdLegacy[TCML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
    uint32_t domain; /* offset 16 */
    uint32_t bus;
    uint32_t device;
    uint32_t function;
    uint32_t pciDeviceId; /* offset 32 */
    uint32_t pciSubSystemId;
    char busId[TCML_DEVICE_PCI_BUS_ID_BUFFER_SIZE]; /* offset 40 */
} tcmlPciInfo_t;

#define TCML_SUCCESS 0
#define TCML_INVALID_ARGS 1
#define TCML_NOT_SUPPORTED 2

SIM_ASSERT(sizeof(tcmlPciInfo_t) == 72, "tcmlPciInfo_t");
SIM_ASSERT(offsetof(tcmlPciInfo_t, domain) == 16, "tcmlPciInfo_t.domain");
SIM_ASSERT(offsetof(tcmlPciInfo_t, busId) == 40, "tcmlPciInfo_t.busId");
SIM_ASSERT(sizeof(tcmlUtilization_t) == 8, "tcmlUtilization_t");
SIM_ASSERT(sizeof(tcmlMemory_t) == 24 && offsetof(tcmlMemory_t, free) == 8, "tcmlMemory_t");
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static uint32_t order[64];
static uint32_t count;
static int users;

static const struct sim_device *enter(const char *call, uint32_t dv_ind, tcmlReturn_t *code)
{
    *code = (tcmlReturn_t)sim_enter(call);
    if (*code != TCML_SUCCESS) {
        return NULL;
    }
    if (users == 0) {
        sim_misuse("%s: before tcmlInitWithFlags()", call);
    }
    *code = dv_ind < count ? TCML_SUCCESS : TCML_INVALID_ARGS;
    return dv_ind < count ? sim_device_at(order[dv_ind]) : NULL;
}

#define ENTER(index) \
    tcmlReturn_t code_; \
    const struct sim_device *device = enter(__func__, index, &code_); \
    if (device == NULL) { \
        return code_; \
    }

static bool is_first_of_card(uint32_t physical)
{
    return physical == 0 || strcmp(sim_device_at(physical)->pci_address,
                                   sim_device_at(physical - 1)->pci_address) != 0;
}

SIM_EXPORT tcmlReturn_t tcmlInitWithFlags(uint64_t flags)
{
    tcmlReturn_t code = (tcmlReturn_t)sim_enter(__func__);
    uint32_t total = sim_device_count("sdaa");
    const char *counts = sim_vendor_text("tcml_counts", "devices");

    if (code != TCML_SUCCESS || flags != 0) {
        return code != TCML_SUCCESS ? code : TCML_INVALID_ARGS;
    }
    count = 0;
    for (uint32_t i = 0; i < total; i++) {
        if (strcmp(counts, "devices") == 0 ||
            (strcmp(counts, "cards") == 0 && is_first_of_card(i)) ||
            (strcmp(counts, "nothing") == 0 && i < 3)) {
            order[count++] = i;
        }
    }
    users++;
    return TCML_SUCCESS;
}

SIM_EXPORT tcmlReturn_t tcmlShutdown(void)
{
    tcmlReturn_t code = (tcmlReturn_t)sim_enter(__func__);

    users--;
    return code;
}

SIM_EXPORT tcmlReturn_t tcmlDeviceGetCount(uint32_t *deviceCount)
{
    tcmlReturn_t code = (tcmlReturn_t)sim_enter(__func__);

    if (code == TCML_SUCCESS) {
        *deviceCount = count;
    }
    return code;
}

SIM_EXPORT tcmlReturn_t tcmlDeviceGetUuid(uint32_t dv_ind, char *uuid, uint32_t length)
{
    ENTER(dv_ind)
    snprintf(uuid, length, "%s", device->uuid_text);
    return TCML_SUCCESS;
}

SIM_EXPORT tcmlReturn_t tcmlDeviceGetPciInfo(uint32_t dv_ind, tcmlPciInfo_t *pci)
{
    const char *how = sim_vendor_text("tcml_pci", "yes");
    uint32_t bus;
    ENTER(dv_ind)

    if (strcmp(how, "no") == 0) {
        return TCML_NOT_SUPPORTED;
    }
    bus = (device->pci_bus + (strcmp(how, "elsewhere") == 0)) & 0xff;
    *pci = (tcmlPciInfo_t){.domain = device->pci_domain,
                           .bus = bus,
                           .device = device->pci_slot & 0x1f,
                           .function = device->pci_function & 7,
                           .pciDeviceId = 0x071900a1};
    snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%04X:%02X:%02X.%X", pci->domain & 0xffff,
             bus, pci->device, pci->function);
    snprintf(pci->busId, sizeof(pci->busId), "%08X:%02X:%02X.%X", pci->domain, bus, pci->device,
             pci->function);
    if (strcmp(how, "garbled") == 0) {
        pci->function ^= 1;
    }
    return TCML_SUCCESS;
}

SIM_EXPORT tcmlReturn_t tcmlDeviceGetUtilizationRates(uint32_t dv_ind,
                                                      tcmlUtilization_t *utilization)
{
    ENTER(dv_ind)
    utilization->gpu = (uint32_t)sim_number(device, "utilization_percent", 0);
    utilization->memory = (uint32_t)sim_number(device, "memory_utilization_percent", 0);
    return TCML_SUCCESS;
}

SIM_EXPORT tcmlReturn_t tcmlDeviceGetMemoryInfo(uint32_t dv_ind, tcmlMemory_t *memory)
{
    ENTER(dv_ind)
    sim_memory_info(device->physical, &memory->free, &memory->total);
    memory->used = memory->total - memory->free;
    return TCML_SUCCESS;
}

SIM_EXPORT tcmlReturn_t tcmlDeviceGetTemperature(uint32_t dv_ind, float *temperature)
{
    ENTER(dv_ind)
    *temperature = (float)sim_number(device, "temperature_c", 45);
    return TCML_SUCCESS;
}
