/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The choice: override, configuration, then detection order. A forced accelerator is used or the
 * call fails; detection takes the first one available, goes on when it fails to start, and says so.
 */
#include "host/detect.h"
#include "base/clock.h"
#include "base/fork.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/config.h"
#include "config/env.h"
#include "host/context.h"
#include "host/crumb.h"
#include "host/guard.h"
#include "host/hardware.h"
#include "host/hooks.h"
#include "host/layers.h"
#include "host/loader.h"
#include "host/probe.h"
#include "host/registry.h"
#include "host/verdict.h"
#include "machine/presence.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_asleep(const struct ds_accel__candidate *candidate)
{
    return candidate->gates[DS_ACCEL__GATE_POWER].result == DS_ACCEL__GATE_FAILED;
}

int32_t ds_accel__asking_begin(ds_accel_t *context)
{
    ds_accel__context_change_begin(context);
    ds_accel__trust_reset(context->trust);
    ds_accel__survey_clear(&context->survey);
    for (size_t i = 0; i < context->registry.count; i++) {
        context->registry.candidates[i]->has_look = false;
    }
    context->probe_width = ds_accel__probe_width(context);
    return ds_accel__verdicts_begin(context, ds_accel__probe_is_isolated(context));
}

void ds_accel__asking_end(ds_accel_t *context)
{
    ds_accel__verdicts_end(context);
    ds_accel__probe_finish(context);
    ds_accel__trust_reset(context->trust);
    ds_accel__survey_clear(&context->survey);
    ds_accel__context_change_end(context);
}

/*
 * What is remembered of it. That it has no hardware here is looked at again if its note names
 * devices that the configuration does not: of those the memory's keys know nothing.
 */
static int32_t recall(struct ds_accel__candidate *candidate, bool *found_out)
{
    uint64_t elapsed_us = candidate->elapsed_us;
    bool passed;
    int32_t status;

    *found_out = ds_accel__verdict_recall(candidate, candidate->is_named);
    if (!*found_out || candidate->gates[DS_ACCEL__GATE_HARDWARE].result != DS_ACCEL__GATE_FAILED ||
        ds_accel__hardware_is_configured(candidate)) {
        return DS_ACCEL_OK;
    }
    candidate->has_verdict = false;
    candidate->gates[DS_ACCEL__GATE_HARDWARE].result = DS_ACCEL__GATE_SKIPPED;
    status = ds_accel__gates_walk(candidate, DS_ACCEL__WHEN_UNKNOWN, &passed);
    *found_out = candidate->has_verdict;
    if (!*found_out) {
        candidate->is_cached = false;
        candidate->elapsed_us = elapsed_us;
        ds_accel__candidate_set(candidate, DS_ACCEL_STATE_NOT_PROBED, DS_ACCEL__REASON_NONE, "%s",
                                "");
    }
    return status;
}

/* A process that this one is a forked child of has started its runtime; 0: none. */
static pid_t inherited_from(const struct ds_accel__candidate *candidate)
{
    return candidate->recorded == NULL ? ds_accel__fork_starter(candidate->name) : 0;
}

#define FORKED_TEXT \
    "its runtime was started by process %ld before fork(), and does not survive that: start the " \
    "child by posix_spawn() or exec(), or fork before the accelerator is started"

static int32_t fail_inherited(const struct ds_accel__candidate *candidate)
{
    return ds_accel__error(DS_ACCEL_ERR_STATE, "%s cannot be used in this process: " FORKED_TEXT,
                           candidate->name, (long)inherited_from(candidate));
}

/* Not even asked: with probe.mode in-process that would run its runtime here. */
static bool reject_inherited(struct ds_accel__candidate *candidate)
{
    struct ds_accel__finding finding = {0};
    pid_t starter = inherited_from(candidate);

    if (starter == 0) {
        return false;
    }
    ds_accel__find(&finding, DS_ACCEL__REASON_FORKED, FORKED_TEXT, (long)starter);
    ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_LOAD, DS_ACCEL_STATE_UNAVAILABLE, &finding);
    return true;
}

