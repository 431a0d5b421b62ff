/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The reports detect, list, explain, config, config_env and config_check as JSON trees.
 * report/report_text.c makes the text of a report from the same tree, so that both forms always
 * agree.
 */
#include "runtime/report.h"
#include "base/json.h"
#include "base/text.h"
#include "config/config.h"
#include "config/env.h"
#include "host/context.h"
#include "host/detect.h"
#include "host/evaluate.h"
#include "host/hooks.h"
#include "host/registry.h"
#include "runtime/facts.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

const struct ds_accel__report_tools *ds_accel__report_tools;

static const struct ds_accel__report_tools *tools_get(void)
{
    return __atomic_load_n(&ds_accel__report_tools, __ATOMIC_ACQUIRE);
}

static void set_text(json_t *object, const char *key, const char *text, bool *failed)
{
    ds_accel__json_set(object, key, ds_accel__json_text(text), failed);
}

static void append(json_t *array, json_t *value, bool *failed)
{
    if (json_array_append_new(array, value) != 0) {
        *failed = true;
    }
}

static json_t *new_report(bool *failed)
{
    json_t *tree = json_object();

    ds_accel__json_set(tree, "schema_version", json_integer(1), failed);
    return tree;
}

static json_t *finish(json_t *tree, bool failed)
{
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

/* ---- detect, list, explain ------------------------------------------------------------------ */

static json_t *plugin_tree(const struct ds_accel__candidate *candidate, bool *failed)
{
    json_t *tree = json_object();

    set_text(tree, "path", candidate->path, failed);
    set_text(tree, "version", candidate->version, failed);
    set_text(tree, "vendor", candidate->vendor, failed);
    set_text(tree, "abi", candidate->abi, failed);
    return tree;
}

static json_t *detect_candidates(const ds_accel_t *context, bool *failed)
{
    json_t *array = json_array();

    for (size_t i = 0; i < context->registry.count; i++) {
        const struct ds_accel__candidate *candidate = context->registry.candidates[i];
        json_t *tree = json_object();

        set_text(tree, "name", candidate->name, failed);
        set_text(tree, "state", ds_accel__state_name(candidate->state), failed);
        set_text(tree, "reason", ds_accel__reason_code(candidate->reason), failed);
        set_text(tree, "detail", candidate->detail, failed);
        set_text(tree, "stage", candidate->stage, failed);
        ds_accel__json_set(tree, "elapsed_us", json_integer((json_int_t)candidate->elapsed_us),
                           failed);
        append(array, tree, failed);
    }
    return array;
}

/* Make the report "detect". Only the JSON form contains the accelerator's facts: the text does not
 * show them, and reading them needs plugin calls. */
static json_t *report_detect(ds_accel_t *context, bool is_json)
{
    struct ds_accel__candidate *chosen = context->chosen;
    struct ds_accel__facts facts;
    bool failed = false;
    json_t *tree = new_report(&failed);

    if (!is_json) {
        set_text(tree, "accelerator", chosen != NULL ? chosen->name : "", &failed);
        return finish(tree, failed);
    }
    if (chosen != NULL) {
        ds_accel__facts_read(&facts, context, chosen->name, chosen, chosen->instance);
        set_text(tree, "accelerator", chosen->name, &failed);
        set_text(tree, "set_method", context->set_method, &failed);
        ds_accel__json_set(tree, "device_count", json_integer(context->device_count), &failed);
        ds_accel__json_set(
            tree, "communication_backend",
            ds_accel__fact(&facts, "communication_backend",
                           facts.info.communication_backend[0] != '\0'
                               ? ds_accel__json_text(facts.info.communication_backend)
                               : NULL),
            &failed);
        ds_accel__json_set(tree, "compile_backend",
                           ds_accel__fact(&facts, "compile_backend",
                                          facts.info.compile_backend[0] != '\0'
                                              ? ds_accel__json_text(facts.info.compile_backend)
                                              : NULL),
                           &failed);
        ds_accel__json_set(tree, "plugin", plugin_tree(chosen, &failed), &failed);
    } else {
        static const char *const keys[] = {"accelerator",     "set_method",
                                           "device_count",    "communication_backend",
                                           "compile_backend", "plugin"};

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
            ds_accel__json_set(tree, keys[i], json_null(), &failed);
        }
    }
    set_text(tree, "failure", context->failure, &failed);
    ds_accel__json_set(tree, "candidates", detect_candidates(context, &failed), &failed);
    return finish(tree, failed);
}

