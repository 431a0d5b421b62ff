/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The checks that every function of the table makes first, and simulated time.
 *
 * All checks of handles are in this file, so that a function consists of three steps: enter, check
 * the other arguments, do the work. To enter also means to count the call for the script, the
 * option fail, which can make the call fail. A real plugin has no script, but checks here whether
 * the device is lost: after that no call may reach the vendor's runtime until the device is closed,
 * since most runtimes hang.
 */
#include "mock.h"

#include <time.h>

static int32_t enter(ds_accel_plugin_instance_t *instance, ds_accel_plugin_device_t *device,
                     const char *slot, struct ds_accel_error *error)
{
    int32_t status;
    int was_lost = 0;
    char cause[64];

    pthread_mutex_lock(&instance->lock);
    status = mock_script_count(&instance->options.script, slot);
    if (device != NULL && device->lost) {
        was_lost = 1;
        status = DS_ACCEL_ERR_DEVICE_LOST;
    } else if (device != NULL && device->open_count > 0 && status == DS_ACCEL_ERR_DEVICE_LOST) {
        device->lost = 1;
    }
    pthread_mutex_unlock(&instance->lock);
    if (status == DS_ACCEL_OK) {
        return DS_ACCEL_OK;
    }
    if (was_lost) {
        snprintf(cause, sizeof(cause), "device %u was lost before", device->index);
    } else {
        snprintf(cause, sizeof(cause), "as option fail requests");
    }
    return mock_vendor_fail(error, status, slot, cause);
}

int32_t mock_enter(ds_accel_plugin_instance_t *instance, const char *slot,
                   struct ds_accel_error *error)
{
    if (instance == NULL) {
        return mock_null(error, slot, "the instance");
    }
    return enter(instance, NULL, slot, error);
}

int32_t mock_enter_index(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                         const char *slot, struct ds_accel_error *error)
{
    if (instance == NULL) {
        return mock_null(error, slot, "the instance");
    }
    if (device_index >= instance->options.device_count) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: device %u does not exist, there are %llu", slot, device_index,
                           (unsigned long long)instance->options.device_count);
    }
    return enter(instance, &instance->devices[device_index], slot, error);
}

int32_t mock_enter_device(ds_accel_plugin_device_t *device, const char *slot,
                          struct ds_accel_error *error)
{
    if (device == NULL) {
        return mock_null(error, slot, "the device");
    }
    return enter(device->instance, device, slot, error);
}

int32_t mock_enter_stream(ds_accel_plugin_stream_t *stream, const char *slot,
                          struct ds_accel_error *error)
{
    if (stream == NULL) {
        return mock_null(error, slot, "the stream");
    }
    return enter(stream->device->instance, stream->device, slot, error);
}

int32_t mock_enter_event(ds_accel_plugin_event_t *event, const char *slot,
                         struct ds_accel_error *error)
{
    if (event == NULL) {
        return mock_null(error, slot, "the event");
    }
    return enter(event->device->instance, event->device, slot, error);
}

int32_t mock_check_peer(const ds_accel_plugin_device_t *device,
                        const ds_accel_plugin_device_t *peer, const char *slot,
                        struct ds_accel_error *error)
{
    if (peer == NULL) {
        return mock_null(error, slot, "the other device");
    }
    if (peer->instance != device->instance) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: devices %u and %u belong to different instances", slot,
                           device->index, peer->index);
    }
    return DS_ACCEL_OK;
}

void mock_log(const struct ds_accel_host *host, uint32_t level, const char *format, ...)
{
    uint32_t enabled = 0;
    char line[256];
    va_list arguments;

    if (host->log_enabled(host, level, &enabled) != DS_ACCEL_OK || enabled == 0) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    host->log(host, level, line);
}

uint64_t mock_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/*
 * when_ns is a time of CLOCK_MONOTONIC, since clock_nanosleep() cannot wait for a time of the
 * host's clock_ns().
 */
void mock_sleep_until(uint64_t when_ns)
{
    const struct timespec when = {.tv_sec = (time_t)(when_ns / UINT64_C(1000000000)),
                                  .tv_nsec = (long)(when_ns % UINT64_C(1000000000))};

    /*
     * A signal of the program must not shorten the wait; with an absolute time, a retry does not
     * lengthen it either.
     */
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR) {
    }
}

void mock_wait_until(const ds_accel_plugin_instance_t *instance, const char *what, uint64_t when_ns)
{
    if (when_ns <= plugin_now_ns()) {
        return;
    }
    if (instance->trace != NULL) {
        instance->trace->begin(instance->host, "mock", what);
    }
    mock_sleep_until(when_ns);
    if (instance->trace != NULL) {
        instance->trace->end(instance->host);
    }
}

int32_t mock_wait_for(const ds_accel_plugin_instance_t *instance, const char *slot,
                      uint64_t done_ns, uint64_t timeout_ns, struct ds_accel_error *error)
{
    uint64_t now_ns = plugin_now_ns();
    uint64_t when_ns = mock_max_u64(now_ns, done_ns) + instance->options.sync_latency_ns;

    if (when_ns - now_ns > timeout_ns) {
        mock_wait_until(instance, slot, now_ns + timeout_ns);
        return plugin_fail(error, DS_ACCEL_ERR_TIMEOUT, "%s: not done after %llu ns", slot,
                           (unsigned long long)timeout_ns);
    }
    mock_wait_until(instance, slot, when_ns);
    return DS_ACCEL_OK;
}
