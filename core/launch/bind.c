/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Places the local ranks on CPUs and NUMA nodes; bind_shares.c, bind_groups.c and bind_memory.c do
 * the steps, with what binder.c has for all of them.
 *
 * A core is represented by its first usable CPU. A CPU is usable if this process may use it and
 * --bind_core_list, if given, contains it; with --smt, the list selects whole cores. The modes
 * SHARE and EXCLUSIVE distribute the cores evenly: with n cores and r ranks, rank i gets the i-th
 * slice of n / r cores, and the rest stays idle, as in DeepSpeed. If the NUMA nodes of all devices
 * are known, each node's cores are distributed to the ranks of its devices. The modes NODE, SOCKET
 * and L3 give a rank all CPUs of a group, which several ranks may share; CORE gives it one core.
 *
 *      machine's CPUs -> usable -> cores or groups -> rank's cores -> + SMT siblings -> CPUs
 *                                                                  \-> NUMA node -> memory
 *
 * DeepSpeed distributes the numbers of --bind_core_list by position, whether or not two of them are
 * hardware threads of one core. SHARE does the same, unless --smt or --reserve-cores is given:
 * these are about whole cores.
 *
 * Memory follows the cores: if one NUMA node contains all cores of a rank, the rank's memory comes
 * from that node. On a machine in flat-HBM mode, which has a node without CPUs for each node with
 * CPUs, the paired node is preferred. With fake NUMA nodes, which share their CPUs, all nodes of
 * the group are used.
 */
#include "launch/bind.h"
#include "base/text.h"
#include "launch/binder.h"
#include "machine/cpus.h"
#include "machine/topology.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists of ranges ------------------------------------------------------------------------ */

