/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Configuration: layers of JSON files, checked one by one and merged key by key.
 *
 *   PREFIX/share/ds-accel/ *.json  <  /etc/ds-accel/ds-accel.json  <  /etc/ds-accel/conf.d/ *.json
 *       <  $XDG_CONFIG_HOME/ds-accel/ *.json, or the one file of DS_ACCEL_CONFIG
 *
 * The layers are shown lowest first. Within a directory the order is byte-wise, except that
 * ds-accel's own files come before those of other packages. Objects are merged; an array or scalar
 * replaces the value of lower layers; null removes that value. Nothing is merged before every file
 * has passed its check. A file named ops.json or *.ops.json holds only op builders and is read on
 * demand: op builders are by far the largest part, and detection does not need them.
 */
#include "config/config.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "config/env.h"
#include "config/prefix.h"
#include "config/snapshot.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The limit of one file; the largest shipped file has about 100 KiB. */
#define FILE_LIMIT_BYTES (1024 * 1024)

const char *ds_accel__config_layer_name(enum ds_accel__config_layer layer)
{
    static const char *const names[] = {"package", "system", "user", "explicit"};

    assert((size_t)layer < ARRAY_SIZE(names));
    return names[layer];
}

/* ---- finding the files ---------------------------------------------------------------------- */

static bool is_json(const char *name)
{
    size_t length = strlen(name);

    return name[0] != '.' && length > 5 && strcmp(name + length - 5, ".json") == 0;
}

static bool is_ops_file(const char *name)
{
    size_t length = strlen(name);

    return strcmp(name, "ops.json") == 0 ||
           (length > 9 && strcmp(name + length - 9, ".ops.json") == 0);
}

static bool is_shipped(const char *name)
{
    return strcmp(name, "ds-accel.json") == 0 || strcmp(name, "ops.json") == 0;
}

/* Append a file. Takes ownership of path, which may be NULL after a failed allocation. */
static int32_t add_file(struct ds_accel__config *config, char *path,
                        enum ds_accel__config_layer layer)
{
    struct ds_accel__config_file *files;

    if (path == NULL) {
        return ds_accel__no_memory();
    }
    files = realloc(config->files, (config->file_count + 1) * sizeof(*files));
    if (files == NULL) {
        free(path);
        return ds_accel__no_memory();
    }
    config->files = files;
    files[config->file_count++] = (struct ds_accel__config_file){
        .path = path,
        .layer = layer,
        .is_ops = is_ops_file(strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path),
    };
    return DS_ACCEL_OK;
}

int32_t ds_accel__config_add_file(struct ds_accel__config *config, const char *path,
                                  enum ds_accel__config_layer layer, const char *text)
{
    struct ds_accel__config_file *file;
    int32_t status = add_file(config, strdup(path), layer);

    if (status < 0 || text == NULL) {
        return status;
    }
    file = &config->files[config->file_count - 1];
    file->text = strdup(text);
    file->size_bytes = strlen(text);
    file->is_given = true;
    return file->text != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

static int32_t add_problem(struct ds_accel__config *config, const char *file, int line, int column,
                           const char *message)
{
    struct ds_accel__config_problem *problems;
    struct ds_accel__config_problem problem = {.line = line, .column = column};

    problems = realloc(config->problems, (config->problem_count + 1) * sizeof(*problems));
    if (problems == NULL) {
        return ds_accel__no_memory();
    }
    config->problems = problems;
    problem.file = strdup(file);
    problem.message = strdup(message);
    if (problem.file == NULL || problem.message == NULL) {
        free(problem.file);
        free(problem.message);
        return ds_accel__no_memory();
    }
    ds_accel__sanitize(problem.message, strlen(problem.message) + 1);
    problems[config->problem_count++] = problem;
    return DS_ACCEL_OK;
}

static int32_t add_dir(struct ds_accel__config *config, const char *dir,
                       enum ds_accel__config_layer layer)
{
    char **names;
    size_t count;
    const char *cause;
    int32_t status = ds_accel__dir_list(dir, is_json, &names, &count, &cause);

    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        return status;
    }
    if (status < 0 && layer == DS_ACCEL__CONFIG_LAYER_USER) {
        /*
         * An unreadable user directory is no configuration error: the HOME of a service, for
         * example, may belong to another user.
         */
        snprintf(config->unread, sizeof(config->unread), "%.200s: %.50s", dir, cause);
        return DS_ACCEL_OK;
    }
    if (status < 0) {
        char *message = ds_accel__format("cannot read the directory: %s", cause);

        status = message == NULL ? ds_accel__no_memory() : add_problem(config, dir, 1, 1, message);
        free(message);
        return status;
    }
    /*
     * ds-accel's own files are a lower layer than other packages' files, regardless of the names.
     */
    for (int shipped = layer == DS_ACCEL__CONFIG_LAYER_PACKAGE; shipped >= 0; shipped--) {
        for (size_t i = 0; i < count && status >= 0; i++) {
            if (layer != DS_ACCEL__CONFIG_LAYER_PACKAGE || is_shipped(names[i]) == (shipped == 1)) {
                status = add_file(config, ds_accel__format("%s/%s", dir, names[i]), layer);
            }
        }
    }
    ds_accel__names_free(names, count);
    return status;
}

