/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The commands ds-accel config check and show. */
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILES_MOST 64
#define TEXT_LIMIT_BYTES (1024u * 1024) /* same limit as for a configuration file */

/* True for inputs that can be read only once: "-" (stdin), a pipe, such as the shell creates for
 * <(COMMAND), and a character device. */
static bool is_stream(const char *path)
{
    struct stat info;

    return strcmp(path, "-") == 0 ||
           (stat(path, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode)));
}

/* Read all input into a new text. On failure, or if the input has more than 1 MiB or a NUL byte,
 * prints a message and returns NULL. */
static char *read_stream(const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    char *text = file != NULL ? malloc(TEXT_LIMIT_BYTES + 1) : NULL;
    size_t size = text != NULL ? fread(text, 1, TEXT_LIMIT_BYTES + 1, file) : 0;
    const char *problem = NULL;

    if (text == NULL || ferror(file)) {
        problem = strerror(errno);
    } else if (size > TEXT_LIMIT_BYTES) {
        problem = "more than 1 MiB";
    }
    if (problem == NULL && text != NULL && memchr(text, '\0', size) != NULL) {
        problem = "a NUL byte is in it";
    }
    if (file != NULL && file != stdin) {
        fclose(file);
    }
    if (problem != NULL || text == NULL) {
        tool_say("%s: cannot read it: %s", path, problem);
        free(text);
        return NULL;
    }
    text[size] = '\0';
    return text;
}

static int check_files(struct tool *tool, char **paths, int count)
{
    const char *names[FILES_MOST + 1];
    const char *texts[FILES_MOST + 1];
    char *read[FILES_MOST + 1] = {NULL};
    char *text = NULL;
    int code = EXIT_OK;
    int32_t status;
    int given = 0;

    if (tool->options.config_file != NULL) {
        names[given] = tool->options.config_file;
        texts[given++] = NULL;
    }
    for (int i = 0; i < count && code == EXIT_OK; i++) {
        bool streams = is_stream(paths[i]);

        read[i] = streams ? read_stream(paths[i]) : NULL;
        code = streams && read[i] == NULL ? EXIT_CONFIG : EXIT_OK;
        names[given] = strcmp(paths[i], "-") == 0 ? "<stdin>" : paths[i];
        texts[given++] = read[i];
    }
    if (code == EXIT_OK) {
        status = ds_accel_config_check_files(&tool->options, names, texts, (uint32_t)given,
                                             tool_format(tool), &text);
        code = text != NULL ? tool_print(text, tool_exit_code(status)) : tool_fail(status);
    }
    for (int i = 0; i < count; i++) {
        free(read[i]);
    }
    return code;
}

static int check(struct tool *tool)
{
    char *text = NULL;
    int32_t status = ds_accel_config_check(&tool->options, tool_format(tool), &text);

    if (text == NULL) {
        return tool_fail(status);
    }
    return tool_print(text, tool_exit_code(status));
}

static int run(struct tool *tool, int argument_count, char **arguments)
{
    if (strcmp(arguments[0], "check") == 0 && !tool->show_env) {
        return argument_count > 1 ? check_files(tool, arguments + 1, argument_count - 1)
                                  : check(tool);
    }
    if (strcmp(arguments[0], "show") == 0 && argument_count == 1) {
        return tool_report(
            tool, tool->show_env ? DS_ACCEL_REPORT_CONFIG_ENV : DS_ACCEL_REPORT_CONFIG, NULL);
    }
    return tool_usage(tool, "config takes check [FILE...] or show [--env], not \"%s%s%s\"%s",
                      arguments[0], argument_count > 1 ? " " : "",
                      argument_count > 1 ? arguments[1] : "", tool->show_env ? " with --env" : "");
}

const struct tool_command cmd_config = {
    .name = "config",
    .arguments = "check|show",
    .summary = "check the configuration, or show it with the origin of every value",
    .help =
        "check  validates every file and prints each problem as file:line:column: text;\n"
        "       exit code 5 if there is one\n"
        "check FILE...  validates these files in their place: also directories, for their .json\n"
        "       files, and - for standard input\n"
        "show   prints the merged configuration, each value with the file and line it is from\n"
        "show --env  prints the DS_* variables with value, origin and meaning",
    .least = 1,
    .most = FILES_MOST + 1,
    .own_options = "env",
    .run = run,
};
