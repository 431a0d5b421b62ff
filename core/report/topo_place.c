/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Adds to the report topo the member "plan": the ranks of a plan that are on this machine, with
 * their devices, and the machine's cores.
 *
 * A plan does not contain the names of devices but slots. A slot that is a number counts the
 * devices as the variable for visible devices does: if this process has the variable too, its
 * devices are those in the list, in this order; else the number is a device's index.
 */
#include "base/json.h"
#include "base/text.h"
#include "config/config.h"
#include "ds_accel_tools.h"
#include "host/context.h"
#include "machine/cpus.h"
#include "report/topo_plan.h"
#include "runtime/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UUID_PREFIX 4u /* shortest start of a UUID that selects a device */

/* ---- devices -------------------------------------------------------------------------------- */

/* The value of the variable that selects this process's devices; NULL: none is set. */
static const char *visible_list(const ds_accel_t *context, const json_t *tree)
{
    const json_t *accelerator = json_array_get(json_object_get(tree, "accelerators"), 0);
    const json_t *names = json_object_get(accelerator, "visible_devices_envs");

    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *value =
            ds_accel__context_variable(context, json_string_value(json_array_get(names, i)));

        if (value != NULL && value[0] != '\0') {
            return value;
        }
    }
    return NULL;
}

/* Does an item of the variable name the slot? */
static bool is_item(const json_t *slot, const char *item, size_t length)
{
    char number[24];
    const char *text = json_string_value(slot);

    if (text == NULL) {
        snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(slot));
        text = number;
    }
    return strlen(text) == length && strncasecmp(text, item, length) == 0;
}

/* The index of the slot's device: its position in the variable. -1: the variable, which hides the
 * devices behind an item "-1", does not have it. */
static json_int_t find_visible(const char *list, const json_t *slot)
{
    const char *item;
    size_t length;

    for (json_int_t i = 0; (item = ds_accel__list_next(&list, ',', &length)) != NULL; i++) {
        if (length == 2 && strncmp(item, "-1", length) == 0) {
            return -1;
        }
        if (is_item(slot, item, length)) {
            return i;
        }
    }
    return -1;
}

/* Find the device with a UUID, a start of one that no other device has, or a PCI address. */
static const json_t *find_token(const json_t *devices, const char *token)
{
    const json_t *found = NULL;
    size_t length = strlen(token);
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        const char *uuid = ds_accel__json_string(device, "uuid");

        if (strcasecmp(uuid, token) == 0 ||
            strcasecmp(ds_accel__json_string(device, "pci_address"), token) == 0) {
            return device;
        }
        if (length >= UUID_PREFIX && strncasecmp(uuid, token, length) == 0) {
            found = device;
            count++;
        }
    }
    return count == 1 ? found : NULL;
}

/* Find a slot's device; NULL: it is not among the devices of this process. */
static const json_t *find_device(const json_t *devices, const char *visible, const json_t *slot)
{
    json_int_t index = visible != NULL         ? find_visible(visible, slot)
                       : json_is_integer(slot) ? json_integer_value(slot)
                                               : -1;

    for (size_t i = 0; index >= 0 && i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);

        if (json_integer_value(json_object_get(device, "index")) == index) {
            return device;
        }
    }
    return json_is_string(slot) ? find_token(devices, json_string_value(slot)) : NULL;
}

/* ---- the report ----------------------------------------------------------------------------- */

static void set(json_t *object, const char *key, json_t *value, bool *failed)
{
    if (json_object_set_new(object, key, value) != 0) { /* also if value is NULL */
        *failed = true;
    }
}

/* Set a member to that of another object. */
static void copy(json_t *object, const char *key, const json_t *from, bool *failed)
{
    set(object, key, json_incref(json_object_get(from, key)), failed);
}

static void set_numbers(json_t *object, const char *key, const struct ds_accel__set *numbers,
                        bool *failed)
{
    struct ds_accel__text text = {0};

    ds_accel__set_write(numbers, &text);
    set(object, key, text.failed ? NULL : json_string(text.data != NULL ? text.data : ""), failed);
    ds_accel__text_clear(&text);
}

static json_t *rank_tree(const json_t *rank, json_t *slot, const json_t *device, bool *failed)
{
    json_t *tree = json_object();

    copy(tree, "rank", rank, failed);
    copy(tree, "local_rank", rank, failed);
    set(tree, "slot", json_incref(slot), failed);
    set(tree, "device",
        device != NULL ? json_string(ds_accel__json_string(device, "id")) : json_null(), failed);
    copy(tree, "cpus", rank, failed);
    copy(tree, "reserved_cpus", rank, failed);
    copy(tree, "mem_policy", rank, failed);
    copy(tree, "mem_nodes", rank, failed);
    return tree;
}

static json_t *ranks_tree(const struct ds_accel__topo_plan *plan, const json_t *devices,
                          const char *visible, bool *failed)
{
    const json_t *slots = json_object_get(json_array_get(plan->hosts, plan->host), "slots");
    json_t *array = json_array();

    for (size_t i = 0; i < json_array_size(plan->ranks) && !*failed; i++) {
        const json_t *rank = json_array_get(plan->ranks, i);
        json_t *slot;

        if (ds_accel__topo_plan_host(plan, rank) != plan->host) {
            continue;
        }
        slot =
            json_array_get(slots, (size_t)json_integer_value(json_object_get(rank, "local_rank")));
        *failed |= json_array_append_new(
                       array, rank_tree(rank, slot, find_device(devices, visible, slot), failed)) !=
                   0;
    }
    return array;
}

