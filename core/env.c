/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The environment: the one file that reads it, and the one table of our own variables. When the
 * program runs with more rights than its caller (AT_SECURE), every variable of ours is as if unset.
 */
#include "internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>

extern char **environ;

const struct ds_accel__variable_info ds_accel__variables[DS_ACCEL__VARIABLE_COUNT] = {
    [DS_ACCEL__VARIABLE_ACCELERATOR] = {"DS_ACCELERATOR", NULL,
                                        "force this accelerator; never falls back"},
    [DS_ACCEL__VARIABLE_PLUGIN_PATH] = {"DS_ACCEL_PLUGIN_PATH", NULL,
                                        "folders to search for plugins, separated by colons"},
    [DS_ACCEL__VARIABLE_CONFIG] = {"DS_ACCEL_CONFIG", NULL,
                                   "a configuration file, in place of the user's own"},
    [DS_ACCEL__VARIABLE_LOG] = {"DS_ACCEL_LOG", "warn",
                                "LEVEL or TOPIC=LEVEL, separated by commas: off, error, warn, "
                                "info, debug, trace"},
    [DS_ACCEL__VARIABLE_PROBE] = {"DS_ACCEL_PROBE", NULL,
                                  "where plugins are probed, in place of probe.mode: in-process"},
    [DS_ACCEL__VARIABLE_CACHE] = {"DS_ACCEL_CACHE", "off",
                                  "verdict cache: this version has none, so only off"},
    [DS_ACCEL__VARIABLE_CACHE_DIR] = {"DS_ACCEL_CACHE_DIR", NULL,
                                      "folder of the verdict cache: not used by this version"},
    [DS_ACCEL__VARIABLE_DECISION] =
        {"DS_ACCEL_DECISION", NULL,
         "a launcher's decision for its ranks: not used by this version"},
};

int32_t ds_accel__env_read(struct ds_accel__env *env, bool ignore)
{
    memset(env, 0, sizeof(*env));
    env->ignored = ignore || getauxval(AT_SECURE) != 0;
    for (size_t i = 0; i < DS_ACCEL__VARIABLE_COUNT && !env->ignored; i++) {
        const char *value = secure_getenv(ds_accel__variables[i].name);

        /* Empty is as if unset; an empty override is refused, as DeepSpeed does. */
        if (value != NULL && value[0] == '\0' && i != DS_ACCEL__VARIABLE_ACCELERATOR) {
            value = NULL;
        }
        if (value != NULL && (env->values[i] = strdup(value)) == NULL) {
            ds_accel__env_clear(env);
            return ds_accel__no_memory();
        }
    }
    return DS_ACCEL_OK;
}

void ds_accel__env_clear(struct ds_accel__env *env)
{
    for (size_t i = 0; i < DS_ACCEL__VARIABLE_COUNT; i++) {
        free(env->values[i]);
        env->values[i] = NULL;
    }
}

/* "DS_ACCEL_XPU_EXTERNAL_" for xpu.external. */
static void option_prefix(const char *backend, char *prefix, size_t prefix_size)
{
    int length = snprintf(prefix, prefix_size, "DS_ACCEL_%s_", backend);

    for (int i = 0; i < length && (size_t)i < prefix_size; i++) {
        prefix[i] = prefix[i] == '.' ? '_' : (char)toupper((unsigned char)prefix[i]);
    }
}

const char *ds_accel__env_option(const struct ds_accel__env *env, const char *backend,
                                 const char *key)
{
    char name[128];
    size_t length;

    if (env->ignored) {
        return NULL;
    }
    option_prefix(backend, name, sizeof(name));
    length = strlen(name);
    if (length + strlen(key) >= sizeof(name)) {
        return NULL;
    }
    for (size_t i = 0; i <= strlen(key); i++) {
        name[length + i] = key[i] == '.' ? '_' : (char)toupper((unsigned char)key[i]);
    }
    return secure_getenv(name);
}

const char *ds_accel__env_job(const char *name)
{
    return getenv(name);
}

bool ds_accel__is_variable_name(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    return name[0] != '\0' && strspn(name, allowed) == strlen(name) &&
           !(name[0] >= '0' && name[0] <= '9');
}

bool ds_accel__is_settable_variable(const char *name)
{
    return ds_accel__is_variable_name(name) && strncmp(name, "LD_", 3) != 0 &&
           strncmp(name, "DS_ACCEL_", 9) != 0 && strcmp(name, "DS_ACCELERATOR") != 0;
}

static bool is_known(const char *variable, const char *const *backends, size_t backend_count)
{
    char prefix[64];

    for (size_t i = 0; i < DS_ACCEL__VARIABLE_COUNT; i++) {
        if (strcmp(ds_accel__variables[i].name, variable) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < backend_count; i++) {
        option_prefix(backends[i], prefix, sizeof(prefix));
        if (strncmp(prefix, variable, strlen(prefix)) == 0) {
            return true;
        }
    }
    return false;
}

void ds_accel__env_warn_unknown(const struct ds_accel__env *env, const struct ds_accel__log *log,
                                const char *const *backends, size_t backend_count)
{
    const char *known[DS_ACCEL__VARIABLE_COUNT];

    if (env->ignored || environ == NULL) {
        return;
    }
    for (size_t i = 0; i < DS_ACCEL__VARIABLE_COUNT; i++) {
        known[i] = ds_accel__variables[i].name;
    }
    for (char **entry = environ; *entry != NULL; entry++) {
        char name[64];
        const char *nearest;
        size_t length = strcspn(*entry, "=");

        if (strncmp(*entry, "DS_ACCEL_", 9) != 0) {
            continue;
        }
        snprintf(name, sizeof(name), "%.*s", (int)(length < 63 ? length : 63), *entry);
        if (is_known(name, backends, backend_count)) {
            continue;
        }
        nearest = ds_accel__nearest(name, known, DS_ACCEL__VARIABLE_COUNT);
        ds_accel__log(log, "env", DS_ACCEL_LOG_WARN, "unknown variable %s%s%s%s", name,
                      nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
                      nearest != NULL ? "?" : " (ds-accel config show --env lists them)");
    }
}

char *ds_accel__env_user_config_dir(void)
{
    const char *dir = secure_getenv("XDG_CONFIG_HOME");
    const char *home = secure_getenv("HOME");

    /* The XDG specification: a relative path is as if unset. */
    if (dir != NULL && dir[0] == '/') {
        return strdup(dir);
    }
    return home != NULL && home[0] == '/' ? ds_accel__format("%s/.config", home) : NULL;
}
