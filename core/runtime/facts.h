/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Facts for programs (facts.c), settings (settings.c), both together (backend_info.c), the rest
 * (lazy.c, timer.c, job.c, share.c).
 */
#ifndef DS_ACCEL_CORE_FACTS_H
#define DS_ACCEL_CORE_FACTS_H

#include "base/private.h"
#include "config/config.h"
#include "ds_accel.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct ds_accel__candidate;

/* What was found out of the chosen accelerator, once and for all. */
struct ds_accel__known {
    struct ds_accel_backend_info info; /* the operator's word merged in */
    uint64_t capabilities;
    json_t *tree; /* of ds_accel__facts_set(); only read */
    char op_builder_dir[DS_ACCEL__OP_BUILDER_DIR_SIZE];
};

/* The chosen accelerator's facts, or NULL with the error said. out is what the caller will write.
 */
const struct ds_accel__known *ds_accel__known_get(ds_accel_t *context, const void *out,
                                                  int32_t *status_out);
void ds_accel__known_clear(ds_accel_t *context);
/* The name as it fits; ERR_INVALID if it does not. call: "compile_backend". */
int32_t ds_accel__name_write(const char *text, char *name, size_t name_size, const char *call);
/* Make the calls that wait, if the accelerator is started; no lock held. */
void ds_accel__lazy_run(ds_accel_t *context);
/* The context goes: tell those that wait. */
void ds_accel__lazy_drop(ds_accel_t *context);

/* ---- report_info.c: the reports on one backend ---------------------------------------------- */

/* What is known of a backend from its plugin's instance and the configuration. */
struct ds_accel__facts {
    ds_accel_t *context;
    const char *name;
    const struct ds_accel__candidate *candidate; /* NULL: no plugin */
    ds_accel_plugin_instance_t *instance;        /* NULL: not available */
    struct ds_accel_backend_info info;
};

/* A fact by the program's setting, else by the operator's configuration, else by the plugin, else
 * by the package; never NULL but for exhausted memory. plugin_value is taken. Lock held. */
json_t *ds_accel__fact(const struct ds_accel__facts *facts, const char *key, json_t *plugin_value);
void ds_accel__facts_read(struct ds_accel__facts *facts, ds_accel_t *context, const char *name,
                          const struct ds_accel__candidate *candidate,
                          ds_accel_plugin_instance_t *instance);
/* The members of the info report that no device's state changes. Lock held. */
void ds_accel__facts_set(json_t *tree, const struct ds_accel__facts *facts, bool *failed);
/*
 * Evaluate a backend by name (NULL: the chosen one), start it if it is not, lend make_tree what it
 * asks, and stop it again. ERR_NOT_FOUND: nobody knows the name. Lock held.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__with_facts(
    ds_accel_t *context, const char *name,
    json_t *(*make_tree)(const struct ds_accel__facts *facts, uint32_t count), json_t **tree_out);
int32_t ds_accel__report_info(ds_accel_t *context, const char *name, json_t **tree_out);
int32_t ds_accel__report_env(ds_accel_t *context, const char *name, json_t **tree_out);

#endif
