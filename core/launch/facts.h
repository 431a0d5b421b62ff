/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What a plan needs to know of this machine and of its accelerator: facts.c. */
#ifndef DS_ACCEL_LAUNCH_FACTS_H
#define DS_ACCEL_LAUNCH_FACTS_H

#include "base/text.h"
#include "launch/plan.h"
#include "machine/cpus.h"

struct ds_accel_options;
struct ifaddrs;

/* The facts, and what they borrow from. {0} is empty. Release it with
 * ds_accel__known_facts_clear(). */
struct ds_accel__known_facts {
    struct ds_accel__launch_facts facts;
    ds_accel_t *context;
    struct ds_accel__cpus cpus;
    json_t *tree; /* what the plugin and the configuration say of the backend */
    const char **visible_names, **export_prefixes;
    struct ds_accel__device_fact *devices;
    struct ds_accel__job_variable *settings;
    char *visible_value, *directory, *python, *pod;
    char *handed_down[4];           /* values of settings that come from options; NULL: not given */
    struct ds_accel__text decision; /* the choice, for the ranks of this host; "": none */
    struct ds_accel__env_file env_files[DS_ACCEL__ENV_FILE_LIMIT];
    char host_name[256];
    struct ifaddrs *interfaces; /* of the network; NULL: not read yet */
};

/*
 * Choose the accelerator, and collect the facts for a plan. The choice starts no plugin in this
 * process; a plugin that must describe its devices runs in a child process. Removes variables from
 * this process's environment: DS_ACCEL_DECISION, and, if options or a hostfile choose the devices,
 * the variable that chooses them otherwise, which would hide devices of the job. Adds to notes what
 * the user should know. Returns an error of ds_accel_create() or ds_accel_detect(); ERR_NO_MEMORY.
 */
int32_t ds_accel__known_facts_read(const struct ds_accel_options *options,
                                   const struct ds_accel__launch_options *launch, bool has_hostfile,
                                   struct ds_accel__text *notes,
                                   struct ds_accel__known_facts *known);
void ds_accel__known_facts_clear(struct ds_accel__known_facts *known);

#endif
