/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Declarations shared by the files of the cpu plugin; cpu.c explains how the files fit together. */
#ifndef DS_ACCEL_PLUGINS_CPU_CPU_H
#define DS_ACCEL_PLUGINS_CPU_CPU_H

#include "vendor.h"

#define CPU_ALIGN_BYTES 64u
#define CPU_MAX_ALIGN_BYTES (UINT64_C(1) << 40)
#define CPU_MAX_DEVICES 4096u
#define CPU_FLAGS \
    (DS_ACCEL_FLAG_GRAPHS | DS_ACCEL_FLAG_HOST_ACCESSIBLE | DS_ACCEL_FLAG_UNIFIED_ADDRESSES | \
     DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY | DS_ACCEL_FLAG_VIRTUAL_MEMORY)
/* Further flags of a backend without option async, where the calling thread does all work. */
#define CPU_FLAGS_SYNCHRONIZED \
    (DS_ACCEL_FLAG_SYNCHRONIZED | DS_ACCEL_FLAG_HOST_TIMERS | \
     DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES | DS_ACCEL_FLAG_HANDLES_BACKPRESSURE | \
     DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS)

struct cpu_runtime;

/* ---- machine.c: facts from the host and the files under machine_root ------------------------ */

/* A NUMA node with CPUs; kernel nodes with the same CPUs (numa=fake) are one node. */
struct cpu_node {
    uint32_t id; /* the kernel's number of the node, or of the first of several kernel nodes */
    uint32_t cpu_count;
    uint32_t first_cpu;
    char cpus[256];
};

struct cpu_machine {
    const struct ds_accel_host *host;
    const struct ds_accel_ext_topology *topology;
    struct cpu_node *nodes;     /* [node_count] */
    uint32_t node_count;        /* 0 if the host reports no node with CPUs */
    uint32_t *node_of_position; /* [position_count]: index into nodes, or CPU_NO_NODE */
    uint32_t position_count;
    uint32_t device_count;
    uint32_t local_size; /* value of LOCAL_SIZE; 0: device_count was set from the nodes */
};
#define CPU_NO_NODE UINT32_MAX

/* Properties of the first processor that /proc/cpuinfo lists. */
struct cpu_model {
    char name[128];
    uint32_t has_float16;
    uint32_t has_bfloat16;
};

/* Sums of the times of cpu_count CPUs since boot, in 1/sysconf(_SC_CLK_TCK) s. */
struct cpu_ticks {
    uint64_t busy;
    uint64_t total;
    uint32_t cpu_count;
};

/* The latest utilization sample of a device's CPUs (sensors.c). */
struct cpu_sample {
    struct cpu_ticks ticks;
    uint32_t busy_percent;
    uint64_t period_ns;
};

/* Size of the process's resident set. */
struct cpu_resident {
    uint64_t now_bytes;
    uint64_t peak_bytes; /* largest size since the process started */
};

/* Find the nodes and the device count. A LOCAL_SIZE that is not a positive number, or is too large,
   is ignored or limited without a message; cpu_machine_warn() logs it. */
int32_t cpu_machine_scan(const struct ds_accel_host *host, struct cpu_machine *machine_out,
                         struct ds_accel_error *error);
void cpu_machine_warn(const struct cpu_machine *machine);
void cpu_machine_release(struct cpu_machine *machine);
/* Return the node of a device, or NULL if the machine has no known node. */
const struct cpu_node *cpu_machine_node(const struct cpu_machine *machine, uint32_t device_index);
/* Read the current memory of a node; both values are 0 if the host does not know them. */
void cpu_node_memory(const struct cpu_machine *machine, const struct cpu_node *node,
                     uint64_t *total_bytes_out, uint64_t *available_bytes_out);
/* Open a file under machine_root for reading; on failure return NULL and set errno. */
FILE *cpu_file_open(const struct ds_accel_host *host, const char *path);
/* Read the first line of a file under machine_root, without the newline; return 0, or -1 if the
   file can't be opened or is empty. */
int cpu_file_line(const struct ds_accel_host *host, const char *path, char *line, int line_size);
/* Return the CPU model. The first call reads /proc/cpuinfo, because detection does not need the
   model. The pointer is valid as long as the runtime. */
const struct cpu_model *cpu_model_of(struct cpu_runtime *cpu);
uint32_t cpu_online_count(const struct ds_accel_host *host);
uint64_t cpu_l2_bytes(const struct ds_accel_host *host, uint32_t cpu);
uint32_t cpu_clock_khz(const struct ds_accel_host *host, uint32_t cpu);
int32_t cpu_resident_read(const struct ds_accel_host *host, struct cpu_resident *resident_out,
                          struct ds_accel_error *error);

