/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the files of the mock plugin share; mock.c describes the files. */
#ifndef DS_ACCEL_PLUGINS_MOCK_MOCK_H
#define DS_ACCEL_PLUGINS_MOCK_MOCK_H

#include "plugin_util.h"

#include <pthread.h>

#define MOCK_MAX_DEVICES 256u
#define MOCK_MAX_RULES 32u
#define MOCK_ALIGN_BYTES 256u
#define MOCK_GRANULARITY_BYTES (UINT64_C(2) << 20)
#define MOCK_LEAST_PRIORITY 0
#define MOCK_GREATEST_PRIORITY (-2)
#define MOCK_FLAGS \
    (DS_ACCEL_FLAG_GRAPHS | DS_ACCEL_FLAG_UNIFIED_ADDRESSES | \
     DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY | DS_ACCEL_FLAG_VIRTUAL_MEMORY | \
     DS_ACCEL_FLAG_RANGE_DOMAINS | DS_ACCEL_FLAG_HOST_ACCESSIBLE)
#define MOCK_FLAGS_IPC (DS_ACCEL_FLAG_MEMORY_IPC | DS_ACCEL_FLAG_EVENT_IPC | DS_ACCEL_FLAG_DMABUF)
#define MOCK_HANDLE_BYTES 64u /* of memory and of events */

/* ---- the simulated vendor's objects, which the handles wrap ---------------------------------- */

/* Work that was submitted to a queue; which members count depends on the kind. */
#define MOCK_WORK_COPY 1u
#define MOCK_WORK_FILL 2u
#define MOCK_WORK_TASK 3u
#define MOCK_WORK_RECORD 4u

struct mock_work {
    uint32_t kind;
    uint32_t copy_kind; /* DS_ACCEL_COPY_* */
    uint32_t pattern_bytes;
    unsigned char pattern[4];
    const ds_accel_plugin_device_t *destination_device; /* NULL: any */
    const ds_accel_plugin_device_t *source_device;
    void *destination;
    const void *source;
    uint64_t size_bytes;
    ds_accel_host_task_t task;
    void *user_data;
    struct mock_mark *mark;
};

struct mock_work_list {
    struct mock_work *items;
    size_t count;
    size_t capacity;
};

/* The number of preceding works in each queue of a capture. */
struct mock_known {
    uint64_t *works;
    size_t count;
};

/* The vendor's stream. */
struct mock_queue {
    uint64_t done_ns;             /* when everything queued so far is complete, CLOCK_MONOTONIC */
    uint32_t is_default;          /* the default queue rejects captures */
    struct mock_capture *capture; /* the queue's capture; NULL: none. Call mock_capture_state()
                                   * first */
    size_t place;                 /* in the capture's list of queues */
    struct mock_known known;
};

/* The vendor's event. */
struct mock_mark {
    uint32_t references; /* one of the event, and one for each captured record */
    uint32_t flags;
    uint32_t recorded;
    uint64_t done_ns;
    uint64_t capture_id;          /* not 0: the latest record was captured and has not run since */
    struct mock_capture *capture; /* likewise */
    struct mock_known known;
    struct mock_shared *shared; /* share.c: where other processes see done_ns; NULL: nowhere */
    int fd;                     /* the file that holds shared */
};

#define MOCK_VISIBLE_VARIABLE "MOCK_VISIBLE_DEVICES"

/* ---- options.c, script.c: the configured behaviour ------------------------------------------ */

/* One part of the option fail: "mem_alloc:3+=no_memory". */
struct mock_rule {
    const char *slot;
    uint64_t first; /* the first call that fails, from 1 */
    uint64_t last;  /* the last one */
    uint64_t calls; /* so far */
    int32_t status;
};

struct mock_script {
    struct mock_rule rules[MOCK_MAX_RULES];
    uint32_t count;
};

