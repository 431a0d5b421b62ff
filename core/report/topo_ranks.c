/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The ranks of a plan on the machine, as text: for each NUMA node the ranks that are bound to its
 * CPUs, its devices with the ranks that use them, and the CPUs that no rank uses. Ranks that are
 * not bound are listed with their devices.
 *
 * A rank whose CPUs are on several nodes is in the table of each, with the CPUs of that node. The
 * kernel's emulated nodes (numa=fake) share the CPUs of a real one, so a CPU may be on several.
 */
#include "report/topo_ranks.h"
#include "base/json.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define COLUMN_COUNT 5u

static long long get_number(const json_t *tree, const char *key)
{
    return (long long)json_integer_value(json_object_get(tree, key));
}

/* ---- reading -------------------------------------------------------------------------------- */

static int32_t read_rank(const json_t *tree, struct ds_accel__topo_rank *rank)
{
    int32_t status = ds_accel__set_add_list(&rank->cpus, ds_accel__json_string(tree, "cpus"));

    rank->tree = tree;
    if (status >= 0) {
        status =
            ds_accel__set_add_list(&rank->reserved, ds_accel__json_string(tree, "reserved_cpus"));
    }
    return status < 0
               ? status
               : ds_accel__set_add_list(&rank->nodes, ds_accel__json_string(tree, "mem_nodes"));
}

static int32_t read_ranks(struct ds_accel__topo_ranks *ranks)
{
    const json_t *array = json_object_get(ranks->plan, "ranks");
    int32_t status = DS_ACCEL_OK;

    ranks->ranks = calloc(json_array_size(array) + 1, sizeof(*ranks->ranks));
    if (ranks->ranks == NULL) {
        return ds_accel__no_memory();
    }
    for (size_t i = 0; i < json_array_size(array) && status >= 0; i++) {
        struct ds_accel__topo_rank *rank = &ranks->ranks[ranks->rank_count++];

        status = read_rank(json_array_get(array, i), rank);
        ranks->is_bound |= rank->cpus.count > 0;
        status = status < 0 ? status : ds_accel__set_add_all(&ranks->used, &rank->cpus);
        status = status < 0 ? status : ds_accel__set_add_all(&ranks->used, &rank->reserved);
    }
    return status;
}

static int32_t read_cores(struct ds_accel__topo_ranks *ranks)
{
    const json_t *array = json_object_get(ranks->plan, "cores");
    int32_t status = DS_ACCEL_OK;

    ranks->cores = calloc(json_array_size(array) + 1, sizeof(*ranks->cores));
    if (ranks->cores == NULL) {
        return ds_accel__no_memory();
    }
    for (size_t i = 0; i < json_array_size(array) && status >= 0; i++) {
        struct ds_accel__topo_core *core = &ranks->cores[ranks->core_count++];
        const json_t *tree = json_array_get(array, i);

        core->l3 = get_number(tree, "l3");
        status = ds_accel__set_add_list(&core->cpus, ds_accel__json_string(tree, "cpus"));
    }
    return status;
}

/* Add the CPUs that are on no node to the last node. */
static int32_t add_others(struct ds_accel__topo_ranks *ranks)
{
    struct ds_accel__topo_node *others = &ranks->nodes[ranks->node_count++];
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < ranks->core_count; i++) {
        for (uint32_t k = 0; k < ranks->cores[i].cpus.count && status >= 0; k++) {
            uint32_t cpu = ranks->cores[i].cpus.items[k];
            size_t node = 0;

            while (ranks->nodes + node < others &&
                   !ds_accel__set_has(&ranks->nodes[node].cpus, cpu)) {
                node++;
            }
            status = ranks->nodes + node == others ? ds_accel__set_add(&others->cpus, cpu) : status;
        }
    }
    return status;
}

