/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The choice: override, configuration, then detection order. A forced accelerator is used or the
 * call fails; detection takes the first one available, goes on when it fails to start, and says so.
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static bool is_asleep(const struct ds_accel__candidate *candidate)
{
    return candidate->gates[DS_ACCEL__GATE_POWER].result == DS_ACCEL__GATE_FAILED;
}

/* Does asking wake nothing? One that was asked for by name may be woken. */
static int32_t check_power(struct ds_accel__candidate *candidate, bool *passed_out)
{
    ds_accel_t *context = candidate->host.context;
    json_t *facts = ds_accel__config_get(&context->config, "backends", candidate->name, NULL);
    struct ds_accel__presence presence;
    struct ds_accel__finding finding;
    int32_t status;

    *passed_out = true;
    if (json_array_size(json_object_get(facts, "pci")) == 0) {
        return DS_ACCEL_OK;
    }
    if (candidate->is_named) {
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_POWER, "asked for by name");
        return DS_ACCEL_OK;
    }
    status = ds_accel__presence_read(context->machine_root, facts, &presence);
    if (status < 0) {
        return status;
    }
    ds_accel__presence_check_power(&presence, &finding);
    if (finding.reason != NULL) {
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_POWER, DS_ACCEL_STATE_UNAVAILABLE,
                                 &finding);
        *passed_out = false;
    } else if (presence.device_count > 0) {
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_POWER, "%s", finding.detail);
    }
    ds_accel__presence_clear(&presence);
    return DS_ACCEL_OK;
}

int32_t ds_accel__candidate_evaluate(struct ds_accel__candidate *candidate)
{
    uint64_t start = now_us();
    int32_t status;
    bool passed;

    if (candidate->has_verdict) {
        return DS_ACCEL_OK;
    }
    status = ds_accel__candidate_check_file(candidate, &passed);
    if (status >= 0 && passed) {
        status = check_power(candidate, &passed);
    }
    if (status >= 0 && passed) {
        status = ds_accel__probe(candidate);
    }
    candidate->elapsed_us = now_us() - start;
    return status;
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
        status = ds_accel__candidate_check_file(other, &passed);
        /* One that detection never chooses by itself is no reason to step back. */
        if (status >= 0 && passed && !other->is_demand_only) {
            status = ds_accel__candidate_evaluate(other);
        }
        if (status < 0) {
            return status;
        }
        if (is_available(other)) {
            *to_out = other;
            return DS_ACCEL_OK;
        }
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel__candidate_start(struct ds_accel__candidate *candidate,
                                  ds_accel_plugin_instance_t **instance_out, uint32_t *count_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_instance_t *instance = NULL;
    const char *call = "init";
    uint32_t count = 0;
    int32_t status;

    ds_accel__plugin_lock();
    status = candidate->table.init(&candidate->host.abi, &instance, &error);
    if (status == DS_ACCEL_OK && instance == NULL) {
        status = DS_ACCEL_ERR_ABI;
        snprintf(error.message, sizeof(error.message), "init gave no instance");
    } else if (status == DS_ACCEL_OK) {
        call = "device_count";
        status = candidate->table.device_count(instance, &count, &error);
        if (status == DS_ACCEL_OK && count == 0) {
            status = DS_ACCEL_ERR_NO_DEVICE;
        } else if (status == DS_ACCEL_OK && count > DS_ACCEL__DEVICE_LIMIT) {
            status = DS_ACCEL_ERR_ABI;
        }
        if (status != DS_ACCEL_OK) {
            candidate->table.shutdown(instance);
        }
    }
    ds_accel__plugin_unlock();
    if (status != DS_ACCEL_OK) {
        char text[400];

        status = status > 0 ? DS_ACCEL_ERR_ABI : status;
        ds_accel__describe(status, &error, text, sizeof(text));
        ds_accel__candidate_set(candidate, DS_ACCEL_STATE_ERROR, "start_failed", "%s%s%s",
                                strncmp(text, call, strlen(call)) == 0 ? "" : call,
                                strncmp(text, call, strlen(call)) == 0 ? "" : ": ", text);
        candidate->stage = "init";
        return status;
    }
    *instance_out = instance;
    *count_out = count;
    return DS_ACCEL_OK;
}

static int32_t start(ds_accel_t *context, struct ds_accel__candidate *candidate)
{
    return ds_accel__candidate_start(candidate, &candidate->instance, &context->device_count);
}

static void select_candidate(ds_accel_t *context, struct ds_accel__candidate *candidate,
                             const char *set_method)
{
    ds_accel__candidate_set(candidate, DS_ACCEL_STATE_SELECTED, "", "%s",
                            candidate->verdict.detail);
    context->set_method = set_method;
    __atomic_store_n(&context->selected, candidate, __ATOMIC_RELEASE);
    ds_accel__log(&context->log, "detect", DS_ACCEL_LOG_INFO, "%s chosen (%s), %u device%s",
                  candidate->name, set_method, context->device_count,
                  context->device_count == 1 ? "" : "s");
}

/* ---- forced --------------------------------------------------------------------------------- */

static const char *detail_of(const struct ds_accel__candidate *candidate)
{
    return candidate->detail != NULL ? candidate->detail : "";
}

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
        ds_accel__error(DS_ACCEL_ERR_NOT_USABLE,
                        "%s is \"%s\", which has no plugin here: no_plugin: ds_accel_%s.so is in "
                        "none of the folders searched; plugins found: %s. Remedy: %s",
                        source, name, name, found, ds_accel__reason("no_plugin")->remedy);
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

    return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE,
                           "%s is \"%s\", which cannot be used: %s: %s. Remedy: %s", source,
                           candidate->name, candidate->reason,
                           candidate->detail != NULL && candidate->detail[0] != '\0'
                               ? candidate->detail
                               : (reason != NULL ? reason->meaning : ""),
                           reason != NULL ? reason->remedy : "");
}

