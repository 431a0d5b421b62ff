/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Declarations shared by the commands of ds-accel: options, exit codes, output. */
#ifndef DS_ACCEL_TOOLS_TOOL_H
#define DS_ACCEL_TOOLS_TOOL_H

#include "ds_accel_tools.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    EXIT_OK = 0,
    EXIT_PROBLEMS = 1,
    EXIT_USAGE = 2,
    EXIT_NOTHING = 3,
    EXIT_NOT_USABLE = 4,
    EXIT_CONFIG = 5,
    EXIT_REFUSED = 6,
    EXIT_INTERNAL = 7
};

#define TOOL_PLUGIN_DIRS 64
#define TOOL_LISTS 32 /* most values of an option that may be given several times */

/* The parsed command line, with the options of all commands. The comment of a member lists the
 * commands that have the option, if not all do. */
struct tool {
    const struct tool_command *command;
    struct ds_accel_options options;
    const char *plugin_dirs[TOOL_PLUGIN_DIRS];
    const char *tries[TOOL_LISTS]; /* memory replay */
    size_t try_count;
    bool json;
    bool show_env;                     /* config show --env */
    bool svg, pickle, pickle_segments; /* memory show; topo --svg */
    bool list;                         /* conformance */
    const char *memory_map;   /* info: a snapshot file; "": given without a file; NULL: not given */
    const char *plan;         /* topo; NULL: not given */
    const char *record;       /* report; NULL: not given */
    bool no_redact;           /* report */
    const char *output;       /* bench, memory, note, report; NULL: stdout */
    const char *device;       /* bench, conformance; NULL: not given, as for the next members */
    const char *group, *rule; /* conformance */
    bool force;               /* bench io, ops build */
    const char *jobs;         /* ops build; NULL: not given */
    const char *time;         /* bench */
    bool tune;                /* bench io */
    const char *sizes[TOOL_LISTS], *groups[TOOL_LISTS]; /* bench --size, --only */
    size_t size_count, group_count;
    /* given options that only some commands have; bits by position in long_options */
    uint64_t given;
    bool quiet;
    int verbosity;
};

struct tool_command {
    const char *name;
    const char *arguments;   /* "[NAME]" */
    const char *summary;     /* one line */
    const char *help;        /* paragraphs, printed after the usage */
    int least, most;         /* number of arguments */
    const char *own_options; /* long options, separated by one blank; NULL: only the common ones */
    int (*run)(struct tool *tool, int argument_count, char **arguments);
    bool starts_plugins; /* the command runs in a child process (apart.c) */
    bool parses;         /* the command parses all arguments behind its name itself */
};

extern const struct tool_command cmd_bench, cmd_cache, cmd_config, cmd_conformance, cmd_detect,
    cmd_doctor, cmd_env, cmd_explain, cmd_info, cmd_lint, cmd_list, cmd_memory, cmd_quarantine,
    cmd_topo, cmd_report, cmd_note, cmd_ops, cmd_run;

/* Run the command in a child process, and return its exit code. If the child crashes or exits
 * early, report how it terminated; if a signal such as SIGINT terminated it, this process
 * terminates by the same signal. */
int tool_run_apart(struct tool *tool, int argument_count, char **arguments);
/* The exit code for a status of the library. */
int tool_exit_code(int32_t status);
/* Print the library's last error to stderr and return its exit code. */
int tool_fail(int32_t status);
/* Print the help of the command. Returns the exit code. */
int tool_help(const struct tool *tool);
/* Print the version. Returns the exit code. */
int tool_version(void);
/* Print a line to stderr. Control characters in the text are replaced, so that a terminal does not
 * interpret them. */
void tool_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print a usage error as tool_say() prints a line, and return EXIT_USAGE. */
int tool_usage(const struct tool *tool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Write a text to stdout and release it with ds_accel_free_text(). Returns code, or the exit code
 * for a failed write. */
int tool_print(char *text, int code);
/* Write data to the file of --output, or else to stdout, and release it with ds_accel_free_data().
 * Returns code, or the exit code for a failed write. */
int tool_write(const struct tool *tool, void *data, size_t size_bytes, int code);
/* True if the output goes to a terminal. */
bool tool_is_terminal(const struct tool *tool);
/* Write the command's own text to the file of --output, or else to stdout. Returns code, or the
 * exit code for a failed write. */
int tool_answer(const struct tool *tool, const char *text, size_t size_bytes, int code);
/* Write a file completely. On failure, prints an error, leaves an existing regular file unchanged
 * and returns false. */
bool tool_save(const char *path, const char *data, size_t size_bytes);
/* Whether tool_save() would find a place to write to, so that a long job does not end in vain. On
 * failure, prints an error. */
bool tool_can_save(const char *path);
/* Write a file as tool_save() does, but only one of this user, or of root's choice, and with the
 * owner that it has. A symbolic link, of the file or of its directory, is followed only to what has
 * the link's owner. Returns -1, or prints an error and returns the exit code. */
int tool_save_owned(const char *path, const char *data, size_t size_bytes);
/* Whether tool_save_owned() would write; -1 also if the directory does not exist yet. */
int tool_check_owned(const char *path);
uint32_t tool_format(const struct tool *tool);
/* Create a context, write one report of it, and release the context. Returns the exit code. */
int tool_report(struct tool *tool, uint32_t report, const char *name);

#endif
