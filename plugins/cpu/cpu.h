/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the files of the cpu plugin share; cpu.c explains how they fit together. */
#ifndef DS_ACCEL_PLUGINS_CPU_CPU_H
#define DS_ACCEL_PLUGINS_CPU_CPU_H

#include "plugin_util.h"

#include <pthread.h>
#include <stdatomic.h>

#define CPU_ALIGN_BYTES 64u
#define CPU_MAX_DEVICES 4096u
#define CPU_FLAGS \
    (DS_ACCEL_FLAG_GRAPHS | DS_ACCEL_FLAG_HOST_ACCESSIBLE | DS_ACCEL_FLAG_UNIFIED_ADDRESSES | \
     DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY | DS_ACCEL_FLAG_VIRTUAL_MEMORY)
/* Valid only if the calling thread does all work itself. */
#define CPU_FLAGS_SYNCHRONIZED \
    (DS_ACCEL_FLAG_SYNCHRONIZED | DS_ACCEL_FLAG_HOST_TIMERS | \
     DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES | DS_ACCEL_FLAG_HANDLES_BACKPRESSURE | \
     DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS)

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

__attribute__((format(printf, 3, 4))) void cpu_log(const struct ds_accel_host *host, uint32_t level,
                                                   const char *format, ...);
/* is_quiet: log no warnings, since init reads the same again. */
int32_t cpu_machine_scan(const struct ds_accel_host *host, int is_quiet,
                         struct cpu_machine *machine_out, struct ds_accel_error *error);
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
/* Read at the first call: detection does not need it. Valid as long as the instance. */
const struct cpu_model *cpu_model_of(ds_accel_plugin_instance_t *instance);
uint32_t cpu_online_count(const struct ds_accel_host *host);
uint64_t cpu_l2_bytes(const struct ds_accel_host *host, uint32_t cpu);
uint32_t cpu_clock_khz(const struct ds_accel_host *host, uint32_t cpu);
int32_t cpu_resident_read(const struct ds_accel_host *host, struct cpu_resident *resident_out,
                          struct ds_accel_error *error);

/* ---- the objects behind the handles --------------------------------------------------------- */

/* One allocation or registration. */
#define CPU_SOURCE_HEAP 1u
#define CPU_SOURCE_PAGES 2u
#define CPU_SOURCE_CALLER 3u
#define CPU_SOURCE_MAPPING 4u /* vmem_map */

struct cpu_block {
    char *base;
    uint64_t size_bytes;   /* the requested size */
    uint64_t mapped_bytes; /* CPU_SOURCE_PAGES: whole pages */
    uint64_t id;
    uint32_t kind; /* DS_ACCEL_POINTER_* */
    uint32_t source;
    ds_accel_plugin_device_t *device;
    ds_accel_plugin_vmem_t *vmem; /* CPU_SOURCE_MAPPING: the mapped memory; a reference */
};

/* Value of current_key: device index + 1, NULL if never set; in workers also this bit. */
#define CPU_CURRENT_WORKER ((uintptr_t)1 << 31)

struct ds_accel_plugin_instance {
    const struct ds_accel_host *host;
    struct cpu_machine machine; /* never written after init */
    uint32_t is_async;          /* option async: streams have workers; likewise */
    uint32_t fork_count;        /* queue.c: of the process that made the instance; likewise */
    pthread_key_t current_key;  /* per thread */
    atomic_uint rank_warned;
    atomic_uint bind_warned;
    atomic_uint_fast64_t last_ticket; /* of the queued work of all streams, in order */

    /* Held around mlock() and munlock() of the caller's pages, where the set of other registrations
       of a page must not change. Taken before lock. */
    pthread_mutex_t pin_lock;
    /* Guards everything below and the counters of every device. */
    pthread_mutex_t lock;
    struct cpu_sample *samples; /* [device_count] */
    struct cpu_model model;     /* with has_model; then never written again */
    uint32_t has_model;
    uint32_t ccl_state;                      /* cpu.c: is oneCCL there? */
    struct ds_accel_plugin_device **devices; /* [device_count], NULL while not open */
    struct cpu_block **blocks;               /* live, by address */
    size_t block_count;
    size_t block_capacity;
};

