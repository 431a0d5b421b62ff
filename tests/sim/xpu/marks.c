/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Measures the time between two events with a task of 20 ms between them; the simulated clock wraps
 * around in between, if the machine's description says so. Then records an event repeatedly while a
 * blocked stream has not yet passed its wait for the event's first mark: `marks` succeeds if that
 * mark is not reused until then. Also checks that a stream that is destroyed while it is blocked
 * continues. Prints failures; exit code 0 or 1.
 */
#include <ds-accel/ds_accel.h>

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define NEED(call) \
    do { \
        if ((call) < 0) { \
            printf("%s: %s\n", #call, ds_accel_last_error()); \
            return 1; \
        } \
    } while (0)

static atomic_int gates[2];
static atomic_int ran;

static void hold_up(void *user_data, int32_t status)
{
    (void)status;
    while (!atomic_load((atomic_int *)user_data)) {
        usleep(100);
    }
}

static void count(void *user_data, int32_t status)
{
    atomic_fetch_add((atomic_int *)user_data, status == DS_ACCEL_OK);
}

static void take_time(void *user_data, int32_t status)
{
    (void)user_data;
    (void)status;
    usleep(20000);
}

static int measure(ds_accel_device_t *device)
{
    ds_accel_stream_t *stream;
    ds_accel_event_t *start, *end;
    double elapsed_ms = -1;

    NEED(ds_accel_stream_create(device, 0, 0, &stream));
    NEED(ds_accel_event_create(device, DS_ACCEL_EVENT_TIMING, &start));
    NEED(ds_accel_event_create(device, DS_ACCEL_EVENT_TIMING, &end));
    NEED(ds_accel_event_record(start, stream));
    NEED(ds_accel_stream_host_task(stream, take_time, NULL));
    NEED(ds_accel_event_record(end, stream));
    NEED(ds_accel_event_synchronize(end));
    NEED(ds_accel_event_elapsed_ms(start, end, &elapsed_ms));
    if (elapsed_ms < 19 || elapsed_ms > 60000) {
        printf("a task of 20 ms takes %g ms\n", elapsed_ms);
        return 1;
    }
    ds_accel_event_destroy(start);
    ds_accel_event_destroy(end);
    ds_accel_stream_destroy(stream);
    return 0;
}

static int record_again(ds_accel_stream_t *stream, ds_accel_event_t *event)
{
    for (int i = 0; i < 300; i++) {
        NEED(ds_accel_event_record(event, stream));
        NEED(ds_accel_event_synchronize(event));
    }
    return 0;
}

static int work(ds_accel_device_t *device)
{
    ds_accel_stream_t *first, *second;
    ds_accel_event_t *event;

    NEED(ds_accel_stream_create(device, 0, 0, &first));
    NEED(ds_accel_stream_create(device, 0, 0, &second));
    NEED(ds_accel_event_create(device, 0, &event));
    NEED(ds_accel_stream_host_task(first, hold_up, &gates[0]));
    NEED(ds_accel_event_record(event, first));
    NEED(ds_accel_stream_host_task(second, hold_up, &gates[1]));
    NEED(ds_accel_stream_wait_event(second, event));
    NEED(ds_accel_stream_host_task(second, count, &ran));
    atomic_store(&gates[0], 1);
    NEED(ds_accel_event_synchronize(event));
    if (record_again(first, event) != 0) {
        return 1;
    }
    if (atomic_load(&ran) != 0) {
        printf("the held up stream went on\n");
        return 1;
    }
    ds_accel_stream_destroy(second);
    ds_accel_event_destroy(event);
    atomic_store(&gates[1], 1);
    NEED(ds_accel_device_synchronize(device));
    if (atomic_load(&ran) != 1) {
        printf("a task ran %d times\n", atomic_load(&ran));
        return 1;
    }
    ds_accel_stream_destroy(first);
    return 0;
}

int main(void)
{
    ds_accel_t *context;
    ds_accel_device_t *device;
    int code;

    NEED(ds_accel_create(NULL, &context));
    NEED(ds_accel_detect(context));
    NEED(ds_accel_device_open(context, 0, &device));
    code = measure(device) != 0 || work(device) != 0;
    ds_accel_device_close(device);
    ds_accel_destroy(context);
    return code;
}