/* The gates before load; *is_open_out: it is still to be asked. */
static int32_t pass_gates(struct ds_accel__candidate *candidate, bool *is_open_out)
{
    uint64_t start_ns = ds_accel__now_ns();
    bool passed = false;
    int32_t status;

    *is_open_out = false;
    if (candidate->has_verdict) {
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

static const char *detail_of(const struct ds_accel__candidate *candidate)
{
    return candidate->detail != NULL ? candidate->detail : "";
}

/*
 * There always is cpu. Where no helper can be had for it, it is asked here, where it would be
 * loaded next: nothing comes after it.
 */
static int32_t ask_cpu_here(struct ds_accel__candidate *candidate)
{
    struct ds_accel__guard guard;
    int32_t status;

    if (strcmp(candidate->name, "cpu") != 0 || !candidate->has_verdict ||
        !ds_accel__reason_is_of_helper(candidate->reason)) {
        return DS_ACCEL_OK;
    }
    ds_accel__log(&candidate->host.context->log, "probe", DS_ACCEL_LOG_WARN,
                  "cpu is asked in this process: %s: %s", ds_accel__reason_code(candidate->reason),
                  detail_of(candidate));
    ds_accel__probe_finish(candidate->host.context); /* descriptors may be what is short */
    ds_accel__candidate_unask(candidate);
    ds_accel__guard_take(&guard);
    status = ds_accel__probe_here(candidate);
    ds_accel__guard_restore(&guard, NULL, NULL);
    candidate->is_inconclusive = true; /* it was not asked as the others are */
    return status;
}

/*
 * Whether another process that asks plugins may find out what this one wants to know. Who has no
 * hardware here is not asked, and cpu answers at once whoever asks it.
 */
static bool is_worth_waiting(struct ds_accel__candidate **open, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!open[i]->has_verdict && strcmp(open[i]->name, "cpu") != 0) {
            return true;
        }
    }
    return false;
}

/*
 * Ask those that nobody has asked of late. Whoever else asks plugins just now is waited for, and
 * may have found out what this one wants to know.
 */
static int32_t ask_open(ds_accel_t *context, struct ds_accel__candidate **open, size_t count)
{
    int32_t status = DS_ACCEL_OK;
    size_t left = 0;

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

        if (open[i]->has_verdict) {
            status = ds_accel__verdict_keep(open[i]);
            continue;
        }
        status = recall(open[i], &is_known);
        if (status >= 0 && !is_known) {
            open[left++] = open[i];
        }
    }
    if (status >= 0 && left > 0) {
        status = ds_accel__probe_all(context, open, left);
    }
    for (size_t i = 0; i < left && status >= 0; i++) {
        status = ask_cpu_here(open[i]);
    }
    for (size_t i = 0; i < left && status >= 0; i++) {
        status = open[i]->has_verdict ? ds_accel__verdict_keep(open[i]) : DS_ACCEL_OK;
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

        status = pass_gates(candidates[i], &is_open);
        if (is_open) {
            open[open_count++] = candidates[i];
        }
    }
    if (status >= 0 && open_count > 0) {
        status = ask_open(context, open, open_count);
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
    candidate->is_named = true;
    if (is_asleep(candidate)) {
        candidate->has_verdict = false; /* that it sleeps was a verdict for others */
    }
    return ds_accel__candidate_evaluate(candidate);
}

static bool is_available(const struct ds_accel__candidate *candidate)
{
    return candidate->state == DS_ACCEL_STATE_AVAILABLE ||
           candidate->state == DS_ACCEL_STATE_SELECTED;
}

int32_t ds_accel__deferred_to(ds_accel_t *context, struct ds_accel__candidate *candidate,
                              struct ds_accel__candidate **to_out)
{
    json_t *names = ds_accel__config_get(&context->config, "backends", candidate->name, "defers_to",
                                         candidate->verdict.variant, NULL);

    *to_out = NULL;
    for (size_t i = 0; i < json_array_size(names); i++) {
        struct ds_accel__candidate *other = ds_accel__registry_find(
            &context->registry, json_string_value(json_array_get(names, i)));
        int32_t status;
        bool passed;

        if (other == NULL || other == candidate) {
            continue;
        }
        other->is_ahead = false; /* its turn came, if only to be asked */
        status = ds_accel__candidate_check_file(other, &passed);
        /* One that detection never chooses by itself is no reason to step back. */
        if (status >= 0 && passed && !other->is_demand_only) {
            status = ds_accel__candidate_evaluate(other);
        }
        if (status < 0) {
            return status;
        }
        if (is_available(other) && !other->is_demand_only) {
            *to_out = other;
            return DS_ACCEL_OK;
        }
    }
    return DS_ACCEL_OK;
}

/*
 * The one time that a plugin's code gets into the caller's process: it was chosen, or asked for by
 * name. Its state stays, unless it fails here.
 */
static int32_t load_to_start(struct ds_accel__candidate *candidate)
{
    uint32_t state = candidate->state;
    const char *stage = candidate->stage;
    int32_t status;

    if (candidate->has_table) {
        return DS_ACCEL_OK;
    }
    status = ds_accel__load_here(candidate);
    if (status >= 0 && !candidate->has_table) {
        return ds_accel__error(DS_ACCEL_ERR_ABI, "%s: %s", ds_accel__reason_code(candidate->reason),
                               candidate->detail != NULL ? candidate->detail : "");
    }
    candidate->state = state;
    candidate->stage = stage;
    return status;
}