static void set_head(json_t *tree, const struct ds_accel__candidate *candidate, bool *failed)
{
    set_text(tree, "name", candidate->name, failed);
    set_text(tree, "path", candidate->path, failed);
    set_text(tree, "vendor", candidate->vendor, failed);
    set_text(tree, "version", candidate->version, failed);
    set_text(tree, "abi", candidate->abi, failed);
    set_text(tree, "state", ds_accel__state_name(candidate->state), failed);
    set_text(tree, "reason", ds_accel__reason_code(candidate->reason), failed);
    set_text(tree, "detail", candidate->detail, failed);
}

static json_t *report_list(const ds_accel_t *context)
{
    bool failed = false;
    json_t *tree = new_report(&failed);
    json_t *array = json_array();

    for (size_t i = 0; i < context->registry.count; i++) {
        json_t *plugin = json_object();

        set_head(plugin, context->registry.candidates[i], &failed);
        append(array, plugin, &failed);
    }
    ds_accel__json_set(tree, "plugins", array, &failed);
    return finish(tree, failed);
}

static json_t *gates_tree(const struct ds_accel__candidate *candidate, bool *failed)
{
    static const char *const results[] = {"skipped", "passed", "failed"};
    json_t *array = json_array();

    for (int gate = 0; gate < DS_ACCEL__GATE_COUNT; gate++) {
        json_t *tree = json_object();

        set_text(tree, "gate", ds_accel__gate_name(gate), failed);
        set_text(tree, "result", results[candidate->gates[gate].result], failed);
        set_text(tree, "evidence", candidate->gates[gate].evidence, failed);
        append(array, tree, failed);
    }
    return array;
}

/* Return the backends that have no plugin file, which is the most likely reason why a backend is
 * missing. name NULL: check all backends of the detection order; otherwise only the named
 * backend. */
static json_t *without_plugin(const ds_accel_t *context, const char *name, bool *failed)
{
    json_t *order = ds_accel__config_get(&context->config, "detection_order", NULL);
    json_t *array = json_array();

    if (name != NULL) {
        if (ds_accel__registry_find(&context->registry, name) == NULL) {
            append(array, ds_accel__json_text(name), failed);
        }
        return array;
    }
    for (size_t i = 0; i < json_array_size(order); i++) {
        json_t *listed = json_array_get(order, i);

        if (ds_accel__registry_find(&context->registry, json_string_value(listed)) == NULL) {
            append(array, json_incref(listed), failed);
        }
    }
    return array;
}

static json_t *searched_tree(const ds_accel_t *context, bool *failed)
{
    const char *at = context->searched.data != NULL ? context->searched.data : "";
    json_t *array = json_array();

    while (*at != '\0') {
        size_t length = strcspn(at, "\n");
        char *dir = strndup(at, length);

        append(array, dir != NULL ? ds_accel__json_text(dir) : NULL, failed);
        free(dir);
        at += length + (at[length] == '\n');
    }
    return array;
}