static int32_t add_dir_below(struct ds_accel__config *config, const char *base, const char *below,
                             enum ds_accel__config_layer layer)
{
    char *dir = ds_accel__format("%s%s", base, below);
    int32_t status = dir == NULL ? ds_accel__no_memory() : add_dir(config, dir, layer);

    free(dir);
    return status;
}

static int32_t find_files(struct ds_accel__config *config, const struct ds_accel_options *options,
                          const struct ds_accel__env *env)
{
    const char *system_dir = options->system_config_dir != NULL ? options->system_config_dir
                                                                : ds_accel__built_for.config_dir;
    const char *explicit_file = options->config_file != NULL
                                    ? options->config_file
                                    : env->values[DS_ACCEL__VARIABLE_CONFIG];
    char *package = options->package_config_dir != NULL ? strdup(options->package_config_dir)
                                                        : ds_accel__data_dir();
    char *path = ds_accel__format("%s/ds-accel.json", system_dir);
    struct stat info;
    int32_t status;

    if (package == NULL || path == NULL) {
        free(package);
        free(path);
        return ds_accel__no_memory();
    }
    status = add_dir(config, package, DS_ACCEL__CONFIG_LAYER_PACKAGE);
    free(package);
    /* Use lstat() to add a dangling link, too, so that reading it reports an error. */
    if (status >= 0 && lstat(path, &info) == 0) {
        status = add_file(config, path, DS_ACCEL__CONFIG_LAYER_SYSTEM);
        path = NULL;
    }
    free(path);
    if (status >= 0) {
        status = add_dir_below(config, system_dir, "/conf.d", DS_ACCEL__CONFIG_LAYER_SYSTEM);
    }
    if (status >= 0 && explicit_file != NULL) {
        status = add_file(config, strdup(explicit_file), DS_ACCEL__CONFIG_LAYER_EXPLICIT);
    } else if (status >= 0 && (options->flags & DS_ACCEL_OPTION_NO_USER_CONFIG) == 0) {
        char *user = ds_accel__env_user_config_dir();

        if (user != NULL) {
            status = add_dir_below(config, user, "/ds-accel", DS_ACCEL__CONFIG_LAYER_USER);
        }
        free(user);
    }
    return status;
}

/* ---- reading and checking ------------------------------------------------------------------- */

struct file_check {
    struct ds_accel__config *config;
    const struct ds_accel__config_file *file;
};

static int32_t on_problem(void *user_data, const char *pointer, bool is_key, const char *message)
{
    struct file_check *check = user_data;
    int line;
    int column;

    ds_accel__config_locate(check->file->text, check->file->size_bytes, pointer, is_key, &line,
                            &column);
    return add_problem(check->config, check->file->path, line, column, message);
}

