/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Statistics of a device's pinned memory, by the names that torch.cuda.host_memory_stats() uses.
 * pinned_figures.c counts them.
 */
#include "base/json.h"
#include "base/text.h"
#include "runtime/handle.h"
#include "runtime/pinned.h"

#include <stdio.h>
#include <string.h>

#define KEY_LIMIT 40
#define TEXT_LIMIT 48

struct keys {
    char texts[KEY_LIMIT][TEXT_LIMIT];
    uint64_t values[KEY_LIMIT];
    size_t count;
};

static void put(struct keys *keys, const char *group, const char *name, uint64_t value)
{
    snprintf(keys->texts[keys->count], TEXT_LIMIT, "%s%s%s", group, name[0] != '\0' ? "." : "",
             name);
    keys->values[keys->count++] = value;
}

static void put_figure(struct keys *keys, const char *group,
                       const struct ds_accel__pinned_figure *figure)
{
    put(keys, group, "allocated", figure->allocated);
    put(keys, group, "current", figure->current);
    put(keys, group, "freed", figure->freed);
    put(keys, group, "peak", figure->peak);
}

static void put_duration(struct keys *keys, const char *group,
                         const struct ds_accel__pinned_duration *duration)
{
    put(keys, group, "avg", duration->count > 0 ? duration->total_us / duration->count : 0);
    put(keys, group, "count", duration->count);
    put(keys, group, "max", duration->most_us);
    put(keys, group, "min", duration->least_us);
    put(keys, group, "total", duration->total_us);
}

static int32_t fill(ds_accel_device_t *device, const char *call, struct keys *keys)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, call);
    struct ds_accel__pinned_figures figures;
    struct ds_accel__pinned *pool;
    int32_t status;

    if (ours == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    status = ds_accel__device_fork_check(ours);
    if (status < 0) {
        return status;
    }
    pool = ds_accel__pinned_pool(ours);
    if (pool == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    pthread_mutex_lock(&pool->lock);
    figures = pool->figures;
    pthread_mutex_unlock(&pool->lock);
    keys->count = 0;
    put_figure(keys, "active_bytes", &figures.active_bytes);
    put_figure(keys, "active_requests", &figures.active);
    put_figure(keys, "allocated_bytes", &figures.bytes);
    put_figure(keys, "allocations", &figures.blocks);
    put_duration(keys, "host_alloc_time", &figures.allocating);
    put_duration(keys, "host_free_time", &figures.freeing);
    put(keys, "num_host_alloc", "", figures.blocks.allocated);
    put(keys, "num_host_free", "", figures.blocks.freed);
    put_figure(keys, "reserved_bytes", &figures.bytes);
    put_figure(keys, "segment", &figures.blocks);
    return DS_ACCEL_OK;
}

int32_t ds_accel_host_memory_stat(ds_accel_device_t *device, const char *key, int64_t *value_out)
{
    struct keys keys;
    const char *names[KEY_LIMIT];
    const char *nearest;
    int32_t status = fill(device, "host_memory_stat", &keys);

    if (status < 0) {
        return status;
    }
    if (key == NULL || value_out == NULL) {
        return ds_accel__refuse("host_memory_stat", key == NULL ? "key" : "output", NULL);
    }
    for (size_t i = 0; i < keys.count; i++) {
        if (strcmp(keys.texts[i], key) == 0) {
            *value_out = (int64_t)keys.values[i];
            return DS_ACCEL_OK;
        }
        names[i] = keys.texts[i];
    }
    nearest = ds_accel__nearest(key, names, keys.count);
    return ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                           "host_memory_stat: there is no statistic \"%.64s\"%s%s%s", key,
                           nearest != NULL ? "; did you mean \"" : "",
                           nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
}

int32_t ds_accel_host_memory_stats(ds_accel_device_t *device, char **json_text_out)
{
    struct keys keys;
    json_t *tree;
    bool failed;
    int32_t status = fill(device, "host_memory_stats", &keys);

    if (status < 0) {
        return status;
    }
    if (json_text_out == NULL) {
        return ds_accel__refuse("host_memory_stats", "output", NULL);
    }
    tree = json_object();
    failed = tree == NULL;
    for (size_t i = 0; i < keys.count; i++) {
        ds_accel__json_set(tree, keys.texts[i], json_integer((json_int_t)keys.values[i]), &failed);
    }
    *json_text_out = failed ? NULL : ds_accel__json_dump(tree, JSON_INDENT(2));
    json_decref(tree);
    return *json_text_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}
