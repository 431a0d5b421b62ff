/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Layers between caller and plugin: layer*.c with layer.h, race*.c. */
#ifndef DS_ACCEL_CORE_LAYERS_H
#define DS_ACCEL_CORE_LAYERS_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

struct ds_accel__candidate;

struct ds_accel__stack;
struct ds_accel__device;
struct ds_accel__stream;

/*
 * Put the layers that environment and configuration name over a table that is about to be started.
 * None: nothing is done. ERR_NO_MEMORY. A layer that cannot work is left out with a warning.
 */
int32_t ds_accel__layers_install(struct ds_accel__candidate *candidate);
/* Take them away, after shutdown: leaks are told, the trace is completed. */
void ds_accel__layers_remove(struct ds_accel__candidate *candidate);
/* What is wrong with a list of layers, as DS_ACCEL_LAYERS has it; false: nothing. */
bool ds_accel__layers_problem(const char *list, char *problem, size_t problem_size);
/* The calling thread runs a host task, which layer validate has let through. */
bool ds_accel__layers_in_task(void);
/*
 * A call without a status, which ends something, is made in such a task: this says that it was left
 * out, and the caller leaves the thing as it is, to be ended later.
 */
bool ds_accel__end_is_refused(const ds_accel_t *context, const char *call);
/*
 * Around a wait or a question of the library's own bookkeeping, which has to be answered: the
 * layers see it, so that it orders what it waits for, and layer validate does not count it among
 * the calls that a capture elsewhere forbids. Calls nest.
 */
void ds_accel__layers_own(bool is_begun);

static inline void ds_accel__layers_own_begin(void)
{
    if (__builtin_expect(__atomic_load_n(&ds_accel__layers_on, __ATOMIC_RELAXED) != 0, 0)) {
        ds_accel__layers_own(true);
    }
}

static inline void ds_accel__layers_own_end(void)
{
    if (__builtin_expect(__atomic_load_n(&ds_accel__layers_on, __ATOMIC_RELAXED) != 0, 0)) {
        ds_accel__layers_own(false);
    }
}
/* The plugin's table below the layers: what is asked there orders nothing for the race detector. */
const struct ds_accel_plugin *ds_accel__layers_below(const struct ds_accel__candidate *candidate);
/* Nothing that the library's own streams have queued uses these bytes of host memory any more: the
 * device's allocator has seen to it. */
void ds_accel__layer_host_idle(ds_accel_plugin_device_t *device, const void *pointer,
                               uint64_t size_bytes);
/* The library has a handle of this stream of the plugin's from now on, and asks it. */
void ds_accel__layer_stream_ours(ds_accel_plugin_stream_t *stream);
/* Spans of a plugin's own, in the trace if there is one. */
void ds_accel__layers_span_begin(struct ds_accel__candidate *candidate, const char *category,
                                 const char *name);
void ds_accel__layers_span_end(struct ds_accel__candidate *candidate);
/*
 * An allocator gives out a part of an allocation for use on a stream (NULL: by the host), and takes
 * it back. Nothing without layers. From then on the block's bounds are checked; once it is freed,
 * its memory is refused until it is given out again, so whoever poisons it does so before.
 */
void ds_accel__layer_block_alloc(ds_accel_plugin_device_t *device, void *pointer,
                                 uint64_t size_bytes, ds_accel_plugin_stream_t *stream);
void ds_accel__layer_block_free(ds_accel_plugin_device_t *device, void *pointer,
                                ds_accel_plugin_stream_t *stream);
/* The private pool that memory of a stream which captures comes from, by a number that no other of
 * the device has; 0: the capture is over. It keeps what its own graphs use. */
void ds_accel__layer_capture_pool(ds_accel_plugin_device_t *device,
                                  ds_accel_plugin_stream_t *stream, uint64_t pool);
/* The same of pinned memory of the host; size 0: it is taken back. */
void ds_accel__layer_host_block(ds_accel_plugin_device_t *device, void *pointer,
                                uint64_t size_bytes);

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
int32_t ds_accel__layer_host_task(struct ds_accel__stream *stream, ds_accel_host_task_t task,
                                  void *user_data, const struct ds_accel__work *work,
                                  struct ds_accel_error *error);
/* The same for work that the calling thread is about to do itself; NULL: with the host's memory
 * alone. */
int32_t ds_accel__layer_host_work(struct ds_accel__device *device,
                                  const struct ds_accel__work *work);

#endif
