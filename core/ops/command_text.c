/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The environment of commands, where programs are, and commands as text. */
#include "config/env.h"
#include "ops/command.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- the environment ------------------------------------------------------------------------- */

/*
 * Variables that commands do not get. The result of a compiler must follow from its arguments, its
 * programs, the sources and the headers, which the key of an op covers. A variable would be a
 * further input that nobody sees. A name that ends in '_' stands for all that begin with it.
 *
 * LD_LIBRARY_PATH stays: compilers of module systems find their own libraries by it.
 */
static const char *const removed[] = {
    /* GCC, and Clang likewise: further directories of headers, libraries and programs */
    "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "LIBRARY_PATH",
    "COMPILER_PATH", "GCC_EXEC_PREFIX", "COLLECT_",
    /* GCC: further files that are written, output that programs do not expect, a second run */
    "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "GCC_EXTRA_DIAGNOSTIC_OUTPUT",
    "GCC_COMPARE_DEBUG", "CLICOLOR_FORCE",
    /* GCC: the job server of a make that runs this program, whose descriptors are closed */
    "MAKEFLAGS", "MFLAGS",
    /* GCC: temporary files elsewhere than in TMPDIR */
    "TMP", "TEMP",
    /* GCC: a name of the working directory, which debug information would contain */
    "PWD", "OLDPWD",
    /* the linker: run paths, the kind of file, the linker itself */
    "LD_RUN_PATH", "GNUTARGET", "LDEMULATION", "LD_PRELOAD", "LD_AUDIT",
    /* Clang: arguments that are replaced, configuration files */
    "CCC_", "CLANG_",
    /* nvcc: arguments. NVCC_CCBIN is an argument of the compiler that compiler.c finds. */
    "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN",
    /* hipcc, icpx: arguments, configuration files */
    "HIPCC_COMPILE_FLAGS_APPEND", "HIPCC_LINK_FLAGS_APPEND", "HCC_AMDGPU_TARGET", "__INTEL_",
    "ICXCFG", "ICPXCFG"};

/* Those that are replaced below. */
static const char *const replaced[] = {"LC_ALL", "LANGUAGE", "SOURCE_DATE_EPOCH", "TMPDIR"};

