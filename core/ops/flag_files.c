/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Which files flags name. Compilers and linkers have hundreds of options that take a file, in many
 * forms, so whatever is a file when it is read as a path is taken for one: a name too many makes a
 * key more particular than it need be, one too few lets an op stay that no longer fits.
 */
#include "ops/flag_files.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void add_if_file(const char *directory, const char *name, size_t length,
                        struct ds_accel__arguments *files)
{
    struct stat info;
    char *path;

    if (length == 0 || (name[0] != '/' && directory == NULL)) {
        return;
    }
    path = name[0] == '/' ? strndup(name, length)
                          : ds_accel__format("%s/%.*s", directory, (int)length, name);
    if (path == NULL) {
        files->failed = true;
    } else if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
        ds_accel__arguments_add(files, "%s", path);
    }
    free(path);
}

/* A name ends at the flag's end, or at a comma, which separates arguments of the linker. */
static void add_names(const char *directory, const char *begin, struct ds_accel__arguments *files)
{
    size_t length = strlen(begin);
    size_t part = strcspn(begin, ",");

    add_if_file(directory, begin, length, files);
    if (part < length) {
        add_if_file(directory, begin, part, files);
    }
}

void ds_accel__flag_files(char *const *flags, const char *directory,
                          struct ds_accel__arguments *files)
{
    for (; *flags != NULL; flags++) {
        const char *flag = *flags;

        if (strstr(flag, "-Map") != NULL) {
            continue;
        }
        add_names(directory, flag, files);
        if (flag[0] == '-' && flag[1] != '\0') {
            add_names(directory, flag + 2, files);
        }
        for (const char *at = flag; (at = strpbrk(at, "=,@:")) != NULL; at++) {
            add_names(directory, at + 1, files);
        }
    }
}
