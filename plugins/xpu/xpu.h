/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The xpu backend over Level Zero.
 *
 *      way.c     how programs use the device: through IPEX or the driver
 *      xpu.c     libraries, symbols, errors, the table
 *      device.c  drivers, devices, identity, contexts, data types, peer access
 *      mark.c    events that are signalled once, and when they may be reused
 *      stream.c  immediate lists, host tasks, copies and fills, native handles
 *      graph.c   captures and graphs
 *      memory.c  allocations, virtual memory
 *      ipc.c     memory shared between processes
 *      sysman.c  sensors, free memory, processes, links
 *      range.c   profiler ranges through ITT
 */
#ifndef DS_ACCEL_PLUGINS_XPU_XPU_H
#define DS_ACCEL_PLUGINS_XPU_XPU_H

#include "vendor.h"
#include "zes.h"

#define XPU_DRIVERS 8u
/* Maximum number of memories, engines and so on that are read of a device */
#define XPU_MODULES 32u

/* How programs use the device, found in the metadata of Python packages (way.c). */
struct xpu_way {
    char variant[32]; /* "ipex" or "driver" */
    uint32_t ipex_version[3];
    uint32_t uses_host_timers;
    uint32_t has_oneccl;
};

struct xpu_driver {
    ze_driver_t handle;
    uint32_t api_version;
    uint32_t version;
    ze_context_t context; /* shared by the open devices of the driver; NULL: none */
    uint32_t context_users;
    uint32_t has_graphs, has_bfloat16;
    /*
     * If has_graphs is 0: the error of the lookup of the graph functions, or SUCCESS if the loader
     * or the driver lacks one of the functions.
     */
    ze_result graphs_result;
    struct ze_graph_api graphs;
};

/* Counter values of an earlier reading of the sensors. */
struct xpu_sample {
    uint64_t taken_ns;
    struct zes_engine_stats engine;
    struct zes_energy energy;
};

/* A device as zeDeviceGet() lists it: a card, or a tile of a card. */
struct xpu_unit {
    struct xpu_driver *driver;
    ze_device_t handle;
    ze_device_t root; /* a tile's card, if the driver reports it */
    struct ze_device_properties properties;
    struct ze_pci_address address;
    uint32_t has_address;
    uint32_t is_tile, tile;
    uint32_t number;     /* the device's number in ZE_AFFINITY_MASK */
    char token[64];      /* the device's entries in ZE_AFFINITY_MASK: "1", "0.0,0.1" */
    zes_device_t sysman; /* NULL: no sensors */
    struct xpu_sample sample;
};

struct xpu_runtime {
    const struct ds_accel_host *host;
    struct ze_api ze;
    struct zes_api zes;
    struct itt_api itt;
    uint32_t has_itt;
    struct xpu_way way;
    pthread_mutex_t lock; /* guards shared contexts, the start of Sysman, and samples */
    uint32_t has_sysman;  /* the lookup of Sysman is done */
    struct xpu_driver drivers[XPU_DRIVERS];
    uint32_t driver_count;
    struct xpu_unit *units;
    uint32_t unit_count;
};

/*
 * A Level Zero event: signalled once, until the host resets it. Marks are reference-counted. A mark
 * without references remains in the device's list of retired marks until it is signalled and all
 * streams that wait for it have passed the wait; each of these streams signals a second mark, which
 * is in the list passed.
 */
struct xpu_mark {
    ze_event_t event;
    struct xpu_mark *next;   /* in the list of free or retired marks, or in another mark's passed */
    struct xpu_mark *passed; /* signalled after the waits: one mark for each stream that waits */
    uint32_t references;
    uint32_t is_timed;
    uint32_t is_armed;    /* a command that signals the mark was queued */
    uint32_t is_captured; /* a graph signals or waits for it: never reset by the host */
};

#define XPU_POOL_EVENTS 64u

struct xpu_pool {
    struct xpu_pool *next;
    ze_pool_t pool;
    uint32_t used;
    struct xpu_mark marks[XPU_POOL_EVENTS];
};

