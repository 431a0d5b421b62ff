/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Running compilers and other commands: command.c, command_child.c, command_text.c. */
#ifndef DS_ACCEL_OPS_COMMAND_H
#define DS_ACCEL_OPS_COMMAND_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ds_accel__machine;

#define DS_ACCEL__COMMAND_OUTPUT_LIMIT ((size_t)1 << 20)

/* A command. The caller sets the first two members and zeroes the others. */
struct ds_accel__command {
    char **arguments;      /* argv, ends with NULL; [0] is an absolute path */
    const char *directory; /* working directory; NULL: the caller's */
    /*
     * What it wrote to stdout and stderr, in the order of writing: the first
     * DS_ACCEL__COMMAND_OUTPUT_LIMIT bytes and, if there were more, a line with their number. The
     * bytes are not checked: sanitize them before they are shown. For ds_accel__text_clear().
     */
    struct ds_accel__text output;
    int wait_status;   /* as of waitpid(); -1: not started */
    bool is_timed_out; /* it was terminated because it ran for longer than timeout_ms */
    bool is_cancelled; /* it was terminated because another command failed */
};

struct ds_accel__command_options {
    uint32_t jobs;         /* how many commands run at once; 0: one */
    uint32_t timeout_ms;   /* for each command; 0: none */
    const char *temporary; /* $TMPDIR of the commands; NULL: ds_accel__env_temporary_dir() */
    /*
     * Called on the calling thread when a command has started and when it has ended, with its
     * wait_status and output complete. NULL: not called.
     */
    void (*on_progress)(void *user_data, const struct ds_accel__command *command, bool has_ended);
    void *user_data;
};

/*
 * Run commands in their order, until all have ended or one has failed: it did not exit with 0, or
 * exceeded its time. Then the running ones are terminated (SIGTERM, SIGKILL after 2 s, to the
 * process groups), and the others are not started.
 *
 * Each command is a process group of its own. Its stdin is /dev/null, it inherits no descriptor
 * but 0 to 2, and all signals have their default action and are not blocked. If this process ends,
 * however that happens, the group is killed. What a command leaves behind in its group is killed
 * when the command ends. The environment is a copy of this process's without the variables that
 * change what compilers do (command_text.c), with LC_ALL=C, SOURCE_DATE_EPOCH=0 and TMPDIR.
 *
 * The caller's children and its handling of SIGCHLD do not matter and are left alone: no SIGCHLD
 * is sent, and wait() does not see the commands. Any thread may call this, several at once.
 *
 * DS_ACCEL_OK: look at each wait_status. ERR_PERMISSION: the process has raised rights.
 * ERR_INVALID: no absolute path. ERR_IO: a command could not be started, and the message has its
 * name and the cause. ERR_NO_MEMORY. After an error, commands that ran have been terminated.
 */
int32_t ds_accel__commands_run(struct ds_accel__command *commands, size_t count,
                               const struct ds_accel__command_options *options);
/* True if the command was started, exited with 0, and was neither cancelled nor timed out. */
bool ds_accel__command_succeeded(const struct ds_accel__command *command);
/* Describe how the command ended: "exited with status 1", "was ended by signal 11 (SIGSEGV)". */
void ds_accel__command_describe(const struct ds_accel__command *command, char *text,
                                size_t text_size);
/*
 * The command as a line for a shell, every argument quoted as needed. With a directory, the line
 * repeats the command: "cd DIRECTORY && env -u VARIABLE ARGUMENTS", where env is for variables that
 * are set here and that commands do not get. directory NULL: the arguments alone. The line is
 * printable: unprintable bytes are in $'...' quotes. NULL if memory is exhausted.
 */
char *ds_accel__command_line(char *const *arguments, const char *directory);
/*
 * Whether what a compiler wrote says that it failed for a reason other than its input: memory, disk
 * space, a signal. The next attempt may succeed.
 */
bool ds_accel__command_blames_machine(const char *output);
/*
 * The environment of commands, ends with NULL, for ds_accel__command_environment_free(). NULL if
 * memory is exhausted.
 */
char **ds_accel__command_environment(const char *temporary);
void ds_accel__command_environment_free(char **environment);
/*
 * Find a program: a name with a slash as it is, any other name in the directories of $PATH. Empty
 * and relative entries of PATH are skipped. *path_out is a new absolute path, NULL: there is no
 * such program. ERR_NO_MEMORY.
 */
int32_t ds_accel__program_find(const char *name, char **path_out);
/*
 * How many commands to run at once: as many as this process has CPUs, and as fit into the memory
 * that is available and that the control groups leave, if each takes bytes_each (0: any number
 * fits). At least 1, also if the machine cannot be read.
 */
uint32_t ds_accel__command_jobs(const struct ds_accel__machine *machine, uint64_t bytes_each);

#endif