static void mark_others(ds_accel_t *context, const char *reason)
{
    for (size_t i = 0; i < context->registry.count; i++) {
        struct ds_accel__candidate *candidate = context->registry.candidates[i];

        if (candidate->state == DS_ACCEL_STATE_NOT_PROBED) {
            ds_accel__candidate_set(candidate, DS_ACCEL_STATE_NOT_PROBED,
                                    candidate->is_demand_only ? "demand_only" : reason, "%s", "");
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
    status = ds_accel__candidate_evaluate_named(candidate);
    if (status < 0) {
        return status;
    }
    if (candidate->state == DS_ACCEL_STATE_AVAILABLE && start(context, candidate) >= 0) {
        select_candidate(context, candidate, set_method);
    }
    mark_others(context, "not_chosen");
    return context->selected != NULL ? DS_ACCEL_OK : fail_forced(candidate, source);
}

/* ---- automatic ------------------------------------------------------------------------------ */

/* Start an available candidate. *done_out: it was chosen. */
static int32_t try_start(ds_accel_t *context, struct ds_accel__candidate *candidate, bool *done_out)
{
    int32_t status = start(context, candidate);

    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        return ds_accel__no_memory();
    }
    if (status < 0) {
        ds_accel__log(&context->log, "detect", DS_ACCEL_LOG_WARN,
                      "%s passed its probe but failed to start (%s); going on to the next",
                      candidate->name, detail_of(candidate));
        return DS_ACCEL_OK;
    }
    select_candidate(context, candidate, "auto detect");
    *done_out = true;
    return DS_ACCEL_OK;
}

/* One candidate's turn. *done_out: it was chosen. */
static int32_t try_candidate(ds_accel_t *context, struct ds_accel__candidate *candidate,
                             bool *done_out)
{
    struct ds_accel__candidate *first;
    bool passed;
    int32_t status = ds_accel__candidate_check_file(candidate, &passed);

    if (status < 0 || candidate->is_demand_only) {
        return status;
    }
    status = ds_accel__candidate_evaluate(candidate);
    if (status < 0 || candidate->state != DS_ACCEL_STATE_AVAILABLE) {
        return status;
    }
    status = ds_accel__deferred_to(context, candidate, &first);
    if (status < 0) {
        return status;
    }
    if (first != NULL) {
        ds_accel__candidate_set(candidate, DS_ACCEL_STATE_AVAILABLE, "deferred",
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
            strcmp(candidate->reason, "deferred") != 0) {
            continue;
        }
        status = ds_accel__deferred_to(context, candidate, &first);
        if (status >= 0 && (first == NULL || first != next)) {
            status = try_start(context, candidate, done_out);
        }
    }
    return status;
}

/* The first that was asked and said no; a shadowed one never counts. */
static const struct ds_accel__candidate *best_rejected(const ds_accel_t *context,
                                                       bool with_disabled)
{
    for (size_t i = 0; i < context->registry.count; i++) {
        const struct ds_accel__candidate *candidate = context->registry.candidates[i];

        if (!is_available(candidate) && candidate->state != DS_ACCEL_STATE_NOT_PROBED &&
            (with_disabled || candidate->state != DS_ACCEL_STATE_DISABLED) &&
            candidate->state != DS_ACCEL_STATE_SHADOWED) {
            return candidate;
        }
    }
    return NULL;
}

static void warn_fallback(const ds_accel_t *context)
{
    const struct ds_accel__candidate *best = best_rejected(context, false);

    if (best == NULL) {
        ds_accel__log(&context->log, "detect", DS_ACCEL_LOG_INFO,
                      "cpu is used: no other accelerator has a plugin here");
    } else {
        ds_accel__log(&context->log, "detect", DS_ACCEL_LOG_WARN,
                      "falling back to cpu: %s is %s: %s%s%s (ds-accel explain %s tells more)",
                      best->name, ds_accel__state_name(best->state), best->reason,
                      detail_of(best)[0] != '\0' ? ": " : "", detail_of(best), best->name);
    }
}

static int32_t detect_auto(ds_accel_t *context)
{
    bool done = false;

    for (size_t i = 0; i < context->registry.count && !done; i++) {
        struct ds_accel__candidate *candidate = context->registry.candidates[i];
        int32_t status;

        if (candidate->is_demand_only) {
            continue;
        }
        status = strcmp(candidate->name, "cpu") == 0 ? try_deferred(context, candidate, &done)
                                                     : DS_ACCEL_OK;
        if (status >= 0 && !done) {
            status = try_candidate(context, candidate, &done);
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
    mark_others(context, "not_needed");
    if (!done) {
        const struct ds_accel__candidate *best = best_rejected(context, true);

        if (best != NULL) {
            return ds_accel__error(DS_ACCEL_ERR_NO_DEVICE,
                                   "no accelerator can be used: the first candidate, %s, is %s: "
                                   "%s: %s",
                                   best->name, ds_accel__state_name(best->state), best->reason,
                                   detail_of(best));
        }
        return ds_accel__error(
            DS_ACCEL_ERR_NO_DEVICE,
            "no accelerator can be used: no plugin is in the folders searched:\n%s",
            context->searched.data != NULL ? context->searched.data : "");
    }
    if (strcmp(context->selected->name, "cpu") == 0) {
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
        candidate->has_verdict = false;
        for (int gate = DS_ACCEL__GATE_NAME + 1; gate < DS_ACCEL__GATE_COUNT; gate++) {
            bool is_loaded = gate == DS_ACCEL__GATE_LOAD || gate == DS_ACCEL__GATE_ENTRY;

            if (!is_loaded || !candidate->has_table) {
                candidate->gates[gate].result = DS_ACCEL__GATE_SKIPPED;
            }
        }
        ds_accel__candidate_set(candidate, DS_ACCEL_STATE_NOT_PROBED, "", "%s", "");
    }
}

int32_t ds_accel__detect_locked(ds_accel_t *context)
{
    const char *env = context->env.values[DS_ACCEL__VARIABLE_ACCELERATOR];
    const char *configured = ds_accel__config_string(&context->config, "accelerator");
    int32_t status;

    if (context->selected != NULL) {
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

int32_t ds_accel_detect(ds_accel_t *context)
{
    int32_t status;

    if (context == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "the context is NULL");
    }
    pthread_mutex_lock(&context->lock);
    if (context->has_failed) {
        forget_failures(context);
    }
    status = ds_accel__detect_locked(context);
    snprintf(context->failure, sizeof(context->failure), "%s",
             status < 0 ? ds_accel_last_error() : "");
    pthread_mutex_unlock(&context->lock);
    return status;
}

/* Through the gates; a demand-only one is run only when it was named. */
static int32_t check_candidate(struct ds_accel__candidate *candidate, bool is_named, bool may_wake)
{
    const char *reason = candidate->reason; /* why it was not asked before */
    bool was_asleep = is_asleep(candidate);
    bool passed;
    int32_t status = ds_accel__candidate_check_file(candidate, &passed);

    if (status < 0 || !passed) {
        return status;
    }
    if (candidate->is_demand_only) {
        reason = "demand_only";
    }
    if (candidate->is_demand_only && !is_named) {
        ds_accel__candidate_set(candidate, DS_ACCEL_STATE_NOT_PROBED, reason, "%s", "");
        return DS_ACCEL_OK;
    }
    status = is_named && may_wake ? ds_accel__candidate_evaluate_named(candidate)
                                  : ds_accel__candidate_evaluate(candidate);
    if (status >= 0 && candidate->state == DS_ACCEL_STATE_AVAILABLE && !was_asleep) {
        candidate->reason = reason;
    }
    return status;
}

int32_t ds_accel__check(ds_accel_t *context, const char *name, bool may_wake)
{
    int32_t status = DS_ACCEL_OK;
    bool found = false;

    if (context == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "the context is NULL");
    }
    pthread_mutex_lock(&context->lock);
    for (size_t i = 0; i < context->registry.count && status >= 0; i++) {
        struct ds_accel__candidate *candidate = context->registry.candidates[i];

        if (name != NULL && strcmp(candidate->name, name) != 0) {
            continue;
        }
        found = true;
        if (candidate->state == DS_ACCEL_STATE_NOT_PROBED ||
            (name != NULL && may_wake && is_asleep(candidate))) {
            status = check_candidate(candidate, name != NULL, may_wake);
        }
    }
    pthread_mutex_unlock(&context->lock);
    if (status >= 0 && name != NULL && !found) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                               "no plugin ds_accel_%s.so is in the folders searched:\n%sRemedy: %s",
                               name, context->searched.data != NULL ? context->searched.data : "",
                               ds_accel__reason("no_plugin")->remedy);
    }
    return status;
}

int32_t ds_accel_check(ds_accel_t *context, const char *name)
{
    return ds_accel__check(context, name, true);
}
