/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The machine's CPUs: which hardware threads share a core, a level-3 cache and a socket, read from
 * /sys below a root, so that a recording yields the same results as the machine itself. A kernel in
 * a container, or of another architecture, may show only a part of this: a CPU without topology is
 * a core of its own in socket 0.
 */
#include "machine/cpus.h"
#include "base/text.h"
#include "machine/machine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPUS "/sys/devices/system/cpu"

/* Read the first number of a list such as "4-7,12"; fallback if there is no such file. */
static int32_t read_first(const struct ds_accel__machine *machine, const char *path,
                          uint32_t fallback, uint32_t *number_out)
{
    char line[64];
    int32_t status = ds_accel__machine_line(machine, path, line, sizeof(line));
    unsigned long number;
    char *end;

    *number_out = fallback;
    if (status < 0) {
        return status;
    }
    number = strtoul(line, &end, 10);
    if (end != line && line[0] != '-' && number < DS_ACCEL__LIST_LIMIT) {
        *number_out = (uint32_t)number;
    }
    return DS_ACCEL_OK;
}

/*
 * The number of a CPU's level-3 cache: that of the first CPU which shares it. Index 3 is read
 * first, because the level-3 cache is nearly always there, and each file costs five system calls.
 */
static int32_t read_l3(const struct ds_accel__machine *machine, uint32_t id, uint32_t fallback,
                       uint32_t *l3_out)
{
    static const unsigned indices[] = {3, 0, 1, 2, 4, 5, 6, 7};

    *l3_out = fallback;
    for (size_t i = 0; i < ARRAY_SIZE(indices); i++) {
        char path[96];
        uint32_t level;
        int32_t status;

        snprintf(path, sizeof(path), CPUS "/cpu%u/cache/index%u/level", id, indices[i]);
        status = read_first(machine, path, 0, &level);
        if (status < 0 || (level == 0 && i > 0)) {
            return status;
        }
        if (level == 3) {
            snprintf(path, sizeof(path), CPUS "/cpu%u/cache/index%u/shared_cpu_list", id,
                     indices[i]);
            return read_first(machine, path, fallback, l3_out);
        }
    }
    return DS_ACCEL_OK;
}

static int32_t read_cpu(const struct ds_accel__machine *machine, uint32_t id,
                        struct ds_accel__cpu *cpu)
{
    char path[96];
    int32_t status;

    cpu->id = id;
    snprintf(path, sizeof(path), CPUS "/cpu%u/topology/thread_siblings_list", id);
    status = read_first(machine, path, id, &cpu->core);
    if (status >= 0) {
        snprintf(path, sizeof(path), CPUS "/cpu%u/topology/physical_package_id", id);
        status = read_first(machine, path, 0, &cpu->package);
    }
    return status < 0 ? status : read_l3(machine, id, cpu->core, &cpu->l3);
}

/* Find a key's value in /proc/self/status: the text after "key:" and blanks; NULL: not there. */
static const char *find_value(const char *status, const char *key)
{
    size_t length = strlen(key);

    for (const char *line = status; *line != '\0'; line += strcspn(line, "\n")) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ':') {
            return line + length + 1 + strspn(line + length + 1, " \t");
        }
    }
    return NULL;
}

/* Read the list of a key in the status file into a set, without the numbers that all lacks. No such
 * key: the set is all. */
static int32_t read_allowed(const char *status, const char *key, const struct ds_accel__set *all,
                            struct ds_accel__set *set)
{
    const char *value = status != NULL ? find_value(status, key) : NULL;
    int32_t result = DS_ACCEL_OK;

    if (value != NULL) {
        result = ds_accel__set_add_list(set, value);
        ds_accel__set_keep(set, all);
    }
    if (result >= 0 && set->count == 0) {
        result = ds_accel__set_add_all(set, all);
    }
    return result;
}

static int32_t read_online(const struct ds_accel__machine *machine, const char *path,
                           struct ds_accel__set *online)
{
    char *text = NULL;
    int32_t status = ds_accel__machine_read(machine, path, &text);

    if (status >= 0 && text != NULL) {
        status = ds_accel__set_add_list(online, text);
    }
    free(text);
    if (status >= 0 && online->count == 0) {
        status = ds_accel__set_add(online, 0); /* a machine has at least one */
    }
    return status;
}

static int32_t read_restrictions(const struct ds_accel__machine *machine,
                                 const struct ds_accel__set *online, struct ds_accel__cpus *cpus)
{
    struct ds_accel__set nodes = {0};
    char *text = NULL;
    int32_t status = read_online(machine, "/sys/devices/system/node/online", &nodes);

    if (status >= 0) {
        status = ds_accel__machine_read(machine, "/proc/self/status", &text);
    }
    if (status >= 0) {
        status = read_allowed(text, "Cpus_allowed_list", online, &cpus->allowed);
    }
    if (status >= 0) {
        status = read_allowed(text, "Mems_allowed_list", &nodes, &cpus->allowed_nodes);
    }
    cpus->is_restricted = cpus->allowed.count < online->count;
    free(text);
    ds_accel__set_clear(&nodes);
    return status;
}

static int32_t read_cpus(const struct ds_accel__machine *machine,
                         const struct ds_accel__set *online, struct ds_accel__cpus *cpus)
{
    int32_t status = DS_ACCEL_OK;

    cpus->items = calloc(online->count, sizeof(*cpus->items));
    if (cpus->items == NULL) {
        return ds_accel__no_memory();
    }
    for (uint32_t i = 0; status >= 0 && i < online->count; i++) {
        status = read_cpu(machine, online->items[i], &cpus->items[i]);
        cpus->count = i + 1;
    }
    return status;
}

int32_t ds_accel__cpus_read(const struct ds_accel__machine *machine, struct ds_accel__cpus *cpus)
{
    struct ds_accel__set online = {0};
    int32_t status;

    memset(cpus, 0, sizeof(*cpus));
    status = read_online(machine, CPUS "/online", &online);
    if (status >= 0) {
        status = read_cpus(machine, &online, cpus);
    }
    if (status >= 0) {
        status = read_restrictions(machine, &online, cpus);
    }
    ds_accel__set_clear(&online);
    if (status < 0) {
        ds_accel__cpus_clear(cpus);
    }
    assert(status < 0 || cpus->allowed.count > 0);
    return status;
}

void ds_accel__cpus_clear(struct ds_accel__cpus *cpus)
{
    free(cpus->items);
    ds_accel__set_clear(&cpus->allowed);
    ds_accel__set_clear(&cpus->allowed_nodes);
    memset(cpus, 0, sizeof(*cpus));
}

const struct ds_accel__cpu *ds_accel__cpus_find(const struct ds_accel__cpus *cpus, uint32_t id)
{
    uint32_t low = 0;
    uint32_t high = cpus->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (cpus->items[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < cpus->count && cpus->items[low].id == id ? &cpus->items[low] : NULL;
}
