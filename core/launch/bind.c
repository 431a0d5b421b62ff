/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Places the local ranks on CPUs and NUMA nodes.
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

struct binder {
    const struct ds_accel__cpus *cpus;
    const struct ds_accel__topology *topology;
    const struct ds_accel__bind_request *request;
    struct ds_accel__placement *placements;
    struct ds_accel__text *notes;
    struct ds_accel__set usable;     /* the CPUs that ranks may use */
    struct ds_accel__set cores;      /* the CPUs that represent the cores to distribute */
    struct ds_accel__set *node_cpus; /* [node_count]: the CPUs of each NUMA node */
    uint32_t all_count; /* cores of the machine or numbers of the list, whether or not usable */
};

static bool uses_smt(const struct binder *binder)
{
    return binder->request->uses_smt || binder->request->mode == DS_ACCEL__BIND_EXCLUSIVE;
}

/* Does each number of --bind_core_list count as a core? */
static bool counts_numbers(const struct binder *binder)
{
    const struct ds_accel__bind_request *request = binder->request;

    return request->core_list != NULL && request->mode == DS_ACCEL__BIND_SHARE &&
           !request->uses_smt && request->reserve_cores == 0 && request->reserve_percent == 0;
}

/* Add the cores of these CPUs. */
static int32_t add_cores_of(const struct binder *binder, const struct ds_accel__set *cpus,
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
static int32_t add_cpus_of(const struct binder *binder, const struct ds_accel__set *cores,
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
static int32_t check_list(const struct binder *binder, const struct ds_accel__set *list)
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
static int32_t take_list(struct binder *binder)
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
        status = uses_smt(binder) ? add_cpus_of(binder, &cores, &binder->usable)
                                  : ds_accel__set_add_all(&binder->usable, &list);
    }
    ds_accel__set_keep(&binder->usable, &binder->cpus->allowed);
    ds_accel__set_clear(&list);
    ds_accel__set_clear(&cores);
    return status;
}

/* All allowed CPUs are usable. */
static int32_t take_machine(struct binder *binder)
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
static int32_t collect_cores(struct binder *binder)
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

static int32_t collect_nodes(struct binder *binder)
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

/* The position of the node with an id, or of the first node with the same CPUs: fake nodes share
 * them. node_count: there is no such node. */
static uint32_t find_node(const struct binder *binder, int32_t id)
{
    uint32_t count = binder->topology->node_count;
    uint32_t at = 0;
    uint32_t first = 0;

    while (at < count && (int32_t)binder->topology->nodes[at].id != id) {
        at++;
    }
    while (at < count &&
           !ds_accel__set_is_equal(&binder->node_cpus[first], &binder->node_cpus[at])) {
        first++;
    }
    return at < count ? first : count;
}

static int32_t device_node(const struct binder *binder, uint32_t rank)
{
    return binder->request->device_nodes != NULL ? binder->request->device_nodes[rank] : -1;
}

/* ---- what a rank gets ----------------------------------------------------------------------- */

/* The number of cores to reserve of a rank's cores. A percentage is rounded up, and is at least one
 * core: a rank that has less than one core cannot reserve a part of it. */
static uint32_t count_reserved(const struct ds_accel__bind_request *request, uint32_t core_count)
{
    uint64_t part = ((uint64_t)core_count * request->reserve_percent + 99) / 100;

    if (request->reserve_percent == 0) {
        return request->reserve_cores;
    }
    return part > 0 ? (uint32_t)part : 1;
}

/* Add a core: its first usable CPU, or all of them. */
static int32_t add_core(const struct binder *binder, struct ds_accel__set *set, uint32_t id,
                        bool is_whole)
{
    uint32_t core = ds_accel__cpus_find(binder->cpus, id)->core;
    int32_t status = ds_accel__set_add(set, id);

    for (uint32_t i = 0; is_whole && status >= 0 && i < binder->usable.count; i++) {
        uint32_t other = binder->usable.items[i];

        if (ds_accel__cpus_find(binder->cpus, other)->core == core) {
            status = ds_accel__set_add(set, other);
        }
    }
    return status;
}

