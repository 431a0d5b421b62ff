/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The command line of ds-accel run. It takes the options of DeepSpeed's launcher as that launcher's
 * parser (argparse) takes them, so that "deepspeed X" becomes "ds-accel run X": prefixes of names,
 * values after "=", short options with their value attached. Like argparse, an argument that begins
 * with "-" is a value only if it is a negative number or contains a blank; as an exception, the
 * value of --launcher_args may be any argument.
 */
#include "launch/options.h"
#include "base/text.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    FLAG,     /* bool */
    TEXT,     /* const char * */
    ANY_TEXT, /* the same, and the value may begin with "-" */
    INTEGER,  /* int64_t */
    LEVEL,    /* const char *, one of log_levels */
    BIND_TO,
    RESERVE,
    DURATION, /* uint64_t, nanoseconds */
    DIRECTORY,
    COUNT /* int: how often the option was given */
};

static const char *const log_levels[] = {"debug", "info", "warning", "error", "critical"};
static const char *const binds[] = {
    [DS_ACCEL__BIND_NONE] = "none",
    [DS_ACCEL__BIND_SHARE] = "", /* --bind_cores_to_rank */
    [DS_ACCEL__BIND_NODE] = "node",
    [DS_ACCEL__BIND_SOCKET] = "socket",
    [DS_ACCEL__BIND_L3] = "l3",
    [DS_ACCEL__BIND_CORE] = "core",
    [DS_ACCEL__BIND_EXCLUSIVE] = "exclusive",
};

#define MEMBER(name) offsetof(struct ds_accel__launch_options, name)
/* All options. The first part is DeepSpeed's. */
static const struct option {
    const char *name;
    char letter; /* 0: none */
    enum kind kind;
    size_t member;
} options_table[] = {
    {"hostfile", 'H', TEXT, MEMBER(hostfile)},
    {"include", 'i', TEXT, MEMBER(include)},
    {"exclude", 'e', TEXT, MEMBER(exclude)},
    {"num_nodes", 0, INTEGER, MEMBER(num_nodes)},
    {"num_gpus", 0, INTEGER, MEMBER(num_devices)},
    {"num_accelerators", 0, INTEGER, MEMBER(num_devices)},
    {"min_elastic_nodes", 0, INTEGER, MEMBER(min_elastic_nodes)},
    {"max_elastic_nodes", 0, INTEGER, MEMBER(max_elastic_nodes)},
    {"master_port", 0, TEXT, MEMBER(master_port)},
    {"master_addr", 0, TEXT, MEMBER(master_addr)},
    {"node_rank", 0, INTEGER, MEMBER(node_rank)},
    {"launcher", 0, TEXT, MEMBER(launcher)},
    {"launcher_args", 0, ANY_TEXT, MEMBER(launcher_args)},
    {"module", 0, FLAG, MEMBER(module)},
    {"no_python", 0, FLAG, MEMBER(no_python)},
    {"no_local_rank", 0, FLAG, MEMBER(no_local_rank)},
    {"no_ssh", 0, FLAG, MEMBER(no_ssh)},
    {"no_ssh_check", 0, FLAG, MEMBER(no_ssh_check)},
    {"force_multi", 0, FLAG, MEMBER(force_multi)},
    {"save_pid", 0, FLAG, MEMBER(save_pid)},
    {"enable_each_rank_log", 0, TEXT, MEMBER(log_directory)},
    {"autotuning", 0, TEXT, MEMBER(autotuning)},
    {"elastic_training", 0, FLAG, MEMBER(elastic_training)},
    {"bind_cores_to_rank", 0, FLAG, MEMBER(bind_cores_to_rank)},
    {"bind_core_list", 0, TEXT, MEMBER(bind_core_list)},
    {"ssh_port", 0, INTEGER, MEMBER(ssh_port)},
    {"venv_script", 0, TEXT, MEMBER(venv_script)},
    {"log_level", 0, LEVEL, MEMBER(log_level)},
    {"quiet", 'q', FLAG, MEMBER(quiet)},
    {"help", 'h', FLAG, MEMBER(wants_help)},
#define THEIRS 30u /* the number of options above */
    {"accelerator", 'a', TEXT, MEMBER(accelerator)},
    {"bind-to", 0, BIND_TO, MEMBER(bind)},
    {"config", 0, TEXT, MEMBER(config)},
    {"dry-run", 0, FLAG, MEMBER(dry_run)},
    {"json", 0, FLAG, MEMBER(json)},
    {"machine", 0, TEXT, MEMBER(machine)},
    {"plugin-dir", 0, DIRECTORY, MEMBER(plugin_dirs)},
    {"pty", 0, FLAG, MEMBER(pty)},
    {"reserve-cores", 0, RESERVE, MEMBER(reserve_cores)},
    {"result", 0, TEXT, MEMBER(result)},
    {"root", 0, TEXT, MEMBER(root)},
    {"show-ranks", 0, FLAG, MEMBER(show_ranks)},
    {"smt", 0, FLAG, MEMBER(uses_smt)},
    {"stall-kill", 0, FLAG, MEMBER(stall_kill)},
    {"stall-timeout", 0, DURATION, MEMBER(stall_timeout_ns)},
    {"verbose", 'v', COUNT, MEMBER(verbosity)},
    {"version", 0, FLAG, MEMBER(wants_version)},
};
#define OPTION_COUNT ARRAY_SIZE(options_table)
#define NAME_SIZE 64u /* more than any name has, and NUL */

