/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Opened plugins: loader.c. */
#ifndef DS_ACCEL_HOST_LOADER_H
#define DS_ACCEL_HOST_LOADER_H

#include "base/private.h"
#include "ds_accel.h"

#include <stddef.h>

struct ds_accel__finding;

typedef struct ds_accel__module ds_accel__module_t; /* an opened .so */

/* ERR_NO_MEMORY, or DS_ACCEL_OK with *module_out, which is NULL if finding has a reason. */
DS_ACCEL__PRIVATE int32_t ds_accel__module_open(const char *path, ds_accel__module_t **module_out,
                                                struct ds_accel__finding *finding);
/*
 * The lock under which a plugin's entry (including the copy of its table), probe, init and shutdown
 * are called, one thread at a time: DSA-H8. Acquired after a context's lock, before libltdl's.
 */
void ds_accel__plugin_lock(void);
void ds_accel__plugin_unlock(void);
/*
 * Call the newest entry that both sides have; the table is NULL if finding has a reason. Plugin
 * lock held.
 */
DS_ACCEL__PRIVATE void ds_accel__module_entry(ds_accel__module_t *module,
                                              const struct ds_accel_host *host,
                                              const struct ds_accel_plugin **table_out,
                                              struct ds_accel__finding *finding);
void ds_accel__module_close(ds_accel__module_t *module);
/* Leave the module open, in a child that inherited it. */
void ds_accel__module_abandon(ds_accel__module_t *module);

#endif
