/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Looking up a built op takes twenty times as long as loading it: the table of recipes is parsed,
 * the sources are read, and the file. So the result is remembered on this host until it boots:
 *
 *     question     backend and name, configuration, variables, caches: all that is known before
 *       |
 *     LOCAL/ops-load.HASH
 *       |          for this question? are the compilers found where they were? has each source,
 *       |          header, program and file of configuration the same device, inode, size, times?
 *     file         kernel.c checks it as any other; and it is the one that was read
 *
 * The time of change cannot be set, and a file that changed less than two seconds before the search
 * is not remembered (digest.c), so this sees a change as surely as reading does, where this host
 * makes the change. The attributes of a file that another host changed may be old for some seconds;
 * therefore nothing is remembered if a source, a header or a compiler is on a network file system.
 * Nothing is remembered of files in memory (tmpfs), either, which can change with the same times
 * (timed.c, also for what remains of that on disks).
 *
 * The overlayfs of a container counts as local, although its lower layers may be on a network: the
 * kernel permits no changes of layers while they are mounted, so no other host may make one. From
 * inside a container, the layers' file systems cannot be determined.
 */
#include "ops/load_cache.h"
#include "base/json.h"
#include "base/text.h"
#include "host/context.h"
#include "ops/load_record.h"
#include "ops/local.h"
#include "ops/timed.h"
#include "ops/toolchain.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SETTLED_SECONDS 2
#define DEVICE_LIMIT 8u
#define FILE_NAME_SIZE 32u /* as long as cache_file.c permits, and less */

/* ---- files ----------------------------------------------------------------------------------- */

/* Identify a file that another host may have replaced: open() gets its current attributes. */
static bool identify_opened(const char *path, struct stat *info, uint64_t *identity_out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool done = fd >= 0 && fstat(fd, info) == 0 && S_ISREG(info->st_mode);

    if (fd >= 0) {
        close(fd);
    }
    *identity_out = done ? ds_accel__identity_add(info, 0) : 0;
    return done;
}

/* Whether a file is on a disk of this host. */
static bool is_local(const char *path)
{
    static const uint32_t types[] = {
        0xef53,     /* ext2, ext3, ext4 */
        0x58465342, /* XFS */
        0x9123683e, /* Btrfs */
        0x2fc12fc1, /* ZFS */
        0xf2f52010, /* F2FS */
        0xca451a4e, /* bcachefs */
        0x794c7630, /* overlayfs, of containers */
        0x73717368, /* squashfs */
        0xe0f5e1e2, /* EROFS */
    };
    struct statfs info;

    if (statfs(path, &info) != 0) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        if ((uint32_t)info.f_type == types[i]) {
            return true;
        }
    }
    return false;
}

static bool is_settled(const struct stat *info, time_t since)
{
    return info->st_ctim.tv_sec + SETTLED_SECONDS < since;
}

/* Whether a change of one of the files since then, and from now on, is seen. */
static bool are_observable(const json_t *paths, time_t since)
{
    dev_t devices[DEVICE_LIMIT];
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(paths); i++) {
        const char *path = json_string_value(json_array_get(paths, i));
        struct stat info;
        size_t at = 0;

        if (path == NULL || stat(path, &info) != 0 || !is_settled(&info, since)) {
            return false;
        }
        if (S_ISDIR(info.st_mode)) {
            continue; /* those of PATH are on network file systems, too: its files count */
        }
        while (at < count && devices[at] != info.st_dev) {
            at++;
        }
        if (at == count) {
            if (count == DEVICE_LIMIT || !is_local(path) || !ds_accel__is_timed_path(path)) {
                return false;
            }
            devices[count++] = info.st_dev;
        }
    }
    return true;
}

/* ---- the question ---------------------------------------------------------------------------- */

/* Add the files of the table of recipes, which are read only for this. */
static void add_tables(const struct ds_accel__config *config, json_t *paths, bool *failed)
{
    for (size_t i = 0; i < config->file_count; i++) {
        const struct ds_accel__config_file *file = &config->files[i];

        if (file->is_ops) {
            *failed = json_array_append_new(paths, ds_accel__json_text(file->path)) != 0 || *failed;
        }
    }
}

/*
 * What decides the result and is known before the table of recipes is read, as a new string; NULL:
 * nothing can be remembered, or memory is exhausted.
 */
