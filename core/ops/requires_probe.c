/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Compiles and links small programs, as configure scripts do, and asks Python. Only that shows
 * whether a build will find a library: a package can be installed for another architecture, without
 * its headers, or at a place that the flags do not name. Results are remembered for the process.
 */
#include "ops/requires_probe.h"
#include "base/fork.h"
#include "base/text.h"
#include "config/env.h"
#include "ops/command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_TIMEOUT_MS 120000u
#define SOURCE "probe.c"
#define PROGRAM "probe.out"

/* ---- remembered results ---------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static json_t *remembered; /* guarded by lock; an object of texts */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void renew_in_children(void)
{
    ds_accel__fork_renew(&lock);
}

static void take_lock(void)
{
    pthread_once(&once, renew_in_children);
    pthread_mutex_lock(&lock);
}

/* True if the result is remembered. *text_out is a new string, NULL if memory is exhausted. */
static bool recall(const char *key, char **text_out)
{
    const char *text;

    take_lock();
    text = json_string_value(json_object_get(remembered, key));
    *text_out = text != NULL ? strdup(text) : NULL;
    pthread_mutex_unlock(&lock);
    return text != NULL;
}

/* Without memory, the program is run again the next time. */
static void remember(const char *key, const char *text)
{
    take_lock();
    if (remembered == NULL) {
        remembered = json_object();
    }
    if (remembered != NULL) {
        json_object_set_new(remembered, key, json_string(text));
    }
    pthread_mutex_unlock(&lock);
}

void ds_accel__requires_forget(void)
{
    take_lock();
    json_decref(remembered);
    remembered = NULL;
    pthread_mutex_unlock(&lock);
}

/* ---- the directory --------------------------------------------------------------------------- */

static int32_t make_directory(struct ds_accel__requires_prober *prober)
{
    const char *given = prober->options->temporary;
    char *own = given == NULL ? ds_accel__env_temporary_dir() : NULL;
    const char *parent = given != NULL ? given : own;
    char *path = parent != NULL ? ds_accel__join(parent, '/', "ds-accel-probe-XXXXXX") : NULL;
    int32_t status = DS_ACCEL_OK;

    if (path == NULL) {
        status = ds_accel__no_memory();
    } else if (mkdtemp(path) == NULL) {
        status = ds_accel__error(DS_ACCEL_ERR_IO, "no directory can be made in %s: %s", parent,
                                 strerror(errno));
        free(path);
    } else {
        prober->directory = path;
        prober->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (prober->fd < 0) {
            status = ds_accel__error(DS_ACCEL_ERR_IO, "%s: %s", path, strerror(errno));
        }
    }
    free(own);
    return status;
}

/* Remove what a compiler has left beside its output. */
static void remove_others(int fd)
{
    DIR *directory = fdopendir(fd);
    const struct dirent *entry;

    if (directory == NULL) {
        close(fd);
        return;
    }
    while ((entry = readdir(directory)) != NULL) {
        unlinkat(fd, entry->d_name, 0); /* "." and ".." stay */
    }
    closedir(directory);
}

void ds_accel__requires_end(struct ds_accel__requires_prober *prober)
{
    if (prober->directory == NULL) {
        return;
    }
    /* Without an allocation, which could fail. */
    if (prober->fd >= 0) {
        unlinkat(prober->fd, SOURCE, 0);
        unlinkat(prober->fd, PROGRAM, 0);
    }
    if (rmdir(prober->directory) == 0 || prober->fd < 0) {
        if (prober->fd >= 0) {
            close(prober->fd);
        }
    } else {
        remove_others(prober->fd);
        rmdir(prober->directory);
    }
    free(prober->directory);
    prober->directory = NULL;
}

