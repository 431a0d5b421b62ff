/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Declarations that the files of the cuda plugin share; cuda.c describes the files. */
#ifndef DS_ACCEL_PLUGINS_CUDA_PLUGIN_H
#define DS_ACCEL_PLUGINS_CUDA_PLUGIN_H

#include "cuda_api.h"
#include "nvml_api.h"
#include "vendor.h"

/* The latest values of a device's PCI Express counters, and the rates computed from them. */
struct cuda_traffic {
    uint64_t taken_ns; /* 0: the counters were never read */
    uint64_t sent_bytes;
    uint64_t received_bytes;
    uint64_t sent_per_s;
    uint64_t received_per_s;
    uint32_t has_rates;
};
#define CUDA_TRAFFIC_LIMIT 64u /* maximum number of devices with a traffic record */

struct cuda_range_name; /* an NVTX domain, or a category of a domain (ranges.c) */

/* The backend's runtime. */
struct cuda_runtime {
    const struct ds_accel_host *host;
    struct vendor_lib lib;
    struct cuda_api api;
    int version; /* driver API version: 12040 means CUDA 12.4 */
    struct nvml_api nvml;
    uint32_t has_nvml;
    struct nvtx_api nvtx;
    uint32_t has_nvtx;
    uint32_t has_domains;
    pthread_mutex_t lock; /* guards the members below */
    struct cuda_traffic traffic[CUDA_TRAFFIC_LIMIT];
    struct cuda_range_name *domains;
};

/* The backend's state of an open device. */
struct cuda_device {
    const struct cuda_api *api;
    cu_context_t context;
    cu_device_t device;
    cu_event_t mark;        /* of cuda_device_mark(); NULL: not made yet */
    uint32_t is_borrowed;   /* the context belongs to the program */
    uint32_t has_pools;     /* the device has memory pools, which mem_alloc_async uses */
    uint32_t has_vmem_rdma; /* cuMemCreate() accepts the flag for network cards */
    uint32_t has_dmabuf;
    int major;
};

static inline struct cuda_runtime *cuda_runtime_of(const ds_accel_plugin_device_t *device)
{
    return device->instance->runtime;
}

static inline const struct cuda_api *cuda_api_of(const ds_accel_plugin_device_t *device)
{
    return &cuda_runtime_of(device)->api;
}

static inline cu_pointer_t cuda_address(const void *pointer)
{
    return (cu_pointer_t)(uintptr_t)pointer;
}

/*
 * Returns the failed call's status from the enclosing function; the arguments after error describe
 * the call. A successful call costs one comparison.
 */
#define CUDA_TRY(device, code, error, ...) \
    do { \
        cu_result_t cuda_code_ = (code); \
        if (cuda_code_ != CU_SUCCESS) { \
            return vendor_check((device)->instance, (device), cuda_code_, (error), __VA_ARGS__); \
        } \
    } while (0)

/*
 * For destroying functions, which return no status: logs a failure of the call. On a lost device,
 * where every call fails, nothing is logged.
 */
#define CUDA_END(device, code, ...) \
    do { \
        cu_result_t cuda_code_ = (code); \
        if (cuda_code_ != CU_SUCCESS) { \
            struct ds_accel_error cuda_error_ = {.struct_size = sizeof(cuda_error_)}; \
            vendor_check((device)->instance, (device), cuda_code_, &cuda_error_, __VA_ARGS__); \
            if (atomic_load(&(device)->is_lost) == 0) { \
                vendor_log((device)->instance->host, DS_ACCEL_LOG_WARN, "%s", \
                           cuda_error_.message); \
            } \
        } \
    } while (0)

/*
 * Returns one attribute of a device, without a context; returns the argument otherwise if the
 * device does not have the attribute.
 */
int cuda_attribute(const struct cuda_api *api, cu_device_t device, int attribute, int otherwise);
/* Writes the kernel driver's version as text, "535.161.08" or "", and as numbers, or zeros. */
void cuda_driver_version(const struct cuda_runtime *runtime, char *text, size_t text_size,
                         uint32_t version[4]);

/* nvml.c */
void nvml_open(struct cuda_runtime *runtime);
void nvml_close(struct cuda_runtime *runtime);
/* Adds what NVML reports about a device to its identity, where CUDA's facts are already set. */
void nvml_identify(const struct cuda_runtime *runtime, struct ds_accel_device_identity *identity);
/* Returns true if NVML lists exactly this many devices and none of them is divided into parts. */
int nvml_has_only(const struct cuda_runtime *runtime, uint32_t count);
/*
 * Returns NVML's handle of a device or part. NULL: NVML is absent, does not list the device, or
 * would wake the device.
 */
nvml_device_t nvml_find(const ds_accel_plugin_instance_t *instance, uint32_t device_index);
/*
 * Reads the values of fields whose numbers and scopes the caller has set. 0: no field has a value.
 */
int nvml_ask_fields(const struct nvml_api *nvml, nvml_device_t device, nvml_field_t *fields,
                    unsigned int count);
