/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reads a recorded machine. The file is checked as a whole before any of it is used, so that later
 * code can trust its shape; a file that is truncated, of another format or of another kind is
 * rejected with its name and the error.
 *
 * The recorded findings about a plugin's file, quarantine and process are reused unchanged;
 * decisions that depend on the configuration (lists, hashes, order, override, demand) are made
 * again. No code of a plugin runs.
 */
#include "record/recording.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/config.h"
#include "config/env.h"
#include "host/context.h"
#include "host/hooks.h"
#include "host/registry.h"
#include "host/start.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FILE_LIMIT_BYTES ((size_t)64 * 1024 * 1024)

/* ---- the file's schema ---------------------------------------------------------------------- */

enum {
    T_BOOLEAN = 1,
    T_INTEGER = 2,
    T_TEXT = 4,
    T_ARRAY = 8,
    T_OBJECT = 16,
    T_NULL = 32
};

/* The expected type of an object's member; the key "*" matches every member without a shape of its
 * own. */
struct shape {
    const char *key;
    unsigned types;
    bool is_needed;
    const struct shape *members; /* of a T_OBJECT; NULL: any members */
    const struct shape *element; /* shape of a T_ARRAY's elements; its key is ignored */
    const char *const *values;   /* allowed values of a T_TEXT, ending with NULL */
    size_t limit;                /* size limit of a T_TEXT in bytes; 0: none */
};

static const char *const layer_names[] = {"package", "system", "user", "explicit", NULL};
static const char *const gate_results[] = {"skipped", "passed", "failed", NULL};

static const struct shape any_text = {.types = T_TEXT};

static const struct shape node_shape[] = {
    {.key = "mode", .types = T_INTEGER, .is_needed = true},
    {.key = "uid", .types = T_INTEGER, .is_needed = true},
    {.key = "gid", .types = T_INTEGER, .is_needed = true},
    {.key = "rdev", .types = T_INTEGER, .is_needed = true},
    {.key = "changed_ns", .types = T_INTEGER, .is_needed = true},
    {.key = "is_usable", .types = T_BOOLEAN, .is_needed = true},
    {.key = NULL},
};

static const struct shape file_shape[] = {
    {.key = "text", .types = T_TEXT},
    {.key = "link", .types = T_TEXT},
    {.key = "names", .types = T_ARRAY, .element = &any_text},
    {.key = "node", .types = T_OBJECT, .members = node_shape},
    {.key = NULL},
};

static const struct shape files_shape[] = {
    {.key = "*", .types = T_OBJECT, .members = file_shape},
    {.key = NULL},
};

static const struct shape environment_shape[] = {
    {.key = "*", .types = T_TEXT | T_NULL},
    {.key = NULL},
};

static const struct shape who_shape[] = {
    {.key = "host", .types = T_TEXT, .is_needed = true, .limit = 256},
    {.key = "home", .types = T_TEXT, .is_needed = true},
    {.key = "users", .types = T_ARRAY, .is_needed = true, .element = &any_text},
    {.key = NULL},
};

static const struct shape config_shape[] = {
    {.key = "path", .types = T_TEXT, .is_needed = true, .limit = 4096},
    {.key = "layer", .types = T_TEXT, .is_needed = true, .values = layer_names},
    {.key = "text", .types = T_TEXT, .is_needed = true},
    {.key = NULL},
};
static const struct shape config_element = {.types = T_OBJECT, .members = config_shape};

static const struct shape gate_shape[] = {
    {.key = "gate", .types = T_TEXT, .is_needed = true},
    {.key = "result", .types = T_TEXT, .is_needed = true, .values = gate_results},
    {.key = "evidence", .types = T_TEXT, .is_needed = true, .limit = 1024},
    {.key = NULL},
};
static const struct shape gate_element = {.types = T_OBJECT, .members = gate_shape};

static const struct shape verdict_shape[] = {
    {.key = "state", .types = T_INTEGER, .is_needed = true},
    {.key = "device_count", .types = T_INTEGER, .is_needed = true},
    {.key = "reason", .types = T_INTEGER, .is_needed = true},
    {.key = "vendor_code", .types = T_INTEGER, .is_needed = true},
    {.key = "variant", .types = T_TEXT, .is_needed = true, .limit = 32},
    {.key = "detail", .types = T_TEXT, .is_needed = true, .limit = 256},
    {.key = NULL},
};

