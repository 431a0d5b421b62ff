/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Declarations that the files of this plugin share.
 *
 *   runtime.c   library, options, platforms and the selected devices
 *   serial.c    one call at a time, for runtimes that need it
 *   device.c    identity, context, properties
 *   map.c       addresses for memory objects
 *   memory.c    buffers, pinned, registered and shared memory
 *   copy.c      copies and fills
 *   stream.c    queues
 *   task.c      host work in a queue: host tasks, copies between contexts
 *   event.c     events
 *   graph.c     captures and their replay
 *   opencl.c    the backend's table of functions
 */
#ifndef DS_ACCEL_PLUGINS_OPENCL_OPENCL_H
#define DS_ACCEL_PLUGINS_OPENCL_OPENCL_H

#include "cl.h"
#include "vendor.h"

#define OPENCL_TEXT_SIZE 256u

/* ---- addresses (map.c) ---------------------------------------------------------------------- */

/* The kinds of an address range. The host may access all kinds except BUFFER. */
#define OPENCL_BUFFER 1u     /* a cl_mem with reserved addresses */
#define OPENCL_MANAGED 2u    /* fine-grained shared virtual memory */
#define OPENCL_PINNED 3u     /* a cl_mem that stays mapped */
#define OPENCL_REGISTERED 4u /* the program's memory, with a cl_mem on it that stays mapped */

struct opencl_range {
    uintptr_t base;
    uint64_t size_bytes;
    uint32_t kind;
    uint32_t is_foreign; /* a cl_mem of the program, which is not counted as the plugin's memory */
    cl_mem memory;       /* NULL for OPENCL_MANAGED */
    ds_accel_plugin_device_t *device;
};

struct opencl_map {
    pthread_rwlock_t lock;       /* guards the members below */
    struct opencl_range *ranges; /* sorted by base */
    size_t count;
    size_t capacity;
};

int opencl_map_init(struct opencl_map *map);
void opencl_map_destroy(struct opencl_map *map);
int opencl_map_insert(struct opencl_map *map, const struct opencl_range *range);
/* Copies the range that contains the address to *range_out. Returns 0, or -1 if there is none. */
int opencl_map_find(struct opencl_map *map, const void *address, struct opencl_range *range_out);
/*
 * Removes the device's range that begins at base and copies it to *range_out. Returns 0, or -1 if
 * there is none.
 */
int opencl_map_take(struct opencl_map *map, const void *base,
                    const ds_accel_plugin_device_t *device, struct opencl_range *range_out);
/*
 * Reserves unique addresses for an object; the addresses cannot be accessed. Returns NULL if that
 * fails.
 */
void *opencl_reserve(uint64_t size_bytes);
void opencl_unreserve(void *address, uint64_t size_bytes);

/* ---- the runtime (runtime.c) ---------------------------------------------------------------- */

struct opencl_options {
    uint64_t types;     /* CL_DEVICE_TYPE_* bits of the selected types */
    char platform[128]; /* part of the platform's name; "": any platform */
    uint32_t sees_all;  /* option presence = off: the .icd files are not checked */
};

/* A selected device. */
struct opencl_found {
    cl_platform platform;
    cl_device device;
    uint64_t type;
    uint32_t vendor_index; /* the device's index among all devices of all platforms */
};

struct opencl_runtime {
    struct vendor_lib lib;
    struct cl_calls cl;
    struct opencl_options options;
    struct opencl_found *devices;
    uint32_t device_count;
    uint32_t was_counted;
    struct opencl_map memory; /* buffers and shared memory of all devices */
    struct opencl_map host;   /* pinned and registered memory */
};

int opencl_open(const struct ds_accel_host *host, void **runtime_out,
                struct vendor_problem *problem);
void opencl_close(void *runtime);
int opencl_count(void *runtime, uint32_t *count_out, struct vendor_problem *problem);
void opencl_describe(void *runtime, int64_t code, int32_t *status_out, const char **name_out);
/*
 * Reads a text of a platform or device, without leading and trailing blanks; "" if the runtime
 * reports none.
 */
void opencl_platform_text(const struct opencl_runtime *runtime, cl_platform platform, uint32_t name,
                          char *text, size_t text_size);
void opencl_device_text(const struct opencl_runtime *runtime, cl_device device, uint32_t name,
                        char *text, size_t text_size);

/*
 * Replaces the runtime's functions with those of serial.c, which make one call at a time. Returns
 * 0, or -1 if the calls of another library are already serialized.
 */
int opencl_serialize(struct opencl_runtime *runtime);

/* ---- what a runtime changes in the process (process.c) --------------------------------------- */