static int32_t write_source(const struct ds_accel__requires_prober *prober, const char *source)
{
    size_t size = strlen(source);
    int fd =
        openat(prober->fd, SOURCE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    ssize_t written = fd >= 0 ? write(fd, source, size) : -1;
    int32_t status = DS_ACCEL_OK;

    if (written != (ssize_t)size) {
        status = ds_accel__error(DS_ACCEL_ERR_IO, "%s/" SOURCE " cannot be written: %s",
                                 prober->directory, strerror(written < 0 ? errno : ENOSPC));
    }
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

/* ---- programs of C --------------------------------------------------------------------------- */

/* Flags that would make something else than a program, which would link without the library. */
static bool is_for_probes(const char *flag)
{
    static const char *const others[] = {"-c", "-S", "-E", "-shared", "-static-pie", "-MD", "-MMD"};

    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        if (strcmp(flag, others[i]) == 0) {
            return false;
        }
    }
    return true;
}

static void add(char **arguments, size_t *count, char *const *more)
{
    for (size_t i = 0; more != NULL && more[i] != NULL; i++) {
        if (is_for_probes(more[i])) {
            arguments[(*count)++] = more[i];
        }
    }
}

/* The command; *owned_out receives where its own strings begin. NULL if memory is exhausted. */
static char **make_arguments(const struct ds_accel__requires_prober *prober,
                             const json_t *libraries, bool links, size_t *owned_out)
{
    char *const *link_flags = links ? prober->options->link_flags : NULL;
    size_t library_count = links ? json_array_size(libraries) : 0;
    char **arguments = calloc(ds_accel__arguments_count(prober->compiler->arguments) +
                                  ds_accel__arguments_count(prober->flags) +
                                  ds_accel__arguments_count(link_flags) + library_count + 8,
                              sizeof(*arguments));
    size_t count = 0;

    if (arguments == NULL) {
        return NULL;
    }
    for (size_t i = 0; prober->compiler->arguments[i] != NULL; i++) {
        arguments[count++] = prober->compiler->arguments[i];
    }
    add(arguments, &count, prober->flags);
    arguments[count++] = (char *)"-w";
    if (!links) {
        arguments[count++] = (char *)"-c";
    }
    arguments[count++] = (char *)SOURCE;
    arguments[count++] = (char *)"-o";
    arguments[count++] = (char *)PROGRAM;
    add(arguments, &count, link_flags);
    *owned_out = count;
    for (size_t i = 0; i < library_count; i++) {
        const char *name = json_string_value(json_array_get(libraries, i));

        if (name != NULL) {
            arguments[count] = ds_accel__format("-l%s", name);
            if (arguments[count++] == NULL) {
                for (size_t j = *owned_out; arguments[j] != NULL; j++) {
                    free(arguments[j]);
                }
                free(arguments);
                return NULL;
            }
        }
    }
    return arguments;
}

/* The first line with an error, without what leads to it, as a new string. */
static char *error_line(const struct ds_accel__command *command)
{
    /* The linker's lines come first: the driver adds "error: ld returned 1" to them. */
    static const char *const words[] = {"cannot find ", "undefined reference ", "undefined symbol",
                                        "error: ", "fatal "};
    const char *output = command->output.data;
    char ending[128];
    char *line = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(words) && output != NULL && line == NULL; i++) {
        const char *at = strstr(output, words[i]);

        if (at != NULL) {
            at += strcmp(words[i], "error: ") == 0 ? strlen(words[i]) : 0;
            line = strndup(at, strcspn(at, "\r\n"));
        }
    }
    if (line == NULL) {
        ds_accel__command_describe(command, ending, sizeof(ending));
        return ds_accel__format("the compiler %s", ending);
    }
    ds_accel__sanitize(line, strlen(line) + 1);
    return line;
}

/* Whether a command that failed has failed because of what it was asked. */
static bool is_answer_of(const struct ds_accel__command *command)
{
    return WIFEXITED(command->wait_status) && !command->is_timed_out &&
           (command->output.data == NULL ||
            !ds_accel__command_blames_machine(command->output.data));
}

