/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Hooks through which the library calls the layers between caller and plugin. core/layers sets
 * them.
 */
#ifndef DS_ACCEL_HOST_LAYERS_H
#define DS_ACCEL_HOST_LAYERS_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

struct ds_accel__candidate;

struct ds_accel__stack;
struct ds_accel__device;
struct ds_accel__stream;

struct ds_accel__work;

/*
 * The layers' functions that the library calls, through the inline functions below. The comments of
 * the inline functions describe the layers' functions, too.
 */
struct ds_accel__layer_hooks {
    int32_t (*install)(struct ds_accel__candidate *candidate);
    void (*remove)(struct ds_accel__candidate *candidate);
    bool (*problem)(const char *list, char *problem, size_t problem_size);
    bool (*in_task)(void);
    bool (*end_is_refused)(const ds_accel_t *context, const char *call);
    void (*own)(bool is_begun);
    const struct ds_accel_plugin *(*below)(const struct ds_accel__candidate *candidate);
    void (*host_idle)(ds_accel_plugin_device_t *device, const void *pointer, uint64_t size_bytes);
    void (*stream_ours)(ds_accel_plugin_stream_t *stream);
    void (*span_begin)(struct ds_accel__candidate *candidate, const char *category,
                       const char *name);
    void (*span_end)(struct ds_accel__candidate *candidate);
    void (*block_alloc)(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                        ds_accel_plugin_stream_t *stream);
    void (*block_free)(ds_accel_plugin_device_t *device, void *pointer,
                       ds_accel_plugin_stream_t *stream);
    void (*capture_pool)(ds_accel_plugin_device_t *device, ds_accel_plugin_stream_t *stream,
                         uint64_t pool);
    void (*host_block)(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes);
    int32_t (*host_task)(struct ds_accel__stream *stream, ds_accel_host_task_t task,
                         void *user_data, const struct ds_accel__work *work,
                         struct ds_accel_error *error);
    int32_t (*host_work)(struct ds_accel__device *device, const struct ds_accel__work *work);
};

/* Set by layers/layer.c when the library is loaded. */
extern const struct ds_accel__layer_hooks *ds_accel__layer_hooks;

static inline bool ds_accel__has_layers(void)
{
    return __builtin_expect(__atomic_load_n(&ds_accel__layers_on, __ATOMIC_ACQUIRE) != 0, 0);
}

/*
 * Install the layers that the environment, or else the configuration, specifies over the table of a
 * plugin that is about to be started. Without layers, do nothing. ERR_NO_MEMORY. A layer that
 * cannot work is skipped with a warning.
 */
static inline int32_t ds_accel__layers_install(struct ds_accel__candidate *candidate)
{
    return ds_accel__layer_hooks->install(candidate);
}

/* Remove the layers after shutdown: report leaks, complete the trace. */
static inline void ds_accel__layers_remove(struct ds_accel__candidate *candidate)
{
    ds_accel__layer_hooks->remove(candidate);
}

/*
 * Describe the error in a list of layers in the format of DS_ACCEL_LAYERS. False if the list is
 * valid.
 */
static inline bool ds_accel__layers_problem(const char *list, char *problem, size_t problem_size)
{
    return ds_accel__layer_hooks->problem(list, problem, problem_size);
}

/* True if the calling thread runs a host task and layer validate is on. */
static inline bool ds_accel__layers_in_task(void)
{
    return ds_accel__layer_hooks->in_task();
}

/*
 * True if a call that returns no status and destroys an object was made in a host task while layer
 * validate is on. Reports that the call was skipped; the caller leaves the object unchanged, to be
 * destroyed later.
 */
static inline bool ds_accel__end_is_refused(const ds_accel_t *context, const char *call)
{
    return ds_accel__has_layers() && ds_accel__layer_hooks->end_is_refused(context, call);
}

/*
 * Mark the begin and the end of a wait or query that the library makes for its own bookkeeping. The
 * race detector sees the call, which orders the work that it waits for. Layer validate does not
 * reject the call, even if a capture in another stream forbids such calls. Marks nest.
 */
static inline void ds_accel__layers_own(bool is_begun)
{
    ds_accel__layer_hooks->own(is_begun);
}

static inline void ds_accel__layers_own_begin(void)
{
    if (ds_accel__has_layers()) {
        ds_accel__layers_own(true);
    }
}

static inline void ds_accel__layers_own_end(void)
{
    if (ds_accel__has_layers()) {
        ds_accel__layers_own(false);
    }
}
/*
 * Return the plugin's table below the layers. The race detector does not see calls through this
 * table, so they do not order work for it.
 */
static inline const struct ds_accel_plugin *
ds_accel__layers_below(const struct ds_accel__candidate *candidate)
{
    return ds_accel__layer_hooks->below(candidate);
}