struct parser {
    struct ds_accel__launch_options *options;
    const char *const *arguments;
    uint32_t count, next;
};

/* ---- names ---------------------------------------------------------------------------------- */

static char equal_letter(char letter)
{
    return letter == '-' ? '_' : letter;
}

/* Compare a name, up to length, with the start of an option's name; "-" is equal to "_". */
static bool starts(const char *option, const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (option[i] == '\0' || equal_letter(option[i]) != equal_letter(name[i])) {
            return false;
        }
    }
    return true;
}

/* Find the options from first to last whose names begin with the name. */
static unsigned find_prefix(const char *name, size_t length, size_t first, size_t last,
                            const struct option **found, struct ds_accel__text *names)
{
    unsigned count = 0;

    for (size_t i = first; i < last; i++) {
        if (starts(options_table[i].name, name, length)) {
            *found = &options_table[i];
            ds_accel__text_add(names, "%s--%s", count > 0 ? ", " : "", options_table[i].name);
            count++;
        }
    }
    return count;
}

static const struct option *find_exact(const char *name, size_t length)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (starts(options_table[i].name, name, length) && options_table[i].name[length] == '\0') {
            return &options_table[i];
        }
    }
    return NULL;
}

/* Copy a name, truncated to fit, with underscores. */
static void copy_name(const char *name, size_t length, char copy[NAME_SIZE])
{
    snprintf(copy, NAME_SIZE, "%.*s", (int)(length < NAME_SIZE ? length : NAME_SIZE - 1), name);
    for (char *at = copy; *at != '\0'; at++) {
        *at = equal_letter(*at);
    }
}

static int32_t unknown_option(const char *name, size_t length)
{
    char copies[OPTION_COUNT][NAME_SIZE];
    const char *names[OPTION_COUNT];
    char text[NAME_SIZE];
    const char *near;

    for (size_t i = 0; i < OPTION_COUNT; i++) {
        copy_name(options_table[i].name, NAME_SIZE, copies[i]);
        names[i] = copies[i];
    }
    copy_name(name, length, text);
    near = ds_accel__nearest(text, names, OPTION_COUNT);
    for (size_t i = 0; near != NULL && i < OPTION_COUNT; i++) {
        if (near == names[i]) {
            near = options_table[i].name;
            break;
        }
    }
    length = length < NAME_SIZE ? length : NAME_SIZE;
    return near != NULL
               ? ds_accel__error(DS_ACCEL_ERR_INVALID, "unknown option --%.*s; did you mean --%s?",
                                 (int)length, name, near)
               : ds_accel__error(DS_ACCEL_ERR_INVALID, "unknown option --%.*s", (int)length, name);
}

