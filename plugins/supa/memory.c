/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Memory, copies, fills. */
#include "supa.h"

int32_t supa_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                   struct ds_accel_error *error)
{
    return SUPA_CHECK(device, API_OF(device)->alloc(pointer_out, size_bytes), error,
                      "%s(%llu bytes, device %u)",
                      SUPA_OF(device)->generation == 1 ? "suMallocDevice" : "supaMalloc",
                      (unsigned long long)size_bytes, device->index);
}

int32_t supa_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error)
{
    return SUPA_CHECK(device, API_OF(device)->free(pointer), error, "free(%p)", pointer);
}

static unsigned int host_flags(uint32_t flags)
{
    return ((flags & DS_ACCEL_PINNED_PORTABLE) != 0 ? SUPA_HOST_PORTABLE : 0u) |
           ((flags & DS_ACCEL_PINNED_MAPPED) != 0 ? SUPA_HOST_MAPPED : 0u);
}

int32_t supa_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                          void **pointer_out, struct ds_accel_error *error)
{
    return SUPA_CHECK(device,
                      API_OF(device)->host_alloc(pointer_out, size_bytes, host_flags(flags)), error,
                      "%s(%llu bytes, flags 0x%x)",
                      SUPA_OF(device)->generation == 1 ? "suMallocHost" : "supaHostAlloc",
                      (unsigned long long)size_bytes, host_flags(flags));
}

/* Early 1.x has one function for both. */
int32_t supa_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                         struct ds_accel_error *error)
{
    const struct supa_api *api = API_OF(device);

    return SUPA_CHECK(device, api->host_free != NULL ? api->host_free(pointer) : api->free(pointer),
                      error, "free of host memory(%p)", pointer);
}

int32_t supa_host_register(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                           uint32_t flags, struct ds_accel_error *error)
{
    return SUPA_CHECK(device, API_OF(device)->host_register(pointer, size_bytes, host_flags(flags)),
                      error, "register host memory(%p, %llu bytes, flags 0x%x)", pointer,
                      (unsigned long long)size_bytes, host_flags(flags));
}

int32_t supa_host_unregister(ds_accel_plugin_device_t *device, void *pointer,
                             struct ds_accel_error *error)
{
    return SUPA_CHECK(device, API_OF(device)->host_unregister(pointer), error,
                      "unregister host memory(%p)", pointer);
}

int32_t supa_host_device_pointer(ds_accel_plugin_device_t *device, void *host_pointer,
                                 void **device_pointer_out, struct ds_accel_error *error)
{
    return SUPA_CHECK(device,
                      API_OF(device)->host_device_pointer(device_pointer_out, host_pointer, 0),
                      error, "HostGetDevicePointer(%p)", host_pointer);
}

/* The one call whose arguments changed places between the generations. */
int32_t supa_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        const void *source, uint64_t size_bytes, uint32_t kind,
                        struct ds_accel_error *error)
{
    const struct supa *supa = SUPA_OF(device);
    int native_kind = SUPA_COPY_KIND(kind);
    supa_error_t code = supa->generation == 1
                            ? supa->api.copy_stream_kind(destination, source, size_bytes,
                                                         native_stream, native_kind)
                            : supa->api.copy_kind_stream(destination, source, size_bytes,
                                                         native_kind, native_stream);

    return SUPA_CHECK(device, code, error, "%s(%p, %p, %llu bytes, kind %d)",
                      supa->generation == 1 ? "suMemcpyAsync" : "supaMemcpyAsync", destination,
                      source, (unsigned long long)size_bytes, native_kind);
}

int32_t supa_copy_peer_async(ds_accel_plugin_device_t *device, void *native_stream,
                             ds_accel_plugin_device_t *destination_device, void *destination,
                             ds_accel_plugin_device_t *source_device, const void *source,
                             uint64_t size_bytes, struct ds_accel_error *error)
{
    return SUPA_CHECK(
        device,
        API_OF(device)->copy_peer(destination, (int)destination_device->index, source,
                                  (int)source_device->index, size_bytes, native_stream),
        error, "MemcpyPeerAsync(%p, device %u, %p, device %u, %llu bytes)", destination,
        destination_device->index, source, source_device->index, (unsigned long long)size_bytes);
}

int32_t supa_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                        uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                        struct ds_accel_error *error)
{
    (void)pattern_bytes; /* 1: fill_widths */
    return SUPA_CHECK(
        device, API_OF(device)->fill(destination, (int)(pattern & 0xff), count, native_stream),
        error, "MemsetAsync(%p, 0x%x, %llu bytes)", destination, pattern & 0xff,
        (unsigned long long)count);
}

int32_t supa_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                         struct ds_accel_error *error)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    int32_t status = SUPA_CHECK(device, API_OF(device)->memory_info(&free_bytes, &total_bytes),
                                error, "MemGetInfo(device %u)", device->index);

    if (status == DS_ACCEL_OK) {
        *free_out = free_bytes;
        *total_out = total_bytes;
    }
    return status;
}

/* -- the numbers of copy kinds, tried on memory of our own -- */

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
        status = supa_stream_synchronize(device, trial->stream, error);
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
        supa_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &trial.stream, error);
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    size_t i;

    if (status < 0) {
        return status;
    }
    for (i = 0; i < TRIAL_BYTES; i++) {
        trial.sent[i] = (unsigned char)(i * 37 + 11);
    }
    status = supa_alloc(device, TRIAL_BYTES, &trial.memory, error);
    if (status == DS_ACCEL_OK) {
        status = send_and_receive(device, &trial, error);
        (void)supa_stream_synchronize(device, trial.stream, &ignored); /* nothing runs any more */
        (void)supa_free(device, trial.memory, &ignored);
    }
    supa_stream_destroy(device, trial.stream);
    return status;
}
