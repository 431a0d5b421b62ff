/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command ds-accel lint. */
#include "tool.h"

static int run(struct tool *tool, int argument_count, char **arguments)
{
    char *text = NULL;
    int32_t status = ds_accel_lint(&tool->options, arguments[0], tool_format(tool), &text);

    (void)argument_count;
    if (text == NULL) {
        return tool_fail(status);
    }
    return tool_print(text, tool_exit_code(status));
}

const struct tool_command cmd_lint = {
    .name = "lint",
    .arguments = "FILE.so",
    .summary = "check a plugin file against the numbered rules of the ABI",
    .help = "Checks the rules of docs/plugin-abi.md that a file can be checked for, by number.\n"
            "Loads the plugin and runs its entry and its probe. Exit code 1 if a rule is broken.",
    .least = 1,
    .most = 1,
    .run = run,
};
