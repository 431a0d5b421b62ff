/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Records a machine. The recorder probes every plugin (including plugins that are chosen only by
 * name, but excluding plugins whose devices sleep), starts each usable plugin once, makes the calls
 * that reports make, and stores every file of the machine that is read meanwhile. It also reads the
 * files that another configuration or a launcher would need: all PCI devices, all device nodes,
 * every network card, NUMA node and CPU.
 */
#include "base/file.h"
#include "base/fork.h"
#include "base/json.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/config.h"
#include "host/activate.h"
#include "host/context.h"
#include "host/evaluate.h"
#include "host/registry.h"
#include "machine/cpus.h"
#include "machine/machine.h"
#include "machine/topology.h"
#include "record/recording.h"
#include "report/report.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void set_text(json_t *object, const char *key, const char *text, bool *failed)
{
    ds_accel__json_set(object, key, ds_accel__json_text(text), failed);
}

static void set_number(json_t *object, const char *key, uint64_t number, bool *failed)
{
    ds_accel__json_set(object, key, json_integer((json_int_t)number), failed);
}

static void append(json_t *array, json_t *value, bool *failed)
{
    if (json_array_append_new(array, value) != 0) {
        *failed = true;
    }
}

/* ---- plugins -------------------------------------------------------------------------------- */

/* Compute the SHA-256 of the plugin's file. If the file can't be read, or the plugin did not pass
 * the gate note, hex is "", which no list of allowed hashes contains. */
static void hash_plugin(const struct ds_accel__candidate *candidate, char hex[65])
{
    const char *cause;
    struct stat info;
    int fd = -1;

    hex[0] = '\0';
    if (candidate->gates[DS_ACCEL__GATE_NOTE].result == DS_ACCEL__GATE_PASSED) {
        fd = open(candidate->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    }
    if (fd >= 0) {
        if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) ||
            ds_accel__trust_hash(fd, hex, &cause) < 0) {
            hex[0] = '\0';
        }
        close(fd);
    }
}

static json_t *gates_tree(const struct ds_accel__candidate *candidate, bool *failed)
{
    static const char *const results[] = {"skipped", "passed", "failed"};
    json_t *array = json_array();

    for (int gate = 0; gate < DS_ACCEL__GATE_COUNT; gate++) {
        json_t *tree = json_object();

        assert((size_t)candidate->gates[gate].result < ARRAY_SIZE(results));

        set_text(tree, "gate", ds_accel__gate_name(gate), failed);
        set_text(tree, "result", results[candidate->gates[gate].result], failed);
        set_text(tree, "evidence", candidate->gates[gate].evidence, failed);
        append(array, tree, failed);
    }
    return array;
}

static json_t *verdict_tree(const struct ds_accel_verdict *verdict, bool *failed)
{
    json_t *tree = json_object();

    set_number(tree, "state", verdict->state, failed);
    set_number(tree, "device_count", verdict->device_count, failed);
    set_number(tree, "reason", verdict->reason, failed);
    set_number(tree, "vendor_code", (uint64_t)verdict->vendor_code, failed);
    set_text(tree, "variant", verdict->variant, failed);
    set_text(tree, "detail", verdict->detail, failed);
    return tree;
}

static bool is_available(const struct ds_accel__candidate *candidate)
{
    return candidate->state == DS_ACCEL_STATE_AVAILABLE ||
           candidate->state == DS_ACCEL_STATE_SELECTED;
}

/* The plugin's findings before its start. Whether the plugin is selected is not recorded: a context
 * over the recording decides that again. */
static json_t *plugin_tree(const struct ds_accel__candidate *candidate, bool *failed)
{
    bool available = is_available(candidate);
    json_t *tree = json_object();
    char hex[65];

    hash_plugin(candidate, hex);
    set_text(tree, "name", candidate->name, failed);
    set_text(tree, "path", candidate->path, failed);
    ds_accel__json_set(tree, "is_registered", json_boolean(candidate->is_registered), failed);
    set_text(tree, "vendor", candidate->vendor, failed);
    set_text(tree, "version", candidate->version, failed);
    set_text(tree, "abi", candidate->abi, failed);
    set_number(tree, "note_required", candidate->note_features, failed);
    set_number(tree, "note_optional", candidate->note_optional, failed);
    set_number(tree, "optional_features", candidate->optional_features, failed);
    set_text(tree, "sha256", hex, failed);
    set_text(tree, "state", available ? "available" : ds_accel__state_name(candidate->state),
             failed);
    set_text(tree, "reason",
             ds_accel__reason_code(available ? DS_ACCEL__REASON_NONE : candidate->reason), failed);
    set_text(tree, "detail", available ? candidate->verdict.detail : candidate->detail, failed);
    set_text(tree, "stage", candidate->stage, failed);
    set_number(tree, "elapsed_us", candidate->elapsed_us, failed);
    set_number(tree, "strikes", candidate->strikes, failed);
    set_text(tree, "output", candidate->output, failed);
    ds_accel__json_set(tree, "has_conduct", json_boolean(candidate->has_conduct), failed);
    ds_accel__json_set(tree, "gates", gates_tree(candidate, failed), failed);
    ds_accel__json_set(tree, "verdict", verdict_tree(&candidate->verdict, failed), failed);
    return tree;
}

