/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Declarations that the files of the mlu plugin share. */
#ifndef DS_ACCEL_PLUGINS_MLU_MLU_H
#define DS_ACCEL_PLUGINS_MLU_MLU_H

#include "cndev.h"
#include "cnpx.h"
#include "cnrt.h"
#include "vendor.h"

#define MLU_MAX_CARDS 64

/* A card in the numbering of the device library, which lists all cards of the machine. */
struct mlu_card {
    int32_t handle;
    char pci_address[32];
    char uuid_text[64];
};

struct mlu_runtime {
    const struct ds_accel_host *host;
    struct vendor_lib cnrt_lib;
    struct cnrt_api cnrt;
    cnrt_copy_async copy_async; /* the copy function chosen from cnrt; its name follows */
    const char *copy_async_name;
    struct vendor_lib cndev_lib;
    struct cndev_api cndev;
    struct mlu_card cards[MLU_MAX_CARDS];
    uint32_t card_count; /* 0: libcndev.so is not installed, or its calls fail */
    int32_t cndev_version;
    struct vendor_lib cnpx_lib;
    struct cnpx_api cnpx; /* profiler ranges; range_push is NULL without them */
};

#define MLU(instance) ((struct mlu_runtime *)(instance)->runtime)
#define MLU_CNRT(device) (&MLU((device)->instance)->cnrt)

/*
 * Calls vendor_check() for a call on a device. CNRT has no code for a lost device: after a driver
 * failure, mlu_judge() reads the card's health from CNDev.
 */
#define MLU_CHECK(device, code, error, ...) \
    mlu_judge((device), vendor_check((device)->instance, (device), (code), (error), __VA_ARGS__), \
              (error))
#define MLU_MISSING(error, call, symbol) \
    vendor_unsupported(error, call, "libcnrt.so has no " symbol)

/* telemetry.c */
void mlu_cndev_open(struct mlu_runtime *runtime);
/* Returns the card's number in the machine, found by its PCI address; -1: not known. */
int32_t mlu_card_at(const struct mlu_runtime *runtime, const char *pci_address);
void mlu_driver_version(const struct mlu_runtime *runtime, uint32_t version[4]);
int32_t mlu_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_telemetry *telemetry, struct ds_accel_error *error);
int32_t mlu_processes(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_process *processes, uint32_t capacity, uint32_t *count_out,
                      struct ds_accel_error *error);
/*
 * If the status is ERR_DRIVER and CNDev reports the card as faulty, returns ERR_DEVICE_LOST and
 * stores that code in *error. Otherwise returns the status.
 */
int32_t mlu_judge(ds_accel_plugin_device_t *device, int32_t status, struct ds_accel_error *error);
int32_t mlu_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
void mlu_ranges_open(struct mlu_runtime *runtime);
int32_t mlu_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                       const char *domain, const char *category, struct ds_accel_error *error);
int32_t mlu_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                      struct ds_accel_error *error);

/* device.c */
int32_t mlu_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                     struct ds_accel_error *error);
int32_t mlu_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                        struct ds_accel_error *error);
void mlu_device_close(ds_accel_plugin_device_t *device);
int32_t mlu_enter(ds_accel_plugin_device_t *device, uint64_t *saved_out,
                  struct ds_accel_error *error);
void mlu_leave(ds_accel_plugin_device_t *device, uint64_t saved);
int32_t mlu_get_current(ds_accel_plugin_instance_t *instance, uint32_t *index_out,
                        struct ds_accel_error *error);
int32_t mlu_set_current(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t mlu_device_synchronize(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t mlu_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype, uint32_t *support_out,
                          struct ds_accel_error *error);
int mlu_visible_token(ds_accel_plugin_device_t *device, uint32_t which, char *token,
                      size_t token_size);
int32_t mlu_peer_can_access(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                            uint32_t *can_out, struct ds_accel_error *error);
int32_t mlu_peer_enable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                        struct ds_accel_error *error);
int32_t mlu_peer_disable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                         struct ds_accel_error *error);

/* memory.c */
int32_t mlu_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                  struct ds_accel_error *error);
int32_t mlu_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error);
int32_t mlu_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                         void **pointer_out, struct ds_accel_error *error);
int32_t mlu_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                        struct ds_accel_error *error);
int32_t mlu_copy(ds_accel_plugin_device_t *device, void *destination, const void *source,
                 uint64_t size_bytes, uint32_t kind, struct ds_accel_error *error);
