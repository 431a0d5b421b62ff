/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Contexts, which are created from options, environment, configuration and the plugins that were
 * found; and the default context.
 */
#include "host/context.h"
#include "base/file.h"
#include "base/fork.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/config.h"
#include "config/env.h"
#include "host/cache.h"
#include "host/hooks.h"
#include "host/layers.h"
#include "host/loader.h"
#include "host/probe.h"
#include "host/registry.h"
#include "machine/machine.h"
#include "machine/presence.h"
#include "machine/topology.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

ds_accel_t *ds_accel__default;

/* Held while the default context is created or set. */
static pthread_mutex_t default_lock = PTHREAD_MUTEX_INITIALIZER;

const char *ds_accel_version(void)
{
    return DS_ACCEL_VERSION;
}

int32_t ds_accel__options_read(const struct ds_accel_options *given,
                               struct ds_accel_options *options)
{
    memset(options, 0, sizeof(*options));
    options->struct_size = sizeof(*options);
    if (given == NULL) {
        return DS_ACCEL_OK;
    }
    if (given->struct_size < DS_ACCEL_SIZE_THROUGH(struct ds_accel_options, flags)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "options: struct_size is %u",
                               given->struct_size);
    }
    ds_accel_write(options, given, given->struct_size);
    if (options->plugin_dir_count > 0 && options->plugin_dirs == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "options: plugin_dirs is NULL, its count %u",
                               options->plugin_dir_count);
    }
    return DS_ACCEL_OK;
}

static int32_t copy_text(const char *text, char **copy_out)
{
    if (text != NULL && (*copy_out = strdup(text)) == NULL) {
        return ds_accel__no_memory();
    }
    return DS_ACCEL_OK;
}

/*
 * Return the directory below which the machine's files are read, from the program's option or the
 * environment; NULL: the machine itself.
 */
static const char *root_of(const ds_accel_t *context, const struct ds_accel_options *options)
{
    return options->machine_root != NULL ? options->machine_root
                                         : context->env.values[DS_ACCEL__VARIABLE_ROOT];
}

static int32_t keep_options(ds_accel_t *context, const struct ds_accel_options *options)
{
    const char *root = root_of(context, options);
    int32_t status = copy_text(options->accelerator, &context->forced);

    if (status >= 0) {
        status = copy_text(root != NULL ? root : "", &context->machine_root);
    }
    context->machine.root = context->machine_root;
    context->survey.machine = &context->machine;
    if (status >= 0) {
        status = copy_text(options->cache_dir, &context->cache_dir);
    }
    context->has_no_cache = (options->flags & DS_ACCEL_OPTION_NO_CACHE) != 0;
    if (status >= 0 && options->plugin_dir_count > 0) {
        context->plugin_dirs = calloc(options->plugin_dir_count, sizeof(char *));
        if (context->plugin_dirs == NULL) {
            return ds_accel__no_memory();
        }
    }
    for (uint32_t i = 0; i < options->plugin_dir_count && status >= 0; i++) {
        status = copy_text(options->plugin_dirs[i], &context->plugin_dirs[i]);
        context->plugin_dir_count += context->plugin_dirs[i] != NULL;
    }
    return status;
}

static void set_log(ds_accel_t *context, const struct ds_accel_options *options)
{
    const char *levels = options->log_levels;

    context->log.sink = options->log_sink;
    context->log.user_data = options->log_user_data;
    context->log.level = DS_ACCEL_LOG_WARN;
    if (levels == NULL) {
        levels = context->env.values[DS_ACCEL__VARIABLE_LOG];
    }
    if (levels != NULL) {
        ds_accel__log_set_levels(&context->log, levels);
    }
}

static int32_t check_root(const char *root)
{
    struct stat info;

    if (root == NULL || root[0] == '\0') {
        return DS_ACCEL_OK;
    }
    if (stat(root, &info) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "machine root %s: %s", root, strerror(errno));
    }
    return S_ISDIR(info.st_mode)
               ? DS_ACCEL_OK
               : ds_accel__error(DS_ACCEL_ERR_INVALID, "machine root %s is not a directory", root);
}

