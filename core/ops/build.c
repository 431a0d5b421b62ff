/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Builds an op and stores it:
 *
 *     lock                 store_lock.c: one process of this host builds; others wait, then search
 *     build                compile.c, in a directory of its own
 *     check                is the file harmless, were the sources changed meanwhile?
 *     publish              sync; rename; manifest
 */
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "base/trust.h"
#include "host/context.h"
#include "ops/manifest.h"
#include "ops/resolution.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ATTEMPTS 3

/* ---- the result ------------------------------------------------------------------------------ */

/* Whether a file was changed since then, by the clock of its file system. */
static bool is_changed_since(const struct stat *info, const struct stat *since)
{
    return info->st_ctim.tv_sec > since->st_ctim.tv_sec ||
           (info->st_ctim.tv_sec == since->st_ctim.tv_sec &&
            info->st_ctim.tv_nsec >= since->st_ctim.tv_nsec);
}

/* Fail if another user could have changed a source or header. *info_out: of the file. */
static int32_t trust_input(struct ds_accel__trust *trust, const struct ds_accel__recipe *recipe,
                           const char *name, struct stat *info_out)
{
    struct ds_accel__finding finding = {.reason = DS_ACCEL__REASON_NONE};
    char *whole = name[0] == '/' ? strdup(name) : ds_accel__join(recipe->source_dir, '/', name);
    char *path = whole != NULL ? realpath(whole, NULL) : NULL;
    int32_t status;

    if (whole == NULL || (path == NULL && errno == ENOMEM)) {
        status = ds_accel__no_memory();
    } else if (path == NULL) {
        status = ds_accel__error(DS_ACCEL_ERR_IO, "%s cannot be read again", whole);
    } else {
        status = ds_accel__trust_stat(trust, path, info_out, &finding);
    }
    if (status >= 0 && finding.reason != DS_ACCEL__REASON_NONE) {
        status = ds_accel__error(DS_ACCEL_ERR_PERMISSION, "%s: %s: %s", path,
                                 ds_accel__reason_code(finding.reason), finding.detail);
    }
    free(path);
    free(whole);
    return status;
}

/*
 * Fail if another user could have changed a source or header. *changed_out: one was changed after
 * the build began, so it may differ from what was compiled.
 */
static int32_t trust_inputs(const struct ds_accel__recipe *recipe,
                            const struct ds_accel__build_dir *dir, char *const *headers,
                            bool *changed_out)
{
    char **files = ds_accel__recipe_flag_files(recipe, true);
    char *const *const lists[] = {recipe->sources, headers, files};
    struct ds_accel__trust *trust = ds_accel__trust_create();
    int32_t status = trust != NULL && files != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    struct stat info = {0};
    struct stat begin;

    *changed_out = fstat(dir->lock_fd, &begin) != 0;
    for (size_t list = 0; list < ARRAY_SIZE(lists); list++) {
        for (size_t i = 0; status >= 0 && lists[list][i] != NULL; i++) {
            status = trust_input(trust, recipe, lists[list][i], &info);
            *changed_out = *changed_out || (status >= 0 && is_changed_since(&info, &begin));
        }
    }
    for (size_t i = 0; i < recipe->image_count && status >= 0; i++) {
        status = trust_input(trust, recipe, recipe->images[i].source, &info);
        *changed_out = *changed_out || (status >= 0 && is_changed_since(&info, &begin));
    }
    ds_accel__trust_destroy(trust);
    ds_accel__arguments_free(files);
    return status;
}

/* Check the linked file: whole, harmless, with the note of this op. */
static int32_t check_result(const struct ds_accel__resolution *resolution, const char *path,
                            char digest_out[65])
{
    struct ds_accel__finding finding = {.reason = DS_ACCEL__REASON_NONE};
    struct stat info;
    int32_t status =
        chmod(path, 0644) == 0
            ? ds_accel__kernel_check(path, resolution->recipe.op, &info, &finding)
            : ds_accel__error(DS_ACCEL_ERR_IO, "%s: the compiler has not written it", path);

    if (status >= 0 && finding.reason != DS_ACCEL__REASON_NONE) {
        status = ds_accel__error(DS_ACCEL_ERR_NOT_USABLE, "%s: %s: %s", path,
                                 ds_accel__reason_code(finding.reason), finding.detail);
    }
    return status >= 0 ? ds_accel__source_digest(path, digest_out) : status;
}

/*
 * Make the digest of the sources again: an editor may have changed one since. Then fail, and set
 * the digest to that of the sources that the next build reads.
 */
