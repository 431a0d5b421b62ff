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

json_t *ds_accel__local_read(const struct ds_accel__stores *stores, const char *name)
{
    int directory = open_local(stores, false);
    char *boot = directory >= 0 ? boot_id() : NULL;
    const char *problem;
    char *data = NULL;
    size_t size = 0;
    json_t *object = NULL;

    if (boot != NULL &&
        ds_accel__cache_file_read(directory, name, LIMIT_BYTES, &data, &size, &problem) >= 0 &&
        data != NULL && ds_accel__json_has_headroom(size)) {
        object = json_loadb(data, size, 0, NULL);
    }
    if (boot == NULL || strcmp(ds_accel__json_string(object, "boot"), boot) != 0) {
        json_decref(object);
        object = NULL;
    }
    free(data);
    free(boot);
    if (directory >= 0) {
        close(directory);
    }
    return object;
}

void ds_accel__local_write(const struct ds_accel__stores *stores, const char *name, json_t *object)
{
    int directory = open_local(stores, true);
    char *boot = directory >= 0 ? boot_id() : NULL;
    struct ds_accel__text text = {0};
    bool failed = boot == NULL;

    ds_accel__json_set(object, "boot", boot != NULL ? ds_accel__json_text(boot) : NULL, &failed);
    if (!failed) {
        ds_accel__text_add_json(&text, object, JSON_COMPACT);
        if (!text.failed) {
            ds_accel__cache_file_write(directory, name, &text);
        }
    }
    ds_accel__text_clear(&text);
    free(boot);
    if (directory >= 0) {
        close(directory);
    }
}
