/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of Level Zero's core API that the xpu plugin uses, declared by the plugin itself.
 *
 * Source: ze_api.h of the Level Zero loader v1.32 (specification 1.17). Which functions exist
 * depends on the age of the loader and the driver, see SYMBOLS in xpu.c. Every descriptor begins
 * with a tag for its type and a pointer to another descriptor, which is NULL here except for large
 * allocations.
 */
#ifndef DS_ACCEL_PLUGINS_XPU_ZE_H
#define DS_ACCEL_PLUGINS_XPU_ZE_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t ze_result;
typedef uint8_t ze_bool;
typedef struct ze_driver *ze_driver_t;
typedef struct ze_device *ze_device_t;
typedef struct ze_context *ze_context_t;
typedef struct ze_list *ze_list_t;
typedef struct ze_pool *ze_pool_t;
typedef struct ze_event *ze_event_t;
typedef struct ze_physical *ze_physical_t;
typedef struct ze_graph *ze_graph_t;
typedef struct ze_graph_exec *ze_graph_exec_t;

/* ---- numbers -------------------------------------------------------------------------------- */

#define ZE_SUCCESS 0u
#define ZE_NOT_READY 1u
#define ZE_ERROR_DEVICE_LOST 0x70000001u
#define ZE_ERROR_OUT_OF_HOST_MEMORY 0x70000002u
#define ZE_ERROR_UNINITIALIZED 0x78000001u
#define ZE_ERROR_UNSUPPORTED_FEATURE 0x78000003u
#define ZE_ERROR_INVALID_ARGUMENT 0x78000004u
#define ZE_ERROR_INVALID_SIZE 0x78000008u
#define ZE_QUERY_TRUE 0x78000022u
#define ZE_QUERY_FALSE 0x78000023u
#define ZE_ERROR_CAPTURE_UNSUPPORTED 0x78000025u
#define ZE_ERROR_CAPTURE_INVALIDATED 0x78000026u
#define ZE_ERROR_CAPTURE_MERGE 0x78000027u

#define ZE_INIT_GPU_ONLY 1u
#define ZE_INIT_TYPE_GPU 1u
#define ZE_TYPE_GPU 1u
#define ZE_DEVICE_SUBDEVICE 2u
#define ZE_MODULE_FP16 1u
#define ZE_MODULE_FP64 2u
#define ZE_GROUP_COMPUTE 1u
#define ZE_GROUP_COPY 2u
#define ZE_QUEUE_IN_ORDER 2u /* flag of immediate lists, since 1.7 */
#define ZE_QUEUE_ASYNCHRONOUS 2u
#define ZE_PRIORITY_NORMAL 0u
#define ZE_PRIORITY_LOW 1u
#define ZE_PRIORITY_HIGH 2u
#define ZE_POOL_HOST_VISIBLE 1u
#define ZE_POOL_TIMESTAMP 4u
#define ZE_SCOPE_HOST 4u
#define ZE_HOST_WRITE_COMBINED 4u
#define ZE_PHYSICAL_ON_DEVICE 1u
#define ZE_RELAXED_MAX_SIZE 1u
#define ZE_ACCESS_NONE 0u
#define ZE_ACCESS_READ_WRITE 1u
#define ZE_ACCESS_READ 2u

#define ZE_TAG_DRIVER_PROPERTIES 0x1u
#define ZE_TAG_DEVICE_PROPERTIES 0x3u /* timerResolution is in nanoseconds per tick */
#define ZE_TAG_COMPUTE_PROPERTIES 0x4u
#define ZE_TAG_MODULE_PROPERTIES 0x5u
#define ZE_TAG_GROUP_PROPERTIES 0x6u
#define ZE_TAG_MEMORY_PROPERTIES 0x7u
#define ZE_TAG_CACHE_PROPERTIES 0x9u
#define ZE_TAG_CONTEXT 0xdu
#define ZE_TAG_QUEUE 0xeu
#define ZE_TAG_POOL 0x10u
#define ZE_TAG_EVENT 0x11u
#define ZE_TAG_DEVICE_MEMORY 0x15u
#define ZE_TAG_HOST_MEMORY 0x16u
#define ZE_TAG_PHYSICAL 0x20u
#define ZE_TAG_PCI 0x10008u
#define ZE_TAG_RELAXED_LIMITS 0x20001u
#define ZE_TAG_DEVICE_PROPERTIES_1_2 0x20006u /* timerResolution is in ticks per second */
#define ZE_TAG_INIT_DRIVER_TYPE 0x20021u

#define ZE_VERSION(major, minor) ((uint32_t)(major) << 16 | (minor))

/* ---- descriptors and properties ------------------------------------------------------------- */

