/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of libamdhip64 that the plugin uses: HIP's runtime API as documented for ROCm 5.2 to 6.3
 * (hip/hip_runtime_api.h). Functions without a "since" comment are exported since ROCm 5.2 at the
 * latest. Numeric constants are the same in all releases. Where the layout of a struct differs
 * between releases, the plugin uses calls without the struct, or supports both layouts
 * (HIP_PROPERTIES_*).
 */
#ifndef DS_ACCEL_PLUGINS_ROCM_HIP_H
#define DS_ACCEL_PLUGINS_ROCM_HIP_H

#include "cuda_shaped.h"

typedef int hip_error_t;
typedef void *hip_stream_t;
typedef void *hip_graph_t;
typedef void *hip_graph_exec_t;
typedef void *hip_pool_t;

/* An IPC handle; the call that opens the memory receives it by value. */
struct hip_ipc_memory {
    char bytes[64];
};
struct hip_uuid {
    char bytes[16];
};
_Static_assert(sizeof(struct hip_ipc_memory) == 64, "hipIpcMemHandle_t");
_Static_assert(sizeof(struct hip_uuid) == 16, "hipUUID");

/*
 * The size of hipDeviceProp_t has grown: hipGetDeviceProperties writes 792 bytes, and
 * hipGetDevicePropertiesR0600, which a macro in headers of 6.0 and later calls instead, writes
 * 1472. The plugin reads only the architecture's name, at its offset in each layout; all other
 * facts are available as attributes.
 */
#define HIP_PROPERTIES_BYTES 4096 /* larger than the struct of every release */
#define HIP_PROPERTIES_ARCH 396
#define HIP_PROPERTIES_ARCH_R0600 1160
#define HIP_PROPERTIES_ARCH_BYTES 256

/*
 * Virtual memory, as declared in 6.0 to 7.2; not tested on a device. In 5.x the members of
 * hipMemAllocationProp had another order: the plugin does not use these calls with a runtime before
 * 6.0, even if the runtime exports them.
 */
#define HIP_VMEM_SINCE 60000000
typedef void *hip_physical_t; /* hipMemGenericAllocationHandle_t */
struct hip_location {
    int type;
    int device;
};
struct hip_allocation {
    int type;
    int handle_type;
    struct hip_location location;
    void *win32;
    struct {
        unsigned char compression;
        unsigned char rdma;
        unsigned short usage;
    } flags;
};
struct hip_access {
    struct hip_location location;
    int flags;
};
_Static_assert(sizeof(struct hip_location) == 8, "hipMemLocation");
_Static_assert(sizeof(struct hip_allocation) == 32, "hipMemAllocationProp");
_Static_assert(offsetof(struct hip_allocation, location) == 8, "hipMemAllocationProp.location");
_Static_assert(sizeof(struct hip_access) == 12, "hipMemAccessDesc");

enum {
    HIP_SUCCESS = 0,
    HIP_INVALID_VALUE = 1,
    HIP_OUT_OF_MEMORY = 2,
    HIP_NOT_INITIALIZED = 3,
    HIP_INVALID_DEVICE_POINTER = 17,
    HIP_INVALID_MEMCPY_DIRECTION = 21,
    HIP_INSUFFICIENT_DRIVER = 35,
    HIP_NO_DEVICE = 100,
    HIP_INVALID_DEVICE = 101,
    HIP_INVALID_CONTEXT = 201,
    HIP_ECC_NOT_CORRECTABLE = 214,
    HIP_PEER_ACCESS_UNSUPPORTED = 217,
    HIP_INVALID_HANDLE = 400,
    HIP_ILLEGAL_STATE = 401,
    HIP_NOT_FOUND = 500,
    HIP_NOT_READY = 600,
    HIP_ILLEGAL_ADDRESS = 700,
    HIP_LAUNCH_TIMEOUT = 702,
    HIP_PEER_ACCESS_ALREADY_ENABLED = 704,
    HIP_PEER_ACCESS_NOT_ENABLED = 705,
    HIP_ASSERT = 710,
    HIP_HOST_MEMORY_ALREADY_REGISTERED = 712,
    HIP_HOST_MEMORY_NOT_REGISTERED = 713,
    HIP_LAUNCH_FAILURE = 719,
    HIP_NOT_SUPPORTED = 801,
    /* hipErrorStreamCaptureUnsupported up to hipErrorStreamCaptureWrongThread */
    HIP_CAPTURE_FIRST = 900,
    HIP_CAPTURE_INVALIDATED = 901,
    HIP_CAPTURE_UNJOINED = 904,
    HIP_CAPTURE_LAST = 908,
    HIP_GRAPH_EXEC_UPDATE_FAILURE = 910,
    HIP_UNKNOWN = 999,
    HIP_RUNTIME_MEMORY = 1052
};

enum {
    HIP_ATTACH_GLOBAL = 1
};
/*
 * The value of hipIpcMemLazyEnablePeerAccess, the only allowed flag, differs between HIP 5 and 6.
 */
enum {
    HIP_IPC_LAZY_PEER_ACCESS_5 = 0,
    HIP_IPC_LAZY_PEER_ACCESS_6 = 1
};