/* Remember the handlers of signals and the environment; NULL: no memory. opencl_process_restore()
 * restores what has changed since then, and frees the argument. */
struct opencl_process *opencl_process_keep(void);
void opencl_process_restore(struct opencl_process *process);

/* ---- devices (device.c) --------------------------------------------------------------------- */

struct opencl_stream;

struct opencl_device {
    struct opencl_runtime *runtime;
    const struct opencl_found *found;
    cl_context context;
    cl_queue service; /* for maps, unmaps and copies between devices */
    uint64_t total_bytes;
    uint64_t max_allocation_bytes;
    atomic_ullong used_bytes; /* part of total_bytes that this instance has allocated */
    uint32_t version;         /* 102 means OpenCL 1.2 */
    uint32_t has_priorities;
    uint32_t has_svm;
    uint32_t has_half;
    uint32_t has_double;
    uint32_t has_amd_memory;

    pthread_mutex_t lock; /* guards streams */
    struct opencl_stream *streams;
};

DS_ACCEL_INLINE struct opencl_device *opencl_of(ds_accel_plugin_device_t *device)
{
    return device->state;
}

/* Refers to a function of the runtime: OPENCL_CALL(device, clFlush)(queue) */
#define OPENCL_CALL(device, symbol) (opencl_of(device)->runtime->cl.symbol)

void opencl_evidence(void *opened, char *text, size_t text_size);
int32_t opencl_backend_info(ds_accel_plugin_instance_t *instance,
                            struct ds_accel_backend_info *info, struct ds_accel_error *error);
int32_t opencl_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                        struct ds_accel_error *error);
int32_t opencl_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                           struct ds_accel_error *error);
void opencl_device_close(ds_accel_plugin_device_t *device);
int32_t opencl_device_synchronize(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t opencl_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t opencl_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype,
                             uint32_t *support_out, struct ds_accel_error *error);

/* ---- memory (memory.c) ---------------------------------------------------------------------- */

int32_t opencl_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                     struct ds_accel_error *error);
int32_t opencl_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error);
int32_t opencl_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                            void **pointer_out, struct ds_accel_error *error);
int32_t opencl_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                           struct ds_accel_error *error);
int32_t opencl_register(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                        uint32_t flags, struct ds_accel_error *error);
int32_t opencl_unregister(ds_accel_plugin_device_t *device, void *pointer,
                          struct ds_accel_error *error);
int32_t opencl_alloc_managed(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                             void **pointer_out, struct ds_accel_error *error);
int32_t opencl_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out,
                           uint64_t *total_out, struct ds_accel_error *error);
int32_t opencl_native_memory(ds_accel_plugin_device_t *device, const void *pointer,
                             uint64_t *object_out, uint64_t *offset_out,
                             struct ds_accel_error *error);
int32_t opencl_native_memory_wrap(ds_accel_plugin_device_t *device, uint64_t object,
                                  void **pointer_out, uint64_t *size_out,
                                  struct ds_accel_error *error);

/* ---- streams (stream.c) --------------------------------------------------------------------- */

struct opencl_capture;
struct opencl_worker;

struct opencl_stream {
    ds_accel_plugin_device_t *device;
    cl_queue queue;
    /* The program uses the queue too, so the queue may have work that the plugin did not queue */
    atomic_uint is_shared;
    struct opencl_stream *next;    /* next stream of the device */
    atomic_uint_fast64_t place;    /* number of the work queued last (see next_place); 0: none */
    atomic_uint_fast64_t finished; /* work up to this number is known to be complete */

    pthread_mutex_t lock; /* guards the members below; held during submissions to the queue */
    struct opencl_capture *capture; /* NULL: none */
    size_t row;                     /* the stream's row in the capture */
    cl_event mark;                  /* the marker of the latest query; NULL: none */
    uint64_t marked;                /* number of the mark, see next_place */
    struct opencl_worker *worker;   /* NULL before the first task */
};

int32_t opencl_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                             void **native_out, struct ds_accel_error *error);
void opencl_stream_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t opencl_stream_priority_range(ds_accel_plugin_device_t *device, int32_t *least_out,
                                     int32_t *greatest_out, struct ds_accel_error *error);
int32_t opencl_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                                  struct ds_accel_error *error);
int32_t opencl_stream_query(ds_accel_plugin_device_t *device, void *native,
                            struct ds_accel_error *error);
int32_t opencl_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                                 struct ds_accel_error *error);
uint64_t opencl_native_handle(ds_accel_plugin_device_t *device, uint32_t kind, void *native);
int32_t opencl_native_wrap(ds_accel_plugin_device_t *device, uint32_t kind, uint64_t handle,
                           void **native_out, struct ds_accel_error *error);
