/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Handles of devices, streams, events, graphs, pools, timers, generators and tensors: handle.c. */
#ifndef DS_ACCEL_RUNTIME_HANDLE_H
#define DS_ACCEL_RUNTIME_HANDLE_H

#include "base/private.h"
#include "ds_accel.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct ds_accel__allocator;
struct ds_accel__arena;
struct ds_accel__candidate;
struct ds_accel__pinned;
struct ds_accel__pinned_end;
struct ds_accel__private;

enum ds_accel__handle_kind {
    DS_ACCEL__HANDLE_DEVICE,
    DS_ACCEL__HANDLE_STREAM,
    DS_ACCEL__HANDLE_EVENT,
    DS_ACCEL__HANDLE_GRAPH,
    DS_ACCEL__HANDLE_POOL,
    DS_ACCEL__HANDLE_TIMER,
    DS_ACCEL__HANDLE_RNG,
    DS_ACCEL__HANDLE_TENSOR,
    DS_ACCEL__HANDLE_COUNT
};

struct ds_accel__device;

/* The private part common to all handles; follows the public part in ds_accel.h. */
struct ds_accel__child {
    /* unique in the process, never reused; 0: the object was destroyed */
    uint64_t id;
    struct ds_accel__device *device; /* the object's device; NULL if the object is a device */
    /* links in the device's list of children, guarded by device->lock */
    struct ds_accel__child *next;
    struct ds_accel__child *previous;
    enum ds_accel__handle_kind kind;
    bool is_listed; /* the object is in the device's list of children */
};

struct ds_accel__stream {
    struct ds_accel_stream abi;
    struct ds_accel__child child;
    /* the device's default stream, or the vendor's current stream; the program never destroys it */
    bool is_borrowed;
    bool is_wrapped; /* wraps the program's native stream, which outlives this handle */
    /* value of captures.process (captures.c) when this stream's capture was counted; 0: not
     * counted; atomic */
    uint32_t counted;
    /* the stream's memory; NULL until the stream first uses the allocator; atomic */
    struct ds_accel__arena *arena;
};

struct ds_accel__event {
    struct ds_accel_event abi;
    struct ds_accel__child child;
};

/* A pool's table only shows whether the pool was destroyed. */
struct ds_accel__pool {
    const struct ds_accel_plugin *table;
    struct ds_accel__child child;
    struct ds_accel__private *memory; /* the allocator's pool */
};

struct ds_accel__graph {
    const struct ds_accel_plugin *table;
    ds_accel_plugin_graph_t
        *captured; /* NULL: nothing was captured, or the runtime has only an executable graph */
    ds_accel_plugin_graph_exec_t *exec; /* NULL: not instantiated */
    struct ds_accel__child child;
    struct ds_accel__stream *capturing; /* the stream while it is being captured */
    uint64_t capturing_id;            /* the stream's id, to detect that the stream was destroyed */
    struct ds_accel__private *memory; /* the pool that the capture allocated from; NULL: none */
    /* event after the latest replay on a stream that is not the capturing stream; or NULL */
    ds_accel_plugin_event_t *replayed;
    /* the event replayed was recorded, and no thread has waited for it yet */
    bool is_replaying;
    pthread_mutex_t lock; /* guards all above but table and child */
};

/* A timer's table only shows whether the timer was destroyed. */
struct ds_accel__timer {
    const struct ds_accel_plugin *table;
    struct ds_accel__child child;
    ds_accel_event_t *start; /* NULL: the timer uses the host's clock */
    ds_accel_event_t *end;
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t state;
};

/* A block of host memory that a generator fills with numbers and copies to the device. */
struct ds_accel__staging {
    void *memory;   /* NULL: not yet allocated */
    bool is_pinned; /* false: the device has no pinned memory, and the block is on the heap */
    /* reached when the last copy from this block is complete; NULL: not created yet, or the runtime
     * has no events */
    ds_accel_event_t *event;
};

struct ds_accel__rng {
    const struct ds_accel_plugin *table;
    struct ds_accel__child child;
    uint32_t flags;       /* DS_ACCEL_RNG_* */
    pthread_mutex_t lock; /* guards the members below */
    uint64_t seed;
    uint64_t subsequence;
    uint64_t block;
    uint32_t word;
    struct ds_accel__staging staging[2];
    uint32_t turn; /* counts the uses of staging blocks, which alternate */
};

/* The memory that tensors share. */
struct ds_accel__storage {
    uint64_t reference_count;
    void *base; /* NULL: the tensors have no elements */
    uint64_t size_bytes;
    struct ds_accel__device *device; /* the storage keeps this device open; NULL: host memory */
    uint32_t place;                  /* DS_ACCEL_PLACE_* */
    uint32_t flags;                  /* DS_ACCEL_TENSOR_READ_ONLY, COPIED */
    bool is_host_accessible;
    bool is_foreign; /* the deleter releases the memory; otherwise free_memory() does */
    void (*deleter)(void *user_data);
    void *user_data;
};

struct ds_accel__tensor {
    const struct ds_accel_plugin *table;
    struct ds_accel__child child;
    uint32_t reference_count;
    uint32_t dtype;
    uint32_t ndim;
    struct ds_accel__storage *storage;
    uint64_t offset_bytes; /* offset of the first element in the storage */
    uint64_t element_count;
    int64_t shape[DS_ACCEL_TENSOR_DIMS_MAX];
    int64_t strides[DS_ACCEL_TENSOR_DIMS_MAX];
};

