/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Which files flags name. Compilers and linkers have hundreds of options that take a file, in many
 * forms, so whatever is a file when it is read as a path is taken for one, except behind the few
 * options that name a file to write.
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

/* The option at the begin of a part that names a file to write; NULL: there is none. */
static const char *output_option(const char *part, size_t length)
{
    static const char *const options[] = {"-Map",         "--Map", "--dependency-file",
                                          "--out-implib", "-o",    "-MF"};

    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        size_t option_length = strlen(options[i]);

        if (length >= option_length && strncmp(part, options[i], option_length) == 0 &&
            (length == option_length || part[option_length] == '=')) {
            return options[i];
        }
    }
    return NULL;
}

/* Whether a part only passes what follows to the linker. */
static bool passes_on(const char *part, size_t length)
{
    return (length == 8 && strncmp(part, "-Xlinker", 8) == 0) ||
           (length == 3 && strncmp(part, "-Wl", 3) == 0);
}

/* Add the files that a part of a flag names: all of it, or what is behind two letters or a sign. */
static void add_part(const char *directory, const char *part, size_t length,
                     struct ds_accel__arguments *files)
{
    add_if_file(directory, part, length, files);
    if (length > 2 && part[0] == '-') {
        add_if_file(directory, part + 2, length - 2, files);
    }
    for (size_t i = 0; i < length; i++) {
        if (strchr("=@:", part[i]) != NULL) {
            add_if_file(directory, part + i + 1, length - i - 1, files);
        }
    }
}

void ds_accel__flag_files(char *const *flags, const char *directory,
                          struct ds_accel__arguments *files)
{
    bool is_output = false; /* the next part is a file to write */

    for (; *flags != NULL; flags++) {
        const char *flag = *flags;
        const char *part = flag;

        if (strchr(flag, ',') != NULL) { /* a name that has commas */
            add_if_file(directory, flag, strlen(flag), files);
        }
        for (;;) {
            size_t length = strcspn(part, ",");
            const char *option = output_option(part, length);

            if (option != NULL) {
                is_output = length == strlen(option);
            } else if (is_output) {
                is_output = passes_on(part, length);
            } else {
                add_part(directory, part, length, files);
            }
            if (part[length] == '\0') {
                break;
            }
            part += length + 1;
        }
    }
}
