/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Passes "op_settings" of the configuration to ops that are loaded. */
#include "ops/settings.h"

#include "base/file.h"
#include "base/text.h"
#include "config/config.h"
#include "ops/op.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FILE_LIMIT_BYTES ((size_t)1 << 20)

/* ---- where a setting is ---------------------------------------------------------------------- */

/* The file and line of a setting in the text of a file, as a new string; NULL: it has none. */
static char *place_in(const char *path, const char *text, size_t size_bytes, const char *op,
                      const char *setting)
{
    json_t *root = json_loadb(text, size_bytes, 0, NULL);
    const json_t *found = json_object_get(json_object_get(root, "op_settings"), op);
    char pointer[1024] = "/op_settings";
    char *place = NULL;
    int line;
    int column;

    if (setting[0] != '\0') {
        found = json_object_get(found, setting);
    }
    if (found != NULL && ds_accel__pointer_append(pointer, sizeof(pointer), op) &&
        (setting[0] == '\0' || ds_accel__pointer_append(pointer, sizeof(pointer), setting))) {
        ds_accel__config_locate(text, size_bytes, pointer, true, &line, &column);
        place = ds_accel__format("%s:%d: ", path, line);
    }
    json_decref(root);
    return place;
}

/*
 * The file and line of the highest layer that sets a setting, or any of the op if it is "". The
 * files are read again if the configuration is from a snapshot. NULL if they changed meanwhile.
 */
static char *find_place(const struct ds_accel__config *config, const char *op, const char *setting)
{
    char *place = NULL;

    for (size_t i = config->file_count; i-- > 0 && place == NULL;) {
        const struct ds_accel__config_file *file = &config->files[i];
        char *text = NULL;
        size_t size_bytes = 0;
        const char *cause;

        if (file->is_ops) {
            continue;
        }
        if (file->text != NULL) {
            place = place_in(file->path, file->text, file->size_bytes, op, setting);
        } else if (ds_accel__file_read(file->path, FILE_LIMIT_BYTES, &text, &size_bytes, &cause) >=
                   0) {
            place = place_in(file->path, text, size_bytes, op, setting);
        }
        free(text);
    }
    return place;
}

static void warn(ds_accel_t *context, const char *op, const char *setting, const char *cause)
{
    char *place;

    pthread_mutex_lock(&context->lock); /* of the list of files */
    place = find_place(&context->config, op, setting);
    pthread_mutex_unlock(&context->lock);
    ds_accel__log(&context->log, "ops", DS_ACCEL_LOG_WARN,
                  "%s%s; the op_settings of %s are not used", place != NULL ? place : "", cause,
                  op);
    free(place);
}

/* ---- settings as texts ----------------------------------------------------------------------- */

/* The value as a new string; NULL if memory is exhausted. */
static char *value_text(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return strdup(json_string_value(value));
    case JSON_INTEGER:
        return ds_accel__format("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    case JSON_REAL:
        return json_dumps(value, JSON_ENCODE_ANY); /* a point, whatever the locale */
    default:
        return strdup(json_is_true(value) ? "true" : "false");
    }
}

static void free_settings(struct ds_accel_op_setting *settings, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free((char *)(uintptr_t)settings[i].name);
        free((char *)(uintptr_t)settings[i].value);
    }
    free(settings);
}

/* Copy the settings but those that are null. The caller holds context->config_lock. */
static int32_t make_settings(json_t *object, struct ds_accel_op_setting **settings_out,
                             uint32_t *count_out)
{
    struct ds_accel_op_setting *settings = calloc(json_object_size(object) + 1, sizeof(*settings));
    uint32_t count = 0;
    const char *name;
    json_t *value;

    if (settings == NULL) {
        return ds_accel__no_memory();
    }
    json_object_foreach(object, name, value)
    {
        if (!json_is_null(value)) {
            settings[count].name = strdup(name);
            settings[count].value = value_text(value);
            count++;
            if (settings[count - 1].name == NULL || settings[count - 1].value == NULL) {
                free_settings(settings, count);
                return ds_accel__no_memory();
            }
        }
    }
    *settings_out = settings;
    *count_out = count;
    return DS_ACCEL_OK;
}

int32_t ds_accel__op_configure(ds_accel_t *context, ds_accel__module_t *module, const char *path,
                               const char *op)
{
    union {
        void *address;
        ds_accel_op_configure_v1_fn call;
    } configure;
    struct ds_accel_op_setting *settings = NULL;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint32_t count = 0;
    int32_t status;
    char *cause = NULL;

    pthread_mutex_lock(&context->config_lock);
    status = make_settings(ds_accel__config_get(&context->config, "op_settings", op, NULL),
                           &settings, &count);
    pthread_mutex_unlock(&context->config_lock);
    if (status < 0) {
        return status;
    }
    configure.address = ds_accel__module_symbol(module, DS_ACCEL_OP_CONFIGURE);
    if (count > 0 && configure.address == NULL) {
        cause = ds_accel__format("%s takes no settings: it has no symbol %s", path,
                                 DS_ACCEL_OP_CONFIGURE);
    } else if (count > 0 && configure.call(settings, count, &error) < 0) {
        error.message[sizeof(error.message) - 1] = '\0';
        error.vendor_text[sizeof(error.vendor_text) - 1] = '\0';
        ds_accel__sanitize(error.message, sizeof(error.message));
        cause = strdup(error.message[0] != '\0' ? error.message : "the op gave no reason");
    }
    if (cause != NULL) {
        warn(context, op, error.vendor_text, cause);
    }
    free(cause);
    free_settings(settings, count);
    return DS_ACCEL_OK;
}