struct cpu_reservation;
struct cpu_queue;   /* queue.c: the work of a stream, and the thread that does it */
struct cpu_mark;    /* queue.c: a position in a queue that callers can wait for */
struct cpu_capture; /* capture.c: work of capturing streams so far */
struct cpu_launch;  /* graph.c: one run of a graph */

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
    ds_accel_plugin_event_t *event; /* captured RECORD; a reference */
    struct cpu_mark *mark;          /* queued RECORD, WAIT; a reference */
    struct cpu_launch *launch;      /* LAUNCH; taken */
    struct cpu_block *block;        /* FREE; owned, out of the register */
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

struct ds_accel_plugin_stream {
    ds_accel_plugin_device_t *device;
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

struct ds_accel_plugin_event {
    ds_accel_plugin_instance_t *instance;
    uint32_t flags;
    atomic_uint references; /* the caller's, and one per captured record of it */
    pthread_mutex_t lock;   /* guards latest */
    struct cpu_recording latest;
};

struct cpu_peak {
    uint32_t was_reset;
    uint64_t process_peak_at_reset_bytes;
    uint64_t sampled_bytes; /* largest resident set seen since */
};

struct ds_accel_plugin_device {
    ds_accel_plugin_instance_t *instance;
    uint32_t index;
    const struct cpu_node *node; /* NULL if no node is known */
    ds_accel_plugin_stream_t default_stream;