int32_t ds_accel__config_parse(struct ds_accel__config *config, struct ds_accel__config_file *file)
{
    struct file_check check = {.config = config, .file = file};
    json_error_t error;

    assert(file->root == NULL && file->text != NULL);
    if (!ds_accel__json_has_headroom(file->size_bytes)) {
        return ds_accel__no_memory();
    }
    file->root = json_loadb(file->text, file->size_bytes, JSON_REJECT_DUPLICATES, &error);
    if (file->root == NULL) {
        char *message;
        int32_t status;

        if (json_error_code(&error) == json_error_out_of_memory) {
            return ds_accel__no_memory();
        }
        message = ds_accel__format("%s; expected one JSON object%s", error.text,
                                   json_error_code(&error) == json_error_duplicate_key
                                       ? " whose keys are all different"
                                       : "");
        if (message == NULL) {
            return ds_accel__no_memory();
        }
        status = add_problem(config, file->path, error.line > 0 ? error.line : 1,
                             error.column > 0 ? error.column : 1, message);
        free(message);
        return status;
    }
    return ds_accel__config_check_tree(file->root, file->is_ops, on_problem, &check);
}

static int32_t read_file(struct ds_accel__config *config, struct ds_accel__config_file *file)
{
    const char *cause;
    int32_t status;

    if (file->is_given) {
        return ds_accel__config_parse(config, file);
    }
    free(file->text); /* an earlier attempt to read the file may have set the text */
    file->text = NULL;
    status =
        ds_accel__file_read(file->path, FILE_LIMIT_BYTES, &file->text, &file->size_bytes, &cause);

    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        return status;
    }
    if (status < 0) {
        char *message = ds_accel__format(
            "cannot read it: %s; expected a readable file of at most 1 MiB with one JSON object",
            cause);

        status = message == NULL ? ds_accel__no_memory()
                                 : add_problem(config, file->path, 1, 1, message);
        free(message);
        return status;
    }
    return ds_accel__config_parse(config, file);
}

/* True if a package declares the option, or if no package declares any option of this backend. If
 * false, names contains the declared options, up to limit. */
static bool is_declared(const struct ds_accel__config *config, const char *backend, const char *key,
                        const char **names, size_t limit, size_t *count_out)
{
    bool found = false;
    bool has_any = false;

    *count_out = 0;
    for (size_t i = 0; i < config->file_count && !found; i++) {
        json_t *backends = json_object_get(config->files[i].root, "backends");
        json_t *declared = json_object_get(json_object_get(backends, backend), "options");
        const char *name;
        json_t *ignored;

        if (config->files[i].layer != DS_ACCEL__CONFIG_LAYER_PACKAGE) {
            continue;
        }
        has_any = has_any || json_object_size(declared) > 0;
        found = json_object_get(declared, key) != NULL;
        json_object_foreach(declared, name, ignored)
        {
            if (*count_out < limit) {
                names[(*count_out)++] = name;
            }
        }
    }
    return found || !has_any;
}

static int32_t check_option(struct file_check *check, const char *backend, const char *key)
{
    const char *names[64];
    size_t count;
    const char *nearest;
    char pointer[1024] = "/backends";
    char message[256];

    if (is_declared(check->config, backend, key, names, ARRAY_SIZE(names), &count)) {
        return DS_ACCEL_OK;
    }
    if (!ds_accel__pointer_append(pointer, sizeof(pointer), backend) ||
        !ds_accel__pointer_append(pointer, sizeof(pointer), "options") ||
        !ds_accel__pointer_append(pointer, sizeof(pointer), key)) {
        return DS_ACCEL_OK; /* the check of keys reports such a long key */
    }
    nearest = ds_accel__nearest(key, names, count);
    snprintf(message, sizeof(message), "unknown option \"%.64s\" of %s%s%s%s", key, backend,
             nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
             nearest != NULL ? "\"?" : "");
    return on_problem(check, pointer, true, message);
}

