/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A simulated CNRT: devices. */
#include "sim_cnrt.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEVICES 64

/* the third version of cnrtDeviceProp_t */
struct cnrtDeviceProp_V3 {
    char name[256];
    int totalMem; /* MB */
    int maxDim[3];
    int ipuClockRate; /* kHz */
    int memClockRate;
    int totalConstMem;
    int major;
    int minor;
    int ECCEnabled;
    int pciBusID;
    int pciDeviceID;
    int pciDomainID;
    int maxL2CacheSize;
    int others[32];
    char uuid[16];
    uint64_t totalGlobalMemSize; /* bytes */
    int reserved[30];
};

SIM_ASSERT(offsetof(struct cnrtDeviceProp_V3, pciBusID) == 296, "cnrt.h 6.14");
SIM_ASSERT(offsetof(struct cnrtDeviceProp_V3, uuid) == 440, "cnrt.h 6.14");
SIM_ASSERT(sizeof(struct cnrtDeviceProp_V3) == 584, "cnrt.h 6.14");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int visible[MAX_DEVICES]; /* user number -> position in order */
static int visible_count;
static uint32_t order[MAX_DEVICES];
static uint32_t order_count;
static _Thread_local int current;

static bool is_visible(int number)
{
    int i = 0;

    while (i < visible_count && visible[i] != number) {
        i++;
    }
    return i < visible_count;
}

/*
 * Reads the numbers of MLU_VISIBLE_DEVICES: the first invalid number ends the list, a repeated
 * number hides all devices.
 */
static void read_visible(void)
{
    const char *text = getenv("MLU_VISIBLE_DEVICES");

    order_count = sim_order(NULL, "file", order, MAX_DEVICES);
    if (text == NULL) {
        for (uint32_t i = 0; i < order_count; i++) {
            visible[visible_count++] = (int)i;
        }
        return;
    }
    while (*text != '\0') {
        char *end;
        long value = strtol(text, &end, 10);

        if (end == text || value < 0 || value >= (long)order_count ||
            visible_count == MAX_DEVICES) {
            return;
        }
        if (is_visible((int)value)) {
            visible_count = 0;
            return;
        }
        visible[visible_count++] = (int)value;
        if (*end != ',') {
            return;
        }
        text = end + 1;
    }
}

__attribute__((constructor)) static void load(void)
{
    sim_device_count("mlu");
    sim_failure = cnrtErrorCndrvFuncCall;
}

int cnrt_device_count(void)
{
    pthread_once(&once, read_visible);
    return visible_count;
}

int32_t cnrt_physical(int device)
{
    return device >= 0 && device < cnrt_device_count() ? (int32_t)order[visible[device]] : -1;
}

