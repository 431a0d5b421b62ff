/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Evaluates candidates. Each candidate must pass the gates on its file and the gates of its turn.
 * If an earlier process stored a verdict, it is then used. The candidates without such a verdict
 * are probed together in helper processes, and the results are stored. Meanwhile the store is
 * locked, so that other processes with the same request wait for these results.
 */
#include "host/evaluate.h"
#include "base/clock.h"
#include "base/trust.h"
#include "host/activate.h"
#include "host/context.h"
#include "host/guard.h"
#include "host/hardware.h"
#include "host/hooks.h"
#include "host/probe.h"
#include "host/registry.h"
#include "host/verdict.h"
#include "machine/presence.h"

#include <assert.h>
#include <stdlib.h>

bool ds_accel__candidate_is_asleep(const struct ds_accel__candidate *candidate)
{
    return candidate->gates[DS_ACCEL__GATE_POWER].result == DS_ACCEL__GATE_FAILED;
}

void ds_accel__candidate_forget(struct ds_accel__candidate *candidate)
{
    assert(candidate->instance == NULL); /* a started plugin is not evaluated again */
    ds_accel__candidate_enter(candidate, DS_ACCEL__PHASE_FOUND);
    candidate->is_ahead = false;
    candidate->has_conduct = false;
    memset(&candidate->start, 0, sizeof(candidate->start));
    candidate->stage = ds_accel__gate_name(DS_ACCEL__GATE_NAME);
    candidate->output = NULL;
    candidate->elapsed_us = 0;
    for (int gate = DS_ACCEL__GATE_TRUST; gate < DS_ACCEL__GATE_COUNT; gate++) {
        bool is_loaded = gate == DS_ACCEL__GATE_LOAD || gate == DS_ACCEL__GATE_ENTRY;

        if (!is_loaded || !candidate->has_table) {
            candidate->gates[gate].result = DS_ACCEL__GATE_SKIPPED;
        }
    }
    ds_accel__candidate_set(candidate, DS_ACCEL_STATE_NOT_PROBED, DS_ACCEL__REASON_NONE, "%s", "");
}

void ds_accel__evaluation_begin(ds_accel_t *context)
{
    assert(!context->watch.is_torn && !context->cache.is_open && context->prober == NULL);
    ds_accel__context_change_begin(context);
    ds_accel__trust_reset(context->trust);
    ds_accel__survey_clear(&context->survey);
    for (size_t i = 0; i < context->registry.count; i++) {
        context->registry.candidates[i]->has_look = false;
    }
    ds_accel__verdicts_begin(context);
}

void ds_accel__evaluation_end(ds_accel_t *context)
{
    /*
     * Open the store even if no candidate needs it: to store the configuration, and to report the
     * store's location.
     */
    ds_accel__verdicts_open(context, ds_accel__probe_is_isolated(context));
    context->wants_helper = false;
    ds_accel__verdicts_end(context);
    ds_accel__probe_finish(context);
    ds_accel__trust_reset(context->trust);
    ds_accel__survey_clear(&context->survey);
    ds_accel__context_change_end(context);
}

/*
 * Use the stored results for the file if it is unchanged. The check of which users could have
 * changed the file is repeated every time. *passed_out is true if no further check of the file is
 * needed.
 */
static int32_t recall_file(struct ds_accel__candidate *candidate, bool *passed_out)
{
    struct ds_accel__finding finding = {0};
    int32_t status = ds_accel__trust_stat(candidate->host.context->trust, candidate->path,
                                          &candidate->file, &finding);

    *passed_out = false;
    if (status < 0) {
        return status;
    }
    if (finding.reason != DS_ACCEL__REASON_NONE) {
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_TRUST, DS_ACCEL_STATE_REJECTED,
                                 &finding);
        return DS_ACCEL_OK;
    }
    status = ds_accel__candidate_look(candidate);
    *passed_out = status >= 0 && ds_accel__verdict_recall_file(candidate);
    return status;
}

static int32_t check_file(struct ds_accel__candidate *candidate, bool *passed_out)
{
    ds_accel_t *context = candidate->host.context;
    int32_t status = DS_ACCEL_OK;

    memset(&candidate->file, 0, sizeof(candidate->file));
    memset(&candidate->key, 0, sizeof(candidate->key));
    if (context->wants_helper) {
        context->wants_helper = false;
        if (context->cache.table.count == 0) {
            ds_accel__probe_begin(context);
        }
    }
    if (context->cache.is_open) {
        status = recall_file(candidate, passed_out);
        if (*passed_out || ds_accel__candidate_has_verdict(candidate)) {
            return status;
        }
    }
    return status < 0 ? status : ds_accel__gates_walk_file(candidate, passed_out);
}

