/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the files of the cpu plugin share; cpu.c explains how they fit together. */
#ifndef DS_ACCEL_PLUGINS_CPU_CPU_H
#define DS_ACCEL_PLUGINS_CPU_CPU_H

#include "vendor.h"

#define CPU_ALIGN_BYTES 64u
#define CPU_MAX_ALIGN_BYTES (UINT64_C(1) << 40)
#define CPU_MAX_DEVICES 4096u
#define CPU_FLAGS \
    (DS_ACCEL_FLAG_GRAPHS | DS_ACCEL_FLAG_HOST_ACCESSIBLE | DS_ACCEL_FLAG_UNIFIED_ADDRESSES | \
     DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY | DS_ACCEL_FLAG_VIRTUAL_MEMORY)
/* Valid only if the calling thread does all work itself. */
#define CPU_FLAGS_SYNCHRONIZED \
    (DS_ACCEL_FLAG_SYNCHRONIZED | DS_ACCEL_FLAG_HOST_TIMERS | \
     DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES | DS_ACCEL_FLAG_HANDLES_BACKPRESSURE | \
     DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS)

struct cpu_runtime;

/* ---- machine.c: facts from the host and the files under machine_root ------------------------ */

/* A NUMA node with CPUs; consecutive kernel nodes with the same CPUs (fake NUMA) are one node. */
struct cpu_node {
    uint32_t id; /* the kernel's number; the first if several kernel nodes are one */
    uint32_t cpu_count;
    uint32_t first_cpu;
    char cpus[256];
};

struct cpu_machine {
    const struct ds_accel_host *host;
    const struct ds_accel_ext_topology *topology;
    struct cpu_node *nodes; /* nodes[node_count]; 0 if the host knows no node with CPUs */
    uint32_t node_count;
    uint32_t *node_of_position; /* [position_count]: index into nodes, or CPU_NO_NODE */
    uint32_t position_count;
    uint32_t device_count;
    uint32_t local_size; /* the LOCAL_SIZE that set device_count; 0: the nodes set it */
};
#define CPU_NO_NODE UINT32_MAX

/* The first processor of /proc/cpuinfo. */
struct cpu_model {
    char name[128];
    uint32_t has_float16;
    uint32_t has_bfloat16;
};

/* Times of some CPUs since boot, in 1/sysconf(_SC_CLK_TCK) s. */
struct cpu_ticks {
    uint64_t busy;
    uint64_t total;
    uint32_t cpu_count;
};

/* sensors.c: a device's latest sample of its CPUs. */
struct cpu_sample {
    struct cpu_ticks ticks;
    uint32_t busy_percent;
    uint64_t period_ns;
};

struct cpu_resident {
    uint64_t now_bytes;
    uint64_t peak_bytes; /* since the process began */
};

/* A LOCAL_SIZE that is not a number is ignored; cpu_machine_warn() reports it. */
int32_t cpu_machine_scan(const struct ds_accel_host *host, struct cpu_machine *machine_out,
                         struct ds_accel_error *error);
void cpu_machine_warn(const struct cpu_machine *machine);
void cpu_machine_release(struct cpu_machine *machine);
/* The node of a device, or NULL if no node is known. */
const struct cpu_node *cpu_machine_node(const struct cpu_machine *machine, uint32_t device_index);
/* Current memory of a node; both 0 if the host does not know. */
void cpu_node_memory(const struct cpu_machine *machine, const struct cpu_node *node,
                     uint64_t *total_bytes_out, uint64_t *available_bytes_out);
/* A file under machine_root; NULL and errno. */
FILE *cpu_file_open(const struct ds_accel_host *host, const char *path);
/* Its first line, without the newline; 0, or -1 if there is none. */
int cpu_file_line(const struct ds_accel_host *host, const char *path, char *line, int line_size);
/* Read at the first call: detection does not need it. Valid as long as the runtime. */
const struct cpu_model *cpu_model_of(struct cpu_runtime *cpu);
uint32_t cpu_online_count(const struct ds_accel_host *host);
uint64_t cpu_l2_bytes(const struct ds_accel_host *host, uint32_t cpu);
uint32_t cpu_clock_khz(const struct ds_accel_host *host, uint32_t cpu);
int32_t cpu_resident_read(const struct ds_accel_host *host, struct cpu_resident *resident_out,
                          struct ds_accel_error *error);

