/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Streams and events. Synapse's headers do not say whether two threads may use a stream at the same
 * time, so calls that submit work to a card hold the card's lock. Waiting calls do not hold it.
 */
#include "hpu.h"

/* ---- streams -------------------------------------------------------------------------------- */

syn_status hpu_stream_turn(struct hpu_runtime *runtime, struct hpu_stream *stream, uint32_t lane,
                           syn_stream *native_out)
{
    syn_status code = SYN_SUCCESS;

    if (stream->lane_count > 1 && lane != stream->last) {
        code = runtime->syn.synEventRecord(stream->turn, stream->lanes[stream->last]);
        if (code == SYN_SUCCESS) {
            code = runtime->syn.synStreamWaitEvent(stream->lanes[lane], stream->turn, 0);
        }
    }
    if (code == SYN_SUCCESS) {
        stream->last = stream->lane_count > 1 ? lane : 0;
        *native_out = stream->lanes[stream->last];
    }
    return code;
}

static void destroy_lanes(struct hpu_runtime *runtime, struct hpu_stream *stream)
{
    for (uint32_t i = 0; i < stream->lane_count; i++) {
        if (stream->lanes[i] != NULL) {
            runtime->syn.synStreamDestroy(stream->lanes[i]);
        }
    }
    if (stream->turn != NULL) {
        runtime->syn.synEventDestroy(stream->turn);
    }
    free(stream);
}

/*
 * For older Synapse releases: creates a Synapse stream for each lane, and the event that orders the
 * lanes.
 */
static syn_status create_lanes(struct hpu_runtime *runtime, struct hpu_card *card,
                               struct hpu_stream *stream)
{
    static const int32_t types[HPU_LANES] = {SYN_STREAM_COPY_DEVICE_TO_HOST,
                                             SYN_STREAM_COPY_HOST_TO_DEVICE,
                                             SYN_STREAM_COPY_DEVICE_TO_DEVICE};
    syn_status code = runtime->syn.synEventCreate(&stream->turn, card->id, 0);

    stream->lane_count = HPU_LANES;
    for (uint32_t i = 0; code == SYN_SUCCESS && i < HPU_LANES; i++) {
        code = runtime->syn.synStreamCreate(&stream->lanes[i], card->id, types[i], 0);
    }
    return code;
}

int32_t hpu_stream_create(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                          void **native_out, struct ds_accel_error *error)
{
    struct hpu_runtime *runtime = hpu_runtime(device);
    struct hpu_card *card = hpu_card(device);
    struct hpu_stream *stream = calloc(1, sizeof(*stream));
    int is_generic = runtime->syn.synStreamCreateGeneric != NULL;
    syn_status code;

    (void)flags; /* no Synapse stream waits implicitly for another stream */
    (void)priority;
    if (stream == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "stream_create: no memory");
    }
    if (is_generic) {
        stream->lane_count = 1;
        code = runtime->syn.synStreamCreateGeneric(&stream->lanes[0], card->id, 0);
    } else {
        code = create_lanes(runtime, card, stream);
    }
    if (code != SYN_SUCCESS) {
        destroy_lanes(runtime, stream);
        return HPU_CHECK(device, code, error, "%s(module %u)",
                         is_generic ? "synStreamCreateGeneric" : "synStreamCreate", card->module);
    }
    *native_out = stream;
    return DS_ACCEL_OK;
}

/*
 * Waits for each lane. The lane used last would be enough if all calls that order it after the
 * others had succeeded, which is not certain.
 */
static syn_status wait_lanes(struct hpu_runtime *runtime, const struct hpu_stream *stream)
{
    syn_status first = SYN_SUCCESS;

    for (uint32_t i = 0; i < stream->lane_count; i++) {
        syn_status code = runtime->syn.synStreamSynchronize(stream->lanes[i]);

        first = first == SYN_SUCCESS ? code : first;
    }
    return first;
}

int32_t hpu_stream_wait(ds_accel_plugin_device_t *device, struct hpu_stream *stream,
                        struct ds_accel_error *error)
{
    syn_status code = wait_lanes(hpu_runtime(device), stream);

    hpu_maps_reap(device);
    return HPU_CHECK(device, code, error, "synStreamSynchronize(%p)", stream->lanes[0]);
}

/*
 * The headers do not say what synStreamDestroy() does with pending work, so the plugin waits until
 * no work is pending.
 */
void hpu_stream_destroy(ds_accel_plugin_device_t *device, void *native)
{
    wait_lanes(hpu_runtime(device), native);
    hpu_maps_reap(device);
    destroy_lanes(hpu_runtime(device), native);
}

int32_t hpu_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                               struct ds_accel_error *error)
{
    return hpu_stream_wait(device, native, error);
}

int32_t hpu_stream_query(ds_accel_plugin_device_t *device, void *native,
                         struct ds_accel_error *error)
{
    struct hpu_stream *stream = native;

