/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Brings the plugin up as far as a check needs: load, entry, probe, init and device_open. What has
 * succeeded is not repeated in the process. Exits if the plugin cannot be checked.
 */
#include "base/json.h"
#include "base/text.h"
#include "base/trust.h"
#include "conformance/conformance.h"
#include "host/loader.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool ds_accel__run_load(struct ds_accel__run *run, char *why, size_t why_size)
{
    struct ds_accel__finding finding = {0};
    unsigned call;
    uint32_t size;

    if (run->has_table) {
        return true;
    }
    call = ds_accel__witness_enter(DS_ACCEL__WITNESS_LOAD);
    if (ds_accel__module_open(run->path, &run->module, &finding) < 0 || run->module == NULL) {
        snprintf(why, why_size, "%s does not load: %s", run->path, finding.detail);
        ds_accel__witness_leave(call, DS_ACCEL__WITNESS_LOAD);
        return false;
    }
    ds_accel__witness_leave(call, DS_ACCEL__WITNESS_LOAD);
    call = ds_accel__witness_enter(DS_ACCEL__WITNESS_ENTRY);
    ds_accel__module_entry(run->module, run->host, &run->theirs, &finding);
    ds_accel__witness_leave(call, DS_ACCEL__WITNESS_ENTRY);
    if (run->theirs == NULL) {
        snprintf(why, why_size, "%s: its entry returns no table: %s", run->path, finding.detail);
        return false;
    }
    /* Read the size, which every table has, then copy the slots that are entirely within the
     * size. */
    memcpy(&size, run->theirs, sizeof(size));
    size = size < sizeof(run->table) ? size : (uint32_t)sizeof(run->table);
    memcpy(&run->table, run->theirs, size - size % sizeof(void *));
    ds_accel__witness_table(run, &run->table);
    run->has_table = true;
    return true;
}

_Noreturn void ds_accel__run_give_up(const char *why)
{
    ds_accel__say("{s:o}", "unusable", ds_accel__json_text(why));
    _exit(0);
}

/* Probe the plugin. If the probe fails or the plugin is not available, report the plugin as
 * unusable and exit. */
static void probe(struct ds_accel__run *run)
{
    struct ds_accel_error *error = ds_accel__fresh_error(run);
    struct ds_accel_verdict *verdict = &run->verdict;
    char text[400];
    int32_t status;

    memset(verdict, 0, sizeof(*verdict));
    verdict->struct_size = sizeof(*verdict);
    status = run->table.probe(run->host, verdict, error);
    if (status < 0) {
        ds_accel__describe(status, error, text, sizeof(text));
        ds_accel__run_give_up(text);
    }
    if (status == DS_ACCEL_OK && verdict->reason != DS_ACCEL_REASON_NONE &&
        (verdict->state == DS_ACCEL_PROBE_UNAVAILABLE || verdict->state == DS_ACCEL_PROBE_ERROR)) {
        enum ds_accel__reason_id reason = ds_accel__reason_of_verdict(verdict->reason);

        verdict->detail[sizeof(verdict->detail) - 1] = '\0';
        snprintf(text, sizeof(text), "%s is not available: %s: %s", run->name,
                 ds_accel__reason_code(
                     reason != DS_ACCEL__REASON_NONE ? reason : DS_ACCEL__REASON_NEWER_REASON),
                 verdict->detail);
        ds_accel__run_give_up(text);
    }
}

void ds_accel__run_check_device(const struct ds_accel__run *run, uint32_t device_count)
{
    char text[128];

    if (device_count > 0 && run->device_index >= device_count) {
        snprintf(text, sizeof(text), "there is no device %u: %s has %u", run->device_index,
                 run->name, device_count);
        ds_accel__run_give_up(text);
    }
}

bool ds_accel__slots_are_refused(const size_t *slots, size_t count, char *why, size_t why_size)
{
    for (size_t i = 0; i < count; i++) {
        if (ds_accel__witness_is_refused(slots[i])) {
            ds_accel__witness_explain(slots[i], why, why_size);
            return true;
        }
    }
    return false;
}

static bool start(struct ds_accel__run *run, char *why, size_t why_size)
{
    static const size_t needed[] = {SLOT(probe), SLOT(init), SLOT(device_count)};
    const struct ds_accel_plugin *table = &run->table;
    int32_t status;

    if (run->instance != NULL) {
        return true;
    }
    if (table->probe == NULL || table->init == NULL || table->shutdown == NULL ||
        table->device_count == NULL || table->device_open == NULL || table->device_close == NULL) {
        snprintf(why, why_size, "it lacks functions that a start needs");
        return false;
    }
    if (ds_accel__slots_are_refused(needed, ARRAY_SIZE(needed), why, why_size)) {
        return false;
    }
    probe(run);
    status = CALL(run, init, run->host, &run->instance);
    if (status == DS_ACCEL_OK) {
        status = CALL(run, device_count, run->instance, &run->device_count);
    }
    if (status != DS_ACCEL_OK || run->instance == NULL) {
        snprintf(why, why_size, "it does not start: %s: %.150s", ds_accel__status_text(status),
                 run->error.message);
        run->instance = NULL;
        return false;
    }
    ds_accel__run_check_device(run, run->device_count);
    run->info.struct_size = sizeof(run->info);
    if (table->backend_info != NULL && !ds_accel__witness_is_refused(SLOT(backend_info))) {
        CALL(run, backend_info, run->instance, &run->info);
    }
    return true;
}

static bool open_device(struct ds_accel__run *run, char *why, size_t why_size)
{
    static const size_t needed[] = {SLOT(device_open)};
    int32_t status;

    if (run->device != NULL) {
        return true;
    }
    if (run->device_index >= run->device_count) {
        snprintf(why, why_size, "there is no device %u", run->device_index);
        return false;
    }
    if (ds_accel__slots_are_refused(needed, ARRAY_SIZE(needed), why, why_size)) {
        return false;
    }
    status = CALL(run, device_open, run->instance, run->device_index, &run->device);
    if (status != DS_ACCEL_OK || run->device == NULL) {
        snprintf(why, why_size, "device %u cannot be opened: %s: %.150s", run->device_index,
                 ds_accel__status_text(status), run->error.message);
        run->device = NULL;
        return false;
    }
    if (run->table.stream_create != NULL && !ds_accel__witness_is_refused(SLOT(stream_create)) &&
        CALL(run, stream_create, run->device, DS_ACCEL_STREAM_DEFAULT, 0, &run->stream) !=
            DS_ACCEL_OK) {
        run->stream = NULL;
    }
    return true;
}

bool ds_accel__run_bring_up(struct ds_accel__run *run, enum ds_accel__stage stage, char *why,
                            size_t why_size)
{
    if (stage == DS_ACCEL__STAGE_FILE) {
        return true;
    }
    if (!ds_accel__run_load(run, why, why_size)) {
        ds_accel__run_give_up(why);
    }
    return stage == DS_ACCEL__STAGE_TABLE ||
           (start(run, why, why_size) &&
            (stage == DS_ACCEL__STAGE_INSTANCE || open_device(run, why, why_size)));
}