static int32_t check_env(const struct ds_accel__env *env)
{
    enum ds_accel__variable variable;
    const char *problem = ds_accel__env_problem(env, &variable);
    char text[256];

    if (problem == NULL && env->values[DS_ACCEL__VARIABLE_LAYERS] != NULL &&
        ds_accel__layers_problem(env->values[DS_ACCEL__VARIABLE_LAYERS], text, sizeof(text))) {
        variable = DS_ACCEL__VARIABLE_LAYERS;
        problem = text;
    }

    return problem == NULL ? DS_ACCEL_OK
                           : ds_accel__error(DS_ACCEL_ERR_CONFIG, "%s:1:1: it is \"%s\"; %s",
                                             ds_accel__variables[variable].name,
                                             env->values[variable], problem);
}

/* Add a variable's name to a list. A name that does not fit is omitted. */
static int32_t add_name(char ***names, size_t *count, const char *backend, const char *key)
{
    char name[128];
    char **larger;

    if (!ds_accel__env_option_name(backend, key, name, sizeof(name))) {
        return DS_ACCEL_OK;
    }
    larger = realloc(*names, (*count + 1) * sizeof(char *));
    if (larger == NULL) {
        return ds_accel__no_memory();
    }
    *names = larger;
    larger[*count] = strdup(name);
    if (larger[*count] == NULL) {
        return ds_accel__no_memory();
    }
    (*count)++;
    return DS_ACCEL_OK;
}

/*
 * Add the variables of a backend's declared options, or their common prefix if none are declared.
 */
static int32_t add_backend(const ds_accel_t *context, const char *backend, char ***names,
                           size_t *count)
{
    json_t *options = ds_accel__config_backend(&context->config, backend, "options");
    const char *key;
    json_t *ignored;
    int32_t status = DS_ACCEL_OK;

    if (json_object_size(options) == 0) {
        return add_name(names, count, backend, "");
    }
    json_object_foreach(options, key, ignored)
    {
        if (status >= 0) {
            status = add_name(names, count, backend, key);
        }
    }
    return status;
}

int32_t ds_accel__context_check_variables(const ds_accel_t *context,
                                          const struct ds_accel__log *log)
{
    json_t *backends = ds_accel__config_facts(&context->config, NULL);
    char **names = NULL;
    size_t count = 0;
    const char *backend;
    json_t *ignored;
    int32_t status = DS_ACCEL_OK;

    if (!ds_accel__env_has_others(&context->env)) {
        return DS_ACCEL_OK;
    }
    json_object_foreach(backends, backend, ignored)
    {
        if (status >= 0) {
            status = add_backend(context, backend, &names, &count);
        }
    }
    for (size_t i = 0; i < context->registry.count && status >= 0; i++) {
        status = add_backend(context, context->registry.candidates[i]->name, &names, &count);
    }
    if (status >= 0) {
        ds_accel__env_warn_unknown(&context->env, log, names, count);
    }
    ds_accel__names_free(names, count);
    return status;
}

/* Load the configuration from its files, or the stored configuration if the files are unchanged. */
static int32_t load_config(ds_accel_t *context, const struct ds_accel_options *options)
{
    int32_t status = ds_accel__config_find(&context->config, options, &context->env);

    if (status >= 0 && !context->has_no_cache) {
        status = ds_accel__snapshot_take(context);
    }
    return status < 0 || context->config.is_snapshot
               ? status
               : ds_accel__config_read(&context->config, false);
}

