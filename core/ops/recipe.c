/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Recipes: the rows of "kernels" in the configuration.
 *
 * The digest of a recipe covers what it says and the contents of its sources, but not where they
 * are, so that hosts with other directories agree. Headers and libraries are not part of it: which
 * ones are read is known after a compilation and a link (manifest.c).
 */
#include "ops/recipe.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/config.h"
#include "config/prefix.h"
#include "ops/arguments.h"
#include "ops/cpu_flags.h"
#include "ops/flag_files.h"
#include "ops/refused_flags.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sha2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Part of each digest: a version that builds in another way makes other files. */
#define FORM "ds-accel kernel 3\n"

/* ---- languages ------------------------------------------------------------------------------- */

enum ds_accel__language ds_accel__recipe_language(const char *source)
{
    static const struct {
        const char *suffix;
        enum ds_accel__language language;
    } suffixes[] = {
        {".dp.cpp", DS_ACCEL__LANGUAGE_SYCL}, {".c", DS_ACCEL__LANGUAGE_C},
        {".cpp", DS_ACCEL__LANGUAGE_CXX},     {".cc", DS_ACCEL__LANGUAGE_CXX},
        {".cxx", DS_ACCEL__LANGUAGE_CXX},     {".cu", DS_ACCEL__LANGUAGE_CUDA},
        {".hip", DS_ACCEL__LANGUAGE_HIP},     {".sycl", DS_ACCEL__LANGUAGE_SYCL},
    };
    size_t length = strlen(source);

    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        size_t suffix_length = strlen(suffixes[i].suffix);

        if (length > suffix_length &&
            strcmp(source + length - suffix_length, suffixes[i].suffix) == 0) {
            return suffixes[i].language;
        }
    }
    return DS_ACCEL__LANGUAGE_COUNT;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A text list of the configuration as a list of arguments. False: memory is exhausted. */
static bool read_list(const json_t *row, const char *key, char ***list_out)
{
    struct ds_accel__arguments list = {0};
    const json_t *array = json_object_get(row, key);

    for (size_t i = 0; i < json_array_size(array); i++) {
        ds_accel__arguments_add(&list, "%s", json_string_value(json_array_get(array, i)));
    }
    *list_out = ds_accel__arguments_take(&list);
    return *list_out != NULL;
}

static bool has_pattern(const char *source)
{
    return strpbrk(source, "*?[") != NULL;
}

static bool is_visible(const char *name)
{
    return name[0] != '.';
}

/* Add the files of a directory that match. ERR_CONFIG if none does. */
static int32_t add_matches(const struct ds_accel__recipe *recipe, const char *pattern,
                           struct ds_accel__arguments *sources)
{
    const char *slash = strrchr(pattern, '/');
    int parent_length = slash != NULL ? (int)(slash - pattern) : 0;
    char *directory = ds_accel__format("%s/%.*s", recipe->source_dir, parent_length, pattern);
    char **names = NULL;
    size_t count = 0;
    const char *cause = NULL;
    bool found = false;
    int32_t status = directory == NULL
                         ? ds_accel__no_memory()
                         : ds_accel__dir_list(directory, is_visible, &names, &count, &cause);

    if (status < 0 && status != DS_ACCEL_ERR_NO_MEMORY) {
        status = ds_accel__error(DS_ACCEL_ERR_CONFIG, "kernels: %s: %s: %s", recipe->name,
                                 directory, cause);
    }
    for (size_t i = 0; i < count && status >= 0; i++) {
        if (fnmatch(slash != NULL ? slash + 1 : pattern, names[i], 0) == 0) {
            ds_accel__arguments_add(sources, "%.*s%s%s", parent_length, pattern,
                                    slash != NULL ? "/" : "", names[i]);
            found = true;
        }
    }
    if (status >= 0 && !found) {
        status = ds_accel__error(DS_ACCEL_ERR_CONFIG, "kernels: %s: there is no source %s/%s",
                                 recipe->name, recipe->source_dir, pattern);
    }
    if (names != NULL) {
        ds_accel__names_free(names, count);
    }
    free(directory);
    return status;
}

static int compare(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void sort(char **list)
{
    size_t count = ds_accel__arguments_count(list);
    size_t kept = 0;

    qsort(list, count, sizeof(*list), compare);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && strcmp(list[kept - 1], list[i]) == 0) {
            free(list[i]);
        } else {
            list[kept++] = list[i];
        }
    }
    list[kept] = NULL;
}

