/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * libnvidia-ml.so.1, simulated: telemetry, as nvml.h of CUDA 12.4 declares it. It counts whole
 * devices by PCI address and ignores CUDA_VISIBLE_DEVICES; MIG parts have their own handles. Values
 * come from the description, or are those of an idle device; memory is what the driver's simulator
 * has allocated.
 *
 * "nvlinks" of a device is a list of its NVLinks, several of a kind in one text: "4 gpu
 * 0000:9a:00.0", "6 switch 0000:c1:00.0", "6 switch" for a switch that a virtual machine cannot
 * see, "cpu 0004:00:00.0", "2 down". "nvlink_answers" selects which query reports that a link is
 * up: "call", "field" or "both"; "nvlink_mbps_unknown" makes the speed of a link "not available",
 * as a "signed" or "unsigned" number. "pcie_tx_bytes" and "pcie_rx_bytes" are counters, which grow
 * by "pcie_tx_step_bytes" and "pcie_rx_step_bytes" with each query; with "pcie_counter_bits" 32
 * they wrap around.
 */
#include "engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

typedef int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;
typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;
typedef struct {
    unsigned int gpu, memory;
} nvmlUtilization_t;
typedef struct {
    char busIdLegacy[16];
    unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;
typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;
typedef union {
    double dVal;
    int siVal;
    unsigned int uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    signed long long sllVal;
    unsigned short usVal;
} nvmlValue_t;
typedef struct {
    unsigned int fieldId, scopeId;
    long long timestamp, latencyUsec;
    int valueType, nvmlReturn;
    nvmlValue_t value;
} nvmlFieldValue_t;

SIM_ASSERT(sizeof(nvmlMemory_t) == 24, "nvmlMemory_t");
SIM_ASSERT(sizeof(nvmlMemory_v2_t) == 40 && offsetof(nvmlMemory_v2_t, total) == 8 &&
               offsetof(nvmlMemory_v2_t, reserved) == 16 && offsetof(nvmlMemory_v2_t, free) == 24 &&
               offsetof(nvmlMemory_v2_t, used) == 32,
           "nvmlMemory_v2_t");
SIM_ASSERT(sizeof(nvmlUtilization_t) == 8, "nvmlUtilization_t");
SIM_ASSERT(sizeof(nvmlPciInfo_t) == 68 && offsetof(nvmlPciInfo_t, domain) == 16 &&
               offsetof(nvmlPciInfo_t, bus) == 20 && offsetof(nvmlPciInfo_t, device) == 24 &&
               offsetof(nvmlPciInfo_t, pciDeviceId) == 28 &&
               offsetof(nvmlPciInfo_t, pciSubSystemId) == 32 &&
               offsetof(nvmlPciInfo_t, busId) == 36,
           "nvmlPciInfo_t");
SIM_ASSERT(sizeof(nvmlProcessInfo_t) == 24, "nvmlProcessInfo_t");
SIM_ASSERT(sizeof(nvmlValue_t) == 8, "nvmlValue_t");
SIM_ASSERT(sizeof(nvmlFieldValue_t) == 40 && offsetof(nvmlFieldValue_t, scopeId) == 4 &&
               offsetof(nvmlFieldValue_t, timestamp) == 8 &&
               offsetof(nvmlFieldValue_t, latencyUsec) == 16 &&
               offsetof(nvmlFieldValue_t, valueType) == 24 &&
               offsetof(nvmlFieldValue_t, nvmlReturn) == 28 &&
               offsetof(nvmlFieldValue_t, value) == 32,
           "nvmlFieldValue_t");

nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlInitWithFlags(unsigned int flags);
nvmlReturn_t nvmlShutdown(void);
const char *nvmlErrorString(nvmlReturn_t result);
nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length);
nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *cudaDriverVersion);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *deviceCount);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index);
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minorNumber);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t device, void *info);
nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, void *list);
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor);
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *currentMode,
                                  unsigned int *pendingMode);
nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *isMigDevice);
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count);
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                 nvmlDevice_t *migDevice);
nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t migDevice,
                                                          nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id);
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization);
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensorType, unsigned int *temp);
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power);
nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *limit);
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit);
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy);
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned int *clock);
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type, unsigned int *clock);
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *speed);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
                                                     nvmlProcessInfo_t *infos);
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, int *current, int *pending);
nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node);
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int cpuSetSize,
                                      unsigned long *cpuSet);
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1, nvmlDevice_t device2,
                                                 int *pathInfo);
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, int counter, unsigned int *value);
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int *currLinkGen);
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *currLinkWidth);
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2, int p2pIndex,
                                    int *p2pStatus);
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long *clocksEventReasons);
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                       unsigned long long *clocksThrottleReasons);
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int errorType, int counterType,
                                         unsigned long long *eccCounts);
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int valuesCount,
                                      nvmlFieldValue_t *values);
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, int *isActive);
nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link,
                                        unsigned int *version);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                                 nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                 int *pNvLinkDeviceType);

#define MEMORY_V2 33554472u

enum {
    OK = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    GPU_IS_LOST = 15,
    UNKNOWN = 999
};

/* The handle of the device with physical number N is the address of element N. */
struct nvmlDevice_st {
    char unused;
};

static struct {
    pthread_mutex_t lock; /* guards the count of starts */
    uint32_t starts;
    uint32_t order[64];
    uint32_t count;
    struct nvmlDevice_st devices[64];
} nvml = {.lock = PTHREAD_MUTEX_INITIALIZER};

__attribute__((constructor)) static void set_failure(void)
{
    sim_failure = UNKNOWN;
}

static nvmlReturn_t enter(const char *call)
{
    nvmlReturn_t code = (nvmlReturn_t)sim_enter(call);
    bool is_started;

    pthread_mutex_lock(&nvml.lock);
    is_started = nvml.starts > 0;
    pthread_mutex_unlock(&nvml.lock);
    return code != OK ? code : is_started ? OK : UNINITIALIZED;
}

static const struct sim_device *device_of(nvmlDevice_t handle, const char *call)
{
    if (handle < nvml.devices || handle >= nvml.devices + sim_device_count("cuda")) {
        sim_misuse("%s: %p is no device of this library", call, (void *)handle);
    }
    return sim_device_at((uint32_t)(handle - nvml.devices));
}

static nvmlReturn_t enter_device(const char *call, nvmlDevice_t handle, const void *out,
                                 const struct sim_device **device_out)
{
    nvmlReturn_t code = enter(call);

    if (code != OK) {
        return code;
    }
    if (handle == NULL || out == NULL) {
        return INVALID_ARGUMENT;
    }
    *device_out = device_of(handle, call);
    return sim_is_lost((*device_out)->physical) ? GPU_IS_LOST : OK;
}

#define REQUIRE(condition, code) \
    do { \
        if (!(condition)) { \
            return code; \
        } \
    } while (0)
#define ENTER() \
    do { \
        nvmlReturn_t entered = enter(__func__); \
        REQUIRE(entered == OK, entered); \
    } while (0)
#define ENTER_DEVICE(handle, out, device) \
    do { \
        nvmlReturn_t entered = enter_device(__func__, handle, out, &(device)); \
        REQUIRE(entered == OK, entered); \
    } while (0)

static nvmlReturn_t put_text(char *text, unsigned int size, const char *value)
{
    REQUIRE(strlen(value) < size, INSUFFICIENT_SIZE);
    memcpy(text, value, strlen(value) + 1);
    return OK;
}

/* ---- start ---------------------------------------------------------------------------------- */

static nvmlReturn_t begin(const char *call)
{
    nvmlReturn_t code = (nvmlReturn_t)sim_enter(call);

    REQUIRE(code == OK, code);
    REQUIRE(sim_device_count("cuda") > 0, DRIVER_NOT_LOADED);
    return (nvmlReturn_t)sim_vendor_number("nvml_init_code", OK);
}

