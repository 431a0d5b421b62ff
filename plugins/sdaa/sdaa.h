/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What this plugin uses of libsdaart (sdaa_runtime.h of the current, HIP-shaped runtime) and of
 * libtcml (tcml.h). Both headers were seen as text; no library of them could be run.
 *
 * Left out, because a part of it is not verified: sdaaMallocAsync (its counterpart sdaaFreeAsync
 * was never seen), sdaaIpcGetMemHandle (nothing closes what is opened), the experimental
 * sdaaMemcpyPeer, the versions (how the number is put together), TCML's power and clocks (their
 * units).
 */
#ifndef DS_ACCEL_SDAA_H
#define DS_ACCEL_SDAA_H

#include "vendor.h"

typedef int sdaa_error_t;
typedef void *sdaa_stream_t;
typedef void *sdaa_event_t;

/* By value in the call that opens it. */
struct sdaa_ipc_event {
    char bytes[64];
};
_Static_assert(sizeof(struct sdaa_ipc_event) == 64, "sdaaIpcEventHandle_t");

/* sdaaDeviceProp_t opens with these; newer runtimes may append. */
#define SDAA_PROPERTIES_BYTES 4096
struct sdaa_properties {
    char name[256];
    size_t memory_bytes;
    int chipset, pci_device, pci_vendor, pci_bus;
    int clock_khz;
    char others[SDAA_PROPERTIES_BYTES - 284];
};
_Static_assert(offsetof(struct sdaa_properties, memory_bytes) == 256, "totalGlobalMem");
_Static_assert(offsetof(struct sdaa_properties, pci_bus) == 276, "pciBusID");
_Static_assert(offsetof(struct sdaa_properties, clock_khz) == 280, "clockRate");
_Static_assert(sizeof(struct sdaa_properties) == SDAA_PROPERTIES_BYTES, "room to grow");

enum {
    SDAA_SUCCESS = 0,
    SDAA_INVALID_VALUE = 1,
    SDAA_OUT_OF_MEMORY = 2,
    SDAA_INVALID_DEVICE_POINTER = 17,
    SDAA_INVALID_MEMCPY_DIRECTION = 21,
    SDAA_INSUFFICIENT_DRIVER = 35,
    SDAA_NO_DEVICE = 100,
    SDAA_INVALID_DEVICE = 101,
    SDAA_ECC_NOT_CORRECTABLE = 214,
    SDAA_PEER_ACCESS_UNSUPPORTED = 217,
    SDAA_INVALID_HANDLE = 400,
    SDAA_NOT_FOUND = 500,
    SDAA_NOT_READY = 600,
    SDAA_CONTEXT_IS_DESTROYED = 709,
    SDAA_HOST_MEMORY_ALREADY_REGISTERED = 712,
    SDAA_LAUNCH_FAILURE = 719,
    SDAA_NOT_SUPPORTED = 801,
    SDAA_RUNTIME_MEMORY = 1052
};

/* sdaaMemcpyKind counts from 0 in the order of DS_ACCEL_COPY_*. */
#define SDAA_COPY_KIND(kind) ((int)(kind)-1)
_Static_assert(SDAA_COPY_KIND(DS_ACCEL_COPY_HOST_TO_DEVICE) == 1 &&
                   SDAA_COPY_KIND(DS_ACCEL_COPY_DEVICE_TO_HOST) == 2 &&
                   SDAA_COPY_KIND(DS_ACCEL_COPY_INFER) == 4,
               "sdaaMemcpyKind");

enum {
    SDAA_STREAM_NON_BLOCKING = 1
};
enum {
    SDAA_EVENT_BLOCKING_SYNC = 1,
    SDAA_EVENT_DISABLE_TIMING = 2,
    SDAA_EVENT_INTERPROCESS = 4
};

struct sdaa_api {
    sdaa_error_t (*sdaaGetDeviceCount)(int *count);
    sdaa_error_t (*sdaaSetDevice)(int device);
    sdaa_error_t (*sdaaGetDevice)(int *device);
    sdaa_error_t (*sdaaDeviceSynchronize)(void);
    sdaa_error_t (*sdaaGetDeviceProperties)(struct sdaa_properties *properties, int device);
    const char *(*sdaaGetErrorName)(sdaa_error_t code);
    sdaa_error_t (*sdaaGetLastError)(void);

    sdaa_error_t (*sdaaMemGetInfo)(size_t *free, size_t *total);
    sdaa_error_t (*sdaaMalloc)(void **pointer, size_t size);
    sdaa_error_t (*sdaaFree)(void *pointer);
    sdaa_error_t (*sdaaMallocHost)(void **pointer, size_t size); /* no flags */
    sdaa_error_t (*sdaaFreeHost)(void *pointer);
    sdaa_error_t (*sdaaMemcpyAsync)(void *destination, const void *source, size_t size, int kind,
                                    sdaa_stream_t stream);
    sdaa_error_t (*sdaaMemsetAsync)(void *destination, int value, size_t size,
                                    sdaa_stream_t stream);

