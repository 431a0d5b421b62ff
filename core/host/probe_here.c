/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Probes a plugin in this process: load, entry, probe. The process is ds-accel-probe
 * (probe_serve.c), or the caller's process: for backends that the program registered, for cpu if no
 * helper can be started, and for debugging (probe.mode). activate.c uses load_here() for the chosen
 * plugin.
 */
#include "base/text.h"
#include "base/trust.h"
#include "host/context.h"
#include "host/loader.h"
#include "host/probe.h"
#include "host/registry.h"

#include <stdio.h>
#include <stdlib.h>

/* Report the gate that the candidate has reached, before its code for this gate runs. */
static void enter(struct ds_accel__candidate *candidate, enum ds_accel__gate gate)
{
    ds_accel_t *context = candidate->host.context;

    if (context->on_stage != NULL) {
        context->on_stage(context, gate);
    }
}

static bool ends(const char *text, size_t text_size)
{
    return memchr(text, '\0', text_size) != NULL;
}

static void check_verdict(const struct ds_accel_verdict *verdict, struct ds_accel__finding *finding)
{
    bool is_available = verdict->state == DS_ACCEL_PROBE_AVAILABLE;

    if (!ends(verdict->detail, sizeof(verdict->detail)) ||
        !ends(verdict->variant, sizeof(verdict->variant))) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_BAD_VERDICT,
                              "a text of the verdict is not NUL-terminated");
    } else if (verdict->state < DS_ACCEL_PROBE_AVAILABLE || verdict->state > DS_ACCEL_PROBE_ERROR) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_BAD_VERDICT, "state %u; expected 1, 2 or 3",
                              verdict->state);
    } else if (is_available &&
               (verdict->device_count == 0 || verdict->device_count > DS_ACCEL__DEVICE_LIMIT)) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_BAD_VERDICT, "available with %u devices",
                              verdict->device_count);
    } else if (is_available != (verdict->reason == DS_ACCEL_REASON_NONE)) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_BAD_VERDICT, "state %u with reason %u",
                              verdict->state, verdict->reason);
    }
}

/* Convert a negative status of probe to state ERROR, regardless of the verdict's contents. */
static void take_failure(struct ds_accel_verdict *verdict, int32_t status,
                         const struct ds_accel_error *error)
{
    char text[400];

    memset(verdict, 0, sizeof(*verdict));
    verdict->state = DS_ACCEL_PROBE_ERROR;
    verdict->vendor_code = error->vendor_code;
    switch (status) {
    case DS_ACCEL_ERR_NO_DEVICE:
        verdict->reason = DS_ACCEL_REASON_NO_DEVICE;
        break;
    case DS_ACCEL_ERR_PERMISSION:
        verdict->reason = DS_ACCEL_REASON_NO_PERMISSION;
        break;
    case DS_ACCEL_ERR_BUSY:
        verdict->reason = DS_ACCEL_REASON_DEVICE_BUSY;
        break;
    default:
        verdict->reason = DS_ACCEL_REASON_DRIVER_FAILED;
    }
    ds_accel__describe(status, error, text, sizeof(text));
    snprintf(verdict->detail, sizeof(verdict->detail), "%.255s", text);
}

/*
 * Return the reason of a verdict. A reason that this host does not know comes from a newer ABI; the
 * plugin's own text then explains the verdict.
 */
static enum ds_accel__reason_id reason_of(const struct ds_accel_verdict *verdict)
{
    enum ds_accel__reason_id reason = ds_accel__reason_of_verdict(verdict->reason);

    return reason != DS_ACCEL__REASON_NONE ? reason : DS_ACCEL__REASON_NEWER_REASON;
}

