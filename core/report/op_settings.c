/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Makes the text of the user's configuration file with other settings of an op. The values are
 * replaced in the text of the file, or added to it, so that everything else keeps its form. Nothing
 * is written: the caller replaces the file.
 */
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "ds_accel_tools.h"
#include "host/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_LIMIT_BYTES ((size_t)1 << 20) /* of a configuration file */
#define POINTER_SIZE 1024
#define KEYS 3 /* op_settings, the op, the setting */
#define BLANKS " \t\r\n"

/* ---- the text ------------------------------------------------------------------------------- */

/* Add an object for each key, the innermost with the value; only the value if there is no key. */
static void add_nested(struct ds_accel__text *text, const char *const *keys, size_t count,
                       const json_t *value)
{
    for (size_t i = 0; i < count; i++) {
        json_t *key = json_string(keys[i]);

        ds_accel__text_add(text, "{");
        if (key == NULL) {
            text->failed = true;
        } else {
            ds_accel__text_add_json(text, key, JSON_ENCODE_ANY);
        }
        ds_accel__text_add(text, ": ");
        json_decref(key);
    }
    ds_accel__text_add_json(text, value, JSON_ENCODE_ANY);
    for (size_t i = 0; i < count; i++) {
        ds_accel__text_add(text, "}");
    }
}

/*
 * Add the text of an object with a further member, behind the others and as they are laid out.
 * is_root: it is the file's; if it is empty, its member gets a line of its own.
 */
static void add_extended(struct ds_accel__text *text, const char *object, size_t size,
                         const char *member, size_t member_size, bool is_root)
{
    const char *first = object + 1;
    const char *last = object + size - 1; /* the brace, then the end of the last member */
    size_t lead;

    while (last > first && strchr(BLANKS, last[-1]) != NULL) {
        last--;
    }
    lead = strspn(first, BLANKS);
    if (last == first) {
        ds_accel__text_add(text, is_root ? "{\n  " : "{");
        ds_accel__text_add_bytes(text, member, member_size);
        ds_accel__text_add(text, is_root ? "\n}" : "}");
        return;
    }
    ds_accel__text_add_bytes(text, object, (size_t)(last - object));
    ds_accel__text_add(text, ",");
    ds_accel__text_add_bytes(text, lead > 0 ? first : " ", lead > 0 ? lead : 1);
    ds_accel__text_add_bytes(text, member, member_size);
    ds_accel__text_add_bytes(text, last, (size_t)(object + size - last));
}

/* Find the innermost value that the keys lead to. Return how many keys lead there. */
static size_t find_innermost(const char *text, size_t size, const char *const *keys,
                             size_t *from_out, size_t *to_out)
{
    char pointer[POINTER_SIZE] = "";
    size_t depth = 0;

    ds_accel__config_span(text, size, "", from_out, to_out);
    while (depth < KEYS && ds_accel__pointer_append(pointer, sizeof(pointer), keys[depth]) &&
           ds_accel__config_span(text, size, pointer, from_out, to_out)) {
        depth++;
    }
    return depth;
}

/* Set one value in the text of a file, which is a valid object. NULL: memory is exhausted. */
static char *set_value(const char *old, const char *const *keys, const json_t *value)
{
    struct ds_accel__text text = {0};
    struct ds_accel__text inner = {0};
    size_t size = strlen(old);
    size_t from = 0;
    size_t to = size;
    size_t depth = find_innermost(old, size, keys, &from, &to);

    ds_accel__text_add_bytes(&text, old, from);
    if (depth < KEYS && old[from] == '{') {
        add_nested(&inner, keys + depth, KEYS - depth, value);
        text.failed = text.failed || inner.failed;
        if (!inner.failed) { /* without its outer braces it is a member */
            add_extended(&text, old + from, to - from, inner.data + 1, inner.size_bytes - 2,
                         depth == 0);
        }
    } else { /* a setting, or null in place of an object */
        add_nested(&text, keys + depth, KEYS - depth, value);
    }
    ds_accel__text_add_bytes(&text, old + to, size - to);
    ds_accel__text_clear(&inner);
    return ds_accel__text_take(&text);
}

/* Whether the text is a file in which the op has these settings. */
static bool has_settings(const char *text, const char *op, json_t *settings)
{
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const json_t *found = json_object_get(json_object_get(root, "op_settings"), op);
    const char *name;
    json_t *value;
    bool has = root != NULL;

    json_object_foreach(settings, name, value)
    {
        has = has && json_equal(json_object_get(found, name), value);
    }
    json_decref(root);
    return has;
}

/* Set all values in a text, which it releases. NULL, with the status: that is not possible. */
static char *set_values(const char *path, char *text, const char *op, json_t *settings,
                        int32_t *status_out)
{
    const char *name;
    json_t *value;

    json_object_foreach(settings, name, value)
    {
        const char *const keys[KEYS] = {"op_settings", op, name};
        char *next = set_value(text, keys, value);

        free(text);
        text = next;
        if (text == NULL) {
            *status_out = ds_accel__no_memory();
            return NULL;
        }
    }
    if (strlen(text) > FILE_LIMIT_BYTES || !has_settings(text, op, settings)) {
        *status_out = ds_accel__error(
            DS_ACCEL_ERR_LIMIT, "%s: the settings do not fit into a configuration file", path);
        free(text);
        return NULL;
    }
    return text;
}

