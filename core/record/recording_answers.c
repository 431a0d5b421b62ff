/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Records as JSON the results of the plugin calls that reports make, except telemetry, and provides
 * a table of plugin functions that return the recorded results. The same description of each struct
 * is used for writing and reading. A recorded result contains the status of its call, and on
 * failure the plugin's error. A recorded list (names, rules, builders, links) contains only its
 * entries; it is empty if the call failed. Reading a missing result fails with ERR_NOT_FOUND and a
 * message that says so; a missing list of rules or builders is returned as an empty list. All other
 * functions of the table fail with ERR_UNSUPPORTED.
 */
#include "base/fork.h"
#include "base/json.h"
#include "base/text.h"
#include "record/recording.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_LIMIT 64u /* maximum number of recorded entries of one list */
#define DEVICE_LIMIT 256u

enum field_kind {
    U32,
    I32,
    U64,
    TEXT
};

struct field {
    const char *key;
    size_t offset;
    enum field_kind kind;
    size_t size; /* size of a TEXT in bytes; for other kinds, number of consecutive values */
};

#define NUMBER(type, member, kind) \
    { \
#member, offsetof(struct type, member), kind, 1 \
    }
#define STRING(type, member) \
    { \
#member, offsetof(struct type, member), TEXT, sizeof(((struct type *)0)->member) \
    }
#define END \
    { \
        NULL, 0, U32, 0 \
    }

static const struct field error_fields[] = {
    NUMBER(ds_accel_error, vendor_code, U64),
    STRING(ds_accel_error, vendor_text),
    STRING(ds_accel_error, message),
    END,
};

static const struct field info_fields[] = {
    NUMBER(ds_accel_backend_info, flags, U64),
    NUMBER(ds_accel_backend_info, flags_known, U64),
    STRING(ds_accel_backend_info, communication_backend),
    STRING(ds_accel_backend_info, compile_backend),
    {"communication_version", offsetof(struct ds_accel_backend_info, communication_version), U32,
     4},
    {"driver_version", offsetof(struct ds_accel_backend_info, driver_version), U32, 4},
    {"runtime_version", offsetof(struct ds_accel_backend_info, runtime_version), U32, 4},
    NUMBER(ds_accel_backend_info, memory_handle_bytes, U32),
    NUMBER(ds_accel_backend_info, event_handle_bytes, U32),
    END,
};

static const struct field identity_fields[] = {
    NUMBER(ds_accel_device_identity, device_index, U32),
    NUMBER(ds_accel_device_identity, valid, U32),
    NUMBER(ds_accel_device_identity, partition_kind, U32),
    NUMBER(ds_accel_device_identity, power_state, U32),
    NUMBER(ds_accel_device_identity, vendor_index, U32),
    NUMBER(ds_accel_device_identity, numa_node, U32),
    NUMBER(ds_accel_device_identity, parent_index, U32),
    NUMBER(ds_accel_device_identity, partition_instance, U32),
    NUMBER(ds_accel_device_identity, partition_subinstance, U32),
    NUMBER(ds_accel_device_identity, total_memory_bytes, U64),
    {"uuid", offsetof(struct ds_accel_device_identity, uuid), U32, 4},
    STRING(ds_accel_device_identity, uuid_text),
    STRING(ds_accel_device_identity, parent_uuid_text),
    STRING(ds_accel_device_identity, pci_address),
    STRING(ds_accel_device_identity, node_path),
    STRING(ds_accel_device_identity, architecture),
    STRING(ds_accel_device_identity, name),
    END,
};

static const struct field device_fields[] = {
    NUMBER(ds_accel_device_info, device_index, U32),
    STRING(ds_accel_device_info, name),
    NUMBER(ds_accel_device_info, total_memory_bytes, U64),
    NUMBER(ds_accel_device_info, compute_major, U32),
    NUMBER(ds_accel_device_info, compute_minor, U32),
    NUMBER(ds_accel_device_info, compute_unit_count, U32),
    NUMBER(ds_accel_device_info, warp_size, U32),
    NUMBER(ds_accel_device_info, max_threads_per_block, U32),
    NUMBER(ds_accel_device_info, max_core_clock_khz, U32),
    NUMBER(ds_accel_device_info, memory_bus_bits, U64),
    NUMBER(ds_accel_device_info, l2_cache_bytes, U64),
    NUMBER(ds_accel_device_info, allocation_align_bytes, U64),
    NUMBER(ds_accel_device_info, flags, U64),
    NUMBER(ds_accel_device_info, flags_known, U64),
    NUMBER(ds_accel_device_info, max_allocation_bytes, U64),
    END,
};

