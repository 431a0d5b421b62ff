/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Writing random numbers to device memory.
 *
 * A vendor's generator writes its numbers itself. The library's own numbers are written by a host
 * task in the stream if the host may access device memory. Otherwise the calling thread writes them
 * to one of two blocks of pinned memory and queues a copy to the device; a block is rewritten only
 * when the event recorded after its last copy is reached. Without host tasks or events, the calling
 * thread waits for the stream; without pinned memory, the blocks are ordinary memory.
 */
#include "base/text.h"
#include "host/layers.h"
#include "runtime/handle.h"
#include "runtime/rng.h"

#include <assert.h>
#include <stdlib.h>

#define STAGING_BYTES (UINT64_C(1) << 20)

static bool is_vendors(const struct ds_accel__rng *rng)
{
    return (rng->flags & DS_ACCEL_RNG_VENDOR) != 0;
}

static int32_t finish(int32_t status, const struct ds_accel_error *error)
{
    return status < 0 ? ds_accel__fail(status, error) : DS_ACCEL_OK;
}

/* ---- ways to write numbers to the device ---------------------------------------------------- */

struct fill {
    struct ds_accel__numbers numbers;
    void *pointer;
    uint64_t count;
    const char *call; /* name of the public function, such as "rng_uniform" */
};

static void run_fill(void *user_data, int32_t status)
{
    struct fill *fill = user_data;

    /* If the stream failed, nothing is written. The error is reported to callers that wait for the
     * stream. */
    if (status == DS_ACCEL_OK) {
        ds_accel__numbers_make(&fill->numbers, 0, fill->count, fill->pointer);
    }
    free(fill);
}

/* Let a host task write the numbers. If the backend has no host tasks, wait for the stream and
 * write them on this thread. */
static int32_t deliver_in_place(struct ds_accel__stream *stream, const struct fill *fill)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct fill *task = malloc(sizeof(*task));
    const struct ds_accel__work work = {
        .call = fill->call,
        .count = 1,
        .extents = {{
            .device = stream->child.device->abi.handle,
            .begin = fill->pointer,
            .run_bytes = fill->count * fill->numbers.element_bytes,
            .is_write = true,
        }},
    };
    int32_t status;

    if (task == NULL) {
        return ds_accel__no_memory();
    }
    *task = *fill;
    status = ds_accel__layer_host_task(stream, run_fill, task, &work, &error);
    if (status >= 0) {
        return DS_ACCEL_OK;
    }
    free(task);
    if (status != DS_ACCEL_ERR_UNSUPPORTED) {
        return ds_accel__fail(status, &error);
    }
    status = ds_accel__stream_wait(stream);
    if (status >= 0) {
        status = ds_accel__layer_host_work(stream->child.device, &work);
    }
    if (status >= 0) {
        ds_accel__numbers_make(&fill->numbers, 0, fill->count, fill->pointer);
    }
    return status;
}

/* Make a staging block usable: allocate it on first use, and wait for its last copy. If the backend
 * has no events, deliver_piece() has waited for the copy already. */
static int32_t take_staging(struct ds_accel__rng *rng, struct ds_accel__staging *staging)
{
    ds_accel_device_t *device = &rng->child.device->abi;
    int32_t status = DS_ACCEL_OK;

    if (staging->event == NULL) {
        status = ds_accel_event_create(device, 0, &staging->event);
        status = status == DS_ACCEL_ERR_UNSUPPORTED ? DS_ACCEL_OK : status;
    } else {
        ds_accel__layers_own_begin();
        status = ds_accel_event_synchronize(staging->event);
        ds_accel__layers_own_end();
    }
    if (status < 0 || staging->memory != NULL) {
        return status;
    }
    status = ds_accel_mem_alloc_pinned(device, STAGING_BYTES, 1, 0, &staging->memory);
    staging->is_pinned = status >= 0;
    if (status == DS_ACCEL_ERR_UNSUPPORTED) {
        staging->memory = malloc(STAGING_BYTES);
        status = staging->memory != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    return status;
}

static int32_t deliver_piece(struct ds_accel__staging *staging, struct ds_accel__stream *stream,
                             void *destination, uint64_t size_bytes)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = ds_accel_mem_copy_async(&stream->abi, destination, staging->memory, size_bytes,
                                             DS_ACCEL_COPY_HOST_TO_DEVICE);

    if (status >= 0) {
        status = staging->event != NULL ? ds_accel_event_record(staging->event, &stream->abi)
                                        : ds_accel__stream_wait(stream);
    }
    /* After a failure the copy may be queued without an event after it. If the wait for the stream
     * fails too, the copy may still read the block: leak the block instead of rewriting it. */
    if (status < 0 &&
        stream->abi.table->stream_synchronize(stream->abi.handle, UINT64_MAX, &error) < 0) {
        staging->memory = NULL;
    }
    return status;
}