struct ze_init_desc {
    uint32_t tag;
    const void *next;
    uint32_t types;
};
struct ze_driver_properties {
    uint32_t tag;
    void *next;
    uint8_t uuid[16];
    uint32_t version;
};
struct ze_extension {
    char name[256];
    uint32_t version;
};
struct ze_device_properties {
    uint32_t tag;
    void *next;
    uint32_t type;
    uint32_t vendor_id;
    uint32_t device_id;
    uint32_t flags;
    uint32_t subdevice_id;
    uint32_t core_clock_mhz;
    uint64_t max_alloc_bytes;
    uint32_t max_hardware_contexts;
    uint32_t max_queue_priority;
    uint32_t threads_per_eu;
    uint32_t simd_width;
    uint32_t eus_per_subslice;
    uint32_t subslices_per_slice;
    uint32_t slices;
    uint64_t timer_resolution;
    uint32_t timestamp_bits;
    uint32_t kernel_timestamp_bits;
    uint8_t uuid[16];
    char name[256];
};
struct ze_compute_properties {
    uint32_t tag;
    void *next;
    uint32_t max_group_size;
    uint32_t max_group[3];
    uint32_t max_group_count[3];
    uint32_t max_local_bytes;
    uint32_t subgroup_size_count;
    uint32_t subgroup_sizes[8];
};
struct ze_module_properties {
    uint32_t tag;
    void *next;
    uint32_t spirv_version;
    uint32_t flags;
    uint32_t fp16, fp32, fp64;
    uint32_t max_arguments_bytes;
    uint32_t printf_bytes;
    uint8_t native_kernel[16];
};
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the vendor's layout */
struct ze_group_properties {
    uint32_t tag;
    void *next;
    uint32_t flags;
    size_t max_pattern_bytes;
    uint32_t queue_count;
};
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the vendor's layout */
struct ze_memory_properties {
    uint32_t tag;
    void *next;
    uint32_t flags;
    uint32_t max_clock_mhz;
    uint32_t max_bus_bits;
    uint64_t total_bytes;
    char name[256];
};
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the vendor's layout */
struct ze_cache_properties {
    uint32_t tag;
    void *next;
    uint32_t flags;
    size_t size_bytes;
};
struct ze_pci_address {
    uint32_t domain, bus, device, function;
};
struct ze_pci_properties {
    uint32_t tag;
    void *next;
    struct ze_pci_address address;
    struct {
        int32_t generation, width;
        int64_t bytes_per_s;
    } speed;
};
struct ze_context_desc {
    uint32_t tag;
    const void *next;
    uint32_t flags;
};
struct ze_queue_desc {
    uint32_t tag;
    const void *next;
    uint32_t ordinal;
    uint32_t index;
    uint32_t flags;
    uint32_t mode;
    uint32_t priority;
};
struct ze_pool_desc {
    uint32_t tag;
    const void *next;
    uint32_t flags;
    uint32_t count;
};
struct ze_event_desc {
    uint32_t tag;
    const void *next;
    uint32_t index;
    uint32_t signal_scope;
    uint32_t wait_scope;
};
struct ze_device_memory_desc {
    uint32_t tag;
    const void *next;
    uint32_t flags;
    uint32_t ordinal;
};
struct ze_host_memory_desc {
    uint32_t tag;
    const void *next;
    uint32_t flags;
};
struct ze_relaxed_desc {
    uint32_t tag;
    const void *next;
    uint32_t flags;
};
struct ze_physical_desc {
    uint32_t tag;
    const void *next;
    uint32_t flags;
    size_t size_bytes;
};
struct ze_timestamps {
    struct {
        uint64_t start, end;
    } global, context;
};
struct ze_ipc_handle { /* passed by value */
    char data[64];
};

_Static_assert(sizeof(struct ze_init_desc) == 24, "ze_init_driver_type_desc_t");
_Static_assert(sizeof(struct ze_driver_properties) == 40, "ze_driver_properties_t");
_Static_assert(sizeof(struct ze_extension) == 260, "ze_driver_extension_properties_t");
_Static_assert(sizeof(struct ze_device_properties) == 368 &&
                   offsetof(struct ze_device_properties, max_alloc_bytes) == 40 &&
                   offsetof(struct ze_device_properties, timer_resolution) == 80 &&
                   offsetof(struct ze_device_properties, uuid) == 96 &&
                   offsetof(struct ze_device_properties, name) == 112,
               "ze_device_properties_t");
_Static_assert(sizeof(struct ze_compute_properties) == 88, "ze_device_compute_properties_t");
_Static_assert(sizeof(struct ze_module_properties) == 64 &&
                   offsetof(struct ze_module_properties, flags) == 20,
               "ze_device_module_properties_t");
_Static_assert(sizeof(struct ze_group_properties) == 40, "ze_command_queue_group_properties_t");
_Static_assert(sizeof(struct ze_memory_properties) == 296 &&
                   offsetof(struct ze_memory_properties, total_bytes) == 32,
               "ze_device_memory_properties_t");
