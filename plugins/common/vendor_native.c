/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Native handles: read the vendor's handle of our object, or wrap the program's vendor handle in an
   object of ours. */
#include "vendor_frame.h"

static uint64_t handle_of(ds_accel_plugin_device_t *device, uint32_t kind, void *native)
{
    return vendor_backend.native_handle != NULL ? vendor_backend.native_handle(device, kind, native)
                                                : (uintptr_t)native;
}

static int32_t native_of_device(ds_accel_plugin_device_t *device, uint32_t kind, const void *object,
                                uint64_t *native_out, struct ds_accel_error *error)
{
    if (object != device) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "native_get: %p is not the device", object);
    }
    if (kind == DS_ACCEL_NATIVE_CONTEXT && device->native_context == 0) {
        return vendor_unsupported(error, "native_get", "this runtime has no contexts");
    }
    *native_out = kind == DS_ACCEL_NATIVE_DEVICE ? device->native_device : device->native_context;
    return DS_ACCEL_OK;
}

static int32_t native_of(ds_accel_plugin_device_t *device, uint32_t kind, const void *object,
                         uint64_t *native_out, uint64_t *offset_out, struct ds_accel_error *error)
{
    int32_t status = DS_ACCEL_OK;

    switch (kind) {
    case DS_ACCEL_NATIVE_DEVICE:
    case DS_ACCEL_NATIVE_CONTEXT:
        return native_of_device(device, kind, object, native_out, error);
    case DS_ACCEL_NATIVE_STREAM:
        *native_out = handle_of(device, kind, ((const ds_accel_plugin_stream_t *)object)->native);
        return DS_ACCEL_OK;
    case DS_ACCEL_NATIVE_EVENT:
        *native_out = handle_of(device, kind, ((const ds_accel_plugin_event_t *)object)->native);
        return DS_ACCEL_OK;
    case DS_ACCEL_NATIVE_GRAPH:
        *native_out = handle_of(device, kind, ((const ds_accel_plugin_graph_t *)object)->native);
        return DS_ACCEL_OK;
    case DS_ACCEL_NATIVE_GRAPH_EXEC:
        *native_out =
            handle_of(device, kind, ((const ds_accel_plugin_graph_exec_t *)object)->native);
        return DS_ACCEL_OK;
    case DS_ACCEL_NATIVE_MEMORY:
        *native_out = (uintptr_t)object;
        if (vendor_backend.native_memory != NULL) {
            status = vendor_backend.native_memory(device, object, native_out, offset_out, error);
        }
        return status;
    default:
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "native_get: unknown kind %u", kind);
    }
}

static int32_t vendor_native_get(ds_accel_plugin_device_t *device, uint32_t kind,
                                 const void *object, uint64_t *native_out,
                                 uint64_t *offset_bytes_out, struct ds_accel_error *error)
{
    uint64_t native = 0;
    uint64_t offset = 0;
    int32_t status;

    if (device == NULL || object == NULL || native_out == NULL || offset_bytes_out == NULL) {
        return vendor_null(error, "native_get",
                           "the device, object, native_out or offset_bytes_out");
    }
    status = native_of(device, kind, object, &native, &offset, error);
    if (status == DS_ACCEL_OK) {
        *native_out = native;
        *offset_bytes_out = offset;
    }
    return status;
}

/* ---- wrapping ------------------------------------------------------------------------------- */

static int32_t wrap_handle(ds_accel_plugin_device_t *device, uint32_t kind, uint64_t handle,
                           void **native_out, struct ds_accel_error *error)
{
    int32_t status = DS_ACCEL_OK;

    *native_out = (void *)(uintptr_t)handle;
    if (vendor_backend.native_wrap != NULL) {
        VENDOR_CALL(device, error, status,
                    vendor_backend.native_wrap(device, kind, handle, native_out, error));
    }
    return status;
}

static void unwrap_handle(ds_accel_plugin_device_t *device, uint32_t kind, void *native)
{
    if (vendor_backend.native_unwrap != NULL) {
        VENDOR_DESTROY(device, vendor_backend.native_unwrap(device, kind, native));
    }
}

static int32_t wrap_stream(ds_accel_plugin_device_t *device, uint64_t handle, void **object_out,
                           struct ds_accel_error *error)
{
    ds_accel_plugin_stream_t *stream;
    void *native = NULL;
    int32_t status;

