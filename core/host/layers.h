/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Where the library enters the layers between caller and plugin: hooks that core/layers fills. */
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

/* What the layers do where the library calls them; the functions below, which go through it, say
 * what. */
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

/* Set when the library is loaded: layers/layer.c. */
extern const struct ds_accel__layer_hooks *ds_accel__layer_hooks;

static inline bool ds_accel__has_layers(void)
{
    return __builtin_expect(__atomic_load_n(&ds_accel__layers_on, __ATOMIC_ACQUIRE) != 0, 0);
}

/*
 * Put the layers that environment and configuration name over a table that is about to be started.
 * None: nothing is done. ERR_NO_MEMORY. A layer that cannot work is left out with a warning.
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

/* What is wrong with a list of layers, as DS_ACCEL_LAYERS has it; false: nothing. */
static inline bool ds_accel__layers_problem(const char *list, char *problem, size_t problem_size)
{
    return ds_accel__layer_hooks->problem(list, problem, problem_size);
}

/* The calling thread runs a host task, which layer validate has let through. */
static inline bool ds_accel__layers_in_task(void)
{
    return ds_accel__layer_hooks->in_task();
}

/*
 * A call without a status, which ends something, is made in such a task: this says that it was left
 * out, and the caller leaves the thing as it is, to be ended later.
 */
static inline bool ds_accel__end_is_refused(const ds_accel_t *context, const char *call)
{
    return ds_accel__has_layers() && ds_accel__layer_hooks->end_is_refused(context, call);
}

/*
 * Around a wait or a question of the library's own bookkeeping, which has to be answered: the
 * layers see it, so that it orders what it waits for, and layer validate does not count it among
 * the calls that a capture elsewhere forbids. Calls nest.
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
/* The plugin's table below the layers: what is asked there orders nothing for the race detector. */
static inline const struct ds_accel_plugin *
ds_accel__layers_below(const struct ds_accel__candidate *candidate)
{
    return ds_accel__layer_hooks->below(candidate);
}

/* Nothing that the library's own streams have queued uses these bytes of host memory any more: the
 * device's allocator has seen to it. */
static inline void ds_accel__layer_host_idle(ds_accel_plugin_device_t *device, const void *pointer,
                                             uint64_t size_bytes)
{
    if (ds_accel__has_layers()) {
        ds_accel__layer_hooks->host_idle(device, pointer, size_bytes);
    }
}

/* The library has a handle of this stream of the plugin's from now on, and asks it. */
static inline void ds_accel__layer_stream_ours(ds_accel_plugin_stream_t *stream)
{
    if (ds_accel__has_layers()) {
        ds_accel__layer_hooks->stream_ours(stream);
    }
}

/* Spans of a plugin's own, in the trace if there is one. */
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
 * An allocator gives out a part of an allocation for use on a stream (NULL: by the host), and takes
 * it back. Nothing without layers. From then on the block's bounds are checked; once it is freed,
 * its memory is refused until it is given out again, so whoever poisons it does so before.
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

/* The private pool that memory of a stream which captures comes from, by a number that no other of
 * the device has; 0: the capture is over. It keeps what its own graphs use. */
static inline void ds_accel__layer_capture_pool(ds_accel_plugin_device_t *device,
                                                ds_accel_plugin_stream_t *stream, uint64_t pool)
{
    if (ds_accel__has_layers()) {
        ds_accel__layer_hooks->capture_pool(device, stream, pool);
    }
}

/* The same of pinned memory of the host; size 0: it is taken back. */
static inline void ds_accel__layer_host_block(ds_accel_plugin_device_t *device, void *pointer,
                                              uint64_t size_bytes)
{
    if (ds_accel__has_layers()) {
        ds_accel__layer_hooks->host_block(device, pointer, size_bytes);
    }
}

/* Bytes that host work reads or writes: a run of them at each place of a strided loop. */
struct ds_accel__extent {
    ds_accel_plugin_device_t *device; /* whose memory; NULL: the host's */
    const void *begin;                /* the run at index 0 of every dimension */
    uint64_t run_bytes;
    bool is_write;
    uint32_t ndim;
    int64_t sizes[DS_ACCEL_TENSOR_DIMS_MAX];   /* > 0 */
    int64_t strides[DS_ACCEL_TENSOR_DIMS_MAX]; /* in bytes, of any sign; 0: the same run again */
};

struct ds_accel__work {
    const char *call; /* "tensor_copy": the public function whose work it is */
    uint32_t count;
    struct ds_accel__extent extents[2];
};

/*
 * Queue a host task of the library's own, which the race detector sees as an access to the extents
 * by the stream, made by whoever called the library. The slot's status; ERR_STATE where races are
 * refused and it would be one.
 */
static inline int32_t ds_accel__layer_host_task(struct ds_accel__stream *stream,
                                                ds_accel_host_task_t task, void *user_data,
                                                const struct ds_accel__work *work,
                                                struct ds_accel_error *error)
{
    return ds_accel__layer_hooks->host_task(stream, task, user_data, work, error);
}

/* The same for work that the calling thread is about to do itself; NULL: with the host's memory
 * alone. */
static inline int32_t ds_accel__layer_host_work(struct ds_accel__device *device,
                                                const struct ds_accel__work *work)
{
    return ds_accel__layer_hooks->host_work(device, work);
}

#endif
