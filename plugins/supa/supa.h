/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What this plugin uses of Biren's runtime, in its two generations: SDK 1.x (functions su..., by
 * the vendor's manual) and SDK 2.x (functions supa..., by callers, in the shape of CUDA's runtime).
 * No header of either was at hand.
 *
 * Not verified: the numbers of copy kinds, of flags and of capture modes and states, in both;
 * in 2.x also each function marked "by analogy": its name and arguments are CUDA's with the prefix
 * changed. The plugin uses these only where an operator has compared them with the SDK's headers
 * and says so, by option numbering = cuda. Errors are told by their names, so that their numbers do
 * not matter.
 *
 * Not used at all: IPC handles, which go by value and whose size is not known; attributes, whose
 * numbers are not; suDeviceProp, which is not CUDA's.
 */
#ifndef DS_ACCEL_SUPA_H
#define DS_ACCEL_SUPA_H

#include "vendor.h"

typedef int supa_error_t;
typedef void *supa_stream_t;
typedef void *supa_event_t;
typedef void *supa_graph_t;
typedef void *supa_graph_exec_t;

/* As CUDA's runtime numbers them; see above. */
#define SUPA_COPY_KIND(kind) ((int)(kind)-1)
_Static_assert(SUPA_COPY_KIND(DS_ACCEL_COPY_HOST_TO_DEVICE) == 1 &&
                   SUPA_COPY_KIND(DS_ACCEL_COPY_DEVICE_TO_HOST) == 2 &&
                   SUPA_COPY_KIND(DS_ACCEL_COPY_INFER) == 4,
               "the numbers that option numbering = cuda stands for");
enum {
    SUPA_STREAM_NON_BLOCKING = 1
};
enum {
    SUPA_EVENT_BLOCKING_SYNC = 1,
    SUPA_EVENT_DISABLE_TIMING = 2
};
enum {
    SUPA_HOST_PORTABLE = 1,
    SUPA_HOST_MAPPED = 2
};
enum {
    SUPA_CAPTURE_RELAXED = 2
};

/*
 * One table for both: the members have the names of what they do, and a list of symbols for each
 * generation says which function that is. The order of arguments differs in one of them, the
 * asynchronous copy, which therefore has two members.
 */
struct supa_api {
    supa_error_t (*get_device_count)(int *count);
    supa_error_t (*set_device)(int device);
    supa_error_t (*get_device)(int *device);
    supa_error_t (*device_synchronize)(void);
    supa_error_t (*get_pci_address)(char *address, int length, int device);
    const char *(*error_name)(supa_error_t code); /* NULL: 2.x may have texts only */
    const char *(*error_text)(supa_error_t code); /* 2.x */
    supa_error_t (*last_error)(void);

    supa_error_t (*memory_info)(size_t *free, size_t *total);
    supa_error_t (*alloc)(void **pointer, size_t size);
    supa_error_t (*free)(void *pointer);
    supa_error_t (*host_alloc)(void **pointer, size_t size, unsigned int flags);
    supa_error_t (*host_free)(void *pointer); /* NULL: free() takes both, in early 1.x */
    supa_error_t (*host_register)(void *pointer, size_t size, unsigned int flags);
    supa_error_t (*host_unregister)(void *pointer);
    supa_error_t (*host_device_pointer)(void **device, void *host, unsigned int flags);
    supa_error_t (*copy_stream_kind)(void *destination, const void *source, size_t size,
                                     supa_stream_t stream, int kind); /* 1.x */
    supa_error_t (*copy_kind_stream)(void *destination, const void *source, size_t size, int kind,
                                     supa_stream_t stream); /* 2.x */
    supa_error_t (*copy_peer)(void *destination, int destination_device, const void *source,
                              int source_device, size_t size, supa_stream_t stream);
    supa_error_t (*fill)(void *destination, int value, size_t size, supa_stream_t stream);

    supa_error_t (*stream_create)(supa_stream_t *stream, unsigned int flags);
    supa_error_t (*stream_destroy)(supa_stream_t stream); /* 1.x: waits for its work */
    supa_error_t (*stream_synchronize)(supa_stream_t stream);
    supa_error_t (*stream_query)(supa_stream_t stream);
    supa_error_t (*stream_wait_event)(supa_stream_t stream, supa_event_t event, unsigned int flags);
    supa_error_t (*stream_task)(supa_stream_t stream, void (*call)(void *), void *argument);
    supa_error_t (*event_create)(supa_event_t *event, unsigned int flags);
    supa_error_t (*event_record)(supa_event_t event, supa_stream_t stream);
    supa_error_t (*event_query)(supa_event_t event);
    supa_error_t (*event_synchronize)(supa_event_t event);
    supa_error_t (*event_destroy)(supa_event_t event);
    supa_error_t (*event_elapsed)(float *milliseconds, supa_event_t start, supa_event_t end);

    supa_error_t (*capture_begin)(supa_stream_t stream, int mode);
    supa_error_t (*capture_end)(supa_stream_t stream, supa_graph_t *graph);
    supa_error_t (*capture_status)(supa_stream_t stream, int *status);
    supa_error_t (*graph_instantiate_log)(supa_graph_exec_t *exec, supa_graph_t graph,
                                          void **error_node, char *log, size_t log_size); /* 1.x */
    supa_error_t (*graph_instantiate_flags)(supa_graph_exec_t *exec, supa_graph_t graph,
                                            unsigned long long flags); /* 2.x */
    supa_error_t (*graph_launch)(supa_graph_exec_t exec, supa_stream_t stream);
    supa_error_t (*graph_exec_destroy)(supa_graph_exec_t exec);
    supa_error_t (*graph_destroy)(supa_graph_t graph);

