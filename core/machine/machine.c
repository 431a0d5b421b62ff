/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Access to the machine for all readers: files, directories, links and device nodes below a root,
 * or those of a recording, which stores them by path. A reader uses the same path in both cases, so
 * a recording need not resolve links. While a recorder is set, everything that is read, except
 * files in /etc, is also stored in it, so that the recording contains what any reader has read.
 */
#include "machine/machine.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_LIMIT_BYTES (4 * 1024 * 1024) /* mountinfo and cpuinfo can be long */

const struct ds_accel__machine ds_accel__machine_here = {.root = ""};

/* ---- recordings ----------------------------------------------------------------------------- */

static json_t *recorded(const struct ds_accel__machine *machine, const char *path, const char *kind)
{
    return json_object_get(json_object_get(machine->files, path), kind);
}

/*
 * Record what was read at a path. Takes ownership of value, which is NULL after a failed
 * allocation.
 */
static void note(const struct ds_accel__machine *machine, const char *path, const char *kind,
                 json_t *value)
{
    struct ds_accel__recorder *recorder = machine->recorder;
    json_t *entry;

    /* A machine read from a recording is not recorded again. */
    assert(recorder != NULL && machine->files == NULL);
    if (strncmp(path, "/etc/", 5) == 0) { /* names of users stay private */
        json_decref(value);
        return;
    }
    pthread_mutex_lock(&recorder->lock);
    entry = json_object_get(recorder->files, path);
    if (entry == NULL) {
        entry = json_object();
        ds_accel__json_set(recorder->files, path, entry, &recorder->failed);
        entry = json_object_get(recorder->files, path);
    }
    ds_accel__json_set(entry, kind, value, &recorder->failed);
    pthread_mutex_unlock(&recorder->lock);
}

/* ---- reading -------------------------------------------------------------------------------- */

/*
 * Prepend the root to a path. False if the result exceeds PATH_MAX, which the kernel rejects, too.
 */
static bool full_path(const struct ds_accel__machine *machine, const char *path,
                      char full[static PATH_MAX])
{
    int length = snprintf(full, PATH_MAX, "%s%s", machine->root, path);

    return length >= 0 && length < PATH_MAX;
}

int32_t ds_accel__machine_read(const struct ds_accel__machine *machine, const char *path,
                               char **text_out)
{
    char full[PATH_MAX];
    const char *cause;
    size_t size;
    int32_t status;

    *text_out = NULL;
    if (machine->files != NULL) {
        json_t *text = recorded(machine, path, "text");

        if (text != NULL && (*text_out = strdup(json_string_value(text))) == NULL) {
            return ds_accel__no_memory();
        }
        return DS_ACCEL_OK;
    }
    if (!full_path(machine, path, full)) {
        return DS_ACCEL_OK;
    }
    status = ds_accel__file_read(full, FILE_LIMIT_BYTES, text_out, &size, &cause);
    if (status >= 0 && machine->recorder != NULL) {
        note(machine, path, "text", ds_accel__json_text(*text_out));
    }
    return status == DS_ACCEL_ERR_NO_MEMORY ? status : DS_ACCEL_OK;
}

int32_t ds_accel__machine_line(const struct ds_accel__machine *machine, const char *path,
                               char *line, size_t line_size)
{
    char *text;
    int32_t status = ds_accel__machine_read(machine, path, &text);

    line[0] = '\0';
    if (status >= 0 && text != NULL) {
        snprintf(line, line_size, "%.*s", (int)strcspn(text, "\n"), text);
        ds_accel__sanitize(line, line_size);
    }
    free(text);
    return status;
}

static bool is_entry(const char *name)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int32_t list_recorded(json_t *recorded_names, char ***names_out, size_t *count_out)
{
    size_t count = json_array_size(recorded_names);
    char **names = calloc(count + 1, sizeof(char *));

    for (size_t i = 0; i < count && names != NULL; i++) {
        names[i] = strdup(json_string_value(json_array_get(recorded_names, i)));
        if (names[i] == NULL) {
            ds_accel__names_free(names, i);
            names = NULL;
        }
    }
    if (names == NULL) {
        return ds_accel__no_memory();
    }
    *names_out = names;
    *count_out = count;
    return DS_ACCEL_OK;
}

