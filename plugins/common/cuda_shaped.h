/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The verbs of runtimes whose functions have the arguments of CUDA's runtime API, under names of
 * their own: HIP (rocm), SDAARuntime (sdaa), SUPA (supa).
 *
 *      vendor_backend.verb -> cuda_shaped_verb() -> cuda_shaped_api.call -> hipX, sdaaX, suX, supaX
 *
 * The runtime object that such a backend's open() creates begins with a struct cuda_shaped: a table
 * of functions, which vendor_lib_bind() fills by the vendor's names, and a pointer to a struct
 * cuda_shaped_vendor with the other differences: function names for messages, and the meaning of
 * three codes. A function has a member here if at least two of the runtimes have it with these
 * arguments. Code for one vendor only is in that vendor's directory: other functions, error codes,
 * the identity of devices, sensors.
 *
 * Handles of streams, events and graphs are pointers in all these runtimes, so they are void *
 * here. Errors and kinds of copies are enums there, and int here. All other arguments have the
 * types of the vendor's headers: `make headers` compares them, so that no function is called
 * through a wrong type.
 *
 * The plugins cuda, mlu and npu do not use these verbs. CUDA's driver API takes addresses as
 * integers and stores no last error, and its plugin logs the code of a failed destructor; CNRT
 * orders the arguments differently; AscendCL returns through pointers the states that other
 * runtimes return as a code.
 */
#ifndef DS_ACCEL_PLUGINS_COMMON_CUDA_SHAPED_H
#define DS_ACCEL_PLUGINS_COMMON_CUDA_SHAPED_H

#include "vendor.h"

/* An exported event's handle. The function that opens the handle receives it by value. */
struct cuda_shaped_ipc {
    char bytes[64];
};
_Static_assert(sizeof(struct cuda_shaped_ipc) == 64, "hipIpcEventHandle_t, sdaaIpcEventHandle_t");

enum {
    CUDA_SHAPED_STREAM_NON_BLOCKING = 1
};
enum {
    CUDA_SHAPED_EVENT_BLOCKING_SYNC = 1,
    CUDA_SHAPED_EVENT_DISABLE_TIMING = 2,
    CUDA_SHAPED_EVENT_INTERPROCESS = 4
};
enum {
    CUDA_SHAPED_HOST_PORTABLE = 1,
    CUDA_SHAPED_HOST_MAPPED = 2,
    CUDA_SHAPED_HOST_WRITE_COMBINED = 4
};
enum {
    CUDA_SHAPED_CAPTURE_RELAXED = 2
};

/* The kinds of copies count from 0 in the order of DS_ACCEL_COPY_*. */
enum {
    CUDA_SHAPED_COPY_HOST_TO_HOST,
    CUDA_SHAPED_COPY_HOST_TO_DEVICE,
    CUDA_SHAPED_COPY_DEVICE_TO_HOST,
    CUDA_SHAPED_COPY_DEVICE_TO_DEVICE,
    CUDA_SHAPED_COPY_DEFAULT
};
#define CUDA_SHAPED_COPY_KIND(kind) ((int)(kind)-1)
_Static_assert(CUDA_SHAPED_COPY_KIND(DS_ACCEL_COPY_HOST_TO_HOST) == CUDA_SHAPED_COPY_HOST_TO_HOST &&
                   CUDA_SHAPED_COPY_KIND(DS_ACCEL_COPY_HOST_TO_DEVICE) ==
                       CUDA_SHAPED_COPY_HOST_TO_DEVICE &&
                   CUDA_SHAPED_COPY_KIND(DS_ACCEL_COPY_DEVICE_TO_HOST) ==
                       CUDA_SHAPED_COPY_DEVICE_TO_HOST &&
                   CUDA_SHAPED_COPY_KIND(DS_ACCEL_COPY_DEVICE_TO_DEVICE) ==
                       CUDA_SHAPED_COPY_DEVICE_TO_DEVICE &&
                   CUDA_SHAPED_COPY_KIND(DS_ACCEL_COPY_INFER) == CUDA_SHAPED_COPY_DEFAULT,
               "cudaMemcpyKind");

/*
 * The runtime's functions. Each returns the vendor's code, 0 for success. A backend may use a verb
 * only if its runtime has the functions that the verb calls; members marked "optional" may be NULL.
 */
struct cuda_shaped_api {
    int (*get_device)(int *device);
    int (*set_device)(int device);
    int (*device_synchronize)(void);
    int (*last_error)(void); /* returns and clears the last error */

