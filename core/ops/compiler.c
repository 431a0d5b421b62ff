/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Finds the compiler of each language: the table, the variables, and wrappers such as ccache. */
#include "ops/compiler.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/env.h"
#include "ops/command.h"
#include "ops/identity.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOST_VARIABLE "NVCC_CCBIN"

/* A standard place: a directory, below the value of a variable if there is one. */
struct place {
    const char *variable;
    const char *directory;
};

static const struct kind {
    const char *name;
    const char *language;
    const char *variable;
    const char *programs[5];
    struct place places[4];
    const char *package;
} kinds[DS_ACCEL__LANGUAGE_COUNT] = {
    [DS_ACCEL__LANGUAGE_C] = {.name = "cc",
                              .language = "C",
                              .variable = "CC",
                              .programs = {"cc", "gcc", "clang"},
                              .package = "the package gcc"},
    [DS_ACCEL__LANGUAGE_CXX] = {.name = "c++",
                                .language = "C++",
                                .variable = "CXX",
                                .programs = {"c++", "g++", "clang++"},
                                .package = "the package g++"},
    [DS_ACCEL__LANGUAGE_CUDA] = {.name = "nvcc",
                                 .language = "CUDA",
                                 .variable = "NVCC",
                                 .programs = {"nvcc"},
                                 .places = {{"CUDA_HOME", "/bin"},
                                            {"CUDA_PATH", "/bin"},
                                            {NULL, "/usr/local/cuda/bin"}},
                                 .package = "the CUDA toolkit (package nvidia-cuda-toolkit, or "
                                            "cuda-nvcc of NVIDIA)"},
    [DS_ACCEL__LANGUAGE_HIP] = {.name = "hipcc",
                                .language = "HIP",
                                .variable = "HIPCC",
                                .programs = {"hipcc"},
                                .places = {{"ROCM_PATH", "/bin"},
                                           {"ROCM_HOME", "/bin"},
                                           {NULL, "/opt/rocm/bin"}},
                                .package = "ROCm (package hipcc)"},
    [DS_ACCEL__LANGUAGE_SYCL] = {.name = "icpx",
                                 .language = "SYCL",
                                 .variable = "ICPX",
                                 .programs = {"icpx"},
                                 .places = {{"ONEAPI_ROOT", "/compiler/latest/bin"},
                                            {NULL, "/opt/intel/oneapi/compiler/latest/bin"}},
                                 .package = "oneAPI (package intel-oneapi-compiler-dpcpp-cpp of "
                                            "Intel)"},
};

/* Programs that run the compiler which their arguments name, or one further down in PATH. */
static const char *const wrappers[] = {"ccache", "sccache", "distcc", "icecc"};

const char *ds_accel__language_compiler(enum ds_accel__language language)
{
    return kinds[language].name;
}