static int32_t read_nodes(struct ds_accel__topo_ranks *ranks)
{
    const json_t *array = json_object_get(ranks->tree, "numa_nodes");
    int32_t status = DS_ACCEL_OK;

    ranks->nodes = calloc(json_array_size(array) + 1, sizeof(*ranks->nodes));
    if (ranks->nodes == NULL) {
        return ds_accel__no_memory();
    }
    for (size_t i = 0; i < json_array_size(array) && status >= 0; i++) {
        struct ds_accel__topo_node *node = &ranks->nodes[ranks->node_count++];

        node->tree = json_array_get(array, i);
        status = ds_accel__set_add_list(&node->cpus, ds_accel__json_string(node->tree, "cpus"));
    }
    return status < 0 ? status : add_others(ranks);
}

int32_t ds_accel__topo_ranks_read(const json_t *tree, struct ds_accel__topo_ranks *ranks)
{
    int32_t status;

    *ranks = (struct ds_accel__topo_ranks){.tree = tree, .plan = json_object_get(tree, "plan")};
    status =
        ds_accel__set_add_list(&ranks->allowed, ds_accel__json_string(ranks->plan, "allowed_cpus"));
    status = status < 0 ? status : read_ranks(ranks);
    status = status < 0 ? status : read_cores(ranks);
    status = status < 0 ? status : read_nodes(ranks);
    if (status < 0) {
        ds_accel__topo_ranks_clear(ranks);
    }
    return status;
}

void ds_accel__topo_ranks_clear(struct ds_accel__topo_ranks *ranks)
{
    for (size_t i = 0; i < ranks->rank_count; i++) {
        ds_accel__set_clear(&ranks->ranks[i].cpus);
        ds_accel__set_clear(&ranks->ranks[i].reserved);
        ds_accel__set_clear(&ranks->ranks[i].nodes);
    }
    for (size_t i = 0; i < ranks->core_count; i++) {
        ds_accel__set_clear(&ranks->cores[i].cpus);
    }
    for (size_t i = 0; i < ranks->node_count; i++) {
        ds_accel__set_clear(&ranks->nodes[i].cpus);
    }
    ds_accel__set_clear(&ranks->allowed);
    ds_accel__set_clear(&ranks->used);
    free(ranks->ranks);
    free(ranks->cores);
    free(ranks->nodes);
    memset(ranks, 0, sizeof(*ranks));
}

/* ---- texts of both forms -------------------------------------------------------------------- */

static bool has_common(const struct ds_accel__set *left, const struct ds_accel__set *right)
{
    for (uint32_t i = 0; i < left->count; i++) {
        if (ds_accel__set_has(right, left->items[i])) {
            return true;
        }
    }
    return false;
}

bool ds_accel__topo_node_has(const struct ds_accel__topo_node *node, const json_t *device)
{
    const json_t *numa = json_object_get(device, "numa_node");

    if (node->tree == NULL) {
        return !json_is_integer(numa);
    }
    return json_is_integer(numa) &&
           json_integer_value(numa) == json_integer_value(json_object_get(node->tree, "id"));
}

bool ds_accel__topo_node_is_shown(const struct ds_accel__topo_ranks *ranks,
                                  const struct ds_accel__topo_node *node)
{
    const json_t *devices = json_object_get(ranks->tree, "devices");
    bool is_shown = node->tree != NULL || node->cpus.count > 0;

    for (size_t i = 0; i < json_array_size(devices) && !is_shown; i++) {
        is_shown = ds_accel__topo_node_has(node, json_array_get(devices, i));
    }
    return is_shown;
}

bool ds_accel__topo_rank_is_on(const struct ds_accel__topo_rank *rank,
                               const struct ds_accel__topo_node *node)
{
    return has_common(&rank->cpus, &node->cpus) || has_common(&rank->reserved, &node->cpus);
}

void ds_accel__topo_ranks_title(const struct ds_accel__topo_ranks *ranks,
                                struct ds_accel__text *out)
{
    long long world_size = get_number(ranks->plan, "world_size");

    if (world_size > (long long)ranks->rank_count) {
        ds_accel__text_add(out, "%zu of ", ranks->rank_count);
    }
    ds_accel__text_add(
        out, "%lld %s of %s on host %s%s", world_size, world_size == 1 ? "rank" : "ranks",
        ds_accel__json_string(ranks->plan, "accelerator"),
        ds_accel__json_string(ranks->plan, "host"), ranks->is_bound ? "" : ", not bound to CPUs");
}

