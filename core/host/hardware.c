/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The gate hardware. A plugin's second note lists its hardware in lines such as "pci 10de:03" and
 * "node /dev/nvidiactl". If the machine has none of it, the plugin would report "no device", too,
 * so it is not loaded: most machines have the hardware of one vendor and the plugins of all
 * vendors.
 */
#include "host/hardware.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/config.h"
#include "config/env.h"
#include "host/context.h"
#include "host/registry.h"
#include "machine/hardware_note.h"
#include "machine/machine.h"
#include "machine/presence.h"

#include <stdio.h>
#include <unistd.h>

/* ---- gate ----------------------------------------------------------------------------------- */

/*
 * True if the option "presence", as the plugin would read it, allows the host to search for the
 * hardware.
 */
static bool may_look(const struct ds_accel__candidate *candidate)
{
    ds_accel_t *context = candidate->host.context;
    const char *text = ds_accel__env_option(&context->env, candidate->name, "presence");
    const json_t *option;

    if (text != NULL) {
        return strcmp(text, "on") == 0;
    }
    option = ds_accel__config_get(&context->config, "backends", candidate->name, "options",
                                  "presence", NULL);
    return option == NULL || json_is_null(option) ||
           (json_is_string(option) && strcmp(json_string_value(option), "on") == 0);
}

bool ds_accel__hardware_is_configured(const struct ds_accel__candidate *candidate)
{
    return ds_accel__hardware_note_is_in(
        candidate->hardware_note,
        ds_accel__config_facts(&candidate->host.context->config, candidate->name));
}

/* Describe the absence: "no PCI device 1002:03 or 1002:12 and no /dev/kfd". */
static void tell_absence(json_t *facts, struct ds_accel__finding *finding)
{
    json_t *pci = json_object_get(facts, "pci");
    const char *node = json_string_value(json_array_get(json_object_get(facts, "device_nodes"), 0));
    char ids[128] = "";
    size_t at = 0;

    for (size_t i = 0; i < json_array_size(pci) && at < sizeof(ids); i++) {
        at += (size_t)snprintf(ids + at, sizeof(ids) - at, "%s%s", i > 0 ? " or " : "PCI device ",
                               json_string_value(json_array_get(pci, i)));
    }
    ds_accel__finding_set(finding, DS_ACCEL__REASON_NO_DEVICE, "no %s%s%s", ids,
                          at > 0 && node != NULL ? " and no " : "", node != NULL ? node : "");
}

/*
 * Return the path of the PCI bus if this process may not read it, else the directory of the first
 * device node to which this process is denied access; NULL if there is neither.
 */
static const char *find_closed(const struct ds_accel__machine *machine, json_t *facts,
                               char *directory, size_t directory_size)
{
    json_t *nodes = json_object_get(facts, "device_nodes");
    bool has_pci = json_array_size(json_object_get(facts, "pci")) > 0;

    if (has_pci && ds_accel__machine_is_closed(machine, DS_ACCEL__PCI_BUS, R_OK | X_OK)) {
        return DS_ACCEL__PCI_BUS;
    }
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const char *node = json_string_value(json_array_get(nodes, i));
        bool has_wildcards = strpbrk(node, "*?[\\") != NULL;

        /*
         * Skip a node in a directory that vendors share: it does not show the vendor, but the PCI
         * bus, which this process may read, does.
         */
        if (has_pci && ds_accel__node_class(node) != NULL) {
            continue;
        }
        snprintf(directory, directory_size, "%.*s", (int)(strrchr(node, '/') - node), node);
        if (has_wildcards ? ds_accel__machine_is_closed(machine, directory, R_OK | X_OK)
                          : ds_accel__machine_is_closed(machine, node, F_OK)) {
            return directory;
        }
    }
    return NULL;
}

static void judge(struct ds_accel__candidate *candidate, json_t *facts,
                  const struct ds_accel__presence *presence)
{
    struct ds_accel__finding finding = {0};
    char directory[128];
    const char *closed;

    if (presence->device_count > 0) {
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_HARDWARE, "PCI device %s",
                                 presence->devices[0].address);
    } else if (presence->node_count > 0) {
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_HARDWARE, "%s", presence->nodes[0].path);
    } else if (candidate->has_hardware) { /* the configuration's list, not the note's, matches */
        return;
    } else if ((closed = find_closed(candidate->host.context->survey.machine, facts, directory,
                                     sizeof(directory))) != NULL) {
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_HARDWARE, "no permission to read %s",
                                 closed);
    } else {
        tell_absence(facts, &finding);
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_HARDWARE, DS_ACCEL_STATE_UNAVAILABLE,
                                 &finding);
        candidate->verdict = (struct ds_accel_verdict){.struct_size = sizeof(candidate->verdict),
                                                       .state = DS_ACCEL_PROBE_UNAVAILABLE,
                                                       .reason = DS_ACCEL_REASON_NO_DEVICE};
        ds_accel__copy(candidate->verdict.detail, sizeof(candidate->verdict.detail),
                       finding.detail);
    }
}

int32_t ds_accel__hardware_check(struct ds_accel__candidate *candidate)
{
    struct ds_accel__presence presence;
    json_t *facts;
    int32_t status;

    if (candidate->hardware_note == NULL || candidate->hardware_note[0] == '\0' ||
        !may_look(candidate)) {
        return DS_ACCEL_OK;
    }
    status = ds_accel__hardware_read_note(candidate->hardware_note, &facts);
    if (status < 0 || facts == NULL) {
        return status;
    }
    status = ds_accel__presence_read(&candidate->host.context->survey, facts, &presence);
    if (status >= 0) {
        judge(candidate, facts, &presence);
        ds_accel__presence_clear(&presence);
    }
    json_decref(facts);
    return status;
}