/* ---- objects to which the frame's handles refer --------------------------------------------- */

/* Bit of the thread-specific value of current_key that marks a worker thread. The other bits are
   the index of the thread's current device + 1, or 0 if the thread never set a device. */
#define CPU_CURRENT_WORKER ((uintptr_t)1 << 31)

struct cpu_device;

/* instance->runtime */
struct cpu_runtime {
    const struct ds_accel_host *host;
    struct cpu_machine machine; /* not written after cpu_open() */
    uint32_t is_async;          /* option async: streams have workers; not written after open */
    uint32_t fork_count;        /* queue.c: forks before cpu_start(); not written after it */
    uint32_t is_started;        /* current_key and the locks exist; set by cpu_start() */
    pthread_key_t current_key;  /* each thread's current device, see CPU_CURRENT_WORKER */
    atomic_uint rank_warned;
    atomic_uint bind_warned;
    atomic_uint_fast64_t last_ticket; /* ticket of the latest queued work of all streams */

    /* Held around mlock() and munlock() of the caller's pages, so that the set of other
       registrations of a page does not change meanwhile. */
    pthread_mutex_t pin_lock;
    /* Guards the following members, and the members of struct cpu_device that are listed there. */
    pthread_mutex_t lock;
    struct cpu_sample *samples; /* [device_count] */
    struct cpu_model model;     /* valid and never written again if has_model is set */
    uint32_t has_model;
    uint32_t ccl_state;          /* CPU_CCL_* of cpu.c: whether oneCCL is installed */
    struct cpu_device **devices; /* [device_count]; NULL for a device that is not open */
};

struct cpu_reservation;
struct cpu_queue;   /* queue.c: the work of a stream, and the thread that does the work */
struct cpu_mark;    /* queue.c: a position in a queue for which callers can wait */
struct cpu_capture; /* capture.c: the work captured so far from capturing streams */
struct cpu_launch;  /* graph.c: one run of a graph */
struct cpu_event;

/* Kinds of stream work; the kind decides which members of struct cpu_work are used. */
#define CPU_WORK_COPY 1u
#define CPU_WORK_FILL 2u
#define CPU_WORK_TASK 3u
#define CPU_WORK_RECORD 4u
/* The following kinds occur only in queues, never in a capture. */
#define CPU_WORK_WAIT 5u
#define CPU_WORK_LAUNCH 6u
#define CPU_WORK_FREE 7u

struct cpu_work {
    uint32_t kind;
    uint32_t pattern_bytes;
    unsigned char pattern[4];
    uint32_t is_joined; /* captured work: the stream that began the capture waits for the node */
    void *destination;
    const void *source;
    uint64_t size_bytes;
    ds_accel_host_task_t task;
    void *user_data;
    struct cpu_event *event;        /* captured RECORD: a counted reference */
    struct cpu_mark *mark;          /* queued RECORD, and WAIT: a counted reference */
    struct cpu_launch *launch;      /* LAUNCH: owned by the work */
    struct cpu_device *device;      /* FREE: device of the memory at destination */
    void (*before)(void *argument); /* FREE: called with user_data before the memory is freed */
    size_t edge_start;              /* captured work: first index in the list's edges */
    size_t edge_count;              /* captured work: number of nodes on which it depends */
};

/* The work of a capture, in the order of the calls. An edge is the index of the item on which
   another item depends. */
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
    struct cpu_queue *queue;     /* a counted reference; NULL if the calling thread does the work */
    struct cpu_capture *capture; /* a counted reference; NULL if the stream is not capturing */
    size_t *tail; /* [tail_count]: nodes on which the stream's next captured work depends */
    size_t tail_count;
    size_t tail_capacity;
};

/* The latest recording of an event. One of recorded_ns, mark and capture is set, or none of them if
   the event was never recorded. */
struct cpu_recording {
    uint64_t recorded_ns;        /* CLOCK_MONOTONIC time of a recording by the calling thread */
    struct cpu_mark *mark;       /* recorded in a queue: a counted reference */
    struct cpu_capture *capture; /* recorded in a capture not yet launched: a counted reference */
    size_t node;                 /* index of the recording in that capture */
};

