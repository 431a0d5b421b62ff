/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Looking up a built op takes twenty times as long as loading it: the table of recipes is parsed,
 * the sources are read, and the file. So the result is remembered on this host until it boots:
 *
 *     question     backend and name, configuration, variables, caches: all that is known before
 *       |
 *     LOCAL/ops-load.HASH.json
 *       |          for this question? are the compilers found where they were? has each source,
 *       |          header, program and file of configuration the same device, inode, size, times?
 *     file         kernel.c checks it as any other; and it is the one that was read
 *
 * The time of change cannot be set, and a file that changed less than two seconds before the search
 * is not remembered (digest.c), so this sees a change as surely as reading does, where this host
 * makes the change. The attributes of a file that another host changed may be old for some seconds;
 * therefore nothing is remembered if a source, a header or a compiler is on a network file system.
 */
#include "ops/load_cache.h"
#include "base/json.h"
#include "base/text.h"
#include "host/context.h"
#include "ops/local.h"
#include "ops/toolchain.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FORM 1
#define SETTLED_SECONDS 2
#define DEVICE_LIMIT 8u
#define FILE_NAME_SIZE 32u /* as long as cache_file.c permits, and less */

/* ---- files ----------------------------------------------------------------------------------- */

static uint64_t add_identity(const struct stat *info, uint64_t identity)
{
    const struct {
        uint64_t device, inode, size;
        struct timespec modified, changed;
    } parts = {info->st_dev, info->st_ino, (uint64_t)info->st_size, info->st_mtim, info->st_ctim};

    return ds_accel__hash(&parts, sizeof(parts), identity);
}

static bool stat_path(const char *path, struct stat *info)
{
    return path != NULL && stat(path, info) == 0 &&
           (S_ISREG(info->st_mode) || S_ISDIR(info->st_mode));
}

/* The same of a file that another host may have replaced: open() gets its current attributes. */
static bool identify_opened(const char *path, struct stat *info, uint64_t *identity_out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool done = fd >= 0 && fstat(fd, info) == 0 && S_ISREG(info->st_mode);

    if (fd >= 0) {
        close(fd);
    }
    *identity_out = done ? add_identity(info, FORM) : 0;
    return done;
}

bool ds_accel__load_cache_identify(const json_t *paths, uint64_t *identity_out)
{
    uint64_t identity = FORM;

    for (size_t i = 0; i < json_array_size(paths); i++) {
        struct stat info;

        if (!stat_path(json_string_value(json_array_get(paths, i)), &info)) {
            return false;
        }
        identity = add_identity(&info, identity);
    }
    *identity_out = identity;
    return true;
}

