/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Compilers run the program ld.NAME for -fuse-ld=NAME, and search it as their other programs: in
 * the directories of -B, in their own, then in PATH. They print what they find for
 * -print-prog-name=ld.NAME. For -print-prog-name=ld, GCC 12 and Clang ignore -fuse-ld=lld. Clang
 * also takes paths: -fuse-ld=/PATH and --ld-path=/PATH.
 */
#include "ops/linker.h"
#include "base/text.h"
#include "ops/answers.h"
#include "ops/command.h"
#include "ops/compiler.h"
#include "ops/digest.h"
#include "ops/flag_files.h"
#include "ops/identity.h"
#include "ops/recipe.h"

#include <stdlib.h>
#include <string.h>

#define USE "-fuse-ld="
#define PATH_OPTION "--ld-path="
#define PREFIX_OPTION "--prefix" /* -B */

/* What the options say. */
struct choice {
    const char *name;                 /* the last NAME of -fuse-ld=NAME; NULL: none */
    const char *path;                 /* the last of --ld-path, which precedes; NULL: none */
    struct ds_accel__arguments found; /* the options -B, for the question */
};

/* Add an option -B; a relative directory is below the one in which the link runs. */
static void add_prefix(struct choice *choice, const char *directory, const char *prefix)
{
    if (prefix[0] == '/') {
        ds_accel__arguments_add(&choice->found, "-B%s", prefix);
    } else {
        ds_accel__arguments_add(&choice->found, "-B%s/%s", directory, prefix);
    }
}

static void read_options(struct choice *choice, char *const *words, const char *directory)
{
    for (; *words != NULL; words++) {
        if (strcmp(*words, "-Xlinker") == 0 && words[1] != NULL) {
            words++; /* an option of the linker, such as -Bsymbolic */
        } else if (strncmp(*words, USE, strlen(USE)) == 0) {
            choice->name = *words + strlen(USE);
        } else if (strncmp(*words, PATH_OPTION, strlen(PATH_OPTION)) == 0) {
            choice->path = *words + strlen(PATH_OPTION);
        } else if ((strcmp(*words, "-B") == 0 || strcmp(*words, PREFIX_OPTION) == 0) &&
                   words[1] != NULL) {
            add_prefix(choice, directory, *++words);
        } else if (strncmp(*words, PREFIX_OPTION "=", strlen(PREFIX_OPTION "=")) == 0) {
            add_prefix(choice, directory, *words + strlen(PREFIX_OPTION "="));
        } else if (strncmp(*words, "-B", 2) == 0 && (*words)[2] != '\0') {
            add_prefix(choice, directory, *words + 2);
        }
    }
}

/* All words that the compiler that links gets, except those of the sources. NULL: no memory. */
static char **link_words(const struct ds_accel__compiler *compiler,
                         const struct ds_accel__recipe *recipe)
{
    struct ds_accel__arguments list = {0};

    ds_accel__flag_words(compiler->arguments + 1, NULL, &list);
    ds_accel__flag_words(recipe->ldflags, recipe->source_dir, &list);
    return ds_accel__arguments_take(&list);
}

/* Ask the compiler for the path of its program; one that does not answer may search in PATH. */
static int32_t ask(const struct ds_accel__compiler *compiler, const char *program,
                   char *const *prefixes, char **path_out)
{
    struct ds_accel__arguments list = {0};
    char *option = ds_accel__format("-print-prog-name=%s", program);
    char *output = NULL;
    char **arguments;
    int32_t status;

    ds_accel__arguments_add_all(&list, compiler->arguments);
    ds_accel__arguments_add_all(&list, prefixes);
    arguments = ds_accel__arguments_take(&list);
    status = option != NULL && arguments != NULL
                 ? ds_accel__compiler_ask(arguments, option, NULL, &output)
                 : ds_accel__no_memory();
    if (status >= 0) {
        output[strcspn(output, "\r\n")] = '\0';
        status = ds_accel__program_find(output, path_out);
    } else if (status == DS_ACCEL_ERR_IO) {
        status = ds_accel__program_find(program, path_out);
    }
    free(output);
    free(option);
    ds_accel__arguments_free(arguments);
    return status;
}

