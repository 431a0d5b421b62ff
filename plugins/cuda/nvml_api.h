/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What the plugin uses of libnvidia-ml.so.1 (NVML API reference, nvml.h of 12.4), and of NVTX's C
 * exports. NVML takes no notice of CUDA_VISIBLE_DEVICES: its devices are found by UUID or PCI
 * address, never by number.
 *
 * The functions about MIG instances (nvmlDeviceGetGpuInstanceId and the two beside it) are declared
 * from the API reference alone: unverified against a header, optional, and used to tell names only.
 */
#ifndef DS_ACCEL_NVML_API_H
#define DS_ACCEL_NVML_API_H

#include <stdint.h>

typedef int nvml_result_t;
typedef struct nvml_device_object *nvml_device_t;

/* Note the order: total, free, used. */
typedef struct {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
} nvml_memory_t;
typedef struct {
    unsigned int gpu;
    unsigned int memory;
} nvml_utilization_t;
typedef struct {
    unsigned int pid;
    unsigned long long used_bytes; /* all ones: not known */
    unsigned int gpu_instance;
    unsigned int compute_instance;
} nvml_process_t; /* of _v3 */

_Static_assert(sizeof(nvml_memory_t) == 24, "nvmlMemory_t");
_Static_assert(sizeof(nvml_utilization_t) == 8, "nvmlUtilization_t");
_Static_assert(sizeof(nvml_process_t) == 24, "nvmlProcessInfo_t");

#define NVML_SUCCESS 0
#define NVML_INSUFFICIENT_SIZE 7
#define NVML_GPU_IS_LOST 15
#define NVML_TEMPERATURE_GPU 0
#define NVML_CLOCK_SM 1
#define NVML_CLOCK_MEM 2
#define NVML_PCIE_TX 0
#define NVML_PCIE_RX 1

struct nvml_api {
    nvml_result_t (*nvmlInit_v2)(void);
    nvml_result_t (*nvmlShutdown)(void);
    const char *(*nvmlErrorString)(nvml_result_t result);
    nvml_result_t (*nvmlSystemGetDriverVersion)(char *version, unsigned int size);
    nvml_result_t (*nvmlDeviceGetCount_v2)(unsigned int *count);
    nvml_result_t (*nvmlDeviceGetHandleByIndex_v2)(unsigned int index, nvml_device_t *device);
    nvml_result_t (*nvmlDeviceGetHandleByUUID)(const char *uuid, nvml_device_t *device);
    nvml_result_t (*nvmlDeviceGetHandleByPciBusId_v2)(const char *address, nvml_device_t *device);
    nvml_result_t (*nvmlDeviceGetIndex)(nvml_device_t device, unsigned int *index);
    nvml_result_t (*nvmlDeviceGetMinorNumber)(nvml_device_t device, unsigned int *minor);
    nvml_result_t (*nvmlDeviceGetUUID)(nvml_device_t device, char *uuid, unsigned int size);
    nvml_result_t (*nvmlDeviceGetMemoryInfo)(nvml_device_t device, nvml_memory_t *memory);
    nvml_result_t (*nvmlDeviceGetUtilizationRates)(nvml_device_t device,
                                                   nvml_utilization_t *utilization);
    nvml_result_t (*nvmlDeviceGetTemperature)(nvml_device_t device, int sensor,
                                              unsigned int *degrees);
    nvml_result_t (*nvmlDeviceGetPowerUsage)(nvml_device_t device, unsigned int *milliwatts);
    nvml_result_t (*nvmlDeviceGetEnforcedPowerLimit)(nvml_device_t device,
                                                     unsigned int *milliwatts);
    nvml_result_t (*nvmlDeviceGetTotalEnergyConsumption)(nvml_device_t device,
                                                         unsigned long long *millijoules);
    nvml_result_t (*nvmlDeviceGetClockInfo)(nvml_device_t device, int clock, unsigned int *mhz);
    nvml_result_t (*nvmlDeviceGetFanSpeed)(nvml_device_t device, unsigned int *percent);
    nvml_result_t (*nvmlDeviceGetPcieThroughput)(nvml_device_t device, int counter,
                                                 unsigned int *kilobytes_per_s);
    nvml_result_t (*nvmlDeviceGetCurrPcieLinkGeneration)(nvml_device_t device,
                                                         unsigned int *generation);
    nvml_result_t (*nvmlDeviceGetCurrPcieLinkWidth)(nvml_device_t device, unsigned int *width);
    nvml_result_t (*nvmlDeviceGetComputeRunningProcesses_v3)(nvml_device_t device,
                                                             unsigned int *count,
                                                             nvml_process_t *processes);
    nvml_result_t (*nvmlDeviceGetMigMode)(nvml_device_t device, unsigned int *current,
                                          unsigned int *pending);
    nvml_result_t (*nvmlDeviceGetDeviceHandleFromMigDeviceHandle)(nvml_device_t part,
                                                                  nvml_device_t *whole);
    nvml_result_t (*nvmlDeviceGetGpuInstanceId)(nvml_device_t part, unsigned int *id);
    nvml_result_t (*nvmlDeviceGetComputeInstanceId)(nvml_device_t part, unsigned int *id);
};

/* nvtxEventAttributes_t, versions 2 and 3 (nvToolsExt.h of 11.8 and nvtx3 of 13.0) are alike. */
typedef struct {
    uint16_t version;
    uint16_t size_bytes;
    uint32_t category; /* 0: none */
    int32_t colour_type;
    uint32_t colour;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
} nvtx_attributes_t;

_Static_assert(sizeof(nvtx_attributes_t) == 48, "nvtxEventAttributes_t");

#define NVTX_VERSION_OF_ATTRIBUTES 2
#define NVTX_MESSAGE_TEXT 1

typedef struct nvtx_domain_object *nvtx_domain_t; /* NULL: the default one */

/* NVTX: depth, or negative without a profiler attached, which is no error. */
struct nvtx_api {
    int (*nvtxRangePushA)(const char *message);
    int (*nvtxRangePop)(void);
    nvtx_domain_t (*nvtxDomainCreateA)(const char *name);
    void (*nvtxDomainNameCategoryA)(nvtx_domain_t domain, uint32_t category, const char *name);
    int (*nvtxDomainRangePushEx)(nvtx_domain_t domain, const nvtx_attributes_t *attributes);
    int (*nvtxDomainRangePop)(nvtx_domain_t domain);
};

#endif