void ds_accel__topo_rank_device(const struct ds_accel__topo_rank *rank, struct ds_accel__text *out)
{
    const json_t *slot = json_object_get(rank->tree, "slot");
    const char *device = ds_accel__json_string(rank->tree, "device");

    if (device[0] != '\0') {
        ds_accel__text_add(out, "%s", device);
    } else if (json_is_string(slot)) {
        ds_accel__text_add(out, "slot %s", json_string_value(slot));
    } else {
        ds_accel__text_add(out, "slot %lld", (long long)json_integer_value(slot));
    }
}

void ds_accel__topo_rank_memory(const struct ds_accel__topo_rank *rank, struct ds_accel__text *out)
{
    const char *policy = ds_accel__json_string(rank->tree, "mem_policy");

    if (policy[0] == '\0') {
        ds_accel__text_add(out, "-");
        return;
    }
    ds_accel__text_add(out, "%s ", policy);
    ds_accel__set_write(&rank->nodes, out);
}

/* Add the numbers of ranks, "rank 0" or "ranks 0-3,8"; none: if there are none. */
static void write_numbers(struct ds_accel__text *out, const struct ds_accel__set *numbers,
                          const char *none)
{
    if (numbers->count == 0) {
        ds_accel__text_add(out, "%s", none);
        return;
    }
    ds_accel__text_add(out, numbers->count == 1 ? "rank " : "ranks ");
    ds_accel__set_write(numbers, out);
}

void ds_accel__topo_device_ranks(const struct ds_accel__topo_ranks *ranks, const json_t *device,
                                 struct ds_accel__text *out)
{
    struct ds_accel__set users = {0};

    for (size_t i = 0; i < ranks->rank_count; i++) {
        const json_t *rank = ranks->ranks[i].tree;

        if (strcmp(ds_accel__json_string(rank, "device"), ds_accel__json_string(device, "id")) ==
                0 &&
            ds_accel__set_add(&users, (uint32_t)get_number(rank, "rank")) < 0) {
            out->failed = true;
        }
    }
    write_numbers(out, &users, "no rank");
    ds_accel__set_clear(&users);
}

/* ---- text ----------------------------------------------------------------------------------- */

struct writer {
    const struct ds_accel__topo_ranks *ranks;
    struct ds_accel__text *out;
    int widths[COLUMN_COUNT];
};

/* Add the numbers that both sets have; none: if there are none. */
static void write_common(struct ds_accel__text *out, const struct ds_accel__set *left,
                         const struct ds_accel__set *right, const char *none)
{
    struct ds_accel__set common = {0};

    if (ds_accel__set_add_all(&common, left) < 0) {
        out->failed = true;
    }
    ds_accel__set_keep(&common, right);
    if (common.count == 0) {
        ds_accel__text_add(out, "%s", none);
    }
    ds_accel__set_write(&common, out);
    ds_accel__set_clear(&common);
}

/* Add the rank's device, and its node if it is not this one. */
static void write_device(const struct writer *writer, const struct ds_accel__topo_rank *rank,
                         const struct ds_accel__topo_node *node, struct ds_accel__text *out)
{
    const json_t *devices = json_object_get(writer->ranks->tree, "devices");

    ds_accel__topo_rank_device(rank, out);
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        const json_t *numa = json_object_get(device, "numa_node");

        if (strcmp(ds_accel__json_string(device, "id"),
                   ds_accel__json_string(rank->tree, "device")) == 0 &&
            json_is_integer(numa) && !ds_accel__topo_node_has(node, device)) {
            ds_accel__text_add(out, " on node %lld", (long long)json_integer_value(numa));
        }
    }
}

static void write_cell(const struct writer *writer, const struct ds_accel__topo_rank *rank,
                       const struct ds_accel__topo_node *node, size_t column,
                       struct ds_accel__text *out)
{
    switch (column) {
    case 0:
        ds_accel__text_add(out, "%lld", get_number(rank->tree, "rank"));
        break;
    case 1:
        write_common(out, &rank->cpus, &node->cpus, "-");
        break;
    case 2:
        write_common(out, &rank->reserved, &node->cpus, "-");
        break;
    case 3:
        ds_accel__topo_rank_memory(rank, out);
        break;
    default:
        write_device(writer, rank, node, out);
        break;
    }
}

