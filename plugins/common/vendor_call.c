/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Argument checks of the slots, conversion of the vendor's codes, and waiting with a deadline.
 *
 * Each slot checks the handle, then checks the other arguments (NULL, flags, sizes, kinds), calls
 * the runtime, and writes the outputs. The function that detects an error describes it once;
 * callers clean up and return the same status.
 */
#include "vendor_frame.h"

#include <time.h>

/* ---- errors --------------------------------------------------------------------------------- */

int32_t vendor_check(ds_accel_plugin_instance_t *instance, ds_accel_plugin_device_t *device,
                     int64_t code, struct ds_accel_error *error, const char *format, ...)
{
    struct ds_accel_error details;
    const char *name = NULL;
    char call[192];
    int32_t status = DS_ACCEL_ERR_DRIVER;
    va_list arguments;

    if (code == 0) {
        return DS_ACCEL_OK;
    }
    vendor_backend.describe(instance->runtime, code, &status, &name);
    if (status >= 0) {
        return status; /* not a failure, such as DS_ACCEL_NOT_READY */
    }
    if (status == DS_ACCEL_ERR_DEVICE_LOST && device != NULL) {
        atomic_store(&device->is_lost, 1);
    }
    va_start(arguments, format);
    vsnprintf(call, sizeof(call), format, arguments);
    va_end(arguments);
    memset(&details, 0, sizeof(details));
    details.code = status;
    details.vendor_code = code;
    if (name != NULL) {
        snprintf(details.vendor_text, sizeof(details.vendor_text), "%s", name);
    }
    snprintf(details.message, sizeof(details.message), "%s: %.*s (%lld)", call, 48,
             name != NULL ? name : "error", (long long)code);
    ds_accel_write(error, &details, sizeof(details));
    return status;
}

int32_t vendor_unsupported(struct ds_accel_error *error, const char *call, const char *cause)
{
    return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED, "%s: %s", call, cause);
}

int vendor_problem_code(struct vendor_problem *problem, uint32_t reason, void *runtime,
                        int64_t code, uint32_t is_error, const char *format, ...)
{
    const char *name = NULL;
    int32_t status = DS_ACCEL_ERR_DRIVER;
    char text[160];
    va_list arguments;

    vendor_backend.describe(runtime, code, &status, &name);
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    vendor_problem_set(problem,
                       reason != DS_ACCEL_REASON_NONE ? reason : DS_ACCEL_REASON_DRIVER_FAILED,
                       "%s: %.*s (%lld)", text, 60, name != NULL ? name : "error", (long long)code);
    problem->is_error = is_error;
    problem->vendor_code = code;
    if (name != NULL) {
        snprintf(problem->vendor_text, sizeof(problem->vendor_text), "%s", name);
    }
    return -1;
}

void vendor_log(const struct ds_accel_host *host, uint32_t level, const char *format, ...)
{
    uint32_t enabled = 0;
    char line[512];
    va_list arguments;

    if (host->log_enabled != NULL &&
        (host->log_enabled(host, level, &enabled) != DS_ACCEL_OK || enabled == 0)) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    host->log(host, level, line);
}

/* ---- arguments ------------------------------------------------------------------------------ */

int32_t vendor_null(struct ds_accel_error *error, const char *slot, const char *what)
{
    return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: %s is NULL", slot, what);
}

int32_t vendor_check_flags(uint32_t flags, uint32_t known, const char *slot,
                           struct ds_accel_error *error)
{
    if ((flags & ~known) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: unknown bits 0x%x in flags 0x%x", slot,
                           flags & ~known, flags);
    }
    return DS_ACCEL_OK;
}

int32_t vendor_check_instance(const ds_accel_plugin_instance_t *instance, const char *slot,
                              struct ds_accel_error *error)
{
    return instance == NULL ? vendor_null(error, slot, "the instance") : DS_ACCEL_OK;
}

int32_t vendor_check_index(const ds_accel_plugin_instance_t *instance, uint32_t device_index,
                           const char *slot, struct ds_accel_error *error)
{
    if (instance == NULL) {
        return vendor_null(error, slot, "the instance");
    }
    if (device_index >= instance->device_count) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: device %u does not exist, there are %u", slot, device_index,
                           instance->device_count);
    }
    return DS_ACCEL_OK;
}

int32_t vendor_check_array(const void *array, uint32_t capacity, const uint32_t *count_out,
                           const char *slot, struct ds_accel_error *error)
{
    if (count_out == NULL || (array == NULL && capacity > 0)) {
        return vendor_null(error, slot, "count_out or the array");
    }
    return DS_ACCEL_OK;
}

int32_t vendor_check_peer(const ds_accel_plugin_device_t *device,
                          const ds_accel_plugin_device_t *peer, const char *slot,
                          struct ds_accel_error *error)
{
    if (peer == NULL) {
        return vendor_null(error, slot, "the other device");
    }
    if (peer->instance != device->instance) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: devices %u and %u belong to different instances", slot,
                           device->index, peer->index);
    }
    return DS_ACCEL_OK;
}

int32_t vendor_fail_lost(ds_accel_plugin_device_t *device, const char *slot,
                         struct ds_accel_error *error)
{
    vendor_tasks_abandon(device, VENDOR_ANY_OPENING, DS_ACCEL_ERR_DEVICE_LOST);
    return plugin_fail(error, DS_ACCEL_ERR_DEVICE_LOST, "%s: device %u was lost before", slot,
                       device->index);
}

/* ---- waiting -------------------------------------------------------------------------------- */

#define SHORTEST_SLEEP_NS UINT64_C(10000)
#define LONGEST_SLEEP_NS UINT64_C(1000000)

int32_t vendor_poll(int32_t (*ask)(void *subject, struct ds_accel_error *error), void *subject,
                    uint64_t timeout_ns, const char *slot, struct ds_accel_error *error)
{
    uint64_t start_ns = plugin_now_ns();
    uint64_t sleep_ns = SHORTEST_SLEEP_NS;

    for (;;) {
        int32_t status = ask(subject, error);
        uint64_t waited_ns = plugin_now_ns() - start_ns;
        struct timespec pause = {0};

        if (status != DS_ACCEL_NOT_READY) {
            return status;
        }
        if (waited_ns >= timeout_ns) {
            return plugin_fail(error, DS_ACCEL_ERR_TIMEOUT, "%s: not done after %llu ns", slot,
                               (unsigned long long)timeout_ns);
        }
        sleep_ns = sleep_ns < timeout_ns - waited_ns ? sleep_ns : timeout_ns - waited_ns;
        pause.tv_nsec = (long)sleep_ns;
        nanosleep(&pause, NULL); /* if a signal interrupts it, the next query comes earlier */
        sleep_ns = 2 * sleep_ns < LONGEST_SLEEP_NS ? 2 * sleep_ns : LONGEST_SLEEP_NS;
    }
}
