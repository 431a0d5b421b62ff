/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A launcher chooses the accelerator once and hands its decision down to the ranks of its job, so
 * that no rank starts a helper process, also if verdicts are not stored. A rank trusts the decision
 * no more than a verdict stored by an earlier process: it is used only on the same host and boot,
 * by the same user, version and configuration, and for the same file, which passes all gates up to
 * quarantine again in this process. The devices are counted when the rank starts the plugin,
 * because the launcher may have hidden some of them from the rank: the variables that choose
 * devices do not affect whether the decision is valid. In all other cases the rank detects as if
 * there were no decision, and the log contains the reason.
 */
#include "host/decision.h"
#include "config/config.h"
#include "config/env.h"
#include "host/activate.h"
#include "host/context.h"
#include "host/evaluate.h"
#include "host/key.h"
#include "host/registry.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what a decision depends on ------------------------------------------------------------- */

static int32_t hash_value(json_t *value, uint64_t *hash)
{
    char *text;

    if (value == NULL) {
        *hash += 1;
        return DS_ACCEL_OK;
    }
    text = ds_accel__json_dump(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (text == NULL) {
        return ds_accel__no_memory();
    }
    *hash = ds_accel__hash_text(text, *hash);
    free(text);
    return DS_ACCEL_OK;
}

/*
 * Hash the configuration's values that affect which accelerator is chosen. The order of the
 * backends has no effect on the hash.
 */
static int32_t hash_configuration(const ds_accel_t *context, uint64_t *hash_out)
{
    static const char *const keys[] = {"accelerator", "detection_order", "allow", "deny",
                                       "plugin_dirs"};
    static const char *const facts[] = {"defers_to", "demand_only"};
    const struct ds_accel__config *config = &context->config;
    const char *backend;
    json_t *ignored;
    uint64_t hash = 0;
    uint64_t sum = 0;
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < ARRAY_SIZE(keys) && status >= 0; i++) {
        status = hash_value(ds_accel__config_get(config, keys[i], NULL), &hash);
    }
    json_object_foreach(ds_accel__config_facts(config, NULL), backend, ignored)
    {
        uint64_t part = ds_accel__hash_text(backend, 0);

        for (size_t i = 0; i < ARRAY_SIZE(facts) && status >= 0; i++) {
            status = hash_value(ds_accel__config_backend(config, backend, facts[i]), &part);
        }
        sum += part;
    }
    *hash_out = ds_accel__hash(&sum, sizeof(sum), hash);
    return status;
}

static void identify_file(const struct stat *file, struct ds_accel__decision *decision)
{
    decision->file.device = file->st_dev;
    decision->file.inode = file->st_ino;
    decision->file.size_bytes = (uint64_t)file->st_size;
    decision->file.modified_s = (uint64_t)file->st_mtim.tv_sec;
    decision->file.modified_ns = (uint64_t)file->st_mtim.tv_nsec;
    decision->file.changed_s = (uint64_t)file->st_ctim.tv_sec;
    decision->file.changed_ns = (uint64_t)file->st_ctim.tv_nsec;
}

/*
 * Set the members that do not depend on the accelerator. *is_known_out is false if the boot of this
 * host cannot be identified.
 */
static int32_t identify(const ds_accel_t *context, struct ds_accel__decision *decision,
                        bool *is_known_out)
{
    uint64_t root = ds_accel__hash_text(context->machine_root, 0);
    int32_t status = ds_accel__key_machine(root, &decision->host, is_known_out);

    ds_accel__copy(decision->version, sizeof(decision->version), DS_ACCEL_VERSION);
    decision->user = geteuid();
    return status < 0 ? status : hash_configuration(context, &decision->configuration);
}

/* ---- the launcher --------------------------------------------------------------------------- */

