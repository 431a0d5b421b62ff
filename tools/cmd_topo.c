/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command ds-accel topo. */
#include "tool.h"

#include <stdio.h>
#include <string.h>

static int run(struct tool *tool, int argument_count, char **arguments)
{
    char names[1024] = "";
    size_t length = 0;

    if (tool->json && tool->svg) {
        return tool_usage(tool, "--json and --svg exclude each other");
    }
    for (int i = 0; i < argument_count; i++) {
        if (length + strlen(arguments[i]) + 2 > sizeof(names)) {
            return tool_usage(tool, "the names are too long");
        }
        length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s", i > 0 ? "," : "",
                                   arguments[i]);
    }
    return tool_report(tool, DS_ACCEL_REPORT_TOPO, argument_count > 0 ? names : NULL);
}

const struct tool_command cmd_topo = {
    .name = "topo",
    .arguments = "[NAME...]",
    .summary = "show how devices, NUMA nodes and network cards are connected",
    .help =
        "Shows, for each pair of devices or network cards, the links between them or what both\n"
        "share: a board, a PCIe switch, port or host bridge, a NUMA node. The default is the\n"
        "forced accelerator (-a, DS_ACCELERATOR, the configuration's); without one, every\n"
        "accelerator that can be used; if there is none, cpu, whose devices are the NUMA nodes.\n"
        "No device is opened.\n"
        "\n"
        "      --svg                as a picture",
    .most = 32,
    .own_options = "svg",
    .run = run,
    .starts_plugins = true,
};
