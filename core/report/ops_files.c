/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Removes, exports and imports what was built. An exported directory has the form of a cache
 * (ops/store.c), so that an import can check each file by the manifest that names it.
 */
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/trust.h"
#include "ds_accel_tools.h"
#include "host/context.h"
#include "ops/kernel.h"
#include "ops/manifest.h"
#include "ops/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MANIFEST_LIMIT_BYTES ((size_t)8 << 20)

static bool is_manifest(const char *name)
{
    size_t length = strlen(name);

    return name[0] != '.' && length > 5 && strcmp(name + length - 5, ".json") == 0;
}

/* Read a manifest by the name of its file. ERR_NOT_USABLE: it is none, or not to be trusted. */
static int32_t read_manifest(const char *directory, const char *name, json_t **manifest_out)
{
    char *path = ds_accel__join(directory, '/', name);
    const char *cause = "";
    char *data = NULL;
    size_t size = 0;
    int32_t status = path != NULL ? ds_accel__store_trust(path) : ds_accel__no_memory();

    *manifest_out = NULL;
    if (status >= 0) {
        status = ds_accel__file_read(path, MANIFEST_LIMIT_BYTES, &data, &size, &cause);
        if (status < 0 && status != DS_ACCEL_ERR_NO_MEMORY) {
            status = ds_accel__error(status, "%s: %s", path, cause);
        }
    }
    if (status >= 0) {
        status = ds_accel__manifest_parse(data, size, NULL, manifest_out);
        if (status >= 0 && *manifest_out == NULL) {
            status = ds_accel__error(DS_ACCEL_ERR_NOT_USABLE, "%s is no manifest of ops", path);
        }
    }
    free(data);
    free(path);
    return status;
}

/* ---- one file -------------------------------------------------------------------------------- */

/* Check the file of an entry: as before it is loaded, and by its digest. */
static int32_t check_file(const char *directory, const char *kernel, const json_t *entry)
{
    const char *slash = strchr(kernel, '/');
    char *path = ds_accel__store_file(directory, kernel, ds_accel__json_string(entry, "key"));
    struct ds_accel__finding finding = {.reason = DS_ACCEL__REASON_NONE};
    struct stat info;
    char digest[65];
    int32_t status = path != NULL ? ds_accel__kernel_check(path, slash != NULL ? slash + 1 : kernel,
                                                           &info, &finding)
                                  : ds_accel__no_memory();

    if (status >= 0 && finding.reason != DS_ACCEL__REASON_NONE) {
        status = ds_accel__error(DS_ACCEL_ERR_NOT_USABLE, "%s: %s: %s", path,
                                 ds_accel__reason_code(finding.reason), finding.detail);
    }
    if (status >= 0) {
        status = ds_accel__source_digest(path, digest);
    }
    if (status >= 0 && strcmp(digest, ds_accel__json_string(entry, "sha256")) != 0) {
        status = ds_accel__error(DS_ACCEL_ERR_NOT_USABLE,
                                 "%s is damaged: its contents are not those of the manifest", path);
    }
    free(path);
    return status;
}

static int32_t copy_data(int from, int to)
{
    char buffer[65536];
    ssize_t count;

    while ((count = read(from, buffer, sizeof(buffer))) > 0 || (count < 0 && errno == EINTR)) {
        for (ssize_t at = 0; at < count;) {
            ssize_t written = write(to, buffer + at, (size_t)(count - at));

            if (written < 0 && errno != EINTR) {
                return errno;
            }
            at += written > 0 ? written : 0;
        }
    }
    return count < 0 ? errno : 0;
}

