/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Accesses of the library's own host work: random numbers, strided copies and fills. A plugin sees
 * a host task there and no memory, so the caller describes what the task touches.
 *
 * A strided access is its runs of bytes and not the span around them: two streams that write
 * alternate columns of one matrix do not race. A new access is compared run by run with all that is
 * kept. Of one with more than KEPT_RUNS runs only that many, evenly spaced, are kept for later
 * comparisons, so that memory stays bounded; a later access that overlaps nothing but runs in
 * between is then missed, and none is reported wrongly.
 */
#include "base/text.h"
#include "host/layers.h"
#include "layers/layer.h"
#include "layers/race.h"
#include "runtime/handle.h"

#include <string.h>

#define KEPT_RUNS 4096u

static _Thread_local const struct ds_accel__work *queued;

const struct ds_accel__work *ds_accel__work_take(void)
{
    const struct ds_accel__work *work = queued;

    queued = NULL;
    return work;
}

/* ---- runs ----------------------------------------------------------------------------------- */

/* The bytes of an extent: run_bytes at each sum of multiples of strides, all above 0. */
struct runs {
    uint64_t begin;
    uint64_t run_bytes;
    uint64_t count;
    uint32_t ndim;
    uint64_t sizes[DS_ACCEL_TENSOR_DIMS_MAX];
    uint64_t strides[DS_ACCEL_TENSOR_DIMS_MAX]; /* ascending */
};

static void add_dim(struct runs *runs, uint64_t size, uint64_t stride)
{
    uint32_t place = runs->ndim++;

    while (place > 0 && runs->strides[place - 1] > stride) {
        runs->sizes[place] = runs->sizes[place - 1];
        runs->strides[place] = runs->strides[place - 1];
        place--;
    }
    runs->sizes[place] = size;
    runs->strides[place] = stride;
}

/* Join what touches or overlaps: a transposed matrix is one run again. */
static void join_dims(struct runs *runs)
{
    uint32_t joined = 0;

    while (joined < runs->ndim && runs->strides[joined] <= runs->run_bytes) {
        runs->run_bytes += (runs->sizes[joined] - 1) * runs->strides[joined];
        joined++;
    }
    runs->ndim -= joined;
    memmove(runs->sizes, runs->sizes + joined, runs->ndim * sizeof(runs->sizes[0]));
    memmove(runs->strides, runs->strides + joined, runs->ndim * sizeof(runs->strides[0]));
}

static void find_runs(const struct ds_accel__extent *extent, struct runs *runs)
{
    memset(runs, 0, sizeof(*runs));
    runs->begin = (uintptr_t)extent->begin;
    runs->run_bytes = extent->run_bytes;
    runs->count = 1;
    for (uint32_t i = 0; i < extent->ndim; i++) {
        uint64_t size = (uint64_t)extent->sizes[i];
        int64_t stride = extent->strides[i];

        if (stride < 0) { /* from its other end */
            runs->begin -= (size - 1) * (0 - (uint64_t)stride);
            stride = -stride;
        }
        if (size > 1 && stride != 0) {
            add_dim(runs, size, (uint64_t)stride);
        }
    }
    join_dims(runs);
    for (uint32_t i = 0; i < runs->ndim; i++) {
        runs->count *= runs->sizes[i];
    }
}

void ds_accel__extent_span(const struct ds_accel__extent *extent, uint64_t *begin_out,
                           uint64_t *size_out)
{
    struct runs runs;

    find_runs(extent, &runs);
    *begin_out = runs.begin;
    *size_out = runs.run_bytes;
    for (uint32_t i = 0; i < runs.ndim; i++) {
        *size_out += (runs.sizes[i] - 1) * runs.strides[i];
    }
}

/* Where the run of a number begins. */
static uint64_t run_begin(const struct runs *runs, uint64_t number)
{
    uint64_t begin = runs->begin;

    for (uint32_t i = 0; i < runs->ndim; i++) {
        begin += number % runs->sizes[i] * runs->strides[i];
        number /= runs->sizes[i];
    }
    return begin;
}

/* ---- accesses ------------------------------------------------------------------------------- */

static void set_extent(struct ds_accel__access *access, const struct ds_accel__extent *extent,
                       const struct runs *runs)
{
    const struct ds_accel__object *device = ds_accel__object_find(DS_ACCEL__DEVICE, extent->device);

    access->space = ds_accel__race_space(device, (uintptr_t)extent->begin);
    access->size_bytes = runs->run_bytes;
    access->is_write = extent->is_write;
}

void ds_accel__work_access(const struct ds_accel__work *work, struct ds_accel__access *access,
                           struct ds_accel__race_object *captured)
{
    access->call = work->call;
    for (uint32_t i = 0; i < work->count; i++) {
        struct runs runs;
        uint64_t step;

        find_runs(&work->extents[i], &runs);
        set_extent(access, &work->extents[i], &runs);
        step = (runs.count + KEPT_RUNS - 1) / KEPT_RUNS;
        for (uint64_t j = 0; j < runs.count && !ds_accel__race_is_blind; j++) {
            access->begin = run_begin(&runs, j);
            if (j % step != 0) {
                ds_accel__access_check(access);
            } else if (captured != NULL) {
                ds_accel__capture_access(captured, access);
            } else {
                ds_accel__race_access(access);
            }
        }
    }
}