struct xpu_mapping;
struct xpu_reservation;
struct xpu_stream;

/* An opened device. */
struct xpu_state {
    struct xpu_runtime *runtime;
    struct xpu_unit *unit;
    ze_context_t context;
    uint32_t owns_context;
    uint32_t ordinal, queue_count; /* the queue group that computes and copies */
    size_t max_pattern_bytes;
    uint32_t is_in_order; /* the driver supports in-order lists (1.7) */
    uint64_t tick_bits;
    double tick_ns;
    uint64_t total_bytes;
    /* Device and managed memory that was requested; used if Sysman does not report free memory */
    atomic_ullong used_bytes;
    atomic_uint next_queue;
    atomic_uint capture_count;
    pthread_mutex_t lock;      /* guards all members below, and references of marks */
    struct xpu_pool *pools[2]; /* indexed by is_timed */
    struct xpu_mark *free[2];
    struct xpu_mark *retired, **retired_end;
    struct xpu_stream *streams; /* all streams, including those destroyed with work in flight */
    struct xpu_mapping *mappings;
    struct xpu_reservation *reservations;
};

struct xpu_task {
    struct xpu_task *next;
    struct xpu_mark *reached; /* signalled by the stream before the task */
    struct xpu_mark *done;    /* signalled after the task; the stream waits for it */
    void (*call)(void *argument);
    void *argument;
};

struct xpu_stream {
    struct xpu_stream *next;
    struct xpu_state *state;
    ze_list_t list;
    uint32_t is_wrapped;
    /* Destroyed, but not freed until its work is done; guarded by state->lock */
    uint32_t is_destroyed;
    /*
     * Numbers of threads in xpu_device_synchronize() that keep a pointer to the stream, and of
     * threads there that wait for its list now. The last of these signals waited. Guarded by
     * state->lock
     */
    uint32_t pins, waits;
    pthread_cond_t waited;
    pthread_mutex_t lock; /* held while commands are appended to the list */
    /*
     * The capture is broken: the stream was waited for, or waited for an event of another capture
     */
    uint32_t is_broken;
    uint32_t has_commands; /* the stream has work to wait for; in an unordered list, the next
                            * command needs a barrier */
    struct xpu_mark *tail; /* follows all work; NULL: none, or work was queued after it */
    /* Host tasks, which a thread of this stream runs; task_lock guards is_ending and the list. */
    pthread_mutex_t task_lock;
    pthread_cond_t task_cond;
    pthread_t thread;
    uint32_t has_thread, is_ending;
    struct xpu_task *tasks, **tasks_end;
};

/* Accessors for the objects of a device. */
static inline struct xpu_runtime *xpu_runtime(const ds_accel_plugin_device_t *device)
{
    return device->instance->runtime;
}
static inline struct xpu_state *xpu_state(const ds_accel_plugin_device_t *device)
{
    return device->state;
}

/*
 * Returns the status of a Level Zero call on a device: XPU_CHECK(device, code, error, "zeX(...)").
 */
#define XPU_CHECK(device, code, error, ...) \
    vendor_check((device)->instance, (device), (int64_t)(code), (error), __VA_ARGS__)

int32_t xpu_no_host_memory(struct ds_accel_error *error, const char *call);

/* way.c */
void xpu_way_find(const struct ds_accel_host *host, struct xpu_way *way_out);

/* device.c */
int xpu_units_find(struct xpu_runtime *runtime, struct vendor_problem *problem);
int xpu_count(void *runtime, uint32_t *count_out, struct vendor_problem *problem);
int32_t xpu_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                     struct ds_accel_error *error);
int32_t xpu_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                        struct ds_accel_error *error);
void xpu_device_close(ds_accel_plugin_device_t *device);
int32_t xpu_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t xpu_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype, uint32_t *support_out,
                          struct ds_accel_error *error);
