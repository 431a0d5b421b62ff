/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Memory, streams, events. The default stream is one that the frame makes: what the NULL handle
 * stands for is not documented (sdaaStreamPerThread is 2, so handles are not addresses alone).
 */
#include "sdaa.h"

int32_t sdaa_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                   struct ds_accel_error *error)
{
    return SDAA_CHECK(device, API_OF(device)->sdaaMalloc(pointer_out, size_bytes), error,
                      "sdaaMalloc(%llu bytes, device %u)", (unsigned long long)size_bytes,
                      device->index);
}

int32_t sdaa_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error)
{
    return SDAA_CHECK(device, API_OF(device)->sdaaFree(pointer), error, "sdaaFree(%p)", pointer);
}

int32_t sdaa_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                          void **pointer_out, struct ds_accel_error *error)
{
    (void)flags; /* the call has none */
    return SDAA_CHECK(device, API_OF(device)->sdaaMallocHost(pointer_out, size_bytes), error,
                      "sdaaMallocHost(%llu bytes)", (unsigned long long)size_bytes);
}

int32_t sdaa_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                         struct ds_accel_error *error)
{
    return SDAA_CHECK(device, API_OF(device)->sdaaFreeHost(pointer), error, "sdaaFreeHost(%p)",
                      pointer);
}

int32_t sdaa_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        const void *source, uint64_t size_bytes, uint32_t kind,
                        struct ds_accel_error *error)
{
    return SDAA_CHECK(device,
                      API_OF(device)->sdaaMemcpyAsync(destination, source, size_bytes,
                                                      SDAA_COPY_KIND(kind), native_stream),
                      error, "sdaaMemcpyAsync(%p, %p, %llu bytes, kind %d)", destination, source,
                      (unsigned long long)size_bytes, SDAA_COPY_KIND(kind));
}

int32_t sdaa_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                        struct ds_accel_error *error)
{
    (void)pattern_bytes; /* 1: fill_widths */
    return SDAA_CHECK(
        device,
        API_OF(device)->sdaaMemsetAsync(destination, (int)(pattern & 0xff), count, native_stream),
        error, "sdaaMemsetAsync(%p, 0x%x, %llu bytes)", destination, pattern & 0xff,
        (unsigned long long)count);
}

int32_t sdaa_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                         struct ds_accel_error *error)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    int32_t status = SDAA_CHECK(device, API_OF(device)->sdaaMemGetInfo(&free_bytes, &total_bytes),
                                error, "sdaaMemGetInfo(device %u)", device->index);

    if (status == DS_ACCEL_OK) {
        *free_out = free_bytes;
        *total_out = total_bytes;
    }
    return status;
}

/* -- streams -- */

int32_t sdaa_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                           void **native_out, struct ds_accel_error *error)
{
    unsigned int native_flags =
        (flags & DS_ACCEL_STREAM_NON_BLOCKING) != 0 ? SDAA_STREAM_NON_BLOCKING : 0;

    (void)priority; /* 0, the only one */
    return SDAA_CHECK(device, API_OF(device)->sdaaStreamCreateWithFlags(native_out, native_flags),
                      error, "sdaaStreamCreateWithFlags(flags %u)", native_flags);
}

void sdaa_stream_destroy(ds_accel_plugin_device_t *device, void *native)
{
    (void)sdaa_code(SDAA_OF(device), API_OF(device)->sdaaStreamDestroy(native));
}

int32_t sdaa_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                                struct ds_accel_error *error)
{
    return SDAA_CHECK(device, API_OF(device)->sdaaStreamSynchronize(native), error,
                      "sdaaStreamSynchronize(%p)", native);
}

int32_t sdaa_stream_query(ds_accel_plugin_device_t *device, void *native,
                          struct ds_accel_error *error)
{
    sdaa_error_t code = sdaa_code(SDAA_OF(device), API_OF(device)->sdaaStreamQuery(native));

    return code == SDAA_NOT_READY
               ? DS_ACCEL_NOT_READY
               : vendor_check(device->instance, device, code, error, "sdaaStreamQuery(%p)", native);
}

int32_t sdaa_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                               struct ds_accel_error *error)
{
    return SDAA_CHECK(device, API_OF(device)->sdaaStreamWaitEvent(native, native_event, 0), error,
                      "sdaaStreamWaitEvent(%p, %p)", native, native_event);
}