void ds_accel__compiler_clear(struct ds_accel__compiler *compiler)
{
    ds_accel__arguments_free(compiler->arguments);
    free(compiler->path);
    free(compiler->version);
    free(compiler->question);
    free(compiler->host_question);
    memset(compiler, 0, sizeof(*compiler));
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Split at blanks. NULL if memory is exhausted. */
static char **split(const char *value)
{
    size_t count = 0;
    char **arguments = calloc(strlen(value) / 2 + 2, sizeof(*arguments));

    for (const char *at = value; arguments != NULL && *at != '\0';) {
        size_t length = 0;

        if (ds_accel__is_blank(*at)) {
            at++;
            continue;
        }
        while (at[length] != '\0' && !ds_accel__is_blank(at[length])) {
            length++;
        }
        arguments[count] = strndup(at, length);
        if (arguments[count++] == NULL) {
            ds_accel__arguments_free(arguments);
            return NULL;
        }
        at += length;
    }
    return arguments;
}

/* Add copies of two arguments. */
static int32_t append(char ***arguments, const char *first, const char *second)
{
    size_t count = 0;
    char **more;

    while ((*arguments)[count] != NULL) {
        count++;
    }
    more = realloc(*arguments, (count + 3) * sizeof(*more));
    if (more == NULL) {
        return ds_accel__no_memory();
    }
    *arguments = more;
    more[count] = strdup(first);
    more[count + 1] = more[count] != NULL ? strdup(second) : NULL;
    more[count + 2] = NULL;
    return more[count] != NULL && more[count + 1] != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

/* ---- wrappers -------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static bool is_wrapper(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(wrappers); i++) {
        if (strcmp(base_name(path), wrappers[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Find a program of this name in PATH that does not lead to a wrapper. */
static int32_t find_behind(const char *name, char **path_out)
{
    const char *directories = ds_accel__env_job("PATH");
    const char *directory;
    size_t length;

    *path_out = NULL;
    while (directories != NULL && *path_out == NULL &&
           (directory = ds_accel__list_next(&directories, ':', &length)) != NULL) {
        char *candidate = ds_accel__format("%.*s/%s", (int)length, directory, name);
        char *found = NULL;
        int32_t status = candidate != NULL ? ds_accel__program_find(candidate, &found)
                                           : ds_accel__no_memory();

        free(candidate);
        if (status < 0) {
            return status;
        }
        errno = 0;
        *path_out = found != NULL ? realpath(found, NULL) : NULL;
        free(found);
        if (*path_out == NULL && errno == ENOMEM) {
            return ds_accel__no_memory();
        }
        if (*path_out != NULL && is_wrapper(*path_out)) {
            free(*path_out);
            *path_out = NULL;
        }
    }
    return DS_ACCEL_OK;
}

/* Resolve the file of the compiler: not that of wrappers, "ccache gcc" and links such as
 * /usr/lib/ccache/gcc. The path stays NULL if it cannot be found. */
static int32_t resolve(struct ds_accel__compiler *compiler)
{
    char *const *arguments = compiler->arguments;
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; arguments[i] != NULL && status >= 0; i++) {
        char *found;
        char *path;

        compiler->options_at = i + 1;
        compiler->is_wrapped = i > 0;
        status = ds_accel__program_find(arguments[i], &found);
        if (status < 0 || found == NULL) {
            return status;
        }
        path = realpath(found, NULL);
        free(found);
        if (path == NULL && errno == ENOMEM) {
            return ds_accel__no_memory();
        }
        if (path == NULL || !is_wrapper(path)) {
            compiler->path = path;
            return DS_ACCEL_OK;
        }
        free(path);
        if (!is_wrapper(arguments[i])) {
            compiler->is_wrapped = true;
            return find_behind(base_name(arguments[i]), &compiler->path);
        }
    }
    return status;
}

/* ---- the search ------------------------------------------------------------------------------ */

static void describe_search(const struct kind *kind, struct ds_accel__text *text)
{
    ds_accel__text_add(text, "no compiler for %s: %s is not set, and there is no ", kind->language,
                       kind->variable);
    for (size_t i = 0; kind->programs[i] != NULL; i++) {
        ds_accel__text_add(text, "%s%s",
                           i == 0                          ? ""
                           : kind->programs[i + 1] != NULL ? ", "
                                                           : " or ",
                           kind->programs[i]);
    }
    ds_accel__text_add(text, " in PATH");
    for (const struct place *place = kind->places; place->directory != NULL; place++) {
        ds_accel__text_add(text, "%s%s%s%s", place[1].directory != NULL ? ", " : " or ",
                           place->variable != NULL ? "$" : "",
                           place->variable != NULL ? place->variable : "", place->directory);
    }
    ds_accel__text_add(text, "; install %s", kind->package);
}

static int32_t fail_search(const struct kind *kind)
{
    struct ds_accel__text text = {0};
    char *message;
    int32_t status;

    describe_search(kind, &text);
    message = ds_accel__text_take(&text);
    status = message != NULL ? ds_accel__error(DS_ACCEL_ERR_NOT_FOUND, "%s", message)
                             : ds_accel__no_memory();
    free(message);
    return status;
}

static int32_t search_places(const struct kind *kind, char **found_out)
{
    int32_t status = DS_ACCEL_OK;

    for (const struct place *place = kind->places;
         place->directory != NULL && *found_out == NULL && status >= 0; place++) {
        const char *root = place->variable != NULL ? ds_accel__env_job(place->variable) : "";
        char *path;

        if (root == NULL || (place->variable != NULL && root[0] != '/')) {
            continue;
        }
        path = ds_accel__format("%s%s/%s", root, place->directory, kind->programs[0]);
        status = path != NULL ? ds_accel__program_find(path, found_out) : ds_accel__no_memory();
        free(path);
    }
    return status;
}

/* Set the arguments from the variable or the table. */
static int32_t search(const struct kind *kind, char ***arguments_out)
{
    const char *value = ds_accel__env_job(kind->variable);
    char *found = NULL;
    int32_t status = DS_ACCEL_OK;
    char **arguments = value != NULL ? split(value) : calloc(2, sizeof(*arguments));
    bool is_set = arguments != NULL && arguments[0] != NULL;

    if (arguments == NULL) {
        return ds_accel__no_memory();
    }
    if (is_set) {
        status = ds_accel__program_find(arguments[0], &found);
        if (status >= 0 && found == NULL) {
            status = ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                                     "the variable %s is \"%.160s%s\", but %.160s is no program%s: "
                                     "correct or unset it",
                                     kind->variable, value, strlen(value) > 160 ? "..." : "",
                                     arguments[0],
                                     strchr(arguments[0], '/') == NULL ? " in PATH" : "");
        }
    } else {
        for (size_t i = 0; kind->programs[i] != NULL && found == NULL && status >= 0; i++) {
            status = ds_accel__program_find(kind->programs[i], &found);
        }
        if (status >= 0) {
            status = search_places(kind, &found);
        }
        if (status >= 0 && found == NULL) {
            status = fail_search(kind);
        }
    }
    if (status < 0) {
        free(found);
        ds_accel__arguments_free(arguments);
        return status;
    }
    free(arguments[0]);
    arguments[0] = found;
    *arguments_out = arguments;
    return DS_ACCEL_OK;
}