/* Give the rank count cores, the last of which it reserves. */
static int32_t give_cores(const struct binder *binder, uint32_t rank, const uint32_t *cores,
                          uint32_t count)
{
    struct ds_accel__placement *placement = &binder->placements[rank];
    uint32_t reserved = count_reserved(binder->request, count);
    int32_t status = DS_ACCEL_OK;

    if (reserved >= count) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "--reserve-cores: rank %u has %u %s, and %u would be reserved", rank,
                               count, count == 1 ? "core" : "cores", reserved);
    }
    for (uint32_t i = 0; status >= 0 && i < count; i++) {
        status = i < count - reserved
                     ? add_core(binder, &placement->cpus, cores[i], uses_smt(binder))
                     : add_core(binder, &placement->reserved, cores[i], true);
    }
    placement->thread_count = binder->request->uses_smt ? placement->cpus.count : count - reserved;
    return status;
}

/* ---- equal shares --------------------------------------------------------------------------- */

/* The cores of a node, and the ranks whose devices are near it. */
struct share {
    struct ds_accel__set cores;
    uint32_t rank_count, next;
};

/* Distribute the cores of each node to the ranks of its devices. *done_out is false if a device's
 * node is unknown, or a node has fewer cores than ranks. */
static int32_t share_by_node(struct binder *binder, struct share *shares, bool *done_out)
{
    uint32_t rank_count = binder->request->rank_count;
    uint32_t node_count = binder->topology->node_count;
    uint32_t count = UINT32_MAX;
    int32_t status = DS_ACCEL_OK;

    *done_out = false;
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        uint32_t node = find_node(binder, device_node(binder, rank));

        if (node == node_count) {
            return DS_ACCEL_OK;
        }
        shares[node].rank_count++;
    }
    for (uint32_t i = 0; i < node_count && status >= 0; i++) {
        status = ds_accel__set_add_all(&shares[i].cores, &binder->cores);
        ds_accel__set_keep(&shares[i].cores, &binder->node_cpus[i]);
        if (shares[i].rank_count > 0 && shares[i].cores.count / shares[i].rank_count < count) {
            count = shares[i].cores.count / shares[i].rank_count;
        }
    }
    if (status < 0 || count == 0) {
        return status;
    }
    for (uint32_t rank = 0; rank < rank_count && status >= 0; rank++) {
        struct share *share = &shares[find_node(binder, device_node(binder, rank))];

        status = give_cores(binder, rank, share->cores.items + share->next, count);
        share->next += count;
    }
    *done_out = true;
    return status;
}

/* Let all ranks share every usable core, because there are fewer cores than ranks. */
static int32_t share_all(struct binder *binder)
{
    const struct ds_accel__bind_request *request = binder->request;
    const struct ds_accel__set *cores = &binder->cores;
    int32_t status = DS_ACCEL_OK;

    if (request->reserve_cores > 0 || request->reserve_percent > 0) {
        return ds_accel__error(
            DS_ACCEL_ERR_INVALID, "--reserve-cores: %u ranks share %u %s, and none can be reserved",
            request->rank_count, cores->count, cores->count == 1 ? "core" : "cores");
    }
    ds_accel__text_add(binder->notes, "%u ranks share %u %s: this process may use only CPUs ",
                       request->rank_count, cores->count, cores->count == 1 ? "core" : "cores");
    ds_accel__set_write(&binder->cpus->allowed, binder->notes);
    ds_accel__text_add(binder->notes, "\n");
    for (uint32_t rank = 0; rank < request->rank_count; rank++) {
        for (uint32_t i = 0; i < cores->count && status >= 0; i++) {
            status = add_core(binder, &binder->placements[rank].cpus, cores->items[i],
                              request->uses_smt);
        }
        binder->placements[rank].thread_count = 1;
    }
    return status;
}

static int32_t too_few(const struct binder *binder, uint32_t core_count)
{
    return ds_accel__error(DS_ACCEL_ERR_INVALID,
                           "at least one core needs to be assigned to each rank: %u ranks, %u %s",
                           binder->request->rank_count, core_count,
                           core_count == 1 ? "core" : "cores");
}