int32_t xpu_peer_can_access(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                            uint32_t *can_out, struct ds_accel_error *error);
int32_t xpu_peer_enable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                        struct ds_accel_error *error);
int32_t xpu_peer_disable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                         struct ds_accel_error *error);
int xpu_visible_token(ds_accel_plugin_device_t *device, uint32_t which, char *token,
                      size_t token_size);

/* mark.c */
/* Returns a free mark of state with one reference; device is used only for errors. */
int32_t xpu_mark_take(ds_accel_plugin_device_t *device, struct xpu_state *state, uint32_t is_timed,
                      struct xpu_mark **mark_out, struct ds_accel_error *error);
void xpu_mark_put(struct xpu_state *state, struct xpu_mark *mark);
void xpu_mark_add_passed(struct xpu_state *state, struct xpu_mark *mark, struct xpu_mark *passed);
void xpu_marks_end(struct xpu_state *state);
int32_t xpu_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                         struct ds_accel_error *error);
void xpu_event_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t xpu_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                         struct ds_accel_error *error);
int32_t xpu_event_query(ds_accel_plugin_device_t *device, void *native,
                        struct ds_accel_error *error);
int32_t xpu_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                              struct ds_accel_error *error);
int32_t xpu_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                             double *elapsed_ms_out, struct ds_accel_error *error);
int32_t xpu_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                              struct ds_accel_error *error);

/* stream.c */
/*
 * The caller of the next three functions holds stream->lock. xpu_stream_order() is called before
 * each command, and xpu_stream_touched() after a command was queued.
 */
ze_result xpu_stream_order(struct xpu_stream *stream);
void xpu_stream_touched(struct xpu_stream *stream);
uint32_t xpu_stream_is_capturing(struct xpu_stream *stream);
/* Frees destroyed streams whose work is done; if all is true, waits for their work first. */
void xpu_streams_reap(struct xpu_state *state, uint32_t all);
int32_t xpu_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                          void **native_out, struct ds_accel_error *error);
void xpu_stream_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t xpu_stream_priority_range(ds_accel_plugin_device_t *device, int32_t *least_out,
                                  int32_t *greatest_out, struct ds_accel_error *error);
int32_t xpu_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                               struct ds_accel_error *error);
int32_t xpu_stream_synchronize_for(ds_accel_plugin_device_t *device, void *native,
                                   uint64_t timeout_ns, struct ds_accel_error *error);
int32_t xpu_stream_query(ds_accel_plugin_device_t *device, void *native,
                         struct ds_accel_error *error);
int32_t xpu_device_synchronize(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t xpu_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                             void (*call)(void *argument), void *argument,
                             struct ds_accel_error *error);
int32_t xpu_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                       const void *source, uint64_t size_bytes, uint32_t kind,
                       struct ds_accel_error *error);
int32_t xpu_copy_peer_async(ds_accel_plugin_device_t *device, void *native_stream,
                            ds_accel_plugin_device_t *destination_device, void *destination,
                            ds_accel_plugin_device_t *source_device, const void *source,
                            uint64_t size_bytes, struct ds_accel_error *error);
int32_t xpu_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                       uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                       struct ds_accel_error *error);
uint64_t xpu_native_handle(ds_accel_plugin_device_t *device, uint32_t kind, void *native);
int32_t xpu_native_wrap(ds_accel_plugin_device_t *device, uint32_t kind, uint64_t handle,
                        void **native_out, struct ds_accel_error *error);
void xpu_native_unwrap(ds_accel_plugin_device_t *device, uint32_t kind, void *native);

/* graph.c */
void xpu_graphs_bind(struct xpu_runtime *runtime, struct xpu_driver *driver);
int32_t xpu_capture_begin(ds_accel_plugin_device_t *device, void *native_stream, uint32_t mode,
                          struct ds_accel_error *error);
int32_t xpu_capture_end(ds_accel_plugin_device_t *device, void *native_stream, void **native_out,
                        struct ds_accel_error *error);
int32_t xpu_capture_status(ds_accel_plugin_device_t *device, void *native_stream,
                           uint32_t *status_out, struct ds_accel_error *error);