/* If packages declare options of a backend, only these options are valid. */
static int32_t check_options(struct ds_accel__config *config)
{
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < config->file_count; i++) {
        struct file_check check = {.config = config, .file = &config->files[i]};
        const char *backend;
        json_t *entry;

        if (check.file->layer == DS_ACCEL__CONFIG_LAYER_PACKAGE) {
            continue;
        }
        json_object_foreach(json_object_get(check.file->root, "backends"), backend, entry)
        {
            const char *key;
            json_t *value;

            json_object_foreach(json_object_get(entry, "options"), key, value)
            {
                status = check_option(&check, backend, key);
                if (status < 0) {
                    return status;
                }
            }
        }
    }
    return status;
}

/* ---- merging -------------------------------------------------------------------------------- */

/* Copy objects, so that merging never changes a file's own tree. Other values are shared. */
static json_t *copy_objects(json_t *value)
{
    json_t *copy;
    const char *key;
    json_t *member;

    if (!json_is_object(value)) {
        return json_incref(value);
    }
    copy = json_object();
    if (copy == NULL) {
        return NULL;
    }
    json_object_foreach(value, key, member)
    {
        if (json_object_set_new(copy, key, copy_objects(member)) != 0) {
            json_decref(copy);
            return NULL;
        }
    }
    return copy;
}

static int merge_object(json_t *into, json_t *from)
{
    const char *key;
    json_t *value;

    json_object_foreach(from, key, value)
    {
        json_t *existing = json_object_get(into, key);
        int failed;

        if (json_is_object(existing) && json_is_object(value)) {
            failed = merge_object(existing, value);
        } else {
            failed = json_object_set_new(into, key, copy_objects(value));
        }
        if (failed != 0) {
            return -1;
        }
    }
    return 0;
}

/*
 * The tree of the only file that was read: it needs neither merging nor copying. NULL if there is
 * not exactly one such file.
 */
static json_t *only_root(const struct ds_accel__config *config)
{
    json_t *only = NULL;

    for (size_t i = 0; i < config->file_count; i++) {
        if (config->files[i].root != NULL && only != NULL) {
            return NULL;
        }
        only = config->files[i].root != NULL ? config->files[i].root : only;
    }
    return only;
}

static int32_t merge_files(struct ds_accel__config *config)
{
    json_t *only = only_root(config);
    json_t *merged = only != NULL ? json_incref(only) : json_object();

    assert(config->problem_count == 0); /* every file has passed its check */
    for (size_t i = 0; i < config->file_count && merged != NULL && only == NULL; i++) {
        if (config->files[i].root != NULL && merge_object(merged, config->files[i].root) != 0) {
            json_decref(merged);
            merged = NULL;
        }
    }
    if (merged == NULL) {
        return ds_accel__no_memory();
    }
    json_decref(config->merged);
    config->merged = merged;
    return DS_ACCEL_OK;
}

static void forget_problems(struct ds_accel__config *config)
{
    for (size_t i = 0; i < config->problem_count; i++) {
        free(config->problems[i].file);
        free(config->problems[i].message);
    }
    free(config->problems);
    config->problems = NULL;
    config->problem_count = 0;
}

int32_t ds_accel__config_merge(struct ds_accel__config *config)
{
    int32_t status = check_options(config);

    if (status < 0) {
        return status;
    }
    if (config->problem_count > 0) {
        struct ds_accel__text text = {0};

        for (size_t i = 0; i < config->file_count; i++) {
            if (config->files[i].is_ops) { /* the next attempt reads the file again */
                json_decref(config->files[i].root);
                config->files[i].root = NULL;
            }
        }
        ds_accel__config_problems_text(config, &text);
        ds_accel__error_lines(DS_ACCEL_ERR_CONFIG, text.failed ? "" : text.data);
        ds_accel__text_clear(&text);
        return DS_ACCEL_ERR_CONFIG;
    }
    return merge_files(config);
}

static int32_t read_files(struct ds_accel__config *config, bool with_ops)
{
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < config->file_count && status >= 0; i++) {
        struct ds_accel__config_file *file = &config->files[i];

        if (file->root == NULL && (with_ops || !file->is_ops)) {
            status = read_file(config, file);
        }
    }
    if (status >= 0) {
        status = ds_accel__config_merge(config);
    }
    if (status >= 0) {
        config->has_ops = with_ops;
    }
    return status;
}

