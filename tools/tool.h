/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the commands of ds-accel share: options, exit codes, output. */
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
#define TOOL_LISTS 32 /* for one option that may be repeated */

/* The options of all commands, as parsed. */
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
    const char *memory_map;            /* info: a snapshot's file, "" none; NULL: not given */
    const char *record;                /* report; NULL: not given */
    bool no_redact;                    /* report */
    const char *output;                /* bench, memory, report; NULL: stdout */
    const char *device;                /* bench, conformance; NULL: not given, as the next ones */
    const char *group, *rule;          /* conformance */
    const char *time;                  /* bench */
    const char *sizes[TOOL_LISTS], *groups[TOOL_LISTS]; /* bench --size, --only */
    size_t size_count, group_count;
    uint64_t given; /* options that only some commands have: bits by their positions */
    bool quiet;
    int verbosity;
};

struct tool_command {
    const char *name;
    const char *arguments;   /* "[NAME]" */
    const char *summary;     /* one line */
    const char *help;        /* paragraphs, after the usage */
    int least, most;         /* number of arguments */
    const char *own_options; /* long options, separated by one blank; NULL: only the common ones */
    int (*run)(struct tool *tool, int argument_count, char **arguments);
    bool starts_plugins; /* it runs in a process of its own (apart.c) */
};

extern const struct tool_command cmd_bench, cmd_cache, cmd_config, cmd_conformance, cmd_detect,
    cmd_doctor, cmd_env, cmd_explain, cmd_info, cmd_lint, cmd_list, cmd_memory, cmd_quarantine,
    cmd_topo, cmd_report, cmd_note;

/* Run the command in a child, and return its exit code, or report how a plugin ended the child. */
int tool_run_apart(struct tool *tool, int argument_count, char **arguments);
/* The exit code for a status of the library. */
int tool_exit_code(int32_t status);
/* Print the library's last error to stderr and return its exit code. */
int tool_fail(int32_t status);
/* Print a line to stderr, with any text in it: a terminal interprets no byte of it. */
void tool_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print a usage error in the same way, and return EXIT_USAGE. */
int tool_usage(const struct tool *tool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Write a text of the library's to stdout, release it, and return code, or the code for a failed
 * write. */
int tool_print(char *text, int code);
/* The same for bytes of ds_accel_free_data(), and to the file of --output if there is one. */
int tool_write(const struct tool *tool, void *data, size_t size_bytes, int code);
/* True if the output goes to a terminal. */
bool tool_is_terminal(const struct tool *tool);
/* The same for the command's own text, to the file of --output if there is one. */
int tool_answer(const struct tool *tool, const char *text, size_t size_bytes, int code);
/* Write a complete file, or leave the old one unchanged: prints an error on failure. */
bool tool_save(const char *path, const char *data, size_t size_bytes);
uint32_t tool_format(const struct tool *tool);
/* Make a context, write one report of it, release it. */
int tool_report(struct tool *tool, uint32_t report, const char *name);

#endif