/* Its rehearsal did not show it, and it cannot be undone. */
static void warn_changed(void *user_data, enum ds_accel__reason_id reason, const char *detail)
{
    const struct ds_accel__candidate *candidate = user_data;

    ds_accel__log(&candidate->host.context->log, "detect", DS_ACCEL_LOG_WARN,
                  "%s: %s when it was started, which could not be put back: %s", candidate->name,
                  ds_accel__reason_code(reason), detail);
}

int32_t ds_accel__candidate_start(struct ds_accel__candidate *candidate,
                                  ds_accel_plugin_instance_t **instance_out, uint32_t *count_out)
{
    ds_accel_plugin_instance_t *instance = NULL;
    struct ds_accel__guard guard;
    struct ds_accel__crumb crumb;
    char text[512] = "";
    int32_t status;

    if (candidate->recorded != NULL) {
        return ds_accel__recorded_source->start(candidate, instance_out, count_out);
    }
    if (inherited_from(candidate) != 0) {
        return fail_inherited(candidate);
    }
    status = ds_accel__verdicts_store(candidate->host.context);
    if (status < 0) {
        return status;
    }
    ds_accel__crumb_drop(candidate, &crumb); /* the lock is free: nobody waits for what follows */
    ds_accel__guard_take(&guard);
    status = load_to_start(candidate);
    if (status >= 0 && (candidate->table.optional_features & DS_ACCEL_FEATURE_SURVIVES_FORK) == 0) {
        status = ds_accel__fork_started(candidate->name);
    }
    status = status < 0 ? status : ds_accel__layers_install(candidate);
    if (status >= 0) {
        ds_accel__candidate_watch(candidate);
        ds_accel__plugin_lock();
        ds_accel__start_instance(candidate, &instance, text, sizeof(text));
        ds_accel__plugin_unlock();
        status = candidate->start.status;
        if (status < 0) {
            ds_accel__candidate_stop(candidate, instance);
            ds_accel__start_fail(candidate, text);
        }
    }
    ds_accel__guard_restore(&guard, warn_changed, candidate);
    ds_accel__crumb_pick(candidate, &crumb);
    if (status < 0) {
        return status;
    }
    *instance_out = instance;
    *count_out = candidate->start.device_count;
    ds_accel__verdict_loaded(candidate);
    return DS_ACCEL_OK;
}