int32_t ds_accel__compiler_locate(const char *name, char **path_out)
{
    *path_out = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            char **arguments = NULL;
            int32_t status = search(&kinds[i], &arguments);

            if (status >= 0) {
                *path_out = arguments[0];
                arguments[0] = NULL;
                for (size_t j = 1; arguments[j] != NULL; j++) {
                    free(arguments[j]);
                }
                free(arguments);
            }
            return status == DS_ACCEL_ERR_NOT_FOUND ? DS_ACCEL_OK : status;
        }
    }
    return ds_accel__program_find(name, path_out);
}

static void add_variable(struct ds_accel__text *text, const char *name)
{
    const char *value = ds_accel__env_job(name);

    ds_accel__text_add(text, "\n%s=%s", name, value != NULL ? value : "");
}

void ds_accel__compiler_add_variables(struct ds_accel__text *text)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        add_variable(text, kinds[i].variable);
        for (const struct place *place = kinds[i].places; place->directory != NULL; place++) {
            if (place->variable != NULL) {
                add_variable(text, place->variable);
            }
        }
    }
    add_variable(text, HOST_VARIABLE);
    ds_accel__identity_add_variables(text);
}

static bool is_set(const char *variable)
{
    const char *value = ds_accel__env_job(variable);

    return value != NULL && value[strspn(value, " \t\n\v\f\r")] != '\0';
}

bool ds_accel__compiler_is_named(enum ds_accel__language language)
{
    return is_set(kinds[language].variable) ||
           (language == DS_ACCEL__LANGUAGE_CUDA && is_set(HOST_VARIABLE));
}

/* ---- nvcc's host compiler -------------------------------------------------------------------- */

/* The host compiler that the arguments name; NULL if they name none. */
static const char *given_host(char *const *arguments)
{
    const char *host = NULL;

    for (size_t i = 1; arguments[i] != NULL && host == NULL; i++) {
        host = ds_accel__compiler_host(arguments, &i);
    }
    return host;
}

/*
 * nvcc compiles the host's code with gcc of PATH, of $NVCC_CCBIN or of -ccbin, which may also be a
 * directory. Say which explicitly, as an absolute path, because the variable is not passed on.
 */
static int32_t set_host(struct ds_accel__compiler *nvcc, char *host_out[2])
{
    const char *given = given_host(nvcc->arguments);
    const char *variable = ds_accel__env_job(HOST_VARIABLE);
    const char *name = given != NULL                             ? given
                       : variable != NULL && variable[0] != '\0' ? variable
                                                                 : "gcc";
    int32_t status = ds_accel__program_find(name, &host_out[0]);

    if (status >= 0 && host_out[0] == NULL && strchr(name, '/') != NULL) {
        char *inside = ds_accel__join(name, '/', "gcc");

        status = inside != NULL ? ds_accel__program_find(inside, &host_out[0])
                                : ds_accel__no_memory();
        free(inside);
    }
    if (status < 0) {
        return status;
    }
    if (host_out[0] == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                               "nvcc needs the host compiler %s, which is no program%s; install "
                               "the package g++",
                               name, strchr(name, '/') == NULL ? " in PATH" : "");
    }
    return given == NULL ? append(&nvcc->arguments, "-ccbin", host_out[0]) : DS_ACCEL_OK;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int32_t find(const struct kind *kind, struct ds_accel__compiler *compiler)
{
    char *host[2] = {NULL, NULL};
    int32_t status = search(kind, &compiler->arguments);

    if (status >= 0) {
        status = resolve(compiler);
    }
    if (status >= 0 && compiler->path == NULL) {
        status = ds_accel__error(DS_ACCEL_ERR_NOT_FOUND, "%s runs no compiler that can be found",
                                 compiler->arguments[0]);
    }
    if (status >= 0 && compiler->language == DS_ACCEL__LANGUAGE_CUDA) {
        status = set_host(compiler, host);
    }
    if (status >= 0) {
        status = ds_accel__compiler_identify(compiler, host[0] != NULL ? host : NULL);
    }
    free(host[0]);
    return status;
}

int32_t ds_accel__compiler_find(enum ds_accel__language language,
                                struct ds_accel__compiler *compiler, char *why, size_t why_size)
{
    int32_t status;

    assert((unsigned)language < DS_ACCEL__LANGUAGE_COUNT);
    memset(compiler, 0, sizeof(*compiler));
    compiler->language = language;
    ds_accel__copy(why, why_size, "");
    status = ds_accel__has_raised_rights()
                 ? ds_accel__error(DS_ACCEL_ERR_PERMISSION,
                                   "a program with raised rights runs no compilers: build ops "
                                   "beforehand, as the user")
                 : find(&kinds[language], compiler);
    if (status < 0) {
        ds_accel__compiler_clear(compiler);
        ds_accel__copy(why, why_size, ds_accel_last_error());
        return status;
    }
    return DS_ACCEL_OK;
}
