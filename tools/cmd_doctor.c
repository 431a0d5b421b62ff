/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command ds-accel doctor. */
#include "tool.h"

static int run(struct tool *tool, int argument_count, char **arguments)
{
    ds_accel_t *context;
    char *text = NULL;
    int32_t status = ds_accel_create(&tool->options, &context);
    int code;

    (void)argument_count;
    (void)arguments;
    if (status < 0) {
        return tool_fail(status);
    }
    /* Print the report even if status is an error: problems that the doctor finds determine the
     * exit code, but the command itself has succeeded. */
    status = ds_accel_report(context, DS_ACCEL_REPORT_DOCTOR, NULL, tool_format(tool), &text);
    code = text != NULL ? tool_print(text, tool_exit_code(status)) : tool_fail(status);
    ds_accel_destroy(context);
    return code;
}

const struct tool_command cmd_doctor = {
    .name = "doctor",
    .arguments = "",
    .summary = "find problems that keep accelerators from being used",
    .help =
        "Looks at plugins, vendors' libraries, device nodes and their permissions, locked\n"
        "memory, CPUs, NUMA nodes and limits, the configuration and the quarantine, and\n"
        "reports what to do about each finding. Wakes no device and loads no vendor's library;\n"
        "plugins are probed as by list. -v also shows what is in order.\n"
        "Exit code 1 if a problem is found.",
    .run = run,
};