static const struct field memory_fields[] = {
    NUMBER(ds_accel_memory_info, valid, U32),
    NUMBER(ds_accel_memory_info, total_bytes, U64),
    NUMBER(ds_accel_memory_info, available_bytes, U64),
    NUMBER(ds_accel_memory_info, process_bytes, U64),
    NUMBER(ds_accel_memory_info, limit_bytes, U64),
    STRING(ds_accel_memory_info, limit_source),
    END,
};

static const struct field link_fields[] = {
    NUMBER(ds_accel_link, kind, U32),        NUMBER(ds_accel_link, peer_index, I32),
    NUMBER(ds_accel_link, width, U32),       NUMBER(ds_accel_link, generation, U32),
    NUMBER(ds_accel_link, is_up, U32),       NUMBER(ds_accel_link, bandwidth_bytes_per_s, U64),
    STRING(ds_accel_link, peer_pci_address), END,
};

/* ---- structs to JSON and back --------------------------------------------------------------- */

static size_t width_of(enum field_kind kind)
{
    return kind == U64 ? sizeof(uint64_t) : sizeof(uint32_t);
}

static json_t *number_tree(const char *at, enum field_kind kind)
{
    uint64_t wide = 0;
    uint32_t narrow = 0;

    if (kind == U64) {
        memcpy(&wide, at, sizeof(wide));
        return json_integer((json_int_t)wide);
    }
    memcpy(&narrow, at, sizeof(narrow));
    return json_integer(kind == I32 ? (json_int_t)(int32_t)narrow : (json_int_t)narrow);
}

