/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The choice of the accelerator. The call graph of ds_accel_detect(), from the bottom of this file
 * to its top:
 *
 *     decide           once per context; a failed detection starts again
 * detect_locked    a launcher's decision, an override, the configuration, or the detection order
 *     detect_decided   the candidate that the launcher chose is used, if that is still possible
 *     detect_forced    the forced candidate is used, or the call fails
 *     detect_auto      each candidate's turn, in order; then candidates that deferred to another
 *     try_candidate    evaluate it (evaluate.c: gates, store, probe), check whether it defers
 *     try_start        load and start it (activate.c); if that fails, try the next candidate
 *     select_candidate make it the context's accelerator
 *
 * outcome.c contains the messages for a failure or a fallback.
 */
#include "host/detect.h"
#include "config/config.h"
#include "config/env.h"
#include "host/activate.h"
#include "host/context.h"
#include "host/decision.h"
#include "host/evaluate.h"
#include "host/hooks.h"
#include "host/outcome.h"
#include "host/probe.h"
#include "host/registry.h"
#include "host/verdict.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

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
        other->is_ahead = false; /* needed now, not ahead of its turn */
        status = ds_accel__candidate_check_file(other, &passed);
        /* Do not defer to a demand-only candidate, because detection never chooses one. */
        if (status >= 0 && passed && !other->is_demand_only) {
            status = ds_accel__candidate_evaluate(other);
        }
        if (status < 0) {
            return status;
        }
        if (ds_accel__candidate_is_available(other) && !other->is_demand_only) {
            *to_out = other;
            return DS_ACCEL_OK;
        }
    }
    return DS_ACCEL_OK;
}

static int32_t start_once(ds_accel_t *context, struct ds_accel__candidate *candidate)
{
    assert(candidate->instance == NULL);
    ds_accel__probe_release(context); /* let the helper exit while this process starts the plugin */
    if (context->only_chooses && candidate->start.is_done != 0) {
        context->device_count = candidate->start.status == DS_ACCEL_OK
                                    ? candidate->start.device_count
                                    : candidate->verdict.device_count;
        return DS_ACCEL_OK;
    }
    return ds_accel__candidate_activate(candidate, &candidate->instance, &context->device_count);
}

/*
 * Start the candidate. If the start fails and the verdict was stored by an earlier process, the
 * verdict may be outdated: probe the candidate again, and start it if it is still available.
 */
