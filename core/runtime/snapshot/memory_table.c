/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Writing a snapshot as a table for terminals, and the sums that both the table and the picture
 * show. */
#include "base/json.h"
#include "base/text.h"
#include "runtime/oom.h"
#include "runtime/snapshot/memory_snapshot.h"

#include <stdio.h>
#include <string.h>

#define BAR_CELLS 32
#define ROW_LIMIT 1000 /* segments beyond this number are only counted */

enum ds_accel__piece_state ds_accel__piece_state(const json_t *block)
{
    const char *state = json_string_value(json_object_get(block, "state"));

    if (state == NULL || strcmp(state, "inactive") == 0) {
        return DS_ACCEL__PIECE_FREE;
    }
    return strcmp(state, "active_allocated") == 0 ? DS_ACCEL__PIECE_ALLOCATED
                                                  : DS_ACCEL__PIECE_PENDING;
}

void ds_accel__memory_sum(const json_t *segment, struct ds_accel__memory_sums *sums)
{
    const json_t *blocks = json_object_get(segment, "blocks");

    sums->segment_count++;
    sums->reserved_bytes += ds_accel__json_size(segment, "total_size");
    sums->block_count += json_array_size(blocks);
    for (size_t i = 0; i < json_array_size(blocks); i++) {
        const json_t *block = json_array_get(blocks, i);
        uint64_t size = ds_accel__json_size(block, "size");

        switch (ds_accel__piece_state(block)) {
        case DS_ACCEL__PIECE_ALLOCATED:
            sums->allocated_bytes += size;
            sums->requested_bytes += ds_accel__json_size(block, "requested_size");
            break;
        case DS_ACCEL__PIECE_PENDING:
            sums->pending_bytes += size;
            break;
        case DS_ACCEL__PIECE_FREE:
            sums->free_bytes += size;
            if (size > sums->largest_free_bytes) {
                sums->largest_free_bytes = size;
            }
            break;
        }
    }
}

/* ---- the table ------------------------------------------------------------------------------ */

/* Return the mark of a cell, the first of these that applies. '.': all free. '~': more bytes
 * pending than allocated. '+': more than 1 % free. '#': otherwise, with at most half of the
 * bytes pending. */
static char cell_mark(const double parts[3])
{
    if (parts[DS_ACCEL__PIECE_ALLOCATED] + parts[DS_ACCEL__PIECE_PENDING] == 0) {
        return '.';
    }
    if (parts[DS_ACCEL__PIECE_PENDING] > parts[DS_ACCEL__PIECE_ALLOCATED]) {
        return '~';
    }
    return parts[DS_ACCEL__PIECE_FREE] > 0.01 ? '+' : '#';
}

static void draw_bar(const json_t *segment, char bar[BAR_CELLS + 1])
{
    const json_t *blocks = json_object_get(segment, "blocks");
    double total = (double)ds_accel__json_size(segment, "total_size");
    double filled[BAR_CELLS][3] = {{0}}; /* filled part of each cell, by state of the memory */
    double at = 0;

    for (size_t i = 0; i < json_array_size(blocks) && total > 0; i++) {
        const json_t *block = json_array_get(blocks, i);
        double end = at + (double)ds_accel__json_size(block, "size") * BAR_CELLS / total;

        for (int cell = (int)at; cell < BAR_CELLS && cell < end; cell++) {
            double from = at > cell ? at : cell;
            double to = end < cell + 1 ? end : cell + 1;

            filled[cell][ds_accel__piece_state(block)] += to > from ? to - from : 0;
        }
        at = end;
    }
    for (int cell = 0; cell < BAR_CELLS; cell++) {
        bar[cell] = cell_mark(filled[cell]);
    }
    bar[BAR_CELLS] = '\0';
}

static void add_summary(const struct ds_accel__memory_sums *sums, struct ds_accel__text *out)
{
    char reserved[32];
    char allocated[32];
    char requested[32];
    char pending[32];
    char free_text[32];
    char largest[32];

    ds_accel__size_text(sums->reserved_bytes, reserved, sizeof(reserved));
    ds_accel__size_text(sums->allocated_bytes, allocated, sizeof(allocated));
    ds_accel__size_text(sums->requested_bytes, requested, sizeof(requested));
    ds_accel__size_text(sums->pending_bytes, pending, sizeof(pending));
    ds_accel__size_text(sums->free_bytes, free_text, sizeof(free_text));
    ds_accel__size_text(sums->largest_free_bytes, largest, sizeof(largest));
    ds_accel__text_add(out,
                       "%zu segment%s, %zu block%s: %s reserved, %s allocated (%s requested), "
                       "%s pending, %s free\n"
                       "largest free block %s, fragmentation %u %%\n",
                       sums->segment_count, sums->segment_count == 1 ? "" : "s", sums->block_count,
                       sums->block_count == 1 ? "" : "s", reserved, allocated, requested, pending,
                       free_text, largest, ds_accel__fragmentation_percent(sums));
}

static void add_row(const json_t *segment, struct ds_accel__text *out)
{
    struct ds_accel__memory_sums sums = {0};
    char address[32];
    char reserved[32];
    char allocated[32];
    char largest[32];
    char bar[BAR_CELLS + 1];
    const char *type = json_string_value(json_object_get(segment, "segment_type"));

    ds_accel__memory_sum(segment, &sums);
    snprintf(address, sizeof(address), "0x%llx",
             (unsigned long long)ds_accel__json_size(segment, "address"));
    ds_accel__size_text(sums.reserved_bytes, reserved, sizeof(reserved));
    ds_accel__size_text(sums.allocated_bytes, allocated, sizeof(allocated));
    ds_accel__size_text(sums.largest_free_bytes, largest, sizeof(largest));
    draw_bar(segment, bar);
    ds_accel__text_add(out, "%6lld  %-18s %10s %10s %12s  %6zu %7lld  %-5s  %s\n",
                       (long long)json_integer_value(json_object_get(segment, "device")), address,
                       reserved, allocated, largest, sums.block_count,
                       (long long)json_integer_value(json_object_get(segment, "stream")),
                       type != NULL && strcmp(type, "small") == 0 ? "small" : "large", bar);
}

int32_t ds_accel__memory_map_text(json_t *tree, struct ds_accel__text *out)
{
    const json_t *segments = json_object_get(tree, "segments");
    const json_t *traces = json_object_get(tree, "device_traces");
    size_t count = json_array_size(segments);
    struct ds_accel__memory_sums sums = {0};
    size_t events = 0;

    for (size_t i = 0; i < count; i++) {
        ds_accel__memory_sum(json_array_get(segments, i), &sums);
    }
    for (size_t i = 0; i < json_array_size(traces); i++) {
        events += json_array_size(json_array_get(traces, i));
    }
    add_summary(&sums, out);
    ds_accel__text_add(out, "%zu recorded event%s\n", events, events == 1 ? "" : "s");
    if (count > 0) {
        ds_accel__text_add(out, "\n%6s  %-18s %10s %10s %12s  %6s %7s  %-5s  %s\n", "device",
                           "address", "size", "allocated", "largest free", "blocks", "stream",
                           "type", "# allocated  + in part  ~ pending  . free");
    }
    for (size_t i = 0; i < count && i < ROW_LIMIT; i++) {
        add_row(json_array_get(segments, i), out);
    }
    if (count > ROW_LIMIT) {
        ds_accel__text_add(out, "and %zu more segments\n", count - ROW_LIMIT);
    }
    return out->failed ? ds_accel__no_memory() : DS_ACCEL_OK;
}