/* Return a number that identifies a context. Numbers are never reused, whereas addresses are. */
static uint64_t next_id(void)
{
    static uint64_t last;

    return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

static int32_t open_recording(ds_accel_t *context, const struct ds_accel_options *options)
{
    const struct ds_accel__source *source =
        __atomic_load_n(&ds_accel__recorded_source, __ATOMIC_ACQUIRE);

    return source != NULL ? source->open(context, options)
                          : ds_accel__tools_missing("a recorded machine");
}

static int32_t build(ds_accel_t *context, const struct ds_accel_options *options)
{
    int32_t status =
        ds_accel__env_read(&context->env, (options->flags & DS_ACCEL_OPTION_NO_ENVIRONMENT) != 0);

    if (status < 0) {
        return status;
    }
    set_log(context, options);
    status = check_env(&context->env);
    if (status < 0) {
        return status;
    }
    status = check_root(root_of(context, options));
    if (status >= 0) {
        status = keep_options(context, options);
    }
    if (status >= 0) {
        status = options->machine_file != NULL ? open_recording(context, options)
                                               : load_config(context, options);
    }
    if (status >= 0 && context->config.unread[0] != '\0') {
        ds_accel__log(&context->log, "config", DS_ACCEL_LOG_WARN, "ignored %s",
                      context->config.unread);
    }
    if (status >= 0 && context->config.file_count == 0) {
        ds_accel__log(&context->log, "config", DS_ACCEL_LOG_WARN,
                      "no configuration file was found, not even the shipped defaults");
    }
    if (status >= 0) {
        status = context->recording != NULL ? ds_accel__recorded_source->scan(context)
                                            : ds_accel__scan(context);
    }
    if (status >= 0) {
        status = ds_accel__registry_sort(context);
    }
    if (status >= 0) {
        status = ds_accel__context_check_variables(context, &context->log);
    }
    return status;
}

static void watch(ds_accel_t *context)
{
    context->watch.locks[0] = &context->lock;
    context->watch.locks[1] = &context->config_lock;
    context->watch.locks[2] = &context->topology_lock;
    context->watch.locks[3] = &context->device_lock;
    context->watch.locks[4] = &context->lazy.lock;
    assert(context->watch.table == NULL); /* a context has no table that a child must replace */
    ds_accel__fork_watch(&context->watch);
}

int32_t ds_accel_create(const struct ds_accel_options *given, ds_accel_t **context_out)
{
    struct ds_accel_options options;
    ds_accel_t *context;
    int32_t status = ds_accel__options_read(given, &options);

    if (context_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "context_out is NULL");
    }
    if (status < 0) {
        return status;
    }
    context = calloc(1, sizeof(*context));
    if (context == NULL) {
        return ds_accel__no_memory();
    }
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->config_lock, NULL);
    pthread_mutex_init(&context->topology_lock, NULL);
    pthread_mutex_init(&context->device_lock, NULL);
    pthread_mutex_init(&context->lazy.lock, NULL);
    watch(context);
    context->id = next_id();
    context->trust = ds_accel__trust_create();
    status = context->trust != NULL ? build(context, &options) : ds_accel__no_memory();
    if (status < 0) {
        ds_accel_destroy(context);
        return status;
    }
    *context_out = context;
    return DS_ACCEL_OK;
}

ds_accel_t *ds_accel__context_bare(const char *machine_root, bool ignores_env)
{
    ds_accel_t *context = calloc(1, sizeof(*context));

    if (context == NULL) {
        return NULL;
    }
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->config_lock, NULL);
    pthread_mutex_init(&context->topology_lock, NULL);
    pthread_mutex_init(&context->device_lock, NULL);
    pthread_mutex_init(&context->lazy.lock, NULL);
    context->id = next_id();
    context->machine_root = strdup(machine_root);
    if (context->machine_root == NULL || ds_accel__env_read(&context->env, ignores_env) < 0) {
        ds_accel_destroy(context);
        return NULL;
    }
    context->machine.root = context->machine_root;
    context->survey.machine = &context->machine;
    return context;
}

void ds_accel_destroy(ds_accel_t *context)
{
    /*
     * storage_count counts the storages of tensors, which other libraries may still use and which
     * need plugin and device. If there is one, the context is freed only together with the last of
     * them.
     */
    if (context != NULL && !ds_accel__end_is_refused(context, "destroy") &&
        __atomic_sub_fetch(&context->storage_count, 1, __ATOMIC_ACQ_REL) < 0) {
        ds_accel__context_end(context);
    }
}

void ds_accel__context_end(ds_accel_t *context)
{
    if (context->watch.is_torn) {
        ds_accel__runtime_hooks->ended(context, true);
        return; /* forked during a change; helpers and files belong to the parent */
    }
    ds_accel__fork_unwatch(&context->watch);
    ds_accel__runtime_hooks->ended(context, false);
    ds_accel__probe_finish(context);
    assert(context->prober == NULL);
    ds_accel__registry_clear(&context->registry);
    ds_accel__config_clear(&context->config);
    ds_accel__topology_clear(&context->topology);
    ds_accel__survey_clear(&context->survey);
    ds_accel__cache_clear(&context->cache);
    free(context->cache_dir);
    ds_accel__trust_destroy(context->trust);
    ds_accel__text_clear(&context->searched);
    ds_accel__env_clear(&context->env);
    ds_accel__names_free(context->plugin_dirs, context->plugin_dir_count);
    while (context->loaded != NULL) {
        struct ds_accel__loaded *next = context->loaded->next;

        free(context->loaded);
        context->loaded = next;
    }
    free(context->machine_root);
    json_decref(context->recording);
    free(context->forced);
    pthread_mutex_destroy(&context->lazy.lock);
    pthread_mutex_destroy(&context->device_lock);
    pthread_mutex_destroy(&context->topology_lock);
    pthread_mutex_destroy(&context->config_lock);
    pthread_mutex_destroy(&context->lock);
    free(context);
}