/* The tree of the core that begins with the CPU at a position; CPUs are sorted. */
static json_t *core_tree(const struct ds_accel__cpus *cpus, uint32_t first, const uint32_t *next,
                         bool *failed)
{
    struct ds_accel__set ids = {0};
    json_t *tree = json_object();

    for (uint32_t i = first; i < cpus->count; i = next[i]) {
        *failed |= ds_accel__set_add(&ids, cpus->items[i].id) < 0;
    }
    set(tree, "package", json_integer(cpus->items[first].package), failed);
    set(tree, "l3", json_integer(cpus->items[first].l3), failed);
    set_numbers(tree, "cpus", &ids, failed);
    ds_accel__set_clear(&ids);
    return tree;
}

/* The cores, sorted by their first CPU. */
static json_t *cores_tree(const struct ds_accel__cpus *cpus, bool *failed)
{
    uint32_t *next = malloc(cpus->count * sizeof(*next)); /* the core's next CPU; count: none */
    uint32_t *seen = malloc(DS_ACCEL__LIST_LIMIT * sizeof(*seen)); /* by core: its CPU seen last */
    json_t *array = json_array();

    if (next == NULL || seen == NULL) {
        *failed = true;
    } else {
        for (uint32_t i = 0; i < DS_ACCEL__LIST_LIMIT; i++) {
            seen[i] = cpus->count;
        }
        for (uint32_t i = cpus->count; i-- > 0;) {
            next[i] = seen[cpus->items[i].core];
            seen[cpus->items[i].core] = i;
        }
        for (uint32_t i = 0; i < cpus->count && !*failed; i++) {
            if (seen[cpus->items[i].core] == i) { /* no CPU of the core precedes it */
                *failed |= json_array_append_new(array, core_tree(cpus, i, next, failed)) != 0;
            }
        }
    }
    free(next);
    free(seen);
    return array;
}

static int32_t add_plan(const struct ds_accel__topo_plan *read, ds_accel_t *context, json_t *tree)
{
    const struct ds_accel__topology *topology;
    struct ds_accel__cpus cpus = {0};
    json_t *plan = json_object();
    bool failed = false;
    int32_t status = ds_accel__context_topology(context, &topology);

    status = status < 0 ? status : ds_accel__cpus_read(&context->machine, &cpus);
    status = status < 0 ? status : ds_accel__topo_plan_check(read, &cpus, topology);
    if (status >= 0) {
        copy(plan, "accelerator", read->root, &failed);
        copy(plan, "world_size", read->root, &failed);
        copy(plan, "host", json_array_get(read->hosts, read->host), &failed);
        set_numbers(plan, "allowed_cpus", &cpus.allowed, &failed);
        set(plan, "ranks",
            ranks_tree(read, json_object_get(tree, "devices"), visible_list(context, tree),
                       &failed),
            &failed);
        set(plan, "cores", cores_tree(&cpus, &failed), &failed);
        status = !failed && json_object_set(tree, "plan", plan) == 0 ? DS_ACCEL_OK
                                                                     : ds_accel__no_memory();
    }
    json_decref(plan);
    ds_accel__cpus_clear(&cpus);
    return status;
}

/* Make the report topo of the plan's accelerator, with the plan. */
static int32_t make_tree(const struct ds_accel__topo_plan *plan, ds_accel_t *context,
                         uint32_t format, json_t **tree_out)
{
    const char *name = ds_accel__json_string(plan->root, "accelerator");
    json_t *tree = NULL;
    int32_t status;

    pthread_mutex_lock(&context->config_lock);
    status = ds_accel__config_complete(&context->config, NULL);
    pthread_mutex_unlock(&context->config_lock);
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&context->lock);
    status = ds_accel__report_tree(context, DS_ACCEL_REPORT_TOPO, name, format, &tree);
    if (status == DS_ACCEL_ERR_NOT_FOUND) {
        char cause[256];

        ds_accel__copy(cause, sizeof(cause), ds_accel_last_error());
        status = ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: accelerator: %s", plan->source, cause);
    }
    status = status < 0 ? status : add_plan(plan, context, tree);
    pthread_mutex_unlock(&context->lock);
    if (status < 0) {
        json_decref(tree);
        return status;
    }
    *tree_out = tree;
    return DS_ACCEL_OK;
}

int32_t ds_accel_topo_plan(ds_accel_t *context, const char *source, const char *plan,
                           size_t size_bytes, uint32_t format, char **text_out)
{
    struct ds_accel__topo_plan read = {0};
    json_t *tree = NULL;
    int32_t status;

    if (context == NULL || source == NULL || plan == NULL || text_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "context, source, plan or text_out is NULL");
    }
    status = ds_accel__context_check(context);
    status = status < 0 ? status : ds_accel__topo_plan_read(source, plan, size_bytes, &read);
    status = status < 0 ? status : make_tree(&read, context, format, &tree);
    ds_accel__topo_plan_clear(&read);
    return status < 0 ? status
                      : ds_accel__report_write(DS_ACCEL_REPORT_TOPO, tree, format, text_out);
}
