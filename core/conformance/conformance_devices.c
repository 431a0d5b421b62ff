/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Conformance checks: objects created on a device belong to that device, and not to another. This
 * file also determines the devices that the suite runs on.
 */
#include "base/json.h"
#include "base/text.h"
#include "conformance/conformance.h"

#include <stdio.h>

#define GROUP "devices"
#define OTHERS_LIMIT 8u
#define MEBIBYTE (UINT64_C(1) << 20)

/* ---- the devices to run on ------------------------------------------------------------------ */

#define SHOWN_LIMIT 64u

/* Write a value of the environment variable that selects devices: the value with which a process
 * sees all devices in reverse order. If the variable cannot reorder devices, the value with which a
 * process sees only the last device. False if the plugin supports neither value. */
static bool make_value(struct ds_accel__run *run, const char *variable, char *value,
                       uint32_t value_size)
{
    uint32_t indices[SHOWN_LIMIT];
    uint32_t count = run->device_count;

    for (uint32_t i = 0; i < count; i++) {
        indices[i] = count - 1 - i;
    }
    return CALL(run, visible_devices_value, run->instance, variable, indices, count, value,
                value_size, NULL) == DS_ACCEL_OK ||
           CALL(run, visible_devices_value, run->instance, variable, indices, 1, value, value_size,
                NULL) == DS_ACCEL_OK;
}

static bool can_show(const struct ds_accel__run *run)
{
    return run->device_count > 1 && run->device_count <= SHOWN_LIMIT &&
           run->table.env_name_get != NULL && run->table.visible_devices_value != NULL &&
           !ds_accel__witness_is_refused(SLOT(env_name_get)) &&
           !ds_accel__witness_is_refused(SLOT(visible_devices_value));
}

void ds_accel__say_devices(struct ds_accel__run *run)
{
    char variable[128] = "";
    char value[1024] = "";

    if (!can_show(run) ||
        CALL(run, env_name_get, run->instance, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES, 0, variable,
             (uint32_t)sizeof(variable)) != DS_ACCEL_OK ||
        !make_value(run, variable, value, (uint32_t)sizeof(value))) {
        variable[0] = value[0] = '\0';
    }
    ds_accel__say("{s:I, s:o, s:o}", "devices", (json_int_t)run->device_count, "variable",
                  ds_accel__json_text(variable), "value", ds_accel__json_text(value));
}

/* ---- the other devices ---------------------------------------------------------------------- */

struct others {
    ds_accel_plugin_device_t *devices[OTHERS_LIMIT];
    uint32_t indices[OTHERS_LIMIT];
    uint32_t count;
};

/* Open up to OTHERS_LIMIT other devices. If there is none, skip the check and return false. */
static bool open_others(struct ds_accel__run *run, struct others *others)
{
    others->count = 0;
    for (uint32_t i = 0; i < run->device_count && others->count < OTHERS_LIMIT; i++) {
        if (i != run->device_index) {
            others->indices[others->count] = i;
            others->devices[others->count++] = ds_accel__run_open(run, run->instance, i);
        }
    }
    if (others->count == 0) {
        ds_accel__skip(run, "there is no other device");
    }
    return others->count > 0;
}

static void close_others(struct ds_accel__run *run, const struct others *others)
{
    for (uint32_t i = 0; i < others->count; i++) {
        run->table.device_close(others->devices[i]);
    }
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Fail if mem_pointer_info reports that the memory is on another device. A device index of -1
 * means unknown, and does not fail this check, because DSA-P71 covers it. */
static void want_here(struct ds_accel__run *run, const void *pointer, const char *slot)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info), .device_index = -1};

    CALL(run, mem_pointer_info, run->instance, run->device, pointer, &info);
    EXPECT(run, info.device_index < 0 || (uint32_t)info.device_index == run->device_index,
           "%s of device %u returned memory of device %d", slot, run->device_index,
           info.device_index);
}

static void check_pointers(struct ds_accel__run *run)
{
    struct others others;
    void *pointer = NULL;

    /*
     * The allocation must use its own device, even if another device is the thread's current
     * device.
     */
    if (open_others(run, &others) && run->table.device_set_current != NULL) {
        WANT(run, DS_ACCEL_OK, device_set_current, others.devices[0]);
    }
    pointer = ds_accel__take(run, MEBIBYTE);
    want_here(run, pointer, "mem_alloc");
    ds_accel__give(run, pointer);
    if (run->stream != NULL && ds_accel__has_slot(run, SLOT(mem_alloc_async)) &&
        CALL(run, mem_alloc_async, run->stream, MEBIBYTE, 0, NULL, 0, &pointer) == DS_ACCEL_OK) {
        want_here(run, pointer, "mem_alloc_async");
        CALL(run, mem_free_async, run->stream, pointer, NULL, 0);
        ds_accel__wait(run, run->stream);
    }
    close_others(run, &others);
    /* if there is only one device, open_others() has marked the check as skipped, but this check
     * is useful with one device, too */
    run->is_skipped = false;
}

