/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Host and GPU share memory: every buffer has shared storage, and a device address is the address
 * of the buffer's contents. The GPU executes asynchronous copies between buffers (of kind
 * DEVICE_TO_DEVICE or INFER) and fills with one byte, if offsets and sizes are multiples of four
 * bytes, as macOS requires. The host does all other work: a thread of the stream in stream order,
 * and mem_copy in the calling thread.
 */
#include "mps.h"

#include <unistd.h>

#define BLIT_ALIGN 4u

/* ---- the buffers of a device ---------------------------------------------------------------- */

/*
 * Returns the index of the first buffer that begins after address. The caller of this function, of
 * find_buffer() and of add_buffer() holds state->lock.
 */
static size_t find_place(const struct mps_device *state, uintptr_t address)
{
    size_t low = 0;
    size_t high = state->buffer_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (state->buffers[middle].base <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct mps_buffer *find_buffer(struct mps_device *state, const void *pointer,
                                      uint64_t size_bytes)
{
    uintptr_t address = (uintptr_t)pointer;
    size_t place = find_place(state, address);
    struct mps_buffer *buffer = place == 0 ? NULL : &state->buffers[place - 1];

    if (buffer == NULL || address - buffer->base > buffer->size_bytes ||
        size_bytes > buffer->size_bytes - (address - buffer->base)) {
        return NULL;
    }
    return buffer;
}

static int add_buffer(struct mps_device *state, const struct mps_buffer *buffer)
{
    size_t place;

    if (state->buffer_count == state->buffer_capacity) {
        size_t capacity = state->buffer_capacity == 0 ? 64 : state->buffer_capacity * 2;
        struct mps_buffer *larger = realloc(state->buffers, capacity * sizeof(*larger));

        if (larger == NULL) {
            return -1;
        }
        state->buffers = larger;
        state->buffer_capacity = capacity;
    }
    place = find_place(state, buffer->base);
    memmove(&state->buffers[place + 1], &state->buffers[place],
            (state->buffer_count - place) * sizeof(*buffer));
    state->buffers[place] = *buffer;
    state->buffer_count++;
    return 0;
}

/*
 * Removes a buffer from the list and returns its object; NULL: not found. The buffer is the one
 * that was registered with this pointer if is_registered is set, else the one that was allocated at
 * it.
 */
static objc_id take_buffer(struct mps_device *state, const void *pointer, int is_registered)
{
    objc_id object = NULL;

    pthread_mutex_lock(&state->lock);
    for (size_t i = 0; i < state->buffer_count; i++) {
        const struct mps_buffer *buffer = &state->buffers[i];

        if ((is_registered ? buffer->registered == (uintptr_t)pointer
                           : buffer->registered == 0 && buffer->base == (uintptr_t)pointer)) {
            object = buffer->object;
            memmove(&state->buffers[i], &state->buffers[i + 1],
                    (state->buffer_count - i - 1) * sizeof(*buffer));
            state->buffer_count--;
            break;
        }
    }
    pthread_mutex_unlock(&state->lock);
    return object;
}

void mps_buffers_end(ds_accel_plugin_device_t *device)
{
    struct mps_device *state = device->state;

    for (size_t i = 0; i < state->buffer_count; i++) {
        mps_runtime(device)->objc.objc_release(state->buffers[i].object);
    }
    free(state->buffers);
}

/* Adds the buffer to the list; on failure, releases the buffer. */
static int32_t keep_buffer(ds_accel_plugin_device_t *device, const struct mps_buffer *buffer,
                           struct ds_accel_error *error)
{
    struct mps_device *state = device->state;
    int result;

    pthread_mutex_lock(&state->lock);
    result = add_buffer(state, buffer);
    pthread_mutex_unlock(&state->lock);
    if (result != 0) {
        mps_runtime(device)->objc.objc_release(buffer->object);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "mem_alloc: no memory");
    }
    return DS_ACCEL_OK;
}

/* ---- allocation ----------------------------------------------------------------------------- */

int32_t mps_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                  struct ds_accel_error *error)
{
    struct mps_runtime *runtime = mps_runtime(device);
    struct mps_buffer buffer = {.size_bytes = size_bytes};
    int32_t status;

    if (size_bytes > device->info.max_allocation_bytes) {
        return plugin_fail(
            error, DS_ACCEL_ERR_NO_MEMORY, "mem_alloc(%llu bytes): a buffer has %llu at most",
            (unsigned long long)size_bytes, (unsigned long long)device->info.max_allocation_bytes);
    }
    buffer.object = mps_new_buffer(runtime, size_bytes);
    if (buffer.object == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "MTLDevice newBufferWithLength:%llu options:0: nil",
                           (unsigned long long)size_bytes);
    }
    buffer.base = mps_send_word(runtime, buffer.object, runtime->sel.contents);
    status = keep_buffer(device, &buffer, error);
    if (status == DS_ACCEL_OK) {
        *pointer_out = (void *)buffer.base;
    }
    return status;
}

