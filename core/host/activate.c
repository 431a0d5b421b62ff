/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Loads and starts a plugin in the caller's process: the chosen plugin, or one that the program
 * requested by name. By default no other file brings a plugin's code into this process, except the
 * code of cpu if no helper process can be started for it (evaluate.c): plugins are probed in helper
 * processes, which also rehearse the start (start.c). During the start a breadcrumb stays on disk,
 * if the store of verdicts can be written, so that a later process detects that this process
 * crashed.
 */
#include "host/activate.h"
#include "base/fork.h"
#include "host/context.h"
#include "host/crumb.h"
#include "host/guard.h"
#include "host/hooks.h"
#include "host/layers.h"
#include "host/loader.h"
#include "host/probe.h"
#include "host/registry.h"
#include "host/start.h"
#include "host/verdict.h"

#include <assert.h>

pid_t ds_accel__candidate_inherited_from(const struct ds_accel__candidate *candidate)
{
    return candidate->recorded == NULL ? ds_accel__fork_starter(candidate->name) : 0;
}

int32_t ds_accel__candidate_fail_inherited(const struct ds_accel__candidate *candidate)
{
    return ds_accel__error(DS_ACCEL_ERR_STATE,
                           "%s cannot be used in this process: " DS_ACCEL__FORKED_TEXT,
                           candidate->name, (long)ds_accel__candidate_inherited_from(candidate));
}

/*
 * Load a plugin that was chosen, or requested by name, into the caller's process. The candidate's
 * state and stage change only if the plugin is rejected (ERR_ABI).
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

/*
 * Warn that the start of the plugin changed this process in a way that could not be undone. Called
 * by ds_accel__guard_restore().
 */
static void warn_changed(void *user_data, enum ds_accel__reason_id reason, const char *detail)
{
    const struct ds_accel__candidate *candidate = user_data;

    ds_accel__log(&candidate->host.context->log, "detect", DS_ACCEL_LOG_WARN,
                  "%s: its start caused %s, which could not be undone: %s", candidate->name,
                  ds_accel__reason_code(reason), detail);
}

int32_t ds_accel__candidate_activate(struct ds_accel__candidate *candidate,
                                     ds_accel_plugin_instance_t **instance_out, uint32_t *count_out)
{
    ds_accel_t *context = candidate->host.context;
    ds_accel_plugin_instance_t *instance = NULL;
    struct ds_accel__guard guard;
    struct ds_accel__crumb crumb;
    char text[512] = "";
    int32_t status;

    if (candidate->recorded != NULL) {
        return ds_accel__recorded_source->start(candidate, instance_out, count_out);
    }
    if (ds_accel__candidate_inherited_from(candidate) != 0) {
        return ds_accel__candidate_fail_inherited(candidate);
    }
    if (candidate->watch.is_forked) { /* in a forked child the table contains only stubs */
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "%s cannot be used in this process: " DS_ACCEL__FORKED_TEXT,
                               candidate->name, (long)candidate->watch.pid);
    }
    status = ds_accel__verdicts_open(context, ds_accel__probe_is_isolated(context));
    status = status < 0 ? status : ds_accel__verdicts_store(context);
    if (status < 0) {
        return status;
    }
    /* The store is unlocked, so other processes need not wait for it during the start. */
    ds_accel__crumb_drop(candidate, &crumb);
    ds_accel__guard_take(&guard);
    status = load_to_start(candidate);
    if (status >= 0 && (candidate->table.optional_features & DS_ACCEL_FEATURE_SURVIVES_FORK) == 0) {
        status = ds_accel__fork_started(candidate->name);
    }
    assert(status < 0 || candidate->has_table);
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
    /* ds_accel__start_instance() succeeds only with an instance and at least one device. */
    assert(instance != NULL && candidate->start.device_count > 0);
    *instance_out = instance;
    *count_out = candidate->start.device_count;
    ds_accel__verdict_loaded(candidate);
    return DS_ACCEL_OK;
}
