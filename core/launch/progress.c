/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reads the devices' sensors while a stall is suspected. A child process opens the accelerator for
 * each reading and ends after it, because a vendor's library may hang, which is also a cause of
 * stalls, and because this process must stay without vendors' libraries and threads. The readings
 * open and wake no device.
 *
 * A kernel that waits for another rank, as in an all-reduce of NCCL, keeps a device at 100 percent
 * without moving data. Constant utilization is therefore no progress by itself:
 *
 *      utilization, its processes' utilization or memory in use changed      yes
 *      utilization is above 0 and the memory moves data                      yes
 *      utilization is 0, or it is above 0 and the memory moves no data       no
 *      utilization is above 0 and constant, the memory's is not known        unknown
 *      no utilization is known                                               unknown
 *
 * Sensors of cpu are not read: the CPU time of each rank is known anyway, and other programs use
 * the same CPUs and memory.
 */
#include "launch/progress.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/worker.h"

#include <string.h>

#define DEFAULT_TIMEOUT_NS 5000000000ull
#define PROCESS_LIMIT 256u
/* Sensors of an idle device vary by a percent. */
#define NOISE_PERCENT 2

/* ---- the child ------------------------------------------------------------------------------ */

static void set_size(json_t *object, const char *key, uint64_t value, bool is_known, bool *failed)
{
    if (is_known) {
        ds_accel__json_set(object, key, json_integer((json_int_t)(value & INT64_MAX)), failed);
    }
}

static json_t *read_processes(ds_accel_t *context, uint32_t index, bool *failed)
{
    static struct ds_accel_process processes[PROCESS_LIMIT];
    json_t *list = json_array();
    uint32_t count = 0;

    for (uint32_t i = 0; i < PROCESS_LIMIT; i++) {
        processes[i] = (struct ds_accel_process){.struct_size = sizeof(processes[i])};
    }
    if (ds_accel_telemetry_processes(context, index, processes, sizeof(processes[0]), PROCESS_LIMIT,
                                     &count) < 0) {
        return list;
    }
    for (uint32_t i = 0; i < count && i < PROCESS_LIMIT; i++) {
        json_t *process = json_object();

        ds_accel__json_set(process, "pid", json_integer(processes[i].pid), failed);
        set_size(process, "utilization_percent", processes[i].utilization_percent,
                 (processes[i].valid & DS_ACCEL_TELEMETRY_UTILIZATION) != 0, failed);
        set_size(process, "memory_bytes", processes[i].memory_bytes,
                 (processes[i].valid & DS_ACCEL_TELEMETRY_MEMORY) != 0, failed);
        *failed = json_array_append_new(list, process) != 0 || *failed;
    }
    return list;
}

static json_t *read_device(ds_accel_t *context, uint32_t index, bool *failed)
{
    struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};
    json_t *device = json_object();

    if (strcmp(ds_accel_name(context), "cpu") == 0) {
        ds_accel__json_set(device, "index", json_integer(index), failed);
        return device;
    }
    if (ds_accel_telemetry(context, index, &telemetry) < 0) {
        telemetry.valid = 0;
    }
    ds_accel__json_set(device, "index", json_integer(index), failed);
    set_size(device, "utilization_percent", telemetry.utilization_percent,
             (telemetry.valid & DS_ACCEL_TELEMETRY_UTILIZATION) != 0, failed);
    set_size(device, "memory_utilization_percent", telemetry.memory_utilization_percent,
             (telemetry.valid & DS_ACCEL_TELEMETRY_MEMORY_UTILIZATION) != 0, failed);
    set_size(device, "memory_used_bytes", telemetry.memory_used_bytes,
             (telemetry.valid & DS_ACCEL_TELEMETRY_MEMORY) != 0, failed);
    ds_accel__json_set(device, "processes", read_processes(context, index, failed), failed);
    return device;
}

