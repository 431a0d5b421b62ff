/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command line: finds the command, parses all options, and runs the command. */
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
    &cmd_detect, &cmd_list,   &cmd_info,       &cmd_explain, &cmd_env,         &cmd_doctor,
    &cmd_topo,   &cmd_report, &cmd_config,     &cmd_lint,    &cmd_conformance, &cmd_bench,
    &cmd_memory, &cmd_cache,  &cmd_quarantine, &cmd_note,    &cmd_ops,         &cmd_run,
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

enum {
    OPTION_JSON = 256,
    OPTION_PLUGIN_DIR,
    OPTION_CONFIG,
    OPTION_ROOT,
    OPTION_ENV,
    OPTION_FORCE,
    OPTION_GROUP,
    OPTION_JOBS,
    OPTION_LIST,
    OPTION_MACHINE,
    OPTION_MEMORY_MAP,
    OPTION_NO_REDACT,
    OPTION_ONLY,
    OPTION_PICKLE,
    OPTION_PICKLE_SEGMENTS,
    OPTION_PLAN,
    OPTION_RECORD,
    OPTION_RULE,
    OPTION_SIZE,
    OPTION_SVG,
    OPTION_TIME,
    OPTION_DEVICE,
    OPTION_TRY,
    OPTION_TUNE,
    OPTION_VERSION
};

static const struct option long_options[] = {
    {"accelerator", required_argument, NULL, 'a'},
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"env", no_argument, NULL, OPTION_ENV},
    {"force", no_argument, NULL, OPTION_FORCE},
    {"group", required_argument, NULL, OPTION_GROUP},
    {"help", no_argument, NULL, 'h'},
    {"jobs", required_argument, NULL, OPTION_JOBS},
    {"json", no_argument, NULL, OPTION_JSON},
    {"list", no_argument, NULL, OPTION_LIST},
    {"machine", required_argument, NULL, OPTION_MACHINE},
    {"memory-map", optional_argument, NULL, OPTION_MEMORY_MAP},
    {"no-redact", no_argument, NULL, OPTION_NO_REDACT},
    {"only", required_argument, NULL, OPTION_ONLY},
    {"output", required_argument, NULL, 'o'},
    {"pickle", no_argument, NULL, OPTION_PICKLE},
    {"pickle-segments", no_argument, NULL, OPTION_PICKLE_SEGMENTS},
    {"plan", required_argument, NULL, OPTION_PLAN},
    {"plugin-dir", required_argument, NULL, OPTION_PLUGIN_DIR},
    {"quiet", no_argument, NULL, 'q'},
    {"record", required_argument, NULL, OPTION_RECORD},
    {"root", required_argument, NULL, OPTION_ROOT},
    {"rule", required_argument, NULL, OPTION_RULE},
    {"size", required_argument, NULL, OPTION_SIZE},
    {"svg", no_argument, NULL, OPTION_SVG},
    {"time", required_argument, NULL, OPTION_TIME},
    {"try", required_argument, NULL, OPTION_TRY},
    {"tune", no_argument, NULL, OPTION_TUNE},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

static const char common_help[] =
    "options:\n"
    "  -a, --accelerator NAME  force this accelerator, as DS_ACCELERATOR does\n"
    "      --config FILE       a configuration file that replaces the user's own\n"
    "      --json              write JSON\n"
    "      --machine FILE      use the machine recorded in FILE; see report --record\n"
    "      --plugin-dir DIR    search DIR for plugins first; may be given again\n"
    "      --root DIR          read /sys, /proc and /dev below DIR: another machine\n"
    "  -q, --quiet             on stderr only errors\n"
    "  -v, --verbose           on stderr more; -vv most\n"
    "  -h, --help              this text; also: ds-accel help [COMMAND]\n"
    "      --version           the versions of ds-accel and of its plugin ABI\n"
    "exit codes: 0 ok, 1 problems found or failed, 2 usage, 3 nothing available,\n"
    "  4 the forced accelerator is not usable, 5 bad configuration, 6 refused for\n"
    "  security, 7 internal error\n";

