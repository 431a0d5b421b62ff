/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Files that layers write: their paths, and the file of races, which lists the races even if the
 * program does not request a report. Each race is added as one line by one write(), so that several
 * processes can share the file.
 */
#include "base/file.h"
#include "base/text.h"
#include "config/config.h"
#include "config/env.h"
#include "host/context.h"
#include "layers/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Replace "%p" with the process ID. Returns a new string; NULL: out of memory. */
static char *expand(const char *pattern)
{
    struct ds_accel__text path = {0};

    for (const char *c = pattern; *c != '\0'; c++) {
        if (c[0] == '%' && c[1] == 'p') {
            ds_accel__text_add(&path, "%ld", (long)getpid());
            c++;
        } else {
            ds_accel__text_add_bytes(&path, c, 1);
        }
    }
    return ds_accel__text_take(&path);
}

int32_t ds_accel__layer_path(ds_accel_t *context, enum ds_accel__variable variable,
                             const char *object, const char *usual, char **path_out)
{
    const char *pattern = context->env.values[variable];
    char *path = NULL;

    pthread_mutex_lock(&context->config_lock);
    if (pattern == NULL) {
        json_t *configured = ds_accel__config_get(&context->config, object, "file", NULL);

        pattern = json_is_string(configured) ? json_string_value(configured) : usual;
    }
    if (pattern != NULL && pattern[0] != '\0') {
        path = expand(pattern);
    }
    pthread_mutex_unlock(&context->config_lock);
    if (path == NULL && pattern != NULL && pattern[0] != '\0') {
        return ds_accel__no_memory();
    }
    *path_out = path;
    return DS_ACCEL_OK;
}

/* ---- the file of races ---------------------------------------------------------------------- */

int ds_accel__race_file_open(ds_accel_t *context)
{
    char *path = NULL;
    int fd = -1;
    int32_t status =
        ds_accel__layer_path(context, DS_ACCEL__VARIABLE_RACE_FILE, "validate", NULL, &path);

    if (status >= 0 && path == NULL) {
        return -1;
    }
    if (path != NULL) {
        fd = open(path,
                  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
                  0666);
    }
    if (fd < 0) {
        ds_accel__log(&context->log, "race", DS_ACCEL_LOG_WARN, "races are not written to %s: %s",
                      path != NULL ? path : "their file",
                      path != NULL ? strerror(errno) : ds_accel_last_error());
    }
    free(path);
    return fd;
}

void ds_accel__race_file_add(int fd, const char *line, size_t length)
{
    struct stat info;

    /* The size is checked before the write, because a write past the file size limit raises
     * SIGXFSZ, which would kill the program. */
    if (fstat(fd, &info) == 0 &&
        (!S_ISREG(info.st_mode) || ds_accel__file_may_have((size_t)info.st_size + length))) {
        ssize_t written;

        do {
            written = write(fd, line, length);
        } while (written < 0 && errno == EINTR);
    }
}