static bool read_allocated(struct ds_accel__run *run, ds_accel_plugin_device_t *device,
                           uint64_t *bytes_out)
{
    struct ds_accel_memory_stats stats = {.struct_size = sizeof(stats)};

    WANT(run, DS_ACCEL_OK, mem_stats, device, &stats);
    *bytes_out = stats.alloc_count;
    return (stats.valid & DS_ACCEL_STATS_COUNTS) != 0;
}

/*
 * Check that an allocation changes only the statistics of its own device. Nothing else in this
 * process allocates memory during the check.
 */
static void check_counts(struct ds_accel__run *run)
{
    struct others others;
    uint64_t before[OTHERS_LIMIT];
    uint64_t now = 0;
    void *pointer;
    bool is_known = open_others(run, &others);

    for (uint32_t i = 0; i < others.count && is_known; i++) {
        is_known = read_allocated(run, others.devices[i], &before[i]);
    }
    if (!is_known) {
        if (others.count > 0) {
            ds_accel__skip(run, "allocations are not counted");
        }
        close_others(run, &others);
        return;
    }
    pointer = ds_accel__take(run, MEBIBYTE);
    for (uint32_t i = 0; i < others.count; i++) {
        read_allocated(run, others.devices[i], &now);
        EXPECT(run, now == before[i], "an allocation on device %u counts as one of device %u",
               run->device_index, others.indices[i]);
    }
    ds_accel__give(run, pointer);
    close_others(run, &others);
}

static bool read_available(struct ds_accel__run *run, ds_accel_plugin_device_t *device,
                           uint64_t *bytes_out)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};

    WANT(run, DS_ACCEL_OK, mem_info, device, &info);
    *bytes_out = info.available_bytes;
    return (info.valid & DS_ACCEL_MEMORY_AVAILABLE) != 0;
}

/*
 * The number of bytes by which the available memory is now less than `before`; 0 if it is not less.
 */
static uint64_t drop(struct ds_accel__run *run, ds_accel_plugin_device_t *device, uint64_t before)
{
    uint64_t now = 0;

    read_available(run, device, &now);
    return now < before ? before - now : 0;
}

/*
 * Check which device's available memory an allocation reduces. Other processes allocate and free
 * memory at any time, so the check fails only if every attempt reduces another device's available
 * memory by at least the allocated size, and this device's by less than half of that size.
 */
static void check_available(struct ds_accel__run *run)
{
    struct others others;
    uint64_t own = 0;
    uint64_t before[OTHERS_LIMIT] = {0};
    uint64_t size;
    bool is_known = read_available(run, run->device, &own);
    uint32_t wrong_count = 0;

    is_known = open_others(run, &others) && is_known;
    size = own / 16 < 64 * MEBIBYTE ? own / 16 : 64 * MEBIBYTE;
    for (int round = 0; round < 3 && is_known && size >= MEBIBYTE; round++) {
        void *pointer;
        bool is_wrong = false;

        read_available(run, run->device, &own);
        for (uint32_t i = 0; i < others.count; i++) {
            read_available(run, others.devices[i], &before[i]);
        }
        pointer = ds_accel__take(run, size);
        for (uint32_t i = 0; i < others.count; i++) {
            is_wrong = is_wrong || drop(run, others.devices[i], before[i]) >= size;
        }
        wrong_count += is_wrong && drop(run, run->device, own) < size / 2;
        ds_accel__give(run, pointer);
    }
    EXPECT(run, wrong_count < 3, "%llu bytes of device %u are taken from another device's memory",
           (unsigned long long)size, run->device_index);
    close_others(run, &others);
}

static void check_limit(struct ds_accel__run *run)
{
    struct others others;
    void *pointer = NULL;

    if (!open_others(run, &others)) {
        return;
    }
    WANT(run, DS_ACCEL_OK, mem_set_limit, run->device, 1);
    for (uint32_t i = 0; i < others.count; i++) {
        int32_t status = CALL(run, mem_alloc, others.devices[i], MEBIBYTE, 0, 0, &pointer);

        EXPECT(run, status == DS_ACCEL_OK,
               "with a limit of one byte on device %u, mem_alloc on device %u returns %s",
               run->device_index, others.indices[i], ds_accel__status_text(status));
        WANT(run, DS_ACCEL_OK, mem_free, others.devices[i], pointer);
    }
    WANT(run, DS_ACCEL_OK, mem_set_limit, run->device, 0);
    close_others(run, &others);
}

