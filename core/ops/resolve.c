/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Where the kernel of an op comes from:
 *
 *     installed            kernel.c
 *       | there is no file
 *     recipe               recipe.c: the row of "kernels", sources, their digest
 *       | have this CPU and the devices what it requires?
 *     toolchain            toolchain.c; where there is none, the caches are searched all the same
 *     caches               search.c: same compilers and headers? -> file; undamaged?
 *       | there is none
 *     requirements         requires.c: libraries, headers, commands
 *     build                build.c: one process of this host; the others wait, then search
 */
#include "ops/resolve.h"
#include "base/json.h"
#include "base/text.h"
#include "base/trust.h"
#include "host/context.h"
#include "ops/allow.h"
#include "ops/compute.h"
#include "ops/requires.h"
#include "ops/resolution.h"

#include <stdlib.h>
#include <string.h>

/* ---- requirements ---------------------------------------------------------------------------- */

static int32_t resolve(struct ds_accel__resolution *resolution, const char *op);

/* Whether an op is being resolved, so that it requires itself. */
static bool is_required_by(const struct ds_accel__resolution *resolution, const char *op)
{
    for (; resolution != NULL; resolution = resolution->parent) {
        if (strcmp(resolution->recipe.op, op) == 0) {
            return true;
        }
    }
    return false;
}

static void explain_op(const struct ds_accel__resolved *resolved, const char *op, char *why,
                       size_t why_size)
{
    const struct ds_accel__finding *finding = &resolved->kernel.finding;

    snprintf(why, why_size, "the op %s cannot be loaded: %s", op,
             finding->reason != DS_ACCEL__REASON_NONE ? finding->detail
             : resolved->reason != NULL               ? resolved->reason
                                                      : "it is not installed and has no recipe");
}

/* An op that is required is installed, was built, or could be. */
static int32_t has_op(void *user_data, const char *op, char *why, size_t why_size)
{
    const struct ds_accel__resolution *parent = user_data;
    const struct ds_accel__resolve_options options = {.only_finds = true};
    struct ds_accel__resolved resolved;
    struct ds_accel__resolution resolution = {.parent = parent,
                                              .context = parent->context,
                                              .backend = parent->backend,
                                              .options = &options,
                                              .resolved = &resolved};
    bool has;
    int32_t status;

    if (is_required_by(parent, op)) {
        snprintf(why, why_size, "the op %s requires itself", op);
        return 0;
    }
    status = resolve(&resolution, op);
    has = status >= 0 && resolved.origin != DS_ACCEL__ORIGIN_NONE &&
          resolved.kernel.finding.reason == DS_ACCEL__REASON_NONE;
    if (status >= 0 && !has) {
        explain_op(&resolved, op, why, why_size);
    }
    ds_accel__resolved_clear(&resolved);
    return status < 0 ? status : has;
}

