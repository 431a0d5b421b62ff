/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command line: finds the command, parses the options all of them share, and runs it. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct tool_command *const commands[] = {
    &cmd_detect, &cmd_list, &cmd_info,   &cmd_explain, &cmd_env,        &cmd_doctor,
    &cmd_config, &cmd_lint, &cmd_memory, &cmd_cache,   &cmd_quarantine,
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

enum {
    OPTION_JSON = 256,
    OPTION_PLUGIN_DIR,
    OPTION_CONFIG,
    OPTION_ROOT,
    OPTION_ENV,
    OPTION_MEMORY_MAP,
    OPTION_PICKLE,
    OPTION_PICKLE_SEGMENTS,
    OPTION_SVG,
    OPTION_VERSION
};

static const struct option long_options[] = {
    {"accelerator", required_argument, NULL, 'a'},
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"env", no_argument, NULL, OPTION_ENV},
    {"help", no_argument, NULL, 'h'},
    {"json", no_argument, NULL, OPTION_JSON},
    {"memory-map", optional_argument, NULL, OPTION_MEMORY_MAP},
    {"output", required_argument, NULL, 'o'},
    {"pickle", no_argument, NULL, OPTION_PICKLE},
    {"pickle-segments", no_argument, NULL, OPTION_PICKLE_SEGMENTS},
    {"plugin-dir", required_argument, NULL, OPTION_PLUGIN_DIR},
    {"quiet", no_argument, NULL, 'q'},
    {"root", required_argument, NULL, OPTION_ROOT},
    {"svg", no_argument, NULL, OPTION_SVG},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

static const char common_help[] =
    "options:\n"
    "  -a, --accelerator NAME  force this accelerator, as DS_ACCELERATOR does\n"
    "      --config FILE       a configuration file in place of the user's own\n"
    "      --json              write JSON\n"
    "      --plugin-dir DIR    search DIR for plugins first; may be given again\n"
    "      --root DIR          read /sys, /proc and /dev below DIR: a recorded machine\n"
    "  -q, --quiet             on stderr only errors\n"
    "  -v, --verbose           on stderr more; -vv most\n"
    "  -h, --help              this text; also: ds-accel help [COMMAND]\n"
    "      --version           the versions of ds-accel and of its plugin ABI\n"
    "exit codes: 0 ok, 1 problems found or failed, 2 usage, 3 nothing available,\n"
    "  4 the forced accelerator is not usable, 5 bad configuration, 6 refused for\n"
    "  security, 7 internal error\n";

/* Where answers go: stdout as the program got it. Plugins that print get stderr in its place. */
static FILE *answer;

/* ---- shared by the commands ----------------------------------------------------------------- */

int tool_exit_code(int32_t status)
{
    switch (status) {
    case DS_ACCEL_ERR_NO_DEVICE:
        return EXIT_NOTHING;
    case DS_ACCEL_ERR_NOT_USABLE:
        return EXIT_NOT_USABLE;
    case DS_ACCEL_ERR_CONFIG:
        return EXIT_CONFIG;
    case DS_ACCEL_ERR_UNTRUSTED:
        return EXIT_REFUSED;
    case DS_ACCEL_ERR_INTERNAL:
    case DS_ACCEL_ERR_NO_MEMORY:
        return EXIT_INTERNAL;
    default:
        return status < 0 ? EXIT_PROBLEMS : EXIT_OK;
    }
}

int tool_fail(int32_t status)
{
    fputs("ds-accel: ", stderr);
    for (const char *c = ds_accel_last_error(); *c != '\0'; c++) {
        /* Names come from anywhere: no escape sequence reaches the terminal. */
        fputc(*c != '\n' && ((unsigned char)*c < 0x20 || *c == 0x7f) ? '?' : *c, stderr);
    }
    fputc('\n', stderr);
    return tool_exit_code(status);
}

int tool_usage(const struct tool *tool, const char *format, ...)
{
    va_list arguments;

    fputs("ds-accel: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "; see ds-accel %s%s--help\n", tool->command != NULL ? tool->command->name : "",
            tool->command != NULL ? " " : "");
    return EXIT_USAGE;
}

/* The exit code, or that stdout could not take the answer. */
static int finish_output(bool failed, int code)
{
    if (fflush(answer) != 0 || ferror(answer) || failed) {
        fprintf(stderr, "ds-accel: writing the answer failed: %s\n", strerror(errno));
        return EXIT_PROBLEMS;
    }
    return code;
}

int tool_write(const struct tool *tool, void *data, size_t size_bytes, int code)
{
    FILE *file = tool->output != NULL ? fopen(tool->output, "wb") : answer;
    bool failed;

    if (file == NULL) {
        fprintf(stderr, "ds-accel: %s: %s\n", tool->output, strerror(errno));
        ds_accel_free_data(data);
        return EXIT_PROBLEMS;
    }
    failed = fwrite(data, 1, size_bytes, file) != size_bytes;
    ds_accel_free_data(data);
    if (file == answer) {
        return finish_output(failed, code);
    }
    if (fclose(file) != 0 || failed) {
        fprintf(stderr, "ds-accel: writing %s failed: %s\n", tool->output, strerror(errno));
        return EXIT_PROBLEMS;
    }
    return code;
}

bool tool_is_terminal(const struct tool *tool)
{
    return tool->output == NULL && isatty(fileno(answer));
}

int tool_print(char *text, int code)
{
    bool failed = fputs(text, answer) < 0;

    ds_accel_free_text(text);
    return finish_output(failed, code);
}

uint32_t tool_format(const struct tool *tool)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    uint32_t format = tool->verbosity > 0 ? DS_ACCEL_FORMAT_VERBOSE : 0;

    if (tool->json) {
        return DS_ACCEL_FORMAT_JSON;
    }
    if (tool->memory_map != NULL) {
        return DS_ACCEL_FORMAT_SVG;
    }
    if (isatty(fileno(answer)) && (no_colour == NULL || no_colour[0] == '\0') && term != NULL &&
        strcmp(term, "dumb") != 0) {
        format |= DS_ACCEL_FORMAT_COLOUR;
    }
    return format;
}