/* Back to "nobody has asked"; what is loaded here already stays so. */
static void forget(struct ds_accel__candidate *candidate)
{
    candidate->has_verdict = false;
    candidate->is_ahead = false;
    candidate->is_cached = false;
    candidate->has_conduct = false;
    candidate->is_inconclusive = false;
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

static int32_t start_once(ds_accel_t *context, struct ds_accel__candidate *candidate)
{
    ds_accel__probe_release(context); /* its end takes time that this one needs for starting */
    if (context->only_chooses && candidate->start.is_done != 0) {
        context->device_count = candidate->start.status == DS_ACCEL_OK
                                    ? candidate->start.device_count
                                    : candidate->verdict.device_count;
        return DS_ACCEL_OK;
    }
    return ds_accel__candidate_start(candidate, &candidate->instance, &context->device_count);
}

/* What was true in an earlier process need not be now: then it is asked again before it is judged.
 */
static int32_t start(ds_accel_t *context, struct ds_accel__candidate *candidate)
{
    int32_t status = start_once(context, candidate);

    if (status >= 0 || status == DS_ACCEL_ERR_NO_MEMORY || !candidate->is_cached ||
        inherited_from(candidate) != 0) {
        return status;
    }
    status = ds_accel__verdict_forget(candidate);
    if (status >= 0) {
        forget(candidate);
        status = ds_accel__candidate_evaluate(candidate);
    }
    if (status < 0) {
        return status;
    }
    return candidate->state == DS_ACCEL_STATE_AVAILABLE ? start_once(context, candidate)
                                                        : DS_ACCEL_ERR_NOT_USABLE;
}

static void select_candidate(ds_accel_t *context, struct ds_accel__candidate *candidate,
                             const char *set_method)
{
    ds_accel__candidate_set(candidate, DS_ACCEL_STATE_SELECTED, DS_ACCEL__REASON_NONE, "%s",
                            candidate->verdict.detail);
    context->set_method = set_method;
    for (size_t i = 0; i < context->registry.count; i++) {
        if (context->registry.candidates[i]->is_ahead) {
            forget(context->registry.candidates[i]);
            /* As it was: nobody is asked ahead of whom that is known. */
            context->registry.candidates[i]->is_demand_only = false;
        }
    }
    context->chosen = candidate;
    if (candidate->instance != NULL) {
        __atomic_store_n(&context->selected, candidate, __ATOMIC_RELEASE);
    }
    ds_accel__log(&context->log, "detect", DS_ACCEL_LOG_INFO, "%s chosen (%s), %u device%s",
                  candidate->name, set_method, context->device_count,
                  context->device_count == 1 ? "" : "s");
}

/* ---- forced --------------------------------------------------------------------------------- */

/* Names that could have been meant: of plugins found, then of backends configured. */
static size_t collect_names(const ds_accel_t *context, const char **names, size_t limit,
                            struct ds_accel__text *plugins)
{
    json_t *backends = ds_accel__config_get(&context->config, "backends", NULL);
    size_t count = 0;
    const char *backend;
    json_t *ignored;

    for (size_t i = 0; i < context->registry.count && count < limit; i++) {
        const struct ds_accel__candidate *candidate = context->registry.candidates[i];

        if (candidate->state != DS_ACCEL_STATE_SHADOWED &&
            ds_accel__is_backend_name(candidate->name)) {
            ds_accel__text_add(plugins, "%s%s", count > 0 ? ", " : "", candidate->name);
            names[count++] = candidate->name;
        }
    }
    if (count == 0) {
        ds_accel__text_add(plugins, "none");
    }
    json_object_foreach(backends, backend, ignored)
    {
        if (count < limit) {
            names[count++] = backend;
        }
    }
    return count;
}

static int32_t fail_unknown(ds_accel_t *context, const char *name, const char *source)
{
    const char *names[128];
    struct ds_accel__text plugins = {0};
    size_t count = collect_names(context, names, DS_ACCEL__ARRAY_SIZE(names), &plugins);
    const char *nearest = ds_accel__nearest(name, names, count);
    const char *found = plugins.failed ? "" : plugins.data;

    if (ds_accel__config_get(&context->config, "backends", name, NULL) != NULL) {
        ds_accel__error(
            DS_ACCEL_ERR_NOT_USABLE,
            "%s is \"%s\", which has no plugin here: no_plugin: ds_accel_%s.so is in "
            "none of the folders searched; plugins found: %s. Remedy: %s",
            source, name, name, found,
            ds_accel__config_remedy(&context->config, name, DS_ACCEL__REASON_NO_PLUGIN));
    } else {
        ds_accel__error(DS_ACCEL_ERR_NOT_USABLE,
                        "%s is \"%s\", which is not the name of an accelerator here%s%s%s; plugins "
                        "found: %s",
                        source, name, nearest != NULL ? "; did you mean \"" : "",
                        nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "", found);
    }
    ds_accel__text_clear(&plugins);
    return DS_ACCEL_ERR_NOT_USABLE;
}

static int32_t fail_forced(const struct ds_accel__candidate *candidate, const char *source)
{
    const struct ds_accel__reason *reason = ds_accel__reason(candidate->reason);

    return ds_accel__error(
        DS_ACCEL_ERR_NOT_USABLE, "%s is \"%s\", which cannot be used: %s: %s. Remedy: %s", source,
        candidate->name, reason->code,
        candidate->detail != NULL && candidate->detail[0] != '\0' ? candidate->detail
                                                                  : reason->meaning,
        ds_accel__config_remedy(&candidate->host.context->config, candidate->name,
                                candidate->reason));
}

static void mark_others(ds_accel_t *context, enum ds_accel__reason_id reason)
{
    for (size_t i = 0; i < context->registry.count; i++) {
        struct ds_accel__candidate *candidate = context->registry.candidates[i];

        if (candidate->state == DS_ACCEL_STATE_NOT_PROBED) {
            ds_accel__candidate_set(
                candidate, DS_ACCEL_STATE_NOT_PROBED,
                candidate->is_demand_only ? DS_ACCEL__REASON_DEMAND_ONLY : reason, "%s", "");
        }
    }
}

static int32_t detect_forced(ds_accel_t *context, const char *name, const char *source,
                             const char *set_method)
{
    struct ds_accel__candidate *candidate = ds_accel__registry_find(&context->registry, name);
    int32_t status;

    if (name[0] == '\0') {
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE,
                               "%s is set but empty: name an accelerator, or unset it", source);
    }
    if (candidate == NULL) {
        return fail_unknown(context, name, source);
    }
    if (inherited_from(candidate) != 0) {
        return fail_inherited(candidate);
    }
    candidate->is_forced = true;
    status = ds_accel__candidate_evaluate_named(candidate);
    if (status < 0) {
        return status;
    }
    if (candidate->state == DS_ACCEL_STATE_AVAILABLE && start(context, candidate) >= 0) {
        select_candidate(context, candidate, set_method);
    }
    mark_others(context, DS_ACCEL__REASON_NOT_CHOSEN);
    return context->chosen != NULL ? DS_ACCEL_OK : fail_forced(candidate, source);
}

