/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Loads the files of ops.
 *
 *     "CPUAdamBuilder" -> row of the backend's table -> its "kernel", or else "op": "cpu_adam"
 *       -> resolve.c: installed, cached, or built now; load_cache.c: as the last time
 *       -> kernel.c: who could have changed it; is it undamaged, does it harm the process, has it
 *          this op's note; allow.c: does the configuration's list have it
 *       -> loader.c -> ds_accel_op_entry_v1() -> the table, whose head must agree with the note
 *       -> settings.c -> ds_accel_op_configure_v1(), with the configuration's settings of the op
 */
#include "base/json.h"
#include "base/text.h"
#include "host/context.h"
#include "host/loader.h"
#include "ops/allow.h"
#include "ops/load_cache.h"
#include "ops/op.h"
#include "ops/resolve.h"
#include "ops/settings.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ATTEMPTS 3

static int32_t reject(const struct ds_accel__kernel *kernel)
{
    const struct ds_accel__finding *finding = &kernel->finding;

    return ds_accel__error(
        finding->reason == DS_ACCEL__REASON_ABI_UNSUPPORTED ? DS_ACCEL_ERR_ABI
                                                            : DS_ACCEL_ERR_NOT_USABLE,
        "%s: %s: %s", kernel->path, ds_accel__reason_code(finding->reason), finding->detail);
}

/* Check the head of the table that the op returned: no member behind it is read here. */
static int32_t check_table(const char *path, const char *name, const struct ds_accel_op *op)
{
    if (op == NULL || op->struct_size < sizeof(*op) || op->name == NULL || op->paths == NULL ||
        op->path == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE, "%s: %s() returned no complete table", path,
                               DS_ACCEL_OP_ENTRY);
    }
    if (op->abi_major != DS_ACCEL_OP_ABI_MAJOR) {
        return ds_accel__error(DS_ACCEL_ERR_ABI, "%s: its table has generation %u, this host %u",
                               path, op->abi_major, DS_ACCEL_OP_ABI_MAJOR);
    }
    if (strcmp(op->name, name) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE, "%s: its table is that of \"%.31s\"", path,
                               op->name);
    }
    return DS_ACCEL_OK;
}

/* Warn if DS_ACCEL_OPS_ISA names another code path than calls take. An op with one path has no
 * choice. */
static void warn_of_path(const ds_accel_t *context, const struct ds_accel_op *op)
{
    const char *wanted = context->env.values[DS_ACCEL__VARIABLE_OPS_ISA];
    const char *const *paths = op->paths();
    struct ds_accel__text text = {0};
    char *list;

    if (wanted == NULL || strcmp(op->path(), wanted) == 0 || paths[0] == NULL || paths[1] == NULL) {
        return;
    }
    for (size_t i = 0; paths[i] != NULL; i++) {
        ds_accel__text_add(&text, "%s%s", i > 0 ? ", " : "", paths[i]);
    }
    list = ds_accel__text_take(&text);
    ds_accel__log(&context->log, "ops", DS_ACCEL_LOG_WARN,
                  "DS_ACCEL_OPS_ISA=%s: on this CPU, %s has %s; it uses %s", wanted, op->name,
                  list != NULL ? list : "others", op->path());
    free(list);
}

/* Log what was loaded, and the code path that calls take. */
static void log_loaded(const ds_accel_t *context, const char *path, enum ds_accel__origin origin,
                       const struct ds_accel_op *op)
{
    const char *found = origin == DS_ACCEL__ORIGIN_INSTALLED ? "installed"
                        : origin == DS_ACCEL__ORIGIN_BUILT   ? "built now"
                                                             : "cached";

    ds_accel__log(&context->log, "ops", DS_ACCEL_LOG_INFO, "%s loaded from %s (%s), code path %s",
                  op->name, path, found, op->path());
    warn_of_path(context, op);
}

/* Whether the context has loaded the op, also by another name. */
static bool is_loaded(ds_accel_t *context, const struct ds_accel_op *op)
{
    bool found = false;

    pthread_mutex_lock(&context->lock);
    for (struct ds_accel__loaded *loaded = context->loaded; loaded != NULL && !found;
         loaded = loaded->next) {
        found = loaded->op == op;
    }
    pthread_mutex_unlock(&context->lock);
    return found;
}

/* Load the checked file. It is never unloaded: OpenMP's threads may still be in its code. */
static int32_t load(ds_accel_t *context, struct ds_accel__kernel *kernel, const char *name,
                    enum ds_accel__origin origin, const struct ds_accel_op **op_out)
{
    union {
        void *address;
        ds_accel_op_entry_v1_fn call;
    } entry;
    const struct ds_accel_op *op;
    ds_accel__module_t *module;
    int32_t status = ds_accel__module_open(kernel->path, &module, &kernel->finding);

