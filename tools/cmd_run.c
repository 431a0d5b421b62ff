/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command ds-accel run. */
#include "tool.h"

#include <string.h>

/* Write a piece of the plan to stdout; a callback of ds_accel_launch_write(). */
static bool write_piece(void *user_data, const char *data, size_t size_bytes)
{
    return tool_answer(user_data, data, size_bytes, EXIT_OK) == EXIT_OK;
}

/* Errors in the arguments are errors of usage. */
static int fail(const struct tool *tool, int32_t status)
{
    return status == DS_ACCEL_ERR_INVALID ? tool_usage(tool, "%s", ds_accel_last_error())
                                          : tool_fail(status);
}

/* Start the job, and write its result to the file of --result. The exit code is the job's, also if
 * the file cannot be written then; a place that cannot be written now is an error before the start.
 */
static int32_t start(ds_accel_launch_t *launch, int32_t *code)
{
    const char *path = ds_accel_launch_result_file(launch);
    char *result = NULL;
    int32_t status;

    if (path != NULL && !tool_can_save(path)) {
        *code = EXIT_PROBLEMS;
        return DS_ACCEL_OK;
    }
    status = ds_accel_launch_run(launch, code, path != NULL ? &result : NULL);
    if (result != NULL) {
        tool_save(path, result, strlen(result));
    }
    ds_accel_free_text(result);
    return status;
}

static int run(struct tool *tool, int argument_count, char **arguments)
{
    ds_accel_launch_t *launch = NULL;
    int32_t code = EXIT_OK;
    int32_t status = ds_accel_launch_create(&tool->options, (uint32_t)argument_count,
                                            (const char *const *)arguments, &launch);

    if (status < 0) {
        return fail(tool, status);
    }
    switch (ds_accel_launch_wish(launch)) {
    case DS_ACCEL_LAUNCH_HELP:
        code = tool_help(tool);
        break;
    case DS_ACCEL_LAUNCH_VERSION:
        code = tool_version();
        break;
    case DS_ACCEL_LAUNCH_PLAN:
        status = ds_accel_launch_write(launch, write_piece, tool);
        break;
    default:
        status = start(launch, &code);
        break;
    }
    if (status < 0) {
        code = tool_fail(status);
    }
    ds_accel_launch_destroy(launch);
    return code;
}

const struct tool_command cmd_run = {
    .name = "run",
    .arguments = "PROGRAM [ARGUMENTS]",
    .summary = "start a job: one rank per device, bound and supervised",
    .help = "Starts one rank of PROGRAM for each device, with the environment that\n"
            "torch.distributed reads, and ends all ranks when one fails. The options of\n"
            "DeepSpeed's launcher are accepted as they are; \"-\" and \"_\" are equal in names.\n"
            "A .py file runs under python3, --module runs a module, other files are executed.\n"
            "Options behind PROGRAM are its own. ds-accel-run(1) describes all options.\n"
            "\n"
            "hosts and devices:\n"
            "  -H, --hostfile FILE     lines \"HOST slots=N\" (default: /job/hostfile)\n"
            "  -i, --include FILTER    only these: HOST[:SLOT,...][@HOST...]; a slot is an\n"
            "  -e, --exclude FILTER      index, UUID or PCI address; --exclude: not these\n"
            "      --num_nodes N       only the first N hosts\n"
            "      --num_gpus N        N ranks on every host; also: --num_accelerators\n"
            "  -a, --accelerator NAME  force this accelerator, as DS_ACCELERATOR does\n"
            "      --master_addr A, --master_port N|LO-HI|auto\n"
            "      --no_ssh --node_rank N   start only this machine's ranks, those of host N\n"
            "program:\n"
            "      --module            PROGRAM is a Python module\n"
            "      --no_python         execute PROGRAM itself\n"
            "      --no_local_rank     do not append --local_rank=N\n"
            "cores and memory:\n"
            "      --bind_cores_to_rank, --bind_core_list LIST   equal shares of the cores\n"
            "      --bind-to node|socket|l3|core|exclusive|none\n"
            "      --smt               all hardware threads of each core\n"
            "      --reserve-cores N|P%  keep cores of each rank free for I/O threads\n"
            "output and end:\n"
            "      --show-ranks        begin each line with \"HOST:RANK: \"\n"
            "      --enable_each_rank_log DIR   a log file for each rank\n"
            "      --pty               rank 0 gets a terminal\n"
            "      --result FILE       write how the job ended, as JSON\n"
            "      --stall-timeout T   report ranks that stand still for T (90s, 5m, 1h);\n"
            "      --stall-kill          and end the job\n"
            "      --save_pid          write the launcher's pid to /tmp/PID.deepspeed\n"
            "without starting anything:\n"
            "      --dry-run [--json]  show the plan; with --machine FILE, on that machine\n"
            "\n"
            "The exit code is that of the first rank that failed, 128 + n for signal n; 126 or\n"
            "127 if PROGRAM cannot be started. Before the start: 1 failed, 2 usage, 3 nothing\n"
            "available, 4 the forced accelerator is not usable, 5 bad hostfile or configuration.",
    .run = run,
    .parses = true,
};