/* The output of commands: the original stdout. Descriptor 1 is redirected to stderr, for plugins
 * that print. */
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

/* Print a line of any length on stderr by one write(), so that lines of several processes do not
 * mix. If memory is exhausted, it is several writes. */
__attribute__((format(printf, 1, 2))) static void print_line(const char *format, ...)
{
    va_list arguments;
    va_list again;
    char *text;
    char *line;

    va_start(arguments, format);
    va_copy(again, arguments);
    if (vasprintf(&text, format, arguments) < 0) {
        text = NULL;
    }
    line = NULL;
    if (text != NULL && asprintf(&line, "ds-accel: %s\n", text) >= 0) {
        fputs(line, stderr);
        free(line);
    } else {
        fputs("ds-accel: ", stderr);
        vfprintf(stderr, format, again);
        fputc('\n', stderr);
    }
    free(text);
    va_end(again);
    va_end(arguments);
}

static void say(const char *format, const char *tail, va_list arguments)
{
    char buffer[1024];
    char *line = buffer;
    va_list again;
    int length;

    va_copy(again, arguments);
    length = vsnprintf(buffer, sizeof(buffer), format, arguments);
    if (length < 0) {
        buffer[0] = '\0';
    }
    if (length >= (int)sizeof(buffer) && vasprintf(&line, format, again) < 0) {
        size_t end = sizeof(buffer) - sizeof("..."); /* out of memory: what fits, with a mark */

        while (end > 0 && ((unsigned char)buffer[end] & 0xc0) == 0x80) {
            end--;
        }
        memcpy(buffer + end, "...", sizeof("..."));
        line = buffer;
    }
    va_end(again);
    ds_accel_sanitize_text(line, strlen(line) + 1);
    print_line("%s%s", line, tail);
    if (line != buffer) {
        free(line);
    }
}

void tool_say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say(format, "", arguments);
    va_end(arguments);
}

int tool_fail(int32_t status)
{
    /* Not tool_say(): errors of a configuration have several lines, and the library has already
     * replaced control characters. */
    fprintf(stderr, "ds-accel: %s\n", ds_accel_last_error());
    return tool_exit_code(status);
}

int tool_usage(const struct tool *tool, const char *format, ...)
{
    char tail[64];
    va_list arguments;

    snprintf(tail, sizeof(tail), "; see ds-accel %s%s--help",
             tool->command != NULL ? tool->command->name : "", tool->command != NULL ? " " : "");
    va_start(arguments, format);
    say(format, tail, arguments);
    va_end(arguments);
    return EXIT_USAGE;
}

/* Flush the output. failed is true if an earlier write has failed. Returns code, or EXIT_PROBLEMS
 * if any write failed. */
static int finish_output(bool failed, int code)
{
    if (fflush(answer) != 0 || ferror(answer) || failed) {
        tool_say("writing the output failed: %s", strerror(errno));
        return EXIT_PROBLEMS;
    }
    return code;
}

