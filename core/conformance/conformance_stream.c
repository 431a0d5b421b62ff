/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: the order of work in streams and between them. */
#include "base/text.h"
#include "conformance/conformance.h"

#include <stdio.h>

#define GROUP "stream"
#define BYTES 4099u /* size of copies; an odd number */

/* ---- streams -------------------------------------------------------------------------------- */

static void check_default(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *first = NULL;
    ds_accel_plugin_stream_t *second = NULL;

    WANT(run, DS_ACCEL_OK, stream_get_default, run->device, &first);
    WANT(run, DS_ACCEL_OK, stream_get_default, run->device, &second);
    EXPECT(run, first != NULL && first == second, "two calls returned two handles, or NULL");
    WANT(run, DS_ACCEL_OK, stream_synchronize, first, UINT64_MAX);
}

static void check_priorities(struct ds_accel__run *run)
{
    int32_t least = INT32_MIN;
    int32_t greatest = INT32_MAX;
    ds_accel_plugin_stream_t *stream = NULL;

    WANT(run, DS_ACCEL_OK, stream_priority_range, run->device, &least, &greatest);
    EXPECT(run, least >= greatest, "least is %d, greatest %d: lower numbers run first", least,
           greatest);
    for (int32_t priority = greatest; priority <= least && priority < greatest + 8; priority++) {
        WANT(run, DS_ACCEL_OK, stream_create, run->device, DS_ACCEL_STREAM_DEFAULT, priority,
             &stream);
        run->table.stream_destroy(stream);
    }
    WANT_ERROR(run, stream_create, run->device, DS_ACCEL_STREAM_DEFAULT, least + 1, &stream);
    WANT_ERROR(run, stream_create, run->device, DS_ACCEL_STREAM_DEFAULT, greatest - 1, &stream);
}

/* ---- order ---------------------------------------------------------------------------------- */

static void check_order(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
    unsigned char first[BYTES];
    unsigned char second[BYTES];
    unsigned char *a = ds_accel__take(run, BYTES);
    unsigned char *b = ds_accel__take(run, BYTES);

    ds_accel__pattern(first, BYTES, 1);
    ds_accel__pattern(second, BYTES, 2);
    /* The second copy reads what the first writes, and the third overwrites what the second
     * reads. */
    WANT(run, DS_ACCEL_OK, mem_copy_async, stream, a, first, BYTES, DS_ACCEL_COPY_HOST_TO_DEVICE);
    WANT(run, DS_ACCEL_OK, mem_copy_async, stream, b, a, BYTES, DS_ACCEL_COPY_DEVICE_TO_DEVICE);
    WANT(run, DS_ACCEL_OK, mem_copy_async, stream, a, second, BYTES, DS_ACCEL_COPY_HOST_TO_DEVICE);
    ds_accel__wait(run, stream);
    ds_accel__want_pattern(run, b, BYTES, 1, "a copy before the source was overwritten");
    ds_accel__want_pattern(run, a, BYTES, 2, "the source that was overwritten");
    run->table.stream_destroy(stream);
    ds_accel__give(run, a);
    ds_accel__give(run, b);
}

struct sequence {
    atomic_int next;
    int seen[8];
};
struct step {
    struct sequence *sequence;
    int number;
};

static void note_step(void *user_data, int32_t status)
{
    const struct step *step = user_data;
    int place = atomic_fetch_add(&step->sequence->next, 1);

    (void)status;
    if (place < 8) {
        step->sequence->seen[place] = step->number;
    }
}

static void check_task_order(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
    struct sequence sequence = {0};
    struct step steps[8];

    for (int i = 0; i < 8; i++) {
        steps[i] = (struct step){&sequence, i};
        WANT(run, DS_ACCEL_OK, stream_host_task, stream, note_step, &steps[i]);
    }
    ds_accel__wait(run, stream);
    for (int i = 0; i < 8; i++) {
        EXPECT(run, sequence.seen[i] == i, "task %d ran in the place of task %d", sequence.seen[i],
               i);
    }
    run->table.stream_destroy(stream);
}