static int32_t check_unchanged(struct ds_accel__resolution *resolution, bool *again_out)
{
    char digest[65];
    int32_t status = ds_accel__recipe_digest(&resolution->recipe, digest);

    if (status >= 0 && strcmp(digest, resolution->recipe_digest) != 0) {
        ds_accel__copy(resolution->recipe_digest, sizeof(resolution->recipe_digest), digest);
        *again_out = true;
        status = ds_accel__error(DS_ACCEL_ERR_IO,
                                 "a source in %s was changed while it was compiled: build it again",
                                 resolution->recipe.source_dir);
    }
    return status;
}

/* Add the entry to the manifest that is there now, or to a new one, and write it. */
static int32_t write_manifest(const struct ds_accel__resolution *resolution,
                              const struct ds_accel__build_dir *dir, json_t *entry)
{
    json_t *manifest;
    int32_t status = ds_accel__store_read(dir->store, resolution->recipe.name,
                                          resolution->recipe_digest, &manifest);

    if (status >= 0 && manifest == NULL) {
        manifest = ds_accel__manifest_create(resolution->recipe.name, resolution->recipe_digest);
        status = manifest != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    if (status >= 0 && !ds_accel__manifest_add(manifest, json_incref(entry))) {
        status = ds_accel__no_memory();
    }
    if (status >= 0) {
        status = ds_accel__store_write(dir, resolution->recipe.name, resolution->recipe_digest,
                                       manifest);
    }
    json_decref(manifest);
    return status;
}

/*
 * A source or header may have been changed after it was compiled. Fail, unless the build before
 * this one ended with the same contents of all of them, which then are those that were compiled.
 */
static int32_t check_doubtful(struct ds_accel__resolution *resolution, const json_t *entry,
                              bool *again_out)
{
    const char *key = ds_accel__json_string(entry, "key");

    if (strcmp(resolution->doubtful_key, key) == 0) {
        return DS_ACCEL_OK;
    }
    ds_accel__copy(resolution->doubtful_key, sizeof(resolution->doubtful_key), key);
    *again_out = true;
    return ds_accel__error(
        DS_ACCEL_ERR_IO,
        "a source or header of %s was changed while it was compiled: build it again",
        resolution->recipe.name);
}

/* Whether a file is there that could be loaded and has these contents. */
static int32_t is_there(const struct ds_accel__resolution *resolution, const char *path,
                        const char *digest, bool *is_there_out)
{
    struct ds_accel__finding finding = {.reason = DS_ACCEL__REASON_NONE};
    struct stat info;
    char there[65] = "";
    int32_t status = ds_accel__kernel_check(path, resolution->recipe.op, &info, &finding);

    *is_there_out = status >= 0 && finding.reason == DS_ACCEL__REASON_NONE &&
                    ds_accel__source_digest(path, there) >= 0 && strcmp(there, digest) == 0;
    return status;
}

/*
 * Move the file into the store. One with the same contents stays, because a process may be between
 * the check and the load of it.
 */
static int32_t publish_file(const struct ds_accel__resolution *resolution,
                            const struct ds_accel__build_dir *dir, const json_t *entry,
                            const char *digest)
{
    char *path = ds_accel__store_file(dir->store, resolution->recipe.name,
                                      ds_accel__json_string(entry, "key"));
    const char *name = path != NULL ? strrchr(path, '/') + 1 : NULL;
    bool exists = false;
    bool is_same = false;
    int32_t status = path != NULL
                         ? ds_accel__build_dir_publish(dir, DS_ACCEL__COMPILE_RESULT, name, &exists)
                         : ds_accel__no_memory();

    if (status >= 0 && exists) {
        status = is_there(resolution, path, digest, &is_same);
    }
    if (status >= 0 && exists && !is_same) {
        status = ds_accel__build_dir_publish(dir, DS_ACCEL__COMPILE_RESULT, name, NULL);
    }
    free(path);
    return status;
}

/* Move what was built into the store. *again_out: it failed, but is worth a retry. */
static int32_t publish(struct ds_accel__resolution *resolution,
                       const struct ds_accel__build_dir *dir, char *const *headers,
                       json_t **entry_out, bool *again_out)
{
    char *result = ds_accel__join(dir->path, '/', DS_ACCEL__COMPILE_RESULT);
    char digest[65];
    bool failed = false;
    bool is_doubtful = false;
    int32_t status = result != NULL ? check_result(resolution, result, digest)
                                    : ds_accel__no_memory();

    *entry_out = NULL;
    if (status >= 0) {
        status = check_unchanged(resolution, again_out);
    }
    if (status >= 0) {
        status = ds_accel__manifest_entry(&resolution->recipe, resolution->recipe_digest,
                                          resolution->toolchain.digest, headers, entry_out);
    }
    /* The times are read behind the contents, so that no change remains unnoticed. */
    if (status >= 0) {
        status = trust_inputs(&resolution->recipe, dir, headers, &is_doubtful);
    }
    if (status >= 0 && is_doubtful) {
        status = check_doubtful(resolution, *entry_out, again_out);
    }
    if (status >= 0) {
        ds_accel__json_set(*entry_out, "sha256", json_string(digest), &failed);
        failed = failed || (resolution->toolchain.is_specific &&
                            !ds_accel__manifest_mark_specific(*entry_out));
        status = failed ? ds_accel__no_memory() : publish_file(resolution, dir, *entry_out, digest);
    }
    if (status >= 0) {
        status = write_manifest(resolution, dir, *entry_out);
    }
    free(result);
    return status;
}

/*
 * Build once. *again_out: it is worth a retry, because the directory was removed, or a source or
 * header changed meanwhile.
 */
static int32_t build_once(struct ds_accel__resolution *resolution, bool *again_out)
{
    const struct ds_accel__compile_options options = {
        .machine = &resolution->context->machine,
        .jobs = resolution->options->jobs,
        .on_progress = resolution->options->on_progress,
        .user_data = resolution->options->user_data,
    };
    struct ds_accel__compile_failure failure;
    struct ds_accel__build_dir dir;
    char **headers = NULL;
    json_t *entry = NULL;
    bool found = false;
    bool again = false;
    int32_t status = ds_accel__build_dir_open(resolution->stores.writable, &dir);

    *again_out = false;
    if (status < 0) {
        return ds_accel__resolution_is_fatal(status)
                   ? status
                   : ds_accel__resolution_fail(resolution, DS_ACCEL__ORIGIN_FAILED);
    }
    status = ds_accel__compile(&resolution->recipe, &resolution->toolchain, &dir, &options,
                               &headers, &failure);
    if (status >= 0) {
        status = publish(resolution, &dir, headers, &entry, &again);
    }
    if (status >= 0) {
        status = ds_accel__resolution_try(resolution, dir.store, entry, &found);
        if (status >= 0 && !found && resolution->resolved->kernel.path == NULL) {
            again = true;
            status = ds_accel__error(DS_ACCEL_ERR_IO, "%s: the file was changed as it was built",
                                     dir.store);
        }
    }
    if (status >= 0) {
        resolution->resolved->origin = DS_ACCEL__ORIGIN_BUILT;
        ds_accel__build_dir_forget(&dir, resolution->recipe.name);
    } else if (!ds_accel__resolution_is_fatal(status)) {
        bool is_gone = access(dir.path, F_OK) != 0;

        *again_out = again || is_gone;
        status = failure.arguments != NULL && !is_gone
                     ? ds_accel__failure_keep(resolution, &dir, &failure)
                     : ds_accel__resolution_fail(resolution, DS_ACCEL__ORIGIN_FAILED);
    }
    if (dir.path != NULL) {
        ds_accel__build_dir_close(&dir);
    }
    json_decref(entry);
    ds_accel__arguments_free(headers);
    ds_accel__compile_failure_clear(&failure);
    return status;
}

int32_t ds_accel__resolution_build(struct ds_accel__resolution *resolution)
{
    uint64_t begin_ms = ds_accel__boot_ms();
    struct ds_accel__resolved *resolved = resolution->resolved;
    int lock = ds_accel__store_lock(&resolution->stores, resolution->recipe_digest,
                                    &resolution->context->log);
    char *message = NULL;
    bool found = false;
    bool again = true;
    int32_t status = DS_ACCEL_OK;

    if (!resolution->options->is_forced) {
        status = ds_accel__resolution_search(resolution, &found);
    }
    if (status >= 0 && !found) {
        status =
            ds_accel__store_lock_failure(lock, resolution->toolchain.digest, begin_ms, &message);
    }
    if (status >= 0 && message != NULL) {
        status = ds_accel__failure_take(resolved, message);
    }
    for (int i = 0; i < ATTEMPTS && status >= 0 && !found && message == NULL && again; i++) {
        ds_accel__failure_clear(resolved);
        /* Another process may have built the sources as they are now. */
        if (i > 0 && !resolution->options->is_forced) {
            status = ds_accel__resolution_search(resolution, &found);
        }
        if (status >= 0 && !found) {
            status = build_once(resolution, &again);
        }
    }
    if (status >= 0 && resolved->origin == DS_ACCEL__ORIGIN_FAILED &&
        resolution->is_sources_fault) {
        ds_accel__failure_leave(resolution, lock);
    }
    ds_accel__store_unlock(lock);
    free(message);
    return status;
}
