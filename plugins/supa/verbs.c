/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Calls that differ between SUPA and plugins/common/cuda_shaped.c: the copy of 1.x, and calls that
 * are not verified.
 */
#include "supa.h"

/* The copy is the only call whose order of arguments differs between the generations. */
int32_t supa_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        const void *source, uint64_t size_bytes, uint32_t kind,
                        struct ds_accel_error *error)
{
    const struct supa *supa = SUPA_OF(device);
    int native_kind = CUDA_SHAPED_COPY_KIND(kind);

    if (supa->generation != 1) {
        return cuda_shaped_copy_async(device, native_stream, destination, source, size_bytes, kind,
                                      error);
    }
    return SUPA_CHECK(
        device,
        supa->api.copy_stream_kind(destination, source, size_bytes, native_stream, native_kind),
        error, "suMemcpyAsync(%p, %p, %llu bytes, kind %d)", destination, source,
        (unsigned long long)size_bytes, native_kind);
}

/* -- verification of the copy kinds, on the plugin's own memory -- */

#define TRIAL_BYTES 256

struct trial {
    void *stream;
    void *memory;
    unsigned char sent[TRIAL_BYTES];
    unsigned char received[TRIAL_BYTES];
};

static int32_t send_and_receive(ds_accel_plugin_device_t *device, struct trial *trial,
                                struct ds_accel_error *error)
{
    int32_t status = supa_copy_async(device, trial->stream, trial->memory, trial->sent, TRIAL_BYTES,
                                     DS_ACCEL_COPY_HOST_TO_DEVICE, error);

    if (status == DS_ACCEL_OK) {
        status = supa_copy_async(device, trial->stream, trial->received, trial->memory, TRIAL_BYTES,
                                 DS_ACCEL_COPY_DEVICE_TO_HOST, error);
    }
    if (status == DS_ACCEL_OK) {
        status = cuda_shaped_stream_synchronize(device, trial->stream, error);
    }
    if (status == DS_ACCEL_OK && memcmp(trial->sent, trial->received, TRIAL_BYTES) != 0) {
        status = plugin_fail(error, DS_ACCEL_ERR_DRIVER,
                             "device_open: bytes sent to device %u did not come back: option "
                             "numbering = cuda is not what this runtime has",
                             device->index);
    }
    return status;
}

int32_t supa_check_copies(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    struct trial trial = {NULL, NULL, {0}, {0}};
    int32_t status =
        cuda_shaped_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &trial.stream, error);
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    size_t i;

    if (status < 0) {
        return status;
    }
    for (i = 0; i < TRIAL_BYTES; i++) {
        trial.sent[i] = (unsigned char)(i * 37 + 11);
    }
    status = cuda_shaped_alloc(device, TRIAL_BYTES, &trial.memory, error);
    if (status == DS_ACCEL_OK) {
        status = send_and_receive(device, &trial, error);
        (void)cuda_shaped_stream_synchronize(device, trial.stream,
                                             &ignored); /* afterwards no work is running */
        (void)cuda_shaped_free(device, trial.memory, &ignored);
    }
    cuda_shaped_stream_destroy(device, trial.stream);
    return status;
}

/* -- events and captures -- */

int32_t supa_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                          struct ds_accel_error *error)
{
    return (flags & DS_ACCEL_EVENT_INTERPROCESS) != 0
               ? vendor_unsupported(error, "event_create",
                                    "flag 0x4: the size of SUPA's IPC handles is not verified")
               : cuda_shaped_event_create(device, flags, native_out, error);
}

/*
 * Captures always use the relaxed mode, because no known call lets a thread allocate during a
 * capture in another mode. Calls that another mode would reject are therefore accepted.
 */
int32_t supa_capture_begin(ds_accel_plugin_device_t *device, void *native_stream, uint32_t mode,
                           struct ds_accel_error *error)
{
    (void)mode;
    return cuda_shaped_capture_begin(device, native_stream, CUDA_SHAPED_CAPTURE_RELAXED, error);
}

/* Reports a capture state that CUDA does not define as broken. */
int32_t supa_capture_status(ds_accel_plugin_device_t *device, void *native_stream,
                            uint32_t *status_out, struct ds_accel_error *error)
{
    int32_t status = cuda_shaped_capture_status(device, native_stream, status_out, error);

    if (status == DS_ACCEL_OK && *status_out > DS_ACCEL_CAPTURING_BROKEN) {
        *status_out = DS_ACCEL_CAPTURING_BROKEN;
    }
    return status;
}