    int (*memory_info)(size_t *free, size_t *total);
    int (*alloc)(void **pointer, size_t size);
    int (*free)(void *pointer);
    int (*host_alloc)(void **pointer, size_t size, unsigned int flags);
    int (*host_free)(void *pointer);
    int (*host_register)(void *pointer, size_t size, unsigned int flags);
    int (*host_unregister)(void *pointer);
    int (*host_device_pointer)(void **device, void *host, unsigned int flags);
    int (*copy)(void *destination, const void *source, size_t size, int kind, void *stream);
    int (*copy_peer)(void *destination, int destination_device, const void *source,
                     int source_device, size_t size, void *stream);
    int (*fill)(void *destination, int value, size_t size, void *stream);

    int (*stream_create)(void **stream, unsigned int flags);
    int (*stream_destroy)(void *stream);
    int (*stream_synchronize)(void *stream);
    int (*stream_query)(void *stream);
    int (*stream_wait_event)(void *stream, void *event, unsigned int flags);
    int (*launch_host_func)(void *stream, void (*call)(void *), void *argument); /* optional */
    int (*add_callback)(void *stream, void (*call)(void *, int, void *), void *argument,
                        unsigned int flags); /* used if launch_host_func is NULL */

    int (*event_create)(void **event, unsigned int flags);
    int (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event);
    int (*event_synchronize)(void *event);
    int (*event_elapsed)(float *milliseconds, void *start, void *end);
    int (*ipc_event_export)(struct cuda_shaped_ipc *handle, void *event);
    int (*ipc_event_open)(void **event, struct cuda_shaped_ipc handle);

    int (*exchange_capture_mode)(int *mode); /* optional */
    int (*capture_begin)(void *stream, int mode);
    int (*capture_end)(void *stream, void **graph);
    int (*capture_status)(void *stream, int *status);
    int (*graph_instantiate)(void **exec, void *graph, void **error_node, char *log,
                             size_t log_size); /* optional */
    /* used if graph_instantiate is NULL */
    int (*graph_instantiate_flags)(void **exec, void *graph, unsigned long long flags);
    int (*graph_launch)(void *exec, void *stream);
    int (*graph_exec_destroy)(void *exec);
    int (*graph_destroy)(void *graph);

    int (*peer_can_access)(int *can, int device, int peer);
    int (*peer_enable)(int peer, unsigned int flags);
    int (*peer_disable)(int peer);
};

/* The meanings of non-zero codes that the verbs distinguish. */
enum cuda_shaped_meaning {
    CUDA_SHAPED_FAILURE,
    CUDA_SHAPED_NOT_READY,
    CUDA_SHAPED_PEER_ENABLED,    /* peer access is enabled already */
    CUDA_SHAPED_PEER_NOT_ENABLED /* peer access is not enabled and cannot be disabled */
};

/* A function's name in messages, if it differs from the symbol. */
struct cuda_shaped_text {
    size_t offset; /* offset of the function, equal to the offset in its struct vendor_symbol */
    const char *text;
};

struct cuda_shaped_vendor {
    const struct vendor_symbol *symbols; /* symbols of struct cuda_shaped_api and of the vendor's
                                            other functions */
    size_t symbol_count;
    const struct cuda_shaped_text *texts;
    size_t text_count;
    enum cuda_shaped_meaning (*meaning)(void *runtime, int code);
};

/* The runtime that the backend's open() makes is a struct whose first member is this one. */
struct cuda_shaped {
    struct cuda_shaped_api api;
    const struct cuda_shaped_vendor *vendor;
};

/* Initializers of the elements of cuda_shaped_vendor.symbols and cuda_shaped_vendor.texts. */
#define CUDA_SHAPED_REQUIRED(symbol, call) \
    { \
        symbol, offsetof(struct cuda_shaped, api.call), 1, NULL \
    }
#define CUDA_SHAPED_OPTIONAL(symbol, call, since) \
    { \
        symbol, offsetof(struct cuda_shaped, api.call), 0, since \
    }
#define CUDA_SHAPED_TEXT(call, text) \
    { \
        offsetof(struct cuda_shaped, api.call), text \
    }

/* Store the addresses of the vendor's symbols in *runtime, which begins with a struct
 * cuda_shaped. Returns 0, or -1 with *problem filled. */
