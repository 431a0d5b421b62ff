/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command ds-accel info. */
#include "tool.h"

/* Write the file of --memory-map, a memory snapshot, as an SVG picture or, with --json, as JSON. */
static int map_file(const struct tool *tool)
{
    void *data;
    size_t size_bytes;
    int32_t status = ds_accel_memory_snapshot_convert(
        tool->memory_map, tool->json ? DS_ACCEL_SNAPSHOT_JSON : DS_ACCEL_SNAPSHOT_SVG, &data,
        &size_bytes);

    return status < 0 ? tool_fail(status) : tool_write(tool, data, size_bytes, EXIT_OK);
}

static int run(struct tool *tool, int argument_count, char **arguments)
{
    const char *name = argument_count > 0 ? arguments[0] : NULL;

    if (tool->memory_map == NULL) {
        return tool_report(tool, DS_ACCEL_REPORT_INFO, name);
    }
    if (tool->memory_map[0] == '\0') {
        return tool_report(tool, DS_ACCEL_REPORT_MEMORY, name);
    }
    return name == NULL
               ? map_file(tool)
               : tool_usage(tool, "the snapshot names its accelerator: leave out \"%s\"", name);
}

const struct tool_command cmd_info = {
    .name = "info",
    .arguments = "[NAME]",
    .summary = "show devices, memory, data types, flags and variables of an accelerator",
    .help =
        "Shows all that is known about an accelerator, by default the chosen one. Works for every\n"
        "backend that the configuration or a plugin knows; what needs the device is unknown\n"
        "(JSON null) when it is not there.\n"
        "\n"
        "      --memory-map[=FILE]  show instead a picture (SVG; with --json the figures) of\n"
        "                           the devices' memory now, or of a snapshot of an allocator",
    .most = 1,
    .own_options = "memory-map",
    .run = run,
    .starts_plugins = true,
};
