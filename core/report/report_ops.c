/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The report of op builders: which kernels there are for a backend, and why others are missing. */
#include "base/json.h"
#include "base/text.h"
#include "config/config.h"
#include "ds_accel_tools.h"
#include "host/candidate.h"
#include "host/context.h"
#include "host/registry.h"
#include "ops/resolve.h"
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

static void set_text(json_t *object, const char *key, const char *text, bool *failed)
{
    ds_accel__json_set(object, key, ds_accel__json_text(text), failed);
}

/* Whether DeepSpeed returns the builder in place of one that a backend lacks. */
static bool is_placeholder(const json_t *builder)
{
    return strcmp(ds_accel__json_string(builder, "kind"), "placeholder") == 0;
}

/* Say why there is no kernel of that name. NULL: out of memory. */
static char *reason_of_missing(const char *backend, const char *kernel, const json_t *builder)
{
    const json_t *recipe = json_object_get(builder, "recipe");
    const char *note = ds_accel__json_string(recipe, "note");

    if (is_placeholder(builder)) {
        return strdup("no kernel: DeepSpeed returns this builder in place of one that a backend "
                      "lacks; it builds nothing");
    }
    if (json_is_true(json_object_get(builder, "is_foreign"))) {
        return ds_accel__format("%s has no such builder", backend);
    }
    if (strcmp(ds_accel__json_string(recipe, "kind"), "framework") == 0) {
        return ds_accel__format("no kernel: DeepSpeed uses its framework%s%s%s",
                                note[0] != '\0' ? " (" : "", note, note[0] != '\0' ? ")" : "");
    }
    if (kernel[0] == '\0') {
        return strdup("no kernel: the builder names no op; `ds-accel config check` shows a row of "
                      "the configuration without one");
    }
    return ds_accel__format("no kernel: neither %s/%s.so nor %s.so is installed, and there is no "
                            "recipe of it",
                            backend, kernel, kernel);
}

static const char *state_of(const struct ds_accel__resolved *resolved, const json_t *builder)
{
    if (resolved->kernel.finding.reason != DS_ACCEL__REASON_NONE) {
        return "rejected";
    }
    switch (resolved->origin) {
    case DS_ACCEL__ORIGIN_INSTALLED:
        return "installed";
    case DS_ACCEL__ORIGIN_CACHED:
        return "cached";
    case DS_ACCEL__ORIGIN_BUILDABLE:
        return "buildable";
    default:
        return json_is_true(json_object_get(builder, "is_foreign")) && !is_placeholder(builder)
                   ? "absent"
                   : "unsupported";
    }
}

/*
 * The memory that an op works on: "host", "device", or NULL if there is no op. The backend cpu has
 * no memory but the host's.
 */
static const char *memory_of(const char *backend, const struct ds_accel__resolved *resolved)
{
    if (resolved->origin == DS_ACCEL__ORIGIN_NONE ||
        resolved->kernel.finding.reason != DS_ACCEL__REASON_NONE) {
        return NULL;
    }
    return resolved->is_for_backend && strcmp(backend, "cpu") != 0 ? "device" : "host";
}

/*
 * Say why the op cannot be used; "": it can. unusable: why the backend's devices cannot be used;
 * NULL: they can. NULL: out of memory.
 */
static char *reason_of(const char *backend, const char *unusable, const json_t *builder,
                       const struct ds_accel__resolved *resolved)
{
    const struct ds_accel__finding *finding = &resolved->kernel.finding;
    const char *memory = memory_of(backend, resolved);

    if (finding->reason != DS_ACCEL__REASON_NONE) {
        return ds_accel__format("%s: %s", ds_accel__reason_code(finding->reason), finding->detail);
    }
    if (unusable != NULL && memory != NULL && strcmp(memory, "device") == 0) {
        return ds_accel__format("it works on devices of %s, which cannot be used here: %s", backend,
                                unusable);
    }
    if (resolved->origin != DS_ACCEL__ORIGIN_NONE) {
        return strdup("");
    }
    return resolved->reason != NULL
               ? strdup(resolved->reason)
               : reason_of_missing(backend, ds_accel__json_string(builder, "kernel"), builder);
}