static json_t *start_tree(const struct ds_accel__candidate *candidate, int32_t status, bool *failed)
{
    json_t *tree = json_object();

    ds_accel__json_set(tree, "status", json_integer(status), failed);
    set_text(tree, "detail", status < 0 ? candidate->detail : "", failed);
    set_text(tree, "load", candidate->gates[DS_ACCEL__GATE_LOAD].evidence, failed);
    set_text(tree, "entry", candidate->gates[DS_ACCEL__GATE_ENTRY].evidence, failed);
    return tree;
}

/* If the plugin is available, start it unless it is running already, and add the findings of the
 * start and the results of its calls. Otherwise add null for both. */
static int32_t add_answers(ds_accel_t *context, struct ds_accel__candidate *candidate, json_t *tree,
                           bool *failed)
{
    ds_accel_plugin_instance_t *instance = candidate->instance;
    uint32_t count = context->device_count;
    json_t *answers = NULL;
    int32_t status = DS_ACCEL_OK;

    if (!is_available(candidate)) {
        ds_accel__json_set(tree, "start", json_null(), failed);
        ds_accel__json_set(tree, "answers", json_null(), failed);
        return DS_ACCEL_OK;
    }
    if (instance == NULL) {
        status = ds_accel__candidate_activate(candidate, &instance, &count);
    }
    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        return status;
    }
    ds_accel__json_set(tree, "start", start_tree(candidate, status, failed), failed);
    if (instance != NULL) {
        answers = ds_accel__answers_take(&candidate->table, instance, count);
        *failed = *failed || answers == NULL;
    }
    ds_accel__json_set(tree, "answers", answers != NULL ? answers : json_null(), failed);
    if (instance != NULL && instance != candidate->instance) {
        ds_accel__candidate_stop(candidate, instance);
    }
    return DS_ACCEL_OK;
}

/* If the plugin was skipped so far because it is only probed when chosen by name, probe it now. */
static int32_t ask_the_rest(struct ds_accel__candidate *candidate)
{
    bool is_left = candidate->state == DS_ACCEL_STATE_NOT_PROBED && candidate->is_demand_only &&
                   candidate->gates[DS_ACCEL__GATE_ALLOW].result == DS_ACCEL__GATE_PASSED;

    return is_left ? ds_accel__candidate_evaluate(candidate) : DS_ACCEL_OK;
}

static int32_t add_plugins(ds_accel_t *context, json_t *array, bool *failed)
{
    int32_t status = DS_ACCEL_OK;

    ds_accel__evaluation_begin(context);
    for (size_t i = 0; i < context->registry.count && status >= 0; i++) {
        struct ds_accel__candidate *candidate = context->registry.candidates[i];

        status = ask_the_rest(candidate);
        if (status >= 0) {
            json_t *tree = plugin_tree(candidate, failed);

            status = add_answers(context, candidate, tree, failed);
            append(array, tree, failed);
        }
    }
    ds_accel__evaluation_end(context);
    return status;
}

/* ---- configuration and environment ---------------------------------------------------------- */

static json_t *configuration_tree(ds_accel_t *context, bool *failed)
{
    const struct ds_accel__config *config = &context->config;
    json_t *array = json_array();

    for (size_t i = 0; i < config->file_count; i++) {
        json_t *tree = json_object();

        set_text(tree, "path", config->files[i].path, failed);
        set_text(tree, "layer", ds_accel__config_layer_name(config->files[i].layer), failed);
        set_text(tree, "text", config->files[i].text, failed);
        append(array, tree, failed);
    }
    return array;
}

static void add_variable(const ds_accel_t *context, json_t *tree, const char *name, bool *failed)
{
    const char *value = ds_accel__context_variable(context, name);

    if (name[0] != '\0') {
        ds_accel__json_set(tree, name, value != NULL ? ds_accel__json_text(value) : json_null(),
                           failed);
    }
}

