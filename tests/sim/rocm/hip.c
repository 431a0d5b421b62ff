/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated libamdhip64.so.6, by the prototypes of ROCm 6.3's hip_runtime_api.h; hip5.c builds it
 * as libamdhip64.so.5 of release 5.2: no hipLaunchHostFunc, no hipGetDevicePropertiesR0600, another
 * number for the flag of hipIpcOpenMemHandle.
 *
 * Facts of a device beyond the common ones: "arch", "compute_units", "memory_pools", "managed",
 * "virtual_memory", "granularity_bytes". Of the vendor: "narrows_affinity" (enumerating devices
 * leaves the caller on its first CPU, as in some releases), "lost_code" (the code of every call
 * once a device is lost), "heeds_alignment" (0: reserved addresses ignore the alignment).
 */
#include "../runtime/runtime.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#ifndef HIP_MAJOR
#define HIP_MAJOR 6
#endif

typedef enum {
    hipSuccess = 0,
    hipErrorInvalidValue = 1,
    hipErrorOutOfMemory = 2,
    hipErrorNotInitialized = 3,
    hipErrorInvalidMemcpyDirection = 21,
    hipErrorInsufficientDriver = 35,
    hipErrorNoDevice = 100,
    hipErrorInvalidDevice = 101,
    hipErrorPeerAccessUnsupported = 217,
    hipErrorInvalidHandle = 400,
    hipErrorIllegalState = 401,
    hipErrorNotReady = 600,
    hipErrorPeerAccessAlreadyEnabled = 704,
    hipErrorPeerAccessNotEnabled = 705,
    hipErrorHostMemoryAlreadyRegistered = 712,
    hipErrorHostMemoryNotRegistered = 713,
    hipErrorLaunchFailure = 719,
    hipErrorNotSupported = 801,
    hipErrorStreamCaptureUnsupported = 900,
    hipErrorStreamCaptureInvalidated = 901,
    hipErrorStreamCaptureUnjoined = 904,
    hipErrorStreamCaptureImplicit = 906,
    hipErrorCapturedEvent = 907,
    hipErrorStreamCaptureWrongThread = 908,
    hipErrorGraphExecUpdateFailure = 910,
    hipErrorUnknown = 999,
    hipErrorRuntimeOther = 1053
} hipError_t;

typedef int hipMemcpyKind;
#define hipMemcpyHostToHost 0
#define hipMemcpyHostToDevice 1
#define hipMemcpyDeviceToHost 2
#define hipMemcpyDeviceToDevice 3
#define hipMemcpyDefault 4

typedef enum {
    hipDeviceAttributeClockRate = 5,
    hipDeviceAttributeIntegrated = 16,
    hipDeviceAttributeL2CacheSize = 19,
    hipDeviceAttributeComputeCapabilityMajor = 23,
    hipDeviceAttributeManagedMemory = 24,
    hipDeviceAttributeMaxThreadsPerBlock = 56,
    hipDeviceAttributeMemoryBusWidth = 59,
    hipDeviceAttributeMemoryClockRate = 60,
    hipDeviceAttributeComputeCapabilityMinor = 61,
    hipDeviceAttributeMultiprocessorCount = 63,
    hipDeviceAttributePciBusId = 67,
    hipDeviceAttributePciDeviceId = 68,
    hipDeviceAttributePciDomainID = 69,
    hipDeviceAttributeWarpSize = 87,
    hipDeviceAttributeMemoryPoolsSupported = 88,
    hipDeviceAttributeVirtualMemoryManagementSupported = 89
} hipDeviceAttribute_t;

typedef int hipDevice_t;
typedef struct sim_stream *hipStream_t;
typedef struct sim_event *hipEvent_t;
typedef struct sim_graph *hipGraph_t;
typedef struct sim_graph *hipGraphExec_t;
typedef void *hipGraphNode_t;
typedef void *hipMemPool_t;
typedef void *hipDeviceptr_t;
typedef int hipStreamCaptureMode;
typedef int hipStreamCaptureStatus;
typedef void (*hipHostFn_t)(void *userData);
typedef void (*hipStreamCallback_t)(hipStream_t stream, hipError_t status, void *userData);
typedef struct {
    char bytes[16];
} hipUUID;
typedef struct {
    char reserved[64];
} hipIpcMemHandle_t;
typedef struct {
    char reserved[64];
} hipIpcEventHandle_t;

/* Virtual memory. In release 5.2 the properties of an allocation had the same members in another
 * order. */