static const struct shape start_shape[] = {
    {.key = "status", .types = T_INTEGER, .is_needed = true},
    {.key = "detail", .types = T_TEXT, .is_needed = true, .limit = 1024},
    {.key = "load", .types = T_TEXT, .is_needed = true, .limit = 1024},
    {.key = "entry", .types = T_TEXT, .is_needed = true, .limit = 1024},
    {.key = NULL},
};

static const struct shape plugin_shape[] = {
    {.key = "name", .types = T_TEXT, .is_needed = true, .limit = DS_ACCEL__NAME_SIZE},
    {.key = "path", .types = T_TEXT, .is_needed = true, .limit = 4096},
    {.key = "is_registered", .types = T_BOOLEAN, .is_needed = true},
    {.key = "vendor", .types = T_TEXT, .is_needed = true, .limit = 64},
    {.key = "version", .types = T_TEXT, .is_needed = true, .limit = 32},
    {.key = "abi", .types = T_TEXT, .is_needed = true, .limit = 16},
    {.key = "note_required", .types = T_INTEGER, .is_needed = true},
    {.key = "note_optional", .types = T_INTEGER, .is_needed = true},
    {.key = "optional_features", .types = T_INTEGER, .is_needed = true},
    {.key = "sha256", .types = T_TEXT, .is_needed = true, .limit = 65},
    {.key = "state", .types = T_TEXT, .is_needed = true},
    {.key = "reason", .types = T_TEXT, .is_needed = true},
    {.key = "detail", .types = T_TEXT, .is_needed = true, .limit = 1024},
    {.key = "stage", .types = T_TEXT, .is_needed = true},
    {.key = "elapsed_us", .types = T_INTEGER, .is_needed = true},
    {.key = "strikes", .types = T_INTEGER, .is_needed = true},
    {.key = "output", .types = T_TEXT, .is_needed = true},
    {.key = "has_conduct", .types = T_BOOLEAN, .is_needed = true},
    {.key = "gates", .types = T_ARRAY, .is_needed = true, .element = &gate_element},
    {.key = "verdict", .types = T_OBJECT, .is_needed = true, .members = verdict_shape},
    {.key = "start", .types = T_OBJECT | T_NULL, .is_needed = true, .members = start_shape},
    {.key = "answers", .types = T_OBJECT | T_NULL, .is_needed = true},
    {.key = NULL},
};
static const struct shape plugin_element = {.types = T_OBJECT, .members = plugin_shape};

static const struct shape root_shape[] = {
    {.key = "kind", .types = T_TEXT, .is_needed = true},
    {.key = "format", .types = T_INTEGER, .is_needed = true},
    {.key = "version", .types = T_TEXT, .is_needed = true},
    {.key = "who", .types = T_OBJECT, .members = who_shape}, /* missing in older recordings */
    {.key = "files", .types = T_OBJECT, .is_needed = true, .members = files_shape},
    {.key = "environment", .types = T_OBJECT, .is_needed = true, .members = environment_shape},
    {.key = "configuration", .types = T_ARRAY, .is_needed = true, .element = &config_element},
    {.key = "searched", .types = T_TEXT, .is_needed = true},
    {.key = "plugins", .types = T_ARRAY, .is_needed = true, .element = &plugin_element},
    {.key = NULL},
};

struct check {
    const char *path; /* path of the recording */
    char pointer[512];
};

static int32_t complain(const struct check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int32_t complain(const struct check *check, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    ds_accel__sanitize(text, sizeof(text));
    return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: %s%s%s", check->path, check->pointer,
                           check->pointer[0] != '\0' ? ": " : "", text);
}

static unsigned type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_TRUE:
    case JSON_FALSE:
        return T_BOOLEAN;
    case JSON_INTEGER:
        return T_INTEGER;
    case JSON_STRING:
        return T_TEXT;
    case JSON_ARRAY:
        return T_ARRAY;
    case JSON_OBJECT:
        return T_OBJECT;
    case JSON_NULL:
        return T_NULL;
    default:
        return 0;
    }
}