/* The memory is freed when all command buffers that use it have released it. */
int32_t mps_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error)
{
    objc_id object = take_buffer(device->state, pointer, 0);

    if (object == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "mem_free(%p): no buffer begins there",
                           pointer);
    }
    mps_runtime(device)->objc.objc_release(object);
    return DS_ACCEL_OK;
}

int32_t mps_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                         void **pointer_out, struct ds_accel_error *error)
{
    (void)flags; /* all pinned memory is mapped */
    return mps_alloc(device, size_bytes, pointer_out, error);
}

/* Creates a buffer from the whole pages that contain the range. */
int32_t mps_host_register(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                          uint32_t flags, struct ds_accel_error *error)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t base = (uintptr_t)pointer & ~(page - 1);
    uintptr_t end = ((uintptr_t)pointer + size_bytes + page - 1) & ~(page - 1);
    struct mps_buffer buffer = {base, end - base, NULL, (uintptr_t)pointer};

    (void)flags;
    buffer.object = mps_wrap_bytes(mps_runtime(device), (void *)base, end - base);
    if (buffer.object == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_DRIVER,
                           "MTLDevice newBufferWithBytesNoCopy:%p length:%llu: nil", (void *)base,
                           (unsigned long long)(end - base));
    }
    return keep_buffer(device, &buffer, error);
}

int32_t mps_host_unregister(ds_accel_plugin_device_t *device, void *pointer,
                            struct ds_accel_error *error)
{
    objc_id object = take_buffer(device->state, pointer, 1);

    if (object == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "mem_unregister(%p): not registered",
                           pointer);
    }
    mps_runtime(device)->objc.objc_release(object);
    return DS_ACCEL_OK;
}

int32_t mps_host_device_pointer(ds_accel_plugin_device_t *device, void *host_pointer,
                                void **device_pointer_out, struct ds_accel_error *error)
{
    (void)device;
    (void)error;
    *device_pointer_out = host_pointer;
    return DS_ACCEL_OK;
}

int32_t mps_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                        struct ds_accel_error *error)
{
    struct mps_runtime *runtime = mps_runtime(device);
    uint64_t used = mps_send_word(runtime, runtime->device, runtime->sel.currentAllocatedSize);

    (void)error;
    *total_out = device->info.total_memory_bytes;
    *free_out = used < *total_out ? *total_out - used : 0;
    return DS_ACCEL_OK;
}

int32_t mps_native_memory(ds_accel_plugin_device_t *device, const void *pointer,
                          uint64_t *object_out, uint64_t *offset_out, struct ds_accel_error *error)
{
    struct mps_device *state = device->state;
    struct mps_buffer *buffer;
    int32_t status = DS_ACCEL_OK;

    pthread_mutex_lock(&state->lock);
    buffer = find_buffer(state, pointer, 1);
    if (buffer != NULL) {
        *object_out = (uint64_t)(uintptr_t)buffer->object;
        *offset_out = (uintptr_t)pointer - buffer->base;
    } else {
        status = plugin_fail(error, DS_ACCEL_ERR_NOT_FOUND, "native_get(%p): in no buffer",
                             (void *)(uintptr_t)pointer);
    }
    pthread_mutex_unlock(&state->lock);
    return status;
}

/* ---- host work ------------------------------------------------------------------------------ */

struct host_work {
    unsigned char *destination;
    const unsigned char *source; /* NULL: the work is a fill */
    uint64_t size_bytes;
    uint32_t pattern_bytes;
    unsigned char pattern[4];
};

static void do_work(void *argument)
{
    struct host_work *work = argument;

    if (work->source != NULL) {
        memcpy(work->destination, work->source, work->size_bytes);
    } else if (work->pattern_bytes == 1) {
        memset(work->destination, work->pattern[0], work->size_bytes);
    } else {
        for (uint64_t i = 0; i < work->size_bytes; i += work->pattern_bytes) {
            memcpy(work->destination + i, work->pattern, work->pattern_bytes);
        }
    }
    free(work);
}

static int32_t give_to_host(void *native_stream, const struct host_work *work,
                            struct ds_accel_error *error)
{
    struct host_work *copy = malloc(sizeof(*copy));
    int32_t status;

