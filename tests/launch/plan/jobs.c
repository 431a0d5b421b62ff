/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Jobs from a table, and their plans as short texts.
 *
 *     args         the command line: a text that is split at blanks, or an array
 *     hostfile     its text (none)
 *     machine      a machine of machines.json ("eight-cores")
 *     accelerator  ("cuda"); devices: their number (4), or an array of objects node, uuid, pci
 *     env          object: the environment
 *     local        the host names of this machine (["here"])
 *     executables  the files that are programs, not Python scripts ([])
 */
#include "launch.h"

static bool has_text(const json_t *array, const char *text)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (strcmp(json_string_value(json_array_get(array, i)), text) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_local(void *user_data, const char *host)
{
    const struct job *job = user_data;

    return strcmp(host, "localhost") == 0 ||
           (job->local_names != NULL ? has_text(job->local_names, host)
                                     : strcmp(host, "here") == 0);
}

static bool find_file(void *user_data, const char *path, bool *is_executable_out)
{
    const struct job *job = user_data;

    *is_executable_out = has_text(job->executables, path);
    return *is_executable_out;
}

/* ---- making --------------------------------------------------------------------------------- */

static uint32_t split_arguments(const json_t *args, const char **arguments)
{
    static char words[4096];
    uint32_t count = 0;

    for (size_t i = 0; i < json_array_size(args); i++) {
        arguments[count++] = json_string_value(json_array_get(args, i));
    }
    if (json_is_string(args)) {
        snprintf(words, sizeof(words), "%s", json_string_value(args));
        for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
            arguments[count++] = word;
        }
    }
    return count;
}

static void make_devices(const json_t *devices, struct job *job)
{
    size_t count = json_is_array(devices) ? json_array_size(devices)
                   : devices != NULL      ? (size_t)json_integer_value(devices)
                                          : 4;

    for (size_t i = 0; i < count; i++) {
        const json_t *device = json_array_get(devices, i);
        const json_t *node = json_object_get(device, "node");

        job->devices[i].node = node != NULL ? (int32_t)json_integer_value(node) : -1;
        ds_accel__copy(job->devices[i].uuid, sizeof(job->devices[i].uuid), member(device, "uuid"));
        ds_accel__copy(job->devices[i].pci_address, sizeof(job->devices[i].pci_address),
                       member(device, "pci"));
        job->devices[i].visible[0] = member(device, "visible");
    }
    job->facts.devices = job->devices;
    job->facts.device_count = (uint32_t)count;
}

static void make_environment(json_t *variables, struct job *job)
{
    size_t count = 0;
    const char *name;
    json_t *value;

    json_object_foreach(variables, name, value)
    {
        job->environment[count++] = ds_accel__join(name, '=', json_string_value(value));
    }
    job->facts.environment = (const char *const *)job->environment;
}

static int32_t read_job_machine(const json_t *description, struct job *job)
{
    const char *name = member(description, "machine");
    struct ds_accel__machine machine = {
        .root = "",
        .files = find_machine(name != NULL ? name : "eight-cores"),
    };
    int32_t status = ds_accel__cpus_read(&machine, &job->cpus);

    if (status >= 0) {
        status = ds_accel__topology_read(&machine, &job->topology);
    }
    job->facts.cpus = &job->cpus;
    job->facts.topology = &job->topology;
    return status;
}

int32_t make_job(const json_t *description, struct job *job)
{
    static const char *const visible[] = {"CUDA_VISIBLE_DEVICES"};
    json_t *environment = json_object_get(description, "env");
    const char *accelerator = member(description, "accelerator");
    uint32_t count;
    int32_t status;

    memset(job, 0, sizeof(*job));
    job->hostfile = member(description, "hostfile");
    job->local_names = json_object_get(description, "local");
    job->executables = json_object_get(description, "executables");
    job->facts.accelerator = accelerator != NULL ? accelerator : "cuda";
    job->facts.visible_names = visible;
    job->facts.visible_count = 1;
    job->facts.visible_value = member(environment, visible[0]);
    job->facts.visible_name = visible[0];
    job->facts.is_visible_read = json_object_get(description, "devices") != NULL;
    job->facts.directory = "/job";
    job->facts.python = "python3";
    job->facts.is_local = is_local;
    job->facts.find_file = find_file;
    job->facts.user_data = job;
    make_devices(json_object_get(description, "devices"), job);
    make_environment(environment, job);
    count = split_arguments(json_object_get(description, "args"), job->arguments);
    status = read_job_machine(description, job);
    return status < 0 ? status
                      : ds_accel__launch_options_parse(count, job->arguments, &job->options);
}