static char *make_question(const ds_accel_t *context, const char *backend, const char *name,
                           const struct ds_accel__stores *stores)
{
    const struct ds_accel__config *config = &context->config;
    struct ds_accel__text text = {0};

    if (config->identity == 0) {
        return NULL;
    }
    ds_accel__text_add(&text, "%s: %s %s, configuration %016" PRIx64, DS_ACCEL_VERSION, backend,
                       name, config->identity);
    for (size_t i = 0; i < config->file_count; i++) {
        if (config->files[i].is_given) {
            ds_accel__text_clear(&text);
            return NULL;
        }
        if (config->files[i].is_ops) {
            ds_accel__text_add(&text, "\n%s", config->files[i].path);
        }
    }
    for (size_t i = 0; i < stores->count; i++) {
        ds_accel__text_add(&text, "\n%s", stores->paths[i]);
    }
    ds_accel__toolchain_add_variables(&text);
    return ds_accel__text_take(&text);
}

/* The name of the file, which is short whatever the op's is. False: no op or builder has this name.
 */
static bool make_name(const char *backend, const char *name, char file[FILE_NAME_SIZE])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_";
    size_t length = strlen(name);

    snprintf(file, FILE_NAME_SIZE, "ops-load.%016" PRIx64,
             ds_accel__hash_text(name, ds_accel__hash_text(backend, 0)));
    return length > 0 && length < DS_ACCEL__OP_NAME_SIZE && strspn(name, letters) == length;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* Whether the compilers are found where they were. ERR_NO_MEMORY. */
static int32_t find_compilers(const struct ds_accel__load_record *record, bool *same_out)
{
    *same_out = true;
    for (size_t i = 0; i < record->compiler_count; i++) {
        char *path = NULL;
        int32_t status = ds_accel__compiler_locate(record->compilers[i].name, &path);

        *same_out = *same_out && status >= 0 && path != NULL &&
                    strcmp(path, record->compilers[i].path) == 0;
        free(path);
        if (status == DS_ACCEL_ERR_NO_MEMORY) {
            return status;
        }
    }
    return DS_ACCEL_OK;
}

static bool is_identity(const char *text, uint64_t identity)
{
    char expected[DS_ACCEL__IDENTITY_SIZE];

    ds_accel__identity_text(identity, expected);
    return strcmp(text, expected) == 0;
}

/* Whether the record still says which file it is. ERR_NO_MEMORY. */
static int32_t holds(const struct ds_accel__load_record *record, bool *holds_out)
{
    uint64_t files = 0;
    uint64_t manifest = 0;
    struct stat info;
    int32_t status = DS_ACCEL_OK;

    *holds_out = ds_accel__load_record_identify(record->files, &files) &&
                 is_identity(record->files_identity, files) &&
                 identify_opened(record->manifest, &info, &manifest) &&
                 is_identity(record->manifest_identity, manifest);
    if (*holds_out) {
        status = find_compilers(record, holds_out);
    }
    return status;
}

/* Check the file, unless one is installed. kernel->path stays NULL if it is not the one. */
static int32_t check(const char *backend, const struct ds_accel__load_record *record,
                     struct ds_accel__kernel *kernel)
{
    bool is_same;
    int32_t status = ds_accel__kernel_find(backend, record->op, kernel);

    if (status < 0 || kernel->path != NULL) {
        free(kernel->path);
        kernel->path = NULL;
        return status;
    }
    kernel->path = strdup(record->path);
    if (kernel->path == NULL) {
        return ds_accel__no_memory();
    }
    status = ds_accel__kernel_check(kernel->path, record->op, &kernel->info, &kernel->finding);
    is_same = status >= 0 && kernel->finding.reason == DS_ACCEL__REASON_NONE &&
              is_identity(record->path_identity, ds_accel__identity_add(&kernel->info, 0));
    if (!is_same) {
        free(kernel->path);
        kernel->path = NULL;
    }
    return status;
}

int32_t ds_accel__load_cache_find(ds_accel_t *context, const char *backend, const char *name,
                                  char op_out[DS_ACCEL__OP_NAME_SIZE],
                                  struct ds_accel__kernel *kernel)
{
    struct ds_accel__load_record record;
    struct ds_accel__stores stores;
    char file[FILE_NAME_SIZE];
    char *question = NULL;
    char *text = NULL;
    bool is_current = false;
    int32_t status;