    sdaa_error_t (*sdaaStreamCreateWithFlags)(sdaa_stream_t *stream, unsigned int flags);
    sdaa_error_t (*sdaaStreamDestroy)(sdaa_stream_t stream);
    sdaa_error_t (*sdaaStreamSynchronize)(sdaa_stream_t stream);
    sdaa_error_t (*sdaaStreamQuery)(sdaa_stream_t stream);
    sdaa_error_t (*sdaaStreamWaitEvent)(sdaa_stream_t stream, sdaa_event_t event,
                                        unsigned int flags);
    sdaa_error_t (*sdaaStreamAddCallback)(sdaa_stream_t stream,
                                          void (*call)(sdaa_stream_t, sdaa_error_t, void *),
                                          void *argument, unsigned int flags);
    sdaa_error_t (*sdaaEventCreateWithFlags)(sdaa_event_t *event, unsigned int flags);
    sdaa_error_t (*sdaaEventRecord)(sdaa_event_t event, sdaa_stream_t stream);
    sdaa_error_t (*sdaaEventQuery)(sdaa_event_t event);
    sdaa_error_t (*sdaaEventSynchronize)(sdaa_event_t event);
    sdaa_error_t (*sdaaEventDestroy)(sdaa_event_t event);
    sdaa_error_t (*sdaaEventElapsedTime)(float *milliseconds, sdaa_event_t start, sdaa_event_t end);
    sdaa_error_t (*sdaaIpcGetEventHandle)(struct sdaa_ipc_event *handle, sdaa_event_t event);
    sdaa_error_t (*sdaaIpcOpenEventHandle)(sdaa_event_t *event, struct sdaa_ipc_event handle);
};

/* What open() made. */
struct sdaa {
    const struct ds_accel_host *host;
    struct vendor_lib lib;
    struct sdaa_api api;
    struct sdaa_sensors *sensors;
    uint32_t node_count; /* in /dev */
    uint32_t all_count;  /* the runtime's devices, where no variable hides any; 0: not known */
};

#define SDAA_OF(device) ((struct sdaa *)(device)->instance->runtime)
#define API_OF(device) (&SDAA_OF(device)->api)
#define SDAA_CHECK(device, code, error, ...) \
    vendor_check((device)->instance, (device), sdaa_code(SDAA_OF(device), (code)), (error), \
                 __VA_ARGS__)

/* A card is four devices. */
#define SDAA_DEVICES_PER_CARD 4u

/* The code itself, taken out of sdaaGetLastError(), where a program would find it as its own. */
sdaa_error_t sdaa_code(const struct sdaa *sdaa, sdaa_error_t code);

/* -- sensors.c: TCML and TCPX, opened when they are first asked for -- */

struct sdaa_sensors *sdaa_sensors_create(const struct ds_accel_host *host);
void sdaa_sensors_destroy(struct sdaa_sensors *sensors);
/*
 * Devices behind one node of /dev: 1, or SDAA_DEVICES_PER_CARD where the runtime's or TCML's count
 * says that nodes are cards.
 */
uint32_t sdaa_devices_per_node(const struct sdaa *sdaa);
/* The UUID that TCML has for a device or, with *is_card_out, for its card. -1: it is not known. */
int sdaa_sensors_uuid(const struct sdaa *sdaa, uint32_t vendor_index, char *text, size_t text_size,
                      int *is_card_out);
/* The PCI address that TCML has for a device or its card. -1: it is not known. */
int sdaa_sensors_pci(const struct sdaa *sdaa, uint32_t vendor_index, char *address,
                     size_t address_size, uint32_t *bus_out);
int32_t sdaa_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                       struct ds_accel_telemetry *telemetry, struct ds_accel_error *error);
int32_t sdaa_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                        const char *domain, const char *category, struct ds_accel_error *error);
int32_t sdaa_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                       struct ds_accel_error *error);

/* -- work.c: memory, streams, events -- */

int32_t sdaa_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                   struct ds_accel_error *error);
int32_t sdaa_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error);
int32_t sdaa_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                          void **pointer_out, struct ds_accel_error *error);
int32_t sdaa_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                         struct ds_accel_error *error);
int32_t sdaa_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        const void *source, uint64_t size_bytes, uint32_t kind,
                        struct ds_accel_error *error);
int32_t sdaa_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                        struct ds_accel_error *error);
int32_t sdaa_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                         struct ds_accel_error *error);
int32_t sdaa_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                           void **native_out, struct ds_accel_error *error);
void sdaa_stream_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t sdaa_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                                struct ds_accel_error *error);
int32_t sdaa_stream_query(ds_accel_plugin_device_t *device, void *native,
                          struct ds_accel_error *error);
int32_t sdaa_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                               struct ds_accel_error *error);
int32_t sdaa_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                              void (*call)(void *argument), void *argument,
                              struct ds_accel_error *error);
int32_t sdaa_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                          struct ds_accel_error *error);
void sdaa_event_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t sdaa_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                          struct ds_accel_error *error);
int32_t sdaa_event_query(ds_accel_plugin_device_t *device, void *native,
                         struct ds_accel_error *error);
int32_t sdaa_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                               struct ds_accel_error *error);
int32_t sdaa_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                              double *elapsed_ms_out, struct ds_accel_error *error);
int32_t sdaa_ipc_event_export(ds_accel_plugin_device_t *device, void *native, void *handle,
                              struct ds_accel_error *error);
int32_t sdaa_ipc_event_open(ds_accel_plugin_device_t *device, const void *handle, void **native_out,
                            struct ds_accel_error *error);

#endif
