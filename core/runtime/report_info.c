/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The reports on one backend: info and env. They also work for backends that are not available. */
#include "base/json.h"
#include "base/text.h"
#include "config/config.h"
#include "config/env.h"
#include "host/activate.h"
#include "host/context.h"
#include "host/evaluate.h"
#include "host/registry.h"
#include "runtime/facts.h"

#include <stdio.h>
#include <stdlib.h>

#define RECIPE_LIMIT_BYTES 65536
#define LIST_LIMIT 64 /* maximum number of op builders, or of env rules, of a plugin */

void ds_accel__facts_read(struct ds_accel__facts *facts, ds_accel_t *context, const char *name,
                          const struct ds_accel__candidate *candidate,
                          ds_accel_plugin_instance_t *instance)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    memset(facts, 0, sizeof(*facts));
    facts->context = context;
    facts->name = name;
    facts->candidate = candidate;
    facts->instance = instance;
    facts->info.struct_size = sizeof(facts->info);
    if (instance != NULL && candidate->table.backend_info(instance, &facts->info, &error) < 0) {
        memset(&facts->info, 0, sizeof(facts->info));
    }
    if (instance == NULL && candidate != NULL && candidate->start.is_done != 0) {
        facts->info = candidate->start.info; /* reported at an earlier start of the plugin */
    }
    ds_accel__sanitize(facts->info.communication_backend,
                       sizeof(facts->info.communication_backend));
    ds_accel__sanitize(facts->info.compile_backend, sizeof(facts->info.compile_backend));
}

/* Return the plugin's functions, or NULL if the plugin has no instance, because the backend is not
 * available or could not be started. */
static const struct ds_accel_plugin *table_of(const struct ds_accel__facts *facts)
{
    return facts->candidate != NULL && facts->instance != NULL ? &facts->candidate->table : NULL;
}

json_t *ds_accel__fact(const struct ds_accel__facts *facts, const char *key, json_t *plugin_value)
{
    const char *setting = ds_accel__setting(facts->context, facts->name, key);
    json_t *value;

    if (setting != NULL) {
        json_decref(plugin_value);
        return ds_accel__json_text(setting);
    }
    value = ds_accel__operator_fact(facts->context, facts->name, key);
    if (value == NULL && plugin_value != NULL) {
        return plugin_value;
    }
    json_decref(plugin_value);
    if (value == NULL) {
        value = ds_accel__config_backend(&facts->context->config, facts->name, key);
    }
    return value != NULL ? json_incref(value) : json_null();
}

/* ---- info: devices -------------------------------------------------------------------------- */

static void set_text(json_t *object, const char *key, const char *text, bool *failed)
{
    ds_accel__json_set(object, key, ds_accel__json_text(text), failed);
}

static json_t *number_or_null(bool known, uint64_t value)
{
    return known ? json_integer((json_int_t)value) : json_null();
}

/* Return the device's total memory from the first call that reported it: mem_info (what this
 * process can allocate), device_info, device_identity. Returns JSON's null if none did. */
static json_t *total_memory(const struct ds_accel_memory_info *memory,
                            const struct ds_accel_device_info *info,
                            const struct ds_accel_device_identity *identity)
{
    if ((memory->valid & DS_ACCEL_MEMORY_TOTAL) != 0) {
        return json_integer((json_int_t)memory->total_bytes);
    }
    if (info->total_memory_bytes != 0) {
        return json_integer((json_int_t)info->total_memory_bytes);
    }
    return number_or_null(identity->total_memory_bytes != 0, identity->total_memory_bytes);
}

static void sanitize_identity(struct ds_accel_device_identity *identity)
{
    ds_accel__sanitize(identity->name, sizeof(identity->name));
    ds_accel__sanitize(identity->pci_address, sizeof(identity->pci_address));
    ds_accel__sanitize(identity->uuid_text, sizeof(identity->uuid_text));
    ds_accel__sanitize(identity->parent_uuid_text, sizeof(identity->parent_uuid_text));
    ds_accel__sanitize(identity->node_path, sizeof(identity->node_path));
    ds_accel__sanitize(identity->architecture, sizeof(identity->architecture));
}