/*
 * Converts a field's value of any type to a whole number. 0: no value; *number_out is not written.
 */
int nvml_field_number(const nvml_field_t *field, uint64_t *number_out);

/* sensors.c */
int32_t nvml_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                       struct ds_accel_telemetry *telemetry, struct ds_accel_error *error);
int32_t nvml_processes(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                       struct ds_accel_process *processes, uint32_t capacity, uint32_t *count_out,
                       struct ds_accel_error *error);

/* links.c */
int32_t nvml_links(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                   struct ds_accel_link *links, uint32_t capacity, uint32_t *count_out,
                   struct ds_accel_error *error);

/* ranges.c */
void cuda_ranges_open(struct cuda_runtime *runtime);
void cuda_ranges_close(struct cuda_runtime *runtime);

/* device.c */
/*
 * Writes the address in the kernel's form, "0000:65:00.0"; NVIDIA's libraries use capital letters.
 * Returns 0 if the text is not an address.
 */
int cuda_pci_address(const char *text, char *address, size_t address_size);
int32_t cuda_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                      struct ds_accel_error *error);
int32_t cuda_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                         struct ds_accel_error *error);
void cuda_device_close(ds_accel_plugin_device_t *device);
int32_t cuda_enter(ds_accel_plugin_device_t *device, uint64_t *saved_out,
                   struct ds_accel_error *error);
void cuda_leave(ds_accel_plugin_device_t *device, uint64_t saved);
int32_t cuda_get_current(ds_accel_plugin_instance_t *instance, uint32_t *index_out,
                         struct ds_accel_error *error);
