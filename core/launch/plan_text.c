/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The plan for a terminal: a table of the ranks, the command, the variables that all ranks have in
 * common, and for each rank those that differ. Commands and variables are quoted for a POSIX shell
 * if they are printable, and for bash ($'\n') otherwise, so that they can be pasted.
 */
#include "base/text.h"
#include "launch/pieces.h"
#include "launch/plan_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum column {
    RANK,
    HOST,
    LOCAL_RANK,
    CPUS,
    RESERVED,
    MEMORY,
    DEVICE,
    COLUMN_COUNT
};

static const char *const titles[] = {
    [RANK] = "RANK",         [HOST] = "HOST",     [LOCAL_RANK] = "LOCAL_RANK", [CPUS] = "CPUS",
    [RESERVED] = "RESERVED", [MEMORY] = "MEMORY", [DEVICE] = "DEVICE",
};

struct writer {
    const struct ds_accel__plan *plan;
    struct ds_accel__pieces pieces;
    struct ds_accel__text cell;
    size_t widths[COLUMN_COUNT]; /* 0: all cells are empty, and the column is left out */
    json_t *common;              /* variables of the first rank that no other rank has otherwise */
    json_t *own;                 /* variables of the current rank */
};

/* ---- quoting -------------------------------------------------------------------------------- */

/* True if a shell takes the text as it is. "a=b" in front of a command would set a variable. */
static bool is_plain(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789@%+=:,./-_";

    return text[0] != '\0' && text[strspn(text, plain)] == '\0' &&
           (text[0] == '-' || strchr(text, '=') == NULL);
}

/* Add a text as a word of bash that has unprintable characters as escapes. */
static void add_escaped(struct ds_accel__text *out, const char *text)
{
    ds_accel__text_add(out, "$'");
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '\n' || *c == '\t') {
            ds_accel__text_add(out, *c == '\n' ? "\\n" : "\\t");
        } else if (*c == '\'' || *c == '\\') {
            ds_accel__text_add(out, "\\%c", *c);
        } else if (*c < ' ' || *c > '~') {
            ds_accel__text_add(out, "\\%03o", *c);
        } else {
            ds_accel__text_add(out, "%c", *c);
        }
    }
    ds_accel__text_add(out, "'");
}

/* Add a text as a word of a shell. */
static void add_word(struct ds_accel__text *out, const char *text)
{
    if (is_plain(text)) {
        ds_accel__text_add(out, "%s", text);
        return;
    }
    if (!ds_accel__is_printable(text)) {
        add_escaped(out, text);
        return;
    }
    ds_accel__text_add(out, "'");
    for (const char *at = text; *at != '\0';) {
        size_t length = strcspn(at, "'");

        ds_accel__text_add_bytes(out, at, length);
        at += length;
        if (*at == '\'') {
            ds_accel__text_add(out, "'\\''");
            at++;
        }
    }
    ds_accel__text_add(out, "'");
}

/* ---- the table ------------------------------------------------------------------------------ */

/* Add a name, which may come from a file, with unprintable characters replaced. */
static void add_name(struct ds_accel__text *out, const char *name)
{
    char *copy = strdup(name);

    if (copy == NULL) {
        out->failed = true;
        return;
    }
    ds_accel__sanitize(copy, strlen(copy) + 1);
    ds_accel__text_add(out, "%s", copy);
    free(copy);
}

static void add_memory(struct ds_accel__text *out, const struct ds_accel__placement *placement)
{
    if (placement->memory != DS_ACCEL__MEMORY_DEFAULT) {
        ds_accel__text_add(out, "%s",
                           placement->memory == DS_ACCEL__MEMORY_BIND ? "bind " : "prefer ");
        ds_accel__set_write(&placement->nodes, out);
    }
}

static void add_device(const struct writer *writer, struct ds_accel__text *out,
                       const struct ds_accel__rank *rank)
{
    const struct ds_accel__slot *slot =
        &writer->plan->hosts.items[rank->host].slots[rank->local_rank];

    if (slot->token != NULL) {
        add_name(out, slot->token);
    } else {
        ds_accel__text_add(out, "%u", slot->index);
    }
}