/* Describe the partition if the device is a partition of a larger device, else return JSON's
 * null. */
static json_t *partition_tree(const struct ds_accel_device_identity *identity, bool *failed)
{
    static const char *const kinds[] = {"", "mig", "tile", "other"};
    bool has_numbers = (identity->valid & DS_ACCEL_IDENTITY_PARTITION) != 0;
    json_t *tree;

    if (identity->partition_kind == DS_ACCEL_PARTITION_NONE) {
        return json_null();
    }
    tree = json_object();
    set_text(tree, "kind",
             identity->partition_kind < ARRAY_SIZE(kinds) ? kinds[identity->partition_kind]
                                                          : "other",
             failed);
    set_text(tree, "parent_uuid", identity->parent_uuid_text, failed);
    ds_accel__json_set(tree, "parent_index",
                       number_or_null((identity->valid & DS_ACCEL_IDENTITY_PARENT_INDEX) != 0,
                                      identity->parent_index),
                       failed);
    ds_accel__json_set(tree, "instance", number_or_null(has_numbers, identity->partition_instance),
                       failed);
    ds_accel__json_set(tree, "subinstance",
                       number_or_null(has_numbers, identity->partition_subinstance), failed);
    return tree;
}

/* Add the identifiers by which users find the device in other tools, its architecture, its power
 * state and its partition. */
static void set_identity(json_t *tree, const struct ds_accel_device_identity *identity,
                         bool *failed)
{
    static const char *const power_states[] = {"unknown", "active", "suspended", "off"};

    set_text(tree, "pci_address", identity->pci_address, failed);
    set_text(tree, "uuid", identity->uuid_text, failed);
    ds_accel__json_set(tree, "vendor_index",
                       number_or_null((identity->valid & DS_ACCEL_IDENTITY_VENDOR_INDEX) != 0,
                                      identity->vendor_index),
                       failed);
    set_text(tree, "node_path", identity->node_path, failed);
    set_text(tree, "architecture", identity->architecture, failed);
    set_text(
        tree, "power_state",
        power_states[identity->power_state < ARRAY_SIZE(power_states) ? identity->power_state : 0],
        failed);
    ds_accel__json_set(tree, "partition", partition_tree(identity, failed), failed);
}

static json_t *device_tree(const struct ds_accel__facts *facts, uint32_t index, json_t **limit_out,
                           bool *failed)
{
    const struct ds_accel_plugin *table = table_of(facts);
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    struct ds_accel_memory_info memory = {.struct_size = sizeof(memory)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_device_t *device = NULL;
    bool has_info = false;
    bool has_memory = false;
    json_t *tree;

    if (table == NULL) {
        return json_null();
    }
    tree = json_object();
    if (table->device_identity(facts->instance, index, &identity, &error) != DS_ACCEL_OK) {
        memset(&identity, 0, sizeof(identity));
    }
    if (table->device_open(facts->instance, index, &device, &error) == DS_ACCEL_OK &&
        device != NULL) {
        has_info = table->device_info(device, &info, &error) == DS_ACCEL_OK;
        has_memory = table->mem_info(device, &memory, &error) == DS_ACCEL_OK;
        table->device_close(device);
    }
    ds_accel__sanitize(info.name, sizeof(info.name));
    sanitize_identity(&identity);
    ds_accel__sanitize(memory.limit_source, sizeof(memory.limit_source));
    ds_accel__json_set(tree, "index", json_integer(index), failed);
    set_text(tree, "name", has_info && info.name[0] != '\0' ? info.name : identity.name, failed);
    ds_accel__json_set(tree, "total_memory_bytes", total_memory(&memory, &info, &identity), failed);
    ds_accel__json_set(
        tree, "available_memory_bytes",
        number_or_null((memory.valid & DS_ACCEL_MEMORY_AVAILABLE) != 0, memory.available_bytes),
        failed);
    ds_accel__json_set(
        tree, "process_memory_bytes",
        number_or_null((memory.valid & DS_ACCEL_MEMORY_PROCESS) != 0, memory.process_bytes),
        failed);
    ds_accel__json_set(
        tree, "numa_node",
        number_or_null((identity.valid & DS_ACCEL_IDENTITY_NUMA_NODE) != 0, identity.numa_node),
        failed);
    ds_accel__json_set(
        tree, "compute_units",
        number_or_null(has_info && info.compute_unit_count > 0, info.compute_unit_count), failed);
    set_identity(tree, &identity, failed);
    if (has_memory && memory.limit_bytes > 0 && *limit_out == NULL) {
        *limit_out = json_object();
        ds_accel__json_set(*limit_out, "bytes", json_integer((json_int_t)memory.limit_bytes),
                           failed);
        set_text(*limit_out, "source", memory.limit_source, failed);
    }
    return tree;
}

static json_t *devices_tree(const struct ds_accel__facts *facts, uint32_t count, json_t **limit_out,
                            bool *failed)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++) {
        if (json_array_append_new(array, device_tree(facts, i, limit_out, failed)) != 0) {
            *failed = true;
        }
    }
    return array;
}

