/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the files of the frame share, and backends do not see. */
#ifndef DS_ACCEL_VENDOR_FRAME_H
#define DS_ACCEL_VENDOR_FRAME_H

#include "vendor.h"

/* ---- what calls begin with (vendor_call.c) --------------------------------------------------- */

int32_t vendor_null(struct ds_accel_error *error, const char *slot, const char *what);
/* ERR_INVALID if flags has bits that known has not, which are named. */
int32_t vendor_check_flags(uint32_t flags, uint32_t known, const char *slot,
                           struct ds_accel_error *error);
int32_t vendor_check_instance(const ds_accel_plugin_instance_t *instance, const char *slot,
                              struct ds_accel_error *error);
int32_t vendor_check_index(const ds_accel_plugin_instance_t *instance, uint32_t device_index,
                           const char *slot, struct ds_accel_error *error);
int32_t vendor_check_array(const void *array, uint32_t capacity, const uint32_t *count_out,
                           const char *slot, struct ds_accel_error *error);
/* Of the same instance. */
int32_t vendor_check_peer(const ds_accel_plugin_device_t *device,
                          const ds_accel_plugin_device_t *peer, const char *slot,
                          struct ds_accel_error *error);
/* Runs what the runtime will not call any more: whoever is told of the loss may wait for it. */
int32_t vendor_fail_lost(ds_accel_plugin_device_t *device, const char *slot,
                         struct ds_accel_error *error);

static inline int vendor_is_lost(ds_accel_plugin_device_t *device)
{
    return atomic_load_explicit(&device->is_lost, memory_order_relaxed) != 0;
}

/* The handle is there, and its device was not lost: a lost one's runtime is asked nothing but to
 * free and destroy, since most answer with hangs. */
static inline int32_t vendor_check_device(ds_accel_plugin_device_t *device, const char *slot,
                                          struct ds_accel_error *error)
{
    if (device == NULL) {
        return vendor_null(error, slot, "the device");
    }
    return vendor_is_lost(device) ? vendor_fail_lost(device, slot, error) : DS_ACCEL_OK;
}

static inline int32_t vendor_check_stream(ds_accel_plugin_stream_t *stream, const char *slot,
                                          struct ds_accel_error *error)
{
    if (stream == NULL) {
        return vendor_null(error, slot, "the stream");
    }
    return vendor_check_device(stream->device, slot, error);
}

static inline int32_t vendor_check_event(ds_accel_plugin_event_t *event, const char *slot,
                                         struct ds_accel_error *error)
{
    if (event == NULL) {
        return vendor_null(error, slot, "the event");
    }
    return vendor_check_device(event->device, slot, error);
}

static inline int32_t vendor_begin(ds_accel_plugin_device_t *device, uint64_t *saved_out,
                                   struct ds_accel_error *error)
{
    return vendor_backend.enter != NULL ? vendor_backend.enter(device, saved_out, error)
                                        : DS_ACCEL_OK;
}

static inline void vendor_end(ds_accel_plugin_device_t *device, uint64_t saved)
{
    if (vendor_backend.leave != NULL) {
        vendor_backend.leave(device, saved);
    }
}

/* Evaluate a call of the backend with the device entered; status is a variable. */
#define VENDOR_CALL(device, error, status, call) \
    do { \
        uint64_t vendor_saved_ = 0; \
        (status) = vendor_begin(device, &vendor_saved_, error); \
        if ((status) == DS_ACCEL_OK) { \
            (status) = (call); \
            vendor_end(device, vendor_saved_); \
        } \
    } while (0)
/* The same for a call on a stream, event or graph: most runtimes need no device for these. */
#define VENDOR_WORK(device, error, status, call) \
    do { \
        if (vendor_backend.enters_for_streams) { \
            VENDOR_CALL(device, error, status, call); \
        } else { \
            (status) = (call); \
        } \
    } while (0)
/* The same for a function that returns nothing; it is called even if the device can't be entered.
 */
#define VENDOR_DESTROY(device, call) \
    do { \
        struct ds_accel_error vendor_ignored_ = {.struct_size = sizeof(vendor_ignored_)}; \
        uint64_t vendor_saved_ = 0; \
        int32_t vendor_entered_ = vendor_begin(device, &vendor_saved_, &vendor_ignored_); \
        call; \
        if (vendor_entered_ == DS_ACCEL_OK) { \
            vendor_end(device, vendor_saved_); \
        } \
    } while (0)

