/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A device's memory for programs: checked calls in front of the allocator and the plugin. */
#include "internal.h"

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

int32_t ds_accel_mem_alloc(ds_accel_device_t *device, ds_accel_stream_t *stream,
                           uint64_t size_bytes, void **pointer_out)
{
    return ds_accel_mem_alloc_aligned(device, stream, size_bytes, 512, pointer_out);
}

int32_t ds_accel_mem_alloc_aligned(ds_accel_device_t *device, ds_accel_stream_t *stream,
                                   uint64_t size_bytes, uint64_t align_bytes, void **pointer_out)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, "mem_alloc");
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    void *pointer = NULL;
    int32_t status;

    if (ours == NULL || pointer_out == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID : ds_accel__refuse("mem_alloc", "output", NULL);
    }
    if (ds_accel__stream_of(ours, stream, "mem_alloc") == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    status = device->table->mem_alloc(device->handle, size_bytes, align_bytes, 0, &pointer, &error);
    if (status >= 0) {
        *pointer_out = pointer;
    }
    return finish(status, &error);
}

int32_t ds_accel_mem_free(ds_accel_device_t *device, ds_accel_stream_t *stream, void *pointer)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    (void)stream;
    if (ds_accel__device_check(device, "mem_free") == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    return finish(device->table->mem_free(device->handle, pointer, &error), &error);
}

int32_t ds_accel_mem_record_stream(ds_accel_device_t *device, void *pointer,
                                   ds_accel_stream_t *stream)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, "mem_record_stream");
    struct ds_accel__stream *theirs;
    int32_t status;

    if (ours == NULL || pointer == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID
                            : ds_accel__refuse("mem_record_stream", "pointer", NULL);
    }
    theirs = ds_accel__stream_of(ours, stream, "mem_record_stream");
    if (theirs == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    status = ds_accel__pinned_record(ours, pointer, theirs);
    return status == DS_ACCEL_ERR_NOT_FOUND ? DS_ACCEL_OK : status;
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
    return finish(table->mem_pointer_info(instance, NULL, pointer, info_out, &error), &error);
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
    /* What the pool keeps for later is locked, and nobody's. */
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
