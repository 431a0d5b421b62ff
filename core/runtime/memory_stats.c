/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Calls on a device's caching allocator besides allocation: statistics, limits, private pools,
 * history. If the device has no allocator yet, the first of these calls creates it, without
 * allocating device memory.
 */
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "host/context.h"
#include "host/registry.h"
#include "runtime/allocator/allocator.h"
#include "runtime/caching.h"
#include "runtime/handle.h"

#include <stdlib.h>
#include <unistd.h>

/* Return the allocator of a device; fails, with the error set, if the device handle is not live or
 * this process may not use the device. */
static int32_t find(ds_accel_device_t *device, const char *call,
                    struct ds_accel__allocator **allocator_out)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, call);
    int32_t status;

    if (ours == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    status = ds_accel__device_fork_check(ours);
    return status < 0 ? status : ds_accel__device_allocator(ours, allocator_out);
}

/* ---- statistics ----------------------------------------------------------------------------- */

struct wanted {
    const char *key;
    int64_t value;
    bool is_found;
    const char *names[256]; /* names of the other statistics, to suggest the nearest */
    size_t name_count;
    char texts[256][64];
};

static bool look(void *user_data, const char *key, int64_t value)
{
    struct wanted *wanted = user_data;

    if (strcmp(key, wanted->key) == 0) {
        wanted->value = value;
        wanted->is_found = true;
        return false;
    }
    if (wanted->name_count < ARRAY_SIZE(wanted->names)) {
        char *text = wanted->texts[wanted->name_count];

        ds_accel__copy(text, sizeof(wanted->texts[0]), key);
        wanted->names[wanted->name_count++] = text;
    }
    return true;
}

