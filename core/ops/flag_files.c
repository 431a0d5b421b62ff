/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Which files flags name. Compilers and linkers have hundreds of options that take a file, in many
 * forms, so whatever is a file when it is read as a path is taken for one, except behind the few
 * options that name a file to write. The words of response files (@FILE) are flags, too.
 */
#include "ops/flag_files.h"
#include "base/file.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define RESPONSE_LIMIT_BYTES ((size_t)1 << 20)
#define WORDS_LIMIT 10000u /* then response files, which may name each other, are not read */
#define RESPONSE_DEPTH 8u  /* of response files that name others, perhaps themselves */

/* ---- response files -------------------------------------------------------------------------- */

/* Split a text as GCC does: at blanks that are not quoted by '...', "..." or a backslash. */
static void split(const char *text, struct ds_accel__arguments *words)
{
    struct ds_accel__text word = {0};

    while (*text != '\0') {
        char quote = '\0';

        if (ds_accel__is_blank(*text)) {
            text++;
            continue;
        }
        word.size_bytes = 0;
        if (word.data != NULL) {
            word.data[0] = '\0';
        }
        for (; *text != '\0' && (quote != '\0' || !ds_accel__is_blank(*text)); text++) {
            if (*text == '\\' && text[1] != '\0' && quote != '\'') {
                ds_accel__text_add_bytes(&word, ++text, 1);
            } else if (quote != '\0' ? *text == quote : *text == '\'' || *text == '"') {
                quote = quote != '\0' ? '\0' : *text;
            } else {
                ds_accel__text_add_bytes(&word, text, 1);
            }
        }
        if (!word.failed) {
            ds_accel__arguments_add(words, "%.*s", (int)word.size_bytes,
                                    word.data != NULL ? word.data : "");
        }
    }
    words->failed = words->failed || word.failed;
    ds_accel__text_clear(&word);
}

/* The name of a response file in a part of a flag; NULL: there is none. */
static const char *response_name(const char *part, size_t length)
{
    static const char *const options[] = {"@", "-optf=", "--options-file=", "--config="};

    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        size_t option_length = strlen(options[i]);

        if (length > option_length && strncmp(part, options[i], option_length) == 0) {
            return part + option_length;
        }
    }
    return NULL;
}

/* Whether the next flag is the name of a response file, of nvcc or Clang. */
static bool takes_response(const char *flag)
{
    return strcmp(flag, "-optf") == 0 || strcmp(flag, "--options-file") == 0 ||
           strcmp(flag, "--config") == 0;
}

static void add_words(char *const *flags, const char *directory, unsigned depth,
                      struct ds_accel__arguments *words);

/* Add the words of a file. One that cannot be read or is too large is what the compiler reports. */
static void add_response(const char *name, size_t length, const char *directory, unsigned depth,
                         struct ds_accel__arguments *words)
{
    struct ds_accel__arguments list = {0};
    const char *cause;
    char *text = NULL;
    size_t size = 0;
    char **flags;
    char *path;
    int32_t status;

    if (depth == 0 || words->count > WORDS_LIMIT || (name[0] != '/' && directory == NULL)) {
        return;
    }
    path = name[0] == '/' ? strndup(name, length)
                          : ds_accel__format("%s/%.*s", directory, (int)length, name);
    status = path != NULL ? ds_accel__file_read(path, RESPONSE_LIMIT_BYTES, &text, &size, &cause)
                          : DS_ACCEL_ERR_NO_MEMORY;
    words->failed = words->failed || status == DS_ACCEL_ERR_NO_MEMORY;
    if (status >= 0) {
        split(text, &list);
        flags = ds_accel__arguments_take(&list);
        words->failed = words->failed || flags == NULL;
        if (flags != NULL) {
            add_words(flags, directory, depth - 1, words);
        }
        ds_accel__arguments_free(flags);
    }
    free(text);
    free(path);
}

static void add_words(char *const *flags, const char *directory, unsigned depth,
                      struct ds_accel__arguments *words)
{
    for (size_t i = 0; flags[i] != NULL; i++) {
        const char *part = flags[i];

        ds_accel__arguments_add(words, "%s", flags[i]);
        if (i > 0 && takes_response(flags[i - 1])) {
            add_response(part, strlen(part), directory, depth, words);
        }
        for (;;) { /* also -Wl,@FILE */
            size_t length = strcspn(part, ",");
            const char *name = response_name(part, length);

            if (name != NULL) {
                add_response(name, length - (size_t)(name - part), directory, depth, words);
            }
            if (part[length] == '\0') {
                break;
            }
            part += length + 1;
        }
    }
}

void ds_accel__flag_words(char *const *flags, const char *directory,
                          struct ds_accel__arguments *words)
{
    add_words(flags, directory, RESPONSE_DEPTH, words);
}

/* ---- files ----------------------------------------------------------------------------------- */

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

static void add_files(char *const *flags, const char *directory, struct ds_accel__arguments *files)
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

void ds_accel__flag_files(char *const *flags, const char *directory,
                          struct ds_accel__arguments *files)
{
    struct ds_accel__arguments list = {0};
    char **words;

    ds_accel__flag_words(flags, directory, &list);
    words = ds_accel__arguments_take(&list);
    files->failed = files->failed || words == NULL;
    if (words != NULL) {
        add_files(words, directory, files);
    }
    ds_accel__arguments_free(words);
}