/* ---- automatic ------------------------------------------------------------------------------ */

/* In its rehearsal, or here. */
static void warn_start_failed(const struct ds_accel__candidate *candidate)
{
    ds_accel__log(&candidate->host.context->log, "detect", DS_ACCEL_LOG_WARN,
                  "%s passed its probe but failed to start (%s: %s); going on to the next",
                  candidate->name, ds_accel__reason_code(candidate->reason), detail_of(candidate));
}

/* Start an available candidate. *done_out: it was chosen. */
static int32_t try_start(ds_accel_t *context, struct ds_accel__candidate *candidate, bool *done_out)
{
    int32_t status = start(context, candidate);

    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        return ds_accel__no_memory();
    }
    if (status < 0 && inherited_from(candidate) != 0) {
        return status; /* not another one in silence: the parent has chosen this */
    }
    if (status < 0) {
        warn_start_failed(candidate);
        return DS_ACCEL_OK;
    }
    select_candidate(context, candidate, "auto detect");
    *done_out = true;
    return DS_ACCEL_OK;
}

/*
 * While a helper works there is time to look at the next candidate's file. What comes of it is
 * forgotten like anything else that was done ahead of a turn that never comes.
 */
static void look_ahead(ds_accel_t *context)
{
    for (size_t i = context->turn + 1; i < context->registry.count; i++) {
        struct ds_accel__candidate *candidate = context->registry.candidates[i];
        bool passed;

        if (candidate->has_verdict || candidate->is_demand_only || candidate->is_registered ||
            candidate->gates[DS_ACCEL__GATE_ALLOW].result != DS_ACCEL__GATE_SKIPPED) {
            continue;
        }
        candidate->is_ahead = true;
        if (ds_accel__candidate_check_file(candidate, &passed) < 0) {
            forget(candidate); /* its turn will show what is wrong */
        }
        return;
    }
}

/*
 * The verdict of the candidate at a position, and with probe.parallel those of the next ones, in
 * case their turn comes. The choice does not depend on it: it follows the order.
 */
static int32_t evaluate_ahead(ds_accel_t *context, size_t position)
{
    struct ds_accel__candidate *batch[64];
    size_t width = context->probe_width;
    size_t count = 0;
    int32_t status;

    for (size_t i = position; i < context->registry.count && count < width; i++) {
        struct ds_accel__candidate *candidate = context->registry.candidates[i];

        if (!candidate->has_verdict && !candidate->is_demand_only) {
            candidate->is_ahead = i != position;
            batch[count++] = candidate;
        }
    }
    context->turn = position;
    context->meanwhile = width == 1 ? look_ahead : NULL;
    status = ds_accel__candidates_evaluate(context, batch, count);
    context->meanwhile = NULL;
    return status;
}

/* One candidate's turn. *done_out: it was chosen. */
static int32_t try_candidate(ds_accel_t *context, size_t position, bool *done_out)
{
    struct ds_accel__candidate *candidate = context->registry.candidates[position];
    struct ds_accel__candidate *first;
    bool passed;
    int32_t status = ds_accel__candidate_check_file(candidate, &passed);

    if (status < 0 || candidate->is_demand_only) {
        return status;
    }
    if (passed && inherited_from(candidate) != 0) {
        return fail_inherited(candidate);
    }
    if (!candidate->has_verdict) {
        status = evaluate_ahead(context, position);
    }
    candidate->is_ahead = false;
    if (status >= 0 && candidate->gates[DS_ACCEL__GATE_START].result == DS_ACCEL__GATE_FAILED) {
        warn_start_failed(candidate);
    }
    if (status < 0 || candidate->state != DS_ACCEL_STATE_AVAILABLE) {
        return status;
    }
    status = ds_accel__deferred_to(context, candidate, &first);
    if (status < 0) {
        return status;
    }
    if (first != NULL) {
        ds_accel__candidate_set(candidate, DS_ACCEL_STATE_AVAILABLE, DS_ACCEL__REASON_DEFERRED,
                                "through \"%s\" it lets %s go first", candidate->verdict.variant,
                                first->name);
        return DS_ACCEL_OK;
    }
    return try_start(context, candidate, done_out);
}

/*
 * Nobody went first after all: those that stepped back come before cpu (next), unless it is cpu
 * they step back for, and before nothing (NULL).
 */