int32_t ds_accel_memory_stat(ds_accel_device_t *device, const char *key, int64_t *value_out)
{
    struct ds_accel__allocator *allocator;
    struct wanted *wanted;
    const char *nearest;
    int32_t status = find(device, "memory_stat", &allocator);

    if (status < 0) {
        return status;
    }
    if (key == NULL || value_out == NULL) {
        return ds_accel__refuse("memory_stat", key == NULL ? "key" : "output", NULL);
    }
    wanted = calloc(1, sizeof(*wanted));
    if (wanted == NULL) {
        return ds_accel__no_memory();
    }
    wanted->key = key;
    ds_accel__allocator_visit_stats(allocator, look, wanted);
    if (wanted->is_found) {
        *value_out = wanted->value;
    } else {
        nearest = ds_accel__nearest(key, wanted->names, wanted->name_count);
        status = ds_accel__error(DS_ACCEL_ERR_NOT_FOUND, "there is no statistic \"%s\"%s%s%s", key,
                                 nearest != NULL ? ": did you mean \"" : "",
                                 nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
    }
    free(wanted);
    return status;
}

static int32_t stat_as_bytes(ds_accel_device_t *device, const char *key, uint64_t *bytes_out)
{
    int64_t value = 0;
    int32_t status;

    if (bytes_out == NULL) {
        return ds_accel__refuse("memory figures", "output", NULL);
    }
    status = ds_accel_memory_stat(device, key, &value);
    if (status >= 0) {
        *bytes_out = (uint64_t)value;
    }
    return status;
}

int32_t ds_accel_memory_allocated(ds_accel_device_t *device, uint64_t *bytes_out)
{
    return stat_as_bytes(device, "allocated_bytes.all.current", bytes_out);
}

int32_t ds_accel_max_memory_allocated(ds_accel_device_t *device, uint64_t *bytes_out)
{
    return stat_as_bytes(device, "allocated_bytes.all.peak", bytes_out);
}

int32_t ds_accel_memory_reserved(ds_accel_device_t *device, uint64_t *bytes_out)
{
    return stat_as_bytes(device, "reserved_bytes.all.current", bytes_out);
}

int32_t ds_accel_max_memory_reserved(ds_accel_device_t *device, uint64_t *bytes_out)
{
    return stat_as_bytes(device, "reserved_bytes.all.peak", bytes_out);
}

static int32_t reset(ds_accel_device_t *device, const char *call, uint32_t which)
{
    struct ds_accel__allocator *allocator;
    int32_t status = find(device, call, &allocator);

    if (status >= 0) {
        ds_accel__allocator_reset_peaks(allocator, which);
    }
    return status;
}

int32_t ds_accel_reset_peak_memory_stats(ds_accel_device_t *device)
{
    return reset(device, "reset_peak_memory_stats",
                 DS_ACCEL_PEAK_ALLOCATED | DS_ACCEL_PEAK_RESERVED);
}

int32_t ds_accel_reset_max_memory_allocated(ds_accel_device_t *device)
{
    return reset(device, "reset_max_memory_allocated", DS_ACCEL_PEAK_ALLOCATED);
}

int32_t ds_accel_reset_max_memory_reserved(ds_accel_device_t *device)
{
    return reset(device, "reset_max_memory_reserved", DS_ACCEL_PEAK_RESERVED);
}

int32_t ds_accel_memory_stats(ds_accel_device_t *device, char **json_text_out)
{
    struct ds_accel__allocator *allocator;
    json_t *tree;
    int32_t status = find(device, "memory_stats", &allocator);

    if (status < 0) {
        return status;
    }
    if (json_text_out == NULL) {
        return ds_accel__refuse("memory_stats", "output", NULL);
    }
    tree = ds_accel__allocator_stats_tree(allocator);
    if (tree == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    *json_text_out = ds_accel__json_dump(tree, JSON_INDENT(2));
    json_decref(tree);
    return *json_text_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

/* Return the size of the device's memory, or of the part that this process may use. */
static uint64_t usable_bytes(const struct ds_accel_memory_info *info)
{
    return info->limit_bytes != 0 && info->limit_bytes < info->total_bytes ? info->limit_bytes
                                                                           : info->total_bytes;
}

int32_t ds_accel_total_memory(ds_accel_device_t *device, uint64_t *bytes_out)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    int32_t status = ds_accel_device_memory(device, &info);

    if (status >= 0 && bytes_out == NULL) {
        return ds_accel__refuse("total_memory", "output", NULL);
    }
    if (status >= 0) {
        *bytes_out = usable_bytes(&info);
    }
    return status;
}

int32_t ds_accel_available_memory(ds_accel_device_t *device, uint64_t *bytes_out)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    struct ds_accel__allocator *allocator;
    int32_t status = find(device, "available_memory", &allocator);

    if (status >= 0 && bytes_out == NULL) {
        return ds_accel__refuse("available_memory", "output", NULL);
    }
    status = status < 0 ? status : ds_accel_device_memory(device, &info);
    if (status >= 0) {
        uint64_t available = ds_accel__allocator_available(allocator, info.available_bytes);

        /* If the system commits memory at first use, its available bytes already include the cached
         * memory, which the sum then counts twice: limit the sum to the usable memory. */
        if ((info.valid & DS_ACCEL_MEMORY_TOTAL) != 0 && available > usable_bytes(&info)) {
            available = usable_bytes(&info);
        }
        *bytes_out = available;
    }
    return status;
}

int32_t ds_accel_memory_fragmentation(ds_accel_device_t *device, double *fragmentation_out,
                                      uint64_t *largest_bytes_out)
{
    struct ds_accel__allocator *allocator;
    uint64_t free_bytes;
    uint64_t largest_bytes;
    int32_t status = find(device, "memory_fragmentation", &allocator);

    if (status < 0) {
        return status;
    }
    if (fragmentation_out == NULL || largest_bytes_out == NULL) {
        return ds_accel__refuse("memory_fragmentation", "output", NULL);
    }
    ds_accel__allocator_free_space(allocator, &free_bytes, &largest_bytes);
    *fragmentation_out = free_bytes == 0 ? 0 : 1 - (double)largest_bytes / (double)free_bytes;
    *largest_bytes_out = largest_bytes;
    return DS_ACCEL_OK;
}

/* ---- control -------------------------------------------------------------------------------- */

int32_t ds_accel_memory_trim(ds_accel_device_t *device, uint64_t keep_bytes)
{
    struct ds_accel__allocator *allocator;
    int32_t status = find(device, "memory_trim", &allocator);

    return status < 0 ? status : ds_accel__allocator_trim(allocator, keep_bytes);
}

int32_t ds_accel_empty_cache(ds_accel_device_t *device)
{
    return ds_accel_memory_trim(device, 0);
}

int32_t ds_accel_memory_set_limit(ds_accel_device_t *device, uint64_t limit_bytes)
{
    struct ds_accel__allocator *allocator;
    int32_t status = find(device, "memory_set_limit", &allocator);

    if (status >= 0) {
        ds_accel__allocator_set_limit(allocator, limit_bytes);
    }
    return status;
}

int32_t ds_accel_memory_set_fraction(ds_accel_device_t *device, double fraction)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    uint64_t limit_bytes;
    int32_t status;

    if (!(fraction > 0 && fraction <= 1)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "memory_set_fraction: %g is not above 0 and at most 1", fraction);
    }
    status = ds_accel_device_memory(device, &info);
    if (status < 0) {
        return status;
    }
    limit_bytes = (uint64_t)((double)info.total_bytes * fraction);
    /* 0 would mean "no limit" */
    return ds_accel_memory_set_limit(device, limit_bytes > 0 ? limit_bytes : 1);
}