/* Write a cell of the table to writer->cell. */
static void make_cell(struct writer *writer, const struct ds_accel__rank *rank, enum column column)
{
    static const struct ds_accel__placement nowhere;
    const struct ds_accel__placement *placement = rank->placement != NULL ? rank->placement
                                                                          : &nowhere;
    struct ds_accel__text *cell = &writer->cell;

    if (cell->data != NULL) {
        cell->size_bytes = 0;
        cell->data[0] = '\0';
    }
    switch (column) {
    case RANK:
        ds_accel__text_add(cell, "%u", rank->rank);
        break;
    case HOST:
        add_name(cell, writer->plan->hosts.items[rank->host].name);
        break;
    case LOCAL_RANK:
        ds_accel__text_add(cell, "%u", rank->local_rank);
        break;
    case CPUS:
        ds_accel__set_write(&placement->cpus, cell);
        break;
    case RESERVED:
        ds_accel__set_write(&placement->reserved, cell);
        break;
    case MEMORY:
        add_memory(cell, placement);
        break;
    default:
        add_device(writer, cell, rank);
        break;
    }
}

static void measure_columns(struct writer *writer)
{
    for (uint32_t i = 0; i < writer->plan->world_size; i++) {
        for (unsigned column = 0; column < COLUMN_COUNT; column++) {
            make_cell(writer, &writer->plan->ranks[i], column);
            if (writer->cell.size_bytes > writer->widths[column]) {
                writer->widths[column] = writer->cell.size_bytes;
            }
        }
    }
    for (unsigned column = 0; column < COLUMN_COUNT; column++) {
        if (writer->widths[column] > 0 && writer->widths[column] < strlen(titles[column])) {
            writer->widths[column] = strlen(titles[column]);
        }
    }
}

/* Write a line of the table; rank NULL: its head. */
static void add_row(struct writer *writer, const struct ds_accel__rank *rank)
{
    struct ds_accel__text *out = &writer->pieces.text;
    size_t blanks = 0;

    for (unsigned column = 0; column < COLUMN_COUNT; column++) {
        const char *cell = titles[column];

        if (writer->widths[column] == 0) {
            continue;
        }
        if (rank != NULL) {
            make_cell(writer, rank, column);
            cell = writer->cell.size_bytes > 0 ? writer->cell.data : "-";
        }
        ds_accel__text_add(out, "%*s%s", (int)blanks, "", cell);
        blanks = writer->widths[column] - strlen(cell) + 2;
    }
    ds_accel__text_add(out, "\n");
}

static int32_t write_table(struct writer *writer)
{
    int32_t status = DS_ACCEL_OK;

    measure_columns(writer);
    add_row(writer, NULL);
    for (uint32_t i = 0; i < writer->plan->world_size && status >= 0; i++) {
        add_row(writer, &writer->plan->ranks[i]);
        status = ds_accel__pieces_flush(&writer->pieces, false);
    }
    return writer->cell.failed ? ds_accel__no_memory() : status;
}

/* ---- the environment ------------------------------------------------------------------------ */

static bool keep_variable(void *user_data, const char *name, const char *value)
{
    return json_object_set_new_nocheck(
               user_data, name, value != NULL ? json_string_nocheck(value) : json_null()) == 0;
}

/* Read the variables of a rank into writer->own. */
static int32_t read_own(struct writer *writer, uint32_t rank)
{
    const struct ds_accel__plan *plan = writer->plan;

    json_object_clear(writer->own);
    return ds_accel__plan_variables(plan, &plan->ranks[rank], ds_accel__plan_port(plan),
                                    keep_variable, writer->own);
}

/* Remove from the common variables those that the current rank lacks or has otherwise. */
static void reduce_common(struct writer *writer)
{
    const char *name;
    json_t *value;
    void *next;

    json_object_foreach_safe(writer->common, next, name, value)
    {
        if (!json_equal(value, json_object_get(writer->own, name))) {
            json_object_del(writer->common, name);
        }
    }
}

static int32_t find_common(struct writer *writer)
{
    int32_t status = read_own(writer, 0);

    if (status >= 0 && json_object_update(writer->common, writer->own) != 0) {
        status = ds_accel__no_memory();
    }
    for (uint32_t rank = 1; rank < writer->plan->world_size && status >= 0; rank++) {
        status = read_own(writer, rank);
        if (status >= 0) {
            reduce_common(writer);
        }
    }
    return status;
}

static void add_variable(struct writer *writer, const char *name, const json_t *value)
{
    struct ds_accel__text *out = &writer->pieces.text;
    struct ds_accel__text whole = {0};

    if (json_is_null(value)) {
        ds_accel__text_add(out, "-u ");
        add_word(out, name);
    } else if (is_plain(name)) {
        ds_accel__text_add(out, "%s=", name);
        add_word(out, json_string_value(value));
    } else { /* a name that a shell would change */
        ds_accel__text_add(&whole, "%s=%s", name, json_string_value(value));
        if (whole.failed) {
            out->failed = true;
        } else {
            add_word(out, whole.data);
        }
        ds_accel__text_clear(&whole);
    }
}

