/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The mps backend: Apple's Metal.
 *
 *      mps.c       opening, device properties, the backend's table of functions (vendor.h)
 *      send.c      one function for each signature of the Objective-C methods in use
 *      queue.c     streams (a command queue, and a thread for host work), events, handles
 *      memory.c    buffers, copies, fills
 */
#ifndef DS_ACCEL_PLUGINS_MPS_MPS_H
#define DS_ACCEL_PLUGINS_MPS_MPS_H

#include "objc.h"
#include "vendor.h"

/* The plugin's runtime, created by open_runtime() in mps.c. */
struct mps_runtime {
    const struct ds_accel_host *host;
    struct vendor_lib objc_library;
    struct vendor_lib metal_library;
    struct objc objc;
    struct metal metal;
    struct mps_selectors sel;
    objc_id device; /* the system's default device; NULL: none */
};

/* A buffer, which is found by the addresses of its contents. */
struct mps_buffer {
    uintptr_t base;
    uint64_t size_bytes;
    objc_id object;
    uintptr_t registered; /* the address that the program registered; 0: not registered */
};

/* The state of an open device. */
struct mps_device {
    pthread_rwlock_t copying;   /* read-locked while the host copies for a stream */
    atomic_uint is_lost;        /* 1: the device is lost; the host copies no more */
    pthread_mutex_t lock;       /* guards the list of buffers */
    struct mps_buffer *buffers; /* [buffer_count], sorted by base */
    size_t buffer_count;
    size_t buffer_capacity;
};

/* Host work at a position in a stream. */
struct mps_task {
    struct mps_task *next;
    uint64_t turn;    /* the task runs when the stream has reached this number */
    objc_id boundary; /* the command buffer that signals the number; retained */
    void (*call)(void *argument);
    /*
     * Called instead of call if the stream failed or the device is lost; NULL: call is called in
     * any case.
     */
    void (*drop)(void *argument);
    void *argument;
};

struct mps_stream {
    ds_accel_plugin_device_t *device;
    struct mps_runtime *runtime;
    objc_id queue;
    objc_id last; /* the plugin's command buffer committed last, retained; NULL: none */
    uint32_t is_wrapped;
    pthread_mutex_t lock; /* guards last and all members below; held during commits */
    pthread_cond_t changed;
    /*
     * Shared event that the GPU sets to a task's number when the stream reaches the task. Both
     * shared events, reached and done, are created with the first task.
     */
    objc_id reached;
    objc_id done; /* shared event that the host sets to the last finished task's number */
    uint64_t turn;
    struct mps_task *first_task;
    struct mps_task **task_end;
    pthread_t worker;
    uint32_t has_worker;
    uint32_t is_ending;
};

struct mps_event {
    objc_id mark; /* a shared event */
    uint64_t value;
    objc_id buffer; /* the command buffer that signals mark; retained for its status and times */
};

static inline struct mps_runtime *mps_runtime(const ds_accel_plugin_device_t *device)
{
    return device->instance->runtime;
}

/* ---- send.c: method calls [object selector...], one function for each signature ------------- */

objc_id mps_send_id(const struct mps_runtime *runtime, objc_id object, objc_sel selector);
uint64_t mps_send_word(const struct mps_runtime *runtime, objc_id object, objc_sel selector);
double mps_send_double(const struct mps_runtime *runtime, objc_id object, objc_sel selector);
void mps_send(const struct mps_runtime *runtime, objc_id object, objc_sel selector);
void mps_send_value(const struct mps_runtime *runtime, objc_id object, objc_sel selector,
                    uint64_t value);
void mps_send_event(const struct mps_runtime *runtime, objc_id object, objc_sel selector,
                    objc_id event, uint64_t value);
objc_id mps_new_buffer(const struct mps_runtime *runtime, uint64_t size_bytes);
objc_id mps_wrap_bytes(const struct mps_runtime *runtime, void *pointer, uint64_t size_bytes);
void mps_encode_copy(const struct mps_runtime *runtime, objc_id encoder, objc_id source,
                     uint64_t source_offset, objc_id destination, uint64_t destination_offset,
                     uint64_t size_bytes);