static json_t *report_explain(const ds_accel_t *context, const char *name)
{
    bool failed = false;
    json_t *tree = new_report(&failed);
    json_t *array = json_array();

    ds_accel__json_set(tree, "accelerator",
                       context->chosen != NULL ? ds_accel__json_text(context->chosen->name)
                                               : json_null(),
                       &failed);
    ds_accel__json_set(
        tree, "set_method",
        context->chosen != NULL ? ds_accel__json_text(context->set_method) : json_null(), &failed);
    set_text(tree, "failure", context->failure, &failed);
    for (size_t i = 0; i < context->registry.count; i++) {
        const struct ds_accel__candidate *candidate = context->registry.candidates[i];
        const struct ds_accel__reason *reason = ds_accel__reason(candidate->reason);
        json_t *entry;

        if (name != NULL && strcmp(name, candidate->name) != 0) {
            continue;
        }
        entry = json_object();
        set_head(entry, candidate, &failed);
        set_text(entry, "meaning", reason->meaning, &failed);
        set_text(entry, "remedy",
                 ds_accel__config_remedy(&context->config, candidate->name, candidate->reason),
                 &failed);
        set_text(entry, "stage", candidate->stage, &failed);
        ds_accel__json_set(entry, "elapsed_us", json_integer((json_int_t)candidate->elapsed_us),
                           &failed);
        ds_accel__json_set(entry, "demand_only", json_boolean(candidate->is_demand_only), &failed);
        ds_accel__json_set(entry, "cached",
                           json_boolean(candidate->phase == DS_ACCEL__PHASE_RECALLED), &failed);
        ds_accel__json_set(entry, "strikes", json_integer(candidate->strikes), &failed);
        ds_accel__json_set(entry, "gates", gates_tree(candidate, &failed), &failed);
        set_text(entry, "output", candidate->output, &failed);
        append(array, entry, &failed);
    }
    ds_accel__json_set(tree, "candidates", array, &failed);
    ds_accel__json_set(tree, "without_plugin", without_plugin(context, name, &failed), &failed);
    set_text(tree, "remedy",
             name != NULL && ds_accel__registry_find(&context->registry, name) == NULL
                 ? ds_accel__config_remedy(&context->config, name, DS_ACCEL__REASON_NO_PLUGIN)
                 : "",
             &failed);
    ds_accel__json_set(tree, "searched", searched_tree(context, &failed), &failed);
    return finish(tree, failed);
}

/* ---- configuration -------------------------------------------------------------------------- */

/* Return the configuration files. first: the first layer to include. */
static json_t *files_tree(const struct ds_accel__config *config, enum ds_accel__config_layer first,
                          bool *failed)
{
    json_t *array = json_array();

    for (size_t i = 0; i < config->file_count; i++) {
        json_t *file;

        if (config->files[i].layer < first) {
            continue;
        }
        file = json_object();

        set_text(file, "path", config->files[i].path, failed);
        set_text(file, "layer", ds_accel__config_layer_name(config->files[i].layer), failed);
        append(array, file, failed);
    }
    return array;
}

struct config_walk {
    const struct ds_accel__config *config;
    json_t *values;
    bool failed;
};

static void walk_config(struct config_walk *walk, json_t *value, const char *key,
                        const char *pointer);

static void walk_members(struct config_walk *walk, json_t *object, const char *key,
                         const char *pointer)
{
    const char *name;
    json_t *member;

    json_object_foreach(object, name, member)
    {
        const char *quote = strpbrk(name, ".\" ") != NULL ? "\"" : "";
        char *below =
            ds_accel__format("%s%s%s%s%s", key, key[0] != '\0' ? "." : "", quote, name, quote);
        char path[1024];

        snprintf(path, sizeof(path), "%s", pointer);
        if (below == NULL) {
            walk->failed = true;
        } else if (ds_accel__pointer_append(path, sizeof(path), name)) {
            walk_config(walk, member, below, path);
        }
        free(below);
    }
}

/* Add the entry of a value, or, for an object, the entries of its members. key is shown; pointer is
 * the JSON pointer for looking up the origin. */
static void walk_config(struct config_walk *walk, json_t *value, const char *key,
                        const char *pointer)
{
    char *origin;
    json_t *entry;

    if (json_is_object(value) && (json_object_size(value) > 0 || key[0] == '\0')) {
        walk_members(walk, value, key, pointer);
        return;
    }
    origin = ds_accel__config_origin(walk->config, pointer);
    entry = json_object();
    set_text(entry, "key", key, &walk->failed);
    ds_accel__json_set(entry, "value", json_incref(value), &walk->failed);
    set_text(entry, "origin", origin, &walk->failed);
    append(walk->values, entry, &walk->failed);
    free(origin);
}