int32_t ds_accel_register(ds_accel_t *context, ds_accel_entry_v1_t entry)
{
    struct ds_accel__finding finding = {0};
    struct ds_accel__candidate *candidate;
    struct ds_accel__candidate *shadowed;
    const struct ds_accel_plugin *theirs;
    char name[DS_ACCEL__NAME_SIZE] = "";
    int32_t status;

    if (context == NULL || entry == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "context or entry is NULL");
    }
    status = ds_accel__context_check(context);
    if (status < 0) {
        return status;
    }
    candidate = ds_accel__candidate_create(context, "", "");
    if (candidate == NULL) {
        return ds_accel__no_memory();
    }
    candidate->is_registered = true;
    ds_accel__plugin_lock();
    theirs = entry(&candidate->host.abi);
    if (theirs == NULL) {
        ds_accel__finding_set(&finding, DS_ACCEL__REASON_ENTRY_REFUSED, "the entry returned NULL");
    } else {
        uint32_t size;

        memcpy(&size, theirs, sizeof(size));
        if (size >= DS_ACCEL_SIZE_THROUGH(struct ds_accel_plugin, name) && theirs->name != NULL) {
            snprintf(name, sizeof(name), "%.*s",
                     (int)strnlen(theirs->name, DS_ACCEL__NAME_SIZE - 1), theirs->name);
        }
        memcpy(candidate->name, name, sizeof(name));
        candidate->name_hash = ds_accel__hash_text(name, 0);
        ds_accel__table_import(theirs, name, &candidate->table, &finding);
    }
    ds_accel__plugin_unlock();
    if (finding.reason == DS_ACCEL__REASON_NONE && !ds_accel__is_backend_name(name)) {
        ds_accel__finding_set(&finding, DS_ACCEL__REASON_BAD_NAME,
                              "\"%s\" is not [a-z][a-z0-9_.]{0,30}", name);
    }
    if (finding.reason != DS_ACCEL__REASON_NONE) {
        ds_accel__candidate_destroy(candidate);
        return ds_accel__error(DS_ACCEL_ERR_ABI, "%s: %s: %s", name[0] != '\0' ? name : "(no name)",
                               ds_accel__reason_code(finding.reason), finding.detail);
    }
    candidate->has_table = true;
    candidate->note_features = candidate->table.required_features;
    snprintf(candidate->vendor, sizeof(candidate->vendor), "%s",
             candidate->table.vendor != NULL ? candidate->table.vendor : "");
    snprintf(candidate->version, sizeof(candidate->version), "%s",
             candidate->table.version != NULL ? candidate->table.version : "");
    snprintf(candidate->abi, sizeof(candidate->abi), "%u.%u", candidate->table.abi_major,
             candidate->table.abi_minor);
    ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_NAME, "registered by the program");
    ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_ENTRY, "called by ds_accel_register()");
    pthread_mutex_lock(&context->lock);
    if (context->selected != NULL || context->recording != NULL) {
        pthread_mutex_unlock(&context->lock);
        ds_accel__candidate_destroy(candidate);
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               context->recording != NULL
                                   ? "the machine is a recorded one: no plugin is run on it"
                                   : "the context has chosen already");
    }
    ds_accel__context_change_begin(context);
    shadowed = ds_accel__registry_find(&context->registry, name);
    status = ds_accel__registry_add(&context->registry, candidate);
    if (status >= 0 && shadowed != NULL) {
        ds_accel__finding_set(&finding, DS_ACCEL__REASON_SHADOWED,
                              "by a backend that the program registered");
        ds_accel__candidate_fail(shadowed, DS_ACCEL__GATE_NAME, DS_ACCEL_STATE_SHADOWED, &finding);
    }
    if (status >= 0) {
        status = ds_accel__registry_sort(context);
    }
    ds_accel__context_change_end(context);
    pthread_mutex_unlock(&context->lock);
    return status;
}