_Static_assert(sizeof(struct ze_cache_properties) == 32, "ze_device_cache_properties_t");
_Static_assert(sizeof(struct ze_pci_properties) == 48, "ze_pci_ext_properties_t");
_Static_assert(sizeof(struct ze_context_desc) == 24, "ze_context_desc_t");
_Static_assert(sizeof(struct ze_queue_desc) == 40, "ze_command_queue_desc_t");
_Static_assert(sizeof(struct ze_pool_desc) == 24, "ze_event_pool_desc_t");
_Static_assert(sizeof(struct ze_event_desc) == 32, "ze_event_desc_t");
_Static_assert(sizeof(struct ze_device_memory_desc) == 24, "ze_device_mem_alloc_desc_t");
_Static_assert(sizeof(struct ze_host_memory_desc) == 24, "ze_host_mem_alloc_desc_t");
_Static_assert(sizeof(struct ze_physical_desc) == 32, "ze_physical_mem_desc_t");
_Static_assert(sizeof(struct ze_timestamps) == 32, "ze_kernel_timestamp_result_t");
_Static_assert(sizeof(struct ze_ipc_handle) == 64, "ze_ipc_mem_handle_t");

/* ---- functions ------------------------------------------------------------------------------ */

struct ze_api {
    ze_result (*zeInit)(uint32_t flags);
    ze_result (*zeInitDrivers)(uint32_t *count, ze_driver_t *drivers, struct ze_init_desc *desc);
    ze_result (*zeDriverGet)(uint32_t *count, ze_driver_t *drivers);
    ze_result (*zeDriverGetApiVersion)(ze_driver_t driver, uint32_t *version);
    ze_result (*zeDriverGetProperties)(ze_driver_t driver, struct ze_driver_properties *properties);
    ze_result (*zeDriverGetExtensionProperties)(ze_driver_t driver, uint32_t *count,
                                                struct ze_extension *extensions);
    ze_result (*zeDriverGetExtensionFunctionAddress)(ze_driver_t driver, const char *name,
                                                     void **function);
    ze_result (*zeDeviceGet)(ze_driver_t driver, uint32_t *count, ze_device_t *devices);
    ze_result (*zeDeviceGetRootDevice)(ze_device_t device, ze_device_t *root);
    ze_result (*zeDeviceGetProperties)(ze_device_t device, struct ze_device_properties *properties);
    ze_result (*zeDeviceGetComputeProperties)(ze_device_t device,
                                              struct ze_compute_properties *properties);
    ze_result (*zeDeviceGetModuleProperties)(ze_device_t device,
                                             struct ze_module_properties *properties);
    ze_result (*zeDeviceGetCommandQueueGroupProperties)(ze_device_t device, uint32_t *count,
                                                        struct ze_group_properties *groups);
    ze_result (*zeDeviceGetMemoryProperties)(ze_device_t device, uint32_t *count,
                                             struct ze_memory_properties *memories);
    ze_result (*zeDeviceGetCacheProperties)(ze_device_t device, uint32_t *count,
                                            struct ze_cache_properties *caches);
    ze_result (*zeDevicePciGetPropertiesExt)(ze_device_t device,
                                             struct ze_pci_properties *properties);
    ze_result (*zeDeviceCanAccessPeer)(ze_device_t device, ze_device_t peer, ze_bool *can);
    ze_result (*zeDeviceGetStatus)(ze_device_t device);
    ze_result (*zeContextCreate)(ze_driver_t driver, const struct ze_context_desc *desc,
                                 ze_context_t *context);
    ze_result (*zeContextDestroy)(ze_context_t context);

    ze_result (*zeCommandListCreateImmediate)(ze_context_t context, ze_device_t device,
                                              const struct ze_queue_desc *desc, ze_list_t *list);
    ze_result (*zeCommandListDestroy)(ze_list_t list);
    ze_result (*zeCommandListHostSynchronize)(ze_list_t list, uint64_t timeout_ns);
    ze_result (*zeCommandListAppendMemoryCopy)(ze_list_t list, void *destination,
                                               const void *source, size_t size, ze_event_t signal,
                                               uint32_t wait_count, ze_event_t *waits);
    ze_result (*zeCommandListAppendMemoryFill)(ze_list_t list, void *destination,
                                               const void *pattern, size_t pattern_bytes,
                                               size_t size, ze_event_t signal, uint32_t wait_count,
                                               ze_event_t *waits);
    ze_result (*zeCommandListAppendBarrier)(ze_list_t list, ze_event_t signal, uint32_t wait_count,
                                            ze_event_t *waits);
    ze_result (*zeCommandListAppendWaitOnEvents)(ze_list_t list, uint32_t count,
                                                 ze_event_t *events);
    ze_result (*zeCommandListAppendEventReset)(ze_list_t list, ze_event_t event);
    ze_result (*zeCommandListAppendHostFunction)(ze_list_t list, void (*function)(void *),
                                                 void *user_data, const void *next,
                                                 ze_event_t signal, uint32_t wait_count,
                                                 ze_event_t *waits);