typedef void *hipMemGenericAllocationHandle_t;
typedef int hipMemAllocationGranularity_flags;
#define hipMemAllocationGranularityMinimum 0
#define hipMemAllocationGranularityRecommended 1
#define hipMemAllocationTypePinned 1
#define hipMemLocationTypeDevice 1
#define hipMemAccessFlagsProtNone 0
#define hipMemAccessFlagsProtRead 1
#define hipMemAccessFlagsProtReadWrite 3
typedef struct {
    int type;
    int id;
} hipMemLocation;
#if HIP_MAJOR >= 6
typedef struct {
    int type;                  /* offset 0 */
    int requestedHandleType;   /* offset 4 */
    hipMemLocation location;   /* offset 8 */
    void *win32HandleMetaData; /* offset 16 */
    struct {
        unsigned char compressionType; /* offset 24 */
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
    } allocFlags;
} hipMemAllocationProp;
SIM_ASSERT(sizeof(hipMemAllocationProp) == 32, "hipMemAllocationProp");
SIM_ASSERT(offsetof(hipMemAllocationProp, location) == 8, "location");
SIM_ASSERT(offsetof(hipMemAllocationProp, allocFlags) == 24, "allocFlags");
#else
typedef struct {
    unsigned char compressionType;
    hipMemLocation location; /* offset 4 */
    int requestedHandleType;
    int type; /* offset 16 */
    unsigned short usage;
    void *win32HandleMetaData;
} hipMemAllocationProp;
#endif
typedef struct {
    hipMemLocation location;
    int flags; /* offset 8 */
} hipMemAccessDesc;
SIM_ASSERT(sizeof(hipMemLocation) == 8 && sizeof(hipMemAccessDesc) == 12, "hipMemAccessDesc");

/* The two layouts of the properties, with the members that callers read. */
typedef struct {
    char name[256];
    size_t totalGlobalMem; /* offset 256 */
    char unused1[12];
    int warpSize; /* offset 276 */
    char unused2[116];
    char gcnArchName[256]; /* offset 396 */
    char unused3[140];
} hipDeviceProp_t;
typedef struct {
    char name[256];
    char unused1[32];
    size_t totalGlobalMem; /* offset 288 */
    char unused2[12];
    int warpSize; /* offset 308 */
    char unused3[848];
    char gcnArchName[256]; /* offset 1160 */
    char unused4[56];
} hipDeviceProp_tR0600;

SIM_ASSERT(sizeof(hipDeviceProp_t) == 792, "hipDeviceProp_t");
SIM_ASSERT(offsetof(hipDeviceProp_t, warpSize) == 276, "warpSize");
SIM_ASSERT(offsetof(hipDeviceProp_t, gcnArchName) == 396, "gcnArchName");
SIM_ASSERT(sizeof(hipDeviceProp_tR0600) == 1472, "hipDeviceProp_tR0600");
SIM_ASSERT(offsetof(hipDeviceProp_tR0600, totalGlobalMem) == 288, "totalGlobalMem");
SIM_ASSERT(offsetof(hipDeviceProp_tR0600, warpSize) == 308, "warpSize");
SIM_ASSERT(offsetof(hipDeviceProp_tR0600, gcnArchName) == 1160, "gcnArchName");
SIM_ASSERT(sizeof(hipUUID) == 16, "hipUUID");
SIM_ASSERT(sizeof(hipIpcMemHandle_t) == 64 && sizeof(hipIpcEventHandle_t) == 64, "IPC handles");
SIM_ASSERT(sizeof(hipError_t) == 4 && sizeof(hipMemcpyKind) == 4, "enums are ints");
SIM_ASSERT(hipMemcpyHostToHost == RT_HOST_TO_HOST && hipMemcpyHostToDevice == RT_HOST_TO_DEVICE &&
               hipMemcpyDeviceToHost == RT_DEVICE_TO_HOST &&
               hipMemcpyDeviceToDevice == RT_DEVICE_TO_DEVICE && hipMemcpyDefault == RT_DEFAULT,
           "hipMemcpyKind");
#define hipStreamNonBlocking 1u
#define hipEventDisableTiming 2u
#define hipHostMallocAll 7u /* portable 1, mapped 2, write-combined 4 */
#define hipHostRegisterAll 3u
#define hipIpcMemLazyEnablePeerAccess (HIP_MAJOR >= 6 ? 1u : 0u)
#define hipMemAttachGlobal 1u