static json_t *report_config(const ds_accel_t *context)
{
    struct config_walk walk = {.config = &context->config, .values = json_array()};
    json_t *tree = new_report(&walk.failed);

    ds_accel__json_set(tree, "files",
                       files_tree(&context->config, DS_ACCEL__CONFIG_LAYER_PACKAGE, &walk.failed),
                       &walk.failed);
    walk_config(&walk, context->config.merged, "", "");
    ds_accel__json_set(tree, "values", walk.values, &walk.failed);
    return finish(tree, walk.failed);
}

static json_t *report_config_env(const ds_accel_t *context)
{
    bool failed = false;
    json_t *tree = new_report(&failed);
    json_t *array = json_array();

    for (size_t i = 0; i < DS_ACCEL__VARIABLE_COUNT; i++) {
        const struct ds_accel__variable_info *info = &ds_accel__variables[i];
        const char *value = context->env.values[i];
        const char *shown = value != NULL ? value : info->default_value;
        json_t *entry = json_object();

        set_text(entry, "name", info->name, &failed);
        ds_accel__json_set(entry, "value", shown != NULL ? ds_accel__json_text(shown) : json_null(),
                           &failed);
        set_text(entry, "origin",
                 value != NULL          ? "environment"
                 : context->env.ignored ? "ignored"
                                        : "default",
                 &failed);
        ds_accel__json_set(entry, "default",
                           info->default_value != NULL ? ds_accel__json_text(info->default_value)
                                                       : json_null(),
                           &failed);
        set_text(entry, "help", info->help, &failed);
        append(array, entry, &failed);
    }
    ds_accel__json_set(tree, "variables", array, &failed);
    return finish(tree, failed);
}

static json_t *report_config_check(const struct ds_accel__config *config,
                                   enum ds_accel__config_layer first)
{
    bool failed = false;
    json_t *tree = new_report(&failed);
    json_t *array = json_array();

    ds_accel__json_set(tree, "valid", json_boolean(config->problem_count == 0), &failed);
    ds_accel__json_set(tree, "files", files_tree(config, first, &failed), &failed);
    for (size_t i = 0; i < config->problem_count; i++) {
        const struct ds_accel__config_problem *problem = &config->problems[i];
        json_t *entry = json_object();

        set_text(entry, "file", problem->file, &failed);
        ds_accel__json_set(entry, "line", json_integer(problem->line), &failed);
        ds_accel__json_set(entry, "column", json_integer(problem->column), &failed);
        set_text(entry, "message", problem->message, &failed);
        append(array, entry, &failed);
    }
    ds_accel__json_set(tree, "problems", array, &failed);
    return finish(tree, failed);
}

/* Write the report on the check of a configuration, and clear config. status: the result of the
 * check; if it is an error other than ERR_CONFIG, no report is written. Returns status, unless the
 * report cannot be written. */
static int32_t write_check(struct ds_accel__config *config, int32_t status,
                           enum ds_accel__config_layer first, uint32_t format, char **text_out)
{
    if (status >= 0 || status == DS_ACCEL_ERR_CONFIG) {
        int32_t written = ds_accel__report_write(
            DS_ACCEL__REPORT_CONFIG_CHECK, report_config_check(config, first), format, text_out);

        status = written < 0 ? written : status;
    }
    ds_accel__config_clear(config);
    return status;
}