static int32_t check_value(struct check *check, json_t *value, const struct shape *shape);

/* Check a member of the current object or array against its shape. */
static int32_t check_below(struct check *check, const char *key, json_t *value,
                           const struct shape *shape)
{
    size_t length = strlen(check->pointer);
    int32_t status;

    if (!ds_accel__pointer_append(check->pointer, sizeof(check->pointer), key)) {
        return complain(check, "a key is too long");
    }
    status = check_value(check, value, shape);
    check->pointer[length] = '\0';
    return status;
}

static const struct shape *find_member(const struct shape *members, const char *key)
{
    while (members->key != NULL && strcmp(members->key, key) != 0 &&
           strcmp(members->key, "*") != 0) {
        members++;
    }
    return members->key != NULL ? members : NULL;
}

/* Check an object's members. Unknown members are accepted, because a newer version may have
 * recorded them. */
static int32_t check_object(struct check *check, json_t *object, const struct shape *members)
{
    const char *key;
    json_t *value;

    for (const struct shape *m = members; m->key != NULL; m++) {
        if (m->is_needed && json_object_get(object, m->key) == NULL) {
            return complain(check, "it has no \"%s\"", m->key);
        }
    }
    json_object_foreach(object, key, value)
    {
        const struct shape *member = find_member(members, key);
        int32_t status = member != NULL ? check_below(check, key, value, member) : DS_ACCEL_OK;

        if (status < 0) {
            return status;
        }
    }
    return DS_ACCEL_OK;
}

static bool is_one_of(const char *text, const char *const *values)
{
    while (*values != NULL && strcmp(*values, text) != 0) {
        values++;
    }
    return *values != NULL;
}

static int32_t check_value(struct check *check, json_t *value, const struct shape *shape)
{
    unsigned type = type_of(value);
    const char *text = json_string_value(value);

    if ((shape->types & type) == 0) {
        return complain(check, "it is of another type than expected");
    }
    if (text != NULL && shape->values != NULL && !is_one_of(text, shape->values)) {
        return complain(check, "\"%.64s\" is not one of the expected words", text);
    }
    if (text != NULL && shape->limit != 0 && json_string_length(value) >= shape->limit) {
        return complain(check, "a text of %zu bytes is too long", json_string_length(value));
    }
    if (type == T_OBJECT && shape->members != NULL) {
        return check_object(check, value, shape->members);
    }
    for (size_t i = 0; i < json_array_size(value) && shape->element != NULL; i++) {
        char key[24];
        int32_t status;

        snprintf(key, sizeof(key), "%zu", i);
        status = check_below(check, key, json_array_get(value, i), shape->element);
        if (status < 0) {
            return status;
        }
    }
    return DS_ACCEL_OK;
}

/* ---- reading members ------------------------------------------------------------------------ */