/* ---- the objects behind the frame's handles -------------------------------------------------- */

/* Value of current_key: device index + 1, NULL if never set; in workers also this bit. */
#define CPU_CURRENT_WORKER ((uintptr_t)1 << 31)

struct cpu_device;

/* instance->runtime */
struct cpu_runtime {
    const struct ds_accel_host *host;
    struct cpu_machine machine; /* never written after open() */
    uint32_t is_async;          /* option async: streams have workers; likewise */
    uint32_t fork_count;        /* queue.c: of the process that made the instance; likewise */
    uint32_t is_started;        /* current_key exists; likewise */
    pthread_key_t current_key;  /* per thread */
    atomic_uint rank_warned;
    atomic_uint bind_warned;
    atomic_uint_fast64_t last_ticket; /* of the queued work of all streams, in order */

    /* Held around mlock() and munlock() of the caller's pages, where the set of other registrations
       of a page must not change. */
    pthread_mutex_t pin_lock;
    /* Guards everything below, and what its devices list as guarded by cpu->lock. */
    pthread_mutex_t lock;
    struct cpu_sample *samples; /* [device_count] */
    struct cpu_model model;     /* with has_model; then never written again */
    uint32_t has_model;
    uint32_t ccl_state;          /* cpu.c: is oneCCL there? */
    struct cpu_device **devices; /* [device_count], NULL while not open */
};

struct cpu_reservation;
struct cpu_queue;   /* queue.c: the work of a stream, and the thread that does it */
struct cpu_mark;    /* queue.c: a position in a queue that callers can wait for */
struct cpu_capture; /* capture.c: work of capturing streams so far */
struct cpu_launch;  /* graph.c: one run of a graph */
struct cpu_event;

/* Work of a stream; the kind decides which members are used. */
#define CPU_WORK_COPY 1u
#define CPU_WORK_FILL 2u
#define CPU_WORK_TASK 3u
#define CPU_WORK_RECORD 4u
#define CPU_WORK_WAIT 5u /* this and the following members: in a queue, never in a capture */
#define CPU_WORK_LAUNCH 6u
#define CPU_WORK_FREE 7u

struct cpu_work {
    uint32_t kind;
    uint32_t pattern_bytes;
    unsigned char pattern[4];
    uint32_t is_joined; /* captured: the stream that began the capture is ordered after it */
    void *destination;
    const void *source;
    uint64_t size_bytes;
    ds_accel_host_task_t task;
    void *user_data;
    struct cpu_event *event;        /* captured RECORD; a reference */
    struct cpu_mark *mark;          /* queued RECORD, WAIT; a reference */
    struct cpu_launch *launch;      /* LAUNCH; taken */
    struct cpu_device *device;      /* FREE: of destination, size_bytes */
    void (*before)(void *argument); /* FREE: first called with user_data */
    size_t edge_start;              /* captured: the nodes before it are edges[edge_start ...] */
    size_t edge_count;
};

/* The work of a capture, in the order of the calls. */
struct cpu_work_list {
    struct cpu_work *items;
    size_t count;
    size_t capacity;
    size_t *edges;
    size_t edge_count;
    size_t edge_capacity;
    size_t record_count;
};

/* stream->native */
struct cpu_stream {
    struct cpu_device *device;
    struct cpu_queue *queue;     /* NULL if the calling thread does the work; a reference */
    struct cpu_capture *capture; /* NULL: not capturing; a reference */
    size_t *tail;                /* [tail_count]: nodes on which its next captured work depends */
    size_t tail_count;
    size_t tail_capacity;
};

/* The latest recording of an event: one of these members, or none if it was never recorded. */
struct cpu_recording {
    uint64_t recorded_ns;        /* reached by the calling thread, CLOCK_MONOTONIC; or 0 */
    struct cpu_mark *mark;       /* in a queue; a reference */
    struct cpu_capture *capture; /* in a capture not launched since; a reference */
    size_t node;                 /* and its index in the capture */
};

