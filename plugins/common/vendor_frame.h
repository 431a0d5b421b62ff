/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Declarations shared by the files of the frame and hidden from backends. */
#ifndef DS_ACCEL_PLUGINS_COMMON_VENDOR_FRAME_H
#define DS_ACCEL_PLUGINS_COMMON_VENDOR_FRAME_H

#include "vendor.h"

/* ---- checks at the start of calls (vendor_call.c) ------------------------------------------- */

int32_t vendor_null(struct ds_accel_error *error, const char *slot, const char *what);
/* ERR_INVALID if flags has bits outside known; the message lists these bits. */
int32_t vendor_check_flags(uint32_t flags, uint32_t known, const char *slot,
                           struct ds_accel_error *error);
int32_t vendor_check_instance(const ds_accel_plugin_instance_t *instance, const char *slot,
                              struct ds_accel_error *error);
int32_t vendor_check_index(const ds_accel_plugin_instance_t *instance, uint32_t device_index,
                           const char *slot, struct ds_accel_error *error);
int32_t vendor_check_array(const void *array, uint32_t capacity, const uint32_t *count_out,
                           const char *slot, struct ds_accel_error *error);
/* ERR_INVALID unless peer is a device of the same instance as device. */
int32_t vendor_check_peer(const ds_accel_plugin_device_t *device,
                          const ds_accel_plugin_device_t *peer, const char *slot,
                          struct ds_accel_error *error);
/* Returns ERR_DEVICE_LOST. Before that, the calling thread runs the host tasks that are still
 * queued: the runtime will not call them, and the program may wait for them after this error. */
int32_t vendor_fail_lost(ds_accel_plugin_device_t *device, const char *slot,
                         struct ds_accel_error *error);

static inline int vendor_is_lost(ds_accel_plugin_device_t *device)
{
    return atomic_load_explicit(&device->is_lost, memory_order_relaxed) != 0;
}

/* vendor_check_device(), vendor_check_stream() and vendor_check_event() return DS_ACCEL_OK if the
 * handle is not NULL and its device is not lost. For a lost device the frame calls the runtime only
 * to free, to destroy and to end a capture, since most runtimes hang in other calls. */
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

/* vendor_begin() for destroying slots, which have no error argument. Zeroing a struct
   ds_accel_error takes longer than destroying some objects, so the struct is made only if the
   backend has an enter(). */
static inline int32_t vendor_begin_to_destroy(ds_accel_plugin_device_t *device, uint64_t *saved_out)
{
    if (vendor_backend.enter != NULL) {
        struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

        return vendor_backend.enter(device, saved_out, &ignored);
    }
    return DS_ACCEL_OK;
}

static inline void vendor_end(ds_accel_plugin_device_t *device, uint64_t saved)
{
    if (vendor_backend.leave != NULL) {
        vendor_backend.leave(device, saved);
    }
}

/* Make a call of the backend with the device entered, and store its result in the variable
 * status. */
#define VENDOR_CALL(device, error, status, call) \
    do { \
        uint64_t vendor_saved_ = 0; \
        (status) = vendor_begin(device, &vendor_saved_, error); \
        if ((status) == DS_ACCEL_OK) { \
            (status) = (call); \
            vendor_end(device, vendor_saved_); \
        } \
    } while (0)
/* VENDOR_CALL for a stream, event or graph. It enters the device only if the backend sets
 * enters_for_streams, because most runtimes need no current device for these calls. */
#define VENDOR_WORK(device, error, status, call) \
    do { \
        if (vendor_backend.enters_for_streams) { \
            VENDOR_CALL(device, error, status, call); \
        } else { \
            (status) = (call); \
        } \
    } while (0)
/* VENDOR_CALL for a function that returns nothing; the function is called even if the device can't
 * be entered. */
#define VENDOR_DESTROY(device, call) \
    do { \
        uint64_t vendor_saved_ = 0; \
        int32_t vendor_entered_ = vendor_begin_to_destroy(device, &vendor_saved_); \
        call; \
        if (vendor_entered_ == DS_ACCEL_OK) { \
            vendor_end(device, vendor_saved_); \
        } \
    } while (0)

/* Call ask(subject) repeatedly until it returns another status than NOT_READY, and return that
 * status, or ERR_TIMEOUT if the timeout expires first. */