/* event->native */
struct cpu_event {
    atomic_uint references; /* one for the handle, and one for each captured recording */
    pthread_mutex_t lock;   /* guards latest */
    struct cpu_recording latest;
};

/* A resettable peak of the resident set; usage.c explains how it is computed. */
struct cpu_peak {
    uint32_t was_reset;
    uint64_t process_peak_at_reset_bytes;
    uint64_t sampled_bytes; /* largest resident set that a query has read since the reset */
};

/* device->state */
struct cpu_device {
    struct cpu_runtime *cpu;
    uint32_t index;
    uint32_t is_stopped;         /* all work is done, so that nothing uses the device's memory */
    const struct cpu_node *node; /* NULL if the machine has no known node */
    struct cpu_stream default_stream;

    /* The following members are guarded by cpu->lock. */
    struct cpu_reservation *reservations; /* vmem.c: reserved address ranges */
    struct cpu_queue *queues;             /* list; includes queues of destroyed streams */
    uint32_t queue_count;                 /* number of queues created so far */
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
/* Map new pages at a multiple of align_bytes, which is a power of two; on failure return NULL and
   set errno. */
char *cpu_pages_map(uint64_t size_bytes, uint64_t align_bytes, int protection,
                    uint64_t *mapped_bytes_out);
/* Free memory that cpu_alloc() returned and nothing uses any more. */
void cpu_give(const struct cpu_device *device, void *pointer, uint64_t size_bytes);
/* Wait for the queued work of all devices; ERR_STATE if the calling thread may not wait. */
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

/* Set the device's total memory, available memory and limit; process_bytes is set to 0. */
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

/* Prefer the device's node for new pages; do nothing unless cpu_place_matters(). */
void cpu_place_pages(const struct cpu_device *device, void *pages, uint64_t size_bytes);
/* Return non-zero if the machine has several nodes and is not a recorded machine. */
int cpu_place_matters(const struct cpu_machine *machine);
/* Bind threads created with the attributes to those CPUs of the device's node that the process may
   use; leave the attributes unchanged if there are none. */
void cpu_place_thread(const struct cpu_device *device, pthread_attr_t *attributes);

/* ---- queue.c: marks and queues; cpu->lock is locked before a queue's lock ------------------- */

#define CPU_NEVER UINT64_MAX

/* Convert an ABI timeout to a deadline in ns of CLOCK_MONOTONIC. */
uint64_t cpu_deadline_ns(uint64_t timeout_ns);
/* Start counting forks and return the current count, before the first worker is started; return 0
   or an errno. */
int cpu_fork_watch(uint32_t *fork_count_out);
/* With option async, fail with ERR_STATE in a forked child, because it has no worker threads. */
int32_t cpu_fork_check(const struct cpu_runtime *cpu, const char *call,
                       struct ds_accel_error *error);

struct cpu_mark *cpu_mark_create(struct cpu_queue *queue);
void cpu_mark_get(struct cpu_mark *mark);
void cpu_mark_put(struct cpu_mark *mark); /* NULL is ignored */
/* Return the time at which the mark was reached, or 0 if it was not reached yet. */
uint64_t cpu_mark_reached_ns(struct cpu_mark *mark);
int cpu_mark_is_of(const struct cpu_mark *mark, const struct cpu_queue *queue);
void cpu_mark_reach(struct cpu_mark *mark);
/* Wait until the mark is reached; return 0, or ETIMEDOUT. */
int cpu_mark_wait(struct cpu_mark *mark, uint64_t deadline_ns);

/* Create a queue with two references, for the stream and for the device; NULL if out of memory. */
struct cpu_queue *cpu_queue_create(struct cpu_device *device);
/* Add the queue to its device's list. The caller holds cpu->lock. */
void cpu_queue_enter(struct cpu_queue *queue);
struct cpu_item; /* an element of a queue */
/* Queue the work and take over the references in it; on failure the caller keeps them. */
int32_t cpu_queue_submit(struct cpu_queue *queue, const struct cpu_work *work, const char *call,
                         struct ds_accel_error *error);
/* Queue work in two steps: cpu_item_create() returns NULL and sets *error on failure,
   cpu_queue_push() can't fail. */
struct cpu_item *cpu_item_create(struct cpu_queue *queue, const char *call,
                                 struct ds_accel_error *error);
void cpu_queue_push(struct cpu_queue *queue, struct cpu_item *item, const struct cpu_work *work);
int cpu_queue_is_idle(struct cpu_queue *queue);
/* Wait for the work that is in the queue now; later work is not waited for. */
int32_t cpu_queue_wait(struct cpu_queue *queue, uint64_t timeout_ns, const char *call,
                       struct ds_accel_error *error);
/* Wait for the work that is queued now on one device or, if device is NULL, on all devices. */
int32_t cpu_queues_wait(struct cpu_runtime *cpu, const struct cpu_device *device,
                        uint64_t timeout_ns, const char *call, struct ds_accel_error *error);
/* Release the stream's reference when the stream is destroyed. The worker exits after the remaining
   work; this call does not wait for that work. In a forked child the call does nothing. */
void cpu_queue_close(struct cpu_queue *queue);
/* Join all workers of a device after they have done their work. */
void cpu_queues_end(struct cpu_device *device);
/* Return non-zero if the calling thread is a worker of this instance. */
int cpu_runs_tasks(ds_accel_plugin_instance_t *instance);
/* Fail with ERR_STATE on a worker thread, because it could wait for itself. */
int32_t cpu_check_not_worker(const struct cpu_runtime *cpu, const char *call,
                             struct ds_accel_error *error);

/* ---- work.c, stream.c, event.c -------------------------------------------------------------- */

/* Return non-zero if the calling thread does the stream's work before the call returns. */
static inline int cpu_runs_at_once(const struct cpu_stream *stream)
{
    return stream->queue == NULL && stream->capture == NULL;
}

/* Do the work now, queue it or, while the stream captures, add it to the capture. The call takes
   over the references in the work unless it fails. */
int32_t cpu_work_submit(struct cpu_stream *stream, const struct cpu_work *work, const char *call,
                        struct ds_accel_error *error);
void cpu_work_run(const struct cpu_work *work);
/* Release the mark and the launch to which queued work refers. */
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

/* Initialize a zeroed stream; return 0, or -1 if out of memory. */
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
/* Make the later work of a stream that is not capturing wait for the mark. */
int32_t cpu_stream_wait_mark(struct cpu_stream *stream, struct cpu_mark *mark, const char *call,
                             struct ds_accel_error *error);
/* Break the stream's capture and fail with ERR_STATE if the stream is capturing. */
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
/* Return a copy of the latest recording, which the caller releases with cpu_recording_put(). */
void cpu_event_recording(struct cpu_event *event, struct cpu_recording *recording_out);
void cpu_recording_put(struct cpu_recording *recording);
/* Replace the latest recording by one that is reached now. */
void cpu_event_set_reached(struct cpu_event *event);
/* Replace the latest recording by the mark, with a reference of its own. */
void cpu_event_set_mark(struct cpu_event *event, struct cpu_mark *mark);

/* ---- capture.c, graph.c --------------------------------------------------------------------- */

int32_t cpu_capture_begin(ds_accel_plugin_device_t *device, void *native_stream, uint32_t mode,
                          struct ds_accel_error *error);
int32_t cpu_capture_end(ds_accel_plugin_device_t *device, void *native_stream, void **native_out,
                        struct ds_accel_error *error);
int32_t cpu_capture_status(ds_accel_plugin_device_t *device, void *native_stream,
                           uint32_t *status_out, struct ds_accel_error *error);
/* Return DS_ACCEL_CAPTURING_*. A stream leaves its capture here if another stream ended it. */
uint32_t cpu_capture_state(struct cpu_stream *stream);
/* Add work to the capture of a capturing stream, and return its index in *node_out. */
int32_t cpu_capture_append(struct cpu_stream *stream, const struct cpu_work *work, const char *call,
                           size_t *node_out, struct ds_accel_error *error);
/* Make the stream's later work depend on a node. A stream that is not capturing joins the capture.
   For a stream whose own capture is another one or is broken, the call fails with ERR_STATE and
   breaks both captures. */
int32_t cpu_capture_wait(struct cpu_stream *stream, struct cpu_capture *capture, size_t node,
                         const char *call, struct ds_accel_error *error);
void cpu_capture_break(struct cpu_stream *stream, const char *why);
/* Detach a stream that is being destroyed from its capture. A capture that the stream began is
   dropped; work that it added to another stream's capture remains there. */
void cpu_capture_leave(struct cpu_stream *stream);
void cpu_capture_get(struct cpu_capture *capture);
void cpu_capture_put(struct cpu_capture *capture); /* NULL is ignored */
void cpu_work_list_release(struct cpu_work_list *list);

struct cpu_program; /* graph->native */
/* Create a program and take over the list; NULL if out of memory, and the list is unchanged. */
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
