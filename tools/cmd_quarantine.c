/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The commands ds-accel quarantine list and clear. */
#include "tool.h"

#include <string.h>

static int clear(struct tool *tool, const char *name)
{
    ds_accel_t *context;
    int32_t status = ds_accel_create(&tool->options, &context);

    if (status < 0) {
        return tool_fail(status);
    }
    status = ds_accel_quarantine_clear(context, name);
    status = status < 0 ? tool_fail(status) : EXIT_OK;
    ds_accel_destroy(context);
    return status;
}

static int run(struct tool *tool, int argument_count, char **arguments)
{
    if (strcmp(arguments[0], "list") == 0 && argument_count == 1) {
        return tool_report(tool, DS_ACCEL_REPORT_QUARANTINE, NULL);
    }
    if (strcmp(arguments[0], "clear") == 0) {
        return clear(tool, argument_count > 1 ? arguments[1] : NULL);
    }
    return tool_usage(tool, "quarantine takes list or clear [NAME], not \"%s%s%s\"", arguments[0],
                      argument_count > 1 ? " " : "", argument_count > 1 ? arguments[1] : "");
}

const struct tool_command cmd_quarantine = {
    .name = "quarantine",
    .arguments = "list|clear",
    .summary = "list or release plugins that crashed or hung",
    .help = "list          prints the plugins that crashed or hung: how often in a row, until\n"
            "              when each is skipped, path and the last reason\n"
            "clear [NAME]  releases all of them, or one backend's: they are probed again",
    .least = 1,
    .most = 2,
    .run = run,
};
