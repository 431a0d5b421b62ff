/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of libnvidia-ml.so.1 that the plugin uses (NVML API reference and nvml.h of 12.4; NVLink
 * and fields from nvml.h of 11.0 to 13.3), and NVTX's C exports. NVML ignores CUDA_VISIBLE_DEVICES:
 * the plugin finds NVML's devices by UUID or PCI address, never by number.
 *
 * The functions about MIG instances (nvmlDeviceGetGpuInstanceId and the functions before and after
 * it) follow nvml.h and were not tested on a device; they are optional, and the plugin uses them
 * only for a part's identity.
 */
#ifndef DS_ACCEL_PLUGINS_CUDA_NVML_API_H
#define DS_ACCEL_PLUGINS_CUDA_NVML_API_H

#include <stdint.h>

typedef int nvml_result_t;
typedef struct nvml_device_object *nvml_device_t;

/* The members are in NVML's order: total, free, used. */
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
} nvml_process_t; /* nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3() */
typedef struct {
    char short_address[16];
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int device_id;
    unsigned int subsystem_id;
    char address[32]; /* "00000000:65:00.0" */
} nvml_pci_t;
/*
 * The caller sets field and scope; NVML writes the value, and a separate result code for each
 * field.
 */
typedef struct {
    unsigned int field; /* NVML_FIELD_* */
    unsigned int scope; /* the link's number, for a field of one link */
    long long timestamp_us;
    long long latency_us;
    int type; /* NVML_TYPE_*: which member of the union is valid */
    nvml_result_t result;
    union {
        double real;
        int signed_int;
        unsigned int unsigned_int;
        unsigned long unsigned_long;
        unsigned long long unsigned_long_long;
        long long signed_long_long;
        unsigned short unsigned_short;
    } value;
} nvml_field_t;

_Static_assert(sizeof(nvml_memory_t) == 24, "nvmlMemory_t");
_Static_assert(sizeof(nvml_utilization_t) == 8, "nvmlUtilization_t");
_Static_assert(sizeof(nvml_process_t) == 24, "nvmlProcessInfo_t");
_Static_assert(sizeof(nvml_pci_t) == 68, "nvmlPciInfo_t");
_Static_assert(sizeof(nvml_field_t) == 40, "nvmlFieldValue_t");

#define NVML_SUCCESS 0
#define NVML_INSUFFICIENT_SIZE 7
#define NVML_GPU_IS_LOST 15
#define NVML_TEMPERATURE_GPU 0
#define NVML_CLOCK_SM 1
#define NVML_CLOCK_MEM 2
#define NVML_ECC_CORRECTED 0
#define NVML_ECC_UNCORRECTED 1
#define NVML_ECC_VOLATILE 0 /* errors counted since the driver was loaded */
#define NVML_FEATURE_ENABLED 1
#define NVML_REMOTE_SWITCH 2

/* Reasons for reduced clocks. */
#define NVML_REASON_IDLE 0x1u
#define NVML_REASON_APPLICATION_CLOCKS 0x2u
#define NVML_REASON_POWER_CAP 0x4u
#define NVML_REASON_HARDWARE 0x8u
#define NVML_REASON_SYNC_BOOST 0x10u
#define NVML_REASON_THERMAL 0x20u
#define NVML_REASON_HARDWARE_THERMAL 0x40u
#define NVML_REASON_HARDWARE_POWER_BRAKE 0x80u
#define NVML_REASON_DISPLAY_CLOCKS 0x100u

#define NVML_FIELD_LINK_SPEED_COMMON 90 /* MB/s, for all active links */
#define NVML_FIELD_LINK_COUNT 91
#define NVML_FIELD_LINK_SPEED 164 /* MB/s, for the link in scope; since 11.8 */
#define NVML_FIELD_LINK_STATE 165
#define NVML_FIELD_PCIE_SENT 197 /* bytes; since 12.5 */
#define NVML_FIELD_PCIE_RECEIVED 198