/* Write the numbers through the staging blocks. The caller holds rng->lock. */
static int32_t deliver_through_staging(struct ds_accel__rng *rng, struct ds_accel__stream *stream,
                                       const struct fill *fill)
{
    const uint64_t element_bytes = fill->numbers.element_bytes;
    const uint64_t most = STAGING_BYTES / element_bytes;
    int32_t status = DS_ACCEL_OK;

    for (uint64_t first = 0; first < fill->count && status >= 0; first += most) {
        struct ds_accel__staging *staging = &rng->staging[rng->turn++ % ARRAY_SIZE(rng->staging)];
        uint64_t count = fill->count - first < most ? fill->count - first : most;

        assert(count > 0 && count * element_bytes <= STAGING_BYTES);
        status = take_staging(rng, staging);
        if (status >= 0) {
            ds_accel__numbers_make(&fill->numbers, first, count, staging->memory);
            status = deliver_piece(staging, stream, (char *)fill->pointer + first * element_bytes,
                                   count * element_bytes);
        }
    }
    return status;
}

/* Fill the memory with the vendor's generator. ERR_UNSUPPORTED for raw bits. The caller holds
 * rng->lock. */
static int32_t deliver_by_vendor(struct ds_accel__rng *rng, struct ds_accel__stream *stream,
                                 const struct fill *fill, double first, double second,
                                 const char *call)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    switch (fill->numbers.kind) {
    case DS_ACCEL__NUMBERS_UNIFORM:
        return finish(rng->table->rng_uniform(stream->abi.handle, fill->pointer, fill->count,
                                              fill->numbers.dtype, first, second, &error),
                      &error);
    case DS_ACCEL__NUMBERS_NORMAL:
        return finish(rng->table->rng_normal(stream->abi.handle, fill->pointer, fill->count,
                                             fill->numbers.dtype, first, second, &error),
                      &error);
    default:
        assert(fill->numbers.kind == DS_ACCEL__NUMBERS_BITS);
        return ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED,
                               "%s: the vendor's generator has no raw bits", call);
    }
}

/* ---- filling -------------------------------------------------------------------------------- */

/* Fail if the stream captures, because every replay of the graph would repeat the same numbers. */
static int32_t check_capture(struct ds_accel__stream *stream, const char *call)
{
    bool is_capturing = false;
    int32_t status = ds_accel__stream_is_capturing(stream, &is_capturing);

    if (status >= 0 && is_capturing) {
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "%s: the stream captures, and each replay would repeat the same "
                               "numbers: fill before the capture, or between replays",
                               call);
    }
    return status;
}

/* Check that the memory belongs to this device and is large enough, if the runtime can describe the
 * address. */
static int32_t check_memory(struct ds_accel__device *device, const struct fill *fill,
                            const char *call)
{
    struct ds_accel_pointer_info info;
    uint64_t size_bytes = fill->count * fill->numbers.element_bytes;

    if (!ds_accel__device_pointer_info(device, fill->pointer, &info) ||
        info.kind == DS_ACCEL_POINTER_UNKNOWN || info.size_bytes == 0) {
        return DS_ACCEL_OK;
    }
    if (info.kind == DS_ACCEL_POINTER_DEVICE && info.device_index >= 0 &&
        (uint32_t)info.device_index != device->index) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: %p is memory of device %d, not %u", call,
                               fill->pointer, info.device_index, device->index);
    }
    if (size_bytes > info.size_bytes - ((uintptr_t)fill->pointer - info.base_address)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "%s: %llu bytes at %p go past the end of its "
                               "allocation",
                               call, (unsigned long long)size_bytes, fill->pointer);
    }
    return DS_ACCEL_OK;
}