static nvmlReturn_t start(const char *call)
{
    nvmlReturn_t code = begin(call);

    pthread_mutex_lock(&nvml.lock);
    if (code == OK) {
        nvml.count = sim_order("pci", "pci", nvml.order, 64);
        nvml.starts++;
    } else if (nvml.starts == 0) {
        sim_shut_down();
    }
    pthread_mutex_unlock(&nvml.lock);
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlInit_v2(void)
{
    return start(__func__);
}

SIM_EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    REQUIRE(flags <= 3, INVALID_ARGUMENT);
    return start(__func__);
}

/* After the last shutdown a child may start the library; the driver handles forks itself. */
SIM_EXPORT nvmlReturn_t nvmlShutdown(void)
{
    ENTER();
    pthread_mutex_lock(&nvml.lock);
    if (--nvml.starts == 0) {
        sim_shut_down();
    }
    pthread_mutex_unlock(&nvml.lock);
    return OK;
}

SIM_EXPORT const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case OK:
        return "Success";
    case UNINITIALIZED:
        return "Uninitialized";
    case INVALID_ARGUMENT:
        return "Invalid Argument";
    case NOT_SUPPORTED:
        return "Not Supported";
    case NO_PERMISSION:
        return "Insufficient Permissions";
    case NOT_FOUND:
        return "Not Found";
    case INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    case GPU_IS_LOST:
        return "GPU is lost";
    default:
        return "Unknown Error";
    }
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    ENTER();
    REQUIRE(version != NULL, INVALID_ARGUMENT);
    return put_text(version, length, sim_vendor_text("driver_version", "580.65.06"));
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    ENTER();
    REQUIRE(version != NULL, INVALID_ARGUMENT);
    return put_text(version, length, sim_vendor_text("nvml_version", "13.580.65.06"));
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *cudaDriverVersion)
{
    ENTER();
    REQUIRE(cudaDriverVersion != NULL, INVALID_ARGUMENT);
    *cudaDriverVersion = (int)sim_vendor_number("driver_api", 13000);
    return OK;
}

/* ---- devices -------------------------------------------------------------------------------- */

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *deviceCount)
{
    ENTER();
    REQUIRE(deviceCount != NULL, INVALID_ARGUMENT);
    *deviceCount = nvml.count;
    return OK;
}

static nvmlReturn_t give_device(uint32_t physical, nvmlDevice_t *device)
{
    REQUIRE(sim_number(sim_device_at(physical), "permission", 1) != 0, NO_PERMISSION);
    REQUIRE(!sim_is_lost(physical), GPU_IS_LOST);
    *device = &nvml.devices[physical];
    return OK;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    ENTER();
    REQUIRE(device != NULL && index < nvml.count, INVALID_ARGUMENT);
    return give_device(nvml.order[index], device);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device)
{
    unsigned domain = 0, bus, slot, function = 0;

    ENTER();
    REQUIRE(pciBusId != NULL && device != NULL, INVALID_ARGUMENT);
    if (sscanf(pciBusId, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
        domain = 0;
        REQUIRE(sscanf(pciBusId, "%x:%x.%x", &bus, &slot, &function) >= 2, INVALID_ARGUMENT);
    }
    for (uint32_t i = 0; i < nvml.count; i++) {
        const struct sim_device *at = sim_device_at(nvml.order[i]);

        if (at->pci_domain == domain && at->pci_bus == bus && at->pci_slot == slot &&
            at->pci_function == function) {
            return give_device(nvml.order[i], device);
        }
    }
    return NOT_FOUND;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    uint32_t count = sim_device_count("cuda");

    ENTER();
    REQUIRE(uuid != NULL && device != NULL, INVALID_ARGUMENT);
    for (uint32_t i = 0; i < count; i++) {
        if (strcasecmp(sim_device_at(i)->uuid_text, uuid) == 0) {
            return give_device(i, device);
        }
    }
    return NOT_FOUND;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, index, it);
    for (uint32_t i = 0; i < nvml.count; i++) {
        if (nvml.order[i] == it->physical) {
            *index = i;
            return OK;
        }
    }
    *index = it->physical - (uint32_t)it->parent - 1; /* a part's index in its device */
    return OK;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minorNumber)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, minorNumber, it);
    REQUIRE(!it->is_partition, NOT_SUPPORTED);
    *minorNumber = it->minor;
    return OK;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, name, it);
    return put_text(name, length, it->name);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, uuid, it);
    return put_text(uuid, length, it->uuid_text);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, pci, it);
    memset(pci, 0, sizeof(*pci));
    pci->domain = it->pci_domain;
    pci->bus = it->pci_bus;
    pci->device = it->pci_slot;
    pci->pciDeviceId = (unsigned)sim_number(it, "pci_device_id", 0x233010de);
    pci->pciSubSystemId = (unsigned)sim_number(it, "pci_subsystem_id", 0x16c110de);
    snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%04X:%02X:%02X.%u",
             it->pci_domain & 0xFFFF, it->pci_bus & 0xFF, it->pci_slot & 0xFF,
             it->pci_function & 7);
    snprintf(pci->busId, sizeof(pci->busId), "%08X:%02X:%02X.%u", it->pci_domain, it->pci_bus,
             it->pci_slot, it->pci_function);
    return OK;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major,
                                                           int *minor)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, major, it);
    REQUIRE(minor != NULL, INVALID_ARGUMENT);
    *major = (int)it->compute_major;
    *minor = (int)it->compute_minor;
    return OK;
}