struct callback {
    void (*call)(void *argument);
    void *argument;
};

static void run_callback(sdaa_stream_t stream, sdaa_error_t code, void *user_data)
{
    struct callback callback = *(struct callback *)user_data;

    (void)stream;
    (void)code;
    free(user_data);
    callback.call(callback.argument);
}

int32_t sdaa_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                              void (*call)(void *argument), void *argument,
                              struct ds_accel_error *error)
{
    struct callback *callback = malloc(sizeof(*callback));
    int32_t status;

    if (callback == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "stream_host_task: no memory for it");
    }
    callback->call = call;
    callback->argument = argument;
    status = SDAA_CHECK(device,
                        API_OF(device)->sdaaStreamAddCallback(native, run_callback, callback, 0),
                        error, "sdaaStreamAddCallback(%p)", native);
    if (status < 0) {
        free(callback);
    }
    return status;
}

/* -- events -- */

int32_t sdaa_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                          struct ds_accel_error *error)
{
    unsigned int native_flags =
        ((flags & DS_ACCEL_EVENT_TIMING) == 0 ? SDAA_EVENT_DISABLE_TIMING : 0u) |
        ((flags & DS_ACCEL_EVENT_BLOCKING_SYNC) != 0 ? SDAA_EVENT_BLOCKING_SYNC : 0u) |
        ((flags & DS_ACCEL_EVENT_INTERPROCESS) != 0 ? SDAA_EVENT_INTERPROCESS : 0u);

    return SDAA_CHECK(device, API_OF(device)->sdaaEventCreateWithFlags(native_out, native_flags),
                      error, "sdaaEventCreateWithFlags(flags %u)", native_flags);
}

void sdaa_event_destroy(ds_accel_plugin_device_t *device, void *native)
{
    (void)sdaa_code(SDAA_OF(device), API_OF(device)->sdaaEventDestroy(native));
}

int32_t sdaa_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                          struct ds_accel_error *error)
{
    return SDAA_CHECK(device, API_OF(device)->sdaaEventRecord(native, native_stream), error,
                      "sdaaEventRecord(%p, %p)", native, native_stream);
}

int32_t sdaa_event_query(ds_accel_plugin_device_t *device, void *native,
                         struct ds_accel_error *error)
{
    sdaa_error_t code = sdaa_code(SDAA_OF(device), API_OF(device)->sdaaEventQuery(native));

    return code == SDAA_NOT_READY
               ? DS_ACCEL_NOT_READY
               : vendor_check(device->instance, device, code, error, "sdaaEventQuery(%p)", native);
}

int32_t sdaa_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                               struct ds_accel_error *error)
{
    return SDAA_CHECK(device, API_OF(device)->sdaaEventSynchronize(native), error,
                      "sdaaEventSynchronize(%p)", native);
}

int32_t sdaa_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                              double *elapsed_ms_out, struct ds_accel_error *error)
{
    float milliseconds = 0;
    sdaa_error_t code =
        sdaa_code(SDAA_OF(device), API_OF(device)->sdaaEventElapsedTime(&milliseconds, start, end));
    int32_t status;

    if (code == SDAA_NOT_READY) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "sdaaEventElapsedTime: an event was not reached yet");
    }
    status = vendor_check(device->instance, device, code, error, "sdaaEventElapsedTime(%p, %p)",
                          start, end);
    if (status == DS_ACCEL_OK) {
        *elapsed_ms_out = milliseconds;
    }
    return status;
}

int32_t sdaa_ipc_event_export(ds_accel_plugin_device_t *device, void *native, void *handle,
                              struct ds_accel_error *error)
{
    return SDAA_CHECK(device, API_OF(device)->sdaaIpcGetEventHandle(handle, native), error,
                      "sdaaIpcGetEventHandle(%p)", native);
}

int32_t sdaa_ipc_event_open(ds_accel_plugin_device_t *device, const void *handle, void **native_out,
                            struct ds_accel_error *error)
{
    struct sdaa_ipc_event value;

    memcpy(&value, handle, sizeof(value));
    return SDAA_CHECK(device, API_OF(device)->sdaaIpcOpenEventHandle(native_out, value), error,
                      "sdaaIpcOpenEventHandle(device %u)", device->index);
}
