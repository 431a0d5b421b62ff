/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* ds-accel config check|show */
#include "tool.h"

#include <string.h>

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
    (void)argument_count;
    if (strcmp(arguments[0], "check") == 0 && !tool->show_env) {
        return check(tool);
    }
    if (strcmp(arguments[0], "show") == 0) {
        return tool_report(
            tool, tool->show_env ? DS_ACCEL_REPORT_CONFIG_ENV : DS_ACCEL_REPORT_CONFIG, NULL);
    }
    return tool_usage(tool, "config takes check or show [--env], not \"%s\"%s", arguments[0],
                      tool->show_env ? " with --env" : "");
}

const struct tool_command cmd_config = {
    .name = "config",
    .arguments = "check|show",
    .summary = "check the configuration, or show it with the origin of every value",
    .help = "check  validates every file and prints each problem as file:line:column: text;\n"
            "       exit code 5 if there is one\n"
            "show   prints the merged configuration, each value with the file and line it is from\n"
            "show --env  prints the DS_* variables with value, origin and meaning",
    .least = 1,
    .most = 1,
    .own_options = "env",
    .run = run,
};