    supa_error_t (*can_access_peer)(int *can, int device, int peer);
    supa_error_t (*enable_peer)(int peer, unsigned int flags);
    supa_error_t (*disable_peer)(int peer);
    supa_error_t (*profiler_start)(void);
    supa_error_t (*profiler_stop)(void);
};

/* What open() made. */
struct supa {
    const struct ds_accel_host *host;
    struct vendor_lib lib;
    struct supa_api api;
    uint32_t is_vouched; /* option numbering = cuda */
    int generation;      /* 1, 2 */
    struct supa_sensors *sensors;
    atomic_int not_ready; /* its number, once a name has told it; 0 before */
};

#define SUPA_OF(device) ((struct supa *)(device)->instance->runtime)
#define API_OF(device) (&SUPA_OF(device)->api)
#define SUPA_CHECK(device, code, error, ...) \
    vendor_check((device)->instance, (device), supa_code(SUPA_OF(device), (code)), (error), \
                 __VA_ARGS__)

/* The code itself, taken out of the thread's last error, where a program would find it. */
supa_error_t supa_code(const struct supa *supa, supa_error_t code);
/* Is it the error of that name, without "suError" or "supaError"? */
int supa_is(const struct supa *supa, supa_error_t code, const char *name);

/* -- sensors.c: BRML and BRTX, opened when they are first asked for -- */

struct supa_sensors *supa_sensors_create(const struct ds_accel_host *host);
void supa_sensors_destroy(struct supa_sensors *sensors);
/* What BRML knows of the device at identity->pci_address. */
void supa_sensors_identify(struct supa_sensors *sensors, struct ds_accel_device_identity *identity);
int32_t supa_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                       struct ds_accel_telemetry *telemetry, struct ds_accel_error *error);
int32_t supa_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                        const char *domain, const char *category, struct ds_accel_error *error);
int32_t supa_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                       struct ds_accel_error *error);

/* -- memory.c -- */

int32_t supa_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                   struct ds_accel_error *error);
int32_t supa_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error);
int32_t supa_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                          void **pointer_out, struct ds_accel_error *error);
int32_t supa_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                         struct ds_accel_error *error);
int32_t supa_host_register(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                           uint32_t flags, struct ds_accel_error *error);
int32_t supa_host_unregister(ds_accel_plugin_device_t *device, void *pointer,
                             struct ds_accel_error *error);
int32_t supa_host_device_pointer(ds_accel_plugin_device_t *device, void *host_pointer,
                                 void **device_pointer_out, struct ds_accel_error *error);
int32_t supa_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        const void *source, uint64_t size_bytes, uint32_t kind,
                        struct ds_accel_error *error);
int32_t supa_copy_peer_async(ds_accel_plugin_device_t *device, void *native_stream,
                             ds_accel_plugin_device_t *destination_device, void *destination,
                             ds_accel_plugin_device_t *source_device, const void *source,
                             uint64_t size_bytes, struct ds_accel_error *error);
int32_t supa_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                        struct ds_accel_error *error);
int32_t supa_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                         struct ds_accel_error *error);
/* Send bytes to the device and back: do the copy kinds mean what they are taken for? */
int32_t supa_check_copies(ds_accel_plugin_device_t *device, struct ds_accel_error *error);

/* -- stream.c: streams, events, graphs -- */

int32_t supa_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                           void **native_out, struct ds_accel_error *error);
void supa_stream_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t supa_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                                struct ds_accel_error *error);
int32_t supa_stream_query(ds_accel_plugin_device_t *device, void *native,
                          struct ds_accel_error *error);
int32_t supa_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                               struct ds_accel_error *error);
int32_t supa_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                              void (*call)(void *argument), void *argument,
                              struct ds_accel_error *error);
int32_t supa_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                          struct ds_accel_error *error);
void supa_event_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t supa_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                          struct ds_accel_error *error);
int32_t supa_event_query(ds_accel_plugin_device_t *device, void *native,
                         struct ds_accel_error *error);
int32_t supa_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                               struct ds_accel_error *error);
int32_t supa_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                              double *elapsed_ms_out, struct ds_accel_error *error);
int32_t supa_capture_begin(ds_accel_plugin_device_t *device, void *native_stream, uint32_t mode,
                           struct ds_accel_error *error);
int32_t supa_capture_end(ds_accel_plugin_device_t *device, void *native_stream, void **native_out,
                         struct ds_accel_error *error);
int32_t supa_capture_status(ds_accel_plugin_device_t *device, void *native_stream,
                            uint32_t *status_out, struct ds_accel_error *error);
void supa_graph_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t supa_graph_instantiate(ds_accel_plugin_device_t *device, void *native, void **exec_out,
                               struct ds_accel_error *error);
void supa_graph_exec_destroy(ds_accel_plugin_device_t *device, void *exec);
int32_t supa_graph_launch(ds_accel_plugin_device_t *device, void *exec, void *native_stream,
                          struct ds_accel_error *error);

#endif