struct mock_options {
    uint64_t device_count;
    uint64_t memory_bytes;
    uint64_t alloc_latency_ns;
    uint64_t copy_latency_ns;
    uint64_t launch_latency_ns;
    uint64_t sync_latency_ns;
    uint64_t probe_latency_ms;
    uint64_t copy_bytes_per_s; /* 0: copies take no time beyond the latency */
    uint64_t pinned_limit_bytes;
    uint64_t max_allocation_bytes;
    uint32_t visible[MOCK_MAX_DEVICES]; /* [device_count]: the vendor's number of each device */
    uint32_t is_hidden;                 /* devices exist, but the variable hides all of them */
    uint32_t bf16;
    uint32_t fp16;
    uint32_t ipc;        /* device memory is in files that can be shared */
    uint32_t state;      /* DS_ACCEL_PROBE_* */
    uint32_t reason;     /* DS_ACCEL_REASON_*; NONE when AVAILABLE */
    int32_t init_status; /* what init returns when not AVAILABLE */
    char detail[256];
    char variant[32];
    char device_name[128];
    struct mock_script script;
};

/* ERR_INVALID, with option, value and expected values, for the first malformed option. */
int32_t mock_options_read(const struct ds_accel_host *host, struct mock_options *options_out,
                          struct ds_accel_error *error);
int32_t mock_script_parse(const char *text, struct mock_script *script_out,
                          struct ds_accel_error *error);
/* Counts a call of the slot: returns the scripted status, or DS_ACCEL_OK. */
int32_t mock_script_count(struct mock_script *script, const char *slot);
/* Reports a status as a vendor's runtime would: with its own number and text. */
int32_t mock_vendor_fail(struct ds_accel_error *error, int32_t status, const char *slot,
                         const char *cause);

/* ---- the objects behind the handles --------------------------------------------------------- */

struct mock_block;       /* block.c: one allocation, registration or mapping */
struct mock_reservation; /* vmem.c: addresses without memory */
struct mock_export;      /* share.c: a handle that other processes may open */
struct mock_range;       /* ranges.c: open profiler ranges of a thread */

/* One per index, made by init; open_count counts the openings. */
struct ds_accel_plugin_device {
    ds_accel_plugin_instance_t *instance;
    uint32_t index;

    /* guarded by instance->lock */
    uint32_t open_count;
    uint32_t lost;
    uint64_t done_ns; /* when all work of all its queues is complete */
    uint64_t limit_bytes;
    uint64_t allocated_bytes;
    uint64_t allocated_peak_bytes;
    uint64_t reserved_peak_bytes;
    uint64_t alloc_count;
    uint64_t free_count;
    uint64_t out_of_memory_count;
    struct mock_reservation *reservations;
    struct mock_export *exports;
    ds_accel_plugin_stream_t *default_stream;
};

struct ds_accel_plugin_instance {
    const struct ds_accel_host *host;
    const struct ds_accel_ext_trace *trace; /* NULL if the host has none */
    pthread_key_t current_key;              /* per thread: index + 1 of the current device */
    struct ds_accel_plugin_device *devices; /* [options.device_count] */

    /*
     * Guards everything below, the devices, queues, marks and graphs of the instance. Never held
     * while data is moved, a host task runs or a thread waits.
     */
    pthread_mutex_t lock;
    struct mock_options options; /* written only by init, except for the script's counters */
    struct mock_block *blocks;   /* sorted by address, without overlap */
    size_t block_count;
    size_t block_capacity;
    uint64_t pinned_bytes;
    uint64_t next_capture_id;
    struct mock_range *ranges;
};

/*
 * A handle and the object it wraps; the handle owns the object unless native_wrap made the handle.
 */
struct ds_accel_plugin_stream {
    ds_accel_plugin_device_t *device;
    struct mock_queue *queue;
    struct mock_queue own;
};

struct ds_accel_plugin_event {
    ds_accel_plugin_device_t *device;
    struct mock_mark *mark;
    uint32_t is_wrapped;
};

/* ---- call.c: what every slot does first ----------------------------------------------------- */

/* Rejects a NULL argument. */
static inline int32_t mock_null(struct ds_accel_error *error, const char *slot, const char *what)
{
    return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: %s is NULL", slot, what);
}

/*
 * Checks that the handle is valid, its device is open and not lost, and the script lets the call
 * pass.
 */
int32_t mock_enter(ds_accel_plugin_instance_t *instance, const char *slot,
                   struct ds_accel_error *error);
int32_t mock_enter_index(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                         const char *slot, struct ds_accel_error *error);
int32_t mock_enter_device(ds_accel_plugin_device_t *device, const char *slot,
                          struct ds_accel_error *error);
int32_t mock_enter_stream(ds_accel_plugin_stream_t *stream, const char *slot,
                          struct ds_accel_error *error);