static const char *text_at(const json_t *array, size_t i, const char *key)
{
    const json_t *item = json_array_get(array, i);
    const char *text = json_string_value(key != NULL ? json_object_get(item, key) : item);

    return text != NULL ? text : "";
}

/* DS_ACCELERATOR and the environment variables listed in the configuration and in the plugins'
 * environment rules, with their values. */
static json_t *environment_tree(const ds_accel_t *context, const json_t *plugins, bool *failed)
{
    json_t *backends = ds_accel__config_get(&context->config, "backends", NULL);
    json_t *tree = json_object();
    const char *backend;
    json_t *facts;

    add_variable(context, tree, "DS_ACCELERATOR", failed);
    json_object_foreach(backends, backend, facts)
    {
        const json_t *rules = json_object_get(facts, "env");
        const json_t *visible = json_object_get(facts, "visible_devices_envs");

        for (size_t i = 0; i < json_array_size(rules); i++) {
            add_variable(context, tree, text_at(rules, i, "name"), failed);
        }
        for (size_t i = 0; i < json_array_size(visible); i++) {
            add_variable(context, tree, text_at(visible, i, NULL), failed);
        }
    }
    for (size_t k = 0; k < json_array_size(plugins); k++) {
        const json_t *answers = json_object_get(json_array_get(plugins, k), "answers");
        const json_t *rules = json_object_get(answers, "env_rules");

        for (size_t i = 0; i < json_array_size(rules); i++) {
            add_variable(context, tree, text_at(rules, i, "name"), failed);
        }
    }
    return tree;
}

/* ---- the machine ---------------------------------------------------------------------------- */

static int32_t read_attributes(const struct ds_accel__machine *machine, const char *directory,
                               const char *name, const char *const *attributes)
{
    char path[512];
    char target[512];
    int32_t status = DS_ACCEL_OK;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    ds_accel__machine_link(machine, path, target, sizeof(target));
    for (; *attributes != NULL && status >= 0; attributes++) {
        char *text = NULL;

        snprintf(path, sizeof(path), "%s/%s/%s", directory, name, *attributes);
        status = ds_accel__machine_read(machine, path, &text);
        free(text);
    }
    return status;
}

/* Read every entry of a directory: the target of its link, and the files in it whose names
 * attributes lists. */
static int32_t read_directory(const struct ds_accel__machine *machine, const char *directory,
                              const char *const *attributes)
{
    char **names;
    size_t count;
    int32_t status = ds_accel__machine_list(machine, directory, &names, &count);

    for (size_t i = 0; i < count && status >= 0; i++) {
        status = read_attributes(machine, directory, names[i], attributes);
    }
    ds_accel__names_free(names, count);
    return status;
}

/* True for device nodes of terminals, disks and the like: there are hundreds, and none is an
 * accelerator. */
static bool is_common(const char *name)
{
    static const char *const starts[] = {"tty", "vcs", "loop", "ram", "pty", "ptyp", "sd", "nbd"};

    for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
        if (strncmp(name, starts[i], strlen(starts[i])) == 0) {
            return true;
        }
    }
    return false;
}

static int32_t read_nodes(const struct ds_accel__machine *machine, const char *directory)
{
    struct ds_accel__machine_node node;
    char path[512];
    char **names;
    size_t count;
    int32_t status = ds_accel__machine_list(machine, directory, &names, &count);

    for (size_t i = 0; i < count; i++) {
        if (!is_common(names[i])) {
            snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
            ds_accel__machine_node(machine, path, &node);
        }
    }
    ds_accel__names_free(names, count);
    return status;
}

/* Read the CPUs, on which the launcher places ranks. */
static int32_t read_cpus(const struct ds_accel__machine *machine)
{
    struct ds_accel__cpus cpus;
    int32_t status = ds_accel__cpus_read(machine, &cpus);

    if (status >= 0) {
        ds_accel__cpus_clear(&cpus);
    }
    return status;
}

/* Run the reports that read files about limits, NUMA nodes and network cards, so that these files
 * are recorded. */
static int32_t read_as_reports(ds_accel_t *context)
{
    struct ds_accel__topology topology;
    json_t *tree = NULL;
    int32_t status = ds_accel__topology_read(&context->machine, &topology);

    if (status < 0) {
        return status;
    }
    ds_accel__topology_clear(&topology);
    status = ds_accel__report_topo(context, "", &tree);
    json_decref(tree);
    tree = NULL;
    status = status < 0 ? status : ds_accel__report_doctor(context, &tree);
    json_decref(tree);
    return status;
}