static int32_t try_deferred(ds_accel_t *context, const struct ds_accel__candidate *next,
                            bool *done_out)
{
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < context->registry.count && status >= 0 && !*done_out; i++) {
        struct ds_accel__candidate *candidate = context->registry.candidates[i];
        struct ds_accel__candidate *first;

        if (candidate->state != DS_ACCEL_STATE_AVAILABLE ||
            candidate->reason != DS_ACCEL__REASON_DEFERRED) {
            continue;
        }
        status = ds_accel__deferred_to(context, candidate, &first);
        if (status >= 0 && (first == NULL || first != next)) {
            status = try_start(context, candidate, done_out);
        }
    }
    return status;
}

/* Was it asked, or refused, and said no? A shadowed one never counts. */
static bool is_rejected(const struct ds_accel__candidate *candidate, bool with_disabled)
{
    return !is_available(candidate) && candidate->state != DS_ACCEL_STATE_NOT_PROBED &&
           (with_disabled || candidate->state != DS_ACCEL_STATE_DISABLED) &&
           candidate->state != DS_ACCEL_STATE_SHADOWED;
}

/* The first that something can be done for; then what has no hardware here; then what is denied. */
static const struct ds_accel__candidate *best_rejected(const ds_accel_t *context,
                                                       bool with_disabled)
{
    const struct ds_accel__candidate *absent = NULL;
    const struct ds_accel__candidate *disabled = NULL;

    for (size_t i = 0; i < context->registry.count; i++) {
        const struct ds_accel__candidate *candidate = context->registry.candidates[i];

        if (!is_rejected(candidate, with_disabled)) {
            continue;
        }
        if (candidate->state == DS_ACCEL_STATE_DISABLED) {
            disabled = disabled == NULL ? candidate : disabled;
        } else if (candidate->reason == DS_ACCEL__REASON_NO_DEVICE) {
            absent = absent == NULL ? candidate : absent;
        } else {
            return candidate;
        }
    }
    return absent != NULL ? absent : disabled;
}

/* "xpu, npu or cuda": everybody who has no device here. Empty when there is no memory for it. */
static size_t list_absent(const ds_accel_t *context, struct ds_accel__text *names)
{
    const char *last = NULL;
    size_t count = 0;

    for (size_t i = 0; i < context->registry.count; i++) {
        const struct ds_accel__candidate *candidate = context->registry.candidates[i];

        if (is_rejected(candidate, false) && candidate->reason == DS_ACCEL__REASON_NO_DEVICE) {
            if (last != NULL) {
                ds_accel__text_add(names, "%s%s", count > 1 ? ", " : "", last);
            }
            last = candidate->name;
            count++;
        }
    }
    if (last != NULL) {
        ds_accel__text_add(names, "%s%s", count > 1 ? " or " : "", last);
    }
    return names->failed ? 0 : count;
}

static void warn_fallback(const ds_accel_t *context)
{
    const struct ds_accel__candidate *best = best_rejected(context, false);
    struct ds_accel__text names = {0};

    if (!ds_accel__log_enabled(&context->log, "detect", DS_ACCEL_LOG_WARN)) {
        return; /* the names of hundreds take a while */
    }
    if (best == NULL) {
        ds_accel__log(&context->log, "detect", DS_ACCEL_LOG_INFO,
                      "cpu is used: no other accelerator has a plugin here");
    } else if (best->reason == DS_ACCEL__REASON_NO_DEVICE && list_absent(context, &names) > 1) {
        ds_accel__log(&context->log, "detect", DS_ACCEL_LOG_WARN,
                      "falling back to cpu: no_device: this machine has no device of %s (ds-accel "
                      "explain tells more)",
                      names.data);
    } else {
        ds_accel__log(&context->log, "detect", DS_ACCEL_LOG_WARN,
                      "falling back to cpu: %s is %s: %s%s%s (ds-accel explain %s tells more)",
                      best->name, ds_accel__state_name(best->state),
                      ds_accel__reason_code(best->reason), detail_of(best)[0] != '\0' ? ": " : "",
                      detail_of(best), best->name);
    }
    ds_accel__text_clear(&names);
}

/* True if somebody was not asked, since no process or descriptor was left for it. */
static bool was_limited(const ds_accel_t *context)
{
    for (size_t i = 0; i < context->registry.count; i++) {
        if (context->registry.candidates[i]->reason == DS_ACCEL__REASON_HELPER_REFUSED) {
            return true;
        }
    }
    return false;
}

/* True if all that were asked for were refused for what could have changed their files. */
static bool all_refused(const ds_accel_t *context)
{
    for (size_t i = 0; i < context->registry.count; i++) {
        const struct ds_accel__candidate *candidate = context->registry.candidates[i];

        if (candidate->state != DS_ACCEL_STATE_NOT_PROBED &&
            candidate->state != DS_ACCEL_STATE_SHADOWED &&
            candidate->gates[DS_ACCEL__GATE_TRUST].result != DS_ACCEL__GATE_FAILED &&
            candidate->gates[DS_ACCEL__GATE_HASH].result != DS_ACCEL__GATE_FAILED) {
            return false;
        }
    }
    return true;
}

