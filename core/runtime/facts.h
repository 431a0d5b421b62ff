/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Facts for programs (facts.c), settings (settings.c), both together (backend_info.c); lazy calls
 * (lazy.c), timers (timer.c), environment (job.c), sharing and telemetry (share.c).
 */
#ifndef DS_ACCEL_RUNTIME_FACTS_H
#define DS_ACCEL_RUNTIME_FACTS_H

#include "base/private.h"
#include "config/config.h"
#include "ds_accel.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct ds_accel__candidate;

/* The facts about the chosen accelerator, read once. */
struct ds_accel__known {
    struct ds_accel_backend_info info; /* with the operator's configuration merged in */
    uint64_t capabilities;
    json_t *tree; /* of ds_accel__facts_set(); only read */
    char op_builder_dir[DS_ACCEL__OP_BUILDER_DIR_SIZE];
};

/* The chosen accelerator's facts, or NULL with the error set. out: the caller's output pointer,
 * checked for NULL. */
const struct ds_accel__known *ds_accel__known_get(ds_accel_t *context, const void *out,
                                                  int32_t *status_out);
void ds_accel__known_clear(ds_accel_t *context);
/* Copy text to name; ERR_INVALID if it does not fit. call: "compile_backend". */
int32_t ds_accel__name_write(const char *text, char *name, size_t name_size, const char *call);
/* Make the pending calls, if the accelerator is started; no lock held. */
void ds_accel__lazy_run(ds_accel_t *context);
/* The context is being destroyed: call the pending functions with ERR_STATE. */
void ds_accel__lazy_drop(ds_accel_t *context);

/* ---- report_info.c: the reports on one backend ---------------------------------------------- */

/* The facts about a backend from its plugin's instance and the configuration. */
struct ds_accel__facts {
    ds_accel_t *context;
    const char *name;
    const struct ds_accel__candidate *candidate; /* NULL: no plugin */
    ds_accel_plugin_instance_t *instance;        /* NULL: not available */
    struct ds_accel_backend_info info;
};

/* A fact from the program's setting, else from the operator's configuration, else from the plugin,
 * else from the package; NULL only if out of memory. plugin_value is taken. Lock held. */
json_t *ds_accel__fact(const struct ds_accel__facts *facts, const char *key, json_t *plugin_value);
void ds_accel__facts_read(struct ds_accel__facts *facts, ds_accel_t *context, const char *name,
                          const struct ds_accel__candidate *candidate,
                          ds_accel_plugin_instance_t *instance);
/* Set the members of the info report that do not depend on a device's state. Lock held. */
void ds_accel__facts_set(json_t *tree, const struct ds_accel__facts *facts, bool *failed);
/*
 * Evaluate a backend by name (NULL: the chosen one), start it if needed, call make_tree with its
 * facts, and stop it again. ERR_NOT_FOUND: the name is not known. Lock held.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__with_facts(
    ds_accel_t *context, const char *name,
    json_t *(*make_tree)(const struct ds_accel__facts *facts, uint32_t count), json_t **tree_out);
int32_t ds_accel__report_info(ds_accel_t *context, const char *name, json_t **tree_out);
int32_t ds_accel__report_env(ds_accel_t *context, const char *name, json_t **tree_out);

#endif