cnrtRet_t cnrt_ready(int *device_out, uint32_t *physical_out)
{
    int32_t physical = cnrt_physical(current);

    if (physical < 0) {
        return cnrtErrorNoDevice;
    }
    *device_out = current;
    *physical_out = (uint32_t)physical;
    return sim_is_lost((uint32_t)physical) ? CNRT_LOST : cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtGetDeviceCount(unsigned int *pCount)
{
    BEGIN("cnrtGetDeviceCount");
    if (strcmp(sim_vendor_text("driver_state", "ok"), "broken") == 0) {
        return cnrtErrorInit;
    }
    cnrt_device_count();
    if (order_count == 0) {
        return cnrtErrorNoDevice; /* *pCount stays unchanged */
    }
    *pCount = (unsigned int)visible_count;
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtSetDevice(int ordinal)
{
    int32_t physical;

    BEGIN("cnrtSetDevice");
    physical = cnrt_physical(ordinal);
    if (physical < 0) {
        return cnrtErrorDeviceInvalid;
    }
    current = ordinal;
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtGetDevice(int *pOrdinal)
{
    BEGIN("cnrtGetDevice");
    if (cnrt_device_count() == 0) {
        return cnrtErrorNoDevice;
    }
    *pOrdinal = current;
    return cnrtSuccess;
}

/* Returns a fact of the device, by its number in cnrtDeviceAttr_t. */
static int64_t attribute(const struct sim_device *device, int attr)
{
    switch (attr) {
    case 0x01: /* ComputeCapabilityMajor */
        return device->compute_major;
    case 0x02:
        return device->compute_minor;
    case 0x04: /* FP16 */
        return sim_number(device, "fp16", 1);
    case 0x06: /* INT8 */
        return sim_number(device, "int8", 1);
    case 0x07: /* BF16 */
        return sim_number(device, "bf16", 1);
    case 0x205: /* ClusterCount */
        return sim_number(device, "clusters", 12);
    case 0x206: /* McorePerCluster */
        return sim_number(device, "cores_per_cluster", 4);
    case 0x301: /* MaxL2CacheSize */
        return sim_number(device, "l2_bytes", 96 << 20);
    case 0x402: /* IpuClockRate, kHz */
        return sim_number(device, "core_mhz", 1000) * 1000;
    case 0x404: /* GmemBusWidth */
        return sim_number(device, "bus_bits", 4096);
    case 0x405: /* TotalMemSize, MB */
        return (int64_t)(device->memory_bytes >> 20);
    case 0x406: /* PciBusID, PciDeviceID, PciDomainID */
        return device->pci_bus;
    case 0x407:
        return device->pci_slot;
    case 0x408:
        return device->pci_domain;
    default:
        return -1;
    }
}

SIM_EXPORT cnrtRet_t cnrtDeviceGetAttribute(int *pValue, int attr, int device)
{
    int32_t physical;
    int64_t value;

    BEGIN("cnrtDeviceGetAttribute");
    physical = cnrt_physical(device);
    if (physical < 0) {
        return cnrtErrorDeviceInvalid;
    }
    value = attribute(sim_device_at((uint32_t)physical), attr);
    if (value < 0) {
        return cnrtErrorArgsInvalid;
    }
    *pValue = (int)value;
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtGetDeviceProperties_V3(struct cnrtDeviceProp_V3 *prop, int device)
{
    int32_t physical;
    const struct sim_device *facts;

    BEGIN("cnrtGetDeviceProperties_V3");
    physical = cnrt_physical(device);
    if (physical < 0) {
        return cnrtErrorDeviceInvalid;
    }
    facts = sim_device_at((uint32_t)physical);
    memset(prop, 0, sizeof(*prop));
    snprintf(prop->name, sizeof(prop->name), "%s", facts->name);
    prop->totalMem = (int)(facts->memory_bytes >> 20);
    prop->pciBusID = (int)facts->pci_bus;
    prop->pciDeviceID = (int)facts->pci_slot;
    prop->pciDomainID = (int)facts->pci_domain;
    memcpy(prop->uuid, facts->uuid, sizeof(prop->uuid));
    prop->totalGlobalMemSize = facts->memory_bytes;
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtDeviceGetQueuePriorityRange(int *leastPriority, int *greatestPriority)
{
    BEGIN("cnrtDeviceGetQueuePriorityRange");
    *leastPriority = 0;
    *greatestPriority = -3;
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtSyncDevice(void)
{
    int device;
    uint32_t physical;
    cnrtRet_t code;

    BEGIN("cnrtSyncDevice");
    code = cnrt_ready(&device, &physical);
    if (code != cnrtSuccess) {
        return code;
    }
    if (cnrt_is_forbidden(physical)) {
        return cnrtErrorQueueCaptureUnsupported;
    }
    return cnrt_work(sim_device_synchronize(physical), physical);
}

SIM_EXPORT const char *cnrtGetErrorStr(cnrtRet_t err)
{
    return err == cnrtSuccess ? "success" : "simulated failure";
}

SIM_EXPORT cnrtRet_t cnrtGetPeerAccessibility(unsigned int *canAccess, int ordinal, int peerOrdinal)
{
    BEGIN("cnrtGetPeerAccessibility");
    if (cnrt_physical(ordinal) < 0 || cnrt_physical(peerOrdinal) < 0) {
        return cnrtErrorDeviceInvalid;
    }
    *canAccess = ordinal != peerOrdinal && sim_vendor_number("peer_access", 1) != 0;
    return cnrtSuccess;
}