/* Write variables, each on a line. */
static void add_variables(struct writer *writer, json_t *variables)
{
    const char *name;
    json_t *value;

    json_object_foreach(variables, name, value)
    {
        ds_accel__text_add(&writer->pieces.text, "  ");
        add_variable(writer, name, value);
        ds_accel__text_add(&writer->pieces.text, "\n");
    }
}

/* Write the variables of the current rank that are not common, on one line. */
static void add_own(struct writer *writer, uint32_t rank)
{
    struct ds_accel__text *out = &writer->pieces.text;
    const char *name;
    json_t *value;

    ds_accel__text_add(out, "  rank %u:", rank);
    json_object_foreach(writer->own, name, value)
    {
        if (json_object_get(writer->common, name) == NULL) {
            ds_accel__text_add(out, " ");
            add_variable(writer, name, value);
        }
    }
    ds_accel__text_add(out, "\n");
}

static int32_t write_environment(struct writer *writer)
{
    struct ds_accel__text *out = &writer->pieces.text;
    int32_t status = find_common(writer);

    if (status < 0) {
        return status;
    }
    ds_accel__text_add(out, "\nenvironment of all ranks, as arguments of env:\n");
    add_variables(writer, writer->common);
    if (writer->plan->world_size > 1) {
        ds_accel__text_add(out, "\nenvironment of each rank:\n");
    }
    for (uint32_t rank = 0; rank < writer->plan->world_size && status >= 0; rank++) {
        status = writer->plan->world_size > 1 ? read_own(writer, rank) : DS_ACCEL_OK;
        if (status >= 0 && writer->plan->world_size > 1) {
            add_own(writer, rank);
            status = ds_accel__pieces_flush(&writer->pieces, false);
        }
    }
    if (json_object_size(writer->plan->exports) > 0) {
        ds_accel__text_add(out, "\nenvironment for other hosts:\n");
        add_variables(writer, writer->plan->exports);
    }
    return status;
}

/* ---- all ------------------------------------------------------------------------------------ */

static void add_head(struct writer *writer)
{
    const struct ds_accel__plan *plan = writer->plan;
    struct ds_accel__text *out = &writer->pieces.text;

    add_name(out, plan->accelerator);
    ds_accel__text_add(out, ": %u %s on %zu %s, master ", plan->world_size,
                       plan->world_size == 1 ? "rank" : "ranks", plan->hosts.count,
                       plan->hosts.count == 1 ? "host" : "hosts");
    add_name(out, plan->master_addr);
    if (ds_accel__plan_port(plan) > 0) {
        ds_accel__text_add(out, ", port %u\n", plan->port_low);
    } else if (plan->port_low == 0) {
        ds_accel__text_add(out, ", any free port\n");
    } else {
        ds_accel__text_add(out, ", a free port from %u to %u\n", plan->port_low, plan->port_high);
    }
    if (plan->refusal != NULL) {
        ds_accel__text_add(out, "not started here: ");
        add_name(out, plan->refusal);
        ds_accel__text_add(out, "\n");
    }
    ds_accel__text_add(out, "\n");
}

static void add_command(struct writer *writer)
{
    const struct ds_accel__plan *plan = writer->plan;
    struct ds_accel__text *out = &writer->pieces.text;

    ds_accel__text_add(out, "\ncommand of each rank:\n ");
    for (uint32_t i = 0; i <= plan->argument_count; i++) {
        if (i == plan->local_rank_at) {
            ds_accel__text_add(out, " --local_rank=$LOCAL_RANK");
        }
        if (i < plan->argument_count) {
            ds_accel__text_add(out, " ");
            add_word(out, plan->arguments[i]);
        }
    }
    ds_accel__text_add(out, "\n");
}

int32_t ds_accel__plan_write_text(const struct ds_accel__plan *plan, ds_accel_write_t write,
                                  void *user_data)
{
    struct writer writer = {.plan = plan,
                            .pieces = {.write = write, .user_data = user_data},
                            .common = json_object(),
                            .own = json_object()};
    int32_t status = DS_ACCEL_OK;

    if (writer.common == NULL || writer.own == NULL) {
        status = ds_accel__no_memory();
    }
    if (status >= 0) {
        add_head(&writer);
        status = write_table(&writer);
    }
    if (status >= 0) {
        add_command(&writer);
        status = write_environment(&writer);
    }
    if (status >= 0) {
        status = ds_accel__pieces_flush(&writer.pieces, true);
    }
    ds_accel__pieces_clear(&writer.pieces);
    ds_accel__text_clear(&writer.cell);
    json_decref(writer.common);
    json_decref(writer.own);
    return status;
}