    /* guarded by instance->lock */
    uint32_t open_count;
    uint64_t live_bytes;
    uint64_t limit_bytes;                 /* 0: none */
    struct cpu_reservation *reservations; /* vmem.c: addresses without memory */
    struct cpu_queue *queues;             /* with workers; their streams may be destroyed already */
    uint32_t queue_count;                 /* created so far */
    uint64_t alloc_count;
    uint64_t free_count;
    uint64_t out_of_memory_count;
    struct cpu_peak allocated_peak;
    struct cpu_peak reserved_peak;
};

static inline uint64_t cpu_flags(const ds_accel_plugin_instance_t *instance)
{
    return instance->is_async ? CPU_FLAGS : CPU_FLAGS | CPU_FLAGS_SYNCHRONIZED;
}

/* Reject a NULL argument; the text is like "stream_query: stream". */
static inline int32_t cpu_null(struct ds_accel_error *error, const char *what)
{
    return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s is NULL", what);
}

/* ---- device.c ------------------------------------------------------------------------------- */

void cpu_device_fill(struct ds_accel_plugin *table);
void cpu_device_destroy(ds_accel_plugin_device_t *device);

/* ---- block.c, memory.c, vmem.c, usage.c ----------------------------------------------------- */

uint64_t cpu_page_bytes(void);
/* Fresh pages at a multiple of align_bytes, a power of two; NULL and errno. */
char *cpu_pages_map(uint64_t size_bytes, uint64_t align_bytes, int protection,
                    uint64_t *mapped_bytes_out);
struct cpu_block *cpu_block_create(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                   uint32_t kind, uint32_t source);
/* The block that contains an address, or NULL. */
struct cpu_block *cpu_block_find(const ds_accel_plugin_instance_t *instance, const void *address);
/* The block with the highest address that shares a byte with a range of size_bytes > 0. */
struct cpu_block *cpu_block_overlap(const ds_accel_plugin_instance_t *instance, const void *address,
                                    uint64_t size_bytes);
int cpu_block_insert(ds_accel_plugin_instance_t *instance, struct cpu_block *block);
void cpu_block_remove(ds_accel_plugin_instance_t *instance, const struct cpu_block *block);
/* Takes instance->lock, and the block: a block that cannot be inserted is released. */
int32_t cpu_block_enter(struct cpu_block *block, const char *call, struct ds_accel_error *error);
int32_t cpu_block_take(ds_accel_plugin_device_t *device, const void *pointer, uint32_t kind,
                       int is_registered, const char *call, struct cpu_block **block_out,
                       struct ds_accel_error *error);
/* Release a block that is not in the register. Needs no lock, except for CPU_SOURCE_CALLER, which
   needs both. */
void cpu_block_release(struct cpu_block *block);
/* The same for device memory that counts against the limit; takes instance->lock. */
void cpu_block_free(struct cpu_block *block);
/* Release all remaining blocks of the device; takes the locks. */
void cpu_blocks_release(ds_accel_plugin_device_t *device);

void cpu_memory_fill(struct ds_accel_plugin *table);
/* Count device memory against the machine's memory and the limit; undo that; and count the call.
   All take instance->lock. */
int32_t cpu_memory_charge(ds_accel_plugin_device_t *device, uint64_t size_bytes, const char *call,
                          struct ds_accel_error *error);
void cpu_memory_uncharge(ds_accel_plugin_device_t *device, uint64_t size_bytes);
void cpu_memory_count(ds_accel_plugin_device_t *device, int32_t status);
void cpu_vmem_fill(struct ds_accel_plugin *table);
/* Unmap and release all remaining mappings and reservations of the device; takes instance->lock. */
void cpu_vmem_release(ds_accel_plugin_device_t *device);
void cpu_usage_fill(struct ds_accel_plugin *table);
void cpu_telemetry_fill(struct ds_accel_plugin *table);
/* Total, available and limit of the device; process_bytes stays 0. */
int32_t cpu_memory_size(const ds_accel_plugin_device_t *device,
                        struct ds_accel_memory_info *info_out, struct ds_accel_error *error);

/* ---- place.c: the NUMA node of memory and workers ------------------------------------------- */

/* Prefer the device's node for fresh pages; does nothing if there is only one node. */
void cpu_place_pages(const ds_accel_plugin_device_t *device, void *pages, uint64_t size_bytes);
/* Non-zero if the machine has nodes to choose from, and is not a recorded one. */
int cpu_place_matters(const struct cpu_machine *machine);
/* Let threads created with the attributes run on the device's node, as far as the process may use
   its CPUs. */
void cpu_place_thread(const ds_accel_plugin_device_t *device, pthread_attr_t *attributes);

/* ---- queue.c: marks and queues; locks: instance->lock before a queue's ---------------------- */

#define CPU_NEVER UINT64_MAX

/* The deadline of an ABI timeout, CLOCK_MONOTONIC. */
uint64_t cpu_deadline_ns(uint64_t timeout_ns);
/* Called once before the first worker; 0, or an errno. */
int cpu_fork_watch(uint32_t *fork_count_out);
/* Fail in a forked child, which has no workers to wait for or queue work to. */
int32_t cpu_fork_check(const ds_accel_plugin_instance_t *instance, const char *call,
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
struct cpu_queue *cpu_queue_create(ds_accel_plugin_device_t *device);
/* Insert into the list of its device; instance->lock is held. */
void cpu_queue_enter(struct cpu_queue *queue);
struct cpu_item; /* room for work in a queue */
/* Queue the work, and take the objects it refers to; on failure nothing is queued or taken. */
int32_t cpu_queue_submit(struct cpu_queue *queue, const struct cpu_work *work, const char *call,
                         struct ds_accel_error *error);
/* The same in two steps, of which the second cannot fail. NULL and *error. */
struct cpu_item *cpu_item_create(struct cpu_queue *queue, const char *call,
                                 struct ds_accel_error *error);
void cpu_item_discard(struct cpu_item *item); /* NULL is ignored */
void cpu_queue_push(struct cpu_queue *queue, struct cpu_item *item, const struct cpu_work *work);
int cpu_queue_is_idle(struct cpu_queue *queue);
/* Wait for the work that the queue holds now. */
int32_t cpu_queue_wait(struct cpu_queue *queue, uint64_t timeout_ns, const char *call,
                       struct ds_accel_error *error);
/* Wait for the work that the streams of a device hold now; NULL: the streams of all devices of the
   instance. */
int32_t cpu_queues_wait(ds_accel_plugin_instance_t *instance,
                        const ds_accel_plugin_device_t *device, uint64_t timeout_ns,
                        const char *call, struct ds_accel_error *error);
/* The stream is destroyed: its worker ends after the remaining work. Puts the reference. */
void cpu_queue_close(struct cpu_queue *queue);
/* End all workers of a device, after their work. */
void cpu_queues_end(ds_accel_plugin_device_t *device);
/* ERR_STATE on a worker thread, which would wait for itself. */
int32_t cpu_check_not_worker(const ds_accel_plugin_instance_t *instance, const char *call,
                             struct ds_accel_error *error);

/* ---- work.c, stream.c, event.c -------------------------------------------------------------- */

void cpu_work_fill(struct ds_accel_plugin *table);
/* Do the work now, queue it or, while the stream captures, keep it. The objects it refers to are
   taken, unless the call fails. */
int32_t cpu_work_submit(ds_accel_plugin_stream_t *stream, const struct cpu_work *work,
                        const char *call, struct ds_accel_error *error);
void cpu_work_run(const struct cpu_work *work);
/* Put the objects that queued work refers to. */
void cpu_work_release(struct cpu_work *work);

void cpu_stream_fill(struct ds_accel_plugin *table);
/* Make the stream's later work wait for the event; the stream does not capture. */
int32_t cpu_stream_wait_mark(ds_accel_plugin_stream_t *stream, struct cpu_mark *mark,
                             const char *call, struct ds_accel_error *error);
int32_t cpu_stream_wait_events(ds_accel_plugin_stream_t *stream,
                               ds_accel_plugin_event_t *const *waits, uint32_t wait_count,
                               const char *call, struct ds_accel_error *error);
/* ERR_INVALID for NULL, ERR_STATE while it captures. */
int32_t cpu_stream_check(ds_accel_plugin_stream_t *stream, const char *call,
                         struct ds_accel_error *error);

void cpu_event_fill(struct ds_accel_plugin *table);
void cpu_event_get(ds_accel_plugin_event_t *event);
void cpu_event_put(ds_accel_plugin_event_t *event);
/* The latest recording; the caller puts it. */
void cpu_event_recording(ds_accel_plugin_event_t *event, struct cpu_recording *recording_out);
void cpu_recording_put(struct cpu_recording *recording);
/* The recording becomes: reached now; this mark. */
void cpu_event_set_reached(ds_accel_plugin_event_t *event);
void cpu_event_set_mark(ds_accel_plugin_event_t *event, struct cpu_mark *mark);

/* ---- capture.c, graph.c --------------------------------------------------------------------- */

void cpu_capture_fill(struct ds_accel_plugin *table);
/* DS_ACCEL_CAPTURING_*; a stream leaves a capture that another stream ended. */
uint32_t cpu_capture_state(ds_accel_plugin_stream_t *stream);
/* Keep the work. *node_out: its number. The stream captures. */
int32_t cpu_capture_append(ds_accel_plugin_stream_t *stream, const struct cpu_work *work,
                           const char *call, size_t *node_out, struct ds_accel_error *error);
/* Wait for a node: a stream that does not capture joins the capture. */
int32_t cpu_capture_wait(ds_accel_plugin_stream_t *stream, struct cpu_capture *capture, size_t node,
                         const char *call, struct ds_accel_error *error);
void cpu_capture_break(ds_accel_plugin_stream_t *stream, const char *why);
/* The stream is destroyed: a capture that it began is dropped, a capture that it joined is
   broken. */
void cpu_capture_leave(ds_accel_plugin_stream_t *stream);
void cpu_capture_get(struct cpu_capture *capture);
void cpu_capture_put(struct cpu_capture *capture); /* NULL is ignored */
void cpu_work_list_release(struct cpu_work_list *list);

void cpu_graph_fill(struct ds_accel_plugin *table);
/* Takes the list; NULL without memory. */
ds_accel_plugin_graph_t *cpu_graph_create(struct cpu_work_list *list);
void cpu_launch_run(struct cpu_launch *launch);
void cpu_launch_release(struct cpu_launch *launch);

#endif
