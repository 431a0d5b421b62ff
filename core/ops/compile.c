/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Compiles the sources of an op and links them, in three passes:
 *
 *     images (nvcc)  ->  0.fatbin ...   paths of which the sources find in macros
 *     sources        ->  0.o, 0.d ...   all at once, as many as CPUs and memory allow
 *     link           ->  op.so, link.d
 *
 * Builds are reproducible: the compilers run in the directory of the sources and see relative
 * names, the path of the build directory is replaced in what they write, and the macros of dates
 * are constants.
 */
#include "ops/compile.h"
#include "base/file.h"
#include "base/text.h"
#include "ops/command.h"
#include "ops/depend.h"
#include "ops/listed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GIB ((uint64_t)1 << 30)
/* What a compiler is assumed to need at most: nvcc runs several programs at once. */
#define BYTES_EACH (2 * GIB)
#define NVCC_BYTES_EACH (8 * GIB)
#define TIMEOUT_MS (60u * 60u * 1000u)
#define DEPEND_LIMIT_BYTES ((size_t)16 << 20)
#define ASSEMBLED ".s.d" /* what the assembler read: .incbin and .include */
#define LINKED "link.d"

struct compile {
    const struct ds_accel__recipe *recipe;
    const struct ds_accel__toolchain *toolchain;
    const struct ds_accel__build_dir *dir;
    const struct ds_accel__compile_options *options;
    struct ds_accel__compile_failure *failure;
    uint32_t done;
    uint32_t total;
    const struct ds_accel__command *commands; /* of the current pass */
    char *const *names;                       /* what they make, for the progress */
    struct ds_accel__text linked;             /* what the linker printed for -t; "": nothing */
};

/* ---- arguments ------------------------------------------------------------------------------- */

static bool is_nvcc(enum ds_accel__language language)
{
    return language == DS_ACCEL__LANGUAGE_CUDA;
}

static bool is_device(enum ds_accel__language language)
{
    return language > DS_ACCEL__LANGUAGE_CXX;
}

/*
 * Define the macros of dates. SOURCE_DATE_EPOCH is not enough: GCC takes __TIMESTAMP__ from the
 * time of the source, and Clang before 16 does not read the variable.
 */
static void add_dates(enum ds_accel__language language, struct ds_accel__arguments *list)
{
    ds_accel__arguments_add(list, "%s-Wno-builtin-macro-redefined",
                            is_nvcc(language) ? "-Xcompiler=" : "");
    ds_accel__arguments_add(list, "-D__DATE__=\"Jan  1 1970\"");
    ds_accel__arguments_add(list, "-D__TIME__=\"00:00:00\"");
    ds_accel__arguments_add(list, "-D__TIMESTAMP__=\"Thu Jan  1 00:00:00 1970\"");
}

/* What all compilations have: the compiler, flags, include directories. */
static void add_common(const struct compile *compile, enum ds_accel__language language,
                       struct ds_accel__arguments *list)
{
    const struct ds_accel__recipe *recipe = compile->recipe;

    ds_accel__arguments_add_all(list, compile->toolchain->compilers[language].arguments);
    ds_accel__arguments_add_all(list, is_device(language) ? recipe->device_cflags : recipe->cflags);
    for (size_t i = 0; recipe->include_dirs[i] != NULL; i++) {
        ds_accel__arguments_add(list, "-I%s", recipe->include_dirs[i]);
    }
    add_dates(language, list);
}

static void add_archs(const struct compile *compile, struct ds_accel__arguments *list)
{
    char **archs = ds_accel__nvcc_arguments(&compile->toolchain->archs);

    list->failed = list->failed || archs == NULL;
    ds_accel__arguments_add_all(list, archs);
    ds_accel__arguments_free(archs);
}

static char **image_arguments(const struct compile *compile, size_t number)
{
    struct ds_accel__arguments list = {0};
    const char *directory = compile->dir->path;

    add_common(compile, DS_ACCEL__LANGUAGE_CUDA, &list);
    add_archs(compile, &list);
    ds_accel__arguments_add(&list, "-fatbin");
    ds_accel__arguments_add(&list, "-MD");
    ds_accel__arguments_add(&list, "-MF");
    ds_accel__arguments_add(&list, "%s/%zu.fatbin.d", directory, number);
    ds_accel__arguments_add(&list, "-o");
    ds_accel__arguments_add(&list, "%s/%zu.fatbin", directory, number);
    ds_accel__arguments_add(&list, "%s", compile->recipe->images[number].source);
    return ds_accel__arguments_take(&list);
}