int tool_report(struct tool *tool, uint32_t report, const char *name)
{
    ds_accel_t *context;
    char *text = NULL;
    int32_t status = ds_accel_create(&tool->options, &context);
    int code;

    if (status < 0) {
        return tool_fail(status);
    }
    status = ds_accel_report(context, report, name, tool_format(tool), &text);
    code = status < 0 ? tool_fail(status) : EXIT_OK;
    if (text != NULL) {
        code = tool_print(text, code);
    }
    ds_accel_destroy(context);
    return code;
}

/* ---- log and help --------------------------------------------------------------------------- */

static void print_log(void *user_data, uint32_t level, const char *topic, const char *message)
{
    static const char *const names[] = {"", "error", "warning", "info", "debug", "trace"};

    (void)user_data;
    fprintf(stderr, "ds-accel: %s: %s: %s\n", level < 6 ? names[level] : "log", topic, message);
}

static int print_help(const struct tool_command *command)
{
    bool failed;

    if (command != NULL) {
        failed = fprintf(answer, "usage: ds-accel %s [options]%s%s\n\n%s\n\n%s", command->name,
                         command->arguments[0] != '\0' ? " " : "", command->arguments,
                         command->help, common_help) < 0;
        return finish_output(failed, EXIT_OK);
    }
    failed = fprintf(answer, "usage: ds-accel [options] COMMAND [ARGUMENTS]\n\n"
                             "Finds this machine's accelerator through plugins, and says why.\n\n"
                             "commands:\n") < 0;
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        failed |= fprintf(answer, "  %-10s %-11s %s\n", commands[i]->name, commands[i]->arguments,
                          commands[i]->summary) < 0;
    }
    failed |= fprintf(answer, "\n%s", common_help) < 0;
    return finish_output(failed, EXIT_OK);
}

/* ---- parsing -------------------------------------------------------------------------------- */

/* One option; -1 to go on, else the exit code. */
static int take_option(struct tool *tool, int option)
{
    switch (option) {
    case 'a':
        tool->options.accelerator = optarg;
        return -1;
    case OPTION_CONFIG:
        tool->options.config_file = optarg;
        return -1;
    case OPTION_ENV:
        tool->show_env = true;
        return -1;
    case OPTION_JSON:
        tool->json = true;
        return -1;
    case OPTION_MEMORY_MAP:
        tool->memory_map = optarg != NULL ? optarg : "";
        return -1;
    case OPTION_PICKLE:
        tool->pickle = true;
        return -1;
    case OPTION_PICKLE_SEGMENTS:
        tool->pickle_segments = true;
        return -1;
    case OPTION_SVG:
        tool->svg = true;
        return -1;
    case 'o':
        tool->output = optarg;
        return -1;
    case OPTION_PLUGIN_DIR:
        if (tool->options.plugin_dir_count == TOOL_PLUGIN_DIRS) {
            return tool_usage(tool, "more than %d --plugin-dir", TOOL_PLUGIN_DIRS);
        }
        tool->plugin_dirs[tool->options.plugin_dir_count++] = optarg;
        return -1;
    case OPTION_ROOT:
        tool->options.machine_root = optarg;
        return -1;
    case 'q':
        tool->quiet = true;
        return -1;
    case 'v':
        tool->verbosity++;
        return -1;
    case 'h':
        return print_help(tool->command);
    case OPTION_VERSION:
        return finish_output(fprintf(answer, "ds-accel %s, plugin ABI %d.%d\n", ds_accel_version(),
                                     DS_ACCEL_ABI_MAJOR, DS_ACCEL_ABI_MINOR) < 0,
                             EXIT_OK);
    default:
        return EXIT_USAGE;
    }
}