static const char *const visible[] = {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", NULL};

const struct rt_vendor rt_vendor = {
    .name = "rocm",
    .order = "pci",
    .visible = visible,
    .alternative = "CUDA_VISIBLE_DEVICES",
    .skips_repeats = true, /* HIP skips repeats; ROCr ends its list */
    .invalid_value = hipErrorInvalidValue,
    .out_of_memory = hipErrorOutOfMemory,
    .invalid_direction = hipErrorInvalidMemcpyDirection,
    .no_device = hipErrorNoDevice,
    .invalid_device = hipErrorInvalidDevice,
    .peer_unsupported = hipErrorPeerAccessUnsupported,
    .peer_enabled = hipErrorPeerAccessAlreadyEnabled,
    .peer_not_enabled = hipErrorPeerAccessNotEnabled,
    .invalid_handle = hipErrorInvalidHandle,
    .illegal_state = hipErrorIllegalState,
    .not_ready = hipErrorNotReady,
    .lost = hipErrorLaunchFailure,
    .already_registered = hipErrorHostMemoryAlreadyRegistered,
    .not_registered = hipErrorHostMemoryNotRegistered,
    .not_supported = hipErrorNotSupported,
    .capture_unsupported = hipErrorStreamCaptureUnsupported,
    .capture_invalidated = hipErrorStreamCaptureInvalidated,
    .capture_implicit = hipErrorStreamCaptureImplicit,
    .captured_event = hipErrorCapturedEvent,
    .capture_wrong_thread = hipErrorStreamCaptureWrongThread,
    .capture_unjoined = hipErrorStreamCaptureUnjoined,
    .update_failure = hipErrorGraphExecUpdateFailure,
    .is_hip = true,
};

__attribute__((constructor)) static void load(void)
{
    sim_failure = hipErrorRuntimeOther;
}

/* Every function is exported, and no function of this file calls another exported function. */
#define HIP(result) SIM_EXPORT result
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* ---- device --------------------------------------------------------------------------------- */

static void narrow_affinity(void)
{
    cpu_set_t cpus;
    int cpu = 0;

    if (sim_vendor_number("narrows_affinity", 0) == 0 ||
        sched_getaffinity(0, sizeof(cpus), &cpus) != 0) {
        return;
    }
    while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &cpus)) {
        cpu++;
    }
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    (void)sched_setaffinity(0, sizeof(cpus), &cpus);
}

/* Without a device, release 5.2 returns 101 here, and 100 from hipGetDeviceCount(). */
HIP(hipError_t) hipInit(unsigned int flags)
{
    int count;

    RT_ENTER_ANY();
    if (flags != 0) {
        return RT_RESULT(hipErrorInvalidValue);
    }
    if (rt_count(&count) != 0) {
        return RT_RESULT(hipErrorInvalidDevice);
    }
    narrow_affinity();
    return hipSuccess;
}

HIP(hipError_t) hipDriverGetVersion(int *driverVersion)
{
    RT_ENTER_ANY();
    *driverVersion = HIP_MAJOR >= 6 ? 60342134 : 50221153;
    return hipSuccess;
}

HIP(hipError_t) hipRuntimeGetVersion(int *runtimeVersion)
{
    RT_ENTER_ANY();
    *runtimeVersion = HIP_MAJOR >= 6 ? 60342134 : 50221153;
    return hipSuccess;
}

HIP(hipError_t) hipGetDeviceCount(int *count)
{
    RT_ENTER_ANY();
    narrow_affinity();
    return RT_RESULT(rt_count(count));
}

HIP(hipError_t) hipSetDevice(int deviceId)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_set_device(deviceId));
}

HIP(hipError_t) hipGetDevice(int *deviceId)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_get_device(deviceId));
}

HIP(hipError_t) hipDeviceGet(hipDevice_t *device, int ordinal)
{
    RT_ENTER_ANY();
    if (rt_device(ordinal) == NULL) {
        return RT_RESULT(hipErrorInvalidDevice);
    }
    *device = ordinal;
    return hipSuccess;
}

HIP(hipError_t) hipDeviceGetName(char *name, int len, hipDevice_t device)
{
    RT_ENTER_ANY();
    if (rt_device(device) == NULL || len <= 0) {
        return RT_RESULT(hipErrorInvalidDevice);
    }
    snprintf(name, (size_t)len, "%s", rt_device(device)->name);
    return hipSuccess;
}

/* Returns the digits of "GPU-0123456789abcdef" as text. */
HIP(hipError_t) hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device)
{
    RT_ENTER_ANY();
    if (rt_device(device) == NULL || strlen(rt_device(device)->uuid_text) != 20) {
        return RT_RESULT(hipErrorInvalidDevice);
    }
    memcpy(uuid->bytes, rt_device(device)->uuid_text + 4, sizeof(uuid->bytes));
    return hipSuccess;
}

HIP(hipError_t) hipDeviceTotalMem(size_t *bytes, hipDevice_t device)
{
    RT_ENTER_ANY();
    if (rt_device(device) == NULL) {
        return RT_RESULT(hipErrorInvalidDevice);
    }
    *bytes = rt_device(device)->memory_bytes;
    return hipSuccess;
}