static int32_t find_long(const char *name, size_t length, const struct option **found)
{
    struct ds_accel__text names = {0};
    int32_t status = DS_ACCEL_OK;
    unsigned count;

    *found = length > 0 ? find_exact(name, length) : NULL;
    if (*found != NULL) {
        return DS_ACCEL_OK;
    }
    count = find_prefix(name, length, 0, THEIRS, found, &names);
    if (count == 0) {
        count = find_prefix(name, length, THEIRS, OPTION_COUNT, found, &names);
    }
    if (count == 0 || length == 0) {
        status = unknown_option(name, length);
    } else if (count > 1) {
        status = ds_accel__error(DS_ACCEL_ERR_INVALID, "--%.*s is ambiguous: %s",
                                 (int)(length < 63 ? length : 63), name,
                                 names.failed ? "" : names.data);
    }
    ds_accel__text_clear(&names);
    return status;
}

/* ---- values --------------------------------------------------------------------------------- */

static int32_t bad_value(const struct option *option, const char *value, const char *expected)
{
    return ds_accel__error(DS_ACCEL_ERR_INVALID, "--%s \"%.200s\": expected %s", option->name,
                           value, expected);
}

/* Read an integer and the position behind it. */
static bool read_integer(const char *text, int64_t *number_out, char **end)
{
    bool has_sign = text[0] == '-' || text[0] == '+';

    if (text[has_sign] < '0' || text[has_sign] > '9') {
        return false;
    }
    errno = 0;
    *number_out = strtoll(text, end, 10);
    return errno == 0;
}

static int32_t set_integer(const struct option *option, const char *value, void *member)
{
    int64_t number;
    char *end;

    if (!read_integer(value, &number, &end) || *end != '\0' || number < INT32_MIN ||
        number > INT32_MAX) {
        return bad_value(option, value, "a number");
    }
    *(int64_t *)member = number;
    return DS_ACCEL_OK;
}

static int32_t set_choice(const struct option *option, const char *value,
                          const char *const *choices, size_t count, size_t *choice_out)
{
    struct ds_accel__text text = {0};
    int32_t status;

    for (size_t i = 0; i < count; i++) {
        if (choices[i][0] != '\0' && strcmp(choices[i], value) == 0) {
            *choice_out = i;
            return DS_ACCEL_OK;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (choices[i][0] != '\0') {
            ds_accel__text_add(&text, "%s%s", text.size_bytes == 0 ? "one of " : ", ", choices[i]);
        }
    }
    status = bad_value(option, value, text.failed ? "another value" : text.data);
    ds_accel__text_clear(&text);
    return status;
}

static int32_t set_reserve(const struct option *option, const char *value,
                           struct ds_accel__launch_options *options)
{
    int64_t number;
    char *end;
    bool is_percent;

    if (!read_integer(value, &number, &end) || number < 0) {
        return bad_value(option, value, "a number of cores, or a part of them such as 25%");
    }
    is_percent = strcmp(end, "%") == 0;
    if ((!is_percent && *end != '\0') || number > (is_percent ? 99 : DS_ACCEL__LIST_LIMIT)) {
        return bad_value(option, value, "a number of cores, or a part of them such as 25%");
    }
    options->reserve_cores = is_percent ? 0 : (uint32_t)number;
    options->reserve_percent = is_percent ? (uint32_t)number : 0;
    return DS_ACCEL_OK;
}

/* Read a time such as "90", "90s", "5m" or "1h". */
static int32_t set_duration(const struct option *option, const char *value, uint64_t *time_ns)
{
    static const struct {
        const char *unit;
        uint64_t seconds;
    } units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}};
    int64_t number;
    char *end;

    if (read_integer(value, &number, &end) && number >= 0 && number <= 1000000) {
        for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
            if (strcmp(end, units[i].unit) == 0) {
                *time_ns = (uint64_t)number * units[i].seconds * UINT64_C(1000000000);
                return DS_ACCEL_OK;
            }
        }
    }
    return bad_value(option, value, "a time such as 90s, 5m or 1h");
}

static int32_t add_directory(struct ds_accel__launch_options *options, const char *value)
{
    if (options->plugin_dir_count == DS_ACCEL__PLUGIN_DIR_LIMIT) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "more than %u --plugin-dir",
                               DS_ACCEL__PLUGIN_DIR_LIMIT);
    }
    options->plugin_dirs[options->plugin_dir_count++] = value;
    return DS_ACCEL_OK;
}