static int32_t share_cores(struct binder *binder)
{
    uint32_t rank_count = binder->request->rank_count;
    uint32_t count = binder->cores.count / rank_count;
    struct share *shares;
    bool is_done = false;
    int32_t status;

    if (binder->all_count < rank_count) {
        return too_few(binder, binder->all_count);
    }
    if (count == 0) {
        return binder->request->mode == DS_ACCEL__BIND_EXCLUSIVE
                   ? too_few(binder, binder->cores.count)
                   : share_all(binder);
    }
    shares = calloc(binder->topology->node_count, sizeof(*shares));
    status = shares != NULL ? share_by_node(binder, shares, &is_done) : ds_accel__no_memory();
    for (uint32_t rank = 0; !is_done && status >= 0 && rank < rank_count; rank++) {
        status = give_cores(binder, rank, binder->cores.items + rank * count, count);
    }
    for (uint32_t i = 0; shares != NULL && i < binder->topology->node_count; i++) {
        ds_accel__set_clear(&shares[i].cores);
    }
    free(shares);
    return status;
}

/* ---- groups --------------------------------------------------------------------------------- */

/* CPUs that belong together, and the ranks on them. */
struct group {
    uint32_t key;
    uint32_t node; /* position of the NUMA node of the first CPU; node_count: unknown */
    struct ds_accel__set cores;
    uint32_t rank_count, next;
};

static uint32_t node_of(const struct binder *binder, uint32_t cpu)
{
    uint32_t i = 0;

    while (i < binder->topology->node_count && !ds_accel__set_has(&binder->node_cpus[i], cpu)) {
        i++;
    }
    return i;
}

static uint32_t key_of(const struct binder *binder, uint32_t id)
{
    const struct ds_accel__cpu *cpu = ds_accel__cpus_find(binder->cpus, id);

    switch (binder->request->mode) {
    case DS_ACCEL__BIND_NODE:
        return node_of(binder, id);
    case DS_ACCEL__BIND_SOCKET:
        return cpu->package;
    case DS_ACCEL__BIND_L3:
        return cpu->l3;
    default:
        return cpu->core;
    }
}

/* Sort the cores into groups, in the order of their first cores. */
static int32_t make_groups(const struct binder *binder, struct group *groups, uint32_t *count_out)
{
    uint32_t count = 0;
    int32_t status = DS_ACCEL_OK;

    for (uint32_t i = 0; i < binder->cores.count && status >= 0; i++) {
        uint32_t id = binder->cores.items[i];
        uint32_t key = key_of(binder, id);
        uint32_t at = 0;

        while (at < count && groups[at].key != key) {
            at++;
        }
        if (at == count) {
            groups[at].key = key;
            groups[at].node = node_of(binder, id);
            count++;
        }
        status = ds_accel__set_add(&groups[at].cores, id);
    }
    *count_out = count;
    return status;
}

/* The group with the fewest ranks, of those near a node; node_count: of all groups. UINT32_MAX: no
 * group is near the node. */
static uint32_t find_emptiest(const struct binder *binder, const struct group *groups,
                              uint32_t count, uint32_t node)
{
    uint32_t best = UINT32_MAX;

    for (uint32_t i = 0; i < count; i++) {
        if ((node == binder->topology->node_count || groups[i].node == node) &&
            (best == UINT32_MAX || groups[i].rank_count < groups[best].rank_count)) {
            best = i;
        }
    }
    return best;
}

/* Choose the emptiest group near the device of each rank; UINT32_MAX: there is none. Returns the
 * number of ranks that have a group. */
static uint32_t choose_near(const struct binder *binder, struct group *groups, uint32_t count,
                            uint32_t *chosen)
{
    uint32_t placed = 0;

    for (uint32_t rank = 0; rank < binder->request->rank_count; rank++) {
        uint32_t node = find_node(binder, device_node(binder, rank));

        chosen[rank] = node < binder->topology->node_count
                           ? find_emptiest(binder, groups, count, node)
                           : UINT32_MAX;
        if (chosen[rank] != UINT32_MAX) {
            groups[chosen[rank]].rank_count++;
            placed++;
        }
    }
    return placed;
}

/* Choose a group for each rank: near its device, if the device's node is known. The other ranks
 * fill the emptiest groups; if no node is known, neighbouring ranks get neighbouring groups. */