/*
 * Report that no work queued by the library's own streams uses these bytes of host memory any
 * longer. The device's allocator has ensured that.
 */
static inline void ds_accel__layer_host_idle(ds_accel_plugin_device_t *device, const void *pointer,
                                             uint64_t size_bytes)
{
    if (ds_accel__has_layers()) {
        ds_accel__layer_hooks->host_idle(device, pointer, size_bytes);
    }
}

/* Report that the library now has a handle of this plugin stream and queries it. */
static inline void ds_accel__layer_stream_ours(ds_accel_plugin_stream_t *stream)
{
    if (ds_accel__has_layers()) {
        ds_accel__layer_hooks->stream_ours(stream);
    }
}

/*
 * span_begin begins, and span_end ends, a span that a plugin reports. It is recorded if there is a
 * trace.
 */
static inline void ds_accel__layers_span_begin(struct ds_accel__candidate *candidate,
                                               const char *category, const char *name)
{
    ds_accel__layer_hooks->span_begin(candidate, category, name);
}

static inline void ds_accel__layers_span_end(struct ds_accel__candidate *candidate)
{
    ds_accel__layer_hooks->span_end(candidate);
}

/*
 * block_alloc reports that an allocator hands out a block, a part of an allocation, for use on a
 * stream (NULL: by the host); block_free reports that the allocator gets the block back. Without
 * layers, they do nothing. From block_alloc on, the block's bounds are checked; after block_free,
 * accesses to its memory are rejected until it is handed out again, so an allocator that poisons
 * the memory does so before block_free.
 */
static inline void ds_accel__layer_block_alloc(ds_accel_plugin_device_t *device, void *pointer,
                                               uint64_t size_bytes,
                                               ds_accel_plugin_stream_t *stream)
{
    if (ds_accel__has_layers()) {
        ds_accel__layer_hooks->block_alloc(device, pointer, size_bytes, stream);
    }
}

static inline void ds_accel__layer_block_free(ds_accel_plugin_device_t *device, void *pointer,
                                              ds_accel_plugin_stream_t *stream)
{
    if (ds_accel__has_layers()) {
        ds_accel__layer_hooks->block_free(device, pointer, stream);
    }
}

/*
 * Report the private pool for allocations on a capturing stream, as a number that is unique for the
 * device; 0: the capture has ended. The pool reserves the memory that its own graphs use.
 */
static inline void ds_accel__layer_capture_pool(ds_accel_plugin_device_t *device,
                                                ds_accel_plugin_stream_t *stream, uint64_t pool)
{
    if (ds_accel__has_layers()) {
        ds_accel__layer_hooks->capture_pool(device, stream, pool);
    }
}

/* Report that a block of pinned host memory is handed out; size 0: that it is freed. */
static inline void ds_accel__layer_host_block(ds_accel_plugin_device_t *device, void *pointer,
                                              uint64_t size_bytes)
{
    if (ds_accel__has_layers()) {
        ds_accel__layer_hooks->host_block(device, pointer, size_bytes);
    }
}

/* Bytes that host work reads or writes: one run of bytes at each position of a strided loop. */
struct ds_accel__extent {
    ds_accel_plugin_device_t *device; /* device that has the memory; NULL: host memory */
    const void *begin;                /* run at index 0 of every dimension */
    uint64_t run_bytes;
    bool is_write;
    uint32_t ndim;
    int64_t sizes[DS_ACCEL_TENSOR_DIMS_MAX];   /* > 0 */
    int64_t strides[DS_ACCEL_TENSOR_DIMS_MAX]; /* in bytes, of any sign; 0: the same run again */
};

struct ds_accel__work {
    const char *call; /* public function that does the work, such as "tensor_copy" */
    uint32_t count;
    struct ds_accel__extent extents[2];
};

/*
 * Queue a host task of the library. The race detector treats the task as an access to the extents
 * by the stream, made by the library's caller. Returns the status of the plugin's slot; ERR_STATE
 * if the access would be a race and races are rejected.
 */
static inline int32_t ds_accel__layer_host_task(struct ds_accel__stream *stream,
                                                ds_accel_host_task_t task, void *user_data,
                                                const struct ds_accel__work *work,
                                                struct ds_accel_error *error)
{
    return ds_accel__layer_hooks->host_task(stream, task, user_data, work, error);
}

/*
 * Report work that the calling thread is about to do itself. The race detector treats it as an
 * access to the extents; ERR_STATE if the access would be a race and races are rejected. device
 * NULL: the work uses only host memory.
 */
static inline int32_t ds_accel__layer_host_work(struct ds_accel__device *device,
                                                const struct ds_accel__work *work)
{
    return ds_accel__layer_hooks->host_work(device, work);
}

#endif
