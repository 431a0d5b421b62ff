/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Native handles: the objects inside the plugin's handles. The native handle of a stream is its
 * queue, and that of an event is its mark, so a second handle that wraps it refers to the same
 * object, and destroying the second handle does not affect the first. A program that wraps an
 * object must keep the vendor's object alive; in the mock, destroying the first handle frees the
 * object.
 */
#include "mock.h"

static int32_t native_of(const ds_accel_plugin_device_t *device, uint32_t kind, const void *object,
                         uint64_t *native_out)
{
    const ds_accel_plugin_stream_t *stream = object;
    const ds_accel_plugin_event_t *event = object;

    switch (kind) {
    case DS_ACCEL_NATIVE_DEVICE:
    case DS_ACCEL_NATIVE_CONTEXT:
        if (object != device) {
            return DS_ACCEL_ERR_INVALID;
        }
        *native_out = (uintptr_t)object;
        return DS_ACCEL_OK;
    case DS_ACCEL_NATIVE_STREAM:
        *native_out = (uintptr_t)stream->queue;
        return DS_ACCEL_OK;
    case DS_ACCEL_NATIVE_EVENT:
        *native_out = (uintptr_t)event->mark;
        return DS_ACCEL_OK;
    case DS_ACCEL_NATIVE_MEMORY:
        *native_out = (uintptr_t)object;
        return DS_ACCEL_OK;
    default:
        return DS_ACCEL_ERR_INVALID;
    }
}

static int32_t mock_native_get(ds_accel_plugin_device_t *device, uint32_t kind, const void *object,
                               uint64_t *native_out, uint64_t *offset_bytes_out,
                               struct ds_accel_error *error)
{
    int32_t status = mock_enter_device(device, "native_get", error);

    if (status < 0) {
        return status;
    }
    if (object == NULL || native_out == NULL || offset_bytes_out == NULL) {
        return mock_null(error, "native_get", "object, native_out or offset_bytes_out");
    }
    status = native_of(device, kind, object, native_out);
    if (status < 0) {
        return plugin_fail(error, status, "native_get: kind %u is unknown or not that of %p", kind,
                           object);
    }
    *offset_bytes_out = 0; /* native memory is a plain address */
    return DS_ACCEL_OK;
}

static int32_t mock_native_wrap(ds_accel_plugin_device_t *device, uint32_t kind, uint64_t native,
                                void **object_out, struct ds_accel_error *error)
{
    void *object;
    int32_t status = mock_enter_device(device, "native_wrap", error);

    if (status < 0) {
        return status;
    }
    if (native == 0 || object_out == NULL) {
        return mock_null(error, "native_wrap", "native or object_out");
    }
    switch (kind) {
    case DS_ACCEL_NATIVE_STREAM:
        object = mock_stream_make(device, (struct mock_queue *)(uintptr_t)native);
        break;
    case DS_ACCEL_NATIVE_EVENT:
        object = mock_event_make(device, 0, (struct mock_mark *)(uintptr_t)native);
        break;
    case DS_ACCEL_NATIVE_DEVICE:
    case DS_ACCEL_NATIVE_CONTEXT:
    case DS_ACCEL_NATIVE_MEMORY:
    case DS_ACCEL_NATIVE_GRAPH:
    case DS_ACCEL_NATIVE_GRAPH_EXEC:
        return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                           "native_wrap: only streams and events can be wrapped, not kind %u",
                           kind);
    default:
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "native_wrap: unknown kind %u", kind);
    }
    if (object == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "native_wrap: no memory");
    }
    *object_out = object;
    return DS_ACCEL_OK;
}

void mock_native_fill(struct ds_accel_plugin *table)
{
    table->native_get = mock_native_get;
    table->native_wrap = mock_native_wrap;
}