static void set_text_or_null(json_t *object, const char *key, const char *text, bool *failed)
{
    ds_accel__json_set(object, key, text != NULL ? ds_accel__json_text(text) : json_null(), failed);
}

/* Make the entry of a builder. *status_out: ERR_LIMIT or ERR_NO_MEMORY if the file could not be
 * looked for. */
static json_t *builder_tree(ds_accel_t *context, const char *backend, const char *unusable,
                            json_t *builder, bool has_recipe, int32_t *status_out)
{
    const struct ds_accel__resolve_options options = {.only_finds = true};
    const char *kernel = ds_accel__json_string(builder, "kernel");
    struct ds_accel__resolved resolved;
    bool failed = false;
    json_t *tree;
    char *reason;

    *status_out = ds_accel__resolve(context, backend, kernel, &options, &resolved);
    if (*status_out < 0) {
        ds_accel__resolved_clear(&resolved);
        return NULL;
    }
    reason = reason_of(backend, unusable, builder, &resolved);
    tree = json_object();
    set_text(tree, "builder", ds_accel__json_string(builder, "builder"), &failed);
    set_text(tree, "op", ds_accel__json_string(builder, "op"), &failed);
    set_text(tree, "kernel", kernel, &failed);
    set_text(tree, "state", state_of(&resolved, builder), &failed);
    ds_accel__json_set(tree, "compatible", json_boolean(reason != NULL && reason[0] == '\0'),
                       &failed);
    ds_accel__json_set(tree, "installed",
                       json_boolean(resolved.origin == DS_ACCEL__ORIGIN_INSTALLED), &failed);
    ds_accel__json_set(tree, "cached", json_boolean(resolved.origin == DS_ACCEL__ORIGIN_CACHED),
                       &failed);
    set_text_or_null(tree, "path", resolved.kernel.path, &failed);
    set_text_or_null(tree, "memory", memory_of(backend, &resolved), &failed);
    ds_accel__json_set(tree, "reason", reason != NULL ? ds_accel__json_text(reason) : NULL,
                       &failed);
    if (has_recipe) {
        ds_accel__json_set(tree, "requirements",
                           resolved.requirements != NULL ? json_incref(resolved.requirements)
                                                         : json_array(),
                           &failed);
        ds_accel__json_set(tree, "recipe", json_incref(json_object_get(builder, "recipe")),
                           &failed);
    }
    free(reason);
    ds_accel__resolved_clear(&resolved);
    if (failed) {
        json_decref(tree);
        *status_out = ds_accel__no_memory();
        return NULL;
    }
    return tree;
}

/* ---- the report ----------------------------------------------------------------------------- */

static json_t *directories_tree(bool *failed)
{
    char *directories = ds_accel__kernel_directories();
    json_t *array = json_array();
    const char *list = directories;
    const char *item;
    size_t length;

    if (directories == NULL) {
        *failed = true;
    }
    while (list != NULL && (item = ds_accel__list_next(&list, '\n', &length)) != NULL) {
        if (json_array_append_new(array, json_stringn(item, length)) != 0) {
            *failed = true;
        }
    }
    free(directories);
    return array;
}

/*
 * Say why the devices of a backend cannot be used, as ds_accel__kernel_builders() has found out.
 * *why_out is a new string; NULL: they can be used. ERR_NO_MEMORY.
 */