static void check_task_once(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
    struct ds_accel__slow slow;

    ds_accel__slow_start(run, &slow, stream);
    ds_accel__wait(run, stream);
    WANT(run, DS_ACCEL_OK, device_synchronize, run->device, UINT64_MAX);
    EXPECT(run, atomic_load(&slow.runs) == 1, "it ran %d times", atomic_load(&slow.runs));
    EXPECT(run, slow.status == DS_ACCEL_OK, "it was given %s", ds_accel__status_text(slow.status));
    run->table.stream_destroy(stream);
}

/* ---- waiting -------------------------------------------------------------------------------- */

static void check_wait(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
    struct ds_accel__slow slow;

    ds_accel__slow_start(run, &slow, stream);
    ds_accel__wait(run, stream);
    EXPECT(run, atomic_load(&slow.is_done), "stream_synchronize returned before the work was done");
    WANT(run, DS_ACCEL_OK, stream_query, stream);
    run->table.stream_destroy(stream);
}

static void check_query(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
    struct ds_accel__slow slow;
    int32_t status;

    WANT(run, DS_ACCEL_OK, stream_query, stream);
    ds_accel__slow_start(run, &slow, stream);
    do {
        status = CALL(run, stream_query, stream);
        EXPECT(run, status == DS_ACCEL_OK || status == DS_ACCEL_NOT_READY,
               "stream_query: expected DS_ACCEL_OK or DS_ACCEL_NOT_READY, got %s",
               ds_accel__status_text(status));
    } while (status == DS_ACCEL_NOT_READY);
    EXPECT(run, atomic_load(&slow.is_done), "stream_query: DS_ACCEL_OK before the work was done");
    /* After the query has reported the work as complete, a wait with a timeout of 0 must
     * succeed. */
    WANT(run, DS_ACCEL_OK, stream_synchronize, stream, 0);
    run->table.stream_destroy(stream);
}

static void check_timeout(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
    struct ds_accel__slow slow;
    int32_t status;

    ds_accel__slow_start(run, &slow, stream);
    status = CALL(run, stream_synchronize, stream, 0);
    EXPECT(run, status == DS_ACCEL_OK || status == DS_ACCEL_ERR_TIMEOUT,
           "stream_synchronize with timeout 0: got %s", ds_accel__status_text(status));
    EXPECT(run, status != DS_ACCEL_OK || atomic_load(&slow.is_done),
           "stream_synchronize with timeout 0: DS_ACCEL_OK before the work was done");
    if (run->table.device_synchronize != NULL) {
        status = CALL(run, device_synchronize, run->device, 1);
        EXPECT(run, status == DS_ACCEL_OK || status == DS_ACCEL_ERR_TIMEOUT,
               "device_synchronize with timeout 1 ns: got %s", ds_accel__status_text(status));
    }
    WANT(run, DS_ACCEL_OK, stream_synchronize, stream, UINT64_MAX);
    WANT(run, DS_ACCEL_OK, stream_synchronize, stream, UINT64_C(60000000000));
    run->table.stream_destroy(stream);
}

/* Check that work queued after a wait for another stream's event runs only after that event has
 * completed, even if the event is destroyed before (is_destroyed). */
static void wait_behind(struct ds_accel__run *run, bool is_destroyed, unsigned seed,
                        const char *what)
{
    ds_accel_plugin_stream_t *first = ds_accel__stream(run);
    ds_accel_plugin_stream_t *second = ds_accel__stream(run);
    ds_accel_plugin_event_t *event = ds_accel__event(run, 0);
    unsigned char bytes[BYTES];
    unsigned char *a = ds_accel__take(run, BYTES);
    unsigned char *b = ds_accel__take(run, BYTES);
    struct ds_accel__slow slow;

    ds_accel__pattern(bytes, BYTES, seed);
    ds_accel__slow_start(run, &slow, first);
    WANT(run, DS_ACCEL_OK, mem_copy_async, first, a, bytes, BYTES, DS_ACCEL_COPY_HOST_TO_DEVICE);
    WANT(run, DS_ACCEL_OK, event_record, event, first);
    WANT(run, DS_ACCEL_OK, stream_wait_event, second, event);
    if (is_destroyed) {
        run->table.event_destroy(event);
    }
    WANT(run, DS_ACCEL_OK, mem_copy_async, second, b, a, BYTES, DS_ACCEL_COPY_DEVICE_TO_DEVICE);
    ds_accel__wait(run, second);
    if (!is_destroyed) {
        EXPECT(run, CALL(run, event_query, event) == DS_ACCEL_OK,
               "the stream that waits for the event is done, and the event is not reached");
        run->table.event_destroy(event);
    }
    ds_accel__want_pattern(run, b, BYTES, seed, what);
    run->table.stream_destroy(first);
    run->table.stream_destroy(second);
    ds_accel__give(run, a);
    ds_accel__give(run, b);
}