static char **source_arguments(const struct compile *compile, size_t number)
{
    const char *source = compile->recipe->sources[number];
    enum ds_accel__language language = ds_accel__recipe_language(source);
    const struct ds_accel__compiler *compiler = &compile->toolchain->compilers[language];
    const char *directory = compile->dir->path;
    struct ds_accel__arguments list = {0};

    add_common(compile, language, &list);
    for (size_t i = 0; i < compile->recipe->image_count; i++) {
        ds_accel__arguments_add(&list, "-D%s=\"%s/%zu.fatbin\"", compile->recipe->images[i].macro,
                                directory, i);
    }
    if (is_nvcc(language)) {
        add_archs(compile, &list);
        ds_accel__arguments_add(&list, "-Xcompiler=-fPIC");
    } else {
        ds_accel__arguments_add(&list, "-fPIC");
        ds_accel__arguments_add(&list, "-ffile-prefix-map=%s=.", directory);
        ds_accel__arguments_add(&list, "-ffile-prefix-map=%s=.", compile->recipe->source_dir);
        ds_accel__arguments_add(&list, "-frandom-seed=%s", source);
    }
    /* Behind a wrapper, the assembler may not run, or run elsewhere. */
    if (compiler->is_gcc && !compiler->is_wrapped) {
        ds_accel__arguments_add(&list, "-Xassembler");
        ds_accel__arguments_add(&list, "--MD");
        ds_accel__arguments_add(&list, "-Xassembler");
        ds_accel__arguments_add(&list, "%s/%zu" ASSEMBLED, directory, number);
    }
    ds_accel__arguments_add(&list, "-MD");
    ds_accel__arguments_add(&list, "-MF");
    ds_accel__arguments_add(&list, "%s/%zu.d", directory, number);
    ds_accel__arguments_add(&list, "-c");
    ds_accel__arguments_add(&list, "-o");
    ds_accel__arguments_add(&list, "%s/%zu.o", directory, number);
    ds_accel__arguments_add(&list, "%s", source);
    return ds_accel__arguments_take(&list);
}

/* traces: let the linker print what it reads, because it cannot write that to a file. */
static char **link_arguments(const struct compile *compile, bool traces)
{
    enum ds_accel__language language = ds_accel__toolchain_linker(compile->recipe);
    struct ds_accel__arguments list = {0};

    ds_accel__arguments_add_all(&list, compile->toolchain->compilers[language].arguments);
    ds_accel__arguments_add(&list, "-shared");
    /* Threads of OpenMP may be in the code of an op that is closed, so it stays loaded. */
    ds_accel__arguments_add(&list, "-Wl,-z,now,-z,relro,-z,nodelete,-z,noexecstack");
    ds_accel__arguments_add(&list, "-Wl,--build-id=none");
    for (size_t i = 0; compile->recipe->sources[i] != NULL; i++) {
        ds_accel__arguments_add(&list, "%s/%zu.o", compile->dir->path, i);
    }
    ds_accel__arguments_add_all(&list, compile->recipe->ldflags);
    for (size_t i = 0; compile->recipe->libs[i] != NULL; i++) {
        ds_accel__arguments_add(&list, "-l%s", compile->recipe->libs[i]);
    }
    if (traces) {
        ds_accel__arguments_add(&list, "-Wl,-t");
    } else { /* with -Wl, a comma in the path would end it */
        ds_accel__arguments_add(&list, "-Xlinker");
        ds_accel__arguments_add(&list, "--dependency-file");
        ds_accel__arguments_add(&list, "-Xlinker");
        ds_accel__arguments_add(&list, "%s/" LINKED, compile->dir->path);
    }
    ds_accel__arguments_add(&list, "-o");
    ds_accel__arguments_add(&list, "%s/" DS_ACCEL__COMPILE_RESULT, compile->dir->path);
    return ds_accel__arguments_take(&list);
}

/* ---- one pass -------------------------------------------------------------------------------- */

void ds_accel__compile_sanitize(char *text)
{
    char *to = text;

    for (char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n\t");
        char end = line[length];
        size_t kept;

        line[length] = '\0';
        ds_accel__sanitize(line, length + 1);
        kept = strlen(line);
        memmove(to, line, kept);
        to += kept;
        line += length + (end != '\0');
        if (end != '\0') {
            *to++ = end;
        }
    }
    *to = '\0';
}

