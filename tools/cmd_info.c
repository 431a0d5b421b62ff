/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* ds-accel info */
#include "tool.h"

static int run(struct tool *tool, int argument_count, char **arguments)
{
    return tool_report(tool, DS_ACCEL_REPORT_INFO, argument_count > 0 ? arguments[0] : NULL);
}

const struct tool_command cmd_info = {
    .name = "info",
    .arguments = "[NAME]",
    .summary = "show devices, memory, data types, flags and variables of one",
    .help =
        "Shows all that is known of an accelerator, by default the chosen one. Works for every\n"
        "backend that the configuration or a plugin knows; what needs the device is unknown\n"
        "(JSON null) when it is not there.",
    .most = 1,
    .run = run,
};