    if (status >= 0 && module != NULL) {
        ds_accel__trust_compare(kernel->path, &kernel->info, &kernel->finding);
    }
    if (status < 0 || kernel->finding.reason != DS_ACCEL__REASON_NONE) {
        ds_accel__module_close(module);
        return status < 0 ? status : reject(kernel);
    }
    entry.address = ds_accel__module_symbol(module, DS_ACCEL_OP_ENTRY);
    op = entry.address != NULL ? entry.call() : NULL;
    status = entry.address != NULL
                 ? check_table(kernel->path, name, op)
                 : ds_accel__error(DS_ACCEL_ERR_NOT_USABLE, "%s: it has no symbol %s", kernel->path,
                                   DS_ACCEL_OP_ENTRY);
    if (status < 0 || op == NULL) { /* the status is negative, too, if there is no table */
        ds_accel__module_close(module);
        return status;
    }
    status = is_loaded(context, op) ? DS_ACCEL_OK
                                    : ds_accel__op_configure(context, module, kernel->path, name);
    ds_accel__module_abandon(module);
    if (status >= 0) {
        log_loaded(context, kernel->path, origin, op);
        *op_out = op;
    }
    return status;
}

/*
 * Load the op from a cache, and set *again_out if it has to be built again. A file that another
 * process replaced after the check, such as one of another host, is looked up again.
 */
static int32_t load_cached(ds_accel_t *context, const char *op,
                           const struct ds_accel__resolve_options *options,
                           struct ds_accel__resolved *resolved, const struct ds_accel_op **op_out,
                           bool *again_out)
{
    int32_t status = DS_ACCEL_OK;

    for (int i = 0; i < ATTEMPTS; i++) {
        bool is_cached = status >= 0 && resolved->kernel.finding.reason == DS_ACCEL__REASON_NONE &&
                         (resolved->origin == DS_ACCEL__ORIGIN_CACHED ||
                          resolved->origin == DS_ACCEL__ORIGIN_BUILT);
        int32_t loaded = is_cached ? load(context, &resolved->kernel, op, resolved->origin, op_out)
                                   : DS_ACCEL_OK;

        *again_out = loaded < 0 && loaded != DS_ACCEL_ERR_NO_MEMORY;
        if (loaded == DS_ACCEL_ERR_NO_MEMORY) {
            return loaded; /* nothing is wrong with the file */
        }
        if (*again_out && resolved->origin == DS_ACCEL__ORIGIN_BUILT &&
            resolved->kernel.finding.reason != DS_ACCEL__REASON_FILE_CHANGED) {
            *again_out = false; /* building it again would not help */
        }
        if (!*again_out || resolved->kernel.finding.reason != DS_ACCEL__REASON_FILE_CHANGED) {
            return status;
        }
        ds_accel__resolved_clear(resolved);
        status = ds_accel__resolve(context, ds_accel_name(context), op, options, resolved);
    }
    return status;
}

/*
 * Load the op of a builder. *found_out: it has a kernel, or one that cannot be used. name: by which
 * the result is remembered; NULL: it is not.
 */
static int32_t load_one(ds_accel_t *context, const char *op, const char *name,
                        const struct ds_accel_op **op_out, bool *found_out)
{
    struct ds_accel__resolve_options options = {.jobs = 0};
    time_t since = time(NULL);
    struct ds_accel__resolved resolved;
    char rejected[65];
    bool again = false;
    int32_t status = ds_accel__resolve(context, ds_accel_name(context), op, &options, &resolved);

    *found_out = true;
    if (status >= 0) {
        status = load_cached(context, op, &options, &resolved, op_out, &again);
    }
    if (status >= 0 && again) {
        /* A library that it needs was replaced since, or it is from a machine that has another. */
        ds_accel__log(&context->log, "ops", DS_ACCEL_LOG_WARN, "%s; it is built again",
                      ds_accel_last_error());
        ds_accel__copy(rejected, sizeof(rejected), resolved.sha256);
        ds_accel__resolved_clear(&resolved);
        options.rejected = rejected;
        status = ds_accel__resolve(context, ds_accel_name(context), op, &options, &resolved);
    }
    if (status >= 0 && *op_out == NULL && resolved.kernel.path != NULL) {
        status = resolved.kernel.finding.reason != DS_ACCEL__REASON_NONE
                     ? reject(&resolved.kernel)
                     : load(context, &resolved.kernel, op, resolved.origin, op_out);
    } else if (status >= 0 && *op_out == NULL && resolved.origin == DS_ACCEL__ORIGIN_FAILED) {
        status = ds_accel__error(DS_ACCEL_ERR_NOT_USABLE,
                                 "the op %s could not be built: %s; `ds-accel ops build %s` shows "
                                 "more",
                                 op, resolved.reason, op);
    } else if (status >= 0 && *op_out == NULL) {
        *found_out = false;
        status =
            resolved.reason != NULL
                ? ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED,
                                  "there is no kernel of \"%s\" for %s: %s", op,
                                  ds_accel_name(context), resolved.reason)
                : ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED,
                                  "there is no kernel of \"%s\" for %s: `ds-accel ops show %s` has "
                                  "the reason",
                                  op, ds_accel_name(context), op);
    }
    if (status >= 0 && name != NULL && resolved.origin == DS_ACCEL__ORIGIN_CACHED) {
        ds_accel__load_cache_keep(context, ds_accel_name(context), name, op, since, &resolved);
    }
    ds_accel__resolved_clear(&resolved);
    return status;
}