/* ---- parts ---------------------------------------------------------------------------------- */

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *currentMode,
                                             unsigned int *pendingMode)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, currentMode, it);
    REQUIRE(pendingMode != NULL, INVALID_ARGUMENT);
    *currentMode = *pendingMode = it->is_partitioned;
    return OK;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *isMigDevice)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, isMigDevice, it);
    *isMigDevice = it->is_partition;
    return OK;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, count, it);
    *count = it->is_partitioned ? 7 : 0;
    return OK;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                            nvmlDevice_t *migDevice)
{
    const struct sim_device *it;
    uint32_t part;

    ENTER_DEVICE(device, migDevice, it);
    part = it->physical + 1 + index;
    REQUIRE(index < 7 && part < sim_device_count("cuda") &&
                sim_device_at(part)->parent == (int32_t)it->physical,
            NOT_FOUND);
    return give_device(part, migDevice);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t migDevice,
                                                                     nvmlDevice_t *device)
{
    const struct sim_device *it;

    ENTER_DEVICE(migDevice, device, it);
    REQUIRE(it->is_partition, INVALID_ARGUMENT);
    return give_device((uint32_t)it->parent, device);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, id, it);
    REQUIRE(it->is_partition, NOT_SUPPORTED);
    *id = it->partition_instance;
    return OK;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, id, it);
    REQUIRE(it->is_partition, NOT_SUPPORTED);
    *id = it->partition_subinstance;
    return OK;
}

/* ---- sensors -------------------------------------------------------------------------------- */

/*
 * Returns the used and total memory. The driver's simulator counts this process's memory; other
 * processes' memory comes from the description.
 */
static void memory_of(const struct sim_device *it, unsigned long long *used, uint64_t *total)
{
    uint64_t free_bytes;

    sim_memory_info(it->physical, &free_bytes, total);
    *used = *total - free_bytes + (unsigned long long)sim_number(it, "other_process_bytes", 0);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    const struct sim_device *it;
    unsigned long long used;
    uint64_t total;

    ENTER_DEVICE(device, memory, it);
    memory_of(it, &used, &total);
    *memory = (nvmlMemory_t){total, total - used, used};
    return OK;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    const struct sim_device *it;
    unsigned long long used, reserved;
    uint64_t total;

    ENTER_DEVICE(device, memory, it);
    REQUIRE(memory->version == MEMORY_V2, INVALID_ARGUMENT);
    memory_of(it, &used, &total);
    reserved = (unsigned long long)sim_number(it, "reserved_bytes", 0);
    *memory = (nvmlMemory_v2_t){MEMORY_V2, total, reserved, total - used - reserved, used};
    return OK;
}

/*
 * Returns a value of the description, or the given default; negative: the device does not have the
 * value.
 */