static int32_t check_fill(struct ds_accel__device *device, const struct fill *fill,
                          const char *call)
{
    const uint64_t element_bytes = fill->numbers.element_bytes;

    if (fill->pointer == NULL) {
        return ds_accel__refuse(call, "pointer", NULL);
    }
    if ((uintptr_t)fill->pointer % element_bytes != 0 ||
        fill->count > (UINTPTR_MAX - (uintptr_t)fill->pointer) / element_bytes) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "%s: %p is not aligned to %llu bytes, or %llu elements do not fit "
                               "there",
                               call, fill->pointer, (unsigned long long)element_bytes,
                               (unsigned long long)fill->count);
    }
    return check_memory(device, fill, call);
}

/* Find the position of the numbers in the seed's sequence, write the numbers, and advance the
 * generator's position. The caller holds rng->lock. */
static int32_t deliver(struct ds_accel__rng *rng, struct ds_accel__stream *stream,
                       struct fill *fill)
{
    struct ds_accel__numbers end;
    int32_t status;

    assert(rng->word <= 4); /* 4: the subsequence is used up */
    fill->numbers.seed = rng->seed;
    fill->numbers.subsequence = rng->subsequence;
    fill->numbers.block = rng->block;
    fill->numbers.word = rng->word;
    status = ds_accel__numbers_place(&fill->numbers, fill->count, &end);
    if (status >= 0) {
        status = ds_accel__device_is_host_accessible(rng->child.device)
                     ? deliver_in_place(stream, fill)
                     : deliver_through_staging(rng, stream, fill);
    }
    if (status >= 0) {
        rng->block = end.block;
        rng->word = end.word;
    }
    return status;
}

/* Check the arguments and fill the memory. first and second: low and high, or mean and standard
 * deviation. */
static int32_t fill_memory(ds_accel_rng_t *rng, ds_accel_stream_t *stream, struct fill *fill,
                           double first, double second, const char *call)
{
    struct ds_accel__rng *ours = ds_accel__rng_check(rng, call);
    struct ds_accel__stream *queue;
    int32_t status;

    if (ours == NULL) {
        return ds_accel__rng_refused(rng);
    }
    fill->call = call;
    queue = ds_accel__stream_of(ours->child.device, stream, call);
    if (queue == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    status = ds_accel__numbers_prepare(&fill->numbers, first, second, call);
    if (status < 0 || fill->count == 0) {
        return status;
    }
    status = check_fill(ours->child.device, fill, call);
    if (status >= 0) {
        status = check_capture(queue, call);
    }
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&ours->lock);
    status = is_vendors(ours) ? deliver_by_vendor(ours, queue, fill, first, second, call)
                              : deliver(ours, queue, fill);
    pthread_mutex_unlock(&ours->lock);
    return status;
}

int32_t ds_accel_rng_uniform(ds_accel_rng_t *rng, ds_accel_stream_t *stream, void *pointer,
                             uint64_t count, uint32_t dtype, double low, double high)
{
    struct fill fill = {.numbers = {.kind = DS_ACCEL__NUMBERS_UNIFORM, .dtype = dtype},
                        .pointer = pointer,
                        .count = count};

    return fill_memory(rng, stream, &fill, low, high, "rng_uniform");
}

int32_t ds_accel_rng_normal(ds_accel_rng_t *rng, ds_accel_stream_t *stream, void *pointer,
                            uint64_t count, uint32_t dtype, double mean, double standard_deviation)
{
    struct fill fill = {.numbers = {.kind = DS_ACCEL__NUMBERS_NORMAL, .dtype = dtype},
                        .pointer = pointer,
                        .count = count};

    return fill_memory(rng, stream, &fill, mean, standard_deviation, "rng_normal");
}

int32_t ds_accel_rng_bits(ds_accel_rng_t *rng, ds_accel_stream_t *stream, void *pointer,
                          uint64_t count, uint32_t dtype)
{
    struct fill fill = {.numbers = {.kind = DS_ACCEL__NUMBERS_BITS, .dtype = dtype},
                        .pointer = pointer,
                        .count = count};

    return fill_memory(rng, stream, &fill, 0, 0, "rng_bits");
}