int32_t ds_accel_config_check(const struct ds_accel_options *given, uint32_t format,
                              char **text_out)
{
    struct ds_accel_options options;
    struct ds_accel__config config;
    struct ds_accel__env env;
    enum ds_accel__variable variable;
    const char *problem;
    int32_t status;

    if (text_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "text_out is NULL");
    }
    status = ds_accel__options_read(given, &options);
    if (status < 0) {
        return status;
    }
    status = ds_accel__env_read(&env, (options.flags & DS_ACCEL_OPTION_NO_ENVIRONMENT) != 0);
    if (status < 0) {
        return status;
    }
    status = ds_accel__config_find(&config, &options, &env);
    status = status < 0 ? status : ds_accel__config_read(&config, true);
    status = status < 0 ? status : ds_accel__config_check_whole(&config);
    problem = ds_accel__env_problem(&env, &variable);
    if ((status >= 0 || status == DS_ACCEL_ERR_CONFIG) && problem != NULL) {
        int32_t added =
            ds_accel__config_add_problem(&config, ds_accel__variables[variable].name, problem);

        status = added < 0 ? added : DS_ACCEL_ERR_CONFIG;
    }
    status = write_check(&config, status, DS_ACCEL__CONFIG_LAYER_PACKAGE, format, text_out);
    ds_accel__env_clear(&env);
    return status;
}

int32_t ds_accel_config_check_files(const struct ds_accel_options *given, const char *const *paths,
                                    const char *const *texts, uint32_t count, uint32_t format,
                                    char **text_out)
{
    struct ds_accel_options options;
    struct ds_accel__config config;
    int32_t status;

    if (text_out == NULL || (paths == NULL && count > 0)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "paths or text_out is NULL");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (paths[i] == NULL) {
            return ds_accel__error(DS_ACCEL_ERR_INVALID, "a path is NULL");
        }
    }
    status = ds_accel__options_read(given, &options);
    if (status < 0) {
        return status;
    }
    status = ds_accel__config_find_named(&config, &options, paths, texts, count);
    status = status < 0 ? status : ds_accel__config_read(&config, true);
    status = status < 0 ? status : ds_accel__config_check_whole(&config);
    return write_check(&config, status, DS_ACCEL__CONFIG_LAYER_EXPLICIT, format, text_out);
}

/* ---- writing -------------------------------------------------------------------------------- */