    *kernel = (struct ds_accel__kernel){.path = NULL};
    if (ds_accel__has_raised_rights() || !make_name(backend, name, file)) {
        return DS_ACCEL_OK;
    }
    status = ds_accel__stores_locate(context, &stores);
    if (status >= 0 && stores.count > 0) {
        question = make_question(context, backend, name, &stores);
        text = question != NULL ? ds_accel__local_read_text(&stores, file) : NULL;
    }
    if (text != NULL && ds_accel__load_record_parse(text, question, &record)) {
        status = holds(&record, &is_current);
    }
    if (status >= 0 && is_current) {
        ds_accel__copy(op_out, DS_ACCEL__OP_NAME_SIZE, record.op);
        status = check(backend, &record, kernel);
    }
    free(text);
    free(question);
    ds_accel__stores_clear(&stores);
    return status;
}

/* ---- keeping --------------------------------------------------------------------------------- */

/* The paths as lines; NULL: one is no path, or memory is exhausted. */
static char *make_files(const json_t *paths)
{
    size_t count = json_array_size(paths);
    const char **items = calloc(count + 1, sizeof(*items));
    char *files = NULL;

    for (size_t i = 0; items != NULL && i < count; i++) {
        items[i] = json_string_value(json_array_get(paths, i));
    }
    if (items != NULL) {
        files = ds_accel__load_record_files(items, count);
    }
    free(items);
    return files;
}

static void set_compilers(struct ds_accel__load_record *record, const json_t *compilers)
{
    const char *name;
    json_t *path;

    json_object_foreach((json_t *)(uintptr_t)compilers, name, path)
    {
        assert(record->compiler_count < ARRAY_SIZE(record->compilers));
        record->compilers[record->compiler_count].name = name;
        record->compilers[record->compiler_count++].path = json_string_value(path);
    }
}

/* Whether a change of what was read since then, and from now on, is seen. */
static bool is_observable(const ds_accel_t *context, const json_t *paths, time_t since,
                          const struct stat *manifest, const struct ds_accel__resolved *resolved)
{
    time_t read = context->config.ops_read_s; /* the tables, perhaps long before */

    return is_settled(manifest, since) && is_settled(&resolved->kernel.info, since) &&
           ds_accel__is_timed_path(resolved->kernel.path) &&
           are_observable(paths, read < since ? read : since);
}

/* Make what is remembered. NULL: nothing can be, or memory is exhausted. */
static char *make_text(const ds_accel_t *context, const char *question, const char *op,
                       time_t since, const struct ds_accel__resolved *resolved)
{
    json_t *paths = json_copy(json_object_get(resolved->inputs, "files"));
    char identities[3][DS_ACCEL__IDENTITY_SIZE];
    struct ds_accel__load_record record = {
        .op = op,
        .path = resolved->kernel.path,
        .path_identity = identities[0],
        .manifest = ds_accel__json_string(resolved->inputs, "manifest"),
        .manifest_identity = identities[1],
        .files_identity = identities[2],
    };
    bool failed = paths == NULL;
    uint64_t manifest_identity;
    uint64_t files_identity;
    struct stat manifest;
    char *files = NULL;
    char *text = NULL;

    if (!failed) {
        add_tables(&context->config, paths, &failed);
        files = failed ? NULL : make_files(paths);
    }
    if (files != NULL && identify_opened(record.manifest, &manifest, &manifest_identity) &&
        ds_accel__load_record_identify(files, &files_identity) &&
        is_observable(context, paths, since, &manifest, resolved)) {
        ds_accel__identity_text(ds_accel__identity_add(&resolved->kernel.info, 0), identities[0]);
        ds_accel__identity_text(manifest_identity, identities[1]);
        ds_accel__identity_text(files_identity, identities[2]);
        set_compilers(&record, json_object_get(resolved->inputs, "compilers"));
        record.files = files;
        text = ds_accel__load_record_format(&record, question);
    }
    free(files);
    json_decref(paths);
    return text;
}

void ds_accel__load_cache_keep(ds_accel_t *context, const char *backend, const char *name,
                               const char *op, time_t since,
                               const struct ds_accel__resolved *resolved)
{
    struct ds_accel__stores stores;
    char file[FILE_NAME_SIZE];
    char *question = NULL;
    char *text = NULL;

    if (resolved->inputs == NULL || !make_name(backend, name, file)) {
        return;
    }
    if (ds_accel__stores_locate(context, &stores) >= 0 && stores.writable != NULL) {
        question = make_question(context, backend, name, &stores);
        text = question != NULL ? make_text(context, question, op, since, resolved) : NULL;
    }
    if (text != NULL) {
        ds_accel__local_write_text(&stores, file, text);
    }
    free(text);
    free(question);
    ds_accel__stores_clear(&stores);
}
