/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * ds_accel_check(): determines the verdict of every candidate that is not demand-only, or of the
 * candidates with one name, but chooses none. Candidates are evaluated in batches as wide as
 * probe.parallel allows.
 */
#include "host/context.h"

#include "host/evaluate.h"
#include "host/probe.h"
#include "host/registry.h"

#include <assert.h>
#include <string.h>

/*
 * Candidates to be evaluated together. If candidates[i] is available afterwards, its reason is set
 * to reasons[i], for example DEMAND_ONLY.
 */
struct batch {
    struct ds_accel__candidate *candidates[64];
    enum ds_accel__reason_id reasons[64];
    size_t count;
    size_t width; /* number of candidates probed at a time */
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

/*
 * Check a candidate's file, add the candidate to the batch if the file passed, and evaluate a full
 * batch. A demand-only candidate is added only if it was requested by name.
 */
static int32_t check_candidate(ds_accel_t *context, struct ds_accel__candidate *candidate,
                               bool is_named, bool may_wake, struct batch *batch)
{
    enum ds_accel__reason_id reason = candidate->reason;
    bool passed;
    int32_t status;

    if (!is_named || !may_wake) {
        candidate->wish = DS_ACCEL__WISH_TURN;
    } else if (candidate->wish < DS_ACCEL__WISH_NAMED) {
        candidate->wish = DS_ACCEL__WISH_NAMED;
    }
    if (is_named && may_wake && ds_accel__candidate_is_asleep(candidate)) {
        ds_accel__candidate_forget(candidate); /* "asleep" was the verdict of an earlier request */
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
    assert(batch->count < batch->width && batch->width <= ARRAY_SIZE(batch->candidates));
    batch->candidates[batch->count] = candidate;
    batch->reasons[batch->count++] = reason;
    return batch->count >= batch->width ? evaluate_batch(context, batch) : DS_ACCEL_OK;
}

static int32_t check_all(ds_accel_t *context, const char *name, bool may_wake, bool *found_out)
{
    struct batch batch = {.width = ds_accel__probe_width(context)};
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < context->registry.count && status >= 0; i++) {
        struct ds_accel__candidate *candidate = context->registry.candidates[i];

        if (name != NULL && strcmp(candidate->name, name) != 0) {
            continue;
        }
        *found_out = true;
        if (candidate->state == DS_ACCEL_STATE_NOT_PROBED ||
            (name != NULL && may_wake && ds_accel__candidate_is_asleep(candidate))) {
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
    ds_accel__evaluation_begin(context);
    status = check_all(context, name, may_wake, &found);
    ds_accel__evaluation_end(context);
    if (status >= 0 && name != NULL && !found) {
        status = ds_accel__error(
            DS_ACCEL_ERR_NOT_FOUND,
            "no plugin ds_accel_%s.so is in the directories searched:\n%sRemedy: %s", name,
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
