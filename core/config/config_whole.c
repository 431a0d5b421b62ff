/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks of the merged configuration, for `ds-accel config check`: a file may leave out a member of
 * a row that another file has, so only the whole shows what is missing. Programs do not fail for
 * it: an incomplete row is the reason why its op cannot be used.
 */
#include "base/text.h"
#include "config/config.h"

/* A member without which a row cannot work. */
struct member {
    const char *key;
    bool is_list;
    const char *what;
};

static bool is_empty(const json_t *value, bool is_list)
{
    return is_list ? json_array_size(value) == 0
                   : json_string_length(value) == 0; /* 0 if there is no value, too */
}

static int32_t check_row(struct ds_accel__config *config, const char *above, const char *name,
                         const json_t *row, const struct member *member)
{
    char pointer[1024];
    char message[512];

    if (!json_is_object(row) || !is_empty(json_object_get(row, member->key), member->is_list)) {
        return DS_ACCEL_OK;
    }
    snprintf(pointer, sizeof(pointer), "%s", above);
    if (!ds_accel__pointer_append(pointer, sizeof(pointer), name)) {
        return DS_ACCEL_OK; /* the check of keys reports such a long key */
    }
    snprintf(message, sizeof(message),
             "\"%.64s\" has no \"%s\", %s: add it, or remove the row with \"%.64s\": null", name,
             member->key, member->what, name);
    return ds_accel__config_add_problem_at(config, pointer, message);
}

static int32_t check_builders(struct ds_accel__config *config, const char *backend, json_t *rows)
{
    static const struct member op = {"op", false, "the name of the op that it builds"};
    char above[1024] = "/backends";
    const char *name;
    json_t *row;
    int32_t status = DS_ACCEL_OK;

    if (!ds_accel__pointer_append(above, sizeof(above), backend) ||
        !ds_accel__pointer_append(above, sizeof(above), "op_builders")) {
        return DS_ACCEL_OK;
    }
    json_object_foreach(rows, name, row)
    {
        status = status >= 0 ? check_row(config, above, name, row, &op) : status;
    }
    return status;
}

static int32_t check_kernels(struct ds_accel__config *config)
{
    static const struct member members[] = {
        {"source_dir", false, "the directory of its sources"},
        {"sources", true, "the paths of its sources below source_dir"},
    };
    const char *name;
    json_t *row;
    int32_t status = DS_ACCEL_OK;

    json_object_foreach(ds_accel__config_get(config, "kernels", NULL), name, row)
    {
        for (size_t i = 0; i < ARRAY_SIZE(members) && status >= 0; i++) {
            status = check_row(config, "/kernels", name, row, &members[i]);
        }
    }
    return status;
}

int32_t ds_accel__config_check_whole(struct ds_accel__config *config)
{
    const char *backend;
    json_t *facts;
    int32_t status = check_kernels(config);

    json_object_foreach(ds_accel__config_get(config, "backends", NULL), backend, facts)
    {
        if (status >= 0) {
            status = check_builders(config, backend, json_object_get(facts, "op_builders"));
        }
    }
    return status >= 0 && config->problem_count > 0 ? DS_ACCEL_ERR_CONFIG : status;
}