static int32_t set_value(struct ds_accel__launch_options *options, const struct option *option,
                         const char *value)
{
    void *member = (char *)options + option->member;
    size_t choice = 0;
    int32_t status;

    switch (option->kind) {
    case INTEGER:
        return set_integer(option, value, member);
    case LEVEL:
        status = set_choice(option, value, log_levels, ARRAY_SIZE(log_levels), &choice);
        *(const char **)member = status >= 0 ? log_levels[choice] : NULL;
        return status;
    case BIND_TO:
        status = set_choice(option, value, binds, ARRAY_SIZE(binds), &choice);
        options->bind = (enum ds_accel__bind)choice;
        options->has_bind = true;
        return status;
    case RESERVE:
        return set_reserve(option, value, options);
    case DURATION:
        return set_duration(option, value, member);
    case DIRECTORY:
        return add_directory(options, value);
    default:
        *(const char **)member = value;
        return DS_ACCEL_OK;
    }
}

/* Set an option without a value. False: the option needs a value. */
static bool set_flag(struct ds_accel__launch_options *options, const struct option *option)
{
    void *member = (char *)options + option->member;

    if (option->kind == FLAG) {
        *(bool *)member = true;
    } else if (option->kind == COUNT) {
        *(int *)member += 1;
    }
    return option->kind == FLAG || option->kind == COUNT;
}

/* Is the text -N, -N.N or -.N? */
static bool is_negative(const char *text)
{
    size_t whole = text[0] == '-' ? strspn(text + 1, "0123456789") : 0;
    const char *at = text + 1 + whole;
    size_t part = text[0] == '-' && *at == '.' ? strspn(at + 1, "0123456789") : 0;

    return part > 0 ? at[1 + part] == '\0' : whole > 0 && *at == '\0';
}

/* Is the argument a value, as argparse decides it? */
static bool is_value(const struct option *option, const char *argument)
{
    return argument[0] != '-' || argument[1] == '\0' || option->kind == ANY_TEXT ||
           strchr(argument, ' ') != NULL || is_negative(argument);
}

static int32_t take_value(struct parser *parser, const struct option *option)
{
    if (parser->next >= parser->count || !is_value(option, parser->arguments[parser->next])) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "--%s needs a value", option->name);
    }
    return set_value(parser->options, option, parser->arguments[parser->next++]);
}

/* ---- arguments ------------------------------------------------------------------------------ */

static int32_t takes_no_value(const struct option *option)
{
    return ds_accel__error(DS_ACCEL_ERR_INVALID, "--%s takes no value", option->name);
}

static int32_t take_long(struct parser *parser, const char *argument)
{
    const char *name = argument + 2;
    size_t length = strcspn(name, "=");
    const struct option *option;
    int32_t status = find_long(name, length, &option);

    if (status < 0) {
        return status;
    }
    if (name[length] == '=') {
        if (option->kind == FLAG || option->kind == COUNT) {
            return takes_no_value(option);
        }
        return set_value(parser->options, option, name + length + 1);
    }
    return set_flag(parser->options, option) ? DS_ACCEL_OK : take_value(parser, option);
}

/* "-q", "-Hfile", "-H file", "-H=file", "-qH file". */
static int32_t take_short(struct parser *parser, const char *argument)
{
    for (const char *letter = argument + 1; *letter != '\0'; letter++) {
        const struct option *option = NULL;

        for (size_t i = 0; i < OPTION_COUNT && option == NULL; i++) {
            option = options_table[i].letter == *letter ? &options_table[i] : NULL;
        }
        if (option == NULL) {
            return ds_accel__error(DS_ACCEL_ERR_INVALID, "unknown option -%c", *letter);
        }
        if (!set_flag(parser->options, option)) {
            bool has_equals = letter[1] == '='; /* the value behind it may be empty */

            return has_equals || letter[1] != '\0'
                       ? set_value(parser->options, option, letter + 1 + has_equals)
                       : take_value(parser, option);
        }
        if (letter[1] == '=') {
            return takes_no_value(option);
        }
    }
    return DS_ACCEL_OK;
}