static void note_names(const struct ds_accel__machine *machine, const char *path, char **names,
                       size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        if (json_array_append_new(array, ds_accel__json_text(names[i])) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    note(machine, path, "names", array);
}

int32_t ds_accel__machine_list(const struct ds_accel__machine *machine, const char *path,
                               char ***names_out, size_t *count_out)
{
    char full[PATH_MAX];
    const char *cause;
    int32_t status;

    *names_out = NULL;
    *count_out = 0;
    if (machine->files != NULL) {
        return list_recorded(recorded(machine, path, "names"), names_out, count_out);
    }
    if (!full_path(machine, path, full)) {
        return DS_ACCEL_OK;
    }
    status = ds_accel__dir_list(full, is_entry, names_out, count_out, &cause);
    if (status >= 0 && *count_out > 0 && machine->recorder != NULL) {
        note_names(machine, path, *names_out, *count_out);
    }
    return status == DS_ACCEL_ERR_NO_MEMORY ? status : DS_ACCEL_OK;
}

bool ds_accel__machine_link(const struct ds_accel__machine *machine, const char *path, char *target,
                            size_t target_size)
{
    char full[PATH_MAX];
    ssize_t length;

    if (machine->files != NULL) {
        const char *link = json_string_value(recorded(machine, path, "link"));

        return link != NULL && (size_t)snprintf(target, target_size, "%s", link) < target_size;
    }
    if (!full_path(machine, path, full)) {
        return false;
    }
    length = readlink(full, target, target_size);
    if (length <= 0 || (size_t)length >= target_size) {
        return false;
    }
    target[length] = '\0';
    if (machine->recorder != NULL) {
        note(machine, path, "link", ds_accel__json_text(target));
    }
    return true;
}

bool ds_accel__machine_is_closed(const struct ds_accel__machine *machine, const char *path,
                                 int mode)
{
    char full[PATH_MAX];

    return machine->files == NULL && full_path(machine, path, full) &&
           faccessat(AT_FDCWD, full, mode, AT_EACCESS) != 0 && (errno == EACCES || errno == EPERM);
}

/* ---- device nodes --------------------------------------------------------------------------- */

static const char *const node_keys[] = {"mode", "uid", "gid", "rdev", "changed_ns"};

static json_t *node_tree(const struct ds_accel__machine_node *node)
{
    const uint64_t values[] = {node->mode, node->uid, node->gid, node->rdev, node->changed_ns};
    json_t *tree = json_object();
    bool failed = false;

    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        ds_accel__json_set(tree, node_keys[i], json_integer((json_int_t)values[i]), &failed);
    }
    ds_accel__json_set(tree, "is_usable", json_boolean(node->is_usable), &failed);
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

static void read_recorded_node(const json_t *tree, struct ds_accel__machine_node *node)
{
    uint64_t values[ARRAY_SIZE(node_keys)];

    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        values[i] = (uint64_t)json_integer_value(json_object_get(tree, node_keys[i]));
    }
    node->mode = (mode_t)values[0];
    node->uid = (uid_t)values[1];
    node->gid = (gid_t)values[2];
    node->rdev = (dev_t)values[3];
    node->changed_ns = values[4];
    node->is_usable = json_is_true(json_object_get(tree, "is_usable"));
}

bool ds_accel__machine_node(const struct ds_accel__machine *machine, const char *path,
                            struct ds_accel__machine_node *node)
{
    char full[PATH_MAX];
    struct stat info;

    memset(node, 0, sizeof(*node));
    if (machine->files != NULL) {
        const json_t *tree = recorded(machine, path, "node");

        if (tree != NULL) {
            read_recorded_node(tree, node);
        }
        return tree != NULL;
    }
    if (!full_path(machine, path, full) || stat(full, &info) != 0 || S_ISDIR(info.st_mode)) {
        return false;
    }
    node->mode = info.st_mode;
    node->uid = info.st_uid;
    node->gid = info.st_gid;
    node->rdev = info.st_rdev;
    node->changed_ns = (uint64_t)info.st_ctim.tv_sec * 1000000000u + (uint64_t)info.st_ctim.tv_nsec;
    node->is_usable = faccessat(AT_FDCWD, full, R_OK | W_OK, AT_EACCESS) == 0;
    if (machine->recorder != NULL) {
        note(machine, path, "node", node_tree(node));
    }
    return true;
}