/* Call ask(subject) until it is OK, fails or the time has passed: DS_ACCEL_OK, ERR_TIMEOUT, ... */
int32_t vendor_poll(int32_t (*ask)(void *subject, struct ds_accel_error *error), void *subject,
                    uint64_t timeout_ns, const char *slot, struct ds_accel_error *error);

/* ---- devices (vendor_device.c) --------------------------------------------------------------- */

struct vendor_copier;
struct vendor_task;
struct vendor_keep;

/* device->frame. */
struct vendor_device {
    pthread_mutex_t lock;              /* guards the next three */
    ds_accel_plugin_stream_t *streams; /* all of the device, the default one too */
    ds_accel_plugin_stream_t *ended;   /* destroyed by the program, with work left to do */
    struct vendor_copier *copiers;     /* streams for mem_copy that nobody uses now */
    pthread_mutex_t task_lock;         /* guards the next five; never held in a call */
    struct vendor_task *pending;       /* host tasks that the runtime has */
    struct vendor_task *running;       /* that it calls now */
    struct vendor_task *abandoned;     /* that were run in its place, and that it may still call */
    struct vendor_keep *captures;      /* of captures in progress */
    struct vendor_keep *orphans;       /* captured where nobody knows which graph has them */
    int32_t least_priority;
    int32_t greatest_priority;
    uint32_t is_identified;
};

