/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Handles of devices, streams, events, graphs, memory: handle.c. */
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
    uint64_t id;                     /* unique in the process, never reused; 0: destroyed */
    struct ds_accel__device *device; /* the handle's device; NULL for a device */
    struct ds_accel__child *next;    /* of the device's, under its lock */
    struct ds_accel__child *previous;
    enum ds_accel__handle_kind kind;
    bool is_listed; /* in the device's list of children */
};

struct ds_accel__stream {
    struct ds_accel_stream abi;
    struct ds_accel__child child;
    bool is_borrowed; /* the device's default stream, or the vendor's current stream: never
                         destroyed here */
    bool is_wrapped;  /* wraps the program's native stream, which outlives this handle */
    uint32_t counted; /* process in which captures.c counts it; 0: not counted; atomic */
    struct ds_accel__arena *arena; /* its memory; NULL until its first allocation; atomic */
};

struct ds_accel__event {
    struct ds_accel_event abi;
    struct ds_accel__child child;
};

/* A pool's table only shows whether the pool was destroyed. */
struct ds_accel__pool {
    const struct ds_accel_plugin *table;
    struct ds_accel__child child;
    struct ds_accel__private *memory; /* the allocator's part */
};

struct ds_accel__graph {
    const struct ds_accel_plugin *table;
    ds_accel_plugin_graph_t
        *captured; /* NULL: nothing captured, or the runtime has one object for both */
    ds_accel_plugin_graph_exec_t *exec; /* NULL: not instantiated */
    struct ds_accel__child child;
    struct ds_accel__stream *capturing; /* the stream while it is being captured */
    uint64_t capturing_id;            /* the stream's id, to detect that the stream was destroyed */
    struct ds_accel__private *memory; /* the pool that the capture allocated from; NULL: none */
    ds_accel_plugin_event_t *replayed; /* the end of the latest replay on another stream, or NULL */
    bool is_replaying;                 /* the event is recorded, and no thread has waited for it */
    pthread_mutex_t lock;              /* guards all above but table and child */
};

/* A timer's table only shows whether the timer was destroyed. */
struct ds_accel__timer {
    const struct ds_accel_plugin *table;
    struct ds_accel__child child;
    ds_accel_event_t *start; /* NULL: by the host's clock */
    ds_accel_event_t *end;
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t state;
};

/* A block of host memory from which a generator copies numbers to the device. */
struct ds_accel__staging {
    void *memory;   /* NULL: not yet allocated */
    bool is_pinned; /* false: the device has no pinned memory, and the block is on the heap */
    ds_accel_event_t *event; /* reached when the last copy from it is done; NULL: none is waiting */
};

struct ds_accel__rng {
    const struct ds_accel_plugin *table;
    struct ds_accel__child child;
    uint32_t flags;       /* DS_ACCEL_RNG_* */
    pthread_mutex_t lock; /* guards what follows */
    uint64_t seed;
    uint64_t subsequence;
    uint64_t block;
    uint32_t word;
    struct ds_accel__staging staging[2];
    uint32_t turn; /* index of the next staging block */
};

/* The memory that tensors share. */
struct ds_accel__storage {
    uint64_t reference_count;
    void *base; /* NULL: no element */
    uint64_t size_bytes;
    struct ds_accel__device *device; /* held open; NULL: host memory */
    uint32_t place;                  /* DS_ACCEL_PLACE_* */
    uint32_t flags;                  /* DS_ACCEL_TENSOR_READ_ONLY, COPIED */
    bool is_host_accessible;
    bool is_foreign; /* released by the deleter; else by free_memory() */
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
    uint64_t offset_bytes; /* of the first element in the storage */
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
    uint32_t open_count;    /* under the context's device_lock */
    bool has_reference;     /* one opening is the context's own: ds_accel_device_get() */
    uint8_t host_access;    /* the host can write its memory: 1 yes, 2 no, 0 unknown; atomic */
    uint64_t storage_count; /* tensors' storages that also hold it open; under device_lock */
    struct ds_accel__stream
        *default_stream;               /* NULL until its first use; read and set as an atomic */
    struct ds_accel__rng *default_rng; /* set under device_lock; NULL until its first use; atomic */
    struct ds_accel__allocator *allocator; /* NULL until the first allocation; atomic */
    /* Guards the children: created at the first opening, and kept as long as the handle's
     * memory. */
    pthread_mutex_t lock;
    struct ds_accel__child *children;
    struct ds_accel__pinned *pinned;    /* created on first use, under lock; NULL: none */
    struct ds_accel__device *next_open; /* of all contexts', under open_lock of pinned_uses.c */
    bool has_ended_work; /* of a stream that was destroyed with work left; under lock */
    struct ds_accel__pinned_end *ends; /* of streams wrapped from the program; under lock */
    /* Another library has a stream of this device, or this library wraps one of its streams, and it
     * may begin a capture: the process in which captures.c counts the device; 0: not counted;
     * atomic. */
    uint32_t may_capture;
};

