/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Makes the plan of a job:
 *
 *      hostfile, or this machine's devices          hosts and their slots
 *        -> --include, --exclude, visible devices   fewer slots
 *        -> --num_nodes, --num_gpus                 fewer hosts, other slots
 *        -> ranks: by host, then by slot            RANK, LOCAL_RANK, ...
 *        -> bind.c                                  this machine's ranks on CPUs and NUMA nodes
 *        -> program                                 what each rank executes
 *
 * Everything that is not in the arguments comes from struct ds_accel__launch_facts, so that the
 * plan for a recorded machine is the plan of that machine. The rules are DeepSpeed's; differences
 * are listed in docs/launcher.md.
 */
#include "launch/plan.h"
#include "base/text.h"
#include "launch/exports.h"
#include "launch/planner.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOCAL_ADDRESS "127.0.0.1"
#define DEFAULT_PORT 29500

static int32_t invalid(const char *message)
{
    return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s", message);
}

/* A variable of the job's environment; NULL: unset. */
static const char *variable(const struct ds_accel__planner *planner, const char *name)
{
    size_t length = strlen(name);

    for (const char *const *entry = planner->facts->environment; *entry != NULL; entry++) {
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') {
            return *entry + length + 1;
        }
    }
    return NULL;
}

/* ---- options that exclude each other -------------------------------------------------------- */

static int32_t check_options(const struct ds_accel__planner *planner)
{
    const struct ds_accel__launch_options *options = planner->options;

    if ((options->num_nodes >= 0 || options->num_devices >= 0) && ds_accel__has_filter(options)) {
        return invalid("--num_nodes and --num_gpus exclude --include and --exclude");
    }
    if (options->elastic_training && !ds_accel__is_given(options->master_addr)) {
        return invalid("--elastic_training needs --master_addr");
    }
    if (options->elastic_training && options->no_local_rank) {
        return invalid("--elastic_training and --no_local_rank exclude each other");
    }
    if (options->bind != DS_ACCEL__BIND_NONE && variable(planner, "KMP_AFFINITY") != NULL) {
        return invalid("KMP_AFFINITY is set, and would bind threads to other CPUs than those that "
                       "--bind_cores_to_rank or --bind-to chooses: unset KMP_AFFINITY first");
    }
    return DS_ACCEL_OK;
}

/* Read "auto", "N" or "LO-HI". */
static int32_t read_port(struct ds_accel__planner *planner)
{
    const char *text = planner->options->master_port;
    unsigned long low;
    unsigned long high;
    char *end;

    planner->plan->port_low = planner->plan->port_high = DEFAULT_PORT;
    if (text == NULL) {
        return DS_ACCEL_OK;
    }
    if (strcmp(text, "auto") == 0) {
        planner->plan->port_low = 0;
        planner->plan->port_high = 0;
        return DS_ACCEL_OK;
    }
    low = strtoul(text, &end, 10);
    high = low;
    if (*end == '-' && end[1] >= '0' && end[1] <= '9') {
        high = strtoul(end + 1, &end, 10);
    }
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || low == 0 || high < low || high > 65535) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "--master_port \"%.40s\": expected auto, a port from 1 to 65535, or "
                               "a range of ports such as 29500-29599",
                               text);
    }
    planner->plan->port_low = (uint16_t)low;
    planner->plan->port_high = (uint16_t)high;
    return DS_ACCEL_OK;
}

uint16_t ds_accel__plan_port(const struct ds_accel__plan *plan)
{
    return plan->port_low == plan->port_high ? plan->port_low : 0;
}

/* ---- this machine --------------------------------------------------------------------------- */