static nvmlReturn_t figure(const struct sim_device *it, const char *fact, int64_t otherwise,
                           unsigned int *value)
{
    int64_t number = sim_number(it, fact, otherwise);

    REQUIRE(number >= 0 && !it->is_partition, NOT_SUPPORTED);
    *value = (unsigned int)number;
    return OK;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
                                                      nvmlUtilization_t *utilization)
{
    const struct sim_device *it;
    nvmlReturn_t code;

    ENTER_DEVICE(device, utilization, it);
    code = figure(it, "utilization_percent", 0, &utilization->gpu);
    return code == OK ? figure(it, "memory_utilization_percent", 0, &utilization->memory) : code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensorType,
                                                 unsigned int *temp)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, temp, it);
    REQUIRE(sensorType == 0, INVALID_ARGUMENT);
    return figure(it, "temperature_c", 34, temp);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, power, it);
    return figure(it, "power_mw", 71250, power);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *limit)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, limit, it);
    return figure(it, "power_limit_mw", 700000, limit);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, limit, it);
    return figure(it, "enforced_power_limit_mw", sim_number(it, "power_limit_mw", 700000), limit);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
                                                            unsigned long long *energy)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, energy, it);
    REQUIRE(!it->is_partition, NOT_SUPPORTED);
    *energy = (unsigned long long)sim_number(it, "energy_mj", 123456789);
    return OK;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned int *clock)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, clock, it);
    REQUIRE(type >= 0 && type <= 3, INVALID_ARGUMENT);
    return type == 2 ? figure(it, "memory_clock_mhz", 2619, clock)
                     : figure(it, "clock_mhz", 345, clock);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type,
                                                  unsigned int *clock)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, clock, it);
    REQUIRE(type >= 0 && type <= 3, INVALID_ARGUMENT);
    return type == 2 ? figure(it, "max_memory_clock_mhz", 2619, clock)
                     : figure(it, "max_clock_mhz", 1980, clock);
}

/* The chassis cools the device with air, unless the description says otherwise. */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *speed)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, speed, it);
    return figure(it, "fan_percent", -1, speed);
}

#define OTHER_LIMIT 1024u

/*
 * Writes one record. With the vendor's fact "nvml_process_bytes" 32 the record is that of early
 * R535 drivers, eight bytes longer than in any header: they contain the memory protected by
 * confidential computing.
 */
static void write_process(unsigned char *infos, unsigned i, const nvmlProcessInfo_t *process)
{
    const size_t size = (size_t)sim_vendor_number("nvml_process_bytes", sizeof(*process));

    memset(infos + i * size, 0, size);
    memcpy(infos + i * size, process, sizeof(*process));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
                                                                unsigned int *infoCount,
                                                                nvmlProcessInfo_t *infos)
{
    const struct sim_device *it;
    nvmlProcessInfo_t found[OTHER_LIMIT + 1];
    unsigned int count = 0, capacity;
    uint64_t free_bytes, total;
    int64_t other, other_count;

    ENTER_DEVICE(device, infoCount, it);
    sim_memory_info(it->physical, &free_bytes, &total);
    other = sim_number(it, "other_process", 0);
    other_count = sim_number(it, "other_process_count", other != 0);
    while (count < OTHER_LIMIT && count < other_count) {
        found[count++] = (nvmlProcessInfo_t){
            (unsigned)other, (unsigned long long)sim_number(it, "other_process_bytes", 0), 0, 0};
    }
    if (free_bytes < total) {
        found[count++] = (nvmlProcessInfo_t){(unsigned)getpid(), total - free_bytes, 0, 0};
    }
    for (unsigned i = 0; i < count; i++) {
        found[i].gpuInstanceId = it->is_partition ? it->partition_instance : UINT32_MAX;
        found[i].computeInstanceId = it->is_partition ? it->partition_subinstance : UINT32_MAX;
    }
    capacity = *infoCount;
    *infoCount = count;
    REQUIRE(count <= capacity, INSUFFICIENT_SIZE);
    REQUIRE(count == 0 || infos != NULL, INVALID_ARGUMENT);
    for (unsigned i = 0; i < count; i++) {
        write_process((unsigned char *)infos, i, &found[i]);
    }
    return OK;
}