static int32_t run_probe(struct ds_accel__requires_prober *prober, const char *source,
                         char **arguments, const char *key, struct ds_accel__requires_found *result)
{
    const struct ds_accel__command_options options = {.timeout_ms = PROBE_TIMEOUT_MS,
                                                      .temporary = prober->options->temporary};
    struct ds_accel__command command = {.arguments = arguments};
    int32_t status = prober->directory == NULL ? make_directory(prober) : DS_ACCEL_OK;
    bool is_answer = true;

    if (status >= 0) {
        status = write_source(prober, source);
    }
    if (status >= 0) {
        command.directory = prober->directory;
        status = ds_accel__commands_run(&command, 1, &options);
    }
    if (status >= 0 && !ds_accel__command_succeeded(&command)) {
        is_answer = is_answer_of(&command);
        result->reason = error_line(&command);
        status = result->reason != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    ds_accel__text_clear(&command.output);
    if (status >= 0 && is_answer) {
        remember(key, result->reason != NULL ? result->reason : "");
    }
    return status;
}

int32_t ds_accel__requires_link(struct ds_accel__requires_prober *prober, const char *source,
                                const json_t *libraries, bool links,
                                struct ds_accel__requires_found *result)
{
    size_t owned = 0;
    int32_t status = DS_ACCEL_OK;
    char **arguments = make_arguments(prober, libraries, links, &owned);
    char *line = arguments != NULL ? ds_accel__command_line(arguments, NULL) : NULL;
    char *key = line != NULL
                    ? ds_accel__format("%s\n%s\n%s", prober->compiler->digest, line, source)
                    : NULL;

    result->reason = NULL;
    if (key == NULL) {
        status = ds_accel__no_memory();
    } else if (recall(key, &result->reason)) {
        if (result->reason == NULL) {
            status = ds_accel__no_memory();
        } else if (result->reason[0] == '\0') {
            free(result->reason);
            result->reason = NULL;
        }
    } else {
        status = run_probe(prober, source, arguments, key, result);
    }
    for (size_t i = owned; arguments != NULL && arguments[i] != NULL; i++) {
        free(arguments[i]);
    }
    free(key);
    free(line);
    free(arguments);
    return status;
}

/* ---- Python ---------------------------------------------------------------------------------- */

/*
 * Prints "=VERSION" if the module can be found. find_spec() of a whole dotted name would import its
 * parents, which may take seconds and start devices, so the parts are searched one in the other.
 */
static const char python_script[] =
    "import sys\n"
    "sys.path = [p for p in sys.path if p]\n"
    "import importlib.util, importlib.metadata as m, importlib.machinery\n"
    "name = sys.argv[1]; top = name.split('.')[0]; whole = top\n"
    "spec = importlib.util.find_spec(top)\n"
    "for part in name.split('.')[1:]:\n"
    "    whole += '.' + part\n"
    "    spec = spec and spec.submodule_search_locations and "
    "importlib.machinery.PathFinder.find_spec(whole, spec.submodule_search_locations)\n"
    "if not spec: sys.exit(0)\n"
    "version = ''\n"
    "try: version = m.version(top)\n"
    "except Exception:\n"
    "    try: version = m.version(m.packages_distributions()[top][0])\n"
    "    except Exception: pass\n"
    "print('=' + version)\n";

static int32_t run_python(const struct ds_accel__requires_prober *prober, char *python,
                          const char *module, const char *key, char **version_out)
{
    const struct ds_accel__command_options options = {.timeout_ms = PROBE_TIMEOUT_MS,
                                                      .temporary = prober->options->temporary};
    char *arguments[] = {python, (char *)"-c", (char *)(uintptr_t)python_script,
                         (char *)(uintptr_t)module, NULL};
    struct ds_accel__command command = {.arguments = arguments};
    int32_t status = ds_accel__commands_run(&command, 1, &options);

    *version_out = NULL;
    if (status >= 0) {
        const char *output = command.output.data != NULL ? command.output.data : "";
        const char *line = output;

        /* What other code of Python's start prints is before. */
        for (const char *at = output; (at = strstr(at, "\n=")) != NULL; at++) {
            line = at + 1;
        }
        if (ds_accel__command_succeeded(&command) && line[0] == '=') {
            *version_out = strndup(line + 1, strcspn(line + 1, "\r\n"));
            status = *version_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
        }
        if (status >= 0 && (ds_accel__command_succeeded(&command) || is_answer_of(&command))) {
            remember(key, *version_out != NULL ? *version_out : "\n");
        }
    }
    ds_accel__text_clear(&command.output);
    return status;
}

int32_t ds_accel__requires_python(const struct ds_accel__requires_prober *prober,
                                  const char *module, char **python_out, char **version_out)
{
    const char *path = ds_accel__env_job("PYTHONPATH");
    int32_t status = ds_accel__program_find("python3", python_out);
    char *key;

    *version_out = NULL;
    if (status < 0 || *python_out == NULL) {
        return status;
    }
    key = ds_accel__format("%s\n%s\n%s", *python_out, path != NULL ? path : "", module);
    if (key == NULL) {
        status = ds_accel__no_memory();
    } else if (recall(key, version_out)) {
        if (*version_out == NULL) {
            status = ds_accel__no_memory();
        } else if (strcmp(*version_out, "\n") == 0) {
            free(*version_out);
            *version_out = NULL;
        }
    } else {
        status = run_python(prober, *python_out, module, key, version_out);
    }
    free(key);
    if (status < 0) {
        free(*python_out);
        *python_out = NULL;
    }
    return status;
}