bool ds_accel__work_check(const struct ds_accel__work *work, struct ds_accel__access *access)
{
    bool is_raced = false;

    access->call = work->call;
    for (uint32_t i = 0; i < work->count; i++) {
        struct runs runs;

        find_runs(&work->extents[i], &runs);
        set_extent(access, &work->extents[i], &runs);
        for (uint64_t j = 0; j < runs.count; j++) {
            access->begin = run_begin(&runs, j);
            is_raced = ds_accel__access_check(access) != NULL || is_raced;
        }
    }
    return is_raced;
}

/* ---- for the rest of the library ------------------------------------------------------------ */

int32_t ds_accel__hook_host_task(struct ds_accel__stream *stream, ds_accel_host_task_t task,
                                 void *user_data, const struct ds_accel__work *work,
                                 struct ds_accel_error *error)
{
    int32_t status;

    queued = __atomic_load_n(&ds_accel__layers_on, __ATOMIC_ACQUIRE) != 0 ? work : NULL;
    status = stream->abi.table->stream_host_task(stream->abi.handle, task, user_data, error);
    queued = NULL;
    return status;
}

/* Lock held. True: it is refused. */
static bool note_host_work(struct ds_accel__stack *stack, const struct ds_accel__work *work,
                           const void *site)
{
    struct ds_accel__access access = {
        .stack = stack, .slot = DS_ACCEL__SLOT_COUNT, .site = site, .time = UINT64_MAX};
    const struct ds_accel__race_thread *thread = ds_accel__race_enter(stack);
    bool is_refused = false;

    if (thread == NULL) {
        return false;
    }
    if (stack->fails_on_races) {
        access.component = thread->component;
        access.clock = ds_accel__clock_get(thread->clock);
        is_refused = ds_accel__work_check(work, &access);
        ds_accel__clock_put(access.clock);
    }
    if (!is_refused && ds_accel__race_place_host(stack, &access)) {
        ds_accel__work_access(work, &access, NULL);
    }
    ds_accel__race_leave(thread);
    return is_refused;
}

void ds_accel__hook_host_idle(ds_accel_plugin_device_t *device, const void *pointer,
                              uint64_t size_bytes)
{
    const struct ds_accel__object *object;

    if (__atomic_load_n(&ds_accel__layers_on, __ATOMIC_ACQUIRE) != 0) {
        ds_accel__layer_lock();
        object = ds_accel__object_find(DS_ACCEL__DEVICE, device);
        if (object != NULL) {
            ds_accel__access_forget_idle(object->stack, (uintptr_t)pointer,
                                         (uintptr_t)pointer + size_bytes);
        }
        ds_accel__layer_unlock();
    }
}

/* Work that no device has to do with is a matter of the accelerator whose streams use the memory,
 * or else of any. That one's calls tell of what is found, for it may just be ended by another
 * thread. Lock held. True: it is refused. */
static bool note_without_device(const struct ds_accel__work *work, const void *site)
{
    struct ds_accel__stack *stack = NULL;

    for (uint32_t i = 0; i < work->count && stack == NULL; i++) {
        uint64_t begin;
        uint64_t size_bytes;

        ds_accel__extent_span(&work->extents[i], &begin, &size_bytes);
        stack = ds_accel__access_stack(begin, begin + size_bytes);
    }
    stack = stack != NULL ? stack : ds_accel__layer_any_stack();
    return stack != NULL && !ds_accel__race_is_blind && note_host_work(stack, work, site);
}

int32_t ds_accel__hook_host_work(struct ds_accel__device *device, const struct ds_accel__work *work)
{
    const void *site = ds_accel__layer_caller(__builtin_return_address(0));
    const struct ds_accel__object *object;
    struct ds_accel__stack *stack = NULL;
    bool is_refused = false;
    char problem[512];

    if (__atomic_load_n(&ds_accel__layers_on, __ATOMIC_ACQUIRE) == 0) {
        return DS_ACCEL_OK;
    }
    ds_accel__layer_lock();
    object = device != NULL ? ds_accel__object_find(DS_ACCEL__DEVICE, device->abi.handle) : NULL;
    stack = object != NULL ? object->stack : NULL;
    ds_accel__layer_unlock();
    if (stack != NULL && !ds_accel__validate_work(stack, work, problem, sizeof(problem))) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s", problem);
    }
    ds_accel__layer_lock();
    object = device != NULL ? ds_accel__object_find(DS_ACCEL__DEVICE, device->abi.handle) : NULL;
    if (device == NULL) {
        is_refused = note_without_device(work, site);
    } else if (object != NULL && object->stack->races != NULL && !ds_accel__race_is_blind) {
        is_refused = note_host_work(object->stack, work, site);
    }
    ds_accel__layer_unlock();
    ds_accel__race_tell(stack);
    return is_refused ? ds_accel__error(DS_ACCEL_ERR_STATE,
                                        "%s: it would race with earlier work; the log and "
                                        "ds_accel_layer_report(\"race\") tell with which",
                                        work->call)
                      : DS_ACCEL_OK;
}
