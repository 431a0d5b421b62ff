/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Declarations shared by the files of the mock plugin; mock.c describes the files. */
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
#define MOCK_HANDLE_BYTES 64u /* size of memory handles and of event handles */

/* ---- the simulated vendor's objects, which the handles wrap --------------------------------- */

/* Work that was submitted to a queue; the kind determines which members are used. */
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

/* For each queue of a capture, a number of its works (see capture.c). */
struct mock_known {
    uint64_t *works;
    size_t count;
};

/* The vendor's stream. */
struct mock_queue {
    uint64_t done_ns;             /* time at which all queued work is complete, CLOCK_MONOTONIC */
    uint32_t is_default;          /* the default queue rejects captures */
    struct mock_capture *capture; /* NULL: none. mock_capture_state() clears it after the end */
    size_t place;                 /* index in the capture's list of queues */
    struct mock_known known;
};

/* The vendor's event. */
struct mock_mark {
    uint32_t references; /* one for the event, and one for each captured record */
    uint32_t flags;
    uint32_t recorded;
    uint64_t done_ns;
    uint64_t capture_id;          /* not 0: the latest record was captured and has not run since */
    struct mock_capture *capture; /* capture of the latest record; NULL: none */
    struct mock_known known;
    /* share.c: done_ns in memory shared with other processes; NULL: not shared */
    struct mock_shared *shared;
    int fd; /* descriptor of the file that shared is mapped from */
};

#define MOCK_VISIBLE_VARIABLE "MOCK_VISIBLE_DEVICES"

/* ---- options.c, script.c: the configured behaviour ------------------------------------------ */

/* One part of the option fail: "mem_alloc:3+=no_memory". */
struct mock_rule {
    const char *slot;
    uint64_t first; /* number of the first call that fails; calls count from 1 */
    uint64_t last;  /* the last call that fails */
    uint64_t calls; /* number of calls so far */
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
    uint32_t ipc;        /* device memory is allocated from files, which can be shared */
    uint32_t state;      /* DS_ACCEL_PROBE_* */
    uint32_t reason;     /* DS_ACCEL_REASON_*; NONE when AVAILABLE */
    int32_t init_status; /* status that init returns when not AVAILABLE */
    char detail[256];
    char variant[32];
    char device_name[128];
    struct mock_script script;
};

/*
 * Reads all options. For the first malformed option, fails with ERR_INVALID, whose message has the
 * option, its value and the expected values.
 */
int32_t mock_options_read(const struct ds_accel_host *host, struct mock_options *options_out,
                          struct ds_accel_error *error);
int32_t mock_script_parse(const char *text, struct mock_script *script_out,
                          struct ds_accel_error *error);
/* Counts a call of the slot, and returns its scripted status, or DS_ACCEL_OK. */
int32_t mock_script_count(struct mock_script *script, const char *slot);
/*
 * Fills the error like that of a real plugin whose runtime failed, with an invented vendor's code
 * and text. Returns status.
 */
int32_t mock_vendor_fail(struct ds_accel_error *error, int32_t status, const char *slot,
                         const char *cause);

/* ---- the objects that handles point to ------------------------------------------------------ */

struct mock_block;       /* block.c: one allocation, registration or mapping */
struct mock_reservation; /* vmem.c: addresses without memory */
struct mock_export;      /* share.c: a handle that other processes may open */
struct mock_range;       /* ranges.c: open profiler ranges of a thread */

/* A device; init makes one for each index. open_count is the number of openings. */
struct ds_accel_plugin_device {
    ds_accel_plugin_instance_t *instance;
    uint32_t index;

    /* all members below are guarded by instance->lock */
    uint32_t open_count;
    uint32_t lost;
    uint64_t done_ns; /* time at which the work of all its queues is complete */
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
    const struct ds_accel_ext_trace *trace; /* NULL if the host has no tracing */
    pthread_key_t current_key; /* thread-specific value: index + 1 of the current device */
    struct ds_accel_plugin_device *devices; /* [options.device_count] */

    /*
     * Guards all members below, and the devices, queues, marks and graphs of the instance. No
     * thread holds it while it moves data, runs a host task or waits.
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
 * A handle and its queue: own, or for a handle made by native_wrap the queue of the program.
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

/* ---- call.c: checks at the start of every slot ---------------------------------------------- */

/* Rejects a NULL argument. */
static inline int32_t mock_null(struct ds_accel_error *error, const char *slot, const char *what)
{
    return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: %s is NULL", slot, what);
}

/*
 * Each function checks that the handle is not NULL and that its device, if it has one, is not lost.
 * It also counts the call, and fails with the status that option fail requests for the call; the
 * status ERR_DEVICE_LOST makes the device lost if it is open.
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
/*
 * Both functions sleep until a time of CLOCK_MONOTONIC. mock_wait_until() also writes a trace with
 * the name what, which must stay valid after the call.
 */
void mock_sleep_until(uint64_t when_ns);
void mock_wait_until(const ds_accel_plugin_instance_t *instance, const char *what,
                     uint64_t when_ns);
/*
 * Waits until done_ns, and then for option sync_latency_ns; fails with ERR_TIMEOUT if timeout_ns
 * expires first.
 */
int32_t mock_wait_for(const ds_accel_plugin_instance_t *instance, const char *slot,
                      uint64_t done_ns, uint64_t timeout_ns, struct ds_accel_error *error);
uint64_t mock_max_u64(uint64_t a, uint64_t b);

/* ---- block.c: the register of addresses; the caller holds instance->lock -------------------- */

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
    uint64_t offset_bytes; /* offset of the imported pointer from base */
};