/* Load the first of the builders that has a kernel. */
static int32_t load_of(ds_accel_t *context, const char *name, json_t *builders,
                       const struct ds_accel_op **op_out)
{
    int32_t status = DS_ACCEL_OK;
    bool found = false;

    for (size_t i = 0; i < json_array_size(builders) && !found; i++) {
        /* Of a later one nothing is remembered: the ones before could have a kernel next time. Nor
         * of a plugin's own: another plugin could have another op for it. */
        const json_t *builder = json_array_get(builders, i);
        bool is_kept = i == 0 && json_is_true(json_object_get(builder, "is_configured"));

        status = load_one(context, ds_accel__json_string(builder, "kernel"), is_kept ? name : NULL,
                          op_out, &found);
    }
    return status;
}

static const struct ds_accel_op *recall(ds_accel_t *context, const char *name)
{
    const struct ds_accel_op *op = NULL;

    pthread_mutex_lock(&context->lock);
    for (struct ds_accel__loaded *loaded = context->loaded; loaded != NULL && op == NULL;
         loaded = loaded->next) {
        op = strcmp(loaded->name, name) == 0 ? loaded->op : NULL;
    }
    pthread_mutex_unlock(&context->lock);
    return op;
}

/* Without memory, the op is resolved again the next time. */
static void remember(ds_accel_t *context, const char *name, const struct ds_accel_op *op)
{
    struct ds_accel__loaded *loaded = malloc(sizeof(*loaded) + strlen(name) + 1);

    if (loaded != NULL) {
        loaded->op = op;
        memcpy(loaded->name, name, strlen(name) + 1);
        pthread_mutex_lock(&context->lock);
        loaded->next = context->loaded;
        context->loaded = loaded;
        pthread_mutex_unlock(&context->lock);
    }
}

/* Load an installed op by its own name, without the configuration's table of builders. */
static int32_t load_installed(ds_accel_t *context, const char *name,
                              const struct ds_accel_op **op_out, bool *found_out)
{
    struct ds_accel__kernel kernel;
    int32_t status = ds_accel__kernel_find(ds_accel_name(context), name, &kernel);

    *found_out = status >= 0 && kernel.path != NULL;
    if (status >= 0) {
        status = ds_accel__allow_check(
            context, kernel.is_for_backend ? ds_accel_name(context) : NULL, name, NULL, &kernel);
    }
    if (status >= 0 && *found_out) {
        status = kernel.finding.reason != DS_ACCEL__REASON_NONE
                     ? reject(&kernel)
                     : load(context, &kernel, name, DS_ACCEL__ORIGIN_INSTALLED, op_out);
    }
    free(kernel.path);
    return status;
}

/* Load the file that was loaded the last time. *op_out stays NULL if that is not known. */
static int32_t load_remembered(ds_accel_t *context, const char *name,
                               const struct ds_accel_op **op_out)
{
    struct ds_accel__kernel kernel;
    char op[DS_ACCEL__OP_NAME_SIZE];
    int32_t status = ds_accel__load_cache_find(context, ds_accel_name(context), name, op, &kernel);

    if (status >= 0 && kernel.path != NULL) {
        status = load(context, &kernel, op, DS_ACCEL__ORIGIN_CACHED, op_out);
        if (status < 0 && status != DS_ACCEL_ERR_NO_MEMORY) {
            *op_out = NULL; /* what is wrong with it, and what to do, is found out by a search */
            status = DS_ACCEL_OK;
        }
    }
    free(kernel.path);
    return status;
}

static int32_t find_and_load(ds_accel_t *context, const char *name,
                             const struct ds_accel_op **op_out)
{
    json_t *builders = NULL;
    bool found = false;
    int32_t status = load_installed(context, name, op_out, &found);

    /* With an allow-list, each load reads the file. */
    if (status >= 0 && !found && !ds_accel__allow_is_on(context)) {
        status = load_remembered(context, name, op_out);
    }
    if (status >= 0 && !found && *op_out == NULL) {
        status = ds_accel__kernel_builders(context, NULL, name, &builders);
        if (status >= 0) {
            status = load_of(context, name, builders, op_out);
        }
    }
    json_decref(builders);
    if (status >= 0) {
        remember(context, name, *op_out);
    }
    return status;
}

int32_t ds_accel_op_load(ds_accel_t *context, const char *name, const struct ds_accel_op **op_out)
{
    int32_t status;

    if (op_out != NULL) {
        *op_out = NULL;
    }
    if (context == NULL || name == NULL || op_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "context, name or op_out is NULL");
    }
    status = ds_accel_detect(context);
    if (status < 0) {
        return status;
    }
    if (context->recording != NULL) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE,
                               "the machine is a recorded one: its ops cannot be loaded here");
    }
    *op_out = recall(context, name);
    return *op_out != NULL ? DS_ACCEL_OK : find_and_load(context, name, op_out);
}
