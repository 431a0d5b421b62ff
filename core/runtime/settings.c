/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Settings of the program that override a fact: communication and compile backend. Also the version
 * of the communication backend, which the program cannot set. */
#include "base/text.h"
#include "config/config.h"
#include "host/context.h"
#include "host/registry.h"
#include "runtime/facts.h"

#include <stdio.h>

static const struct {
    const char *key;
    const char *list_key;
} settings[DS_ACCEL__SETTING_COUNT] = {
    [DS_ACCEL__SETTING_COMMUNICATION] = {"communication_backend", "communication_backends"},
    [DS_ACCEL__SETTING_COMPILE] = {"compile_backend", "compile_backends"},
};
DS_ACCEL_STATIC_ASSERT(sizeof(((ds_accel_t *)0)->settings) == 32 * DS_ACCEL__SETTING_COUNT,
                       "one place per setting");

/* Return the communication or compile backend that applies without the program's setting; "":
 * none. */
static const char *own(const struct ds_accel__known *known, enum ds_accel__setting setting)
{
    return setting == DS_ACCEL__SETTING_COMPILE ? known->info.compile_backend
                                                : known->info.communication_backend;
}

static int32_t get(ds_accel_t *context, enum ds_accel__setting setting, char *name,
                   size_t name_size)
{
    int32_t status;
    const struct ds_accel__known *known = ds_accel__known_get(context, name, &status);
    char value[32];

    if (known == NULL) {
        return status;
    }
    pthread_mutex_lock(&context->lock);
    ds_accel__copy(value, sizeof(value),
                   context->settings[setting][0] != '\0' ? context->settings[setting]
                                                         : own(known, setting));
    pthread_mutex_unlock(&context->lock);
    if (value[0] == '\0') {
        return ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED, "%s has no %s", ds_accel_name(context),
                               settings[setting].key);
    }
    return ds_accel__name_write(value, name, name_size, settings[setting].key);
}

static bool is_listed(json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (strcmp(json_string_value(json_array_get(list, i)), name) == 0) {
            return true;
        }
    }
    return false;
}

/* Fail with the list of valid names, as DeepSpeed does. */
static int32_t refuse(const ds_accel_t *context, json_t *list, const char *own_name,
                      const char *name)
{
    struct ds_accel__text names = {0};

    if (own_name[0] != '\0' && !is_listed(list, own_name)) {
        ds_accel__text_add(&names, "%s", own_name);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        ds_accel__text_add(&names, "%s%s", names.size_bytes > 0 ? ", " : "",
                           json_string_value(json_array_get(list, i)));
    }
    ds_accel__error(DS_ACCEL_ERR_INVALID, "%.64s not supported by %s. Supported backends are %s",
                    name, context->selected->name, names.data != NULL ? names.data : "none");
    ds_accel__text_clear(&names);
    return DS_ACCEL_ERR_INVALID;
}

/* Check that the name is own_name or in the configured list of valid names, and store it; NULL
 * removes the program's setting. The caller holds context->lock. */
static int32_t set_locked(ds_accel_t *context, enum ds_accel__setting setting, const char *own_name,
                          const char *name)
{
    json_t *list = ds_accel__config_backend(&context->config, context->selected->name,
                                            settings[setting].list_key);

    if (list == NULL) {
        list = ds_accel__config_get(&context->config, settings[setting].list_key, NULL);
    }
    if (name != NULL && (name[0] == '\0' || strlen(name) >= sizeof(context->settings[0]) ||
                         (strcmp(name, own_name) != 0 && !is_listed(list, name)))) {
        return refuse(context, list, own_name, name);
    }
    ds_accel__copy(context->settings[setting], sizeof(context->settings[0]), name);
    return DS_ACCEL_OK;
}

static int32_t set(ds_accel_t *context, enum ds_accel__setting setting, const char *name)
{
    int32_t status;
    const struct ds_accel__known *known = ds_accel__known_get(context, context, &status);

    if (known == NULL) {
        return status;
    }
    pthread_mutex_lock(&context->lock);
    ds_accel__context_change_begin(context);
    status = set_locked(context, setting, own(known, setting), name);
    ds_accel__context_change_end(context);
    pthread_mutex_unlock(&context->lock);
    return status;
}

int32_t ds_accel_communication_backend(ds_accel_t *context, char *name, size_t name_size)
{
    return get(context, DS_ACCEL__SETTING_COMMUNICATION, name, name_size);
}

int32_t ds_accel_set_communication_backend(ds_accel_t *context, const char *name)
{
    return set(context, DS_ACCEL__SETTING_COMMUNICATION, name);
}

int32_t ds_accel_compile_backend(ds_accel_t *context, char *name, size_t name_size)
{
    return get(context, DS_ACCEL__SETTING_COMPILE, name, name_size);
}

int32_t ds_accel_set_compile_backend(ds_accel_t *context, const char *name)
{
    return set(context, DS_ACCEL__SETTING_COMPILE, name);
}

int32_t ds_accel_communication_backend_version(ds_accel_t *context, uint32_t version_out[4])
{
    static const uint32_t unknown[4];
    int32_t status;
    const struct ds_accel__known *known = ds_accel__known_get(context, version_out, &status);

    if (known == NULL) {
        return status;
    }
    if (memcmp(known->info.communication_version, unknown, sizeof(unknown)) == 0) {
        return ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED,
                               "the version of %s's communication backend is not known",
                               ds_accel_name(context));
    }
    memcpy(version_out, known->info.communication_version, sizeof(unknown));
    return DS_ACCEL_OK;
}
