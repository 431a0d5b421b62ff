/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The environment of a job: the variables that choose devices, the variables that the job's
 * processes inherit, and the changes that a backend's work-arounds need. Only the two functions
 * whose names begin with ds_accel_apply change the environment.
 */
#include "base/text.h"
#include "config/env.h"
#include "host/context.h"
#include "host/registry.h"
#include "runtime/facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define VALUE_LIMIT (1u << 16)

/* ---- names ---------------------------------------------------------------------------------- */

static int32_t get_name(ds_accel_t *context, const char *key, uint32_t position, char *name,
                        size_t name_size)
{
    int32_t status;
    const struct ds_accel__known *known = ds_accel__known_get(context, name, &status);
    const char *text;

    if (known == NULL) {
        return status;
    }
    text = json_string_value(json_array_get(json_object_get(known->tree, key), position));
    if (text == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_FOUND, "%s: there is no name at position %u", key,
                               position);
    }
    return ds_accel__name_write(text, name, name_size, key);
}

int32_t ds_accel_visible_devices_envs(ds_accel_t *context, uint32_t position, char *name,
                                      size_t name_size)
{
    return get_name(context, "visible_devices_envs", position, name, name_size);
}

int32_t ds_accel_export_envs(ds_accel_t *context, uint32_t position, char *name, size_t name_size)
{
    return get_name(context, "export_envs", position, name, name_size);
}

/* ---- visible devices ------------------------------------------------------------------------ */

/* Whether the plugin lists the variable, which means that the vendor's runtime reads it. */
static bool is_read(const ds_accel_t *context, const char *variable)
{
    const struct ds_accel__candidate *candidate = context->selected;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    char name[64] = "";

    for (uint32_t i = 0;
         candidate->instance != NULL && i < 64 &&
         candidate->table.env_name_get(candidate->instance, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES, i,
                                       name, sizeof(name), &error) >= 0;
         i++) {
        name[sizeof(name) - 1] = '\0';
        if (strcmp(name, variable) == 0) {
            return true;
        }
    }
    return false;
}

/*
 * Return the given variable's name as it is stored in the facts; NULL, with the error set: the
 * variable does not choose devices of the accelerator. If variable is NULL, return the first stored
 * name that the plugin also lists, because names before it may exist only for DeepSpeed's launcher;
 * if the plugin lists none, the first stored name.
 */
static const char *find_variable(const ds_accel_t *context, const struct ds_accel__known *known,
                                 const char *variable, int32_t *status_out)
{
    const json_t *names = json_object_get(known->tree, "visible_devices_envs");
    const char *first = NULL;

    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));

        first = first != NULL ? first : name;
        if (name != NULL &&
            (variable == NULL ? is_read(context, name) : strcmp(name, variable) == 0)) {
            return name;
        }
    }
    if (variable == NULL && first != NULL) {
        return first;
    }
    *status_out =
        variable == NULL
            ? ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED, "no variable chooses devices of %s",
                              context->selected->name)
            : ds_accel__error(DS_ACCEL_ERR_NOT_FOUND, "%.64s does not choose devices of %s",
                              variable, context->selected->name);
    return NULL;
}

static int32_t check_indices(const ds_accel_t *context, const uint32_t *indices, uint32_t count)
{
    if (indices == NULL && count > 0) {
        return ds_accel__refuse("visible_devices_value", "list of indices", NULL);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (indices[i] >= context->device_count) {
            return ds_accel__error(DS_ACCEL_ERR_INVALID, "device index %u; %s has %u", indices[i],
                                   context->selected->name, context->device_count);
        }
        /* Because each index is below device_count, a list without duplicates has at most
         * device_count items. */
        for (uint32_t j = 0; j < i; j++) {
            if (indices[j] == indices[i]) {
                return ds_accel__error(DS_ACCEL_ERR_INVALID, "device index %u is listed twice",
                                       indices[i]);
            }
        }
    }
    return DS_ACCEL_OK;
}

/* Find item number index of a list; false: there is no such item. */
static bool find_item(const char *list, uint32_t index, const char **item_out, size_t *length_out)
{
    do {
        *item_out = ds_accel__list_next(&list, ',', length_out);
    } while (*item_out != NULL && index-- > 0);
    return *item_out != NULL;
}

/*
 * Build a variable's new value without the plugin. A device index counts the devices that this
 * process sees, so index i stands for item i of the variable's current list.
 */
static int32_t join(const char *variable, const uint32_t *indices, uint32_t count,
                    struct ds_accel__text *text)
{
    const char *list = ds_accel__env_job(variable);

    for (uint32_t i = 0; i < count; i++) {
        const char *item = NULL;
        size_t length = 0;

        if (i > 0) {
            ds_accel__text_add_bytes(text, ",", 1);
        }
        /* An empty variable counts as not set. As a list it would hide all devices, but this
         * process sees devices. */
        if (list == NULL || list[0] == '\0') {
            ds_accel__text_add(text, "%u", indices[i]);
        } else if (find_item(list, indices[i], &item, &length)) {
            ds_accel__text_add_bytes(text, item, length);
        } else {
            return ds_accel__error(DS_ACCEL_ERR_STATE,
                                   "device index %u: %s is \"%.64s\", which has no such item",
                                   indices[i], variable, list);
        }
    }
    return text->failed ? ds_accel__no_memory() : DS_ACCEL_OK;
}