/* ---- the file ------------------------------------------------------------------------------- */

/* Whether a text of this size is one JSON object. */
static bool check_text(const char *path, const char *text, size_t size, int32_t *status_out)
{
    json_error_t error = {.line = 1, .column = 1};
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    bool valid = json_is_object(root) && strlen(text) == size;

    json_decref(root);
    if (!valid) {
        *status_out = ds_accel__error(DS_ACCEL_ERR_CONFIG, "%s:%d:%d: expected one JSON object",
                                      path, error.line, error.column);
    }
    return valid;
}

/*
 * Read a file that may be changed. The text of a file that does not exist is an empty object. NULL,
 * with the status: it cannot be read.
 */
static char *read_text(const char *path, int32_t *status_out)
{
    struct stat info;
    const char *cause = "it is not a regular file";
    char *text = NULL;
    size_t size = 0;
    int32_t status = DS_ACCEL_ERR_IO;

    if (lstat(path, &info) != 0 && errno == ENOENT) {
        text = strdup("{}\n");
        *status_out = text != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
        return text;
    }
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode)) {
        status = ds_accel__file_read(path, FILE_LIMIT_BYTES, &text, &size, &cause);
    }
    if (status < 0) {
        *status_out = status == DS_ACCEL_ERR_NO_MEMORY
                          ? status
                          : ds_accel__error(status, "%s: %s", path, cause);
        return NULL;
    }
    if (!check_text(path, text, size, status_out)) {
        free(text);
        return NULL;
    }
    return text;
}

static bool sets_op(const char *path, const char *op)
{
    char *text = NULL;
    size_t size = 0;
    const char *cause;
    json_t *root = NULL;
    bool sets;

    if (ds_accel__file_read(path, FILE_LIMIT_BYTES, &text, &size, &cause) >= 0) {
        root = json_loadb(text, size, 0, NULL);
    }
    sets = json_object_get(json_object_get(root, "op_settings"), op) != NULL;
    json_decref(root);
    free(text);
    return sets;
}

/* The user's file for settings of ops. NULL, with the status: there can be none. */
static char *default_file(const struct ds_accel__config *config, int32_t *status_out)
{
    char *directory;
    char *path;

    if (config->unread[0] != '\0') {
        *status_out = ds_accel__error(DS_ACCEL_ERR_PERMISSION, "%s", config->unread);
        return NULL;
    }
    directory = ds_accel__env_user_config_dir();
    if (directory == NULL) {
        *status_out = ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                                      "this user has no directory for configuration files: neither "
                                      "XDG_CONFIG_HOME nor HOME is set to an absolute path");
        return NULL;
    }
    path = ds_accel__format("%s/ds-accel/op_settings.json", directory);
    free(directory);
    if (path == NULL) {
        *status_out = ds_accel__no_memory();
    }
    return path;
}

/*
 * The file that a setting of the op belongs in: the explicit one, which replaces the user's; else
 * the user's last one that has settings of the op; else op_settings.json. NULL, with the status:
 * there can be none.
 */
static char *choose_file(const struct ds_accel__config *config, const char *op, int32_t *status_out)
{
    for (size_t i = config->file_count; i-- > 0;) {
        const struct ds_accel__config_file *file = &config->files[i];

        if (file->layer == DS_ACCEL__CONFIG_LAYER_EXPLICIT ||
            (file->layer == DS_ACCEL__CONFIG_LAYER_USER && !file->is_ops &&
             sets_op(file->path, op))) {
            char *path = strdup(file->path);

            if (path == NULL) {
                *status_out = ds_accel__no_memory();
            }
            return path;
        }
    }
    return default_file(config, status_out);
}

int32_t ds_accel_op_settings_edit(ds_accel_t *context, const char *op, const char *settings,
                                  char **path_out, char **text_out)
{
    int32_t status = DS_ACCEL_OK;
    json_t *object;
    char *path;
    char *text;

    if (context == NULL || op == NULL || settings == NULL || path_out == NULL || text_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "context, op, settings, path_out or text_out is NULL");
    }
    object = json_loads(settings, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(object) || json_object_size(object) == 0 || !ds_accel__is_op_name(op)) {
        json_decref(object);
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "op is no name of an op, or settings is no object with a member");
    }
    pthread_mutex_lock(&context->lock); /* of the list of files */
    path = choose_file(&context->config, op, &status);
    pthread_mutex_unlock(&context->lock);
    text = path != NULL ? read_text(path, &status) : NULL;
    text = text != NULL ? set_values(path, text, op, object, &status) : NULL;
    json_decref(object);
    if (text == NULL) {
        free(path);
        return status;
    }
    *path_out = path;
    *text_out = text;
    return DS_ACCEL_OK;
}