int tool_write(const struct tool *tool, void *data, size_t size_bytes, int code)
{
    code = tool_answer(tool, data, size_bytes, code);
    ds_accel_free_data(data);
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

int tool_answer(const struct tool *tool, const char *text, size_t size_bytes, int code)
{
    if (tool->output != NULL) {
        return tool_save(tool->output, text, size_bytes) ? code : EXIT_PROBLEMS;
    }
    return finish_output(fwrite(text, 1, size_bytes, answer) != size_bytes, code);
}

uint32_t tool_format(const struct tool *tool)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    uint32_t format = tool->verbosity > 0 ? DS_ACCEL_FORMAT_VERBOSE : 0;

    if (tool->json) {
        return DS_ACCEL_FORMAT_JSON;
    }
    if (tool->memory_map != NULL || tool->svg) {
        return DS_ACCEL_FORMAT_SVG;
    }
    if (tool->output == NULL && isatty(fileno(answer)) &&
        (no_colour == NULL || no_colour[0] == '\0') && term != NULL && strcmp(term, "dumb") != 0) {
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
    print_line("%s: %s: %s", level < 6 ? names[level] : "log", topic, message);
}

static int print_help(const struct tool_command *command)
{
    bool failed;

    if (command != NULL) {
        failed = fprintf(answer, "usage: ds-accel %s [options]%s%s\n\n%s\n\n%s", command->name,
                         command->arguments[0] != '\0' ? " " : "", command->arguments,
                         command->help, command->parses ? "" : common_help) < 0;
        return finish_output(failed, EXIT_OK);
    }
    failed = fprintf(answer,
                     "usage: ds-accel [options] COMMAND [ARGUMENTS]\n\n"
                     "Finds this machine's accelerator through plugins, and reports why.\n\n"
                     "commands:\n") < 0;
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        failed |= fprintf(answer, "  %-11s %-14s %s\n", commands[i]->name, commands[i]->arguments,
                          commands[i]->summary) < 0;
    }
    failed |= fprintf(answer, "\n%s", common_help) < 0;
    return finish_output(failed, EXIT_OK);
}

int tool_help(const struct tool *tool)
{
    return print_help(tool->command);
}

int tool_version(void)
{
    return finish_output(fprintf(answer, "ds-accel %s, plugin ABI %d.%d\n", ds_accel_version(),
                                 DS_ACCEL_ABI_MAJOR, DS_ACCEL_ABI_MINOR) < 0,
                         EXIT_OK);
}

/* ---- parsing -------------------------------------------------------------------------------- */

/* Add a value of an option that may be given several times. Returns -1, or the exit code if there
 * are too many values. */
static int take_another(const struct tool *tool, const char *option, const char **values,
                        size_t *count)
{
    if (*count == TOOL_LISTS) {
        return tool_usage(tool, "more than %d %s", TOOL_LISTS, option);
    }
    values[(*count)++] = optarg;
    return -1;
}

