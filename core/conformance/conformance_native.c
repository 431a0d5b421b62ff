/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: the vendor's handles inside the plugin's objects, and plugin handles that
 * wrap a vendor's handle. */
#include "base/text.h"
#include "conformance/conformance.h"

#define GROUP "native"

static uint64_t native_of(struct ds_accel__run *run, uint32_t kind, const void *object)
{
    uint64_t native = 0;
    uint64_t offset = 0;

    WANT(run, DS_ACCEL_OK, native_get, run->device, kind, object, &native, &offset);
    return native;
}

/* Check that two streams have different vendor handles, if native_get returns handles of
 * streams. */
static void check_apart(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *streams[2] = {ds_accel__stream(run), ds_accel__stream(run)};
    uint64_t natives[2] = {0, 0};
    uint64_t offset = 0;
    bool is_told = true;

    for (int i = 0; i < 2; i++) {
        is_told = is_told && CALL(run, native_get, run->device, DS_ACCEL_NATIVE_STREAM, streams[i],
                                  &natives[i], &offset) == DS_ACCEL_OK;
    }
    EXPECT(run, !is_told || natives[0] != natives[1],
           "two streams have the same native handle, 0x%llx", (unsigned long long)natives[0]);
    run->table.stream_destroy(streams[0]);
    run->table.stream_destroy(streams[1]);
}

static void check_same(struct ds_accel__run *run)
{
    EXPECT(run,
           native_of(run, DS_ACCEL_NATIVE_DEVICE, run->device) ==
               native_of(run, DS_ACCEL_NATIVE_DEVICE, run->device),
           "two calls returned two handles of the device");
    EXPECT(run,
           native_of(run, DS_ACCEL_NATIVE_STREAM, run->stream) ==
               native_of(run, DS_ACCEL_NATIVE_STREAM, run->stream),
           "two calls returned two handles of a stream");
}

/* Check a handle that wraps the run's stream: its work is queued on that stream, and destroying the
 * handle does not destroy the stream. */
static void check_wrapped(struct ds_accel__run *run)
{
    uint64_t native = native_of(run, DS_ACCEL_NATIVE_STREAM, run->stream);
    struct ds_accel__slow slow;
    void *wrapped = NULL;
    int32_t status = CALL(run, native_wrap, run->device, DS_ACCEL_NATIVE_STREAM, native, &wrapped);

    if (status == DS_ACCEL_ERR_UNSUPPORTED) {
        ds_accel__skip(run, "streams are not wrapped here");
        return;
    }
    ds_accel__want(run, DS_ACCEL_OK, "native_wrap", status);
    EXPECT(run, native_of(run, DS_ACCEL_NATIVE_STREAM, wrapped) == native,
           "the wrapped object is reported with another handle");
    ds_accel__slow_start(run, &slow, wrapped);
    run->table.stream_destroy(wrapped);
    ds_accel__wait(run, run->stream);
    EXPECT(run, atomic_load(&slow.is_done), "work of the wrapped handle did not go to its stream");
    EXPECT(run, native_of(run, DS_ACCEL_NATIVE_STREAM, run->stream) == native,
           "the stream has another handle once its wrapper was destroyed");
}

/* Check a second handle of a recorded event: it has the same vendor handle and can be waited for,
 * and destroying it does not destroy the event. */
static void check_wrapped_event(struct ds_accel__run *run)
{
    ds_accel_plugin_event_t *event = ds_accel__event(run, 0);
    uint64_t native = 0;
    uint64_t offset = 0;
    void *wrapped = NULL;
    int32_t status;

    /* Some runtimes create the vendor's event when it is first recorded. */
    WANT(run, DS_ACCEL_OK, event_record, event, run->stream);
    ds_accel__wait(run, run->stream);
    status = CALL(run, native_get, run->device, DS_ACCEL_NATIVE_EVENT, event, &native, &offset);
    status = status == DS_ACCEL_OK && native == 0 ? DS_ACCEL_ERR_UNSUPPORTED : status;
    status = status == DS_ACCEL_OK
                 ? CALL(run, native_wrap, run->device, DS_ACCEL_NATIVE_EVENT, native, &wrapped)
                 : status;
    if (status == DS_ACCEL_ERR_UNSUPPORTED) {
        ds_accel__skip(run, "events are not wrapped here");
    } else {
        ds_accel__want(run, DS_ACCEL_OK, "native_wrap", status);
        EXPECT(run, native_of(run, DS_ACCEL_NATIVE_EVENT, wrapped) == native,
               "the wrapped object is reported with another handle");
        WANT(run, DS_ACCEL_OK, event_synchronize, wrapped, UINT64_MAX);
        run->table.event_destroy(wrapped);
        WANT(run, DS_ACCEL_OK, event_record, event, run->stream);
        WANT(run, DS_ACCEL_OK, event_synchronize, event, UINT64_MAX);
    }
    run->table.event_destroy(event);
}

static const struct ds_accel__check checks[] = {
    {99,
     GROUP,
     "a second handle of an event",
     DS_ACCEL__STAGE_DEVICE,
     0,
     check_wrapped_event,
     {SLOT(native_get), SLOT(native_wrap), SLOT(event_create), SLOT(event_record),
      SLOT(event_synchronize), SLOT(stream_create)}},
    {98,
     GROUP,
     "handles of the device and a stream",
     DS_ACCEL__STAGE_DEVICE,
     0,
     check_same,
     {SLOT(native_get), SLOT(stream_create)}},
    {98,
     GROUP,
     "handles of two streams",
     DS_ACCEL__STAGE_DEVICE,
     0,
     check_apart,
     {SLOT(native_get), SLOT(stream_create)}},
    {99,
     GROUP,
     "a second handle of a stream",
     DS_ACCEL__STAGE_DEVICE,
     0,
     check_wrapped,
     {SLOT(native_get), SLOT(native_wrap), SLOT(stream_create), SLOT(stream_host_task)}},
};

const struct ds_accel__check_list ds_accel__checks_native = {checks, ARRAY_SIZE(checks)};