static int32_t refuse(struct ds_accel__planner *planner, char *refusal)
{
    planner->plan->refusal = refusal;
    return refusal != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

/* The programs that start ranks on other hosts. */
static bool is_launcher(const char *name)
{
    static const char *const names[] = {"pdsh", "openmpi", "mvapich", "slurm", "mpich", "impi"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcasecmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Decide whether the plan can be started here. other: a host that is not this machine; twice: a
 * second name of this machine; NULL: there is none. */
static int32_t check_start(struct ds_accel__planner *planner, const char *other, const char *twice)
{
    const struct ds_accel__launch_options *options = planner->options;
    bool is_forced = options->force_multi && !options->no_ssh;

    planner->has_others = other != NULL || is_forced;
    if (planner->has_others && !is_launcher(options->launcher)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "--launcher \"%.40s\": expected one of pdsh, openmpi, mvapich, "
                               "slurm, mpich, impi",
                               options->launcher);
    }
    if (other != NULL) {
        return refuse(planner, ds_accel__format(
                                   "this job has ranks on host %s, and this release starts ranks "
                                   "on this machine only: start it on each host with --no_ssh and "
                                   "--node_rank, or show the plan with --dry-run",
                                   other));
    }
    if (twice != NULL) {
        return refuse(
            planner,
            ds_accel__format("%s and %s are both this machine: name it once, or start each "
                             "part of the job with --no_ssh and --node_rank",
                             planner->plan->hosts.items[planner->plan->local_host].name, twice));
    }
    if (is_forced || options->elastic_training) {
        return refuse(planner,
                      ds_accel__format("%s: this release starts ranks on this machine only",
                                       is_forced ? "--force_multi" : "--elastic_training"));
    }
    return DS_ACCEL_OK;
}

/* Say if the hostfile has more slots for this machine than there are devices. */
static void compare_slots(const struct ds_accel__planner *planner)
{
    const struct ds_accel__launch_facts *facts = planner->facts;
    const struct ds_accel__plan *plan = planner->plan;

    if (planner->has_hostfile && !ds_accel__planner_is_cpu(planner) &&
        plan->local_host != UINT32_MAX && facts->device_count > 0 &&
        plan->hosts.items[plan->local_host].slot_count > facts->device_count) {
        const struct ds_accel__job_host *host = &plan->hosts.items[plan->local_host];

        ds_accel__launch_note(planner->notes,
                              "host %s has %u slots, but %s has %u %s here: some ranks will have "
                              "no device of their own",
                              host->name, host->slot_count, facts->accelerator, facts->device_count,
                              facts->device_count == 1 ? "device" : "devices");
    }
}

/* Find this machine among the hosts. */
static int32_t find_here(struct ds_accel__planner *planner)
{
    const struct ds_accel__launch_options *options = planner->options;
    const struct ds_accel__launch_facts *facts = planner->facts;
    struct ds_accel__plan *plan = planner->plan;
    const struct ds_accel__hosts *hosts = &plan->hosts;
    const char *other = NULL;
    const char *twice = NULL;

    if (options->no_ssh && planner->has_hostfile) {
        if (options->node_rank < 0 || options->node_rank >= (int64_t)hosts->count) {
            return ds_accel__error(DS_ACCEL_ERR_INVALID,
                                   "--no_ssh needs --node_rank from 0 to %zu: the position of this "
                                   "machine among the hosts",
                                   hosts->count - 1);
        }
        if (hosts->count > 1 && ds_accel__plan_port(plan) == 0) {
            return ds_accel__error(DS_ACCEL_ERR_INVALID,
                                   "--master_port %.40s: with --no_ssh, each host is started by "
                                   "itself and cannot know which port another one chose: give all "
                                   "of them the same number",
                                   options->master_port);
        }
        plan->local_host = (uint32_t)options->node_rank;
        compare_slots(planner);
        return check_start(planner, NULL, NULL);
    }
    for (size_t i = 0; i < hosts->count; i++) {
        if (planner->has_hostfile && !facts->is_local(facts->user_data, hosts->items[i].name)) {
            other = other != NULL ? other : hosts->items[i].name;
        } else if (plan->local_host != UINT32_MAX) {
            twice = hosts->items[i].name;
        } else {
            plan->local_host = (uint32_t)i;
        }
    }
    compare_slots(planner);
    return check_start(planner, other, twice);
}

static int32_t choose_master(struct ds_accel__planner *planner)
{
    const char *given = planner->options->master_addr;
    const char *address = given;

    if (!planner->has_hostfile) {
        if (ds_accel__is_given(given) && strcmp(given, LOCAL_ADDRESS) != 0) {
            ds_accel__launch_note(planner->notes,
                                  "--master_addr %s is ignored: without a hostfile, the master "
                                  "is this machine",
                                  given);
        }
        address = LOCAL_ADDRESS;
    } else if (!ds_accel__is_given(given)) {
        address = planner->plan->hosts.items[0].name;
    }
    planner->plan->master_addr = strdup(address);
    return planner->plan->master_addr != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

/* ---- ranks ---------------------------------------------------------------------------------- */

static int32_t make_ranks(struct ds_accel__planner *planner)
{
    struct ds_accel__plan *plan = planner->plan;
    uint64_t count = 0;
    uint32_t next = 0;

    for (size_t i = 0; i < plan->hosts.count; i++) {
        count += plan->hosts.items[i].slot_count;
    }
    if (ds_accel__planner_check_count(count) < 0) {
        return DS_ACCEL_ERR_INVALID;
    }
    assert(count > 0);
    plan->ranks = calloc(count, sizeof(*plan->ranks));
    if (plan->ranks == NULL) {
        return ds_accel__no_memory();
    }
    plan->world_size = (uint32_t)count;
    for (uint32_t i = 0; i < plan->hosts.count; i++) {
        if (i == plan->local_host) {
            plan->local_first = next;
            plan->local_count = plan->hosts.items[i].slot_count;
        }
        for (uint32_t j = 0; j < plan->hosts.items[i].slot_count; j++) {
            plan->ranks[next] = (struct ds_accel__rank){.rank = next, .local_rank = j, .host = i};
            next++;
        }
    }
    return DS_ACCEL_OK;
}

/* The NUMA nodes of the local ranks' devices; -1: unknown. */
static void find_nodes(const struct ds_accel__planner *planner, int32_t *nodes)
{
    const struct ds_accel__plan *plan = planner->plan;
    const struct ds_accel__job_host *host = &plan->hosts.items[plan->local_host];

    for (uint32_t i = 0; i < host->slot_count; i++) {
        uint32_t device = host->slots[i].device;

        nodes[i] = device < planner->facts->device_count ? planner->facts->devices[device].node
                                                         : -1;
    }
}

/* The devices of the cpu plugin are NUMA nodes. An equal share of the cores does not depend on
 * them: a single rank gets all cores, as in DeepSpeed. */
static bool uses_nodes(const struct ds_accel__planner *planner)
{
    enum ds_accel__bind mode = planner->options->bind;

    return !ds_accel__planner_is_cpu(planner) ||
           (mode != DS_ACCEL__BIND_SHARE && mode != DS_ACCEL__BIND_EXCLUSIVE);
}

static int32_t place_ranks(struct ds_accel__planner *planner)
{
    const struct ds_accel__launch_options *options = planner->options;
    struct ds_accel__plan *plan = planner->plan;
    struct ds_accel__bind_request request = {
        .mode = options->bind,
        .core_list = options->bind_core_list,
        .uses_smt = options->uses_smt,
        .reserve_cores = options->reserve_cores,
        .reserve_percent = options->reserve_percent,
        .rank_count = plan->local_count,
    };
    int32_t *nodes;
    int32_t status;

    if (plan->local_count == 0) {
        return DS_ACCEL_OK;
    }
    nodes = calloc(plan->local_count, sizeof(*nodes));
    plan->placements = calloc(plan->local_count, sizeof(*plan->placements));
    if (nodes == NULL || plan->placements == NULL) {
        free(nodes);
        return ds_accel__no_memory();
    }
    find_nodes(planner, nodes);
    request.device_nodes = uses_nodes(planner) ? nodes : NULL;
    status = ds_accel__bind(planner->facts->cpus, planner->facts->topology, &request,
                            plan->placements, planner->notes);
    for (uint32_t i = 0; status >= 0 && i < plan->local_count; i++) {
        plan->ranks[plan->local_first + i].placement = &plan->placements[i];
    }
    free(nodes);
    return status;
}

/* ---- the program ---------------------------------------------------------------------------- */

/* How a program is started. */
enum way {
    EXECUTED,
    SCRIPT,
    MODULE
};

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);
    size_t end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static enum way choose_way(const struct ds_accel__planner *planner)
{
    const struct ds_accel__launch_options *options = planner->options;
    const struct ds_accel__launch_facts *facts = planner->facts;
    const char *name = options->program[0];
    bool is_executable = false;

    if (options->module) {
        return MODULE;
    }
    if (options->no_python) {
        return EXECUTED;
    }
    if (ends_with(name, ".py")) {
        return SCRIPT;
    }
    if (facts->find_file(facts->user_data, name, &is_executable)) {
        return is_executable ? EXECUTED : SCRIPT;
    }
    return EXECUTED; /* a command in PATH, or an error when it is started */
}

static int32_t choose_program(struct ds_accel__planner *planner)
{
    const struct ds_accel__launch_options *options = planner->options;
    struct ds_accel__plan *plan = planner->plan;
    enum way way = choose_way(planner);
    uint32_t count = 0;
    bool failed = false;

    plan->arguments = calloc(options->program_count + 4, sizeof(*plan->arguments));
    if (plan->arguments == NULL) {
        return ds_accel__no_memory();
    }
    if (way != EXECUTED) {
        plan->arguments[count++] = strdup(planner->facts->python);
        plan->arguments[count++] = strdup("-u");
        if (way == MODULE) {
            plan->arguments[count++] = strdup("-m");
        }
    }
    /* A program that was not named with --no_python need not know the argument. */
    plan->local_rank_at = options->no_local_rank || options->elastic_training ||
                                  (way == EXECUTED && !options->no_python)
                              ? UINT32_MAX
                              : count + 1;
    for (uint32_t i = 0; i < options->program_count; i++) {
        plan->arguments[count++] = strdup(options->program[i]);
    }
    plan->argument_count = count;
    for (uint32_t i = 0; i < count; i++) {
        failed |= plan->arguments[i] == NULL;
    }
    return failed ? ds_accel__no_memory() : DS_ACCEL_OK;
}

/* ---- the environment ------------------------------------------------------------------------ */

/*
 * Add what selects a slot's device in a variable. The plugin knows it: the numbers of the variable
 * are not those of the devices if one of these is divided, for example. If it says nothing, what
 * the user wrote in the variable itself counts, else the device's number.
 */
static void add_visible(const struct ds_accel__planner *planner, const struct ds_accel__slot *slot,
                        uint32_t which, struct ds_accel__text *text)
{
    const struct ds_accel__launch_facts *facts = planner->facts;
    bool is_known = slot->device < facts->device_count;
    const char *token = is_known ? facts->devices[slot->device].visible[which] : NULL;
    bool is_written = facts->visible_value != NULL &&
                      ds_accel__launch_uses_visible(planner->options, planner->has_hostfile);

    if (token == NULL) {
        token = !is_known || is_written ? slot->token : NULL;
    }
    if (token != NULL) {
        ds_accel__text_add(text, "%s", token);
    } else {
        ds_accel__text_add(text, "%u",
                           slot->index != DS_ACCEL__NO_INDEX ? slot->index : slot->device);
    }
}

/* The values of the variables that choose this machine's devices: all of them, for each rank. */
static int32_t make_visible(struct ds_accel__planner *planner)
{
    struct ds_accel__plan *plan = planner->plan;
    const struct ds_accel__job_host *host;
    bool failed = false;

    if (plan->local_count == 0) {
        return DS_ACCEL_OK;
    }
    host = &plan->hosts.items[plan->local_host];
    plan->visible_values = json_array();
    for (uint32_t i = 0; i < planner->facts->visible_count; i++) {
        struct ds_accel__text text = {0};

        for (uint32_t j = 0; j < host->slot_count; j++) {
            ds_accel__text_add(&text, "%s", j > 0 ? "," : "");
            add_visible(planner, &host->slots[j], i, &text);
        }
        failed = text.failed ||
                 json_array_append_new(plan->visible_values, json_string_nocheck(text.data)) != 0 ||
                 failed;
        ds_accel__text_clear(&text);
    }
    return failed || plan->visible_values == NULL ? ds_accel__no_memory() : DS_ACCEL_OK;
}

static int32_t copy_settings(struct ds_accel__planner *planner)
{
    const struct ds_accel__launch_facts *facts = planner->facts;
    struct ds_accel__plan *plan = planner->plan;
    bool failed = false;

    plan->settings = json_object();
    plan->visible_names = json_array();
    plan->exports = json_object();
    for (uint32_t i = 0; i < facts->setting_count; i++) {
        const struct ds_accel__job_variable *setting = &facts->settings[i];

        /* A value may be other than UTF-8. */
        failed |= json_object_set_new_nocheck(plan->settings, setting->name,
                                              setting->value != NULL
                                                  ? json_string_nocheck(setting->value)
                                                  : json_null()) != 0;
    }
    for (uint32_t i = 0; i < facts->visible_count; i++) {
        failed |=
            json_array_append_new(plan->visible_names, json_string(facts->visible_names[i])) != 0;
    }
    failed |= plan->settings == NULL || plan->visible_names == NULL || plan->exports == NULL;
    if (failed) {
        return ds_accel__no_memory();
    }
    if (make_visible(planner) < 0) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    return planner->has_others ? ds_accel__exports_make(facts, plan->exports) : DS_ACCEL_OK;
}

/* ---- all ------------------------------------------------------------------------------------ */

int32_t ds_accel__plan_make(const struct ds_accel__launch_options *options,
                            const struct ds_accel__launch_facts *facts,
                            struct ds_accel__hosts *hosts, struct ds_accel__text *notes,
                            struct ds_accel__plan *plan)
{
    static int32_t (*const steps[])(struct ds_accel__planner * planner) = {
        find_here, choose_master, make_ranks, place_ranks, choose_program, copy_settings,
    };
    struct ds_accel__planner planner = {.options = options,
                                        .facts = facts,
                                        .notes = notes,
                                        .plan = plan,
                                        .has_hostfile = hosts != NULL};
    int32_t status;

    assert(options->program_count > 0);
    *plan = (struct ds_accel__plan){.options = options, .local_host = UINT32_MAX};
    plan->accelerator = strdup(facts->accelerator);
    status = plan->accelerator != NULL ? check_options(&planner) : ds_accel__no_memory();
    if (status >= 0) {
        status = read_port(&planner);
    }
    if (status >= 0) {
        status = ds_accel__planner_choose_hosts(&planner, hosts);
    }
    for (size_t i = 0; i < ARRAY_SIZE(steps) && status >= 0; i++) {
        status = steps[i](&planner);
    }
    if (status < 0) {
        ds_accel__plan_clear(plan);
    }
    return status;
}

void ds_accel__plan_clear(struct ds_accel__plan *plan)
{
    for (uint32_t i = 0; plan->placements != NULL && i < plan->local_count; i++) {
        ds_accel__placement_clear(&plan->placements[i]);
    }
    for (uint32_t i = 0; plan->arguments != NULL && i < plan->argument_count; i++) {
        free(plan->arguments[i]);
    }
    ds_accel__hosts_clear(&plan->hosts);
    json_decref(plan->settings);
    json_decref(plan->visible_names);
    json_decref(plan->visible_values);
    json_decref(plan->exports);
    free(plan->placements);
    free(plan->arguments);
    free(plan->ranks);
    free(plan->accelerator);
    free(plan->master_addr);
    free(plan->refusal);
    memset(plan, 0, sizeof(*plan));
}