static uint64_t get_number(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* The state with this name; STATE_COUNT if there is no such state. */
#define STATE_COUNT (DS_ACCEL_STATE_QUARANTINED + 1)
static uint32_t state_of(const char *name)
{
    uint32_t state = 0;

    while (state < STATE_COUNT && strcmp(ds_accel__state_name(state), name) != 0) {
        state++;
    }
    return state;
}

/* A stage's name in static storage: a gate's name, "init" (the stage of a failed start) or "";
 * NULL: there is no such stage. */
static const char *stage_of(const char *name)
{
    for (int gate = 0; gate < DS_ACCEL__GATE_COUNT; gate++) {
        if (strcmp(ds_accel__gate_name(gate), name) == 0) {
            return ds_accel__gate_name(gate);
        }
    }
    return strcmp(name, "init") == 0 ? "init" : name[0] == '\0' ? "" : NULL;
}

static enum ds_accel__gate_result result_of(const char *name)
{
    return strcmp(name, "passed") == 0   ? DS_ACCEL__GATE_PASSED
           : strcmp(name, "failed") == 0 ? DS_ACCEL__GATE_FAILED
                                         : DS_ACCEL__GATE_SKIPPED;
}

static bool has_all_gates(const json_t *gates)
{
    size_t position = 0;

    for (int gate = 0; gate < DS_ACCEL__GATE_COUNT; gate++) {
        const char *name = ds_accel__json_string(json_array_get(gates, position), "gate");

        if (strcmp(name, ds_accel__gate_name(gate)) == 0) {
            position++;
        } else if (gate != DS_ACCEL__GATE_HARDWARE && gate != DS_ACCEL__GATE_START) {
            /* Older recordings lack these two gates. */
            return false;
        }
    }
    return position == json_array_size(gates);
}

static int32_t check_plugin(struct check *check, const json_t *plugin)
{
    const json_t *gates = json_object_get(plugin, "gates");
    const json_t *answers = json_object_get(plugin, "answers");
    uint64_t count = get_number(answers, "device_count");

    if (state_of(ds_accel__json_string(plugin, "state")) == STATE_COUNT) {
        return complain(check, "unknown state \"%.32s\"", ds_accel__json_string(plugin, "state"));
    }
    if (!ds_accel__reason_is_code(ds_accel__json_string(plugin, "reason"))) {
        return complain(check, "unknown reason \"%.32s\"", ds_accel__json_string(plugin, "reason"));
    }
    if (stage_of(ds_accel__json_string(plugin, "stage")) == NULL) {
        return complain(check, "unknown gate \"%.32s\"", ds_accel__json_string(plugin, "stage"));
    }
    if (!has_all_gates(gates)) {
        return complain(check, "its gates are not those of this version, in their order");
    }
    if (json_is_object(answers) && (count == 0 || count > DS_ACCEL__DEVICE_LIMIT)) {
        return complain(check, "it has %llu devices", (unsigned long long)count);
    }
    return DS_ACCEL_OK;
}

/* Reject a file of another kind or format, before its shape is checked. */
static int32_t check_kind(const struct check *check, const json_t *root)
{
    if (!json_is_object(root) ||
        strcmp(ds_accel__json_string(root, "kind"), DS_ACCEL__RECORDING_KIND) != 0) {
        return complain(check, "it is not a recorded machine of ds-accel: expected \"kind\": "
                               "\"" DS_ACCEL__RECORDING_KIND "\"");
    }
    if (!json_is_integer(json_object_get(root, "format"))) {
        return complain(check, "it has no \"format\"");
    }
    if (get_number(root, "format") != DS_ACCEL__RECORDING_FORMAT) {
        return complain(check,
                        "ds-accel %.32s recorded it in format %lld; this version reads format %d",
                        ds_accel__json_string(root, "version"),
                        (long long)get_number(root, "format"), DS_ACCEL__RECORDING_FORMAT);
    }
    return DS_ACCEL_OK;
}

static int32_t check_tree(const char *path, json_t *root)
{
    static const struct shape whole = {.types = T_OBJECT, .members = root_shape};
    struct check check = {.path = path};
    json_t *plugins;
    int32_t status = check_kind(&check, root);

    status = status < 0 ? status : check_value(&check, root, &whole);
    plugins = json_object_get(root, "plugins");
    for (size_t i = 0; status >= 0 && i < json_array_size(plugins); i++) {
        snprintf(check.pointer, sizeof(check.pointer), "/plugins/%zu", i);
        status = check_plugin(&check, json_array_get(plugins, i));
    }
    return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

int32_t ds_accel__recording_parse(const char *path, const char *text, size_t size_bytes,
                                  json_t **root_out)
{
    json_error_t error;
    json_t *root;
    int32_t status;

    if (!ds_accel__json_has_headroom(size_bytes)) {
        return ds_accel__no_memory();
    }
    root = json_loadb(text, size_bytes, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL && json_error_code(&error) == json_error_out_of_memory) {
        return ds_accel__no_memory();
    }
    if (root == NULL) {
        bool is_cut;

        while (size_bytes > 0 && isspace((unsigned char)text[size_bytes - 1])) {
            size_bytes--;
        }
        is_cut = size_bytes == 0 || (text[0] == '{' && text[size_bytes - 1] != '}') ||
                 json_error_code(&error) == json_error_premature_end_of_input;

        ds_accel__sanitize(error.text, sizeof(error.text));
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s:%d:%d: it is not a recorded machine: %s%s",
                               path, error.line > 0 ? error.line : 1,
                               error.column > 0 ? error.column : 1, error.text,
                               is_cut ? "; the file was cut short" : "");
    }
    status = check_tree(path, root);
    if (status < 0) {
        json_decref(root);
        return status;
    }
    *root_out = root;
    return DS_ACCEL_OK;
}

int32_t ds_accel__recording_read(const char *path, json_t **root_out)
{
    const char *cause;
    char *text = NULL;
    size_t size;
    int32_t status = ds_accel__file_read(path, FILE_LIMIT_BYTES, &text, &size, &cause);

    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        return status;
    }
    if (status < 0) {
        return ds_accel__error(DS_ACCEL_ERR_IO, "%s: %s", path, cause);
    }
    status = ds_accel__recording_parse(path, text, size, root_out);
    free(text);
    return status;
}

