/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Searches the caches for the file of an op, and checks the one that it finds. */
#include "base/json.h"
#include "base/text.h"
#include "host/context.h"
#include "ops/allow.h"
#include "ops/inputs.h"
#include "ops/manifest.h"
#include "ops/resolution.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ATTEMPTS 3

/* A file of a network file system that another host replaced is read again. */
static int32_t read_digest(const char *path, char digest_out[65])
{
    int32_t status = ds_accel__source_digest(path, digest_out);

    for (int i = 1; i < ATTEMPTS && status == DS_ACCEL_ERR_IO; i++) {
        status = ds_accel__source_digest(path, digest_out);
    }
    return status;
}

/* Take the undamaged file of an entry, with the finding of the allow-list. Takes ownership of the
 * path. */
static int32_t take_kernel(struct ds_accel__resolution *resolution, struct ds_accel__kernel *kernel,
                           const json_t *entry, const char *digest)
{
    struct ds_accel__resolved *resolved = resolution->resolved;
    bool is_for_backend = strchr(resolution->recipe.name, '/') != NULL;
    int32_t status = ds_accel__allow_check(resolution->context,
                                           is_for_backend ? resolution->backend : NULL,
                                           resolution->recipe.op, digest, kernel);

    free(resolved->kernel.path); /* of an entry before, that was refused */
    resolved->kernel = *kernel;
    resolved->origin = DS_ACCEL__ORIGIN_CACHED;
    ds_accel__copy(resolved->key, sizeof(resolved->key), ds_accel__json_string(entry, "key"));
    ds_accel__copy(resolved->sha256, sizeof(resolved->sha256), digest);
    return status;
}

int32_t ds_accel__resolution_try(struct ds_accel__resolution *resolution, const char *store,
                                 const json_t *entry, bool *found_out)
{
    struct ds_accel__kernel kernel = {
        .path = ds_accel__store_file(store, resolution->recipe.name,
                                     ds_accel__json_string(entry, "key"))};
    char digest[65] = "";
    int32_t status = kernel.path != NULL
                         ? ds_accel__kernel_check(kernel.path, resolution->recipe.op, &kernel.info,
                                                  &kernel.finding)
                         : ds_accel__no_memory();

    *found_out = false;
    if (status >= 0 && kernel.finding.reason == DS_ACCEL__REASON_NONE) {
        *found_out = read_digest(kernel.path, digest) >= 0 &&
                     strcmp(digest, ds_accel__json_string(entry, "sha256")) == 0;
    }
    if (*found_out) {
        status = take_kernel(resolution, &kernel, entry, digest);
        *found_out = status >= 0 && kernel.finding.reason == DS_ACCEL__REASON_NONE;
        return status;
    }
    if (status >= 0) {
        ds_accel__log(&resolution->context->log, "ops", DS_ACCEL_LOG_WARN, "%s is not used: %s",
                      kernel.path,
                      kernel.finding.reason != DS_ACCEL__REASON_NONE
                          ? kernel.finding.detail
                          : "its contents are not those that were built");
    }
    free(kernel.path);
    return status;
}

/* Warn if there is a manifest all the same. */
static int32_t explain_missing(const struct ds_accel__resolution *resolution, const char *store)
{
    char *path =
        ds_accel__store_manifest(store, resolution->recipe.name, resolution->recipe_digest);

    if (path == NULL) {
        return ds_accel__no_memory();
    }
    if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        ds_accel__log(&resolution->context->log, "ops", DS_ACCEL_LOG_WARN,
                      "%s is not used: it is damaged, or another user could have changed it", path);
    }
    free(path);
    return DS_ACCEL_OK;
}

/* Whether the caller could not load this file. */
static bool is_rejected(const struct ds_accel__resolution *resolution, const json_t *entry)
{
    const char *rejected = resolution->options->rejected;

    return rejected != NULL && strcmp(ds_accel__json_string(entry, "sha256"), rejected) == 0;
}

/* Try the entries that match, one by one. */
static int32_t try_entries(struct ds_accel__resolution *resolution, const char *store,
                           const json_t *manifest, bool *found_out)
{
    const char *toolchain = resolution->toolchain.digest[0] != '\0' ? resolution->toolchain.digest
                                                                    : NULL;
    const json_t *entry = NULL;
    int32_t status;

    do {
        status = ds_accel__manifest_match(manifest, &resolution->recipe, toolchain, &entry);
        if (status >= 0 && entry != NULL && !is_rejected(resolution, entry)) {
            status = ds_accel__resolution_try(resolution, store, entry, found_out);
            resolution->resolved->inputs =
                *found_out ? ds_accel__inputs_list(resolution, store, entry) : NULL;
        }
    } while (status >= 0 && entry != NULL && !*found_out);
    return status;
}

int32_t ds_accel__resolution_search(struct ds_accel__resolution *resolution, bool *found_out)
{
    int32_t status = DS_ACCEL_OK;

    *found_out = false;
    for (size_t i = 0; i < resolution->stores.count && status >= 0 && !*found_out; i++) {
        const char *store = resolution->stores.paths[i];
        json_t *manifest;

        status = ds_accel__store_read(store, resolution->recipe.name, resolution->recipe_digest,
                                      &manifest);
        if (status >= 0 && manifest == NULL) {
            status = explain_missing(resolution, store);
        } else if (status >= 0) {
            status = try_entries(resolution, store, manifest, found_out);
        }
        json_decref(manifest);
    }
    /* What the allow-list refuses is the result if there is nothing else. */
    *found_out = *found_out || (status >= 0 && resolution->resolved->kernel.path != NULL);
    return status;
}
