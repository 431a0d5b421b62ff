/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The commands ds-accel cache show and clear. */
#include "tool.h"

#include <string.h>

static int clear(struct tool *tool)
{
    ds_accel_t *context;
    int32_t status = ds_accel_create(&tool->options, &context);

    if (status < 0) {
        return tool_fail(status);
    }
    status = ds_accel_cache_clear(context);
    status = status < 0 ? tool_fail(status) : EXIT_OK;
    ds_accel_destroy(context);
    return status;
}

static int run(struct tool *tool, int argument_count, char **arguments)
{
    (void)argument_count;
    if (strcmp(arguments[0], "show") == 0) {
        return tool_report(tool, DS_ACCEL_REPORT_CACHE, NULL);
    }
    if (strcmp(arguments[0], "clear") == 0) {
        return clear(tool);
    }
    return tool_usage(tool, "cache takes show or clear, not \"%s\"", arguments[0]);
}

const struct tool_command cmd_cache = {
    .name = "cache",
    .arguments = "show|clear",
    .summary = "show or clear the verdicts of earlier probes",
    .help = "show   prints the verdicts that are remembered, so that plugins need not be probed\n"
            "       again: state, devices, age, when each expires, path and reason\n"
            "clear  removes them; plugins that crashed or hung stay in quarantine",
    .least = 1,
    .most = 1,
    .run = run,
};