/* Keep a command that failed, with the first one of them that failed by itself. */
static int32_t keep_failure(struct ds_accel__compile_failure *failure,
                            struct ds_accel__command *command)
{
    struct ds_accel__arguments arguments = {0};

    ds_accel__command_describe(command, failure->ending, sizeof(failure->ending));
    failure->has_exited = WIFEXITED(command->wait_status) && !command->is_timed_out &&
                          !command->is_cancelled;
    ds_accel__arguments_add_all(&arguments, command->arguments);
    failure->arguments = ds_accel__arguments_take(&arguments);
    failure->directory = strdup(command->directory);
    failure->output = command->output.size_bytes > 0 ? ds_accel__text_take(&command->output)
                                                     : strdup("");
    if (failure->arguments == NULL || failure->directory == NULL || failure->output == NULL) {
        return ds_accel__no_memory();
    }
    ds_accel__compile_sanitize(failure->output);
    return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE, "%.400s %s", failure->arguments[0],
                           failure->ending);
}

static int32_t judge(struct compile *compile, struct ds_accel__command *commands, size_t count)
{
    struct ds_accel__command *failed = NULL;

    for (size_t i = 0; i < count; i++) {
        if (!ds_accel__command_succeeded(&commands[i]) &&
            (failed == NULL || ((failed->is_cancelled || failed->wait_status < 0) &&
                                !commands[i].is_cancelled && commands[i].wait_status >= 0))) {
            failed = &commands[i];
        }
    }
    return failed != NULL ? keep_failure(compile->failure, failed) : DS_ACCEL_OK;
}

static void on_progress(void *user_data, const struct ds_accel__command *command, bool has_ended)
{
    struct compile *compile = user_data;

    if (has_ended && compile->options->on_progress != NULL) {
        compile->options->on_progress(compile->options->user_data, ++compile->done, compile->total,
                                      compile->names[command - compile->commands]);
    }
}

/* Run commands whose arguments are in lists, which ends with NULL unless memory is exhausted.
 * output_out NULL: what they wrote is dropped if all succeed; else it is that of the last one. */