static int attribute_of(const struct sim_device *device, hipDeviceAttribute_t attr, int *value)
{
    switch (attr) {
    case hipDeviceAttributeClockRate:
        return *value = 1700000, 0;
    case hipDeviceAttributeIntegrated:
        return *value = 0, 0;
    case hipDeviceAttributeL2CacheSize:
        return *value = 8 << 20, 0;
    case hipDeviceAttributeComputeCapabilityMajor:
        return *value = (int)device->compute_major, 0;
    case hipDeviceAttributeComputeCapabilityMinor:
        return *value = (int)device->compute_minor, 0;
    case hipDeviceAttributeManagedMemory:
        return *value = (int)sim_number(device, "managed", 1), 0;
    case hipDeviceAttributeMaxThreadsPerBlock:
        return *value = 1024, 0;
    case hipDeviceAttributeMemoryBusWidth:
        return *value = 4096, 0;
    case hipDeviceAttributeMemoryClockRate:
        return *value = 1600000, 0;
    case hipDeviceAttributeMultiprocessorCount:
        return *value = (int)sim_number(device, "compute_units", 104), 0;
    case hipDeviceAttributePciBusId:
        return *value = (int)device->pci_bus, 0;
    case hipDeviceAttributePciDeviceId:
        return *value = (int)device->pci_slot, 0;
    case hipDeviceAttributePciDomainID:
        return *value = (int)device->pci_domain, 0;
    case hipDeviceAttributeWarpSize:
        return *value = 64, 0;
    case hipDeviceAttributeMemoryPoolsSupported:
        return *value = (int)sim_number(device, "memory_pools", 1), 0;
    case hipDeviceAttributeVirtualMemoryManagementSupported:
        return *value = (int)sim_number(device, "virtual_memory", 1), 0;
    }
    return hipErrorInvalidValue;
}

HIP(hipError_t) hipDeviceGetAttribute(int *pi, hipDeviceAttribute_t attr, int deviceId)
{
    RT_ENTER_ANY();
    if (rt_device(deviceId) == NULL) {
        return RT_RESULT(hipErrorInvalidDevice);
    }
    return RT_RESULT(attribute_of(rt_device(deviceId), attr, pi));
}

/* The name without a suffix has the old struct in every release. */
HIP(hipError_t) hipGetDeviceProperties(hipDeviceProp_t *prop, int deviceId)
{
    const struct sim_device *device = rt_device(deviceId);

    RT_ENTER_ANY();
    if (device == NULL) {
        return RT_RESULT(hipErrorInvalidDevice);
    }
    memset(prop, 0x5a, sizeof(*prop));
    memcpy(prop->name, device->name, sizeof(device->name));
    prop->totalGlobalMem = device->memory_bytes;
    prop->warpSize = 64;
    snprintf(prop->gcnArchName, sizeof(prop->gcnArchName), "%s",
             sim_text(device, "arch", "gfx90a"));
    return hipSuccess;
}

#if HIP_MAJOR >= 6
HIP(hipError_t) hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *prop, int deviceId)
{
    const struct sim_device *device = rt_device(deviceId);

    RT_ENTER_ANY();
    if (device == NULL) {
        return RT_RESULT(hipErrorInvalidDevice);
    }
    memset(prop, 0x5a, sizeof(*prop));
    memcpy(prop->name, device->name, sizeof(device->name));
    prop->totalGlobalMem = device->memory_bytes;
    prop->warpSize = 64;
    snprintf(prop->gcnArchName, sizeof(prop->gcnArchName), "%s",
             sim_text(device, "arch", "gfx90a"));
    return hipSuccess;
}

HIP(hipError_t) hipLaunchHostFunc(hipStream_t stream, hipHostFn_t fn, void *userData)
{
    RT_ENTER();
    return RT_RESULT(rt_stream_task(stream, fn, userData));
}
#endif

HIP(hipError_t) hipDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
    RT_ENTER_ANY();
    if (rt_device(device) == NULL || len < 13) {
        return RT_RESULT(hipErrorInvalidDevice);
    }
    snprintf(pciBusId, (size_t)len, "%s", rt_device(device)->pci_address);
    return hipSuccess;
}

HIP(hipError_t) hipDeviceSynchronize(void)
{
    RT_ENTER();
    return RT_RESULT(rt_device_synchronize());
}

HIP(hipError_t) hipDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    RT_ENTER();
    *leastPriority = 1;
    *greatestPriority = -1;
    return hipSuccess;
}

HIP(hipError_t) hipGetLastError(void)
{
    return rt_last_error(true);
}

HIP(hipError_t) hipPeekAtLastError(void)
{
    return rt_last_error(false);
}