/* Visit the cells of a node's ranks: find the widths, or write the lines. */
static void visit_cells(struct writer *writer, const struct ds_accel__topo_node *node,
                        bool is_writing)
{
    const struct ds_accel__topo_ranks *ranks = writer->ranks;

    for (size_t i = 0; i < ranks->rank_count; i++) {
        if (!ds_accel__topo_rank_is_on(&ranks->ranks[i], node)) {
            continue;
        }
        for (size_t column = 0; column < COLUMN_COUNT; column++) {
            struct ds_accel__text cell = {0};

            write_cell(writer, &ranks->ranks[i], node, column, &cell);
            writer->out->failed |= cell.failed;
            if (is_writing) {
                ds_accel__text_add(writer->out, "%s%-*s%s", column == 0 ? "  " : "",
                                   column + 1 < COLUMN_COUNT ? writer->widths[column] : 0,
                                   cell.data != NULL ? cell.data : "",
                                   column + 1 < COLUMN_COUNT ? "" : "\n");
            } else if ((int)cell.size_bytes + 2 > writer->widths[column]) {
                writer->widths[column] = (int)cell.size_bytes + 2;
            }
            ds_accel__text_clear(&cell);
        }
    }
}

static void write_table(struct writer *writer, const struct ds_accel__topo_node *node)
{
    static const char *const heads[COLUMN_COUNT] = {"RANK", "CPUS", "RESERVED", "MEMORY", "DEVICE"};
    const struct ds_accel__topo_ranks *ranks = writer->ranks;
    bool is_used = false;

    for (size_t i = 0; i < ranks->rank_count; i++) {
        is_used |= ds_accel__topo_rank_is_on(&ranks->ranks[i], node);
    }
    if (!is_used) {
        ds_accel__text_add(writer->out, "  no rank\n");
        return;
    }
    for (size_t column = 0; column < COLUMN_COUNT; column++) {
        ds_accel__text_add(writer->out, "%s%-*s%s", column == 0 ? "  " : "",
                           column + 1 < COLUMN_COUNT ? writer->widths[column] : 0, heads[column],
                           column + 1 < COLUMN_COUNT ? "" : "\n");
    }
    visit_cells(writer, node, true);
}

static void write_devices(const struct writer *writer, const struct ds_accel__topo_node *node)
{
    const json_t *devices = json_object_get(writer->ranks->tree, "devices");
    bool is_first = true;

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);

        if (ds_accel__topo_node_has(node, device)) {
            ds_accel__text_add(writer->out, "%s%s (", is_first ? "  devices: " : ", ",
                               ds_accel__json_string(device, "id"));
            ds_accel__topo_device_ranks(writer->ranks, device, writer->out);
            ds_accel__text_add(writer->out, ")");
            is_first = false;
        }
    }
    ds_accel__text_add(writer->out, is_first ? "" : "\n");
}

/* A node without CPUs, such as high-bandwidth memory, has only ranks that use its memory. */
static void write_memory(const struct writer *writer, const struct ds_accel__topo_node *node)
{
    const struct ds_accel__topo_ranks *ranks = writer->ranks;
    struct ds_accel__set users = {0};

    for (size_t i = 0; i < ranks->rank_count; i++) {
        if (ds_accel__set_has(&ranks->ranks[i].nodes, (uint32_t)get_number(node->tree, "id")) &&
            ds_accel__set_add(&users, (uint32_t)get_number(ranks->ranks[i].tree, "rank")) < 0) {
            writer->out->failed = true;
        }
    }
    ds_accel__text_add(writer->out, "  memory of ");
    write_numbers(writer->out, &users, "no rank");
    ds_accel__text_add(writer->out, "\n");
    ds_accel__set_clear(&users);
}

/* Sort a node's CPUs that no rank uses: whole cores; threads of cores that ranks use; CPUs that
 * this process may not use. */