void clear_job(struct job *job)
{
    for (size_t i = 0; job->environment[i] != NULL; i++) {
        free(job->environment[i]);
    }
    ds_accel__cpus_clear(&job->cpus);
    ds_accel__topology_clear(&job->topology);
}

int32_t plan_job(struct job *job, struct ds_accel__text *notes, struct ds_accel__plan *plan)
{
    struct ds_accel__hosts hosts = {0};
    int32_t status = DS_ACCEL_OK;

    if (job->hostfile != NULL) {
        status = ds_accel__hostfile_parse("hostfile", job->hostfile, strlen(job->hostfile), &hosts);
    }
    if (status >= 0) {
        status = ds_accel__plan_make(&job->options, &job->facts,
                                     job->hostfile != NULL ? &hosts : NULL, notes, plan);
    }
    ds_accel__hosts_clear(&hosts);
    return status;
}

/* ---- describing ----------------------------------------------------------------------------- */

static json_t *take_text(struct ds_accel__text *text)
{
    json_t *value = json_string(text->data != NULL ? text->data : "");

    ds_accel__text_clear(text);
    return value;
}

static json_t *describe_hosts(const struct ds_accel__plan *plan)
{
    struct ds_accel__text text = {0};

    for (size_t i = 0; i < plan->hosts.count; i++) {
        const struct ds_accel__job_host *host = &plan->hosts.items[i];

        ds_accel__text_add(&text, "%s%s:", i > 0 ? " " : "", host->name);
        for (uint32_t j = 0; j < host->slot_count; j++) {
            ds_accel__text_add(&text, j > 0 ? "," : "");
            if (host->slots[j].token != NULL) {
                ds_accel__text_add(&text, "%s", host->slots[j].token);
            } else {
                ds_accel__text_add(&text, "%u", host->slots[j].index);
            }
        }
    }
    return take_text(&text);
}

static json_t *describe_local_ranks(const struct ds_accel__plan *plan)
{
    struct ds_accel__text text = {0};

    for (uint32_t i = 0; i < plan->world_size; i++) {
        ds_accel__text_add(&text, "%s%u", i > 0 ? " " : "", plan->ranks[i].local_rank);
    }
    return take_text(&text);
}

static json_t *describe_arguments(const struct ds_accel__plan *plan)
{
    struct ds_accel__text text = {0};

    for (uint32_t i = 0; i <= plan->argument_count; i++) {
        if (i == plan->local_rank_at) {
            ds_accel__text_add(&text, " --local_rank=L");
        }
        if (i < plan->argument_count) {
            ds_accel__text_add(&text, "%s%s", i > 0 ? " " : "", plan->arguments[i]);
        }
    }
    return take_text(&text);
}

/* The options of numactl that do the same. */
static json_t *describe_numactl(const struct ds_accel__placement *placement)
{
    struct ds_accel__text text = {0};

    if (placement->memory != DS_ACCEL__MEMORY_DEFAULT) {
        ds_accel__text_add(&text, placement->memory == DS_ACCEL__MEMORY_BIND ? "-m " : "-p ");
        ds_accel__set_write(&placement->nodes, &text);
    }
    if (placement->cpus.count > 0) {
        ds_accel__text_add(&text, "%s-C ", text.size_bytes > 0 ? " " : "");
        ds_accel__set_write(&placement->cpus, &text);
    }
    return take_text(&text);
}

static json_t *describe_set(const struct ds_accel__set *set)
{
    struct ds_accel__text text = {0};

    ds_accel__set_write(set, &text);
    return take_text(&text);
}

