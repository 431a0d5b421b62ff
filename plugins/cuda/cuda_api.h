/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of NVIDIA's driver API, libcuda.so.1, that the plugin uses. Functions have the names
 * that the library exports, with the version suffix (such as _v2) whose signature is declared here;
 * many names without a suffix are older functions with 32-bit pointers. Source: the CUDA driver API
 * reference and cuda.h of 11.8 and 13.0.
 */
#ifndef DS_ACCEL_PLUGINS_CUDA_CUDA_API_H
#define DS_ACCEL_PLUGINS_CUDA_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef int cu_result_t;
typedef int cu_device_t;
typedef unsigned long long cu_pointer_t;
typedef struct cu_context_object *cu_context_t;
typedef struct cu_stream_object *cu_stream_t;
typedef struct cu_event_object *cu_event_t;
typedef struct cu_graph_object *cu_graph_t;
typedef struct cu_graph_exec_object *cu_graph_exec_t;
typedef struct cu_graph_node_object *cu_graph_node_t;
typedef struct cu_pool_object *cu_pool_t;
typedef unsigned long long cu_physical_t; /* CUmemGenericAllocationHandle */

typedef struct {
    unsigned char bytes[16];
} cu_uuid_t;
/* Passed by value. */
typedef struct {
    unsigned char bytes[64];
} cu_ipc_handle_t;
typedef struct {
    int type; /* CU_LOCATION_DEVICE */
    int id;
} cu_location_t;
typedef struct {
    int type; /* CU_ALLOCATION_PINNED */
    int handle_types;
    cu_location_t location;
    void *windows_metadata;
    unsigned char compression;
    unsigned char rdma_capable;
    unsigned short usage;
    unsigned char reserved[4];
} cu_allocation_t; /* CUmemAllocationProp */
typedef struct {
    cu_location_t location;
    int flags;
} cu_access_t; /* CUmemAccessDesc */
typedef struct {
    int result;
    cu_graph_node_t node;
    cu_graph_node_t from_node;
} cu_update_t; /* CUgraphExecUpdateResultInfo */

_Static_assert(sizeof(cu_pointer_t) == 8 && sizeof(cu_device_t) == 4, "driver API handles");
_Static_assert(sizeof(cu_uuid_t) == 16 && sizeof(cu_ipc_handle_t) == 64, "driver API structs");
_Static_assert(sizeof(void *) != 8 || sizeof(cu_allocation_t) == 32, "CUmemAllocationProp");
_Static_assert(sizeof(cu_access_t) == 12, "CUmemAccessDesc");
_Static_assert(sizeof(void *) != 8 || sizeof(cu_update_t) == 24, "CUgraphExecUpdateResultInfo");

enum {
    CU_SUCCESS = 0,
    CU_INVALID_VALUE = 1,
    CU_OUT_OF_MEMORY = 2,
    CU_STUB_LIBRARY = 34,
    CU_CALL_REQUIRES_NEWER_DRIVER = 36,
    CU_DEVICE_UNAVAILABLE = 46,
    CU_NO_DEVICE = 100,
    CU_INVALID_DEVICE = 101,
    CU_ALREADY_MAPPED = 208,
    CU_ECC_UNCORRECTABLE = 214,
    CU_PEER_ACCESS_UNSUPPORTED = 217,
    CU_NVLINK_UNCORRECTABLE = 220,
    CU_CONTAINED = 226,
    CU_OPERATING_SYSTEM = 304,
    CU_INVALID_HANDLE = 400,
    CU_ILLEGAL_STATE = 401,
    CU_NOT_FOUND = 500,
    CU_NOT_READY = 600,
    CU_ILLEGAL_ADDRESS = 700,
    CU_LAUNCH_TIMEOUT = 702,
    CU_PEER_ACCESS_ALREADY_ENABLED = 704,
    CU_PEER_ACCESS_NOT_ENABLED = 705,
    CU_ASSERT = 710,
    CU_TOO_MANY_PEERS = 711,
    CU_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CU_HOST_MEMORY_NOT_REGISTERED = 713,
    CU_HARDWARE_STACK_ERROR = 714, /* first of a range of codes that ends with CU_LAUNCH_FAILED */
    CU_LAUNCH_FAILED = 719,
    CU_TENSOR_MEMORY_LEAK = 721,
    CU_NOT_PERMITTED = 800,
    CU_NOT_SUPPORTED = 801,
    CU_SYSTEM_NOT_READY = 802,
    CU_SYSTEM_DRIVER_MISMATCH = 803,
    CU_COMPAT_NOT_SUPPORTED = 804,
    CU_MPS_SERVER_NOT_READY = 807,
    CU_MPS_MAX_CLIENTS_REACHED = 808,
    CU_MPS_MAX_CONNECTIONS_REACHED = 809,
    CU_MPS_CLIENT_TERMINATED = 810,
    /* first of a range of codes that ends with CU_CAPTURE_WRONG_THREAD */
    CU_CAPTURE_UNSUPPORTED = 900,
    CU_CAPTURE_WRONG_THREAD = 908,
    CU_TIMEOUT = 909,
    CU_GRAPH_EXEC_UPDATE_FAILURE = 910,
    CU_EXTERNAL_DEVICE = 911
};