    if (vendor_backend.stream_synchronize == NULL) {
        return vendor_unsupported(error, "native_wrap", "this runtime has no streams");
    }
    status = wrap_handle(device, DS_ACCEL_NATIVE_STREAM, handle, &native, error);
    if (status < 0) {
        return status;
    }
    stream = vendor_stream_handle_create(device, native);
    if (stream == NULL) {
        unwrap_handle(device, DS_ACCEL_NATIVE_STREAM, native);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "native_wrap: no memory");
    }
    stream->is_wrapped = 1;
    *object_out = stream;
    return DS_ACCEL_OK;
}

static int32_t wrap_event(ds_accel_plugin_device_t *device, uint64_t handle, void **object_out,
                          struct ds_accel_error *error)
{
    ds_accel_plugin_event_t *event;
    void *native = NULL;
    int32_t status;

    if (!vendor_backend.wraps_events) {
        return vendor_unsupported(error, "native_wrap", "events are not wrapped here");
    }
    status = wrap_handle(device, DS_ACCEL_NATIVE_EVENT, handle, &native, error);
    if (status < 0) {
        return status;
    }
    event = vendor_event_handle_create(device, 0, native);
    if (event == NULL) {
        unwrap_handle(device, DS_ACCEL_NATIVE_EVENT, native);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "native_wrap: no memory");
    }
    event->is_wrapped = 1;
    *object_out = event;
    return DS_ACCEL_OK;
}

static int32_t wrap_memory(ds_accel_plugin_device_t *device, uint64_t handle, void **object_out,
                           struct ds_accel_error *error)
{
    struct vendor_block *block;
    void *start;
    int32_t status;

    if (vendor_backend.native_memory_wrap == NULL) {
        return vendor_unsupported(error, "native_wrap",
                                  "memory is an address here, which needs no wrapping");
    }
    block = vendor_block_create(device, VENDOR_SOURCE_WRAPPED, DS_ACCEL_POINTER_DEVICE);
    if (block == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "native_wrap: no memory");
    }
    VENDOR_CALL(device, error, status,
                vendor_backend.native_memory_wrap(device, handle, &block->start, &block->size_bytes,
                                                  error));
    if (status < 0) {
        vendor_block_destroy(block);
        return status;
    }
    start = block->start;
    block->base = (uintptr_t)start;
    block->start_size_bytes = block->size_bytes;
    status = vendor_block_enter(block, "native_wrap", error);
    if (status < 0) {
        unwrap_handle(device, DS_ACCEL_NATIVE_MEMORY, start);
        return status;
    }
    *object_out = start;
    return DS_ACCEL_OK;
}

/* 0 is a valid handle if it is the vendor's default stream. */
static int is_default_stream(ds_accel_plugin_device_t *device, uint32_t kind)
{
    return kind == DS_ACCEL_NATIVE_STREAM && vendor_backend.stream_default != NULL &&
           device->default_stream != NULL &&
           handle_of(device, kind, device->default_stream->native) == 0;
}

static int32_t vendor_native_wrap(ds_accel_plugin_device_t *device, uint32_t kind, uint64_t native,
                                  void **object_out, struct ds_accel_error *error)
{
    int32_t status = vendor_check_device(device, "native_wrap", error);

    if (status < 0) {
        return status;
    }
    if (kind < DS_ACCEL_NATIVE_DEVICE || kind > DS_ACCEL_NATIVE_GRAPH_EXEC) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "native_wrap: unknown kind %u", kind);
    }
    if (object_out == NULL || (native == 0 && !is_default_stream(device, kind))) {
        return vendor_null(error, "native_wrap", "native or object_out");
    }
    switch (kind) {
    case DS_ACCEL_NATIVE_STREAM:
        return wrap_stream(device, native, object_out, error);
    case DS_ACCEL_NATIVE_EVENT:
        return wrap_event(device, native, object_out, error);
    case DS_ACCEL_NATIVE_MEMORY:
        return wrap_memory(device, native, object_out, error);
    default:
        return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                           "native_wrap: streams, events and memory are wrapped, not kind %u",
                           kind);
    }
}

void vendor_native_fill(struct ds_accel_plugin *table)
{
    table->native_get = vendor_native_get;
    table->native_wrap = vendor_native_wrap;
}