void opencl_native_unwrap(ds_accel_plugin_device_t *device, uint32_t kind, void *native);

/*
 * Assigns a new number to the work that the caller has queued on the stream. Caller holds
 * stream->lock.
 */
void opencl_touch(struct opencl_stream *stream);
/*
 * Returns the status of a call that queued work on the stream, and assigns a new number to the
 * work. If the call succeeded, flushes the queue; if two flushes fail, finishes the queue and
 * returns the failure. Caller holds stream->lock.
 */
int32_t opencl_queued(struct opencl_stream *stream, int32_t code, const char *call,
                      struct ds_accel_error *error);
/*
 * Queues and flushes a marker after all work of the stream, and returns its event, which the caller
 * releases. Caller holds stream->lock.
 */
int32_t opencl_mark(struct opencl_stream *stream, cl_event *mark_out, struct ds_accel_error *error);
/*
 * Makes later work of the stream wait for a mark of this or another context. Caller holds
 * stream->lock.
 */
int32_t opencl_wait_for(struct opencl_stream *stream, cl_event mark, struct ds_accel_error *error);
/* Returns DS_ACCEL_OK, NOT_READY, or the failure of the event's command or of the query. */
int32_t opencl_status_of(ds_accel_plugin_device_t *device, cl_event mark,
                         struct ds_accel_error *error);

/* ---- host work (task.c) --------------------------------------------------------------------- */

typedef void (*opencl_task_t)(void *argument);

/*
 * Queues a task on the stream; later work begins when the task returns. Caller holds stream->lock.
 */
int32_t opencl_task_queue(struct opencl_stream *stream, opencl_task_t call, void *argument,
                          struct ds_accel_error *error);
int32_t opencl_memmove_queue(struct opencl_stream *stream, void *destination, const void *source,
                             uint64_t size_bytes, struct ds_accel_error *error);
int32_t opencl_peer_queue(struct opencl_stream *stream, void *destination, const void *source,
                          uint64_t size_bytes, struct ds_accel_error *error);
/*
 * Returns the first failure of a copy through host memory in the stream since the last call, with
 * *error set, or DS_ACCEL_OK. Acquires stream->lock.
 */
int32_t opencl_worker_failure(struct opencl_stream *stream, struct ds_accel_error *error);
/*
 * Waits for the stream's tasks; worker may be NULL. If is_idle is true, the caller has finished the
 * queue, and the function waits until every task has run. If it is false, no further task starts,
 * and the function waits only for a task that is running.
 */
void opencl_worker_drain(struct opencl_worker *worker, uint32_t is_idle);
/*
 * Called when the stream is destroyed: does what opencl_worker_drain() does, ends the thread
 * (later, if is_idle is false) and releases the worker.
 */
void opencl_worker_stop(struct opencl_worker *worker, uint32_t is_idle);

/* ---- events (event.c) ----------------------------------------------------------------------- */

struct opencl_event {
    struct opencl_runtime *runtime;
    pthread_mutex_t lock; /* guards the members below */
    cl_event mark;        /* NULL: never recorded, or in a capture */
    /* The capture that contains the recording, instead of a mark; NULL: none */
    struct opencl_capture *capture;
    size_t row; /* the event's row in the capture */
};

int32_t opencl_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                            struct ds_accel_error *error);
void opencl_event_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t opencl_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                            struct ds_accel_error *error);
int32_t opencl_event_query(ds_accel_plugin_device_t *device, void *native,
                           struct ds_accel_error *error);
int32_t opencl_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                                 struct ds_accel_error *error);
int32_t opencl_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                                double *elapsed_ms_out, struct ds_accel_error *error);

/*
 * Returns the event's mark, retained, or NULL if there is none. Unless capture_out is NULL, also
 * returns the capture that contains the recording instead, with a reference (NULL: none), and the
 * row there. Both are read together, because another thread may record the event.
 */
int32_t opencl_event_mark(ds_accel_plugin_device_t *device, struct opencl_event *event,
                          cl_event *mark_out, struct opencl_capture **capture_out, size_t *row_out,
                          struct ds_accel_error *error);
/*
 * Replaces the event's mark with another mark, whose reference passes to the event, or with a row
 * of a capture, or with nothing if both are NULL.
 */
void opencl_event_set(struct opencl_event *event, cl_event mark, struct opencl_capture *capture,
                      size_t row);

/* ---- copies (copy.c) ------------------------------------------------------------------------ */

struct opencl_node;

int32_t opencl_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                          const void *source, uint64_t size_bytes, uint32_t kind,
                          struct ds_accel_error *error);
