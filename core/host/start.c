/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Starts a plugin: calls init, and queries the number of its devices. This happens in the process
 * that uses the plugin (activate.c), and before that, as a rehearsal, in a helper (probe_child.c).
 */
#include "host/start.h"
#include "base/text.h"
#include "base/trust.h"
#include "host/registry.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/*
 * Describe the failure, beginning with the call that failed, unless the plugin's own text begins
 * with it.
 */
static void describe(const struct ds_accel__start *start, const char *call,
                     const struct ds_accel_error *error, char *text, size_t size)
{
    char words[400];
    bool is_named;

    ds_accel__describe(start->status, error, words, sizeof(words));
    is_named = strncmp(words, call, strlen(call)) == 0;
    snprintf(text, size, "%s%s%s", is_named ? "" : call, is_named ? "" : ": ", words);
}

static int32_t count_devices(const struct ds_accel__candidate *candidate,
                             ds_accel_plugin_instance_t *instance, uint32_t *count_out,
                             struct ds_accel_error *error)
{
    int32_t status = candidate->table.device_count(instance, count_out, error);

    if (status == DS_ACCEL_OK && *count_out == 0) {
        return DS_ACCEL_ERR_NO_DEVICE;
    }
    return status == DS_ACCEL_OK && *count_out > DS_ACCEL__DEVICE_LIMIT ? DS_ACCEL_ERR_ABI : status;
}

void ds_accel__start_instance(struct ds_accel__candidate *candidate,
                              ds_accel_plugin_instance_t **instance_out, char *text, size_t size)
{
    struct ds_accel__start *start = &candidate->start;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const char *call = "init";

    memset(start, 0, sizeof(*start));
    start->is_done = 1;
    *instance_out = NULL;
    start->status = candidate->table.init(&candidate->host.abi, instance_out, &error);
    if (start->status == DS_ACCEL_OK && *instance_out == NULL) {
        start->status = DS_ACCEL_ERR_ABI;
        snprintf(error.message, sizeof(error.message), "init returned no instance");
    } else if (start->status != DS_ACCEL_OK) {
        *instance_out = NULL;
    } else {
        call = "device_count";
        start->status = count_devices(candidate, *instance_out, &start->device_count, &error);
    }
    if (start->status > 0) {
        start->status = DS_ACCEL_ERR_ABI;
    }
    /* A busy device or a lack of memory may be temporary: a later start may succeed. */
    start->is_inconclusive = start->status == DS_ACCEL_ERR_BUSY ||
                             start->status == DS_ACCEL_ERR_NO_MEMORY;
    assert(start->status <= 0);
    assert(start->status < 0 || (*instance_out != NULL && start->device_count > 0 &&
                                 start->device_count <= DS_ACCEL__DEVICE_LIMIT));
    describe(start, call, &error, text, size);
}

void ds_accel__start_fail(struct ds_accel__candidate *candidate, const char *text)
{
    struct ds_accel__finding finding = {0};

    ds_accel__finding_set(&finding, DS_ACCEL__REASON_START_FAILED, "%s", text);
    ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_START, DS_ACCEL_STATE_ERROR, &finding);
}

void ds_accel__start_judge(struct ds_accel__candidate *candidate, const char *text)
{
    const struct ds_accel__start *start = &candidate->start;
    const char *stage = candidate->stage;

    assert(start->is_done != 0);
    if (start->status == DS_ACCEL_OK) {
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_START, "rehearsed: %u device%s",
                                 start->device_count, start->device_count == 1 ? "" : "s");
    } else if (start->is_inconclusive) {
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_START, "inconclusive: %s", text);
    } else {
        ds_accel__start_fail(candidate, text);
        return;
    }
    candidate->stage = stage; /* ds_accel__candidate_pass() has replaced it */
}
