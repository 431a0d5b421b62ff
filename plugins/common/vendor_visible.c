/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The vendor's environment variables that select devices: names, and values for a child process. */
#include "vendor_frame.h"

/* Does the list begin with device 0, as in "0", "0,1" or "0.1"? Device 0 exists if any device does,
   so such a list does not hide every device. */
static int shows_first(const char *value)
{
    value += strspn(value, " \t");
    return value[0] == '0' && !isdigit((unsigned char)value[1]);
}

static char *trim(char *token)
{
    char *end;

    while (isspace((unsigned char)*token)) {
        token++;
    }
    end = token + strlen(token);
    while (end > token && isspace((unsigned char)end[-1])) {
        *--end = '\0';
    }
    return token;
}

int vendor_visible_each(const char *variable, int (*take)(void *user_data, const char *token),
                        void *user_data)
{
    const char *value = getenv(variable);
    char *copy;
    char *rest;
    int result = 0;

    if (value == NULL) {
        return -1;
    }
    copy = strdup(value);
    rest = copy;
    while (rest != NULL && result == 0) {
        char *token = rest;
        char *comma = strchr(rest, ',');

        if (comma != NULL) {
            *comma = '\0';
        }
        rest = comma != NULL ? comma + 1 : NULL;
        token = trim(token);
        if (token[0] != '\0' || rest != NULL) {
            result = take(user_data, token);
        }
    }
    free(copy);
    return result;
}

struct first_place {
    const char *token;
    uint32_t position;
};

static int is_first_place(void *user_data, const char *token)
{
    struct first_place *place = user_data;

    if (strcmp(token, place->token) == 0) {
        return 1;
    }
    place->position++;
    return 0;
}

/* Position in the search for a token that occurs earlier in the variable's list. */
struct repeats {
    const char *variable;
    uint32_t position;
};

static int is_repeated(void *user_data, const char *token)
{
    struct repeats *repeats = user_data;
    struct first_place place = {token, 0};

    vendor_visible_each(repeats->variable, is_first_place, &place);
    return place.position < repeats->position++;
}

static int has_repeats(const char *variable)
{
    struct repeats repeats = {variable, 0};

    return vendor_visible_each(variable, is_repeated, &repeats) == 1;
}

const char *vendor_visible_is_hiding(const struct vendor_visible *variables, uint32_t count,
                                     char *text, size_t text_size)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *value = getenv(variables[i].variable);

        if (value == NULL || (variables[i].is_unset_if_empty && value[0] == '\0')) {
            continue;
        }
        if (!shows_first(value)) {
            snprintf(text, text_size, "%s=\"%.96s\" hides every device", variables[i].variable,
                     value);
            return text;
        }
        if (variables[i].is_empty_if_repeated && has_repeats(variables[i].variable)) {
            snprintf(text, text_size, "%s=\"%.96s\" hides every device: it names one twice",
                     variables[i].variable, value);
            return text;
        }
    }
    return NULL;
}

/* ---- the name of a device in a list --------------------------------------------------------- */

struct name_search {
    struct repeats list;
    uint32_t wanted;
    uint32_t seen;
    uint32_t skips_repeats;
    char *name;
    size_t name_size;
};

static int take_name(void *user_data, const char *token)
{
    struct name_search *search = user_data;

    if (is_repeated(&search->list, token) && search->skips_repeats) {
        return 0;
    }
    if (search->seen++ != search->wanted) {
        return 0;
    }
    snprintf(search->name, search->name_size, "%s", token);
    return 1;
}

/* A runtime that finds a device's name twice in the list skips the second name, ignores the rest of
   the list, or shows no device. In each case the distinct names, in list order, are the names of
   the devices. If the runtime shows more devices than the list has distinct names, repeated names
   count as further devices. */
int vendor_visible_name(const ds_accel_plugin_device_t *device, const char *variable, char *name,
                        size_t name_size)
{
    struct name_search all = {.list = {variable, 0}, .wanted = UINT32_MAX, .skips_repeats = 1};
    struct name_search one = {
        .list = {variable, 0}, .wanted = device->index, .name = name, .name_size = name_size};
    int found = vendor_visible_each(variable, take_name, &all);

    if (found == -1) {
        return -1;
    }
    one.skips_repeats = device->instance->device_count <= all.seen;
    return vendor_visible_each(variable, take_name, &one) == 1 ? 0 : 1;
}

int vendor_visible_token(const ds_accel_plugin_device_t *device, const char *variable, char *token,
                         size_t token_size)
{
    int found = variable != NULL ? vendor_visible_name(device, variable, token, token_size) : -1;

    if (found == -1) {
        snprintf(token, token_size, "%u", device->index);
        return 0;
    }
    return found == 0 ? 0 : -1;
}

/* ---- names ---------------------------------------------------------------------------------- */

static const struct vendor_visible *variables(void)
{
    return vendor_backend.visible_now != NULL ? vendor_backend.visible_now()
                                              : vendor_backend.visible;
}

/* The name at a position of the list of kind which, or NULL past the end of the list. */
static const char *name_at(uint32_t which, uint32_t position)
{
    const char *const *prefixes = vendor_backend.export_prefixes;

    if (which == DS_ACCEL_ENV_LIST_VISIBLE_DEVICES) {
        return position < vendor_backend.visible_count ? variables()[position].variable : NULL;
    }
    for (uint32_t i = 0; prefixes != NULL && prefixes[i] != NULL; i++) {
        if (i == position) {
            return prefixes[i];
        }
    }
    return NULL;
}