static void check_wait_event(struct ds_accel__run *run)
{
    wait_behind(run, false, 3, "what was copied after the event");
}

static void check_wait_destroyed(struct ds_accel__run *run)
{
    wait_behind(run, true, 6, "what was copied after an event that was destroyed");
}

static void check_destroy(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
    unsigned char bytes[BYTES];
    unsigned char *a = ds_accel__take(run, BYTES);
    struct ds_accel__slow slow;

    ds_accel__pattern(bytes, BYTES, 4);
    ds_accel__slow_start(run, &slow, stream);
    WANT(run, DS_ACCEL_OK, mem_copy_async, stream, a, bytes, BYTES, DS_ACCEL_COPY_HOST_TO_DEVICE);
    run->table.stream_destroy(stream);
    WANT(run, DS_ACCEL_OK, device_synchronize, run->device, UINT64_MAX);
    EXPECT(run, atomic_load(&slow.runs) == 1,
           "the task of a stream that was destroyed ran %d times", atomic_load(&slow.runs));
    ds_accel__want_pattern(run, a, BYTES, 4, "a copy of a stream that was destroyed");
    ds_accel__give(run, a);
}

#define DEVICE DS_ACCEL__STAGE_DEVICE

static const struct ds_accel__check checks[] = {
    {53,
     GROUP,
     "the default stream",
     DEVICE,
     0,
     check_default,
     {SLOT(stream_get_default), SLOT(stream_synchronize)}},
    {54,
     GROUP,
     "priorities in and out of the range",
     DEVICE,
     0,
     check_priorities,
     {SLOT(stream_priority_range), SLOT(stream_create)}},
    {48,
     GROUP,
     "copies one after another",
     DEVICE,
     0,
     check_order,
     {SLOT(stream_create), SLOT(mem_alloc), SLOT(mem_copy), SLOT(mem_copy_async),
      SLOT(stream_synchronize)}},
    {48,
     GROUP,
     "host tasks one after another",
     DEVICE,
     0,
     check_task_order,
     {SLOT(stream_create), SLOT(stream_host_task), SLOT(stream_synchronize)}},
    {52,
     GROUP,
     "a host task",
     DEVICE,
     0,
     check_task_once,
     {SLOT(stream_create), SLOT(stream_host_task), SLOT(stream_synchronize),
      SLOT(device_synchronize)}},
    {46,
     GROUP,
     "synchronizing a stream",
     DEVICE,
     0,
     check_wait,
     {SLOT(stream_create), SLOT(stream_host_task), SLOT(stream_synchronize), SLOT(stream_query)}},
    {49,
     GROUP,
     "a stream's query",
     DEVICE,
     0,
     check_query,
     {SLOT(stream_create), SLOT(stream_host_task), SLOT(stream_synchronize), SLOT(stream_query)}},
    {47,
     GROUP,
     "timeouts",
     DEVICE,
     0,
     check_timeout,
     {SLOT(stream_create), SLOT(stream_host_task), SLOT(stream_synchronize)}},
    {51,
     GROUP,
     "one stream after another",
     DEVICE,
     0,
     check_wait_event,
     {SLOT(stream_wait_event), SLOT(stream_host_task), SLOT(event_record), SLOT(event_query),
      SLOT(mem_copy_async), SLOT(mem_alloc)}},
    {51,
     GROUP,
     "after an event that was destroyed",
     DEVICE,
     0,
     check_wait_destroyed,
     {SLOT(stream_wait_event), SLOT(stream_host_task), SLOT(event_record), SLOT(mem_copy_async),
      SLOT(mem_alloc)}},
    {50,
     GROUP,
     "a stream is destroyed with work in it",
     DEVICE,
     0,
     check_destroy,
     {SLOT(stream_create), SLOT(stream_host_task), SLOT(mem_copy_async), SLOT(mem_alloc),
      SLOT(device_synchronize)}},
};

const struct ds_accel__check_list ds_accel__checks_stream = {checks, ARRAY_SIZE(checks)};