static int32_t explain_backend(ds_accel_t *context, const char *backend, char **why_out)
{
    const struct ds_accel__candidate *candidate;
    bool is_usable;

    *why_out = NULL;
    pthread_mutex_lock(&context->lock);
    candidate = ds_accel__registry_find(&context->registry, backend);
    is_usable = candidate != NULL && ds_accel__candidate_is_available(candidate);
    if (!is_usable) {
        *why_out = candidate == NULL
                       ? strdup(ds_accel__reason_code(DS_ACCEL__REASON_NO_PLUGIN))
                       : ds_accel__format("%s: %s", ds_accel__reason_code(candidate->reason),
                                          ds_accel__candidate_detail(candidate));
    }
    pthread_mutex_unlock(&context->lock);
    return is_usable || *why_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

static int32_t add_entries(ds_accel_t *context, const char *backend, json_t *builders,
                           bool has_recipe, json_t *entries)
{
    char *unusable = NULL;
    int32_t status = explain_backend(context, backend, &unusable);

    for (size_t i = 0; i < json_array_size(builders) && status >= 0; i++) {
        json_t *entry = builder_tree(context, backend, unusable, json_array_get(builders, i),
                                     has_recipe, &status);

        if (status >= 0 && json_array_append_new(entries, entry) != 0) {
            status = ds_accel__no_memory();
        }
    }
    free(unusable);
    return status;
}

int32_t ds_accel__ops_backend(ds_accel_t *context, const char **backend)
{
    int32_t status = ds_accel__context_check(context);

    if (status >= 0 && context->recording != NULL) {
        status = ds_accel__error(DS_ACCEL_ERR_NOT_USABLE,
                                 "the machine is a recorded one: which ops it has is not recorded");
    }
    if (status >= 0 && *backend == NULL) {
        status = ds_accel_detect(context);
        *backend = status >= 0 ? ds_accel_name(context) : NULL;
    }
    return status;
}

int32_t ds_accel_ops_report(ds_accel_t *context, const char *backend, const char *name,
                            uint32_t format, char **text_out)
{
    json_t *builders = NULL;
    json_t *tree;
    json_t *entries;
    bool failed = false;
    int32_t status;

    if (context == NULL || text_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "context or text_out is NULL");
    }
    *text_out = NULL;
    status = ds_accel__ops_backend(context, &backend);
    if (status >= 0) {
        status = ds_accel__kernel_builders(context, backend, name, &builders);
    }
    if (status < 0) {
        return status;
    }
    tree = json_object();
    entries = json_array();
    ds_accel__json_set(tree, "schema_version", json_integer(1), &failed);
    set_text(tree, "accelerator", backend, &failed);
    if (name != NULL) {
        set_text(tree, "name", name, &failed);
    }
    ds_accel__json_set(tree, "directories", directories_tree(&failed), &failed);
    ds_accel__json_set(tree, "ops", json_incref(entries), &failed);
    status = failed ? ds_accel__no_memory()
                    : add_entries(context, backend, builders, name != NULL, entries);
    json_decref(entries);
    json_decref(builders);
    if (status < 0) {
        json_decref(tree);
        return status;
    }
    return ds_accel__report_write(DS_ACCEL__REPORT_OPS, tree, format, text_out);
}

/* ---- its text ------------------------------------------------------------------------------- */

#define GREEN "\033[92m"
#define YELLOW "\033[93m"
#define RESET "\033[0m"
#define NAME_COLUMNS 24
#define STATE_COLUMNS 12

/* Add dots and a blank behind a word of this length, up to the end of its column. */
static void add_dots(struct ds_accel__text *out, size_t length, size_t columns)
{
    ds_accel__text_add(out, " ");
    for (size_t i = length + 2; i < columns; i++) {
        ds_accel__text_add(out, ".");
    }
    ds_accel__text_add(out, length + 2 < columns ? " " : "");
}

static size_t add_state(struct ds_accel__text *out, bool is_good, const char *word, bool has_colour)
{
    ds_accel__text_add(out, "%s%s%s",
                       !has_colour ? ""
                       : is_good   ? GREEN
                                   : YELLOW,
                       word, has_colour ? RESET : "");
    return strlen(word);
}

/* What limits the use of an op: it works on host memory only, and the backend has its own. */
static const char *limit_of(const char *backend, const json_t *entry)
{
    return strcmp(backend, "cpu") != 0 &&
                   strcmp(ds_accel__json_string(entry, "memory"), "host") == 0
               ? "on host memory only"
               : "";
}