HIP(const char *) hipGetErrorName(hipError_t hip_error)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {
        {hipSuccess, "hipSuccess"},
        {hipErrorInvalidValue, "hipErrorInvalidValue"},
        {hipErrorOutOfMemory, "hipErrorOutOfMemory"},
        {hipErrorNotInitialized, "hipErrorNotInitialized"},
        {hipErrorInvalidMemcpyDirection, "hipErrorInvalidMemcpyDirection"},
        {hipErrorInsufficientDriver, "hipErrorInsufficientDriver"},
        {hipErrorNoDevice, "hipErrorNoDevice"},
        {hipErrorInvalidDevice, "hipErrorInvalidDevice"},
        {hipErrorPeerAccessUnsupported, "hipErrorPeerAccessUnsupported"},
        {hipErrorInvalidHandle, "hipErrorInvalidHandle"},
        {hipErrorIllegalState, "hipErrorIllegalState"},
        {hipErrorNotReady, "hipErrorNotReady"},
        {hipErrorPeerAccessAlreadyEnabled, "hipErrorPeerAccessAlreadyEnabled"},
        {hipErrorPeerAccessNotEnabled, "hipErrorPeerAccessNotEnabled"},
        {hipErrorHostMemoryAlreadyRegistered, "hipErrorHostMemoryAlreadyRegistered"},
        {hipErrorHostMemoryNotRegistered, "hipErrorHostMemoryNotRegistered"},
        {hipErrorLaunchFailure, "hipErrorLaunchFailure"},
        {hipErrorNotSupported, "hipErrorNotSupported"},
        {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported"},
        {hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated"},
        {hipErrorStreamCaptureUnjoined, "hipErrorStreamCaptureUnjoined"},
        {hipErrorStreamCaptureImplicit, "hipErrorStreamCaptureImplicit"},
        {hipErrorCapturedEvent, "hipErrorCapturedEvent"},
        {hipErrorStreamCaptureWrongThread, "hipErrorStreamCaptureWrongThread"},
        {hipErrorGraphExecUpdateFailure, "hipErrorGraphExecUpdateFailure"},
        {hipErrorUnknown, "hipErrorUnknown"},
        {hipErrorRuntimeOther, "hipErrorRuntimeOther"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].code == (int)hip_error) {
            return names[i].name;
        }
    }
    return "hipErrorUnknown";
}

HIP(hipError_t) hipDeviceCanAccessPeer(int *canAccessPeer, int deviceId, int peerDeviceId)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_can_access_peer(canAccessPeer, deviceId, peerDeviceId));
}

HIP(hipError_t) hipDeviceEnablePeerAccess(int peerDeviceId, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags != 0 ? hipErrorInvalidValue : rt_enable_peer(peerDeviceId));
}

HIP(hipError_t) hipDeviceDisablePeerAccess(int peerDeviceId)
{
    RT_ENTER();
    return RT_RESULT(rt_disable_peer(peerDeviceId));
}

/* ---- memory --------------------------------------------------------------------------------- */

HIP(hipError_t) hipMemGetInfo(size_t *free, size_t *total)
{
    RT_ENTER();
    return RT_RESULT(rt_memory_info(free, total));
}

HIP(hipError_t) hipMalloc(void **ptr, size_t size)
{
    RT_ENTER();
    return RT_RESULT(rt_malloc(ptr, size));
}

HIP(hipError_t) hipFree(void *ptr)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_free(ptr));
}

HIP(hipError_t) hipHostMalloc(void **ptr, size_t size, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT((flags & ~hipHostMallocAll) != 0 ? hipErrorInvalidValue
                                                      : rt_host_alloc(ptr, size, flags));
}

HIP(hipError_t) hipHostFree(void *ptr)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_host_free(ptr));
}

HIP(hipError_t) hipHostRegister(void *hostPtr, size_t sizeBytes, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT((flags & ~hipHostRegisterAll) != 0
                         ? hipErrorInvalidValue
                         : rt_host_register(hostPtr, sizeBytes, flags));
}

HIP(hipError_t) hipHostUnregister(void *hostPtr)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_host_unregister(hostPtr));
}

HIP(hipError_t) hipHostGetDevicePointer(void **devPtr, void *hstPtr, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags != 0 ? hipErrorInvalidValue : rt_host_device_pointer(devPtr, hstPtr));
}

HIP(hipError_t) hipMallocManaged(void **dev_ptr, size_t size, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags != hipMemAttachGlobal ? hipErrorInvalidValue
                                                 : rt_managed(dev_ptr, size));
}

HIP(hipError_t)
hipMemcpyAsync(void *dst, const void *src, size_t sizeBytes, hipMemcpyKind kind, hipStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_copy(dst, src, sizeBytes, (int)kind, stream));
}

HIP(hipError_t)
hipMemcpyPeerAsync(void *dst, int dstDeviceId, const void *src, int srcDevice, size_t sizeBytes,
                   hipStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_copy_peer(dst, dstDeviceId, src, srcDevice, sizeBytes, stream));
}

