/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command ds-accel report. */
#include "tool.h"

#include <string.h>

/* Write a report to stdout, or to a file, which is written completely or not at all. */
static int write_report(struct tool *tool, uint32_t report, uint32_t format, const char *path)
{
    ds_accel_t *context;
    char *text = NULL;
    int32_t status = ds_accel_create(&tool->options, &context);
    int code;

    if (status < 0) {
        return tool_fail(status);
    }
    status = ds_accel_report(context, report, NULL, format, &text);
    ds_accel_destroy(context);
    if (status < 0) {
        return tool_fail(status);
    }
    if (path == NULL) {
        return tool_print(text, EXIT_OK);
    }
    code = tool_save(path, text, strlen(text)) ? EXIT_OK : EXIT_PROBLEMS;
    ds_accel_free_text(text);
    return code;
}

static int run(struct tool *tool, int argument_count, char **arguments)
{
    (void)argument_count;
    (void)arguments;
    if (tool->record == NULL) {
        return write_report(tool, DS_ACCEL_REPORT_BUNDLE,
                            DS_ACCEL_FORMAT_JSON |
                                (tool->no_redact ? DS_ACCEL_FORMAT_UNREDACTED : 0),
                            tool->output);
    }
    if (tool->no_redact || tool->output != NULL) {
        return tool_usage(tool, "--record writes the machine as it is, and nothing else");
    }
    return write_report(tool, DS_ACCEL_REPORT_RECORDING, DS_ACCEL_FORMAT_JSON, tool->record);
}

const struct tool_command cmd_report = {
    .name = "report",
    .arguments = "",
    .summary = "write all reports as one for a support request, or record the machine",
    .help =
        "Writes every report as one JSON text: detect, list, explain, info and env of what can be\n"
        "used, doctor, topo, config. Names of host and user, home directories and network "
        "addresses\n"
        "are left out of it; UUIDs of devices stay.\n"
        "\n"
        "      --no-redact          leave them in\n"
        "  -o, --output FILE        write to a file\n"
        "      --record FILE        record the machine: with --machine FILE, other commands\n"
        "                           report what they would here. Starts every plugin that can be\n"
        "                           used; nothing is left out",
    .own_options = "no-redact output record",
    .run = run,
    .starts_plugins = true,
};