/* ---- a context over a recording ------------------------------------------------------------- */

static enum ds_accel__config_layer layer_of(const char *name)
{
    int layer = 0;

    while (layer < DS_ACCEL__CONFIG_LAYER_EXPLICIT && strcmp(layer_names[layer], name) != 0) {
        layer++;
    }
    return (enum ds_accel__config_layer)layer;
}

/* Add the recorded configuration files. If this run has an explicit configuration file, it replaces
 * the recorded user's file and the recorded explicit file. */
static int32_t add_files(ds_accel_t *context, const char *explicit_file)
{
    json_t *files = json_object_get(context->recording, "configuration");
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < json_array_size(files) && status >= 0; i++) {
        const json_t *file = json_array_get(files, i);
        enum ds_accel__config_layer layer = layer_of(ds_accel__json_string(file, "layer"));

        if (explicit_file == NULL || layer < DS_ACCEL__CONFIG_LAYER_USER) {
            status = ds_accel__config_add_file(&context->config,
                                               ds_accel__json_string(file, "path"), layer,
                                               ds_accel__json_string(file, "text"));
        }
    }
    return status < 0 || explicit_file == NULL
               ? status
               : ds_accel__config_add_file(&context->config, explicit_file,
                                           DS_ACCEL__CONFIG_LAYER_EXPLICIT, NULL);
}

/* Use the recorded value of DS_ACCELERATOR, unless the variable is set in this process or this
 * context ignores the environment. */
static int32_t take_environment(ds_accel_t *context)
{
    char **accelerator = &context->env.values[DS_ACCEL__VARIABLE_ACCELERATOR];
    const char *recorded = json_string_value(
        json_object_get(json_object_get(context->recording, "environment"), "DS_ACCELERATOR"));

    if (*accelerator == NULL && recorded != NULL && !context->env.ignored &&
        (*accelerator = strdup(recorded)) == NULL) {
        return ds_accel__no_memory();
    }
    return DS_ACCEL_OK;
}

static int32_t open_recording(ds_accel_t *context, const struct ds_accel_options *options)
{
    const char *explicit_file = options->config_file != NULL
                                    ? options->config_file
                                    : context->env.values[DS_ACCEL__VARIABLE_CONFIG];
    int32_t status;

    if (context->machine_root[0] != '\0' || context->plugin_dir_count > 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "%s is a whole machine: leave out %s, it has its own",
                               options->machine_file,
                               options->machine_root != NULL      ? "the root"
                               : context->machine_root[0] != '\0' ? "DS_ACCEL_ROOT"
                                                                  : "the directories of plugins");
    }
    status = ds_accel__recording_read(options->machine_file, &context->recording);
    if (status < 0) {
        return status;
    }
    context->machine.files = json_object_get(context->recording, "files");
    context->has_no_cache = true;
    status = take_environment(context);
    status = status < 0 ? status : add_files(context, explicit_file);
    return status < 0 ? status : ds_accel__config_read(&context->config, false);
}

/* The recorded result of a gate; NULL if the version that made the recording did not have the
 * gate. */
