/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The text that is remembered of a load. Each load parses it, and as JSON this took a third of the
 * time that a load adds to dlopen(). So it has lines:
 *
 *     question 612              bytes of the question, which follows
 *     0.1.0: cpu cpu_adam, configuration ...
 *     op cpu_adam
 *     path /home/u/.cache/ds-accel/ops/cpu_adam.KEY.so
 *     path_identity 0123456789abcdef
 *     manifest /home/u/.cache/ds-accel/ops/cpu_adam.DIGEST.json
 *     manifest_identity 0123456789abcdef
 *     files_identity 0123456789abcdef
 *     compiler cc /usr/bin/cc
 *     /usr/include/math.h       sources, headers, programs
 *     /usr/include/bits/        a directory, to which the next names are relative
 *     types.h
 *
 * The kernel walks a path name by name: fstatat() of a name in an open directory takes 1.1 us where
 * that of a long path takes 1.5 us.
 */
#include "ops/load_record.h"
#include "base/text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHARED_FILES 8u /* a directory is opened for so many files */

/* ---- identities ------------------------------------------------------------------------------ */

uint64_t ds_accel__identity_add(const struct stat *info, uint64_t identity)
{
    const struct {
        uint64_t device, inode, size;
        struct timespec modified, changed;
    } parts = {info->st_dev, info->st_ino, (uint64_t)info->st_size, info->st_mtim, info->st_ctim};

    return ds_accel__hash(&parts, sizeof(parts), identity);
}

void ds_accel__identity_text(uint64_t identity, char text[DS_ACCEL__IDENTITY_SIZE])
{
    snprintf(text, DS_ACCEL__IDENTITY_SIZE, "%016" PRIx64, identity);
}

/* Copy the next line and move *text behind it. False: there is none, or it is longer than a path
 * may be. */
static bool copy_line(const char **text, char line[PATH_MAX])
{
    size_t length = strcspn(*text, "\n");

    if (length == 0 || length >= PATH_MAX) {
        return false;
    }
    memcpy(line, *text, length);
    line[length] = '\0';
    *text += length + ((*text)[length] == '\n');
    return true;
}

static void close_directory(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

/* An absolute name is not relative to the directory, which may be AT_FDCWD then. */
static bool add_file(int directory, const char *name, uint64_t *identity)
{
    struct stat info;

    if ((directory < 0 && name[0] != '/') || fstatat(directory, name, &info, 0) != 0 ||
        (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))) {
        return false;
    }
    *identity = ds_accel__identity_add(&info, *identity);
    return true;
}

bool ds_accel__load_record_identify(const char *files, uint64_t *identity_out)
{
    char line[PATH_MAX];
    int directory = AT_FDCWD;
    bool done = true;

    *identity_out = 0;
    while (done && files[0] != '\0') {
        done = copy_line(&files, line);
        if (done && line[0] == '/' && line[strlen(line) - 1] == '/') {
            close_directory(directory);
            directory = open(line, O_PATH | O_DIRECTORY | O_CLOEXEC);
            done = directory >= 0;
        } else if (done) {
            done = add_file(directory, line, identity_out);
        }
    }
    close_directory(directory);
    return done;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The length of the path's directory, with the slash. */
static size_t directory_length(const char *path)
{
    return (size_t)(strrchr(path, '/') + 1 - path);
}

static bool is_beside(const char *path, const char *other)
{
    size_t length = directory_length(path);

    return directory_length(other) == length && memcmp(path, other, length) == 0;
}

/* By directory, then by name. */
static int compare_paths(const void *first, const void *second)
{
    const char *a = *(const char *const *)first;
    const char *b = *(const char *const *)second;
    size_t a_length = directory_length(a);
    size_t b_length = directory_length(b);
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);

    if (order == 0 && a_length != b_length) {
        order = a_length < b_length ? -1 : 1;
    }
    return order != 0 ? order : strcmp(a + a_length, b + b_length);
}

/* Add a path or name. A slash at the end has another meaning in the lines. */
static void add_line(struct ds_accel__text *text, const char *name)
{
    size_t length = strlen(name);
    bool is_directory = length == 0 || name[length - 1] == '/';

    ds_accel__text_add(text, "%s%s\n", name, is_directory ? "." : "");
}

