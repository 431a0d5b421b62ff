/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Declarations that the files of the npu plugin share. */
#ifndef DS_ACCEL_PLUGINS_NPU_NPU_H
#define DS_ACCEL_PLUGINS_NPU_NPU_H

#include "acl.h"
#include "dcmi.h"
#include "vendor.h"

#define NPU_MAX_DEVICES 64
#define NPU_VISIBLE "ASCEND_RT_VISIBLE_DEVICES"

/* A chip in the numbering of the management library. */
struct npu_chip {
    int card;
    int device;
    int logic; /* ACL's number before ASCEND_RT_VISIBLE_DEVICES is applied */
};

struct npu_runtime {
    const struct ds_accel_host *host;
    struct vendor_lib acl_lib;
    struct acl_api acl;
    struct vendor_lib dcmi_lib;
    struct dcmi_api dcmi;
    struct npu_chip chips[NPU_MAX_DEVICES];
    uint32_t chip_count; /* 0: libdcmi.so is not installed, its calls fail, or it lists no chip */
    /*
     * Functions of libms_tools_ext.so; NULL without the library. A range has a number, which is
     * passed to end the range.
     */
    uint64_t (*mstxRangeStartA)(const char *message, void *stream);
    void (*mstxRangeEnd)(uint64_t range);
};

/* An open device. */
struct npu_device {
    int32_t user;         /* the number that ACL's calls expect for the device */
    void *primary;        /* the context that aclrtSetDevice() creates */
    void *context;        /* context where work is queued: primary, or the program's own context */
    int memory_attribute; /* ACL_HBM or ACL_DDR */
    uint32_t has_bf16;
    struct npu_mapping *mappings; /* mappings of virtual memory (vmem.c) */
};

#define NPU(instance) ((struct npu_runtime *)(instance)->runtime)
#define NPU_ACL(device) (&NPU((device)->instance)->acl)
#define NPU_STATE(device) ((struct npu_device *)(device)->state)

/*
 * Returns the status for the code of an ACL call on a device; the arguments after error describe
 * the call.
 */
#define NPU_CHECK(device, code, error, ...) \
    vendor_check((device)->instance, (device), (code), (error), __VA_ARGS__)

/* npu.c */
#define NPU_MISSING(error, call, symbol, since) \
    vendor_unsupported(error, call, "libascendcl.so has no " symbol " (" since ")")

/* version.c */
void npu_runtime_version(const struct ds_accel_host *host, uint32_t version[4]);
void npu_driver_version(const struct ds_accel_host *host, uint32_t version[4]);

/* telemetry.c */
void npu_dcmi_open(struct npu_runtime *runtime);
const struct npu_chip *npu_chip_of(const struct npu_runtime *runtime, uint32_t logic);
int32_t npu_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_telemetry *telemetry, struct ds_accel_error *error);
int32_t npu_processes(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_process *processes, uint32_t capacity, uint32_t *count_out,
                      struct ds_accel_error *error);
void npu_ranges_open(struct npu_runtime *runtime, const char *const *names);
int32_t npu_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                       const char *domain, const char *category, struct ds_accel_error *error);
int32_t npu_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                      struct ds_accel_error *error);

/* device.c */
int32_t npu_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                     struct ds_accel_error *error);
int32_t npu_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                        struct ds_accel_error *error);
void npu_device_close(ds_accel_plugin_device_t *device);
int32_t npu_enter(ds_accel_plugin_device_t *device, uint64_t *saved_out,
                  struct ds_accel_error *error);
void npu_leave(ds_accel_plugin_device_t *device, uint64_t saved);
int32_t npu_get_current(ds_accel_plugin_instance_t *instance, uint32_t *index_out,
                        struct ds_accel_error *error);
int32_t npu_set_current(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t npu_device_synchronize(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t npu_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t npu_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype, uint32_t *support_out,
                          struct ds_accel_error *error);
int npu_visible_token(ds_accel_plugin_device_t *device, uint32_t which, char *token,
                      size_t token_size);
int32_t npu_peer_can_access(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                            uint32_t *can_out, struct ds_accel_error *error);
int32_t npu_peer_enable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                        struct ds_accel_error *error);
int32_t npu_peer_disable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                         struct ds_accel_error *error);

/* memory.c */
/*
 * For calls that a capture of another stream makes fail: npu_relax() relaxes the thread's capture
 * mode and returns the previous mode, or -1 if the mode cannot be changed; the caller passes the
 * result to npu_restore().
 */
int npu_relax(const struct acl_api *acl);
void npu_restore(const struct acl_api *acl, int mode);
int32_t npu_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                  struct ds_accel_error *error);
int32_t npu_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error);
int32_t npu_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                         void **pointer_out, struct ds_accel_error *error);
int32_t npu_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                        struct ds_accel_error *error);
int32_t npu_host_register(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                          uint32_t flags, struct ds_accel_error *error);
int32_t npu_host_unregister(ds_accel_plugin_device_t *device, void *pointer,
                            struct ds_accel_error *error);