HIP(hipError_t)
hipMemsetD8Async(hipDeviceptr_t dest, unsigned char value, size_t count, hipStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_fill(dest, &value, sizeof(value), count, stream));
}

HIP(hipError_t)
hipMemsetD16Async(hipDeviceptr_t dest, unsigned short value, size_t count, hipStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_fill(dest, &value, sizeof(value), count, stream));
}

HIP(hipError_t)
hipMemsetD32Async(hipDeviceptr_t dst, int value, size_t count, hipStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_fill(dst, &value, sizeof(value), count, stream));
}

HIP(hipError_t) hipMallocAsync(void **dev_ptr, size_t size, hipStream_t stream)
{
    RT_ENTER();
    if (sim_number(sim_device_at(rt_current()), "memory_pools", 1) == 0) {
        return RT_RESULT(hipErrorNotSupported);
    }
    return RT_RESULT(rt_malloc_async(dev_ptr, size, stream));
}

HIP(hipError_t) hipFreeAsync(void *dev_ptr, hipStream_t stream)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_free_async(dev_ptr, stream));
}

/* Each device has one pool, which keeps no freed memory. */
HIP(hipError_t) hipDeviceGetDefaultMemPool(hipMemPool_t *mem_pool, int device)
{
    RT_ENTER();
    if (rt_device(device) == NULL) {
        return RT_RESULT(hipErrorInvalidDevice);
    }
    *mem_pool = rt_device(device);
    return hipSuccess;
}

HIP(hipError_t) hipMemPoolTrimTo(hipMemPool_t mem_pool, size_t min_bytes_to_hold)
{
    const struct sim_device *device = mem_pool;

    RT_ENTER();
    (void)min_bytes_to_hold;
    if (device == NULL || sim_device_at(device->physical) != device) {
        sim_misuse("hipMemPoolTrimTo: %p is no pool", mem_pool);
    }
    return hipSuccess;
}

HIP(hipError_t) hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *devPtr)
{
    RT_ENTER();
    return RT_RESULT(rt_ipc_memory_get(handle->reserved, devPtr));
}

HIP(hipError_t)
hipIpcOpenMemHandle(void **devPtr, hipIpcMemHandle_t handle, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags != hipIpcMemLazyEnablePeerAccess
                         ? hipErrorInvalidValue
                         : rt_ipc_memory_open(devPtr, handle.reserved));
}

HIP(hipError_t) hipIpcCloseMemHandle(void *devPtr)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_ipc_memory_close(devPtr));
}

HIP(hipError_t) hipIpcGetEventHandle(hipIpcEventHandle_t *handle, hipEvent_t event)
{
    RT_ENTER();
    return RT_RESULT(rt_ipc_event_get(handle->reserved, event));
}

HIP(hipError_t) hipIpcOpenEventHandle(hipEvent_t *event, hipIpcEventHandle_t handle)
{
    RT_ENTER();
    return RT_RESULT(rt_ipc_event_open((void **)event, handle.reserved));
}

/* ---- streams and events --------------------------------------------------------------------- */

HIP(hipError_t)
hipStreamCreateWithPriority(hipStream_t *stream, unsigned int flags, int priority)
{
    RT_ENTER();
    if ((flags & ~hipStreamNonBlocking) != 0) {
        return RT_RESULT(hipErrorInvalidValue);
    }
    return RT_RESULT(rt_stream_create((void **)stream, flags == hipStreamNonBlocking, priority));
}

HIP(hipError_t) hipStreamDestroy(hipStream_t stream)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_stream_destroy(stream, false));
}

HIP(hipError_t) hipStreamQuery(hipStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_stream_query(stream));
}

HIP(hipError_t) hipStreamSynchronize(hipStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_stream_synchronize(stream));
}

HIP(hipError_t) hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags != 0 ? hipErrorInvalidValue : rt_stream_wait_event(stream, event));
}

struct callback {
    hipStreamCallback_t call;
    hipStream_t stream;
    void *argument;
};

static void run_callback(void *argument)
{
    struct callback callback = *(struct callback *)argument;

    __builtin_free(argument);
    callback.call(callback.stream, hipSuccess, callback.argument);
}

HIP(hipError_t)
hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t call, void *userData,
                     unsigned int flags)
{
    struct callback *callback;
    int code;

    RT_ENTER();
    if (flags != 0 || call == NULL) {
        return RT_RESULT(hipErrorInvalidValue);
    }
    callback = __builtin_malloc(sizeof(*callback));
    if (callback == NULL) {
        return RT_RESULT(hipErrorOutOfMemory);
    }
    *callback = (struct callback){call, stream, userData};
    code = rt_stream_task(stream, run_callback, callback);
    if (code != 0) {
        __builtin_free(callback);
    }
    return RT_RESULT(code);
}