static const json_t *gate_of(const json_t *plugin, enum ds_accel__gate gate)
{
    const json_t *gates = json_object_get(plugin, "gates");

    for (size_t i = 0; i < json_array_size(gates) && i <= (size_t)gate; i++) {
        const json_t *item = json_array_get(gates, i);

        if (strcmp(ds_accel__json_string(item, "gate"), ds_accel__gate_name(gate)) == 0) {
            return item;
        }
    }
    return NULL;
}

static enum ds_accel__gate_result recorded_result(const json_t *plugin, enum ds_accel__gate gate)
{
    return result_of(ds_accel__json_string(gate_of(plugin, gate), "result"));
}

/* The recorded finding because of which the gate rejected the plugin. */
static void recorded_finding(const json_t *plugin, enum ds_accel__gate gate,
                             struct ds_accel__finding *finding)
{
    enum ds_accel__reason_id reason =
        ds_accel__reason_find(ds_accel__json_string(plugin, "reason"));

    memset(finding, 0, sizeof(*finding));
    finding->reason = reason != DS_ACCEL__REASON_NONE ? reason : DS_ACCEL__REASON_NOT_RECORDED;
    ds_accel__copy(finding->detail, sizeof(finding->detail),
                   ds_accel__json_string(gate_of(plugin, gate), "evidence"));
}

/* Set the candidate's result of a gate to the recorded result. False if the gate failed. */
static bool repeat_gate(struct ds_accel__candidate *candidate, enum ds_accel__gate gate)
{
    const json_t *plugin = candidate->recorded;
    struct ds_accel__finding finding;

    assert(plugin != NULL); /* scan() sets it for every candidate of a recorded machine */
    switch (recorded_result(plugin, gate)) {
    case DS_ACCEL__GATE_PASSED:
        ds_accel__candidate_pass(candidate, gate, "%s",
                                 ds_accel__json_string(gate_of(plugin, gate), "evidence"));
        return true;
    case DS_ACCEL__GATE_FAILED:
        recorded_finding(plugin, gate, &finding);
        ds_accel__candidate_fail(candidate, gate, state_of(ds_accel__json_string(plugin, "state")),
                                 &finding);
        return false;
    default:
        return true;
    }
}

static int32_t scan(ds_accel_t *context)
{
    json_t *plugins = json_object_get(context->recording, "plugins");
    int32_t status = DS_ACCEL_OK;

    ds_accel__text_add(&context->searched, "%s",
                       ds_accel__json_string(context->recording, "searched"));
    for (size_t i = 0; i < json_array_size(plugins) && status >= 0; i++) {
        const json_t *plugin = json_array_get(plugins, i);
        struct ds_accel__candidate *candidate = ds_accel__candidate_create(
            context, ds_accel__json_string(plugin, "name"), ds_accel__json_string(plugin, "path"));

        if (candidate != NULL) {
            candidate->recorded = plugin;
            candidate->is_registered = json_is_true(json_object_get(plugin, "is_registered"));
            repeat_gate(candidate, DS_ACCEL__GATE_NAME);
        }
        status = ds_accel__registry_add(&context->registry, candidate);
    }
    return status >= 0 && context->searched.failed ? ds_accel__no_memory() : status;
}

/* ---- replacing a plugin's code -------------------------------------------------------------- */

static int32_t check_file(struct ds_accel__candidate *candidate, bool *passed_out)
{
    const json_t *plugin = candidate->recorded;
    const char *mode = json_string_value(
        ds_accel__config_get(&candidate->host.context->config, "trust", "mode", NULL));
    struct ds_accel__finding finding = {0};

    *passed_out = false;
    for (int gate = DS_ACCEL__GATE_TRUST; gate <= DS_ACCEL__GATE_NOTE; gate++) {
        if (!repeat_gate(candidate, gate)) {
            return DS_ACCEL_OK;
        }
    }
    ds_accel__copy(candidate->vendor, sizeof(candidate->vendor),
                   ds_accel__json_string(plugin, "vendor"));
    ds_accel__copy(candidate->version, sizeof(candidate->version),
                   ds_accel__json_string(plugin, "version"));
    ds_accel__copy(candidate->abi, sizeof(candidate->abi), ds_accel__json_string(plugin, "abi"));
    candidate->note_features = get_number(plugin, "note_required");
    candidate->note_optional = get_number(plugin, "note_optional");
    ds_accel__candidate_set_demand(candidate, candidate->note_optional);
    if (mode != NULL && strcmp(mode, "off") != 0 && !candidate->is_registered) {
        ds_accel__candidate_judge_hash(candidate, ds_accel__json_string(plugin, "sha256"),
                                       &finding);
    }
    if (finding.reason != DS_ACCEL__REASON_NONE) {
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_HASH, DS_ACCEL_STATE_REJECTED, &finding);
    }
    *passed_out = finding.reason == DS_ACCEL__REASON_NONE;
    return DS_ACCEL_OK;
}