static bool is_in(const char *entry, const char *const *names, size_t count)
{
    size_t length = strcspn(entry, "=");

    for (size_t i = 0; i < count; i++) {
        size_t name_length = strlen(names[i]);
        bool is_prefix = names[i][name_length - 1] == '_';

        if ((is_prefix ? length >= name_length : length == name_length) &&
            strncmp(entry, names[i], name_length) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_removed(const char *entry)
{
    return is_in(entry, removed, ARRAY_SIZE(removed));
}

void ds_accel__command_environment_free(char **environment)
{
    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++) {
        free(environment[i]);
    }
    free(environment);
}

char **ds_accel__command_environment(const char *temporary)
{
    size_t count = 0;
    char **copy;

    while (environ != NULL && environ[count] != NULL) {
        count++;
    }
    copy = calloc(count + 4, sizeof(*copy));
    if (copy == NULL) {
        return NULL;
    }
    count = 0;
    copy[count++] = strdup("LC_ALL=C");
    copy[count++] = strdup("SOURCE_DATE_EPOCH=0");
    copy[count++] = ds_accel__format("TMPDIR=%s", temporary);
    if (copy[0] == NULL || copy[1] == NULL || copy[2] == NULL) {
        free(copy[0]);
        free(copy[1]);
        free(copy[2]);
        free(copy);
        return NULL;
    }
    for (size_t i = 0; environ != NULL && environ[i] != NULL; i++) {
        if (is_removed(environ[i]) || is_in(environ[i], replaced, ARRAY_SIZE(replaced))) {
            continue;
        }
        copy[count] = strdup(environ[i]);
        if (copy[count++] == NULL) {
            ds_accel__command_environment_free(copy);
            return NULL;
        }
    }
    return copy;
}

/* ---- programs -------------------------------------------------------------------------------- */

static bool is_program(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

/* Make a path absolute. NULL if memory is exhausted, or the working directory was removed. */
static char *absolute(const char *name)
{
    char *directory;
    char *path;

    if (name[0] == '/') {
        return strdup(name);
    }
    directory = getcwd(NULL, 0);
    path = directory != NULL ? ds_accel__join(directory, '/', name) : NULL;
    free(directory);
    return path;
}

int32_t ds_accel__program_find(const char *name, char **path_out)
{
    const char *directories = ds_accel__env_job("PATH");
    const char *directory;
    size_t length;

    *path_out = NULL;
    if (name[0] == '\0') {
        return DS_ACCEL_OK;
    }
    if (strchr(name, '/') != NULL) {
        if (is_program(name) && (*path_out = absolute(name)) == NULL) {
            return ds_accel__no_memory();
        }
        return DS_ACCEL_OK;
    }
    if (directories == NULL) {
        directories = "/usr/local/bin:/usr/bin:/bin";
    }
    while ((directory = ds_accel__list_next(&directories, ':', &length)) != NULL) {
        char *path;

        if (directory[0] != '/') {
            continue; /* it would be another program in each working directory */
        }
        path = ds_accel__format("%.*s/%s", (int)length, directory, name);
        if (path == NULL) {
            return ds_accel__no_memory();
        }
        if (is_program(path)) {
            *path_out = path;
            return DS_ACCEL_OK;
        }
        free(path);
    }
    return DS_ACCEL_OK;
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool is_plain(const char *argument)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";

    /* zsh replaces a word that begins with '='. */
    return argument[0] != '\0' && argument[0] != '=' && argument[strspn(argument, plain)] == '\0';
}

static void add_quoted(struct ds_accel__text *line, const char *argument)
{
    if (is_plain(argument)) {
        ds_accel__text_add(line, "%s", argument);
    } else if (ds_accel__is_printable(argument)) {
        ds_accel__text_add(line, "'");
        for (const char *c = argument; *c != '\0'; c++) {
            if (*c == '\'') {
                ds_accel__text_add(line, "'\\''");
            } else {
                ds_accel__text_add_bytes(line, c, 1);
            }
        }
        ds_accel__text_add(line, "'");
    } else {
        ds_accel__text_add(line, "$'");
        for (const char *c = argument; *c != '\0'; c++) {
            if (*c == '\'' || *c == '\\') {
                ds_accel__text_add(line, "\\%c", *c);
            } else if (*c >= ' ' && *c < 0x7f) {
                ds_accel__text_add_bytes(line, c, 1);
            } else {
                ds_accel__text_add(line, "\\%03o", (unsigned)(unsigned char)*c);
            }
        }
        ds_accel__text_add(line, "'");
    }
}

/* Add what unsets the variables that commands do not get, except those that do not matter to a
 * command that is repeated in a shell. */
static void add_environment(struct ds_accel__text *line)
{
    static const char *const harmless[] = {"MAKEFLAGS", "MFLAGS", "TMP", "TEMP", "PWD", "OLDPWD"};
    bool is_first = true;

    for (size_t i = 0; environ != NULL && environ[i] != NULL; i++) {
        char *name;

        if (!is_removed(environ[i]) || is_in(environ[i], harmless, ARRAY_SIZE(harmless))) {
            continue;
        }
        name = strndup(environ[i], strcspn(environ[i], "="));
        line->failed = line->failed || name == NULL;
        ds_accel__text_add(line, is_first ? "env -u " : "-u ");
        add_quoted(line, name != NULL ? name : "");
        ds_accel__text_add(line, " ");
        free(name);
        is_first = false;
    }
}

/* Whether a line has the text, but not as a part of the source code, which compilers repeat. */
static bool line_has(const char *line, size_t length, const char *text)
{
    const char *at = memmem(line, length, text, strlen(text));

    return at != NULL && memchr(line, '"', (size_t)(at - line)) == NULL &&
           memchr(line, '#', (size_t)(at - line)) == NULL &&
           memchr(line, '|', (size_t)(at - line)) == NULL;
}

bool ds_accel__command_blames_machine(const char *output)
{
    static const char *const texts[] = {
        /* drivers, when a program that they started was killed */
        "signal terminated program", "terminated with signal", "failed due to signal",
        "died due to signal", "unable to execute command",
        /* memory */
        "out of memory", "virtual memory exhausted", "Cannot allocate memory", "std::bad_alloc",
        /* files, processes */
        "No space left on device", "Disk quota exceeded", "Input/output error", "Stale file handle",
        "Resource temporarily unavailable", "Too many open files", "Read-only file system"};

    for (const char *line = output; *line != '\0';) {
        size_t length = strcspn(line, "\n");

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
            if (line_has(line, length, texts[i])) {
                return true;
            }
        }
        line += length + (line[length] != '\0');
    }
    return false;
}

char *ds_accel__command_line(char *const *arguments, const char *directory)
{
    struct ds_accel__text line = {0};

    if (directory != NULL) {
        ds_accel__text_add(&line, directory[0] == '-' ? "cd -- " : "cd ");
        add_quoted(&line, directory);
        ds_accel__text_add(&line, " && ");
        add_environment(&line);
    }
    for (size_t i = 0; arguments[i] != NULL; i++) {
        ds_accel__text_add(&line, i > 0 ? " " : "");
        add_quoted(&line, arguments[i]);
    }
    return ds_accel__text_take(&line);
}

void ds_accel__command_describe(const struct ds_accel__command *command, char *text,
                                size_t text_size)
{
    int status = command->wait_status;

    if (command->is_timed_out) {
        snprintf(text, text_size, "was ended because it ran for too long");
    } else if (command->is_cancelled) {
        snprintf(text, text_size, "was ended because another command failed");
    } else if (status < 0) {
        snprintf(text, text_size, "was not started");
    } else if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));

        snprintf(text, text_size, "was ended by signal %d (SIG%s)%s", WTERMSIG(status),
                 name != NULL ? name : "RT",
                 WTERMSIG(status) == SIGKILL ? ", perhaps because memory was exhausted" : "");
    } else {
        snprintf(text, text_size, "exited with status %d", WEXITSTATUS(status));
    }
}