static void describe_placements(const struct ds_accel__plan *plan, json_t *answer)
{
    json_t *numactl = json_array();
    json_t *reserved = json_array();
    json_t *threads = json_array();

    for (uint32_t i = 0; i < plan->local_count; i++) {
        json_array_append_new(numactl, describe_numactl(&plan->placements[i]));
        json_array_append_new(reserved, describe_set(&plan->placements[i].reserved));
        json_array_append_new(threads, json_integer(plan->placements[i].thread_count));
    }
    json_object_set_new(answer, "numactl", numactl);
    json_object_set_new(answer, "reserved", reserved);
    json_object_set_new(answer, "threads", threads);
}

static bool add_variable(void *user_data, const char *name, const char *value)
{
    json_object_set_new(user_data, name, value != NULL ? json_string(value) : json_null());
    return true;
}

json_t *describe_plan(const struct ds_accel__plan *plan)
{
    json_t *answer = json_object();
    json_t *environment = json_object();
    uint32_t last = plan->world_size - 1;

    json_object_set_new(answer, "hosts", describe_hosts(plan));
    json_object_set_new(answer, "world_size", json_integer(plan->world_size));
    json_object_set_new(answer, "local_ranks", describe_local_ranks(plan));
    json_object_set_new(answer, "master_addr", json_string(plan->master_addr));
    json_object_set_new(answer, "ports", json_sprintf("%u-%u", plan->port_low, plan->port_high));
    json_object_set_new(answer, "argv", describe_arguments(plan));
    json_object_set_new(answer, "local",
                        json_sprintf("%u from %u", plan->local_count, plan->local_first));
    json_object_set_new(answer, "refusal",
                        plan->refusal != NULL ? json_string(plan->refusal) : json_null());
    ds_accel__plan_variables(plan, &plan->ranks[last], ds_accel__plan_port(plan), add_variable,
                             environment);
    json_object_set_new(answer, "last_env", environment);
    json_object_set(answer, "exports", plan->exports);
    describe_placements(plan, answer);
    return answer;
}

json_t *answer_job(const json_t *description)
{
    struct ds_accel__text notes = {0};
    struct ds_accel__plan plan = {0};
    struct job job;
    json_t *answer;
    int32_t status = make_job(description, &job);

    if (status >= 0) {
        status = plan_job(&job, &notes, &plan);
    }
    answer = status < 0 ? json_pack("{s:s}", "error", ds_accel_last_error()) : describe_plan(&plan);
    json_object_set_new(answer, "notes", take_text(&notes));
    ds_accel__plan_clear(&plan);
    clear_job(&job);
    return answer;
}

/* True if a table's value describes the answer's: the text of a message is a part of it, and null
 * is the value of an absent variable. */
static bool is_as_expected(const char *key, const json_t *value, const json_t *expected)
{
    bool is_message = strcmp(key, "error") == 0 || strcmp(key, "notes") == 0 ||
                      strcmp(key, "refusal") == 0;
    const char *name;
    json_t *part;

    if (json_is_object(expected)) {
        json_object_foreach((json_t *)expected, name, part)
        {
            const json_t *there = json_object_get(value, name);

            if (json_is_null(part) ? there != NULL && !json_is_null(there)
                                   : !json_equal(there, part)) {
                return false;
            }
        }
        return true;
    }
    if (is_message && json_is_string(expected) && json_string_length(expected) > 0) {
        return json_is_string(value) &&
               strstr(json_string_value(value), json_string_value(expected)) != NULL;
    }
    return json_equal(value, expected);
}

void check_answer(const char *name, const json_t *answer, const json_t *expected)
{
    const char *key;
    json_t *value;
    bool is_right = true;

    json_object_foreach((json_t *)expected, key, value)
    {
        is_right = is_right && is_as_expected(key, json_object_get(answer, key), value);
    }
    is_right = is_right && json_object_size(expected) > 0 &&
               (json_object_get(answer, "error") == NULL) ==
                   (json_object_get(expected, "error") == NULL);
    if (is_right) {
        check(name, true, "%s", "");
    } else {
        char *got = json_dumps(answer, 0);
        char *wanted = json_dumps(expected, 0);

        check(name, false, "\n  got      %s\n  expected %s", got, wanted);
        free(got);
        free(wanted);
    }
}