/* ---- info: data types ----------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t dtype;
} listed_dtypes[] = {
    {"float32", DS_ACCEL_DTYPE_FLOAT32},
    {"float16", DS_ACCEL_DTYPE_FLOAT16},
    {"bfloat16", DS_ACCEL_DTYPE_BFLOAT16},
};

/* Return the dtypes that device 0 computes with, as one bit for each element of listed_dtypes; -1
 * if the plugin has no instance, cannot open device 0, or cannot report them. */
static int computed_dtypes(const struct ds_accel__facts *facts)
{
    const struct ds_accel_plugin *table = table_of(facts);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_device_t *device = NULL;
    int bits = 0;

    if (table == NULL || table->device_open(facts->instance, 0, &device, &error) < 0) {
        return -1;
    }
    for (size_t i = 0; i < ARRAY_SIZE(listed_dtypes) && bits >= 0; i++) {
        uint32_t support = 0;

        if (table->dtype_support(device, listed_dtypes[i].dtype, &support, &error) < 0) {
            bits = -1;
        } else if ((support & DS_ACCEL_DTYPE_COMPUTES) != 0) {
            bits |= 1 << i;
        }
    }
    table->device_close(device);
    return bits;
}

static json_t *dtypes_tree(int bits, bool *failed)
{
    json_t *array;

    if (bits < 0) {
        return NULL;
    }
    array = json_array();
    for (size_t i = 0; i < ARRAY_SIZE(listed_dtypes); i++) {
        if ((bits & 1 << i) != 0 &&
            json_array_append_new(array, json_string(listed_dtypes[i].name)) != 0) {
            *failed = true;
        }
    }
    return array;
}

/* ---- info: lists ---------------------------------------------------------------------------- */

static json_t *flag(const struct ds_accel__facts *facts, uint64_t bit)
{
    return (facts->info.flags_known & bit) != 0 ? json_boolean((facts->info.flags & bit) != 0)
                                                : NULL;
}

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? ds_accel__json_text(text) : NULL;
}

static bool has_text(json_t *array, const char *text)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (strcmp(json_string_value(json_array_get(array, i)), text) == 0) {
            return true;
        }
    }
    return false;
}

/* Return the names from the configuration, followed by those names of the plugin (at most 64) that
 * are not among them. */
static json_t *names_tree(const struct ds_accel__facts *facts, const char *key, uint32_t which,
                          bool *failed)
{
    json_t *configured = ds_accel__config_backend(&facts->context->config, facts->name, key);
    json_t *array = configured != NULL ? json_copy(configured) : json_array();
    const struct ds_accel_plugin *table = table_of(facts);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    char name[64];

    for (uint32_t i = 0; table != NULL && i < 64; i++) {
        name[0] = '\0';
        if (table->env_name_get(facts->instance, which, i, name, sizeof(name), &error) < 0) {
            break;
        }
        ds_accel__sanitize(name, sizeof(name));
        if (!has_text(array, name) &&
            json_array_append_new(array, ds_accel__json_text(name)) != 0) {
            *failed = true;
        }
    }
    return array;
}

/* Whether a plugin's text is not NULL, shorter than limit bytes and without control characters. */
static bool is_plain(const char *text, size_t limit)
{
    size_t length = text != NULL ? strnlen(text, limit) : limit;

    for (size_t i = 0; i < length && length < limit; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
            return false;
        }
    }
    return length < limit;
}

