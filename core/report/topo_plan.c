/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reads a plan of ds-accel run for the report topo (conf/schema/run.json): checks the members that
 * the report uses, and that the machine has the plan's CPUs and NUMA nodes. Each error has the
 * place of the wrong value, the value, and what was expected.
 */
#include "report/topo_plan.h"
#include "base/json.h"
#include "base/text.h"
#include "machine/cpus.h"
#include "machine/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *host_name(const struct ds_accel__topo_plan *plan, size_t position)
{
    return ds_accel__json_string(json_array_get(plan->hosts, position), "host");
}

/* Fail with the place of a wrong value; value NULL: it is missing. */
static int32_t fail_value(const struct ds_accel__topo_plan *plan, const char *place,
                          const json_t *value, const char *expected)
{
    char *found = NULL;
    int32_t status;

    if (value != NULL) {
        found = ds_accel__json_dump(value, JSON_COMPACT | JSON_ENCODE_ANY);
        if (found == NULL) {
            return ds_accel__no_memory();
        }
    }
    status = ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: %s is %.60s%s; expected %s", plan->source,
                             place, found != NULL ? found : "missing",
                             found != NULL && strlen(found) > 60 ? "..." : "", expected);
    free(found);
    return status;
}

static int32_t fail_member(const struct ds_accel__topo_plan *plan, const char *array,
                           size_t position, const char *key, const char *expected)
{
    const json_t *item = json_array_get(json_object_get(plan->root, array), position);
    char place[80];

    snprintf(place, sizeof(place), "%s[%zu].%s", array, position, key);
    return fail_value(plan, place, json_object_get(item, key), expected);
}

/* ---- the plan's form ------------------------------------------------------------------------ */

static int32_t parse(struct ds_accel__topo_plan *plan, const char *text, size_t size_bytes)
{
    json_error_t error;

    if (size_bytes == 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "%s: there is no text; expected the output of ds-accel run "
                               "--dry-run --json",
                               plan->source);
    }
    if (memchr(text, '\0', size_bytes) != NULL) { /* jansson would accept it */
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: there is a NUL byte; expected JSON",
                               plan->source);
    }
    if (!ds_accel__json_has_headroom(size_bytes)) {
        return ds_accel__no_memory();
    }
    plan->root = json_loadb(text, size_bytes, 0, &error);
    if (plan->root == NULL && json_error_code(&error) == json_error_out_of_memory) {
        return ds_accel__no_memory();
    }
    if (plan->root == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "%s:%d:%d: %s; expected the output of ds-accel run --dry-run --json",
                               plan->source, error.line, error.column, error.text);
    }
    return DS_ACCEL_OK;
}

static int32_t check_head(struct ds_accel__topo_plan *plan)
{
    const json_t *version = json_object_get(plan->root, "schema_version");
    const json_t *accelerator = json_object_get(plan->root, "accelerator");
    const json_t *size = json_object_get(plan->root, "world_size");
    char expected[64];

    plan->hosts = json_object_get(plan->root, "hosts");
    plan->ranks = json_object_get(plan->root, "ranks");
    if (!json_is_object(plan->root)) {
        return fail_value(plan, "the plan", plan->root,
                          "an object, the output of ds-accel run --dry-run --json");
    }
    if (!json_is_integer(version) || json_integer_value(version) != 1) {
        return fail_value(plan, "schema_version", version,
                          "1, as ds-accel run --dry-run --json writes it");
    }
    if (!json_is_string(accelerator) ||
        !ds_accel__is_backend_name(json_string_value(accelerator))) {
        return fail_value(plan, "accelerator", accelerator, "the name of an accelerator");
    }
    if (json_array_size(plan->hosts) == 0) {
        return fail_value(plan, "hosts", plan->hosts, "an array of hosts");
    }
    if (json_array_size(plan->ranks) == 0) {
        return fail_value(plan, "ranks", plan->ranks, "an array of ranks");
    }
    if (!json_is_integer(size) ||
        json_integer_value(size) != (json_int_t)json_array_size(plan->ranks)) {
        snprintf(expected, sizeof(expected), "%zu, the number of ranks",
                 json_array_size(plan->ranks));
        return fail_value(plan, "world_size", size, expected);
    }
    return DS_ACCEL_OK;
}

static bool is_slot(const json_t *slot)
{
    return (json_is_integer(slot) && json_integer_value(slot) >= 0) ||
           (json_is_string(slot) && json_string_value(slot)[0] != '\0');
}