/* Drivers from R530 on have this function; drivers after the early R535 also have the next one. */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t device, void *info)
{
    (void)device;
    (void)info;
    return NOT_SUPPORTED;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, void *list)
{
    (void)device;
    (void)list;
    return NOT_SUPPORTED;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, int *current, int *pending)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, current, it);
    REQUIRE(pending != NULL, INVALID_ARGUMENT);
    *current = *pending = (int)sim_number(it, "ecc", 1);
    return OK;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, node, it);
    REQUIRE(it->numa_node >= 0, NOT_SUPPORTED);
    *node = (unsigned)it->numa_node;
    return OK;
}

/* The machine's CPUs are in sysfs; the library returns them as a mask of several words. */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int cpuSetSize,
                                                 unsigned long *cpuSet)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, cpuSet, it);
    REQUIRE(cpuSetSize > 0, INVALID_ARGUMENT);
    memset(cpuSet, 0, cpuSetSize * sizeof(*cpuSet));
    cpuSet[0] = (unsigned long)sim_number(it, "cpu_mask", 1);
    return OK;
}

/* Stores a level: 0 internal, 40 the same NUMA node, 50 the system. */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1,
                                                            nvmlDevice_t device2, int *pathInfo)
{
    const struct sim_device *one, *other;

    ENTER_DEVICE(device1, pathInfo, one);
    REQUIRE(device2 != NULL, INVALID_ARGUMENT);
    other = device_of(device2, __func__);
    *pathInfo = strcmp(one->pci_address, other->pci_address) == 0 ? 0
                : one->numa_node == other->numa_node              ? 40
                                                                  : 50;
    return OK;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, int counter,
                                                    unsigned int *value)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, value, it);
    REQUIRE(counter == 0 || counter == 1, INVALID_ARGUMENT);
    return figure(it, counter == 0 ? "pcie_tx_kb_per_s" : "pcie_rx_kb_per_s", 0, value);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device,
                                                            unsigned int *currLinkGen)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, currLinkGen, it);
    return figure(it, "pcie_generation", 5, currLinkGen);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device,
                                                       unsigned int *currLinkWidth)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, currLinkWidth, it);
    return figure(it, "link_width", 16, currLinkWidth);
}

/* Stores a status: 0 is "OK", 3 "not supported". */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2,
                                               int p2pIndex, int *p2pStatus)
{
    const struct sim_device *one, *other;

    ENTER_DEVICE(device1, p2pStatus, one);
    REQUIRE(device2 != NULL && p2pIndex >= 0 && p2pIndex <= 4, INVALID_ARGUMENT);
    other = device_of(device2, __func__);
    *p2pStatus = one != other && !one->is_partition && !other->is_partition &&
                         sim_vendor_number("peer", 1) != 0
                     ? 0
                     : 3;
    return OK;
}

/* Reads the bits of nvml.h from the description; 1 is "idle". */
static nvmlReturn_t reasons_of(const struct sim_device *it, unsigned long long *reasons)
{
    int64_t bits = sim_number(it, "throttle_reasons", 1);

    REQUIRE(bits >= 0 && !it->is_partition, NOT_SUPPORTED);
    *reasons = (unsigned long long)bits;
    return OK;
}

SIM_EXPORT nvmlReturn_t
nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *clocksEventReasons)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, clocksEventReasons, it);
    return reasons_of(it, clocksEventReasons);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(
    nvmlDevice_t device, unsigned long long *clocksThrottleReasons)
{
    const struct sim_device *it;

    ENTER_DEVICE(device, clocksThrottleReasons, it);
    return reasons_of(it, clocksThrottleReasons);
}

/*
 * errorType: 0 corrected, 1 uncorrected. counterType: 0 since the driver was loaded, 1 in the
 * device's lifetime.
 */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int errorType,
                                                    int counterType, unsigned long long *eccCounts)
{
    static const char *const facts[2][2] = {{"ecc_corrected", "ecc_corrected_in_life"},
                                            {"ecc_uncorrected", "ecc_uncorrected_in_life"}};
    const struct sim_device *it;

    ENTER_DEVICE(device, eccCounts, it);
    REQUIRE(errorType >= 0 && errorType <= 1 && counterType >= 0 && counterType <= 1,
            INVALID_ARGUMENT);
    REQUIRE(sim_number(it, "ecc", 1) != 0 && !it->is_partition, NOT_SUPPORTED);
    *eccCounts = (unsigned long long)sim_number(it, facts[errorType][counterType], 0);
    return OK;
}