/* Zeroed, with kind, device and id; the caller sets the table. NULL: out of memory. The memory of a
 * destroyed handle stays a handle, with a table whose functions return an error. */
void *ds_accel__handle_take(enum ds_accel__handle_kind kind, struct ds_accel__device *device);
void ds_accel__handle_put(enum ds_accel__handle_kind kind, void *handle);
/* Neither NULL nor destroyed. */
bool ds_accel__handle_is_live(const void *handle);
void *ds_accel__child_handle(const struct ds_accel__child *child);
/* Add to, and remove from, the list of handles that closing the device destroys. False: already
 * removed, so that another thread destroys it. */
void ds_accel__child_add(struct ds_accel__child *child);
bool ds_accel__child_remove(struct ds_accel__child *child);
/* The device's newest child of a kind, or NULL. */
struct ds_accel__child *ds_accel__child_first(struct ds_accel__device *device,
                                              enum ds_accel__handle_kind kind);

/* ---- device_find.c -------------------------------------------------------------------------- */

/* The chosen candidate. out: the caller's output pointer, checked for NULL. */
int32_t ds_accel__chosen_get(const ds_accel_t *context, const void *out,
                             struct ds_accel__candidate **chosen_out);
int32_t ds_accel__device_index_check(const ds_accel_t *context,
                                     const struct ds_accel__candidate *candidate,
                                     uint32_t device_index);
/* Set the calling thread's current device, for a runtime without a current device. */
void ds_accel__current_device_keep(const ds_accel_t *context, uint32_t device_index);

/* ---- device_check.c, stream.c --------------------------------------------------------------- */

/* The private part of a handle, or NULL with the error set. call: "mem_alloc". */
struct ds_accel__device *ds_accel__device_check(ds_accel_device_t *device, const char *call);
struct ds_accel__stream *ds_accel__stream_check(ds_accel_stream_t *stream, const char *call);
/* The same for a stream of this device; stream NULL: the calling thread's current stream. */
struct ds_accel__stream *ds_accel__stream_of(struct ds_accel__device *device,
                                             ds_accel_stream_t *stream, const char *call);
/* Wait for the stream's work; for a backend without streams, the device's work. */
int32_t ds_accel__stream_wait(struct ds_accel__stream *stream);
/* Whether the stream captures, including a broken capture. */
int32_t ds_accel__stream_is_capturing(struct ds_accel__stream *stream, bool *is_capturing_out);
/* Fail if a host task makes this call and layer validate forbids it. */
int32_t ds_accel__task_check(void);
/* The same, and fail if a parent process started the accelerator before fork(). */
int32_t ds_accel__device_fork_check(const struct ds_accel__device *device);
/* May a call without a status destroy an object of the device? False in a forked child, without a
 * message, and where ds_accel__end_is_refused() is true. */
bool ds_accel__device_lets_end(const struct ds_accel__device *device, const char *call);
/* Whether host code may access the device's memory. */
bool ds_accel__device_is_host_accessible(struct ds_accel__device *device);
/* The runtime's description of an address; false: the runtime does not know it. */
bool ds_accel__device_pointer_info(struct ds_accel__device *device, const void *pointer,
                                   struct ds_accel_pointer_info *info_out);
/* Keep the device open, and its context alive. */
void ds_accel__device_hold(struct ds_accel__device *device);
void ds_accel__device_release(struct ds_accel__device *device);
/* Close the context's own openings. */
void ds_accel__devices_close(ds_accel_t *context);
void ds_accel__stream_destroy(struct ds_accel__stream *stream);
void ds_accel__event_destroy(struct ds_accel__event *event);
void ds_accel__graph_destroy(struct ds_accel__graph *graph);
void ds_accel__timer_destroy(struct ds_accel__timer *timer);
void ds_accel__pool_destroy(struct ds_accel__pool *pool);

#endif