int32_t ds_accel__config_add_problem(struct ds_accel__config *config, const char *source,
                                     const char *message)
{
    return add_problem(config, source, 1, 1, message);
}

/* True if the file is already listed, such as a file of a package. */
static bool is_found(const struct ds_accel__config *config, const struct stat *info)
{
    struct stat other;

    for (size_t i = 0; i < config->file_count; i++) {
        if (!config->files[i].is_given && stat(config->files[i].path, &other) == 0 &&
            other.st_dev == info->st_dev && other.st_ino == info->st_ino) {
            return true;
        }
    }
    return false;
}

static int32_t add_named(struct ds_accel__config *config, const char *path, const char *text)
{
    struct stat info;
    bool is_here = text == NULL && stat(path, &info) == 0;

    if (is_here && S_ISDIR(info.st_mode)) {
        return add_dir(config, path, DS_ACCEL__CONFIG_LAYER_EXPLICIT);
    }
    if (is_here && is_found(config, &info)) {
        return DS_ACCEL_OK;
    }
    return ds_accel__config_add_file(config, path, DS_ACCEL__CONFIG_LAYER_EXPLICIT, text);
}

int32_t ds_accel__config_find_named(struct ds_accel__config *config,
                                    const struct ds_accel_options *options,
                                    const char *const *paths, const char *const *texts,
                                    uint32_t count)
{
    char *package = options->package_config_dir != NULL ? strdup(options->package_config_dir)
                                                        : ds_accel__data_dir();
    int32_t status;

    memset(config, 0, sizeof(*config));
    if (package == NULL) {
        return ds_accel__no_memory();
    }
    status = add_dir(config, package, DS_ACCEL__CONFIG_LAYER_PACKAGE);
    free(package);
    for (uint32_t i = 0; i < count && status >= 0; i++) {
        status = add_named(config, paths[i], texts != NULL ? texts[i] : NULL);
    }
    return status;
}

int32_t ds_accel__config_find(struct ds_accel__config *config,
                              const struct ds_accel_options *options,
                              const struct ds_accel__env *env)
{
    memset(config, 0, sizeof(*config));
    return find_files(config, options, env);
}

int32_t ds_accel__config_read(struct ds_accel__config *config, bool with_ops)
{
    int32_t status;

    config->ops_read_s = with_ops ? time(NULL) : config->ops_read_s;
    status = read_files(config, with_ops);
    if (status >= 0) {
        config->is_snapshot = false;
    }
    return status;
}

int32_t ds_accel__config_load_ops(struct ds_accel__config *config)
{
    if (config->has_ops) {
        return DS_ACCEL_OK;
    }
    forget_problems(config); /* an earlier attempt may have added problems */
    return ds_accel__config_read(config, true);
}

void ds_accel__config_clear(struct ds_accel__config *config)
{
    struct ds_accel__config_late *late;

    for (size_t i = 0; i < config->file_count; i++) {
        free(config->files[i].path);
        free(config->files[i].text);
        json_decref(config->files[i].root);
    }
    forget_problems(config);
    free(config->files);
    json_decref(config->merged);
    if (config->later != NULL) {
        while ((late = config->later->late) != NULL) {
            config->later->late = late->next;
            json_decref(late->tree);
            free(late);
        }
        json_decref(config->later->whole);
        free(config->later->data);
        free(config->later);
    }
    memset(config, 0, sizeof(*config));
}

/* ---- lookup --------------------------------------------------------------------------------- */

void ds_accel__config_problems_text(const struct ds_accel__config *config,
                                    struct ds_accel__text *text)
{
    for (size_t i = 0; i < config->problem_count; i++) {
        const struct ds_accel__config_problem *problem = &config->problems[i];
        char *line = ds_accel__format("%s:%d:%d: %s", problem->file, problem->line, problem->column,
                                      problem->message);

        if (line == NULL) {
            text->failed = true;
            return;
        }
        ds_accel__sanitize(line, strlen(line) + 1);
        ds_accel__text_add(text, "%s%s", i > 0 ? "\n" : "", line);
        free(line);
    }
}