/* ---- default context ------------------------------------------------------------------------ */

ds_accel_t *ds_accel__get_first(void)
{
    ds_accel_t *context;

    ds_accel__fork_renew(&default_lock);
    pthread_mutex_lock(&default_lock);
    context = __atomic_load_n(&ds_accel__default, __ATOMIC_ACQUIRE);
    if (context == NULL && ds_accel_create(NULL, &context) >= 0) {
        if (ds_accel_detect(context) >= 0) {
            __atomic_store_n(&ds_accel__default, context, __ATOMIC_RELEASE);
        } else {
            ds_accel_destroy(context);
            context = NULL;
        }
    }
    pthread_mutex_unlock(&default_lock);
    return context;
}

int32_t ds_accel_set_default(ds_accel_t *context)
{
    int32_t status = ds_accel_detect(context);

    if (status < 0) {
        return status;
    }
    ds_accel__fork_renew(&default_lock);
    pthread_mutex_lock(&default_lock);
    if (ds_accel__default != NULL && ds_accel__default != context) {
        status = ds_accel__error(DS_ACCEL_ERR_STATE, "another context is the default already");
    } else {
        __atomic_store_n(&ds_accel__default, context, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&default_lock);
    return status;
}

/* ---- results -------------------------------------------------------------------------------- */

static const struct ds_accel__candidate *chosen(const ds_accel_t *context)
{
    return context != NULL ? __atomic_load_n(&context->selected, __ATOMIC_ACQUIRE) : NULL;
}

const char *ds_accel_name(const ds_accel_t *context)
{
    const struct ds_accel__candidate *candidate = chosen(context);

    return candidate != NULL ? candidate->name : NULL;
}

const char *ds_accel_set_method(const ds_accel_t *context)
{
    return chosen(context) != NULL ? context->set_method : NULL;
}

/*
 * Return the count even in a child that was forked during a change of the context (is_torn): a
 * single number is always valid.
 */
uint32_t ds_accel_candidate_count(ds_accel_t *context)
{
    uint32_t count;

    if (context == NULL) {
        return 0;
    }
    pthread_mutex_lock(&context->lock);
    count = (uint32_t)context->registry.count;
    pthread_mutex_unlock(&context->lock);
    return count;
}

int32_t ds_accel_candidate_get(ds_accel_t *context, uint32_t position,
                               struct ds_accel_candidate *candidate_out)
{
    struct ds_accel__candidate *candidate;
    struct ds_accel_candidate answer = {.struct_size = sizeof(answer)};
    int32_t status;

    if (context == NULL || candidate_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "context or candidate_out is NULL");
    }
    status = ds_accel__context_check(context);
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&context->lock);
    if (position >= context->registry.count) {
        pthread_mutex_unlock(&context->lock);
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "there is no candidate at position %u",
                               position);
    }
    candidate = context->registry.candidates[position];
    /* Copy the text: the configuration may change while callers still borrow it. */
    answer.remedy = ds_accel__candidate_keep(
        candidate, ds_accel__config_remedy(&context->config, candidate->name, candidate->reason));
    if (answer.remedy == NULL) {
        pthread_mutex_unlock(&context->lock);
        return ds_accel__no_memory();
    }
    answer.state = candidate->state;
    answer.device_count = candidate == context->selected ? context->device_count
                                                         : candidate->verdict.device_count;
    answer.elapsed_us = candidate->elapsed_us;
    answer.name = candidate->name;
    answer.path = candidate->path;
    answer.vendor = candidate->vendor;
    answer.version = candidate->version;
    answer.abi = candidate->abi;
    answer.state_name = ds_accel__state_name(candidate->state);
    answer.reason = ds_accel__reason_code(candidate->reason);
    answer.detail = candidate->detail != NULL ? candidate->detail : "";
    answer.stage = candidate->stage;
    ds_accel_write(candidate_out, &answer, sizeof(answer));
    pthread_mutex_unlock(&context->lock);
    return DS_ACCEL_OK;
}
