/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the files of the rocm plugin share. */
#ifndef DS_ACCEL_ROCM_H
#define DS_ACCEL_ROCM_H

#include "hip.h"

struct rocm_sensors; /* telemetry and ranges, opened when they are first asked for */
struct rocm_note;    /* of an address of virtual memory (vmem.c) */

/* What open() made: one for each instance. */
struct rocm {
    const struct ds_accel_host *host;
    struct vendor_lib lib;
    struct hip_api hip;
    uint32_t device_count; /* visible; asked once, when the runtime is started */
    struct rocm_sensors *sensors;
    pthread_mutex_t lock; /* guards what follows */
    struct rocm_note *reserved;
    struct rocm_note *half_unmapped; /* mappings that a try to unmap has left in part */
};

#define ROCM_OF(device) ((struct rocm *)(device)->instance->runtime)
#define HIP_OF(device) (&ROCM_OF(device)->hip)
/* Status of a vendor's code, with the call's text behind it. */
#define ROCM_CHECK(device, code, error, ...) \
    vendor_check((device)->instance, (device), rocm_code(ROCM_OF(device), (code)), (error), \
                 __VA_ARGS__)

/*
 * The code itself. A failed call leaves its code to hipGetLastError(); it was told already, and a
 * program that asks after its own launches shall not find ours.
 */
hip_error_t rocm_code(const struct rocm *rocm, hip_error_t code);
/* For a call that a capture of another stream takes for a mistake: the thread's mode is relaxed.
 * The mode before, or -1, for the second. */
int rocm_relax(const struct hip_api *hip);
void rocm_restore(const struct rocm *rocm, int mode);

/* -- rocm_topology.c: what the kernel driver says below /sys/class/kfd -- */

/* 0: the kernel lists a GPU, or lists nothing at all; -1 with the problem. */
int rocm_topology_check(const struct ds_accel_host *host, struct vendor_problem *problem);
/* The place of the GPU of this PCI address among the kernel's GPUs, as ROCR_VISIBLE_DEVICES counts
   them; -1: not there. */
int rocm_topology_index(const struct ds_accel_host *host, const char *pci_address);

/* "/dev/dri/renderD128"; as it was if there is none. */
void rocm_topology_node(const struct ds_accel_host *host, const char *pci_address, char *node,
                        size_t node_size);

/* -- device.c -- */

void rocm_describe(void *runtime, int64_t code, int32_t *status_out, const char **name_out);
/* "gfx90a:sramecc+:xnack-" */
int rocm_architecture(const struct rocm *rocm, uint32_t index, char *text, size_t text_size);
int32_t rocm_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                      struct ds_accel_error *error);
int32_t rocm_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                         struct ds_accel_error *error);
void rocm_device_close(ds_accel_plugin_device_t *device);
int32_t rocm_enter(ds_accel_plugin_device_t *device, uint64_t *saved_out,
                   struct ds_accel_error *error);
void rocm_leave(ds_accel_plugin_device_t *device, uint64_t saved);
int32_t rocm_get_current(ds_accel_plugin_instance_t *instance, uint32_t *index_out,
                         struct ds_accel_error *error);
int32_t rocm_set_current(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t rocm_device_synchronize(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t rocm_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t rocm_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype, uint32_t *support_out,
                           struct ds_accel_error *error);
int32_t rocm_peer_can_access(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                             uint32_t *can_out, struct ds_accel_error *error);
int32_t rocm_peer_enable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                         struct ds_accel_error *error);
int32_t rocm_peer_disable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                          struct ds_accel_error *error);
int rocm_visible_token(ds_accel_plugin_device_t *device, uint32_t which, char *token,
                       size_t token_size);

/* -- stream.c: streams, events, graphs -- */

int32_t rocm_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                           void **native_out, struct ds_accel_error *error);
void rocm_stream_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t rocm_stream_default(ds_accel_plugin_device_t *device, void **native_out,
                            struct ds_accel_error *error);
int32_t rocm_stream_priority_range(ds_accel_plugin_device_t *device, int32_t *least_out,
                                   int32_t *greatest_out, struct ds_accel_error *error);
int32_t rocm_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                                struct ds_accel_error *error);
int32_t rocm_stream_query(ds_accel_plugin_device_t *device, void *native,
                          struct ds_accel_error *error);
int32_t rocm_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                               struct ds_accel_error *error);
int32_t rocm_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                              void (*call)(void *argument), void *argument,
                              struct ds_accel_error *error);
int32_t rocm_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                          struct ds_accel_error *error);
void rocm_event_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t rocm_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                          struct ds_accel_error *error);
int32_t rocm_event_query(ds_accel_plugin_device_t *device, void *native,
                         struct ds_accel_error *error);
int32_t rocm_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                               struct ds_accel_error *error);
int32_t rocm_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                              double *elapsed_ms_out, struct ds_accel_error *error);
int32_t rocm_capture_begin(ds_accel_plugin_device_t *device, void *native_stream, uint32_t mode,
                           struct ds_accel_error *error);
int32_t rocm_capture_end(ds_accel_plugin_device_t *device, void *native_stream, void **native_out,
                         struct ds_accel_error *error);
int32_t rocm_capture_status(ds_accel_plugin_device_t *device, void *native_stream,
                            uint32_t *status_out, struct ds_accel_error *error);
void rocm_graph_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t rocm_graph_instantiate(ds_accel_plugin_device_t *device, void *native, void **exec_out,
                               struct ds_accel_error *error);
void rocm_graph_exec_destroy(ds_accel_plugin_device_t *device, void *exec);
int32_t rocm_graph_launch(ds_accel_plugin_device_t *device, void *exec, void *native_stream,
                          struct ds_accel_error *error);
int32_t rocm_graph_exec_update(ds_accel_plugin_device_t *device, void *exec, void *native,
                               uint32_t *result_out, struct ds_accel_error *error);
int32_t rocm_graph_node_count(ds_accel_plugin_device_t *device, void *native, uint64_t *count_out,
                              struct ds_accel_error *error);

/* -- memory.c -- */

int32_t rocm_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                   struct ds_accel_error *error);
int32_t rocm_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error);
int32_t rocm_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                          void **pointer_out, struct ds_accel_error *error);
int32_t rocm_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                         struct ds_accel_error *error);
int32_t rocm_host_register(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                           uint32_t flags, struct ds_accel_error *error);
int32_t rocm_host_unregister(ds_accel_plugin_device_t *device, void *pointer,
                             struct ds_accel_error *error);
int32_t rocm_alloc_managed(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                           void **pointer_out, struct ds_accel_error *error);
int32_t rocm_host_device_pointer(ds_accel_plugin_device_t *device, void *host_pointer,
                                 void **device_pointer_out, struct ds_accel_error *error);
int32_t rocm_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        const void *source, uint64_t size_bytes, uint32_t kind,
                        struct ds_accel_error *error);
int32_t rocm_copy_peer_async(ds_accel_plugin_device_t *device, void *native_stream,
                             ds_accel_plugin_device_t *destination_device, void *destination,
                             ds_accel_plugin_device_t *source_device, const void *source,
                             uint64_t size_bytes, struct ds_accel_error *error);
int32_t rocm_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                        struct ds_accel_error *error);
int32_t rocm_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                         struct ds_accel_error *error);
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
int32_t rocm_ipc_event_export(ds_accel_plugin_device_t *device, void *native, void *handle,
                              struct ds_accel_error *error);
int32_t rocm_ipc_event_open(ds_accel_plugin_device_t *device, const void *handle, void **native_out,
                            struct ds_accel_error *error);

/* -- vmem.c -- */

/* Are all the functions there? */
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