int32_t vendor_poll(int32_t (*ask)(void *subject, struct ds_accel_error *error), void *subject,
                    uint64_t timeout_ns, const char *slot, struct ds_accel_error *error);

/* ---- devices (vendor_device.c) -------------------------------------------------------------- */

struct vendor_copier;
struct vendor_task;
struct vendor_keep;

/* The struct of device->frame. */
struct vendor_device {
    pthread_mutex_t lock;              /* guards the next three members */
    ds_accel_plugin_stream_t *streams; /* all streams of the device, the default stream included */
    ds_accel_plugin_stream_t *ended;   /* streams destroyed by the program before they were idle */
    struct vendor_copier *copiers;     /* idle streams for mem_copy */
    pthread_mutex_t task_lock;         /* guards the next five members; never held during a call of
                                          the runtime or of a task */
    struct vendor_task *pending;       /* host tasks queued in the runtime */
    struct vendor_task *running;       /* of those that were pending, the ones that run now */
    struct vendor_task *abandoned;     /* tasks that the frame runs itself, after a loss or at the
                                          close; they stay allocated until the device is stopped,
                                          as the runtime may still call them */
    struct vendor_keep *captures;      /* keeps (see below) of captures in progress */
    struct vendor_keep *orphans;       /* keeps of captured tasks whose capture is unknown */
    int32_t least_priority;
    int32_t greatest_priority;
    uint32_t is_identified;
    /* Guarded by instance->lock: */
    uint32_t is_started;    /* set from the first opening until the device is stopped */
    uint32_t drainer_count; /* threads that wait for the device's work before they stop it */
    pthread_cond_t drained; /* signalled when drainer_count falls */
    atomic_uint opening;    /* how often open_count rose from 0; also read without the lock */
};