/* event->native */
struct cpu_event {
    atomic_uint references; /* the handle's, and one for each captured record */
    pthread_mutex_t lock;   /* guards latest */
    struct cpu_recording latest;
};

struct cpu_peak {
    uint32_t was_reset;
    uint64_t process_peak_at_reset_bytes;
    uint64_t sampled_bytes; /* largest resident set seen since */
};

/* device->state */
struct cpu_device {
    struct cpu_runtime *cpu;
    uint32_t index;
    uint32_t is_stopped;         /* its work has ended; nothing uses its memory */
    const struct cpu_node *node; /* NULL if no node is known */
    struct cpu_stream default_stream;

    /* guarded by cpu->lock */
    struct cpu_reservation *reservations; /* vmem.c: addresses without memory */
    struct cpu_queue *queues;             /* with workers; their streams may be destroyed already */
    uint32_t queue_count;                 /* created so far */
    struct cpu_peak allocated_peak;
    struct cpu_peak reserved_peak;
};

static inline struct cpu_runtime *cpu_runtime(const ds_accel_plugin_instance_t *instance)
{
    return instance->runtime;
}

static inline struct cpu_device *cpu_device(const ds_accel_plugin_device_t *device)
{
    return device->state;
}

/* ---- device.c ------------------------------------------------------------------------------- */

int32_t cpu_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                     struct ds_accel_error *error);
int32_t cpu_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                        struct ds_accel_error *error);
void cpu_device_stop(ds_accel_plugin_device_t *device);
void cpu_device_close(ds_accel_plugin_device_t *device);
int32_t cpu_device_info(ds_accel_plugin_device_t *device, struct ds_accel_device_info *info,
                        struct ds_accel_error *error);
int32_t cpu_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype, uint32_t *support_out,
                          struct ds_accel_error *error);
int32_t cpu_get_current(ds_accel_plugin_instance_t *instance, uint32_t *index_out,
                        struct ds_accel_error *error);
int32_t cpu_set_current(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
int32_t cpu_device_wait(ds_accel_plugin_device_t *device, uint64_t timeout_ns,
                        struct ds_accel_error *error);
int32_t cpu_peer_can_access(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                            uint32_t *can_out, struct ds_accel_error *error);
int32_t cpu_peer_change(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                        struct ds_accel_error *error);
int32_t cpu_links(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                  struct ds_accel_link *links, uint32_t capacity, uint32_t *count_out,
                  struct ds_accel_error *error);

/* ---- memory.c, vmem.c, usage.c, sensors.c --------------------------------------------------- */

uint64_t cpu_page_bytes(void);
/* Fresh pages at a multiple of align_bytes, a power of two; NULL and errno. */
char *cpu_pages_map(uint64_t size_bytes, uint64_t align_bytes, int protection,
                    uint64_t *mapped_bytes_out);
/* Free memory of cpu_alloc(), which nothing uses any more. */
void cpu_give(const struct cpu_device *device, void *pointer, uint64_t size_bytes);
/* ERR_STATE if the calling thread may not wait. */
int32_t cpu_memory_wait(ds_accel_plugin_device_t *device, const char *call,
                        struct ds_accel_error *error);
int32_t cpu_check_size(ds_accel_plugin_device_t *device, uint64_t size_bytes, const char *call,
                       struct ds_accel_error *error);
int32_t cpu_alloc(ds_accel_plugin_device_t *device, uint64_t *size_bytes, uint64_t align_bytes,
                  void **pointer_out, struct ds_accel_error *error);
int32_t cpu_free(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                 struct ds_accel_error *error);
int32_t cpu_alloc_async(ds_accel_plugin_device_t *device, void *native_stream, uint64_t size_bytes,
                        void **pointer_out, struct ds_accel_error *error);
int32_t cpu_free_in_order(ds_accel_plugin_device_t *device, void *native_stream, void *pointer,
                          uint64_t size_bytes, void (*before)(void *argument), void *argument,
                          struct ds_accel_error *error);
int32_t cpu_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                         uint64_t align_bytes, uint32_t flags, void **pointer_out,
                         struct ds_accel_error *error);
