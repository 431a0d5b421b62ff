/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The hosts of a plan, and their slots: those of the hostfile, or this machine's devices, without
 * what the options leave out.
 */
#include "base/pci.h"
#include "base/text.h"
#include "launch/planner.h"

#include <string.h>

#define LOCAL_NAME "localhost"

/* Find this machine's device with a UUID, or a start of one that only one device has, or a PCI
 * address. */
static int32_t find_slot(void *user_data, const struct ds_accel__job_host *host, const char *token,
                         uint32_t *index_out)
{
    const struct ds_accel__planner *planner = user_data;
    const struct ds_accel__launch_facts *facts = planner->facts;
    size_t length = strlen(token);
    uint32_t found = 0;

    if (planner->has_hostfile && !facts->is_local(facts->user_data, host->name)) {
        *index_out = DS_ACCEL__NO_INDEX; /* the host itself will find it */
        return DS_ACCEL_OK;
    }
    for (uint32_t i = 0; i < facts->device_count; i++) {
        const struct ds_accel__device_fact *device = &facts->devices[i];

        if (ds_accel__pci_is_same(device->pci_address, token) ||
            strcasecmp(device->uuid, token) == 0) {
            *index_out = i;
            return DS_ACCEL_OK;
        }
        if (length >= 4 && strncasecmp(device->uuid, token, length) == 0) {
            *index_out = i;
            found++;
        }
    }
    if (found == 1) {
        return DS_ACCEL_OK;
    }
    return ds_accel__error(DS_ACCEL_ERR_INVALID, "host %s has %s device \"%.80s\"", host->name,
                           found == 0 ? "no" : "more than one", token);
}

bool ds_accel__launch_uses_visible(const struct ds_accel__launch_options *options,
                                   bool has_hostfile)
{
    return !has_hostfile && !ds_accel__has_filter(options) && options->num_nodes <= 1 &&
           options->num_devices <= 0;
}

/* Make this machine's slots from the value of the variable that chooses devices. */
static int32_t take_visible(const struct ds_accel__planner *planner,
                            struct ds_accel__job_host *host)
{
    const char *list = planner->facts->visible_value;
    const char *item;
    size_t length;
    int32_t status = DS_ACCEL_OK;

    ds_accel__host_clear_slots(host);
    for (uint32_t i = 0; status >= 0 && (item = ds_accel__list_next(&list, ',', &length)) != NULL;
         i++) {
        struct ds_accel__slot slot;

        ds_accel__trim(&item, &length);
        if (!ds_accel__slot_parse(item, length, &slot) || slot.index == DS_ACCEL__LAST_INDEX) {
            return ds_accel__error(DS_ACCEL_ERR_INVALID,
                                   "%s=%.200s: \"%.*s\" is not an index, a UUID or a PCI address",
                                   planner->facts->visible_name, planner->facts->visible_value,
                                   (int)(length < 80 ? length : 80), item);
        }
        slot.device = i;
        status = ds_accel__host_add_slot(host, &slot, length);
    }
    if (status >= 0 && host->slot_count == 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s=%.200s selects no device",
                               planner->facts->visible_name, planner->facts->visible_value);
    }
    if (status >= 0) {
        status = ds_accel__host_sort_slots(host);
    }
    if (status >= 0 && planner->facts->is_visible_read &&
        host->slot_count > planner->facts->device_count) {
        status = ds_accel__error(
            DS_ACCEL_ERR_INVALID, "%s=%.200s names %u devices, but %s has only %u of them",
            planner->facts->visible_name, planner->facts->visible_value, host->slot_count,
            planner->facts->accelerator, planner->facts->device_count);
    }
    return status;
}

