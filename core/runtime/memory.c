/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Memory functions for programs: they check their arguments and call the allocator or the
 * plugin. */
#include "base/text.h"
#include "host/context.h"
#include "host/registry.h"
#include "runtime/allocator/allocator.h"
#include "runtime/caching.h"
#include "runtime/handle.h"

extern inline int32_t ds_accel_mem_copy_async(ds_accel_stream_t *stream, void *destination,
                                              const void *source, uint64_t size_bytes,
                                              uint32_t kind);
extern inline int32_t ds_accel_mem_fill_async(ds_accel_stream_t *stream, void *destination,
                                              const void *pattern, uint32_t pattern_bytes,
                                              uint64_t size_bytes);
extern inline int32_t ds_accel_mem_set_async(ds_accel_stream_t *stream, void *destination,
                                             uint8_t value, uint64_t size_bytes);

static int32_t finish(int32_t status, const struct ds_accel_error *error)
{
    return status < 0 ? ds_accel__fail(status, error) : DS_ACCEL_OK;
}

/* ---- device memory -------------------------------------------------------------------------- */

/* Return the device's allocator, which the first call that needs it creates: a program that
 * allocates no memory has no cost. */
int32_t ds_accel__device_allocator(struct ds_accel__device *device,
                                   struct ds_accel__allocator **allocator_out)
{
    struct ds_accel__allocator *allocator = __atomic_load_n(&device->allocator, __ATOMIC_ACQUIRE);
    struct ds_accel__allocator_options options;
    int32_t status = DS_ACCEL_OK;

    if (allocator == NULL) {
        status = ds_accel__device_fork_check(device);
        if (status < 0) {
            return status;
        }
        status = ds_accel__allocator_read_options(device->context, &options);
        if (status < 0) {
            return status;
        }
        pthread_mutex_lock(&device->lock);
        allocator = device->allocator;
        if (allocator == NULL) {
            status = ds_accel__allocator_create(device->abi.table, device->abi.handle, &options,
                                                &allocator);
            if (status >= 0) {
                ds_accel__allocator_attach(allocator, &device->abi, device->index);
                __atomic_store_n(&device->allocator, allocator, __ATOMIC_RELEASE);
            }
        }
        pthread_mutex_unlock(&device->lock);
    }
    *allocator_out = allocator;
    return status;
}

int32_t ds_accel__stream_arena(struct ds_accel__stream *stream, struct ds_accel__arena **arena_out)
{
    struct ds_accel__device *device = stream->child.device;
    struct ds_accel__arena *arena = __atomic_load_n(&stream->arena, __ATOMIC_ACQUIRE);
    struct ds_accel__allocator *allocator;
    int32_t status;

    if (arena == NULL) {
        status = ds_accel__device_allocator(device, &allocator);
        if (status < 0) {
            return status;
        }
        pthread_mutex_lock(&device->lock);
        arena = stream->arena;
        if (arena == NULL) {
            arena = ds_accel__allocator_arena(allocator, stream->abi.handle);
            __atomic_store_n(&stream->arena, arena, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&device->lock);
    }
    *arena_out = arena;
    return arena != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

/* Return the stream's arena for the fast path. NULL: a handle is not live, the stream is not a
 * stream of the device, a parent process started the accelerator, a layer must see the call, or the
 * arena does not exist yet. */
static inline struct ds_accel__arena *quick_arena(const ds_accel_device_t *device,
                                                  const ds_accel_stream_t *stream)
{
    const struct ds_accel__device *ours = (const struct ds_accel__device *)device;
    const struct ds_accel__stream *queue = (const struct ds_accel__stream *)stream;

    if (DS_ACCEL_UNLIKELY_(device == NULL || stream == NULL ||
                           __atomic_load_n(&ours->child.id, __ATOMIC_RELAXED) == 0 ||
                           __atomic_load_n(&queue->child.id, __ATOMIC_RELAXED) == 0 ||
                           queue->child.device != ours || ours->candidate->watch.is_forked ||
                           __atomic_load_n(&ds_accel__layers_on, __ATOMIC_RELAXED) != 0)) {
        return NULL;
    }
    return __atomic_load_n(&queue->arena, __ATOMIC_ACQUIRE);
}

/* Find the arena for any arguments: create it if it does not exist. Fails, with the error set, if a
 * handle is not live, the stream is not a stream of the device, a parent process started the
 * accelerator, or a host task makes the call. */
static int32_t find_arena(ds_accel_device_t *device, ds_accel_stream_t *stream, const char *call,
                          struct ds_accel__arena **arena_out)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, call);
    struct ds_accel__stream *queue;
    int32_t status;

    if (ours == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    status = ds_accel__device_fork_check(ours);
    if (status < 0) {
        return status;
    }
    queue = ds_accel__stream_of(ours, stream, call);
    return queue != NULL ? ds_accel__stream_arena(queue, arena_out) : DS_ACCEL_ERR_INVALID;
}

/* Allocate device memory. Programs allocate all device memory through this function. */
static inline int32_t alloc(ds_accel_device_t *device, ds_accel_stream_t *stream,
                            uint64_t size_bytes, uint64_t align_bytes, void **pointer_out)
{
    struct ds_accel__arena *arena = quick_arena(device, stream);
    int32_t status;

    if (DS_ACCEL_UNLIKELY_(pointer_out == NULL)) {
        return ds_accel__refuse("mem_alloc", "output", NULL);
    }
    if (DS_ACCEL_UNLIKELY_(arena == NULL)) {
        status = find_arena(device, stream, "mem_alloc", &arena);
        if (status < 0) {
            return status;
        }
    }
    return ds_accel__allocator_alloc(arena, size_bytes, align_bytes, pointer_out);
}

int32_t ds_accel_mem_alloc(ds_accel_device_t *device, ds_accel_stream_t *stream,
                           uint64_t size_bytes, void **pointer_out)
{
    return alloc(device, stream, size_bytes, 512, pointer_out);
}

int32_t ds_accel_mem_alloc_aligned(ds_accel_device_t *device, ds_accel_stream_t *stream,
                                   uint64_t size_bytes, uint64_t align_bytes, void **pointer_out)
{
    return alloc(device, stream, size_bytes, align_bytes, pointer_out);
}

/* Return the error for a pointer that does not belong to this device. If it belongs to another
 * device, the error text names that device; otherwise the text of the current error stays. */
static int32_t refuse_pointer(struct ds_accel__device *device, const char *call,
                              const void *pointer)
{
    ds_accel_t *context = device->context;
    int32_t owner = -1;

    pthread_mutex_lock(&context->device_lock);
    for (uint32_t i = 0; i < context->device_count && context->devices != NULL; i++) {
        const struct ds_accel__device *other = context->devices[i];
        struct ds_accel__allocator *allocator =
            other != NULL ? __atomic_load_n(&other->allocator, __ATOMIC_ACQUIRE) : NULL;

        if (other != device && allocator != NULL && ds_accel__allocator_owns(allocator, pointer)) {
            owner = (int32_t)i;
        }
    }
    pthread_mutex_unlock(&context->device_lock);
    if (owner >= 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: %p is memory of device %d, not %u", call,
                               pointer, owner, device->index);
    }
    return DS_ACCEL_ERR_INVALID;
}

