/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command ds-accel list. */
#include "tool.h"

static int run(struct tool *tool, int argument_count, char **arguments)
{
    (void)argument_count;
    (void)arguments;
    return tool_report(tool, DS_ACCEL_REPORT_LIST, NULL);
}

const struct tool_command cmd_list = {
    .name = "list",
    .arguments = "",
    .summary = "list every plugin found: state, version, vendor, path, reason",
    .help = "Lists every plugin on the search path in detection order, with its state and, if\n"
            "it cannot be used, the reason. Plugins chosen only by name are not probed.",
    .run = run,
};