/* Copy the file of an entry through the build directory. */
static int32_t copy_file(const char *directory, const char *kernel, const json_t *entry,
                         const struct ds_accel__build_dir *dir)
{
    char *path = ds_accel__store_file(directory, kernel, ds_accel__json_string(entry, "key"));
    int from = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    int to = from >= 0 ? openat(dir->fd, "copy.so", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
                       : -1;
    int error = to >= 0 ? copy_data(from, to) : errno;
    int32_t status = DS_ACCEL_OK;

    if (to >= 0 && close(to) != 0 && error == 0) {
        error = errno;
    }
    if (from >= 0) {
        close(from);
    }
    if (path == NULL) {
        return ds_accel__no_memory();
    }
    status = error != 0 ? ds_accel__error(DS_ACCEL_ERR_IO, "%s cannot be copied to %s: %s", path,
                                          dir->store, strerror(error))
                        : ds_accel__build_dir_publish(dir, "copy.so", strrchr(path, '/') + 1, NULL);
    free(path);
    return status;
}

/* ---- one manifest ---------------------------------------------------------------------------- */

/* Keep the entries that pass; must_pass: fail with the first that does not. */
static int32_t check_entries(const char *directory, json_t *manifest, bool must_pass)
{
    const char *kernel = ds_accel__json_string(manifest, "kernel");
    json_t *entries = json_object_get(manifest, "entries");

    for (size_t i = json_array_size(entries); i-- > 0;) {
        int32_t status = check_file(directory, kernel, json_array_get(entries, i));

        if (status == DS_ACCEL_ERR_NO_MEMORY || status == DS_ACCEL_ERR_LIMIT ||
            (status < 0 && must_pass)) {
            return status;
        }
        if (status < 0) {
            json_array_remove(entries, i);
        }
    }
    return DS_ACCEL_OK;
}

/* Copy the files of a checked manifest, then its entries into the manifest of the target. */
static int32_t copy_entries(const char *directory, const json_t *manifest,
                            const struct ds_accel__build_dir *dir, uint64_t *files)
{
    const char *kernel = ds_accel__json_string(manifest, "kernel");
    const char *recipe = ds_accel__json_string(manifest, "recipe");
    const json_t *entries = json_object_get(manifest, "entries");
    json_t *target = NULL;
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < json_array_size(entries) && status >= 0; i++) {
        status = copy_file(directory, kernel, json_array_get(entries, i), dir);
        *files += status >= 0;
    }
    if (status >= 0 && json_array_size(entries) > 0) {
        status = ds_accel__store_read(dir->store, kernel, recipe, &target);
        if (status >= 0 && target == NULL) {
            target = ds_accel__manifest_create(kernel, recipe);
        }
        /* The last one is added first, so that the order stays. */
        for (size_t i = json_array_size(entries); i-- > 0 && status >= 0;) {
            if (target == NULL ||
                !ds_accel__manifest_add(target, json_incref(json_array_get(entries, i)))) {
                status = ds_accel__no_memory();
            }
        }
        if (status >= 0) {
            status = ds_accel__store_write(dir, kernel, recipe, target);
        }
    }
    json_decref(target);
    return status;
}

/* Names of kernels become parts of paths. */
static bool is_kernel_name(const char *name)
{
    const char *allowed = "abcdefghijklmnopqrstuvwxyz0123456789_.";
    size_t length = strspn(name, allowed);

    return length > 0 && name[0] != '.' &&
           (name[length] == '\0' ||
            (name[length] == '/' && name[length + 1] != '\0' &&
             name[length + 1 + strspn(name + length + 1, allowed)] == '\0'));
}

/* Read and check all manifests of a directory, as a new array. */
static int32_t read_all(const char *directory, bool must_pass, json_t **manifests_out)
{
    const char *cause = "";
    char **names = NULL;
    size_t count = 0;
    json_t *manifests = json_array();
    int32_t status = manifests == NULL
                         ? ds_accel__no_memory()
                         : ds_accel__dir_list(directory, is_manifest, &names, &count, &cause);

    if (status < 0 && status != DS_ACCEL_ERR_NO_MEMORY) {
        status = ds_accel__error(status, "%s: %s", directory, cause);
    }
    for (size_t i = 0; i < count && status >= 0; i++) {
        json_t *manifest = NULL;

        status = read_manifest(directory, names[i], &manifest);
        if (status == DS_ACCEL_ERR_NOT_USABLE && !must_pass) {
            status = DS_ACCEL_OK;
            continue;
        }
        if (status >= 0 && !is_kernel_name(ds_accel__json_string(manifest, "kernel"))) {
            status = ds_accel__error(DS_ACCEL_ERR_NOT_USABLE, "%s/%s names no kernel", directory,
                                     names[i]);
        }
        if (status >= 0) {
            status = check_entries(directory, manifest, must_pass);
        }
        if (status >= 0 && json_array_append(manifests, manifest) != 0) {
            status = ds_accel__no_memory();
        }
        json_decref(manifest);
    }
    ds_accel__names_free(names, count);
    if (status < 0) {
        json_decref(manifests);
        return status;
    }
    *manifests_out = manifests;
    return DS_ACCEL_OK;
}