/* The recipe of a plugin's builder as a tree; JSON null if there is none or it is no object. NULL:
 * out of memory. */
static json_t *parse_recipe(const char *text)
{
    size_t size_bytes = text != NULL ? strnlen(text, RECIPE_LIMIT_BYTES) : RECIPE_LIMIT_BYTES;
    json_error_t error;
    json_t *recipe;

    if (size_bytes == RECIPE_LIMIT_BYTES) {
        return json_null();
    }
    if (!ds_accel__json_has_headroom(size_bytes)) {
        return NULL;
    }
    recipe = json_loadb(text, size_bytes, JSON_REJECT_DUPLICATES, &error);
    if (recipe == NULL && json_error_code(&error) == json_error_out_of_memory) {
        return NULL;
    }
    if (recipe != NULL && !json_is_object(recipe)) {
        json_decref(recipe);
        recipe = NULL;
    }
    return recipe != NULL ? recipe : json_null();
}

static void add_builder(json_t *array, const char *name, const char *op, json_t *recipe,
                        bool *failed)
{
    json_t *builder = json_object();

    set_text(builder, "builder", name, failed);
    set_text(builder, "op", op, failed);
    ds_accel__json_set(builder, "recipe", recipe, failed);
    if (json_array_append_new(array, builder) != 0) {
        *failed = true;
    }
}

static bool has_builder(json_t *array, const char *name)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (strcmp(ds_accel__json_string(json_array_get(array, i), "builder"), name) == 0) {
            return true;
        }
    }
    return false;
}

json_t *ds_accel__facts_builders(const struct ds_accel__facts *facts, bool *failed)
{
    json_t *configured =
        ds_accel__config_backend(&facts->context->config, facts->name, "op_builders");
    json_t *array = json_array();
    const struct ds_accel_plugin *table = table_of(facts);
    struct ds_accel_op_builder builders[LIST_LIMIT];
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint32_t count = 0;
    const char *name;
    json_t *recipe;

    json_object_foreach(configured, name, recipe)
    {
        if (!json_is_null(recipe)) {
            add_builder(array, name, ds_accel__json_string(recipe, "op"), json_incref(recipe),
                        failed);
        }
    }
    memset(builders, 0, sizeof(builders));
    for (size_t i = 0; i < LIST_LIMIT; i++) {
        builders[i].struct_size = sizeof(builders[i]);
    }
    if (table == NULL || table->op_builders_get(facts->instance, builders, sizeof(builders[0]),
                                                LIST_LIMIT, &count, &error) < 0) {
        return array;
    }
    for (uint32_t i = 0; i < count && i < LIST_LIMIT; i++) {
        if (is_plain(builders[i].builder, 64) && !has_builder(array, builders[i].builder) &&
            !json_is_null(json_object_get(configured, builders[i].builder))) {
            add_builder(array, builders[i].builder,
                        is_plain(builders[i].op, 64) ? builders[i].op : "",
                        parse_recipe(builders[i].json), failed);
        }
    }
    return array;
}

static json_t *op_builders_tree(const struct ds_accel__facts *facts, bool *failed)
{
    json_t *builders = ds_accel__facts_builders(facts, failed);
    json_t *names = json_array();

    for (size_t i = 0; i < json_array_size(builders); i++) {
        json_t *name = json_object_get(json_array_get(builders, i), "builder");

        if (json_array_append(names, name) != 0) {
            *failed = true;
        }
    }
    json_decref(builders);
    return names;
}

/* ---- info ----------------------------------------------------------------------------------- */

/* Whether there is a plugin, or a configuration entry, with that name. */
static bool is_known(const ds_accel_t *context, const char *name)
{
    return ds_accel__registry_find(&context->registry, name) != NULL ||
           ds_accel__config_get(&context->config, "backends", name, NULL) != NULL;
}

