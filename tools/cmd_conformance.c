/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command ds-accel conformance. */
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Parse a device: a whole number from 0 to 65535, or "all", which leaves *device_out unchanged.
 * False: the text is neither. */
static bool read_device(const char *text, uint32_t *device_out)
{
    char *end;
    unsigned long value;

    if (strcmp(text, "all") == 0) {
        return true;
    }

    errno = 0;
    value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value > 65535) {
        return false;
    }
    *device_out = (uint32_t)value;
    return true;
}

static int run(struct tool *tool, int argument_count, char **arguments)
{
    const char *only = tool->rule != NULL ? tool->rule : tool->group;
    uint32_t device = DS_ACCEL_CONFORMANCE_ALL_DEVICES;
    char *text = NULL;
    int32_t status;

    if (tool->rule != NULL && tool->group != NULL) {
        return tool_usage(tool, "either --rule or --group");
    }
    if (tool->device != NULL && !read_device(tool->device, &device)) {
        return tool_usage(tool, "--device \"%s\" is not a number of a device, nor all",
                          tool->device);
    }
    if (tool->list != (argument_count == 0)) {
        return tool_usage(tool, tool->list ? "--list takes no argument"
                                           : "conformance takes NAME|FILE.so, or --list");
    }
    status = ds_accel_conformance(&tool->options, tool->list ? NULL : arguments[0], device, only,
                                  tool_format(tool), &text);
    if (text == NULL) {
        int code = tool_fail(status);

        return status == DS_ACCEL_ERR_INVALID ? EXIT_USAGE : code;
    }
    return tool_print(text, tool_exit_code(status));
}

const struct tool_command cmd_conformance = {
    .name = "conformance",
    .arguments = "[NAME|FILE.so]",
    .summary = "check a running plugin on its device",
    .help =
        "Starts the plugin and checks on its devices the rules of docs/plugin-abi.md that can be\n"
        "observed, each in a process that may crash or hang. Functions that the plugin lacks are\n"
        "skipped. Its output is shown. Exit code 1 if a check fails.\n\n"
        "  --device N    the device to work with; if not given, or \"all\", each of them\n"
        "  --group NAME  only the checks of a group, such as stream\n"
        "  --list        list the checks, and run none\n"
        "  --rule RULE   only the checks of a rule, such as DSA-P19",
    .most = 1,
    .own_options = "device group list rule",
    .run = run,
};
