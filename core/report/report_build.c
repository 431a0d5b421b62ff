/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Builds ops, and reports what was done: ds-accel ops build. */
#include "base/json.h"
#include "base/text.h"
#include "ds_accel_tools.h"
#include "host/context.h"
#include "ops/resolve.h"
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

/* Of a failed command's output, what is shown without -v. */
#define SHOWN_LINES 30u

struct progress {
    const struct ds_accel_ops_build_options *options;
    const char *op;
};

static void on_progress(void *user_data, uint32_t done, uint32_t total, const char *what)
{
    const struct progress *progress = user_data;

    progress->options->on_progress(progress->options->user_data, progress->op, done, total, what);
}

static void set_text(json_t *object, const char *key, const char *text, bool *failed)
{
    ds_accel__json_set(object, key, text != NULL ? ds_accel__json_text(text) : json_null(), failed);
}

static const char *state_of(const struct ds_accel__resolved *resolved)
{
    if (resolved->kernel.finding.reason != DS_ACCEL__REASON_NONE) {
        return "rejected";
    }
    switch (resolved->origin) {
    case DS_ACCEL__ORIGIN_INSTALLED:
        return "installed";
    case DS_ACCEL__ORIGIN_CACHED:
        return "cached";
    case DS_ACCEL__ORIGIN_BUILT:
        return "built";
    case DS_ACCEL__ORIGIN_FAILED:
        return "failed";
    default:
        return "unsupported";
    }
}

/* Add the entry of an op. */
static int32_t add_entry(json_t *entries, const char *op, const struct ds_accel__resolved *resolved)
{
    const struct ds_accel__finding *finding = &resolved->kernel.finding;
    json_t *entry = json_object();
    bool failed = false;

    set_text(entry, "op", op, &failed);
    set_text(entry, "state", state_of(resolved), &failed);
    set_text(entry, "path", resolved->kernel.path, &failed);
    set_text(entry, "key", resolved->key[0] != '\0' ? resolved->key : NULL, &failed);
    set_text(entry, "reason",
             finding->reason != DS_ACCEL__REASON_NONE ? finding->detail
             : resolved->reason != NULL               ? resolved->reason
             : resolved->kernel.path == NULL          ? "there is no recipe of it"
                                                      : "",
             &failed);
    set_text(entry, "command", resolved->command, &failed);
    set_text(entry, "output", resolved->output, &failed);
    return json_array_append_new(entries, entry) == 0 && !failed ? DS_ACCEL_OK
                                                                 : ds_accel__no_memory();
}