/* Fill device->identity with the backend's identify(). */
int32_t vendor_device_identify(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
/* Allocate instance->devices and the frame of each device; -1: out of memory. */
int vendor_devices_create(ds_accel_plugin_instance_t *instance);
/* Stop the started devices that are closed; if the backend has a device_stop(), also those that the
 * program left open. */
void vendor_devices_stop(ds_accel_plugin_instance_t *instance);
void vendor_devices_destroy(ds_accel_plugin_instance_t *instance);
/*
 * Wait for all work of the device, including work of streams that the program made without the
 * plugin. If that would break captures of this process, wait for the plugin's streams one by one,
 * and write 0 to *is_complete_out; streams that capture have no work. slot is the caller's, for
 * messages. The backend has device_synchronize().
 */
int32_t vendor_device_wait(ds_accel_plugin_device_t *device, const char *slot, int *is_complete_out,
                           struct ds_accel_error *error);
/* Write the path of the PCI device's node in /dev/dri or /dev/accel that the pattern names, such as
 * "/dev/dri/renderD128"; "" if there is none. */
VENDOR_IF_LINKED void vendor_pci_node(const struct ds_accel_host *host,
                                      const struct vendor_pattern *pattern, const char *pci_address,
                                      char *path, size_t path_size);

/* ---- the register of addresses (vendor_block.c) --------------------------------------------- */

enum vendor_source {
    VENDOR_SOURCE_ALLOC = 1,  /* mem_alloc, mem_alloc_managed, mem_alloc_async */
    VENDOR_SOURCE_PINNED,     /* mem_alloc_pinned */
    VENDOR_SOURCE_REGISTERED, /* mem_register */
    VENDOR_SOURCE_MAPPED,     /* vmem_map */
    VENDOR_SOURCE_IMPORT,     /* ipc_memory_open */
    VENDOR_SOURCE_WRAPPED     /* native_wrap */
};

/* A block in the register can be used unless a thread is making it or releasing it. */
enum vendor_phase {
    VENDOR_PHASE_USABLE,
    VENDOR_PHASE_BEGINNING, /* being registered or mapped */
    VENDOR_PHASE_ENDING     /* being freed, unregistered or unmapped: other threads cannot use it */
};

/* One range of addresses. Blocks of one space never overlap. */
struct vendor_block {
    uintptr_t base; /* the program's pointer */
    uint64_t size_bytes;
    uint32_t space; /* vendor_block_space() */
    uint32_t kind;  /* DS_ACCEL_POINTER_* */
    enum vendor_source source;
    uint32_t flags; /* flags of mem_alloc_pinned or mem_register */
    ds_accel_plugin_device_t *device;
    void *start; /* the runtime's pointer; base may be above it, for alignment */
    uint64_t start_size_bytes;
    uint64_t id;                   /* unique in the plugin */
    uint32_t is_async;             /* allocated by mem_alloc_async */
    uint32_t open_count;           /* imports only: openings that are not closed */
    unsigned char *handle;         /* imports only: the vendor's IPC handle */
    struct vendor_export *exports; /* exported handles that become invalid with the block */
    ds_accel_plugin_vmem_t *vmem;  /* mappings only: the mapped memory */
    enum vendor_phase phase;
    struct vendor_block *next, *previous; /* all blocks of the register */
};

struct vendor_register;
struct vendor_register *vendor_register_create(void);
void vendor_register_destroy(struct vendor_register *blocks);
void vendor_register_lock(struct vendor_register *blocks);
void vendor_register_unlock(struct vendor_register *blocks);
/* Returns the number of the address space that holds memory of this kind. 0 is the space of host
 * memory; with DS_ACCEL_FLAG_UNIFIED_ADDRESSES it also contains device memory, otherwise each
 * device has a space of its own. If the backend sets allocates_in_registered, registered memory is
 * in a further space, which this function does not return. */
uint32_t vendor_block_space(const ds_accel_plugin_device_t *device, uint32_t kind);
/*
 * For the functions below, up to vendor_block_any(), the caller holds the register's lock.
 * vendor_block_find() returns the block that contains the address, vendor_block_overlap() any block
 * that overlaps the range; NULL: there is none. vendor_block_insert() inserts a block made with
 * vendor_block_create() and returns 0; -1: the range overlaps a block in the register; -2: out of
 * memory.
 */
struct vendor_block *vendor_block_find(const struct vendor_register *blocks, uint32_t space,
                                       const void *address);
/* The usable block that contains a program's address: device memory first (unless device is NULL),
 * then host memory, then registered memory. NULL: there is none. */
struct vendor_block *vendor_block_look_up(const struct vendor_register *blocks,
                                          const ds_accel_plugin_device_t *device,
                                          const void *address);
struct vendor_block *vendor_block_overlap(const struct vendor_register *blocks, uint32_t space,
                                          const void *address, uint64_t size_bytes);
/* Returns any block that overlaps the range, in the given space or in the space of registered
 * memory; NULL: there is none. */
struct vendor_block *vendor_block_overlap_any(const struct vendor_register *blocks, uint32_t space,
                                              const void *address, uint64_t size_bytes);
int vendor_block_insert(struct vendor_register *blocks, struct vendor_block *block);
/* A range of mappings that a call of vmem_set_access is changing; they cannot be unmapped before
 * the call ends. The struct is on the stack of that call. The caller of vendor_use_begin(),
 * vendor_use_end() and vendor_use_overlaps() holds the register's lock. */
struct vendor_use {
    struct vendor_use *next;
    uint32_t space;
    uintptr_t start;
    uintptr_t end;
};

void vendor_use_begin(struct vendor_register *blocks, struct vendor_use *use);
void vendor_use_end(struct vendor_register *blocks, const struct vendor_use *use);
int vendor_use_overlaps(const struct vendor_register *blocks, uint32_t space, uintptr_t address,
                        uint64_t size_bytes);
void vendor_block_remove(struct vendor_register *blocks, struct vendor_block *block);
/* Any block of the device that no thread has taken (vendor_block_take()), or NULL: there is none.
 * Used to free the remaining blocks when the device is closed. */
struct vendor_block *vendor_block_any(const struct vendor_register *blocks,
                                      const ds_accel_plugin_device_t *device);

/* Allocate a block with the given members, a new id and the space of its memory; the other members
 * are zero. NULL: out of memory. */
struct vendor_block *vendor_block_create(ds_accel_plugin_device_t *device,
                                         enum vendor_source source, uint32_t kind);
void vendor_block_destroy(struct vendor_block *block);
/*
 * Lock the register and insert the block; a failure fills the error and frees the block. Registered
 * memory and mappings are inserted before the runtime registers or maps them, so that no other
 * thread uses the addresses: vendor_block_confirm() makes them usable, vendor_block_end() removes
 * them again.
 */
int32_t vendor_block_enter(struct vendor_block *block, const char *slot,
                           struct ds_accel_error *error);
/*
 * To take a block is to make the calling thread the only one that may release it. Takes the block
 * that begins at the pointer, belongs to the device and has one of the sources (a set of
 * 1 << source); NULL: no such block. A block whose address the runtime chose leaves the register
 * now, since another thread's allocation may get that address as soon as the memory is freed. A
 * block whose address the program chose (registered memory, mappings) stays in the register until
 * vendor_block_end(), so that no thread can register or map the range before the runtime has
 * released it.
 */
struct vendor_block *vendor_block_take(ds_accel_plugin_device_t *device, const void *pointer,
                                       uint32_t sources);
/* Like vendor_block_take(), but memory that the runtime chose stays in the register too: such
 * memory is freed only after vendor_block_end(). */
struct vendor_block *vendor_block_take_in_order(ds_accel_plugin_device_t *device,
                                                const void *pointer, uint32_t sources);
/* Would vendor_block_take() find a block? */
int vendor_block_exists(ds_accel_plugin_device_t *device, const void *pointer, uint32_t sources);
/* Take a usable block that the caller has found; the caller holds the register's lock. */
void vendor_block_take_found(struct vendor_register *blocks, struct vendor_block *block);
void vendor_block_confirm(struct vendor_block *block);
/* Undo vendor_block_take(), because the runtime failed to free the memory. If the block cannot be
 * inserted again, the call logs that and destroys it. */
void vendor_block_put_back(struct vendor_block *block);
/* Remove a taken block, or a block that was not confirmed, from the register if it is still there,
 * and destroy it. NULL is ignored. */
void vendor_block_end(struct vendor_block *block);

/* ---- usage counters (vendor_usage.c) -------------------------------------------------------- */

struct vendor_usage *vendor_usage_create(void);
void vendor_usage_destroy(struct vendor_usage *usage);
void vendor_usage_reset(struct vendor_usage *usage);
/* For a device that is opened again: resets the limit and the counts, and sets the peaks to the
 * bytes that are still allocated. */
void vendor_usage_reopen(struct vendor_usage *usage);
/* Reserve the bytes for an allocation: 0, or -1 if they would exceed the limit. */
int vendor_usage_add(struct vendor_usage *usage, uint64_t size_bytes);
void vendor_usage_succeed(struct vendor_usage *usage); /* the allocation was made */
void vendor_usage_fail(struct vendor_usage *usage, uint64_t size_bytes, int32_t status);
void vendor_usage_subtract(struct vendor_usage *usage, uint64_t size_bytes); /* memory was freed */
/* Returns ERR_NO_MEMORY for a size that exceeds the limit or can never be allocated. Counts the
 * failure, and writes requested, allocated and limit sizes to the error's message. */
int32_t vendor_usage_refuse(ds_accel_plugin_device_t *device, uint64_t size_bytes, const char *slot,
                            struct ds_accel_error *error);

/* ---- streams, tasks and what captures keep (vendor_stream.c, vendor_task.c) ------------------ */

/* The struct of stream->frame. */
struct vendor_stream {
    ds_accel_plugin_stream_t *next, *previous; /* list in vendor_device, guarded by its lock */
    struct vendor_keep *_Atomic capture; /* keep of the capture that graph_capture_begin started,
                                            or NULL; other threads read it while they wait for the
                                            device or mark the stream */
};

/* A keep: the objects that a graph needs as long as it can be launched, which are host tasks and
 * buffers of fill patterns. Reference-counted. */
struct vendor_keep {
    struct vendor_keep *next; /* in the list captures or orphans of the device */
    atomic_uint references;
    ds_accel_plugin_device_t *device;
    pthread_mutex_t lock; /* guards items */
    struct vendor_task *items;
    pthread_t thread; /* of a capture: the thread that began it, and its mode */
    uint32_t mode;
};

ds_accel_plugin_stream_t *vendor_stream_handle_create(ds_accel_plugin_device_t *device,
                                                      void *native);
/* Free the handle, but not the native stream. */
void vendor_stream_handle_destroy(ds_accel_plugin_stream_t *stream);
/* Make and destroy the default stream. */
int32_t vendor_stream_open_default(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
void vendor_stream_close_default(ds_accel_plugin_device_t *device);
/* ERR_UNSUPPORTED for an event that the runtime rejects in a capture. */
int32_t vendor_check_captured(const ds_accel_plugin_event_t *event, const char *slot,
                              struct ds_accel_error *error);
/* Writes 1 to *is_capturing_out if work that is queued now would be captured, otherwise 0. While no
 * stream of the instance captures, most calls return without a query of the runtime. */
int32_t vendor_stream_is_capturing(ds_accel_plugin_stream_t *stream, uint32_t *is_capturing_out,
                                   struct ds_accel_error *error);
int32_t vendor_stream_wait(ds_accel_plugin_stream_t *stream, uint64_t timeout_ns, const char *slot,
                           struct ds_accel_error *error);
/* Make the stream wait for an event, as stream_wait_event does. */
int32_t vendor_stream_wait_for(ds_accel_plugin_stream_t *stream, ds_accel_plugin_event_t *event,
                               const char *slot, struct ds_accel_error *error);
/* Returns DS_ACCEL_OK if all streams of the device are idle, destroyed streams included, or if the
 * backend has no stream_query(). Returns NOT_READY, or an error, of the first stream that is not
 * idle. Streams that capture are ignored. */
int32_t vendor_streams_query(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
/* Destroy the native streams of destroyed handles whose work is complete; a call queries at most 16
 * busy streams. Does nothing during a capture, or if the backend sets ends_streams_late. */
void vendor_streams_reap(ds_accel_plugin_device_t *device);
void vendor_streams_destroy(ds_accel_plugin_device_t *device);

/* Queue a host task on the stream. If the stream captures, the task runs with each launch of the
 * graph instead, and stays allocated as long as the graph can be launched. */
int32_t vendor_task_submit(ds_accel_plugin_stream_t *stream, ds_accel_host_task_t task,
                           void *user_data, struct ds_accel_error *error);
/*
 * Keep a buffer of malloc() until queued work has used it. Before the work is queued,
 * vendor_task_holding() makes a task that owns the buffer, so that no later step can run out of
 * memory. If the work is captured, vendor_task_keep() gives the task to the graph before the work
 * is queued; otherwise vendor_task_hold(), called after it is queued, keeps the task until the
 * stream has completed the work. Both functions take ownership of the task.
 */
struct vendor_task *vendor_task_holding(ds_accel_plugin_device_t *device, void *memory);
void vendor_task_destroy(struct vendor_task *task); /* if no work was queued */
int32_t vendor_task_keep(ds_accel_plugin_stream_t *stream, struct vendor_task *task,
                         struct ds_accel_error *error);
int32_t vendor_task_hold(ds_accel_plugin_stream_t *stream, struct vendor_task *task,
                         struct ds_accel_error *error);
/* Run, on the calling thread and with the given status, the tasks that are still queued in the
 * runtime since the given opening of the device or an earlier opening. */
#define VENDOR_ANY_OPENING UINT32_MAX
void vendor_tasks_abandon(ds_accel_plugin_device_t *device, unsigned opening, int32_t status);
/*
 * Called by a wait that finds the device lost, before it returns the error: waits until no other
 * thread (of the runtime, or in vendor_tasks_abandon()) runs a task of the stream (NULL: of the
 * device), or until the timeout expires.
 */
void vendor_tasks_settle(ds_accel_plugin_device_t *device, const ds_accel_plugin_stream_t *stream,
                         uint64_t timeout_ns);
/* Wait for the running and abandoned tasks that were queued in the opening or before it. */
void vendor_tasks_finish(ds_accel_plugin_device_t *device, unsigned opening);
/* Returns true if the runtime has queued tasks of the device, or runs one. */
int vendor_tasks_are_pending(ds_accel_plugin_device_t *device);
/* Like vendor_tasks_are_pending(), but also true while an abandoned task has not ended. */
int vendor_tasks_are_left(ds_accel_plugin_device_t *device);
/* Does the calling thread run a task of one of the instance's devices? */
int vendor_tasks_run_here(ds_accel_plugin_instance_t *instance);
/* Free the tasks that are left; the runtime must not call a task any more. */
void vendor_tasks_destroy(ds_accel_plugin_device_t *device);

struct vendor_keep *vendor_keep_create(ds_accel_plugin_device_t *device);
void vendor_keep_get(struct vendor_keep *keep);
void vendor_keep_put(struct vendor_keep *keep);
int vendor_keep_is_empty(struct vendor_keep *keep);
/* Called when a capture of the stream begins (open) and ends (close). vendor_keep_close() returns
 * the keep with the objects of the captured work, whose reference the caller owns; NULL if
 * graph_capture_begin did not begin the capture. */
int32_t vendor_keep_open(ds_accel_plugin_stream_t *stream, uint32_t mode, const char *slot,
                         struct ds_accel_error *error);
/* The number of streams that capture now, counted over all instances of this process. */
unsigned vendor_capture_count(void);
/* Returns a number that changes when a capture begins while this process has no other one. */
uint64_t vendor_capture_era(void);
/* No capture begins while the lock is held, for example between the check that a stream does not
 * capture and a query, which would break its capture. */
void vendor_captures_lock(void);
void vendor_captures_unlock(void);
/*
 * The same for a device_synchronize() that breaks captures: waits share this lock, and a capture
 * that begins excludes them, before vendor_captures_lock().
 */
void vendor_waits_lock(void);
void vendor_waits_unlock(void);
void vendor_waits_exclude(void);
struct vendor_keep *vendor_keep_close(ds_accel_plugin_stream_t *stream);
/* For the launch of a graph on a stream that captures: the graph being captured takes a reference
 * to keep, the keep of the launched graph. */
int32_t vendor_keep_in_capture(struct vendor_keep *keep, ds_accel_plugin_stream_t *stream,
                               struct ds_accel_error *error);
/* For any other launch: holds a reference to the keep until the stream has completed the launch. */
int32_t vendor_keep_until_passed(struct vendor_keep *keep, ds_accel_plugin_stream_t *stream,
                                 struct ds_accel_error *error);

/* ---- events (vendor_event.c) ---------------------------------------------------------------- */

#define VENDOR_EVENT_NEVER 0u
#define VENDOR_EVENT_RECORDED 1u
#define VENDOR_EVENT_CAPTURED 2u

ds_accel_plugin_event_t *vendor_event_handle_create(ds_accel_plugin_device_t *device,
                                                    uint32_t flags, void *native);
void vendor_event_handle_destroy(ds_accel_plugin_event_t *event);
uint32_t vendor_event_state(ds_accel_plugin_event_t *event);

/* ---- memory --------------------------------------------------------------------------------- */

/* Call the backend's memory_wait(), if it has one, before a block is taken. */
int32_t vendor_memory_wait(ds_accel_plugin_device_t *device, const char *slot,
                           struct ds_accel_error *error);
/* Free the memory of a taken block in the runtime, and destroy the block; if the runtime fails, put
 * the block back. */
int32_t vendor_memory_free(struct vendor_block *block, struct ds_accel_error *error);
/* Like vendor_memory_free(), but if the runtime fails, the block is destroyed too: the memory is
 * leaked. */
void vendor_memory_forget(struct vendor_block *block);
/* Free the remaining blocks of a device; returns their number, and adds their sizes, without those
 * of pinned and registered memory, to *bytes_out. */
uint32_t vendor_memory_free_all(ds_accel_plugin_device_t *device, uint64_t *bytes_out);
VENDOR_IF_LINKED void
vendor_share_withdraw(struct vendor_block *block); /* only for blocks with exports */
void vendor_vmem_put(ds_accel_plugin_vmem_t *vmem);
void vendor_copiers_destroy(ds_accel_plugin_device_t *device);

/* ---- the slots ------------------------------------------------------------------------------ */

void vendor_device_fill(struct ds_accel_plugin *table);
void vendor_stream_fill(struct ds_accel_plugin *table);
void vendor_event_fill(struct ds_accel_plugin *table);
void vendor_memory_fill(struct ds_accel_plugin *table);
void vendor_usage_fill(struct ds_accel_plugin *table);
void vendor_work_fill(struct ds_accel_plugin *table);
void vendor_vmem_fill(struct ds_accel_plugin *table);
void vendor_graph_fill(struct ds_accel_plugin *table);
/* Size of a program's IPC memory handle, the frame's header included (vendor_share.c); 0: the
 * backend has no such handles. */
VENDOR_IF_LINKED uint32_t vendor_handle_bytes(void);
VENDOR_IF_LINKED void vendor_share_fill(struct ds_accel_plugin *table);
void vendor_facts_fill(struct ds_accel_plugin *table);
VENDOR_IF_LINKED void vendor_visible_fill(struct ds_accel_plugin *table);
VENDOR_IF_LINKED void vendor_native_fill(struct ds_accel_plugin *table);

#endif
