/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of OpenCL that the plugin uses, declared here according to the OpenCL 1.2 and 3.0
 * specifications (Khronos) and checked against the Khronos headers of 2024-10-24 and two runtimes,
 * PoCL 3.1 and oclgrind 21.10. Functions "since 2.0" are optional: an OpenCL 1.2 runtime supports
 * everything except shared virtual memory and priorities.
 */
#ifndef DS_ACCEL_PLUGINS_OPENCL_CL_H
#define DS_ACCEL_PLUGINS_OPENCL_CL_H

#include "plugin-api.h"

typedef struct opencl_platform_handle *cl_platform;
typedef struct opencl_device_handle *cl_device;
typedef struct opencl_context_handle *cl_context;
typedef struct opencl_queue_handle *cl_queue;
typedef struct opencl_mem_handle *cl_mem;
typedef struct opencl_event_handle *cl_event;

/*
 * The error codes that the plugin itself uses; the table errors[] in runtime.c lists all known
 * codes.
 */
#define CL_SUCCESS 0
#define CL_DEVICE_NOT_FOUND (-1)
#define CL_DEVICE_NOT_AVAILABLE (-2)
#define CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)
#define CL_OUT_OF_RESOURCES (-5)
#define CL_OUT_OF_HOST_MEMORY (-6)
#define CL_PROFILING_INFO_NOT_AVAILABLE (-7)
#define CL_INVALID_OPERATION (-59)
#define CL_INVALID_BUFFER_SIZE (-61)
#define CL_PLATFORM_NOT_FOUND_KHR (-1001) /* returned by the loader if there is no platform */

/* Bit fields (cl_bitfield) have 64 bits, names of queries 32 bits. */
#define CL_DEVICE_TYPE_DEFAULT UINT64_C(1)
#define CL_DEVICE_TYPE_CPU UINT64_C(2)
#define CL_DEVICE_TYPE_GPU UINT64_C(4)
#define CL_DEVICE_TYPE_ACCELERATOR UINT64_C(8)
#define CL_DEVICE_TYPE_ALL UINT64_C(0xffffffff)

#define CL_PLATFORM_VERSION 0x0901u
#define CL_PLATFORM_NAME 0x0902u

#define CL_DEVICE_TYPE 0x1000u
#define CL_DEVICE_MAX_COMPUTE_UNITS 0x1002u
#define CL_DEVICE_MAX_WORK_GROUP_SIZE 0x1004u /* size_t */
#define CL_DEVICE_MAX_CLOCK_FREQUENCY 0x100Cu /* MHz */
#define CL_DEVICE_MAX_MEM_ALLOC_SIZE 0x1010u
#define CL_DEVICE_GLOBAL_MEM_CACHE_SIZE 0x101Eu
#define CL_DEVICE_GLOBAL_MEM_SIZE 0x101Fu
#define CL_DEVICE_AVAILABLE 0x1027u
#define CL_DEVICE_NAME 0x102Bu
#define CL_DRIVER_VERSION 0x102Du
#define CL_DEVICE_VERSION 0x102Fu
#define CL_DEVICE_EXTENSIONS 0x1030u
#define CL_DEVICE_DOUBLE_FP_CONFIG 0x1032u
#define CL_DEVICE_SVM_CAPABILITIES 0x1053u /* since 2.0 */
#define CL_DEVICE_UUID_KHR 0x106Au         /* cl_khr_device_uuid: 16 bytes */
#define CL_DEVICE_WARP_SIZE_NV 0x4003u     /* cl_nv_device_attribute_query */
#define CL_DEVICE_GLOBAL_FREE_MEMORY_AMD \
    0x4039u /* cl_amd_device_attribute_query: size_t[], KiB \
             */
#define CL_DEVICE_WAVEFRONT_WIDTH_AMD 0x4043u
#define CL_DEVICE_PCI_BUS_INFO_KHR 0x410Fu /* cl_khr_pci_bus_info */
#define CL_SVM_FINE_GRAIN_BUFFER UINT64_C(2)

struct cl_pci_bus_info {
    uint32_t domain;
    uint32_t bus;
    uint32_t device;
    uint32_t function;
};
DS_ACCEL_STATIC_ASSERT(sizeof(struct cl_pci_bus_info) == 16, "cl_device_pci_bus_info_khr");

#define CL_CONTEXT_DEVICES 0x1081u
#define CL_CONTEXT_PLATFORM 0x1084

#define CL_QUEUE_CONTEXT 0x1090u
#define CL_QUEUE_DEVICE 0x1091u
#define CL_QUEUE_PROPERTIES 0x1093u
#define CL_QUEUE_PRIORITY_KHR 0x1096u /* cl_khr_priority_hints */
#define CL_QUEUE_OUT_OF_ORDER UINT64_C(1)
#define CL_QUEUE_PROFILING UINT64_C(2)
#define CL_QUEUE_PRIORITY_HIGH_KHR UINT64_C(1)
#define CL_QUEUE_PRIORITY_MEDIUM_KHR UINT64_C(2)
#define CL_QUEUE_PRIORITY_LOW_KHR UINT64_C(4)

#define CL_MEM_READ_WRITE UINT64_C(1)
#define CL_MEM_USE_HOST_PTR UINT64_C(8)
#define CL_MEM_ALLOC_HOST_PTR UINT64_C(16)
#define CL_MEM_SVM_FINE_GRAIN_BUFFER UINT64_C(1024)
#define CL_MEM_SIZE 0x1102u
#define CL_MEM_CONTEXT 0x1106u
#define CL_MAP_READ UINT64_C(1)
#define CL_MAP_WRITE UINT64_C(2)

