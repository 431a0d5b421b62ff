/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Where the caches of ops are. Unlike verdicts about plugins, ops may be on a file system that
 * hosts share, because their names follow from their contents.
 */
#include "base/text.h"
#include "base/trust.h"
#include "config/env.h"
#include "config/prefix.h"
#include "host/cache_disk.h"
#include "host/context.h"
#include "ops/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The user's own directory; *path_out is NULL if there is none. ERR_NO_MEMORY. */
static int32_t find_user_store(const ds_accel_t *context, char **path_out)
{
    const char *given = context->cache_dir != NULL
                            ? context->cache_dir
                            : context->env.values[DS_ACCEL__VARIABLE_CACHE_DIR];
    char *base;

    *path_out = NULL;
    if (given != NULL && given[0] != '/') {
        return DS_ACCEL_OK;
    }
    if (given != NULL) {
        *path_out = ds_accel__format("%s/ops", given);
        return *path_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    /* Root builds for the system. */
    base = geteuid() != 0 ? ds_accel__env_user_cache_dir() : NULL;
    if (base == NULL) {
        return DS_ACCEL_OK;
    }
    *path_out = ds_accel__format("%s/ds-accel/ops", base);
    free(base);
    return *path_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

/* Whether a directory exists or can be created, with its parents. ERR_NO_MEMORY. */
static int32_t can_be_written(const char *path, bool *can_out)
{
    char *parent = strdup(path);
    char *slash;

    if (parent == NULL) {
        return ds_accel__no_memory();
    }
    while (access(parent, F_OK) != 0 && (slash = strrchr(parent, '/')) != NULL && slash > parent) {
        *slash = '\0';
    }
    *can_out = access(parent, W_OK | X_OK) == 0;
    free(parent);
    return DS_ACCEL_OK;
}

static int32_t locate_local(const ds_accel_t *context, struct ds_accel__stores *stores)
{
    const struct ds_accel__cache_place place = ds_accel__cache_place(context);
    char problem[512];
    const char *given = place.directory != NULL && place.directory[0] == '/' &&
                                ds_accel__cache_directory_is_shared(place.directory)
                            ? NULL
                            : place.directory;
    int32_t status = ds_accel__cache_directory_find(
        given, &stores->local, &stores->is_local_private, problem, sizeof(problem));

    if (problem[0] != '\0') {
        free(stores->local);
        stores->local = NULL;
    }
    return status;
}

/* Add a path, and own it, unless it is there already. */
static void add_path(struct ds_accel__stores *stores, char *path)
{
    for (size_t i = 0; i < stores->count; i++) {
        if (strcmp(stores->paths[i], path) == 0) {
            free(path);
            return;
        }
    }
    stores->paths[stores->count++] = path;
}

/* Add the user's caches, and choose the one that is written. */
static int32_t add_user(const ds_accel_t *context, struct ds_accel__stores *stores)
{
    char *user;
    char *local = NULL;
    const char *writable = stores->paths[0];
    const char *mode = context->env.values[DS_ACCEL__VARIABLE_CACHE];
    bool can_write = false;
    int32_t status = find_user_store(context, &user);

    if (status >= 0 && user != NULL) {
        status = can_be_written(user, &can_write);
    }
    if (status < 0) {
        free(user);
        return status;
    }
    if (can_write) {
        writable = user;
    } else if (geteuid() != 0 && stores->local != NULL) {
        /* The home is mounted read-only, or there is none. */
        local = ds_accel__format("%s/ops", stores->local);
        writable = local;
        if (local == NULL) {
            free(user);
            return ds_accel__no_memory();
        }
    }
    if (mode == NULL || strcmp(mode, "ro") != 0) {
        stores->writable = strdup(writable);
    }
    if (user != NULL) {
        add_path(stores, user);
    }
    if (local != NULL) {
        add_path(stores, local);
    }
    return stores->writable != NULL || (mode != NULL && strcmp(mode, "ro") == 0)
               ? DS_ACCEL_OK
               : ds_accel__no_memory();
}

int32_t ds_accel__stores_locate(const ds_accel_t *context, struct ds_accel__stores *stores)
{
    const char *mode = context->env.values[DS_ACCEL__VARIABLE_CACHE];
    bool is_off = context->has_no_cache || (mode != NULL && strcmp(mode, "off") == 0);
    bool is_raised = ds_accel__has_raised_rights();
    int32_t status;

    *stores = (struct ds_accel__stores){.count = 0};
    if (is_off) {
        return DS_ACCEL_OK;
    }
    status = locate_local(context, stores);
    if (status >= 0) {
        stores->paths[0] = ds_accel__format("%s/ops", ds_accel__built_for.cache_dir);
        status = stores->paths[0] != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
        stores->count = status >= 0;
    }
    return status < 0 || is_raised ? status : add_user(context, stores);
}

void ds_accel__stores_clear(struct ds_accel__stores *stores)
{
    for (size_t i = 0; i < stores->count; i++) {
        free(stores->paths[i]);
    }
    free(stores->writable);
    free(stores->local);
    *stores = (struct ds_accel__stores){.count = 0};
}