int32_t cpu_free_pinned(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                        struct ds_accel_error *error);
int32_t cpu_host_register(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                          uint32_t flags, struct ds_accel_error *error);
int32_t cpu_host_unregister(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                            struct ds_accel_error *error);

int32_t cpu_vmem_granularity(ds_accel_plugin_device_t *device, uint32_t flags,
                             uint64_t *minimum_out, uint64_t *recommended_out,
                             struct ds_accel_error *error);
int32_t cpu_vmem_reserve(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                         uint64_t align_bytes, void *hint, void **address_out,
                         struct ds_accel_error *error);
int32_t cpu_vmem_check(ds_accel_plugin_device_t *device, const char *slot, const void *address,
                       uint64_t size_bytes, struct ds_accel_error *error);
int32_t cpu_vmem_unreserve(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                           struct ds_accel_error *error);
int32_t cpu_vmem_create(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                        void **native_out, struct ds_accel_error *error);
void cpu_vmem_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t cpu_vmem_map(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                     void *native, uint64_t offset_bytes, struct ds_accel_error *error);
int32_t cpu_vmem_unmap(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                       struct ds_accel_error *error);
int32_t cpu_vmem_set_access(ds_accel_plugin_device_t *accessor, void *address, uint64_t size_bytes,
                            uint32_t access, struct ds_accel_error *error);
/* Unmap and release the device's remaining reservations. */
void cpu_vmem_release(ds_accel_plugin_device_t *device);

/* Total, available and limit of the device; process_bytes stays 0. */
int32_t cpu_memory_size(const struct cpu_device *device, struct ds_accel_memory_info *info_out,
                        struct ds_accel_error *error);
int32_t cpu_usage_info(ds_accel_plugin_device_t *device, struct ds_accel_memory_info *info,
                       struct ds_accel_error *error);
int32_t cpu_usage_stats(ds_accel_plugin_device_t *device, struct ds_accel_memory_stats *stats,
                        struct ds_accel_error *error);
int32_t cpu_usage_reset_peaks(ds_accel_plugin_device_t *device, uint32_t which,
                              struct ds_accel_error *error);
int32_t cpu_trim(ds_accel_plugin_device_t *device, uint64_t keep_bytes,
                 struct ds_accel_error *error);
int32_t cpu_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_telemetry *telemetry, struct ds_accel_error *error);

/* ---- place.c: the NUMA node of memory and workers ------------------------------------------- */

/* Prefer the device's node for fresh pages; does nothing if there is only one node. */
void cpu_place_pages(const struct cpu_device *device, void *pages, uint64_t size_bytes);
/* Non-zero if the machine has nodes to choose from, and is not a recorded one. */
int cpu_place_matters(const struct cpu_machine *machine);
/* Let threads created with the attributes run on the device's node, as far as the process may use
   its CPUs. */
void cpu_place_thread(const struct cpu_device *device, pthread_attr_t *attributes);

/* ---- queue.c: marks and queues; locks: cpu->lock before a queue's ---------------------- */

#define CPU_NEVER UINT64_MAX

/* The deadline of an ABI timeout, CLOCK_MONOTONIC. */
uint64_t cpu_deadline_ns(uint64_t timeout_ns);
/* Called once before the first worker; 0, or an errno. */
int cpu_fork_watch(uint32_t *fork_count_out);
/* Fail in a forked child, which has no workers to wait for or queue work to. */
int32_t cpu_fork_check(const struct cpu_runtime *cpu, const char *call,
                       struct ds_accel_error *error);

struct cpu_mark *cpu_mark_create(struct cpu_queue *queue);
void cpu_mark_get(struct cpu_mark *mark);
void cpu_mark_put(struct cpu_mark *mark); /* NULL is ignored */
/* The time it was reached, or 0. */
uint64_t cpu_mark_reached_ns(struct cpu_mark *mark);
int cpu_mark_is_of(const struct cpu_mark *mark, const struct cpu_queue *queue);
void cpu_mark_reach(struct cpu_mark *mark);
/* 0, or ETIMEDOUT. */
int cpu_mark_wait(struct cpu_mark *mark, uint64_t deadline_ns);

