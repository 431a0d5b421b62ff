/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Finds and checks the files of installed ops, and lists op builders. */
#include "ops/kernel.h"
#include "base/json.h"
#include "base/text.h"
#include "config/config.h"
#include "config/prefix.h"
#include "host/context.h"
#include "machine/elf_file.h"
#include "ops/op.h"
#include "runtime/facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

char *ds_accel__kernel_directories(void)
{
    char *library = ds_accel__library_dir();
    char *list = library != NULL ? ds_accel__format("%s/ds-accel/ops\n%s/ops\n", library,
                                                    ds_accel__built_for.plugin_dir)
                                 : NULL;

    free(library);
    return list;
}

/* Whether something has this path: also a directory or a broken link, which the check rejects. */
static bool exists(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* Set *path_out to the first path that exists; NULL: none. ERR_NO_MEMORY. */
static int32_t find_path(const char *backend, const char *name, char **path_out,
                         bool *is_for_backend_out)
{
    char *directories = ds_accel__kernel_directories();
    const char *forms[] = {backend, NULL}; /* NULL: the host's */
    const char *list;
    const char *item;
    size_t length;
    char *path = NULL;
    int32_t status = directories != NULL ? DS_ACCEL_OK : ds_accel__no_memory();

    for (size_t i = 0; i < ARRAY_SIZE(forms) && path == NULL && status >= 0; i++) {
        list = directories;
        while (path == NULL && status >= 0 &&
               (item = ds_accel__list_next(&list, '\n', &length)) != NULL) {
            *is_for_backend_out = forms[i] != NULL;
            path = forms[i] != NULL
                       ? ds_accel__format("%.*s/%s/%s.so", (int)length, item, forms[i], name)
                       : ds_accel__format("%.*s/%s.so", (int)length, item, name);
            if (path == NULL) {
                status = ds_accel__no_memory();
            } else if (!exists(path)) {
                free(path);
                path = NULL;
            }
        }
    }
    free(directories);
    *path_out = path;
    return status;
}

static void check_mount(int fd, const char *path, struct ds_accel__finding *finding)
{
    struct statvfs info;

    if (fstatvfs(fd, &info) == 0 && (info.f_flag & ST_NOEXEC) != 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_LOAD_FAILED,
                              "%.300s: its file system is mounted with noexec", path);
    }
}

int32_t ds_accel__kernel_check(const char *path, const char *name, struct stat *info_out,
                               struct ds_accel__finding *finding)
{
    struct ds_accel__trust *trust = ds_accel__trust_create();
    struct ds_accel__elf elf;
    int fd = -1;
    int32_t status = trust == NULL ? ds_accel__no_memory()
                                   : ds_accel__trust_open(trust, path, &fd, info_out, finding);

