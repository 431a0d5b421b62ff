/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A candidate: a plugin that was found, the results of its checks (gates), and its phase. */
#include "host/candidate.h"
#include "base/fork.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/config.h"
#include "host/context.h"
#include "host/hooks.h"
#include "host/layers.h"
#include "host/loader.h"
#include "host/probe.h"
#include "machine/presence.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *ds_accel__state_name(uint32_t state)
{
    static const char *const names[] = {
        "not_probed", "selected",  "available", "unavailable", "error",       "rejected",
        "crashed",    "timed_out", "disabled",  "shadowed",    "quarantined",
    };

    return state < ARRAY_SIZE(names) ? names[state] : "error";
}

const char *ds_accel__gate_name(enum ds_accel__gate gate)
{
    static const char *const names[DS_ACCEL__GATE_COUNT] = {
#define GATE(id, name, check, when) name,
#include "host/gates.def"
#undef GATE
    };

    assert((size_t)gate < ARRAY_SIZE(names) && names[gate] != NULL);
    return names[gate];
}

struct ds_accel__candidate *ds_accel__candidate_create(ds_accel_t *context, const char *name,
                                                       const char *path)
{
    struct ds_accel__candidate *candidate = calloc(1, sizeof(*candidate));

    if (candidate == NULL) {
        return NULL;
    }
    candidate->path = strdup(path);
    if (candidate->path == NULL) {
        free(candidate);
        return NULL;
    }
    ds_accel__copy(candidate->name, sizeof(candidate->name), name);
    candidate->name_hash = ds_accel__hash_text(candidate->name, 0);
    candidate->reason = DS_ACCEL__REASON_NONE;
    candidate->stage = "";
    ds_accel__host_fill(&candidate->host, context, candidate);
    return candidate;
}

void ds_accel__candidate_watch(struct ds_accel__candidate *candidate)
{
    assert(candidate->has_table);
    candidate->watch.table = &candidate->table;
    ds_accel__fork_watch(&candidate->watch);
}

void ds_accel__candidate_stop(struct ds_accel__candidate *candidate,
                              ds_accel_plugin_instance_t *instance)
{
    assert(instance == NULL || candidate->has_table);
    if (instance != NULL && !candidate->watch.is_forked) {
        ds_accel__plugin_lock();
        candidate->table.shutdown(instance);
        ds_accel__plugin_unlock();
    }
    ds_accel__fork_unwatch(&candidate->watch);
    ds_accel__layers_remove(candidate);
}

void ds_accel__candidate_destroy(struct ds_accel__candidate *candidate)
{
    if (candidate == NULL) {
        return;
    }
    if (candidate->instance != NULL) {
        ds_accel__candidate_stop(candidate, candidate->instance);
    }
    if (candidate->watch.is_forked) {
        /*
         * Devices, streams and other handles of the parent cannot be destroyed in this child. They
         * still refer to the candidate and its table, so the plugin stays loaded.
         */
        ds_accel__module_abandon(candidate->module);
        return;
    }
    ds_accel__module_close(candidate->module);
    while (candidate->details != NULL) {
        struct ds_accel__detail *next = candidate->details->next;

        free(candidate->details);
        candidate->details = next;
    }
    free(candidate->power);
    free(candidate->path);
    free(candidate);
}

int32_t ds_accel__candidate_look(struct ds_accel__candidate *candidate)
{
    ds_accel_t *context = candidate->host.context;
    json_t *facts = ds_accel__config_facts(&context->config, candidate->name);
    struct ds_accel__presence presence;
    int32_t status;

    if (candidate->has_look) {
        return DS_ACCEL_OK;
    }
    candidate->hardware = 0;
    candidate->hardware_count = 0;
    candidate->has_hardware = false;
    if (json_array_size(json_object_get(facts, "pci")) == 0 &&
        json_array_size(json_object_get(facts, "device_nodes")) == 0 &&
        json_array_size(json_object_get(facts, "other_device_nodes")) == 0) {
        candidate->has_look = true;
        return DS_ACCEL_OK;
    }
    status = ds_accel__presence_read(&context->survey, facts, &presence);
    if (status < 0) {
        return status;
    }
    candidate->hardware = ds_accel__presence_fingerprint(&presence);
    candidate->hardware_count = presence.device_count;
    candidate->has_hardware = presence.device_count > 0 || presence.node_count > 0;
    if (presence.device_count > 0 && candidate->power == NULL) {
        candidate->power = malloc(sizeof(*candidate->power));
        status = candidate->power == NULL ? ds_accel__no_memory() : DS_ACCEL_OK;
    }
    if (status >= 0 && presence.device_count > 0) {
        ds_accel__presence_check_power(&presence, candidate->power);
    }
    ds_accel__presence_clear(&presence);
    candidate->has_look = status >= 0;
    return status;
}

/*
 * Copy the text into storage that is freed with the candidate: callers borrow details, including
 * those of an earlier verdict. NULL if memory is exhausted.
 */
const char *ds_accel__candidate_keep(struct ds_accel__candidate *candidate, const char *text)
{
    struct ds_accel__detail *detail;
    size_t size = strlen(text) + 1;

    for (detail = candidate->details; detail != NULL; detail = detail->next) {
        if (detail->text[0] == text[0] && strcmp(detail->text, text) == 0) {
            return detail->text;
        }
    }
    detail = malloc(sizeof(*detail) + size);
    if (detail == NULL) {
        return NULL;
    }
    memcpy(detail->text, text, size);
    detail->next = candidate->details;
    candidate->details = detail;
    return detail->text;
}