static json_t *present(json_t *value)
{
    return json_is_null(value) ? NULL : value;
}

/*
 * The whole configuration; NULL if memory is exhausted. Several threads may call it at once: the
 * first tree that is stored is used by all.
 */
static json_t *whole_of(const struct ds_accel__config *config)
{
    struct ds_accel__config_later *later = config->later;
    json_t *other = NULL;
    json_t *whole;

    assert(!config->is_snapshot || config->identity != 0);
    if (!config->is_snapshot || later == NULL) {
        return config->merged;
    }
    whole = __atomic_load_n(&later->whole, __ATOMIC_ACQUIRE);
    if (whole == NULL) {
        whole = ds_accel__snapshot_parse(later->data, later->size_bytes, config->identity, false);
        if (whole != NULL && !__atomic_compare_exchange_n(&later->whole, &other, whole, false,
                                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            /* the exchange failed because another thread stored its tree first */
            assert(other != NULL);
            json_decref(whole);
            whole = other;
        }
    }
    return whole;
}

/* Find a backend in a list of late facts. */
static struct ds_accel__config_late *find_late(struct ds_accel__config_late *late,
                                               const char *backend)
{
    while (late != NULL && strcmp(late->backend, backend) != 0) {
        late = late->next;
    }
    return late;
}

static struct ds_accel__config_late *parse_late(const struct ds_accel__config_later *later,
                                                const char *backend)
{
    size_t size = strlen(backend) + 1;
    struct ds_accel__config_late *late = malloc(sizeof(*late) + size);

    if (late == NULL) {
        return NULL;
    }
    memcpy(late->backend, backend, size);
    late->tree = ds_accel__snapshot_late(later->data, later->size_bytes, backend);
    if (late->tree == NULL) {
        free(late);
        return NULL;
    }
    return late;
}

/*
 * A tree with the late facts of a backend; NULL if memory is exhausted. Several threads may call it
 * at once: they only prepend to the list, and the first tree of a backend is used by all.
 */
static json_t *late_of(const struct ds_accel__config *config, const char *backend)
{
    struct ds_accel__config_later *later = config->later;
    struct ds_accel__config_late *first;
    struct ds_accel__config_late *late;
    struct ds_accel__config_late *other;

    assert(!config->is_snapshot || config->identity != 0);
    if (!config->is_snapshot || later == NULL) {
        return config->merged;
    }
    if (__atomic_load_n(&later->whole, __ATOMIC_ACQUIRE) != NULL) {
        return whole_of(config);
    }
    first = __atomic_load_n(&later->late, __ATOMIC_ACQUIRE);
    late = find_late(first, backend);
    if (late != NULL) {
        return late->tree;
    }
    late = parse_late(later, backend);
    if (late == NULL) {
        return NULL;
    }
    do {
        other = find_late(first, backend);
        if (other != NULL) {
            json_decref(late->tree);
            free(late);
            return other->tree;
        }
        late->next = first;
    } while (!__atomic_compare_exchange_n(&later->late, &first, late, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return late->tree;
}

int32_t ds_accel__config_complete(const struct ds_accel__config *config, const char *backend)
{
    bool is_complete = config->merged == NULL ||
                       (backend != NULL ? late_of(config, backend) : whole_of(config)) != NULL;

    return is_complete ? DS_ACCEL_OK : ds_accel__no_memory();
}

/*
 * Choose the tree for a path of keys: config->merged if detection reads the value, else the late
 * facts of the backend, or the whole configuration if the path ends in front of them.
 */
static json_t *tree_of(const struct ds_accel__config *config, va_list keys)
{
    const char *key = va_arg(keys, const char *);

    if (key != NULL && strcmp(key, "backends") == 0) {
        const char *backend = va_arg(keys, const char *);
        json_t *tree;

        key = backend != NULL ? va_arg(keys, const char *) : NULL;
        if (key == NULL || !ds_accel__snapshot_is_early(key)) {
            tree = key != NULL ? late_of(config, backend) : whole_of(config);
            return tree != NULL ? tree : config->merged;
        }
    }
    return config->merged;
}

json_t *ds_accel__config_get(const struct ds_accel__config *config, ...)
{
    json_t *value = config->merged;
    const char *key;
    va_list keys;

    assert(!config->is_snapshot || config->merged != NULL);
    if (config->is_snapshot) {
        va_start(keys, config);
        value = tree_of(config, keys);
        va_end(keys);
    }
    va_start(keys, config);
    while ((key = va_arg(keys, const char *)) != NULL) {
        value = json_object_get(value, key);
    }
    va_end(keys);
    return present(value);
}

json_t *ds_accel__config_facts(const struct ds_accel__config *config, const char *backend)
{
    json_t *backends = json_object_get(config->merged, "backends");

    return present(backend != NULL ? json_object_get(backends, backend) : backends);
}

json_t *ds_accel__config_backend(const struct ds_accel__config *config, const char *backend,
                                 const char *key)
{
    return ds_accel__config_get(config, "backends", backend, key, NULL);
}

const char *ds_accel__config_remedy(const struct ds_accel__config *config, const char *backend,
                                    enum ds_accel__reason_id reason)
{
    const struct ds_accel__reason *known = ds_accel__reason(reason);
    json_t *own = NULL;

    if (reason != DS_ACCEL__REASON_NONE) {
        own = ds_accel__config_get(config, "backends", backend, "remedies", known->code, NULL);
    }
    return own != NULL ? json_string_value(own) : known->remedy;
}

const char *ds_accel__config_string(const struct ds_accel__config *config, const char *key)
{
    return json_string_value(ds_accel__config_get(config, key, NULL));
}

/* Return the value at a JSON pointer; NULL if there is no value. */
static json_t *resolve(json_t *value, const char *pointer)
{
    while (value != NULL && *pointer == '/') {
        size_t length = strcspn(++pointer, "/");
        char key[256]; /* large enough: the check rejects keys of more than 255 bytes */
        size_t at = 0;

        for (size_t i = 0; i < length && at + 1 < sizeof(key); i++) {
            if (pointer[i] == '~' && i + 1 < length) {
                key[at++] = pointer[++i] == '1' ? '/' : '~';
            } else {
                key[at++] = pointer[i];
            }
        }
        key[at] = '\0';
        value = json_is_array(value) ? json_array_get(value, strtoul(key, NULL, 10))
                                     : json_object_get(value, key);
        pointer += length;
    }
    return value;
}

/* The file of the highest layer that sets the value at a JSON pointer, or NULL. */
static const struct ds_accel__config_file *find_origin(const struct ds_accel__config *config,
                                                       const char *pointer)
{
    for (size_t i = config->file_count; i-- > 0;) {
        const struct ds_accel__config_file *file = &config->files[i];

        if (file->root != NULL && resolve(file->root, pointer) != NULL) {
            return file;
        }
    }
    return NULL;
}

char *ds_accel__config_origin(const struct ds_accel__config *config, const char *pointer)
{
    const struct ds_accel__config_file *file = find_origin(config, pointer);
    int line;
    int column;

    if (file == NULL) {
        return NULL;
    }
    ds_accel__config_locate(file->text, file->size_bytes, pointer, false, &line, &column);
    return ds_accel__format("%s:%d", file->path, line);
}

bool ds_accel__config_is_package(const struct ds_accel__config *config, const char *pointer)
{
    const struct ds_accel__config_file *file = find_origin(config, pointer);

    return file == NULL || file->layer == DS_ACCEL__CONFIG_LAYER_PACKAGE;
}

int32_t ds_accel__config_add_problem_at(struct ds_accel__config *config, const char *pointer,
                                        const char *message)
{
    struct file_check check = {.config = config, .file = find_origin(config, pointer)};

    return check.file != NULL ? on_problem(&check, pointer, true, message) : DS_ACCEL_OK;
}
