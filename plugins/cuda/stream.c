/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Streams and events. The driver breaks a capture of another stream for a query or a wait, unless
 * the thread's capture mode is relaxed: so the plugin relaxes it for these calls. */
#include "plugin.h"

int32_t cuda_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                           void **native_out, struct ds_accel_error *error)
{
    cu_stream_t stream = NULL;
    unsigned int bits = (flags & DS_ACCEL_STREAM_NON_BLOCKING) != 0 ? CU_STREAM_NON_BLOCKING : 0;

    CUDA_TRY(device, cuda_api_of(device)->cuStreamCreateWithPriority(&stream, bits, priority),
             error, "cuStreamCreateWithPriority(flags %u, priority %d, device %u)", bits, priority,
             device->index);
    *native_out = stream;
    return DS_ACCEL_OK;
}

void cuda_stream_destroy(ds_accel_plugin_device_t *device, void *native)
{
    CUDA_END(device, cuda_api_of(device)->cuStreamDestroy_v2(native), "cuStreamDestroy(%p)",
             native);
}

/* NULL means the legacy default stream, which waits for all blocking streams. */
int32_t cuda_stream_default(ds_accel_plugin_device_t *device, void **native_out,
                            struct ds_accel_error *error)
{
    (void)device;
    (void)error;
    *native_out = NULL;
    return DS_ACCEL_OK;
}

/* The driver's range begins with the lowest priority, which is the larger number. */
int32_t cuda_stream_priority_range(ds_accel_plugin_device_t *device, int32_t *least_out,
                                   int32_t *greatest_out, struct ds_accel_error *error)
{
    int least = 0;
    int greatest = 0;

    CUDA_TRY(device, cuda_api_of(device)->cuCtxGetStreamPriorityRange(&least, &greatest), error,
             "cuCtxGetStreamPriorityRange(device %u)", device->index);
    *least_out = least;
    *greatest_out = greatest;
    return DS_ACCEL_OK;
}

int32_t cuda_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                                struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_result_t code;

    CUDA_RELAXED(api, code, api->cuStreamSynchronize(native));
    CUDA_TRY(device, code, error, "cuStreamSynchronize(%p)", native);
    return DS_ACCEL_OK;
}

int32_t cuda_stream_query(ds_accel_plugin_device_t *device, void *native,
                          struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_result_t code;

    CUDA_RELAXED(api, code, api->cuStreamQuery(native));
    if (code == CU_NOT_READY) {
        return DS_ACCEL_NOT_READY;
    }
    CUDA_TRY(device, code, error, "cuStreamQuery(%p)", native);
    return DS_ACCEL_OK;
}

int32_t cuda_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                               struct ds_accel_error *error)
{
    CUDA_TRY(device, cuda_api_of(device)->cuStreamWaitEvent(native, native_event, 0), error,
             "cuStreamWaitEvent(%p, %p)", native, native_event);
    return DS_ACCEL_OK;
}

int32_t cuda_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                              void (*call)(void *argument), void *argument,
                              struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);

    if (api->cuLaunchHostFunc == NULL) {
        return vendor_unsupported(error, "stream_host_task",
                                  "libcuda.so.1 has no cuLaunchHostFunc (CUDA 10.0)");
    }
    CUDA_TRY(device, api->cuLaunchHostFunc(native, call, argument), error, "cuLaunchHostFunc(%p)",
             native);
    return DS_ACCEL_OK;
}

/* ---- events --------------------------------------------------------------------------------- */

int32_t cuda_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                          struct ds_accel_error *error)
{
    cu_event_t event = NULL;
    unsigned int bits = (flags & DS_ACCEL_EVENT_TIMING) != 0 ? 0 : CU_EVENT_DISABLE_TIMING;

    bits |= (flags & DS_ACCEL_EVENT_BLOCKING_SYNC) != 0 ? CU_EVENT_BLOCKING_SYNC : 0;
    bits |= (flags & DS_ACCEL_EVENT_INTERPROCESS) != 0 ? CU_EVENT_INTERPROCESS : 0;
    CUDA_TRY(device, cuda_api_of(device)->cuEventCreate(&event, bits), error,
             "cuEventCreate(flags %u, device %u)", bits, device->index);
    *native_out = event;
    return DS_ACCEL_OK;
}

void cuda_event_destroy(ds_accel_plugin_device_t *device, void *native)
{
    CUDA_END(device, cuda_api_of(device)->cuEventDestroy_v2(native), "cuEventDestroy(%p)", native);
}

int32_t cuda_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                          struct ds_accel_error *error)
{
    CUDA_TRY(device, cuda_api_of(device)->cuEventRecord(native, native_stream), error,
             "cuEventRecord(%p, stream %p)", native, native_stream);
    return DS_ACCEL_OK;
}

int32_t cuda_event_query(ds_accel_plugin_device_t *device, void *native,
                         struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_result_t code;

    CUDA_RELAXED(api, code, api->cuEventQuery(native));
    if (code == CU_NOT_READY) {
        return DS_ACCEL_NOT_READY;
    }
    CUDA_TRY(device, code, error, "cuEventQuery(%p)", native);
    return DS_ACCEL_OK;
}

int32_t cuda_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                               struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_result_t code;

    CUDA_RELAXED(api, code, api->cuEventSynchronize(native));
    CUDA_TRY(device, code, error, "cuEventSynchronize(%p)", native);
    return DS_ACCEL_OK;
}

int32_t cuda_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                              double *elapsed_ms_out, struct ds_accel_error *error)
{
    float milliseconds = 0;

    CUDA_TRY(device, cuda_api_of(device)->cuEventElapsedTime(&milliseconds, start, end), error,
             "cuEventElapsedTime(%p, %p)", start, end);
    *elapsed_ms_out = (double)milliseconds;
    return DS_ACCEL_OK;
}