static int32_t check_languages(const struct ds_accel__recipe *recipe)
{
    for (size_t i = 0; recipe->sources[i] != NULL; i++) {
        if (ds_accel__recipe_language(recipe->sources[i]) == DS_ACCEL__LANGUAGE_COUNT) {
            return ds_accel__error(DS_ACCEL_ERR_CONFIG,
                                   "kernels: %s: %s: its suffix is that of no language: .c, .cpp, "
                                   ".cc, .cxx, .cu, .hip, .sycl, .dp.cpp",
                                   recipe->name, recipe->sources[i]);
        }
    }
    return DS_ACCEL_OK;
}

static int32_t read_sources(const json_t *row, struct ds_accel__recipe *recipe)
{
    struct ds_accel__arguments sources = {0};
    const json_t *array = json_object_get(row, "sources");
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < json_array_size(array) && status >= 0; i++) {
        const char *source = json_string_value(json_array_get(array, i));

        if (has_pattern(source)) {
            status = add_matches(recipe, source, &sources);
        } else {
            ds_accel__arguments_add(&sources, "%s", source);
        }
    }
    recipe->sources = ds_accel__arguments_take(&sources);
    if (recipe->sources == NULL) {
        return ds_accel__no_memory();
    }
    if (status >= 0 && recipe->sources[0] == NULL) {
        status =
            ds_accel__error(DS_ACCEL_ERR_CONFIG, "kernels: %s: it has no sources", recipe->name);
    }
    if (status >= 0) {
        sort(recipe->sources);
        status = check_languages(recipe);
    }
    return status;
}

/* Whether a compiler's list of headers would not have the path as it is: make's syntax cannot
 * express control characters, and Clang writes a slash for a backslash. */
static bool is_ambiguous(const char *path)
{
    for (; *path != '\0'; path++) {
        if ((unsigned char)*path < ' ' || *path == '\x7f' || *path == '\\') {
            return true;
        }
    }
    return false;
}

/* The directory or file of headers that a flag names. before: the flag before it; NULL: none. */
static const char *header_path(const char *flag, const char *before)
{
    static const char *const options[] = {
        "-I",       "-isystem",  "-iquote",    "-idirafter", "-include",
        "-imacros", "-isysroot", "--sysroot=", "--sysroot",  "-cxx-isystem"};

    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        if (before != NULL && strcmp(before, options[i]) == 0) {
            return flag;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        if (strncmp(flag, options[i], strlen(options[i])) == 0) {
            return flag + strlen(options[i]);
        }
    }
    return NULL;
}

static int32_t refuse_path(const struct ds_accel__recipe *recipe, const char *key, const char *path)
{
    char shown[400];

    ds_accel__copy(shown, sizeof(shown), path);
    for (char *c = shown; *c != '\0'; c++) {
        *c = (unsigned char)*c < ' ' || *c == '\x7f' ? '?' : *c;
    }
    return ds_accel__error(
        DS_ACCEL_ERR_CONFIG,
        "kernels: %s: %s: %s: compilers cannot list headers of a directory whose "
        "name has a backslash, a line break or another control character (shown "
        "as ?): rename it, or use a link to it",
        recipe->name, key, shown);
}

static int32_t check_include_dirs(const struct ds_accel__recipe *recipe)
{
    for (size_t i = 0; recipe->include_dirs[i] != NULL; i++) {
        if (is_ambiguous(recipe->include_dirs[i])) {
            return refuse_path(recipe, "include_dirs", recipe->include_dirs[i]);
        }
    }
    return DS_ACCEL_OK;
}

static int32_t check_words(const struct ds_accel__recipe *recipe, char *const *words,
                           const char *key, enum ds_accel__flag_place place)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        const char *before = i > 0 ? words[i - 1] : NULL;
        const char *path = header_path(words[i], before);
        const char *reason = ds_accel__flag_refuse(words[i], before, place);
        char why[400];

        if (path != NULL && is_ambiguous(path)) {
            return refuse_path(recipe, key, path);
        }
        if (reason == NULL &&
            ds_accel__flag_exceeds(words[i], recipe->requires, why, sizeof(why))) {
            reason = why;
        }
        if (reason != NULL) {
            return ds_accel__error(DS_ACCEL_ERR_CONFIG, "kernels: %s: %.200s %s", recipe->name,
                                   words[i], reason);
        }
    }
    return DS_ACCEL_OK;
}