int32_t opencl_copy_peer_async(ds_accel_plugin_device_t *device, void *native_stream,
                               ds_accel_plugin_device_t *destination_device, void *destination,
                               ds_accel_plugin_device_t *source_device, const void *source,
                               uint64_t size_bytes, struct ds_accel_error *error);
int32_t opencl_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                          uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                          struct ds_accel_error *error);
/* Queues a copy, peer copy or fill on the stream. Caller holds stream->lock. */
int32_t opencl_copy_queue(struct opencl_stream *stream, const struct opencl_node *node,
                          struct ds_accel_error *error);

/* ---- graphs (graph.c) ----------------------------------------------------------------------- */

#define OPENCL_NODE_COPY 1u
#define OPENCL_NODE_PEER 2u
#define OPENCL_NODE_FILL 3u
#define OPENCL_NODE_TASK 4u

/* One call on a stream: stored by a capture, or queued immediately. */
struct opencl_node {
    uint32_t kind;      /* OPENCL_NODE_* */
    uint32_t copy_kind; /* DS_ACCEL_COPY_* */
    void *destination;
    const void *source;
    uint64_t size_bytes;
    uint32_t pattern;
    uint32_t pattern_bytes;
    opencl_task_t call;
    void *argument;
};

/* Queues the call's work, or stores the call if the stream is capturing. Acquires stream->lock. */
int32_t opencl_submit(struct opencl_stream *stream, const struct opencl_node *node,
                      struct ds_accel_error *error);
/*
 * If the stream is capturing, breaks the capture and returns ERR_STATE; otherwise returns
 * DS_ACCEL_OK. Caller holds stream->lock.
 */
int32_t opencl_capture_refuse(struct opencl_stream *stream, const char *call,
                              struct ds_accel_error *error);
/*
 * Makes the stream wait for a mark of a capture; a stream that is not capturing joins the capture.
 * Fails if the capture has ended, or if the stream is in another capture: both captures are then
 * broken. Caller holds stream->lock.
 */
int32_t opencl_capture_join(struct opencl_stream *stream, struct opencl_capture *capture,
                            size_t row, struct ds_accel_error *error);
/*
 * Adds a row for an event at the capturing stream's current position, and returns its index in
 * *row_out. Caller holds stream->lock.
 */
int32_t opencl_capture_mark(const struct opencl_stream *stream, size_t *row_out,
                            struct ds_accel_error *error);
/*
 * Returns the stream's capture; NULL if there is none, or it has ended. Caller holds stream->lock.
 */
struct opencl_capture *opencl_capture_of(struct opencl_stream *stream);
/* Returns ERR_STATE if the capture is broken, otherwise DS_ACCEL_OK. */
int32_t opencl_capture_check(struct opencl_capture *capture, struct ds_accel_error *error);
/*
 * Removes a stream that is being destroyed from its capture; ends the capture if it began on this
 * stream.
 */
void opencl_capture_leave(struct opencl_stream *stream);
struct opencl_capture *opencl_capture_get(struct opencl_capture *capture);
void opencl_capture_put(struct opencl_capture *capture);

int32_t opencl_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                                void (*call)(void *argument), void *argument,
                                struct ds_accel_error *error);
int32_t opencl_capture_begin(ds_accel_plugin_device_t *device, void *native_stream, uint32_t mode,
                             struct ds_accel_error *error);
int32_t opencl_capture_end(ds_accel_plugin_device_t *device, void *native_stream, void **native_out,
                           struct ds_accel_error *error);
int32_t opencl_capture_status(ds_accel_plugin_device_t *device, void *native_stream,
                              uint32_t *status_out, struct ds_accel_error *error);
void opencl_graph_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t opencl_graph_instantiate(ds_accel_plugin_device_t *device, void *native, void **exec_out,
                                 struct ds_accel_error *error);
void opencl_graph_exec_destroy(ds_accel_plugin_device_t *device, void *exec);
int32_t opencl_graph_launch(ds_accel_plugin_device_t *device, void *exec, void *native_stream,
                            struct ds_accel_error *error);
int32_t opencl_graph_exec_update(ds_accel_plugin_device_t *device, void *exec, void *native,
                                 uint32_t *result_out, struct ds_accel_error *error);
int32_t opencl_graph_node_count(ds_accel_plugin_device_t *device, void *native, uint64_t *count_out,
                                struct ds_accel_error *error);
int32_t opencl_graph_dump(ds_accel_plugin_device_t *device, void *native, ds_accel_text_sink_t sink,
                          void *user_data, struct ds_accel_error *error);

#endif