/* ---- native handles ------------------------------------------------------------------------- */

static void check_native(struct ds_accel__run *run)
{
    struct others others;
    uint64_t own = 0;
    uint64_t native = 0;
    uint64_t offset = 0;

    if (!open_others(run, &others)) {
        return;
    }
    if (CALL(run, native_get, run->device, DS_ACCEL_NATIVE_DEVICE, run->device, &own, &offset) ==
        DS_ACCEL_OK) {
        for (uint32_t i = 0; i < others.count; i++) {
            WANT(run, DS_ACCEL_OK, native_get, others.devices[i], DS_ACCEL_NATIVE_DEVICE,
                 others.devices[i], &native, &offset);
            EXPECT(run, native != own, "devices %u and %u are one device of the runtime",
                   run->device_index, others.indices[i]);
        }
    }
    close_others(run, &others);
}

/* ---- work ----------------------------------------------------------------------------------- */

/* Check that device_synchronize() waits for the device's streams, including a stream that was
 * created while another device was the current one. */
static void check_work(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *streams[2] = {NULL, NULL};
    struct ds_accel__slow slow[2];
    struct others others;

    if (!open_others(run, &others)) {
        return;
    }
    if (run->table.device_set_current != NULL) {
        WANT(run, DS_ACCEL_OK, device_set_current, others.devices[0]);
    }
    streams[0] = ds_accel__stream(run);
    WANT(run, DS_ACCEL_OK, stream_create, others.devices[0], DS_ACCEL_STREAM_NON_BLOCKING, 0,
         &streams[1]);
    ds_accel__slow_start(run, &slow[0], streams[0]);
    ds_accel__slow_start(run, &slow[1], streams[1]);
    WANT(run, DS_ACCEL_OK, device_synchronize, run->device, UINT64_MAX);
    EXPECT(run, atomic_load(&slow[0].is_done),
           "device_synchronize of device %u returned before the work of its stream was done",
           run->device_index);
    WANT(run, DS_ACCEL_OK, device_synchronize, others.devices[0], UINT64_MAX);
    EXPECT(run, atomic_load(&slow[1].is_done),
           "device_synchronize of device %u returned before the work of its stream was done",
           others.indices[0]);
    run->table.stream_destroy(streams[0]);
    run->table.stream_destroy(streams[1]);
    close_others(run, &others);
}

static void check_default_streams(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *own = NULL;
    ds_accel_plugin_stream_t *stream = NULL;
    struct others others;

    if (!open_others(run, &others)) {
        return;
    }
    WANT(run, DS_ACCEL_OK, stream_get_default, run->device, &own);
    for (uint32_t i = 0; i < others.count; i++) {
        WANT(run, DS_ACCEL_OK, stream_get_default, others.devices[i], &stream);
        EXPECT(run, stream != own, "devices %u and %u have one default stream", run->device_index,
               others.indices[i]);
    }
    close_others(run, &others);
}

#define DEVICE DS_ACCEL__STAGE_DEVICE
#define ALONE DS_ACCEL__CHECK_ALONE /* changes the current device, which other checks depend on */

static const struct ds_accel__check checks[] = {
    {120,
     GROUP,
     "memory belongs to the device that it was allocated on",
     DEVICE,
     ALONE,
     check_pointers,
     {SLOT(mem_alloc), SLOT(mem_pointer_info)}},
    {120,
     GROUP,
     "counts of memory are of one device",
     DEVICE,
     ALONE,
     check_counts,
     {SLOT(mem_alloc), SLOT(mem_stats)}},
    {120,
     GROUP,
     "memory is taken from the device that it was allocated on",
     DEVICE,
     ALONE,
     check_available,
     {SLOT(mem_alloc), SLOT(mem_info)}},
    {120,
     GROUP,
     "a memory limit is of one device",
     DEVICE,
     ALONE,
     check_limit,
     {SLOT(mem_alloc), SLOT(mem_set_limit)}},
    {120, GROUP, "a device of the runtime each", DEVICE, ALONE, check_native, {SLOT(native_get)}},
    {46,
     GROUP,
     "work runs on the device that it was given to",
     DEVICE,
     ALONE,
     check_work,
     {SLOT(device_synchronize), SLOT(stream_create), SLOT(stream_host_task)}},
    {120,
     GROUP,
     "a default stream each",
     DEVICE,
     ALONE,
     check_default_streams,
     {SLOT(stream_get_default)}},
};

const struct ds_accel__check_list ds_accel__checks_devices = {checks, ARRAY_SIZE(checks)};