/* Programs free all device memory through this function. */
int32_t ds_accel_mem_free(ds_accel_device_t *device, ds_accel_stream_t *stream, void *pointer)
{
    struct ds_accel__arena *arena = quick_arena(device, stream);
    struct ds_accel__device *ours = (struct ds_accel__device *)device;
    struct ds_accel__allocator *allocator;
    int32_t status;

    if (DS_ACCEL_UNLIKELY_(arena == NULL)) {
        ours = ds_accel__device_check(device, "mem_free");
        if (ours == NULL) {
            return DS_ACCEL_ERR_INVALID;
        }
        status = ds_accel__device_fork_check(ours);
        if (status >= 0 && stream != NULL) {
            status = find_arena(device, stream, "mem_free", &arena);
        }
        if (status < 0 || pointer == NULL) {
            return status;
        }
    }
    if (DS_ACCEL_UNLIKELY_(pointer == NULL)) {
        return DS_ACCEL_OK;
    }
    status = ds_accel__device_allocator(ours, &allocator);
    if (DS_ACCEL_UNLIKELY_(status < 0)) {
        return status;
    }
    status = ds_accel__allocator_free(allocator, arena, pointer);
    return DS_ACCEL_UNLIKELY_(status == DS_ACCEL_ERR_NOT_FOUND)
               ? refuse_pointer(ours, "mem_free", pointer)
               : status;
}

int32_t ds_accel_mem_record_stream(ds_accel_device_t *device, void *pointer,
                                   ds_accel_stream_t *stream)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, "mem_record_stream");
    struct ds_accel__allocator *allocator;
    struct ds_accel__stream *theirs;
    struct ds_accel__arena *arena;
    int32_t status;

    if (ours == NULL || pointer == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID
                            : ds_accel__refuse("mem_record_stream", "pointer", NULL);
    }
    status = ds_accel__device_fork_check(ours);
    if (status < 0) {
        return status;
    }
    theirs = ds_accel__stream_of(ours, stream, "mem_record_stream");
    if (theirs == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    status = ds_accel__pinned_record(ours, pointer, theirs);
    if (status != DS_ACCEL_ERR_NOT_FOUND) {
        return status;
    }
    status = ds_accel__stream_arena(theirs, &arena);
    status = status < 0 ? status : ds_accel__device_allocator(ours, &allocator);
    if (status >= 0) {
        status = ds_accel__allocator_record(allocator, pointer, arena);
    }
    return status == DS_ACCEL_ERR_NOT_FOUND ? refuse_pointer(ours, "mem_record_stream", pointer)
                                            : status;
}

/* ---- host memory ---------------------------------------------------------------------------- */

