/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The environment: only this file reads settings from it. The file contains the table of ds-accel's
 * own variables.
 * If the program runs with more rights than its caller (AT_SECURE), each of these variables is
 * treated as unset.
 */
#include "config/env.h"
#include "base/text.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

extern char **environ;

const struct ds_accel__variable_info ds_accel__variables[DS_ACCEL__VARIABLE_COUNT] = {
    [DS_ACCEL__VARIABLE_ACCELERATOR] = {"DS_ACCELERATOR", NULL,
                                        "force this accelerator; never falls back"},
    [DS_ACCEL__VARIABLE_PLUGIN_PATH] = {"DS_ACCEL_PLUGIN_PATH", NULL,
                                        "directories to search for plugins, separated by colons"},
    [DS_ACCEL__VARIABLE_CONFIG] = {"DS_ACCEL_CONFIG", NULL,
                                   "a configuration file that replaces the user's own"},
    [DS_ACCEL__VARIABLE_LOG] = {"DS_ACCEL_LOG", "warn",
                                "LEVEL or TOPIC=LEVEL, separated by commas: off, error, warn, "
                                "info, debug, trace"},
    [DS_ACCEL__VARIABLE_PROBE] =
        {"DS_ACCEL_PROBE", NULL,
         "where plugins are probed (overrides probe.mode): isolated or in-process"},
    [DS_ACCEL__VARIABLE_CACHE] = {"DS_ACCEL_CACHE", "rw",
                                  "verdict cache: off, ro (read only) or rw"},
    [DS_ACCEL__VARIABLE_CACHE_DIR] = {"DS_ACCEL_CACHE_DIR", NULL,
                                      "directory of the verdict cache and the quarantine"},
    [DS_ACCEL__VARIABLE_ALLOCATOR] = {"DS_ACCEL_ALLOCATOR", NULL,
                                      "a mode of the memory allocator (caching, off or debug) or "
                                      "its settings as KEY=VALUE, separated by commas"},
    [DS_ACCEL__VARIABLE_DECISION] =
        {"DS_ACCEL_DECISION", NULL,
         "set by ds-accel run for its ranks: the accelerator that it chose, so that no "
         "rank probes again"},
    [DS_ACCEL__VARIABLE_RESERVED_CPUS] =
        {"DS_ACCEL_RESERVED_CPUS", NULL,
         "set by ds-accel run: CPUs that it keeps free beside a rank, for optimizer and I/O "
         "threads: a list such as 8-11"},
    [DS_ACCEL__VARIABLE_LAYERS] = {"DS_ACCEL_LAYERS", NULL,
                                   "layers between program and plugin (overrides layers): "
                                   "validate, race, leak, trace, separated by commas"},
    [DS_ACCEL__VARIABLE_TRACE_FILE] =
        {"DS_ACCEL_TRACE_FILE", NULL,
         "the file that layer trace writes (overrides trace.file); %p is the process"},
    [DS_ACCEL__VARIABLE_RACE_FILE] =
        {"DS_ACCEL_RACE_FILE", NULL,
         "the file to which layer race appends races (overrides validate.file); %p is the process"},
    [DS_ACCEL__VARIABLE_OPS_ISA] =
        {"DS_ACCEL_OPS_ISA", NULL,
         "instruction set that ops use: scalar, avx2, avx512, neon or sve; default: the best"},
    [DS_ACCEL__VARIABLE_ROOT] = {"DS_ACCEL_ROOT", NULL,
                                 "read /sys, /proc and /dev below this directory: a recorded or "
                                 "simulated machine"},
};