/*
 * Name the culprit. getopt leaves a short option in optopt, 0 for an unknown long one, and for a
 * long one that takes no argument its value, which is one of ours.
 */
static int bad_option(const struct tool *tool, const char *argument)
{
    if (optopt == 0) {
        return tool_usage(tool, "unknown option %s, or an ambiguous one", argument);
    }
    if (optopt >= OPTION_JSON || strchr("ahqv", optopt) != NULL) {
        return tool_usage(tool, "option %s takes no argument", argument);
    }
    return tool_usage(tool, "unknown option -%c", optopt);
}

static int parse(struct tool *tool, int argc, char **argv, const char *short_options)
{
    int option;

    while ((option = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
        int code;

        if (option == ':') {
            return tool_usage(tool, "option %s needs an argument", argv[optind - 1]);
        }
        if (option == '?') {
            return bad_option(tool, argv[optind - 1]);
        }
        code = take_option(tool, option);
        if (code >= 0) {
            return code;
        }
    }
    return -1;
}

/* Options that only some commands have, given to another: the exit code, or -1. */
static int check_options(const struct tool *tool)
{
    if (tool->show_env && tool->command != &cmd_config) {
        return tool_usage(tool, "--env is an option of config show");
    }
    if (tool->memory_map != NULL && tool->command != &cmd_info) {
        return tool_usage(tool, "--memory-map is an option of info");
    }
    if ((tool->svg || tool->pickle || tool->pickle_segments) && tool->command != &cmd_memory) {
        return tool_usage(tool, "%s is an option of memory show",
                          tool->svg      ? "--svg"
                          : tool->pickle ? "--pickle"
                                         : "--pickle-segments");
    }
    if (tool->output != NULL && tool->command != &cmd_memory) {
        return tool_usage(tool, "--output is an option of memory");
    }
    return -1;
}

static const struct tool_command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
    }
    return NULL;
}

/* Give what plugins print another place than the answer's. Without stderr there is none. */
static void keep_answer_clean(void)
{
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

    if (file == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        if (file != NULL) {
            fclose(file);
        } else if (fd >= 0) {
            close(fd);
        }
        return;
    }
    answer = file;
}

static void finish_options(struct tool *tool)
{
    tool->options.plugin_dirs = tool->plugin_dirs;
    tool->options.log_sink = print_log;
    if (tool->quiet) {
        tool->options.log_levels = "error";
    } else if (tool->verbosity > 0) {
        tool->options.log_levels = tool->verbosity > 1 ? "debug" : "info";
    }
}

int main(int argc, char **argv)
{
    struct tool tool = {.options.struct_size = sizeof(tool.options)};
    const char *name;
    int code;
    int count;

    answer = stdout;
    opterr = 0;
    code = parse(&tool, argc, argv, "+:a:ho:qv");
    if (code >= 0) {
        return code;
    }
    if (optind >= argc) {
        return tool_usage(&tool, "no command was given");
    }
    name = argv[optind];
    if (strcmp(name, "help") == 0 && optind + 1 == argc) {
        return print_help(NULL);
    }
    if (strcmp(name, "help") == 0) {
        name = argv[optind + 1];
        tool.command = find_command(name);
        return tool.command != NULL ? print_help(tool.command)
                                    : tool_usage(&tool, "unknown command \"%s\"", name);
    }
    tool.command = find_command(name);
    if (tool.command == NULL) {
        return tool_usage(&tool, "unknown command \"%s\"", name);
    }
    argc -= optind;
    argv += optind;
    optind = 0; /* glibc: start again, also its permutation */
    code = parse(&tool, argc, argv, ":a:ho:qv");
    if (code >= 0) {
        return code;
    }
    code = check_options(&tool);
    if (code >= 0) {
        return code;
    }
    count = argc - optind;
    if (count < tool.command->least || count > tool.command->most) {
        return tool_usage(&tool, "%s takes %s, and %d argument%s given", name,
                          tool.command->arguments[0] != '\0' ? tool.command->arguments
                                                             : "no argument",
                          count, count == 1 ? " was" : "s were");
    }
    finish_options(&tool);
    keep_answer_clean();
    return tool.command->run(&tool, count, argv + optind);
}