static int32_t sort_idle(const struct ds_accel__topo_ranks *ranks,
                         const struct ds_accel__topo_node *node, struct ds_accel__set idle[3])
{
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < ranks->core_count; i++) {
        const struct ds_accel__set *cpus = &ranks->cores[i].cpus;
        bool is_used = has_common(cpus, &ranks->used);

        for (uint32_t k = 0; k < cpus->count && status >= 0; k++) {
            uint32_t cpu = cpus->items[k];

            if (ds_accel__set_has(&node->cpus, cpu) && !ds_accel__set_has(&ranks->used, cpu)) {
                size_t kind = !ds_accel__set_has(&ranks->allowed, cpu) ? 2 : is_used;

                status = ds_accel__set_add(&idle[kind], cpu);
            }
        }
    }
    return status;
}

static void write_idle(const struct writer *writer, const struct ds_accel__topo_node *node)
{
    static const char *const kinds[] = {"idle cores", "idle threads of used cores", "not allowed"};
    struct ds_accel__set idle[ARRAY_SIZE(kinds)] = {{0}};

    if (sort_idle(writer->ranks, node, idle) < 0) {
        writer->out->failed = true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (idle[i].count > 0) {
            ds_accel__text_add(writer->out, "  %s: CPUs ", kinds[i]);
            ds_accel__set_write(&idle[i], writer->out);
            ds_accel__text_add(writer->out, "\n");
        }
        ds_accel__set_clear(&idle[i]);
    }
}

static void write_node(struct writer *writer, const struct ds_accel__topo_node *node)
{
    if (node->tree != NULL) {
        ds_accel__text_add(writer->out, "node %lld: ", get_number(node->tree, "id"));
    } else {
        ds_accel__text_add(writer->out, "node not known: ");
    }
    ds_accel__text_add(writer->out, node->cpus.count > 0 ? "CPUs " : "no CPUs");
    ds_accel__set_write(&node->cpus, writer->out);
    ds_accel__text_add(writer->out, "\n");
    if (node->cpus.count > 0) {
        write_table(writer, node);
    } else if (node->tree != NULL) {
        write_memory(writer, node);
    }
    write_devices(writer, node);
    write_idle(writer, node);
}

/* Ranks that are not bound, with their devices. */
static void write_unbound(const struct writer *writer)
{
    const struct ds_accel__topo_ranks *ranks = writer->ranks;

    ds_accel__text_add(writer->out, "  RANK  DEVICE\n");
    for (size_t i = 0; i < ranks->rank_count; i++) {
        const struct ds_accel__topo_node anywhere = {.tree = NULL};

        ds_accel__text_add(writer->out, "  %-6lld", get_number(ranks->ranks[i].tree, "rank"));
        write_device(writer, &ranks->ranks[i], &anywhere, writer->out);
        ds_accel__text_add(writer->out, "\n");
    }
}

static void write_bound(struct writer *writer)
{
    const struct ds_accel__topo_ranks *ranks = writer->ranks;

    /* clang-tidy does not see that the caller still has the nodes, and reports a leak. */
    for (size_t i = 0; i < ranks->node_count; i++) { // NOLINT(clang-analyzer-unix.Malloc)
        visit_cells(writer, &ranks->nodes[i], false);
    }
    for (size_t i = 0; i < ranks->node_count; i++) {
        if (ds_accel__topo_node_is_shown(ranks, &ranks->nodes[i])) {
            write_node(writer, &ranks->nodes[i]);
        }
    }
}

void ds_accel__topo_ranks_write(const json_t *tree, struct ds_accel__text *out)
{
    struct ds_accel__topo_ranks ranks;
    struct writer writer = {.ranks = &ranks, .out = out, .widths = {6, 6, 10, 8, 0}};

    if (ds_accel__topo_ranks_read(tree, &ranks) < 0) {
        out->failed = true;
        return;
    }
    ds_accel__topo_ranks_title(&ranks, out);
    ds_accel__text_add(out, "\n\n");
    if (ranks.is_bound) {
        write_bound(&writer);
    } else {
        write_unbound(&writer);
    }
    ds_accel__topo_ranks_clear(&ranks);
}