void ds_accel__candidate_keep_output(struct ds_accel__candidate *candidate, const char *text)
{
    candidate->output = ds_accel__candidate_keep(candidate, text);
}

/*
 * Set state, reason and detail. The detail only explains: it is omitted (NULL) if memory is
 * exhausted, and the verdict is still valid.
 */
void ds_accel__candidate_set(struct ds_accel__candidate *candidate, uint32_t state,
                             enum ds_accel__reason_id reason, const char *format, ...)
{
    char buffer[1024];
    char *line;
    va_list arguments;

    assert(state <= DS_ACCEL_STATE_QUARANTINED);
    candidate->state = state;
    candidate->reason = reason;
    va_start(arguments, format);
    line = ds_accel__format_line(buffer, sizeof(buffer), format, arguments);
    va_end(arguments);
    candidate->detail = ds_accel__candidate_keep(candidate, line);
    if (line != buffer) {
        free(line);
    }
}

#define FROM(phase) (1u << DS_ACCEL__PHASE_##phase)
/*
 * Phases with a verdict of this process. A later result of a helper replaces the verdict, so each
 * of these phases may follow any of them.
 */
#define RESULTS (FROM(JUDGED) | FROM(TENTATIVE))
#define FROM_ANY ((1u << DS_ACCEL__PHASE_COUNT) - 1)

/* For each phase, the phases from which it can be entered, and its properties. */
static const struct {
    unsigned from;
    bool has_verdict;
    bool is_lasting;
} phases[DS_ACCEL__PHASE_COUNT] = {
    [DS_ACCEL__PHASE_FOUND] = {FROM_ANY, false, false},
    [DS_ACCEL__PHASE_CHECKED] = {FROM_ANY, false, false},
    [DS_ACCEL__PHASE_RECALLED] = {FROM(CHECKED), true, true},
    [DS_ACCEL__PHASE_JUDGED] = {FROM(FOUND) | FROM(CHECKED) | RESULTS, true, true},
    [DS_ACCEL__PHASE_TENTATIVE] = {FROM(CHECKED) | RESULTS, true, false},
};

void ds_accel__candidate_enter(struct ds_accel__candidate *candidate, enum ds_accel__phase phase)
{
    assert((size_t)phase < DS_ACCEL__PHASE_COUNT);
    assert((phases[phase].from & 1u << candidate->phase) != 0);
    candidate->phase = phase;
}

bool ds_accel__candidate_has_verdict(const struct ds_accel__candidate *candidate)
{
    return phases[candidate->phase].has_verdict;
}

bool ds_accel__candidate_is_lasting(const struct ds_accel__candidate *candidate)
{
    return phases[candidate->phase].is_lasting;
}

void ds_accel__candidate_fail(struct ds_accel__candidate *candidate, enum ds_accel__gate gate,
                              uint32_t state, const struct ds_accel__finding *finding)
{
    assert(finding->reason != DS_ACCEL__REASON_NONE);
    candidate->stage = ds_accel__gate_name(gate);
    candidate->gates[gate].result = DS_ACCEL__GATE_FAILED;
    ds_accel__candidate_set(candidate, state, finding->reason, "%s", finding->detail);
    candidate->gates[gate].evidence = candidate->detail;
    if (!ds_accel__candidate_has_verdict(candidate)) {
        ds_accel__candidate_enter(candidate, DS_ACCEL__PHASE_JUDGED);
    }
    assert(ds_accel__candidate_has_verdict(candidate));
}

void ds_accel__candidate_pass(struct ds_accel__candidate *candidate, enum ds_accel__gate gate,
                              const char *format, ...)
{
    char buffer[1024];
    char *line;
    va_list arguments;

    candidate->stage = ds_accel__gate_name(gate);
    candidate->gates[gate].result = DS_ACCEL__GATE_PASSED;
    va_start(arguments, format);
    line = ds_accel__format_line(buffer, sizeof(buffer), format, arguments);
    va_end(arguments);
    candidate->gates[gate].evidence = ds_accel__candidate_keep(candidate, line);
    if (line != buffer) {
        free(line);
    }
}

void ds_accel__candidate_pass_plain(struct ds_accel__candidate *candidate, enum ds_accel__gate gate,
                                    const char *evidence)
{
    candidate->stage = ds_accel__gate_name(gate);
    candidate->gates[gate].result = DS_ACCEL__GATE_PASSED;
    candidate->gates[gate].evidence = evidence;
}

void ds_accel__candidate_unask(struct ds_accel__candidate *candidate)
{
    ds_accel__candidate_enter(candidate, DS_ACCEL__PHASE_CHECKED);
    candidate->has_conduct = false;
    memset(&candidate->start, 0, sizeof(candidate->start));
    for (int gate = DS_ACCEL__GATE_LOAD; gate < DS_ACCEL__GATE_COUNT; gate++) {
        candidate->gates[gate].result = DS_ACCEL__GATE_SKIPPED;
    }
    ds_accel__candidate_set(candidate, DS_ACCEL_STATE_NOT_PROBED, DS_ACCEL__REASON_NONE, "%s", "");
}

void ds_accel__candidate_set_demand(struct ds_accel__candidate *candidate,
                                    uint64_t optional_features)
{
    json_t *configured =
        ds_accel__config_backend(&candidate->host.context->config, candidate->name, "demand_only");

    candidate->is_demand_only = configured != NULL
                                    ? json_is_true(configured)
                                    : (optional_features & DS_ACCEL_FEATURE_DEMAND_ONLY) != 0;
}