int32_t cuda_set_current(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t cuda_device_synchronize(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t cuda_device_mark(ds_accel_plugin_device_t *device, void **event_out,
                         struct ds_accel_error *error);
int32_t cuda_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t cuda_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype, uint32_t *support_out,
                           struct ds_accel_error *error);
int cuda_visible_token(ds_accel_plugin_device_t *device, uint32_t which, char *token,
                       size_t token_size);

/* The functions of cuda.c's table. CUDA_VERB(name, ...) declares cuda_name(), which returns a
   status and has the error as last parameter. */
#define CUDA_VERB(name, ...) int32_t cuda_##name(__VA_ARGS__, struct ds_accel_error *error)
typedef ds_accel_plugin_device_t cuda_handle_t;

CUDA_VERB(stream_create, cuda_handle_t *device, uint32_t flags, int32_t priority,
          void **native_out);
void cuda_stream_destroy(cuda_handle_t *device, void *native);
CUDA_VERB(stream_default, cuda_handle_t *device, void **native_out);
CUDA_VERB(stream_priority_range, cuda_handle_t *device, int32_t *least_out, int32_t *greatest_out);
CUDA_VERB(stream_synchronize, cuda_handle_t *device, void *native);
CUDA_VERB(stream_query, cuda_handle_t *device, void *native);
CUDA_VERB(stream_wait_event, cuda_handle_t *device, void *native, void *native_event);
CUDA_VERB(stream_host_task, cuda_handle_t *device, void *native, void (*call)(void *argument),
          void *argument);
CUDA_VERB(event_create, cuda_handle_t *device, uint32_t flags, void **native_out);
void cuda_event_destroy(cuda_handle_t *device, void *native);
CUDA_VERB(event_record, cuda_handle_t *device, void *native, void *native_stream);
CUDA_VERB(event_query, cuda_handle_t *device, void *native);
CUDA_VERB(event_synchronize, cuda_handle_t *device, void *native);
CUDA_VERB(event_elapsed_ms, cuda_handle_t *device, void *start, void *end, double *elapsed_ms_out);

CUDA_VERB(alloc, cuda_handle_t *device, uint64_t size_bytes, void **pointer_out);
CUDA_VERB(free, cuda_handle_t *device, void *pointer);
CUDA_VERB(alloc_pinned, cuda_handle_t *device, uint64_t size_bytes, uint32_t flags,
          void **pointer_out);
CUDA_VERB(free_pinned, cuda_handle_t *device, void *pointer);
CUDA_VERB(host_register, cuda_handle_t *device, void *pointer, uint64_t size_bytes, uint32_t flags);
CUDA_VERB(host_unregister, cuda_handle_t *device, void *pointer);
CUDA_VERB(alloc_managed, cuda_handle_t *device, uint64_t size_bytes, void **pointer_out);
CUDA_VERB(host_device_pointer, cuda_handle_t *device, void *host_pointer,
          void **device_pointer_out);
void cuda_pointer_info(ds_accel_plugin_instance_t *instance, const void *pointer,
                       struct ds_accel_pointer_info *info);
CUDA_VERB(copy_async, cuda_handle_t *device, void *native_stream, void *destination,
          const void *source, uint64_t size_bytes, uint32_t kind);
CUDA_VERB(copy_peer_async, cuda_handle_t *device, void *native_stream,
          cuda_handle_t *destination_device, void *destination, cuda_handle_t *source_device,
          const void *source, uint64_t size_bytes);
CUDA_VERB(fill_async, cuda_handle_t *device, void *native_stream, void *destination,
          uint32_t pattern, uint32_t pattern_bytes, uint64_t count);
CUDA_VERB(memory_info, cuda_handle_t *device, uint64_t *free_out, uint64_t *total_out);
CUDA_VERB(trim, cuda_handle_t *device, uint64_t keep_bytes);
CUDA_VERB(alloc_async, cuda_handle_t *device, void *native_stream, uint64_t size_bytes,
          void **pointer_out);
CUDA_VERB(free_async, cuda_handle_t *device, void *native_stream, void *pointer);

CUDA_VERB(vmem_granularity, cuda_handle_t *device, uint32_t flags, uint64_t *minimum_out,
          uint64_t *recommended_out);
CUDA_VERB(vmem_reserve, cuda_handle_t *device, uint64_t size_bytes, uint64_t align_bytes,
          void *hint, void **address_out);
CUDA_VERB(vmem_release, cuda_handle_t *device, void *address, uint64_t size_bytes);
CUDA_VERB(vmem_create, cuda_handle_t *device, uint64_t size_bytes, uint32_t flags,
          void **native_out);
void cuda_vmem_destroy(cuda_handle_t *device, void *native);
CUDA_VERB(vmem_map, cuda_handle_t *device, void *address, uint64_t size_bytes, void *native,
          uint64_t offset_bytes);
CUDA_VERB(vmem_unmap, cuda_handle_t *device, void *address, uint64_t size_bytes);
CUDA_VERB(vmem_set_access, cuda_handle_t *accessor, void *address, uint64_t size_bytes,
          uint32_t access);

CUDA_VERB(capture_begin, cuda_handle_t *device, void *native_stream, uint32_t mode);
CUDA_VERB(capture_end, cuda_handle_t *device, void *native_stream, void **native_out);
CUDA_VERB(capture_status, cuda_handle_t *device, void *native_stream, uint32_t *status_out);
void cuda_graph_destroy(cuda_handle_t *device, void *native);
CUDA_VERB(graph_instantiate, cuda_handle_t *device, void *native, void **exec_out);
void cuda_graph_exec_destroy(cuda_handle_t *device, void *exec);
CUDA_VERB(graph_launch, cuda_handle_t *device, void *exec, void *native_stream);
CUDA_VERB(graph_exec_update, cuda_handle_t *device, void *exec, void *native, uint32_t *result_out);
CUDA_VERB(graph_node_count, cuda_handle_t *device, void *native, uint64_t *count_out);
CUDA_VERB(graph_dump, cuda_handle_t *device, void *native, ds_accel_text_sink_t sink,
          void *user_data);

CUDA_VERB(peer_can_access, cuda_handle_t *device, cuda_handle_t *peer, uint32_t *can_out);
CUDA_VERB(peer_enable, cuda_handle_t *device, cuda_handle_t *peer);
CUDA_VERB(peer_disable, cuda_handle_t *device, cuda_handle_t *peer);
CUDA_VERB(ipc_memory_export, cuda_handle_t *device, void *base, uint64_t size_bytes, void *handle);
CUDA_VERB(ipc_memory_open, cuda_handle_t *device, const void *handle, uint64_t size_bytes,
          void **base_out);
CUDA_VERB(ipc_memory_close, cuda_handle_t *device, const void *handle, void *base);
CUDA_VERB(ipc_event_export, cuda_handle_t *device, void *native, void *handle);
CUDA_VERB(ipc_event_open, cuda_handle_t *device, const void *handle, void **native_out);
CUDA_VERB(dmabuf_export, cuda_handle_t *device, void *pointer, uint64_t size_bytes, int32_t *fd_out,
          uint64_t *offset_out);
CUDA_VERB(range_push, ds_accel_plugin_instance_t *instance, const char *message, const char *domain,
          const char *category);
CUDA_VERB(range_pop, ds_accel_plugin_instance_t *instance, const char *domain);
CUDA_VERB(profiler_start, ds_accel_plugin_instance_t *instance);
CUDA_VERB(profiler_stop, ds_accel_plugin_instance_t *instance);

/* ---- calls during a capture ----------------------------------------------------------------- */

static inline void cuda_relax(const struct cuda_api *api, int *mode)
{
    *mode = CU_CAPTURE_RELAXED;
    if (api->cuThreadExchangeStreamCaptureMode != NULL) {
        api->cuThreadExchangeStreamCaptureMode(mode);
    }
}

static inline void cuda_unrelax(const struct cuda_api *api, int mode)
{
    if (api->cuThreadExchangeStreamCaptureMode != NULL) {
        api->cuThreadExchangeStreamCaptureMode(&mode);
    }
}

/*
 * Makes the call with the thread's capture mode relaxed, for calls that the driver would otherwise
 * reject while another stream captures. The variable code receives the call's result.
 */
#define CUDA_RELAXED(api, code, call) \
    do { \
        int mode_; \
        cuda_relax(api, &mode_); \
        (code) = (call); \
        cuda_unrelax(api, mode_); \
    } while (0)

#endif
