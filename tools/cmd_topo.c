/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command ds-accel topo. */
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_LIMIT_BYTES ((size_t)32 * 1024 * 1024)

/* Read the file to its end. Returns NULL, or the reason why it cannot be read. */
static const char *read_all(FILE *file, char **text_out, size_t *size_bytes_out)
{
    size_t capacity = 64 * 1024;
    size_t size = 0;
    char *text = malloc(capacity);

    for (;;) {
        char *larger;

        size += text != NULL ? fread(text + size, 1, capacity - size, file) : 0;
        if (text == NULL || ferror(file) || size > PLAN_LIMIT_BYTES) {
            const char *problem = text == NULL    ? "out of memory"
                                  : !ferror(file) ? "it is larger than 32 MiB; expected a plan of "
                                                    "fewer hosts, as with --include HOST"
                                                  : strerror(errno);

            free(text);
            return problem;
        }
        if (size < capacity) {
            *text_out = text;
            *size_bytes_out = size;
            return NULL;
        }
        capacity *= 2;
        larger = realloc(text, capacity);
        if (larger == NULL) {
            free(text);
        }
        text = larger;
    }
}

/* Draw the plan in a file; "-" is stdin. */
static int draw_plan(struct tool *tool)
{
    bool is_stdin = strcmp(tool->plan, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(tool->plan, "re");
    ds_accel_t *context = NULL;
    char *plan = NULL;
    char *text = NULL;
    size_t size_bytes = 0;
    const char *problem = file != NULL ? read_all(file, &plan, &size_bytes) : strerror(errno);
    int32_t status;
    int code;

    if (file != NULL && !is_stdin) {
        fclose(file);
    }
    if (problem != NULL) {
        tool_say("%s: cannot read it: %s", is_stdin ? "<stdin>" : tool->plan, problem);
        return EXIT_PROBLEMS;
    }
    status = ds_accel_create(&tool->options, &context);
    if (status >= 0) {
        status = ds_accel_topo_plan(context, is_stdin ? "<stdin>" : tool->plan, plan, size_bytes,
                                    tool_format(tool), &text);
    }
    free(plan);
    code = status < 0 ? tool_fail(status) : tool_print(text, EXIT_OK);
    ds_accel_destroy(context);
    return code;
}

static int run(struct tool *tool, int argument_count, char **arguments)
{
    char names[1024] = "";
    size_t length = 0;

    if (tool->json && tool->svg) {
        return tool_usage(tool, "--json and --svg exclude each other");
    }
    if (tool->plan != NULL && argument_count > 0) {
        return tool_usage(tool, "--plan shows the plan's accelerator: no other can be named");
    }
    if (tool->plan != NULL) {
        return draw_plan(tool);
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
        "      --plan FILE          draw the ranks of a plan on this machine; - is stdin:\n"
        "                           ds-accel run --dry-run --json --bind_cores_to_rank X |\n"
        "                             ds-accel topo --plan -\n"
        "      --svg                as a picture",
    .most = 32,
    .own_options = "plan svg",
    .run = run,
    .starts_plugins = true,
};