static void read_devices(struct ds_accel__worker *worker, void *user_data)
{
    const struct ds_accel__progress *progress = user_data;
    json_t *reading = json_object(), *devices = json_array();
    ds_accel_t *context = NULL;
    uint32_t count = 0;
    bool failed = false;

    if (ds_accel_create(progress->options, &context) < 0 || ds_accel_detect(context) < 0 ||
        ds_accel_device_count(context, &count) < 0) {
        ds_accel__json_set(reading, "error", ds_accel__json_text(ds_accel_last_error()), &failed);
    } else {
        ds_accel__json_set(reading, "accelerator", ds_accel__json_text(ds_accel_name(context)),
                           &failed);
    }
    for (uint32_t i = 0; i < count; i++) {
        failed = json_array_append_new(devices, read_device(context, i, &failed)) != 0 || failed;
    }
    ds_accel__json_set(reading, "devices", devices, &failed);
    if (!failed) {
        ds_accel__worker_result(worker, reading);
    }
}

/* ---- comparison ----------------------------------------------------------------------------- */

/* The difference of a percentage of two readings; 0 if one of them lacks it. */
static int64_t difference(const json_t *before, const json_t *after, const char *key)
{
    const json_t *from = json_object_get(before, key), *to = json_object_get(after, key);
    int64_t result = 0;

    if (from != NULL && to != NULL) {
        result = json_integer_value(to) - json_integer_value(from);
    }
    return result < 0 ? -result : result;
}

static const json_t *find_process(const json_t *device, json_int_t pid)
{
    const json_t *process;
    size_t i;

    json_array_foreach(json_object_get(device, "processes"), i, process)
    {
        if (json_integer_value(json_object_get(process, "pid")) == pid) {
            return process;
        }
    }
    return NULL;
}

static bool is_process_changed(const json_t *before, const json_t *after)
{
    const json_t *process;
    size_t i;

    json_array_foreach(json_object_get(after, "processes"), i, process)
    {
        const json_t *old =
            find_process(before, json_integer_value(json_object_get(process, "pid")));

        if (old == NULL || difference(old, process, "utilization_percent") > NOISE_PERCENT ||
            difference(old, process, "memory_bytes") > 0) {
            return true;
        }
    }
    return false;
}

const char *ds_accel__progress_compare(const json_t *before, const json_t *after)
{
    const json_t *moved = json_object_get(after, "memory_utilization_percent");
    const json_t *used = json_object_get(after, "utilization_percent");

    if (difference(before, after, "utilization_percent") > NOISE_PERCENT ||
        difference(before, after, "memory_utilization_percent") > NOISE_PERCENT ||
        difference(before, after, "memory_used_bytes") > 0 || is_process_changed(before, after)) {
        return "yes";
    }
    if (used == NULL) {
        return "unknown";
    }
    if (json_integer_value(used) == 0) {
        return "no";
    }
    return moved == NULL ? "unknown" : json_integer_value(moved) > 0 ? "yes" : "no";
}

/* ---- readings ------------------------------------------------------------------------------- */

static json_t *take_reading(struct ds_accel__progress *progress)
{
    uint64_t timeout_ns = progress->timeout_ns > 0 ? progress->timeout_ns : DEFAULT_TIMEOUT_NS;
    json_t *results = NULL, *reading;
    bool is_late = false;
    int32_t status = ds_accel__worker_run(read_devices, progress, timeout_ns, &results, &is_late);

    if (status >= 0 && json_array_size(results) > 0) {
        reading = json_incref(json_array_get(results, 0));
    } else {
        reading = json_pack("{s:s, s:[]}", "error",
                            status < 0 ? ds_accel_last_error()
                            : is_late  ? "the accelerator's library did not return in time"
                                       : "the accelerator's library ended the process",
                            "devices");
    }
    json_decref(results);
    return reading;
}

void ds_accel__progress_clear(struct ds_accel__progress *progress)
{
    json_decref(progress->first);
    progress->first = NULL;
}

bool ds_accel__progress_read(void *user_data, bool is_first, json_t **devices_out)
{
    struct ds_accel__progress *progress = user_data;
    json_t *reading = take_reading(progress), *device;
    const json_t *devices;
    bool is_any = false;
    size_t i;

    if (is_first) {
        ds_accel__progress_clear(progress);
        progress->first = json_deep_copy(reading);
    }
    devices = json_object_get(progress->first, "devices");
    json_array_foreach(json_object_get(reading, "devices"), i, device)
    {
        const json_t *before = json_array_get(devices, i);
        const char *answer =
            is_first || before == NULL ? "unknown" : ds_accel__progress_compare(before, device);

        is_any = is_any || strcmp(answer, "yes") == 0;
        json_object_set_new(device, "progress", json_string(answer));
    }
    *devices_out = reading;
    return is_any;
}