static void quarantine(struct ds_accel__candidate *candidate, bool *passed_out)
{
    const json_t *plugin = candidate->recorded;

    assert(plugin != NULL);
    candidate->strikes = (uint32_t)get_number(plugin, "strikes");
    if (candidate->wish == DS_ACCEL__WISH_FORCED &&
        recorded_result(plugin, DS_ACCEL__GATE_QUARANTINE) == DS_ACCEL__GATE_FAILED) {
        candidate->strikes = 0;
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_QUARANTINE,
                                 "it was quarantined, but is forced by name");
        *passed_out = true;
        return;
    }
    *passed_out = repeat_gate(candidate, DS_ACCEL__GATE_QUARANTINE);
    if (!*passed_out) {
        ds_accel__candidate_keep_output(candidate, ds_accel__json_string(plugin, "output"));
    }
}

/* Was the plugin probed when the machine was recorded? If not, its verdict is unknown. */
static bool was_asked(const json_t *plugin)
{
    for (int gate = 0; gate < DS_ACCEL__GATE_HARDWARE; gate++) {
        if (recorded_result(plugin, gate) == DS_ACCEL__GATE_FAILED) {
            return false;
        }
    }
    return state_of(ds_accel__json_string(plugin, "state")) != DS_ACCEL_STATE_NOT_PROBED;
}

static void take_verdict(const json_t *verdict, struct ds_accel_verdict *out)
{
    *out = (struct ds_accel_verdict){
        .struct_size = sizeof(*out),
        .state = (uint32_t)get_number(verdict, "state"),
        .device_count = (uint32_t)get_number(verdict, "device_count"),
        .reason = (uint32_t)get_number(verdict, "reason"),
        .vendor_code = (int64_t)get_number(verdict, "vendor_code"),
    };
    ds_accel__copy(out->variant, sizeof(out->variant), ds_accel__json_string(verdict, "variant"));
    ds_accel__copy(out->detail, sizeof(out->detail), ds_accel__json_string(verdict, "detail"));
}

/* Copy the recorded result of the plugin's start, in place of a rehearsal. */
static void rehearse(struct ds_accel__candidate *candidate)
{
    const json_t *start = json_object_get(candidate->recorded, "start");
    const json_t *answers = json_object_get(candidate->recorded, "answers");
    const json_t *info = json_object_get(answers, "backend_info");
    struct ds_accel__start *rehearsed = &candidate->start;
    int32_t status = (int32_t)json_integer_value(json_object_get(start, "status"));

    if (candidate->state != DS_ACCEL_STATE_AVAILABLE || !json_is_object(start)) {
        return;
    }
    if (status < 0) {
        ds_accel__start_fail(candidate, ds_accel__json_string(start, "detail"));
        return;
    }
    if (!json_is_object(answers)) {
        return;
    }
    memset(rehearsed, 0, sizeof(*rehearsed));
    rehearsed->is_done = 1;
    rehearsed->device_count = (uint32_t)get_number(answers, "device_count");
    rehearsed->info.struct_size = sizeof(rehearsed->info);
    ds_accel__copy(rehearsed->info.communication_backend,
                   sizeof(rehearsed->info.communication_backend),
                   ds_accel__json_string(info, "communication_backend"));
    ds_accel__copy(rehearsed->info.compile_backend, sizeof(rehearsed->info.compile_backend),
                   ds_accel__json_string(info, "compile_backend"));
}