int32_t mlu_copy_async(ds_accel_plugin_device_t *device, void *queue, void *destination,
                       const void *source, uint64_t size_bytes, uint32_t kind,
                       struct ds_accel_error *error);
int32_t mlu_copy_peer_async(ds_accel_plugin_device_t *device, void *queue,
                            ds_accel_plugin_device_t *destination_device, void *destination,
                            ds_accel_plugin_device_t *source_device, const void *source,
                            uint64_t size_bytes, struct ds_accel_error *error);
int32_t mlu_fill_async(ds_accel_plugin_device_t *device, void *queue, void *destination,
                       uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                       struct ds_accel_error *error);
int32_t mlu_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                        struct ds_accel_error *error);
int32_t mlu_ipc_export(ds_accel_plugin_device_t *device, void *base, uint64_t size_bytes,
                       void *handle, struct ds_accel_error *error);
int32_t mlu_ipc_open(ds_accel_plugin_device_t *device, const void *handle, uint64_t size_bytes,
                     void **base_out, struct ds_accel_error *error);
int32_t mlu_ipc_close(ds_accel_plugin_device_t *device, const void *handle, void *base,
                      struct ds_accel_error *error);

/* work.c */
int32_t mlu_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                          void **native_out, struct ds_accel_error *error);
void mlu_stream_destroy(ds_accel_plugin_device_t *device, void *queue);
int32_t mlu_stream_priority_range(ds_accel_plugin_device_t *device, int32_t *least_out,
                                  int32_t *greatest_out, struct ds_accel_error *error);
int32_t mlu_stream_synchronize(ds_accel_plugin_device_t *device, void *queue,
                               struct ds_accel_error *error);
int32_t mlu_stream_query(ds_accel_plugin_device_t *device, void *queue,
                         struct ds_accel_error *error);
int32_t mlu_stream_wait_event(ds_accel_plugin_device_t *device, void *queue, void *notifier,
                              struct ds_accel_error *error);
int32_t mlu_stream_host_task(ds_accel_plugin_device_t *device, void *queue,
                             void (*call)(void *argument), void *argument,
                             struct ds_accel_error *error);
int32_t mlu_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                         struct ds_accel_error *error);
void mlu_event_destroy(ds_accel_plugin_device_t *device, void *notifier);
int32_t mlu_event_record(ds_accel_plugin_device_t *device, void *notifier, void *queue,
                         struct ds_accel_error *error);
int32_t mlu_event_query(ds_accel_plugin_device_t *device, void *notifier,
                        struct ds_accel_error *error);
int32_t mlu_event_synchronize(ds_accel_plugin_device_t *device, void *notifier,
                              struct ds_accel_error *error);
int32_t mlu_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                             double *elapsed_ms_out, struct ds_accel_error *error);
int32_t mlu_ipc_event_export(ds_accel_plugin_device_t *device, void *notifier, void *handle,
                             struct ds_accel_error *error);
int32_t mlu_ipc_event_open(ds_accel_plugin_device_t *device, const void *handle, void **native_out,
                           struct ds_accel_error *error);
int32_t mlu_capture_begin(ds_accel_plugin_device_t *device, void *queue, uint32_t mode,
                          struct ds_accel_error *error);
int32_t mlu_capture_end(ds_accel_plugin_device_t *device, void *queue, void **native_out,
                        struct ds_accel_error *error);
int32_t mlu_capture_status(ds_accel_plugin_device_t *device, void *queue, uint32_t *status_out,
                           struct ds_accel_error *error);
void mlu_graph_destroy(ds_accel_plugin_device_t *device, void *topo);
int32_t mlu_graph_instantiate(ds_accel_plugin_device_t *device, void *topo, void **exec_out,
                              struct ds_accel_error *error);
void mlu_graph_exec_destroy(ds_accel_plugin_device_t *device, void *entity);
int32_t mlu_graph_launch(ds_accel_plugin_device_t *device, void *entity, void *queue,
                         struct ds_accel_error *error);
int32_t mlu_graph_node_count(ds_accel_plugin_device_t *device, void *topo, uint64_t *count_out,
                             struct ds_accel_error *error);

#endif