static int32_t fail_unknown(const ds_accel_t *context, const char *name)
{
    json_t *backends = ds_accel__config_get(&context->config, "backends", NULL);
    const char *names[64];
    size_t count = 0;
    struct ds_accel__text list = {0};
    const char *backend;
    const char *nearest;
    json_t *ignored;

    json_object_foreach(backends, backend, ignored)
    {
        if (count < ARRAY_SIZE(names)) {
            ds_accel__text_add(&list, "%s%s", count > 0 ? ", " : "", backend);
            names[count++] = backend;
        }
    }
    nearest = ds_accel__nearest(name, names, count);
    ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                    "no plugin and no configuration knows \"%s\"%s%s%s; known: %s", name,
                    nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                    nearest != NULL ? "\"?" : "", list.data != NULL ? list.data : "none");
    ds_accel__text_clear(&list);
    return DS_ACCEL_ERR_NOT_FOUND;
}

static bool is_usable(const struct ds_accel__candidate *candidate)
{
    return candidate != NULL && (candidate->state == DS_ACCEL_STATE_AVAILABLE ||
                                 candidate->state == DS_ACCEL_STATE_SELECTED);
}

/* Return an instance of a backend for queries, and its number of devices: its running instance, or
 * else a temporary instance, which the caller stops (*started_out is true). NULL: the backend is
 * not available, or cannot be started. */
static ds_accel_plugin_instance_t *borrow_instance(const ds_accel_t *context,
                                                   struct ds_accel__candidate *candidate,
                                                   uint32_t *count_out, bool *started_out)
{
    ds_accel_plugin_instance_t *instance = NULL;

    *started_out = false;
    if (!is_usable(candidate)) {
        return NULL;
    }
    if (candidate->instance != NULL) {
        *count_out = context->device_count;
        return candidate->instance;
    }
    *started_out = ds_accel__candidate_activate(candidate, &instance, count_out) >= 0;
    return instance;
}

static void set_names(json_t *tree, const struct ds_accel__facts *facts, bool *failed)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint32_t current = 0;
    bool indexed = !json_is_false(
        ds_accel__config_backend(&facts->context->config, facts->name, "indexed_device_names"));
    const struct ds_accel_plugin *table = table_of(facts);
    char name[64];

    snprintf(name, sizeof(name), "%.*s", ds_accel__device_name_length(facts->name), facts->name);
    set_text(tree, "device_name", name, failed);
    if (table == NULL) {
        ds_accel__json_set(tree, "current_device_name", json_null(), failed);
        return;
    }
    if (table->device_get_current(facts->instance, &current, &error) < 0) {
        current = 0;
    }
    if (indexed) {
        snprintf(name, sizeof(name), "%.*s:%u", ds_accel__device_name_length(facts->name),
                 facts->name, current);
    }
    set_text(tree, "current_device_name", name, failed);
}

/* Apply the operator's setting for the dtype of one bit to the set of dtypes that the device
 * computes with; returns the new set. A set that is not known (-1) stays unknown. */
static int by_operator(const struct ds_accel__facts *facts, const char *key, int bit, int bits)
{
    json_t *word = ds_accel__operator_fact(facts->context, facts->name, key);

    if (bits < 0 || !json_is_boolean(word)) {
        return bits;
    }
    return json_is_true(word) ? bits | bit : bits & ~bit;
}

void ds_accel__facts_set(json_t *tree, const struct ds_accel__facts *facts, bool *failed)
{
    int dtypes = by_operator(facts, "is_bf16_supported", 4,
                             by_operator(facts, "is_fp16_supported", 2, computed_dtypes(facts)));
    const struct {
        const char *key;
        json_t *value;
    } rows[] = {
        {"supported_dtypes", dtypes_tree(dtypes, failed)},
        {"is_bf16_supported", dtypes < 0 ? NULL : json_boolean((dtypes & 4) != 0)},
        {"is_fp16_supported", dtypes < 0 ? NULL : json_boolean((dtypes & 2) != 0)},
        {"is_triton_supported", flag(facts, DS_ACCEL_FLAG_TRITON)},
        {"prefer_triton_grouped_mm", flag(facts, DS_ACCEL_FLAG_TRITON_GROUPED_MM)},
        {"supports_range_domains", flag(facts, DS_ACCEL_FLAG_RANGE_DOMAINS)},
        {"graph_supported", flag(facts, DS_ACCEL_FLAG_GRAPHS)},
        {"is_synchronized_device", flag(facts, DS_ACCEL_FLAG_SYNCHRONIZED)},
        {"use_host_timers", flag(facts, DS_ACCEL_FLAG_HOST_TIMERS)},
        {"resolves_data_dependency", flag(facts, DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES)},
        {"handles_memory_backpressure", flag(facts, DS_ACCEL_FLAG_HANDLES_BACKPRESSURE)},
        {"communication_backend", text_or_null(facts->info.communication_backend)},
        {"compile_backend", text_or_null(facts->info.compile_backend)},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        ds_accel__json_set(tree, rows[i].key, ds_accel__fact(facts, rows[i].key, rows[i].value),
                           failed);
    }
    ds_accel__json_set(
        tree, "visible_devices_envs",
        names_tree(facts, "visible_devices_envs", DS_ACCEL_ENV_LIST_VISIBLE_DEVICES, failed),
        failed);
    ds_accel__json_set(tree, "export_envs",
                       names_tree(facts, "export_envs", DS_ACCEL_ENV_LIST_EXPORT, failed), failed);
}