static int32_t write_json(json_t *tree, char **text_out)
{
    struct ds_accel__text text = {0};
    char *dump = ds_accel__json_dump(tree, JSON_INDENT(2));

    if (dump != NULL) {
        ds_accel__text_add_printable_json(&text, dump);
        ds_accel__text_add(&text, "\n");
    }
    free(dump);
    *text_out = dump != NULL ? ds_accel__text_take(&text) : NULL;
    return *text_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

int32_t ds_accel__report_write(uint32_t report, json_t *tree, uint32_t format, char **text_out)
{
    const struct ds_accel__report_tools *tools = tools_get();
    int32_t status;

    *text_out = NULL;
    if (tree == NULL) {
        return ds_accel__no_memory();
    }
    if ((format & DS_ACCEL_FORMAT_JSON) != 0) {
        status = write_json(tree, text_out);
    } else if (tools == NULL) {
        status = ds_accel__tools_missing("the text of a report");
    } else {
        *text_out = tools->write(report, tree, format);
        status = *text_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    json_decref(tree);
    return status;
}

/* Whether libds_accel_tools.so makes the report. */
static bool is_of_tools(uint32_t report)
{
    return report == DS_ACCEL_REPORT_DOCTOR || report == DS_ACCEL_REPORT_CACHE ||
           report == DS_ACCEL_REPORT_QUARANTINE || report == DS_ACCEL_REPORT_TOPO ||
           report == DS_ACCEL_REPORT_BUNDLE || report == DS_ACCEL_REPORT_RECORDING ||
           report == DS_ACCEL_REPORT_MEMORY;
}

/* Check before detection whether the report can be written. */
static int32_t check_tools(uint32_t report, uint32_t format)
{
    if (tools_get() != NULL) {
        return DS_ACCEL_OK;
    }
    if (is_of_tools(report)) {
        return ds_accel__tools_missing("this report");
    }
    return (format & DS_ACCEL_FORMAT_JSON) != 0 ? DS_ACCEL_OK
                                                : ds_accel__tools_missing("the text of a report");
}

/* Whether the report can describe a failed detection. Such a report is written even if detection
 * fails. */
static bool tells_failure(uint32_t report)
{
    return report == DS_ACCEL_REPORT_DETECT || report == DS_ACCEL_REPORT_EXPLAIN ||
           report == DS_ACCEL_REPORT_DOCTOR || report == DS_ACCEL_REPORT_BUNDLE;
}

/* Whether the option, the environment or the configuration forces an accelerator. */
static bool is_forced(ds_accel_t *context)
{
    bool is_configured;

    pthread_mutex_lock(&context->config_lock);
    is_configured = ds_accel__config_string(&context->config, "accelerator") != NULL;
    pthread_mutex_unlock(&context->config_lock);
    return context->forced != NULL || context->env.values[DS_ACCEL__VARIABLE_ACCELERATOR] != NULL ||
           is_configured;
}

/* Whether the report is a topo report about all usable backends: it has no name, and no backend is
 * forced. */
static bool is_topo_of_all(ds_accel_t *context, uint32_t report, const char *name)
{
    return report == DS_ACCEL_REPORT_TOPO && name == NULL && !is_forced(context);
}

/* Whether the report calls functions of plugins, so that ds_accel_detect() starts the chosen plugin
 * in this process; other reports use the results of the probe in the helper process. */
static bool opens_devices(uint32_t report)
{
    return report == DS_ACCEL_REPORT_INFO || report == DS_ACCEL_REPORT_MEMORY ||
           report == DS_ACCEL_REPORT_BUNDLE || report == DS_ACCEL_REPORT_TOPO ||
           report == DS_ACCEL_REPORT_ENV;
}

/* Run the detection and checks that a report needs. */
static int32_t prepare(ds_accel_t *context, uint32_t report, const char *name)
{
    int32_t status = DS_ACCEL_OK;
    bool needs_choice = tells_failure(report) ||
                        ((report == DS_ACCEL_REPORT_INFO || report == DS_ACCEL_REPORT_ENV ||
                          report == DS_ACCEL_REPORT_MEMORY || report == DS_ACCEL_REPORT_TOPO) &&
                         name == NULL && !is_topo_of_all(context, report, name));

    if (needs_choice) {
        status = opens_devices(report) ? ds_accel_detect(context) : ds_accel__choose(context);
        if (status == DS_ACCEL_ERR_NO_MEMORY || (status < 0 && !tells_failure(report))) {
            return status;
        }
    }
    if (report == DS_ACCEL_REPORT_LIST || report == DS_ACCEL_REPORT_EXPLAIN ||
        report == DS_ACCEL_REPORT_DOCTOR || report == DS_ACCEL_REPORT_BUNDLE ||
        is_topo_of_all(context, report, name)) {
        /* The reports that explain the state of devices must not wake a sleeping device (argument
         * false). */
        int32_t checked = ds_accel__check(context, name, false);

        /* If only the configuration has this backend, the report explains that the plugin is
         * missing. */
        if (checked == DS_ACCEL_ERR_NOT_FOUND && report == DS_ACCEL_REPORT_EXPLAIN) {
            pthread_mutex_lock(&context->config_lock);
            if (ds_accel__config_get(&context->config, "backends", name, NULL) != NULL) {
                checked = DS_ACCEL_OK;
            }
            pthread_mutex_unlock(&context->config_lock);
        }
        return checked < 0 ? checked : (tells_failure(report) ? status : DS_ACCEL_OK);
    }
    return status;
}

int32_t ds_accel__report_tree(ds_accel_t *context, uint32_t report, const char *name,
                              uint32_t format, json_t **tree_out)
{
    int32_t status;

    *tree_out = NULL;
    if (report != DS_ACCEL_REPORT_DETECT || (format & DS_ACCEL_FORMAT_JSON) != 0) {
        status = ds_accel__context_load_origins(context);
        if (status < 0) {
            return status;
        }
    }
    switch (report) {
    case DS_ACCEL_REPORT_DETECT:
        *tree_out = report_detect(context, (format & DS_ACCEL_FORMAT_JSON) != 0);
        break;
    case DS_ACCEL_REPORT_LIST:
        *tree_out = report_list(context);
        break;
    case DS_ACCEL_REPORT_EXPLAIN:
        *tree_out = report_explain(context, name);
        break;
    case DS_ACCEL_REPORT_CONFIG_ENV:
        *tree_out = report_config_env(context);
        break;
    case DS_ACCEL_REPORT_CONFIG:
        status = ds_accel__context_load_ops(context);
        if (status < 0) {
            return status;
        }
        *tree_out = report_config(context);
        break;
    case DS_ACCEL_REPORT_INFO:
        status = ds_accel__context_load_ops(context);
        return status < 0 ? status : ds_accel__report_info(context, name, tree_out);
    case DS_ACCEL_REPORT_ENV:
        return ds_accel__report_env(context, name, tree_out);
    default:
        if (is_of_tools(report)) {
            return tools_get()->make_tree(context, report, name, format, tree_out);
        }
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "there is no report %u", report);
    }
    return *tree_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

int32_t ds_accel_report(ds_accel_t *context, uint32_t report, const char *name, uint32_t format,
                        char **text_out)
{
    json_t *tree;
    int32_t status;
    int32_t written;

    if (context == NULL || text_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "context or text_out is NULL");
    }
    status = ds_accel__context_check(context);
    if (status < 0) {
        return status;
    }
    if (report == DS_ACCEL_REPORT_MEMORY &&
        (format & (DS_ACCEL_FORMAT_JSON | DS_ACCEL_FORMAT_SVG)) == 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "memory is written as JSON or SVG");
    }
    if (report == DS_ACCEL_REPORT_MEMORY && context->recording != NULL) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE,
                               "the machine is a recorded one: the memory of its devices as it is "
                               "now cannot be shown");
    }
    if (report == DS_ACCEL_REPORT_BUNDLE || report == DS_ACCEL_REPORT_RECORDING) {
        format |= DS_ACCEL_FORMAT_JSON;
    }
    status = check_tools(report, format);
    if (status < 0) {
        return status;
    }
    if (report == DS_ACCEL_REPORT_RECORDING) {
        status = tools_get()->make_tree(context, report, name, format, &tree);
        return status < 0 ? status : ds_accel__report_write(report, tree, format, text_out);
    }
    /* Every report except detect needs the complete configuration. */
    if (report != DS_ACCEL_REPORT_DETECT) {
        pthread_mutex_lock(&context->config_lock);
        status = ds_accel__config_complete(&context->config, NULL);
        pthread_mutex_unlock(&context->config_lock);
        if (status < 0) {
            return status;
        }
    }
    pthread_mutex_lock(&context->lock);
    context->asks_anew = context->asks_anew || report == DS_ACCEL_REPORT_LIST ||
                         report == DS_ACCEL_REPORT_EXPLAIN || report == DS_ACCEL_REPORT_DOCTOR ||
                         report == DS_ACCEL_REPORT_BUNDLE;
    pthread_mutex_unlock(&context->lock);
    status = prepare(context, report, name);
    if (status < 0 && (status == DS_ACCEL_ERR_NO_MEMORY || status == DS_ACCEL_ERR_NOT_FOUND ||
                       !tells_failure(report))) {
        return status;
    }
    pthread_mutex_lock(&context->lock);
    if (report == DS_ACCEL_REPORT_TOPO && name == NULL && !is_topo_of_all(context, report, name) &&
        context->selected != NULL) {
        name = context->selected->name;
    }
    written = ds_accel__report_tree(context, report, name, format, &tree);
    pthread_mutex_unlock(&context->lock);
    if (written >= 0) {
        bool is_sick = json_is_false(json_object_get(tree, "ok"));

        written = ds_accel__report_write(report, tree, format, text_out);
        if (written >= 0 && report == DS_ACCEL_REPORT_DOCTOR && is_sick) {
            return ds_accel__error(DS_ACCEL_ERR_STATE, "problems were found");
        }
    }
    /* A report that explains the detection's failure has succeeded as a call. Only for detect the
     * call returns the status of the failed detection. */
    return written < 0 || report != DS_ACCEL_REPORT_DETECT ? written : status;
}

void ds_accel_free_text(char *text)
{
    free(text);
}