    if (copy == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "stream: no memory");
    }
    *copy = *work;
    status = mps_stream_work(native_stream, do_work, free, copy, error);
    if (status != DS_ACCEL_OK) {
        free(copy);
    }
    return status;
}

/* ---- GPU work ------------------------------------------------------------------------------- */

struct blit {
    objc_id source; /* NULL: the work is a fill */
    uint64_t source_offset;
    objc_id destination;
    uint64_t destination_offset;
    uint64_t size_bytes;
    uint8_t value;
};

static void encode_blit(struct mps_runtime *runtime, objc_id buffer, void *argument)
{
    const struct blit *blit = argument;
    objc_id encoder = mps_send_id(runtime, buffer, runtime->sel.blitCommandEncoder);

    if (blit->source != NULL) {
        mps_encode_copy(runtime, encoder, blit->source, blit->source_offset, blit->destination,
                        blit->destination_offset, blit->size_bytes);
    } else {
        mps_encode_fill(runtime, encoder, blit->destination, blit->destination_offset,
                        blit->size_bytes, blit->value);
    }
    mps_send(runtime, encoder, runtime->sel.endEncoding);
}

/*
 * Finds the buffer that contains the range, and returns its object and the offset in it. Returns 1;
 * 0: no buffer contains the range, or the GPU cannot use this offset or size. Caller holds
 * state->lock.
 */
static int find_blit_end(struct mps_device *state, const void *pointer, uint64_t size_bytes,
                         objc_id *object_out, uint64_t *offset_out)
{
    struct mps_buffer *buffer = find_buffer(state, pointer, size_bytes);

    if (buffer == NULL) {
        return 0;
    }
    *object_out = buffer->object;
    *offset_out = (uintptr_t)pointer - buffer->base;
    return *offset_out % BLIT_ALIGN == 0 && size_bytes % BLIT_ALIGN == 0;
}

/* Queues the work for the GPU; returns DS_ACCEL_NOT_READY if the host must do the work. */
static int32_t give_to_gpu(ds_accel_plugin_device_t *device, struct mps_stream *stream,
                           const struct host_work *work, struct ds_accel_error *error)
{
    struct mps_device *state = device->state;
    struct blit blit = {.size_bytes = work->size_bytes, .value = work->pattern[0]};
    int32_t status = DS_ACCEL_NOT_READY;
    int is_possible;

    pthread_mutex_lock(&stream->lock);
    pthread_mutex_lock(&state->lock);
    is_possible = find_blit_end(state, work->destination, work->size_bytes, &blit.destination,
                                &blit.destination_offset) &&
                  (work->source == NULL || find_blit_end(state, work->source, work->size_bytes,
                                                         &blit.source, &blit.source_offset));
    if (is_possible) {
        status = mps_commit(stream, encode_blit, &blit, error);
    }
    pthread_mutex_unlock(&state->lock);
    pthread_mutex_unlock(&stream->lock);
    return status;
}

int32_t mps_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                       const void *source, uint64_t size_bytes, uint32_t kind,
                       struct ds_accel_error *error)
{
    struct host_work work = {destination, source, size_bytes, 0, {0, 0, 0, 0}};
    int32_t status = DS_ACCEL_NOT_READY;

    if (kind == DS_ACCEL_COPY_DEVICE_TO_DEVICE || kind == DS_ACCEL_COPY_INFER) {
        status = give_to_gpu(device, native_stream, &work, error);
    }
    return status == DS_ACCEL_NOT_READY ? give_to_host(native_stream, &work, error) : status;
}

int32_t mps_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                       uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                       struct ds_accel_error *error)
{
    struct host_work work = {destination, NULL, count * pattern_bytes, pattern_bytes, {0, 0, 0, 0}};
    int32_t status = DS_ACCEL_NOT_READY;

    for (uint32_t i = 0; i < pattern_bytes; i++) {
        work.pattern[i] = (unsigned char)(pattern >> (8 * i));
    }
    if (pattern_bytes == 1) {
        status = give_to_gpu(device, native_stream, &work, error);
    }
    return status == DS_ACCEL_NOT_READY ? give_to_host(native_stream, &work, error) : status;
}

/* The copy is complete on return and not ordered with a stream, so the host copies immediately. */
int32_t mps_copy(ds_accel_plugin_device_t *device, void *destination, const void *source,
                 uint64_t size_bytes, uint32_t kind, struct ds_accel_error *error)
{
    (void)device;
    (void)kind;
    (void)error;
    memcpy(destination, source, size_bytes);
    return DS_ACCEL_OK;
}