enum {
    CU_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_ATTRIBUTE_WARP_SIZE = 10,
    CU_ATTRIBUTE_CLOCK_RATE = 13,
    CU_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_ATTRIBUTE_COMPUTE_MODE = 20,
    CU_ATTRIBUTE_MEMORY_BUS_WIDTH = 37,
    CU_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_ATTRIBUTE_COMPUTE_MAJOR = 75,
    CU_ATTRIBUTE_COMPUTE_MINOR = 76,
    CU_ATTRIBUTE_VIRTUAL_MEMORY = 102,
    CU_ATTRIBUTE_RDMA_WITH_VIRTUAL_MEMORY = 110,
    CU_ATTRIBUTE_MEMORY_POOLS = 115,
    CU_ATTRIBUTE_DMA_BUF = 124
};

/* CUpointer_attribute */
enum {
    CU_POINTER_MEMORY_TYPE = 2,
    CU_POINTER_IS_MANAGED = 8,
    CU_POINTER_DEVICE_ORDINAL = 9,
    CU_POINTER_RANGE_START = 11,
    CU_POINTER_RANGE_SIZE = 12
};
#define CU_MEMORY_HOST 1 /* CUmemorytype */

#define CU_COMPUTE_MODE_PROHIBITED 2
#define CU_CONTEXT_BLOCKING_SYNC 4u /* CU_CTX_SCHED_BLOCKING_SYNC */
#define CU_STREAM_NON_BLOCKING 1u
#define CU_EVENT_BLOCKING_SYNC 1u
#define CU_EVENT_DISABLE_TIMING 2u
#define CU_EVENT_INTERPROCESS 4u
#define CU_HOST_PORTABLE 1u /* flag of cuMemHostAlloc() and of cuMemHostRegister() */
#define CU_HOST_MAPPED 2u
#define CU_HOST_WRITE_COMBINED \
    4u /* flag of cuMemHostAlloc(); in cuMemHostRegister(), 4 means I/O memory \
        */
#define CU_ATTACH_GLOBAL 1u
#define CU_CAPTURE_RELAXED 2
#define CU_CAPTURE_ACTIVE 1
#define CU_CAPTURE_INVALIDATED 2
#define CU_IPC_LAZY_PEER 1u
#define CU_ALLOCATION_PINNED 1
#define CU_LOCATION_DEVICE 1
#define CU_HANDLE_POSIX_FD 1
#define CU_GRANULARITY_MINIMUM 0
#define CU_GRANULARITY_RECOMMENDED 1
#define CU_RANGE_DMA_BUF_FD 1

struct cuda_api {
    cu_result_t (*cuInit)(unsigned int flags);
    cu_result_t (*cuDriverGetVersion)(int *version);
    cu_result_t (*cuGetErrorName)(cu_result_t error, const char **name);
    cu_result_t (*cuDeviceGetCount)(int *count);
    cu_result_t (*cuDeviceGet)(cu_device_t *device, int ordinal);
    cu_result_t (*cuDeviceGetName)(char *name, int size, cu_device_t device);
    cu_result_t (*cuDeviceGetUuid_v2)(cu_uuid_t *uuid, cu_device_t device);
    cu_result_t (*cuDeviceTotalMem_v2)(size_t *bytes, cu_device_t device);
    cu_result_t (*cuDeviceGetAttribute)(int *value, int attribute, cu_device_t device);
    cu_result_t (*cuDeviceGetPCIBusId)(char *address, int size, cu_device_t device);