/* Where nothing is remembered, the first whose hardware may be here is asked. */
static bool will_ask(const ds_accel_t *context)
{
    return context->recording == NULL && context->cache.table.count == 0 &&
           context->registry.count > 0;
}

static int32_t detect_auto(ds_accel_t *context)
{
    bool done = false;

    if (will_ask(context)) {
        ds_accel__probe_begin(context);
    }
    for (size_t i = 0; i < context->registry.count && !done; i++) {
        struct ds_accel__candidate *candidate = context->registry.candidates[i];
        int32_t status;

        candidate->is_ahead = false;
        if (candidate->is_demand_only) {
            continue;
        }
        status = strcmp(candidate->name, "cpu") == 0 ? try_deferred(context, candidate, &done)
                                                     : DS_ACCEL_OK;
        if (status >= 0 && !done) {
            status = try_candidate(context, i, &done);
        }
        if (status < 0) {
            return status;
        }
    }
    if (!done) {
        int32_t status = try_deferred(context, NULL, &done);

        if (status < 0) {
            return status;
        }
    }
    mark_others(context, DS_ACCEL__REASON_NOT_NEEDED);
    if (!done) {
        const struct ds_accel__candidate *best = best_rejected(context, true);

        if (best != NULL) {
            return ds_accel__error(all_refused(context)   ? DS_ACCEL_ERR_UNTRUSTED
                                   : was_limited(context) ? DS_ACCEL_ERR_LIMIT
                                                          : DS_ACCEL_ERR_NO_DEVICE,
                                   "no accelerator can be used: the best candidate, %s, is %s: "
                                   "%s: %s",
                                   best->name, ds_accel__state_name(best->state),
                                   ds_accel__reason_code(best->reason), detail_of(best));
        }
        return ds_accel__error(
            DS_ACCEL_ERR_NO_DEVICE,
            "no accelerator can be used: no plugin is in the folders searched:\n%s",
            context->searched.data != NULL ? context->searched.data : "");
    }
    if (strcmp(context->chosen->name, "cpu") == 0) {
        warn_fallback(context);
    }
    return DS_ACCEL_OK;
}

/* A failed start is tried again by the next call: what stood in the way may be gone. */
static void forget_failures(ds_accel_t *context)
{
    for (size_t i = 0; i < context->registry.count; i++) {
        struct ds_accel__candidate *candidate = context->registry.candidates[i];

        if (candidate->state == DS_ACCEL_STATE_SHADOWED ||
            candidate->gates[DS_ACCEL__GATE_NAME].result == DS_ACCEL__GATE_FAILED) {
            continue;
        }
        forget(candidate);
    }
}

/*
 * What was chosen without being started is started now. If that fails, all of it begins anew, as
 * after a choice that failed.
 */
static int32_t start_chosen(ds_accel_t *context)
{
    struct ds_accel__candidate *candidate = context->chosen;
    int32_t status = start_once(context, candidate);

    if (status >= 0) {
        __atomic_store_n(&context->selected, candidate, __ATOMIC_RELEASE);
        return DS_ACCEL_OK;
    }
    context->chosen = NULL;
    ds_accel__verdict_forget(candidate);
    forget_failures(context);
    return status;
}

int32_t ds_accel__detect_locked(ds_accel_t *context)
{
    const char *env = context->env.values[DS_ACCEL__VARIABLE_ACCELERATOR];
    const char *configured = ds_accel__config_string(&context->config, "accelerator");
    int32_t status;

    if (context->selected != NULL || (context->only_chooses && context->chosen != NULL)) {
        return DS_ACCEL_OK;
    }
    if (context->chosen != NULL && start_chosen(context) >= 0) {
        return DS_ACCEL_OK;
    }
    if (context->forced != NULL) {
        status = detect_forced(context, context->forced, "the option accelerator", "override");
    } else if (env != NULL) {
        status = detect_forced(context, env, "DS_ACCELERATOR", "override");
    } else if (configured != NULL) {
        status =
            detect_forced(context, configured, "the configuration's \"accelerator\"", "config");
    } else {
        status = detect_auto(context);
    }
    context->has_failed = status < 0;
    return status;
}

static int32_t decide(ds_accel_t *context, bool only_chooses)
{
    int32_t status;

    ds_accel__context_change_begin(context);
    if (context->has_failed) {
        forget_failures(context);
    }
    context->only_chooses = only_chooses;
    status = ds_accel__asking_begin(context);
    status = status < 0 ? status : ds_accel__detect_locked(context);
    ds_accel__asking_end(context);
    context->only_chooses = false;
    snprintf(context->failure, sizeof(context->failure), "%s",
             status < 0 ? ds_accel_last_error() : "");
    ds_accel__context_change_end(context);
    return status;
}

