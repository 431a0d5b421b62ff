/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Running the compilers of a recipe: compile.c. */
#ifndef DS_ACCEL_OPS_COMPILE_H
#define DS_ACCEL_OPS_COMPILE_H

#include "ops/recipe.h"
#include "ops/store.h"
#include "ops/toolchain.h"

struct ds_accel__machine;

#define DS_ACCEL__COMPILE_RESULT "op.so" /* the name of the linked file in the build directory */

/*
 * Called when a command has ended: done of total commands are done. what: the source, or the name
 * of the linked file.
 */
typedef void (*ds_accel__compile_progress_t)(void *user_data, uint32_t done, uint32_t total,
                                             const char *what);

struct ds_accel__compile_options {
    const struct ds_accel__machine *machine;  /* for the number of jobs */
    uint32_t jobs;                            /* at once; 0: by CPUs and memory */
    ds_accel__compile_progress_t on_progress; /* NULL: not called */
    void *user_data;
};

/* A command that failed. */
struct ds_accel__compile_failure {
    char **arguments; /* NULL: none failed */
    char *directory;  /* where it ran */
    char *output;     /* what it wrote, printable except line ends and tabs */
    bool has_exited;  /* it ended by itself */
    char ending[128]; /* "exited with status 1" */
};

/*
 * Compile and link in the build directory. *headers_out: the files that the compilers, assemblers
 * and the linker read, except the sources and shared libraries, sorted; for
 * ds_accel__arguments_free(). DS_ACCEL_OK; ERR_NOT_USABLE: a command failed, and failure says
 * which; statuses of ds_accel__commands_run(). failure is for ds_accel__compile_failure_clear()
 * after any status.
 */
int32_t ds_accel__compile(const struct ds_accel__recipe *recipe,
                          const struct ds_accel__toolchain *toolchain,
                          const struct ds_accel__build_dir *dir,
                          const struct ds_accel__compile_options *options, char ***headers_out,
                          struct ds_accel__compile_failure *failure);
/* Make a compiler's output printable, which may shorten it; line ends and tabs stay. */
void ds_accel__compile_sanitize(char *text);
void ds_accel__compile_failure_clear(struct ds_accel__compile_failure *failure);

#endif