    cu_result_t (*cuDevicePrimaryCtxRetain)(cu_context_t *context, cu_device_t device);
    cu_result_t (*cuDevicePrimaryCtxRelease_v2)(cu_device_t device);
    cu_result_t (*cuCtxSetCurrent)(cu_context_t context);
    cu_result_t (*cuCtxGetCurrent)(cu_context_t *context);
    cu_result_t (*cuCtxPushCurrent_v2)(cu_context_t context);
    cu_result_t (*cuCtxPopCurrent_v2)(cu_context_t *context);
    cu_result_t (*cuCtxGetDevice)(cu_device_t *device);
    cu_result_t (*cuCtxGetFlags)(unsigned int *flags);
    cu_result_t (*cuCtxSynchronize)(void);
    cu_result_t (*cuCtxRecordEvent)(cu_context_t context, cu_event_t event);
    cu_result_t (*cuCtxGetStreamPriorityRange)(int *least, int *greatest);

    cu_result_t (*cuMemGetInfo_v2)(size_t *free_bytes, size_t *total_bytes);
    cu_result_t (*cuMemAlloc_v2)(cu_pointer_t *pointer, size_t bytes);
    cu_result_t (*cuMemFree_v2)(cu_pointer_t pointer);
    cu_result_t (*cuMemHostAlloc)(void **pointer, size_t bytes, unsigned int flags);
    cu_result_t (*cuMemFreeHost)(void *pointer);
    cu_result_t (*cuMemHostGetDevicePointer_v2)(cu_pointer_t *device, void *host,
                                                unsigned int flags);
    cu_result_t (*cuMemHostRegister_v2)(void *pointer, size_t bytes, unsigned int flags);
    cu_result_t (*cuMemHostUnregister)(void *pointer);
    cu_result_t (*cuPointerGetAttribute)(void *value, int attribute, cu_pointer_t pointer);
    cu_result_t (*cuMemAllocManaged)(cu_pointer_t *pointer, size_t bytes, unsigned int flags);
    cu_result_t (*cuMemcpyHtoDAsync_v2)(cu_pointer_t destination, const void *source, size_t bytes,
                                        cu_stream_t stream);
    cu_result_t (*cuMemcpyDtoHAsync_v2)(void *destination, cu_pointer_t source, size_t bytes,
                                        cu_stream_t stream);
    cu_result_t (*cuMemcpyDtoDAsync_v2)(cu_pointer_t destination, cu_pointer_t source, size_t bytes,
                                        cu_stream_t stream);
    cu_result_t (*cuMemcpyAsync)(cu_pointer_t destination, cu_pointer_t source, size_t bytes,
                                 cu_stream_t stream);
    cu_result_t (*cuMemcpyPeerAsync)(cu_pointer_t destination, cu_context_t destination_context,
                                     cu_pointer_t source, cu_context_t source_context, size_t bytes,
                                     cu_stream_t stream);
    cu_result_t (*cuMemsetD8Async)(cu_pointer_t destination, unsigned char value, size_t count,
                                   cu_stream_t stream);
    cu_result_t (*cuMemsetD16Async)(cu_pointer_t destination, unsigned short value, size_t count,
                                    cu_stream_t stream);
    cu_result_t (*cuMemsetD32Async)(cu_pointer_t destination, unsigned int value, size_t count,
                                    cu_stream_t stream);
    cu_result_t (*cuMemAllocAsync)(cu_pointer_t *pointer, size_t bytes, cu_stream_t stream);
    cu_result_t (*cuMemFreeAsync)(cu_pointer_t pointer, cu_stream_t stream);
    cu_result_t (*cuDeviceGetMemPool)(cu_pool_t *pool, cu_device_t device);
    cu_result_t (*cuMemPoolTrimTo)(cu_pool_t pool, size_t keep_bytes);

