/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command ds-accel env. */
#include "tool.h"

static int run(struct tool *tool, int argument_count, char **arguments)
{
    return tool_report(tool, DS_ACCEL_REPORT_ENV, argument_count > 0 ? arguments[0] : NULL);
}

const struct tool_command cmd_env = {
    .name = "env",
    .arguments = "[NAME]",
    .summary = "print a backend's environment variables as lines for eval",
    .help = "Prints the environment workarounds of a backend, by default the chosen one's, as\n"
            "lines for the shell:  eval \"$(ds-accel env hpu)\"\n"
            "Works for an absent backend, too. A variable that is already set is left alone\n"
            "unless its rule is \"always\" or \"unset\"; --json shows these too.",
    .most = 1,
    .run = run,
    .starts_plugins = true,
};