/* ---- NVLink --------------------------------------------------------------------------------- */

#define MAX_LINKS 36u

/* Returns the other end of link number `link`: "switch 0000:c1:00.0". NULL: no such link. */
static const char *other_end(const struct sim_device *it, unsigned int link)
{
    const char *text;

    for (uint32_t i = 0; (text = sim_item(it, "nvlinks", i)) != NULL && !it->is_partition; i++) {
        char *kind;
        unsigned long count = strtoul(text, &kind, 10);

        count = kind == text ? 1 : count;
        if (link < count) {
            return kind + strspn(kind, " ");
        }
        link -= (unsigned int)count;
    }
    return NULL;
}

/* Returns the number of links; a future device may have more than this library's calls accept. */
static unsigned int link_count(const struct sim_device *it)
{
    unsigned int count = 0;

    while (other_end(it, count) != NULL) {
        count++;
    }
    return count;
}

/* Returns the state of a link, queried by the "call" or the "field". */
static int link_state(const struct sim_device *it, const char *end, const char *asked)
{
    const char *answers = sim_text(it, "nvlink_answers", "both");

    return strcmp(end, "down") != 0 &&
           (strcmp(answers, "both") == 0 || strcmp(answers, asked) == 0);
}

/* A link past the last fails like a link of a device without links. */
static nvmlReturn_t enter_link(const struct sim_device *it, unsigned int link, const char **end_out)
{
    REQUIRE(link < MAX_LINKS, INVALID_ARGUMENT);
    REQUIRE(link_count(it) > 0, NOT_SUPPORTED);
    *end_out = other_end(it, link);
    return *end_out != NULL ? OK : INVALID_ARGUMENT;
}

#define ENTER_LINK(device, link, out, it, end) \
    do { \
        nvmlReturn_t found; \
        ENTER_DEVICE(device, out, it); \
        found = enter_link(it, link, &(end)); \
        REQUIRE(found == OK, found); \
    } while (0)

SIM_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
                                                 int *isActive)
{
    const struct sim_device *it;
    const char *end;

    ENTER_LINK(device, link, isActive, it, end);
    *isActive = link_state(it, end, "call");
    return OK;
}

/* version 6 is NVLink 4.0 */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link,
                                                   unsigned int *version)
{
    const struct sim_device *it;
    const char *end;

    ENTER_LINK(device, link, version, it, end);
    *version = (unsigned int)sim_number(it, "nvlink_version", 6);
    return OK;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                                            nvmlPciInfo_t *pci)
{
    const struct sim_device *it;
    unsigned domain, bus, slot, function;
    const char *end;

    ENTER_LINK(device, link, pci, it, end);
    REQUIRE(strcmp(end, "down") != 0, NOT_SUPPORTED);
    memset(pci, 0xA5, sizeof(*pci)); /* pciSubSystemId keeps this value */
    if (sscanf(end, "%*s %x:%x:%x.%x", &domain, &bus, &slot, &function) == 4) {
        pci->domain = domain;
        pci->bus = bus;
        pci->device = slot;
        snprintf(pci->busId, sizeof(pci->busId), "%08X:%02X:%02X.%u", domain, bus, slot, function);
    } else {
        pci->domain = pci->bus = pci->device = UINT32_MAX;
        snprintf(pci->busId, sizeof(pci->busId), "FFFFFFF:FFFF:FF");
    }
    snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%.15s", pci->busId);
    return OK;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                            int *pNvLinkDeviceType)
{
    const struct sim_device *it;
    const char *end;

    ENTER_LINK(device, link, pNvLinkDeviceType, it, end);
    *pNvLinkDeviceType = strncmp(end, "gpu", 3) == 0      ? 0
                         : strncmp(end, "cpu", 3) == 0    ? 1
                         : strncmp(end, "switch", 6) == 0 ? 2
                                                          : 255;
    return OK;
}

/* ---- fields --------------------------------------------------------------------------------- */

