/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Declarations for facts about the accelerator (facts.c, report_info.c, backend_info.c), settings
 * (settings.c) and lazy calls (lazy.c). Timers are in timer.c, the environment in job.c, sharing
 * and telemetry in share.c.
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
    /* from the plugin, with the operator's configuration merged in */
    struct ds_accel_backend_info info;
    uint64_t capabilities;
    json_t *tree; /* made by ds_accel__facts_set(); not changed afterwards */
    char op_builder_dir[DS_ACCEL__OP_BUILDER_DIR_SIZE];
};

/* Return the facts about the chosen accelerator, or NULL with the error set. out: the caller's
 * output pointer, which is checked for NULL. */
const struct ds_accel__known *ds_accel__known_get(ds_accel_t *context, const void *out,
                                                  int32_t *status_out);
void ds_accel__known_clear(ds_accel_t *context);
/* Copy text to name; ERR_INVALID if it does not fit. call: name of the public function for the
 * error, such as "compile_backend". */
int32_t ds_accel__name_write(const char *text, char *name, size_t name_size, const char *call);
/* Make the deferred calls of lazy.c, unless another thread is making them. The accelerator is
 * started. The caller holds no lock. */
void ds_accel__lazy_run(ds_accel_t *context);
/* Call the functions that are still deferred with status ERR_STATE, because the context is being
 * destroyed. */
void ds_accel__lazy_drop(ds_accel_t *context);

/* ---- report_info.c: the reports on one backend ---------------------------------------------- */

/* A backend, and what its plugin reported. The backend's facts are read from this and from the
 * configuration. */
struct ds_accel__facts {
    ds_accel_t *context;
    const char *name;
    const struct ds_accel__candidate *candidate; /* NULL: no plugin */
    ds_accel_plugin_instance_t *instance;        /* NULL: not available */
    struct ds_accel_backend_info info;
};

/* Return a fact from the first source that has it: the program's setting, the operator's
 * configuration, the plugin (plugin_value, whose reference is taken), the package's configuration.
 * JSON null if no source has it; NULL only if out of memory. The caller holds context->lock. */
json_t *ds_accel__fact(const struct ds_accel__facts *facts, const char *key, json_t *plugin_value);
DS_ACCEL__PRIVATE void ds_accel__facts_read(struct ds_accel__facts *facts, ds_accel_t *context,
                                            const char *name,
                                            const struct ds_accel__candidate *candidate,
                                            ds_accel_plugin_instance_t *instance);
/* The op builders of a backend: an array of {"builder", "op", "recipe"}, where recipe is the
 * configuration's row, or else what the plugin declares, or null. Builders that the configuration
 * masks with null are left out. The caller holds context->lock and has called
 * ds_accel__context_load_ops(). */
DS_ACCEL__PRIVATE json_t *ds_accel__facts_builders(const struct ds_accel__facts *facts,
                                                   bool *failed);
/* Set the members of the info report that do not depend on a device's state. The caller holds
 * context->lock. */
DS_ACCEL__PRIVATE void ds_accel__facts_set(json_t *tree, const struct ds_accel__facts *facts,
                                           bool *failed);
/* Make the report env of a backend. The caller holds context->lock. NULL: out of memory. */
DS_ACCEL__PRIVATE json_t *ds_accel__env_tree(const struct ds_accel__facts *facts);
/*
 * Evaluate a backend by name (NULL: the chosen one), start it if needed, call make_tree with the
 * backend's facts, and stop the backend again if this call started it. ERR_NOT_FOUND: the name is
 * not known. The caller holds context->lock.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__with_facts(
    ds_accel_t *context, const char *name,
    json_t *(*make_tree)(const struct ds_accel__facts *facts, uint32_t count), json_t **tree_out);
int32_t ds_accel__report_info(ds_accel_t *context, const char *name, json_t **tree_out);
int32_t ds_accel__report_env(ds_accel_t *context, const char *name, json_t **tree_out);

#endif
