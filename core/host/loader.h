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

/* ERR_NO_MEMORY, or DS_ACCEL_OK: then *module_out, or NULL and finding says why. */
DS_ACCEL__PRIVATE int32_t ds_accel__module_open(const char *path, ds_accel__module_t **module_out,
                                                struct ds_accel__finding *finding);
/*
 * One thread at a time calls any plugin's entry (and copies the table it gave), probe, init and
 * shutdown: DSA-H8. Taken after a context's lock, before libltdl's.
 */
void ds_accel__plugin_lock(void);
void ds_accel__plugin_unlock(void);
/* Call the newest entry both sides have; NULL table if finding says why. Plugin lock held. */
DS_ACCEL__PRIVATE void ds_accel__module_entry(ds_accel__module_t *module,
                                              const struct ds_accel_host *host,
                                              const struct ds_accel_plugin **table_out,
                                              struct ds_accel__finding *finding);
void ds_accel__module_close(ds_accel__module_t *module);
/* Leave it open, in a child that inherited it. */
void ds_accel__module_abandon(ds_accel__module_t *module);

#endif