static void choose_groups(const struct binder *binder, struct group *groups, uint32_t count,
                          uint32_t *chosen)
{
    uint32_t rank_count = binder->request->rank_count;
    bool by_position = choose_near(binder, groups, count, chosen) == 0 &&
                       binder->request->mode != DS_ACCEL__BIND_CORE;

    for (uint32_t rank = 0; rank < rank_count; rank++) {
        if (chosen[rank] == UINT32_MAX) {
            chosen[rank] = by_position
                               ? (uint32_t)((uint64_t)rank * count / rank_count)
                               : find_emptiest(binder, groups, count, binder->topology->node_count);
            groups[chosen[rank]].rank_count++;
        }
    }
}

/* Give a rank all CPUs of its group, without the cores that the group's ranks reserve. */
static int32_t give_group(const struct binder *binder, struct group *group, uint32_t rank)
{
    struct ds_accel__placement *placement = &binder->placements[rank];
    bool is_whole = binder->request->mode != DS_ACCEL__BIND_CORE || binder->request->uses_smt;
    uint32_t share = group->cores.count / group->rank_count;
    uint32_t reserved = count_reserved(binder->request, share);
    uint32_t kept = group->cores.count - reserved * group->rank_count;
    int32_t status = DS_ACCEL_OK;

    if (reserved > 0 && reserved >= share) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "--reserve-cores: rank %u has a share of %u %s, and %u would be "
                               "reserved",
                               rank, share, share == 1 ? "core" : "cores", reserved);
    }
    for (uint32_t i = 0; i < kept && status >= 0; i++) {
        status = add_core(binder, &placement->cpus, group->cores.items[i], is_whole);
    }
    for (uint32_t i = 0; i < reserved && status >= 0; i++) {
        uint32_t at = kept + group->next * reserved + i;

        status = add_core(binder, &placement->reserved, group->cores.items[at], true);
    }
    group->next++;
    placement->thread_count = binder->request->uses_smt ? placement->cpus.count / group->rank_count
                                                        : share - reserved;
    if (placement->thread_count == 0) {
        placement->thread_count = 1; /* more ranks than cores */
    }
    return status;
}

/* Note what differs from the request. */
static void note_groups(const struct binder *binder, uint32_t count)
{
    uint32_t rank_count = binder->request->rank_count;
    bool has_l3 = false;

    for (uint32_t i = 0; i < binder->cpus->count; i++) {
        has_l3 |= binder->cpus->items[i].l3 != binder->cpus->items[i].core;
    }
    if (binder->request->mode == DS_ACCEL__BIND_L3 && !has_l3) {
        ds_accel__text_add(binder->notes, "this machine shows no level-3 cache that cores share: "
                                          "--bind-to l3 binds ranks to cores\n");
    }
    if (binder->request->mode == DS_ACCEL__BIND_CORE && count < rank_count) {
        ds_accel__text_add(binder->notes, "%u ranks share %u %s\n", rank_count, count,
                           count == 1 ? "core" : "cores");
    }
}

/* chosen: an array for the group of each rank. */
static int32_t fill_groups(struct binder *binder, struct group *groups, uint32_t *chosen)
{
    uint32_t rank_count = binder->request->rank_count;
    uint32_t count = 0;
    int32_t status = make_groups(binder, groups, &count);

    if (status >= 0) {
        choose_groups(binder, groups, count, chosen);
        note_groups(binder, count);
    }
    for (uint32_t rank = 0; rank < rank_count && status >= 0; rank++) {
        status = give_group(binder, &groups[chosen[rank]], rank);
    }
    for (uint32_t i = 0; i < count; i++) {
        ds_accel__set_clear(&groups[i].cores);
    }
    return status;
}

static int32_t place_in_groups(struct binder *binder)
{
    struct group *groups = calloc(binder->cores.count, sizeof(*groups));
    uint32_t *chosen = calloc(binder->request->rank_count, sizeof(*chosen));
    int32_t status = groups != NULL && chosen != NULL ? fill_groups(binder, groups, chosen)
                                                      : ds_accel__no_memory();

    free(groups);
    free(chosen);
    return status;
}

/* ---- memory --------------------------------------------------------------------------------- */

enum layout {
    NORMAL,
    FLAT_HBM, /* a node without CPUs for each node with CPUs */
    FAKE      /* adjacent nodes have the same CPUs */
};

static enum layout find_layout(const struct binder *binder)
{
    uint32_t empty = 0;
    bool is_fake = false;

