/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Opened plugins: loader.c. */
#ifndef DS_ACCEL_HOST_LOADER_H
#define DS_ACCEL_HOST_LOADER_H

#include "base/private.h"
#include "ds_accel.h"

#include <stddef.h>

struct ds_accel__finding;

typedef struct ds_accel__module ds_accel__module_t; /* an opened shared object */

/*
 * Open a plugin's file. ERR_NO_MEMORY, or DS_ACCEL_OK with *module_out, which is NULL if finding
 * contains a reason.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__module_open(const char *path, ds_accel__module_t **module_out,
                                                struct ds_accel__finding *finding);
/*
 * Acquire, and release, the lock under which a plugin's entry (including the copying of its table),
 * probe, init and shutdown are called, one thread at a time: DSA-H8. Acquired after a context's
 * lock and before libltdl's lock.
 */
void ds_accel__plugin_lock(void);
void ds_accel__plugin_unlock(void);
/*
 * Call the newest entry that plugin and host both have. *table_out is NULL if finding contains a
 * reason. Caller holds the plugin lock.
 */
DS_ACCEL__PRIVATE void ds_accel__module_entry(ds_accel__module_t *module,
                                              const struct ds_accel_host *host,
                                              const struct ds_accel_plugin **table_out,
                                              struct ds_accel__finding *finding);
/* The address of a symbol of the module; NULL: it has no such symbol. */
void *ds_accel__module_symbol(ds_accel__module_t *module, const char *name);
void ds_accel__module_close(ds_accel__module_t *module);
/* Free the handle and leave the module open. For a forked child that inherited the module. */
void ds_accel__module_abandon(ds_accel__module_t *module);

#endif
