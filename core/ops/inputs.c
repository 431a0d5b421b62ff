/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "ops/inputs.h"
#include "base/json.h"
#include "base/text.h"
#include "ops/answers.h"
#include "ops/command.h"
#include "ops/flag_files.h"
#include "ops/requires.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Add a path, or that of the directory if a name is relative to one. */
static void add(struct ds_accel__arguments *list, const char *directory, const char *name)
{
    if (name[0] == '/') {
        ds_accel__arguments_add(list, "%s", name);
    } else {
        ds_accel__arguments_add(list, "%s/%s", directory, name);
    }
}

/* Add a source, and its directory, because a file that is added there may match a pattern. */
static void add_source(struct ds_accel__arguments *list, const char *directory, const char *name)
{
    char *path;
    char *slash;

    add(list, directory, name);
    path = list->failed ? NULL : strdup(list->items[list->count - 1]);
    list->failed = list->failed || path == NULL;
    slash = path != NULL ? strrchr(path, '/') : NULL;
    if (slash != NULL && slash > path) {
        *slash = '\0';
        if (strcmp(path, directory) != 0) {
            ds_accel__arguments_add(list, "%s", path);
        }
    }
    free(path);
}

static void add_sources(struct ds_accel__arguments *list, const struct ds_accel__recipe *recipe)
{
    ds_accel__arguments_add(list, "%s", recipe->given_dir);
    ds_accel__arguments_add(list, "%s", recipe->source_dir);
    for (size_t i = 0; recipe->sources[i] != NULL; i++) {
        add_source(list, recipe->source_dir, recipe->sources[i]);
    }
    for (size_t i = 0; i < recipe->image_count; i++) {
        add_source(list, recipe->source_dir, recipe->images[i].source);
    }
    for (int are_sources = 0; are_sources < 2; are_sources++) {
        char **files = ds_accel__recipe_flag_files(recipe, are_sources != 0);

        list->failed = list->failed || files == NULL;
        ds_accel__arguments_add_all(list, files);
        ds_accel__arguments_free(files);
    }
}

static void add_headers(struct ds_accel__arguments *list, const char *directory,
                        const json_t *entry)
{
    const json_t *headers = json_object_get(entry, "headers");

    for (size_t i = 0; i < json_array_size(headers); i++) {
        add(list, directory, json_string_value(json_array_get(json_array_get(headers, i), 0)));
    }
}

/* Add the manifest of a cache that precedes the entry's, or where it would be created. */
static void add_absent(struct ds_accel__arguments *list,
                       const struct ds_accel__resolution *resolution, const char *store)
{
    char *path =
        ds_accel__store_manifest(store, resolution->recipe.name, resolution->recipe_digest);
    char *slash;

    while (path != NULL && access(path, F_OK) != 0 && (slash = strrchr(path, '/')) != NULL &&
           slash > path) {
        *slash = '\0';
    }
    list->failed = list->failed || path == NULL;
    ds_accel__arguments_add(list, "%s", path != NULL ? path : "");
    free(path);
}

/* Add the files of the arguments that are programs: links such as /usr/bin/cc lead elsewhere. And
 * the files that others name. */
static void add_programs(struct ds_accel__arguments *list,
                         const struct ds_accel__compiler *compiler)
{
    ds_accel__flag_files(compiler->arguments + 1, NULL, list);
    for (size_t i = 0; compiler->arguments[i] != NULL; i++) {
        char *path = NULL;

        if (compiler->arguments[i][0] == '-') {
            continue;
        }
        list->failed = ds_accel__program_find(compiler->arguments[i], &path) < 0 || list->failed;
        if (path != NULL) {
            ds_accel__arguments_add(list, "%s", path);
        }
        free(path);
    }
}

/* Add the programs that a compiler runs. They are known only if they are remembered. */
static void add_parts(struct ds_accel__arguments *list, const struct ds_accel__compiler *compiler)
{
    list->failed = !ds_accel__answer_add_files(compiler->question, list) || list->failed;
    if (compiler->host_question != NULL) {
        list->failed = !ds_accel__answer_add_files(compiler->host_question, list) || list->failed;
    }
}

static json_t *list_compilers(const struct ds_accel__toolchain *toolchain,
                              struct ds_accel__arguments *list)
{
    json_t *compilers = json_object();
    bool failed = false;

    for (size_t i = 0; i < DS_ACCEL__LANGUAGE_COUNT; i++) {
        if (toolchain->is_used[i]) {
            ds_accel__json_set(compilers, ds_accel__language_compiler((enum ds_accel__language)i),
                               ds_accel__json_text(toolchain->compilers[i].arguments[0]), &failed);
            add_programs(list, &toolchain->compilers[i]);
            add_parts(list, &toolchain->compilers[i]);
        }
    }
    if (toolchain->linker.question != NULL) {
        list->failed = !ds_accel__answer_add_files(toolchain->linker.question, list) ||
                       list->failed;
    }
    list->failed = list->failed || failed;
    return compilers;
}

/* The texts as a new array without repetitions. NULL: memory is exhausted, or one is not UTF-8. */
static json_t *make_array(char *const *files)
{
    json_t *array = json_array();
    json_t *seen = json_object();
    bool failed = files == NULL || array == NULL;

    for (size_t i = 0; !failed && files[i] != NULL; i++) {
        if (json_object_get(seen, files[i]) == NULL) {
            ds_accel__json_set(seen, files[i], json_true(), &failed);
            failed = failed || json_array_append_new(array, json_string(files[i])) != 0;
        }
    }
    json_decref(seen);
    if (failed) {
        json_decref(array);
        array = NULL;
    }
    return array;
}

json_t *ds_accel__inputs_list(const struct ds_accel__resolution *resolution, const char *store,
                              const json_t *entry)
{
    const json_t *requires = resolution->recipe.requires;
    struct ds_accel__arguments list = {0};
    const struct ds_accel__stores *stores = &resolution->stores;
    json_t *inputs;
    json_t *compilers;
    char *manifest;
    char **files;
    bool failed = false;

    /* Which devices are visible is not known before the recipe is read. */
    if (resolution->toolchain.digest[0] == '\0' ||
        json_is_integer(json_object_get(requires, DS_ACCEL__REQUIRES_COMPUTE))) {
        return NULL;
    }
    inputs = json_object();
    add_sources(&list, &resolution->recipe);
    add_headers(&list, resolution->recipe.source_dir, entry);
    for (size_t i = 0; i < stores->count && strcmp(stores->paths[i], store) != 0; i++) {
        add_absent(&list, resolution, stores->paths[i]);
    }
    compilers = list_compilers(&resolution->toolchain, &list);
    files = ds_accel__arguments_take(&list);
    manifest = ds_accel__store_manifest(store, resolution->recipe.name, resolution->recipe_digest);
    ds_accel__json_set(inputs, "manifest", manifest != NULL ? ds_accel__json_text(manifest) : NULL,
                       &failed);
    free(manifest);
    ds_accel__json_set(inputs, "compilers", compilers, &failed);
    ds_accel__json_set(inputs, "files", make_array(files), &failed);
    ds_accel__arguments_free(files);
    if (failed) {
        json_decref(inputs);
        inputs = NULL;
    }
    return inputs;
}