/* Check the flags, with those in response files. */
static int32_t check_flags(const struct ds_accel__recipe *recipe)
{
    const struct {
        char *const *flags;
        const char *key;
        enum ds_accel__flag_place place;
    } lists[] = {{recipe->cflags, "cflags", DS_ACCEL__FLAG_OF_COMPILER},
                 {recipe->device_cflags, "device_cflags", DS_ACCEL__FLAG_OF_COMPILER},
                 {recipe->ldflags, "ldflags", DS_ACCEL__FLAG_OF_LINK}};
    int32_t status = check_include_dirs(recipe);

    for (size_t i = 0; i < ARRAY_SIZE(lists) && status >= 0; i++) {
        struct ds_accel__arguments list = {0};
        char **words;

        ds_accel__flag_words(lists[i].flags, recipe->source_dir, &list);
        words = ds_accel__arguments_take(&list);
        status = words != NULL ? check_words(recipe, words, lists[i].key, lists[i].place)
                               : ds_accel__no_memory();
        ds_accel__arguments_free(words);
    }
    return status;
}

/* hipcc would compile for the devices of this machine. */
static int32_t check_hip(const struct ds_accel__recipe *recipe)
{
    for (size_t i = 0; recipe->sources[i] != NULL; i++) {
        if (ds_accel__recipe_language(recipe->sources[i]) != DS_ACCEL__LANGUAGE_HIP) {
            continue;
        }
        for (char **flag = recipe->device_cflags; *flag != NULL; flag++) {
            if (strncmp(*flag, "--offload-arch=", 15) == 0) {
                return DS_ACCEL_OK;
            }
        }
        return ds_accel__error(DS_ACCEL_ERR_CONFIG,
                               "kernels: %s: device_cflags names no architecture for %s: "
                               "--offload-arch=gfx90a, for example",
                               recipe->name, recipe->sources[i]);
    }
    return DS_ACCEL_OK;
}

static int32_t read_images(const json_t *row, struct ds_accel__recipe *recipe)
{
    json_t *images = json_object_get(row, "images");
    const char *macro;
    json_t *source;

    if (json_object_size(images) == 0) {
        return DS_ACCEL_OK;
    }
    recipe->images = calloc(json_object_size(images), sizeof(*recipe->images));
    if (recipe->images == NULL) {
        return ds_accel__no_memory();
    }
    json_object_foreach(images, macro, source)
    {
        struct ds_accel__image *image = &recipe->images[recipe->image_count];

        if (!json_is_string(source)) { /* masked by null */
            continue;
        }
        image->macro = strdup(macro);
        image->source = strdup(json_string_value(source));
        recipe->image_count++;
        if (image->macro == NULL || image->source == NULL) {
            return ds_accel__no_memory();
        }
        if (ds_accel__recipe_language(image->source) != DS_ACCEL__LANGUAGE_CUDA) {
            return ds_accel__error(DS_ACCEL_ERR_CONFIG,
                                   "kernels: %s: images: %s: only nvcc makes images, of a .cu",
                                   recipe->name, image->source);
        }
    }
    return DS_ACCEL_OK;
}

static int32_t read_directory(const json_t *row, struct ds_accel__recipe *recipe)
{
    const char *given = ds_accel__json_string(row, "source_dir");
    char *data;
    char *path;

    if (given[0] == '\0') {
        return ds_accel__error(DS_ACCEL_ERR_CONFIG, "kernels: %s: it has no source_dir",
                               recipe->name);
    }
    data = given[0] != '/' ? ds_accel__data_dir() : NULL;
    path = given[0] == '/' ? strdup(given) : data != NULL ? ds_accel__join(data, '/', given) : NULL;
    free(data);
    if (path == NULL) {
        return ds_accel__no_memory();
    }
    recipe->source_dir = realpath(path, NULL);
    if (recipe->source_dir == NULL) {
        int32_t status = errno == ENOMEM ? ds_accel__no_memory()
                                         : ds_accel__error(DS_ACCEL_ERR_CONFIG,
                                                           "kernels: %s: source_dir: %s: %s",
                                                           recipe->name, path, strerror(errno));

        free(path);
        return status;
    }
    recipe->given_dir = path;
    return DS_ACCEL_OK;
}