/* Build one op; has_name: it was asked for. */
static int32_t build_one(ds_accel_t *context, const char *backend, const json_t *builder,
                         bool has_name, const struct ds_accel_ops_build_options *options,
                         json_t *entries, uint32_t *failures)
{
    const char *op = ds_accel__json_string(builder, "kernel");
    struct progress progress = {options, op};
    const struct ds_accel__resolve_options resolve_options = {
        .is_forced = (options->flags & DS_ACCEL_OPS_BUILD_FORCE) != 0,
        .builds_unlisted = true, /* so that its digest is known */
        .jobs = options->jobs,
        .on_progress = options->on_progress != NULL ? on_progress : NULL,
        .user_data = &progress,
    };
    struct ds_accel__resolved resolved;
    int32_t status = ds_accel__resolve(context, backend, op, &resolve_options, &resolved);
    bool has_recipe = resolved.kernel.path != NULL || resolved.reason != NULL;

    if (status >= 0 && op[0] == '\0' && resolved.reason == NULL) {
        resolved.reason = strdup("the builder names no op");
        status = resolved.reason != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    if (status >= 0 && (has_recipe || has_name)) {
        *failures += resolved.kernel.path == NULL ||
                     resolved.kernel.finding.reason != DS_ACCEL__REASON_NONE;
        status = add_entry(entries, op[0] != '\0' ? op : ds_accel__json_string(builder, "builder"),
                           &resolved);
    }
    ds_accel__resolved_clear(&resolved);
    return status;
}

/* Whether an earlier builder has the same kernel. */
static bool is_repeated(const json_t *builders, size_t number)
{
    const char *kernel = ds_accel__json_string(json_array_get(builders, number), "kernel");

    for (size_t i = 0; i < number; i++) {
        const char *other = ds_accel__json_string(json_array_get(builders, i), "kernel");

        if (strcmp(other, kernel) == 0) {
            return true;
        }
    }
    return false;
}

static int32_t build_all(ds_accel_t *context, const char *backend, const char *name,
                         const struct ds_accel_ops_build_options *options, json_t *entries,
                         uint32_t *failures)
{
    json_t *builders = NULL;
    int32_t status = ds_accel__kernel_builders(context, backend, name, &builders);

    for (size_t i = 0; i < json_array_size(builders) && status >= 0; i++) {
        const json_t *builder = json_array_get(builders, i);
        bool is_foreign = json_is_true(json_object_get(builder, "is_foreign"));

        if (!is_repeated(builders, i) && (name != NULL || !is_foreign)) {
            status = build_one(context, backend, builder, name != NULL, options, entries, failures);
        }
    }
    json_decref(builders);
    return status;
}

int32_t ds_accel_ops_build(ds_accel_t *context, const char *backend, const char *name,
                           const struct ds_accel_ops_build_options *options, uint32_t format,
                           uint32_t *failures_out, char **text_out)
{
    static const struct ds_accel_ops_build_options none = {.struct_size = sizeof(none)};
    json_t *tree;
    json_t *entries;
    bool failed = false;
    int32_t status;

    if (context == NULL || failures_out == NULL || text_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "context, failures_out or text_out is NULL");
    }
    if (options != NULL && options->struct_size < sizeof(*options)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "the struct_size of the options is %u",
                               options->struct_size);
    }
    *failures_out = 0;
    *text_out = NULL;
    status = ds_accel__ops_backend(context, &backend);
    if (status < 0) {
        return status;
    }
    tree = json_object();
    entries = json_array();
    ds_accel__json_set(tree, "schema_version", json_integer(1), &failed);
    set_text(tree, "accelerator", backend, &failed);
    ds_accel__json_set(tree, "ops", json_incref(entries), &failed);
    status = failed ? ds_accel__no_memory()
                    : build_all(context, backend, name, options != NULL ? options : &none, entries,
                                failures_out);
    json_decref(entries);
    if (status < 0) {
        json_decref(tree);
        return status;
    }
    return ds_accel__report_write(DS_ACCEL__REPORT_BUILD, tree, format, text_out);
}

/* ---- its text ------------------------------------------------------------------------------- */

/* Add the first lines of a compiler's output, or all, each indented. */
static void write_output(struct ds_accel__text *out, const json_t *lines, bool is_whole)
{
    size_t count = json_array_size(lines);
    size_t shown = is_whole || count < SHOWN_LINES ? count : SHOWN_LINES;

    for (size_t i = 0; i < shown; i++) {
        ds_accel__text_add(out, "    %s\n", json_string_value(json_array_get(lines, i)));
    }
    if (shown < count) {
        ds_accel__text_add(out, "    %zu more lines: -v shows them\n", count - shown);
    }
}

static void write_entry(struct ds_accel__text *out, const json_t *entry, bool is_whole)
{
    const char *path = ds_accel__json_string(entry, "path");
    const char *reason = ds_accel__json_string(entry, "reason");
    const char *command = ds_accel__json_string(entry, "command");

    ds_accel__text_add(out, "%s: %s%s%s%s%s\n", ds_accel__json_string(entry, "op"),
                       ds_accel__json_string(entry, "state"), path[0] != '\0' ? ", " : "", path,
                       reason[0] != '\0' ? ": " : "", reason);
    if (command[0] != '\0') {
        write_output(out, json_object_get(entry, "output"), is_whole);
        ds_accel__text_add(out, "  to repeat: %s\n", command);
    }
}

void ds_accel__build_write(struct ds_accel__text *out, json_t *tree, bool is_verbose)
{
    const json_t *entries = json_object_get(tree, "ops");

    for (size_t i = 0; i < json_array_size(entries); i++) {
        write_entry(out, json_array_get(entries, i), is_verbose);
    }
    if (json_array_size(entries) == 0) {
        ds_accel__text_add(out, "%s has no op with a recipe\n",
                           ds_accel__json_string(tree, "accelerator"));
    }
}