static json_t *info_tree(const struct ds_accel__facts *facts, uint32_t count)
{
    const struct ds_accel__candidate *candidate = facts->candidate;
    bool available = facts->instance != NULL;
    enum ds_accel__reason_id reason = available           ? DS_ACCEL__REASON_NONE
                                      : candidate != NULL ? candidate->reason
                                                          : DS_ACCEL__REASON_NO_PLUGIN;
    bool failed = false;
    json_t *limit = NULL;
    json_t *tree = json_object();

    ds_accel__json_set(tree, "schema_version", json_integer(1), &failed);
    set_text(tree, "name", facts->name, &failed);
    ds_accel__json_set(tree, "available", json_boolean(available), &failed);
    set_text(tree, "reason", ds_accel__reason_code(reason), &failed);
    set_text(tree, "detail", candidate != NULL ? candidate->detail : "", &failed);
    set_text(tree, "remedy", ds_accel__config_remedy(&facts->context->config, facts->name, reason),
             &failed);
    set_names(tree, facts, &failed);
    ds_accel__json_set(tree, "device_count", number_or_null(available, count), &failed);
    ds_accel__json_set(tree, "devices",
                       available ? devices_tree(facts, count, &limit, &failed) : json_null(),
                       &failed);
    ds_accel__json_set(tree, "memory_limit", limit != NULL ? limit : json_null(), &failed);
    ds_accel__facts_set(tree, facts, &failed);
    ds_accel__json_set(tree, "op_builders", op_builders_tree(facts, &failed), &failed);
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

int32_t ds_accel__with_facts(ds_accel_t *context, const char *name,
                             json_t *(*make_tree)(const struct ds_accel__facts *facts,
                                                  uint32_t count),
                             json_t **tree_out)
{
    struct ds_accel__candidate *candidate;
    ds_accel_plugin_instance_t *instance;
    struct ds_accel__facts facts;
    uint32_t count = 0;
    bool started;
    int32_t status = DS_ACCEL_OK;

    if (name == NULL) {
        if (context->selected == NULL) {
            return ds_accel__error(DS_ACCEL_ERR_STATE, "no accelerator is chosen");
        }
        name = context->selected->name;
    }
    if (!is_known(context, name)) {
        return fail_unknown(context, name);
    }
    candidate = ds_accel__registry_find(&context->registry, name);
    ds_accel__evaluation_begin(context);
    if (candidate != NULL) {
        status = ds_accel__candidate_evaluate_named(candidate);
    }
    if (status < 0) {
        ds_accel__evaluation_end(context);
        return status;
    }
    instance = borrow_instance(context, candidate, &count, &started);
    ds_accel__evaluation_end(context);
    ds_accel__facts_read(&facts, context, name, candidate, instance);
    *tree_out = make_tree(&facts, count);
    if (started && candidate != NULL) {
        ds_accel__candidate_stop(candidate, instance);
    }
    return *tree_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

int32_t ds_accel__report_info(ds_accel_t *context, const char *name, json_t **tree_out)
{
    return ds_accel__with_facts(context, name, info_tree, tree_out);
}

/* ---- env ------------------------------------------------------------------------------------ */

static bool is_applied(const ds_accel_t *context, const char *name, const char *rule)
{
    bool is_set = ds_accel__context_variable(context, name) != NULL;

    if (strcmp(rule, "always") == 0) {
        return true;
    }
    return strcmp(rule, "unset") == 0 ? is_set : !is_set;
}

static void add_rule(const ds_accel_t *context, json_t *array, const char *name, const char *value,
                     const char *rule, const char *origin, bool *failed)
{
    json_t *tree = json_object();

    set_text(tree, "name", name, failed);
    set_text(tree, "value", value, failed);
    set_text(tree, "rule", rule, failed);
    ds_accel__json_set(tree, "applied", json_boolean(is_applied(context, name, rule)), failed);
    set_text(tree, "origin", origin, failed);
    if (json_array_append_new(array, tree) != 0) {
        *failed = true;
    }
}

static void add_configured_rules(const struct ds_accel__facts *facts, json_t *array, bool *failed)
{
    const struct ds_accel__config *config = &facts->context->config;
    json_t *rules = ds_accel__config_backend(config, facts->name, "env");

    for (size_t i = 0; i < json_array_size(rules); i++) {
        json_t *rule = json_array_get(rules, i);
        const char *name = json_string_value(json_object_get(rule, "name"));
        const char *kind = json_string_value(json_object_get(rule, "rule"));
        char *pointer = ds_accel__format("/backends/%s/env/%zu", facts->name, i);
        char *origin = pointer != NULL ? ds_accel__config_origin(config, pointer) : NULL;

        if (name != NULL) {
            add_rule(facts->context, array, name, json_string_value(json_object_get(rule, "value")),
                     kind != NULL ? kind : "if-unset", origin, failed);
        }
        free(origin);
        free(pointer);
    }
}

static void add_plugin_rules(const struct ds_accel__facts *facts, json_t *array, bool *failed)
{
    static const char *const kinds[] = {"", "if-unset", "always", "unset"};
    const struct ds_accel_plugin *table = table_of(facts);
    struct ds_accel_env_rule rules[LIST_LIMIT];
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint32_t count = 0;

    memset(rules, 0, sizeof(rules));
    for (size_t i = 0; i < LIST_LIMIT; i++) {
        rules[i].struct_size = sizeof(rules[i]);
    }
    if (table == NULL || table->env_rules_get(facts->instance, rules, sizeof(rules[0]), LIST_LIMIT,
                                              &count, &error) != DS_ACCEL_OK) {
        return;
    }
    for (uint32_t i = 0; i < count && i < LIST_LIMIT; i++) {
        bool needs_value = rules[i].rule != DS_ACCEL_ENV_UNSET;

        if (rules[i].rule >= DS_ACCEL_ENV_IF_UNSET && rules[i].rule <= DS_ACCEL_ENV_UNSET &&
            is_plain(rules[i].name, 64) && ds_accel__is_settable_variable(rules[i].name) &&
            (!needs_value || is_plain(rules[i].value, 4096))) {
            add_rule(facts->context, array, rules[i].name, needs_value ? rules[i].value : "",
                     kinds[rules[i].rule], facts->candidate->path, failed);
        } else {
            ds_accel__log(&facts->context->log, facts->name, DS_ACCEL_LOG_WARN,
                          "env rule %u of the plugin is ignored: it is not well-formed", i);
        }
    }
}

json_t *ds_accel__env_tree(const struct ds_accel__facts *facts)
{
    bool failed = false;
    json_t *tree = json_object();
    json_t *array = json_array();

    ds_accel__json_set(tree, "schema_version", json_integer(1), &failed);
    set_text(tree, "accelerator", facts->name, &failed);
    add_configured_rules(facts, array, &failed);
    add_plugin_rules(facts, array, &failed);
    ds_accel__json_set(tree, "variables", array, &failed);
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

static json_t *env_tree(const struct ds_accel__facts *facts, uint32_t count)
{
    (void)count;
    return ds_accel__env_tree(facts);
}

int32_t ds_accel__report_env(ds_accel_t *context, const char *name, json_t **tree_out)
{
    return ds_accel__with_facts(context, name, env_tree, tree_out);
}