static int32_t start(ds_accel_t *context, struct ds_accel__candidate *candidate)
{
    bool was_recalled = candidate->phase == DS_ACCEL__PHASE_RECALLED;
    int32_t status = start_once(context, candidate);

    if (status >= 0 || status == DS_ACCEL_ERR_NO_MEMORY || !was_recalled ||
        ds_accel__candidate_inherited_from(candidate) != 0) {
        return status;
    }
    status = ds_accel__verdict_forget(candidate);
    if (status >= 0) {
        ds_accel__candidate_forget(candidate);
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
    assert(candidate->state == DS_ACCEL_STATE_AVAILABLE);
    assert(context->chosen == NULL && context->selected == NULL);
    ds_accel__candidate_set(candidate, DS_ACCEL_STATE_SELECTED, DS_ACCEL__REASON_NONE, "%s",
                            candidate->verdict.detail);
    context->set_method = set_method;
    for (size_t i = 0; i < context->registry.count; i++) {
        if (context->registry.candidates[i]->is_ahead) {
            ds_accel__candidate_forget(context->registry.candidates[i]);
            /*
             * A later check of the candidate's file sets is_demand_only again. Until then, the
             * value true would exclude the candidate from evaluation ahead of its turn.
             */
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
        return ds_accel__fail_unknown(context, name, source);
    }
    if (ds_accel__candidate_inherited_from(candidate) != 0) {
        return ds_accel__candidate_fail_inherited(candidate);
    }
    candidate->wish = DS_ACCEL__WISH_FORCED;
    status = ds_accel__candidate_evaluate_named(candidate);
    if (status < 0) {
        return status;
    }
    if (candidate->state == DS_ACCEL_STATE_AVAILABLE) {
        status = start(context, candidate);
        if (status >= 0) {
            select_candidate(context, candidate, set_method);
        } else if (candidate->state == DS_ACCEL_STATE_AVAILABLE) {
            return status; /* no fault of the plugin, such as exhausted memory */
        }
    }
    mark_others(context, DS_ACCEL__REASON_NOT_CHOSEN);
    return context->chosen != NULL ? DS_ACCEL_OK : ds_accel__fail_forced(candidate, source);
}

/* Start an available candidate. *done_out is set to true if it was chosen. */
static int32_t try_start(ds_accel_t *context, struct ds_accel__candidate *candidate, bool *done_out)
{
    int32_t status = start(context, candidate);

    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        return ds_accel__no_memory();
    }
    if (status < 0 && ds_accel__candidate_inherited_from(candidate) != 0) {
        return status; /* the parent process chose this candidate: do not choose another */
    }
    if (status < 0) {
        ds_accel__warn_start_failed(candidate);
        return DS_ACCEL_OK;
    }
    select_candidate(context, candidate, "auto detect");
    *done_out = true;
    return DS_ACCEL_OK;
}

/*
 * Check the file of the next candidate while a helper works. The result is discarded if the
 * candidate's turn never comes.
 */
static void look_ahead(ds_accel_t *context)
{
    assert(context->turn < context->registry.count);
    for (size_t i = context->turn + 1; i < context->registry.count; i++) {
        struct ds_accel__candidate *candidate = context->registry.candidates[i];
        bool passed;

        if (candidate->phase != DS_ACCEL__PHASE_FOUND || candidate->is_demand_only ||
            candidate->is_registered) {
            continue;
        }
        candidate->is_ahead = true;
        if (ds_accel__candidate_check_file(candidate, &passed) < 0) {
            ds_accel__candidate_forget(candidate); /* the error is reported in its turn */
        }
        return;
    }
}

/*
 * Evaluate the candidate at a position. If probe.parallel is above 1, also evaluate the candidates
 * after it, which may be needed next. This does not affect the choice, which follows the detection
 * order.
 */
static int32_t evaluate_ahead(ds_accel_t *context, size_t position)
{
    struct ds_accel__candidate *batch[64];
    size_t width = ds_accel__probe_width(context);
    size_t count = 0;
    int32_t status;

    assert(width >= 1 && width <= ARRAY_SIZE(batch));
    assert(context->meanwhile == NULL);
    for (size_t i = position; i < context->registry.count && count < width; i++) {
        struct ds_accel__candidate *candidate = context->registry.candidates[i];

        if (!ds_accel__candidate_has_verdict(candidate) && !candidate->is_demand_only) {
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

/*
 * Evaluate one candidate in its turn. If it is available, start it, unless it defers to another
 * available candidate. *done_out is set to true if it was chosen.
 */
static int32_t try_candidate(ds_accel_t *context, size_t position, bool *done_out)
{
    struct ds_accel__candidate *candidate = context->registry.candidates[position];
    struct ds_accel__candidate *first;
    bool passed;
    int32_t status = ds_accel__candidate_check_file(candidate, &passed);

    if (status < 0 || candidate->is_demand_only) {
        return status;
    }
    if (passed && ds_accel__candidate_inherited_from(candidate) != 0) {
        return ds_accel__candidate_fail_inherited(candidate);
    }
    if (!ds_accel__candidate_has_verdict(candidate)) {
        status = evaluate_ahead(context, position);
    }
    candidate->is_ahead = false;
    if (status >= 0 && candidate->gates[DS_ACCEL__GATE_START].result == DS_ACCEL__GATE_FAILED) {
        ds_accel__warn_start_failed(candidate);
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
                                "its variant \"%s\" defers to %s", candidate->verdict.variant,
                                first->name);
        return DS_ACCEL_OK;
    }
    return try_start(context, candidate, done_out);
}

/*
 * Try the candidates that deferred, if no candidate to which they deferred was chosen. Called
 * twice: before the turn of cpu, with cpu as next, for the candidates that do not defer to cpu; and
 * after all turns, with next NULL.
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

static int32_t detect_auto(ds_accel_t *context)
{
    bool done = false;

    context->wants_helper = context->recording == NULL;
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
        return ds_accel__fail_none(context);
    }
    assert(context->chosen != NULL);
    if (strcmp(context->chosen->name, "cpu") == 0) {
        ds_accel__warn_fallback(context);
    }
    return DS_ACCEL_OK;
}

/* Return what requires the decided accelerator; NULL if detection may choose another. */
static const char *decided_source(const ds_accel_t *context,
                                  const struct ds_accel__decision *decision)
{
    return context->forced != NULL                                       ? "the option accelerator"
           : context->env.values[DS_ACCEL__VARIABLE_ACCELERATOR] != NULL ? "DS_ACCELERATOR"
           : strcmp(decision->set_method, "auto detect") != 0            ? "the launcher's decision"
                                                                         : NULL;
}

/*
 * Start the accelerator that a launcher chose for this process. *done_out is true if it was chosen;
 * false: detection chooses. Fails if the accelerator was forced and does not start here.
 */
static int32_t detect_decided(ds_accel_t *context, bool *done_out)
{
    struct ds_accel__decision decision;
    struct ds_accel__candidate *candidate;
    const char *source;
    int32_t status = ds_accel__decision_apply(context, &decision, &candidate);

    *done_out = false;
    if (status < 0 || candidate == NULL) {
        return status;
    }
    source = decided_source(context, &decision);
    status = start_once(context, candidate);
    if (status >= 0) {
        candidate->verdict.device_count = context->device_count;
        select_candidate(context, candidate,
                         strcmp(decision.set_method, "override") == 0 ? "override"
                         : strcmp(decision.set_method, "config") == 0 ? "config"
                                                                      : "auto detect");
        mark_others(context,
                    source != NULL ? DS_ACCEL__REASON_NOT_CHOSEN : DS_ACCEL__REASON_NOT_NEEDED);
        *done_out = true;
        return DS_ACCEL_OK;
    }
    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        return ds_accel__no_memory();
    }
    if (source != NULL) {
        return ds_accel__fail_forced(candidate, source);
    }
    ds_accel__log(&context->log, "detect", DS_ACCEL_LOG_WARN,
                  "%s was chosen by the launcher but fails to start here (%s: %s); choosing again",
                  candidate->name, ds_accel__reason_code(candidate->reason),
                  ds_accel__candidate_detail(candidate));
    candidate->wish = DS_ACCEL__WISH_TURN;
    ds_accel__candidate_forget(candidate);
    return DS_ACCEL_OK;
}

/*
 * Reset the candidates after a failed detection, so that the next call tries again: the cause, for
 * example of a failed start, may no longer exist.
 */
static void forget_failures(ds_accel_t *context)
{
    for (size_t i = 0; i < context->registry.count; i++) {
        struct ds_accel__candidate *candidate = context->registry.candidates[i];

        if (candidate->state == DS_ACCEL_STATE_SHADOWED ||
            candidate->gates[DS_ACCEL__GATE_NAME].result == DS_ACCEL__GATE_FAILED) {
            continue;
        }
        ds_accel__candidate_forget(candidate);
    }
}

/*
 * Start the candidate that was chosen without a start. If that fails, reset the choice, so that
 * detection starts again.
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
    bool done;
    int32_t status;

    if (context->selected != NULL || (context->only_chooses && context->chosen != NULL)) {
        return DS_ACCEL_OK;
    }
    if (context->chosen != NULL && start_chosen(context) >= 0) {
        return DS_ACCEL_OK;
    }
    status = detect_decided(context, &done);
    if (status < 0 || done) {
        /* nothing else is tried */
    } else if (context->forced != NULL) {
        status = detect_forced(context, context->forced, "the option accelerator", "override");
    } else if (env != NULL) {
        status = detect_forced(context, env, "DS_ACCELERATOR", "override");
    } else if (configured != NULL) {
        status =
            detect_forced(context, configured, "the configuration's \"accelerator\"", "config");
    } else {
        status = detect_auto(context);
    }
    assert((status >= 0) == (context->chosen != NULL));
    context->has_failed = status < 0;
    return status;
}

static int32_t decide(ds_accel_t *context, bool only_chooses)
{
    const char *failure;
    int32_t status;

    assert(!context->only_chooses);
    ds_accel__context_change_begin(context);
    if (context->has_failed) {
        forget_failures(context);
    }
    context->only_chooses = only_chooses;
    ds_accel__evaluation_begin(context);
    status = ds_accel__detect_locked(context);
    ds_accel__evaluation_end(context);
    context->only_chooses = false;
    failure = status < 0 ? ds_accel_last_error() : "";
    ds_accel__copy(context->failure, sizeof(context->failure), failure);
    ds_accel__truncate(context->failure, sizeof(context->failure), strlen(failure));
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
