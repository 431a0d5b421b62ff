/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The environment: env.c. */
#ifndef DS_ACCEL_CONFIG_ENV_H
#define DS_ACCEL_CONFIG_ENV_H

#include "base/private.h"
#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

struct ds_accel__log;

enum ds_accel__variable {
    DS_ACCEL__VARIABLE_ACCELERATOR,
    DS_ACCEL__VARIABLE_PLUGIN_PATH,
    DS_ACCEL__VARIABLE_CONFIG,
    DS_ACCEL__VARIABLE_LOG,
    DS_ACCEL__VARIABLE_PROBE,
    DS_ACCEL__VARIABLE_CACHE,
    DS_ACCEL__VARIABLE_CACHE_DIR,
    DS_ACCEL__VARIABLE_ALLOCATOR,
    DS_ACCEL__VARIABLE_DECISION,
    DS_ACCEL__VARIABLE_RESERVED_CPUS,
    DS_ACCEL__VARIABLE_LAYERS,
    DS_ACCEL__VARIABLE_TRACE_FILE,
    DS_ACCEL__VARIABLE_RACE_FILE,
    DS_ACCEL__VARIABLE_OPS_ISA, /* read by the ops themselves: ops/common/isa.c */
    DS_ACCEL__VARIABLE_ROOT,
    DS_ACCEL__VARIABLE_COUNT
};

struct ds_accel__variable_info {
    const char *name;
    const char *default_value; /* NULL: unset */
    const char *help;
};

/* A copy of ds-accel's own variables, made when the context is created. */
struct ds_accel__env {
    char *values[DS_ACCEL__VARIABLE_COUNT]; /* NULL: unset or ignored */
    bool ignored;                           /* set by an option, or because of AT_SECURE */
};

extern const struct ds_accel__variable_info ds_accel__variables[DS_ACCEL__VARIABLE_COUNT];

int32_t ds_accel__env_read(struct ds_accel__env *env, bool ignore);
void ds_accel__env_clear(struct ds_accel__env *env);
/* The value of DS_ACCEL_<NAME>_<KEY>, an option of a plugin; NULL if it is unset or ignored. */
const char *ds_accel__env_option(const struct ds_accel__env *env, const char *backend,
                                 const char *key);
/*
 * The name of an option's variable, such as "DS_ACCEL_XPU_EXTERNAL_KEY". False if it does not fit.
 */
bool ds_accel__env_option_name(const char *backend, const char *key, char *name, size_t name_size);
/*
 * Check the values of DS_ACCEL_PROBE and DS_ACCEL_CACHE. Describe the first invalid value and store
 * its variable in *variable_out; NULL if both are valid or unset.
 */
const char *ds_accel__env_problem(const struct ds_accel__env *env,
                                  enum ds_accel__variable *variable_out);
/*
 * The value of any variable, also of one that is not a variable of ds-accel; NULL if it is unset.
 */
DS_ACCEL__PRIVATE const char *ds_accel__env_job(const char *name);
/* True if the name is a valid variable name: [A-Z_][A-Z0-9_]*. */
DS_ACCEL__PRIVATE bool ds_accel__is_variable_name(const char *name);
/*
 * True if configuration and plugins may set the variable: the name is valid, not LD_*, and not a
 * variable of ds-accel.
 */
bool ds_accel__is_settable_variable(const char *name);
/*
 * Warn about each DS_ACCEL_* variable that is not in the table of variables and matches none of the
 * names. A name that ends in '_' matches every variable that begins with it (backends without
 * declared options).
 */
void ds_accel__env_warn_unknown(const struct ds_accel__env *env, const struct ds_accel__log *log,
                                char *const *names, size_t name_count);
/*
 * True if a DS_ACCEL_* variable is set that is not in the table: an option of a backend, or a
 * typing error.
 */
bool ds_accel__env_has_others(const struct ds_accel__env *env);
/*
 * The user's configuration directory, the parent of the directory ds-accel, as a new string; NULL
 * if there is none, in a program with raised rights (AT_SECURE), or if memory is exhausted.
 */
DS_ACCEL__PRIVATE char *ds_accel__env_user_config_dir(void);
/* The user's cache directory: $XDG_CACHE_HOME or $HOME/.cache; otherwise likewise. */
char *ds_accel__env_user_cache_dir(void);
/*
 * $TMPDIR unless it is relative or below the home directory, else /tmp, as a new string; "" in a
 * program with raised rights (AT_SECURE); NULL if memory is exhausted.
 */
char *ds_accel__env_temporary_dir(void);
/*
 * $XDG_RUNTIME_DIR as a new string; NULL if it is unset or relative, in a program with raised
 * rights (AT_SECURE), or if memory is exhausted.
 */
char *ds_accel__env_runtime_dir(void);
/* True if the name of this length is in the table of ds-accel's variables. */
bool ds_accel__env_is_ours(const char *name, size_t length);

#endif