/* With two references, the stream's and the device's. NULL without memory. */
struct cpu_queue *cpu_queue_create(struct cpu_device *device);
/* Add to the device's list; cpu->lock is held. */
void cpu_queue_enter(struct cpu_queue *queue);
struct cpu_item; /* room for work in a queue */
/* Queue the work, and take the objects it refers to; on failure nothing is queued or taken. */
int32_t cpu_queue_submit(struct cpu_queue *queue, const struct cpu_work *work, const char *call,
                         struct ds_accel_error *error);
/* The same in two steps, of which the second cannot fail. NULL and *error. */
struct cpu_item *cpu_item_create(struct cpu_queue *queue, const char *call,
                                 struct ds_accel_error *error);
void cpu_queue_push(struct cpu_queue *queue, struct cpu_item *item, const struct cpu_work *work);
int cpu_queue_is_idle(struct cpu_queue *queue);
/* Wait for the work that the queue holds now. */
int32_t cpu_queue_wait(struct cpu_queue *queue, uint64_t timeout_ns, const char *call,
                       struct ds_accel_error *error);
/* Wait for the work that the streams hold now: of one device or, with NULL, of all devices. */
int32_t cpu_queues_wait(struct cpu_runtime *cpu, const struct cpu_device *device,
                        uint64_t timeout_ns, const char *call, struct ds_accel_error *error);
/* The stream is destroyed: its worker ends after the remaining work. Puts the reference. */
void cpu_queue_close(struct cpu_queue *queue);
/* End all workers of a device, after their work. */
void cpu_queues_end(struct cpu_device *device);
/* Is the calling thread a worker? */
int cpu_runs_tasks(ds_accel_plugin_instance_t *instance);
/* ERR_STATE on a worker thread, which would wait for itself. */
int32_t cpu_check_not_worker(const struct cpu_runtime *cpu, const char *call,
                             struct ds_accel_error *error);

/* ---- work.c, stream.c, event.c -------------------------------------------------------------- */

/* Is the stream's work done by the calling thread before the call returns? */
static inline int cpu_runs_at_once(const struct cpu_stream *stream)
{
    return stream->queue == NULL && stream->capture == NULL;
}

/* Do the work now, queue it or, while the stream captures, keep it. The objects it refers to are
   taken, unless the call fails. */
int32_t cpu_work_submit(struct cpu_stream *stream, const struct cpu_work *work, const char *call,
                        struct ds_accel_error *error);
void cpu_work_run(const struct cpu_work *work);
/* Put the objects that queued work refers to. */
void cpu_work_release(struct cpu_work *work);
int32_t cpu_copy(ds_accel_plugin_device_t *device, void *destination, const void *source,
                 uint64_t size_bytes, uint32_t kind, struct ds_accel_error *error);
int32_t cpu_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                       const void *source, uint64_t size_bytes, uint32_t kind,
                       struct ds_accel_error *error);
int32_t cpu_copy_peer_async(ds_accel_plugin_device_t *device, void *native_stream,
                            ds_accel_plugin_device_t *destination_device, void *destination,
                            ds_accel_plugin_device_t *source_device, const void *source,
                            uint64_t size_bytes, struct ds_accel_error *error);
int32_t cpu_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                       uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                       struct ds_accel_error *error);
int32_t cpu_stream_task(ds_accel_plugin_device_t *device, void *native, ds_accel_host_task_t task,
                        void *user_data, struct ds_accel_error *error);

/* Set the members of a stream; 0, or -1: out of memory. */
int cpu_stream_init(struct cpu_stream *stream, struct cpu_device *device);
int32_t cpu_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                          void **native_out, struct ds_accel_error *error);
void cpu_stream_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t cpu_stream_default(ds_accel_plugin_device_t *device, void **native_out,
                           struct ds_accel_error *error);
int32_t cpu_stream_wait(ds_accel_plugin_device_t *device, void *native, uint64_t timeout_ns,
                        struct ds_accel_error *error);
int32_t cpu_stream_query(ds_accel_plugin_device_t *device, void *native,
                         struct ds_accel_error *error);