/* hipMemAllocationType, hipMemLocationType, hipMemAllocationGranularity_flags, hipMemAccessFlags */
enum {
    HIP_ALLOCATION_PINNED = 1,
    HIP_LOCATION_DEVICE = 1,
    HIP_GRANULARITY_RECOMMENDED = 1,
    HIP_ACCESS_NONE = 0,
    HIP_ACCESS_READ = 1,
    HIP_ACCESS_READ_WRITE = 3
};
_Static_assert(DS_ACCEL_VMEM_ACCESS_NONE == HIP_ACCESS_NONE &&
                   DS_ACCEL_VMEM_ACCESS_READ == HIP_ACCESS_READ &&
                   DS_ACCEL_VMEM_ACCESS_READ_WRITE == HIP_ACCESS_READ_WRITE,
               "hipMemAccessFlags");

/* hipDeviceAttribute_t */
enum {
    HIP_ATTRIBUTE_CLOCK_RATE = 5,
    HIP_ATTRIBUTE_L2_CACHE_SIZE = 19,
    HIP_ATTRIBUTE_COMPUTE_MAJOR = 23,
    HIP_ATTRIBUTE_MANAGED_MEMORY = 24,
    HIP_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 56,
    HIP_ATTRIBUTE_MEMORY_BUS_WIDTH = 59,
    HIP_ATTRIBUTE_COMPUTE_MINOR = 61,
    HIP_ATTRIBUTE_MULTIPROCESSOR_COUNT = 63,
    HIP_ATTRIBUTE_WARP_SIZE = 87,
    HIP_ATTRIBUTE_MEMORY_POOLS = 88,
    HIP_ATTRIBUTE_VIRTUAL_MEMORY = 89
};

/* HIP functions in addition to those of struct cuda_shaped_api. */
struct hip_api {
    hip_error_t (*hipInit)(unsigned int flags);
    hip_error_t (*hipDriverGetVersion)(int *version);
    hip_error_t (*hipRuntimeGetVersion)(int *version);
    hip_error_t (*hipGetDeviceCount)(int *count);
    hip_error_t (*hipDeviceGet)(int *handle, int ordinal);
    hip_error_t (*hipDeviceGetName)(char *name, int length, int handle);
    hip_error_t (*hipDeviceGetUuid)(struct hip_uuid *uuid, int handle); /* since 5.1 */
    hip_error_t (*hipDeviceTotalMem)(size_t *bytes, int handle);
    hip_error_t (*hipDeviceGetAttribute)(int *value, int attribute, int device);
    hip_error_t (*hipGetDevicePropertiesR0600)(void *properties, int device); /* since 6.0 */
    hip_error_t (*hipGetDeviceProperties)(void *properties, int device);
    hip_error_t (*hipDeviceGetPCIBusId)(char *address, int length, int device);
    hip_error_t (*hipDeviceGetStreamPriorityRange)(int *least, int *greatest);
    const char *(*hipGetErrorName)(hip_error_t code);

    hip_error_t (*hipMallocManaged)(void **pointer, size_t size, unsigned int flags);
    hip_error_t (*hipMemsetD8Async)(void *destination, unsigned char value, size_t count,
                                    hip_stream_t stream);
    hip_error_t (*hipMemsetD16Async)(void *destination, unsigned short value, size_t count,
                                     hip_stream_t stream);
    hip_error_t (*hipMemsetD32Async)(void *destination, int value, size_t count,
                                     hip_stream_t stream);
    hip_error_t (*hipMallocAsync)(void **pointer, size_t size, hip_stream_t stream);
    hip_error_t (*hipFreeAsync)(void *pointer, hip_stream_t stream);
    hip_error_t (*hipDeviceGetDefaultMemPool)(hip_pool_t *pool, int device);
    hip_error_t (*hipMemPoolTrimTo)(hip_pool_t pool, size_t keep);

    /*
     * The following eight functions, for virtual memory, are optional; symbols[] in rocm.c marks
     * the other optional functions.
     */
    hip_error_t (*hipMemGetAllocationGranularity)(size_t *granularity,
                                                  const struct hip_allocation *how, int which);
    hip_error_t (*hipMemAddressReserve)(void **address, size_t size, size_t align, void *hint,
                                        unsigned long long flags);
    hip_error_t (*hipMemAddressFree)(void *address, size_t size);
    hip_error_t (*hipMemCreate)(hip_physical_t *memory, size_t size,
                                const struct hip_allocation *how, unsigned long long flags);
    hip_error_t (*hipMemRelease)(hip_physical_t memory);
    hip_error_t (*hipMemMap)(void *address, size_t size, size_t offset, hip_physical_t memory,
                             unsigned long long flags);
    hip_error_t (*hipMemUnmap)(void *address, size_t size);
    hip_error_t (*hipMemSetAccess)(void *address, size_t size, const struct hip_access *wanted,
                                   size_t count);

    hip_error_t (*hipStreamCreateWithPriority)(hip_stream_t *stream, unsigned int flags,
                                               int priority);

    hip_error_t (*hipGraphExecUpdate)(hip_graph_exec_t exec, hip_graph_t graph, void **error_node,
                                      int *result);
    hip_error_t (*hipGraphGetNodes)(hip_graph_t graph, void **nodes, size_t *count);

    hip_error_t (*hipIpcGetMemHandle)(struct hip_ipc_memory *handle, void *pointer);
    hip_error_t (*hipIpcOpenMemHandle)(void **pointer, struct hip_ipc_memory handle,
                                       unsigned int flags);
    hip_error_t (*hipIpcCloseMemHandle)(void *pointer);
};

#endif