struct ds_accel__device {
    struct ds_accel_device abi;
    struct ds_accel__child child;
    ds_accel_t *context;
    struct ds_accel__candidate *candidate;
    uint32_t index;
    uint32_t open_count; /* number of openings; guarded by context->device_lock */
    bool has_reference;  /* the context opened the device itself: ds_accel_device_get() */
    /* whether host code may access the device's memory: 1 yes, 2 no, 0 unknown; atomic */
    uint8_t host_access;
    /* number of tensor storages that also keep the device open; guarded by context->device_lock */
    uint64_t storage_count;
    struct ds_accel__stream
        *default_stream; /* NULL until its first use; always read and written atomically */
    /* NULL until its first use; set under context->device_lock; atomic */
    struct ds_accel__rng *default_rng;
    struct ds_accel__allocator *allocator; /* NULL until its first use; atomic */
    /* Guards the list of children, the creation of allocator and pinned, and the members below that
     * refer to it. Initialized when the device is opened, destroyed when it is closed. */
    pthread_mutex_t lock;
    struct ds_accel__child *children;
    /* created on first use, with lock held; NULL: no pinned memory yet */
    struct ds_accel__pinned *pinned;
    /* link in the list of open devices of all contexts; guarded by open_lock in pinned_uses.c */
    struct ds_accel__device *next_open;
    /* a stream that is not wrapped was destroyed with work left; guarded by lock */
    bool has_ended_work;
    /* ends of the work of wrapped streams whose handles were destroyed; guarded by lock */
    struct ds_accel__pinned_end *ends;
    /* Value of captures.process (captures.c) when this device was counted; 0: not counted; atomic.
     * A device is counted if another library has a stream of the device, or if this library wraps a
     * stream that belongs to the program: the other library or the program may then begin a
     * capture. */
    uint32_t may_capture;
};

/* Allocate a zeroed handle and set its kind, device and id; the caller sets the table. NULL: out of
 * memory. The memory of a destroyed handle stays a handle, whose table of functions returns an
 * error from each function. */
void *ds_accel__handle_take(enum ds_accel__handle_kind kind, struct ds_accel__device *device);
void ds_accel__handle_put(enum ds_accel__handle_kind kind, void *handle);
/* Whether the handle is neither NULL nor destroyed. */
bool ds_accel__handle_is_live(const void *handle);
void *ds_accel__child_handle(const struct ds_accel__child *child);
/* Add a child to, or remove it from, the list of handles that closing the device destroys. False:
 * another thread has already removed the child, and destroys it. */
void ds_accel__child_add(struct ds_accel__child *child);
bool ds_accel__child_remove(struct ds_accel__child *child);
/* Return the device's newest child of a kind, or NULL. */
struct ds_accel__child *ds_accel__child_first(struct ds_accel__device *device,
                                              enum ds_accel__handle_kind kind);

/* ---- device_find.c -------------------------------------------------------------------------- */

/* Return the candidate of the chosen accelerator. out: the caller's output pointer, which is
 * checked for NULL. */
int32_t ds_accel__chosen_get(const ds_accel_t *context, const void *out,
                             struct ds_accel__candidate **chosen_out);
int32_t ds_accel__device_index_check(const ds_accel_t *context,
                                     const struct ds_accel__candidate *candidate,
                                     uint32_t device_index);
/* Set the calling thread's current device, for a runtime without a current device. */
void ds_accel__current_device_keep(const ds_accel_t *context, uint32_t device_index);

/* ---- device_check.c, stream.c --------------------------------------------------------------- */

/* Return the private part of a handle; NULL, with the error set, if the handle is not live. call:
 * name of the public function for the error, such as "mem_alloc". */
struct ds_accel__device *ds_accel__device_check(ds_accel_device_t *device, const char *call);
struct ds_accel__stream *ds_accel__stream_check(ds_accel_stream_t *stream, const char *call);
/* Like ds_accel__stream_check(), for a stream of this device; stream NULL: the calling thread's
 * current stream. */
struct ds_accel__stream *ds_accel__stream_of(struct ds_accel__device *device,
                                             ds_accel_stream_t *stream, const char *call);
/* Wait for the stream's work; if the backend has no streams, for the device's work. */
int32_t ds_accel__stream_wait(struct ds_accel__stream *stream);
/* Return whether the stream captures; a capture that the runtime reports as broken counts too. */
int32_t ds_accel__stream_is_capturing(struct ds_accel__stream *stream, bool *is_capturing_out);
/* Fail if a host task makes this call and layer validate forbids it. */
int32_t ds_accel__task_check(void);
/* Like ds_accel__task_check(), but fail also if a parent process started the accelerator before
 * fork(). */
int32_t ds_accel__device_fork_check(const struct ds_accel__device *device);
/* Whether a call that returns no status may destroy an object of the device. False in a forked
 * child, without a message, and if ds_accel__end_is_refused() returns true. */
bool ds_accel__device_lets_end(const struct ds_accel__device *device, const char *call);
/* Whether host code may access the device's memory. */
bool ds_accel__device_is_host_accessible(struct ds_accel__device *device);
/* Get the runtime's description of an address; false: the runtime has none. */
bool ds_accel__device_pointer_info(struct ds_accel__device *device, const void *pointer,
                                   struct ds_accel_pointer_info *info_out);
/* Keep the device open and its context alive until ds_accel__device_release(). */
void ds_accel__device_hold(struct ds_accel__device *device);
void ds_accel__device_release(struct ds_accel__device *device);
/* Close all open devices of the context, however often they were opened, except those that a tensor
 * storage keeps open. In a forked child, inherited devices are not closed. */
void ds_accel__devices_close(ds_accel_t *context);
void ds_accel__stream_destroy(struct ds_accel__stream *stream);
void ds_accel__event_destroy(struct ds_accel__event *event);
void ds_accel__graph_destroy(struct ds_accel__graph *graph);
void ds_accel__timer_destroy(struct ds_accel__timer *timer);
void ds_accel__pool_destroy(struct ds_accel__pool *pool);

#endif
