/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The commands ds-accel ops list, show, build, clean, export and import. */
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int report(struct tool *tool, const char *backend, const char *name)
{
    ds_accel_t *context;
    char *text = NULL;
    int32_t status = ds_accel_create(&tool->options, &context);
    int code;

    if (status < 0) {
        return tool_fail(status);
    }
    status = ds_accel_ops_report(context, backend, name, tool_format(tool), &text);
    code = status < 0 ? tool_fail(status) : tool_print(text, EXIT_OK);
    ds_accel_destroy(context);
    return code;
}

/* ---- build ---------------------------------------------------------------------------------- */

/* Lines on a terminal that replace each other; elsewhere, and with -v, lines that stay. */
static void show_progress(void *user_data, const char *op, uint32_t done, uint32_t total,
                          const char *what)
{
    const struct tool *tool = user_data;

    if (isatty(STDERR_FILENO) && tool->verbosity == 0) {
        fprintf(stderr, "\r%s: %" PRIu32 "/%" PRIu32 " %.40s\033[K", op, done, total, what);
        fflush(stderr);
    } else if (tool->verbosity > 0) {
        tool_say("%s: %" PRIu32 "/%" PRIu32 " %s", op, done, total, what);
    }
}

static int build(struct tool *tool, const char *name, const char *backend)
{
    struct ds_accel_ops_build_options options = {
        .struct_size = sizeof(options),
        .flags = tool->force ? DS_ACCEL_OPS_BUILD_FORCE : 0,
        .on_progress = tool->quiet ? NULL : show_progress,
        .user_data = tool,
    };
    ds_accel_t *context;
    uint32_t failures = 0;
    char *text = NULL;
    char *end = NULL;
    long jobs = tool->jobs != NULL ? strtol(tool->jobs, &end, 10) : 1;
    int32_t status;
    int code;

    if (jobs < 1 || jobs > INT_MAX || (end != NULL && *end != '\0')) {
        return tool_usage(tool, "--jobs takes a number from 1 on, not \"%s\"", tool->jobs);
    }
    options.jobs = tool->jobs != NULL ? (uint32_t)jobs : 0;
    status = ds_accel_create(&tool->options, &context);
    if (status < 0) {
        return tool_fail(status);
    }
    status =
        ds_accel_ops_build(context, backend, name, &options, tool_format(tool), &failures, &text);
    if (!tool->quiet && tool->verbosity == 0 && isatty(STDERR_FILENO)) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    code = status < 0 ? tool_fail(status)
                      : tool_print(text, failures > 0 ? EXIT_PROBLEMS : EXIT_OK);
    ds_accel_destroy(context);
    return code;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* clean, export or import. argument: the name of an op, or a directory. */
struct move {
    int32_t (*call)(ds_accel_t *context, const char *argument, uint64_t *files_out,
                    uint64_t *skipped_out);
    const char *done;
};

static int32_t clean(ds_accel_t *context, const char *op, uint64_t *files_out,
                     uint64_t *skipped_out)
{
    *skipped_out = 0;
    return ds_accel_ops_clean(context, op, files_out);
}

static const struct move clean_files = {clean, "removed"};
static const struct move export_files = {ds_accel_ops_export, "exported"};
static const struct move import_files = {ds_accel_ops_import, "imported"};

static int say_moved(const struct tool *tool, const char *done, uint64_t files, uint64_t skipped)
{
    char text[128];
    int length;

    if (tool->json) {
        length = snprintf(text, sizeof(text),
                          "{\n  \"schema_version\": 1,\n  \"files\": %" PRIu64
                          ",\n  \"skipped\": %" PRIu64 "\n}\n",
                          files, skipped);
        return tool_answer(tool, text, (size_t)length, EXIT_OK);
    }
    if (!tool->quiet && skipped > 0) {
        tool_say("%" PRIu64 " file%s %s, %" PRIu64 " skipped", files, files == 1 ? "" : "s", done,
                 skipped);
    } else if (!tool->quiet) {
        tool_say("%" PRIu64 " file%s %s", files, files == 1 ? "" : "s", done);
    }
    return EXIT_OK;
}

/* Move files, and say how many it was. */
static int move(struct tool *tool, const char *argument, const struct move *how)
{
    ds_accel_t *context;
    uint64_t files = 0;
    uint64_t skipped = 0;
    int32_t status = ds_accel_create(&tool->options, &context);
    int code;

    if (status < 0) {
        return tool_fail(status);
    }
    status = how->call(context, argument, &files, &skipped);
    code = status < 0 ? tool_fail(status) : say_moved(tool, how->done, files, skipped);
    ds_accel_destroy(context);
    return code;
}

/* The absolute path of a directory, in a buffer of PATH_MAX bytes; NULL with errno: it has none. */
static const char *absolute(const char *directory, char *buffer)
{
    size_t length;

    if (directory[0] == '/') {
        return directory;
    }
    if (getcwd(buffer, PATH_MAX) == NULL) {
        return NULL;
    }
    length = strlen(buffer);
    errno = ENAMETOOLONG;
    return snprintf(buffer + length, PATH_MAX - length, "/%s", directory) < (int)(PATH_MAX - length)
               ? buffer
               : NULL;
}

static int transfer(struct tool *tool, const char *directory, bool exports)
{
    char buffer[PATH_MAX];
    const char *path = absolute(directory, buffer);

    if (directory[0] == '\0') {
        return tool_usage(tool, "the name of the directory is empty");
    }
    if (path == NULL) {
        return tool_usage(tool, "the absolute path of %s: %s", directory, strerror(errno));
    }
    return move(tool, path, exports ? &export_files : &import_files);
}

static int run(struct tool *tool, int argument_count, char **arguments)
{
    const char *verb = arguments[0];
    const char *second = argument_count > 1 ? arguments[1] : NULL;
    const char *third = argument_count > 2 ? arguments[2] : NULL;

    if ((tool->force || tool->jobs != NULL) && strcmp(verb, "build") != 0) {
        return tool_usage(tool, "only ops build takes --%s", tool->force ? "force" : "jobs");
    }
    if (strcmp(verb, "list") == 0 && third == NULL) {
        return report(tool, second, NULL);
    }
    if (strcmp(verb, "show") == 0 && second != NULL) {
        return report(tool, third, second);
    }
    if (strcmp(verb, "build") == 0) {
        return build(tool, second, third);
    }
    if (strcmp(verb, "clean") == 0 && third == NULL) {
        return move(tool, second, &clean_files);
    }
    if ((strcmp(verb, "export") == 0 || strcmp(verb, "import") == 0) && second != NULL &&
        third == NULL) {
        return transfer(tool, second, verb[0] == 'e');
    }
    return tool_usage(tool, "ops takes list [BACKEND], show NAME [BACKEND], build [NAME "
                            "[BACKEND]], clean [NAME], export DIR or import DIR");
}

const struct tool_command cmd_ops = {
    .name = "ops",
    .arguments = "list|show|build|clean|export|import [ARGUMENTS]",
    .summary = "list the op builders of a backend, and build their kernels",
    .help =
        "list [BACKEND]          the op builders of the accelerator, or of another backend:\n"
        "                        whether a kernel is installed or built, whether it can be\n"
        "                        used here, and why not\n"
        "show NAME [BACKEND]     one builder (CPUAdamBuilder) or op (cpu_adam) in detail\n"
        "build [NAME [BACKEND]]  build the kernels that are neither installed nor built;\n"
        "                        --force: build anyway, though what is installed still\n"
        "                        precedes; --jobs N: compilers at once\n"
        "clean [NAME]            remove what was built\n"
        "export DIR              copy what was built to a directory ...\n"
        "import DIR              ... and from there, on a machine without compilers; files for\n"
        "                        machines with another kind of processor are skipped\n"
        "\n"
        "list -v also lists the builders that only other backends have. Programs load an op\n"
        "with ds_accel_op_load(), which builds it if need be.",
    .least = 1,
    .most = 3,
    .own_options = "force jobs",
    .run = run,
    .starts_plugins = true,
};