/* What the choice depends on beside files. NULL: memory is exhausted. */
static char *make_question(const struct ds_accel__compiler *compiler, const char *program,
                           char *const *prefixes)
{
    struct ds_accel__text text = {0};

    ds_accel__text_add(&text, "linker %s", program);
    for (; *prefixes != NULL; prefixes++) {
        ds_accel__text_add(&text, "\n%s", *prefixes);
    }
    ds_accel__text_add(&text, "\n%s", compiler->question);
    return ds_accel__text_take(&text);
}

/* With the directories of -B, in which the program could appear. If one does not exist, nothing is
 * remembered. */
static void remember(const struct ds_accel__compiler *compiler, char *const *prefixes,
                     const struct ds_accel__op_linker *linker)
{
    struct ds_accel__arguments list = {0};
    char **files;

    ds_accel__arguments_add(&list, "%s", compiler->path);
    ds_accel__arguments_add(&list, "%s", linker->path);
    for (; *prefixes != NULL; prefixes++) {
        ds_accel__arguments_add(&list, "%s", *prefixes + strlen("-B"));
    }
    ds_accel__identity_add_directories(&list);
    files = ds_accel__arguments_take(&list);
    if (files != NULL) {
        ds_accel__answer_remember(linker->question, files, linker->path);
    }
    ds_accel__arguments_free(files);
}

static int32_t find(const struct ds_accel__compiler *compiler, const char *program,
                    char *const *prefixes, struct ds_accel__op_linker *linker)
{
    int32_t status = DS_ACCEL_OK;

    linker->question = make_question(compiler, program, prefixes);
    if (linker->question == NULL) {
        return ds_accel__no_memory();
    }
    linker->path = ds_accel__answer_recall(linker->question);
    if (linker->path == NULL) {
        /* Clang prints TARGET-/PATH for a path. */
        status = program[0] == '/' ? ds_accel__program_find(program, &linker->path)
                                   : ask(compiler, program, prefixes, &linker->path);
        if (status >= 0 && linker->path != NULL) {
            remember(compiler, prefixes, linker);
        }
    }
    if (status >= 0 && linker->path != NULL) {
        return ds_accel__digest_file(linker->path, linker->digest);
    }
    ds_accel__copy(linker->digest, sizeof(linker->digest), "absent");
    return status;
}

/* The program's path or name, as a new string; NULL: memory is exhausted. */
static char *name_program(const struct choice *choice, const char *directory)
{
    const char *given = choice->path != NULL ? choice->path : choice->name;

    if (given == NULL || given[0] == '\0' || strcmp(given, "ld") == 0) {
        return strdup("ld");
    }
    if (given[0] == '/') {
        return strdup(given);
    }
    if (choice->path == NULL) {
        return ds_accel__format("ld.%s", given);
    }
    return strchr(given, '/') != NULL ? ds_accel__join(directory, '/', given) : strdup(given);
}

int32_t ds_accel__op_linker_find(const struct ds_accel__compiler *compiler,
                                 const struct ds_accel__recipe *recipe,
                                 struct ds_accel__op_linker *linker)
{
    struct choice choice = {.name = NULL};
    char **words = link_words(compiler, recipe);
    char **prefixes = NULL;
    char *program = NULL;
    int32_t status = words != NULL ? DS_ACCEL_OK : ds_accel__no_memory();

    *linker = (struct ds_accel__op_linker){.path = NULL};
    if (status >= 0) {
        read_options(&choice, words, recipe->source_dir);
        prefixes = ds_accel__arguments_take(&choice.found);
        status = prefixes != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    if (status >= 0 && (choice.name != NULL || choice.path != NULL || prefixes[0] != NULL)) {
        program = name_program(&choice, recipe->source_dir);
        status = program != NULL ? find(compiler, program, prefixes, linker)
                                 : ds_accel__no_memory();
    }
    free(program);
    ds_accel__arguments_free(prefixes);
    ds_accel__arguments_free(words);
    return status;
}

void ds_accel__op_linker_clear(struct ds_accel__op_linker *linker)
{
    free(linker->path);
    free(linker->question);
    *linker = (struct ds_accel__op_linker){.path = NULL};
}