uint64_t xpu_graph_handle(const void *native);
int32_t xpu_graph_dump(ds_accel_plugin_device_t *device, void *native, ds_accel_text_sink_t sink,
                       void *user_data, struct ds_accel_error *error);
void xpu_graph_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t xpu_graph_instantiate(ds_accel_plugin_device_t *device, void *native, void **exec_out,
                              struct ds_accel_error *error);
void xpu_graph_exec_destroy(ds_accel_plugin_device_t *device, void *exec);
int32_t xpu_graph_launch(ds_accel_plugin_device_t *device, void *exec, void *native_stream,
                         struct ds_accel_error *error);

/* memory.c */
int32_t xpu_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                  struct ds_accel_error *error);
int32_t xpu_free(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                 struct ds_accel_error *error);
int32_t xpu_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                         void **pointer_out, struct ds_accel_error *error);
int32_t xpu_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                        struct ds_accel_error *error);
int32_t xpu_alloc_managed(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                          struct ds_accel_error *error);
int32_t xpu_host_device_pointer(ds_accel_plugin_device_t *device, void *host_pointer,
                                void **device_pointer_out, struct ds_accel_error *error);
int32_t xpu_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                        struct ds_accel_error *error);
int32_t xpu_vmem_granularity(ds_accel_plugin_device_t *device, uint32_t flags,
                             uint64_t *minimum_out, uint64_t *recommended_out,
                             struct ds_accel_error *error);
int32_t xpu_vmem_reserve(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                         uint64_t align_bytes, void *hint, void **address_out,
                         struct ds_accel_error *error);
int32_t xpu_vmem_release(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                         struct ds_accel_error *error);
int32_t xpu_vmem_create(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                        void **native_out, struct ds_accel_error *error);
void xpu_vmem_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t xpu_vmem_map(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                     void *native, uint64_t offset_bytes, struct ds_accel_error *error);
int32_t xpu_vmem_unmap(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                       struct ds_accel_error *error);
int32_t xpu_vmem_set_access(ds_accel_plugin_device_t *accessor, void *address, uint64_t size_bytes,
                            uint32_t access, struct ds_accel_error *error);

/* ipc.c */
#define XPU_HANDLE_BYTES 80u
int32_t xpu_ipc_memory_export(ds_accel_plugin_device_t *device, void *base, uint64_t size_bytes,
                              void *handle, struct ds_accel_error *error);
int32_t xpu_ipc_memory_unexport(ds_accel_plugin_device_t *device, const void *handle,
                                struct ds_accel_error *error);
int32_t xpu_ipc_memory_open(ds_accel_plugin_device_t *device, const void *handle,
                            uint64_t size_bytes, void **base_out, struct ds_accel_error *error);
int32_t xpu_ipc_memory_close(ds_accel_plugin_device_t *device, const void *handle, void *base,
                             struct ds_accel_error *error);

/* sysman.c */
void xpu_sysman_bind(struct xpu_runtime *runtime, const struct vendor_lib *lib);
/* Returns 0, or -1 if Sysman reports no memory. */
int xpu_sysman_memory(struct xpu_runtime *runtime, const struct xpu_unit *unit, uint64_t *free_out,
                      uint64_t *total_out);
int32_t xpu_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_telemetry *telemetry, struct ds_accel_error *error);
int32_t xpu_processes(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_process *processes, uint32_t capacity, uint32_t *count_out,
                      struct ds_accel_error *error);
int32_t xpu_links(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                  struct ds_accel_link *links, uint32_t capacity, uint32_t *count_out,
                  struct ds_accel_error *error);

/* range.c */
void xpu_itt_find(struct xpu_runtime *runtime);
int32_t xpu_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                       const char *domain, const char *category, struct ds_accel_error *error);
int32_t xpu_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                      struct ds_accel_error *error);
int32_t xpu_profiler_start(ds_accel_plugin_instance_t *instance, struct ds_accel_error *error);
int32_t xpu_profiler_stop(ds_accel_plugin_instance_t *instance, struct ds_accel_error *error);

#endif
