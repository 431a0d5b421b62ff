/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Files in the directory of this host. They contain what identifies files, which includes numbers
 * of devices, so they hold until the next boot.
 */
#include "ops/local.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "host/cache_disk.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_BYTES ((size_t)1 << 20)
#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* This boot's ID as a new string; NULL: unknown, or memory is exhausted. */
static char *boot_id(void)
{
    const char *cause;
    char *text = NULL;
    size_t size;

    if (ds_accel__file_read(BOOT_ID, 64, &text, &size, &cause) < 0) {
        return NULL;
    }
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static int open_local(const struct ds_accel__stores *stores, bool can_make)
{
    char problem[512];
    int error;

    return stores->local != NULL
               ? ds_accel__cache_directory_open(stores->local, stores->is_local_private, can_make,
                                                &error, problem, sizeof(problem))
               : -1;
}

/* Read a file of this host into a new, NUL-terminated text. NULL: there is none. */
static char *read_file(const struct ds_accel__stores *stores, const char *name, size_t *size_out)
{
    int directory = open_local(stores, false);
    const char *problem;
    char *data = NULL;

    if (directory >= 0) {
        if (ds_accel__cache_file_read(directory, name, LIMIT_BYTES, &data, size_out, &problem) >=
                0 &&
            data != NULL) {
            data[*size_out] = '\0'; /* the buffer has a byte more than the file */
        }
        close(directory);
    }
    return data;
}

static void write_file(const struct ds_accel__stores *stores, const char *name,
                       const struct ds_accel__text *text)
{
    int directory = text->failed ? -1 : open_local(stores, true);

    if (directory >= 0) {
        ds_accel__cache_file_write(directory, name, text);
        close(directory);
    }
}

json_t *ds_accel__local_read(const struct ds_accel__stores *stores, const char *name)
{
    size_t size = 0;
    char *data = read_file(stores, name, &size);
    char *boot = data != NULL ? boot_id() : NULL;
    json_t *object = NULL;

    if (boot != NULL && ds_accel__json_has_headroom(size)) {
        object = json_loadb(data, size, 0, NULL);
    }
    if (boot == NULL || strcmp(ds_accel__json_string(object, "boot"), boot) != 0) {
        json_decref(object);
        object = NULL;
    }
    free(data);
    free(boot);
    return object;
}

void ds_accel__local_write(const struct ds_accel__stores *stores, const char *name, json_t *object)
{
    char *boot = boot_id();
    struct ds_accel__text text = {0};
    bool failed = boot == NULL;

    ds_accel__json_set(object, "boot", boot != NULL ? ds_accel__json_text(boot) : NULL, &failed);
    if (!failed) {
        ds_accel__text_add_json(&text, object, JSON_COMPACT);
        write_file(stores, name, &text);
    }
    ds_accel__text_clear(&text);
    free(boot);
}

char *ds_accel__local_read_text(const struct ds_accel__stores *stores, const char *name)
{
    size_t size = 0;
    char *data = read_file(stores, name, &size);
    char *boot = data != NULL ? boot_id() : NULL;
    size_t length = boot != NULL ? strlen(boot) : 0;
    bool is_current = length > 0 && strlen(data) == size && strncmp(data, boot, length) == 0 &&
                      data[length] == '\n';

    if (is_current) {
        memmove(data, data + length + 1, size - length); /* with the NUL */
    } else {
        free(data);
        data = NULL;
    }
    free(boot);
    return data;
}

void ds_accel__local_write_text(const struct ds_accel__stores *stores, const char *name,
                                const char *content)
{
    char *boot = boot_id();
    struct ds_accel__text text = {0};

    if (boot != NULL) {
        ds_accel__text_add(&text, "%s\n%s", boot, content);
        write_file(stores, name, &text);
    }
    ds_accel__text_clear(&text);
    free(boot);
}