int cuda_shaped_bind(void *runtime, const struct cuda_shaped_vendor *vendor,
                     const struct vendor_lib *lib, struct vendor_problem *problem);

/*
 * Return the code. If it is not 0, first clear the runtime's last error: the plugin reports the
 * failure itself, and a program that checks its own launches must not find the plugin's error.
 */
int cuda_shaped_code(const struct cuda_shaped *shaped, int code);
/* Relax the thread's capture mode before a call that would break a capture of another stream.
 * Returns the previous mode, or -1 if the mode was not changed; cuda_shaped_restore() accepts
 * both. */
int cuda_shaped_relax(const struct cuda_shaped *shaped);
void cuda_shaped_restore(const struct cuda_shaped *shaped, int mode);

/* ---- verbs and the initializers of the backend's table --------------------------------------- */

/* Verbs that every one of these runtimes supports. */
#define CUDA_SHAPED_VERBS \
    .device_close = cuda_shaped_device_close, .enter = cuda_shaped_enter, \
    .leave = cuda_shaped_leave, .enters_for_streams = 1, .get_current = cuda_shaped_get_current, \
    .set_current = cuda_shaped_set_current, .device_synchronize = cuda_shaped_device_synchronize, \
    .device_health = cuda_shaped_device_health, .memory_info = cuda_shaped_memory_info, \
    .alloc = cuda_shaped_alloc, .free = cuda_shaped_free, .free_pinned = cuda_shaped_free_pinned, \
    .stream_destroy = cuda_shaped_stream_destroy, \
    .stream_synchronize = cuda_shaped_stream_synchronize, \
    .stream_query = cuda_shaped_stream_query, .stream_wait_event = cuda_shaped_stream_wait_event, \
    .event_destroy = cuda_shaped_event_destroy, .event_record = cuda_shaped_event_record, \
    .event_query = cuda_shaped_event_query, .event_synchronize = cuda_shaped_event_synchronize, \
    .event_elapsed_ms = cuda_shaped_event_elapsed_ms
/* Verbs for pinned memory with flags and for registered memory, then verbs for copies and access
 * between devices. */
#define CUDA_SHAPED_HOST_VERBS \
    .alloc_pinned = cuda_shaped_alloc_pinned, .host_register = cuda_shaped_host_register, \
    .host_unregister = cuda_shaped_host_unregister, \
    .host_device_pointer = cuda_shaped_host_device_pointer
#define CUDA_SHAPED_PEER_VERBS \
    .copy_peer_async = cuda_shaped_copy_peer_async, CUDA_SHAPED_ACCESS_VERBS
#define CUDA_SHAPED_ACCESS_VERBS \
    .peer_can_access = cuda_shaped_peer_can_access, .peer_enable = cuda_shaped_peer_enable, \
    .peer_disable = cuda_shaped_peer_disable
#define CUDA_SHAPED_GRAPH_VERBS \
    .graph_destroy = cuda_shaped_graph_destroy, \
    .graph_instantiate = cuda_shaped_graph_instantiate, \
    .graph_exec_destroy = cuda_shaped_graph_exec_destroy, .graph_launch = cuda_shaped_graph_launch

void cuda_shaped_device_close(ds_accel_plugin_device_t *device);
int32_t cuda_shaped_enter(ds_accel_plugin_device_t *device, uint64_t *saved_out,
                          struct ds_accel_error *error);
void cuda_shaped_leave(ds_accel_plugin_device_t *device, uint64_t saved);
int32_t cuda_shaped_get_current(ds_accel_plugin_instance_t *instance, uint32_t *index_out,
                                struct ds_accel_error *error);
int32_t cuda_shaped_set_current(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t cuda_shaped_device_synchronize(ds_accel_plugin_device_t *device,
                                       struct ds_accel_error *error);
int32_t cuda_shaped_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error);

int32_t cuda_shaped_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out,
                                uint64_t *total_out, struct ds_accel_error *error);
int32_t cuda_shaped_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                          struct ds_accel_error *error);
int32_t cuda_shaped_free(ds_accel_plugin_device_t *device, void *pointer,
                         struct ds_accel_error *error);
int32_t cuda_shaped_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                 uint32_t flags, void **pointer_out, struct ds_accel_error *error);
int32_t cuda_shaped_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                                struct ds_accel_error *error);
int32_t cuda_shaped_host_register(ds_accel_plugin_device_t *device, void *pointer,
                                  uint64_t size_bytes, uint32_t flags,
                                  struct ds_accel_error *error);