    for (uint32_t i = 0; i < stream->lane_count; i++) {
        syn_status code = hpu_runtime(device)->syn.synStreamQuery(stream->lanes[i]);

        if (code == SYN_BUSY) {
            return DS_ACCEL_NOT_READY;
        }
        if (code != SYN_SUCCESS) {
            return HPU_CHECK(device, code, error, "synStreamQuery(%p)", stream->lanes[i]);
        }
    }
    hpu_maps_reap(device);
    return DS_ACCEL_OK;
}

int32_t hpu_stream_wait_event(ds_accel_plugin_device_t *device, void *native, void *native_event,
                              struct ds_accel_error *error)
{
    struct hpu_stream *stream = native;
    struct hpu_card *card = hpu_card(device);
    syn_stream lane;
    syn_status code;

    pthread_mutex_lock(&card->lock);
    lane = stream->lanes[stream->last];
    code = hpu_runtime(device)->syn.synStreamWaitEvent(lane, native_event, 0);
    pthread_mutex_unlock(&card->lock);
    return HPU_CHECK(device, code, error, "synStreamWaitEvent(%p, %p)", lane, native_event);
}

/* ---- events --------------------------------------------------------------------------------- */

int32_t hpu_event_create(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                         struct ds_accel_error *error)
{
    uint32_t native_flags = (flags & DS_ACCEL_EVENT_TIMING) != 0 ? SYN_EVENT_COLLECT_TIME : 0;
    syn_event event = NULL;
    syn_status code =
        hpu_runtime(device)->syn.synEventCreate(&event, hpu_card(device)->id, native_flags);
    int32_t status =
        HPU_CHECK(device, code, error, "synEventCreate(flags %u)", (unsigned)native_flags);

    if (status == DS_ACCEL_OK) {
        *native_out = event;
    }
    return status;
}

void hpu_event_destroy(ds_accel_plugin_device_t *device, void *native)
{
    hpu_runtime(device)->syn.synEventDestroy(native);
}

int32_t hpu_event_record(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                         struct ds_accel_error *error)
{
    struct hpu_stream *stream = native_stream;
    struct hpu_card *card = hpu_card(device);
    syn_stream lane;
    syn_status code;

    pthread_mutex_lock(&card->lock);
    lane = stream->lanes[stream->last];
    code = hpu_runtime(device)->syn.synEventRecord(native, lane);
    pthread_mutex_unlock(&card->lock);
    return HPU_CHECK(device, code, error, "synEventRecord(%p, %p)", native, lane);
}

int32_t hpu_event_query(ds_accel_plugin_device_t *device, void *native,
                        struct ds_accel_error *error)
{
    syn_status code = hpu_runtime(device)->syn.synEventQuery(native);

    if (code == SYN_BUSY) {
        return DS_ACCEL_NOT_READY;
    }
    hpu_maps_reap(device);
    return HPU_CHECK(device, code, error, "synEventQuery(%p)", native);
}

int32_t hpu_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                              struct ds_accel_error *error)
{
    syn_status code = hpu_runtime(device)->syn.synEventSynchronize(native);

    hpu_maps_reap(device);
    return HPU_CHECK(device, code, error, "synEventSynchronize(%p)", native);
}

int32_t hpu_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                             double *elapsed_ms_out, struct ds_accel_error *error)
{
    uint64_t nanoseconds = 0;
    syn_status code = hpu_runtime(device)->syn.synEventElapsedTime(&nanoseconds, start, end);
    int32_t status = HPU_CHECK(device, code, error, "synEventElapsedTime(%p, %p)", start, end);

    if (status == DS_ACCEL_OK) {
        *elapsed_ms_out = (double)nanoseconds / 1e6;
    }
    return status;
}

/* ---- native handles ------------------------------------------------------------------------- */

/*
 * With three lanes, returns the Synapse stream of HPU_LANE_WITHIN. A program that submits work to
 * this stream must order the work with the other lanes.
 */
uint64_t hpu_native_handle(ds_accel_plugin_device_t *device, uint32_t kind, void *native)
{
    (void)device;
    if (kind == DS_ACCEL_NATIVE_STREAM) {
        struct hpu_stream *stream = native;

        native = stream->lanes[stream->lane_count > 1 ? HPU_LANE_WITHIN : 0];
    }
    return hpu_address(native);
}

int32_t hpu_native_wrap(ds_accel_plugin_device_t *device, uint32_t kind, uint64_t handle,
                        void **native_out, struct ds_accel_error *error)
{
    struct hpu_stream *stream;

    if (kind != DS_ACCEL_NATIVE_STREAM) {
        *native_out = hpu_pointer(handle);
        return DS_ACCEL_OK;
    }
    if (hpu_runtime(device)->syn.synStreamCreateGeneric == NULL) {
        return vendor_unsupported(error, "native_wrap",
                                  "streams of this Synapse do one kind of work each");
    }
    stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "native_wrap: no memory");
    }
    stream->lane_count = 1;
    stream->lanes[0] = hpu_pointer(handle);
    *native_out = stream;
    return DS_ACCEL_OK;
}

void hpu_native_unwrap(ds_accel_plugin_device_t *device, uint32_t kind, void *native)
{
    (void)device;
    if (kind == DS_ACCEL_NATIVE_STREAM) {
        free(native);
    }
}