/* Fill the facts that sysfs knows and the backend did not. */
int32_t vendor_device_identify(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
/* Make, and end, the frames of the instance's devices; -1: no memory. */
int vendor_devices_make(ds_accel_plugin_instance_t *instance);
void vendor_devices_release(ds_accel_plugin_instance_t *instance);
/* "/dev/dri/renderD128" of a PCI device, if the trace has such a node; "" otherwise. */
void vendor_pci_node(const struct ds_accel_host *host, const struct vendor_trace *trace,
                     const char *pci_address, char *path, size_t path_size);

/* ---- the register of addresses (vendor_block.c) ---------------------------------------------- */

enum vendor_source {
    VENDOR_SOURCE_ALLOC = 1,  /* mem_alloc, mem_alloc_managed, mem_alloc_async */
    VENDOR_SOURCE_PINNED,     /* mem_alloc_pinned */
    VENDOR_SOURCE_REGISTERED, /* mem_register */
    VENDOR_SOURCE_MAPPED,     /* vmem_map */
    VENDOR_SOURCE_IMPORT,     /* ipc_memory_open */
    VENDOR_SOURCE_WRAPPED     /* native_wrap */
};

/* One range of addresses. Blocks of one space never overlap. */
struct vendor_block {
    uintptr_t base; /* what the program has */
    uint64_t size_bytes;
    uint32_t space; /* vendor_block_space() */
    uint32_t kind;  /* DS_ACCEL_POINTER_* */
    enum vendor_source source;
    uint32_t flags; /* of mem_alloc_pinned, mem_register */
    ds_accel_plugin_device_t *device;
    void *start; /* what the runtime has; base may lie behind it, to be aligned */
    uint64_t start_size_bytes;
    uint64_t id;                          /* unique in the process */
    uint32_t is_async;                    /* of mem_alloc_async */
    uint32_t open_count;                  /* of an import */
    unsigned char *handle;                /* of an import: the vendor's bytes */
    struct vendor_export *exports;        /* handles made of it that need to be withdrawn */
    ds_accel_plugin_vmem_t *vmem;         /* of a mapping */
    struct vendor_block *next, *previous; /* all blocks of the register */
};

struct vendor_register;
struct vendor_register *vendor_register_create(void);
void vendor_register_destroy(struct vendor_register *blocks);
void vendor_register_lock(struct vendor_register *blocks);
void vendor_register_unlock(struct vendor_register *blocks);
/* 0 where all addresses are of one space; else that of a device, or of host memory. */
uint32_t vendor_block_space(const ds_accel_plugin_device_t *device, uint32_t kind);
/*
 * The next ones need the lock. The block that has the address, or any that has a part of the range;
 * NULL. Insertion takes a block made with vendor_block_create(): 0; -1 a part of its range is in
 * the register; -2 no memory.
 */
struct vendor_block *vendor_block_find(const struct vendor_register *blocks, uint32_t space,
                                       const void *address);
/* As a program sees it: device memory, else host memory. device may be NULL. */
struct vendor_block *vendor_block_look_up(const struct vendor_register *blocks,
                                          const ds_accel_plugin_device_t *device,
                                          const void *address);
struct vendor_block *vendor_block_overlap(const struct vendor_register *blocks, uint32_t space,
                                          const void *address, uint64_t size_bytes);
int vendor_block_insert(struct vendor_register *blocks, struct vendor_block *block);
void vendor_block_remove(struct vendor_register *blocks, struct vendor_block *block);
/* Any block of the device, NULL; for what is left when it is closed. */
struct vendor_block *vendor_block_any(const struct vendor_register *blocks,
                                      const ds_accel_plugin_device_t *device);

/* A block with an id, zero otherwise; NULL. */
struct vendor_block *vendor_block_create(ds_accel_plugin_device_t *device,
                                         enum vendor_source source, uint32_t kind);
void vendor_block_free(struct vendor_block *block);
/* Insert under the lock; a failure fills the error and frees the block. */
int32_t vendor_block_enter(struct vendor_block *block, const char *slot,
                           struct ds_accel_error *error);
/* Take the block that begins at the pointer, is the device's and of one of the sources (a set of
 * 1 << source), out of the register; NULL. */
struct vendor_block *vendor_block_take(ds_accel_plugin_device_t *device, const void *pointer,
                                       uint32_t sources);
/* Put a block that was taken back, as its runtime would not free it. */
void vendor_block_put_back(struct vendor_block *block);

/* ---- figures (vendor_usage.c) ---------------------------------------------------------------- */

struct vendor_usage *vendor_usage_create(void);
void vendor_usage_destroy(struct vendor_usage *usage);
void vendor_usage_reset(struct vendor_usage *usage);
/* Set the bytes aside for an allocation: 0, or -1 when the limit does not allow it. */
int vendor_usage_take(struct vendor_usage *usage, uint64_t size_bytes);
void vendor_usage_succeed(struct vendor_usage *usage); /* the allocation was made */
void vendor_usage_fail(struct vendor_usage *usage, uint64_t size_bytes, int32_t status);
void vendor_usage_give(struct vendor_usage *usage, uint64_t size_bytes); /* it was freed */
/* ERR_NO_MEMORY by the limit, or as the size can't be, counted and with the figures. */
int32_t vendor_usage_refuse(ds_accel_plugin_device_t *device, uint64_t size_bytes, const char *slot,
                            struct ds_accel_error *error);

/* ---- streams, tasks and what captures keep (vendor_stream.c, vendor_task.c) -------------------
 */

/* stream->frame */
struct vendor_stream {
    ds_accel_plugin_stream_t *next, *previous; /* the device's; its lock */
    struct vendor_keep *_Atomic capture; /* begun by graph_capture_begin, not ended; others look at
                                            it while they wait for the device or mark the stream */
};

/* What a graph needs while it can run: host tasks and pattern buffers. Counted. */
struct vendor_keep {
    struct vendor_keep *next; /* captures, orphans */
    atomic_uint references;
    ds_accel_plugin_device_t *device;
    pthread_mutex_t lock; /* guards the list */
    struct vendor_task *items;
};

ds_accel_plugin_stream_t *vendor_stream_make(ds_accel_plugin_device_t *device, void *native);
void vendor_stream_drop(ds_accel_plugin_stream_t *stream); /* the handle, not the native stream */
/* Make and destroy the default stream. */
int32_t vendor_stream_open_default(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
void vendor_stream_close_default(ds_accel_plugin_device_t *device);
/* ERR_UNSUPPORTED for an event that the runtime takes in no capture. */
int32_t vendor_check_captured(const ds_accel_plugin_event_t *event, const char *slot,
                              struct ds_accel_error *error);
/* Is what is queued now recorded? Asks the runtime only if some stream captures. */
int32_t vendor_stream_is_capturing(ds_accel_plugin_stream_t *stream, uint32_t *is_capturing_out,
                                   struct ds_accel_error *error);
int32_t vendor_stream_wait(ds_accel_plugin_stream_t *stream, uint64_t timeout_ns, const char *slot,
                           struct ds_accel_error *error);
/* Wait for an event, as stream_wait_event does. */
int32_t vendor_stream_wait_for(ds_accel_plugin_stream_t *stream, ds_accel_plugin_event_t *event,
                               const char *slot, struct ds_accel_error *error);
/* OK when every stream of the device that does not capture is idle, those too that were destroyed,
 * else NOT_READY. */
int32_t vendor_streams_query(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
/* End destroyed streams that have done their work; with a capture going on, none. */
void vendor_streams_reap(ds_accel_plugin_device_t *device);
void vendor_streams_release(ds_accel_plugin_device_t *device);

/* Queue a function; captured, it runs with each launch and lives with the graph. */
int32_t vendor_task_submit(ds_accel_plugin_stream_t *stream, ds_accel_host_task_t task,
                           void *user_data, struct ds_accel_error *error);
/*
 * Hold memory of malloc() for work: make the task, which owns it, before the work, so that it
 * cannot fail behind it. Then either keep it with the graph that is captured, before the work is
 * queued, or hold it behind the work until the stream has passed; both take the task.
 */
struct vendor_task *vendor_task_holding(ds_accel_plugin_device_t *device, void *memory);
void vendor_task_drop(struct vendor_task *task); /* no work was queued */
int32_t vendor_task_keep(ds_accel_plugin_stream_t *stream, struct vendor_task *task,
                         struct ds_accel_error *error);
int32_t vendor_task_hold(ds_accel_plugin_stream_t *stream, struct vendor_task *task,
                         struct ds_accel_error *error);
/* Run what the runtime still has with the status in its place. */
void vendor_tasks_abandon(ds_accel_plugin_device_t *device, int32_t status);
/*
 * What a wait for a lost device owes: no task of the stream (NULL: of the device) is run any more
 * by another thread, the runtime's or one that abandons them, or the time has passed.
 */
void vendor_tasks_settle(ds_accel_plugin_device_t *device, const ds_accel_plugin_stream_t *stream,
                         uint64_t timeout_ns);
int vendor_tasks_are_pending(ds_accel_plugin_device_t *device);
void vendor_tasks_release(ds_accel_plugin_device_t *device); /* the runtime calls none any more */

struct vendor_keep *vendor_keep_create(ds_accel_plugin_device_t *device);
void vendor_keep_get(struct vendor_keep *keep);
void vendor_keep_put(struct vendor_keep *keep);
int vendor_keep_is_empty(struct vendor_keep *keep);
/* A capture of the stream begins, or ends: the keep of what it records, the caller's then. */
int32_t vendor_keep_open(ds_accel_plugin_stream_t *stream, const char *slot,
                         struct ds_accel_error *error);
struct vendor_keep *vendor_keep_close(ds_accel_plugin_stream_t *stream);
/* The launch of a graph is itself captured: the recording graph holds its keep. */
int32_t vendor_keep_in_capture(struct vendor_keep *keep, ds_accel_plugin_stream_t *stream,
                               struct ds_accel_error *error);
/* Hold the keep until the stream has passed: the launch of a graph is in flight. */
int32_t vendor_keep_until_passed(struct vendor_keep *keep, ds_accel_plugin_stream_t *stream,
                                 struct ds_accel_error *error);

/* ---- events (vendor_event.c) ----------------------------------------------------------------- */

#define VENDOR_EVENT_NEVER 0u
#define VENDOR_EVENT_RECORDED 1u
#define VENDOR_EVENT_CAPTURED 2u

ds_accel_plugin_event_t *vendor_event_make(ds_accel_plugin_device_t *device, uint32_t flags,
                                           void *native);
void vendor_event_drop(ds_accel_plugin_event_t *event);
uint32_t vendor_event_state(ds_accel_plugin_event_t *event);

/* ---- memory ---------------------------------------------------------------------------------- */

/* Give a block that was taken out of the register back to the runtime, and end it. */
int32_t vendor_memory_give(struct vendor_block *block, struct ds_accel_error *error);
/* Free what is left of a device; how many there were. */
uint32_t vendor_memory_release(ds_accel_plugin_device_t *device, uint64_t *bytes_out);
void vendor_share_withdraw(struct vendor_block *block);
void vendor_vmem_put(ds_accel_plugin_vmem_t *vmem);
void vendor_copiers_release(ds_accel_plugin_device_t *device);

/* ---- the slots ------------------------------------------------------------------------------- */

void vendor_device_fill(struct ds_accel_plugin *table);
void vendor_stream_fill(struct ds_accel_plugin *table);
void vendor_event_fill(struct ds_accel_plugin *table);
void vendor_memory_fill(struct ds_accel_plugin *table);
void vendor_usage_fill(struct ds_accel_plugin *table);
void vendor_work_fill(struct ds_accel_plugin *table);
void vendor_vmem_fill(struct ds_accel_plugin *table);
void vendor_graph_fill(struct ds_accel_plugin *table);
/* Of an IPC memory handle as programs see it, the frame's head included; 0: none (vendor_share.c).
 */
uint32_t vendor_handle_bytes(void);
void vendor_share_fill(struct ds_accel_plugin *table);
void vendor_facts_fill(struct ds_accel_plugin *table);
void vendor_visible_fill(struct ds_accel_plugin *table);
void vendor_native_fill(struct ds_accel_plugin *table);

#endif