int32_t ds_accel_mem_register(ds_accel_device_t *device, void *pointer, uint64_t size_bytes,
                              uint32_t flags)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    if (ds_accel__device_check(device, "mem_register") == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    return finish(device->table->mem_register(device->handle, pointer, size_bytes, flags, &error),
                  &error);
}

int32_t ds_accel_mem_unregister(ds_accel_device_t *device, void *pointer)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    if (ds_accel__device_check(device, "mem_unregister") == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    return finish(device->table->mem_unregister(device->handle, pointer, &error), &error);
}

/* ---- addresses ------------------------------------------------------------------------------ */

/* Correct the plugin's description of an address. The plugin reports the range of a whole segment
 * of the allocator: replace it by the range of the program's allocation that contains the
 * address. */
static void narrow(ds_accel_t *context, const void *pointer, struct ds_accel_pointer_info *info)
{
    const struct ds_accel__device *device = NULL;
    struct ds_accel__allocator *allocator;
    uint64_t address;
    uint64_t size_bytes;

    if (info->device_index < 0 || (uint32_t)info->device_index >= context->device_count ||
        !DS_ACCEL_HAS(info, struct ds_accel_pointer_info, size_bytes)) {
        return;
    }
    pthread_mutex_lock(&context->device_lock);
    if (context->devices != NULL) {
        device = context->devices[info->device_index];
    }
    allocator = device != NULL ? __atomic_load_n(&device->allocator, __ATOMIC_ACQUIRE) : NULL;
    if (allocator != NULL && ds_accel__allocator_find(allocator, pointer, &address, &size_bytes)) {
        info->base_address = address;
        info->size_bytes = size_bytes;
    }
    pthread_mutex_unlock(&context->device_lock);
}

int32_t ds_accel_mem_pointer_info(ds_accel_t *context, const void *pointer,
                                  struct ds_accel_pointer_info *info_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_plugin *table;
    ds_accel_plugin_instance_t *instance;
    int32_t status = ds_accel_instance(context, &table, &instance);

    if (status < 0) {
        return status;
    }
    if (info_out == NULL) {
        return ds_accel__refuse("mem_pointer_info", "output", NULL);
    }
    status = table->mem_pointer_info(instance, NULL, pointer, info_out, &error);
    if (status >= 0) {
        narrow(context, pointer, info_out);
    }
    return finish(status, &error);
}

int32_t ds_accel_is_pinned(ds_accel_t *context, const void *pointer, uint32_t *is_pinned_out)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info)};
    enum ds_accel__pinned_place place;
    int32_t status = ds_accel_mem_pointer_info(context, pointer, &info);

    if (status < 0 && status != DS_ACCEL_ERR_UNSUPPORTED) {
        return status;
    }
    if (is_pinned_out == NULL) {
        return ds_accel__refuse("is_pinned", "output", NULL);
    }
    /* A free block of the pool is page-locked, but not allocated. */
    place = ds_accel__pinned_find(context, (const void *)(uintptr_t)info.base_address, pointer);
    if (status >= 0 || place != DS_ACCEL__PINNED_FOREIGN) {
        *is_pinned_out = place == DS_ACCEL__PINNED_FOREIGN ? info.kind == DS_ACCEL_POINTER_PINNED
                                                           : place == DS_ACCEL__PINNED_LIVE;
        status = DS_ACCEL_OK;
    }
    return status;
}

/* ---- copies --------------------------------------------------------------------------------- */

int32_t ds_accel_mem_copy(ds_accel_device_t *device, void *destination, const void *source,
                          uint64_t size_bytes, uint32_t kind)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    if (ds_accel__device_check(device, "mem_copy") == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    return finish(
        device->table->mem_copy(device->handle, destination, source, size_bytes, kind, &error),
        &error);
}

int32_t ds_accel_mem_set(ds_accel_device_t *device, void *destination, uint8_t value,
                         uint64_t size_bytes)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, "mem_set");
    struct ds_accel__stream *stream;
    int32_t status;

    if (ours == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    stream = ds_accel__stream_of(ours, NULL, "mem_set");
    if (stream == NULL) {
        return DS_ACCEL_ERR_STATE;
    }
    status = ds_accel_mem_set_async(&stream->abi, destination, value, size_bytes);
    return status < 0 ? status : ds_accel_stream_synchronize(&stream->abi);
}

int32_t ds_accel_mem_copy_peer_async(ds_accel_stream_t *stream,
                                     ds_accel_device_t *destination_device, void *destination,
                                     ds_accel_device_t *source_device, const void *source,
                                     uint64_t size_bytes)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    if (ds_accel__stream_check(stream, "mem_copy_peer_async") == NULL ||
        ds_accel__device_check(destination_device, "mem_copy_peer_async") == NULL ||
        ds_accel__device_check(source_device, "mem_copy_peer_async") == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    if (destination_device->table != stream->table || source_device->table != stream->table) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "mem_copy_peer_async: the devices and the stream are not of one "
                               "context");
    }
    return finish(stream->table->mem_copy_peer_async(stream->handle, destination_device->handle,
                                                     destination, source_device->handle, source,
                                                     size_bytes, &error),
                  &error);
}