char *ds_accel__load_record_files(const char **paths, size_t count)
{
    struct ds_accel__text text = {0};
    size_t end;

    for (size_t i = 0; i < count; i++) {
        if (paths[i][0] != '/' || strchr(paths[i], '\n') != NULL) {
            return NULL;
        }
    }
    qsort(paths, count, sizeof(*paths), compare_paths);
    for (size_t i = 0; i < count; i = end) {
        size_t length = directory_length(paths[i]);
        bool is_opened;

        for (end = i + 1; end < count && is_beside(paths[i], paths[end]); end++) {
        }
        is_opened = end - i >= SHARED_FILES;
        if (is_opened) {
            ds_accel__text_add(&text, "%.*s\n", (int)length, paths[i]);
        }
        for (size_t j = i; j < end; j++) {
            add_line(&text, is_opened ? paths[j] + length : paths[j]);
        }
    }
    return ds_accel__text_take(&text);
}

static bool is_line(const char *text)
{
    return text != NULL && text[0] != '\0' && strchr(text, '\n') == NULL;
}

char *ds_accel__load_record_format(const struct ds_accel__load_record *record, const char *question)
{
    struct ds_accel__text text = {0};
    bool is_sound = is_line(record->op) && is_line(record->path) && is_line(record->manifest);

    ds_accel__text_add(&text, "question %zu\n%s\n", strlen(question), question);
    ds_accel__text_add(&text, "op %s\npath %s\npath_identity %s\n", record->op, record->path,
                       record->path_identity);
    ds_accel__text_add(&text, "manifest %s\nmanifest_identity %s\nfiles_identity %s\n",
                       record->manifest, record->manifest_identity, record->files_identity);
    for (size_t i = 0; i < record->compiler_count; i++) {
        ds_accel__text_add(&text, "compiler %s %s\n", record->compilers[i].name,
                           record->compilers[i].path);
        is_sound = is_sound && is_line(record->compilers[i].name) &&
                   is_line(record->compilers[i].path);
    }
    ds_accel__text_add(&text, "%s", record->files);
    if (!is_sound) {
        ds_accel__text_clear(&text);
        return NULL;
    }
    return ds_accel__text_take(&text);
}

/* ---- parsing --------------------------------------------------------------------------------- */

/* Take the value of the next line, if it has this key, and move *text behind it. NULL: it has not,
 * or its value is empty. */
static char *take_value(char **text, const char *key)
{
    size_t length = strlen(key);
    char *value = *text + length + 1;
    size_t size;

    if (strncmp(*text, key, length) != 0 || (*text)[length] != ' ') {
        return NULL;
    }
    size = strcspn(value, "\n");
    if (size == 0 || value[size] == '\0') {
        return NULL;
    }
    value[size] = '\0';
    *text = value + size + 1;
    return value;
}

/* Move *text behind the question. False: it is another one. */
static bool skip_question(char **text, const char *question)
{
    size_t length = strlen(question);
    char head[40];
    size_t head_length = (size_t)snprintf(head, sizeof(head), "question %zu\n", length);

    if (strncmp(*text, head, head_length) != 0 ||
        strncmp(*text + head_length, question, length) != 0 ||
        (*text)[head_length + length] != '\n') {
        return false;
    }
    *text += head_length + length + 1;
    return true;
}

/* Take "NAME PATH" of the compilers. */
static bool take_compilers(char **text, struct ds_accel__load_record *record)
{
    char *value;

    while ((value = take_value(text, "compiler")) != NULL) {
        char *space = strchr(value, ' ');

        if (space == NULL || space == value || space[1] == '\0' ||
            record->compiler_count == ARRAY_SIZE(record->compilers)) {
            return false;
        }
        *space = '\0';
        record->compilers[record->compiler_count].name = value;
        record->compilers[record->compiler_count++].path = space + 1;
    }
    return record->compiler_count > 0;
}

bool ds_accel__load_record_parse(char *text, const char *question,
                                 struct ds_accel__load_record *record)
{
    *record = (struct ds_accel__load_record){.compiler_count = 0};
    if (!skip_question(&text, question) || (record->op = take_value(&text, "op")) == NULL ||
        (record->path = take_value(&text, "path")) == NULL ||
        (record->path_identity = take_value(&text, "path_identity")) == NULL ||
        (record->manifest = take_value(&text, "manifest")) == NULL ||
        (record->manifest_identity = take_value(&text, "manifest_identity")) == NULL ||
        (record->files_identity = take_value(&text, "files_identity")) == NULL ||
        !take_compilers(&text, record)) {
        return false;
    }
    record->files = text;
    return strlen(record->op) < DS_ACCEL__OP_NAME_SIZE && record->path[0] == '/' &&
           record->manifest[0] == '/' && record->files[0] == '/';
}
