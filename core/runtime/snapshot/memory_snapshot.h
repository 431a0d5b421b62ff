/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Layer 5: conversion of the caching allocator's snapshots to files, pictures and tables. A
 * snapshot is a JSON tree with the structure of torch.cuda.memory._snapshot(), plus the members
 * schema_version, backend, pid, time_us and stats; conf/schema/memory-snapshot.json defines every
 * key.
 */
#ifndef DS_ACCEL_RUNTIME_SNAPSHOT_MEMORY_SNAPSHOT_H
#define DS_ACCEL_RUNTIME_SNAPSHOT_MEMORY_SNAPSHOT_H

#include "base/private.h"
#include "ds_accel.h"

#include <jansson.h>
#include <stdbool.h>

struct ds_accel__memory_sums;

struct ds_accel__facts;
struct ds_accel__text;

/* The file that a tree was read from: its name and its text. */
struct ds_accel__snapshot_text {
    const char *name;
    const char *text;
    size_t size_bytes;
};

/*
 * memory_complete.c: check and complete a snapshot that was written by this library, or by torch
 * and dumped as JSON (older versions of torch write only the list of segments). Returns a new tree
 * with every key, in the schema's order, and with consistent sizes. tree and from are borrowed;
 * from: NULL for a tree that this process made. ERR_INVALID: the snapshot is not valid; the error
 * contains the place in the text or tree and the expected value. ERR_NO_MEMORY: memory is
 * exhausted.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__memory_snapshot_complete(
    json_t *tree, const struct ds_accel__snapshot_text *from, json_t **tree_out);
/*
 * Write a complete tree in a DS_ACCEL_SNAPSHOT_* format. A NUL, which is not counted in the size,
 * follows the data; ds_accel_free_data() releases the data. ERR_INVALID: no such format. ERR_LIMIT:
 * a pickle would be nested too deeply (see ds_accel__pickle_write()). ERR_NO_MEMORY.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__memory_snapshot_write(json_t *tree, uint32_t format,
                                                          void **data_out, size_t *size_bytes_out);

/*
 * memory_pickle.c: write any JSON value as a Python pickle whose loading calls no functions.
 * ERR_LIMIT: the value is nested deeper than 64 levels, or a text has 4 GiB. ERR_NO_MEMORY.
 */
int32_t ds_accel__pickle_write(json_t *tree, struct ds_accel__text *out);

/* memory_map.c, memory_table.c: write a picture for browsers, or a table for terminals.
 * ERR_NO_MEMORY. */
int32_t ds_accel__memory_map_svg(json_t *tree, struct ds_accel__text *out);
int32_t ds_accel__memory_map_text(json_t *tree, struct ds_accel__text *out);

enum ds_accel__piece_state {
    DS_ACCEL__PIECE_FREE,
    DS_ACCEL__PIECE_PENDING, /* freed, but a stream may still use it */
    DS_ACCEL__PIECE_ALLOCATED
};

DS_ACCEL__PRIVATE enum ds_accel__piece_state ds_accel__piece_state(const json_t *block);

/* Add the sizes and counts of a segment to *sums. */
DS_ACCEL__PRIVATE void ds_accel__memory_sum(const json_t *segment,
                                            struct ds_accel__memory_sums *sums);

#endif