static void ask(struct ds_accel__candidate *candidate)
{
    struct ds_accel_verdict *verdict = &candidate->verdict;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel__finding finding = {0};
    int32_t status;

    memset(verdict, 0, sizeof(*verdict));
    verdict->struct_size = sizeof(*verdict);
    enter(candidate, DS_ACCEL__GATE_PROBE);
    ds_accel__plugin_lock();
    status = candidate->table.probe(&candidate->host.abi, verdict, &error);
    ds_accel__plugin_unlock();
    if (status < 0) {
        take_failure(verdict, status, &error);
    }
    if (status > 0) {
        ds_accel__finding_set(&finding, DS_ACCEL__REASON_BAD_VERDICT, "probe returned %d", status);
    } else {
        check_verdict(verdict, &finding);
    }
    ds_accel__sanitize(verdict->detail, sizeof(verdict->detail));
    ds_accel__sanitize(verdict->variant, sizeof(verdict->variant));
    if (finding.reason != DS_ACCEL__REASON_NONE) {
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_PROBE, DS_ACCEL_STATE_ERROR, &finding);
    } else if (verdict->state == DS_ACCEL_PROBE_AVAILABLE) {
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_PROBE, "%u device%s%s%s",
                                 verdict->device_count, verdict->device_count == 1 ? "" : "s",
                                 verdict->detail[0] != '\0' ? ": " : "", verdict->detail);
        ds_accel__candidate_set(candidate, DS_ACCEL_STATE_AVAILABLE, DS_ACCEL__REASON_NONE, "%s",
                                verdict->detail);
    } else {
        ds_accel__finding_set(&finding, reason_of(verdict), "%s", verdict->detail);
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_PROBE,
                                 verdict->state == DS_ACCEL_PROBE_ERROR
                                     ? DS_ACCEL_STATE_ERROR
                                     : DS_ACCEL_STATE_UNAVAILABLE,
                                 &finding);
    }
    if (!ds_accel__candidate_has_verdict(candidate)) {
        ds_accel__candidate_enter(candidate, DS_ACCEL__PHASE_JUDGED);
    }
}

/*
 * The table's required features must equal those of the note, which was checked before any code
 * ran.
 */
static void check_features(const struct ds_accel__candidate *candidate,
                           struct ds_accel__finding *finding)
{
    if (finding->reason == DS_ACCEL__REASON_NONE &&
        candidate->table.required_features != candidate->note_features) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_TABLE_FEATURES,
                              "its note requires 0x%llx, its table 0x%llx",
                              (unsigned long long)candidate->note_features,
                              (unsigned long long)candidate->table.required_features);
    }
}

/*
 * Open the checked file by its path, because $ORIGIN, debuggers and the dynamic linker's
 * bookkeeping need the path. The file's identity is compared before and after the open.
 */
static int32_t open_module(struct ds_accel__candidate *candidate, struct ds_accel__finding *finding)
{
    int32_t status;

    if (ds_accel__candidate_has_file(candidate)) {
        ds_accel__trust_compare(candidate->path, &candidate->file, finding);
    }
    if (finding->reason != DS_ACCEL__REASON_NONE) {
        return DS_ACCEL_OK;
    }
    status = ds_accel__module_open(candidate->path, &candidate->module, finding);
    if (status >= 0 && candidate->module != NULL && ds_accel__candidate_has_file(candidate)) {
        ds_accel__trust_compare(candidate->path, &candidate->file, finding);
        if (finding->reason != DS_ACCEL__REASON_NONE) {
            ds_accel__module_close(candidate->module);
            candidate->module = NULL;
        }
    }
    return status;
}

int32_t ds_accel__load_here(struct ds_accel__candidate *candidate)
{
    const struct ds_accel_plugin *theirs;
    struct ds_accel__finding finding = {0};
    int32_t status;

    enter(candidate, DS_ACCEL__GATE_LOAD);
    if (candidate->module == NULL) {
        status = open_module(candidate, &finding);
        if (status < 0) {
            return status;
        }
        if (candidate->module == NULL) {
            ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_LOAD, DS_ACCEL_STATE_REJECTED,
                                     &finding);
            return DS_ACCEL_OK;
        }
    }
    ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_LOAD, "%s",
                             candidate->host.context->on_stage != NULL ? "opened by ds-accel-probe"
                                                                       : "opened in this process");
    enter(candidate, DS_ACCEL__GATE_ENTRY);
    ds_accel__plugin_lock();
    ds_accel__module_entry(candidate->module, &candidate->host.abi, &theirs, &finding);
    if (theirs != NULL) {
        ds_accel__table_import(theirs, candidate->name, &candidate->table, &finding);
        check_features(candidate, &finding);
    }
    ds_accel__plugin_unlock();
    if (finding.reason != DS_ACCEL__REASON_NONE) {
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_ENTRY, DS_ACCEL_STATE_REJECTED,
                                 &finding);
        return DS_ACCEL_OK;
    }
    candidate->has_table = true;
    candidate->optional_features = candidate->table.optional_features;
    ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_ENTRY, "%s, table ABI %u.%u",
                             DS_ACCEL_ENTRY_V1_SYMBOL, candidate->table.abi_major,
                             candidate->table.abi_minor);
    return DS_ACCEL_OK;
}

int32_t ds_accel__probe_here(struct ds_accel__candidate *candidate)
{
    if (!candidate->has_table) {
        int32_t status = ds_accel__load_here(candidate);

        if (status < 0) {
            return status;
        }
    }
    if (candidate->has_table) {
        ask(candidate);
    }
    return DS_ACCEL_OK;
}