/* This machine as the only host. */
static int32_t make_local(struct ds_accel__planner *planner)
{
    const struct ds_accel__launch_facts *facts = planner->facts;
    struct ds_accel__hosts *hosts = &planner->plan->hosts;
    bool is_set = facts->visible_value != NULL && facts->visible_value[0] != '\0';
    int32_t status;

    if (planner->options->num_nodes > 1) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "--num_nodes %lld, and there is no hostfile with other hosts",
                               (long long)planner->options->num_nodes);
    }
    if (facts->device_count == 0) {
        return ds_accel__error(DS_ACCEL_ERR_NO_DEVICE, "%s has no device", facts->accelerator);
    }
    status = ds_accel__hosts_add(hosts, LOCAL_NAME, strlen(LOCAL_NAME), facts->device_count);
    if (status >= 0 && is_set && ds_accel__launch_uses_visible(planner->options, false)) {
        status = take_visible(planner, &hosts->items[0]);
    } else if (status >= 0 && is_set) {
        ds_accel__launch_note(planner->notes,
                              "%s=%.200s is ignored, because options choose the devices",
                              facts->visible_name, facts->visible_value);
    }
    return status;
}

/* Check --num_gpus before slots are made for it. */
static int32_t check_devices(const struct ds_accel__planner *planner)
{
    const struct ds_accel__hosts *hosts = &planner->plan->hosts;
    int64_t count = planner->options->num_devices;

    if (count > (int64_t)DS_ACCEL__SLOT_LIMIT) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "--num_gpus %lld: a host has at most %u slots",
                               (long long)count, DS_ACCEL__SLOT_LIMIT);
    }
    for (size_t i = 0; !ds_accel__planner_is_cpu(planner) && i < hosts->count;
         i++) { /* CPUs can be shared */
        const struct ds_accel__job_host *host = &hosts->items[i];

        if (count > (int64_t)host->slot_count) {
            return ds_accel__error(DS_ACCEL_ERR_INVALID, "--num_gpus %lld: host %s has %u %s",
                                   (long long)count, host->name, host->slot_count,
                                   host->slot_count == 1 ? "slot" : "slots");
        }
    }
    return count > 0 ? ds_accel__planner_check_count((uint64_t)count * hosts->count) : DS_ACCEL_OK;
}

/* --num_nodes keeps the first hosts; --num_gpus replaces the slots of each host by 0 to N - 1. */
static int32_t apply_numbers(struct ds_accel__planner *planner)
{
    const struct ds_accel__launch_options *options = planner->options;
    struct ds_accel__hosts *hosts = &planner->plan->hosts;
    int32_t status;

    ds_accel__hosts_compact(hosts); /* lines "HOST slots=0" */
    if (options->num_nodes > (int64_t)hosts->count) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "--num_nodes %lld: there are only %zu hosts",
                               (long long)options->num_nodes, hosts->count);
    }
    for (size_t i = 0; options->num_nodes > 0 && i < hosts->count; i++) {
        if ((int64_t)i >= options->num_nodes) {
            ds_accel__host_clear_slots(&hosts->items[i]);
        }
    }
    ds_accel__hosts_compact(hosts);
    status = check_devices(planner);
    for (size_t i = 0; options->num_devices > 0 && status >= 0 && i < hosts->count; i++) {
        status = ds_accel__host_set_slots(&hosts->items[i], (uint32_t)options->num_devices);
    }
    return status;
}

int32_t ds_accel__planner_choose_hosts(struct ds_accel__planner *planner,
                                       struct ds_accel__hosts *hosts)
{
    const struct ds_accel__launch_options *options = planner->options;
    int32_t status = DS_ACCEL_OK;

    if (hosts != NULL) {
        planner->plan->hosts = *hosts;
        *hosts = (struct ds_accel__hosts){0};
    } else {
        status = make_local(planner);
    }
    if (status >= 0) {
        status = ds_accel__hosts_filter(&planner->plan->hosts, options->include, options->exclude,
                                        find_slot, planner);
    }
    if (status >= 0) {
        status = apply_numbers(planner);
    }
    if (status >= 0 && planner->plan->hosts.count == 0) {
        status = ds_accel__error(DS_ACCEL_ERR_INVALID, "no host has a slot");
    }
    return status;
}
