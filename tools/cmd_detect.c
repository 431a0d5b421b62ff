/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command ds-accel detect. */
#include "tool.h"

static int run(struct tool *tool, int argument_count, char **arguments)
{
    (void)argument_count;
    (void)arguments;
    return tool_report(tool, DS_ACCEL_REPORT_DETECT, NULL);
}

const struct tool_command cmd_detect = {
    .name = "detect",
    .arguments = "",
    .summary = "print the name of the accelerator that a job will use",
    .help = "Prints the chosen accelerator's name alone on stdout. Forced by --accelerator,\n"
            "DS_ACCELERATOR or the configuration's \"accelerator\"; else the first available one\n"
            "in \"detection_order\". A forced one that cannot be used fails, with exit code 4.",
    .run = run,
};