int32_t mock_enter_event(ds_accel_plugin_event_t *event, const char *slot,
                         struct ds_accel_error *error);
/* Rejects a second device that is NULL or of another instance. */
int32_t mock_check_peer(const ds_accel_plugin_device_t *device,
                        const ds_accel_plugin_device_t *peer, const char *slot,
                        struct ds_accel_error *error);
__attribute__((format(printf, 3, 4))) void mock_log(const struct ds_accel_host *host,
                                                    uint32_t level, const char *format, ...);
/* Both take a time of CLOCK_MONOTONIC. what names the span in a trace, static storage. */
void mock_sleep_until(uint64_t when_ns);
void mock_wait_until(const ds_accel_plugin_instance_t *instance, const char *what,
                     uint64_t when_ns);
/* Waits until done_ns, plus the scripted latency of waiting; ERR_TIMEOUT. */
int32_t mock_wait_for(const ds_accel_plugin_instance_t *instance, const char *slot,
                      uint64_t done_ns, uint64_t timeout_ns, struct ds_accel_error *error);
uint64_t mock_max_u64(uint64_t a, uint64_t b);

/* ---- block.c: the register of addresses; instance->lock is held ----------------------------- */

#define MOCK_SOURCE_HEAP 1u
#define MOCK_SOURCE_CALLER 2u  /* mem_register */
#define MOCK_SOURCE_MAPPING 3u /* vmem_map */
#define MOCK_SOURCE_FILE 4u    /* mem_alloc with option ipc */
#define MOCK_SOURCE_IMPORT 5u  /* ipc_memory_open */
#define MOCK_SOURCE_DMABUF 6u  /* dmabuf_import */

struct mock_block {
    char *base;
    uint64_t size_bytes;
    uint64_t id;
    uint32_t kind;   /* DS_ACCEL_POINTER_* */
    uint32_t source; /* MOCK_SOURCE_* */
    uint32_t flags;  /* DS_ACCEL_PINNED_* */
    uint32_t access; /* DS_ACCEL_VMEM_ACCESS_* */
    ds_accel_plugin_device_t *device;
    ds_accel_plugin_vmem_t *vmem;
    int fd;                /* MOCK_SOURCE_FILE */
    uint64_t offset_bytes; /* of the pointer that the import returned */
};

/* The block that holds the address, or NULL. Valid until the register changes. */
struct mock_block *mock_block_find(const ds_accel_plugin_instance_t *instance, const void *address);
/* Non-zero if a block overlaps the range. */
int mock_block_overlaps(const ds_accel_plugin_instance_t *instance, const void *address,
                        uint64_t size_bytes);
/* Gives the block its id; -1 when out of memory. */
int mock_block_insert(ds_accel_plugin_instance_t *instance, const struct mock_block *block);
void mock_block_remove(ds_accel_plugin_instance_t *instance, struct mock_block *block);

/* ---- usage.c: total and used memory --------------------------------------------------------- */

/* With instance->lock held: non-zero if the device has that much free memory. */
int mock_usage_fits(const ds_accel_plugin_device_t *device, uint64_t size_bytes);
void mock_usage_take(ds_accel_plugin_device_t *device, uint64_t size_bytes);
void mock_usage_give(ds_accel_plugin_device_t *device, uint64_t size_bytes);
/* Without the lock: counts and reports a failed allocation. */
int32_t mock_usage_refuse(ds_accel_plugin_device_t *device, uint64_t size_bytes, const char *slot,
                          struct ds_accel_error *error);
void mock_usage_fill(struct ds_accel_plugin *table);

/* ---- memory.c, vmem.c ----------------------------------------------------------------------- */

/* With instance->lock held: frees the device's remaining blocks; returns their number. */
size_t mock_memory_release(ds_accel_plugin_device_t *device);
void mock_memory_fill(struct ds_accel_plugin *table);
/* With instance->lock held. */
void mock_vmem_put(ds_accel_plugin_vmem_t *vmem);
void mock_vmem_release(ds_accel_plugin_device_t *device);
void mock_vmem_fill(struct ds_accel_plugin *table);
/* Reserves addresses without memory, at a multiple of align_bytes; NULL on failure. */
char *mock_reserve_aligned(uint64_t size_bytes, uint64_t align_bytes);

/* ---- work.c, stream.c, graph.c -------------------------------------------------------------- */