/* Read a number with blanks around it, as Python's int() does. */
static bool read_number(const char *text, size_t length, long *number_out)
{
    char copy[32];
    char *end;

    if (length == 0 || length >= sizeof(copy)) {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    errno = 0;
    *number_out = strtol(copy, &end, 10);
    if (end == copy || errno != 0) {
        return false;
    }
    end += strspn(end, " \t\n\v\f\r");
    return *end == '\0' && *number_out >= 0;
}

static int32_t bad_range(const char *item, size_t length, const char *expected)
{
    return ds_accel__error(DS_ACCEL_ERR_INVALID, "bad range \"%.*s\": %s",
                           (int)(length < 80 ? length : 80), item, expected);
}

/* Read an item "a" or "a-b". */
static int32_t read_range(const char *item, size_t length, long *first, long *last)
{
    const char *dash = memchr(item, '-', length);
    bool is_valid;

    if (dash == NULL) {
        is_valid = read_number(item, length, first);
        *last = *first;
    } else {
        is_valid = read_number(item, (size_t)(dash - item), first) &&
                   read_number(dash + 1, length - (size_t)(dash + 1 - item), last);
    }
    if (!is_valid) {
        return bad_range(item, length, "a range must be a number, or two numbers separated by -");
    }
    if (*last < *first) {
        return bad_range(item, length, "the end of a range must not be below its start");
    }
    if (*last >= (long)DS_ACCEL__LIST_LIMIT) {
        return bad_range(item, length, "a CPU's number is below 65536");
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel__ranges_parse(const char *text, struct ds_accel__set *set)
{
    long previous = -1;
    int32_t status = DS_ACCEL_OK;

    for (const char *item = text; item != NULL && status >= 0;) {
        size_t length = strcspn(item, ",");
        long first = 0;
        long last = 0;

        status = read_range(item, length, &first, &last);
        if (status >= 0 && first <= previous) {
            status = bad_range(text, strlen(text),
                               "the ranges must ascend and must not overlap with each other");
        }
        for (long number = first; status >= 0 && number <= last; number++) {
            status = ds_accel__set_add(set, (uint32_t)number);
        }
        previous = last;
        item = item[length] == ',' ? item + length + 1 : NULL;
    }
    if (status < 0) {
        ds_accel__set_clear(set);
    }
    return status;
}

/* ---- cores and groups ----------------------------------------------------------------------- */

/* Does each number of --bind_core_list count as a core? */
static bool counts_numbers(const struct ds_accel__binder *binder)
{
    const struct ds_accel__bind_request *request = binder->request;

    return request->core_list != NULL && request->mode == DS_ACCEL__BIND_SHARE &&
           !request->uses_smt && request->reserve_cores == 0 && request->reserve_percent == 0;
}

/* Add the cores of these CPUs. */
static int32_t add_cores_of(const struct ds_accel__binder *binder, const struct ds_accel__set *cpus,
                            struct ds_accel__set *cores)
{
    int32_t status = DS_ACCEL_OK;

    for (uint32_t i = 0; status >= 0 && i < cpus->count; i++) {
        const struct ds_accel__cpu *cpu = ds_accel__cpus_find(binder->cpus, cpus->items[i]);

        status = cpu != NULL ? ds_accel__set_add(cores, cpu->core) : DS_ACCEL_OK;
    }
    return status;
}

/* Add the CPUs of these cores that this process may use. */
static int32_t add_cpus_of(const struct ds_accel__binder *binder, const struct ds_accel__set *cores,
                           struct ds_accel__set *cpus)
{
    int32_t status = DS_ACCEL_OK;

    for (uint32_t i = 0; status >= 0 && i < binder->cpus->count; i++) {
        const struct ds_accel__cpu *cpu = &binder->cpus->items[i];

        if (ds_accel__set_has(cores, cpu->core) &&
            ds_accel__set_has(&binder->cpus->allowed, cpu->id)) {
            status = ds_accel__set_add(cpus, cpu->id);
        }
    }
    return status;
}

/* Check that the CPUs of --bind_core_list are online, and note those that cannot be used. */
static int32_t check_list(const struct ds_accel__binder *binder, const struct ds_accel__set *list)
{
    uint32_t denied = 0;

    for (uint32_t i = 0; i < list->count; i++) {
        if (ds_accel__cpus_find(binder->cpus, list->items[i]) == NULL) {
            return ds_accel__error(DS_ACCEL_ERR_INVALID,
                                   "--bind_core_list %.200s: CPU %u is not online",
                                   binder->request->core_list, list->items[i]);
        }
        denied += !ds_accel__set_has(&binder->cpus->allowed, list->items[i]);
    }
    if (denied == list->count) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "--bind_core_list %.200s has no CPU that this process may use",
                               binder->request->core_list);
    }
    if (denied > 0) {
        ds_accel__text_add(binder->notes,
                           "%u %s of --bind_core_list %s not used: this process may use only CPUs ",
                           denied, denied == 1 ? "CPU" : "CPUs", denied == 1 ? "is" : "are");
        ds_accel__set_write(&binder->cpus->allowed, binder->notes);
        ds_accel__text_add(binder->notes, "\n");
    }
    return DS_ACCEL_OK;
}

/* Find the usable CPUs of --bind_core_list. */
static int32_t take_list(struct ds_accel__binder *binder)
{
    struct ds_accel__set list = {0};
    struct ds_accel__set cores = {0};
    int32_t status = ds_accel__ranges_parse(binder->request->core_list, &list);

    if (status >= 0) {
        status = check_list(binder, &list);
    }
    if (status >= 0) {
        status = add_cores_of(binder, &list, &cores);
    }
    binder->all_count = counts_numbers(binder) ? list.count : cores.count;
    if (status >= 0) {
        status = ds_accel__binder_uses_smt(binder) ? add_cpus_of(binder, &cores, &binder->usable)
                                                   : ds_accel__set_add_all(&binder->usable, &list);
    }
    ds_accel__set_keep(&binder->usable, &binder->cpus->allowed);
    ds_accel__set_clear(&list);
    ds_accel__set_clear(&cores);
    return status;
}

/* All allowed CPUs are usable. */
static int32_t take_machine(struct ds_accel__binder *binder)
{
    struct ds_accel__set cores = {0};
    int32_t status = ds_accel__set_add_all(&binder->usable, &binder->cpus->allowed);

    for (uint32_t i = 0; status >= 0 && i < binder->cpus->count; i++) {
        status = ds_accel__set_add(&cores, binder->cpus->items[i].core);
    }
    binder->all_count = cores.count;
    ds_accel__set_clear(&cores);
    return status;
}

/* Collect the first usable CPU of each core. */
static int32_t collect_cores(struct ds_accel__binder *binder)
{
    struct ds_accel__set seen = {0};
    int32_t status = DS_ACCEL_OK;

    for (uint32_t i = 0; status >= 0 && i < binder->usable.count; i++) {
        uint32_t id = binder->usable.items[i];
        uint32_t core = ds_accel__cpus_find(binder->cpus, id)->core;

        if (counts_numbers(binder) || !ds_accel__set_has(&seen, core)) {
            status = ds_accel__set_add(&seen, core);
            if (status >= 0) {
                status = ds_accel__set_add(&binder->cores, id);
            }
        }
    }
    ds_accel__set_clear(&seen);
    return status;
}

static int32_t collect_nodes(struct ds_accel__binder *binder)
{
    const struct ds_accel__topology *topology = binder->topology;
    int32_t status = DS_ACCEL_OK;

    binder->node_cpus = calloc(topology->node_count, sizeof(*binder->node_cpus));
    if (binder->node_cpus == NULL) {
        return ds_accel__no_memory();
    }
    for (uint32_t i = 0; status >= 0 && i < topology->node_count; i++) {
        status = ds_accel__set_add_list(&binder->node_cpus[i], topology->nodes[i].cpus);
    }
    return status;
}

/* ---- all ------------------------------------------------------------------------------------ */

void ds_accel__placement_clear(struct ds_accel__placement *placement)
{
    ds_accel__set_clear(&placement->cpus);
    ds_accel__set_clear(&placement->reserved);
    ds_accel__set_clear(&placement->nodes);
    memset(placement, 0, sizeof(*placement));
}

static int32_t place(struct ds_accel__binder *binder)
{
    enum ds_accel__bind mode = binder->request->mode;
    int32_t status = collect_nodes(binder);

    if (status >= 0) {
        status = binder->request->core_list != NULL ? take_list(binder) : take_machine(binder);
    }
    if (status >= 0) {
        status = collect_cores(binder);
    }
    if (status >= 0) {
        status = mode == DS_ACCEL__BIND_SHARE || mode == DS_ACCEL__BIND_EXCLUSIVE
                     ? ds_accel__binder_share(binder)
                     : ds_accel__binder_group(binder);
    }
    return status < 0 ? status : ds_accel__binder_place_memory(binder);
}

int32_t ds_accel__bind(const struct ds_accel__cpus *cpus, const struct ds_accel__topology *topology,
                       const struct ds_accel__bind_request *request,
                       struct ds_accel__placement *placements, struct ds_accel__text *notes)
{
    struct ds_accel__binder binder = {.cpus = cpus,
                                      .topology = topology,
                                      .request = request,
                                      .placements = placements,
                                      .notes = notes};
    int32_t status;

    assert(request->rank_count > 0);
    for (uint32_t rank = 0; rank < request->rank_count; rank++) {
        placements[rank] = (struct ds_accel__placement){0};
    }
    if (request->mode == DS_ACCEL__BIND_NONE) {
        return DS_ACCEL_OK;
    }
    status = place(&binder);
    for (uint32_t rank = 0; status < 0 && rank < request->rank_count; rank++) {
        ds_accel__placement_clear(&placements[rank]);
    }
    for (uint32_t i = 0; binder.node_cpus != NULL && i < topology->node_count; i++) {
        ds_accel__set_clear(&binder.node_cpus[i]);
    }
    free(binder.node_cpus);
    ds_accel__set_clear(&binder.usable);
    ds_accel__set_clear(&binder.cores);
    return status;
}