HIP(hipError_t) hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
{
    RT_ENTER();
    return RT_RESULT((flags & ~7u) != 0 ? hipErrorInvalidValue
                                        : rt_event_create((void **)event, flags));
}

HIP(hipError_t) hipEventRecord(hipEvent_t event, hipStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_event_record(event, stream));
}

HIP(hipError_t) hipEventDestroy(hipEvent_t event)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_event_destroy(event));
}

HIP(hipError_t) hipEventSynchronize(hipEvent_t event)
{
    RT_ENTER();
    return RT_RESULT(rt_event_synchronize(event));
}

HIP(hipError_t) hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop)
{
    RT_ENTER();
    return RT_RESULT(rt_event_elapsed(ms, start, stop));
}

HIP(hipError_t) hipEventQuery(hipEvent_t event)
{
    RT_ENTER();
    return RT_RESULT(rt_event_query(event));
}

/* ---- graphs --------------------------------------------------------------------------------- */

HIP(hipError_t) hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_exchange_mode(mode));
}

HIP(hipError_t) hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode)
{
    RT_ENTER();
    return RT_RESULT(rt_capture_begin(stream, mode));
}

HIP(hipError_t) hipStreamEndCapture(hipStream_t stream, hipGraph_t *pGraph)
{
    RT_ENTER();
    return RT_RESULT(rt_capture_end(stream, (void **)pGraph));
}

HIP(hipError_t) hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *pCaptureStatus)
{
    RT_ENTER();
    return RT_RESULT(rt_capture_status(stream, pCaptureStatus));
}

HIP(hipError_t)
hipGraphInstantiate(hipGraphExec_t *pGraphExec, hipGraph_t graph, hipGraphNode_t *pErrorNode,
                    char *pLogBuffer, size_t bufferSize)
{
    RT_ENTER();
    (void)pErrorNode;
    if (pLogBuffer == NULL && bufferSize != 0) {
        return RT_RESULT(hipErrorInvalidValue);
    }
    return RT_RESULT(rt_graph_instantiate((void **)pGraphExec, graph));
}

HIP(hipError_t)
hipGraphExecUpdate(hipGraphExec_t hGraphExec, hipGraph_t hGraph, hipGraphNode_t *hErrorNode_out,
                   int *updateResult_out)
{
    RT_ENTER();
    (void)hErrorNode_out;
    return RT_RESULT(rt_graph_update(hGraphExec, hGraph, updateResult_out));
}

HIP(hipError_t) hipGraphLaunch(hipGraphExec_t graphExec, hipStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_graph_launch(graphExec, stream));
}

HIP(hipError_t) hipGraphExecDestroy(hipGraphExec_t graphExec)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_graph_exec_destroy(graphExec));
}

HIP(hipError_t) hipGraphDestroy(hipGraph_t graph)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_graph_destroy(graph));
}

HIP(hipError_t) hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t *nodes, size_t *numNodes)
{
    RT_ENTER();
    if (nodes != NULL) {
        return RT_RESULT(hipErrorNotSupported);
    }
    return RT_RESULT(rt_graph_nodes(graph, numNodes));
}

/* ---- virtual memory ------------------------------------------------------------------------- */

#define GRANULARITY (2u << 20)

static size_t granularity_of(const struct sim_device *device)
{
    return (size_t)sim_number(device, "granularity_bytes", GRANULARITY);
}

static const struct sim_device *device_of(const hipMemAllocationProp *prop)
{
    return prop != NULL && prop->type == hipMemAllocationTypePinned &&
                   prop->location.type == hipMemLocationTypeDevice
               ? rt_device(prop->location.id)
               : NULL;
}

HIP(hipError_t)
hipMemGetAllocationGranularity(size_t *granularity, const hipMemAllocationProp *prop,
                               hipMemAllocationGranularity_flags option)
{
    const struct sim_device *device = device_of(prop);

    RT_ENTER_ANY();
    if (granularity == NULL || device == NULL ||
        (option != hipMemAllocationGranularityMinimum &&
         option != hipMemAllocationGranularityRecommended)) {
        return RT_RESULT(hipErrorInvalidValue);
    }
    *granularity = option == hipMemAllocationGranularityMinimum ? granularity_of(device)
                                                                : 2 * granularity_of(device);
    return hipSuccess;
}

/*
 * Returns addresses at a multiple of the minimum size that is no multiple of twice that size, the
 * recommended size.
 */
static void *reserve_between(size_t size, size_t least)
{
    char *place = sim_reserve(size + least, 2 * least, NULL);

    if (place == NULL || !sim_unreserve(place, size + least)) {
        return NULL;
    }
    return sim_reserve(size, 0, place + least);
}