int32_t ds_accel__candidate_check_file(struct ds_accel__candidate *candidate, bool *passed_out)
{
    ds_accel_t *context = candidate->host.context;
    int32_t status = ds_accel__verdicts_open(context, ds_accel__probe_is_isolated(context));

    *passed_out = true;
    if (status < 0) {
        return status;
    }
    if (ds_accel__candidate_has_verdict(candidate)) {
        *passed_out = candidate->gates[DS_ACCEL__GATE_ALLOW].result == DS_ACCEL__GATE_PASSED;
        return DS_ACCEL_OK;
    }
    if (candidate->phase == DS_ACCEL__PHASE_CHECKED) {
        return DS_ACCEL_OK;
    }
    if (candidate->recorded != NULL) {
        status = ds_accel__recorded_source->check_file(candidate, passed_out);
    } else if (!candidate->is_registered) {
        status = check_file(candidate, passed_out);
    }
    if (status >= 0 && *passed_out) {
        status = ds_accel__gates_walk(candidate, DS_ACCEL__WHEN_CHECKED, passed_out);
    }
    if (status >= 0 && *passed_out) {
        assert(candidate->phase == DS_ACCEL__PHASE_FOUND); /* no gate failed */
        ds_accel__candidate_enter(candidate, DS_ACCEL__PHASE_CHECKED);
    }
    return status;
}

/*
 * Use the stored verdict; *found_out is true if there is a valid one. A verdict that the hardware
 * is absent is checked again if the note lists devices that the configuration does not list,
 * because the record's key does not depend on those devices.
 */
static int32_t recall(struct ds_accel__candidate *candidate, bool *found_out)
{
    uint64_t elapsed_us = candidate->elapsed_us;
    bool passed;
    int32_t status;

    assert(candidate->phase == DS_ACCEL__PHASE_CHECKED);
    *found_out = ds_accel__verdict_recall(candidate, candidate->wish >= DS_ACCEL__WISH_NAMED);
    if (!*found_out || candidate->gates[DS_ACCEL__GATE_HARDWARE].result != DS_ACCEL__GATE_FAILED ||
        ds_accel__hardware_is_configured(candidate)) {
        return DS_ACCEL_OK;
    }
    ds_accel__candidate_enter(candidate, DS_ACCEL__PHASE_CHECKED);
    candidate->gates[DS_ACCEL__GATE_HARDWARE].result = DS_ACCEL__GATE_SKIPPED;
    status = ds_accel__gates_walk(candidate, DS_ACCEL__WHEN_UNKNOWN, &passed);
    *found_out = ds_accel__candidate_has_verdict(candidate);
    if (*found_out) {
        /* The hardware is still absent: the stored verdict remains valid. */
        ds_accel__candidate_enter(candidate, DS_ACCEL__PHASE_CHECKED);
        ds_accel__candidate_enter(candidate, DS_ACCEL__PHASE_RECALLED);
    } else {
        candidate->elapsed_us = elapsed_us;
        ds_accel__candidate_set(candidate, DS_ACCEL_STATE_NOT_PROBED, DS_ACCEL__REASON_NONE, "%s",
                                "");
    }
    return status;
}

/*
 * Reject a plugin whose runtime was started before fork(), without probing it: with probe.mode
 * in-process, the probe would use that runtime in this child.
 */
static bool reject_inherited(struct ds_accel__candidate *candidate)
{
    struct ds_accel__finding finding = {0};
    pid_t starter = ds_accel__candidate_inherited_from(candidate);

    if (starter == 0) {
        return false;
    }
    ds_accel__finding_set(&finding, DS_ACCEL__REASON_FORKED, DS_ACCEL__FORKED_TEXT, (long)starter);
    ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_LOAD, DS_ACCEL_STATE_UNAVAILABLE, &finding);
    return true;
}

/*
 * Check the gates before the gate hardware, then look up a stored verdict. *is_open_out is true if
 * the candidate passed and none is stored, so that it still needs the gate hardware and a probe.
 */
static int32_t pass_gates(struct ds_accel__candidate *candidate, bool *is_open_out)
{
    uint64_t start_ns = ds_accel__now_ns();
    bool passed = false;
    int32_t status;

    *is_open_out = false;
    if (ds_accel__candidate_has_verdict(candidate)) {
        return DS_ACCEL_OK;
    }
    candidate->elapsed_us = 0;
    status = ds_accel__candidate_check_file(candidate, &passed);
    passed = passed && !(candidate->is_ahead && candidate->is_demand_only);
    passed = passed && !(status >= 0 && reject_inherited(candidate));
    if (status >= 0 && passed) {
        status = ds_accel__gates_walk(candidate, DS_ACCEL__WHEN_TURN, &passed);
    }
    candidate->elapsed_us = candidate->recorded != NULL
                                ? ds_accel__recorded_source->elapsed_us(candidate)
                                : candidate->elapsed_us + (ds_accel__now_ns() - start_ns) / 1000;
    if (status >= 0 && passed) {
        bool is_known;

        status = recall(candidate, &is_known);
        *is_open_out = status >= 0 && !is_known;
    }
    return status;
}

/*
 * Probe cpu in this process if no helper could be started for it. cpu is always available and is
 * the last candidate, so it would be loaded in this process next anyway.
 */
