/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Where the kernel of an op comes from:
 *
 *     installed            kernel.c
 *       | there is no file
 *     recipe               recipe.c: the row of "kernels", sources, their digest
 *       | has this CPU what it requires?
 *     toolchain            toolchain.c; without compilers, the caches are searched all the same
 *     caches               store.c -> manifest.c: same compilers and headers? -> file; undamaged?
 *       | there is none
 *     lock                 store.c: one process of this host builds; the others wait, then search
 *     requirements         requires.c: libraries, headers, commands
 *     build                compile.c, in a directory of its own; check; sync; rename; manifest
 */
#include "ops/resolve.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "base/trust.h"
#include "host/context.h"
#include "ops/command.h"
#include "ops/manifest.h"
#include "ops/requires.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ATTEMPTS 3
#define SHARED_OUTPUT_BYTES 16384 /* of a compiler, for those who wait */

struct resolution {
    ds_accel_t *context;
    const char *backend;
    const struct ds_accel__resolve_options *options;
    struct ds_accel__resolved *resolved;
    struct ds_accel__recipe recipe;
    char recipe_digest[65];
    struct ds_accel__stores stores;
    struct ds_accel__toolchain toolchain;
    bool is_sources_fault; /* a compiler refused the sources */
    /* Of a build during which a header may have changed. */
    char doubtful_key[DS_ACCEL__KEY_DIGITS + 1];
};

/* Set the reason why there is no kernel to the error message. */
static int32_t fail_with(struct resolution *resolution, enum ds_accel__origin origin)
{
    resolution->resolved->origin = origin;
    resolution->resolved->reason = strdup(ds_accel_last_error());
    return resolution->resolved->reason != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

/* Whether a status is about the machine and not about this op. */
static bool is_fatal(int32_t status)
{
    return status == DS_ACCEL_ERR_NO_MEMORY || status == DS_ACCEL_ERR_LIMIT;
}

/* ---- searching ------------------------------------------------------------------------------- */

/* A file of a network file system that another host replaced is read again. */
static int32_t read_digest(const char *path, char digest_out[65])
{
    int32_t status = ds_accel__source_digest(path, digest_out);

    for (int i = 1; i < ATTEMPTS && status == DS_ACCEL_ERR_IO; i++) {
        status = ds_accel__source_digest(path, digest_out);
    }
    return status;
}

/* Check the file of an entry. *found_out: it can be used, and resolved has it. */
static int32_t try_entry(struct resolution *resolution, const char *store, const json_t *entry,
                         bool *found_out)
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
        resolution->resolved->kernel = kernel;
        resolution->resolved->origin = DS_ACCEL__ORIGIN_CACHED;
        ds_accel__copy(resolution->resolved->key, sizeof(resolution->resolved->key),
                       ds_accel__json_string(entry, "key"));
        ds_accel__copy(resolution->resolved->sha256, sizeof(resolution->resolved->sha256), digest);
        return DS_ACCEL_OK;
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
static int32_t explain_missing(const struct resolution *resolution, const char *store)
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
static bool is_rejected(const struct resolution *resolution, const json_t *entry)
{
    const char *rejected = resolution->options->rejected;

    return rejected != NULL && strcmp(ds_accel__json_string(entry, "sha256"), rejected) == 0;
}

/* Try the entries that match, one by one. */
static int32_t try_entries(struct resolution *resolution, const char *store, const json_t *manifest,
                           bool *found_out)
{
    const char *toolchain = resolution->toolchain.digest[0] != '\0' ? resolution->toolchain.digest
                                                                    : NULL;
    const json_t *entry = NULL;
    int32_t status;

    do {
        status = ds_accel__manifest_match(manifest, &resolution->recipe, toolchain, &entry);
        if (status >= 0 && entry != NULL && !is_rejected(resolution, entry)) {
            status = try_entry(resolution, store, entry, found_out);
        }
    } while (status >= 0 && entry != NULL && !*found_out);
    return status;
}

static int32_t search(struct resolution *resolution, bool *found_out)
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
    return status;
}