int32_t ds_accel_memory_set_failure_callback(ds_accel_device_t *device,
                                             ds_accel_memory_failure_t callback, void *user_data)
{
    struct ds_accel__allocator *allocator;
    int32_t status = find(device, "memory_set_failure_callback", &allocator);

    if (status >= 0) {
        ds_accel__allocator_set_callback(allocator, callback, user_data);
    }
    return status;
}

int32_t ds_accel_memory_record_history(ds_accel_device_t *device, uint32_t flags,
                                       uint64_t max_entries)
{
    struct ds_accel__allocator *allocator;
    int32_t status = find(device, "memory_record_history", &allocator);

    return status < 0 ? status : ds_accel__allocator_record_history(allocator, flags, max_entries);
}

/* Add one device's snapshot to the tree's arrays, and set the tree's allocator_settings. Does
 * nothing if the device has no allocator. */
static int32_t add_snapshot(const struct ds_accel__device *device, json_t *tree)
{
    struct ds_accel__allocator *allocator = __atomic_load_n(&device->allocator, __ATOMIC_ACQUIRE);
    json_t *settings;

    if (allocator == NULL) {
        return DS_ACCEL_OK;
    }
    settings = ds_accel__allocator_settings(allocator);
    if (settings == NULL || json_object_set_new(tree, "allocator_settings", settings) < 0) {
        return ds_accel__no_memory();
    }
    return ds_accel__allocator_snapshot(allocator, json_object_get(tree, "segments"),
                                        json_object_get(tree, "device_traces"),
                                        json_object_get(tree, "stats"));
}

/* Add the snapshots of all open devices of the context. */
static int32_t add_snapshots(ds_accel_t *context, json_t *tree)
{
    int32_t status = DS_ACCEL_OK;

    pthread_mutex_lock(&context->device_lock);
    for (uint32_t i = 0; i < context->device_count && context->devices != NULL && status >= 0;
         i++) {
        if (context->devices[i] != NULL) {
            status = add_snapshot(context->devices[i], tree);
        }
    }
    pthread_mutex_unlock(&context->device_lock);
    return status;
}