static int32_t probe_cpu_here(struct ds_accel__candidate *candidate)
{
    struct ds_accel__guard guard;
    int32_t status;

    if (strcmp(candidate->name, "cpu") != 0 || !ds_accel__candidate_has_verdict(candidate) ||
        !ds_accel__reason_is_of_helper(candidate->reason)) {
        return DS_ACCEL_OK;
    }
    ds_accel__log(&candidate->host.context->log, "probe", DS_ACCEL_LOG_WARN,
                  "cpu is probed in this process: %s: %s", ds_accel__reason_code(candidate->reason),
                  ds_accel__candidate_detail(candidate));
    /* Frees descriptors, in case too few are left. */
    ds_accel__probe_finish(candidate->host.context);
    ds_accel__candidate_unask(candidate);
    ds_accel__guard_take(&guard);
    status = ds_accel__probe_here(candidate);
    ds_accel__guard_restore(&guard, NULL, NULL);
    if (ds_accel__candidate_has_verdict(candidate)) { /* do not store: not the usual probe */
        ds_accel__candidate_enter(candidate, DS_ACCEL__PHASE_TENTATIVE);
    }
    return status;
}

/*
 * True if a candidate other than cpu needs a verdict, which another process that is probing plugins
 * may store. No wait is needed for cpu, whose probe takes almost no time, or for a plugin without
 * hardware, which already has a verdict.
 */
static bool is_worth_waiting(struct ds_accel__candidate **open, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!ds_accel__candidate_has_verdict(open[i]) && strcmp(open[i]->name, "cpu") != 0) {
            return true;
        }
    }
    return false;
}

/*
 * Check the gate hardware of the candidates, probe those that still have no verdict, and store the
 * verdicts. Before the probe, lock the store, and wait for another process that is probing plugins
 * if it may store a verdict that this process needs.
 */
static int32_t probe_open(ds_accel_t *context, struct ds_accel__candidate **open, size_t count)
{
    int32_t status = DS_ACCEL_OK;
    size_t left = 0;

    assert(count > 0);
    if (context->recording != NULL) {
        for (size_t i = 0; i < count; i++) {
            ds_accel__recorded_source->ask(open[i]);
        }
        return DS_ACCEL_OK;
    }
    for (size_t i = 0; i < count && status >= 0; i++) {
        bool passed;

        status = ds_accel__gates_walk(open[i], DS_ACCEL__WHEN_UNKNOWN, &passed);
    }
    if (status >= 0) {
        status = is_worth_waiting(open, count) ? ds_accel__verdicts_lock(context)
                                               : ds_accel__verdicts_try_lock(context);
    }
    for (size_t i = 0; i < count && status >= 0; i++) {
        bool is_known = false;

        if (ds_accel__candidate_has_verdict(open[i])) {
            status = ds_accel__verdict_keep(open[i]);
            continue;
        }
        status = recall(open[i], &is_known);
        if (status >= 0 && !is_known) {
            assert(left <= i);
            open[left++] = open[i];
        }
    }
    if (status >= 0 && left > 0) {
        status = ds_accel__probe_all(context, open, left);
    }
    for (size_t i = 0; i < left && status >= 0; i++) {
        status = probe_cpu_here(open[i]);
    }
    for (size_t i = 0; i < left && status >= 0; i++) {
        status = ds_accel__candidate_has_verdict(open[i]) ? ds_accel__verdict_keep(open[i])
                                                          : DS_ACCEL_OK;
    }
    return status;
}

int32_t ds_accel__candidates_evaluate(ds_accel_t *context, struct ds_accel__candidate **candidates,
                                      size_t count)
{
    struct ds_accel__candidate **open;
    size_t open_count = 0;
    int32_t status = DS_ACCEL_OK;

    open = calloc(count + 1, sizeof(struct ds_accel__candidate *));
    if (open == NULL) {
        return ds_accel__no_memory();
    }
    for (size_t i = 0; i < count && status >= 0; i++) {
        bool is_open;

        assert(candidates[i]->host.context == context);
        status = pass_gates(candidates[i], &is_open);
        if (is_open) {
            assert(status >= 0 && candidates[i]->phase == DS_ACCEL__PHASE_CHECKED);
            open[open_count++] = candidates[i];
        }
    }
    if (status >= 0 && open_count > 0) {
        status = probe_open(context, open, open_count);
    }
    free(open);
    return status;
}

int32_t ds_accel__candidate_evaluate(struct ds_accel__candidate *candidate)
{
    return ds_accel__candidates_evaluate(candidate->host.context, &candidate, 1);
}

int32_t ds_accel__candidate_evaluate_named(struct ds_accel__candidate *candidate)
{
    if (candidate->wish < DS_ACCEL__WISH_NAMED) {
        candidate->wish = DS_ACCEL__WISH_NAMED;
    }
    /* "asleep" was the verdict of an earlier request, which was not allowed to wake the devices. */
    if (ds_accel__candidate_is_asleep(candidate)) {
        ds_accel__candidate_enter(candidate, DS_ACCEL__PHASE_CHECKED);
    }
    return ds_accel__candidate_evaluate(candidate);
}
