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

/* Whether a status is about one file, which an export leaves out, and not about the machine. */
static bool is_of_file(int32_t status)
{
    return status == DS_ACCEL_ERR_INVALID || status == DS_ACCEL_ERR_NOT_FOUND ||
           status == DS_ACCEL_ERR_UNTRUSTED;
}

/*
 * Read a manifest by the name of its file. ERR_INVALID: it is none; ERR_UNTRUSTED: another user
 * could have changed it.
 */
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
            status = ds_accel__error(DS_ACCEL_ERR_INVALID, "%s is no manifest of ops", path);
        }
    }
    free(data);
    free(path);
    return status;
}

/* ---- one file -------------------------------------------------------------------------------- */

/* Fail with what is wrong with a file. */
static int32_t fail(const char *path, const struct ds_accel__finding *finding)
{
    int32_t status = ds_accel__store_is_refusal(finding->reason) ? DS_ACCEL_ERR_UNTRUSTED
                                                                 : DS_ACCEL_ERR_INVALID;

    if (finding->reason == DS_ACCEL__REASON_ABI_UNSUPPORTED) {
        status = DS_ACCEL_ERR_ABI;
    }
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_FOUND, "%s: %s, but the manifest names it", path,
                               strerror(ENOENT));
    }
    return ds_accel__error(status, "%s: %s: %s", path, ds_accel__reason_code(finding->reason),
                           finding->detail);
}

/* Whether a file is well-formed, but for machines with another kind of processor. */
static bool is_for_others(const struct ds_accel__finding *finding)
{
    return finding->reason == DS_ACCEL__REASON_ELF_WRONG_MACHINE ||
           finding->reason == DS_ACCEL__REASON_ELF_WRONG_CLASS;
}

/*
 * Check the file of an entry: as before it is loaded, and by its digest. *foreign_out: it is
 * undamaged, and for other machines than this one.
 */