    for (uint32_t i = 0; i < binder->topology->node_count; i++) {
        empty += binder->node_cpus[i].count == 0;
        is_fake |= i > 0 && binder->node_cpus[i].count > 0 &&
                   ds_accel__set_is_equal(&binder->node_cpus[i], &binder->node_cpus[i - 1]);
    }
    if (empty > 0 && 2 * empty == binder->topology->node_count) {
        return FLAT_HBM;
    }
    return is_fake ? FAKE : NORMAL;
}

/* The position of the k-th node without CPUs, where the node at a position is the k-th with CPUs.
 * */
static uint32_t find_pair(const struct binder *binder, uint32_t position)
{
    uint32_t k = 0;
    uint32_t i = 0;

    for (uint32_t j = 0; j < position; j++) {
        k += binder->node_cpus[j].count > 0;
    }
    while (binder->node_cpus[i].count > 0 || k-- > 0) {
        i++;
    }
    return i;
}

/* Add the nodes around a position that have the same CPUs. A node that is like none of its
 * neighbours adds nothing. */
static int32_t add_fake_group(const struct binder *binder, uint32_t position,
                              struct ds_accel__set *nodes)
{
    const struct ds_accel__set *same = &binder->node_cpus[position];
    uint32_t first = position;
    uint32_t last = position;
    int32_t status = DS_ACCEL_OK;

    while (first > 0 && ds_accel__set_is_equal(&binder->node_cpus[first - 1], same)) {
        first--;
    }
    while (last + 1 < binder->topology->node_count &&
           ds_accel__set_is_equal(&binder->node_cpus[last + 1], same)) {
        last++;
    }
    for (uint32_t i = first; last > first && i <= last && status >= 0; i++) {
        status = ds_accel__set_add(nodes, binder->topology->nodes[i].id);
    }
    return status;
}

/* Choose the memory of a rank by the first node that contains all its CPUs. */
static int32_t place_memory(const struct binder *binder, enum layout layout,
                            struct ds_accel__placement *placement, uint32_t *forbidden)
{
    const struct ds_accel__topology *topology = binder->topology;
    uint32_t i = 0;
    int32_t status;

    while (i < topology->node_count &&
           !ds_accel__set_has_all(&binder->node_cpus[i], &placement->cpus)) {
        i++;
    }
    if (i == topology->node_count || placement->cpus.count == 0) {
        return DS_ACCEL_OK;
    }
    placement->memory = layout == FLAT_HBM ? DS_ACCEL__MEMORY_PREFER : DS_ACCEL__MEMORY_BIND;
    status =
        layout == FAKE
            ? add_fake_group(binder, i, &placement->nodes)
            : ds_accel__set_add(&placement->nodes,
                                topology->nodes[layout == FLAT_HBM ? find_pair(binder, i) : i].id);
    if (placement->nodes.count > 0) {
        ds_accel__set_keep(&placement->nodes, &binder->cpus->allowed_nodes);
        *forbidden += placement->nodes.count == 0;
    }
    if (placement->nodes.count == 0) {
        placement->memory = DS_ACCEL__MEMORY_DEFAULT;
    }
    return status;
}

static int32_t place_all_memory(const struct binder *binder)
{
    enum layout layout = find_layout(binder);
    uint32_t forbidden = 0;
    int32_t status = DS_ACCEL_OK;

    for (uint32_t rank = 0; rank < binder->request->rank_count && status >= 0; rank++) {
        status = place_memory(binder, layout, &binder->placements[rank], &forbidden);
    }
    if (forbidden > 0) {
        ds_accel__text_add(binder->notes,
                           "%u %s no memory policy: this process may use only the memory of nodes ",
                           forbidden, forbidden == 1 ? "rank has" : "ranks have");
        ds_accel__set_write(&binder->cpus->allowed_nodes, binder->notes);
        ds_accel__text_add(binder->notes, "\n");
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

static int32_t place(struct binder *binder)
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
                     ? share_cores(binder)
                     : place_in_groups(binder);
    }
    return status < 0 ? status : place_all_memory(binder);
}

int32_t ds_accel__bind(const struct ds_accel__cpus *cpus, const struct ds_accel__topology *topology,
                       const struct ds_accel__bind_request *request,
                       struct ds_accel__placement *placements, struct ds_accel__text *notes)
{
    struct binder binder = {.cpus = cpus,
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
