/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The commands ds-accel memory show and replay. */
#include "tool.h"

#include <string.h>

/* The requested format. On a usage error, returns 0, with the exit code in *code. */
static uint32_t choose_format(const struct tool *tool, int *code)
{
    if (tool->json + tool->svg + tool->pickle + tool->pickle_segments > 1) {
        *code =
            tool_usage(tool, "--json, --svg, --pickle and --pickle-segments exclude each other");
        return 0;
    }
    if ((tool->pickle || tool->pickle_segments) && tool_is_terminal(tool)) {
        *code = tool_usage(tool, "a pickle is binary: write it to a file with --output");
        return 0;
    }
    if (tool->pickle || tool->pickle_segments) {
        return tool->pickle ? DS_ACCEL_SNAPSHOT_PICKLE : DS_ACCEL_SNAPSHOT_PICKLE_SEGMENTS;
    }
    if (tool->json || tool->svg) {
        return tool->json ? DS_ACCEL_SNAPSHOT_JSON : DS_ACCEL_SNAPSHOT_SVG;
    }
    return DS_ACCEL_SNAPSHOT_TEXT;
}

static int show(struct tool *tool, const char *path)
{
    void *data;
    size_t size_bytes;
    int code;
    uint32_t format = choose_format(tool, &code);
    int32_t status;

    if (format == 0) {
        return code;
    }
    if (tool->try_count > 0) {
        return tool_usage(tool, "--try is an option of memory replay");
    }
    status = ds_accel_memory_snapshot_convert(path, format, &data, &size_bytes);
    return status < 0 ? tool_fail(status) : tool_write(tool, data, size_bytes, EXIT_OK);
}

static int replay(struct tool *tool, const char *path)
{
    char *text;
    int32_t status;

    if (tool->svg || tool->pickle || tool->pickle_segments) {
        return tool_usage(tool, "memory replay writes a table, or JSON");
    }
    status = ds_accel_memory_replay(path, tool->tries, (uint32_t)tool->try_count,
                                    tool->json ? DS_ACCEL_FORMAT_JSON : 0, &text);
    return status < 0 ? tool_fail(status) : tool_write(tool, text, strlen(text), EXIT_OK);
}

static int run(struct tool *tool, int argument_count, char **arguments)
{
    (void)argument_count;
    if (strcmp(arguments[0], "show") == 0) {
        return show(tool, arguments[1]);
    }
    if (strcmp(arguments[0], "replay") == 0) {
        return replay(tool, arguments[1]);
    }
    return tool_usage(tool, "memory takes show FILE or replay FILE, not \"%s\"", arguments[0]);
}

const struct tool_command cmd_memory = {
    .name = "memory",
    .arguments = "show|replay FILE",
    .summary = "show a snapshot of an allocator, or try other settings on it",
    .help = "show FILE  prints segments and blocks of a snapshot, as this library and torch write\n"
            "           them, as a table\n"
            "\n"
            "      --json, --svg        as JSON; as a picture, with the recorded history\n"
            "      --pickle[=segments]  as torch's memory viewer opens it; its list of segments\n"
            "                           alone, for torch before 2.0\n"
            "  -o, --output FILE        write to a file",
    .least = 2,
    .most = 2,
    .own_options = "output pickle pickle-segments svg try",
    .run = run,
};