static int32_t write_locked(const ds_accel_t *context, struct ds_accel__text *out)
{
    const struct ds_accel__candidate *chosen = context->chosen;
    struct ds_accel__decision decision = {0};
    bool is_known;
    int32_t status;

    if (chosen == NULL || context->recording != NULL || !ds_accel__candidate_has_file(chosen) ||
        strlen(chosen->path) >= sizeof(decision.path)) {
        return DS_ACCEL_OK;
    }
    status = identify(context, &decision, &is_known);
    if (status < 0 || !is_known) {
        return status;
    }
    ds_accel__copy(decision.accelerator, sizeof(decision.accelerator), chosen->name);
    ds_accel__copy(decision.set_method, sizeof(decision.set_method), context->set_method);
    ds_accel__copy(decision.variant, sizeof(decision.variant), chosen->verdict.variant);
    ds_accel__copy(decision.detail, sizeof(decision.detail), chosen->verdict.detail);
    ds_accel__copy(decision.path, sizeof(decision.path), chosen->path);
    decision.device_count = context->device_count;
    identify_file(&chosen->file, &decision);
    ds_accel__decision_format(&decision, out);
    return out->failed ? ds_accel__no_memory() : DS_ACCEL_OK;
}

int32_t ds_accel__decision_write(ds_accel_t *context, struct ds_accel__text *out)
{
    int32_t status;

    pthread_mutex_lock(&context->lock);
    status = write_locked(context, out);
    pthread_mutex_unlock(&context->lock);
    return status;
}

/* ---- the ranks ------------------------------------------------------------------------------ */

/* The accelerator that the program or the user forces in this process; NULL: none. */
static const char *forced_name(const ds_accel_t *context)
{
    return context->forced != NULL ? context->forced
                                   : context->env.values[DS_ACCEL__VARIABLE_ACCELERATOR];
}

/* Compare a decision with this process; *problem_out is NULL if it may be used here. */
static int32_t compare(const ds_accel_t *context, const struct ds_accel__decision *decision,
                       const char **problem_out)
{
    const char *forced = forced_name(context);
    struct ds_accel__decision here;
    bool is_known;
    int32_t status = identify(context, &here, &is_known);

    *problem_out = NULL;
    if (status < 0) {
        return status;
    }
    if (context->recording != NULL) {
        *problem_out = "the machine is a recorded one";
    } else if (strcmp(decision->version, here.version) != 0) {
        *problem_out = "it was made by another version of ds-accel";
    } else if (!is_known) {
        *problem_out = "/proc does not report when this machine was started";
    } else if (decision->host != here.host) {
        *problem_out = "it was made on another machine, or before this machine was restarted";
    } else if (decision->user != here.user) {
        *problem_out = "it was made by another user";
    } else if (forced != NULL && strcmp(forced, decision->accelerator) != 0) {
        *problem_out = "another accelerator is forced in this process";
    } else if (decision->configuration != here.configuration) {
        *problem_out = "it was made with another configuration";
    }
    return DS_ACCEL_OK;
}

/*
 * Find the decided candidate; NULL with *problem_out if it cannot be the one that the launcher
 * chose. The launcher did not know the backends that the program registered: if the choice was
 * automatic, none of them may come before it in the detection order.
 */
static struct ds_accel__candidate *
find(const ds_accel_t *context, const struct ds_accel__decision *decision, const char **problem_out)
{
    struct ds_accel__candidate *decided =
        ds_accel__registry_find(&context->registry, decision->accelerator);
    bool is_automatic = strcmp(decision->set_method, "auto detect") == 0;

    if (decided == NULL) {
        *problem_out = "its plugin is in none of the directories searched";
        return NULL;
    }
    if (decided->is_registered) {
        *problem_out = "the program registered its own backend of this name";
        return NULL;
    }
    for (size_t i = 0; context->registry.candidates[i] != decided; i++) {
        assert(i + 1 < context->registry.count);
        if (is_automatic && context->registry.candidates[i]->is_registered) {
            *problem_out = "the program registered a backend that comes before it";
            return NULL;
        }
    }
    return decided;
}

/*
 * Check the gates up to quarantine. *passed_out is false if one failed, which is set in the
 * candidate, or if the file is not the launcher's. The devices may be woken, because the launcher
 * decided that they are used.
 */