/* Copy everything from one directory to another one. An import is all or nothing. What is exported
 * is for other users, too. */
static int32_t copy_all(const char *from, const char *to, bool imports, uint64_t *files)
{
    struct ds_accel__build_dir dir;
    json_t *manifests = NULL;
    int32_t status = read_all(from, imports, &manifests);

    if (status < 0 || json_array_size(manifests) == 0) {
        json_decref(manifests);
        return status;
    }
    if (!imports) {
        ds_accel__make_directories(to, 0755); /* a failure is that of the next call */
    }
    status = ds_accel__build_dir_open(to, &dir);
    if (status >= 0) {
        for (size_t i = 0; i < json_array_size(manifests) && status >= 0; i++) {
            status = copy_entries(from, json_array_get(manifests, i), &dir, files);
        }
        ds_accel__build_dir_close(&dir);
    }
    json_decref(manifests);
    return status;
}

/* ---- public ---------------------------------------------------------------------------------- */

static int32_t no_cache(void)
{
    return ds_accel__error(DS_ACCEL_ERR_PERMISSION,
                           "DS_ACCEL_CACHE does not let this process write to the cache of ops");
}

int32_t ds_accel_ops_clean(ds_accel_t *context, const char *op, uint64_t *files_out)
{
    struct ds_accel__stores stores = {.count = 0};
    char *known = NULL;
    bool has_names = true;
    int32_t status;

    if (context == NULL || files_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "context or files_out is NULL");
    }
    *files_out = 0;
    status = op != NULL ? ds_accel__kernel_op(context, op, &known) : DS_ACCEL_OK;
    if (status < 0 && status != DS_ACCEL_ERR_NO_MEMORY) {
        status = DS_ACCEL_OK; /* a configuration with mistakes: the name is taken as it is */
        has_names = false;
    }
    if (status >= 0) {
        status = ds_accel__stores_locate(context, &stores);
    }
    if (status >= 0) {
        status = stores.writable == NULL
                     ? no_cache()
                     : ds_accel__store_clean(stores.writable, known != NULL ? known : op,
                                             &context->log, files_out);
    }
    /* The configuration may have lost an op since it was built. */
    if (status >= 0 && op != NULL && has_names && known == NULL && *files_out == 0) {
        status =
            ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                            "there is no op and no builder \"%s\", and nothing was built of it; "
                            "`ds-accel ops list -v` lists them",
                            op);
    }
    free(known);
    ds_accel__stores_clear(&stores);
    return status;
}

/* Check the arguments of an export or import, and locate the caches. */
static int32_t begin_copy(const ds_accel_t *context, const char *directory, uint64_t *files_out,
                          struct ds_accel__stores *stores)
{
    *stores = (struct ds_accel__stores){.count = 0};
    if (context == NULL || directory == NULL || files_out == NULL || directory[0] != '/') {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "context, directory or files_out is NULL, or the path is relative");
    }
    *files_out = 0;
    return ds_accel__stores_locate(context, stores);
}

int32_t ds_accel_ops_export(ds_accel_t *context, const char *directory, uint64_t *files_out)
{
    struct ds_accel__stores stores;
    int32_t status = begin_copy(context, directory, files_out, &stores);

    if (status >= 0 && stores.count == 0) {
        status = ds_accel__error(DS_ACCEL_ERR_PERMISSION,
                                 "DS_ACCEL_CACHE does not let this process read caches of ops");
    }
    for (size_t i = 0; i < stores.count && status >= 0; i++) {
        status = copy_all(stores.paths[i], directory, false, files_out);
    }
    if (status >= 0 && *files_out == 0) {
        status = ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                                 "nothing was built that could be exported: `ds-accel ops build`");
    }
    ds_accel__stores_clear(&stores);
    return status;
}

int32_t ds_accel_ops_import(ds_accel_t *context, const char *directory, uint64_t *files_out)
{
    struct ds_accel__stores stores;
    int32_t status = begin_copy(context, directory, files_out, &stores);

    if (status >= 0) {
        status = stores.writable == NULL ? no_cache()
                                         : copy_all(directory, stores.writable, true, files_out);
    }
    if (status >= 0 && *files_out == 0) {
        status = ds_accel__error(DS_ACCEL_ERR_NOT_FOUND, "%s has no exported ops", directory);
    }
    ds_accel__stores_clear(&stores);
    return status;
}