HIP(hipError_t)
hipMemAddressReserve(void **ptr, size_t size, size_t alignment, void *addr,
                     unsigned long long flags)
{
    size_t least = granularity_of(sim_device_at(rt_current()));
    void *address;

    RT_ENTER();
    if (ptr == NULL || flags != 0 || size == 0 || size % least != 0 ||
        (alignment & (alignment - 1)) != 0) {
        return RT_RESULT(hipErrorInvalidValue);
    }
    address = sim_vendor_number("heeds_alignment", 1) != 0
                  ? sim_reserve(size, alignment < least ? least : alignment, addr)
                  : reserve_between(size, least);
    if (address == NULL) {
        return RT_RESULT(hipErrorOutOfMemory);
    }
    *ptr = address;
    return hipSuccess;
}

/* hipMemAddressFree dereferences a null pointer if the addresses are not reserved. */
HIP(hipError_t) hipMemAddressFree(void *devPtr, size_t size)
{
    RT_ENTER_ANY();
    if (!sim_unreserve(devPtr, size)) {
        sim_misuse("hipMemAddressFree(%p, %zu bytes): not reserved, or mapped", devPtr, size);
    }
    return hipSuccess;
}

HIP(hipError_t)
hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t size, const hipMemAllocationProp *prop,
             unsigned long long flags)
{
    const struct sim_device *device = device_of(prop);
    struct sim_physical *memory;

    RT_ENTER();
    if (handle == NULL || size == 0 || flags != 0 || device == NULL ||
        prop->requestedHandleType != 0 || size % granularity_of(device) != 0) {
        return RT_RESULT(hipErrorInvalidValue);
    }
    memory = sim_physical_create(device->physical, size);
    if (memory == NULL) {
        return RT_RESULT(hipErrorOutOfMemory);
    }
    sim_handle_add(memory, "memory-handle");
    *handle = memory;
    return hipSuccess;
}

/* Mappings keep the memory alive. */
HIP(hipError_t) hipMemRelease(hipMemGenericAllocationHandle_t handle)
{
    int code = rt_enter(__func__, false);

    sim_handle_remove(handle, "memory-handle", __func__);
    sim_physical_put(handle);
    return code;
}

HIP(hipError_t)
hipMemMap(void *ptr, size_t size, size_t offset, hipMemGenericAllocationHandle_t handle,
          unsigned long long flags)
{
    RT_ENTER();
    sim_handle_check(handle, "memory-handle", __func__);
    if (ptr == NULL || offset != 0 || flags != 0) {
        return RT_RESULT(hipErrorInvalidValue);
    }
    return RT_RESULT(sim_map(ptr, size, handle, 0) ? hipSuccess : hipErrorInvalidValue);
}

/*
 * Unmaps one mapping. Releases of 6.x treat a range of several mappings as its first mapping, and
 * leak the others. Without a mapping, they dereference a null pointer.
 */
HIP(hipError_t) hipMemUnmap(void *ptr, size_t size)
{
    struct sim_block block;

    RT_ENTER_ANY();
    if (!sim_find(ptr, &block) || block.address != ptr) {
        sim_misuse("hipMemUnmap(%p, %zu bytes): nothing is mapped there", ptr, size);
    }
    if (block.size_bytes != size) {
        sim_misuse("hipMemUnmap(%p, %zu bytes): the mapping has %llu", ptr, size,
                   (unsigned long long)block.size_bytes);
    }
    sim_device_synchronize(block.physical);
    return RT_RESULT(sim_unmap(ptr, size) ? hipSuccess : hipErrorInvalidValue);
}

/* The engine has one access mode for all devices: it grants the access that any device has. */
HIP(hipError_t)
hipMemSetAccess(void *ptr, size_t size, const hipMemAccessDesc *desc, size_t count)
{
    struct sim_block block;

    RT_ENTER();
    if (desc == NULL || count == 0 || !sim_find(ptr, &block)) {
        return RT_RESULT(hipErrorInvalidValue);
    }
    for (size_t i = 0; i < count; i++) {
        const struct sim_device *device = desc[i].location.type == hipMemLocationTypeDevice
                                              ? rt_device(desc[i].location.id)
                                              : NULL;

        if (device == NULL || (desc[i].flags != hipMemAccessFlagsProtNone &&
                               desc[i].flags != hipMemAccessFlagsProtRead &&
                               desc[i].flags != hipMemAccessFlagsProtReadWrite)) {
            return RT_RESULT(hipErrorInvalidValue);
        }
        if ((device->physical == block.physical || desc[i].flags != hipMemAccessFlagsProtNone) &&
            !sim_set_access(ptr, size, (uint32_t)desc[i].flags)) {
            return RT_RESULT(hipErrorInvalidValue);
        }
    }
    return hipSuccess;
}