/* Get a variable's new value from the plugin: first the size of the value, then the value. If the
 * plugin cannot make the value, use join(). */
static int32_t ask(const ds_accel_t *context, const char *variable, const uint32_t *indices,
                   uint32_t count, struct ds_accel__text *text)
{
    const struct ds_accel__candidate *candidate = context->selected;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint32_t needed = 0;
    char *value;
    int32_t status = candidate->table.visible_devices_value(candidate->instance, variable, indices,
                                                            count, NULL, 0, &needed, &error);

    if (status == DS_ACCEL_ERR_UNSUPPORTED || status == DS_ACCEL_ERR_NOT_FOUND) {
        return join(variable, indices, count, text);
    }
    if (status != DS_ACCEL_ERR_LIMIT || needed == 0 || needed > VALUE_LIMIT) {
        return ds_accel__fail(status < 0 ? status : DS_ACCEL_ERR_ABI, &error);
    }
    value = calloc(1, needed + 1);
    if (value == NULL) {
        return ds_accel__no_memory();
    }
    error = (struct ds_accel_error){.struct_size = sizeof(error)};
    status = candidate->table.visible_devices_value(candidate->instance, variable, indices, count,
                                                    value, needed, &needed, &error);
    if (status == DS_ACCEL_OK) {
        ds_accel__text_add(text, "%s", value);
        status = text->failed ? ds_accel__no_memory() : DS_ACCEL_OK;
    } else {
        ds_accel__fail(status, &error);
    }
    free(value);
    return status;
}

/* Make the variable's new value in text, which the caller clears. *variable_out: the variable's
 * name, which belongs to the context. */
static int32_t make_value(ds_accel_t *context, const char *variable, const uint32_t *indices,
                          uint32_t count, const char **variable_out, struct ds_accel__text *text)
{
    int32_t status;
    const struct ds_accel__known *known = ds_accel__known_get(context, text, &status);

    if (known == NULL) {
        return status;
    }
    *variable_out = find_variable(context, known, variable, &status);
    if (*variable_out == NULL) {
        return status;
    }
    status = check_indices(context, indices, count);
    return status < 0 ? status : ask(context, *variable_out, indices, count, text);
}

int32_t ds_accel_visible_devices_value(ds_accel_t *context, const char *variable,
                                       const uint32_t *indices, uint32_t count, char *value,
                                       uint32_t value_size, uint32_t *needed_out)
{
    struct ds_accel__text text = {0};
    int32_t status;

    if (value == NULL && value_size > 0) {
        return ds_accel__refuse("visible_devices_value", "output", NULL);
    }
    status = make_value(context, variable, indices, count, &variable, &text);
    if (status >= 0) {
        if (needed_out != NULL) {
            *needed_out = (uint32_t)text.size_bytes + 1;
        }
        if (text.size_bytes >= value_size) {
            status = ds_accel__error(
                DS_ACCEL_ERR_LIMIT,
                "visible_devices_value: the value needs %zu bytes, the buffer has %u",
                text.size_bytes + 1, value_size);
        } else {
            ds_accel__copy(value, value_size, text.data);
        }
    }
    ds_accel__text_clear(&text);
    return status;
}

static int32_t put(const char *name, const char *value)
{
    int result = value != NULL ? setenv(name, value, 1) : unsetenv(name);

    return result == 0       ? DS_ACCEL_OK
           : errno == ENOMEM ? ds_accel__no_memory()
                             : ds_accel__error(DS_ACCEL_ERR_INVALID, "%s cannot be set: %s", name,
                                               strerror(errno));
}

int32_t ds_accel_apply_visible_devices(ds_accel_t *context, const uint32_t *indices, uint32_t count)
{
    struct ds_accel__text text = {0};
    const char *variable = NULL;
    int32_t status = make_value(context, NULL, indices, count, &variable, &text);

    if (status >= 0) {
        status = put(variable, text.data != NULL ? text.data : "");
    }
    ds_accel__text_clear(&text);
    return status;
}

/* ---- work-arounds --------------------------------------------------------------------------- */

/* Apply the changes that the env report marks as applied, until one fails. *applied_out:
 * incremented for each change. */
static int32_t apply(json_t *variables, uint32_t *applied_out)
{
    for (size_t i = 0; i < json_array_size(variables); i++) {
        const json_t *variable = json_array_get(variables, i);
        const char *rule = json_string_value(json_object_get(variable, "rule"));
        bool is_unset = strcmp(rule, "unset") == 0;
        int32_t status;

        if (!json_is_true(json_object_get(variable, "applied"))) {
            continue;
        }
        status = put(json_string_value(json_object_get(variable, "name")),
                     is_unset ? NULL : json_string_value(json_object_get(variable, "value")));
        if (status < 0) {
            return status;
        }
        ++*applied_out;
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel_apply_env(ds_accel_t *context, const char *name, uint32_t *applied_out)
{
    json_t *tree = NULL;
    uint32_t applied = 0;
    int32_t status;

    if (context == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "apply_env: the context is NULL");
    }
    status = ds_accel__context_check(context);
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&context->lock);
    status = ds_accel__context_load_origins(context);
    if (status >= 0) {
        status = ds_accel__report_env(context, name, &tree);
    }
    pthread_mutex_unlock(&context->lock);
    if (status >= 0) {
        status = apply(json_object_get(tree, "variables"), &applied);
    }
    if (status >= 0 && applied_out != NULL) {
        *applied_out = applied;
    }
    json_decref(tree);
    return status;
}