/* ---- requirements ---------------------------------------------------------------------------- */

static int32_t has_op(void *user_data, const char *op, char *why, size_t why_size)
{
    const struct resolution *resolution = user_data;
    struct ds_accel__kernel kernel;
    int32_t status = ds_accel__kernel_find(resolution->backend, op, &kernel);
    bool has = status >= 0 && kernel.path != NULL && kernel.finding.reason == DS_ACCEL__REASON_NONE;

    if (status >= 0 && !has) {
        snprintf(why, why_size, "the op %s is not installed", op);
    }
    free(kernel.path);
    return status < 0 ? status : has;
}

/* Fail with the requirements that are not met. */
static int32_t fail_requirements(struct resolution *resolution, const json_t *result)
{
    struct ds_accel__text text = {0};

    for (size_t i = 0; i < json_array_size(result); i++) {
        const json_t *entry = json_array_get(result, i);
        const char *remedy = ds_accel__json_string(entry, "remedy");

        if (!json_is_true(json_object_get(entry, "ok"))) {
            ds_accel__text_add(&text, "%s%s%s%s", text.size_bytes > 0 ? "; " : "",
                               ds_accel__json_string(entry, "reason"),
                               remedy[0] != '\0' ? ": " : "", remedy);
        }
    }
    resolution->resolved->origin = DS_ACCEL__ORIGIN_NONE;
    resolution->resolved->reason = ds_accel__text_take(&text);
    return resolution->resolved->reason != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

/* Check the features of the CPU, which a file that was built elsewhere needs as well. */
static int32_t check_cpu(struct resolution *resolution, bool *met_out)
{
    json_t *cpu = json_object_get(resolution->recipe.requires, "cpu");
    json_t *requires;
    json_t *result = NULL;
    const struct ds_accel__requires_options options = {.has_op = NULL};
    int32_t status;

    *met_out = true;
    if (json_array_size(cpu) == 0) {
        return DS_ACCEL_OK;
    }
    requires = json_pack("{s:O}", "cpu", cpu);
    if (requires == NULL) {
        return ds_accel__no_memory();
    }
    status = ds_accel__requires_check(requires, NULL, NULL, &options, &result);
    if (status >= 0) {
        *met_out = ds_accel__requires_are_met(result);
        status = *met_out ? DS_ACCEL_OK : fail_requirements(resolution, result);
    }
    json_decref(result);
    json_decref(requires);
    return status;
}

/* The flags of probes: the recipe's, with absolute directories. NULL: memory is exhausted. */
static char **probe_flags(const struct ds_accel__recipe *recipe)
{
    struct ds_accel__arguments list = {0};

    ds_accel__arguments_add_all(&list, recipe->cflags);
    for (size_t i = 0; recipe->include_dirs[i] != NULL; i++) {
        const char *directory = recipe->include_dirs[i];

        if (directory[0] == '/') {
            ds_accel__arguments_add(&list, "-I%s", directory);
        } else {
            ds_accel__arguments_add(&list, "-I%s/%s", recipe->source_dir, directory);
        }
    }
    return ds_accel__arguments_take(&list);
}

static int32_t check_requirements(struct resolution *resolution, bool *met_out)
{
    const struct ds_accel__recipe *recipe = &resolution->recipe;
    const struct ds_accel__compiler *compiler =
        &resolution->toolchain.compilers[ds_accel__toolchain_linker(recipe)];
    const struct ds_accel__requires_options options = {
        .link_flags = recipe->ldflags, .has_op = has_op, .user_data = resolution};
    char **flags;
    int32_t status;

    *met_out = false;
    if (resolution->toolchain.missing[0] != '\0') {
        resolution->resolved->reason = strdup(resolution->toolchain.missing);
        return resolution->resolved->reason != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    flags = probe_flags(recipe);
    status = flags != NULL ? ds_accel__requires_check(recipe->requires, compiler, flags, &options,
                                                      &resolution->resolved->requirements)
                           : ds_accel__no_memory();
    ds_accel__arguments_free(flags);
    if (status >= 0) {
        *met_out = ds_accel__requires_are_met(resolution->resolved->requirements);
        return *met_out ? DS_ACCEL_OK
                        : fail_requirements(resolution, resolution->resolved->requirements);
    }
    return is_fatal(status) ? status : fail_with(resolution, DS_ACCEL__ORIGIN_NONE);
}

/* ---- building -------------------------------------------------------------------------------- */

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
static int32_t check_result(const struct resolution *resolution, const char *path,
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

/* Make the sources' digest again: an editor may have changed one since. */
static int32_t check_unchanged(const struct resolution *resolution)
{
    char digest[65];
    int32_t status = ds_accel__recipe_digest(&resolution->recipe, digest);

    if (status >= 0 && strcmp(digest, resolution->recipe_digest) != 0) {
        status = ds_accel__error(DS_ACCEL_ERR_IO,
                                 "a source in %s was changed while it was compiled: build it again",
                                 resolution->recipe.source_dir);
    }
    return status;
}

/* Add the entry to the manifest that is there now, or to a new one, and write it. */
static int32_t write_manifest(const struct resolution *resolution,
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
static int32_t check_doubtful(struct resolution *resolution, const json_t *entry, bool *again_out)
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
static int32_t is_there(const struct resolution *resolution, const char *path, const char *digest,
                        bool *is_there_out)
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
static int32_t publish_file(const struct resolution *resolution,
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
static int32_t publish(struct resolution *resolution, const struct ds_accel__build_dir *dir,
                       char *const *headers, json_t **entry_out, bool *again_out)
{
    char *result = ds_accel__join(dir->path, '/', DS_ACCEL__COMPILE_RESULT);
    char digest[65];
    bool failed = false;
    bool is_doubtful = false;
    int32_t status = result != NULL ? check_result(resolution, result, digest)
                                    : ds_accel__no_memory();

    *entry_out = NULL;
    if (status >= 0) {
        status = check_unchanged(resolution);
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

/* Replace every occurrence of a text by another one. NULL: memory is exhausted. */
static char *replace(const char *text, const char *what, const char *by)
{
    struct ds_accel__text out = {0};
    const char *at;

    while ((at = strstr(text, what)) != NULL) {
        ds_accel__text_add_bytes(&out, text, (size_t)(at - text));
        ds_accel__text_add(&out, "%s", by);
        text = at + strlen(what);
    }
    ds_accel__text_add(&out, "%s", text);
    return ds_accel__text_take(&out);
}

/* What to do about a command that failed, or "": each program has its own words before these. */
static const char *find_remedy(const char *output)
{
    static const char *const causes[][2] = {
        {"No space left on device", ": No space left on device: " DS_ACCEL__STORE_REMEDY},
        {"Disk quota exceeded", ": Disk quota exceeded: " DS_ACCEL__STORE_REMEDY},
    };

    for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
        if (strstr(output, causes[i][0]) != NULL) {
            return causes[i][1];
        }
    }
    return "";
}

/* The line that repeats a command in the directory that was kept. NULL: memory is exhausted. */
static char *repeat_line(const struct ds_accel__compile_failure *failure, const char *before,
                         const char *kept)
{
    struct ds_accel__arguments list = {0};
    char **arguments;
    char *line;

    for (size_t i = 0; failure->arguments[i] != NULL; i++) {
        char *argument = replace(failure->arguments[i], before, kept);

        list.failed = list.failed || argument == NULL;
        ds_accel__arguments_add(&list, "%s", argument != NULL ? argument : "");
        free(argument);
    }
    arguments = ds_accel__arguments_take(&list);
    line = arguments != NULL ? ds_accel__command_line(arguments, failure->directory) : NULL;
    ds_accel__arguments_free(arguments);
    return line;
}

/* Keep a failed command, and the directory in which it can be repeated. */
static int32_t keep_failure(struct resolution *resolution, struct ds_accel__build_dir *dir,
                            const struct ds_accel__compile_failure *failure)
{
    struct ds_accel__resolved *resolved = resolution->resolved;
    const char *remedy = find_remedy(failure->output);
    char *before = strdup(dir->path);
    char *kept = NULL;

    /* A full disk or a killed compiler is no failure of the others that wait for this build. */
    resolution->is_sources_fault = failure->has_exited &&
                                   !ds_accel__command_blames_machine(failure->output);
    ds_accel__build_dir_keep(dir, resolution->recipe.name, &kept);
    resolved->origin = DS_ACCEL__ORIGIN_FAILED;
    resolved->reason = ds_accel__format(
        "a command of the build %s%s%s%s", failure->ending, remedy[0] != '\0' ? ": " : "",
        remedy[0] != '\0' ? resolution->stores.writable : "", remedy);
    if (before != NULL) {
        const char *by = kept != NULL ? kept : before;

        resolved->command = repeat_line(failure, before, by);
        resolved->output = replace(failure->output, before, by);
    }
    free(kept);
    free(before);
    return resolved->reason != NULL && resolved->command != NULL && resolved->output != NULL
               ? DS_ACCEL_OK
               : ds_accel__no_memory();
}

/*
 * Build once. *again_out: it is worth a retry, because the directory was removed or a header
 * changed meanwhile.
 */
static int32_t build_once(struct resolution *resolution, bool *again_out)
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
        return is_fatal(status) ? status : fail_with(resolution, DS_ACCEL__ORIGIN_FAILED);
    }
    status = ds_accel__compile(&resolution->recipe, &resolution->toolchain, &dir, &options,
                               &headers, &failure);
    if (status >= 0) {
        status = publish(resolution, &dir, headers, &entry, &again);
    }
    if (status >= 0) {
        status = try_entry(resolution, dir.store, entry, &found);
        if (status >= 0 && !found) {
            again = true;
            status = ds_accel__error(DS_ACCEL_ERR_IO, "%s: the file was changed as it was built",
                                     dir.store);
        }
    }
    if (status >= 0) {
        resolution->resolved->origin = DS_ACCEL__ORIGIN_BUILT;
        ds_accel__build_dir_forget(&dir, resolution->recipe.name);
    } else if (!is_fatal(status)) {
        bool is_gone = access(dir.path, F_OK) != 0;

        *again_out = again || is_gone;
        status = failure.arguments != NULL && !is_gone
                     ? keep_failure(resolution, &dir, &failure)
                     : fail_with(resolution, DS_ACCEL__ORIGIN_FAILED);
    }
    if (dir.path != NULL) {
        ds_accel__build_dir_close(&dir);
    }
    json_decref(entry);
    ds_accel__arguments_free(headers);
    ds_accel__compile_failure_clear(&failure);
    return status;
}

static void clear_failure(struct ds_accel__resolved *resolved)
{
    free(resolved->reason);
    free(resolved->command);
    free(resolved->output);
    resolved->reason = NULL;
    resolved->command = NULL;
    resolved->output = NULL;
}

/* Leave the failure for those who wait: reason, command and output. Without memory they build
 * themselves. */
static void leave_failure(const struct resolution *resolution, int lock)
{
    const struct ds_accel__resolved *resolved = resolution->resolved;
    char *output = strndup(resolved->output != NULL ? resolved->output : "", SHARED_OUTPUT_BYTES);
    json_t *tree = json_object();
    bool failed = false;
    char *message;

    ds_accel__json_set(tree, "reason", ds_accel__json_text(resolved->reason), &failed);
    ds_accel__json_set(tree, "command",
                       ds_accel__json_text(resolved->command != NULL ? resolved->command : ""),
                       &failed);
    ds_accel__json_set(tree, "output", ds_accel__json_text(output != NULL ? output : ""), &failed);
    message = !failed ? ds_accel__json_dump(tree, JSON_COMPACT) : NULL;
    if (message != NULL) {
        ds_accel__store_lock_fail(lock, resolution->toolchain.digest, message);
    }
    free(message);
    json_decref(tree);
    free(output);
}

/* Fail as the process did that left this message. Nobody else can have written it, but it may have
 * been cut off. */
static int32_t take_failure(struct ds_accel__resolved *resolved, const char *message)
{
    size_t size = strlen(message);
    json_t *tree = ds_accel__json_has_headroom(size) ? json_loadb(message, size, 0, NULL) : NULL;
    bool is_whole = json_is_object(tree);

    resolved->origin = DS_ACCEL__ORIGIN_FAILED;
    resolved->reason = strdup(is_whole ? ds_accel__json_string(tree, "reason")
                                       : "another process could not build it");
    resolved->command = is_whole ? strdup(ds_accel__json_string(tree, "command")) : NULL;
    resolved->output = is_whole ? strdup(ds_accel__json_string(tree, "output")) : NULL;
    json_decref(tree);
    if (resolved->reason == NULL ||
        (is_whole && (resolved->command == NULL || resolved->output == NULL))) {
        return ds_accel__no_memory();
    }
    ds_accel__sanitize(resolved->reason, strlen(resolved->reason) + 1);
    if (is_whole) {
        ds_accel__sanitize(resolved->command, strlen(resolved->command) + 1);
        ds_accel__compile_sanitize(resolved->output);
    }
    return DS_ACCEL_OK;
}

/* Build what the search did not find, or wait for a process that does. */
static int32_t build(struct resolution *resolution)
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
        status = search(resolution, &found);
    }
    if (status >= 0 && !found) {
        status =
            ds_accel__store_lock_failure(lock, resolution->toolchain.digest, begin_ms, &message);
    }
    if (status >= 0 && message != NULL) {
        status = take_failure(resolved, message);
    }
    for (int i = 0; i < ATTEMPTS && status >= 0 && !found && message == NULL && again; i++) {
        clear_failure(resolved);
        status = build_once(resolution, &again);
    }
    if (status >= 0 && resolved->origin == DS_ACCEL__ORIGIN_FAILED &&
        resolution->is_sources_fault) {
        leave_failure(resolution, lock);
    }
    ds_accel__store_unlock(lock);
    free(message);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Read the recipe. *has_out: there is one that can be followed. */
static int32_t read_recipe(struct resolution *resolution, const char *op, bool *has_out)
{
    ds_accel_t *context = resolution->context;
    int32_t status;

    *has_out = false;
    pthread_mutex_lock(&context->config_lock);
    status = ds_accel__config_complete(&context->config, NULL);
    if (status >= 0) {
        status =
            ds_accel__recipe_read(&context->config, resolution->backend, op, &resolution->recipe);
    }
    pthread_mutex_unlock(&context->config_lock);
    if (status == DS_ACCEL_ERR_NOT_FOUND) {
        return DS_ACCEL_OK;
    }
    if (status >= 0) {
        status = ds_accel__recipe_digest(&resolution->recipe, resolution->recipe_digest);
    }
    *has_out = status >= 0;
    return status >= 0 || is_fatal(status) ? status : fail_with(resolution, DS_ACCEL__ORIGIN_NONE);
}

static int32_t follow_recipe(struct resolution *resolution)
{
    bool met = false;
    bool found = false;
    int32_t status = check_cpu(resolution, &met);

    if (status < 0 || !met) {
        return status;
    }
    status = ds_accel__stores_locate(resolution->context, &resolution->stores);
    if (status >= 0) {
        status = ds_accel__toolchain_find(&resolution->recipe, &resolution->stores,
                                          &resolution->toolchain);
    }
    if (status < 0) {
        return is_fatal(status) ? status : fail_with(resolution, DS_ACCEL__ORIGIN_NONE);
    }
    if (!resolution->options->is_forced) {
        status = search(resolution, &found);
    }
    if (status < 0 || found) {
        return status;
    }
    if (resolution->stores.writable == NULL) {
        ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED,
                        ds_accel__has_raised_rights()
                            ? "it is not built: a program with raised rights runs no compilers"
                            : "it is not built, because DS_ACCEL_CACHE does not let it be stored");
        return fail_with(resolution, DS_ACCEL__ORIGIN_NONE);
    }
    status = check_requirements(resolution, &met);
    if (status < 0 || !met) {
        return status;
    }
    if (resolution->options->only_finds) {
        resolution->resolved->origin = DS_ACCEL__ORIGIN_BUILDABLE;
        return DS_ACCEL_OK;
    }
    return build(resolution);
}

/* Warn if what was built although there is a file is not what will be loaded. */
static int32_t warn_of_precedence(struct resolution *resolution)
{
    struct ds_accel__resolved *built = resolution->resolved;
    struct ds_accel__resolved used = {.origin = DS_ACCEL__ORIGIN_NONE};
    bool found = false;
    int32_t status =
        ds_accel__kernel_find(resolution->backend, resolution->recipe.op, &used.kernel);

    resolution->resolved = &used;
    if (status >= 0 && used.kernel.path == NULL) {
        status = search(resolution, &found);
    }
    resolution->resolved = built;
    if (status >= 0 && used.kernel.finding.reason != DS_ACCEL__REASON_NONE) {
        ds_accel__log(&resolution->context->log, "ops", DS_ACCEL_LOG_WARN,
                      "%s precedes %s, but is rejected: %s: remove it", used.kernel.path,
                      built->kernel.path, used.kernel.finding.detail);
    } else if (status >= 0 && used.kernel.path != NULL &&
               strcmp(used.kernel.path, built->kernel.path) != 0) {
        ds_accel__log(&resolution->context->log, "ops", DS_ACCEL_LOG_WARN,
                      "%s is used all the same: it precedes %s", used.kernel.path,
                      built->kernel.path);
    }
    ds_accel__resolved_clear(&used);
    return status;
}

int32_t ds_accel__resolve(ds_accel_t *context, const char *backend, const char *op,
                          const struct ds_accel__resolve_options *options,
                          struct ds_accel__resolved *resolved)
{
    struct resolution resolution = {
        .context = context, .backend = backend, .options = options, .resolved = resolved};
    bool has_recipe = false;
    int32_t status = DS_ACCEL_OK;

    *resolved = (struct ds_accel__resolved){.origin = DS_ACCEL__ORIGIN_NONE};
    if (!options->is_forced) {
        status = ds_accel__kernel_find(backend, op, &resolved->kernel);
        if (status < 0 || resolved->kernel.path != NULL) {
            resolved->origin = DS_ACCEL__ORIGIN_INSTALLED;
            return status;
        }
    }
    status = read_recipe(&resolution, op, &has_recipe);
    if (status >= 0 && has_recipe) {
        status = follow_recipe(&resolution);
    }
    if (status >= 0 && options->is_forced && resolved->origin == DS_ACCEL__ORIGIN_BUILT) {
        status = warn_of_precedence(&resolution);
    }
    ds_accel__toolchain_keep(&resolution.toolchain, &resolution.stores);
    ds_accel__toolchain_clear(&resolution.toolchain);
    ds_accel__stores_clear(&resolution.stores);
    ds_accel__recipe_clear(&resolution.recipe);
    return status;
}

void ds_accel__resolved_clear(struct ds_accel__resolved *resolved)
{
    clear_failure(resolved);
    free(resolved->kernel.path);
    json_decref(resolved->requirements);
    *resolved = (struct ds_accel__resolved){.origin = DS_ACCEL__ORIGIN_NONE};
}