int32_t cuda_shaped_host_unregister(ds_accel_plugin_device_t *device, void *pointer,
                                    struct ds_accel_error *error);
int32_t cuda_shaped_host_device_pointer(ds_accel_plugin_device_t *device, void *host_pointer,
                                        void **device_pointer_out, struct ds_accel_error *error);
int32_t cuda_shaped_copy_async(ds_accel_plugin_device_t *device, void *native_stream,
                               void *destination, const void *source, uint64_t size_bytes,
                               uint32_t kind, struct ds_accel_error *error);
int32_t cuda_shaped_copy_peer_async(ds_accel_plugin_device_t *device, void *native_stream,
                                    ds_accel_plugin_device_t *destination_device, void *destination,
                                    ds_accel_plugin_device_t *source_device, const void *source,
                                    uint64_t size_bytes, struct ds_accel_error *error);
/* Fill with a pattern of one byte; pattern_bytes is 1. */
int32_t cuda_shaped_fill_async(ds_accel_plugin_device_t *device, void *native_stream,
                               void *destination, uint32_t pattern, uint32_t pattern_bytes,
                               uint64_t count, struct ds_accel_error *error);

/* Create a stream; the runtime has no priorities, so priority is ignored. */
int32_t cuda_shaped_stream_create(ds_accel_plugin_device_t *device, uint32_t flags,
                                  int32_t priority, void **native_out,
                                  struct ds_accel_error *error);
void cuda_shaped_stream_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t cuda_shaped_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                                       struct ds_accel_error *error);
int32_t cuda_shaped_stream_query(ds_accel_plugin_device_t *device, void *native,
                                 struct ds_accel_error *error);
int32_t cuda_shaped_stream_wait_event(ds_accel_plugin_device_t *device, void *native,
                                      void *native_event, struct ds_accel_error *error);
int32_t cuda_shaped_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                                     void (*call)(void *argument), void *argument,
                                     struct ds_accel_error *error);

int32_t cuda_shaped_event_create(ds_accel_plugin_device_t *device, uint32_t flags,
                                 void **native_out, struct ds_accel_error *error);
void cuda_shaped_event_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t cuda_shaped_event_record(ds_accel_plugin_device_t *device, void *native,
                                 void *native_stream, struct ds_accel_error *error);
int32_t cuda_shaped_event_query(ds_accel_plugin_device_t *device, void *native,
                                struct ds_accel_error *error);
int32_t cuda_shaped_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                                      struct ds_accel_error *error);
int32_t cuda_shaped_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                                     double *elapsed_ms_out, struct ds_accel_error *error);
int32_t cuda_shaped_ipc_event_export(ds_accel_plugin_device_t *device, void *native, void *handle,
                                     struct ds_accel_error *error);
int32_t cuda_shaped_ipc_event_open(ds_accel_plugin_device_t *device, const void *handle,
                                   void **native_out, struct ds_accel_error *error);

/* Capture modes and states have the same numbers in the runtime and in the ABI. */
int32_t cuda_shaped_capture_begin(ds_accel_plugin_device_t *device, void *native_stream,
                                  uint32_t mode, struct ds_accel_error *error);
int32_t cuda_shaped_capture_end(ds_accel_plugin_device_t *device, void *native_stream,
                                void **native_out, struct ds_accel_error *error);
int32_t cuda_shaped_capture_status(ds_accel_plugin_device_t *device, void *native_stream,
                                   uint32_t *status_out, struct ds_accel_error *error);
void cuda_shaped_graph_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t cuda_shaped_graph_instantiate(ds_accel_plugin_device_t *device, void *native,
                                      void **exec_out, struct ds_accel_error *error);
void cuda_shaped_graph_exec_destroy(ds_accel_plugin_device_t *device, void *exec);
int32_t cuda_shaped_graph_launch(ds_accel_plugin_device_t *device, void *exec, void *native_stream,
                                 struct ds_accel_error *error);

int32_t cuda_shaped_peer_can_access(ds_accel_plugin_device_t *device,
                                    ds_accel_plugin_device_t *peer, uint32_t *can_out,
                                    struct ds_accel_error *error);
int32_t cuda_shaped_peer_enable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                                struct ds_accel_error *error);
int32_t cuda_shaped_peer_disable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                                 struct ds_accel_error *error);

#endif
