/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What compiles: the driver that was found runs other programs, and those decide what comes out.
 * The driver says which: GCC by -print-prog-name, Clang by its directories, nvcc by --dryrun. The
 * digest covers the name of each part and its contents, and no path, so that two hosts with the
 * same compiler at different places agree.
 */
#include "ops/identity.h"
#include "base/file.h"
#include "base/text.h"
#include "config/env.h"
#include "machine/elf_file.h"
#include "machine/machine.h"
#include "ops/answers.h"
#include "ops/command.h"
#include "ops/digest.h"
#include "ops/flag_files.h"

#include <assert.h>
#include <ctype.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ASK_TIMEOUT_MS 60000u /* a compiler on a network file system may start slowly */
#define PART_LIMIT 8u
#define KINDS "gx" /* in what is remembered: GCC, another one */

/* The digest while it grows. */
struct identity {
    struct ds_accel__text text;
    struct ds_accel__arguments files; /* whose digests are in the text */
    int32_t status;
};

/* ---- asking ---------------------------------------------------------------------------------- */

static int32_t judge_answer(struct ds_accel__command *command, char **output_out)
{
    char ending[128];

    if (!ds_accel__command_succeeded(command)) {
        int32_t status;
        char *line = ds_accel__command_line(command->arguments, NULL);

        ds_accel__command_describe(command, ending, sizeof(ending));
        status = line == NULL ? ds_accel__no_memory()
                              : ds_accel__error(DS_ACCEL_ERR_IO, "%.160s%s %s: %.200s", line,
                                                strlen(line) > 160 ? "..." : "", ending,
                                                command->output.data != NULL ? command->output.data
                                                                             : "no output");
        free(line);
        return status;
    }
    *output_out = ds_accel__text_take(&command->output);
    return *output_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

/* Run the compiler once for each question, all at once. outputs receives new strings. */
static int32_t ask_all(char *const *arguments, const char *const (*questions)[2], size_t count,
                       char **outputs)
{
    const struct ds_accel__command_options options = {.jobs = (uint32_t)count,
                                                      .timeout_ms = ASK_TIMEOUT_MS};
    size_t length = ds_accel__arguments_count(arguments);
    struct ds_accel__command commands[PART_LIMIT] = {{0}};
    char **all = calloc(count * (length + 3), sizeof(*all));
    int32_t status;

    memset(outputs, 0, count * sizeof(*outputs));
    if (all == NULL) {
        return ds_accel__no_memory();
    }
    for (size_t i = 0; i < count; i++) {
        char **own = all + i * (length + 3);

        memcpy(own, arguments, length * sizeof(*own));
        own[length] = (char *)(uintptr_t)questions[i][0];
        own[length + 1] = (char *)(uintptr_t)questions[i][1];
        commands[i].arguments = own;
    }
    status = ds_accel__commands_run(commands, count, &options);
    for (size_t pass = 0; pass < 2; pass++) { /* first the command that failed by itself */
        for (size_t i = 0; i < count && status >= 0; i++) {
            if (outputs[i] == NULL && commands[i].is_cancelled == (pass == 1) &&
                (pass == 1 || commands[i].wait_status >= 0)) {
                status = judge_answer(&commands[i], &outputs[i]);
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        ds_accel__text_clear(&commands[i].output);
        if (status < 0) {
            free(outputs[i]);
            outputs[i] = NULL;
        }
        assert(status < 0 || outputs[i] != NULL);
    }
    free(all);
    return status;
}

int32_t ds_accel__compiler_ask(char *const *arguments, const char *first, const char *second,
                               char **output_out)
{
    const char *const question[1][2] = {{first, second}};
    int32_t status = ask_all(arguments, question, 1, output_out);

    assert(status < 0 || *output_out != NULL);
    return status >= 0 && *output_out == NULL ? DS_ACCEL_ERR_INTERNAL : status;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void add_text(struct identity *identity, const char *role, const char *text)
{
    ds_accel__text_add(&identity->text, "%s %zu:%s\n", role, strlen(text), text);
}

static void add_file(struct identity *identity, const char *role, const char *path)
{
    char digest[65];

    if (identity->status >= 0) {
        identity->status = ds_accel__digest_file(path, digest);
    }
    if (identity->status >= 0) {
        add_text(identity, role, digest);
        ds_accel__arguments_add(&identity->files, "%s", path);
    }
}

static void finish(struct identity *identity, char digest_out[65])
{
    SHA2_CTX hash;

    if (identity->status >= 0 && identity->text.failed) {
        identity->status = ds_accel__no_memory();
    }
    if (identity->status >= 0) {
        SHA256Init(&hash);
        SHA256Update(&hash, (const uint8_t *)identity->text.data, identity->text.size_bytes);
        SHA256End(&hash, digest_out);
    }
    ds_accel__text_clear(&identity->text);
}

/* Copy the first line that has a number with a dot, such as "gcc (Debian 12.2.0-14) 12.2.0". */
static char *version_line(const char *output)
{
    for (const char *line = output; *line != '\0';) {
        size_t length = strcspn(line, "\n");

        for (size_t i = 0; i + 2 < length; i++) {
            if (isdigit((unsigned char)line[i]) && line[i + 1] == '.' &&
                isdigit((unsigned char)line[i + 2])) {
                char *copy = strndup(line, length);

                if (copy != NULL) {
                    ds_accel__sanitize(copy, length + 1);
                }
                return copy;
            }
        }
        line += length + (line[length] != '\0');
    }
    return strdup("unknown version");
}

/* The text behind a word in some line, up to its end, as a new string; "" if there is none. */
static char *line_value(const char *output, const char *word)
{
    const char *at = strstr(output, word);

    at = at != NULL ? at + strlen(word) : "";
    return strndup(at, strcspn(at, "\r\n"));
}

static void cut_line(char *text)
{
    text[strcspn(text, "\r\n")] = '\0';
}

/* ---- GCC ------------------------------------------------------------------------------------- */

/* GCC prints a path, or only the name of a program that it searches in PATH. */
static void add_program(struct identity *identity, const char *role, const char *answer,
                        const char *driver)
{
    char *path = NULL;

    if (identity->status >= 0) {
        identity->status = ds_accel__program_find(answer, &path);
    }
    if (identity->status >= 0 && path == NULL && strncmp(role, "cc1", 3) == 0) {
        identity->status = ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                                           "%s has no %s; install the package %s", driver, role,
                                           strcmp(role, "cc1") == 0 ? "gcc" : "g++");
    }
    if (path != NULL) {
        add_file(identity, role, path);
    } else {
        add_text(identity, role, "absent");
    }
    free(path);
}

static void add_gcc(struct identity *identity, char *const *arguments, bool is_cxx)
{
    static const char *const roles[] = {"cc1", "as", "ld", "collect2", "lto1"};
    static const char *const questions_c[][2] = {{"-print-prog-name=cc1", NULL},
                                                 {"-print-prog-name=as", NULL},
                                                 {"-print-prog-name=ld", NULL},
                                                 {"-print-prog-name=collect2", NULL},
                                                 {"-print-prog-name=lto1", NULL}};
    const char *questions[ARRAY_SIZE(roles)][2];
    char *answers[ARRAY_SIZE(roles)];

    memcpy(questions, questions_c, sizeof(questions));
    if (is_cxx) {
        questions[0][0] = "-print-prog-name=cc1plus";
    }
    identity->status =
        ask_all(arguments, (const char *const(*)[2])questions, ARRAY_SIZE(roles), answers);
    if (identity->status < 0) {
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(roles); i++) {
        cut_line(answers[i]);
        add_program(identity, i == 0 && is_cxx ? "cc1plus" : roles[i], answers[i], arguments[0]);
        free(answers[i]);
    }
}

/* ---- Clang ----------------------------------------------------------------------------------- */

static bool is_compiler_library(const char *name)
{
    return (strncmp(name, "libclang-cpp", 12) == 0 || strncmp(name, "libLLVM", 7) == 0) &&
           strstr(name, ".so.") != NULL;
}

/*
 * Debian's clang is 0.1 MB: the compiler is in shared libraries, two directories above that of its
 * resources, /usr/lib/llvm-14/lib/clang/14.0.6. Elsewhere it is one file, and there are none.
 */
static void add_libraries(struct identity *identity, const char *resources)
{
    char *directory = ds_accel__format("%s/../..", resources);
    char **names = NULL;
    size_t count = 0;
    const char *cause;

    if (directory == NULL) {
        identity->status = ds_accel__no_memory();
        return;
    }
    if (ds_accel__dir_list(directory, is_compiler_library, &names, &count, &cause) ==
        DS_ACCEL_ERR_NO_MEMORY) {
        identity->status = DS_ACCEL_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < count && identity->status >= 0; i++) {
        char *path = ds_accel__join(directory, '/', names[i]);

        if (path != NULL) {
            add_file(identity, names[i], path);
        } else {
            identity->status = ds_accel__no_memory();
        }
        free(path);
    }
    ds_accel__names_free(names, count);
    free(directory);
}

/* Drivers such as hipcc and icpx run the Clang of the directory that --version prints, and for code
 * of devices the other programs that are there. */
static void add_installed(struct identity *identity, const struct ds_accel__compiler *compiler,
                          const char *output, const char *program)
{
    char *directory = line_value(output, "InstalledDir: ");
    char *name = directory != NULL ? ds_accel__join(directory, '/', program) : NULL;
    char *path = name != NULL && directory[0] == '/' ? realpath(name, NULL) : NULL;

    if (name == NULL) {
        identity->status = ds_accel__no_memory();
    } else if (path != NULL && strcmp(path, compiler->path) != 0) {
        add_file(identity, program, path);
    }
    free(path);
    free(name);
    free(directory);
}

static void add_clang(struct identity *identity, const struct ds_accel__compiler *compiler,
                      const char *output)
{
    static const char *const questions[][2] = {{"-print-resource-dir", NULL},
                                               {"-print-prog-name=ld", NULL}};
    static const char *const others[] = {"lld", "clang-offload-bundler", "llvm-link"};
    char *answers[2];

    add_installed(identity, compiler, output, "clang");
    for (size_t i = 0; i < ARRAY_SIZE(others) && identity->status >= 0 &&
                       compiler->language > DS_ACCEL__LANGUAGE_CXX;
         i++) {
        add_installed(identity, compiler, output, others[i]);
    }
    if (identity->status < 0) {
        return;
    }
    identity->status = ask_all(compiler->arguments, questions, 2, answers);
    if (identity->status >= 0) {
        const char *version;

        cut_line(answers[0]);
        cut_line(answers[1]);
        version = strrchr(answers[0], '/');
        add_text(identity, "resources", version != NULL ? version + 1 : answers[0]);
        add_libraries(identity, answers[0]);
        add_program(identity, "ld", answers[1], compiler->arguments[0]);
        free(answers[0]);
        free(answers[1]);
    }
}

/* ---- nvcc ------------------------------------------------------------------------------------ */

static void add_in(struct identity *identity, const char *directory, const char *name)
{
    char *path = ds_accel__join(directory, '/', name);

    if (path == NULL) {
        identity->status = ds_accel__no_memory();
    } else {
        add_file(identity, name, path);
    }
    free(path);
}

static void add_nvcc(struct identity *identity, const struct ds_accel__compiler *compiler)
{
    static const char *const programs[] = {"ptxas", "cudafe++", "fatbinary", "nvlink"};
    char *output = NULL;
    char *here = NULL;
    char *cicc = NULL;
    char *libraries = NULL;

    identity->status = ds_accel__compiler_ask(compiler->arguments, "--dryrun", "none.cu", &output);
    if (identity->status < 0) {
        return;
    }
    here = line_value(output, "_HERE_=");
    cicc = line_value(output, "CICC_PATH=");
    libraries = line_value(output, "NVVMIR_LIBRARY_DIR=");
    free(output);
    if (here == NULL || cicc == NULL || libraries == NULL) {
        identity->status = ds_accel__no_memory();
    } else if (here[0] != '/' || cicc[0] != '/') {
        identity->status = ds_accel__error(DS_ACCEL_ERR_IO,
                                           "%s --dryrun does not print the places of its programs",
                                           compiler->arguments[0]);
    } else {
        for (size_t i = 0; i < ARRAY_SIZE(programs) && identity->status >= 0; i++) {
            add_in(identity, here, programs[i]);
        }
        add_in(identity, cicc, "cicc");
        if (libraries[0] == '/') {
            add_in(identity, libraries, "libdevice.10.bc");
        }
    }
    free(libraries);
    free(cicc);
    free(here);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Add the parts of a compiler of C or C++ which printed output for --version. */
static void add_parts(struct identity *identity, struct ds_accel__compiler *compiler,
                      const char *output)
{
    if (strstr(output, "clang") != NULL || strstr(output, "InstalledDir: ") != NULL) {
        add_clang(identity, compiler, output);
    } else if (strstr(output, "Free Software Foundation") != NULL) {
        compiler->is_gcc = true;
        add_gcc(identity, compiler->arguments, compiler->language != DS_ACCEL__LANGUAGE_C);
    } else {
        add_text(identity, "version", output); /* of no known kind */
    }
}

const char *ds_accel__compiler_host(char *const *arguments, size_t *index)
{
    static const char *const names[] = {"-ccbin", "--compiler-bindir"};
    const char *argument = arguments[*index];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t length = strlen(names[i]);

        if (strncmp(argument, names[i], length) == 0 && argument[length] == '=') {
            return argument + length + 1;
        }
        if (strcmp(argument, names[i]) == 0 && arguments[*index + 1] != NULL) {
            ++*index;
            return arguments[*index];
        }
    }
    return NULL;
}

/* Add the contents of a program that a word names, as in "env CPATH=/include gcc". */
static void add_named(struct identity *identity, const char *word)
{
    char *path = NULL;

    if (identity->status >= 0) {
        identity->status = ds_accel__program_find(word, &path);
    }
    if (path != NULL) {
        add_file(identity, "program", path);
    }
    free(path);
}

/*
 * Add the words that a variable has behind the compiler's name, and the files that they name, but
 * not the path of nvcc's host compiler, whose digest is added.
 */
static void add_arguments(struct identity *identity, const struct ds_accel__compiler *compiler)
{
    char *const *arguments = compiler->arguments;
    struct ds_accel__arguments list = {0};
    struct ds_accel__arguments files = {0};
    char **words;
    char **names = NULL;

    for (size_t i = compiler->options_at; arguments[i] != NULL; i++) {
        if (ds_accel__compiler_host(arguments, &i) == NULL) {
            ds_accel__arguments_add(&list, "%s", arguments[i]);
        }
    }
    words = ds_accel__arguments_take(&list);
    if (words != NULL) {
        ds_accel__flag_files(words, NULL, &files);
        names = ds_accel__arguments_take(&files);
    }
    if (words == NULL || names == NULL) {
        identity->status = ds_accel__no_memory();
    }
    for (size_t i = 0; identity->status >= 0 && words[i] != NULL; i++) {
        add_text(identity, "argument", words[i]);
        if (words[i][0] != '-') {
            add_named(identity, words[i]);
        }
    }
    for (size_t i = 0; identity->status >= 0 && names[i] != NULL; i++) {
        add_file(identity, "file", names[i]);
    }
    ds_accel__arguments_free(names);
    ds_accel__arguments_free(words);
}

/* Write the digest of nvcc's host compiler. *question_out: by which it is remembered. */
static int32_t identify_host(char *const *host_arguments, char digest_out[65], char **question_out)
{
    /* nvcc compiles C++ with the driver for C, too. */
    struct ds_accel__compiler host = {.language = DS_ACCEL__LANGUAGE_CXX,
                                      .arguments = (char **)(uintptr_t)host_arguments,
                                      .options_at = 1};
    int32_t status;

    host.path = realpath(host_arguments[0], NULL);
    if (host.path == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_FOUND, "%s, the host compiler, cannot be read",
                               host_arguments[0]);
    }
    status = ds_accel__compiler_identify(&host, NULL);
    ds_accel__copy(digest_out, 65, host.digest);
    *question_out = host.question;
    free(host.version);
    free(host.path);
    return status;
}

/* ---- remembered identities ------------------------------------------------------------------- */

void ds_accel__identity_add_variables(struct ds_accel__text *text)
{
    /* The last ones choose what hipcc runs. */
    static const char *const variables[] = {"PATH",           "LD_LIBRARY_PATH", "HIP_PLATFORM",
                                            "HIP_PATH",       "HIP_CLANG_PATH",  "ROCM_PATH",
                                            "DEVICE_LIB_PATH"};

    for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
        const char *value = ds_accel__env_job(variables[i]);

        ds_accel__text_add(text, "\n%s=%s", variables[i], value != NULL ? value : "");
    }
}

/* What the identity depends on beside files. NULL: memory is exhausted. */
static char *make_question(const struct ds_accel__compiler *compiler, const char *host_digest)
{
    struct ds_accel__text question = {0};

    ds_accel__text_add(&question, "identity %d %s", (int)compiler->language, compiler->path);
    for (size_t i = 0; compiler->arguments[i] != NULL; i++) {
        ds_accel__text_add(&question, "\n%s", compiler->arguments[i]);
    }
    ds_accel__text_add(&question, "\nhost %s", host_digest);
    ds_accel__identity_add_variables(&question);
    return ds_accel__text_take(&question);
}

/* True if the identity is remembered. *status_out: ERR_NO_MEMORY, or DS_ACCEL_OK. */
static bool recall(const char *question, struct ds_accel__compiler *compiler, int32_t *status_out)
{
    char *answer = ds_accel__answer_recall(question);
    bool found = answer != NULL && strlen(answer) > 65 &&
                 strspn(answer, "0123456789abcdef") >= 64 && strchr(KINDS, answer[64]) != NULL;

    *status_out = DS_ACCEL_OK;
    if (found) {
        memcpy(compiler->digest, answer, 64);
        compiler->digest[64] = '\0';
        compiler->is_gcc = answer[64] == KINDS[0];
        compiler->version = strdup(answer + 65);
        *status_out = compiler->version != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    free(answer);
    return found;
}

void ds_accel__identity_add_directories(struct ds_accel__arguments *list)
{
    const char *directories = ds_accel__env_job("PATH");
    const char *directory;
    size_t length;

    while (directories != NULL &&
           (directory = ds_accel__list_next(&directories, ':', &length)) != NULL) {
        char *path = strndup(directory, length);

        if (path == NULL || (path[0] == '/' && access(path, F_OK) == 0)) {
            ds_accel__arguments_add(list, "%s", path != NULL ? path : "");
        }
        free(path);
    }
}

static void remember(const char *question, const struct ds_accel__compiler *compiler,
                     struct ds_accel__arguments *list)
{
    char **files;
    char *answer =
        ds_accel__format("%s%c%s", compiler->digest, KINDS[!compiler->is_gcc], compiler->version);

    ds_accel__identity_add_directories(list);
    files = ds_accel__arguments_take(list);
    if (files != NULL && answer != NULL) {
        ds_accel__answer_remember(question, files, answer);
    }
    free(answer);
    ds_accel__arguments_free(files);
}

static int32_t identify(struct identity *identity, struct ds_accel__compiler *compiler,
                        const char *host_digest)
{
    char *output = NULL;
    int32_t status = ds_accel__compiler_ask(compiler->arguments, "--version", NULL, &output);

    if (status < 0) {
        return status;
    }
    compiler->version = version_line(output);
    if (compiler->version == NULL) {
        free(output);
        return ds_accel__no_memory();
    }
    add_arguments(identity, compiler);
    add_file(identity, "driver", compiler->path);
    if (identity->status >= 0 && compiler->language == DS_ACCEL__LANGUAGE_CUDA) {
        add_nvcc(identity, compiler);
        if (identity->status >= 0 && host_digest[0] != '\0') {
            add_text(identity, "host", host_digest);
        }
    } else if (identity->status >= 0) {
        add_parts(identity, compiler, output);
    }
    free(output);
    finish(identity, compiler->digest);
    return identity->status;
}

int32_t ds_accel__compiler_identify(struct ds_accel__compiler *compiler,
                                    char *const *host_arguments)
{
    struct identity identity = {.status = DS_ACCEL_OK};
    char host_digest[65] = "";
    int32_t status = host_arguments != NULL
                         ? identify_host(host_arguments, host_digest, &compiler->host_question)
                         : DS_ACCEL_OK;

    if (status < 0) {
        return status;
    }
    compiler->question = make_question(compiler, host_digest);
    if (compiler->question == NULL) {
        return ds_accel__no_memory();
    }
    if (!recall(compiler->question, compiler, &status)) {
        status = identify(&identity, compiler, host_digest);
        if (status >= 0) {
            remember(compiler->question, compiler, &identity.files);
        }
        ds_accel__arguments_free(ds_accel__arguments_take(&identity.files));
    }
    return status;
}