enum field {
    NVLINK_SPEED_COMMON = 90, /* MB/s, of all links */
    NVLINK_COUNT = 91,
    NVLINK_SPEED = 164, /* MB/s, of the link in scopeId */
    NVLINK_STATE = 165,
    PCIE_TX = 197,
    PCIE_RX = 198
};

enum value_type {
    UNSIGNED_INT = 1,
    UNSIGNED_LONG_LONG = 3,
    SIGNED_INT = 5
};

#define NOT_AVAILABLE (-1) /* NVML_VALUE_NOT_AVAILABLE: a value returned with success */

static void put_number(nvmlFieldValue_t *field, unsigned int number)
{
    field->valueType = UNSIGNED_INT;
    field->value.uiVal = number;
}

static nvmlReturn_t put_link(const struct sim_device *it, nvmlFieldValue_t *field)
{
    const char *unknown = sim_text(it, "nvlink_mbps_unknown", "");
    const char *end;
    nvmlReturn_t code = enter_link(it, field->scopeId, &end);

    REQUIRE(code == OK, code);
    if (field->fieldId == NVLINK_STATE) {
        put_number(field, (unsigned int)link_state(it, end, "field"));
        return OK;
    }
    REQUIRE(strcmp(end, "down") != 0, NOT_SUPPORTED);
    if (unknown[0] != '\0') {
        field->valueType = strcmp(unknown, "signed") == 0 ? SIGNED_INT : UNSIGNED_INT;
        field->value.siVal = NOT_AVAILABLE;
        return OK;
    }
    field->valueType = UNSIGNED_INT;
    return figure(it, "nvlink_mbps", 26562, &field->value.uiVal);
}

static nvmlReturn_t put_counter(const struct sim_device *it, nvmlFieldValue_t *field)
{
    static _Atomic uint64_t queries[64][2];
    const int is_rx = field->fieldId == PCIE_RX;
    uint64_t count = atomic_fetch_add(&queries[it->physical % 64][is_rx], 1) + 1;
    uint64_t value =
        (uint64_t)sim_number(it, is_rx ? "pcie_rx_bytes" : "pcie_tx_bytes", 0) +
        count * (uint64_t)sim_number(it, is_rx ? "pcie_rx_step_bytes" : "pcie_tx_step_bytes", 0);

    REQUIRE(!it->is_partition, NOT_SUPPORTED);
    if (sim_number(it, "pcie_counter_bits", 64) == 32) {
        put_number(field, (unsigned int)value);
    } else {
        field->valueType = UNSIGNED_LONG_LONG;
        field->value.ullVal = value;
    }
    return OK;
}

static nvmlReturn_t put_field(const struct sim_device *it, nvmlFieldValue_t *field)
{
    switch (field->fieldId) {
    case NVLINK_COUNT:
        REQUIRE(!it->is_partition, NOT_SUPPORTED);
        put_number(field, link_count(it));
        return OK;
    case NVLINK_SPEED_COMMON:
        REQUIRE(link_count(it) > 0, NOT_SUPPORTED);
        field->valueType = UNSIGNED_INT;
        return figure(it, "nvlink_mbps_common", -1, &field->value.uiVal);
    case NVLINK_SPEED:
    case NVLINK_STATE:
        return put_link(it, field);
    case PCIE_TX:
    case PCIE_RX:
        return put_counter(it, field);
    default:
        sim_misuse("nvmlDeviceGetFieldValues: field %u is none that is simulated", field->fieldId);
    }
}

/* Each field has its own code. Bytes that a field does not set are not zero. */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int valuesCount,
                                                 nvmlFieldValue_t *values)
{
    const struct sim_device *it;
    struct timespec now;

    ENTER_DEVICE(device, values, it);
    REQUIRE(valuesCount > 0, INVALID_ARGUMENT);
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < valuesCount; i++) {
        memset(&values[i].value, 0xA5, sizeof(values[i].value));
        values[i].valueType = 0;
        values[i].timestamp = (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
        values[i].latencyUsec = 0;
        values[i].nvmlReturn = put_field(it, &values[i]);
    }
    return OK;
}