int32_t cpu_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                              struct ds_accel_error *error);
/* Make the stream's later work wait; it does not capture. */
int32_t cpu_stream_wait_mark(struct cpu_stream *stream, struct cpu_mark *mark, const char *call,
                             struct ds_accel_error *error);
/* ERR_STATE while it captures, and the capture is broken. */
int32_t cpu_capture_check(ds_accel_plugin_device_t *device, void *native, const char *call,
                          struct ds_accel_error *error);

int32_t cpu_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                         struct ds_accel_error *error);
void cpu_event_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t cpu_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                         struct ds_accel_error *error);
int32_t cpu_event_query(ds_accel_plugin_device_t *device, void *native,
                        struct ds_accel_error *error);
int32_t cpu_event_wait(ds_accel_plugin_device_t *device, void *native, uint64_t timeout_ns,
                       struct ds_accel_error *error);
int32_t cpu_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                             double *elapsed_ms_out, struct ds_accel_error *error);
void cpu_event_get(struct cpu_event *event);
void cpu_event_put(struct cpu_event *event);
/* The latest recording; the caller puts it. */
void cpu_event_recording(struct cpu_event *event, struct cpu_recording *recording_out);
void cpu_recording_put(struct cpu_recording *recording);
/* The recording becomes: reached now; this mark. */
void cpu_event_set_reached(struct cpu_event *event);
void cpu_event_set_mark(struct cpu_event *event, struct cpu_mark *mark);

/* ---- capture.c, graph.c --------------------------------------------------------------------- */

int32_t cpu_capture_begin(ds_accel_plugin_device_t *device, void *native_stream, uint32_t mode,
                          struct ds_accel_error *error);
int32_t cpu_capture_end(ds_accel_plugin_device_t *device, void *native_stream, void **native_out,
                        struct ds_accel_error *error);
int32_t cpu_capture_status(ds_accel_plugin_device_t *device, void *native_stream,
                           uint32_t *status_out, struct ds_accel_error *error);
/* DS_ACCEL_CAPTURING_*; a stream leaves a capture that another stream ended. */
uint32_t cpu_capture_state(struct cpu_stream *stream);
/* Keep the work. *node_out: its number. The stream captures. */
int32_t cpu_capture_append(struct cpu_stream *stream, const struct cpu_work *work, const char *call,
                           size_t *node_out, struct ds_accel_error *error);
/* Wait for a node: a stream that does not capture joins the capture. */
int32_t cpu_capture_wait(struct cpu_stream *stream, struct cpu_capture *capture, size_t node,
                         const char *call, struct ds_accel_error *error);
void cpu_capture_break(struct cpu_stream *stream, const char *why);
/* The stream is destroyed: a capture that it began is dropped, a capture that it joined is
   broken. */
void cpu_capture_leave(struct cpu_stream *stream);
void cpu_capture_get(struct cpu_capture *capture);
void cpu_capture_put(struct cpu_capture *capture); /* NULL is ignored */
void cpu_work_list_release(struct cpu_work_list *list);

struct cpu_program; /* graph->native */
/* Takes the list; NULL without memory. */
struct cpu_program *cpu_program_create(struct cpu_work_list *list);
void cpu_graph_destroy(ds_accel_plugin_device_t *device, void *native);
int32_t cpu_graph_instantiate(ds_accel_plugin_device_t *device, void *native, void **exec_out,
                              struct ds_accel_error *error);
void cpu_graph_exec_destroy(ds_accel_plugin_device_t *device, void *exec);
int32_t cpu_graph_launch(ds_accel_plugin_device_t *device, void *exec, void *native_stream,
                         struct ds_accel_error *error);
int32_t cpu_graph_exec_update(ds_accel_plugin_device_t *device, void *exec, void *native,
                              uint32_t *result_out, struct ds_accel_error *error);
int32_t cpu_graph_node_count(ds_accel_plugin_device_t *device, void *native, uint64_t *count_out,
                             struct ds_accel_error *error);
int32_t cpu_graph_dump(ds_accel_plugin_device_t *device, void *native, ds_accel_text_sink_t sink,
                       void *user_data, struct ds_accel_error *error);
void cpu_launch_run(struct cpu_launch *launch);
void cpu_launch_release(struct cpu_launch *launch);

#endif
