/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What a runtime changes in the process while it looks for devices, and what the plugin restores.
 *
 * Runtimes include compilers, and compilers handle signals: PoCL's LLVM replaces the program's
 * handlers of SIGHUP, SIGTERM and a dozen other signals. The plugin restores all handlers,
 * including that of SIGFPE, for which PoCL has its own handler: without PoCL's handler, a kernel
 * that divides integers by zero, which OpenCL leaves undefined, terminates the process.
 *
 * Runtimes also set variables for their own use, such as PoCL's HWLOC_PLUGINS_PATH, which every
 * child of the program would inherit; and ocl-icd cuts OCL_ICD_FILENAMES while it parses it.
 *
 * What another thread of the program changes meanwhile is undone, too.
 */
#include "opencl.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct opencl_process {
    struct sigaction actions[NSIG];
    uint8_t is_known[NSIG];
    char **variables; /* copies of "NAME=value"; [variable_count] */
    size_t variable_count;
};

extern char **environ;

/* ---- variables ------------------------------------------------------------------------------ */

static void free_texts(char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(texts[i]);
    }
    free(texts);
}

/* Copy the environment. Returns NULL if memory is exhausted. */
static char **copy_environment(size_t *count_out)
{
    size_t count = 0;
    char **texts;

    while (environ != NULL && environ[count] != NULL) {
        count++;
    }
    texts = calloc(count + 1, sizeof(*texts));
    for (size_t i = 0; texts != NULL && i < count; i++) {
        texts[i] = strdup(environ[i]);
        if (texts[i] == NULL) {
            free_texts(texts, i);
            return NULL;
        }
    }
    *count_out = count;
    return texts;
}

/* Return the first text of the variable whose name is the beginning of the given text, which is the
   one that getenv() finds; NULL: there is none. */
static char *find_variable(char *const *texts, size_t count, const char *text)
{
    size_t length = strcspn(text, "=");

    for (size_t i = 0; i < count; i++) {
        if (strncmp(texts[i], text, length) == 0 && texts[i][length] == '=') {
            return texts[i];
        }
    }
    return NULL;
}

/* Set the variable of a text "NAME=value". */
static void set_variable(char *text)
{
    char *value = strchr(text, '=');

    if (value != NULL) {
        *value = '\0';
        setenv(text, value + 1, 1);
        *value = '=';
    }
}

static void restore_variables(struct opencl_process *process)
{
    size_t count = 0;
    char **now = copy_environment(&count);

    for (size_t i = 0; now != NULL && i < count; i++) {
        if (find_variable(process->variables, process->variable_count, now[i]) == NULL) {
            now[i][strcspn(now[i], "=")] = '\0';
            unsetenv(now[i]);
        }
    }
    for (size_t i = 0; now != NULL && i < process->variable_count; i++) {
        char *kept = process->variables[i];
        const char *present = find_variable(now, count, kept);

        if (find_variable(process->variables, process->variable_count, kept) == kept &&
            (present == NULL || strcmp(present, kept) != 0)) {
            set_variable(kept);
        }
    }
    if (now != NULL) {
        free_texts(now, count);
    }
}

/* ---- handlers of signals -------------------------------------------------------------------- */

static void restore_handlers(const struct opencl_process *process)
{
    struct sigaction now;

    for (int i = 1; i < NSIG; i++) {
        const struct sigaction *before = &process->actions[i];

        if (process->is_known[i] && sigaction(i, NULL, &now) == 0 &&
            (now.sa_handler != before->sa_handler || now.sa_flags != before->sa_flags)) {
            sigaction(i, before, NULL);
        }
    }
}

/* ---- the process ---------------------------------------------------------------------------- */

struct opencl_process *opencl_process_keep(void)
{
    struct opencl_process *process = calloc(1, sizeof(*process));

    if (process == NULL) {
        return NULL;
    }
    process->variables = copy_environment(&process->variable_count);
    if (process->variables == NULL) {
        free(process);
        return NULL;
    }
    for (int i = 1; i < NSIG; i++) {
        process->is_known[i] = sigaction(i, NULL, &process->actions[i]) == 0;
    }
    return process;
}

void opencl_process_restore(struct opencl_process *process)
{
    restore_handlers(process);
    restore_variables(process);
    free_texts(process->variables, process->variable_count);
    free(process);
}