static int32_t check_host(struct ds_accel__topo_plan *plan, size_t position)
{
    const json_t *host = json_array_get(plan->hosts, position);
    const json_t *name = json_object_get(host, "host");
    const json_t *slots = json_object_get(host, "slots");

    if (!json_is_string(name) || json_string_value(name)[0] == '\0' ||
        json_object_get(plan->positions, json_string_value(name)) != NULL) {
        return fail_member(plan, "hosts", position, "host",
                           "the name of a host that is listed only once");
    }
    if (json_array_size(slots) == 0) {
        return fail_member(plan, "hosts", position, "slots", "an array of slots");
    }
    for (size_t i = 0; i < json_array_size(slots); i++) {
        if (!is_slot(json_array_get(slots, i))) {
            return fail_member(plan, "hosts", position, "slots",
                               "only indexes, UUIDs and PCI addresses");
        }
    }
    return json_object_set_new(plan->positions, json_string_value(name),
                               json_integer((json_int_t)position)) == 0
               ? DS_ACCEL_OK
               : ds_accel__no_memory();
}

/* Is the member null or a list of numbers? */
static bool is_list(const json_t *rank, const char *key)
{
    const json_t *list = json_object_get(rank, key);

    return json_is_null(list) ||
           (json_is_string(list) && ds_accel__list_count(json_string_value(list)) > 0);
}

size_t ds_accel__topo_plan_host(const struct ds_accel__topo_plan *plan, const json_t *rank)
{
    const json_t *position = json_object_get(plan->positions, ds_accel__json_string(rank, "host"));

    return position != NULL ? (size_t)json_integer_value(position) : json_array_size(plan->hosts);
}

static int32_t check_rank(const struct ds_accel__topo_plan *plan, size_t position)
{
    static const char *const lists[] = {"cpus", "reserved_cpus", "mem_nodes"};
    const json_t *rank = json_array_get(plan->ranks, position);
    const json_t *number = json_object_get(rank, "rank");
    const json_t *local = json_object_get(rank, "local_rank");
    const json_t *policy = json_object_get(rank, "mem_policy");
    size_t host = ds_accel__topo_plan_host(plan, rank);
    size_t slot_count =
        json_array_size(json_object_get(json_array_get(plan->hosts, host), "slots"));

    if (!json_is_integer(number) || json_integer_value(number) != (json_int_t)position) {
        return fail_member(plan, "ranks", position, "rank",
                           "its position, because ranks are listed in order");
    }
    if (host == json_array_size(plan->hosts)) {
        return fail_member(plan, "ranks", position, "host", "one of the plan's hosts");
    }
    if (!json_is_integer(local) || json_integer_value(local) < 0 ||
        json_integer_value(local) >= (json_int_t)slot_count) {
        return fail_member(plan, "ranks", position, "local_rank",
                           "the position of one of the host's slots");
    }
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        if (!is_list(rank, lists[i])) {
            return fail_member(plan, "ranks", position, lists[i],
                               "null, or a list of numbers such as \"0-3,8\"");
        }
    }
    if (!json_is_null(policy) && strcmp(ds_accel__json_string(rank, "mem_policy"), "bind") != 0 &&
        strcmp(ds_accel__json_string(rank, "mem_policy"), "prefer") != 0) {
        return fail_member(plan, "ranks", position, "mem_policy", "null, \"bind\" or \"prefer\"");
    }
    return DS_ACCEL_OK;
}

/* Find this machine among the hosts. */
static int32_t choose_host(struct ds_accel__topo_plan *plan)
{
    size_t host_count = json_array_size(plan->hosts);
    size_t found = host_count;

    for (size_t i = 0; i < json_array_size(plan->ranks); i++) {
        const json_t *rank = json_array_get(plan->ranks, i);
        size_t host = ds_accel__topo_plan_host(plan, rank);

        if (json_is_null(json_object_get(rank, "cpus")) || host == found) {
            continue;
        }
        if (found < host_count) {
            return ds_accel__error(DS_ACCEL_ERR_INVALID,
                                   "%s: ranks of the hosts %.80s and %.80s have \"cpus\"; expected "
                                   "bound ranks of one host, which is this machine",
                                   plan->source, host_name(plan, found), host_name(plan, host));
        }
        found = host;
    }
    if (found == host_count && host_count > 1) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "%s: there are %zu hosts, and which of them is this machine is not "
                               "known; expected one host, as with --include HOST, or ranks that "
                               "are bound, as with --bind_cores_to_rank",
                               plan->source, host_count);
    }
    plan->host = found < host_count ? found : 0;
    return DS_ACCEL_OK;
}