    if (status >= 0 && finding->reason == DS_ACCEL__REASON_NONE) {
        check_mount(fd, path, finding);
    }
    if (status >= 0 && finding->reason == DS_ACCEL__REASON_NONE) {
        status = ds_accel__elf_open(fd, &elf, finding);
        if (status >= 0 && finding->reason == DS_ACCEL__REASON_NONE) {
            ds_accel__elf_check_harm(&elf, finding);
            if (finding->reason == DS_ACCEL__REASON_NONE) {
                ds_accel__elf_check_op_note(&elf, name, finding);
            }
            status = elf.is_short_of_memory ? ds_accel__no_memory() : DS_ACCEL_OK;
            ds_accel__elf_close(&elf);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    ds_accel__trust_destroy(trust);
    return status;
}

int32_t ds_accel__kernel_find(const char *backend, const char *name,
                              struct ds_accel__kernel *kernel)
{
    int32_t status = DS_ACCEL_OK;

    *kernel = (struct ds_accel__kernel){.path = NULL};
    if (ds_accel__is_op_name(name)) {
        status = find_path(backend, name, &kernel->path, &kernel->is_for_backend);
    }
    if (status >= 0 && kernel->path != NULL) {
        status = ds_accel__kernel_check(kernel->path, name, &kernel->info, &kernel->finding);
    }
    if (status < 0) {
        free(kernel->path);
        kernel->path = NULL;
    }
    return status;
}

/* ---- op builders ---------------------------------------------------------------------------- */

/* The op of ds-accel that does the work of a row's op; NULL: the row names none. */
static const char *kernel_of(const json_t *recipe)
{
    const char *kernel = ds_accel__json_string(recipe, "kernel");
    const char *op = ds_accel__json_string(recipe, "op");

    return kernel[0] != '\0' ? kernel : op[0] != '\0' ? op : NULL;
}

/* Whether a kernel is that of a builder of any backend. */
static bool has_builder(const struct ds_accel__config *config, const char *kernel)
{
    json_t *facts;
    json_t *recipe;
    const char *backend;
    const char *builder;

    json_object_foreach(ds_accel__config_get(config, "backends", NULL), backend, facts)
    {
        json_object_foreach(json_object_get(facts, "op_builders"), builder, recipe)
        {
            const char *other = kernel_of(recipe);

            if (other != NULL && strcmp(other, kernel) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Set "kind" and "kernel" to those of the row. */
static void describe(json_t *builder, const json_t *recipe, bool *failed)
{
    const char *kernel = kernel_of(recipe);

    ds_accel__json_set(builder, "kind", ds_accel__json_text(ds_accel__json_string(recipe, "kind")),
                       failed);
    /* A plugin's builder may have no row. */
    ds_accel__json_set(
        builder, "kernel",
        ds_accel__json_text(kernel != NULL ? kernel : ds_accel__json_string(builder, "op")),
        failed);
}

/* Add the ops of "kernels" that no builder names, by their own names. */
static void add_unnamed(const struct ds_accel__facts *facts, json_t *builders, bool *failed)
{
    const struct ds_accel__config *config = &facts->context->config;
    json_t *recipe;
    const char *key;

    json_object_foreach(ds_accel__config_get(config, "kernels", NULL), key, recipe)
    {
        const char *slash = strchr(key, '/');
        const char *op = slash != NULL ? slash + 1 : key;
        size_t length = strlen(facts->name);
        bool is_here = slash == NULL ||
                       ((size_t)(slash - key) == length && strncmp(key, facts->name, length) == 0);
        json_t *builder;

        for (size_t i = 0; i < json_array_size(builders) && is_here; i++) {
            is_here = strcmp(ds_accel__json_string(json_array_get(builders, i), "kernel"), op) != 0;
        }
        if (!json_is_object(recipe) || !is_here || has_builder(config, op)) {
            continue;
        }
        builder = json_object();
        ds_accel__json_set(builder, "builder", ds_accel__json_text(op), failed);
        ds_accel__json_set(builder, "op", ds_accel__json_text(op), failed);
        ds_accel__json_set(builder, "recipe", json_pack("{s:s}", "op", op), failed);
        describe(builder, json_object_get(builder, "recipe"), failed);
        *failed = json_array_append_new(builders, builder) != 0 || *failed;
    }
}

/* Mark the builders that are those of the configuration, not of the plugin. */
static void mark_configured(const struct ds_accel__facts *facts, json_t *builders, bool *failed)
{
    const struct ds_accel__config *config = &facts->context->config;
    const json_t *configured = ds_accel__config_backend(config, facts->name, "op_builders");

    for (size_t i = 0; i < json_array_size(builders); i++) {
        json_t *builder = json_array_get(builders, i);
        const char *name = ds_accel__json_string(builder, "builder");
        bool is_unnamed = strcmp(name, ds_accel__json_string(builder, "op")) == 0;

        ds_accel__json_set(builder, "is_configured",
                           json_boolean(is_unnamed || json_object_get(configured, name) != NULL),
                           failed);
    }
}

static json_t *own_builders(const struct ds_accel__facts *facts, uint32_t count)
{
    bool failed = false;
    json_t *builders = ds_accel__facts_builders(facts, &failed);

    (void)count;
    for (size_t i = 0; i < json_array_size(builders); i++) {
        json_t *builder = json_array_get(builders, i);

        describe(builder, json_object_get(builder, "recipe"), &failed);
    }
    if (!failed) {
        add_unnamed(facts, builders, &failed);
        mark_configured(facts, builders, &failed);
    }
    if (failed) {
        json_decref(builders);
        return NULL;
    }
    return builders;
}

/* Add the builders that the configuration has for other backends only. False: out of memory. */
static bool add_others(const struct ds_accel__config *config, json_t *builders)
{
    json_t *seen = json_object();
    bool failed = false;
    json_t *facts;
    json_t *recipe;
    const char *backend;
    const char *name;

    for (size_t i = 0; i < json_array_size(builders); i++) {
        ds_accel__json_set(seen, ds_accel__json_string(json_array_get(builders, i), "builder"),
                           json_true(), &failed);
    }
    json_object_foreach(ds_accel__config_get(config, "backends", NULL), backend, facts)
    {
        json_object_foreach(json_object_get(facts, "op_builders"), name, recipe)
        {
            json_t *other;

            if (!json_is_object(recipe) || json_object_get(seen, name) != NULL) {
                continue;
            }
            other = json_object();
            ds_accel__json_set(seen, name, json_true(), &failed);
            ds_accel__json_set(other, "builder", ds_accel__json_text(name), &failed);
            ds_accel__json_set(other, "op",
                               ds_accel__json_text(ds_accel__json_string(recipe, "op")), &failed);
            ds_accel__json_set(other, "recipe", json_null(), &failed);
            describe(other, recipe, &failed);
            ds_accel__json_set(other, "is_foreign", json_true(), &failed);
            failed = json_array_append_new(builders, other) != 0 || failed;
        }
    }
    json_decref(seen);
    return !failed;
}

/* Keep only the builders of that name, op or kernel. ERR_NOT_FOUND: there is none. */
static int32_t keep_named(json_t *builders, const char *name)
{
    static const char *const keys[] = {"builder", "op", "kernel"};
    size_t count = json_array_size(builders);
    size_t name_count = ARRAY_SIZE(keys) * count;
    const char **names = calloc(name_count + 1, sizeof(*names));
    const char *nearest;
    bool found = false;

    if (names == NULL) {
        return ds_accel__no_memory();
    }
    for (size_t i = 0; i < name_count; i++) {
        names[i] = ds_accel__json_string(json_array_get(builders, i / ARRAY_SIZE(keys)),
                                         keys[i % ARRAY_SIZE(keys)]);
        found = found || strcmp(names[i], name) == 0;
    }
    if (!found) {
        nearest = ds_accel__nearest(name, names, name_count);
        ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                        "no backend has an op builder or an op \"%s\"%s%s%s; `ds-accel ops list "
                        "-v` lists them",
                        name, nearest != NULL ? "; did you mean \"" : "",
                        nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
        free(names);
        return DS_ACCEL_ERR_NOT_FOUND;
    }
    for (size_t i = count; i-- > 0;) {
        const char **own = &names[ARRAY_SIZE(keys) * i];

        if (strcmp(own[0], name) != 0 && strcmp(own[1], name) != 0 && strcmp(own[2], name) != 0) {
            json_array_remove(builders, i);
        }
    }
    free(names);
    return DS_ACCEL_OK;
}

/* Take context->lock and load the configuration of ops. The lock is held after an error, too. */
static int32_t lock_with_ops(ds_accel_t *context)
{
    int32_t status;

    pthread_mutex_lock(&context->config_lock);
    status = ds_accel__config_complete(&context->config, NULL);
    pthread_mutex_unlock(&context->config_lock);
    pthread_mutex_lock(&context->lock);
    return status >= 0 ? ds_accel__context_load_ops(context) : status;
}

/* The kernel of a builder, of an op, or of a recipe, by the name of any; NULL: there is none. */
static const char *find_kernel(const struct ds_accel__config *config, const char *name)
{
    json_t *facts;
    json_t *recipe;
    const char *backend;
    const char *key;

    json_object_foreach(ds_accel__config_get(config, "backends", NULL), backend, facts)
    {
        json_object_foreach(json_object_get(facts, "op_builders"), key, recipe)
        {
            const char *kernel = kernel_of(recipe);

            if (kernel != NULL && (strcmp(key, name) == 0 || strcmp(kernel, name) == 0 ||
                                   strcmp(ds_accel__json_string(recipe, "op"), name) == 0)) {
                return kernel;
            }
        }
    }
    json_object_foreach(ds_accel__config_get(config, "kernels", NULL), key, recipe)
    {
        const char *slash = strchr(key, '/');
        const char *op = slash != NULL ? slash + 1 : key;

        if (strcmp(op, name) == 0) {
            return op;
        }
    }
    return NULL;
}

int32_t ds_accel__kernel_name(ds_accel_t *context, const char *name, char **kernel_out)
{
    const char *kernel;
    int32_t status;

    *kernel_out = NULL;
    status = lock_with_ops(context);
    kernel = status >= 0 ? find_kernel(&context->config, name) : NULL;
    *kernel_out = kernel != NULL ? strdup(kernel) : NULL;
    pthread_mutex_unlock(&context->lock);
    return kernel != NULL && *kernel_out == NULL ? ds_accel__no_memory() : status;
}

int32_t ds_accel__kernel_builders(ds_accel_t *context, const char *backend, const char *name,
                                  json_t **builders_out)
{
    json_t *builders = NULL;
    int32_t status;

    *builders_out = NULL;
    status = lock_with_ops(context);
    if (status >= 0) {
        status = ds_accel__with_facts(context, backend, own_builders, &builders);
    }
    if (status >= 0 && !add_others(&context->config, builders)) {
        status = ds_accel__no_memory();
    }
    pthread_mutex_unlock(&context->lock);
    if (status >= 0 && name != NULL) {
        status = keep_named(builders, name);
    }
    if (status < 0) {
        json_decref(builders);
        return status;
    }
    *builders_out = builders;
    return DS_ACCEL_OK;
}