static int32_t check_file(const char *directory, const char *kernel, const json_t *entry,
                          bool *foreign_out)
{
    const char *slash = strchr(kernel, '/');
    char *path = ds_accel__store_file(directory, kernel, ds_accel__json_string(entry, "key"));
    struct ds_accel__finding finding = {.reason = DS_ACCEL__REASON_NONE};
    struct stat info;
    char digest[65];
    int32_t status = path != NULL ? ds_accel__kernel_check(path, slash != NULL ? slash + 1 : kernel,
                                                           &info, &finding)
                                  : ds_accel__no_memory();

    *foreign_out = is_for_others(&finding);
    if (status >= 0 && finding.reason != DS_ACCEL__REASON_NONE && !*foreign_out) {
        status = fail(path, &finding);
    }
    if (status >= 0) {
        status = ds_accel__source_digest(path, digest);
    }
    if (status >= 0 && strcmp(digest, ds_accel__json_string(entry, "sha256")) != 0) {
        status = ds_accel__error(DS_ACCEL_ERR_INVALID,
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

/* What is copied, and what of it was left out. */
struct copy {
    const struct ds_accel__log *log;
    const char *from;
    bool imports; /* a file that is damaged fails the import; an export leaves it out */
    uint64_t files;
    uint64_t skipped; /* files for other machines, and what an export left out */
};

/* Warn about a file that is left out. kernel: what it is a file of. */
static void warn_of_entry(const struct copy *copy, const char *kernel, const json_t *entry,
                          bool is_foreign)
{
    char *path = ds_accel__store_file(copy->from, kernel, ds_accel__json_string(entry, "key"));

    if (is_foreign) {
        ds_accel__log(copy->log, "ops", DS_ACCEL_LOG_WARN,
                      "%s is skipped: it is for machines with another kind of processor",
                      path != NULL ? path : kernel);
    } else {
        ds_accel__log(copy->log, "ops", DS_ACCEL_LOG_WARN, "%s is skipped: %s",
                      path != NULL ? path : kernel, ds_accel_last_error());
    }
    free(path);
}

/* Keep the entries that can be used on this machine. An import fails with the first damaged one. */
static int32_t check_entries(struct copy *copy, json_t *manifest)
{
    const char *kernel = ds_accel__json_string(manifest, "kernel");
    json_t *entries = json_object_get(manifest, "entries");

    for (size_t i = json_array_size(entries); i-- > 0;) {
        bool is_foreign = false;
        int32_t status = check_file(copy->from, kernel, json_array_get(entries, i), &is_foreign);

        if (status == DS_ACCEL_ERR_NO_MEMORY || status == DS_ACCEL_ERR_LIMIT ||
            (status < 0 && copy->imports)) {
            return status;
        }
        if (status < 0 || is_foreign) {
            warn_of_entry(copy, kernel, json_array_get(entries, i), status >= 0);
            copy->skipped++;
            json_array_remove(entries, i);
        }
    }
    return DS_ACCEL_OK;
}

/* Copy the files of a checked manifest, then its entries into the manifest of the target. */
static int32_t copy_entries(struct copy *copy, const json_t *manifest,
                            const struct ds_accel__build_dir *dir)
{
    const char *kernel = ds_accel__json_string(manifest, "kernel");
    const char *recipe = ds_accel__json_string(manifest, "recipe");
    const json_t *entries = json_object_get(manifest, "entries");
    json_t *target = NULL;
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < json_array_size(entries) && status >= 0; i++) {
        status = copy_file(copy->from, kernel, json_array_get(entries, i), dir);
        copy->files += status >= 0;
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

/* Read and check one manifest, and append it to those that are copied. */
static int32_t add_manifest(struct copy *copy, const char *name, json_t *manifests)
{
    json_t *manifest = NULL;
    int32_t status = read_manifest(copy->from, name, &manifest);

    if (status >= 0 && !is_kernel_name(ds_accel__json_string(manifest, "kernel"))) {
        status = ds_accel__error(DS_ACCEL_ERR_INVALID, "%s/%s names no kernel", copy->from, name);
    }
    if (is_of_file(status) && !copy->imports) {
        ds_accel__log(copy->log, "ops", DS_ACCEL_LOG_WARN, "%s/%s is skipped: %s", copy->from, name,
                      ds_accel_last_error());
        json_decref(manifest);
        return DS_ACCEL_OK;
    }
    if (status >= 0) {
        status = check_entries(copy, manifest);
    }
    if (status >= 0 && json_array_append(manifests, manifest) != 0) {
        status = ds_accel__no_memory();
    }
    json_decref(manifest);
    return status;
}

/* Read and check all manifests of a directory, as a new array. */
static int32_t read_all(struct copy *copy, json_t **manifests_out)
{
    const char *cause = "";
    char **names = NULL;
    size_t count = 0;
    json_t *manifests = json_array();
    int32_t status = manifests == NULL
                         ? ds_accel__no_memory()
                         : ds_accel__dir_list(copy->from, is_manifest, &names, &count, &cause);

    if (status < 0 && status != DS_ACCEL_ERR_NO_MEMORY) {
        status = ds_accel__error(status, "%s: %s", copy->from, cause);
    }
    for (size_t i = 0; i < count && status >= 0; i++) {
        status = add_manifest(copy, names[i], manifests);
    }
    ds_accel__names_free(names, count);
    if (status < 0) {
        json_decref(manifests);
        return status;
    }
    *manifests_out = manifests;
    return DS_ACCEL_OK;
}

/* Whether a manifest has entries left. */
static bool has_files(const json_t *manifests)
{
    for (size_t i = 0; i < json_array_size(manifests); i++) {
        if (json_array_size(json_object_get(json_array_get(manifests, i), "entries")) > 0) {
            return true;
        }
    }
    return false;
}

/* Copy everything to a directory. An import is all or nothing. What is exported is for other users,
 * too. */
static int32_t copy_all(struct copy *copy, const char *to)
{
    struct ds_accel__build_dir dir;
    json_t *manifests = NULL;
    int32_t status = read_all(copy, &manifests);

    if (status < 0 || !has_files(manifests)) {
        json_decref(manifests);
        return status;
    }
    if (!copy->imports) {
        ds_accel__make_directories(to, 0755); /* a failure is that of the next call */
    }
    status = ds_accel__build_dir_open(to, &dir);
    if (status >= 0) {
        for (size_t i = 0; i < json_array_size(manifests) && status >= 0; i++) {
            status = copy_entries(copy, json_array_get(manifests, i), &dir);
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
    status = op != NULL ? ds_accel__kernel_name(context, op, &known) : DS_ACCEL_OK;
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
static int32_t begin_copy(const ds_accel_t *context, const char *directory,
                          const uint64_t *files_out, const uint64_t *skipped_out,
                          struct ds_accel__stores *stores)
{
    *stores = (struct ds_accel__stores){.count = 0};
    if (context == NULL || directory == NULL || files_out == NULL || skipped_out == NULL ||
        directory[0] != '/') {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "context, directory, files_out or skipped_out is NULL, or the path "
                               "is relative");
    }
    return ds_accel__stores_locate(context, stores);
}

int32_t ds_accel_ops_export(ds_accel_t *context, const char *directory, uint64_t *files_out,
                            uint64_t *skipped_out)
{
    struct ds_accel__stores stores;
    int32_t status = begin_copy(context, directory, files_out, skipped_out, &stores);
    struct copy copy = {.imports = false};

    if (status >= 0 && stores.count == 0) {
        status = ds_accel__error(DS_ACCEL_ERR_PERMISSION,
                                 "DS_ACCEL_CACHE does not let this process read caches of ops");
    }
    for (size_t i = 0; i < stores.count && status >= 0; i++) {
        copy.log = &context->log;
        copy.from = stores.paths[i];
        status = copy_all(&copy, directory);
    }
    if (status >= 0 && copy.files == 0) {
        status = ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                                 "nothing was built that could be exported: `ds-accel ops build`");
    }
    if (status >= 0) {
        *files_out = copy.files;
        *skipped_out = copy.skipped;
    }
    ds_accel__stores_clear(&stores);
    return status;
}

/* Fail if a directory cannot be listed, with the cause. */
static int32_t check_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = errno;

    if (fd >= 0) {
        close(fd);
        return DS_ACCEL_OK;
    }
    if (error == ENOMEM) {
        return ds_accel__no_memory();
    }
    return ds_accel__error(error == ENOENT || error == ENOTDIR  ? DS_ACCEL_ERR_NOT_FOUND
                           : error == EACCES                    ? DS_ACCEL_ERR_PERMISSION
                           : error == EMFILE || error == ENFILE ? DS_ACCEL_ERR_LIMIT
                                                                : DS_ACCEL_ERR_IO,
                           "%s: %s", path, strerror(error));
}

int32_t ds_accel_ops_import(ds_accel_t *context, const char *directory, uint64_t *files_out,
                            uint64_t *skipped_out)
{
    struct ds_accel__stores stores;
    int32_t status = begin_copy(context, directory, files_out, skipped_out, &stores);
    struct copy copy = {.from = directory, .imports = true};

    if (status >= 0) {
        status = stores.writable == NULL ? no_cache() : check_directory(directory);
    }
    if (status >= 0) {
        copy.log = &context->log;
        status = copy_all(&copy, stores.writable);
    }
    if (status >= 0 && copy.files == 0) {
        status = ds_accel__error(DS_ACCEL_ERR_NOT_FOUND, "%s has no exported ops%s", directory,
                                 copy.skipped > 0 ? " for this machine: all are for machines with "
                                                    "another kind of processor"
                                                  : "");
    }
    if (status >= 0) {
        *files_out = copy.files;
        *skipped_out = copy.skipped;
    }
    ds_accel__stores_clear(&stores);
    return status;
}