static int32_t read_plan(struct ds_accel__topo_plan *plan, const char *text, size_t size_bytes)
{
    int32_t status = parse(plan, text, size_bytes);

    status = status < 0 ? status : check_head(plan);
    for (size_t i = 0; status >= 0 && i < json_array_size(plan->hosts); i++) {
        status = check_host(plan, i);
    }
    for (size_t i = 0; status >= 0 && i < json_array_size(plan->ranks); i++) {
        status = check_rank(plan, i);
    }
    return status < 0 ? status : choose_host(plan);
}

int32_t ds_accel__topo_plan_read(const char *source, const char *text, size_t size_bytes,
                                 struct ds_accel__topo_plan *plan)
{
    int32_t status;

    *plan = (struct ds_accel__topo_plan){.source = source, .positions = json_object()};
    status = plan->positions != NULL ? read_plan(plan, text, size_bytes) : ds_accel__no_memory();
    if (status < 0) {
        ds_accel__topo_plan_clear(plan);
    }
    return status;
}

void ds_accel__topo_plan_clear(struct ds_accel__topo_plan *plan)
{
    json_decref(plan->root);
    json_decref(plan->positions);
    memset(plan, 0, sizeof(*plan));
}

/* ---- the machine ---------------------------------------------------------------------------- */

static void list_nodes(const struct ds_accel__topology *topology, struct ds_accel__set *nodes,
                       bool *failed)
{
    for (uint32_t i = 0; i < topology->node_count; i++) {
        *failed |= ds_accel__set_add(nodes, topology->nodes[i].id) < 0;
    }
}

static void list_cpus(const struct ds_accel__cpus *cpus, struct ds_accel__set *ids, bool *failed)
{
    for (uint32_t i = 0; i < cpus->count; i++) {
        *failed |= ds_accel__set_add(ids, cpus->items[i].id) < 0;
    }
}

/* Check that the machine has all numbers of a rank's list. what: "CPU" or "NUMA node". */
static int32_t check_numbers(const struct ds_accel__topo_plan *plan, size_t position,
                             const char *key, const char *what, const struct ds_accel__set *known)
{
    const json_t *rank = json_array_get(plan->ranks, position);
    struct ds_accel__text text = {0};
    struct ds_accel__set set = {0};
    int32_t status = ds_accel__set_add_list(&set, ds_accel__json_string(rank, key));

    for (uint32_t i = 0; status >= 0 && i < set.count; i++) {
        if (ds_accel__set_has(known, set.items[i])) {
            continue;
        }
        ds_accel__set_write(known, &text);
        status = text.failed
                     ? ds_accel__no_memory()
                     : ds_accel__error(DS_ACCEL_ERR_INVALID,
                                       "%s: ranks[%zu].%s is \"%.60s\", and this machine has no "
                                       "%s %u; expected numbers among %.200s: a plan for this "
                                       "machine, or for that of --machine or --root",
                                       plan->source, position, key,
                                       ds_accel__json_string(rank, key), what, set.items[i],
                                       text.data);
    }
    ds_accel__text_clear(&text);
    ds_accel__set_clear(&set);
    return status;
}

int32_t ds_accel__topo_plan_check(const struct ds_accel__topo_plan *plan,
                                  const struct ds_accel__cpus *cpus,
                                  const struct ds_accel__topology *topology)
{
    struct ds_accel__set nodes = {0};
    struct ds_accel__set ids = {0};
    bool failed = false;
    int32_t status;

    list_nodes(topology, &nodes, &failed);
    list_cpus(cpus, &ids, &failed);
    status = failed ? ds_accel__no_memory() : DS_ACCEL_OK;
    for (size_t i = 0; status >= 0 && i < json_array_size(plan->ranks); i++) {
        if (ds_accel__topo_plan_host(plan, json_array_get(plan->ranks, i)) != plan->host) {
            continue;
        }
        status = check_numbers(plan, i, "cpus", "CPU", &ids);
        status = status < 0 ? status : check_numbers(plan, i, "reserved_cpus", "CPU", &ids);
        status = status < 0 ? status : check_numbers(plan, i, "mem_nodes", "NUMA node", &nodes);
    }
    ds_accel__set_clear(&nodes);
    ds_accel__set_clear(&ids);
    return status;
}