    cu_result_t (*cuStreamCreateWithPriority)(cu_stream_t *stream, unsigned int flags,
                                              int priority);
    cu_result_t (*cuStreamDestroy_v2)(cu_stream_t stream);
    cu_result_t (*cuStreamSynchronize)(cu_stream_t stream);
    cu_result_t (*cuStreamQuery)(cu_stream_t stream);
    cu_result_t (*cuStreamWaitEvent)(cu_stream_t stream, cu_event_t event, unsigned int flags);
    cu_result_t (*cuLaunchHostFunc)(cu_stream_t stream, void (*call)(void *argument),
                                    void *argument);
    cu_result_t (*cuEventCreate)(cu_event_t *event, unsigned int flags);
    cu_result_t (*cuEventRecord)(cu_event_t event, cu_stream_t stream);
    cu_result_t (*cuEventQuery)(cu_event_t event);
    cu_result_t (*cuEventSynchronize)(cu_event_t event);
    cu_result_t (*cuEventDestroy_v2)(cu_event_t event);
    cu_result_t (*cuEventElapsedTime)(float *milliseconds, cu_event_t start, cu_event_t end);

    cu_result_t (*cuThreadExchangeStreamCaptureMode)(int *mode);
    cu_result_t (*cuStreamBeginCapture_v2)(cu_stream_t stream, int mode);
    cu_result_t (*cuStreamIsCapturing)(cu_stream_t stream, int *status);
    cu_result_t (*cuStreamEndCapture)(cu_stream_t stream, cu_graph_t *graph);
    cu_result_t (*cuGraphInstantiateWithFlags)(cu_graph_exec_t *exec, cu_graph_t graph,
                                               unsigned long long flags);
    cu_result_t (*cuGraphLaunch)(cu_graph_exec_t exec, cu_stream_t stream);
    cu_result_t (*cuGraphExecUpdate_v2)(cu_graph_exec_t exec, cu_graph_t graph,
                                        cu_update_t *result);
    cu_result_t (*cuGraphExecDestroy)(cu_graph_exec_t exec);
    cu_result_t (*cuGraphDestroy)(cu_graph_t graph);
    cu_result_t (*cuGraphGetNodes)(cu_graph_t graph, cu_graph_node_t *nodes, size_t *count);
    cu_result_t (*cuGraphDebugDotPrint)(cu_graph_t graph, const char *path, unsigned int flags);

    cu_result_t (*cuMemAddressReserve)(cu_pointer_t *address, size_t bytes, size_t align,
                                       cu_pointer_t hint, unsigned long long flags);
    cu_result_t (*cuMemAddressFree)(cu_pointer_t address, size_t bytes);
    cu_result_t (*cuMemCreate)(cu_physical_t *memory, size_t bytes, const cu_allocation_t *how,
                               unsigned long long flags);
    cu_result_t (*cuMemRelease)(cu_physical_t memory);
    cu_result_t (*cuMemMap)(cu_pointer_t address, size_t bytes, size_t offset, cu_physical_t memory,
                            unsigned long long flags);
    cu_result_t (*cuMemUnmap)(cu_pointer_t address, size_t bytes);
    cu_result_t (*cuMemSetAccess)(cu_pointer_t address, size_t bytes, const cu_access_t *access,
                                  size_t count);
    cu_result_t (*cuMemGetAllocationGranularity)(size_t *bytes, const cu_allocation_t *how,
                                                 int option);

    cu_result_t (*cuDeviceCanAccessPeer)(int *can, cu_device_t device, cu_device_t peer);
    cu_result_t (*cuCtxEnablePeerAccess)(cu_context_t peer, unsigned int flags);
    cu_result_t (*cuCtxDisablePeerAccess)(cu_context_t peer);
    cu_result_t (*cuIpcGetMemHandle)(cu_ipc_handle_t *handle, cu_pointer_t pointer);
    cu_result_t (*cuIpcOpenMemHandle_v2)(cu_pointer_t *pointer, cu_ipc_handle_t handle,
                                         unsigned int flags);
    cu_result_t (*cuIpcCloseMemHandle)(cu_pointer_t pointer);
    cu_result_t (*cuIpcGetEventHandle)(cu_ipc_handle_t *handle, cu_event_t event);
    cu_result_t (*cuIpcOpenEventHandle)(cu_event_t *event, cu_ipc_handle_t handle);
    cu_result_t (*cuMemGetHandleForAddressRange)(void *handle, cu_pointer_t pointer, size_t bytes,
                                                 int type, unsigned long long flags);
    cu_result_t (*cuProfilerStart)(void);
    cu_result_t (*cuProfilerStop)(void);
};

#endif
