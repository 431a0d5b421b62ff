/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the files of the cpu plugin share; cpu.c explains how they fit together. */
#ifndef DS_ACCEL_CPU_H
#define DS_ACCEL_CPU_H

#include "plugin_util.h"

#include <pthread.h>
#include <stdatomic.h>

#define CPU_ALIGN_BYTES 64u
#define CPU_MAX_DEVICES 4096u
#define CPU_FLAGS \
    (DS_ACCEL_FLAG_SYNCHRONIZED | DS_ACCEL_FLAG_HOST_TIMERS | \
     DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES | DS_ACCEL_FLAG_HANDLES_BACKPRESSURE | \
     DS_ACCEL_FLAG_GRAPHS | DS_ACCEL_FLAG_HOST_ACCESSIBLE | DS_ACCEL_FLAG_UNIFIED_ADDRESSES | \
     DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS)

/* ---- machine.c: what the host and the files under machine_root say -------------------------- */

/* A NUMA node with CPUs; one for all kernel nodes in a row that list the same CPUs (fake NUMA). */
struct cpu_node {
    uint32_t id; /* the kernel's number, of the first where several are one */
    uint32_t cpu_count;
    uint32_t first_cpu;
    char cpus[256];
};

struct cpu_machine {
    const struct ds_accel_host *host;
    const struct ds_accel_ext_topology *topology;
    struct cpu_node *nodes; /* nodes[node_count]; none where the host knows no node with CPUs */
    uint32_t node_count;
    uint32_t *node_of_position; /* [position_count]: index into nodes, or CPU_NO_NODE */
    uint32_t position_count;
    uint32_t device_count;
    uint32_t local_size; /* the LOCAL_SIZE that decided device_count; 0: the nodes did */
};
#define CPU_NO_NODE UINT32_MAX

/* The first processor of /proc/cpuinfo. */
struct cpu_model {
    char name[128];
    uint32_t has_float16;
    uint32_t has_bfloat16;
};

struct cpu_resident {
    uint64_t now_bytes;
    uint64_t peak_bytes; /* since the process began */
};

__attribute__((format(printf, 3, 4))) void cpu_log(const struct ds_accel_host *host, uint32_t level,
                                                   const char *format, ...);
/* is_quiet: warn of nothing, since init will read the same again. */
int32_t cpu_machine_scan(const struct ds_accel_host *host, int is_quiet,
                         struct cpu_machine *machine_out, struct ds_accel_error *error);
void cpu_machine_release(struct cpu_machine *machine);
/* The node of a device, or NULL where no node is known. */
const struct cpu_node *cpu_machine_node(const struct cpu_machine *machine, uint32_t device_index);
/* Memory of a node now; both 0 where the host does not say. */
void cpu_node_memory(const struct cpu_machine *machine, const struct cpu_node *node,
                     uint64_t *total_bytes_out, uint64_t *available_bytes_out);
void cpu_model_read(const struct ds_accel_host *host, struct cpu_model *model_out);
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

struct cpu_block {
    char *base;
    uint64_t size_bytes;   /* as asked for */
    uint64_t mapped_bytes; /* CPU_SOURCE_PAGES: whole pages */
    uint64_t id;
    uint32_t kind; /* DS_ACCEL_POINTER_* */
    uint32_t source;
    ds_accel_plugin_device_t *device;
};

struct ds_accel_plugin_instance {
    const struct ds_accel_host *host;
    struct cpu_machine machine; /* this and model are never written after init */
    struct cpu_model model;
    pthread_key_t current_key; /* per thread: device index + 1, NULL while never set */
    atomic_uint rank_warned;
    atomic_uint bind_warned;
    atomic_uint_fast64_t next_capture_id;

    /* Held around mlock() and munlock() of the caller's pages, where the answer to "who else needs
     * this page?" has to stay true. Taken before lock. */
    pthread_mutex_t pin_lock;
    /* Guards everything below and the counters of every device. */
    pthread_mutex_t lock;
    uint32_t ccl_state;                      /* cpu.c: is oneCCL there? */
    struct ds_accel_plugin_device **devices; /* [device_count], NULL while not open */
    struct cpu_block **blocks;               /* live, by address */
    size_t block_count;
    size_t block_capacity;
};

/* Work that a capture keeps for later; which members count depends on the kind. */
#define CPU_WORK_COPY 1u
#define CPU_WORK_FILL 2u
#define CPU_WORK_TASK 3u
#define CPU_WORK_RECORD 4u

struct cpu_work {
    uint32_t kind;
    uint32_t pattern_bytes;
    unsigned char pattern[4];
    void *destination;
    const void *source;
    uint64_t size_bytes;
    ds_accel_host_task_t task;
    void *user_data;
    ds_accel_plugin_event_t *event;
};