static int32_t vendor_env_name_get(ds_accel_plugin_instance_t *instance, uint32_t which,
                                   uint32_t position, char *name, uint32_t name_size,
                                   struct ds_accel_error *error)
{
    const char *text;
    int32_t status = vendor_check_instance(instance, "env_name_get", error);

    if (status < 0) {
        return status;
    }
    if (which != DS_ACCEL_ENV_LIST_VISIBLE_DEVICES && which != DS_ACCEL_ENV_LIST_EXPORT) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "env_name_get: unknown list %u", which);
    }
    text = name_at(which, position);
    if (text == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NOT_FOUND,
                           "env_name_get: list %u has no position %u", which, position);
    }
    if (name == NULL || name_size <= strlen(text)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "env_name_get: \"%s\" does not fit into %u bytes", text, name_size);
    }
    memcpy(name, text, strlen(text) + 1);
    return DS_ACCEL_OK;
}

/* ---- values --------------------------------------------------------------------------------- */

#define TOKEN_BYTES 96u

static int find_variable(const char *variable, uint32_t *which_out)
{
    for (uint32_t i = 0; i < vendor_backend.visible_count; i++) {
        if (strcmp(variables()[i].variable, variable) == 0 ||
            strcmp(vendor_backend.visible[i].variable, variable) == 0) {
            *which_out = i;
            return 0;
        }
    }
    return -1;
}

static int is_among(const uint32_t *indices, uint32_t count, uint32_t index)
{
    for (uint32_t i = 0; i < count; i++) {
        if (indices[i] == index) {
            return 1;
        }
    }
    return 0;
}

/* Make the value of a variable; the caller frees *value_out. A repeated index is an error, because
   no runtime shows a repeated device as two devices (CUDA shows no device). */
static int32_t make_value(ds_accel_plugin_instance_t *instance, uint32_t which,
                          const uint32_t *indices, uint32_t count, char **value_out,
                          struct ds_accel_error *error)
{
    const struct vendor_visible *visible = &variables()[which];
    const char *separator = visible->separator != NULL ? visible->separator : ",";
    char *value = calloc((size_t)count + 1, TOKEN_BYTES);
    size_t used = 0;

    if (value == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "visible_devices_value: no memory");
    }
    for (uint32_t i = 0; i < count; i++) {
        char token[TOKEN_BYTES - 8];
        int32_t status = vendor_check_index(instance, indices[i], "visible_devices_value", error);

        if (status == DS_ACCEL_OK && is_among(indices, i, indices[i])) {
            status = plugin_fail(error, DS_ACCEL_ERR_INVALID,
                                 "visible_devices_value: device %u is named twice", indices[i]);
        }
        if (status == DS_ACCEL_OK && visible->is_renumbered == VENDOR_KEEPS_ORDER && i > 0 &&
            indices[i] <= indices[i - 1]) {
            status = plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                                 "visible_devices_value: %s cannot show device %u behind device %u",
                                 visible->variable, indices[i], indices[i - 1]);
        }
        if (status == DS_ACCEL_OK &&
            vendor_backend.visible_token(&instance->devices[indices[i]], which, token,
                                         sizeof(token)) != 0) {
            status = plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                                 "visible_devices_value: %s cannot name device %u",
                                 visible->variable, indices[i]);
        }
        if (status < 0) {
            free(value);
            return status;
        }
        used +=
            (size_t)snprintf(value + used, TOKEN_BYTES, "%.7s%s", i > 0 ? separator : "", token);
    }
    *value_out = value;
    return DS_ACCEL_OK;
}

static int32_t vendor_visible_devices_value(ds_accel_plugin_instance_t *instance,
                                            const char *variable, const uint32_t *device_indices,
                                            uint32_t device_index_count, char *value,
                                            uint32_t value_size, uint32_t *needed_out,
                                            struct ds_accel_error *error)
{
    const char *slot = "visible_devices_value";
    char *made = NULL;
    uint32_t which = 0;
    uint32_t needed;
    int32_t status = vendor_check_instance(instance, slot, error);

    if (status < 0) {
        return status;
    }
    if (variable == NULL || (value == NULL && value_size > 0) ||
        (device_indices == NULL && device_index_count > 0)) {
        return vendor_null(error, slot, "variable, value or device_indices");
    }
    if (find_variable(variable, &which) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NOT_FOUND,
                           "%s: %.64s is not a variable of this backend", slot, variable);
    }
    status = make_value(instance, which, device_indices, device_index_count, &made, error);
    if (made == NULL) {
        return status;
    }
    needed = (uint32_t)strlen(made) + 1;
    if (needed_out != NULL) {
        *needed_out = needed;
    }
    if (value == NULL || needed > value_size) {
        status = plugin_fail(error, DS_ACCEL_ERR_LIMIT, "%s: %u bytes do not fit into %u", slot,
                             needed, value_size);
    } else {
        memcpy(value, made, needed);
    }
    free(made);
    return status;
}

void vendor_visible_fill(struct ds_accel_plugin *table)
{
    table->env_name_get = vendor_env_name_get;
    table->visible_devices_value = vendor_backend.visible_count > 0 &&
                                           vendor_backend.visible_token != NULL
                                       ? vendor_visible_devices_value
                                       : NULL;
}