/* The value is an int32_t; < 0: the command failed */
#define CL_EVENT_COMMAND_EXECUTION_STATUS 0x11D3u
#define CL_EVENT_CONTEXT 0x11D4u
#define CL_COMPLETE 0
#define CL_PROFILING_COMMAND_END 0x1283u /* the value is a uint64_t in ns of the device's clock */

#define CL_FALSE 0u
#define CL_TRUE 1u

#define CL_EVENT_LIST uint32_t wait_count, const cl_event *waits, cl_event *event_out

/* The functions; members have the exported names. */
struct cl_calls {
    int32_t (*clGetPlatformIDs)(uint32_t room, cl_platform *platforms, uint32_t *count_out);
    int32_t (*clGetPlatformInfo)(cl_platform platform, uint32_t name, size_t size, void *value,
                                 size_t *size_out);
    int32_t (*clGetDeviceIDs)(cl_platform platform, uint64_t type, uint32_t room,
                              cl_device *devices, uint32_t *count_out);
    int32_t (*clGetDeviceInfo)(cl_device device, uint32_t name, size_t size, void *value,
                               size_t *size_out);
    cl_context (*clCreateContext)(const intptr_t *properties, uint32_t device_count,
                                  const cl_device *devices,
                                  void (*notify)(const char *text, const void *details, size_t size,
                                                 void *user_data),
                                  void *user_data, int32_t *code_out);
    int32_t (*clRetainContext)(cl_context context);
    int32_t (*clReleaseContext)(cl_context context);
    int32_t (*clGetContextInfo)(cl_context context, uint32_t name, size_t size, void *value,
                                size_t *size_out);
    cl_queue (*clCreateCommandQueue)(cl_context context, cl_device device, uint64_t properties,
                                     int32_t *code_out);
    cl_queue (*clCreateCommandQueueWithProperties)(cl_context context, cl_device device,
                                                   const uint64_t *properties, int32_t *code_out);
    int32_t (*clRetainCommandQueue)(cl_queue queue);
    int32_t (*clReleaseCommandQueue)(cl_queue queue);
    int32_t (*clGetCommandQueueInfo)(cl_queue queue, uint32_t name, size_t size, void *value,
                                     size_t *size_out);
    cl_mem (*clCreateBuffer)(cl_context context, uint64_t flags, size_t size, void *host_pointer,
                             int32_t *code_out);
    int32_t (*clRetainMemObject)(cl_mem memory);
    int32_t (*clReleaseMemObject)(cl_mem memory);
    int32_t (*clGetMemObjectInfo)(cl_mem memory, uint32_t name, size_t size, void *value,
                                  size_t *size_out);
    int32_t (*clEnqueueReadBuffer)(cl_queue queue, cl_mem source, uint32_t is_blocking,
                                   size_t offset, size_t size, void *destination, CL_EVENT_LIST);
    int32_t (*clEnqueueWriteBuffer)(cl_queue queue, cl_mem destination, uint32_t is_blocking,
                                    size_t offset, size_t size, const void *source, CL_EVENT_LIST);
    int32_t (*clEnqueueCopyBuffer)(cl_queue queue, cl_mem source, cl_mem destination,
                                   size_t source_offset, size_t destination_offset, size_t size,
                                   CL_EVENT_LIST);
    int32_t (*clEnqueueFillBuffer)(cl_queue queue, cl_mem destination, const void *pattern,
                                   size_t pattern_size, size_t offset, size_t size, CL_EVENT_LIST);
    void *(*clEnqueueMapBuffer)(cl_queue queue, cl_mem memory, uint32_t is_blocking, uint64_t flags,
                                size_t offset, size_t size, CL_EVENT_LIST, int32_t *code_out);
    int32_t (*clEnqueueUnmapMemObject)(cl_queue queue, cl_mem memory, void *mapped, CL_EVENT_LIST);
    int32_t (*clEnqueueMarkerWithWaitList)(cl_queue queue, CL_EVENT_LIST);
    int32_t (*clEnqueueBarrierWithWaitList)(cl_queue queue, CL_EVENT_LIST);
    int32_t (*clFlush)(cl_queue queue);
    int32_t (*clFinish)(cl_queue queue);
    int32_t (*clWaitForEvents)(uint32_t count, const cl_event *events);
    int32_t (*clGetEventInfo)(cl_event event, uint32_t name, size_t size, void *value,
                              size_t *size_out);
    int32_t (*clGetEventProfilingInfo)(cl_event event, uint32_t name, size_t size, void *value,
                                       size_t *size_out);
    int32_t (*clRetainEvent)(cl_event event);
    int32_t (*clReleaseEvent)(cl_event event);
    cl_event (*clCreateUserEvent)(cl_context context, int32_t *code_out);
    int32_t (*clSetUserEventStatus)(cl_event event, int32_t status);
    int32_t (*clSetEventCallback)(cl_event event, int32_t state,
                                  void (*notify)(cl_event event, int32_t status, void *user_data),
                                  void *user_data);
    /* The following functions exist since 2.0, as does clCreateCommandQueueWithProperties(). */
    void *(*clSVMAlloc)(cl_context context, uint64_t flags, size_t size, uint32_t align);
    void (*clSVMFree)(cl_context context, void *pointer);
    int32_t (*clEnqueueSVMMemcpy)(cl_queue queue, uint32_t is_blocking, void *destination,
                                  const void *source, size_t size, CL_EVENT_LIST);
    int32_t (*clEnqueueSVMMemFill)(cl_queue queue, void *destination, const void *pattern,
                                   size_t pattern_size, size_t size, CL_EVENT_LIST);
};

/* Event arguments of a call that neither waits for events nor returns one. */
#define CL_NO_EVENTS 0, NULL, NULL

#endif
