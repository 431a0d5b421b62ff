/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command ds-accel explain. */
#include "tool.h"

static int run(struct tool *tool, int argument_count, char **arguments)
{
    return tool_report(tool, DS_ACCEL_REPORT_EXPLAIN, argument_count > 0 ? arguments[0] : NULL);
}

const struct tool_command cmd_explain = {
    .name = "explain",
    .arguments = "[NAME]",
    .summary = "show gate by gate why each plugin was or was not chosen",
    .help =
        "For each plugin, or the one named: every gate in order (name, trust, elf, note, hash,\n"
        "allow, power, quarantine, hardware, load, entry, probe, start, conduct), the first that\n"
        "failed, the evidence, and what to do about it.\n"
        "-v also shows gates that were not reached.",
    .most = 1,
    .run = run,
};