static json_t *field_tree(const struct field *field, const char *data)
{
    const char *at = data + field->offset;
    json_t *array;

    if (field->kind == TEXT) {
        char text[512];

        assert(field->size <= sizeof(text)); /* a larger field would be truncated */
        ds_accel__copy(text, field->size < sizeof(text) ? field->size : sizeof(text), at);
        ds_accel__sanitize(text, sizeof(text));
        return ds_accel__json_text(text);
    }
    if (field->size == 1) {
        return number_tree(at, field->kind);
    }
    array = json_array();
    for (size_t i = 0; i < field->size; i++) {
        if (json_array_append_new(array,
                                  number_tree(at + i * width_of(field->kind), field->kind)) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static void add_fields(json_t *tree, const struct field *fields, const void *data, bool *failed)
{
    for (; fields->key != NULL; fields++) {
        assert(fields->size > 0);
        ds_accel__json_set(tree, fields->key, field_tree(fields, data), failed);
    }
}

static void read_number(const json_t *value, enum field_kind kind, char *at)
{
    uint64_t wide = (uint64_t)json_integer_value(value);
    uint32_t narrow = (uint32_t)wide;

    if (kind == U64) {
        memcpy(at, &wide, sizeof(wide));
    } else {
        memcpy(at, &narrow, sizeof(narrow));
    }
}

/* Fill a struct from a tree. A field whose member is missing or has another type stays zero. */
static void read_fields(const json_t *tree, const struct field *fields, void *data)
{
    for (; fields->key != NULL; fields++) {
        const json_t *value = json_object_get(tree, fields->key);
        char *at = (char *)data + fields->offset;

        if (fields->kind == TEXT) {
            ds_accel__copy(at, fields->size, json_string_value(value));
        } else if (fields->size == 1) {
            read_number(value, fields->kind, at);
        } else {
            for (size_t i = 0; i < fields->size && i < json_array_size(value); i++) {
                read_number(json_array_get(value, i), fields->kind,
                            at + i * width_of(fields->kind));
            }
        }
    }
}

/* ---- recording results ---------------------------------------------------------------------- */

struct taker {
    const struct ds_accel_plugin *table;
    ds_accel_plugin_instance_t *instance;
    struct ds_accel_error error;
    bool failed;
};

/* Clear the error before a call, so that no error of an earlier call remains. */
static struct ds_accel_error *fresh_error(struct taker *taker)
{
    taker->error = (struct ds_accel_error){.struct_size = sizeof(taker->error)};
    return &taker->error;
}

/* The tree of a result: the status, and the fields on success or the plugin's error on failure. */
static json_t *answer_tree(struct taker *taker, int32_t status, const struct field *fields,
                           const void *data)
{
    json_t *tree = json_object();

    ds_accel__json_set(tree, "status", json_integer(status), &taker->failed);
    if (status < 0) {
        add_fields(tree, error_fields, &taker->error, &taker->failed);
    } else if (fields != NULL) {
        add_fields(tree, fields, data, &taker->failed);
    }
    return tree;
}

static json_t *take_info(struct taker *taker)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    int32_t status = taker->table->backend_info(taker->instance, &info, fresh_error(taker));

    return answer_tree(taker, status, info_fields, &info);
}

static json_t *take_current(struct taker *taker)
{
    uint32_t current = 0;
    int32_t status =
        taker->table->device_get_current(taker->instance, &current, fresh_error(taker));
    json_t *tree = answer_tree(taker, status, NULL, NULL);

    ds_accel__json_set(tree, "index", json_integer(current), &taker->failed);
    return tree;
}

static json_t *take_names(struct taker *taker, uint32_t which)
{
    json_t *array = json_array();
    char name[64];

    for (uint32_t i = 0; i < LIST_LIMIT; i++) {
        name[0] = '\0';
        if (taker->table->env_name_get(taker->instance, which, i, name, sizeof(name),
                                       fresh_error(taker)) < 0) {
            break;
        }
        ds_accel__sanitize(name, sizeof(name));
        if (json_array_append_new(array, ds_accel__json_text(name)) != 0) {
            taker->failed = true;
        }
    }
    return array;
}

static json_t *text_or_null(const char *text)
{
    return text != NULL && strnlen(text, 4096) < 4096 ? ds_accel__json_text(text) : json_null();
}

static json_t *take_rules(struct taker *taker)
{
    struct ds_accel_env_rule rules[LIST_LIMIT];
    json_t *array = json_array();
    uint32_t count = 0;
    int32_t status;

    memset(rules, 0, sizeof(rules));
    for (size_t i = 0; i < LIST_LIMIT; i++) {
        rules[i].struct_size = sizeof(rules[i]);
    }
    status = taker->table->env_rules_get(taker->instance, rules, sizeof(rules[0]), LIST_LIMIT,
                                         &count, fresh_error(taker));
    for (uint32_t i = 0; status == DS_ACCEL_OK && i < count && i < LIST_LIMIT; i++) {
        json_t *tree = json_object();

        ds_accel__json_set(tree, "rule", json_integer(rules[i].rule), &taker->failed);
        ds_accel__json_set(tree, "name", text_or_null(rules[i].name), &taker->failed);
        ds_accel__json_set(tree, "value", text_or_null(rules[i].value), &taker->failed);
        if (json_array_append_new(array, tree) != 0) {
            taker->failed = true;
        }
    }
    return array;
}

static json_t *take_builders(struct taker *taker)
{
    struct ds_accel_op_builder builders[LIST_LIMIT];
    json_t *array = json_array();
    uint32_t count = 0;
    int32_t status;

    memset(builders, 0, sizeof(builders));
    for (size_t i = 0; i < LIST_LIMIT; i++) {
        builders[i].struct_size = sizeof(builders[i]);
    }
    status = taker->table->op_builders_get(taker->instance, builders, sizeof(builders[0]),
                                           LIST_LIMIT, &count, fresh_error(taker));
    for (uint32_t i = 0; status >= 0 && i < count && i < LIST_LIMIT; i++) {
        if (json_array_append_new(array, text_or_null(builders[i].builder)) != 0) {
            taker->failed = true;
        }
    }
    return array;
}

static json_t *take_links(struct taker *taker, uint32_t index)
{
    struct ds_accel_link links[LIST_LIMIT];
    json_t *array = json_array();
    uint32_t count = 0;
    int32_t status;

    memset(links, 0, sizeof(links));
    for (size_t i = 0; i < LIST_LIMIT; i++) {
        links[i].struct_size = sizeof(links[i]);
        links[i].peer_index = -1;
    }
    status = taker->table->links_get(taker->instance, index, links, sizeof(links[0]), LIST_LIMIT,
                                     &count, fresh_error(taker));
    for (uint32_t i = 0; status == DS_ACCEL_OK && i < count && i < LIST_LIMIT; i++) {
        json_t *tree = json_object();

        add_fields(tree, link_fields, &links[i], &taker->failed);
        if (json_array_append_new(array, tree) != 0) {
            taker->failed = true;
        }
    }
    return array;
}

/* Record the device's support for each data type that reports list. */
static json_t *take_dtypes(struct taker *taker, ds_accel_plugin_device_t *device)
{
    json_t *array = json_array();

    for (uint32_t dtype = DS_ACCEL_DTYPE_FLOAT32; dtype <= DS_ACCEL_DTYPE_BFLOAT16; dtype++) {
        uint32_t support = 0;
        int32_t status = taker->table->dtype_support(device, dtype, &support, fresh_error(taker));
        json_t *tree = answer_tree(taker, status, NULL, NULL);

        ds_accel__json_set(tree, "dtype", json_integer(dtype), &taker->failed);
        ds_accel__json_set(tree, "support", json_integer(support), &taker->failed);
        if (json_array_append_new(array, tree) != 0) {
            taker->failed = true;
        }
    }
    return array;
}

/* Record the results that need an open device, in the order in which the report info requests
 * them. */
static void take_open_device(struct taker *taker, json_t *tree, ds_accel_plugin_device_t *device)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    struct ds_accel_memory_info memory = {.struct_size = sizeof(memory)};
    int32_t status = taker->table->device_info(device, &info, fresh_error(taker));

    ds_accel__json_set(tree, "info", answer_tree(taker, status, device_fields, &info),
                       &taker->failed);
    status = taker->table->mem_info(device, &memory, fresh_error(taker));
    ds_accel__json_set(tree, "memory", answer_tree(taker, status, memory_fields, &memory),
                       &taker->failed);
    ds_accel__json_set(tree, "dtypes", take_dtypes(taker, device), &taker->failed);
}

static json_t *take_device(struct taker *taker, uint32_t index)
{
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
    ds_accel_plugin_device_t *device = NULL;
    json_t *tree = json_object();
    int32_t status =
        taker->table->device_identity(taker->instance, index, &identity, fresh_error(taker));

    ds_accel__json_set(tree, "identity", answer_tree(taker, status, identity_fields, &identity),
                       &taker->failed);
    ds_accel__json_set(tree, "links", take_links(taker, index), &taker->failed);
    status = taker->table->device_open(taker->instance, index, &device, fresh_error(taker));
    ds_accel__json_set(tree, "open", answer_tree(taker, status, NULL, NULL), &taker->failed);
    if (status == DS_ACCEL_OK && device != NULL) {
        take_open_device(taker, tree, device);
        taker->table->device_close(device);
    }
    return tree;
}

json_t *ds_accel__answers_take(const struct ds_accel_plugin *table,
                               ds_accel_plugin_instance_t *instance, uint32_t device_count)
{
    struct taker taker = {.table = table, .instance = instance};
    json_t *devices = json_array();
    json_t *tree = json_object();

    ds_accel__json_set(tree, "device_count", json_integer(device_count), &taker.failed);
    ds_accel__json_set(tree, "backend_info", take_info(&taker), &taker.failed);
    ds_accel__json_set(tree, "current_device", take_current(&taker), &taker.failed);
    ds_accel__json_set(tree, "visible_devices_envs",
                       take_names(&taker, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES), &taker.failed);
    ds_accel__json_set(tree, "export_envs", take_names(&taker, DS_ACCEL_ENV_LIST_EXPORT),
                       &taker.failed);
    ds_accel__json_set(tree, "env_rules", take_rules(&taker), &taker.failed);
    ds_accel__json_set(tree, "op_builders", take_builders(&taker), &taker.failed);
    for (uint32_t i = 0; i < device_count && i < DEVICE_LIMIT; i++) {
        if (json_array_append_new(devices, take_device(&taker, i)) != 0) {
            taker.failed = true;
        }
    }
    ds_accel__json_set(tree, "devices", devices, &taker.failed);
    if (taker.failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

/* ---- returning results ---------------------------------------------------------------------- */

/* The recorded results of a handle. The handle is a cast pointer to the tree of an instance or
 * device. */
static const json_t *tree_of(const void *handle)
{
    return handle;
}

static int32_t not_recorded(struct ds_accel_error *error, const char *what)
{
    const struct ds_accel_error said = {.struct_size = sizeof(said),
                                        .code = DS_ACCEL_ERR_NOT_FOUND};
    struct ds_accel_error copy = said;

    snprintf(copy.message, sizeof(copy.message), "%s: it was not recorded", what);
    ds_accel_write(error, &copy, sizeof(copy));
    return DS_ACCEL_ERR_NOT_FOUND;
}

/* Return the recorded status of a call. On success, fill data with the recorded fields; on failure,
 * fill error. ERR_NOT_FOUND: the call was not recorded. what: the name of the call, for the
 * error. */
static int32_t give(const json_t *answer, const char *what, const struct field *fields, void *data,
                    struct ds_accel_error *error)
{
    int32_t status = (int32_t)json_integer_value(json_object_get(answer, "status"));

    if (!json_is_object(answer)) {
        return not_recorded(error, what);
    }
    if (status < 0) {
        struct ds_accel_error copy = {.struct_size = sizeof(copy), .code = status};

        read_fields(answer, error_fields, &copy);
        ds_accel_write(error, &copy, sizeof(copy));
    } else if (fields != NULL) {
        read_fields(answer, fields, data);
    }
    return status;
}

static int32_t give_backend_info(ds_accel_plugin_instance_t *instance,
                                 struct ds_accel_backend_info *info_out,
                                 struct ds_accel_error *error)
{
    struct ds_accel_backend_info info = {0};
    int32_t status = give(json_object_get(tree_of(instance), "backend_info"), "backend_info",
                          info_fields, &info, error);

    if (status == DS_ACCEL_OK) {
        ds_accel_write(info_out, &info, sizeof(info));
    }
    return status;
}

static int32_t give_count(ds_accel_plugin_instance_t *instance, uint32_t *count_out,
                          struct ds_accel_error *error)
{
    (void)error;
    *count_out = (uint32_t)json_integer_value(json_object_get(tree_of(instance), "device_count"));
    return DS_ACCEL_OK;
}

static int32_t give_current(ds_accel_plugin_instance_t *instance, uint32_t *device_index_out,
                            struct ds_accel_error *error)
{
    const json_t *answer = json_object_get(tree_of(instance), "current_device");
    int32_t status = give(answer, "device_get_current", NULL, NULL, error);

    if (status == DS_ACCEL_OK) {
        *device_index_out = (uint32_t)json_integer_value(json_object_get(answer, "index"));
    }
    return status;
}

static const json_t *device_of(ds_accel_plugin_instance_t *instance, uint32_t index)
{
    return json_array_get(json_object_get(tree_of(instance), "devices"), index);
}

static int32_t give_identity(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                             struct ds_accel_device_identity *identity_out,
                             struct ds_accel_error *error)
{
    struct ds_accel_device_identity identity = {0};
    int32_t status = give(json_object_get(device_of(instance, device_index), "identity"),
                          "device_identity", identity_fields, &identity, error);

    if (status == DS_ACCEL_OK) {
        ds_accel_write(identity_out, &identity, sizeof(identity));
    }
    return status;
}

/* Only reports open recorded devices: for programs, opening one fails in device.c. */
static int32_t give_device(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                           ds_accel_plugin_device_t **device_out, struct ds_accel_error *error)
{
    const json_t *device = device_of(instance, device_index);
    int32_t status = give(json_object_get(device, "open"), "device_open", NULL, NULL, error);
    void *handle;

    if (status == DS_ACCEL_OK) {
        memcpy(&handle, &device, sizeof(handle)); /* drops const: the tree is only read */
        *device_out = handle;
    }
    return status;
}

static void close_device(ds_accel_plugin_device_t *device)
{
    (void)device;
}

static int32_t give_device_info(ds_accel_plugin_device_t *device,
                                struct ds_accel_device_info *info_out, struct ds_accel_error *error)
{
    struct ds_accel_device_info info = {0};
    int32_t status =
        give(json_object_get(tree_of(device), "info"), "device_info", device_fields, &info, error);

    if (status == DS_ACCEL_OK) {
        ds_accel_write(info_out, &info, sizeof(info));
    }
    return status;
}

static int32_t give_memory(ds_accel_plugin_device_t *device, struct ds_accel_memory_info *info_out,
                           struct ds_accel_error *error)
{
    struct ds_accel_memory_info info = {0};
    int32_t status =
        give(json_object_get(tree_of(device), "memory"), "mem_info", memory_fields, &info, error);

    if (status == DS_ACCEL_OK) {
        ds_accel_write(info_out, &info, sizeof(info));
    }
    return status;
}

static int32_t give_dtype(ds_accel_plugin_device_t *device, uint32_t dtype, uint32_t *support_out,
                          struct ds_accel_error *error)
{
    const json_t *answers = json_object_get(tree_of(device), "dtypes");

    for (size_t i = 0; i < json_array_size(answers); i++) {
        const json_t *answer = json_array_get(answers, i);

        if (json_integer_value(json_object_get(answer, "dtype")) == dtype) {
            int32_t status = give(answer, "dtype_support", NULL, NULL, error);

            if (status == DS_ACCEL_OK) {
                *support_out = (uint32_t)json_integer_value(json_object_get(answer, "support"));
            }
            return status;
        }
    }
    return not_recorded(error, "dtype_support");
}

static int32_t give_name(ds_accel_plugin_instance_t *instance, uint32_t which, uint32_t position,
                         char *name, uint32_t name_size, struct ds_accel_error *error)
{
    const json_t *names = json_object_get(
        tree_of(instance),
        which == DS_ACCEL_ENV_LIST_VISIBLE_DEVICES ? "visible_devices_envs" : "export_envs");
    const char *text = json_string_value(json_array_get(names, position));

    if (text == NULL) {
        return not_recorded(error, "env_name_get");
    }
    ds_accel__copy(name, name_size, text);
    return DS_ACCEL_OK;
}

static int32_t give_rules(ds_accel_plugin_instance_t *instance, struct ds_accel_env_rule *rules,
                          uint32_t stride_bytes, uint32_t capacity, uint32_t *count_out,
                          struct ds_accel_error *error)
{
    const json_t *answers = json_object_get(tree_of(instance), "env_rules");

    (void)error;
    for (uint32_t i = 0; i < json_array_size(answers) && i < capacity; i++) {
        const json_t *answer = json_array_get(answers, i);
        const struct ds_accel_env_rule rule = {
            .struct_size = sizeof(rule),
            .rule = (uint32_t)json_integer_value(json_object_get(answer, "rule")),
            .name = json_string_value(json_object_get(answer, "name")),
            .value = json_string_value(json_object_get(answer, "value")),
        };

        ds_accel_write_element(rules, stride_bytes, i, &rule, sizeof(rule));
    }
    *count_out = (uint32_t)json_array_size(answers);
    return DS_ACCEL_OK;
}

static int32_t give_builders(ds_accel_plugin_instance_t *instance,
                             struct ds_accel_op_builder *builders, uint32_t stride_bytes,
                             uint32_t capacity, uint32_t *count_out, struct ds_accel_error *error)
{
    const json_t *answers = json_object_get(tree_of(instance), "op_builders");

    (void)error;
    for (uint32_t i = 0; i < json_array_size(answers) && i < capacity; i++) {
        const struct ds_accel_op_builder builder = {
            .struct_size = sizeof(builder),
            .builder = json_string_value(json_array_get(answers, i)),
        };

        ds_accel_write_element(builders, stride_bytes, i, &builder, sizeof(builder));
    }
    *count_out = (uint32_t)json_array_size(answers);
    return DS_ACCEL_OK;
}

static int32_t give_links(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                          struct ds_accel_link *links, uint32_t stride_bytes, uint32_t capacity,
                          uint32_t *count_out, struct ds_accel_error *error)
{
    const json_t *answers = json_object_get(device_of(instance, device_index), "links");

    if (answers == NULL) {
        return not_recorded(error, "links_get");
    }
    for (uint32_t i = 0; i < json_array_size(answers) && i < capacity; i++) {
        struct ds_accel_link link = {.struct_size = sizeof(link)};

        read_fields(json_array_get(answers, i), link_fields, &link);
        ds_accel_write_element(links, stride_bytes, i, &link, sizeof(link));
    }
    *count_out = (uint32_t)json_array_size(answers);
    return DS_ACCEL_OK;
}

static void end_instance(ds_accel_plugin_instance_t *instance)
{
    (void)instance;
}

void ds_accel__answers_table(struct ds_accel_plugin *table)
{
    memset(table, 0, sizeof(*table));
    table->struct_size = sizeof(*table);
    table->abi_major = DS_ACCEL_ABI_MAJOR;
    table->abi_minor = DS_ACCEL_ABI_MINOR;
    table->shutdown = end_instance;
    table->backend_info = give_backend_info;
    table->device_count = give_count;
    table->device_get_current = give_current;
    table->device_identity = give_identity;
    table->device_open = give_device;
    table->device_close = close_device;
    table->device_info = give_device_info;
    table->mem_info = give_memory;
    table->dtype_support = give_dtype;
    table->env_name_get = give_name;
    table->env_rules_get = give_rules;
    table->op_builders_get = give_builders;
    table->links_get = give_links;
    ds_accel__table_fill(table, DS_ACCEL__STUB_UNSUPPORTED);
}
