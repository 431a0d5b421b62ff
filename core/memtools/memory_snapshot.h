/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Layer 5: what is made of the caching allocator's snapshots. A snapshot is a tree of JSON laid out
 * as torch.cuda.memory._snapshot() lays it out, with schema_version, backend, pid, time_us and
 * stats added; conf/schema/memory-snapshot.json has every key.
 */
#ifndef DS_ACCEL_MEMORY_SNAPSHOT_H
#define DS_ACCEL_MEMORY_SNAPSHOT_H

#include "ds_accel.h"

#include <jansson.h>
#include <stdbool.h>

struct ds_accel__facts;
struct ds_accel__text;

/*
 * memory_read.c: a snapshot as this library writes it, or as torch does (dumped as JSON; of its
 * older versions a list of segments alone). Gives a new tree with every key, in the schema's order,
 * in which the sizes add up. ERR_INVALID with file:line:column and what was expected; ERR_IO;
 * ERR_NOT_FOUND; ERR_NO_MEMORY.
 */
int32_t ds_accel__memory_snapshot_read(const char *path, json_t **tree_out);
/* The same for a text; name stands in messages for the file. */
int32_t ds_accel__memory_snapshot_parse(const char *name, const char *text, size_t size_bytes,
                                        json_t **tree_out);
/* The same for a tree that this process made: messages have its place in the tree. Borrowed. */
int32_t ds_accel__memory_snapshot_complete(json_t *tree, json_t **tree_out);
/*
 * Write a tree from one of these in a DS_ACCEL_SNAPSHOT_* format. The data has a NUL behind it that
 * does not count; ds_accel_free_text() releases it. ERR_INVALID no such format; ERR_NO_MEMORY.
 */
int32_t ds_accel__memory_snapshot_write(json_t *tree, uint32_t format, void **data_out,
                                        size_t *size_bytes_out);

/*
 * memory_pickle.c: any JSON value as a Python pickle that makes no calls. The depth is limited to
 * 64: ERR_LIMIT. ERR_NO_MEMORY.
 */
int32_t ds_accel__pickle_write(json_t *tree, struct ds_accel__text *out);

/* memory_map.c, memory_table.c: a picture for browsers, a table for terminals. ERR_NO_MEMORY. */
int32_t ds_accel__memory_map_svg(json_t *tree, struct ds_accel__text *out);
int32_t ds_accel__memory_map_text(json_t *tree, struct ds_accel__text *out);

/* report_memory.c: a backend's devices as they are now, as a tree, and that as a picture. */
json_t *ds_accel__memory_tree(const struct ds_accel__facts *facts, uint32_t count);
int32_t ds_accel__memory_tree_svg(json_t *tree, struct ds_accel__text *out);

/* "20 MiB", "1.5 GiB", "512 B". */
void ds_accel__size_text(uint64_t bytes, char *text, size_t text_size);
/* Add a text as XML has it: escaped, without characters that XML has not. */
void ds_accel__xml_add(struct ds_accel__text *out, const char *text);
/* A member that is a number; 0 if there is none. */
uint64_t ds_accel__json_size(const json_t *object, const char *key);

enum ds_accel__piece_state {
    DS_ACCEL__PIECE_FREE,
    DS_ACCEL__PIECE_PENDING, /* freed, but a stream is not past it */
    DS_ACCEL__PIECE_ALLOCATED
};

enum ds_accel__piece_state ds_accel__piece_state(const json_t *block);

/* Sums over segments. */
struct ds_accel__memory_sums {
    uint64_t reserved_bytes;
    uint64_t allocated_bytes;
    uint64_t requested_bytes; /* of what is allocated */
    uint64_t pending_bytes;
    uint64_t free_bytes;
    uint64_t largest_free_bytes; /* one block */
    size_t segment_count;
    size_t block_count;
};

/* Add a segment's. */
void ds_accel__memory_sum(const json_t *segment, struct ds_accel__memory_sums *sums);
/* How much of the free bytes is not in the largest free block. */
unsigned ds_accel__fragmentation_percent(const struct ds_accel__memory_sums *sums);

/* ---- out of memory (oom.c) ------------------------------------------------------------------ */

/* What the allocator knows when it gives up: after it returned all that it could to the driver. */
struct ds_accel__oom_facts {
    const char *device;          /* "cuda:1" */
    uint64_t asked_bytes;        /* rounded, as it was looked for */
    uint64_t allocated_bytes;    /* held by live allocations */
    uint64_t pending_bytes;      /* freed, waiting for a stream */
    uint64_t reserved_bytes;     /* held from the driver: those two and what is free */
    uint64_t elsewhere_bytes;    /* of the free ones: of streams or pools other than the asker's */
    uint64_t largest_free_bytes; /* the largest block that the asker could have had */
    uint64_t limit_bytes;        /* the allocator's own; 0: none */
    uint64_t device_total_bytes; /* 0: not known */
    uint64_t device_free_bytes;  /* with device_total_bytes: what the driver could still give */
    uint64_t max_split_bytes;    /* 0: off */
    uint64_t largest_bytes;      /* that the driver gives in one allocation; 0: not known */
    bool can_grow;               /* the backend has virtual memory */
    bool is_growable;            /* growable segments are on */
};

/* What would have helped and is not on. */
enum ds_accel__oom_advice {
    DS_ACCEL__OOM_ADVICE_NONE,     /* too little memory, or nothing is left to switch on */
    DS_ACCEL__OOM_ADVICE_GROWABLE, /* growable_segments */
    DS_ACCEL__OOM_ADVICE_LIMIT,    /* a higher limit_bytes */
    DS_ACCEL__OOM_ADVICE_SPLIT,    /* max_split_bytes */
    DS_ACCEL__OOM_ADVICE_SMALLER   /* several allocations instead of one */
};

enum ds_accel__oom_advice ds_accel__oom_advise(const struct ds_accel__oom_facts *facts);
/* One line: all of the facts, and the advice or how much is missing. Allocates nothing. */
void ds_accel__oom_describe(const struct ds_accel__oom_facts *facts, char *text, size_t text_size);

#endif