struct cpu_work_list {
    struct cpu_work *items;
    size_t count;
    size_t capacity;
};

struct ds_accel_plugin_stream {
    ds_accel_plugin_device_t *device;
    uint32_t capturing; /* DS_ACCEL_CAPTURING_* */
    uint64_t capture_id;
    struct cpu_work_list captured;
};

struct ds_accel_plugin_event {
    uint32_t flags;
    atomic_uint references;           /* the caller's, and one per captured record of it */
    atomic_uint_fast64_t recorded_ns; /* CLOCK_MONOTONIC; 0: never recorded */
    atomic_uint_fast64_t capture_id;  /* not 0: its latest mark lies in that capture */
};

struct cpu_peak {
    uint32_t was_reset;
    uint64_t process_peak_at_reset_bytes;
    uint64_t sampled_bytes; /* largest resident set seen since */
};

struct ds_accel_plugin_device {
    ds_accel_plugin_instance_t *instance;
    uint32_t index;
    const struct cpu_node *node; /* NULL where no node is known */
    ds_accel_plugin_stream_t default_stream;

    /* guarded by instance->lock */
    uint32_t open_count;
    uint64_t live_bytes;
    uint64_t limit_bytes; /* 0: none */
    uint64_t alloc_count;
    uint64_t free_count;
    uint64_t out_of_memory_count;
    struct cpu_peak allocated_peak;
    struct cpu_peak reserved_peak;
};

/* Refuse a NULL argument; what is "stream_query: stream". */
static inline int32_t cpu_null(struct ds_accel_error *error, const char *what)
{
    return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s is NULL", what);
}

/* ---- device.c ------------------------------------------------------------------------------- */

void cpu_device_fill(struct ds_accel_plugin *table);
void cpu_device_destroy(ds_accel_plugin_device_t *device);

/* ---- block.c, memory.c, usage.c ------------------------------------------------------------- */

uint64_t cpu_page_bytes(void);
/* Fresh pages at a multiple of align_bytes, a power of two; NULL and errno. */
char *cpu_pages_map(uint64_t size_bytes, uint64_t align_bytes, uint64_t *mapped_bytes_out);
struct cpu_block *cpu_block_create(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                   uint32_t kind, uint32_t source);
/* The block that holds an address, NULL if none does. */
struct cpu_block *cpu_block_find(const ds_accel_plugin_instance_t *instance, const void *address);
/* The block with the highest address that shares a byte with a range of size_bytes > 0. */
struct cpu_block *cpu_block_overlap(const ds_accel_plugin_instance_t *instance, const void *address,
                                    uint64_t size_bytes);
int cpu_block_insert(ds_accel_plugin_instance_t *instance, struct cpu_block *block);
void cpu_block_remove(ds_accel_plugin_instance_t *instance, const struct cpu_block *block);
/* Takes instance->lock, and the block: one that can't be entered is released. */
int32_t cpu_block_enter(struct cpu_block *block, const char *call, struct ds_accel_error *error);
int32_t cpu_block_take(ds_accel_plugin_device_t *device, const void *pointer, uint32_t kind,
                       int is_registered, const char *call, struct cpu_block **block_out,
                       struct ds_accel_error *error);
/* Give back a block that left the register, or never entered it. Needs no lock, but for
 * CPU_SOURCE_CALLER both. */
void cpu_block_release(struct cpu_block *block);
/* Release all that the device still holds; takes the locks. */
void cpu_blocks_release(ds_accel_plugin_device_t *device);

void cpu_memory_fill(struct ds_accel_plugin *table);
void cpu_usage_fill(struct ds_accel_plugin *table);
/* Total, available and limit of the device; process_bytes stays 0. */
int32_t cpu_memory_size(const ds_accel_plugin_device_t *device,
                        struct ds_accel_memory_info *info_out, struct ds_accel_error *error);

/* ---- work.c, stream.c, graph.c -------------------------------------------------------------- */

void cpu_work_fill(struct ds_accel_plugin *table);
/* Do it now or, while the stream captures, keep it. */
int32_t cpu_work_submit(ds_accel_plugin_stream_t *stream, const struct cpu_work *work,
                        struct ds_accel_error *error);
void cpu_work_list_run(const struct cpu_work_list *list);
int cpu_work_list_copy(const struct cpu_work_list *list, struct cpu_work_list *copy_out);
void cpu_work_list_release(struct cpu_work_list *list);

void cpu_stream_fill(struct ds_accel_plugin *table);
void cpu_event_mark(ds_accel_plugin_event_t *event);
void cpu_event_get(ds_accel_plugin_event_t *event);
void cpu_event_put(ds_accel_plugin_event_t *event);
void cpu_graph_fill(struct ds_accel_plugin *table);

#endif