int32_t ds_accel_detect(ds_accel_t *context)
{
    int32_t status = DS_ACCEL_OK;

    if (context == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "the context is NULL");
    }
    pthread_mutex_lock(&context->lock);
    if (context->selected == NULL) {
        status = ds_accel__context_check(context);
        status = status < 0 ? status : decide(context, false);
    }
    pthread_mutex_unlock(&context->lock);
    if (status >= 0) {
        ds_accel__runtime_hooks->started(context);
    }
    return status;
}

int32_t ds_accel__choose(ds_accel_t *context)
{
    int32_t status = DS_ACCEL_OK;

    pthread_mutex_lock(&context->lock);
    if (context->chosen == NULL) {
        status = ds_accel__context_check(context);
        status = status < 0 ? status : decide(context, true);
    }
    pthread_mutex_unlock(&context->lock);
    return status;
}

/* Candidates to be asked together, each with the reason why it was not asked before. */
struct batch {
    struct ds_accel__candidate *candidates[64];
    enum ds_accel__reason_id reasons[64];
    size_t count;
};

static int32_t evaluate_batch(ds_accel_t *context, struct batch *batch)
{
    int32_t status = ds_accel__candidates_evaluate(context, batch->candidates, batch->count);

    for (size_t i = 0; i < batch->count && status >= 0; i++) {
        if (batch->candidates[i]->state == DS_ACCEL_STATE_AVAILABLE) {
            batch->candidates[i]->reason = batch->reasons[i];
        }
    }
    batch->count = 0;
    return status;
}

/* Through the gates; a demand-only one is run only when it was named. */
static int32_t check_candidate(ds_accel_t *context, struct ds_accel__candidate *candidate,
                               bool is_named, bool may_wake, struct batch *batch)
{
    enum ds_accel__reason_id reason = candidate->reason;
    bool passed;
    int32_t status;

    candidate->is_named = is_named && may_wake;
    if (candidate->is_named && is_asleep(candidate)) {
        forget(candidate); /* that it sleeps was a verdict for others */
        reason = DS_ACCEL__REASON_NONE;
    }
    status = ds_accel__candidate_check_file(candidate, &passed);
    if (status < 0 || !passed) {
        return status;
    }
    if (candidate->is_demand_only) {
        reason = DS_ACCEL__REASON_DEMAND_ONLY;
    }
    if (candidate->is_demand_only && !is_named) {
        ds_accel__candidate_set(candidate, DS_ACCEL_STATE_NOT_PROBED, reason, "%s", "");
        return DS_ACCEL_OK;
    }
    batch->candidates[batch->count] = candidate;
    batch->reasons[batch->count++] = reason;
    return batch->count >= context->probe_width ? evaluate_batch(context, batch) : DS_ACCEL_OK;
}

static int32_t check_all(ds_accel_t *context, const char *name, bool may_wake, bool *found_out)
{
    struct batch batch = {.count = 0};
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < context->registry.count && status >= 0; i++) {
        struct ds_accel__candidate *candidate = context->registry.candidates[i];

        if (name != NULL && strcmp(candidate->name, name) != 0) {
            continue;
        }
        *found_out = true;
        if (candidate->state == DS_ACCEL_STATE_NOT_PROBED ||
            (name != NULL && may_wake && is_asleep(candidate))) {
            status = check_candidate(context, candidate, name != NULL, may_wake, &batch);
        }
    }
    if (status >= 0 && batch.count > 0) {
        status = evaluate_batch(context, &batch);
    }
    return status;
}

int32_t ds_accel__check(ds_accel_t *context, const char *name, bool may_wake)
{
    int32_t status = ds_accel__context_check(context);
    bool found = false;

    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&context->lock);
    status = ds_accel__asking_begin(context);
    status = status < 0 ? status : check_all(context, name, may_wake, &found);
    ds_accel__asking_end(context);
    if (status >= 0 && name != NULL && !found) {
        status = ds_accel__error(
            DS_ACCEL_ERR_NOT_FOUND,
            "no plugin ds_accel_%s.so is in the folders searched:\n%sRemedy: %s", name,
            context->searched.data != NULL ? context->searched.data : "",
            ds_accel__config_remedy(&context->config, name, DS_ACCEL__REASON_NO_PLUGIN));
    }
    pthread_mutex_unlock(&context->lock);
    return status;
}

int32_t ds_accel_check(ds_accel_t *context, const char *name)
{
    return ds_accel__check(context, name, true);
}
