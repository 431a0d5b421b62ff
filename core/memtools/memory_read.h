/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Reading snapshots of the caching allocator from files. */
#ifndef DS_ACCEL_MEMTOOLS_MEMORY_READ_H
#define DS_ACCEL_MEMTOOLS_MEMORY_READ_H

#include "ds_accel_tools.h"

#include <jansson.h>

/*
 * Read and validate a snapshot file; the tree's format is described in
 * runtime/snapshot/memory_snapshot.h. Fails with ERR_INVALID, whose message has file:line:column
 * and the expected value; ERR_IO; ERR_NOT_FOUND; ERR_NO_MEMORY.
 */
int32_t ds_accel__memory_snapshot_read(const char *path, json_t **tree_out);
/* As ds_accel__memory_snapshot_read(), for a text in memory; error messages show name as the file's
 * name. */
int32_t ds_accel__memory_snapshot_parse(const char *name, const char *text, size_t size_bytes,
                                        json_t **tree_out);

#endif