static int32_t run_pass(struct compile *compile, char **const *lists, char *const *names,
                        size_t count, uint64_t bytes_each, struct ds_accel__text *output_out)
{
    struct ds_accel__command *commands = calloc(count, sizeof(*commands));
    const struct ds_accel__command_options options = {
        .jobs = compile->options->jobs != 0
                    ? compile->options->jobs
                    : ds_accel__command_jobs(compile->options->machine, bytes_each),
        .timeout_ms = TIMEOUT_MS,
        .temporary = compile->dir->path,
        .on_progress = on_progress,
        .user_data = compile,
    };
    int32_t status = commands != NULL ? DS_ACCEL_OK : ds_accel__no_memory();

    for (size_t i = 0; i < count && status >= 0; i++) {
        commands[i].arguments = lists[i];
        commands[i].directory = compile->recipe->source_dir;
        status = lists[i] != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    if (status >= 0) {
        compile->commands = commands;
        compile->names = names;
        status = ds_accel__commands_run(commands, count, &options);
    }
    if (status >= 0) {
        status = judge(compile, commands, count);
    }
    if (status >= 0 && output_out != NULL) {
        *output_out = commands[count - 1].output;
        commands[count - 1].output = (struct ds_accel__text){0};
    }
    for (size_t i = 0; commands != NULL && i < count; i++) {
        ds_accel__text_clear(&commands[i].output);
    }
    free(commands);
    return status;
}

static void free_lists(char ***lists, size_t count)
{
    for (size_t i = 0; lists != NULL && i < count; i++) {
        ds_accel__arguments_free(lists[i]);
    }
    free(lists);
}

static int32_t make_images(struct compile *compile)
{
    size_t count = compile->recipe->image_count;
    char ***lists = calloc(count + 1, sizeof(*lists));
    char **names = calloc(count + 1, sizeof(*names));
    int32_t status = lists != NULL && names != NULL ? DS_ACCEL_OK : ds_accel__no_memory();

    for (size_t i = 0; i < count && status >= 0; i++) {
        lists[i] = image_arguments(compile, i);
        names[i] = compile->recipe->images[i].source;
    }
    if (status >= 0 && count > 0) {
        status = run_pass(compile, lists, names, count, NVCC_BYTES_EACH, NULL);
    }
    free_lists(lists, count);
    free(names);
    return status;
}

static int32_t compile_sources(struct compile *compile)
{
    char **sources = compile->recipe->sources;
    size_t count = ds_accel__arguments_count(sources);
    char ***lists = calloc(count, sizeof(*lists));
    uint64_t bytes_each = BYTES_EACH;
    int32_t status = lists != NULL ? DS_ACCEL_OK : ds_accel__no_memory();

    for (size_t i = 0; i < count && status >= 0; i++) {
        lists[i] = source_arguments(compile, i);
        if (is_nvcc(ds_accel__recipe_language(sources[i]))) {
            bytes_each = NVCC_BYTES_EACH;
        }
    }
    if (status >= 0) {
        status = run_pass(compile, lists, sources, count, bytes_each, NULL);
    }
    free_lists(lists, count);
    return status;
}

static int32_t link_once(struct compile *compile, bool traces)
{
    char *names[] = {(char *)(uintptr_t)compile->recipe->name};
    char **arguments = link_arguments(compile, traces);
    int32_t status =
        run_pass(compile, &arguments, names, 1, BYTES_EACH, traces ? &compile->linked : NULL);

    ds_accel__arguments_free(arguments);
    return status;
}

/* Whether a link ended as one of a linker does that does not know --dependency-file. */
static bool lacks_list(const struct compile *compile, int32_t status, bool *lacks_out)
{
    char *path = ds_accel__join(compile->dir->path, '/', LINKED);

    *lacks_out = path != NULL &&
                 (status >= 0 ? access(path, F_OK) != 0
                              : compile->failure->output != NULL &&
                                    strstr(compile->failure->output, "--dependency-file") != NULL);
    free(path);
    return path != NULL;
}

/* GNU ld has --dependency-file since 2.35, gold since 2.36, lld since 12; -t all of them. */
static int32_t link_objects(struct compile *compile)
{
    int32_t status = link_once(compile, false);
    bool lacks = false;

    if (status >= 0 || status == DS_ACCEL_ERR_NOT_USABLE) {
        if (!lacks_list(compile, status, &lacks)) {
            return ds_accel__no_memory();
        }
    }
    if (lacks) {
        ds_accel__compile_failure_clear(compile->failure);
        compile->done--;
        status = link_once(compile, true);
    }
    return status;
}

/* ---- what was read --------------------------------------------------------------------------- */

/*
 * Read a list of files that a compiler, an assembler or the linker wrote, as a new string.
 * ERR_NOT_FOUND, without a message: there is none.
 */
static int32_t read_written(const struct compile *compile, const char *name, char **text_out,
                            size_t *size_out)
{
    char *path = ds_accel__join(compile->dir->path, '/', name);
    const char *cause = "";
    int32_t status = path != NULL
                         ? ds_accel__file_read(path, DEPEND_LIMIT_BYTES, text_out, size_out, &cause)
                         : ds_accel__no_memory();

    if (status < 0 && status != DS_ACCEL_ERR_NO_MEMORY && status != DS_ACCEL_ERR_NOT_FOUND) {
        status = ds_accel__error(DS_ACCEL_ERR_IO, "%s, a list of files, cannot be read: %s", path,
                                 cause);
    }
    free(path);
    return status;
}

/* Add the files that a compiler has read. */
static int32_t read_depend(const struct compile *compile, size_t number, const char *suffix,
                           struct ds_accel__arguments *files)
{
    char name[40];
    char *text = NULL;
    size_t size = 0;
    int32_t status;

    snprintf(name, sizeof(name), "%zu%s", number, suffix);
    status = read_written(compile, name, &text, &size);
    if (status >= 0) {
        status = ds_accel__depend_read(text, size, files);
    } else if (status == DS_ACCEL_ERR_NOT_FOUND) {
        status = ds_accel__error(DS_ACCEL_ERR_IO,
                                 "%s/%s, the list of headers that -MD writes, is "
                                 "missing",
                                 compile->dir->path, name);
    }
    free(text);
    return status;
}

/* Add what the assembler or the linker has listed; a file that is not there lists nothing. */
static int32_t read_list(const struct compile *compile, const char *name, bool is_link,
                         struct ds_accel__arguments *files)
{
    char *text = NULL;
    size_t size = 0;
    int32_t status = read_written(compile, name, &text, &size);

    if (status >= 0) {
        ds_accel__listed_add(text, compile->recipe->source_dir, is_link, files);
    }
    free(text);
    return status == DS_ACCEL_ERR_NOT_FOUND ? DS_ACCEL_OK : status;
}

static int32_t read_lists(const struct compile *compile, struct ds_accel__arguments *files)
{
    int32_t status = read_list(compile, LINKED, true, files);

    if (compile->linked.size_bytes > 0) {
        ds_accel__listed_add(compile->linked.data, compile->recipe->source_dir, true, files);
    }
    for (size_t i = 0; compile->recipe->sources[i] != NULL && status >= 0; i++) {
        char *name = ds_accel__format("%zu" ASSEMBLED, i);

        status = name != NULL ? read_list(compile, name, false, files) : ds_accel__no_memory();
        free(name);
    }
    return status;
}

static bool is_source(const struct ds_accel__recipe *recipe, const char *path)
{
    for (size_t i = 0; recipe->sources[i] != NULL; i++) {
        if (strcmp(recipe->sources[i], path) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < recipe->image_count; i++) {
        if (strcmp(recipe->images[i].source, path) == 0) {
            return true;
        }
    }
    return false;
}

static int compare(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Sort the files, and drop repetitions, sources, and what the build itself wrote. */
static void select_headers(const struct compile *compile, char **files)
{
    size_t count = ds_accel__arguments_count(files);
    size_t length = strlen(compile->dir->path);
    size_t kept = 0;

    qsort(files, count, sizeof(*files), compare);
    for (size_t i = 0; i < count; i++) {
        if ((kept > 0 && strcmp(files[kept - 1], files[i]) == 0) ||
            strncmp(files[i], compile->dir->path, length) == 0 ||
            is_source(compile->recipe, files[i])) {
            free(files[i]);
        } else {
            files[kept++] = files[i];
        }
    }
    files[kept] = NULL;
}

static int32_t read_headers(const struct compile *compile, char ***headers_out)
{
    char **named = ds_accel__recipe_flag_files(compile->recipe, false);
    struct ds_accel__arguments files = {.failed = named == NULL};
    int32_t status = DS_ACCEL_OK;

    ds_accel__arguments_add_all(&files, named);
    ds_accel__arguments_free(named);
    for (size_t i = 0; compile->recipe->sources[i] != NULL && status >= 0; i++) {
        status = read_depend(compile, i, ".d", &files);
    }
    for (size_t i = 0; i < compile->recipe->image_count && status >= 0; i++) {
        status = read_depend(compile, i, ".fatbin.d", &files);
    }
    if (status >= 0) {
        status = read_lists(compile, &files);
    }
    *headers_out = ds_accel__arguments_take(&files);
    if (status >= 0 && *headers_out == NULL) {
        return ds_accel__no_memory();
    }
    if (status < 0) {
        ds_accel__arguments_free(*headers_out);
        *headers_out = NULL;
        return status;
    }
    select_headers(compile, *headers_out);
    return DS_ACCEL_OK;
}

int32_t ds_accel__compile(const struct ds_accel__recipe *recipe,
                          const struct ds_accel__toolchain *toolchain,
                          const struct ds_accel__build_dir *dir,
                          const struct ds_accel__compile_options *options, char ***headers_out,
                          struct ds_accel__compile_failure *failure)
{
    struct compile compile = {
        .recipe = recipe,
        .toolchain = toolchain,
        .dir = dir,
        .options = options,
        .failure = failure,
        .total = (uint32_t)(recipe->image_count + ds_accel__arguments_count(recipe->sources) + 1),
    };
    int32_t status;

    *headers_out = NULL;
    *failure = (struct ds_accel__compile_failure){.arguments = NULL};
    status = make_images(&compile);
    if (status >= 0) {
        status = compile_sources(&compile);
    }
    if (status >= 0) {
        status = link_objects(&compile);
    }
    if (status >= 0) {
        status = read_headers(&compile, headers_out);
    }
    ds_accel__text_clear(&compile.linked);
    return status;
}

void ds_accel__compile_failure_clear(struct ds_accel__compile_failure *failure)
{
    ds_accel__arguments_free(failure->arguments);
    free(failure->directory);
    free(failure->output);
    *failure = (struct ds_accel__compile_failure){.arguments = NULL};
}
