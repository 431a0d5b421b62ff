/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Declarations that the files of the rocm plugin share. */
#ifndef DS_ACCEL_PLUGINS_ROCM_ROCM_H
#define DS_ACCEL_PLUGINS_ROCM_ROCM_H

#include "hip.h"

struct rocm_sensors; /* telemetry and ranges; their libraries are opened at first use */
struct rocm_note;    /* record of a reserved or mapped address range (vmem.c) */

/* The plugin's runtime; each instance has its own, created by rocm_open(). */
struct rocm {
    struct cuda_shaped shaped;
    struct hip_api hip;
    const struct ds_accel_host *host;
    struct vendor_lib lib;
    uint32_t device_count; /* visible devices; read once, when the runtime is started */
    struct rocm_sensors *sensors;
    pthread_mutex_t lock; /* guards the members below */
    struct rocm_note *reserved;
    struct rocm_note *half_unmapped; /* mappings that a failed unmap left partially mapped */
};
_Static_assert(offsetof(struct rocm, shaped) == 0, "cuda_shaped.h");

#define ROCM_OF(device) ((struct rocm *)(device)->instance->runtime)
#define HIP_OF(device) (&ROCM_OF(device)->hip)
/* Returns the status for a vendor's code; the arguments after error describe the call. */
#define ROCM_CHECK(device, code, error, ...) \
    vendor_check((device)->instance, (device), cuda_shaped_code(&ROCM_OF(device)->shaped, (code)), \
                 (error), __VA_ARGS__)

/* -- topology.c: the kernel driver's list of devices in /sys/class/kfd -- */

/* Returns 0 if the kernel lists a GPU or there is no list; otherwise -1, with *problem set. */
int rocm_topology_check(const struct ds_accel_host *host, struct vendor_problem *problem);
/*
 * Returns the position of the GPU with this PCI address among the kernel's GPUs, which is its
 * number in ROCR_VISIBLE_DEVICES; -1: not listed.
 */
int rocm_topology_index(const struct ds_accel_host *host, const char *pci_address);

/*
 * Writes the device node, such as "/dev/dri/renderD128"; leaves the text unchanged if there is no
 * node.
 */
void rocm_topology_node(const struct ds_accel_host *host, const char *pci_address, char *node,
                        size_t node_size);

/* -- device.c -- */

void rocm_describe(void *runtime, int64_t code, int32_t *status_out, const char **name_out);
/*
 * Writes the architecture with its features, such as "gfx90a:sramecc+:xnack-". Returns 0, or -1 if
 * HIP does not report it.
 */
int rocm_architecture(const struct rocm *rocm, uint32_t index, char *text, size_t text_size);
int32_t rocm_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                      struct ds_accel_error *error);
int32_t rocm_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                         struct ds_accel_error *error);
int32_t rocm_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype, uint32_t *support_out,
                           struct ds_accel_error *error);
int rocm_visible_token(ds_accel_plugin_device_t *device, uint32_t which, char *token,
                       size_t token_size);

/* -- stream.c -- */

int32_t rocm_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                           void **native_out, struct ds_accel_error *error);
int32_t rocm_stream_default(ds_accel_plugin_device_t *device, void **native_out,
                            struct ds_accel_error *error);
int32_t rocm_stream_priority_range(ds_accel_plugin_device_t *device, int32_t *least_out,
                                   int32_t *greatest_out, struct ds_accel_error *error);
int32_t rocm_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                              void (*call)(void *argument), void *argument,
                              struct ds_accel_error *error);
int32_t rocm_capture_end(ds_accel_plugin_device_t *device, void *native_stream, void **native_out,
                         struct ds_accel_error *error);
int32_t rocm_graph_exec_update(ds_accel_plugin_device_t *device, void *exec, void *native,
                               uint32_t *result_out, struct ds_accel_error *error);
int32_t rocm_graph_node_count(ds_accel_plugin_device_t *device, void *native, uint64_t *count_out,
                              struct ds_accel_error *error);

/* -- memory.c -- */

int32_t rocm_alloc_managed(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                           void **pointer_out, struct ds_accel_error *error);
int32_t rocm_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                        struct ds_accel_error *error);
int32_t rocm_copy_peer_async(ds_accel_plugin_device_t *device, void *native_stream,
                             ds_accel_plugin_device_t *destination_device, void *destination,
                             ds_accel_plugin_device_t *source_device, const void *source,
                             uint64_t size_bytes, struct ds_accel_error *error);
int32_t rocm_trim(ds_accel_plugin_device_t *device, uint64_t keep_bytes,
                  struct ds_accel_error *error);
int32_t rocm_alloc_async(ds_accel_plugin_device_t *device, void *native_stream, uint64_t size_bytes,
                         void **pointer_out, struct ds_accel_error *error);
int32_t rocm_free_async(ds_accel_plugin_device_t *device, void *native_stream, void *pointer,
                        struct ds_accel_error *error);
int32_t rocm_ipc_memory_export(ds_accel_plugin_device_t *device, void *base, uint64_t size_bytes,
                               void *handle, struct ds_accel_error *error);
int32_t rocm_ipc_memory_open(ds_accel_plugin_device_t *device, const void *handle,
                             uint64_t size_bytes, void **base_out, struct ds_accel_error *error);
int32_t rocm_ipc_memory_close(ds_accel_plugin_device_t *device, const void *handle, void *base,
                              struct ds_accel_error *error);

/* -- vmem.c -- */

/* Returns true if all functions of virtual memory are present. */
int rocm_has_vmem(const struct hip_api *hip);
void rocm_vmem_close(struct rocm *rocm);
int32_t rocm_vmem_granularity(ds_accel_plugin_device_t *device, uint32_t flags,
                              uint64_t *minimum_out, uint64_t *recommended_out,
                              struct ds_accel_error *error);
int32_t rocm_vmem_reserve(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                          uint64_t align_bytes, void *hint, void **address_out,
                          struct ds_accel_error *error);
int32_t rocm_vmem_release(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                          struct ds_accel_error *error);
int32_t rocm_vmem_create(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                         void **native_out, struct ds_accel_error *error);
void rocm_vmem_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t rocm_vmem_map(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                      void *native, uint64_t offset_bytes, struct ds_accel_error *error);
int32_t rocm_vmem_unmap(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                        struct ds_accel_error *error);
int32_t rocm_vmem_set_access(ds_accel_plugin_device_t *accessor, void *address, uint64_t size_bytes,
                             uint32_t access, struct ds_accel_error *error);

/* -- sensors.c: rocm_smi, amd_smi, sysfs, roctx -- */

struct rocm_sensors *rocm_sensors_create(const struct ds_accel_host *host);
void rocm_sensors_destroy(struct rocm_sensors *sensors);
int32_t rocm_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                       struct ds_accel_telemetry *telemetry, struct ds_accel_error *error);
/* links.c */
int32_t rocm_links(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                   struct ds_accel_link *links, uint32_t capacity, uint32_t *count_out,
                   struct ds_accel_error *error);
int32_t rocm_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                        const char *domain, const char *category, struct ds_accel_error *error);
int32_t rocm_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                       struct ds_accel_error *error);

#endif
