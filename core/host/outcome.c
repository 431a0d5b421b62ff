/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Errors and warnings if detection failed or fell back to cpu. The text describes the candidate
 * that was forced, with reason and remedy, or the best of the rejected candidates, with its reason.
 */
#include "host/outcome.h"
#include "base/text.h"
#include "config/config.h"
#include "host/context.h"
#include "host/registry.h"

#include <string.h>

/*
 * Collect at most limit names that exist: first those of the plugins that were found, which are
 * also added to the text plugins, then those of the configured backends. Returns their number.
 */
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

int32_t ds_accel__fail_unknown(ds_accel_t *context, const char *name, const char *source)
{
    const char *names[128];
    struct ds_accel__text plugins = {0};
    size_t count = collect_names(context, names, ARRAY_SIZE(names), &plugins);
    const char *nearest = ds_accel__nearest(name, names, count);
    const char *found = plugins.failed ? "" : plugins.data;

    if (ds_accel__config_get(&context->config, "backends", name, NULL) != NULL) {
        ds_accel__error(
            DS_ACCEL_ERR_NOT_USABLE,
            "%s is \"%s\", which has no plugin here: no_plugin: ds_accel_%s.so is in "
            "none of the directories searched; plugins found: %s. Remedy: %s",
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

int32_t ds_accel__fail_forced(const struct ds_accel__candidate *candidate, const char *source)
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

/* Log that the start failed, in the rehearsal or in this process. */
void ds_accel__warn_start_failed(const struct ds_accel__candidate *candidate)
{
    ds_accel__log(&candidate->host.context->log, "detect", DS_ACCEL_LOG_WARN,
                  "%s passed its probe but failed to start (%s: %s); going on to the next",
                  candidate->name, ds_accel__reason_code(candidate->reason),
                  ds_accel__candidate_detail(candidate));
}

/*
 * True if the candidate was probed or rejected, and is not available. A disabled candidate counts
 * only if with_disabled is true, a shadowed candidate never.
 */
static bool is_rejected(const struct ds_accel__candidate *candidate, bool with_disabled)
{
    return !ds_accel__candidate_is_available(candidate) &&
           candidate->state != DS_ACCEL_STATE_NOT_PROBED &&
           (with_disabled || candidate->state != DS_ACCEL_STATE_DISABLED) &&
           candidate->state != DS_ACCEL_STATE_SHADOWED;
}

/*
 * Find the first candidate rejected for a reason other than no_device; else the first candidate
 * rejected with no_device; else, if with_disabled is true, the first candidate disabled by "allow"
 * or "deny"; else NULL.
 */
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

/*
 * List the candidates that have no device on this machine, as in "xpu, npu or cuda". Returns their
 * number; 0 if memory is exhausted.
 */
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

void ds_accel__warn_fallback(const ds_accel_t *context)
{
    const struct ds_accel__candidate *best = best_rejected(context, false);
    struct ds_accel__text names = {0};

    if (!ds_accel__log_enabled(&context->log, "detect", DS_ACCEL_LOG_WARN)) {
        return; /* collecting hundreds of names takes time */
    }
    if (best == NULL) {
        ds_accel__log(&context->log, "detect", DS_ACCEL_LOG_INFO,
                      "cpu is used: no other accelerator has a plugin here");
    } else if (best->reason == DS_ACCEL__REASON_NO_DEVICE && list_absent(context, &names) > 1) {
        ds_accel__log(&context->log, "detect", DS_ACCEL_LOG_WARN,
                      "falling back to cpu: no_device: this machine has no device of %s (see "
                      "ds-accel explain)",
                      names.data);
    } else {
        ds_accel__log(&context->log, "detect", DS_ACCEL_LOG_WARN,
                      "falling back to cpu: %s is %s: %s%s%s (see ds-accel explain %s)", best->name,
                      ds_accel__state_name(best->state), ds_accel__reason_code(best->reason),
                      ds_accel__candidate_detail(best)[0] != '\0' ? ": " : "",
                      ds_accel__candidate_detail(best), best->name);
    }
    ds_accel__text_clear(&names);
}

/*
 * True if a candidate could not be probed because no process could be started or no descriptor was
 * free.
 */
static bool was_limited(const ds_accel_t *context)
{
    for (size_t i = 0; i < context->registry.count; i++) {
        if (context->registry.candidates[i]->reason == DS_ACCEL__REASON_HELPER_REFUSED) {
            return true;
        }
    }
    return false;
}

/* True if every candidate that was evaluated was rejected by the gate trust or hash. */
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

int32_t ds_accel__fail_none(const ds_accel_t *context)
{
    const struct ds_accel__candidate *best = best_rejected(context, true);

    if (best == NULL) {
        return ds_accel__error(
            DS_ACCEL_ERR_NO_DEVICE,
            "no accelerator can be used: no plugin is in the directories searched:\n%s",
            context->searched.data != NULL ? context->searched.data : "");
    }
    return ds_accel__error(all_refused(context)   ? DS_ACCEL_ERR_UNTRUSTED
                           : was_limited(context) ? DS_ACCEL_ERR_LIMIT
                                                  : DS_ACCEL_ERR_NO_DEVICE,
                           "no accelerator can be used: the best candidate, %s, is %s: %s: %s",
                           best->name, ds_accel__state_name(best->state),
                           ds_accel__reason_code(best->reason), ds_accel__candidate_detail(best));
}