static int32_t read_row(const json_t *row, struct ds_accel__recipe *recipe)
{
    const json_t *requires = json_object_get(row, "requires");
    int32_t status = read_directory(row, recipe);

    if (status >= 0) {
        status = read_sources(row, recipe);
    }
    if (status >= 0 &&
        (!read_list(row, "include_dirs", &recipe->include_dirs) ||
         !read_list(row, "cflags", &recipe->cflags) ||
         !read_list(row, "device_cflags", &recipe->device_cflags) ||
         !read_list(row, "ldflags", &recipe->ldflags) || !read_list(row, "libs", &recipe->libs))) {
        status = ds_accel__no_memory();
    }
    if (status >= 0) {
        status = read_images(row, recipe);
    }
    if (status >= 0 && json_is_object(requires)) {
        recipe->requires = json_deep_copy(requires);
        status = recipe->requires != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    if (status >= 0) {
        status = check_flags(recipe);
    }
    if (status >= 0) {
        status = check_hip(recipe);
    }
    return status;
}

static bool lacks(const struct ds_accel__recipe *recipe, const char *source)
{
    char *path = ds_accel__join(recipe->source_dir, '/', source);
    bool is_missing = path != NULL && access(path, F_OK) != 0;

    free(path);
    return is_missing;
}

/* Remember which file names the sources if one is missing, for the error of its digest. */
static void set_origin(const struct ds_accel__config *config, struct ds_accel__recipe *recipe)
{
    char pointer[256] = "/kernels";
    bool is_missing = false;

    for (size_t i = 0; recipe->sources[i] != NULL; i++) {
        is_missing = is_missing || lacks(recipe, recipe->sources[i]);
    }
    for (size_t i = 0; i < recipe->image_count; i++) {
        is_missing = is_missing || lacks(recipe, recipe->images[i].source);
    }
    if (is_missing && ds_accel__pointer_append(pointer, sizeof(pointer), recipe->name) &&
        ds_accel__pointer_append(pointer, sizeof(pointer), "sources")) {
        recipe->origin = ds_accel__config_origin(config, pointer);
    }
}

int32_t ds_accel__recipe_read(const struct ds_accel__config *config, const char *backend,
                              const char *op, struct ds_accel__recipe *recipe)
{
    json_t *row;
    int32_t status;

    *recipe = (struct ds_accel__recipe){.name = ds_accel__join(backend, '/', op)};
    if (recipe->name == NULL) {
        return ds_accel__no_memory();
    }
    row = ds_accel__config_get(config, "kernels", recipe->name, NULL);
    if (row == NULL) {
        row = ds_accel__config_get(config, "kernels", op, NULL);
        memmove(recipe->name, recipe->name + strlen(backend) + 1, strlen(op) + 1);
    }
    recipe->op = recipe->name + (strrchr(recipe->name, '/') != NULL ? strlen(backend) + 1 : 0);
    status = row == NULL
                 ? ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                                   "the configuration has no recipe of %s for %s", op, backend)
                 : read_row(row, recipe);
    if (status < 0) {
        ds_accel__recipe_clear(recipe);
    } else {
        set_origin(config, recipe);
    }
    return status;
}

void ds_accel__recipe_clear(struct ds_accel__recipe *recipe)
{
    for (size_t i = 0; i < recipe->image_count; i++) {
        free(recipe->images[i].macro);
        free(recipe->images[i].source);
    }
    free(recipe->images);
    ds_accel__arguments_free(recipe->sources);
    ds_accel__arguments_free(recipe->include_dirs);
    ds_accel__arguments_free(recipe->cflags);
    ds_accel__arguments_free(recipe->device_cflags);
    ds_accel__arguments_free(recipe->ldflags);
    ds_accel__arguments_free(recipe->libs);
    json_decref(recipe->requires);
    free(recipe->origin);
    free(recipe->given_dir);
    free(recipe->source_dir);
    free(recipe->name);
    *recipe = (struct ds_accel__recipe){0};
}

/* ---- the digest ------------------------------------------------------------------------------ */

int32_t ds_accel__source_digest(const char *path, char digest_out[65])
{
    const char *cause = NULL;
    int32_t status = DS_ACCEL_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0) {
        return ds_accel__error(errno == ENOENT || errno == ENOTDIR ? DS_ACCEL_ERR_NOT_FOUND
                                                                   : DS_ACCEL_ERR_IO,
                               "%s: %s", path, strerror(errno));
    }
    if (ds_accel__trust_hash(fd, digest_out, &cause) < 0) {
        status = ds_accel__error(DS_ACCEL_ERR_IO, "%s: %s", path, cause);
    }
    close(fd);
    return status;
}

/* A digest while it grows. */
struct digest {
    const struct ds_accel__recipe *recipe;
    struct ds_accel__trust *trust;
    SHA2_CTX hash;
};

static void add_text(struct digest *digest, const char *role, const char *text)
{
    char size[32];

    snprintf(size, sizeof(size), " %zu:", strlen(text));
    SHA256Update(&digest->hash, (const uint8_t *)role, strlen(role));
    SHA256Update(&digest->hash, (const uint8_t *)size, strlen(size));
    SHA256Update(&digest->hash, (const uint8_t *)text, strlen(text));
}

static void add_list(struct digest *digest, const char *role, char *const *list)
{
    for (; *list != NULL; list++) {
        add_text(digest, role, *list);
    }
}