/* Fail with the requirements that are not met. */
static int32_t fail_requirements(struct ds_accel__resolution *resolution, const json_t *result)
{
    struct ds_accel__text text = {0};

    for (size_t i = 0; i < json_array_size(result); i++) {
        const json_t *entry = json_array_get(result, i);
        const char *remedy = ds_accel__json_string(entry, "remedy");

        if (!json_is_true(json_object_get(entry, "ok"))) {
            ds_accel__text_add(&text, "%s%s%s%s", text.size_bytes > 0 ? "; " : "",
                               ds_accel__json_string(entry, "reason"),
                               remedy[0] != '\0' ? ": " : "", remedy);
        }
    }
    resolution->resolved->origin = DS_ACCEL__ORIGIN_NONE;
    resolution->resolved->reason = ds_accel__text_take(&text);
    return resolution->resolved->reason != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

/* What is checked for each use: a file that was built elsewhere needs it as well. */
static const char *const members_of_use[] = {"cpu", DS_ACCEL__REQUIRES_COMPUTE};

/* The members of the recipe's requirements that each use needs. NULL: memory is exhausted. */
static json_t *requirements_of_use(const struct ds_accel__recipe *recipe)
{
    json_t *requires = json_object();
    bool failed = false;

    for (size_t i = 0; i < ARRAY_SIZE(members_of_use); i++) {
        json_t *member = json_object_get(recipe->requires, members_of_use[i]);

        if (json_is_array(member) || json_is_integer(member)) {
            ds_accel__json_set(requires, members_of_use[i], json_incref(member), &failed);
        }
    }
    if (failed) {
        json_decref(requires);
        requires = NULL;
    }
    return requires;
}

/* Check the CPU and the devices, of which the one with the lowest compute capability counts. */
static int32_t check_use(struct ds_accel__resolution *resolution, bool *met_out)
{
    json_t *requires = requirements_of_use(&resolution->recipe);
    struct ds_accel__requires_options options = {.has_op = NULL};
    json_t *result = NULL;
    int32_t status = requires != NULL ? DS_ACCEL_OK : ds_accel__no_memory();

    *met_out = true;
    if (status >= 0 && json_object_get(requires, DS_ACCEL__REQUIRES_COMPUTE) != NULL) {
        status = ds_accel__compute_major(resolution->context, resolution->backend,
                                         &resolution->compute_major);
        options.compute_major = resolution->compute_major;
    }
    if (status >= 0 && json_object_size(requires) > 0) {
        status = ds_accel__requires_check(requires, NULL, NULL, &options, &result);
    }
    if (status >= 0) {
        *met_out = ds_accel__requires_are_met(result);
        status = *met_out ? DS_ACCEL_OK : fail_requirements(resolution, result);
    }
    json_decref(result);
    json_decref(requires);
    return status;
}

/* The flags of probes: the recipe's, with absolute directories. NULL: memory is exhausted. */
static char **probe_flags(const struct ds_accel__recipe *recipe)
{
    struct ds_accel__arguments list = {0};

    ds_accel__arguments_add_all(&list, recipe->cflags);
    for (size_t i = 0; recipe->include_dirs[i] != NULL; i++) {
        const char *directory = recipe->include_dirs[i];

        if (directory[0] == '/') {
            ds_accel__arguments_add(&list, "-I%s", directory);
        } else {
            ds_accel__arguments_add(&list, "-I%s/%s", recipe->source_dir, directory);
        }
    }
    return ds_accel__arguments_take(&list);
}

static int32_t fail_toolchain(struct ds_accel__resolution *resolution)
{
    resolution->resolved->reason = strdup(resolution->toolchain.missing);
    return resolution->resolved->reason != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

static int32_t check_requirements(struct ds_accel__resolution *resolution, bool *met_out)
{
    const struct ds_accel__recipe *recipe = &resolution->recipe;
    const struct ds_accel__compiler *compiler =
        &resolution->toolchain.compilers[ds_accel__toolchain_linker(recipe)];
    const struct ds_accel__requires_options options = {.link_flags = recipe->ldflags,
                                                       .has_op = has_op,
                                                       .user_data = resolution,
                                                       .compute_major = resolution->compute_major};
    char **flags;
    int32_t status;

    *met_out = false;
    if (resolution->toolchain.missing[0] != '\0') {
        return fail_toolchain(resolution);
    }
    flags = probe_flags(recipe);
    status = flags != NULL ? ds_accel__requires_check(recipe->requires, compiler, flags, &options,
                                                      &resolution->resolved->requirements)
                           : ds_accel__no_memory();
    ds_accel__arguments_free(flags);
    if (status >= 0) {
        *met_out = ds_accel__requires_are_met(resolution->resolved->requirements);
        return *met_out ? DS_ACCEL_OK
                        : fail_requirements(resolution, resolution->resolved->requirements);
    }
    return ds_accel__resolution_is_fatal(status)
               ? status
               : ds_accel__resolution_fail(resolution, DS_ACCEL__ORIGIN_NONE);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Read the recipe. *has_out: there is one that can be followed. */
static int32_t read_recipe(struct ds_accel__resolution *resolution, const char *op, bool *has_out)
{
    ds_accel_t *context = resolution->context;
    int32_t status;

    *has_out = false;
    pthread_mutex_lock(&context->config_lock);
    status = ds_accel__config_complete(&context->config, NULL);
    if (status >= 0) {
        status =
            ds_accel__recipe_read(&context->config, resolution->backend, op, &resolution->recipe);
    }
    pthread_mutex_unlock(&context->config_lock);
    if (status == DS_ACCEL_ERR_NOT_FOUND) {
        return DS_ACCEL_OK;
    }
    if (status >= 0) {
        status = ds_accel__recipe_digest(&resolution->recipe, resolution->recipe_digest);
    }
    *has_out = status >= 0;
    return status >= 0 || ds_accel__resolution_is_fatal(status)
               ? status
               : ds_accel__resolution_fail(resolution, DS_ACCEL__ORIGIN_NONE);
}

/* Do not compile what the allow-list would refuse whatever its contents are. */
static int32_t check_allowed(struct ds_accel__resolution *resolution, bool *allowed_out)
{
    int32_t status = DS_ACCEL_OK;

    if (!resolution->options->builds_unlisted) {
        status = ds_accel__allow_expect(
            resolution->context, resolution->resolved->is_for_backend ? resolution->backend : NULL,
            resolution->recipe.op, &resolution->resolved->reason);
    }
    *allowed_out = status >= 0 && resolution->resolved->reason == NULL;
    return status;
}

static int32_t follow_recipe(struct ds_accel__resolution *resolution)
{
    bool met = false;
    bool found = false;
    int32_t status = check_use(resolution, &met);

    if (status < 0 || !met) {
        return status;
    }
    status = ds_accel__stores_locate(resolution->context, &resolution->stores);
    if (status >= 0) {
        status = ds_accel__toolchain_find(&resolution->recipe, &resolution->stores,
                                          &resolution->toolchain);
    }
    if (status < 0) {
        return ds_accel__resolution_is_fatal(status)
                   ? status
                   : ds_accel__resolution_fail(resolution, DS_ACCEL__ORIGIN_NONE);
    }
    /* Without a compiler, the file of any one is used; but not with one that cannot be run. */
    if (resolution->toolchain.missing[0] != '\0' && !resolution->toolchain.is_absent) {
        return fail_toolchain(resolution);
    }
    if (!resolution->options->is_forced) {
        status = ds_accel__resolution_search(resolution, &found);
    }
    if (status < 0 || found) {
        return status;
    }
    if (resolution->stores.writable == NULL) {
        ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED,
                        ds_accel__has_raised_rights()
                            ? "it is not built: a program with raised rights runs no compilers"
                            : "it is not built, because DS_ACCEL_CACHE does not let it be stored");
        return ds_accel__resolution_fail(resolution, DS_ACCEL__ORIGIN_NONE);
    }
    status = check_allowed(resolution, &met);
    if (status >= 0 && met) {
        status = check_requirements(resolution, &met);
    }
    if (status < 0 || !met) {
        return status;
    }
    if (resolution->options->only_finds) {
        status = ds_accel__store_check(resolution->stores.writable);
        if (status < 0) {
            return ds_accel__resolution_is_fatal(status)
                       ? status
                       : ds_accel__resolution_fail(resolution, DS_ACCEL__ORIGIN_NONE);
        }
        resolution->resolved->origin = DS_ACCEL__ORIGIN_BUILDABLE;
        return DS_ACCEL_OK;
    }
    return ds_accel__resolution_build(resolution);
}

/* Warn if what was built although there is a file is not what will be loaded. */
static int32_t warn_of_precedence(struct ds_accel__resolution *resolution)
{
    struct ds_accel__resolved *built = resolution->resolved;
    struct ds_accel__resolved used = {.origin = DS_ACCEL__ORIGIN_NONE};
    bool found = false;
    int32_t status =
        ds_accel__kernel_find(resolution->backend, resolution->recipe.op, &used.kernel);

    resolution->resolved = &used;
    if (status >= 0 && used.kernel.path == NULL) {
        status = ds_accel__resolution_search(resolution, &found);
    }
    resolution->resolved = built;
    if (status >= 0 && used.kernel.finding.reason != DS_ACCEL__REASON_NONE) {
        ds_accel__log(&resolution->context->log, "ops", DS_ACCEL_LOG_WARN,
                      "%s precedes %s, but is rejected: %s: remove it", used.kernel.path,
                      built->kernel.path, used.kernel.finding.detail);
    } else if (status >= 0 && used.kernel.path != NULL &&
               strcmp(used.kernel.path, built->kernel.path) != 0) {
        ds_accel__log(&resolution->context->log, "ops", DS_ACCEL_LOG_WARN,
                      "%s is used all the same: it precedes %s", used.kernel.path,
                      built->kernel.path);
    }
    ds_accel__resolved_clear(&used);
    return status;
}

static int32_t check_installed(struct ds_accel__resolution *resolution, const char *op)
{
    struct ds_accel__kernel *kernel = &resolution->resolved->kernel;

    return ds_accel__allow_check(
        resolution->context, kernel->is_for_backend ? resolution->backend : NULL, op, NULL, kernel);
}

/* Resolve an op as the members up to resolved say. */
static int32_t resolve(struct ds_accel__resolution *resolution, const char *op)
{
    const struct ds_accel__resolve_options *options = resolution->options;
    struct ds_accel__resolved *resolved = resolution->resolved;
    bool has_recipe = false;
    int32_t status = DS_ACCEL_OK;

    *resolved = (struct ds_accel__resolved){.origin = DS_ACCEL__ORIGIN_NONE};
    if (!options->is_forced) {
        status = ds_accel__kernel_find(resolution->backend, op, &resolved->kernel);
        if (status < 0 || resolved->kernel.path != NULL) {
            resolved->origin = DS_ACCEL__ORIGIN_INSTALLED;
            resolved->is_for_backend = resolved->kernel.is_for_backend;
            return status < 0 ? status : check_installed(resolution, op);
        }
    }
    status = read_recipe(resolution, op, &has_recipe);
    if (status >= 0 && has_recipe) {
        resolved->is_for_backend = strchr(resolution->recipe.name, '/') != NULL;
        status = follow_recipe(resolution);
    }
    if (status >= 0 && options->is_forced && resolved->origin == DS_ACCEL__ORIGIN_BUILT) {
        status = warn_of_precedence(resolution);
    }
    ds_accel__toolchain_keep(&resolution->toolchain, &resolution->stores);
    ds_accel__toolchain_clear(&resolution->toolchain);
    ds_accel__stores_clear(&resolution->stores);
    ds_accel__recipe_clear(&resolution->recipe);
    return status;
}

int32_t ds_accel__resolve(ds_accel_t *context, const char *backend, const char *op,
                          const struct ds_accel__resolve_options *options,
                          struct ds_accel__resolved *resolved)
{
    struct ds_accel__resolution resolution = {
        .context = context, .backend = backend, .options = options, .resolved = resolved};

    return resolve(&resolution, op);
}

void ds_accel__resolved_clear(struct ds_accel__resolved *resolved)
{
    ds_accel__failure_clear(resolved);
    free(resolved->kernel.path);
    json_decref(resolved->inputs);
    json_decref(resolved->requirements);
    *resolved = (struct ds_accel__resolved){.origin = DS_ACCEL__ORIGIN_NONE};
}