int32_t ds_accel__env_read(struct ds_accel__env *env, bool ignore)
{
    memset(env, 0, sizeof(*env));
    env->ignored = ignore || getauxval(AT_SECURE) != 0;
    for (size_t i = 0; i < DS_ACCEL__VARIABLE_COUNT && !env->ignored; i++) {
        const char *value;

        assert(ds_accel__variables[i].name != NULL); /* each enumerator has a row in the table */
        value = secure_getenv(ds_accel__variables[i].name);

        /*
         * An empty value is treated as unset. An empty DS_ACCELERATOR is kept, because it is
         * rejected later, as in DeepSpeed.
         */
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

bool ds_accel__env_option_name(const char *backend, const char *key, char *name, size_t name_size)
{
    int length = snprintf(name, name_size, "DS_ACCEL_%s_%s", backend, key);

    if (length < 0 || (size_t)length >= name_size) {
        return false;
    }
    for (char *c = name; *c != '\0'; c++) {
        *c = *c == '.' ? '_' : (char)toupper((unsigned char)*c);
    }
    return true;
}

const char *ds_accel__env_option(const struct ds_accel__env *env, const char *backend,
                                 const char *key)
{
    char name[128];

    if (env->ignored || !ds_accel__env_option_name(backend, key, name, sizeof(name))) {
        return NULL;
    }
    return secure_getenv(name);
}

static bool is_one_of(const char *value, const char *first, const char *second, const char *third)
{
    return strcmp(value, first) == 0 || strcmp(value, second) == 0 || strcmp(value, third) == 0;
}

const char *ds_accel__env_problem(const struct ds_accel__env *env,
                                  enum ds_accel__variable *variable_out)
{
    const char *probe = env->values[DS_ACCEL__VARIABLE_PROBE];
    const char *cache = env->values[DS_ACCEL__VARIABLE_CACHE];

    *variable_out = DS_ACCEL__VARIABLE_PROBE;
    if (probe != NULL && !is_one_of(probe, "isolated", "in-process", "isolated")) {
        return "expected \"isolated\" or \"in-process\"";
    }
    *variable_out = DS_ACCEL__VARIABLE_CACHE;
    if (cache != NULL && !is_one_of(cache, "off", "ro", "rw")) {
        return "expected \"off\", \"ro\" or \"rw\"";
    }
    return NULL;
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

static bool is_known(const char *variable, char *const *names, size_t name_count)
{
    for (size_t i = 0; i < DS_ACCEL__VARIABLE_COUNT; i++) {
        if (strcmp(ds_accel__variables[i].name, variable) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < name_count; i++) {
        size_t length = strlen(names[i]);
        bool is_prefix;

        assert(length > 0);
        is_prefix = names[i][length - 1] == '_';

        if (is_prefix ? strncmp(names[i], variable, length) == 0
                      : strcmp(names[i], variable) == 0) {
            return true;
        }
    }
    return false;
}

static void warn_unknown(const struct ds_accel__log *log, const char *variable, char *const *names,
                         size_t name_count)
{
    const char *known[DS_ACCEL__VARIABLE_COUNT];
    const char *nearest;

    for (size_t i = 0; i < DS_ACCEL__VARIABLE_COUNT; i++) {
        known[i] = ds_accel__variables[i].name;
    }
    nearest = ds_accel__nearest(variable, known, DS_ACCEL__VARIABLE_COUNT);
    if (nearest == NULL) {
        nearest = ds_accel__nearest(variable, (const char *const *)names, name_count);
    }
    ds_accel__log(log, "env", DS_ACCEL_LOG_WARN, "unknown variable %s%s%s%s", variable,
                  nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
                  nearest != NULL ? "?" : " (ds-accel config show --env lists them)");
}

void ds_accel__env_warn_unknown(const struct ds_accel__env *env, const struct ds_accel__log *log,
                                char *const *names, size_t name_count)
{
    if (env->ignored || environ == NULL) {
        return;
    }
    for (char **entry = environ; *entry != NULL; entry++) {
        char name[64];
        size_t length = strcspn(*entry, "=");

        snprintf(name, sizeof(name), "%.*s", (int)(length < 63 ? length : 63), *entry);
        if (strncmp(name, "DS_ACCEL_", 9) == 0 && !is_known(name, names, name_count)) {
            ds_accel__sanitize(name, sizeof(name));
            warn_unknown(log, name, names, name_count);
        }
    }
}

bool ds_accel__env_has_others(const struct ds_accel__env *env)
{
    for (char **entry = environ; !env->ignored && entry != NULL && *entry != NULL; entry++) {
        if (strncmp(*entry, "DS_ACCEL_", 9) == 0 &&
            !ds_accel__env_is_ours(*entry, strcspn(*entry, "="))) {
            return true;
        }
    }
    return false;
}

char *ds_accel__env_user_config_dir(void)
{
    const char *dir = secure_getenv("XDG_CONFIG_HOME");
    const char *home = secure_getenv("HOME");

    /* The XDG specification requires that relative paths are ignored. */
    if (dir != NULL && dir[0] == '/') {
        return strdup(dir);
    }
    return home != NULL && home[0] == '/' ? ds_accel__format("%s/.config", home) : NULL;
}

char *ds_accel__env_user_cache_dir(void)
{
    const char *dir = secure_getenv("XDG_CACHE_HOME");
    const char *home = secure_getenv("HOME");

    if (dir != NULL && dir[0] == '/') {
        return strdup(dir);
    }
    return home != NULL && home[0] == '/' ? ds_accel__format("%s/.cache", home) : NULL;
}

char *ds_accel__env_runtime_dir(void)
{
    const char *dir = secure_getenv("XDG_RUNTIME_DIR");

    return dir != NULL && dir[0] == '/' ? strdup(dir) : NULL;
}

char *ds_accel__env_temporary_dir(void)
{
    const char *dir = secure_getenv("TMPDIR");
    const char *home = secure_getenv("HOME");
    size_t length = home != NULL ? strlen(home) : 0;

    /*
     * With raised rights, return no directory: the unprivileged caller chooses $TMPDIR and could
     * replace files there that this process trusts.
     */
    if (getauxval(AT_SECURE) != 0) {
        return strdup("");
    }
    while (length > 1 && home[length - 1] == '/') {
        length--;
    }
    /*
     * Reject a relative path, which depends on the working directory, and the home directory, which
     * several machines may share.
     */
    if (dir == NULL || dir[0] != '/' ||
        (length > 1 && strncmp(dir, home, length) == 0 &&
         (dir[length] == '/' || dir[length] == '\0'))) {
        dir = "/tmp";
    }
    return strdup(dir);
}

bool ds_accel__env_is_ours(const char *name, size_t length)
{
    for (size_t i = 0; i < DS_ACCEL__VARIABLE_COUNT; i++) {
        if (strlen(ds_accel__variables[i].name) == length &&
            strncmp(ds_accel__variables[i].name, name, length) == 0) {
            return true;
        }
    }
    return false;
}