/* Whether a file system is on a disk or in the memory of this host. */
static bool is_local(const char *path)
{
    static const uint32_t types[] = {
        0xef53,     /* ext2, ext3, ext4 */
        0x58465342, /* XFS */
        0x9123683e, /* Btrfs */
        0x2fc12fc1, /* ZFS */
        0xf2f52010, /* F2FS */
        0xca451a4e, /* bcachefs */
        0x01021994, /* tmpfs */
        0x858458f6, /* ramfs */
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

        if (!stat_path(path, &info) || !is_settled(&info, since)) {
            return false;
        }
        if (S_ISDIR(info.st_mode)) {
            continue; /* those of PATH are on network file systems, too: its files count */
        }
        while (at < count && devices[at] != info.st_dev) {
            at++;
        }
        if (at == count) {
            if (count == DEVICE_LIMIT || !is_local(path)) {
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

    snprintf(file, FILE_NAME_SIZE, "ops-load.%016" PRIx64 ".json",
             ds_accel__hash_text(name, ds_accel__hash_text(backend, FORM)));
    return length > 0 && length < DS_ACCEL__OP_NAME_SIZE && strspn(name, letters) == length;
}

/* ---- finding --------------------------------------------------------------------------------- */

static bool is_text(const json_t *object, const char *key)
{
    return json_is_string(json_object_get(object, key));
}

bool ds_accel__load_cache_answers(const json_t *object, const char *question)
{
    const json_t *files = json_object_get(object, "files");
    const char *op = ds_accel__json_string(object, "op");
    const char *compiler;
    json_t *path;

    json_object_foreach(json_object_get(object, "compilers"), compiler, path)
    {
        if (!json_is_string(path)) {
            return false;
        }
    }
    for (size_t i = 0; i < json_array_size(files); i++) {
        if (!json_is_string(json_array_get(files, i))) {
            return false;
        }
    }
    return is_text(object, "question") &&
           strcmp(ds_accel__json_string(object, "question"), question) == 0 && op[0] != '\0' &&
           strlen(op) < DS_ACCEL__OP_NAME_SIZE && ds_accel__json_string(object, "path")[0] == '/' &&
           ds_accel__json_string(object, "manifest")[0] == '/' &&
           is_text(object, "manifest_identity") && is_text(object, "identity") &&
           is_text(object, "file") && json_array_size(files) > 0 &&
           json_object_size(json_object_get(object, "compilers")) > 0;
}

/* Whether the compilers are found where they were. ERR_NO_MEMORY. */
static int32_t find_compilers(const json_t *compilers, bool *same_out)
{
    const char *name;
    json_t *value;

    *same_out = true;
    json_object_foreach((json_t *)(uintptr_t)compilers, name, value)
    {
        char *path = NULL;
        int32_t status = ds_accel__compiler_locate(name, &path);

        *same_out = *same_out && status >= 0 && path != NULL &&
                    strcmp(path, json_string_value(value)) == 0;
        free(path);
        if (status == DS_ACCEL_ERR_NO_MEMORY) {
            return status;
        }
    }
    return DS_ACCEL_OK;
}

static bool has_identity(const json_t *object, const char *key, uint64_t identity)
{
    char text[17];

    snprintf(text, sizeof(text), "%016" PRIx64, identity);
    return strcmp(ds_accel__json_string(object, key), text) == 0;
}

/* Whether the object still says which file it is. ERR_NO_MEMORY. */
static int32_t holds(const json_t *object, const char *question, bool *holds_out)
{
    uint64_t identity = 0;
    uint64_t manifest = 0;
    struct stat info;
    int32_t status = DS_ACCEL_OK;

    *holds_out = ds_accel__load_cache_answers(object, question) &&
                 ds_accel__load_cache_identify(json_object_get(object, "files"), &identity) &&
                 has_identity(object, "identity", identity) &&
                 identify_opened(ds_accel__json_string(object, "manifest"), &info, &manifest) &&
                 has_identity(object, "manifest_identity", manifest);
    if (*holds_out) {
        status = find_compilers(json_object_get(object, "compilers"), holds_out);
    }
    return status;
}

/* Check the file, unless one is installed. kernel->path stays NULL if it is not the one. */
static int32_t check(const char *backend, const json_t *object, struct ds_accel__kernel *kernel)
{
    const char *op = ds_accel__json_string(object, "op");
    bool is_same;
    int32_t status = ds_accel__kernel_find(backend, op, kernel);

    if (status < 0 || kernel->path != NULL) {
        free(kernel->path);
        kernel->path = NULL;
        return status;
    }
    kernel->path = strdup(ds_accel__json_string(object, "path"));
    if (kernel->path == NULL) {
        return ds_accel__no_memory();
    }
    status = ds_accel__kernel_check(kernel->path, op, &kernel->info, &kernel->finding);
    is_same = status >= 0 && kernel->finding.reason == DS_ACCEL__REASON_NONE &&
              has_identity(object, "file", add_identity(&kernel->info, FORM));
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
    struct ds_accel__stores stores;
    char file[FILE_NAME_SIZE];
    char *question = NULL;
    json_t *object = NULL;
    bool is_current = false;
    int32_t status;

    *kernel = (struct ds_accel__kernel){.path = NULL};
    if (ds_accel__has_raised_rights() || !make_name(backend, name, file)) {
        return DS_ACCEL_OK;
    }
    status = ds_accel__stores_locate(context, &stores);
    if (status >= 0 && stores.count > 0) {
        question = make_question(context, backend, name, &stores);
        object = question != NULL ? ds_accel__local_read(&stores, file) : NULL;
    }
    if (object != NULL) {
        status = holds(object, question, &is_current);
    }
    if (status >= 0 && is_current) {
        ds_accel__copy(op_out, DS_ACCEL__OP_NAME_SIZE, ds_accel__json_string(object, "op"));
        status = check(backend, object, kernel);
    }
    json_decref(object);
    free(question);
    ds_accel__stores_clear(&stores);
    return status;
}

/* ---- keeping --------------------------------------------------------------------------------- */

static void set_identity(json_t *object, const char *key, uint64_t identity, bool *failed)
{
    char text[17];

    snprintf(text, sizeof(text), "%016" PRIx64, identity);
    ds_accel__json_set(object, key, json_string(text), failed);
}

/* Make what is remembered. NULL: nothing can be, or memory is exhausted. */
static json_t *make_object(const ds_accel_t *context, const char *question, const char *op,
                           time_t since, const struct ds_accel__resolved *resolved)
{
    json_t *object = json_deep_copy(resolved->inputs);
    json_t *files = json_object_get(object, "files");
    const char *manifest = ds_accel__json_string(object, "manifest");
    time_t read = context->config.ops_read_s; /* the tables, perhaps long before */
    uint64_t identity = 0;
    uint64_t manifest_identity = 0;
    struct stat info = {0};
    bool failed = question == NULL || files == NULL;

    if (!failed) {
        add_tables(&context->config, files, &failed);
        failed = failed || !identify_opened(manifest, &info, &manifest_identity) ||
                 !is_settled(&info, since) || !ds_accel__load_cache_identify(files, &identity) ||
                 !are_observable(files, read < since ? read : since) ||
                 !is_settled(&resolved->kernel.info, since);
    }
    ds_accel__json_set(object, "question", question != NULL ? ds_accel__json_text(question) : NULL,
                       &failed);
    ds_accel__json_set(object, "op", ds_accel__json_text(op), &failed);
    ds_accel__json_set(object, "path", json_string(resolved->kernel.path), &failed);
    set_identity(object, "identity", identity, &failed);
    set_identity(object, "manifest_identity", manifest_identity, &failed);
    set_identity(object, "file", add_identity(&resolved->kernel.info, FORM), &failed);
    if (failed) {
        json_decref(object);
        object = NULL;
    }
    return object;
}

void ds_accel__load_cache_keep(ds_accel_t *context, const char *backend, const char *name,
                               const char *op, time_t since,
                               const struct ds_accel__resolved *resolved)
{
    struct ds_accel__stores stores;
    char file[FILE_NAME_SIZE];
    char *question = NULL;
    json_t *object = NULL;

    if (resolved->inputs == NULL || !make_name(backend, name, file)) {
        return;
    }
    if (ds_accel__stores_locate(context, &stores) >= 0 && stores.writable != NULL) {
        question = make_question(context, backend, name, &stores);
        object = make_object(context, question, op, since, resolved);
    }
    if (object != NULL) {
        ds_accel__local_write(&stores, file, object);
    }
    json_decref(object);
    free(question);
    ds_accel__stores_clear(&stores);
}