/* The block that contains the address, or NULL. Valid until the register changes. */
struct mock_block *mock_block_find(const ds_accel_plugin_instance_t *instance, const void *address);
/* Non-zero if a block overlaps the range. */
int mock_block_overlaps(const ds_accel_plugin_instance_t *instance, const void *address,
                        uint64_t size_bytes);
/* Assigns an id to the block and inserts it. Returns 0, or -1 when out of memory. */
int mock_block_insert(ds_accel_plugin_instance_t *instance, const struct mock_block *block);
void mock_block_remove(ds_accel_plugin_instance_t *instance, struct mock_block *block);

/* ---- usage.c: total and used memory --------------------------------------------------------- */

/* Non-zero if the device has that much free memory. Caller holds instance->lock. */
int mock_usage_fits(const ds_accel_plugin_device_t *device, uint64_t size_bytes);
void mock_usage_take(ds_accel_plugin_device_t *device, uint64_t size_bytes);
void mock_usage_give(ds_accel_plugin_device_t *device, uint64_t size_bytes);
/* Counts a failed allocation, and fills the error. Caller does not hold instance->lock. */
int32_t mock_usage_refuse(ds_accel_plugin_device_t *device, uint64_t size_bytes, const char *slot,
                          struct ds_accel_error *error);
void mock_usage_fill(struct ds_accel_plugin *table);

/* ---- memory.c, vmem.c ----------------------------------------------------------------------- */

/* Frees the device's remaining blocks except mappings, and returns their number. Caller holds
   instance->lock. */
size_t mock_memory_release(ds_accel_plugin_device_t *device);
void mock_memory_fill(struct ds_accel_plugin *table);
/*
 * mock_vmem_put() drops a reference to physical memory, mock_vmem_release() releases the device's
 * mappings and reservations. Caller holds instance->lock.
 */
void mock_vmem_put(ds_accel_plugin_vmem_t *vmem);
void mock_vmem_release(ds_accel_plugin_device_t *device);
void mock_vmem_fill(struct ds_accel_plugin *table);
/* Reserves a range of addresses without memory, aligned to align_bytes; NULL on failure. */
char *mock_reserve_aligned(uint64_t size_bytes, uint64_t align_bytes);

/* ---- work.c, stream.c, graph.c -------------------------------------------------------------- */

/* Rejects addresses that the work must not access. */
int32_t mock_work_check(const ds_accel_plugin_device_t *device, const struct mock_work *work,
                        const char *slot, struct ds_accel_error *error);
/* Moves the data or calls the task now; for waits and events the work is done at queue->done_ns. */
void mock_work_run(ds_accel_plugin_stream_t *stream, const struct mock_work *work);
/* Checks the work, then runs it, or if the stream is capturing, records it. */
int32_t mock_work_submit(ds_accel_plugin_stream_t *stream, const struct mock_work *work,
                         const char *slot, struct ds_accel_error *error);
void mock_work_fill(struct ds_accel_plugin *table);

/*
 * Appends work; the list takes a reference to the mark of a record. Returns 0, or -1 when out of
 * memory. Caller holds instance->lock.
 */
int mock_work_list_append(struct mock_work_list *list, const struct mock_work *work);
int mock_work_list_copy(const struct mock_work_list *list, struct mock_work_list *copy_out);
void mock_work_list_release(struct mock_work_list *list);

/* Drops a reference to a mark. Caller holds instance->lock. */
void mock_mark_put(struct mock_mark *mark);

/*
 * capture.c. Caller holds instance->lock. Functions that return a const char * return NULL on
 * success, otherwise the text of the error.
 */
uint32_t mock_capture_state(struct mock_queue *queue); /* DS_ACCEL_CAPTURING_* */
void mock_capture_break(const struct mock_queue *queue);
int mock_capture_begin(struct mock_queue *queue, uint64_t id); /* 0, or -1: out of memory */
const char *mock_capture_end(struct mock_queue *queue, struct mock_work_list *works_out);
void mock_capture_drop(struct mock_queue *queue); /* the queue is being destroyed */
/* 0, or -1: out of memory */
int mock_capture_append(struct mock_queue *queue, const struct mock_work *work);
/*
 * Makes the queue wait for a mark; called only if the mark or the queue is in a capture. A queue
 * that is not in a capture joins the capture of the mark.
 */
const char *mock_capture_wait(struct mock_queue *queue, const struct mock_mark *mark);
/* Removes the mark from its capture, if any. */
void mock_mark_uncapture(struct mock_mark *mark);
/*
 * Makes the queue and its device busy for cost_ns, from start_ns or from the end of the queue's
 * current work, whichever is later. Caller holds instance->lock.
 */
void mock_queue_advance(ds_accel_plugin_stream_t *stream, uint64_t start_ns, uint64_t cost_ns);
/* For calls that a capture cannot contain: if the stream captures, breaks the capture and fails. */
int32_t mock_queue_not_capturing(ds_accel_plugin_stream_t *stream, const char *slot,
                                 struct ds_accel_error *error);
/* Makes later work of the stream wait for the events. If the stream captures, breaks the capture
   and fails. */
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

/* Creates a memfd of this size; -1 on failure. */
int mock_file_create(uint64_t size_bytes);
/* Makes the exported handles of a block invalid. Caller holds instance->lock. */
void mock_share_forget(ds_accel_plugin_device_t *device, uint64_t block_id);
/*
 * Shares the mark with other processes. Returns 0 or -1. The functions below ignore a mark that is
 * not shared.
 */
int mock_mark_share(struct mock_mark *mark);
void mock_mark_unshare(struct mock_mark *mark);
/*
 * Write the mark's completion time to, and read it from, the memory shared with other processes.
 * Caller holds instance->lock.
 */
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