/* The table of DeepSpeed's ds_report, with the reason or limit behind each row. */
static void write_row(struct ds_accel__text *out, const char *backend, json_t *entry,
                      bool has_colour)
{
    const char *op = ds_accel__json_string(entry, "op");
    const char *reason = ds_accel__json_string(entry, "reason");
    const char *remark = reason[0] != '\0' ? reason : limit_of(backend, entry);
    bool is_compatible = json_is_true(json_object_get(entry, "compatible"));
    bool is_installed = json_is_true(json_object_get(entry, "installed"));
    bool is_cached = json_is_true(json_object_get(entry, "cached"));

    ds_accel__text_add(out, "%s", op);
    add_dots(out, strlen(op), NAME_COLUMNS);
    add_dots(out,
             add_state(out, is_installed || is_cached,
                       is_installed ? "[YES]"
                       : is_cached  ? "[BUILT]"
                                    : "[NO]",
                       has_colour),
             STATE_COLUMNS);
    add_state(out, is_compatible, is_compatible ? "[OKAY]" : "[NO]", has_colour);
    ds_accel__text_add(out, "%s%s\n", remark[0] != '\0' ? "    " : "", remark);
}

static void write_recipe(struct ds_accel__text *out, json_t *entry)
{
    json_t *recipe = json_object_get(entry, "recipe");
    json_t *sources = json_object_get(recipe, "sources");
    const char *note = ds_accel__json_string(recipe, "note");

    if (json_array_size(sources) > 0) {
        ds_accel__text_add(out, "  DeepSpeed builds it from");
        for (size_t i = 0; i < json_array_size(sources); i++) {
            ds_accel__text_add(out, "%s %s", i > 0 ? "," : "",
                               json_string_value(json_array_get(sources, i)));
        }
        ds_accel__text_add(out, "\n");
    }
    if (note[0] != '\0') {
        ds_accel__text_add(out, "  note: %s\n", note);
    }
}

static void write_requirements(struct ds_accel__text *out, json_t *entry)
{
    json_t *requirements = json_object_get(entry, "requirements");

    for (size_t i = 0; i < json_array_size(requirements); i++) {
        const json_t *requirement = json_array_get(requirements, i);

        ds_accel__text_add(out, "  requires %s %s: %s\n",
                           ds_accel__json_string(requirement, "kind"),
                           ds_accel__json_string(requirement, "what"),
                           json_is_true(json_object_get(requirement, "ok")) ? "met" : "not met");
    }
}

static void write_details(struct ds_accel__text *out, const char *backend, json_t *entry)
{
    const char *path = ds_accel__json_string(entry, "path");
    const char *reason = ds_accel__json_string(entry, "reason");
    const char *limit = limit_of(backend, entry);

    ds_accel__text_add(out, "%s, op %s: %s\n", ds_accel__json_string(entry, "builder"),
                       ds_accel__json_string(entry, "op"), ds_accel__json_string(entry, "state"));
    if (path[0] != '\0') {
        ds_accel__text_add(out, "  file: %s\n", path);
    }
    if (limit[0] != '\0') {
        ds_accel__text_add(out, "  works %s\n", limit);
    }
    if (reason[0] != '\0') {
        ds_accel__text_add(out, "  reason: %s\n", reason);
    }
    write_requirements(out, entry);
    write_recipe(out, entry);
}

static bool is_absent(const json_t *entry)
{
    return strcmp(ds_accel__json_string(entry, "state"), "absent") == 0;
}

void ds_accel__ops_write(struct ds_accel__text *out, json_t *tree, bool has_colour, bool is_verbose)
{
    json_t *entries = json_object_get(tree, "ops");
    const char *backend = ds_accel__json_string(tree, "accelerator");
    size_t absent = 0;

    if (json_object_get(tree, "name") != NULL) {
        for (size_t i = 0; i < json_array_size(entries); i++) {
            write_details(out, backend, json_array_get(entries, i));
        }
        return;
    }
    ds_accel__text_add(out, "op builders of %s\n", backend);
    ds_accel__text_add(out, "op name ............... installed . compatible\n");
    for (size_t i = 0; i < json_array_size(entries); i++) {
        json_t *entry = json_array_get(entries, i);

        absent += is_absent(entry);
        if (is_verbose || !is_absent(entry)) {
            write_row(out, backend, entry, has_colour);
        }
    }
    if (absent > 0 && !is_verbose) {
        ds_accel__text_add(out, "%zu builders of other backends are not shown: -v shows them\n",
                           absent);
    }
}