/* Does the command's own_options contain this option? */
static bool has_own(const struct tool_command *command, const char *name)
{
    const char *own = command->own_options != NULL ? command->own_options : "";
    size_t length = strlen(name);

    for (; *own != '\0'; own += strcspn(own, " "), own += *own == ' ') {
        if (strncmp(own, name, length) == 0 && (own[length] == ' ' || own[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* Is the option one that only some commands have? */
static bool is_own(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (has_own(commands[i], name)) {
            return true;
        }
    }
    return false;
}

/* Handle an option that all commands have. Returns -1 to continue, or the exit code. */
static int take_common_option(struct tool *tool, int option)
{
    switch (option) {
    case 'a':
        tool->options.accelerator = optarg;
        return -1;
    case OPTION_CONFIG:
        tool->options.config_file = optarg;
        return -1;
    case OPTION_JSON:
        tool->json = true;
        return -1;
    case OPTION_PLUGIN_DIR:
        if (tool->options.plugin_dir_count == TOOL_PLUGIN_DIRS) {
            return tool_usage(tool, "more than %d --plugin-dir", TOOL_PLUGIN_DIRS);
        }
        tool->plugin_dirs[tool->options.plugin_dir_count++] = optarg;
        return -1;
    case OPTION_MACHINE:
        tool->options.machine_file = optarg;
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
        return tool_version();
    default:
        return EXIT_USAGE;
    }
}

/* Handle an option that only some commands have. The command may not be known yet, so
 * check_options() checks later whether it has the option. Returns -1 to continue, or the exit
 * code. */
static int take_own_option(struct tool *tool, int option)
{
    switch (option) {
    case OPTION_DEVICE:
        tool->device = optarg;
        return -1;
    case OPTION_ENV:
        tool->show_env = true;
        return -1;
    case OPTION_FORCE:
        tool->force = true;
        return -1;
    case OPTION_GROUP:
        tool->group = optarg;
        return -1;
    case OPTION_JOBS:
        tool->jobs = optarg;
        return -1;
    case OPTION_LIST:
        tool->list = true;
        return -1;
    case OPTION_MEMORY_MAP:
        tool->memory_map = optarg != NULL ? optarg : "";
        return -1;
    case OPTION_NO_REDACT:
        tool->no_redact = true;
        return -1;
    case OPTION_RECORD:
        tool->record = optarg;
        return -1;
    case OPTION_ONLY:
        return take_another(tool, "--only", tool->groups, &tool->group_count);
    case 'o':
        tool->output = optarg;
        return -1;
    case OPTION_PICKLE:
        tool->pickle = true;
        return -1;
    case OPTION_PICKLE_SEGMENTS:
        tool->pickle_segments = true;
        return -1;
    case OPTION_PLAN:
        tool->plan = optarg;
        return -1;
    case OPTION_RULE:
        tool->rule = optarg;
        return -1;
    case OPTION_SIZE:
        return take_another(tool, "--size", tool->sizes, &tool->size_count);
    case OPTION_SVG:
        tool->svg = true;
        return -1;
    case OPTION_TRY:
        return take_another(tool, "--try", tool->tries, &tool->try_count);
    case OPTION_TUNE:
        tool->tune = true;
        return -1;
    default:
        tool->time = optarg;
        return -1;
    }
}

static int take_option(struct tool *tool, int option)
{
    for (size_t i = 0; long_options[i].name != NULL; i++) {
        if (long_options[i].val == option && is_own(long_options[i].name)) {
            tool->given |= UINT64_C(1) << i;
            return take_own_option(tool, option);
        }
    }
    return take_common_option(tool, option);
}

/*
 * Report a wrong option. getopt_long() sets optopt to the character of an unknown short option, to
 * 0 for an unknown long option, and to the option's value (OPTION_*) for a long option that was
 * given an argument but takes none.
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

/* Check that the command supports every option that was given. Returns -1 if it does; otherwise
 * prints a usage error and returns the exit code. */
static int check_options(const struct tool *tool)
{
    for (size_t i = 0; long_options[i].name != NULL; i++) {
        const char *name = long_options[i].name;
        char owners[128] = "";
        size_t last = 0;

        if ((tool->given >> i & 1) == 0 || has_own(tool->command, name)) {
            continue;
        }
        for (size_t j = 0; j < COMMAND_COUNT; j++) {
            if (has_own(commands[j], name)) {
                size_t length = strlen(owners);

                last = length;
                snprintf(owners + length, sizeof(owners) - length, "%s%s", length > 0 ? ", " : "",
                         commands[j]->name);
            }
        }
        if (last > 0) { /* "report, bench, memory" becomes "report, bench and memory" */
            char name_of_last[32];

            snprintf(name_of_last, sizeof(name_of_last), "%s", owners + last + 2);
            snprintf(owners + last, sizeof(owners) - last, " and %s", name_of_last);
        }
        return tool_usage(tool, "--%s is an option of %s", name, owners);
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

/* Redirect descriptor 1 to stderr, so that output of plugins does not mix with the command's
 * output. If stderr is closed, or descriptor 1 cannot be duplicated, nothing is redirected. */
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

/* Open what is closed of stdin, stdout and stderr, so that no other file or pipe takes its number
 * and gets what is meant for it. Reads find the end, writes still fail. */
static void open_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            (void)!open("/dev/null", O_RDONLY);
        }
    }
}

int main(int argc, char **argv)
{
    struct tool tool = {.options.struct_size = sizeof(tool.options)};
    const char *name;
    int code;
    int count;

    open_standard();
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
    if (tool.command->parses) {
        finish_options(&tool);
        return tool.command->run(&tool, argc - 1, argv + 1);
    }
    optind = 0; /* 0, not 1, makes getopt_long() of glibc restart with new arguments */
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
    return tool.command->starts_plugins ? tool_run_apart(&tool, count, argv + optind)
                                        : tool.command->run(&tool, count, argv + optind);
}
