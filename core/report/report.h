/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Reports: report*.c, topo*.c, lint.c, doctor.c, recording*.c. */
#ifndef DS_ACCEL_CORE_REPORT_H
#define DS_ACCEL_CORE_REPORT_H

#include "ds_accel.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct ds_accel__candidate;
struct ds_accel__text;

/* A JSON text from anywhere: NULL is "", bytes that are not UTF-8 become '?'. */
json_t *ds_accel__json_text(const char *text);
/* Set a member, taking value; a NULL value makes *failed true. */
void ds_accel__json_set(json_t *object, const char *key, json_t *value, bool *failed);
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
int32_t ds_accel__with_facts(ds_accel_t *context, const char *name,
                             json_t *(*make_tree)(const struct ds_accel__facts *facts,
                                                  uint32_t count),
                             json_t **tree_out);
int32_t ds_accel__report_info(ds_accel_t *context, const char *name, json_t **tree_out);
/* names: separated by commas; NULL: of all that can be used. Every plugin was asked before then. */
int32_t ds_accel__report_topo(ds_accel_t *context, const char *names, json_t **tree_out);
int32_t ds_accel__report_recording(ds_accel_t *context, json_t **tree_out); /* no lock held */
/* Take out what tells who and where this is; *tree is NULL without memory (report_bundle.c). */
int32_t ds_accel__redact(const ds_accel_t *context, json_t **tree);
json_t *ds_accel__who_tree(void); /* names of this host and user, for recordings; NULL: no memory */
json_t *ds_accel__machine_tree(const ds_accel_t *context); /* NULL: no memory */
void ds_accel__topo_write(struct ds_accel__text *out, json_t *tree, bool has_colour);
int32_t ds_accel__topo_svg(json_t *tree, struct ds_accel__text *out);

int32_t ds_accel__report_memory(ds_accel_t *context, const char *name, json_t **tree_out);
int32_t ds_accel__report_env(ds_accel_t *context, const char *name, json_t **tree_out);
int32_t ds_accel__report_cache(ds_accel_t *context, json_t **tree_out);
int32_t ds_accel__report_quarantine(ds_accel_t *context, json_t **tree_out);
/* What stands in the way of the accelerators here. Every plugin was asked before. Lock held. */
int32_t ds_accel__report_doctor(ds_accel_t *context, json_t **tree_out);
/* Text from the tree that the JSON is dumped from: one source for both. NULL: no memory. */
char *ds_accel__report_text(uint32_t report, json_t *tree, uint32_t format);
#define DS_ACCEL__REPORT_CONFIG_CHECK 100u
#define DS_ACCEL__REPORT_LINT 101u
#define DS_ACCEL__REPORT_CONFORMANCE 102u
/* Dump a tree, which is taken, as JSON or text. */
int32_t ds_accel__report_write(uint32_t report, json_t *tree, uint32_t format, char **text_out);

#endif