/* Say that a source is missing, or that it cannot be trusted, with the recipe that names it. */
static int32_t refuse_source(const struct ds_accel__recipe *recipe, const char *path,
                             const struct ds_accel__finding *finding)
{
    struct stat info;

    if (lstat(path, &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        return ds_accel__error(
            DS_ACCEL_ERR_NOT_FOUND, "kernels: %s%s%s%s: the source %s does not exist", recipe->name,
            recipe->origin != NULL ? " (" : "", recipe->origin != NULL ? recipe->origin : "",
            recipe->origin != NULL ? ")" : "", path);
    }
    return ds_accel__error(
        finding->reason == DS_ACCEL__REASON_FILE_CHANGED ? DS_ACCEL_ERR_NOT_FOUND
                                                         : DS_ACCEL_ERR_PERMISSION,
        "%s: %s: %s", path, ds_accel__reason_code(finding->reason), finding->detail);
}

static int32_t add_source(struct digest *digest, const char *source)
{
    char *path = ds_accel__join(digest->recipe->source_dir, '/', source);
    struct ds_accel__finding finding = {.reason = DS_ACCEL__REASON_NONE};
    struct stat info;
    char text[65];
    int32_t status = path != NULL ? ds_accel__trust_stat(digest->trust, path, &info, &finding)
                                  : ds_accel__no_memory();

    if (status >= 0 && finding.reason != DS_ACCEL__REASON_NONE) {
        status = refuse_source(digest->recipe, path, &finding);
    }
    if (status >= 0) {
        status = ds_accel__source_digest(path, text);
    }
    if (status >= 0) {
        add_text(digest, "source", source);
        add_text(digest, "contents", text);
    }
    free(path);
    return status;
}

char **ds_accel__recipe_flag_files(const struct ds_accel__recipe *recipe, bool are_sources)
{
    char *const *const lists[] = {recipe->cflags, recipe->device_cflags, recipe->ldflags};
    struct ds_accel__arguments list = {0};
    size_t length = strlen(recipe->source_dir);
    size_t kept = 0;
    char **files;

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        ds_accel__flag_files(lists[i], recipe->source_dir, &list);
    }
    files = ds_accel__arguments_take(&list);
    for (size_t i = 0; files != NULL && files[i] != NULL; i++) {
        bool is_source = strncmp(files[i], recipe->source_dir, length) == 0 &&
                         files[i][length] == '/';

        if (is_source == are_sources) {
            files[kept++] = files[i];
        } else {
            free(files[i]);
        }
    }
    if (files != NULL) {
        files[kept] = NULL;
    }
    return files;
}

static int32_t add_flag_files(struct digest *digest)
{
    char **files = ds_accel__recipe_flag_files(digest->recipe, true);
    int32_t status = files != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    char text[65];

    for (size_t i = 0; status >= 0 && files[i] != NULL; i++) {
        status = ds_accel__source_digest(files[i], text);
        if (status >= 0) {
            add_text(digest, "file", text);
        }
    }
    ds_accel__arguments_free(files);
    return status;
}

int32_t ds_accel__recipe_digest(const struct ds_accel__recipe *recipe, char digest_out[65])
{
    struct digest digest = {.recipe = recipe, .trust = ds_accel__trust_create()};
    char *requires = recipe->requires != NULL
                         ? ds_accel__json_dump(recipe->requires, JSON_COMPACT | JSON_SORT_KEYS)
                         : strdup("");
    int32_t status = digest.trust != NULL && requires != NULL ? DS_ACCEL_OK : ds_accel__no_memory();

    SHA256Init(&digest.hash);
    if (status >= 0) {
        add_text(&digest, FORM, recipe->name);
        add_list(&digest, "include", recipe->include_dirs);
        add_list(&digest, "cflag", recipe->cflags);
        add_list(&digest, "device flag", recipe->device_cflags);
        add_list(&digest, "ldflag", recipe->ldflags);
        add_list(&digest, "lib", recipe->libs);
        add_text(&digest, "requires", requires);
        status = add_flag_files(&digest);
    }
    for (size_t i = 0; status >= 0 && recipe->sources[i] != NULL; i++) {
        status = add_source(&digest, recipe->sources[i]);
    }
    for (size_t i = 0; status >= 0 && i < recipe->image_count; i++) {
        add_text(&digest, "image", recipe->images[i].macro);
        status = add_source(&digest, recipe->images[i].source);
    }
    SHA256End(&digest.hash, digest_out);
    free(requires);
    ds_accel__trust_destroy(digest.trust);
    return status;
}