void mps_encode_fill(const struct mps_runtime *runtime, objc_id encoder, objc_id buffer,
                     uint64_t offset, uint64_t size_bytes, uint8_t value);
int mps_responds(const struct mps_runtime *runtime, objc_id object, objc_sel selector);

/* ---- queue.c -------------------------------------------------------------------------------- */

/*
 * Commits a new command buffer, which encode() fills with work (NULL: no work), and stores it in
 * stream->last. Returns ERR_DRIVER if the command buffer cannot be created, or the status of a
 * command buffer that has already failed; stream->last is then unchanged. Caller holds
 * stream->lock.
 */
int32_t mps_commit(struct mps_stream *stream,
                   void (*encode)(struct mps_runtime *runtime, objc_id buffer, void *argument),
                   void *argument, struct ds_accel_error *error);

/*
 * Queues call(argument) for the host. If the stream fails first, or the device is lost,
 * drop(argument) is called instead, unless drop is NULL: after a failure a copy must not run,
 * because its memory may be freed. If this function fails, neither is called.
 */
int32_t mps_stream_work(struct mps_stream *stream, void (*call)(void *argument),
                        void (*drop)(void *argument), void *argument, struct ds_accel_error *error);

int32_t mps_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                          void **native_out, struct ds_accel_error *error);
void mps_stream_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t mps_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                               struct ds_accel_error *error);
int32_t mps_stream_query(ds_accel_plugin_device_t *device, void *native,
                         struct ds_accel_error *error);
int32_t mps_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                              struct ds_accel_error *error);
int32_t mps_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                             void (*call)(void *argument), void *argument,
                             struct ds_accel_error *error);
int32_t mps_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                         struct ds_accel_error *error);
void mps_event_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t mps_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                         struct ds_accel_error *error);
int32_t mps_event_query(ds_accel_plugin_device_t *device, void *native,
                        struct ds_accel_error *error);
int32_t mps_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                              struct ds_accel_error *error);
int32_t mps_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                             double *elapsed_ms_out, struct ds_accel_error *error);
uint64_t mps_native_handle(ds_accel_plugin_device_t *device, uint32_t kind, void *native);
int32_t mps_native_wrap(ds_accel_plugin_device_t *device, uint32_t kind, uint64_t handle,
                        void **native_out, struct ds_accel_error *error);
void mps_native_unwrap(ds_accel_plugin_device_t *device, uint32_t kind, void *native);

/* ---- memory.c ------------------------------------------------------------------------------- */

int32_t mps_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                  struct ds_accel_error *error);
int32_t mps_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error);
int32_t mps_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                         void **pointer_out, struct ds_accel_error *error);
int32_t mps_host_register(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                          uint32_t flags, struct ds_accel_error *error);
int32_t mps_host_unregister(ds_accel_plugin_device_t *device, void *pointer,
                            struct ds_accel_error *error);
int32_t mps_host_device_pointer(ds_accel_plugin_device_t *device, void *host_pointer,
                                void **device_pointer_out, struct ds_accel_error *error);
int32_t mps_copy(ds_accel_plugin_device_t *device, void *destination, const void *source,
                 uint64_t size_bytes, uint32_t kind, struct ds_accel_error *error);
int32_t mps_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                       const void *source, uint64_t size_bytes, uint32_t kind,
                       struct ds_accel_error *error);
int32_t mps_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                       uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                       struct ds_accel_error *error);
int32_t mps_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                        struct ds_accel_error *error);
int32_t mps_native_memory(ds_accel_plugin_device_t *device, const void *pointer,
                          uint64_t *object_out, uint64_t *offset_out, struct ds_accel_error *error);
void mps_buffers_end(ds_accel_plugin_device_t *device);

#endif