#define NVML_TYPE_UNSIGNED_INT 1
#define NVML_TYPE_UNSIGNED_LONG 2
#define NVML_TYPE_UNSIGNED_LONG_LONG 3
#define NVML_TYPE_SIGNED_LONG_LONG 4
#define NVML_TYPE_SIGNED_INT 5

#define NVML_LINK_LIMIT 36u /* maximum number of links of a device; 12 and 18 in older headers */

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
    nvml_result_t (*nvmlDeviceGetCurrentClocksEventReasons)(nvml_device_t device,
                                                            unsigned long long *reasons);
    /* Name of the preceding function until 12.2. */
    nvml_result_t (*nvmlDeviceGetCurrentClocksThrottleReasons)(nvml_device_t device,
                                                               unsigned long long *reasons);
    nvml_result_t (*nvmlDeviceGetTotalEccErrors)(nvml_device_t device, int kind, int since,
                                                 unsigned long long *count);
    nvml_result_t (*nvmlDeviceGetFieldValues)(nvml_device_t device, int count,
                                              nvml_field_t *fields);
    nvml_result_t (*nvmlDeviceGetNvLinkState)(nvml_device_t device, unsigned int link,
                                              int *is_active);
    nvml_result_t (*nvmlDeviceGetNvLinkVersion)(nvml_device_t device, unsigned int link,
                                                unsigned int *version);
    nvml_result_t (*nvmlDeviceGetNvLinkRemotePciInfo_v2)(nvml_device_t device, unsigned int link,
                                                         nvml_pci_t *pci);
    nvml_result_t (*nvmlDeviceGetNvLinkRemoteDeviceType)(nvml_device_t device, unsigned int link,
                                                         int *kind);
    nvml_result_t (*nvmlDeviceGetCurrPcieLinkGeneration)(nvml_device_t device,
                                                         unsigned int *generation);
    nvml_result_t (*nvmlDeviceGetCurrPcieLinkWidth)(nvml_device_t device, unsigned int *width);
    nvml_result_t (*nvmlDeviceGetComputeRunningProcesses_v3)(nvml_device_t device,
                                                             unsigned int *count, void *processes);
    /* Never called: which of these two functions exist shows the size of a process record. */
    nvml_result_t (*nvmlDeviceGetConfComputeMemSizeInfo)(nvml_device_t device, void *info);
    nvml_result_t (*nvmlDeviceGetRunningProcessDetailList)(nvml_device_t device, void *list);
    nvml_result_t (*nvmlDeviceGetMigMode)(nvml_device_t device, unsigned int *current,
                                          unsigned int *pending);
    nvml_result_t (*nvmlDeviceGetDeviceHandleFromMigDeviceHandle)(nvml_device_t part,
                                                                  nvml_device_t *whole);
    nvml_result_t (*nvmlDeviceGetGpuInstanceId)(nvml_device_t part, unsigned int *id);
    nvml_result_t (*nvmlDeviceGetComputeInstanceId)(nvml_device_t part, unsigned int *id);
};

/*
 * nvtxEventAttributes_t: versions 2 (nvToolsExt.h of 11.8) and 3 (nvtx3 of 13.0) have the same
 * layout.
 */
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

typedef struct nvtx_domain_object *nvtx_domain_t; /* NULL: the default domain */

/*
 * NVTX push and pop return the depth, or a negative number if no profiler is attached, which is not
 * an error.
 */
struct nvtx_api {
    int (*nvtxRangePushA)(const char *message);
    int (*nvtxRangePop)(void);
    nvtx_domain_t (*nvtxDomainCreateA)(const char *name);
    void (*nvtxDomainNameCategoryA)(nvtx_domain_t domain, uint32_t category, const char *name);
    int (*nvtxDomainRangePushEx)(nvtx_domain_t domain, const nvtx_attributes_t *attributes);
    int (*nvtxDomainRangePop)(nvtx_domain_t domain);
};

#endif