static int32_t check_gates(struct ds_accel__candidate *candidate,
                           const struct ds_accel__decision *decision, const char **problem_out)
{
    struct ds_accel__decision here = {0};
    bool passed;
    int32_t status = ds_accel__candidate_check_file(candidate, &passed);

    *problem_out = NULL;
    if (status >= 0 && passed) {
        identify_file(&candidate->file, &here);
        if (memcmp(&here.file, &decision->file, sizeof(here.file)) != 0) {
            *problem_out = "its plugin is another file, or was changed since";
            return DS_ACCEL_OK;
        }
        candidate->wish = DS_ACCEL__WISH_NAMED;
        status = ds_accel__gates_walk(candidate, DS_ACCEL__WHEN_TURN, &passed);
    }
    if (status >= 0 && !passed) {
        *problem_out = ds_accel__reason_code(candidate->reason);
    }
    return status;
}

/* Make the candidate available, with the verdict that the launcher obtained. */
static void take(struct ds_accel__candidate *candidate, const struct ds_accel__decision *decision)
{
    struct ds_accel_verdict *verdict = &candidate->verdict;

    memset(verdict, 0, sizeof(*verdict));
    verdict->struct_size = sizeof(*verdict);
    verdict->state = DS_ACCEL_PROBE_AVAILABLE;
    verdict->device_count = (uint32_t)decision->device_count;
    ds_accel__copy(verdict->variant, sizeof(verdict->variant), decision->variant);
    ds_accel__copy(verdict->detail, sizeof(verdict->detail), decision->detail);
    ds_accel__candidate_pass_plain(candidate, DS_ACCEL__GATE_PROBE,
                                   "probed by the launcher of this process");
    ds_accel__candidate_set(candidate, DS_ACCEL_STATE_AVAILABLE, DS_ACCEL__REASON_NONE, "%s",
                            decision->detail);
    ds_accel__candidate_enter(candidate, DS_ACCEL__PHASE_RECALLED);
}

/* Find and check the decided candidate. NULL with *problem_out if it cannot be used. */
static int32_t admit(ds_accel_t *context, const struct ds_accel__decision *decision,
                     struct ds_accel__candidate **candidate_out, const char **problem_out)
{
    struct ds_accel__candidate *candidate;
    int32_t status = compare(context, decision, problem_out);

    *candidate_out = NULL;
    if (status < 0 || *problem_out != NULL) {
        return status;
    }
    candidate = find(context, decision, problem_out);
    if (candidate == NULL) {
        return DS_ACCEL_OK;
    }
    if (ds_accel__candidate_inherited_from(candidate) != 0) {
        return ds_accel__candidate_fail_inherited(candidate);
    }
    ds_accel__candidate_forget(candidate); /* ds_accel_check() may have evaluated it before */
    status = check_gates(candidate, decision, problem_out);
    if (status < 0 || *problem_out != NULL) {
        candidate->wish = DS_ACCEL__WISH_TURN; /* detection checks it again, as any other */
        ds_accel__candidate_forget(candidate);
        return status;
    }
    take(candidate, decision);
    *candidate_out = candidate;
    return DS_ACCEL_OK;
}

int32_t ds_accel__decision_apply(ds_accel_t *context, struct ds_accel__decision *decision_out,
                                 struct ds_accel__candidate **candidate_out)
{
    const char *text = context->env.values[DS_ACCEL__VARIABLE_DECISION];
    const char *problem;
    int32_t status = DS_ACCEL_OK;

    *candidate_out = NULL;
    if (text == NULL) {
        return DS_ACCEL_OK;
    }
    problem = context->asks_anew ? "a report probes all plugins again"
                                 : ds_accel__decision_parse(text, decision_out);
    if (problem == NULL) {
        status = admit(context, decision_out, candidate_out, &problem);
    }
    if (status >= 0 && problem != NULL) {
        ds_accel__log(&context->log, "detect", DS_ACCEL_LOG_INFO,
                      "the launcher's decision is ignored: %s", problem);
    }
    return status;
}