static json_t *make_snapshot(const char *backend)
{
    json_t *tree = json_object();
    bool failed = tree == NULL;

    ds_accel__json_set(tree, "schema_version", json_integer(1), &failed);
    ds_accel__json_set(tree, "backend", ds_accel__json_text(backend), &failed);
    ds_accel__json_set(tree, "pid", json_integer(getpid()), &failed);
    ds_accel__json_set(tree, "time_us", json_integer((json_int_t)ds_accel__wall_us()), &failed);
    ds_accel__json_set(tree, "segments", json_array(), &failed);
    ds_accel__json_set(tree, "device_traces", json_array(), &failed);
    ds_accel__json_set(tree, "allocator_settings", json_object(), &failed);
    ds_accel__json_set(tree, "stats", json_array(), &failed);
    if (failed) {
        json_decref(tree);
        ds_accel__no_memory();
        return NULL;
    }
    return tree;
}

int32_t ds_accel__memory_snapshot_tree(ds_accel_t *context, struct ds_accel__device *device,
                                       json_t **tree_out)
{
    const struct ds_accel__candidate *candidate =
        __atomic_load_n(&context->selected, __ATOMIC_ACQUIRE);
    json_t *tree = make_snapshot(candidate != NULL ? candidate->name : "");
    int32_t status;

    if (tree == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    status = device != NULL ? add_snapshot(device, tree) : add_snapshots(context, tree);
    if (status < 0) {
        json_decref(tree);
        return status;
    }
    *tree_out = tree;
    return DS_ACCEL_OK;
}

/* ---- private pools -------------------------------------------------------------------------- */

int32_t ds_accel_pool_create(ds_accel_device_t *device, ds_accel_pool_t **pool_out)
{
    struct ds_accel__allocator *allocator;
    struct ds_accel__pool *pool;
    int32_t status = find(device, "pool_create", &allocator);

    if (status < 0) {
        return status;
    }
    if (pool_out == NULL) {
        return ds_accel__refuse("pool_create", "output", NULL);
    }
    pool = ds_accel__handle_take(DS_ACCEL__HANDLE_POOL, (struct ds_accel__device *)device);
    if (pool == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    pool->memory = ds_accel__private_create(allocator);
    if (pool->memory == NULL) {
        ds_accel__handle_put(DS_ACCEL__HANDLE_POOL, pool);
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    pool->table = device->table;
    ds_accel__child_add(&pool->child);
    *pool_out = (ds_accel_pool_t *)pool;
    return DS_ACCEL_OK;
}

void ds_accel__pool_destroy(struct ds_accel__pool *pool)
{
    if (ds_accel__child_remove(&pool->child)) {
        struct ds_accel__allocator *allocator = pool->child.device->allocator;
        struct ds_accel__private *memory = pool->memory;

        ds_accel__handle_put(DS_ACCEL__HANDLE_POOL, pool);
        ds_accel__private_put(allocator, memory);
    }
}

void ds_accel_pool_destroy(ds_accel_pool_t *pool)
{
    if (ds_accel__handle_is_live(pool) &&
        ds_accel__device_lets_end(((struct ds_accel__pool *)pool)->child.device, "pool_destroy")) {
        ds_accel__pool_destroy((struct ds_accel__pool *)pool);
    }
}

static int32_t use_pool(ds_accel_pool_t *pool, const char *call, bool is_begun)
{
    struct ds_accel__pool *ours = (struct ds_accel__pool *)pool;
    int32_t status;

    if (!ds_accel__handle_is_live(pool)) {
        return ds_accel__refuse(call, "pool", pool);
    }
    status = ds_accel__device_fork_check(ours->child.device);
    return status < 0
               ? status
               : ds_accel__private_use(ours->child.device->allocator, ours->memory, is_begun);
}

int32_t ds_accel_pool_begin(ds_accel_pool_t *pool)
{
    return use_pool(pool, "pool_begin", true);
}

int32_t ds_accel_pool_end(ds_accel_pool_t *pool)
{
    return use_pool(pool, "pool_end", false);
}