    ze_result (*zeEventPoolCreate)(ze_context_t context, const struct ze_pool_desc *desc,
                                   uint32_t device_count, ze_device_t *devices, ze_pool_t *pool);
    ze_result (*zeEventPoolDestroy)(ze_pool_t pool);
    ze_result (*zeEventCreate)(ze_pool_t pool, const struct ze_event_desc *desc, ze_event_t *event);
    ze_result (*zeEventDestroy)(ze_event_t event);
    ze_result (*zeEventHostSignal)(ze_event_t event);
    ze_result (*zeEventHostSynchronize)(ze_event_t event, uint64_t timeout_ns);
    ze_result (*zeEventQueryStatus)(ze_event_t event);
    ze_result (*zeEventHostReset)(ze_event_t event);
    ze_result (*zeEventQueryKernelTimestamp)(ze_event_t event, struct ze_timestamps *result);

    ze_result (*zeMemAllocDevice)(ze_context_t context, const struct ze_device_memory_desc *desc,
                                  size_t size, size_t alignment, ze_device_t device,
                                  void **pointer);
    ze_result (*zeMemAllocHost)(ze_context_t context, const struct ze_host_memory_desc *desc,
                                size_t size, size_t alignment, void **pointer);
    ze_result (*zeMemAllocShared)(ze_context_t context,
                                  const struct ze_device_memory_desc *device_desc,
                                  const struct ze_host_memory_desc *host_desc, size_t size,
                                  size_t alignment, ze_device_t device, void **pointer);
    ze_result (*zeMemFree)(ze_context_t context, void *pointer);
    ze_result (*zeMemGetIpcHandle)(ze_context_t context, const void *pointer,
                                   struct ze_ipc_handle *handle);
    ze_result (*zeMemPutIpcHandle)(ze_context_t context, struct ze_ipc_handle handle);
    ze_result (*zeMemOpenIpcHandle)(ze_context_t context, ze_device_t device,
                                    struct ze_ipc_handle handle, uint32_t flags, void **pointer);
    ze_result (*zeMemCloseIpcHandle)(ze_context_t context, const void *pointer);
    ze_result (*zeMemGetFileDescriptorFromIpcHandleExp)(ze_context_t context,
                                                        struct ze_ipc_handle handle, uint64_t *fd);

    ze_result (*zeVirtualMemQueryPageSize)(ze_context_t context, ze_device_t device, size_t size,
                                           size_t *page_bytes);
    ze_result (*zeVirtualMemReserve)(ze_context_t context, const void *hint, size_t size,
                                     void **address);
    ze_result (*zeVirtualMemFree)(ze_context_t context, const void *address, size_t size);
    ze_result (*zeVirtualMemMap)(ze_context_t context, const void *address, size_t size,
                                 ze_physical_t physical, size_t offset, uint32_t access);
    ze_result (*zeVirtualMemUnmap)(ze_context_t context, const void *address, size_t size);
    ze_result (*zeVirtualMemSetAccessAttribute)(ze_context_t context, const void *address,
                                                size_t size, uint32_t access);
    ze_result (*zePhysicalMemCreate)(ze_context_t context, ze_device_t device,
                                     struct ze_physical_desc *desc, ze_physical_t *physical);
    ze_result (*zePhysicalMemDestroy)(ze_context_t context, ze_physical_t physical);
};

/* The graph extension (specification 1.17): exported by the driver, not by the loader. */
struct ze_graph_api {
    ze_result (*zeCommandListBeginGraphCaptureExt)(ze_list_t list, const void *next);
    ze_result (*zeCommandListEndGraphCaptureExt)(ze_list_t list, const void *next,
                                                 ze_graph_t *graph);
    ze_result (*zeCommandListIsGraphCaptureEnabledExt)(ze_list_t list);
    ze_result (*zeGraphInstantiateExt)(ze_graph_t graph, const void *next, ze_graph_exec_t *exec);
    ze_result (*zeCommandListAppendGraphExt)(ze_list_t list, ze_graph_exec_t exec, const void *next,
                                             ze_event_t signal, uint32_t wait_count,
                                             ze_event_t *waits);
    ze_result (*zeExecutableGraphDestroyExt)(ze_graph_exec_t exec);
    ze_result (*zeGraphDestroyExt)(ze_graph_t graph);
    ze_result (*zeGraphDumpContentsExt)(ze_graph_t graph, const char *path, const void *next);
};

#endif
