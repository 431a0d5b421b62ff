/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Layer 5: what is made of the caching allocator's snapshots. A snapshot is a tree of JSON laid out
 * as torch.cuda.memory._snapshot() lays it out, with schema_version, backend, pid, time_us and
 * stats added; conf/schema/memory-snapshot.json has every key.
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

/* Where a tree was read from: a file's name and its text. */
struct ds_accel__snapshot_text {
    const char *name;
    const char *text;
    size_t size_bytes;
};

/*
 * memory_complete.c: a snapshot as this library writes it, or as torch does (dumped as JSON; of its
 * older versions a list of segments alone). Gives a new tree with every key, in the schema's order,
 * in which the sizes add up. from: NULL for a tree that this process made; borrowed, as tree is.
 * ERR_INVALID with the place in the text, or in the tree, and what was expected; ERR_NO_MEMORY.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__memory_snapshot_complete(
    json_t *tree, const struct ds_accel__snapshot_text *from, json_t **tree_out);
/*
 * Write a complete tree in a DS_ACCEL_SNAPSHOT_* format. The data has a NUL behind it that
 * does not count; ds_accel_free_text() releases it. ERR_INVALID no such format; ERR_NO_MEMORY.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__memory_snapshot_write(json_t *tree, uint32_t format,
                                                          void **data_out, size_t *size_bytes_out);

/*
 * memory_pickle.c: any JSON value as a Python pickle that makes no calls. The depth is limited to
 * 64: ERR_LIMIT. ERR_NO_MEMORY.
 */
int32_t ds_accel__pickle_write(json_t *tree, struct ds_accel__text *out);

/* memory_map.c, memory_table.c: a picture for browsers, a table for terminals. ERR_NO_MEMORY. */
int32_t ds_accel__memory_map_svg(json_t *tree, struct ds_accel__text *out);
int32_t ds_accel__memory_map_text(json_t *tree, struct ds_accel__text *out);

enum ds_accel__piece_state {
    DS_ACCEL__PIECE_FREE,
    DS_ACCEL__PIECE_PENDING, /* freed, but a stream is not past it */
    DS_ACCEL__PIECE_ALLOCATED
};

DS_ACCEL__PRIVATE enum ds_accel__piece_state ds_accel__piece_state(const json_t *block);

/* Add a segment's. */
DS_ACCEL__PRIVATE void ds_accel__memory_sum(const json_t *segment,
                                            struct ds_accel__memory_sums *sums);

#endif