int32_t npu_copy(ds_accel_plugin_device_t *device, void *destination, const void *source,
                 uint64_t size_bytes, uint32_t kind, struct ds_accel_error *error);
int32_t npu_copy_async(ds_accel_plugin_device_t *device, void *stream, void *destination,
                       const void *source, uint64_t size_bytes, uint32_t kind,
                       struct ds_accel_error *error);
int32_t npu_copy_peer_async(ds_accel_plugin_device_t *device, void *stream,
                            ds_accel_plugin_device_t *destination_device, void *destination,
                            ds_accel_plugin_device_t *source_device, const void *source,
                            uint64_t size_bytes, struct ds_accel_error *error);
int32_t npu_fill_async(ds_accel_plugin_device_t *device, void *stream, void *destination,
                       uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                       struct ds_accel_error *error);
int32_t npu_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                        struct ds_accel_error *error);
int32_t npu_ipc_export(ds_accel_plugin_device_t *device, void *base, uint64_t size_bytes,
                       void *handle, struct ds_accel_error *error);
int32_t npu_ipc_unexport(ds_accel_plugin_device_t *device, const void *handle,
                         struct ds_accel_error *error);
int32_t npu_ipc_open(ds_accel_plugin_device_t *device, const void *handle, uint64_t size_bytes,
                     void **base_out, struct ds_accel_error *error);
int32_t npu_ipc_close(ds_accel_plugin_device_t *device, const void *handle, void *base,
                      struct ds_accel_error *error);

/* vmem.c */
uint32_t npu_has_vmem(const struct acl_api *acl);
void npu_vmem_forget(struct npu_device *state);
int32_t npu_vmem_granularity(ds_accel_plugin_device_t *device, uint32_t flags,
                             uint64_t *minimum_out, uint64_t *recommended_out,
                             struct ds_accel_error *error);
int32_t npu_vmem_reserve(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                         uint64_t align_bytes, void *hint, void **address_out,
                         struct ds_accel_error *error);
int32_t npu_vmem_release(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                         struct ds_accel_error *error);
int32_t npu_vmem_create(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                        void **native_out, struct ds_accel_error *error);
void npu_vmem_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t npu_vmem_map(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                     void *native, uint64_t offset_bytes, struct ds_accel_error *error);
int32_t npu_vmem_unmap(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                       struct ds_accel_error *error);
int32_t npu_vmem_set_access(ds_accel_plugin_device_t *accessor, void *address, uint64_t size_bytes,
                            uint32_t access, struct ds_accel_error *error);

/* work.c */
int32_t npu_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                          void **native_out, struct ds_accel_error *error);
void npu_stream_destroy(ds_accel_plugin_device_t *device, void *stream);
int32_t npu_stream_priority_range(ds_accel_plugin_device_t *device, int32_t *least_out,
                                  int32_t *greatest_out, struct ds_accel_error *error);
int32_t npu_stream_synchronize(ds_accel_plugin_device_t *device, void *stream,
                               struct ds_accel_error *error);
int32_t npu_stream_query(ds_accel_plugin_device_t *device, void *stream,
                         struct ds_accel_error *error);
int32_t npu_stream_wait_event(ds_accel_plugin_device_t *device, void *stream, void *event,
                              struct ds_accel_error *error);
int32_t npu_stream_host_task(ds_accel_plugin_device_t *device, void *stream,
                             void (*call)(void *argument), void *argument,
                             struct ds_accel_error *error);
int32_t npu_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                         struct ds_accel_error *error);
void npu_event_destroy(ds_accel_plugin_device_t *device, void *event);
int32_t npu_event_record(ds_accel_plugin_device_t *device, void *event, void *stream,
                         struct ds_accel_error *error);
int32_t npu_event_query(ds_accel_plugin_device_t *device, void *event,
                        struct ds_accel_error *error);
int32_t npu_event_synchronize(ds_accel_plugin_device_t *device, void *event,
                              struct ds_accel_error *error);
int32_t npu_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                             double *elapsed_ms_out, struct ds_accel_error *error);
int32_t npu_ipc_event_export(ds_accel_plugin_device_t *device, void *event, void *handle,
                             struct ds_accel_error *error);
int32_t npu_ipc_event_open(ds_accel_plugin_device_t *device, const void *handle, void **native_out,
                           struct ds_accel_error *error);
int32_t npu_capture_begin(ds_accel_plugin_device_t *device, void *stream, uint32_t mode,
                          struct ds_accel_error *error);
int32_t npu_capture_end(ds_accel_plugin_device_t *device, void *stream, void **native_out,
                        struct ds_accel_error *error);
int32_t npu_capture_status(ds_accel_plugin_device_t *device, void *stream, uint32_t *status_out,
                           struct ds_accel_error *error);
void npu_graph_destroy(ds_accel_plugin_device_t *device, void *graph);
int32_t npu_graph_launch(ds_accel_plugin_device_t *device, void *exec, void *stream,
                         struct ds_accel_error *error);

#endif