/* Find an argument of the program that is an option of the launcher, and of few programs. */
static const char *find_misplaced(const char *const *arguments, uint32_t count)
{
    static const char *const common[] = {
        "help", "version", "config",      "json",   "verbose", "quiet",   "module",    "machine",
        "root", "device",  "accelerator", "result", "include", "exclude", "log_level", "launcher"};

    for (uint32_t i = 1; i < count; i++) {
        const struct option *option;
        bool is_common = false;
        size_t length;

        if (strncmp(arguments[i], "--", 2) != 0) {
            continue;
        }
        length = strcspn(arguments[i] + 2, "=");
        option = length > 0 ? find_exact(arguments[i] + 2, length) : NULL;
        for (size_t j = 0; option != NULL && j < ARRAY_SIZE(common); j++) {
            is_common |= strcmp(option->name, common[j]) == 0;
        }
        if (option != NULL && !is_common) {
            return arguments[i];
        }
    }
    return NULL;
}

/* Combine options that depend on each other. */
static int32_t finish(struct ds_accel__launch_options *options)
{
    if (options->autotuning != NULL) {
        return ds_accel__error(
            DS_ACCEL_ERR_INVALID,
            "--autotuning: ds-accel run starts one configuration; to compare several, run "
            "DeepSpeed's own autotuner (deepspeed --autotuning), or start ds-accel run for each");
    }
    if (options->bind_cores_to_rank && options->has_bind) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "--bind_cores_to_rank and --bind-to exclude each other");
    }
    if (options->bind_core_list != NULL && options->has_bind &&
        options->bind == DS_ACCEL__BIND_NONE) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "--bind_core_list and --bind-to none exclude each other");
    }
    if (options->bind == DS_ACCEL__BIND_NONE &&
        (options->bind_cores_to_rank || options->bind_core_list != NULL)) {
        options->bind = DS_ACCEL__BIND_SHARE;
    }
    if (options->bind == DS_ACCEL__BIND_NONE &&
        (options->uses_smt || options->reserve_cores > 0 || options->reserve_percent > 0)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s needs --bind_cores_to_rank or --bind-to",
                               options->uses_smt ? "--smt" : "--reserve-cores");
    }
    if (options->log_directory != NULL && strcmp(options->log_directory, "None") == 0) {
        options->log_directory = NULL; /* the original's default, as its users write it */
    }
    if (options->log_directory != NULL && options->log_directory[0] == '\0') {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "--enable_each_rank_log: expected a directory, not \"\"");
    }
    if (options->pty && options->log_directory != NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "--pty and --enable_each_rank_log exclude each other");
    }
    if (options->json && !options->dry_run) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "--json needs --dry-run; --result FILE writes how a job ended as "
                               "JSON");
    }
    if (options->stall_kill && options->stall_timeout_ns == 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "--stall-kill needs --stall-timeout");
    }
    if (options->module && options->no_python) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "--module and --no_python exclude each other");
    }
    if (options->quiet) {
        options->log_level = "error";
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel__launch_options_parse(uint32_t argument_count, const char *const *arguments,
                                       struct ds_accel__launch_options *options)
{
    struct parser parser = {.options = options, .arguments = arguments, .count = argument_count};
    int32_t status = DS_ACCEL_OK;

    *options = (struct ds_accel__launch_options){
        .num_nodes = -1,
        .num_devices = -1,
        .min_elastic_nodes = -1,
        .max_elastic_nodes = -1,
        .node_rank = -1,
        .ssh_port = -1,
        .launcher = "pdsh",
        .log_level = "info",
    };
    while (status >= 0 && parser.next < argument_count) {
        const char *argument = arguments[parser.next];

        if (argument[0] != '-' || argument[1] == '\0') {
            break;
        }
        parser.next++;
        if (strcmp(argument, "--") == 0) {
            break;
        }
        status = argument[1] == '-' ? take_long(&parser, argument) : take_short(&parser, argument);
    }
    if (status < 0) {
        return status;
    }
    options->program = arguments + parser.next;
    options->program_count = argument_count - parser.next;
    if (options->program_count > 0 && options->program[0][0] == '\0') {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "the name of the program is empty");
    }
    options->misplaced = find_misplaced(options->program, options->program_count);
    return finish(options);
}