/* Rejects addresses that the work must not access. */
int32_t mock_work_check(const ds_accel_plugin_device_t *device, const struct mock_work *work,
                        const char *slot, struct ds_accel_error *error);
/* Runs the work; it is complete at the queue's done_ns. */
void mock_work_run(ds_accel_plugin_stream_t *stream, const struct mock_work *work);
/* Checks the work, then runs it or, while the stream captures, keeps it. */
int32_t mock_work_submit(ds_accel_plugin_stream_t *stream, const struct mock_work *work,
                         const char *slot, struct ds_accel_error *error);
void mock_work_fill(struct ds_accel_plugin *table);

/* With instance->lock held. The list takes a reference to the mark of a record; 0 or -1. */
int mock_work_list_append(struct mock_work_list *list, const struct mock_work *work);
int mock_work_list_copy(const struct mock_work_list *list, struct mock_work_list *copy_out);
void mock_work_list_release(struct mock_work_list *list);

/* With instance->lock held. */
void mock_mark_put(struct mock_mark *mark);

/* capture.c, with instance->lock held. Functions that return a text: NULL, or the error. */
uint32_t mock_capture_state(struct mock_queue *queue); /* DS_ACCEL_CAPTURING_* */
void mock_capture_break(const struct mock_queue *queue);
int mock_capture_begin(struct mock_queue *queue, uint64_t id); /* 0, or -1: out of memory */
const char *mock_capture_end(struct mock_queue *queue, struct mock_work_list *works_out);
void mock_capture_drop(struct mock_queue *queue); /* the queue is destroyed */
int mock_capture_append(struct mock_queue *queue, const struct mock_work *work); /* 0 or -1 */
/* Waits for a mark in a capture, or on a queue that captures; the queue may join the capture. */
const char *mock_capture_wait(struct mock_queue *queue, const struct mock_mark *mark);
/* The mark no longer belongs to a capture. */
void mock_mark_uncapture(struct mock_mark *mark);
/*
 * With instance->lock held: the queue and its device are busy for that long, from now or from the
 * end of their current work.
 */
void mock_queue_advance(ds_accel_plugin_stream_t *stream, uint64_t start_ns, uint64_t cost_ns);
/* Rejects a call that a capture cannot contain, and breaks the capture. */
int32_t mock_queue_not_capturing(ds_accel_plugin_stream_t *stream, const char *slot,
                                 struct ds_accel_error *error);
/* Makes the stream's later work wait for the events. */
int32_t mock_queue_wait_marks(ds_accel_plugin_stream_t *stream,
                              ds_accel_plugin_event_t *const *waits, uint32_t wait_count,
                              const char *slot, struct ds_accel_error *error);
ds_accel_plugin_stream_t *mock_stream_make(ds_accel_plugin_device_t *device,
                                           struct mock_queue *queue);
ds_accel_plugin_event_t *mock_event_make(ds_accel_plugin_device_t *device, uint32_t flags,
                                         struct mock_mark *mark);
void mock_stream_destroy(ds_accel_plugin_stream_t *stream);
void mock_stream_fill(struct ds_accel_plugin *table);
void mock_event_fill(struct ds_accel_plugin *table);
void mock_graph_fill(struct ds_accel_plugin *table);

/* ---- share.c -------------------------------------------------------------------------------- */

/* Creates a memfd of that size; -1 on failure. */
int mock_file_create(uint64_t size_bytes);
/* With instance->lock held: withdraws the exports of a block. */
void mock_share_forget(ds_accel_plugin_device_t *device, uint64_t block_id);
/* Shares the mark with other processes; 0 or -1. The other functions ignore an unshared mark. */
int mock_mark_share(struct mock_mark *mark);
void mock_mark_unshare(struct mock_mark *mark);
/* With instance->lock held: exchanges the mark's completion time with the other processes. */
void mock_mark_publish(struct mock_mark *mark);
void mock_mark_refresh(struct mock_mark *mark);
void mock_share_fill(struct ds_accel_plugin *table);

/* ---- device.c, facts.c, ranges.c, native.c -------------------------------------------------- */

void mock_device_fill(struct ds_accel_plugin *table);
void mock_facts_fill(struct ds_accel_plugin *table);
void mock_ranges_release(ds_accel_plugin_instance_t *instance);
void mock_ranges_fill(struct ds_accel_plugin *table);
void mock_native_fill(struct ds_accel_plugin *table);

#endif
