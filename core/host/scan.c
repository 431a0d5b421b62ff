/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The search path and the plugin files on it. Of several files with one name, the first on the path
 * is used; the others are listed as shadowed. The files of a directory are sorted bytewise, so that
 * the result depends on neither the file system nor the locale.
 */
#include "base/file.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/config.h"
#include "config/env.h"
#include "config/prefix.h"
#include "host/context.h"
#include "host/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define PREFIX "ds_accel_"
#define SUFFIX ".so"

struct seen_dir {
    dev_t device;
    ino_t inode;
};

struct scan {
    ds_accel_t *context;
    struct seen_dir *seen;
    size_t seen_count;
    size_t
        before; /* number of candidates of earlier directories: only these can shadow a new one */
};

static bool is_plugin_file(const char *name)
{
    size_t length = strlen(name);

    return length > strlen(PREFIX SUFFIX) && strncmp(name, PREFIX, strlen(PREFIX)) == 0 &&
           strcmp(name + length - strlen(SUFFIX), SUFFIX) == 0;
}

static int32_t add_plugin(struct scan *scan, const char *dir, const char *file)
{
    struct ds_accel__registry *registry = &scan->context->registry;
    struct ds_accel__finding finding = {0};
    struct ds_accel__candidate *first;
    struct ds_accel__candidate *candidate;
    char *name = strndup(file + strlen(PREFIX), strlen(file) - strlen(PREFIX SUFFIX));
    char *path = ds_accel__join(dir, '/', file);

    candidate = name != NULL && path != NULL ? ds_accel__candidate_create(scan->context, name, path)
                                             : NULL;
    if (candidate == NULL) {
        free(name);
        free(path);
        return ds_accel__no_memory();
    }
    first = ds_accel__registry_find(
        &(struct ds_accel__registry){registry->candidates, scan->before}, name);
    if (!ds_accel__is_backend_name(name)) {
        ds_accel__finding_set(&finding, DS_ACCEL__REASON_BAD_NAME,
                              "\"%.64s\" is not [a-z][a-z0-9_.]{0,30}", name);
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_NAME, DS_ACCEL_STATE_REJECTED, &finding);
    } else if (first != NULL) {
        ds_accel__finding_set(&finding, DS_ACCEL__REASON_SHADOWED, "by %s",
                              first->is_registered ? "a registered backend" : first->path);
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_NAME, DS_ACCEL_STATE_SHADOWED, &finding);
    } else {
        ds_accel__candidate_pass_plain(candidate, DS_ACCEL__GATE_NAME,
                                       ds_accel__candidate_keep(candidate, file));
    }
    free(name);
    free(path);
    return ds_accel__registry_add(registry, candidate);
}

/*
 * Set *is_new_out to false if the directory has been scanned already, under any path. Otherwise set
 * it to true, and record the directory as scanned.
 */
static int32_t is_new_dir(struct scan *scan, const struct stat *info, bool *is_new_out)
{
    struct seen_dir *seen;

    for (size_t i = 0; i < scan->seen_count; i++) {
        if (scan->seen[i].device == info->st_dev && scan->seen[i].inode == info->st_ino) {
            *is_new_out = false;
            return DS_ACCEL_OK;
        }
    }
    seen = realloc(scan->seen, (scan->seen_count + 1) * sizeof(*seen));
    if (seen == NULL) {
        return ds_accel__no_memory();
    }
    scan->seen = seen;
    seen[scan->seen_count++] = (struct seen_dir){info->st_dev, info->st_ino};
    *is_new_out = true;
    return DS_ACCEL_OK;
}

static int32_t scan_names(struct scan *scan, const char *dir)
{
    const char *cause;
    char **names;
    size_t count;
    int32_t status = ds_accel__dir_list(dir, is_plugin_file, &names, &count, &cause);

    if (status == DS_ACCEL_ERR_IO) {
        ds_accel__log(&scan->context->log, "scan", DS_ACCEL_LOG_WARN, "cannot read %s: %s", dir,
                      cause);
        return DS_ACCEL_OK;
    }
    scan->before = scan->context->registry.count;
    for (size_t i = 0; i < count && status >= 0; i++) {
        status = add_plugin(scan, dir, names[i]);
    }
    ds_accel__names_free(names, count);
    return status == DS_ACCEL_ERR_NO_MEMORY ? status : DS_ACCEL_OK;
}

/*
 * Scan a directory. is_wanted: the program or the user's settings specified the directory, so warn
 * if it is absent.
 */
static int32_t scan_dir(struct scan *scan, const char *given, bool is_wanted)
{
    struct stat info;
    char *dir;
    bool is_new = false;
    int32_t status;

    if (stat(given, &info) != 0 || !S_ISDIR(info.st_mode)) {
        ds_accel__log(&scan->context->log, "scan",
                      is_wanted ? DS_ACCEL_LOG_WARN : DS_ACCEL_LOG_DEBUG, "%s is not a directory",
                      given);
        ds_accel__text_add(&scan->context->searched, "%s\n", given);
        return scan->context->searched.failed ? ds_accel__no_memory() : DS_ACCEL_OK;
    }
    status = is_new_dir(scan, &info, &is_new);
    if (status < 0 || !is_new) {
        return status;
    }
    dir = realpath(given, NULL); /* dlopen() must always receive absolute paths */
    if (dir == NULL && errno != ENOMEM) {
        ds_accel__log(&scan->context->log, "scan", DS_ACCEL_LOG_WARN, "cannot read %s: %s", given,
                      strerror(errno));
        return DS_ACCEL_OK;
    }
    if (dir == NULL) {
        return ds_accel__no_memory();
    }
    ds_accel__text_add(&scan->context->searched, "%s\n", dir);
    status = scan->context->searched.failed ? ds_accel__no_memory() : scan_names(scan, dir);
    free(dir);
    return status;
}

/*
 * Scan the directories of a colon-separated list. Empty items are skipped and never mean the
 * current directory.
 */
static int32_t scan_path(struct scan *scan, const char *path)
{
    int32_t status = DS_ACCEL_OK;
    const char *item;
    size_t length;

    while (path != NULL && status >= 0 &&
           (item = ds_accel__list_next(&path, ':', &length)) != NULL) {
        char *dir = strndup(item, length);

        status = dir == NULL ? ds_accel__no_memory() : scan_dir(scan, dir, true);
        free(dir);
    }
    return status;
}

static int32_t scan_library_dir(struct scan *scan)
{
    char *library = ds_accel__library_dir();
    char *dir = library != NULL ? ds_accel__format("%s/ds-accel", library) : NULL;
    int32_t status = dir == NULL ? ds_accel__no_memory() : scan_dir(scan, dir, false);

    free(dir);
    free(library);
    return status;
}

int32_t ds_accel__scan(ds_accel_t *context)
{
    struct scan scan = {.context = context};
    json_t *dirs = ds_accel__config_get(&context->config, "plugin_dirs", NULL);
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < context->plugin_dir_count && status >= 0; i++) {
        status = scan_dir(&scan, context->plugin_dirs[i], true);
    }
    if (status >= 0) {
        status = scan_path(&scan, context->env.values[DS_ACCEL__VARIABLE_PLUGIN_PATH]);
    }
    for (size_t i = 0; i < json_array_size(dirs) && status >= 0; i++) {
        status = scan_dir(&scan, json_string_value(json_array_get(dirs, i)), true);
    }
    if (status >= 0) {
        status = scan_library_dir(&scan);
    }
    if (status >= 0) {
        status = scan_dir(&scan, ds_accel__built_for.plugin_dir, false);
    }
    free(scan.seen);
    return status;
}