static void ask(struct ds_accel__candidate *candidate)
{
    const json_t *plugin = candidate->recorded;
    enum ds_accel__reason_id reason =
        ds_accel__reason_find(ds_accel__json_string(plugin, "reason"));
    const char *output = ds_accel__json_string(plugin, "output");
    uint32_t state = state_of(ds_accel__json_string(plugin, "state"));

    if (!was_asked(plugin)) {
        struct ds_accel__finding finding = {0};

        ds_accel__finding_set(
            &finding, DS_ACCEL__REASON_NOT_RECORDED, "it was %s (%s) when the machine was recorded",
            ds_accel__json_string(plugin, "state"),
            reason != DS_ACCEL__REASON_NONE ? ds_accel__reason_code(reason) : "no reason");
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_LOAD, DS_ACCEL_STATE_UNAVAILABLE,
                                 &finding);
        return;
    }
    for (int gate = DS_ACCEL__GATE_HARDWARE; gate < DS_ACCEL__GATE_COUNT; gate++) {
        repeat_gate(candidate, gate);
    }
    take_verdict(json_object_get(plugin, "verdict"), &candidate->verdict);
    candidate->optional_features = get_number(plugin, "optional_features");
    candidate->has_conduct = json_is_true(json_object_get(plugin, "has_conduct"));
    ds_accel__candidate_set(candidate, state, reason, "%s",
                            ds_accel__json_string(plugin, "detail"));
    candidate->stage = stage_of(ds_accel__json_string(plugin, "stage"));
    rehearse(candidate);
    if (output[0] != '\0') {
        ds_accel__candidate_keep_output(candidate, output);
    }
    if (!ds_accel__candidate_has_verdict(candidate)) {
        ds_accel__candidate_enter(candidate, DS_ACCEL__PHASE_JUDGED);
    }
}

static uint64_t elapsed_us(const struct ds_accel__candidate *candidate)
{
    return get_number(candidate->recorded, "elapsed_us");
}

/* Set the candidate to the failure of the recorded start, or to "not recorded", and return the
 * status. */
static int32_t fail_start(struct ds_accel__candidate *candidate, const json_t *start)
{
    int32_t status = (int32_t)json_integer_value(json_object_get(start, "status"));
    bool is_known = json_is_object(start) && status < 0;

    ds_accel__candidate_set(
        candidate, DS_ACCEL_STATE_ERROR,
        is_known ? DS_ACCEL__REASON_START_FAILED : DS_ACCEL__REASON_NOT_RECORDED, "%s",
        is_known ? ds_accel__json_string(start, "detail")
                 : "the result of its start was not recorded");
    candidate->stage = ds_accel__gate_name(DS_ACCEL__GATE_START);
    return is_known ? status : DS_ACCEL_ERR_NOT_FOUND;
}

static int32_t start(struct ds_accel__candidate *candidate,
                     ds_accel_plugin_instance_t **instance_out, uint32_t *count_out)
{
    const json_t *start = json_object_get(candidate->recorded, "start");
    const json_t *answers = json_object_get(candidate->recorded, "answers");
    const char *stage = candidate->stage;
    void *handle;

    if (!candidate->has_table && ds_accel__json_string(start, "load")[0] != '\0') {
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_LOAD, "%s",
                                 ds_accel__json_string(start, "load"));
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_ENTRY, "%s",
                                 ds_accel__json_string(start, "entry"));
        candidate->stage = stage;
    }
    if (!json_is_object(answers)) {
        return fail_start(candidate, start);
    }
    ds_accel__answers_table(&candidate->table);
    candidate->table.name = candidate->name;
    candidate->table.optional_features = candidate->optional_features;
    candidate->has_table = true;
    ds_accel__candidate_watch(candidate);
    memcpy(&handle, &answers, sizeof(handle)); /* drops const: the tree is only read */
    *instance_out = handle;
    *count_out = (uint32_t)get_number(answers, "device_count");
    return DS_ACCEL_OK;
}

static const struct ds_accel__source source = {
    .open = open_recording,
    .scan = scan,
    .check_file = check_file,
    .quarantine = quarantine,
    .ask = ask,
    .start = start,
    .elapsed_us = elapsed_us,
};

__attribute__((constructor)) static void set_source(void)
{
    __atomic_store_n(&ds_accel__recorded_source, &source, __ATOMIC_RELEASE);
}
