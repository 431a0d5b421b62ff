/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Which file of a cache an op was loaded from, remembered: load_cache.c. */
#ifndef DS_ACCEL_OPS_LOAD_CACHE_H
#define DS_ACCEL_OPS_LOAD_CACHE_H

#include "ops/load_record.h"
#include "ops/resolve.h"

#include <time.h>

/*
 * Find the file that another process of this host loaded for this name of an op or builder, if
 * nothing has changed that could lead to another one. kernel->path is NULL if there is none, else
 * the file was checked; op_out is the op's own name. ERR_NO_MEMORY.
 */
int32_t ds_accel__load_cache_find(ds_accel_t *context, const char *backend, const char *name,
                                  char op_out[DS_ACCEL__OP_NAME_SIZE],
                                  struct ds_accel__kernel *kernel);
/*
 * Remember the file of a cache that was found for this name. since: the time before the search
 * began. Nothing is remembered if a file changed shortly before or later, if another host can
 * change one, or without memory.
 */
void ds_accel__load_cache_keep(ds_accel_t *context, const char *backend, const char *name,
                               const char *op, time_t since,
                               const struct ds_accel__resolved *resolved);

#endif
