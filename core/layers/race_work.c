/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Accesses of the library's own host work, which the library reports to layer_work.c: random
 * numbers, strided copies and fills. A plugin sees this work only as a host task, so that the
 * library describes the memory that the task accesses.
 *
 * A strided access consists of runs of bytes, and does not include the bytes between them: two
 * streams that write alternate columns of one matrix do not race. Each run of a new access is
 * compared with all kept accesses. If an access has more than KEPT_RUNS runs, only KEPT_RUNS of
 * them, evenly spaced, are kept for later comparisons, so that memory stays bounded. A race with a
 * run that is not kept is missed, but no race is reported wrongly.
 */
#include "host/layers.h"
#include "layers/layer.h"
#include "layers/race.h"

#include <assert.h>
#include <string.h>

#define KEPT_RUNS 4096u

/* ---- runs ----------------------------------------------------------------------------------- */

/* The bytes of an extent: run_bytes bytes at each combination of the strides. All sizes and strides
 * are positive. */
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

    assert(place < DS_ACCEL_TENSOR_DIMS_MAX);
    while (place > 0 && runs->strides[place - 1] > stride) {
        runs->sizes[place] = runs->sizes[place - 1];
        runs->strides[place] = runs->strides[place - 1];
        place--;
    }
    runs->sizes[place] = size;
    runs->strides[place] = stride;
}

/* Merge dimensions whose runs touch or overlap, so that, for example, a transposed matrix becomes
 * one run. */
static void join_dims(struct runs *runs)
{
    uint32_t joined = 0;

    while (joined < runs->ndim && runs->strides[joined] <= runs->run_bytes) {
        runs->run_bytes += (runs->sizes[joined] - 1) * runs->strides[joined];
        joined++;
    }
    assert(joined <= runs->ndim);
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

        if (stride < 0) { /* begin at the lowest address instead, with a positive stride */
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

/* Return the address of a run by its number. */
static uint64_t run_begin(const struct runs *runs, uint64_t number)
{
    uint64_t begin = runs->begin;

    assert(number < runs->count);
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