static int32_t read_machine(ds_accel_t *context)
{
    static const char *const pci[] = {
        "vendor", "class", "device", "uevent", "numa_node", "power/runtime_status", NULL};
    static const char *const of_class[] = {"device/vendor", NULL};
    static const char *const directories[] = {"/dev", "/dev/dri", "/dev/accel", "/dev/infiniband"};
    const struct ds_accel__machine *machine = &context->machine;
    char *text = NULL;
    int32_t status = ds_accel__machine_read(machine, "/proc/bus/pci/devices", &text);

    free(text);
    status = status < 0 ? status : read_directory(machine, "/sys/bus/pci/devices", pci);
    status = status < 0 ? status : read_directory(machine, "/sys/class/drm", of_class);
    status = status < 0 ? status : read_directory(machine, "/sys/class/accel", of_class);
    for (size_t i = 0; i < ARRAY_SIZE(directories) && status >= 0; i++) {
        status = read_nodes(machine, directories[i]);
    }
    status = status < 0 ? status : read_cpus(machine);
    return status < 0 ? status : read_as_reports(context);
}

/* ---- the recording -------------------------------------------------------------------------- */

static json_t *recording_tree(ds_accel_t *context, json_t *files, json_t *plugins, bool *failed)
{
    json_t *tree = json_object();

    set_text(tree, "kind", DS_ACCEL__RECORDING_KIND, failed);
    ds_accel__json_set(tree, "format", json_integer(DS_ACCEL__RECORDING_FORMAT), failed);
    set_text(tree, "version", DS_ACCEL_VERSION, failed);
    ds_accel__json_set(tree, "who", ds_accel__who_tree(), failed);
    ds_accel__json_set(tree, "environment", environment_tree(context, plugins, failed), failed);
    ds_accel__json_set(tree, "searched", ds_accel__json_text(context->searched.data), failed);
    ds_accel__json_set(tree, "plugins", json_incref(plugins), failed);
    ds_accel__json_set(tree, "configuration", configuration_tree(context, failed), failed);
    ds_accel__json_set(tree, "files", json_incref(files), failed);
    return tree;
}

/* Record the machine. Caller holds context->lock, has installed the recorder, and has probed every
 * plugin except those that are chosen only by name. */
static int32_t record(ds_accel_t *context, json_t *files, json_t **tree_out)
{
    json_t *plugins = json_array();
    bool failed = plugins == NULL;
    int32_t status = ds_accel__context_load_origins(context);

    status = status < 0 ? status : ds_accel__context_load_ops(context);
    status = status < 0 ? status : add_plugins(context, plugins, &failed);
    status = status < 0 ? status : read_machine(context);
    if (status >= 0) {
        *tree_out = recording_tree(context, files, plugins, &failed);
        if (failed) {
            json_decref(*tree_out);
            *tree_out = NULL;
            status = ds_accel__no_memory();
        }
    }
    json_decref(plugins);
    return status;
}

static int32_t report_recording(ds_accel_t *context, json_t **tree_out)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER; /* one recording at a time */
    struct ds_accel__recorder recorder = {.files = NULL};
    int32_t status = ds_accel__context_check(context);

    if (status < 0) {
        return status;
    }
    recorder.files = json_object();
    if (recorder.files == NULL) {
        return ds_accel__no_memory();
    }
    /* A recorded machine is not recorded again: its recording is returned. */
    if (context->recording != NULL) {
        json_decref(recorder.files);
        *tree_out = json_incref(context->recording);
        return DS_ACCEL_OK;
    }
    pthread_mutex_init(&recorder.lock, NULL);
    ds_accel__fork_renew(&turn);
    pthread_mutex_lock(&turn);
    pthread_mutex_lock(&context->lock);
    ds_accel__context_change_begin(context); /* reads by other threads are not recorded */
    context->asks_anew = true;
    assert(context->machine.recorder == NULL); /* turn admits one recorder at a time */
    context->machine.recorder = &recorder;
    pthread_mutex_unlock(&context->lock);
    status = ds_accel__check(context, NULL, false);
    pthread_mutex_lock(&context->lock);
    status = status < 0 ? status : record(context, recorder.files, tree_out);
    assert(context->machine.recorder == &recorder);
    context->machine.recorder = NULL;
    ds_accel__context_change_end(context);
    pthread_mutex_unlock(&context->lock);
    pthread_mutex_unlock(&turn);
    if (status >= 0 && recorder.failed) {
        json_decref(*tree_out);
        *tree_out = NULL;
        status = ds_accel__no_memory();
    }
    pthread_mutex_destroy(&recorder.lock);
    json_decref(recorder.files);
    return status;
}

__attribute__((constructor)) static void set_recorder(void)
{
    ds_accel__report_recording = report_recording;
}
